"""Moments: the laws of merging first, then every kind of input against one dense float64 reference."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.covariance import ledoit_wolf_shrinkage

from moments_data import EVERY, KINDS, assert_moments, assert_same, of_kind, reference, tables
from standout.moments import (
    FoldPattern,
    NormSums,
    RowMoments,
    ScatterMoments,
    gather,
    gather_keyed,
    ledoit_wolf,
    own_shrinkage,
    project,
    span_of,
)
from standout.sources import open_dataset

# --- laws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(first=tables, second=tables, third=tables)
def test_merging_is_one_pass_over_all_rows_in_any_order_and_grouping(kind, first, second, third):
    one, two, three = (gather(X, kind=kind, norms=True) for X in (first, second, third))
    whole = gather(np.vstack([first, second, third]), kind=kind, norms=True)
    size = max(np.abs(X).max() for X in (first, second, third)) + 1e-6
    assert_same((one + two) + three, whole, size)
    assert_same(one + (two + three), whole, size)
    assert_same(three + one + two, whole, size)


@settings(max_examples=60)
@given(first=tables, second=tables, offset=st.sampled_from([0.0, 1e5]))
def test_what_is_removed_leaves_the_moments_of_the_others(first, second, offset):
    one, two = (gather(X + offset, norms=True) for X in (first, second))
    left = (one + two).without(two)
    if left is not None:
        size = max(np.abs(first).max(), np.abs(second).max()) + 1e-6 + 1e-9 * offset
        assert_same(left, one, 10 * size)


def test_rows_are_not_removed_if_that_costs_digits(rng):
    small, large = gather(rng.normal(size=(50, 3))), gather(1e3 * rng.normal(size=(50, 3)))
    assert (small + large).without(large) is None
    assert (large + gather(rng.normal(size=(2, 3)))).without(large) is None


@settings(max_examples=40)
@given(X=tables, data=st.data())
def test_whole_weights_are_repeated_rows(X, data):
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))), dtype=float)
    weights[0] = 1.0
    for kind in EVERY:
        source = open_dataset(sparse.csr_array(X) if kind == "rows" else X, "the data")
        source.weights = weights
        found, repeated = gather(source, kind=kind), np.repeat(X, weights.astype(int), axis=0)
        assert found.total_weight == weights.sum()
        np.testing.assert_allclose(found.mean, repeated.mean(axis=0), atol=1e-10)
        np.testing.assert_allclose(
            found.covariance(), reference(repeated)[1], atol=1e-9 * (np.abs(X).max() ** 2 + 1e-9)
        )


@pytest.mark.parametrize("first", EVERY)
@pytest.mark.parametrize("second", EVERY)
def test_representations_merge_with_each_other(first, second, rng):
    X = rng.normal(size=(30, 5)) * [1, 10, 1, 1, 0.1] + 3
    norms = "rows" not in (first, second)
    both = of_kind(X[:12], first, norms=norms) + of_kind(X[12:], second, norms=norms)
    assert_moments(both, X, rtol=1e-11)
    if norms:
        np.testing.assert_allclose(both.norms.quartic, gather(X, norms=True).norms.quartic)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_sums_of_norms_follow_a_change_of_the_origin(weighted, rng):
    """All four sums about another point, from their definition; rows have the root of their weight as a factor."""
    rows, shift, weights = rng.normal(size=(9, 4)) + 1.0, rng.normal(size=4), rng.uniform(0.5, 3.0, 9)
    weights = weights if weighted else np.ones(9)

    def sums(rows):
        squares = np.sum(rows**2, axis=1)
        return NormSums(weights * squares @ rows, weights @ squares**2, weights @ rows, weights @ squares)

    given = rows * np.sqrt(weights)[:, None]
    own, moved = NormSums.of(given, weights if weighted else None), sums(rows + shift)
    found = own.shifted(shift, np.sum(weights), given.T @ given @ shift)
    both = found.plus(own)
    for name in ("cubic", "quartic", "linear", "quadratic"):
        np.testing.assert_allclose(getattr(own, name), getattr(sums(rows), name))
        np.testing.assert_allclose(getattr(found, name), getattr(moved, name))
        np.testing.assert_allclose(getattr(both, name), getattr(moved, name) + getattr(own, name))
        np.testing.assert_allclose(getattr(both.plus(own, -1.0), name), getattr(moved, name))


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_weighted_moments_merge_to_those_of_all_rows(first, second, rng):
    X, weights = rng.normal(size=(40, 3)) * [1, 5, 0.2] + 4, rng.uniform(0.1, 3.0, 40)
    parts = []
    for kind, some in ((first, slice(0, 25)), (second, slice(25, 40))):
        source = open_dataset(X[some], "the data")
        source.weights = weights[some]
        parts.append(gather(source, kind=kind, norms=True))
    both = parts[0] + parts[1]
    assert_moments(both, X, rtol=1e-11, weights=weights)
    assert both.total_weight == pytest.approx(weights.sum())
    assert both.effective_count == pytest.approx(weights.sum() ** 2 / np.sum(weights**2))
    if "rows" not in (first, second):
        source = open_dataset(X, "the data")
        source.weights = weights
        # Shrinkage does not depend on how the rows were divided.
        assert ledoit_wolf(both) == pytest.approx(ledoit_wolf(gather(source, norms=True)), rel=1e-10)
    # One dataset with weights and one without.
    mixed = parts[0] + gather(X[25:], kind=second)
    assert_moments(mixed, X, rtol=1e-11, weights=np.append(weights[:25], np.ones(15)))
    assert mixed.effective_count == pytest.approx((weights[:25].sum() + 15) ** 2 / (np.sum(weights[:25] ** 2) + 15))
    if first == second == "scatter":
        left = both.without(parts[1])
        assert_moments(replace(left, count=25), X[:25], rtol=1e-10, weights=weights[:25])
        assert left.effective_count == pytest.approx(parts[0].effective_count)


@pytest.mark.parametrize(("count", "spreads"), [(30, [1, 2, 3, 9]), (3, [1, 1.2, 1.1, 1]), (20, [1, 1, 1, 1])])
def test_shrinkage_without_fourth_powers_is_that_of_normal_rows(count, spreads):
    """Equation 23 of Chen et al. (2010), with the trace as the unit; 1 if the covariance is a sphere."""
    C = np.diag(np.square(spreads).astype(float))
    square, trace, d = np.sum(C**2), np.trace(C), 4
    expected = 1.0
    if len(set(spreads)) > 1:
        expected = ((1 - 2 / d) * square + trace**2) / ((count + 1 - 2 / d) * (square - trace**2 / d))
    assert own_shrinkage(ScatterMoments(count, np.zeros(4), count * C), 4) == pytest.approx(min(expected, 1.0))


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (2, 3), (1000, 3)])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
def test_every_representation_has_the_same_answers(kind, shape, offset, rng):
    if kind == "rows" and offset > 100:
        pytest.skip("sparse rows are corrected for the mean after the product")
    X = rng.normal(size=shape) * rng.uniform(0.1, 10, shape[1]) + offset
    moments = of_kind(X, kind)
    covariance = reference(X)[1]
    U = rng.normal(size=(shape[1], 3))
    # The rounding of the data at `offset` limits the accuracy of all moments.
    near = {"rtol": 1e-10, "atol": 1e-11 * covariance.max() + 1e-15 * offset}
    np.testing.assert_allclose(moments.covariance(), covariance, **near)
    np.testing.assert_allclose(moments.variances, np.diagonal(covariance), **near)
    np.testing.assert_allclose(moments.apply(U), covariance @ U, rtol=1e-9, atol=near["atol"] * 10)
    np.testing.assert_allclose(moments.variance(U), np.einsum("ij,ij->j", U, covariance @ U), rtol=1e-9)
    if kind != "rows":
        np.testing.assert_allclose(moments.squared_norm, np.sum(covariance**2), rtol=1e-9)


@pytest.mark.parametrize("kind", EVERY)
def test_mapped_and_taken_moments_are_those_of_changed_rows(kind, rng):
    X = rng.normal(size=(50, 6)) + 2
    moments, columns = of_kind(X, kind), np.array([4, 1])
    assert_moments(moments.taken(columns), X[:, columns], rtol=1e-11)
    for L in (rng.normal(size=(6, 3)), rng.normal(size=(6, 8))):
        assert_moments(moments.mapped(L), X @ L, rtol=1e-10)
    factors = 2.0 ** np.arange(6)
    assert_moments(moments.mapped(factors), X * factors, rtol=1e-11)


# --- accuracy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 2.0, 1e3, 1e8])
def test_a_mean_of_any_size_costs_float64_no_accuracy(offset, rng):
    noise = rng.integers(-1000, 1000, size=(2000, 3)) / 1024.0  # exact in float64 for every offset
    exact = reference(noise)[1]
    # Without centring first, an offset of 1e8 would leave no digit.
    np.testing.assert_allclose(gather(noise + offset).covariance(), exact, rtol=1e-11, atol=1e-13)
    for fold, part in enumerate(gather_keyed(noise + offset, FoldPattern(5), norms=True)):
        rows = noise[FoldPattern(5).of(np.arange(2000)) == fold]
        np.testing.assert_allclose(part.covariance(), reference(rows)[1], rtol=1e-11, atol=1e-13)
        fourth = np.sum(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1) ** 2)
        assert part.norms.quartic == pytest.approx(fourth, rel=1e-9)


def test_groups_of_rows_far_from_each_other_keep_their_digits(rng):
    X = rng.normal(size=(6000, 3))
    keys = np.repeat([0, 1], 3000)
    X[3000:] += 1e9
    X = np.round(X * 1024) / 1024
    for key, part in enumerate(gather_keyed(X, keys, 2)):
        rows = X[keys == key] - (1e9 if key else 0.0)
        np.testing.assert_allclose(part.covariance(), reference(rows)[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_column_has_exactly_no_variance(kind, rng):
    X = rng.normal(size=(100, 3))
    X[:, 1] = 0.1
    assert gather(X, kind=kind).variances[1] == 0.0
    assert all(part.variances[1] == 0.0 for part in gather_keyed(X, FoldPattern(3), kind=kind))


def test_float32_far_from_the_origin_keeps_its_spread(rng):
    X = (rng.normal(size=(3000, 5)) + 10_000).astype(np.float32)
    moments = gather(X)
    # Products in single precision of numbers of size 1. Rounding of the data (1e-3 at 10,000) is not an error here.
    assert_moments(moments, X, rtol=1e-5)
    assert moments.precision == np.finfo(np.float32).eps
    assert (moments + gather(np.float64(X))).precision == np.finfo(np.float32).eps


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_float32_whose_squares_are_out_of_range_is_multiplied_in_double_precision(scale, rng):
    X = (rng.normal(size=(200, 3)) * scale).astype(np.float32)
    assert_moments(gather(X), X, rtol=1e-12)


@pytest.mark.parametrize(("value", "message"), [(np.nan, "NaN or infinity"), (1e200, "out of the range")])
def test_numbers_that_cannot_be_squared_are_refused(value, message, rng):
    X = rng.normal(size=(30, 3))
    X[4, 1] = value
    with pytest.raises(ValueError, match=f"{message} in the target|{message}"):
        gather_keyed(X, FoldPattern(5), name="the target")


# --- shrinkage, scores ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(200, 5), (20, 50), (30, 1), (50, 50)])
def test_ledoit_wolf_agrees_with_scikit_learn(kind, shape, rng):
    X = rng.normal(size=shape) * rng.uniform(0.5, 2, shape[1]) + 7
    expected = pytest.approx(ledoit_wolf_shrinkage(X), rel=1e-10)
    assert ledoit_wolf(gather(X, kind=kind, norms=True)) == expected
    first, *rest = [part for part in gather_keyed(X, FoldPattern(4), kind=kind, norms=True) if part is not None]
    assert ledoit_wolf(sum(rest, start=first)) == expected
    if shape == (20, 50):
        coordinates = span_of([X]).coordinates[0]
        assert ledoit_wolf(gather(coordinates, norms=True), dimension=50) == expected


@pytest.mark.parametrize("seed", range(10))
def test_ledoit_wolf_is_never_negative_though_two_rows_have_no_noise_but_rounding(seed):
    share = ledoit_wolf(gather(np.random.default_rng(seed).normal(size=(2, 3)), norms=True))
    assert 0.0 <= share < 1e-14


def test_ledoit_wolf_without_norms_names_the_remedy(rng):
    with pytest.raises(TypeError, match="norms=True"):
        ledoit_wolf(gather(rng.normal(size=(20, 3))))


def test_scores_are_those_of_centred_rows_however_far_they_are_from_zero(rng):
    X, U = rng.integers(-50, 50, size=(40, 5)) / 64 + 1e9, rng.normal(size=(5, 2))
    np.testing.assert_allclose(project(X, X[0], U), (X - X[0]) @ U, rtol=1e-12)
    rows = sparse.csr_array(rng.poisson(1.0, size=(30, 5)).astype(float))
    np.testing.assert_allclose(project(rows, np.ones(5), U), (rows.toarray() - 1) @ U, atol=1e-12)


def test_kinds_are_as_asked(rng):
    X = rng.normal(size=(9, 5))
    assert isinstance(gather(X), ScatterMoments)


@pytest.mark.parametrize("weighted", [False, True])
def test_variances_of_sparse_rows_far_from_zero_keep_their_digits(weighted, rng):
    rows = rng.normal(size=(40, 6)) + 1e7
    rows[:, 2:] *= rng.random((40, 4)) < 0.3
    weights = rng.uniform(size=40) if weighted else np.ones(40)
    found = RowMoments(sparse.csr_array(rows), weights if weighted else None).variances
    mean = np.average(rows, axis=0, weights=weights)
    np.testing.assert_allclose(found, np.average((rows - mean) ** 2, axis=0, weights=weights), rtol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e12])
def test_small_directions_of_the_span_do_not_depend_on_the_unit(unit, rng):
    parts = [rng.normal(size=(10, 30)) * np.logspace(0, -6, 30) * unit for _ in range(2)]
    span = span_of(parts)
    # 20 rows about their mean.
    assert span.coordinates[0].shape[1] == 19
