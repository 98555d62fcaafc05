"""Exploring data by hand: questions that are asked on a page, answers from sums that are kept.

``standout.explore`` and the command ``standout explore`` open the page. The parts here work without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from standout.explorer._engine import Engine, Explored
from standout.explorer._history import History, open_session
from standout.explorer._kept import KeptSums, inside
from standout.explorer._question import Groups, Question, RowSet, Side, blank
from standout.explorer._recipe import python
from standout.explorer._steps import applied

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

if TYPE_CHECKING:
    from standout.explorer._server import Exploration as Exploration
    from standout.explorer._steps import Step


# Shared with other packages, but not part of the public interface.
def serve(
    engine: Engine,
    first: Sequence[Step],
    *,
    save: Callable[[History, str], Path],
    command: Callable[[History], str],
    session: History | None,
    port: int,
) -> Exploration:
    """Begin to serve the page of an exploration; see `standout.explorer._page.Setting`."""
    # Loaded here: the rest of the package does without the packages that a page needs.
    from standout.explorer._page import Setting
    from standout.explorer._server import Exploration

    return Exploration(Setting(engine, first, save, command, session), port=port)
