"""How good a low-dimensional view is: separation of groups, angles between subspaces, captured variance.

All functions use plain arrays, so that they can judge the scores and components of any method.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy import linalg, optimize

from standout._arrays import Float, Rows, dense, double, row_blocks
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import to_host
from standout.sources import open_dataset

__all__ = ["captured_variance", "clustering_error", "principal_angles", "scatter_ratio"]


def clustering_error(scores: ArrayLike, labels: ArrayLike, *, random_state: int | None = 0) -> float:
    """Can the labelled groups be found from these scores alone?

    K-means splits the scores into as many clusters as there are distinct labels. Clusters and labels are matched one to
    one so that as many rows as possible agree. The error is the share of the other rows, as in the paper's Table I.

    Parameters
    ----------
    scores : array-like of shape (m, d)
        One row per data vector. K-means depends on the scale of the columns, so keep the scale of the method.
    labels : array-like of shape (m,)
        True group of each row: strings, integers or booleans. At least two different ones.
    random_state : int or None, default=0
        Seed of the ten K-means starts. ``None`` means different starts on each call.

    Returns
    -------
    float
        Fraction of wrongly clustered rows: about 0.5 for two groups of equal size that are not separated.

    Examples
    --------
    >>> from standout.metrics import clustering_error
    >>> scores = [[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]]
    >>> clustering_error(scores, ["ill", "ill", "ill", "well", "well", "well"])
    0.0
    >>> clustering_error(scores, ["ill", "ill", "well", "well", "well", "well"])
    0.16666666666666666
    """
    rows = _matrix(scores, "scores")
    groups = _groups(labels, len(rows))
    n_groups = int(groups.max()) + 1
    if n_groups < 2:
        problem = "are all equal, but two groups are needed"
        raise InvalidValueError(problem, parameter="labels", advice="Give rows of several groups.")
    # Imported here because it takes long, and the other functions do not need it.
    from sklearn.cluster import KMeans

    clusters = KMeans(n_clusters=n_groups, n_init=10, random_state=random_state).fit_predict(rows)
    agreement = np.zeros((n_groups, n_groups), dtype=np.intp)
    np.add.at(agreement, (clusters, groups), 1)
    matched = optimize.linear_sum_assignment(agreement, maximize=True)
    # The number of wrong rows makes a perfect match exactly 0. One minus the share of right rows might not.
    return float((groups.size - agreement[matched].sum()) / groups.size)


def scatter_ratio(scores: ArrayLike, labels: ArrayLike) -> float:
    """How far apart are the groups, compared with the spread of each group?

    The ratio is ``S_t / sum_i S_i``: the total scatter about the overall mean, divided by the sum of the groups'
    scatters about their own means. It is 1 if the groups have the same mean, and grows as they separate. The paper
    prints the centre of a group as the sum of its rows; its mean is meant.

    Parameters
    ----------
    scores : array-like of shape (m, d)
        One row per data vector.
    labels : array-like of shape (m,)
        The groups. The paper's Table I uses the clusters that K-means found; true labels can be used as well.

    Returns
    -------
    float
        At least 1, and ``inf`` if all rows of each group are equal.

    Examples
    --------
    >>> from standout.metrics import scatter_ratio
    >>> scatter_ratio([[0.0], [2.0], [10.0], [12.0]], ["a", "a", "b", "b"])
    26.0
    >>> scatter_ratio([[0.0], [2.0], [10.0], [12.0]], ["a", "b", "b", "a"])
    1.0
    """
    rows = _matrix(scores, "scores")
    groups = _groups(labels, len(rows))
    total = _scatter(rows)
    _check_spread(total, "scores")
    within = sum(_scatter(rows[groups == group]) for group in range(int(groups.max()) + 1))
    return total / within if within > 0 else float("inf")


def principal_angles(first: ArrayLike, second: ArrayLike) -> Float:
    """Do two fits find the same subspace, and if not, how far apart are they?

    Angles do not depend on the order, sign and scale of the components, nor on mixing among them. So they compare what
    two methods, two samples or two seeds found.

    Parameters
    ----------
    first, second : array-like of shape (d, D) and (e, D)
        Components as rows, such as two ``components_``. They need not be orthonormal.

    Returns
    -------
    ndarray of shape (min(d, e),)
        Principal angles between the two row spaces in radians, in ascending order. The last one is 0 only if one space
        contains the other, and pi / 2 if a direction of the smaller space is orthogonal to all of the larger one.
        Linearly dependent rows span a smaller space, and so give fewer angles.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.metrics import principal_angles
    >>> first = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    >>> second = [[3.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    >>> np.degrees(principal_angles(first, second)).round(6)
    array([ 0., 45.])
    """
    one, other = _matrix(first, "first"), _matrix(second, "second")
    _check_width(other, "second", one.shape[1], "`first`")
    bases = _orthonormal_basis(one, "first"), _orthonormal_basis(other, "second")
    angles: Float = linalg.subspace_angles(*bases)
    return angles[::-1].copy()


def captured_variance(X: Any, components: ArrayLike) -> float:
    """How much of the variance of a dataset do these components capture?

    The share of the total variance of ``X``, about its own mean, that is in the subspace spanned by the components.
    Components that stand out have a larger share of the target than of any background. Compute it for each dataset.

    Parameters
    ----------
    X : dataset
        Target or background, in any form that ``fit`` accepts. All rows are loaded into memory.
    components : array-like of shape (d, D)
        Components as rows, such as ``components_``. They need not be orthonormal or linearly independent.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from standout.metrics import captured_variance
    >>> X = [[3.0, 1.0], [3.0, -1.0], [-3.0, 1.0], [-3.0, -1.0]]
    >>> captured_variance(X, [[5.0, 0.0]])
    0.9
    """
    basis = _orthonormal_basis(_matrix(components, "components"), "components")
    rows: Rows = open_dataset(X, "the data").loaded().rows
    _check_width(basis.T, "components", rows.shape[1], "`X`")
    mean = sum(block.sum(axis=0) for block in _blocks(rows)) / rows.shape[0]
    total = inside = 0.0
    for block in _blocks(rows):
        total += float(np.sum((block - mean) ** 2))
        inside += float(np.sum(((block - mean) @ basis) ** 2))
    _check_spread(total, "X")
    return min(inside / total, 1.0)


def _blocks(rows: Rows) -> Iterator[Float]:
    """Return the rows in dense blocks, in float64 and less the first row, so that equal rows are exactly zero."""
    first = double(to_host(dense(rows[:1])))
    return (double(to_host(dense(block))) - first for block in row_blocks(rows))


def _scatter(rows: Float) -> float:
    """Sum the squared distances from the mean row."""
    # The first row is subtracted before, so that equal rows are exactly zero.
    moved = rows - rows[0]
    return float(np.sum((moved - moved.mean(axis=0)) ** 2))


def _orthonormal_basis(rows: Float, name: str) -> Float:
    """Return a basis of the row space as columns."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.any(lengths):
        problem = "has only zeros, which span nothing"
        raise InvalidValueError(problem, parameter=name, advice="Give at least one nonzero row.")
    # The rank is relative to the longest row, and the length of a component does not matter for its direction.
    basis: Float = linalg.orth(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0).T)
    return basis


def _check_spread(total: float, name: str) -> None:
    """Reject data without variance."""
    if total == 0:
        raise InvalidValueError("has no variance: all rows are equal", parameter=name, advice="Give rows that differ.")


def _check_width(rows: Float, name: str, width: int, other: str) -> None:
    """Reject two matrices with different numbers of columns."""
    if rows.shape[1] != width:
        problem = f"has {rows.shape[1]} columns, but {other} has {width}"
        raise InvalidValueError(problem, parameter=name, advice="Give both the same columns in the same order.")


def _matrix(values: ArrayLike, name: str) -> Float:
    """Return scores or components as a checked matrix."""
    try:
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError("is not a matrix of numbers", parameter=name, advice="Give an array.") from None
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        problem = f"has shape {matrix.shape}, or NaN or infinity in it"
        raise InvalidValueError(problem, parameter=name, advice="Give a matrix of finite numbers with rows in it.")
    return matrix


def _groups(labels: Any, n_rows: int) -> npt.NDArray[np.intp]:
    """Return a number for the label of each row."""
    words = np.asarray(labels)
    if words.shape != (n_rows,):
        problem = f"has shape {words.shape}, but there are {n_rows} rows"
        raise InvalidValueError(problem, parameter="labels", advice="Give one label for each row.")
    if any(label is None or label != label for label in words.tolist()):
        raise InvalidValueError("has missing values", parameter="labels", advice="Drop such rows.")
    return np.unique(words.astype(str), return_inverse=True)[1]
