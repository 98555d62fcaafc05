"""``standout fit`` as a user starts it: every group of options, what is written, and what is printed."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import warnings

import h5py
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
    write_groups,
    write_pair,
)
from standout.io import MemoryNeed

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
    loadings = table(out / "loadings.csv")
    assert [row["feature"] for row in loadings] == COLUMNS
    model = standout.load(out / "model.skops")
    assert model.feature_names_in_.tolist() == COLUMNS
    np.testing.assert_array_equal([float(row["filter_1"]) for row in loadings], model.components_[0])
    np.testing.assert_array_equal([float(row["pattern_2"]) for row in loadings], model.patterns_[1])
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_scores_are_those_of_the_estimator(fitted):
    folder, _ = fitted
    target, background, _ = two_datasets()
    model = standout.DiscriminativePCA(2, shrinkage="clusters").fit(target, background=background)
    # Columns are matched by name: the background's file has them in the reverse order.
    found = scores(folder / "out" / "scores.csv")
    np.testing.assert_allclose(found, np.r_[model.transform(target), model.transform(background)], atol=1e-9)


def test_the_terminal_shows_what_was_found_how_it_was_chosen_and_where_it_is(fitted):
    folder, said = fitted
    found = summary(folder / "out")
    for stage in ("reading target.csv", "fitting discriminative PCA: moments, shrinkage", "writing the report"):
        assert re.search(f"^{stage}", said, re.MULTILINE)
    assert found["headline"] in said
    assert re.search(r"^1 +\d+\.\d+ ± \d+\.\d+ +0.005 +zinc, ", said, re.MULTILINE)
    for choice in found["choices"]:
        assert f"- {choice}\n" in said
    assert said.endswith("Report: out/report.html\n")
    assert found["clustering_error"] < 0.1
    assert found["options"]["label_column"] == "kind"
    assert sum(found["seconds"].values()) > 0


def test_labels_never_influence_the_fit(fitted, here):
    folder, _ = fitted
    (here / "background.csv").write_text(csv_text(two_datasets()[1], kind=["x"] * 60, name=["y"] * 60))
    given = [folder / "target.csv", "-b", "background.csv", "--id-column", "name", "--drop", "kind"]
    works_here("fit", *given, "-o", "out", "-q")
    assert scores(here / "out" / "scores.csv").tolist() == scores(folder / "out" / "scores.csv").tolist()
    assert "label" not in table(here / "out" / "scores.csv")[0]


@pytest.mark.parametrize("options", [[], ["--log1p", "--standardize", "background", "--missing", "mean"]], ids=str)
def test_the_code_of_the_report_does_the_same(options, here):
    target, background, _ = two_datasets()
    target, background = np.exp(target / 5), np.exp(background / 5)
    if options:
        target[3, 2] = np.nan
    (here / "target.csv").write_text(csv_text(target).replace("nan", ""))
    (here / "background.csv").write_text(csv_text(background))
    works_here(*FIT, "--drop", "age", "--shrinkage", "0.2", *options, "-q")
    done = {}
    exec(summary(here / "out")["code"], done)
    np.testing.assert_allclose(done["scores"], scores(here / "out" / "scores.csv", "target"), atol=1e-9)


# --- data -------------------------------------------------------------------------------------------------------------


def test_files_of_every_kind_are_read_and_columns_found_by_name(here):
    target, background, groups = two_datasets()
    frame = pd.DataFrame(target, columns=COLUMNS).assign(kind=groups)
    frame.to_parquet(here / "target.parquet")
    parts = np.array_split(background, 6)
    (here / "b1.tsv").write_text(csv_text(parts[0][:, ::-1], COLUMNS[::-1], delimiter="\t"))
    parquet.write_table(pa.table(dict(zip(COLUMNS, parts[1].T, strict=True))), here / "b2.parquet")
    feather.write_feather(pa.table(dict(zip(COLUMNS, parts[2].T, strict=True))), here / "b3.feather")
    np.save(here / "b4.npy", parts[3])
    np.savez(here / "b5.npz", rows=parts[4])
    with h5py.File(here / "b6.h5ad", "w") as file:
        file["X"] = parts[5]
        for name, index in (("obs", [f"cell {i}" for i in range(10)]), ("var", COLUMNS)):
            file.create_group(name).attrs["_index"] = "_index"
            file[name]["_index"] = index
    files = [word for path in sorted(here.glob("b*")) for word in ("-b", path.name)]
    model = standout.DiscriminativePCA(2, shrinkage="clusters").fit(target, background=parts)
    expected = np.concatenate([model.transform(part) for part in (target, *parts)])
    for way in ("--in-memory", "--stream"):
        works_here("fit", "target.parquet", *files, "--label-column", "kind", way, "-o", way[2:], "-q")
        np.testing.assert_allclose(scores(here / way[2:] / "scores.csv"), expected, atol=1e-9)
        assert table(here / way[2:] / "scores.csv")[-1]["id"] == "cell 9"


@pytest.mark.parametrize("way", ["--in-memory", "--stream"])
def test_folders_and_patterns_of_files_are_one_dataset(way, here):
    target, background, _ = two_datasets()
    (here / "ill").mkdir()
    for number, part in enumerate(np.array_split(target, 3)):
        (here / "ill" / f"part-{number}.csv").write_text(csv_text(part))
    for number, part in enumerate(np.array_split(background, 2)):
        np.save(here / f"well-{number}.npy", part)
    works_here("fit", "ill", "-b", "well-*.npy", way, "-o", "out", "-q")
    write_pair(here)
    works_here(*FIT[:-1], "whole", way, "-q")
    assert [part["rows"] for part in summary(here / "out")["datasets"]] == [60, 60]
    assert summary(here / "out")["datasets"][0]["name"] == "ill"
    assert table(here / "out" / "scores.csv")[59]["id"] == "59"
    np.testing.assert_allclose(scores(here / "out" / "scores.csv"), scores(here / "whole" / "scores.csv"), atol=1e-9)


@pytest.mark.parametrize("way", ["--in-memory", "--stream"])
def test_a_fit_of_groups_in_one_file_with_values_missing(way, here):
    write_groups(here / "all data.csv", gap=2)
    form = ["fit", "all data.csv", "--group-column", "kind", "--target", "low", "--target", "high", way]
    named = [*form, "--background-group", "ctrl", "--id-column", "name", "--missing", "drop-rows"]
    said = works(*named, "-o", "out", cwd=here) if way == "--stream" else works_here(*named, "-o", "out", "-q")
    found = summary(here / "out")
    assert said is None or re.search("^! 1 row.* 'low \\+ high' .*missing", said, re.MULTILINE)
    assert [(part["name"], part["rows"]) for part in found["datasets"]] == [("low + high", 59), ("ctrl", 30)]
    assert found["clustering_error"] < 0.1  # the target's groups are its labels
    assert {row["label"] for row in table(here / "out" / "scores.csv")} == {"low", "high", ""}
    # All other groups are backgrounds if none is named. Rows without names keep their number in the file.
    works_here(*form, "--drop", "name", "--missing", "drop-rows", "--standardize", "background", "-o", "two", "-q")
    assert [part["name"] for part in summary(here / "two")["datasets"]] == ["low + high", "ctrl", "other"]
    assert [row["id"] for row in table(here / "two" / "scores.csv")] == [str(i) for i in range(120) if i != 2]
    for missing, kept in (("mean", 4), ("drop-columns", 3)):
        works_here(*form, "--drop", "name", "--missing", missing, "-o", missing, "-q")
        assert len(table(here / missing / "loadings.csv")) == kept
        assert any("missing" in sentence for sentence in summary(here / missing)["warnings"])


def test_rows_are_chosen_by_the_value_of_a_column(here):
    write_groups(here / "all.csv")
    whole = pd.read_csv(here / "all.csv")
    whole.assign(sex="f").to_csv(here / "target.csv", index=False)
    whole.assign(sex=["f", "m"] * 60).to_csv(here / "background.csv", index=False)
    chosen = ["--drop", "name", "--where", "sex=f", "--where", "kind=low", "--where", "kind=high"]
    works_here(*FIT, *chosen, "-q")
    assert [part["rows"] for part in summary(here / "out")["datasets"]] == [60, 30]
    assert table(here / "out" / "scores.csv")[-1]["id"] == "58"


def test_a_file_may_have_another_name_or_hold_several_arrays(here):
    target, background, groups = two_datasets()
    write_pair(here)
    (here / "target.csv").rename(here / "target.dat")
    (here / "background.csv").rename(here / "background.dat")
    works_here("fit", "target.dat", "-b", "background.dat", "--format", "csv", "--drop", "size", "-o", "out", "-q")
    np.savez(here / "a.npz", rows=target[:, 1:], other=target, kind=groups)
    np.savez(here / "b.npz", rows=background[:, 1:], other=background)
    works_here("fit", "a.npz", "-b", "b.npz", "--variable", "rows", "--label-column", "kind", "-o", "two", "-q")
    np.testing.assert_allclose(scores(here / "out" / "scores.csv"), scores(here / "two" / "scores.csv"), atol=1e-9)


def test_what_is_done_to_the_data_is_done_to_new_rows(here):
    target, background, _ = two_datasets()
    counts, others = np.exp(target / 5), np.exp(background / 5)
    counts[4, 2] = np.nan
    frame = pd.DataFrame(counts, columns=COLUMNS)
    frame.to_csv(here / "target.csv", index=False)
    pd.DataFrame(others, columns=COLUMNS).to_csv(here / "background.csv", index=False)
    works_here(
        *FIT, "--columns", "*i*", "--drop", "size", "--log1p", "--standardize", "pooled", "--missing", "mean", "-q"
    )
    assert [row["feature"] for row in table(here / "out" / "loadings.csv")] == ["iron", "zinc"]
    assert any(sentence.startswith("1 missing value") for sentence in summary(here / "out")["warnings"])
    expected = scores(here / "out" / "scores.csv", "target")
    # Further columns may be there, even text, in any order.
    frame[COLUMNS[::-1]].assign(note="text").to_csv(here / "new.csv", index=False)
    works_here("transform", "out", "new.csv", "-o", "scores.csv", "-q")
    np.testing.assert_allclose(scores(here / "scores.csv"), expected, atol=1e-9)
    # The saved model is a pipeline that takes the rows as they are in the file.
    model = standout.load(here / "out" / "model.skops")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.transform(frame[COLUMNS[::-1]]), expected, atol=1e-9)
    assert frame.equals(pd.DataFrame(counts, columns=COLUMNS))


def test_labels_that_are_many_numbers_are_a_scale_and_empty_ones_are_missing(here):
    target, _, groups = two_datasets()
    write_pair(here)
    ages = [f"{age:.1f}" for age in np.linspace(1, 9, 60)]
    ages[3], groups[3] = "", ""
    (here / "target.csv").write_text(csv_text(target, age_=ages, who=groups))
    works_here(*FIT, "--overwrite", "--label-column", "age_", "--drop", "who", "-q")
    assert '<span class="scale">' in (here / "out" / "report.html").read_text()
    works_here(*FIT, "--overwrite", "--label-column", "who", "--drop", "age_", "-q")
    assert "(no label)" in (here / "out" / "report.html").read_text()


def test_new_mice_are_told_apart_without_their_labels(data_dir, here):
    works_here(
        *("fit", data_dir / "mice_protein.csv", "--group-column", "class", "--target", "t-SC-m", "--target", "t-SC-s"),
        *("--background-group", "c-SC-s", "--id-column", "MouseID", "--missing", "drop-rows"),
        *("--drop", "Genotype", "--drop", "Treatment", "--drop", "Behavior", "-o", "mice", "-q"),
    )
    found = summary(here / "mice")
    # PCA mixes the treated and the untreated mice.
    assert found["pca_clustering_error"] > 0.3
    assert found["clustering_error"] < 0.05
    assert any("138 row" in sentence for sentence in found["warnings"])


# --- large files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        ["--label-column", "kind", "--id-column", "name"],
        ["--log1p", "--standardize", "pooled", "--label-column", "kind", "--drop", "name"],
        ["--missing", "mean", "--drop", "name", "--drop", "kind", "--method", "cpca", "--test", "none"],
        # Rows that are read in parts are not permuted.
        ["--missing", "drop-rows", "--drop", "name", "--drop", "kind", "--method", "kdpca", "--test", "none"],
    ],
    ids=lambda options: options[0] + options[1],
)
def test_streaming_gives_what_memory_gives(options, here):
    # A kernel takes the time of the cube of the number of rows.
    n = 150 if "kdpca" in options else 400
    target, background, groups = two_datasets(n=n)
    target, background = np.exp(target / 5), np.exp(background / 5)
    if "--missing" in options:
        target[7, 1] = background[3, 2] = np.nan
    names = [f"row {i}" for i in range(n)]
    (here / "target.csv").write_text(csv_text(target, name=names, kind=groups).replace("nan", ""))
    (here / "background.csv").write_text(csv_text(background).replace("nan", ""))
    for way in ("--in-memory", "--stream"):
        works_here(*FIT[:-1], way[2:], *options, way, "-q")
    memory, stream = here / "in-memory", here / "stream"
    same = [{**row, **{n: "" for n in row if n.startswith(("comp", "held"))}} for row in table(memory / "scores.csv")]
    assert same == [
        {**row, **{n: "" for n in row if n.startswith(("comp", "held"))}} for row in table(stream / "scores.csv")
    ]
    scale = np.std(scores(memory / "scores.csv"), axis=0)
    gap = scores(stream / "scores.csv") - scores(memory / "scores.csv")
    assert np.max(np.abs(gap) / scale) < 1e-8
    ours, theirs = summary(stream), summary(memory)
    assert ours["clustering_error"] == theirs["clustering_error"]
    assert ours["headline"] == theirs["headline"]
    assert ours["warnings"] == theirs["warnings"]
    assert "reading" in ours["asked"]
    assert "reading" not in theirs["asked"]


def test_files_that_do_not_fit_into_memory_are_streamed(here, monkeypatch, capsys):
    write_pair(here)
    monkeypatch.setattr("standout.cli._data.fits_in_memory", lambda scans: MemoryNeed(12 * 10**9, 8 * 10**9))
    works_here(*FIT)
    assert "read in parts (12.0 GB needed, 8.0 GB available)" in capsys.readouterr().out
    works_here(*FIT, "--in-memory", "--overwrite")
    assert "in parts" not in capsys.readouterr().out


def test_a_checkpoint_keeps_the_sums_and_the_next_fit_uses_them(here, monkeypatch):
    write_pair(here)
    works_here(*FIT, "--checkpoint", "kept", "-q")
    kept = {path.name for path in (here / "kept").iterdir()}
    assert len(kept) >= 2
    works_here(*FIT[:-1], "again", "--checkpoint", "kept", "--n-components", "1", "-q")
    assert {path.name for path in (here / "kept").iterdir()} == kept
    first, second = (scores(here / name / "scores.csv") for name in ("out", "again"))
    # Another number of components is found by another solver.
    np.testing.assert_allclose(first[:, :1], second, rtol=1e-9, atol=1e-12)


# --- methods ----------------------------------------------------------------------------------------------------------

METHODS = {
    "kernel discriminative": ["kdpca", "--bandwidth", "5", "--epsilon", "0.01"],
    "kernel of a degree": ["kdpca", "--kernel", "poly", "--degree", "2", "--epsilon", "scaled"],
    "kernel without a bandwidth": ["kdpca", "--kernel", "gaussian"],
    "contrastive": ["cpca", "--alpha", "2.5"],
    "several alphas": ["cpca", "--alpha", "0.5,1,2"],
    "kernel contrastive": ["kcpca", "--kernel", "laplacian", "--gamma", "0.1", "--alpha", "2"],
    "no shrinkage": ["dpca", "--shrinkage", "none"],
    "given shrinkage": ["dpca", "--shrinkage", "0.25", "--n-components", "3"],
    "worst case": ["dpca", "--background-weights", "worst-case", "--test", "none"],
    "given weights": ["kdpca", "--background-weights", "1,3"],
    "automatic number": ["dpca", "--n-components", "auto"],
    "permutations": ["dpca", "--test", "permutation", "--random-state", "3"],
    "PCA": ["pca"],
    "kernel PCA": ["kpca", "--gamma", "none"],
}


@pytest.mark.parametrize("case", METHODS)
def test_every_method_and_choice_gives_a_whole_result(case, here):
    write_pair(here)
    (here / "more.csv").write_text(csv_text(two_datasets(seed=1)[1]))
    works_here(*FIT, "-b", "more.csv", "--method", *METHODS[case], "-q")
    assert {path.name for path in (here / "out").iterdir()} == RESULT
    model = standout.load(here / "out" / "model.skops")
    fitted = ["target"] if METHODS[case][0].removeprefix("k") == "pca" else ["target", "background", "more"]
    assert list(dict.fromkeys(row["dataset"] for row in table(here / "out" / "scores.csv"))) == fitted
    target = pd.DataFrame(two_datasets()[0], columns=COLUMNS)
    np.testing.assert_allclose(scores(here / "out" / "scores.csv", "target"), model.transform(target), atol=1e-9)
    for option, value in zip(METHODS[case][1::2], METHODS[case][2::2], strict=True):
        if option != "--bandwidth":
            given = getattr(model, option[2:].replace("-", "_"))
            written = ",".join(f"{one:g}" for one in given) if isinstance(given, list) else given
            assert str("none" if written is None else written) in (value, f"{value}.0")
    # Where p-values come from, or why there are none.
    said = [text for text in json.loads((here / "out" / "summary.json").read_text())["choices"] if "p-values" in text]
    assert len(said) == (0 if fitted == ["target"] else 1)


def test_what_is_wrong_with_a_background_is_told_once(here, rng):
    for name, scale in (("target", [1, 0, 1]), ("background", [0, 0, 1])):
        (here / f"{name}.csv").write_text(csv_text(rng.normal(size=(40, 3)) * scale, ["a", "b", "c"]))
    works_here(*FIT, "--shrinkage", "none", "--n-components", "1", "-q")
    found = summary(here / "out")["warnings"]
    assert sum("singular" in sentence for sentence in found) == 1


def test_a_result_in_which_nothing_was_found_says_so_once(here, capsys, rng):
    for name in ("target", "background"):
        (here / f"{name}.csv").write_text(csv_text(rng.normal(size=(300, 4))))
    works_here(*FIT)
    found = summary(here / "out")
    assert found["test"]["n_significant"] == 0
    assert found["headline"] in capsys.readouterr().out
    assert sum(" group" in sentence for sentence in [*found["choices"], *found["warnings"]]) == 1


# --- places and streams -----------------------------------------------------------------------------------------------


def test_a_result_is_replaced_on_request(here):
    write_pair(here)
    (here / "out").mkdir()
    works_here(*FIT, "-q")
    (here / "link").symlink_to("out")
    works_here("fit", *FIT[1:-1], "link", "--method", "cpca", "--overwrite", "-q")
    assert (here / "link").is_symlink()
    assert summary(here / "out")["method"] == "contrastive PCA"
    assert {path.name for path in here.iterdir()} == {"target.csv", "background.csv", "out", "link"}


def test_names_may_have_spaces_and_any_letters_and_start_at_home(here):
    home = here / "Zuhause bei Müller 家"
    (home / "[red] daten").mkdir(parents=True)
    write_pair(home / "[red] daten")
    said = works(
        *("fit", "~/[red] daten/target.csv", "-b", "../[red] daten/background.csv", "-o", "~/[red] daten/Ö :smile:"),
        cwd=home / "[red] daten",
        env={**os.environ, "HOME": str(home)},
    )
    assert "[red] daten/Ö :smile:/report.html" in said
    assert {path.name for path in (home / "[red] daten" / "Ö :smile:").iterdir()} == RESULT
    # A name of bytes that are no letters, and a terminal that knows ASCII only.
    odd, out = os.fsdecode(b"t\xff.csv"), os.fsdecode(b"\xe9")
    (home / "[red] daten" / odd).write_bytes((home / "[red] daten" / "target.csv").read_bytes())
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    said = works("fit", odd, "-b", "background.csv", "-o", out, cwd=home / "[red] daten", env=environment)
    assert said.isascii()
    assert summary(home / "[red] daten" / out)["datasets"][0]["name"] == r"t\udcff"


def test_a_quiet_run_prints_nothing(here):
    write_pair(here)
    assert works(*FIT, "--quiet", cwd=here, stdin=subprocess.DEVNULL) == ""


def in_terminal(*arguments, cwd, columns=90):
    """Run the command in a terminal, and give all that it wrote there."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    command = [STANDOUT, *map(str, arguments)]
    with subprocess.Popen(command, cwd=cwd, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        said = b""
        while True:
            try:
                said += (more := os.read(ours, 65536))
            except OSError:  # the other end is closed
                break
            if not more:
                break
    os.close(ours)
    assert process.returncode == 0, said
    return said.decode()


@pytest.mark.parametrize("way", ["--in-memory", "--stream"])
def test_a_terminal_shows_progress_and_names_as_they_are(way, here):
    target, background, groups = two_datasets()
    hostile = ["[bold]size[/bold]", "\x1b[31mage", ":smile:", "zi\nnc\u202e\x1b]0;title\x07"]
    frame = pd.DataFrame(target, columns=hostile).assign(kind=[f"[red]{kind}\x1b[5m" for kind in groups])
    frame.to_parquet(here / "[blink]target.parquet")
    pd.DataFrame(background, columns=hostile).to_parquet(here / "back\x1b[7m.parquet")
    test = ["--test", "permutation"] if way == "--in-memory" else []
    said = in_terminal(
        *("fit", "[blink]target.parquet", "-b", "back\x1b[7m.parquet", "--label-column", "kind", "-o", "out"),
        *("--n-components", "1", way, *test),
        cwd=here,
    )
    if way == "--in-memory":
        assert r"reading back\x1b[7m.parquet" in said
        assert re.search("component 1 (\x1b\\[[0-9;]*m)*━", said)  # the bar of the permutations
    else:
        assert re.search("reading the target (\x1b\\[[0-9;]*m)*━", said)  # the bar of a pass over the file
    assert re.search("[⠁-⣿]\x1b", said)  # what moves
    shown = said.split("\x1b[2K")[-1]
    assert r"zi nc\u202e\x1b]0;title\x07" in shown
    for name in ("[bold]size[/bold]", r"\x1b[31mage", ":smile:"):
        assert name in shown
    # Nothing of the names has reached the terminal as a command.
    assert not {"\x1b[31m", "\x1b[5m", "\x1b[7m", "\x07", "\u202e"} & set(
        re.findall("\x1b\\[[0-9;]*m|[\x07\u202e]", said)
    )
    assert "\x1b]0;" not in said
    assert "Report: out/report.html" in shown
