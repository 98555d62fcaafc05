"""Weights of several backgrounds: the best case, the views between it and the worst, and representatives of many."""

import warnings

import numpy as np
import pytest
from scipy import linalg

from standout import DiscriminativePCA
from standout.metrics import principal_angles
from standout.pencil import solve
from standout.selection import _weights as simplex
from standout.selection import best_weights, representatives, spectral_weights, worst_case_weights
from weighing import leading, pose_of, problem

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


def test_of_equal_backgrounds_the_first_is_the_best(rng):
    a, (b, other) = problem(rng, 6, 2)
    assert best_weights(pose_of(a, [10 * other, b, b]), 3).weights.tolist() == [0.0, 1.0, 0.0]


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


def three_views(first, second, turn=None):
    """Column 0 stands out while the first background has a weight below `first`, column 2 beyond `second`.

    The inverse ratios are straight lines in the weight, and the lowest line is what is seen. `turn` mixes the columns.
    """
    lines = [lambda w: 1 + w + (w - first), lambda w: 1 + w, lambda w: 1 + w - (w - second)]
    turn = np.eye(3) if turn is None else turn
    return np.eye(3), [turn @ np.diag([line(weight) for line in lines]) @ turn.T for weight in (1.0, 0.0)]


@pytest.mark.parametrize(
    ("first", "second", "sizes", "chosen", "weight"),
    [
        (0.275, 0.575, [6, 6, 9], 2, 0.6),  # the view of equal weights is not the commonest
        (0.325, 0.675, [7, 7, 7], 1, 0.5),  # of three that are as common, it is chosen
    ],
)
@pytest.mark.parametrize("seed", [None, *range(5)])
def test_spectral_weights_choose_the_view_of_the_most_weights(first, second, sizes, chosen, weight, seed):
    # With columns that are mixed, views that are the same differ by rounding.
    turn = np.eye(3) if seed is None else linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    views = spectral_weights(pose_of(*three_views(first, second, turn)), 2, 1, n_representatives=3)
    shown = np.argmax(np.abs(views.components[:, 0] @ turn), axis=1)
    assert [np.sum(shown[views.labels] == column) for column in range(3)] == sizes
    assert shown[views.chosen] == chosen
    # Of all weights with the same view, those nearest to equal ones stand for them.
    np.testing.assert_allclose(views.weights[views.chosen], [weight, 1 - weight])


def test_the_rule_of_the_estimator_takes_the_chosen_view():
    def rows(covariance):
        spread = np.sqrt(3 * np.diagonal(covariance))
        return np.vstack([np.diag(spread), -np.diag(spread)])

    a, bs = three_views(0.275, 0.575)
    model = DiscriminativePCA(1, background_weights="spectral", shrinkage=None)
    model.fit(rows(a), background=[rows(b) for b in bs])
    np.testing.assert_allclose(model.weights_, [0.6, 0.4])
    assert np.argmax(np.abs(model.components_[0])) == 2


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
    ("subspaces", "n_representatives", "error", "parameter"),
    [
        (np.ones((2, 1, 3)), 3, ValueError, "n_representatives"),
        (np.ones((2, 1, 3)), 0, ValueError, "n_representatives"),
        (np.ones((2, 1, 3)), 1.5, TypeError, "n_representatives"),
        (np.ones((2, 3)), 1, ValueError, None),
        (np.ones((2, 4, 3)), 1, ValueError, None),
        (np.full((2, 1, 3), np.nan), 1, ValueError, None),
        (np.ones((2, 2, 3)), 1, ValueError, None),
        (np.zeros((1, 1, 3)), 1, ValueError, None),
        ([[[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]], 1, ValueError, None),
    ],
)
def test_bad_subspaces_are_refused(subspaces, n_representatives, error, parameter):
    with pytest.raises(error) as caught:
        representatives(subspaces, n_representatives)
    assert caught.value.parameter == parameter
    assert caught.value.advice


@pytest.mark.parametrize(
    "choose", [worst_case_weights, best_weights, lambda *given, **k: spectral_weights(*given, 1, **k)]
)
def test_bad_parameters_are_named(choose):
    with pytest.raises(ValueError, match="no background"):
        choose(two_views(), 0)
    with pytest.raises(ValueError, match="is unknown") as caught:
        choose(two_views(), 2, solver="fast")
    assert (caught.value.parameter, caught.value.value) == ("solver", "fast")


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: spectral_weights(two_views(), 2, 4), "n_components"),
        (lambda: best_weights(two_views(), 2, 0), "n_components"),
        (lambda: spectral_weights(two_views(), 2, 1, n_representatives=0), "n_representatives"),
        (lambda: spectral_weights(two_views(), 2, 1, n_representatives="few"), "n_representatives"),
    ],
)
def test_bad_numbers_of_views_are_named(call, parameter):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert caught.value.parameter == parameter
