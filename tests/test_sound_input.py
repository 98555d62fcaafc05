"""Data that could be taken for something else: reordered, masked, dates, whole numbers beyond double precision."""

import datetime
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.preprocessing import StandardScaler

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, make_pipeline, scan
from standout.report import compare, draw, examine, page, store, summary

KEYS = {
    "numbers": [10, 11, 12, 13],
    "counted": [0, 1, 2, 3],
    "hierarchy": pd.MultiIndex.from_product([["a", "b"], [1, 2]]),
}
ORDER = [2, 0, 1, 3]


@pytest.fixture
def rows(rng):
    return rng.normal(size=(100, 4)) * [4, 3, 2, 1], rng.normal(size=(90, 4)) * [1, 2, 3, 4]


# --- names that are no strings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", list(KEYS.values()), ids=list(KEYS))
@pytest.mark.parametrize(
    "make", [DiscriminativePCA, ContrastivePCA, partial(KernelDiscriminativePCA, approximation="fourier")]
)
def test_reordered_columns_are_refused_whatever_their_names_are(keys, make, rows):
    target, background = (pd.DataFrame(part, columns=keys) for part in rows)
    turned = background.iloc[:, ORDER]
    for refused in (
        lambda: make(2).fit(target, background=turned),
        lambda: make(2).fit(iter([target, target.iloc[:, ORDER]]), background=background),
        lambda: make_pipeline(StandardScaler(), make(2)).fit(target, background=turned),
    ):
        with pytest.raises(ValueError, match="order"):
            refused()
    model = make(2).fit(target, background=background)
    np.testing.assert_array_equal(model.eigenvalues_, make(2).fit(rows[0], background=rows[1]).eigenvalues_)
    for refused in (lambda: model.transform(turned), lambda: model.score(turned, background=turned)):
        with pytest.raises(ValueError, match="order"):
            refused()


def test_partial_fit_compares_names_that_are_no_strings(rows):
    target, background = (pd.DataFrame(part, columns=KEYS["numbers"]) for part in rows)
    model = DiscriminativePCA(2).partial_fit(target, background=background)
    with pytest.raises(ValueError, match="order"):
        model.partial_fit(target, background=background.iloc[:, ORDER])
    with pytest.raises(ValueError, match="order"):
        model.partial_fit(target.iloc[:, ORDER])


def test_a_frame_that_only_counts_its_columns_has_no_names(rows):
    target, background = pd.DataFrame(rows[0], columns=KEYS["numbers"]), pd.DataFrame(rows[1])
    assert DiscriminativePCA(2).fit(target, background=background).n_components_ == 2


# --- what is no number ----------------------------------------------------------------------------------------------


def test_masked_entries_are_refused(rows):
    target, background = rows
    masked = np.ma.masked_array(target, mask=target > 5)
    assert masked.mask.any()
    dask_array = pytest.importorskip("dask.array").from_array(masked, chunks=(50, 4))
    model = DiscriminativePCA(2).fit(target, background=background)
    for refused in (
        lambda: DiscriminativePCA(2).fit(masked, background=background),
        lambda: DiscriminativePCA(2).fit(target, background=masked),
        lambda: DiscriminativePCA(2).fit(iter([masked]), background=background),
        lambda: DiscriminativePCA(2).fit(dask_array, background=background),
        lambda: model.transform(masked),
        lambda: model.transform(dask_array).compute(),
    ):
        with pytest.raises(ValueError, match="masked"):
            refused()
    nothing = np.ma.masked_array(target, mask=False)
    np.testing.assert_array_equal(model.transform(nothing), model.transform(target))


DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=day) for day in range(100)]


@pytest.mark.parametrize(
    "column",
    [
        DAYS,
        [datetime.datetime(2020, 1, 1, 1, second % 60) for second in range(100)],
        [datetime.time(1, second % 60) for second in range(100)],
        [datetime.timedelta(seconds=second) for second in range(100)],
    ],
)
def test_dates_times_and_durations_of_polars_are_no_numbers(column, rng):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": rng.normal(size=100), "when": column})
    with pytest.raises(ValueError, match="dates or times in column 'when'"):
        DiscriminativePCA(1).fit(frame)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.period_range("2020", periods=100), "Period"),
        (pd.interval_range(0, 100), "Interval"),
        ([[1, 2]] * 100, "list"),
        (DAYS, "date"),
        (pd.to_datetime(DAYS), "dates or times"),
        (["a", "b"] * 50, "text"),
    ],
)
def test_a_column_is_called_what_it_is(column, kind, rng):
    frame = pd.DataFrame({"a": rng.normal(size=100), "odd": column})
    with pytest.raises(ValueError, match=f"{kind}.* in column 'odd'"):
        DiscriminativePCA(1).fit(frame)


def test_complex_sparse_input_is_refused_without_its_numbers(rng):
    with pytest.raises(ValueError, match="Complex data not supported") as caught:
        DiscriminativePCA(1).fit(sparse.csr_array(rng.normal(size=(20, 3)) * 1j))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_whole_numbers_beyond_double_precision_give_a_warning(dtype):
    rows = np.arange(200, dtype=dtype).reshape(100, 2)
    with pytest.warns(UserWarning, match=r"2\*\*53"):
        DiscriminativePCA(1).fit(rows + dtype(2**53))
    assert DiscriminativePCA(1).fit(rows + dtype(2**40)).eigenvalues_[0] == pytest.approx(6666, rel=1e-3)


def test_a_dask_bag_is_no_table(rng):
    bag = pytest.importorskip("dask.bag").from_sequence(rng.normal(size=(20, 3)).tolist())
    with pytest.raises(TypeError, match="Bag"):
        DiscriminativePCA(1).fit(bag)


def test_reports_of_something_else_are_refused(rows, tmp_path):
    for refused in (
        lambda: examine(StandardScaler().fit(rows[0]), *rows),
        lambda: page(3),
        lambda: summary(3),
        lambda: draw(3, tmp_path / "figure.png"),
        lambda: store(3, tmp_path),
        lambda: compare(3),
        lambda: compare([3]),
    ):
        with pytest.raises(TypeError, match="examine|estimator"):
            refused()
    assert not list(tmp_path.iterdir())


# --- containers, and few rows ---------------------------------------------------------------------------------------


def test_scores_of_dask_collections_stay_lazy_whatever_container_is_asked_for(rows):
    dask = pytest.importorskip("dask.array")
    data = dask.from_array(rows[0], chunks=(30, 4))
    model = DiscriminativePCA(2).fit(*rows[:1], background=rows[1])
    expected = model.transform(rows[0])
    chosen = DiscriminativePCA(2).set_output(transform="pandas").fit(rows[0], background=rows[1])
    found = [chosen.transform(data), chosen.fit_transform(data, background=rows[1])]
    with config_context(transform_output="pandas"):
        found.append(model.transform(data))
        pipeline = make_pipeline(StandardScaler(), DiscriminativePCA(2)).fit(data, background=rows[1])
        assert hasattr(pipeline.transform(data), "compute")
    for scores in found:
        assert hasattr(scores, "compute")
        np.testing.assert_allclose(scores.compute(), expected, atol=1e-9)
    with pytest.raises(ValueError, match="no lazy form"):
        chosen.set_output(transform="polars").transform(data)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_annotated_cells_get_arrays_whatever_container_is_asked_for(container, rows):
    anndata = pytest.importorskip("anndata")
    from standout import tl

    words = pd.DataFrame({"group": ["a"] * 100 + ["b"] * 90}, index=[f"cell {number}" for number in range(190)])
    cells = anndata.AnnData(np.vstack(rows), obs=words)
    with config_context(transform_output=container):
        tl.dpca(cells, "group", "a")
    assert isinstance(cells.obsm["X_dpca"], np.ndarray)


@pytest.mark.parametrize("shrinkage", [0.5, 1.0, "auto"])
def test_a_target_of_two_rows_is_fitted_in_every_form(shrinkage, rows, tmp_path):
    target, background = rows[0][:2], rows[1]
    pd.DataFrame(target, columns=list("abcd")).to_csv(tmp_path / "two.csv", index=False, float_format="%.17g")
    expected = DiscriminativePCA(2, shrinkage=shrinkage).fit(target, background=background)
    for data in (iter([target]), scan(tmp_path / "two.csv")):
        model = DiscriminativePCA(2, shrinkage=shrinkage).fit(data, background=background)
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-12)
