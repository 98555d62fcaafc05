"""How good a low-dimensional view is: whether groups are apart, subspaces are the same, and how much they hold.

Every function takes plain arrays, so that it judges any method's scores and components alike.
"""

from typing import Any

import numpy as np
from scipy import linalg, optimize

from standout._arrays import Float, dense, double
from standout._validation import (
    as_rows,
    check_groups,
    check_nonzero,
    check_same_columns,
    check_several_groups,
    check_spread,
)
from standout.moments import RowMoments, gather

ALIKE = "Give both the same columns in the same order."

__all__ = ["captured_variance", "clustering_error", "principal_angles", "scatter_ratio"]


def clustering_error(scores: Any, labels: Any, *, random_state: int | None = 0) -> float:
    """Would someone who sees only these scores find the groups that the labels know of?

    K-means splits the scores into as many clusters as there are distinct labels. The clusters are matched one to one
    with the labels so that as many rows as possible agree; the rest is the error. This is the clustering error of the
    paper's Table I.

    Parameters
    ----------
    scores : array-like of shape (m, d)
        One row per data vector. The scale of the columns matters to K-means, so keep the scale of the method.
    labels : array-like of shape (m,)
        True group of each row: strings, integers or booleans. At least two different ones.
    random_state : int or None, default=0
        Seed of the ten K-means starts. ``None`` gives other starts on each call.

    Returns
    -------
    float
        Fraction of wrongly clustered rows. Two groups of equal size that cannot be told apart give about 0.5.

    Examples
    --------
    >>> from standout.metrics import clustering_error
    >>> scores = [[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]]
    >>> clustering_error(scores, ["ill", "ill", "ill", "well", "well", "well"])
    0.0
    >>> clustering_error(scores, ["ill", "ill", "well", "well", "well", "well"])
    0.16666666666666666
    """
    rows = _matrix(scores, "the scores")
    groups = check_groups(labels, rows.shape[0])
    n_groups = int(groups.max()) + 1
    check_several_groups(n_groups)
    # Loaded here: it takes a while, and what else is in this module does without.
    from sklearn.cluster import KMeans

    clusters = KMeans(n_clusters=n_groups, n_init=10, random_state=random_state).fit_predict(rows)
    agreement = np.zeros((n_groups, n_groups), dtype=np.intp)
    np.add.at(agreement, (clusters, groups), 1)
    matched = optimize.linear_sum_assignment(agreement, maximize=True)
    # Counting the wrong rows keeps a perfect match at exactly 0, which 1 - share would not promise.
    return float((groups.size - agreement[matched].sum()) / groups.size)


def scatter_ratio(scores: Any, labels: Any) -> float:
    """How far apart are the groups, measured by how spread out each one is?

    The ratio is ``S_t / sum_i S_i``: the total scatter about the overall mean, over the scatters of the groups about
    their own means. It is 1 when the groups share one mean and grows as they separate. The paper prints the centre of
    a group as the sum of its rows; its mean is meant.

    Parameters
    ----------
    scores : array-like of shape (m, d)
        One row per data vector.
    labels : array-like of shape (m,)
        The partition to be judged. The paper's Table I passes the clusters that K-means found; true labels are as
        good a question.

    Returns
    -------
    float
        At least 1, and ``inf`` when every group has shrunk to one point.

    Examples
    --------
    >>> from standout.metrics import scatter_ratio
    >>> scatter_ratio([[0.0], [2.0], [10.0], [12.0]], ["a", "a", "b", "b"])
    26.0
    >>> scatter_ratio([[0.0], [2.0], [10.0], [12.0]], ["a", "b", "b", "a"])
    1.0
    """
    rows = _matrix(scores, "the scores")
    groups = check_groups(labels, rows.shape[0])
    total = _scatter(rows)
    check_spread(total, "the scores")
    within = sum(_scatter(rows[groups == group]) for group in range(int(groups.max()) + 1))
    return total / within if within > 0 else float("inf")


def principal_angles(first: Any, second: Any) -> Float:
    """Do two fits look at the same subspace, and if not, how far apart are they?

    Angles ignore the order, sign and scale of the components, and any mixing among them, so they compare what two
    methods, two samples or two seeds really found.

    Parameters
    ----------
    first, second : array-like of shape (d, D) and (e, D)
        Components as rows, such as two ``components_``. They need not be orthonormal.

    Returns
    -------
    ndarray of shape (min(d, e),)
        Principal angles between the two row spaces in radians, in ascending order: the last one is 0 only if one
        space holds the other, and pi / 2 if some direction of the smaller is orthogonal to all of the larger.
        Linearly dependent rows span less and so give fewer angles.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.metrics import principal_angles
    >>> first = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    >>> second = [[3.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    >>> np.degrees(principal_angles(first, second)).round(6)
    array([ 0., 45.])
    """
    one, other = _matrix(first, "the first components"), _matrix(second, "the second components")
    check_same_columns(other.shape[1], None, "second", one.shape[1], None, "first", ALIKE)
    bases = _orthonormal_basis(one, "the first components"), _orthonormal_basis(other, "the second components")
    angles: Float = linalg.subspace_angles(*bases)
    return angles[::-1].copy()


def captured_variance(X: Any, components: Any) -> float:
    """How much of the variation in a dataset do these components see?

    The share of the total variance of ``X``, about its own mean, that lies in the subspace spanned by the components.
    Components that stand out hold a larger share of the target than of any background: ask it of each dataset.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D)
        A dataset, target or background; an iterator of batches will do too.
    components : array-like of shape (d, D)
        Components as rows, such as ``components_``. They need not be orthonormal, nor linearly independent.

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
    rows = _matrix(components, "the components")
    moments = gather(X, kind="rows", single=False)
    check_same_columns(rows.shape[1], None, "components", moments.n_features, None, "the data", ALIKE)
    check_spread(moments.total_variance, "the data")
    inside = float(np.sum(moments.variance(_orthonormal_basis(rows, "the components"))))
    return min(inside / moments.total_variance, 1.0)


def _scatter(rows: Float) -> float:
    """Sum of squared distances from the mean row."""
    return float(np.sum(RowMoments(rows).variances)) * len(rows)


def _orthonormal_basis(rows: Float, name: str) -> Float:
    """Give a basis of the row space as columns."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    check_nonzero(lengths, name)
    # The rank is cut relative to the longest row, and the scale of a component says nothing about its direction.
    basis: Float = linalg.orth(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0).T)
    return basis


def _matrix(values: Any, name: str) -> Float:
    return double(dense(as_rows(values, name, min_rows=1, finite=True)))
