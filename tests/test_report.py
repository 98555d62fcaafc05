"""The report before it is a page: what is examined, what is said of it, and how it is kept."""

import io
import json
import re
import shutil
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
)
from standout.report import draw, examine, page, restore, store, summary
from standout.report._labels import MISSING, read_labels
from standout.report._views import MOST_BACKGROUND_POINTS, MOST_TARGET_POINTS
from standout.report._wording import brief, chance, correlation, number, percent, shortened


@pytest.fixture
def pair(rng):
    """Both vary most along the first column; the target alone along the last."""
    return rng.normal(size=(200, 6)) * [5, 1, 1, 1, 1, 3] + 4, rng.normal(size=(300, 6)) * [5, 1, 1, 1, 1, 1] - 2


def fitted(model, target, *backgrounds):
    return model.fit(target, background=list(backgrounds) or None)


def same_up_to_sign(first, second, tol=1e-5):
    scale = np.max(np.abs(second))
    return all(
        min(np.max(np.abs(a - b)), np.max(np.abs(a + b))) <= tol * scale for a, b in zip(first.T, second.T, strict=True)
    )


# Points and views


def test_points_are_the_scores_of_the_model_and_of_pca(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    findings = examine(model, target, background)
    ours, other = findings.datasets
    assert np.allclose(ours.scores, model.transform(target), atol=1e-4)
    assert np.allclose(other.scores, model.transform(background), atol=1e-4)
    pca = PCA(2).fit(target)
    assert same_up_to_sign(ours.pca_scores, pca.transform(target), 1e-4)
    assert same_up_to_sign(other.pca_scores, pca.transform(background), 1e-4)
    agreement = np.einsum("ij,ij->j", ours.scores - ours.scores.mean(0), ours.pca_scores)
    assert np.all(agreement >= 0)


def test_of_many_rows_a_fixed_sample_is_shown_but_all_are_counted(rng):
    target, first, second = rng.normal(size=(7000, 3)) * [1, 1, 2], rng.normal(size=(4000, 3)), rng.normal(size=(50, 3))
    ids = [f"cell {row}" for row in range(7000)]
    labels = np.arange(7000) % 2
    model = fitted(DiscriminativePCA(2), target, first, second)
    findings = examine(model, target, [first, second], ids=ids, labels=labels)
    assert [len(part.rows) for part in findings.datasets] == [MOST_TARGET_POINTS, MOST_BACKGROUND_POINTS // 2, 50]
    rows = findings.target.rows
    assert np.all(np.diff(rows) > 0)
    assert findings.target.ids == tuple(ids[row] for row in rows)
    assert findings.target.groups.tolist() == labels[rows].tolist()
    assert np.allclose(findings.target.scores, model.transform(target)[rows], atol=1e-4)
    assert [part.counts.sum(axis=1).tolist() for part in findings.datasets] == [[7000] * 2, [4000] * 2, [50] * 2]
    assert np.array_equal(findings.label_counts.sum(axis=0), findings.target.counts)
    assert np.array_equal(examine(model, target, [first, second]).target.rows, rows)


def test_a_few_far_off_rows_do_not_press_all_others_into_one_bin(pair):
    target, background = pair
    target = target.copy()
    target[0] *= 1e5
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background)
    assert findings.target.counts[0].sum() == 200
    assert np.count_nonzero(findings.datasets[1].counts[0]) > 1 or np.ptp(findings.bin_edges[0]) < 1e6


def test_a_million_rows_take_little_memory_beside_the_data(rng):
    # 40 MB stand for more: what is kept per row is a score of each component.
    target, background = rng.normal(size=(100_000, 50)), rng.normal(size=(1000, 50))
    model = fitted(DiscriminativePCA(2), target, background)
    tracemalloc.start()
    examine(model, target, background)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.75 * target.nbytes


@pytest.mark.parametrize("form", ["frame", "sparse", "float32", "pipeline"])
def test_every_form_of_data_is_examined(form, pair):
    target, background = pair
    if form == "frame":
        target, background = (pd.DataFrame(data, columns=list("abcdef")) for data in pair)
    elif form == "sparse":
        target, background = (sparse.csr_array(data) for data in pair)
    elif form == "float32":
        target, background = (data.astype(np.float32) for data in pair)
    model = make_pipeline(StandardScaler(), DiscriminativePCA(2)) if form == "pipeline" else DiscriminativePCA(2)
    findings = examine(fitted(model, target, background), target, background)
    assert np.allclose(findings.target.scores, model.transform(target), atol=1e-3)
    assert findings.features == (tuple("abcdef") if form == "frame" else tuple(f"column {k}" for k in range(6)))
    assert np.argmax(np.abs(findings.correlations[0])) == 5


def test_correlations_are_those_of_columns_and_scores(pair):
    target, background = pair
    for model in (DiscriminativePCA(2), ContrastivePCA(2), KernelDiscriminativePCA(2)):
        fitted(model, target, background)
        scores = model.transform(target)
        expected = np.corrcoef(target.T, scores.T)[:6, 6:].T
        assert np.allclose(examine(model, target, background).correlations, expected, atol=1e-6)


def test_what_does_not_fit_the_model_is_refused(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    with pytest.raises(ValueError, match="backgrounds"):
        examine(model, target)
    with pytest.raises(ValueError, match="backgrounds"):
        examine(model, target, [background, background])
    with pytest.raises(ValueError, match="5 features"):
        examine(model, target[:, :5], background[:, :5])
    with pytest.raises(ValueError, match="ids"):
        examine(model, target, background, ids=["a"])
    with pytest.raises(ValueError, match="labels"):
        examine(model, target, background, labels=["a"] * 201)
    with pytest.raises(ValueError, match="list of names"):
        examine(model, target, background, features=["a"])
    with pytest.raises(ValueError, match="background names"):
        examine(model, target, background, background_names=["a", "b"])


# The path


def test_the_path_holds_the_fit_and_ends_at_pca(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    findings = examine(model, target, background)
    path = findings.path
    shown = np.concatenate([part.scores for part in findings.datasets])
    assert path.parameter == "shrinkage"
    assert path.values[path.chosen] == pytest.approx(model.shrinkage_[0])
    assert np.array_equal(path.scores[path.chosen], shown)
    assert np.all(np.diff(path.values) > 0)
    assert (path.values[0], path.values[-1]) == (0.0, 1.0)
    angle = np.corrcoef(path.scores[-1, :200].T, findings.target.pca_scores.T)[:2, 2:]
    assert np.allclose(np.abs(np.diag(angle)), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda **kw: DiscriminativePCA(2, **kw), "shrinkage"),
        (lambda **kw: ContrastivePCA(2, **kw), "alpha"),
        (lambda **kw: KernelDiscriminativePCA(2, kernel="poly", degree=2, **kw), "epsilon"),
        (lambda **kw: KernelDiscriminativePCA(2, **kw), "epsilon"),
        (lambda **kw: KernelContrastivePCA(2, **kw), "alpha"),
    ],
    ids=["shrinkage", "alpha", "epsilon", "epsilon of full rank", "candidates"],
)
def test_every_step_of_a_path_is_a_fit_at_its_value(make, parameter, pair):
    target, background = pair
    findings = examine(fitted(make(), target, background), target, background)
    path = findings.path
    assert path.parameter == parameter
    for index in {0, len(path.values) // 2, len(path.values) - 1}:
        again = fitted(make(**{parameter: float(path.values[index])}), target, background)
        expected = again.transform(np.concatenate([target, background]))
        # Where two eigenvalues are close, rounding turns the second direction: the first is looked at.
        assert same_up_to_sign(path.scores[index][:, :1], expected[:, :1], 2e-3)


def test_neighbouring_views_do_not_flip(pair):
    target, background = pair
    path = examine(fitted(DiscriminativePCA(2), target, background), target, background).path
    first = path.scores[:, :200] - path.scores[:, :200].mean(axis=1, keepdims=True)
    assert np.all(np.einsum("gij,gij->gj", first[1:], first[:-1]) >= 0)


def test_there_is_no_path_without_background_or_wish(pair):
    target, background = pair
    assert examine(fitted(DiscriminativePCA(2), target), target).path is None
    model = fitted(DiscriminativePCA(2), target, background)
    assert examine(model, target, background, with_path=False).path is None


# What is said


def test_the_headline_says_how_much_how_surely_and_by_which_column(pair):
    target, background = pair
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background, features=list("abcdeZ"))
    words = summary(findings)["headline"]
    assert "times as much as the background" in words
    assert "p < 0.001" in words
    assert "Z follows it most closely" in words


def test_the_headline_says_where_nothing_stands_out(rng):
    target, background = rng.normal(size=(200, 5)), rng.normal(size=(300, 5))
    found = summary(examine(fitted(DiscriminativePCA(2), target, background), target, background))
    assert found["headline"].startswith("Nothing stands out more than chance")
    assert found["test"]["n_significant"] == 0


def test_a_test_by_formula_is_of_the_fitted_components(pair):
    target, background = pair
    # Strong shrinkage of unequal columns turns to the largest column, which does not stand out.
    findings = examine(fitted(DiscriminativePCA(1, shrinkage=0.9), target, background), target, background)
    assert np.argmax(np.abs(findings.components[0])) == 0
    assert findings.test.n_significant == 0
    assert summary(findings)["headline"].startswith("Nothing stands out")
    plain = findings.target_variance[0] / findings.background_variance[0, 0]
    assert findings.test.ratios[0] == pytest.approx(plain)
    mild = examine(fitted(DiscriminativePCA(1, shrinkage=0.05), target, background), target, background)
    assert "as much as the background, more than chance explains" in summary(mild)["headline"]


def test_the_test_of_the_fit_is_used_if_there_is_one(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2, test="permutation"), target, background)
    assert examine(model, target, background).test is model.component_test_
    assert examine(fitted(ContrastivePCA(2), target, background), target, background).test is None


def test_with_more_columns_than_background_rows_there_is_no_test_and_a_warning(rng):
    target, background = rng.normal(size=(30, 60)), rng.normal(size=(40, 60))
    findings = examine(fitted(DiscriminativePCA(2), target, background), target, background)
    assert findings.test is None
    assert any("more columns (60) than the background has rows (40)" in sentence for sentence in findings.warnings)
    assert any('Use test="permutation"' in sentence for sentence in findings.choices)


def test_warnings_are_given_in_words(pair):
    target, background = (np.column_stack([data, np.full(len(data), 7.0)]) for data in pair)
    background = background.copy()
    background[:, 2] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = fitted(DiscriminativePCA(2, shrinkage=None), target, background)
    given = ["3 rows were dropped."]
    findings = examine(model, target, background, features=[*"abcdef", "same"], warnings=given)
    text = " ".join(summary(findings)["warnings"])
    assert findings.warnings[0] == "3 rows were dropped."
    assert "(same) is the same in every row" in text
    assert "(c) is constant in the background but not in the target" in text
    assert "background is singular" in text
    assert "p-values: none" in " ".join(findings.choices)
    assert summary(findings)["components"][0]["eigenvalue"] == "inf"


def test_dependent_columns_leave_fewer_directions_and_no_error(rng):
    target, background = (np.repeat(rng.normal(size=(100, 1)), 3, axis=1) * scale for scale in ([3, 3, 3], [1, 1, 1]))
    model = fitted(DiscriminativePCA(2, shrinkage=0.1), target, background)
    findings = examine(model, target, background)
    assert findings.path.values[0] > 0.0
    assert page(findings)


def test_unequal_units_and_heavy_tails_are_warned_of(rng):
    target, background = rng.normal(size=(500, 3)) * [1e5, 1, 1], rng.normal(size=(500, 3)) * [1e5, 1, 1]
    findings = examine(fitted(ContrastivePCA(1), target, background), target, background)
    assert any("differ much in size" in sentence for sentence in findings.warnings)
    target, background = rng.standard_t(3, size=(2000, 3)), rng.standard_t(3, size=(2000, 3))
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background)
    assert any("heavier tails" in sentence for sentence in findings.warnings)


def test_choices_say_how_they_were_made(pair):
    target, background = pair
    target = target + np.outer(np.where(np.arange(200) < 100, -6.0, 6.0), [0, 0, 0, 0, 0, 1])

    def said(model, *backgrounds):
        return " ".join(examine(fitted(model, target, *backgrounds), target, list(backgrounds)).choices)

    assert "Ledoit and Wolf" in said(DiscriminativePCA(1), background)
    assert "falls most clearly into two groups" in said(DiscriminativePCA(1, shrinkage="clusters"), background)
    assert "none, as asked" in said(DiscriminativePCA(1, shrinkage=None), background)
    assert "Shrinkage: 0.2, as asked" in said(DiscriminativePCA(1, shrinkage=0.2), background)
    assert "those that are more than chance" in said(DiscriminativePCA("auto"), background)
    worst = DiscriminativePCA(1, background_weights="worst-case")
    assert "stands out least" in said(worst, background[:150], background[150:])
    assert "α: 2, as asked" in said(ContrastivePCA(1, alpha=2.0), background)
    assert "look at the others, too" in said(ContrastivePCA(1), background)
    assert "Kernel: rbf" in said(KernelDiscriminativePCA(1, epsilon="scaled"), background)


def test_the_code_does_the_same(pair):
    target, background = pair
    models = [
        DiscriminativePCA(2, shrinkage="auto"),
        DiscriminativePCA(1, shrinkage=0.25, test="permutation"),
        ContrastivePCA(2, alpha=2.0),
        KernelDiscriminativePCA(2, kernel="poly", degree=2, epsilon="scaled"),
        make_pipeline(StandardScaler(), DiscriminativePCA(1)),
    ]
    for model in models:
        code = examine(fitted(model, target, background), target, background).code
        assert code.count("\n") <= 5
        names = {"target": target, "background": background}
        exec(code.replace("print(", "shown = ("), names)
        assert np.array_equal(names["scores"], model.transform(target)), code


def test_the_code_names_several_backgrounds_and_labels(pair):
    target, background = pair
    two = [background[:100], background[100:]]
    assert (
        "background=[background_1, background_2]"
        in examine(fitted(DiscriminativePCA(1, background_weights=[1, 2]), target, *two), target, two).code
    )
    X, y = np.concatenate([target, background]), np.repeat(["stim", "rest"], [200, 300])
    model = DiscriminativePCA(1, target_label="stim").fit(X, y)
    findings = examine(model, target, background)
    assert 'target_label="stim"' in findings.code
    assert "fit(X, y)" in findings.code
    assert findings.backgrounds[0].name == "rest"
    assert examine(model, target, background, code="import this").code == "import this"


# Labels


def test_labels_are_groups_or_a_scale_and_may_be_missing():
    few = read_labels([2, 1, 2], 3)
    assert few.names == ("1", "2")
    assert few.groups.tolist() == [1, 0, 1]
    mixed = read_labels(["b", None, "a"], 3)
    assert mixed.names == (MISSING, "a", "b")
    scale = read_labels(np.linspace(0, 1, 50), 50)
    assert scale.groups is None
    assert scale.values[-1] == 1.0
    many = read_labels([f"label {k % 40:02d}" for k in range(100)], 100)
    assert len(many.names) == 12
    assert many.names[-1] == "other labels (29)"
    assert many.groups.max() == 11


def test_the_clustering_error_is_that_of_the_metric(pair):
    target, background = pair
    sides = np.where(np.arange(200) < 100, "left", "right")
    target = target + np.outer(np.where(sides == "left", -8.0, 8.0), [0, 0, 0, 0, 0, 1])
    model = fitted(DiscriminativePCA(2), target, background)
    findings = examine(model, target, background, labels=sides)
    assert findings.clustering_error < 0.02
    assert findings.pca_clustering_error is not None
    assert examine(model, target, background).clustering_error is None
    assert examine(model, target, background, labels=np.arange(200.0)).clustering_error is None


# Summary, store, picture


def every_method(target, background):
    return {
        "dpca": (DiscriminativePCA(2), [background]),
        "one component": (DiscriminativePCA(1), [background]),
        "two backgrounds": (DiscriminativePCA(3), [background[:100], background[100:]]),
        "pca": (DiscriminativePCA(2), []),
        "cpca": (ContrastivePCA(2), [background]),
        "kernel": (KernelDiscriminativePCA(2), [background]),
        "kernel pca": (KernelDiscriminativePCA(2), []),
        "kernel cpca": (KernelContrastivePCA(2), [background]),
    }


def test_a_stored_report_comes_back_as_it_was(pair, tmp_path):
    target, background = pair
    for name, (model, backgrounds) in every_method(target, background).items():
        labels = np.arange(200) % 3 if name != "cpca" else np.linspace(0, 1, 200)
        findings = examine(
            fitted(model, target, *backgrounds), target, backgrounds or None, ids=np.arange(200), labels=labels
        )
        store(findings, tmp_path / name)
        again = restore(tmp_path / name)
        assert summary(again) == summary(findings)
        assert page(again) == page(findings), name
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["report.json", "report.npz"]


def test_a_report_that_is_not_there_or_damaged_is_told_of(pair, tmp_path):
    target, background = pair
    with pytest.raises(FileNotFoundError, match=r"report\.json"):
        restore(tmp_path)
    findings = examine(fitted(DiscriminativePCA(2), target, background), target, background)
    store(findings, tmp_path)
    words = tmp_path / "report.json"
    whole = words.read_text()
    for text in ("", "[]", '{"form": 99}', '{"form": 1, "findings": {}}', whole.replace('"method"', '"other"')):
        words.write_text(text)
        with pytest.raises(ValueError, match="cannot be used"):
            restore(tmp_path)
    words.write_text(whole)
    (tmp_path / "report.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match="cannot be used"):
        restore(tmp_path)


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
}
FORGERIES = {
    "no dataset": lambda findings: findings.update(datasets=[]),
    "a number as text": lambda findings: findings.update(method=7),
    "texts as a number": lambda findings: findings.update(features=7),
    "one text as several": lambda findings: findings.update(warnings="careful"),
    "texts that are none": lambda findings: findings.update(choices=[1, 2]),
    "pairs": lambda findings: findings.update(asked={"method": 7}),
    "an error in words": lambda findings: findings.update(clustering_error="none"),
    "an array in words": lambda findings: findings.update(eigenvalues=[1.0, 2.0]),
    "a step beyond": lambda findings: findings["path"].update(chosen=1000),
    "a parameter": lambda findings: findings["path"].update(parameter="beta"),
    "ids": lambda findings: findings["datasets"][0].update(ids=["a"]),
    "a name": lambda findings: findings["datasets"][0].update(name=None),
    "rows": lambda findings: findings["datasets"][0].update(n_rows=-1),
    "a test": lambda findings: findings["test"].update(n_significant=99),
    "another record": lambda findings: findings.update(path=findings["test"]),
    "a number instead of a record": lambda findings: findings.update(test=3),
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
    with pytest.raises(ValueError, match=r"cannot be used: .+\. Make it anew with standout\.report\.store\.$"):
        restore(folder)


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
    FORGERIES[forgery](kept["findings"])
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


def test_what_fails_leaves_nothing_behind_and_what_was_there_as_it_was(pair, tmp_path, monkeypatch):
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


def test_scores_that_are_known_give_the_same_report(pair):
    target, background = pair
    for model, backgrounds in every_method(target, background).values():
        fitted(model, target, *backgrounds)
        known = [model.transform(rows) for rows in (target, *backgrounds)]
        ours, theirs = (examine(model, target, backgrounds or None, scores=scores) for scores in (known, None))
        assert page(ours) == page(theirs)
    with pytest.raises(ValueError, match="Give one for each dataset"):
        examine(model, target, backgrounds, scores=known[:1])
    with pytest.raises(ValueError, match="Give one for each row of each dataset"):
        examine(model, target, backgrounds, scores=[known[0][1:], known[1]])


def test_dependent_columns_leave_the_fitted_components_to_be_tested(pair):
    target, background = (np.column_stack([rows, rows[:, :3].sum(axis=1)]) for rows in pair)
    findings = examine(fitted(DiscriminativePCA(2, shrinkage=0.1), target, background), target, background)
    assert findings.test is not None
    with pytest.warns(UserWarning, match="singular"):
        model = fitted(DiscriminativePCA(2, shrinkage=None), target, background)
    findings = examine(model, target, background)
    assert not any("n_components=" in sentence for sentence in findings.choices)


def test_equal_shrinkages_are_said_once(pair):
    target, background = pair
    target[:100, 5] += 20
    halves = [background[:100], background[100:]]
    chosen = examine(fitted(DiscriminativePCA(2, shrinkage="clusters"), target, *halves), target, halves)
    assert re.match(r"Shrinkage: [\d.]+, ", chosen.choices[0])


def test_a_stored_report_holds_no_objects(pair, tmp_path):
    target, background = pair
    store(examine(fitted(DiscriminativePCA(2), target, background), target, background), tmp_path)
    with np.load(tmp_path / "report.npz", allow_pickle=False) as stored:
        assert {stored[name].dtype.kind for name in stored.files} <= set("fi")


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
    monkeypatch.setattr("standout._validation._extras.find_spec", lambda package: None)
    with pytest.raises(ImportError, match="pip install bokeh, .* standout's extra 'report'"):
        page(findings)
    with pytest.raises(ImportError, match="pip install matplotlib, .* standout's extra 'plots'"):
        draw(findings, tmp_path / "a.png")


def test_importing_the_report_imports_neither_bokeh_nor_matplotlib():
    script = "import sys, standout.report; print([name for name in ('bokeh', 'matplotlib') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "[]", result.stderr


# Wording


def test_numbers_are_said_briefly():
    assert [number(value) for value in (8.126, 1240.2, 0.00213, 3.1e-7, -2.5, 0.0, float("inf"))] == [
        "8.13",
        "1,240",
        "0.00213",
        "3.10e−7",
        "−2.50",
        "0",
        "∞",
    ]
    assert [brief(value) for value in (0.001, 0.24, 7.0, 100.0, 1e-9)] == ["0.001", "0.24", "7", "100", "1.0e−9"]
    assert [percent(value) for value in (0.0, 0.004, 0.123, 0.999, 1.0)] == ["0 %", "0.4 %", "12 %", "99.9 %", "100 %"]
    assert [correlation(value) for value in (0.5, -0.25, -0.001)] == ["0.50", "−0.25", "0.00"]
    assert [chance(value) for value in (0.0, 0.005, 0.31)] == ["p < 0.001", "p = 0.005", "p = 0.31"]


def test_long_and_empty_names_are_shortened():
    assert shortened("  a\n b ") == "a b"
    assert shortened("") == "(empty name)"
    assert len(shortened("x" * 500, 40)) == 40
