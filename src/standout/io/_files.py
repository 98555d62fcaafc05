"""From paths that users name (files, folders, patterns) to the files that are meant; and what all readers share."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from standout._arrays import Rows
from standout._messages import FileError, InvalidTypeError, InvalidValueError, MissingFileError, choices, short, shown
from standout.sources import Words
from standout.sources._form import column_numbers, joined_columns
from standout.sources._open import word

EXTENSIONS = {
    **dict.fromkeys((".csv", ".csv.gz", ".txt", ".txt.gz"), "csv"),
    **dict.fromkeys((".tsv", ".tsv.gz", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".ipc", ".feather"), "arrow"),
    **{f".{kind}": kind for kind in ("npy", "npz", "mat", "h5ad", "zarr")},
}
FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))
# Files in the folder of a Zarr store.
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")
_BY_EXTENSION = f"a known extension ({', '.join(EXTENSIONS)})"
T = TypeVar("T")


def unusable(source: Any, problem: str, advice: str = "Write the file again.") -> NoReturn:
    """Raise the error that says what is wrong with a file."""
    raise InvalidValueError(f"{shown(source)} cannot be used: {problem}", advice=advice)


def check_choice(value: Any, parameter: str, known: Collection[str]) -> None:
    """Refuse a value that is not one of those that are known."""
    if value not in known:
        raise InvalidValueError("is unknown", parameter=parameter, value=value, advice=f"Use one of {choices(known)}.")


def attempt(source: Any, kind: str, read: Callable[[], T]) -> T:
    """Read something, and report any error of a library as a damaged file."""
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
        # NumPy's advice to allow pickled objects would let a file run code.
        if "allow_pickle" in said or "Python objects" in said:
            said = "it holds pickled Python objects, which can run code and are never read"
        advice = "Write the file again, or say what it is with `format`."
        unusable(source, f"reading it as {kind} stopped with {type(error).__name__}: {said}".rstrip(": "), advice)


def attempted(source: Any, kind: str, items: Iterator[T]) -> Iterator[T]:
    """Return one item after the other, and report any error of a library as a damaged file."""
    while (item := attempt(source, kind, lambda: next(items, None))) is not None:
        yield item


def find_files(paths: Any, format: str | None) -> tuple[list[Path], str]:
    """Find the files that are meant, in order, and their kind."""
    if format == "feather":
        format = "arrow"
    if format is not None:
        check_choice(format, "format", FORMATS)
    files: list[Path] = []
    for path in paths if isinstance(paths, list | tuple) else [paths]:
        if not isinstance(path, str | os.PathLike) or not str(path):
            advice = "Give a path, a folder, a pattern such as 'target/*.parquet', or a list of them."
            raise InvalidTypeError(f"{short(repr(path))} is not the name of a file", advice=advice)
        files += _files(os.path.expanduser(path), format)
    if not files:
        raise InvalidValueError("paths is an empty list", advice="Give at least one file, folder or pattern.")
    kinds = {format or _kind(file) for file in files}
    if len(kinds) > 1:
        advice = "Give files of one kind, by a pattern such as 'target/*.parquet'."
        raise InvalidValueError(f"there are files of more than one kind: {choices(sorted(kinds))}", advice=advice)
    ((twice, count),) = Counter(file.absolute() for file in files).most_common(1)
    if count > 1:
        raise InvalidValueError(f"{shown(twice)} is named more than once", advice="Name each file once.")
    for file in files:
        _check(file)
    return files, kinds.pop()


def _files(path: str, format: str | None) -> list[Path]:
    """Return the files of one path; those of a pattern or a folder are sorted by name."""
    if has_magic(path) and not os.path.lexists(path):
        found = [file for match in sorted(glob(path, recursive=True)) for file in _files(match, format)]
        if not found:
            advice = "Check the folder and the pattern: * stands for any part of a name, ** for any folders."
            raise MissingFileError(f"no file matches {shown(path)}", advice=advice)
        return found
    folder = Path(path)
    if not _is_folder(folder) or _is_store(folder):
        return [folder]
    inside = sorted(file for file in folder.iterdir() if not file.name.startswith((".", "_")))
    known = [file for file in inside if _is_store(file) or (_extension(file) and not file.is_dir())]
    # A format that is given says what files without an extension are, unless others have the extension.
    chosen = [file for file in known if format in (None, _kind(file))] or (inside if format else [])
    if not chosen:
        advice = "Check the name, or say what the files are with `format`."
        raise MissingFileError(f"the folder {shown(path)} has no file with {_BY_EXTENSION}", advice=advice)
    return chosen


def _kind(file: Path) -> str:
    extension = "zarr" if _is_store(file) else _extension(file)
    if extension is None:
        raise InvalidValueError(f"{shown(file)} has not {_BY_EXTENSION}", advice="Say what it is with `format`.")
    return EXTENSIONS.get(extension, "zarr")


def _extension(file: Path) -> str | None:
    return next((known for known in EXTENSIONS if file.name.lower().endswith(known)), None)


def _is_folder(path: Path) -> bool:
    # A name with a null character is not valid; opening it raises the error.
    with suppress(OSError, ValueError):
        return path.is_dir()
    return False


def _is_store(folder: Path) -> bool:
    return _is_folder(folder) and any((folder / mark).is_file() for mark in _ZARR_MARKS)


def _check(file: Path) -> None:
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
    """One file. It knows the columns and what each of them holds; `beside` names vectors beside a matrix.

    `index` is the column or vector with the names of rows, if the format tells.
    """

    path: Path
    kind: str
    dialect: Any = None
    variable: str | None = None
    n_rows: int | None = None
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    index: str | None = None
    beside: tuple[str, ...] = ()
    has_names: bool = True

    def __post_init__(self) -> None:
        """Look at the file: names, kinds, number of rows. Subclasses have this method."""
        raise NotImplementedError

    def stamp(self) -> tuple[int, int]:
        """Return what changes when the file does."""
        found = self.path.stat() if self.path.is_file() else None
        return (0, 0) if found is None else (found.st_size, found.st_mtime_ns)

    def batches(self, features: Sequence[int], words: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Read record batches of Arrow, whose columns are named by their positions in the file."""
        raise NotImplementedError

    def parts(
        self, features: Sequence[int], words: Sequence[str], n_rows: int
    ) -> Iterator[tuple[Rows, dict[str, Words]]]:
        """Read rows, with the words of some columns."""
        at = {name: str(self.names.index(name)) for name in words}
        for batch in self.batches(features, words, n_rows):
            found = []
            for place in features:
                try:
                    found.append(column_numbers(batch.column(str(place))))
                except ValueError as error:
                    unusable(self.path, f"column {self.names[place]!r}: {error}", "Leave it out with `exclude`.")
            said = {name: _arrow_words(batch.column(column)) for name, column in at.items()}
            yield joined_columns(found, batch.num_rows), said


def _arrow_words(column: Any) -> Words:
    """Convert a column to words; equal ones share one string."""
    import pyarrow as pa

    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    known = as_words([*encoded.dictionary.to_pylist(), None])
    return known[encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]


def as_words(values: Any) -> Words:
    """Return values as words: missing ones are empty, 3.0 is 3."""
    words = np.empty(len(values), dtype=object)
    words[:] = [word(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
    return words
