"""A report as a list of blocks, and its two forms: Markdown, and one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments._record import Table, Verdict


@dataclass(frozen=True)
class Heading:
    """A heading of a level, 1 to 3."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: list[str]


@dataclass(frozen=True)
class Picture:
    """A picture, by the name of its file."""

    file: str
    text: str


Block = Heading | Paragraph | Bullets | Picture | Table

# The colours are those of the pictures, which stay apart for colour-blind eyes.
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #222; }
h2 { border-top: 1px solid #ccc; margin-top: 3rem; padding-top: 1rem; }
img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0 1.5rem; }
caption { text-align: left; font-weight: 600; padding: 0.5rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
.reproduced, .better { color: #00694d; font-weight: 600; }
.not-reproduced { color: #a84a00; font-weight: 600; }
.not-judged { color: #666; }
"""


def as_markdown(blocks: Iterable[Block]) -> str:
    """Write the blocks as Markdown."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def as_html(title: str, blocks: Iterable[Block], pictures: Mapping[str, bytes]) -> str:
    """Write the blocks as one HTML file with the pictures in it."""
    body = "\n".join(_html(block, pictures) for block in blocks)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_escaped(text)}"
        case Paragraph(text):
            return _escaped(text)
        case Bullets(items):
            return "\n".join(f"- {_escaped(item)}" for item in items)
        case Picture(file, text):
            return f"![{_escaped(text)}]({file})"
        case Table(caption, header, rows):
            lines = [header, ["---"] * len(header), *rows]
            table = "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)
            return f"**{_escaped(caption)}**\n\n{table}" if caption else table


def _escaped(text: str) -> str:
    """Take from characters what Markdown would read into them."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))


def _cell(text: str) -> str:
    return text if text == "---" else _escaped(text)


def _html(block: Block, pictures: Mapping[str, bytes]) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Bullets(items):
            return "<ul>\n" + "\n".join(f"<li>{html.escape(item)}</li>" for item in items) + "\n</ul>"
        case Picture(file, text):
            data = base64.b64encode(pictures[file]).decode("ascii")
            return f'<p><img src="data:image/png;base64,{data}" alt="{html.escape(text)}"></p>'
        case Table(caption, header, rows):
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
            body = "\n".join("<tr>" + "".join(_table_cell(cell) for cell in row) + "</tr>" for row in rows)
            words = f"<caption>{html.escape(caption)}</caption>" if caption else ""
            parts = f"{words}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"
            return f'<div class="wide"><table>{parts}</table></div>'


def _table_cell(text: str) -> str:
    # A verdict may be followed by the settings in which it holds.
    verdict = next((one for one in Verdict if text == one or text.startswith(f"{one} (")), None)
    kind = f' class="{verdict.replace(" ", "-")}"' if verdict else ""
    return f"<td{kind}>{html.escape(text)}</td>"
