"""What is done to all datasets alike before a fit: logarithm, missing values, scale; as one step of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Array, Float, Rows, dense, is_sparse, row_blocks
from standout._checks import as_backgrounds, as_rows, check_same_columns, check_squares, column_names
from standout._messages import (
    InvalidTypeError,
    InvalidValueError,
    Message,
    choices,
    dataset_names,
    listed,
    short,
)
from standout.io._scan import Scan
from standout.io._table import count_missing, first_cell, is_finite, rows_with_missing
from standout.sources import Backgrounds, Batch, Dataset, Source, Table, Transformed, open_dataset

STANDARDS = ("none", "background", "pooled")
MISSING = ("error", "drop-rows", "drop-columns", "mean")
# A spread below this share of the mean is what rounding leaves of a constant.
ROUNDING = 10 * np.finfo(np.float64).eps


class Preparation(TransformerMixin, BaseEstimator):
    """How are columns brought to a common scale, and missing values filled in, for all datasets alike?

    A step that works row by row. In this order: columns are dropped, log(1 + x) is taken, missing values are filled
    in, a centre is subtracted, and the rest is divided by a scale. :func:`prepare` fits it, and applies it to all
    datasets. In a pipeline of :func:`standout.make_pipeline` it sees the backgrounds, too.

    Parameters
    ----------
    log1p : bool, default=False
        Whether log(1 + x) is taken of every value.
    standardize : {"none", "background", "pooled"}, default="none"
        Over which rows the mean and the standard deviation of each column are taken.
    missing : {"error", "drop-rows", "drop-columns", "mean"}, default="error"
        What to do about missing values; see :func:`prepare`. A step keeps every row: rows are dropped by `prepare`, or
        when a file is read. The step itself leaves a missing value as it is, unless it fills it in with the mean.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns that come in.
    feature_names_in_ : ndarray of str
        Their names, if they have any. Columns of frames, tables and scans are then found by name, in any order, and
        further columns are left out.
    kept_ : ndarray of int
        Positions of the columns that come out.
    fill_, centre_, scale_ : ndarray or None
        One number for each column that comes out; None if nothing is filled in or scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA, make_pipeline
    >>> from standout.io import Preparation
    >>> step = Preparation(standardize="background")
    >>> step.fit([[1.0, 10.0], [3.0, 30.0]], background=[[0.0, 10.0], [2.0, 30.0]]).transform([[3.0, 20.0]])
    array([[2., 0.]])

    Counts of two groups of cells, on a logarithmic scale:

    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.poisson([9, 9, 2], size=(300, 3)), rng.poisson([9, 9, 9], size=(300, 3))
    >>> model = make_pipeline(Preparation(log1p=True), DiscriminativePCA(1)).fit(target, background=background)
    >>> int(np.argmax(np.abs(model[-1].components_)))
    2
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"background": True}

    # For pipelines: `fit` takes data that are read in parts, and the backgrounds; `transform` takes a source.
    _takes_parts: ClassVar[bool] = True
    _takes_sources: ClassVar[bool] = True

    def __init__(self, log1p: bool = False, *, standardize: str = "none", missing: str = "error") -> None:
        self.log1p = log1p
        self.standardize = standardize
        self.missing = missing

    def fit(self, X: Dataset, y: Any = None, *, background: Backgrounds = None) -> Preparation:
        """Find out what is to be dropped, filled in and scaled.

        Parameters
        ----------
        X : dataset
            The target.
        y : object, default=None
            Ignored.
        background : dataset, or list or tuple of datasets, default=None
            The backgrounds.

        Returns
        -------
        Preparation
            The fitted step itself.
        """
        given = [X, *as_backgrounds(background, X)]
        names = dataset_names(len(given))
        self._learn([open_dataset(data, name, min_rows=1) for data, name in zip(given, names, strict=True)], names)
        return self

    def transform(self, X: Dataset, *, copy: bool = True, name: str = "X") -> Any:
        """Give rows as they go into the fit.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, table or source of shape (n_samples, n_features)
        copy : bool, default=True
            Whether X is left as it is. If not, its memory may be used for the result.
        name : str
            What messages call the rows.

        Returns
        -------
        ndarray, CSR matrix or Source of shape (n_samples, n_kept)
            What a source gives is a source, whose batches are transformed when they are read.
        """
        check_is_fitted(self, "kept_")
        if isinstance(X, Source) and not X.in_memory:
            return self._transformed_source(X)
        columns, data = _columns_and_rows(X)
        if not isinstance(X, Table | Source) and columns is not None and hasattr(self, "feature_names_in_"):
            # Other columns of a frame may hold words.
            columns = [columns[place] for place in self._places(columns, len(columns), name)]
            data = data[columns]
        rows = as_rows(data, name, min_rows=0, host=True)
        places = self._places(columns, rows.shape[1], name)
        own = not copy
        if len(places) != rows.shape[1] or not np.array_equal(places, np.arange(len(places))):
            rows, own = rows[:, places], True
        if is_sparse(rows) and self.centre_ is not None and self.centre_.any():
            # A sparse matrix minus a centre is dense.
            rows, own = dense(rows), True
        if self._changes_values:
            rows = _writable(rows, own=own)
            self._change(rows, name)
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Name the columns that come out."""
        check_is_fitted(self, "kept_")
        return np.asarray(self._names, dtype=object)[self.kept_]

    @property
    def changes_nothing(self) -> bool:
        """Whether all rows come out as they come in."""
        check_is_fitted(self, "kept_")
        return len(self.kept_) == self.n_features_in_ and not self._changes_values

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the step takes and gives."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _changes_values(self) -> bool:
        return self.log1p or self.fill_ is not None or self.scale_ is not None

    @property
    def _names(self) -> list[str]:
        """Names of the columns that come in, made up if they have none."""
        known = getattr(self, "feature_names_in_", None)
        return [f"x{number}" for number in range(self.n_features_in_)] if known is None else list(known)

    def _set(
        self,
        names: Sequence[str] | None,
        n_features: int,
        kept: npt.NDArray[np.intp] | None = None,
        fill: Float | None = None,
        centre: Float | None = None,
        scale: Float | None = None,
    ) -> Preparation:
        """Set all that a fit finds out; without further arguments nothing is dropped, filled in or scaled."""
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self.n_features_in_ = n_features
        self.kept_ = np.arange(n_features) if kept is None else kept
        self.fill_, self.centre_, self.scale_ = fill, centre, scale
        return self

    def _places(self, columns: list[str] | None, width: int, name: str) -> npt.NDArray[np.intp]:
        """Find the columns that come out: by name, if both the rows and those of the fit have names."""
        own = getattr(self, "feature_names_in_", None)
        if columns is None or own is None:
            if width != self.n_features_in_:
                # scikit-learn's own wording, which its checks look for.
                raise InvalidValueError(
                    "{name} has {width} features, but Preparation is expecting {limit} features as input",
                    name=name,
                    width=width,
                    limit=self.n_features_in_,
                    advice="Give the columns of the fit.",
                )
            return self.kept_
        known = {column: place for place, column in enumerate(columns)}
        wanted = [str(own[place]) for place in self.kept_]
        lacking = [column for column in wanted if column not in known]
        if lacking:
            raise InvalidValueError(
                "{name} lacks {missing} of the data of the fit",
                name=name,
                missing=listed("column", lacking),
                advice="Give the columns of the fit, in any order.",
            )
        return np.array([known[column] for column in wanted], dtype=np.intp)

    def _transformed_source(self, source: Source) -> Source:
        """Give a source whose batches are transformed as they are read."""
        if isinstance(source, Scan):
            source = self._chosen(source)
        return Transformed(source, (self,)).looked_at()

    def _chosen(self, scan: Scan) -> Scan:
        """Give a scan of the columns of the fit, whose missing values are treated as those of the fit."""
        if scan.columns is not None and hasattr(self, "feature_names_in_"):
            self._places(scan.columns, len(scan.columns), scan.name)
            known = set(scan.columns)
            scan = scan.with_columns([column for column in self._names if column in known])
        return self._with_rule(scan)

    def _with_rule(self, scan: Scan) -> Scan:
        """Give a scan that drops rows with missing values, or leaves them to this step, as the step has it."""
        rules = {"drop-rows": "drop-rows", "drop-columns": "keep", "mean": "keep"}
        return scan.with_missing(rules.get(self.missing, scan.missing))

    def _change(self, rows: Rows, name: str) -> None:
        """Change the cells of rows, in place."""
        if self.log1p:
            _take_logarithms(rows, [self._names[place] for place in self.kept_], name)
        if self.fill_ is not None:
            _fill_missing(rows, self.fill_)
        if self.centre_ is not None and self.scale_ is not None:
            _shift_and_scale(rows, self.centre_, self.scale_)

    # --- what is learned --------------------------------------------------------------------------------------------

    def _check_choices(self) -> None:
        _check_choice(self.standardize, "standardize", STANDARDS)
        _check_choice(self.missing, "missing", MISSING)

    def _learn(self, datasets: Sequence[Source], names: Sequence[str]) -> list[Message]:
        """Learn from the target, `datasets[0]`, and the backgrounds; give notes on what is done."""
        self._check_choices()
        target = datasets[0]
        width = int(target.first(1).shape[1]) if target.width is None else target.width
        notes: list[Message] = []
        if self.missing not in ("drop-columns", "mean") and self.standardize == "none":
            self._set(target.columns, width)
            return notes
        for data, name in zip(datasets, names, strict=True):
            _require_again(data, name)
        logarithms = Preparation(self.log1p)._set(target.columns, width)
        sums = []
        for data, name in zip(datasets, names, strict=True):
            dataset = self._with_rule(data) if isinstance(data, Scan) else data
            sums.append(dataset.summed(_ColumnPart(logarithms, name)))
            check_same_columns(sums[-1].n_features, data.columns, name, width, target.columns, names[0])
        columns = target.columns or [f"x{number}" for number in range(width)]
        kept, fill = np.arange(width), None
        if self.missing == "drop-columns":
            kept = np.flatnonzero(np.sum([part.missing for part in sums], axis=0) == 0)
            _note_dropped(columns, kept, notes)
        elif self.missing == "mean":
            fill = _mean_of_all(columns, sums, names, notes)
            sums = [part.filled(fill) for part in sums]
        centre, scale = None, None
        if self.standardize != "none":
            # Without a background the target is all the rows that there are.
            by_background = self.standardize == "background" and len(sums) > 1
            total = reduce(add, sums[1:] if by_background else sums).taken(kept)
            where = "all background rows" if by_background else "all rows"
            centre, scale = _centre_and_scale(total, [columns[place] for place in kept], where, notes)
            if any(part.is_sparse for part in sums):
                centre = np.zeros_like(centre)
                notes.append(Message("sparse data were scaled but not centred, so that they stay sparse"))
        self._set(target.columns, width, kept, fill, centre, scale)
        return notes


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
    if not isinstance(dataset, Table) or is_finite(dataset.values):
        return dataset
    _check_cells(dataset, name, np.isinf, "there is an infinite value", "Mend it, or leave it empty if it is missing.")
    if missing == "error":
        advice = "Say what to do about missing values with {p.missing}: {v.drop_rows}, {v.drop_columns} or {v.mean}."
        _check_cells(dataset, name, np.isnan, "a value is missing", advice)
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
    found = Batch(dataset.values, 0, dataset.ids, dataset.labels, dataset.groups).taken(kept, 0)
    return replace(dataset, values=found.rows, ids=found.ids, labels=found.labels, groups=found.groups)


def _check_cells(table: Table, name: str, wrong: Any, what: str, advice: str) -> None:
    found = first_cell(table.values, wrong)
    if found is not None:
        raise InvalidValueError(
            "{what} in {name}: column {column}, row {row}{row_id}; {count} in all",
            what=what,
            name=name,
            column=repr(short(table.columns[found[1]])),
            row=found[0] + 1,
            row_id="" if table.ids is None else f" ({short(table.ids[found[0]])!r})",
            count=int(wrong(table.values.data if is_sparse(table.values) else table.values).sum()),
            advice=advice,
        )


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


def _columns_and_rows(data: Any) -> tuple[list[str] | None, Any]:
    """Give the names of the columns, if there are any, and the rows of a source or table; all else as it is."""
    if isinstance(data, Table):
        return data.columns if data.has_names else None, data.values
    return (data.columns, data.rows()) if isinstance(data, Source) else (column_names(data), data)


def _columns_of(dataset: Any) -> list[str]:
    columns = dataset.columns
    return [f"x{number}" for number in range(dataset.width)] if columns is None else list(columns)


def _has_names(dataset: Any) -> bool:
    return dataset.has_names if isinstance(dataset, Table) else dataset.columns is not None


def _check_choice(value: Any, parameter: str, known: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in known:
        advice = "Use one of {known}."
        if parameter == "standardize":
            advice += " Each dataset by itself is no choice: it would remove the differences that are looked for."
        raise InvalidValueError("is unknown", parameter=parameter, value=value, known=choices(known), advice=advice)


def _require_again(dataset: Source, name: str) -> None:
    if not dataset.again:
        raise InvalidTypeError(
            "{name} is an iterator of batches, which can be read only once, but its statistics are needed before a fit",
            name=name,
            advice="Give a dataset that can be read again, such as standout.scan.",
        )


# --- statistics -----------------------------------------------------------------------------------------------------


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
    is_sparse : bool
        Whether some of the rows are sparse.
    """

    count: int
    present: Float
    mean: Float
    scatter: Float
    is_sparse: bool = False

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.mean)

    @property
    def missing(self) -> Float:
        """Number of values that are missing."""
        return self.count - self.present

    def __add__(self, other: ColumnSums) -> ColumnSums:
        """Give the statistics over the rows of both."""
        present = self.present + other.present
        share = np.divide(other.present, present, out=np.zeros_like(present), where=present > 0)
        # Numbers that are too large are noticed where the sums are used.
        with np.errstate(over="ignore", invalid="ignore"):
            # The mean of no values is 0, and must not come in.
            step = np.where(self.present > 0, other.mean - self.mean, 0.0)
            mean = np.where(self.present > 0, self.mean + step * share, other.mean)
            scatter = self.scatter + other.scatter + step**2 * self.present * share
        return ColumnSums(self.count + other.count, present, mean, scatter, self.is_sparse or other.is_sparse)

    def filled(self, fill: Float) -> ColumnSums:
        """Give the statistics with a number in the place of each missing value."""
        gaps = self.missing
        return self + ColumnSums(0, gaps, np.where(gaps > 0, fill, 0.0), np.zeros_like(fill))

    def taken(self, columns: npt.NDArray[np.intp]) -> ColumnSums:
        """Give the statistics of some columns."""
        return replace(self, present=self.present[columns], mean=self.mean[columns], scatter=self.scatter[columns])


@dataclass(frozen=True, eq=False)
class _ColumnPart:
    """The statistics of one batch, after a step."""

    step: Preparation
    name: str = field(compare=False)
    needs_words: ClassVar[bool] = False

    def __call__(self, batch: Batch) -> ColumnSums:
        """Sum up the rows of a batch."""
        rows = self.step.transform(batch.rows, name=self.name)
        return reduce(add, map(_sums_of_block, [rows] if is_sparse(rows) else row_blocks(rows)))


def _sums_of_block(rows: Rows) -> ColumnSums:
    n_rows, width = rows.shape
    with np.errstate(over="ignore", invalid="ignore"):
        if is_sparse(rows):
            present = n_rows - count_missing(rows).astype(np.float64)
            known = ~np.isnan(rows.data)
            data, at = rows.data[known].astype(np.float64), rows.indices[known]
            mean = np.bincount(at, weights=data, minlength=width) / np.maximum(present, 1.0)
            stored = np.bincount(at, minlength=width)
            scatter = np.bincount(at, (data - mean[at]) ** 2, width) + (present - stored) * mean**2
            return ColumnSums(n_rows, present, mean, scatter, is_sparse=True)
        # Counted from a row of the data a constant is exactly zero, and a large mean costs no digits.
        origin = np.nan_to_num(rows[0].astype(np.float64), posinf=0.0, neginf=0.0)
        shifted = rows - origin
        missing = np.isnan(shifted)
        present = np.full(width, float(n_rows))
        if missing.any():
            present -= missing.sum(axis=0)
            shifted[missing] = 0.0
        mean = shifted.sum(axis=0) / np.maximum(present, 1.0)
        shifted -= mean
        shifted[missing] = 0.0
        scatter = np.einsum("ij,ij->j", shifted, shifted)
        return ColumnSums(n_rows, present, np.where(present > 0, origin + mean, 0.0), scatter)


def _centre_and_scale(
    total: ColumnSums, columns: Sequence[str], where: str, notes: list[Message]
) -> tuple[Float, Float]:
    """Give the mean and the standard deviation of each column; a constant column is not scaled."""
    centre, scale = total.mean, np.sqrt(total.scatter / np.maximum(total.present, 1.0))
    check_squares(float(np.max(scale)), where)
    constant = scale <= ROUNDING * np.abs(centre)
    if constant.any():
        notes.append(
            Message(
                "{columns} constant over {where}, and not scaled",
                columns=_is_or_are([columns[place] for place in np.flatnonzero(constant).tolist()]),
                where=where,
            )
        )
    return centre, np.where(constant, 1.0, scale)


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


def _mean_of_all(columns: list[str], sums: Sequence[ColumnSums], names: Sequence[str], notes: list[Message]) -> Float:
    """Give the mean of each column over all rows of all datasets, and note what it is filled in for."""
    total = reduce(add, sums)
    empty = [column for column, count in zip(columns, total.present, strict=True) if count == 0]
    if empty:
        raise InvalidValueError(
            "there is no value at all in {columns}, so that there is no mean to fill in",
            columns=listed("column", empty),
            advice="Leave out what is empty with {p.drop}, or use {p.missing:drop-columns}.",
        )
    check_squares(float(np.abs(total.mean).max()), "all rows")
    counts = [int(part.missing.sum()) for part in sums]
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


# --- cells ----------------------------------------------------------------------------------------------------------


def _writable(rows: Rows, *, own: bool) -> Rows:
    """Give floating-point rows that may be written to: a copy, unless they are our own."""
    if is_sparse(rows):
        if rows.dtype.kind != "f":
            rows, own = rows.astype(np.float64), True
        rows = rows if own and rows.data.flags.writeable else rows.copy()
        # A function of each number needs each cell to be one number.
        rows.sum_duplicates()
        return rows
    if rows.dtype.kind != "f":
        return rows.astype(np.float64, order="C")
    return rows if own and rows.flags.writeable else np.array(rows, order="C")


def _take_logarithms(rows: Rows, columns: Sequence[str], name: str) -> None:
    """Put log(1 + x) in the place of each x; a negative one is refused."""
    for block in [rows.data] if is_sparse(rows) else row_blocks(rows):
        # fmin looks past missing values.
        if block.size and np.fmin.reduce(block, axis=None) < 0:
            _reject_negative(rows, columns, name)
        np.log1p(block, out=block)


def _reject_negative(rows: Rows, columns: Sequence[str], name: str) -> None:
    found = first_cell(rows, _is_negative)
    assert found is not None
    raise InvalidValueError(
        "there is a negative value in {name}, and it has no logarithm: {value} in column {column}, row {row}",
        name=name,
        value=float(rows[found]),
        column=repr(short(columns[found[1]])),
        row=found[0] + 1,
        advice="Leave out {p.log1p}, which is meant for counts, or leave out the column with {p.drop}.",
    )


def _is_negative(cells: Array) -> Array:
    return cells < 0


def _fill_missing(rows: Rows, fill: Float) -> None:
    """Put a number for each column in the place of missing values."""
    if is_sparse(rows):
        missing = np.isnan(rows.data)
        rows.data[missing] = fill[rows.indices[missing]]
        return
    for block in row_blocks(rows):
        if not is_finite(block):
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
