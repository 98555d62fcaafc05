"""What the tests in a browser share: Chromium, and patience with it."""

import contextlib
import os
import shutil

import pytest

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)

# Milliseconds that anything in a browser may take. A busy machine stands still for seconds: that is no failure.
PATIENCE = 180_000


@contextlib.contextmanager
def chromium():
    """Start Debian's Chromium; tests that need it are skipped where it is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here; install it, for example with apt-get install chromium")
    with playwright.sync_playwright() as driver:
        # Chromium's sandbox does not run as root, as in a container.
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        started = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if root else [], timeout=PATIENCE
        )
        yield started
        started.close()


def new_context(browser, **options):
    """Give a context whose pages may take their time."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context
