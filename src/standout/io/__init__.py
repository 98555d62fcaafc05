"""Files -> tables or batches -> what a method is fitted to, and results -> files.

:func:`read_table` reads a file of nearly any kind; :func:`scan` reads files that are larger than memory, or many, batch
by batch. :func:`split_by_group` cuts one table into a target and its backgrounds, :func:`match_columns` puts the
columns of several into one order, and :func:`prepare` sees to missing values, logarithms and scales, for all datasets
alike and such that new rows can be treated the same way.
"""

from standout.io._formats import EXTENSIONS, READERS
from standout.io._groups import split_by_group
from standout.io._match import match_columns
from standout.io._on_device import on_device
from standout.io._prepare import MISSING, STANDARDS, Prepared, prepare
from standout.io._preprocessing import Preprocessing
from standout.io._read import read_table
from standout.io._scan import scan
from standout.io._scanned import Scan
from standout.io._table import Table
from standout.io._write import write_csv

FORMATS = tuple(READERS)

__all__ = [
    "EXTENSIONS",
    "FORMATS",
    "MISSING",
    "STANDARDS",
    "Prepared",
    "Preprocessing",
    "Scan",
    "Table",
    "match_columns",
    "on_device",
    "prepare",
    "read_table",
    "scan",
    "split_by_group",
    "write_csv",
]
