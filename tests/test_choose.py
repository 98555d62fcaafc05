"""The rules of a choice, and the held-out ratio, on numbers that are small enough to follow by hand."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from sklearn.datasets import load_digits

from standout import ContrastivePCA, DiscriminativePCA
from standout._xp import cholesky
from standout.estimators._fit import fallback
from standout.moments import FoldPattern, ScatterMoments, gather
from standout.problem import Problem, Sums, solve_path
from standout.selection._choose import choose_columns, grid, path_of
from standout.selection._data import TallData
from standout.selection._held_out import HeldVariances, aligned, held_variances, log_ratio, pooled
from standout.selection._resample import middle_of


def test_a_path_has_means_over_folds_and_errors_of_the_difference_to_the_best():
    judged = np.array([[0.0, 1.0, 0.9], [0.2, 2.0, 1.7]])
    path = path_of("shrinkage", np.array([0.0, 0.1, 0.5]), judged)
    np.testing.assert_allclose(path.log_ratios, [0.1, 1.5, 1.3])
    # Differences to the best: (-1, -1.8), (0, 0), (-0.1, -0.3); their standard deviation over the root of 2 folds.
    np.testing.assert_allclose(path.errors, [0.4, 0.0, 0.1])
    assert (path.best, path.chosen, path.value) == (1, 1, 0.1)
    assert path_of("alpha", np.ones(2), np.full((2, 2), np.nan)).reason


def sums(*variances, count=11):
    parts = tuple(ScatterMoments(count, np.zeros(len(own)), count * np.diag(own).astype(float)) for own in variances)
    return Sums(parts, len(variances[0]))


def test_grids_have_the_units_of_the_data():
    name, problems = grid(Problem(kind="difference"), sums([6.0, 2.0], [1.0, 1.0]))
    assert name == "alpha"
    np.testing.assert_allclose([problems[0].alpha, problems[-1].alpha], [200.0, 0.0])  # 50 times 8 / 2
    name, problems = grid(Problem(epsilon=1.0), sums([6.0, 2.0], [1.0, 3.0]))
    assert name == "epsilon"
    np.testing.assert_allclose([problems[0].epsilon, problems[-1].epsilon], [2e-6, 2e2])  # the mean variance is 2
    name, problems = grid(Problem(), sums([1.0] * 7, [1.0] * 7))
    assert (name, problems[0].shrinkage) == ("shrinkage", 0.0)
    # 10 degrees of freedom for 8 columns are too few for no shrinkage at all.
    assert grid(Problem(), sums([1.0] * 8, [1.0] * 8))[1][0].shrinkage > 0.0


def test_a_ratio_at_the_level_of_rounding_is_missing():
    own, against = np.array([8.0, 1.0, 1e-10, 1.0, 0.0]), np.array([2.0, 4.0, 1.0, 1e-13, 1.0])
    np.testing.assert_allclose(log_ratio(own, against, np.ones(5)), [np.log(4.0), -np.log(4.0), *[np.nan] * 3])


@pytest.mark.parametrize(
    ("subjects", "center", "target", "background", "step"),
    [
        # Target rows 0 and 4: variance 4, times 2/1 for their estimated mean. Background rows 0 and 2: 1, times 2.
        (False, "own", 8.0, 2.0, 0.0),
        # Four target rows of other folds have the mean 1: (4 + 1) * 4/5. In the background it is 0: (1 + 1) * 4/5.
        (True, "own", 4.0, 1.6, 0.8**0.5),
        # The background without the fold has the mean 0. About it, the target has 4 + 4.
        (False, "background", 8.0, 2.0, 2.0),
    ],
)
def test_held_out_rows_are_centred_and_corrected_for_their_centre(subjects, center, target, background, step):
    train = Sums((gather(np.array([[0.0], [2.0], [0.0], [2.0]])), gather(np.array([[-3.0], [3.0], [-3.0], [3.0]]))), 1)
    test = (gather(np.array([[0.0], [4.0]])), gather(np.array([[0.0], [2.0]])))
    other = Sums((gather(np.array([[1.0], [7.0]])), gather(np.array([[5.0], [6.0]]))), 1)
    # Another fold does not change the result.
    train, test, ones = [other, train], [other.moments, test], np.ones((2, 1, 1))
    held = held_variances(Problem(center=center), train, test, ones, subjects)
    np.testing.assert_allclose([held.target[1, 0], held.backgrounds[1, 0, 0]], [target, background])
    np.testing.assert_allclose([held.steps[1, 0, 0], held.apart[1, 0], held.fitted[1, 0]], [step, 2.0, 1.0])


def test_folds_are_pooled_by_their_rows_and_errors_are_a_jackknife():
    def fold(target, background, step, apart):
        two, one = np.array([[[step], [0.0]]]), np.ones((1, 1))
        return HeldVariances(target * one, background * one[None], two, apart * one, one, one, one, one)

    held = [fold(9.0, 1.0, 1.0, 2.0), fold(5.0, 2.0, 0.0, 2.0)]
    found = pooled(Problem(), held, np.array([[1.0, 3.0], [2.0, 2.0]]))
    # Mean square 9/4 + 15/4 = 6, less the squared mean of 1/4; background 1/2 + 2/2.
    spread, against = 6.0 - 1 / 16, 1.5
    np.testing.assert_allclose([found["ratio"][0], found["spread"][0]], [spread / against] * 2)
    np.testing.assert_allclose([found["shift"][0], found["unit"][0]], [4.0 / against, against**0.5])
    # Without the first fold the ratio is 5/2, without the second (9 - 1)/1.
    np.testing.assert_allclose(found["log_error"][0], np.log(8.0 / 2.5) / 2)
    np.testing.assert_allclose(found["spread_error"][0], (8.0 - 2.5) / 2)
    about = pooled(Problem(center="background"), held, np.array([[1.0, 3.0], [2.0, 2.0]]))
    np.testing.assert_allclose(about["ratio"][0], 6.0 / against)


def test_components_of_a_fold_have_the_order_and_signs_of_the_fit():
    target = ScatterMoments(1, np.zeros(2), np.eye(2))
    folds = [np.array([[0.1, -2.0], [1.0, 0.1]]), np.array([[-3.0, 0.1], [0.2, 1.0]])]
    orders, signs, variances = aligned(target, np.eye(2), np.eye(2), folds)
    assert orders.tolist() == [[1, 0], [0, 1]]
    assert signs.tolist() == [[-1.0, 1.0], [-1.0, 1.0]]
    np.testing.assert_allclose(variances, [[4.01, 1.01], [9.04, 1.01]])


def test_the_fewest_columns_within_one_standard_error_of_the_best_are_chosen():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 5, 60, 6))
    X[:, :, :2] *= 4.0
    data = TallData([[gather(part) for part in rows] for rows in (X, Y)])
    problem, path = choose_columns(Problem(shrinkage=0.1), data)
    within = path.log_ratios + path.errors >= path.log_ratios[path.best]
    assert path.values[0] == 6.0
    assert problem.n_columns == path.values[path.chosen] == 2.0
    assert within[path.best : path.chosen + 1].all()
    assert replace(path, chosen=0).value == 6.0


@pytest.mark.parametrize("own", [(4.0, 1.5), (2.0, 0.0), (30.0, 0.8)])
def test_ratios_of_components_that_are_not_solved_to_the_end_are_those_of_exact_ones(own, monkeypatch):
    rng = np.random.default_rng(0)
    shared = 10.0 * np.linalg.qr(rng.normal(size=(160, 10)))[0].T
    above = np.array(own)[:, None] * np.linalg.qr(rng.normal(size=(160, 2)))[0].T
    X, Y = (rng.normal(size=(900, 10)) @ shared + rng.normal(size=(900, 160)) for _ in range(2))
    X += rng.normal(size=(900, 2)) @ above
    model = DiscriminativePCA(2, shrinkage=0.2)
    found = model.fit(X, background=Y)
    ratios, errors = found.ratio_, found.ratio_error_
    monkeypatch.setattr("standout.pencil._path.SMALL_SIZE", 160)
    exact = model.fit(X, background=Y)
    # Components of noise are arbitrary: many directions are equally good within the error. Compare real components.
    real = exact.ratio_ > 1.3
    assert real[0]
    assert np.all(np.abs(ratios - exact.ratio_)[real] <= 0.01 * errors[real])
    assert np.all(np.abs(ratios - exact.ratio_) <= 0.5 * errors)


def test_folds_of_a_difference_are_exact_and_have_one_length(monkeypatch):
    X, Y = np.random.default_rng(0).normal(size=(2, 900, 160)) * np.geomspace(10.0, 0.5, 160)
    X[:, 5:10] *= 2.0
    model = ContrastivePCA(2, alpha=1.0)
    found = model.fit(X, background=Y).ratio_
    monkeypatch.setattr("standout.pencil._path.SMALL_SIZE", 160)
    np.testing.assert_allclose(found, model.fit(X, background=Y).ratio_, rtol=1e-9)


def test_numbers_beyond_single_precision_are_solved_in_double_precision(monkeypatch):
    def strict(matrix):
        # Libraries differ: some refuse to factorise a matrix of NaN, others return NaN.
        assert next(calls) < 100
        return cholesky(matrix) if np.all(np.isfinite(matrix)) else None

    calls = count()
    monkeypatch.setattr("standout.pencil._iterative.cholesky", strict)
    X, Y = np.random.default_rng(0).normal(size=(2, 400, 300))
    X[:, 7] *= 5
    pair, problems = [gather(1e25 * X), gather(1e25 * Y)], [Problem(kind="difference", alpha=a) for a in (1, 0)]
    with np.errstate(over="ignore", invalid="ignore"):
        (found,) = solve_path([Sums.of(pair)], problems)
    assert np.abs(found).argmax(axis=0).tolist() == [7, 7]


@pytest.mark.parametrize("own", [(4.0, 0.0), (300.0, 0.0)])
def test_components_in_the_noise_are_the_same_from_every_library(own):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(2, 700, 150))
    X[:, 0] *= own[0]
    plain = DiscriminativePCA(2, shrinkage=0.2).fit(X, background=Y)
    there = DiscriminativePCA(2, shrinkage=0.2).fit(torch.tensor(X), background=torch.tensor(Y))
    np.testing.assert_allclose(there.ratio_, plain.ratio_, rtol=1e-8)


def test_values_that_need_no_folds():
    both = sums([6.0, 2.0], [1.0, 3.0], [5.0, 7.0])
    given = {"weights": (0.25, 0.75)}
    assert fallback(Problem(**given), both).shrinkage == "ledoit-wolf"
    assert fallback(Problem(kind="difference", **given), both).alpha == 1.0
    # A hundredth of the mean variance of the backgrounds: 4 / 2 and 12 / 2 with their weights are 5.
    assert fallback(Problem(epsilon=1.0, **given), both).epsilon == pytest.approx(0.05)
    assert fallback(Problem(shrinkage="ledoit-wolf", weights=()), sums([6.0, 2.0])).shrinkage == 0.0


@pytest.mark.parametrize("count", [12, 60])
def test_the_middle_is_the_mean_with_its_own_weights(count):
    """Few subjects have the weights ``1 / (s + d²)``, more subjects the roots; s is a tenth of the median d²."""
    rows = np.random.default_rng(0).standard_t(2, size=(count, 4))
    middle = middle_of(rows)
    squares = np.sum((rows - middle) ** 2, axis=1)
    weights = (squares + 0.1 * np.median(squares)) ** (-1.0 if count < 30 else -0.5)
    # Iterations end at a step of a thousandth of the root of s.
    near = 3e-3 * np.sqrt(0.1 * np.median(squares))
    np.testing.assert_allclose(np.average(rows, axis=0, weights=weights), middle, atol=near)


def factors(rng, n, width):
    shared = 5.0 * np.linalg.qr(rng.normal(size=(width, 5)))[0].T
    X, Y = (rng.normal(size=(n, 5)) @ shared + rng.normal(size=(n, width)) for _ in range(2))
    return X + rng.normal(size=(n, 1)) @ np.linalg.qr(rng.normal(size=(width, 1)))[0].T * 3.0, Y


@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
@pytest.mark.parametrize("case", ["digits", 60, 120, 180])
def test_a_path_has_nearly_the_log_ratios_of_exact_solutions(kind, case, rng, monkeypatch):
    if case == "digits":
        images, labels = load_digits(return_X_y=True)
        X, Y = images[np.isin(labels, [3, 8])], images[np.isin(labels, [1, 7])]
    else:
        X, Y = factors(rng, 500, case)
    found = kind().fit(X, background=Y).path_
    monkeypatch.setattr("standout.pencil._path.WHOLE_SIZE", 1000)
    exact = kind().fit(X, background=Y).path_
    # Constant columns of digits make the background singular without shrinkage: there is no ratio.
    assert (
        np.isnan(found.log_ratios[0]) == np.isnan(exact.log_ratios[0]) == (case == "digits" and kind.method == "dpca")
    )
    # Three values are solved first, by iterations for 180 columns. For the others, components are in the span of these
    # components and of their changes along the path.
    limit = 0.03 if kind.method == "dpca" else 0.2
    assert np.nanmax(np.abs(found.log_ratios - exact.log_ratios)) <= limit * np.nanmax(np.abs(exact.log_ratios))
    assert abs(found.chosen - exact.chosen) <= 1
    assert np.nanmedian(np.abs(found.log_ratios - exact.log_ratios)) <= 0.003 * np.nanmax(np.abs(exact.log_ratios))


def test_a_large_path_has_no_ratio_where_columns_repeat_each_other(rng):
    X, Y = factors(rng, 900, 260)
    whole = DiscriminativePCA(1).fit(X, background=Y).path_
    assert np.isfinite(whole.log_ratios).all()
    X[:, 7], Y[:, 7] = X[:, 3] - X[:, 5], Y[:, 3] - Y[:, 5]
    path = DiscriminativePCA(1).fit(X, background=Y).path_
    assert np.isnan(path.log_ratios).tolist() == [True] + [False] * 13
    np.testing.assert_allclose(path.log_ratios[4:], whole.log_ratios[4:], atol=0.1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fold", [0, 2, 4])
def test_a_value_without_a_ridge_needs_a_regular_background_in_every_fold(dtype, fold, rng):
    X, Y = factors(rng, 900, 160)
    # Without this fold, the background has a column without variance.
    Y[:, 9] = np.where(FoldPattern(5).of(np.arange(900)) == fold, Y[:, 9], 0.0)
    path = DiscriminativePCA(1).fit(X.astype(dtype), background=Y.astype(dtype)).path_
    assert np.isnan(path.log_ratios[0])
    assert np.isfinite(path.log_ratios[1:]).all()


@pytest.mark.filterwarnings("ignore:the chosen shrinkage")
@pytest.mark.parametrize("width", [10, 60])
def test_a_path_is_exact_beside_a_component_of_a_far_larger_ratio(width, rng, monkeypatch):
    X, Y = rng.normal(size=(2, 400, width))
    X[:, 0] *= 1e4
    X[:, 1] *= 1.5
    found = DiscriminativePCA(2).fit(X, background=Y).path_
    monkeypatch.setattr("standout.pencil._path.WHOLE_SIZE", 1000)
    exact = DiscriminativePCA(2).fit(X, background=Y).path_
    np.testing.assert_allclose(found.log_ratios, exact.log_ratios, atol=1e-9 if width == 10 else 0.02)


def test_units_of_scaled_columns_and_of_covariates_do_not_change_the_grid(rng):
    X, Y = rng.normal(size=(2, 80, 5)) * [3, 1, 1, 1, 1]
    ages = rng.normal(size=(2, 80, 1))
    given = [
        ({"scale": "pooled"}, {}, 10.0 ** np.arange(5)),
        ({}, {"adjust": 1e6 * ages[0], "background_adjust": 1e6 * ages[1]}, 1.0),
    ]
    for options, beside, units in given:
        plain = {name: 1e-6 * part for name, part in beside.items()}
        one = ContrastivePCA(1, **options).fit(X, background=Y, **plain).path_
        other = ContrastivePCA(1, **options).fit(units * X, background=units * Y, **beside).path_
        np.testing.assert_allclose(other.values, one.values)
        np.testing.assert_allclose(other.log_ratios, one.log_ratios)
