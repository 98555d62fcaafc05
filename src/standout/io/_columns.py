"""Which column of a file is what: data, ids, labels, conditions, or nothing; and the same columns in other files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import NoneType
from typing import Any

import numpy as np

from standout._messages import InvalidTypeError, InvalidValueError, listed, short, shown, warn_user
from standout.io._files import unusable
from standout.sources._base import matched
from standout.sources._open import word

NUMBERS = ("numbers", "truths")
# Names of a first column that has the names of rows, if its words differ.
_ID = re.compile(r"|(|.*[ _.-])(id|ids|index)|unnamed: 0|(sample|row|cell)[ _]?(name)?s?|barcode", re.IGNORECASE)


def conditions_of(where: Any) -> dict[str, tuple[str, ...]]:
    """Check the values of rows that are wanted, and return them as words."""
    if not isinstance(where, Mapping | NoneType):
        advice = 'Give, for example, {"condition": "stim"}.'
        raise InvalidTypeError("is not a mapping from names of columns to values", parameter="where", advice=advice)
    found = {
        name: tuple(map(word, [values] if isinstance(values, str | bytes) or np.ndim(values) == 0 else values))
        for name, values in (where or {}).items()
    }
    for name, values in found.items():
        if not values:
            raise InvalidValueError(
                f"names no value of column {name!r}", parameter="where", advice="Give at least one."
            )
    return found


def check_column(name: Any, parameter: str, reader: Any) -> None:
    """Check that a column named by the user is there, once."""
    known = [*reader.beside, *reader.names, *([""] if reader.index == "" else [])]
    if name not in known:
        close = get_close_matches(str(name), known, n=1)
        advice = f"Is {short(close[0])!r} meant?" if close else "Choose among these."
        problem = f"is not a column of {shown(reader.path)}, which has {listed('column', known)}"
        raise InvalidValueError(problem, parameter=parameter, value=name, advice=advice)
    if name not in reader.beside:
        _check_unique({name}, reader)


def _check_unique(used: set[str], reader: Any) -> None:
    twice = [name for name, count in Counter(reader.names).items() if count > 1 and name in used]
    if twice:
        advice = "Rename the columns, or leave them out with `exclude`."
        unusable(reader.path, f"it has {listed('column', twice)} more than once", advice)


def find_ids(reader: Any, used: Sequence[str], words: Any) -> str | None:
    """Find the column that names rows: where the format keeps it, or the first column if name and words say so.

    `words` is a function that reads the first words of a column.
    """
    first = reader.names[0] if reader.kind in ("csv", "tsv") else reader.index
    if first is None or first in used or not reader.has_names:
        return None
    if reader.kind not in ("csv", "tsv"):
        return str(first)
    if not _ID.fullmatch(first) or len(reader.names) < 2:
        return None
    some = words(first)
    are_words = reader.kinds[0] == "text"
    if len(set(some)) == len(some) and (are_words or all(re.fullmatch(r"\s*\d+\s*", cell) for cell in some)):
        return str(first)
    if first == "" and not are_words:
        problem = f"its first column has no name and holds numbers such as {some[0]!r}, which do not look like names"
        unusable(reader.path, problem, "Name it in the first line, use id_column='', or leave it out with exclude=''.")
    return "" if first == "" else None


def choose(
    reader: Any, columns: Sequence[str] | None, exclude: Sequence[str], aside: set[str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Choose the columns that are data; return them, and the others by what they hold."""
    both = [name for name in columns or () if name in aside]
    if both:
        problem = f"has {short(both[0])!r}, which has another use too"
        raise InvalidValueError(problem, parameter="columns", advice="Leave it out of `columns`.")
    kinds = dict(zip(reader.names, reader.kinds, strict=True))
    unwanted = aside | set(_matching(exclude, reader, "exclude"))
    wanted = list(dict.fromkeys(reader.names)) if columns is None else _matching(columns, reader, "columns")
    found = [name for name in wanted if name not in unwanted]
    data = [name for name in found if kinds[name] in NUMBERS]
    left_out: dict[str, list[str]] = {}
    for name in found:
        if kinds[name] not in NUMBERS:
            left_out.setdefault(kinds[name], []).append(name)
    if left_out and (not data or any(kinds[name] not in NUMBERS for name in columns or () if name in kinds)):
        report_left_out(reader, left_out, strict=True)
    if not data:
        unusable(reader.path, "no column is left as data", "Choose other columns with `columns`.")
    _check_unique(set(data), reader)
    return data, left_out


def _matching(patterns: Sequence[str], reader: Any, parameter: str) -> list[str]:
    """Find the columns that have one of these names, or match it as a pattern, in the order of the patterns."""
    found: dict[str, None] = {}
    for pattern in patterns:
        # A name such as "x[1]" is used literally, although it could be read as a pattern.
        match = [name for name in reader.names if name == pattern]
        match = match or [name for name in reader.names if isinstance(pattern, str) and fnmatchcase(name, pattern)]
        if not match:
            check_column(pattern, parameter, reader)
        found.update(dict.fromkeys(match))
    return list(found)


def report_left_out(reader: Any, left_out: Mapping[str, Sequence[str]], strict: bool) -> None:
    """Name all columns that are not numbers, in one message."""
    parts = ", ".join(f"{listed('column', names, 8)} ({kind})" for kind, names in left_out.items())
    advice = "Leave them out with `exclude`, or use them as `id_column`, `label` or `where`."
    if "(currency" in parts:
        advice += " Currency can be used once it is written as plain numbers: 1038.48 for €1,038.48."
    if "(decimal commas" in parts:
        advice += ' Say decimal="," if the commas are decimal signs.'
    if strict or "(decimal commas" in parts:
        unusable(reader.path, f"it has no numbers in {parts}", advice)
    warn_user(f"not used as data of {shown(reader.path)}: {parts}", advice=advice)


def check_same(reader: Any, first: Any, chosen: list[str], aside: set[str], every: bool) -> None:
    """Check that a further file has the columns of the first, and no others if every column is used."""
    name, reference = shown(reader.path), f"the first file, {shown(first.path)},"
    if not (reader.has_names and first.has_names):
        matched(None, len(reader.names), name, None, len(first.names), reference)
        return
    kinds = dict(zip(reader.names, reader.kinds, strict=True))
    wrong = [key for key in chosen if kinds.get(key, "numbers") not in NUMBERS]
    if wrong:
        report_left_out(reader, {kinds[wrong[0]]: wrong}, strict=True)
    known = set(first.names)
    found = [key for key in [*chosen, *aside] if key in kinds or key in reader.beside or key == reader.index]
    found += [key for key in reader.names if every and key not in known and kinds[key] in NUMBERS]
    needed = [*chosen, *aside]
    matched(found, len(found), name, needed, len(needed), reference)
    _check_unique(set(chosen), reader)
