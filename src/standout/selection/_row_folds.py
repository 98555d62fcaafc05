"""Folds of rows that are kept, and of wide data in coordinates of the span of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float, dense, product
from standout._xp import cholesky, concat, diagonal, eigh, eye, like, namespace, solve_triangular, take, to_host
from standout.moments import (
    CentredRows,
    Folds,
    KeptRows,
    Kind,
    Moments,
    Part,
    RowMoments,
    joint_gram,
    keep_joint_gram,
    squares_by_group,
)
from standout.sources import Batch

# Rows whose inner products have smaller pivots than this share of their size, per row, have lost digits.
LOST = 1e-12

# A fold that is left out, and the number of folds.
LeftOut = tuple[int, int]


@dataclass(frozen=True, eq=False)
class RowFolds(Folds[Moments]):
    """Folds of rows that are kept, so that the rows of all other folds are kept as well.

    Attributes
    ----------
    rows : array of shape (n, n_columns)
    row_weights : array of shape (n,) or None
    numbers : ndarray of int
        The fold of each row.
    left : callable or None
        Gives the moments without each fold in turn, if they come with the inner products of all datasets.
    """

    rows: Array
    row_weights: Array | None
    numbers: npt.NDArray[np.intp]
    left: Callable[[], Iterator[Moments]] | None = None

    @classmethod
    def of(
        cls, rows: Array, row_weights: Array | None, numbers: npt.NDArray[np.intp], n_folds: int, n_dealt: int
    ) -> RowFolds:
        """Take rows apart by the numbers of their folds."""
        sums = (_moments_of(rows, row_weights, numbers == fold) for fold in range(n_folds))
        return cls(tuple(sums), n_dealt, rows, row_weights, numbers)

    @classmethod
    def of_all(
        cls,
        datasets: Sequence[KeptRows],
        fold_of: Sequence[npt.NDArray[np.intp]],
        n_folds: int,
        n_dealt: int,
        coordinates: Sequence[Array] | None = None,
    ) -> list[RowFolds]:
        """Take the rows of all datasets apart, or coordinates with the same inner products.

        The inner products of all rows are those of the rows without a fold, up to their means.
        """
        given = [_kept_rows(part) for part in datasets] if coordinates is None else coordinates
        folds = [
            cls.of(rows, part.row_weights, numbers, n_folds, n_dealt)
            for rows, part, numbers in zip(given, datasets, fold_of, strict=True)
        ]
        left = _Left(folds, joint_gram(datasets))
        return [replace(part, left=partial(left.of, number)) for number, part in enumerate(folds)]

    def total(self) -> Moments:
        """Give the moments of all rows."""
        return self._without(-1)

    def others(self) -> Iterator[Moments]:
        """Give, for each fold in turn, the moments of the rows of all other folds."""
        return map(self._without, range(self.n_folds)) if self.left is None else self.left()

    def fewer(self, n_folds: int) -> RowFolds:
        """Give the same rows in at most so many folds."""
        n_folds = self._at_most(n_folds)
        if n_folds == self.n_folds:
            return self
        return RowFolds.of(self.rows, self.row_weights, self.numbers % n_folds, n_folds, self.n_dealt)

    def scatters(self) -> Folds[Moments]:
        """Give the scatter matrices of the same folds."""
        sums = (
            _moments_of(self.rows, self.row_weights, self.numbers == fold, "scatter") for fold in range(self.n_folds)
        )
        return Folds(tuple(sums), self.n_dealt)

    def _without(self, fold: int) -> Moments:
        found = _moments_of(self.rows, self.row_weights, self.numbers != fold)
        assert found is not None
        return found


@dataclass(eq=False)
class _Left:
    """What all datasets are without each fold. The datasets are asked for fold by fold: the last one is kept."""

    folds: list[RowFolds]
    gram: Float
    last: tuple[int, list[Moments]] | None = None

    def of(self, number: int) -> Iterator[Moments]:
        """Give the moments of one dataset without each fold in turn."""
        for fold in range(self.folds[0].n_folds):
            yield self._without(fold)[number]

    def _without(self, fold: int) -> list[Moments]:
        if self.last is None or self.last[0] != fold:
            left = [part._without(fold) for part in self.folds]
            kept = [part.numbers != fold for part in self.folds]
            weights = [part.row_weights for part in self.folds]
            keep_joint_gram(left, partial(_gram_without, self.gram, kept, weights))
            self.last = fold, left
        return self.last[1]


def _moments_of(
    rows: Array, row_weights: Array | None, chosen: npt.NDArray[np.bool_], kind: Kind = "rows"
) -> Moments | None:
    """Gather the moments of some rows; None if there are none, or none with a weight."""
    if not chosen.any():
        return None
    weights = None if row_weights is None else take(row_weights, chosen)
    found: Moments | None = Part(kind, norms=True, single=False)(Batch(take(rows, chosen), weights=weights))
    return found


@dataclass(frozen=True, eq=False)
class SpanFolds:
    """Folds of wide data in coordinates of the span of their rows, found from the inner products of the rows.

    Attributes
    ----------
    row_folds : list of RowFolds
        For each dataset, the coordinates of its centred rows.
    datasets : list of RowMoments or CentredRows
    maps : list of array
        For each dataset, the weights of its rows in each direction of the span.
    """

    row_folds: list[RowFolds]
    datasets: list[KeptRows]
    maps: list[Array]

    @classmethod
    def of(
        cls,
        datasets: Sequence[KeptRows],
        fold_of: Sequence[npt.NDArray[np.intp]],
        n_folds: int,
        n_dealt: int,
    ) -> SpanFolds | None:
        """Multiply the rows with each other once, and gather the moments of folds from the products.

        `fold_of` has the fold of each row of each dataset; see `Folds` for `n_dealt`. None if no dataset varies.
        """
        found = _coordinates(joint_gram(datasets), datasets)
        if found is None:
            return None
        coordinates, weights = found
        ends = np.cumsum([part.count for part in datasets]).tolist()
        places = [(end - part.count, end) for end, part in zip(ends, datasets, strict=True)]
        parts = [
            _unweighted(coordinates[start:end, :], part) for part, (start, end) in zip(datasets, places, strict=True)
        ]
        folds = RowFolds.of_all(datasets, fold_of, n_folds, n_dealt, parts)
        return cls(folds, list(datasets), [weights[start:end, :] for start, end in places])

    @cached_property
    def folds(self) -> list[Folds[Moments]]:
        """For each dataset, the scatter matrices of the coordinates of each fold."""
        return [part.scatters() for part in self.row_folds]

    @property
    def n_columns(self) -> int:
        """Number of columns of the data."""
        return self.datasets[0].n_features

    def basis_of(self, columns: npt.NDArray[np.intp]) -> Array:
        """Give the rows of the basis of the span that belong to some columns: of shape (n_columns, r)."""
        part = replace(self, datasets=[dataset.taken(columns) for dataset in self.datasets])
        size = self.maps[0].shape[1]
        return part.lifted(like(np.eye(size), self.maps[0]))

    @cached_property
    def _squares(self) -> list[tuple[Array, Float]]:
        return [
            squares_by_group(part, folds.numbers, folds.n_folds)
            for part, folds in zip(self.datasets, self.row_folds, strict=True)
        ]

    def variances_without(self, left_out: LeftOut) -> list[Array]:
        """Give the variances of the columns of each dataset, over the rows of all folds but one."""
        fold, n_folds = left_out
        kept = np.arange(self.row_folds[0].n_folds) % n_folds != fold
        return [
            namespace(squares).sum(take(squares, kept), axis=0) / float(counts[kept].sum())
            for squares, counts in self._squares
        ]

    def rows_without(self, left_out: LeftOut, columns: npt.NDArray[np.intp]) -> list[Moments]:
        """Give the moments of some columns of each dataset, as rows, over the rows of all folds but one."""
        fold, n_folds = left_out
        kept: list[Moments] = []
        for dataset, folds in zip(self.datasets, self.row_folds, strict=True):
            part = dataset.taken(columns)
            chosen = np.flatnonzero(folds.numbers % n_folds != fold)
            rows = _kept_rows(part)
            weights = None if part.row_weights is None else take(part.row_weights, chosen)
            some = take(rows, chosen)
            kept.append(CentredRows(some, weights) if isinstance(part, CentredRows) else RowMoments(some))
        return kept

    def inside(self, vectors: Array) -> Array:
        """Give directions in the columns of the data, the columns of an array, in the coordinates of the span."""
        parts = [
            product(weights.T, part.project(vectors)) for part, weights in zip(self.datasets, self.maps, strict=True)
        ]
        return sum(parts[1:], start=parts[0])

    def lifted(self, filters: Array) -> Array:
        """Give directions in the span, the columns of an array, in the columns of the data."""
        parts = [
            part.combine(product(weights, filters)) for part, weights in zip(self.datasets, self.maps, strict=True)
        ]
        return sum(parts[1:], start=parts[0])


def _coordinates(gram: Float, datasets: Sequence[KeptRows]) -> tuple[Array, Array] | None:
    """Give coordinates of rows from their inner products, and the weights of the rows in each coordinate's direction.

    None if no dataset varies. A Cholesky factor gives them in a fraction of the time of eigenvectors. The centred rows
    of a dataset add up to zero, so that there is no factor. Moved by one vector, orthogonal to all rows, they have one.
    Nothing that is computed from coordinates depends on where a dataset is, but only on how its rows vary.
    """
    size = gram.shape[0]
    height = float(namespace(gram).sum(diagonal(gram))) / size
    if not height > 0.0:
        return None
    moved = 1.0 * gram
    end = 0
    for part in datasets:
        # Rows with weights are given times the roots of these, and so is what they are moved by.
        roots = np.ones(part.count) if part.row_weights is None else np.sqrt(to_host(part.row_weights))
        step = like(roots * np.sqrt(height / np.sum(roots**2)), gram)
        place = slice(end, end + part.count)
        moved[place, place] += step[:, None] * step
        end += part.count
    factor = cholesky(moved)
    if factor is not None:
        pivots = diagonal(factor) ** 2
        if float(namespace(pivots).min(pivots)) > size * LOST * height:
            coordinates = namespace(factor).tril(factor)
            return coordinates, solve_triangular(coordinates, eye(size, gram)).T
    values, vectors = eigh(gram)
    xp = namespace(values)
    present = values > float(xp.max(values)) * size * float(np.finfo(np.float64).eps)
    if not bool(xp.any(present)):
        return None
    values, vectors = take(values, present), take(vectors, present, axis=1)
    return vectors * xp.sqrt(values), vectors / xp.sqrt(values)


def _kept_rows(part: KeptRows) -> Array:
    return part.rows if isinstance(part, CentredRows) else concat([dense(block) for block in part.blocks])


def _gram_without(gram: Float, kept: Sequence[npt.NDArray[np.bool_]], weights: Sequence[Array | None]) -> Float:
    """Give the inner products of some rows of each dataset, about their own mean, from those about the mean of all."""
    chosen = np.flatnonzero(np.concatenate(kept))
    part = take(take(gram, chosen), chosen, axis=1)
    end = 0
    for some, own in zip(kept, weights, strict=True):
        count = int(np.sum(some))
        # The rows, times the roots of their weights, add up to zero with the same roots.
        roots = np.ones(count) if own is None else np.sqrt(to_host(own)[some])
        unit = like(roots / np.linalg.norm(roots), gram)[:, None]
        place = slice(end, end + count)
        part[place, :] -= unit * (unit.T @ part[place, :])
        part[:, place] -= (part[:, place] @ unit) * unit.T
        end += count
    return part


def _unweighted(rows: Array, part: KeptRows) -> Array:
    """Give rows that come times the roots of their weights as they are."""
    if part.row_weights is None:
        return rows
    xp = namespace(rows)
    roots = xp.sqrt(part.row_weights)[:, None]
    return xp.where(roots > 0.0, rows / xp.where(roots > 0.0, roots, 1.0), 0.0)
