"""Kernels that are summed over the columns of two rows, for arrays of other libraries: scikit-learn has its own."""

from __future__ import annotations

from standout._algebra import all_true, either
from standout._arrays import Float
from standout._namespaces import zeros
from standout._validation import reject_kernel_of_data


def manhattan_distances(X: Float, Z: Float) -> Float:
    """Give ``Σ |x - z|`` of every row of X with every row of Z.

    Column by column: an array of all differences would be as many times larger as there are columns.
    """
    distances = zeros((X.shape[0], Z.shape[0]), X)
    for column in range(X.shape[1]):
        distances += abs(X[:, column][:, None] - Z[:, column][None, :])
    return distances


def chi2_distances(X: Float, Z: Float, metric: str) -> Float:
    """Give ``Σ (x - z)² / (x + z)`` of every row of X with every row of Z, where none of these is negative."""
    for rows, name in ((X, "X"), (Z, "Y")):
        if not all_true(rows >= 0.0):
            # The words are scikit-learn's.
            reject_kernel_of_data(metric, ValueError(f"{name} contains negative values"))
    distances = zeros((X.shape[0], Z.shape[0]), X)
    for column in range(X.shape[1]):
        x, z = X[:, column][:, None], Z[:, column][None, :]
        # Where both are zero so is their difference, whatever it is divided by.
        distances += (x - z) ** 2 / either(x + z > 0.0, x + z, 1.0)
    return distances
