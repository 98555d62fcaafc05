"""What the tests of the weights of backgrounds share: covariances, pencils of their mixtures, and the leading ratio."""

import numpy as np
from scipy import linalg

from standout import contrast
from standout.moments import ScatterMoments


def moments_of(covariance):
    covariance = np.asarray(covariance, dtype=np.float64)
    return ScatterMoments(1000, np.zeros(len(covariance)), 1000 * covariance)


def pose_of(a, bs, shrinkage=0.0):
    target, backgrounds = moments_of(a), [moments_of(b) for b in bs]
    return lambda weights: contrast.discriminative(target, backgrounds, weights, [shrinkage] * len(bs))


def random_covariance(rng, size, boost=()):
    X = rng.normal(size=(4 * size, size)) @ (np.eye(size) + 0.7 * rng.normal(size=(size, size)) / np.sqrt(size))
    X[:, : len(boost)] *= boost
    return X.T @ X / len(X)


def problem(rng, size, n_backgrounds):
    """A target with three strong columns, and backgrounds that are strong in some of these and in others."""
    a = random_covariance(rng, size, boost=(3, 3, 3))
    return a, [random_covariance(rng, size, boost=rng.uniform(1, 3, size=min(size, 5))) for _ in range(n_backgrounds)]


def leading(a, bs, weights):
    """The leading ratio against a mixture, by scipy."""
    b = np.einsum("k,kij->ij", weights, np.asarray(bs))
    return linalg.eigh(a, b, eigvals_only=True)[-1]
