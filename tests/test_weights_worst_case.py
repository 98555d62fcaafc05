"""The worst case of several backgrounds: its weights, found with a proof."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from standout import contrast
from standout.datasets import make_gaussians_two_backgrounds
from standout.metrics import clustering_error, principal_angles
from standout.moments import gather
from standout.pencil import solve
from standout.selection import _weights as simplex
from standout.selection import _worst_case as search
from standout.selection import worst_case_weights
from weighing import leading, pose_of, problem


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
