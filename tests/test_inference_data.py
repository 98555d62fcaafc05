"""Permutation tests of every form of data: batches, weights, covariates, units that change places, errors."""

from math import comb

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from standout import DiscriminativePCA, make_pipeline, permutation_test
from standout._messages import CautionWarning, InvalidValueError
from standout.selection._resample import Deck, centred, middle_of
from standout.selection._units import _rows_of_each, plan_rows, plan_subjects
from two_samples import fitted, log_ratio, subjects_of, two, wide

pytestmark = pytest.mark.filterwarnings("ignore::standout._messages.FindingWarning")


# --- one test in all forms -------------------------------------------------------------------------------------------


def test_many_rows_are_dealt_in_blocks_which_are_the_same_in_memory_and_in_parts(rng, tmp_path):
    da = pytest.importorskip("dask.array")
    X, Y = two(rng, 3000, 2500, 5, 0.3)
    model = fitted(X, Y)
    known = permutation_test(model, X, background=Y)
    assert known.unit == "blocks"
    assert known.n_components == 1
    mapped = []
    for name, rows in (("x", X), ("y", Y)):
        np.save(tmp_path / f"{name}.npy", rows)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    forms = {
        "iterator": (iter(np.array_split(X, 7)), iter(np.array_split(Y, 5))),
        "memory-mapped": tuple(mapped),
        "sparse": (sparse.csr_array(X), sparse.csr_array(Y)),
        "dask": (da.from_array(X, chunks=(700, 5)), da.from_array(Y, chunks=(900, 5))),
    }
    for name, (target, background) in forms.items():
        test = permutation_test(model, target, background=background)
        assert test.unit == "blocks", name
        np.testing.assert_allclose(test.statistics, known.statistics, atol=1e-6)
        np.testing.assert_array_equal(test.p_values, known.p_values)


def test_subjects_that_are_read_in_parts_have_the_test_of_memory(rng):
    da = pytest.importorskip("dask.array")
    X, groups = subjects_of(rng, 7, [20, 30, 40, 50, 60, 70, 80], 5)
    Y, others = subjects_of(rng, 8, 25, 5, first=7)
    model = fitted(X, Y)
    given = {"groups": groups, "background_groups": others}
    known = permutation_test(model, X, background=Y, **given)
    parts = permutation_test(model, da.from_array(X, chunks=(100, 5)), background=da.from_array(Y), **given)
    np.testing.assert_allclose(parts.draws[0], known.draws[0], atol=1e-6)


@pytest.mark.parametrize("n", [60, 2500])
def test_torch_arrays_have_the_test_of_numpy_arrays(rng, n):
    torch = pytest.importorskip("torch")
    X, Y = two(rng, n, n)
    model = fitted(X, Y)
    known = permutation_test(model, X, background=Y, n_draws=39)
    other = permutation_test(model, torch.asarray(X), background=torch.asarray(Y), n_draws=39)
    np.testing.assert_allclose(other.draws[0], known.draws[0], atol=1e-8)


def test_threads_and_equal_weights_change_nothing(rng):
    X, Y = two(rng, strength=0.0)
    model = fitted(X, Y)
    # The test ends early here, without a warning of draws that are not used.
    known, threads = (permutation_test(model, X, background=Y, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert known.n_draws[0] < 199
    np.testing.assert_array_equal(threads.p_values, known.p_values)
    X, Y = two(rng, strength=0.3)
    model = fitted(X, Y)
    known = permutation_test(model, X, background=Y, random_state=1)
    threads = permutation_test(model, X, background=Y, random_state=1, n_jobs=2)
    weights = permutation_test(model, X, background=Y, random_state=1, sample_weight=np.full(len(X), 3.0))
    np.testing.assert_array_equal(threads.p_values, known.p_values)
    np.testing.assert_allclose(weights.draws[0], known.draws[0], atol=1e-9)
    other = permutation_test(model, X, background=Y, random_state=2)
    assert not np.allclose(other.draws[0][:5], known.draws[0][:5])


def test_weights_that_users_give_stay_at_their_places_and_learned_ones_go_with_rows(rng):
    plan = plan_rows([3, 2], 100, rng)
    rows, learned, placed = rng.normal(size=(5, 2)), rng.random(5), rng.random((5, 1))
    deck = Deck(plan, rows, np.concatenate(plan.keys), learned, placed=placed)
    at = np.array([4, 0, 2, 1, 3])
    numbers = deck.numbers(plan.parts[0][at])
    for home, places in enumerate(plan.places):
        dealt = numbers[places]
        weights = learned[dealt] * placed[places, 0]
        found = deck.dealt(at)[home]
        assert found.total_weight == pytest.approx(weights.sum())
        expected = np.cov(rows[dealt].T, aweights=weights, ddof=0)
        np.testing.assert_allclose(found.covariance(), expected, atol=1e-12)


def test_the_statistic_with_weights_is_that_of_the_fit(rng):
    X, Y = two(rng, 40, 40, 4)
    weights = {"sample_weight": rng.exponential(size=40), "background_sample_weight": np.ones(40)}
    model = DiscriminativePCA(1, shrinkage=0.2).fit(X, background=Y, **weights)
    test = permutation_test(model, X, background=Y, **weights)
    assert test.statistics[0] == pytest.approx(np.log(model.eigenvalues_[0]), abs=1e-9)


def test_covariates_are_removed_from_each_dataset_before_rows_are_dealt(rng):
    X, Y = two(rng)
    z, w = rng.normal(size=(60, 1)), rng.normal(size=(70, 1))
    X, Y = X + 3.0 * z, Y - 2.0 * w
    model = DiscriminativePCA(1, shrinkage=0.2).fit(X, background=Y, adjust=z, background_adjust=w)
    test = permutation_test(model, X, background=Y, adjust=z, background_adjust=w)

    def residual(rows, by):
        by = by - by.mean()
        return rows - by @ (by.T @ rows) / np.sum(by**2)

    # Differences between the effects are shortened to their expected length under chance.
    assert test.statistics[0] == pytest.approx(log_ratio(residual(X, z), residual(Y, w), 0.2), abs=0.05)


def test_covariates_leave_independent_rows_of_many_coordinates(rng):
    """If effects were removed in each dataset only, draws would have other leading values than the data: p = 0.005."""
    values = []
    for _ in range(5):
        (X, Y), z, w = rng.normal(size=(2, 40, 150)), *rng.normal(size=(2, 40, 8))
        model = DiscriminativePCA(1, shrinkage=0.1, cv=None).fit(X, background=Y, adjust=z, background_adjust=w)
        test = permutation_test(model, X, background=Y, adjust=z, background_adjust=w, n_draws=39)
        values.append(test.p_values[0])
    assert np.mean(values) > 0.2


def test_covariates_are_removed_from_the_means_before_rows_are_dealt(rng):
    values = []
    for _ in range(5):
        (X, Y), z, w = rng.normal(size=(2, 40, 4)), *rng.normal(size=(2, 40, 1))
        given = {"background": Y + 20.0 * w, "adjust": z, "background_adjust": w}
        model = DiscriminativePCA(1, center="background", cv=None).fit(X + 20.0 * z, **given)
        values.append(permutation_test(model, X + 20.0 * z, **given, n_draws=39).p_values[0])
    assert np.mean(values) > 0.2


def test_a_pipeline_is_tested_after_its_steps(rng):
    X, Y = np.exp(two(rng, strength=1.0)[0]), np.exp(two(rng)[1])
    pipeline = make_pipeline(FunctionTransformer(np.log), DiscriminativePCA(1)).fit(X, background=Y)
    plain = permutation_test(fitted(np.log(X), np.log(Y)), np.log(X), background=np.log(Y))
    assert permutation_test(pipeline, X, background=Y).p_values == pytest.approx(plain.p_values)
    scaled = make_pipeline(StandardScaler(), DiscriminativePCA(1)).fit(X, background=Y)
    with pytest.warns(CautionWarning, match="not fitted again in every draw"):
        permutation_test(scaled, X, background=Y)


@pytest.mark.parametrize("options", [{"robust": "rows"}, {"n_columns": 2}, {"n_columns": "auto"}, {"smooth": "chain"}])
def test_what_stands_out_is_found_with_every_choice(rng, options):
    X, Y = two(rng, 80, 80, 6, 2.0)
    assert permutation_test(fitted(X, Y, **options), X, background=Y, n_draws=39).n_components == 1


def test_wide_rows_are_scaled_anew_in_every_draw(rng):
    X, Y, _ = wide(rng)
    for options in ({"scale": "background"}, {"scale": "pooled"}, {"n_columns": 10}):
        assert permutation_test(fitted(X, Y, **options), X, background=Y, n_draws=39).n_components == 1


# --- units -----------------------------------------------------------------------------------------------------------


def test_blocks_have_equal_sizes_and_the_other_rows_stay_at_home(rng):
    # Rows are permuted one by one if the smallest dataset would have too few larger blocks.
    assert plan_rows([3900, 20], 3000, rng).kind == "rows"
    plan = plan_rows([1000, 333], 64, rng)
    sizes = [np.bincount(keys, minlength=plan.n_parts) for keys in plan.keys]
    in_blocks = sum(sizes)[: len(plan.homes)]
    assert len(np.unique(in_blocks)) == 1
    assert in_blocks[0] == 20
    assert sizes[0].sum() == 1000
    assert sizes[0][-1] == 0 == sizes[1][-2]
    assert plan.kind == "blocks"


def test_subjects_are_thinned_to_the_same_number_of_rows(rng):
    codes = [np.repeat([0, 1, 2, 3], [10, 10, 25, 60]), np.repeat([4, 5, 6, 7], [10, 11, 12, 2])]
    plan = plan_subjects(codes, 100, 500, rng)
    # The subject with two rows is left out. The one with 60 rows has five parts, one for each thinning.
    assert list(plan.homes) == [0, 0, 0, 0, 1, 1, 1]
    sizes = sum(np.bincount(keys[keys >= 0], minlength=plan.n_parts) for keys in plan.keys)
    np.testing.assert_array_equal(sizes, 10)
    assert [len(np.unique(parts)) for parts in plan.parts.T] == [1, 1, 2, 5, 1, 1, 1]


@pytest.mark.parametrize("n_rows", [1, 2])
def test_many_subjects_are_joined_into_units_of_the_same_number(rng, n_rows):
    codes = [np.repeat(np.arange(300), n_rows), np.repeat(np.arange(300, 700), n_rows)]
    plan = plan_subjects(codes, 64, 64, rng)
    assert len(plan.homes) <= 64
    sizes = sum(np.bincount(keys[keys >= 0], minlength=plan.n_parts) for keys in plan.keys)
    assert len(np.unique(sizes)) == 1
    # All rows of a subject are in one unit.
    for keys, own in zip(plan.keys, codes, strict=True):
        assert all(len(np.unique(keys[own == code])) == 1 for code in np.unique(own))


def test_rows_and_subjects_are_weighed_against_each_other():
    assert _rows_of_each(np.array([[50, 50, 50, 50, 3], [50, 50, 50, 50, 50]])) == 50
    assert _rows_of_each(np.array([[20, 20, 20], [100, 100, 100]])) == 20
    assert _rows_of_each(np.array([[15, 20, 25, 30], [40, 40, 40, 40]])) == 15


def test_a_row_far_off_does_not_move_the_middle(rng):
    rows = rng.normal(size=(40, 3))
    far = np.concatenate([rows, [[1e6, 0.0, 0.0]]])
    np.testing.assert_allclose(middle_of(far), middle_of(rows), atol=0.1)
    np.testing.assert_allclose(middle_of(far[-8:]), middle_of(rows[-7:]), atol=0.3)


def test_rows_that_thinning_leaves_out_are_not_among_the_means_of_the_units(rng):
    # Five rows represent the last subject, one in each thinning, and two rows are left out.
    codes = [np.repeat(np.arange(7), [1, 1, 1, 1, 1, 1, 7]), np.arange(7, 14)]
    plan = plan_subjects(codes, 100, 500, rng)
    owners, rows = np.concatenate(plan.keys), rng.normal(size=(20, 3))
    assert np.sum(owners < 0) == 2
    means = Deck(plan, rows, owners, np.ones(20)).means()
    np.testing.assert_array_equal(means[owners[owners >= 0]], rows[owners >= 0])


def test_differences_of_middles_are_kept_as_far_as_chance_explains_them(rng):
    """Deals of rows that keep their difference are exact; centred wide rows had almost no p-values below .2."""
    # Rows of one distribution stay as they are, but for a common shift.
    rows = [rng.lognormal(size=(n, 90)) for n in (20, 35)]
    deck = Deck(plan_rows([20, 35], 99, rng), np.concatenate(rows), np.arange(55), np.ones(55))
    np.testing.assert_allclose(np.ptp(centred(deck, own=True).rows - deck.rows, axis=0), 0.0, atol=1e-12)
    # A larger difference is shortened to its expected length under chance: 90 columns of variance 1 / 20 + 1 / 35.
    rows = [rng.normal(size=(20, 90)) + 5.0, rng.normal(size=(35, 90))]
    deck = Deck(plan_rows([20, 35], 99, rng), np.concatenate(rows), np.arange(55), np.ones(55))
    left = centred(deck, own=True).rows
    step = left[:20].mean(axis=0) - left[20:].mean(axis=0)
    assert np.sum(step**2) == pytest.approx(90.0 * (1.0 / 20.0 + 1.0 / 35.0), rel=0.1)
    assert np.all(np.abs(step) < 1.0)
    # An outlying row does not make a large difference look like chance.
    rows[1][0] = 1e4
    deck = Deck(plan_rows([20, 35], 99, rng), np.concatenate(rows), np.arange(55), np.ones(55))
    left = centred(deck, own=True).rows
    assert np.all(np.abs(np.median(left[:20], axis=0) - np.median(left[20:], axis=0)) < 2.0)


# --- errors ----------------------------------------------------------------------------------------------------------


def test_too_few_subjects_are_an_error_with_the_number_that_would_do(rng):
    X, groups = subjects_of(rng, 2, 10, 3)
    Y, others = subjects_of(rng, 2, 10, 3, first=2)
    given = {"groups": groups, "background_groups": others}
    with pytest.raises(InvalidValueError, match="4 subjects can be dealt .* in 6 ways only") as error:
        permutation_test(fitted(X, Y), X, background=Y, **given)
    assert "At least 3 subjects in each dataset would do, or 5 subjects that are in both" in str(error.value)
    assert comb(6, 3) * 0.05 >= 1.0
    with pytest.raises(InvalidValueError, match="one subject"):
        permutation_test(fitted(X, Y), X, background=Y, **given | {"groups": np.zeros(20)})
    X, groups = subjects_of(rng, 3, 10, 3)
    with pytest.raises(InvalidValueError, match="3 subjects can be dealt .* in 8 ways only"):
        permutation_test(fitted(X, X), X, background=X[::-1], groups=groups, background_groups=groups[::-1])


def test_robust_weights_need_the_rows_of_the_fit(rng):
    X, Y = two(rng)
    with pytest.raises(InvalidValueError, match="the target has 50 rows, but the fit had 60"):
        permutation_test(fitted(X, Y, robust="rows"), X[:50], background=Y)


def test_a_test_of_rows_after_a_fit_with_subjects_warns(rng):
    X, Y = rng.normal(size=(2, 60, 3))
    subjects = {"groups": np.repeat(np.arange(6), 10), "background_groups": np.repeat(np.arange(6, 12), 10)}
    model = DiscriminativePCA(1, shrinkage=0.1).fit(X, background=Y, **subjects)
    with pytest.warns(CautionWarning, match="single rows are permuted"):
        permutation_test(model, X, background=Y)
    permutation_test(model, X, background=Y, **subjects)


def test_too_few_rows_are_an_error(rng):
    X, Y = two(rng, 2, 2, 3)
    with pytest.raises(InvalidValueError, match="At least 3 rows in each dataset would do"):
        permutation_test(fitted(X, Y, cv=None, shrinkage=0.5), X, background=Y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_draws": 10}, "n_draws=10 is too few for level=0.05.*Use at least 19"),
        ({"level": 0.0}, "level=0.0 is not between 0 and 1"),
        ({"background": None}, "nothing to compare with"),
    ],
)
def test_a_test_that_cannot_be_made_is_an_error(rng, options, match):
    X, Y = two(rng)
    with pytest.raises(InvalidValueError, match=match):
        permutation_test(fitted(X, Y), X, **{"background": Y} | options)
