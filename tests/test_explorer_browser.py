"""The page of an exploration in Chromium: everything by clicks, drags and keys."""

import math
import re

import numpy as np
import pytest

from browsing import PATIENCE, Visit, chromium
from standout.explorer import Table, begun, serve

CONDITIONS = np.repeat(["ill", "well", "odd"], [120, 150, 90])
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def made_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(360, 30))
    X[CONDITIONS == "ill", 3] *= 5
    X[CONDITIONS == "ill", 12] += 2
    table = Table.of(X, CONDITIONS)
    table.words["mouse"] = np.array([f"mouse {k // 10}" for k in range(360)], dtype=object)
    table.columns[3] = HOSTILE
    return table


class Exploring(Visit):
    """A page of an exploration."""

    def __init__(self, browser, address, **options):
        super().__init__(browser, address, **options)
        self.wait("document.body.dataset.answered")

    def wait(self, script):
        # Playwright cannot wait inside the page, because the policy of the page forbids it.
        for _ in range(PATIENCE // 50):
            if self.ask(script):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(script)

    def after(self, act):
        """Do something that requests a new answer, and wait until the answer is complete."""
        before = int(self.ask("document.body.dataset.answered"))
        act()
        self.wait(f"document.body.dataset.answered > {before}")

    def choose(self, value, role):
        self.after(lambda: self.page.get_by_label(f"{value}: {role}", exact=True).click())

    def press(self, name):
        self.after(lambda: self.page.get_by_role("button", name=name, exact=True).click())

    def text(self, place):
        return self.page.locator(place).inner_text()

    def counts(self):
        found = re.findall(r"[\d,]*\d(?= \w+ are| background| neither)", self.text("#now"))
        return [int(number.replace(",", "")) for number in found]

    def states(self):
        """Return the role that the page shows for each value."""
        rows = [row.locator("input") for row in self.page.locator("#values tbody tr").all()]
        roles = ("target", "background", "neither")
        return [",".join(role for k, role in enumerate(roles) if row.nth(k).is_checked()) for row in rows]

    def columns(self):
        return self.page.locator("#list tbody button").all_inner_texts()


@pytest.fixture
def visit(browser):
    kept = []

    def opened(target=("ill",), **options):
        table = made_table()
        served = serve(table, begun(table, "dpca", list(target)), {})
        kept.append((served, Exploring(browser, served.address, **options)))
        return kept[-1][1]

    yield opened
    for served, page in kept:
        assert page.complaints == []
        assert all(url.startswith((f"http://{served.hosts[0]}/", "blob:", "data:")) for url in page.requests)
        page.context.close()
        served.close()


def test_three_states_clear_and_undo_by_clicks(visit):
    page = visit(target=())
    assert page.states() == ["neither"] * 3
    assert page.text("#ratio b") == "–"
    assert "Choose a target" in page.text("h1")
    page.choose("ill", "target")
    assert page.text("#ratio b") == "–"
    page.choose("odd", "background")
    assert page.states() == ["target", "background", "neither"]
    assert page.counts() == [120, 90, 150]
    assert float(page.text("#ratio b").split()[0]) > 10
    ratio = page.text("#ratio")
    # Rows with the role "neither" are in no dataset, so the answer is different.
    page.choose("well", "background")
    assert page.text("#ratio") != ratio
    page.choose("well", "neither")
    assert page.text("#ratio") == ratio
    assert "--" not in page.text("#command")
    page.press("Clear")
    assert page.states() == ["neither"] * 3
    assert page.text("#ratio b") == "–"
    page.press("Undo")
    assert (page.states(), page.text("#ratio")) == (["target", "background", "neither"], ratio)
    page.press("Swap")
    assert page.states() == ["background", "target", "neither"]
    page.after(lambda: page.page.keyboard.press("Control+z"))
    page.press("All others are background")
    assert page.counts() == [120, 240, 0]


def test_the_slider_answers_while_it_is_dragged(visit):
    page = visit()
    start, ratio = page.text("#slider-value"), page.text("#ratio")
    box = page.box("#slider")
    y = box["y"] + box["height"] / 2
    page.page.mouse.move(box["x"] + 0.1 * box["width"], y)
    page.page.mouse.down()
    seen = set()
    for share in np.linspace(0.1, 0.9, 9):
        page.page.mouse.move(box["x"] + share * box["width"], y)
        page.page.wait_for_timeout(80)
        seen.add(page.text("#ratio b"))
    page.wait("document.body.dataset.previews > 2")
    # The mouse button is still down. The ratio has followed the slider, and all ratios are plausible.
    assert len(seen) > 2
    assert all(0.1 < float(text.split()[0]) < 100 for text in seen)
    assert page.text("#headline") == "What stands out in ill against odd, well?"
    during = page.text("#ratio")
    page.after(page.page.mouse.up)
    assert page.text("#slider-value") != start
    assert float(page.text("#ratio b").split()[0]) == pytest.approx(float(during.split()[0]), rel=0.2)
    assert "shrinkage=" in page.text("#python")
    page.press("Undo")
    assert (page.text("#slider-value"), page.text("#ratio")) == (start, ratio)
    assert page.page.locator("#chart svg .line").count() == 1


def test_typing_filters_the_columns_and_means_are_shown(visit):
    page = visit()
    assert page.columns()[0] == HOSTILE
    page.page.locator("#search").press_sequentially("x12")
    page.wait("document.querySelectorAll('#list tbody tr').length === 1")
    assert page.columns() == ["x12"]
    page.page.locator("#search").fill("")
    page.page.select_option("#sort", "means")
    page.wait("document.querySelector('#list tbody button').textContent === 'x12'")
    assert float(page.page.locator("#list tbody tr td:nth-child(3)").first.inner_text()) > 1
    page.page.get_by_role("button", name="x12", exact=True).click()
    page.wait("document.querySelector('#legend .scale') !== null")
    assert "target: 2" in page.text("#histogram")


def test_a_lasso_subjects_scale_and_method(visit):
    page = visit()
    before = page.counts()
    page.page.get_by_text("neither", exact=True).first.click()
    box = page.box("#plot")
    for step in range(25):
        angle = 2 * math.pi * step / 24
        x = box["x"] + (0.75 + 0.2 * math.cos(angle)) * box["width"]
        y = box["y"] + (0.5 + 0.4 * math.sin(angle)) * box["height"]
        page.page.mouse.move(x, y)
        if step == 0:
            page.page.mouse.down()
    page.after(page.page.mouse.up)
    after = page.counts()
    assert after[0] < before[0]
    assert sum(after) == 360
    assert "" in page.states()
    page.press("Undo")
    for place, value in (("#subjects", "mouse"), ("#scale", "pooled"), ("#center", "background"), ("#method", "cpca")):
        page.after(lambda place=place, value=value: page.page.select_option(place, value))
    code = page.text("#python")
    assert all(word in code for word in ("groups=", 'scale="pooled"', 'center="background"', "ContrastivePCA"))
    page.after(lambda: page.page.select_option("#by", "mouse"))
    assert len(page.states()) == 36
    page.page.locator("#find-value").fill("mouse 35")
    assert len(page.states()) == 1


def test_a_test_opens_the_report(visit):
    page = visit()
    page.page.locator("#test").click()
    page.wait("document.body.dataset.tested !== undefined")
    assert page.text("#p-value b").startswith("p ")
    assert page.text("#ratio b") in page.text("#headline")
    with page.context.expect_page() as opened:
        page.page.locator("#test").click()
    opened.value.wait_for_selector("body[data-ready]")
    assert "ill" in opened.value.locator("h1").inner_text()


def test_steps_survive_a_reload_and_a_session_is_opened(visit, tmp_path):
    page = visit()
    page.choose("odd", "neither")
    page.page.reload()
    page.wait("document.body.dataset.answered")
    assert page.states() == ["target", "neither", "background"]
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Save the session").click()
    file = tmp_path / "session.json"
    download.value.save_as(file)
    page.press("Clear")
    page.after(lambda: page.page.set_input_files("#open", file))
    assert page.states() == ["target", "neither", "background"]
    (tmp_path / "forged.json").write_text(file.read_text().replace('"dpca"', '"__class__"'))
    page.after(lambda: page.page.set_input_files("#open", tmp_path / "forged.json"))
    assert "'__class__' is unknown" in page.text("#problem")
    assert page.states() == ["target", "neither", "background"]


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_the_first_screen_is_used_and_readable(visit, phone):
    page = visit(phone=phone)
    width, height = (390, 844) if phone else (1400, 900)
    assert page.ask("document.documentElement.scrollWidth") <= width
    for part in ("h1", "#ratio", "#p-value", "#size", "#plot"):
        box = page.box(part)
        assert box["y"] + box["height"] <= height, part
        assert box["x"] + box["width"] <= width, part
    if not phone:
        # Picture, question and columns are beside each other.
        assert all(page.box(part)["y"] < 200 for part in ("#picture", "#sides", "#columns"))
