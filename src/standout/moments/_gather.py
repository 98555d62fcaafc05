"""From data to moments: the one way in, whatever the data are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from standout._arrays import Rows, dense, double, is_single
from standout._namespaces import is_foreign
from standout._validation import Source, check_squares, reject_non_finite
from standout.moments._base import Moments
from standout.moments._centred import CentredRows
from standout.moments._device import gather_on_device
from standout.moments._root import gather_root
from standout.moments._rows import RowMoments
from standout.moments._scatter import gather_scatter
from standout.sources import all_rows, open_dataset

Kind = Literal["auto", "scatter", "root", "rows"]


def gather(
    data: Any, *, kind: Kind = "auto", norms: bool = False, single: bool = True, name: str = "the data"
) -> Moments:
    """What are the count, mean and scatter of this dataset?

    Parameters
    ----------
    data : array-like, sparse matrix, frame, or iterator of such
        A table of real numbers, one row per sample, of any real dtype, in C or Fortran order, read-only or
        memory-mapped; an array of another library (see `standout.DiscriminativePCA`); or an iterator that gives one
        batch of rows after the other. Never copied as a whole.
    kind : {"auto", "scatter", "root", "rows"}, default="auto"
        How the scatter is kept: as a matrix (`ScatterMoments`), as a QR root (`RootMoments`), or as the rows
        themselves (`RowMoments`). "auto" keeps the rows where there are fewer of them than columns, and a matrix
        otherwise.
    norms : bool, default=False
        Gather also what Ledoit-Wolf shrinkage needs.
    single : bool, default=True
        Multiply single-precision rows in single precision, at twice the speed. They are centred first, and sums over
        blocks are kept in float64, so a relative error of about 1e-7 of each column's spread is all that it costs.
    name : str, default="the data"
        What messages call the dataset.

    Returns
    -------
    Moments

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> batches = (X[start : start + 2] for start in (0, 2, 4))
    >>> np.allclose(gather(batches).covariance(), gather(X).covariance())
    True
    """
    dataset = open_dataset(data, name, min_rows=1)
    # An infinity makes NaN on its way through; it is looked for at the end, where looking is cheap.
    with np.errstate(invalid="ignore", over="ignore"):
        if isinstance(dataset, Source):
            moments = _gather_source(dataset, kind, norms, single)
            check_squares(moments.total_variance, name)
            return moments
        moments = Part(kind, norms, single and _suits_single(dataset))(dataset)
        if not np.isfinite(moments.total_variance):
            reject_non_finite(dataset, name)
        return moments


def _suits_single(rows: Rows) -> bool:
    """Tell, from some of the rows, whether squares of single-precision numbers stay within their range."""
    if is_foreign(rows) or not is_single(rows):
        return False
    enough = max(8, min(256, 2**19 // rows.shape[1]))
    some = double(dense(rows[:: max(rows.shape[0] // enough, 1)][:enough]))
    spread = np.std(some, axis=0)
    spread = spread[spread > 0]
    return bool(spread.size and spread.min() > 1e-15 and spread.max() < 1e15)


@dataclass(frozen=True)
class Part:
    """What gathering makes of one part of a dataset: moments, of the kind that was asked for.

    Attributes
    ----------
    kind : {"auto", "scatter", "root", "rows"}
    norms, single : bool
        As in `gather`.
    """

    kind: Kind
    norms: bool
    single: bool

    def __call__(self, rows: Rows) -> Moments:
        """Gather the moments of these rows."""
        # As in `gather`; parts may be worked on in threads, which do not share what is ignored.
        with np.errstate(invalid="ignore", over="ignore"):
            return self._gathered(rows)

    def _gathered(self, rows: Rows) -> Moments:
        kind = self.kind if self.kind != "auto" else "rows" if rows.shape[0] < rows.shape[1] else "scatter"
        if kind == "rows":
            return CentredRows(rows) if is_foreign(rows) else RowMoments(rows, single=self.single)
        if kind == "root":
            return gather_root(rows, norms=self.norms)
        if is_foreign(rows):
            return gather_on_device(rows, norms=self.norms)
        return gather_scatter(rows, norms=self.norms, single=self.single)


def _gather_source(source: Source, kind: Kind, norms: bool, single: bool) -> Moments:
    """Merge the moments of the parts."""
    if kind == "auto" and source.n_rows is not None and source.width is not None:
        kind = "rows" if source.n_rows < source.width else "scatter"
    if kind == "rows":
        return Part(kind, norms, single)(all_rows(source))
    moments: Moments = source.summed(Part(kind, norms, single))
    return moments
