"""Exploring data by hand: questions that are asked on a page, answers from sums that are kept.

``standout.explore`` and the command ``standout explore`` open the page. The parts here work without one.
"""

from standout.explorer._engine import Engine, Explored
from standout.explorer._history import History, open_session
from standout.explorer._kept import KeptSums, inside
from standout.explorer._question import Groups, Question, RowSet, Side, applied, blank
from standout.explorer._recipe import python

__all__ = [
    "Engine",
    "Explored",
    "Groups",
    "History",
    "KeptSums",
    "Question",
    "RowSet",
    "Side",
    "applied",
    "blank",
    "inside",
    "open_session",
    "python",
]
