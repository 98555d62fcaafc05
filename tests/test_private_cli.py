"""The commands of private sums: standout release, and standout fit --from-sums."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import standout
from cli_runs import works_here
from standout.cli import main
from standout.private import PrivateMoments

pytest.importorskip("opendp", reason="OpenDP is not installed")

COLUMNS = ["size", "age", "iron", "zinc"]
BUDGET = ["--ranges", "ranges.csv", "--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def files(here):
    """Three places: two with backgrounds, one with the target, which varies five times as much in "zinc"."""
    rng = np.random.default_rng(0)
    for name, spread in (("target", [10, 1, 2, 5]), ("place1", [10, 1, 2, 1]), ("place2", [10, 1, 2, 1])):
        frame = pd.DataFrame(rng.normal(size=(4000, 4)) * spread, columns=COLUMNS)
        frame["patient"] = [f"p{number % 1500}" for number in range(4000)]
        frame.to_parquet(here / f"{name}.parquet")
    pd.DataFrame({"column": COLUMNS, "low": [-30, -3, -6, -9], "high": [30, 3, 6, 9]}).to_csv("ranges.csv", index=False)
    return here


@pytest.fixture
def sums(files):
    for name in ("target", "place1", "place2"):
        works_here("release", f"{name}.parquet", "--drop", "patient", *BUDGET, "-q", "-o", f"{name}.sums")
    return files


def fails(capsys, *words):
    assert main([*map(str, words)]) == 2
    return capsys.readouterr().err


def test_a_release_writes_sums_with_noise_and_says_what_was_spent(files, capsys):
    works_here("release", "target.parquet", "--drop", "patient", *BUDGET, "-o", "place1.sums")
    said = capsys.readouterr().out
    assert "epsilon 1, delta 1e-06 for each row" in said
    found = PrivateMoments.load("place1.sums")
    assert found.columns == tuple(COLUMNS)
    assert abs(found.count - 4000) < 1000
    np.testing.assert_allclose(found.scale, [30, 3, 6, 9])
    assert found.radius == 0.5


def test_persons_are_protected_by_their_column(files):
    given = ["--person-column", "patient", "--max-rows", "2", *BUDGET]
    works_here("release", "target.parquet", *given, "-q", "-o", "a.sums")
    found = PrivateMoments.load("a.sums")
    assert (found.spent[0].unit, found.spent[0].max_rows) == ("person", 2)
    # 1,500 patients, with two rows each.
    assert abs(found.count - 3000) < 1500


def test_the_order_of_columns_is_that_of_the_ranges(files):
    pd.read_parquet("target.parquet")[["zinc", "age", "size", "iron"]].to_csv("turned.csv", index=False)
    works_here("release", "turned.csv", *BUDGET, "-q", "-o", "a.sums")
    assert PrivateMoments.load("a.sums").columns == tuple(COLUMNS)


def test_a_fit_from_sums_writes_a_folder_without_points(sums, capsys):
    works_here("fit", "--from-sums", "target.sums", "--background", "place*.sums", "-o", "out")
    said = capsys.readouterr().out
    assert re.search(r"^1 +\d+\.?\d* +[\d.]+% +zinc", said, re.MULTILINE)
    assert {path.name for path in (sums / "out").iterdir()} == {
        *("report.html", "summary.json", "loadings.csv", "model.skops"),
    }
    told = json.loads((sums / "out" / "summary.json").read_text())
    assert [one["files"] for one in told["datasets"]] == [["target.sums"], ["place1.sums", "place2.sums"]]
    assert [len(one["spent"]) for one in told["datasets"]] == [1, 2]
    assert told["components"][0]["features"][0]["name"] == "zinc"
    page = (sums / "out" / "report.html").read_text()
    for words in ("epsilon 1, delta 1e-06 for each row", "place1.sums, place2.sums", "zinc", "no points"):
        assert words in page
    assert "<script" not in page
    assert "http" not in page
    model = standout.load("out/model.skops")
    assert list(model.feature_names_in_) == COLUMNS
    works_here("transform", "out", "target.parquet", "-q", "-o", "scores.csv")


def test_several_backgrounds_and_other_methods(sums):
    given = ["fit", "--from-sums", "target.sums", "-b", "place1.sums", "-b", "place2.sums", "-q"]
    works_here(*given, "-o", "out")
    assert standout.load("out/model.skops").background_variance_.shape == (2, 2)
    works_here(*given, "--method", "cpca", "--alpha", "2", "-o", "cpca")
    assert standout.load("cpca/model.skops").alpha_ == 2.0
    works_here("fit", "--from-sums", "target.sums", "--method", "pca", "--n-components", "1", "-q", "-o", "pca")
    assert standout.load("pca/model.skops").components_.shape == (1, 4)


def test_names_from_data_are_no_markup(files):
    name = "<script>alert(1)</script>"
    for file in ("target", "place1"):
        rows = pd.read_parquet(f"{file}.parquet").rename(columns={"zinc": name}).drop(columns="patient")
        rows.to_parquet(f"{file}.parquet")
    ranges = pd.read_csv("ranges.csv").replace("zinc", name)
    ranges.to_csv("ranges.csv", index=False)
    for file in ("target", "place1"):
        works_here("release", f"{file}.parquet", *BUDGET, "-q", "-o", f"{file}.sums")
    works_here("fit", "--from-sums", "target.sums", "-b", "place1.sums", "-q", "-o", "out")
    page = (files / "out" / "report.html").read_text()
    assert name not in page
    assert "&lt;script&gt;" in page


def test_a_target_is_released_in_the_bounds_of_a_background(sums):
    given = ["--drop", "patient", "--epsilon", "1", "--delta", "1e-6", "-q"]
    works_here("release", "target.parquet", "--whiten-by", "place*.sums", *given, "-o", "white.sums")
    assert PrivateMoments.load("white.sums").scale.shape == (4, 4)
    works_here("fit", "--from-sums", "white.sums", "-b", "place*.sums", "-q", "-o", "out")
    told = json.loads((sums / "out" / "summary.json").read_text())
    assert told["components"][0]["features"][0]["name"] == "zinc"


WRONG_RELEASES = {
    "two kinds of bounds": (["--whiten-by", "ranges.csv"], "--ranges"),
    "ranges that lack a column": (["--ranges", "short.csv"], "'zinc'"),
    "no file of ranges": (["--ranges", "none.csv"], "none.csv"),
    "ranges that are none": (["--ranges", "wrong.csv"], "line 2"),
    "two ranges": (["--ranges", "twice.csv"], "'age'"),
    "epsilon zero": (["--epsilon", "0"], "--epsilon"),
    "delta one": (["--delta", "1"], "--delta"),
    "radius zero": (["--radius", "0"], "--radius"),
    "max-rows alone": (["--max-rows", "2"], "--person-column"),
    "a column that is not there": (["--columns", "gold"], "gold"),
}


@pytest.mark.parametrize("case", WRONG_RELEASES)
def test_a_wrong_release_fails_with_one_line_and_writes_nothing(case, files, capsys):
    pd.read_csv("ranges.csv").iloc[:3].to_csv("short.csv", index=False)
    (files / "wrong.csv").write_text("column,low,high\nsize,zero,one\n")
    (files / "twice.csv").write_text("column,low,high\nage,0,1\nage,0,2\n")
    change, words = WRONG_RELEASES[case]
    said = fails(capsys, "release", "target.parquet", "--drop", "patient", *BUDGET, *change, "-q", "-o", "a.sums")
    assert words in said
    assert said.count("\n") == 1
    assert not (files / "a.sums").exists()


WRONG_FITS = {
    "no sums": (["target.parquet", "-b", "place1.sums"], "target.parquet"),
    "no file": (["none.sums", "-b", "place1.sums"], "none.sums"),
    "no match": (["target.sums", "-b", "none*.sums"], "none*"),
    "no background": (["target.sums"], "--background"),
    "kernels": (["target.sums", "-b", "place1.sums", "--method", "kdpca"], "kdpca"),
    "clusters": (["target.sums", "-b", "place1.sums", "--shrinkage", "clusters"], "--shrinkage clusters"),
    "permutation": (["target.sums", "-b", "place1.sums", "--test", "permutation"], "--test permutation"),
    "preparation": (["target.sums", "-b", "place1.sums", "--log1p"], "--log1p"),
    "parameter of another method": (["target.sums", "-b", "place1.sums", "--alpha", "2"], "--alpha"),
}


def test_a_wrong_fit_from_sums_fails_with_one_line_and_writes_nothing(sums, capsys):
    for change, words in WRONG_FITS.values():
        said = fails(capsys, "fit", "--from-sums", *change, "-q", "-o", "out")
        assert words in said
        assert said.count("\n") == 1
        assert not (sums / "out").exists()
