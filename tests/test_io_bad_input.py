"""Files that cannot be used: each is one clear error in one line, from the place where input is checked."""

import contextlib
import datetime
import gzip
import os
import zipfile
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
from scipy import sparse

from standout.io import Table, match_columns, read_table


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("a file ran code",))


def refused(error, message, read, *arguments, **options):
    """The error comes from where input is checked, says so in one line, and is not too long to be read."""
    with pytest.raises(error, match=message) as caught:
        read(*arguments, **options)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 900
    return said


def cut(path, share=0.5):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])


# Text files.

TEXTS = {
    "empty": (b"", "'a.csv' cannot be used: it is empty. Give"),
    "blank lines": (b"\n\n\n", "it has no line with the names of columns. Write"),
    "header only": (b"a,b\n", "it has columns but no rows. Give"),
    "header without end": (b"a,b", "it has columns but no rows. Give"),
    "short row": (b"a,b\n1,2\n\n3\n4,5\n", "line 4 has 1 cells, but there are 2 columns. Mend the line"),
    "long row": (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but there are 2 columns. Mend"),
    "cut off row": (b"a,b,c\n" + b"1,2,3\n" * 400_000 + b"1,2", "line 400002 has 2 cells, but there are 3 columns"),
    "text column": (
        b"a,b,c\n1,x,z\n2,y,w\n",
        "text in columns 'b', 'c' of 'a.csv', such as 'x'. Drop .*--drop",
    ),
    "a word among numbers": (b"a,b\n1,2\n3,high\n", "'high' in line 3, column 'b', is not a number. Mend the cell"),
    "a word late": (
        b"a,b\n" + b"1,2\n" * 400_000 + b"3,high\n",
        "'high' in line 400002, column 'b', is not a number. Mend the cell",
    ),
    "a word after a gap": (b"a,b\n" + b"1,\n" * 900_000 + b"3,high\n", "there is text in column 'b' of 'a.csv'"),
    "text in truth values": (b"a,b\n1,True\n2,False\n3,maybe\n", "'maybe' in line 4, column 'b', is not a number"),
    "decimal commas": (b"a;b\n1,5;2\n2,5;3\n", "such as '1,5' .decimal commas are not read: write decimal points."),
    "dates": (b"a,b\n1,2020-01-01\n", "there are dates or times in column 'b' of 'a.csv'. Drop"),
    "times": (b"a,b\n1,12:30:00\n", "there are dates or times in column 'b'"),
    "twice": (b"a,b,a,c,b\n1,2,3,4,5\n", "it has columns 'a', 'b' more than once, .* Rename the columns, or drop"),
    "no header": (b"1.5,2.5\n3.5,4.5\n", "its first line holds numbers, not names. Write"),
    "another delimiter": (
        b"a b c\n1 2 3\n",
        "in column 'a b c' .* .there is one column only: is the delimiter neither",
    ),
    "Latin letters": ("Größe,b\n1,2\n".encode("latin-1"), "it is not UTF-8 text: byte 0xf6 .* Save it as UTF-8"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "it is not UTF-8 text: byte 0xff .* Save it as UTF-8"),
    "not text": (bytes(range(256)) * 20, "it is not UTF-8 text"),
    "an unnamed column of data": (
        b",b\n1.5,2\n2.5,3\n",
        "its first column has no name, and holds numbers, such as '1.5'",
    ),
    "an unnamed column with repetitions": (b",b\n1,2\n1,3\n", "its first column .*, and some of them more than once"),
    "open quotes": (b'a,b\n1,"2\n' + b"3,4\n" * 50_000, "reading it as CSV stopped with"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_files_that_cannot_be_used(tmp_path, monkeypatch, case):
    content, message = TEXTS[case]
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(content)
    refused(ValueError, message, read_table, "a.csv")
    if content:
        Path("a.csv.gz").write_bytes(gzip.compress(content))
        refused(ValueError, message.replace("a.csv", "a.csv.gz"), read_table, "a.csv.gz")


def test_labels_in_latin_letters_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,g\n" + b"1,x\n" * 500_000 + b"1,\xe9\n")
    refused(ValueError, "it is not UTF-8 text: byte 0xe9", read_table, tmp_path / "a.csv", group_column="g")


def test_a_table_with_commas_is_not_one_with_tabs(tmp_path):
    (tmp_path / "a.tsv").write_text("a,b\n1,2\n")
    refused(
        ValueError, r"one column only, 'a,b', if a tab .* format='csv' .--format csv", read_table, tmp_path / "a.tsv"
    )


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9, 0.9999])
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path, rng, share):
    path = tmp_path / "a.csv.gz"
    pd.DataFrame(rng.normal(size=(2000, 5)), columns=list("abcde")).to_csv(path, index=False)
    cut(path, share)
    refused(ValueError, "a.csv.gz' cannot be used: reading it as CSV stopped with .* Write", read_table, path)


def test_hostile_names_are_shown_short_and_in_one_line(tmp_path):
    names = ["<script>alert(1)</script>", "two\nlines\r\u2028", "x" * 100_000, "ünï", "\x1b[31m"]
    pd.DataFrame([["word"] * 5], columns=names).to_csv(tmp_path / "a.csv", index=False)
    said = refused(ValueError, "there is text in columns '<script>", read_table, tmp_path / "a.csv")
    assert r"'two\nlines\r\u2028'" in said
    assert "xxx...'" in said
    assert r"'\x1b[31m'" in said
    (tmp_path / "b.csv").write_text("x\n1\n" + '"a very\nlong ' + "cell" * 1000 + '"\n')
    refused(ValueError, r"'a very\\nlong cell.*\.\.\.' in line 4, column 'x', is not", read_table, tmp_path / "b.csv")


# Names of files, formats and columns.


def test_files_that_are_not_there_or_cannot_be_opened(tmp_path, monkeypatch):
    refused(FileNotFoundError, "there is no file '.*a.csv'. Check", read_table, tmp_path / "a.csv")
    refused(FileNotFoundError, r"there is no file 'two\\nlines.csv'", read_table, "two\nlines.csv")
    refused(FileNotFoundError, "there is no file '[.]{3}a.*/b.csv'", read_table, "a" * 250 + "/b.csv")
    refused(IsADirectoryError, "is a folder, not a file. Give", read_table, tmp_path)
    refused(TypeError, "path=7' is not|path='7' is not the name of a file", read_table, 7)
    refused(TypeError, "path='' is not the name of a file", read_table, "")
    refused(ValueError, "cannot be the name of a file: .* Check", read_table, "a\0.csv")
    refused(OSError, "cannot be opened: File name too long. Check", read_table, "a" * 1000 + ".csv")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
        refused(OSError, "is no regular file but a device or a pipe. Save", read_table, tmp_path / "pipe.csv")
    (tmp_path / "a.csv").write_text("a\n1\n")

    opened = Path.open

    def closed(path, *arguments, **options):
        if path.name == "a.csv":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    # Permissions do not bind an administrator, who may be running this test.
    monkeypatch.setattr(Path, "open", closed)
    refused(PermissionError, "a.csv' cannot be opened: permission denied. Ask", read_table, tmp_path / "a.csv")


def test_formats_that_are_not_known(tmp_path):
    for name in ("data.xlsx", "data", "data.gz"):
        (tmp_path / name).write_text("a\n1\n")
        refused(ValueError, rf"{name}' has no extension that is known \(.csv, .*--format", read_table, tmp_path / name)
    refused(ValueError, "format='xlsx' is unknown. Use one of 'csv'", read_table, tmp_path / "data", format="xlsx")
    assert read_table(tmp_path / "data", format="csv").values.tolist() == [[1.0]]


COLUMNS = {
    "id": ({"id_column": "mous"}, "id_column='mous' is not in 'a.csv', which has columns .* Is 'mouse' meant?"),
    "label": ({"label_column": "zzz"}, "label_column='zzz' is not in 'a.csv', .* Choose among these"),
    "group": ({"group_column": 3}, "group_column='3' is not the name of a column"),
    "selected": ({"select": ["x", "v*"]}, "select names column 'v.', but no column of 'a.csv' is called so: it has"),
    "dropped": ({"drop": ["mouse", "X", "q"]}, "drop names columns 'X', 'q', but no column"),
    "label as data": (
        {"label_column": "x", "select": ["x", "y"], "id_column": "mouse"},
        "select names 'x', which is also the label_column, and labels never go into a fit. Leave",
    ),
    "nothing left": ({"drop": "*"}, "no column of 'a.csv' is left as data, but the least is 1. Drop fewer"),
    "no names": ({"drop": [1]}, "drop has '1', which is not the name of a column. Give"),
    "a label twice": ({"label_column": "z", "id_column": "mouse"}, "it has column 'z' more than once"),
    "a variable": ({"variable": "X"}, "variable='X' is given, but a csv file holds one table only. Leave"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_that_cannot_be_chosen(tmp_path, monkeypatch, case):
    options, message = COLUMNS[case]
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("mouse,x,y,z,z\na,1,2,3,4\n")
    refused((ValueError, TypeError), message, read_table, "a.csv", **options)


# Files by columns.


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_columns_that_are_no_numbers_are_named(tmp_path, name):
    def written(table):
        path = tmp_path / name
        (pyarrow.parquet.write_table if name.endswith("t") else pyarrow.feather.write_feather)(table, path)
        return path

    numbers = pa.array([1.0, 2.0])
    day = pa.array([datetime.date(2020, 1, 1)] * 2)
    cases = {
        "there are words in columns 'b', 'c' of .* Drop": {"a": numbers, "b": ["x", "y"], "c": pa.array([b"x", b"y"])},
        "there are words in column 'b'": {"b": pa.array(["x", "y"]).dictionary_encode()},
        "there are dates or times in column 'd'": {"a": numbers, "d": day},
        "there are things that are no numbers in column 'l'": {"a": numbers, "l": pa.array([[1], [2]])},
    }
    for message, columns in cases.items():
        refused(ValueError, message, read_table, written(pa.table(columns)))
    if name.endswith("t"):
        twice = pa.table([numbers, numbers], names=["a", "a"])
        refused(ValueError, "it has column 'a' more than once", read_table, written(twice))
    refused(ValueError, "it has columns but no rows", read_table, written(pa.table({"a": pa.array([], pa.float64())})))
    refused(ValueError, "no column of .* is left as data", read_table, written(pa.table({"a": ["x"]})), drop="a")


def save_cells(path, values):
    anndata.AnnData(values, obs=pd.DataFrame({"g": ["a", "b"] * (len(values) // 2)}).rename(str)).write_h5ad(path)


BINARY = {
    "a.parquet": lambda p, X: pd.DataFrame(X).rename(columns=str).to_parquet(p),
    "a.feather": lambda p, X: pd.DataFrame(X).rename(columns=str).to_feather(p),
    "a.npy": np.save,
    "a.npz": lambda p, X: np.savez(p, X=X),
    "packed.npz": lambda p, X: np.savez_compressed(p, X=X),
    "sparse.npz": lambda p, X: sparse.save_npz(p, sparse.csr_array(X)),
    "a.mat": lambda p, X: scipy.io.savemat(p, {"X": X}),
    "packed.mat": lambda p, X: scipy.io.savemat(p, {"X": X}, do_compression=True),
    "a.h5ad": save_cells,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_a_file_that_is_cut_off_is_refused(tmp_path, rng, name, share):
    path = tmp_path / name
    BINARY[name](path, rng.normal(size=(400, 6)))
    read_table(path)
    cut(path, share)
    said = refused(ValueError, f"{name}' cannot be used: reading it as .* stopped with .* Write", read_table, path)
    assert "allow_pickle" not in said


@pytest.mark.parametrize("name", BINARY)
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"a,b\n1,2\n" * 100)
    refused(ValueError, f"{name}' cannot be used: reading it as .* stopped with", read_table, tmp_path / name)


@pytest.mark.parametrize("name", BINARY)
def test_a_file_with_any_byte_changed_is_read_or_refused(tmp_path, rng, name):
    path = tmp_path / name
    BINARY[name](path, rng.normal(size=(20, 3)))
    whole = path.read_bytes()
    for place in rng.integers(0, len(whole), 150):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with contextlib.suppress(ValueError, OSError):
            read_table(path)


def test_pickled_objects_are_never_read(tmp_path):
    trap = np.array([[Trap()]], dtype=object)
    np.save(tmp_path / "a.npy", trap)
    np.savez(tmp_path / "a.npz", X=trap)
    np.savez(tmp_path / "b.npz", X=np.ones((1, 2)), label=trap[0])
    pickled = "it holds pickled Python objects, which can run code and are never read. Write"
    refused(ValueError, pickled, read_table, tmp_path / "a.npy")
    refused(ValueError, pickled, read_table, tmp_path / "a.npz", variable="X")
    refused(
        ValueError,
        "it should hold one two-dimensional array of numbers, but it holds none",
        read_table,
        tmp_path / "a.npz",
    )
    refused(ValueError, pickled, read_table, tmp_path / "b.npz", label_column="label")
    assert read_table(tmp_path / "b.npz").values.shape == (1, 2)


def test_arrays_that_are_no_tables_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    cases = {
        r"it holds an array of shape \(3,\), but rows and columns are needed": np.ones(3),
        r"it holds an array of shape \(3, 2, 2\), but rows": np.ones((3, 2, 2)),
        "it holds complex numbers, but real": np.ones((2, 2)) * 1j,
        "it holds values of type <U1, but real": np.array([["a", "b"]]),
        "it holds values of type datetime64": np.array([["2020"]], dtype="datetime64[D]"),
        "it has columns but no rows": np.ones((0, 3)),
        "no column of .* is left": np.ones((3, 0)),
    }
    for message, array in cases.items():
        np.save(path, array)
        refused(ValueError, message, read_table, path)


def test_files_with_several_arrays_ask_which_one_is_meant(tmp_path):
    arrays = {"train": np.ones((4, 2)), "test": np.zeros((3, 2)), "y": np.ones(4)}
    np.savez(tmp_path / "a.npz", **arrays)
    scipy.io.savemat(tmp_path / "a.mat", arrays)
    for name in ("a.npz", "a.mat"):
        path = tmp_path / name
        message = "it holds variables 'train', 'test'. Name the one that is meant with variable"
        refused(ValueError, message, read_table, path)
        refused(ValueError, "variable='X' is not in it; it has variables 'train'", read_table, path, variable="X")
        assert read_table(path, variable="test", drop="x0").values.tolist() == [[0], [0], [0]]
        refused(
            ValueError,
            "label_column='y' is not in|it has 3 rows, but 4 values in 'y'",
            read_table,
            path,
            variable="test",
            label_column="y",
        )
    scipy.io.savemat(tmp_path / "text.mat", {"s": "text"})
    refused(ValueError, "but it holds none .it has variable 's'.", read_table, tmp_path / "text.mat")
    with zipfile.ZipFile(tmp_path / "none.npz", "w") as archive:
        archive.writestr("hello.txt", "hello")
    refused(ValueError, "but it holds none. Name", read_table, tmp_path / "none.npz")


def test_sparse_matrices_that_point_outside_are_refused(tmp_path):
    X = sparse.random(5, 4, 0.5, format="csr", random_state=0)
    X.indices[0] = 1000
    sparse.save_npz(tmp_path / "a.npz", X)
    refused(ValueError, "reading it as npz stopped with", read_table, tmp_path / "a.npz")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        group = file.create_group("X")
        group.attrs["MATLAB_sparse"] = 5
        group["data"], group["ir"], group["jc"] = [1.0, 2.0], [0, 77], [0, 2]
    refused(ValueError, "reading it as mat stopped with", read_table, tmp_path / "a.mat")


def test_h5ad_files_with_something_missing(tmp_path, rng):
    path = tmp_path / "a.h5ad"
    save_cells(path, rng.normal(size=(4, 3)))
    refused(ValueError, "variable='counts' is not in it; it has variable 'X'", read_table, path, variable="counts")
    refused(
        ValueError, "group_column='h' is not in .*, which has columns '_index', 'g'", read_table, path, group_column="h"
    )
    with h5py.File(path, "a") as file:
        del file["var"]
    refused(ValueError, "it has no groups 'obs' and 'var', as AnnData .* newer version", read_table, path)
    save_cells(path, rng.normal(size=(4, 3)))
    with h5py.File(path, "a") as file:
        del file["X"]
        file["X"] = np.ones((4, 2))
    refused(ValueError, "it names 3 columns, but has 2. Write", read_table, path)
    with h5py.File(path, "a") as file:
        del file["X"]
        file["X"] = np.ones((5, 3))
    refused(ValueError, "it has 5 rows, but 4 values in 'obs_names'", read_table, path)
    with h5py.File(path, "a") as file:
        del file["X"]
    refused(ValueError, "variable='X' is not in it; it has no variables", read_table, path)


def test_twice_the_same_gene_is_refused_and_can_be_dropped(tmp_path):
    path = tmp_path / "a.h5ad"
    with pytest.warns(UserWarning, match="not unique"):
        anndata.AnnData(np.ones((2, 3)), var=pd.DataFrame(index=["a", "b", "a"])).write_h5ad(path)
    refused(ValueError, "it has column 'a' more than once", read_table, path)
    assert read_table(path, drop="a").columns == ["b"]


@pytest.mark.parametrize(("package", "extra", "name"), [("pyarrow", "files", "a.csv"), ("h5py", "h5ad", "a.h5ad")])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, package, extra, name):
    (tmp_path / name).write_text("a\n1\n")
    monkeypatch.setattr("standout._validation._extras.find_spec", lambda found: None if found == package else 1)
    refused(ImportError, rf"needs the package '{package}'. Install .*extra '{extra}'", read_table, tmp_path / name)


# Groups and columns of several files.


def cells(groups):
    return Table(np.ones((len(groups), 2)), ["a", "b"], groups=np.array(groups, dtype=object), source="cells.csv")


GROUPS = {
    "unknown target": ("x", None, "target has 'x', but 'cells.csv' has 3 group.s.: groups 'a', 'b', 'c'. Choose"),
    "unknown background": ("a", ["x"], "backgrounds has 'x', but 'cells.csv' has 3 group"),
    "twice": (["a", "a"], None, "target has the same group twice"),
    "none": ([], None, "target is empty. Give"),
    "no background named": ("a", [], "backgrounds is empty. Give"),
    "both": ("a", ["b", "a"], "group 'a' is both target and background. Choose"),
    "all": (["a", "b", "c"], None, "every row of 'cells.csv' belongs to the target groups 'a', 'b', 'c', and none"),
}


@pytest.mark.parametrize("case", GROUPS)
def test_groups_that_cannot_be_split(case):
    target, backgrounds, message = GROUPS[case]
    refused(ValueError, message, split_by_group, cells(["a", "b", "c", "a"]), target, backgrounds)


def test_many_groups_are_counted_and_rows_without_one_are_told():
    refused(
        ValueError,
        "has 40 group.s.: groups '0', '1', .* and 35 more",
        split_by_group,
        cells([str(i) for i in range(40)]),
        "x",
    )
    refused(
        ValueError, "2 row.s. of 'cells.csv' have no group, .* Fill", split_by_group, cells(["a", "", "b", ""]), "a"
    )
    assert len(split_by_group(cells(["a", "", "b", ""]), "a", ["b"])[1]) == 1
    without = Table(np.ones((2, 2)), ["a", "b"], source="cells.csv")
    refused(ValueError, "the rows of 'cells.csv' have no groups. Name the column", split_by_group, without, "a")


def test_columns_that_do_not_match_are_named():
    target = Table(np.ones((2, 3)), ["a", "b", "c"], source="t.csv")
    other = Table(np.ones((2, 3)), ["b", "c", "d"], source="b.csv")
    message = r"background 2 \('b.csv'\) lacks column 'a' of the target \('t.csv'\); .* has column 'd', which .* Give"
    refused(ValueError, message, match_columns, target, [target, other])
    narrow = Table(np.ones((2, 2)), ["x0", "x1"], source="b.npy", has_names=False)
    refused(ValueError, r"background 1 \('b.npy'\) has 2 columns, but the target", match_columns, target, [narrow])
