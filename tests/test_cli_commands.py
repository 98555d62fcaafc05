"""The commands beside fit, as a user starts them: new rows, what a model is, the report again, methods compared."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import standout
from cli_runs import COLUMNS, content, run, scores, table, two_datasets, works, works_here, write_pair


def test_scores_of_the_same_rows_are_the_same(fitted, here):
    folder, _ = fitted
    said = works(
        "transform",
        folder / "out" / "model.skops",
        folder / "target.csv",
        "--id-column",
        "name",
        "-o",
        "s.csv",
        cwd=here,
    )
    assert "Scores of 60 rows: s.csv" in said
    assert [row["id"] for row in table(here / "s.csv")] == [f"row {i}" for i in range(60)]
    np.testing.assert_allclose(scores(here / "s.csv"), scores(folder / "out" / "scores.csv", "target"), atol=1e-9)
    before = (here / "s.csv").read_bytes()
    works_here(
        "transform", folder / "out", folder / "target.csv", "--id-column", "name", "-o", "s.csv", "--overwrite", "-q"
    )
    assert (here / "s.csv").read_bytes() == before


def test_rows_that_the_fit_would_drop_are_dropped_and_the_others_keep_their_numbers(here, capsys):
    write_pair(here)
    works_here("fit", "target.csv", "-b", "background.csv", "--missing", "drop-rows", "-o", "out", "-q")
    (here / "new.csv").write_text("size,age,iron,zinc\n1,2,3,4\n1,2,,4\n5,6,7,8\n")
    works_here("transform", "out", "new.csv", "-o", "scores.csv")
    assert [row["id"] for row in table(here / "scores.csv")] == ["0", "2"]
    assert "1 of 3 rows were dropped" in capsys.readouterr().out


def test_models_saved_in_python_are_used_too(here, capsys):
    from sklearn.impute import SimpleImputer

    target, background, _ = two_datasets()
    frame = pd.DataFrame(target, columns=COLUMNS)
    others = pd.DataFrame(background, columns=COLUMNS)
    models = {
        "named": standout.DiscriminativePCA(2).fit(frame, background=others),
        "bare": standout.ContrastivePCA(2).fit(target, background=background),
        "pipeline": standout.make_pipeline(SimpleImputer(), standout.DiscriminativePCA(3)).fit(
            frame, background=others
        ),
    }
    frame[COLUMNS[::-1]].assign(note="text").to_csv(here / "named.csv", index=False)
    np.save(here / "bare.npy", target)
    with_gap = frame.copy()
    with_gap.loc[0, "iron"] = np.nan
    with_gap[COLUMNS[::-1]].to_csv(here / "pipeline.csv", index=False)
    for name, model in models.items():
        standout.save(model, here / f"{name}.skops")
        file = f"{name}.npy" if name == "bare" else f"{name}.csv"
        works_here("transform", f"{name}.skops", file, "-o", f"{name}-scores.csv")
        rows = {"named": frame, "bare": target, "pipeline": with_gap}[name]
        np.testing.assert_allclose(scores(here / f"{name}-scores.csv"), model.transform(rows), atol=1e-9)
    assert "!" not in capsys.readouterr().out


def test_what_is_said_of_a_model(fitted, here):
    folder, _ = fitted
    said = works("info", folder / "out", cwd=here)
    assert re.search("^model: +DiscriminativePCA$", said, re.MULTILINE)
    assert re.search("^columns: +4: size, age, iron, zinc$", said, re.MULTILINE)
    assert re.search(r"^eigenvalues: \d+", said, re.MULTILINE)
    assert re.search("^before it: +missing values: refused$", said, re.MULTILINE)


def test_what_is_said_of_a_model_that_was_not_fitted_or_is_a_pipeline(here, capsys):
    standout.save(standout.KernelDiscriminativePCA(3), here / "new.skops")
    works_here("info", "new.skops")
    said = capsys.readouterr().out
    assert "KernelDiscriminativePCA" in said
    assert "not fitted" in said
    from sklearn.preprocessing import StandardScaler

    target, background, _ = two_datasets()
    model = standout.make_pipeline(StandardScaler(), standout.ContrastivePCA(2)).fit(target, background=background)
    standout.save(model, here / "pipe.skops")
    works_here("info", "pipe.skops")
    said = capsys.readouterr().out
    assert "StandardScaler -> ContrastivePCA" in said
    assert re.search(r"^alpha: +\d", said, re.MULTILINE)


def test_a_report_that_is_made_again_is_the_same(fitted, here):
    folder, _ = fitted
    before = content(folder / "out")
    (folder / "out" / "report.html").unlink()
    (folder / "out" / "figure.png").write_bytes(b"spoilt")
    assert works("report", "out", cwd=folder).endswith("Report: out/report.html\n")
    assert content(folder / "out") == before


def test_a_compared_method_says_by_which_value_the_background_counts(fitted, here, capsys):
    folder, _ = fitted
    given = [folder / "target.csv", "-b", folder / "background.csv", "--id-column", "name", "--label-column", "kind"]
    works_here("compare", *given, "--methods", "pca,cpca,dpca", "--alpha", "2", "--shrinkage", "0.3", "-o", "page.html")
    page = (here / "page.html").read_text()
    assert [page.count(words) for words in ("α: 2, as asked.", "Shrinkage: 0.3, as asked.")] == [1, 1]
    assert page.count("PCA compares it with no background.") == 1


def test_a_page_may_go_into_a_pipe_which_has_no_name_of_a_page(fitted, here):
    folder, _ = fitted
    given = (folder / "target.csv", "-b", folder / "background.csv", "--drop", "name", "--drop", "kind")
    said = works("compare", *given, "--methods", "pca", "-q", "-o", "/dev/stdout", cwd=here)
    assert said.startswith("<!doctype html>")


def test_methods_are_compared_on_one_page(fitted, here):
    folder, _ = fitted
    said = works(
        *("compare", folder / "target.csv", "-b", folder / "background.csv", "-o", "page.html"),
        *("--id-column", "name", "--label-column", "kind", "--bandwidth", "5"),
        cwd=here,
    )
    page = (here / "page.html").read_text()
    assert page.count("<figure>") == 6
    assert "<script" not in page
    for method in (
        "PCA",
        "contrastive PCA",
        "discriminative PCA",
        "kernel contrastive PCA",
        "kernel discriminative PCA",
    ):
        assert f"<h2>{method}</h2>" in page
        assert re.search(f"^{method} +\\S+ +\\d+.\\d%  ", said, re.MULTILINE)
    assert said.endswith("Page: page.html\n")
    assert [path.name for path in here.iterdir()] == ["page.html"]


def test_without_a_command_there_is_help(here):
    done = run(cwd=here)
    assert done.returncode == 2
    assert done.stderr == ""
    for command in ("fit", "transform", "report", "info", "compare", "demo"):
        assert re.search(f"^  {command} ", done.stdout, re.MULTILINE)
    done = subprocess.run([sys.executable, "-m", "standout", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout == f"standout {standout.__version__}\n"


@pytest.mark.parametrize("command", ["fit", "transform", "report", "info", "compare", "demo"])
def test_every_command_has_help(command, capsys):
    works_here(command, "--help")
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: standout {command}")
    assert max(map(len, said.splitlines())) <= 80
    assert said.rstrip().endswith("-h, --help  Show this message and exit.")
