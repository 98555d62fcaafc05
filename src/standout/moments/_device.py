"""Gathering where the data lie: the moments of arrays of other libraries, on their own device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add

from standout._algebra import all_true, diagonal, outer, total
from standout._arrays import Float, Rows, double, is_plain, product, row_blocks, row_slice, self_product, weighted_sum
from standout._namespaces import namespace
from standout.moments._base import NormSums
from standout.moments._scatter import UNCENTRED_LIMIT, ScatterMoments


def gather_on_device(rows: Rows, *, norms: bool = False) -> ScatterMoments:
    """Sum the scatter matrix of a dataset on its device, in float64.

    All rows lie there already, so a pass for the mean is cheap beside the product. As on the host, rows are multiplied
    as they are and corrected for the mean afterwards where that costs no accuracy, and centred first elsewhere. Single
    precision is multiplied in double: on the devices that are made for it the one is as fast as the other.
    """
    count = rows.shape[0]
    xp = namespace(rows)
    ones = xp.ones_like(rows[:, 0], dtype=xp.float64)
    mean = (weighted_sum(ones, rows) if is_plain(rows) else xp.sum(rows, axis=0, dtype=xp.float64)) / count
    scatter: Float = reduce(add, map(self_product, _blocks(rows)))
    # The one question that the device is waited for.
    if all_true(mean**2 <= UNCENTRED_LIMIT / (1.0 + UNCENTRED_LIMIT) / count * diagonal(scatter)):
        scatter -= outer(count * mean, mean)
        sums = None
        if norms:
            moved = product(scatter, mean[:, None])[:, 0]
            sums = _norm_sums(_blocks(rows)).unshifted(mean, count, total(diagonal(scatter)), moved)
        return ScatterMoments(count, mean, scatter, norms=sums)
    # The first row goes off before the mean does: no number is then rounded at the size of a large common offset.
    origin = double(row_slice(rows, 0, 1))
    offset = sum(xp.sum(double(block) - origin, axis=0) for block in row_blocks(rows)) / count

    def centred() -> Iterator[Float]:
        return (double(block) - origin - offset for block in row_blocks(rows))

    scatter = reduce(add, map(self_product, centred()))
    return ScatterMoments(count, origin[0, :] + offset, scatter, norms=_norm_sums(centred()) if norms else None)


def _blocks(rows: Rows) -> Iterator[Rows]:
    """Give the rows in double precision: as a whole where that needs no copy."""
    return iter([rows]) if is_plain(rows) else (double(block) for block in row_blocks(rows))


def _norm_sums(blocks: Iterator[Rows]) -> NormSums:
    parts = [NormSums.of(block) for block in blocks]
    return NormSums(reduce(add, (part.cubic for part in parts)), sum(part.quartic for part in parts))
