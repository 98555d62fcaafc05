"""What Dask moves and keeps: sums and never rows, lazy frames, labels in blocks."""

import sys

import numpy as np
import pandas as pd
import pytest

from standout import DiscriminativePCA, KernelDiscriminativePCA
from standout.moments import gather, gather_folds
from standout.sources import open_dataset

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

D = 6


@pytest.fixture
def pair(rng):
    target, background = rng.normal(size=(400, D)) * [3, 1, 1, 1, 1, 2], rng.normal(size=(300, D)) * [3, 1, 1, 1, 1, 1]
    return target, background


def frame(rows, n_partitions=8):
    return dd.from_pandas(pd.DataFrame(rows, columns=list("abcdef")), npartitions=n_partitions)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_no_task_gives_rows_to_another(pair, kind, tmp_path):
    """Each block is read, doubled and summed up in one task."""
    if kind == "array":
        np.save(tmp_path / "rows.npy", pair[0])
        data = da.from_array(np.load(tmp_path / "rows.npy", mmap_mode="r"), chunks=(50, D)) * 2.0
    else:
        frame(pair[0]).to_parquet(tmp_path / "rows")
        data = dd.read_parquet(tmp_path / "rows") * 2.0
    promises = open_dataset(data, "the target")._each(given_shape)
    # Beside a task for each block there is at most one for its place, which is two numbers.
    assert all(len(dict(promise.__dask_graph__())) <= 2 * 8 + 1 for promise in promises)
    assert [promise.compute(scheduler="sync") for promise in promises] == [(50, D)] * 8


def test_files_that_dask_takes_together_are_counted_together(pair, tmp_path):
    """Of 40 columns two are read, so that Dask makes one block of several files."""
    wide = pd.DataFrame(np.repeat(pair[0], 7, axis=1)[:, :40], columns=[f"c{number}" for number in range(40)])
    dd.from_pandas(wide, npartitions=8).to_parquet(tmp_path / "wide")
    few = dd.read_parquet(tmp_path / "wide")[["c3", "c37"]]
    rows = wide[["c3", "c37"]].to_numpy()
    expected = DiscriminativePCA(1).fit(rows, background=rows[::-1].copy())
    found = DiscriminativePCA(1).fit(few, background=rows[::-1].copy())
    np.testing.assert_allclose(found.held_out_ratio_, expected.held_out_ratio_, rtol=1e-9)
    np.testing.assert_allclose(found.transform(few).compute(), expected.transform(rows), atol=1e-10)


@pytest.mark.parametrize("filesystem", ["fsspec", "arrow"])
def test_rows_of_parquet_files_are_counted_in_their_footers(pair, tmp_path, filesystem, monkeypatch):
    """Folds need the number of each block's first row; finding it must not read all files a second time."""
    pytest.importorskip("dask.dataframe.dask_expr", reason="this version of Dask has no expressions")
    frame(pair[0]).to_parquet(tmp_path / "rows")
    data = dd.read_parquet(tmp_path / "rows", filesystem=filesystem)
    passes = []
    monkeypatch.setattr("standout.sources._dask._length", lambda block, *_: passes.append(0) or len(block))
    for some, n_passes in ((data, 0), (data * 1.0, None), (data.partitions[3:6], None)):
        passes.clear()
        rows = some.compute(scheduler="sync").to_numpy()
        expected = gather_folds(rows, 5)
        found = gather_folds(some, 5)
        assert n_passes is None or len(passes) == n_passes
        for part, other in zip(found.sums, expected.sums, strict=True):
            np.testing.assert_allclose(part.scatter, other.scatter, atol=1e-9)


def test_files_whose_footers_were_misread_are_counted_again(pair, tmp_path, monkeypatch):
    frame(pair[0]).to_parquet(tmp_path / "rows")
    data = dd.read_parquet(tmp_path / "rows")
    monkeypatch.setattr("standout.sources._dask._counts_of_files", lambda cut: [7] * cut.npartitions)
    found, expected = gather_folds(data, 5), gather_folds(pair[0], 5)
    for part, other in zip(found.sums, expected.sums, strict=True):
        np.testing.assert_allclose(part.scatter, other.scatter, atol=1e-9)


def given_shape(block, number, start):
    return block.shape


def test_schedulers_are_told_the_size_of_sums(rng):
    from dask.sizeof import sizeof

    rows = rng.normal(size=(300, 200))
    for sums, least in (
        (gather(rows, kind="scatter"), 200 * 200 * 8),
        (gather_folds(rows, 5), 5 * 200 * 200 * 8),
        (gather(rows, kind="root"), 200 * 200 * 8),
        (gather(rows[:100], kind="rows"), 100 * 200 * 8),
    ):
        assert least <= sizeof(sums) < 2 * least + 20_000
        assert sys.getsizeof(sums) == sizeof(sums)


@pytest.mark.parametrize("form", [frame, lambda rows: da.from_array(rows, chunks=(60, D))])
def test_set_output_gives_a_lazy_frame(pair, form):
    model = DiscriminativePCA(2).fit(pair[0], background=pair[1])
    expected = model.transform(pair[0])
    model = DiscriminativePCA(2).set_output(transform="pandas").fit(form(pair[0]), background=form(pair[1]))
    for scores in (model.transform(form(pair[0])), model.fit_transform(form(pair[0]), background=form(pair[1]))):
        assert isinstance(scores, dd.DataFrame)
        assert list(scores.columns) == ["discriminativepca0", "discriminativepca1"]
        found = scores.compute()
        np.testing.assert_allclose(found, expected, atol=1e-10)
        assert found.index.tolist() == list(range(400))
    with pytest.raises(ValueError, match=r"set_output\(transform='polars'\) has no lazy form"):
        model.set_output(transform="polars").transform(form(pair[0]))


@pytest.mark.parametrize("labels", ["numpy", "dask"])
@pytest.mark.parametrize("form", [frame, lambda rows: da.from_array(rows, chunks=(60, D))])
def test_labels_of_blocks(pair, form, labels, rng):
    rows = np.vstack(pair)
    y = np.repeat(np.array(["t", "b"], dtype="U5"), [400, 300])
    y[350:380] = "other"
    order = rng.permutation(len(rows))
    rows, y = rows[order], y[order]
    given = y if labels == "numpy" else da.from_array(y, chunks=50)
    for model in (
        DiscriminativePCA(2, target_label="t"),
        KernelDiscriminativePCA(2, target_label="t", approximation="fourier", rank=40),
    ):
        expected = model.fit(rows, y)
        values, ratios = expected.eigenvalues_, expected.held_out_ratio_
        found = model.fit(form(rows), given)
        assert found.background_labels_ == ["b", "other"]
        np.testing.assert_allclose(found.eigenvalues_, values, rtol=1e-9)
        # Folds follow from the number of a row among those of its label.
        np.testing.assert_allclose(found.held_out_ratio_, ratios, rtol=1e-8)
        assert found.transform(form(rows)).shape[1] == 2
    with pytest.raises(ValueError, match="y has shape .10,., but there are 700 rows"):
        DiscriminativePCA(2, target_label="t").fit(form(rows), y[:10])
