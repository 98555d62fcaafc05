"""Fits on random mixtures of sizes, placeholders, repeated and constant columns, orders and types, against mpmath.

Each case draws two datasets, an estimator and a way in (memory, batches, files of each format, Dask, torch). The answer
must be right to 1e-6, or there is a warning, or the data are refused with an error of this library.

``python tests/any_numbers.py --cases 2000`` runs many cases and prints a table; the tests run a few.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

PLACEHOLDERS = (-999.0, -9999.0, -99999.0, -999999999.0, 1e10, 1e15, 1e20, -1e34, 9.96921e36)
TOLERANCE = 1e-6
# Single-precision data are multiplied in single precision as long as half of its digits are left.
SINGLE_TOLERANCE = 1e-3
DIGITS = 1400


@dataclass
class Case:
    """What is fitted, and how."""

    seed: int
    X: Any
    Y: Any
    estimator: str
    path: str
    options: dict[str, Any]
    story: list[str] = field(default_factory=list)


# --- drawing --------------------------------------------------------------------------------------------------------


def draw(seed: int, path: str | None = None) -> Case:
    """Draw a case; the same seed gives the same one."""
    rng = np.random.default_rng(seed)
    story: list[str] = []

    def chosen(name: str, *choices: Any, p: Any = None) -> Any:
        choice = choices[rng.choice(len(choices), p=p)]
        story.append(f"{name}={choice}")
        return choice

    path = path or PATHS[int(rng.integers(len(PATHS)))]
    estimator = chosen("estimator", "dpca", "pca", "cpca", "kdpca", p=[0.55, 0.2, 0.15, 0.1])
    wide = chosen("wide", False, True, p=[0.85, 0.15])
    n_features = int(rng.integers(5, 9)) if wide else int(rng.integers(1, 6))
    n_rows = int(rng.integers(2, 4)) if wide else int(rng.integers(n_features + 3, 40))
    parts = []
    mixing = rng.normal(size=(n_features, n_features))
    sizes = _sizes(chosen("sizes", "one", "mild", "wild", "common", p=[0.4, 0.25, 0.15, 0.2]), n_features, rng)
    offset = chosen("offset", 0.0, 3.0, 1e4, 1e8, 1e12, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    if estimator == "kdpca":
        # The entries of a linear kernel are squares, and its ridge has no units: only data of usual size are tried.
        sizes, offset = np.ones(n_features), min(offset, 3.0)
    apart = chosen("apart", 1.0, 1e3, 1e-20, 1e60, p=[0.8, 0.1, 0.05, 0.05])
    for number in range(2):
        rows = rng.normal(size=(n_rows + number, n_features)) * rng.uniform(0.5, 4.0, size=n_features)
        if number == 0:
            rows[:, -1] *= 3.0
        parts.append((rows @ mixing + offset) * sizes * (apart if number else 1.0))
    _spoil(parts, chosen, rng, PLACEHOLDERS if estimator != "kdpca" else PLACEHOLDERS[:2])
    dtype = chosen("dtype", np.float64, np.float32, np.int64, np.int32, p=[0.75, 0.15, 0.05, 0.05])
    with np.errstate(over="ignore", invalid="ignore"):
        if np.issubdtype(dtype, np.integer):
            most = np.iinfo(dtype).max / 2
            parts = [np.clip(np.round(part * 10), -most, most) for part in parts]
        parts = [part.astype(dtype) for part in parts]
    order = chosen("order", "C", "F", "strided")
    if order == "F":
        parts = [np.asfortranarray(part) for part in parts]
    elif order == "strided":
        parts = [np.repeat(part, 2, axis=0)[::2] for part in parts]
    n_components = int(rng.integers(1, min(n_features, 3) + 1))
    options: dict[str, Any] = {"n_components": n_components}
    if estimator == "dpca":
        options["shrinkage"] = chosen("shrinkage", "auto", 0.0, 1e-3, 0.1, 1.0)
    elif estimator == "cpca":
        options["alpha"] = chosen("alpha", 0.5, 2.0, 100.0)
    elif estimator == "kdpca":
        options |= {"kernel": "linear", "epsilon": chosen("epsilon", 1e-6, 1e-2, 1.0)}
    if estimator in ("dpca", "pca"):
        options["solver"] = chosen("solver", "auto", "dense", "root", p=[0.8, 0.1, 0.1])
    return Case(seed, parts[0], parts[1], estimator, path, options, [f"path={path}", *story])


def _sizes(kind: str, n_features: int, rng: np.random.Generator) -> Any:
    if kind == "mild":
        return 10.0 ** rng.uniform(-3, 3, size=n_features)
    if kind == "wild":
        return 10.0 ** rng.uniform(-150, 150, size=n_features)
    return np.full(n_features, 10.0 ** rng.uniform(-150, 150) if kind == "common" else 1.0)


def _spoil(parts: list[Any], chosen: Any, rng: np.random.Generator, placeholders: Any) -> None:
    """Put placeholders, repeated and constant columns into the datasets."""
    if chosen("placeholder", False, True, p=[0.6, 0.4]):
        value = chosen("value", *placeholders)
        for part in parts if chosen("everywhere", False, True) else parts[:1]:
            where = rng.random(size=part.shape) < chosen("share", 0.02, 0.3)
            if chosen("by rows", False, True):
                where = np.repeat(where[:, :1], part.shape[1], axis=1)
            part[where] = value
    if parts[0].shape[1] > 2 and chosen("repeated", False, True, p=[0.8, 0.2]):
        for part in parts:
            part[:, 1] = part[:, 0]
    if parts[0].shape[1] > 2 and chosen("constant", False, True, p=[0.85, 0.15]):
        for part in parts if chosen("constant in both", False, True) else parts[1:]:
            part[:, -2] = 7.0


# --- the answer in many digits --------------------------------------------------------------------------------------


def reference(case: Case, shrinkage: Any) -> tuple[list[Any], list[Any]]:
    """Give the leading values, and the target's variance along each component, from mpmath."""
    import mpmath as mp

    with mp.workdps(DIGITS):
        a = _covariance(case.X, mp)
        size = a.rows
        if case.estimator == "pca":
            return _leading(a, mp.eye(size), case.options["n_components"], mp, a)
        b = _covariance(case.Y, mp)
        if case.estimator == "cpca":
            alpha = mp.mpf(case.options["alpha"])
            # Directions in which no dataset varies are left out: zero may be more than the values of the data.
            basis = _range([a, b], mp)
            a, b = (basis.T * matrix * basis for matrix in (a, b))
            return _leading(a - alpha * b, mp.eye(a.rows), case.options["n_components"], mp, a)
        if case.estimator == "kdpca":
            total = a * case.X.shape[0] + b * case.Y.shape[0]
            root = _symmetric_root(total, mp)
            ridge = mp.mpf(case.options["epsilon"]) * mp.eye(size)
            a = root * a * root.T
            return _leading(a, root * b * root.T + ridge, case.options["n_components"], mp, a)
        share = mp.mpf(float(shrinkage))
        trace = sum(b[i, i] for i in range(size))
        ridge = share * trace / size
        b = (1 - share) * b + ridge * mp.eye(size)
        if not ridge:
            # Ratios do not depend on the units of the columns.
            units = [1 / mp.sqrt(a[i, i] + b[i, i]) if a[i, i] + b[i, i] else mp.mpf(0) for i in range(size)]
            kept = [i for i in range(size) if units[i]]
            a, b = (
                mp.matrix([[m[i, j] * units[i] * units[j] for j in kept] for i in kept]) if kept else mp.zeros(1)
                for m in (a, b)
            )
        return _leading(a, b, case.options["n_components"], mp, a)


def _covariance(rows: Any, mp: Any) -> Any:
    numbers = [[mp.mpf(value.item()) for value in row] for row in np.asarray(rows)]
    count, size = len(numbers), len(numbers[0])
    means = [sum(row[j] for row in numbers) / count for j in range(size)]
    centred = [[row[j] - means[j] for j in range(size)] for row in numbers]
    covariance = mp.zeros(size)
    for i in range(size):
        for j in range(i, size):
            covariance[i, j] = covariance[j, i] = sum(row[i] * row[j] for row in centred) / count
    return covariance


def _range(matrices: list[Any], mp: Any) -> Any:
    """Give an orthonormal basis of the directions in which any of the covariances is not zero."""
    size = matrices[0].rows
    total = mp.zeros(size)
    for matrix in matrices:
        trace = sum(matrix[i, i] for i in range(size))
        total += matrix / trace if trace else matrix
    values, vectors = mp.eigsy(total)
    kept = [i for i in range(size) if values[i] > max(values) * mp.mpf(10) ** (-DIGITS + 50)]
    return mp.matrix([[vectors[r, i] for i in kept] for r in range(size)])


def _symmetric_root(matrix: Any, mp: Any) -> Any:
    values, vectors = mp.eigsy(matrix)
    return mp.diag([mp.sqrt(max(value, 0)) for value in values]) * vectors.T


def _leading(a: Any, b: Any, count: int, mp: Any, target: Any) -> tuple[list[Any], list[Any]]:
    """Solve ``A u = λ B u``, the directions without variance left out; λ is infinite where B is zero."""
    size = a.rows
    # The range of A and B together, in a basis in which their sum of sizes is the identity.
    both = b + a if all(b[i, i] >= 0 for i in range(size)) else b
    values, vectors = mp.eigsy(both if not _is_identity(b) else b)
    top = max(values)
    kept = [i for i in range(size) if values[i] > top * mp.mpf(10) ** (-DIGITS // 2)]
    basis = mp.matrix([[vectors[r, i] / mp.sqrt(values[i]) for i in kept] for r in range(size)])
    inner_b = basis.T * b * basis
    if _is_identity(b):
        found, inner = mp.eigsy(basis.T * a * basis)
        lambdas = list(found)
    else:
        # With μ = λ / (1 + λ) all values lie between zero and one.
        found, inner = mp.eigsy(inner_b)
        small = mp.mpf(10) ** (-DIGITS // 2 + 20)
        lambdas = [mp.inf if value < small else (1 - value) / value for value in found]
    along = basis * inner
    order = sorted(range(len(lambdas)), key=lambda i: -lambdas[i])[:count]
    variances = []
    for i in order:
        u = along[:, i]
        variances.append((u.T * target * u)[0])
    return [lambdas[i] for i in order], variances


def _is_identity(matrix: Any) -> bool:
    return all(matrix[i, j] == (1 if i == j else 0) for i in range(matrix.rows) for j in range(matrix.rows))


# --- ways in --------------------------------------------------------------------------------------------------------


def _frame(rows: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(rows, columns=[f"c{j}" for j in range(rows.shape[1])])


def _file(suffix: str, rows: Any, folder: Path, name: str) -> Any:
    import standout

    path = folder / f"{name}.{suffix}"
    if suffix == "npy":
        np.save(path, rows)
    elif suffix == "parquet":
        _frame(rows).to_parquet(path, row_group_size=7)
    elif suffix == "arrow":
        _frame(rows).to_feather(path)
    elif suffix == "h5ad":
        import anndata

        anndata.AnnData(np.ascontiguousarray(rows)).write_h5ad(path)
    else:
        _frame(rows).to_csv(path, index=False, float_format="%.17g", sep="\t" if suffix == "tsv" else ",")
    return standout.scan(path)


def _dask(rows: Any, folder: Path, name: str) -> Any:
    import dask.array as da

    return da.from_array(np.ascontiguousarray(rows), chunks=(9, rows.shape[1]))


def _dask_frame(rows: Any, folder: Path, name: str) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(_frame(rows), npartitions=2)


def _torch(rows: Any, folder: Path, name: str) -> Any:
    import torch

    return torch.tensor(np.ascontiguousarray(rows))


def _sparse(rows: Any, folder: Path, name: str) -> Any:
    from scipy import sparse

    return sparse.csr_array(rows)


WAYS = {
    "memory": lambda rows, folder, name: rows,
    "frame": lambda rows, folder, name: _frame(rows),
    "sparse": _sparse,
    "batches": lambda rows, folder, name: iter(np.array_split(rows, 3)),
    "partial_fit": None,
    **{suffix: partial(_file, suffix) for suffix in ("csv", "tsv", "npy", "parquet", "arrow", "h5ad")},
    "dask": _dask,
    "dask frame": _dask_frame,
    "torch": _torch,
}
PATHS = tuple(WAYS)


def fitted(case: Case, folder: Path) -> Any:
    """Fit the case along its path."""
    from sklearn import config_context

    import standout

    kinds = {"cpca": "ContrastivePCA", "kdpca": "KernelDiscriminativePCA"}
    model = getattr(standout, kinds.get(case.estimator, "DiscriminativePCA"))(**case.options)
    against = case.estimator != "pca"
    if case.path == "partial_fit":
        pairs = zip(np.array_split(case.X, 2), np.array_split(case.Y, 2), strict=True)
        for some, others in pairs:
            model.partial_fit(some, background=others if against else None)
        return model
    way: Any = WAYS[case.path]
    target, background = way(case.X, folder, "x"), way(case.Y, folder, "y")
    with config_context(array_api_dispatch=case.path == "torch"):
        return model.fit(target, background=background if against else None)


# --- the verdict ----------------------------------------------------------------------------------------------------


def verdict(case: Case) -> tuple[str, str]:
    """Give "right", "warned", "refused" or "wrong", and what there is to say of it."""
    import mpmath as mp

    from standout._messages import CautionWarning, _Phrased

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = fitted(case, Path(folder))
        except _Phrased as error:
            return "refused", str(error)
        except AttributeError as error:
            if "is not possible" in str(error):
                return "refused", str(error)
            return "wrong", f"AttributeError: {error}"
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {error}"
    foreign = [str(one.message) for one in said if not isinstance(one.message, CautionWarning)]
    if foreign:
        return "wrong", f"a warning of another library: {foreign[0]}"
    if not hasattr(model, "components_"):
        return "refused", "too few rows for components"
    values = [float(value) for value in model.eigenvalues_]
    shrinkage = float(model.shrinkage_[0]) if case.estimator == "dpca" else 0.0
    if said and os.environ.get("ANY_NUMBERS_ALL") is None:
        return "warned", str(said[0].message)
    expected, variances = reference(case, shrinkage)
    tolerance = SINGLE_TOLERANCE if case.X.dtype == np.float32 else TOLERANCE
    worst = 0.0
    if len(values) > len(expected):
        return "wrong", f"{len(values)} values, but there are {len(expected)} directions"
    for value, true, variance in zip(values, expected, variances, strict=False):
        if mp.isinf(true) or np.isinf(value):
            if not (mp.isinf(true) and np.isinf(value)):
                return "wrong", f"{values}, but it is {[mp.nstr(one, 9) for one in expected]}"
            continue
        size = abs(true) + (variance if case.estimator == "cpca" else 0)
        top = max((abs(one) for one in expected if not mp.isinf(one)), default=mp.mpf(0))
        if abs(true) < top * mp.mpf("1e-100"):
            # A value of zero has no relative error: it is compared with the largest.
            size = top * mp.mpf("1e-4")
        size = max(size, mp.mpf("1e-300"))
        worst = max(worst, float(abs(mp.mpf(value) - true) / size))
    if not worst <= tolerance:
        return "wrong", f"error {worst:.1e}: {values}, but it is {[mp.nstr(one, 9) for one in expected]}"
    return "right", f"error {worst:.1e}"


def main() -> int:
    """Run many cases, print those that are wrong, and a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--path", choices=PATHS)
    given = parser.parse_args()
    # scikit-learn asks for it before it takes torch tensors.
    os.environ["SCIPY_ARRAY_API"] = "1"
    start, table = time.monotonic(), Counter()
    for seed in range(given.first, given.first + given.cases):
        case = draw(seed, given.path)
        found, words = verdict(case)
        table[case.path, found] += 1
        if found == "wrong":
            print(f"{seed}: {words[:300]}\n    {', '.join(case.story)} {case.X.shape} {case.options}", flush=True)
    kinds = ("right", "warned", "refused", "wrong")
    print(f"{'path':<12}" + "".join(f"{kind:>9}" for kind in kinds))
    for path in (*PATHS, "all"):
        counts = [sum(n for (way, what), n in table.items() if what == kind and path in (way, "all")) for kind in kinds]
        print(f"{path:<12}" + "".join(f"{count:>9}" for count in counts))
    print(f"{given.cases} cases in {time.monotonic() - start:.0f} s")
    return int(any(what == "wrong" for _, what in table))


if __name__ == "__main__":
    sys.exit(main())
