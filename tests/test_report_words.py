"""What the report says: in which words, how it was chosen, what to be careful about, and the code."""

import re
import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from report_runs import fitted
from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, make_pipeline
from standout.report import examine, page, summary
from standout.report._wording import brief, chance, correlation, number, percent, shortened


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


def test_names_in_warnings_and_choices_are_isolated_on_the_page_and_plain_elsewhere(pair):
    target, background = pair
    name = "\u05d0\u05d1"  # Hebrew, written from the right
    same = [np.column_stack([part, np.ones(len(part))]) for part in (target, background, background)]
    model = fitted(DiscriminativePCA(2, background_weights=[1, 3]), *same)
    given = [f"It's so: column '{name}' was dropped.", f"'\u2069\u202e{name}'"]
    findings = examine(
        model,
        same[0],
        same[1:],
        features=[*"abcdef", name],
        background_names=["b", name],
        warnings=given,
        with_path=False,
    )
    html, found = page(findings), summary(findings)
    assert f"It&#x27;s so: column <bdi>&#x27;{name}&#x27;</bdi> was dropped." in html
    assert f"<bdi>&#x27;\\u2069\\u202e{name}&#x27;</bdi>" in html
    assert f"1 column (<bdi>{name}</bdi>) is the same in every row" in html
    assert f"<bdi>b</bdi> 0.25 and <bdi>{name}</bdi> 0.75, as asked" in html
    assert found["warnings"][0] == given[0]
    assert not set("\u2068\u2069") & set("".join([*found["warnings"][2:], *found["choices"]]))


def test_the_ratio_says_what_it_is_without_shrinkage(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(1, shrinkage=0.5), target, background)
    plain = model.transform(target).var() / model.transform(background).var()
    html = page(examine(model, target, background, with_path=False))
    assert html.count(f"with shrinkage; without, {number(plain)} times.") == 2  # in the headline and among the numbers
    model = fitted(DiscriminativePCA(1, shrinkage=None), target, background)
    assert "with shrinkage; without" not in page(examine(model, target, background, with_path=False))


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


# Wording


def test_numbers_are_said_briefly():
    assert [number(value) for value in (0.9996, 99.96, 999_999.7, 9.94e-5)] == ["1.00", "100", "1,000,000", "9.94e−5"]
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
