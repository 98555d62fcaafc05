"""Datasets as sources: arrays, files, iterators, Dask, devices; all are read in batches, and a table is one batch."""

from standout.sources._base import Backgrounds, Batch, Batches, Dataset, InMemory, Source
from standout.sources._base import Table as Table
from standout.sources._base import Words as Words
from standout.sources._base import added as added
from standout.sources._base import drawn as drawn
from standout.sources._base import regrouped as regrouped
from standout.sources._beside import Around as Around
from standout.sources._beside import Beside, Chosen, beside
from standout.sources._dask import DaskBlocks, open_dataset
from standout.sources._dask import is_dask as is_dask
from standout.sources._dask import is_read_in_parts as is_read_in_parts
from standout.sources._device import OnDevice
from standout.sources._device import on_device as on_device
from standout.sources._steps import Transformed
from standout.sources._steps import at_hand as at_hand
from standout.sources._steps import check_steps as check_steps
from standout.sources._steps import fit_step as fit_step
from standout.sources._steps import is_step as is_step
from standout.sources._steps import step_name as step_name
from standout.sources._steps import takes_parts as takes_parts
from standout.sources._steps import takes_sources as takes_sources
from standout.sources._steps import transformed as transformed

__all__ = [
    "Backgrounds",
    "Batch",
    "Batches",
    "Beside",
    "Chosen",
    "DaskBlocks",
    "Dataset",
    "InMemory",
    "OnDevice",
    "Source",
    "Transformed",
    "beside",
    "open_dataset",
]
