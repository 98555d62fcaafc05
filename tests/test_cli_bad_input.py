"""Whatever is wrong, the command line says so in one line, exits with 2, and leaves everything as it was."""

import gzip
import io
import json
import os
import pickle
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import standout
from cli_runs import COLUMNS, FIT, PAIR, check_failure, content, csv_text, fails, two_datasets
from standout.cli import main

EARLIER = Path(__file__).parent / "data" / "results_0.1"

# --- what is asked ----------------------------------------------------------------------------------------------------

ASKED = {
    "unknown command": (["fitt"], "fitt"),
    "unknown option": ([*FIT, "--colour", "red"], "--colour"),
    "no target": (["fit"], "TARGET"),
    "no output": (["fit", *PAIR], "--output"),
    "no background": (["fit", "target.csv", "-o", "out"], "--background"),
    "both forms": ([*FIT, "--group-column", "g", "--target", "a"], ["--background", "--group-column"]),
    "group column without target": (["fit", "target.csv", "-o", "out", "--group-column", "zinc"], "--target"),
    "target without group column": ([*FIT, "--target", "a"], "--group-column"),
    "the same file twice": (["fit", "target.csv", "-b", "./target.csv", "-o", "out"], "twice"),
    "the background in the target's folder": (["fit", ".", "-b", "background.csv", "-o", "out"], "twice"),
    "memory with a checkpoint": ([*FIT, "--in-memory", "--checkpoint", "c"], ["--checkpoint", "--in-memory"]),
    "unknown method": ([*FIT, "--method", "tsne"], ["--method", "tsne"]),
    "components in words": ([*FIT, "--n-components", "many"], ["--n-components", "'many'"]),
    "no components": ([*FIT, "--n-components", "0"], "--n-components 0"),
    "more components than columns": ([*FIT, "--n-components", "5"], ["--n-components 5", "4"]),
    "automatic components of another method": ([*FIT, "--method", "cpca", "--n-components", "auto"], "auto"),
    "shrinkage beyond 1": ([*FIT, "--shrinkage", "1.5"], "--shrinkage 1.5"),
    "shrinkage that is no number": ([*FIT, "--shrinkage", "nan"], "nan"),
    "shrinkage of another method": ([*FIT, "--method", "cpca", "--shrinkage", "0.1"], ["--shrinkage", "dpca"]),
    "negative alpha": ([*FIT, "--method", "cpca", "--alpha", "-1"], "--alpha -1"),
    "more weights than backgrounds": ([*FIT, "--background-weights", "1,2"], "--background-weights"),
    "negative weights": ([*FIT, "--background-weights", "-1"], "-1"),
    "a rule of weights for another method": (
        [*FIT, "--method", "kcpca", "--background-weights", "best"],
        ["best", "kcpca"],
    ),
    "kernel of a linear method": ([*FIT, "--kernel", "rbf"], ["--kernel", "kdpca"]),
    "unknown kernel": ([*FIT, "--method", "kdpca", "--kernel", "corn"], "corn"),
    "formula for contrastive PCA": ([*FIT, "--method", "cpca", "--test", "analytic"], "--test analytic"),
    "permutations in parts": ([*FIT, "--method", "cpca", "--test", "permutation", "--stream"], "in parts"),
    "bandwidth of another kernel": (
        [*FIT, "--method", "kdpca", "--kernel", "poly", "--bandwidth", "1"],
        ["--bandwidth", "poly"],
    ),
    "negative bandwidth": ([*FIT, "--method", "kdpca", "--bandwidth", "-2"], "--bandwidth -2"),
    "negative epsilon": ([*FIT, "--method", "kdpca", "--epsilon", "-1"], "--epsilon -1"),
    "kernel for counts on negative values": ([*FIT, "--method", "kdpca", "--kernel", "chi2"], "negative values"),
    "enormous seed": ([*FIT, "--random-state", str(10**20)], ["--random-state", "4294967295"]),
    "degree of a kernel that has none": ([*FIT, "--method", "kdpca", "--degree", "3"], ["--degree", "poly", "rbf"]),
    "unknown format": ([*FIT, "--format", "xls"], "xls"),
    "array of a table": ([*FIT, "--variable", "X"], "--variable X"),
    "unknown id column": ([*FIT, "--id-column", "name"], ["--id-column name", "zinc"]),
    "unknown label column": ([*FIT, "--label-column", "zink"], ["--label-column zink", "Is 'zinc' meant"]),
    "unknown column to drop": ([*FIT, "--drop", "gold"], ["--drop", "gold"]),
    "unknown column to take": ([*FIT, "--columns", "gold*"], ["--columns", "gold*"]),
    "unknown column of a condition": ([*FIT, "--where", "gold=1"], ["--where", "gold"]),
    "a condition that no row meets": ([*FIT, "--where", "zinc=gold"], ["zinc", "gold", "2"]),
    "nothing left": ([*FIT, "--drop", "*"], "no column"),
    "logarithm of negative values": ([*FIT, "--log1p"], ["negative", "--log1p"]),
    "unknown way of scaling": ([*FIT, "--standardize", "each"], "each"),
    "unknown methods to compare": (["compare", *PAIR, "--methods", "pca,umap", "-o", "page.html"], "umap"),
    "no methods to compare": (["compare", *PAIR, "--methods", ",", "-o", "page.html"], "--methods"),
    "empty name of the output": ([*FIT[:-1], ""], "empty"),
    "output in a folder that is not there": ([*FIT[:-1], "a/b"], "no folder"),
    "output under a file": ([*FIT[:-1], "target.csv/out"], "target.csv"),
    "output that is a file": ([*FIT[:-1], "target.csv"], "is a file"),
    "output that is this folder": ([*FIT[:-1], "."], "current folder"),
    "output at the root": ([*FIT[:-1], "/"], "root"),
    "output in a name that is too long": ([*FIT[:-1], "x" * 300], "too long"),
    "output with a zero in its name": ([*FIT[:-1], "a\0b"], "null"),
    "home of nobody": ([*FIT[:-1], "~nobody-at-all/out"], "~nobody-at-all"),
    "output in /proc": ([*FIT[:-1], "/proc/out"], "/proc"),
    "page without its ending": (["compare", *PAIR, "-o", "views"], "'views' does not end in .html"),
    "page that is a folder": (["compare", *PAIR, "-o", ".."], "folder"),
    "page over the data": (["compare", *PAIR, "-o", "target.csv", "--overwrite"], "input"),
    "no model": (["transform", "model.skops", "target.csv", "-o", "scores.csv"], "model.skops"),
    "model of another kind": (["transform", "target.csv", "background.csv", "-o", "scores.csv"], "target.csv"),
    "info of nothing": (["info", "nothing"], "nothing"),
    "info of a folder without a model": (["info", "."], "model.skops"),
    "report of nothing": (["report", "nothing"], "nothing"),
    "report of another folder": (["report", "."], "standout fit"),
    "demo where nothing can be": (["demo", "-o", "missing/demo"], "missing"),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_cannot_be_asked_is_refused(case, folder, capsys):
    arguments, expected = ASKED[case]
    fails(arguments, expected, folder, capsys)


# --- the files --------------------------------------------------------------------------------------------------------

TARGET, BACKGROUND, GROUPS = two_datasets()
TEXT = csv_text(TARGET)


def npz_of(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def parquet_of(table):
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


def feather_of(table):
    file = io.BytesIO()
    feather.write_feather(table, file)
    return file.getvalue()


ARROW = pa.table({name: TARGET[:, i] for i, name in enumerate(COLUMNS)})

# The name and the content of a target, and what is said of it.
FILES = {
    "empty": ("bad.csv", b"", "empty"),
    "blank lines only": ("bad.csv", b"\n\n\n", "no line"),
    "header only": ("bad.csv", b"size,age,iron,zinc\n", "no rows"),
    "one row": ("bad.csv", "\n".join(TEXT.splitlines()[:2]).encode(), "2"),
    "no header": ("bad.csv", "\n".join(TEXT.splitlines()[1:]).encode(), "names"),
    "ragged rows": ("bad.csv", f"{TEXT}1,2,3\n".encode(), ["3", "4"]),
    "another delimiter": ("bad.tsv", TEXT.encode(), "tab"),
    "decimal commas": ("bad.csv", TEXT.replace(",", ";").replace(".", ",").encode(), ","),
    "text in numbers": ("bad.csv", f"{TEXT}1,2,three,4\n".encode(), ["three", "iron"]),
    "a column of text": ("bad.csv", csv_text(TARGET, kind=GROUPS).encode(), ["text", "kind"]),
    "dates": ("bad.csv", csv_text(TARGET, day=["2024-05-06"] * 60).encode(), ["dates", "day"]),
    "columns of one name": ("bad.csv", TEXT.replace("iron", "zinc", 1).encode(), ["zinc", "more than once"]),
    "a missing value": ("bad.csv", f"{TEXT}1,2,,4\n".encode(), ["missing", "iron", "--missing"]),
    "an infinite value": ("bad.csv", f"{TEXT}1,2,inf,4\n".encode(), ["infinite", "iron"]),
    "a column less": ("bad.csv", csv_text(TARGET[:, :3], COLUMNS[:3]).encode(), ["zinc", "background"]),
    "a column more": ("bad.csv", csv_text(np.c_[TARGET, TARGET[:, 0]], [*COLUMNS, "gold"]).encode(), "gold"),
    "not UTF-8": ("bad.csv", TEXT.replace("age", "größe").encode("latin-1"), "UTF-8"),
    "bytes that are no text": ("bad.csv", bytes(range(256)) * 9, "bad.csv"),
    "a damaged gzip file": ("bad.csv.gz", gzip.compress(TEXT.encode())[:200], "bad.csv.gz"),
    "no extension": ("bad", TEXT.encode(), "--format"),
    "a damaged Parquet file": ("bad.parquet", parquet_of(ARROW)[:-100], "Parquet"),
    "Parquet in name only": ("bad.parquet", TEXT.encode(), "Parquet"),
    "text in Parquet": ("bad.parquet", parquet_of(ARROW.append_column("kind", [GROUPS.tolist()])), ["words", "kind"]),
    "dates in Parquet": (
        "bad.parquet",
        parquet_of(ARROW.append_column("day", [pa.array([0] * 60, pa.timestamp("s"))])),
        ["dates", "day"],
    ),
    "lists in Parquet": ("bad.parquet", parquet_of(ARROW.append_column("list", [[[1.0]] * 60])), "list"),
    "Parquet without rows": ("bad.parquet", parquet_of(ARROW.slice(0, 0)), "0 sample(s)"),
    "a damaged Arrow file": ("bad.feather", feather_of(ARROW)[:300], "Arrow"),
    "a damaged npy file": ("bad.npy", npy_of(TARGET)[:-9], "npy"),
    "pickled objects in npy": ("bad.npy", npy_of(np.array([[{}, None]], dtype=object)), "bad.npy"),
    "complex numbers": ("bad.npy", npy_of(TARGET + 1j), "complex"),
    "a cube": ("bad.npy", npy_of(TARGET[None]), "shape"),
    "a wrong number of columns": ("bad.npy", npy_of(TARGET[:, :3]), ["3", "4"]),
    "a damaged npz file": ("bad.npz", npz_of(X=TARGET)[:-50], "npz"),
    "pickled objects in npz": ("bad.npz", npz_of(X=np.array([[{}]], dtype=object)), ["X", "--variable"]),
    "two matrices": ("bad.npz", npz_of(X=TARGET, Y=TARGET), ["X", "Y", "--variable"]),
    "a pickle in place of npz": ("bad.npz", pickle.dumps(TARGET), "npz"),
    "a damaged mat file": ("bad.mat", b"MATLAB 5.0 MAT-file" + bytes(200), "mat"),
    "h5ad in name only": ("bad.h5ad", TEXT.encode(), "h5ad"),
    "a damaged h5ad file": ("bad.h5ad", b"\x89HDF\r\n\x1a\n" + bytes(500), "h5ad"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_used_is_named(case, folder, capsys):
    name, data, expected = FILES[case]
    (folder / name).write_bytes(data)
    fails(["fit", name, "-b", "background.csv", "-o", "out"], expected, folder, capsys)


def test_files_that_are_no_files_are_refused(folder, capsys):
    (folder / "empty").mkdir()
    for name, words in (
        ("missing.csv", "missing.csv"),
        ("empty", "folder"),
        ("missing-*.csv", "no file matches"),
        ("/dev/null", "--format"),
        ("a\0b.csv", "null byte"),
    ):
        fails(["fit", name, "-b", "background.csv", "-o", "out"], words, folder, capsys)


def test_a_file_that_may_not_be_read_is_refused(folder, monkeypatch, capsys):
    before = content(folder)
    (folder / "target.csv").chmod(0)
    if os.access("target.csv", os.R_OK):
        # Whoever runs this may read everything: we say no in place of the system.
        opened = Path.open

        def refused(path, *arguments, **options):
            if path.name == "target.csv":
                raise PermissionError(13, "Permission denied", str(path))
            return opened(path, *arguments, **options)

        monkeypatch.setattr(Path, "open", refused)
    code = main(FIT)
    monkeypatch.undo()
    (folder / "target.csv").chmod(0o600)
    check_failure(code, capsys.readouterr().err, ["target.csv", "permission denied"], before, folder)


@pytest.mark.parametrize("way", ["--in-memory", "--stream"])
def test_groups_that_are_not_there_are_refused(way, folder, capsys):
    groups = np.array([*GROUPS[:-1], "one"])
    (folder / "all.csv").write_text(csv_text(TARGET, kind=groups))
    form = ["fit", "all.csv", "-o", "out", way, "--group-column"]
    for words, expected in (
        (["sort", "--target", "low"], ["sort", "kind"]),
        (["kind", "--target", "medium"], ["--target medium", "low"]),
        (["kind", "--target", "low", "--background-group", "none"], ["--background-group none", "high"]),
        (["kind", "--target", "low", "--background-group", "low"], ["low", "once"]),
        (["kind", "--target", "low", "--target", "low"], "once"),
        (["kind", "--target", "low", "--target", "high", "--target", "one"], "none is left"),
        (["kind", "--target", "low", "--background-group", "one"], ["one", "least is 2"]),
    ):
        fails([*form, *words], expected, folder, capsys)
    groups[3] = ""
    (folder / "all.csv").write_text(csv_text(TARGET, kind=groups))
    fails([*form, "kind", "--target", "low"], ["no value", "--background-group"], folder, capsys)


def test_a_column_to_drop_may_be_in_one_file_only_but_must_be_in_one(folder, capsys):
    (folder / "target.csv").write_text(csv_text(TARGET, kind=GROUPS))
    (folder / "background.csv").write_text(csv_text(BACKGROUND, batch=["a"] * 60))
    fails([*FIT, "--drop", "kind", "--drop", "bat*", "--drop", "color"], ["drop", "color", "kind"], folder, capsys)
    assert main([*FIT, "--drop", "kind", "--drop", "bat*", "-q"]) == 0


def test_a_fault_of_a_background_is_told_although_it_has_no_labels(folder, capsys):
    (folder / "target.csv").write_text(csv_text(TARGET, kind=GROUPS))
    (folder / "background.csv").write_text(f"{csv_text(BACKGROUND)}1,2,three,4\n")
    fails([*FIT, "--label-column", "kind"], ["three", "iron"], folder, capsys)


# --- models and results -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes", [{"text": "no JSON"}, {"text": "[]"}, {"columns": 5}, {"scale": [0, 0, 0]}, {"fill": "abcd"}], ids=str
)
def test_a_forged_preparation_of_an_earlier_version_is_refused(changes, folder, capsys):
    model = standout.load(EARLIER / "mean" / "model.skops")
    model.preprocessing_ = changes.get("text", json.dumps({**json.loads(model.preprocessing_), **changes}))
    standout.save(model, folder / "forged.skops")
    fails(["transform", "forged.skops", "target.csv", "-o", "scores.csv"], ["model", "preparation"], folder, capsys)


def test_a_damaged_model_is_refused(folder, result, capsys):
    whole = (result / "model.skops").read_bytes()
    for data in (whole[:-30], b"", pickle.dumps({}), whole[:500] + b"x" * 50 + whole[550:]):
        (folder / "bad.skops").write_bytes(data)
        fails(["transform", "bad.skops", "target.csv", "-o", "scores.csv"], "bad.skops", folder, capsys)
        fails(["info", "bad.skops"], "bad.skops", folder, capsys)


def test_new_rows_that_do_not_fit_are_refused(folder, result, capsys):
    (folder / "less.csv").write_text(csv_text(TARGET[:, 1:], COLUMNS[1:]))
    fails(["transform", result, "less.csv", "-o", "scores.csv"], ["lacks", "size"], folder, capsys)
    (folder / "gap.csv").write_text(f"{TEXT}1,2,,4\n")
    fails(["transform", result, "gap.csv", "-o", "scores.csv"], ["missing", "iron"], folder, capsys)
    np.save(folder / "less.npy", TARGET[:, 1:])
    fails(["transform", result, "less.npy", "-o", "scores.csv"], ["3", "4"], folder, capsys)
    fails(["transform", result, "target.csv", "-o", "target.csv"], "--overwrite", folder, capsys)
    fails(["transform", result, "target.csv", "-o", "target.csv", "--overwrite"], "input", folder, capsys)
    fails(["transform", result, "target.csv", "-o", "."], "folder", folder, capsys)
    fails(["transform", result, "target.csv", "-o", "/dev/full"], "No space left", folder, capsys)


@pytest.mark.parametrize("damage", ["cut", "missing", "other form", "no findings", "wrong types", "zip"])
def test_a_result_that_was_damaged_is_not_shown(damage, folder, result, capsys):
    shutil.copytree(result, folder / "out")
    words, numbers = folder / "out" / "report.json", folder / "out" / "report.npz"
    stored = json.loads(words.read_text())
    if damage == "cut":
        words.write_text(words.read_text()[:-100])
    elif damage == "missing":
        words.unlink()
    elif damage == "other form":
        words.write_text(json.dumps({**stored, "form": 99}))
    elif damage == "no findings":
        words.write_text(json.dumps({"form": stored["form"], "findings": {}}))
    elif damage == "wrong types":
        stored["findings"]["fields"] |= {"eigenvalues": 7, "datasets": []}
        words.write_text(json.dumps(stored))
    else:
        numbers.write_bytes(numbers.read_bytes()[:100])
    fails(["report", "out"], "standout fit", folder, capsys)


def test_what_is_there_is_replaced_only_on_request_and_only_if_it_is_ours(folder, result, capsys):
    shutil.copytree(result, folder / "out")
    fails(FIT, "--overwrite", folder, capsys)
    (folder / "out" / "notes.txt").write_text("mine")
    fails([*FIT, "--overwrite"], "notes.txt", folder, capsys)
    (folder / "mine").mkdir()
    (folder / "mine" / "summary.json").write_text("[]")
    fails(["fit", *PAIR, "-o", "mine", "--overwrite"], "something else", folder, capsys)
    fails(["demo", "-o", "mine"], "something else", folder, capsys)
    (folder / "page.html").write_text("mine")
    fails(["compare", *PAIR, "-o", "page.html"], "--overwrite", folder, capsys)


@pytest.mark.parametrize("package", ["click", "bokeh", "skops", "pyarrow", "matplotlib"])
def test_a_missing_package_is_named(package, folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    fails(FIT, [package, "pip install"], folder, capsys)


def test_names_that_move_the_cursor_are_shown_as_they_are(folder, capsys):
    (folder / "bad.csv").write_text(TEXT.replace("iron", "\x1b[31mred\u202e", 1))
    fails(["fit", "bad.csv", "-b", "background.csv", "-o", "out"], r"\x1b[31mred\u202e", folder, capsys)
    fails(["fit", "\x1b[2J.csv", "-b", "background.csv", "-o", "out"], r"\x1b[2J", folder, capsys)


def test_a_zip_bomb_of_a_model_is_refused(folder, capsys):
    with zipfile.ZipFile(folder / "bomb.skops", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 10_000_000)
    fails(["info", "bomb.skops"], "bomb.skops", folder, capsys)
