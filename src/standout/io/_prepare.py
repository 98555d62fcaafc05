"""What is done to all datasets alike before a fit: logarithm, missing values, scale; as one step of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Array, Float, Rows, dense, is_sparse, row_blocks
from standout._checks import as_rows, check_same_columns, check_squares, column_names
from standout._messages import InvalidValueError, Message, choices, dataset_names, listed
from standout.io._scan import first_cell
from standout.sources import Batch, Table, Transformed

STANDARDS = ("none", "background", "pooled")
MISSING = ("error", "drop-rows", "drop-columns", "mean")
# A spread below this share of the mean is what rounding leaves of a constant.
ROUNDING = 10 * np.finfo(np.float64).eps


class Preparation(TransformerMixin, BaseEstimator):
    """What was done to the columns before the fit, and is to be done to new rows?

    A fitted step that works row by row, made by :func:`prepare`. In this order: columns are dropped, log(1 + x) is
    taken, missing values are filled in, a centre is subtracted, and the rest is divided by a scale.

    Parameters
    ----------
    log1p : bool, default=False
        Whether log(1 + x) is taken of every value.
    missing : {"error", "drop-rows", "drop-columns", "mean"}, default="error"
        What was done about missing values. Rows cannot be left out here: with "drop-rows", whoever reads new rows
        leaves out those that have a missing value.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        Columns that come in, if they have names. Those of a frame are found by name.
    n_features_in_ : int
    kept_ : ndarray of int
        Positions of the columns that come out.
    fill_, centre_, scale_ : ndarray or None
        One number for each column that comes out; None if nothing is filled in or scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table, prepare
    >>> target = Table(np.array([[1.0, 10.0], [3.0, 30.0]]), ["weight", "length"])
    >>> background = Table(np.array([[0.0, 10.0], [2.0, 30.0]]), ["weight", "length"])
    >>> step = prepare(target, [background], standardize="background").step
    >>> step.transform([[3.0, 20.0]])
    array([[2., 0.]])
    """

    # For pipelines: new rows are given as they are, not as a frame with names.
    _takes_rows = True

    def __init__(self, log1p: bool = False, missing: str = "error") -> None:
        self.log1p = log1p
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> Preparation:
        """Keep all columns, and neither fill in nor scale; what is learned is set by `prepare`."""
        rows = as_rows(X, "the data", min_rows=1)
        return self._set(column_names(X), rows.shape[1])

    def _set(
        self,
        names: Sequence[str] | None,
        width: int,
        kept: npt.NDArray[np.intp] | None = None,
        fill: Float | None = None,
        centre: Float | None = None,
        scale: Float | None = None,
    ) -> Preparation:
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self.n_features_in_ = width
        self.kept_ = np.arange(width) if kept is None else kept
        self.fill_, self.centre_, self.scale_ = fill, centre, scale
        return self

    @property
    def _names(self) -> list[str]:
        """Names of the columns that come in, made up if they have none."""
        named = getattr(self, "feature_names_in_", None)
        return [f"x{number}" for number in range(self.n_features_in_)] if named is None else [str(n) for n in named]

    def transform(self, X: Any, *, copy: bool = True, name: str = "the data") -> Rows:
        """Give rows as they go into the fit.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        copy : bool, default=True
            Whether X is left as it is. If not, its memory may be used for the result.
        name : str
            What messages call the rows.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_kept)
        """
        check_is_fitted(self, "kept_")
        found = as_rows(X, name, min_rows=0)
        rows = self._chosen(X, found, name)
        if self.centre_ is not None and self.centre_.any():
            # A sparse matrix minus a centre is dense.
            rows = dense(rows)
        rows = _writable(rows, copy=copy and rows is found)
        if self.log1p:
            _take_logarithms(rows, self.get_feature_names_out().tolist(), name)
        if self.fill_ is not None:
            _fill_missing(rows, self.fill_)
        if self.centre_ is not None and self.scale_ is not None:
            _shift_and_scale(rows, self.centre_, self.scale_)
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Name the columns that come out."""
        check_is_fitted(self, "kept_")
        return np.asarray(self._names, dtype=object)[self.kept_]

    def _chosen(self, X: Any, rows: Rows, name: str) -> Rows:
        """Give the columns that come out: by name, if the rows have names."""
        names = column_names(X)
        kept = self.kept_
        if names is not None and hasattr(self, "feature_names_in_"):
            known = {column: place for place, column in enumerate(names)}
            wanted = self.get_feature_names_out().tolist()
            if any(column not in known for column in wanted):
                check_same_columns(len(names), names, name, len(wanted), wanted, "the data of the fit")
            kept = np.array([known[column] for column in wanted], dtype=np.intp)
        else:
            check_same_columns(rows.shape[1], None, name, self.n_features_in_, None, "the data of the fit")
        if len(kept) == rows.shape[1] and np.array_equal(kept, np.arange(len(kept))):
            return rows
        return rows[:, kept]


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
    target: Any,
    backgrounds: Sequence[Any],
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
    missing : {"error", "drop-columns", "mean"}
        What to do about missing values: refuse them, leave out (in all datasets) the columns that have some, or fill in
        the mean of the column over all rows of all datasets. Rows with missing values are left out when a file is read:
        ``scan(..., missing="drop-rows")``.
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
    _check_choice(standardize, "standardize", STANDARDS)
    _check_choice(missing, "missing", MISSING)
    called = list(names) if names is not None else dataset_names(1 + len(backgrounds))
    datasets = match_columns([target, *backgrounds], called)
    columns = _columns_of(datasets[0])
    if missing == "error":
        for dataset, name in zip(datasets, called, strict=True):
            _require_complete(dataset, name)
    named = columns if _has_names(datasets[0]) else None
    step = Preparation(log1p, missing)._set(named, len(columns))
    notes: list[Message] = []
    if missing in ("drop-columns", "mean") or standardize != "none":
        sums = [_column_sums(dataset, step, name) for dataset, name in zip(datasets, called, strict=True)]
        step = _learned(step, columns, sums, called, standardize, notes)
    prepared = [_prepared(dataset, step, name, copy) for dataset, name in zip(datasets, called, strict=True)]
    return Prepared(prepared[0], prepared[1:], notes, step)


def _check_choice(value: Any, parameter: str, known: Sequence[str]) -> None:
    if value not in known:
        advice = "Use one of {known}."
        if parameter == "standardize":
            advice += " Each dataset by itself is no choice: it would remove the differences that are looked for."
        raise InvalidValueError("is unknown", parameter=parameter, value=value, known=choices(known), advice=advice)


def match_columns(datasets: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Put the columns of all datasets in the order of the first; those without names must be as many."""
    first, *others = datasets
    columns, has_names = _columns_of(first), _has_names(first)
    return [
        first,
        *(_in_order(data, columns, has_names, name, names[0]) for data, name in zip(others, names[1:], strict=True)),
    ]


def _in_order(dataset: Any, columns: list[str], has_names: bool, name: str, reference: str) -> Any:
    own = _columns_of(dataset)
    if not (has_names and _has_names(dataset)):
        check_same_columns(len(own), None, name, len(columns), None, reference, "Give every dataset the same columns.")
        return replace(dataset, columns=list(columns), has_names=has_names) if isinstance(dataset, Table) else dataset
    if own == columns:
        return dataset
    if set(own) != set(columns):
        check_same_columns(
            len(own),
            own,
            name,
            len(columns),
            columns,
            reference,
            "Give every dataset the same columns, in any order. Choose some with {p.columns} or {p.drop}.",
        )
    place = {column: number for number, column in enumerate(own)}
    order = np.array([place[column] for column in columns], dtype=np.intp)
    if isinstance(dataset, Table):
        return replace(dataset, values=dataset.values[:, order], columns=list(columns))
    return Transformed(dataset, (Preparation()._set(own, len(own), order),)).looked_at()


def _columns_of(dataset: Any) -> list[str]:
    columns = dataset.columns
    return [f"x{number}" for number in range(dataset.width)] if columns is None else list(columns)


def _has_names(dataset: Any) -> bool:
    return dataset.has_names if isinstance(dataset, Table) else dataset.columns is not None


def _require_complete(dataset: Any, name: str) -> None:
    """Refuse a table with missing values; a scan refuses them when it is read."""
    if not isinstance(dataset, Table):
        return
    counts = _count_missing(dataset.values)
    if counts.any():
        found = first_cell(dataset.values, np.isnan, np.ones(dataset.values.shape[0], dtype=bool))
        assert found is not None
        raise InvalidValueError(
            "{count} value(s) are missing in {name}; the first in column {column}, row {row}{row_id}",
            count=int(counts.sum()),
            name=name,
            column=repr(dataset.columns[found[1]]),
            row=found[0] + 1,
            row_id="" if dataset.ids is None else f" ({dataset.ids[found[0]]!r})",
            advice="Say what to do with them with {p.missing}: {v.drop_rows}, {v.drop_columns} or {v.mean}.",
        )


def _prepared(dataset: Any, step: Preparation, name: str, copy: bool) -> Any:
    if isinstance(dataset, Table):
        values = step.transform(dataset.values, copy=copy, name=name)
        return replace(dataset, values=values, columns=[str(column) for column in step.get_feature_names_out()])
    return Transformed(dataset, (step,)).looked_at()


# --- what is learned -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """Statistics of each column over the rows that have a value there.

    Attributes
    ----------
    count : int
        Number of rows.
    present : ndarray
        Number of values that are not missing.
    mean, scatter : ndarray
        Mean of the values, and the sum of their squared deviations from it.
    """

    count: int
    present: Float
    mean: Float
    scatter: Float

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.mean)

    def __add__(self, other: ColumnSums) -> ColumnSums:
        """Give the statistics over the rows of both."""
        present = self.present + other.present
        share = np.divide(other.present, present, out=np.zeros_like(present), where=present > 0)
        # The mean of no values is 0, and must not come in.
        step = np.where(self.present > 0, other.mean - self.mean, 0.0)
        mean = np.where(self.present > 0, self.mean + step * share, other.mean)
        scatter = self.scatter + other.scatter + step**2 * self.present * share
        return ColumnSums(self.count + other.count, present, mean, scatter)

    def filled(self, fill: Float) -> ColumnSums:
        """Give the statistics with a number in the place of each missing value."""
        missing = self.count - self.present
        return self + ColumnSums(0, missing, np.where(missing > 0, fill, 0.0), np.zeros_like(fill))


@dataclass(frozen=True)
class _ColumnPart:
    """The statistics of one batch, after a step."""

    step: Preparation
    name: str

    def __call__(self, batch: Batch) -> ColumnSums:
        rows = self.step.transform(batch.rows, name=self.name) if self.step.log1p else batch.rows
        blocks = [rows] if is_sparse(rows) else row_blocks(rows)
        total: ColumnSums | None = None
        for block in blocks:
            sums = _sums_of_block(block)
            total = sums if total is None else total + sums
        assert total is not None
        return total


def _sums_of_block(rows: Rows) -> ColumnSums:
    n_rows, width = rows.shape
    # Whoever uses the sums looks at whether numbers were too large.
    with np.errstate(over="ignore", invalid="ignore"):
        if is_sparse(rows):
            present = n_rows - _count_missing(rows).astype(np.float64)
            known = ~np.isnan(rows.data)
            data, at = rows.data[known].astype(np.float64), rows.indices[known]
            mean = np.bincount(at, weights=data, minlength=width) / np.maximum(present, 1.0)
            stored = np.bincount(at, minlength=width)
            gaps = np.bincount(at, (data - mean[at]) ** 2, width)
            return ColumnSums(n_rows, present, mean, gaps + (present - stored) * mean**2)
        # Counted from a row of the data a constant is exactly zero, and a large mean costs no digits.
        origin = np.nan_to_num(dense(rows[:1]).astype(np.float64).ravel(), posinf=0.0, neginf=0.0)
        shifted = rows - origin
        missing = np.isnan(shifted)
        if not missing.any():
            mean = shifted.mean(axis=0)
            shifted -= mean
            return ColumnSums(
                n_rows, np.full(width, float(n_rows)), origin + mean, np.einsum("ij,ij->j", shifted, shifted)
            )
        present = n_rows - missing.sum(axis=0).astype(np.float64)
        shifted[missing] = 0.0
        mean = shifted.sum(axis=0) / np.maximum(present, 1.0)
        deviations = np.where(missing, 0.0, shifted - mean)
        mean = np.where(present > 0, origin + mean, 0.0)
        return ColumnSums(n_rows, present, mean, np.einsum("ij,ij->j", deviations, deviations))


def _column_sums(dataset: Any, step: Preparation, name: str) -> ColumnSums:
    part = _ColumnPart(step, name)
    if isinstance(dataset, Table):
        return part(Batch(dataset.values))
    sums: ColumnSums = dataset.summed(part)
    return sums


def _learned(
    step: Preparation,
    columns: list[str],
    sums: list[ColumnSums],
    names: Sequence[str],
    standardize: str,
    notes: list[Message],
) -> Preparation:
    """Decide what is dropped, filled in and scaled, and note it."""
    missing = step.missing
    gaps = [part.count - part.present for part in sums]
    kept = np.arange(len(columns))
    fill = None
    if missing == "drop-columns":
        kept = np.flatnonzero(np.sum(gaps, axis=0) == 0)
        _note_dropped(columns, kept, notes)
    elif missing == "mean":
        fill = _mean_of_all(columns, sums, gaps, names, notes)
        sums = [part.filled(fill) for part in sums]
    sums = [ColumnSums(part.count, part.present[kept], part.mean[kept], part.scatter[kept]) for part in sums]
    centre, scale = None, None
    if standardize != "none":
        # Without a background the target is all the rows that there are.
        by_background = standardize == "background" and len(sums) > 1
        reference = sums[1:] if by_background else sums
        total = reference[0]
        for part in reference[1:]:
            total = total + part
        where = "all background rows" if by_background else "all rows"
        centre, scale = total.mean, np.sqrt(total.scatter / np.maximum(total.present, 1.0))
        check_squares(float(np.max(scale)), where)
        constant = scale <= ROUNDING * np.abs(centre)
        if constant.any():
            notes.append(
                Message(
                    "{columns} constant over {where}, and not scaled",
                    kind="constant columns",
                    columns=_is_or_are([columns[kept[place]] for place in np.flatnonzero(constant)]),
                    where=where,
                )
            )
            scale = np.where(constant, 1.0, scale)
    named = getattr(step, "feature_names_in_", None)
    return Preparation(step.log1p, missing)._set(named, len(columns), kept, fill, centre, scale)


def earlier_preparation(stored: Mapping[str, Any]) -> Preparation:
    """Make the step of what earlier versions of the command line kept beside a model."""
    try:
        columns, dropped = stored["columns"], set(stored["dropped"])
        kept = np.array([place for place, column in enumerate(columns) if column not in dropped], dtype=np.intp)
        numbers = {
            name: None if stored[name] is None else np.asarray(stored[name], dtype=np.float64)
            for name in ("fill", "centre", "scale")
        }
        _check_choice(stored["missing"], "missing", MISSING)
        ok = len(kept) and all(
            part is None or (part.shape == kept.shape and np.all(np.isfinite(part))) for part in numbers.values()
        )
        if not ok or (numbers["scale"] is not None and not np.all(numbers["scale"] > 0.0)):
            raise ValueError("its numbers are not those of its columns")
        step = Preparation(bool(stored["log1p"]), stored["missing"])
        return step._set(columns if stored["has_names"] else None, len(columns), kept, **numbers)
    # A forged file can hold anything here.
    except Exception as error:
        raise InvalidValueError(
            "what the model says of the preparation of its data cannot be used: {reason}",
            reason=f"{type(error).__name__}: {error}",
            advice="Fit the model again.",
        ) from None


def _note_dropped(columns: list[str], kept: npt.NDArray[np.intp], notes: list[Message]) -> None:
    stays = set(kept.tolist())
    dropped = [column for place, column in enumerate(columns) if place not in stays]
    if not stays:
        raise InvalidValueError(
            "each of the {count} column(s) has a missing value somewhere, and none would be left",
            count=len(dropped),
            advice="Use {p.missing:drop-rows} or {p.missing:mean}.",
        )
    if dropped:
        notes.append(
            Message(
                "{count} column(s) with missing values were left out in all datasets: {columns}",
                count=len(dropped),
                columns=listed("column", dropped),
            )
        )


def _mean_of_all(
    columns: list[str], sums: list[ColumnSums], gaps: list[Float], names: Sequence[str], notes: list[Message]
) -> Float:
    """Give the mean of each column over all rows of all datasets, and note what it is filled in for."""
    total = sums[0]
    for part in sums[1:]:
        total = total + part
    empty = [column for column, count in zip(columns, total.present, strict=True) if count == 0]
    if empty:
        raise InvalidValueError(
            "there is no value at all in {columns}, so that there is no mean to fill in",
            columns=listed("column", empty),
            advice="Leave out what is empty with {p.drop}, or use {p.missing:drop-columns}.",
        )
    check_squares(float(np.abs(total.mean).max()), "all rows")
    counts = [int(part.sum()) for part in gaps]
    if any(counts):
        notes.append(
            Message(
                "{count} missing value(s){in_target} were filled in with the mean of the column over all rows",
                count=sum(counts),
                in_target=f" ({counts[0]} in {names[0]})" if len(counts) > 1 else "",
            )
        )
    for name, part in zip(names, sums, strict=True):
        without = [column for column, count in zip(columns, part.present, strict=True) if count == 0]
        if without:
            notes.append(
                Message(
                    "{columns} without any value in {name}: what was filled in there tells nothing",
                    columns=_is_or_are(without),
                    name=name,
                )
            )
    return total.mean


def _is_or_are(columns: Sequence[str]) -> str:
    return f"{listed('column', columns)} {'is' if len(columns) == 1 else 'are'}"


# --- cells -----------------------------------------------------------------------------------------------------------


def _writable(rows: Rows, *, copy: bool) -> Rows:
    if not is_sparse(rows):
        floating = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
        return (
            np.array(floating, order="C") if (copy and floating is rows) or not floating.flags.writeable else floating
        )
    return rows.copy() if copy or not rows.data.flags.writeable else rows


def _count_missing(rows: Rows) -> npt.NDArray[np.intp]:
    """Count the missing values of each column."""
    if is_sparse(rows):
        return np.bincount(rows.indices[np.isnan(rows.data)], minlength=rows.shape[1])
    total = np.zeros(rows.shape[1], dtype=np.intp)
    for block in row_blocks(rows):
        # A finite sum has finite terms, and costs a fraction of looking at each.
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(block.sum()):
                total += np.isnan(block).sum(axis=0)
    return total


def _take_logarithms(rows: Rows, columns: Sequence[str], name: str) -> None:
    """Put log(1 + x) in the place of each x; a negative one is refused."""
    for block in [rows.data] if is_sparse(rows) else row_blocks(rows):
        # fmin looks past missing values.
        if block.size and np.fmin.reduce(block, axis=None) < 0:
            _reject_negative(rows, columns, name)
        np.log1p(block, out=block)


def _reject_negative(rows: Rows, columns: Sequence[str], name: str) -> None:
    is_negative: Callable[[Array], Any] = lambda numbers: numbers < 0  # noqa: E731
    found = first_cell(rows, is_negative, np.ones(rows.shape[0], dtype=bool))
    assert found is not None
    raise InvalidValueError(
        "there is a negative value in {name}, and it has no logarithm: {value} in column {column}, row {row}",
        name=name,
        value=float(rows[found]),
        column=repr(columns[found[1]]),
        row=found[0] + 1,
        advice="Leave out {p.log1p}, which is meant for counts, or leave out the column with {p.drop}.",
    )


def _fill_missing(rows: Rows, fill: Float) -> None:
    """Put a number for each column in the place of missing values."""
    if is_sparse(rows):
        missing = np.isnan(rows.data)
        rows.data[missing] = fill[rows.indices[missing]]
        return
    for block in row_blocks(rows):
        at_row, at_column = np.nonzero(np.isnan(block))
        block[at_row, at_column] = fill[at_column]


def _shift_and_scale(rows: Rows, centre: Float, scale: Float) -> None:
    """Subtract a centre and divide by a scale, in double precision whatever the values are kept in."""
    if is_sparse(rows):
        rows.data /= scale[rows.indices].astype(rows.dtype)
        return
    for block in row_blocks(rows):
        if block.dtype == np.float64:
            block -= centre
            block /= scale
        else:
            block[:] = (block - centre) / scale
