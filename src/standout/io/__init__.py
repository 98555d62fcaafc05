"""Files as datasets, read in batches or whole, prepared in the same way; and results to files."""

from standout._writing import write_csv
from standout.io._prepare import Preparation, prepare
from standout.io._scan import Scan, read_table, scan
from standout.sources import on_device

__all__ = ["Preparation", "Scan", "on_device", "prepare", "read_table", "scan", "write_csv"]
