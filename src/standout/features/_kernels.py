"""Kernels: by a name of scikit-learn or of the paper, callables, sums of kernels, and precomputed matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from standout import _arrays
from standout._arrays import Array, Float, Rows, dense, double, is_sparse, product, row_slice, squared_lengths
from standout._messages import InvalidTypeError, InvalidValueError, choices, listed
from standout._options import check_weights
from standout._xp import concat, diagonal, is_foreign, largest, like, namespace, to_host, zeros

# Sparse rows are far from zero if the squared length of their mean is more than this number times their variance.
FAR = 1e4
# Distances are computed from inner products if the squared lengths of rows, times gamma, are at most this number.
# Longer rows would lose too many digits.
WIDE_APART = 1e7
# Kernels that are functions of inner products.
BY_INNER_PRODUCTS = ("linear", "rbf", "polynomial", "poly", "sigmoid", "cosine")
# Kernels that are functions of the difference of two rows. They equal 1 if the difference is zero.
SHIFT_INVARIANT = ("rbf", "laplacian")
PAPER_KERNELS = ("gaussian", "homogeneous_polynomial", "inhomogeneous_polynomial")
# Number of rows from which the bandwidth of a kernel is computed.
BANDWIDTH_ROWS = 500

Landmarks: TypeAlias = Rows
"""Rows; for a precomputed kernel, column numbers."""


class Kernel:
    """A kernel with all its parameters fixed.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import Kernel, resolve_kernel
    >>> kernel = resolve_kernel("rbf", gamma=1.0)
    >>> isinstance(kernel, Kernel), kernel.diagonal(np.zeros((2, 3)))
    (True, array([1., 1.]))
    """

    def __call__(self, X: Rows, Z: Landmarks) -> Float:
        """Return the kernel of every row of X with every row of Z."""
        raise NotImplementedError

    def diagonal(self, X: Rows) -> Float:
        """Return the kernel of every row of X with itself."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class NamedKernel(Kernel):
    """A kernel of `sklearn.metrics.pairwise.pairwise_kernels`, or a callable.

    Attributes
    ----------
    metric : str or callable
    params : dict
    origin : ndarray or None
        Point that is subtracted from all rows. It is used only if the kernel is a function of the difference of two
        rows. If rows are far from zero, rounding errors would hide the distances between the rows. Subtracting a point
        makes sparse rows dense. So it is subtracted from sparse rows only if they are far from zero.

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

    # `check_kernel_matrix` raises an error for values out of range.
    @np.errstate(over="ignore", invalid="ignore")
    def __call__(self, X: Rows, Z: Landmarks) -> Float:
        """Return the kernel of every row of X with every row of Z."""
        # Convert SciPy's sparse matrices to sparse arrays, because the operators `*` and `@` differ between the two.
        X, Z = (sparse.csr_array(double(part)) if is_sparse(part) else double(part) for part in (X, Z))
        if self.origin is not None:
            X, Z = dense(X) - self.origin, dense(Z) - self.origin
        elif self.metric == "rbf" and is_sparse(X) and self._is_far(X, Z):
            X, Z = dense(X), dense(Z)
        if self.metric in BY_INNER_PRODUCTS and not (is_sparse(X) or is_sparse(Z)):
            return self._by_inner_products(X, Z)
        if is_foreign(X) and self.metric == "laplacian":
            return namespace(X).exp(-self._gamma(X.shape[1]) * _distances(X, Z, 1))
        if is_foreign(X):
            advice = "Use 'rbf', 'laplacian' or a polynomial kernel."
            raise InvalidTypeError(f"the kernel {self.metric!r} needs NumPy arrays", advice=advice)
        try:
            return double(dense(pairwise_kernels(X, Z, metric=self.metric, **self.params)))
        except (TypeError, ValueError) as error:
            if callable(self.metric):
                raise
            # Examples of data that cause this error: sparse rows, and negative numbers for a kernel of counts.
            said = " ".join(str(error).split()).rstrip(".")
            problem = f"the kernel {self.metric!r} cannot be computed from these data: {said}"
            raise InvalidValueError(problem, advice="Use another kernel.") from None

    def _by_inner_products(self, X: Float, Z: Float) -> Float:
        """Return scikit-learn's most common kernels, computed by `product` like all other matrix products here."""
        xp = namespace(X)
        if self.metric == "cosine":
            return product(_unit(X), _unit(Z).T)
        # BLAS returns matrices in Fortran order. Computing the transposed matrix gives C order, which is needed.
        values: Float = product(Z, X.T).T
        if self.metric == "linear":
            return values
        gamma = self._gamma(X.shape[1])
        if self.metric == "rbf":
            if self._is_far(X, Z):
                return xp.exp(-gamma * _distances(X, Z, 2))
            values *= -2.0
            values += squared_lengths(X)[:, None]
            values += squared_lengths(Z)
            values *= -gamma
            # Rounding can make the distance of equal rows negative.
            return xp.exp(xp.clip(values, None, 0.0))
        values *= gamma
        values += self.params.get("coef0", 1)
        return xp.tanh(values) if self.metric == "sigmoid" else values ** self.params.get("degree", 3)

    def _is_far(self, X: Rows, Z: Rows) -> bool:
        """Return whether distances from inner products would lose too many digits."""
        longest = max(largest(squared_lengths(X)), largest(squared_lengths(Z)))
        return self._gamma(X.shape[1]) * longest > WIDE_APART

    def _gamma(self, n_features: int) -> float:
        gamma = self.params.get("gamma")
        return 1.0 / n_features if gamma is None else gamma

    def diagonal(self, X: Rows) -> Float:
        """Return the kernel of every row of X with itself."""
        if self.metric in SHIFT_INVARIANT:
            return like(np.ones(X.shape[0]), X)
        # Compute the kernel of small blocks of rows, so that few entries outside of the diagonal are computed.
        size = 1024 if is_foreign(X) else 64
        blocks = (row_slice(X, start, start + size) for start in range(0, X.shape[0], size))
        return concat([diagonal(self(block, block)) for block in blocks])


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

    def __call__(self, X: Rows, Z: Landmarks) -> Float:
        """Return the kernel of every row of X with every row of Z."""
        total: Any = sum(weight * kernel(X, Z) for weight, kernel in self._active())
        return total

    def diagonal(self, X: Rows) -> Float:
        """Return the kernel of every row of X with itself."""
        total: Any = sum(weight * kernel.diagonal(X) for weight, kernel in self._active())
        return total

    def _active(self) -> list[tuple[float, Kernel]]:
        pairs = zip(self.weights.tolist(), self.kernels, strict=True)
        return [(weight, kernel) for weight, kernel in pairs if weight > 0.0]


class PrecomputedKernel(Kernel):
    """A kernel for data that are kernel values already.

    Each row of the data has the kernel of one sample with all fitted rows, in the order of the fitted rows.

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
        """Return the columns Z of the rows X."""
        return double(dense(X[:, np.asarray(Z)]))


def resolve_kernel(
    kernel: Any,
    *,
    gamma: float | None = None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: dict[str, Any] | None = None,
    kernel_weights: Sequence[float] | Float | None = None,
    rows: Rows | None = None,
) -> Kernel:
    """Which kernel function is described by these parameters?

    A kernel is a name of scikit-learn (see `sklearn.metrics.pairwise.pairwise_kernels`), a name of the paper, a
    callable, a pair of a name and parameters, or a list of these, which are summed. The names of the paper are:
    ``"gaussian"`` is ``exp(-|x - z|² / (2 bandwidth²))``, ``"homogeneous_polynomial"`` is ``(x·z)^degree`` and
    ``"inhomogeneous_polynomial"`` is ``(x·z + coef0)^degree``.

    Parameters
    ----------
    kernel : str, callable, tuple or list
    gamma, degree, coef0 : float
        Parameters of scikit-learn's kernels. Parameters that the kernel does not have are ignored.
    kernel_params : dict, default=None
        Other parameters.
    kernel_weights : sequence of float, default=None
        Weights of a list of kernels. None means equal weights.
    rows : rows of shape (n, n_features), default=None
        Some rows of all datasets. The default bandwidth is the median distance between these rows. Without rows, the
        default bandwidth is scikit-learn's.

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
    >>> resolve_kernel("rbf", rows=np.array([[0.0], [2.0]])).params
    {'gamma': 0.125}
    """
    options: dict[str, Any] = {"gamma": gamma, "degree": degree, "coef0": coef0, "rows": rows}
    if isinstance(kernel, list):
        if not kernel:
            raise InvalidValueError("is an empty list", parameter="kernel", advice="Give at least one kernel.")
        kernels = tuple(resolve_kernel(one, **options) for one in kernel)
        return SumKernel(kernels, np.array(check_weights("kernel_weights", kernel_weights, len(kernels), "kernels")))
    if isinstance(kernel, tuple):
        kernel, kernel_params = kernel
    params = dict(kernel_params or {})
    if callable(kernel):
        return NamedKernel(kernel, params)
    if kernel == "precomputed":
        return PrecomputedKernel()
    if kernel == "gaussian":
        kernel = "rbf"
        if "bandwidth" in params:
            params = {"gamma": 0.5 / _positive(params["bandwidth"], "bandwidth") ** 2}
    elif kernel in ("homogeneous_polynomial", "inhomogeneous_polynomial"):
        params = {"gamma": 1.0, "coef0": coef0 if kernel.startswith("in") else 0.0, "degree": degree, **params}
        kernel = "polynomial"
    known = sorted({*PAIRWISE_KERNEL_FUNCTIONS, *PAPER_KERNELS, "precomputed"})
    if not isinstance(kernel, str) or kernel not in known:
        advice = f"Use a callable, or one of {choices(known)}."
        raise InvalidValueError("is not a kernel", parameter="kernel", value=kernel, advice=advice)
    return _named(kernel, params, options)


def _named(kernel: str, params: dict[str, Any], options: dict[str, Any]) -> NamedKernel:
    """Return a kernel of scikit-learn with checked parameters, and with defaults computed from the rows."""
    allowed = KERNEL_PARAMS.get(kernel, frozenset())
    unknown = sorted(set(params) - set(allowed))
    if unknown:
        has = listed("parameter", sorted(allowed)) if allowed else "no parameters"
        problem = f"the kernel {kernel!r} does not have {listed('parameter', unknown)}: it has {has}"
        raise InvalidValueError(problem, advice="Remove the parameters that it does not have.")
    rows = options["rows"]
    defaults = {name: options[name] for name in ("gamma", "degree", "coef0")}
    params = {key: value for key, value in {**defaults, **params}.items() if key in allowed and value is not None}
    origin = None
    if kernel in SHIFT_INVARIANT and rows is not None:
        if is_sparse(rows):
            with np.errstate(over="ignore", invalid="ignore"):
                length = np.sum(np.square(double(rows).mean(axis=0)))
                far = length > FAR * (np.mean(squared_lengths(double(rows))) - length)
            rows = dense(rows) if far else rows
        origin = None if is_sparse(rows) else namespace(rows).mean(double(rows), axis=0)
        if "gamma" not in params:
            distance = median_distance(rows, manhattan=kernel == "laplacian")
            params["gamma"] = 0.5 / distance**2 if kernel == "rbf" else 1.0 / distance
    if "gamma" in params:
        _positive(params["gamma"], "gamma")
    return NamedKernel(kernel, params, origin)


def _positive(number: Any, name: str) -> float:
    """Return a number as float, after a check that it is positive and its square is within range."""
    if not isinstance(number, int | float | np.number) or not 1e-150 <= number <= 1e150:
        advice = "Give such a number, or rescale the data that it follows."
        raise InvalidValueError("is not a number in [1e-150, 1e+150]", parameter=name, value=number, advice=advice)
    return float(number)


def median_distance(rows: Rows, *, manhattan: bool = False) -> float:
    """Return the median distance between at most 500 rows.

    If the median is 0, return the median of the distances above 0. If all distances are 0, return 1.
    """
    some = to_host(double(dense(row_slice(rows[:: max(rows.shape[0] // BANDWIDTH_ROWS, 1), :], 0, BANDWIDTH_ROWS))))
    distances = np.sort(pdist(some, "cityblock" if manhattan else "euclidean"))
    for known in (distances, distances[distances > 0.0]):
        if len(known) and known[len(known) // 2] > 0.0:
            return float(known[len(known) // 2])
    return 1.0


def _unit(rows: Float) -> Float:
    """Return the rows scaled to unit length. Rows of zeros stay zeros."""
    xp = namespace(rows)
    lengths = xp.sqrt(squared_lengths(rows))
    return rows / xp.where(lengths > 0.0, lengths, 1.0)[:, None]


# --- distances that are sums over columns ---------------------------------------------------------------------------


def _distances(X: Array, Z: Array, power: int) -> Array:
    """Return ``Σ |x - z|ᵖ`` for every row x of X and every row z of Z, where the exponent p is `power`.

    Columns are added one after the other, because an array of all differences would be n_features times larger.
    """
    distances = zeros((X.shape[0], Z.shape[0]), X)
    for column in range(X.shape[1]):
        distances += abs(X[:, column][:, None] - Z[:, column][None, :]) ** power
    return distances


# --- checks ---------------------------------------------------------------------------------------------------------


def check_finite(values: Float) -> None:
    """Check that values of a kernel are finite."""
    if not _arrays.all_finite(values):
        advice = "Rescale the data, or check the kernel: a degree that is not a whole number needs positive numbers."
        raise InvalidValueError("the kernel has values that are not finite numbers", advice=advice)


def check_kernel_matrix(matrix: Float) -> None:
    """Check that a kernel matrix is finite and symmetric."""
    check_finite(matrix)
    apart = abs(matrix - matrix.T)
    most = largest(apart)
    if most > 1e-8 * largest(abs(matrix)):
        row, column = np.unravel_index(int(np.argmax(to_host(apart))), apart.shape)
        problem = f"the kernel is not symmetric: entries ({row}, {column}) and ({column}, {row}) differ by {most:.3g}"
        raise InvalidValueError(problem, advice="Give a symmetric kernel, with the rows of all datasets in one order.")
