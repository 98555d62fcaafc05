"""Run the code of the pages, and write its output and pictures into them.

Run it in a clone after a change of results: ``python docs/refresh.py [PAGE ...]``. Read the differences afterwards: the
prose around the code may have to change, too. Real data come from the folder STANDOUT_DATA.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PAGES = [
    ROOT / "README.md",
    *sorted(DOCS.glob("*.md")),
    *sorted((DOCS / "tutorials").glob("*.md")),
]
BLOCK = re.compile(
    r"^```(python|bash)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?",
    flags=re.MULTILINE | re.DOTALL,
)
DATA = re.compile(r"^<!-- data: ([\w.]+) -->$", flags=re.MULTILINE)
SCRIPT = """
import contextlib, io, json, pathlib
namespace, printed = {"__name__": "__main__"}, []
for code in json.loads(pathlib.Path("codes.json").read_text("utf-8")):
    with contextlib.redirect_stdout(io.StringIO()) as words:
        exec(code, namespace)
    printed.append(words.getvalue())
pathlib.Path("printed.json").write_text(json.dumps(printed), "utf-8")
"""


def run(words: list[str], folder: Path) -> str:
    """Run a command as a reader would, in a folder with the files of a clone."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "MPLBACKEND": "agg"}
    found = subprocess.run(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return found.stdout


def shortened(shown: str, printed: str) -> str:
    """Return the part of a long output that a page shows: some lines from the same first words on, then dots."""
    count = shown.partition("...")[0].count("\n")
    lines, first = printed.splitlines(), shown.split()[:2]
    start = next(place for place, line in enumerate(lines) if line.split()[:2] == first)
    return "\n".join([*lines[start : start + count], "..."])


def refresh(page: Path) -> None:
    """Run the blocks of a page, and replace the text after each."""
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "docs").mkdir()
        (folder / "docs" / "data").symlink_to(DOCS / "data")
        data = Path(os.environ.get("STANDOUT_DATA", ROOT.parent / "shared" / "data"))
        for file in DATA.findall(text):
            (folder / file).symlink_to(data.resolve() / file)
        codes = [code for kind, code, _ in BLOCK.findall(text) if kind == "python"]
        printed = iter(())
        if codes:
            (folder / "codes.json").write_text(json.dumps(codes), "utf-8")
            run([sys.executable, "-W", "error", "-c", SCRIPT], folder)
            printed = iter(json.loads((folder / "printed.json").read_text("utf-8")))

        def filled(match: re.Match[str]) -> str:
            kind, code, shown = match.groups()
            out = next(printed) if kind == "python" else ""
            if kind == "bash" and "pip install" not in code:
                out = run(["bash", "-e", "-c", code], folder)
            if shown is None:
                return match[0]
            out = shortened(shown, out) if "..." in shown else out
            out = "\n".join(line.rstrip() for line in out.rstrip("\n").split("\n"))
            return f"```{kind}\n{code}```\n\n```text\n{out}\n```\n"

        page.write_text(BLOCK.sub(filled, text), "utf-8")
        for picture in folder.glob("*.png"):
            (DOCS / "images" / "tutorials" / picture.name).write_bytes(picture.read_bytes())


if __name__ == "__main__":
    for one in [Path(word).resolve() for word in sys.argv[1:]] or PAGES:
        print(one.relative_to(ROOT))
        refresh(one)
    subprocess.run([sys.executable, DOCS / "images" / "start.py"], check=True)
    for script in ("evidence", "reference"):
        subprocess.run([sys.executable, DOCS / "data" / f"{script}.py"], check=True)
