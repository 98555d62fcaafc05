"""The data of a fit: sums by fold, of the columns, or of coordinates in the span of wide rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import BLOCK_BYTES, Float, Rows, dense, double, is_sparse
from standout._xp import concat, is_foreign, like, namespace, take, to_host, zeros
from standout.moments import FoldPattern, Moments, RowMoments, ScatterMoments, Span, gather, gather_keyed, span_of
from standout.pencil._record import check_directions
from standout.problem import Problem, Sums, adjusted, column_scale
from standout.sources import InMemory, Source
from standout.sources._form import as_rows

Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Places:
    """The fold of each row if each site is a fold.

    Attributes
    ----------
    ends : tuple of tuple of int
        For each dataset, the cumulative numbers of rows of the sites.
    """

    ends: tuple[tuple[int, ...], ...]

    def of(self, dataset: int, numbers: Numbers) -> Numbers:
        """Return the site of some rows of a dataset. `numbers` are the positions of the rows."""
        return np.searchsorted(np.array(self.ends[dataset]), numbers, side="right")


Folds = FoldPattern | Sequence[Numbers]

# Each fold needs at least ROWS_PER_FOLD rows of each dataset. There are no folds if the data have
# more than MOST_COLUMNS columns and also more than MOST_COLUMNS rows.
ROWS_PER_FOLD, MOST_COLUMNS = 2, 8192
# Folds are solved together while the number of folds times the number of columns is at most this, on the host and on a
# device.
TOGETHER_SIZE, DEVICE_TOGETHER_SIZE = 2000, 25_000
# With at most this many columns, the sums without each fold are kept in memory.
KEPT_SIZE = 1000
# With more columns than MANY_COLUMNS, there are at most FEW_FOLDS folds, because each fold stores a matrix for every
# dataset.
MANY_COLUMNS, FEW_FOLDS = 5000, 3


@dataclass(frozen=True, eq=False)
class TallData:
    """Moments of the columns, by dataset and fold."""

    parts: Sequence[Sequence[Moments | None]]
    n_covariates: int = 0
    # Whether each fold consists of whole subjects.
    subjects: bool = False
    # The results of `sums` that were computed before, by fold.
    _known: dict[int | None, Sums] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, but without the cached sums, which can be computed again."""
        return {**vars(self), "_known": {}}

    @property
    def n_folds(self) -> int:
        """Number of folds; 1 means that there are none."""
        return len(self.parts[0])

    @property
    def lacks_rows(self) -> bool:
        """Whether a fold has no rows of a dataset. For an iterator, this is not known before all rows are read."""
        return any(part is None for own in self.parts for part in own)

    @property
    def n_columns(self) -> int:
        """Number of columns, without covariates."""
        return next(part.n_features for part in self.parts[0] if part is not None) - self.n_covariates

    @property
    def totals(self) -> tuple[Moments, ...]:
        """The moments of all rows of each dataset."""
        return self.sums(Problem()).moments

    def sums(self, problem: Problem, fold: int | None = None) -> Sums:
        """Return the sums over all rows, or over all rows outside of a fold."""
        if fold in self._known:
            return self._known[fold]
        moments: list[Moments] = []
        for number, own in enumerate(self.parts):
            # Subtract the fold from the total if possible. `without` returns None if this would lose digits. The sums
            # of the other folds are then added.
            part, left = None if fold is None else own[fold], None
            if isinstance(part, ScatterMoments):
                left = self.sums(problem).moments[number].without(part)  # type: ignore[attr-defined]
            others = [other for other in own if other is not None and other is not part]
            moments.append(reduce(add, others) if left is None else left)
        found = Sums(tuple(moments), int(moments[0].mean.shape[0]) - self.n_covariates)
        if fold is None or found.dimension <= KEPT_SIZE:
            self._known[fold] = found
        return found

    def held_out(self, problem: Problem, fold: int) -> tuple[Moments, ...]:
        """Return the moments of the rows of a fold. Every fold must have rows of every dataset (see `lacks_rows`)."""
        return tuple(part[fold] for part in self.parts)  # type: ignore[misc]

    def column_facts(self) -> tuple[list[Float], list[Float]]:
        """Return the means and the variances of the columns of each dataset, on the host."""
        q = self.n_covariates
        parts = self.sums(Problem()).moments
        parts = tuple(adjusted(part, q) for part in parts) if q else parts
        return [to_host(part.mean) for part in parts], [to_host(part.variances) for part in parts]

    def mapped(self, root: Float) -> TallData:
        """Return the moments of the columns multiplied by a matrix; covariates are not changed."""
        size, q = root.shape[0], self.n_covariates
        if q:
            root = concat([root, zeros((q, root.shape[1]), root)])
            root = concat([root, like(np.eye(size + q, q, -size), root)], axis=1)
        parts = [[None if part is None else part.mapped(root) for part in own] for own in self.parts]
        return TallData(parts, self.n_covariates, self.subjects)


@dataclass(frozen=True, eq=False)
class WideData:
    """Wide data: more columns than rows. The sums are of coordinates in the span of all rows.

    If columns are scaled, the scales are computed for each fold without the rows of this fold. So each fold has a
    separate span.
    """

    rows: Sequence[Rows]
    folds: Sequence[Numbers]
    n_folds: int
    weights: Sequence[Float | None]
    covariates: Sequence[Float | None]
    norms: bool
    subjects: bool = False

    @property
    def n_columns(self) -> int:
        """Number of columns, without covariates."""
        return int(self.rows[0].shape[1])

    @property
    def n_covariates(self) -> int:
        """Number of covariates."""
        return 0 if self.covariates[0] is None else self.covariates[0].shape[1]

    @property
    def lacks_rows(self) -> bool:
        """Whether a fold has no rows of a dataset."""
        both = zip(self.folds, self.weights, strict=True)
        return any(len(np.unique(own if part is None else own[part > 0.0])) < self.n_folds for own, part in both)

    @cached_property
    def plain(self) -> _Spanned:
        """The coordinates of the rows, with columns that are not scaled."""
        return self._spanned(None)

    def sums(self, problem: Problem, fold: int | None = None) -> Sums:
        """Return the sums over all rows, or over all rows outside of a fold."""
        spanned = self._for(problem, fold)
        moments = spanned.tall.sums(problem, fold).moments

        def some(columns: Numbers) -> Sums:
            return self.taken(columns).sums(problem, fold)

        variances = tuple(self.variances(fold)) if problem.n_columns is not None else ()
        origin = spanned.span.origin if spanned.scale is None else spanned.span.origin * spanned.scale
        lifts = spanned.lift, spanned.drop, spanned.scale
        return Sums(moments, self.n_columns, *lifts, some, variances, origin, single=spanned.span.single)

    def held_out(self, problem: Problem, fold: int) -> tuple[Moments, ...]:
        """Return the moments of the rows of a fold, in the coordinates of ``sums(problem, fold)``."""
        return self._for(problem, fold).tall.held_out(problem, fold)

    def taken(self, columns: Numbers) -> Data:
        """Return the data with some of the columns."""
        rows = [take(part, columns, axis=1) for part in self.rows]
        if len(columns) > sum(part.shape[0] for part in rows):
            return replace(self, rows=rows)
        return TallData(self._moments(rows), self.n_covariates)

    def _for(self, problem: Problem, fold: int | None) -> _Spanned:
        if problem.scale is None:
            return self.plain
        return self._spanned(column_scale(self.variances(fold), problem))

    @cached_property
    def _all_variances(self) -> list[Float]:
        return list(map(adjusted_variances, self.rows, self.weights, self.covariates))

    def variances(self, fold: int | None = None) -> list[Float]:
        """Return the variances of the columns of each dataset, without the rows of a fold."""
        if fold is None:
            return self._all_variances
        found = []
        for part, own, *beside in zip(self.rows, self.folds, self.weights, self.covariates, strict=True):
            chosen = np.flatnonzero(own != fold)
            weights, covariates = (None if one is None else one[chosen] for one in beside)
            found.append(adjusted_variances(take(part, chosen), weights, covariates))
        return found

    def column_facts(self) -> tuple[list[Float], list[Float]]:
        """Return the means and the variances of the columns of each dataset, on the host."""
        means = [to_host(column_means(part, weights)) for part, weights in zip(self.rows, self.weights, strict=True)]
        return means, [to_host(part) for part in self.variances()]

    def _spanned(self, scale: Float | None) -> _Spanned:
        rows = self.rows
        if scale is not None:
            rows = [part.multiply(1.0 / scale).tocsr() if is_sparse(part) else part / scale for part in rows]
        span = span_of(rows, self.weights)
        check_directions(1, span.coordinates[0].shape[1])
        return _Spanned(TallData(self._moments(span.coordinates), self.n_covariates), span, scale)

    def _moments(self, rows: Sequence[Rows]) -> list[list[Moments | None]]:
        found = []
        for part, own, weights, covariates in zip(rows, self.folds, self.weights, self.covariates, strict=True):
            source = InMemory(part)
            source.weights, source.covariates = weights, covariates
            found.append(gather_keyed(source, own, self.n_folds, norms=self.norms))
        return found


@dataclass(frozen=True, eq=False)
class _Spanned:
    """Coordinates of wide rows: their moments by fold, and the maps between columns and coordinates."""

    tall: TallData
    span: Span
    scale: Float | None

    def lift(self, vectors: Float) -> Float:
        """Return vectors in the columns of the data."""
        lifted = self.span.lift(vectors)
        return lifted if self.scale is None else lifted / self.scale[:, None]

    def drop(self, vectors: Float) -> Float:
        """Return vectors in the coordinates of the span."""
        return self.span.drop(vectors if self.scale is None else vectors * self.scale[:, None])


Data = TallData | WideData


def together(data: Data, problem: Problem) -> Iterator[tuple[range, list[Sums]]]:
    """Yield groups of folds that are solved together because their matrices are small.

    Each group comes with the sums of all rows outside of each of its folds.
    """
    mean, size = data.sums(problem).moments[0].mean, 1
    # Folds of scaled wide rows have different numbers of coordinates, so each fold is solved alone.
    if isinstance(data, TallData) or problem.scale is None:
        size = max((DEVICE_TOGETHER_SIZE if is_foreign(mean) else TOGETHER_SIZE) // mean.shape[0], 1)
    for first in range(0, data.n_folds, size):
        folds = range(first, min(first + size, data.n_folds))
        yield folds, [data.sums(problem, fold) for fold in folds]


def make_data(
    sources: Sequence[Source], folds: Folds | None, *, norms: bool, kind: str = "scatter", wide: bool = False
) -> Data:
    """Return the sums of all datasets by fold. Each dataset is read once."""
    covariates = sources[0].covariates
    q, subjects = 0 if covariates is None else covariates.shape[1], sources[0].subjects is not None
    pattern = FoldPattern(1) if folds is None else folds
    keys: Sequence[FoldPattern | Numbers]
    if isinstance(pattern, FoldPattern):
        keys, n_folds = [pattern] * len(sources), pattern.n_folds
    else:
        keys, n_folds = pattern, 1 + max(int(own.max()) for own in pattern)
    if wide:
        loaded = [part.loaded() for part in sources]
        for part in loaded:
            as_rows(part.rows, part.name, keys=part.keys)
        pairs = zip(keys, loaded, strict=True)
        numbers = [own.of(np.arange(part.count_rows())) if isinstance(own, FoldPattern) else own for own, part in pairs]
        rows, weights, beside = zip(*((part.rows, part.weights, part.covariates) for part in loaded), strict=True)
        return WideData(rows, numbers, n_folds, weights, beside, norms, subjects)
    if folds is None:
        return TallData([[gather(part, kind=kind, norms=norms, name=part.name)] for part in sources], q)  # type: ignore[arg-type]
    parts = [
        gather_keyed(part, own, n_folds, norms=norms, kind=kind, name=part.name)  # type: ignore[arg-type]
        for part, own in zip(sources, keys, strict=True)
    ]
    return TallData(parts, q, subjects)


def plan_folds(sources: Sequence[Source], cv: int | None, size: int) -> tuple[Folds | None, str]:
    """Return the folds, or None with the reason why there are no folds.

    With groups, whole subjects are left out. `size` is the number of columns, or the number of rows if there are fewer
    rows than columns.
    """
    if len(sources) == 1:
        return None, "there is no background"
    if cv is None:
        return None, "cv is None"
    if size > MOST_COLUMNS:
        return None, f"there are more than {MOST_COLUMNS} columns"
    if size > MANY_COLUMNS:
        cv = min(cv, FEW_FOLDS)
    if sources[0].subjects is not None:
        return _subject_folds([part.subjects for part in sources], cv)  # type: ignore[misc]
    counts = [part.n_rows for part in sources if part.n_rows is not None]
    n_folds = min([cv, *(count // ROWS_PER_FOLD for count in counts)])
    if n_folds < 2:
        return None, f"a dataset has {min(counts)} rows, and 2 folds need {2 * ROWS_PER_FOLD}"
    return FoldPattern(n_folds), ""


def _subject_folds(codes: Sequence[Numbers], cv: int) -> tuple[Folds | None, str]:
    """Return folds of whole subjects, with about equal numbers of subjects and rows of every dataset."""
    n_subjects = 1 + max(int(own.max(initial=-1)) for own in codes)
    counts = np.array([np.bincount(own, minlength=n_subjects) for own in codes])
    fewest = int((counts > 0).sum(axis=1).min())
    n_folds = min(cv, fewest)
    if n_folds < 2:
        return None, "a dataset has a single subject"
    folds = np.empty(n_subjects, dtype=np.intp)
    _, kinds = np.unique(counts > 0, axis=1, return_inverse=True)
    first = 0
    for kind in range(int(kinds.max()) + 1):
        members = np.flatnonzero(kinds.ravel() == kind)
        shuffled = np.random.default_rng(0).permutation(len(members))
        order = np.lexsort((shuffled, -counts[:, members].sum(axis=0)))
        rounds, steps = np.divmod(np.arange(len(members)), n_folds)
        # The order alternates, so that no fold gets the largest subject of every round.
        folds[members[order]] = (np.where(rounds % 2, n_folds - 1 - steps, steps) + first) % n_folds
        first += len(members)
    return [folds[own] for own in codes], ""


def column_variances(rows: Rows, weights: Float | None = None) -> Float:
    """Return the variance of each column."""
    if is_sparse(rows):
        return RowMoments(rows, weights).variances
    step = rows.shape[1] if is_foreign(rows) else max(BLOCK_BYTES // (8 * rows.shape[0]), 1)
    found = []
    for first in range(0, rows.shape[1], step):
        part = double(rows[:, first : first + step])
        # Subtract the first row before the mean. Otherwise the mean of a constant column would have a rounding error,
        # and the column a variance above zero.
        part = part - part[:1]
        part -= column_means(part, weights)
        part *= part
        found.append(column_means(part, weights))
    return concat(found)


def adjusted_variances(rows: Rows, weights: Float | None, covariates: Float | None) -> Float:
    """Return the variance of each column without the effects of covariates, as in `standout.problem.adjusted`."""
    variances = column_variances(rows, weights)
    if covariates is None:
        return variances
    shares = np.full(len(covariates), 1.0 / len(covariates)) if weights is None else weights / weights.sum()
    centred = covariates - shares @ covariates
    weighed = (shares[:, None] * centred).T
    along = to_host(dense(like(weighed, rows) @ rows))
    explained = np.sum(along * (np.linalg.pinv(weighed @ centred) @ along), axis=0)
    count = 1.0 / float(np.sum(shares**2))
    left = np.maximum(to_host(variances) - explained, 0.0) * count / max(count - covariates.shape[1], 1.0)
    return like(left, variances)


def column_means(rows: Rows, weights: Float | None = None) -> Float:
    """Return the mean of each column."""
    if weights is not None:
        return np.asarray(weights / weights.sum() @ rows).ravel()
    if is_foreign(rows):
        return namespace(rows).mean(rows, axis=0)
    return np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
