"""Files and tables: every format gives the same numbers and names, in little memory, and results are written whole."""

import gzip
import os
import subprocess
import sys
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

from standout.io import EXTENSIONS, FORMATS, Table, match_columns, read_table, write_csv

COLUMNS = ["height", "weight <script>", "Länge\nin cm", "x" * 300]
IDS = [f"row {i}" for i in range(7)]
LABELS = ["a", "b", "a", "b", "c", "c", "a"]


@pytest.fixture
def values(rng):
    X = rng.normal(size=(7, 4))
    X[2, 1] = X[5, 3] = np.nan
    return X


def frame(values, columns=COLUMNS):
    found = pd.DataFrame(values, columns=columns)
    found.insert(0, "name", IDS[: len(found)])
    return found.assign(label=LABELS[: len(found)])


def gzipped(path, text):
    path.write_bytes(gzip.compress(text.encode()))


def stream(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def save_h5ad(values, path, matrix=lambda X: X):
    found = frame(values)
    cells = anndata.AnnData(
        matrix(values), obs=found.set_index("name")[["label"]], var=pd.DataFrame(index=COLUMNS), layers={"raw": values}
    )
    cells.write_h5ad(path)


NAMED = {
    "data.csv": lambda f, p: f.to_csv(p, index=False),
    "data.CSV": lambda f, p: f.to_csv(p, index=False),
    "bom.csv": lambda f, p: f.to_csv(p, index=False, encoding="utf-8-sig"),
    "semicolon.csv": lambda f, p: f.to_csv(p, index=False, sep=";"),
    "na.csv": lambda f, p: f.to_csv(p, index=False, na_rep="NA", quoting=1),
    "dos.csv": lambda f, p: f.to_csv(p, index=False, lineterminator="\r\n"),
    "bar.txt": lambda f, p: f.to_csv(p, index=False, sep="|"),
    "data.tsv": lambda f, p: f.to_csv(p, index=False, sep="\t"),
    "data.csv.gz": lambda f, p: gzipped(p, f.to_csv(index=False)),
    "data.tsv.gz": lambda f, p: gzipped(p, f.to_csv(index=False, sep="\t")),
    "data.parquet": lambda f, p: f.to_parquet(p),
    "groups.pq": lambda f, p: f.to_parquet(p, row_group_size=3),
    "data.feather": lambda f, p: f.to_feather(p),
    "stream.arrow": lambda f, p: stream(pa.Table.from_pandas(f), p),
    "categories.parquet": lambda f, p: f.astype({"label": "category"}).to_parquet(p),
}


@pytest.mark.parametrize("name", NAMED)
def test_every_format_with_names_gives_the_same_table(tmp_path, values, name):
    NAMED[name](frame(values), tmp_path / name)
    table = read_table(tmp_path / name, id_column="name", label_column="label")
    # Digits are written such that the very same numbers are read.
    np.testing.assert_array_equal(table.values, values)
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert table.values.flags.writeable
    assert table.columns == COLUMNS
    assert table.has_names
    assert table.ids.tolist() == IDS
    assert table.labels.tolist() == LABELS
    assert table.groups is None
    assert table.source == str(tmp_path / name)


def save_hdf5_mat(values, path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("X", data=values.T).attrs["MATLAB_class"] = np.bytes_("double")
        file["id"] = np.arange(7.0)[None]
        file["#refs#/a"] = np.array([[ord("a")]], dtype=np.uint16)
        refs = file.create_dataset("label", (1, 7), dtype=h5py.ref_dtype)
        for i, label in enumerate(LABELS):
            file[f"#refs#/{i}"] = np.array([[ord(label)]], dtype=np.uint16)
            refs[0, i] = file[f"#refs#/{i}"].ref
        refs.attrs["MATLAB_class"] = np.bytes_("cell")


UNNAMED = {
    "data.npz": lambda X, p: np.savez(p, X=X, id=np.arange(7), label=np.array(LABELS)),
    "packed.npz": lambda X, p: np.savez_compressed(p, X=X, id=np.arange(7), label=np.array(LABELS)),
    "data.mat": lambda X, p: scipy.io.savemat(p, {"X": X, "id": np.arange(7), "label": np.array(LABELS, dtype=object)}),
    "column.mat": lambda X, p: scipy.io.savemat(p, {"X": X, "id": np.arange(7)[:, None], "label": LABELS}),
    "v73.mat": save_hdf5_mat,
}


@pytest.mark.parametrize("name", UNNAMED)
def test_arrays_get_names_by_number_and_vectors_beside_them_are_labels(tmp_path, values, name):
    UNNAMED[name](values, tmp_path / name)
    table = read_table(tmp_path / name, label_column="label", id_column="id")
    np.testing.assert_array_equal(table.values, values)
    assert table.values.flags.c_contiguous
    assert table.columns == ["x0", "x1", "x2", "x3"]
    assert not table.has_names
    assert table.labels.tolist() == LABELS
    assert table.ids.tolist() == list("0123456")


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npy_file_is_never_written_to(tmp_path, values, order):
    path = tmp_path / "data.npy"
    np.save(path, np.asarray(values, order=order))
    before = path.read_bytes()
    table = read_table(path)
    np.testing.assert_array_equal(table.values, values)
    assert table.values.flags.c_contiguous
    table.values[:] = 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_matrix, sparse.csc_matrix], ids=["dense", "csr", "csc"])
def test_h5ad_gives_names_labels_layers_and_stays_sparse(tmp_path, values, matrix):
    X = np.where(np.nan_to_num(values) > 0, values, 0.0).astype(np.float32)
    save_h5ad(X, tmp_path / "cells.h5ad", matrix)
    table = read_table(tmp_path / "cells.h5ad", group_column="label")
    assert sparse.issparse(table.values) == (matrix is not np.asarray)
    found = table.values.toarray() if sparse.issparse(table.values) else table.values
    np.testing.assert_array_equal(found, X)
    assert table.values.dtype == np.float32
    assert table.columns == COLUMNS
    assert table.ids.tolist() == IDS
    assert table.groups.tolist() == LABELS
    some = read_table(tmp_path / "cells.h5ad", columns=["x*", "height"], id_column="label")
    assert some.columns == [COLUMNS[3], COLUMNS[0]]
    assert some.ids.tolist() == LABELS
    found = some.values.toarray() if sparse.issparse(some.values) else some.values
    np.testing.assert_array_equal(found, X[:, [3, 0]])
    layer = read_table(tmp_path / "cells.h5ad", variable="raw")
    np.testing.assert_array_equal(layer.values, X)


def test_all_kinds_of_obs_columns_of_h5ad_are_words(tmp_path):
    obs = pd.DataFrame(
        {
            "number": [1, 2, 3],
            "gap": pd.array([1, None, 3], dtype="Int64"),
            "category": pd.Categorical(["a", None, "b"]),
            "truth": [True, False, True],
            "decimal": [1.0, np.nan, 2.5],
        },
        index=["r", "s", "t"],
    )
    anndata.AnnData(np.ones((3, 2)), obs=obs).write_h5ad(tmp_path / "cells.h5ad")
    expected = {
        "number": ["1", "2", "3"],
        "gap": ["1", "", "3"],
        "category": ["a", "", "b"],
        "truth": ["True", "False", "True"],
        "decimal": ["1", "", "2.5"],
    }
    for name, words in expected.items():
        assert read_table(tmp_path / "cells.h5ad", label_column=name).labels.tolist() == words


@pytest.mark.parametrize("name", ["s.npz", "s.mat", "s73.mat"])
def test_sparse_matrices_of_scipy_and_matlab_stay_sparse(tmp_path, name):
    X = sparse.random(30, 8, 0.2, format="csc", random_state=0)
    path = tmp_path / name
    if name == "s.npz":
        sparse.save_npz(path, X)
    elif name == "s.mat":
        scipy.io.savemat(path, {"X": X})
    else:
        with h5py.File(path, "w", userblock_size=512) as file:
            group = file.create_group("X")
            group.attrs["MATLAB_sparse"] = np.uint64(30)
            group["data"], group["ir"], group["jc"] = X.data, X.indices, X.indptr
    table = read_table(path, drop="x1")
    assert table.values.format == "csr"
    np.testing.assert_array_equal(table.values.toarray(), np.delete(X.toarray(), 1, axis=1))
    labelled = read_table(path, label_column="x0")
    assert len(labelled.columns) == 7
    assert float(labelled.labels[0] or 0) == pytest.approx(X[0, 0])


def test_single_precision_stays_and_anything_else_becomes_double(tmp_path):
    X = np.arange(12).reshape(4, 3)
    single, double = X.astype(np.float32), X.astype(np.float64)
    pd.DataFrame(single, columns=list("abc")).to_parquet(tmp_path / "single.parquet")
    pd.DataFrame(single, columns=list("abc")).to_feather(tmp_path / "single.feather")
    pd.DataFrame(single, columns=list("abc")).assign(c=1.5).to_parquet(tmp_path / "mixed.parquet")
    np.save(tmp_path / "single.npy", single)
    np.save(tmp_path / "half.npy", X.astype(np.float16))
    np.save(tmp_path / "whole.npy", X)
    np.save(tmp_path / "swapped.npy", double.astype(">f8"))
    scipy.io.savemat(tmp_path / "single.mat", {"X": single})
    for name in ("single.parquet", "single.feather", "single.npy", "half.npy", "single.mat"):
        assert read_table(tmp_path / name).values.dtype == np.float32, name
    for name in ("mixed.parquet", "whole.npy", "swapped.npy"):
        table = read_table(tmp_path / name)
        assert table.values.dtype == np.dtype("=f8"), name
        assert table.values[1, 1] == 4


def test_numbers_of_any_type_and_gaps_are_read(tmp_path):
    from decimal import Decimal

    table = pa.table(
        {
            "int": pa.array([1, None, 3], pa.int8()),
            "bool": pa.array([True, False, None]),
            "decimal": pa.array([Decimal("1.25"), None, Decimal("2")]),
            "category": pa.array([5, None, 7]).dictionary_encode(),
            "nothing": pa.nulls(3),
            "half": pa.array(np.array([1, 2, 3], dtype=np.float16)),
        }
    )
    expected = np.array(
        [[1, 1, 1.25, 5, np.nan, 1], [np.nan, 0, np.nan, np.nan, np.nan, 2], [3, np.nan, 2, 7, np.nan, 3]]
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "a.feather")
    (tmp_path / "a.csv").write_text("i,b,d,c,n,h\n1,True,1.25,5,,1\nNA,false,,nan,,+2\n3,, 2 ,7,NULL,3e0\n")
    for name in ("a.parquet", "a.feather", "a.csv"):
        np.testing.assert_array_equal(read_table(tmp_path / name).values, expected)


def test_a_column_may_start_with_whole_numbers_or_gaps_and_go_on_with_others(tmp_path):
    n = 60_000  # more than one block of the reader
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "1,\n" * n * 5 + "1.5,2.5\n")
    table = read_table(path)
    assert table.values.shape == (5 * n + 1, 2)
    assert table.values[-1].tolist() == [1.5, 2.5]
    assert np.isnan(table.values[:-1, 1]).all()


def test_labels_with_line_breaks_do_not_break_a_long_file(tmp_path):
    n = 100_000
    path = tmp_path / "long.csv"
    path.write_text("label,x\n" + '"two\nlines, and ""quotes""",1\n' * n)
    table = read_table(path, label_column="label")
    assert table.values.shape == (n, 1)
    assert set(table.labels) == {'two\nlines, and "quotes"'}


def test_words_are_kept_as_they_stand(tmp_path):
    (tmp_path / "a.csv").write_text("id,x,g\n007,1,True\n1.0,2,\n2020-01-01,3,NA\n")
    table = read_table(tmp_path / "a.csv", id_column="id", group_column="g", label_column="g")
    assert table.ids.tolist() == ["007", "1.0", "2020-01-01"]
    assert table.groups.tolist() == table.labels.tolist() == ["True", "", ""]


def test_names_of_rows_are_found_where_formats_keep_them(tmp_path, values):
    indexed = pd.DataFrame(values, columns=list("abcd"), index=IDS)
    indexed.to_csv(tmp_path / "text.csv")
    indexed.reset_index(drop=True).to_csv(tmp_path / "counted.csv")
    indexed.to_csv(tmp_path / "r.tsv", sep="\t", index_label=False)
    indexed.to_parquet(tmp_path / "unnamed.parquet")
    indexed.rename_axis("mouse").to_parquet(tmp_path / "named.parquet")
    indexed.rename_axis("mouse").reset_index().set_index("mouse").to_feather(tmp_path / "named.feather")
    for name in ("text.csv", "r.tsv", "unnamed.parquet", "named.parquet", "named.feather"):
        table = read_table(tmp_path / name)
        assert table.columns == list("abcd"), name
        assert table.ids.tolist() == IDS, name
    assert read_table(tmp_path / "counted.csv").ids.tolist() == list("0123456")
    assert read_table(tmp_path / "counted.csv", drop="").ids is None
    other = read_table(tmp_path / "counted.csv", id_column="a")
    assert other.columns == list("bcd")
    assert read_table(tmp_path / "counted.csv", columns=["", "a"]).columns == ["", "a"]


def test_several_levels_of_an_index_are_columns(tmp_path):
    found = pd.DataFrame({"a": [1, 2], "b": [3, 4], "x": [0.5, 1.5]}).set_index(["a", "b"])
    found.to_parquet(tmp_path / "levels.parquet")
    assert sorted(read_table(tmp_path / "levels.parquet").columns) == ["a", "b", "x"]


def test_columns_are_chosen_by_name_and_pattern(tmp_path):
    (tmp_path / "a.csv").write_text("id,gene_1,gene_2,other,x[1],gene_10\nr,1,2,3,4,5\n")

    def columns(**options):
        return read_table(tmp_path / "a.csv", id_column="id", **options).columns

    assert columns() == ["gene_1", "gene_2", "other", "x[1]", "gene_10"]
    assert columns(columns="gene_*") == ["gene_1", "gene_2", "gene_10"]
    assert columns(columns=["other", "gene_?"]) == ["other", "gene_1", "gene_2"]
    assert columns(columns="gene_*", drop=["gene_1"]) == ["gene_2", "gene_10"]
    assert columns(columns="x[1]") == ["x[1]"]
    assert columns(columns="*", drop="GENE*".lower()) == ["other", "x[1]"]
    assert columns(label_column="other", columns="*") == ["gene_1", "gene_2", "x[1]", "gene_10"]


def test_a_name_is_not_taken_for_a_part_of_another(tmp_path):
    # Parquet takes "a.b" for a part of "a".
    pyarrow.parquet.write_table(pa.table({"a.b": [1.0], "a": [2.0], "b": ["text"]}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", columns="a")
    assert table.columns == ["a"]
    assert table.values.tolist() == [[2.0]]


def test_columns_that_are_dropped_may_be_anything(tmp_path):
    (tmp_path / "a.csv").write_text("x,x,when,word,y\n1,2,2020-01-01,hello,3\n")
    assert read_table(tmp_path / "a.csv", drop=["x", "when", "w*"]).values.tolist() == [[3.0]]


OTHERS = {
    "data.npy": lambda X, path: np.save(path, X),
    "data.npz": lambda X, path: np.savez(path, X=X),
    "data.mat": lambda X, path: scipy.io.savemat(path, {"X": X}),
    "data.h5ad": save_h5ad,
}


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are always text there")
@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.parquet", "data.feather", "stream.arrow", *OTHERS])
def test_the_name_of_a_file_need_not_be_text(tmp_path, values, name):
    if name in OTHERS:
        OTHERS[name](values, tmp_path / name)
    else:
        NAMED[name](frame(values).drop(columns=["name", "label"]), tmp_path / name)
    odd = tmp_path / os.fsdecode(b"caf\xe9 " + name.encode())
    (tmp_path / name).rename(odd)
    read = read_table(odd)
    np.testing.assert_array_equal(read.values, values)
    assert read.source == str(odd)


def test_the_format_can_be_said(tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    (tmp_path / "a.npy").rename(tmp_path / "a.bin")
    np.testing.assert_array_equal(read_table(tmp_path / "a.bin", format="npy").values, values)
    (tmp_path / "b.tsv").write_text("a,b\n1,2\n")
    assert read_table(tmp_path / "b.tsv", format="csv").columns == ["a", "b"]
    assert set(EXTENSIONS.values()) == set(FORMATS)


def test_wide_tables_are_read_in_blocks_that_hold_their_rows(tmp_path, rng):
    X = rng.normal(size=(40, 20_000)).round(3)
    names = [f"gene {i}" for i in range(20_000)]
    write_csv(tmp_path / "wide.csv", dict(zip(names, X.T, strict=True)))
    table = read_table(tmp_path / "wide.csv")
    np.testing.assert_array_equal(table.values, X)
    assert table.columns == names


PEAK = """
import pathlib, re, sys
from standout.io import read_table

def peak():
    # Not getrusage, whose peak starts with that of the program that has started this one.
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])

read_table(sys.argv[2])  # What is loaded on the first use is not counted.
before = peak()
table = read_table(sys.argv[1])
print((peak() - before) / table.values.nbytes)
"""


@pytest.mark.parametrize("name", ["one group.parquet", "many groups.parquet", "text.csv"])
def test_reading_takes_little_more_memory_than_the_result(tmp_path, rng, name):
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is measured on Linux")
    X = rng.normal(size=(2_000_000, 10))
    for path, rows in ((tmp_path / name, X), (tmp_path / f"small {name}", X[:100])):
        if name == "text.csv":
            write_csv(path, {f"x{i}": rows[:, i].round(2) for i in range(10)})
        else:
            table = pa.table({f"x{i}": rows[:, i] for i in range(10)})
            pyarrow.parquet.write_table(table, path, row_group_size=2_000_000 if name.startswith("one") else 100_000)
    command = [sys.executable, "-c", PEAK, tmp_path / name, tmp_path / f"small {name}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    # A second copy would make it 2 and more. The result has 160 MB; beside it there are two batches of 24 MiB and a few
    # pages of each column, or, where the number of rows is not known beforehand, a piece of 40 MiB.
    assert 0.9 <= float(run.stdout) < 1.9


# Columns of several files.


def test_columns_are_matched_by_name_in_any_order(values):
    target = Table(values, list("abcd"))
    same = Table(values.copy(), list("abcd"))
    other = Table(values[:, [2, 0, 3, 1]], list("cadb"), ids=np.array(IDS, dtype=object))
    matched = match_columns([target, same, other], ["target", "same", "other"])
    assert matched[0] is target
    assert matched[1] is same
    assert matched[2].columns == list("abcd")
    np.testing.assert_array_equal(matched[2].values, values)
    assert matched[2].ids.tolist() == IDS
    assert other.columns == list("cadb")


def test_without_names_only_the_number_of_columns_counts(values):
    named, unnamed = Table(values, list("abcd")), Table(values, ["x0", "x1", "x2", "x3"], has_names=False)
    assert match_columns([named, unnamed], ["a", "b"])[1].columns == list("abcd")
    assert match_columns([unnamed, named], ["a", "b"])[1].columns == ["x0", "x1", "x2", "x3"]


def test_files_of_several_precisions_or_forms_make_one_table(tmp_path, rng):
    X = rng.normal(size=(6, 3))
    np.save(tmp_path / "0.npy", X[:2].astype(np.float32))
    np.save(tmp_path / "1.npy", X[2:])
    table = read_table([tmp_path / "0.npy", tmp_path / "1.npy"])
    assert table.values.dtype == np.float64
    np.testing.assert_array_equal(table.values[2:], X[2:])
    for number, matrix in enumerate((sparse.csr_matrix, np.asarray, sparse.csr_matrix)):
        anndata.AnnData(matrix(X[2 * number : 2 * number + 2])).write_h5ad(tmp_path / f"{number}.h5ad")
    np.testing.assert_array_equal(read_table(f"{tmp_path}/*.h5ad").values, X)


def test_importing_needs_no_extra():
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['pyarrow', 'h5py', 'anndata', 'pandas']));"
        "import standout.io; print('light')"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "light", result.stderr
