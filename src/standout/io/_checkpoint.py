"""Passes over files that can be interrupted: the sum so far is kept in a file that is complete or not there at all.

A stored sum consists of plain arrays and the names of known records: nothing in it can run code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType
from typing import Any

import joblib
import numpy as np

from standout._arrays import BLOCK_BYTES, Array
from standout._messages import FileError, InvalidTypeError, shown, warn_user
from standout._records import Kind, fields_of, flattened, restored
from standout._writing import write_whole

# Version of the stored files. Those of another version are not read.
FORMAT = 2

# Seconds between two writes: what an interruption may cost. Large sums take long to write, and are written less often,
# so that writing never takes more than this share of the time.
INTERVAL = 1.0
WRITING_SHARE = 0.05

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

    @classmethod
    def of(cls, folder: Path, identity: list[Any], part: Any) -> Checkpoint | None:
        """Give the place of a pass over these files that sums up what `part` makes; None, with a warning, if none can.

        All that the sum depends on goes into the key: the files, what is summed, and who reads and cuts.
        """
        try:
            made = _key_of(part)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            _warn_of_no_checkpoint(" ".join(str(error).split()))
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
            warn_user(
                "the checkpoint {path} is damaged and is not used: its checksum does not fit",
                path=shown(self.path),
                advice="The files are read from the start.",
            )
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
            write_whole(self.path, self._packed(reached))
        except TypeError as error:
            _warn_of_no_checkpoint(str(error))
            self._writable = False
        except FileError as error:
            warn_user(
                "the checkpoint {path} cannot be written: {reason}",
                path=shown(self.path),
                reason=error.facts["reason"],
                advice="The pass goes on, but an interruption would lose it. Make room, or choose another folder.",
            )
            self._writable = False
        now = time.monotonic()
        self._due = now + max(INTERVAL, (now - start) / WRITING_SHARE)

    def _packed(self, reached: Reached) -> bytes:
        return pack(reached.total, {"key": self._key, "place": list(reached.place), "n_rows": reached.n_rows})

    def _unpacked(self, stored: bytes) -> Reached:
        total, about = unpack(stored)
        if about["key"] != self._key:
            raise ValueError("the sum is that of another pass")
        file, row = about["place"]
        return Reached(total, (file, row), about["n_rows"])


def pack(total: Any, about: dict[str, Any]) -> bytes:
    """Give a sum as bytes, with a checksum: plain arrays and the names of known records, nothing that can run code."""
    arrays: dict[str, Array] = {}
    described = json.dumps({**about, "total": flattened(total, arrays, KINDS, "total")})
    buffer = io.BytesIO()
    np.savez(buffer, about=np.array(described), **arrays)  # type: ignore[arg-type]
    content = buffer.getvalue()
    return _MAGIC + hashlib.sha256(content).digest() + content


def unpack(stored: bytes) -> tuple[Any, dict[str, Any]]:
    """Give the sum that `pack` has packed, and what was told about it; ValueError if the bytes are damaged."""
    start = len(_MAGIC)
    digest, content = stored[start : start + 32], stored[start + 32 :]
    if not stored.startswith(_MAGIC) or hashlib.sha256(content).digest() != digest:
        raise ValueError("the checksum does not fit")
    with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    about = json.loads(str(arrays.pop("about")))
    return restored(about.pop("total"), arrays, KINDS), about


def checkpoint_folder(checkpoint: Any) -> Path | None:
    """Check the folder in which passes are kept, and make it."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, str | os.PathLike) or not str(checkpoint):
        raise InvalidTypeError(
            "is not the name of a folder", parameter="checkpoint", value=checkpoint, advice="Give a path, or {v.None}."
        )
    folder = Path(checkpoint).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem, reason = "the folder {folder} for checkpoints cannot be made: {reason}", error.strerror
        raise FileError(problem, folder=shown(checkpoint), reason=reason, advice="Choose another one.") from None
    return folder


def _warn_of_no_checkpoint(reason: str) -> None:
    warn_user(
        "this pass cannot be kept in a checkpoint: {reason}",
        reason=reason,
        advice="It goes on without. Give a kernel by its name, or as a function of a module, and to a pipeline steps "
        "of scikit-learn without functions of your own.",
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# --- what a sum consists of, and what it is a sum of ----------------------------------------------------------------


def _made(home: str, name: str, *args: Any, **parts: Any) -> Any:
    """Make a record of a class, which is imported when it is needed: it may need this package itself."""
    return getattr(import_module(home), name)(*args, **parts)


def _made_rows(blocks: Sequence[Any], single: bool) -> Any:
    return _made("standout.moments", "RowMoments", *blocks, single=single)


# The records that a sum can consist of, and where they live; a stored sum names them, and no others are made.
KINDS = {
    **{
        name: Kind(fields_of, partial(_made, home, name))
        for name, home in (
            ("NormSums", "standout.moments"),
            ("WeightSums", "standout.moments"),
            ("ScatterMoments", "standout.moments"),
            ("RootMoments", "standout.moments"),
            ("Folds", "standout.moments"),
            ("CoordinateSums", "standout.features"),
            ("ColumnSums", "standout.io"),
        )
    },
    "RowMoments": Kind(lambda moments: {"blocks": moments.blocks, "single": moments.single}, _made_rows),
}

# Packages whose code changes with their version, which is part of a key.
_VERSIONED = ("standout", "numpy", "scipy", "sklearn")


def _key_of(thing: Any) -> str:
    """Give a word that is the same for equal functions of rows, in whichever process.

    Records are taken by their fields, so that what they have worked out meanwhile does not count, nor does a field
    that is not compared. A step of a pipeline is taken by all that it holds.

    Raises
    ------
    TypeError
        If there is code in a step that may change without a change of its name.
    """
    if is_dataclass(thing) and not isinstance(thing, type):
        of = {one.name: _key_of(getattr(thing, one.name)) for one in fields(thing) if one.compare}
        return joblib.hash([type(thing).__module__, type(thing).__qualname__, of])
    if isinstance(thing, tuple | list):
        return joblib.hash([type(thing).__name__, *map(_key_of, thing)])
    if hasattr(thing, "transform"):
        _Names(io.BytesIO(), buffer_callback=lambda _: None).dump(thing)
    return joblib.hash(thing)


class _Names(pickle.Pickler):
    """Looks at the names of classes and functions in an object: a name must mean the same code in a later process."""

    def __init__(self, file: io.BytesIO, **options: Any) -> None:
        super().__init__(file, protocol=5, **options)

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type | FunctionType):
            package = thing.__module__.partition(".")[0]
            if package not in _VERSIONED and package not in sys.stdlib_module_names:
                raise TypeError(f"{thing.__qualname__} of {thing.__module__} is code that may change under its name")
        return NotImplemented
