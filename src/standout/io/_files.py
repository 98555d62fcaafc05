"""From paths that users name (files, folders, patterns) to the files that are meant, and the kind of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from standout._messages import FileError, InvalidTypeError, InvalidValueError, MissingFileError, choices, short, shown

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
    if format is not None and format not in FORMATS:
        advice = f"Use one of {choices(FORMATS)}."
        raise InvalidValueError("is unknown", parameter="format", value=format, advice=advice)
    several = list(paths) if isinstance(paths, list | tuple) else [paths]
    if not several:
        raise InvalidValueError("paths is an empty list", advice="Give at least one file, folder or pattern.")
    files: list[Path] = []
    for path in several:
        if not isinstance(path, str | os.PathLike) or not str(path):
            advice = "Give a path, a folder, a pattern such as 'target/*.parquet', or a list of them."
            raise InvalidTypeError(f"{short(repr(path))} is not the name of a file", advice=advice)
        files += _files(os.path.expanduser(path), format)
    kinds = {format or _kind(file) for file in files}
    if len(kinds) > 1:
        advice = "Give files of one kind, by a pattern such as 'target/*.parquet'."
        raise InvalidValueError(f"there are files of more than one kind: {choices(sorted(kinds))}", advice=advice)
    places = [file.absolute() for file in files]
    twice = [file for file in places if places.count(file) > 1] if len(set(places)) < len(places) else []
    if twice:
        raise InvalidValueError(f"{shown(twice[0])} is named more than once", advice="Name each file once.")
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
    advice = "Check the name, and the right to read it."
    try:
        if file.exists() and not file.is_file():
            raise FileError(f"{shown(file)} is a folder, a device or a pipe, not a file", advice="Give a file.")
        with file.open("rb") as opened:
            empty = not opened.read(1)
    except FileError:
        raise
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise kind(f"{shown(file)} cannot be opened: {reason}", advice=advice) from None
    if empty:
        unusable(file, "it is empty", "Give a file with data.")


def stamp(path: Path) -> tuple[int, int]:
    """Return what changes when a file does."""
    found = path.stat()
    return (found.st_size, found.st_mtime_ns) if path.is_file() else (0, 0)
