"""From moments to pencils: the matrices against the formulas, with weights and shares that all differ."""

import numpy as np
import pytest

from standout import contrast
from standout.moments import gather
from standout.pencil import Form

WEIGHTS = [0.2, 0.5, 0.3]


def covariance(X):
    return np.cov(X.T, bias=True)


@pytest.fixture
def datasets(rng):
    """A target and three backgrounds of different spread, so that no two traces are alike."""
    return [
        size * rng.normal(size=(n, 5)) * rng.uniform(0.5, 2, 5) + 1 for size, n in ((1, 40), (1, 30), (3, 20), (9, 25))
    ]


@pytest.mark.parametrize("shares", [(0.0, 0.3, 0.8), (0.6, 0.0, 0.1), (1.0, 0.2, 0.0), (1.0, 1.0, 1.0)])
def test_every_background_is_shrunk_by_its_own_share_and_counted_by_its_own_weight(shares, datasets):
    target, *backgrounds = map(gather, datasets)
    expected = np.zeros((5, 5))
    for weight, share, X in zip(WEIGHTS, shares, datasets[1:], strict=True):
        c = covariance(X)
        expected += weight * ((1 - share) * c + share * np.trace(c) / 5 * np.eye(5))
    problem = contrast.discriminative(target, backgrounds, WEIGHTS, shares)
    np.testing.assert_allclose(problem.b.matrix(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(problem.a.matrix(), covariance(datasets[0]), rtol=1e-12, atol=1e-12)


def test_a_background_without_weight_is_no_part_of_the_pencil(datasets):
    target, *backgrounds = map(gather, datasets)
    with_it = contrast.discriminative(target, backgrounds, [0.4, 0.0, 0.6], [0.3, 0.9, 0.1])
    without = contrast.discriminative(target, [backgrounds[0], backgrounds[2]], [0.4, 0.6], [0.3, 0.1])
    np.testing.assert_array_equal(with_it.b.matrix(), without.b.matrix())
    assert with_it.b.n_rows == without.b.n_rows


@pytest.mark.parametrize("kind", ["scatter", "root", "rows"])
def test_a_form_is_the_same_as_a_matrix_a_root_and_a_function(kind, datasets, rng):
    first, second, *_ = (gather(X, kind=kind) for X in datasets)
    form, U = Form(5, ((0.7, first), (2.5, second)), ridge=0.4), rng.normal(size=(5, 3))
    matrix = 0.7 * covariance(datasets[0]) + 2.5 * covariance(datasets[1]) + 0.4 * np.eye(5)
    np.testing.assert_allclose(form.matrix(), matrix, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(form.root().T @ form.root(), matrix, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(form.apply(U), matrix @ U, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(form.value(U), np.diagonal(U.T @ matrix @ U), rtol=1e-12)
    np.testing.assert_allclose(form.diagonal, np.diagonal(matrix), rtol=1e-12)


def test_a_form_is_what_is_added_less_what_is_subtracted(datasets):
    first, second, third, _ = map(gather, datasets)
    form = Form(5, ((0.7, first), (-2.5, second), (-0.1, third)), ridge=0.4)
    assert not form.is_nonnegative
    assert form.added.is_nonnegative
    assert form.subtracted.is_nonnegative
    parts = form.added.matrix() - form.subtracted.matrix() + 0.4 * np.eye(5)
    np.testing.assert_allclose(form.matrix(), parts, rtol=1e-12, atol=1e-12)
