"""A screen of many labels beside an energy-distance test, on real and simulated data.

Run ``python -m benchmarks.screen [eccite] [kang] [null] [energy] [large]``; without words, all parts run. The two real
datasets are read from the folder STANDOUT_DATA, or from ../shared/data.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import false_discovery_control, kstest
from sklearn.metrics import roc_auc_score

from standout.screening import screen

DATA = Path(os.environ.get("STANDOUT_DATA", "../shared/data"))
KNOWN = ("STAT1", "JAK2", "IFNGR1", "IFNGR2", "IRF1", "SMAD4")
INTERFERON = {"ISG15", "IFIT1", "IFIT2", "IFIT3", "IFI6", "MX1", "LY6E"}


def expression(name):
    """Return counts as logarithms of shares, and the annotation of the cells."""
    import anndata
    import pandas as pd

    data = anndata.read_h5ad(DATA / name)
    counts = data.X.toarray().astype(float)
    totals = counts.sum(1)
    rows = np.log1p(counts * (np.median(totals) / np.maximum(totals, 1))[:, None])
    return pd.DataFrame(rows, columns=list(data.var_names)), data.obs.astype(str)


def eccite():
    rows, cells = expression("eccite_seq.h5ad")
    for groups in (None, cells["grna"]):
        table = screen(rows, cells["target"], control="non-targeting", groups=groups).table
        first = list(table.index[:8])
        print(f"ECCITE-seq, groups={'guides' if groups is not None else None}: first eight {first}")
        print(f"  known ones among them: {sum(name in first for name in KNOWN)} of {len(KNOWN)}")
        few = table.loc[["MYC", "SPI1"], ["rows", "shift", "q_value", "verdict"]]
        print("  " + few.to_string().replace("\n", "\n  "))
    control = (cells["target"] == "non-targeting").to_numpy()
    guides = cells["grna"][control].to_numpy()
    for name, groups in (("all cells", None), ("within replicates", cells["bio_rep"][control])):
        p = [_p_value(rows[control], guides == guide, groups) for guide in np.unique(guides)]
        print(f"  non-targeting guides at q < .05, {name}: {(false_discovery_control(p) < 0.05).sum()} of {len(p)}")


def _p_value(rows, chosen, groups):
    return screen(rows, chosen, control=False, groups=groups).table["p_value"].iloc[0]


def kang():
    rows, cells = expression("kang_ifnb.h5ad")
    for kind in np.unique(cells["cluster_id"]):
        chosen = (cells["cluster_id"] == kind).to_numpy()
        row = screen(rows[chosen], cells["group_id"][chosen], control="ctrl").table.iloc[0]
        parts = f"shift {row['shift']:.1f}, spread {row['spread']:.1f}, q {row['q_value']:.1g}"
        print(f"{kind}: {parts}, {row['shift_columns']}")


def simulated(kind, n_rows, n_columns, rng):
    factors = rng.standard_normal((n_rows, 5)) * np.array([1, 0.75, 0.5, 0.5, 0.35])
    mixed = factors @ np.random.default_rng(1).standard_normal((5, n_columns))
    noise = rng.standard_normal((n_rows, n_columns))
    if kind == "counts":
        return np.log1p(rng.poisson(np.exp(0.5 * mixed + np.linspace(-2, 2, n_columns))))
    if kind == "lognormal":
        return np.exp(0.7 * (0.5 * mixed + noise))
    return (mixed + noise) / (np.sqrt(rng.chisquare(5, (n_rows, 1)) / 5) if kind == "t5" else 1)


def null(n_screens=60):
    shapes = {"tall": (600, 30, [20, 20, 100, 100, 300, 300]), "wide": (200, 150, [20, 20, 20, 100, 100, 100])}
    shapes["large"] = (2000, 30, [500, 500, 2000, 2000])
    print("kind, shape: share of screens with any q < .05; p < .05; p < .01; KS p by size")
    for kind in ("Gaussian", "t5", "counts", "lognormal"):
        for shape, (n_controls, n_columns, sizes) in shapes.items():
            p, rows, wrong = [], [], 0
            for number in range(n_screens):
                rng = np.random.default_rng([number, n_columns])
                labels = np.repeat(np.arange(len(sizes) + 1), [n_controls, *sizes])
                data = simulated(kind, len(labels), n_columns, rng)
                table = screen(data, labels, control=0, n_draws=200, random_state=number).table
                p, rows = [*p, *table["p_value"]], [*rows, *table["rows"]]
                wrong += (table["q_value"] < 0.05).any()
            p, rows = np.array(p), np.array(rows)
            fits = ", ".join(f"{size}: {kstest(p[rows == size], 'uniform').pvalue:.2f}" for size in np.unique(rows))
            print(f"{kind}, {shape}: {wrong / n_screens:.3f}; {np.mean(p < 0.05):.3f}; {np.mean(p < 0.01):.3f}; {fits}")


def energy_test(target, control, strata, rng, n_draws=1000):
    """Return the energy distance in null standard deviations, from permutations within strata."""
    rows = np.concatenate([target, control])
    squares = (rows**2).sum(1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))
    n, m = len(target), len(control)
    chosen = np.zeros((n + m, n_draws + 1))
    chosen[:n] = 1
    for stratum in np.unique(strata):
        places = np.flatnonzero(strata == stratum)
        chosen[places, 1:] = rng.permuted(chosen[places, 1:], axis=0)
    product = distances @ chosen
    inside, total = (chosen * product).sum(0), product.sum(0)
    across, rest = total - inside, distances.sum() - 2 * total + inside
    values = 2 * across / (n * m) - inside / n**2 - rest / m**2
    return (values[0] - values[1:].mean()) / values[1:].std()


def energy(n_splits=4):
    frame, cells = expression("eccite_seq.h5ad")
    rows, names, replicates = frame.to_numpy(), cells["target"].to_numpy(), cells["bio_rep"].to_numpy()
    print(f"ECCITE-seq labels in halves beside as many sets of control cells, mean of {n_splits} random splits")
    for how, groups in (("all cells", None), ("within replicates", replicates)):
        found = [_beside_energy(rows, names, groups, np.random.default_rng(split)) for split in range(n_splits)]
        for name, part in zip(("screen", "energy distance, 1,000 permutations"), np.mean(found, axis=0), strict=True):
            aucs = f"AUC of 25 knock-outs {part[0]:.3f}, of 8 known to act {part[1]:.3f}"
            print(f"  {how}, {name}: {aucs}; {part[2]:.1f} CPU s")
        print(f"  {how}, AUC of 25 by split: {np.array(found)[:, :, 0].round(3).tolist()}")


def _beside_energy(rows, names, groups, rng):
    """Return AUC of all knock-outs, AUC of those known to act and CPU seconds, of the screen and of the other test."""
    control = rng.permutation(np.flatnonzero(names == "non-targeting"))
    held, control = control[: len(control) // 2], control[len(control) // 2 :]
    parts = {}
    for name in np.unique(names[names != "non-targeting"]):
        numbers = rng.permutation(np.flatnonzero(names == name))
        for half, some in enumerate(np.array_split(numbers, 2)):
            parts[f"{name} {half}"] = some
            parts[f"null {name} {half}"] = rng.choice(held, len(some), replace=False)
    truth = np.array([not name.startswith("null") for name in parts])
    known = np.array([name.split()[0] in (*KNOWN, "BRD4", "CUL3", "null") for name in parts])
    labels = np.repeat(["control", *parts], [len(control), *map(len, parts.values())])
    every = np.concatenate([control, *parts.values()])
    start = time.process_time()
    table = screen(rows[every], labels, control="control", groups=None if groups is None else groups[every]).table
    scores = -table.loc[list(parts), "p_value"].to_numpy()
    between = time.process_time()
    strata = np.zeros(len(names), dtype=int) if groups is None else groups
    others = [
        energy_test(rows[some], rows[control], strata[np.concatenate([some, control])], rng) for some in parts.values()
    ]
    end = time.process_time()
    return [
        (roc_auc_score(truth, values), roc_auc_score(truth[known], values[known]), seconds)
        for values, seconds in ((scores, between - start), (np.array(others), end - between))
    ]


def large():
    for n_labels in (1250, 5000):
        rng = np.random.default_rng(0)
        data = rng.standard_normal(((n_labels + 20) * 100, 300), dtype=np.float32)
        labels = np.concatenate([np.zeros(2000, dtype=int), 1 + np.arange(n_labels * 100) // 100])
        start, cpu = time.perf_counter(), time.process_time()
        table = screen(data, labels, control=0).table
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        spent = f"{time.perf_counter() - start:.0f} s, {time.process_time() - cpu:.0f} CPU s"
        wrong = (table["q_value"] < 0.05).sum()
        print(f"{n_labels} labels x 100 rows x 300 columns: {spent}, peak {peak:.2f} GB, {wrong} stand out")


if __name__ == "__main__":
    parts = {one.__name__: one for one in (eccite, kang, null, energy, large)}
    for name in sys.argv[1:] or parts:
        parts[name]()
