"""Weights of rows that differ between datasets: how often is something found where nothing is?

    python benchmarks/row_weights.py              # the figures of benchmarks/README.md, about 5 minutes
    python benchmarks/row_weights.py --count 20   # does the script work?

The target and the background are of one population, and weights do not depend on the rows. The share of datasets whose
first component has a p-value of at most 0.05 should be 0.05.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from standout import DiscriminativePCA

LEVEL = 0.05
Rng = np.random.Generator


def nothing(rng: Rng, codes: Any) -> None:
    """Give no weights."""


def first_of(share: float, others: float, weight: float = 1.0) -> Any:
    """Give a share of the subjects a weight, and the others another one."""
    return lambda rng, codes: np.where(codes < share * (codes.max() + 1), weight, others)


def exponential(rng: Rng, codes: Any) -> Any:
    return rng.exponential(size=len(codes))


def pareto(rng: Rng, codes: Any) -> Any:
    return rng.pareto(1.2, size=len(codes)) + 0.01


def lognormal(rng: Rng, codes: Any) -> Any:
    return np.exp(1.5 * rng.normal(size=len(codes)))


def of_subjects(rng: Rng, codes: Any) -> Any:
    """Give all rows of a subject one weight."""
    return np.exp(1.5 * rng.normal(size=codes.max() + 1))[codes]


def first_rows(rng: Rng, codes: Any) -> Any:
    """Let the first row of each subject count most."""
    return np.where(np.r_[True, codes[1:] != codes[:-1]], 1.0, 0.05)


def some_without(rng: Rng, codes: Any) -> Any:
    return of_subjects(rng, codes) * (codes > codes.max() // 3)


# Weights of the target and of the background, rows of each, columns, and what else the fit is told.
ROWS: dict[str, tuple[Any, Any, tuple[int, int, int], dict[str, Any]]] = {
    "a fifth counts, the rest is zero": (nothing, first_of(0.2, 0.0), (60, 60, 5), {}),
    "half counts, the rest is zero": (nothing, first_of(0.5, 0.0), (60, 60, 5), {}),
    "a tenth counts ten times": (nothing, first_of(0.1, 1.0, 10.0), (60, 60, 5), {}),
    "a fifth counts, the rest hardly": (nothing, first_of(0.2, 0.01), (60, 60, 5), {}),
    "exponential": (nothing, exponential, (60, 60, 5), {}),
    "exponential in both": (exponential, exponential, (60, 60, 5), {}),
    "Pareto, 40+80": (nothing, pareto, (40, 80, 4), {}),
    "exponential against lognormal, 30+30, 60 columns": (exponential, lognormal, (30, 30, 60), {}),
    "lognormal, robust, t3 rows": (lognormal, nothing, (80, 40, 6), {"robust": "rows"}),
    "Pareto, both sides": (exponential, pareto, (50, 50, 8), {"side": "both"}),
    "exponential, three columns of 10": (nothing, exponential, (50, 50, 10), {"n_columns": 3}),
}
# The same for subjects: how many of each dataset, and the intraclass correlation of their rows.
SUBJECTS: dict[str, tuple[Any, Any, tuple[int, int, float], dict[str, Any]]] = {
    "3 of 12 count, the rest hardly": (nothing, first_of(0.25, 0.02), (12, 12, 0.0), {}),
    "3 of 12 count, the rest hardly, icc .5": (nothing, first_of(0.25, 0.02), (12, 12, 0.5), {}),
    "lognormal by subject, icc .6": (nothing, of_subjects, (12, 12, 0.6), {}),
    "lognormal by subject, a third without, icc .4": (nothing, some_without, (12, 15, 0.4), {}),
    "lognormal by subject, paired, icc .3": (nothing, of_subjects, (12, 12, 0.3), {"paired": True}),
    "first rows count most, icc .3": (nothing, first_rows, (12, 12, 0.3), {}),
    "lognormal by row, 2 to 8 rows, icc .3": (nothing, lognormal, (12, 12, 0.3), {"unequal": True}),
    "first rows count most, 2 to 8 rows, equal subjects": (
        nothing,
        first_rows,
        (12, 12, 0.4),
        {"unequal": True, "subject_weights": "equal"},
    ),
    "lognormal in both, 2 to 8 rows, robust": (
        of_subjects,
        of_subjects,
        (14, 14, 0.3),
        {"unequal": True, "robust": "rows"},
    ),
}


def p_value(data: dict[str, Any], **parameters: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DiscriminativePCA(1, test="permutation", held_out=None, **parameters).fit(**data)
    return float(model.p_values_[0])


def of_rows(rng: Rng, name: str) -> float:
    own, theirs, (n_target, n_background, width), parameters = ROWS[name]
    draw = (lambda shape: rng.standard_t(3, size=shape)) if "t3" in name else (lambda shape: rng.normal(size=shape))
    data = {"X": draw((n_target, width)), "background": draw((n_background, width))}
    data |= {
        "sample_weight": own(rng, np.arange(n_target)),
        "background_sample_weight": theirs(rng, np.arange(n_background)),
    }
    return p_value(data, shrinkage=0.1, **parameters)


def of_subjects_in(rng: Rng, name: str) -> float:
    own, theirs, (n_target, n_background, icc), given = SUBJECTS[name]
    parameters = {key: value for key, value in given.items() if key not in ("paired", "unequal")}
    data: dict[str, Any] = {}
    for number, (n, weigh, key) in enumerate([(n_target, own, "X"), (n_background, theirs, "background")]):
        codes = np.repeat(np.arange(n), rng.integers(2, 9, size=n) if "unequal" in given else 4)
        data[key] = np.sqrt(icc) * rng.normal(size=(n, 3))[codes] + np.sqrt(1 - icc) * rng.normal(size=(len(codes), 3))
        prefix = "" if number == 0 else "background_"
        data[f"{prefix}sample_weight"] = weigh(rng, codes)
        data[f"{prefix}groups"] = codes + (0 if "paired" in given else 100 * number)
    return p_value(data, shrinkage=0.2, **parameters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="datasets of each kind")
    parser.add_argument("--only", default="", help="kinds whose name has these words")
    options = parser.parse_args()
    for title, cases, draw in (("rows", ROWS, of_rows), ("subjects", SUBJECTS, of_subjects_in)):
        print(f"{'p <= 0.05, weights of ' + title:55s}{'share':>8s}")
        for name in cases:
            if options.only in name:
                found = [draw(np.random.default_rng([seed, 21]), name) for seed in range(options.count)]
                print(f"{name:55s}{np.mean(np.array(found) <= LEVEL):8.3f}", flush=True)


if __name__ == "__main__":
    main()
