"""Datasets as sources: arrays, frames, files, iterators, Dask, devices; all are read in batches."""

from standout.sources._base import Batch, InMemory, Source
from standout.sources._base import Mapped as Mapped
from standout.sources._base import Words as Words
from standout.sources._open import Dataset, open_dataset, open_datasets

__all__ = ["Batch", "Dataset", "InMemory", "Source", "open_dataset", "open_datasets"]
