"""Passes that can be interrupted: the sum so far, in a file that is there as a whole or not at all.

A file holds a checksum and, after it, arrays in NumPy's own format. It is written under another name, brought to disk,
and only then given its own: whenever the process or the machine stops, what is there is the last sum that was complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pickle import PicklingError
from typing import Any
from uuid import uuid4

import numpy as np

from standout._arrays import BLOCK_BYTES, Array
from standout._validation import warn_of_damaged_checkpoint, warn_of_no_checkpoint, warn_of_unwritten_checkpoint
from standout.io._state import flattened, key_of, restored

# Of the stored files. Sums of another version are not read.
FORMAT = 1

# Seconds between two writes: what an interruption may cost. Large sums take long to write, and are written less often,
# so that writing never takes more than this share of the time.
INTERVAL = 1.0
WRITING_SHARE = 0.05

# A draft that is so old belongs to a process that is no more.
DRAFT_SECONDS = 3600.0

_MAGIC = b"standout checkpoint\n"


@dataclass(frozen=True, eq=False)
class Reached:
    """How far a pass has come.

    Attributes
    ----------
    total : object or None
        The sum so far.
    place : tuple of two ints
        File and row with which the pass goes on.
    n_rows : int
        Rows that are in the sum.
    """

    total: Any
    place: tuple[int, int]
    n_rows: int


class Checkpoint:
    """Where one pass over files is kept. The name of the file tells what it is a sum of, so that a folder serves many.

    Parameters
    ----------
    folder : Path
    key : str
        Equal for equal passes.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.path = folder / f"{key}.checkpoint"
        self._key = key
        self._due = time.monotonic() + INTERVAL
        self._writable = True
        self._forget_drafts()

    @classmethod
    def of(cls, folder: Path, identity: list[Any], part: Any) -> Checkpoint | None:
        """Give the place of a pass over these files that sums up what `part` makes; None, with a warning, if none can.

        All that the sum depends on goes into the key: the files, what is summed, and who reads and cuts.
        """
        try:
            made = key_of(part)
        except (PicklingError, TypeError, AttributeError) as error:
            warn_of_no_checkpoint(" ".join(str(error).split()))
            return None
        packages = ("standout", "numpy", "scipy", "scikit-learn", "pyarrow")
        versions = [FORMAT, BLOCK_BYTES, *map(_version, packages)]
        text = json.dumps([versions, identity, made])
        return cls(folder, hashlib.sha256(text.encode()).hexdigest()[:32])

    def load(self) -> Reached:
        """Give what was reached; the start, if there is nothing, or nothing that can be used."""
        try:
            stored = self.path.read_bytes()
        except OSError:
            return Reached(None, (0, 0), 0)
        try:
            return self._unpacked(stored)
        # Whatever is wrong with it, the files are still there to be read.
        except Exception:
            warn_of_damaged_checkpoint(self.path)
            return Reached(None, (0, 0), 0)

    def offer(self, reached: Reached) -> None:
        """Keep what was reached, if it is time."""
        if time.monotonic() >= self._due:
            self.write(reached)

    def write(self, reached: Reached) -> None:
        """Keep what was reached."""
        if not self._writable:
            return
        start = time.monotonic()
        try:
            self._replace(self._packed(reached))
        except TypeError as error:
            warn_of_no_checkpoint(str(error))
            self._writable = False
        except OSError as error:
            warn_of_unwritten_checkpoint(self.path, error)
            self._writable = False
        now = time.monotonic()
        self._due = now + max(INTERVAL, (now - start) / WRITING_SHARE)

    def _packed(self, reached: Reached) -> bytes:
        arrays: dict[str, Array] = {}
        about = {
            "key": self._key,
            "total": flattened(reached.total, arrays),
            "place": list(reached.place),
            "n_rows": reached.n_rows,
        }
        buffer = io.BytesIO()
        np.savez(buffer, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]
        content = buffer.getvalue()
        return _MAGIC + hashlib.sha256(content).digest() + content

    def _unpacked(self, stored: bytes) -> Reached:
        start = len(_MAGIC)
        digest, content = stored[start : start + 32], stored[start + 32 :]
        if not stored.startswith(_MAGIC) or hashlib.sha256(content).digest() != digest:
            raise ValueError("the checksum does not fit")
        with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        about = json.loads(str(arrays.pop("about")))
        if about["key"] != self._key:
            raise ValueError("the sum is that of another pass")
        file, row = about["place"]
        return Reached(restored(about["total"], arrays), (file, row), about["n_rows"])

    def _replace(self, content: bytes) -> None:
        draft = self.path.with_name(f".{self._key}.{uuid4().hex}.part")
        try:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(self.path.parent)

    def _forget_drafts(self) -> None:
        """Remove what processes that were killed while writing have left."""
        for draft in self.path.parent.glob(f".{self._key}.*.part"):
            # Another process may be faster.
            with contextlib.suppress(OSError):
                if time.time() - draft.stat().st_mtime > DRAFT_SECONDS:
                    draft.unlink()


def _sync_folder(folder: Path) -> None:
    """Bring a new name to disk, where the system lets folders be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
