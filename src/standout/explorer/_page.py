"""The server side of one page: it gets messages and returns replies, both ready for JSON.

Names from the data are always text: the script of the page never uses them as HTML.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from standout._messages import InvalidValueError
from standout._options import OPTION_NAMES
from standout.estimators._scores import CHOSEN
from standout.explorer import _engine
from standout.explorer._engine import BACKGROUND, NEITHER, ROLES, TARGET, Answer, Engine, State
from standout.explorer._table import DATASET
from standout.report import findings, open_fit, page, sentences
from standout.report._drawn import read_labels, rounded
from standout.report._findings import path_of, value, written
from standout.report._words import encoded, environment
from standout.selection import permutation_test

# Maximum numbers. MOST_DRAWN: points drawn for each role. MOST_COLUMNS: listed columns. MOST_STEPS: stored states.
# MOST_CORNERS: corners of a lasso.
MOST_DRAWN = {TARGET: 3000, BACKGROUND: 3000, NEITHER: 1500}
MOST_COLUMNS, MOST_STEPS, MOST_CORNERS = 40, 100, 2000
N_BINS = 40
N_DRAWS = 199


class Page:
    """The state of one page, and its answers to messages.

    Attributes
    ----------
    history : list of State
    place : int
        Position of the current state in the history.
    """

    def __init__(self, engine: Engine, state: State) -> None:
        self.engine, self.table = engine, engine.table
        self.history, self.place = [state], 0
        self.axes, self.component, self.search, self.sort, self.colour = (0, 1), 0, "", "correlation", "role"
        self._lock = threading.Lock()
        self.reports: dict[State, tuple[str, list[Any]]] = {}

    @property
    def state(self) -> State:
        """The current state."""
        return self.history[self.place]

    # --- messages ---

    def reply(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a message; refuse an invalid one."""
        what = message.get("do")
        if what in ("hello", "details", "columns", "column", "report", "session", "view"):
            return getattr(self, f"_{what}")(message)
        if what == "preview":
            answer = self.engine.slid(self.state, float(message["value"]))
            return {"answer": self._answered(answer), "points": self._points(answer)}
        if what in ("undo", "redo"):
            self.place = min(max(self.place + (1 if what == "redo" else -1), 0), len(self.history) - 1)
        elif what == "open":
            self._take(_engine.read_session(str(message["text"]), self.table))
        else:
            # Process one step at a time, even if the user is fast.
            with self._lock:
                self._take(_engine.changed(self.state, self._resolved(message), self.table))
        return self._hello(message)

    def _take(self, state: State) -> None:
        """Compute the answer of a new state, and add this state to the history. Slider values replace each other."""
        if state == self.state:
            return
        self.engine.answer(state)
        before = self.state
        same = self.place > 0 and replace(before, value=state.value) == state and before.value is not None
        same = same and replace(self.history[self.place - 1], value=before.value) == before
        self.history = [*self.history[: self.place + (0 if same else 1)], state][-MOST_STEPS:]
        self.place = len(self.history) - 1

    def _resolved(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a step, with a lasso replaced by the rows inside it. A page may not send rows itself."""
        if step.get("do") != "lasso":
            return {} if step.get("do") == "rows" else step
        if self.table.source.rows is None:
            problem = "the files are larger than memory, and a lasso needs all rows"
            raise InvalidValueError(problem, advice="Choose whole conditions instead.")
        scores = self.engine.scores(self.engine.answer(self.state), np.arange(self.table.n_rows))
        rows = _engine.inside(self._plane(scores), step["polygon"][:MOST_CORNERS])
        return {"do": "rows", "rows": rows, "role": step["role"], "only": bool(step.get("only"))}

    def _hello(self, message: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.engine.answer(self.state)
        return {"state": self._described(answer), "answer": self._answered(answer), "points": self._points(answer)}

    # --- replies ---

    def _described(self, answer: Answer) -> dict[str, Any]:
        """Describe the question: values and their roles, parameters, code."""
        state, table = self.state, self.table
        codes = state.codes
        values = []
        if table.words:
            names, places = np.unique(table.words[state.by].astype(str), return_inverse=True)
            counts = np.bincount(3 * places.ravel() + codes, minlength=3 * len(names)).reshape(-1, 3)
            for name, own in zip(names.tolist(), counts, strict=True):
                role = ROLES[own.argmax()] if own.max() == own.sum() else None
                values.append({"name": name, "rows": int(own.sum()), "role": role})
        return {
            "words": list(table.words),
            "values": values,
            "counts": [int((codes == role).sum()) for role in (TARGET, BACKGROUND, NEITHER)],
            "datasets": [part.name for part in answer.parts],
            **{name: getattr(state, name) for name in ("by", "method", "scale", "center", "subjects", "n_components")},
            "undo": self.place > 0,
            "redo": self.place < len(self.history) - 1,
            "python": python(self.engine, state),
            "command": command(self.engine, state),
            "n_columns": len(table.columns),
            "lasso": table.source.rows is not None,
        }

    def _answered(self, answer: Answer) -> dict[str, Any]:
        """Return the numbers of an answer: ratios, slider, columns and p-values."""
        model, slider = answer.model, CHOSEN[self.state.method]
        path = getattr(self._auto(answer).model, "path_", None) if len(answer.parts) > 1 else None
        values = [] if path is None or path.reason else [float(f"{one:.4g}") for one in path.values.tolist()]
        now = getattr(model, f"{slider}_", None) if answer.parts else None
        return {
            "reason": answer.reason,
            # The ratio and the ends of its interval; None without a held-out ratio.
            "components": rounded(np.column_stack([model.ratio_, model.ratio_interval_]), 6),
            "slider": {"name": slider, "values": values, "value": value(now), "auto": answer.state.value is None},
            "columns": self._listed(answer),
            **self._tested(answer.state),
        }

    def _auto(self, answer: Answer) -> Answer:
        return answer if answer.state.value is None else self.engine.answer(replace(answer.state, value=None))

    def _listed(self, answer: Answer) -> dict[str, Any]:
        """Return the columns that match the search, sorted by their correlation or their difference of means."""
        names = self.table.columns
        self.component = min(self.component, answer.model.n_components_ - 1)
        correlations = self.engine.correlations(answer)[self.component]
        means = self.engine.means(answer)
        effects = np.zeros(len(names)) if means is None else means.effect
        found = [k for k, name in enumerate(names) if self.search.lower() in name.lower()]
        by = correlations if self.sort == "correlation" or means is None else effects
        order = sorted(found, key=lambda k: -abs(by[k]))[:MOST_COLUMNS]
        sure = np.zeros(len(names), dtype=bool) if means is None else means.q_value <= 0.05
        listed = [[names[k], value(correlations[k]), means and value(effects[k]), bool(sure[k])] for k in order]
        return {"component": self.component, "found": len(found), "rows": listed}

    def _tested(self, state: State) -> dict[str, Any]:
        """Return the p-values of a tested question, and the number of its report."""
        if state not in self.reports:
            return {"p_values": None, "report": None}
        return {"p_values": self.reports[state][1], "report": list(self.reports).index(state)}

    def _plane(self, scores: Any) -> Any:
        """Return scores on the axes of the picture. Without a second component, spread the points vertically."""
        d = scores.shape[1]
        x = scores[:, min(self.axes[0], d - 1)]
        y = scores[:, self.axes[1]] if self.axes[1] < d else (np.arange(len(scores)) * 0.618034) % 1.0
        return np.stack([x, y], axis=1)

    def _points(self, answer: Answer) -> dict[str, Any]:
        """Return the places, roles and colours of the rows that are drawn."""
        codes, draw, chosen = self.state.codes[self.engine.sampled], np.random.default_rng(0), []
        for role, most in MOST_DRAWN.items():
            own = np.flatnonzero(codes == role)
            most = MOST_DRAWN[TARGET] if not answer.parts else most
            chosen.append(own if len(own) <= most else np.sort(draw.choice(own, most, replace=False)))
        places = np.concatenate(chosen)
        plane = self._plane(self.engine.scores(answer, places))
        numbers, ids = self.engine.sampled[places], self.table.source.ids
        return {
            "x": rounded(plane[:, 0]),
            "y": rounded(plane[:, 1]),
            "rows": numbers.tolist(),
            "ids": None if ids is None else [str(ids[number]) for number in numbers.tolist()],
            "roles": codes[places].tolist(),
            "axes": list(self.axes) if answer.model.n_components_ > 1 else [0, None],
            "axis": "component" if answer.parts else "PCA",
            "held_out": answer.held_out,
            "n_components": int(answer.model.n_components_),
            **self._colours(places),
        }

    def _colours(self, places: Any) -> dict[str, Any]:
        """Return the mark of each point, and the names of the marks: roles, words, or numbers on a scale."""
        if self.colour in self.table.words:
            labels = read_labels(self.table.words[self.colour])
            return {"colour": self.colour, "names": labels.names, "marks": labels.of(self.engine.sampled[places])}
        if self.colour.startswith("column ") and self.colour[7:] in self.table.columns:
            name = self.colour[7:]
            return {"colour": name, "names": [], "marks": rounded(self._values(name, places))}
        return {"colour": "role", "names": None, "marks": None}

    def _values(self, column: str, places: Any) -> Any:
        return self.engine.rows(places)[:, self.table.columns.index(column)]

    def _view(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Change the axes and the colours of the picture."""
        if "axes" in message:
            x, y = (int(axis) for axis in message["axes"])
            self.axes = max(x, 0), max(y, 0)
        if "colour" in message:
            self.colour = str(message["colour"])
        return {"points": self._points(self.engine.answer(self.state))}

    def _columns(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Change the search, the order and the component, and list the columns."""
        self.search, self.sort = str(message.get("search", "")), str(message.get("sort", "correlation"))
        self.component = max(int(message.get("component", 0)), 0)
        return {"columns": self._listed(self.engine.answer(self.state))}

    def _column(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return histograms of one column: of target and background, or of all rows."""
        name = str(message["name"])
        codes = self.state.codes[self.engine.sampled]
        both = [(ROLES[role], np.flatnonzero(codes == role)[:100_000]) for role in (TARGET, BACKGROUND)]
        sides = [side for side in both if len(side[1])] or [("all rows", np.arange(len(codes)))]
        parts = [(role, self._values(name, places)) for role, places in sides]
        low, high = np.quantile(np.concatenate([part for _, part in parts]), [0.002, 0.998])
        edges = np.linspace(low, high if high > low else low + 1.0, N_BINS + 1)
        shares = [np.histogram(np.clip(part, edges[0], edges[-1]), edges)[0] / len(part) for _, part in parts]
        most = max(float(np.max(share)) for share in shares) or 1.0
        return {
            "name": name,
            "low": value(edges[0]),
            "high": value(edges[-1]),
            "sides": [
                {"role": role, "mean": value(part.mean()), "spread": value(part.std()), "shares": rounded(share / most)}
                for (role, part), share in zip(parts, shares, strict=True)
            ],
        }

    def _details(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the slower parts of an answer: headline, cautions, the path and images."""
        answer = self.engine.answer(self.state)
        if not answer.parts:
            return {"headline": answer.reason, "cautions": [], "path": None, "images": None}
        found = self._found(answer, None)
        path = path_of(self._auto(answer).model) if len(answer.parts) > 1 else None
        if path is not None and answer.state.value is not None:
            path["value"] = answer.state.value
        if path is not None and set(path["log_ratios"]) <= {None}:
            path = None
        headline, *cautions = sentences(found)
        return {"headline": answer.reason or headline, "cautions": cautions, "path": path, "images": found["images"]}

    def _found(self, answer: Answer, test: Any) -> dict[str, Any]:
        """Return the findings of the report."""
        known: dict[str, Any] = {"image_shape": self.table.image_shape, "notes": [*self.table.notes, *answer.notes]}
        labels = None
        if self.colour in self.table.words:
            labels, known["label_name"] = self.table.words[self.colour][answer.parts[0].numbers], self.colour
        fit = open_fit(answer.model, answer.sources, labels)
        return findings(fit, test=test, with_views=test is not None, **known)

    def _report(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Test the components, and make the report."""
        answer = self.engine.answer(self.state)
        if len(answer.parts) < 2:
            raise InvalidValueError("there is nothing to test", advice=answer.reason)
        target, *others = answer.sources
        found = self._found(answer, permutation_test(answer.model, target, background=others, n_draws=N_DRAWS))
        self.reports[answer.state] = (page(found), [one["p_value"] for one in found["components"]])
        return {"headline": found["headline"], **self._tested(answer.state)}

    def report(self, number: int) -> str | None:
        """Return a report that was made, by its number."""
        made = list(self.reports.values())
        return made[number][0] if 0 <= number < len(made) else None

    def _session(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": _engine.write_session(self.state, self.table)}


# --- the same as code -------------------------------------------------------------------------------------------------


def _sides(engine: Engine, state: State) -> list[tuple[str, list[str]]] | None:
    """Return the file and conditions of each dataset.

    None if rows were chosen by hand, or if a dataset can have rows of several files.
    """
    table, parts = engine.table, engine.parts(state)
    paths = table.origin.paths
    if not paths or not table.words:
        return None
    words = table.words[state.by].astype(str)
    values = [np.unique(words[part.numbers]).tolist() for part in parts]
    every = [name for own in values for name in own]
    if len(set(every)) < len(every) or np.isin(words, every).sum() > sum(len(part.numbers) for part in parts):
        return None
    if state.by != DATASET:
        return [(paths[0], own) for own in values] if len(paths) == 1 else None
    files = dict(zip(dict.fromkeys(words.tolist()), paths, strict=True))
    return [(files[own[0]], []) for own in values] if all(len(own) == 1 for own in values) else None


def python(engine: Engine, state: State) -> str:
    """Return Python code for the question. The code selects rows by conditions, or by their dataset numbers."""
    return _code("python.j2", engine, state) or "# Choose a target and a background first."


def command(engine: Engine, state: State) -> str:
    """Return a command for the question, with a session file if rows were chosen by hand; empty without files."""
    return _code("command.j2", engine, state) if engine.table.origin.paths else ""


def _code(template: str, engine: Engine, state: State) -> str:
    """Return code for the question; an empty text without a target or a background."""
    parts, model = engine.parts(state), written(engine.estimator(state))
    if len(parts) < 2 or not len(parts[0].numbers):
        return ""
    marks = np.zeros(engine.table.n_rows, dtype=np.uint8)
    for k, part in enumerate(parts, 1):
        marks[part.numbers] = k
    facts = {**vars(state), "sides": _sides(engine, state), "by_dataset": state.by == DATASET, "model": model}
    facts |= {"origin": engine.table.origin, "n_parts": len(parts), "options": OPTION_NAMES}
    facts |= {"packed": encoded(zlib.compress(marks.tobytes(), 9))}
    return str(environment(html=False).get_template(f"explorer/{template}").render(facts)).strip()
