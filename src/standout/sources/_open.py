"""The one way in: whatever a dataset comes as."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from standout._arrays import Rows
from standout._validation import Source, as_rows
from standout.sources._batches import Batches
from standout.sources._dask import DaskBlocks, is_dask


def is_read_in_parts(data: Any) -> bool:
    """Tell whether a dataset is one that `open_dataset` gives as a source.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import is_read_in_parts
    >>> is_read_in_parts(np.ones((2, 3))), is_read_in_parts(iter([np.ones((2, 3))]))
    (False, True)
    """
    return isinstance(data, Source | Iterator) or is_dask(data)


def open_dataset(data: Any, name: str, *, min_rows: int = 2) -> Rows | Source:
    """Check one dataset: an array, a frame or a sparse matrix as rows, what is read in parts as a source.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import open_dataset
    >>> batches = (np.ones((2, 3)) for _ in range(4))
    >>> [rows.shape for rows in open_dataset(batches, "the target").parts()]
    [(2, 3), (2, 3), (2, 3), (2, 3)]
    """
    if isinstance(data, Batches):
        return data
    if isinstance(data, Source):
        return data.called(name, max(min_rows, data.min_rows))
    if is_dask(data):
        return DaskBlocks(data, name, min_rows)
    if isinstance(data, Iterator):
        return Batches(data, name, min_rows)
    return as_rows(data, name, min_rows=min_rows)
