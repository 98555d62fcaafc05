"""Rows that count less: what robust weights make of the rows, and whether a few rows decide a fit without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from standout._arrays import Float, Rows, dense, is_sparse
from standout._messages import Message
from standout.moments import (
    Moments,
    RobustWeights,
    Weighed,
    Weighing,
    gather,
    gather_folds,
    learn_weights,
    ledoit_wolf,
)
from standout.pencil import solve
from standout.report._findings import Numbers, Single, Small, Stray
from standout.report._fit import Fit
from standout.report._format import counted, joined, whole
from standout.sources import Batch, InMemory, Source, beside

# Rows that are listed, and columns that are named for each: those that differ from the mean by so many deviations.
MOST_LISTED = 20
MOST_NAMED, FAR = 3, 4.0
# Scores further from the middle half of the others than so many times its width are out of place, with robust weights.
REACH = 3.0
# Rows of each dataset that a second fit looks at, and numbers of them.
MOST_SAMPLED, MOST_NUMBERS, LEAST_SAMPLED = 2000, 2**21, 30
# A few rows decide the view if the leading components with and without weights differ by so many degrees, and along the
# plain one all other rows stand out by less than this share of what they do along the other.
FAR_APART, HARDLY_THERE = 25.0, 0.5
N_FOLDS = 5
FEW_CELLS = 0.01


class Strays:
    """What robust weights make of the rows of one dataset, batch by batch.

    Attributes
    ----------
    n_outlying, n_wild : int
        Number of outlying rows, and of cells that were replaced.
    listed : list of Stray
        The rows that count least.
    total : float
        Sum of the weights.
    """

    def __init__(
        self, number: int, weigh: Weighing, limit: float, moments: Moments | None, names: Sequence[str]
    ) -> None:
        self._number, self._weigh, self._limit, self._names = number, weigh, limit, names
        self._mean = None if moments is None else moments.mean
        self._spread = None if moments is None else np.sqrt(np.maximum(moments.variances, 0.0))
        self.n_outlying, self.n_wild, self.total = 0, 0, 0.0
        self.listed: list[Stray] = []
        self._shown: list[tuple[Float, Any]] = []
        self._sums: list[Float] = [np.zeros(1), np.zeros(1), np.zeros(1)]

    def add(self, batch: Batch, ids: Any, scores: Float, shown: Numbers) -> Batch:
        """Take in a batch with the scores that are drawn; give it without wild cells, and with weights."""
        found = self._weigh(batch.rows)
        outlying = found.distances > self._limit
        self.n_outlying += int(np.count_nonzero(outlying))
        self.n_wild += 0 if found.wild is None else int(np.count_nonzero(found.wild))
        self.total += float(found.weights.sum())
        # Scores are those of rows as they are. Wild cells would decide their spread.
        own = found.weights if found.wild is None else np.where(found.wild.any(axis=1), 0.0, found.weights)
        powers = np.ones((batch.n_rows, 1)), scores, scores**2
        self._sums = [total + own @ power for total, power in zip(self._sums, powers, strict=True)]
        self._shown.append((found.weights[shown], outlying[shown]))
        places = np.flatnonzero(outlying)
        places = places[np.argsort(found.weights[places], kind="stable")[:MOST_LISTED]]
        self.listed += [
            Stray(
                self._number,
                batch.start + int(place),
                None if ids is None else str(ids[place]),
                float(found.weights[place]),
                self._columns(batch.rows[place : place + 1]),
            )
            for place in places.tolist()
        ]
        self.listed = sorted(self.listed, key=lambda stray: stray.weight)[:MOST_LISTED]
        return replace(batch, rows=found.rows, weights=found.weights)

    def _columns(self, row: Rows) -> tuple[str, ...]:
        """Name the columns in which a row differs most from the mean."""
        if self._mean is None or self._spread is None:
            return ()
        steps = dense(row)[0] - self._mean
        sizes = np.divide(np.abs(steps), self._spread, out=np.zeros_like(self._mean), where=self._spread > 0.0)
        leading = np.argsort(-sizes, kind="stable")[:MOST_NAMED]
        return tuple(self._names[column] for column in leading.tolist() if sizes[column] > FAR)

    @property
    def weights(self) -> Single:
        """Weights of the rows that are drawn."""
        return np.concatenate([weights for weights, _ in self._shown]).astype(np.float32)

    @property
    def outlying(self) -> Small:
        """Which of the rows that are drawn are outlying."""
        return np.concatenate([outlying for _, outlying in self._shown]).astype(np.int8)

    @property
    def variances(self) -> Float:
        """Weighted variances of the scores."""
        total, *powers = self._sums
        mean, square = (power / np.maximum(total, 1e-300) for power in powers)
        return np.maximum(square - mean**2, 0.0)


def strays_of(fit: Fit, names: Sequence[str]) -> list[Strays] | None:
    """Give what takes in the rows of each dataset; None if all rows of the fit count the same."""
    if not fit.is_robust:
        return None
    moments: list[Any] = list(fit.moments) or [None] * len(fit.datasets)
    return [
        Strays(number, fit.model._weighing(number), fit.model.robust_weights_[number].limit, part, names)
        for number, part in enumerate(moments)
    ]


def robust_choice(fit: Fit, names: Sequence[str], found: Sequence[Strays]) -> Message:
    """Say what was found out of place, and what was done about it."""
    parts = [f"{whole(one.n_outlying)} of {counted(n, 'row')} of {name}" for one, n, name in _each(fit, names, found)]
    n_sampled = [learned.n_sampled for learned in fit.model.robust_weights_]
    sampled = any(n < rows for n, rows in zip(n_sampled, fit.counts, strict=True))
    problem = "Robust weights: {rows} lie far from all others, and count less"
    if fit.model.robust == "cells":
        problem += (
            ". {cells} were far from the others of their column, and were replaced by what the rest of their row "
        )
        problem += "lets expect"
    if sampled:
        problem += ". The weights were learned from {n_sampled} rows of each dataset, drawn at random"
    cells = [f"{counted(one.n_wild, 'value')} of {name}" for one, _, name in _each(fit, names, found)]
    facts = {"rows": joined(parts), "cells": joined(cells), "n_sampled": min(n_sampled)}
    used = {name: fact for name, fact in facts.items() if f"{{{name}}}" in problem}
    return Message(problem, kind="robust", **used)


def _each(fit: Fit, names: Sequence[str], found: Sequence[Strays]) -> Iterator[tuple[Strays, int, str]]:
    return zip(found, fit.counts, names, strict=True)


def ordinary_range(view: Float | Single) -> tuple[Float, Float]:
    """Give the ends of the range in which the scores of rows are that are not out of place."""
    low, high = np.quantile(view, [0.25, 0.75], axis=0)
    reach = REACH * (high - low)
    return low - reach, high + reach


# --- a fit without robust weights ------------------------------------------------------------------------------------


def sample_size(fit: Fit) -> int:
    """Give the number of rows of each dataset that `decided_by_few` looks at; 0 where it does not look."""
    known = not fit.is_kernel and bool(fit.moments) and fit.are_own and not fit.is_robust
    if not known or getattr(fit.model, "side", "target") != "target":
        return 0
    size = min(MOST_SAMPLED, MOST_NUMBERS // max(fit.n_features, 1))
    return size if size >= LEAST_SAMPLED and min(fit.counts) >= LEAST_SAMPLED else 0


def decided_by_few(fit: Fit, samples: Sequence[Rows]) -> Iterator[Message]:
    """Tell of a view that a few rows or values decide: with robust weights it would be another one.

    Two fits of the same rows are compared, one with weights and one without. They differ for many reasons. A few rows
    decide the view if the fits are far apart, further than chance would bring them, and if all other rows hardly stand
    out along the plain component.
    """
    if not samples:
        return
    all_rows = all(part.shape[0] == count for part, count in zip(samples, fit.counts, strict=True))
    first = fit.model.components_[0] if all_rows else _leading(fit, _gathered(samples))
    for robust in ("rows",) if any(map(is_sparse, samples)) else ("rows", "cells"):
        learned = [learn_weights(part, cells=robust == "cells") for part in samples]
        found = [own(part) for own, part in zip(learned, samples, strict=True)]
        n_rows = sum(int(np.sum(part.distances > own.limit)) for own, part in zip(learned, found, strict=True))
        n_cells = sum(0 if part.wild is None else int(np.sum(part.wild)) for part in found)
        # Many such values, or many in some columns, are the shape of the data: the ink of images, or counts.
        n_single = sum(_n_single(own, part) for own, part in zip(learned, found, strict=True))
        many = n_cells > FEW_CELLS * sum(part.shape[0] * part.shape[1] for part in samples)
        if n_rows + n_cells == 0 or many or 2 * n_single < n_cells:
            continue
        apart = _turn(fit, first, [beside(InMemory(part.rows), weights=part.weights) for part in found])
        if apart is not None:
            yield Message(
                "a few rows decide the view: of {n_looked} rows that were looked at, {strays}. If these count less, "
                "component 1 turns by {apart:.0f} degrees",
                n_looked=sum(int(part.shape[0]) for part in samples),
                strays=f"{whole(n_rows)} {'lies' if n_rows == 1 else 'lie'} far from all others"
                + (f", and {counted(n_cells, 'value')} are far from the others of their column" if n_cells else ""),
                apart=apart,
                advice="Compare with a fit with {p.robust:" + robust + "}, which lists them.",
                kind="strays",
            )
            return


def _n_single(learned: RobustWeights, found: Weighed) -> int:
    """Count wild cells in columns that have few of them."""
    if found.wild is None or learned.filled is None:
        return 0
    return int(np.sum(found.wild & learned.filled))


def _turn(fit: Fit, first: Float, weighted: Sequence[Source]) -> float | None:
    """Give the angle by which robust weights turn a component that a few rows decide; None if they do not decide it."""
    moments = _gathered(weighted)
    other = _leading(fit, moments)
    apart = _degrees(first, other, moments[0])
    if apart < FAR_APART or _strength(fit, first, moments) > HARDLY_THERE * _strength(fit, other, moments):
        return None
    # Where nothing stands out, any two fits are far apart. The jackknife tells how far chance turns the second one.
    folds = [gather_folds(part, N_FOLDS, kind="auto", norms=True, single=False) for part in weighted]
    without = [_leading(fit, [part.without(fold) for part in folds]) for fold in range(N_FOLDS)]
    squares = [_degrees(other, vector, moments[0]) ** 2 for vector in without]
    return apart if apart > float(np.sqrt((N_FOLDS - 1) / N_FOLDS * np.sum(squares))) else None


def _gathered(datasets: Sequence[Any]) -> list[Moments]:
    return [gather(part, norms=True, single=False) for part in datasets]


def _leading(fit: Fit, moments: Sequence[Moments]) -> Float:
    """Give the leading component of the problem of a fit, posed for other moments."""
    shrinkage = _shares(fit, moments[1:]) if fit.has_background and not fit.is_contrastive else None
    vector: Float = solve(fit.pencil(moments, shrinkage), 1).vectors[:, 0]
    return vector


def _shares(fit: Fit, backgrounds: Sequence[Moments]) -> Float:
    """Give the shrinkage of each background: strays change the one that Ledoit and Wolf's rule found with them."""
    if fit.model.shrinkage != "auto":
        return np.asarray(fit.model.shrinkage_)
    return np.array([ledoit_wolf(part) for part in backgrounds])


def _degrees(first: Float, second: Float, moments: Moments) -> float:
    """Give the angle between two components, by the correlation of their scores."""
    both = np.column_stack([first, second])
    products = both.T @ moments.apply(both)
    lengths = np.sqrt(products[0, 0] * products[1, 1])
    return float(np.degrees(np.arccos(min(abs(products[0, 1]) / lengths, 1.0)))) if lengths > 0.0 else 90.0


def _strength(fit: Fit, filter_: Float, moments: Sequence[Moments]) -> float:
    """Give what the method maximises, along a component: a ratio or a difference of variances."""
    column = filter_[:, np.newaxis] / np.linalg.norm(filter_)
    own, *others = (float(part.variance(column)[0]) for part in moments)
    if not others:
        return own
    against = float(np.asarray(fit.model.weights_) @ np.array(others))
    if fit.is_contrastive:
        return own - float(fit.model.alpha_) * against
    shares = _shares(fit, moments[1:])
    sizes = np.array([part.total_variance / fit.n_features for part in moments[1:]])
    return own / (against + float(np.asarray(fit.model.weights_) @ (shares * sizes)))
