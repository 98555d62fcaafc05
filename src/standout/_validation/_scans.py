"""Sets of files that are read in parts: which files, how many rows at a time, and where a pass is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from standout._validation._numbers import check_whole
from standout._validation._tables import in_short, short, shown
from standout._validation._warnings import warn_user


def check_scan_paths(paths: Any) -> list[str]:
    """Check that there is a path, or a list of paths, and give a list."""
    several = list(paths) if isinstance(paths, list | tuple) else [paths]
    if not several:
        raise ValueError("paths is an empty list. Give at least one file, folder or pattern.")
    for path in several:
        if not isinstance(path, str | os.PathLike) or not str(path):
            raise TypeError(
                f"paths has {short(repr(path))}, which is not the name of a file. "
                "Give a path, a folder, a pattern such as 'target/*.parquet', or a list of them."
            )
    return [os.path.expanduser(path) for path in several]


def reject_unmatched(pattern: str) -> NoReturn:
    """Say that a pattern stands for no file."""
    raise FileNotFoundError(
        f"no file matches {shown(pattern)}. Check the folder and the pattern: * stands for any part of a name, "
        "** for any folders."
    )


def reject_empty_folder(folder: str, known: Sequence[str]) -> NoReturn:
    """Say that a folder has no file that can be read."""
    raise FileNotFoundError(
        f"the folder {shown(folder)} has no file with an extension that is known ({', '.join(known)}). "
        "Check the name, or say what the files are with format."
    )


def reject_unscannable(path: Any, kind: str, known: Sequence[str]) -> NoReturn:
    """Say that a kind of file cannot be read in parts."""
    raise ValueError(
        f"{shown(path)} is a file of the kind {kind!r}, which cannot be read in parts; these can: {', '.join(known)}. "
        "Read it as a whole with standout.io.read_table, or write it in another format."
    )


def check_one_kind(kinds: Mapping[str, str]) -> None:
    """Refuse a set of files of more than one kind; `kinds` has one file of each."""
    if len(kinds) > 1:
        (first, one), (second, other), *_ = kinds.items()
        raise ValueError(
            f"there are files of more than one kind: {shown(one)} is {first}, {shown(other)} is {second}. "
            "Give files of one kind, by a pattern such as 'target/*.parquet'."
        )


def check_each_once(files: Sequence[Path]) -> None:
    """Refuse a file that is named twice, whose rows would count twice."""
    seen: set[Path] = set()
    twice = [file for file in files if file in seen or seen.add(file)]  # type: ignore[func-returns-value]
    if twice:
        raise ValueError(
            f"{in_short(twice, 'file')} is in paths more than once, and would be counted so. Name each one once."
        )


def check_columns_of_file(missing: Sequence[str], extra: Sequence[str], path: Any, first: Any) -> None:
    """Refuse a file that has not the columns of the first one."""
    lacks = f" lacks {in_short(missing)} of the first file, {shown(first)}" if missing else ""
    has = f" has {in_short(extra)}, which the first file, {shown(first)}, has not" if extra else ""
    if missing or extra:
        raise ValueError(
            f"{shown(path)}{' and'.join(part for part in (lacks, has) if part)}. "
            "Give files with the same columns, in any order, or name those to take with columns."
        )


def check_width_of_file(width: int, expected: int, path: Any, first: Any) -> None:
    """Refuse a file whose columns have no names, if their number is another one."""
    if width != expected:
        raise ValueError(
            f"{shown(path)} has {width} columns, but the first file, {shown(first)}, has {expected}. "
            "Give files with the same columns."
        )


def check_batch_rows(batch_rows: Any) -> int | None:
    """Check the number of rows of a batch."""
    if batch_rows is None:
        return None
    return check_whole(batch_rows, "batch_rows", remedy="Give a number of at least 1, or None.")


def check_unchanged(now: Any, then: Any, path: Any) -> None:
    """Refuse a file that is no longer the one that was looked at."""
    if now != then:
        raise ValueError(f"{shown(path)} has changed since scan looked at it. Call scan again.")


def check_all_read(n_rows: int, expected: int | None, path: Any) -> None:
    """Refuse a file that gave fewer rows than it promised."""
    if expected is not None and n_rows != expected:
        raise ValueError(
            f"{shown(path)} cannot be used: it gave {n_rows} rows, but should have {expected}. Write the file again."
        )


def check_rows_of_scan(n_rows: int, least: int, name: str, n_files: int) -> None:
    """Refuse files that have too few rows in all."""
    if n_rows < least:
        raise ValueError(
            f"too few rows in {name}: {n_rows} sample(s) in {n_files} file(s), but the least is {least}. "
            "Give more files, or files with more rows."
        )


def as_checkpoint_folder(checkpoint: Any) -> Path | None:
    """Check the folder in which passes are kept, and make it."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, str | os.PathLike) or not str(checkpoint):
        raise TypeError(f"checkpoint={short(checkpoint)!r} is not the name of a folder. Give a path, or None.")
    folder = Path(checkpoint).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"the folder {shown(checkpoint)} for checkpoints cannot be made: {error.strerror}. Choose another one."
        ) from None
    return folder


def warn_of_damaged_checkpoint(path: Any) -> None:
    """Say that a checkpoint cannot be used, and what follows."""
    warn_user(
        f"the checkpoint {shown(path)} is damaged and is not used: its checksum does not fit. "
        "The files are read from the start."
    )


def warn_of_unwritten_checkpoint(path: Any, error: OSError) -> None:
    """Say that a pass goes on without being kept."""
    warn_user(
        f"the checkpoint {shown(path)} cannot be written: {error.strerror or error}. The pass goes on, but an "
        "interruption would lose it. Make room, or choose another folder."
    )


def warn_of_no_checkpoint(what: str) -> None:
    """Say that a pass cannot be kept at all."""
    warn_user(
        f"this pass cannot be kept in a checkpoint: {what}. It goes on without. "
        "Give a kernel by its name, or as a function of a module, and to a pipeline steps of scikit-learn without "
        "functions of your own."
    )
