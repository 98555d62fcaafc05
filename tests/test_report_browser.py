"""The page of the report in a real browser: Chromium without a network."""

import numpy as np
import pytest

from browsing import Visit, chromium
from report_runs import made


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page of a case, and check at the end that it had no errors and loaded nothing."""
    visits = []

    def opened(case, **options):
        file = tmp_path / f"{case}.html"
        made(case).save(file)
        visits.append(Visit(browser, file.as_uri(), offline=True, **options))
        return visits[-1]

    yield opened
    for each in visits:
        assert each.complaints == []
        assert each.requests == [each.url]
        each.context.close()


def point_at(opened, canvas, row):
    """Move the pointer to a row of the target, and return the words that are shown."""
    opened.page.locator(canvas).scroll_into_view_if_needed()
    opened.page.wait_for_timeout(100)
    box = opened.box(canvas)
    x, y, _ = opened.ask(f"document.querySelector('{canvas}').scatter.place(0, {row})")
    opened.page.mouse.move(box["x"] + x, box["y"] + y)
    opened.page.locator("#point").wait_for()
    return opened.page.locator("#point").inner_text().splitlines()


@pytest.mark.parametrize("case", ["cells", "nothing", "shift", "images", "hostile", "subjects"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_the_first_screen_answers(visit, case, phone):
    opened = visit(case, phone=phone)
    height = 844 if phone else 900
    assert opened.ask("document.documentElement.scrollWidth") <= (390 if phone else 1400)
    for part in ("h1", "#ratio", "#p-value", "#size", "#view"):
        box = opened.box(part)
        assert box["y"] + box["height"] <= height, part
        assert box["width"] > 60
    # No tile is alone on a row: side by side on a phone, below each other beside the picture.
    tops = {round(opened.box(tile)["y"]) for tile in ("#ratio", "#p-value", "#size")}
    assert len(tops) == (1 if phone else 3)
    if case == "images":
        assert opened.box("#answer canvas.image")["y"] < height


def test_points_are_drawn_in_both_themes(visit):
    for scheme in ("light", "dark"):
        opened = visit("cells", color_scheme=scheme)
        colours = opened.ask(
            """(() => { const canvas = document.getElementById("view");
                const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
                const seen = new Set();
                for (let at = 0; at < pixels.length; at += 4)
                    if (pixels[at + 3] > 150) seen.add([0, 1, 2].map((k) => pixels[at + k] >> 6).join());
                return seen.size; })()"""
        )
        assert colours >= 4
        paper = opened.ask("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    opened.page.get_by_role("button", name="Light").click()
    assert opened.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_hovering_shows_the_id_the_label_and_the_scores(visit):
    opened = visit("cells")
    found = made("cells").findings
    points = found["drawn"]["points"][0]
    row = int(np.argmax(points["scores"][0]))
    name = points["ids"][row]
    words = point_at(opened, "#view", row)
    assert words[0] == name
    assert words[1] == f"target, row {points['rows'][row]}"
    assert words[2] == f"guide: {found['labels']['names'][points['labels'][row]]}"
    assert float(words[3].removeprefix("component 1: ")) == pytest.approx(points["scores"][0][row], rel=0.01)
    opened.page.mouse.move(3, 3)
    assert opened.page.locator("#point").is_hidden()


def test_the_slider_moves_the_view_and_goes_back(visit):
    opened = visit("cells")
    views = made("cells").findings["drawn"]["views"]
    canvas = opened.page.locator("#along")
    canvas.scroll_into_view_if_needed()
    before = canvas.screenshot()
    slider = opened.page.locator("#slider")
    mark = opened.ask("document.querySelector('#path .here').getAttribute('x1')")
    slider.focus()
    opened.page.keyboard.press("End")
    opened.page.wait_for_selector(f"#along[data-step='{len(views['values']) - 1}']")
    opened.page.wait_for_timeout(150)
    assert canvas.screenshot() != before
    assert opened.page.locator("#step").inner_text().startswith("Shrinkage 0.9")
    assert opened.ask("document.querySelector('#path .here').getAttribute('x1')") != mark
    opened.page.get_by_role("button", name="Back to the fit").click()
    opened.page.mouse.move(3, 3)
    opened.page.wait_for_selector(f"#along[data-step='{views['chosen']}']")
    assert "(the fit)" in opened.page.locator("#step").inner_text()


def test_labels_and_backgrounds_can_be_hidden(visit):
    opened = visit("cells")
    canvas = opened.page.locator("#view")
    before = canvas.screenshot()
    for name in ("guide B", "background"):
        opened.page.get_by_role("button", name=name).click()
        opened.page.wait_for_timeout(100)
        after = canvas.screenshot()
        assert after != before
        before = after


def test_other_components_can_be_chosen(visit):
    opened = visit("contrastive")
    before = opened.page.locator("#view").screenshot()
    opened.page.get_by_label("Component of the vertical axis").select_option("component 3")
    opened.page.wait_for_timeout(100)
    assert opened.page.locator("#view").screenshot() != before


def test_numbers_explain_themselves_by_mouse_and_by_keyboard(visit):
    opened = visit("cells")
    opened.page.locator("#ratio .tip").hover()
    opened.page.locator("#point").filter(has_text="held-out rows").wait_for()
    opened.page.mouse.move(3, 3)
    opened.page.locator("#p-value .tip").focus()
    opened.page.locator("#point").filter(has_text="assumes independent rows").wait_for()
    opened.page.keyboard.press("Escape")
    opened.page.locator("#point").wait_for(state="hidden")


def test_hostile_names_are_shown_and_do_nothing(visit):
    opened = visit("hostile")
    assert opened.ask("document.scripts.length") == 2
    assert opened.page.locator("#legend").inner_text().count("<script>alert(1)</script>") == 1
    names = made("hostile").findings["drawn"]["points"][0]["ids"]
    assert point_at(opened, "#view", 0)[0] in names


@pytest.mark.parametrize("case", ["kernel", "wide", "robust"])
def test_other_fits_have_quiet_pages(visit, case):
    opened = visit(case, phone=True)
    assert opened.ask("document.documentElement.scrollWidth") <= 390


def test_a_notebook_draws_the_page_in_its_frame(browser, tmp_path):
    file = tmp_path / "notebook.html"
    text = f"<!doctype html><meta charset='utf-8'><body data-ready>{made('cells')._repr_html_()}"
    file.write_text(text, encoding="utf-8")
    opened = Visit(browser, file.as_uri(), offline=True)
    inside = opened.page.frame_locator("iframe")
    inside.locator("body[data-ready]").wait_for()
    assert inside.locator("h1").inner_text() == made("cells").findings["headline"]
    assert opened.complaints == []
    opened.context.close()
