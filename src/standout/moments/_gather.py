"""Compute moments from data, and scores from rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from standout._arrays import (
    Float,
    Rows,
    all_finite,
    dense,
    double,
    is_sparse,
    is_thin,
    one_blas_thread,
    row_blocks,
    stacked,
)
from standout._messages import InvalidValueError
from standout._xp import namespace, take
from standout.moments._base import Moments, joined
from standout.moments._kinds import RowMoments
from standout.moments._sums import FoldPattern, Keys, keyed_scatter, with_columns
from standout.sources import Batch, InMemory
from standout.sources._form import as_rows

Kind = Literal["auto", "scatter", "rows"]

# Sparse data with more columns are kept as rows, because their scatter matrix would need more than 2 GiB.
FORMED_SIZE = 16384


def gather(data: Any, *, kind: Kind = "auto", norms: bool = False, name: str = "the data") -> Moments:
    """What are the count, mean and scatter of this dataset?

    Parameters
    ----------
    data : array, sparse matrix or Source
        Real numbers, one row per sample. Weights and covariates of a source are used; covariates become trailing
        columns. Data are never copied as a whole.
    kind : {"auto", "scatter", "rows"}, default="auto"
        How the scatter is stored: as a matrix (`ScatterMoments`), or as sparse rows (`RowMoments`). "auto" keeps sparse
        rows with more than 16,384 columns, and forms a matrix otherwise.
    norms : bool, default=False
        Gather also the sums for Ledoit-Wolf shrinkage.
    name : str, default="the data"
        Name of the dataset in messages.

    Returns
    -------
    Moments

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> gather(X).mean
    array([5., 6.])
    """
    found = gather_keyed(data, None, norms=norms, kind=kind, name=name)[0]
    if found is None:
        raise InvalidValueError(f"{name} has no rows of positive weight", advice="Give at least one such row.")
    return found


def gather_keyed(
    source: Any,
    keys: npt.NDArray[np.intp] | FoldPattern | None,
    n_keys: int | None = None,
    *,
    norms: bool = False,
    kind: Kind = "scatter",
    name: str = "the data",
) -> list[Moments | None]:
    """What are the moments of each group of rows: of each fold, subject or block?

    The data are read once. The sum of all results has the moments of all rows. The sum of all results except one has
    the moments of the rows outside of this group.

    Parameters
    ----------
    source : array, sparse matrix or Source
    keys : ndarray of int of shape (n_rows,), FoldPattern or None
        The key of each row is the number of its group. Rows with a negative key are left out. None means that all rows
        have the key 0.
    n_keys : int, optional
        Number of keys. None means the number of folds of the pattern, or one more than the largest key.
    norms, kind, name
        As in `gather`.

    Returns
    -------
    list of Moments or None
        None for a key without rows of positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import FoldPattern, gather_keyed
    >>> [part.count for part in gather_keyed(np.ones((7, 2)), FoldPattern(3))]
    [3, 2, 2]
    >>> [part.count for part in gather_keyed(np.ones((4, 2)), np.array([0, 1, 1, 1]), 2)]
    [1, 3]
    """
    if isinstance(keys, FoldPattern):
        n_keys = keys.n_folds
    elif n_keys is None:
        n_keys = 1 if keys is None else int(keys.max(initial=-1)) + 1
    data = source if hasattr(source, "map_reduce") else InMemory(source)
    if kind == "auto":
        kind = "rows" if is_thin(data.rows) and (data.width or 0) > FORMED_SIZE else "scatter"
    # Infinite and missing values make the sums infinite or NaN. Checking the sums is cheaper than checking the rows.
    n_products = float("inf") if data.rows is None else float(data.rows.shape[0]) * data.rows.shape[1] ** 2
    with np.errstate(invalid="ignore", over="ignore"), one_blas_thread(n_products):
        part = partial(_of_batch, Keys(keys, n_keys), kind, norms, data.weights, data.covariates)
        found: list[Moments | None] = data.map_reduce(part, _added)
        sums = [part.variances for part in found if part is not None]
        # The sums of all keys are checked together, so that the host waits for a device only once.
        if sums and not all_finite(namespace(sums[0]).stack(sums)):
            _explain(data, name)
    return found


def _of_batch(
    keys: Keys, kind: str, norms: bool, weights: Float | None, beside: Float | None, batch: Batch
) -> list[Moments | None]:
    """Gather the moments of the rows of a batch by key."""
    rows, start, stop = batch.rows, batch.start, batch.start + batch.rows.shape[0]
    keys = replace(keys, start=start) if start else keys
    weights = None if weights is None else weights[start:stop]
    beside = None if beside is None else beside[start:stop]
    # NumPy's error state is separate for each thread, so it is set here again.
    with np.errstate(invalid="ignore", over="ignore"):
        if kind == "scatter":
            return keyed_scatter(rows, keys, norms=norms, weights=weights, beside=beside)
        if beside is not None:
            rows = sparse.hstack([rows, beside], format="csr") if is_sparse(rows) else with_columns(rows, beside)
        found: list[Moments | None] = [None] * keys.n_keys
        for key, places in keys.places(0, rows.shape[0]):
            own = None if weights is None else weights[places]
            found[key] = RowMoments(sparse.csr_array(double(take(rows, places))), own)
        return found


def _added(first: list[Moments | None], second: list[Moments | None]) -> list[Moments | None]:
    """Merge the moments of two batches, key by key."""
    return [joined(one, two) for one, two in zip(first, second, strict=True)]


def _explain(data: Any, name: str) -> None:
    """Raise an error that explains why the sums of a dataset are not finite.

    If a row has missing or infinite values, the error names the first such row. If there is no such row, the squares of
    the values are too large for double precision.
    """
    for batch in data.batches():
        as_rows(batch.rows, name, keys=data.keys)
    raise InvalidValueError(
        f"the squares of {name}'s values are out of the range of double precision", advice="Rescale the data."
    )


def project(rows: Rows, mean: Float | None, filters: Float) -> Float:
    """What are the scores of these rows: ``(X - mean) U``?

    The mean is subtracted from dense rows before they are multiplied, one block at a time. So the scores keep all
    digits even if the mean is large. Sparse rows are multiplied first, because centred rows would be dense. The score
    of the mean is then subtracted from their scores.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n_rows, n_features)
    mean : ndarray of shape (n_features,) or None
        If None, no mean is subtracted.
    filters : ndarray of shape (n_features, d)

    Returns
    -------
    ndarray of shape (n_rows, d)

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import project
    >>> project(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([2.0, 5.0]), np.array([[2.0], [1.0]]))
    array([[-2.],
           [ 2.]])
    """
    if is_sparse(rows):
        scores: Float = dense(rows @ filters)
        return scores if mean is None else scores - mean @ filters
    return stacked([(double(block) if mean is None else double(block) - mean) @ filters for block in row_blocks(rows)])
