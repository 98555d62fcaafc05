"""Bad input ends in one line that names it and exit code 2, and leaves everything as it was."""

import gzip
import io
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

from cli_runs import COLUMNS, FIT, PAIR, check_failure, content, csv_text, fails, two_datasets
from standout.cli import main

# --- what is asked ----------------------------------------------------------------------------------------------------

CONDITIONS = ["fit", "target.csv", "-o", "out", "--condition-column", "zinc"]
ASKED = {
    "unknown command": (["fitt"], "fitt"),
    "unknown option": ([*FIT, "--colour", "red"], "--colour"),
    "no target": (["fit"], "TARGET"),
    "no output": (["fit", *PAIR], "--output"),
    "no background": (["fit", "target.csv", "-o", "out"], "--background"),
    "both forms": ([*FIT, "--condition-column", "g", "--target", "a"], ["--background", "--condition-column"]),
    "condition column without target": (CONDITIONS, "--target"),
    "target without condition column": ([*FIT, "--target", "a"], "--condition-column"),
    "the same file twice": (["fit", "target.csv", "-b", "./target.csv", "-o", "out"], "twice"),
    "the background in the target's folder": (["fit", ".", "-b", "background.csv", "-o", "out"], "twice"),
    "unknown method": ([*FIT, "--method", "tsne"], ["--method", "tsne"]),
    "components in words": ([*FIT, "--n-components", "many"], ["--n-components", "'many'"]),
    "no components": ([*FIT, "--n-components", "0"], "--n-components 0"),
    "more components than columns": ([*FIT, "--n-components", "5"], ["--n-components 5", "4"]),
    "shrinkage beyond 1": ([*FIT, "--shrinkage", "1.5"], "--shrinkage 1.5"),
    "shrinkage that is not a number": ([*FIT, "--shrinkage", "nan"], "nan"),
    "shrinkage of another method": ([*FIT, "--method", "cpca", "--shrinkage", "0.1"], ["--shrinkage", "dpca"]),
    "negative alpha": ([*FIT, "--method", "cpca", "--alpha", "-1"], "--alpha -1"),
    "more weights than backgrounds": ([*FIT, "--background-weights", "1,2"], "--background-weights"),
    "negative weights": ([*FIT, "--background-weights", "-1"], "-1"),
    "one fold": ([*FIT, "--cv", "1"], "--cv 1"),
    "seed beyond the largest": ([*FIT, "--random-state", "4294967296"], "--random-state 4294967296"),
    "kernel of a linear method": ([*FIT, "--kernel", "rbf"], ["--kernel", "kdpca"]),
    "unknown kernel": ([*FIT, "--method", "kdpca", "--kernel", "corn"], "corn"),
    "bandwidth of another kernel": (
        [*FIT, "--method", "kdpca", "--kernel", "poly", "--bandwidth", "1"],
        ["--bandwidth", "poly"],
    ),
    "no bandwidth": ([*FIT, "--method", "kdpca", "--bandwidth", "0"], "--bandwidth"),
    "degree of a kernel that has none": ([*FIT, "--method", "kdpca", "--degree", "3"], ["--degree", "poly", "rbf"]),
    "image of another size": ([*FIT, "--image-shape", "3x3"], ["--image-shape", "4"]),
    "unknown format": ([*FIT, "--format", "xls"], "xls"),
    "array of a table": ([*FIT, "--variable", "X"], "--variable"),
    "unknown id column": ([*FIT, "--id-column", "name"], ["--id-column name", "zinc"]),
    "unknown label column": ([*FIT, "--label-column", "zink"], ["--label-column zink", "Is 'zinc' meant"]),
    "unknown subject column": ([*FIT, "--subject-column", "mouse"], ["--subject-column mouse", "zinc"]),
    "unknown covariate": ([*FIT, "--adjust", "years"], ["--adjust years", "zinc"]),
    "unknown weights": ([*FIT, "--weight-column", "w"], ["--weight-column w", "zinc"]),
    "a pattern without its column": ([*FIT, "--subject-pattern", "x"], "--subject-column"),
    "a pattern that is not one": ([*FIT, "--subject-column", "zinc", "--subject-pattern", "("], "regular expression"),
    "a pattern that finds nothing": ([*FIT, "--subject-column", "zinc", "--subject-pattern", "x"], "does not match"),
    "blocks that are too long": ([*FIT, "--blocks", "100"], "--blocks 100 is outside [1, 60]"),
    "shrinkage of PCA": ([*FIT, "--method", "pca", "--shrinkage", "0.5"], "--shrinkage is for dpca, not for pca"),
    "blocks and subjects": ([*FIT, "--subject-column", "zinc", "--blocks", "5"], ["--blocks", "--subject-column"]),
    "within without subjects": ([*FIT, "--within"], "--subject-column"),
    "unknown column to leave out": ([*FIT, "--exclude", "gold"], ["--exclude", "gold"]),
    "unknown column to use": ([*FIT, "--columns", "gold*"], ["--columns", "gold*"]),
    "unknown column of a condition": ([*FIT, "--where", "gold=1"], ["--where", "gold"]),
    "a condition that no row meets": ([*FIT, "--where", "zinc=gold"], ["zinc", "gold"]),
    "nothing left": ([*FIT, "--exclude", "*"], "no column"),
    "logarithm of negative values": ([*FIT, "--log1p"], ["negative", "--log1p"]),
    "unknown way of scaling": ([*FIT, "--scale", "each"], "each"),
    "names for more backgrounds": ([*FIT, "--background-name", "a", "--background-name", "b"], "--background-name"),
    "unknown methods to compare": (["compare", *PAIR, "--methods", "pca,umap", "-o", "page.html"], "umap"),
    "no methods to compare": (["compare", *PAIR, "--methods", ",", "-o", "page.html"], "--methods"),
    "nothing to explore": (["explore"], "--demo"),
    "a screen without a control": (["screen", "target.csv", "--condition-column", "zinc", "-o", "s.csv"], "--control"),
    "a screen of an unknown control": (
        ["screen", "target.csv", "--condition-column", "zinc", "--control", "ctrl", "-o", "s.csv"],
        "ctrl",
    ),
    "a release without bounds": (["release", "target.csv", "--epsilon", "1", "--delta", "1e-6", "-o", "s"], "--ranges"),
    "sums of a kernel": ([*FIT, "--from-sums", "--method", "kdpca"], "kdpca"),
    "sums with rows": ([*FIT, "--from-sums", "--log1p"], "--log1p"),
    "sums that are none": ([*FIT, "--from-sums"], "target.csv"),
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
    "demo where nothing can be": (["demo", "-o", "missing/demo"], "missing"),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_cannot_be_asked_is_refused(case, folder, capsys):
    arguments, expected = ASKED[case]
    fails(arguments, expected, folder, capsys)


# --- the files --------------------------------------------------------------------------------------------------------

TARGET, BACKGROUND, KINDS = two_datasets()
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

# Each case: the name and the content of a target, and words of the message.
FILES = {
    "empty": ("bad.csv", b"", "empty"),
    "blank lines only": ("bad.csv", b"\n\n\n", "no line"),
    "header only": ("bad.csv", b"size,age,iron,zinc\n", "no rows"),
    "one row": ("bad.csv", "\n".join(TEXT.splitlines()[:2]).encode(), "2"),
    "no header": ("bad.csv", "\n".join(TEXT.splitlines()[1:]).encode(), "--header True for names"),
    "ragged rows": ("bad.csv", f"{TEXT}1,2,3\n".encode(), ["3", "4"]),
    "another delimiter": ("bad.tsv", TEXT.encode(), "tab"),
    "decimal commas": ("bad.csv", TEXT.replace(",", ";").replace(".", ",").encode(), ","),
    "text in numbers": ("bad.csv", f"{TEXT}1,2,three,4\n".encode(), ["three", "iron"]),
    "columns of one name": ("bad.csv", TEXT.replace("iron", "zinc", 1).encode(), ["zinc", "more than once"]),
    "a missing value": (
        "bad.csv",
        f"{TEXT}1,2,,4\n".encode(),
        ["missing", "iron", "--missing drop-rows, mean, median or zero"],
    ),
    "an infinite value": ("bad.csv", f"{TEXT}1,2,inf,4\n".encode(), ["infinite", "iron"]),
    "a column less": ("bad.csv", csv_text(TARGET[:, :3], COLUMNS[:3]).encode(), ["zinc", "background"]),
    "a column more": ("bad.csv", csv_text(np.c_[TARGET, TARGET[:, 0]], [*COLUMNS, "gold"]).encode(), "gold"),
    "not UTF-8": ("bad.csv", TEXT.replace("age", "größe").encode("latin-1"), "UTF-8"),
    "bytes that are no text": ("bad.csv", bytes(range(256)) * 9, "bad.csv"),
    "a damaged gzip file": ("bad.csv.gz", gzip.compress(TEXT.encode())[:200], "bad.csv.gz"),
    "no extension": ("bad", TEXT.encode(), "--format"),
    "a damaged Parquet file": ("bad.parquet", parquet_of(ARROW)[:-100], "Parquet"),
    "Parquet in name only": ("bad.parquet", TEXT.encode(), "Parquet"),
    "Parquet of words": ("bad.parquet", parquet_of(pa.table({"kind": KINDS.tolist()})), ["no numbers", "kind"]),
    "Parquet without rows": ("bad.parquet", parquet_of(ARROW.slice(0, 0)), "no rows"),
    "a damaged Arrow file": ("bad.feather", feather_of(ARROW)[:300], "Arrow"),
    "a damaged npy file": ("bad.npy", npy_of(TARGET)[:-9], "npy"),
    "pickled objects in npy": ("bad.npy", npy_of(np.array([[{}, None]], dtype=object)), "bad.npy"),
    "complex numbers": ("bad.npy", npy_of(TARGET + 1j), "Complex data"),
    "a cube": ("bad.npy", npy_of(TARGET[None]), "shape"),
    "a wrong number of columns": ("bad.npy", npy_of(TARGET[:, :3]), ["3", "4"]),
    "a damaged npz file": ("bad.npz", npz_of(X=TARGET)[:-50], "npz"),
    "pickled objects in npz": ("bad.npz", npz_of(X=np.array([[{}]], dtype=object)), "pickled"),
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
        # Root may read every file, so simulate the refusal of the system.
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
def test_conditions_that_are_not_there_are_refused(way, folder, capsys):
    kinds = np.array([*KINDS[:-1], "one"])
    (folder / "all.csv").write_text(csv_text(TARGET, kind=kinds))
    form = ["fit", "all.csv", "-o", "out", way, "--condition-column"]
    for words, expected in (
        (["sort", "--target", "low"], ["sort", "kind"]),
        (["kind", "--target", "medium"], ["--target medium", "low"]),
        (["kind", "--target", "low", "--background-condition", "none"], ["--background-condition none", "high"]),
        (["kind", "--target", "low", "--background-condition", "low"], ["low", "once"]),
        (["kind", "--target", "low", "--target", "low"], "once"),
        (["kind", "--target", "low", "--target", "high", "--target", "one"], "none is left"),
        (["kind", "--target", "low", "--background-condition", "one"], ["'one'", "1 row"]),
    ):
        fails([*form, *words], expected, folder, capsys)
    kinds[3] = ""
    (folder / "all.csv").write_text(csv_text(TARGET, kind=kinds))
    fails([*form, "kind", "--target", "low"], ["no value", "--background-condition"], folder, capsys)


def test_a_column_to_drop_may_be_in_one_file_only_but_must_be_in_one(folder, capsys):
    (folder / "target.csv").write_text(csv_text(TARGET, kind=KINDS))
    (folder / "background.csv").write_text(csv_text(BACKGROUND, batch=["a"] * 60))
    fails(
        [*FIT, "--exclude", "kind", "--exclude", "bat*", "--exclude", "color"], ["--exclude", "color"], folder, capsys
    )
    assert main([*FIT, "--exclude", "kind", "--exclude", "bat*", "-q"]) == 0


def test_a_fault_of_a_background_is_told_although_it_has_no_labels(folder, capsys):
    (folder / "target.csv").write_text(csv_text(TARGET, kind=KINDS))
    (folder / "background.csv").write_text(f"{csv_text(BACKGROUND)}1,2,three,4\n")
    fails([*FIT, "--label-column", "kind"], ["three", "iron"], folder, capsys)


# --- models and results -----------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("package", ["click", "jinja2", "skops", "pyarrow", "matplotlib"])
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
