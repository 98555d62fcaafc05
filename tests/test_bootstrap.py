"""The bootstrap: ratios of the rows that were not drawn, angles and intervals."""

import numpy as np
import pytest

from benchmarks import inference as simulations
from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, bootstrap
from standout._messages import InvalidValueError
from standout.selection._bootstrap import _fisher_intervals, _Refit
from standout.selection._units import plan_subjects
from standout.sources import open_datasets
from two_samples import fitted, subjects_of, two, wide

pytestmark = pytest.mark.filterwarnings("ignore::standout._messages.FindingWarning")


def test_left_out_ratios_are_those_of_the_rows_that_were_not_drawn(rng):
    X, Y = two(rng, 40, 50, 4, 1.0)
    model = fitted(X, Y, shrinkage=0.2)
    refit = _Refit(open_datasets(X, Y), model.problem_, model.components_.T, rng)
    times = next(refit.deck.plan.times(rng, 1))
    ratio, _, correlations = refit.draw(times)
    rows = refit.deck.numbers(refit.deck.plan.parts[0])
    counts = np.empty(90)
    counts[rows] = times
    drawn = [np.repeat(part, own.astype(int), axis=0) for part, own in ((X, counts[:40]), (Y, counts[40:]))]
    again = fitted(*drawn, shrinkage=0.2, cv=None)
    u = again.components_[0]
    left = [part[own == 0] @ u for part, own in ((X, counts[:40]), (Y, counts[40:]))]
    assert ratio[0] == pytest.approx(left[0].var(ddof=1) / left[1].var(ddof=1))
    np.testing.assert_allclose(np.abs(correlations[0]), np.abs(again.correlations_[0]), atol=1e-9)
    # Two rows that are not drawn have a variance, a single one has none.
    times = np.ones(90)
    times[[0, 1, 50, 51]] = 0.0
    counts[rows] = times
    u = fitted(X[counts[:40] > 0], Y[counts[40:] > 0], shrinkage=0.2, cv=None).components_[0]
    left = [part[own == 0] @ u for part, own in ((X, counts[:40]), (Y, counts[40:]))]
    assert refit.draw(times)[0][0] == pytest.approx(left[0].var(ddof=1) / left[1].var(ddof=1))
    times[51] = 1.0
    assert np.isnan(refit.draw(times)[0]).all()


@pytest.mark.parametrize("center", ["own", "background"])
def test_a_bootstrap_is_its_definition_written_out(rng, center):
    """Ratios of the rows that were not drawn, angles of scores in the whole target, quantiles of both."""
    X, Y = two(rng, 40, 50, 4, 1.5, 2)
    X[:, 0] *= 1.5
    Z = rng.normal(size=(30, 4))
    shares = np.array([0.25, 0.75])
    given = {"shrinkage": 0.2, "background_weights": shares, "center": center, "cv": None}
    model = DiscriminativePCA(2, **given).fit(X, background=[Y, Z])
    found = bootstrap(model, X, background=[Y, Z], n_draws=12, level=0.8)
    refit = _Refit(open_datasets(X, [Y, Z]), model.problem_, model.components_.T, np.random.default_rng([0, 1]))
    # The draws are the same; the rows of the deck are in a different order.
    rows = refit.deck.numbers(refit.deck.plan.parts[0])
    C = np.cov(X.T, bias=True)
    for draw, times in enumerate(refit.deck.plan.times(np.random.default_rng([0, 2]), 12)):
        counts = np.empty(120)
        counts[rows] = times
        parts = list(zip((X, Y, Z), np.split(counts.astype(int), [40, 90]), strict=True))
        drawn = [np.repeat(part, own, axis=0) for part, own in parts]
        U = DiscriminativePCA(2, **given).fit(drawn[0], background=drawn[1:]).components_.T
        both = model.components_ @ C @ U
        both /= np.sqrt(np.outer(np.diag(model.components_ @ C @ model.components_.T), np.diag(U.T @ C @ U)))
        order = np.abs(both).argmax(axis=1)
        U, both = U[:, order], np.abs(both[np.arange(2), order])
        left = [part[own == 0] for part, own in parts]
        own, *others = (np.var(part @ U, axis=0, ddof=1) for part in left)
        if center == "background":
            own += ((left[0].mean(axis=0) - shares @ [part.mean(axis=0) for part in left[1:]]) @ U) ** 2
        np.testing.assert_allclose(found.ratios[draw], own / (shares @ others), rtol=1e-8)
        np.testing.assert_allclose(found.angle_draws[draw], np.degrees(np.arccos(both)), atol=1e-5)
    np.testing.assert_allclose(found.angles, np.median(found.angle_draws, axis=0))
    expected = np.exp(np.quantile(np.log(found.ratios), [0.1, 0.9], axis=0)).T
    np.testing.assert_allclose(found.ratio_intervals, expected)
    assert found.correlation_intervals.shape == (2, 4, 2)


def test_subjects_of_both_datasets_are_drawn_together(rng):
    codes = [np.repeat(np.arange(6), 2), np.repeat(np.arange(3, 9), 2)]
    plan = plan_subjects(codes, 100, 100, rng, thinned=False)
    for times in plan.times(rng, 20):
        by_home = [dict(zip(plan.groups[plan.homes == k], times[plan.homes == k], strict=True)) for k in (0, 1)]
        assert all(by_home[0][name] == by_home[1][name] for name in (3, 4, 5))
        assert times[plan.groups < 0].sum() == 6
        assert times.sum() == 12


def test_intervals_of_correlations_are_symmetric_in_fishers_z():
    estimate, draws = np.array([[0.5]]), np.tanh(np.arctanh(0.5) + np.array([-0.4, 0.1, 0.2, 0.3, -0.3]))
    lower, upper = _fisher_intervals(estimate, draws[:, None, None], 0.75)[0, 0]
    # Three quarters of the distances .1, .2, .3, .3, .4 are at most .3.
    np.testing.assert_allclose(np.arctanh([lower, upper]), np.arctanh(0.5) + np.array([-0.3, 0.3]))


def test_rows_of_few_subjects_are_less_sure_than_they_look(rng):
    X, groups = subjects_of(rng, 8, 30, 4, 0.6)
    Y, others = subjects_of(rng, 8, 30, 4, 0.6, first=8)
    model = fitted(X, Y)
    rows = bootstrap(model, X, background=Y, n_draws=60)
    subjects = bootstrap(model, X, background=Y, n_draws=60, groups=groups, background_groups=others)
    assert (rows.unit, subjects.unit) == ("rows", "subjects")
    assert subjects.angles[0] > 1.5 * rows.angles[0]
    widths = [np.diff(np.log(found.ratio_intervals), axis=1)[0, 0] for found in (rows, subjects)]
    assert widths[1] > 2.0 * widths[0]


@pytest.mark.parametrize("options", [{}, {"scale": "pooled"}, {"n_columns": 10}])
def test_wide_rows_are_drawn_again(rng, options):
    X, Y, signs = wide(rng)
    model = fitted(X, Y, **options)
    found = bootstrap(model, X, background=Y, n_draws=20)
    lower, upper = found.correlation_intervals[0].T
    middle = np.tanh((np.arctanh(lower) + np.arctanh(upper)) / 2)
    np.testing.assert_allclose(np.abs(middle), np.abs(model.correlations_[0]), atol=1e-6)
    assert np.mean((lower > 0) | (upper < 0)) > 0.9
    assert abs(np.sign(middle) @ signs) == 60


def test_many_rows_are_drawn_in_blocks(rng):
    X, Y = two(rng, 4000, 4000, 4, 1.0)
    found = bootstrap(fitted(X, Y), X, background=Y, n_draws=60)
    assert found.unit == "blocks"
    # The tolerance is 3.3 standard errors of the logarithm of a ratio of variances, √(2 / n + 2 / n). A third of the
    # rows is not drawn.
    assert np.log(found.ratio_intervals[0]) == pytest.approx(np.log([4.0, 4.0]), abs=0.3)
    assert 0.05 < np.diff(np.log(found.ratio_intervals[0]))[0] < 0.35
    assert found.angles[0] < 3.0


def test_kernels_have_intervals_of_ratios(rng):
    X, Y = two(rng, 40, 40, 3, 1.0)
    found = bootstrap(KernelDiscriminativePCA(1).fit(X, background=Y), X, background=Y, n_draws=20)
    assert found.correlation_intervals is None
    assert np.all(np.isfinite(found.ratio_intervals))


@pytest.mark.long
@pytest.mark.parametrize("name", simulations.COVERAGE)
def test_intervals_cover_the_truth(name):
    run = simulations.COVERAGE[name]
    ratio, correlations, _ = np.mean([run(np.random.default_rng([0, one]), 100) for one in range(60)], axis=0)
    assert 0.8 <= ratio <= 1.0
    assert 0.8 <= correlations <= 0.97


def test_a_bootstrap_that_cannot_be_made_is_an_error(rng):
    X, Y = two(rng)
    with pytest.raises(InvalidValueError, match="n_draws=1 is too few"):
        bootstrap(fitted(X, Y), X, background=Y, n_draws=1)
    with pytest.raises(InvalidValueError, match="level=2.0 is not between 0 and 1"):
        bootstrap(fitted(X, Y), X, background=Y, level=2.0)


@pytest.mark.parametrize("width", [4, 900])
def test_intervals_are_in_the_order_of_the_fit(rng, width):
    # The first column has the larger difference of variances, the second one the larger ratio.
    X, Y = rng.normal(size=(2, 400, width))
    X[:, :2] *= [10.5, 3.0]
    Y[:, 0] *= 9.5
    model = ContrastivePCA(2, alpha=1.0).fit(X, background=Y)
    assert np.abs(model.correlations_).argmax(axis=1).tolist() == [1, 0]
    found = bootstrap(model, X, background=Y, n_draws=10)
    assert np.all(np.mean(found.ratio_intervals, axis=1)[0] > found.ratio_intervals[1])
    for own, intervals in zip(model.correlations_, found.correlation_intervals, strict=True):
        place = np.abs(own).argmax()
        assert intervals[place, 0] <= own[place] <= intervals[place, 1]


def test_columns_are_found_by_name_and_other_columns_are_refused(rng):
    pandas = pytest.importorskip("pandas")
    X, Y = (pandas.DataFrame(rng.normal(size=(60, 4)) * [1, 4, 1, 1], columns=list("abcd")) for _ in range(2))
    X["c"] *= 5.0
    model = DiscriminativePCA(1).fit(X, background=Y)
    plain, turned = (
        bootstrap(model, X[names], background=Y[names], n_draws=10) for names in (list("abcd"), list("dcba"))
    )
    np.testing.assert_allclose(turned.correlation_intervals, plain.correlation_intervals, atol=1e-9)
    with pytest.raises(InvalidValueError, match="lacks column 'd'"):
        bootstrap(model, X[list("abc")], background=Y[list("abc")])
    with pytest.raises(InvalidValueError, match="3 features"):
        bootstrap(model, X.to_numpy()[:, :3], background=Y.to_numpy()[:, :3])
