"""The paper's experiments, through their entry point, on small made-up files; and the rules that give verdicts."""

import ast
import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import experiments.__main__
from experiments import EXPERIMENTS, _blocks, _claims, _run
from experiments._claims import Claim, judge
from experiments._record import ERROR, SCATTER, MethodRun, Results, Setting, Table, Verdict
from experiments.data import FILES
from paper_files import small_arrays, write_small

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def small_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_small(folder, *FILES)
    return folder


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Call the entry point, without the user's own data and downloads.

    To save time, fits are timed once, pictures have two panels, and of several settings the first and the last are run.
    """
    monkeypatch.delenv("STANDOUT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_run, "QUICK", 0.0)
    draw = experiments.__main__.picture
    monkeypatch.setattr(experiments.__main__, "picture", lambda title, rows: draw(title, [rows[0][:2]]))
    for name, experiment in EXPERIMENTS.items():
        few = tuple(dict.fromkeys(experiment.settings[place].name for place in (0, -1)))
        settings = tuple(setting for setting in experiment.settings if setting.name in few)
        monkeypatch.setitem(EXPERIMENTS, name, dataclasses.replace(experiment, settings=settings))

    def call(*arguments):
        try:
            code = experiments.__main__.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_has_a_picture_and_a_verdict_on_every_claim(run, tmp_path, small_data, name):
    experiment, output = EXPERIMENTS[name], tmp_path / "out"
    code, _, err = run(name, "--data", small_data, "-o", output, "--seeds", 1)
    assert (code, err) == (0, "")
    assert {path.name for path in output.iterdir()} == {
        *(f"{name}.{kind}" for kind in ("json", "png")),
        *(f"reproduction.{kind}" for kind in ("md", "html")),
    }
    assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((output / f"{name}.json").read_text())
    assert record["status"] == "done"
    assert len(record["findings"]) == len(experiment.claims) >= 4
    for finding in record["findings"]:
        assert finding["verdict"] in set(Verdict)
        # Smaller data than the paper's cannot speak for or against it.
        assert (finding["verdict"] == "not judged") == bool(experiment.files), finding
    assert ("in place of" in record["smaller"]) == bool(experiment.files)
    assert {run["method"] for run in record["runs"] if run["seconds"]} == {method.name for method in experiment.methods}
    # The report has every claim, no path of this machine, and needs no other file.
    page, text = (output / "reproduction.html").read_text(), (output / "reproduction.md").read_text()
    for claim in experiment.claims:
        assert _blocks._escaped(claim.text) in text
    assert str(tmp_path) not in page + text
    assert str(small_data) not in page + text
    assert page.count("data:image/png;base64,") == 1
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    if not experiment.files:
        assert (record["findings"][0]["verdict"], *record["findings"][0]["values"][""].values()) == ("reproduced", 0.0)
    if name == "table1":
        table = record["tables"][0]
        assert "clustering error" in table["caption"]
        assert table["header"][:5] == ["d", "printed dPCA", "printed PCA", "ours dPCA", "ours PCA"]
        assert [row[0] for row in table["rows"]] == ["1", "2", "3", "4", "5", "10", "50", "100"]


def test_equal_seeds_give_equal_figures(run, tmp_path):
    figures = []
    for name in ("one", "two"):
        assert run("mdpca_gaussians", "--seeds", 2, "-o", tmp_path / name)[0] == 0
        record = json.loads((tmp_path / name / "mdpca_gaussians.json").read_text())
        figures.append([one["figures"] for one in record["runs"]])
    assert figures[0] == figures[1]
    first, second = figures[0][1][ERROR]["2"]
    assert first != second


def test_missing_files_are_named_and_the_rest_is_run(run, tmp_path):
    (tmp_path / "empty").mkdir()
    options = ("--data", tmp_path / "empty", "-o", tmp_path / "out", "--seeds", 1)
    code, out, err = run("mice", "faces", "mdpca_gaussians", *options)
    assert code == 0
    assert err.count("\n") == 2
    assert "mice_protein.csv" in err
    assert "yaleb.npz" in err
    assert "mice\\_protein.csv" in (tmp_path / "out" / "reproduction.md").read_text()
    findings = json.loads((tmp_path / "out" / "mice.json").read_text())["findings"]
    assert [finding["verdict"] for finding in findings] == ["not judged"] * len(EXPERIMENTS["mice"].claims)
    assert "mdpca_gaussians: 4 reproduced" in out
    # Nothing that could be run is an error.
    assert run("mice", *options)[0] == 2


def test_missing_files_are_downloaded_only_if_asked(run, tmp_path, monkeypatch):
    def fetch(name, folder):
        write_small(folder, name)
        return folder / name

    monkeypatch.setattr("experiments.data.real.fetch", fetch)
    data = tmp_path / "data"
    data.mkdir()
    options = ("mhealth2", "--data", data, "-o", tmp_path / "out", "--seeds", 1)
    assert run(*options)[0] == 2
    assert not list(data.iterdir())
    assert run(*options, "--download")[0] == 0
    assert [path.name for path in data.iterdir()] == ["mhealth.npz"]


def refused(run, tmp_path, folder, name):
    """Check that an experiment refuses its data in one plain line, and give the line."""
    code, out, err = run(name, "--data", folder, "-o", tmp_path / "out", "--seeds", 1)
    assert code == 2
    assert err.count("\n") == 1
    assert "Traceback" not in out + err
    assert (tmp_path / "out" / "reproduction.md").is_file()
    return err


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_is_refused(run, tmp_path, file):
    name, experiment = next(item for item in EXPERIMENTS.items() if file in item[1].files)
    write_small(tmp_path, *experiment.files)
    (tmp_path / file).write_bytes(b"\x93 this is not what it should be \x00\xff")
    assert file in refused(run, tmp_path, tmp_path, name)


def test_files_without_the_groups_of_an_experiment_are_refused(run, tmp_path):
    arrays = small_arrays("yaleb.npz")
    np.savez(tmp_path / "yaleb.npz", **arrays | {"person": arrays["person"] + 10})
    assert "no rows of 1 in the data" in refused(run, tmp_path, tmp_path, "faces")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nothing"], "nothing"),
        (["mice", "--seeds", "0"], "--seeds"),
        (["mice", "--seeds", "few"], "few"),
        (["mice", "--data", "no/such/folder"], "no/such/folder"),
        (["mice", "-o", __file__], "test_experiments.py"),
        (["mice", "--summary", "no/such/folder/file.json"], "no/such/folder"),
        (["--unknown"], "--unknown"),
    ],
)
def test_bad_arguments_give_one_line_and_exit_code_2(run, arguments, word):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert word in err


def test_a_summary_is_left_as_it_was_unless_all_was_run_on_the_papers_data(run, tmp_path):
    kept = tmp_path / "summary.json"
    kept.write_text("as it was")
    code, _, err = run("mdpca_gaussians", "-o", tmp_path / "out", "--seeds", 1, "--summary", kept)
    assert code == 0
    assert kept.read_text() == "as it was"
    assert all((name in err) == (name != "mdpca_gaussians") for name in EXPERIMENTS)


def test_a_summary_has_verdicts_and_errors_of_the_records(run, monkeypatch, tmp_path):
    monkeypatch.setattr("experiments.__main__.EXPERIMENTS", {"mdpca_gaussians": EXPERIMENTS["mdpca_gaussians"]})
    code, out, _ = run("all", "-o", tmp_path, "--seeds", 2, "--summary", tmp_path / "summary.json")
    assert code == 0
    assert "summary.json" in out
    short = json.loads((tmp_path / "summary.json").read_text())
    record = json.loads((tmp_path / "mdpca_gaussians.json").read_text())
    assert short["seeds"] == 2
    found = short["experiments"]["mdpca_gaussians"]
    assert {text: claim["verdict"] for text, claim in found["claims"].items()} == {
        finding["text"]: finding["verdict"] for finding in record["findings"] if not finding["beyond"]
    }
    for run_of_method in record["runs"]:
        values = run_of_method["figures"][ERROR]["2"]
        mean, spread = found["error"][""][run_of_method["method"]]
        # Six digits are kept.
        assert mean == pytest.approx(np.mean(values), abs=1e-6)
        assert spread == pytest.approx(np.std(values, ddof=1), abs=1e-6)


def test_the_list_names_experiments_and_files():
    command = [sys.executable, "-W", "error", "-m", "experiments", "--list"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(EXPERIMENTS)
    assert all(file in result.stdout for file in FILES)


def test_an_experiment_that_fails_does_not_lose_the_others(run, monkeypatch, tmp_path):
    def draw(setting, seed):
        raise ArithmeticError("out of luck")

    monkeypatch.setitem(EXPERIMENTS, "kdpca_circles", dataclasses.replace(EXPERIMENTS["kdpca_circles"], draw=draw))
    code, out, err = run("kdpca_circles", "mdpca_gaussians", "--seeds", 1, "-o", tmp_path / "out")
    assert code == 1
    assert "out of luck" in err
    assert "mdpca_gaussians: 4 reproduced" in out
    assert (tmp_path / "out" / "mdpca_gaussians.png").is_file()
    assert "out of luck" in (tmp_path / "out" / "reproduction.md").read_text()


def test_the_mice_and_the_faces_come_out_as_documented(run, monkeypatch, tmp_path, data_dir):
    for name in ("mice", "faces"):
        first = dataclasses.replace(EXPERIMENTS[name], settings=EXPERIMENTS[name].settings[:1])
        monkeypatch.setitem(EXPERIMENTS, name, first)
    code, _, err = run("mice", "faces", "--data", data_dir, "--seeds", 1, "-o", tmp_path / "out")
    assert code == 0, err
    verdicts = {
        finding["text"]: finding["verdict"]
        for name in ("mice", "faces")
        for finding in json.loads((tmp_path / "out" / f"{name}.json").read_text())["findings"]
    }
    assert verdicts["PCA does not tell treated from untreated mice"] == "reproduced"
    assert verdicts["dPCA tells treated from untreated mice"] == "reproduced"
    assert verdicts["error of KdPCA"] == "reproduced"


def test_experiments_use_the_public_names_of_the_library_only():
    for path in sorted((ROOT / "experiments").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" for name in names]
            private = [name for name in names if name.startswith("standout") and "._" in name]
            assert not private, path.name


# The rules, on figures made up for them.


def results(errors, *, settings=("",), smaller="", seconds=None, quantity=ERROR, d=2):
    """Results in which each method has the same figure in every setting, or one per setting."""
    runs = {}
    for method, values in errors.items():
        for number, setting in enumerate(settings):
            value = values[number] if isinstance(values, list) else values
            runs[setting, method] = MethodRun(
                method, setting, "", "", {quantity: {d: [value]}}, [(seconds or {}).get(method, 1.0)]
            )
    return Results([Setting(name) for name in settings], runs, smaller=smaller)


def verdict(rule, found, **options):
    return judge(Claim("it is so", "printed", rule, "because"), found, **options).verdict


@pytest.mark.parametrize(
    ("rule", "figures", "expected"),
    [
        (_claims.printed("a", 0.166), {"a": 0.12}, "better"),
        (_claims.printed("a", 0.166), {"a": 0.18}, "reproduced"),
        (_claims.printed("a", 0.166), {"a": 0.31}, "not reproduced"),
        (_claims.printed_baseline("a", 0.49), {"a": 0.48}, "reproduced"),
        (_claims.printed_baseline("a", 0.49), {"a": 0.30}, "not reproduced"),
        (_claims.separates("a"), {"a": 0.25}, "reproduced"),
        (_claims.separates("a"), {"a": 0.26}, "not reproduced"),
        (_claims.mixes("a"), {"a": 0.25}, "reproduced"),
        (_claims.mixes("a"), {"a": 0.24}, "not reproduced"),
        (_claims.lowest("a", ("b", "c")), {"a": 0.1, "b": 0.2, "c": 0.3}, "reproduced"),
        (_claims.lowest("a", ("b", "c")), {"a": 0.1, "b": 0.11, "c": 0.3}, "not reproduced"),
        (_claims.improves("a", "b"), {"a": 0.1, "b": 0.2}, "better"),
        (_claims.improves("a", "b"), {"a": 0.1, "b": 0.1}, "reproduced"),
        (_claims.improves("a", "b"), {"a": 0.3, "b": 0.4}, "not reproduced"),
        (_claims.at_every("a", "b", ERROR, (2,)), {"a": 0.1, "b": 0.2}, "reproduced"),
        (_claims.at_every("a", "b", ERROR, (2,), higher=True), {"a": 0.1, "b": 0.2}, "not reproduced"),
        (_claims.below_up_to("a", 0.166, "b", 0.45, (2,)), {"a": 0.16, "b": 0.49}, "better"),
        (_claims.below_up_to("a", 0.166, "b", 0.45, (2,)), {"a": 0.16, "b": 0.44}, "not reproduced"),
    ],
)
def test_a_rule_gives_the_verdict_that_its_figures_call_for(rule, figures, expected):
    assert verdict(rule, results(figures)) == expected
    assert rule.words


@pytest.mark.parametrize(("ratio", "expected"), [(2.3, "better"), (2.0, "reproduced"), (1.3, "not reproduced")])
def test_a_larger_scatter_ratio_is_better(ratio, expected):
    assert verdict(_claims.printed("a", 2.0, SCATTER), results({"a": ratio}, quantity=SCATTER)) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(15.0, "reproduced"), (2.0, "not reproduced")])
def test_run_times_are_judged_as_ratios(seconds, expected):
    found = results({"a": 0.0, "b": 0.0}, seconds={"a": seconds, "b": 1.0})
    assert verdict(_claims.takes_longer("a", "b", 15.0), found) == expected


CLAIM = Claim("it is so", "printed", _claims.separates("a"), "because")


def test_a_claim_is_as_good_as_its_best_setting_and_says_which():
    finding = judge(CLAIM, results({"a": [0.4, 0.1]}, settings=("dark", "bright")))
    assert (finding.verdict, finding.where) == ("reproduced", "bright")
    finding = judge(CLAIM, results({"a": [0.4, 0.4]}, settings=("dark", "bright")))
    assert (finding.verdict, finding.where, finding.reason) == ("not reproduced", "", "because")


def test_a_claim_that_must_hold_everywhere_is_as_good_as_its_worst_setting():
    finding = judge(CLAIM, results({"a": [0.4, 0.1]}, settings=("Ann", "Bob")), everywhere=True)
    assert (finding.verdict, finding.where, finding.reason) == ("not reproduced", "Bob", "because")


def test_smaller_data_are_not_judged():
    finding = judge(CLAIM, results({"a": 0.0}, smaller="3 rows in place of 4"))
    assert finding.verdict == "not judged"
    assert "3 rows in place of 4" in finding.reason


def test_reports_escape_what_they_are_given():
    blocks = [
        _blocks.Heading(1, "<script>"),
        _blocks.Paragraph("a * b_c"),
        _blocks.Bullets(["<b>"]),
        Table("<i>", ["x|y"], [["<u>|"]]),
    ]
    page, text = _blocks.as_html("<t>", blocks, {}), _blocks.as_markdown(blocks)
    for tag in ("<script>", "<b>", "<i>", "<u>", "<t>"):
        assert tag not in page
    assert "x\\|y" in text
    assert "\\<u\\>\\|" in text
    assert "a \\* b\\_c" in text
