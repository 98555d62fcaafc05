"""One step of a pipeline that prepares all datasets alike: logarithm, missing values, scale."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Float, Rows, all_finite, dense, is_sparse, row_blocks
from standout._checks import (
    as_backgrounds,
    as_rows,
    check_choice,
    check_same_columns,
    check_squares,
    column_names,
    first_cell,
)
from standout._messages import InvalidTypeError, InvalidValueError, Message, dataset_names, listed, short
from standout.io._scan import Scan
from standout.io._statistics import ColumnPart, ColumnSums
from standout.sources import Backgrounds, Dataset, Source, Table, Transformed, open_dataset

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
            return Transformed(self._chosen(X) if isinstance(X, Scan) else X, (self,)).looked_at()
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
                problem = "{name} has {width} features, but Preparation is expecting {limit} features as input"
                facts = {"name": name, "width": width, "limit": self.n_features_in_}
                raise InvalidValueError(problem, advice="Give the columns of the fit.", **facts)
            return self.kept_
        known = {column: place for place, column in enumerate(columns)}
        wanted = [str(own[place]) for place in self.kept_]
        lacking = [column for column in wanted if column not in known]
        if lacking:
            problem, advice = (
                "{name} lacks {missing} of the data of the fit",
                "Give the columns of the fit, in any order.",
            )
            raise InvalidValueError(problem, name=name, missing=listed("column", lacking), advice=advice)
        return np.array([known[column] for column in wanted], dtype=np.intp)

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
        hint = " Each dataset by itself is no choice: it would remove the differences that are looked for."
        check_choice(self.standardize, "standardize", STANDARDS, "Use one of {known}." + hint)
        check_choice(self.missing, "missing", MISSING)

    def _learn(self, datasets: Sequence[Source], names: Sequence[str]) -> list[Message]:
        """Learn from the target, `datasets[0]`, and the backgrounds; give notes on what is done."""
        self._check_choices()
        target = datasets[0]
        width = int(target.first(1).shape[1]) if target.width is None else target.width
        notes: list[Message] = []
        if self.missing not in ("drop-columns", "mean") and self.standardize == "none":
            self._set(target.columns, width)
            return notes
        once = [name for data, name in zip(datasets, names, strict=True) if not data.again]
        if once:
            problem = (
                "{name} is an iterator of batches, which can be read only once, but its statistics are needed first"
            )
            advice = "Give a dataset that can be read again, such as standout.scan."
            raise InvalidTypeError(problem, name=once[0], advice=advice)
        logarithms = Preparation(self.log1p)._set(target.columns, width)
        sums = []
        for data, name in zip(datasets, names, strict=True):
            dataset = self._with_rule(data) if isinstance(data, Scan) else data
            sums.append(dataset.summed(ColumnPart(logarithms, name)))
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


def earlier_preparation(stored: Any) -> Preparation:
    """Make the step of what earlier versions of the command line kept beside a model, as JSON."""
    try:
        stored = json.loads(stored)
        columns, dropped = stored["columns"], set(stored["dropped"])
        kept = np.array([place for place, column in enumerate(columns) if column not in dropped], dtype=np.intp)
        numbers = {
            name: None if stored[name] is None else np.asarray(stored[name], dtype=np.float64)
            for name in ("fill", "centre", "scale")
        }
        fit = all(part is None or (part.shape == kept.shape and np.isfinite(part).all()) for part in numbers.values())
        if not (len(kept) and fit) or (numbers["scale"] is not None and not (numbers["scale"] > 0.0).all()):
            raise ValueError("its numbers do not fit its columns")
        step = Preparation(bool(stored["log1p"]), missing=stored["missing"])
        step._check_choices()
        return step._set(columns if stored["has_names"] else None, len(columns), kept, **numbers)
    # A forged file can hold anything here.
    except Exception as error:
        raise InvalidValueError(
            "what the model says of the preparation of its data cannot be used: {reason}",
            reason=f"{type(error).__name__}: {error}",
            advice="Fit the model again.",
        ) from None


def _columns_and_rows(data: Any) -> tuple[list[str] | None, Any]:
    """Give the names of the columns, if there are any, and the rows of a source or table; all else as it is."""
    if isinstance(data, Table):
        return data.columns if data.has_names else None, data.values
    return (data.columns, data.rows()) if isinstance(data, Source) else (column_names(data), data)


# --- what is learned --------------------------------------------------------------------------------------------------


def _centre_and_scale(
    total: ColumnSums, columns: Sequence[str], where: str, notes: list[Message]
) -> tuple[Float, Float]:
    """Give the mean and the standard deviation of each column; a constant column is not scaled."""
    centre, scale = total.mean, np.sqrt(total.scatter / np.maximum(total.present, 1.0))
    check_squares(float(np.max(scale)), where)
    constant = scale <= ROUNDING * np.abs(centre)
    if constant.any():
        unscaled = _is_or_are([columns[place] for place in np.flatnonzero(constant).tolist()])
        problem = "{columns} constant over {where}, and not scaled"
        notes.append(Message(problem, kind="constant columns", columns=unscaled, where=where))
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
        problem = "{count} column(s) with missing values were left out in all datasets: {columns}"
        notes.append(Message(problem, count=len(dropped), columns=listed("column", dropped)))


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
        problem = "{count} missing value(s) were filled in with the mean of the column over all rows"
        if len(counts) > 1:
            problem = problem.replace(" were", " ({n_first} in {first}) were")
        notes.append(Message(problem, count=sum(counts), n_first=counts[0], first=names[0]))
    for name, part in zip(names, sums, strict=True):
        without = [column for column, count in zip(columns, part.present, strict=True) if count == 0]
        if without:
            problem = "{columns} without any value in {name}: what was filled in there tells nothing"
            notes.append(Message(problem, columns=_is_or_are(without), name=name))
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
    found = first_cell(rows, lambda cells: cells < 0)
    assert found is not None
    raise InvalidValueError(
        "there is a negative value in {name}, and it has no logarithm: {value} in column {column}, row {row}",
        name=name,
        value=float(rows[found]),
        column=repr(short(columns[found[1]])),
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
        if not all_finite(block):
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
