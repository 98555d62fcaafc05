"""Datasets of every form give the same rows, and everything about them is checked once, when they are opened."""

from __future__ import annotations

import operator
import sys
import time
from contextlib import nullcontext
from decimal import Decimal
from functools import partial

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import sklearn
import xarray
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from data_forms import COLUMNS, FORMS, NAMED, NO_HALF, numbers
from standout import DiscriminativePCA
from standout._arrays import in_order, one_blas_thread
from standout._messages import CautionWarning, InvalidTypeError, InvalidValueError, MixedArraysError
from standout.sources import (
    Batch,
    blocks,
    differences,
    on_device,
    open_dataset,
    open_datasets,
    transformed,
    within,
)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


# --- one form ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "single", "half", "whole", "truth"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_rows_of_the_array(form, kind):
    values = numbers(kind)
    if kind == "half" and form in NO_HALF:
        pytest.skip("there is no half precision in this form")
    source = open_dataset(FORMS[form](values), "the target")
    assert source.columns == (tuple(COLUMNS) if form in NAMED else None)
    assert source.width == 4
    rows = source.loaded().rows
    np.testing.assert_array_equal(dense(rows), values.astype(np.float64))
    assert rows.dtype in (np.float32, np.float64)
    assert isinstance(rows, np.ndarray | sparse.csr_array)
    if kind == "single" and form not in ("list", "object", "objects in a frame", "nullable frame"):
        assert rows.dtype == np.float32
    assert source.n_rows == len(values)


@pytest.mark.parametrize("form", ["array", "csr_array", "polars", "Dask frame", "Dask array", "batches"])
def test_map_reduce_adds_functions_of_batches_whose_numbers_are_known(form):
    values = numbers("float")
    total = open_dataset(FORMS[form](values)).map_reduce(
        lambda batch: (dense(batch.rows) * np.arange(batch.start, batch.start + batch.n_rows)[:, None]).sum(axis=0)
    )
    np.testing.assert_allclose(total, np.arange(37.0) @ values, rtol=1e-12)


@pytest.mark.parametrize("form", ["array", "csr_array", "Dask frame", "Dask array"])
def test_rows_are_taken_by_number_in_any_order(form):
    values, chosen = numbers("float"), [30, 2, 2, 11]
    np.testing.assert_array_equal(dense(open_dataset(FORMS[form](values)).take(chosen)), values[chosen])


def test_tensors_are_worked_on_where_they_are_only_if_scikit_learn_dispatches(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    torch = pytest.importorskip("torch")
    with sklearn.config_context(array_api_dispatch=True):
        source = open_dataset(torch.arange(6).reshape(3, 2))
        assert source.place == ("torch", "cpu")
        assert source.rows.dtype == torch.float64
        with pytest.raises(MixedArraysError, match="the target is of torch on cpu, but background 1 is of numpy"):
            open_datasets(torch.ones(3, 2), np.ones((3, 2)))
        with pytest.raises(InvalidValueError, match=r"first is nan in row 1, column 0"):
            open_dataset(torch.tensor([[1.0], [float("nan")]]))
    with pytest.raises(InvalidTypeError, match="sparse tensor"):
        open_dataset(torch.ones(3, 2).to_sparse())


def test_memory_maps_are_not_copied_and_large_whole_numbers_are_converted_a_block_at_a_time(tmp_path, monkeypatch):
    values = numbers("whole", 1000)
    np.save(tmp_path / "large.npy", values.astype(np.float64))
    mapped = np.load(tmp_path / "large.npy", mmap_mode="r")
    assert np.shares_memory(open_dataset(mapped).rows, mapped)
    monkeypatch.setattr("standout._arrays.BLOCK_BYTES", 2**12)
    monkeypatch.setattr("standout.sources._open.LARGE_BYTES", 2**10)
    large = open_dataset(values)
    assert large.rows is None
    assert len(list(large.batches())) > 5
    np.testing.assert_array_equal(large.loaded().rows, values)
    np.testing.assert_array_equal(large.take([700, 3]), values[[700, 3]])


# --- whole numbers that would be rounded ------------------------------------------------------------------------------

LARGE = 2**53 + 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array([[LARGE, 1]]),
        lambda: np.array([[LARGE, 1]], dtype=np.uint64),
        lambda: np.array([[-LARGE, 0.5]], dtype=object),
        lambda: np.array([[Decimal(LARGE), 0.5]], dtype=object),
        lambda: [[LARGE, 1]],
        lambda: [[LARGE, 0.5], [1, 2]],
        lambda: sparse.csr_array(np.array([[LARGE, 1]])),
        lambda: pandas.DataFrame({"id": [LARGE], "x": [0.5]}),
        lambda: pandas.DataFrame({"id": pandas.array([LARGE, None], dtype="Int64"), "x": [0.5, 1.0]}),
        lambda: pandas.DataFrame({"id": [LARGE], "x": [0.5]}, dtype=object),
        lambda: pandas.DataFrame({"id": [LARGE], "x": [0.5]}).astype({"id": "int64[pyarrow]"}),
        lambda: polars.DataFrame({"id": [LARGE], "x": [0.5]}),
        lambda: polars.DataFrame({"id": [LARGE, None], "x": [0.5, 1.0]}),
        lambda: pyarrow.table({"id": [LARGE, None], "x": [0.5, 1.0]}),
        lambda: pyarrow.table({"id": pyarrow.array([LARGE, None]).dictionary_encode(), "x": [0.5, 1.0]}),
        lambda: xarray.DataArray(np.array([[LARGE, 1]]), dims=("row", "column")),
        lambda: iter([np.array([[LARGE, 1]])]),
    ],
)
def test_whole_numbers_that_a_double_rounds_are_refused(make):
    with pytest.raises(InvalidValueError, match=r"9007199254740993 is beyond 2\*\*53"):
        open_dataset(make())


@pytest.mark.parametrize("value", [2**53, 2**60, -(2**62), 10**16])
def test_whole_numbers_that_a_double_has_are_read(value):
    assert open_dataset(np.array([[value, 1]])).rows[0, 0] == value
    assert open_dataset(pandas.DataFrame({"a": [value], "b": [0.5]})).rows[0, 0] == value


# --- tables that cannot be used ---------------------------------------------------------------------------------------

BAD = {
    "one dimension": (np.ones(3), ValueError, "Reshape your data"),
    "a number": (3.0, ValueError, "Expected 2D array, got scalar array instead"),
    "three dimensions": (np.ones((2, 2, 2)), ValueError, "got 3D array instead"),
    "no rows": (np.ones((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
    "no columns": (np.ones((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
    "NaN": (np.array([[1.0, 2.0], [3.0, np.nan]]), ValueError, "first is nan in row 1, column 1"),
    "infinity": (np.array([[np.inf, 2.0]], dtype=np.float32), ValueError, "first is inf in row 0, column 0"),
    "NaN in a frame": (pandas.DataFrame({"a": [1.0], "b": [None]}), ValueError, "row 0, column 'b'"),
    "NaN in a sparse array": (sparse.csr_array([[0.0, np.nan]]), ValueError, "first is nan in row 0, column 1"),
    "complex numbers": (np.ones((2, 2)) * 1j, ValueError, "Complex data not supported"),
    "sparse complex numbers": (sparse.csr_array([[1j]]), ValueError, "Complex data not supported"),
    "text": (np.array([["a"]]), ValueError, "could not convert string to float"),
    "text among objects": (np.array([["a", 1]], dtype=object), ValueError, "could not convert string to float"),
    "things": (np.array([[{}, 1]], dtype=object), TypeError, "argument must be a string or a real number"),
    "dates": (np.array([["2020-01-01"]], dtype="datetime64[D]"), TypeError, "dates or times"),
    "text in a frame": (pandas.DataFrame({"a": [1], "b": ["x"], "c": ["y"]}), ValueError, "text in columns 'b', 'c'"),
    "dates in a frame": (pandas.DataFrame({"a": [1], "b": pandas.to_datetime(["2020"])}), ValueError, "dates or times"),
    "durations": (polars.DataFrame({"a": [1], "b": [1]}).cast({"b": polars.Duration}), ValueError, "dates or times"),
    "text in polars": (polars.DataFrame({"a": ["x"]}), ValueError, "found text in column 'a'"),
    "text in Arrow": (pyarrow.table({"a": ["x"]}), ValueError, "found text in column 'a'"),
    "categories": (pandas.DataFrame({"a": pandas.Categorical(["u"])}), ValueError, "found text in column 'a'"),
    "mixed names": (pandas.DataFrame([[1, 2]], columns=["a", 1]), TypeError, "Feature names are only supported"),
    "masked": (np.ma.masked_equal([[1.0, 2.0]], 2.0), ValueError, r"masked entries, the first at \(0, 1\)"),
    "a path": ("data.csv", TypeError, "standout.scan"),
    "lazy": (polars.DataFrame({"a": [1]}).lazy(), TypeError, "collect"),
    "no batches": (iter([]), ValueError, "gave no batch"),
    "empty batches": (iter([np.ones((0, 2))]), ValueError, "a minimum|no rows"),
    "batches that differ": (iter([np.ones((1, 2)), np.ones((1, 3))]), ValueError, "batch 2 of the data has 3 features"),
}


@pytest.mark.parametrize("case", BAD)
def test_tables_that_cannot_be_used_are_one_clear_error(case):
    data, kind, message = BAD[case]
    with pytest.raises(kind, match=message) as caught:
        open_dataset(data).loaded()
    assert isinstance(caught.value, InvalidValueError | InvalidTypeError)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_columns_are_matched_by_name(make):
    target = make({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    _, background = open_datasets(target, make({"b": [5.0], "a": [6.0]}))
    assert background.columns == ("a", "b")
    assert background.rows.tolist() == [[6.0, 5.0]]
    with pytest.raises(InvalidValueError, match="background 1 lacks column 'b'; background 1 has column 'c', which"):
        open_datasets(target, make({"c": [5.0], "a": [6.0]}))
    with pytest.raises(InvalidValueError, match="background 2 has 1 features, but the target has 2"):
        open_datasets(target, [target, make({"a": [5.0]})])


def test_names_that_are_not_strings_are_matched_and_numbers_of_columns_are_not_names():
    target = pandas.DataFrame([[1.0, 2.0]], columns=[10, 20])
    assert open_datasets(target, pandas.DataFrame([[1.0, 2.0]], columns=[20, 10]))[1].rows.tolist() == [[2.0, 1.0]]
    assert open_datasets(target, pandas.DataFrame([[1.0, 2.0]]))[1].rows.tolist() == [[1.0, 2.0]]
    assert open_dataset(target).columns is None


def test_new_data_are_found_by_the_columns_of_the_fit():
    frame = pandas.DataFrame({"donor": ["x"], "b": [2.0], "a": [1.0]})
    assert open_dataset(frame, columns=("a", "b")).rows.tolist() == [[1.0, 2.0]]
    with pytest.raises(InvalidValueError, match="X lacks column 'c'"):
        open_dataset(frame, "X", columns=("a", "c"))


# --- arrays beside the rows -------------------------------------------------------------------------------------------


def test_named_columns_are_beside_the_rows_and_not_features():
    frame = pandas.DataFrame({"a": [1.0, 2, 3, 4], "w": [1, 2, 0, 1], "donor": list("uvvv"), "sex": list("fmff")})
    frame["age"] = [30.0, 40.0, 50.0, 40.0]
    for make in (lambda data: data, polars.from_pandas, pyarrow.Table.from_pandas):
        first, second = open_datasets(
            make(frame), make(frame[::-1]), sample_weight="w", groups="donor", adjust=["age", "sex"]
        )
        assert first.columns == second.columns == ("a",)
        assert first.weights.tolist() == [1.0, 2.0, 0.0, 1.0]
        assert first.subjects.tolist() == [0, 1, 1, 1]
        assert second.subjects.tolist() == [1, 1, 1, 0]
        assert first.subject_names.tolist() == ["u", "v"]
        # Values minus their means: 40 years, and one of four rows.
        assert first.covariates.tolist() == [[-10.0, -0.25], [0.0, 0.75], [10.0, -0.25], [0.0, -0.25]]
        with pytest.raises(InvalidValueError, match="adjust has 2 columns, which would explain most of the 3 rows"):
            open_datasets(make(frame[:3]), make(frame), groups="donor", adjust=["age", "sex"])


def test_subjects_are_numbered_over_all_datasets_and_whole_numbers_need_no_decimal_point():
    rows = np.ones((3, 2))
    first, second = open_datasets(rows, rows, groups=[7.0, 8.0, 8.0], background_groups=np.array([8, 9, 9]))
    assert first.subjects.tolist() == [0, 1, 1]
    assert second.subjects.tolist() == [1, 2, 2]
    with pytest.warns(CautionWarning, match="every subject has one row"):
        open_datasets(rows, groups=["a", "b", "c"])


@pytest.mark.parametrize("form", ["array", "frame", "csr_array", "Dask array", "batches"])
def test_rows_with_the_label_are_the_target_and_every_other_label_is_a_background(form):
    values = numbers("float")
    labels = np.array(["b", "c", "a"])[np.arange(37) % 3]
    weights = np.arange(37.0)
    found = open_datasets(FORMS[form](values), y=labels, target_label="b", sample_weight=weights)
    assert [data.name for data in found] == ["the target", "background 1", "background 2"]
    for data, label in zip(found, "bac", strict=True):
        np.testing.assert_array_equal(dense(data.loaded().rows), values[labels == label])
        np.testing.assert_array_equal(data.weights, weights[labels == label])
        total = data.map_reduce(lambda batch: dense(batch.rows).sum(axis=0))
        np.testing.assert_allclose(total, values[labels == label].sum(axis=0))


ROWS = np.ones((3, 2))
WRONG_BESIDE = {
    "too few weights": ({"sample_weight": [1, 2]}, r"sample_weight has shape \(2,\), but the target has 3 rows"),
    "weights as a table": ({"sample_weight": np.ones((3, 2))}, r"sample_weight has shape \(3, 2\)"),
    "negative weights": ({"sample_weight": [1, -1, 1]}, "non-negative, finite and not all zero"),
    "no weight": ({"sample_weight": [0, 0, 0]}, "not all zero"),
    "infinite weights": ({"sample_weight": [1, np.inf, 1]}, "finite"),
    "endless weights": ({"sample_weight": [1e308, 1e308, 1]}, "finite"),
    "weights of two backgrounds": ({"background_sample_weight": [ROWS[0], ROWS[0]]}, r"is for 2 background|has shape"),
    "subjects of the target only": ({"groups": list("aab")}, "go together, but one dataset has none"),
    "a row without a subject": ({"groups": ["a", None, "b"], "background_groups": list("aab")}, "no subject for row 1"),
    "one subject": ({"groups": list("aaa"), "background_groups": list("aab")}, "rows of one subject only"),
    "a column that is not there": ({"groups": "donor"}, "groups='donor' is not a column of the target"),
    "covariates with gaps": ({"adjust": [1, np.nan, 2], "background_adjust": [1, 2, 3]}, "no value of 0 for row 1"),
    "a table as y": ({"y": ROWS}, r"fit\(X, background=...\)"),
    "labels and a background": ({"y": [1, 1, 2], "target_label": 1}, "both `target_label` and a background"),
}


@pytest.mark.parametrize("case", WRONG_BESIDE)
def test_wrong_arrays_beside_the_rows_are_refused(case):
    options, message = WRONG_BESIDE[case]
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        open_datasets(ROWS, ROWS, **options)


@pytest.mark.parametrize(
    ("labels", "target_label", "message"),
    [
        ([1, 1, 1], 1, "every row has the label 1"),
        ([1, 2, 1], 3, "target_label=3 is not a label of a row; y has labels 1, 2"),
        (None, 3, "requires y to be passed, but the target y is None"),
        (["a", None, "b"], "a", "missing values"),
        ([1, "a", 2], 1, "mixes types"),
        ([1, 2], 1, r"y has shape \(2,\), but the target has 3 rows"),
    ],
)
def test_wrong_labels_are_refused(labels, target_label, message):
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        open_datasets(ROWS, y=labels, target_label=target_label)


def test_weights_of_batches_are_counted_as_the_rows_pass():
    for n_weights in (3, 5):
        (source,) = open_datasets(iter([np.ones((2, 2)), np.ones((2, 2))]), sample_weight=np.ones(n_weights))
        with pytest.raises(InvalidValueError, match=f"weights of the target have {n_weights} entries"):
            source.map_reduce(lambda batch: batch.rows.sum())


def test_one_iterator_for_two_datasets_is_refused():
    batches = iter([ROWS, ROWS])
    with pytest.raises(InvalidValueError, match="same iterator"):
        open_datasets(batches, batches)


def test_opening_arrays_is_cheap():
    target, background = np.random.default_rng(0).normal(size=(2, 200, 10))
    seen = set()

    def note(frame, event, _):
        if event == "call" and "standout" in frame.f_globals.get("__name__", ""):
            seen.add(frame.f_code)

    sys.setprofile(note)
    open_datasets(target, background)
    sys.setprofile(None)
    assert len(seen) <= 20
    start = time.perf_counter()
    for _ in range(200):
        open_datasets(target, background)
    assert (time.perf_counter() - start) / 200 < 1.5e-3  # 0.015 ms on an idle core


# --- devices, steps, functions ----------------------------------------------------------------------------------------


def test_batches_are_sent_to_a_device():
    torch = pytest.importorskip("torch")
    values = numbers("single", 50)
    source = on_device(iter([values[:30], sparse.csr_array(values[30:])]), "cpu", batch_rows=8)
    batches = list(source.batches())
    assert [batch.n_rows for batch in batches] == [8, 8, 8, 6, 8, 8, 4]
    assert all(isinstance(batch.rows, torch.Tensor) for batch in batches)
    np.testing.assert_array_equal(np.concatenate([batch.rows.numpy() for batch in batches]), values)
    with pytest.raises(InvalidValueError, match="device='nowhere' cannot be used by torch"):
        on_device(values, "nowhere")
    with pytest.raises(ImportError, match="library='nothing' cannot be imported"):
        on_device(values, "cpu", library="nothing")


@pytest.mark.parametrize("form", ["array", "frame", "Dask frame", "batches"])
def test_fitted_steps_change_every_batch(form):
    values = numbers("float")
    scaler = StandardScaler().fit(FORMS["frame"](values) if form in NAMED else values)
    found = transformed(open_dataset(FORMS[form](values)), [scaler])
    assert found.width == 4
    np.testing.assert_allclose(found.loaded().rows, (values - values.mean(0)) / values.std(0), atol=1e-12)


def test_variation_within_subjects_has_the_variance_about_the_true_means():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(2000), 2)
    rows = rng.normal(size=(4000, 1)) + 100.0 * rng.normal(size=2000)[groups][:, None]
    left = within(rows, groups)
    np.testing.assert_allclose(left.reshape(2000, 2).sum(axis=1), 0.0, atol=1e-9)
    assert np.var(left) == pytest.approx(1.0, abs=0.1)  # standard error 0.03
    with pytest.raises(InvalidValueError, match="names every subject once"):
        within(rows[:3], [1, 2, 3])


def test_differences_and_blocks():
    before, after = np.random.default_rng(0).normal(size=(2, 5, 3))
    np.testing.assert_array_equal(differences(before, after), (after - before) / np.sqrt(2))
    with pytest.raises(InvalidValueError, match=r"shape \(5, 3\)"):
        differences(before, after[:4])
    names, counts = np.unique(blocks(100, 30, "x"), return_counts=True)
    assert (names.tolist(), counts.tolist()) == (["x 0", "x 1", "x 2"], [30, 30, 40])
    with pytest.raises(InvalidValueError, match=r"length=0 is outside \[1, 10\]"):
        blocks(10, 0, "x")


def test_blas_has_its_threads_again_after_passes_in_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    before = [part["num_threads"] for part in threadpool_info()]

    def one_pass(number):
        parts = in_order(lambda n: np.ones((50, 50)) @ np.ones((50, 50)) * n, range(6))
        # Limits of other tasks begin and end in between.
        with one_blas_thread() if number % 3 else nullcontext():
            return sum(part.sum() for part in parts)

    def fitted(number):
        rows = np.random.default_rng(number).normal(size=(2, 40, 3))
        return DiscriminativePCA(1).fit(iter(rows[0][None]), background=rows[1]).ratio_

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(fitted if n % 4 == 0 else one_pass, n) for n in range(16)]
        assert all(np.isfinite(one.result()).all() for one in found)
    abandoned = in_order(abs, range(50))
    next(abandoned)
    abandoned.close()
    assert [part["num_threads"] for part in threadpool_info()] == before


# --- Dask on workers --------------------------------------------------------------------------------------------------


def _sum(batch: Batch):
    return batch.rows.sum(axis=0), batch.n_rows, batch.start


def _join(first, second):
    assert first[2] < second[2]
    return first[0] + second[0], first[1] + second[1], first[2]


@pytest.fixture(scope="module")
def cluster():
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "120s"}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as made,
        distributed.Client(made) as client,
    ):
        yield client


def test_blocks_are_summed_on_the_workers_in_the_order_of_the_rows(cluster, tmp_path):
    import dask.dataframe

    values = numbers("float", 500)
    FORMS["frame"](values).to_parquet(tmp_path / "table.parquet", row_group_size=40)
    files = dask.dataframe.read_parquet(tmp_path / "table.parquet", split_row_groups=True)
    some = values[values[:, 3] > 0]
    cases = [(FORMS["Dask array"](values), values), (FORMS["Dask frame"](values), values), (files, values)]
    for data, expected in [*cases, (files[files["dose"] > 0], some)]:
        source = open_dataset(data)
        total, count, _ = source.map_reduce(_sum, _join)
        assert count == len(expected)
        np.testing.assert_allclose(total, expected.sum(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(source.take([3, 1]), expected[[3, 1]])


def test_a_block_that_cannot_be_used_is_named(cluster):
    values = numbers("float")
    values[25, 1] = np.nan
    with pytest.raises(InvalidValueError, match="block 3 of the target: the first is nan in row 5, column 1"):
        open_dataset(FORMS["Dask array"](values), "the target").map_reduce(partial(_sum), operator.add)
