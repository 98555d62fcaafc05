"""Kernels by name: scikit-learn's, the paper's own, a callable, sums of them, and precomputed matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from standout._arrays import Array, Float, Rows, all_finite, dense, double, is_sparse, product, squared_lengths
from standout._checks import check_choice, check_number
from standout._messages import InvalidValueError, listed
from standout._xp import concat, is_foreign, like, namespace, zeros

# Kernels that are functions of inner products.
BY_INNER_PRODUCTS = ("linear", "rbf", "polynomial", "poly", "sigmoid", "cosine")
# Kernels that are functions of the difference of two rows. They equal 1 if the difference is zero.
SHIFT_INVARIANT = ("rbf", "laplacian")
PAPER_KERNELS = ("gaussian", "homogeneous_polynomial", "inhomogeneous_polynomial")
# Bandwidths whose square, and its inverse, are numbers of full precision.
BANDWIDTHS = (1e-150, 1e150)

Landmarks: TypeAlias = Rows
"""Rows, or for a precomputed kernel the numbers of columns."""


class Kernel(ABC):
    """A kernel with all its parameters fixed.

    Attributes
    ----------
    symmetric : bool
        Whether it is known to be symmetric. Otherwise its matrix must be checked.
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
    def __call__(self, X: Rows, Z: Landmarks) -> Float:
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
        Subtracted from all rows if the kernel is a function of their difference: far from zero, distances between rows
        would be lost in the rounding of their lengths. Sparse rows stay as they are, as they would become dense.

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
        """Whether it is known to be symmetric: scikit-learn's kernels are."""
        return not callable(self.metric)

    @property
    def semidefinite(self) -> bool:  # type: ignore[override]
        """Whether it is known to be positive semidefinite."""
        if self.metric in ("polynomial", "poly"):
            return self.params.get("coef0", 1) >= 0 and float(self.params.get("degree", 3)).is_integer()
        return self.metric in ("linear", "cosine", *SHIFT_INVARIANT)

    def __call__(self, X: Rows, Z: Landmarks) -> Float:
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
            _reject_data(self.metric, str(error))
        return double(dense(values))

    def _by_inner_products(self, X: Float, Z: Float) -> Float:
        """Compute scikit-learn's most common kernels, with products by the same BLAS as all others."""
        if self.metric == "cosine":
            return product(_unit(X), _unit(Z).T)
        if self.metric == "rbf" and is_foreign(X):
            return self._gaussian_on_device(X, Z)
        values: Float = product(X, Z.T)
        if self.metric == "linear":
            return values
        if self.metric == "rbf":
            gamma = self._gamma(X.shape[1])
            values *= -2.0
            values += squared_lengths(X)[:, np.newaxis]
            values += squared_lengths(Z)
            np.maximum(values, 0.0, out=values)
            values *= -gamma
            return np.exp(values, out=values)
        return self._of_products(values, X.shape[1])

    def _gaussian_on_device(self, X: Float, Z: Float) -> Float:
        """Compute the exponents by one product: every further pass over the values takes as long as it does."""
        xp, gamma = namespace(X), self._gamma(X.shape[1])
        ones_x, ones_z = xp.ones_like(X[:, :1]), xp.ones_like(Z[:, :1])
        first = concat([2.0 * gamma * X, -gamma * squared_lengths(X)[:, None], -gamma * ones_x], axis=1)
        second = concat([Z, ones_z, squared_lengths(Z)[:, None]], axis=1)
        return xp.exp(xp.clip(product(first, second.T), None, 0.0))

    def _by_columns(self, X: Float, Z: Float) -> Float:
        """Compute scikit-learn's other kernels for foreign arrays, as sums over columns."""
        xp = namespace(X)
        if self.metric == "laplacian":
            return xp.exp(-self._gamma(X.shape[1]) * _manhattan_distances(X, Z))
        assert isinstance(self.metric, str)
        distances = _chi2_distances(X, Z, self.metric)
        if self.metric == "additive_chi2":
            return -distances
        # The default of scikit-learn is 1 for this kernel.
        return xp.exp(-self.params.get("gamma", 1.0) * distances)

    def _gamma(self, n_features: int) -> float:
        gamma = self.params.get("gamma")
        return 1.0 / n_features if gamma is None else gamma

    def _of_products(self, values: Float, n_features: int) -> Float:
        """Compute the polynomial of inner products, or the sigmoid, in place."""
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
        # Small blocks of rows with themselves contain the diagonal and little else.
        size = 64
        return np.concatenate([np.diagonal(self(X[i : i + size], X[i : i + size])) for i in range(0, X.shape[0], size)])

    def _diagonal_on_device(self, squares: Float, n_features: int) -> Float:
        """Compute the diagonal from the squared lengths of the rows: many small blocks would leave a device idle."""
        if self.metric == "cosine":
            xp = namespace(squares)
            return xp.astype(squares > 0.0, xp.float64)
        if self.metric in ("chi2", "additive_chi2"):
            return 0.0 * squares + (1.0 if self.metric == "chi2" else 0.0)
        return self._of_products(squares, n_features)


@dataclass(frozen=True, eq=False)
class SumKernel(Kernel):
    """A sum of kernels with non-negative weights (Remark 5).

    Attributes
    ----------
    kernels : tuple of Kernel
    weights : ndarray of shape (n_kernels,)

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
        """Whether all kernels are known to be symmetric."""
        return all(kernel.symmetric for kernel in self.kernels)

    @property
    def semidefinite(self) -> bool:  # type: ignore[override]
        """Whether all kernels are known to be positive semidefinite."""
        return all(kernel.semidefinite for kernel in self.kernels)

    def __call__(self, X: Rows, Z: Landmarks) -> Float:
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
    """Rows that are kernel values with all fitted rows, in the order of the fitted rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import PrecomputedKernel
    >>> values = np.array([[4.0, 2.0, 1.0], [2.0, 5.0, 3.0]])
    >>> PrecomputedKernel()(values, [0, 2])
    array([[4., 1.],
           [2., 3.]])
    """

    def __call__(self, X: Rows, Z: Landmarks) -> Float:
        """Give the columns Z of the rows X."""
        return double(dense(X[:, np.asarray(Z)]))

    def diagonal(self, X: Rows) -> Float:
        """Not available: a row does not tell which of its columns is the kernel with itself."""
        raise NotImplementedError


def resolve_kernel(
    kernel: str | Callable[..., Any],
    *,
    gamma: float | None = None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: dict[str, Any] | None = None,
    origin: Float | None = None,
) -> Kernel:
    """Which function is this kernel, with all its parameters?

    A kernel is a name of scikit-learn (see `sklearn.metrics.pairwise.pairwise_kernels`), a name of the paper, or a
    callable. Of the paper's names, ``"gaussian"`` is ``exp(-|x - z|² / (2 bandwidth²))``,
    ``"homogeneous_polynomial"`` is ``(x·z)^degree`` and ``"inhomogeneous_polynomial"`` is ``(x·z + coef0)^degree``.

    Parameters
    ----------
    kernel : str or callable
    gamma, degree, coef0 : float
        Parameters of scikit-learn's kernels, as far as the kernel has them.
    kernel_params : dict, default=None
        Other parameters.
    origin : ndarray of shape (n_features,), default=None
        A point near the data, for kernels that are functions of differences.

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
        advice = "Give the kernel 'gaussian' a number of the size of distances: kernel_params={{'bandwidth': 5.0}}."
        bandwidth = check_number(params.get("bandwidth"), "bandwidth", BANDWIDTHS, advice)
        kernel, params = "rbf", {"gamma": 0.5 / bandwidth**2}
    elif kernel == "homogeneous_polynomial":
        kernel, params = "polynomial", {"gamma": 1.0, "coef0": 0.0, "degree": degree, **params}
    elif kernel == "inhomogeneous_polynomial":
        kernel, params = "polynomial", {"gamma": 1.0, "coef0": coef0, "degree": degree, **params}
    else:
        known = sorted({*PAIRWISE_KERNEL_FUNCTIONS, *PAPER_KERNELS, "precomputed"})
        check_choice(kernel, "kernel", known, "Use a callable, or one of {known}.")
        defaults = {"gamma": gamma, "degree": degree, "coef0": coef0}
        allowed = KERNEL_PARAMS.get(kernel, frozenset())
        _check_params(params, sorted(allowed), kernel)
        # scikit-learn has its own default for a gamma of None.
        params = {key: value for key, value in {**defaults, **params}.items() if key in allowed and value is not None}
    return NamedKernel(kernel, params, origin if kernel in SHIFT_INVARIANT else None)


def median_distance(rows: Rows) -> float:
    """Give the median distance between two different rows of some; 1 if most of them are equal."""
    xp, rows = namespace(rows), double(dense(rows))
    centred = rows - xp.mean(rows, axis=0)
    lengths = squared_lengths(centred)
    squares = xp.reshape(lengths[:, None] + lengths - 2.0 * product(centred, centred.T), (-1,))
    # The distances of rows to themselves come first.
    n_rows = rows.shape[0]
    median = float(xp.sort(squares)[n_rows + n_rows * (n_rows - 1) // 2]) if n_rows > 1 else 0.0
    return float(np.sqrt(median)) if median > 0.0 else 1.0


def _unit(rows: Float) -> Float:
    """Scale the rows to unit length; rows of zeros stay zeros."""
    xp = namespace(rows)
    lengths = xp.sqrt(squared_lengths(rows))
    return rows / xp.where(lengths > 0.0, lengths, 1.0)[:, None]


# --- kernels of foreign arrays that are sums over columns -----------------------------------------------------------


def _manhattan_distances(X: Array, Z: Array) -> Array:
    """Give ``Σ |x - z|`` of every row of X with every row of Z.

    One column after the other: an array of all differences would be larger by the number of columns.
    """
    distances = zeros((X.shape[0], Z.shape[0]), X)
    for column in range(X.shape[1]):
        distances += abs(X[:, column][:, None] - Z[:, column][None, :])
    return distances


def _chi2_distances(X: Array, Z: Array, metric: str) -> Array:
    """Give ``Σ (x - z)² / (x + z)`` of every row of X with every row of Z. Numbers must not be negative."""
    xp = namespace(X)
    for rows, name in ((X, "X"), (Z, "Y")):
        if not bool(xp.all(rows >= 0.0)):
            _reject_data(metric, f"{name} contains negative values")  # in the words of scikit-learn
    distances = zeros((X.shape[0], Z.shape[0]), X)
    for column in range(X.shape[1]):
        x, z = X[:, column][:, None], Z[:, column][None, :]
        # If both are zero, so is their difference, and the divisor does not matter.
        distances += (x - z) ** 2 / xp.where(x + z > 0.0, x + z, 1.0)
    return distances


# --- checks ---------------------------------------------------------------------------------------------------------


def check_kernel_numbers(gamma: Any, degree: Any, coef0: Any) -> None:
    """Check the numbers that scikit-learn's kernels take."""
    if gamma is not None:
        check_number(gamma, "gamma", (0, np.inf), "Give a positive number, or {v.None}.", strict=True)
    check_number(degree, "degree", (0, np.inf), "Give a positive number.", strict=True)
    check_number(coef0, "coef0", (-np.inf, np.inf), "Give a finite number.")


def _check_params(params: dict[str, Any], allowed: list[str], kernel: str) -> None:
    """Check the names and the numbers of a kernel's parameters."""
    unknown = sorted(set(params) - set(allowed))
    if unknown:
        problem, advice = (
            "the kernel {kernel!r} does not have {unknown}: it has {known}",
            "Remove what it does not have.",
        )
        known = listed("parameter", allowed) if allowed else "no parameters"
        facts = {"kernel": kernel, "unknown": listed("parameter", unknown), "known": known}
        raise InvalidValueError(problem, limit=allowed, advice=advice, **facts)
    check_kernel_numbers(params.get("gamma"), params.get("degree", 1), params.get("coef0", 0))


def _reject_data(kernel: str, reason: str) -> NoReturn:
    """Reject data for which a kernel is not defined, such as negative numbers for a kernel of counts."""
    problem = "the kernel {kernel!r} cannot be computed from these data: {reason}"
    said = " ".join(reason.split()).rstrip(".")
    raise InvalidValueError(problem, advice="Use another kernel.", kernel=kernel, reason=said) from None


def reject_indefinite(where: str, *, kernel_rows: bool = True) -> NoReturn:
    """Reject a kernel that is not an inner product; `kernel_rows` tells whether the method can use its rows instead."""
    use_rows = "Use {p.approximation:exact}, which works with the kernel rows, or another kernel."
    raise InvalidValueError(
        "the kernel is not positive semidefinite on {where}: no coordinates have it as their inner product",
        advice=use_rows if kernel_rows else "Use another kernel.",
        where=where,
    )


def check_kernel_matrix(matrix: Float, symmetric: bool) -> None:
    """Check that a kernel matrix is finite, and that it is symmetric unless that is known."""
    if not all_finite(matrix):
        raise InvalidValueError(
            "the kernel has values that are not finite numbers",
            advice="Rescale the data, or check the kernel: a degree that is not a whole number needs positive numbers.",
        )
    if symmetric:
        return
    size, largest = len(matrix), max(float(np.max(matrix, initial=0.0)), -float(np.min(matrix, initial=0.0)))
    for start in range(0, size, 512):
        apart = np.abs(matrix[start : start + 512] - matrix[:, start : start + 512].T)
        if float(np.max(apart)) > 1e-8 * largest:
            row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
            problem = (
                "the kernel is not symmetric: entries ({row}, {column}) and ({column}, {row}) differ by {apart:.3g}"
            )
            advice = "Give a symmetric kernel, with the rows of all datasets in one order."
            facts = {"row": start + int(row), "column": int(column), "apart": float(np.max(apart))}
            raise InvalidValueError(problem, advice=advice, **facts)
