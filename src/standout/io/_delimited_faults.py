"""What is wrong with a CSV or TSV file, and where: looked for only once it is known that something is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from standout._validation import reject_table, reject_text, reject_unfinished, short

MISSING = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "#NA", "<NA>"]
)

_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\s*", re.IGNORECASE)
_TRUTH = frozenset(["true", "false", "True", "False", "TRUE", "FALSE"])
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")

# A column without a number in so many rows is one of words; with one, words in it are a slip.
_SAMPLE = 1000


@dataclass(frozen=True)
class Ragged:
    """A line with more or fewer cells than there are columns."""

    line: int
    n_cells: int


@dataclass(frozen=True)
class Slip:
    """A cell that is no number, in a column of numbers."""

    line: int
    column: int
    value: str


@dataclass(frozen=True)
class TextColumns:
    """Columns of words."""

    columns: list[int]
    example: str


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number."""
    return _NUMBER.fullmatch(cell) is not None


def find_fault(
    rows: Iterable[tuple[int, list[str]]], width: int, features: Sequence[int]
) -> Ragged | Slip | TextColumns | None:
    """Find the first thing that is wrong; columns of words before single cells."""
    slips: list[Slip] = []
    with_numbers: set[int] = set()
    for number, (line, row) in enumerate(rows):
        if len(row) != width:
            return _text_columns(slips, with_numbers) or Ragged(line, len(row))
        for column in features:
            cell = row[column]
            if is_number(cell) or cell in _TRUTH:
                with_numbers.add(column)
            elif cell not in MISSING:
                slips.append(Slip(line, column, cell))
        if slips and number >= _SAMPLE:
            break
    return _text_columns(slips, with_numbers) or (slips[0] if slips else None)


def _text_columns(slips: Sequence[Slip], with_numbers: set[int]) -> TextColumns | None:
    words = [slip for slip in slips if slip.column not in with_numbers]
    return TextColumns(sorted({slip.column for slip in words}), words[0].value) if words else None


def reject_fault(
    rows: Callable[[], Iterable[tuple[int, list[str]]]],
    names: Sequence[str],
    features: Sequence[int],
    delimiter: str,
    source: str,
    said: Exception | None,
) -> NoReturn:
    """Say what is wrong with a file, or, where nothing can be found, what the reader said."""
    try:
        fault = find_fault(rows(), len(names), features)
    # A compressed file that ends too early, or text that is not UTF-8.
    except Exception as error:
        reject_unfinished(source, "CSV", error)
    if isinstance(fault, Ragged):
        reject_table(
            source,
            f"line {fault.line} has {fault.n_cells} cells, but there are {len(names)} columns",
            f"Mend the line; a cell that contains {delimiter!r} or a line break needs quotes.",
        )
    if isinstance(fault, TextColumns):
        reject_text([names[column] for column in fault.columns], fault.example, source, _aside(fault.example, names))
    if isinstance(fault, Slip):
        reject_table(
            source,
            f"{short(fault.value)!r} in line {fault.line}, column {short(names[fault.column])!r}, is not a number"
            f"{_aside(fault.value, names)}",
            "Mend the cell, or leave it empty if the value is missing.",
        )
    reject_unfinished(source, "CSV", said or ValueError("columns of more than one kind"))


def _aside(value: str, names: Sequence[str]) -> str:
    """Say what else may be behind it."""
    if _DECIMAL_COMMA.fullmatch(value):
        return " (decimal commas are not read: write decimal points)"
    if len(names) == 1:
        return " (there is one column only: is the delimiter neither a comma nor a semicolon, a tab or a bar?)"
    return ""
