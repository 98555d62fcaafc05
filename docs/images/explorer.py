"""Make the picture of *Explore*, a screenshot of the page: ``python docs/images/explorer.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from PIL import Image

import standout

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from browsing import chromium  # noqa: E402

patients, healthy = (
    pd.read_csv(HERE.parent / "data" / f"{name}.csv").assign(people=name)
    for name in ("patients", "healthy")
)
table = pd.concat([patients, healthy]).drop(columns="id")
table["subtype"] = table["subtype"].fillna("none")
explored = standout.explore(table, "people", target="patients", browser=False, wait=False)
with chromium() as browser:
    page = browser.new_page(viewport={"width": 780, "height": 1060})
    page.goto(explored.address)
    page.wait_for_selector("body[data-ready]")
    page.select_option("#colour", "subtype")
    page.click("#test")
    page.wait_for_function(
        "/p\\s*[=<]/.test(document.querySelector('#p-value b').textContent)"
    )
    page.wait_for_timeout(1000)
    page.screenshot(path=HERE / "explorer.png")
explored.close()
picture = Image.open(HERE / "explorer.png").convert("RGB")
picture.quantize(96, dither=Image.Dither.NONE).save(HERE / "explorer.png", optimize=True)
