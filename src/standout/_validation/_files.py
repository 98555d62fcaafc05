"""Files of data: absent, damaged, or not what they should be; and downloads that fail."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from standout._validation._words import listed


@dataclass(frozen=True)
class ArrayForm:
    """What an array in a file must look like.

    Attributes
    ----------
    kind : {"uint8", "integer", "floating", "bool", "text"}
        Type of the values.
    shape : tuple of int or None
        None stands for the number of rows, which all arrays of a file share.
    limits : tuple of two ints or None
        Least and largest value.
    optional : bool
        Whether the file may come without it.
    """

    kind: str
    shape: tuple[int | None, ...]
    limits: tuple[int, int] | None = None
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.kind} of shape {_shape_in_words(self.shape)}"


_TYPES: dict[str, Any] = {
    "uint8": np.uint8,
    "integer": np.integer,
    "floating": np.floating,
    "bool": np.bool_,
    "text": np.str_,
}


def as_folder(data_dir: Any) -> Path:
    """Check the name of a folder, which need not exist."""
    if not isinstance(data_dir, str | os.PathLike) or not str(data_dir):
        raise TypeError(f"data_dir={data_dir!r} is not the name of a folder. Give a path, or None.")
    return Path(data_dir).expanduser()


def reject_missing(name: str, places: Sequence[str], remedy: str) -> NoReturn:
    """Say that a file is nowhere, where it was looked for, and how to get it."""
    raise FileNotFoundError(f"there is no {name} in {' or '.join(places)}. {remedy}")


def reject_damaged(file: str, what: str, remedy: str) -> NoReturn:
    """Say what is wrong with a file."""
    raise ValueError(f"{file} cannot be used: {what}. {remedy}")


def check_arrays(
    arrays: Mapping[str, npt.NDArray[Any]], forms: Mapping[str, ArrayForm], most_rows: int, file: str, remedy: str
) -> None:
    """Check the arrays of a file against their forms; fewer rows than the most are a subset, and welcome."""
    rows: tuple[str, int] | None = None
    for name, form in forms.items():
        if name not in arrays and form.optional:
            continue
        if name not in arrays:
            found = listed("array", arrays) if arrays else "no arrays"
            reject_damaged(file, f"the array {name!r} ({form}) is missing, and it has {found}", remedy)
        problem = _array_problem(arrays[name], form)
        if problem is None and None in form.shape:
            n_rows = arrays[name].shape[0]
            rows = rows or (name, n_rows)
            if n_rows != rows[1]:
                problem = f"has {n_rows} rows, but {rows[0]!r} has {rows[1]}"
        if problem is not None:
            reject_damaged(file, f"the array {name!r} {problem}", remedy)
    if rows is not None:
        check_n_rows(rows[1], most_rows, file, remedy)


def check_n_rows(n_rows: int, most_rows: int, file: str, remedy: str) -> None:
    """Check that there are rows, and no more than the dataset has."""
    if not 1 <= n_rows <= most_rows:
        reject_damaged(file, f"it has {n_rows} rows, but 1 to {most_rows} are expected", remedy)


def check_header(header: Sequence[str], columns: Sequence[str], file: str, remedy: str) -> None:
    """Check that a table has these columns, in any order, each once."""
    if len(set(header)) < len(header):
        twice = [name for name in dict.fromkeys(header) if header.count(name) > 1]
        reject_damaged(file, f"it has {listed('column', twice)} more than once", remedy)
    found, expected = set(header), set(columns)
    missing = [name for name in columns if name not in found]
    if missing:
        reject_damaged(file, f"it lacks {listed('column', missing)} of {len(columns)}", remedy)
    extra = [name for name in header if name not in expected]
    if extra:
        reject_damaged(file, f"it has {listed('column', extra)} beside the {len(columns)} expected", remedy)


def check_words(words: Sequence[str], known: Sequence[str], column: str, file: str, remedy: str) -> None:
    """Check that a column of a table has no other words than these."""
    unknown = sorted(set(words) - set(known))
    if unknown:
        what = f"the column {column!r} has {listed('value', unknown)}, but only {', '.join(known)} are expected"
        reject_damaged(file, what, remedy)


def reject_download(source: str, reason: str, remedy: str) -> NoReturn:
    """Say that a download came to nothing."""
    raise OSError(f"nothing could be fetched from {source}: {reason}. {remedy}")


def reject_folder(folder: Path, reason: str) -> NoReturn:
    """Say that downloads cannot be kept in a folder."""
    raise OSError(f"the folder {folder} cannot be written to ({reason}). Give another one as data_dir.")


def check_arrived(found: Any, expected: Any, what: str, source: str, remedy: str) -> None:
    """Check one property of what a download brought."""
    if found != expected:
        raise ValueError(f"what arrived from {source} has {what} {found}, but {expected} is expected. {remedy}")


def _array_problem(array: npt.NDArray[Any], form: ArrayForm) -> str | None:
    """Say in which way an array is not of its form."""
    if not np.issubdtype(array.dtype, _TYPES[form.kind]):
        return f"has values of type {array.dtype}, but {form} is expected"
    if len(array.shape) != len(form.shape) or any(
        size not in (None, found) for size, found in zip(form.shape, array.shape, strict=True)
    ):
        return f"has shape {array.shape}, but {form} is expected"
    if form.limits is not None and array.size:
        least, most = form.limits
        if array.min() < least or array.max() > most:
            return f"has values from {array.min()} to {array.max()}, but {least} to {most} are expected"
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return "has NaN or infinity, but only finite numbers are expected"
    return None


def _shape_in_words(shape: tuple[int | None, ...]) -> str:
    sizes = ", ".join("n" if size is None else str(size) for size in shape)
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"
