"""From a question to its answer: sums that are kept, a fit that reads them, and what a page shows of it."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

import standout
from standout._arrays import Float, dense, in_order
from standout._messages import CautionWarning, InvalidValueError, Message
from standout.estimators import fitted_test
from standout.explorer._kept import ChosenRows, Joined, KeptSums, Plane
from standout.explorer._question import METHODS, Groups, Mask, Question, RowSet, Side
from standout.explorer._recipe import WORDS_OF_METHODS, parameters
from standout.moments import Moments
from standout.selection import ComponentTest
from standout.sources import Source, Table, drawn

# Rows that are drawn; all numbers come from all rows.
MOST_DRAWN = 20_000
# Bytes up to which the rows that are drawn are kept beside the others.
MOST_COPIED = 2**26
# Columns up to which the threads of BLAS would only wait for each other.
MOST_NARROW = 1000
# Beyond so many rows, kernels give no answer.
MOST_KERNEL_ROWS = 50_000
# Answers, datasets with their sums, and scores of all rows that are kept.
MOST_ANSWERS, MOST_DATASETS, MOST_SCORES = 64, 12, 3
# Rows further from the median than this many robust standard deviations are outlying, and so many of them are named.
OUTLYING, MOST_OUTLYING = 6.0, 12
MAD_TO_SPREAD = 1.4826
N_BINS = 40

Thing = TypeVar("Thing")


# --- the data ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Explored:
    """The rows that an exploration is about.

    Attributes
    ----------
    columns : list of str
    groups : Groups
        Of all rows; if these are not in memory, of the rows that are drawn.
    values : array of shape (n_rows, n_columns)
        All rows, or those that are drawn if there are more than memory holds.
    ids, labels : ndarray of str or None
    sources : dict of str to Source, or None
        The dataset of each group, if rows are not all in memory.
    image_shape : tuple of two int, or None
    code : str
        How to get ``X`` and ``groups`` in Python.
    variables : dict of str to str, or None
        The variables of that code that hold the groups, if rows are not all in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.explorer import Explored
    >>> data = Explored.of([np.zeros((3, 2)), np.ones((4, 2))], ["ill", "well"], ["weight", "length"])
    >>> data.values.shape, data.groups.names
    ((7, 2), ('ill', 'well'))
    """

    columns: list[str]
    groups: Groups
    values: Any
    ids: npt.NDArray[np.object_] | None = None
    labels: npt.NDArray[np.object_] | None = None
    sources: dict[str, Source] | None = None
    image_shape: tuple[int, int] | None = None
    code: str = "X, groups = ...  # an array with all rows, and the name of each row's group"
    variables: dict[str, str] | None = None

    @classmethod
    def of(cls, parts: Sequence[Any], names: Sequence[str], columns: Sequence[str], **known: Any) -> Explored:
        """Put datasets under one another: each is a group of the exploration."""
        if any(isinstance(part, Source) for part in parts):
            return cls._sampled(parts, names, columns, **known)
        tables = [part if isinstance(part, Table) else Table(part, list(columns)) for part in parts]
        values = np.concatenate([dense(table.values) for table in tables])
        counts = [table.values.shape[0] for table in tables]
        words = {role: _words(tables, role, counts) for role in ("ids", "labels")}
        return cls(list(columns), _groups(names, counts), values, **words, **known)

    @classmethod
    def _sampled(cls, parts: Sequence[Source], names: Sequence[str], columns: Sequence[str], **known: Any) -> Explored:
        """Draw rows of datasets that are larger than memory."""
        rng = np.random.default_rng(0)
        rows = [dense(part.sample(MOST_DRAWN // len(parts), rng)) for part in parts]
        groups = _groups(names, [len(part) for part in rows])
        sources: dict[str, Source] = {name: KeptSums(part) for name, part in zip(names, parts, strict=True)}
        return cls(list(columns), groups, np.concatenate(rows), sources=sources, **known)

    @property
    def in_memory(self) -> bool:
        """Whether all rows are in memory, so that any of them can be chosen."""
        return self.sources is None


def _groups(names: Sequence[str], counts: Sequence[int]) -> Groups:
    return Groups(tuple(names), np.repeat(np.arange(len(names)), counts))


def _words(tables: Sequence[Table], role: str, counts: Sequence[int]) -> Any:
    """Put the ids or labels of tables under one another; None if no table has any."""
    found = [getattr(table, role) for table in tables]
    if all(part is None for part in found):
        return None
    return np.concatenate(
        [np.full(count, "", dtype=object) if part is None else part for part, count in zip(found, counts, strict=True)]
    ).astype(object)


# --- the answer -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Answer:
    """What came out of a question.

    Attributes
    ----------
    question : Question
    model : estimator
        Fitted to the rows of the question.
    method : str
        What was done: without a background, PCA.
    names : list of str
        Of the target and the backgrounds.
    counts : list of int
        Numbers of their rows.
    ratios, errors : ndarray or None
        How many times as much as the backgrounds the target varies: on rows that were not fitted, with standard errors,
        or in the fitted rows (errors None). None without a background.
    shares : ndarray or None
        Without a background: the share of the target's variance along each component.
    correlations : ndarray of shape (n_components, n_columns)
        Of each column with each score, over the target's rows.
    warnings : list of Message
    """

    question: Question
    model: Any
    method: str
    names: list[str]
    counts: list[int]
    ratios: Float | None
    errors: Float | None
    shares: Float | None
    correlations: Float
    warnings: list[Message]

    @property
    def n_components(self) -> int:
        """Number of components."""
        return int(self.model.n_components_)

    @property
    def found(self) -> dict[str, Any]:
        """The values of the parameters that a rule has chosen, and the weights."""
        names = {"shrinkage": "shrinkage_", "alpha": "alpha_", "epsilon": "epsilon_", "background_weights": "weights_"}
        values = {name: getattr(self.model, attribute, None) for name, attribute in names.items()}
        return {
            name: np.ravel(value).tolist() for name, value in values.items() if value is not None and np.size(value)
        }


class Engine:
    """Answers questions about rows, and keeps what the next question may need.

    Several threads may ask at a time. Answers are those of the estimators' ``fit`` on the same rows.

    Attributes
    ----------
    data : Explored
    drawn : ndarray of int
        The rows that are drawn: all, or a fixed random sample.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.explorer import Engine, Explored, Groups, History
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> X[:100, 3] *= 5
    >>> data = Explored(["a", "b", "c", "d"], Groups.of(["ill"] * 100 + ["well"] * 200), X)
    >>> history = History(data.groups, [{"do": "choose", "side": "target", "groups": ["ill"]}, {"do": "rest"}])
    >>> answer = Engine(data).answer(history.state.question)
    >>> data.columns[np.argmax(np.abs(answer.correlations[0]))], answer.counts
    ('d', [100, 200])
    """

    def __init__(self, data: Explored) -> None:
        self.data = data
        n_rows = data.groups.n_rows
        self.drawn = drawn(n_rows, MOST_DRAWN, np.random.default_rng(0))
        small = 8 * len(self.drawn) * len(data.columns) <= MOST_COPIED
        self._drawn_rows = data.values[self.drawn] if small else None
        self._kept: dict[str, OrderedDict[Hashable, Any]] = {}
        self._lock = threading.Lock()

    # --- datasets ---

    def datasets(self, question: Question) -> list[Source]:
        """Give the target and the backgrounds of a question; those that were asked before have their sums."""
        if self.data.sources is not None:
            return [self._joined(side, question) for side in (question.target, *question.compared)]
        return [self._dataset(rows) for rows in question.rows(self.data.groups)]

    def _dataset(self, rows: RowSet) -> Source:
        def opened() -> Source:
            numbers = np.flatnonzero(rows.mask)
            return KeptSums(ChosenRows(self.data.values, numbers))

        return self._remembered("datasets", rows, opened, MOST_DATASETS)

    def _joined(self, side: Side, question: Question) -> Source:
        """Give the groups of a side as one dataset; rows that are not in memory cannot be chosen one by one."""
        assert self.data.sources is not None
        if side.rows is not None or question.left_out is not None:
            raise InvalidValueError(
                "these data are larger than memory, and only whole groups can be compared",
                advice="Choose groups. For single rows, use fewer columns or files that fit into memory.",
            )
        names = side.groups
        if side.rest:
            taken = () if side is question.target else question.target.groups
            names = tuple(name for name in self.data.groups.names if name not in taken)
        members = [self.data.sources[name] for name in names]
        return members[0] if len(members) == 1 else Joined(members)

    # --- answers ---

    @property
    def is_narrow(self) -> bool:
        """Whether sums are taken by several threads, and problems are so small that BLAS needs none of its own."""
        return len(self.data.columns) <= MOST_NARROW

    def answer(self, question: Question, *, held_out: bool = True) -> Answer:
        """What stands out in the target of this question?

        Parameters
        ----------
        question : Question
        held_out : bool, default=True
            Find also what the components are worth on rows that were not fitted. Without it, the answer is there at
            once wherever the sums are.

        Returns
        -------
        Answer
        """
        known: Answer | None = self._look_up("answers", (question, True))
        if known is not None:
            return known
        return self._remembered("answers", (question, held_out), lambda: self._answer(question, held_out), MOST_ANSWERS)

    def _answer(self, question: Question, held_out: bool) -> Answer:
        datasets = self.datasets(question)
        target, *backgrounds = datasets
        counts = [part.n_rows for part in datasets]
        for side, count in zip(("the target", *("a background" for _ in backgrounds)), counts, strict=True):
            if count is not None and count < 2:
                problem = "{side} has {count} row(s), but at least {limit} are needed"
                raise InvalidValueError(problem, side=side, count=count, limit=2, advice="Choose more rows.")
        model = self.estimator(question, held_out=held_out)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(target, background=backgrounds or None)
        said = [warning.message.message for warning in caught if isinstance(warning.message, CautionWarning)]
        moments = [part.count for part in model.__dict__.get("_sums", [])]
        kernel = question.method.startswith("k")
        known = counts if None not in counts or kernel else moments
        ratios, errors = _ratios(model, bool(backgrounds))
        correlations, shares = self._correlations(model, target, bool(backgrounds))
        return Answer(
            question,
            model,
            WORDS_OF_METHODS[question.method if backgrounds else "kpca" if kernel else "pca"],
            [question.target.name, *(side.name for side in question.compared)],
            [int(count or 0) for count in known],
            ratios,
            errors,
            shares,
            correlations,
            said,
        )

    def estimator(self, question: Question, *, held_out: bool = True) -> Any:
        """Give the estimator of a question, not yet fitted."""
        if question.method.startswith("k"):
            self._check_kernels(question)
        given = parameters(question, self.data.groups)
        return getattr(standout, METHODS[question.method])(**given, **({} if held_out else {"held_out": None}))

    def _check_kernels(self, question: Question) -> None:
        if not self.data.in_memory:
            problem = "kernels need rows in memory, and these data are larger"
            raise InvalidValueError(problem, advice="Choose another method.")
        n_rows = sum(rows.count for rows in question.rows(self.data.groups))
        if n_rows > MOST_KERNEL_ROWS:
            raise InvalidValueError(
                "the kernels of {n_rows:,} rows take too long to look at while you wait",
                n_rows=n_rows,
                limit=MOST_KERNEL_ROWS,
                advice="Choose fewer rows, at most {limit:,}, or use standout fit.",
            )

    def _correlations(self, model: Any, target: Source, compared: bool) -> tuple[Float, Float | None]:
        """Correlate columns with scores over the target's rows; without a background, give shares of the variance."""
        kept = model.__dict__.get("_sums", [])
        if hasattr(model, "patterns_") and kept:
            moments: Moments = kept[0]
            covariances = moments.apply(model.components_.T).T
            variances, total = moments.variances, moments.total_variance
        else:
            rows = np.asarray(dense(target.rows()), dtype=np.float64)
            scores = model.transform(rows)
            centred = rows - rows.mean(axis=0)
            covariances = (scores - scores.mean(axis=0)).T @ centred / len(rows)
            variances = np.einsum("ij,ij->j", centred, centred) / len(rows)
            total = float(variances.sum())
        own = np.maximum(model.target_variance_, 0.0)
        lengths = np.sqrt(own)[:, np.newaxis] * np.sqrt(np.maximum(variances, 0.0))
        found = np.divide(covariances, lengths, out=np.zeros_like(covariances), where=lengths > 0.0)
        linear = hasattr(model, "patterns_") and total > 0.0
        return np.clip(found, -1.0, 1.0), own / total if linear and not compared else None

    # --- scores and what follows from them ---

    def scores(self, question: Question, numbers: npt.NDArray[np.intp] | None = None) -> Float:
        """Give the scores of rows, by their numbers, along the components of an answer; None means the drawn rows."""
        model = self.answer(question, held_out=False).model
        if numbers is None and self._drawn_rows is not None:
            return np.asarray(model.transform(self._drawn_rows))
        return np.asarray(model.transform(self.data.values[self.drawn if numbers is None else numbers]))

    def lassoed(self, question: Question, axes: tuple[int, int], polygon: Sequence[Sequence[float]]) -> RowSet:
        """Give the rows, of all, whose scores lie within a lasso."""
        return RowSet.of(self.plane(question, axes).inside(np.asarray(polygon, dtype=np.float64)))

    def plane(self, question: Question, axes: tuple[int, int]) -> Plane:
        """Give the scores of all rows along two components, ready for lassos."""

        def projected() -> Plane:
            model = self.answer(question, held_out=False).model
            chunks = np.array_split(np.arange(self.data.groups.n_rows), max(self.data.groups.n_rows // 65536, 1))
            parts = in_order(lambda rows: np.asarray(model.transform(self.data.values[rows])), chunks)
            return Plane.of(on_axes(np.concatenate(list(parts)), axes))

        return self._remembered("scores", (question, axes), projected, MOST_SCORES)

    def distribution(self, question: Question, column: int) -> dict[str, Any]:
        """Give how a column is spread in the target and in each background, over all rows: shares in bins."""
        values = np.asarray(self.data.values[:, column], dtype=np.float64)
        sides = self._rows_shown(question)
        some = np.concatenate([values[rows][:MOST_DRAWN] for rows in sides])
        low, high = np.quantile(some, [0.005, 0.995]) if len(some) else (0.0, 1.0)
        if not high > low:
            low, high = low - 0.5, high + 0.5
        scale = N_BINS / (high - low)
        shares = []
        for rows in sides:
            bins = np.clip((values[rows] - low) * scale, 0, N_BINS - 1).astype(np.intp)
            shares.append((np.bincount(bins, minlength=N_BINS) / max(len(bins), 1)).tolist())
        means = [float(values[rows].mean()) if rows.any() else 0.0 for rows in sides]
        return {"low": float(low), "high": float(high), "shares": shares, "means": means}

    def _rows_shown(self, question: Question) -> list[Mask]:
        """Give the rows of each side among those that are in memory."""
        return [rows.mask for rows in question.rows(self.data.groups)]

    def outlying(self, question: Question) -> list[tuple[int, float]]:
        """Give rows of the target that lie far from the others, with their distances in robust standard deviations."""
        rows = np.flatnonzero(self._rows_shown(question)[0])
        if len(rows) < 8:
            return []
        scores = self.scores(question, rows)
        middle = np.median(scores, axis=0)
        spread = MAD_TO_SPREAD * np.median(np.abs(scores - middle), axis=0)
        far = np.max(np.divide(np.abs(scores - middle), spread, out=np.zeros_like(scores), where=spread > 0), axis=1)
        order = np.argsort(-far)[:MOST_OUTLYING]
        return [(int(rows[place]), float(far[place])) for place in order if far[place] > OUTLYING]

    def verdict(self, question: Question, told: Callable[[int, int, int, float], None]) -> ComponentTest:
        """Find out which components are more than chance.

        `told` is called after each reshuffling of the rows, as in `standout.selection.component_test`; what it raises
        ends the test.
        """
        answer = self.answer(question)
        target, *backgrounds = self.datasets(question)
        rows: list[Any] = [part.rows() if part.in_memory else part for part in (target, *backgrounds)]
        return fitted_test(answer.model, rows[0], rows[1:], n_components=answer.n_components, progress=told)

    # --- what is kept ---

    def _look_up(self, kind: str, key: Hashable) -> Any:
        with self._lock:
            return self._kept[kind].get(key) if kind in self._kept else None

    def _remembered(self, kind: str, key: Hashable, made: Callable[[], Thing], most: int) -> Thing:
        """Give something that was made before, or make it; the oldest is forgotten."""
        found = self._look_up(kind, key)
        if found is None:
            found = made()
        with self._lock:
            kept = self._kept.setdefault(kind, OrderedDict())
            found = kept.setdefault(key, found)
            kept.move_to_end(key)
            while len(kept) > most:
                kept.popitem(last=False)
        return found


def _ratios(model: Any, compared: bool) -> tuple[Float | None, Float | None]:
    if not compared:
        return None, None
    if hasattr(model, "held_out_ratio_"):
        return model.held_out_ratio_, model.held_out_ratio_error_
    against = model.weights_ @ model.background_variance_
    own = model.target_variance_
    return np.divide(own, against, out=np.full_like(own, np.inf), where=against > 0.0), None


def on_axes(scores: Float, axes: tuple[int, int]) -> Float:
    """Give two of the scores; a second axis that there is none for is zero."""
    columns = [scores[:, axis] if axis < scores.shape[1] else np.zeros(len(scores)) for axis in axes]
    return np.stack(columns, axis=1)
