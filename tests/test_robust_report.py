"""What a report says of rows that are out of place: with robust weights, and without them."""

import csv
import re
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_wine

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, scan
from standout.cli import main
from standout.datasets import make_digits_over_photographs
from standout.report import draw, examine, page, restore, store, summary

FEATURES = ["iron", "zinc", "age", "size", "lead", "gold"]


@pytest.fixture
def rows(rng):
    target, background = rng.normal(size=(300, 6)), rng.normal(size=(400, 6))
    for data in (target, background):
        data[:, 0] *= 5.0
    target[:, 1] *= 3.5
    target[::40] += 30.0 * rng.normal(size=(8, 6))
    target[5, 2] = 900.0
    background[::70] += 30.0 * rng.normal(size=(6, 6))
    return target, background


def kinds(findings):
    return [message.facts.get("kind") for message in findings.cautions]


@pytest.mark.parametrize("robust", ["rows", "cells"])
def test_rows_that_count_less_are_listed_by_name(robust, rows, tmp_path):
    target, background = rows
    ids = [f"mouse {number}" for number in range(300)]
    model = DiscriminativePCA(2, robust=robust).fit(target, background=background)
    seen = []
    findings = examine(
        model, target, background, features=FEATURES, ids=ids, on_scores=lambda *given: seen.append(given)
    )
    listed = {stray.name for stray in findings.strays if stray.dataset == 0}
    assert listed == {ids[row] for row in model.outlying_rows_[0]}
    assert findings.target.n_outlying == len(model.outlying_rows_[0]) >= 8
    assert findings.backgrounds[0].n_outlying == len(model.outlying_rows_[1])
    if robust == "cells":
        assert findings.target.n_wild == len(model.wild_cells_[0]) >= 1
    else:
        assert next(stray for stray in findings.strays if stray.name == "mouse 5").columns[0] == "age"
    for number, batch, _, _ in seen:
        np.testing.assert_allclose(batch.weights, model.row_weights_[number])
    np.testing.assert_allclose(findings.target.row_weights, model.row_weights_[0], rtol=1e-6)
    # The page and the picture can be made, and made again from what was stored.
    html = page(findings)
    assert "Rows that count less" in html
    assert "mouse 40" in html
    draw(findings, tmp_path / "view.png")
    store(findings, tmp_path)
    assert page(restore(tmp_path)) == html
    said = summary(findings)
    assert said["datasets"][0]["outlying"] == findings.target.n_outlying
    assert any(re.search(r"Robust weights: \d+ of 300 rows of target", sentence) for sentence in said["choices"])


def test_one_wild_row_does_not_decide_which_rows_are_grouped_wrongly(rng):
    target, background = rng.normal(size=(2, 200, 4))
    target[:, 1] += 4.0 * np.repeat([-1, 1], 100)
    labels = np.repeat(["ill", "well"], 100)
    target[7, 2] = 900.0
    errors = []
    for robust in (None, "cells"):
        model = DiscriminativePCA(2, robust=robust, shrinkage=0.1).fit(target, background=background)
        errors.append(examine(model, target, background, labels=labels).clustering_error)
    # K-means makes a group of the one row where nothing tells that it is out of place.
    assert errors[0] > 0.45
    assert errors[1] < 0.02


def test_the_moments_of_a_robust_fit_are_recognised(rows):
    target, background = rows
    model = DiscriminativePCA(2, robust="cells").fit(target, background=background)
    findings = examine(model, target, background)
    # Otherwise the report would say nothing of held-out rows.
    np.testing.assert_allclose(findings.ratios, model.held_out_ratio_)
    np.testing.assert_allclose(findings.target.variances, model.target_variance_, rtol=0.2)
    other = examine(model, target + 1.0, background)
    assert other.ratio_errors is None


@pytest.mark.parametrize("make", [ContrastivePCA, partial(KernelDiscriminativePCA, kernel="poly", degree=2)])
def test_other_methods_list_them_too(make, rows):
    target, background = rows
    model = make(1, robust="rows").fit(target, background=background)
    findings = examine(model, target, background, with_path=False)
    assert findings.target.n_outlying == len(model.outlying_rows_[0]) > 0
    assert np.all(np.isfinite(findings.correlations))


def test_files_in_parts_give_the_same_report(rows, tmp_path):
    for number, data in enumerate(rows):
        np.save(tmp_path / f"{number}.npy", data)
    parts = [scan(tmp_path / f"{number}.npy", batch_rows=70) for number in range(2)]
    whole, scanned = (
        examine(DiscriminativePCA(1, robust="rows").fit(first, background=second), first, second, with_path=False)
        for first, second in (rows, parts)
    )
    assert [stray.row for stray in whole.strays] == [stray.row for stray in scanned.strays]
    np.testing.assert_allclose(whole.target.row_weights, scanned.target.row_weights, rtol=1e-6)
    assert kinds(examine(DiscriminativePCA(1).fit(parts[0], background=parts[1]), *parts, with_path=False)) == kinds(
        examine(DiscriminativePCA(1).fit(rows[0], background=rows[1]), *rows, with_path=False)
    )


def test_a_view_that_a_few_rows_decide_calls_for_care(rows):
    target, background = rows
    findings = examine(DiscriminativePCA(2).fit(target, background=background), target, background, with_path=False)
    caution = next(message for message in findings.cautions if message.facts.get("kind") == "strays")
    assert caution.facts["apart"] > 25
    robust = DiscriminativePCA(2, robust="rows").fit(target, background=background)
    assert "strays" not in kinds(examine(robust, target, background, with_path=False))


def clean_cases():
    rng = np.random.default_rng(3)
    digits = make_digits_over_photographs()
    yield "digits", digits.target, digits.backgrounds[0]
    yield "nothing stands out", rng.normal(size=(200, 10)), rng.normal(size=(200, 10))
    yield "counts", rng.poisson(2.0, size=(300, 15)) * np.r_[3, np.ones(14)], rng.poisson(2.0, size=(300, 15)) * 1.0
    tails = rng.standard_t(4, size=(500, 12)) * np.r_[np.ones(11), 4.0]
    yield "heavy tails", tails, rng.standard_t(4, size=(500, 12))
    group = rng.normal(size=(400, 8))
    group[:20] += 9.0
    yield "a small group", group, rng.normal(size=(400, 8))
    yield "few rows, many columns", rng.normal(size=(40, 90)) * np.r_[8, np.ones(89)], rng.normal(size=(50, 90))
    yield (
        "skewed",
        rng.lognormal(sigma=0.5, size=(300, 10)) * np.r_[4, np.ones(9)],
        rng.lognormal(sigma=0.5, size=(300, 10)),
    )


@pytest.mark.parametrize(
    ("target", "background"), [case[1:] for case in clean_cases()], ids=[c[0] for c in clean_cases()]
)
def test_clean_data_call_for_no_care(target, background):
    model = DiscriminativePCA(1).fit(target, background=background)
    assert "strays" not in kinds(examine(model, target, background, with_path=False))


def test_two_rules_for_shrinkage_are_not_taken_for_strays():
    """Wines of one sort against two others, in many units: Ledoit and Wolf's rule shows another view than none."""
    data = load_wine()
    target, *background = (data.data[data.target == sort] for sort in (2, 0, 1))
    model = DiscriminativePCA(1, shrinkage="held-out").fit(target, background=background)
    plain = model.transform(target)[:, 0]
    robust = DiscriminativePCA(1, shrinkage="held-out", robust="rows").fit(target, background=background)
    assert abs(np.corrcoef(plain, robust.transform(target)[:, 0])[0, 1]) > 0.99
    assert "strays" not in kinds(examine(model, target, background, with_path=False))


def test_the_command_line(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, data in zip("ab", rows, strict=True):
        np.savetxt(f"{name}.csv", data, delimiter=",", header=",".join(FEATURES), comments="")
    assert main(["fit", "a.csv", "-b", "b.csv", "--robust", "cells", "-o", "out"]) == 0
    assert "Robust weights" in capsys.readouterr().out
    with open("out/scores.csv") as file:
        weights = {int(row["id"]): float(row["weight"]) for row in csv.DictReader(file) if row["dataset"] == "a"}
    assert weights[40] < 0.1 < weights[41]
    assert main(["fit", "a.csv", "-b", "b.csv", "-o", "plain"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "A few rows decide the view" in printed
    assert "--robust rows" in printed
    with open("plain/scores.csv") as file:
        assert "weight" not in next(csv.reader(file))
