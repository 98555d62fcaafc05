"""Statistics of columns over several datasets taken together, a block at a time and in double precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float, Rows, dense, is_sparse, row_blocks

# A spread below this share of the mean is what rounding leaves of a constant.
ROUNDING = 10 * np.finfo(np.float64).eps


def unusual_blocks(rows: Array) -> Iterator[tuple[int, Array]]:
    """Give the blocks of rows in which something is missing or infinite, each with the number of its first row."""
    start = 0
    for block in row_blocks(rows):
        # A finite sum has finite terms, and costs a fraction of looking at each. The reverse need not hold.
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(block.sum()):
                yield start, block
        start += len(block)


def count_missing(rows: Rows) -> npt.NDArray[np.intp]:
    """Count the missing values of each column."""
    if is_sparse(rows):
        return np.bincount(rows.indices[np.isnan(rows.data)], minlength=rows.shape[1])
    total = np.zeros(rows.shape[1], dtype=np.intp)
    for _, block in unusual_blocks(rows):
        total += np.isnan(block).sum(axis=0)
    return total


def means_of_present(datasets: Sequence[Rows]) -> Float:
    """Average each column over all rows of all datasets, without those that are missing; NaN where all are."""
    n_columns = datasets[0].shape[1]
    total, count = np.zeros(n_columns), np.zeros(n_columns)
    for rows in datasets:
        if is_sparse(rows):
            present = ~np.isnan(rows.data)
            total += np.bincount(rows.indices[present], weights=rows.data[present], minlength=n_columns)
            count += rows.shape[0] - count_missing(rows)
            continue
        for block in row_blocks(rows):
            with np.errstate(over="ignore"):
                total += np.nansum(block, axis=0, dtype=np.float64)
            count += len(block) - np.isnan(block).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return total / count


def means_and_deviations(datasets: Sequence[Rows]) -> tuple[Float, Float]:
    """Give mean and standard deviation (1/n) of each column over all rows of all datasets.

    The deviation of a constant column is exactly 0.
    """
    n_columns = datasets[0].shape[1]
    sparse_ones = any(is_sparse(rows) for rows in datasets)
    # Counted from a row of the data a constant is exactly zero, and a large mean costs no digits.
    origin = np.zeros(n_columns) if sparse_ones else dense(datasets[0][:1]).astype(np.float64).ravel()
    count, mean, scatter = 0, np.zeros(n_columns), np.zeros(n_columns)
    # Whoever calls looks at whether numbers were too large.
    with np.errstate(over="ignore", invalid="ignore"):
        for block in (part for rows in datasets for part in ([rows] if is_sparse(rows) else row_blocks(rows))):
            n, block_mean, block_scatter = _moments(block, origin)
            step = block_mean - mean
            scatter += block_scatter + step**2 * (count * n / (count + n))
            mean += step * (n / (count + n))
            count += n
    deviation = np.sqrt(scatter / count)
    mean += origin
    deviation[deviation <= ROUNDING * np.abs(mean)] = 0.0
    return mean, deviation


def is_constant(rows: Rows) -> npt.NDArray[np.bool_]:
    """Tell which columns have one value only."""
    if is_sparse(rows):
        smallest, largest = (dense(found).ravel() for found in (rows.min(axis=0), rows.max(axis=0)))
        return np.asarray(smallest == largest)
    constant = np.ones(rows.shape[1], dtype=bool)
    for block in row_blocks(rows):
        # Nearly always the first block settles it.
        left = np.flatnonzero(constant)
        if not left.size:
            break
        constant[left] = (block[:, left] == rows[0, left]).all(axis=0)
    return constant


def _moments(rows: Rows, origin: Float) -> tuple[int, Float, Float]:
    n_rows, n_columns = rows.shape
    if is_sparse(rows):
        mean = np.bincount(rows.indices, weights=rows.data, minlength=n_columns) / n_rows
        n_stored = np.bincount(rows.indices, minlength=n_columns)
        gaps = (rows.data - mean[rows.indices]) ** 2
        return n_rows, mean, np.bincount(rows.indices, gaps, n_columns) + (n_rows - n_stored) * mean**2
    shifted = rows - origin
    mean = shifted.mean(axis=0)
    shifted -= mean
    return n_rows, mean, np.einsum("ij,ij->j", shifted, shifted)
