"""Few columns, smoothing over neighbours, and what both cost.

Factor model: 10 shared factors of variance 100 (1.2 times in the target), factors of the target alone, unit noise.
R² is that of the target's factors on 2,000 new rows.

    python benchmarks/columns.py                 # all parts, about five minutes on one core
    python benchmarks/columns.py --parts cost    # some of them: few, other, chain, digits, cost
    python benchmarks/columns.py --quick         # one dataset each: does the script work?
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from standout import DiscriminativePCA

N_SHARED, N_NEW = 10, 2000


def drawn(rng, n_rows, loadings, variance, n_columns):
    """Draw a target, a background, new rows of the target and their factors."""
    shared = rng.normal(size=(N_SHARED, n_columns))
    shared /= np.linalg.norm(shared, axis=1, keepdims=True)

    def rows(n, is_target):
        size = 10.0 * (1.2**0.5 if is_target else 1.0)
        common = size * rng.normal(size=(n, N_SHARED)) @ shared + rng.normal(size=(n, n_columns))
        factors = np.sqrt(variance) * rng.normal(size=(n, len(loadings)))
        return (common + factors @ loadings if is_target else common), factors

    new, factors = rows(N_NEW, True)
    return rows(n_rows, True)[0], rows(n_rows, False)[0], new, factors


def sparse_loadings(rng, n_columns, support, kind):
    """Give the loadings of two factors: orthonormal on the same columns, or equal in size on columns of their own."""
    loadings = np.zeros((2, n_columns))
    if kind == "same":
        chosen = rng.choice(n_columns, support, replace=False)
        loadings[:, chosen] = np.linalg.qr(rng.normal(size=(support, 2)))[0].T
        return loadings
    for row in loadings:
        row[rng.choice(n_columns, support, replace=False)] = rng.choice([-1.0, 1.0], support) / np.sqrt(support)
    return loadings


def r_squared(model, new, factors):
    """Give the share of the factors' variance that the scores of new rows explain."""
    scores = model.transform(new)
    scores, centred = scores - scores.mean(axis=0), factors - factors.mean(axis=0)
    rest = centred - scores @ np.linalg.lstsq(scores, centred, rcond=None)[0]
    return 1.0 - (rest**2).sum() / (centred**2).sum()


def few(n_seeds, cases, kind, n_columns=500):
    """Compare all columns with the number of columns that folds choose."""
    print(f"\nfew columns, factors on {'the same columns' if kind == 'same' else 'columns of their own'}")
    print("rows, columns, support, variance | R² all | R² auto | columns | recall")
    for n_rows, support, variance in cases:
        found = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            loadings = sparse_loadings(rng, n_columns, support, kind)
            target, background, new, factors = drawn(rng, n_rows, loadings, variance, n_columns)
            whole = DiscriminativePCA(2, held_out=None).fit(target, background=background)
            part = DiscriminativePCA(2, n_columns="auto", held_out=None).fit(target, background=background)
            true = np.flatnonzero(loadings.any(axis=0))
            recall = np.isin(true, part.columns_).mean()
            found.append([r_squared(whole, new, factors), r_squared(part, new, factors), len(part.columns_), recall])
        all_r2, auto_r2, count, recall = np.mean(found, axis=0)
        print(
            f"{n_rows}, {n_columns}, {support}, {variance} | {all_r2:.2f} | {auto_r2:.2f} | {count:.0f} | {recall:.2f}"
        )


def chain(n_seeds, n_rows=60, n_columns=200, variance=9.0):
    """Compare strengths of smoothing for one smooth factor among rough shared ones."""
    print(
        f"\nsmoothing over a chain of {n_columns} columns, {n_rows} rows each, one smooth factor of variance {variance}"
    )
    wave = np.sin(np.pi * np.arange(n_columns) / n_columns)
    loadings = (wave / np.linalg.norm(wave))[None, :]
    settings = {"none": {}, **{f"{g:g}": {"smooth": "chain", "smoothness": g} for g in (1.0, 3.0, 10.0, 30.0, 100.0)}}
    settings["held-out"] = {"smooth": "chain", "smoothness": "held-out"}
    found = {name: [] for name in settings}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        target, background, new, factors = drawn(rng, n_rows, loadings, variance, n_columns)
        for name, given in settings.items():
            model = DiscriminativePCA(1, held_out=None, **given).fit(target, background=background)
            found[name].append(r_squared(model, new, factors))
    print("γ | " + " | ".join(settings))
    print("R² | " + " | ".join(f"{np.mean(values):.2f}" for values in found.values()))


def digits(n_seeds, sizes):
    """Classify digits over photographs by two scores: plain, smoothed over pixels, and on few pixels."""
    folder = Path(os.environ.get("STANDOUT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "mnist.npz").exists():
        print(f"\ndigits over photographs: skipped, as there is no mnist.npz in {folder} (set STANDOUT_DATA)")
        return
    numbers, frogs = np.load(folder / "mnist.npz"), np.load(folder / "cifar10_frogs.npz")["images"]
    settings = {"plain": {}, "γ = 1": {"smooth": (14, 14)}}
    settings["γ held-out"] = {"smooth": (14, 14), "smoothness": "held-out"}
    settings["columns auto"] = {"n_columns": "auto"}
    print("\ndigits 6 and 9 over photographs, 14 x 14 pixels: error of 5 nearest neighbours on two scores of new rows")
    print("rows each | " + " | ".join(settings))

    def small(images):
        return images.astype(float).reshape(len(images), 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(images), 196) / 255

    for n_rows in sizes:
        errors = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            pools = [rng.permutation(np.flatnonzero(numbers["labels"] == digit)) for digit in (6, 9)]
            half, photographs = n_rows // 2, small(frogs[rng.permutation(len(frogs))][:, 2:30, 2:30])
            old, new = (
                np.concatenate([pool[part] for pool in pools]) for part in (slice(half), slice(half, half + 500))
            )
            target = small(numbers["images"][old]) + photographs[:n_rows]
            fresh = small(numbers["images"][new]) + photographs[n_rows : n_rows + 1000]
            background = photographs[n_rows + 1000 : 2 * n_rows + 1000]
            row = []
            for given in settings.values():
                model = DiscriminativePCA(2, **given).fit(target, background=background)
                known = KNeighborsClassifier(5).fit(model.transform(target), numbers["labels"][old])
                row.append(1.0 - known.score(model.transform(fresh), numbers["labels"][new]))
            errors.append(row)
        print(f"{n_rows} | " + " | ".join(f"{error:.2f}" for error in np.mean(errors, axis=0)), flush=True)


def cost(n_turns, shapes):
    """Measure the CPU time of "auto" in units of the fit with held-out ratios; sides take turns."""
    print('\nCPU time, in units of the fit with held-out ratios (bound for "auto": 3)')
    print("rows each, columns | without folds | 10 columns | auto")
    for n_rows, n_columns in shapes:
        rng = np.random.default_rng(0)
        loadings = sparse_loadings(rng, n_columns, 10, "same")
        target, background, _, _ = drawn(rng, n_rows, loadings, 16.0, n_columns)
        sides = [{"held_out": None}, {}, {"n_columns": 10}, {"n_columns": "auto"}]
        seconds = np.full((n_turns, len(sides)), np.inf)
        for turn in range(n_turns):
            for place, given in enumerate(sides):
                start = time.process_time()
                DiscriminativePCA(2, **given).fit(target, background=background)
                seconds[turn, place] = time.process_time() - start
        least = seconds.min(axis=0)
        print(f"{n_rows}, {n_columns} | " + " | ".join(f"{least[k] / least[1]:.2f}" for k in (0, 2, 3)))


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["few", "other", "chain", "digits", "cost"])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    n_seeds = 1 if given.quick else 4
    table = [(1000, 10, 16.0), (300, 10, 6.0), (1000, 10, 3.0), (300, 40, 6.0), (300, 500, 6.0)]
    if "few" in given.parts:
        few(n_seeds, table, "same")
    if "other" in given.parts:
        few(n_seeds, table[:4], "apart")
        few(n_seeds, [(1000, 3, 16.0), (1000, 100, 16.0)], "apart")
        few(n_seeds, [(100, 10, 16.0)], "same", n_columns=1000)
    if "chain" in given.parts:
        chain(1 if given.quick else 6)
    if "digits" in given.parts:
        digits(1 if given.quick else 5, [100] if given.quick else [100, 400, 2000])
    if "cost" in given.parts:
        cost(1 if given.quick else 3, [(2000, 50)] if given.quick else [(20_000, 500), (300, 20_000)])


if __name__ == "__main__":
    main()
