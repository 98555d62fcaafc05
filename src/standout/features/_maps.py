"""From rows to coordinates g: ``g(x)·g(z)`` is the kernel of x and z, exactly or approximately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from standout import _xp
from standout._arrays import BLOCK_BYTES, Float, Rows, row_slice, stacked
from standout._xp import is_foreign
from standout.features._kernels import Kernel, Landmarks


@dataclass(frozen=True, eq=False)
class LandmarkMap:
    """Coordinates from the kernel with landmarks z (Nyström): ``L g(x) = k(z, x)`` with ``L Lᵀ = k(z, z)``.

    Attributes
    ----------
    kernel : Kernel
    landmarks : rows of shape (r, n_features)
        For a precomputed kernel, numbers of columns.
    factor : ndarray of shape (r, r) or None
        L, lower triangular. None if coordinates are the kernel values themselves.
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
    """For each count, subtract the mean over that number of consecutive columns from each row, in place."""
    for start, stop in pairwise(np.cumsum([0, *counts]).tolist()):
        values[:, start:stop] -= values[:, start:stop].mean(axis=1, keepdims=True)
    return values
