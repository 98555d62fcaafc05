"""How good a low-dimensional view is: whether groups are apart, subspaces are the same, and how much they hold.

Every function takes plain arrays, so that it judges any method's scores and components alike.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, optimize, sparse
from sklearn.cluster import KMeans

__all__ = ["captured_variance", "clustering_error", "principal_angles", "scatter_ratio"]

Floats = npt.NDArray[np.float64]

# 32 MB of float64: large enough for full speed of the product, small beside the data.
_BLOCK_ELEMENTS = 2**22


def clustering_error(scores: npt.ArrayLike, labels: npt.ArrayLike, *, random_state: int | None = 0) -> float:
    """Ask whether someone who sees only these scores would find the groups that the labels know of.

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
    rows = _checked_matrix(scores, "scores")
    groups = _checked_labels(labels, rows.shape[0])
    n_groups = int(groups.max()) + 1
    _check_several_groups(n_groups)
    clusters = KMeans(n_clusters=n_groups, n_init=10, random_state=random_state).fit_predict(rows)
    agreement = np.zeros((n_groups, n_groups), dtype=np.intp)
    np.add.at(agreement, (clusters, groups), 1)
    matched = optimize.linear_sum_assignment(agreement, maximize=True)
    # Counting the wrong rows keeps a perfect match at exactly 0, which 1 - share would not promise.
    return float((groups.size - agreement[matched].sum()) / groups.size)


def scatter_ratio(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Ask how far apart the groups are, measured by how spread out each one is.

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
    rows = _checked_matrix(scores, "scores")
    groups = _checked_labels(labels, rows.shape[0])
    total = _scatter(rows)
    _check_spread(total, "scores")
    within = sum(_scatter(rows[groups == group]) for group in range(int(groups.max()) + 1))
    return total / within if within > 0 else float("inf")


def principal_angles(first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
    """Ask whether two fits look at the same subspace, and if not, how far apart they are.

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
    rows = _checked_matrix(first, "first"), _checked_matrix(second, "second")
    _check_same_features(rows[0].shape[1], "first", rows[1].shape[1], "second")
    bases = _orthonormal_basis(rows[0], "first"), _orthonormal_basis(rows[1], "second")
    angles: Floats = linalg.subspace_angles(*bases)
    return angles[::-1].copy()


def captured_variance(X: npt.ArrayLike | sparse.sparray | sparse.spmatrix, components: npt.ArrayLike) -> float:
    """Ask how much of the variation in a dataset these components see.

    The share of the total variance of ``X``, about its own mean, that lies in the subspace spanned by the components.
    Components that stand out hold a larger share of the target than of any background: ask it of each dataset.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D)
        A dataset, target or background. A sparse one stays sparse, and any other is worked through in blocks of rows
        in float64, so that float32 data far from the origin lose no accuracy.
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
    rows = _checked_matrix(components, "components")
    data = _checked_data(X)
    _check_same_features(data.shape[1], "X", rows.shape[1], "components")
    basis = _orthonormal_basis(rows, "components")
    measure = _sparse_scatters if sparse.issparse(data) else _dense_scatters
    total, inside = measure(data, basis)
    _check_spread(total, "X")
    return min(inside / total, 1.0)


def _scatter(rows: Floats) -> float:
    # Measured from the first row, equal rows are exactly 0 apart; about a rounded mean they would not be.
    shifted = rows - rows[0]
    return float(np.square(shifted - shifted.mean(axis=0)).sum())


def _orthonormal_basis(rows: Floats, name: str) -> Floats:
    """Basis of the row space as columns, (D, rank)."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    _check_not_all_zero(lengths, name)
    # The rank is cut relative to the longest row, and the scale of a component says nothing about its direction.
    unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    basis: Floats = linalg.orth(unit.T)
    return basis


def _dense_scatters(data: npt.NDArray[Any], basis: Floats) -> tuple[float, float]:
    """Scatter of all of the data, and of its part inside the basis."""
    # As in _scatter: distances from a row of the data are exact where the data are constant.
    origin = data[0].astype(np.float64)
    mean = sum(((block - origin).sum(axis=0) for block in _blocks(data)), np.zeros_like(origin)) / data.shape[0]
    total = inside = 0.0
    for block in _blocks(data):
        # Centred before the product: correcting a product of uncentred rows cancels when the mean is large.
        centred = block - origin - mean
        total += float(np.square(centred).sum())
        inside += float(np.square(centred @ basis).sum())
    return total, inside


def _blocks(data: npt.NDArray[Any]) -> Iterator[Floats]:
    step = max(1, _BLOCK_ELEMENTS // data.shape[1])
    for start in range(0, data.shape[0], step):
        yield data[start : start + step].astype(np.float64)


def _sparse_scatters(data: Any, basis: Floats) -> tuple[float, float]:
    """Scatter of all of the data, and of its part inside the basis, at the cost of the stored entries."""
    columns = sparse.csc_array(data, dtype=np.float64)
    if not columns.has_canonical_format:
        # The arrays may be the caller's own, and merging repeated entries works in place.
        columns = columns.copy()
        columns.sum_duplicates()
    n_rows = columns.shape[0]
    mean = np.asarray(columns.sum(axis=0)).ravel() / n_rows
    n_stored = np.diff(columns.indptr)
    # The entries that are not stored are zeros, each at distance mean: no difference of large sums anywhere.
    stored = np.square(columns.data - np.repeat(mean, n_stored)).sum()
    total = float(stored + ((n_rows - n_stored) * np.square(mean)).sum())
    # The offset is taken off the few projected columns, in float64: centred rows would be dense.
    projected = columns @ basis - mean @ basis
    return total, float(np.square(projected).sum())


def _checked_matrix(values: npt.ArrayLike, name: str) -> Floats:
    matrix = np.asarray(values)
    _check_shape(matrix.shape, name)
    _check_numbers(matrix, name)
    return matrix.astype(np.float64)


def _checked_data(X: Any) -> Any:
    data: Any = X if sparse.issparse(X) else np.asarray(X)
    _check_shape(data.shape, "X")
    _check_numbers(data.tocoo().data if sparse.issparse(data) else data, "X")
    return data


def _checked_labels(labels: npt.ArrayLike, n_rows: int) -> npt.NDArray[np.intp]:
    """Group numbers 0, 1, … in place of the labels."""
    values = np.asarray(labels)
    if values.ndim != 1:
        raise ValueError(f"labels has {values.ndim} dimensions, but must have 1. Give one label per row.")
    if values.size != n_rows:
        raise ValueError(f"scores has {n_rows} rows, but labels has {values.size}. Give one label per row.")
    if any(value is None or value != value for value in values.tolist()):
        raise ValueError("labels has missing values, but every row must belong to a group. Drop those rows.")
    try:
        _, groups = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise TypeError("labels mixes types that cannot be sorted. Give all strings or all integers.") from error
    return groups


def _check_several_groups(n_groups: int) -> None:
    if n_groups < 2:
        raise ValueError("labels has 1 distinct value, but an error needs at least 2. Give rows of several groups.")


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} has {len(shape)} dimensions, but must have 2. "
            "Reshape a single column with .reshape(-1, 1), a single row with .reshape(1, -1)."
        )
    if 0 in shape:
        raise ValueError(f"{name} has shape {shape}, but needs a row and a column. Give at least one of each.")


def _check_numbers(values: npt.NDArray[Any], name: str) -> None:
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} has entries of type {values.dtype}, but must hold real numbers. Convert or drop them.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has missing or infinite entries, but all must be finite. Drop or impute them.")


def _check_same_features(n_first: int, first: str, n_second: int, second: str) -> None:
    if n_first != n_second:
        raise ValueError(
            f"{first} has {n_first} features, but {second} has {n_second}. "
            "Give both the same columns in the same order."
        )


def _check_not_all_zero(lengths: Floats, name: str) -> None:
    if not lengths.any():
        raise ValueError(f"{name} has only zero rows, which span nothing. Give at least one nonzero row.")


def _check_spread(total: float, name: str) -> None:
    if total == 0:
        raise ValueError(f"{name} has no variance: all rows are equal. Give rows that differ.")
