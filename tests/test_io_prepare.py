"""Preparing tables: all datasets alike, every change told, and the same for new rows."""

import json

import numpy as np
import pytest
from scipy import sparse

from standout import DiscriminativePCA
from standout.io import Preprocessing, Table, prepare

COLUMNS = ["a", "b", "c", "d"]


def table(values, **known):
    return Table(values, COLUMNS[: values.shape[1]], **known)


@pytest.fixture
def target(rng):
    return table(rng.gamma(2.0, size=(30, 4)) * [1, 10, 100, 1000])


@pytest.fixture
def backgrounds(rng):
    return [table(rng.gamma(2.0, size=(n, 4)) * [1, 20, 10, 2000] + 5) for n in (20, 25)]


def with_gaps(found, *cells):
    values = found.values.copy()
    for row, column in cells:
        values[row, column] = np.nan
    return table(values)


def stacked(tables):
    return np.concatenate([found.values for found in tables])


def test_nothing_is_changed_unless_asked_for(target, backgrounds):
    prepared = prepare(target, backgrounds)
    np.testing.assert_array_equal(prepared.target.values, target.values)
    for found, given in zip(prepared.backgrounds, backgrounds, strict=True):
        np.testing.assert_array_equal(found.values, given.values)
    assert prepared.notes == []
    assert prepared.preprocessing.columns == COLUMNS


def test_columns_are_put_in_the_order_of_the_target(target, backgrounds):
    shuffled = Table(backgrounds[0].values[:, [3, 1, 0, 2]], ["d", "b", "a", "c"])
    prepared = prepare(target, [shuffled], standardize="pooled")
    expected = prepare(target, backgrounds[:1], standardize="pooled")
    np.testing.assert_array_equal(prepared.backgrounds[0].values, expected.backgrounds[0].values)


@pytest.mark.parametrize("standardize", ["background", "pooled"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_datasets_are_standardized_alike(target, backgrounds, standardize, dtype):
    given = [table(found.values.astype(dtype)) for found in (target, *backgrounds)]
    prepared = prepare(given[0], given[1:], standardize=standardize)
    reference = stacked(given[1:] if standardize == "background" else given).astype(np.float64)
    for found, before in zip([prepared.target, *prepared.backgrounds], given, strict=True):
        assert found.values.dtype == dtype
        expected = (before.values - reference.mean(axis=0)) / reference.std(axis=0)
        # Rounding of the type in which the values are kept, and nothing else.
        np.testing.assert_allclose(found.values, expected, rtol=1e-12 if dtype is np.float64 else 2e-7, atol=1e-7)
    assert not np.allclose(prepared.target.values.std(axis=0), 1)


def test_a_large_mean_costs_no_digits(rng):
    values = rng.normal(size=(5000, 3)) + 1e8
    prepared = prepare(table(values), [table(values)], standardize="background")
    # 1e8 has a spacing of 1.5e-8, which is all that is lost.
    np.testing.assert_allclose(prepared.target.values.std(axis=0), 1, rtol=1e-7)
    np.testing.assert_allclose(prepared.preprocessing.scale, (values - 1e8).std(axis=0), rtol=1e-7)


def test_a_column_without_any_value_in_one_dataset_is_told(rng):
    values, other = rng.normal(size=(10, 2)), rng.normal(size=(9, 2))
    values[:, 1] = np.nan
    notes = prepare(table(values), [table(other)], missing="mean").notes
    assert "column 'b' has no value at all in the target: what is there now tells nothing." in notes


@pytest.mark.parametrize("constant", [0.1, 1e9 / 3, 0.0, -7.0])
def test_a_constant_column_keeps_its_scale_and_is_told(rng, constant):
    values, other = rng.normal(size=(1000, 2)), rng.normal(size=(999, 2))
    values[:, 1] = other[:, 1] = constant
    prepared = prepare(table(values), [table(other)], standardize="background")
    assert prepared.notes == [
        "column 'b' is constant over all background rows, and kept the scale.",
        "column 'b' is constant in every dataset.",
    ]
    np.testing.assert_array_equal(prepared.target.values[:, 1], 0.0)
    values[5, 1] += 1
    assert prepare(table(values), [table(other)]).notes == []
    told = prepare(table(values), [table(other)], standardize="background")
    assert told.notes == ["column 'b' is constant over all background rows, and kept the scale."]
    assert told.target.values[5, 1] == pytest.approx(1, rel=1e-6)


def test_what_rounding_leaves_of_a_constant_is_not_blown_up(rng):
    values = rng.normal(size=(50, 2))
    values[:, 1] = np.where(np.arange(50) % 2, 0.3, 0.1 + 0.2)
    prepared = prepare(table(values), [table(values)], standardize="pooled")
    assert np.abs(prepared.target.values[:, 1]).max() < 1e-15


def test_log1p_is_taken_of_every_value(target, backgrounds):
    prepared = prepare(target, backgrounds, log1p=True)
    np.testing.assert_array_equal(prepared.target.values, np.log1p(target.values))
    np.testing.assert_array_equal(prepared.backgrounds[1].values, np.log1p(backgrounds[1].values))


# Missing values.


def test_missing_values_are_an_error_that_counts_them(target, backgrounds):
    gaps = with_gaps(backgrounds[1], (3, 2), (7, 1))
    message = (
        r"values are missing: 1 in the target, 2 in background 2; the first in column 'b', row 5 of the target\. "
        r"Say what to do with them: missing='drop-rows', 'drop-columns' or 'mean' \(--missing\)\."
    )
    with pytest.raises(ValueError, match=message):
        prepare(with_gaps(target, (4, 1)), [backgrounds[0], gaps])
    ids = np.array([f"mouse {i}" for i in range(25)], dtype=object)
    with pytest.raises(ValueError, match=r"column 'c', row 4 \('mouse 3'\) of background 1"):
        prepare(target, [table(gaps.values, ids=ids)])


def test_rows_with_missing_values_are_dropped_and_counted(target, backgrounds):
    ids = np.array([str(i) for i in range(30)], dtype=object)
    gaps = table(with_gaps(target, (0, 1), (0, 2), (4, 1), (29, 3)).values, ids=ids, labels=ids, groups=ids)
    prepared = prepare(gaps, [with_gaps(backgrounds[0], (3, 3)), backgrounds[1]], missing="drop-rows")
    kept = np.delete(np.arange(30), [0, 4, 29])
    np.testing.assert_array_equal(prepared.target.values, target.values[kept])
    assert prepared.target.ids.tolist() == [str(i) for i in kept]
    assert prepared.target.labels.tolist() == prepared.target.groups.tolist() == prepared.target.ids.tolist()
    np.testing.assert_array_equal(prepared.backgrounds[0].values, np.delete(backgrounds[0].values, 3, axis=0))
    assert prepared.notes == [
        "3 rows of the target were dropped because a value was missing.",
        "1 row of background 1 was dropped because a value was missing.",
    ]


def test_notes_and_messages_call_backgrounds_by_their_names(target, backgrounds):
    gaps = with_gaps(backgrounds[0], (3, 3))
    prepared = prepare(target, [gaps], missing="drop-rows", background_names=["healthy"])
    assert prepared.notes == ["1 row of background 'healthy' was dropped because a value was missing."]
    with pytest.raises(ValueError, match="values are missing: 1 in background 'healthy'; .* of background 'healthy'"):
        prepare(target, [gaps], background_names=["healthy"])


def test_columns_with_missing_values_are_dropped_everywhere(target, backgrounds):
    gaps = [with_gaps(backgrounds[0], (3, 1)), backgrounds[1]]
    prepared = prepare(with_gaps(target, (2, 3)), gaps, missing="drop-columns", standardize="pooled")
    narrow = [Table(found.values[:, [0, 2]], ["a", "c"]) for found in (target, *backgrounds)]
    expected = prepare(narrow[0], narrow[1:], standardize="pooled")
    for found, wanted in zip(
        [prepared.target, *prepared.backgrounds], [expected.target, *expected.backgrounds], strict=True
    ):
        np.testing.assert_array_equal(found.values, wanted.values)
        assert found.columns == ["a", "c"]
        assert found.values.flags.c_contiguous
    assert prepared.notes == ["2 columns were dropped in all datasets because a value was missing: columns 'b', 'd'."]
    assert prepared.preprocessing.dropped == ["b", "d"]


@pytest.mark.parametrize("log1p", [False, True])
def test_missing_values_are_filled_with_the_mean_over_all_rows(target, backgrounds, log1p):
    gaps = [with_gaps(target, (2, 3), (5, 3)), with_gaps(backgrounds[0], (3, 3)), backgrounds[1]]
    prepared = prepare(gaps[0], gaps[1:], missing="mean", log1p=log1p)
    values = stacked(gaps)
    mean = np.nanmean(np.log1p(values) if log1p else values, axis=0)
    assert prepared.target.values[2, 3] == pytest.approx(mean[3], rel=1e-14)
    assert prepared.backgrounds[0].values[3, 3] == pytest.approx(mean[3], rel=1e-14)
    assert not np.isnan(prepared.target.values).any()
    assert prepared.notes == [
        "3 missing values (2 of them in the target) were filled with the column's mean over all rows."
    ]
    np.testing.assert_allclose(prepared.preprocessing.fill, mean, rtol=1e-14)


EMPTY = np.array([[1.0, np.nan], [2.0, np.nan]])

REFUSED = {
    "every row": (EMPTY, {"missing": "drop-rows"}, r"each of the 2 row\(s\) of the target has a missing value, .* Use"),
    "every column": (EMPTY * np.nan, {"missing": "drop-columns"}, r"each of the 2 column\(s\) has a missing value"),
    "no mean": (EMPTY, {"missing": "mean"}, "there is no value at all in column 'b', so that there is no mean"),
    "infinity": (
        np.array([[1.0, 2.0], [-np.inf, 3.0]]),
        {},
        "infinite value in the target: -inf in column 'a', row 2",
    ),
    "infinity and gaps": (
        np.array([[np.nan, np.inf]]),
        {"missing": "mean"},
        "infinite value in the target: inf in col",
    ),
    "negative": (
        np.array([[1.0, 2.0], [np.nan, -0.5]]),
        {"log1p": True, "missing": "mean"},
        "a negative value, of which there is no log1p, in the target: -0.5 in column 'b', row 2. Leave out log1p",
    ),
    "too large": (
        np.array([[1e200, 1.0], [-1e200, 2.0]]),
        {"standardize": "pooled"},
        "too large to square in all rows",
    ),
    "sum too large": (
        np.array([[1e308, 1.0], [1e308, np.nan]]),
        {"missing": "mean"},
        "values too large to square in all rows.* Rescale",
    ),
    "standardize": (EMPTY, {"standardize": "each"}, "standardize='each' is unknown. Use one of 'none', .* wipe out"),
    "missing": (EMPTY, {"missing": "median"}, "missing='median' is unknown. Use one of 'error', 'drop-rows'"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_what_cannot_be_prepared_is_one_clear_error(case, form):
    values, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message) as caught:
        prepare(table(form(values)), [table(form(values))], **options)
    assert "\n" not in str(caught.value)


# Memory.


def test_the_tables_given_stay_as_they_are_unless_their_memory_may_be_used(target, backgrounds):
    before = target.values.copy()
    first = prepare(target, backgrounds, log1p=True, standardize="background")
    np.testing.assert_array_equal(target.values, before)
    second = prepare(target, backgrounds, log1p=True, standardize="background", copy=False)
    assert np.shares_memory(second.target.values, target.values)
    np.testing.assert_array_equal(second.target.values, first.target.values)


@pytest.mark.parametrize("missing", ["drop-rows", "drop-columns", "mean"])
def test_without_a_copy_everything_is_done_in_the_memory_that_is_there(target, backgrounds, missing):
    given = [with_gaps(target, (2, 3), (9, 3)), with_gaps(backgrounds[0], (3, 3))]
    options = {"missing": missing, "log1p": True, "standardize": "pooled"}
    expected = prepare(given[0], given[1:], **options)
    found = prepare(given[0], given[1:], copy=False, **options)
    assert np.shares_memory(found.target.values, given[0].values)
    np.testing.assert_array_equal(found.target.values, expected.target.values)
    np.testing.assert_array_equal(found.backgrounds[0].values, expected.backgrounds[0].values)


def test_a_table_given_twice_or_read_only_is_copied_all_the_same(target):
    twice = prepare(target, [target], log1p=True, copy=False)
    np.testing.assert_array_equal(twice.backgrounds[0].values, twice.target.values)
    fixed = table(np.ones((3, 2)))
    fixed.values.flags.writeable = False
    assert prepare(fixed, [fixed], log1p=True, copy=False).target.values[0, 0] == np.log(2)


def test_blocks_make_no_difference(monkeypatch, rng):
    values = rng.gamma(2.0, size=(500, 4))
    values[rng.random((500, 4)) < 0.05] = np.nan
    options = {"missing": "mean", "log1p": True, "standardize": "pooled"}
    whole = {
        missing: prepare(table(values), [table(values[:99])], **{**options, "missing": missing})
        for missing in ("mean", "drop-rows")
    }
    monkeypatch.setattr("standout._arrays.BLOCK_BYTES", 700)
    for missing, expected in whole.items():
        found = prepare(table(values), [table(values[:99])], **{**options, "missing": missing})
        np.testing.assert_allclose(found.target.values, expected.target.values, rtol=1e-12, atol=1e-14)
        assert found.notes == expected.notes


# Sparse data.


@pytest.fixture
def counts(rng):
    return [table(sparse.random_array((n, 4), density=0.4, rng=rng, format="csr") * 9) for n in (60, 40)]


def dense(found):
    return Table(found.values.toarray(), found.columns)


def test_sparse_data_stay_sparse_and_are_scaled_but_not_centred(counts):
    given = [found.values.copy() for found in counts]
    prepared = prepare(counts[0], counts[1:], log1p=True, standardize="pooled")
    both = np.log1p(np.concatenate([values.toarray() for values in given]))
    assert prepared.target.values.format == "csr"
    np.testing.assert_allclose(prepared.target.values.toarray(), both[:60] / both.std(axis=0), rtol=1e-12)
    assert prepared.notes == ["Sparse data were scaled but not centred, so that they stay sparse."]
    np.testing.assert_array_equal(prepared.preprocessing.centre, 0.0)
    np.testing.assert_array_equal(counts[0].values.toarray(), given[0].toarray())


def test_the_centre_makes_no_difference_to_a_fit(counts):
    as_sparse = prepare(counts[0], counts[1:], standardize="background")
    as_dense = prepare(dense(counts[0]), [dense(counts[1])], standardize="background")
    one, other = (
        DiscriminativePCA(2).fit(found.target.values, background=found.backgrounds[0].values).eigenvalues_
        for found in (as_sparse, as_dense)
    )
    np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("missing", ["drop-rows", "drop-columns", "mean"])
def test_missing_values_in_sparse_data(counts, missing):
    counts[0].values.data[[3, 10]] = np.nan
    found = prepare(counts[0], counts[1:], missing=missing)
    expected = prepare(dense(counts[0]), [dense(counts[1])], missing=missing)
    np.testing.assert_allclose(found.target.values.toarray(), expected.target.values, rtol=1e-14)
    np.testing.assert_allclose(found.backgrounds[0].values.toarray(), expected.backgrounds[0].values, rtol=1e-14)
    assert found.notes == expected.notes
    assert found.target.values.format == "csr"


def test_constants_of_sparse_data_are_told():
    values = np.array([[0.1, 0.0, 0.0], [0.1, 0.0, 2.0], [0.1, 0.0, 3.0]])
    prepared = prepare(table(sparse.csr_array(values)), [table(sparse.csr_array(values[:2]))], standardize="pooled")
    assert prepared.notes[0] == "columns 'a', 'b' are constant over all rows, and kept the scale."
    assert prepared.notes[-1] == "columns 'a', 'b' are constant in every dataset."


# New rows.


def stored_and_back(preprocessing):
    return Preprocessing.from_dict(json.loads(json.dumps(preprocessing.to_dict())))


@pytest.mark.parametrize("missing", ["error", "drop-rows", "drop-columns", "mean"])
@pytest.mark.parametrize("standardize", ["none", "background", "pooled"])
@pytest.mark.parametrize("log1p", [False, True])
def test_new_rows_are_treated_as_those_of_the_fit(target, backgrounds, missing, standardize, log1p):
    given = target if missing == "error" else with_gaps(target, (3, 1), (8, 1), (8, 2))
    prepared = prepare(given, backgrounds, missing=missing, standardize=standardize, log1p=log1p)
    done = stored_and_back(prepared.preprocessing)
    if missing == "drop-columns":
        given = target
    found = done.apply(given)
    np.testing.assert_array_equal(found.values, prepared.target.values)
    assert found.columns == prepared.target.columns == done.kept


def test_new_rows_may_have_other_columns_in_any_order(target, backgrounds):
    prepared = prepare(target, backgrounds, standardize="pooled")
    wide = Table(np.column_stack([np.ones(30), target.values[:, ::-1]]), ["extra", *COLUMNS[::-1]])
    np.testing.assert_array_equal(prepared.preprocessing.apply(wide).values, prepared.target.values)
    with pytest.raises(ValueError, match=r"the data \('table'\) lacks column 'd' of the data of the fit\. Give"):
        prepared.preprocessing.apply(Table(target.values[:, :3], COLUMNS[:3]))
    unnamed = Table(target.values, ["x0", "x1", "x2", "x3"], has_names=False)
    np.testing.assert_array_equal(prepared.preprocessing.apply(unnamed).values, prepared.target.values)
    with pytest.raises(ValueError, match=r"the data \('table'\) has 3 columns, but the data of the fit has 4\. Give"):
        prepared.preprocessing.apply(Table(target.values[:, :3], ["x0", "x1", "x2"], has_names=False))


def test_new_rows_are_checked_and_left_as_they_are(target, backgrounds):
    done = prepare(target, backgrounds, log1p=True, standardize="pooled").preprocessing
    before = target.values.copy()
    done.apply(target)
    np.testing.assert_array_equal(target.values, before)
    for value, message in {
        np.nan: r"values are missing: 1 in the data \('table'\); the first in column 'b', row 2",
        np.inf: "an infinite value in the data",
        -1.0: "a negative value, of which there is no log1p, in the data .*: -1 in column 'b', row 2",
    }.items():
        values = before.copy()
        values[1, 1] = value
        with pytest.raises(ValueError, match=message):
            done.apply(table(values))
    done.apply(target, copy=False)
    assert not np.array_equal(target.values, before)


def test_sparse_new_rows_become_dense_where_those_of_the_fit_were_centred(counts):
    done = prepare(dense(counts[0]), [dense(counts[1])], standardize="pooled").preprocessing
    np.testing.assert_array_equal(done.apply(counts[0]).values, done.apply(dense(counts[0])).values)
    scaled = prepare(counts[0], counts[1:], standardize="pooled").preprocessing
    assert sparse.issparse(scaled.apply(counts[0]).values)
    np.testing.assert_allclose(
        scaled.apply(dense(counts[0])).values, scaled.apply(counts[0]).values.toarray(), rtol=1e-15
    )


FORGED = {
    "no mapping": (lambda d: [], "the stored preprocessing is a list, but should be a mapping"),
    "an entry too few": (lambda d: {"columns": []}, "lacks or should not have fields 'centre', 'dropped'"),
    "an entry too many": (lambda d: {**d, "x": 1}, "lacks or should not have field 'x'"),
    "lengths": (lambda d: {**d, "scale": [1.0]}, "has 1 numbers in 'scale', but 4 columns"),
    "zero": (lambda d: {**d, "scale": [0.0] * 4}, "a number in 'scale' that is not positive and finite"),
    "text": (lambda d: {**d, "centre": ["1"] * 4}, "a number in 'centre' that is not finite"),
    "columns": (lambda d: {**d, "columns": [1, 2, 3, 4]}, "'columns' that is not a list of names"),
    "dropped": (lambda d: {**d, "dropped": "a"}, "'dropped' that is not a list of names"),
    "truth": (lambda d: {**d, "log1p": "yes"}, "'log1p' that is neither true nor false"),
    "missing": (lambda d: {**d, "missing": "x"}, "missing='x' is unknown"),
}


@pytest.mark.parametrize("case", FORGED)
def test_what_was_stored_is_checked(target, backgrounds, case):
    change, message = FORGED[case]
    stored = prepare(target, backgrounds, standardize="pooled").preprocessing.to_dict()
    with pytest.raises((ValueError, TypeError), match=message):
        Preprocessing.from_dict(change(stored))
