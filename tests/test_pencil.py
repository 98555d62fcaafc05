"""The solvers: against SciPy and mpmath, against each other, in any units, and at the edges where others fail."""

from contextlib import suppress

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from array_libraries import library  # noqa: F401
from standout._messages import InvalidValueError
from standout.moments import ScatterMoments, gather, span_of
from standout.pencil import Form, Pencil, choose_solver, solve

SOLVERS = ["dense", "iterative"]


def ratio(target, backgrounds, shrinkage=0.0, kind="scatter", there=lambda X: X):
    """The pencil of dPCA with backgrounds of equal weight."""
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
    """A and B as the paper writes them."""
    d = target.shape[1]
    shares = [covariance(X) for X in backgrounds]
    b = sum((1 - shrinkage) * c + shrinkage * np.trace(c) / d * np.eye(d) for c in shares) / len(shares)
    return covariance(target), b


def mixed(rng, n_rows, n_features, boost=()):
    """Correlated columns of a moderate condition number, some of them boosted."""
    X = rng.normal(size=(n_rows, n_features))
    X = X @ (np.eye(n_features) + 0.5 * rng.normal(size=(n_features, n_features)) / np.sqrt(n_features))
    X[:, : len(boost)] *= boost
    return X + rng.normal(size=n_features)


SHAPES = {"tall": (300, 200, 20), "square": (60, 60, 60), "wide": (30, 40, 90)}
# Backgrounds with too few rows for no shrinkage have tests below.
CASES = [
    (shape, shrinkage, n_backgrounds)
    for shape, (_, n, d) in SHAPES.items()
    for shrinkage in (0.0, 0.1, 0.9)
    for n_backgrounds in (1, 3)
    if shrinkage > 0.0 or n_backgrounds * (n - 1) > 2 * d
]

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
    # The error of a difference is relative to the variance from which is subtracted.
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
    with pytest.raises(ValueError, match="of such different size"):
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
