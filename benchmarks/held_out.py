"""What held-out ratios cost, and how close they come to the ratio of new rows.

``python benchmarks/held_out.py`` on an idle machine; ``--quick`` for tiny shapes, ``--no-cost`` or ``--no-accuracy``
for one half.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA

# Rows of each dataset, columns, and how many plain fits a fit with held-out ratios may take.
COSTS = ((20_000, 500, 1.5), (200_000, 100, 1.5), (300, 20_000, 4.0))
# Rows of each dataset, columns, and the bounds of the median of held-out by new ratios.
SHAPES = ((150, 150, 0.9, 1.1), (300, 100, 0.9, 1.1), (2_000, 200, 0.9, 1.1), (60, 2_000, 0.0, 1.1))
METHODS: dict[str, Callable[[], Any]] = {
    "dpca": lambda: DiscriminativePCA(1),
    "dpca, held-out": lambda: DiscriminativePCA(1, shrinkage="held-out"),
    "cpca": lambda: ContrastivePCA(1),
    "kdpca, linear": lambda: KernelDiscriminativePCA(1, kernel="linear"),
    "kdpca, gaussian": lambda: KernelDiscriminativePCA(1, kernel="gaussian", epsilon="held-out"),
}


def draw(rng: np.random.Generator, n_rows: int, directions: np.ndarray, own: float) -> np.ndarray:
    """Draw rows with ten shared factors of variance 100, two of the target's own, and unit noise."""
    spreads = np.sqrt([100.0 * (1.2 if own else 1.0)] * 10 + [own] * 2)
    factors = rng.normal(size=(n_rows, 12)) * spreads
    return rng.normal(size=(n_rows, directions.shape[1])) + factors @ directions


def fastest(fit: Callable[[], Any], repeats: int) -> float:
    """Give the shortest time of several calls."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        fit()
        times.append(perf_counter() - start)
    return min(times)


def costs(repeats: int, quick: bool) -> int:
    """Print what the folds cost; give the number of bounds that are missed."""
    missed = 0
    print(f"{'rows':>8} {'columns':>8} {'plain':>8} {'with folds':>11} {'ratio':>6} {'allowed':>8}")
    for n_rows, n_features, allowed in COSTS:
        size = (n_rows // 20, n_features // 20) if quick else (n_rows, n_features)
        rng = np.random.default_rng(0)
        target, background = rng.normal(size=size), rng.normal(size=size)
        target[:, 0] *= 3.0
        plain, folds = (
            fastest(partial(DiscriminativePCA(2, held_out=folds).fit, target, background=background), repeats)
            for folds in (None, 10)
        )
        missed += folds > allowed * plain
        print(f"{size[0]:8} {size[1]:8} {plain:8.3f} {folds:11.3f} {folds / plain:6.2f} {allowed:8.1f}", flush=True)
    return missed


def accuracies(n_seeds: int, n_new: int, quick: bool) -> int:
    """Print held-out by new ratios; give the number of bounds that are missed."""
    missed = 0
    print(f"\n{'rows':>8} {'columns':>8} {'method':16} {'held-out':>9} {'in-sample':>10}   of the ratio of new rows")
    for n_rows, n_features, least, most in SHAPES:
        shares: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            directions = np.linalg.qr(rng.normal(size=(max(n_features // (5 if quick else 1), 12), 12)))[0].T
            target, background = draw(rng, n_rows, directions, 16.0), draw(rng, n_rows, directions, 0.0)
            new, other = draw(rng, n_new, directions, 16.0), draw(rng, n_new, directions, 0.0)
            for name, make in METHODS.items():
                model = make().fit(target, background=background)

                def ratio(one: np.ndarray, two: np.ndarray, model: Any = model) -> float:
                    return float(np.var(model.transform(one)) / np.var(model.transform(two)))

                truth = ratio(new, other)
                shares[name].append((model.held_out_ratio_[0] / truth, ratio(target, background) / truth))
        for name, found in shares.items():
            held_out, in_sample = np.median(found, axis=0)
            missed += not least <= held_out <= most
            print(f"{n_rows:8} {directions.shape[1]:8} {name:16} {held_out:9.2f} {in_sample:10.1f}", flush=True)
    return missed


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-cost", action="store_true")
    parser.add_argument("--no-accuracy", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    missed = 0 if options.no_cost else costs(2 if options.quick else 5, options.quick)
    if not options.no_accuracy:
        missed += accuracies(2 if options.quick else options.seeds, 500 if options.quick else 20_000, options.quick)
    print("all bounds met" if not missed else f"{missed} bounds missed")
    return int(missed > 0 and not options.quick)


if __name__ == "__main__":
    sys.exit(main())
