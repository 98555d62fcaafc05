"""Findings, sentences, page and picture: one dict, and every surface shows it."""

import json
import os
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse
from sklearn.preprocessing import StandardScaler

from report_runs import CASES, COLUMNS, HOSTILE, cells, fitted, made, mixed
from standout import DiscriminativePCA, blocks, bootstrap, make_pipeline, plots
from standout._messages import FindingWarning
from standout.report import figure, page, report, sentences
from standout.report._cautions import KINDS, columns, dependence, few_rows, neighbours, subject_pattern, worded
from standout.report._drawn import Sample, packed, read_labels
from standout.report._words import brief, number, p_value, percent


class Seen(HTMLParser):
    """Everything that a browser would see on a page: tags, attributes and words."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self.attributes = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(params=list(CASES))
def case(request):
    return made(request.param)


def test_the_dict_is_plain_json_and_the_page_needs_nothing_else(case):
    text = json.dumps(case.findings, allow_nan=False, ensure_ascii=False)
    again = json.loads(text)
    assert again == case.findings
    assert page(again) == case.html()
    assert sentences(again) == case.sentences()


def test_a_page_is_small_and_loads_nothing(case):
    html = case.html()
    assert len(html.encode()) <= 700_000
    assert os.getcwd() not in html
    assert "/home/" not in html
    seen = Seen(html)
    assert not {"link", "iframe", "object", "img"} & set(seen.tags)
    assert not [value for name, value in seen.attributes if name in ("src", "href", "action") or name.startswith("on")]
    policy = dict(seen.attributes)["content"]
    assert "default-src 'none'" in html
    assert "unsafe-eval" not in policy


def test_the_ratio_is_the_same_on_every_surface(case):
    found = case.findings
    one = found["components"][0]
    shown = number(one["ratio"])
    assert shown in found["headline"]
    assert f"<b>{shown} ×</b>" in case.html()
    assert one["interval"][0] < one["ratio"] < one["interval"][1]
    # The held-out scores that are drawn are those of scores.csv: their variances have this ratio.
    target, background = one["variances"]
    assert target / background == pytest.approx(one["ratio"], rel=1e-6)
    if found["datasets"][0]["outlying"] is None:
        drawn = [np.var(part["scores"][0]) for part in found["drawn"]["points"]]
        assert drawn[0] / drawn[1] == pytest.approx(one["ratio"], rel=2e-3)


def test_every_caution_is_on_the_page_and_in_the_terminal_in_order(case):
    found, seen = case.findings, Seen(case.html())
    places = [KINDS.index(caution["kind"]) for caution in found["cautions"]]
    assert places == sorted(places)
    for caution, sentence in zip(found["cautions"], case.sentences()[1:], strict=True):
        assert " ".join(caution["text"].split()) in seen.text
        assert sentence == f"{caution['text']} {caution['advice']}".strip()


def test_the_headline_names_what_stands_out():
    found = made("cells").findings
    assert found["verdict"] == "stands out"
    ratio = number(found["components"][0]["ratio"])
    assert found["headline"].startswith(
        f"The variance of the target is {ratio} times that of the background along component 1, led by "
    )
    assert {column["name"] for column in found["components"][0]["columns"][:3]} == {"ISG15", "IFIT1", "MX1"}
    assert found["components"][0]["significant"]
    assert found["title"] == "What stands out in the target against the background?"
    assert found["labels"]["error"] < 0.1 < found["labels"]["pca_error"]


def test_pca_is_judged_on_the_same_held_out_scale():
    found = made("cells").findings
    target, background, _ = cells()
    twin = fitted(DiscriminativePCA(2, shrinkage=1.0), target, background=background)
    assert found["pca"]["ratio"] == pytest.approx(twin.ratio_[0], rel=1e-9)
    assert found["pca"]["ratio"] < 0.5 * found["components"][0]["ratio"]
    scores = twin.held_out_scores(target, background=background)
    drawn = [np.var(part["pca"][0]) for part in found["drawn"]["points"]]
    assert drawn[0] / drawn[1] == pytest.approx(np.var(scores[0][:, 0]) / np.var(scores[1][:, 0]), rel=2e-3)


def test_the_first_component_of_pca_is_that_of_the_largest_variance(rng):
    # The first column varies most, in both datasets; the second one only in the target.
    target, background = rng.normal(size=(2, 200, 5)) * [9.0, 1.0, 1.0, 1.0, 1.0]
    target[:, 1] *= 3.0
    found = report(
        fitted(DiscriminativePCA(1), target, background=background), target, background=background, test=None
    )
    assert found.findings["components"][0]["ratio"] > 5
    assert found.findings["pca"]["ratio"] == pytest.approx(target[:, 0].var() / background[:, 0].var(), rel=0.1)
    drawn = found.findings["drawn"]["points"][0]["pca"][0]
    assert abs(np.corrcoef(drawn, target[:, 0])[0, 1]) > 0.9


def test_nothing_stands_out_is_said_without_a_claim():
    found = made("nothing").findings
    assert found["verdict"] == "chance"
    assert found["headline"].startswith("Nothing stands out: ")
    assert "not distinguishable from chance" in found["headline"]
    assert "led by" not in found["headline"]
    assert not found["means"]["columns"]
    assert "No column differs by 0.2 standard deviations or more" in Seen(made("nothing").html()).text


def test_a_shift_of_the_mean_is_in_the_headline():
    found = made("shift").findings
    assert found["verdict"] == "shift"
    assert found["headline"].startswith("The means differ more than the spreads: column 4 differs by 1.")
    assert [column["name"] for column in found["means"]["columns"]] == ["column 4"]
    assert found["means"]["columns"][0]["effect"] == pytest.approx(1.2, abs=0.35)
    assert any("center" in caution["advice"] for caution in found["cautions"])


def test_views_along_the_path_have_the_view_of_the_fit_among_them():
    for name, parameter in (("cells", "shrinkage"), ("contrastive", "alpha"), ("kernel", "epsilon")):
        found = made(name).findings
        views = found["drawn"]["views"]
        assert views["parameter"] == parameter
        assert views["values"] == sorted(views["values"])
        assert views["values"][views["chosen"]] == found["path"]["value"]
        assert views["ratios"][views["chosen"]] == found["components"][0]["ratio"]
        assert len(views["data"]) == len(views["values"]) >= 5


def test_a_view_travels_in_sixteen_bits():
    scores = [np.array([[1.0, -2.0], [3.0, 0.5]]), np.array([[-4.0, 8.0]])]
    sent = packed([scores])
    import base64

    whole = np.frombuffer(base64.b64decode(sent["data"][0]), dtype="<i2").reshape(2, 3)
    assert whole * np.array(sent["scale"][0])[:, None] == pytest.approx(np.concatenate(scores).T, abs=8 / 32000)


def test_whole_subjects_are_named_with_what_the_p_value_assumes():
    found = made("subjects").findings
    assert [part["subjects"] for part in found["datasets"]] == [12, 12]
    assert found["test"]["unit"] == "subjects"
    assert not [caution for caution in found["cautions"] if caution["kind"] == "dependent rows"]
    assert "assumes independent subjects" in Seen(made("subjects").html()).text


def test_wide_data_have_a_held_out_ratio_far_below_the_eigenvalue():
    found = made("wide").findings
    assert found["n_columns"] == 300
    assert found["held_out"]
    assert any(caution["kind"] == "few background rows" for caution in found["cautions"])


def test_outlying_rows_are_listed_with_their_weights_and_marked():
    found = made("robust").findings
    rows = {row["row"] for row in found["outlying"] if row["dataset"] == "target"}
    assert {0, 1, 2, 3} <= rows
    assert all(row["weight"] < 0.1 for row in found["outlying"] if row["row"] < 4)
    flags = found["drawn"]["points"][0]["outlying"]
    assert flags[:4] == [1, 1, 1, 1]
    assert sum(flags) == found["datasets"][0]["outlying"]
    assert not any(caution["kind"] == "few rows" for caution in found["cautions"])


def test_patterns_of_pixels_are_images():
    found = made("images").findings
    assert found["images"]["shape"] == [8, 8]
    pattern = np.abs(np.array(found["images"]["patterns"][0])).reshape(8, 8)
    assert pattern[2:6, 3:5].min() > 2 * pattern[:2].max()
    assert np.mean(found["images"]["high"]) != np.mean(found["images"]["low"])
    # Numbers of pixels are not worth a name.
    assert "led by" not in found["headline"]


def test_names_from_the_data_are_text_whatever_they_contain():
    made_of = made("hostile")
    html = made_of.html()
    seen = Seen(html)
    assert seen.tags.count("script") == 2
    assert "<script>alert" not in html.replace("\\u003c", "")
    assert "49" not in made_of.findings["headline"]
    for word in ("{{ 7 * 7 }}", "%(p)s {p.__class__}", "${1}"):
        assert word in seen.text
    # A mark that turns the direction of text is shown by its code.
    assert "\u202e" not in html.split('id="data"')[0]
    assert "\\u202eevil" in html
    assert made_of.findings["drawn"]["points"][0]["ids"][4].startswith("\u202e")
    assert set(made_of.findings["labels"]["names"]) == {*HOSTILE[:-1], "(no label)"}
    assert b"PNG" in figure(made_of.findings)[:8]


def test_a_notebook_shows_the_page_in_a_frame(tmp_path):
    found = made("cells")
    frame = found._repr_html_()
    seen = Seen(frame)
    assert seen.tags == ["iframe"]
    assert dict(seen.attributes)["srcdoc"] == found.html()
    found.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == found.html()
    assert repr(found).startswith(found.findings["headline"])


def test_pca_alone_has_a_page():
    target = mixed(1, 60)
    model = fitted(DiscriminativePCA(2), target)
    found = report(model, target)
    assert found.findings["verdict"] == "pca"
    assert found.findings["method"] == "PCA"
    assert "no background" in found.sentences()[0]
    assert "<!doctype html>" in found.html()


def test_a_choice_near_pca_is_said():
    target, background, _ = cells()
    model = fitted(DiscriminativePCA(1, shrinkage=0.97), target, background=background)
    said = report(model, target, background=background, test=None).sentences()
    assert any(sentence.startswith("The background was not used") for sentence in said)


@pytest.mark.parametrize("form", ["sparse", "mapped", "torch"])
def test_other_forms_of_data_have_the_findings_of_the_array(form, tmp_path):
    target, background, _ = cells()

    def formed(rows, name):
        if form == "sparse":
            return scipy.sparse.csr_array(rows)
        if form == "torch":
            return pytest.importorskip("torch").tensor(rows)
        np.save(tmp_path / name, rows)
        return np.load(tmp_path / name, mmap_mode="r")

    X, Y = formed(target, "x.npy"), formed(background, "y.npy")
    found = report(fitted(DiscriminativePCA(2), X, background=Y), X, background=Y, test=None).findings
    plain = report(
        fitted(DiscriminativePCA(2), target, background=background), target, background=background, test=None
    )
    for mine, other in zip(found["components"], plain.findings["components"], strict=True):
        assert mine["ratio"] == pytest.approx(other["ratio"], rel=1e-8)
        assert mine["columns"][0]["name"] == other["columns"][0]["name"]
    assert found["pca"]["ratio"] == pytest.approx(plain.findings["pca"]["ratio"], rel=1e-8)
    assert found["drawn"]["views"]["ratios"] == pytest.approx(plain.findings["drawn"]["views"]["ratios"], rel=1e-6)


def test_large_data_are_drawn_in_part_and_judged_in_full():
    draw = np.random.default_rng(3)
    target, background = draw.normal(size=(5000, 4)) * [3, 1, 1, 1], draw.normal(size=(2600, 4))
    model = fitted(DiscriminativePCA(1), target, background=background)
    found = report(model, target, background=background, ids=np.arange(5000), test=None).findings
    assert [part["drawn"] for part in found["datasets"]] == [2000, 2000]
    assert [part["rows"] for part in found["datasets"]] == [5000, 2600]
    points = found["drawn"]["points"][0]
    assert points["ids"] == [str(row) for row in points["rows"]]
    scores = model.held_out_scores(target, background=background)[0]
    assert points["scores"][0] == pytest.approx(scores[points["rows"], 0], rel=1e-3)
    assert found["components"][0]["variances"][0] == pytest.approx(model.ratio_[0])
    assert "A random sample of 2,000 + 2,000 rows is drawn" in page(found)


def test_labels_that_tell_datasets_apart_name_them():
    target, background, _ = cells()
    rows, y = np.vstack([target, background]), np.repeat(["treated", "control"], [len(target), len(background)])
    model = fitted(DiscriminativePCA(1, target_label="treated"), rows, y=y)
    found = report(model, rows, y=y, test=None).findings
    assert [part["name"] for part in found["datasets"]] == ["treated", "control"]
    assert "variance of treated" in found["headline"]


def test_the_code_of_a_pipeline_has_its_steps_and_runs():
    target, background, _ = cells()
    model = fitted(make_pipeline(StandardScaler(with_mean=False), DiscriminativePCA(1)), target, background=background)
    found = report(model, target, background=background, test=None).findings
    assert found["components"][0]["ratio"] == pytest.approx(model[-1].ratio_[0])
    names = {"target": target, "background": background}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FindingWarning)
        exec("\n".join(found["code"].splitlines()[:-1]), names)
    assert names["model"][-1].ratio_ == pytest.approx(model[-1].ratio_)


def test_bootstrap_intervals_are_drawn_with_the_bars():
    target, background, _ = cells()
    model = fitted(DiscriminativePCA(1), target, background=background)
    drawn = bootstrap(model, target, background=background, n_draws=20, random_state=0)
    made_of = report(model, target, background=background, bootstrap=drawn, test=None)
    first = made_of.findings["components"][0]["columns"][0]
    assert first["interval"][0] < first["correlation"] < first["interval"][1]
    assert "Lines are bootstrap intervals" in Seen(made_of.html()).text
    assert made_of.findings["bootstrap"]["angle"] == pytest.approx(drawn.angles)


def test_static_pictures_take_an_axes_and_return_it():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    target, background, labels = cells()
    model = fitted(DiscriminativePCA(2), target, background=background)
    scores = model.held_out_scores(target, background=background)
    _, axes = pyplot.subplots(2, 3)
    first, *others = axes.ravel()
    assert plots.scores(scores[0], scores[1:], labels=labels, names=["_a$", "b"], ax=first) is first
    words = [text.get_text() for text in first.get_legend().get_texts()]
    assert words == ["b", "guide A", "guide B", "guide C"]
    many = np.arange(len(target)).astype(str)
    outside = plots.scores(scores[0][:30], labels=many[:30]).get_legend()
    assert outside.get_bbox_to_anchor().x0 >= outside.axes.bbox.x1
    assert plots.scores(scores[0][:60], labels=many[:60]).get_legend() is None
    for ax, draw in zip(others, (plots.correlations, plots.path, plots.ratios, plots.means), strict=False):
        assert draw(model, ax=ax) is ax
    ticks = [text.get_text() for text in others[0].get_yticklabels()]
    assert set(ticks[:3]) == {"column 0", "column 1", "column 2"}
    widths = [abs(bar.get_width()) for bar in others[0].patches]
    assert widths == pytest.approx(sorted(np.abs(model.correlations_[0]), reverse=True))
    with pytest.raises(ValueError, match="there is no path"):
        plots.path(fitted(DiscriminativePCA(1, shrinkage=0.5), target, background=background), ax=first)
    with pytest.raises(ValueError, match="there is no held-out ratio"):
        plots.ratios(fitted(DiscriminativePCA(1, cv=None), target, background=background), ax=first)
    pyplot.close("all")


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
    found = [
        {"kind": "means", "apart": 0.0},
        *columns(parts, ["respondent", *(f"Q{k}" for k in range(8))], scaled=True),
    ]
    # An id that leads the means is said before them.
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
