"""Preparing datasets: all alike, every change told, the same for new rows, and from files as from memory."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import standout
from scanned_files import table as arrow_table
from scanned_files import write_h5ad, write_sparse_h5ad
from standout import DiscriminativePCA, make_pipeline, scan
from standout.io import Preparation, Table, prepare

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


def said(notes):
    return [str(note) for note in notes]


def refused(read, *arguments, **options):
    with pytest.raises((ValueError, TypeError)) as caught:
        read(*arguments, **options)
    assert "\n" not in str(caught.value)
    assert caught.value.advice
    return caught.value


def test_nothing_is_changed_unless_asked_for(target, backgrounds):
    prepared = prepare(target, backgrounds)
    np.testing.assert_array_equal(prepared.target.values, target.values)
    for found, given in zip(prepared.backgrounds, backgrounds, strict=True):
        np.testing.assert_array_equal(found.values, given.values)
    assert prepared.notes == []
    assert prepared.step.changes_nothing
    assert prepared.step.feature_names_in_.tolist() == COLUMNS


def test_columns_are_put_in_the_order_of_the_target(target, backgrounds):
    shuffled = Table(backgrounds[0].values[:, [3, 1, 0, 2]], ["d", "b", "a", "c"])
    prepared = prepare(target, [shuffled], standardize="pooled")
    expected = prepare(target, backgrounds[:1], standardize="pooled")
    np.testing.assert_allclose(prepared.backgrounds[0].values, expected.backgrounds[0].values, rtol=1e-12)


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
    np.testing.assert_allclose(prepared.step.scale_, (values - 1e8).std(axis=0), rtol=1e-7)


@pytest.mark.parametrize("constant", [0.1, 1e9 / 3, 0.0, -7.0])
def test_a_constant_column_keeps_its_scale_and_is_told(rng, constant):
    values, other = rng.normal(size=(1000, 2)), rng.normal(size=(999, 2))
    values[:, 1] = other[:, 1] = constant
    prepared = prepare(table(values), [table(other)], standardize="background")
    assert said(prepared.notes) == ["column 'b' is constant over all background rows, and not scaled."]
    np.testing.assert_array_equal(prepared.target.values[:, 1], 0.0)
    values[5, 1] += 1
    again = prepare(table(values), [table(other)], standardize="background")
    assert again.target.values[5, 1] == pytest.approx(1, rel=1e-6)


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


def test_missing_values_are_an_error_with_their_place(target, backgrounds):
    gaps = with_gaps(backgrounds[1], (3, 2), (7, 1))
    facts = refused(prepare, target, [backgrounds[0], gaps]).facts
    assert facts | {"name": "background 2", "column": "'c'", "row": 4} == facts
    ids = np.array([f"mouse {i}" for i in range(25)], dtype=object)
    error = refused(prepare, target, [table(gaps.values, ids=ids)], names=["treated", "healthy"])
    assert "'mouse 3'" in str(error)
    assert error.facts["name"] == "healthy"


def test_rows_with_missing_values_are_dropped_and_counted(target, backgrounds):
    ids = np.array([str(i) for i in range(30)], dtype=object)
    gaps = table(with_gaps(target, (0, 1), (0, 2), (4, 1), (29, 3)).values, ids=ids, labels=ids, groups=ids)
    prepared = prepare(gaps, [with_gaps(backgrounds[0], (3, 3)), backgrounds[1]], missing="drop-rows")
    kept = np.delete(np.arange(30), [0, 4, 29])
    np.testing.assert_array_equal(prepared.target.values, target.values[kept])
    assert prepared.target.ids.tolist() == [str(i) for i in kept]
    assert prepared.target.labels.tolist() == prepared.target.groups.tolist() == prepared.target.ids.tolist()
    np.testing.assert_array_equal(prepared.backgrounds[0].values, np.delete(backgrounds[0].values, 3, axis=0))
    assert [(note.facts["count"], note.facts["name"]) for note in prepared.notes] == [
        (3, "the target"),
        (1, "background 1"),
    ]


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
    assert prepared.notes[0].facts == {"count": 2, "columns": "columns 'b', 'd'"}
    assert prepared.step.get_feature_names_out().tolist() == ["a", "c"]


@pytest.mark.parametrize("log1p", [False, True])
def test_missing_values_are_filled_with_the_mean_over_all_rows(target, backgrounds, log1p):
    gaps = [with_gaps(target, (2, 3), (5, 3)), with_gaps(backgrounds[0], (3, 3)), backgrounds[1]]
    prepared = prepare(gaps[0], gaps[1:], missing="mean", log1p=log1p)
    values = stacked(gaps)
    mean = np.nanmean(np.log1p(values) if log1p else values, axis=0)
    assert prepared.target.values[2, 3] == pytest.approx(mean[3], rel=1e-14)
    assert prepared.backgrounds[0].values[3, 3] == pytest.approx(mean[3], rel=1e-14)
    assert not np.isnan(prepared.target.values).any()
    assert prepared.notes[0].facts["count"] == 3
    np.testing.assert_allclose(prepared.step.fill_, mean, rtol=1e-14)


def test_a_column_without_any_value_in_one_dataset_is_told(rng):
    values, other = rng.normal(size=(10, 2)), rng.normal(size=(9, 2))
    values[:, 1] = np.nan
    notes = prepare(table(values), [table(other)], missing="mean").notes
    assert "'b'" in notes[-1].facts["columns"]
    assert notes[-1].facts["name"] == "the target"


EMPTY = np.array([[1.0, np.nan], [2.0, np.nan]])

REFUSED = {
    "every row": (EMPTY, {"missing": "drop-rows"}, {"count": 2, "name": "the target"}),
    "every column": (EMPTY * np.nan, {"missing": "drop-columns"}, {"count": 2}),
    "no mean": (EMPTY, {"missing": "mean"}, {"columns": "column 'b'"}),
    "infinity": (np.array([[1.0, 2.0], [-np.inf, 3.0]]), {}, {"name": "the target", "column": "'a'", "row": 2}),
    "infinity and gaps": (np.array([[np.nan, np.inf]]), {"missing": "mean"}, {"column": "'b'", "row": 1}),
    "negative": (
        np.array([[1.0, 2.0], [np.nan, -0.5]]),
        {"log1p": True, "missing": "mean"},
        {"name": "the target", "value": -0.5, "column": "'b'", "row": 2},
    ),
    "too large": (np.array([[1e200, 1.0], [-1e200, 2.0]]), {"standardize": "pooled"}, {"name": "all rows"}),
    "standardize": (EMPTY, {"standardize": "each"}, {}),
    "missing": (EMPTY, {"missing": "median"}, {}),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_what_cannot_be_prepared_is_one_clear_error(case, form):
    values, options, facts = REFUSED[case]
    error = refused(prepare, table(form(values)), [table(form(values))], **options)
    assert facts.items() <= {**error.facts, "value": error.value}.items()
    if case in ("standardize", "missing"):
        assert (error.parameter, error.value) == (case, options[case])


# Memory.


def test_the_tables_given_stay_as_they_are_unless_their_memory_may_be_used(target, backgrounds):
    before = target.values.copy()
    first = prepare(target, backgrounds, log1p=True, standardize="background")
    np.testing.assert_array_equal(target.values, before)
    second = prepare(target, backgrounds, log1p=True, standardize="background", copy=False)
    assert np.shares_memory(second.target.values, target.values)
    np.testing.assert_array_equal(second.target.values, first.target.values)


def test_tables_that_share_memory_or_are_read_only_are_copied_all_the_same(target):
    values = target.values.copy()
    twice = prepare(target, [table(target.values[10:])], log1p=True, copy=False)
    np.testing.assert_array_equal(twice.target.values, np.log1p(values))
    np.testing.assert_array_equal(twice.backgrounds[0].values, np.log1p(values[10:]))
    unnamed = Table(values.copy(), ["x0", "x1", "x2", "x3"], has_names=False)
    before = unnamed.values.copy()
    prepare(target, [unnamed], log1p=True)
    np.testing.assert_array_equal(unnamed.values, before)
    fixed = table(np.ones((3, 2)))
    fixed.values.flags.writeable = False
    assert prepare(fixed, [fixed], log1p=True, copy=False).target.values[0, 0] == np.log(2)


@pytest.mark.parametrize("form", ["frame", "array", "sparse", "integers", "duplicates"])
def test_new_rows_are_left_as_they_are(form, rng):
    rows = rng.poisson(3.0, size=(20, 3)).astype(np.int64 if form == "integers" else np.float64)
    given = {"frame": pd.DataFrame(rows, columns=list("abc")), "array": rows, "integers": rows}.get(form)
    if form == "sparse":
        given = sparse.csr_array(rows)
    if form == "duplicates":
        half = sparse.coo_array(rows / 2)
        parts = (np.concatenate([half.data] * 2), tuple(np.concatenate([axis] * 2) for axis in half.coords))
        given = sparse.csr_array(sparse.coo_array(parts, shape=rows.shape))
    before = given.copy()
    step = Preparation(log1p=True).fit(given)
    made = step.transform(given)
    np.testing.assert_allclose(made.toarray() if sparse.issparse(made) else made, np.log1p(rows), rtol=1e-15)
    assert (given != before).sum().sum() == 0


def test_blocks_make_no_difference(monkeypatch, rng):
    values = rng.gamma(2.0, size=(500, 4))
    values[rng.random((500, 4)) < 0.05] = np.nan
    options = {"log1p": True, "standardize": "pooled"}
    given = table(values), [table(values[:99])]
    whole = {missing: prepare(*given, missing=missing, **options) for missing in ("mean", "drop-rows")}
    monkeypatch.setattr("standout._arrays.BLOCK_BYTES", 700)
    for missing, expected in whole.items():
        found = prepare(*given, missing=missing, **options)
        np.testing.assert_allclose(found.target.values, expected.target.values, rtol=1e-12, atol=1e-14)
        assert said(found.notes) == said(expected.notes)


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
    assert "sparse" in said(prepared.notes)[-1]
    np.testing.assert_array_equal(prepared.step.centre_, 0.0)
    np.testing.assert_array_equal(counts[0].values.toarray(), given[0].toarray())
    # Dense data beside them are not centred either.
    mixed = prepare(dense(counts[0]), counts[1:], log1p=True, standardize="pooled")
    np.testing.assert_allclose(mixed.target.values, prepared.target.values.toarray(), rtol=1e-12)


def test_the_centre_makes_no_difference_to_a_fit(counts):
    as_sparse = prepare(counts[0], counts[1:], standardize="background")
    as_dense = prepare(dense(counts[0]), [dense(counts[1])], standardize="background")
    one, other = (
        DiscriminativePCA(2).fit(found.target, background=found.backgrounds[0]).eigenvalues_
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
    assert said(found.notes) == said(expected.notes)
    assert found.target.values.format == "csr"


# New rows.


@pytest.mark.parametrize("missing", ["error", "drop-columns", "mean"])
@pytest.mark.parametrize("standardize", ["none", "background", "pooled"])
@pytest.mark.parametrize("log1p", [False, True])
def test_new_rows_are_treated_as_those_of_the_fit(target, backgrounds, missing, standardize, log1p):
    given = target if missing == "error" else with_gaps(target, (3, 1), (8, 1), (8, 2))
    prepared = prepare(given, backgrounds, missing=missing, standardize=standardize, log1p=log1p)
    for form in (given, given.values, pd.DataFrame(given.values, columns=COLUMNS)):
        np.testing.assert_array_equal(prepared.step.transform(form), prepared.target.values)
    assert prepared.step.get_feature_names_out().tolist() == prepared.target.columns


def test_new_rows_may_have_other_columns_in_any_order(target, backgrounds):
    prepared = prepare(target, backgrounds, standardize="pooled")
    wide = np.column_stack([np.ones(30), target.values[:, ::-1]])
    names = ["extra", *COLUMNS[::-1]]
    frame = pd.DataFrame(wide, columns=names)
    for form in (Table(wide, names), frame, frame.assign(mouse="a word")):
        np.testing.assert_array_equal(prepared.step.transform(form), prepared.target.values)
    assert refused(prepared.step.transform, Table(target.values[:, :3], COLUMNS[:3])).facts["missing"] == "column 'd'"
    unnamed = Table(target.values, ["x0", "x1", "x2", "x3"], has_names=False)
    np.testing.assert_array_equal(prepared.step.transform(unnamed), prepared.target.values)
    error = refused(prepared.step.transform, target.values[:, :3])
    assert (error.facts["width"], error.limit) == (3, 4)


def test_sparse_new_rows_become_dense_where_those_of_the_fit_were_centred(counts):
    step = prepare(dense(counts[0]), [dense(counts[1])], standardize="pooled").step
    np.testing.assert_array_equal(step.transform(counts[0]), step.transform(dense(counts[0])))
    scaled = prepare(counts[0], counts[1:], standardize="pooled").step
    assert sparse.issparse(scaled.transform(counts[0]))


@parametrize_with_checks([Preparation(), Preparation(standardize="pooled", missing="mean")])
def test_preparation_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


# Files as tables.


FILES = {
    "parquet": lambda rows, path: standout_parquet(rows, path),
    "h5ad": write_h5ad,
    "h5ad sparse": write_sparse_h5ad,
}


def standout_parquet(rows, path):
    from pyarrow import parquet

    parquet.write_table(arrow_table(rows), path, row_group_size=37)


@pytest.fixture(params=FILES)
def in_files(request, rng, tmp_path):
    """Counts of a target and a background, with gaps, in files of single precision."""
    paths = []
    for name, n_rows in (("target", 310), ("background", 190)):
        rows = rng.poisson(2.0, size=(n_rows, 7)).astype(np.float32) * np.float32(1.5)
        rows[:, :2][rng.random((n_rows, 2)) < 0.05] = np.nan
        paths.append(tmp_path / f"{name}.{request.param.split()[0]}")
        FILES[request.param](rows, paths[-1])
    return paths


@pytest.mark.parametrize("missing", ["drop-rows", "drop-columns", "mean"])
@pytest.mark.parametrize("standardize", ["none", "background", "pooled"])
@pytest.mark.parametrize("log1p", [False, True])
def test_a_scan_is_prepared_as_the_table_of_the_same_rows(in_files, missing, standardize, log1p):
    options = {"missing": missing, "standardize": standardize, "log1p": log1p}
    scans = [scan(path, batch_rows=41) for path in in_files]
    tables = [found.with_missing("keep").read() for found in scans]
    from_files = prepare(scans[0], scans[1:], **options)
    in_memory = prepare(tables[0], tables[1:], **options)
    for found, expected in zip(
        [from_files.target, *from_files.backgrounds], [in_memory.target, *in_memory.backgrounds], strict=True
    ):
        rows = found.rows()
        assert rows.dtype == expected.values.dtype == np.float32
        assert sparse.issparse(rows) == sparse.issparse(expected.values)
        assert found.columns == expected.columns
        difference = abs(rows - expected.values).max()
        # Means of the same numbers in another order, then rounded to single precision.
        assert difference <= 4e-7 * abs(expected.values).max()
    if missing != "drop-rows":
        assert said(from_files.notes) == said(in_memory.notes)
    one = DiscriminativePCA(2).fit(from_files.target, background=from_files.backgrounds)
    other = DiscriminativePCA(2).fit(in_memory.target, background=in_memory.backgrounds)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-5)
    assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()


def test_preparation_is_a_step_of_a_pipeline_in_memory_and_over_files(in_files, tmp_path):
    scans = [scan(path, batch_rows=41) for path in in_files]
    tables = [found.with_missing("keep").read() for found in scans]
    step = Preparation(log1p=True, standardize="background", missing="mean")
    expected = prepare(tables[0], tables[1:], log1p=True, standardize="background", missing="mean")
    scores = DiscriminativePCA(2).fit(expected.target, background=expected.backgrounds).transform(expected.target)
    for target, background in ((tables[0], tables[1]), (scans[0], scans[1]), (scans[0], tables[1])):
        model = make_pipeline(clone(step), DiscriminativePCA(2)).fit(target, background=background)
        for given in (tables[0], scans[0]):
            # Signs are fixed by the components; single precision is what the files have.
            np.testing.assert_allclose(model.transform(given), scores, rtol=2e-4, atol=2e-4)
        standout.save(model, tmp_path / "model.skops")
        again = standout.load(tmp_path / "model.skops")
        np.testing.assert_array_equal(again.transform(tables[0]), model.transform(tables[0]))
        assert again[0].get_params() == step.get_params()
        # Columns are found by name.
        other = scan(in_files[0], columns=scans[0].columns[::-1])
        np.testing.assert_allclose(again.transform(other), model.transform(scans[0]), rtol=1e-6, atol=1e-6)


def test_statistics_need_data_that_can_be_read_again(target, backgrounds):
    step = Preparation(standardize="background")
    assert "only once" in str(refused(step.fit, iter([target.values]), background=backgrounds[0].values))
    assert Preparation(log1p=True).fit(iter([target.values])).n_features_in_ == 4


def test_a_negative_count_in_a_file_is_told_with_its_row(tmp_path, rng):
    rows = rng.poisson(2.0, size=(300, 3)).astype(float)
    rows[217, 1] = -1.0
    np.save(tmp_path / "a.npy", rows)
    found = prepare(scan(tmp_path / "a.npy", batch_rows=50), [], log1p=True)
    error = refused(DiscriminativePCA(1).fit, found.target)
    assert (error.facts["column"], error.facts["row"], error.value) == ("'x1'", 218, -1.0)
