"""Limits, defaults and units of rules: numbers just inside and outside of a limit, and what does not change answers."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.covariance import ledoit_wolf_shrinkage

from standout import (
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    bootstrap,
    permutation_test,
)
from standout._arrays import dense
from standout._messages import FindingWarning, InvalidValueError
from standout.moments import FoldPattern, ScatterMoments, gather, gather_keyed, ledoit_wolf, span_of
from standout.pencil import Form
from standout.problem import Problem, Sums, solve
from standout.selection import MeanDifferences, choose_weights
from standout.selection._data import plan_folds
from standout.selection._leading import Statistic
from standout.selection._resample import Deck
from standout.selection._units import plan_rows
from standout.selection._weights import simplex_grid
from standout.sources import InMemory

pytestmark = pytest.mark.filterwarnings("ignore::standout._messages.FindingWarning")


# --- choices -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "width", "d", "expected"),
    [
        # Fifteen numbers, rounded, from all columns down to two or to the number of components, by equal factors.
        ((20, 20), 12, 1, [12, 11, 9, 8, 7, 6, 5, 4, 3, 2]),
        # Wide rows: half as many columns as there are rows, after all columns.
        ((8, 12), 100, 3, [100, 10, 9, 8, 7, 6, 5, 4, 3]),
    ],
)
def test_numbers_of_columns_that_are_compared(rng, rows, width, d, expected):
    X, Y = (rng.normal(size=(n, width)) for n in rows)
    path = DiscriminativePCA(d, n_columns="auto").fit(X, background=Y).columns_path_
    assert path.values.tolist() == expected


@pytest.mark.parametrize(
    ("rows", "cv", "expected"),
    [(3, 5, 0), (4, 5, 2), (9, 5, 4), (10, 5, 5), (30, 5, 5), (30, 7, 7), (30, None, 0)],
)
def test_a_fold_has_two_rows_of_each_dataset(rng, rows, cv, expected):
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(rows, 2))
    for target, background in ((X, Y), (Y, X)):
        assert DiscriminativePCA(1, shrinkage=0.1, cv=cv).fit(target, background=background).n_folds_ == expected
    # In batches, the first batch fixes the number of folds.
    grown = DiscriminativePCA(1, shrinkage=0.1, cv=cv).partial_fit(X[:2], background=Y[:2])
    grown.partial_fit(X[2:], background=Y[2:] if rows > 2 else None)
    assert grown.n_folds_ == (expected if expected == cv else 0)


@pytest.mark.parametrize(("width", "expected"), [(5000, 5), (5001, 3), (8192, 3), (8193, 0)])
def test_many_columns_have_few_folds(width, expected):
    folds, reason = plan_folds([InMemory(np.ones((20, 1)))] * 2, 5, width)
    assert (folds.n_folds if folds else 0) == expected
    assert bool(reason) is (expected == 0)


def test_there_are_as_many_components_as_rows_have_directions_or_columns(rng):
    X, Y = rng.normal(size=(2, 3, 10))
    given = {"shrinkage": 0.5, "cv": None}
    # Three rows have two directions about their mean.
    for rows, most in ((slice(None), 4), (slice(0, 3), 3)):
        target, background = X[:, rows], Y[:, rows]
        assert DiscriminativePCA(most, **given).fit(target, background=background).n_components_ == most
        assert DiscriminativePCA(None, **given).fit(target, background=background).n_components_ == most
        assert DiscriminativePCA(most, **given).partial_fit(target, background=background).n_components_ == most
        with pytest.raises(InvalidValueError, match=f"Use at most {most}"):
            DiscriminativePCA(most + 1, **given).fit(target, background=background)
    few = DiscriminativePCA(5, **given).partial_fit(X, background=Y)
    assert not hasattr(few, "components_")


@pytest.mark.parametrize("unit", [1e-3, 50.0])
def test_a_fold_without_variance_of_the_background_does_not_depend_on_the_unit(rng, unit):
    """The value of the fold is infinite, so its vector has unit length, and not the unit of the background."""
    X, Y = rng.normal(size=(2, 40, 3))
    X[:, 0] *= 3.0
    Y[FoldPattern(5).of(np.arange(40)) != 2, 0] = 0.0
    plain, other = (
        DiscriminativePCA(2, shrinkage=0.0).fit(X * scale, background=Y * scale) for scale in ([1.0] * 3, [unit, 1, 1])
    )
    np.testing.assert_allclose(other.ratio_, plain.ratio_, rtol=1e-8)
    np.testing.assert_allclose(other.eigenvalues_, plain.eigenvalues_, rtol=1e-8)


# --- defaults ------------------------------------------------------------------------------------------------------


def test_inference_states_its_settings_and_prints_no_draws(rng):
    X, Y = rng.normal(size=(2, 30, 3))
    X[:, 0] *= 5.0
    model = DiscriminativePCA(1, shrinkage=0.1).fit(X, background=Y)
    test, drawn = permutation_test(model, X, background=Y), bootstrap(model, X, background=Y)
    assert (test.level, test.n_draws) == (0.05, (199,))
    assert (drawn.level, drawn.n_draws, len(drawn.ratios)) == (0.9, 200, 200)
    for found in (test, drawn):
        assert "draws=[" not in repr(found)
        assert len(repr(found)) < 250


def test_means_differ_from_a_fifth_of_a_standard_deviation_and_a_q_value_of_five_percent_on():
    q_values, effects = np.array([0.01, 0.05, 0.01, 0.06, 0.0]), np.array([0.2, -0.5, 0.19, 0.9, 0.3])
    assert MeanDifferences(effects, q_values, q_values).different().tolist() == [1, 4, 0]


@pytest.mark.parametrize("counts", [(2, 3), (3, 2), (9, 30)])
def test_p_values_of_means_are_those_of_welch_for_any_number_of_rows(rng, counts):
    X, Y = (rng.normal(size=(n, 4)) for n in counts)
    found = DiscriminativePCA(1, shrinkage=0.5, cv=None).fit(X, background=Y).mean_differences_
    np.testing.assert_allclose(found.p_value, stats.ttest_ind(X, Y, equal_var=False).pvalue, rtol=1e-9)


@pytest.mark.parametrize("center", ["own", "background"])
@pytest.mark.parametrize("n_others", [0, 1, 2])
def test_a_score_is_the_mean_log_ratio_of_variances(rng, center, n_others):
    X, *others = rng.normal(size=(3, 40, 3)) * [[[3.0, 2.0, 1.0]], [[1.0, 1.0, 1.0]], [[1.0, 2.0, 1.0]]]
    weights = np.array([0.2, 0.8])
    model = DiscriminativePCA(2, center=center, background_weights=weights).fit(X, background=others)
    new, *parts = 1.5 * rng.normal(size=(1 + n_others, 30, 3)) + 0.5
    scores = [(part - model.mean_) @ model.components_.T for part in (new, *parts)]
    own = np.mean(scores[0] ** 2, axis=0) if center == "background" else scores[0].var(axis=0)
    spreads = np.array([part.var(axis=0) for part in scores[1:]])
    against = weights @ spreads if n_others == 2 else spreads[0] if n_others else 1.0
    found = model.score(new, background=parts or None)
    assert found == pytest.approx(np.mean(np.log(own / against)))


@pytest.mark.filterwarnings("error::standout._messages.FindingWarning")
@pytest.mark.parametrize(("shift", "said"), [(0.5, False), (2.0, True)])
def test_a_shift_above_the_variance_is_said(rng, shift, said):
    X, Y = rng.normal(size=(2, 400, 1))
    X, Y = (part / part.std() - part.mean() / part.std() for part in (X, Y))
    with pytest.warns(FindingWarning, match="means of target and background") if said else nullcontext():
        model = DiscriminativePCA(1, shrinkage=0.0).fit(X + np.sqrt(shift), background=Y)
    assert model.shift_[0] == pytest.approx(shift, rel=0.02)


# --- quadratic forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["scatter", "root", "rows"])
@pytest.mark.parametrize("coefficients", [(), (1.0,), (0.5, 2.0), (1.0, -3.0)], ids=str)
@pytest.mark.parametrize("ridge", [0.0, 0.7, np.array([0.1, 2.0, 0.0, 1.0])], ids=["none", "number", "diagonal"])
def test_a_form_is_one_matrix_in_all_of_its_views(rng, kind, coefficients, ridge):
    parts = [rng.normal(size=(9, 4)) * [1.0, 5.0, 0.2, 1.0] for _ in coefficients]
    if kind == "rows":
        parts = [sparse.csr_array(part) for part in parts]
    form = Form(4, tuple((c, gather(part, kind=kind)) for c, part in zip(coefficients, parts, strict=True)), ridge)
    matrix = np.diag(np.broadcast_to(ridge, 4)) + sum(
        c * np.cov(dense(part).T, bias=True) for c, part in zip(coefficients, parts, strict=True)
    )
    U, scale = rng.normal(size=(4, 2)), np.array([1.0, 0.5, 4.0, 2.0])
    exact = {"atol": 1e-12 * np.abs(matrix).max()}
    np.testing.assert_allclose(form.matrix(), matrix, **exact)
    np.testing.assert_allclose(form.diagonal, np.diag(matrix), **exact)
    np.testing.assert_allclose(form.apply(U), matrix @ U, **exact)
    np.testing.assert_allclose(form.value(U), np.diag(U.T @ matrix @ U), rtol=1e-9)
    np.testing.assert_allclose(form.in_units(scale).matrix(), matrix * np.outer(scale, scale), rtol=1e-9, **exact)
    np.testing.assert_allclose(form.scaled(3.0).matrix(), 3.0 * matrix, **exact)
    negative = -1.0 in np.sign(coefficients)
    assert form.is_nonnegative is not negative
    assert form.has_ridge is (np.ndim(ridge) > 0 or ridge > 0.0)
    if not negative:
        np.testing.assert_allclose(form.root().T @ form.root(), matrix, **exact)
    bare = matrix - np.diag(np.broadcast_to(ridge, 4))
    np.testing.assert_allclose(form.added.matrix() - form.subtracted.matrix(), bare, **exact)
    assert Form(4, (), 1.0).is_identity
    assert not form.is_identity


@pytest.mark.parametrize(("left", "solver"), [(3e-14, "root"), (3e-13, "dense")])
def test_a_column_with_a_variance_of_rounding_beside_the_others_is_solved_through_roots(left, solver):
    """The limit is 100 times the precision and the root of the number of columns: 9.9e-14 for 20 columns."""
    correlation = np.eye(20)
    correlation[0, 1] = correlation[1, 0] = np.sqrt(1.0 - left)
    target, background = (ScatterMoments(50, np.zeros(20), 50.0 * part) for part in (np.eye(20), correlation))
    assert solve([target, background], Problem()).solver == solver


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_errors_of_rounding_are_those_of_both_matrices_and_of_the_solver(unit):
    sums = diagonal_sums([8.0 * unit, 2.0 * unit], [1.0, 1.0])
    found = solve(sums, Problem(2))
    np.testing.assert_allclose(found.values, [8.0 * unit, 2.0 * unit])
    # One unit of rounding comes from A, one from B, and the largest value divided by each value from the solver.
    np.testing.assert_allclose(found.rounding, np.finfo(float).eps * np.array([3.0, 6.0]))
    # The error of a difference 8 - 1.5 or 2 - 1.5 is relative to 8 or 2: all variances, and the largest.
    found = solve(diagonal_sums([8.0 * unit, 2.0 * unit], [unit, unit]), Problem(2, kind="difference", alpha=1.5))
    np.testing.assert_allclose(found.values, [6.5 * unit, 0.5 * unit])
    np.testing.assert_allclose(found.rounding, np.finfo(float).eps * np.array([19.0 / 8.0, 13.0 / 2.0]))


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize(("count", "n_lost"), [(50, 1), (2, 0)])
def test_a_value_beside_a_huge_one_is_lost_unless_rows_explain_it(unit, count, n_lost):
    found = solve(diagonal_sums([unit, 1e-20 * unit, 0.0], [1.0, 1.0, 1.0], count=count), Problem(3))
    assert (found.n_lost, found.accurate) == (n_lost, n_lost == 0)


def test_sums_of_norms_are_gathered_only_if_asked_for(rng):
    rows = rng.normal(size=(8, 2))
    assert gather(rows).norms is None
    assert gather(rows, kind="root").norms is None
    assert gather_keyed(rows, None)[0].norms is None


@pytest.mark.parametrize(("length", "rank"), [(0.7, 5), (1.4, 8)])
def test_rows_that_differ_by_rounding_of_their_mean_span_no_direction(rng, length, rank):
    """Four target directions and the step between the means; the other four are of the background, or rounding."""
    X, noise = rng.normal(size=(5, 400)) + 1e6, rng.normal(size=(4, 400))
    floor = 100.0 * np.finfo(float).eps * np.linalg.norm(X.mean(axis=0))
    noise -= noise.mean(axis=0)
    Y = 1e6 + 2.0 + noise * length * floor / np.linalg.norm(noise, axis=1).max()
    assert span_of([X, Y]).rank == rank


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_merged_sums_of_norms_have_the_shrinkage_of_all_rows_in_any_unit(rng, unit):
    rows = rng.normal(size=(30, 8)) * np.arange(1, 9) + 2.0
    first, second, whole = (gather(unit * part, norms=True) for part in (rows[:12], rows[12:], rows))
    # Fourth powers are merged by the scatter of each part, which is exact here without weights.
    assert ledoit_wolf(first + second) == pytest.approx(ledoit_wolf_shrinkage(rows), rel=1e-6)
    assert ledoit_wolf(whole.without(first)) == pytest.approx(ledoit_wolf(second), rel=1e-6)


@pytest.mark.parametrize(
    ("n_rows", "unit", "single"),
    [(12, 1.0, True), (11, 1.0, False), (5000, 1.0, True), (12, 1e-16, False), (12, 1e16, False)],
)
def test_single_precision_is_used_for_enough_rows_within_range(rng, n_rows, unit, single):
    rows = rng.normal(size=(n_rows, 6)) * [1, 2, 3, 1, 1, 0]
    precision = gather((unit * rows).astype(np.float32)).precision
    assert precision == np.finfo(np.float32 if single else np.float64).eps


# --- statistics of a test -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [6, 60])
@pytest.mark.parametrize(
    "options", [{"scale": "pooled"}, {"scale": "background"}, {"n_columns": 4}, {"smooth": "chain"}], ids=str
)
@pytest.mark.parametrize("center", ["own", "background"])
def test_the_statistic_is_the_eigenvalue_of_the_fit_with_every_option(rng, width, options, center):
    X, Y = rng.normal(size=(20, width)) * np.linspace(1, 3, width), rng.normal(size=(25, width)) + 0.1
    X[:, 2] *= 4.0
    model = DiscriminativePCA(1, shrinkage=0.3, center=center, cv=None, **options).fit(X, background=Y)
    test = permutation_test(model, X, background=Y, n_draws=19)
    np.testing.assert_allclose(test.statistics[0], np.log(model.eigenvalues_[0]), rtol=1e-6)
    np.testing.assert_allclose(model.mean_, (X if center == "own" else Y).mean(axis=0), atol=1e-9)


def test_a_statistic_has_the_representatives_of_what_the_data_chose(rng):
    many, few = (diagonal_sums([1.0] * 20, [4.0] * 20, count=count) for count in (40, 39))

    def values(sums, name, chosen=True, columns_chosen=False, **fields):
        n_rows = 5 + sums.moments[1].count
        rows, plan = np.zeros((n_rows, sums.dimension)), plan_rows([5, n_rows - 5], 999, rng)
        deck = Deck(plan, rows, np.arange(n_rows), np.ones(n_rows))
        problems = Statistic(deck, Problem(3, **fields), chosen, columns_chosen).problems(sums)
        assert all(one.n_components == 1 for one in problems)
        return [(getattr(one, name), one.n_columns) for one in problems]

    assert values(many, "shrinkage", False, shrinkage=0.2) == [(0.2, None)]
    assert values(many, "shrinkage") == [(1e-9, None), (0.01, None), (0.1, None), (0.7, None)]
    assert values(few, "shrinkage") == [(0.03, None), (0.5, None)]
    assert values(many, "shrinkage", n_columns=5) == [(0.03, 5), (0.5, 5)]
    assert values(many, "alpha", kind="difference") == [(0.25, None), (1.0, None), (3.75, None), (15.0, None)]
    assert values(many, "epsilon", epsilon=1.0) == [(4e-4, None), (4e-2, None), (1.2, None), (40.0, None)]
    # A tenth of the columns is combined only with the first and the last value.
    ends = [(1e-9, None), (0.01, None), (0.1, None), (0.7, None), (1e-9, 2), (0.7, 2)]
    assert values(many, "shrinkage", columns_chosen=True, n_columns=7) == ends
    assert values(many, "shrinkage", False, True, shrinkage=0.2, n_columns=7) == [(0.2, None), (0.2, 2)]
    narrow = diagonal_sums([1.0] * 5, [4.0] * 5)
    assert values(narrow, "shrinkage", False, True, shrinkage=0.2) == [(0.2, None), (0.2, 1)]


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_a_statistic_by_iterations_has_its_digits_in_any_unit(rng, unit):
    X, Y = rng.normal(size=(90, 220)), rng.normal(size=(110, 220))
    X[:, 0] *= 2.0
    model = DiscriminativePCA(1, shrinkage=0.3, cv=None).fit(unit * X, background=Y)
    test = permutation_test(model, unit * X, background=Y, n_draws=19)
    np.testing.assert_allclose(test.statistics[0], np.log(model.eigenvalues_[0]), atol=1e-5)


def test_blocks_of_many_columns_have_the_statistic_of_all_rows(rng):
    X, Y = rng.normal(size=(2, 2050, 200))
    X[:, 0] *= 1.5
    model = DiscriminativePCA(1, shrinkage=0.3, cv=None).fit(X, background=Y)
    test = permutation_test(model, X, background=Y, n_draws=19)
    assert test.unit == "blocks"
    np.testing.assert_allclose(test.statistics[0], np.log(model.eigenvalues_[0]), atol=1e-5)


@pytest.mark.parametrize("width", [4, 80])
@pytest.mark.parametrize("options", [{}, {"scale": "pooled"}, {"n_columns": 3}, {"smooth": "chain"}], ids=str)
def test_intervals_of_correlations_are_about_those_of_the_fit(rng, width, options):
    X, Y = rng.normal(size=(30, width)) * np.linspace(1, 2, width), rng.normal(size=(25, width))
    X[:, 1] *= 5.0
    model = DiscriminativePCA(1, shrinkage=0.2, cv=None, **options).fit(X, background=Y)
    found = bootstrap(model, X, background=Y, n_draws=4)
    middle = np.tanh(np.arctanh(found.correlation_intervals[0]).mean(axis=1))
    np.testing.assert_allclose(middle, model.correlations_[0], atol=1e-7)
    assert 0.0 <= found.angles[0] < 60.0


def test_weights_of_users_and_robust_weights_go_together(rng):
    X, Y = rng.normal(size=(2, 60, 4))
    X[:, 0] *= 4.0
    X[0] *= 30.0
    weights = {"sample_weight": 0.5 + rng.random(60), "background_sample_weight": 0.5 + rng.random(60)}
    model = DiscriminativePCA(1, robust="rows").fit(X, background=Y, **weights)
    test = permutation_test(model, X, background=Y, n_draws=39, **weights)
    assert test.n_components == 1
    assert np.isfinite(test.draws[0]).all()


# --- kernels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KernelDiscriminativePCA, KernelContrastivePCA])
def test_scores_of_the_target_are_the_larger_ones_on_average(rng, kind):
    for seed in range(6):
        X, Y = np.random.default_rng(seed).normal(size=(2, 40, 3)) * [[[3.0, 1.0, 2.0]], [[1.0] * 3]] + 0.5
        model = kind(2, gamma=0.1).fit(X, background=Y)
        assert np.all(model.transform(X).mean(axis=0) >= model.transform(Y).mean(axis=0))
        alone = kind(2, kernel="linear").fit(X)
        assert np.all(alone.feature_mean_ @ alone.components_.T >= 0.0)


def test_one_column_has_one_component_of_a_linear_kernel(rng):
    X, Y = 3.0 * rng.normal(size=(40, 1)), rng.normal(size=(40, 1))
    model = KernelDiscriminativePCA(1, kernel="linear", epsilon=1e-9).fit(X, background=Y)
    linear = DiscriminativePCA(1, shrinkage=0.0).fit(X, background=Y)
    np.testing.assert_allclose(model.ratio_, linear.ratio_, rtol=1e-5)


# --- units of a test ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "unit"), [(2000, "rows"), (2001, "blocks")])
def test_up_to_four_thousand_rows_are_dealt_one_by_one(rng, n_rows, unit):
    X, Y = rng.normal(size=(2000, 2)), rng.normal(size=(n_rows, 2))
    model = DiscriminativePCA(1, shrinkage=0.1, cv=None).fit(X, background=Y)
    assert permutation_test(model, X, background=Y, n_draws=19).unit == unit


# --- weights of backgrounds ----------------------------------------------------------------------------------------


def diagonal_sums(*variances, count=50):
    parts = (
        ScatterMoments(count, np.zeros(len(own)), count * np.diag(np.array(own, dtype=float))) for own in variances
    )
    return Sums(tuple(parts), len(variances[0]))


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_worst_case_weights_do_not_depend_on_the_size_of_the_values(size):
    """With backgrounds (2, 1) and (1, 4), both columns have the same ratio at a weight of 3/4 for the first."""
    sums = diagonal_sums([size, size], [2.0, 1.0], [1.0, 4.0])
    chosen = choose_weights("worst-case", sums, Problem(weights=(0.5, 0.5))).weights
    np.testing.assert_allclose(chosen, [0.75, 0.25], atol=1e-3)


def test_spectral_weights_are_among_the_most_that_have_one_view():
    # Column 0 leads at a weight of 0 and 1/8 for the first background, column 2 at 7/8 and 1, column 1 between.
    sums = diagonal_sums([1.0, 1.0, 1.0], [10.0, 1.5, 0.1], [0.1, 1.5, 10.0])
    first, _ = choose_weights("spectral", sums, Problem(weights=(0.5, 0.5))).weights
    assert 0.25 <= first <= 0.75
    # All weights have one view.
    sums = diagonal_sums([9.0, 1.0, 1.0], [1.0, 1.5, 1.1], [1.1, 1.5, 1.0])
    assert sum(choose_weights("spectral", sums, Problem(weights=(0.5, 0.5))).weights) == 1.0


def test_the_grid_of_weights_has_at_most_two_hundred_points_or_the_corners():
    points = np.array(simplex_grid(3, 4))
    assert len(np.unique(points, axis=0)) == len(points) == 15
    np.testing.assert_allclose(points.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.unique(points), np.arange(5) / 4)
    assert [len(simplex_grid(n, 8)) for n in (1, 2, 3, 4, 6)] == [1, 9, 45, 165, 126]
    np.testing.assert_array_equal(np.sort(simplex_grid(300, 2), axis=0), np.sort(np.eye(300), axis=0))
