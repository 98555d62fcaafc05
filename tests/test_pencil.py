"""The solvers: against SciPy and mpmath, against each other, in any units, and where other solvers fail."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from array_libraries import library  # noqa: F401
from pencils import CASES, SHAPES, SOLVERS, covariance, difference, matrices, mixed, ratio, solved
from standout._xp import inverse_cholesky, orthonormal
from standout.moments import gather
from standout.pencil import Form, Pencil, choose_solver, solve

# --- against SciPy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("shape", "shrinkage", "n_backgrounds"), CASES)
def test_every_solver_agrees_with_scipy(solver, shape, shrinkage, n_backgrounds, rng):
    m, n, d = SHAPES[shape]
    target = mixed(rng, m, d, boost=(9, 5, 3))
    backgrounds = [mixed(rng, n, d) for _ in range(n_backgrounds)]
    a, b = matrices(target, backgrounds, shrinkage)
    values, vectors = (found[..., ::-1] for found in linalg.eigh(a, b))
    solution = solved(ratio, solver, 3, target, backgrounds, shrinkage)
    np.testing.assert_allclose(solution.values, values[:3], rtol=1e-10)
    # uᵀBu = 1, and the same directions as SciPy's, whose vectors have the same scale.
    overlap = np.abs(np.einsum("ij,ij->j", solution.vectors, b @ vectors[:, :3]))
    np.testing.assert_allclose(overlap, 1.0, rtol=1e-9)
    np.testing.assert_allclose(solution.vectors.T @ b @ solution.vectors, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(solution.patterns, b @ solution.vectors, rtol=1e-8, atol=1e-8)
    assert solution.residuals.max() < 1e-6
    assert solution.accurate


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_solver_finds_the_leading_vectors_of_a_difference(solver, alpha, shape, rng):
    m, n, d = SHAPES[shape]
    target, backgrounds = mixed(rng, m, d, boost=(9, 5, 3)), [mixed(rng, n, d), mixed(rng, n, d)]
    solution = solved(difference, solver, 3, target, backgrounds, [0.3, 0.7], alpha)
    matrix = covariance(target) - alpha * (0.3 * covariance(backgrounds[0]) + 0.7 * covariance(backgrounds[1]))
    values, vectors = (found[..., ::-1] for found in linalg.eigh(matrix))
    # The error of a difference is relative to the variance of the target.
    np.testing.assert_allclose(solution.values, values[:3], atol=1e-9 * np.trace(covariance(target)))
    np.testing.assert_allclose(solution.vectors.T @ solution.vectors, np.eye(3), atol=1e-10)
    if shape != "wide" or alpha == 0.0:
        # In the wide case the values of rows outside the background's span lie close together.
        assert np.abs(np.linalg.det(solution.vectors.T @ vectors[:, :3])) > 1 - 1e-6
    assert solution.residuals.max() < 1e-7
    assert solution.accurate


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rank", [1, 3])
def test_every_solver_solves_a_target_of_low_rank(solver, rank, rng):
    target = rng.normal(size=(80, rank)) @ rng.normal(size=(rank, 10)) + 2
    background = mixed(rng, 80, 10)
    values = linalg.eigh(*matrices(target, [background], 0.1), eigvals_only=True)[::-1]
    solution = solved(ratio, solver, 4, target, [background], 0.1)
    np.testing.assert_allclose(solution.values, np.maximum(values[:4], 0), rtol=1e-9, atol=1e-9 * values[0])
    assert np.isfinite(solution.vectors).all()
    assert solution.residuals.max() < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_background_every_solver_gives_pca(solver, rng):
    X = mixed(rng, 60, 25, boost=(9, 5, 3))
    solution = solved(difference, solver, 3, X, [], [], 0.0)
    _, spread, directions = linalg.svd(X - X.mean(axis=0))
    np.testing.assert_allclose(solution.values, spread[:3] ** 2 / len(X), rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.einsum("ij,ji->i", directions[:3], solution.vectors)), 1.0, rtol=1e-9)


def test_sparse_rows_are_solved_without_forming_a_matrix(rng):
    n, d = 400, 17_000
    parts = [
        sparse.random_array(
            (n, d), density=0.002, rng=seed, format="csr", data_sampler=lambda size: rng.normal(size=size)
        )
        for seed in (0, 1)
    ]
    signal = sparse.lil_array((n, d))
    signal[:, [7, 11]] = rng.normal(size=(n, 1)) * 2
    target, background = (parts[0] + signal.tocsr()).tocsr(), parts[1]
    pencil = ratio(target, [background], 0.3, kind="auto")
    solution = solve(pencil, 1)
    assert (solution.solver, solution.accurate) == ("iterative", True)
    assert set(np.argsort(-np.abs(solution.vectors[:, 0]))[:2]) == {7, 11}
    # In the span of all rows the same problem is small, and the ridge stays a multiple of the identity.
    rows = [part.toarray() for part in (target, background)]
    basis = linalg.orth(np.vstack([part - part.mean(axis=0) for part in rows]).T)
    inside = [gather(part @ basis) for part in rows]
    small = Pencil(Form(basis.shape[1], ((1.0, inside[0]),)), Form(basis.shape[1], ((0.7, inside[1]),), pencil.b.ridge))
    np.testing.assert_allclose(solution.values, solve(small, 1).values, rtol=1e-7)


@pytest.mark.parametrize("n_copies", [3, 4])
def test_iterations_find_all_of_several_equal_values(n_copies):
    # Columns of a Hadamard matrix are exactly uncorrelated.
    rows = linalg.hadamard(128)[:, 1:101].astype(float)
    target = rows * np.sqrt(np.r_[[5.0] * n_copies, np.linspace(1, 2, 100 - n_copies)])
    np.testing.assert_allclose(solved(ratio, "iterative", 3, target, [rows]).values, 5.0, rtol=1e-9)
    for alpha in (0.5, 100.0):
        own = solved(difference, "iterative", 3, target, [rows], [1.0], alpha)
        np.testing.assert_allclose(own.values, 5.0 - alpha, atol=1e-9 * (1 + alpha))


# --- units, against mpmath ------------------------------------------------------------------------------------------


def exact_covariance(X):
    with mpmath.workdps(60):
        rows = mpmath.matrix(X.tolist())
        n, d = X.shape
        means = [mpmath.fsum(rows[i, j] for i in range(n)) / n for j in range(d)]
        centred = mpmath.matrix([[rows[i, j] - means[j] for j in range(d)] for i in range(n)])
        return centred.T * centred / n


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), powers=st.lists(st.floats(-12, 12), min_size=4, max_size=4))
def test_units_of_columns_change_neither_values_nor_scores(solver, seed, powers):
    rng = np.random.default_rng(seed)
    units = 10.0 ** np.array(powers)
    target, background = rng.normal(size=(14, 4)) * [3, 1, 1, 2] * units, rng.normal(size=(12, 4)) * units
    with mpmath.workdps(60):
        factor = mpmath.cholesky(exact_covariance(background)) ** -1
        values = mpmath.eigsy(factor * exact_covariance(target) * factor.T, eigvals_only=True)
    exact = np.array(sorted((float(value) for value in values), reverse=True))[:2]
    solution = solved(ratio, solver, 2, target, [background])
    scores = [(X - X.mean(axis=0)) @ solution.vectors for X in (target, background)]
    np.testing.assert_allclose(solution.values, exact, rtol=1e-9)
    np.testing.assert_allclose(np.var(scores[0], axis=0) / np.var(scores[1], axis=0), exact, rtol=1e-9)
    np.testing.assert_allclose(np.var(scores[1], axis=0), 1.0, rtol=1e-9)
    np.testing.assert_allclose(solution.patterns.T @ solution.vectors, np.eye(2), atol=1e-6)
    assert solution.accurate


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), power=st.floats(0, 12), shrinkage=st.sampled_from([0.1, 1.0]))
def test_a_ridge_in_different_units_is_right_or_reported(solver, seed, power, shrinkage):
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-power, power, size=4)
    target, background = rng.normal(size=(14, 4)) * [3, 1, 1, 2] * units, rng.normal(size=(12, 4)) * units
    with mpmath.workdps(60):
        b = exact_covariance(background)
        ridge = shrinkage * sum(b[i, i] for i in range(4)) / 4
        factor = mpmath.cholesky((1 - mpmath.mpf(shrinkage)) * b + ridge * mpmath.eye(4)) ** -1
        values = mpmath.eigsy(factor * exact_covariance(target) * factor.T, eigvals_only=True)
    exact = np.array(sorted((float(value) for value in values), reverse=True))[:2]
    solution = solved(ratio, solver, 2, target, [background], shrinkage)
    # The leading value has all digits. The second may be lost beside it, which the solution reports.
    np.testing.assert_allclose(solution.values[0], exact[0], rtol=1e-9)
    if solution.accurate:
        np.testing.assert_allclose(solution.values, exact, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_unit_of_all_columns_does_not_matter(scale, solver, rng):
    target, background = mixed(rng, 40, 5, boost=(4,)), mixed(rng, 40, 5)
    plain = solved(ratio, solver, 2, target, [background])
    scaled = solved(ratio, solver, 2, target * scale, [background * scale])
    np.testing.assert_allclose(scaled.values, plain.values, rtol=1e-10)
    np.testing.assert_allclose(scaled.vectors * scale, plain.vectors, rtol=1e-6)
    pca, large = (solved(difference, solver, 1, X, [], [], 0.0) for X in (target, target * scale))
    np.testing.assert_allclose(large.values / scale / scale, pca.values, rtol=1e-10)
    assert scaled.accurate
    assert large.accurate


@pytest.mark.parametrize("size", [1e-60, 1e-15, 1e15, 1e60])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_target_of_any_size_beside_the_background_has_its_ratios(size, solver, rng):
    target, background = mixed(rng, 40, 5, boost=(4,)), mixed(rng, 40, 5)
    plain = solved(ratio, solver, 2, target, [background])
    found = solved(ratio, solver, 2, target * size, [background])
    np.testing.assert_allclose(found.values / size / size, plain.values, rtol=1e-10)
    np.testing.assert_allclose(found.vectors, plain.vectors, rtol=1e-6, atol=1e-9)
    assert found.accurate


def test_variances_out_of_range_are_refused(rng):
    target, background = rng.normal(size=(2, 30, 3))
    with pytest.raises(ValueError, match="too small for double precision"):
        solve(ratio(target * 1e-156, [background * 1e-156]), 1)
    with pytest.raises(ValueError, match="differ so much that the ratio"):
        solve(ratio(target * 1e140, [background * 1e-10]), 1)
    with pytest.raises(ValueError, match="too small for double precision"):
        solve(difference(target, [background * 1e-156], [1.0], 2.0), 1)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="out of the range of double precision"):
        solve(difference(target, [background * 1e153], [1.0], 1e10), 1)


def test_a_pencil_whose_vectors_do_not_have_its_values_is_not_accurate(rng):
    from standout.pencil._record import finish

    pencil = ratio(mixed(rng, 50, 4, boost=(5,)), [mixed(rng, 50, 4)])
    right = solve(pencil, 2)
    wrong = finish(pencil, right.values, right.vectors[:, ::-1], "dense")
    assert right.consistent
    assert not wrong.consistent
    assert not wrong.accurate


# --- the choice, other libraries -------------------------------------------------------------------------------------


def test_the_rule_of_the_choice():
    assert choose_solver(1_000, 2) == "dense"
    assert choose_solver(1_001, 2) == "iterative"
    assert choose_solver(5_000, 600) == "dense"
    assert choose_solver(2_500, 2, on_device=True) == "dense"
    assert choose_solver(2_501, 2, on_device=True) == "iterative"
    assert choose_solver(16_385, 2, only_applies=True) == "iterative"


@pytest.mark.parametrize("units", [1.0, 1e9])
def test_foreign_arrays_are_solved_on_their_device(library, units, rng, monkeypatch):  # noqa: F811
    scale = np.r_[units, np.ones(11)]
    target, background = mixed(rng, 80, 12, boost=(9, 5)) * scale, mixed(rng, 70, 12) * scale
    cases = [(ratio, ([background],)), (ratio, ([background], 0.1)), (difference, ([background], [1.0], 3.0))]
    # With a ridge, a column in large units hides all others.
    for make, args in cases if units == 1.0 else cases[:1]:
        expected = solve(make(target, *args), 2)
        there = make(target, *args, there=library.there)
        with monkeypatch.context() as patched:
            library.forbid_copies(patched)
            found = solve(there, 2)
        np.testing.assert_allclose(library.back(found.values), expected.values, rtol=1e-9)
        np.testing.assert_allclose(library.back(found.vectors), expected.vectors, rtol=1e-6, atol=1e-9)


def test_a_singular_background_is_solved_on_its_device(library, rng):  # noqa: F811
    target, background = mixed(rng, 80, 6, boost=(9, 5)), mixed(rng, 70, 6)
    background[:, 2] = 1.0
    expected, found = (solve(ratio(target, [background], there=there), 2) for there in (np.asarray, library.there))
    assert np.isinf(library.back(found.values)).tolist() == [True, False]
    np.testing.assert_allclose(library.back(found.vectors), expected.vectors, atol=1e-6)


@pytest.mark.parametrize("least", [1.0, 1e-6, 1e-13])
def test_columns_of_stacks_on_a_device_become_orthonormal(least, library, rng):  # noqa: F811
    left, right = (np.linalg.qr(rng.normal(size=(2, size, 8)))[0] for size in (60, 8))
    blocks = left * np.geomspace(1.0, least, 8) @ right
    for zeros in (False, True):
        if zeros:
            # Columns of zeros and repeated columns become other directions.
            blocks[:, :, 2], blocks[:, :, 5] = 0.0, blocks[:, :, 6]
        found = library.back(orthonormal(library.there(blocks)))
        # Directions that are only rounding of the columns keep fewer digits. The span moves by the rounding errors.
        np.testing.assert_allclose(found.swapaxes(1, 2) @ found, np.stack([np.eye(8)] * 2), atol=1e-11)
        np.testing.assert_allclose(found @ (found.swapaxes(1, 2) @ blocks), blocks, atol=1e-14)


def test_factors_of_a_device_are_inverted_by_halves(library, rng, monkeypatch):  # noqa: F811
    monkeypatch.setattr("standout._xp.FACTOR_SIZE", 3)
    roots = rng.normal(size=(2, 11, 30))
    matrices = roots @ roots.swapaxes(1, 2)
    found = library.back(inverse_cholesky(library.there(matrices)))
    np.testing.assert_allclose(found, np.linalg.inv(np.linalg.cholesky(matrices)), atol=1e-10)
    for place in (0, 10):
        worse = matrices.copy()
        worse[1, place, place] = -1.0
        assert inverse_cholesky(library.there(worse)) is None


def test_a_singular_problem_of_very_many_columns_is_refused(rng, monkeypatch):
    for module in ("_solve", "_iterative"):
        monkeypatch.setattr(f"standout.pencil.{module}.FORMED_SIZE", 60)
    rows = [sparse.random_array((90, 64), density=0.05, format="csr", rng=rng) for _ in range(2)]
    rows[1] = sparse.csr_array(rows[1].multiply(np.arange(64) != 3))
    target, background = (gather(part, kind="rows") for part in rows)
    whole = Pencil(Form(64, ((1.0, target),)), Form(64, ((1.0, background),)))
    with pytest.raises(ValueError, match="background covariance is singular, and 64 columns are more than the 60"):
        solve(whole, 1)
    with_ridge = Pencil(whole.a, Form(64, ((1.0, background),), ridge=0.01))
    values = linalg.eigh(with_ridge.a.matrix(), with_ridge.b.matrix())[0]
    np.testing.assert_allclose(solve(with_ridge, 1).values, values[-1:], rtol=1e-6)
    monkeypatch.undo()
    assert np.isinf(solve(whole, 1).values).all()
