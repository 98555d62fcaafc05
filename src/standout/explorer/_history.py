"""The steps of an exploration and the way back, and the session file that keeps them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from standout import __version__
from standout._messages import FileError, InvalidValueError, MissingFileError, shown
from standout._writing import write_whole
from standout.explorer._question import Groups, RowSet, State, blank
from standout.explorer._steps import Step, applied

KIND = "exploration"


class History:
    """The steps of an exploration, and where it is among them.

    The first steps, those that the options of the command stand for, are not undone.

    Attributes
    ----------
    groups : Groups
    steps : list of dict
        All steps, those that were undone too.
    place : int
        Number of steps that are not undone.
    n_first : int
        Number of steps at the start that are not undone.

    Examples
    --------
    >>> from standout.explorer import Groups, History
    >>> history = History(Groups.of(["ill", "ill", "well", "well"]))
    >>> _ = history.take({"do": "choose", "side": "target", "groups": ["ill"]})
    >>> history.state.question.target.name
    'ill'
    >>> history.undo()
    True
    >>> history.state.question.target.name
    'all rows'
    """

    def __init__(self, groups: Groups, first: Sequence[Step] = ()) -> None:
        self.groups = groups
        self.steps: list[Step] = []
        self._states = [blank(groups)]
        self.place = self.n_first = 0
        for step in first:
            self.take(step)
        self.n_first = self.place

    @property
    def state(self) -> State:
        """The question now."""
        return self._states[self.place]

    @property
    def states(self) -> list[State]:
        """The questions from the start to now: one more than there are steps."""
        return self._states[: self.place + 1]

    def take(self, step: Step) -> State:
        """Take a step; steps that were undone are forgotten. A step of the same slider replaces the one before."""
        after = applied(self.state, step, self.groups)
        place = self.place
        before = self.steps[place - 1] if place > self.n_first else None
        if before is not None and _is_same_slider(before, step):
            place -= 1
        self.steps[place:] = [step]
        self._states[place + 1 :] = [after]
        self.place = place + 1
        return after

    def undo(self) -> bool:
        """Go back by one step, if there is one."""
        moved = self.place > self.n_first
        self.place -= moved
        return moved

    def redo(self) -> bool:
        """Go forward by one step, if one was undone."""
        moved = self.place < len(self.steps)
        self.place += moved
        return moved

    def follow(self, other: History) -> None:
        """Take over the steps of another history of the same rows."""
        self.steps, self._states = list(other.steps), list(other._states)
        self.place, self.n_first = other.place, other.n_first

    def written(self, columns: Sequence[str]) -> str:
        """Give the session as JSON; names of columns and numbers of rows tell whether data are those of the session."""
        steps = [_plain(step) for step in self.steps]
        counts = np.bincount(self.groups.codes, minlength=len(self.groups.names)).tolist()
        record = {
            "standout": __version__,
            "kind": KIND,
            "groups": dict(zip(self.groups.names, counts, strict=True)),
            "columns": _digest(columns),
            "n_columns": len(columns),
            "steps": steps,
            "place": self.place,
            "n_first": self.n_first,
        }
        return json.dumps(record, indent=1, ensure_ascii=False) + "\n"

    def save(self, path: Path, columns: Sequence[str]) -> None:
        """Write the session to a file, whole; an earlier session is replaced, and nothing else."""
        if path.exists() and not is_session(path):
            problem, advice = "{path} is no session, and is not replaced", "Choose another name."
            raise FileError(problem, path=shown(path), advice=advice)
        write_whole(path, self.written(columns).encode())


def _is_same_slider(before: Step, step: Step) -> bool:
    return before["do"] == step["do"] == "set" and before["name"] == step["name"]


def _plain(step: Step) -> dict[str, Any]:
    return {name: value.written() if isinstance(value, RowSet) else value for name, value in step.items()}


def _digest(columns: Sequence[str]) -> int:
    return zlib.crc32("\n".join(columns).encode("utf-8", "surrogatepass"))


def is_session(path: Path) -> bool:
    """Tell whether a file is a session of an exploration."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["kind"] == KIND
    except (OSError, ValueError, TypeError, KeyError):
        return False


def open_session(path: Path, groups: Groups, columns: Sequence[str]) -> History:
    """Which steps are in this file?

    Parameters
    ----------
    path : Path
        Written by `History.save`.
    groups : Groups
        Of the rows of the data; a session of other data is refused.
    columns : sequence of str
        Names of the columns of the data.

    Returns
    -------
    History

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from standout.explorer import Groups, History, open_session
    >>> groups = Groups.of(["ill", "ill", "well", "well"])
    >>> history = History(groups, [{"do": "rest"}])
    >>> with TemporaryDirectory() as folder:
    ...     history.save(Path(folder) / "session.json", ["x0"])
    ...     open_session(Path(folder) / "session.json", groups, ["x0"]).steps
    [{'do': 'rest'}]
    """
    if not path.is_file():
        raise MissingFileError("there is no file {path}", path=shown(path), advice="Check the name of the session.")
    if not is_session(path):
        advice = "Give a file that was saved on the page of standout explore."
        raise FileError("{path} is no session of an exploration", path=shown(path), advice=advice)
    record = json.loads(path.read_text(encoding="utf-8"))
    counts = np.bincount(groups.codes, minlength=len(groups.names)).tolist()
    try:
        if record["groups"] != dict(zip(groups.names, counts, strict=True)) or record["columns"] != _digest(columns):
            raise FileError(
                "{path} is of other data: {given} rows in {n_columns} columns, and these have {n_rows} in {limit}, "
                "or names differ",
                path=shown(path),
                given=sum(record["groups"].values()),
                n_columns=record["n_columns"],
                n_rows=groups.n_rows,
                limit=len(columns),
                advice="Open it with the files and options that it was saved with.",
            )
        history = History(groups)
        for step in record["steps"]:
            kept = dict(step)
            if step.get("do") == "rows":
                kept["rows"] = RowSet.read(step["rows"], groups.n_rows)
            # Every step is kept, also those of one slider that follow each other.
            history.n_first = history.place
            history.take(kept)
        history.n_first = int(record["n_first"])
        history.place = int(record["place"])
        if not 0 <= history.n_first <= history.place <= len(history.steps):
            raise ValueError
        return history
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, FileError | InvalidValueError):
            raise
        problem, advice = "{path} is damaged", "Use another copy of the session."
        raise FileError(problem, path=shown(path), advice=advice) from None
