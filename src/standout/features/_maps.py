"""From rows to coordinates g: ``g(x)·g(z)`` is the kernel of x and z, exactly or approximately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from standout import _xp
from standout._arrays import BLOCK_BYTES, Float, Rows, dense, double, product, row_slice, stacked
from standout._xp import is_foreign, namespace
from standout.features._kernels import Kernel, Landmarks


class CoordinateMap:
    """A map from rows to coordinates. It can be sent to other processes.

    Attributes
    ----------
    n_coordinates : int
    """

    n_coordinates: int

    def _block(self, rows: Rows) -> Float:
        raise NotImplementedError

    def transform(self, rows: Rows) -> Float:
        """Return the coordinates of the rows."""
        n_bytes = _xp.DEVICE_BLOCK_BYTES if is_foreign(rows) else BLOCK_BYTES
        size = max(n_bytes // (8 * max(self.n_coordinates, 1)), 1)
        starts = range(0, max(rows.shape[0], 1), size)
        return stacked([self._block(row_slice(rows, start, start + size)) for start in starts])


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
        Numbers of consecutive landmarks over which kernel values are centred: the rows of each dataset. Empty without
        centring.

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
    def n_coordinates(self) -> int:  # type: ignore[override]
        """Number of coordinates."""
        return int(self.landmarks.shape[0] if self.weights is None else self.weights.shape[1])

    def _block(self, rows: Rows) -> Float:
        values = self.kernel(rows, self.landmarks)
        if self.weights is not None:
            return product(values, self.weights)
        if self.factor is None:
            return centred_columns(values, self.counts)
        return _xp.solve_triangular(self.factor, values.T, overwrite=True).T


def centred_columns(values: Float, counts: Sequence[int]) -> Float:
    """For each count, subtract the mean over that number of consecutive columns from each row, in place."""
    for start, stop in pairwise(np.cumsum([0, *counts]).tolist()):
        values[:, start:stop] -= values[:, start:stop].mean(axis=1, keepdims=True)
    return values


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
    def n_coordinates(self) -> int:  # type: ignore[override]
        """Number of frequencies."""
        return int(self.phases.shape[0])

    def _block(self, rows: Rows) -> Float:
        angles = dense(double(rows) @ self.frequencies) + self.phases
        waves: Float = namespace(angles).cos(angles) if is_foreign(angles) else np.cos(angles, out=angles)
        waves *= float(np.sqrt(2.0 / self.n_coordinates))
        return waves
