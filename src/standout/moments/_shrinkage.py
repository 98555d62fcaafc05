"""How far a covariance should be shrunk, told from its moments alone."""

from __future__ import annotations

import numpy as np

from standout._validation import check_fourth_powers
from standout.moments._base import Moments


def ledoit_wolf(moments: Moments) -> float:
    """How far should this covariance be pulled towards a multiple of the identity?

    The share s that minimises the expected squared error of ``(1 - s) C + s (tr C / D) I``, after Ledoit and Wolf
    (2004). It goes to zero as rows are added. The moments must have been gathered with ``norms=True``.

    Parameters
    ----------
    moments : Moments

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.covariance import ledoit_wolf_shrinkage
    >>> from standout.moments import gather, ledoit_wolf
    >>> X = np.random.default_rng(0).normal(size=(50, 20)) * np.arange(1, 21)
    >>> round(ledoit_wolf(gather(X, norms=True)), 6), round(float(ledoit_wolf_shrinkage(X)), 6)
    (0.307355, 0.307355)
    """
    quartic = moments.quartic
    if quartic is None:
        raise TypeError("Ledoit-Wolf shrinkage needs the sums of norms. Gather the moments with norms=True.")
    n_rows, n_features = moments.count, moments.n_features
    squared_norm = moments.squared_norm
    check_fourth_powers(quartic, moments.total_variance)
    # Both are n_features times the quantities of the article; only their ratio matters.
    dispersion = squared_norm - moments.total_variance * moments.total_variance / n_features
    noise = (quartic / n_rows - squared_norm) / n_rows
    # A covariance that is a multiple of the identity already, up to rounding, stays what it is under any shrinkage.
    if dispersion <= 16 * n_features * np.finfo(np.float64).eps * squared_norm or noise <= 0.0:
        return 0.0
    return float(min(noise / dispersion, 1.0))
