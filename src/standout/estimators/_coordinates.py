"""From datasets to the moments of their kernel coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np

from standout._arrays import Float, Rows, product, sum_of_squares
from standout._validation import Batches, check_kernel_matrix, reject_indefinite
from standout.features import FeatureMap, Kernel, LandmarkMap
from standout.moments import Kind, Moments, ScatterMoments, gather, project


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

    def target_scores(self, chosen: Any, mean: Float, filters: Float) -> Float:
        """Give the scores of some rows of the target."""
        rows = self.parts[0][chosen]
        if self.approximation == "exact":
            return project(rows, mean, filters)
        return scores_of(self.mapping, rows, mean, filters)


def scores_of(mapping: FeatureMap, rows: Rows, mean: Float, filters: Float) -> Float:
    """Project the coordinates of rows, a block at a time."""
    return np.concatenate([product(block - mean, filters) for block in mapping.blocks(rows)])


def gather_coordinates(kernel: Kernel, found: Coordinates) -> tuple[list[Moments], float]:
    """Gather the moments of each dataset's coordinates, and the share of the kernel's trace that they leave out."""
    mapping, parts = found.mapping, found.parts
    if found.approximation == "exact":
        kind: Kind = "rows" if mapping.plain_ridge else "scatter"
        return [gather(coordinates, kind=kind, single=False) for coordinates in parts], found.residual
    if found.approximation == "fourier":
        return [_sum_of_moments(_blocks(rows, mapping.transform, mapping)) for rows in parts], found.residual
    gathered = [_landmark_moments(kernel, mapping, rows) for rows in parts]
    covered = sum(part.count * (part.total_variance + sum_of_squares(part.mean)) for part, _ in gathered)
    total = sum(trace for _, trace in gathered)
    if covered > total * (1.0 + 1e-6):
        reject_indefinite("these rows")
    return [part for part, _ in gathered], max(1.0 - covered / total, 0.0) if total > 0.0 else 0.0


def n_directions(mapping: FeatureMap, datasets: list[Any]) -> int:
    """Give the number of directions that the centred coordinates can have."""
    if any(isinstance(dataset, Batches) for dataset in datasets):
        return mapping.n_coordinates
    return min(mapping.n_coordinates, sum(dataset.shape[0] - 1 for dataset in datasets))


def _landmark_moments(kernel: Kernel, mapping: FeatureMap, dataset: Any) -> tuple[Moments, float]:
    """Gather the moments of a dataset's coordinates, and the sum of the kernel of each row with itself."""
    assert isinstance(mapping, LandmarkMap)
    direct = mapping.well_conditioned
    trace = 0.0

    def values(rows: Any) -> Float:
        nonlocal trace
        trace += float(np.sum(kernel.diagonal(rows)))
        block = kernel(rows, mapping.landmarks) if direct else mapping.transform(rows)
        check_kernel_matrix(block, symmetric=True)
        return block

    moments = _sum_of_moments(_blocks(dataset, values, mapping))
    return mapping.from_kernel_values(moments) if direct else moments, trace


def _sum_of_moments(blocks: Iterator[Float]) -> ScatterMoments:
    total = reduce(add, (gather(block, kind="scatter") for block in blocks))
    assert isinstance(total, ScatterMoments)
    return total


def _blocks(dataset: Any, values: Callable[[Any], Float], mapping: FeatureMap) -> Iterator[Float]:
    """Give what a function makes of one block of rows after the other."""
    for piece in dataset if isinstance(dataset, Batches) else [dataset]:
        for start in range(0, piece.shape[0], mapping.block_rows):
            yield values(piece[start : start + mapping.block_rows])


def with_first_rows(datasets: list[Any]) -> tuple[list[Any], Any]:
    """Give some rows of the target to look at; of an iterator the first batch, which is put back."""
    target = datasets[0]
    if not isinstance(target, Batches):
        first, opened = target[:1000], target
    else:
        rest = iter(target)
        first = next((batch for batch in rest if batch.shape[0]), np.zeros((0, 1)))
        opened = Batches(chain([first], rest), target.name, 2)
        opened.columns = target.columns
    for background in datasets[1:]:
        if isinstance(background, Batches):
            background.width = first.shape[1]
    return [opened, *datasets[1:]], first
