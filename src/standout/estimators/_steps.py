"""Steps before the last of a pipeline, where some of the data are read in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from standout._arrays import Rows
from standout._validation import check_learns_from_parts, check_read_again
from standout.sources import Source, Transformed, as_input


def is_step(step: Any) -> bool:
    """Tell a transformer from the words that stand for none."""
    return step is not None and not (isinstance(step, str) and step == "passthrough")


def named(name: str, step: Any) -> str:
    """Give what messages call a step."""
    return f"step {name!r} ({type(step).__name__})"


def check_steps(steps: Sequence[tuple[str, Any]], target: Any) -> None:
    """Refuse what cannot be fitted to the target, before any of it is read."""
    if not isinstance(target, Source):
        return
    for name, step in steps:
        if not is_step(step) or isinstance(step, FrozenEstimator) or _is_stateless(step):
            continue
        check_learns_from_parts(takes_parts(step) or hasattr(step, "partial_fit"), named(name, step), target)
        check_read_again(target, named(name, step))


def takes_parts(step: Any) -> bool:
    """Tell whether a step is one of ours, which take data in parts as they take arrays."""
    return bool(getattr(type(step), "_takes_parts", False))


def fit_step(step: Any, target: Any, y: Any, backgrounds: list[Any]) -> tuple[Any, Any]:
    """Fit a copy of a step to the target, and give it with the target as it leaves it.

    Of a target that is read in parts, a step with `partial_fit` sees one part after the other. One that has nothing
    to learn sees a row, for the number and the names of the columns.
    """
    # What a step has learned in an earlier fit must not go on into this one.
    fresh = clone(step)
    if takes_parts(fresh):
        fresh.fit(target, y, background=backgrounds or None)
        return fresh, transformed(target, fresh)
    if not isinstance(target, Source):
        if hasattr(fresh, "fit_transform"):
            return fresh, fresh.fit_transform(target, y)
        return fresh.fit(target, y), fresh.transform(target)
    if isinstance(fresh, FrozenEstimator):
        fresh.fit(None, None)  # sees to it that it is fitted
    elif _is_stateless(fresh):
        fresh.fit(as_input((fresh,), target.first(1), target.columns))
    else:
        fresh = target.folded(_Learning(target.columns), fresh)
    return fresh, transformed(target, fresh)


def transformed(data: Any, step: Any) -> Any:
    """Give a dataset as a fitted step leaves it: rows at once, and parts when they are read."""
    if isinstance(data, Transformed):
        return data.then(step).looked_at()
    if isinstance(data, Source):
        return Transformed(data, (step,)).looked_at()
    return step.transform(data)


def _is_stateless(step: Any) -> bool:
    return hasattr(step, "__sklearn_tags__") and not get_tags(step).requires_fit


@dataclass(frozen=True, eq=False)
class _Learning:
    """What a part adds to what a step has learned: it may be sent to where the part is."""

    columns: list[str] | None

    def __call__(self, step: Any, rows: Rows) -> Any:
        return step.partial_fit(as_input((step,), rows, self.columns))
