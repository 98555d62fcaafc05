"""What is asked of any dataset, whether it is there as rows or read in parts."""

from __future__ import annotations

from typing import Any

from standout._arrays import Rows, copied, stacked
from standout._validation import Source


def all_rows(dataset: Any) -> Rows:
    """Give all rows; those of a source are brought together.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import all_rows, open_dataset
    >>> all_rows(open_dataset(iter([np.ones((2, 3)), np.ones((4, 3))]), "the target")).shape
    (6, 3)
    """
    return stacked([copied(rows) for rows in dataset.parts()]) if isinstance(dataset, Source) else dataset


def count_rows(dataset: Any) -> int:
    """Count the rows; a source that does not know is read.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import count_rows
    >>> count_rows(np.ones((4, 3)))
    4
    """
    return dataset.count_rows() if isinstance(dataset, Source) else int(dataset.shape[0])


def added(first: Any, second: Any) -> Any:
    """Add two sums, of which either may be missing: None stands for a sum over no rows.

    Examples
    --------
    >>> from standout.sources import added
    >>> added(None, 2.0), added(1.0, 2.0)
    (2.0, 3.0)
    """
    return second if first is None else first if second is None else first + second
