"""What the page of the report does in a browser: Chromium, without any network."""

import contextlib
import re

import numpy as np
import pytest

from browsing import PATIENCE, chromium, new_context
from report_runs import HOSTILE, hostile_findings, many
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout.report import examine, page


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


class Visit:
    """A page in the browser, with all that it complained of and asked for."""

    def __init__(self, context, file):
        self.page = context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type != "info" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("body[data-ready]")
        # The plots are there, but they are laid out and drawn in their own time.
        self.wait_until("Bokeh.documents[0].is_idle")
        self.file = file

    def points(self, column="x", index=0):
        return np.array(self.ask(f"[...Bokeh.documents[0].get_model_by_name('points-{index}').data.{column}]"))

    def selected(self):
        return self.ask("[...Bokeh.documents[0].get_model_by_name('points-0').selected.indices]")

    def place_of(self, row, plot="view", columns=("x", "y")):
        """Where on the screen a row is drawn, once the page has come to rest."""
        self.page.locator(f"#plot-{plot}").scroll_into_view_if_needed()
        x, y = columns
        return self.settled(
            lambda: self.ask(
                f"""new Promise((give) => requestAnimationFrame(() => {{
                    const doc = Bokeh.documents[0];
                    const plot = doc.get_model_by_name("{plot}");
                    const view = Bokeh.index.get_by_id ? Bokeh.index.get_by_id(plot.id) : Bokeh.index[plot.id];
                    const data = doc.get_model_by_name("points-0").data;
                    const box = view.el.getBoundingClientRect();
                    give([box.left + view.frame.x_scale.compute(data.{x}[{row}]),
                          box.top + view.frame.y_scale.compute(data.{y}[{row}])]);
                }}))"""
            )
        )

    def point_at(self, row, words):
        """Point at a row until its words are shown: a move that comes while the page is drawn may find nothing."""
        from playwright.sync_api import TimeoutError as NotShownError

        shown = self.page.locator("#point").get_by_text(words, exact=True).first
        for _ in range(30):
            self.page.mouse.move(5, 5)
            self.page.mouse.move(*self.place_of(row))
            with contextlib.suppress(NotShownError):
                shown.wait_for(timeout=PATIENCE / 30)
                return
        pytest.fail(f"{words!r} is not shown where row {row} is drawn")

    def ask(self, script):
        return self.page.evaluate(script)

    def wait_until(self, script):
        """Ask until the answer is yes; Playwright's own way is forbidden by the page, which lets no text be run."""
        for _ in range(PATIENCE // 100):
            if self.ask(script):
                return
            self.page.wait_for_timeout(100)
        pytest.fail(f"it does not come true: {script}")

    def settled(self, look):
        """Give what is seen once it is seen twice in a row."""
        seen = None
        for _ in range(PATIENCE // 100):
            before, seen = seen, look()
            if seen == before:
                return seen
            self.page.wait_for_timeout(100)
        pytest.fail("the page does not come to rest")

    def picture(self, plot):
        self.page.wait_for_timeout(250)
        return self.settled(self.page.locator(f"#plot-{plot}").screenshot)

    def wait_for_another_picture(self, plot, before):
        """Wait until a plot does not look as it did before."""
        for _ in range(PATIENCE // 250):
            if self.page.locator(f"#plot-{plot}").screenshot() != before:
                return
            self.page.wait_for_timeout(250)
        pytest.fail(f"the plot {plot!r} looks as before")

    def check(self):
        assert self.complaints == []
        assert self.requests == [self.file.as_uri()]


@pytest.fixture
def visit(browser, tmp_path):
    """Give a function that opens findings in the browser, and check in the end that the page was quiet."""
    visits, contexts = [], []

    def opened(findings, *, width=1280, height=900, phone=False, **options):
        file = tmp_path / f"report {len(visits)}.html"
        file.write_text(page(findings), encoding="utf-8", newline="")
        if phone:
            options |= {"has_touch": True, "is_mobile": True}
            width, height = 390, 844
        context = new_context(browser, viewport={"width": width, "height": height}, offline=True, **options)
        contexts.append(context)
        visits.append(Visit(context, file))
        return visits[-1]

    yield opened
    for each in visits:
        each.check()
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_the_page_fits_the_screen_and_is_quiet(visit, findings, phone, scheme):
    opened = visit(findings, phone=phone, color_scheme=scheme)
    assert opened.ask("document.documentElement.scrollWidth <= innerWidth")
    first, second = (opened.page.locator(f"#plot-{name}").bounding_box() for name in ("view", "pca"))
    assert (second["y"] > first["y"] + first["height"]) == phone
    assert first["width"] > 300
    background = opened.ask("getComputedStyle(document.body).backgroundColor")
    lightness = np.mean([int(part) for part in re.findall(r"\d+", background)[:3]])
    assert lightness < 60 if scheme == "dark" else lightness > 220
    label = opened.ask("Bokeh.documents[0].get_model_by_name('view').below[0].axis_label_text_color")
    assert label == opened.ask("getComputedStyle(document.documentElement).getPropertyValue('--soft').trim()")
    # How to select is said for the mouse or for the finger.
    said = opened.page.locator(".how").inner_text()
    assert ("Tap one" in said) == phone
    assert ("Drag across" in said) != phone


def test_dark_and_light_can_be_switched(visit, findings):
    opened = visit(findings)
    before = opened.ask("getComputedStyle(document.body).backgroundColor")
    opened.page.get_by_role("button", name="Switch to dark colours").click()
    assert opened.ask("getComputedStyle(document.body).backgroundColor") != before
    opened.page.get_by_role("button", name="Switch to light colours").click()
    assert opened.ask("getComputedStyle(document.body).backgroundColor") == before


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_slider_moves_the_points_and_goes_back(visit, findings, motion):
    opened = visit(findings, reduced_motion=motion)
    before, background, pca = opened.points(), opened.points(index=1), opened.points("px")
    assert np.allclose(before, findings.target.scores[:, 0], atol=1e-6)
    slider = opened.page.locator("#path")
    last = len(findings.path.values) - 1
    slider.focus()
    opened.page.keyboard.press("End")
    opened.page.wait_for_selector(f"#plot-view[data-step='{last}']")
    n = len(before)
    # Sixteen bits of the view's width.
    tolerance = np.ptp(findings.path.scores[last, :, 0]) / 2**16
    assert np.max(np.abs(opened.points() - findings.path.scores[last, :n, 0])) <= tolerance
    assert np.max(np.abs(opened.points(index=1) - findings.path.scores[last, n:, 0])) <= tolerance
    assert np.max(np.abs(opened.points() - before)) > 1
    assert np.array_equal(opened.points("px"), pca)
    assert opened.page.locator("#path-step").inner_text().startswith("Shrinkage 1.")
    inside = opened.ask(
        "(() => { const r = Bokeh.documents[0].get_model_by_name('view').x_range; return [r.start, r.end] })()"
    )
    assert inside[0] < opened.points().min()
    assert inside[1] > opened.points().max()
    opened.page.get_by_role("button", name="Back to the fit").click()
    opened.page.wait_for_selector(f"#plot-view[data-step='{findings.path.chosen}']")
    assert np.array_equal(opened.points(), before)
    assert np.array_equal(opened.points(index=1), background)


def test_hovering_shows_a_name_and_lights_up_the_other_view(visit, findings):
    opened = visit(findings)
    row = int(np.argmax(findings.target.scores[:, 0]))
    other = opened.picture("pca")
    opened.point_at(row, f"mouse {row}")
    tooltip = opened.page.locator("#point").inner_text()
    assert f"treated mice, row {row}" in tooltip
    assert f"label: {findings.target.labels[row]}" in tooltip
    assert "component 1:" in tooltip
    opened.wait_for_another_picture("pca", other)


def test_selecting_in_one_view_selects_in_the_other(visit, findings):
    opened = visit(findings)
    row = int(np.argmax(findings.target.scores[:, 0]))
    other = opened.picture("pca")
    x, y = opened.place_of(row)
    opened.page.mouse.move(x - 30, y - 30)
    opened.page.mouse.down()
    opened.page.mouse.move(x, y, steps=4)
    opened.page.mouse.move(x + 20, y + 20, steps=4)
    opened.page.mouse.up()
    opened.page.locator("#selected").wait_for()
    assert row in opened.selected()
    assert f"mouse {row}" in opened.page.locator("#selected span").inner_text()
    opened.wait_for_another_picture("pca", other)
    opened.page.get_by_role("button", name="Clear").click()
    assert opened.selected() == []
    assert opened.page.locator("#selected").is_hidden()


def test_a_click_on_a_label_selects_its_rows(visit, findings):
    opened = visit(findings)
    button = opened.page.get_by_role("button", name="drug 1")
    button.click()
    expected = [row for row, label in enumerate(findings.target.labels) if label == "drug 1"]
    assert opened.selected() == expected
    assert button.get_attribute("aria-pressed") == "true"
    assert "80 of 240 points selected" in opened.page.locator("#selected span").inner_text()
    button.click()
    assert opened.selected() == []


def test_a_background_can_be_hidden(visit, findings):
    opened = visit(findings)
    before = opened.picture("view")
    opened.page.get_by_role("button", name="untreated mice").click()
    opened.page.mouse.move(5, 5)
    opened.wait_for_another_picture("view", before)


def test_numbers_explain_themselves_on_hover_by_keyboard_and_on_touch(visit, findings):
    opened = visit(findings)
    bubble = opened.page.locator("#bubble")
    opened.page.locator(".numbers .tip").first.hover()
    bubble.filter(has_text="divided by that of the background").wait_for()
    opened.page.mouse.move(5, 5)
    bubble.wait_for(state="hidden")
    opened.page.locator(".numbers .tip").nth(1).focus()
    bubble.filter(has_text="PCA's first component").wait_for()
    opened.page.keyboard.press("Escape")
    bubble.wait_for(state="hidden")
    touched = visit(findings, phone=True)
    for index in (0, 1):
        touched.page.locator(".numbers .tip").nth(index).tap()
        touched.page.locator(".numbers .tip").nth(index).and_(touched.page.locator("[aria-describedby]")).wait_for()
        box = touched.page.locator("#bubble").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] >= 0


def test_the_keyboard_passes_by_the_plots_and_gets_to_all_else(visit, findings):
    opened = visit(findings)
    reached = []
    while True:
        opened.page.keyboard.press("Tab")
        at = opened.ask(
            "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
        )
        if at == "BODY":
            break
        reached.append(at)
        assert opened.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert "bk-Figure" not in reached
    assert {"skip", "theme", "item", "path", "scroll", "copy-code"} <= set(reached)


def test_the_table_sorts_by_any_heading(visit, findings):
    opened = visit(findings)
    column = "[...document.querySelectorAll('#columns tbody tr')].map((row) => row.cells[{}].textContent)"
    names = opened.ask(column.format(0))
    assert sorted(names) == sorted(findings.features)
    headings = opened.page.locator("#columns th button")
    heading = headings.filter(has_text="correlation 2")
    heading.click()
    sizes = np.abs(findings.correlations[1])
    assert opened.ask(column.format(0)) == [findings.features[k] for k in np.argsort(-sizes)]
    heading.click()
    assert opened.ask(column.format(0)) == [findings.features[k] for k in np.argsort(sizes)]
    headings.first.click()
    assert opened.ask(column.format(0)) == sorted(findings.features)


def test_code_and_names_can_be_copied(visit, findings):
    opened = visit(findings)
    # Its words are written down as they change: "Copied" is there for a moment, in which we may be asleep.
    before = opened.ask(
        """(() => {
          const button = document.getElementById("copy-code");
          window.said = [];
          new MutationObserver(() => window.said.push(button.textContent)).observe(button, { childList: true });
          return button.textContent;
        })()"""
    )
    opened.page.locator("#copy-code").click()
    opened.wait_until("window.said.length >= 2")
    assert opened.ask("window.said") == ["Copied", before]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_prints_its_plots_on_white(visit, findings, scheme):
    opened = visit(findings, color_scheme=scheme)
    assert opened.page.pdf(format="A4").startswith(b"%PDF")
    for plot in ("view", "pca"):
        opened.wait_until(f"document.querySelector('#plot-{plot} img').naturalWidth > 300")
    assert opened.ask("document.documentElement.dataset.theme || 'as the system'") == "as the system"


def test_hostile_names_are_inert_and_shown(visit):
    opened = visit(hostile_findings())
    shown = opened.page.locator("body").inner_text()
    for name in HOSTILE[:8]:
        assert name in shown or name[:18] in shown, name
    for row in range(len(HOSTILE)):
        opened.page.mouse.move(*opened.place_of(row))
        opened.page.wait_for_timeout(60)
    for button in opened.page.locator("[data-group]").all():
        button.click()
    for tip in opened.page.locator("[data-tip]").all()[:60]:
        tip.dispatch_event("pointerover")
    opened.page.locator("th button").nth(1).click()
    assert opened.ask("typeof window.hacked") == "undefined"
    assert opened.ask("document.images.length") == 0
    assert opened.ask("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_ids_are_shown_as_text_on_hover(visit):
    findings = hostile_findings()
    opened = visit(findings)
    rows = [row for row, name in enumerate(findings.target.ids) if name == HOSTILE[1]]
    row = max(rows, key=lambda row: abs(findings.target.scores[row, 0]))
    opened.point_at(row, HOSTILE[1])
    assert opened.ask("typeof window.hacked") == "undefined"


def test_a_name_written_from_the_right_leaves_the_sentence_in_order(visit):
    rng = np.random.default_rng(0)
    target, background = rng.normal(size=(100, 2)) * [1, 5], rng.normal(size=(100, 2))
    model = DiscriminativePCA(1).fit(target, background=background)
    opened = visit(examine(model, target, background, target_name="\u05d6\u05d4\u05d1 1\u202e"))
    # Where on the screen the digits and the word after them are; without isolation, the digits would go to the left
    # of the name.
    name, digits, word = opened.ask(
        """(() => {
          const name = document.querySelector(".asked bdi"), after = name.nextSibling;
          const left = (from, to) => {
            const range = document.createRange();
            range.setStart(after, from);
            range.setEnd(after, to);
            return range.getBoundingClientRect().left;
          };
          const at = after.data.indexOf("100");
          return [name.getBoundingClientRect().left, left(at, at + 3), left(at + 4, at + 8)];
        })()"""
    )
    assert name < digits < word


def test_hostile_names_fit_a_phone(visit):
    opened = visit(hostile_findings(), phone=True)
    assert opened.ask("document.documentElement.scrollWidth <= innerWidth")


def test_components_that_chance_explains_fit_a_phone(visit):
    """Words beside such a component do not push its bar over the edge."""
    target, background = np.random.default_rng(0).normal(size=(2, 200, 4))
    model = DiscriminativePCA(2, shrinkage=None).fit(target, background=background)
    opened = visit(examine(model, target, background, with_path=False), phone=True)
    edges = "[document.querySelector('#strength'), ...document.querySelectorAll('.strengths .row.chance')]"
    section, *bars = opened.ask(f"{edges}.map((part) => part.getBoundingClientRect().right)")
    assert len(bars) == 2
    assert max(bars) <= section + 0.5


def test_100000_points_are_still_usable(visit):
    findings = many(100_000)
    opened = visit(findings)
    assert "random sample" in opened.page.locator("#sampled").inner_text()
    opened.page.locator("#path").focus()
    opened.page.keyboard.press("Home")
    opened.page.wait_for_selector("#plot-view[data-step='0']")
    assert len(opened.points()) == 5000


@pytest.mark.parametrize("kind", ["contrastive", "kernel", "kernel contrastive", "pca", "kernel pca", "one", "scale"])
def test_the_page_of_every_method_is_quiet(visit, kind):
    rng = np.random.default_rng(0)
    target, background = rng.normal(size=(60, 5)) * [1, 1, 1, 1, 3], rng.normal(size=(80, 5))
    model, backgrounds = {
        "contrastive": (ContrastivePCA(2), [background]),
        "kernel": (KernelDiscriminativePCA(2), [background]),
        "kernel contrastive": (KernelContrastivePCA(2), [background]),
        "pca": (DiscriminativePCA(2), []),
        "kernel pca": (KernelDiscriminativePCA(2), []),
        "one": (DiscriminativePCA(1), [background, background[:40]]),
        "scale": (DiscriminativePCA(3), [background]),
    }[kind]
    model.fit(target, background=backgrounds or None)
    labels = np.linspace(0, 1, 60) if kind == "scale" else None
    findings = examine(model, target, backgrounds or None, labels=labels)
    opened = visit(findings)
    slider = opened.page.locator("#path")
    assert slider.count() == (findings.path is not None)
    if findings.path is not None:
        before = opened.points()
        slider.focus()
        last = len(findings.path.values) - 1
        end = 0 if findings.path.chosen == last else last
        opened.page.keyboard.press("End" if end else "Home")
        opened.page.wait_for_selector(f"#plot-view[data-step='{end}']")
        assert not np.array_equal(opened.points(), before)
    opened.point_at(0, "target, row 0")


@pytest.fixture(scope="module")
def overfitted():
    """Findings of images with more pixels than rows, whose first pixels have two groups."""
    rng = np.random.default_rng(0)
    target, background = rng.normal(size=(40, 60)), rng.normal(size=(30, 60))
    target[:20, :6] += 3.0
    model = DiscriminativePCA(3, shrinkage=0.01).fit(target, background=background)
    options = {"labels": ["a"] * 20 + ["b"] * 20, "label_name": "sort", "image_shape": (6, 10)}
    return examine(model, target, background, **options), target


def test_rows_are_drawn_held_out_or_as_fitted(visit, overfitted):
    findings, _ = overfitted
    assert findings.drawn_held_out
    opened = visit(findings)
    np.testing.assert_array_equal(opened.points(), findings.target.scores[:, 0])
    assert np.var(opened.points(index=1)) > 2 * np.var(findings.backgrounds[0].fitted_scores[:, 0])
    button = opened.page.locator("#as-fitted")
    button.click()
    np.testing.assert_array_equal(opened.points(index=1), findings.backgrounds[0].fitted_scores[:, 0])
    # The slider shows rows as fitted; back at the fit they are held out again.
    opened.page.locator("#path").focus()
    opened.page.keyboard.press("End")
    assert button.get_attribute("aria-pressed") == "false"
    opened.page.locator("#path-back").click()
    opened.wait_until(
        f"Math.abs(Bokeh.documents[0].get_model_by_name('points-0').data.x[0] - {findings.target.scores[0, 0]}) < 1e-3"
    )
    assert opened.complaints == []


def test_any_two_components_are_drawn(visit, overfitted):
    findings, _ = overfitted
    opened = visit(findings)
    opened.page.select_option("#axis-x", "3")
    opened.page.select_option("#axis-y", "1")
    np.testing.assert_array_equal(opened.points("x"), findings.target.scores[:, 2])
    np.testing.assert_array_equal(opened.points("y"), findings.target.scores[:, 0])
    assert opened.ask("Bokeh.documents[0].get_model_by_name('view').below[0].axis_label") == "component 3"


def test_what_distinguishes_selected_rows_is_told_and_images_are_shown(visit, overfitted):
    findings, target = overfitted
    opened = visit(findings)
    opened.page.get_by_role("button", name="a 20").click()
    said = opened.page.locator("#distinct").inner_text()
    gaps = (target[:20].mean(axis=0) - target[20:].mean(axis=0)) / target.std(axis=0)
    most = int(np.argmax(np.abs(gaps)))
    first, gap = re.search(r": *(.*?) *\+(\d\.\d)", " ".join(said.split())).groups()
    assert first == f"column {most}"
    assert float(gap) == pytest.approx(gaps[most], abs=0.1)
    opened.point_at(0, "target, row 0")
    assert opened.page.locator("#point canvas").count() >= 1
    assert opened.page.locator(".images img").count() == 3
    assert opened.page.locator("#point").inner_text().count("sort: a") >= 1
    assert opened.complaints == []
