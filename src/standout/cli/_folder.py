"""Write a result completely or not at all, and replace an earlier result only with --overwrite.

A result is written into a draft beside the final folder, and renamed in one step at the end. If something else got the
final name meanwhile, the result gets another name, and the error message shows this name. With --overwrite, an earlier
result is first moved into the draft, and removed together with the draft. If a process is killed, its draft remains.
The next command for the same folder restores the earlier result from this draft, and removes the draft.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import click

from standout import _writing as w
from standout.cli._display import SIGNALS
from standout.cli._options import refuse

# MARK is the file that marks a folder of results. Folders with other content are never replaced. EARLIER is the name of
# an earlier result in a draft.
MARK, EARLIER = "summary.json", "earlier"
OURS = (MARK, "columns.csv", "figure.png", "images.npy", "images.png", "model.skops", "report.html", "scores.csv")


# --- checks before any work -------------------------------------------------------------------------------------------


def check_output_folder(path: str, overwrite: bool) -> Path:
    """Refuse a place that cannot be written to or must not be replaced; clean up after a killed process."""
    final = _expanded(path)
    # Use the resolved path: a link to a folder then stays a link, and a path such as ``..`` gets a name.
    place = final.resolve()
    recover(place)
    refuse((final.exists() and not final.is_dir(), f"{path!r} is a file. Name a folder that does not exist yet."))
    _check_parent(place)
    if final.exists():
        refuse((Path.cwd().is_relative_to(place), f"{path!r} is the current folder. Name another one."))
        problem = _other_content(place)
        if problem is None and any(place.iterdir()) and not overwrite:
            problem = "already exists. Add --overwrite to replace it, or name another"
        refuse((problem, f"the folder {path!r} {problem}."))
    return final


def check_output_file(path: str, overwrite: bool, inputs: Sequence[str] = ()) -> Path:
    """Refuse a file that cannot be written to or must not be replaced."""
    final = _expanded(path)
    refuse((final.is_dir(), f"{path!r} is a folder. Name a file."))
    if not is_device(final):
        _check_parent(final.resolve())
        taken, advice = final.exists(), "Add --overwrite to replace it, or name another."
        used = taken and any(os.path.exists(place) and final.samefile(place) for place in map(_expanded, inputs))
        refuse(
            (taken and not overwrite, f"the file {path!r} already exists. {advice}"),
            (used, f"{path!r} is also an input file. Name another file."),
        )
    return final


def is_device(path: Path) -> bool:
    """Return whether a path exists and is not a regular file but, for example, a terminal, a pipe or a folder."""
    return path.exists() and not path.is_file()


def is_result(folder: Path) -> bool:
    """Return whether a folder holds a result of standout fit."""
    # Check for a regular file first: reading a pipe would wait for ever.
    with suppress(OSError, ValueError, TypeError):
        return (folder / MARK).is_file() and "standout" in json.loads((folder / MARK).read_text(encoding="utf-8"))
    return False


def _other_content(place: Path) -> str | None:
    """Return a description of content that is not an earlier result, or None if there is no such content."""
    content = sorted(place.iterdir())
    if content and not is_result(place):
        return "holds something else than an earlier result. Name another folder"
    others = [entry.name for entry in content if entry.name not in OURS or not entry.is_file()]
    if others:
        return f"also holds {others[0]!r}, which standout did not write. Move it away, or name another folder"
    return None


def _expanded(path: str) -> Path:
    refuse((not path.strip(), "the name of the output is empty. Give one."))
    return Path(os.path.expanduser(path))


def _check_parent(place: Path) -> None:
    """Make and remove a trial folder beside the place. Permissions do not show full disks, or the rights of root."""
    parent = place.parent
    refuse(
        (not place.name, f"{str(place)!r} is the root of all folders. Name another place."),
        (not parent.is_dir(), f"there is no folder {str(parent)!r} to write to. Create it first."),
    )
    try:
        trial = w.draft_name(place)
        trial.mkdir()
        trial.rmdir()
        # Test the final name, too: unlike the short name of the trial, it may be too long for the system.
        with suppress(FileNotFoundError):
            place.lstat()
    except OSError as error:
        raise click.UsageError(f"{str(place)!r} cannot be written: {error.strerror}. Name another place.") from None


# --- writing ----------------------------------------------------------------------------------------------------------


@contextmanager
def folder_as_a_whole(final: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a draft folder to write into, and move it to its final place when it is complete."""
    place = final.resolve()
    with ExitStack() as stack:
        try:
            draft = stack.enter_context(w.locked_draft(place, Path.mkdir))
            made, earlier = draft / "made", draft / EARLIER
            try:
                made.mkdir()
                yield made
            except OSError as error:
                # Rephrase only errors of writing. They name a file of the draft, or no file if it was already open.
                if draft.name not in f"{error.filename or draft.name}{getattr(error, 'problem', '')}":
                    raise
                reason = error.strerror or getattr(error, "problem", "").rpartition(": ")[2] or str(error)
                raise click.ClickException(f"{str(final)!r} cannot be written: {reason}. Name another place.") from None
            with SIGNALS.held_back():
                try:
                    if overwrite:
                        _set_aside(place, earlier)
                    with suppress(OSError):
                        # An empty folder may be at the place. `rmdir` removes only an empty folder.
                        place.rmdir()
                    w.put_beside_if_taken(made, place)
                finally:
                    _restore(earlier, place)
        finally:
            with SIGNALS.held_back():
                stack.close()


def _set_aside(place: Path, earlier: Path) -> None:
    """Move an earlier result away from its place; anything else stays."""
    with suppress(FileNotFoundError):
        place.rename(earlier)
        # The content may have changed since the first check. If it is not a result, move it back.
        if not earlier.is_dir() or _other_content(earlier) is not None:
            earlier.rename(place)


def _restore(earlier: Path, place: Path) -> None:
    """Move an earlier result back if its place is free. Otherwise rename it, so that it is removed with the draft."""
    with suppress(OSError):
        earlier.rename(earlier.with_name("replaced") if place.exists() else place)


def recover(final: Path) -> None:
    """Clean up after killed processes: restore an earlier result that was moved aside, and remove drafts."""
    place = final.resolve()
    for draft in w.dead_drafts(place):
        earlier = draft / EARLIER
        with SIGNALS.held_back():
            # If `place` exists, and `earlier` exists but is not a result of standout, leave the draft as it is.
            # `earlier` may hold files of the user, and only the user may remove them.
            if not (earlier.exists() and place.exists()) or is_result(earlier):
                _restore(earlier, place)
                if not earlier.exists():
                    w.remove(draft)
