"""Models in files: what cannot be saved, and files that hold something else or cannot be trusted."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from standout._validation._words import listed

# Arrays unpacked from a file may be this large, in bytes, ...
_MOST_UNPACKED = 2**30
# ... or this many times as large as the file. Sparse arrays of real data are packed by 10 at best.
_MOST_PACKING = 100

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})[\w.+!-]{0,40}")

_SAVE_AGAIN = "Get the file again, or save the model again with standout.save."


def as_model_path(path: Any) -> Path:
    """Check the name of a file, which need not exist."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise TypeError(f"path={path!r} is not the name of a file. Give a path, for example 'model.skops'.")
    return Path(path).expanduser()


def check_model_place(path: Path) -> None:
    """Check that a file can be put here, or that one is here to be replaced."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder, not a file. Give a file name in it, such as 'model.skops'.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{path} is neither a file nor a free name, and a model must not replace it. Give another name.")
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(f"there is no folder {path.parent}. Create it, or give another path for the model.")


def check_model_file(path: Path) -> None:
    """Check that there is a file to read."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder, not a file. Give the name of a file written by standout.save.")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}. Give the name of a file written by standout.save.")


def reject_unwritten_model(path: Path, error: OSError) -> NoReturn:
    """Say that a model could not be written."""
    raise OSError(
        f"the model could not be written to {path} ({error.strerror or error}); whatever was there before is still "
        "there. Free some space, or give a path in a folder that can be written to."
    ) from error


def reject_unreadable_model(path: Path, error: OSError) -> NoReturn:
    """Say that a file could not be read."""
    raise OSError(f"{path} could not be read ({error.strerror or error}). Check its permissions.") from error


def check_model(model: Any, kinds: tuple[type, ...]) -> None:
    """Check that something is a model that can be saved."""
    if not isinstance(model, kinds):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"an object of type {type(model).__name__}"
        raise TypeError(
            f"{what} cannot be saved, only objects of {_names(kinds)}. Make pipelines with standout.make_pipeline; "
            "save other estimators with skops."
        )


def check_no_functions(names: Sequence[str]) -> None:
    """Refuse to save functions, such as a kernel of one's own."""
    if names:
        raise ValueError(
            f"the model holds the {listed('function', names)}, and a file could bring that back only by running code "
            "when it is loaded. Use a kernel by its name or kernel='precomputed', and NumPy's ufuncs (np.log1p) in "
            "pipelines; or keep the data and fit again."
        )


def check_on_host(attributes: Sequence[str]) -> None:
    """Refuse to save arrays of other libraries, which other machines may not have."""
    if attributes:
        raise TypeError(
            f"the model cannot be saved: {listed('attribute', attributes)} are arrays of another library than NumPy. "
            "Save model.to_numpy(), which copies them to the host."
        )


def check_no_memory(places: Sequence[Any], doing: str) -> None:
    """Refuse pipelines that keep results in a folder, from which they would be unpickled by the next fit."""
    if places:
        raise ValueError(
            f"{doing}: a pipeline keeps results in memory={str(places[0])!r}, a folder of pickles, which can run code "
            "when they are read. Set memory=None before saving, and set it again after loading."
        )


def check_storable(untrusted: Sequence[str]) -> None:
    """Refuse to save what `load` would not trust."""
    if untrusted:
        raise ValueError(
            f"the model holds objects of {listed('type', untrusted)}, which standout.load does not trust. Give "
            "parameters as numbers, strings, lists or NumPy arrays, and use scikit-learn's own steps in pipelines."
        )


def reject_unsaved(error: Exception) -> NoReturn:
    """Say that skops could not save a model."""
    if isinstance(error, RecursionError):
        reason = "it holds itself, as an estimator does after set_fit_request, or is nested too deeply"
    else:
        reason = f"{type(error).__name__}: {error}"
    raise ValueError(
        f"the model cannot be saved ({reason}). Give parameters as numbers, strings, lists or NumPy arrays, and leave "
        "metadata requests to standout.make_pipeline."
    ) from error


def reject_no_model(path: Path, error: Exception) -> NoReturn:
    """Say that a file is not what `save` writes, or is damaged."""
    raise ValueError(
        f"{path} cannot be loaded: it is not a file written by standout.save, or it is damaged "
        f"({type(error).__name__}: {_short(error)}). Pickles and other formats are not read. {_SAVE_AGAIN}"
    ) from error


def check_stored(compressed: Sequence[str], path: Path) -> None:
    """Refuse archives with compressed entries, which can be a thousand times as large as they look."""
    if compressed:
        raise ValueError(
            f"{path} cannot be loaded: it has {listed('compressed part', compressed)[:200]}, and standout.save "
            f"compresses none. {_SAVE_AGAIN}"
        )


def check_unpacked_size(unpacked: int, packed: int, path: Path) -> None:
    """Refuse small files that would fill the memory."""
    limit = max(_MOST_UNPACKED, _MOST_PACKING * packed)
    if unpacked > limit:
        raise ValueError(
            f"{path} cannot be loaded: its {packed} bytes hold arrays of {unpacked} bytes, and {limit} are the limit "
            f"for a file of its size. {_SAVE_AGAIN}"
        )


def check_trusted(untrusted: Sequence[str], versions: Any, here: str, path: Path) -> None:
    """Refuse files with types that are not trusted, and name them."""
    if untrusted:
        told = f" It says that it is of standout {versions['standout']}, and this is {here}." if _told(versions) else ""
        raise ValueError(
            f"{path} cannot be loaded: it has {listed('type', untrusted)}, which standout.load does not trust; nothing "
            f"of it was run.{told} Load only what standout.save of this version has written."
        )


def check_ways(unknown: Sequence[str], path: Path) -> None:
    """Refuse files that ask for objects to be made in ways that no model needs."""
    if unknown:
        raise ValueError(
            f"{path} cannot be loaded: it has {listed('object', unknown)[:200]} of skops, which standout.save does not "
            f"write; nothing of it was run. {_SAVE_AGAIN}"
        )


def check_versions(versions: Any, here: Mapping[str, str], path: Path) -> list[str]:
    """Check by what a file was written, and give the packages whose minor version is another one here.

    Another major version of standout is refused.
    """
    if not _told(versions):
        raise ValueError(f"{path} cannot be loaded: it was not written by standout.save. {_SAVE_AGAIN}")
    saved = versions["standout"]
    if _series(saved)[0] != _series(here["standout"])[0]:
        raise ValueError(
            f"{path} cannot be loaded: it was saved by standout {saved}, and this is {here['standout']}. Install "
            f"standout {saved} to load it, or fit and save the model again."
        )
    return [
        f"{package} {versions[package]} (here {here[package]})"
        for package in ("standout", "scikit-learn")
        if _series(versions[package]) != _series(here[package])
    ]


def check_loaded(model: Any, kinds: tuple[type, ...], path: Path) -> None:
    """Check that a file held a model."""
    if not isinstance(model, kinds):
        raise ValueError(
            f"{path} cannot be loaded: it holds an object of type {type(model).__name__}, not of {_names(kinds)}. "
            f"{_SAVE_AGAIN}"
        )


def _names(kinds: tuple[type, ...]) -> str:
    *names, last = (kind.__name__ for kind in kinds)
    return f"{', '.join(names)} or {last}"


def _told(versions: Any) -> bool:
    """Tell whether a file says by which versions it was written."""
    return isinstance(versions, dict) and all(
        isinstance(versions.get(package), str) and _VERSION.fullmatch(versions[package])
        for package in ("standout", "scikit-learn")
    )


def _series(version: str) -> tuple[str, str]:
    """Give the major and the minor version."""
    found = _VERSION.fullmatch(version)
    assert found is not None
    return found[1], found[2]


def _short(error: Exception) -> str:
    """Give an error's words, at most 200 letters of them: a file can make them as long as it likes."""
    words = str(error)
    return words if len(words) <= 200 else f"{words[:200]} ..."
