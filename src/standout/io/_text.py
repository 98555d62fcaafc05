"""CSV and TSV files, also gzipped: the layout is found in the first lines, and the cells are parsed by Arrow."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NoReturn

import numpy as np

from standout._messages import require_extra, short
from standout.io._files import PLAIN, Part, Reader, attempt, unusable
from standout.sources._form import LARGEST_INTEGER

DELIMITERS = {"csv": ",;\t|", "tsv": "\t"}
# Cells that stand for a missing value.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "#NA", "<NA>")
# Arrow parses a block of text at a time: 1 MB, or more if rows are long, up to 64 MB. A block then has about 256 rows
# or more in nearly all files.
BLOCK_BYTES, LARGEST_BLOCK, BLOCK_ROWS = 2**20, 64 * 2**20, 256
# Number of values from which the kind of a column is found. If fewer than half of these values are numbers, the column
# is text.
SAMPLE_ROWS = 1000

_NUMBER = re.compile(r"[ \t]*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)[ \t]*", re.IGNORECASE | re.ASCII)
_TRUTH = frozenset(["true", "false", "True", "False", "TRUE", "FALSE"])
# Numbers with signs of currency, percent or thousands.
_FIGURE = re.compile(r"[-+(]?\W?\d[\d.,' ]*\W?\)?")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")


class CsvReader(Reader):
    """A file of cells. `kinds` has the kind of each column: numbers, truths, dates, text or decimal commas."""

    def __post_init__(self) -> None:
        require_extra("pyarrow", "files", "reading CSV and TSV files")
        import pyarrow as pa
        import pyarrow.types as types

        with self.path.open("rb") as binary:
            head = binary.read(2)
        self._gzipped, self._missing = head == b"\x1f\x8b", (*MISSING, *self.na_values)
        self._encoding = self.encoding or ("utf-16" if head in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
        attempt(self.path, self.kind, self._find_layout)
        self.index = "" if self.names[0] == "" else None
        places = [str(place) for place in range(len(self.names))]
        # The kind of each column is found from the first block.
        try:
            with self._opened(places, {}) as reader:
                found = dict(zip(places, reader.schema.types, strict=True))
            unclear = [place for place in places if types.is_string(found[place]) or types.is_binary(found[place])]
            with self._opened(unclear, dict.fromkeys(unclear, pa.string())) as reader:
                cells = next(iter(reader))
        except (ValueError, OSError) as error:
            self._refuse(range(len(places)), error)
        self.kinds = [
            "truths" if types.is_boolean(kind) else "dates or times" if types.is_temporal(kind) else "numbers"
            for kind in found.values()
        ]
        for place in unclear:
            self.kinds[int(place)] = self._kind_of(cells.column(place).drop_null()[:SAMPLE_ROWS].to_pylist())

    def _find_layout(self) -> None:
        """Find delimiter, names and the number of lines before the first row."""
        with self._text() as text:
            line = next((line for line in text if line.strip()), "")
        if "\0" in line:
            unusable(self.path, "there are zero bytes in its first line: it looks like UTF-16", "Save it as UTF-8.")
        # Choose the delimiter that is most frequent in the first line, outside of quotes.
        self._delimiter = self.delimiter or max(DELIMITERS[self.kind], key=re.sub('"[^"]*"', "", line).count)
        if self._delimiter == self.decimal:
            problem = f"{self._delimiter!r} would be both the delimiter and the decimal sign"
            unusable(self.path, problem, "Name the other: delimiter=';' or decimal='.'.")
        with self._text() as text:
            reader = csv.reader(text, delimiter=self._delimiter)
            header = next((row for row in reader if row), [])
            self._skipped = reader.line_num
            row = next((row for row in reader if row), [])
        if not header:
            unusable(self.path, "it has no line with the names of columns", "Write the names into the first line.")
        if len(header) == 1 and self.kind == "tsv" and re.search("[,;|]", line):
            problem = f"it has one column only, {line.strip()[:40]!r}, if a tab stands between columns"
            unusable(self.path, problem, "Say what it is with `format`: format='csv'.")
        self.has_names = self.header is not False
        if self.header is None:
            self._check_header(header, row)
        if not self.has_names:
            self._skipped, row, header = 0, header, [f"x{place}" for place in range(len(header))]
        if not row:
            unusable(self.path, "it has columns but no rows", "Give a file with data.")
        # R writes the names of rows as a first column that has no name in the header.
        self.names = ["", *header] if len(row) == len(header) + 1 else header
        self._row_length = sum(len(cell) + 1 for cell in row)

    def _check_header(self, header: list[str], row: list[str]) -> None:
        """Refuse a first line that could be names as well as data."""
        # pandas names columns 0, 1, 2 ... if they have no names, and leaves the name of the index empty.
        if header[0] == "" and header[1:] == [str(number) for number in range(len(header) - 1)]:
            return
        data, below = ([self._is_number(cell) or cell in self._missing for cell in cells] for cells in (header, row))
        if all(data) or (data == below and any(map(self._is_number, header))):
            line = short(self._delimiter.join(header))
            problem = f"its first line holds numbers ({line!r}), which may be names or data"
            unusable(self.path, problem, "Say which: `header`=True for names, `header`=False for data.")

    def _kind_of(self, cells: list[str]) -> str:
        """Return the kind of a column, found from its first cells.

        If at least half of these cells are numbers, the kind is "numbers". Words in this column are then errors.
        """
        n_numbers = sum(map(self._is_number, cells))
        commas = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell) and not self._is_number(cell)]
        if commas and len(commas) + n_numbers == len(cells):
            return f"decimal commas, such as {short(commas[0])!r}"
        if cells and 2 * n_numbers >= len(cells):
            return "numbers"
        return f"text, such as {short(cells[0])!r}" if cells and all(map(_FIGURE.fullmatch, cells)) else "text"

    def batches(self, features: Sequence[int], words: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Parse record batches of Arrow, whose columns are named by their positions in the file."""
        import pyarrow as pa

        kinds = {str(place): pa.bool_() if self.kinds[place] == "truths" else pa.float64() for place in features}
        kinds |= {str(self.names.index(name)): pa.string() for name in words}
        try:
            with self._opened(list(kinds), kinds) as reader:
                yield from reader
        except (ValueError, OSError) as error:
            # Arrow raises ValueErrors, and OSErrors if a compressed file ends too early.
            self._refuse(features, error)

    def parts(self, features: Sequence[int], words: Sequence[str], n_rows: int) -> Iterator[Part]:
        """Read rows, and some columns as text. Refuse whole numbers that float64 would round."""
        checked: set[int] = set()
        for rows, said in super().parts(features, words, n_rows):
            large = set(np.flatnonzero((np.abs(rows) >= LARGEST_INTEGER).any(axis=0)).tolist()) - checked
            for place in large:
                self._check_large(features[place])
            checked |= large
            yield rows, said

    def _check_large(self, place: int) -> None:
        """Read a column with large numbers again, as text. Refuse whole numbers that float64 would round."""
        import pyarrow as pa
        import pyarrow.compute as pc

        with self._opened([str(place)], {str(place): pa.string()}) as reader:
            for part in reader:
                whole = part.filter(pc.match_substring_regex(part.column(0), r"^\s*[+-]?\d{16,}\s*$"))
                wrong = [cell for cell in whole.column(0).to_pylist() if int(cell) != float(cell)]
                if wrong:
                    problem = f"column {self.names[place]!r}: {wrong[0]} is beyond 2**53, and would be rounded"
                    unusable(self.path, problem, "Leave it out with `exclude`: it may be an identifier.")

    @contextmanager
    def _opened(self, needed: list[str], types: dict[str, Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        # If no column is needed, read one to count the rows. Without this choice, Arrow would convert all columns.
        types, needed = types or ({} if needed else {"0": pa.string()}), needed or ["0"]
        read = arrow_csv.ReadOptions(
            block_size=min(max(BLOCK_BYTES, BLOCK_ROWS * self._row_length), LARGEST_BLOCK),
            column_names=[str(place) for place in range(len(self.names))],
            skip_rows=self._skipped,
            encoding=self._encoding,
        )
        convert = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=needed,
            null_values=sorted(self._missing),
            strings_can_be_null=True,
            decimal_point=self.decimal,
        )
        parse = arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
        with (
            self.path.open("rb") as file,
            pa.input_stream(file, "gzip" if self._gzipped else None) as stream,
            arrow_csv.open_csv(stream, read, parse, convert) as reader,
        ):
            yield reader

    # --- errors: the place of an error is searched only after reading has failed --------------------------------------

    def _text(self) -> IO[str]:
        binary: Any = gzip.GzipFile(self.path) if self._gzipped else self.path.open("rb")
        # Skip a byte-order mark, which spreadsheets write. Otherwise it would be part of the first name.
        encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
        return io.TextIOWrapper(binary, encoding=encoding, newline="")

    def _is_number(self, cell: str) -> bool:
        if self.decimal != ".":
            cell = "x" if "." in cell else cell.replace(self.decimal, ".")
        return _NUMBER.fullmatch(cell) is not None

    def _refuse(self, features: Sequence[int], error: Exception) -> NoReturn:
        """Raise an error that names the line of the problem. If no such line is found, repeat Arrow's message."""

        def find() -> NoReturn:
            with self._text() as text:
                reader = csv.reader(text, delimiter=self._delimiter)
                for row in reader:
                    if row and reader.line_num > self._skipped:
                        self._check_row(row, reader.line_num, features)
            raise error

        attempt(self.path, self.kind, find)

    def _check_row(self, row: list[str], line: int, features: Sequence[int]) -> None:
        """Raise an error if the row has a wrong number of cells, or a cell that is not a number."""
        if len(row) != len(self.names):
            problem = f"line {line} has {len(row)} cells, but there are {len(self.names)} columns"
            advice = f"Fix the line; a cell that contains {self._delimiter!r} or a line break needs quotes."
            unusable(self.path, problem, advice)
        for place in features:
            cell = row[place]
            if self._is_number(cell) or cell in _TRUTH or cell in self._missing:
                continue
            advice = f"{PLAIN} A missing value is an empty cell; `na_values` names other words for that."
            if _DECIMAL_COMMA.fullmatch(cell):
                advice = 'For a decimal comma, say so: decimal=",". If it separates thousands, leave it out.'
            elif len(self.names) == 1:
                advice = "There is one column only: name the delimiter, for example delimiter=' '."
            problem = f"{short(cell)!r} in line {line}, column {self.names[place]!r}, is not a number"
            unusable(self.path, problem, advice)
