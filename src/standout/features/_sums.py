"""Sums over the kernel coordinates of a dataset: what the kernel methods need to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np

from standout._arrays import Float, Rows, bytes_held, row_slice, sum_of_squares
from standout._xp import like, namespace
from standout.features._kernels import check_kernel_matrix, reject_indefinite
from standout.features._maps import FeatureMap, LandmarkMap
from standout.moments import FoldPart, Folds, Part, RobustWeights, ScatterMoments, Weighed, dealt_folds, joined_columns
from standout.sources import Batch, Dataset, added, check_subjects, open_dataset


@dataclass(frozen=True, eq=False)
class CoordinateSums:
    """What is summed up over the rows of a dataset. Sums over batches are merged with ``+``.

    Attributes
    ----------
    moments : ScatterMoments
        Of the coordinates.
    trace : float
        Sum of the kernel of each row with itself; NaN for random features, which are no projection.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import coordinate_sums, given_landmarks, resolve_kernel
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> sums = coordinate_sums(given_landmarks(resolve_kernel("rbf"), rows[:10]), rows)
    >>> sums.count, sums.n_features, sums.trace
    (100, 10, 100.0)
    """

    moments: ScatterMoments
    trace: float

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + bytes_held(self)

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.moments.count

    @property
    def mean(self) -> Float:
        """Mean of the coordinates."""
        return self.moments.mean

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return self.moments.n_features

    @property
    def covered(self) -> float:
        """The part of the trace that the coordinates have."""
        return self.moments.total_weight * (self.moments.total_variance + sum_of_squares(self.moments.mean))

    def __add__(self, other: CoordinateSums) -> CoordinateSums:
        """Give the sums over both sets of rows."""
        moments = self.moments + other.moments
        assert isinstance(moments, ScatterMoments)
        return CoordinateSums(moments, self.trace + other.trace)


def coordinate_sums(mapping: FeatureMap, dataset: Dataset, name: str = "the data") -> CoordinateSums:
    """Sum up the coordinates of a dataset, which messages call by a name."""
    part = CoordinatePart(mapping)
    sums: CoordinateSums = open_dataset(dataset, name, min_rows=1).summed(part)
    if part.direct:
        assert isinstance(mapping, LandmarkMap)
        return CoordinateSums(mapping.from_kernel_values(sums.moments), sums.trace)
    return sums


def coordinate_folds(
    mapping: FeatureMap, dataset: Dataset, n_folds: int, n_dealt: int, name: str = "the data"
) -> Folds[CoordinateSums]:
    """Sum up the coordinates of each fold of a dataset, which messages call by a name.

    Rows are dealt into `n_dealt` folds; those of fold k of them are summed up in fold k modulo `n_folds`.
    """
    part = CoordinatePart(mapping)
    source = open_dataset(dataset, name, min_rows=1)
    dealt = dealt_folds(source.subjects, n_dealt)
    folds: Folds[CoordinateSums] = source.summed(FoldPart(part, n_folds, n_dealt, dealt))
    check_subjects(source, folds.count)
    if not part.direct:
        return folds
    assert isinstance(mapping, LandmarkMap)
    direct = mapping
    return folds.mapped(lambda sums: CoordinateSums(direct.from_kernel_values(sums.moments), sums.trace))


def residual_share(sums: Sequence[CoordinateSums]) -> float:
    """Give the share of the kernel's trace that the coordinates leave out; NaN for random features."""
    total = sum(part.trace for part in sums)
    covered = sum(part.covered for part in sums)
    if covered > total * (1.0 + 1e-6):
        reject_indefinite("these rows")
    return max(1.0 - covered / total, 0.0) if total != 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class CoordinatePart:
    """The function that sums up the coordinates of one batch. It can be sent to other processes.

    Attributes
    ----------
    mapping : FeatureMap
    """

    mapping: FeatureMap
    # Ids, labels and groups of the rows need not be read.
    needs_words: ClassVar[bool] = False

    @cached_property
    def direct(self) -> bool:
        """Whether moments of kernel values are gathered, which are turned into those of the coordinates at the end."""
        return isinstance(self.mapping, LandmarkMap) and self.mapping.well_conditioned

    def __call__(self, batch: Batch) -> CoordinateSums | None:
        """Sum up these rows, a block at a time; None if all of them have the weight zero."""
        size = self.mapping.block_rows(batch.rows)
        starts = range(0, batch.n_rows, size)
        return reduce(added, (self._block(batch.sliced(start, start + size)) for start in starts), None)

    def _block(self, batch: Batch) -> CoordinateSums | None:
        rows, gathered = batch.rows, Part("scatter", norms=False, single=True)
        if not isinstance(self.mapping, LandmarkMap):
            moments = gathered(batch.with_rows(self.mapping.transform(rows)))
            return None if moments is None else CoordinateSums(moments, float("nan"))
        kernel = self.mapping.kernel
        values = kernel(rows, self.mapping.landmarks) if self.direct else self.mapping.transform(rows)
        moments, diagonal = gathered(batch.with_rows(values)), kernel.diagonal(rows)
        if moments is not None and not np.isfinite(moments.total_variance):
            # What is not finite shows in the sums, which are fewer than the values.
            check_kernel_matrix(values, symmetric=True)
        if batch.weights is not None:
            diagonal = diagonal * like(batch.weights, diagonal)
        return None if moments is None else CoordinateSums(moments, float(namespace(diagonal).sum(diagonal)))


@dataclass(frozen=True, eq=False)
class FeatureWeights:
    """Robust weights of rows by their kernel coordinates. Can be sent to other processes.

    Attributes
    ----------
    mapping : FeatureMap
    coordinates : RobustWeights
        What was learned from the coordinates.
    cells : RobustWeights or None
        What was learned from the rows, if these are to have no wild cells.
    """

    mapping: FeatureMap
    coordinates: RobustWeights
    cells: RobustWeights | None = None
    # The moments of coordinates have no fourth powers.
    origin: ClassVar[None] = None

    def __call__(self, rows: Rows) -> Weighed:
        """Weigh rows, a block at a time."""
        wild = None
        if self.cells is not None:
            rows, _, _, wild = self.cells(rows)
        size = self.mapping.block_rows(rows)
        parts = [
            self.coordinates(self.mapping.transform(row_slice(rows, start, start + size)))
            for start in range(0, rows.shape[0], size)
        ]
        return Weighed(rows, *joined_columns(parts), wild)

    def cleaned(self, rows: Rows) -> Rows:
        """Give the rows without wild cells."""
        return rows if self.cells is None else self.cells.cleaned(rows)
