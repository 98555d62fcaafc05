"""Levels and power of the permutation test, errors of "at least k components", and coverage of bootstrap intervals.

Run ``python benchmarks/inference.py level --runs 200``. The tables are "level", "power", "count" and "coverage". Names
of designs, or beginnings of them, choose a few: ``python benchmarks/inference.py level subjects scale``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
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


def two_backgrounds(rng: Rng) -> Made:
    return DiscriminativePCA(1), noise(rng, 60, 20), [noise(rng, 60, 20), noise(rng, 100, 20)], {}


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
            "groups": blocks(600, 25),
            "background_groups": blocks(600, 25),
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
    "columns chosen 60+60 x 12": rows(60, 60, 12, "t5", n_columns="auto"),
    "scale=background 48+24 x 500": rows(48, 24, 500, "white", scale="background"),
    "scale=pooled 48+24 x 500": rows(48, 24, 500, "white", scale="pooled"),
    "scale=background 100+50 x 300": rows(100, 50, 300, "white", scale="background"),
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


def table_of_tests(designs: dict[str, Callable[[Rng], Made]], runs: int, draws: int, seed: int) -> None:
    print(f"{'design':48s} {'p <= .05':>9s} {'p <= .2':>8s} {'draws':>6s} {'ms':>7s}")
    for name, make in designs.items():
        p_values, n_draws, start = [], [], process_time()
        for run in range(runs):
            model, X, Y, more = make(np.random.default_rng([seed, run]))
            test = permutation_test(model.fit(X, background=Y, **more), X, background=Y, n_draws=draws, **more)
            p_values.append(test.p_values[0])
            n_draws.append(test.n_draws[0])
        five, twenty = (np.mean(np.array(p_values) <= level) for level in (LEVEL, 0.2))
        spent = 1e3 * (process_time() - start) / runs
        print(f"{name:48s} {five:9.3f} {twenty:8.3f} {np.mean(n_draws):6.0f} {spent:7.0f}", flush=True)


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


def table_of_counts(names: list[str], runs: int, draws: int, seed: int) -> None:
    print("too many and mean |error| of: the test; ratios whose interval is above 1; parallel analysis")
    print(f"{'design':48s} {'test':>12s} {'held-out':>13s} {'parallel':>13s}")
    for name, (k, make) in COUNTS.items():
        if not chosen(name, names):
            continue
        found = []
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            model, X, Y, more = make(rng)
            model.fit(X, background=Y, **more)
            test = permutation_test(model, X, background=Y, n_draws=draws, **more)
            held_out = int(np.cumprod(model.ratio_interval_[:, 0] > 1.0).sum())
            found.append((test.n_components, held_out, parallel_analysis(X, Y, model.shrinkage_, rng)))
        off = np.array(found) - k
        cells = [f"{np.mean(own > 0):6.3f} {np.abs(own).mean():6.2f}" for own in off.T]
        print(f"{name:48s} {' '.join(cells)}", flush=True)


def table_of_coverage(names: list[str], runs: int, draws: int, seed: int) -> None:
    print(f"{'design':48s} {'ratio':>7s} {'correlations':>13s} {'angle':>6s} {'truth':>6s}")
    for n, d, strength in ((60, 10, 3.0), (200, 10, 2.0), (1000, 10, 2.0), (200, 60, 4.0)):
        if not chosen(f"{n}", names):
            continue
        ratio_hits, hits, angles, truths = [], [], [], []
        f = OWN[0, :d] / np.linalg.norm(OWN[0, :d])
        background = SHARED[:, :d].T @ SHARED[:, :d] + np.eye(d)
        target = background + strength**2 * np.outer(f, f)
        best = np.linalg.solve(background, f)
        truth = target @ best / np.sqrt(np.diag(target) * (best @ target @ best))
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            X, Y = signal(rng, noise(rng, n, d), strength), noise(rng, n, d)
            model = DiscriminativePCA(1).fit(X, background=Y)
            found = bootstrap(model, X, background=Y, n_draws=draws, level=0.9)
            u = model.components_[0]
            along = (u @ target @ u) / (u @ background @ u)
            ratio_hits.append(found.ratio_intervals[0, 0] <= along <= found.ratio_intervals[0, 1])
            own = truth * np.sign(truth @ model.correlations_[0])
            inside = (found.correlation_intervals[0, :, 0] <= own) & (own <= found.correlation_intervals[0, :, 1])
            hits.append(inside.mean())
            angles.append(found.angles[0])
            cosine = abs(u @ target @ best) / np.sqrt((u @ target @ u) * (best @ target @ best))
            truths.append(np.degrees(np.arccos(min(cosine, 1.0))))
        name = f"{n}+{n} x {d}, strength {strength}"
        cells = f"{np.mean(ratio_hits):7.2f} {np.mean(hits):13.2f} {np.mean(angles):6.1f} {np.mean(truths):6.1f}"
        print(f"{name:48s} {cells}", flush=True)


def chosen(name: str, names: list[str]) -> bool:
    return not names or any(name.startswith(part) for part in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("level", "power", "count", "coverage"))
    parser.add_argument("designs", nargs="*")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--draws", type=int, default=99)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.table == "count":
        table_of_counts(given.designs, given.runs, given.draws, given.seed)
    elif given.table == "coverage":
        table_of_coverage(given.designs, given.runs, given.draws, given.seed)
    else:
        designs = NULLS if given.table == "level" else FINDINGS
        some = {name: make for name, make in designs.items() if chosen(name, given.designs)}
        table_of_tests(some, given.runs, given.draws, given.seed)


if __name__ == "__main__":
    main()
