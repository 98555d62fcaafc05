"""A measure of the quality of a low-dimensional view: can groups be found in it?"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize

from standout._messages import InvalidValueError
from standout._xp import to_host
from standout.sources import open_dataset
from standout.sources._open import as_labels

__all__ = ["clustering_error"]


def clustering_error(scores: Any, labels: Any, *, random_state: int | None = 0) -> float:
    """Can the labelled groups be found from these scores alone?

    K-means splits the scores into as many clusters as there are distinct labels. Clusters and labels are matched one to
    one so that as many rows as possible agree. The error is the share of rows that do not agree, as in the paper's
    Table I.

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
    rows = to_host(open_dataset(scores, "the view").loaded().rows)
    names, groups = np.unique(as_labels(labels, len(rows), "the view", "labels"), return_inverse=True)
    if len(names) < 2:
        problem = "are all equal, but two groups are needed"
        raise InvalidValueError(problem, parameter="labels", advice="Give rows of several groups.")
    # Imported here because these imports take long.
    from sklearn.cluster import KMeans
    from sklearn.metrics.cluster import contingency_matrix

    clusters = KMeans(n_clusters=len(names), n_init=10, random_state=random_state).fit_predict(rows)
    agreement = contingency_matrix(clusters, groups)
    matched = optimize.linear_sum_assignment(agreement, maximize=True)
    # Count the wrong rows, so that the error of a perfect match is exactly 0. One minus the share of right rows could
    # differ from 0 by rounding.
    return float((len(rows) - agreement[matched].sum()) / len(rows))
