"""The Laplacian of a graph of neighbouring columns, for the parameter `smooth`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from standout._messages import InvalidValueError

# Maximum number of columns. With a graph, the matrix of the background is a dense array of columns x columns.
MOST_COLUMNS = 8192
_ADVICE = "Give 'chain', a pair of height and width, or a symmetric matrix with a positive weight for each edge."


def laplacian(smooth: Any, n_features: int) -> sparse.csr_array:
    """Return the Laplacian L times the strength. `smooth` is a graph, or a pair of a graph and a strength.

    ``uᵀLu`` is the sum of ``w (uᵢ - uⱼ)²`` over all edges of weight w.

    Examples
    --------
    >>> from standout._graphs import laplacian
    >>> laplacian("chain", 3).toarray()
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    is_pair = isinstance(smooth, tuple) and len(smooth) == 2 and not isinstance(smooth[0], int | np.integer)
    smooth, strength = smooth if is_pair else (smooth, 1.0)
    if isinstance(strength, bool) or not isinstance(strength, int | float | np.number) or not 0 <= strength < np.inf:
        problem, advice = f"has the strength {strength!r}", "Use a number that is at least 0."
        raise InvalidValueError(problem, parameter="smooth", advice=advice)
    if n_features > MOST_COLUMNS:
        problem = f"needs a dense matrix of at most {MOST_COLUMNS} columns, but there are {n_features}"
        advice = "Average neighbouring columns first, or leave out `smooth`."
        raise InvalidValueError(problem, parameter="smooth", advice=advice)
    graph: Any = (n_features, 1) if isinstance(smooth, str) and smooth == "chain" else smooth
    if isinstance(graph, tuple) and all(isinstance(side, int | np.integer) and side > 0 for side in graph):
        # Imported here because this import takes long.
        from sklearn.feature_extraction.image import grid_to_graph

        graph = grid_to_graph(*graph) if len(graph) == 2 and math.prod(graph) == n_features else graph
    graph = graph if sparse.issparse(graph) else np.asarray(graph)
    if graph.shape != (n_features, n_features) or graph.dtype.kind not in "biuf":
        raise InvalidValueError(f"is not a graph of the {n_features} columns", parameter="smooth", advice=_ADVICE)
    graph = sparse.csr_array(graph, dtype=np.float64)
    uneven = abs(graph - graph.T)
    if not np.all(np.isfinite(graph.data)) or np.any(graph.data < 0.0) or uneven.max() > 1e-12 * abs(graph).max():
        problem = "has a graph that is not symmetric, or with weights that are negative or not finite"
        raise InvalidValueError(problem, parameter="smooth", advice=_ADVICE)
    return float(strength) * sparse.csr_array(sparse.csgraph.laplacian(graph))
