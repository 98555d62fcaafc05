"""Rows that belong together: how often is something found where nothing is, and how often where something is?

    python benchmarks/subjects.py              # all figures of benchmarks/README.md, about 15 minutes
    python benchmarks/subjects.py --count 20   # does the script work?

Every null dataset has a target and a background of the same population. The share of datasets whose first component has
a p-value of at most 0.05 should be 0.05. Figures by rows are those of ``test="auto"`` without subjects.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from standout import DiscriminativePCA

LEVEL = 0.05
Rng = np.random.Generator


def subjects_of(rng: Rng, n: int, rows: Any, icc: float, width: int, draw: Any, offsets: Any = None) -> tuple[Any, Any]:
    """Draw subjects with offsets of their own: rows, and the number of each row's subject."""
    counts = np.full(n, rows) if np.isscalar(rows) else rows(rng, n)
    offsets = draw(rng, (n, width)) if offsets is None else offsets
    codes = np.repeat(np.arange(n), counts)
    return np.sqrt(icc) * offsets[codes] + np.sqrt(1 - icc) * rng.normal(size=(len(codes), width)), codes


def normal(rng: Rng, shape: tuple[int, int]) -> Any:
    return rng.normal(size=shape)


def student(rng: Rng, shape: tuple[int, int]) -> Any:
    """Draw offsets with heavy tails: whole subjects are far off."""
    return rng.normal(size=shape) / np.sqrt(rng.chisquare(4, size=(shape[0], 1)) / 4)


def lognormal(rng: Rng, shape: tuple[int, int]) -> Any:
    return (np.exp(rng.normal(size=shape) * 0.8) - np.exp(0.32)) / np.exp(0.4)


def unequal(rng: Rng, n: int) -> Any:
    return rng.integers(2, 60, size=n)


def pair(
    rng: Rng,
    n: int,
    rows: Any,
    icc: float,
    *,
    width: int = 20,
    against: int | None = None,
    draw: Any = normal,
    n_backgrounds: int = 1,
    shift: float = 0.0,
) -> dict[str, Any]:
    """Make a target and backgrounds of one population, in coordinates that are mixed at random."""
    mixing = rng.normal(size=(width, width)) / np.sqrt(width) + np.eye(width)
    parts = []
    for number in range(1 + n_backgrounds):
        found, codes = subjects_of(rng, n if number == 0 or against is None else against, rows, icc, width, draw)
        parts.append(((found + shift * (number == 0)) @ mixing, codes + 1000 * number))
    (target, groups), *others = parts
    return {
        "X": target,
        "background": [rows for rows, _ in others],
        "groups": groups,
        "background_groups": [codes for _, codes in others],
    }


def paired(rng: Rng, n: int, rows: int, icc: float, *, width: int = 20) -> dict[str, Any]:
    """Make subjects that are in both datasets."""
    offsets = rng.normal(size=(n, width))
    (X, groups), (Y, _) = (subjects_of(rng, n, rows, icc, width, normal, offsets) for _ in range(2))
    return {"X": X, "background": [Y], "groups": groups, "background_groups": [groups]}


def autoregressive(rng: Rng, n: int, memory: float, *, width: int = 20) -> dict[str, Any]:
    """Make rows each of which remembers the one before it."""
    from scipy.signal import lfilter

    X, Y = (
        lfilter([np.sqrt(1 - memory**2)], [1, -memory], rng.normal(size=(n + 200, width)), axis=0)[200:]
        for _ in range(2)
    )
    return {"X": X, "background": [Y], "groups": None, "background_groups": None}


NULLS = {
    "independent rows, 200+200": lambda rng: pair(rng, 200, 1, 0.0),
    "18+18 x 15, icc .6": lambda rng: pair(rng, 18, 15, 0.6),
    "20+20 x 10, icc .2": lambda rng: pair(rng, 20, 10, 0.2),
    "5+5 x 300, icc .05": lambda rng: pair(rng, 5, 300, 0.05),
    "5+5 x 20, icc .5": lambda rng: pair(rng, 5, 20, 0.5),
    "12+12, 2 to 60 rows, icc .4": lambda rng: pair(rng, 12, unequal, 0.4),
    "15+15 x 10, icc .5, t4 offsets": lambda rng: pair(rng, 15, 10, 0.5, draw=student),
    "15+15 x 10, icc .5, lognormal offsets, means differ": lambda rng: pair(
        rng, 15, 10, 0.5, draw=lognormal, shift=1.0
    ),
    "8 against 25 x 8, icc .5": lambda rng: pair(rng, 8, 8, 0.5, against=25),
    "two backgrounds, 10 x 10, icc .4": lambda rng: pair(rng, 10, 10, 0.4, n_backgrounds=2),
    "12+12 x 4, icc .4, 150 columns": lambda rng: pair(rng, 12, 4, 0.4, width=150),
    "20 in both x 6, icc .5": lambda rng: paired(rng, 20, 6, 0.5),
}


def p_value(data: dict[str, Any], **parameters: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DiscriminativePCA(1, **{"test": "auto", "held_out": None, **parameters}).fit(**data)
    return float(model.p_values_[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    for name, make in NULLS.items():
        if given.only not in name:
            continue
        found = {"rows": [], "subjects": []}
        for seed in range(given.count):
            data = make(np.random.default_rng([seed, 15]))
            by_rows = {"X": data["X"], "background": data["background"]}
            if seed < 50:
                found["rows"].append(p_value(by_rows))
            found["subjects"].append(p_value(data, test="permutation"))
        print(f"{name:55s}", *(f"{key} {np.mean(np.array(ps) <= LEVEL):.3f}" for key, ps in found.items()), flush=True)


if __name__ == "__main__":
    main()
