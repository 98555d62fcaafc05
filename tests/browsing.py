"""Chromium for tests of pages, with time limits for a busy machine."""

import contextlib
import os
import shutil

import pytest

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
# Time limit in milliseconds for each action in the browser.
PATIENCE = 60_000


@contextlib.contextmanager
def chromium():
    """Start Chromium; tests that need it are skipped if it is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed; install it, for example with apt-get install chromium")
    with playwright.sync_playwright() as driver:
        # Chromium's sandbox does not run as root, as in a container.
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        args = ["--no-sandbox"] if root else []
        started = driver.chromium.launch(executable_path=CHROMIUM, args=args, timeout=PATIENCE)
        yield started
        started.close()


class Visit:
    """A page in the browser, with its console messages (complaints), errors and requests."""

    def __init__(self, browser, url, *, width=1400, height=900, phone=False, **options):
        if phone:
            width, height = 390, 844
            options |= {"has_touch": True, "is_mobile": True}
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda told: self.complaints.append(told.text) if told.type != "info" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)
        self.page.wait_for_selector("body[data-ready]")
        self.url = url

    def ask(self, script):
        return self.page.evaluate(script)

    def box(self, selector):
        return self.page.locator(selector).first.bounding_box()
