"""Datasets that are read in parts, and the one way in for all datasets."""

from standout._validation import Source
from standout.sources._batches import Batches
from standout.sources._dask import DaskBlocks, is_dask
from standout.sources._on_device import OnDevice
from standout.sources._open import open_dataset
from standout.sources._stream import Stream, regrouped

__all__ = ["Batches", "DaskBlocks", "OnDevice", "Source", "Stream", "is_dask", "open_dataset", "regrouped"]
