"""Coordinates g for a kernel k, with ``g(x)·g(z) = k(x, z)``: exact, or approximate by landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from standout import _xp
from standout._arrays import BLOCK_BYTES, Array, Float, Rows, product, row_slice, stacked, sum_of_squares
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import is_foreign, like, namespace, take
from standout.features._kernels import (
    BANDWIDTH_ROWS,
    SHIFT_INVARIANT,
    Kernel,
    Landmarks,
    NamedKernel,
    PrecomputedKernel,
    SumKernel,
    check_finite,
    check_kernel_matrix,
    median_distance,
    resolve_kernel,
)
from standout.moments import pivoted_cholesky
from standout.sources import InMemory, Mapped, Source

__all__ = [
    "Coordinates",
    "Kernel",
    "LandmarkMap",
    "NamedKernel",
    "PrecomputedKernel",
    "SumKernel",
    "fit_coordinates",
    "median_distance",
    "resolve_kernel",
    "sample",
]

# Saved models store the name of the package for these classes, and not the name of the module. So classes can be moved
# to another module of the package without breaking saved models.
for _class in (Kernel, NamedKernel, PrecomputedKernel, SumKernel):
    _class.__module__ = __name__

# If all datasets together have at most this number of rows, "auto" factorises the whole kernel matrix.
EXACT_ROWS = 3000
# Largest number of landmarks if the user does not choose it.
DEFAULT_RANK = 1000
# Relative tolerances of the Cholesky factor. BOUNDED_TOL is for kernels with a diagonal of 1 and no larger values, and
# for drawn landmarks. GIVEN_TOL is for landmarks that the user gives.
BOUNDED_TOL, GIVEN_TOL = 1e-9, 1e-12
# Rows of the kernel matrix can be the coordinates if its rank exceeds the number of rows divided by this number.
LOW_RANK = 4
# Landmarks are chosen among about this many rows, drawn from all datasets. A large `rank` needs more rows.
CANDIDATES = 20_000
# A drawn row is not used if its residual is at most this share of the largest residual: it repeats other rows.
COPY_TOL = 1e-10


@dataclass(frozen=True, eq=False)
class LandmarkMap:
    """Coordinates from the kernel with landmarks z (Nyström): ``L g(x) = k(z, x)`` with ``L Lᵀ = k(z, z)``.

    Attributes
    ----------
    kernel : Kernel
    landmarks : rows of shape (r, n_features)
        For a precomputed kernel, numbers of columns.
    factor : ndarray of shape (r, r) or None
        L, lower triangular. None if the coordinates are the kernel values.
    counts : tuple of int
        Number of rows of each dataset, if the landmarks are all rows. The kernel values of a row with all rows of one
        dataset are centred: the mean of these values is subtracted. Empty if kernel values are not centred.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import LandmarkMap, resolve_kernel
    >>> kernel = resolve_kernel("rbf", gamma=0.5)
    >>> landmarks = np.array([[0.0], [1.0]])
    >>> mapping = LandmarkMap(kernel, landmarks, np.linalg.cholesky(kernel(landmarks, landmarks)))
    >>> coordinates = mapping.transform(landmarks)
    >>> np.allclose(coordinates @ coordinates.T, kernel(landmarks, landmarks))
    True
    """

    kernel: Kernel
    landmarks: Landmarks
    factor: Float | None = None
    counts: tuple[int, ...] = ()

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        return int(self.landmarks.shape[0])

    def transform(self, rows: Rows) -> Float:
        """Return the coordinates of the rows."""
        n_bytes = _xp.DEVICE_BLOCK_BYTES if is_foreign(rows) else BLOCK_BYTES
        size = max(n_bytes // (8 * max(self.n_coordinates, 1)), 1)
        starts = range(0, max(rows.shape[0], 1), size)
        return stacked([self._block(row_slice(rows, start, start + size)) for start in starts])

    def _block(self, rows: Rows) -> Float:
        values = self.kernel(rows, self.landmarks)
        if self.factor is None:
            return centred_columns(values, self.counts)
        return _xp.solve_triangular(self.factor, values.T, overwrite=True).T


def centred_columns(values: Float, counts: Sequence[int]) -> Float:
    """Return rows after the mean over each group of consecutive columns is subtracted in place.

    `counts` are the numbers of columns of the groups.
    """
    for start, stop in pairwise(np.cumsum([0, *counts]).tolist()):
        values[:, start:stop] -= values[:, start:stop].mean(axis=1, keepdims=True)
    return values


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Datasets in the coordinates of a kernel.

    Attributes
    ----------
    map : LandmarkMap
        The map from rows to coordinates.
    sources : list of Source
        The datasets in these coordinates, with the weights, subjects and labels of their rows.
    approximation : {"exact", "pivoted", "landmarks"}
    residual : float
        Share of the kernel's trace that the coordinates leave out; NaN if it is not known.
    """

    map: LandmarkMap
    sources: list[Source]
    approximation: str
    residual: float


def fit_coordinates(
    sources: Sequence[Source],
    kernel: Kernel,
    *,
    approximation: Any = "auto",
    rank: int | None = None,
    tol: float | None = None,
    kernel_rows: bool = False,
    seed: int = 0,
) -> Coordinates:
    """Which coordinates of these datasets have this kernel as their inner product?

    Parameters
    ----------
    sources : sequence of Source
        The target, then the backgrounds.
    kernel : Kernel
        See `resolve_kernel`.
    approximation : {"auto", "exact", "pivoted"} or rows, default="auto"
        "exact" uses a pivoted Cholesky factor of the whole kernel matrix. "pivoted" chooses landmarks by randomly
        pivoted Cholesky. An array of rows gives the landmarks. "auto" is "exact" up to 3,000 rows of all datasets
        together and for precomputed kernels, and otherwise "pivoted".
    rank : int, optional
        Largest number of coordinates. The default is 1,000 for "pivoted", and no limit for "exact".
    tol : float, optional
        Relative tolerance of the factor. None means a default that depends on the kernel.
    kernel_rows : bool, default=False
        Whether the coordinates of an exact kernel may be the centred rows of the kernel matrix. These rows
        equal the usual coordinates multiplied by a root of their total scatter. They are used unless the rank of the
        matrix is low.
    seed : int, default=0

    Returns
    -------
    Coordinates

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import fit_coordinates, resolve_kernel
    >>> from standout.sources import open_dataset
    >>> target, background = np.random.default_rng(0).normal(size=(2, 30, 2))
    >>> kernel = resolve_kernel("homogeneous_polynomial", degree=2)
    >>> found = fit_coordinates([open_dataset(target, "X"), open_dataset(background, "Y")], kernel)
    >>> found.map.n_coordinates, found.map.transform(target).shape
    (3, (30, 3))
    """
    if not isinstance(approximation, str):
        factor, pivots = _factorised(kernel(approximation, approximation), GIVEN_TOL)
        return _mapped(sources, _at_pivots(kernel, approximation, factor, pivots), "landmarks", float("nan"))
    if not all(source.again for source in sources):
        problem = "chooses its coordinates from the rows, but an iterator of batches can be read only once"
        advice = "Give an array of landmarks."
        raise InvalidTypeError(problem, parameter="approximation", value=approximation, advice=advice)
    n_rows = sum(source.count_rows() for source in sources)
    rng = np.random.default_rng(seed)
    if approximation == "auto":
        approximation = "exact" if isinstance(kernel, PrecomputedKernel) or n_rows <= EXACT_ROWS else "pivoted"
    if approximation == "exact":
        return _exact(sources, kernel, n_rows, tol, rank, kernel_rows)
    if isinstance(kernel, PrecomputedKernel):
        problem, advice = "needs the rows, but the kernel is precomputed", "Use 'auto' or 'exact'."
        raise InvalidValueError(problem, parameter="approximation", value=approximation, advice=advice)
    rows = sample(sources, max(CANDIDATES, 4 * (rank or 0)), seed)
    tol = BOUNDED_TOL if tol is None else tol
    chosen, factor, left = _random_pivots(kernel, rows, min(rank or DEFAULT_RANK, n_rows), rng, tol)
    return _mapped(sources, _at_pivots(kernel, rows, factor, chosen), "pivoted", left)


def sample(sources: Sequence[Source], most: int = BANDWIDTH_ROWS, seed: int = 0) -> Rows:
    """Return at most about `most` rows, drawn from all datasets in proportion to their numbers of rows."""
    counts = [source.count_rows() for source in sources]
    if sum(counts) <= most:
        return stacked([source.loaded().rows for source in sources])
    rng, share = np.random.default_rng(seed), most / sum(counts)
    chosen = [np.sort(rng.choice(count, max(int(share * count), 1), replace=False)) for count in counts]
    return stacked([source.take(own) for source, own in zip(sources, chosen, strict=True)])


def _mapped(sources: Sequence[Source], mapping: LandmarkMap, approximation: str, left: float) -> Coordinates:
    """Return datasets whose rows are converted to coordinates when they are read."""
    parts: list[Source] = [Mapped(source, mapping.transform, None, mapping.n_coordinates) for source in sources]
    return Coordinates(mapping, parts, approximation, left)


def _at_pivots(kernel: Kernel, rows: Landmarks, factor: Float, pivots: Array) -> LandmarkMap:
    """Return the map with the pivots as landmarks, from a factor of the kernel matrix of all rows."""
    return LandmarkMap(kernel, take(rows, pivots), namespace(factor).tril(take(factor, pivots)))


# --- exact coordinates ----------------------------------------------------------------------------------------------


def _exact(
    sources: Sequence[Source], kernel: Kernel, n_rows: int, tol: float | None, rank: int | None, kernel_rows: bool
) -> Coordinates:
    """Return exact coordinates: the rows of a factor of the kernel matrix of all rows, or the rows of this matrix."""
    loaded = [source.loaded() for source in sources]
    datasets: list[Rows] = [source.rows for source in loaded]
    given = isinstance(kernel, PrecomputedKernel)
    every: Rows = stacked(datasets)
    rows: Landmarks = np.arange(n_rows) if given else every
    if given and datasets[0].shape[1] != n_rows:
        problem = f"the precomputed kernel has {datasets[0].shape[1]} columns, but there are {n_rows} rows"
        advice = "Give the kernel of each row with all rows: those of the target first, then of each background."
        raise InvalidValueError(f"{problem} in all datasets", advice=advice)
    # Pass a slice, and not the array `every` twice: scikit-learn assumes that the kernel of an array with itself is
    # symmetric. Here the symmetry is checked below.
    matrix = kernel(row_slice(every, 0, n_rows), rows)
    metrics = [getattr(part, "metric", None) for part in getattr(kernel, "kernels", [kernel])]
    bounded = all(metric in SHIFT_INVARIANT for metric in metrics)
    if bounded:
        # Set the diagonal exactly. All its entries are equal, and rounding must not decide the first pivot.
        matrix = _xp.add_to_diagonal(matrix, kernel.diagonal(every) - _xp.diagonal(matrix))
    if tol is None:
        # The values of other kernels can differ by large factors, so all directions above rounding are kept.
        tol = BOUNDED_TOL if bounded else n_rows * float(np.finfo(np.float64).eps)
    coordinates, pivots = _factorised(matrix, tol)
    trace = float(namespace(matrix).sum(_xp.diagonal(matrix)))
    counts = tuple(part.shape[0] for part in datasets)
    if kernel_rows and rank is None and LOW_RANK * coordinates.shape[1] > n_rows and not is_foreign(matrix):
        mapping = LandmarkMap(kernel, rows, counts=counts)
        coordinates, covered = centred_columns(matrix, counts), trace
    else:
        most = min(rank or n_rows, coordinates.shape[1])
        coordinates, pivots = coordinates[:, :most], pivots[:most]
        mapping = _at_pivots(kernel, rows, coordinates, pivots)
        covered = sum_of_squares(coordinates)
    residual = max(1.0 - covered / trace, 0.0) if trace > 0.0 else 0.0
    ends = np.cumsum(counts).tolist()
    parts: list[Source] = [
        InMemory(row_slice(coordinates, end - count, end), source.name)._beside(source)
        for end, count, source in zip(ends, counts, loaded, strict=True)
    ]
    return Coordinates(mapping, parts, "exact", residual)


def _factorised(matrix: Float, tol: float) -> tuple[Float, Array]:
    """Return the pivoted Cholesky factor of a kernel matrix, after checks. Rows that repeat others are not pivots."""
    check_kernel_matrix(matrix)
    factor, pivots = pivoted_cholesky(matrix, tol)
    probe = like(np.random.default_rng(0).choice([-1.0, 1.0], size=(matrix.shape[0], 1)), matrix)
    missed = product(matrix, probe) - product(factor, product(factor.T, probe))
    # The residual is the matrix minus ``factor factorᵀ``. If it is positive semidefinite, its largest entry is on the
    # diagonal. Each entry of `missed` is a sum of n entries of the residual.
    scale = matrix.shape[0] * max(_xp.largest(abs(_xp.diagonal(matrix))), 1e-300)
    if _xp.largest(abs(missed)[:, 0]) > scale * (10.0 * tol + 1e-12):
        _reject_indefinite()
    return factor, pivots


# --- choice of landmarks ----------------------------------------------------------------------------------------------


def _reject_indefinite() -> NoReturn:
    """Reject a kernel that is not an inner product."""
    problem = "the kernel is not positive semidefinite on these rows: no coordinates have it as their inner product"
    advice = "Use another kernel. Of a precomputed matrix, leave out the negative eigenvalues."
    raise InvalidValueError(problem, advice=advice)


def _random_pivots(
    kernel: Kernel, rows: Rows, rank: int, rng: np.random.Generator, tol: float
) -> tuple[Array, Float, float]:
    """Return landmarks chosen by randomly pivoted Cholesky in blocks. Kernel columns are computed only for drawn rows.

    The residual of a row is the part of its kernel with itself that the chosen rows do not explain. In each round, rows
    are drawn with probabilities proportional to their residuals. A pivoted Cholesky factor of the residual kernel of
    the drawn rows removes rows that nearly repeat others. The rounds end when the residuals sum to at most the share
    `tol` of the trace, or when enough rows are chosen.

    Returns
    -------
    chosen : ndarray of shape (r,)
        Numbers of the rows.
    factor : ndarray of shape (n, r)
        ``factor factorᵀ`` approximates the kernel matrix, and is exact for the chosen rows.
    left : float
        Share of the trace that is left out.
    """
    xp, n_rows = namespace(rows), rows.shape[0]
    residual = kernel.diagonal(rows)
    total, height = float(xp.sum(residual)), _xp.largest(residual)
    check_finite(residual)
    if float(xp.min(residual)) < 0.0:
        _reject_indefinite()
    factor = _xp.zeros((n_rows, rank), rows)
    chosen: list[Array] = []
    done, block = 0, max(rank // 10, min(rank, 32))
    while done < rank and float(xp.sum(residual)) > tol * total:
        drawn = _drawn(residual, rng.random(min(block, rank - done)))
        columns = kernel(rows, take(rows, drawn))
        if done:
            columns -= product(factor[:, :done], take(factor[:, :done], drawn).T)
        core, kept = pivoted_cholesky(take(columns, drawn), COPY_TOL)
        new = kept.shape[0]
        if not new:
            break
        fresh = take(drawn, kept)
        solved = _xp.solve_triangular(xp.tril(take(core, kept)), take(columns, kept, axis=1).T)
        factor[:, done : done + new] = solved.T
        residual = residual - _xp.column_products(solved, solved)
        if float(xp.min(residual)) < -1e-6 * height:
            _reject_indefinite()
        # Set the residuals of chosen rows to zero, because rounding errors could let them be drawn again.
        free = np.ones(n_rows)
        free[_xp.to_host(fresh)] = 0.0
        residual = xp.clip(residual, 0.0, None) * like(free, rows)
        chosen.append(fresh)
        done += new
    picked = _xp.concat(chosen) if chosen else _xp.like(np.zeros(0, dtype=np.intp), rows, np.int64)
    left = float(xp.sum(residual)) / total if total > 0.0 else 0.0
    return picked, factor[:, :done], left


def _drawn(weights: Float, shots: Float) -> Array:
    """Return positions drawn with probabilities proportional to weights, without repeats."""
    xp = namespace(weights)
    heights = xp.cumulative_sum(weights) if is_foreign(weights) else np.cumsum(weights)
    found = xp.searchsorted(heights / heights[-1], like(shots, weights), side="right")
    return xp.unique_values(found) if is_foreign(found) else np.unique(found)
