"""The page of an exploration in Chromium, from the command to the saved result."""

import json
import re
import signal

import pytest

from browsing import chromium, new_context
from exploring import PATIENTS, Visit, serving


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def patients(browser, tmp_path_factory):
    """The address of an exploration for several tests, with a page that stays open, so that it does not end."""
    with serving(*PATIENTS, folder=tmp_path_factory.mktemp("patients")) as (_, address):
        kept = new_context(browser)
        Visit(kept, address)
        yield address
        kept.close()


@pytest.fixture
def context(browser):
    made = new_context(browser, viewport={"width": 1400, "height": 1000})
    yield made
    made.close()


def test_a_question_is_asked_by_hand_and_its_result_kept(context, tmp_path):
    """Load the demo, lasso a cluster, move the slider to both ends, undo, save, open what was saved."""
    with serving("--demo", folder=tmp_path) as (_, address):
        visit = Visit(context, address)
        host = re.match(r"http://([^/]+)/", address)[1]
        assert visit.sides() == [300, 3000]
        start, headline = visit.columns(), visit.text("#headline")
        assert "on rows that were not fitted" in headline
        # Narrowed to the images of the target that lie on the left.
        visit.page.get_by_text("narrows it").click()
        visit.after(lambda: visit.lasso(0.05, 0.05, 0.4, 0.9))
        assert visit.sides()[0] < 250
        assert visit.columns() != start
        chosen = visit.columns()

        ends = []
        for share in (0.0, 1.0):
            visit.after(lambda share=share: visit.drag("#slider-shrinkage", share))
            visit.wait_until(lambda share=share: visit.text("#value-shrinkage") == str(int(share)))
            ends.append((visit.text("#headline"), visit.columns()))
        assert ends[0] != ends[1]
        # Both ends are one step of the slider.
        visit.after(lambda: visit.page.keyboard.press("Control+z"))
        assert visit.columns() == chosen
        visit.after(lambda: visit.page.get_by_role("button", name="Undo").click())
        assert (visit.columns(), visit.sides()) == (start, [300, 3000])
        visit.after(lambda: visit.page.get_by_role("button", name="Redo").click())
        assert visit.columns() == chosen

        visit.page.get_by_label("Folder").fill("kept")
        visit.page.get_by_role("button", name="Save the result").click()
        with context.expect_page() as opened:
            visit.page.locator("#report-link").click()
        report = opened.value
        report.wait_for_selector("body[data-ready]")
        assert "part of digits over photographs" in report.locator("h1").inner_text()
        summary = json.loads((tmp_path / "kept/summary.json").read_text())
        shown = re.search(r"varies ([\d.]+) times", visit.text("#headline"))[1]
        assert summary["components"][0]["ratio"] == pytest.approx(float(shown), rel=6e-3)

        assert visit.complaints == []
        assert {re.match(r"\w+://([^/]+)/", url)[1] for url in visit.requests} == {host}


def test_steps_of_every_kind(context, tmp_path):
    with serving(*PATIENTS, folder=tmp_path) as (process, address):
        visit = Visit(context, address)
        page = visit.page
        n_target, n_background = visit.sides()
        # The picture stays in its place while the mouse is down, however long the words above it become.
        place = page.locator("#plot").bounding_box()
        page.mouse.move(place["x"] + 200, place["y"] + 100)
        page.mouse.down()
        page.evaluate("document.getElementById('headline').textContent = 'words '.repeat(200)")
        assert page.locator("#plot").bounding_box() == place
        page.keyboard.press("Escape")
        page.mouse.up()
        # Rows of the other side come with Shift.
        visit.after(lambda: visit.lasso(0.3, 0.05, 0.65, 0.9, key="Shift"))
        assert sum(visit.sides()) == n_target + n_background
        visit.after(lambda: page.keyboard.press("Control+z"))
        for method in ("cpca", "kdpca", "pca", "dpca"):
            visit.after(lambda method=method: page.select_option("#method", method))
        assert visit.sides() == [n_target, n_background]
        for colour in ("label", "group", "column protein_03"):
            visit.after(lambda colour=colour: page.select_option("#colour", colour))
        assert page.locator("#legend .scale").count() == 1
        visit.after(lambda: page.select_option("#picture-of", "pca"))
        visit.after(lambda: page.select_option("#picture-of", "answer"))
        # A click shows a row, which is left out, and taken back in.
        box = page.locator("#plot").bounding_box()
        for share in (0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.3):
            page.mouse.click(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
            if page.locator("#card:visible").count():
                break
            page.wait_for_timeout(300)
        visit.after(lambda: page.locator("#card").get_by_role("button", name="Leave out").click())
        assert sum(visit.sides()) == n_target + n_background - 1
        visit.after(lambda: page.get_by_role("button", name="back in").click())
        assert sum(visit.sides()) == n_target + n_background

        page.get_by_placeholder("a word").fill("P00")
        visit.wait_until(lambda: visit.text("#table-count").startswith("9 rows"))
        page.get_by_role("button", name="Test the components").click()
        visit.wait_until(lambda: "Component 2: p" in visit.text("#verdict-words"))
        assert "more than chance" in visit.text("#verdict-words")
        # What cannot be is said in a sentence, and changes nothing.
        page.locator("#groups tbody tr").first.get_by_role("radio").nth(2).click()
        page.wait_for_selector("#problem:visible")
        assert visit.sides() == [n_target, n_background]
        assert visit.complaints == []
        page.close()
        # The exploration ends when its last page is closed.
        assert process.wait(60) == 0


def test_pages_side_by_side_have_sides_of_their_own(context, patients):
    first, second = Visit(context, patients), Visit(context, patients)
    before = second.sides()
    first.after(lambda: first.page.get_by_role("button", name="Swap").click())
    assert first.sides() == before[::-1]
    second.after(lambda: second.page.select_option("#method", "cpca"))
    assert second.sides() == before
    # A page that is loaded again is as it was.
    first.page.reload()
    first.page.wait_for_selector("body[data-ready]")
    first.wait_until(lambda: first.sides() == before[::-1])


def test_what_was_saved_outlives_a_kill(context, tmp_path):
    with serving(*PATIENTS, folder=tmp_path) as (process, address):
        visit = Visit(context, address)
        visit.page.get_by_text("narrows it").click()
        visit.after(lambda: visit.lasso(0.3, 0.05, 0.65, 0.9))
        sides, columns = visit.sides(), visit.columns()
        visit.page.get_by_role("button", name="Save the session").click()
        visit.wait_until(lambda: "session.json" in visit.text("#kept"))
        visit.after(lambda: visit.page.select_option("#method", "pca"))
        process.send_signal(signal.SIGKILL)
        visit.page.wait_for_selector("#gone:visible")
    assert [path.name for path in tmp_path.iterdir()] == ["session.json"]
    with serving(*PATIENTS, "--session", "session.json", folder=tmp_path) as (_, address):
        visit = Visit(context, address)
        assert (visit.sides(), visit.columns()) == (sides, columns)
        visit.after(lambda: visit.page.get_by_role("button", name="Undo").click())
        assert visit.sides() != sides


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_all_within_its_width(browser, patients, scheme):
    phone = {"width": 390, "height": 844}
    made = new_context(browser, viewport=phone, is_mobile=True, has_touch=True, color_scheme=scheme)
    visit = Visit(made, patients)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    dark = visit.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    visit.page.locator("#plot").tap()
    assert visit.complaints == []
    made.close()


def test_the_picture_stays_in_view_but_never_covers_the_rows(context, patients):
    visit = Visit(context, patients)
    for words in ("Is it chance?", "How to repeat it"):
        visit.page.get_by_role("heading", name=words).evaluate(
            "(heading) => heading.scrollIntoView({ behavior: 'instant' })"
        )
        picture, rows = (visit.page.locator(name).bounding_box() for name in ("#picture .staying", "#rows"))
        assert picture["y"] + picture["height"] <= rows["y"]
    visit.page.locator("#settings").evaluate("(section) => section.scrollIntoView({ behavior: 'instant' })")
    assert visit.page.locator("#picture .staying").bounding_box()["y"] >= 0
