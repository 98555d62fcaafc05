"""Cautions and words of reports."""

import re

import numpy as np
import pytest

from report_runs import COLUMNS, fitted, made, mixed
from standout import DiscriminativePCA, blocks
from standout.report import report
from standout.report._cautions import KINDS, columns, dependence, few_rows, neighbours, subject_pattern, worded
from standout.report._drawn import Sample, read_labels
from standout.report._words import brief, number, p_value, percent

# --- cautions --------------------------------------------------------------------------------------------------------


def test_dependent_rows_come_with_the_pattern_of_their_subjects():
    target, background = (np.repeat(mixed(seed, 20), 6, axis=0) + 0.3 * mixed(seed + 5, 120) for seed in (21, 22))
    model = fitted(DiscriminativePCA(1), target, background=background)
    ids = [f"m{k // 6}_{k % 6}" for k in range(120)]
    found = report(model, target, background=background, ids=ids, test=None).findings
    assert found["cautions"][0]["kind"] == "dependent rows"
    assert 're.match(r"(.*)_", name)[1]' in found["cautions"][0]["advice"]
    assert subject_pattern(ids) == ("(.*)_", 20, "m0_0")
    assert subject_pattern([f"cell{k}" for k in range(50)]) is None
    assert subject_pattern([f"a{k}_{k}" for k in range(50)]) is None


def test_neighbours_correlate_only_where_they_do():
    draw = np.random.default_rng(0)
    independent = draw.normal(size=(500, 2))
    assert neighbours(independent) == 0.0
    walk = np.convolve(draw.normal(size=510), np.ones(10), "valid")[:500, None]
    assert neighbours(walk) > 0.7
    # Rows that are sorted by class are not dependent.
    assert neighbours(independent + 9.0 * (np.arange(500) > 250)[:, None]) == 0.0


@pytest.mark.parametrize("n_rows", [8, 24, 400])
def test_a_few_rows_that_decide_are_named_also_with_few_rows(n_rows):
    scores = np.random.default_rng(1).normal(size=n_rows)
    assert few_rows(scores, None) is None
    scores[5] = 60.0
    (told,) = worded([few_rows(scores, [f"sample {k}" for k in range(n_rows)])])
    assert told["kind"] == "few rows"
    assert "sample 5 has 9" in told["text"]


def test_columns_that_call_for_care_are_named():
    draw = np.random.default_rng(2)
    rows = draw.normal(size=(60, 9))
    rows[:, 1] = 4.0
    rows[:, 2] = rows[:, 0]
    rows[:, 3] = np.arange(60)
    rows[:, 4] = np.arange(60) % 3
    rows[:, 5] *= 1e4
    rows[7, 6] = -9999.0
    other = draw.normal(size=(50, 9))
    other[:, 1], other[:, 2], other[:, 8] = 4.0, other[:, 0], 1.0
    names = ["a", "same", "copy", "count", "code", "large", "missing", "x", "flat"]
    parts = [Sample(np.arange(60), rows), Sample(np.arange(50), other)]
    told = worded(columns(parts, names, scaled=False))
    assert [caution["kind"] for caution in told] == sorted((one["kind"] for one in told), key=KINDS.index)
    texts = {caution["kind"]: caution["text"] for caution in told}
    assert "−9,999 in 1 row of missing" in texts["placeholder"]
    assert "copy (as a)" in texts["equal columns"]
    assert "flat" in texts["constant in the background"]
    assert "large varies by" in texts["units"]
    said = " ".join(caution["text"] for caution in told)
    assert "Columns number the rows, like an id: count." in said
    assert "Columns have few whole values, like codes: code." in said
    assert "units" not in [caution["kind"] for caution in columns(parts, names, scaled=True)]


def test_numbers_of_respondents_are_named_among_answers(rng):
    answers = rng.integers(1, 6, size=(60, 9)).astype(float)
    answers[:, 0] = np.arange(1001, 1061)
    parts = [Sample(np.arange(60), answers), Sample(np.arange(60), answers[::-1])]
    names = ["respondent", *(f"Q{k}" for k in range(8))]
    found = [{"kind": "means", "apart": 0.0}, *columns(parts, names, scaled=True)]
    # The caution about a column of ids comes before the caution about the means.
    assert [caution["kind"] for caution in worded(found)] == ["ids", "means"]
    assert worded(found)[0]["text"] == "Columns number the rows, like an id: respondent."


def test_means_far_apart_along_a_component_are_said_if_no_column_differs_more(rng):
    # Each of 40 columns differs by 0.5 only; along the component, the means are further apart than the target varies.
    X, Y = rng.normal(size=(2, 80, 40)) + 2.0 * rng.normal(size=(2, 80, 1))
    line = np.tile([0.6, -0.6], 20)
    X += line * (3.0 + rng.normal(size=(80, 1)))
    model = fitted(DiscriminativePCA(1), X, background=Y)
    assert model.shift_[0] > model.ratio_[0]
    found = report(model, X, background=Y, test=None).findings
    told = [caution["text"] for caution in found["cautions"] if caution["kind"] == "means"]
    assert len(told) == 1
    assert f"{np.sqrt(model.shift_[0]):.1f} standard deviations apart" in told[0]


def test_advice_has_the_names_of_its_surface():
    told = [{"kind": "near PCA", "parameter": "shrinkage", "value": 0.97}]
    assert worded(told)[0]["advice"].endswith("set a smaller value: shrinkage.")
    assert worded(told, {"shrinkage": "--shrinkage"})[0]["advice"].endswith("set a smaller value: --shrinkage.")


def test_advice_on_subjects_is_a_command_and_notes_have_no_local_paths():
    scores, ids = np.random.default_rng(0).normal(size=(60, 1)), [f"m{k // 6}_{k % 6}" for k in range(60)]
    note = "not used: '/home/ann/data/mice.csv', 'C:\\Users\\ann\\b.csv', column 'mg/dl'."
    found = [{"kind": "note", "text": note}, dependence([scores], ids, tested=True, column="'Mouse ID'")]
    first, second = worded(found, {"groups": "--subject-column"})
    assert first["advice"] == "Name the subjects: --subject-column 'Mouse ID' --subject-pattern '(.*)_'."
    assert second["text"] == "Not used: 'mice.csv', 'b.csv', column 'mg/dl'."
    assert dependence([scores], None) is None


# --- words -----------------------------------------------------------------------------------------------------------


def test_numbers_are_written_as_people_read_them():
    assert [number(value) for value in (8.128, 1240.4, 0.00214, 3.1e-7, -2.0, 0.9996, 0.0, None)] == [
        "8.13", "1,240", "0.00214", "3.10e−7", "−2.00", "1.00", "0", "unknown",
    ]  # fmt: skip
    assert [brief(0.40), brief(0.031), brief(12.0)] == ["0.4", "0.031", "12"]
    assert [percent(share) for share in (0.05, 0.123, 0.004, 1.0)] == ["5 %", "12 %", "0.4 %", "100 %"]
    assert [p_value(chance, "= ") for chance in (0.031, 0.0004)] == ["= 0.031", "< 0.001"]


def test_many_words_share_a_colour_and_many_numbers_are_a_scale():
    words = read_labels([f"w{k % 30:02d}" for k in range(100)] + ["w00"] * 50)
    assert len(words.names) == 12
    assert words.names[-1] == "19 other labels"
    assert sum(words.counts) == 150
    scale = read_labels(np.append(np.linspace(0, 1, 40), np.nan))
    assert scale.names == []
    assert scale.of(np.array([0, 40])) == [0.0, None]
    assert read_labels([2, 1, 2]).names == ["1", "2"]


def test_the_version_and_the_names_of_the_columns_are_kept():
    assert re.fullmatch(r"\d.*|unknown", made("cells").findings["standout"])
    assert made("cells").findings["components"][0]["columns"][0]["name"] in COLUMNS[:3]


def test_means_of_subjects_are_not_means_of_rows():
    rng = np.random.default_rng(8)
    # Each subject has its own level: 15 rows of 20 subjects are not 300 independent rows.
    levels = np.repeat(rng.normal(size=(2, 20, 12)), 15, axis=1)
    target, background = levels + rng.normal(size=levels.shape)
    subjects = {"groups": np.repeat(np.arange(20), 15), "background_groups": np.repeat(np.arange(20, 40), 15)}
    plain = fitted(DiscriminativePCA(1), target, background=background).mean_differences_
    assert len(plain.different()) >= 3
    model = fitted(DiscriminativePCA(1), target, background=background, **subjects)
    assert len(model.mean_differences_.different()) == 0
    target[:, 5] += 4.0
    model = fitted(DiscriminativePCA(1), target, background=background, **subjects)
    assert model.mean_differences_.different().tolist() == [5]


@pytest.mark.parametrize(("names", "said"), [(("a", "a"), True), (("a", "b"), False)])
def test_subjects_of_both_datasets_are_said(names, said, rng):
    X, Y = rng.normal(size=(2, 60, 3))
    groups = dict(zip(("groups", "background_groups"), (blocks(60, 10, name) for name in names), strict=True))
    model = DiscriminativePCA(1, shrinkage=0.1).fit(X, background=Y, **groups)
    shown = report(model, X, background=Y, test=None, **groups)
    assert ("6 subjects in both target and background" in str(shown)) == said
