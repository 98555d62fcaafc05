"""What is done to all datasets alike before a fit: the same columns, no gaps, and one step for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from standout._arrays import all_finite, is_sparse
from standout._checks import check_same_columns
from standout._messages import InvalidValueError, Message, dataset_names
from standout.io._preparation import Preparation
from standout.io._scan import Scan
from standout.io._table import check_cells, rows_with_missing
from standout.sources import Batch, Source, Table, open_dataset


@dataclass(frozen=True, eq=False)
class Prepared:
    """What goes into the fit, and what was done to it?

    Attributes
    ----------
    target : Table or Source
    backgrounds : list of Table or Source
    notes : list of Message
        What was changed.
    step : Preparation
        The same for new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table, prepare
    >>> gaps = Table(np.array([[1.0, np.nan], [3.0, 4.0]]), ["weight", "length"])
    >>> prepared = prepare(gaps, [], missing="mean")
    >>> prepared.target.values.tolist(), str(prepared.notes[0])
    ([[1.0, 4.0], [3.0, 4.0]], '1 missing value(s) were filled in with the mean of the column over all rows.')
    """

    target: Any
    backgrounds: list[Any]
    notes: list[Message]
    step: Preparation


def prepare(
    target: Table | Source,
    backgrounds: Sequence[Table | Source],
    *,
    log1p: bool = False,
    standardize: str = "none",
    missing: str = "error",
    copy: bool = True,
    names: Sequence[str] | None = None,
) -> Prepared:
    """How do these datasets become what a method can be fitted to?

    Parameters
    ----------
    target, backgrounds : Table or scan, sequence of them
        With the same columns, in any order if they have names.
    log1p : bool
        Whether log(1 + x) is taken of every value, as is usual for counts.
    standardize : {"none", "background", "pooled"}
        Whether columns are centred and divided by their standard deviation: that over the rows of all backgrounds, or
        over those of all datasets. It is the same for all datasets: standardising each one by itself would remove the
        differences that are looked for.
    missing : {"error", "drop-rows", "drop-columns", "mean"}
        What to do about missing values: refuse them, leave out the rows or (in all datasets) the columns that have
        some, or fill in the mean of the column over all rows of all datasets. It replaces what a scan was told.
    copy : bool
        Whether the values of tables are left as they are. If not, their memory is used for the result, and the tables
        given must not be used any more: that is for data so large that there is no room for two of them.
    names : sequence of str, optional
        What notes and messages call the datasets.

    Returns
    -------
    Prepared
        The datasets, what was done, and the step that does the same to new rows.

    Notes
    -----
    A column that is constant where its deviation is taken keeps its scale. Sparse data stay sparse: they are divided by
    the standard deviation but not centred, and neither are dense ones beside them. Every linear method centres each
    dataset itself, so that this does not change its result.

    A scan is read once for the statistics that are needed, and transformed batch by batch when it is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table, prepare
    >>> target = Table(np.array([[0.0, 1.0], [2.0, 3.0]]), ["a", "b"])
    >>> background = Table(np.array([[3.0, 0.0], [5.0, 4.0]]), ["b", "a"])
    >>> prepare(target, [background]).backgrounds[0].columns
    ['a', 'b']
    """
    called = list(names) if names is not None else dataset_names(1 + len(backgrounds))
    step = Preparation(log1p, standardize=standardize, missing=missing)
    step._check_choices()
    given = [target, *backgrounds]
    datasets = match_columns(given, called)
    notes: list[Message] = []
    for number, name in enumerate(called):
        datasets[number] = _without_gaps(datasets[number], name, missing, notes)
    opened = [open_dataset(data, name, min_rows=1) for data, name in zip(datasets, called, strict=True)]
    notes += step._learn(opened, called)
    # A table that is given twice must not be changed twice.
    own = [
        (not copy or not _share_memory(data, given[number]))
        and not any(_share_memory(data, other) for other in (*datasets[:number], *datasets[number + 1 :]))
        for number, data in enumerate(datasets)
    ]
    prepared = [_prepared(data, step, name, own=o) for data, name, o in zip(datasets, called, own, strict=True)]
    return Prepared(prepared[0], prepared[1:], notes, step)


def _prepared(dataset: Table | Source, step: Preparation, name: str, *, own: bool) -> Table | Source:
    if step.changes_nothing:
        return dataset
    if isinstance(dataset, Table):
        values = step.transform(dataset.values, copy=not own, name=name)
        return replace(dataset, values=values, columns=step.get_feature_names_out().tolist())
    made: Source = step.transform(dataset)
    if hasattr(step, "feature_names_in_"):
        # A step of a pipeline gives rows without names; here they are known.
        made.columns = step.get_feature_names_out().tolist()
    return made


def _share_memory(first: Any, second: Any) -> bool:
    if not (isinstance(first, Table) and isinstance(second, Table)):
        return False
    one, other = (part.values.data if is_sparse(part.values) else part.values for part in (first, second))
    return bool(np.may_share_memory(one, other))


def _without_gaps(dataset: Any, name: str, missing: str, notes: list[Message]) -> Any:
    """Refuse missing values, or leave out the rows that have some, or leave them to the step; refuse infinite ones."""
    if isinstance(dataset, Scan):
        return dataset.with_missing(missing if missing in ("error", "drop-rows") else "keep")
    if not isinstance(dataset, Table) or all_finite(dataset.values):
        return dataset
    check_cells(dataset.values, missing == "error", name, dataset.columns, dataset.ids)
    if missing != "drop-rows":
        return dataset
    kept = np.flatnonzero(~rows_with_missing(dataset.values))
    n_dropped = dataset.values.shape[0] - len(kept)
    if not len(kept):
        raise InvalidValueError(
            "each of the {count} row(s) of {name} has a missing value, and none would be left",
            count=n_dropped,
            name=name,
            advice="Use {p.missing:drop-columns} or {p.missing:mean}.",
        )
    if not n_dropped:
        return dataset
    notes.append(Message("{count} row(s) of {name} with a missing value were left out", count=n_dropped, name=name))
    words = {name: getattr(dataset, name) for name in ("ids", "labels", "groups", "beside")}
    found = Batch(dataset.values, **words).taken(kept, 0)
    return replace(dataset, values=found.rows, **{name: getattr(found, name) for name in words})


# --- the same columns -----------------------------------------------------------------------------------------------


def match_columns(datasets: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Put the columns of all datasets in the order of the first; those without names must be as many."""
    first, *others = datasets
    return [first, *(_in_order(data, first, name, names[0]) for data, name in zip(others, names[1:], strict=True))]


def _in_order(dataset: Any, first: Any, name: str, reference: str) -> Any:
    own, columns = _columns_of(dataset), _columns_of(first)
    if not (_has_names(dataset) and _has_names(first)):
        check_same_columns(len(own), None, name, len(columns), None, reference, "Give every dataset the same columns.")
        if isinstance(dataset, Table):
            return replace(dataset, columns=list(columns), has_names=_has_names(first))
        return dataset
    if own == columns:
        return dataset
    if set(own) != set(columns) or len(own) != len(columns):
        check_same_columns(
            len(own),
            own,
            name,
            len(columns),
            columns,
            reference,
            "Give every dataset the same columns, in any order. Choose some with {p.columns} or {p.drop}.",
        )
    if isinstance(dataset, Scan):
        return dataset.with_columns(columns)
    if isinstance(dataset, Table):
        place = {column: number for number, column in enumerate(own)}
        return replace(dataset, values=dataset.values[:, [place[c] for c in columns]], columns=list(columns))
    return Preparation()._set(columns, len(columns)).transform(dataset)


def _columns_of(dataset: Any) -> list[str]:
    columns = dataset.columns
    return [f"x{number}" for number in range(dataset.width)] if columns is None else list(columns)


def _has_names(dataset: Any) -> bool:
    return dataset.has_names if isinstance(dataset, Table) else dataset.columns is not None
