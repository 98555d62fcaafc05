"""Preparation of all datasets before a fit: logarithm, missing values, constant columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Float, Rows, dense, is_sparse, row_blocks
from standout._messages import InvalidTypeError, InvalidValueError, listed, short, warn_user
from standout._options import MISSING
from standout.io._files import check_choice
from standout.io._scan import Scan
from standout.sources import Batch, Mapped, Source, open_dataset
from standout.sources._open import as_backgrounds

# Constant columns are searched in this number of rows first.
SOME_ROWS = 1000


class Preparation(TransformerMixin, BaseEstimator):
    """How do I prepare rows with counts or missing values for a fit?

    The step works row by row: it computes log(1 + x), and then fills in missing values. The fill values are learned
    from all rows of all datasets. To scale columns, use the parameter `scale` of the estimators.

    Parameters
    ----------
    log1p : bool, default=False
        Use log(1 + x) of every value.
    missing : {"error", "drop-rows", "mean", "median", "zero"}, default="error"
        Treatment of missing values. This step never leaves out rows: to drop rows, use :func:`prepare`.

    Attributes
    ----------
    kept_ : ndarray of int
        Positions of the columns that are kept.
    fill_ : ndarray or None
        The fill value of each column that is kept.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the input columns, if they have names.

    Examples
    --------
    >>> from standout.io import Preparation
    >>> Preparation(missing="mean").fit([[1.0, 2.0], [3.0, float("nan")]]).transform([[float("nan"), 5.0]])
    array([[2., 5.]])
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"background": True}

    def __init__(self, log1p: bool = False, *, missing: str = "error") -> None:
        self.log1p = log1p
        self.missing = missing

    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Preparation:
        """Learn the fill values from the target X and the backgrounds."""
        self._learn([open_dataset(data, "X", gaps=True) for data in (X, *as_backgrounds(background))])
        return self

    def transform(self, X: Any) -> Any:
        """Return prepared rows; the batches of a source are changed when they are read."""
        check_is_fitted(self, "kept_")
        names = getattr(self, "feature_names_in_", None)
        source = open_dataset(X, "X", columns=None if names is None else names.tolist(), gaps=True)
        if source.width != self.n_features_in_:
            # scikit-learn's checks of estimators search error messages for this wording.
            expected = f"Preparation is expecting {self.n_features_in_} features as input"
            problem = f"X has {source.width} features, but {expected}"
            raise InvalidValueError(problem, advice="Give the columns of the fit.")
        if not isinstance(X, Source):
            return self._changed(source.loaded().rows)
        return self.applied(source)

    def applied(self, source: Source) -> Source:
        """Return a source whose rows are prepared by this step."""
        if not self.log1p and self.fill_ is None and len(self.kept_) == self.n_features_in_:
            return source
        keys = source.keys and [source.keys[place] for place in self.kept_]
        return Mapped(source, partial(self._changed, name=source.name), keys, len(self.kept_)).at_once()

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the remaining columns."""
        check_is_fitted(self, "kept_")
        names = getattr(self, "feature_names_in_", [f"x{place}" for place in range(self.n_features_in_)])
        return np.asarray(names, dtype=object)[self.kept_]

    def __sklearn_tags__(self) -> Any:
        """Describe the step to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _changed(self, rows: Rows, name: str = "the data") -> Rows:
        """Return prepared rows; the given rows are not changed."""
        if len(self.kept_) < rows.shape[1]:
            rows = rows[:, self.kept_]
        numbers = rows.data if is_sparse(rows) else rows
        if self.log1p:
            if numbers.size and np.fmin.reduce(numbers, axis=None) < 0:
                row, column = (int(place[0]) for place in (rows < 0).nonzero())
                column_name = short(self.get_feature_names_out()[column])
                problem = f"there is a negative value in {name}, which has no logarithm"
                advice = "Leave out `log1p`, which is for counts, or leave out the column with `exclude`."
                raise InvalidValueError(f"{problem}: row {row + 1}, column {column_name!r}", advice=advice)
            numbers = np.log1p(numbers)
        if self.fill_ is not None and np.isnan(numbers).any():
            columns = rows.indices if is_sparse(rows) else np.arange(rows.shape[1])
            numbers = np.where(np.isnan(numbers), self.fill_[columns].astype(rows.dtype), numbers)
        if is_sparse(rows):
            return type(rows)((numbers, rows.indices, rows.indptr), shape=rows.shape)
        return numbers

    def _learn(self, datasets: Sequence[Source]) -> None:
        """Learn from the target and the backgrounds."""
        check_choice(self.missing, "missing", MISSING)
        target = datasets[0]
        assert target.width is not None
        self.n_features_in_, self.kept_, self.fill_ = target.width, np.arange(target.width), None
        self.__dict__.pop("feature_names_in_", None)
        if target.columns is not None:
            self.feature_names_in_ = np.asarray(target.columns, dtype=object)
        if self.missing not in ("error", "drop-rows"):
            self.fill_ = np.zeros(target.width)
        if self.missing in ("mean", "median"):
            once = [data.name for data in datasets if not data.again]
            if once:
                problem = f"{once[0]} is an iterator of batches, but fill values are learned before the fit"
                raise InvalidTypeError(problem, advice="Give data that can be read again, such as standout.scan.")
            present, total = reduce(add, (data.map_reduce(partial(_totals, self._changed)) for data in datasets))
            if not present.all():
                problem = f"there is no value at all in {listed('column', self.get_feature_names_out()[present == 0])}"
                raise InvalidValueError(problem, advice="Leave such columns out with `exclude`, or use missing='zero'.")
            self.fill_ = total / present
            if self.missing == "median":
                # The median needs all rows in memory.
                self.fill_ = None
                whole = [dense(self._changed(data.loaded().rows, data.name)) for data in datasets]
                self.fill_ = np.nanmedian(np.concatenate(whole), axis=0)

    def _drop_constant(self, datasets: Sequence[Source], strict: bool) -> None:
        """Leave out constant columns, with a warning. If `strict`, refuse them."""
        every: list[Any] = [data.rows for data in datasets]
        # In most data all columns vary in the first rows, so that the other rows need not be read.
        for some in ([rows[:SOME_ROWS] for rows in every], every):
            ends = [
                min_max_axis(rows, 0, ignore_nan=True)
                if is_sparse(rows)
                else (np.fmin.reduce(rows), np.fmax.reduce(rows))
                for rows in some
            ]
            varies = np.fmin.reduce([low for low, _ in ends]) < np.fmax.reduce([high for _, high in ends])
            if varies.all():
                return
        if not varies.any():
            return
        constant = self.get_feature_names_out()[~varies]
        problem = f"{listed('column', constant, 8)} {'is' if len(constant) == 1 else 'are'} constant over all rows"
        if strict:
            raise InvalidValueError(problem, advice="Leave such columns out with `exclude`.")
        warn_user(f"{problem}, and not used")
        self.kept_ = np.flatnonzero(varies)
        self.fill_ = None if self.fill_ is None else self.fill_[varies]


def prepare(
    datasets: Sequence[Source], *, log1p: bool = False, missing: str = "error", strict: bool = False
) -> tuple[list[Source], Preparation]:
    """How do I prepare datasets with counts or missing values for a fit?

    Parameters
    ----------
    datasets : sequence of Source
        The target and the backgrounds, opened by `scan`, or by `read_table` with ``missing="keep"``.
    log1p : bool, default=False
        Use log(1 + x) of every value, as is usual for counts.
    missing : {"error", "drop-rows", "mean", "median", "zero"}, default="error"
        "error" refuses missing values. "drop-rows" leaves out rows with missing values when files are read. The other
        values fill in a number: zero, or the mean or median of the column over all rows of all datasets.
    strict : bool, default=False
        Refuse columns that are constant. If False, constant columns are left out with a warning. Constant columns are
        searched only if all datasets are in memory.

    Returns
    -------
    datasets : list of Source
    step : Preparation
        The fitted step, which prepares new rows in the same way.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import prepare
    >>> from standout.sources import InMemory
    >>> gaps = InMemory(np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 8.0]]))
    >>> (filled,), step = prepare([gaps], missing="mean")
    >>> filled.rows.tolist(), step.fill_.tolist()
    ([[1.0, 6.0], [3.0, 4.0], [5.0, 8.0]], [3.0, 6.0])
    """
    step = Preparation(log1p, missing=missing)
    rule = missing if missing in ("error", "drop-rows") else "keep"
    kept = [data.with_missing(rule) if isinstance(data, Scan) else data for data in datasets]
    # Refuse missing values in datasets in memory, unless these values are filled in later.
    kept = [open_dataset(data, data.name, gaps=rule == "keep") for data in kept]
    step._learn(kept)
    if all(data.rows is not None for data in kept):
        step._drop_constant(kept, strict)
    return [step.applied(data) for data in kept], step


def _totals(change: Callable[[Rows], Rows], batch: Batch) -> Float:
    """Return the number of known values of each column, and the sum of each column after `change`.

    `change` replaces missing values by 0.
    """
    total = np.zeros((2, batch.rows.shape[1]))
    for block in row_blocks(batch.rows):
        # Count the missing values: only NaN differs from itself.
        n_missing = (block != block).sum(axis=0)
        total += [block.shape[0] - n_missing, change(block).sum(axis=0, dtype=np.float64)]
    return total
