"""From rows to coordinates g: ``g(x)·g(z)`` is the kernel of x and z, exactly or approximately."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from standout._arrays import BLOCK_BYTES, Float, Rows, dense, double, product, row_slice, stacked
from standout._xp import DEVICE_BLOCK_BYTES, condition, eye, is_foreign, like, namespace, solve_triangular
from standout.features._kernels import Kernel, Landmarks
from standout.moments import ScatterMoments


class FeatureMap(ABC):
    """A map from rows to coordinates.

    Attributes
    ----------
    n_coordinates : int
    plain_ridge : bool
        Whether the paper's ridge ``ε I`` is ``ε I`` in these coordinates, too. Otherwise it is ``ε T⁻¹``, with T the
        total scatter.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import FeatureMap, IdentityMap
    >>> rows = np.arange(6.0).reshape(3, 2)
    >>> feature_map = IdentityMap(2)
    >>> isinstance(feature_map, FeatureMap), [block.shape for block in feature_map.blocks(rows)]
    (True, [(3, 2)])
    """

    plain_ridge: bool = False

    @property
    @abstractmethod
    def n_coordinates(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def transform(self, rows: Rows) -> Float:
        """Give the coordinates of the rows."""

    def block_rows(self, rows: Rows) -> int:
        """Give the number of these rows whose coordinates make one block."""
        n_bytes = DEVICE_BLOCK_BYTES if is_foreign(rows) else BLOCK_BYTES
        return max(n_bytes // (8 * max(self.n_coordinates, 1)), 1)

    def blocks(self, rows: Rows) -> Iterator[Float]:
        """Give the coordinates of the rows, one block after the other."""
        size = self.block_rows(rows)
        for start in range(0, rows.shape[0], size):
            yield self.transform(row_slice(rows, start, start + size))

    def project(self, rows: Rows, mean: Float, filters: Float) -> Float:
        """Give the scores of the rows: their coordinates minus a mean, multiplied with filters, a block at a time."""
        return stacked([product(block - mean, filters) for block in self.blocks(rows)])


@dataclass(frozen=True, eq=False)
class LandmarkMap(FeatureMap):
    """Coordinates from the kernel with a few landmarks z (Nyström): ``L g(x) = k(z, x)`` with ``L Lᵀ = k(z, z)``.

    Attributes
    ----------
    kernel : Kernel
    landmarks : rows of shape (r, n_features)
        For a precomputed kernel, numbers of columns.
    factor : ndarray of shape (r, r)
        L, lower triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import LandmarkMap, resolve_kernel
    >>> kernel = resolve_kernel("rbf", gamma=0.5)
    >>> landmarks = np.array([[0.0], [1.0]])
    >>> feature_map = LandmarkMap(kernel, landmarks, np.linalg.cholesky(kernel(landmarks, landmarks)))
    >>> coordinates = feature_map.transform(landmarks)
    >>> np.allclose(coordinates @ coordinates.T, kernel(landmarks, landmarks))
    True
    """

    kernel: Kernel
    landmarks: Landmarks
    factor: Float

    @property
    def n_coordinates(self) -> int:
        """Number of landmarks."""
        return int(self.factor.shape[0])

    @cached_property
    def well_conditioned(self) -> bool:
        """Whether moments of kernel values can be turned into moments of coordinates with at least eight digits."""
        return self.n_coordinates == 0 or condition(self.factor) < 1e3

    def from_kernel_values(self, moments: ScatterMoments) -> ScatterMoments:
        """Turn the moments of ``k(x, landmarks)`` into those of the coordinates."""
        return moments.mapped(solve_triangular(self.factor, eye(self.n_coordinates, self.factor)))

    def transform(self, rows: Rows) -> Float:
        """Give the coordinates of the rows."""
        values = self.kernel(rows, self.landmarks)
        return solve_triangular(self.factor, values.T, overwrite=True).T

    def dual_filters(self, filters: Float) -> Float:
        """Turn filters of the coordinates, as columns, into filters of the kernel values (`KernelValueMap`)."""
        return solve_triangular(self.factor, filters, transposed=True)

    def dual_means(self, means: Float) -> Float:
        """Turn means of coordinates, as rows, into means of the kernel values."""
        return product(means, self.factor.T)


@dataclass(frozen=True, eq=False)
class KernelValueMap(FeatureMap):
    """Coordinates that are the kernel with landmarks, as they come: as many numbers as landmarks, and no factor.

    Filters of a `LandmarkMap` become filters of these by its `dual_filters`. With many landmarks that saves the memory
    of the factor, and the time of solving with it.

    Attributes
    ----------
    kernel : Kernel
    landmarks : rows of shape (r, n_features)
        For a precomputed kernel, numbers of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import KernelValueMap, resolve_kernel
    >>> KernelValueMap(resolve_kernel("linear"), np.array([[1.0], [3.0]])).transform(np.array([[2.0]]))
    array([[2., 6.]])
    """

    kernel: Kernel
    landmarks: Landmarks

    @property
    def n_coordinates(self) -> int:
        """Number of landmarks."""
        return int(self.landmarks.shape[0])

    def transform(self, rows: Rows) -> Float:
        """Give the coordinates of the rows."""
        return self.kernel(rows, self.landmarks)


@dataclass(frozen=True, eq=False)
class KernelRowMap(FeatureMap):
    """Coordinates from the kernel with all fitted rows, centred over the rows of each dataset (rows of K, eq. k).

    Attributes
    ----------
    kernel : Kernel
    rows : rows of shape (n, n_features)
        The fitted rows of all datasets, one dataset after the other. For a precomputed kernel, numbers of columns.
    sizes : tuple of int
        Number of rows of each dataset.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import KernelRowMap, resolve_kernel
    >>> rows = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> feature_map = KernelRowMap(resolve_kernel("linear"), rows, sizes=(2, 2))
    >>> feature_map.transform(np.array([[2.0]]))
    array([[-1.,  1., -2.,  2.]])
    """

    kernel: Kernel
    rows: Landmarks
    sizes: tuple[int, ...]
    plain_ridge: bool = True

    @property
    def n_coordinates(self) -> int:
        """Number of fitted rows."""
        return sum(self.sizes)

    def transform(self, rows: Rows) -> Float:
        """Give the coordinates of the rows."""
        return centre_columns(self.kernel(rows, self.rows), self.sizes)


@dataclass(frozen=True, eq=False)
class IdentityMap(FeatureMap):
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

    def transform(self, rows: Rows) -> Float:
        """Give the rows."""
        return double(dense(rows))


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
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
    >>> feature_map = FourierMap(rng.normal(size=(1, 2000)), rng.uniform(0.0, 2.0 * np.pi, size=2000))
    >>> here, there = feature_map.transform(np.array([[0.0], [1.0]]))
    >>> (here @ there).round(1), np.exp(-0.5).round(1)
    (np.float64(0.6), np.float64(0.6))
    """

    frequencies: Float
    phases: Float

    @property
    def n_coordinates(self) -> int:
        """Number of frequencies."""
        return int(self.phases.shape[0])

    def transform(self, rows: Rows) -> Float:
        """Give the coordinates of the rows."""
        angles = dense(double(rows) @ self.frequencies) + self.phases
        waves: Float = namespace(angles).cos(angles) if is_foreign(angles) else np.cos(angles, out=angles)
        waves *= float(np.sqrt(2.0 / self.n_coordinates))
        return waves


def give_same_coordinates(first: FeatureMap, second: FeatureMap, n_columns: int) -> bool:
    """Tell whether two maps give rows the same coordinates, by trying them on some rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import fourier_features, give_same_coordinates, resolve_kernel
    >>> kernel = resolve_kernel("rbf")
    >>> first, second, third = (fourier_features(kernel, 3, 10, np.random.default_rng(seed)) for seed in (0, 0, 1))
    >>> give_same_coordinates(first, second, 3), give_same_coordinates(first, third, 3)
    (True, False)
    """
    if type(first) is not type(second) or first.n_coordinates != second.n_coordinates:
        return False
    some = np.random.default_rng(0).standard_normal((16, n_columns))
    if isinstance(first, FourierMap):
        some = like(some, first.frequencies)
    if isinstance(first, LandmarkMap):
        # Far from all landmarks a kernel can be zero for all values of its parameters.
        landmarks = double(dense(row_slice(first.landmarks, 0, 1000)))
        some = stacked([like(some, landmarks), landmarks])
    one, other = first.transform(some), second.transform(some)
    return bool(namespace(one).all(abs(one - other) <= 1e-12 + 1e-9 * abs(other)))


def centre_columns(values: Float, sizes: tuple[int, ...]) -> Float:
    """Subtract from each row its mean over the columns of each dataset, in place."""
    xp, start = namespace(values), 0
    for size in sizes:
        part = values[:, start : start + size]
        part -= xp.mean(part, axis=1, keepdims=True)
        start += size
    return values
