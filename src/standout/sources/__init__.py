"""Datasets as sources: arrays, files, iterators, Dask, devices; all are read in batches, and a table is one batch."""

from standout.sources._base import Backgrounds, Batch, Batches, Dataset, InMemory, Source
from standout.sources._base import Table as Table
from standout.sources._base import Words as Words
from standout.sources._base import added as added
from standout.sources._base import drawn as drawn
from standout.sources._base import regrouped as regrouped
from standout.sources._beside import Around as Around
from standout.sources._beside import Beside, Chosen, beside
from standout.sources._beside import column_beside as column_beside
from standout.sources._beside import own_weights as own_weights
from standout.sources._dask import DaskBlocks, open_dataset
from standout.sources._dask import is_dask as is_dask
from standout.sources._dask import is_read_in_parts as is_read_in_parts
from standout.sources._device import OnDevice
from standout.sources._device import on_device as on_device
from standout.sources._residuals import adjusted as adjusted
from standout.sources._residuals import between_subjects as between_subjects
from standout.sources._residuals import check_covariate_rows as check_covariate_rows
from standout.sources._residuals import differences
from standout.sources._residuals import within_subjects as within_subjects
from standout.sources._steps import Transformed
from standout.sources._steps import at_hand as at_hand
from standout.sources._steps import check_steps as check_steps
from standout.sources._steps import fit_step as fit_step
from standout.sources._steps import is_step as is_step
from standout.sources._steps import step_name as step_name
from standout.sources._steps import takes_parts as takes_parts
from standout.sources._steps import takes_sources as takes_sources
from standout.sources._steps import transformed as transformed
from standout.sources._subjects import Subjects as Subjects
from standout.sources._subjects import as_words as as_words
from standout.sources._subjects import attached as attached
from standout.sources._subjects import check_subjects as check_subjects
from standout.sources._subjects import chosen_subjects as chosen_subjects
from standout.sources._subjects import in_blocks as in_blocks
from standout.sources._subjects import joined_subjects as joined_subjects
from standout.sources._subjects import open_beside as open_beside
from standout.sources._subjects import with_equal_subjects as with_equal_subjects
from standout.sources._subjects import with_subjects as with_subjects
from standout.sources._subjects import without_columns as without_columns

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
    "differences",
    "open_dataset",
]
