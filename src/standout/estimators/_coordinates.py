"""From datasets to the moments of their kernel coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

from standout._arrays import Float, Rows, product, row_slice, stacked, sum_of_squares
from standout._xp import is_foreign, namespace
from standout.features import FeatureMap, LandmarkMap, check_kernel_matrix, reject_indefinite
from standout.moments import Kind, Moments, ScatterMoments, gather, project
from standout.sources import Source


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Chosen coordinates.

    Attributes
    ----------
    mapping : FeatureMap
    parts : list
        The coordinates of each dataset where they are exact; else its rows, still to be mapped.
    approximation : str
        The kind of coordinates.
    residual : float
        Share of the kernel's trace that is left out, where it is known already.
    """

    mapping: FeatureMap
    parts: list[Any]
    approximation: str
    residual: float = float("nan")

    def scores(self, rows: Rows, mean: Float, filters: Float) -> Float:
        """Give the scores of some rows of a part."""
        if self.approximation == "exact":
            return project(rows, mean, filters)
        return scores_of(self.mapping, rows, mean, filters)


def scores_of(mapping: FeatureMap, rows: Rows, mean: Float, filters: Float) -> Float:
    """Project the coordinates of rows, a block at a time."""
    return stacked([product(block - mean, filters) for block in mapping.blocks(rows)])


def gather_exact(found: Coordinates) -> list[Moments]:
    """Gather the moments of each dataset's exact coordinates."""
    # A device has room for a matrix of the size of the kernel's, and no need for iterations on its rows.
    kind: Kind = "rows" if found.mapping.plain_ridge and not is_foreign(found.parts[0]) else "scatter"
    return [gather(coordinates, kind=kind, single=False) for coordinates in found.parts]


def coordinate_sums(mapping: FeatureMap, dataset: Any) -> CoordinateSums:
    """Sum up a dataset's coordinates, where these do not depend on its rows."""
    part = CoordinatePart(mapping)
    sums: CoordinateSums = dataset.summed(part) if isinstance(dataset, Source) else part(dataset)
    if part.direct:
        assert isinstance(mapping, LandmarkMap)
        return CoordinateSums(mapping.from_kernel_values(sums.moments), sums.trace)
    return sums


def residual_share(sums: list[CoordinateSums]) -> float:
    """Give the share of the kernel's trace that the coordinates leave out; NaN where they are no projections."""
    total = sum(part.trace for part in sums)
    covered = sum(part.covered for part in sums)
    if covered > total * (1.0 + 1e-6):
        reject_indefinite("these rows")
    return max(1.0 - covered / total, 0.0) if total != 0.0 else 0.0


def n_directions(mapping: FeatureMap, datasets: list[Any]) -> int:
    """Give the number of directions that the centred coordinates can have."""
    counts = [dataset.n_rows if isinstance(dataset, Source) else dataset.shape[0] for dataset in datasets]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return mapping.n_coordinates
    return min(mapping.n_coordinates, sum(count - 1 for count in known))


@dataclass(frozen=True, eq=False)
class CoordinateSums:
    """What is summed up over the rows of a dataset.

    Attributes
    ----------
    moments : ScatterMoments
        Of the coordinates.
    trace : float
        Sum of the kernel of each row with itself; NaN where the coordinates are random and leave nothing out.
    """

    moments: ScatterMoments
    trace: float

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
        return self.moments.count * (self.moments.total_variance + sum_of_squares(self.moments.mean))

    def __add__(self, other: CoordinateSums) -> CoordinateSums:
        """Give the sums over both sets of rows."""
        moments = self.moments + other.moments
        assert isinstance(moments, ScatterMoments)
        return CoordinateSums(moments, self.trace + other.trace)


@dataclass(frozen=True, eq=False)
class CoordinatePart:
    """What is made of one part of a dataset: the moments of its coordinates, or of its kernel with the landmarks.

    Attributes
    ----------
    mapping : FeatureMap
    """

    mapping: FeatureMap

    @cached_property
    def direct(self) -> bool:
        """Whether moments of kernel values are gathered, which become those of the coordinates at the end."""
        return isinstance(self.mapping, LandmarkMap) and self.mapping.well_conditioned

    def __call__(self, rows: Rows) -> CoordinateSums:
        """Sum up these rows, a block at a time."""
        size = self.mapping.block_rows(rows)
        starts = range(0, rows.shape[0], size)
        return reduce(add, (self._block(row_slice(rows, start, start + size)) for start in starts))

    def _block(self, rows: Rows) -> CoordinateSums:
        if not isinstance(self.mapping, LandmarkMap):
            return CoordinateSums(_moments(self.mapping.transform(rows)), float("nan"))
        kernel = self.mapping.kernel
        values = kernel(rows, self.mapping.landmarks) if self.direct else self.mapping.transform(rows)
        check_kernel_matrix(values, symmetric=True)
        diagonal = kernel.diagonal(rows)
        return CoordinateSums(_moments(values), float(namespace(diagonal).sum(diagonal)))


def _moments(values: Float) -> ScatterMoments:
    moments = gather(values, kind="scatter")
    assert isinstance(moments, ScatterMoments)
    return moments
