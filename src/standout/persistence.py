"""Fitted models in files: written whole or not at all, and loaded without running code from the file.

A file is an archive of skops: plain arrays, and a description of the objects that hold them. Only objects of the types
in `TRUSTED` are made from a file: our estimators and their parts, scikit-learn's scalers and decompositions, arrays and
containers. Other estimators of scikit-learn are refused, because some have compiled code that does not check its
arrays.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from copy import copy
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile

from standout._messages import InvalidTypeError, InvalidValueError, listed, require_extra, shown, warn_user
from standout._writing import write_whole
from standout.estimators import ESTIMATORS, BackgroundPipeline
from standout.features import LandmarkMap, NamedKernel, PrecomputedKernel, SumKernel
from standout.io import Preparation
from standout.io._files import check_file
from standout.moments import FoldPattern, NormSums, RobustWeights, ScatterMoments, WeightSums
from standout.private._sums import Grid, PrivateMoments, Spent
from standout.problem import Problem
from standout.selection import HeldOut, MeanDifferences, Path, PermutationTest
from standout.selection._data import TallData

__all__ = ["TRUSTED", "load", "save"]


MODELS = (*ESTIMATORS.values(), BackgroundPipeline)
_NAMES = ", ".join(kind.__name__ for kind in MODELS)
# Types of this package that a model holds. Making an object of these types runs no code: add only such types.
_PARTS = (
    *(LandmarkMap, NamedKernel, PrecomputedKernel, SumKernel),
    *(FoldPattern, NormSums, RobustWeights, ScatterMoments, WeightSums, PrivateMoments, Spent, Grid),
    *(Problem, HeldOut, MeanDifferences, PermutationTest, Path, TallData, Preparation),
)
_OTHERS = {
    "builtins": "bool bytes dict float int list set slice str tuple",
    "numpy": "bool bool_ dtype float16 float32 float64 int16 int32 int64 int8 ndarray str_ uint16 uint32 uint64 uint8",
    "numpy.random.mtrand": "RandomState",
    **{f"scipy.sparse._{kind}": f"{kind}_array {kind}_matrix" for kind in ("csr", "csc", "coo")},
    "sklearn.decomposition._incremental_pca": "IncrementalPCA",
    "sklearn.decomposition._pca": "PCA",
    "sklearn.decomposition._truncated_svd": "TruncatedSVD",
    "sklearn.preprocessing._data": "MaxAbsScaler MinMaxScaler Normalizer PowerTransformer QuantileTransformer "
    "RobustScaler StandardScaler",
}
# Types that may be made from a file.
TRUSTED = [
    *(f"{kind.__module__}.{kind.__name__}" for kind in (*MODELS, *_PARTS)),
    *(f"{module}.{name}" for module, names in _OTHERS.items() for name in names.split()),
]
# The node types of skops that a model needs. Other node types, such as methods and partial functions, have been used in
# the past to circumvent skops' check of the types.
_WAYS = {
    *("BytesNode", "DTypeNode", "DictNode", "JsonNode", "ListNode", "NdArrayNode", "ObjectNode", "RandomStateNode"),
    *("SetNode", "SliceNode", "SparseMatrixNode", "TupleNode", "TypeNode"),
}
# Modules of scikit-learn without estimators. skops would import them, and with them PyTorch, CuPy and Dask.
_UNNEEDED = tuple(f"sklearn.externals.array_api_compat.{library}" for library in ("cupy", "dask", "torch"))
_SCHEMA, _VERSIONS_FILE = "schema.json", "standout.json"
# The packages on which the content of a file depends, with their major and minor versions.
_VERSIONS = {name: ".".join(version(name).split(".")[:2]) for name in ("standout", "scikit-learn")}
# Maximum size of the arrays of a file: the first number, in bytes, or the second number times the file's size, if that
# is larger. Sparse arrays are compressed.
_MOST_UNPACKED, _MOST_PACKING = 2**30, 100
# Maximum number of visits to objects when a file is read. Each reference by id visits the object again.
_MOST_VISITS = 5_000_000
_PLAIN = (
    "Use kernels by their names, parameters that are numbers, words or NumPy arrays, scikit-learn's scalers and "
    "decompositions in pipelines, and model.to_numpy() for arrays of other libraries."
)
_AGAIN = "Get the file again, or save the model again with standout.save."


def save(model: Any, path: str | os.PathLike[str], *, moments: bool = False) -> None:
    """How do I keep a model in a file?

    Parameters, fitted attributes, names of features and `set_output` are kept. The file appears under its name when it
    is complete. After an error, an older file is unchanged. Needs ``standout[models]``.

    Parameters
    ----------
    model : DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA or BackgroundPipeline
        Fitted or not. A pipeline (see `standout.make_pipeline`) may have scikit-learn's scalers and decompositions.
        Functions, such as a callable `kernel`, and objects of other types cannot be saved. The file of a kernel model
        holds rows of the data.
    path : str or path-like
        The file. Its name usually ends with ``.skops``. An existing file is replaced.
    moments : bool, default=False
        Keep the moments as well: counts, means and sums of products of the columns. With them, a loaded model can go on
        with ``partial_fit`` and ``merge``. Without them the file is small, and the fitted attributes are its only
        statistics of the data.

    See Also
    --------
    load : Get the model back.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import standout
    >>> target, background = np.random.default_rng(0).normal(size=(2, 100, 4)) * [1, 2, 3, 4]
    >>> target[:, 0] *= 5
    >>> dpca = standout.DiscriminativePCA(n_components=1).fit(target, background=background)
    >>> with TemporaryDirectory() as folder:
    ...     standout.save(dpca, Path(folder) / "model.skops")
    ...     again = standout.load(Path(folder) / "model.skops")
    >>> np.array_equal(again.transform(target), dpca.transform(target))
    True
    """
    require_extra("skops", "models", "a file with a model")
    place = pathlib.Path(path).expanduser()
    if not isinstance(model, MODELS):
        problem = f"a {type(model).__name__} cannot be saved, only objects of {_NAMES}"
        raise InvalidTypeError(problem, advice="Make pipelines with standout.make_pipeline.")
    content = BytesIO()
    try:
        _skops().dump(model if moments else _without_moments(model), content)
        with ZipFile(content, "a") as archive:
            archive.writestr(_VERSIONS_FILE, json.dumps(_VERSIONS))
        # The file is read once before it is saved, so that it is known to load.
        _read(content)
    # The objects in a model can raise any error when their state is read.
    except Exception as error:
        raise InvalidValueError(f"the model cannot be saved: {_reason(error)}", advice=_PLAIN) from error
    write_whole(place, content.getbuffer())


def load(path: str | os.PathLike[str]) -> Any:
    """How do I get a model back from a file, without running code from it?

    Only objects of the types in `standout.persistence.TRUSTED` are made, and the whole file is checked before anything
    is made. A file with other types is refused. Needs ``standout[models]``.

    Parameters
    ----------
    path : str or path-like
        A file written by `save`.

    Returns
    -------
    DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA or BackgroundPipeline
        With the same packages on the same machine, its scores equal those of the saved model, bit for bit.

    Raises
    ------
    FileNotFoundError, OSError
        If there is no file, or it cannot be read.
    ValueError
        If the file is damaged, was not written by `save`, or has types that are not trusted.

    Warns
    -----
    UserWarning
        If the file was saved by another version of standout or of scikit-learn.

    See Also
    --------
    save : Write a model to a file.

    Notes
    -----
    A trusted type is not a trusted model: a file from a stranger runs nothing on your machine, but its scores can be
    anything.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.preprocessing import StandardScaler
    >>> import standout
    >>> pipeline = standout.make_pipeline(StandardScaler(), standout.DiscriminativePCA(n_components=3))
    >>> with TemporaryDirectory() as folder:
    ...     standout.save(pipeline, Path(folder) / "model.skops")
    ...     again = standout.load(Path(folder) / "model.skops")
    >>> again[-1].n_components
    3
    """
    require_extra("skops", "models", "a file with a model")
    place = pathlib.Path(path).expanduser()
    check_file(place)
    try:
        with place.open("rb") as file:
            model, versions = _read(file)
    # A damaged or forged file can lead to any error.
    except Exception as error:
        raise InvalidValueError(f"{shown(place)} cannot be loaded: {_reason(error)}", advice=_AGAIN) from error
    other = [f"{name} {versions.get(name)!s:.60}" for name, here in _VERSIONS.items() if versions.get(name) != here]
    if other:
        advice = "Compare its scores with known ones, or fit and save it again."
        warn_user(f"{shown(place)} was saved with {' and '.join(other)}, and models can differ", advice=advice)
    return model


def _reason(error: Exception) -> str:
    """Return the problem of an error of this module, or the shortened message of a library."""
    if isinstance(error, InvalidValueError):
        return error.problem
    if isinstance(error, RecursionError):
        return "it holds itself, or is nested too deeply"
    return f"it is damaged, or of another format ({type(error).__name__}: {error!s:.200})"


def _skops() -> Any:
    """Import skops without the large array libraries that some modules of scikit-learn import."""
    unneeded = [] if "skops.io" in sys.modules else [name for name in _UNNEEDED if name not in sys.modules]
    modules: dict[str, Any] = sys.modules
    # A module set to None cannot be imported, so the search for estimators skips it.
    modules.update(dict.fromkeys(unneeded))
    try:
        return import_module("skops.io")
    finally:
        for name in unneeded:
            modules.pop(name, None)


def _without_moments(model: Any) -> Any:
    """Return a copy of a model without its moments. Models within a pipeline lose their moments, too."""
    model = copy(model)
    if isinstance(model, BackgroundPipeline):
        steps = ((name, _without_moments(step) if isinstance(step, MODELS) else step) for name, step in model.steps)
        model.steps = list(steps)
    model.__dict__.pop("_data", None)
    return model


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(file: BinaryIO) -> tuple[Any, dict[str, Any]]:
    """Load the model of a file, and return it with the package versions that the file names.

    First refuse types that are not trusted, and a file that needs far more memory or time than its size suggests.
    """
    found: set[str] = set()
    reads: set[tuple[str, Any]] = set()
    seen: dict[Any, int] = {}

    def visits(node: Any) -> int:
        """Record the types and arrays of an object. Return how many objects are visited when it is read."""
        if not isinstance(node, dict):
            return sum(map(visits, node)) if isinstance(node, list) else 0
        name, number = node.get("__id__"), 1 + sum(map(visits, node.values()))
        if isinstance(name, int | str):
            number = seen[name] = max(number, seen.get(name, 0))
        if number > _MOST_VISITS:
            raise InvalidValueError("objects in it refer to each other so often that reading would take very long")
        if "__loader__" in node:
            kind = f"{node.get('__module__')}.{node.get('__class__')}"
            if node["__loader__"] not in _WAYS or kind not in TRUSTED:
                found.add(kind)
            if "file" in node:
                reads.add((str(node["file"]), name or len(reads)))
        return number

    with ZipFile(file) as archive:
        if any(entry.compress_type != ZIP_STORED for entry in archive.infolist()):
            raise InvalidValueError("it is compressed, and standout.save compresses nothing")
        visits(json.loads(archive.read(_SCHEMA)))
        versions = json.loads(archive.read(_VERSIONS_FILE)) if _VERSIONS_FILE in archive.namelist() else None
        unpacked = sum(_unpacked_size(archive, name) for name, _ in reads)
    if found:
        unknown = listed("type", sorted(found))
        raise InvalidValueError(f"it has {unknown}, which standout does not trust; nothing of it was run")
    if not isinstance(versions, dict):
        raise InvalidValueError("it was not written by standout.save")
    if unpacked > max(_MOST_UNPACKED, _MOST_PACKING * file.seek(0, os.SEEK_END)):
        raise InvalidValueError(f"it has arrays of {unpacked} bytes, far more than its size")
    file.seek(0)
    model = _skops().load(file, trusted=TRUSTED)
    if not isinstance(model, MODELS):
        raise InvalidValueError(f"it has an object of type {type(model).__name__}, not of {_NAMES}")
    if getattr(model, "memory", None) is not None:
        raise InvalidValueError("its pipeline has a folder of pickles (memory), which can run code when it is read")
    return model, versions


def _unpacked_size(archive: ZipFile, name: str) -> int:
    """Return the number of bytes of an array. A sparse array is a compressed archive within the archive."""
    with archive.open(name) as entry:
        if entry.read(2) != b"PK":
            return archive.getinfo(name).file_size
        entry.seek(0)
        with ZipFile(entry) as inner:
            return sum(part.file_size for part in inner.infolist())
