"""Kernels and their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._validation._numbers import check_whole, is_number


def check_single_kernel(kernel_weights: Any, kernel_params: Any) -> None:
    """Check what goes with one kernel."""
    if kernel_weights is not None:
        raise ValueError("kernel_weights are for a list of kernels, but there is one. Give kernel as a list, or None.")
    if kernel_params is not None and not isinstance(kernel_params, dict):
        raise TypeError(f"kernel_params={kernel_params!r} is not a dict. Give one, for example {{'bandwidth': 5.0}}.")


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
