"""Findings, and the sentences, the page and the picture that are made from them."""

import json
import os
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse
from sklearn.preprocessing import StandardScaler

from report_runs import CASES, HOSTILE, cells, fitted, made, mixed
from standout import DiscriminativePCA, bootstrap, make_pipeline, plots
from standout._messages import FindingWarning
from standout.report import figure, page, report, sentences
from standout.report._cautions import KINDS
from standout.report._drawn import packed
from standout.report._words import number


def reported(model, X, background):
    """Fit, and return the report without a test."""
    return report(fitted(model, X, background=background), X, background=background, test=None)


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
    # The held-out scores in the pictures and in scores.csv are the same: their variances have this ratio.
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
    found = reported(DiscriminativePCA(1), target, background)
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
    # The headline does not name single pixels.
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
    said = reported(DiscriminativePCA(1, shrinkage=0.97), target, background).sentences()
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
    found = reported(DiscriminativePCA(2), X, Y).findings
    plain = reported(DiscriminativePCA(2), target, background)
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
