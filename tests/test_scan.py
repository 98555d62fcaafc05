"""Scans: files of every kind give the fit that the same rows give in memory, and nothing wrong in them goes by."""

import gzip
import pickle
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from scipy import sparse
from sklearn.base import clone

import standout
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA, scan
from standout.io import Scan

D = 7
NAMES = [f"column {number}" for number in range(D)]

# Sums in another order differ by rounding: 1e-10 is what the issue allows, and some hundred times what is seen.
TOLERANCE = 1e-10


@pytest.fixture
def datasets(rng):
    mixture = rng.normal(size=(3, D))
    shared = [rng.normal(size=(n, 3)) @ mixture * 3 + rng.normal(size=(n, D)) + 2.0 for n in (530, 410, 290)]
    shared[0][:, 2] += np.repeat([-4.0, 4.0], 265)
    return shared


def table(rows, names=NAMES):
    return pa.table(list(np.asarray(rows).T), names=names)


def write_parquet(rows, path):
    parquet.write_table(table(rows), path, row_group_size=37)


def write_arrow(rows, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table(rows).schema) as writer:
        for batch in table(rows).to_batches(max_chunksize=23):
            writer.write_batch(batch)


def write_arrow_stream(rows, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table(rows).schema) as writer:
        for batch in table(rows).to_batches(max_chunksize=23):
            writer.write_batch(batch)


def write_gzipped_csv(rows, path):
    with gzip.open(path, "wb") as file:
        csv.write_csv(table(rows), file)


def write_tsv(rows, path):
    csv.write_csv(table(rows), path, csv.WriteOptions(delimiter="\t"))


def write_zarr(rows, path, version=3, **how):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    array = zarr.create_array(str(path), shape=rows.shape, chunks=(50, 3), dtype=rows.dtype, zarr_format=version, **how)
    array[:] = rows


def write_zarr_by_blosc(rows, path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    write_zarr(rows, path, compressors=zarr.codecs.BloscCodec())


def annotated(rows):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    found = anndata.AnnData(rows)
    found.var_names = NAMES
    return found


def write_h5ad(rows, path):
    annotated(rows).write_h5ad(path)


def write_sparse_h5ad(rows, path):
    annotated(sparse.csr_matrix(rows)).write_h5ad(path)


def write_zarr_annotated(rows, path):
    pytest.importorskip("zarr", reason="zarr is not installed")
    with warnings.catch_warnings():
        # anndata says that it will write another version of the format one day.
        warnings.simplefilter("ignore")
        annotated(sparse.csr_matrix(rows)).write_zarr(path)


KINDS = {
    "parquet": (".parquet", write_parquet),
    "arrow": (".arrow", write_arrow),
    "arrow stream": (".arrow", write_arrow_stream),
    "feather": (".feather", lambda rows, path: feather.write_feather(table(rows), path, chunksize=31)),
    "csv": (".csv", lambda rows, path: csv.write_csv(table(rows), path)),
    "csv gzipped": (".csv.gz", write_gzipped_csv),
    "tsv": (".tsv", write_tsv),
    "npy": (".npy", lambda rows, path: np.save(path, rows)),
    "npy in Fortran order": (".npy", lambda rows, path: np.save(path, np.asfortranarray(rows))),
    "zarr 3": (".zarr", write_zarr),
    "zarr 2": (".zarr", lambda rows, path: write_zarr(rows, path, version=2)),
    "zarr by Blosc": (".zarr", write_zarr_by_blosc),
    "zarr of anndata": (".zarr", write_zarr_annotated),
    "h5ad": (".h5ad", write_h5ad),
    "h5ad sparse": (".h5ad", write_sparse_h5ad),
}
WITHOUT_NAMES = ("npy", "npy in Fortran order", "zarr 2", "zarr 3", "zarr by Blosc")


def write(datasets, folder, kind, n_files=3, seed=0):
    """Write each dataset as several files, whose order is not that of the rows."""
    extension, write_one = KINDS[kind]
    rng = np.random.default_rng(seed)
    places = []
    for number, rows in enumerate(datasets):
        place = folder / f"{kind}-{number}".replace(" ", "-")
        place.mkdir()
        for name, part in zip(rng.permutation(n_files), np.array_split(rows, n_files), strict=True):
            write_one(part, place / f"part-{name}{extension}")
        places.append(place)
    return places


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
    # Three files of 177, 177 and 176 rows.
    assert [part.shape[0] for part in first].count(50) == 9
    for one, other in zip(first, second, strict=True):
        assert (one != other).sum() == 0
    assert all(sparse.issparse(part) for part in first) == (kind in ("h5ad sparse", "zarr of anndata"))


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
    with pytest.raises(ValueError, match=r"variable='count' is not in it; it has variables 'X', 'counts'"):
        scan(tmp_path / "cells.h5ad", variable="count")
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(ValueError, match="a npy file holds one table only"):
        scan(tmp_path / "a.npy", variable="X")


def test_a_zarr_group_has_one_array_or_it_is_named(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    group = zarr.open_group(str(tmp_path / "some.zarr"), mode="w")
    group.create_array("first", data=np.eye(3))
    np.testing.assert_array_equal(next(scan(tmp_path / "some.zarr").parts()), np.eye(3))
    group.create_array("second", data=2 * np.eye(3))
    with pytest.raises(ValueError, match=r"variables 'first', 'second'"):
        scan(tmp_path / "some.zarr")
    np.testing.assert_array_equal(next(scan(tmp_path / "some.zarr", variable="second").parts()), 2 * np.eye(3))


class TestBadInput:
    def test_paths_that_stand_for_nothing(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no file matches .*Check the folder"):
            scan(f"{tmp_path}/*.parquet")
        with pytest.raises(FileNotFoundError, match="has no file with an extension that is known"):
            scan(tmp_path)
        with pytest.raises(FileNotFoundError, match="there is no file"):
            scan(tmp_path / "absent.parquet")
        with pytest.raises(ValueError, match="empty list"):
            scan([])
        with pytest.raises(TypeError, match="paths has 3, which is not the name of a file"):
            scan(3)
        (tmp_path / "a.xyz").write_text("1")
        with pytest.raises(ValueError, match="no extension that is known"):
            scan(tmp_path / "a.xyz")

    def test_files_of_several_kinds_and_those_that_cannot_be_scanned(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        (tmp_path / "b.csv").write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match="more than one kind"):
            scan(tmp_path)
        np.savez(tmp_path / "c.npz", a=np.eye(3))
        with pytest.raises(ValueError, match="'npz', which cannot be read in parts"):
            scan(tmp_path / "c.npz")
        with pytest.raises(ValueError, match="format='mat' is unknown"):
            scan(tmp_path / "a.npy", format="mat")

    def test_a_file_twice(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        with pytest.raises(ValueError, match="more than once, and would be counted so"):
            scan([tmp_path / "a.npy", f"{tmp_path}/*.npy"])

    @pytest.mark.parametrize("batch_rows", [0, -1, 1.5, True, "many"])
    def test_batches_without_rows(self, tmp_path, batch_rows):
        np.save(tmp_path / "a.npy", np.eye(3))
        with pytest.raises((ValueError, TypeError), match="batch_rows=.* (is less than 1|is not a whole number). Give"):
            scan(tmp_path, batch_rows=batch_rows)

    def test_other_columns_are_named(self, tmp_path):
        parquet.write_table(table(np.eye(3), ["a", "b", "c"]), tmp_path / "0.parquet")
        parquet.write_table(table(np.eye(3), ["a", "b", "d"]), tmp_path / "1.parquet")
        with pytest.raises(
            ValueError, match=r"1.parquet' lacks column 'c' of the first file, .*0.parquet' and has column 'd'"
        ):
            scan(tmp_path)
        assert scan(tmp_path, columns=["a", "b"]).width == 2
        with pytest.raises(ValueError, match="columns names column 'e', but no column"):
            scan(tmp_path, columns=["a", "e"])

    def test_another_width(self, tmp_path):
        np.save(tmp_path / "0.npy", np.eye(3))
        np.save(tmp_path / "1.npy", np.eye(4))
        with pytest.raises(ValueError, match=r"1.npy' has 4 columns, but the first file, .*0.npy', has 3"):
            scan(tmp_path)

    def test_columns_of_target_and_background_in_another_order(self, tmp_path):
        parquet.write_table(table(np.eye(3), ["a", "b", "c"]), tmp_path / "0.parquet")
        parquet.write_table(table(np.eye(3), ["c", "b", "a"]), tmp_path / "1.parquet")
        target, background = (scan(tmp_path / f"{number}.parquet") for number in (0, 1))
        with pytest.raises(ValueError, match="background 1 has the columns of the target in another order"):
            DiscriminativePCA(1).fit(target, background=background)
        DiscriminativePCA(1).fit(target, background=scan(tmp_path / "1.parquet", columns=["a", "b", "c"]))

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_text(self, tmp_path, kind):
        words = pa.table({"a": ["x", "y"], "b": [1.0, 2.0]})
        (parquet.write_table if kind == "parquet" else csv.write_csv)(words, tmp_path / f"0.{kind}")
        with pytest.raises(ValueError, match="there (are words|is text) in column 'a'"):
            scan(tmp_path)

    @pytest.mark.parametrize("kind", ["parquet", "csv", "npy", "h5ad sparse", "zarr 3"])
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_missing_and_infinite_values_are_told_with_their_place(self, datasets, tmp_path, kind, value):
        rows = datasets[0].copy()
        rows[123, 4] = value
        folder = write([rows], tmp_path, kind, n_files=1)[0]
        column = "x4" if kind in ("npy", "zarr 3") else "column 4"
        with pytest.raises(ValueError, match=rf"part-0.*\(the target\): (nan|inf) in column '{column}', row 124\."):
            DiscriminativePCA().fit(scan(folder, batch_rows=50), background=datasets[1])

    def test_too_few_rows(self, tmp_path):
        np.save(tmp_path / "a.npy", np.ones((1, 3)))
        (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n")
        for name in ("a.npy", "a.csv"):
            with pytest.raises(ValueError, match=r"too few rows in the target: 1 sample\(s\) in 1 file\(s\)"):
                DiscriminativePCA(1).fit(scan(tmp_path / name), background=np.eye(3))

    def test_empty_files_between_others(self, tmp_path):
        rows = np.random.default_rng(0).normal(size=(20, 3))
        parquet.write_table(table(rows, list("abc")), tmp_path / "0.parquet")
        parquet.write_table(table(rows[:0], list("abc")), tmp_path / "1.parquet")
        parquet.write_table(table(rows, list("abc")), tmp_path / "2.parquet")
        assert [part.shape[0] for part in scan(tmp_path).parts()] == [20, 20]
        with pytest.raises(ValueError, match="too few rows in the target: 0"):
            DiscriminativePCA(1).fit(scan(tmp_path / "1.parquet"), background=rows)
        (tmp_path / "3.parquet").write_bytes(b"")
        with pytest.raises(ValueError, match="it is empty"):
            scan(tmp_path)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_file_that_ends_in_the_middle(self, datasets, tmp_path, kind):
        folder = write(datasets[:1], tmp_path, kind, n_files=1)[0]
        # A Zarr store is a folder: the largest file in it is a chunk.
        whole = max((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
        content = whole.read_bytes()
        whole.write_bytes(content[: len(content) * 2 // 3])
        if kind in ("csv", "tsv"):
            # Rows that are missing at the end leave no trace; a row that is cut does.
            whole.write_bytes(content[: content.rindex(b"," if kind == "csv" else b"\t")])
        with pytest.raises(ValueError, match=r"part-0.* cannot be used"):
            DiscriminativePCA(1).fit(scan(folder), background=datasets[1])

    @pytest.mark.parametrize("array", ["X/data", "X/indices", "X/indptr", "var/_index"])
    @pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
    def test_a_chunk_that_ends_too_early(self, datasets, tmp_path, array, share):
        # The decoder of Blosc does not look where a chunk ends: cut chunks gave wrong rows, or by chance right ones.
        folder = write(datasets[:1], tmp_path, "zarr of anndata", n_files=1)[0]
        (chunk,) = (file for file in (folder / "part-0.zarr" / array).rglob("*") if file.name.isdigit())
        content = chunk.read_bytes()
        left = int(share * len(content))
        chunk.write_bytes(content[:left])
        with pytest.raises(ValueError, match=rf"'{array}/.*' ends after {left:,} of "):
            DiscriminativePCA(1).fit(scan(folder), background=datasets[1])

    def test_a_page_that_is_damaged(self, datasets, tmp_path):
        parquet.write_table(table(datasets[0]), tmp_path / "0.parquet", use_dictionary=False, compression="gzip")
        content = bytearray((tmp_path / "0.parquet").read_bytes())
        content[2000:3000] = bytes(1000)
        (tmp_path / "0.parquet").write_bytes(content)
        found = scan(tmp_path)
        with pytest.raises(ValueError, match=r"0.parquet' cannot be used: reading it as Parquet stopped"):
            found.count_rows() and DiscriminativePCA(1).fit(found, background=datasets[1])

    def test_a_file_that_changes_or_goes_after_it_was_looked_at(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        found = scan(tmp_path)
        np.save(tmp_path / "a.npy", np.eye(4))
        with pytest.raises(ValueError, match="has changed since scan looked at it. Call scan again"):
            list(found.parts())
        (tmp_path / "a.npy").unlink()
        with pytest.raises(ValueError, match="has changed since scan looked at it"):
            list(found.parts())

    def test_what_needs_all_rows_at_once(self, tmp_path):
        rows = np.random.default_rng(0).normal(size=(50, 3))
        np.save(tmp_path / "a.npy", rows)
        found = scan(tmp_path)
        model = DiscriminativePCA(1).fit(found, background=rows)
        assert model.score(found, background=found) == pytest.approx(model.score(rows, background=rows))
        with pytest.raises(TypeError, match="tells rows apart by their labels, but the data is read in parts"):
            DiscriminativePCA(1, target_label=1).fit(found, np.ones(50))
        with pytest.raises(TypeError, match="the target is given as Scan, but test='permutation' needs its rows"):
            DiscriminativePCA(1, test="permutation").fit(found, background=rows)

    def test_a_matrix_by_columns(self, tmp_path, rng):
        annotated(sparse.csc_matrix(rng.normal(size=(20, D)))).write_h5ad(tmp_path / "a.h5ad")
        with pytest.raises(ValueError, match=r"stored by columns \(CSC\)"):
            scan(tmp_path)

    def test_an_extra_that_is_missing_is_one_sentence(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        script = f"""
            import importlib.util, sys
            found = importlib.util.find_spec
            importlib.util.find_spec = lambda name, *rest: None if name in ("rich", "zarr") else found(name, *rest)
            import standout._validation._extras as extras
            extras.find_spec = importlib.util.find_spec
            import standout
            try:
                list(standout.scan({str(tmp_path / "a.npy")!r}, progress=True).parts())
            except ImportError as error:
                print(error)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == (
            "a progress bar needs the package 'rich'. Install it with: pip install rich, or with all others of "
            "standout's extra 'progress'."
        )


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
    for times in (6, 24):
        folder = tmp_path / str(times)
        folder.mkdir()
        for name in ("target", "background"):
            with parquet.ParquetWriter(folder / f"{name}.parquet", rows.schema, use_dictionary=False) as out:
                for _ in range(times):
                    out.write_table(rows)
        done = subprocess.run([sys.executable, "-c", MEMORY, str(folder)], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    # Rows that are kept would be 864 MB more. How many batches (of 24 MB) are there at the worst moment is chance:
    # some 50 MB more were seen, in kilobytes here.
    assert peaks[1] < peaks[0] + 150_000


def test_scan_is_a_public_name():
    assert standout.scan is scan
