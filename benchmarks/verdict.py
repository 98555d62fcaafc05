"""How often a component is said to be real: where nothing is there, and where a factor of twice the detection edge is.

``python benchmarks/verdict.py`` prints a table of shares; ``--runs 20 --cases gaussian`` is a short look.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed

from standout import DiscriminativePCA

# Target rows, background rows, columns: fewer rows than columns, about as many, and more.
SHAPES = {"fewer rows": (40, 40, 120), "as many": (80, 80, 80), "more rows": (150, 150, 30)}
TAILS = ("gaussian", "t5", "counts")
MOST_FALSE, LEAST_FOUND = 0.07, 0.80


def drawn(rng: np.random.Generator, tails: str, n_rows: int, n_features: int) -> np.ndarray:
    """Draw independent rows of unit variance; counts have means of their own."""
    if tails == "gaussian":
        return rng.normal(size=(n_rows, n_features))
    if tails == "t5":
        return rng.standard_t(5, size=(n_rows, n_features)) / np.sqrt(5 / 3)
    return rng.poisson(4.0, size=(n_rows, n_features)) / 2.0


def edge(n_target: int, n_background: int, n_features: int) -> float:
    """Give the ratio below which no method can see a direction: with a known background, or with an estimated one."""
    one, other = n_features / n_target, n_features / n_background
    known = 1.0 + np.sqrt(one)
    return min(known, (1.0 + np.sqrt(one + other - one * other)) / (1.0 - other)) if other < 1.0 else known


def said(tails: str, shape: tuple[int, int, int], ratio: float, shrinkage: str, seed: int) -> tuple[bool, float]:
    """Fit and test one pair of datasets: is the first component said to be real, and how long does that take?"""
    rng = np.random.default_rng(seed)
    n_target, n_background, n_features = shape
    target, background = drawn(rng, tails, n_target, n_features), drawn(rng, tails, n_background, n_features)
    direction = rng.normal(size=n_features)
    direction /= np.linalg.norm(direction)
    target = target + np.sqrt(ratio - 1.0) * rng.normal(size=(n_target, 1)) * direction
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DiscriminativePCA(1, shrinkage=shrinkage, test="auto", random_state=seed).fit(
            target, background=background
        )
    return bool(model.p_values_[0] <= 0.05), perf_counter() - start


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--cases", nargs="+", default=list(TAILS), choices=TAILS)
    parser.add_argument("--shrinkage", default="held-out")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    missed = 0
    print(f"{'tails':10} {'shape':12} {'false alarms':>13} {'found':>7} {'seconds':>8}")
    for tails in options.cases:
        for name, shape in SHAPES.items():
            rates = []
            for ratio in (1.0, 2.0 * edge(*shape)):
                work = Parallel(n_jobs=options.jobs)(
                    delayed(said)(tails, shape, ratio, options.shrinkage, seed) for seed in range(options.runs)
                )
                rates.append(np.mean([real for real, _ in work]))
            seconds = np.median([time for _, time in work])
            missed += rates[0] > MOST_FALSE or rates[1] < LEAST_FOUND
            print(f"{tails:10} {name:12} {rates[0]:13.3f} {rates[1]:7.2f} {seconds:8.2f}", flush=True)
    print("all bounds met" if not missed else f"{missed} bounds missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
