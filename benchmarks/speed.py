"""How long does a fit take, beside the bare computation on the same data in the same run?

The bare computation is two symmetric products and one generalised eigenproblem for two vectors, by SciPy. For wide
data it is the Gram matrix of all rows and an eigenproblem of its size, for kernels the paper's symmetric pencil.
Figures are CPU seconds of this process, the best of several runs that alternate, so that other processes matter
little. Run it on an idle machine:

    OMP_NUM_THREADS=1 python benchmarks/speed.py            # one thread
    python benchmarks/speed.py --cases small kernel         # some cases
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy
import sklearn
from scipy import linalg
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import rbf_kernel

import standout
from standout import DiscriminativePCA, KernelDiscriminativePCA

# Rows of each dataset, columns, bounds of the default fit and of one without folds.
SHAPES = {
    "tall": (20_000, 500, 1.6, 1.1),
    "very tall": (200_000, 100, 1.6, 1.2),
    "square": (2_000, 2_000, 4.0, 1.0),
    "wide": (300, 20_000, 3.0, 1.5),
}
# Repeats of large fits, and seconds between two runs.
REPEATS, PAUSE = 5, 0.0 if os.environ.get("OMP_NUM_THREADS") == "1" else 0.3
# Bounds in milliseconds of the default fit and of one without folds.
SMALL = {"500 x 50": (500, 50, 5.0, 1.0), "2,000 x 20": (2_000, 20, 4.0, 1.0)}


def data(n: int, width: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Return a target and a background with ten shared factors, two of them of the target alone."""
    rng = np.random.default_rng(0)
    shared = 10.0 * np.linalg.qr(rng.normal(size=(width, 10)))[0].T
    own = 4.0 * np.linalg.qr(rng.normal(size=(width, 2)))[0].T
    target, background = (rng.normal(size=(n, 10)) @ shared + rng.normal(size=(n, width)) for _ in range(2))
    return (target + rng.normal(size=(n, 2)) @ own).astype(dtype), background.astype(dtype)


def bare(X: np.ndarray, Y: np.ndarray) -> None:
    """Solve the plain problem by SciPy."""
    if X.shape[1] > len(X) + len(Y):
        Z = np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)])
        linalg.eigh(Z @ Z.T, subset_by_index=[len(Z) - 2, len(Z) - 1])
        return
    A, B = (part.T @ part / len(part) for part in (X, Y))
    size = len(A)
    B.flat[:: size + 1] += 0.1 * np.trace(B) / size
    linalg.eigh(A, B, subset_by_index=[size - 2, size - 1], check_finite=False)


def paper(X: np.ndarray, Y: np.ndarray, gamma: float) -> None:
    """Solve the paper's kernel problem as a symmetric pencil."""
    Z = np.vstack([X, Y])
    K = rbf_kernel(Z, gamma=gamma)
    own, other = K[:, : len(X)], K[:, len(X) :]
    own, other = own - own.mean(axis=1, keepdims=True), other - other.mean(axis=1, keepdims=True)
    A, B = own @ own.T / len(X), other @ other.T / len(Y)
    size = len(A)
    B.flat[:: size + 1] += 1e-3
    linalg.eigh(A, B, subset_by_index=[size - 2, size - 1], check_finite=False)


def seconds(repeats: int, *runs: Callable[[], object]) -> list[float]:
    """Return the CPU seconds of the quickest of several repeats of each run.

    Runs alternate, so that a change of the machine's speed meets all of them. The pause lets the threads of BLAS, which
    wait actively for a tenth of a second, fall asleep before the next run.
    """
    found = np.empty((repeats, len(runs)))
    for repeat, (place, run) in itertools.product(range(repeats), enumerate(runs)):
        time.sleep(PAUSE)
        start = time.process_time()
        run()
        found[repeat, place] = time.process_time() - start
    return found.min(axis=0).tolist()


def line(name: str, value: float, bound: float | None, unit: str = "x") -> None:
    """Print a figure beside its bound."""
    verdict = "" if bound is None else f"   bound {bound:g}: {'met' if value <= bound else 'MISSED'}"
    print(f"{name:58s} {value:8.2f} {unit}{verdict}", flush=True)


def large() -> None:
    """Measure the large shapes, in both precisions."""
    plain = DiscriminativePCA(cv=None, shrinkage=0.1)
    for name, (n, width, default_bound, plain_bound) in SHAPES.items():
        X, Y = data(n, width)
        single = [part.astype(np.float32) for part in (X, Y)]
        reference, default, fast, half = seconds(
            REPEATS,
            partial(bare, X, Y),
            partial(DiscriminativePCA().fit, X, background=Y),
            partial(plain.fit, X, background=Y),
            partial(DiscriminativePCA().fit, single[0], background=single[1]),
        )
        label = f"{name}, {n:,} + {n:,} x {width:,}"
        line(f"{label}, default", default / reference, default_bound)
        line(f"{label}, cv=None", fast / reference, plain_bound)
        line(f"{label}, float32 over float64", half / default, 0.75)


def small() -> None:
    """Measure small fits in milliseconds, beside scikit-learn's PCA."""
    plain = DiscriminativePCA(cv=None, shrinkage=0.1)
    for name, (n, width, default_bound, plain_bound) in SMALL.items():
        X, Y = data(n, width)
        runs = partial(DiscriminativePCA().fit, X, background=Y), partial(plain.fit, X, background=Y)
        default, fast, pca = seconds(50, *runs, partial(PCA(2).fit, X))
        line(f"{name}, default", 1e3 * default, default_bound, "ms")
        line(f"{name}, cv=None", 1e3 * fast, plain_bound, "ms")
        line(f"{name}, scikit-learn's PCA", 1e3 * pca, None, "ms")


def kernel() -> None:
    """Measure kernel fits: exact, and a million rows by landmarks."""
    X, Y = data(1_000, 50)
    gamma = KernelDiscriminativePCA().fit(X, background=Y).kernel_.params["gamma"]
    runs = partial(paper, X, Y, gamma), partial(KernelDiscriminativePCA().fit, X, background=Y)
    reference, whole = seconds(REPEATS, *runs)
    line("kernel, 1,000 + 1,000 rows, default over the symmetric pencil", whole / reference, 2.0)
    rows = data(500_000, 10)
    landmarks = rows[0][:500]

    def products() -> None:
        for part in rows:
            for start in range(0, len(part), 20_000):
                values = rbf_kernel(part[start : start + 20_000], landmarks, gamma=gamma)
                values.T @ values

    model = KernelDiscriminativePCA(gamma=gamma, approximation=landmarks)
    reference, many = seconds(2, products, partial(model.fit, rows[0], background=rows[1]))
    line("kernel, 1,000,000 rows, 500 landmarks, over plain products", many / reference, 2.0)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--cases", nargs="*", default=["large", "small", "kernel"], choices=["large", "small", "kernel"]
    )
    cases = parser.parse_args().cases
    warnings.simplefilter("ignore")
    threads = os.environ.get("OMP_NUM_THREADS", "default")
    print(f"{platform.machine()}, {os.cpu_count()} cores, threads: {threads}; load {os.getloadavg()}")
    packages = (standout, np, scipy, sklearn)
    print(", ".join(f"{package.__name__} {package.__version__}" for package in packages))
    for case in cases:
        {"large": large, "small": small, "kernel": kernel}[case]()


if __name__ == "__main__":
    main()
