"""What the report says: how parameters were chosen, what calls for care, the code, and how numbers are written."""

import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from report_runs import fitted
from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, make_pipeline
from standout._messages import Message, Names
from standout.report import examine, page, summary
from standout.report._format import brief, correlation, number, p_equals, percent, phrased, plain, shortened


def facts(messages, kind):
    """Give the facts of the one message of a kind."""
    (found,) = [message.facts for message in messages if message.facts["kind"] == kind]
    return found


def kinds(messages):
    return {message.facts["kind"] for message in messages}


# The headline


def test_the_headline_says_how_much_how_surely_and_by_which_column(pair):
    target, background = pair
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background, features=list("abcdeZ"))
    said = summary(findings)["headline"]
    assert f"{number(float(findings.ratios[0]))} times (± {number(float(findings.ratio_errors[0]), 2)})" in said
    assert "p < 0.001" in said
    assert " Z " in said


def test_the_headline_says_if_nothing_stands_out(rng):
    target, background = rng.normal(size=(200, 5)), rng.normal(size=(300, 5))
    found = summary(examine(fitted(DiscriminativePCA(2, test="auto"), target, background), target, background))
    assert found["headline"].startswith("Nothing stands out")
    assert found["test"]["n_significant"] == 0


def test_a_ratio_of_fitted_rows_is_called_one(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(1, shrinkage=0.5, held_out=None), target, background)
    ratio = model.transform(target).var() / model.transform(background).var()
    findings = examine(model, target, background, with_path=False)
    found = summary(findings)
    assert found["components"][0]["ratio"] == pytest.approx(ratio)
    assert not found["held_out"]
    assert f"{number(ratio)} times as much as the background, in the fitted rows" in found["headline"]
    assert "ratio in the fitted rows" in page(findings)


def test_the_sentence_on_groups_names_the_labels(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    given = {"labels": np.arange(len(target)) % 3, "with_path": False}
    assert "the 3 groups, puts" in summary(examine(model, target, background, **given))["grouping"]
    findings = examine(model, target, background, label_name="<kind>", **given)
    assert "the 3 groups of <kind>, puts" in summary(findings)["grouping"]
    assert "the 3 groups of <bdi>&lt;kind&gt;</bdi>, puts" in page(findings)


# Choices


@pytest.mark.filterwarnings("ignore:the shrinkage that was chosen")
def test_choices_say_how_parameters_were_found(pair):
    target, background = pair
    target = target + np.outer(np.where(np.arange(200) < 100, -6.0, 6.0), [0, 0, 0, 0, 0, 1])

    def chosen(model, *backgrounds, kind="parameter"):
        return facts(examine(fitted(model, target, *backgrounds), target, list(backgrounds)).choices, kind)

    assert chosen(DiscriminativePCA(1, shrinkage=0.2), background)["shrinkage"] == 0.2
    assert "shrinkage" not in chosen(DiscriminativePCA(1, shrinkage=None), background)
    assert 0 < chosen(DiscriminativePCA(1), background)["shrinkage"][0] < 1
    clusters = chosen(DiscriminativePCA(1, shrinkage="clusters"), background)
    assert clusters["split_share"] > 0.64
    assert clusters["n_tried"] > 5
    assert chosen(ContrastivePCA(1, alpha=2.0), background)["alpha"] == 2.0
    several = chosen(ContrastivePCA(1), background)
    assert several["alpha"] in several["alphas"]
    assert chosen(KernelDiscriminativePCA(1, epsilon=0.5), background)["epsilon"] == 0.5
    assert chosen(KernelDiscriminativePCA(1), background, kind="kernel")["kernel"] == "rbf"
    assert chosen(DiscriminativePCA("auto"), background, kind="n_components")["n_components"] >= 1
    halves = background[:150], background[150:]
    weights = chosen(DiscriminativePCA(1, background_weights=[1, 3]), *halves, kind="weights")
    assert (weights["weight_1"], weights["weight_2"]) == (0.25, 0.75)
    assert "name_1" in chosen(DiscriminativePCA(1, background_weights="worst-case"), *halves, kind="weights")


@pytest.mark.filterwarnings("ignore:the shrinkage that was chosen")
def test_equal_shrinkages_are_said_once(pair):
    target, background = pair
    target[:100, 5] += 20
    halves = [background[:100], background[100:]]
    chosen = examine(fitted(DiscriminativePCA(2, shrinkage="clusters"), target, *halves), target, halves)
    assert len(facts(chosen.choices, "parameter")["shrinkage"]) == 1


# Cautions


def test_with_more_columns_than_background_rows_there_is_no_test_and_a_caution(rng):
    target, background = rng.normal(size=(30, 60)), rng.normal(size=(40, 60))
    findings = examine(fitted(DiscriminativePCA(2), target, background), target, background)
    assert findings.test is None
    assert facts(findings.cautions, "few background rows") | {"n_rows": 40, "n_features": 60} == facts(
        findings.cautions, "few background rows"
    )
    (untested,) = [choice for choice in findings.choices if choice.facts["kind"] == "test"]
    assert "test='auto'" in str(untested)


def test_the_rule_for_alpha_is_the_one_that_was_used(pair):
    target, background = pair
    for held_out, words in ((10, "largest ratios of variances on rows that were not fitted"), (None, "largest share")):
        model = fitted(ContrastivePCA(1, held_out=held_out), target, background)
        findings = examine(model, target, background, with_path=False)
        assert words in next(said for said in summary(findings)["choices"] if said.startswith("α"))


def test_constant_columns_and_a_singular_background_are_cautioned_against(pair):
    target, background = (np.column_stack([data, np.full(len(data), 7.0)]) for data in pair)
    background = background.copy()
    background[:, 2] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = fitted(DiscriminativePCA(2, shrinkage=None), target, background)
    note = Message("{n_rows} rows were dropped", n_rows=3)
    findings = examine(model, target, background, features=[*"abcdef", "same"], notes=[note])
    assert findings.cautions[0] is note
    rest = findings.cautions[1:]
    assert facts(rest, "constant")["columns"] == ["same"]
    assert facts(rest, "constant in the background")["columns"] == ["c"]
    assert facts(rest, "singular")["n_absent"] == 1
    assert summary(findings)["components"][0]["eigenvalue"] == "inf"


def test_unequal_units_few_rows_and_heavy_tails_are_cautioned_against(rng):
    target, background = rng.normal(size=(500, 3)) * [1e5, 1, 1], rng.normal(size=(500, 3)) * [1e5, 1, 1]
    findings = examine(fitted(ContrastivePCA(1), target, background), target, background)
    assert facts(findings.cautions, "units")["large"] == "column 0"
    target, background = rng.standard_t(3, size=(2000, 3)), rng.standard_t(3, size=(2000, 3))
    model = DiscriminativePCA(1, test="analytic")
    findings = examine(fitted(model, target, background), target, background)
    assert "heavy tails" in kinds(findings.cautions)
    target, background = rng.normal(size=(2000, 3)), rng.normal(size=(2000, 3))
    assert examine(fitted(DiscriminativePCA(1), target, background), target, background).cautions == ()
    few = rng.normal(size=(8, 3))
    findings = examine(fitted(DiscriminativePCA(1), few, background), few, background)
    assert facts(findings.cautions, "few rows")["n_rows"] == 8


@pytest.mark.parametrize("n_rows", [300, 20])
def test_equal_columns_are_told_of_and_similar_ones_are_not(rng, n_rows):
    """With more rows than columns, and with fewer."""
    target, background = (1000.0 + rng.normal(size=(n_rows, 30)) for _ in range(2))
    for part in (target, background):
        part[:, 7] = part[:, 3]
        # Nearly equal; equal but for its mean; equal but for its unit; constant like another one.
        part[:, 8] = part[:, 4] + 1e-3 * rng.normal(size=n_rows)
        part[:, 9], part[:, 10] = part[:, 5] + 1.0, 2.0 * part[:, 6]
        part[:, 11:13] = 5.0
    background[:, 14], target[:, 14] = background[:, 13], -target[:, 13]
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background, with_path=False)
    (sentence,) = [text for text in summary(findings)["warnings"] if "repeat" in text]
    assert sentence.startswith("A column repeats another one in every row")
    assert "column 7 (as column 3)" in sentence
    target[:, 20:28] = background[:, 20:28] = 0.0
    target[:, 20:28], background[:, 20:28] = target[:, :1], background[:, :1]
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background, with_path=False)
    assert facts(findings.cautions, "equal columns")["n_columns"] == 9


def test_with_subjects_these_are_counted_and_not_their_rows(rng):
    target, background = (rng.normal(size=(60, 4)) for _ in range(2))
    own, others = np.repeat(np.arange(6), 10), 6 + np.repeat(np.arange(12), 5)
    model = DiscriminativePCA(1, shrinkage=0.1, test="auto")
    model.fit(target, background=background, groups=own, background_groups=others)
    findings = examine(model, target, background, with_path=False)
    said = " ".join(summary(findings)["warnings"])
    assert "the target has only 6 subjects".capitalize() in said
    assert "few subjects (12) for so many columns (4)" in said
    assert "as this report does" in said
    html = page(findings)
    assert "It assumes independent subjects." in html
    assert "with repeated measurements" not in html
    (n_made,) = findings.test.n_made
    assert html.count(f"{n_made} random assignments of whole subjects to the datasets") >= 3
    # Swapped within themselves: 2 to the power of 6 ways.
    model.fit(target, background=background, groups=own, background_groups=own)
    findings = examine(model, target, background, with_path=False)
    assert findings.test.n_ways == 64
    assert "64 ways to assign whole subjects to the datasets" in page(findings)


def test_no_p_values_where_none_were_asked_for(rng):
    target, background = rng.standard_t(3, size=(2000, 3)), rng.standard_t(3, size=(2000, 3))
    model = fitted(DiscriminativePCA(1, shrinkage=None), target, background)
    assert "heavy tails" in kinds(examine(model, target, background, with_path=False).cautions)
    findings = examine(model, target, background, test=False, with_path=False)
    assert findings.test is None
    assert "heavy tails" not in kinds(findings.cautions)
    assert "p-values: none, because none were asked for" in " ".join(summary(findings)["choices"])
    model = fitted(DiscriminativePCA(1, test="analytic"), target, background)
    assert examine(model, target, background, test=False, with_path=False).test is model.component_test_


def test_rows_that_only_their_own_fit_spreads_are_drawn_held_out(rng):
    """Six subjects in 150 columns: their means decide the first component, and those of others lie elsewhere."""
    means = 0.8 * rng.normal(size=(12, 150))
    target, background = (np.repeat(part, 8, axis=0) + rng.normal(size=(48, 150)) for part in (means[:6], means[6:]))
    own, others = np.repeat(np.arange(6), 8), 6 + np.repeat(np.arange(6), 8)
    model = DiscriminativePCA(1, shrinkage=1.0).fit(target, background=background, groups=own, background_groups=others)
    assert model.held_out_.background_variance[0] < 1.5 * model.background_variance_[0, 0]
    findings = examine(model, target, background, with_path=False)
    assert findings.drawn_held_out
    assert findings.target.scores[:, 0].var() < 0.5 * findings.target.fitted_scores[:, 0].var()


def test_many_columns_are_counted_and_a_few_are_named(rng):
    target, background = (np.column_stack([rng.normal(size=(50, 2)), np.ones((50, 9))]) for _ in range(2))
    model = fitted(DiscriminativePCA(1, shrinkage=0.1), target, background)
    (sentence,) = [text for text in summary(examine(model, target, background))["warnings"] if "9 columns" in text]
    assert "4 more" in sentence


# Messages and surfaces


class Options(Names):
    """Parameters as options, as a command line has them."""

    def parameter(self, name):
        return f"--{name}"

    def setting(self, name, value):
        return f"--{name} {value}"


def test_the_same_findings_are_phrased_for_python_and_for_the_command_line(pair):
    target, background = pair
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background, with_path=False)
    assert "test='permutation'" in " ".join(summary(findings)["choices"])
    said = " ".join(summary(findings, Options())["choices"])
    assert "--test permutation" in said
    assert "test=" not in said
    assert "--test permutation" in page(findings, Options())


def test_names_in_messages_are_isolated_on_the_page_and_plain_elsewhere(pair):
    target, background = pair
    name = "\u05d0\u05d1"  # Hebrew, written from the right
    same = [np.column_stack([part, np.ones(len(part))]) for part in (target, background, background)]
    model = fitted(DiscriminativePCA(2, background_weights=[1, 3]), *same)
    notes = [Message("column {name} was dropped", name=name), Message("{name} <b>", name=f"\u2069\u202e{name}")]
    features, backgrounds = [*"abcdef", name], ["b", name]
    findings = examine(
        model, same[0], same[1:], features=features, background_names=backgrounds, notes=notes, with_path=False
    )
    html, found = page(findings), summary(findings)
    assert f"Column <bdi>{name}</bdi> was dropped." in html
    assert f"<bdi>\\u2069\\u202e{name}</bdi> &lt;b&gt;." in html
    assert f"1 column (<bdi>{name}</bdi>) is" in html
    assert f"<bdi>b</bdi> 0.25 and <bdi>{name}</bdi> 0.75" in html
    assert not set("\u2068\u2069") & set("".join([*found["warnings"], *found["choices"]]))


def test_facts_are_written_by_their_kind():
    message = Message(
        "{share} of {count}, {names}, {exact:.1e}, {limit}", share=0.123456, count=1234, names=["a", "b"], exact=0.5
    )
    assert plain(phrased(message)) == "0.12 of 1,234, a and b, 5.0e-01, None."
    assert plain(phrased(Message("is wrong", parameter="alpha", value=-1.0))) == "alpha=-1.0 is wrong."
    assert plain(phrased(Message("the rows differ"))) == "The rows differ."
    assert plain(phrased(Message("α: 2"))) == "α: 2."


def test_a_note_can_be_a_sentence(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(1), target, background)
    findings = examine(model, target, background, notes=["3 rows {of 7} were dropped."], with_path=False)
    assert summary(findings)["warnings"][0] == "3 rows {of 7} were dropped."


# Code


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
    weighted = fitted(DiscriminativePCA(1, background_weights=[1, 2]), target, *two)
    assert "background=[background_1, background_2]" in examine(weighted, target, two).code
    X, y = np.concatenate([target, background]), np.repeat(["stim", "rest"], [200, 300])
    model = DiscriminativePCA(1, target_label="stim").fit(X, y)
    findings = examine(model, target, background)
    assert 'target_label="stim"' in findings.code
    assert "fit(X, y)" in findings.code
    assert findings.backgrounds[0].name == "rest"
    assert examine(model, target, background, code="import this").code == "import this"


# Numbers


def test_numbers_are_written_briefly():
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
    assert [p_equals(value) for value in (0.0, 0.005, 0.31)] == ["p < 0.001", "p = 0.005", "p = 0.31"]


def test_long_and_empty_names_are_shortened():
    assert shortened("  a\n b ") == "a b"
    assert shortened("") == "(empty name)"
    assert len(shortened("x" * 500, 40)) == 40
