"""The report in files: the summary, what is stored to make it again, the picture; and the packages it needs."""

import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from report_runs import every_method, fitted
from standout import DiscriminativePCA
from standout._messages import Message
from standout.report import draw, examine, page, restore, store, summary

OLD = Path(__file__).parent / "data" / "report_form_1"


def test_a_stored_report_comes_back_as_it_was(pair, tmp_path):
    target, background = pair
    note = Message("column {name} was dropped", parameter="drop", value=("a", 2), name="{b}", limit=(0, 1), kind="note")
    for name, (model, backgrounds) in every_method(target, background).items():
        labels = np.arange(200) % 3 if name != "cpca" else np.linspace(0, 1, 200)
        findings = examine(
            fitted(model, target, *backgrounds),
            target,
            backgrounds or None,
            ids=np.arange(200),
            labels=labels,
            notes=[note],
        )
        store(findings, tmp_path / name)
        again = restore(tmp_path / name)
        assert page(again) == page(findings), name
        assert [message.facts for message in again.choices] == [
            {key: tuple(value) if isinstance(value, list) else value for key, value in message.facts.items()}
            for message in findings.choices
        ]
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["report.json", "report.npz"]


def test_a_report_that_an_earlier_version_stored_is_restored():
    findings = restore(OLD)
    assert findings.target.name == "treated"
    assert findings.n_other_labels > 0
    assert [message.facts["kind"] for message in findings.choices].count("parameter") == 1
    found = summary(findings)
    assert found["warnings"][0] == "2 rows with 'a' were dropped."
    assert any("({same})" in sentence for sentence in found["warnings"])
    assert "mouse 1" in page(findings)


def test_a_report_that_is_missing_or_damaged_is_refused(pair, tmp_path):
    target, background = pair
    with pytest.raises(FileNotFoundError, match=r"report\.json"):
        restore(tmp_path)
    findings = examine(fitted(DiscriminativePCA(2), target, background), target, background)
    store(findings, tmp_path)
    words = tmp_path / "report.json"
    whole = words.read_text()
    for text in ("", "[]", '{"form": 99}', '{"form": 1, "findings": {}}', '{"form": 2, "findings": {}}', "7"):
        words.write_text(text)
        refused(tmp_path)
    words.write_text(whole.replace('"method"', '"other"'))
    refused(tmp_path)
    words.write_text(whole)
    (tmp_path / "report.npz").write_bytes(b"PK\x03\x04")
    refused(tmp_path)


DAMAGES = {
    "a row less": lambda arrays: {"findings.datasets.0.scores": arrays["findings.datasets.0.scores"][1:]},
    "a column less": lambda arrays: {"findings.components": arrays["findings.components"][:, 1:]},
    "a component less": lambda arrays: {"findings.eigenvalues": arrays["findings.eigenvalues"][1:]},
    "no number": lambda arrays: {"findings.bin_edges": arrays["findings.bin_edges"] * np.nan},
    "words": lambda arrays: {"findings.weights": np.array(["heavy"])},
    "one number": lambda arrays: {"findings.spreads": np.float64(1.0)},
    "a bin more": lambda arrays: {"findings.datasets.1.counts": np.ones((2, 49), dtype=np.int64)},
    "a row that is not there": lambda arrays: {"findings.datasets.0.rows": arrays["findings.datasets.0.rows"] + 1},
    "an unknown label": lambda arrays: {"findings.datasets.0.groups": arrays["findings.datasets.0.groups"] + 2},
    "a step less": lambda arrays: {"findings.path.values": arrays["findings.path.values"][1:]},
    "points of the path": lambda arrays: {"findings.path.scores": arrays["findings.path.scores"][:, 1:]},
    "p-values": lambda arrays: {"findings.test.p_values": arrays["findings.test.p_values"][1:]},
    "labels": lambda arrays: {"findings.label_counts": arrays["findings.label_counts"][1:]},
    "whole numbers": lambda arrays: {"findings.datasets.0.rows": arrays["findings.datasets.0.rows"] + 0.5},
}


def dataset(findings, **parts):
    findings["datasets"][0]["fields"].update(parts)


def path(findings, **parts):
    findings["path"]["fields"].update(parts)


def message(findings, **parts):
    findings["choices"][0]["fields"].update(parts)


FORGERIES = {
    "no dataset": lambda findings: findings.update(datasets=[]),
    "a number as text": lambda findings: findings.update(method=7),
    "texts as a number": lambda findings: findings.update(features=7),
    "one text as several": lambda findings: findings.update(cautions="careful"),
    "texts as messages": lambda findings: findings.update(choices=["careful"]),
    "pairs": lambda findings: findings.update(asked={"mapping": {"method": 7}}),
    "an error in words": lambda findings: findings.update(clustering_error="none"),
    "an array in words": lambda findings: findings.update(eigenvalues=[1.0, 2.0]),
    "other labels": lambda findings: findings.update(n_other_labels=-1),
    "a step beyond": lambda findings: path(findings, chosen=1000),
    "a parameter": lambda findings: path(findings, parameter="beta"),
    "ids": lambda findings: dataset(findings, ids=["a"]),
    "a name": lambda findings: dataset(findings, name=None),
    "rows": lambda findings: dataset(findings, n_rows=-1),
    "a test": lambda findings: findings["test"]["fields"].update(n_significant=99),
    "another record": lambda findings: findings.update(path=findings["test"]),
    "an unknown record": lambda findings: findings["path"].update(record="Popen"),
    "a number instead of a record": lambda findings: findings.update(test=3),
    "an array that is not there": lambda findings: findings.update(scree={"array": "findings.other"}),
    "a template that looks inside": lambda findings: message(findings, problem="{p.__class__.__init__.__globals__}"),
    "a template that asks for more": lambda findings: message(findings, problem="{nothing}"),
    "a template that fills the memory": lambda findings: message(findings, problem="{kind:>999999999}"),
    "half a template": lambda findings: message(findings, problem="{kind"),
    "a message without words": lambda findings: message(findings, problem=7),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    rng = np.random.default_rng(0)
    target, background = rng.normal(size=(200, 6)) * [5, 1, 1, 1, 1, 3], rng.normal(size=(300, 6)) * [5, 1, 1, 1, 1, 1]
    folder = tmp_path_factory.mktemp("stored")
    model = fitted(DiscriminativePCA(2), target, background)
    store(examine(model, target, background, ids=np.arange(200), labels=np.arange(200) % 2), folder)
    return folder


def refused(folder):
    with pytest.raises(ValueError, match="cannot be used") as caught:
        restore(folder)
    assert caught.value.facts["fault"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_numbers_that_do_not_fit_together_are_refused(damage, stored, tmp_path):
    shutil.copytree(stored, tmp_path / "report")
    numbers = tmp_path / "report" / "report.npz"
    with np.load(numbers) as kept:
        arrays = dict(kept)
    np.savez(numbers, **{**arrays, **DAMAGES[damage](arrays)})
    refused(tmp_path / "report")


@pytest.mark.parametrize("forgery", FORGERIES)
def test_words_that_do_not_fit_together_are_refused(forgery, stored, tmp_path):
    shutil.copytree(stored, tmp_path / "report")
    words = tmp_path / "report" / "report.json"
    kept = json.loads(words.read_text())
    FORGERIES[forgery](kept["findings"]["fields"])
    words.write_text(json.dumps(kept))
    refused(tmp_path / "report")


def test_what_breaks_its_reader_is_refused(stored, tmp_path):
    shutil.copytree(stored, tmp_path / "report")
    words, numbers = tmp_path / "report" / "report.json", tmp_path / "report" / "report.npz"
    kept = words.read_text()
    words.write_text("[" * 100_000)
    refused(tmp_path / "report")
    words.write_text(kept)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**60,)})
    with zipfile.ZipFile(numbers, "w") as archive:
        archive.writestr("findings.weights.npy", header.getvalue())
    refused(tmp_path / "report")


def test_an_error_leaves_nothing_behind_and_old_files_as_they_were(pair, tmp_path, monkeypatch):
    target, background = pair
    findings = examine(fitted(DiscriminativePCA(2), target, background), target, background, with_path=False)
    store(findings, tmp_path)
    draw(findings, tmp_path / "figure.png")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: path.write_bytes(b"half") and full())
    with pytest.raises(OSError, match="No space left"):
        store(findings, tmp_path)
    with pytest.raises(OSError, match="No space left"):
        draw(findings, tmp_path / "figure.png")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_stored_report_holds_no_objects(stored):
    with np.load(stored / "report.npz", allow_pickle=False) as arrays:
        assert {arrays[name].dtype.kind for name in arrays.files} <= set("fi")


def test_a_summary_is_json_without_points(pair):
    target, background = pair
    for model, backgrounds in every_method(target, background).values():
        findings = examine(fitted(model, target, *backgrounds), target, backgrounds or None)
        text = json.dumps(summary(findings), allow_nan=False)
        assert len(text) < 20_000
        assert json.loads(text)["components"][0]["component"] == 1


def test_a_picture_is_drawn_of_every_method_and_any_name(pair, tmp_path):
    target, background = pair
    labels = np.array(["$x^", "_hidden", "\\frac{", "a\nb"])[np.arange(200) % 4]
    for name, (model, backgrounds) in every_method(target, background).items():
        findings = examine(
            fitted(model, target, *backgrounds),
            target,
            backgrounds or None,
            labels=labels if name != "cpca" else np.linspace(0, 1, 200),
            background_names=["$" * (k + 1) for k in range(len(backgrounds))] if backgrounds else None,
            with_path=False,
        )
        draw(findings, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.glob(".*"))


# Extras


def test_the_report_says_which_extra_it_lacks(pair, monkeypatch, tmp_path):
    target, background = pair
    findings = examine(fitted(DiscriminativePCA(2), target, background), target, background, with_path=False)
    monkeypatch.setattr("standout._messages.find_spec", lambda package: None)
    with pytest.raises(ImportError, match="pip install bokeh, .* standout's extra 'report'"):
        page(findings)
    with pytest.raises(ImportError, match="pip install matplotlib, .* standout's extra 'plots'"):
        draw(findings, tmp_path / "a.png")


def test_importing_the_report_imports_neither_bokeh_nor_matplotlib():
    packages = ("bokeh", "jinja2", "matplotlib")
    script = f"import sys, standout.report; print([name for name in {packages} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "[]", result.stderr
