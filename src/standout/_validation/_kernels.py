"""Kernels and their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from standout._arrays import Float
from standout._validation._data import all_finite
from standout._validation._numbers import check_whole, is_number
from standout._validation._words import listed

PAPER_KERNELS = ("gaussian", "homogeneous_polynomial", "inhomogeneous_polynomial")
# Whose squares, and one by them, are numbers of full precision.
BANDWIDTHS = (1e-150, 1e150)


def check_kernel_name(kernel: Any) -> None:
    """Check the name of a kernel."""
    known = sorted({*PAIRWISE_KERNEL_FUNCTIONS, *PAPER_KERNELS, "precomputed"})
    if not isinstance(kernel, str) or kernel not in known:
        raise ValueError(f"kernel={kernel!r} is unknown. Use a callable, or one of {', '.join(map(repr, known))}.")


def check_kernel_params(params: dict[str, Any], allowed: Iterable[str], kernel: str) -> None:
    """Check the names and numbers of a kernel's parameters."""
    unknown = sorted(set(params) - set(allowed))
    if unknown:
        known = listed("parameter", sorted(allowed)) if allowed else "no parameters"
        raise ValueError(
            f"the kernel {kernel!r} does not know {listed('parameter', unknown)}: it has {known}. Drop it."
        )
    check_kernel_numbers(params.get("gamma"), params.get("degree", 1), params.get("coef0", 0))


def check_single_kernel(kernel_weights: Any, kernel_params: Any) -> None:
    """Check what goes with one kernel."""
    if kernel_weights is not None:
        raise ValueError("kernel_weights are for a list of kernels, but there is one. Give kernel as a list, or None.")
    if kernel_params is not None and not isinstance(kernel_params, dict):
        raise TypeError(f"kernel_params={kernel_params!r} is not a dict. Give one, for example {{'bandwidth': 5.0}}.")


def reject_indefinite(where: str, *, kernel_rows: bool = True) -> None:
    """Refuse a kernel that is no inner product; for methods that can do with its rows, these are the remedy."""
    remedy = "Use another kernel."
    if kernel_rows:
        remedy = "Use approximation='exact', which works with the kernel rows, or another kernel."
    raise ValueError(
        f"the kernel is not positive semidefinite on {where}: no coordinates have it as their inner product. {remedy}"
    )


def check_learnable(scales: Float, sizes: Sequence[int]) -> None:
    """Check that weights of kernels can be learned from these rows."""
    if min(sizes) < 4:
        raise ValueError(f"a dataset has {min(sizes)} rows, but learning kernel_weights needs 4 of each. Give weights.")
    if not np.any(scales > 0):
        raise ValueError("no kernel varies on these rows, so no weights can be learned. Use other kernels.")


def check_kernel_numbers(gamma: Any, degree: Any, coef0: Any) -> None:
    """Check the numbers that scikit-learn's kernels take."""
    if gamma is not None and not (is_number(gamma) and np.isfinite(gamma) and gamma > 0):
        raise ValueError(f"gamma={gamma!r} is not a positive number. Give one, or None for 1 / n_features.")
    if not (is_number(degree) and np.isfinite(degree) and degree > 0):
        raise ValueError(f"degree={degree!r} is not a positive number. Give one.")
    if not (is_number(coef0) and np.isfinite(coef0)):
        raise ValueError(f"coef0={coef0!r} is not a finite number. Give one.")


def check_bandwidth(bandwidth: Any) -> float:
    """Check the bandwidth of the Gaussian kernel."""
    remedy = "Give a positive number, for example kernel_params={'bandwidth': 5.0}."
    if not is_number(bandwidth):
        raise TypeError(f"the kernel 'gaussian' has bandwidth={bandwidth!r}, which is not a number. {remedy}")
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"the kernel 'gaussian' has bandwidth={bandwidth}, which is not positive. {remedy}")
    least, most = BANDWIDTHS
    if not least <= bandwidth <= most:
        raise ValueError(
            f"the kernel 'gaussian' has bandwidth={bandwidth}, whose square is out of range: it takes {least:g} to "
            f"{most:g}. Give a number of the size of distances between rows."
        )
    return float(bandwidth)


def check_epsilon(epsilon: Any, *, clusters: bool = False) -> float | None:
    """Check the ridge of the kernel methods: a positive number; None for "scaled", and "clusters" where it is known."""
    remedy = "Give a positive number, or 'scaled' for one that goes with the size of the kernel."
    if isinstance(epsilon, str):
        if epsilon != "scaled" and not (clusters and epsilon == "clusters"):
            raise ValueError(f"epsilon={epsilon!r} is unknown. {remedy}")
        return None
    if not is_number(epsilon):
        raise TypeError(f"epsilon={epsilon!r} is not a number. {remedy}")
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon={epsilon} is not positive. {remedy}")
    return float(epsilon)


def check_tolerance(tol: Any) -> float | None:
    """Check the tolerance of a factorisation; None leaves it to the kernel."""
    if tol is None:
        return None
    if not (is_number(tol) and 0.0 < tol < 1.0):
        raise ValueError(f"tol={tol!r} is not a number between 0 and 1. Give a small one, for example 1e-9, or None.")
    return float(tol)


def check_rank(rank: Any, n_rows: int | None = None) -> int | None:
    """Check the number of coordinates against the number of rows, where that is known."""
    if rank is None:
        return None
    rank = check_whole(rank, "rank", remedy="Give a number of at least 1, or None.")
    if n_rows is not None and rank > n_rows:
        raise ValueError(f"rank={rank} is larger than {n_rows}, the number of rows. Choose at most {n_rows}, or None.")
    return rank


def check_approximation(approximation: Any) -> None:
    """Check the name of an approximation; anything that is not a name counts as landmarks."""
    known = ("auto", "exact", "pivoted", "fourier")
    if isinstance(approximation, str) and approximation not in known:
        raise ValueError(
            f"approximation={approximation!r} is unknown. Use one of {', '.join(map(repr, known))}, or an array of "
            "landmarks."
        )
    if approximation is None:
        raise TypeError("approximation=None has no meaning. Use 'auto', 'exact', 'pivoted', 'fourier', or landmarks.")


def check_fourier_kernel(kernel: Any) -> None:
    """Check that a kernel has random Fourier features."""
    if kernel not in ("rbf", "laplacian"):
        raise ValueError(
            "approximation='fourier' is for kernels of the difference of two rows: 'rbf', 'gaussian', 'laplacian'. "
            "Use approximation='pivoted' for other kernels."
        )


def check_precomputed(widths: list[int], n_rows: int, approximation: Any) -> None:
    """Check the shapes of a precomputed kernel: every row against all fitted rows."""
    if not isinstance(approximation, str) or approximation not in ("auto", "exact"):
        raise ValueError("a precomputed kernel is used as it is. Use approximation='auto' or 'exact'.")
    for width in widths:
        if width != n_rows:
            raise ValueError(
                f"the precomputed kernel has {width} columns, but there are {n_rows} rows in all datasets. Give the "
                "kernel of each row with all rows: the target's first, then those of each background."
            )


def check_kernel_matrix(matrix: Float, symmetric: bool) -> None:
    """Check that a kernel matrix is finite, and symmetric where that is not known already."""
    if not all_finite(matrix):
        raise ValueError(
            "the kernel has values that are not finite numbers. Rescale the data, or check the kernel: a degree that "
            "is no whole number, for one, is for positive numbers only."
        )
    if symmetric:
        return
    size, largest = len(matrix), max(float(np.max(matrix, initial=0.0)), -float(np.min(matrix, initial=0.0)))
    for start in range(0, size, 512):
        apart = np.abs(matrix[start : start + 512] - matrix[:, start : start + 512].T)
        if float(np.max(apart)) > 1e-8 * largest:
            row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
            raise ValueError(
                f"the kernel is not symmetric: entries ({start + row}, {column}) and ({column}, {start + row}) differ "
                f"by {np.max(apart):.3g}. Give a symmetric kernel, with the rows of all datasets in one order."
            )


def check_kernel_weights(weights: Any, n_kernels: int) -> Float | None:
    """Check the weights of several kernels; None comes back for "learn"."""
    if isinstance(weights, str):
        if weights != "learn":
            raise ValueError(f"kernel_weights={weights!r} is unknown. Use 'learn', None, or one number per kernel.")
        return None
    if weights is None:
        return np.full(n_kernels, 1.0 / n_kernels)
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"kernel_weights={weights!r} is not a list of numbers. Give one number per kernel.") from None
    if numbers.shape != (n_kernels,):
        raise ValueError(f"kernel_weights has shape {numbers.shape}, but there are {n_kernels} kernels. Give one each.")
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or numbers.sum() == 0:
        raise ValueError(f"kernel_weights={numbers.tolist()} must be non-negative, finite and not all zero.")
    return numbers


def check_kernel_list(kernels: Any) -> None:
    """Check a dictionary of kernels."""
    if len(kernels) == 0:
        raise ValueError("kernel is an empty list. Give at least one kernel.")
    for kernel in kernels:
        name = kernel[0] if isinstance(kernel, tuple) else kernel
        if isinstance(kernel, tuple) and not (len(kernel) == 2 and isinstance(kernel[1], dict)):
            raise TypeError(f"kernel {kernel!r} is not a pair of a name and a dict of parameters. Give such a pair.")
        if name == "precomputed":
            raise ValueError("a precomputed kernel cannot be one of several. Add the matrices up yourself.")


def reject_kernel_of_data(kernel: Any, error: Exception) -> NoReturn:
    """Say that a kernel is not made for such data, such as one of counts for negative numbers."""
    reason = " ".join(str(error).split()).rstrip(".")
    raise ValueError(f"the kernel {kernel!r} cannot be taken of these data: {reason}. Use another kernel.") from None
