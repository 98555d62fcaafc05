"""The page of the report: its text and its size."""

import json
import logging
import re
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest

from report_runs import HOSTILE, TURNING, every_method, hostile_findings, many
from standout import DiscriminativePCA
from standout.report import compare, examine, page, summary


class Tags(HTMLParser):
    """Collects tags, attributes and text, as a browser would see them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


def test_a_page_of_100000_rows_is_below_3_mb_and_says_that_points_are_sampled():
    html = page(many(100_000))
    assert len(html.encode()) < 3_000_000
    assert "5,000 of the 100,000 rows of <bdi>target</bdi>" in html
    assert "2,000 of the 100,000 rows of <bdi>background</bdi>" in html


def test_equal_findings_give_equal_pages(findings):
    assert page(findings) == page(findings)


def test_nothing_is_loaded_from_anywhere(findings):
    page_tags = Tags(page(findings))
    assert not {"link", "img", "iframe", "object", "base", "form"} & set(page_tags.tags)
    assert not [value for name, value in page_tags.attributes if name == "src"]
    assert all(value.startswith("#") for name, value in page_tags.attributes if name == "href")
    policy = next(value for name, value in page_tags.attributes if name == "content" and "default-src" in value)
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert not re.search(r"script-src[^;]*unsafe-inline", policy)


def test_the_page_holds_what_a_report_must_show(findings):
    text = " ".join(" ".join(Tags(page(findings)).texts).split())
    for words in (
        *("treated mice (240 rows)", "untreated mice (150 rows)", "protein H", "drug 1"),
        *("4 rows with missing values", "PCA of the same rows", "Move along shrinkage", "Ledoit and Wolf"),
        *("fitted ratio", "one standard error", "p-value", "pattern", "filter", "grouped wrongly"),
        "model.fit(target, background=background)",
    ):
        assert words in text, words


def test_every_number_has_an_explanation(findings):
    html = page(findings)
    for cell in re.findall(r'<span[^>]*class="num">(.*?)</span></', html):
        assert cell == "–" or 'title="' in cell
    assert all('title="' in item for item in re.findall(r"<li>(.*?)</li>", html.split('class="numbers"')[1])[:7])
    assert all('title="' in cell for cell in re.findall(r"<td.*?</td>", html))
    assert all(title.endswith(".") for title in re.findall(r'class="tip"[^>]*title="([^"]*)"', html))


def test_hostile_names_are_text_in_the_page():
    html = page(hostile_findings())
    tags = Tags(html)
    # Data for the script, Bokeh, and the page's own script.
    assert tags.tags.count("script") == 3
    assert not {"img", "svg onload"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert tags.tags.count("title") == tags.tags.count("style") == 1
    assert not set(TURNING) & set(html)
    html.encode()


def test_a_name_cannot_turn_a_sentence_around():
    rng = np.random.default_rng(0)
    target, background = rng.normal(size=(100, 2)) * [1, 5], rng.normal(size=(100, 2))
    model = DiscriminativePCA(1).fit(target, background=background)
    name = "\u202ecniz \u2069\u2067"
    findings = examine(model, target, background, features=["size", name], target_name=name, labels=[name, "b"] * 50)
    html = page(findings)
    assert not set(name.replace("cniz ", "")) & set(html)
    shown = r"<bdi>\u202ecniz \u2069\u2067</bdi>"
    assert re.search(rf"<h1>[^<]*{re.escape(shown)}[^<]*</h1>", html)
    assert re.search(rf'<p class="headline">.*{re.escape(shown)}.*</p>', html)
    assert re.search(rf'<p class="asked">[^<]*{re.escape(shown)}', html)
    assert "\u2068" not in summary(findings)["title"] + summary(findings)["headline"] + summary(findings)["question"]
    assert html.count("<bdi") == html.count("</bdi>") > 10


def test_methods_are_compared_on_one_page_without_scripts(pair):
    target, background = pair
    views = []
    for model, backgrounds in every_method(target, background).values():
        model.fit(target, background=backgrounds or None)
        labels = np.array(HOSTILE[:4], dtype=object)[np.arange(200) % 4]
        views.append(examine(model, target, backgrounds or None, labels=labels, target_name=HOSTILE[1]))
    html = compare(views)
    tags = Tags(html)
    assert tags.tags.count("figure") == len(views)
    assert not {"script", "img", "link"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert all(view.method in html for view in views)
    assert "default-src 'none'" in html
    assert compare(views) == html


def test_the_templates_are_part_of_the_package():
    files = {path.name for path in resources.files("standout.report").joinpath("static").iterdir()}
    assert files == {"page.html.j2", "compare.html.j2", "page.css", "page.js"}


def plots_of(found):
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page(found), re.DOTALL)
    return json.loads(data.group(1))


@pytest.fixture
def told(caplog):
    """What Bokeh logs, whether or not other code has changed or disabled its logger."""
    logger = logging.getLogger("bokeh.core.has_props")
    level, disabled = logger.level, logger.disabled
    logger.addHandler(caplog.handler)
    logger.setLevel(logging.WARNING)
    logger.disabled = False
    yield caplog
    logger.removeHandler(caplog.handler)
    logger.setLevel(level)
    logger.disabled = disabled


@pytest.mark.parametrize("case", ["groups", "scale", "plain", "rings", "pca"])
def test_the_classes_of_bokeh_accept_the_plots(case, rng, told):
    plotting = pytest.importorskip("bokeh.plotting")
    from bokeh.core.serialization import Deserializer

    target, background = rng.normal(size=(2, 60, 4))
    if case == "rings":
        target[:2] += 100.0
    labels = {"groups": np.repeat(["a", "b"], 30), "scale": np.linspace(0.0, 1.0, 60)}.get(case)
    model = DiscriminativePCA(2, robust="rows" if case == "rings" else None)
    model.fit(target, background=None if case == "pca" else background)
    found = examine(model, target, None if case == "pca" else background, labels=labels, with_path=False)
    plots = plots_of(found)
    # Values that a property does not take are refused, and names that it does not know are logged.
    figures = Deserializer().decode(plots["document"]["roots"])
    assert not told.records
    assert [type(figure) for figure in figures] == [plotting.figure] * (1 if case == "pca" else 2)
    assert list(plots["roots"]) == [figure.id for figure in figures]
    names = [renderer.name for renderer in figures[0].renderers]
    assert names == {"pca": ["target"], "rings": ["background-1", "target", "ring"]}.get(
        case, ["background-1", "target"]
    )
    drawn = next(renderer for renderer in figures[0].renderers if renderer.name == "target")
    np.testing.assert_array_equal(drawn.data_source.data["x"], found.target.scores[:, 0])


def test_the_classes_of_bokeh_tell_of_what_they_do_not_know(findings, told):
    pytest.importorskip("bokeh.plotting")
    from bokeh.core.serialization import Deserializer

    roots = plots_of(findings)["document"]["roots"]
    roots[0]["attributes"]["colour_of_nothing"] = 1
    Deserializer().decode(roots)
    assert "colour_of_nothing" in told.text
    roots[0]["attributes"] = {"min_border": "wide"}
    with pytest.raises(ValueError, match="min_border"):
        Deserializer().decode(roots)
