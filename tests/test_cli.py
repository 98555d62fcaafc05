"""The commands as a user starts them: what is read, what is written, and what is printed."""

import re
import subprocess

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

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
from standout._options import LINEAR, METHODS
from standout.report._words import number

# --- the result -------------------------------------------------------------------------------------------------------


def test_a_fit_writes_all_that_was_promised_and_nothing_else(fitted):
    folder, _ = fitted
    out = folder / "out"
    assert {path.name for path in folder.iterdir()} == {"target.csv", "background.csv", "out"}
    assert {path.name for path in out.iterdir()} == RESULT
    rows = table(out / "scores.csv")
    assert list(rows[0]) == ["dataset", "id", "label", "component_1", "component_2", "held_out_1", "held_out_2"]
    assert [row["dataset"] for row in rows] == ["target"] * 60 + ["background"] * 60
    assert [row["id"] for row in rows[:2]] == ["row 0", "row 1"]
    assert {row["label"] for row in rows[:60]} == {"low", "high"}
    columns = table(out / "columns.csv")
    assert [row["column"] for row in columns] == COLUMNS
    model = standout.load(out / "model.skops")
    assert model.feature_names_in_.tolist() == COLUMNS
    for name, attribute in (("correlation", "correlations_"), ("pattern", "patterns_"), ("filter", "components_")):
        np.testing.assert_array_equal([float(row[f"{name}_1"]) for row in columns], getattr(model, attribute)[0])
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_scores_are_those_of_the_estimator_with_its_defaults(fitted):
    folder, _ = fitted
    target, background, _ = two_datasets()
    model = standout.DiscriminativePCA().fit(target, background=background)
    # Columns are matched by name: the background's file has them in the reverse order.
    found = scores(folder / "out" / "scores.csv")
    np.testing.assert_allclose(found, np.r_[model.transform(target), model.transform(background)], atol=1e-9)


RATIOS = {
    "plain": [],
    "wide": [],
    "scaled": ["--scale", "pooled"],
    "about the background": ["--center", "background"],
    "robust": ["--robust", "cells"],
    "subjects": ["--subject-column", "who"],
}
CROSSED = [(method, case) for method in METHODS for case in RATIOS if case != "scaled" or method in LINEAR]


@pytest.mark.parametrize(("method", "case"), CROSSED)
def test_every_file_has_the_same_ratio(method, case, here):
    parts, names = two_datasets()[:2], COLUMNS
    if case == "wide":
        rng = np.random.default_rng(1)
        parts, names = [np.c_[part, rng.normal(size=(60, 140))] for part in parts], [f"gene {k}" for k in range(144)]
    for name, rows in zip(("target", "background"), parts, strict=True):
        (here / f"{name}.csv").write_text(csv_text(rows, names, who=[f"{name} {i // 6}" for i in range(60)]))
    given = [] if "who" in RATIOS[case] else ["--exclude", "who"]
    works_here(*FIT, "--method", method, *given, *RATIOS[case], "--no-test", "-q")
    ratio = summary(here / "out")["components"][0]["ratio"]
    assert standout.load("out/model.skops").ratio_[0] == pytest.approx(ratio, rel=1e-12)
    assert f"<b>{number(ratio)} ×</b>" in (here / "out" / "report.html").read_text()
    moments = []
    for name in ("target", "background"):
        rows = [row for row in table(here / "out" / "scores.csv") if row["dataset"] == name]
        first, weights = (np.array([float(row.get(key, 1)) for row in rows]) for key in ("held_out_1", "weight"))
        about = 0 if case == "about the background" and name == "target" else np.average(first, weights=weights)
        moments.append(np.average((first - about) ** 2, weights=weights))
    assert moments[0] / moments[1] == pytest.approx(ratio, rel=1e-6)


def test_the_terminal_shows_headline_numbers_cautions_and_where_the_files_are(fitted):
    folder, said = fitted
    found = summary(folder / "out")
    for stage in ("reading target", "fitting discriminative PCA", "testing the components", "writing the report"):
        assert re.search(f"^{stage}", said, re.MULTILINE)
    assert found["headline"] in said
    assert re.search(r"^\d +[\d.]+ \([\d.]+ to [\d.]+\) +0.005 +zinc, ", said, re.MULTILINE)
    assert f"{number(found['components'][0]['ratio'])} (" in said
    assert "60 + 60 rows, 4 columns\n" in said
    for one in found["cautions"]:
        assert one["text"][1:] in said
    assert said.endswith("Report: out/report.html\n")
    assert found["labels"]["error"] < 0.1
    assert found["command"].startswith("standout fit target.csv --background background.csv")


def test_labels_never_influence_the_fit(fitted, here):
    folder, _ = fitted
    (here / "background.csv").write_text(csv_text(two_datasets()[1], kind=["x"] * 60, name=["y"] * 60))
    given = [folder / "target.csv", "-b", "background.csv", "--id-column", "name", "--exclude", "kind"]
    works_here("fit", *given, "-o", "out", "-q")
    assert scores(here / "out" / "scores.csv").tolist() == scores(folder / "out" / "scores.csv").tolist()
    assert "label" not in table(here / "out" / "scores.csv")[0]


# --- data -------------------------------------------------------------------------------------------------------------


def test_files_of_every_kind_are_read_and_columns_found_by_name(here):
    target, background, kinds = two_datasets()
    pd.DataFrame(target, columns=COLUMNS).assign(kind=kinds).to_parquet(here / "target.parquet")
    parts = np.array_split(background, 6)
    (here / "b1.tsv").write_text(csv_text(parts[0][:, ::-1], COLUMNS[::-1], delimiter="\t"))
    parquet.write_table(pa.table(dict(zip(COLUMNS, parts[1].T, strict=True))), here / "b2.parquet")
    feather.write_feather(pa.table(dict(zip(COLUMNS, parts[2].T, strict=True))), here / "b3.feather")
    np.save(here / "b4.npy", parts[3])
    np.savez(here / "b5.npz", rows=parts[4])
    cells = pd.DataFrame(index=[f"cell {i}" for i in range(10)])
    anndata.AnnData(parts[5], cells, pd.DataFrame(index=COLUMNS)).write_h5ad(here / "b6.h5ad")
    files = [word for path in sorted(here.glob("b*")) for word in ("-b", path.name)]
    model = standout.DiscriminativePCA().fit(target, background=parts)
    expected = np.concatenate([model.transform(part) for part in (target, *parts)])
    for way in ("--in-memory", "--stream"):
        works_here("fit", "target.parquet", *files, "--label-column", "kind", way, "--no-test", "-o", way[2:], "-q")
        np.testing.assert_allclose(scores(here / way[2:] / "scores.csv"), expected, atol=1e-8)
        assert table(here / way[2:] / "scores.csv")[-1]["id"] == "cell 9"


@pytest.mark.parametrize("way", ["--in-memory", "--stream"])
def test_conditions_of_one_file_with_values_missing(way, here):
    write_conditions(here / "all data.csv", gap=2)
    form = [
        "fit",
        "all data.csv",
        "--condition-column",
        "kind",
        "--target",
        "low",
        "--target",
        "high",
        way,
        "--no-test",
    ]
    works_here(
        *form, "--background-condition", "ctrl", "--id-column", "name", "--missing", "drop-rows", "-o", "out", "-q"
    )
    found = summary(here / "out")
    assert any("1 row" in one["text"] and "missing" in one["text"] for one in found["cautions"])
    assert [(part["name"], part["rows"]) for part in found["datasets"]] == [("low + high", 59), ("ctrl", 30)]
    # The conditions of the target are its labels.
    assert found["labels"]["error"] < 0.1
    assert {row["label"] for row in table(here / "out" / "scores.csv")} == {"low", "high", ""}
    # All other conditions are backgrounds if none is named.
    works_here(*form, "--exclude", "name", "--missing", "median", "-o", "two", "-q")
    assert [part["name"] for part in summary(here / "two")["datasets"]] == ["low + high", "ctrl", "other"]
    assert [part["rows"] for part in summary(here / "two")["datasets"]] == [60, 30, 30]


def test_a_mixed_table_works_with_one_line_on_what_is_left_out(here):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 4)) * [1, 1, 1, 5000], columns=COLUMNS)
    frame.insert(0, "customer_id", [f"C{i}" for i in range(90)])
    frame = frame.assign(day="2024-05-06", city=["Rome", "Oslo", "Kyiv"] * 30, one=1.0, price="€1,038.48")
    frame["churn"] = ["yes", "no"] * 45
    frame.to_csv("messy.csv", index=False)
    form = ["fit", "messy.csv", "--condition-column", "churn", "--target", "yes"]
    said = works(*form, "-o", "out", cwd=here)
    line = next(line for line in said.splitlines() if line.startswith("! Not used as data"))
    for word in ("'city' (text)", "'price' (text, such as '€1,038.48')", "without currency", "--exclude"):
        assert word in line
    assert "'one'" in said
    assert "standout fit messy.csv --condition-column churn --target yes -o out --scale pooled --overwrite" in said
    assert table(here / "out" / "scores.csv")[0]["id"] == "C0"
    assert [row["column"] for row in table(here / "out" / "columns.csv")] == COLUMNS
    done = subprocess.run(
        [STANDOUT, *form, "--strict", "-o", "no"], cwd=here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert all(word in done.stderr for word in ("'day'", "'city'", "'price'"))


def test_a_text_column_without_repetitions_names_the_rows_and_their_subjects_are_offered(here):
    target, background, _ = two_datasets(n=90)
    names = [f"{300 + i // 10}_{i % 10}" for i in range(90)]
    (here / "target.csv").write_text(csv_text(target, site=["a", "b"] * 45, MouseID=names))
    (here / "background.csv").write_text(csv_text(background, site=["a", "b"] * 45, MouseID=names))
    said = works(*FIT, cwd=here)
    assert "--subject-column MouseID --subject-pattern '(.*)_'" in said
    assert table(here / "out" / "scores.csv")[11]["id"] == "301_1"


def test_a_text_column_is_offered_for_the_subjects_of_dependent_rows(here):
    rng = np.random.default_rng(0)
    for name in ("target", "background"):
        rows = np.cumsum(rng.normal(size=(200, 3)), axis=0)
        (here / f"{name}.csv").write_text(csv_text(rows, COLUMNS[:3], who=[f"{name}{i // 20}" for i in range(200)]))
    works_here(*FIT, "--no-test", "-q")
    assert "(--subject-column who)" in summary(here / "out")["cautions"][0]["advice"]


def test_rows_are_chosen_by_the_value_of_a_column(here):
    write_conditions(here / "all.csv")
    whole = pd.read_csv(here / "all.csv")
    whole.assign(sex="f").to_csv(here / "target.csv", index=False)
    whole.assign(sex=["f", "m"] * 60).to_csv(here / "background.csv", index=False)
    chosen = ["--exclude", "name", "--where", "sex=f", "--where", "kind=low", "--where", "kind=high"]
    works_here(*FIT, *chosen, "--no-test", "-q")
    assert [part["rows"] for part in summary(here / "out")["datasets"]] == [60, 30]


def test_subjects_weights_blocks_and_covariates_reach_the_fit(here):
    target, background, _ = two_datasets()
    rng = np.random.default_rng(1)
    ages = rng.integers(20, 60, size=(2, 60))
    weights = rng.uniform(0.5, 2, size=(2, 60)).round(3)
    for k, (name, rows) in enumerate((("target", target), ("background", background))):
        words = {"cell": [f"{name}{i // 10}_{i}" for i in range(60)], "years": ages[k], "share": weights[k]}
        (here / f"{name}.csv").write_text(csv_text(rows, **words))
    asked = {
        "subjects": [
            "--subject-column",
            "cell",
            "--subject-pattern",
            "(.*)_",
            "--exclude",
            "years",
            "--exclude",
            "share",
        ],
        "weights": ["--weight-column", "share", "--exclude", "cell", "--exclude", "years"],
        "adjust": ["--adjust", "years", "--exclude", "cell", "--exclude", "share"],
        "blocks": ["--blocks", "10", "--exclude", "years", "--exclude", "cell", "--exclude", "share"],
    }
    facts = {
        "subjects": {"groups": np.arange(60) // 10, "background_groups": 10 + np.arange(60) // 10},
        "weights": {"sample_weight": weights[0], "background_sample_weight": weights[1]},
        "adjust": {"adjust": ages[0][:, None], "background_adjust": ages[1][:, None]},
    }
    facts["blocks"] = facts["subjects"]
    for case, words in asked.items():
        works_here(*FIT[:-1], case, *words, "--no-test", "-q")
        model = standout.DiscriminativePCA().fit(target, background=background, **facts[case])
        found = standout.load(here / case / "model.skops")
        np.testing.assert_allclose(found.ratio_, model.ratio_, rtol=1e-7)
    assert summary(here / "subjects")["datasets"][0]["subjects"] == 6
    works_here(*FIT[:-1], "within", *asked["subjects"], "--within", "--no-test", "-q")
    assert summary(here / "within")["components"][0]["ratio"] != summary(here / "subjects")["components"][0]["ratio"]


def test_what_is_done_to_the_data_is_done_to_new_rows(here):
    target, background, _ = two_datasets()
    counts, others = np.exp(target / 5), np.exp(background / 5)
    counts[4, 2] = np.nan
    frame = pd.DataFrame(counts, columns=COLUMNS)
    frame.to_csv(here / "target.csv", index=False)
    pd.DataFrame(others, columns=COLUMNS).to_csv(here / "background.csv", index=False)
    prepared = ["--columns", "*i*", "--exclude", "size", "--log1p", "--scale", "pooled", "--missing", "mean"]
    works_here(*FIT, *prepared, "--no-test", "-q")
    assert [row["column"] for row in table(here / "out" / "columns.csv")] == ["iron", "zinc"]
    expected = scores(here / "out" / "scores.csv", "target")
    # Further columns may be there, even text, in any order.
    frame[COLUMNS[::-1]].assign(note="text").to_csv(here / "new.csv", index=False)
    works_here("transform", "out", "new.csv", "-o", "scores.csv", "-q")
    np.testing.assert_allclose(scores(here / "scores.csv"), expected, atol=1e-9)
    # The saved model is a pipeline for rows as they are in the file.
    model = standout.load(here / "out" / "model.skops")
    np.testing.assert_allclose(model.transform(frame[["iron", "zinc"]]), expected, atol=1e-9)


def test_files_that_do_not_fit_into_memory_are_streamed(here, monkeypatch, capsys):
    write_pair(here)
    monkeypatch.setattr("standout.cli._data._available", lambda: 1000.0)
    works_here(*FIT, "--no-test")
    assert re.search(r"read in parts \(0\.0 GB needed, 0\.0 GB available\)", capsys.readouterr().out)


def test_streamed_files_are_read_once_for_the_fit_the_test_and_the_report(here, monkeypatch):
    write_pair(here)
    reads, read = [], standout.io.Scan._read

    def counted(scan):
        reads.append(scan.name)
        return read(scan)

    monkeypatch.setattr(standout.io.Scan, "_read", counted)
    works_here(*FIT, "--stream", "-q")
    assert len(reads) == 2 * 3


@pytest.mark.parametrize("method", ["dpca", "cpca", "kdpca", "kcpca", "pca", "kpca"])
def test_every_method_has_a_report(method, here):
    write_pair(here)
    works_here(*FIT, "--method", method, "--n-draws", "19", "-q")
    found = summary(here / "out")
    assert (found["test"] is None) == (method in ("pca", "kpca"))
    works_here("info", "out")
