"""Text into HTML: names from the data are text, whatever they contain."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from standout.report._wording import ISOLATE, RELEASE, harmless, shortened


def text(words: Any) -> str:
    """Escape words for use in HTML, in an attribute or between tags."""
    return escape(harmless(str(words)), quote=True)


def sentence(words: str) -> str:
    """Escape a sentence for use between tags, in which names are marked as `isolated`; no name can end its mark."""
    parts = [text(part) for part in re.split(f"[{ISOLATE}{RELEASE}]", words)]
    return "".join(f"<bdi>{part}</bdi>" if index % 2 else part for index, part in enumerate(parts))


def name(words: str, most: int = 40) -> str:
    """Show a name, cut if it is long, with the whole of it as its tooltip."""
    short = shortened(words, most)
    full = " ".join(words.split())
    if short == full:
        return f"<bdi>{text(short)}</bdi>"
    return f'<bdi title="{text(shortened(words, 400))}">{text(short)}</bdi>'


def tip(shown: str, explanation: str, *, focus: bool = True) -> str:
    """Show a number that explains itself on hover, on touch, and when the keyboard gets to it."""
    tab = ' tabindex="0"' if focus else ""
    return f'<span class="tip"{tab} title="{text(explanation)}">{text(shown)}</span>'


def data_block(identity: str, content: Any) -> str:
    """Put data into a page for its script to read; nothing in them can end the block or start another."""
    written = json.dumps(content, allow_nan=False, separators=(",", ":"))
    safe = written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return f'<script type="application/json" id="{identity}">{safe}</script>'
