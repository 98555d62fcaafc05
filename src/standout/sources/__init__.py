"""Datasets that are read in parts, and the one way in for all datasets."""

from standout._validation import Source
from standout.sources._batches import Batches
from standout.sources._dask import DaskBlocks, is_dask
from standout.sources._on_device import OnDevice
from standout.sources._open import is_read_in_parts, open_dataset
from standout.sources._stream import Stream, regrouped
from standout.sources._transformed import Transformed, as_input
from standout.sources._whole import added, all_rows, count_rows

__all__ = [
    "Batches",
    "DaskBlocks",
    "OnDevice",
    "Source",
    "Stream",
    "Transformed",
    "added",
    "all_rows",
    "as_input",
    "count_rows",
    "is_dask",
    "is_read_in_parts",
    "open_dataset",
    "regrouped",
]
