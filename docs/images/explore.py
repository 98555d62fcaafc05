"""Make the pictures of the page *Exploring by hand* again, in Chromium: ``python docs/images/explore.py``."""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from browsing import chromium, new_context  # noqa: E402
from exploring import PATIENTS, Visit, serving  # noqa: E402


def kept(page: object, name: str) -> None:
    """Keep a picture of the page, in few colours."""
    path = HERE / f"explore-{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


with chromium() as browser, tempfile.TemporaryDirectory() as folder:
    context = new_context(browser, viewport={"width": 1280, "height": 900})
    with serving(*PATIENTS, folder=folder) as (_, address):
        visit = Visit(context, address)
        page = visit.page
        visit.after(lambda: page.select_option("#colour", "label"))
        page.get_by_text("narrows it").click()
        box = page.locator("#plot").bounding_box()
        x, y = box["x"] + 0.76 * box["width"], box["y"] + 0.45 * box["height"]
        page.mouse.move(x + 0.2 * box["width"], y)
        page.mouse.down()
        for step in range(1, 30):
            angle = 2 * math.pi * step / 30
            page.mouse.move(
                x + 0.2 * box["width"] * math.cos(angle),
                y + 0.38 * box["height"] * math.sin(angle),
            )
            page.wait_for_timeout(30)
        page.wait_for_timeout(1500)
        kept(page, "lasso")
        page.mouse.up()
    with serving("--demo", folder=folder) as (_, address):
        visit = Visit(context, address)
        visit.page.locator("#thumbnails").check()
        visit.after(lambda: visit.drag("#slider-shrinkage", 0.35))
        visit.page.wait_for_timeout(1500)
        kept(visit.page, "images")
