"""From what the user names (files, folders, patterns) to the files that are meant, and how each is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path

from standout._validation import (
    check_each_once,
    check_file,
    check_format,
    check_no_variable,
    check_one_kind,
    check_scan_paths,
    reject_empty_folder,
    reject_extension,
    reject_unmatched,
    reject_unscannable,
)
from standout.io._formats import EXTENSIONS
from standout.io._pieces import Pieces
from standout.io._pieces_columnar import ArrowPieces, ParquetPieces
from standout.io._pieces_delimited import DelimitedPieces, TabbedPieces
from standout.io._pieces_matrix import H5adPieces, ZarrPieces
from standout.io._pieces_npy import NpyPieces

SCANNED: dict[str, type[Pieces]] = {
    "csv": DelimitedPieces,
    "tsv": TabbedPieces,
    "parquet": ParquetPieces,
    "arrow": ArrowPieces,
    "feather": ArrowPieces,
    "npy": NpyPieces,
    "zarr": ZarrPieces,
    "h5ad": H5adPieces,
}

# What a folder has in it if it is a Zarr store.
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")


def find_pieces(paths: object, format: str | None, variable: str | None) -> list[Pieces]:
    """Find the files that are meant, in order, all of one kind."""
    if format is not None:
        check_format(format, list(SCANNED))
    files = [file for path in check_scan_paths(paths) for file in _files(path, format)]
    check_each_once([file.absolute() for file in files])
    kinds = [format or _kind(file) for file in files]
    check_one_kind(dict(zip(kinds, map(str, files), strict=True)))
    reader = SCANNED[kinds[0]]
    if not reader.takes_variable:
        check_no_variable(variable, kinds[0])
    return [reader(_checked(file), str(file), variable) for file in files]


def stamp(path: Path) -> tuple[int, ...]:
    """Give what changes when a file does: size and time; of a folder also the number of files in it."""
    if not path.is_dir():
        found = path.stat()
        return found.st_size, found.st_mtime_ns
    inside = [Path(folder, name).stat() for folder, _, names in os.walk(path) for name in names]
    newest = max((found.st_mtime_ns for found in inside), default=0)
    return sum(found.st_size for found in inside), newest, len(inside)


def _files(path: str, format: str | None) -> Sequence[Path]:
    """Give the files that one path stands for; what a pattern or a folder brings is sorted by name."""
    if has_magic(path) and not os.path.lexists(path):
        found = sorted(glob(path, recursive=True))
        if not found:
            reject_unmatched(path)
        return [file for match in found for file in _files(match, format)]
    folder = Path(path)
    if not folder.is_dir() or _is_store(folder):
        return [folder]
    inside = sorted(file for file in folder.iterdir() if not file.name.startswith((".", "_")))
    known = [file for file in inside if _is_store(file) or EXTENSIONS.get(_extension(file) or "") in SCANNED]
    # A format that is given says what files without an extension are, unless others have that of the format.
    chosen = [file for file in known if format in (None, _kind(file))] or (inside if format else [])
    if not chosen:
        reject_empty_folder(path, _extensions())
    return chosen


def _checked(file: Path) -> Path:
    return file if _is_store(file) else check_file(file)


def _kind(file: Path) -> str:
    if _is_store(file):
        return "zarr"
    extension = _extension(file)
    if extension is None:
        reject_extension(file, _extensions())
    kind = EXTENSIONS[extension]
    if kind not in SCANNED:
        reject_unscannable(file, kind, list(SCANNED))
    return kind


def _extension(file: Path) -> str | None:
    name = file.name.lower()
    return next((known for known in EXTENSIONS if name.endswith(known)), None)


def _extensions() -> list[str]:
    return [*(extension for extension, kind in EXTENSIONS.items() if kind in SCANNED), ".zarr"]


def _is_store(folder: Path) -> bool:
    return folder.is_dir() and any((folder / mark).is_file() for mark in _ZARR_MARKS)
