"""Three datasets, and the formulas of the linear methods written out."""

import numpy as np
from scipy import linalg

# Eigenvalues of small well-conditioned matrices are accurate to a few units of rounding.
EXACT = {"rtol": 1e-10, "atol": 1e-12}
NEARLY_PCA = "ignore:the chosen shrinkage"


def covariance(rows, weights=None):
    return np.cov(rows.T, bias=True, aweights=weights)


def shrunken(C, share):
    return (1 - share) * C + share * np.trace(C) / len(C) * np.eye(len(C))


def leading(A, B, d):
    """Return the d largest values and vectors of A u = λ B u."""
    values, vectors = linalg.eigh(A, B)
    return values[::-1][:d], vectors[:, ::-1][:, :d]


def assert_same_directions(found, expected, tolerance=1e-9):
    """Compare the rows of two matrices up to their lengths and signs."""
    found, expected = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (found, expected))
    signs = np.sign(np.sum(found * expected, axis=1, keepdims=True))
    np.testing.assert_allclose(found, signs * expected, atol=tolerance)
