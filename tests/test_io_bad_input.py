"""Files that cannot be used: each is one clear error in one line, which says where the fault is."""

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


def refused(error, read, *arguments, facts=None, **options):
    """The error says in one line, not too long to be read, what is wrong and what to do; give it."""
    with pytest.raises(error) as caught:
        read(*arguments, **options)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 900
    assert caught.value.advice
    assert (facts or {}).items() <= caught.value.facts.items()
    return caught.value


def cut(path, share=0.5):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])


# Text files.

TEXTS = {
    "empty": (b"", "is empty", {}),
    "blank lines": (b"\n\n\n", "no line with the names", {}),
    "header only": (b"a,b\n", "no rows", {}),
    "header without end": (b"a,b", "no rows", {}),
    "short row": (b"a,b\n1,2\n\n3\n4,5\n", "cells", {"line": 4, "n_cells": 1}),
    "long row": (b"a,b\n1,2\n3,4,5\n", "cells", {"line": 3, "n_cells": 3}),
    "cut off row": (b"a,b,c\n" + b"1,2,3\n" * 400_000 + b"1,2", "cells", {"line": 400_002, "n_cells": 2}),
    "text columns": (b"a,b,c\n1,x,z\n2,y,w\n", "text", {"columns": "columns 'b', 'c'", "example": "'x'"}),
    "a word among numbers": (b"a,b\n1,2\n3,high\n", "not a number", {"cell": "'high'", "line": 3, "column": "'b'"}),
    "a word late": (
        b"a,b\n" + b"1,2\n" * 400_000 + b"3,high\n",
        "not a number",
        {"cell": "'high'", "line": 400_002, "column": "'b'"},
    ),
    "a word after a gap": (b"a,b\n" + b"1,\n" * 900_000 + b"3,high\n", "text", {"columns": "column 'b'"}),
    "text in truth values": (b"a,b\n1,True\n2,False\n3,maybe\n", "not a number", {"cell": "'maybe'", "line": 4}),
    "decimal commas": (b"a;b\n1,5;2\n2,5;3\n", "decimal points", {"columns": "column 'a'"}),
    "dates": (b"a,b\n1,2020-01-01\n", "dates or times", {"columns": "column 'b'"}),
    "times": (b"a,b\n1,12:30:00\n", "dates or times", {"columns": "column 'b'"}),
    "names twice": (b"a,b,a,c,b\n1,2,3,4,5\n", "more than once", {"columns": "columns 'a', 'b'"}),
    "no header": (b"1.5,2.5\n3.5,4.5\n", "holds numbers, not names", {}),
    "another delimiter": (b"a b c\n1 2 3\n", "delimiter", {"columns": "column 'a b c'"}),
    "Latin letters": ("Größe,b\n1,2\n".encode("latin-1"), "not UTF-8", {"byte": "0xf6"}),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "not UTF-8", {"byte": "0xff"}),
    "not text": (bytes(range(256)) * 20, "not UTF-8", {}),
    "an unnamed column of data": (b",b\n1.5,2\n2.5,3\n", "no name", {"what": "such as '1.5'"}),
    "an unnamed column with repetitions": (b",b\n1,2\n1,3\n", "no name", {}),
    "open quotes": (b'a,b\n1,"2\n' + b"3,4\n" * 50_000, "stopped with", {"kind": "CSV"}),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_files_that_cannot_be_used(tmp_path, monkeypatch, case):
    content, problem, facts = TEXTS[case]
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(content)
    Path("a.csv.gz").write_bytes(gzip.compress(content))
    for name in ("a.csv", "a.csv.gz") if content else ("a.csv",):
        error = refused(ValueError, read_table, name, facts={"source": repr(name), **facts})
        assert problem in str(error)


def test_an_unnamed_column_can_be_taken_as_ids_all_the_same_or_left_out(tmp_path):
    (tmp_path / "a.csv").write_bytes(TEXTS["an unnamed column with repetitions"][0])
    assert read_table(tmp_path / "a.csv", id_column="").ids.tolist() == ["1", "1"]
    assert read_table(tmp_path / "a.csv", drop="").ids is None


def test_labels_in_latin_letters_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,g\n" + b"1,x\n" * 500_000 + b"1,\xe9\n")
    refused(ValueError, read_table, tmp_path / "a.csv", group_column="g", facts={"byte": "0xe9"})


def test_a_table_with_commas_is_not_one_with_tabs(tmp_path):
    (tmp_path / "a.tsv").write_text("a,b\n1,2\n")
    assert "format='csv'" in str(refused(ValueError, read_table, tmp_path / "a.tsv", facts={"line": "'a,b'"}))


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9, 0.9999])
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path, rng, share):
    path = tmp_path / "a.csv.gz"
    pd.DataFrame(rng.normal(size=(2000, 5)), columns=list("abcde")).to_csv(path, index=False)
    cut(path, share)
    refused(ValueError, read_table, path, facts={"kind": "CSV"})


def test_hostile_names_are_shown_short_and_in_one_line(tmp_path):
    names = ["<script>alert(1)</script>", "two\nlines\r\u2028", "x" * 100_000, "ünï", "\x1b[31m"]
    pd.DataFrame([["word"] * 5], columns=names).to_csv(tmp_path / "a.csv", index=False)
    said = str(refused(ValueError, read_table, tmp_path / "a.csv"))
    for shown in ("'<script>", r"'two\nlines\r\u2028'", "xxx...'", r"'\x1b[31m'"):
        assert shown in said
    (tmp_path / "b.csv").write_text("x\n1\n" + '"a very\nlong ' + "cell" * 1000 + '"\n')
    assert r"'a very\nlong cell" in str(refused(ValueError, read_table, tmp_path / "b.csv", facts={"line": 4}))


# Names of files, formats and columns.


def test_files_that_are_not_there_or_cannot_be_opened(tmp_path, monkeypatch):
    refused(FileNotFoundError, read_table, tmp_path / "a.csv", facts={"file": repr(str(tmp_path / "a.csv"))})
    refused(FileNotFoundError, read_table, "two\nlines.csv")
    assert refused(FileNotFoundError, read_table, "a" * 250 + "/b.csv").facts["file"].endswith("/b.csv'")
    refused(FileNotFoundError, read_table, tmp_path)
    (tmp_path / "folder.csv").mkdir()
    refused(FileNotFoundError, read_table, tmp_path / "folder.csv")
    for wrong in (7, "", [None]):
        refused(TypeError, read_table, wrong)
    refused(ValueError, read_table, "a\0.csv")
    refused(OSError, read_table, "a" * 1000 + ".csv", facts={"reason": "file name too long"})
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
        assert "device or a pipe" in str(refused(OSError, read_table, tmp_path / "pipe.csv"))
    (tmp_path / "a.csv").write_text("a\n1\n")

    opened = Path.open

    def closed(path, *arguments, **options):
        if path.name == "a.csv":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    # Permissions do not bind an administrator, who may be running this test.
    monkeypatch.setattr(Path, "open", closed)
    refused(OSError, read_table, tmp_path / "a.csv", facts={"reason": "permission denied"})


def test_formats_that_are_not_known(tmp_path):
    for name in ("data.xlsx", "data", "data.gz"):
        (tmp_path / name).write_text("a\n1\n")
        refused(ValueError, read_table, tmp_path / name, facts={"file": repr(str(tmp_path / name))})
    error = refused(ValueError, read_table, tmp_path / "data", format="xlsx")
    assert (error.parameter, error.value) == ("format", "xlsx")
    assert read_table(tmp_path / "data", format="csv").values.tolist() == [[1.0]]


COLUMNS = {
    "id": ({"id_column": "mous"}, "id_column", "mous"),
    "label": ({"label_column": "zzz"}, "label_column", "zzz"),
    "group": ({"group_column": 3}, "group_column", 3),
    "where": ({"where": {"q": 1}}, "where", "q"),
    "where of another type": ({"where": ["x"]}, "where", ["x"]),
    "where without a value": ({"where": {"x": []}}, "where", None),
    "chosen": ({"columns": ["x", "v*"]}, "columns", None),
    "dropped": ({"drop": ["mouse", "X", "q"]}, "drop", None),
    "label as data": ({"label_column": "x", "columns": ["x", "y"], "id_column": "mouse"}, "columns", None),
    "where as data": ({"where": {"x": 1}, "columns": ["x", "y"]}, "columns", None),
    "nothing left": ({"drop": "*"}, None, None),
    "no names": ({"drop": [1]}, "drop", 1),
    "a label twice": ({"label_column": "z", "id_column": "mouse"}, None, None),
    "a variable": ({"variable": "X"}, "variable", "X"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_that_cannot_be_chosen(tmp_path, monkeypatch, case):
    options, parameter, value = COLUMNS[case]
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("mouse,x,y,z,z\na,1,2,3,4\n")
    error = refused((ValueError, TypeError), read_table, "a.csv", **options)
    assert (error.parameter, error.value) == (parameter, value)


def test_a_name_that_is_nearly_right_is_told(tmp_path):
    (tmp_path / "a.csv").write_text("mouse,x\na,1\n")
    refused(ValueError, read_table, tmp_path / "a.csv", id_column="mous", facts={"close": "'mouse'"})


# Files by columns.


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_columns_that_are_no_numbers_are_named(tmp_path, name):
    def written(table):
        path = tmp_path / name
        (pyarrow.parquet.write_table if name.endswith("t") else pyarrow.feather.write_feather)(table, path)
        return path

    numbers = pa.array([1.0, 2.0])
    day = pa.array([datetime.date(2020, 1, 1)] * 2)
    cases = [
        ({"a": numbers, "b": ["x", "y"], "c": pa.array([b"x", b"y"])}, "words", "columns 'b', 'c'"),
        ({"b": pa.array(["x", "y"]).dictionary_encode()}, "words", "column 'b'"),
        ({"a": numbers, "d": day}, "dates or times", "column 'd'"),
        ({"a": numbers, "l": pa.array([[1], [2]])}, "things that are no numbers", "column 'l'"),
    ]
    for columns, kind, named in cases:
        refused(ValueError, read_table, written(pa.table(columns)), facts={"kind": kind, "columns": named})
    if name.endswith("t"):
        twice = pa.table([numbers, numbers], names=["a", "a"])
        refused(ValueError, read_table, written(twice), facts={"columns": "column 'a'"})
    refused(ValueError, read_table, written(pa.table({"a": pa.array([], pa.float64())})))
    refused(ValueError, read_table, written(pa.table({"a": ["x"]})), drop="a")


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
    said = str(refused(ValueError, read_table, path, facts={"source": repr(str(path))}))
    assert "Write the file again" in said
    assert "allow_pickle" not in said


@pytest.mark.parametrize("name", BINARY)
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"a,b\n1,2\n" * 100)
    assert "stopped with" in str(refused(ValueError, read_table, tmp_path / name))


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
    refused(ValueError, read_table, tmp_path / "a.npy", facts={"what": "values of type object"})
    refused(ValueError, read_table, tmp_path / "a.npz", variable="X", facts={"what": "values of type object"})
    refused(ValueError, read_table, tmp_path / "a.npz")
    error = refused(ValueError, read_table, tmp_path / "b.npz", label_column="label")
    assert "pickled Python objects" in error.facts["reason"]
    assert read_table(tmp_path / "b.npz").values.shape == (1, 2)


def test_arrays_that_are_no_tables_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    cases = [
        (np.ones(3), {"shape": (3,)}),
        (np.ones((3, 2, 2)), {"shape": (3, 2, 2)}),
        (np.ones((2, 2)) * 1j, {"what": "complex numbers"}),
        (np.array([["a", "b"]]), {"what": "values of type <U1"}),
        (np.array([["2020"]], dtype="datetime64[D]"), {"what": "values of type datetime64[D]"}),
        (np.ones((0, 3)), {}),
        (np.ones((3, 0)), {}),
    ]
    for array, facts in cases:
        np.save(path, array)
        refused(ValueError, read_table, path, facts=facts)


def test_files_with_several_arrays_ask_which_one_is_meant(tmp_path):
    arrays = {"train": np.ones((4, 2)), "test": np.zeros((3, 2)), "y": np.ones(4)}
    np.savez(tmp_path / "a.npz", **arrays)
    scipy.io.savemat(tmp_path / "a.mat", arrays)
    for name in ("a.npz", "a.mat"):
        path = tmp_path / name
        refused(ValueError, read_table, path, facts={"there": "variables 'train', 'test'"})
        error = refused(ValueError, read_table, path, variable="X")
        assert (error.parameter, error.value) == ("variable", "X")
        assert read_table(path, variable="test", drop="x0").values.tolist() == [[0], [0], [0]]
        refused(ValueError, read_table, path, variable="test", label_column="y")
    scipy.io.savemat(tmp_path / "text.mat", {"s": "text"})
    refused(ValueError, read_table, tmp_path / "text.mat", facts={"there": "none", "known": "variable 's'"})
    with zipfile.ZipFile(tmp_path / "none.npz", "w") as archive:
        archive.writestr("hello.txt", "hello")
    refused(ValueError, read_table, tmp_path / "none.npz", facts={"there": "none"})


def test_sparse_matrices_that_point_outside_are_refused(tmp_path):
    X = sparse.random(5, 4, 0.5, format="csr", random_state=0)
    X.indices[0] = 1000
    sparse.save_npz(tmp_path / "a.npz", X)
    refused(ValueError, read_table, tmp_path / "a.npz", facts={"kind": "npz"})
    with h5py.File(tmp_path / "a.mat", "w") as file:
        group = file.create_group("X")
        group.attrs["MATLAB_sparse"] = 5
        group["data"], group["ir"], group["jc"] = [1.0, 2.0], [0, 77], [0, 2]
    refused(ValueError, read_table, tmp_path / "a.mat", facts={"kind": "mat"})


def test_h5ad_files_with_something_missing(tmp_path, rng):
    path = tmp_path / "a.h5ad"
    save_cells(path, rng.normal(size=(4, 3)))
    assert refused(ValueError, read_table, path, variable="counts").facts["known"] == "variable 'X'"
    assert refused(ValueError, read_table, path, group_column="h").value == "h"

    def replaced(name, value=None):
        save_cells(path, rng.normal(size=(4, 3)))
        with h5py.File(path, "a") as file:
            del file[name]
            if value is not None:
                file[name] = value
        return path

    assert "'obs' and 'var'" in str(refused(ValueError, read_table, replaced("var")))
    refused(ValueError, read_table, replaced("X", np.ones((4, 2))), facts={"n_names": 3})
    refused(ValueError, read_table, replaced("X", np.ones((5, 3))), facts={"n_rows": 5, "n_values": 4})
    refused(ValueError, read_table, replaced("obs/g", np.arange(3)), group_column="g", facts={"n_values": 3})
    assert refused(ValueError, read_table, replaced("X")).facts["known"] == "no variables"


def test_twice_the_same_gene_is_refused_and_can_be_dropped(tmp_path):
    path = tmp_path / "a.h5ad"
    with pytest.warns(UserWarning, match="not unique"):
        anndata.AnnData(np.ones((2, 3)), var=pd.DataFrame(index=["a", "b", "a"])).write_h5ad(path)
    refused(ValueError, read_table, path, facts={"columns": "column 'a'"})
    assert read_table(path, drop="a").columns == ["b"]


@pytest.mark.parametrize(("package", "extra", "name"), [("pyarrow", "files", "a.csv"), ("h5py", "h5ad", "a.h5ad")])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, package, extra, name):
    (tmp_path / name).write_text("a\n1\n")
    monkeypatch.setattr("standout._messages.find_spec", lambda found: None if found == package else 1)
    with pytest.raises(ImportError, match=rf"'{package}'.*extra '{extra}'"):
        read_table(tmp_path / name)


def test_columns_that_do_not_match_are_named():
    target = Table(np.ones((2, 3)), ["a", "b", "c"], source="t.csv")
    other = Table(np.ones((2, 3)), ["b", "c", "d"], source="b.csv")
    facts = {"name": "b.csv", "reference": "t.csv", "missing": "column 'a'", "extra": "column 'd'"}
    refused(ValueError, match_columns, [target, other], ["t.csv", "b.csv"], facts=facts)
    narrow = Table(np.ones((2, 2)), ["x0", "x1"], source="b.npy", has_names=False)
    refused(ValueError, match_columns, [target, narrow], ["t.csv", "b.npy"], facts={"name": "b.npy", "width": 2})
