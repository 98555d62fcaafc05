"""Write files and tables completely or not at all, and show progress."""

from __future__ import annotations

import errno
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np

from standout._arrays import in_order
from standout._messages import FileError, InvalidValueError, MissingFileError, require_extra, short, shown

# The name of a draft contains the name of the final file, shortened if it has more than this number of characters.
LONGEST_NAME = 60

Item = TypeVar("Item")


@contextmanager
def whole_file(path: Path, *, replace: bool = True) -> Iterator[Path]:
    """Yield the path of a draft, which gets its final name when it is complete. After an error the draft is removed.

    A device or a pipe, such as /dev/stdout, is written to directly. If the path is a link, the link is kept, and the
    file behind the link is replaced.

    Parameters
    ----------
    path : Path
    replace : bool, default=True
        Whether an existing file is replaced. If False, and a file with this path has appeared meanwhile, the new file
        gets another name in the same folder, and an error is raised with the other name.
    """
    try:
        if path.exists() and not path.is_file():
            with ExitStack() as stack:
                if path.is_fifo():
                    # Opening a pipe that no program reads would wait for ever. Without blocking, it raises an error.
                    stack.callback(os.close, os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                yield path
            return
        # The draft is in the same folder as the final file, so that the last step is an atomic rename.
        final = Path(os.path.realpath(path))
        for dead in dead_drafts(final):
            # `rmdir` removes only empty folders. A folder with files is kept, because it can hold an earlier result.
            with suppress(OSError):
                dead.rmdir() if dead.is_dir() else dead.unlink()
        with locked_draft(final, Path.touch) as draft:
            yield draft
            if replace:
                os.replace(draft, final)
            else:
                put_beside_if_taken(draft, final)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
        reason = "no program reads this pipe" if error.errno == errno.ENXIO else error.strerror or str(error)
        raise kind(f"{shown(path)} cannot be written: {reason}", advice="Choose another name or folder.") from error


def write_whole(path: Path, content: bytes | memoryview, *, replace: bool = True) -> None:
    """Write a file that appears under its name once it is complete."""
    with whole_file(path, replace=replace) as place, place.open("wb") as file:
        file.write(content)


def put_beside_if_taken(draft: Path, final: Path) -> None:
    """Move a finished draft to its final name, without replacing another file.

    If a file with the final name has appeared meanwhile, the draft gets the first free name in the same folder, and an
    error is raised with the free name. Neither the draft nor the other file is lost.
    """
    # The number is put before all extensions: scores-2.csv.gz.
    stem = re.sub(r"(?<!^)(\.[A-Za-z0-9]{1,8}){1,2}$", "", final.name)
    for number in count(1):
        place = final if number == 1 else final.with_name(f"{stem}-{number}{final.name[len(stem) :]}")
        try:
            # Unlike a rename, a link fails if the name is taken.
            os.link(draft, place)
        except OSError:
            if place.exists():
                continue
            # Rename instead: folders cannot be linked, and some file systems have no links.
            os.rename(draft, place)
        if number > 1:
            advice = f"The finished result is in {shown(place)}."
            raise FileError(f"{shown(final)} appeared meanwhile, and is not replaced", advice=advice)
        return


# --- drafts ----------------------------------------------------------------------------------------------------------
#
# A draft of NAME is called .NAME.xxxxxxxx.part. The process that writes it holds a lock on it. The system releases the
# lock at any end of the process, so a draft without a lock is abandoned.


def draft_name(final: Path) -> Path:
    """Return a new name for a draft beside the final file. A long name is shortened and gets a checksum."""
    name = final.name
    name = name if len(name) <= LONGEST_NAME else f"{name[:40]}~{zlib.crc32(os.fsencode(name)):08x}"
    return final.parent / f".{name}.{uuid4().hex[:8]}.part"


@contextmanager
def locked_draft(final: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """Make a draft, hold its lock, and remove it at the end unless it has been moved."""
    with ExitStack() as stack:
        # Another process may remove a draft before it is locked, so try again. Some file systems have no locks, so stop
        # after three attempts.
        for _ in range(3):
            draft = draft_name(final)
            stack.callback(remove, draft)
            make(draft)
            if stack.enter_context(locked(draft)) and draft.exists():
                break
        yield draft


def dead_drafts(final: Path) -> Iterator[Path]:
    """Yield the drafts of a file that killed processes have left. Each is locked while the caller handles it."""
    begin = draft_name(final).name.removesuffix(".part")[:-8]
    pattern = re.compile(re.escape(begin) + "[0-9a-f]{8}[.]part")
    found: list[Path] = []
    with suppress(OSError):
        found += [path for path in final.parent.iterdir() if pattern.fullmatch(path.name)]
    for draft in found:
        with locked(draft) as held:
            if held:
                yield draft


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Lock a file or folder if possible; yield whether this succeeded. It fails if another process has the lock."""
    with ExitStack() as stack:
        held = False
        # Windows has no locks on folders: there, drafts of killed processes stay.
        with suppress(ImportError, OSError):
            from fcntl import LOCK_EX, LOCK_NB, flock

            # Do not block: a pipe may have the name of a draft.
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            stack.callback(os.close, handle)
            flock(handle, LOCK_EX | LOCK_NB)
            held = True
        yield held


def remove(path: Path) -> None:
    """Remove a file or a folder if it exists and can be removed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


# --- tables -----------------------------------------------------------------------------------------------------------

# Spreadsheets read text that starts with one of these characters as a formula. The last four are in full width.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_csv(
    path: str | os.PathLike[str],
    columns: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    *,
    spreadsheet: bool = False,
    replace: bool = True,
) -> None:
    """How are columns written to a file that spreadsheets and other programs read?

    Parameters
    ----------
    path : str or path
        The file. A name that ends in ``.parquet`` makes a Parquet file, ``.tsv`` a file with tabs, and other names a
        CSV file. A name that ends in ``.gz`` makes a compressed file.
    columns : mapping of str to array-like, or iterable of such mappings
        Columns of equal length, by name. In an iterable, each mapping is a block of rows. All blocks have the same
        columns.
    spreadsheet : bool, default=False
        Put an apostrophe before words and names that a spreadsheet would run as formulas. Numbers are never changed.
    replace : bool, default=True
        Whether an existing file is replaced. If False and the file exists, the new file gets another name, and an error
        is raised with this other name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from standout.io import write_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "scores.csv")
    ...     write_csv(file, {"id": ["A", "=B"], "score": [0.5, 1.25]}, spreadsheet=True)
    ...     text = file.read_text()
    >>> print(text.strip())
    "id","score"
    "A",0.5
    "'=B",1.25
    """
    require_extra("pyarrow", "files", "writing tables")
    import pyarrow as pa
    from pyarrow import csv, parquet

    tables = (_as_table(part, spreadsheet) for part in ([columns] if isinstance(columns, Mapping) else columns))
    first, final = next(tables), Path(path).expanduser()
    suffixes = {suffix.lower() for suffix in final.suffixes[-2:]}
    every = (table.cast(first.schema) for table in chain([first], tables))
    # Python opens the file, not Arrow. Python accepts file names that are not valid text, and its error messages are
    # short.
    with (
        whole_file(final, replace=replace) as place,
        place.open("wb") as file,
        pa.CompressedOutputStream(file, "gzip") if ".gz" in suffixes else pa.PythonFile(file, "w") as stream,
    ):
        if suffixes & {".parquet", ".pq"}:
            with parquet.ParquetWriter(stream, first.schema) as writer:
                for table in every:
                    writer.write_table(table)
            return
        delimiter = "\t" if suffixes & {".tsv", ".tab"} else ","

        def text_of(numbered: tuple[int, Any]) -> Any:
            # Only the first table has a line with the names of the columns.
            part, header = pa.BufferOutputStream(), numbered[0] == 0
            options = csv.WriteOptions(include_header=header, delimiter=delimiter, batch_size=2**14)
            csv.write_csv(numbered[1], part, options)
            return part.getvalue()

        with closing(in_order(text_of, enumerate(every))) as texts:
            for text in texts:
                stream.write(text)


def _as_table(columns: Mapping[str, Any], spreadsheet: bool) -> Any:
    """Return columns of one length as a table of Arrow."""
    import pyarrow as pa

    if not columns:
        raise InvalidValueError("there are no columns to write", advice="Give at least one.")
    arrays = {str(name): np.asarray(column) for name, column in columns.items()}
    limit = len(next(iter(arrays.values())))
    for name, array in arrays.items():
        if array.shape != (limit,):
            problem = f"column {short(name)!r} has shape {array.shape}, but the first column has {limit} values"
            raise InvalidValueError(problem, advice="Give columns of one length.")
    if spreadsheet:
        arrays = {
            _safe(name): array if array.dtype.kind in "biuf" else np.array(list(map(_safe, array.tolist())), object)
            for name, array in arrays.items()
        }
    made = {}
    for name, array in arrays.items():
        try:
            made[name] = pa.array(array)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # Values of mixed types become text.
            made[name] = pa.array(list(map(str, array.tolist())))
    return pa.table(made)


def _safe(value: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would read as a formula, even after leading spaces."""
    formula = isinstance(value, str) and (value.startswith(FORMULAS) or value.lstrip().startswith(FORMULAS))
    return f"'{value}" if formula else value


# --- progress --------------------------------------------------------------------------------------------------------

# A function of a description, the amount done and the total. The command line sets it to show progress in its own way.
Receiver: TypeAlias = Callable[[str, float, float], None]
_receivers: list[Receiver] = []


@contextmanager
def progress_to(receiver: Receiver) -> Iterator[None]:
    """Send the progress of everything within this block to a function, also if no bar was asked for."""
    _receivers.append(receiver)
    try:
        yield
    finally:
        _receivers.remove(receiver)


@contextmanager
def progress_bar(description: str, total: int, *, shown: bool = True) -> Iterator[Callable[[int], object]]:
    """Show progress on standard error; yield the function that moves the bar."""
    if _receivers:
        done = 0

        def advance(step: int) -> None:
            nonlocal done
            done += step
            _receivers[-1](description, done, total)

        advance(0)
        yield advance
        # The work can end before its expected amount is done.
        _receivers[-1](description, done, done)
    elif shown:
        require_extra("rich", "progress", "a progress bar")
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            yield partial(bar.advance, bar.add_task(escape(description), total=total))
    else:
        yield lambda _: None


def tracked(items: Iterable[Item], total: int, description: str, shown: bool = False) -> Iterator[Item]:
    """Yield the items. If `shown`, a bar shows the number of items so far."""
    with progress_bar(description, total, shown=shown) as advance:
        for item in items:
            yield item
            advance(1)
