"""The command line as a user starts it: every group of options, what is written, and what is said."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import standout
from cli_runs import COLUMNS, STANDOUT, csv_text, scores, summary, table, two_datasets, works, works_here, write_pair
from standout.cli import _options, main

RESULT = {
    "figure.png",
    "loadings.csv",
    "model.skops",
    "report.html",
    "report.json",
    "report.npz",
    "scores.csv",
    "summary.json",
}


# --- fit --------------------------------------------------------------------------------------------------------------


def test_a_fit_writes_all_that_was_promised_and_nothing_else(fitted):
    folder, _ = fitted
    out = folder / "out"
    assert {path.name for path in folder.iterdir()} == {"target.csv", "background.csv", "out"}
    assert {path.name for path in out.iterdir()} == RESULT
    rows = table(out / "scores.csv")
    assert list(rows[0]) == ["dataset", "id", "label", "component_1", "component_2"]
    assert [row["dataset"] for row in rows] == ["target"] * 60 + ["background"] * 60
    assert [row["id"] for row in rows[:2]] == ["row 0", "row 1"]
    assert {row["label"] for row in rows[:60]} == {"low", "high"}
    loadings = table(out / "loadings.csv")
    assert [row["feature"] for row in loadings] == COLUMNS
    assert {"filter_1", "pattern_1", "filter_2", "pattern_2"} <= set(loadings[0])
    model = standout.load(out / "model.skops")
    np.testing.assert_array_equal([float(row["filter_1"]) for row in loadings], model.components_[0])
    np.testing.assert_array_equal([float(row["pattern_2"]) for row in loadings], model.patterns_[1])
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_scores_are_those_of_the_estimator(fitted):
    folder, _ = fitted
    target, background, _ = two_datasets()
    model = standout.DiscriminativePCA(2, shrinkage="clusters", random_state=0).fit(target, background=background)
    # Columns are matched by name: the file has those of the background the other way round.
    found = scores(folder / "out" / "scores.csv")
    np.testing.assert_allclose(found, np.r_[model.transform(target), model.transform(background)], atol=1e-9)


def test_the_closing_words_say_what_came_out_why_and_where(fitted):
    folder, said = fitted
    found = summary(folder / "out")
    for stage in (
        "reading target.csv",
        "preparing",
        "fitting discriminative PCA: moments",
        "selection",
        "writing the rep",
    ):
        assert re.search(f"^{stage}", said, re.MULTILINE)
    assert found["headline"] in said
    assert re.search(r"^component +ratio +p-value +columns", said, re.MULTILINE)
    assert re.search(r"^1 +\d+\.\d+ +< 0.001 +zinc, ", said, re.MULTILINE)
    assert re.search("^- Shrinkage: .* of 27 values .*No label was used", said, re.MULTILINE)
    assert said.endswith("Report: out/report.html\n")
    assert found["clustering_error"] < 0.1
    assert found["options"]["label_column"] == "kind"
    assert sum(found["seconds"].values()) > 0


def test_labels_never_influence_the_fit(fitted, here):
    folder, _ = fitted
    arguments = [folder / "target.csv", "-b", folder / "background.csv", "--id-column", "name", "--drop", "kind", "-q"]
    (folder / "background.csv").with_name("with.csv").write_text(
        csv_text(two_datasets()[1], kind=["x"] * 60, name=["y"] * 60)
    )
    arguments[2] = folder / "with.csv"
    works_here("fit", *arguments, "-o", "out")
    assert scores(here / "out" / "scores.csv").tolist() == scores(folder / "out" / "scores.csv").tolist()
    assert "label" not in table(here / "out" / "scores.csv")[0]
    (folder / "with.csv").unlink()


def test_a_fit_of_groups_in_one_file_with_values_missing(here):
    target, background, groups = two_datasets()
    names = [f"{kind}-{i}" for i, kind in enumerate([*groups, *["ctrl"] * 60])]
    rows = np.r_[target, background]
    text = csv_text(rows, COLUMNS, name=names, kind=[*groups, *["ctrl"] * 30, *["other"] * 30])
    lines = text.splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ","
    (here / "all data.csv").write_text("\n".join(lines) + "\n")
    form = ["fit", "all data.csv", "--group-column", "kind", "--target", "low", "--target", "high"]
    said = works(
        *form, "--background-group", "ctrl", "--id-column", "name", "--missing", "drop-rows", "-o", "out", cwd=here
    )
    assert "! 1 row of the target was dropped" in said
    found = summary(here / "out")
    assert [(part["name"], part["rows"]) for part in found["datasets"]] == [("low + high", 59), ("ctrl", 30)]
    assert "1 row of the target was dropped" in (here / "out" / "report.html").read_text()
    assert found["clustering_error"] < 0.1  # the target's groups are its labels
    # All other groups are backgrounds if none is named, and rows without names keep their number in the file.
    works_here(*form, "--drop", "name", "--missing", "drop-rows", "--standardize", "background", "-o", "two", "-q")
    assert [part["name"] for part in summary(here / "two")["datasets"]] == ["low + high", "ctrl", "other"]
    ids = [row["id"] for row in table(here / "two" / "scores.csv")]
    assert ids == [str(i) for i in range(120) if i != 2]
    for missing, words in (("mean", "1 missing value"), ("drop-columns", "1 column was dropped")):
        works_here(*form, "--drop", "name", "--missing", missing, "-o", missing, "-q")
        assert any(words in sentence for sentence in summary(here / missing)["warnings"])


def test_files_of_every_kind_are_read_and_columns_found_by_name(here):
    target, background, groups = two_datasets()
    parts = np.split(background, 6)
    frame = pa.table({name: target[:, i] for i, name in enumerate(COLUMNS)})
    parquet.write_table(frame.append_column("kind", [groups.tolist()]), here / "target.parquet")
    (here / "b1.tsv").write_text(csv_text(parts[0], delimiter="\t"))
    pd.DataFrame(parts[1], columns=COLUMNS)[COLUMNS[::-1]].to_csv(here / "b2.csv.gz", index=False)
    feather.write_feather(pd.DataFrame(parts[2], columns=COLUMNS), here / "b3.feather")
    np.save(here / "b4.npy", parts[3])
    np.savez(here / "b5.npz", rows=parts[4])
    with h5py.File(here / "b6.h5ad", "w") as file:
        file["X"] = parts[5]
        for name, index in (("obs", [f"cell {i}" for i in range(10)]), ("var", COLUMNS)):
            file.create_group(name).attrs["_index"] = "_index"
            file[name]["_index"] = index
    files = [word for path in sorted(here.glob("b*")) for word in ("-b", path.name)]
    works("fit", "target.parquet", *files, "--label-column", "kind", "-o", "out", cwd=here)
    works_here("fit", "target.parquet", *files, "--drop", "kind", "--weights", "1,1,1,1,1,1", "-o", "again", "-q")
    model = standout.DiscriminativePCA(2, shrinkage="clusters", random_state=0).fit(target, background=parts)
    expected = np.concatenate([model.transform(part) for part in (target, *parts)])
    for folder in ("out", "again"):
        np.testing.assert_allclose(scores(here / folder / "scores.csv"), expected, atol=1e-9)


def test_a_file_may_have_another_name_or_hold_several_arrays(here):
    target, background, groups = two_datasets()
    write_pair(here)
    (here / "target.csv").rename(here / "target.dat")
    (here / "background.csv").rename(here / "background.dat")
    works("fit", "target.dat", "-b", "background.dat", "--format", "csv", "--drop", "size", "-o", "out", cwd=here)
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
    options = ["--select", "*i*", "--drop", "size", "--log1p", "--standardize", "pooled", "--missing", "mean"]
    said = works("fit", "target.csv", "-b", "background.csv", *options, "-o", "out", cwd=here)
    assert "1 missing value (1 of them in the target) was filled" in said
    assert [row["feature"] for row in table(here / "out" / "loadings.csv")] == ["iron", "zinc"]
    first = "# tables as they are after this: logarithm: log(1 + x) of every value; scale: columns centred"
    assert summary(here / "out")["code"].startswith(first)
    # Other columns may be there, even text, in any order.
    frame[COLUMNS[::-1]].assign(note="text").to_csv(here / "new.csv", index=False)
    said = works("transform", "out", "new.csv", "-o", "scores.csv", cwd=here)
    assert said.endswith("Scores of 60 rows: scores.csv\n")
    np.testing.assert_allclose(scores(here / "scores.csv"), scores(here / "out" / "scores.csv", "target"), atol=1e-9)


METHODS = {
    "kernel discriminative": (["kdpca", "--bandwidth", "5", "--epsilon", "0.01"], "gaussian"),
    "kernel of a degree": (["kdpca", "--kernel", "poly", "--degree", "3", "--epsilon", "scaled"], "poly"),
    "contrastive": (["cpca", "--alpha", "2.5"], "α: 2.5, as asked"),
    "kernel contrastive": (["kcpca", "--kernel", "laplacian"], "laplacian"),
    "no shrinkage": (["dpca", "--shrinkage", "none"], "Shrinkage: none"),
    "Ledoit-Wolf": (["dpca", "--shrinkage", "auto"], "Ledoit and Wolf"),
    "given shrinkage": (["dpca", "--shrinkage", "0.25", "--components", "3"], "Shrinkage: 0.25"),
    "worst case": (["dpca", "--weights", "worst-case"], "Weights of the backgrounds"),
    "given weights": (["kdpca", "--weights", "1,3"], "0.25"),
    "equal weights": (["dpca", "--weights", "equal"], "equal"),
    "automatic number": (["dpca", "--components", "auto"], "more than chance"),
    "permutations": (["dpca", "--test", "permutation", "--seed", "3"], "by dealing the rows"),
    "PCA": (["pca"], "compares with nothing"),
}


@pytest.mark.parametrize("case", METHODS)
def test_every_method_and_choice_gives_a_whole_result(case, here, capsys):
    options, words = METHODS[case]
    write_pair(here)
    (here / "more.csv").write_text(csv_text(two_datasets(seed=1)[1]))
    works_here("fit", "target.csv", "-b", "background.csv", "-b", "more.csv", "--method", *options, "-o", "out")
    assert {path.name for path in (here / "out").iterdir()} == RESULT
    assert words in capsys.readouterr().out
    assert np.isfinite(scores(here / "out" / "scores.csv")).all()


def test_kernels_and_principal_components_in_the_shell(here, capsys):
    write_pair(here)
    said = works(
        "fit", "target.csv", "-b", "background.csv", "--method", "kdpca", "--bandwidth", "4", "-o", "k", cwd=here
    )
    assert "- Kernel: gaussian" in said
    assert list(table(here / "k" / "loadings.csv")[0]) == ["feature", "correlation_1", "correlation_2"]
    # There need not be a background where nothing is compared.
    works_here("fit", "target.csv", "--method", "kpca", "--kernel", "rbf", "--components", "3", "-o", "p")
    assert "fitting kernel PCA: moments, solving" in capsys.readouterr().out
    assert scores(here / "p" / "scores.csv").shape == (60, 3)


def test_weights_and_tests_in_the_shell(here):
    write_pair(here)
    (here / "more.csv").write_text(csv_text(two_datasets(seed=1)[1]))
    files = ["target.csv", "-b", "background.csv", "-b", "more.csv"]
    choice = ["--components", "auto", "--weights", "worst-case", "--test", "permutation", "--shrinkage", "auto"]
    said = works("fit", *files, *choice, "--seed", "7", "-o", "out", cwd=here)
    assert "fitting discriminative PCA: moments, weights, shrinkage, solving, test of the components" in said
    assert "- Components: 1 component, those that are more than chance." in said
    assert "worst" in json.dumps(summary(here / "out")["options"])
    model = standout.load(here / "out" / "model.skops")
    assert model.random_state == 7
    assert not model.verbose


def test_what_is_wrong_with_a_background_is_told_once(here, capsys, rng):
    for name, scale in (("target", [1, 0, 1]), ("background", [0, 0, 1])):
        (here / f"{name}.csv").write_text(csv_text(rng.normal(size=(40, 3)) * scale, ["a", "b", "c"]))
    works_here("fit", "target.csv", "-b", "background.csv", "--shrinkage", "none", "--components", "1", "-o", "out")
    warned = [line for line in capsys.readouterr().out.splitlines() if line.startswith("! ")]
    assert [sum(words in line for line in warned) for words in ("singular", "(b)", "(a)", "'b'")] == [1, 1, 1, 0]


def test_where_nothing_was_found_the_report_and_the_terminal_say_so(here, capsys, rng):
    for name in ("target", "background"):
        (here / f"{name}.csv").write_text(csv_text(rng.normal(size=(300, 4))))
    works_here("fit", "target.csv", "-b", "background.csv", "-o", "out")
    said = capsys.readouterr().out
    page = (here / "out" / "report.html").read_text()
    # Once, among the choices: the warning of the fit would say it again.
    assert said.count("more than one group") == page.count("more than one group") == 1
    assert "Nothing stands out more than chance" in said
    works_here("fit", "target.csv", "-b", "background.csv", "--method", "kdpca", "-o", "kernel")
    said = capsys.readouterr().out
    assert said.count("more than one group") <= 1


def test_new_mice_are_told_apart_without_their_labels(data_dir, here):
    said = works(
        *("fit", data_dir / "mice_protein.csv", "--group-column", "class", "--target", "t-SC-m", "--target", "t-SC-s"),
        *("--background-group", "c-SC-s", "--id-column", "MouseID", "--missing", "drop-rows"),
        *("--drop", "Genotype", "--drop", "Treatment", "--drop", "Behavior", "-o", "mice"),
        cwd=here,
    )
    found = summary(here / "mice")
    # PCA mixes the treated and the untreated mice.
    assert found["pca_clustering_error"] > 0.3
    assert found["clustering_error"] < 0.05
    assert "138 rows of the target were dropped" in said


# --- where it goes ----------------------------------------------------------------------------------------------------


def test_a_result_is_replaced_on_request(here):
    write_pair(here)
    (here / "out").mkdir()
    works_here("fit", "target.csv", "-b", "background.csv", "-o", "out", "-q")
    (here / "link").symlink_to("out")
    works_here("fit", "target.csv", "-b", "background.csv", "--method", "cpca", "-o", "link", "--overwrite", "-q")
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


def test_the_options_offer_what_the_readers_take():
    assert _options.FORMATS == standout.io.FORMATS
    assert _options.MISSING == standout.io.MISSING
    assert _options.STANDARDS == standout.io.STANDARDS


def test_notes_call_a_background_by_its_name(here, capsys):
    target, background, _ = two_datasets()
    rows = np.vstack([target, background])
    rows[70, 1] = np.nan
    (here / "all.csv").write_text(csv_text(rows, who=["ill"] * 60 + ["b"] * 30 + ["a 'c'"] * 30))
    options = ["all.csv", "--group-column", "who", "--target", "ill", "-o", "out"]
    works_here("fit", *options, "--missing", "drop-rows")
    assert "! 1 row of background 'b' was dropped because a value was missing." in capsys.readouterr().out
    assert main(["fit", *options, "--overwrite"]) == 2
    assert "values are missing: 1 in background 'b';" in capsys.readouterr().err
    (here / "all.csv").write_text(csv_text(rows[:61], who=["ill"] * 60 + ["b"]))
    assert main(["fit", *options, "--overwrite"]) == 2
    assert "background 'b' has 1 row, but the least is 2. Give more rows" in capsys.readouterr().err


def test_labels_that_are_many_numbers_are_a_scale_and_empty_ones_are_missing(here, capsys):
    target, _, groups = two_datasets()
    write_pair(here)
    ages = [f"{age:.1f}" for age in np.linspace(1, 9, 60)]
    ages[3], groups[3] = "", ""
    (here / "target.csv").write_text(csv_text(target, age_=ages, who=groups))
    options = ["fit", "target.csv", "-b", "background.csv", "--overwrite", "-o", "out"]
    works_here(*options, "--label-column", "age_", "--drop", "who")
    assert '<span class="scale">' in (here / "out" / "report.html").read_text()
    works_here(*options, "--label-column", "who", "--drop", "age_")
    assert "<bdi>(no label)</bdi>" in (here / "out" / "report.html").read_text()


def test_a_column_to_be_dropped_must_be_in_some_file(here, capsys):
    write_pair(here)
    target, _, groups = two_datasets()
    (here / "target.csv").write_text(csv_text(target, who=groups, note=groups))
    options = ["fit", "target.csv", "-b", "background.csv", "-o", "out", "--drop", "who"]
    # Named twice, and absent from the second file.
    works_here(*options, "--drop", "who", "--drop", "note", "--id-column", "who")
    assert main([*options, "--drop", "note", "--drop", "iorn", "--overwrite"]) == 2
    assert "drop names column 'iorn', but no column of 'target.csv' is called so" in capsys.readouterr().err


def test_a_quiet_run_says_nothing(here):
    write_pair(here)
    assert (
        works("fit", "target.csv", "-b", "background.csv", "-o", "out", "--quiet", cwd=here, stdin=subprocess.DEVNULL)
        == ""
    )
    works_here("report", "out", "-q")
    works_here("transform", "out", "target.csv", "-o", "scores.csv", "-q")
    works_here("compare", "target.csv", "-b", "background.csv", "--methods", "pca", "-o", "page.html", "-q")


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


def test_a_terminal_shows_stages_that_move_and_names_as_they_are(here):
    target, background, groups = two_datasets()
    hostile = ["[bold]size[/bold]", "\x1b[31mage", ":smile:", "zi\nnc\u202e\x1b]0;title\x07"]
    frame = pd.DataFrame(target, columns=hostile).assign(kind=[f"[red]{kind}\x1b[5m" for kind in groups])
    frame.to_parquet(here / "[blink]target.parquet")
    pd.DataFrame(background, columns=hostile).to_parquet(here / "back\x1b[7m.parquet")
    said = in_terminal(
        *("fit", "[blink]target.parquet", "-b", "back\x1b[7m.parquet", "--label-column", "kind", "-o", "out"),
        *("--components", "1", "--test", "permutation"),
        cwd=here,
    )
    for stage in ("reading [blink]target.parquet", r"reading back\x1b[7m.parquet", "fitting", "writing the report"):
        assert stage in said
    assert re.search("[⠁-⣿]\x1b", said)  # what moves
    assert re.search("component 1 (\x1b\\[[0-9;]*m)*━", said)  # the bar of the permutations
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
