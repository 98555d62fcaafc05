"""Few columns, sides and neighbours on the command line and in the report."""

import json

import numpy as np
import pytest

import standout
from cli_runs import csv_text
from standout import ContrastivePCA, DiscriminativePCA
from standout.cli import main
from standout.report import examine, page, summary


@pytest.fixture
def data(rng):
    X, Y = rng.normal(size=(120, 12)), rng.normal(size=(150, 12))
    X[:, 0] *= 3.0
    X[:, 5] *= 0.3
    return X, Y


def said(findings, kind):
    return [message.phrased() for message in findings.choices if message.facts.get("kind") == kind]


def test_the_words_follow_the_side(data):
    X, Y = data
    less = examine(DiscriminativePCA(1, side="background").fit(X, background=Y), X, Y)
    text = json.dumps(summary(less), ensure_ascii=False)
    assert "varies less than the background" in text
    assert summary(less)["side"] == "background"
    assert said(less, "side") == [
        "Side: the background's. Components are directions in which the target varies less than it does."
    ]
    assert "What varies less in the target than in the background?" in page(less)
    both = examine(ContrastivePCA(2, side="both").fit(X, background=Y), X, Y)
    assert "What differs most between the target and the background?" in page(both)
    # The formula and the slider know the largest ratios only.
    assert less.test is None
    assert less.path is None


def test_few_columns_are_listed_with_how_often_folds_choose_them(data):
    X, Y = data
    dpca = DiscriminativePCA(1, n_columns=3).fit(X, background=Y)
    findings = examine(dpca, X, Y, features=[f"gene_{k}" for k in range(12)])
    (sentence,) = said(findings, "columns")
    assert sentence.startswith("Columns: 3 of 12, as given.")
    assert "gene_0 (100 %)" in sentence
    listed = summary(findings)["columns"]
    assert [entry["name"] for entry in listed] == [f"gene_{k}" for k in dpca.columns_]
    assert listed[0]["frequency"] == pytest.approx(dpca.column_frequency_[dpca.columns_[0]])


def test_patterns_are_drawn_along_a_chain_and_as_images(data):
    X, Y = data
    chain = examine(DiscriminativePCA(2, smooth="chain", smoothness="held-out").fit(X, background=Y), X, Y)
    html = page(chain)
    assert html.count('along the columns"><path') == 2
    assert "Smoothness: " in html
    grid = examine(DiscriminativePCA(2, smooth=(3, 4)).fit(X, background=Y), X, Y)
    assert grid.image_shape == (3, 4)
    assert "Patterns as images" in page(grid)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--side", "background"], {"side": "background", "shrinkage": "held-out"}),
        (["--n-columns", "auto"], {"n_columns": "auto", "shrinkage": "clusters"}),
        (["--n-columns", "7", "--method", "cpca"], {"n_columns": 7}),
        (["--smooth", "chain", "--smoothness", "held-out"], {"smooth": "chain", "smoothness": "held-out"}),
        (["--smooth", "grid:3x4"], {"smooth": (3, 4), "smoothness": 1.0}),
    ],
)
def test_options_become_parameters(options, expected, data, tmp_path):
    names = [f"c{k}" for k in range(12)]
    for name, rows in zip(("target", "background"), data, strict=True):
        (tmp_path / f"{name}.csv").write_text(csv_text(rows, names))
    files = [str(tmp_path / "target.csv"), "-b", str(tmp_path / "background.csv"), "-o", str(tmp_path / "out")]
    assert main(["fit", *files, "--quiet", "--test", "none", *options]) == 0
    model = standout.load(tmp_path / "out" / "model.skops")
    assert {name: model.get_params()[name] for name in expected} == expected
    assert np.isfinite(model.components_).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--smooth", "ring"], "is none of these: chain"),
        (["--n-columns", "3", "--method", "kdpca"], "is for dpca, cpca"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, match, tmp_path, capsys):
    assert main(["fit", "a.csv", "-b", "b.csv", "-o", str(tmp_path / "out"), *options]) != 0
    assert match in capsys.readouterr().err
