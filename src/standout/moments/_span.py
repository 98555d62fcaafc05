"""Coordinates in the span of the rows: wide data without anything of the width of the data squared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from standout._arrays import Float
from standout.moments._rows import RowMoments


def in_span(datasets: Sequence[RowMoments]) -> tuple[Float, list[Float]]:
    """What do these datasets look like in an orthonormal basis of the space that their rows span?

    With more columns than rows nothing happens outside of that space. Whatever is computed from inner products,
    variances and multiples of the identity can be computed from the coordinates, and directions found there be
    mapped back by the basis.

    Parameters
    ----------
    datasets : sequence of RowMoments

    Returns
    -------
    basis : ndarray of shape (n_features, r)
        Orthonormal columns, at most as many as there are rows.
    coordinates : list of ndarray of shape (n_rows, r)
        The rows of each dataset, centred by its own mean: ``coordinates @ basis.T`` are the centred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather, in_span
    >>> X = np.random.default_rng(0).normal(size=(5, 1000))
    >>> basis, (coordinates,) = in_span([gather(X, kind="rows")])
    >>> coordinates.shape, np.allclose(coordinates @ basis.T, X - X.mean(axis=0))
    ((5, 5), True)
    """
    rows = np.vstack([dataset.centred_rows() for dataset in datasets])
    basis, triangle = linalg.qr(rows.T, mode="economic", overwrite_a=True, check_finite=False)
    ends = np.cumsum([dataset.count for dataset in datasets])
    return basis, np.split(np.ascontiguousarray(triangle.T), ends[:-1])
