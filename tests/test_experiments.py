"""The paper's experiments, through their entry point, on small made-up files; and the rules that give verdicts."""

import ast
import csv
import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import EXPERIMENTS, _blocks, _claims
from experiments.__main__ import main
from experiments._claims import Claim, judge
from experiments._record import ERROR, SCATTER, MethodRun, Results, Sample, Setting, Table, Verdict
from standout.datasets import _layouts

ROOT = Path(__file__).parents[1]
FILES = ["mice_protein.csv", "mhealth.npz", "yaleb.npz", "mnist.npz", "cifar10_frogs.npz", "cifar100_girls.npz"]


@pytest.fixture(scope="session")
def small_data(tmp_path_factory):
    """Files in the layout of the real ones with a few rows each: noise, but for a difference between the groups."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)

    def pixels(*shape):
        return rng.integers(0, 256, shape, dtype=np.uint8)

    labels = np.repeat([6, 9], 24).astype(np.uint8)
    digits = pixels(48, 28, 28)
    digits[:24, :14] //= 4
    np.savez(folder / "mnist.npz", images=digits, labels=labels)
    np.savez(folder / "cifar10_frogs.npz", images=pixels(120, 32, 32), is_test=np.zeros(120, np.uint8))
    np.savez(folder / "cifar100_girls.npz", images=pixels(72, 32, 32), is_test=np.zeros(72, np.uint8))
    person = np.repeat([1, 2, 3, 4], 6)
    faces = pixels(24, 192, 168) // 4 + (30 * person[:, None, None]).astype(np.uint8)
    angle = np.zeros(24, np.int16)
    np.savez(folder / "yaleb.npz", images=faces, person=person, azimuth=angle, elevation=angle)
    label, subject = (part.ravel() for part in np.meshgrid(np.repeat([1, 3, 6, 7, 9], 20), [1, 2], indexing="ij"))
    signals = rng.normal(size=(200, 23)).astype(np.float32) * (1 + label[:, None])
    np.savez(
        folder / "mhealth.npz",
        X=np.trunc(signals),
        label=label,
        subject=subject,
        row=np.arange(200),
        columns=np.array(_layouts.SIGNALS),
        full_precision=np.zeros(23, bool),
    )
    with (folder / "mice_protein.csv").open("w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(_layouts.MICE.columns)
        for name in ("t-SC-m", "t-SC-s", "c-SC-s", "c-CS-s"):
            words = ("Control" if name[0] == "c" else "Ts65Dn", "Memantine" if name[-1] == "m" else "Saline")
            for row in range(12):
                proteins = rng.normal(1.0, 0.1, 77).round(4)
                writer.writerow([f"1_{row}", *proteins, *words, f"{name[2]}/{name[3]}", name])
    return folder


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Call the entry point; the user's own data and downloads are out of sight."""
    monkeypatch.delenv("STANDOUT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def call(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="session")
def everything(small_data, tmp_path_factory):
    """One run of all experiments, as a person would start it."""
    # matplotlib makes a list of fonts the first time ever that it draws, and says so where that takes long.
    import matplotlib.font_manager  # noqa: F401

    output = tmp_path_factory.mktemp("out")
    command = [sys.executable, "-W", "error", "-m", "experiments", "all", "--data", small_data, "-o", output]
    result = subprocess.run([*command, "--seeds", "1"], cwd=ROOT, capture_output=True, text=True, check=False)
    return output, result


def test_all_experiments_run_and_write_their_files_and_nothing_else(everything):
    output, result = everything
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    expected = {f"{name}.{kind}" for name in EXPERIMENTS for kind in ("json", "png")}
    assert {path.name for path in output.iterdir()} == expected | {"reproduction.md", "reproduction.html"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_has_a_picture_and_a_verdict_on_every_claim(everything, name):
    output, _ = everything
    assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((output / f"{name}.json").read_text())
    assert record["status"] == "done"
    assert len(record["findings"]) == len(EXPERIMENTS[name].claims) >= 4
    for finding in record["findings"]:
        assert finding["verdict"] in set(Verdict)
        # Smaller data than the paper's cannot speak for or against it.
        assert (finding["verdict"] == "not judged") == bool(EXPERIMENTS[name].files), finding
    assert ("in place of" in record["smaller"]) == bool(EXPERIMENTS[name].files)
    for method in EXPERIMENTS[name].methods:
        runs = [one for one in record["runs"] if one["method"] == method.name]
        assert runs
        assert all(one["seconds"] for one in runs)


def test_the_report_has_every_claim_and_no_path_of_this_machine(everything, small_data):
    output, _ = everything
    page, text = (output / "reproduction.html").read_text(), (output / "reproduction.md").read_text()
    for experiment in EXPERIMENTS.values():
        assert experiment.title in text
        for claim in experiment.claims:
            assert _blocks._escaped(claim.text) in text
    for written in (page, text):
        assert str(small_data) not in written
        assert str(output) not in written
    # Self-contained: pictures are inside, and nothing is fetched.
    assert page.count("data:image/png;base64,") == len(EXPERIMENTS)
    assert not re.search(r'(?:src|href)="(?!data:)', page)


def test_table_one_has_the_columns_asked_for(everything):
    output, _ = everything
    tables = json.loads((output / "table1.json").read_text())["tables"]
    errors = [table for table in tables if "clustering error" in table["caption"]]
    assert [table["caption"].rsplit(" ", 1)[-1] for table in errors] == ["0.25", "0.5", "0.65", "1"]
    for table in errors:
        columns = " ".join(table["header"])
        for name in ("printed dPCA", "printed PCA", "ours dPCA", "ours PCA", "ours cPCA", 'shrinkage="clusters"'):
            assert name in columns
        assert [row[0] for row in table["rows"]] == ["1", "2", "3", "4", "5", "10", "50", "100"]


def test_the_synthetic_claims_of_the_proposed_methods_hold_on_any_machine(everything):
    output, _ = everything
    for name, method in (("kdpca_circles", "KdPCA"), ("mdpca_gaussians", "MdPCA"), ("kmdpca_circles", "KMdPCA")):
        finding = json.loads((output / f"{name}.json").read_text())["findings"][0]
        assert finding["text"].startswith(f"{method} shows")
        assert finding["verdict"] == "reproduced"
        assert finding["values"][""][method] == 0.0


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
    code, out, err = run("mice", "faces", "mdpca_gaussians", "--data", tmp_path / "empty", "-o", tmp_path / "out")
    assert code == 0
    assert err.count("\n") == 2
    assert "mice_protein.csv" in err
    assert "yaleb.npz" in err
    text = (tmp_path / "out" / "reproduction.md").read_text()
    assert "mice\\_protein.csv" in text
    findings = json.loads((tmp_path / "out" / "mice.json").read_text())["findings"]
    assert {finding["verdict"] for finding in findings} == {"not judged"}
    assert len(findings) == len(EXPERIMENTS["mice"].claims)
    assert "mdpca_gaussians: 4 reproduced" in out


def test_nothing_to_run_is_an_error(run, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("mice", "--data", tmp_path / "empty", "-o", tmp_path / "out")[0] == 2


def needs(file):
    return next(name for name, experiment in EXPERIMENTS.items() if file in experiment.files)


def copied(small_data, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes((small_data / name).read_bytes())
    return folder


def refused(run, tmp_path, folder, file):
    """Check that an experiment refuses a file in one plain line, and give the line."""
    code, out, err = run(needs(file), "--data", folder, "-o", tmp_path / "out", "--seeds", 1)
    assert code == 2
    assert err.count("\n") == 1
    assert file in err
    assert "Traceback" not in out + err
    assert (tmp_path / "out" / "reproduction.md").is_file()
    return err


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_is_refused(run, tmp_path, small_data, file):
    folder = copied(small_data, tmp_path)
    (folder / file).write_bytes(b"\x93 this is not what it should be \x00\xff")
    refused(run, tmp_path, folder, file)


@pytest.mark.parametrize("file", FILES)
def test_a_truncated_file_is_refused(run, tmp_path, small_data, file):
    folder = copied(small_data, tmp_path)
    content = (folder / file).read_bytes()
    # A table must not end at the end of a row, where it would be a smaller one.
    (folder / file).write_bytes(content[: len(content) // 2].rstrip(b"\r\n0123456789."))
    refused(run, tmp_path, folder, file)


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_the_wrong_shape_is_refused(run, tmp_path, small_data, file):
    folder = copied(small_data, tmp_path)
    if file.endswith(".csv"):
        lines = (folder / file).read_text().splitlines()
        (folder / file).write_text("\n".join(line.split(",", 1)[1] for line in lines))
        assert "MouseID" in refused(run, tmp_path, folder, file)
        return
    with np.load(folder / file) as stored:
        arrays = dict(stored)
    name = "X" if "X" in arrays else "images"
    np.savez(folder / file, **arrays | {name: arrays[name][:, :-1]})
    assert "shape" in refused(run, tmp_path, folder, file)


def test_files_without_the_groups_of_an_experiment_are_refused(run, tmp_path, small_data):
    folder = copied(small_data, tmp_path)
    with np.load(folder / "yaleb.npz") as stored:
        arrays = dict(stored)
    np.savez(folder / "yaleb.npz", **arrays | {"person": arrays["person"] + 10})
    code, _, err = run("faces", "--data", folder, "-o", tmp_path / "out", "--seeds", 1)
    assert code == 2
    assert err.count("\n") == 1
    assert "target has 1, but the data have" in err


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
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert word in err


def test_a_summary_is_left_as_it_was_unless_all_was_run_on_the_papers_data(run, tmp_path):
    kept = tmp_path / "summary.json"
    kept.write_text("as it was")
    code, _, err = run("mdpca_gaussians", "-o", tmp_path / "out", "--seeds", 1, "--summary", kept)
    assert code == 0
    assert kept.read_text() == "as it was"
    assert err.count("\n") == 1
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


def test_the_list_names_experiments_and_files(run):
    code, out, _ = run("--list")
    assert code == 0
    for name, experiment in EXPERIMENTS.items():
        assert name in out
        assert all(file in out for file in experiment.files)


def test_an_experiment_that_fails_does_not_lose_the_others(run, monkeypatch, tmp_path):
    def draw(loaded, setting, seed):
        raise ArithmeticError("out of luck")

    monkeypatch.setitem(EXPERIMENTS, "kdpca_circles", dataclasses.replace(EXPERIMENTS["kdpca_circles"], draw=draw))
    code, out, err = run("kdpca_circles", "mdpca_gaussians", "--seeds", 1, "-o", tmp_path / "out")
    assert code == 1
    assert "out of luck" in err
    assert "mdpca_gaussians: 4 reproduced" in out
    assert (tmp_path / "out" / "mdpca_gaussians.png").is_file()
    assert "out of luck" in (tmp_path / "out" / "reproduction.md").read_text()


def test_the_mice_and_the_faces_come_out_as_documented(run, tmp_path, data_dir):
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
    for path in sorted((ROOT / "experiments").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "standout":
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                assert not [name for name in names if name.startswith("_")], path.name


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
    samples = {setting: Sample(None, smaller) for setting in settings}
    return Results([Setting(name) for name in settings], runs, {}, samples)


def verdict(rule, found, **options):
    return judge(Claim("it is so", "printed", rule, "because"), found, **options).verdict


@pytest.mark.parametrize(
    ("rule", "figures", "expected"),
    [
        (_claims.PrintedError("a", 0.166), {"a": 0.12}, "better"),
        (_claims.PrintedError("a", 0.166), {"a": 0.18}, "reproduced"),
        (_claims.PrintedError("a", 0.166), {"a": 0.31}, "not reproduced"),
        (_claims.PrintedBaseline("a", 0.49), {"a": 0.48}, "reproduced"),
        (_claims.PrintedBaseline("a", 0.49), {"a": 0.30}, "not reproduced"),
        (_claims.Separates("a"), {"a": 0.25}, "reproduced"),
        (_claims.Separates("a"), {"a": 0.26}, "not reproduced"),
        (_claims.Mixes("a"), {"a": 0.25}, "reproduced"),
        (_claims.Mixes("a"), {"a": 0.24}, "not reproduced"),
        (_claims.Lowest("a", ("b", "c")), {"a": 0.1, "b": 0.2, "c": 0.3}, "reproduced"),
        (_claims.Lowest("a", ("b", "c")), {"a": 0.1, "b": 0.11, "c": 0.3}, "not reproduced"),
        (_claims.Improves("a", "b"), {"a": 0.1, "b": 0.2}, "better"),
        (_claims.Improves("a", "b"), {"a": 0.1, "b": 0.1}, "reproduced"),
        (_claims.Improves("a", "b"), {"a": 0.3, "b": 0.4}, "not reproduced"),
        (_claims.AtEvery("a", "b", ERROR, (2,)), {"a": 0.1, "b": 0.2}, "reproduced"),
        (_claims.AtEvery("a", "b", ERROR, (2,), higher=True), {"a": 0.1, "b": 0.2}, "not reproduced"),
        (_claims.BelowUpTo("a", 0.166, "b", 0.45, (2,)), {"a": 0.16, "b": 0.49}, "better"),
        (_claims.BelowUpTo("a", 0.166, "b", 0.45, (2,)), {"a": 0.16, "b": 0.44}, "not reproduced"),
    ],
)
def test_a_rule_gives_the_verdict_that_its_figures_call_for(rule, figures, expected):
    assert verdict(rule, results(figures)) == expected
    assert rule.words


@pytest.mark.parametrize(("ratio", "expected"), [(2.3, "better"), (2.0, "reproduced"), (1.3, "not reproduced")])
def test_a_larger_scatter_ratio_is_better(ratio, expected):
    assert verdict(_claims.PrintedScatter("a", 2.0, SCATTER), results({"a": ratio}, quantity=SCATTER)) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(15.0, "reproduced"), (2.0, "not reproduced")])
def test_run_times_are_judged_as_ratios(seconds, expected):
    found = results({"a": 0.0, "b": 0.0}, seconds={"a": seconds, "b": 1.0})
    assert verdict(_claims.TakesLonger("a", "b", 15.0), found) == expected


def test_a_claim_is_as_good_as_its_best_setting_and_says_which():
    claim = Claim("it is so", "printed", _claims.Separates("a"), "because")
    finding = judge(claim, results({"a": [0.4, 0.1]}, settings=("dark", "bright")))
    assert (finding.verdict, finding.where) == ("reproduced", "bright")
    finding = judge(claim, results({"a": [0.4, 0.4]}, settings=("dark", "bright")))
    assert (finding.verdict, finding.where, finding.reason) == ("not reproduced", "", "because")


def test_a_claim_that_must_hold_everywhere_is_as_good_as_its_worst_setting():
    claim = Claim("it is so", "printed", _claims.Separates("a"), "because")
    finding = judge(claim, results({"a": [0.4, 0.1]}, settings=("Ann", "Bob")), everywhere=True)
    assert (finding.verdict, finding.where, finding.reason) == ("not reproduced", "Bob", "because")


def test_smaller_data_are_not_judged():
    claim = Claim("it is so", "printed", _claims.Separates("a"), "because")
    finding = judge(claim, results({"a": 0.0}, smaller="3 rows in place of 4"))
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
