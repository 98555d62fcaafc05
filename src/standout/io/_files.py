"""Find the files of paths, and choose their columns; the base class of all readers."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from standout._arrays import Rows
from standout._messages import (
    FileError,
    InvalidTypeError,
    InvalidValueError,
    MissingFileError,
    choices,
    listed,
    short,
    shown,
    warn_user,
)
from standout._options import EXTENSIONS, FORMATS
from standout.sources import Words, matched
from standout.sources._form import as_rows, known, word

# A folder with one of these files is a Zarr store.
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")
_BY_EXTENSION = f"a known extension ({', '.join(EXTENSIONS)})"
NUMBERS = ("numbers", "truths")
PLAIN = "Write numbers as 1038.48: digits 0 to 9, without currency, percent or signs between thousands."
# A first column with such a name has the ids of the rows, if its values are unique.
_ID = re.compile(r"|(|.*[ _.-])(id|ids|index)|unnamed: 0|(sample|row|cell)[ _]?(name)?s?|barcode", re.IGNORECASE)
T = TypeVar("T")
Part: TypeAlias = tuple[Rows, dict[str, Words]]
"""Some rows of a file, and other columns or vectors for these rows as words."""


def unusable(source: Any, problem: str, advice: str = "Write the file again.") -> NoReturn:
    """Raise the error for an unusable file."""
    raise InvalidValueError(f"{shown(source)} cannot be used: {problem}", advice=advice)


def check_choice(value: Any, parameter: str, known: Collection[str]) -> None:
    """Refuse an unknown value."""
    if value not in known:
        raise InvalidValueError("is unknown", parameter=parameter, value=value, advice=f"Use one of {choices(known)}.")


def attempt(source: Any, kind: str, read: Callable[[], T]) -> T:
    """Call `read`. If a library raises an error, report that the file is damaged."""
    try:
        return read()
    except (InvalidValueError, ImportError):
        raise
    except Exception as error:
        if isinstance(error, UnicodeDecodeError):
            byte = f"{error.object[error.start]:#04x}"
            advice = 'Save it as UTF-8, or name its encoding: encoding="latin-1".'
            unusable(source, f"it is not {error.encoding} text: byte {byte} stands for no letter", advice)
        said = short(" ".join(str(error).split()), 240).rstrip(".:")
        # Replace NumPy's message, which advises to allow pickled objects: a file with such objects can run code.
        if "allow_pickle" in said or "Python objects" in said:
            said = "it holds pickled Python objects, which can run code and are never read"
        advice = "Write the file again, or say what it is with `format`."
        unusable(source, f"reading it as {kind} stopped with {type(error).__name__}: {said}".rstrip(": "), advice)


def attempted(source: Any, kind: str, items: Iterator[T]) -> Iterator[T]:
    """Yield the items. If a library raises an error, report that the file is damaged."""
    while (item := attempt(source, kind, lambda: next(items, None))) is not None:
        yield item


def find_files(paths: Any, format: str | None) -> tuple[list[Path], str]:
    """Find the files of paths and patterns, in order, and their format."""
    format = "arrow" if format == "feather" else format
    if format is not None:
        check_choice(format, "format", FORMATS)
    files: list[Path] = []
    for path in paths if isinstance(paths, list | tuple) else [paths]:
        if not isinstance(path, str | os.PathLike) or not str(path):
            advice = "Give a path, a folder, a pattern such as 'target/*.parquet', or a list of them."
            raise InvalidTypeError(f"{short(repr(path))} is not the name of a file", advice=advice)
        files += files_of(os.path.expanduser(path), format)
    if not files:
        raise InvalidValueError("paths is an empty list", advice="Give at least one file, folder or pattern.")
    kinds = {format or _kind(file): file for file in files}
    if None in kinds:
        raise InvalidValueError(f"{shown(kinds[None])} has not {_BY_EXTENSION}", advice="Say what it is with `format`.")
    if len(kinds) > 1:
        problem = f"there are files of more than one kind: {choices(sorted(map(str, kinds)))}"
        raise InvalidValueError(problem, advice="Give files of one kind, by a pattern such as 'target/*.parquet'.")
    ((twice, count),) = Counter(file.absolute() for file in files).most_common(1)
    if count > 1:
        raise InvalidValueError(f"{shown(twice)} is named more than once", advice="Name each file once.")
    for file in files:
        check_file(file)
    return files, str(next(iter(kinds)))


def files_of(path: str, format: str | None) -> list[Path]:
    """Return the files of one path. Files of a pattern or a folder are sorted by name."""
    if has_magic(path) and not os.path.lexists(path):
        found = [file for match in sorted(glob(path, recursive=True)) for file in files_of(match, format)]
        if not found:
            advice = "Check the folder and the pattern: * stands for any part of a name, ** for any folders."
            raise MissingFileError(f"no file matches {shown(path)}", advice=advice)
        return found
    folder = Path(path)
    if not os.path.isdir(folder) or _is_store(folder):
        return [folder]
    inside = sorted(file for file in folder.iterdir() if not file.name.startswith((".", "_")))
    known = [file for file in inside if _kind(file) and (_is_store(file) or not file.is_dir())]
    # If a format is given and no file has its extension, use all files of the folder.
    chosen = [file for file in known if format in (None, _kind(file))] or (inside if format else [])
    if not chosen:
        advice = "Check the name, or say what the files are with `format`."
        raise MissingFileError(f"the folder {shown(path)} has no file with {_BY_EXTENSION}", advice=advice)
    return chosen


def _kind(file: Path) -> str | None:
    """Return the format of a file by its extension, or None; a folder may be a Zarr store."""
    if _is_store(file):
        return "zarr"
    return next((kind for extension, kind in EXTENSIONS.items() if file.name.lower().endswith(extension)), None)


def _is_store(folder: Path) -> bool:
    return any(os.path.isfile(folder / mark) for mark in _ZARR_MARKS)


def check_file(file: Path) -> None:
    """Check that a path names a file that can be read and is not empty."""
    if _is_store(file):
        return
    if os.path.exists(file) and not file.is_file():
        raise FileError(f"{shown(file)} is a folder, a device or a pipe, not a file", advice="Give a file.")
    try:
        with file.open("rb") as opened:
            empty = not opened.read(1)
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
        problem = f"{shown(file)} cannot be opened: {str(getattr(error, 'strerror', None) or error).lower()}"
        raise kind(problem, advice="Check the name, and the right to read it.") from None
    if empty:
        unusable(file, "it is empty", "Give a file with data.")


# --- readers ----------------------------------------------------------------------------------------------------------


@dataclass
class Reader:
    """One file, with the names and the kinds of its columns.

    The user sets `variable` and, for text files, the attributes from `delimiter` to `na_values`. If such an attribute
    is None, its value is found in the file. `index` is the column or vector with the names of rows, if the format
    defines one. `beside` has the names of vectors with one value per row, which some files have in addition to a
    matrix.
    """

    path: Path
    kind: str
    variable: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    decimal: str = "."
    encoding: str | None = None
    na_values: Sequence[str] = ()
    n_rows: int | None = None
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    index: str | None = None
    beside: tuple[str, ...] = ()
    has_names: bool = True

    def __post_init__(self) -> None:
        """Find names, kinds and the number of rows in the file; defined in subclasses."""

    def stamp(self) -> tuple[int, int]:
        """Return the size and the time of the last change of the file; zeros if the path is not a file."""
        found = self.path.stat() if self.path.is_file() else None
        return (0, 0) if found is None else (found.st_size, found.st_mtime_ns)

    def batches(self, features: Sequence[int], words: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Yield record batches of Arrow; columns are named by their positions in the file. Defined in subclasses."""
        raise NotImplementedError

    def parts(self, features: Sequence[int], words: Sequence[str], n_rows: int) -> Iterator[Part]:
        """Yield rows, and some columns for these rows as words."""
        at = {name: str(self.names.index(name)) for name in words}
        keys = [self.names[place] for place in features]
        for batch in attempted(self.path, self.kind, self.batches(features, words, n_rows)):
            rows = np.zeros((batch.num_rows, 0))
            if keys:
                some = batch.select([str(place) for place in features])
                rows = as_rows(some, shown(self.path), keys=keys, finite=False, min_rows=0)
            yield rows, {name: _arrow_words(batch.column(column)) for name, column in at.items()}


def _arrow_words(column: Any) -> Words:
    """Convert a column to words; equal values share one string."""
    import pyarrow as pa

    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    known = as_words([*encoded.dictionary.to_pylist(), None])
    return known[encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]


def as_words(values: Any) -> Words:
    """Return values as strings. The number 3.0 becomes "3", and missing values become empty strings."""
    words = np.empty(len(values), dtype=object)
    words[:] = [word(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
    return words


# --- the use of each column -------------------------------------------------------------------------------------------


def check_column(name: Any, parameter: str, reader: Reader) -> None:
    """Check that a named column exists exactly once."""
    names = [*reader.beside, *reader.names, *([""] if reader.index == "" else [])]
    known(name, parameter, names, f"a column of {shown(reader.path)}")
    if name not in reader.beside:
        _check_unique({name}, reader)


def _check_unique(used: set[str], reader: Reader) -> None:
    twice = [name for name, count in Counter(reader.names).items() if count > 1 and name in used]
    if twice:
        advice = "Rename the columns, or leave them out with `exclude`."
        unusable(reader.path, f"it has {listed('column', twice)} more than once", advice)


def find_ids(reader: Reader, used: Sequence[str]) -> str | None:
    """Return the column with the names of rows, or None if there is none.

    In a text file, the first column has the names of rows, if its name and values look like ids. Files of other formats
    store which column has the names.
    """
    first = reader.names[0] if reader.kind in ("csv", "tsv") else reader.index
    if first is None or first in used or not reader.has_names:
        return None
    if reader.kind not in ("csv", "tsv"):
        return str(first)
    if not _ID.fullmatch(first) or len(reader.names) < 2:
        return None
    _, words = next(iter(reader.parts([], [first], 1000)))
    some = words[first][:1000].tolist()
    are_words = reader.kinds[0] == "text"
    if len(set(some)) == len(some) and (are_words or all(re.fullmatch(r"\s*\d+\s*", cell) for cell in some)):
        return str(first)
    if first == "" and not are_words:
        problem = f"its first column has no name and holds numbers such as {some[0]!r}, which do not look like names"
        unusable(reader.path, problem, "Name it in the first line, use id_column='', or leave it out with exclude=''.")
    return "" if first == "" else None


def choose(
    reader: Reader, columns: Sequence[str] | None, exclude: Sequence[str], aside: set[str], strict: bool
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the data columns, and the columns that are left out, by kind.

    Columns that are left out because of their kind are reported in a warning or an error.
    """
    both = [name for name in columns or () if name in aside]
    if both:
        problem = f"has {short(both[0])!r}, which has another use too"
        raise InvalidValueError(problem, parameter="columns", advice="Leave it out of `columns`.")
    kinds = dict(zip(reader.names, reader.kinds, strict=True))
    unwanted = aside | set(_matching(exclude, reader, "exclude"))
    wanted = list(dict.fromkeys(reader.names)) if columns is None else _matching(columns, reader, "columns")
    left_out: dict[str, list[str]] = {}
    for name in wanted:
        if name not in unwanted:
            left_out.setdefault("" if kinds[name] in NUMBERS else kinds[name], []).append(name)
    data = left_out.pop("", [])
    if left_out:
        named = any(kinds.get(name, "numbers") not in NUMBERS for name in columns or ())
        report_left_out(reader, left_out, strict or named or not data)
    if not data:
        unusable(reader.path, "no column is left as data", "Choose other columns with `columns`.")
    _check_unique(set(data), reader)
    return data, left_out


def _matching(patterns: Sequence[str], reader: Reader, parameter: str) -> list[str]:
    """Find the columns whose name is one of the patterns, or matches one. Keep the order of the patterns."""
    found: dict[str, None] = {}
    for pattern in patterns:
        # A name such as "x[1]" is used literally, although it could be read as a pattern.
        match = [name for name in reader.names if name == pattern]
        match = match or [name for name in reader.names if isinstance(pattern, str) and fnmatchcase(name, pattern)]
        if not match:
            check_column(pattern, parameter, reader)
        found.update(dict.fromkeys(match))
    return list(found)


def report_left_out(reader: Reader, left_out: Mapping[str, Sequence[str]], strict: bool) -> None:
    """Name all columns that are not numbers in one warning.

    Raise an error instead if `strict`, or if a column has decimal commas.
    """
    parts = ", ".join(f"{listed('column', names, 8)} ({kind})" for kind, names in left_out.items())
    advice = f"Leave them out with `exclude`, or use them as `id_column`, `label`, `groups` or `where`. {PLAIN}"
    if "(decimal commas" in parts:
        advice += ' Say decimal="," if the commas are decimal signs.'
    if strict or "(decimal commas" in parts:
        unusable(reader.path, f"it has no numbers in {parts}", advice)
    warn_user(f"not used as data of {shown(reader.path)}: {parts}", advice=advice)


def check_same(reader: Reader, first: Reader, chosen: list[str], aside: set[str], every: bool) -> None:
    """Check that a further file has the columns of the first file. If `every`, refuse additional columns of numbers."""
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
