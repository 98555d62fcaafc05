"""Weights of several backgrounds: the worst case with its proof, the best case, and the views in between."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from standout import contrast
from standout.datasets import make_gaussians_two_backgrounds
from standout.metrics import clustering_error, principal_angles
from standout.moments import ScatterMoments, gather
from standout.pencil import solve
from standout.selection import _weights as simplex
from standout.selection import _worst_case as search
from standout.selection import best_weights, representatives, spectral_weights, worst_case_weights


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


def check_proof(worst, a, bs, tolerance=1e-6):
    """Verify the certificate with nothing but the matrices."""
    assert worst.weights.min() >= 0.0
    assert worst.weights.sum() == pytest.approx(1.0, abs=1e-12)
    value = leading(a, bs, worst.weights)
    Z = worst.directions @ worst.directions.T
    # Z is positive semidefinite by its form, so these two lines are all that the dual problem asks for.
    against = np.array([np.sum(b * Z) for b in bs])
    assert against.max() <= 1.0 + 1e-9
    bound = np.sum(a * Z)
    assert worst.value == pytest.approx(value, rel=1e-9)
    assert worst.bound == pytest.approx(bound, rel=1e-9)
    np.testing.assert_allclose(worst.ratios, bound / against, rtol=1e-9)
    assert worst.gap == pytest.approx(max(1 - bound / value, 0.0), abs=1e-9)
    assert (value - bound) / value < tolerance


# --- the worst case -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, 20, 80])
@pytest.mark.parametrize("seed", range(3))
def test_the_worst_case_of_three_backgrounds_is_proved(size, seed):
    a, bs = problem(np.random.default_rng(seed), size, 3)
    worst = worst_case_weights(pose_of(a, bs), 3)
    check_proof(worst, a, bs)
    assert worst.n_solves <= 12


@pytest.mark.parametrize("n_backgrounds", [5, 9, 14])
def test_many_backgrounds_are_no_different(n_backgrounds, rng):
    a, bs = problem(rng, 30, n_backgrounds)
    check_proof(worst_case_weights(pose_of(a, bs), n_backgrounds), a, bs)


@pytest.mark.parametrize("seed", range(10))
def test_backgrounds_that_do_not_matter_cost_no_digits(seed):
    # Of eight backgrounds in three columns about two have a weight.
    rng = np.random.default_rng(seed)
    a, *bs = [np.diag(rng.exponential(size=3)) for _ in range(9)]
    worst = worst_case_weights(pose_of(a, bs), 8)
    check_proof(worst, a, bs, tolerance=1e-7)
    assert np.sum(worst.weights > 0) <= 3
    assert np.all((worst.weights == 0) | (worst.weights > 1e-4))


@pytest.mark.parametrize(("n_backgrounds", "n_steps"), [(2, 1000), (3, 60)])
def test_no_weights_on_a_fine_grid_are_worse(n_backgrounds, n_steps, rng):
    a, bs = problem(rng, 8, n_backgrounds)
    worst = worst_case_weights(pose_of(a, bs), n_backgrounds)
    grid = np.array(list(simplex._compositions(n_steps, n_backgrounds))) / n_steps
    values = np.array([leading(a, bs, weights) for weights in grid])
    assert values.min() >= worst.bound
    assert values.min() >= worst.value * (1 - 1e-8)
    # The grid misses the optimum by a step; the ratio, whose logarithm changes by no more than the weights' do
    # relative to themselves, by about as much.
    assert values.min() <= worst.value * (1 + 2 / n_steps)
    assert np.abs(grid[np.argmin(values)] - worst.weights).max() < 3 / n_steps


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 7),
    n_backgrounds=st.integers(1, 5),
    rank=st.integers(1, 9),
    spread=st.floats(0.0, 2.0),
)
def test_the_bound_holds_for_any_weights(seed, size, n_backgrounds, rank, spread):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_backgrounds + 1, max(rank, size), size)) * 10.0 ** rng.uniform(-spread, spread, size=size)
    rows[0, rank:] = 0.0
    a, *bs = [X.T @ X for X in rows]
    worst = worst_case_weights(pose_of(a, bs), n_backgrounds)
    assert worst.gap < 1e-6
    for weights in rng.dirichlet(np.full(n_backgrounds, 0.5), size=20):
        # 1e-9 for the rounding of scipy's own answer.
        assert leading(a, bs, weights) >= worst.bound * (1 - 1e-9)


def test_a_leading_ratio_that_is_double_at_the_optimum_needs_two_directions():
    a, bs = np.eye(2), [np.diag([1.0, 4.0]), np.diag([4.0, 1.0])]
    worst = worst_case_weights(pose_of(a, bs), 2)
    np.testing.assert_allclose(worst.weights, 0.5, atol=1e-6)
    assert worst.value == pytest.approx(0.4, rel=1e-6)
    assert worst.directions.shape == (2, 2)
    check_proof(worst, a, bs)
    # Neither direction alone would do: each fails against one background.
    alone = [min(1 / b[i, i] for b in bs) for i in range(2)]
    assert max(alone) < worst.bound


def test_a_double_ratio_is_found_where_symmetry_does_not_give_it_away(rng):
    turn = linalg.qr(rng.normal(size=(12, 12)))[0]
    diagonals = np.ones((4, 12))
    diagonals[0, :2], diagonals[1, :2], diagonals[2, :2], diagonals[3, :2] = (9, 9), (1, 5), (6, 1), (2, 2)
    diagonals[0, 2:] = rng.uniform(0.1, 0.5, size=10)
    a, *bs = [(turn * diagonal) @ turn.T for diagonal in diagonals]
    worst = worst_case_weights(pose_of(a, bs), 3)
    check_proof(worst, a, bs)
    # By hand: minimise max(9 / (ω₁ + 6 ω₂), 9 / (5 ω₁ + ω₂)); both are equal at ω = (5, 4) / 9, and 2 < 29 / 9.
    np.testing.assert_allclose(worst.weights, [5 / 9, 4 / 9, 0.0], atol=1e-6)
    assert worst.weights[2] == 0.0
    assert worst.value == pytest.approx(81 / 29, rel=1e-7)
    assert worst.directions.shape[1] == 2


def test_a_simple_leading_direction_stands_out_against_every_single_background(rng):
    a, bs = problem(rng, 20, 3)
    worst = worst_case_weights(pose_of(a, bs), 3)
    assert worst.directions.shape[1] == 1
    u = worst.directions[:, 0]
    ratios = np.array([u @ a @ u / (u @ b @ u) for b in bs])
    np.testing.assert_allclose(worst.ratios, ratios, rtol=1e-9)
    assert np.all(ratios >= worst.value * (1 - 1e-6))
    # It is the component that a fit with these weights would find. The angle goes with the root of the gap.
    component = solve(pose_of(a, bs)(worst.weights), 1).vectors.T
    assert principal_angles(component, u[np.newaxis])[0] < 1e-3


def test_ratios_are_the_slope_of_the_leading_value(rng):
    a, bs = problem(rng, 10, 2)
    bs = [*bs, 0.3 * bs[0] + 0.1 * bs[1]]  # worse than a mixture of the others everywhere: its weight is zero
    worst = worst_case_weights(pose_of(a, bs), 3)
    assert worst.weights[2] == 0.0
    step = 1e-5
    slopes = [
        (leading(a, bs, worst.weights + step * e) - leading(a, bs, worst.weights - step * e)) / (2 * step)
        for e in np.eye(3)
    ]
    # dλ/dωₖ = -λ uᵀBₖu, and uᵀBₖu = λ / ratioₖ at uᵀBu = 1. The optimum itself is known to the root of the gap.
    np.testing.assert_allclose(slopes, -(worst.value**2) / worst.ratios, rtol=1e-4)


def test_the_barrier_is_differentiated_correctly(rng):
    a, bs = problem(rng, 6, 3)
    bs, barrier = np.array(bs), 0.37
    levels = leading(a, bs, np.full(3, 1 / 3)) * rng.uniform(0.8, 1.2, size=3)

    def value(relative):
        v = levels * (1 + relative)
        return v.sum() / barrier - np.linalg.slogdet(np.einsum("k,kij->ij", v, bs) - a)[1] - np.log(v).sum()

    def gradient(relative):
        v = levels * (1 + relative)
        return search._barrier_terms(v, barrier, a, bs)[0] / (1 + relative)

    step = 1e-5
    by_value = [(value(step * e) - value(-step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(gradient(np.zeros(3)), by_value, rtol=1e-6, atol=1e-6)
    hessian = np.array([(gradient(step * e) - gradient(-step * e)) / (2 * step) for e in np.eye(3)])
    here, whitened, _ = search._barrier_terms(levels, barrier, a, bs)
    np.testing.assert_allclose(search._newton_step(here, whitened), np.linalg.solve(hessian, -here), rtol=1e-6)


def test_columns_in_wildly_different_units_change_nothing(rng):
    a, bs = problem(rng, 15, 3)
    units = 10.0 ** rng.uniform(-6, 6, size=15)
    scale = np.outer(units, units)
    worst = worst_case_weights(pose_of(a, bs), 3)
    scaled = worst_case_weights(pose_of(a * scale, [b * scale for b in bs]), 3)
    assert scaled.gap < 1e-6
    assert scaled.value == pytest.approx(worst.value, rel=1e-8)
    # Around the optimum the value is flat: weights are known to the root of the gap only.
    np.testing.assert_allclose(scaled.weights, worst.weights, atol=1e-4)
    np.testing.assert_allclose(scaled.ratios, worst.ratios, rtol=1e-6)


def test_backgrounds_of_wildly_different_sizes_are_proved_too(rng):
    a, bs = problem(rng, 60, 5)
    bs = [b * np.outer(*[10.0 ** rng.uniform(-3, 3, size=60)] * 2) for b in bs]
    check_proof(worst_case_weights(pose_of(a, bs), 5), a, bs)


def test_one_background_has_all_the_weight(rng):
    a, bs = problem(rng, 6, 1)
    worst = worst_case_weights(pose_of(a, bs), 1)
    assert worst.weights.tolist() == [1.0]
    check_proof(worst, a, bs)


def test_two_equal_backgrounds_share_the_weight(rng):
    a, bs = problem(rng, 9, 1)
    worst = worst_case_weights(pose_of(a, bs * 2), 2)
    # The weights do not matter here: only rounding pulls them to one side.
    np.testing.assert_allclose(worst.weights, 0.5, atol=1e-4)
    check_proof(worst, a, bs * 2)


def test_a_background_that_is_smaller_everywhere_gets_no_weight(rng):
    a, bs = problem(rng, 9, 2)
    bs = [*bs, np.zeros((9, 9)), 0.5 * bs[1]]
    worst = worst_case_weights(pose_of(a, bs), 4)
    assert worst.weights[2:].tolist() == [0.0, 0.0]
    assert np.isinf(worst.ratios[2])
    assert worst.value == pytest.approx(worst_case_weights(pose_of(a, bs[:2]), 2).value, rel=1e-7)


def test_backgrounds_may_be_singular_if_their_mixture_is_not(rng):
    # By hand: 1/ω₁, 2/(ω₁ + ω₂) = 2 and 3/ω₂; the first and the last are equal at ω = (1, 3) / 4.
    a, bs = np.diag([1.0, 2.0, 3.0]), [np.diag([1.0, 1.0, 0.0]), np.diag([0.0, 1.0, 1.0])]
    worst = worst_case_weights(pose_of(a, bs), 2)
    np.testing.assert_allclose(worst.weights, [0.25, 0.75], atol=1e-6)
    check_proof(worst, a, bs)
    rows = rng.normal(size=(4, 8, 20))  # eight rows in twenty columns: each is singular, four are not
    bs = [X.T @ X for X in rows]
    check_proof(worst_case_weights(pose_of(np.eye(20), bs), 4), np.eye(20), bs)


def test_a_direction_that_no_background_has_is_an_error_that_advises_shrinkage():
    a, bs = np.eye(3), [np.diag([1.0, 0.0, 0.0]), np.diag([0.0, 1.0, 0.0])]
    with pytest.raises(ValueError, match="infinite whatever the weights. Use shrinkage"):
        worst_case_weights(pose_of(a, bs), 2)
    assert worst_case_weights(pose_of(a, bs, shrinkage=0.1), 2).gap < 1e-6


def test_directions_that_no_dataset_has_do_no_harm():
    a, bs = np.zeros((9, 9)), [np.zeros((9, 9)), np.zeros((9, 9))]
    a[:2, :2], bs[0][0, 0], bs[1][:2, :2] = np.diag([1, 2]), 3, np.eye(2)
    worst = worst_case_weights(pose_of(a, bs), 2)
    assert worst.value == pytest.approx(2.0)
    assert worst.weights.tolist() == [0.0, 1.0]


def test_a_target_without_variance_stands_out_nowhere():
    worst = worst_case_weights(pose_of(np.zeros((3, 3)), [np.eye(3), 2 * np.eye(3)]), 2)
    assert (worst.value, worst.bound, worst.gap) == (0.0, 0.0, 0.0)
    assert worst.weights.tolist() == [0.5, 0.5]


def test_too_few_rounds_are_told_with_the_gap(rng, monkeypatch):
    a, bs = problem(rng, 40, 3)
    monkeypatch.setattr(search, "MOST_ROUNDS", 1)
    with pytest.warns(ConvergenceWarning, match="a relative gap of .*e-0"):
        worst = worst_case_weights(pose_of(a, bs), 3)
    assert 1e-6 < worst.gap < 1.0
    # What is there is still a proof, if a weak one.
    check_proof(worst, a, bs, tolerance=1.0)


def test_the_same_input_gives_the_same_weights_bit_for_bit(rng):
    a, bs = problem(rng, 25, 4)
    first, second = (worst_case_weights(pose_of(a, bs), 4) for _ in range(2))
    assert first.weights.tobytes() == second.weights.tobytes()
    assert first.directions.tobytes() == second.directions.tobytes()


def rows_of(rng, n_target, n_background, n_features, n_backgrounds):
    target = rng.normal(size=(n_target, n_features))
    target[:, :3] *= 4
    return target, [
        rng.normal(size=(n_background, n_features)) * rng.uniform(0.5, 2, n_features) for _ in range(n_backgrounds)
    ]


@pytest.mark.parametrize("solver", ["auto", "reduced", "root"])
def test_wide_data_give_what_matrices_give(solver, rng):
    target, backgrounds = rows_of(rng, 30, 25, 150, 3)
    wide = [gather(X, kind="rows") for X in (target, *backgrounds)]
    formed = [gather(X) for X in (target, *backgrounds)]
    worst, expected = (
        worst_case_weights(
            lambda w, m=moments: contrast.discriminative(m[0], m[1:], w, [0.05, 0.1, 0.2]), 3, solver=name
        )
        for moments, name in ((wide, solver), (formed, "dense"))
    )
    assert worst.gap < 1e-6
    assert worst.directions.shape == (150, 1)
    assert worst.value == pytest.approx(expected.value, rel=1e-7)
    np.testing.assert_allclose(worst.weights, expected.weights, atol=1e-3)


@pytest.mark.parametrize("solver", ["lanczos", "lobpcg"])
def test_iterative_solvers_give_the_same_worst_case(solver, rng):
    target, backgrounds = rows_of(rng, 400, 300, 120, 3)
    moments = [gather(X, kind="rows") for X in (target, *backgrounds)]

    def pose(weights):
        return contrast.discriminative(moments[0], moments[1:], weights, [0.1] * 3)

    worst = worst_case_weights(pose, 3, solver=solver)
    assert worst.gap < 1e-6
    assert worst.value == pytest.approx(worst_case_weights(pose, 3).value, rel=1e-7)


def test_single_precision_rows_are_certified_too(rng):
    target, backgrounds = rows_of(rng, 400, 300, 20, 3)
    moments = [gather(X.astype(np.float32)) for X in (target, *backgrounds)]
    worst = worst_case_weights(lambda w: contrast.discriminative(moments[0], moments[1:], w, [0.0] * 3), 3)
    assert worst.gap < 1e-6


def test_kernel_methods_use_the_same_search(rng):
    target, backgrounds = rows_of(rng, 100, 80, 12, 3)
    moments = [gather(X) for X in (target, *backgrounds)]
    epsilon = 0.3
    worst = worst_case_weights(lambda w: contrast.kernel_discriminative(moments[0], moments[1:], w, epsilon), 3)
    # On the simplex the ridge belongs to each background.
    a, *bs = [m.covariance() for m in moments]
    check_proof(worst, a, [b + epsilon * np.eye(12) for b in bs])


def test_the_worst_case_of_the_papers_two_backgrounds_finds_the_clusters():
    data = make_gaussians_two_backgrounds(random_state=0)
    target, *backgrounds = [gather(X) for X in (data.target, *data.backgrounds)]

    def pose(weights):
        return contrast.discriminative(target, backgrounds, weights, [0.0, 0.0])

    worst = worst_case_weights(pose, 2)
    assert worst.weights.min() > 0.01
    scores = data.target @ solve(pose(worst.weights), 2).vectors
    assert clustering_error(scores, data.labels) == 0.0


# --- the best case --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [1, 2])
def test_the_best_weights_are_a_corner_and_no_others_are_better(n_components, rng):
    a, bs = problem(rng, 10, 4)
    best = best_weights(pose_of(a, bs), 4, n_components)

    def value(weights):
        return np.sum(solve(pose_of(a, bs)(weights), n_components).values)

    assert sorted(best.weights) == [0.0, 0.0, 0.0, 1.0]
    assert best.value == pytest.approx(value(best.weights))
    np.testing.assert_allclose(best.values, [value(e) for e in np.eye(4)])
    assert all(value(weights) <= best.value for weights in rng.dirichlet(np.full(4, 0.3), size=200))


def test_a_background_that_lacks_a_direction_is_the_best():
    best = best_weights(pose_of(np.eye(2), [np.eye(2), np.diag([1.0, 0.0])]), 2)
    assert best.weights.tolist() == [0.0, 1.0]
    assert np.isinf(best.value)


def test_the_best_and_the_worst_case_enclose_all_others(rng):
    a, bs = problem(rng, 10, 3)
    worst, best = worst_case_weights(pose_of(a, bs), 3), best_weights(pose_of(a, bs), 3)
    values = [leading(a, bs, weights) for weights in rng.dirichlet(np.ones(3), size=50)]
    assert worst.bound <= min(values)
    assert max(values) <= best.value


# --- the views ------------------------------------------------------------------------------------------------------


def two_views():
    """Column 0 stands out while the first background counts for less than a quarter, column 1 beyond."""
    a = np.diag([20.0, 20.0, 0.1])
    return pose_of(a, [np.diag([7.0, 1.0, 1.0]), np.diag([1.0, 3.0, 1.0])])


def test_spectral_weights_show_both_views_and_choose_the_commoner():
    views = spectral_weights(two_views(), 2, 1, n_representatives=2)
    # 20 / (7 ω₁ + ω₂) = 20 / (ω₁ + 3 ω₂) at ω₁ = 1/4.
    shown = np.argmax(np.abs(views.components[:, 0]), axis=1)
    assert shown.tolist() == [1, 0]
    assert views.chosen == 0
    grid_views = np.where(views.grid[:, 0] > 0.25, 1, 0)
    apart = np.abs(views.grid[:, 0] - 0.25) > 1e-9  # at a quarter both are as good
    np.testing.assert_array_equal(shown[views.labels][apart], grid_views[apart])
    for weights, components in zip(views.weights, views.components, strict=True):
        np.testing.assert_allclose(components, solve(two_views()(weights), 1).vectors.T)


def test_weights_that_do_not_matter_give_one_candidate_with_equal_weights():
    pose = pose_of(np.diag([5.0, 1.0, 1.0]), [np.eye(3), 2 * np.eye(3), 3 * np.eye(3)])
    views = spectral_weights(pose, 3, 1, n_representatives=4)
    np.testing.assert_allclose(views.weights, [[1 / 3] * 3])
    assert views.chosen == 0
    assert not views.labels.any()


@pytest.mark.parametrize("n_backgrounds", range(1, 16))
def test_the_grid_covers_the_simplex_with_few_points(n_backgrounds):
    grid = simplex._simplex_grid(n_backgrounds)
    assert len(grid) <= 67
    assert len(np.unique(grid.round(9), axis=0)) == len(grid)
    np.testing.assert_allclose(grid.sum(axis=1), 1.0)
    assert grid.min() >= 0.0
    np.testing.assert_allclose(grid[0], 1 / n_backgrounds)
    for corner in np.eye(n_backgrounds):
        assert np.any(np.all(grid == corner, axis=1))
    distances = np.linalg.norm(grid - 1 / n_backgrounds, axis=1)
    assert np.all(np.diff(distances) > -1e-9)


def test_one_background_leaves_one_view(rng):
    a, bs = problem(rng, 5, 1)
    views = spectral_weights(pose_of(a, bs), 1, 2)
    assert views.weights.tolist() == [[1.0]]
    assert views.components.shape == (1, 2, 5)


# --- representatives ------------------------------------------------------------------------------------------------


def planted(rng, n_features, d, sizes, noise):
    """Subspaces around a few random ones, shuffled, each with components that are neither orthogonal nor unit."""
    centres = [linalg.qr(rng.normal(size=(n_features, d)), mode="economic")[0].T for _ in sizes]
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    mixing = rng.normal(size=(len(groups), d, d)) + 3 * np.eye(d)
    spaces = np.array([centres[g] + noise * rng.normal(size=(d, n_features)) for g in groups])
    return mixing @ spaces * 10.0 ** rng.uniform(-3, 3, size=(len(groups), 1, 1)), groups


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n_features", [12, 500])
def test_planted_groups_of_subspaces_are_recovered(d, n_features, rng):
    subspaces, groups = planted(rng, n_features, d, sizes=(14, 9, 5, 3), noise=0.15 / np.sqrt(n_features))
    few = representatives(subspaces, 4)
    assert np.all(np.diff(few.indices) > 0)
    assert sorted(groups[few.indices]) == [0, 1, 2, 3]
    np.testing.assert_array_equal(groups[few.indices][few.labels], groups)
    assert few.labels[few.indices].tolist() == [0, 1, 2, 3]
    assert sorted(few.sizes) == [3, 5, 9, 14]
    # The most central member, by the angles that `metrics` finds.
    for number, index in enumerate(few.indices):
        members = np.flatnonzero(few.labels == number)
        sums = [sum(np.prod(np.cos(principal_angles(subspaces[i], subspaces[j]))) for j in members) for i in members]
        assert members[np.argmax(sums)] == index


def test_representatives_are_the_same_each_time_and_whatever_the_scale(rng):
    subspaces, _ = planted(rng, 10, 2, sizes=(6, 6, 6), noise=0.2)
    first, second = representatives(subspaces, 3), representatives(subspaces, 3)
    np.testing.assert_array_equal(first.indices, second.indices)
    np.testing.assert_array_equal(first.labels, representatives(-1e-15 * subspaces, 3).labels)


@pytest.mark.parametrize("n_representatives", [1, 2, 3, 5])
def test_subspaces_that_are_the_same_are_never_told_apart(n_representatives, rng):
    one, other = rng.normal(size=(2, 2, 6))
    turned = np.array([[2.0, 1.0], [1.0, -1.0]]) @ one
    few = representatives([one, other, turned, one, other], n_representatives)
    if n_representatives == 1:
        assert len(few.indices) == 1
        assert few.labels.tolist() == [0] * 5
    else:
        assert few.indices.tolist() == [0, 1]
        assert few.labels.tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("n_representatives", [1, 2, 3, 4])
def test_subspaces_without_any_affinity_do_not_warn(n_representatives):
    lines = np.eye(4)[:, np.newaxis, :]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = representatives(lines, n_representatives)
    assert 1 <= len(few.indices) <= n_representatives
    assert few.labels[few.indices].tolist() == list(range(len(few.indices)))


def test_as_many_representatives_as_different_subspaces_are_all_of_them(rng):
    few = representatives(rng.normal(size=(7, 2, 9)), 7)
    assert few.indices.tolist() == few.labels.tolist() == list(range(7))


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subspaces", "n_representatives", "error", "message"),
    [
        (np.ones((2, 1, 3)), 3, ValueError, "fewer candidates than representatives: 2 < n_representatives=3"),
        (np.ones((2, 1, 3)), 0, ValueError, "n_representatives=0 is less than 1"),
        (np.ones((2, 1, 3)), 1.5, TypeError, "n_representatives=1.5 is not a whole number"),
        (np.ones((2, 3)), 1, ValueError, r"shape \(2, 3\), which is not \(g, d, n_features\)"),
        (np.ones((2, 4, 3)), 1, ValueError, r"shape \(2, 4, 3\)"),
        (np.full((2, 1, 3), np.nan), 1, ValueError, "NaN or infinity among the subspaces"),
        (np.ones((2, 2, 3)), 1, ValueError, "components of subspace 0 are linearly dependent"),
        (np.zeros((1, 1, 3)), 1, ValueError, "components of subspace 0 are linearly dependent"),
        ([[[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]], 1, ValueError, "not one array of numbers"),
    ],
)
def test_bad_subspaces_are_named(subspaces, n_representatives, error, message):
    with pytest.raises(error, match=message):
        representatives(subspaces, n_representatives)


@pytest.mark.parametrize(
    "choose", [worst_case_weights, best_weights, lambda *given, **k: spectral_weights(*given, 1, **k)]
)
def test_bad_parameters_are_named(choose):
    with pytest.raises(ValueError, match="no background"):
        choose(two_views(), 0)
    with pytest.raises(ValueError, match="solver='fast' is unknown"):
        choose(two_views(), 2, solver="fast")


def test_bad_numbers_of_views_are_named():
    with pytest.raises(ValueError, match="n_components=4 is larger than n_features=3"):
        spectral_weights(two_views(), 2, 4)
    with pytest.raises(ValueError, match="n_components=0"):
        best_weights(two_views(), 2, 0)
    with pytest.raises(ValueError, match="n_representatives=0"):
        spectral_weights(two_views(), 2, 1, n_representatives=0)
    with pytest.raises(TypeError, match="n_representatives='few'"):
        spectral_weights(two_views(), 2, 1, n_representatives="few")
