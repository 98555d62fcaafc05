"""Exact coordinates: from the whole kernel matrix of all rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._algebra import diagonal, largest, lower_triangle, total
from standout._arrays import (
    BLOCK_BYTES,
    Float,
    Rows,
    product,
    row_blocks,
    row_slice,
    stacked,
    sum_of_squares,
    take_rows,
)
from standout._namespaces import is_foreign, like
from standout._validation import check_kernel_matrix, reject_indefinite
from standout.features._device import pivot_on_device
from standout.features._kernels import SHIFT_INVARIANT, Kernel, NamedKernel, PrecomputedKernel, SumKernel
from standout.features._maps import FeatureMap, IdentityMap, KernelRowMap, LandmarkMap, centre_columns
from standout.features._pivoted import pivoted_cholesky

# Beyond this share of the rows the factor saves nothing over the kernel rows themselves.
NEARLY_FULL = 0.5
# Tolerance for kernels whose values lie between 0 and 1, with 1 on the diagonal.
BOUNDED_TOL = 1e-9


def exact_coordinates(
    kernel: Kernel,
    datasets: Sequence[Rows],
    columns: npt.NDArray[np.intp],
    tol: float | None,
    rank: int | None,
    *,
    kernel_rows: bool = True,
) -> tuple[FeatureMap, list[Float], float]:
    """Find exact coordinates of all rows, by the cheaper of two ways.

    A pivoted Cholesky factor of the kernel matrix finds its rank on the way. Where the rank is small, the rows of the
    factor are the coordinates; where it is nearly full, or the kernel is not positive semidefinite, the centred kernel
    rows themselves are.

    Parameters
    ----------
    kernel : Kernel
    datasets : sequence of rows
        The target, then the backgrounds.
    columns : ndarray of shape (n,)
        For a precomputed kernel, the columns of the datasets' rows, in their order.
    tol : float or None
        Relative tolerance of the factor; None leaves it to the kernel.
    rank : int or None
        Most coordinates, or None.
    kernel_rows : bool, default=True
        Whether the centred kernel rows may be the coordinates. Their inner products are not those of the kernel.

    Returns
    -------
    mapping : FeatureMap
    coordinates : list of ndarray
        Of each dataset's rows.
    residual : float
        Share of the kernel matrix's trace that the coordinates leave out.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import exact_coordinates, resolve_kernel
    >>> target, background = np.random.default_rng(0).normal(size=(2, 30, 2))
    >>> kernel = resolve_kernel("homogeneous_polynomial", degree=2)
    >>> mapping, coordinates, _ = exact_coordinates(kernel, [target, background], np.arange(60), 1e-10, None)
    >>> mapping.n_coordinates, [part.shape for part in coordinates]
    (3, [(30, 3), (30, 3)])
    """
    linear = isinstance(kernel, NamedKernel) and kernel.metric == "linear"
    if linear and rank is None and datasets[0].shape[1] < len(columns):
        return IdentityMap(datasets[0].shape[1]), list(datasets), 0.0
    if tol is None:
        # Of other kernels, whose values can differ by any factor, every direction above rounding is kept.
        tol = BOUNDED_TOL if _is_bounded(kernel) else len(columns) * float(np.finfo(np.float64).eps)
    precomputed = isinstance(kernel, PrecomputedKernel)
    rows: Any = columns if precomputed else stacked(datasets)
    matrix = _kernel_matrix(kernel, datasets, rows, len(columns))
    check_kernel_matrix(matrix, kernel.symmetric)
    sizes = tuple(dataset.shape[0] for dataset in datasets)
    few = int(NEARLY_FULL * len(columns)) if kernel_rows else len(columns)
    on_host = not is_foreign(matrix)
    if on_host and kernel_rows and rank is None and kernel.semidefinite and _surely_nearly_full(matrix, few, tol):
        return KernelRowMap(kernel, rows, sizes), _split(centre_columns(matrix, sizes), sizes), 0.0
    if on_host:
        factor, pivots = pivoted_cholesky(matrix, tol, most=few if rank is None else None)
    else:
        few_enough = kernel_rows and rank is None and kernel.semidefinite
        factor, pivots = pivot_on_device(matrix, tol, most=few if few_enough else None)
    indefinite = factor is not None and is_indefinite(matrix, factor, tol)
    if not kernel_rows and (factor is None or indefinite):
        reject_indefinite("these rows", kernel_rows=False)
    if indefinite:
        warnings.warn(
            "the kernel is not positive semidefinite on these rows: it is no inner product, and variances are those of "
            "the kernel rows, as the paper's equations allow. Use another kernel if this is not meant.",
            UserWarning,
            stacklevel=4,
        )
    if factor is None or indefinite or (rank is None and pivots.shape[0] > few):
        return KernelRowMap(kernel, rows, sizes), _split(centre_columns(matrix, sizes), sizes), 0.0
    if rank is not None:
        factor, pivots = factor[:, :rank], pivots[:rank]
    trace = total(diagonal(matrix))
    residual = 1.0 - sum_of_squares(factor) / trace if trace > 0.0 else 0.0
    mapping = LandmarkMap(kernel, take_rows(rows, pivots), lower_triangle(take_rows(factor, pivots)))
    return mapping, _split(factor, sizes), max(residual, 0.0)


def _is_bounded(kernel: Kernel) -> bool:
    if isinstance(kernel, SumKernel):
        return all(_is_bounded(part) for part in kernel.kernels)
    return isinstance(kernel, NamedKernel) and kernel.metric in SHIFT_INVARIANT


def _surely_nearly_full(matrix: Float, few: int, tol: float) -> bool:
    """Tell whether some of the rows have more than `few` dimensions already: a small factorisation in place of a large.

    A still smaller one comes first, so that a matrix of low rank is told apart at no cost.
    """
    order = np.random.default_rng(0).permutation(len(matrix))
    for size in (min(256, few + 1), few + 1):
        some = order[:size]
        _, pivots = pivoted_cholesky(matrix[np.ix_(some, some)], tol, most=0)
        if len(pivots) < size:
            return False
    return True


def is_indefinite(matrix: Float, factor: Float, tol: float) -> bool:
    """Tell whether the factor misses more than a positive semidefinite matrix could hide from it."""
    size = matrix.shape[0]
    probe = like(np.random.default_rng(0).choice([-1.0, 1.0], size=(size, 1)), matrix)
    missed = product(matrix, probe) - product(factor, product(factor.T, probe))
    # Entries of the residual of a semidefinite matrix are bounded by its diagonal; a row sums n of them.
    scale = largest(abs(diagonal(matrix)))
    return bool(largest(abs(missed)) > size * (10.0 * tol + 1e-12) * max(scale, 1e-300))


def _split(rows: Float, sizes: tuple[int, ...]) -> list[Float]:
    ends = np.cumsum(sizes)
    return [row_slice(rows, end - size, end) for end, size in zip(ends.tolist(), sizes, strict=True)]


def _kernel_matrix(kernel: Kernel, datasets: Sequence[Rows], rows: Any, size: int) -> Float:
    """Give the kernel of all rows with all rows."""
    if is_foreign(rows):
        return kernel(rows, rows)
    matrix = np.empty((size, size))
    start = 0
    for dataset in datasets:
        # Blocks by the size of what they become, not of what they are.
        for block in row_blocks(dataset, n_bytes=max(BLOCK_BYTES * dataset.shape[1] // size, 1)):
            matrix[start : start + block.shape[0]] = kernel(block, rows)
            start += block.shape[0]
    return matrix
