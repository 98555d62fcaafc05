"""Real data from files: found, read and checked; downloaded only if asked to."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.data.download import cache_folder, fetch
from experiments.data.files import FILES, MICE_CLASSES, PROTEINS, DataFile
from standout.io import read_table

VARIABLE = "STANDOUT_DATA"

Array = npt.NDArray[Any]
Folder = str | os.PathLike[str] | None


# Compared by identity: == between records of arrays has no single truth value.
@dataclass(frozen=True, eq=False)
class Dataset:
    """The content of a file.

    Attributes
    ----------
    X : ndarray of shape (n, ...)
        Rows, as float64 with NaN where a value is missing; or images, as uint8 with black at 0 and white at 255.
    labels : ndarray of shape (n,)
        The class of each row; in the files of photographs, 1 for a test image and 0 for a training image.
    details : dict of str to ndarray
        The other arrays of the file.
    description : str
        One line on what the data are.
    """

    X: Array = field(repr=False)
    labels: Array = field(repr=False)
    details: dict[str, Array] = field(repr=False, default_factory=dict)
    description: str = ""


def load(name: str, data_dir: Folder = None, *, download: bool = False) -> Dataset:
    """Read one of the files that `files` describes.

    Parameters
    ----------
    name : str
        Name of the file, such as ``"mnist.npz"``.
    data_dir : str, path-like or None, default=None
        Folder of the file. ``None`` looks in the folder that the environment variable ``STANDOUT_DATA`` names, then
        among earlier downloads in the user's cache folder.
    download : bool, default=False
        Whether to download a missing file, into ``data_dir`` or else into the cache folder.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If the file is damaged, or does not hold what it should.
    OSError
        If the download fails.
    ImportError
        If a package is missing.

    Examples
    --------
    >>> from experiments.data import load
    >>> load("mnist.npz")  # doctest: +SKIP
    Dataset(description='MNIST training digits: 60000 of 60000 rows')
    """
    file = FILES[name]
    path = _found(name, file, data_dir, download=download)
    arrays = _read_arrays(path, file) if file.arrays else _read_mice(path, file)
    problem = _problem(arrays, file)
    if problem:
        raise _damaged(path, file, problem)
    X, labels = arrays.pop(file.rows), arrays.pop(file.labels)
    if X.dtype.kind == "f":
        X = X.astype(np.float64, copy=False)
    if labels.dtype.kind in "iu":
        labels = labels.astype(np.int64, copy=False)
    description = f"{file.title}: {len(X)} of {file.n_rows} rows"
    if X.dtype.kind == "f" and np.isnan(X).any():
        description += f", {np.isnan(X).sum()} values missing"
    if "full_precision" in arrays:
        precise = arrays["full_precision"]
        description += f", {precise.sum()} of {len(precise)} signals at full precision"
    return Dataset(X, labels, arrays, description)


def _found(name: str, file: DataFile, data_dir: Folder, *, download: bool) -> Path:
    """Find a file, or download it if that was asked for."""
    folders = [data_dir] if data_dir is not None else [os.environ.get(VARIABLE), cache_folder()]
    known = [Path(folder).expanduser() for folder in folders if folder]
    for folder in known:
        # os.path.exists, unlike Path.exists, is False for a folder without permission.
        if os.path.exists(folder / name):
            return folder / name
    if download and file.source:
        return fetch(name, None if data_dir is None else known[0])
    unset = [] if data_dir is not None or os.environ.get(VARIABLE) else [f"{VARIABLE} (not set)"]
    raise FileNotFoundError(f"there is no {name} in {' or '.join([*unset, *map(str, known)])}. {_remedy(file)}")


def _remedy(file: DataFile) -> str:
    arrays = ", ".join(f"{name} ({form})" for name, form in file.arrays.items())
    content = f"arrays {arrays}; {file.layout}" if arrays else file.layout
    offer = f" Or use --download (download=True in Python) to fetch it from {file.source}." if file.source else ""
    return f"Put a good copy into a folder and name the folder with --data or in {VARIABLE}: {content}.{offer}"


def _damaged(path: Path, file: DataFile, problem: str) -> ValueError:
    return ValueError(f"{path} cannot be used: {problem}. {_remedy(file)}")


def _read_arrays(path: Path, file: DataFile) -> dict[str, Array]:
    """Read the arrays of an .npz file."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {}
            for name in {f"{name}.npy" for name in file.arrays}.intersection(archive.namelist()):
                with archive.open(name) as member:
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
    # A damaged archive can make the readers of zip, zlib and NumPy raise nearly anything, even a MemoryError for a
    # size that is not there.
    except Exception as error:
        raise _damaged(path, file, f"reading it stopped with {type(error).__name__}: {error}") from error
    return arrays


def _read_mice(path: Path, file: DataFile) -> dict[str, Array]:
    """Read the table of the mice. Columns may come in any order, and others may stand beside them."""
    try:
        table = read_table(path, id_column="MouseID", label="class", columns=PROTEINS, missing="keep")
    except (ValueError, OSError) as error:
        raise _damaged(path, file, str(error).rstrip(".")) from error
    columns = list(table.columns or ())
    X = np.asarray(table.rows)[:, [columns.index(protein) for protein in PROTEINS]]
    labels, mice = (np.asarray(words, dtype=str) for words in (table.labels, table.ids))
    if unknown := set(labels.tolist()) - set(MICE_CLASSES):
        problem = f"the class of a row is {min(unknown)!r}, but only {', '.join(MICE_CLASSES)} are expected"
        raise _damaged(path, file, problem)
    if np.isinf(X).any():
        raise _damaged(path, file, "it has an infinite value, but only finite ones and empty cells are expected")
    return {"X": X, "class": labels, "mouse": mice}


def _problem(arrays: dict[str, Array], file: DataFile) -> str | None:
    """Say in which way the arrays are not what the file should hold."""
    for name, form in file.arrays.items():
        if name not in arrays:
            return f"the array {name!r} ({form}) is missing"
        array = arrays[name]
        if not np.issubdtype(array.dtype, form.kind) or not _fits(array.shape, form.shape):
            return f"the array {name!r} is {array.dtype} of shape {array.shape}, but {form} is expected"
        if form.shape[0] is None and len(array) != len(arrays[file.rows]):
            return f"the array {name!r} has {len(array)} rows, but {file.rows!r} has {len(arrays[file.rows])}"
        if form.limits and array.size and not form.limits[0] <= array.min() <= array.max() <= form.limits[1]:
            expected = "{} to {}".format(*form.limits)
            return f"the array {name!r} has values from {array.min()} to {array.max()}, but {expected} are expected"
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return f"the array {name!r} has NaN or infinity, but only finite numbers are expected"
    n_rows = len(arrays[file.rows])
    if not 1 <= n_rows <= file.n_rows:
        return f"it has {n_rows} rows, but 1 to {file.n_rows} are expected"
    return None


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(shape) == len(expected) and all(want in (None, size) for size, want in zip(shape, expected, strict=True))
