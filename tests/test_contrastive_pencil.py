"""Differences of covariances: every solver, and the path over α, against scipy."""

import numpy as np
import pytest
from scipy import linalg, sparse

from standout import contrast
from standout.moments import ScatterMoments, gather
from standout.pencil import solve, solve_path
from test_pencil import KINDS, SHAPES, covariance, mixed

SOLVERS = ["dense", "reduced", "lanczos", "lobpcg", "auto"]
ALPHAS = [0.0, 0.01, 1.0, 30.0, 1000.0]


def moments_of(datasets, solver):
    return [gather(data, kind=KINDS.get(solver, "auto")) for data in datasets]


def reference(target, backgrounds, weights, alpha):
    matrix = covariance(target) - alpha * sum(
        weight * covariance(data) for weight, data in zip(weights, backgrounds, strict=True)
    )
    values, vectors = linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_solver_finds_the_leading_vectors_of_a_difference(solver, alpha, shape, rng):
    m, n, d = SHAPES[shape]
    target, backgrounds = mixed(rng, m, d, boost=(9, 5, 3)), [mixed(rng, n, d), mixed(rng, n, d)]
    weights = [0.3, 0.7]
    first, *rest = moments_of([target, *backgrounds], solver)
    solution = solve(contrast.contrastive(first, rest, weights, alpha), 3, solver=solver)
    values, vectors = reference(target, backgrounds, weights, alpha)
    # Values are differences: their error is judged at the size of what is subtracted from.
    np.testing.assert_allclose(solution.values, values[:3], atol=1e-9 * np.trace(covariance(target)))
    np.testing.assert_allclose(solution.vectors.T @ solution.vectors, np.eye(3), atol=1e-10)
    if shape != "wide" or alpha == 0.0:
        # In the wide case the values of rows outside the background's span lie close together.
        assert np.abs(np.linalg.det(solution.vectors.T @ vectors[:, :3])) > 1 - 1e-6
    assert solution.residuals.max() < (1e-4 if solution.solver == "lobpcg" else 1e-7)
    assert solution.accurate


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_path_gives_what_each_step_alone_would(solver, shape, rng):
    m, n, d = SHAPES[shape]
    target, background = mixed(rng, m, d, boost=(9, 5, 3)), mixed(rng, n, d)
    first, second = moments_of([target, background], solver)
    alphas = [0.0, *np.geomspace(1e-3, 1e3, 13)]
    pencils = [contrast.contrastive(first, [second], [1.0], alpha) for alpha in alphas]
    scale = np.trace(covariance(target))
    for alpha, solution in zip(alphas, solve_path(pencils, 2, solver=solver), strict=True):
        values, _ = reference(target, [background], [1.0], alpha)
        np.testing.assert_allclose(solution.values, values[:2], atol=1e-9 * scale, err_msg=str(alpha))
        np.testing.assert_allclose(solution.vectors.T @ solution.vectors, np.eye(2), atol=1e-9)


def test_the_equation_of_a_difference_that_cancels_is_judged_at_the_size_of_the_target(rng):
    target, background = mixed(rng, 300, 8, boost=(9, 5)), mixed(rng, 200, 8)
    alpha = linalg.eigh(covariance(target), covariance(background), eigvals_only=True)[-1]
    # At the leading ratio, the difference along its direction is nothing but rounding (Theorem 2).
    first, second = moments_of([target, background], "dense")
    solution = solve(contrast.contrastive(first, [second], [1.0], alpha), 1)
    assert abs(solution.values[0]) < 1e-10 * np.trace(covariance(target))
    assert solution.residuals[0] < 1e-10


@pytest.mark.parametrize("shape", SHAPES)
def test_a_path_of_ratios_gives_what_each_step_alone_would(shape, rng):
    m, n, d = SHAPES[shape]
    target, background = mixed(rng, m, d, boost=(9, 5, 3)), mixed(rng, n, d)
    first, second = moments_of([target, background], "reduced" if shape == "wide" else "dense")
    shares = [0.0, 0.01, 0.5, 1.0]
    pencils = [contrast.discriminative(first, [second], [1.0], [share]) for share in shares]
    for pencil, solution in zip(pencils, solve_path(pencils, 2), strict=True):
        alone = solve(pencil, 2)
        np.testing.assert_allclose(solution.values, alone.values, rtol=1e-7)
        overlap = np.abs(np.einsum("ij,ij->j", solution.patterns, alone.vectors))
        np.testing.assert_allclose(overlap, 1.0, rtol=1e-6)
        assert (solution.n_absent, solution.singular) == (alone.n_absent, alone.singular)


def test_a_huge_sparse_difference_is_never_formed(rng):
    target = sparse.random_array((3000, 20_000), density=0.002, rng=rng, format="csr")
    background = sparse.random_array((18_000, 20_000), density=0.002, rng=rng, format="csr")
    target[:, :40] *= 3.0
    first, second = (gather(data, kind="rows") for data in (target, background))
    pencils = [contrast.contrastive(first, [second], [1.0], alpha) for alpha in (0.0, 1.0, 20.0)]
    solutions = list(solve_path(pencils, 2))
    for pencil, solution in zip(pencils, solutions, strict=True):
        assert solution.solver == "lobpcg"
        assert solution.residuals.max() < 1e-4
        np.testing.assert_allclose(pencil.a.value(solution.vectors), solution.values, rtol=1e-8)


@pytest.mark.parametrize("solver", ["dense", "lanczos", "auto"])
def test_values_that_occur_several_times_are_all_found(solver):
    # Columns of a Hadamard matrix: exactly uncorrelated, and four directions alike.
    rows = linalg.hadamard(64)[:, 1:31].astype(float)
    own = np.sqrt(np.r_[[5.0] * 4, np.linspace(1, 2, 26)])
    shared = np.sqrt(np.r_[[0.5] * 4, np.linspace(0.5, 3, 26)])
    first, second = moments_of([rows * own, rows * shared], solver)
    alphas = [0.0, 1.0, 10.0, 100.0, 1000.0]
    pencils = [contrast.contrastive(first, [second], [1.0], alpha) for alpha in alphas]
    for alpha, pencil, along in zip(alphas, pencils, solve_path(pencils, 3, solver=solver), strict=True):
        for solution in (along, solve(pencil, 3, solver=solver)):
            np.testing.assert_allclose(solution.values, 5 - 0.5 * alpha, atol=1e-9 * (1 + alpha))


@pytest.mark.parametrize("solver", ["dense", "reduced", "lanczos", "auto"])
@pytest.mark.parametrize("n_rows", [15, 300])
def test_directions_that_no_dataset_has_are_left_out(solver, n_rows, rng):
    directions = rng.normal(size=(5, 40))
    target, background = (rng.normal(size=(n_rows, 5)) @ directions for _ in range(2))
    first, second = moments_of([target, background], solver)
    pencils = [contrast.contrastive(first, [second], [1.0], alpha) for alpha in (1.0, 100.0)]
    basis = linalg.orth(directions.T)
    for alpha, pencil, along in zip((1.0, 100.0), pencils, solve_path(pencils, 2, solver=solver), strict=True):
        values = linalg.eigvalsh(basis.T @ (covariance(target) - alpha * covariance(background)) @ basis)[::-1]
        for solution in (along, solve(pencil, 2, solver=solver)):
            np.testing.assert_allclose(solution.values, values[:2], rtol=1e-8)


def test_directions_of_a_small_dataset_beside_a_large_one_are_counted(rng):
    turn = linalg.qr(rng.normal(size=(5, 5)))[0]
    target = 1e7 * (rng.normal(size=(100, 5)) * [1, 1, 1, 0, 0]) @ turn
    first, second = moments_of([target, rng.normal(size=(100, 5))], "dense")
    pencil = contrast.contrastive(first, [second], [1.0], 1.0)
    for solution in (solve(pencil, 4), *solve_path([pencil] * 2, 4)):
        assert solution.rank is None


def test_a_dependence_between_columns_does_not_hide_a_column_in_other_units(rng):
    target, background = (rng.normal(size=(100, 4)) * [1e-9, 1, 1, 1] for _ in range(2))
    datasets = [np.hstack([X, X[:, 2:3] + X[:, 3:4]]) for X in (target, background)]
    first, second = moments_of(datasets, "dense")
    pencil = contrast.contrastive(first, [second], [1.0], 1.0)
    for solution in (solve(pencil, 2), *solve_path([pencil] * 2, 2)):
        assert solution.rank == 4


def test_a_direction_that_is_lost_in_rounding_is_none_although_no_pivot_shows_it(rng):
    # Its entry in the last column is small, which makes the last pivot 2,500 times its variance: more than rounding.
    lost = np.r_[rng.normal(size=8), 0.0]
    lost = np.r_[0.9998 * lost[:8] / np.linalg.norm(lost), 0.02]
    basis = np.linalg.qr(np.c_[lost, rng.normal(size=(9, 8))])[0]
    target, background = (
        ScatterMoments(1, np.zeros(9), (basis * np.r_[1e-14, spread]) @ basis.T)
        for spread in (np.linspace(1, 2, 8), np.linspace(2, 1, 8))
    )
    # Along all directions that the data have, the difference is negative.
    pencil = contrast.contrastive(target, [background], [1.0], 10.0)
    for solution in (solve(pencil, 2), *solve_path([pencil] * 2, 2)):
        assert solution.rank == 8
        assert solution.values.max() < -2.0
        np.testing.assert_allclose(basis[:, 0] @ solution.vectors, 0.0, atol=1e-9)


def test_iterations_that_would_take_longer_than_lapack_are_given_up(rng):
    # With a large α the leading values are next to zero, at one end of a wide spectrum.
    scales = np.arange(1, 301) ** -0.8
    target, background = (gather(rng.normal(size=(600, 300)) * scales) for _ in range(2))
    problem = contrast.contrastive(target, [background], [1.0], 50.0)
    products = []
    apply = linalg.blas.dtrsv
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(linalg.blas, "dtrsv", lambda *given, **options: products.append(1) or apply(*given, **options))
        found = solve(problem, 2, solver="lanczos")
    expected = solve(problem, 2, solver="dense")
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-8)
    assert len(products) < 3 * 300
