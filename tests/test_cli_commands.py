"""The commands beside fit, as a user starts them: transform, info, report, compare; results of earlier versions."""

import gzip
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import standout
from cli_runs import COLUMNS, FIT, content, csv_text, scores, table, two_datasets, works, works_here, write_pair

EARLIER = Path(__file__).parent / "data" / "results_0.1"


# --- transform --------------------------------------------------------------------------------------------------------


def test_scores_of_the_same_rows_are_the_same(fitted, here):
    folder, _ = fitted
    said = works(
        *("transform", folder / "out" / "model.skops", folder / "target.csv", "--id-column", "name", "-o", "s.csv"),
        cwd=here,
    )
    assert said.endswith("Scores of 60 rows: s.csv\n")
    assert [row["id"] for row in table(here / "s.csv")] == [f"row {i}" for i in range(60)]
    np.testing.assert_allclose(scores(here / "s.csv"), scores(folder / "out" / "scores.csv", "target"), atol=1e-9)


def test_output_of_a_transform_may_be_a_link_compressed_or_with_tabs(fitted, here):
    folder, _ = fitted
    (here / "real.csv").write_text("old")
    (here / "link.csv").symlink_to("real.csv")
    given = ["transform", folder / "out", folder / "target.csv", "-q", "--overwrite", "-o"]
    for name in ("link.csv", "s.csv.gz", "s.tsv"):
        works_here(*given, name)
    assert (here / "link.csv").is_symlink()
    plain = (here / "real.csv").read_text()
    assert len(plain.splitlines()) == 61
    assert gzip.decompress((here / "s.csv.gz").read_bytes()).decode() == plain
    assert (here / "s.tsv").read_text() == plain.replace(",", "\t")


def test_new_rows_are_read_batch_by_batch_from_folders_too(fitted, here, monkeypatch):
    folder, _ = fitted
    target, _, _ = two_datasets()
    (here / "new").mkdir()
    for number, part in enumerate(np.array_split(target, 4)):
        (here / "new" / f"{number}.csv").write_text(csv_text(part, note=["text"] * len(part)))
    monkeypatch.setattr("standout.io.Scan.read", None)
    works_here("transform", folder / "out", "new", "-o", "s.csv", "-q")
    assert [row["id"] for row in table(here / "s.csv")] == [str(i) for i in range(60)]
    np.testing.assert_allclose(scores(here / "s.csv"), scores(folder / "out" / "scores.csv", "target"), atol=1e-9)


def test_rows_that_the_fit_would_drop_are_dropped_and_the_others_keep_their_numbers(here, capsys):
    write_pair(here)
    works_here(*FIT, "--missing", "drop-rows", "-q")
    (here / "new.csv").write_text("size,age,iron,zinc\n1,2,3,4\n1,2,,4\n5,6,7,8\n")
    works_here("transform", "out", "new.csv", "-o", "scores.csv")
    assert [row["id"] for row in table(here / "scores.csv")] == ["0", "2"]
    assert "1 of 3 rows" in capsys.readouterr().out


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


# --- results of earlier versions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["mean", "drop-rows"])
def test_a_result_of_an_earlier_version_transforms_new_rows_as_it_did(missing, here, capsys):
    works_here("transform", EARLIER / missing, EARLIER / "target.csv", "--id-column", "name", "-o", "s.csv")
    expected = [row for row in table(EARLIER / missing / "scores.csv") if row["dataset"] == "target"]
    assert [row["id"] for row in table(here / "s.csv")] == [row["id"] for row in expected]
    np.testing.assert_allclose(scores(here / "s.csv"), scores(EARLIER / missing / "scores.csv", "target"), atol=1e-9)
    works_here("info", EARLIER / missing)
    assert "size, iron, zinc" in capsys.readouterr().out


def test_a_report_of_an_earlier_version_is_made_again(here):
    shutil.copytree(EARLIER / "mean", here / "out")
    works_here("report", "out", "-q")
    assert "zinc" in (here / "out" / "report.html").read_text()
    assert (here / "out" / "figure.png").read_bytes().startswith(b"\x89PNG")


# --- info and report --------------------------------------------------------------------------------------------------


def test_a_model_is_described(fitted, here):
    folder, _ = fitted
    said = works("info", folder / "out", cwd=here)
    assert re.search("^model: +DiscriminativePCA$", said, re.MULTILINE)
    assert re.search("^columns: +4: size, age, iron, zinc$", said, re.MULTILINE)
    assert re.search(r"^eigenvalues: \d+", said, re.MULTILINE)


def test_pipelines_and_models_that_are_not_fitted_are_described(here, capsys):
    write_pair(here)
    standout.save(standout.KernelDiscriminativePCA(3), here / "new.skops")
    works_here("info", "new.skops")
    assert "not fitted" in capsys.readouterr().out
    works_here(*FIT, "--standardize", "pooled", "--missing", "mean", "--method", "cpca", "-q")
    works_here("info", "out")
    said = capsys.readouterr().out
    assert "Preparation -> ContrastivePCA" in said
    assert re.search("^preparation: .*mean.*scaled$", said, re.MULTILINE)
    assert re.search(r"^alpha: +\d", said, re.MULTILINE)


def test_a_report_that_is_made_again_is_the_same(fitted, here):
    shutil.copytree(fitted[0] / "out", here / "out")
    before = content(here / "out")
    (here / "out" / "report.html").unlink()
    (here / "out" / "figure.png").write_bytes(b"spoilt")
    assert works("report", "out", cwd=here).endswith("Report: out/report.html\n")
    assert content(here / "out") == before


# --- compare ----------------------------------------------------------------------------------------------------------


def test_methods_are_compared_on_one_page(fitted, here):
    folder, _ = fitted
    said = works(
        *("compare", folder / "target.csv", "-b", folder / "background.csv", "-o", "page.html"),
        *("--id-column", "name", "--label-column", "kind", "--bandwidth", "5", "--stream"),
        cwd=here,
    )
    page = (here / "page.html").read_text()
    assert page.count("<figure") == 6
    for method in ("PCA", "contrastive PCA", "discriminative PCA", "kernel contrastive PCA"):
        assert f"{method}</h2>" in page
        ratio = r"[0-9.]+ \(fitted\)" if method == "PCA" else "[0-9.]+ ± [0-9.]+"
        assert re.search(f"^{method} +{ratio} +\\d+.\\d%  ", said, re.MULTILINE)
    assert re.search("^method +ratio +grouped wrongly", said, re.MULTILINE)
    assert said.endswith("Page: page.html\n")
    assert [path.name for path in here.iterdir()] == ["page.html"]


def test_a_page_may_go_into_a_pipe_which_has_no_name_of_a_page(fitted, here):
    folder, _ = fitted
    given = (folder / "target.csv", "-b", folder / "background.csv", "--drop", "name", "--drop", "kind")
    said = works("compare", *given, "--methods", "pca", "-q", "-o", "/dev/stdout", cwd=here)
    assert said.startswith("<!doctype html>")
