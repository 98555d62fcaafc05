"""A report of what a fit found: one page that explains itself, a picture, and a summary in numbers.

``page(examine(model, target, backgrounds))`` is the page, as one self-contained HTML text (needs ``standout[report]``).
"""

from standout.report._examine import examine
from standout.report._figure import draw
from standout.report._findings import Findings, Points, Stray, ViewPath
from standout.report._format import number as number
from standout.report._page import compare, page
from standout.report._store import restore, store
from standout.report._summary import summary

__all__ = [
    "Findings",
    "Points",
    "Stray",
    "ViewPath",
    "compare",
    "draw",
    "examine",
    "page",
    "restore",
    "store",
    "summary",
]

# Shared with other packages, but not part of the public interface.
from standout.report._format import shortened as shortened
