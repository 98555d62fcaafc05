"""Output that is there as a whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import click

from standout.cli._signals import SIGNALS

# What tells a folder of ours from any other, which is never replaced.
MARK = "summary.json"
OURS = (
    MARK,
    "digits.png",
    "figure.png",
    "loadings.csv",
    "model.skops",
    "report.html",
    "report.json",
    "report.npz",
    "scores.csv",
)


def check_output_folder(path: str, overwrite: bool) -> Path:
    """Refuse, before any work is done, a place that cannot be written to or must not be replaced."""
    final = _expanded(path)
    place = _real(final)
    if final.is_file() or (final.exists() and not final.is_dir()):
        raise click.UsageError(f"{path!r} is a file. Name a folder that is not there yet.")
    _check_parent(place)
    if not final.exists():
        return final
    if Path.cwd().is_relative_to(place):
        raise click.UsageError(f"{path!r} is the folder that you are in. Name another one.")
    content = sorted(entry.name for entry in place.iterdir())
    if not content:
        return final
    if not overwrite:
        raise click.UsageError(f"the folder {path!r} is there already. Add --overwrite to replace it, or name another.")
    if not _is_mark(place / MARK):
        raise click.UsageError(f"the folder {path!r} holds something else than an earlier result. Name another folder.")
    others = [name for name in content if name not in OURS]
    if others:
        raise click.UsageError(
            f"the folder {path!r} also holds {others[0]!r}, which is not of standout and would be lost. Move it away, "
            "or name another folder."
        )
    return final


def check_output_file(path: str, overwrite: bool, inputs: Sequence[str] = ()) -> Path:
    """Refuse, before any work is done, a file that cannot be written to or must not be replaced."""
    final = _expanded(path)
    if final.is_dir():
        raise click.UsageError(f"{path!r} is a folder. Name a file.")
    if is_device(final):
        return final
    _check_parent(_real(final))
    if not final.exists():
        return final
    if not overwrite:
        raise click.UsageError(f"the file {path!r} is there already. Add --overwrite to replace it, or name another.")
    for given in inputs:
        with suppress(OSError):
            if final.samefile(_expanded(given)):
                raise click.UsageError(f"{path!r} is also what is read. Name another file.")
    return final


def is_result(folder: Path) -> bool:
    """Tell whether a folder holds what standout fit has written."""
    return _is_mark(folder / MARK)


@contextmanager
def folder_as_a_whole(final: Path) -> Iterator[Path]:
    """Give a folder to write into, which takes the place of `final` once everything is in it."""
    place = _real(final)
    draft, before = _aside(place, "part"), _aside(place, "old")
    try:
        with _told_of(draft, final):
            draft.mkdir()
            yield draft
            with SIGNALS.held_back():
                if place.exists():
                    place.rename(before)
                draft.rename(place)
    finally:
        with SIGNALS.held_back():
            # Whatever went wrong half-way: the old result comes back before anything is thrown away.
            if before.exists() and not place.exists():
                before.rename(place)
            shutil.rmtree(draft, ignore_errors=True)
            shutil.rmtree(before, ignore_errors=True)


@contextmanager
def files_as_a_whole(folder: Path) -> Iterator[Path]:
    """Give a folder to write into, whose files take their places in `folder` once all of them are there."""
    place = _real(folder)
    draft = place / f".{uuid4().hex[:8]}.part"
    try:
        with _told_of(draft, folder):
            draft.mkdir()
            yield draft
            with SIGNALS.held_back():
                for file in draft.iterdir():
                    file.replace(place / file.name)
    finally:
        with SIGNALS.held_back():
            shutil.rmtree(draft, ignore_errors=True)


def write_text(path: Path, words: str) -> None:
    """Write a text under another name first, so that it is never there in part."""
    # A device such as /dev/stdout is written to; a name put in its place would take the device away.
    if is_device(path):
        path.write_text(words, encoding="utf-8")
        return
    place = _real(path)
    draft = _aside(place, "part")
    try:
        with _told_of(draft, path):
            draft.write_text(words, encoding="utf-8")
            draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def _expanded(path: str) -> Path:
    if not path.strip():
        raise click.UsageError("the name of the output is empty. Give one.")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise click.UsageError(f"{path!r} cannot be found: {error} Write the path in full.") from None


def _real(path: Path) -> Path:
    """Find the place itself: a link to it stays one, and ``..`` has no name that another could be put beside."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:
        raise click.UsageError(f"{str(path)!r} cannot be a name: {error}. Check it.") from None


def is_device(path: Path) -> bool:
    """Tell whether a path is there and no file: a terminal, a pipe, a folder."""
    return path.exists() and not path.is_file()


def _aside(place: Path, kind: str) -> Path:
    """Give a name beside a place, where moving is a single step; not longer than a name may be."""
    return place.with_name(f".{place.name[:50]}.{uuid4().hex[:8]}.{kind}")


def _is_mark(path: Path) -> bool:
    try:
        return "standout" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def _check_parent(place: Path) -> None:
    """Find out by trying: rights alone do not tell, for full or read-only disks and for those who may do everything."""
    parent = place.parent
    if not place.name:
        raise click.UsageError(f"{str(place)!r} is the root of all folders. Name another place.")
    if not parent.is_dir():
        raise click.UsageError(f"there is no folder {str(parent)!r} to write to. Make it first.")
    trial = _aside(place, "part")
    try:
        trial.mkdir()
        trial.rmdir()
        # The trial's name may be shorter.
        with suppress(FileNotFoundError):
            place.lstat()
    except OSError as error:
        raise click.UsageError(f"{str(place)!r} cannot be written: {error.strerror}. Name another place.") from None


@contextmanager
def _told_of(draft: Path, final: Path) -> Iterator[None]:
    """Make an error of writing one that names the place that was asked for, not the one that was tried first."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            raise OSError(str(error).replace(str(draft), str(final))) from None
        raise OSError(f"{str(final)!r} cannot be written: {error.strerror}. Name another place.") from None
