"""Rows and groups made from rows: changes, stretches of time, variation within subjects; and steps of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import config_context, get_config

from standout._arrays import Float, Rows, copied, dense, double, is_sparse
from standout._messages import InvalidValueError
from standout._xp import is_foreign
from standout.sources._base import Mapped, Source
from standout.sources._form import as_rows, keys_of
from standout.sources._open import as_words


def differences(before: Any, after: Any) -> Float:
    """What has changed in each subject between two measurements?

    Row i of both tables is the same subject. Whatever a subject has in both measurements cancels. Differences are
    divided by √2, so that differences of replicates have the variance of a row about its subject.

    For a before/after design use these differences as the target, and those of two measurements of the same state as
    the background.

    Parameters
    ----------
    before, after : array-like or frame of shape (n_subjects, n_features)

    Returns
    -------
    ndarray of shape (n_subjects, n_features)

    Examples
    --------
    >>> import standout
    >>> standout.differences([[1.0, 5.0], [10.0, 0.0]], [[2.0, 5.0], [14.0, 0.0]]) * 2**0.5
    array([[1., 0.],
           [4., 0.]])
    """
    first, second = (_in_double(data, name) for data, name in ((before, "`before`"), (after, "`after`")))
    keys, others = keys_of(before), keys_of(after)
    if first.shape != second.shape or (keys is not None and others is not None and keys != others):
        problem = f"`before` has shape {first.shape} and `after` has shape {second.shape}, or other columns"
        raise InvalidValueError(problem, advice="Give the same subjects and columns in both, in the same order.")
    return (second - first) / np.sqrt(2.0)


def blocks(n_rows: int, length: int) -> npt.NDArray[np.intp]:
    """Which rows of a recording belong together?

    Neighbouring rows of a time series are alike. Blocks of them are used as `groups`, so that folds and permutations
    keep neighbours together. The last block may have up to half as many rows more.

    Parameters
    ----------
    n_rows : int
        Number of rows, in the order of time.
    length : int
        Rows of a block: longer than the time over which rows depend on each other.

    Returns
    -------
    ndarray of int of shape (n_rows,)

    Examples
    --------
    >>> import standout
    >>> standout.blocks(7, 3)
    array([0, 0, 0, 1, 1, 1, 1])
    """
    if not 1 <= length <= n_rows:
        raise InvalidValueError(f"is outside [1, {n_rows}]", parameter="length", value=length)
    return np.minimum(np.arange(n_rows) // length, max(round(n_rows / length), 1) - 1)


def within(X: Any, groups: Any) -> Float:
    """What varies inside of subjects, apart from how they differ?

    Return the rows less the mean of their subject. They are scaled by √(n / (n - k)) for n rows of k subjects, so that
    their variance is that of rows about their subject's true mean.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
    groups : array-like of shape (n_rows,)
        The subject of each row.

    Returns
    -------
    ndarray of shape (n_rows, n_features)

    Examples
    --------
    >>> import standout
    >>> standout.within([[1.0], [3.0], [10.0], [14.0]], ["a", "a", "b", "b"]) / 2**0.5
    array([[-1.],
           [ 1.],
           [-2.],
           [ 2.]])
    """
    rows = _in_double(X, "X")
    names, codes = np.unique(as_words(groups, len(rows), "X", "groups"), return_inverse=True)
    if len(names) == len(rows):
        advice = "Use the rows as they are."
        raise InvalidValueError(
            "names every subject once, so that nothing varies within", parameter="groups", advice=advice
        )
    sums = np.zeros((len(names), rows.shape[1]))
    np.add.at(sums, codes, rows)
    left = rows - (sums / np.bincount(codes)[:, None])[codes]
    return left * np.sqrt(len(rows) / (len(rows) - len(names)))


def _in_double(data: Any, name: str) -> Float:
    return np.asarray(double(dense(as_rows(data, name, keys=keys_of(data)))))


# --- steps of a pipeline ----------------------------------------------------------------------------------------------


def transformed(source: Source, steps: Sequence[Any]) -> Source:
    """Return a source whose batches go through fitted transformers of scikit-learn, where the batches are.

    The transformers must work row by row.
    """
    change = _Steps(tuple(steps), source.keys if source.columns else None, source.name)
    made = change.made(source.first_row())
    found = Mapped(source, change, keys_of(made))
    found.width = int(made.shape[1])
    return found


@dataclass(frozen=True, eq=False)
class _Steps:
    """From rows to what fitted steps make of them."""

    steps: tuple[Any, ...]
    columns: list[Any] | None
    name: str
    # Settings of scikit-learn belong to a thread.
    settings: dict[str, Any] = field(default_factory=get_config)

    def __call__(self, rows: Rows) -> Rows:
        name, made = f"{self.name} after the steps before the last", self.made(rows)
        found = as_rows(made, name, keys=keys_of(made))
        if found.shape[0] != rows.shape[0]:
            problem = f"there are {found.shape[0]} row(s) in {name}, but {rows.shape[0]} before the steps"
            raise InvalidValueError(problem, advice="Data that are read in batches need steps that work row by row.")
        return found

    def made(self, rows: Rows) -> Any:
        """Return what the steps make of rows, given as a frame if the columns have names."""
        data: Any = copied(rows)
        named = self.columns is not None and hasattr(self.steps[0], "feature_names_in_")
        if named and not is_sparse(rows) and not is_foreign(rows):
            data = import_module("pandas").DataFrame(data, columns=self.columns, copy=False)
        with config_context(**self.settings):
            for step in self.steps:
                data = step.transform(data)
        return data
