"""Files as datasets, read in batches or at once, prepared in the same way; and results to files."""

from standout._writing import write_csv as write_csv
from standout.io._prepare import Preparation as Preparation
from standout.io._prepare import prepare as prepare
from standout.io._scan import Scan as Scan
from standout.io._scan import read_table as read_table
from standout.io._scan import scan as scan
from standout.sources import on_device as on_device
