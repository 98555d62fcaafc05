"""Rows that belong together: how often is something found where nothing is, and how often where something is?

    python benchmarks/subjects.py              # all figures of benchmarks/README.md, about 15 minutes
    python benchmarks/subjects.py --count 20   # does the script work?

Every null dataset has a target and a background of the same population. The share of datasets whose first component has
a p-value of at most 0.05 should be 0.05. Figures by rows are those of ``test="auto"`` without subjects.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import standout
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


BLOCKS = {
    "autoregressive .5, 1,000+1,000": (lambda rng: autoregressive(rng, 1000, 0.5), "auto"),
    "autoregressive .9, 2,000+2,000": (lambda rng: autoregressive(rng, 2000, 0.9), "auto"),
    "autoregressive .5, blocks of 25": (lambda rng: autoregressive(rng, 1000, 0.5), 25),
}


def fitted(data: dict[str, Any], **parameters: Any) -> tuple[float, bool]:
    """Give the p-value of the first component, and whether the fit warned of rows that are alike."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = DiscriminativePCA(1, **{"test": "auto", "held_out": None, **parameters}).fit(**data)
    return float(model.p_values_[0]), any("neighbouring rows are alike" in str(one.message) for one in told)


def nulls(count: int, only: str) -> None:
    """Print how often something is found where nothing is, and how often dependent rows are warned of."""
    cases = {name: (make, None) for name, make in NULLS.items()} | BLOCKS
    print(f"{'p <= 0.05 where nothing is':55s}{'by rows':>10s}{'warned':>10s}{'by subjects':>13s}")
    for name, (make, blocks) in cases.items():
        if only not in name:
            continue
        rows, subjects = [], []
        for seed in range(count):
            data = make(np.random.default_rng([seed, 15]))
            rows.append(fitted({"X": data["X"], "background": data["background"]}))
            subjects.append(fitted(data, blocks=blocks)[0])
        by_rows, warned = (np.mean([value <= LEVEL for value, _ in rows]), np.mean([told for _, told in rows]))
        print(f"{name:55s}{by_rows:10.3f}{warned:10.3f}{np.mean(np.array(subjects) <= LEVEL):13.3f}", flush=True)


def mice(count: int) -> None:
    """Split the mice of a class at random, and print how often the halves differ; angles by rows and by mice."""
    folder = Path(os.environ.get("STANDOUT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "mice_protein.csv").exists():
        print("mice: the real datasets are not here; name their folder in STANDOUT_DATA")
        return
    import pandas as pd

    from standout.selection import stability

    table = pd.read_csv(folder / "mice_protein.csv")
    proteins = list(table.columns[1:78])
    table = table[table[proteins].isna().sum(axis=1) < 40].copy()
    table[proteins] = table[proteins].fillna(table[proteins].mean())
    table[proteins] = (table[proteins] - table[proteins].mean()) / table[proteins].std()
    table["mouse"] = table["MouseID"].str.split("_").str[0]
    classes, rng, found = sorted(table["class"].unique()), np.random.default_rng(0), {"rows": [], "mice": []}
    for number in range(count):
        part = table[table["class"] == classes[number % len(classes)]]
        names = rng.permutation(part["mouse"].unique())
        first = part["mouse"].isin(names[: len(names) // 2])
        one, other = part[first], part[~first]
        data = {"X": one[proteins].to_numpy(), "background": other[proteins].to_numpy()}
        subjects = {"groups": one["mouse"], "background_groups": other["mouse"]}
        found["rows"].append(fitted(data)[0])
        found["mice"].append(fitted({**data, **subjects})[0])
    shares = {name: np.mean(np.array(values) <= LEVEL) for name, values in found.items()}
    print(f"{count} random splits of the mice of a class: by rows {shares['rows']:.3f}, by mice {shares['mice']:.3f}")
    one, other = table[table["class"].isin(["t-SC-m", "t-SC-s"])], table[table["class"] == "c-SC-s"]
    rows = one[proteins].to_numpy(), other[proteins].to_numpy()
    angles = [
        stability(*rows, n_components=1, **given).mean_angle[0]
        for given in ({}, {"groups": one["mouse"], "background_groups": other["mouse"]})
    ]
    print("bootstrap angle of component 1 on the mice: by rows {:.0f}°, by mice {:.0f}°".format(*np.degrees(angles)))


def power(count: int) -> None:
    """Print how often a factor of the target alone is found, at twice the edge for the effective number of rows."""
    n_subjects, n_rows, icc, width = 20, 10, 0.3, 20
    effective = n_subjects * n_rows / (1 + (n_rows - 1) * icc)
    share = width / effective
    edge = (1 + np.sqrt(2 * share - share**2)) / (1 - share)
    ps = []
    for seed in range(count):
        rng = np.random.default_rng([seed, 16])
        data = pair(rng, n_subjects, n_rows, icc, width=width)
        scores = np.sqrt(icc) * rng.normal(size=n_subjects)[data["groups"]] + np.sqrt(1 - icc) * rng.normal(size=200)
        direction = np.linalg.cholesky(np.cov(data["background"][0].T))[:, 0]
        data["X"] = data["X"] + np.sqrt(2 * edge - 1) * np.outer(scores, direction)
        ps.append(fitted(data)[0])
    print(f"power at a ratio of {2 * edge:.1f}, twice the edge: {np.mean(np.array(ps) <= LEVEL):.3f}")


def explained(factors: Any, scores: Any) -> float:
    """Give the share of factors that scores explain, on average."""
    centred = scores - scores.mean(axis=0)
    left = factors - factors.mean(axis=0)
    left = left - centred @ np.linalg.lstsq(centred, left, rcond=None)[0]
    return float(np.mean(1 - left.var(axis=0) / factors.var(axis=0)))


def before_after(count: int) -> None:
    """Print how well the change of subjects is found from pairs, and from the same rows without pairs."""
    width, n_shared = 50, 10
    for n in (30, 300):
        found = {"unpaired": [], "differences": []}
        for seed in range(count):
            rng = np.random.default_rng([seed, 17])
            shared, own = (
                rng.normal(size=(n_shared, width)) / np.sqrt(width),
                rng.normal(size=(2, width)) / np.sqrt(width),
            )

            def measured(offsets: Any, change: Any, rng: Any = rng, shared: Any = shared, own: Any = own) -> Any:
                states = 5 * rng.normal(size=(len(offsets), n_shared)) @ shared
                return offsets + states + 4 * change @ own + rng.normal(size=(len(offsets), width))

            def drawn(n: int, rng: Any = rng, shared: Any = shared, measured: Any = measured) -> tuple[Any, ...]:
                offsets = 10 * rng.normal(size=(n, n_shared)) @ shared + 3 * rng.normal(size=(n, width))
                change = rng.normal(size=(n, 2))
                return *(measured(offsets, 0 * change) for _ in range(2)), measured(offsets, change), change

            first, second, after, _ = drawn(n)
            subjects, order = np.tile(np.arange(n), 2), np.repeat([0, 1], n)
            target = standout.differences(np.concatenate([first, after]), subjects, order)
            background = standout.differences(np.concatenate([first, second]), subjects, order)
            new_first, _, new_after, change = drawn(1000)
            model = DiscriminativePCA(2, held_out=None).fit(target, background=background)
            found["differences"].append(explained(change, model.transform(new_after - new_first)))
            model = DiscriminativePCA(2, held_out=None).fit(after, background=np.concatenate([first, second]))
            found["unpaired"].append(explained(change, model.transform(new_after)))
        shown = ", ".join(f"{name} {np.mean(values):.2f}" for name, values in found.items())
        print(f"before and after, {n} subjects, R² of the change: {shown}")


def covariates(count: int) -> None:
    """Print how well a factor is found beside batches whose effect is twice as strong, in the target only."""
    found = {"without": [], "with adjust": []}
    for seed in range(count):
        rng = np.random.default_rng([seed, 18])
        signal, effect = np.linalg.qr(rng.normal(size=(30, 2)))[0].T
        scores, batches = rng.normal(size=500), rng.integers(0, 2, size=500)
        rows = rng.normal(size=(500, 30)) + 4 * np.outer(scores, signal)
        rows += np.sqrt(2) * 4 * np.outer(2.0 * batches - 1, effect)
        background = rng.normal(size=(500, 30))
        new = rng.normal(size=1000)
        clean = 4 * np.outer(new, signal) + rng.normal(size=(1000, 30))
        for name, adjust in (("without", None), ("with adjust", np.array(["A", "B"])[batches])):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = DiscriminativePCA(1, held_out=None).fit(rows, background=background, adjust=adjust)
            found[name].append(explained(new[:, None], model.transform(clean)))
    shown = ", ".join(f"{name} {np.mean(values):.2f}" for name, values in found.items())
    print(f"a factor beside a batch effect of twice its variance, R²: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="datasets of each kind")
    parser.add_argument("--only", default="", help="null data whose names have these words")
    given = parser.parse_args()
    nulls(given.count, given.only)
    if not given.only:
        mice(min(given.count, 60))
        power(given.count)
        before_after(max(given.count // 10, 2))
        covariates(max(given.count // 10, 2))


if __name__ == "__main__":
    main()
