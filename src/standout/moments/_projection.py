"""Scores: rows along filters."""

from __future__ import annotations

from standout._arrays import Float, Rows, dense, double, is_sparse, row_blocks, stacked


def project(rows: Rows, mean: Float, filters: Float) -> Float:
    """What are the scores of these rows: ``(X - mean) U``?

    Rows are centred before they are multiplied, a block at a time, so that a large mean costs no digits; sparse rows
    are corrected afterwards.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n_rows, n_features)
    mean : ndarray of shape (n_features,)
    filters : ndarray of shape (n_features, d)

    Returns
    -------
    ndarray of shape (n_rows, d)

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import project
    >>> project(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([2.0, 5.0]), np.array([[2.0], [1.0]]))
    array([[-2.],
           [ 2.]])
    """
    if is_sparse(rows):
        scores: Float = dense(rows @ filters) - mean @ filters
        return scores
    return stacked([(double(block) - mean) @ filters for block in row_blocks(rows)])
