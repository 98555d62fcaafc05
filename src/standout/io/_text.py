"""CSV and TSV files, also gzipped: parsed by Arrow, block by block."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from standout._messages import InvalidValueError, listed, require_extra, short, shown
from standout.io._arrow import cut, is_numeric, reject_kinds
from standout.io._reader import (
    COLUMN_ADVICE,
    Form,
    Head,
    Part,
    Reader,
    Wanted,
    as_words,
    check_rows_of_file,
    reject_unfinished,
)

DELIMITERS = {"CSV": ",;\t|", "TSV": "\t"}
# Cells that stand for a missing value.
MISSING = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "#NA", "<NA>"]
)
# Arrow parses a block at a time. It should hold some hundred rows even if these are long, because each column of a
# block has a cost of its own.
BLOCK_BYTES = 2**20
LARGEST_BLOCK = 64 * 2**20
BLOCK_ROWS = 256
# A column without a number in so many rows is one of words; in a column with numbers, a word is a slip.
SAMPLE_ROWS = 1000

_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\s*", re.IGNORECASE | re.ASCII)
_TRUTH = frozenset(["true", "false", "True", "False", "TRUE", "FALSE"])
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")


@dataclass(frozen=True)
class Layout:
    """How a file of cells is laid out: told by its first lines.

    Attributes
    ----------
    delimiter : str
    names : list of str
        Of all columns; ``""`` for one without a name.
    n_lines : int
        Lines before the first row.
    row_length : int
        Characters of the first row.
    is_gzipped : bool
    """

    delimiter: str
    names: list[str]
    n_lines: int
    row_length: int
    is_gzipped: bool


@dataclass(frozen=True)
class CsvReader(Reader):
    """A file of cells with a header."""

    kind = "CSV"

    def head(self) -> Head:
        """Read the header and the first row."""
        layout = self._layout()
        return Head(layout.names, len(layout.names), None, "" if layout.names[0] == "" else None)

    def form(self, features: Sequence[int]) -> Form:
        """Find out from the first block what the columns hold."""
        layout = self._layout()
        import pyarrow.types as kinds

        types = self._types(layout, features)
        truths = frozenset(place for place, kind in zip(features, types, strict=True) if kinds.is_boolean(kind))
        return Form(np.dtype(np.float64), 8 * len(features), text_bytes=layout.row_length, truths=truths)

    def batches(self, wanted: Wanted, form: Form, n_rows: int, start: int) -> Generator[Part]:
        """Give batches of rows; those before the first one have to be parsed all the same."""
        import pyarrow as pa

        layout = self._layout()
        features = [str(place) for place in wanted.features]
        # Truth values were found in the first block, and must hold throughout; all else are numbers.
        types = {str(place): pa.bool_() if place in form.truths else pa.float64() for place in wanted.features}
        words = {role: str(layout.names.index(name)) for role, name in wanted.words.items()}
        types |= dict.fromkeys(words.values(), pa.string())
        # Rows are counted in a column that is not looked at: without any, Arrow would read and convert all.
        types = types or {"0": pa.string()}
        needed = list(types)

        def found() -> Iterator[Any]:
            try:
                with self._opened(layout, wanted.features, needed, types) as reader:
                    yield from reader
            except (ValueError, OSError) as error:
                # Arrow's errors are ValueErrors, or OSErrors where a compressed file ends too early.
                self._refuse(layout, wanted.features, error)

        places = {role: needed.index(name) for role, name in words.items()}
        yield from cut(found(), range(len(features)), places, form.dtype, n_rows, start)

    def check_row_names(self, wanted: Wanted) -> None:
        """Refuse a first column without a name, unless it holds words, or whole numbers without repetition."""
        if wanted.words.get("ids") != "":
            return
        only = Wanted((), {"ids": ""})
        with closing(self.batches(only, Form(np.dtype(np.float64), 8), SAMPLE_ROWS, 0)) as batches:
            words = next((found["ids"] for _, found in batches), as_words([]))
        distinct = set(words.tolist())
        if not all(map(_is_number, distinct)):
            return
        are_whole = all(word.strip().lstrip("+-").isdigit() for word in distinct)
        if are_whole and len(distinct) == len(words):
            return
        self.refuse(
            "its first column has no name, and holds numbers, {what}, that do not look like names of rows",
            "Give it a name in the first line, take it as ids all the same with {p.id_column} '', or leave it out with "
            "{p.drop} ''.",
            what="and some of them more than once" if are_whole else f"such as {short(words[0])!r}",
        )

    def _layout(self) -> Layout:
        """Read the header and the first row."""
        require_extra("pyarrow", "files", "reading CSV and TSV files")
        with self.path.open("rb") as binary:
            is_gzipped = binary.read(2) == b"\x1f\x8b"
        line = self.attempt(lambda: _first_line(self.path, is_gzipped))
        if "\0" in line:
            self.refuse(
                "there are zero bytes in its first line: it looks like UTF-16 text without a byte-order mark",
                "Save it as UTF-8.",
            )
        # The candidate that the header has most of, outside of quotes.
        delimiter = max(DELIMITERS[self.kind], key=re.sub('"[^"]*"', "", line).count)
        header, n_lines, row = self.attempt(lambda: _first_rows(self.path, is_gzipped, delimiter))
        if not header:
            self.refuse("it has no line with the names of columns", "Write the names into the first line.")
        if len(header) == 1 and re.search("[,;|]", line) and delimiter == "\t":
            problem = "it has one column only, {line}, if a tab is what stands between columns"
            advice = "If it is something else, say so with {p.format:csv}."
            self.refuse(problem, advice, line=repr(line.strip()[:40]))
        if all(map(_is_number, header)) and any(re.search("[.eEnN]", name) for name in header):
            self.refuse("its first line holds numbers, not names", "Write the names of the columns there.")
        check_rows_of_file(len(row), self.source)
        # R writes the names of rows as a column, but no name above it.
        names = ["", *header] if len(row) == len(header) + 1 else header
        return Layout(delimiter, names, n_lines, sum(len(cell) + 1 for cell in row), is_gzipped)

    def _opened(self, layout: Layout, features: Sequence[int], needed: list[str], types: dict[str, Any]) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        # Without words no line ends within quotes; looking for that takes half as long again.
        has_text = len(features) < len(layout.names)
        return arrow_csv.open_csv(
            pa.input_stream(str(self.path), compression="gzip" if layout.is_gzipped else None),
            read_options=arrow_csv.ReadOptions(
                block_size=min(max(BLOCK_BYTES, BLOCK_ROWS * layout.row_length), LARGEST_BLOCK),
                column_names=[str(position) for position in range(len(layout.names))],
                skip_rows=layout.n_lines,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=has_text),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types, include_columns=needed, null_values=sorted(MISSING), strings_can_be_null=True
            ),
        )

    def _types(self, layout: Layout, features: Sequence[int]) -> list[Any]:
        """Give the types of the columns in the first block, and refuse what is no number."""
        import pyarrow.types as kinds

        if not features:
            return []
        try:
            with self._opened(layout, features, [str(place) for place in features], {}) as reader:
                types = list(reader.schema.types)
        except (ValueError, OSError) as error:
            self._refuse(layout, features, error)
        names = [layout.names[place] for place in features]
        dates = [name for name, kind in zip(names, types, strict=True) if kinds.is_temporal(kind)]
        reject_kinds({"dates or times": dates}, self.source)
        if not all(is_numeric(kind) for kind in types):
            self._refuse(layout, features, None)
        return types

    def _refuse(self, layout: Layout, features: Sequence[int], error: Exception | None) -> NoReturn:
        """Say what is wrong with the file, and where; if nothing can be found, what the reader said."""
        try:
            self._reject_fault(layout, features)
        except InvalidValueError:
            raise
        except Exception as damage:
            # A compressed file that ends too early, or text that is not UTF-8.
            reject_unfinished(self.source, self.kind, damage)
        reject_unfinished(self.source, self.kind, error or ValueError("columns of more than one kind"))

    def _reject_fault(self, layout: Layout, features: Sequence[int]) -> None:
        """Say what is wrong first: columns of words before single cells."""
        slips: list[tuple[int, int, str]] = []
        with_numbers: set[int] = set()
        ragged: tuple[int, int] | None = None
        for number, (line, row) in enumerate(_rows_of_text(self.path, layout)):
            if len(row) != len(layout.names):
                ragged = line, len(row)
                break
            for column in features:
                cell = row[column]
                if _is_number(cell) or cell in _TRUTH:
                    with_numbers.add(column)
                elif cell not in MISSING:
                    slips.append((line, column, cell))
            if slips and number >= SAMPLE_ROWS:
                break
        of_words = [slip for slip in slips if slip[1] not in with_numbers]
        if of_words:
            names = [layout.names[column] for column in sorted({column for _, column, _ in of_words})]
            example = of_words[0][2]
            raise InvalidValueError(
                "there is text in {columns} of {source}, such as {example}",
                columns=listed("column", names),
                source=shown(self.source),
                example=repr(short(example)) + _aside(example, layout.names),
                advice=COLUMN_ADVICE,
            )
        if ragged is not None:
            problem = "line {line} has {n_cells} cells, but there are {limit} columns"
            advice = "Mend the line; a cell that contains {delimiter} or a line break needs quotes."
            limit = len(layout.names)
            self.refuse(
                problem, advice, line=ragged[0], n_cells=ragged[1], limit=limit, delimiter=repr(layout.delimiter)
            )
        if slips:
            line, column, cell = slips[0]
            problem = "{cell} in line {line}, column {column}, is not a number{aside}"
            advice = "Mend the cell, or leave it empty if the value is missing."
            name, aside = repr(short(layout.names[column])), _aside(cell, layout.names)
            self.refuse(problem, advice, cell=repr(short(cell)), line=line, column=name, aside=aside)


class TsvReader(CsvReader):
    """A file of cells with tabs between them."""

    kind = "TSV"


# --- the first lines, as Python reads them ---------------------------------------------------------------------------


def _opened(path: Path, is_gzipped: bool) -> IO[str]:
    binary: Any = gzip.GzipFile(path) if is_gzipped else path.open("rb")
    # A byte-order mark, which spreadsheets write, is not part of the first name.
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


# --- what is wrong with a file: looked for only once it is known that something is -----------------------------------


def _rows_of_text(path: Path, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Give the rows as Python reads them, each with the number of its line."""
    with _opened(path, layout.is_gzipped) as text:
        for _ in range(layout.n_lines):
            text.readline()
        reader = csv.reader(text, delimiter=layout.delimiter)
        for row in reader:
            if row:
                yield layout.n_lines + reader.line_num, row


def _is_number(cell: str) -> bool:
    # Arrow reads no number with a line break.
    return _NUMBER.fullmatch(cell) is not None and "\n" not in cell and "\r" not in cell


def _aside(value: str, names: Sequence[str]) -> str:
    """Say what else may be the reason."""
    if _DECIMAL_COMMA.fullmatch(value):
        return " (decimal commas are not read: write decimal points)"
    if value.strip() and not value.isascii() and any(letter.isdigit() for letter in value):
        return " (digits must be 0 to 9)"
    if len(names) == 1:
        return " (there is one column only: is the delimiter neither a comma nor a semicolon, a tab or a bar?)"
    return ""
