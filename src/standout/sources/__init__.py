"""Sources: datasets of any kind (arrays, frames, files, iterators, Dask, devices) that are read in batches."""

from standout.sources._base import Batch, InMemory, Source
from standout.sources._base import Mapped as Mapped
from standout.sources._base import Words as Words
from standout.sources._base import matched as matched
from standout.sources._form import keys_of as keys_of
from standout.sources._functions import DaskBlocks as DaskBlocks
from standout.sources._functions import blocks, differences, on_device, within
from standout.sources._functions import transformed as transformed
from standout.sources._open import Dataset, open_dataset, open_datasets
from standout.sources._open import as_backgrounds as as_backgrounds
from standout.sources._open import frame_columns as frame_columns

__all__ = [
    "Batch",
    "Dataset",
    "InMemory",
    "Source",
    "blocks",
    "differences",
    "on_device",
    "open_dataset",
    "open_datasets",
    "within",
]
