"""Fitted models in files: whole or not at all, and loaded without running anything that is in the file.

A file is an archive of skops: plain arrays, and a description of the objects that hold them. Only the types listed in
`TRUSTED_TYPES`, and those of scikit-learn and NumPy that skops trusts, are ever made from it. Beside them lies a note
of the versions that wrote it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, BinaryIO
from uuid import uuid4
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

import standout
from standout._validation import (
    as_model_path,
    check_loaded,
    check_model,
    check_model_file,
    check_model_place,
    check_no_functions,
    check_no_memory,
    check_on_host,
    check_storable,
    check_stored,
    check_trusted,
    check_unpacked_size,
    check_versions,
    check_ways,
    reject_kept_nothing,
    reject_no_model,
    reject_sums_alone,
    reject_unreadable_model,
    reject_unsaved,
    reject_unwritten_model,
    require_extra,
)
from standout.estimators import (
    BackgroundPipeline,
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
)
from standout.estimators._moving import foreign_attributes

__all__ = ["TRUSTED_TYPES", "load", "save"]

MODELS = (DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA, BackgroundPipeline)

# All that may be made from a file beside scikit-learn's estimators, NumPy's arrays and Python's containers, which skops
# trusts by itself. None of these does anything when it is made: add nothing that does, or that calls what it is given.
TRUSTED_TYPES = (
    "standout.estimators._contrastive.ContrastivePCA",
    "standout.estimators._coordinates.CoordinateSums",
    "standout.estimators._discriminative.DiscriminativePCA",
    "standout.estimators._kernel_contrastive.KernelContrastivePCA",
    "standout.estimators._kernel_discriminative.KernelDiscriminativePCA",
    "standout.estimators._pipeline.BackgroundPipeline",
    "standout.features.FourierMap",
    "standout.features.IdentityMap",
    "standout.features.KernelRowMap",
    "standout.features.LandmarkMap",
    "standout.features.NamedKernel",
    "standout.features.PrecomputedKernel",
    "standout.features.SumKernel",
    "standout.moments.NormSums",
    "standout.moments.RootMoments",
    "standout.moments.ScatterMoments",
    "standout.selection._groups.GroupSearch",
    "standout.selection._verdict.ComponentTest",
    # Imputers and discretisers keep the type of their data; landmarks can be sparse.
    "numpy.dtype",
    "scipy.sparse._bsr.bsr_array",
    "scipy.sparse._bsr.bsr_matrix",
    "scipy.sparse._coo.coo_array",
    "scipy.sparse._coo.coo_matrix",
    "scipy.sparse._csc.csc_array",
    "scipy.sparse._csc.csc_matrix",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "scipy.sparse._dia.dia_array",
    "scipy.sparse._dia.dia_matrix",
)

# Modules under which earlier versions saved types, and where these types are now. A file is read as if it had the new
# names, which must be trusted as in any other file. The old modules need not exist.
_EARLIER_HOMES = {
    "standout.features._kernels": "standout.features",
    "standout.features._maps": "standout.features",
    "standout.moments._base": "standout.moments",
    "standout.moments._root": "standout.moments",
    "standout.moments._scatter": "standout.moments",
}

# The ways of making objects, by skops' names, that a model needs. Others, such as those of methods, partial functions
# or random generators, have led around skops' look at the types in the past.
_WAYS = (
    "BytesNode",
    "DTypeNode",
    "DictNode",
    "FunctionNode",
    "JsonNode",
    "ListNode",
    "NdArrayNode",
    "ObjectNode",
    "RandomStateNode",
    "SetNode",
    "SliceNode",
    "SparseMatrixNode",
    "TupleNode",
    "TypeNode",
)

# Packages of scikit-learn that load other libraries and have no estimators.
_WITHOUT_ESTIMATORS = tuple(f"sklearn.externals.array_api_compat.{library}" for library in ("cupy", "dask", "torch"))

# The entries of the archive that are not arrays: skops' own, and ours beside it.
_SCHEMA = "schema.json"
_VERSIONS = "standout.json"


def save(model: Any, path: str | os.PathLike[str], *, moments: bool = False) -> None:
    """How do I keep a model in a file?

    Parameters, what was fitted, names of features and `set_output` are kept. The file is complete under its
    name, or is not there (an older one then stays as it is).

    Parameters
    ----------
    model : DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA or BackgroundPipeline
        Fitted or not. A pipeline (see `standout.make_pipeline`) may have any of scikit-learn's own steps that skops
        trusts. Refused is what could be brought back only by running code: functions, such as a kernel of your own
        (`kernel` a callable), objects of other types, and pipelines with `memory`. Of a model that was fitted on
        arrays of another library than NumPy, save its ``to_numpy()``.
    path : str or path-like
        The file. By custom its name ends with ``.skops``, but any will do. A file that is there is replaced.
    moments : bool, default=False
        Keep the moments as well: counts, means and sums of products of the columns, of the target and of every
        background. With them, a model that is loaded can go on with ``partial_fit`` and ``merge``; without them the
        file is small, and tells no more of the data than the components do. A model that keeps none (fitted by ``fit``
        to fewer rows than columns, or with exact kernel coordinates) is saved without.

    See Also
    --------
    load : Get the model back.

    Notes
    -----
    The file holds what the model holds. With exact kernel coordinates, these are rows of the data.

    Needs ``standout[models]``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import standout
    >>> target, background = np.random.default_rng(0).normal(size=(2, 100, 4)) * [1, 2, 3, 4]
    >>> dpca = standout.DiscriminativePCA(n_components=1).fit(target, background=background)
    >>> with TemporaryDirectory() as folder:
    ...     standout.save(dpca, Path(folder) / "model.skops")
    ...     again = standout.load(Path(folder) / "model.skops")
    >>> np.array_equal(again.transform(target), dpca.transform(target))
    True
    """
    require_extra("skops", "models", "saving a model")
    place = as_model_path(path)
    check_model_place(place)
    check_model(model, MODELS)
    if not moments:
        if "_sums" in vars(model) and not hasattr(model, "components_"):
            reject_sums_alone()
        model = _without_moments(model)
    elif _keeps_nothing(model):
        reject_kept_nothing("the model")
    check_no_functions(_functions(model))
    check_no_memory(_memories(model), "the model cannot be saved")
    check_on_host(list(foreign_attributes(model)))
    content = _packed(model)
    check_storable(_untrusted(content))
    # What has been read once before it is written can be read again.
    _read(content, place)
    try:
        _write(content, place)
    except OSError as error:
        reject_unwritten_model(place, error)


def load(path: str | os.PathLike[str]) -> Any:
    """How do I get a model back from a file, without running anything that is in it?

    Nothing but the types that standout and skops trust is made from the file, and all that it asks for is looked at
    before anything is made. A file with anything else in it is refused, with the names of the types.

    Parameters
    ----------
    path : str or path-like
        A file written by `save`.

    Returns
    -------
    DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA or BackgroundPipeline
        With the same packages on the same machine, it gives the same scores as the model that was saved, bit for bit.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, OSError
        If there is no file, or it cannot be read.
    ValueError
        If the file is damaged, is not one of `save`, asks for types that are not trusted, or is of another major
        version of standout.

    Warns
    -----
    UserWarning
        If it was saved by another minor version of standout or of scikit-learn.

    See Also
    --------
    save : Write a model to a file.

    Notes
    -----
    A trusted type is not a trusted model: a file from someone you do not know runs nothing on your machine, but its
    scores can be anything.

    Needs ``standout[models]``.

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
    require_extra("skops", "models", "loading a model")
    place = as_model_path(path)
    check_model_file(place)
    try:
        file = place.open("rb")
    except OSError as error:
        reject_unreadable_model(place, error)
    with file:
        model, differing = _read(file, place)
    if differing:
        warnings.warn(
            f"{place} was saved with {' and '.join(differing)}, and what a model holds can differ between versions. "
            "Compare its scores with known ones, or fit and save it again.",
            UserWarning,
            stacklevel=2,
        )
    return model


# --- writing --------------------------------------------------------------------------------------------------------


def _keeps_nothing(model: Any) -> bool:
    """Tell whether a model, or the last step of a pipeline, is fitted and has no moments."""
    if isinstance(model, BackgroundPipeline):
        return bool(model.steps) and _keeps_nothing(model.steps[-1][1])
    return hasattr(model, "components_") and "_sums" not in vars(model)


def _without_moments(model: Any) -> Any:
    """Give a copy of a model, or of a pipeline with one, that has not kept its moments."""
    if isinstance(model, BackgroundPipeline):
        steps = [(name, _without_moments(step)) for name, step in model.steps]
        model = copy(model)
        model.steps = steps
    elif isinstance(model, MODELS):
        model = copy(model)
        model.__dict__.pop("_sums", None)
    return model


def _packed(model: Any) -> BytesIO:
    """Give the content of a model's file."""
    skops_io = _skops_io()
    content = BytesIO()
    try:
        skops_io.dump(model, content)
    # Whatever the objects in a model may raise when they are asked for their state.
    except Exception as error:
        reject_unsaved(error)
    with ZipFile(content, "a") as archive:
        archive.writestr(_VERSIONS, json.dumps(_versions_here()))
    return content


def _skops_io() -> Any:
    """Load skops, without what else is installed.

    It looks for every estimator in scikit-learn when it is imported, and on the way loads PyTorch, CuPy and Dask where
    they are there, by scikit-learn's packages for them: some seconds and 200 MB, for no estimator at all. A package
    that is None among the modules cannot be imported, and the search passes it over. Nor can another thread import it,
    so this is done no longer than it takes to load skops for the first time.
    """
    if "skops.io" in sys.modules:
        return import_module("skops.io")
    unneeded = [name for name in _WITHOUT_ESTIMATORS if name not in sys.modules]
    modules: dict[str, Any] = sys.modules
    modules.update(dict.fromkeys(unneeded))
    try:
        return import_module("skops.io")
    finally:
        for name in unneeded:
            modules.pop(name, None)


def _versions_here() -> dict[str, str]:
    import skops

    return {
        "standout": standout.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "skops": skops.__version__,
    }


def _write(content: BytesIO, place: Path) -> None:
    """Write a file that appears under its name when it is complete; an error or an interruption leaves nothing."""
    # A link stays a link, to the new file. In the same folder, renaming is a single step that cannot be seen half done.
    place = Path(os.path.realpath(place))
    draft = place.with_name(f".{uuid4().hex}.part")
    try:
        with draft.open("xb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    finally:
        with suppress(OSError):
            draft.unlink()


# --- reading --------------------------------------------------------------------------------------------------------


def _read(file: BinaryIO, place: Path) -> tuple[Any, list[str]]:
    """Make a model from the content of a file, and tell which packages had another version when it was saved."""
    skops_io = _skops_io()
    with _damage_told(place):
        entries = _entries(file)
    check_stored([entry.filename for entry in entries if entry.compress_type != ZIP_STORED], place)
    with _damage_told(place):
        found = _examined(file)
    check_unpacked_size(found.unpacked, file.seek(0, os.SEEK_END), place)
    with _damage_told(place):
        file = _with_new_names(file, found)
        untrusted = _untrusted(file)
    here = _versions_here()
    check_trusted(untrusted, found.versions, here["standout"], place)
    check_ways(sorted(found.ways - set(_WAYS)), place)
    differing = check_versions(found.versions, here, place)
    with _damage_told(place):
        model = skops_io.load(file, trusted=list(TRUSTED_TYPES))
    check_loaded(model, MODELS, place)
    check_no_memory(_memories(model), f"{place} cannot be loaded")
    return model, differing


@contextmanager
def _damage_told(place: Path) -> Iterator[None]:
    """Make one error of all that a damaged or a forged file can lead to, which is any."""
    try:
        yield
    except Exception as error:
        reject_no_model(place, error)


def _entries(file: BinaryIO) -> list[ZipInfo]:
    with ZipFile(file) as archive:
        return archive.infolist()


@dataclass(frozen=True)
class _Findings:
    """What a file says before anything is made from it.

    Attributes
    ----------
    versions : dict or None
        Of the packages that wrote it, if it tells.
    ways : set of str
        The ways in which skops is asked to make objects.
    unpacked : int
        Number of bytes of all arrays that are asked for.
    arrays : set of str
        The entries of the archive that hold these arrays.
    has_earlier_names : bool
        Whether types are under modules of an earlier version.
    """

    versions: Any
    ways: set[str]
    unpacked: int
    arrays: set[str]
    has_earlier_names: bool


def _examined(file: BinaryIO) -> _Findings:
    """Look at what a file asks for."""
    ways: set[str] = set()
    reads: set[tuple[str, Any]] = set()
    modules: set[str] = set()

    def note(node: dict[str, Any]) -> dict[str, Any]:
        if "__loader__" in node:
            ways.add(str(node["__loader__"]))
            modules.add(str(node.get("__module__")))
            # An array is read once for every object that names it; objects are told apart by their ids.
            if "file" in node:
                reads.add((node["file"], node.get("__id__") or object()))
        return node

    with ZipFile(file) as archive:
        json.loads(archive.read(_SCHEMA), object_hook=note)
        versions = json.loads(archive.read(_VERSIONS)) if _VERSIONS in archive.namelist() else None
        sizes = {name: _unpacked_size(archive, name) for name in {name for name, _ in reads}}
    unpacked = sum(sizes[name] for name, _ in reads)
    return _Findings(versions, ways, unpacked, set(sizes), not modules.isdisjoint(_EARLIER_HOMES))


def _with_new_names(file: BinaryIO, found: _Findings) -> BinaryIO:
    """Give the file itself, or a copy in memory in which types that have moved are under their new names."""
    if not found.has_earlier_names:
        return file

    def renamed(node: dict[str, Any]) -> dict[str, Any]:
        if "__module__" in node:
            node["__module__"] = _EARLIER_HOMES.get(node["__module__"], node["__module__"])
        return node

    content = BytesIO()
    with ZipFile(file) as old, ZipFile(content, "w") as new:
        new.writestr(_SCHEMA, json.dumps(json.loads(old.read(_SCHEMA), object_hook=renamed)))
        for name in found.arrays - {_SCHEMA}:
            new.writestr(name, old.read(name))
    return content


def _unpacked_size(archive: ZipFile, name: str) -> int:
    """Give the number of bytes of an array; sparse ones lie in an archive of their own, which is compressed."""
    with archive.open(name) as entry:
        if entry.read(2) != b"PK":
            return archive.getinfo(name).file_size
        entry.seek(0)
        with ZipFile(entry) as inner:
            return sum(part.file_size for part in inner.infolist())


def _untrusted(file: BinaryIO) -> list[str]:
    """Name the types in a file that are not trusted; none is made, or even imported."""
    return sorted(set(_skops_io().get_untrusted_types(file=file)) - set(TRUSTED_TYPES))


# --- what a model holds ---------------------------------------------------------------------------------------------


def _functions(model: Any) -> list[str]:
    """Name the functions in a model."""
    kinds = (FunctionType, BuiltinFunctionType, MethodType, partial)
    return [getattr(thing, "__qualname__", repr(thing)) for thing in _holdings(model) if isinstance(thing, kinds)]


def _memories(model: Any) -> list[Any]:
    """Give the places where pipelines and clusterings in a model keep results."""
    estimators = (thing for thing in _holdings(model) if isinstance(thing, BaseEstimator))
    places = (vars(estimator).get("memory") for estimator in estimators)
    return [place for place in places if place is not None]


def _holdings(model: Any) -> Iterator[Any]:
    """Give a model and all that it holds, each once."""
    seen, waiting = set(), [model]
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen:
            seen.add(id(thing))
            yield thing
            waiting.extend(_parts(thing))


def _parts(thing: Any) -> Iterable[Any]:
    """Give what an object holds itself; all of it lives as long as the object."""
    if isinstance(thing, dict):
        return thing.values()
    if isinstance(thing, list | tuple | set | frozenset):
        return thing
    if isinstance(thing, np.ndarray):
        return thing.ravel().tolist() if thing.dtype == object else ()
    if isinstance(thing, type | FunctionType | ModuleType):
        return ()
    return getattr(thing, "__dict__", {}).values()
