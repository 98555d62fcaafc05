"""What the first lines of a CSV or TSV file say of the rest: delimiter, names, compression."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from standout._validation import check_rows_of_file, reject_table
from standout.io._delimited_faults import is_number
from standout.io._reading import attempt

DELIMITERS = {"csv": ",;\t|", "tsv": "\t"}


@dataclass(frozen=True)
class Layout:
    """How a file of cells is laid out.

    Attributes
    ----------
    delimiter : str
        What stands between cells.
    names : list of str
        Names of the columns; that of the names of rows may be empty.
    n_lines : int
        Lines up to the first row of data.
    row_length : int
        Length of the first row of data, in characters.
    is_gzipped : bool
        Whether the file is compressed.
    """

    delimiter: str
    names: list[str]
    n_lines: int
    row_length: int
    is_gzipped: bool


def find_layout(path: Path, source: str, kind: str) -> Layout:
    """Read the header and the first row."""
    with path.open("rb") as binary:
        is_gzipped = binary.read(2) == b"\x1f\x8b"
    line = attempt(lambda: _first_line(path, is_gzipped), source, kind.upper())
    delimiter = _delimiter(line, kind)
    header, n_lines, row = attempt(lambda: _first_rows(path, is_gzipped, delimiter), source, kind.upper())
    if not header:
        reject_table(source, "it has no line with the names of columns", "Write the names into the first line.")
    if len(header) == 1 and re.search("[,;|]", line) and delimiter == "\t":
        reject_table(
            source,
            f"it has one column only, {line.strip()[:40]!r}, if a tab is what stands between columns",
            "If it is something else, say so with format='csv' (--format csv).",
        )
    if all(is_number(name) for name in header) and any(re.search("[.eEnN]", name) for name in header):
        reject_table(source, "its first line holds numbers, not names", "Write the names of the columns there.")
    check_rows_of_file(len(row), source)
    # R writes the names of rows as a column, but no name above it.
    names = ["", *header] if len(row) == len(header) + 1 else header
    return Layout(delimiter, names, n_lines, sum(len(cell) + 1 for cell in row), is_gzipped)


def rows_of_text(path: Path, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Give the rows as Python reads them, with the number of their line: slowly, to find what is wrong."""
    with _opened(path, layout.is_gzipped) as text:
        for _ in range(layout.n_lines):
            text.readline()
        reader = csv.reader(text, delimiter=layout.delimiter)
        for row in reader:
            if row:
                yield layout.n_lines + reader.line_num, row


def _opened(path: Path, is_gzipped: bool) -> IO[str]:
    binary: Any = gzip.GzipFile(path) if is_gzipped else path.open("rb")
    # A byte-order mark, which spreadsheets like to write, is not part of the first name.
    return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")


def _first_line(path: Path, is_gzipped: bool) -> str:
    with _opened(path, is_gzipped) as text:
        return next((line for line in text if line.strip()), "")


def _first_rows(path: Path, is_gzipped: bool, delimiter: str) -> tuple[list[str], int, list[str]]:
    with _opened(path, is_gzipped) as text:
        reader = csv.reader(text, delimiter=delimiter)
        header = next((row for row in reader if row), [])
        n_lines = reader.line_num
        return header, n_lines, next((row for row in reader if row), [])


def _delimiter(line: str, kind: str) -> str:
    """Take the candidate that the header has most of, outside of quotes."""
    bare = re.sub('"[^"]*"', "", line)
    return max(DELIMITERS[kind], key=bare.count)
