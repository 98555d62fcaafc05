"""The question of an exploration (`State`), and the `Answer` to this question: the same fit as in Python."""

from __future__ import annotations

import base64
import json
import threading
import zlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from standout import __version__
from standout._arrays import Float, dense
from standout._messages import InvalidValueError, collected_warnings
from standout._options import ALL, OPTIONS, check_parameters, options_for
from standout._xp import take, to_host
from standout.estimators import ESTIMATORS, DiscriminativePCA
from standout.estimators._scores import CHOSEN
from standout.explorer._table import Table
from standout.io._files import check_choice
from standout.selection._data import Data, make_data
from standout.selection._means import mean_differences
from standout.sources import InMemory, Source, open_datasets
from standout.sources._base import Chosen

Numbers = npt.NDArray[np.intp]
NEITHER, TARGET, BACKGROUND = range(3)
ROLES = ("neither", "target", "background")
# If the background has more conditions than this, they form one dataset.
MOST_BACKGROUNDS = 20
# Maximum numbers. MOST_KEPT: cached answers. MOST_SAMPLED: rows in the sample of a file that is read in parts.
# MOST_JUDGED: columns for which a slider still computes the held-out ratio.
MOST_KEPT, MOST_SAMPLED, MOST_JUDGED = 12, 20_000, 256
# Maximum number of rows for a kernel method: a user would wait too long for more.
MOST_KERNEL_ROWS = 20_000
KIND = "standout exploration"


@dataclass(frozen=True)
class State:
    r"""A question: which rows are target, background or neither, and how they are compared.

    Attributes
    ----------
    by : str
        The text column whose values the page lists. Each value in the background is a separate dataset.
    roles : bytes
        One byte per row: 0 neither, 1 target, 2 background.
    value : float or None
        Shrinkage, α or ε; None means that ``fit`` chooses it.
    subjects : str or None
        The text column with the subject of each row.

    Examples
    --------
    >>> from standout.explorer import State, changed, Table
    >>> import numpy as np
    >>> table = Table.of(np.eye(4), ["a", "a", "b", "c"])
    >>> state = changed(State("y", bytes(4)), {"do": "role", "values": ["a"], "role": "target"}, table)
    >>> list(changed(state, {"do": "rest"}, table).roles)
    [1, 1, 2, 2]
    """

    by: str
    roles: bytes = field(repr=False)
    method: str = "dpca"
    value: float | None = None
    scale: str | None = None
    center: str = "own"
    subjects: str | None = None
    n_components: int = 2

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        """The role of each row."""
        return np.frombuffer(self.roles, dtype=np.uint8)


def changed(state: State, step: Mapping[str, Any], table: Table) -> State:
    """Return the state after a step of the page; refuse an invalid step."""
    what, codes = step.get("do"), state.codes.copy()
    if what == "role":
        wanted = [value for value in step["values"] if isinstance(value, str)]
        codes[np.isin(table.words[state.by].astype(str), wanted)] = ROLES.index(step["role"])
    elif what == "rows":
        role, inside = ROLES.index(step["role"]), np.asarray(step["rows"], dtype=bool)
        if step.get("only"):
            codes[codes == role] = NEITHER
        codes[inside] = role
    elif what == "clear":
        codes[:] = NEITHER
    elif what == "rest":
        codes[codes == NEITHER] = BACKGROUND
    elif what == "swap":
        codes = np.array([NEITHER, BACKGROUND, TARGET], dtype=np.uint8)[codes]
    elif what == "set" and step.get("name") in ("by", "method", "value", "scale", "center", "subjects", "n_components"):
        # A value of the earlier method has no meaning for another method: α is not a shrinkage.
        forgotten: dict[str, Any] = {"value": None} if step["name"] == "method" else {}
        return checked(replace(state, **forgotten, **{step["name"]: step["value"]}), table)
    else:
        raise InvalidValueError("the page asks for something unknown", advice="Load it again.")
    return replace(state, roles=codes.tobytes())


def checked(state: State, table: Table) -> State:
    """Check every part of a state, and return it."""
    check_choice(state.method, "method", ALL)
    for name in [state.by] * bool(table.words) + [state.subjects] * (state.subjects is not None):
        if str(name) not in table.words:
            raise InvalidValueError("is not a text column", parameter="column", value=name)
    if type(state.n_components) is not int:
        raise InvalidValueError("is not a whole number", parameter="n_components", value=state.n_components)
    codes = state.codes
    if len(codes) != table.n_rows or (codes > BACKGROUND).any():
        raise InvalidValueError("the choice of rows does not fit this table", advice="Use another session.")
    check_parameters(state.method, _parameters(state))
    return state


def _parameters(state: State) -> dict[str, Any]:
    given: dict[str, Any] = {"center": state.center, "n_components": state.n_components}
    if state.value is not None:
        given[CHOSEN[state.method]] = state.value
    if state.method in OPTIONS["scale"].methods:
        given["scale"] = state.scale
    return given


# --- sessions ---------------------------------------------------------------------------------------------------------


def write_session(state: State, table: Table) -> str:
    """Return a state as JSON."""
    record = {"kind": KIND, "standout": __version__, "columns": _digest(table), **asdict(state)}
    record["roles"] = base64.b64encode(zlib.compress(state.roles)).decode()
    return json.dumps(record, indent=1, ensure_ascii=False)


def read_session(text: str, table: Table) -> State:
    """Return the state in a text of `write_session`. Other texts, and sessions of other data, are errors."""
    try:
        record = json.loads(text)
        if record["kind"] != KIND:
            raise ValueError
        given = {one.name: record[one.name] for one in fields(State)}
        packed = zlib.decompressobj()
        # Limit the size, because a small file can unpack to gigabytes.
        given["roles"] = packed.decompress(base64.b64decode(given["roles"], validate=True), table.n_rows + 1)
    except (ValueError, TypeError, KeyError, LookupError, RecursionError, zlib.error):
        advice = "Give a file that was saved on the page of standout explore."
        raise InvalidValueError("the file is not a session of an exploration", advice=advice) from None
    if record.get("columns") != _digest(table) or len(given["roles"]) != table.n_rows:
        advice = "Open it with the files and options that it was saved with."
        raise InvalidValueError("the session is of other data", advice=advice)
    return checked(State(**given), table)


def _digest(table: Table) -> int:
    return zlib.crc32("\n".join(table.columns).encode("utf-8", "surrogatepass"))


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A dataset of the question: its name, and its row numbers in the table."""

    name: str
    numbers: Numbers = field(repr=False)


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a question.

    Attributes
    ----------
    state : State
    parts : list of Part
        The target and the backgrounds; empty if there is no target yet.
    sources : list of Source
    model : estimator
        Fitted. Without a target it is PCA of all rows, for the picture only.
    notes : list
        Warnings of the fit.
    reason : str
        What is missing for a comparison; empty if nothing is missing.
    """

    state: State
    parts: list[Part]
    sources: list[Source]
    model: Any
    notes: list[Any]
    reason: str

    @property
    def held_out(self) -> bool:
        """Whether there is a held-out ratio."""
        return bool(self.parts) and self.model.held_out_ is not None


class Engine:
    """Answer questions about a table, and keep the last answers with their sums.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.explorer import Engine, State, Table, changed
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> X[:100, 3] *= 5
    >>> table = Table.of(X, ["ill"] * 100 + ["well"] * 200)
    >>> state = changed(State("y", bytes(300)), {"do": "role", "values": ["ill"], "role": "target"}, table)
    >>> answer = Engine(table).answer(changed(state, {"do": "rest"}, table))
    >>> [len(part.numbers) for part in answer.parts], int(abs(answer.model.correlations_[0]).argmax())
    ([100, 200], 3)
    """

    def __init__(self, table: Table, parameters: Mapping[str, Any] | None = None) -> None:
        self.table = table
        # Parameters of the estimators that the page does not change.
        self.parameters = dict(parameters or {})
        self._answered, self._data_of = lru_cache(MOST_KEPT)(self._answer), lru_cache(MOST_KEPT)(self._data)
        self._lock = threading.RLock()
        self.sampled, self._rows = np.arange(table.n_rows), table.source.rows
        if self._rows is None:
            self.sampled = np.sort(np.random.default_rng(0).permutation(table.n_rows)[:MOST_SAMPLED])
            self._rows = table.source.take(self.sampled)

    def rows(self, places: Numbers) -> Float:
        """Return rows of the table or its sample, by positions in `sampled`."""
        return np.asarray(dense(take(self._rows, places)), dtype=np.float64)

    def parts(self, state: State) -> list[Part]:
        """Return the target and the backgrounds.

        Each condition in the background is a separate dataset, if all rows of these conditions are background, each
        condition has two rows or more, and there are at most MOST_BACKGROUNDS conditions. Otherwise, all background
        rows form one dataset.
        """
        codes = state.codes
        target, others = (np.flatnonzero(codes == role) for role in (TARGET, BACKGROUND))
        names = self.table.words.get(state.by, np.full(len(codes), "rows", dtype=object))
        parts = [Part(_called(names[target], "target"), target)]
        if not len(others):
            return parts
        values = sorted(set(names[others].tolist()))
        chosen = [np.flatnonzero((names == value) & (codes == BACKGROUND)) for value in values]
        whole = all((codes[names == value] == BACKGROUND).all() for value in values)
        if whole and len(values) <= MOST_BACKGROUNDS and all(len(own) > 1 for own in chosen):
            return parts + [Part(value or "(empty)", own) for value, own in zip(values, chosen, strict=True)]
        return [*parts, Part(_called(names[others], "background"), others)]

    def answer(self, state: State) -> Answer:
        """Fit the model of a state, and return the result. A call of the estimator in Python gives the same fit."""
        with self._lock:
            return self._answered(state)

    def _answer(self, state: State) -> Answer:
        parts, reason = self.parts(state), ""
        if len(parts[0].numbers) < 2:
            reason = "Choose a target. Until then, the picture shows PCA of all rows."
            pca = DiscriminativePCA(min(2, self.table.source.width or 1))
            with collected_warnings():
                pca.fit(InMemory(self._rows, "the table", self.table.source.keys))
            return Answer(state, [], [], pca, [], reason)
        if len(parts) == 1 or any(len(part.numbers) < 2 for part in parts[1:]):
            parts, reason = parts[:1], "Choose a background to compare with. Until then, this is PCA of the target."
        if state.method in ("kdpca", "kcpca") and sum(len(part.numbers) for part in parts) > MOST_KERNEL_ROWS:
            problem = f"kernels of more than {MOST_KERNEL_ROWS:,} rows take too long while you wait"
            raise InvalidValueError(problem, advice="Choose fewer rows, or use standout fit.")
        sources = self._sources(parts, state.subjects)
        model = self.estimator(state)
        with collected_warnings() as notes:
            model.fit(sources[0], background=sources[1:] or None)
        return Answer(state, parts, sources, model, notes, reason)

    def estimator(self, state: State) -> Any:
        """Return the estimator of a question, not yet fitted."""
        names = {one.name for one in options_for(state.method)}
        given = {name: value for name, value in self.parameters.items() if name in names}
        return ESTIMATORS[state.method](**{**given, **_parameters(state)})

    def _sources(self, parts: Sequence[Part], subjects: str | None) -> list[Source]:
        whole, every = self.table.source, np.arange(self.table.n_rows)
        made = [Chosen(whole, np.isin(every, part.numbers), part.name).at_once() for part in parts]
        if subjects is not None:
            words = [self.table.words[subjects][part.numbers] for part in parts]
            opened = open_datasets(made[0], made[1:] or None, groups=words[0], background_groups=words[1:] or None)
            made = [source.named(part.name) for source, part in zip(opened, parts, strict=True)]
        return made

    def slid(self, state: State, value: float) -> Answer:
        """Return the answer at another shrinkage or α, from stored sums, for a slider.

        With more than MOST_JUDGED columns, solving all folds would be too slow for a slider. Then there is no held-out
        ratio, and scores are in-sample.
        """
        answer, name = self.answer(replace(state, value=None)), CHOSEN[state.method]
        check_parameters(state.method, {name: value})
        if len(answer.parts) < 2 or state.method not in ("dpca", "cpca"):
            raise InvalidValueError("there is nothing to slide", advice="Release the slider.")
        with self._lock, collected_warnings():
            model = copy(answer.model)
            data = model._data or self._data_of(answer.state)
            setattr(model, name, float(value))
            folds = model._folds if data.sums(model.problem_).moments[0].n_features <= MOST_JUDGED else None
            model._keep_linear(model._fit_data(data, folds, ""), data)
        return replace(answer, state=replace(state, value=float(value)), model=model)

    def _data(self, state: State) -> Data:
        """Return the data of a fit with more columns than rows, for a slider."""
        answer = self.answer(state)
        sources = answer.sources if answer.model.robust is None else copy(answer.model)._weighed(answer.sources)
        return make_data(sources, answer.model._folds, norms=False, wide=True)

    # --- scores and columns of an answer ---

    def scores(self, answer: Answer, places: Numbers) -> Float:
        """Return scores of rows by positions in `sampled`. Rows of the fit get held-out scores if there are folds."""
        model, rows = answer.model, self.rows(places)
        found: Float = np.array(to_host(model.transform(InMemory(rows, "the rows", self.table.source.keys))))
        if not answer.held_out:
            return found
        numbers = self.sampled[places]
        for k, part in enumerate(answer.parts):
            here, own = np.intersect1d(numbers, part.numbers, True, return_indices=True)[1:]
            if len(here):
                found[here] = model._held_out_scores(rows[here], own, k, None)
        return found

    def correlations(self, answer: Answer) -> Float:
        """Return the correlation of each column with each score in the target; 0 for a constant column."""
        if hasattr(answer.model, "correlations_"):
            return np.nan_to_num(to_host(answer.model.correlations_))
        places = np.flatnonzero(np.isin(self.sampled, answer.parts[0].numbers))[:5000]
        scores, rows = (part - part.mean(axis=0) for part in (self.scores(answer, places), self.rows(places)))
        spread = np.sqrt(np.outer((scores**2).sum(axis=0), (rows**2).sum(axis=0)))
        return np.divide(scores.T @ rows, spread, out=np.zeros_like(spread), where=spread > 0.0)

    def means(self, answer: Answer) -> Any:
        """Return the differences between the means of target and background, or None without a background."""
        if len(answer.parts) < 2:
            return None
        if hasattr(answer.model, "_column_facts"):
            return answer.model.mean_differences_
        means, variances = make_data(answer.sources, None, norms=False, wide=True).column_facts()
        counts = [float(len(part.numbers)) for part in answer.parts]
        return mean_differences(means, variances, counts, answer.model.background_weights_.tolist())


def _called(names: Any, otherwise: str) -> str:
    """Return a name for a dataset: the values of its rows if there are at most three, else `otherwise`."""
    values = sorted(set(names.tolist()))
    return " + ".join(value or "(empty)" for value in values) if 1 <= len(values) <= 3 else otherwise


def inside(points: Float, polygon: Sequence[Sequence[float]]) -> npt.NDArray[np.bool_]:
    """Which points are inside this lasso?

    Examples
    --------
    >>> import numpy as np
    >>> from standout.explorer import inside
    >>> inside(np.array([[0.5, 0.5], [2.0, 0.5]]), [(0, 0), (1, 0), (1, 1), (0, 1)])
    array([ True, False])
    """
    from matplotlib.path import Path

    corners = np.asarray(polygon, dtype=np.float64)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3 or not np.isfinite(corners).all():
        raise InvalidValueError("a lasso needs at least 3 corners", advice="Draw it around some points.")
    return Path(corners).contains_points(points)
