"""Scans: files of every kind, read batch by batch, give the fit that the same rows give in memory."""

import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from sklearn.base import clone

import standout
from scanned_files import KINDS, NAMES, SPARSE, WITHOUT_NAMES, D, annotated, datasets, table, write
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA, scan
from standout.io import Scan
from standout.sources import open_dataset

# A fixture, which pytest finds by its name.
__all__ = ["datasets"]

# Sums in another order differ by rounding: 1e-10 is what the issue allows, and some hundred times what is seen.
TOLERANCE = 1e-10


def assert_same_fit(found, expected):
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=TOLERANCE)
    for name in ("components_", "mean_"):
        reference = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), reference, atol=TOLERANCE * np.abs(reference).max(), rtol=0)


LINEAR = {
    "dPCA": lambda: DiscriminativePCA(3),
    "cPCA": lambda: ContrastivePCA(3, alpha=1.5),
}


@pytest.mark.parametrize("method", LINEAR)
@pytest.mark.parametrize("kind", KINDS)
def test_a_scan_gives_the_fit_of_the_same_rows_in_memory(datasets, tmp_path, kind, method):
    target, *backgrounds = (scan(folder, batch_rows=41) for folder in write(datasets, tmp_path, kind))
    assert target.again
    for n_backgrounds in (1, 2):
        expected = LINEAR[method]().fit(datasets[0], background=datasets[1 : 1 + n_backgrounds])
        found = LINEAR[method]().fit(target, background=backgrounds[:n_backgrounds])
        assert_same_fit(found, expected)


@pytest.mark.parametrize("approximation", ["landmarks", "fourier"])
@pytest.mark.parametrize("kind", ["parquet", "npy", "h5ad sparse"])
@pytest.mark.parametrize("method", [KernelDiscriminativePCA, KernelContrastivePCA])
def test_kernel_methods_give_the_fit_of_the_same_rows_in_memory(datasets, tmp_path, kind, approximation, method):
    # Random features and the bandwidth depend on the first rows only through their number of columns.
    options = {"approximation": datasets[1][:40] if approximation == "landmarks" else "fourier", "gamma": 0.02}
    options |= {"rank": 60} if approximation == "fourier" else {}
    scans = [scan(sorted(folder.iterdir()), batch_rows=53) for folder in write(datasets, tmp_path, kind)]
    expected = method(2, **options).fit(datasets[0], background=datasets[1:])
    found = method(2, **options).fit(scans[0], background=scans[1:])
    # The ridge of the paper makes these less well conditioned than the linear methods.
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("approximation", ["pivoted", "auto", "exact"])
def test_kernel_coordinates_are_chosen_from_a_scan(datasets, tmp_path, approximation):
    scans = [scan(folder) for folder in write(datasets, tmp_path, "parquet")]
    found = KernelDiscriminativePCA(2, gamma=0.02, approximation=approximation, random_state=0)
    found.fit(scans[0], background=scans[1:])
    again = KernelDiscriminativePCA(2, gamma=0.02, approximation=approximation, random_state=0)
    again.fit(scans[0], background=scans[1:])
    np.testing.assert_array_equal(found.eigenvalues_, again.eigenvalues_)
    assert found.transform(scans[0]).shape == (530, 2)


@pytest.mark.filterwarnings("ignore:no epsilon shows more than one group")
def test_groups_are_looked_for_in_a_sample_of_a_scan(datasets, tmp_path):
    scans = [scan(folder, batch_rows=100) for folder in write(datasets, tmp_path, "parquet", n_files=1)]
    found = DiscriminativePCA(1, shrinkage="clusters").fit(scans[0], background=scans[1])
    expected = DiscriminativePCA(1, shrinkage="clusters").fit(datasets[0], background=datasets[1])
    assert_same_fit(found, expected)

    kernel = KernelDiscriminativePCA(1, gamma=0.02, epsilon="clusters", approximation="pivoted", random_state=0)
    expected = clone(kernel).fit(datasets[0], background=datasets[1])
    kernel.fit(scans[0], background=scans[1])
    np.testing.assert_allclose(kernel.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(kernel.transform(scans[0]), expected.transform(datasets[0]), rtol=1e-6)


@pytest.mark.parametrize("kind", ["parquet", "csv", "h5ad sparse"])
def test_transform_gives_the_scores_of_all_rows_in_order(datasets, tmp_path, kind):
    folders = write(datasets, tmp_path, kind, n_files=1)
    model = DiscriminativePCA(2).fit(datasets[0], background=datasets[1])
    scores = model.transform(scan(folders[0], batch_rows=97))
    np.testing.assert_allclose(scores, model.transform(datasets[0]), atol=1e-10)


def test_what_is_known_before_a_row_is_read(datasets, tmp_path):
    for kind in KINDS:
        found = scan(write(datasets[:1], tmp_path, kind)[0])
        assert isinstance(found, Scan)
        assert found.width == D
        assert found.n_rows == (None if "csv" in kind or "tsv" in kind else 530)
        assert found.columns == (None if kind in WITHOUT_NAMES else NAMES)
        assert found.count_rows() == 530
        assert f"x {D} columns" in repr(found)


@pytest.mark.parametrize("kind", KINDS)
def test_reading_twice_gives_the_same_batches_also_after_a_journey(datasets, tmp_path, kind):
    found = scan(write(datasets[:1], tmp_path, kind)[0], batch_rows=50)
    first, second = list(found.parts()), list(pickle.loads(pickle.dumps(found)).parts())
    assert (found.rows() != found.read().values).sum() == 0
    assert found.rows().shape == (530, D)
    # Three files of 177, 177 and 176 rows.
    assert [part.shape[0] for part in first].count(50) == 9
    for one, other in zip(first, second, strict=True):
        assert (one != other).sum() == 0
    assert all(sparse.issparse(part) for part in first) == (kind in SPARSE)


def test_batches_that_are_kept_are_not_overwritten(datasets, tmp_path):
    """Memory of a batch is used again, but only once nobody has it."""
    parquet.write_table(table(datasets[0]), tmp_path / "0.parquet")
    found = scan(tmp_path, batch_rows=20)
    kept = [part[3:5] for part in found.parts()]
    np.testing.assert_array_equal(np.concatenate(kept), datasets[0][[r for r in range(530) if r % 20 in (3, 4)]])
    places = {part.__array_interface__["data"][0] for part in found.parts()}
    assert len(places) < 10


def test_who_holds_memory_is_found_out_whatever_the_interpreter_counts(datasets, tmp_path, monkeypatch):
    """Newer interpreters count an array less often than older ones."""
    newer = SimpleNamespace(getrefcount=lambda array: sys.getrefcount(array) - 2)
    monkeypatch.setattr("standout.io._arrow.sys", newer)
    test_batches_that_are_kept_are_not_overwritten(datasets, tmp_path)


def test_batches_do_not_depend_on_row_groups(datasets, tmp_path):
    parquet.write_table(table(datasets[0]), tmp_path / "one.parquet")
    parquet.write_table(table(datasets[0]), tmp_path / "many.parquet", row_group_size=19)
    one, many = (list(scan(tmp_path / f"{name}.parquet", batch_rows=64).parts()) for name in ("one", "many"))
    for first, second in zip(one, many, strict=True):
        np.testing.assert_array_equal(first, second)


def test_single_precision_stays_and_integers_become_double(tmp_path):
    rows = np.arange(20.0).reshape(10, 2)
    for dtype, expected in ((np.float32, np.float32), (np.int16, np.float64), (bool, np.float64), (np.float16, "f4")):
        np.save(tmp_path / "rows.npy", rows.astype(dtype))
        parquet.write_table(table(rows.astype(dtype), ["a", "b"]), tmp_path / "rows.parquet")
        for name in ("rows.npy", "rows.parquet"):
            (batch,) = scan(tmp_path / name).parts()
            assert batch.dtype == expected
            np.testing.assert_array_equal(batch, rows.astype(dtype))


def test_files_are_found_by_path_pattern_folder_and_list(tmp_path):
    for number in (2, 0, 1):
        np.save(tmp_path / f"part-{number}.npy", np.full((2, 1), number))
    (tmp_path / "_metadata").write_text("not data")
    (tmp_path / ".hidden.npy").write_text("not data")
    numbers = lambda found: [int(batch[0, 0]) for batch in found.parts()]  # noqa: E731
    assert numbers(scan(tmp_path)) == [0, 1, 2]
    assert numbers(scan(f"{tmp_path}/part-*.npy")) == [0, 1, 2]
    assert numbers(scan([tmp_path / "part-2.npy", f"{tmp_path}/part-[01].npy"])) == [2, 0, 1]
    assert numbers(scan(tmp_path / "part-1.npy")) == [1]
    (tmp_path / "data[1]").mkdir()
    np.save(tmp_path / "data[1]" / "x.npy", np.ones((2, 1)))
    assert numbers(scan(f"{tmp_path}/data[1]/x.npy")) == [1]
    (tmp_path / "part-1.npy").rename(tmp_path / "rows")
    assert numbers(scan(tmp_path / "rows", format="npy")) == [1]


def test_columns_are_matched_by_name_and_chosen_in_the_order_that_is_asked_for(tmp_path):
    rows = np.arange(12.0).reshape(4, 3)
    parquet.write_table(table(rows, ["a", "b", "c"]), tmp_path / "0.parquet")
    parquet.write_table(table(rows[:, [2, 0, 1]], ["c", "a", "b"]), tmp_path / "1.parquet")
    found = scan(tmp_path)
    assert found.columns == ["a", "b", "c"]
    for batch in found.parts():
        np.testing.assert_array_equal(batch, rows)
    chosen = scan(tmp_path, columns=["c", "a"])
    assert chosen.columns == ["c", "a"]
    for batch in chosen.parts():
        np.testing.assert_array_equal(batch, rows[:, [2, 0]])
    assert scan(tmp_path, columns="[ab]").columns == ["a", "b"]


@pytest.mark.parametrize("extension", [".npy", ".h5ad", ".csv", ".zarr"])
def test_columns_can_be_chosen_in_files_of_every_kind(datasets, tmp_path, extension):
    kind = {".npy": "npy", ".h5ad": "h5ad sparse", ".csv": "csv", ".zarr": "zarr 3"}[extension]
    found = scan(
        write(datasets[:1], tmp_path, kind, n_files=1)[0],
        columns=["x4", "x1"] if kind in ("npy", "zarr 3") else NAMES[4:0:-3],
    )
    rows = np.concatenate([part.toarray() if sparse.issparse(part) else part for part in found.parts()])
    np.testing.assert_allclose(rows, datasets[0][:, [4, 1]])


def test_columns_that_are_no_data_may_be_left_out(tmp_path):
    parquet.write_table(pa.table({"name": ["a", "b"], "x": [1.0, 2.0], "y": [3, 4]}), tmp_path / "0.parquet")
    (tmp_path / "0.csv").write_text("name,x,y\na,1,3\nb,2,4\n")
    for kind in ("parquet", "csv"):
        (batch,) = scan(tmp_path / f"0.{kind}", columns=["x", "y"]).parts()
        np.testing.assert_array_equal(batch, [[1, 3], [2, 4]])
    (tmp_path / "index.csv").write_text(",x,y\na,1,3\nb,2,4\n")
    assert scan(tmp_path / "index.csv").columns == ["x", "y"]


def test_a_layer_can_be_chosen(rng, tmp_path):
    adata = annotated(rng.normal(size=(6, D)))
    adata.layers["counts"] = sparse.csr_matrix(np.eye(6, D))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    (batch,) = scan(tmp_path / "cells.h5ad", variable="counts").parts()
    np.testing.assert_array_equal(batch.toarray(), np.eye(6, D))
    with pytest.raises(ValueError, match="is not in") as caught:
        scan(tmp_path / "cells.h5ad", variable="count")
    assert caught.value.facts["known"] == "variables 'X', 'counts'"


def test_a_zarr_group_has_one_array_or_it_is_named(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    group = zarr.open_group(str(tmp_path / "some.zarr"), mode="w")
    group.create_array("first", shape=(3, 3), dtype=float)[:] = np.eye(3)
    np.testing.assert_array_equal(next(scan(tmp_path / "some.zarr").parts()), np.eye(3))
    group.create_array("second", shape=(3, 3), dtype=float)[:] = 2 * np.eye(3)
    with pytest.raises(ValueError, match=r"variables 'first', 'second'"):
        scan(tmp_path / "some.zarr")
    np.testing.assert_array_equal(next(scan(tmp_path / "some.zarr", variable="second").parts()), 2 * np.eye(3))


def test_an_error_while_the_next_batch_is_read_stops_the_thread(datasets, tmp_path):
    import threading

    rows = datasets[0].copy()
    rows[400, 1] = np.nan
    np.save(tmp_path / "a.npy", rows)
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="row 401"):
        list(scan(tmp_path, batch_rows=10).parts())
    parts = scan(tmp_path, batch_rows=10).parts()
    next(parts)
    parts.close()
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_a_bar_is_shown_if_it_is_asked_for(datasets, tmp_path, capsys, kind):
    found = scan(write(datasets[:1], tmp_path, kind)[0], progress=True, batch_rows=50)
    assert sum(part.shape[0] for part in found.parts()) == 530
    assert "reading the scan" in (shown := capsys.readouterr().err)
    assert "100%" in shown


@pytest.mark.parametrize("count", [20, 100, 530, 1000])
def test_a_sample_has_the_same_rows_wherever_they_come_from(datasets, tmp_path, count):
    rows = datasets[0]
    (folder,) = write(datasets[:1], tmp_path, "parquet", n_files=1)
    places = {
        "memory": open_dataset(rows, "the data"),
        "batches": open_dataset(iter(np.array_split(rows, 7)), "the data"),
        "scan": scan(folder, batch_rows=41),
        "csv": scan(write(datasets[:1], tmp_path, "csv", n_files=1)[0], batch_rows=97),
    }
    if find_spec("dask") is not None:
        import dask.array as da

        places["dask"] = open_dataset(da.from_array(rows, chunks=(60, 3)), "the data")
    samples, following = {}, {}
    for place, source in places.items():
        rng = np.random.default_rng(3)
        samples[place] = source.sample(count, rng)
        # What is drawn next is the same as well.
        following[place] = rng.random()
    for place, sample in samples.items():
        np.testing.assert_allclose(sample, samples["memory"], rtol=1e-12, err_msg=place)
        assert following[place] == following["memory"], place
    assert samples["memory"].shape == (min(count, 530), D)


MEMORY = """
import pathlib, re, sys
import standout
target, background = (standout.scan(f"{sys.argv[1]}/{name}.parquet") for name in ("target", "background"))
standout.DiscriminativePCA().fit(target, background=background)
# Not getrusage, whose peak starts with that of the program that has started this one.
print(re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
"""


def test_memory_does_not_depend_on_the_number_of_rows(tmp_path, rng):
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is measured on Linux")
    rows = table(rng.normal(size=(30_000, 100)), [str(number) for number in range(100)])
    peaks = []
    for times in (6, 15):
        folder = tmp_path / str(times)
        folder.mkdir()
        for name in ("target", "background"):
            with parquet.ParquetWriter(folder / f"{name}.parquet", rows.schema, use_dictionary=False) as out:
                for _ in range(times):
                    out.write_table(rows)
        done = subprocess.run([sys.executable, "-c", MEMORY, str(folder)], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    # Rows that are kept would be 432 MB more. How many batches (of 24 MB) are there at the worst moment is chance:
    # some 50 MB more were seen, in kilobytes here.
    assert peaks[1] < peaks[0] + 150_000


def test_scan_is_a_public_name():
    assert standout.scan is scan
