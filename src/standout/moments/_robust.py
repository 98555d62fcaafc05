"""Rows and cells that do not belong: how much each row of a dataset counts, learned from the rows themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from standout._arrays import (
    Array,
    Float,
    Rows,
    dense,
    double,
    in_type_of,
    is_sparse,
    product,
    row_blocks,
    self_product,
    squared_lengths,
    stacked,
    sum_of_squares,
    weighted_sum,
)
from standout._messages import InvalidTypeError
from standout._xp import (
    add_to_diagonal,
    cholesky,
    concat,
    eigh,
    eye,
    is_foreign,
    namespace,
    solve_triangular,
    take,
    to_host,
    zeros,
)
from standout.sources import Around, Batch, Beside, InMemory, Source, drawn

# Degrees of freedom of the Student-t distribution that the weights are those of.
DEGREES = 3.0
# A cell, or the distance of a row, is wild beyond this many standard deviations. The standard deviation is estimated
# by the median of absolute deviations, times a factor that makes both equal for normal numbers.
WILD = 5.0
NORMAL = 1.4826
# The weights are found by passes over a sample. After the fourth pass they change by less than a hundredth.
PASSES = 5
# Share of the cells of a row that may be wild. With more of them, the row is.
MOST_WILD = 0.5
# With more outlying rows than this share, no row is.
MOST_OUTLYING = 1.0 / 3.0
# A group of rows apart from others has at least five rows and half a percent of all, ten times as many as chance would
# bring together, and spreads about as much as the dataset does around its centre.
LEAST_GROUP, LEAST_GROUP_SHARE, BEYOND_CHANCE = 5, 0.005, 10.0
LEAST_SPREAD, MOST_SPREAD = 0.2, 2.0
MOST_GROUPS, MOST_COMPARED = 10, 500
# Rounds of filling in the wild cells of a row, each from all other cells.
ROUNDS = 2
# The sample has at most so many rows, and no more numbers than that unless they are few rows.
MOST_ROWS, MOST_NUMBERS, FEW_ROWS = 5000, 2**25, 500
# Larger weights that users give are no counts of rows.
MOST_REPEATED = 10
# Numbers this many times the typical spread away are taken as that far: squares must stay within range.
FAR = 1e8
# The least shrinkage, and the share of the largest value from which on a value counts.
LEAST = 1e-10


class Weighed(NamedTuple):
    """What robust weights make of some rows: the rows, a weight and a squared distance for each, and wild cells.

    `wild` is None without cells, and where no cell is wild.
    """

    rows: Rows
    weights: Float
    distances: Float
    wild: Array | None


@dataclass(frozen=True, eq=False)
class RobustWeights:
    """How much does each row of this dataset count? Learned by `learn_weights`; can be sent to other processes.

    The squared distance d² of a row is measured from the centre of the dataset, in units of its robust scatter. Its
    weight is 1 up to the typical (median) distance m, then that of a Student-t distribution, ``(3 + m)/(3 + d²)``; for
    outlying rows it falls with the square of that.

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
    root : ndarray of shape (n_features, r)
    level : float
        The inverse of the scatter is ``root rootᵀ``; for fewer rows than columns ``level I - root rootᵀ``.
    typical, limit : float
        The median squared distance, and that from which on a row is outlying.
    n_sampled : int
        Number of rows that all this was learned from.
    low, high : ndarray of shape (n_features,) or None
        Limits of each column beyond which a cell is wild; None if cells are taken as they are.
    filled : ndarray of shape (n_features,) of bool or None
        Columns whose wild cells are replaced by what the other cells of the row let expect. In other columns, which
        have many more wild cells than most, they are brought to the limit.
    groups : ndarray of shape (n_groups, n_features) or None
        Centres of small groups of rows that lie apart but close together. They are no strays: the distance of a row is
        that from the nearest centre.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import learn_weights
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> rows[:2] *= 50
    >>> learned = learn_weights(rows)
    >>> learned.weights(rows)[:4].round(3)
    array([0.   , 0.   , 0.865, 1.   ])
    >>> np.flatnonzero(learned.outlying(rows))
    array([0, 1])
    """

    centre: Float
    root: Float
    level: float
    typical: float
    limit: float
    n_sampled: int
    low: Float | None = None
    high: Float | None = None
    filled: Array | None = None
    groups: Float | None = None

    @property
    def origin(self) -> Float:
        """A point near the centre of the rows."""
        return self.centre

    def weights(self, rows: Rows) -> Float:
        """Give the weight of each row."""
        return self(rows).weights

    def outlying(self, rows: Rows) -> Array:
        """Tell which rows are outlying."""
        return self(rows).distances > self.limit

    def cleaned(self, rows: Rows) -> Rows:
        """Give the rows with wild cells replaced; without cells, as they are."""
        return rows if self.low is None else self(rows).rows

    def __call__(self, rows: Rows) -> Weighed:
        """Weigh rows, a block at a time."""
        reject_sparse_cells(rows, cells=self.low is not None)
        parts = [self._block(block) for block in row_blocks(rows)]
        if not parts:
            return Weighed(rows, np.zeros(0), np.zeros(0), None)
        weights, distances = joined_columns(parts)
        if all(part.wild is None for part in parts):
            return Weighed(rows, weights, distances, None)
        wild = [part.distances[:, None] < zeros(part.rows.shape, part.distances) for part in parts]
        wild = [nothing if part.wild is None else part.wild for part, nothing in zip(parts, wild, strict=True)]
        return Weighed(stacked([part.rows for part in parts]), weights, distances, stacked(wild))

    def _block(self, block: Rows) -> Weighed:
        # A wild number of any size has a weight, if only the weight zero.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if is_sparse(block):
                distances = self._distances(double(block))
                return Weighed(block, self.weight(distances), distances, None)
            centred, wild = double(block) - self.centre, None
            if self.low is not None:
                wild = self._wild(centred)
            rows = block
            if wild is not None:
                # On the host only rows with wild cells are worked on: mostly they are few.
                some = None if is_foreign(block) else np.flatnonzero(np.any(wild, axis=1))
                rows, centred = self._tamed(block, centred, wild, some)
            distances = self._distances(centred)
            return Weighed(rows, self.weight(distances), distances, wild)

    def weight(self, distances: Float) -> Float:
        """Give the weights of rows at these squared distances."""
        xp = namespace(distances)
        # No row counts more than a typical one: else a few rows close together could draw the centre to themselves.
        weights = (DEGREES + self.typical) / (DEGREES + xp.clip(distances, self.typical, None))
        if np.isinf(self.limit):
            return weights
        return weights * (self.limit / xp.clip(distances, self.limit, None))

    def _distances(self, rows: Rows) -> Float:
        """Give the squared distances of rows, which are centred if they are dense, from the nearest centre."""
        origin = self.centre if is_sparse(rows) else 0.0 * self.centre
        centres = [origin]
        if self.groups is not None:
            centres += [origin + self.groups[k, :] - self.centre for k in range(self.groups.shape[0])]
        turned = product(rows, self.root)
        found = [self._distances_from(rows, turned, centre) for centre in centres]
        xp = namespace(found[0])
        least = reduce(xp.minimum, found)
        # Beyond the range of numbers is beyond all limits.
        return xp.where(xp.isfinite(least), abs(least), xp.full_like(least, np.inf))

    def _distances_from(self, rows: Rows, turned: Float, centre: Float) -> Float:
        along = squared_lengths(turned - product(centre[None, :], self.root))
        if self.level == 0.0:
            return along
        if is_sparse(rows):
            lengths = squared_lengths(rows) - 2.0 * (rows @ centre) + sum_of_squares(centre)
        else:
            lengths = squared_lengths(rows - centre)
        return self.level * lengths - along

    def _precision(self, centred: Float) -> Float:
        """Multiply the inverse of the scatter with rows."""
        found = product(product(centred, self.root), self.root.T)
        return found if self.level == 0.0 else self.level * centred - found

    def _wild(self, centred: Float) -> Array | None:
        """Tell which cells are wild; None if none is."""
        assert self.low is not None
        assert self.high is not None
        xp = namespace(centred)
        wild = (centred < self.low - self.centre) | (centred > self.high - self.centre)
        if not bool(xp.any(wild)):
            return None
        # A row most of whose cells are wild is no row with wild cells: it is weighed as it is.
        if is_foreign(wild):
            return wild & (xp.mean(double(wild), axis=1) <= MOST_WILD)[:, None]
        wild[np.count_nonzero(wild, axis=1) > MOST_WILD * wild.shape[1]] = False
        return wild if wild.any() else None

    def _tamed(self, block: Rows, centred: Float, wild: Array, some: npt.NDArray[np.intp] | None) -> tuple[Rows, Float]:
        """Bring wild cells to their limits, then to what the other cells of the row let expect; also centred."""
        if some is not None:
            rows, changed = block.copy(), self._filled(centred[some], wild[some])
            rows[some] = np.where(wild[some], in_type_of(changed + self.centre, block), block[some])
            centred[some] = changed
            return rows, centred
        changed = self._filled(centred, wild)
        return namespace(block).where(wild, in_type_of(changed + self.centre, block), block), changed

    def _filled(self, centred: Float, wild: Array) -> Float:
        assert self.low is not None
        assert self.high is not None
        assert self.filled is not None
        xp = namespace(centred)
        low, high = self.low - self.centre, self.high - self.centre
        given, gaps = xp.where(wild, xp.where(centred < low, low, high), centred), wild & self.filled
        own = squared_lengths(self.root)
        own = own if self.level == 0.0 else self.level - own
        filled = xp.where(gaps, 0.0, given)
        for _ in range(ROUNDS):
            filled = xp.where(gaps, filled - self._precision(filled) / own, given)
            # What is expected stays within the limits, too.
            filled = xp.where(gaps & (filled < low), low, xp.where(gaps & (filled > high), high, filled))
        return filled


def joined_columns(parts: Sequence[Weighed]) -> tuple[Float, Float]:
    """Join the weights, and the distances, of consecutive blocks of rows."""
    weights = concat([part.weights for part in parts])
    return weights, concat([part.distances for part in parts])


def learn_weights(rows: Rows, *, cells: bool = False, whole: bool = True) -> RobustWeights:
    """How much does each row of this dataset count, and which numbers are out of place?

    Weights of a Student-t distribution, by iterated reweighting: each pass estimates the centre and the scatter (by the
    rule of Ledoit and Wolf) from the rows with the weights of the pass before. The distance of a row is measured by the
    scatter without it, so that a few heavy rows cannot hide behind the variance that they bring. With `cells`, wild
    cells are first replaced by what the rest of their row lets expect.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n_rows, n_features)
        The dataset, or a sample of it.
    cells : bool, default=False
        Look for wild cells: those more than five (robust) standard deviations from the median of their column. Columns
        of which more than half of the values are equal have none.
    whole : bool, default=True
        Whether these rows are all rows, or a sample of them.

    Returns
    -------
    RobustWeights

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import learn_weights
    >>> rows = np.random.default_rng(0).normal(size=(100, 2)) @ [[1.0, 1.0], [0.1, -0.1]]
    >>> rows[0, 1] = 99.0
    >>> found = learn_weights(rows, cells=True)(rows)
    >>> found.wild.sum(), bool(abs(found.rows[0, 1] - rows[0, 0]) < 0.2)
    (np.int64(1), True)
    """
    reject_sparse_cells(rows, cells=cells)
    numbers = double(dense(rows))
    xp = namespace(numbers)
    n_rows = int(numbers.shape[0])
    middle = _median(numbers)
    numbers = numbers - middle
    spread = NORMAL * _median(abs(numbers))
    unit = _unit(numbers, spread)
    if unit == 0.0:
        return RobustWeights(middle, zeros((middle.shape[0], 0), middle), 0.0, 0.0, float("inf"), n_rows)
    # Distances do not depend on the unit. Squares of numbers near one are within range.
    numbers, spread = xp.clip(numbers / unit, -FAR, FAR), spread / unit
    tamed, limits = numbers, {}
    if cells:
        reach = xp.where(spread > 0.0, WILD * spread, xp.full_like(spread, np.inf))
        wild = abs(numbers) > reach
        limits = {"low": -reach, "high": reach, "filled": _fillable(wild, spread > 0.0)}
        tamed = xp.where(wild & limits["filled"], 0.0, xp.clip(numbers, -reach, reach))
    lengths = squared_lengths(tamed)
    usual = float(_median(lengths)) or float(xp.mean(lengths))
    weights = usual / xp.clip(lengths, usual, None)
    for _ in range(PASSES):
        shares = weights / float(xp.sum(weights))
        centre = weighted_sum(shares, tamed)
        root, level, shrinkage = _inverse_scatter(tamed - centre, shares)
        learned = RobustWeights(centre, root, level, 0.0, float("inf"), n_rows, **limits)
        tamed, _, own, _ = learned(numbers)
        # The distance by the scatter without the row itself (Sherman and Morrison, 1950).
        apart = own / xp.clip(1.0 - (1.0 - shrinkage) * shares * own, 1e-6, None)
        weights = _with_limit(learned, apart).weight(apart)
    learned = _with_limit(learned, own if whole else apart)
    learned = replace(learned, groups=_groups(learned, tamed, own))
    limits = {name: limit if name == "filled" else middle + unit * limit for name, limit in limits.items()}
    if learned.groups is not None:
        limits["groups"] = middle + unit * learned.groups
    return replace(learned, centre=middle + unit * centre, root=root / unit, level=level / unit**2, **limits)


def learned_weights(
    dataset: Source, *, cells: bool = False, seed: int = 0, coordinates: Callable[[Rows], Rows] | None = None
) -> RobustWeights:
    """Learn how much the rows of a dataset count, from all of them or a random sample of many.

    Of an iterator, which can be read only once, it is the first rows. If `coordinates` is given, it is learned from
    what that function makes of the rows.
    """
    width = dataset.width or int(dataset.first(1).shape[1])
    size = _sample_size(width)
    sample = dataset.look_ahead(size, np.random.default_rng(seed))
    whole = sample.shape[0] < size
    given = _given_weights(dataset)
    if given is not None:
        numbers = drawn(len(given), size, np.random.default_rng(seed)) if dataset.again else np.arange(sample.shape[0])
        sample = take(sample, _repeated(given[numbers]))
    if coordinates is not None:
        return _learn_in_span(coordinates(sample), whole=whole)
    return learn_weights(sample, cells=cells, whole=whole)


def _learn_in_span(coordinates: Float, *, whole: bool) -> RobustWeights:
    """Learn from kernel coordinates, in the directions in which these rows vary: how many others there are is chance.

    The coordinates may be turned in any way. Those along the principal axes of the rows are always the same.
    """
    xp = namespace(coordinates)
    mean = xp.mean(coordinates, axis=0)
    centred = double(coordinates) - mean
    tall = centred.shape[0] >= centred.shape[1]
    values, basis = eigh(self_product(centred if tall else centred.T))
    kept = values > LEAST * float(values[-1])
    values, basis = take(values, kept), take(basis, kept, axis=1)
    if not tall:
        basis = product(centred.T, basis) / xp.sqrt(values)
    learned = learn_weights(product(centred, basis), whole=whole)
    groups = None if learned.groups is None else mean + product(learned.groups, basis.T)
    centre = mean + product(learned.centre[None, :], basis.T)[0, :]
    return replace(learned, centre=centre, root=product(basis, learned.root), groups=groups)


def _given_weights(dataset: Source) -> Float | None:
    """Give the weights that users have given of all rows; None if they have not."""
    if isinstance(dataset, InMemory):
        return dataset.batch().weights
    if isinstance(dataset, Beside):
        return dataset.facts.get("weights")
    return _given_weights(dataset.host) if isinstance(dataset, Around) else None


def _repeated(weights: Float) -> npt.NDArray[np.intp]:
    """Give the numbers of the rows to learn from: whole numbers as weights count equal rows, others only tell zeros."""
    counts = weights if np.all(weights == np.round(weights)) and np.max(weights) <= MOST_REPEATED else weights > 0.0
    return np.repeat(np.arange(len(weights)), counts.astype(np.intp))


def weighed(dataset: Source, weigh: Weighing, *, counts: bool = True) -> tuple[Source, Weighed | None]:
    """Give a dataset whose rows have robust weights, and no wild cells where these were looked for.

    If the rows are in memory, what was found comes with it. If `counts` is false, rows keep the weights that they have.
    """
    if not isinstance(dataset, InMemory):
        return Around(dataset, _Weigh(weigh, counts)), None
    batch = dataset.batch()
    found = weigh(batch.rows)
    return dataset.with_batch(_with(batch, found, weigh.origin, counts=counts)), found


class Weighing(Protocol):
    """What weighs rows: `RobustWeights`, or the same in other coordinates."""

    def __call__(self, rows: Rows) -> Weighed:
        """Weigh rows."""

    def cleaned(self, rows: Rows) -> Rows:
        """Give the rows without wild cells."""

    @property
    def origin(self) -> Float | None:
        """A point near the centre of the rows, if it is known."""


@dataclass(frozen=True, eq=False)
class _Weigh:
    """The change that weighs the rows of each batch."""

    weigh: Weighing
    counts: bool
    needs_start: ClassVar[bool] = False

    def batch(self, batch: Batch) -> Batch:
        """Give the batch with weights."""
        return _with(batch, self.weigh(batch.rows), self.weigh.origin, counts=self.counts)

    def rows(self, rows: Rows) -> Rows:
        """Give the rows without wild cells."""
        return self.weigh.cleaned(rows)


def _with(batch: Batch, found: Weighed, origin: Float | None, *, counts: bool) -> Batch:
    """Give the batch with weights; those that it has are multiplied."""
    if not counts:
        return batch.with_rows(found.rows)
    own = to_host(found.weights)
    learned = own if batch.learned is None else own * batch.learned
    own = own if batch.weights is None else own * batch.weights
    return replace(batch, rows=found.rows, weights=own, learned=learned, origin=origin)


def _sample_size(n_columns: int) -> int:
    """Give the number of rows that weights are learned from: no more than 5,000, and fewer of many columns."""
    return min(MOST_ROWS, max(FEW_ROWS, MOST_NUMBERS // max(n_columns, 1)))


def reject_sparse_cells(rows: Rows, *, cells: bool) -> None:
    """Refuse to look for wild cells in sparse rows: most cells are zero, and no number is out of place among zeros."""
    if cells and is_sparse(rows):
        raise InvalidTypeError(
            "looks for wild cells by the median of each column, but these are sparse rows, most of whose cells are "
            "zero",
            parameter="robust",
            value="cells",
            advice="Use {p.robust:rows}, or give the rows as a dense array.",
        )


def _inverse_scatter(centred: Float, shares: Float) -> tuple[Float, float, float]:
    """Give the inverse of the shrunken scatter of rows, as `root` and `level` of the record, and the shrinkage."""
    xp = namespace(centred)
    n_rows, n_columns = centred.shape
    lengths = squared_lengths(centred)
    scaled = centred * xp.sqrt(shares)[:, None]
    tall = n_rows >= n_columns
    matrix = self_product(scaled) if tall else self_product(scaled.T)
    variance = float(xp.sum(shares * lengths)) / n_columns
    squares = sum_of_squares(matrix)
    dispersion = squares - variance * variance * n_columns
    noise = sum_of_squares(shares * lengths) - squares * sum_of_squares(shares)
    shrinkage = min(max(noise / dispersion, LEAST), 1.0) if dispersion > LEAST * squares else 1.0
    floor = shrinkage * variance
    if tall:
        factor = cholesky(add_to_diagonal((1.0 - shrinkage) * matrix, floor))
        assert factor is not None
        return solve_triangular(factor, eye(n_columns, centred)).T, 0.0, shrinkage
    values, turn = eigh(matrix)
    kept = values > LEAST * float(values[-1])
    values, turn = take(values, kept), take(turn, kept, axis=1)
    # The inverse is 1/floor outside of the span of the rows. Within, it is less by a part for each direction.
    less = (1.0 - shrinkage) / (floor * ((1.0 - shrinkage) * values + floor))
    return product(scaled.T, turn) * xp.sqrt(less), 1.0 / floor, shrinkage


def _with_limit(learned: RobustWeights, distances: Float) -> RobustWeights:
    """Set what is typical, and what is outlying: five standard deviations of the cube root, which is nearly normal."""
    cubic = distances ** (1.0 / 3.0)
    middle = float(_median(cubic))
    # Where most rows are equal, the spread is that of normal rows (Wilson and Hilferty, 1931).
    least = middle * float(np.sqrt(2.0 / (9.0 * learned.centre.shape[0])))
    spread = max(NORMAL * float(_median(abs(cubic - middle))), least)
    limit = (middle + WILD * spread) ** 3
    # Where so many rows lie apart, they are no strays.
    many = float(namespace(distances).mean(double(distances > limit))) > MOST_OUTLYING
    return replace(learned, typical=middle**3, limit=float("inf") if many else limit)


def _groups(learned: RobustWeights, rows: Float, distances: Float) -> Float | None:
    """Find groups among outlying rows: at least five rows, as close together as ordinary rows are, and not more so.

    Strays lie apart from each other, too. Rows that are nearly equal are copies of one stray. In few columns some
    strays are neighbours by chance, so that a group must have many more rows than that.
    """
    outlying = np.flatnonzero(to_host(distances > learned.limit))
    least = max(LEAST_GROUP, LEAST_GROUP_SHARE * rows.shape[0])
    if len(outlying) < least:
        return None
    # Of very many, a part tells which groups there are.
    outlying = outlying[:: len(outlying) // MOST_COMPARED + 1]
    some = take(rows, outlying)
    turned = product(some, learned.root)
    inner = to_host(self_product(turned.T) if learned.level == 0.0 else product(learned._precision(some), some.T))
    far, squares = to_host(take(distances, outlying)), np.diagonal(inner)
    apart = squares[:, np.newaxis] + squares - 2.0 * inner
    left = np.ones(len(outlying), dtype=bool)
    groups: list[Float] = []
    while np.count_nonzero(left) >= least and len(groups) < MOST_GROUPS:
        near = (apart <= 2.0 * learned.limit) & left
        densest = int(np.argmax(np.where(left, np.sum(near, axis=1), -1)))
        members = near[densest]
        within = squares - 2.0 * np.mean(inner[:, members], axis=1) + np.mean(inner[np.ix_(members, members)])
        members = (within <= learned.limit) & left
        by_chance = np.count_nonzero(left) * min(learned.limit / far[densest], 1.0) ** (min(rows.shape) / 2.0)
        if np.count_nonzero(members) < max(least, BEYOND_CHANCE * by_chance):
            break
        if LEAST_SPREAD <= np.mean(within[members]) / learned.typical <= MOST_SPREAD:
            centre = namespace(some).mean(take(some, members), axis=0)
            groups.append(centre)
        left &= ~members
    return namespace(rows).stack(groups) if groups else None


def _fillable(wild: Array, varied: Array) -> Array:
    """Tell in which columns wild cells are as rare as in others, so that they are strays and no group of rows."""
    xp = namespace(wild)
    counts = xp.sum(double(wild), axis=0)
    if not bool(xp.any(varied)):
        return varied
    usual = float(_median(take(counts, varied)))
    return counts <= usual + 4.0 * float(np.sqrt(usual + 1.0))


def _unit(centred: Float, spread: Float) -> float:
    """Give the typical spread of a column that varies; 0 if none does."""
    varied = take(spread, spread > 0.0)
    return float(_median(varied)) if varied.shape[0] else float(namespace(centred).mean(abs(centred)))


def _median(numbers: Array) -> Array:
    """Give the median over the first axis."""
    if not is_foreign(numbers):
        return np.asarray(np.median(numbers, axis=0))
    found = namespace(numbers).sort(numbers, axis=0)
    size = found.shape[0]
    return (found[(size - 1) // 2, ...] + found[size // 2, ...]) / 2.0
