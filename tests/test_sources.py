"""Every dataset is a source: the same rows, samples, counts and answers, whatever it comes as."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
    scan,
)
from standout._messages import InvalidValueError
from standout.io import Table, on_device
from standout.sources import Batch, InMemory, Source, Transformed, open_dataset, regrouped

N, D = 230, 5
NAMES = list("abcde")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let every batch be a part of its own."""
    monkeypatch.setattr("standout.sources._base.BLOCK_BYTES", 8 * D * 10)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(N, D)) * [5, 1, 1, 1, 3]


class Own(Source):
    """The least that a source of one's own must have."""

    def __init__(self, rows, size=70):
        self.given, self.size = rows, size

    def batches(self):
        for start in range(0, len(self.given), self.size):
            yield Batch(self.given[start : start + self.size], start)


def dask_array(rows):
    return pytest.importorskip("dask.array", reason="Dask is not installed").from_array(rows, chunks=(60, 3))


def dask_frame(rows):
    frames = pytest.importorskip("dask.dataframe", reason="Dask's frames are not installed")
    return frames.from_pandas(pd.DataFrame(rows, columns=NAMES), npartitions=4)


def scanned(rows, folder):
    for number, part in enumerate(np.array_split(rows, min(3, len(rows)))):
        np.save(folder / f"{number}.npy", part)
    return scan(folder / "*.npy", batch_rows=40)


FORMS = {
    "array": lambda rows, folder: rows,
    "list": lambda rows, folder: rows.tolist(),
    "frame": lambda rows, folder: pd.DataFrame(rows, columns=NAMES),
    "table": lambda rows, folder: Table(rows, NAMES),
    "source in memory": lambda rows, folder: InMemory(rows),
    "iterator": lambda rows, folder: iter(np.array_split(rows, 7)),
    "iterator with empty batches": lambda rows, folder: iter([rows[:0], rows[:100], rows[:0], rows[100:]]),
    "scan": scanned,
    "Dask array": lambda rows, folder: dask_array(rows),
    "Dask frame": lambda rows, folder: dask_frame(rows),
    "on a device": lambda rows, folder: on_device(rows, "cpu", library="numpy", batch_rows=50),
    "after a step": lambda rows, folder: Transformed(Own(rows), (FunctionTransformer(),)),
    "a source of one's own": lambda rows, folder: Own(rows),
}


@pytest.fixture(params=FORMS)
def form(request, tmp_path):
    """Open a dataset in one of the forms."""
    return lambda rows: open_dataset(FORMS[request.param](rows, tmp_path), "the data")


def test_all_rows_are_given_in_their_order(form, rows):
    np.testing.assert_array_equal(form(rows).rows(), rows)
    np.testing.assert_array_equal(np.vstack(list(form(rows).parts())), rows)
    assert form(rows).count_rows() == N


def test_batches_know_where_they_start(form, rows):
    n_rows = 0
    for batch in form(rows).batches():
        assert batch.start == n_rows
        n_rows += batch.n_rows
    assert n_rows == N


def test_the_first_rows_stay_to_be_read(form, rows):
    source = form(rows)
    np.testing.assert_array_equal(source.first(3), rows[:3])
    assert sum(part.shape[0] for part in source.parts()) == N


@pytest.mark.parametrize("count", [1, 17, 150, N, 1000])
def test_a_random_sample_is_the_same_whatever_the_rows_come_as(form, rows, count):
    rng, ours = np.random.default_rng(5), np.random.default_rng(5)
    found = form(rows).sample(count, rng)
    np.testing.assert_array_equal(found, open_dataset(rows, "the data").sample(count, ours))
    # What is drawn afterwards is the same, too.
    assert rng.random() == ours.random()


def test_a_sample_is_drawn_evenly():
    drawn = [InMemory(np.arange(20.0)[:, None]).sample(5, np.random.default_rng(seed)) for seed in range(400)]
    counts = np.bincount(np.concatenate(drawn).astype(int).ravel(), minlength=20)
    # Each row is in a quarter of the samples: 100, with a standard deviation of 8.7.
    assert np.all(np.abs(counts - 100) < 5 * 8.7)


def test_sums_and_maps_go_over_all_rows(form, rows):
    def sum_up(batch):
        return Total(batch.rows.sum(axis=0), batch.n_rows)

    np.testing.assert_allclose(form(rows).summed(sum_up).sums, rows.sum(axis=0))
    np.testing.assert_allclose(np.asarray(form(rows).mapped(double_first, 1)), 2.0 * rows[:, :1])


class Total:
    def __init__(self, sums, count):
        self.sums, self.count = sums, count

    def __add__(self, other):
        return Total(self.sums + other.sums, self.count + other.count)


def double_first(rows):
    return 2.0 * rows[:, :1]


def test_too_few_rows_are_refused_whatever_they_come_as(form, rows):
    with pytest.raises(InvalidValueError) as caught:
        form(rows[:1]).summed(lambda batch: Total(batch.rows, batch.n_rows))
    assert caught.value.limit == 2
    assert caught.value.facts["n_rows"] == 1


def test_words_stay_with_their_rows_when_small_batches_are_joined():
    def words(start, n):
        return np.array([f"row {number}" for number in range(start, start + n)], dtype=object)

    given = [
        Batch(np.full((n, 2), start), start, ids=words(start, n), groups=words(start, n))
        for start, n in ((0, 4), (4, 7), (11, 1))
    ]
    (joined,) = regrouped(given)
    assert joined.ids.tolist() == joined.groups.tolist() == words(0, 12).tolist()
    assert joined.labels is None
    chosen = joined.taken(joined.rows[:, 0] == 4, start=0)
    assert chosen.ids.tolist() == words(4, 7).tolist()


# --- estimators ------------------------------------------------------------------------------------------------------

ESTIMATORS = {
    "dPCA": DiscriminativePCA(2),
    "cPCA": ContrastivePCA(2),
    "KdPCA": KernelDiscriminativePCA(2, approximation="fourier", rank=30),
    "KdPCA, exact": KernelDiscriminativePCA(2),
    "KcPCA": KernelContrastivePCA(2, approximation="fourier", rank=30),
    "pipeline": make_pipeline(StandardScaler(), DiscriminativePCA(2)),
}


def as_frame(table):
    return pd.DataFrame(table.values, columns=table.columns)


@pytest.fixture
def tables(rng):
    ids = np.array([f"row {number}" for number in range(90)], dtype=object)
    target = Table(rng.normal(size=(90, D)) * [5, 1, 1, 1, 3], NAMES, ids=ids, labels=ids, groups=ids)
    return target, Table(rng.normal(size=(80, D)) * [5, 1, 1, 1, 1], NAMES)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("form", [lambda table: table, lambda table: open_dataset(table, "the data")])
def test_a_table_is_taken_as_a_frame_is(name, form, tables):
    target, background = map(as_frame, tables)
    expected = clone(ESTIMATORS[name]).fit(target, background=background)
    target, background = map(form, tables)
    for model in (
        clone(ESTIMATORS[name]).fit(target, background=background),
        clone(ESTIMATORS[name]).fit(target, background=[background]),
    ):
        np.testing.assert_array_equal(model.transform(target), expected.transform(as_frame(tables[0])))
        np.testing.assert_array_equal(model.transform(as_frame(tables[0])), model.transform(target))
        assert list(model.feature_names_in_) == NAMES
        held = expected.score(as_frame(tables[0]), background=as_frame(tables[1]))
        assert model.score(target, background=background) == held
    scores = clone(ESTIMATORS[name]).fit_transform(target, background=background)
    np.testing.assert_array_equal(scores, expected.transform(as_frame(tables[0])))


@pytest.mark.parametrize("name", ["dPCA", "cPCA", "KdPCA", "KcPCA"])
def test_a_table_may_be_a_batch(name, tables):
    model = clone(ESTIMATORS[name]).partial_fit(tables[0], background=tables[1])
    expected = clone(ESTIMATORS[name]).partial_fit(as_frame(tables[0]), background=as_frame(tables[1]))
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert list(model.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="another order"):
        model.partial_fit(Table(tables[0].values, NAMES[::-1]))


def test_labels_go_with_the_rows_of_a_table(tables):
    y = np.repeat(["a", "b"], 45)
    model = DiscriminativePCA(1, target_label="a").fit(tables[0], y)
    expected = DiscriminativePCA(1, target_label="a").fit(tables[0].values, y)
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert model.score(tables[0], y) == expected.score(tables[0].values, y)


def test_tables_without_names_and_sparse_ones_are_taken(tables, rng):
    target, background = tables
    bare = DiscriminativePCA(1).fit(
        Table(target.values, NAMES, has_names=False),
        background=Table(background.values, list("vwxyz"), has_names=False),
    )
    assert not hasattr(bare, "feature_names_in_")
    thin = [Table(sparse.csr_array(part.values), NAMES) for part in tables]
    found = DiscriminativePCA(1).fit(thin[0], background=thin[1])
    np.testing.assert_allclose(found.eigenvalues_, bare.eigenvalues_)
    piped = make_pipeline(StandardScaler(with_mean=False), DiscriminativePCA(1)).fit(thin[0], background=thin[1])
    assert piped.transform(thin[0]).shape == (90, 1)


def test_columns_of_tables_are_compared(tables):
    target, background = tables
    with pytest.raises(InvalidValueError) as caught:
        DiscriminativePCA(1).fit(target, background=Table(background.values, ["a", "b", "c", "d", "z"]))
    assert caught.value.facts["missing"] == "column 'e'"
    model = DiscriminativePCA(1).fit(target, background=background)
    with pytest.raises(ValueError, match="another order"):
        model.transform(Table(target.values, NAMES[::-1]))


def test_sources_travel_to_other_processes(rows, tmp_path):
    for name in ("source in memory", "scan", "after a step", "a source of one's own", "Dask array"):
        source = open_dataset(FORMS[name](rows, tmp_path), "the data")
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).rows(), rows)
