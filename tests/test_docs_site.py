"""The built pages: every link leads somewhere, nothing is loaded from the network, and a browser does not complain.

`make docs` builds the pages and runs these tests on them, in the folder STANDOUT_SITE.
"""

import contextlib
import os
import re
import threading
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import standout
from browsing import PATIENCE, chromium

DESKTOP, PHONE = (1400, 900), (390, 844)


@pytest.fixture(scope="module")
def site():
    folder = os.environ.get("STANDOUT_SITE")
    if not folder:
        pytest.skip("no built pages here: make docs builds them and runs these tests")
    path = Path(folder).resolve()
    assert (path / "index.html").is_file(), f"{folder} holds no built pages"
    return path


class Page(HTMLParser):
    """The links, loaded files and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors, self.images = [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.update(values[key] for key in ("id", "name") if values.get(key))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "link" and values.get("href") and values.get("rel") != "canonical":
            self.loads.append(values["href"])
        if tag in ("img", "script", "source", "iframe", "video") and values.get("src"):
            self.loads.append(values["src"])
        if values.get("srcset"):
            self.loads += [part.split()[0] for part in values["srcset"].split(",")]
        if tag == "img":
            self.images.append(values)


@cache
def parsed(path):
    return Page(path.read_text("utf-8"))


def pages(site):
    # The report has separate tests; the theme keeps a template among its static files.
    others = {"example", "_static"}
    return [path for path in sorted(site.rglob("*.html")) if path.relative_to(site).parts[0] not in others]


def is_external(address):
    return urlsplit(address).scheme in ("http", "https") or address.startswith("//")


def target_of(page, address):
    """Return the file and the anchor to which an address on a page points."""
    place, anchor = urldefrag(address)
    path = (page.parent / unquote(urlsplit(place).path)).resolve() if place else page
    return (path / "index.html" if path.is_dir() else path), unquote(anchor)


def broken_links(site):
    broken = []
    for page in pages(site):
        for address in [*parsed(page).links, *parsed(page).loads]:
            if is_external(address) or urlsplit(address).scheme in ("mailto", "data", "javascript"):
                continue
            path, anchor = target_of(page, address)
            lacks_anchor = anchor and path.suffix == ".html" and path.is_file() and anchor not in parsed(path).anchors
            if not path.is_file() or lacks_anchor:
                broken.append((page.name, address))
    return broken


def test_every_internal_link_leads_to_a_file_and_an_anchor(site):
    assert broken_links(site) == []


def test_the_link_check_can_fail(tmp_path):
    (tmp_path / "index.html").write_text('<p id="here"><a href="#here">a</a><a href="#there">b</a><img src="c.png">')
    assert broken_links(tmp_path) == [("index.html", "#there"), ("index.html", "c.png")]


def test_nothing_is_loaded_from_elsewhere(site):
    for page in pages(site):
        assert [address for address in parsed(page).loads if is_external(address)] == [], page.name
    for sheet in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import\s+)['\"]?([^'\")]+)", sheet.read_text("utf-8", errors="replace"))
        assert [address for address in addresses if is_external(address)] == [], sheet.name


def test_every_picture_says_what_it_shows(site):
    for page in pages(site):
        assert all(image.get("alt") is not None for image in parsed(page).images), page.name


def test_formulas_are_drawn_by_the_browser(site):
    text = (site / "how-it-works.html").read_text("utf-8")
    assert text.count("<math") > 10
    assert not list(site.rglob("*mathjax*"))


@pytest.mark.parametrize("name", [name for name in standout.__all__ if name.endswith("PCA")])
def test_the_reference_has_every_method_of_an_estimator(site, name):
    anchors = parsed(site / "api" / "generated" / f"standout.{name}.html").anchors
    methods = {"fit", "transform", "score", "to_numpy", "held_out_scores", "summary"}
    assert {f"standout.{name}.{method}" for method in methods} <= anchors


def test_the_functions_that_share_a_name_with_a_module_have_their_own_pages(site):
    for name in ("report.report", "screen", "explore"):
        assert f"standout.{name}" in parsed(site / "api" / "generated" / f"standout.{name}.html").anchors


def test_the_help_of_every_command_is_on_its_page(site):
    text = (site / "command-line.html").read_text("utf-8")
    assert text.count("Usage: standout") == 9
    assert "--condition-column" in text


def test_the_sample_report_is_there_and_names_no_folder_of_its_builder(site):
    text = (site / "example" / "report.html").read_text("utf-8")
    assert str(Path(__file__).parents[1]) not in text


# In a browser


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def address(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser(site):
    with chromium() as started:
        yield started


def _left(request):
    """Return whether a request was ended by opening the next page."""
    return request.failure == "net::ERR_ABORTED"


@contextlib.contextmanager
def opened(browser, size, **options):
    """Open a tab that records complaints and requests of pages."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    tab.complaints, tab.asked = [], []
    tab.on("console", lambda said: tab.complaints.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("requestfailed", lambda request: None if _left(request) else tab.complaints.append(f"failed: {request.url}"))
    tab.on("request", lambda request: tab.asked.append(request.url))
    yield tab
    context.close()


# Load the pictures far down the page, too.
BROKEN = """async () => {
  const pictures = [...document.images];
  for (const picture of pictures) picture.loading = "eager";
  await Promise.all(pictures.map(picture => picture.decode().catch(() => null)));
  return pictures.filter(picture => picture.naturalWidth === 0).map(picture => picture.src);
}"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def visit(tab, address, site, page):
    tab.goto(f"{address}/{page.relative_to(site).as_posix()}", wait_until="load")
    assert tab.evaluate(BROKEN) == [], f"{page.name} has pictures that do not show"
    return tab.evaluate(WIDER)


def is_reference(site, page):
    return page.relative_to(site).parts[:2] == ("api", "generated")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_pages_show_without_complaint_and_fit_the_width(site, address, browser, size):
    with opened(browser, size) as tab:
        wide = {}
        # The pages of the reference are similar, so open only the pages of the estimators.
        for page in pages(site):
            if is_reference(site, page) and "PCA" not in page.name:
                continue
            wide[page.name] = visit(tab, address, site, page)
        assert tab.complaints == []
        assert {url for url in tab.asked if not url.startswith((address, "data:"))} == set()
        assert {name: by for name, by in wide.items() if by > 0} == {}


def test_the_dark_pages_are_readable(site, address, browser):
    contrast = """() => {
      const colour = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
      const bright = ([r, g, b]) => (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
      const article = document.querySelector("article");
      const letters = bright(colour(getComputedStyle(article.querySelector("p")).color));
      const paper = bright(colour(getComputedStyle(document.body).backgroundColor));
      return letters - paper;
    }"""
    with opened(browser, DESKTOP, color_scheme="dark") as tab:
        visit(tab, address, site, site / "how-it-works.html")
        assert tab.evaluate(contrast) > 0.5


def test_searching_the_pages_finds_something(site, address, browser):
    with opened(browser, DESKTOP) as tab:
        tab.goto(f"{address}/search.html?q=shrinkage", wait_until="load")
        tab.wait_for_selector("#search-results li a")
        assert tab.complaints == []
