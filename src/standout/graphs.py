"""Columns that are neighbours: graphs of pixels, of spectra and time, and of lists of edges, and their roughness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from standout._arrays import Float, product
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import column_products, eye, is_foreign, like, take
from standout.moments import Moments, ScatterMoments

__all__ = ["GraphMoments", "chain_graph", "edge_graph", "grid_graph"]

# A graph fills the matrix of the background, so that columns x columns numbers are needed.
MOST_COLUMNS = 8192


def chain_graph(n_columns: int) -> sparse.csr_array:
    """Which columns are neighbours if their order means something: wavelengths, points in time, positions?

    Parameters
    ----------
    n_columns : int

    Returns
    -------
    scipy.sparse.csr_array of shape (n_columns, n_columns)
        1 for every two columns that follow each other.

    Examples
    --------
    >>> from standout.graphs import chain_graph
    >>> chain_graph(3).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    n_columns = _whole(n_columns, "n_columns")
    return _symmetric(np.column_stack([np.arange(n_columns - 1), np.arange(1, n_columns)]), n_columns)


def grid_graph(height: int, width: int) -> sparse.csr_array:
    """Which columns are neighbours if they are the pixels of an image, row after row?

    Parameters
    ----------
    height, width : int

    Returns
    -------
    scipy.sparse.csr_array of shape (height * width, height * width)
        1 for every two pixels above or beside each other.

    Examples
    --------
    >>> from standout.graphs import grid_graph
    >>> grid_graph(2, 3).sum(axis=0)
    array([2., 3., 2., 2., 3., 2.])
    """
    numbers = np.arange(_whole(height, "height") * _whole(width, "width")).reshape(height, width)
    beside = np.column_stack([numbers[:, :-1].ravel(), numbers[:, 1:].ravel()])
    above = np.column_stack([numbers[:-1].ravel(), numbers[1:].ravel()])
    return _symmetric(np.vstack([beside, above]), numbers.size)


def edge_graph(edges: Any, n_columns: int) -> sparse.csr_array:
    """Which columns are neighbours, from a list of pairs: genes of a pathway, sensors beside each other?

    Parameters
    ----------
    edges : array-like of shape (n_edges, 2)
        Pairs of numbers of columns, from 0.
    n_columns : int

    Returns
    -------
    scipy.sparse.csr_array of shape (n_columns, n_columns)

    Examples
    --------
    >>> from standout.graphs import edge_graph
    >>> edge_graph([(0, 2)], 3).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [1., 0., 0.]])
    """
    n_columns = _whole(n_columns, "n_columns")
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        problem = f"the edges have shape {pairs.shape} and type {pairs.dtype}, but pairs of whole numbers are needed"
        raise InvalidTypeError(problem, advice="Give pairs of numbers of columns, from 0.")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n_columns):
        wrong = int(pairs.max() if pairs.max() >= n_columns else pairs.min())
        problem = f"an edge has the column {wrong}, but the columns are 0 to {n_columns - 1}"
        raise InvalidValueError(problem, advice="Number the columns from 0.")
    return _symmetric(pairs, n_columns)


def _symmetric(pairs: npt.NDArray[Any], n_columns: int) -> sparse.csr_array:
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    one = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_columns, n_columns))
    graph = (one + one.T).tocsr()
    # A pair that is given twice has the weight 1.
    graph.data[:] = 1.0
    return graph


@dataclass(frozen=True, eq=False)
class GraphMoments(Moments):
    """How rough a direction is over a graph, in the form in which pencils take variances.

    Its covariance is the Laplacian of the graph: ``uᵀLu`` is the sum of ``(uᵢ - uⱼ)²`` over all edges.

    Attributes
    ----------
    incidence : sparse array of shape (n_edges, n_features)
        ``√w`` and ``-√w`` at the ends of each edge of weight w: R with ``RᵀR = L``.
    mean : ndarray of shape (n_features,)
        Zeros, in the library and on the device of the data.

    Examples
    --------
    >>> from standout.graphs import GraphMoments, chain_graph
    >>> GraphMoments.of(chain_graph(3)).covariance()
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """

    incidence: Any
    mean: Float

    count = 1
    precision = float(np.finfo(np.float64).eps)
    norms = None
    root_level = 1e-12

    @classmethod
    def of(cls, graph: Any, reference: Float | None = None) -> GraphMoments:
        """Make it of a symmetric matrix of weights; `reference` is an array of the library of the data."""
        upper = sparse.triu(sparse.csr_array(graph), k=1).tocoo()
        numbers, roots = np.arange(upper.nnz), np.sqrt(upper.data)
        ends = np.concatenate([numbers, numbers]), np.concatenate([upper.row, upper.col])
        incidence = sparse.csr_array((np.concatenate([roots, -roots]), ends), shape=(upper.nnz, upper.shape[1]))
        nothing = np.zeros(upper.shape[1])
        return cls(incidence, nothing if reference is None else like(nothing, reference))

    @property
    def variances(self) -> Float:
        """Sum of the weights of each column's edges."""
        return like(np.asarray(self.incidence.multiply(self.incidence).sum(axis=0)).ravel(), self.mean)

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the Laplacian."""
        return float(sparse.linalg.norm(self.incidence.T @ self.incidence) ** 2)

    def covariance(self) -> Float:
        """Return the Laplacian."""
        return like((self.incidence.T @ self.incidence).toarray(), self.mean)

    def root(self) -> Float:
        """Return R with ``RᵀR`` the Laplacian."""
        return like(self.incidence.toarray(), self.mean)

    def apply(self, U: Float) -> Float:
        """Multiply the Laplacian with the columns of U."""
        if is_foreign(U):
            return product(self.covariance(), U)
        applied: Float = self.incidence.T @ (self.incidence @ U)
        return applied

    def variance(self, U: Float) -> Float:
        """Return ``uᵀLu`` for each column of U."""
        return column_products(U, self.apply(U))

    def taken(self, columns: npt.NDArray[np.intp]) -> GraphMoments:
        """Return the roughness of vectors that are zero but for some columns."""
        return GraphMoments(self.incidence[:, columns], take(self.mean, columns))

    def mapped(self, L: Float) -> Moments:
        """Return the roughness of vectors of other columns; a 1-D array stands for a diagonal matrix."""
        if L.ndim == 1 and not is_foreign(L):
            return GraphMoments(sparse.csr_array(self.incidence.multiply(L[np.newaxis, :])), self.mean)
        scatter = self.covariance()
        factor = L if L.ndim == 2 else eye(self.n_features, L) * L
        found = product(factor.T, product(scatter, factor))
        return ScatterMoments(1, 0.0 * found[0, :], found)

    def __add__(self, other: Moments) -> Moments:
        """Graphs are not merged."""
        return NotImplemented


@dataclass(frozen=True, eq=False)
class Smooth:
    """A roughness that is added to a background, in units of its mean variance.

    Attributes
    ----------
    graph : GraphMoments
    strength : float
        γ.
    """

    graph: GraphMoments
    strength: float


_ADVICE = "Give 'chain', a pair of height and width, or a symmetric matrix as those of standout.graphs."


def column_graph(smooth: Any, n_features: int, reference: Float | None = None) -> GraphMoments:
    """Check the graph that a user gives against the data, and return its roughness."""
    if n_features > MOST_COLUMNS:
        problem = f"fills the matrix of the background, and {n_features} columns are more than {MOST_COLUMNS}"
        advice = "Average neighbouring columns first, or leave out `smooth`."
        raise InvalidValueError(problem, parameter="smooth", advice=advice)
    if isinstance(smooth, str) and smooth == "chain":
        smooth = chain_graph(n_features)
    elif isinstance(smooth, tuple) and len(smooth) == 2:
        smooth = grid_graph(*smooth)
    elif not sparse.issparse(smooth):
        smooth = np.asarray(smooth)
    if getattr(smooth, "ndim", 0) != 2 or not np.issubdtype(smooth.dtype, np.number):
        raise InvalidTypeError("is not a graph", parameter="smooth", value=smooth, advice=_ADVICE)
    if smooth.shape != (n_features, n_features):
        problem = f"has a graph of shape {tuple(smooth.shape)}, but there are {n_features} columns"
        raise InvalidValueError(problem, parameter="smooth", advice=_ADVICE)
    graph = sparse.csr_array(smooth, dtype=np.float64)
    uneven = abs(graph - graph.T)
    if not np.all(np.isfinite(graph.data)) or np.any(graph.data < 0.0) or uneven.max() > 1e-12 * abs(graph).max():
        problem = "has a graph that is not symmetric, or with weights that are negative or not finite"
        raise InvalidValueError(problem, parameter="smooth", advice=_ADVICE)
    return GraphMoments.of(graph, reference)


def as_smooth(given: Any, n_features: int, reference: Float | None = None) -> Smooth:
    """Return graph and strength from the parameter `smooth`: a graph, or a pair of a graph and its strength."""
    strength: Any = 1.0
    if isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], int | np.integer):
        given, strength = given
    if isinstance(strength, bool) or not isinstance(strength, int | float | np.number) or not 0 <= strength < np.inf:
        problem, advice = f"has the strength {strength!r}", "Use a number that is at least 0."
        raise InvalidValueError(problem, parameter="smooth", advice=advice)
    return Smooth(column_graph(given, n_features, reference), float(strength))


def _whole(number: Any, name: str) -> int:
    """Check a number of columns."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise InvalidValueError("is not a positive whole number", parameter=name, value=number)
    return int(number)
