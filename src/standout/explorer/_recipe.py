"""The steps of an exploration as a program: Python code that gives the same answer, and words for each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from standout.explorer._history import History
from standout.explorer._question import METHODS, Groups, Question, State, View
from standout.explorer._steps import Step

# Beyond so many rows, kernels get so many landmarks: an exact answer would take seconds.
FEW_KERNEL_ROWS, LANDMARKS = 400, 200
# Row numbers that are written out in the words of a step.
MOST_NUMBERS = 8
WORDS_OF_METHODS = {
    "dpca": "discriminative PCA",
    "cpca": "contrastive PCA",
    "kdpca": "kernel discriminative PCA",
    "kcpca": "kernel contrastive PCA",
    "pca": "PCA",
    "kpca": "kernel PCA",
}


@dataclass(frozen=True)
class Line:
    """A line of code.

    Attributes
    ----------
    text : str
    sets, uses : frozenset of str
        The variables that it sets and uses, by which lines without effect are found.
    """

    text: str
    sets: frozenset[str]
    uses: frozenset[str]


def _line(text: str, sets: str, uses: str = "") -> Line:
    return Line(text, frozenset(sets.split()), frozenset(uses.split()))


def python(history: History, head: str, variables: dict[str, str] | None = None, *, sides: bool = False) -> str:
    """Which code gives the answer of this exploration?

    Parameters
    ----------
    history : History
    head : str
        Code that gives ``X``, an array with all rows, and ``groups``, an array with the name of each row's group.
    variables : dict of str to str, default=None
        For data larger than memory: the variables of `head` that hold the groups.
    sides : bool, default=False
        End with the rows of the sides, ``target`` and ``background`` (``background_1`` ... for several), and not with
        the fit.

    Returns
    -------
    str
        Code that ends with ``model``, the fitted estimator. Steps that have no effect on it are left out.

    Examples
    --------
    >>> from standout.explorer import Groups, History, python
    >>> history = History(Groups.of(["ill", "ill", "well", "well"]))
    >>> _ = history.take({"do": "choose", "side": "target", "groups": ["well"]})
    >>> _ = history.take({"do": "choose", "side": "target", "groups": ["ill"]})
    >>> _ = history.take({"do": "rest"})
    >>> print(python(history, "X, groups = ..."))
    import numpy as np
    from standout import DiscriminativePCA
    <BLANKLINE>
    X, groups = ...
    target = np.isin(groups, ['ill'])
    backgrounds = [~target]
    model = DiscriminativePCA().fit(X[target], background=[X[rows] for rows in backgrounds])
    """
    if variables is not None:
        return head if sides else _by_groups(history, head, variables)
    lines = [
        _line("left_out = np.zeros(len(X), dtype=bool)", "left_out"),
        _line("target = np.ones(len(X), dtype=bool)", "target"),
        _line("backgrounds = []", "backgrounds"),
    ]
    for step, before, after in zip(history.steps, history.states, history.states[1:], strict=False):
        lines += _lines(step, before, after, history.groups)
    lines.append(_chosen(history.state.question) if sides else _fitted("model", history.state.question, history.groups))
    kept = _with_effect(lines, "sides" if sides else "model")
    code = "\n".join(line.text for line in kept)
    classes = sorted({name for name in METHODS.values() if f"{name}(" in code})
    imports = ["import numpy as np", *([f"from standout import {', '.join(classes)}"] if classes else [])]
    imports += ["from standout.explorer import inside"] if "inside(" in code else []
    return "\n".join([*imports, "", head, code])


def _by_groups(history: History, head: str, variables: dict[str, str]) -> str:
    """Write the fit of whole groups, each of which is a dataset."""
    question = history.state.question
    others = tuple(name for name in history.groups.names if name not in question.target.groups)
    sides = [side.groups or others for side in (question.target, *question.compared)]
    if any(len(names) != 1 for names in sides):
        return f"{head}\n# A side of several groups is one dataset: choose its rows by where= in scan."
    target, *backgrounds = [variables[names[0]] for names in sides]
    given = ", ".join(f"{name}={_value(value)}" for name, value in parameters(question, history.groups).items())
    against = f", background=[{', '.join(backgrounds)}]" if backgrounds else ""
    method = METHODS[question.method]
    return f"{head}\nfrom standout import {method}\nmodel = {method}({given}).fit({target}{against})"


def _lines(step: Step, before: State, after: State, groups: Groups) -> list[Line]:
    """Write a step as code."""
    what, question = step["do"], after.question
    lines: list[Line] = []
    if what == "choose":
        chosen = f"np.isin(groups, {list(step['groups'])!r})"
        if step["side"] == "target":
            lines.append(_line(f"target = {chosen}", "target"))
            lines += _left_backgrounds(before, after, "target")
        else:
            if before.question.target != question.target:
                lines.append(_line(f"target = target & ~{chosen}", "target", "target"))
            names = list(step["groups"])
            lines.append(_line(f"backgrounds = [groups == name for name in {names!r}]", "backgrounds"))
    elif what == "rows":
        lines += _lines_of_rows(step, before, after, groups)
    elif what == "swap" and not before.question.backgrounds[0].rest:
        lines.append(
            _line("target, backgrounds = backgrounds[0], [target]", "target backgrounds", "target backgrounds")
        )
    elif what == "swap":
        lines.append(_line("target = ~target", "target", "target"))
    elif what == "leave":
        lines.append(_line(f"left_out[{list(step['rows'])}] = True", "left_out", "left_out"))
    elif what == "restore":
        lines.append(_line("left_out = np.zeros(len(X), dtype=bool)", "left_out"))
    elif what == "view" and after.view.picture == "held" and "picture" in step:
        lines.append(_fitted("held", before.pictured, groups, everything=_shows_all(before)))
    if any(side.rest for side in question.backgrounds) and (before.question.target, before.question.backgrounds) != (
        question.target,
        question.backgrounds,
    ):
        lines.append(_line("backgrounds = [~target]", "backgrounds", "target"))
    return lines


def _lines_of_rows(step: Step, before: State, after: State, groups: Groups) -> list[Line]:
    """Write rows that were chosen by hand as code: a lasso in a picture, or row numbers."""
    lines: list[Line] = []
    if step.get("polygon") is not None:
        view: View = before.view
        if view.picture == "held":
            model, uses = "held", "held"
        else:
            model, uses = "model", "model"
            lines.append(_fitted("model", before.pictured, groups, everything=_shows_all(before)))
        corners = ", ".join(f"({x!r}, {y!r})" for x, y in step["polygon"])
        axes = [view.x, view.y]
        lines.append(_line(f"chosen = inside({model}.transform(X)[:, {axes}], [{corners}])", "chosen", uses))
    else:
        numbers = step["rows"].mask.nonzero()[0].tolist()
        lines.append(_line(f"chosen = np.isin(np.arange(len(X)), {numbers})", "chosen"))
    how = step["how"]
    if step["side"] == "target":
        made = {"set": "chosen", "add": "target | chosen", "remove": "target & ~chosen", "keep": "target & chosen"}[how]
        lines.append(_line(f"target = {made}", "target", "chosen" if how == "set" else "chosen target"))
        return lines + (_left_backgrounds(before, after, "chosen") if how in ("set", "add") else [])
    if how in ("remove", "keep"):
        return lines + _left_backgrounds(before, after, "chosen" if how == "remove" else "~chosen")
    if before.question.target != after.question.target:
        lines.append(_line("target = target & ~chosen", "target", "target chosen"))
    if how == "set":
        return [*lines, _line("backgrounds = [chosen]", "backgrounds", "chosen")]
    added = len(after.question.backgrounds) > len(before.question.backgrounds)
    if added:
        lines.append(_line("backgrounds = [*backgrounds, chosen]", "backgrounds", "backgrounds chosen"))
    elif after.question.backgrounds != before.question.backgrounds:
        made = "backgrounds = [*backgrounds[:-1], backgrounds[-1] | chosen]"
        lines.append(_line(made, "backgrounds", "backgrounds chosen"))
    return lines


def _left_backgrounds(before: State, after: State, taken: str) -> list[Line]:
    """Take rows away from the backgrounds that had them; one without rows is dropped."""
    if before.question.backgrounds == after.question.backgrounds:
        return []
    left = taken[1:] if taken.startswith("~") else f"~{taken}"
    lines = [
        _line(
            f"backgrounds = [rows & {left} for rows in backgrounds]", "backgrounds", f"backgrounds {taken.strip('~')}"
        ),
    ]
    if len(after.question.backgrounds) < len(before.question.backgrounds):
        text = "backgrounds = [rows for rows in backgrounds if rows.any()]"
        lines.append(_line(text, "backgrounds", "backgrounds"))
    return lines


def _shows_all(state: State) -> bool:
    return state.view.picture == "pca"


def _fitted(variable: str, question: Question, groups: Groups, *, everything: bool = False) -> Line:
    """Write the fit of a question; PCA's picture is fitted to all rows."""
    left = question.left_out is not None
    kept = " & ~left_out" if left else ""
    target = ("~left_out" if left else ":") if everything else f"target{kept}"
    call = f"fit(X[{target}]"
    uses = ["left_out"] if left else []
    uses += [] if everything else ["target"]
    if question.compared:
        call += f", background=[X[rows{kept}] for rows in backgrounds]"
        uses.append("backgrounds")
    given = ", ".join(f"{name}={_value(value)}" for name, value in parameters(question, groups).items())
    return _line(f"{variable} = {METHODS[question.method]}({given}).{call})", variable, " ".join(uses))


def _chosen(question: Question) -> Line:
    """Write the rows of the sides."""
    kept = "" if question.left_out is None else " & ~left_out"
    uses = f"target{' left_out' if kept else ''}"
    n_backgrounds = len(question.compared)
    if not n_backgrounds:
        return _line(f"target = X[target{kept}]", "sides", uses)
    names = ["background"] if n_backgrounds == 1 else [f"background_{k + 1}" for k in range(n_backgrounds)]
    made = f"{', '.join(names)}{',' if n_backgrounds == 1 else ''} = (X[rows{kept}] for rows in backgrounds)"
    return _line(f"{made}\ntarget = X[target{kept}]", "sides", f"{uses} backgrounds")


def parameters(question: Question, groups: Groups) -> dict[str, Any]:
    """Give the parameters of the estimator of a question: those that were set, and those that keep kernels quick."""
    found = question.settings
    if found.get("kernel_params") is not None:
        found["kernel_params"] = dict(found["kernel_params"])
    if question.method.startswith("k") and sum(rows.count for rows in question.rows(groups)) > FEW_KERNEL_ROWS:
        found |= {"approximation": "pivoted", "rank": LANDMARKS}
    return found


def _value(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)


def _with_effect(lines: Sequence[Line], wanted: str) -> list[Line]:
    """Leave out the lines on which a variable does not depend."""
    live, kept = {wanted}, []
    for line in reversed(lines):
        if line.sets & live:
            live = (live - line.sets) | line.uses
            kept.append(line)
    return kept[::-1]


def words(step: Step) -> str:
    """Say what a step does, in a few words."""
    what = step["do"]
    side = f"the {step.get('side', '')}"
    if what == "choose":
        chosen = ", ".join(step["groups"]) or "nothing"
        return f"{chosen}: {side}" if step["side"] == "target" or len(step["groups"]) < 2 else f"{chosen}: backgrounds"
    if what == "rows":
        rows = f"{step['rows'].count:,} rows"
        made = {
            "set": f"{rows}: {side}",
            "add": f"{rows} added to {side}",
            "remove": f"{rows} taken from {side}",
            "keep": f"{side} narrowed by a lasso",
        }
        return made[step["how"]]
    if what == "leave":
        numbers = [str(number) for number in step["rows"]]
        if len(numbers) > MOST_NUMBERS:
            return f"{len(numbers)} rows left out"
        return f"row{'s' if len(numbers) > 1 else ''} {', '.join(numbers)} left out"
    if what == "set":
        return f"{step['name'].replace('_', ' ')} {_value(step['value'])}"
    if what == "view":
        return "another picture" if "picture" in step else "colours" if "colour" in step else "other axes"
    if what == "method":
        return WORDS_OF_METHODS[step["method"]]
    return {
        "rest": "all other rows: the background",
        "swap": "target and background change places",
        "restore": "no row left out",
    }[what]
