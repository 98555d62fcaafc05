"""Singular and ill-conditioned backgrounds."""

from contextlib import suppress

import numpy as np
import pytest
from scipy import linalg

from pencils import SOLVERS, covariance, difference, matrices, mixed, ratio, solved
from standout._messages import InvalidValueError
from standout.moments import ScatterMoments, gather, span_of
from standout.pencil import Form, Pencil, solve

# --- singular backgrounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("spread", [0, 1])
def test_a_singular_background_is_solved_as_the_limit_of_a_ridge(solver, spread, rng):
    target, background = mixed(rng, 200, 12, boost=(2, 2, 2)), mixed(rng, 150, 12)
    background[:, :2] = 4.0  # two columns that only the target has
    background[:, 5] = background[:, 6]  # one dependence that the target does not share
    units = 10.0 ** rng.uniform(-spread, spread, size=12)
    target, background = target * units, background * units
    solution = solved(ratio, solver, 6, target, [background])
    assert np.isinf(solution.values).tolist() == [True] * 3 + [False] * 3
    assert (solution.n_absent, solution.singular) == (3, True)
    unit = solution.vectors / np.linalg.norm(solution.vectors, axis=0)
    ridge = 1e-9 * np.min(np.diagonal(covariance(target)))
    values, vectors = linalg.eigh(covariance(target), covariance(background) + ridge * np.eye(12))
    values, vectors = values[::-1][:6], vectors[:, ::-1][:, :6]
    # The error of the ridge is of the order of the ridge.
    overlap = np.abs(np.einsum("ij,ij->j", unit, vectors / np.linalg.norm(vectors, axis=0)))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-5)
    np.testing.assert_allclose(solution.values[3:], values[3:], rtol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("power", [0, 10])
def test_a_singular_background_in_any_units_has_scores_without_variance(solver, power, rng):
    target, background = mixed(rng, 100, 6, boost=(4, 2)), mixed(rng, 100, 6)
    background[:, 2] = background[:, 3]
    units = 2.0 ** rng.integers(-4 * power, 4 * power + 1, size=6)
    solution = solved(ratio, solver, 2, target * units, [background * units])
    assert np.isinf(solution.values).tolist() == [True, False]
    scores = [(X * units) @ solution.vectors for X in (target, background)]
    assert np.var(scores[1][:, 0]) < 1e-12 * np.var(scores[0][:, 0])
    assert np.var(scores[0][:, 1]) / np.var(scores[1][:, 1]) == pytest.approx(solution.values[1], rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_directions_that_no_dataset_has_are_left_out(solver, rng):
    target, background = mixed(rng, 100, 6, boost=(4, 2)), mixed(rng, 100, 6)
    doubled = [np.hstack([X, X[:, :1], np.full((100, 1), 7.0)]) for X in (target, background)]
    plain = linalg.eigh(*matrices(target, [background]), eigvals_only=True)[::-1]
    solution = solved(ratio, solver, 3, doubled[0], [doubled[1]])
    np.testing.assert_allclose(solution.values, plain[:3], rtol=1e-8)
    # Equal columns share the loading, and a constant column has none: the vector of least length.
    np.testing.assert_allclose(solution.vectors[0], solution.vectors[6], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(solution.vectors[7], 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="n_components=7 is more than 6"):
        solved(ratio, solver, 7, doubled[0], [doubled[1]])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_difference_leaves_out_directions_that_no_dataset_has(solver, rng):
    directions = rng.normal(size=(5, 40))
    target, background = (rng.normal(size=(300, 5)) @ directions for _ in range(2))
    basis = linalg.orth(directions.T)
    for alpha in (1.0, 100.0):
        values = linalg.eigvalsh(basis.T @ (covariance(target) - alpha * covariance(background)) @ basis)[::-1]
        solution = solved(difference, solver, 2, target, [background], [1.0], alpha)
        np.testing.assert_allclose(solution.values, values[:2], rtol=1e-8)
        np.testing.assert_allclose(solution.vectors.T @ solution.vectors, np.eye(2), atol=1e-10)


def test_a_direction_that_is_lost_in_rounding_is_left_out_of_a_difference(rng):
    # Its entry in the last column is small, so that the last pivot is more than rounding.
    lost = np.r_[rng.normal(size=8), 0.0]
    lost = np.r_[0.9998 * lost[:8] / np.linalg.norm(lost), 0.02]
    basis = np.linalg.qr(np.c_[lost, rng.normal(size=(9, 8))])[0]
    target, background = (
        ScatterMoments(1, np.zeros(9), (basis * np.r_[1e-14, spread]) @ basis.T)
        for spread in (np.linspace(1, 2, 8), np.linspace(2, 1, 8))
    )
    # Along all directions of the data the difference is negative.
    solution = solve(Pencil(Form(9, ((1.0, target), (-10.0, background))), Form(9, (), 1.0)), 2)
    assert solution.rank == 8
    assert solution.values.max() < -2.0
    np.testing.assert_allclose(basis[:, 0] @ solution.vectors, 0.0, atol=1e-9)


def test_data_without_variance_are_refused():
    rows = np.ones((5, 3))
    for pencil in (ratio(rows, [rows]), difference(rows, [rows], [1.0], 1.0), difference(rows, [], [], 0.0)):
        with pytest.raises(ValueError, match="no dataset varies"):
            solve(pencil, 1)


def test_a_background_without_variance_gives_the_order_of_pca(rng):
    target = mixed(rng, 50, 4, boost=(5, 3))
    solution = solve(ratio(target, [np.ones((9, 4))]), 2)
    directions = linalg.svd(target - target.mean(axis=0))[2][:2]
    np.testing.assert_allclose(np.abs(np.einsum("ij,ji->i", directions, solution.vectors)), 1.0)


def test_with_a_ridge_no_direction_is_absent_however_small_the_ridge(rng):
    target, background = rng.normal(size=(100, 4)), rng.normal(size=(100, 4))
    background[:, 0] = 1.0
    moments = [gather(X) for X in (target, background)]
    # The root of the ridge, 5e-15, is less than the rounding at which a direction would count as absent.
    solution = solve(Pencil(Form(4, ((1.0, moments[0]),)), Form(4, ((1.0, moments[1]),), ridge=25e-30)), 1)
    assert not solution.singular
    np.testing.assert_allclose(solution.values, covariance(target)[0, 0] / 25e-30, rtol=0.3)


@pytest.mark.parametrize("seed", range(30))
def test_no_error_of_linear_algebra_reaches_a_user(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 7, size=2)
    parts = [rng.integers(-2, 3, size=(n, 4)) * 10.0 ** rng.integers(-8, 9) for n in shape]
    parts = [part * rng.choice([0.0, 1.0, 1e-9], size=4) for part in parts]
    for pencil in (ratio(*parts[:1], parts[1:]), difference(*parts[:1], parts[1:], [1.0], 2.0)):
        for solver in ("auto", "iterative"):
            n_components = int(rng.integers(1, 5))
            with suppress(InvalidValueError):
                assert solve(pencil, n_components, solver=solver).vectors.shape == (4, n_components)


# --- ill-conditioned backgrounds ------------------------------------------------------------------------------------


def exactly_conditioned(rng, n_rows, spectrum, ratios):
    """Rows whose covariances are ``Q diag(spectrum) Qᵀ`` and ``Q diag(spectrum * ratios) Qᵀ`` up to rounding."""
    d = len(spectrum)
    turn = linalg.qr(rng.normal(size=(d, d)))[0]
    white = rng.normal(size=(2, n_rows, d))
    white -= white.mean(axis=1, keepdims=True)
    bases = [linalg.qr(w, mode="economic")[0] * np.sqrt(n_rows) for w in white]
    return (bases[0] * np.sqrt(spectrum * ratios)) @ turn.T, (bases[1] * np.sqrt(spectrum)) @ turn.T


@pytest.mark.parametrize("where", [0, -1])
def test_coordinates_in_the_span_solve_a_background_of_condition_1e12(where, rng):
    ratios = np.linspace(1.0, 1.5, 10)
    ratios[where] = 5.0
    target, background = exactly_conditioned(rng, 400, np.logspace(0, -12, 10), ratios)
    coordinates = span_of([target, background]).coordinates
    assert solved(ratio, "auto", 1, coordinates[0], coordinates[1:]).values[0] == pytest.approx(5.0, rel=1e-6)


def test_the_record_shows_that_rounding_has_cost_half_of_the_digits(rng):
    ratios = np.r_[np.ones(9), 5.0]
    for condition, accurate in ((1e4, True), (1e12, False)):
        target, background = exactly_conditioned(rng, 400, np.logspace(0, -np.log10(condition), 10), ratios)
        solution = solve(ratio(target, [background]), 1)
        assert solution.accurate == accurate
        assert abs(solution.values[0] / 5.0 - 1) < 100 * solution.rounding[0] + 1e-9
