"""The commands other than fit, and what the terminal shows while they work."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import time

import numpy as np
import pandas as pd
import pytest

import standout
from cli_runs import (
    COLUMNS,
    FIT,
    RESULT,
    STANDOUT,
    csv_text,
    scores,
    summary,
    table,
    two_datasets,
    works,
    works_here,
    write_conditions,
    write_pair,
)
from standout.cli import _display
from standout.report._words import percent

# --- other commands ---------------------------------------------------------------------------------------------------


def test_new_rows_get_the_scores_of_the_fit(fitted, here):
    folder, _ = fitted
    said = works("transform", folder / "out", folder / "target.csv", "-o", "new.csv", cwd=here)
    assert said.endswith("Scores of 60 rows: new.csv\n")
    assert table(here / "new.csv")[5]["id"] == "row 5"
    found, expected = scores(here / "new.csv"), scores(folder / "out" / "scores.csv", "target")
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (
        works("transform", folder / "out", folder / "target.csv", "-o", "/dev/stdout", "-q", cwd=here).count("\n") == 61
    )


def test_info_describes_a_model_with_its_ratio(fitted, capsys):
    folder, _ = fitted
    works_here("info", folder / "out")
    said = capsys.readouterr().out
    ratio = summary(folder / "out")["components"][0]["ratio"]
    assert f"ratio {ratio:.3g} (" in said
    assert re.search(r"shrinkage 0\.\d+ \(chosen\)", said)
    assert "columns:     'size', 'age', 'iron', 'zinc'" in said


def test_methods_are_compared_on_one_page(fitted, here):
    folder, _ = fitted
    given = (folder / "target.csv", "-b", folder / "background.csv", "--id-column", "name", "--label-column", "kind")
    said = works("compare", *given, "--bandwidth", "5", "-o", "page.html", cwd=here)
    page = (here / "page.html").read_text()
    assert page.count("<figure") == 6
    for method in ("PCA", "contrastive PCA", "discriminative PCA", "kernel contrastive PCA"):
        assert f"{method}</h2>" in page
        assert re.search(rf"^{method} +[\d.]+ \([\d.]+ to [\d.]+\) +\d+.\d%  ", said, re.MULTILINE)
    # PCA has a row of the table, so the caution is left out.
    assert "PCA does better here" not in said
    assert said.endswith("Page: page.html\n")
    assert [path.name for path in here.iterdir()] == ["page.html"]


def test_names_of_columns_may_be_numbers(here):
    write_pair(here)
    for file in ("target.csv", "background.csv"):
        lines = (here / file).read_text().splitlines()
        (here / file).write_text("\n".join(["1100,1104,1108,1112", *lines[1:]]) + "\n")
    works_here(*FIT, "--no-test", "-q", "--header", "True")
    assert summary(here / "out")["components"][0]["columns"][0]["name"] == "1112"
    works_here("transform", "out/model.skops", "target.csv", "-o", "new.csv", "--header", "True")
    assert len((here / "new.csv").read_text().splitlines()) == 61


def test_a_cube_has_no_cautions_on_subjects_that_nobody_named(here):
    cube = np.random.default_rng(0).normal(size=(60, 20, 12))
    cube[..., 5] += np.linspace(0.0, 8.0, 60)[:, np.newaxis]
    np.save(here / "cube.npy", cube)
    works_here("fit", "--cube", "cube.npy", "-o", "out", "--no-test", "-q")
    found = summary(here / "out")
    assert found["components"][0]["columns"][0]["name"] == "band 6"
    assert {"shared subjects", "few background rows"}.isdisjoint(one["kind"] for one in found["cautions"])


def test_a_screen_finds_the_condition_that_differs(here, capsys):
    write_conditions(here / "all.csv")
    form = ["screen", "all.csv", "--condition-column", "kind", "--control", "ctrl", "--exclude", "name"]
    works_here(*form, "-o", "screen.csv")
    assert "high" in capsys.readouterr().out
    found = {row["label"]: row["verdict"] for row in table(here / "screen.csv")}
    assert found == {"high": "stands out", "low": "stands out", "other": "no evidence"}
    works_here(*form, "-o", "screen.html", "-q")
    assert "stands out" in (here / "screen.html").read_text()


def test_the_demo_has_one_picture_and_one_number(here, capsys):
    works_here("demo", "-o", "demo")
    said = capsys.readouterr().out
    found = summary(here / "demo")
    own, by_pca = (percent(found["labels"][name]) for name in ("error", "pca_error"))
    assert f"puts {own} of the rows into the wrong group in this view and {by_pca} in PCA's." in said
    assert found["labels"]["error"] < 0.1 < found["labels"]["pca_error"]
    assert {path.name for path in (here / "demo").iterdir()} == RESULT
    works_here("demo", "-o", "demo", "-q")


def test_private_sums_are_released_and_fitted(here, capsys):
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    rng = np.random.default_rng(0)
    columns = ["=size", *COLUMNS[1:]]
    budget = ["--ranges", "ranges.csv", "--epsilon", "1", "--delta", "1e-6"]
    pd.DataFrame({"column": columns, "low": [-30, -3, -6, -9], "high": [30, 3, 6, 9]}).to_csv("ranges.csv", index=False)
    for name, spread in (("target", [10, 1, 2, 5]), ("place1", [10, 1, 2, 1]), ("place2", [10, 1, 2, 1])):
        frame = pd.DataFrame(rng.normal(size=(4000, 4)) * spread, columns=columns)
        frame["patient"] = [f"p{number % 1500}" for number in range(4000)]
        frame.to_parquet(here / f"{name}.parquet")
        works_here("release", f"{name}.parquet", "--exclude", "patient", *budget, "-o", f"{name}.sums")
    assert "epsilon 1, delta 1e-06 for each row" in capsys.readouterr().out
    works_here("fit", "--from-sums", "target.sums", "--background", "place*.sums", "-o", "out", "--spreadsheet")
    said = capsys.readouterr().out
    assert re.search(r"^1 +[\d.]+ +[\d.]+ % +zinc", said, re.MULTILINE)
    assert {path.name for path in (here / "out").iterdir()} == RESULT - {"figure.png", "scores.csv"}
    assert "'=size" in (here / "out" / "columns.csv").read_text()
    told = summary(here / "out")
    assert [one["files"] for one in told["datasets"]] == [["target.sums"], ["place1.sums", "place2.sums"]]
    assert told["components"][0]["columns"][0]["name"] == "zinc"
    page = (here / "out" / "report.html").read_text()
    assert "epsilon 1, delta 1e-06 for each row" in page
    assert "<script" not in page
    works_here("transform", "out", "target.parquet", "-q", "-o", "scores.csv")
    works_here(
        "release", "target.parquet", "--person-column", "patient", "--max-rows", "2", *budget, "-q", "-o", "a.sums"
    )
    found = standout.private.PrivateMoments.load("a.sums")
    assert (found.spent[0].unit, found.spent[0].max_rows) == ("person", 2)
    whiten = ["--whiten-by", "place*.sums", "--epsilon", "1", "--delta", "1e-6", "--exclude", "patient"]
    works_here("release", "target.parquet", *whiten, "-q", "-o", "white.sums")
    works_here("fit", "--from-sums", "white.sums", "-b", "place*.sums", "-q", "-o", "white")
    assert summary(here / "white")["components"][0]["columns"][0]["name"] == "zinc"


# --- progress ---------------------------------------------------------------------------------------------------------


def test_a_long_stage_has_a_line_every_interval_with_the_time_left(monkeypatch, capsys):
    monkeypatch.setattr(_display, "INTERVAL", 0.2)
    display = _display.Display(quiet=False)
    with display.working():
        display.stage("testing")
        for done in range(1, 8):
            display.progress("permutations", done, 10)
            time.sleep(0.15)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "testing"
    assert re.fullmatch(r"testing: permutations, \d s, \d+ %, about \d+ s left", said[-1])


def test_parts_of_a_stage_that_run_at_the_same_time_share_a_bar():
    display = _display.Display(quiet=True)
    with display.working():
        display.stage("reading")
        shown = []
        # Both files end before the next part begins. The number of rows of the last file is unknown.
        for part in (("a", 5, 10), ("b", 0, 30), ("a", 10, 10), ("b", 30, 30), ("c", 1, 4), ("d", 2, 0)):
            display.progress(*part)
            shown += [(task.completed, task.total) for task in display._bar.tasks]
        assert shown == [(5, 10), (5, 40), (10, 40), (40, 40), (1, 4), (3, 0)]


def test_a_terminal_shows_a_bar_and_the_result(here):
    write_pair(here)
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    with subprocess.Popen([STANDOUT, *FIT], cwd=here, stdout=child, stderr=child, stdin=child) as process:
        os.close(child)
        said = b""
        while True:
            try:
                said += os.read(parent, 4096)
            except OSError:
                break
        assert process.wait() == 0
    os.close(parent)
    text = said.decode()
    assert "testing the components" in text
    assert "left" in text
    assert "Report: out/report.html" in text


def test_names_from_data_are_text_in_every_file(here):
    name = "<script>alert(1)</script>"
    target, background, _ = two_datasets()
    columns = [name, "=cmd", *COLUMNS[2:]]
    (here / "target.csv").write_text(csv_text(target, columns))
    (here / "background.csv").write_text(csv_text(background, columns))
    works_here(*FIT, "--spreadsheet", "--no-test", "-q", "--title", name, "--target-name", name)
    page = (here / "out" / "report.html").read_text()
    assert name not in page
    assert [row["column"] for row in table(here / "out" / "columns.csv")][:2] == [name, "'=cmd"]
    assert json.loads((here / "out" / "summary.json").read_text())["title"] == name


def test_columns_that_both_files_leave_out_have_one_line_and_units_do_not_hide_a_finding(here):
    rng = np.random.default_rng(3)
    for name, spread, n in (("target", 5.0, 200), ("background", 1.0, 180)):
        table = pd.DataFrame({"note": ["ok"] * n, "fee": [f"${fee:,.2f}" for fee in rng.lognormal(5, 1, n)]})
        table["revenue"], table["score"] = rng.lognormal(10, 1, n), spread * rng.normal(size=n)
        table.to_csv(f"{name}.csv", index=False)
    works_here(*FIT)
    found = summary(here / "out")
    assert len([one for one in found["cautions"] if "Not used as data" in one["text"]]) == 1
    # The standard deviation of revenue is 10,000 times that of score.
    assert found["verdict"] == "stands out"
    assert found["components"][0]["columns"][0]["name"] == "score"
    assert any(one["kind"] == "units" and one["advice"].endswith("use --scale pooled.") for one in found["cautions"])
