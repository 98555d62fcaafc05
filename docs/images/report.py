"""Make the picture of the report for *Read and publish a report*: ``python docs/images/report.py``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

from standout.cli import main

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from browsing import chromium  # noqa: E402

DATA = HERE.parent / "data"
with tempfile.TemporaryDirectory() as folder, chromium() as browser:
    result = Path(folder, "result")
    words = ["fit", str(DATA / "patients.csv"), "--background", str(DATA / "healthy.csv")]
    words += [
        "--id-column",
        "id",
        "--label-column",
        "subtype",
        "--quiet",
        "-o",
        str(result),
    ]
    main(words)
    page = browser.new_page(viewport={"width": 1000, "height": 980})
    page.goto((result / "report.html").as_uri())
    page.wait_for_selector("body[data-ready]")
    page.screenshot(path=HERE / "report-top.png")
picture = Image.open(HERE / "report-top.png").convert("RGB")
picture.quantize(64, dither=Image.Dither.NONE).save(HERE / "report-top.png", optimize=True)
