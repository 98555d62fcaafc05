"""The steps from one question of an exploration to the next.

Nothing here knows of a browser or computes anything: a question is a record, and a step makes another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from standout._messages import InvalidValueError
from standout.explorer._question import METHODS, Groups, Question, RowSet, Side, State, View, has, rows_of

PICTURES = ("answer", "pca", "held")

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
        before = rows_of(side, replace(question, left_out=None), groups)
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
        mine = rows_of(side, replace(question, left_out=None), groups)
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
        found = rows_of(other, replace(question, left_out=None), groups)
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
