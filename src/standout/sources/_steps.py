"""Steps of a pipeline over datasets that are read in parts: fitting them, and the dataset that they leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from standout._arrays import Rows, copied, is_sparse
from standout._checks import as_rows, check_same_columns, column_names
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import is_foreign
from standout.sources._base import Batch, InMemory, Source, Table, as_source
from standout.sources._beside import Around

FROZEN = "as sklearn.frozen.FrozenEstimator(fitted)."


class Transformed(Around):
    """A source whose batches go through fitted transformers, one after the other.

    Each batch is transformed where it is worked on: in the threads of a scan, on the workers of Dask. The transformers
    must work row by row; nothing here can check that.

    Attributes
    ----------
    host : Source
        The dataset as it is.
    steps : tuple of transformers
        Fitted, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from standout.sources import Transformed, open_dataset
    >>> scaler = StandardScaler().fit([[0.0, 0.0], [2.0, 4.0]])
    >>> rows = open_dataset(iter([np.ones((1, 2)), np.zeros((1, 2))]), "the target")
    >>> [part.tolist() for part in Transformed(rows, (scaler,)).parts()]
    [[[0.0, -0.5]], [[-1.0, -1.0]]]
    """

    change: _Transform

    def __init__(self, host: Source, steps: tuple[Any, ...]) -> None:
        super().__init__(host, _Transform(steps, host.columns, host.name))
        self.steps = steps
        self._row: Rows | None = None

    def _learn_columns(self) -> None:
        """Leave the columns to `looked_at`: they are those that the steps make."""

    # The steps may be there to fill in what is missing.
    require_finite = Source.require_finite

    def then(self, step: Any) -> Transformed:
        """Give the same dataset after one more step."""
        further = Transformed(self.host, (*self.steps, step))
        further._row = self._row
        return further

    def looked_at(self) -> Transformed:
        """Give the same dataset with its columns known, from what the steps make of its first row."""
        row = copied(self.host.first(1)) if self._row is None else self._row
        # An iterator tells its names with its first batch.
        seen = Transformed(self.host, self.steps)
        seen._row = row
        made = seen.change.made(row)
        # A table may hold words as long as further steps make numbers of them; what is no table is refused here.
        if len(getattr(made, "shape", ())) != 2 or seen.specimen is not None:
            made = as_rows(made, seen.change.label, min_rows=1)
        seen.columns, seen.width = column_names(made), made.shape[1]
        if seen.specimen is not None:
            seen.specimen = made
        seen.expect(seen.width, "its first row")
        return seen

    def called(self, name: str, min_rows: int) -> Self:
        """Give the same dataset under the name that messages are to use."""
        named = super().called(name, min_rows)
        named.change = replace(self.change, name=name)
        return named

    def expect(self, width: int, reference: str) -> None:
        """Hold what the steps make of each part to a number of columns, that of a reference."""
        self.change = replace(self.change, width=width, reference=reference)

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, transformed."""
        return (self.change.batch(batch) for batch in self.host.batches() if batch.n_rows)


def as_input(steps: tuple[Any, ...], rows: Rows, columns: list[str] | None) -> Any:
    """Give rows to transformers as the first would get them in memory: as a frame, if the columns have names."""
    if any(map(_may_write, steps)):
        # A source may give the same rows again.
        rows = copied(rows)
    without_names = any(
        hasattr(step, "n_features_in_") and not hasattr(step, "feature_names_in_") for step in steps[:1]
    )
    if columns is None or without_names or is_sparse(rows) or is_foreign(rows):
        return rows
    try:
        pandas = import_module("pandas")
    except ImportError:
        return rows
    return pandas.DataFrame(rows, columns=columns, copy=False)


def at_hand(data: Any) -> Any:
    """Give a table, or a source in memory, as scikit-learn takes it: a frame, if the columns have names.

    All other data are given as they are.
    """
    if not isinstance(data, Table | InMemory):
        return data
    source = as_source(data, "the data", min_rows=0)
    return as_input((), source.rows(), source.columns)


def _may_write(step: Any) -> bool:
    """Tell whether a step, or one within it, was told that it need not copy its input."""
    inner = step.estimator if isinstance(step, FrozenEstimator) else step
    params = inner.get_params() if hasattr(inner, "get_params") else {}
    return any(value is False for name, value in params.items() if name.rpartition("__")[2] == "copy")


@dataclass(frozen=True, eq=False)
class _Transform:
    """From rows to what fitted steps make of them; the sums of a checkpoint are known by the fields that compare."""

    steps: tuple[Any, ...]
    columns: list[str] | None
    name: str = field(compare=False)
    width: int | None = field(default=None, compare=False)
    reference: str = field(default="", compare=False)
    # What steps give, arrays or frames, may be a setting of scikit-learn's, and these are those of a thread.
    settings: dict[str, Any] = field(default_factory=get_config, compare=False)
    needs_start: ClassVar[bool] = False

    def rows(self, rows: Rows) -> Rows:
        """Give what the steps make of rows, checked."""
        if not rows.shape[0]:
            # Transformers refuse to transform nothing.
            return np.zeros((0, self.width or rows.shape[1]))
        made = as_rows(self.made(rows), self.label, min_rows=0, finite=True)
        if made.shape[0] != rows.shape[0]:
            problem = "there are {n_rows} row(s) in {name} for {limit} before them"
            advice = "Data that are read in parts need steps that work row by row: choose the rows beforehand."
            facts = {"n_rows": made.shape[0], "name": self.label, "limit": rows.shape[0]}
            raise InvalidValueError(problem, advice=advice, **facts)
        if self.width is not None:
            check_same_columns(
                made.shape[1], None, self.label, self.width, None, self.reference, "Use steps that work row by row."
            )
        return made

    def batch(self, batch: Batch) -> Batch:
        """Give a batch with what the steps make of its rows; an error counts rows over the whole dataset."""
        try:
            return batch.with_rows(self.rows(batch.rows))
        except InvalidValueError as error:
            if isinstance(error.facts.get("row"), int):
                error.facts["row"] += batch.start
            raise

    @property
    def label(self) -> str:
        """What messages call the rows that the steps have made."""
        return f"{self.name} after the steps before the last"

    def made(self, rows: Rows) -> Any:
        """Give what the steps make of rows, as the last of them leaves it."""
        made = as_input(self.steps, rows, self.columns)
        with config_context(**self.settings):
            for step in self.steps:
                made = step.transform(made)
        return made


# --- fitting steps ---------------------------------------------------------------------------------------------------


def is_step(step: Any) -> bool:
    """Tell a transformer from None and "passthrough", which stand for none."""
    return step is not None and not (isinstance(step, str) and step == "passthrough")


def step_name(name: str, step: Any) -> str:
    """Give what messages call a step."""
    return f"step {name!r} ({type(step).__name__})"


def takes_parts(step: Any) -> bool:
    """Tell whether a step is one of ours, which take data in parts as they take arrays."""
    return bool(getattr(type(step), "_takes_parts", False))


def takes_sources(step: Any) -> bool:
    """Tell whether `transform` of a step takes a source, and gives another one."""
    return bool(getattr(type(step), "_takes_sources", False))


def check_steps(steps: Sequence[tuple[str, Any]], target: Any) -> None:
    """Refuse steps that cannot be fitted to the target, before any of it is read."""
    if not isinstance(target, Source):
        return
    for name, step in steps:
        if not is_step(step) or isinstance(step, FrozenEstimator) or _is_stateless(step):
            continue
        if not (takes_parts(step) or hasattr(step, "partial_fit")):
            problem = "{step} has no partial_fit, and is fitted to all rows at once, but the target is read in parts"
            advice = "Use a step with partial_fit, or give one that is fitted to a sample, " + FROZEN
            raise InvalidTypeError(problem, step=step_name(name, step), advice=advice)
        if not target.again:
            problem = "{step} is fitted before the last step is, but an iterator of batches can be read only once"
            advice = "Give a target that can be read again, such as standout.scan, or a step that is fitted, " + FROZEN
            raise InvalidTypeError(problem, step=step_name(name, step), advice=advice)


def fit_step(step: Any, target: Any, y: Any, backgrounds: list[Any]) -> tuple[Any, Any]:
    """Fit a copy of a step to the target, and give it with the transformed target.

    If the target is read in parts, a step with `partial_fit` sees one part after the other. A step that has nothing to
    learn sees one row, for the number and the names of the columns.
    """
    # A clone: what a step has learned in an earlier fit must not go into this one.
    fresh = clone(step)
    if takes_parts(fresh):
        fresh.fit(target, y, background=backgrounds or None)
        return fresh, transformed(target, fresh)
    if not isinstance(target, Source):
        if hasattr(fresh, "fit_transform"):
            return fresh, fresh.fit_transform(target, y)
        return fresh.fit(target, y), fresh.transform(target)
    if isinstance(fresh, FrozenEstimator):
        fresh.fit(None, None)  # raises if it is not fitted
    elif _is_stateless(fresh):
        fresh.fit(as_input((fresh,), target.first(1), target.columns))
    else:
        fresh = target.folded(partial(_learned, target.columns), fresh)
    return fresh, transformed(target, fresh)


def transformed(data: Any, step: Any) -> Any:
    """Give a dataset after a fitted step: rows at once, a source lazily."""
    if takes_sources(step):
        return step.transform(data)
    if isinstance(data, Transformed):
        return data.then(step).looked_at()
    if isinstance(data, Source):
        return Transformed(data, (step,)).looked_at()
    return step.transform(data)


def _is_stateless(step: Any) -> bool:
    return hasattr(step, "__sklearn_tags__") and not get_tags(step).requires_fit


def _learned(columns: list[str] | None, step: Any, rows: Rows) -> Any:
    return step.partial_fit(as_input((step,), rows, columns))
