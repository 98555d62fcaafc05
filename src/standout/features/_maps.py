"""From rows to coordinates g: ``g(x)·g(z)`` is the kernel of x and z, exactly or approximately; choice of landmarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

import numpy as np

from standout._arrays import BLOCK_BYTES, Array, Float, Rows, dense, double, product, row_slice, stacked
from standout._messages import InvalidValueError
from standout._xp import (
    DEVICE_BLOCK_BYTES,
    column_products,
    concat,
    cumulative_sum,
    indices_like,
    is_foreign,
    largest,
    like,
    namespace,
    solve_triangular,
    take,
    to_host,
    zeros,
)
from standout.features._kernels import Kernel, Landmarks, check_kernel_matrix
from standout.moments import pivoted_cholesky

# Drawn rows whose residual kernel has no more than this share of the largest residual are copies of others.
COPY_TOL = 1e-10


class CoordinateMap(ABC):
    """A map from rows to coordinates. It can be sent to other processes.

    Attributes
    ----------
    n_coordinates : int

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import CoordinateMap, IdentityMap
    >>> isinstance(IdentityMap(2), CoordinateMap), IdentityMap(2).transform(np.array([[1, 2]]))
    (True, array([[1., 2.]]))
    """

    @property
    @abstractmethod
    def n_coordinates(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def _block(self, rows: Rows) -> Float:
        """Return the coordinates of a block of rows."""

    def transform(self, rows: Rows) -> Float:
        """Return the coordinates of the rows."""
        return stacked([self._block(part) for part in self._parts(rows)])

    def _parts(self, rows: Rows) -> list[Rows]:
        n_bytes = DEVICE_BLOCK_BYTES if is_foreign(rows) else BLOCK_BYTES
        size = max(n_bytes // (8 * max(self.n_coordinates, 1)), 1)
        return [row_slice(rows, start, start + size) for start in range(0, max(rows.shape[0], 1), size)]


@dataclass(frozen=True, eq=False)
class LandmarkMap(CoordinateMap):
    """Coordinates from the kernel with landmarks z (Nyström): ``L g(x) = k(z, x)`` with ``L Lᵀ = k(z, z)``.

    Attributes
    ----------
    kernel : Kernel
    landmarks : rows of shape (r, n_features)
        For a precomputed kernel, numbers of columns.
    factor : ndarray of shape (r, r) or None
        L, lower triangular. None if coordinates are the kernel values themselves.
    weights : ndarray of shape (n, r) or None
        For a kernel that is not positive semidefinite: coordinates are the kernel with n landmarks times this matrix.
    counts : tuple of int
        Kernel values are centred over so many consecutive landmarks: the rows of each dataset. Empty if they are not.

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
    weights: Float | None = None
    counts: tuple[int, ...] = ()

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        return int(self.landmarks.shape[0] if self.weights is None else self.weights.shape[1])

    def _block(self, rows: Rows) -> Float:
        values = self.kernel(rows, self.landmarks)
        if self.weights is not None:
            return product(values, self.weights)
        if self.factor is None:
            return centred_columns(values, self.counts)
        return solve_triangular(self.factor, values.T, overwrite=True).T


def centred_columns(values: Float, counts: Sequence[int]) -> Float:
    """Subtract from each row its mean over so many consecutive columns, for each count, in place."""
    for start, stop in pairwise(np.cumsum([0, *counts]).tolist()):
        values[:, start:stop] -= values[:, start:stop].mean(axis=1, keepdims=True)
    return values


@dataclass(frozen=True, eq=False)
class IdentityMap(CoordinateMap):
    """The rows themselves as coordinates, for the linear kernel.

    Attributes
    ----------
    n_columns : int

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import IdentityMap
    >>> IdentityMap(2).transform(np.array([[1, 2]]))
    array([[1., 2.]])
    """

    n_columns: int

    @property
    def n_coordinates(self) -> int:
        """Number of columns."""
        return self.n_columns

    def _block(self, rows: Rows) -> Float:
        return double(dense(rows))


@dataclass(frozen=True, eq=False)
class FourierMap(CoordinateMap):
    """Random Fourier features: cosines at random frequencies, whose mean product is the kernel.

    Attributes
    ----------
    frequencies : ndarray of shape (n_features, r)
    phases : ndarray of shape (r,)

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import FourierMap
    >>> rng = np.random.default_rng(0)
    >>> mapping = FourierMap(rng.normal(size=(1, 2000)), rng.uniform(0.0, 2.0 * np.pi, size=2000))
    >>> here, there = mapping.transform(np.array([[0.0], [1.0]]))
    >>> (here @ there).round(1), np.exp(-0.5).round(1)
    (np.float64(0.6), np.float64(0.6))
    """

    frequencies: Float
    phases: Float

    @property
    def n_coordinates(self) -> int:
        """Number of frequencies."""
        return int(self.phases.shape[0])

    def _block(self, rows: Rows) -> Float:
        angles = dense(double(rows) @ self.frequencies) + self.phases
        waves: Float = namespace(angles).cos(angles) if is_foreign(angles) else np.cos(angles, out=angles)
        waves *= float(np.sqrt(2.0 / self.n_coordinates))
        return waves


# --- choice of landmarks ----------------------------------------------------------------------------------------------


def reject_indefinite() -> NoReturn:
    """Reject a kernel that is not an inner product."""
    raise InvalidValueError(
        "the kernel is not positive semidefinite on these rows: no coordinates have it as their inner product",
        advice="Use `approximation` 'exact', which leaves out its negative part, or another kernel.",
    )


def random_pivots(
    kernel: Kernel, rows: Rows, rank: int, rng: np.random.Generator, tol: float
) -> tuple[Array, Float, float]:
    """Choose landmarks by randomly pivoted Cholesky in blocks. Kernel columns are computed only for chosen rows.

    In each round, rows are drawn with probabilities proportional to their residuals. A pivoted Cholesky of their
    residual kernel removes rows that nearly repeat others.

    Parameters
    ----------
    kernel : Kernel
    rows : rows of shape (n, n_features)
    rank : int
        Most landmarks.
    rng : numpy.random.Generator
    tol : float
        No more landmarks are chosen once they leave out less than this share of the trace.

    Returns
    -------
    chosen : ndarray of shape (r,)
        Numbers of the rows.
    factor : ndarray of shape (r, r)
        L, lower triangular, with ``L Lᵀ`` the kernel matrix of the chosen rows.
    left : float
        Share of the trace that the landmarks leave out.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import resolve_kernel
    >>> from standout.features._maps import random_pivots
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 3))
    >>> random_pivots(resolve_kernel("linear"), rows, 50, rng, 1e-10)[1].shape
    (3, 3)
    """
    xp, n_rows = namespace(rows), rows.shape[0]
    residual = kernel.diagonal(rows)
    total, height = float(xp.sum(residual)), largest(residual)
    check_kernel_matrix(residual, symmetric=True)
    if float(xp.min(residual)) < 0.0:
        reject_indefinite()
    factor = zeros((n_rows, rank), rows)
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
        solved = solve_triangular(xp.tril(take(core, kept)), take(columns, kept, axis=1).T)
        factor[:, done : done + new] = solved.T
        residual = residual - column_products(solved, solved)
        if float(xp.min(residual)) < -1e-6 * height:
            reject_indefinite()
        # No row is drawn again, however large the rounding of its residual.
        free = np.ones(n_rows)
        free[to_host(fresh)] = 0.0
        residual = xp.clip(residual, 0.0, None) * like(free, rows)
        chosen.append(fresh)
        done += new
    picked = concat(chosen) if chosen else indices_like(np.zeros(0, dtype=np.intp), rows)
    left = float(xp.sum(residual)) / total if total > 0.0 else 0.0
    return picked, xp.tril(take(factor[:, :done], picked)), left


def _drawn(weights: Float, shots: Float) -> Array:
    """Return positions drawn with probabilities proportional to weights, each once."""
    xp = namespace(weights)
    heights = cumulative_sum(weights)
    found = xp.searchsorted(heights / heights[-1], like(shots, weights), side="right")
    return xp.unique_values(found) if is_foreign(found) else np.unique(found)
