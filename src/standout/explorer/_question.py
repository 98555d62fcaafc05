"""What is compared with what: the question of an exploration, and the steps from one question to the next.

Nothing here knows of a browser or computes anything: a question is a record, and a step makes another one.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

import standout
from standout._messages import InvalidValueError

Mask = npt.NDArray[np.bool_]

# The methods, and the class of each. PCA has no background.
METHODS = {
    "dpca": "DiscriminativePCA",
    "cpca": "ContrastivePCA",
    "kdpca": "KernelDiscriminativePCA",
    "kcpca": "KernelContrastivePCA",
    "pca": "DiscriminativePCA",
    "kpca": "KernelDiscriminativePCA",
}
ALONE = ("pca", "kpca")
# Parameters that mean something without a background.
OF_ONE = ("n_components", "random_state", "kernel", "gamma", "degree", "kernel_params")
PICTURES = ("answer", "pca", "held")


@cache
def has(method: str, parameter: str) -> bool:
    """Tell whether a method has a parameter."""
    known = signature(getattr(standout, METHODS[method])).parameters
    return parameter in known and (method not in ALONE or parameter in OF_ONE)


# --- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowSet:
    """Some rows of a table, one bit for each row of the table.

    Attributes
    ----------
    n_rows : int
        Number of rows of the table.
    bits : bytes

    Examples
    --------
    >>> import numpy as np
    >>> from standout.explorer import RowSet
    >>> first, last = RowSet.of(np.arange(9) < 4), RowSet.numbered([8], 9)
    >>> (first | last).count, (first - first).count, (~last).count
    (5, 0, 8)
    """

    n_rows: int
    bits: bytes = field(repr=False)

    @classmethod
    def of(cls, mask: Mask) -> RowSet:
        """Take the rows for which an array is true."""
        return cls(len(mask), np.packbits(mask).tobytes())

    @classmethod
    def numbered(cls, numbers: Sequence[int] | npt.NDArray[np.intp], n_rows: int) -> RowSet:
        """Take rows by their numbers."""
        mask = np.zeros(n_rows, dtype=bool)
        mask[np.asarray(numbers, dtype=np.intp)] = True
        return cls.of(mask)

    @property
    def mask(self) -> Mask:
        """Whether each row is one of them."""
        return np.unpackbits(np.frombuffer(self.bits, dtype=np.uint8), count=self.n_rows).view(bool)

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(np.count_nonzero(self.mask))

    def __or__(self, other: RowSet) -> RowSet:
        return RowSet.of(self.mask | other.mask)

    def __and__(self, other: RowSet) -> RowSet:
        return RowSet.of(self.mask & other.mask)

    def __sub__(self, other: RowSet) -> RowSet:
        return RowSet.of(self.mask & ~other.mask)

    def __invert__(self) -> RowSet:
        return RowSet.of(~self.mask)

    def written(self) -> str:
        """Give the rows as a short text."""
        return base64.b64encode(zlib.compress(self.bits, 6)).decode()

    @classmethod
    def read(cls, text: str, n_rows: int) -> RowSet:
        """Read what `written` gave."""
        size = -(-n_rows // 8)
        try:
            bits = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
        except zlib.error:
            bits = b""
        if len(bits) != size:
            raise ValueError
        return cls.of(cls(n_rows, bits).mask)


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups that the rows of a table are in: those of a column, or the files that they came from.

    Attributes
    ----------
    names : tuple of str
    codes : ndarray of shape (n_rows,)
        The number of each row's group.

    Examples
    --------
    >>> from standout.explorer import Groups
    >>> Groups.of(["well", "ill", "well"]).rows(["well"]).count
    2
    """

    names: tuple[str, ...]
    codes: npt.NDArray[np.intp]
    _known: dict[tuple[str, ...], RowSet] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, words: Sequence[Any]) -> Groups:
        """Number groups in the order of their names."""
        names, codes = np.unique(np.asarray([str(word) for word in words], dtype=object), return_inverse=True)
        return cls(tuple(names.tolist()), codes.ravel())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def rows(self, names: Sequence[str]) -> RowSet:
        """Give the rows of some groups."""
        key = tuple(names)
        if key not in self._known:
            unknown = [name for name in names if name not in self.names]
            if unknown:
                problem = "there is no group {name!r}"
                raise InvalidValueError(problem, name=unknown[0], advice="Choose among the groups of the table.")
            self._known[key] = RowSet.of(np.isin(self.codes, [self.names.index(name) for name in names]))
        return self._known[key]


# --- the question -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """The target or a background: whole groups, rows that were chosen by hand, or all rows that are not the target.

    Attributes
    ----------
    groups : tuple of str
    rows : RowSet or None
        Rows chosen by hand.
    rest : bool
        Whether it is all rows that are not the target.
    called : str
        What it is called, if not by its groups.

    Examples
    --------
    >>> from standout.explorer import Side
    >>> Side(rest=True).name
    'all other rows'
    """

    groups: tuple[str, ...] = ()
    rows: RowSet | None = None
    rest: bool = False
    called: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """What it is called."""
        if self.called:
            return self.called
        return "all other rows" if self.rest else "chosen rows" if self.rows is not None else " + ".join(self.groups)

    @property
    def part(self) -> str:
        """What some of its rows are called."""
        return self.name if self.rows is not None else f"part of {self.name}"


@dataclass(frozen=True)
class Question:
    """What is compared with what, and how.

    Attributes
    ----------
    target : Side
    backgrounds : tuple of Side
    left_out : RowSet or None
        Rows that are on no side.
    method : str
        A key of `METHODS`.
    parameters : tuple of (name, value)
        Parameters that were set, sorted by name.

    Examples
    --------
    >>> from standout.explorer import Groups, Question, Side
    >>> question = Question(Side(groups=("ill",)), (Side(rest=True),))
    >>> [rows.count for rows in question.rows(Groups.of(["well", "ill", "well"]))]
    [1, 2]
    """

    target: Side
    backgrounds: tuple[Side, ...] = ()
    left_out: RowSet | None = None
    method: str = "dpca"
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def compared(self) -> tuple[Side, ...]:
        """The backgrounds that the method uses."""
        return () if self.method in ALONE else self.backgrounds

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the method's class that were set."""
        given = {name: value for name, value in self.parameters if has(self.method, name)}
        weights = given.get("background_weights")
        fitting = len(self.compared) if weights is None or isinstance(weights, str) else len(weights)
        if "background_weights" in given and (not self.compared or fitting != len(self.compared)):
            # They were given for other backgrounds.
            del given["background_weights"]
        return given

    def rows(self, groups: Groups) -> list[RowSet]:
        """Give the rows of the target and of each background that is used."""
        return [_rows_of(side, self, groups) for side in (self.target, *self.compared)]


@dataclass(frozen=True)
class View:
    """What the picture shows.

    Attributes
    ----------
    picture : {"answer", "pca", "held"}
        The scores of the answer, those of PCA of all rows, or those of an earlier question.
    held : Question or None
    x, y : int
        The components along the axes, from 0.
    colour : str
        "role", "group", "label", or "column " and the name of a column.
    """

    picture: str = "answer"
    held: Question | None = None
    x: int = 0
    y: int = 1
    colour: str = "role"


@dataclass(frozen=True)
class State:
    """A question and the picture that goes with it.

    Attributes
    ----------
    question : Question
    view : View
    """

    question: Question
    view: View = View()

    @property
    def pictured(self) -> Question:
        """The question whose scores are drawn."""
        if self.view.picture == "held" and self.view.held is not None:
            return self.view.held
        if self.view.picture == "pca":
            everything = Side(rest=True)
            return replace(self.question, target=everything, backgrounds=(), method="pca", parameters=self._few)
        return self.question

    @property
    def _few(self) -> tuple[tuple[str, Any], ...]:
        return tuple(pair for pair in self.question.parameters if pair[0] == "n_components")


def blank(groups: Groups) -> State:
    """What is asked before anything has been chosen? PCA of all rows.

    Parameters
    ----------
    groups : Groups

    Returns
    -------
    State

    Examples
    --------
    >>> from standout.explorer import Groups, blank
    >>> blank(Groups.of(["well", "ill"])).question.target.name
    'all rows'
    """
    return State(Question(Side(groups=groups.names, called="all rows")))


def _rows_of(side: Side, question: Question, groups: Groups) -> RowSet:
    if side.rest:
        # The target of PCA's picture is all rows.
        found = RowSet.of(np.ones(groups.n_rows, dtype=bool))
        if side is not question.target:
            found -= _rows_of(question.target, question, groups)
    else:
        found = side.rows if side.rows is not None else groups.rows(side.groups)
    return found if question.left_out is None else found - question.left_out


# --- steps ------------------------------------------------------------------------------------------------------------

Step = Mapping[str, Any]


def applied(state: State, step: Step, groups: Groups) -> State:
    """Which question does a step lead to?

    Parameters
    ----------
    state : State
    step : mapping
        ``do`` says what: "choose" (groups of a side), "rows" (rows chosen by hand are made a side, added to it, taken
        away, or all that is kept of it), "rest" (the background is all rows that are not the target), "swap", "leave"
        (rows are left out), "restore", "method", "set" (a parameter) or "view".
    groups : Groups

    Returns
    -------
    State

    Examples
    --------
    >>> from standout.explorer import Groups, applied, blank
    >>> groups = Groups.of(["ill", "ill", "well", "well", "well"])
    >>> state = applied(blank(groups), {"do": "choose", "side": "target", "groups": ["ill"]}, groups)
    >>> [rows.count for rows in state.question.rows(groups)]
    [2, 3]
    """
    known = {
        "choose": _choose,
        "rows": _choose_rows,
        "rest": _take_rest,
        "swap": _swap,
        "leave": _leave_out,
        "restore": _restore,
        "method": _set_method,
        "set": _set_parameter,
    }
    try:
        if step["do"] == "view":
            return replace(state, view=_viewed(state, step))
        after = known[step["do"]](state.question, step, groups)
        if not after.backgrounds and state.question.target.groups == groups.names != after.target.groups:
            # The first target that is chosen is compared with all other rows.
            after = replace(after, backgrounds=(Side(rest=True),))
        return replace(state, question=after)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidValueError):
            raise
        problem = "{step} is no step of an exploration"
        raise InvalidValueError(problem, step=str(step)[:80], advice="Check the session file.") from None


def _choose(question: Question, step: Step, groups: Groups) -> Question:
    """Make groups the target, or each of them a background; they leave the other side."""
    chosen = tuple(str(name) for name in step["groups"])
    rows = groups.rows(chosen)
    if step["side"] == "target":
        if not chosen:
            raise InvalidValueError("the target has no rows", advice="Choose a group, or draw a lasso.")
        return replace(
            question, target=Side(groups=chosen), backgrounds=_without(question.backgrounds, rows, question, groups)
        )
    backgrounds = tuple(Side(groups=(name,)) for name in chosen)
    return replace(_leaving_target(question, rows, groups), backgrounds=backgrounds)


def _choose_rows(question: Question, step: Step, groups: Groups) -> Question:
    """Make rows a side, add them to it, or take them away from it; they leave the other side."""
    rows = step["rows"] if isinstance(step["rows"], RowSet) else RowSet.read(step["rows"], groups.n_rows)
    how = step["how"]
    if how not in ("set", "add", "remove", "keep"):
        raise ValueError
    if how == "keep":
        rows, how = ~rows, "remove"
    if step["side"] == "target":
        side = question.target
        before = _rows_of(side, replace(question, left_out=None), groups)
        after = rows if how == "set" else before | rows if how == "add" else before - rows
        _require_some(after)
        kept = question.backgrounds
        if how != "remove":
            kept = _without(kept, rows, question, groups)
        called = {"set": "", "add": f"{side.name} + chosen rows", "remove": side.part}[how]
        if how == "add" and side.rows is not None:
            called = side.name
        return replace(question, target=Side(rows=after, called=called), backgrounds=kept)
    if how == "remove":
        return replace(question, backgrounds=_without(question.backgrounds, rows, question, groups, of_rest=True))
    moved = _leaving_target(question, rows, groups)
    if how == "set":
        return replace(moved, backgrounds=(Side(rows=rows, called="other chosen rows"),))
    *others, last = question.backgrounds or (None,)
    if last is not None and last.rest:
        # All other rows are in it already, and those of the target have just come.
        return moved
    if last is not None and last.rows is not None:
        return replace(moved, backgrounds=(*others, replace(last, rows=last.rows | rows)))
    return replace(moved, backgrounds=(*question.backgrounds, Side(rows=rows, called="other chosen rows")))


def _leaving_target(question: Question, rows: RowSet, groups: Groups) -> Question:
    target = _without((question.target,), rows, question, groups)
    if not target:
        raise InvalidValueError("no row of the target would be left", advice="Choose another target first.")
    return replace(question, target=target[0])


def _without(
    sides: Sequence[Side], rows: RowSet, question: Question, groups: Groups, *, of_rest: bool = False
) -> tuple[Side, ...]:
    """Take rows away from sides; whole groups stay groups, and sides without rows are dropped."""
    kept = []
    for side in sides:
        if side.rest and not of_rest:
            kept.append(side)
            continue
        mine = _rows_of(side, replace(question, left_out=None), groups)
        left = mine - rows
        if left == mine:
            kept.append(side)
        elif left.count:
            names = tuple(name for name in side.groups if not (groups.rows((name,)) & rows).count)
            whole = bool(names) and groups.rows(names) == left
            kept.append(Side(groups=names) if whole else Side(rows=left, called=side.part))
    return tuple(kept)


def _take_rest(question: Question, step: Step, groups: Groups) -> Question:
    return replace(question, backgrounds=(Side(rest=True),))


def _swap(question: Question, step: Step, groups: Groups) -> Question:
    if len(question.backgrounds) != 1:
        n_backgrounds = len(question.backgrounds)
        problem = "target and background change places where there is one background, but there are {n_backgrounds}"
        raise InvalidValueError(problem, n_backgrounds=n_backgrounds, advice="Choose one background.")
    other = question.backgrounds[0]
    if other.rest:
        found = _rows_of(other, replace(question, left_out=None), groups)
        _require_some(found)
        other = Side(rows=found, called=other.name)
        return replace(question, target=other, backgrounds=(Side(rest=True),))
    return replace(question, target=other, backgrounds=(question.target,))


def _leave_out(question: Question, step: Step, groups: Groups) -> Question:
    numbers = [int(number) for number in step["rows"]]
    if not all(0 <= number < groups.n_rows for number in numbers):
        raise ValueError
    rows = RowSet.numbered(numbers, groups.n_rows)
    return replace(question, left_out=rows if question.left_out is None else question.left_out | rows)


def _restore(question: Question, step: Step, groups: Groups) -> Question:
    return replace(question, left_out=None)


def _set_method(question: Question, step: Step, groups: Groups) -> Question:
    if step["method"] not in METHODS:
        raise ValueError
    return replace(question, method=step["method"])


def _set_parameter(question: Question, step: Step, groups: Groups) -> Question:
    name, value = step["name"], step["value"]
    if not any(has(method, name) for method in METHODS):
        raise ValueError
    parameters = {**dict(question.parameters), name: _frozen(value)}
    return replace(question, parameters=tuple(sorted(parameters.items())))


def _frozen(value: Any) -> Any:
    """Give a value that can be compared and kept: lists as tuples."""
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    return tuple(value) if isinstance(value, list | tuple) else value


def _viewed(state: State, step: Step) -> View:
    given = {name: step[name] for name in ("picture", "x", "y", "colour") if name in step}
    if given.get("picture", "answer") not in PICTURES or not all(int(given.get(axis, 0)) >= 0 for axis in "xy"):
        raise ValueError
    view = replace(state.view, **given)
    if "picture" in given:
        view = replace(view, held=state.pictured if given["picture"] == "held" else None)
    return view


def _require_some(rows: RowSet) -> None:
    if not rows.count:
        raise InvalidValueError("no row is chosen", advice="Draw the lasso around some points.")
