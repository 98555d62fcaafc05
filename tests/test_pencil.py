"""The solvers: against scipy, against each other, and at the edges where others fail."""

import numpy as np
import pytest
from scipy import linalg, sparse

from standout import contrast
from standout.moments import gather
from standout.pencil import Form, Pencil, choose_solver, solve
from weighing import pose_of

KINDS = {"dense": "scatter", "root": "root", "reduced": "rows", "lanczos": "scatter", "lobpcg": "rows"}
SOLVERS = list(KINDS)


def pencil_of(target, backgrounds, solver, shrinkage=0.0, weights=None, **options):
    kind = KINDS[solver]
    moments = [gather(data, kind=kind, **options) for data in (target, *backgrounds)]
    weights = np.full(len(backgrounds), 1 / len(backgrounds)) if weights is None else weights
    return contrast.discriminative(moments[0], moments[1:], weights, [shrinkage] * len(backgrounds))


def covariance(X):
    X = np.asarray(X, dtype=np.float64)
    centred = X - X.mean(axis=0)
    return centred.T @ centred / len(X)


def reference(target, backgrounds, shrinkage=0.0, weights=None):
    """A and B as the paper writes them, and scipy's leading solutions."""
    d = target.shape[1]
    weights = np.full(len(backgrounds), 1 / len(backgrounds)) if weights is None else weights
    a, b = covariance(target), np.zeros((d, d))
    for weight, background in zip(weights, backgrounds, strict=True):
        c = covariance(background)
        b += weight * ((1 - shrinkage) * c + shrinkage * np.trace(c) / d * np.eye(d))
    values, vectors = linalg.eigh(a, b)
    return a, b, values[::-1], vectors[:, ::-1]


def mixed(rng, n_rows, n_features, boost=()):
    """Correlated columns of a moderate condition number, some of them boosted."""
    X = rng.normal(size=(n_rows, n_features))
    X = X @ (np.eye(n_features) + 0.5 * rng.normal(size=(n_features, n_features)) / np.sqrt(n_features))
    X[:, : len(boost)] *= boost
    return X + rng.normal(size=n_features)


SHAPES = {"tall": (300, 200, 20), "square": (60, 60, 60), "wide": (30, 40, 90)}


# Where the backgrounds have too few rows for no shrinkage, see the tests of singular backgrounds.
CASES = [
    (shape, shrinkage, n_backgrounds)
    for shape, (_, n, d) in SHAPES.items()
    for shrinkage in (0.0, 0.1, 0.9)
    for n_backgrounds in (1, 3)
    if shrinkage > 0.0 or n_backgrounds * (n - 1) > 2 * d
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("shape", "shrinkage", "n_backgrounds"), CASES)
def test_every_solver_agrees_with_scipy(solver, shape, shrinkage, n_backgrounds, rng):
    m, n, d = SHAPES[shape]
    target = mixed(rng, m, d, boost=(9, 5, 3))
    backgrounds = [mixed(rng, n, d) for _ in range(n_backgrounds)]
    a, b, values, vectors = reference(target, backgrounds, shrinkage)
    solution = solve(pencil_of(target, backgrounds, solver, shrinkage), 3, solver=solver)
    np.testing.assert_allclose(solution.values, values[:3], rtol=1e-10)
    # uᵀBu = 1, and the same directions as scipy's, whose vectors are scaled alike.
    overlap = np.abs(np.einsum("ij,ij->j", solution.vectors, b @ vectors[:, :3]))
    np.testing.assert_allclose(overlap, 1.0, rtol=1e-9)
    np.testing.assert_allclose(solution.vectors.T @ b @ solution.vectors, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(solution.patterns, b @ solution.vectors, rtol=1e-8, atol=1e-8)
    assert solution.residuals.max() < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("make", [sparse.csr_array, np.float32, lambda X: np.asfortranarray(X)])
def test_every_solver_takes_sparse_and_single_precision_rows(solver, make, rng):
    target = np.round(mixed(rng, 150, 12, boost=(9, 5)), 2) * (rng.random((150, 12)) < 0.6)
    background = np.round(mixed(rng, 150, 12), 2) * (rng.random((150, 12)) < 0.6)
    given = make(target), make(background)
    exact = reference(*(g.toarray() if sparse.issparse(g) else g for g in (given[0],)), [background], 0.2)[2]
    solution = solve(pencil_of(given[0], [given[1]], solver, 0.2), 2, solver=solver)
    rtol = 1e-4 if make is np.float32 else 1e-10
    np.testing.assert_allclose(solution.values, exact[:2], rtol=rtol)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rank", [1, 3])
def test_every_solver_takes_a_target_of_low_rank(solver, rank, rng):
    target = rng.normal(size=(80, rank)) @ rng.normal(size=(rank, 10)) + 2
    background = mixed(rng, 80, 10)
    values = reference(target, [background], 0.1)[2]
    solution = solve(pencil_of(target, [background], solver, 0.1), 4, solver=solver)
    np.testing.assert_allclose(solution.values, np.maximum(values[:4], 0), rtol=1e-9, atol=1e-9 * values[0])
    assert np.isfinite(solution.vectors).all()
    # Beside the leading value, one of zero holds the equation as well.
    assert solution.residuals.max() < 1e-6


@pytest.mark.parametrize("rank", [2, 9])
def test_a_target_with_its_rows_may_have_fewer_directions_than_components(rank, rng):
    target = rng.normal(size=(10, rank)) @ rng.normal(size=(rank, 12))
    background = mixed(rng, 80, 12)
    problem = contrast.discriminative(gather(target, kind="rows"), [gather(background)], [1.0], [0.0])
    solution = solve(problem, 10, solver="dense")
    values = reference(target, [background])[2]
    np.testing.assert_allclose(solution.values, np.maximum(values[:10], 0), rtol=1e-9, atol=1e-9 * values[0])
    b = covariance(background)
    np.testing.assert_allclose(solution.vectors.T @ b @ solution.vectors, np.eye(10), atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_background_every_solver_gives_pca(solver, rng):
    X = mixed(rng, 60, 25, boost=(9, 5, 3))
    solution = solve(contrast.principal(gather(X, kind=KINDS[solver])), 3, solver=solver)
    _, spread, directions = linalg.svd(X - X.mean(axis=0))
    np.testing.assert_allclose(solution.values, spread[:3] ** 2 / len(X), rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.einsum("ij,ji->i", directions[:3], solution.vectors)), 1.0, rtol=1e-9)


# --- singular backgrounds -------------------------------------------------------------------------------------------


def ridge_limit(target, background, n_components, ridge):
    """Solve with a small ridge: the limit that the exact solution must be."""
    values, vectors = linalg.eigh(covariance(target), covariance(background) + ridge * np.eye(target.shape[1]))
    vectors = vectors[:, ::-1][:, :n_components]
    return values[::-1][:n_components], vectors / np.linalg.norm(vectors, axis=0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scales", [False, True])
def test_a_singular_background_is_solved_as_the_limit_of_a_ridge(solver, scales, rng):
    m, n, d = 200, 150, 12
    target = mixed(rng, m, d, boost=(2, 2, 2))
    background = mixed(rng, n, d)
    background[:, :2] = 4.0  # two features that only the target has
    background[:, 5] = background[:, 6]  # one dependence that the target does not share
    if scales:
        units = 10.0 ** rng.uniform(-1, 1, size=d)
        target, background = target * units, background * units
    solution = solve(pencil_of(target, [background], solver), 6, solver=solver)
    assert np.isinf(solution.values[:3]).all()
    assert np.isfinite(solution.values[3:]).all()
    assert solution.n_absent == 3
    assert solution.singular
    unit = solution.vectors / np.linalg.norm(solution.vectors, axis=0)
    ridge = 1e-9 * np.min(np.diagonal(covariance(target)))
    values, vectors = ridge_limit(target, background, 6, ridge)
    # The ridge's own error is of the order of the ridge; these are directions, compared by their angle.
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->j", unit, vectors)), 1.0, atol=1e-5)
    np.testing.assert_allclose(solution.values[3:], values[3:], rtol=1e-4)
    # Ordered by the target's variance at unit length.
    variance = np.einsum("ij,ij->j", unit[:, :3], covariance(target) @ unit[:, :3])
    assert np.all(np.diff(variance) < 0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_directions_that_no_dataset_has_are_left_out(solver, rng):
    target, background = mixed(rng, 100, 6, boost=(4, 2)), mixed(rng, 100, 6)
    doubled = [np.hstack([X, X[:, :1], np.full((100, 1), 7.0)]) for X in (target, background)]
    plain = reference(target, [background])[2]
    solution = solve(pencil_of(doubled[0], [doubled[1]], solver), 3, solver=solver)
    np.testing.assert_allclose(solution.values, plain[:3], rtol=1e-8)
    # Equal columns share the loading, a constant one gets none: the vector of least length.
    np.testing.assert_allclose(solution.vectors[0], solution.vectors[6], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(solution.vectors[7], 0.0, atol=1e-12)
    assert solution.n_absent == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_with_more_columns_than_rows_and_no_shrinkage_the_background_is_projected_out(solver, rng):
    target, background = rng.normal(size=(15, 60)) + 1, rng.normal(size=(20, 60))
    solution = solve(pencil_of(target, [background], solver), 2, solver=solver)
    centred = target - target.mean(axis=0)
    span = linalg.orth((background - background.mean(axis=0)).T)
    _, spread, directions = linalg.svd(centred - centred @ span @ span.T)
    assert np.isinf(solution.values).all()
    np.testing.assert_allclose(np.abs(np.einsum("ij,ji->i", directions[:2], solution.vectors)), 1.0, rtol=1e-8)


def test_lobpcg_leaves_a_background_with_too_few_rows_and_no_ridge_to_roots(rng):
    target, background = rng.normal(size=(60, 120)), rng.normal(size=(80, 120))
    solution = solve(pencil_of(target, [background], "lobpcg"), 1, solver="lobpcg")
    assert solution.solver == "root"
    assert np.isinf(solution.values).all()


def test_lanczos_finds_all_of_several_equal_ratios():
    # From one vector, iterations reach one direction of those that have the same ratio.
    a, b = np.diag(np.r_[[5.0] * 4, np.linspace(1, 2, 96)]), np.eye(100)
    problem = pose_of(a, [b])([1.0])
    np.testing.assert_allclose(solve(problem, 3, solver="lanczos").values, 5.0, rtol=1e-9)


def test_a_background_without_any_variance_gives_pca_order(rng):
    target = mixed(rng, 50, 4, boost=(5, 3))
    solution = solve(pencil_of(target, [np.ones((9, 4))], "dense"), 2, solver="dense")
    directions = linalg.svd(target - target.mean(axis=0))[2][:2]
    np.testing.assert_allclose(np.abs(np.einsum("ij,ji->i", directions, solution.vectors)), 1.0)


def test_a_dependence_of_the_background_that_the_target_hardly_breaks_is_found(rng):
    target, background = rng.normal(size=(100, 4)), rng.normal(size=(100, 4))
    target[:, 1] = 3 * target[:, 0] + 1e-6 * target[:, 1]
    background[:, 1] = 3 * background[:, 0]
    # Beside a joint spread of 1e-6, the rounding of the background passes for a share of 1e-10.
    solution = solve(pencil_of(target, [background], "root"), 2, solver="root")
    assert solution.n_absent == 1
    assert np.isinf(solution.values[0])
    assert solution.values[1] < 10
    np.testing.assert_allclose(solution.vectors[:, 0] * [1, 1, 0, 0], solution.vectors[:, 0], atol=1e-5)


def test_the_less_exact_of_two_roots_decides_on_what_is_there(rng):
    target, background = rng.normal(size=(100, 4)), rng.normal(size=(100, 4))
    background[:, 1] = background[:, 0] + background[:, 2]
    exact, rough = gather(target, kind="root"), gather(background, kind="scatter")
    solution = solve(contrast.discriminative(exact, [rough], [1.0], [0.0]), 2, solver="root")
    assert solution.n_absent == 1
    assert np.isinf(solution.values).tolist() == [True, False]
    # The same dependence in both: a direction that no dataset has.
    target[:, 1] = target[:, 0] + target[:, 2]
    exact, rough = gather(background, kind="root"), gather(target, kind="scatter")
    solution = solve(contrast.discriminative(rough, [exact], [1.0], [0.0]), 2, solver="root")
    assert (solution.rank, solution.n_absent) == (3, 0)
    assert np.isfinite(solution.values).all()


def test_with_a_ridge_no_direction_is_absent_however_small_the_ridge(rng):
    target, background = rng.normal(size=(100, 4)), rng.normal(size=(100, 4))
    background[:, 0] = 1.0
    # The root of the ridge, 5e-15, is less than the rounding at which a direction would pass for absent.
    moments = [gather(X, kind="root") for X in (target, background)]
    solution = solve(
        Pencil(Form(4, ((1.0, moments[0]),)), Form(4, ((1.0, moments[1]),), ridge=25e-30)), 1, solver="root"
    )
    assert not solution.singular
    # A cosine of 5e-15 is known to one digit.
    np.testing.assert_allclose(solution.values, covariance(target)[0, 0] / 25e-30, rtol=0.3)


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
def test_roots_solve_a_background_of_condition_1e12(where, rng):
    spectrum, ratios = np.logspace(0, -12, 10), np.linspace(1.0, 1.5, 10)
    ratios[where] = 5.0
    target, background = exactly_conditioned(rng, 400, spectrum, ratios)
    solution = solve(pencil_of(target, [background], "root"), 1, solver="root")
    assert solution.values[0] == pytest.approx(5.0, rel=1e-6)


def test_the_record_tells_when_rounding_has_cost_half_of_the_digits(rng):
    ratios = np.ones(10)
    ratios[-1] = 5.0
    for condition, accurate in ((1e4, True), (1e12, False)):
        target, background = exactly_conditioned(rng, 400, np.logspace(0, -np.log10(condition), 10), ratios)
        solution = solve(pencil_of(target, [background], "dense"), 1, solver="dense")
        assert solution.accurate == accurate
        error = abs(solution.values[0] / 5.0 - 1)
        assert error < 100 * solution.rounding[0] + 1e-9


# --- the choice -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_components", "solver"),
    [
        (40_000, 500, 2, "dense"),
        (4_000, 2_000, 2, "lanczos"),
        (4_000, 900, 2, "dense"),
        (600, 20_000, 2, "reduced"),
        (40_000, 5_000, 2, "lanczos"),
        (40_000, 5_000, 600, "dense"),
        (15_000, 100_000, 2, "reduced"),
        (1_000_000, 50_000, 2, "lobpcg"),
        (10, 10, 2, "dense"),
        (9, 10, 2, "reduced"),
    ],
)
def test_the_rule_of_the_choice(n_rows, n_features, n_components, solver):
    assert choose_solver(n_rows, n_features, n_components) == solver


def test_auto_solves_what_was_gathered_as_matrices_too(rng):
    target, background = rng.normal(size=(10, 30)), rng.normal(size=(10, 30))
    moments = [gather(X, kind="scatter") for X in (target, background)]
    problem = contrast.discriminative(moments[0], moments[1:], [1.0], [0.5])
    assert solve(problem, 2).solver == "dense"


def test_lobpcg_solves_a_huge_sparse_problem_without_forming_a_matrix(rng):
    n, d = 1000, 30_000
    shared = sparse.random(n, d, 0.001, random_state=0, format="csr", data_rvs=lambda k: rng.normal(size=k))
    background = sparse.random(n, d, 0.001, random_state=1, format="csr", data_rvs=lambda k: rng.normal(size=k))
    signal = sparse.csr_array((n, d)).tolil()
    signal[:, [7, 11]] = rng.normal(size=(n, 1)) * 2
    target = (shared + signal.tocsr()).tocsr()
    solution = solve(pencil_of(target, [background], "lobpcg", 0.3), 1, solver="lobpcg")
    exact = solve(pencil_of(target, [background], "reduced", 0.3), 1, solver="reduced")
    np.testing.assert_allclose(solution.values, exact.values, rtol=1e-8)
    assert set(np.argsort(-np.abs(solution.vectors[:, 0]))[:2]) == {7, 11}
