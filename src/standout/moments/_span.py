"""Coordinates in the span of the rows: wide data without anything of the width of the data squared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from standout._algebra import count_true, largest, orthonormal, singular
from standout._arrays import Float, product, row_slice, stacked
from standout._namespaces import is_foreign
from standout.moments._centred import CentredRows
from standout.moments._rows import RowMoments


def in_span(datasets: Sequence[RowMoments | CentredRows]) -> tuple[Float, list[Float]]:
    """What do these datasets look like in an orthonormal basis of the space that their rows span?

    With more columns than rows nothing happens outside of that space. Whatever is computed from inner products,
    variances and multiples of the identity can be computed from the coordinates, and directions found there be
    mapped back by the basis.

    Parameters
    ----------
    datasets : sequence of RowMoments or CentredRows

    Returns
    -------
    basis : ndarray of shape (n_features, r)
        Orthonormal columns, as many as there are directions: fewer than rows.
    coordinates : list of ndarray of shape (n_rows, r)
        The rows of each dataset, centred by its own mean: ``coordinates @ basis.T`` are the centred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather, in_span
    >>> X = np.random.default_rng(0).normal(size=(5, 1000))
    >>> basis, (coordinates,) = in_span([gather(X, kind="rows")])
    >>> coordinates.shape, np.allclose(coordinates @ basis.T, X - X.mean(axis=0))
    ((5, 4), True)
    """
    # Each dataset counts in units of its own spread: a small one must not pass for rounding beside a large one.
    spreads = [float(np.sqrt(dataset.total_variance)) or 1.0 for dataset in datasets]
    rows = stacked([part.centred_rows() / spread for part, spread in zip(datasets, spreads, strict=True)])
    if is_foreign(rows):
        return _on_device(rows, spreads, [dataset.count for dataset in datasets])
    wide, triangle = linalg.qr(rows.T, mode="economic", overwrite_a=True, check_finite=False)
    # The centred rows of a dataset depend on each other. What is left of that dependence is rounding, and no direction.
    turn, triangle, order = linalg.qr(triangle, mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
    pivots = np.abs(np.diagonal(triangle))
    rank = int(np.sum(pivots > max(rows.shape) * np.finfo(np.float64).eps * pivots.max(initial=0.0)))
    coordinates = np.empty((len(rows), rank))
    coordinates[order] = triangle[:rank].T
    counts = [dataset.count for dataset in datasets]
    coordinates *= np.repeat(spreads, counts)[:, np.newaxis]
    return product(wide, turn[:, :rank]), np.split(coordinates, np.cumsum(counts)[:-1])


def _on_device(rows: Float, spreads: Sequence[float], counts: Sequence[int]) -> tuple[Float, list[Float]]:
    """Find basis and coordinates by a singular value decomposition: other libraries know no pivoted QR."""
    wide, triangle = orthonormal(rows.T)
    turn, sizes, right = singular(triangle)
    rank = count_true(sizes > max(rows.shape) * float(np.finfo(np.float64).eps) * largest(sizes))
    coordinates = right[:rank, :].T * sizes[:rank]
    ends = np.cumsum(counts).tolist()
    parts = [
        row_slice(coordinates, end - count, end) * spread
        for end, count, spread in zip(ends, counts, spreads, strict=True)
    ]
    return product(wide, turn[:, :rank]), parts
