"""Weights of rows in permutations and draws: those that users give stay at their places, others go with the rows."""

import warnings

import numpy as np
import pytest
from scipy import linalg, sparse, stats

from array_libraries import dispatch, library
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout._messages import InvalidValueError
from standout.estimators import fitted_test
from standout.moments import CentredRows, gather
from standout.selection import component_test, stability
from standout.selection._dealing import Dealing
from standout.selection._permutation import permutation_test, spatial_median
from standout.selection._problem import Problem
from standout.sources import beside, joined_subjects, open_dataset

# Fixtures, which pytest finds by their names.
__all__ = ["dispatch", "library"]

KERNEL = {"kernel": KernelDiscriminativePCA, "kernel contrastive": KernelContrastivePCA}


def with_weights(data, weights, **facts):
    return beside(open_dataset(data, "the data"), weights=np.asarray(weights, dtype=float), **facts)


def permuted(X, Y, w=None, v=None, **options):
    """The test of a fit."""
    fit = {name: options.pop(name) for name in ("groups", "background_groups") if name in options}
    options = {"shrinkage": 0.2, "held_out": None, "random_state": 3, "n_components": 1} | options
    model = DiscriminativePCA(test="permutation", **options)
    return model.fit(X, background=Y, sample_weight=w, background_sample_weight=v, **fit)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(40, 5)), rng.normal(size=(50, 5)), rng.exponential(size=40), rng.pareto(2.0, size=50) + 0.1


# --- what is tested is the fit ---------------------------------------------------------------------------------------

WAYS = {
    "rows": {},
    "robust": {"robust": "rows"},
    "subjects": {"groups": np.arange(40) // 5, "background_groups": 100 + np.arange(50) // 5},
    "paired": {"groups": np.arange(40) // 5, "background_groups": np.arange(50) // 5},
    "equal": {"groups": np.arange(40) // 5, "background_groups": np.arange(50) // 4, "subject_weights": "equal"},
    "columns": {"n_columns": 3},
    "both sides": {"side": "both"},
}


# Of more columns than rows the least ratio is 0.
@pytest.mark.parametrize(("way", "width"), [(way, width) for way in WAYS for width in (5, 120)][:-1])
def test_the_ratios_of_the_test_are_those_of_the_fit(way, width, rng):
    X, Y = rng.normal(size=(40, width)), rng.normal(size=(50, width))
    w, v = rng.exponential(size=40), rng.pareto(2.0, size=50) + 0.1
    w[3] = v[7] = 0.0
    # With one component: of few columns, later ratios of the test are those of what the first leaves in all columns.
    model = permuted(X, Y, w, v, n_components=1 if way == "columns" else 2, **WAYS[way])
    np.testing.assert_allclose(model.component_test_.ratios, model.eigenvalues_, rtol=1e-7)


def test_robust_weights_alone_are_tested_as_they_are_fitted(rows):
    X, Y, *_ = rows
    model = permuted(X * [9, 1, 1, 1, 1], Y, robust="rows", n_components=2)
    np.testing.assert_allclose(model.component_test_.ratios, model.eigenvalues_, rtol=1e-8)


# --- reshuffling, step by step ---------------------------------------------------------------------------------------


def weighted_covariance(rows, weights):
    away = rows - weights @ rows / weights.sum()
    return (weights[:, None] * away).T @ away / weights.sum()


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("width", [4, 60])
def test_given_weights_stay_and_learned_ones_go_with_the_rows(width, robust, rng):
    """Against the same with matrices of all columns and nothing saved."""
    X, Y = rng.normal(size=(12, width)), rng.normal(size=(17, width))
    given = [rng.exponential(size=12), rng.pareto(1.5, size=17) + 0.01]
    learned = [rng.uniform(0.2, 1.0, size=12), rng.uniform(0.2, 1.0, size=17)] if robust else [np.ones(12), np.ones(17)]
    pooled = np.vstack(
        [
            part - spatial_median(part * np.sqrt(own)[:, None], np.sqrt(own))
            for part, own in zip((X, Y), learned, strict=True)
        ]
    )
    goes, stays, share = np.concatenate(learned), np.concatenate(given), 0.3

    def largest(order):
        weights = goes[order] * stays
        a, b = (weighted_covariance(pooled[order[part]], weights[part]) for part in (slice(12), slice(12, None)))
        b = (1 - share) * b + share * np.trace(b) / width * np.eye(width)
        return linalg.eigh(a, b, eigvals_only=True)[-1]

    draws, observed = np.random.default_rng([5, 0]), largest(np.arange(29))
    chance = [largest(draws.permutation(29)) for _ in range(19)]
    target, background = (
        CentredRows(part, own * some, own if robust else None)
        for part, own, some in zip((X, Y), learned, given, strict=True)
    )
    problem = Problem.of_shrinkage(np.ones(1), np.array([share]))
    test = permutation_test(target, [background], problem, n_components=1, n_permutations=19, seed=5)
    # Ten that reach the observed value are enough.
    n_made = test.n_made[0]
    assert n_made == 19 or np.sum(chance[:n_made] >= observed) == 10
    assert test.ratios[0] == pytest.approx(observed, rel=1e-9)
    assert test.edges[0] == pytest.approx(max(chance[:n_made]), rel=1e-9)


def test_weights_stay_at_the_places_of_subjects():
    target, background = joined_subjects([list("aaabb"), list("ccddddae")])
    weights = np.array([1, 1, 1, 2, 3, 5, 6, 7, 7, 7, 7, 8, 9.0])
    dealing = Dealing.of([target, background], weights)
    words = np.array(list("aaabb") + list("ccddddae"))
    np.testing.assert_array_equal(dealing.weights_at(dealing.places), weights)
    # b, c, d and e have places of different weights, so that all 4! ways differ; the parts of a are swapped.
    assert dealing.n_relabelings == 48
    for places in (dealing.relabelled(np.random.default_rng(seed)) for seed in range(20)):
        order, sizes, roots = dealing.order(places)
        found = np.empty(13)
        found[order] = roots**2
        homes = np.empty(13, dtype=int)
        homes[order] = np.repeat([0, 1], sizes)
        own, other = np.flatnonzero(words == "a")[:3], np.flatnonzero(words == "a")[3:]
        # The weights of a stay with the datasets: 1 in the target and 8 in the background.
        np.testing.assert_allclose(found[own], 1.0 if homes[own[0]] == 0 else 8.0)
        np.testing.assert_allclose(found[other], 1.0 if homes[other[0]] == 0 else 8.0)
        (at_b,) = (word for word in "bcde" if homes[words == word][0] == 0)
        expected = {"b": [2, 3], "c": [2, 3], "d": [2, 2, 3, 3], "e": [3]}[at_b]
        np.testing.assert_allclose(found[words == at_b], expected)


def test_equal_weights_are_none(rows):
    X, Y, *_ = rows
    # Whole numbers would count equal rows where robust weights are learned.
    for way in ("rows", "robust", "subjects", "paired"):
        plain = permuted(X, Y, **WAYS[way]).component_test_
        same = permuted(X, Y, np.full(40, 2.5), np.full(50, 0.1), **WAYS[way]).component_test_
        np.testing.assert_allclose(same.p_values, plain.p_values)
        np.testing.assert_allclose(same.edges, plain.edges)


@pytest.mark.parametrize("way", ["rows", "robust", "subjects", "equal"])
def test_the_unit_of_weights_does_not_matter(way, rows):
    X, Y, w, v = rows
    one, other = (permuted(X, Y, w, unit * v, **WAYS[way]).component_test_ for unit in (1.0, 1e9))
    np.testing.assert_allclose(other.p_values, one.p_values)
    np.testing.assert_allclose(other.edges, one.edges)


# --- rows of weight zero ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["rows", "subjects", "paired", "equal"])
@pytest.mark.parametrize("width", [5, 120])
def test_rows_of_weight_zero_are_as_good_as_left_out(way, width, rng):
    X, Y = rng.normal(size=(40, width)), rng.normal(size=(50, width))
    w, v = rng.exponential(size=40), rng.exponential(size=50)
    # Single rows, and a whole subject each.
    w[[0, 11, *range(20, 25)]] = v[[3, *range(30, 40)]] = 0.0
    options = WAYS[way]
    left = {name: part for name, part in options.items() if name == "subject_weights"}
    for name, own in (("groups", w), ("background_groups", v)):
        left |= {name: options[name][own > 0]} if name in options else {}
    weighted = permuted(X, Y, w, v, **options).component_test_
    fewer = permuted(X[w > 0], Y[v > 0], w[w > 0], v[v > 0], **left).component_test_
    np.testing.assert_allclose(weighted.ratios, fewer.ratios, rtol=1e-8)
    np.testing.assert_allclose(weighted.edges, fewer.edges, rtol=1e-8)
    np.testing.assert_allclose(weighted.p_values, fewer.p_values)


@pytest.mark.parametrize("make", KERNEL.values(), ids=KERNEL)
def test_kernels_and_contrastive_components_are_tested_without_rows_of_weight_zero(make, rows):
    X, Y, w, v = rows
    w[:6] = 0.0
    for kind in (make, ContrastivePCA):
        model = kind(1).fit(X, background=Y, sample_weight=w, background_sample_weight=v)
        whole, some = (
            fitted_test(model, with_weights(X[own], w[own]), with_weights(Y, v), n_permutations=39)
            for own in (slice(None), slice(6, None))
        )
        np.testing.assert_allclose(whole.p_values, some.p_values)
        np.testing.assert_allclose(whole.ratios, some.ratios, rtol=1e-8)


@pytest.mark.parametrize("make", [DiscriminativePCA, ContrastivePCA, *KERNEL.values()])
@pytest.mark.parametrize("in_parts", [False, True])
def test_a_subject_without_weight_is_no_error(make, in_parts, rows):
    X, Y, w, v = rows
    groups, others = np.arange(40) // 5, 100 + np.arange(50) // 5
    w[groups == 2] = 0.0
    given = {"background_sample_weight": v, "background_groups": others}
    fit = make(1).fit(X, background=Y, sample_weight=w, groups=groups, **given)
    if in_parts and not isinstance(fit, KernelDiscriminativePCA | KernelContrastivePCA):
        batches = (X[start : start + 8] for start in range(0, 40, 8))
        streamed = make(1).fit(batches, background=Y, sample_weight=w, groups=groups, **given)
        np.testing.assert_allclose(streamed.held_out_ratio_, fit.held_out_ratio_, rtol=1e-8)
        batches = (X[start : start + 8] for start in range(0, 40, 8))
        with pytest.raises(InvalidValueError, match="40"):
            make(1).fit(batches, background=Y, sample_weight=w, groups=groups[:-1], **given)
    fewer = make(1).fit(X[w > 0], background=Y, sample_weight=w[w > 0], groups=groups[w > 0], **given)
    np.testing.assert_allclose(fit.eigenvalues_, fewer.eigenvalues_, rtol=1e-6)
    assert fit.held_out_ratio_[0] > 0


@pytest.mark.parametrize("width", [3, 30])
@pytest.mark.parametrize("form", ["moments", "source", "sparse", "subjects"])
def test_draws_are_of_rows_that_have_a_weight(form, width, rng):
    X, Y, w = rng.normal(size=(20, width)), rng.normal(size=(9, width)), np.repeat([1.0, 2.0, 0.0], [5, 3, 12])
    options = {"n_components": 1, "shrinkage": 0.3, "n_bootstrap": 12, "random_state": 0}
    target = with_weights(sparse.csr_array(X) if form == "sparse" else X, w)
    if form == "moments":
        target, Y = CentredRows(X, w), gather(Y, kind="rows")
    with warnings.catch_warnings():
        # Every subject has one row.
        warnings.simplefilter("ignore", UserWarning)
        given = {"background_groups": range(20, 29)} if form == "subjects" else {}
        found = stability(target, Y, groups=range(20) if given else None, **options, **given)
        fewer = stability(with_weights(X[:8], w[:8]), Y, groups=range(8) if given else None, **options, **given)
    np.testing.assert_allclose(found.angles, fewer.angles, atol=1e-7)
    np.testing.assert_allclose(found.ratios_interval, fewer.ratios_interval, rtol=1e-7)


def test_draws_of_two_rows_with_a_weight_always_have_one(rng):
    # Draws of all eight rows had neither of them in one of ten.
    target = CentredRows(rng.normal(size=(8, 3)), np.repeat([1.0, 0.0], [2, 6]))
    found = stability(target, gather(rng.normal(size=(9, 3)), kind="rows"), n_components=1, n_bootstrap=30)
    assert np.all(found.angles >= 0)


# --- other libraries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [5, 60])
@pytest.mark.parametrize("way", ["rows", "robust", "subjects"])
def test_every_array_library_deals_weights_alike(way, width, library, rng):
    X, Y = rng.normal(size=(40, width)), rng.normal(size=(50, width))
    w, v = rng.exponential(size=40), rng.exponential(size=50)
    w[4] = 0.0
    ours, theirs = (
        permuted(there(X), there(Y), w, v, **WAYS[way]).component_test_ for there in (np.asarray, library.there)
    )
    np.testing.assert_allclose(theirs.ratios, ours.ratios, rtol=1e-8)
    np.testing.assert_allclose(theirs.p_values, ours.p_values)


# --- the level -------------------------------------------------------------------------------------------------------

# Weights of the target and of the background. 60 rows of one distribution have none of these in common.
KINDS = {
    "few of weight": lambda rng: (None, np.where(np.arange(60) < 12, 1.0, 0.0)),
    "few of most weight": lambda rng: (None, np.where(np.arange(60) < 12, 1.0, 0.01)),
    "a subject has all": lambda rng: (None, np.where(np.arange(60) < 12, 1.0, 0.02)),
}
N_DATASETS = 100
# So many alarms, at a level of 5 %, chance makes in less than one of 1,000 cases.
TOO_MANY = int(stats.binom.isf(1e-3, N_DATASETS, 0.05)) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_differ_between_datasets_make_no_alarm(kind):
    """A quick look. Other weights, and more datasets, are in `benchmarks/row_weights.py`."""
    alarms = 0
    for seed in range(N_DATASETS):
        rng = np.random.default_rng([seed, 11])
        X, Y = rng.normal(size=(60, 5)), rng.normal(size=(60, 5))
        groups = (
            {"groups": np.arange(60) // 4, "background_groups": 100 + np.arange(60) // 4} if "subject" in kind else {}
        )
        alarms += permuted(X, Y, *KINDS[kind](rng), shrinkage=0.1, **groups).component_test_.n_significant
    assert alarms < TOO_MANY


def test_weights_that_differ_between_datasets_make_no_alarm_with_kernels():
    alarms, few = 0, np.where(np.arange(60) < 12, 1.0, 0.02)
    for seed in range(N_DATASETS):
        rng = np.random.default_rng([seed, 55])
        X, Y, given = rng.normal(size=(60, 4)), rng.normal(size=(60, 4)), {"background_sample_weight": few}
        model = KernelDiscriminativePCA(1, held_out=None, epsilon=0.01).fit(X, background=Y, **given)
        alarms += fitted_test(model, X, Y, n_components=1, n_permutations=19, **given).n_significant
    assert alarms < TOO_MANY


def test_the_formula_is_not_taken_where_few_rows_have_most_of_the_weight(rng):
    X, Y, weights = rng.normal(size=(400, 8)), rng.normal(size=(400, 8)), np.repeat([1e6, 1.0], [5, 395])
    with pytest.raises(InvalidValueError, match="4 degrees of freedom"):
        component_test(X, with_weights(Y, weights), method="analytic")
    assert component_test(X, with_weights(Y, weights), n_components=1).method == "permutation"
    # Also where a fit would take the formula because permutations take long.
    model = DiscriminativePCA(1, test="auto", shrinkage=None, held_out=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("standout.selection._significance.QUICKLY_PERMUTED", 0.0)
        model.fit(X, background=Y, background_sample_weight=weights)
    assert model.component_test_.method == "permutation"


def test_the_formula_counts_weighted_rows_as_they_are_worth():
    alarms = 0
    for seed in range(N_DATASETS):
        rng = np.random.default_rng([seed, 12])
        X, Y = (with_weights(rng.normal(size=(60, 3)), rng.exponential(size=60)) for _ in range(2))
        alarms += component_test(X, Y, method="analytic").n_significant
    assert alarms < TOO_MANY
