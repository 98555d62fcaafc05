"""From what the user names (files, folders, patterns) to the files that are meant, and how each is read."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from standout._checks import check_choice
from standout._messages import FileError, InvalidTypeError, InvalidValueError, MissingFileError, listed, short, shown
from standout.io._arrow import IpcReader, ParquetReader
from standout.io._hdf5 import H5adReader, ZarrReader
from standout.io._matlab import MatReader
from standout.io._numpy import NpyReader, NpzReader
from standout.io._reader import Reader, unusable
from standout.io._text import CsvReader, TsvReader

READERS: dict[str, type[Reader]] = {
    "csv": CsvReader,
    "tsv": TsvReader,
    "parquet": ParquetReader,
    "arrow": IpcReader,
    "feather": IpcReader,
    "npy": NpyReader,
    "npz": NpzReader,
    "mat": MatReader,
    "h5ad": H5adReader,
    "zarr": ZarrReader,
}
EXTENSIONS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".txt": "csv",
    ".txt.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "feather",
    ".npy": "npy",
    ".npz": "npz",
    ".mat": "mat",
    ".h5ad": "h5ad",
    ".zarr": "zarr",
}
# What a folder has in it if it is a Zarr store.
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")
# Bytes at the start and at the end of a file whose checksum is part of its stamp.
STAMPED_BYTES = 2**16


def find_readers(paths: Any, format: str | None, variable: str | None) -> list[Reader]:
    """Find the files that are meant, in order, all of one kind, each with its reader."""
    if format is not None:
        check_choice(format, "format", READERS)
    files = [file for path in _as_paths(paths) for file in _files(path, format)]
    twice = [file for file, count in Counter(file.absolute() for file in files).items() if count > 1]
    if twice:
        raise InvalidValueError(
            "{files} is named more than once, and would be counted so",
            files=listed("file", map(str, twice)),
            advice="Name each one once.",
        )
    kinds = [format or _kind(file) for file in files]
    if len(set(kinds)) > 1:
        raise InvalidValueError(
            "there are files of more than one kind: {kinds}",
            kinds=listed("kind", sorted(set(kinds))),
            advice="Give files of one kind, by a pattern such as 'target/*.parquet'.",
        )
    reader = READERS[kinds[0]]
    if variable is not None and not reader.takes_variable:
        problem, advice = (
            "is given, but a {kind} file holds one table only",
            "Leave it out: it is for npz, mat, h5ad, zarr.",
        )
        raise InvalidValueError(problem, parameter="variable", value=variable, kind=kinds[0], advice=advice)
    return [reader(_checked(file), str(file), variable) for file in files]


def _as_paths(paths: Any) -> list[str]:
    several = list(paths) if isinstance(paths, list | tuple) else [paths]
    if not several:
        raise InvalidValueError("paths is an empty list", advice="Give at least one file, folder or pattern.")
    for path in several:
        if not isinstance(path, str | os.PathLike) or not str(path):
            raise InvalidTypeError(
                "{path} is not the name of a file",
                path=short(repr(path)),
                advice="Give a path, a folder, a pattern such as 'target/*.parquet', or a list of them.",
            )
    return [os.path.expanduser(path) for path in several]


def _files(path: str, format: str | None) -> Sequence[Path]:
    """Give the files that one path stands for; those of a pattern or a folder are sorted by name."""
    if has_magic(path) and not os.path.lexists(path):
        found = sorted(glob(path, recursive=True))
        if not found:
            raise MissingFileError(
                "no file matches {pattern}",
                pattern=shown(path),
                advice="Check the folder and the pattern: * stands for any part of a name, ** for any folders.",
            )
        return [file for match in found for file in _files(match, format)]
    folder = Path(path)
    if not _is_folder(folder) or _is_store(folder):
        return [folder]
    inside = sorted(file for file in folder.iterdir() if not file.name.startswith((".", "_")))
    known = [file for file in inside if _is_store(file) or (_extension(file) and not file.is_dir())]
    # A format that is given says what files without an extension are, unless others have that of the format.
    chosen = [file for file in known if format in (None, _kind(file))] or (inside if format else [])
    if not chosen:
        raise MissingFileError(
            "the folder {folder} has no file with an extension that is known ({known})",
            folder=shown(path),
            known=", ".join(EXTENSIONS),
            advice="Check the name, or say what the files are with {p.format}.",
        )
    return chosen


def _kind(file: Path) -> str:
    extension = _extension(file)
    if _is_store(file):
        return "zarr"
    if extension is None:
        problem, advice = "{file} has no extension that is known ({known})", "Say what the file is with {p.format}."
        raise InvalidValueError(problem, file=shown(file), known=", ".join(EXTENSIONS), advice=advice)
    return EXTENSIONS[extension]


def _extension(file: Path) -> str | None:
    name = file.name.lower()
    return next((known for known in EXTENSIONS if name.endswith(known)), None)


def _is_folder(path: Path) -> bool:
    # A name with a null character is not valid; opening it raises the error.
    with suppress(OSError, ValueError):
        return path.is_dir()
    return False


def _is_store(folder: Path) -> bool:
    return _is_folder(folder) and any((folder / mark).is_file() for mark in _ZARR_MARKS)


def _checked(file: Path) -> Path:
    """Check that a path names a file that can be read and holds something."""
    if _is_store(file):
        return file
    try:
        if file.exists() and not file.is_file():
            advice = "Give a file, or save the data to one first."
            raise FileError("{file} is a folder, a device or a pipe, not a file", file=shown(file), advice=advice)
        with file.open("rb") as opened:
            empty = not opened.read(1)
    except FileError:
        raise
    except (OSError, ValueError) as error:
        # A name with a null character is a ValueError.
        expected = (MissingFileError, FileNotFoundError), (FileError, OSError), (InvalidValueError, ValueError)
        kind = next(ours for ours, theirs in expected if isinstance(error, theirs))
        reason = str(getattr(error, "strerror", None) or error).lower()
        advice = "Check the name, and the right to read it."
        raise kind("{file} cannot be opened: {reason}", file=shown(file), reason=reason, advice=advice) from None
    if empty:
        unusable(file, "it is empty", "Give a file with data.")
    return file


def stamp(path: Path) -> tuple[int, ...]:
    """Give what changes when a file does: size, times, and a checksum of its start and end.

    Programs can set the time of the last change back, but not the time at which the system has last touched the entry.
    For a folder: the size, the newest time, and a checksum of the names, sizes and times of all files in it.
    """
    if not path.is_dir():
        found = path.stat()
        with path.open("rb") as opened:
            checksum = zlib.crc32(opened.read(STAMPED_BYTES))
            opened.seek(max(found.st_size - STAMPED_BYTES, 0))
            checksum = zlib.crc32(opened.read(STAMPED_BYTES), checksum)
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, checksum
    inside = sorted(
        (
            os.path.join(folder, name),
            (found := os.stat(os.path.join(folder, name))).st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
        )
        for folder, _, names in os.walk(path)
        for name in names
    )
    checksum = zlib.crc32(repr([(os.path.relpath(name, path), *about) for name, *about in inside]).encode())
    return sum(size for _, size, *_ in inside), max((time for *_, time in inside), default=0), checksum


@contextmanager
def readable(reader: Reader) -> Iterator[Reader]:
    """Give a reader whose path every library can open: Arrow takes names in UTF-8 only."""
    try:
        str(reader.path).encode()
    except UnicodeEncodeError:
        if not reader.path.is_dir():
            with reader.path.open("rb") as opened:
                yield type(reader)(Path(f"/dev/fd/{opened.fileno()}"), reader.source, reader.variable)
            return
    yield reader
