"""Files as datasets: read in batches or at once, prepared alike; and results to files."""

from standout.io._checkpoint import pack as pack
from standout.io._checkpoint import unpack as unpack
from standout.io._columns import UnknownColumnsError as UnknownColumnsError
from standout.io._files import EXTENSIONS, READERS
from standout.io._hdf5 import BackedRows as BackedRows
from standout.io._memory import MemoryNeed, fits_in_memory
from standout.io._preparation import MISSING, STANDARDS, Preparation
from standout.io._preparation import earlier_preparation as earlier_preparation
from standout.io._prepare import Prepared, prepare
from standout.io._prepare import match_columns as match_columns
from standout.io._read import column_names_of as column_names_of
from standout.io._read import read_table, scan
from standout.io._reader import word as word
from standout.io._reader import words_of_array as words_of_array
from standout.io._scan import Scan
from standout.io._statistics import ColumnSums as ColumnSums
from standout.io._write import csv_writer as csv_writer
from standout.io._write import write_csv
from standout.sources import Table, on_device

FORMATS = tuple(READERS)

__all__ = [
    "EXTENSIONS",
    "FORMATS",
    "MISSING",
    "STANDARDS",
    "MemoryNeed",
    "Preparation",
    "Prepared",
    "Scan",
    "Table",
    "fits_in_memory",
    "on_device",
    "prepare",
    "read_table",
    "scan",
    "write_csv",
]

# Saved models and checkpoints name these classes by the public package. Its modules can then be reorganised.
for _class in (ColumnSums, Preparation):
    _class.__module__ = __name__
