"""Datasets as rows: blocks, precision, sparse matrices, products; and threads that work on several parts at a time.

Inside the library a dataset is *rows*: a NumPy array, a SciPy CSR matrix, or a *foreign* array of another library (see
`_xp`). Rows have any real dtype and are never copied as a whole. Results of foreign rows are foreign, too, and on the
same device.

Large products go through SciPy's BLAS, not through ``@``. NumPy and SciPy each bring a BLAS with its own threads. On
two cores, a small factorisation by SciPy took 20 times as long right after a product by NumPy as without such a
product. Presumably the threads of NumPy and of SciPy compete for the cores. Therefore products use SciPy, as
factorisations do. The sums of products of folds are an exception: they use NumPy, which multiplies strided views
without a copy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock, local
from typing import Any, TypeAlias, TypeVar

import numpy as np
from joblib import cpu_count
from scipy import linalg, sparse
from threadpoolctl import ThreadpoolController

from standout._xp import DEVICE_BLOCK_BYTES, concat, is_foreign, like, namespace, zeros
from standout._xp import Array as Array
from standout._xp import Float as Float

Rows: TypeAlias = Any
"""A NumPy array, a SciPy CSR matrix or a foreign array, two-dimensional."""

Item = TypeVar("Item")
Result = TypeVar("Result")

# A block of rows is converted, centred and multiplied together. It is large enough for products to run at full speed
# and small enough that a copy of it needs little memory. Blocks that need no copy are larger.
BLOCK_BYTES = 8 * 2**20
UNCOPIED_BYTES = 128 * 2**20

# Up to this share of non-zeros a sparse product is faster than a dense one. On one core, SciPy needs about 500 times as
# long as BLAS for each multiplication. But a sparse product has far fewer multiplications: their number grows with the
# square of the share of non-zeros.
SPARSE_DENSITY = 0.03

# OpenBLAS 0.3 with several threads can crash on a symmetric product of 17,500 columns or more. Matrices with more
# columns than this number are multiplied in panels of columns, by general products.
SAFE_SYMMETRIC = 16384

# From PANELS_FROM columns on, a device computes symmetric products in N_PANELS panels of columns, which saves 3 of 8
# multiplications. Products of fewer than PANELS_WORTH multiplications are not split: starting threads takes longer.
PANELS_FROM, N_PANELS, PANELS_WORTH = 256, 4, 2**34

# If the first matrix of a product has at most this number of entries, BLAS starts no threads.
SMALL_SIZE = 8192

# Work of at most this number of multiplications is limited to one BLAS thread. 2**33 is a factorisation of 2,048
# columns.
SERIAL_WORK = 2**33

# Maximum number of parts of the data that are processed at a time. All of them are in memory.
MOST_WORKERS = 4


class _Thread(local):
    """Whether this thread belongs to `in_order`. Its dense products then use NumPy, which lets other threads run."""

    is_one_of_several = False


_thread = _Thread()

# --- kinds of rows --------------------------------------------------------------------------------------------------


def is_sparse(rows: Rows) -> bool:
    """Return whether the rows are a SciPy sparse matrix or array."""
    return not isinstance(rows, np.ndarray) and bool(sparse.issparse(rows))


def is_thin(rows: Rows) -> bool:
    """Return whether the rows are so sparse that sparse products are faster than dense products."""
    return is_sparse(rows) and rows.nnz <= SPARSE_DENSITY * rows.shape[0] * max(rows.shape[1], 1)


def is_single(rows: Rows) -> bool:
    """Return whether the rows are in single precision."""
    return bool(rows.dtype == namespace(rows).float32)


def is_plain(rows: Rows) -> bool:
    """Return whether blocks of the rows can be multiplied in float64 without a copy."""
    if is_foreign(rows):
        return bool(rows.dtype == namespace(rows).float64)
    if is_sparse(rows) or rows.dtype != np.float64:
        return False
    # A block of rows of a matrix in Fortran order has to be copied, unless the matrix is one block.
    return bool(rows.flags.c_contiguous or (rows.flags.f_contiguous and rows.nbytes <= UNCOPIED_BYTES))


def dense(block: Rows) -> Array:
    """Return a (small) block as a dense array, without a copy if it is dense."""
    return block if is_foreign(block) else np.asarray(block.toarray() if is_sparse(block) else block)


def as_type(rows: Rows, kind: str) -> Rows:
    """Return the rows in float32 or float64; copy only to convert."""
    xp = namespace(rows)
    return xp.astype(rows, getattr(xp, kind), copy=False) if is_foreign(rows) else rows.astype(kind, copy=False)


def double(rows: Rows) -> Rows:
    """Return the rows in float64, without a copy if they are in float64."""
    return as_type(rows, "float64")


def in_type_of(numbers: Array, rows: Rows) -> Array:
    """Return floating-point numbers in the precision of the rows, single or double."""
    return as_type(numbers, "float32" if is_single(rows) else "float64")


def all_finite(rows: Rows) -> bool:
    """Return whether all numbers are finite."""
    numbers = rows if type(rows) is np.ndarray or not is_sparse(rows) else rows.data
    xp = namespace(numbers)
    # If the sum is finite, all numbers are finite. This test needs no copy. If the sum is infinite, check each number,
    # because finite numbers can overflow in the sum.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(xp.isfinite(xp.sum(numbers))) or bool(xp.all(xp.isfinite(numbers)))


def copied(rows: Rows) -> Rows:
    """Return a copy of the rows."""
    return namespace(rows).asarray(rows, copy=True) if is_foreign(rows) else rows.copy()


# --- blocks of rows -------------------------------------------------------------------------------------------------


def row_slice(rows: Rows, start: int, stop: int) -> Rows:
    """Return consecutive rows; dense rows are not copied."""
    return rows[start : min(stop, rows.shape[0]), :] if is_foreign(rows) else rows[start:stop]


def row_blocks(rows: Rows, at_least: int = 1, n_bytes: int | None = None) -> Iterator[Rows]:
    """Cut the rows into consecutive blocks of about `n_bytes` and of at least `at_least` rows."""
    # Computations are in float64, except for float32 rows on the host.
    n_bytes_row = max(rows.shape[1], 1) * (4 if is_single(rows) and not is_foreign(rows) else 8)
    n_bytes = n_bytes or (DEVICE_BLOCK_BYTES if is_foreign(rows) else BLOCK_BYTES)
    size = max(n_bytes // n_bytes_row, at_least)
    for start in range(0, rows.shape[0], size):
        yield row_slice(rows, start, start + size)


def stacked(blocks: Sequence[Rows]) -> Rows:
    """Stack blocks of rows; the result is sparse if all blocks are sparse."""
    if len(blocks) == 1:
        return blocks[0]
    if all(is_sparse(block) for block in blocks):
        return sparse.vstack(list(blocks), format="csr")
    return concat([dense(block) for block in blocks])


# --- products -------------------------------------------------------------------------------------------------------


def product(first: Rows, second: Array) -> Array:
    """Multiply two matrices."""
    if not (type(first) is np.ndarray and type(second) is np.ndarray) and (
        is_sparse(first) or is_sparse(second) or is_foreign(first)
    ):
        return dense(first @ second)
    if first.size <= SMALL_SIZE or _thread.is_one_of_several:
        return first @ second
    if second.shape[1] == 1 and first.size:
        matrix, is_transpose = _layout(first)
        gemv = linalg.get_blas_funcs("gemv", (first, second))
        return gemv(1.0, matrix, second[:, 0], trans=is_transpose)[:, np.newaxis]
    gemm, one, other = linalg.get_blas_funcs("gemm", (first, second)), _layout(first), _layout(second)
    return gemm(1.0, one[0], other[0], trans_a=one[1], trans_b=other[1])


def self_product(rows: Rows) -> Float:
    """Multiply the transposed rows with the rows: ``XᵀX``."""
    if is_sparse(rows):
        return dense(rows.T @ rows)
    size, foreign = rows.shape[1], is_foreign(rows)
    if size >= PANELS_FROM and rows.shape[0] * size**2 >= PANELS_WORTH if foreign else size > SAFE_SYMMETRIC:
        return _by_panels(rows)
    if foreign or not rows.size or _thread.is_one_of_several:
        # NumPy releases Python's global lock during the product, so that other threads can run. SciPy does not.
        return rows.T @ rows
    syrk = linalg.get_blas_funcs("syrk", (rows,))
    matrix, is_transpose = _layout(rows)
    lower = syrk(1.0, matrix, trans=not is_transpose, lower=True)
    mirror(lower)
    return lower.T


def _by_panels(rows: Array) -> Array:
    """Multiply rows in panels of columns; only panels at or below the diagonal are computed."""
    size = rows.shape[1]
    step = -(-size // N_PANELS)
    whole = zeros((size, size), rows)
    for start in range(0, size, step):
        stop = min(start + step, size)
        part = product(rows[:, start:].T, rows[:, start:stop])
        whole[start:, start:stop] = part
        whole[start:stop, stop:] = part[stop - start :, :].T
    return whole


def _layout(matrix: Array) -> tuple[Array, bool]:
    """Return the matrix, or its transpose, in BLAS's column-major order, and whether it is the transpose."""
    return (matrix, False) if matrix.flags.f_contiguous else (matrix.T, True)


# `mirror` copies at most this number of columns at a time.
PANEL = 256
_UPPER = np.tri(PANEL, k=-1, dtype=bool).T


def mirror(lower: Array) -> None:
    """Copy the lower triangle of a matrix to the upper one, in panels that fit into the cache."""
    size = len(lower)
    for start in range(0, size, PANEL):
        stop = min(start + PANEL, size)
        corner = lower[start:stop, start:stop]
        np.copyto(corner, corner.T.copy(), where=_UPPER[: stop - start, : stop - start])
        lower[start:stop, stop:] = lower[stop:, start:stop].T


def weighted_sum(weights: Float, rows: Rows) -> Float:
    """Sum the rows, each multiplied by its weight."""
    if is_foreign(rows):
        # Use a product of matrices: products with a vector, and CuPy's sums over rows, would leave most of a device
        # idle.
        return product(like(weights, rows)[None, :], rows)[0, :]
    if not is_sparse(rows) and rows.flags.f_contiguous and not rows.flags.c_contiguous:
        return product(rows.T, weights[:, np.newaxis])[:, 0]
    # For tall arrays in C order einsum is twice as fast as the matrix-vector product of BLAS.
    return rows.T @ weights if is_sparse(rows) else np.einsum("i,ij->j", weights, rows)


def squared_lengths(rows: Rows) -> Float:
    """Sum the squares in each row."""
    if is_foreign(rows):
        xp = namespace(rows)
        return stacked([xp.linalg.vector_norm(block, axis=1) ** 2 for block in row_blocks(rows)])
    if is_sparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", rows, rows)


def inner(first: Float, second: Float) -> float:
    """Multiply two vectors, without BLAS: starting the threads of BLAS takes longer than the product."""
    if is_foreign(first):
        return float(namespace(first).sum(first * second))
    return float(np.einsum("i,i->", first, second))


def sum_of_squares(numbers: Array) -> float:
    """Sum the squares of all numbers."""
    flat = numbers if is_foreign(numbers) else np.ravel(numbers, order="K")
    return inner(flat, flat)


# --- several parts of the data at a time ----------------------------------------------------------------------------


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Apply a function to items in several threads, and yield the results in the order of the items.

    Products of narrow tables gain nothing from the threads of BLAS, which wait for each other many times. Here each
    item is processed by one thread, which does not wait for others. During this time BLAS is limited to one thread.
    Results come in the order of the items, so that their sum does not depend on the threads. An error is raised in
    place of the result of its item.
    """
    n_workers = min(MOST_WORKERS, cpu_count())
    waiting: deque[Future[Result]] = deque()
    joins = partial(setattr, _thread, "is_one_of_several", True)
    with one_blas_thread(), ThreadPoolExecutor(n_workers, initializer=joins) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                # Delete this reference, which would keep the item in memory after it has been processed.
                del item
                if len(waiting) > n_workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def one_blas_thread(n_products: float = 0.0) -> Iterator[None]:
    """Limit BLAS to one thread for work of at most `SERIAL_WORK` multiplications.

    The threads of NumPy's and of SciPy's BLAS wait for each other. On two cores that other programs used, too, a fit of
    784 columns took 40 times as long with these threads as with one thread, and a fit of 2,000 columns 7 times as long.
    The limit applies to the whole process. When the last ``with`` block ends, the numbers of threads are restored.
    """
    if n_products > SERIAL_WORK:
        yield
        return
    with _limit_lock:
        _limits.append(_limits[0] if _limits else [library.num_threads for library in _blas()])
        if len(_limits) == 1:
            _set_threads([1] * len(_blas()))
    try:
        yield
    finally:
        with _limit_lock:
            numbers = _limits.pop()
            if not _limits:
                _set_threads(numbers)


@cache
def _blas() -> list[Any]:
    # The result is cached, because finding the libraries takes longer than a small fit.
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_threads(numbers: list[int]) -> None:
    for library, number in zip(_blas(), numbers, strict=True):
        library.set_num_threads(number)
        # From threadpoolctl 3.8 on, only the thread that set the limit could end it. Here the last thread ends it.
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_limit_lock = Lock()
_limits: list[list[int]] = []
