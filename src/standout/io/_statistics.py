"""Statistics of each column that add up over batches: the number of values, their mean and their scatter."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, is_sparse, row_blocks
from standout.sources import Batch


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
class ColumnPart:
    """The statistics of one batch, after a step."""

    step: Any
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
            known = ~np.isnan(rows.data)
            present = n_rows - np.bincount(rows.indices[~known], minlength=width).astype(np.float64)
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
