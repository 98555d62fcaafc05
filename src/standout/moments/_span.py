"""Coordinates of wide data (fewer rows than columns) in the space that the rows span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import (
    BLOCK_BYTES,
    SERIAL_WORK,
    Array,
    Float,
    Rows,
    dense,
    double,
    in_order,
    is_plain,
    is_thin,
    mirror,
    product,
    self_product,
    squared_lengths,
    weighted_sum,
)
from standout._messages import InvalidValueError
from standout._xp import (
    DEVICE_BLOCK_BYTES,
    cholesky,
    concat,
    diagonal,
    inverse_cholesky,
    is_foreign,
    largest,
    like,
    namespace,
    solve_triangular,
    take,
    to_host,
    zeros,
)
from standout.moments._sums import UNCENTRED_LIMIT, suits_single

EPS = float(np.finfo(np.float64).eps)
# The Gram matrix has squared numbers, so directions of small spread lose digits. If a pivot of the Gram matrix is below
# this share of its largest diagonal entry, coordinates are computed from the rows.
ILL_CONDITIONED = 1e-7
# The same limit for a Gram matrix in single precision. Below it, the matrix is computed again in double precision.
SINGLE_CONDITIONED = 1e-3
# In the order of `_order`, target rows whose weight is at most this share of the largest weight come before all others.
SMALL_WEIGHT = 1e-2
# Largest squared length of the origin. The limit keeps the sum of the squares of all rows within range.
MOST_LENGTH = 1e300


@dataclass(frozen=True, eq=False)
class Span:
    """Coordinates of the rows of several datasets in an orthonormal basis of the space that they span.

    Attributes
    ----------
    coordinates : list of ndarray of shape (n_rows, r)
        Coordinates of the rows of each dataset, after the origin is subtracted.
    origin : ndarray of shape (n_features,)
        Mean of the target.
    rows : list of rows
    far : bool
        Whether the origin is so far from zero that it is subtracted before every product.
    single : bool
        Whether products with the rows use single precision.
    weights : ndarray of shape (n, r) or None
        The basis is ``(rows - origin)ᵀ weights``, with the n rows of all datasets.
    basis : ndarray of shape (n_features, r) or None
        The basis, if it was formed. Then `weights` is None.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import span_of
    >>> X = np.random.default_rng(0).normal(size=(5, 1000))
    >>> span = span_of([X])
    >>> span.coordinates[0].shape, np.allclose(span.lift(span.coordinates[0].T).T, X - X.mean(axis=0))
    ((5, 4), True)
    """

    coordinates: list[Float]
    origin: Float
    rows: list[Rows]
    far: bool
    single: bool = False
    weights: Float | None = None
    basis: Float | None = None

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return int(self.coordinates[0].shape[1])

    def lift(self, V: Float) -> Float:
        """Return vectors in the columns of the data, from their coordinates V: the basis times V."""
        if self.basis is not None:
            return product(self.basis, V)
        return self._combined(product(self.weights, V))

    def drop(self, U: Float) -> Float:
        """Return the coordinates of vectors U in the columns of the data: the transposed basis times U."""
        if self.basis is not None:
            return product(self.basis.T, U)
        assert self.weights is not None
        return product(self.weights.T, concat([self._scores(rows, U) for rows in self.rows]))

    def _combined(self, weights: Float) -> Float:
        """Return ``(rows - origin)ᵀ weights`` for the rows of all datasets."""
        used = weights.astype(np.float32) if self.single else weights
        if self.far:
            slices = _centred(self.rows, self.origin, self.single)
            return double(concat([product(block.T, used) for _, block in slices]))
        total = -self.origin[:, None] * namespace(weights).sum(weights, axis=0)
        for part, some in zip(self.rows, _split(used, self.rows), strict=True):
            total += product((part if self.single else double(part)).T, some)
        return total

    def _scores(self, rows: Rows, U: Float) -> Float:
        """Return ``(rows - origin) U``."""
        used = U.astype(np.float32) if self.single else U
        if self.far:
            total = zeros((rows.shape[0], U.shape[1]), self.origin)
            for columns, block in _centred([rows], self.origin, self.single):
                total += product(block, used[columns, :])
            return total
        return product(rows if self.single else double(rows), used) - product(self.origin[None, :], U)


def span_of(rows: Sequence[Rows], weights: Sequence[Float | None] | None = None) -> Span:
    """Which coordinates do these rows have in their span?

    Wide data do not vary outside of the space that the rows span. So the moments of the coordinates contain all
    information about variance, and `Span.lift` converts directions back to the columns. The coordinates are computed
    from the Gram matrix of all rows. If this matrix is ill-conditioned, or if there are more rows than columns, they
    are computed by a QR decomposition of the rows.

    Parameters
    ----------
    rows : sequence of arrays or sparse matrices of shape (n_rows, n_features)
        The target first.
    weights : sequence of ndarray or None, optional
        Weights of the rows of each dataset, for the mean of the target.

    Returns
    -------
    Span

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import span_of
    >>> target, background = np.random.default_rng(0).normal(size=(2, 4, 50))
    >>> [part.shape for part in span_of([target, background]).coordinates]
    [(4, 7), (4, 7)]
    """
    every = list(rows)
    origin = _mean(every[0], None if weights is None else weights[0])
    single = all(type(part) is np.ndarray and part.dtype == np.float32 and suits_single(part) for part in every)
    most = sum(part.shape[0] for part in every) - 1
    # With more rows than columns, the Gram matrix would be larger than the rows.
    while most < origin.shape[0]:
        gram, far, single = _gram(every, origin, single)
        least = SINGLE_CONDITIONED if single else ILL_CONDITIONED
        if _are_similar(gram, every, least):
            found = _by_factors(gram, least, _order(every, weights))
            if found is None and not is_foreign(gram):
                # Pivoting is used only on the host, because a device would wait for each pivot.
                found = _by_pivots(gram, most, least)
            if found is not None:
                return Span(_split(found[0], every), origin, every, far, single, weights=found[1])
        if not single:
            break
        single = False
    basis, coordinates = _by_rows(every, origin, most)
    return Span(_split(coordinates, every), origin, every, False, basis=basis)


def _places(rows: list[Rows]) -> list[slice]:
    """Return the slice of each dataset in the joined rows of all datasets."""
    ends = np.cumsum([0, *(part.shape[0] for part in rows)]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def _split(coordinates: Array, rows: list[Rows]) -> list[Float]:
    return [take(coordinates, places) for places in _places(rows)]


def _mean(rows: Rows, weights: Float | None) -> Float:
    """Return the mean of rows. The mean of a constant column is exact, because the first row is subtracted first."""
    shares = np.full(rows.shape[0], 1.0 / rows.shape[0]) if weights is None else weights / weights.sum()
    if is_thin(rows):
        return weighted_sum(shares, double(rows))
    parts = []
    for columns in _slices(rows, rows.shape[0]):
        block = double(dense(rows[:, columns]))
        parts.append(block[0, :] + weighted_sum(like(shares, block), block - block[:1, :]))
    return concat(parts)


def _slices(rows: Rows, n_rows: int) -> Iterator[slice]:
    """Return consecutive slices of the columns. `n_rows` rows of such a slice fill about one block of memory."""
    size = max((DEVICE_BLOCK_BYTES // 4 if is_foreign(rows) else BLOCK_BYTES) // (8 * max(n_rows, 1)), 64)
    return (slice(first, min(first + size, rows.shape[1])) for first in range(0, rows.shape[1], size))


def _centred(rows: list[Rows], origin: Float, single: bool = False) -> Iterator[tuple[slice, Float]]:
    """Return slices of columns, each with these columns of all rows after the origin is subtracted."""
    origin = origin.astype(np.float32) if single else origin
    for columns in _slices(rows[0], sum(part.shape[0] for part in rows)):
        parts = [part[:, columns] if single else double(dense(part[:, columns])) for part in rows]
        yield columns, concat([part - origin[columns] for part in parts])


def _gram(rows: list[Rows], origin: Float, single: bool) -> tuple[Float, bool, bool]:
    """Return the inner products of all rows after the origin is subtracted, and two flags.

    The flags are `far` (the origin is far from zero) and `single` (the products are in single precision). Rows that are
    far from zero need double precision.
    """
    xp = namespace(origin)
    length, far = float(xp.sum(origin**2)), True
    if length > MOST_LENGTH:
        problem = "the squares of the values are out of the range of double precision"
        raise InvalidValueError(problem, advice="Rescale the data.")
    if single or all(is_plain(part) or is_thin(part) for part in rows):
        parts = [double(part) if is_thin(part) else part for part in rows]
        spread = max(float(xp.mean(squared_lengths(part))) for part in parts) - length
        far = length > (1.0 if single else UNCENTRED_LIMIT) * spread
        single = single and length <= UNCENTRED_LIMIT * spread
        if not (far or single):
            gram = _plain_gram(parts, origin)
            along = concat([product(part, origin[:, None])[:, 0] for part in parts])
            return gram - along[:, None] - along + length, False, False
    gram = zeros((sum(part.shape[0] for part in rows),) * 2, origin)
    for _, block in _centred(rows, origin, single):
        gram += self_product(block.T)
    return gram, far, single


def _plain_gram(rows: list[Rows], origin: Float) -> Float:
    """Return the inner products of all rows.

    They are computed for each pair of datasets, so that the rows need not be copied into one array. For few rows,
    pairs are computed at the same time: threads of BLAS would go on waiting for work while the fit goes on in one
    thread.
    """
    places = _places(rows)
    size = places[-1].stop
    gram = zeros((size, size), origin)
    # Products of different datasets come first, because products of a dataset with itself need half of the work. Then
    # all threads end at about the same time.
    pairs = sorted(combinations_with_replacement(range(len(rows)), 2), key=lambda pair: pair[0] == pair[1])

    def block(pair: tuple[int, int]) -> Float:
        first, second = (rows[number] for number in pair)
        return self_product(first.T) if first is second else product(first, second.T)

    at_once = not is_foreign(gram) and size**2 * origin.shape[0] <= SERIAL_WORK
    for (i, j), part in zip(pairs, (in_order if at_once else map)(block, pairs), strict=True):
        gram[places[i], places[j]] = part
        gram[places[j], places[i]] = part.T
    return gram


def pivoted_cholesky(matrix: Float, tol: float) -> tuple[Float, Array]:
    """Factorise a kernel matrix by pivoted Cholesky, up to a tolerance.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric. LAPACK overwrites the matrix, which is restored at the end.
    tol : float
        The factorisation stops when no row has a residual above `tol` times the largest diagonal entry.

    Returns
    -------
    factor : ndarray of shape (n, r)
        ``factor factorᵀ`` equals the matrix up to the tolerance. The rows have the order of the matrix.
    pivots : ndarray of shape (r,)
        The chosen rows; ``factor[pivots]`` is lower triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import pivoted_cholesky
    >>> factor, pivots = pivoted_cholesky(np.array([[1.0, 2.0], [2.0, 4.0]]), 1e-10)
    >>> factor, pivots
    (array([[1.],
           [2.]]), array([1]))
    """
    if is_foreign(matrix):
        # Pivots are found one after the other. A device would wait for each pivot, so the host computes the factor.
        factor, pivots = pivoted_cholesky(to_host(matrix), tol)
        return like(factor, matrix), like(pivots, matrix, np.int64)
    matrix = np.ascontiguousarray(matrix)
    size = len(matrix)
    diagonal = np.diagonal(matrix).copy()
    height = largest(diagonal)
    if height <= 0.0:
        return np.empty((size, 0)), np.empty(0, dtype=np.intp)
    # LAPACK overwrites only the upper triangle of the C-ordered matrix. Below, the lower triangle restores the matrix.
    lower, order, rank, _ = linalg.lapack.dpstrf(matrix.T, tol=tol * height, lower=1, overwrite_a=True)
    rank, order = int(rank), order.astype(np.intp) - 1
    factor = np.empty((size, rank))
    part = lower[:, :rank].copy()
    part[:rank] = np.tril(part[:rank])
    factor[order] = part
    mirror(matrix)
    np.fill_diagonal(matrix, diagonal)
    return factor, order[:rank]


def _order(rows: list[Rows], weights: Sequence[Float | None] | None) -> npt.NDArray[np.intp]:
    """Return the order of all rows for the Cholesky factor: the target last, sorted from small to large weights.

    In the factor, a row has coordinates only along its own direction and the directions of earlier rows. So backgrounds
    have coordinates of exactly zero along directions in which only the target varies. Rows of very small weight come
    first, so that later rows also have coordinates along their directions. The last row is a combination of the other
    rows of the target, because the mean of the target was subtracted from all rows.
    """
    sizes = [part.shape[0] for part in rows]
    own = np.ones(sizes[0]) if weights is None or weights[0] is None else weights[0] / weights[0].max()
    every = np.append(own, np.ones(sum(sizes[1:])))
    return np.lexsort((every, (every > SMALL_WEIGHT) & (np.arange(len(every)) < sizes[0])))


def _by_factors(gram: Float, least: float, order: npt.NDArray[np.intp]) -> tuple[Float, Float] | None:
    """Return the coordinates of all rows, and the weights of the rows in the basis.

    Return None if the rows without the last one are linearly dependent, or nearly so.
    """
    xp, every = namespace(gram), take(take(gram, order), order, axis=1)
    factor = cholesky(1.0 * every[:-1, :-1]) if len(order) > 1 else None
    if factor is None or float(xp.min(diagonal(factor))) ** 2 < least * largest(diagonal(gram)):
        return None
    half = inverse_cholesky(every[:-1, :-1]) if is_foreign(gram) else linalg.lapack.dtrtri(factor, lower=1)[0]
    # Row i of the factor has the coordinates of data row i. Row j of its inverse has the weights of the data rows in
    # basis vector j.
    factor, half = xp.tril(factor), xp.tril(half)
    own, back = every[-1:, :-1] @ half.T, np.argsort(order)
    return take(concat([factor, own]), back), take(concat([half.T, 0.0 * own]), back)


def _by_pivots(gram: Float, most: int, least: float) -> tuple[Float, Float] | None:
    """Return the coordinates of linearly dependent rows, and the weights of the rows in the basis.

    Return None if the Gram matrix is ill-conditioned.
    """
    factor, pivots = pivoted_cholesky(gram, 4.0 * len(gram) * EPS)
    rank = min(factor.shape[1], most)
    factor, pivots = factor[:, :rank], pivots[:rank]
    if rank and factor[pivots[-1], -1] ** 2 < least * largest(diagonal(gram)):
        return None
    mixture = np.zeros_like(factor)
    mixture[pivots] = solve_triangular(np.tril(factor[pivots]), np.eye(rank), transposed=True)
    return factor, mixture


def _are_similar(gram: Float, rows: list[Rows], least: float) -> bool:
    """Return whether the spread of each dataset is larger than the rounding errors of the Gram matrix."""
    xp = namespace(gram)
    blocks = [gram[places, places] for places in _places(rows)]
    spreads = [float(xp.mean(diagonal(block)) - xp.mean(block)) for block in blocks if block.shape[0] > 1]
    return min(spreads, default=0.0) >= least * largest(diagonal(gram))


def _by_rows(rows: list[Rows], origin: Float, most: int) -> tuple[Float, Float]:
    """Return basis and coordinates from a QR decomposition of the rows.

    Each dataset is centred and scaled separately, so that a dataset of small spread is not lost in the rounding errors
    of another dataset.
    """
    xp = namespace(origin)
    parts = _split(concat([block for _, block in _centred(rows, origin)], axis=1), rows)
    means = [xp.mean(part, axis=0, keepdims=True) for part in parts]
    parts = [part - mean for part, mean in zip(parts, means, strict=True)]
    # Lengths below `floor` are rounding errors of subtracting the origin. Constant columns have no such errors.
    sizes = [float(xp.max(squared_lengths(part))) ** 0.5 for part in (*parts, *means)]
    varied = sum(xp.max(xp.abs(part), axis=0) for part in (*parts, *means)) > 0.0
    floor = 100.0 * EPS * (max(sizes) + float(xp.sum(xp.where(varied, origin, 0.0) ** 2)) ** 0.5)
    # Find the axes of the centred rows first, and then the axes of the means. If the axes of centred rows and means
    # were found together, directions in which the centred rows have a small spread would be lost.
    basis = _axes(parts, floor)
    basis = basis[:, : min(most + 1 - len(rows), basis.shape[1])]
    outside = [mean - product(product(mean, basis), basis.T) for mean in means]
    more = _axes(outside, floor)
    basis = xp.linalg.qr(concat([basis, more], axis=1))[0]
    basis = basis[:, : min(most, basis.shape[1])]
    # Compute the coordinates by multiplying each row with the basis. The rounding error of a row is then relative to
    # the size of this row, and does not grow with the size of other rows.
    both = zip(parts, means, strict=True)
    coordinates = [product(part, basis) + product(mean, basis) for part, mean in both]
    return basis, concat(coordinates)


def _axes(parts: list[Float], floor: float) -> Float:
    """Return the principal axes of rows after each dataset is scaled to size 1. Datasets below `floor` are left out."""
    sizes = [float(namespace(part).max(squared_lengths(part))) ** 0.5 for part in parts]
    stack = concat([part / size if size > floor else 0.0 * part for part, size in zip(parts, sizes, strict=True)])
    wide, triangle = namespace(stack).linalg.qr(stack.T)
    turn, spreads, _ = namespace(stack).linalg.svd(triangle, full_matrices=False)
    # The spreads are computed from scaled rows. Divide the floor by the size of the largest dataset, to compare it with
    # the spreads.
    least = max(max(stack.shape) * EPS * largest(spreads), floor / (max(*sizes, floor) or 1.0))
    return product(wide, turn[:, : int(namespace(stack).count_nonzero(spreads > least))])
