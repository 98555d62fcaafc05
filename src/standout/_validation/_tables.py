"""Tables from files: what cannot be opened, understood, matched, split or prepared."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from standout._validation._numbers import is_number
from standout._validation._words import listed

MISSING_CHOICES = ("error", "drop-rows", "drop-columns", "mean")

_LONGEST = 60
_LONGEST_PATH = 200
_LONGEST_REASON = 240

_COLUMN_ADVICE = (
    "Drop what is not data (drop, --drop; for a scan, name what is in columns), or name it as ids, labels "
    "or groups (id_column, label_column, group_column)."
)


class UnknownColumnsError(ValueError):
    """A file lacks columns that were asked for by name.

    Attributes
    ----------
    option : str
        What they were asked for as: "id_column", "drop", ...
    names : list of str
    """

    def __init__(self, message: str, option: str, names: Sequence[str]) -> None:
        super().__init__(message)
        self.option = option
        self.names = list(names)


def short(text: Any, most: int = _LONGEST) -> str:
    """Shorten a name that may be of any length, for a message."""
    words = str(text)
    return words if len(words) <= most else f"{words[: most - 3]}..."


def shown(path: Any) -> str:
    """Show a path of any length by its end, which has the name of the file."""
    words = str(path)
    return repr(words if len(words) <= _LONGEST_PATH else f"...{words[3 - _LONGEST_PATH :]}")


def in_short(names: Collection[Any], noun: str = "column") -> str:
    """Name a few of many names, each shortened."""
    return listed(noun, [short(name) for name in names])


def check_file(path: Any) -> Path:
    """Check that a path names a file that can be read and holds something."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise TypeError(f"path={short(path)!r} is not the name of a file. Give a path.")
    file = Path(path).expanduser()
    try:
        if file.is_dir():
            raise IsADirectoryError(f"{shown(path)} is a folder, not a file. Give the file in it.")
        if file.exists() and not file.is_file():
            raise OSError(f"{shown(path)} is no regular file but a device or a pipe. Save the data to a file first.")
        with file.open("rb") as opened:
            empty = not opened.read(1)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {shown(path)}. Check the name and the folder.") from None
    except PermissionError:
        raise PermissionError(
            f"{shown(path)} cannot be opened: permission denied. Ask for the right to read it."
        ) from None
    except OSError as error:
        if error.strerror is None:
            raise
        raise OSError(f"{shown(path)} cannot be opened: {error.strerror}. Check the name.") from None
    except ValueError as error:
        raise ValueError(f"{shown(path)} cannot be the name of a file: {error}. Check the name.") from None
    if empty:
        reject_table(path, "it is empty", "Give a file with data.")
    return file


def reject_table(path: Any, what: str, remedy: str) -> NoReturn:
    """Say what is wrong with a file."""
    raise ValueError(f"{shown(path)} cannot be used: {what}. {remedy}")


def reject_unfinished(path: Any, kind: str, error: Exception) -> NoReturn:
    """Say that reading a file stopped half-way, in one line whatever the reader said."""
    if isinstance(error, UnicodeDecodeError):
        byte = f"byte {error.object[error.start]:#04x} stands for no letter"
        reject_table(path, f"it is not UTF-8 text: {byte}", "Save it as UTF-8.")
    said = short(" ".join(str(error).split()), _LONGEST_REASON).rstrip(".:")
    # NumPy's own advice to allow pickled objects would let a file run code.
    if "allow_pickle" in said or "Python objects" in said:
        said = "it holds pickled Python objects, which can run code and are never read"
    reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
    reject_table(
        path,
        f"reading it as {kind} stopped with {reason}",
        "Write the file again, or say what it is with format (--format).",
    )


def check_format(name: Any, known: Sequence[str]) -> str:
    """Check the name of a file format."""
    if name not in known:
        raise ValueError(f"format={short(name)!r} is unknown. Use one of {', '.join(map(repr, known))}.")
    return str(name)


def reject_extension(path: Any, extensions: Sequence[str]) -> NoReturn:
    """Say that the name of a file does not tell what it holds."""
    raise ValueError(
        f"{shown(path)} has no extension that is known ({', '.join(extensions)}). "
        "Say what the file is with format (--format)."
    )


def check_no_variable(variable: Any, kind: str) -> None:
    """Refuse the name of an array where a file holds one table only."""
    if variable is not None:
        raise ValueError(
            f"variable={short(variable)!r} is given, but a {kind} file holds one table only. "
            "Leave it out: it is for npz, mat and h5ad."
        )


def check_variable(variable: str | None, candidates: Sequence[str], known: Collection[str], path: Any) -> str:
    """Choose among the arrays of a file: the one named, or the only one that can be meant."""
    if variable is not None:
        if variable not in known:
            there = in_short(known, "variable") if known else "no variables"
            reject_table(path, f"variable={short(variable)!r} is not in it; it has {there}", "Choose among these.")
        return variable
    if len(candidates) != 1:
        there = in_short(candidates, "variable") if candidates else "none"
        everything = f" (it has {in_short(known, 'variable')})" if known and not candidates else ""
        reject_table(
            path,
            f"it should hold one two-dimensional array of numbers, but it holds {there}{everything}",
            "Name the one that is meant with variable (--variable).",
        )
    return candidates[0]


def check_rows_of_file(n_rows: int, path: Any) -> None:
    """Refuse a table that has a header but nothing under it."""
    if n_rows == 0:
        reject_table(path, "it has columns but no rows", "Give a file with data.")


def check_role(name: Any, role: str, known: Sequence[str], path: Any) -> None:
    """Check that a column named by the user is there, once."""
    if not isinstance(name, str):
        raise TypeError(f"{role}={short(name)!r} is not the name of a column. Give a string.")
    if name not in known:
        close = get_close_matches(name, known, n=1)
        meant = f"Is {short(close[0])!r} meant?" if close else "Choose among these."
        has = in_short(known) if known else "no columns"
        message = f"{role}={short(name)!r} is not in {shown(path)}, which has {has}. {meant}"
        raise UnknownColumnsError(message, role, [name])
    check_unique_columns([other for other in known if other == name], path)


def check_patterns(patterns: Any, option: str) -> tuple[str, ...]:
    """Check names and patterns of columns, and give them as a tuple."""
    several = (patterns,) if isinstance(patterns, str) else tuple(patterns or ())
    for pattern in several:
        if not isinstance(pattern, str):
            raise TypeError(f"{option} has {short(pattern)!r}, which is not the name of a column. Give strings.")
    return several


def check_patterns_found(unknown: Sequence[str], option: str, known: Sequence[str], path: Any) -> None:
    """Refuse names and patterns that no column has."""
    if unknown:
        has = in_short(known) if known else "no columns"
        message = (
            f"{option} names {in_short(unknown)}, but no column of {shown(path)} is called so: it has {has}. "
            "Check the spelling; * and ? stand for anything."
        )
        raise UnknownColumnsError(message, option, unknown)


def check_not_selected(names: Sequence[str], roles: Mapping[str, str]) -> None:
    """Refuse a column that is asked for as data and as something else."""
    for role, name in roles.items():
        if name in names:
            raise ValueError(
                f"select names {short(name)!r}, which is also the {role}, and labels never go into a fit. "
                f"Leave it out of select, or choose another {role}."
            )


def check_some_columns(n_columns: int, path: Any) -> None:
    """Refuse a choice that leaves no column."""
    if n_columns == 0:
        raise ValueError(
            f"no column of {shown(path)} is left as data, but the least is 1. Drop fewer columns, or select others."
        )


def check_unique_columns(names: Sequence[str], path: Any) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = list(dict.fromkeys(name for name in names if name in seen or seen.add(name)))  # type: ignore[func-returns-value]
        reject_table(
            path,
            f"it has {in_short(twice)} more than once, and the first line must hold the names",
            "Rename the columns, or drop them (drop, --drop).",
        )


def reject_text(names: Sequence[str], example: str, path: Any, aside: str = "") -> NoReturn:
    """Say which columns hold words."""
    raise ValueError(
        f"there is text in {in_short(names)} of {shown(path)}, such as {short(example)!r}{aside}. {_COLUMN_ADVICE}"
    )


def check_kinds(kinds: Mapping[str, Sequence[str]], path: Any) -> None:
    """Refuse columns by what they hold: dates first, then anything else that is no number."""
    for kind, names in kinds.items():
        if names:
            raise ValueError(f"there are {kind} in {in_short(names)} of {shown(path)}. {_COLUMN_ADVICE}")


def check_index(example: str, numbers: bool, repeated: bool, path: Any) -> None:
    """Refuse a first column without a name that looks like data, not like names of rows."""
    if numbers or repeated:
        what = f"such as {short(example)!r}" if numbers else "and some of them more than once"
        reject_table(
            path,
            f"its first column has no name, and holds numbers, {what}, that do not look like names of rows",
            "Give it a name in the first line, take it as ids all the same (id_column='', --id-column ''), "
            "or drop it (drop='', --drop '').",
        )


def check_target_groups(target: Any, backgrounds: Any, groups: Any, source: str) -> tuple[list[str], list[str]]:
    """Check which groups of rows are the target and which are backgrounds; give both, in full."""
    if groups is None:
        raise ValueError(
            f"the rows of {shown(source)} have no groups. Name the column that holds them when reading the file "
            "(group_column, --group-column)."
        )
    known = sorted(set(groups.tolist()) - {""})
    chosen = _groups(target, "target", known, source)
    if backgrounds is None:
        unknown = int((groups == "").sum())
        if unknown:
            raise ValueError(
                f"{unknown} row(s) of {shown(source)} have no group, so that they are neither target nor "
                "background. Fill them in, or name the backgrounds (backgrounds, --background-group)."
            )
        others = [name for name in known if name not in chosen]
    else:
        others = _groups(backgrounds, "backgrounds", known, source)
    both = [name for name in others if name in chosen]
    if both:
        raise ValueError(f"{in_short(both, 'group')} is both target and background. Choose different ones.")
    if not others:
        raise ValueError(
            f"every row of {shown(source)} belongs to the target {in_short(chosen, 'group')}, and none is left "
            "as background. Choose fewer."
        )
    return chosen, others


def _groups(names: Any, option: str, known: Sequence[str], source: str) -> list[str]:
    several = [names] if isinstance(names, str) else [str(name) for name in names]
    if not several:
        raise ValueError(f"{option} is empty. Give the name of one group or of several.")
    if len(set(several)) < len(several):
        raise ValueError(f"{option} has the same group twice: {in_short(several, 'group')}. Give each one once.")
    unknown = [name for name in several if name not in known]
    if unknown:
        has = f"{len(known)} group(s): {in_short(known, 'group')}" if known else "no groups at all"
        raise ValueError(f"{option} has {short(unknown[0])!r}, but {shown(source)} has {has}. Choose among these.")
    return several


def check_matching_columns(missing: Sequence[str], extra: Sequence[str], name: str, reference: str) -> None:
    """Refuse datasets whose columns are not the same ones."""
    lacks = f"{name} lacks {in_short(missing)} of {reference}" if missing else ""
    has = f"{name} has {in_short(extra)}, which {reference} has not" if extra else ""
    if missing or extra:
        raise ValueError(
            f"{'; '.join(part for part in (lacks, has) if part)}. "
            "Give every dataset the same columns, in any order: drop or select some (--drop, --select)."
        )


def check_matching_width(width: int, expected: int, name: str, reference: str) -> None:
    """Refuse datasets without names of columns that have different numbers of them."""
    if width != expected:
        raise ValueError(
            f"{name} has {width} columns, but {reference} has {expected}. Give every dataset the same columns."
        )


def check_option(value: Any, option: str, known: Sequence[str]) -> str:
    """Check one choice out of a few words."""
    if value not in known:
        advice = (
            " Each dataset by itself is no choice, since it would wipe out the very signal."
            if option == "standardize"
            else ""
        )
        raise ValueError(f"{option}={short(value)!r} is unknown. Use one of {', '.join(map(repr, known))}.{advice}")
    return str(value)


def reject_cell(what: str, value: float, column: str, row: int, row_id: str | None, name: str, remedy: str) -> NoReturn:
    """Say which cell of a dataset cannot be used; rows are counted from 1, as in a file."""
    called = f" ({short(row_id)!r})" if row_id else ""
    raise ValueError(f"there is {what} in {name}: {value:g} in column {short(column)!r}, row {row}{called}. {remedy}")


def reject_gaps(counts: Mapping[str, int], column: str, row: int, row_id: str | None, name: str) -> NoReturn:
    """Say how many values are missing, and where the first one should be."""
    called = f" ({short(row_id)!r})" if row_id else ""
    each = ", ".join(f"{count} in {dataset}" for dataset, count in counts.items())
    raise ValueError(
        f"values are missing: {each}; the first in column {short(column)!r}, row {row}{called} of {name}. "
        "Say what to do with them: missing='drop-rows', 'drop-columns' or 'mean' (--missing)."
    )


def check_rows_left(n_rows: int, n_dropped: int, name: str) -> None:
    """Refuse to drop every row of a dataset."""
    if n_rows == 0 and n_dropped:
        raise ValueError(
            f"each of the {n_dropped} row(s) of {name} has a missing value, and none would be left. "
            "Use missing='drop-columns' or 'mean' (--missing)."
        )


def check_columns_left(n_columns: int, n_dropped: int) -> None:
    """Refuse to drop every column."""
    if n_columns == 0:
        raise ValueError(
            f"each of the {n_dropped} column(s) has a missing value somewhere, and none would be left. "
            "Use missing='drop-rows' or 'mean' (--missing)."
        )


def check_means(names: Sequence[str]) -> None:
    """Refuse the mean of a column that has no value at all."""
    if names:
        raise ValueError(
            f"there is no value at all in {in_short(names)}, so that there is no mean to fill in. "
            "Drop what is empty (drop, --drop), or use missing='drop-columns' (--missing)."
        )


def check_preprocessing(stored: Any) -> None:
    """Check what was stored of a preprocessing, before it is used on new rows."""
    advice = "Save it again with to_dict."
    if not isinstance(stored, Mapping):
        raise TypeError(f"the stored preprocessing is a {type(stored).__name__}, but should be a mapping. {advice}")
    fields = {"columns", "dropped", "has_names", "log1p", "missing", "fill", "centre", "scale"}
    if set(stored) != fields:
        wrong = sorted(fields.symmetric_difference(map(str, stored)))
        raise ValueError(f"the stored preprocessing lacks or should not have {in_short(wrong, 'field')}. {advice}")
    for name in ("columns", "dropped"):
        if not isinstance(stored[name], list) or not all(isinstance(column, str) for column in stored[name]):
            raise ValueError(f"the stored preprocessing has an entry {name!r} that is not a list of names. {advice}")
    for name in ("has_names", "log1p"):
        if not isinstance(stored[name], bool):
            raise ValueError(f"the stored preprocessing has an entry {name!r} that is neither true nor false. {advice}")
    check_option(stored["missing"], "missing", MISSING_CHOICES)
    n_kept = len(set(stored["columns"]).difference(stored["dropped"]))
    for name in ("fill", "centre", "scale"):
        numbers = stored[name]
        if numbers is None:
            continue
        if len(numbers) != n_kept:
            raise ValueError(
                f"the stored preprocessing has {len(numbers)} numbers in {name!r}, but {n_kept} columns. {advice}"
            )
        if not all(is_number(number) and isfinite(number) and (name != "scale" or number > 0) for number in numbers):
            limit = "positive and finite" if name == "scale" else "finite"
            raise ValueError(f"the stored preprocessing has a number in {name!r} that is not {limit}. {advice}")


def check_lengths(lengths: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse columns to be written that are no columns, or of different lengths."""
    if not lengths:
        raise ValueError("there are no columns to write. Give at least one.")
    first, expected = next(iter(lengths.items()))
    for name, shape in lengths.items():
        if len(shape) != 1:
            raise ValueError(f"column {short(name)!r} has shape {shape}, but should have one dimension. Give a vector.")
        if shape != expected:
            raise ValueError(
                f"column {short(name)!r} has {shape[0]} values, but column {short(first)!r} has {expected[0]}. "
                "Give columns of one length."
            )


def reject_unwritable(path: Any, error: OSError) -> NoReturn:
    """Say that a file cannot be written."""
    # Arrow's errors have no strerror, but their first sentence says what went wrong.
    reason = error.strerror or short(" ".join(str(error).split()), _LONGEST_REASON)
    raise type(error)(f"{shown(path)} cannot be written: {reason}. Choose another name or folder.") from None
