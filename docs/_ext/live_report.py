"""The report of *Start here*, made anew with every build, so that the page can link to a real one."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from standout.cli import main

DATA = Path(__file__).parents[1] / "data"
# Beside report.html, what the page on the report shows.
SHOWN = ("report.html", "figure.png", "summary.json")


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result")
        words = [
            "fit",
            str(DATA / "patients.csv"),
            "--background",
            str(DATA / "healthy.csv"),
        ]
        words += [
            "--id-column",
            "id",
            "--label-column",
            "subtype",
            "--quiet",
            "-o",
            str(result),
        ]
        if main(words) != 0:
            raise ExtensionError("the example report could not be made")
        place = Path(app.outdir, "example")
        place.mkdir(exist_ok=True)
        for name in SHOWN:
            shutil.copy(result / name, place / name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the report when everything else is built."""
    app.connect("build-finished", _write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
