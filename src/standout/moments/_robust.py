"""Robust weights, learned from the rows: outlying rows get smaller weights, and outlying cells are limited."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from standout._arrays import (
    Array,
    Float,
    Rows,
    dense,
    double,
    is_sparse,
    product,
    row_blocks,
    self_product,
    squared_lengths,
    stacked,
    sum_of_squares,
    weighted_sum,
)
from standout._messages import InvalidTypeError, warn_user
from standout._xp import add_to_diagonal, cholesky, concat, eigh, eye, namespace, solve_triangular, take, to_host, zeros

if TYPE_CHECKING:
    from standout.sources import Batch, Source

# Degrees of freedom of the Student-t distribution.
DEGREES = 3.0
# A cell, or the distance of a row, is outlying beyond WILD standard deviations. The standard deviation is estimated by
# the median absolute deviation times NORMAL, the factor for a normal distribution.
WILD = 5.0
NORMAL = 1.4826
# Each pass over a sample improves the weights. After the fourth pass they change by less than a hundredth.
PASSES = 5
# If more than this share of the rows looks outlying, the distances do not describe the data, and all weights are 1.
MOST_OUTLYING = 1.0 / 3.0
# A row with more than this share of outlying cells gets a small weight. Its cells are not limited.
MOST_WILD = 0.5
# A sample has at most MOST_ROWS rows, and at most MOST_NUMBERS numbers (rows times columns). It has FEW_ROWS
# rows also if these have more than MOST_NUMBERS numbers.
MOST_ROWS, MOST_NUMBERS, FEW_ROWS = 5000, 2**25, 500
# The difference of a cell from the centre is limited to this many times the unit (the median spread of the columns), so
# that its square stays within range.
FAR = 1e8
# Smallest shrinkage. Eigenvalues below this share of the largest eigenvalue are not used.
LEAST = 1e-10


class Weighed(NamedTuple):
    """Rows with robust weights.

    Attributes
    ----------
    rows : array or sparse matrix
        The rows. If cells are limited, outlying cells are replaced by their limits.
    weights, distances : ndarray of shape (n_rows,)
        Weight of each row, and its squared distance from the centre (see `RobustWeights`).
    """

    rows: Rows
    weights: Float
    distances: Float


@dataclass(frozen=True, eq=False)
class RobustWeights:
    """How large is the weight of each row of this dataset? Learned by `learn_weights`.

    The squared distance d² of a row is measured from the centre of the dataset by its robust scatter. The weight is 1
    if d² is at most m, the median of the squared distances. If d² is larger, the weight follows a Student-t
    distribution: ``(3 + m) / (3 + d²)``. So rows that are not outlying have at least the weight
    ``(3 + m) / (3 + limit)``.

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
    root : ndarray of shape (n_features, r)
    level : float
        The inverse of the scatter is ``root rootᵀ``, or ``level I - root rootᵀ`` for fewer rows than columns.
    typical, limit : float
        The median squared distance, and the squared distance beyond which a row is outlying. All weights are 1 if the
        limit is infinite.
    unit : float
        All numbers are divided by this unit, so that their squares are within range.
    low, high : ndarray of shape (n_features,) or None
        Limits of the cells; None if cells are not changed.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import learn_weights
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> rows[:2] *= 50
    >>> learned = learn_weights(rows)
    >>> learned(rows).weights[:4].round(3)
    array([0.004, 0.005, 0.866, 1.   ])
    >>> np.flatnonzero(learned.outlying(rows))
    array([0, 1])
    """

    centre: Float
    root: Float
    level: float
    typical: float
    limit: float
    unit: float = 1.0
    low: Float | None = None
    high: Float | None = None

    def __call__(self, rows: Rows) -> Weighed:
        """Return the rows with their weights and distances, computed block by block."""
        _reject_sparse_cells(rows, self.low is not None)
        cleaned, weights, distances = zip(*map(self._block, row_blocks(rows)), strict=True)
        return Weighed(rows if self.low is None else stacked(cleaned), concat(weights), concat(distances))

    def outlying(self, rows: Rows) -> Array:
        """Return which rows are outlying."""
        return self(rows).distances > self.limit

    def cleaned(self, rows: Rows) -> Rows:
        """Return the rows with outlying cells replaced."""
        return rows if self.low is None else self(rows).rows

    def weight(self, distances: Float) -> Float:
        """Return the weights of rows at these squared distances."""
        xp = namespace(distances)
        if np.isinf(self.limit):
            return xp.ones_like(distances)
        # All rows within the median distance have the weight 1. With larger weights, a few rows near the centre could
        # attract the centre.
        return (DEGREES + self.typical) / (DEGREES + xp.clip(distances, self.typical, None))

    def _block(self, block: Rows) -> Weighed:
        xp = namespace(block)
        # Overflow is not an error: the distance becomes infinite, and the weight zero.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self.low is not None:
                numbers = block if xp.isdtype(block.dtype, "real floating") else double(block)
                limited = xp.where(double(block) < self.low, self.low, self.high)
                block = xp.where(self._wild(block), xp.astype(limited, numbers.dtype), numbers)
            # Limit the differences from the centre as in `learn_weights`. Without this limit, all weights would be zero
            # if the units of columns differ much.
            centred = xp.clip((double(dense(block)) - self.centre) / self.unit, -FAR, FAR)
            distances = squared_lengths(product(centred, self.root))
            if self.level:
                distances = self.level * squared_lengths(centred) - distances
            # A row whose distance is out of range is outlying.
            distances = xp.where(xp.isfinite(distances), abs(distances), xp.full_like(distances, np.inf))
        return Weighed(block, self.weight(distances), distances)

    def _wild(self, block: Array) -> Array:
        """Return which cells are outlying.

        In a row with many outlying cells, no cell is marked. Such a row gets a small weight instead.
        """
        xp, numbers = namespace(block), double(block)
        wild = (numbers < self.low) | (numbers > self.high)
        return wild & (xp.mean(double(wild), axis=1) <= MOST_WILD)[:, None]


def learn_weights(rows: Rows, *, cells: bool = False, whole: bool = True, name: str = "the data") -> RobustWeights:
    """How large is the weight of each row of this dataset, and which cells are outlying?

    The weights are weights of a Student-t distribution, found by iterated reweighting. Each pass estimates the centre
    and the scatter with the weights of the previous pass. The scatter is shrunk by the rule of Ledoit and Wolf. The
    distance of a row is measured with the scatter of the other rows, so that outliers are not hidden by the variance
    that they cause.

    If most rows are equal, they are the centre, and the scatter is learned from the other rows. If more than a third of
    the rows looks outlying, all rows keep the same weight, with a warning.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n_rows, n_features)
        The dataset, or a sample of it.
    cells : bool, default=False
        First limit cells to five (robust) standard deviations around the median of their column. Columns in which more
        than half of the values are equal are not changed.
    whole : bool, default=True
        True if `rows` is the whole dataset, False if it is a sample of the dataset.
    name : str, default="the data"
        Name of the dataset in the warning.

    Returns
    -------
    RobustWeights

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import learn_weights
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> rows[0, 1] = 99.0
    >>> learned = learn_weights(rows, cells=True)
    >>> np.argwhere(learned.cleaned(rows) != rows), bool(learned.cleaned(rows)[0, 1] == learned.high[1])
    (array([[0, 1]]), True)
    """
    _reject_sparse_cells(rows, cells)
    numbers = double(dense(rows))
    xp = namespace(numbers)
    middle = _median(numbers)
    numbers = numbers - middle
    spread = NORMAL * _median(abs(numbers))
    varied = take(spread, spread > 0.0)
    unit = float(_median(varied)) if varied.shape[0] else float(xp.mean(abs(numbers)))
    far = xp.full_like(middle, np.inf)
    bounds = {"low": -far, "high": far} if cells else {}
    equal = RobustWeights(middle, zeros((middle.shape[0], 0), middle), 0.0, 0.0, float("inf"), **bounds)
    if unit == 0.0:
        return equal
    # Divide all columns by the same unit, so that squares stay within range. This does not change the distances.
    numbers, spread = xp.clip(numbers / unit, -FAR, FAR), spread / unit
    if cells:
        reach = xp.where(spread > 0.0, WILD * spread, xp.full_like(spread, np.inf))
        limits: dict[str, Any] = {"low": middle - unit * reach, "high": middle + unit * reach}
        equal = replace(equal, **limits)
        wild = replace(equal, low=-reach, high=reach)._wild(numbers)
        numbers = xp.where(wild, xp.clip(numbers, -reach, reach), numbers)
    same = to_host(xp.all(numbers == 0.0, axis=1))
    mostly = 2 * int(same.sum()) > len(same)
    # If most rows are equal, they are the centre, and the scatter is learned from the other rows.
    learned = _learned(take(numbers, np.flatnonzero(~same)) if mostly else numbers, mostly, whole)
    if learned is None:
        problem = f"`robust` finds no typical distance in {name}: the scatter of most rows is singular, or more than a "
        problem += "third of the rows look outlying. All rows keep the same weight"
        warn_user(problem, advice="Leave out columns that hardly vary, or fit without `robust`.")
        return equal
    return replace(learned, centre=middle + unit * learned.centre, unit=unit, low=equal.low, high=equal.high)


def _learned(numbers: Float, is_centred: bool, whole: bool) -> RobustWeights | None:
    """Return centre, scatter and limit by reweighting; None if the scatter is singular or many rows are outlying."""
    xp = namespace(numbers)
    lengths = squared_lengths(numbers)
    usual = float(_median(lengths)) or float(xp.mean(lengths))
    weights = usual / xp.clip(lengths, usual, None)
    for _ in range(PASSES):
        shares = weights / float(xp.sum(weights))
        centre = 0.0 * numbers[0, :] if is_centred else weighted_sum(shares, numbers)
        found = _inverse_scatter(numbers - centre, shares)
        if found is None:
            return None
        root, level, shrinkage = found
        learned = RobustWeights(centre, root, level, 0.0, float("inf"))
        own = learned(numbers).distances
        # The distance of each row, measured with the scatter of the other rows (Sherman and Morrison, 1950).
        apart = own / xp.clip(1.0 - (1.0 - shrinkage) * shares * own, 1e-6, None)
        learned = _with_limit(learned, apart)
        weights = learned.weight(apart)
    distances = own if whole else apart
    learned = _with_limit(learned, distances)
    usable = 0.0 < learned.typical < np.inf and learned.limit < np.inf
    many = float(xp.mean(double(distances > learned.limit))) > MOST_OUTLYING
    return learned if usable and not many else None


def _inverse_scatter(centred: Float, shares: Float) -> tuple[Float, float, float] | None:
    """Return the inverse of the shrunken scatter as `root` and `level` (see `RobustWeights`), and the shrinkage.

    Return None if the shrunken scatter is singular.
    """
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
    if not (np.isfinite(floor) and floor > 0.0):
        return None
    if tall:
        factor = cholesky(add_to_diagonal((1.0 - shrinkage) * matrix, floor))
        if factor is None:
            return None
        return solve_triangular(factor, eye(n_columns, centred)).T, 0.0, shrinkage
    values, turn = eigh(matrix)
    kept = values > LEAST * float(values[-1])
    values, turn = take(values, kept), take(turn, kept, axis=1)
    # Along directions outside of the span of the rows, the inverse is 1 / floor. Along the eigenvectors within the
    # span, it is smaller than 1 / floor; `less` has the difference.
    less = (1.0 - shrinkage) / (floor * ((1.0 - shrinkage) * values + floor))
    return product(scaled.T, turn) * xp.sqrt(less), 1.0 / floor, shrinkage


def _with_limit(learned: RobustWeights, distances: Float) -> RobustWeights:
    """Return the record with the fields `typical` and `limit`, computed from the squared distances of rows.

    `typical` is the median of the squared distances. For `limit`, their cube roots are used, which are nearly normally
    distributed. `limit` is the cube of the number that is five standard deviations above the median of the cube roots.
    """
    cubic = distances ** (1.0 / 3.0)
    middle = float(_median(cubic))
    # If most distances are equal, their spread is zero. So the spread is not allowed to be smaller than `least`, the
    # spread that is expected for normally distributed rows (Wilson and Hilferty, 1931).
    least = middle * float(np.sqrt(2.0 / (9.0 * learned.centre.shape[0])))
    spread = max(NORMAL * float(_median(abs(cubic - middle))), least)
    return replace(learned, typical=middle**3, limit=(middle + WILD * spread) ** 3)


def _median(numbers: Array) -> Array:
    """Return the median over the first axis."""
    found = namespace(numbers).sort(numbers, axis=0)
    size = found.shape[0]
    return (found[(size - 1) // 2, ...] + found[size // 2, ...]) / 2.0


def _reject_sparse_cells(rows: Rows, cells: bool) -> None:
    """Raise an error if the rows are sparse and `cells` is true.

    Most cells of sparse rows are zero. So the median of a column is zero, and so is its median absolute deviation.
    """
    if cells and is_sparse(rows):
        problem = "looks for outlying cells by the median of each column, but these are sparse rows of mostly zeros"
        advice = "Use robust='rows', or give the rows as a dense array."
        raise InvalidTypeError(problem, parameter="robust", value="cells", advice=advice)


# --- sources --------------------------------------------------------------------------------------------------------


def learn_from(source: Source, *, cells: bool = False, seed: int = 0) -> RobustWeights:
    """Return weights learned from the rows of a source, or from a random sample if there are many rows.

    Rows of weight zero are left out.
    """
    if not source.again:
        problem = f"reads {source.name} more than once, but an iterator of batches can be read only once"
        value, advice = "cells" if cells else "rows", "Give an array or a file, or fit without `robust`."
        raise InvalidTypeError(problem, parameter="robust", value=value, advice=advice)
    n_rows = source.count_rows()
    numbers = np.arange(n_rows) if source.weights is None else np.flatnonzero(source.weights > 0.0)
    size = min(MOST_ROWS, max(FEW_ROWS, MOST_NUMBERS // max(source.width or 1, 1)))
    whole = len(numbers) <= size
    if not whole:
        numbers = np.sort(np.random.default_rng(seed).choice(numbers, size, replace=False))
    rows = source.rows if source.rows is not None and len(numbers) == n_rows else source.take(numbers)
    return learn_weights(rows, cells=cells, whole=whole, name=source.name)


def weighed(source: Source, learned: RobustWeights) -> tuple[Source, Float, npt.NDArray[np.intp]]:
    """Return a source with robust weights, the robust weights, and the numbers of the outlying rows.

    The weights of the source are multiplied by the robust weights. If `learned` has limits of the cells, outlying cells
    are replaced by their limits. Rows of weight zero get the robust weight zero.
    """
    from standout.sources import Mapped

    weights, distances = map(np.concatenate, zip(*source.map_reduce(partial(_judged, learned)), strict=True))
    other = copy(source)
    if learned.low is not None:
        other = Mapped(source, learned.cleaned, source.keys, source.width).at_once()
    other.weights = weights
    if source.weights is not None:
        weights, other.weights = weights * (source.weights > 0.0), weights * source.weights
    return other, weights, np.flatnonzero(distances > learned.limit)


def _judged(learned: RobustWeights, batch: Batch) -> list[tuple[Float, Float]]:
    found = learned(batch.rows)
    return [(to_host(found.weights), to_host(found.distances))]
