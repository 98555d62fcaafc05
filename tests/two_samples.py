"""Targets and backgrounds for tests of inference."""

import numpy as np
from scipy import linalg

from standout import DiscriminativePCA


def two(rng, n=60, m=70, d=6, strength=0.0, k=1):
    """Return a target with k columns of larger variance, and a background."""
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    X[:, :k] *= 1.0 + strength
    return X, Y


def wide(rng, n=25, d=60):
    """Return wide rows, whose target has a factor of all columns, and the signs of that factor."""
    X, Y = two(rng, n, n, d)
    signs = np.where(rng.random(d) < 0.5, -1.0, 1.0)
    return X + 2.0 * rng.normal(size=(n, 1)) * signs, Y, signs


def fitted(X, Y, n_components=1, **options):
    return DiscriminativePCA(n_components, **options).fit(X, background=Y)


def log_ratio(X, Y, shrinkage, mean=None):
    """Return the logarithm of the largest ratio of the shrunken problem, from its definition."""
    A, B = np.cov(X.T, bias=True), np.cov(Y.T, bias=True)
    if mean is not None:
        A = (X - mean).T @ (X - mean) / len(X)
    B = (1 - shrinkage) * B + shrinkage * np.trace(B) / len(B) * np.eye(len(B))
    return np.log(linalg.eigh(A, B, eigvals_only=True)[-1])


def subjects_of(rng, n, rows, d, icc=0.5, first=0):
    """Return rows of n subjects with a common part, and the subject of each row."""
    rows = np.broadcast_to(rows, n)
    data = [np.sqrt(icc) * rng.normal(size=d) + np.sqrt(1 - icc) * rng.normal(size=(count, d)) for count in rows]
    return np.concatenate(data), np.repeat(first + np.arange(n), rows)
