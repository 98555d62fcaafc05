"""Files that cannot be used are one clear error: damaged, forged, of the wrong kind, or not clear."""

from __future__ import annotations

import multiprocessing
import struct
import zipfile

import anndata
import h5py
import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
import scipy.io
import zarr
from scipy import sparse

from data_forms import COLUMNS, FILES, numbers, write
from standout._messages import FileError, InvalidTypeError, InvalidValueError, MissingFileError
from standout.io import read_table, scan

# --- text -------------------------------------------------------------------------------------------------------------

TEXTS = {
    "a slip": ("a,b\n1,2\n3,x\n", {}, "'x' in line 3, column 'b', is not a number"),
    "a late slip": ("a,b\n" + "1,2\n" * 300_000 + "3,x\n", {}, "'x' in line 300002, column 'b', is not a number"),
    "currency in a column": ("a,b\n1,2\n3,$1.50\n", {}, "without currency"),
    "decimal commas": ("a;b\n1,5;2\n3;4\n", {}, 'Say decimal="," if the commas are decimal signs'),
    "a late decimal comma": ("a;b\n" + "1;2\n" * 1200 + "3,5;4\n", {}, 'decimal comma, say so: decimal=","'),
    "thousands": ('a,b\n1,2\n3,"1,234,567"\n', {}, "signs between thousands"),
    "other digits": ("a,b\n1,2\n3,٣\n", {}, "digits 0 to 9"),
    "a line break in a number": ('a,b\n1,2\n3,"4\n"\n', {}, "is not a number"),
    "too many cells": ("a,b\n1,2\n3,4,5\n", {}, "line 3 has 3 cells, but there are 2 columns"),
    "too few cells": ("a,b\n1,2\n3\n", {}, "line 3 has 1 cells, but there are 2 columns"),
    "only words": ("a,b\nx,y\nz,w\n", {}, "no numbers in columns 'a', 'b'"),
    "only decimal commas": ("a;b\n1,5;2,5\n3,5;4,5\n", {}, 'Say decimal=","'),
    "no rows": ("a,b\n", {}, "it has columns but no rows"),
    "numbers in the first line": ("1,2,3\n4,5,6\n", {}, "may be names or data. Say which: `header`=True"),
    "decimals in the first line": ("1.5,2\n4,5\n", {}, "may be names or data"),
    "a name and numbers in the first line": ("s1,2,3\ns2,4,5\n", {}, "may be names or data"),
    "the same name twice": ("a,b,a\n1,2,3\n", {}, "it has column 'a' more than once"),
    "unnamed numbers": (",a\n0.5,1\n0.7,2\n", {}, "first column has no name and holds numbers such as '0.5'"),
    "commas in .tsv": ("a,b\n1,2\n", {"format": "tsv"}, "one column only"),
    "UTF-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), {}, "UTF-16"),
    "an infinite value": ("a,b\n1,2\n3,inf\n", {}, r"an infinite value \(inf\) in '.*': column 'b', row 2"),
    "a large whole number": (f"a,b\n1,{2**53 + 1}\n", {}, "9007199254740993 is beyond"),
    "no column left": ("a,b\n1,2\n", {"exclude": ["a", "b"]}, "no column is left"),
    "an unknown column": ("weight,b\n1,2\n", {"columns": "wieght"}, "columns='wieght' .* Is 'weight' meant"),
    "an unknown label": ("weight,b\n1,2\n", {"label": "c"}, "label='c' is not a column of .* names 'weight', 'b'"),
    "a delimiter that is the decimal sign": ("a,b\n1,2\n", {"decimal": ","}, "both the delimiter and the decimal sign"),
    "an unknown treatment": ("a,b\n1,2\n", {"missing": "guess"}, "missing='guess' is unknown"),
    "an unknown format": ("a,b\n1,2\n", {"format": "xls"}, "format='xls' is unknown"),
    "a variable": ("a,b\n1,2\n", {"variable": "x"}, "variable='x' is given"),
    "no values": ("a,b\n1,2\n", {"where": {"a": []}}, "names no value of column 'a'"),
    "two uses": ("a,b\n1,2\n", {"columns": ["a"], "label": "a"}, "another use"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_that_cannot_be_used_is_told_with_its_place_and_a_remedy(tmp_path, case):
    content, options, message = TEXTS[case]
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidValueError, match=message) as caught:
        read_table(path, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_header_can_be_said(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("1,2,3\n4,5,6\n")
    assert read_table(path, header=False).rows.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert read_table(path, header=False).columns is None
    assert read_table(path, header=True).columns == ("1", "2", "3")


def test_decimal_commas_can_be_said(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a;b\n1,5;-2,25\n1;3,5e2\n")
    assert read_table(path, decimal=",").rows.tolist() == [[1.5, -2.25], [1.0, 350.0]]


# --- paths ------------------------------------------------------------------------------------------------------------


def test_paths_that_stand_for_nothing(tmp_path):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "notes.doc").write_text("x")
    (tmp_path / "folder").mkdir()
    write(numbers("float"), tmp_path / "table.npy")
    cases = [
        ("missing.csv", MissingFileError, "cannot be opened: no such file"),
        ("*.parquet", MissingFileError, "no file matches"),
        ("folder", MissingFileError, "has no file with a known extension"),
        ("empty.csv", InvalidValueError, "it is empty"),
        ("notes.doc", InvalidValueError, "has not a known extension"),
        ("nul\0l.csv", FileError, "cannot be opened"),
        ("[et]*.*", InvalidValueError, "files of more than one kind: 'csv', 'npy'"),
    ]
    for name, kind, message in cases:
        with pytest.raises(kind, match=message):
            scan(f"{tmp_path}/{name}")
    with pytest.raises(InvalidValueError, match="more than once"):
        scan([tmp_path / "table.npy"] * 2)
    for paths in (3, [None], ""):
        with pytest.raises(InvalidTypeError, match="is not the name of a file"):
            scan(paths)
    with pytest.raises(InvalidValueError, match="empty list"):
        scan([])


def test_a_file_that_changes_after_it_was_opened_is_refused(tmp_path):
    path = write(numbers("float"), tmp_path / "table.csv")
    found = scan(path)
    write(numbers("float", 50), path)
    with pytest.raises(InvalidValueError, match="it has changed since it was opened"):
        found.loaded()


# --- files of numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["table.parquet", "table.feather", "plain.npy", "table.csv", "sparse.h5ad"])
def test_whole_numbers_that_would_be_rounded_are_refused_in_files(tmp_path, name):
    values = np.array([[1, 2, 3, 4], [5, 2**53 + 1, 7, 8]])
    with pytest.raises(InvalidValueError, match=r"beyond 2\*\*53"):
        read_table(write(values, tmp_path / name))


def test_files_with_several_arrays_ask_which_one_is_meant(tmp_path):
    cube, mask = np.ones((3, 4, 5)), np.ones((4, 5), dtype=bool)
    scipy.io.savemat(tmp_path / "cube.mat", {"cube": cube, "mask": mask})
    np.savez(tmp_path / "two.npz", a=np.ones((3, 2)), b=np.zeros((3, 2)))
    with pytest.raises(InvalidValueError, match=r"it holds arrays 'cube', 'mask'.*Name the one that is meant"):
        read_table(tmp_path / "cube.mat")
    assert read_table(tmp_path / "cube.mat", variable="mask").rows.shape == (4, 5)
    with pytest.raises(InvalidValueError, match=r"array of shape \(3, 4, 5\), but rows and columns"):
        read_table(tmp_path / "cube.mat", variable="cube")
    with pytest.raises(InvalidValueError, match="arrays 'a', 'b'"):
        read_table(tmp_path / "two.npz")
    with pytest.raises(InvalidValueError, match="variable='c' is not in"):
        read_table(tmp_path / "two.npz", variable="c")
    group = zarr.open_group(tmp_path / "two.zarr", mode="w")
    for array in "ab":
        group.create_array(array, data=np.ones((3, 2)))
    with pytest.raises(InvalidValueError, match="arrays 'a', 'b'"):
        read_table(tmp_path / "two.zarr")


def test_arrays_that_are_not_tables_of_numbers_are_refused(tmp_path):
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    np.save(tmp_path / "complex.npy", np.ones((2, 2)) * 1j)
    np.save(tmp_path / "empty.npy", np.ones((0, 2)))
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    for name, message in (("cube", "shape"), ("complex", "Complex"), ("empty", "0 rows"), ("objects", "never read")):
        with pytest.raises(InvalidValueError, match=message):
            read_table(tmp_path / f"{name}.npy")


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    header = np.lib.format.magic(1, 0) + struct.pack("<H", 118)
    header += b"{'descr': '<f8', 'fortran_order': False, 'shape': (70000, 4000), }".ljust(117) + b"\n"
    archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
    with archive, archive.open("a.npy", "w", force_zip64=True) as file:
        file.write(header)
        for _ in range(70):
            file.write(bytes(8 * 4000 * 1000))
    with pytest.raises(InvalidValueError, match="would unpack to 2,240,000,128 bytes, but the limit is"):
        read_table(path)


def test_sparse_files_whose_places_are_not_in_order_are_refused(tmp_path):
    values = sparse.random_array((20, 6), density=0.5, rng=np.random.default_rng(0), format="csr")
    for part, change in (
        ("indptr", lambda ends: ends[::-1].copy()),
        ("indptr", lambda ends: np.r_[0, 40, ends[2:]]),
        ("indptr", lambda ends: ends - 1),
        ("indptr", lambda ends: np.zeros_like(ends)),
        ("indices", lambda indices: indices + 100),
        ("indices", lambda indices: indices - 5),
    ):
        path = tmp_path / "bad.h5ad"
        anndata.AnnData(sparse.csr_matrix(values)).write_h5ad(path)
        with h5py.File(path, "r+") as file:
            file[f"X/{part}"][:] = change(file[f"X/{part}"][:])
        with pytest.raises(InvalidValueError, match=r"cannot be used"):
            read_table(path)


# --- damage -----------------------------------------------------------------------------------------------------------

DAMAGED = [name for name in FILES if not name.endswith(".zarr")]


def _read_all(path, report):
    """Read files in a separate process, which damaged files must not crash."""
    for place, content in report.recv():
        path.write_bytes(content)
        try:
            rows = read_table(path).rows
            report.send((place, "read", rows.shape))
        except InvalidValueError as error:
            report.send((place, "refused", str(error)))
        except BaseException as error:
            report.send((place, "raw", repr(error)))
    report.send(None)


@pytest.mark.parametrize("name", DAMAGED)
def test_files_with_bytes_changed_or_cut_off_are_read_or_refused_and_end_no_process(tmp_path, name):
    content = write(numbers("float"), tmp_path / name).read_bytes()
    rng = np.random.default_rng(len(name))
    cases = []
    for place in rng.choice(len(content), size=min(40, len(content)), replace=False).tolist():
        changed = bytearray(content)
        changed[place] ^= int(rng.integers(1, 256))
        cases.append((place, bytes(changed)))
    cases += [(-cut, content[: len(content) * cut // 4]) for cut in (1, 2, 3)]
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=_read_all, args=(tmp_path / name, theirs))
    process.start()
    theirs.close()
    ours.send(cases)
    done = 0
    try:
        while (found := ours.recv()) is not None:
            assert found[1] != "raw", found
            done += 1
    except EOFError:
        pytest.fail(f"the process ended at byte {cases[done][0]}")
    finally:
        process.join(timeout=20)
    assert done == len(cases)


def test_a_matlab_variable_that_claims_to_be_complex_ends_no_process(tmp_path):
    path = tmp_path / "forged.mat"
    scipy.io.savemat(path, {"matrix": numbers("float"), "other": np.ones(3)})
    content = bytearray(path.read_bytes())
    content[128 + 8 + 8 + 1] |= 0x08
    path.write_bytes(content)
    with pytest.raises(InvalidValueError, match="lacks a part"):
        read_table(path)


def test_a_forged_offset_of_an_arrow_file_reads_no_memory(tmp_path):
    path = tmp_path / "forged.arrow"
    table = pyarrow.table({"id": [f"word{n}" for n in range(50)], "a": np.arange(50.0), "b": np.arange(50.0)})
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = bytearray(path.read_bytes())
    ends = np.cumsum([0, *(len(f"word{n}") for n in range(50))]).astype(np.int32).tobytes()
    start = content.index(ends)
    content[start + 4 * 25 : start + 4 * 26] = struct.pack("<i", 3000)
    path.write_bytes(content)
    with pytest.raises(InvalidValueError, match="cannot be used"):
        read_table(path, id_column="id")


@pytest.mark.parametrize("name", ["dense.zarr", "sparse.zarr"])
@pytest.mark.parametrize("left", [0.0, 0.5, 0.9])
def test_a_store_with_a_chunk_that_was_cut_is_refused(tmp_path, name, left):
    path = write(numbers("float"), tmp_path / name)
    chunk = max(
        (file for file in path.rglob("*") if file.is_file() and "z" not in file.name), key=lambda f: f.stat().st_size
    )
    chunk.write_bytes(chunk.read_bytes()[: int(left * chunk.stat().st_size)])
    with pytest.raises(InvalidValueError, match="has been cut|decompression"):
        read_table(path)


def test_hostile_names_are_shown_short_and_in_one_line(tmp_path):
    path = tmp_path / "table.csv"
    name = "x" * 5000
    pandas.DataFrame({name: ["a", "b"], "{0.__class__}": ["c", "d"]}).to_csv(path, index=False)
    with pytest.raises(InvalidValueError) as caught:
        scan(path)
    assert len(str(caught.value)) < 700
    assert "{0.__class__}" in str(caught.value)


def test_a_row_of_names_that_does_not_fit_the_matrix_is_refused(tmp_path):
    path = write(numbers("float"), tmp_path / "dense.h5ad")
    with h5py.File(path, "r+") as file:
        del file["X"]
        file["X"] = np.ones((37, 5))
    with pytest.raises(InvalidValueError, match="it names 4 columns, but has 5"):
        scan(path)
    assert COLUMNS[0] == "weight"
