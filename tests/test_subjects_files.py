"""Subjects by the name of a column: frames, scans, tables, annotated cells and the command line."""

import json

import numpy as np
import pandas as pd
import pytest

import standout
from standout import DiscriminativePCA, make_pipeline
from standout._messages import InvalidValueError
from standout.cli import main
from standout.io import prepare, read_table
from standout.report import examine, summary
from standout.selection import component_test, stability


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    mice = np.repeat([f"m{number}" for number in range(24)], 10)
    rows = rng.standard_normal((240, 6)) + np.repeat(rng.standard_normal((24, 6)), 10, axis=0)
    table = pd.DataFrame(rows, columns=list("abcdef"))
    table.insert(0, "mouse", mice)
    table.insert(3, "class", np.repeat(["ill", "well"], 120))
    table["id"] = [f"{mouse}_{number % 10 + 1}" for number, mouse in enumerate(mice)]
    return table


@pytest.fixture
def halves(frame):
    numbers = frame.drop(columns=["id", "class"])
    return numbers.iloc[:120], numbers.iloc[120:]


def test_a_column_of_frames_scans_and_tables_names_the_subjects(halves, tmp_path):
    target, background = halves
    arrays = {"groups": target["mouse"], "background_groups": background["mouse"]}
    bare = [part.drop(columns="mouse") for part in halves]
    expected = DiscriminativePCA(1, test="auto").fit(bare[0], background=bare[1], **arrays)
    paths = [tmp_path / "target.csv", tmp_path / "background.parquet"]
    target.to_csv(paths[0], index=False)
    background.to_parquet(paths[1])
    pl = pytest.importorskip("polars")
    forms = {
        "pandas": halves,
        "polars": tuple(map(pl.from_pandas, (part.reset_index(drop=True) for part in halves))),
        "scan": tuple(standout.scan(path, beside="mouse") for path in paths),
        "table": tuple(read_table(path, beside=["mouse"]) for path in paths),
    }
    for name, (one, other) in forms.items():
        found = DiscriminativePCA(1, test="auto").fit(one, background=other, groups="mouse")
        np.testing.assert_allclose(found.held_out_ratio_, expected.held_out_ratio_, rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(found.p_values_, expected.p_values_, err_msg=name)
        assert found.n_subjects_ == [12, 12]
        assert list(found.feature_names_in_) == list("abcdef")
    scores = DiscriminativePCA(1).fit_transform(target, background=background, groups="mouse")
    np.testing.assert_allclose(scores, expected.transform(bare[0]), rtol=1e-9)
    assert component_test(target, background, groups="mouse", n_components=1).unit == "subjects"
    drawn = stability(target, background, groups="mouse", n_bootstrap=5)
    np.testing.assert_allclose(drawn.angles, stability(*bare, n_bootstrap=5, **arrays).angles)


def test_a_prepared_scan_keeps_its_columns_beside_the_rows(halves, tmp_path):
    target, background = (part.copy() for part in halves)
    target.iloc[3, 1] = np.nan
    for name, part in (("x", target), ("y", background)):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    scans = [standout.scan(tmp_path / f"{name}.csv", beside="mouse") for name in "xy"]
    prepared = prepare(scans[0], scans[1:], standardize="background", missing="drop-rows")
    found = DiscriminativePCA(1).fit(prepared.target, background=prepared.backgrounds, groups="mouse")
    tables = [read_table(tmp_path / f"{name}.csv", beside="mouse") for name in "xy"]
    at_once = prepare(tables[0], tables[1:], standardize="background", missing="drop-rows")
    assert len(at_once.target.beside) == 119
    same = DiscriminativePCA(1).fit(at_once.target, background=at_once.backgrounds, groups="mouse")
    np.testing.assert_allclose(found.held_out_ratio_, same.held_out_ratio_, rtol=1e-8)


def test_a_column_that_is_not_there_is_refused(halves, tmp_path):
    target, background = halves
    with pytest.raises(InvalidValueError, match="Is 'mouse' meant"):
        DiscriminativePCA(1).fit(target, background=background, groups="mous")
    target.to_csv(tmp_path / "x.csv", index=False)
    scan = standout.scan(tmp_path / "x.csv", drop="mouse")
    message = r"has no columns. Open files with standout.scan\(..., beside='mouse'\)"
    with pytest.raises(InvalidValueError, match=message):
        DiscriminativePCA(1).fit(scan, background=scan, groups="mouse")
    rows, labels = target.drop(columns="mouse").to_numpy(), np.arange(len(target)) % 2
    with pytest.raises(InvalidValueError, match=message):
        DiscriminativePCA(1, target_label=1).fit(rows, labels, groups="mouse")
    with pytest.raises(InvalidValueError, match="also beside"):
        standout.scan(tmp_path / "x.csv", columns=["a", "mouse"], beside="mouse")


def test_a_pipeline_hands_the_subjects_to_its_last_step(halves):
    from sklearn.preprocessing import StandardScaler

    target, background = (part.drop(columns="mouse") for part in halves)
    groups, others = (part["mouse"].to_numpy() for part in halves)
    model = make_pipeline(StandardScaler(), DiscriminativePCA(1, shrinkage=None))
    model.fit(target, background=[background], groups=groups, background_groups=[others])
    plain = DiscriminativePCA(1, shrinkage=None)
    plain.fit(target, background=[background], groups=groups, background_groups=[others])
    np.testing.assert_allclose(model[-1].held_out_ratio_, plain.held_out_ratio_, rtol=1e-8)


def test_donors_of_annotated_cells(frame):
    anndata = pytest.importorskip("anndata")
    obs = frame[["mouse", "class"]].astype("category").set_index(frame["id"].to_numpy())
    adata = anndata.AnnData(frame[list("abcdef")].to_numpy(), obs=obs)
    standout.tl.dpca(adata, "class", "ill", subject="mouse", test="auto", n_components=1)
    expected = component_test(
        adata.X[:120], adata.X[120:], groups=frame["mouse"][:120], background_groups=frame["mouse"][120:],
        n_components=1, shrinkage="auto",
    )  # fmt: skip
    np.testing.assert_allclose(adata.uns["dpca"]["p_values"], expected.p_values)
    assert adata.uns["dpca"]["params"]["subject"] == "mouse"
    with pytest.raises(InvalidValueError, match="subject='donor' is not a column of adata.obs"):
        standout.tl.dpca(adata, "class", "ill", subject="donor")


# --- report and command line ---------------------------------------------------------------------------------------


def test_the_report_says_how_many_subjects_there_are_and_which_test_was_made(halves):
    target, background = (part.drop(columns="mouse").to_numpy() for part in halves)
    groups, others = (part["mouse"] for part in halves)
    given = {"background": background, "groups": groups, "background_groups": others}
    model = DiscriminativePCA(1, test="auto").fit(target, **given)
    found = summary(examine(model, target, background))
    assert "the target (12 subjects, 120 rows)" in found["question"]
    assert found["datasets"][0]["subjects"] == 12
    assert found["test"]["unit"] == "subjects"
    assert any("whole subjects to the datasets" in said for said in found["choices"])
    assert not any("alike" in said for said in found["warnings"])
    assert "groups=subjects_of_target, background_groups=[subjects_of_background]" in found["code"]
    # Without a test of its own there is none by formula, which is for independent rows.
    untested = DiscriminativePCA(1, shrinkage=None).fit(target, **given)
    assert summary(examine(untested, target, background))["test"] is None


@pytest.fixture
def run(capsys):
    def started(*words):
        code = main([str(word) for word in words])
        told = capsys.readouterr()
        return code, " ".join((told.out + told.err).split())

    return started


def test_the_command_takes_the_mouse_from_ids_of_its_rows(frame, tmp_path, run):
    path = tmp_path / "mice.csv"
    frame.drop(columns="mouse").to_csv(path, index=False)
    common = ["fit", path, "--group-column", "class", "--target", "ill", "--shrinkage", "auto", "--n-components", 1]
    by_rows, by_mouse = tmp_path / "rows", tmp_path / "mice"
    code, told = run(*common, "--id-column", "id", "-o", by_rows)
    assert code == 0, told
    assert "Neighbouring rows are alike" in told
    assert "name it: --subject-column" in told
    # No verdict for rows that are not independent.
    assert "Whether this is more than chance is not known" in told
    assert "This is more than chance explains" not in told
    assert "12 different beginnings" in told
    code, told = run(*common, "--subject-column", "id", "--subject-pattern", "(.*)_", "-o", by_mouse)
    assert code == 0, told
    assert "12 subjects, 120 rows of ill" in told
    assert "Neighbouring rows are alike" not in told
    found = [json.loads((folder / "summary.json").read_text()) for folder in (by_rows, by_mouse)]
    assert [one["test"]["unit"] for one in found] == ["rows", "subjects"]
    assert found[1]["components"][0]["p_value"] > found[0]["components"][0]["p_value"]
    # The code of the page gives the same fit.
    known: dict = {"print": lambda *shown: None}
    exec(found[1]["code"], known)
    assert known["model"].n_subjects_ == [12, 12]
    assert known["model"].held_out_ratio_[0] == pytest.approx(found[1]["components"][0]["ratio"])
    mice = ["--subject-column", "id", "--subject-pattern", "(.*)_"]
    code, streamed = run(*common, *mice, "--stream", "-o", tmp_path / "s")
    assert code == 0, streamed
    parts = json.loads((tmp_path / "s" / "summary.json").read_text())
    assert parts["components"][0]["ratio"] == pytest.approx(found[1]["components"][0]["ratio"], rel=1e-6)
    assert parts["components"][0]["p_value"] == found[1]["components"][0]["p_value"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--subject-pattern", "(.*)_"], "needs --subject-column"),
        (["--subject-column", "id", "--subject-pattern", "("], "no regular expression"),
        (["--subject-column", "id", "--subject-pattern", "x"], "does not match 'm0_1', row 1"),
        (["--subject-column", "idd"], "Is 'id' meant"),
        (["--subject-column", "id", "--subject-pattern", "m"], "one subject only"),
        (["--subject-column", "id", "--test", "analytic"], "a formula for independent rows"),
    ],
)
def test_subjects_that_make_no_sense_are_refused_by_the_command(frame, tmp_path, run, words, told):
    path = tmp_path / "mice.csv"
    frame.drop(columns="mouse").to_csv(path, index=False)
    drop = [] if "id" in words else ["--drop", "id"]
    code, output = run("fit", path, "--group-column", "class", "--target", "ill", *words, *drop, "-o", tmp_path / "out")
    assert code != 0
    assert told in output
    assert not (tmp_path / "out").exists()
