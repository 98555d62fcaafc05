"""Read files as datasets, in batches or whole; prepare datasets for a fit; write tables to files."""

from standout._writing import write_csv
from standout.io._prepare import Preparation, prepare
from standout.io._scan import Scan, read_table, scan
from standout.sources import on_device

__all__ = ["Preparation", "Scan", "on_device", "prepare", "read_table", "scan", "write_csv"]
