"""Levels and power of the permutation test, errors of "at least k components", and coverage of bootstrap intervals.

Run ``python benchmarks/inference.py level count coverage``, or "power". ``--designs subjects scale`` chooses designs by
the beginnings of their names. Every bound is printed as met or missed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import linalg

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    bootstrap,
    permutation_test,
)

Rng = np.random.Generator
Made = tuple[Any, Any, Any, dict[str, Any]]
LEVEL = 0.05


def noise(rng: Rng, n: int, d: int, kind: str = "gaussian") -> Any:
    """Rows with three shared factors and noise of one kind; "white" is noise alone."""
    if kind == "white":
        return rng.normal(size=(n, d))
    scores = rng.normal(size=(n, 3))
    own = {
        "gaussian": lambda: rng.normal(size=(n, d)),
        "t5": lambda: rng.standard_t(5, size=(n, d)) * np.sqrt(0.6),
        "elliptical": lambda: rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(5, size=(n, 1)) / 5),
        "lognormal": lambda: rng.lognormal(size=(n, d)) / 2.16,
    }[kind]()
    return scores @ SHARED[:, :d] + own


SHARED = np.random.default_rng(1).normal(size=(3, 1000))
OWN = np.random.default_rng(2).normal(size=(8, 1000))


def signal(rng: Rng, X: Any, strength: float, k: int = 1) -> Any:
    """Add factors that only the target has; the strength is the length of each."""
    for number in range(k):
        f = OWN[number, : X.shape[1]]
        X = X + strength * rng.normal(size=(len(X), 1)) * f / np.linalg.norm(f)
    return X


def rows(
    n: int,
    m: int,
    d: int,
    kind: str = "gaussian",
    strength: float = 0.0,
    estimator: Any = DiscriminativePCA,
    shift: float = 3.0,
    **options: Any,
) -> Callable[[Rng], Made]:
    def make(rng: Rng) -> Made:
        X = signal(rng, noise(rng, n, d, kind), strength) + shift
        return estimator(1, **options), X, noise(rng, m, d, kind), {}

    return make


def counts(rng: Rng) -> Made:
    X, Y = (rng.poisson(np.exp(0.5 * noise(rng, n, 20)).clip(0, 50)) for n in (80, 120))
    return DiscriminativePCA(1), X.astype(float), Y.astype(float), {}


def two_backgrounds(rng: Rng, **options: Any) -> Made:
    return DiscriminativePCA(1, **options), noise(rng, 60, 20), [noise(rng, 60, 20), noise(rng, 100, 20)], {}


def weighted(rng: Rng) -> Made:
    X, Y = noise(rng, 80, 15, "t5"), noise(rng, 80, 15, "t5")
    weights = {"sample_weight": rng.exponential(size=80) + 0.1, "background_sample_weight": np.ones(80)}
    return DiscriminativePCA(1), X, Y, weights


def time_blocks(rng: Rng) -> Made:
    from standout import blocks

    def series(n: int) -> Any:
        e = rng.normal(size=(n, 10))
        for i in range(1, n):
            e[i] += 0.5 * e[i - 1]
        return e

    return (
        DiscriminativePCA(1),
        series(600),
        series(600),
        {
            "groups": blocks(600, 25, "x"),
            "background_groups": blocks(600, 25, "y"),
        },
    )


def subjects(
    sizes: tuple[Any, Any], n: tuple[int, int], icc: float, d: int, strength: float = 0.0, **options: Any
) -> Callable[[Rng], Made]:
    """Subjects whose rows have a common part; sizes are rows per subject, or "lognormal"."""

    def make(rng: Rng) -> Made:
        data, codes = [], []
        for number, (size, count) in enumerate(zip(sizes, n, strict=True)):
            each = [
                max(2, int(50 * rng.lognormal(sigma=0.8))) if size == "lognormal" else int(size) for _ in range(count)
            ]
            own = []
            for rows_of_one in each:
                x = np.sqrt(icc) * rng.normal(size=d) + np.sqrt(1.0 - icc) * rng.normal(size=(rows_of_one, d))
                if number == 0 and strength:
                    f = OWN[0, :d] / np.linalg.norm(OWN[0, :d])
                    common, each_row = np.sqrt(icc) * rng.normal(), np.sqrt(1.0 - icc) * rng.normal(size=rows_of_one)
                    x = x + strength * (common + each_row)[:, None] * f
                own.append(x)
            data.append(np.concatenate(own))
            codes.append(np.repeat(np.arange(count) + 1000 * number, each))
        return DiscriminativePCA(1, **options), data[0], data[1], {"groups": codes[0], "background_groups": codes[1]}

    return make


def paired(n: int, d: int, strength: float = 0.0) -> Callable[[Rng], Made]:
    """Subjects that are in both datasets, each with a part of its own in each of them."""

    def make(rng: Rng) -> Made:
        own = rng.normal(size=(n, 1, d))
        X, Y = (0.6 * own + 0.4 * rng.normal(size=(n, 1, d)) + 0.7 * rng.normal(size=(n, 10, d)) for _ in range(2))
        f = OWN[0, :d] / np.linalg.norm(OWN[0, :d])
        X = X + strength * (0.6 * rng.normal(size=(n, 1, 1)) + 0.8 * rng.normal(size=(n, 10, 1))) * f
        codes = np.repeat(np.arange(n), 10)
        return DiscriminativePCA(1), X.reshape(-1, d), Y.reshape(-1, d), {"groups": codes, "background_groups": codes}

    return make


NULLS: dict[str, Callable[[Rng], Made]] = {
    "gaussian 60+60 x 20": rows(60, 60, 20),
    "t5 60+60 x 20": rows(60, 60, 20, "t5"),
    "elliptical t5 100+100 x 20": rows(100, 100, 20, "elliptical"),
    "lognormal 100+60 x 20": rows(100, 60, 20, "lognormal"),
    "counts 80+120 x 20": counts,
    "wide 40+40 x 100": rows(40, 40, 100),
    "two backgrounds 60+60+100 x 20": two_backgrounds,
    "unequal 50+5000 x 10": rows(50, 5000, 10),
    "blocks of rows 3000+3000 x 10": rows(3000, 3000, 10, "t5"),
    "weights 80+80 x 15": weighted,
    "robust 100+100 x 10, t5": rows(100, 100, 10, "t5", robust="rows"),
    "center=background 60+60 x 20": lambda rng: (
        DiscriminativePCA(1, center="background"),
        noise(rng, 60, 20),
        noise(rng, 60, 20),
        {},
    ),
    "given shrinkage 60+60 x 20": rows(60, 60, 20, "lognormal", shrinkage=0.1),
    "contrastive 60+60 x 20": rows(60, 60, 20, "t5", estimator=ContrastivePCA),
    "kernel 50+50 x 5": rows(50, 50, 5, "t5", estimator=KernelDiscriminativePCA, shift=0.0),
    "kernel contrastive 50+50 x 5": rows(50, 50, 5, "t5", estimator=KernelContrastivePCA, shift=0.0),
    "columns chosen 40+40 x 8": rows(40, 40, 8, "t5", n_columns="auto"),
    "shrinkage=ledoit-wolf 60+60 x 20": rows(60, 60, 20, "t5", shrinkage="ledoit-wolf"),
    "background_weights=joint 60+60+100 x 20": lambda rng: two_backgrounds(rng, background_weights="joint"),
    "background_weights=spectral 60+60+100 x 20": lambda rng: two_backgrounds(rng, background_weights="spectral"),
    "scale=background 48+24 x 500": rows(48, 24, 500, "white", scale="background"),
    "scale=pooled 48+24 x 500": rows(48, 24, 500, "white", scale="pooled"),
    "scale=background 100+50 x 300": rows(100, 50, 300, "white", scale="background"),
    "scale=pooled 100+50 x 300": rows(100, 50, 300, "white", scale="pooled"),
    "scale=background 24+24 x 500": rows(24, 24, 500, "white", scale="background"),
    "scale=background, factors, 48+24 x 500": rows(48, 24, 500, scale="background"),
    "scale=pooled 24+24 x 500": rows(24, 24, 500, "white", scale="pooled"),
    "time, blocks of 25, 600+600 x 10": time_blocks,
    "paired subjects 12 x 10+10, x 10": paired(12, 10),
    "paired subjects 6 x 10+10, x 40": paired(6, 40),
    "subjects 5+5 x 50, icc .3": subjects((50, 50), (5, 5), 0.3, 10),
    "subjects 18+18 x 15, icc .6": subjects((15, 15), (18, 18), 0.6, 10),
    **{
        f"subjects 6+6, rows {a}/{b}, icc {icc}, x {d}": subjects((a, b), (6, 6), icc, d)
        for a, b in ((20, 100), (40, 60), (30, 60), (200, 400), (10, 200), (100, 20), ("lognormal", "lognormal"))
        for icc, d in ((0.0, 10), (0.2, 10), (0.6, 40))
    },
}
FINDINGS: dict[str, Callable[[Rng], Made]] = {
    "gaussian 150+150 x 60, 2.0": rows(150, 150, 60, strength=2.0),
    "gaussian 150+150 x 60, 1.3": rows(150, 150, 60, strength=1.3),
    "t5 200+200 x 20, 1.2": rows(200, 200, 20, "t5", strength=1.2),
    "wide 40+40 x 100, 4": rows(40, 40, 100, strength=4.0),
    "wide, scale=pooled, 40+40 x 100, 4": rows(40, 40, 100, strength=4.0, scale="pooled"),
    "contrastive 60+60 x 20, 3": rows(60, 60, 20, strength=3.0, estimator=ContrastivePCA),
    "blocks of rows 3000+3000 x 20, .35": rows(3000, 3000, 20, strength=0.35),
    "subjects 8+8, rows 20/100, icc .3, 1.5": subjects((20, 100), (8, 8), 0.3, 20, 1.5),
    "subjects 8+8, rows 50/50, icc .3, 1.5": subjects((50, 50), (8, 8), 0.3, 20, 1.5),
    "subjects 8+8, rows lognormal, icc .3, 1.5": subjects(("lognormal", "lognormal"), (8, 8), 0.3, 20, 1.5),
    "paired subjects 12 x 10+10, x 10, 1": paired(12, 10, 1.0),
    "subjects 5+5, rows 50/50, icc .3, 2": subjects((50, 50), (5, 5), 0.3, 10, 2.0),
}


def counted(k: int, n: int, d: int, kind: str, strength: float, groups: int = 0) -> Callable[[Rng], Made]:
    def make(rng: Rng) -> Made:
        if groups:
            _, X, Y, more = subjects((n // groups, n // groups), (groups, groups), 0.2, d)(rng)
            own = np.repeat(rng.normal(size=(groups, k)), n // groups, axis=0)
            scores = np.sqrt(0.3) * own + np.sqrt(0.7) * rng.normal(size=(len(X), k))
            f = OWN[:k, :d] / np.linalg.norm(OWN[:k, :d], axis=1, keepdims=True)
            return DiscriminativePCA(6), X + strength * scores @ f, Y, more
        return DiscriminativePCA(6), signal(rng, noise(rng, n, d, kind), strength, k), noise(rng, n, d, kind), {}

    return make


COUNTS: dict[str, tuple[int, Callable[[Rng], Made]]] = {
    f"k={k}, {name}": (k, counted(k, n, d, kind, strength, groups))
    for name, n, d, kind, strength, groups in (
        ("gaussian 200+200 x 20", 200, 20, "gaussian", 3.0, 0),
        ("gaussian 100+100 x 60", 100, 60, "gaussian", 5.0, 0),
        ("weak, gaussian 200+200 x 20", 200, 20, "gaussian", 1.5, 0),
        ("elliptical t5 200+200 x 20", 200, 20, "elliptical", 4.0, 0),
        ("lognormal 200+200 x 20", 200, 20, "lognormal", 4.0, 0),
        ("subjects 16+16 x 20", 320, 15, "gaussian", 3.0, 16),
    )
    for k in (0, 1, 3)
}


def tested(make: Callable[[Rng], Made], rng: Rng, draws: int) -> list[float]:
    """Return the p-value of the first component."""
    model, X, Y, more = make(rng)
    model.fit(X, background=Y, **more)
    return [float(permutation_test(model, X, background=Y, n_draws=draws, n_components=1, **more).p_values[0])]


def parallel_analysis(X: Any, Y: Any, shrinkage: float, rng: Rng, repeats: int = 20) -> int:
    """Count the ratios above the largest that Gaussian noise of the same size has in 19 of 20 cases."""

    def ratios(A: Any, B: Any) -> Any:
        B = (1.0 - shrinkage) * B + shrinkage * np.trace(B) / len(B) * np.eye(len(B))
        return linalg.eigvalsh(A, B)[::-1]

    d = X.shape[1]
    chance = []
    for _ in range(repeats):
        made = [np.cov(rng.normal(size=(len(rows), d)).T) for rows in (X, Y)]
        chance.append(ratios(*made))
    edge = np.quantile(chance, 0.95, axis=0)
    return int(np.cumprod(ratios(np.cov(X.T), np.cov(Y.T)) > edge).sum())


def counted_by_three(make: Callable[[Rng], Made], rng: Rng, draws: int) -> list[float]:
    """Return the number of components by the test, by intervals of ratios above 1, and by parallel analysis."""
    model, X, Y, more = make(rng)
    model.fit(X, background=Y, **more)
    test = permutation_test(model, X, background=Y, n_draws=draws, **more)
    held_out = int(np.cumprod(model.ratio_interval_[:, 0] > 1.0).sum())
    return [test.n_components, held_out, parallel_analysis(X, Y, model.shrinkage_, rng)]


def covered(n: int, d: int, strength: float) -> Callable[[Rng, int], list[float]]:
    """Return whether 90 % intervals contain the truth: of the ratio, and the share of correlations.

    The truth of correlations is that of the covariances with the shrinkage of the fit, and last that without shrinkage.
    """
    f = OWN[0, :d] / np.linalg.norm(OWN[0, :d])
    background = SHARED[:, :d].T @ SHARED[:, :d] + np.eye(d)
    target = background + strength**2 * np.outer(f, f)

    def truth(shrinkage: float) -> Any:
        shrunken = (1.0 - shrinkage) * background + shrinkage * np.trace(background) / d * np.eye(d)
        best = linalg.eigh(target, shrunken)[1][:, -1]
        return target @ best / np.sqrt(np.diag(target) * (best @ target @ best))

    def run(rng: Rng, draws: int) -> list[float]:
        X, Y = signal(rng, noise(rng, n, d), strength), noise(rng, n, d)
        model = DiscriminativePCA(1).fit(X, background=Y)
        found = bootstrap(model, X, background=Y, n_draws=draws, level=0.9)
        u = model.components_[0]
        along = (u @ target @ u) / (u @ background @ u)
        shares = [float(found.ratio_intervals[0, 0] <= along <= found.ratio_intervals[0, 1])]
        lower, upper = found.correlation_intervals[0].T
        for shrinkage in (model.shrinkage_, 0.0):
            own = truth(shrinkage) * np.sign(truth(shrinkage) @ model.correlations_[0])
            shares.append(float(np.mean((lower <= own) & (own <= upper))))
        return shares

    return run


COVERAGE = {
    f"{n}+{n} x {d}, strength {strength:g}": covered(n, d, strength)
    for n, d, strength in ((60, 10, 3.0), (200, 10, 2.0), (1000, 10, 2.0), (200, 60, 4.0))
}


def verdict(met: bool, runs: int) -> str:
    """Judge a share; of fewer than 100 runs it is too uncertain."""
    return "too few runs" if runs < 100 else "met" if met else "MISSED"


def shown_test(found: Any, power: bool) -> str:
    shares = [np.mean(found[:, 0] <= level) for level in (LEVEL, 0.2)]
    return f"{shares[0]:.3f} | {shares[1]:.3f}" + (
        "" if power else f" | {verdict(0.02 <= shares[0] <= 0.08, len(found))}"
    )


def shown_count(found: Any, k: int) -> str:
    off = found - k
    cells = [f"{np.mean(own > 0):.3f} | {np.abs(own).mean():.2f}" for own in off.T]
    return f"{' | '.join(cells)} | {verdict(np.mean(off[:, 0] > 0) <= 0.07, len(found))}"


def shown_coverage(found: Any) -> str:
    shares = found.mean(axis=0)
    cells = " | ".join(f"{share:.2f}" for share in shares)
    return f"{cells} | {verdict(all(0.8 <= share <= 0.97 for share in shares[:2]), len(found))}"


# Header, draws of a run, and for each design one run and the cells of its row.
Design = tuple[Callable[[Rng, int], list[float]], Callable[[Any], str]]
Table = tuple[str, int, dict[str, Design]]
TABLES: dict[str, Table] = {
    "level": (
        "p <= .05 | p <= .2 | .02 to .08",
        39,
        {name: (partial(tested, make), partial(shown_test, power=False)) for name, make in NULLS.items()},
    ),
    "power": (
        "p <= .05 | p <= .2",
        99,
        {name: (partial(tested, make), partial(shown_test, power=True)) for name, make in FINDINGS.items()},
    ),
    "count": (
        "test: too many | error | held-out: too many | error | parallel: too many | error | test <= .07",
        39,
        {name: (partial(counted_by_three, make), partial(shown_count, k=k)) for name, (k, make) in COUNTS.items()},
    ),
    "coverage": (
        "ratio | correlations | unshrunken correlations | first two .80 to .97",
        100,
        {name: (run, shown_coverage) for name, run in COVERAGE.items()},
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", choices=list(TABLES))
    parser.add_argument("--designs", nargs="*", default=[""])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", help="write the tables there after every tenth of the runs")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[tuple[str, str], list[list[float]]] = {}
    for runs in np.array_split(np.arange(given.runs), 10):
        for table in given.tables:
            _, draws, designs = TABLES[table]
            for name, (run, _) in designs.items():
                if name.startswith(tuple(given.designs)):
                    own = [run(np.random.default_rng([given.seed, one]), given.draws or draws) for one in runs.tolist()]
                    found.setdefault((table, name), []).extend(own)
        if given.file:
            Path(given.file).write_text(written(found, process_time()))
    print(written(found, process_time()))


def written(found: dict[tuple[str, str], list[list[float]]], seconds: float) -> str:
    """Return the tables of all runs up to now, in Markdown."""
    lines: list[str] = []
    for table, (header, draws, designs) in TABLES.items():
        rows = {name: every for (own, name), every in found.items() if own == table}
        if rows:
            lines += ["", f"| {table}, up to {draws} draws | runs | {header} |", "|" + "---|" * (3 + header.count("|"))]
        lines += [f"| {name} | {len(every)} | {designs[name][1](np.array(every))} |" for name, every in rows.items()]
    return "\n".join([*lines, "", f"{seconds:.0f} s of CPU time."])


if __name__ == "__main__":
    main()
