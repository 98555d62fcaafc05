"""Kernels by name: scikit-learn's, the paper's own, a callable, sums of them, and precomputed matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import KERNEL_PARAMS, pairwise_kernels

from standout._algebra import at_least, either, root
from standout._arrays import Float, Rows, dense, double, is_sparse, product, squared_lengths
from standout._namespaces import is_foreign, like, namespace
from standout._validation import check_bandwidth, check_kernel_name, check_kernel_params, reject_kernel_of_data
from standout.features._columns import chi2_distances, manhattan_distances

# Kernels that are made of inner products alone.
BY_INNER_PRODUCTS = ("linear", "rbf", "polynomial", "poly", "sigmoid", "cosine")
# Kernels of the difference of two rows: they do not change when both are shifted, and equal 1 where it is zero.
SHIFT_INVARIANT = ("rbf", "laplacian")


class Kernel(ABC):
    """A kernel with all its parameters fixed.

    Attributes
    ----------
    symmetric : bool
        Whether it is known to be symmetric; otherwise its matrix must be looked at.
    semidefinite : bool
        Whether it is known to be positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import Kernel, resolve_kernel
    >>> kernel = resolve_kernel("rbf", gamma=1.0)
    >>> isinstance(kernel, Kernel), kernel.semidefinite, kernel.diagonal(np.zeros((2, 3)))
    (True, True, array([1., 1.]))
    """

    symmetric: bool = False
    semidefinite: bool = False

    @abstractmethod
    def __call__(self, X: Rows, Z: Any) -> Float:
        """Give the kernel of every row of X with every row of Z."""

    @abstractmethod
    def diagonal(self, X: Rows) -> Float:
        """Give the kernel of every row of X with itself."""


@dataclass(frozen=True, eq=False)
class NamedKernel(Kernel):
    """A kernel of `sklearn.metrics.pairwise.pairwise_kernels`, or a callable.

    Attributes
    ----------
    metric : str or callable
    params : dict
    origin : ndarray or None
        Taken off all rows first where the kernel is of their difference: far from the origin, distances between rows
        would drown in the rounding of their lengths. Not where one side is sparse, which it would make dense.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import NamedKernel
    >>> kernel = NamedKernel("polynomial", {"gamma": 1.0, "coef0": 0.0, "degree": 2})
    >>> kernel(np.array([[1.0, 1.0]]), np.array([[1.0, 2.0]]))
    array([[9.]])
    """

    metric: str | Callable[..., Any]
    params: dict[str, Any]
    origin: Float | None = None

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether it is known to be symmetric: scikit-learn's are."""
        return not callable(self.metric)

    @property
    def semidefinite(self) -> bool:  # type: ignore[override]
        """Whether it is known to be positive semidefinite."""
        if self.metric in ("polynomial", "poly"):
            return self.params.get("coef0", 1) >= 0 and float(self.params.get("degree", 3)).is_integer()
        return self.metric in ("linear", "cosine", *SHIFT_INVARIANT)

    def __call__(self, X: Rows, Z: Any) -> Float:
        """Give the kernel of every row of X with every row of Z."""
        if self.origin is None or is_sparse(X) or is_sparse(Z):
            X, Z = double(X), double(Z)
        else:
            X, Z = double(X) - self.origin, double(Z) - self.origin
        if self.metric in BY_INNER_PRODUCTS and not (is_sparse(X) or is_sparse(Z)):
            return self._by_inner_products(X, Z)
        if is_foreign(X):
            return self._by_columns(X, Z)
        filtered = not callable(self.metric)
        try:
            values = pairwise_kernels(X, Z, metric=self.metric, filter_params=filtered, **self.params)
        except ValueError as error:
            if callable(self.metric):
                raise
            reject_kernel_of_data(self.metric, error)
        return double(dense(values))

    def _by_inner_products(self, X: Float, Z: Float) -> Float:
        """Give scikit-learn's commonest kernels with the products made by the BLAS that makes all others, too."""
        if self.metric == "cosine":
            return product(_unit(X), _unit(Z).T)
        values: Float = product(X, Z.T)
        if self.metric == "linear":
            return values
        if self.metric == "rbf":
            gamma = self._gamma(X.shape[1])
            values *= -2.0
            values += squared_lengths(X)[:, np.newaxis]
            values += squared_lengths(Z)
            if is_foreign(values):
                return namespace(values).exp(-gamma * at_least(values, 0.0))
            np.maximum(values, 0.0, out=values)
            values *= -gamma
            return np.exp(values, out=values)
        return self._of_products(values, X.shape[1])

    def _by_columns(self, X: Float, Z: Float) -> Float:
        """Give scikit-learn's other kernels for arrays of other libraries."""
        if self.metric == "laplacian":
            return namespace(X).exp(-self._gamma(X.shape[1]) * manhattan_distances(X, Z))
        assert isinstance(self.metric, str)
        distances = chi2_distances(X, Z, self.metric)
        if self.metric == "additive_chi2":
            return -distances
        # scikit-learn's default is 1 for this one.
        return namespace(X).exp(-self.params.get("gamma", 1.0) * distances)

    def _gamma(self, n_features: int) -> float:
        gamma = self.params.get("gamma")
        return 1.0 / n_features if gamma is None else gamma

    def _of_products(self, values: Float, n_features: int) -> Float:
        """Give the polynomial of inner products, or the sigmoid, in their place."""
        values *= self._gamma(n_features)
        values += self.params.get("coef0", 1)
        if self.metric == "sigmoid":
            return namespace(values).tanh(values) if is_foreign(values) else np.tanh(values, out=values)
        values **= self.params.get("degree", 3)
        return values

    def diagonal(self, X: Rows) -> Float:
        """Give the kernel of every row of X with itself."""
        if self.metric in SHIFT_INVARIANT:
            return like(np.ones(X.shape[0]), X)
        if self.metric == "linear":
            return squared_lengths(double(X))
        if is_foreign(X):
            return self._diagonal_on_device(squared_lengths(double(X)), X.shape[1])
        # A block of rows with itself holds the diagonal, and little else.
        size = 64
        return np.concatenate([np.diagonal(self(X[i : i + size], X[i : i + size])) for i in range(0, X.shape[0], size)])

    def _diagonal_on_device(self, squares: Float, n_features: int) -> Float:
        """Give the diagonal from the squared lengths of the rows: many small blocks would leave a device waiting."""
        if self.metric == "cosine":
            return either(squares > 0.0, 1.0, 0.0)
        if self.metric in ("chi2", "additive_chi2"):
            return 0.0 * squares + (1.0 if self.metric == "chi2" else 0.0)
        return self._of_products(squares, n_features)


@dataclass(frozen=True, eq=False)
class SumKernel(Kernel):
    """A sum of kernels with non-negative weights (Remark 5).

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import SumKernel, resolve_kernel
    >>> kernel = SumKernel((resolve_kernel("linear"), resolve_kernel("rbf")), np.array([0.5, 0.5]))
    >>> kernel(np.array([[2.0]]), np.array([[2.0]]))
    array([[2.5]])
    """

    kernels: tuple[Kernel, ...]
    weights: Float

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether all of them are known to be symmetric."""
        return all(kernel.symmetric for kernel in self.kernels)

    @property
    def semidefinite(self) -> bool:  # type: ignore[override]
        """Whether all of them are known to be positive semidefinite."""
        return all(kernel.semidefinite for kernel in self.kernels)

    def __call__(self, X: Rows, Z: Any) -> Float:
        """Give the kernel of every row of X with every row of Z."""
        total: Float | None = None
        for weight, kernel in self._active():
            part = weight * kernel(X, Z)
            if total is None:
                total = part
            else:
                total += part
        assert total is not None
        return total

    def diagonal(self, X: Rows) -> Float:
        """Give the kernel of every row of X with itself."""
        return sum((weight * kernel.diagonal(X) for weight, kernel in self._active()), like(np.zeros(X.shape[0]), X))

    def _active(self) -> list[tuple[float, Kernel]]:
        return [
            (float(weight), kernel) for weight, kernel in zip(self.weights, self.kernels, strict=True) if weight > 0
        ]


class PrecomputedKernel(Kernel):
    """Rows that hold kernel values already: with all fitted rows, in the order in which these were given.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import PrecomputedKernel
    >>> values = np.array([[4.0, 2.0, 1.0], [2.0, 5.0, 3.0]])
    >>> PrecomputedKernel()(values, [0, 2])
    array([[4., 1.],
           [2., 3.]])
    """

    def __call__(self, X: Rows, Z: Any) -> Float:
        """Give the columns Z of the rows X."""
        return double(dense(X[:, np.asarray(Z)]))

    def diagonal(self, X: Rows) -> Float:
        """Refuse: the kernel of a row with itself stands in one place of a precomputed matrix only."""
        raise NotImplementedError


def resolve_kernel(
    kernel: Any,
    *,
    gamma: float | None = None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: dict[str, Any] | None = None,
    origin: Float | None = None,
) -> Kernel:
    """Fix a kernel's parameters: by scikit-learn's names, by the paper's, or as a callable.

    ``"gaussian"`` is ``exp(-|x - z|² / (2 bandwidth²))``, ``"homogeneous_polynomial"`` is ``(x·z)^degree`` and
    ``"inhomogeneous_polynomial"`` is ``(x·z + coef0)^degree``.

    Parameters
    ----------
    kernel : str or callable
    gamma, degree, coef0 : float
        Parameters of scikit-learn's kernels, as far as the kernel has them.
    kernel_params : dict, default=None
        Other parameters.
    origin : ndarray of shape (n_features,), default=None
        A point near the data, for kernels of differences.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import resolve_kernel
    >>> kernel = resolve_kernel("inhomogeneous_polynomial", degree=2, coef0=1.0)
    >>> kernel(np.array([[1.0, 1.0]]), np.array([[1.0, 2.0]]))
    array([[16.]])
    """
    params = dict(kernel_params or {})
    if callable(kernel):
        return NamedKernel(kernel, params)
    if kernel == "precomputed":
        return PrecomputedKernel()
    if kernel == "gaussian":
        bandwidth = check_bandwidth(params.get("bandwidth"))
        kernel, params = "rbf", {"gamma": 0.5 / bandwidth**2}
    elif kernel == "homogeneous_polynomial":
        kernel, params = "polynomial", {"gamma": 1.0, "coef0": 0.0, "degree": degree, **params}
    elif kernel == "inhomogeneous_polynomial":
        kernel, params = "polynomial", {"gamma": 1.0, "coef0": coef0, "degree": degree, **params}
    else:
        check_kernel_name(kernel)
        defaults = {"gamma": gamma, "degree": degree, "coef0": coef0}
        allowed = KERNEL_PARAMS.get(kernel, frozenset())
        check_kernel_params(params, allowed, kernel)
        # scikit-learn has a default of its own where gamma is None.
        params = {key: value for key, value in {**defaults, **params}.items() if key in allowed and value is not None}
    return NamedKernel(kernel, params, origin if kernel in SHIFT_INVARIANT else None)


def _unit(rows: Float) -> Float:
    """Give the rows at unit length; those without any length as they are."""
    lengths = root(squared_lengths(rows))
    return rows / either(lengths > 0.0, lengths, 1.0)[:, None]
