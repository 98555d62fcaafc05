"""One page of an exploration, without its browser: messages in, replies out.

A message is a dict with ``do``; a reply is a dict with ``kind``. Both go through JSON. Names from the data are text
everywhere: the script of the page never takes them for HTML.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float
from standout._messages import InvalidValueError, Message
from standout.explorer._engine import Answer, Engine, on_axes
from standout.explorer._history import History, open_session
from standout.explorer._question import Question, State, has
from standout.explorer._recipe import python, words
from standout.explorer._steps import Step, applied
from standout.report import (
    assignments,
    brief,
    correlation,
    headline,
    number,
    p_value,
    phrased,
    pixel_image,
    question,
    ratio_meaning,
    scale_limits,
    shortened,
    title,
)
from standout.selection import ComponentTest

# Columns that are named for a component, rows of the table, and rows whose images are drawn.
MOST_COLUMNS, MOST_ROWS, MOST_IMAGES = 12, 100, 150
# Columns whose values are shown for a row, and colours of labels before the rest are one.
MOST_CELLS, MOST_COLOURS = 8, 12
# Columns that can be chosen from a list.
MOST_LISTED = 2000
SLIDERS = ("shrinkage", "alpha", "epsilon", "gamma")
# A lasso is kept with so many digits, so that the code of the recipe has the same one.
DIGITS = 7
# What a point is: of the target, of a background, of neither, left out.
TARGET, BACKGROUND, NEITHER, LEFT_OUT = range(4)


@dataclass(frozen=True, eq=False)
class Setting:
    """What all pages of an exploration share.

    Attributes
    ----------
    engine : Engine
    first : sequence of steps
        Those that the options stand for.
    save : callable
        Writes the result of an exploration into a folder, and gives the path of its report.
    command : callable
        Gives the command line that repeats an exploration.
    session : History or None
        Steps to begin with, from a session file.
    """

    engine: Engine
    first: Sequence[Step]
    save: Callable[[History, str], Path]
    command: Callable[[History], str] = field(default=lambda history: "")
    session: History | None = None


class Page:
    """The state of one page, and its answers to messages.

    Attributes
    ----------
    history : History
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._engine = setting.engine
        self._data = setting.engine.data
        self.history = setting.session or History(self._data.groups, setting.first)
        if setting.session is not None:
            # Pages do not share their steps.
            self.history = History(self._data.groups)
            self.history.follow(setting.session)
        self._column: str | None = None
        self._tests: dict[Question, ComponentTest] = {}

    # --- messages ---

    def replies(self, message: dict[str, Any]) -> Generator[dict[str, Any]]:
        """Give the replies to a message, the quick ones first; the rest need not be asked for."""
        try:
            yield from self._replies(message)
        except Exception as error:
            # A page that waits for ever would be worse than a sentence that says little.
            yield {"kind": "problem", "text": problem_of(error)}

    def _replies(self, message: dict[str, Any]) -> Generator[dict[str, Any]]:
        what = message["do"]
        if what == "preview":
            yield from self._preview(message["step"])
        elif what in ("step", "undo", "redo", "hello", "open"):
            before = self.history.state
            if what == "step":
                self._take(message["step"])
            elif what == "open":
                path = Path(str(message["file"])).expanduser()
                self.history.follow(open_session(path, self._data.groups, self._data.columns))
            elif what in ("undo", "redo"):
                getattr(self.history, what)()
            yield from self._shown(fresh=what == "hello" or before.question != self.history.state.question)
        elif what == "column":
            self._column = str(message["name"])
            yield self._spread()
        elif what == "table":
            yield self._table(str(message.get("side", "target")), str(message.get("search", "")))
        elif what == "row":
            yield self._row(int(message["row"]))
        elif what == "keep":
            path = Path(str(message["file"])).expanduser()
            self.history.save(path, self._data.columns)
            yield {"kind": "kept", "text": f"The session is in {shortened(str(path), 80)}."}
        else:
            raise KeyError(what)

    def _resolved(self, step: Step) -> Step:
        """Give a step with the rows of its lasso, in the picture that is shown."""
        if step["do"] != "lasso":
            return step
        if not self._data.in_memory:
            raise InvalidValueError(
                "these data are larger than memory, and only whole groups can be compared",
                advice="Choose groups instead of drawing a lasso.",
            )
        state = self.history.state
        polygon = [[float(f"{float(place):.{DIGITS}g}") for place in corner] for corner in step["polygon"]]
        if len(polygon) < 3:
            raise InvalidValueError("the lasso has less than 3 corners", advice="Draw it around some points.")
        rows = self._engine.lassoed(state.pictured, (state.view.x, state.view.y), polygon)
        return {"do": "rows", "side": step["side"], "how": step["how"], "rows": rows, "polygon": polygon}

    def _take(self, step: Step) -> None:
        """Take a step, if its question has an answer."""
        resolved = self._resolved(step)
        after = applied(self.history.state, resolved, self._data.groups)
        if after.question != self.history.state.question:
            self._engine.answer(after.question, held_out=False)
        self.history.take(resolved)

    def _preview(self, step: Step) -> Generator[dict[str, Any]]:
        """Answer while the mouse is down: nothing is recorded. A lasso leaves the picture in its place."""
        resolved = self._resolved(step)
        after = applied(self.history.state, resolved, self._data.groups)
        answer = self._engine.answer(after.question, held_out=False)
        reply = self._answered(answer) | {"preview": True}
        if resolved["do"] == "rows":
            yield reply | {"chosen": resolved["rows"].count}
            return
        yield reply
        yield self._points(after, moved_only=True)

    def _shown(self, *, fresh: bool) -> Generator[dict[str, Any]]:
        """Give everything that the page shows: the quick answer first, then what needs more time."""
        state = self.history.state
        quick = self._engine.answer(state.question, held_out=False)
        yield self._answered(quick)
        yield self._described(state)
        yield self._points(state)
        if quick.errors is None and quick.ratios is not None:
            yield self._answered(self._engine.answer(state.question))
        if fresh:
            yield self._spread()
            yield self._outlying(state)
            if self._data.image_shape is not None:
                yield self._images(state)
        if self._data.in_memory:
            # The next lasso finds the scores of all rows ready.
            self._engine.plane(state.pictured, (state.view.x, state.view.y))

    # --- replies ---

    def _answered(self, answer: Answer) -> dict[str, Any]:
        """Give the answer in words and numbers."""
        test = self._tests.get(answer.question)
        spoken = _spoken(answer, self._data.columns, test)
        names = self._data.columns
        components = []
        for k in range(answer.n_components):
            leading = np.argsort(-np.abs(answer.correlations[k]), kind="stable")[:MOST_COLUMNS]
            bars = [
                {"name": names[j], "value": float(answer.correlations[k, j]), "shown": correlation(float(c))}
                for j, c in zip(leading.tolist(), answer.correlations[k, leading], strict=True)
            ]
            components.append({**_strength(answer, k, spoken), "columns": bars})
        if self._data.image_shape is not None:
            for k, component in enumerate(components):
                component["image"] = pixel_image(answer.correlations[k].reshape(self._data.image_shape))
        return {
            "kind": "answer",
            "title": title(spoken),
            "asked": question(spoken),
            "headline": headline(spoken),
            "method": answer.method,
            "components": components,
            "found": answer.found,
            "cautions": [phrased(message) for message in answer.warnings],
            "sure": answer.errors is not None or answer.ratios is None,
            "verdict": None if test is None else _verdict_words(test),
        }

    def _described(self, state: State) -> dict[str, Any]:
        """Describe the question: sides, groups, parameters, steps and code."""
        asked, groups = state.question, self._data.groups
        sides = self._sides(asked)
        roles = self._roles(asked)
        table = []
        for code, name in enumerate(groups.names):
            own = roles[groups.codes == code]
            found = {int(role) for role in np.unique(own)}
            table.append({"name": name, "count": len(own), "roles": sorted(found)})
        steps = self.history.steps
        return {
            "kind": "state",
            "groups": table,
            "sides": [{"name": name, "count": count} for name, count in sides],
            "rest": any(side.rest for side in asked.backgrounds),
            "n_left_out": 0 if asked.left_out is None else asked.left_out.count,
            "method": asked.method,
            "parameters": dict(asked.parameters),
            "used": [name for name in SLIDERS if has(asked.method, name)],
            "compared": bool(asked.compared),
            "view": {"picture": state.view.picture, "x": state.view.x, "y": state.view.y, "colour": state.view.colour},
            "steps": [words(step) for step in steps],
            "place": self.history.place,
            "first": self.history.n_first,
            "python": python(self.history, self._data.code, self._data.variables),
            "command": self._setting.command(self.history),
            "in_memory": self._data.in_memory,
            "n_rows": groups.n_rows,
            "n_drawn": len(self._engine.drawn),
            "columns": self._data.columns[:MOST_LISTED],
            "n_columns": len(self._data.columns),
            "has_labels": self._data.labels is not None,
            "has_images": self._data.image_shape is not None,
        }

    def _sides(self, asked: Question) -> list[tuple[str, int]]:
        names = [asked.target.name, *(side.name for side in asked.backgrounds)]
        whole = Question(asked.target, asked.backgrounds, asked.left_out)
        return list(zip(names, [rows.count for rows in whole.rows(self._data.groups)], strict=True))

    def _roles(self, asked: Question) -> npt.NDArray[np.uint8]:
        """Give what each row is."""
        roles = np.full(self._data.groups.n_rows, NEITHER, dtype=np.uint8)
        target, *backgrounds = Question(asked.target, asked.backgrounds, asked.left_out).rows(self._data.groups)
        for rows in backgrounds:
            roles[rows.mask] = BACKGROUND
        roles[target.mask] = TARGET
        if asked.left_out is not None:
            roles[asked.left_out.mask] = LEFT_OUT
        return roles

    def _points(self, state: State, *, moved_only: bool = False) -> dict[str, Any]:
        """Give the places of the drawn rows, and what they look like."""
        pictured, view = state.pictured, state.view
        scores = self._engine.scores(pictured)
        x, y = on_axes(scores, (view.x, view.y)).T
        places = {"x": _packed(x), "y": _packed(y), "n_components": scores.shape[1]}
        if moved_only:
            return {"kind": "points", "moved": True, **places}
        drawn = self._engine.drawn
        roles = self._roles(state.question)[drawn]
        name = "PCA" if view.picture == "pca" else "component"
        return {
            "kind": "points",
            "moved": False,
            **places,
            "rows": base64.b64encode(drawn.astype(np.uint32).tobytes()).decode(),
            "roles": base64.b64encode(roles.tobytes()).decode(),
            "axis": name,
            "view": [view.picture, view.x, view.y],
            **self._colours(view.colour, drawn, roles),
        }

    def _colours(self, colour: str, drawn: npt.NDArray[np.intp], roles: npt.NDArray[np.uint8]) -> dict[str, Any]:
        """Give a number for the colour of each drawn row, and the legend."""
        data = self._data
        if colour.startswith("column ") and colour[7:] in data.columns:
            return _scaled(np.asarray(data.values[drawn, data.columns.index(colour[7:])], dtype=np.float64))
        if colour == "group":
            return _named(data.groups.codes[drawn], list(data.groups.names))
        if colour == "label" and data.labels is not None:
            labels = data.labels[drawn]
            numbers = _as_numbers(labels)
            if numbers is not None:
                return _scaled(numbers)
            found, codes = np.unique(labels.astype(str), return_inverse=True)
            return _named(codes.ravel(), [name or "without a label" for name in found.tolist()])
        names = ["target", "background", "neither", "left out"]
        present = [role for role in range(4) if np.any(roles == role)]
        return {"scale": "roles", "codes": "", "names": [[role, names[role]] for role in present]}

    def _spread(self) -> dict[str, Any]:
        """Give how a column is spread on both sides: the one that was asked for, or the leading one."""
        asked = self.history.state.question
        answer = self._engine.answer(asked, held_out=False)
        columns = self._data.columns
        leading = int(np.argmax(np.abs(answer.correlations[0])))
        place = columns.index(self._column) if self._column in columns else leading
        found = self._engine.distribution(asked, place)
        low, high = number(found.pop("low")), number(found.pop("high"))
        means = [number(mean) for mean in found.pop("means")]
        return {
            "kind": "spread",
            "name": columns[place],
            "names": answer.names,
            "ends": [low, high],
            "means": means,
            **found,
        }

    def _outlying(self, state: State) -> dict[str, Any]:
        found = self._engine.outlying(state.question)
        rows = [{"row": row, "name": self._name(row), "far": number(far)} for row, far in found]
        return {"kind": "outlying", "rows": rows}

    def _images(self, state: State) -> dict[str, Any]:
        """Give the images of some rows of the target, to be drawn at their places."""
        roles = self._roles(state.question)[self._engine.drawn]
        some = np.flatnonzero(roles == TARGET)
        some = some[:: max(len(some) // MOST_IMAGES, 1)][:MOST_IMAGES]
        pixels = [self._grey(int(row)) for row in self._engine.drawn[some]]
        return {"kind": "images", "points": some.tolist(), "shape": self._data.image_shape, "grey": pixels}

    def _grey(self, row: int) -> str:
        """Give a row as a grey image."""
        values = np.asarray(self._data.values[row], dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        grey = np.round(255 * (values - low) / (high - low if high > low else 1.0)).astype(np.uint8)
        return base64.b64encode(grey.tobytes()).decode()

    def _name(self, row: int) -> str:
        ids = self._data.ids
        known = "" if ids is None else str(ids[row])
        return shortened(known, 60) if known else f"row {row}"

    def _row(self, row: int) -> dict[str, Any]:
        """Give what is known of a row: its name, group, label, and its values in the leading columns."""
        if not 0 <= row < self._data.groups.n_rows:
            raise InvalidValueError("there is no row {row}", row=row, advice="Choose a point of the picture.")
        data = self._data
        leading = self._leading()[:MOST_CELLS]
        facts = [["group", data.groups.names[data.groups.codes[row]]]]
        if data.labels is not None:
            facts.append(["label", str(data.labels[row])])
        facts += [[data.columns[column], number(float(data.values[row, column]))] for column in leading]
        reply = {"kind": "row", "row": row, "name": self._name(row), "facts": facts}
        if data.image_shape is not None:
            reply |= {"shape": data.image_shape, "grey": self._grey(row)}
        return reply

    def _leading(self) -> list[int]:
        """Give the columns that follow a component of the answer most closely."""
        answer = self._engine.answer(self.history.state.question, held_out=False)
        sizes = np.max(np.abs(answer.correlations[:2]), axis=0)
        return [int(column) for column in np.argsort(-sizes, kind="stable")[:MOST_CELLS]]

    def _table(self, side: str, search: str) -> dict[str, Any]:
        """Give the rows of a side that have a word in their name, group or label."""
        data, wanted = self._data, {"target": TARGET, "background": BACKGROUND, "neither": NEITHER}.get(side, LEFT_OUT)
        rows = np.flatnonzero(self._roles(self.history.state.question) == wanted)
        if search:
            rows = rows[[search.lower() in self._words(row).lower() for row in rows.tolist()]]
        leading = self._leading()[:5]
        shown = [
            {
                "row": row,
                "name": self._name(row),
                "group": data.groups.names[data.groups.codes[row]],
                "label": "" if data.labels is None else shortened(str(data.labels[row])),
                "values": [number(float(data.values[row, column])) for column in leading],
            }
            for row in rows[:MOST_ROWS].tolist()
        ]
        names = [data.columns[column] for column in leading]
        return {"kind": "table", "columns": names, "rows": shown, "count": len(rows), "side": side}

    def _words(self, row: int) -> str:
        data = self._data
        parts = [str(row), data.groups.names[data.groups.codes[row]]]
        parts += [str(known[row]) for known in (data.ids, data.labels) if known is not None]
        return " ".join(parts)

    # --- what takes long ---

    def verdict(self, told: Callable[[int, int, int, float], None]) -> dict[str, Any]:
        """Test which components are more than chance, and give the answer with its p-values."""
        asked = self.history.state.question
        if not asked.compared:
            raise InvalidValueError("there is no background to compare with", advice="Choose one first.")
        self._tests[asked] = self._engine.verdict(asked, told)
        return self._answered(self._engine.answer(asked))

    def save(self, folder: str) -> Path:
        """Write the result of the question into a folder, and give the path of its report."""
        return self._setting.save(self.history, folder)


# --- words and numbers ------------------------------------------------------------------------------------------------


def problem_of(error: BaseException) -> str:
    """Say in a sentence what went wrong."""
    message = getattr(error, "message", None)
    if isinstance(message, Message):
        return phrased(message)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Choose fewer rows."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename} cannot be read or written: {error.strerror}. Check the name and the permissions."
    return str(error) or f"This did not work ({type(error).__name__})."


class _Spoken(SimpleNamespace):
    """What is known of an answer, for the sentences of the report; what a report knows beyond that is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)


def _spoken(answer: Answer, columns: Sequence[str], test: ComponentTest | None) -> Any:
    """Give an answer as the sentences of the report know it."""
    sides = [_Spoken(name=name, n_rows=count) for name, count in zip(answer.names, answer.counts, strict=True)]
    shares = answer.shares
    return _Spoken(
        target=sides[0],
        backgrounds=sides[1:],
        features=columns,
        method=answer.method,
        side=getattr(answer.model, "side", "target"),
        ratios=answer.ratios,
        ratio_errors=answer.errors,
        test=test,
        # Shares of the variance are there where they mean something.
        total_variance=0.0 if shares is None else 1.0,
        eigenvalues=shares if shares is not None else answer.model.eigenvalues_,
        correlations=answer.correlations,
        components=getattr(answer.model, "patterns_", None),
        cautions=(),
    )


def _strength(answer: Answer, k: int, spoken: Any) -> dict[str, Any]:
    """Give the ratio of a component with its standard error, or its share of the variance."""
    if answer.ratios is not None:
        shown = number(float(answer.ratios[k]))
        if answer.errors is not None and np.isfinite(answer.errors[k]):
            shown = f"{shown} ± {number(float(answer.errors[k]), 2)}"
        return {"shown": shown, "label": "ratio", "meaning": ratio_meaning(spoken, k)}
    if answer.shares is not None:
        meaning = "Share of the target's variance, over all columns."
        return {"shown": f"{100 * float(answer.shares[k]):.3g}%", "label": "of the variance", "meaning": meaning}
    meaning = "Variance of the target along the component."
    return {"shown": number(float(answer.model.eigenvalues_[k])), "label": "variance", "meaning": meaning}


def _verdict_words(test: ComponentTest) -> dict[str, Any]:
    values = [p_value(float(chance)) for chance in test.p_values]
    found = "Nothing stands out beyond chance" if test.n_significant == 0 else "This is more than chance explains"
    return {"text": f"{found}. p-values by {assignments(test)}, at a level of {brief(test.level)}.", "p_values": values}


def _packed(numbers: Float) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, dtype=np.float32).tobytes()).decode()


def _scaled(values: Float) -> dict[str, Any]:
    """Give numbers as colours on a scale, from 0 to 255; 255 ends up for what is not known, too."""
    low, high = scale_limits(values)
    shares = np.nan_to_num(np.clip((values - low) / (high - low), 0.0, 1.0), nan=0.0)
    codes = np.round(255 * shares).astype(np.uint8)
    ends = [number(low), number(high)]
    return {"scale": "numbers", "codes": base64.b64encode(codes.tobytes()).decode(), "names": ends}


def _named(codes: npt.NDArray[np.intp], names: Sequence[str]) -> dict[str, Any]:
    """Give groups as colours: the largest have their own, all others share one."""
    counts = np.bincount(codes, minlength=len(names))
    largest = np.sort(np.argsort(-counts, kind="stable")[:MOST_COLOURS])
    place = np.full(len(names), len(largest), dtype=np.uint8)
    place[largest] = np.arange(len(largest))
    shown = [[index, shortened(names[code])] for index, code in enumerate(largest.tolist())]
    if len(names) > len(largest):
        shown.append([len(largest), f"{len(names) - len(largest)} others"])
    return {"scale": "names", "codes": base64.b64encode(place[codes].tobytes()).decode(), "names": shown}


def _as_numbers(labels: npt.NDArray[np.object_]) -> Float | None:
    """Give labels that are many different numbers as numbers."""
    try:
        values = np.array([float(label) if str(label).strip() else np.nan for label in labels])
    except ValueError:
        return None
    known = values[np.isfinite(values)]
    return values if len(np.unique(known)) > MOST_COLOURS else None
