"""Scatter matrices of groups of rows (folds, subjects or blocks), computed in one pass over a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from standout._arrays import (
    BLOCK_BYTES,
    SAFE_SYMMETRIC,
    Array,
    Float,
    Rows,
    dense,
    double,
    is_single,
    is_thin,
    product,
    row_slice,
    self_product,
    squared_lengths,
    stacked,
)
from standout._xp import DEVICE_BLOCK_BYTES, concat, diagonal, is_foreign, like, namespace, take
from standout.moments._base import Moments, NormSums, WeightSums, joined, two_sum
from standout.moments._kinds import ScatterMoments, add_outer, centred_block

# Rows are multiplied without centring them if each column's squared mean is below this many times its variance. This
# saves a centred copy. The correction of the products for the mean loses at most two of the sixteen digits of float64.
UNCENTRED_LIMIT = 100.0
# The same limit for products in single precision, which has fewer digits.
SINGLE_LIMIT = 0.1
# Single-precision data are multiplied in single precision if they have at least this many rows per column.
ENOUGH_ROWS = 2
# A sample of SOME_ROWS rows shows whether the data are too far from zero to be multiplied without centring. Data with
# at most SMALL_ROWS rows are multiplied without this check. The result is checked in any case.
SOME_ROWS, SMALL_ROWS = 256, 4096
# Data of more than VIEWED_BYTES are multiplied as strided views, without a copy, in chunks of about CHUNK_BYTES.
# Chunks that are copied are larger if there are more keys, up to MOST_COPIED_BYTES.
CHUNK_BYTES = 32 * 2**20
MOST_COPIED_BYTES, VIEWED_BYTES = 128 * 2**20, 4 * 2**20
# Number of permutations in the pattern of folds.
ROUNDS = 5
SINGLE_EPS, DOUBLE_EPS = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)

Places: TypeAlias = slice | npt.NDArray[np.intp]


@cache
def _pattern(n_folds: int) -> npt.NDArray[np.intp]:
    rng = np.random.default_rng(n_folds)
    pattern = np.concatenate([rng.permutation(n_folds) for _ in range(ROUNDS)])
    pattern.flags.writeable = False
    return pattern


@dataclass(frozen=True)
class FoldPattern:
    """Which fold is each row in?

    The fold of a row depends only on the row number, not on batches. It is looked up in a table that is repeated. The
    table has five random permutations of all folds, so that folds have equal sizes and do not follow short periods in
    the rows.

    Attributes
    ----------
    n_folds : int
    start : int
        Number that is added to every row number, for example the number of rows in earlier batches.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import FoldPattern
    >>> np.bincount(FoldPattern(5).of(np.arange(10)))
    array([2, 2, 2, 2, 2])
    """

    n_folds: int
    start: int = 0

    def of(self, numbers: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the fold of each row, by its number."""
        table = _pattern(self.n_folds)
        return table[(numbers + self.start) % len(table)]


@dataclass(frozen=True, eq=False)
class Keys:
    """The key of each row of a batch.

    Attributes
    ----------
    keys : ndarray of shape (n_rows,), FoldPattern or None
        The keys of all rows, indexed by row number. None means that all rows have the key 0. Rows with a negative key
        are left out.
    n_keys : int
    start : int
        Row number of the first row of the batch.
    """

    keys: npt.NDArray[np.intp] | FoldPattern | None
    n_keys: int = 1
    start: int = 0

    def of(self, first: int, count: int) -> npt.NDArray[np.intp]:
        """Return the keys of `count` rows, starting at row `first` of the batch."""
        numbers = np.arange(self.start + first, self.start + first + count)
        if isinstance(self.keys, FoldPattern):
            return self.keys.of(numbers)
        return np.zeros(count, dtype=np.intp) if self.keys is None else self.keys[numbers]

    def places(self, first: int, count: int, *, views: bool = False) -> list[tuple[int, Places]]:
        """Return pairs of a key and the positions of its rows among `count` rows.

        With `views` and a fold pattern, the positions are slices, because the pattern repeats. A key then has several
        pairs, one for each of its places in the pattern.
        """
        if self.keys is None:
            return [(0, slice(0, count))]
        if views and isinstance(self.keys, FoldPattern):
            length = ROUNDS * self.keys.n_folds
            return [(key, slice(k, None, length)) for k, key in enumerate(self.of(first, min(length, count)).tolist())]
        numbers = self.of(first, count)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers + 1, minlength=self.n_keys + 1)).tolist()
        found = [order[start:stop] for start, stop in pairwise(ends)]
        return [(key, places) for key, places in enumerate(found) if len(places)]


def keyed_scatter(
    rows: Rows, keys: Keys, *, norms: bool = False, weights: Float | None = None, beside: Float | None = None
) -> list[Moments | None]:
    """Return the moments of the rows of each key, summed in float64. The columns `beside` are appended to the rows.

    Rows without weights are multiplied first, and the products are corrected for the mean. If this would lose accuracy,
    a typical row is subtracted from all rows before they are multiplied (only in double precision). If this would also
    lose accuracy, or if rows have weights, each block is centred before it is multiplied.

    Products of single-precision rows are in single precision if the rows are NumPy arrays and there are enough of them.
    """
    # Few rows do not vary along all directions. Along the other directions, the background has only the variance that
    # shrinkage adds. Rounding errors in single precision can be larger than this variance.
    enough = rows.shape[0] >= ENOUGH_ROWS * rows.shape[1]
    single = enough and not is_foreign(rows) and rows.dtype == np.float32 and beside is None and suits_single(rows)
    if weights is None:
        found = None
        if rows.shape[0] <= SMALL_ROWS or _seem_near(_some_of(rows, beside), single):
            found = _uncentred(rows, keys, norms, beside, single)
        if found is None and not single:
            found = _uncentred(rows, keys, norms, beside, single, _typical_row(_some_of(rows, beside)))
        if found is not None:
            return found
    total: list[Moments | None] = [None] * keys.n_keys
    for first, chunk in _chunks(rows, beside, keys, single):
        own = None if weights is None else weights[first : first + chunk.shape[0]]
        for key, places in keys.places(first, chunk.shape[0]):
            part = _centred_scatter(take(chunk, places), None if own is None else own[places], norms)
            total[key] = joined(total[key], part)
    return total


def _centred_scatter(block: Array, weights: Float | None, norms: bool) -> ScatterMoments | None:
    """Return the moments of one block, computed in the precision of the block; None if all weights are zero."""
    if weights is not None and not weights.sum() > 0.0:
        return None
    known = None if weights is None else WeightSums.of(weights)
    weights = None if weights is None else like(weights, block)
    centred, mean, rest = centred_block(block, weights)
    sums = NormSums.of(centred, weights) if norms else None
    precision = SINGLE_EPS if is_single(block) else DOUBLE_EPS
    return ScatterMoments(block.shape[0], mean, double(self_product(centred)), precision, sums, rest, known)


def _uncentred(
    rows: Rows, keys: Keys, norms: bool, beside: Float | None, single: bool, shift: Float | None = None
) -> list[Moments | None] | None:
    """Return the moments of the rows of each key, from products of rows that are not centred.

    If `shift` is given, this row is subtracted from all rows first. The rows of each key are multiplied, and the
    products are corrected for the mean of the key. Return None if this correction would lose accuracy.
    """
    counts: list[int] = [0] * keys.n_keys
    # For each key: sum of rows, sum of products, and the cubic, quartic and quadratic sums of norms.
    found: dict[int, list[Array]] = {}
    foreign, as_given = is_foreign(rows), beside is None and shift is None
    plain = as_given and type(rows) is np.ndarray and (single or rows.dtype == np.float64)
    thin = as_given and not plain and is_thin(rows)
    # In large data the rows of each key are strided views, which NumPy multiplies without a copy. Views with fewer rows
    # than columns are not used, because adding up their products takes longer than a copy.
    views = plain and rows.flags.c_contiguous and rows.nbytes > VIEWED_BYTES and not isinstance(keys.keys, np.ndarray)
    views = views and rows.shape[0] >= rows.shape[1] * ROUNDS * keys.n_keys
    whole = thin or (plain and rows.nbytes <= BLOCK_BYTES)
    chunks: Any = [(0, double(rows) if thin else rows)] if whole else _chunks(rows, beside, keys, single, views)
    for first, chunk in chunks:
        places = keys.places(first, chunk.shape[0], views=views or foreign)
        parts: Any = ((key, take(chunk, some)) for key, some in places)
        if foreign:
            # Slices need no index arrays on a device. Slices of the same key are joined to save calls.
            own = list(parts)
            parts = [(key, stacked([part for number, part in own if number == key])) for key in dict(places)]
        for key, rows_of_key in parts:
            part = rows_of_key if shift is None else rows_of_key - shift
            counts[key] += part.shape[0]
            ones = np.ones(part.shape[0]) if thin else namespace(part).ones_like(part[:, 0])
            plain_product = type(part) is np.ndarray and part.shape[1] <= SAFE_SYMMETRIC
            sums = [ones @ part, part.T @ part if plain_product else self_product(part)]
            if norms:
                lengths = squared_lengths(part)
                # These sums stay arrays, so that the host does not wait for a device.
                sums += [lengths @ part, lengths @ lengths, ones @ lengths]
            if key not in found:
                found[key] = [double(part) for part in sums] if single else sums
                continue
            for number, added in enumerate(sums):
                found[key][number] += added
    if not found:
        return [None] * keys.n_keys
    xp = namespace(found[next(iter(found))][0])
    means = {key: sums[0] / counts[key] for key, sums in found.items()}
    squares = xp.stack([diagonal(sums[1]) / counts[key] for key, sums in found.items()])
    # All keys are checked together, so that the host waits for a device only once.
    if not bool(_are_near(xp.stack(list(means.values())), squares, single)):
        return None
    moments: list[Moments | None] = [None] * keys.n_keys
    for key, (total, scatter, *others) in found.items():
        mean, raw = means[key], None
        rest: Float | float = 0.0
        if others:
            with np.errstate(over="ignore", invalid="ignore"):
                raw = NormSums(others[0], float(others[1]), total, float(others[2]))
                raw = raw.shifted(-mean, counts[key], product(scatter, -mean[:, None])[:, 0])
        add_outer(scatter, -float(counts[key]), mean)
        if shift is not None:
            mean, rest = two_sum(shift, mean)
        moments[key] = ScatterMoments(counts[key], mean, scatter, SINGLE_EPS if single else DOUBLE_EPS, raw, rest)
    return moments


# --- chunks of rows -------------------------------------------------------------------------------------------------


def _chunks(
    rows: Rows, beside: Float | None, keys: Keys, single: bool, views: bool = False
) -> Iterator[tuple[int, Array]]:
    """Return dense chunks of rows, each with the number of its first row. Chunks are in float64 unless `single`.

    Chunks are so large that computing the products of a key takes longer than adding the products to the sums.
    """
    n_bytes = DEVICE_BLOCK_BYTES if is_foreign(rows) else CHUNK_BYTES if views else BLOCK_BYTES
    width = max(rows.shape[1], 1)
    enough = 2 * width * (ROUNDS if views else 1) * keys.n_keys
    size = max(n_bytes // (8 * width), enough if views else min(enough, MOST_COPIED_BYTES // (8 * width)), 1)
    for first in range(0, rows.shape[0], size):
        chunk = dense(row_slice(rows, first, first + size))
        chunk = chunk if single else double(chunk)
        yield first, with_columns(chunk, None if beside is None else beside[first : first + size])


def with_columns(rows: Rows, beside: Float | None) -> Rows:
    """Append columns to rows."""
    return rows if beside is None else concat([double(dense(rows)), like(beside, rows)], axis=1)


# --- far from zero --------------------------------------------------------------------------------------------------


def _some_of(rows: Rows, beside: Float | None) -> Float:
    """Return a few evenly spaced rows as a dense copy in float64."""
    step = max(rows.shape[0] // SOME_ROWS, 1)
    some = double(dense(row_slice(rows[::step, :], 0, SOME_ROWS)))
    return with_columns(some, None if beside is None else beside[::step][:SOME_ROWS])


def _typical_row(some: Float) -> Float:
    """Return the row that is nearest to the mean of some rows.

    This row is subtracted from all rows. Subtracting an outlying row would cause large rounding errors.
    """
    xp = namespace(some)
    nearest = int(xp.argmin(squared_lengths(some - xp.mean(some, axis=0))))
    return 1.0 * some[nearest, :]


def _seem_near(some: Float, single: bool) -> bool:
    return bool(_are_near(namespace(some).mean(some, axis=0), squared_lengths(some.T) / some.shape[0], single))


def _are_near(mean: Float, squares: Float, single: bool) -> Array:
    """Return whether products of uncentred rows can be corrected for the mean without losing accuracy.

    The result stays on the device.
    """
    limit = SINGLE_LIMIT if single else UNCENTRED_LIMIT
    return namespace(mean).all(mean**2 <= limit / (1.0 + limit) * squares)


def suits_single(rows: Rows) -> bool:
    """Return whether the squares of the numbers fit into single precision. Only a sample of the rows is checked."""
    enough = max(8, min(256, 2**19 // max(rows.shape[1], 1)))
    some = double(dense(rows[:: max(rows.shape[0] // enough, 1)][:enough]))
    spread = np.std(some, axis=0)
    spread = spread[spread > 0]
    return bool(spread.size and spread.min() > 1e-15 and spread.max() < 1e15)
