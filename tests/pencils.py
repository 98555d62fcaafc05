"""Pencils of datasets, and their matrices as the paper writes them."""

import numpy as np

from standout.moments import gather
from standout.pencil import Form, Pencil, solve

SOLVERS = ["dense", "iterative"]


def ratio(target, backgrounds, shrinkage=0.0, kind="scatter", there=lambda X: X):
    """Return the pencil of dPCA with backgrounds of equal weight."""
    first, *rest = (gather(there(data), kind=kind) for data in (target, *backgrounds))
    size, weight = first.n_features, 1.0 / len(rest)
    ridge = shrinkage * weight * sum(part.total_variance for part in rest) / size
    terms = tuple((weight * (1.0 - shrinkage), part) for part in rest)
    return Pencil(Form(size, ((1.0, first),)), Form(size, terms, ridge))


def difference(target, backgrounds, weights, alpha, kind="scatter", there=lambda X: X):
    first, *rest = (gather(there(data), kind=kind) for data in (target, *backgrounds))
    size = first.n_features
    terms = tuple((-alpha * weight, part) for weight, part in zip(weights, rest, strict=True) if alpha > 0)
    return Pencil(Form(size, ((1.0, first), *terms)), Form(size, (), 1.0))


def solved(make, solver, n_components, *args, **options):
    solution = solve(make(*args, **options), n_components, solver=solver)
    largest = np.abs(solution.vectors).argmax(axis=0)
    assert np.all(solution.vectors[largest, np.arange(n_components)] > 0.0)
    np.testing.assert_allclose(np.diag(solution.patterns.T @ solution.vectors), 1.0, rtol=1e-6)
    return solution


def covariance(X):
    return np.cov(np.asarray(X, dtype=np.float64).T, bias=True)


def matrices(target, backgrounds, shrinkage=0.0):
    """Return A and B as the paper writes them."""
    d = target.shape[1]
    shares = [covariance(X) for X in backgrounds]
    b = sum((1 - shrinkage) * c + shrinkage * np.trace(c) / d * np.eye(d) for c in shares) / len(shares)
    return covariance(target), b


def mixed(rng, n_rows, n_features, boost=()):
    """Return correlated columns of a moderate condition number; the first ones are multiplied by `boost`."""
    X = rng.normal(size=(n_rows, n_features))
    X = X @ (np.eye(n_features) + 0.5 * rng.normal(size=(n_features, n_features)) / np.sqrt(n_features))
    X[:, : len(boost)] *= boost
    return X + rng.normal(size=n_features)


SHAPES = {"tall": (300, 200, 20), "square": (60, 60, 60), "wide": (30, 40, 90)}


# Backgrounds with too few rows for a fit without shrinkage have separate tests.
CASES = [
    (shape, shrinkage, n_backgrounds)
    for shape, (_, n, d) in SHAPES.items()
    for shrinkage in (0.0, 0.1, 0.9)
    for n_backgrounds in (1, 3)
    if shrinkage > 0.0 or n_backgrounds * (n - 1) > 2 * d
]
