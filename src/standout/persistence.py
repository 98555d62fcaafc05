"""Fitted models in files: written whole or not at all, and loaded without running code from the file.

A file is an archive of skops: plain arrays, and a description of the objects that hold them. Only the types listed in
`TRUSTED_TYPES`, and those of scikit-learn and NumPy that skops trusts, are ever made from it. The archive also has a
note of the versions that wrote it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import isabstract, signature
from io import BytesIO
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, BinaryIO, NoReturn
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy
import sklearn.utils
from sklearn.base import BaseEstimator

import standout
from standout._messages import (
    FileError,
    InvalidTypeError,
    InvalidValueError,
    MissingFileError,
    listed,
    require_extra,
    short,
    shown,
    warn_user,
)
from standout._writing import write_whole
from standout.estimators import (
    BackgroundPipeline,
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    foreign_attributes,
    reject_without_sums,
)
from standout.selection import GroupSearch

__all__ = ["TRUSTED_TYPES", "load", "save"]

MODELS = (DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA, BackgroundPipeline)
_MODEL_NAMES = ", ".join(kind.__name__ for kind in MODELS)

# The types that may be made from a file, in addition to scikit-learn's estimators, NumPy's arrays and Python's
# containers, which skops trusts. Making an object of these types runs no code: add only types of which that is true.
_TRUSTED = {
    "standout.estimators": [kind.__name__ for kind in MODELS],
    "standout.features": [
        *(
            "CoordinateSums",
            "FourierMap",
            "IdentityMap",
            "KernelRowMap",
            "KernelValueMap",
            "LandmarkMap",
            "NamedKernel",
        ),
        *("PrecomputedKernel", "SumKernel"),
    ],
    "standout.io": ["Preparation"],
    "standout.moments": ["NormSums", "RobustWeights", "RootMoments", "ScatterMoments", "WeightSums"],
    "standout.private": ["PrivateMoments", "Spent"],
    "standout.selection": ["ComponentTest", "GroupSearch", "HeldOut", "HeldOutPath"],
    # Imputers and discretisers keep the type of their data. Landmarks can be sparse.
    "numpy": ["dtype"],
    **{f"scipy.sparse._{kind}": [f"{kind}_array", f"{kind}_matrix"] for kind in ("bsr", "coo", "csc", "csr", "dia")},
}
TRUSTED_TYPES = tuple(f"{module}.{name}" for module, names in _TRUSTED.items() for name in names)

# The ways of making objects, by skops' names, that a model needs. Others, such as those of methods, partial functions
# or random generators, have been used in the past to circumvent skops' check of the types.
_WAYS = {
    *("BytesNode", "DTypeNode", "DictNode", "FunctionNode", "JsonNode", "ListNode", "NdArrayNode", "ObjectNode"),
    *("RandomStateNode", "SetNode", "SliceNode", "SparseMatrixNode", "TupleNode", "TypeNode"),
}

# Packages of scikit-learn that load other libraries and have no estimators.
_WITHOUT_ESTIMATORS = tuple(f"sklearn.externals.array_api_compat.{library}" for library in ("cupy", "dask", "torch"))

# The entries of the archive that are not arrays: skops' own, and ours beside it.
_SCHEMA = "schema.json"
_VERSIONS = "standout.json"

# Arrays unpacked from a file may have this many bytes, or this many times the bytes of the file. Sparse arrays of real
# data are packed by 10 at best.
_MOST_UNPACKED = 2**30
_MOST_PACKING = 100
# Visits of objects that a file may ask for, or 20 for each of its objects.
_MOST_VISITS = 100_000

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})[\w.+!-]{0,40}")
_PLAIN = (
    "Give parameters as numbers, strings, lists or NumPy arrays, use scikit-learn's own steps in pipelines, and leave "
    "metadata requests to standout.make_pipeline."
)
_SAVE_AGAIN = "Get the file again, or save the model again with standout.save."


def save(model: Any, path: str | os.PathLike[str], *, moments: bool = False) -> None:
    """How do I keep a model in a file?

    Parameters, fitted attributes, names of features and `set_output` are kept, but for what `moments` adds. The file
    appears under its name when it is complete; after an error an older file is still there.

    Parameters
    ----------
    model : DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA or BackgroundPipeline
        Fitted or not. A pipeline (see `standout.make_pipeline`) may have any of scikit-learn's own steps that skops
        trusts, and the step of `standout.io.prepare`. What could be loaded only by running code is refused: functions,
        such as a kernel of your own (`kernel` a callable), objects of other types, and pipelines with `memory`. Of a
        model that was fitted on arrays of another library than NumPy, save its ``to_numpy()``.
    path : str or path-like
        The file. By custom its name ends with ``.skops``, but any will do. A file that is there is replaced.
    moments : bool, default=False
        Keep the moments as well: counts, means and sums of products of the columns, of the target and of every
        background. With them, a model that is loaded can go on with ``partial_fit`` and ``merge``; without them the
        file is small, and tells no more of the data than the components do. A model that keeps none (fitted by ``fit``
        to fewer rows than columns, or with exact kernel coordinates) can only be saved without. Of a linear model with
        `robust`, `row_weights_` and `robust_weights_`, which ``weigh`` needs, are kept with the moments only;
        `outlying_rows_` and `wild_cells_`, numbers of rows and columns, are always kept.

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
    place = _model_path(path)
    if os.path.exists(place) and not os.path.isfile(place):
        raise FileError(
            "{path} is not a file, and a model must not replace it",
            path=shown(place),
            advice="Give the name of a file, such as 'model.skops'.",
        )
    if not isinstance(model, MODELS):
        raise InvalidTypeError(
            "{what} cannot be saved, only objects of {known}",
            what=f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}",
            known=_MODEL_NAMES,
            advice="Make pipelines with standout.make_pipeline; save other estimators with skops.",
        )
    if not moments:
        if "_sums" in vars(model) and not hasattr(model, "components_"):
            raise InvalidValueError(
                "the model has no components yet, only sums over the rows that came so far",
                advice="Save it with {p.moments:True}, or give it more rows first.",
            )
        model = _without_moments(model)
    elif _keeps_nothing(model):
        reject_without_sums("the model")
    _check_holdings(model)
    content = _packed(model)
    untrusted = _untrusted(content)
    if untrusted:
        problem = "it holds objects of {types}, which standout.load does not trust"
        _cannot_save(problem, _PLAIN, types=listed("type", untrusted))
    # A file that has been read once before it is written can be read again.
    _read(content, place)
    write_whole(place, content.getbuffer())


def load(path: str | os.PathLike[str]) -> Any:
    """How do I get a model back from a file, without running code from it?

    Only types that standout and skops trust are made from the file, and everything that it asks for is checked before
    anything is made. A file with other types in it is refused, with their names.

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
    FileNotFoundError, OSError
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
    place = _model_path(path)
    if not os.path.isfile(place):
        kind = FileError if os.path.exists(place) else MissingFileError
        advice = "Give the name of a file written by standout.save."
        raise kind("there is no file {path}", path=shown(place), advice=advice)
    try:
        file = place.open("rb")
    except OSError as error:
        reason, advice = error.strerror or error, "Check its permissions."
        raise FileError(
            "{path} could not be read: {reason}", path=shown(place), reason=reason, advice=advice
        ) from error
    with file:
        model, differing = _read(file, place)
    if differing:
        warn_user(
            "{path} was saved with {versions}, and what a model holds can differ between versions",
            path=shown(place),
            versions=" and ".join(differing),
            advice="Compare its scores with known ones, or fit and save it again.",
        )
    return model


# --- places ----------------------------------------------------------------------------------------------------------


def _model_path(path: Any) -> Path:
    """Check the name of a file, which need not exist."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise InvalidTypeError(
            "is not the name of a file", parameter="path", value=path, advice="Give a path, for example 'model.skops'."
        )
    return Path(path).expanduser()


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
        if not hasattr(model, "feature_map_"):
            # Robust weights have products of columns, as moments have. Kernel models hold rows anyway.
            for name in ("robust_weights_", "row_weights_"):
                model.__dict__.pop(name, None)
    return model


def _packed(model: Any) -> BytesIO:
    """Give the content of a model's file."""
    skops_io = _skops_io()
    content = BytesIO()
    try:
        skops_io.dump(model, content)
    # Whatever the objects in a model may raise when they are asked for their state.
    except Exception as error:
        circular = "it holds itself, as an estimator does after set_fit_request, or is nested too deeply"
        reason = circular if isinstance(error, RecursionError) else f"{type(error).__name__}: {error}"
        _cannot_save("{reason}", _PLAIN, reason=reason)
    with ZipFile(content, "a") as archive:
        archive.writestr(_VERSIONS, json.dumps(_versions_here()))
    return content


def _skops_io() -> Any:
    """Load skops without loading array libraries.

    When it is imported, skops looks for every estimator in scikit-learn. Through scikit-learn's packages for them it
    would load PyTorch, CuPy and Dask if they are installed: some seconds and 200 MB, for no estimator at all. A package
    that is None among the modules cannot be imported, and the search skips it. Other threads cannot import it either,
    so this is done only while skops is loaded for the first time.
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


@contextmanager
def quick_saving() -> Iterator[None]:
    """Save models without loading all of scikit-learn, in a process that does nothing else with skops.

    When it is imported, skops looks for every estimator in scikit-learn, to trust it. A model that is saved can only
    hold estimators that are loaded already, so that these are enough here. Skops is forgotten at the end of the block:
    if it is imported again, it looks for all of them.
    """
    if "skops.io" in sys.modules:
        yield
        return
    for_everyone = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = _loaded_estimators
    try:
        _skops_io()
    finally:
        sklearn.utils.all_estimators = for_everyone
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "skops"]:
            del sys.modules[name]


def _loaded_estimators() -> list[tuple[str, type]]:
    """List the estimators of scikit-learn that are loaded, as its `all_estimators` lists all of them."""
    found, waiting = set(), [BaseEstimator]
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found.add(kind)
            waiting += kind.__subclasses__()
    public = [kind for kind in found if not kind.__name__.startswith("_") and not isabstract(kind)]
    return sorted((kind.__name__, kind) for kind in public if kind.__module__.startswith("sklearn."))


def _versions_here() -> dict[str, str]:
    import skops

    return {
        "standout": standout.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "skops": skops.__version__,
    }


# --- reading --------------------------------------------------------------------------------------------------------


def _read(file: BinaryIO, place: Path) -> tuple[Any, list[str]]:
    """Make a model from the content of a file, and name the packages that had another version when it was saved."""
    try:
        found = _examined(file, place)
        file = _with_new_names(file, found)
        _check_trusted(found, _untrusted(file), place)
        differing = _differing_versions(found.versions, place)
        model = _skops_io().load(file, trusted=list(TRUSTED_TYPES))
        if isinstance(model, MODELS):
            _complete(model)
    except InvalidValueError:
        raise
    # A damaged or forged file can lead to any error, whose text it can make as long as it likes.
    except Exception as error:
        problem = "it is not a file written by standout.save, or it is damaged ({kind}: {reason})"
        advice = "Pickles and other formats are not read. " + _SAVE_AGAIN
        _refuse(place, problem, advice, kind=type(error).__name__, reason=short(error, 200))
    if not isinstance(model, MODELS):
        problem = "it holds an object of type {kind}, not of {known}"
        _refuse(place, problem, kind=type(model).__name__, known=_MODEL_NAMES)
    _check_no_memory(model, f"{shown(place)} cannot be loaded")
    return model, differing


def _complete(model: Any) -> None:
    """Give a model of an earlier version the parameters that it did not have, and records of today's form."""
    if isinstance(model, BackgroundPipeline):
        for _, step in model.steps:
            if isinstance(step, MODELS):
                _complete(step)
        return
    for name, parameter in signature(type(model)).parameters.items():
        if name not in vars(model):
            setattr(model, name, parameter.default)
    search = vars(model).get("group_search_")
    if isinstance(search, GroupSearch) and "found" not in vars(search):
        earlier = vars(search)
        shares, chosen = np.asarray(earlier["split_shares"]), earlier["chosen"]
        unknown = np.full(shares.shape, np.nan)
        model.group_search_ = GroupSearch(
            parameters=earlier["parameters"],
            log_ratios=unknown,
            split_shares=shares,
            background_shares=unknown,
            standard_errors=earlier["standard_errors"],
            view=int(np.argmax(shares)) if chosen is None else int(chosen),
            found=chosen is not None,
        )


def _check_trusted(found: _Findings, untrusted: list[str], place: Path) -> None:
    """Refuse a file with types, or with ways of making objects, that are not trusted."""
    if untrusted:
        problem = "it has {types}, which standout.load does not trust; nothing of it was run"
        saved = found.versions["standout"] if _has_versions(found.versions) else "of unknown version"
        advice = "Load only what standout.save has written. It says that it is of standout {saved}, and this is {here}."
        _refuse(place, problem, advice, types=listed("type", untrusted), saved=saved, here=standout.__version__)
    unknown = sorted(found.ways - _WAYS)
    if unknown:
        problem = "it has {objects} of skops, which standout.save does not write; nothing of it was run"
        _refuse(place, problem, objects=listed("object", unknown))


def _refuse(place: Path, problem: str, advice: str = _SAVE_AGAIN, **facts: Any) -> NoReturn:
    raise InvalidValueError("{path} cannot be loaded: " + problem, path=shown(place), advice=advice, **facts)


def _differing_versions(versions: Any, place: Path) -> list[str]:
    """Name the packages whose minor version was another one; another major version of standout is refused."""
    if not _has_versions(versions):
        _refuse(place, "it was not written by standout.save")
    saved, here = versions["standout"], _versions_here()
    if _series(saved)[0] != _series(here["standout"])[0]:
        problem = "it was saved by standout {saved}, and this is {here}"
        advice = "Install standout {saved} to load it, or fit and save the model again."
        _refuse(place, problem, advice, saved=saved, here=here["standout"])
    return [
        f"{package} {versions[package]} (here {here[package]})"
        for package in ("standout", "scikit-learn")
        if _series(versions[package]) != _series(here[package])
    ]


def _has_versions(versions: Any) -> bool:
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


@dataclass(frozen=True)
class _Findings:
    """What a file says before anything is made from it.

    Attributes
    ----------
    versions : dict or None
        Of the packages that wrote it, if it tells.
    ways : set of str
        The ways in which skops is asked to make objects.
    modules : set of str
        The modules of the types.
    """

    versions: Any
    ways: set[str]
    modules: set[str]


def _examined(file: BinaryIO, place: Path) -> _Findings:
    """Look at what a file asks for, and refuse one that would take far more memory than its size."""
    ways: set[str] = set()
    reads: set[tuple[str, Any]] = set()
    modules: set[str] = set()
    visits = _Visits()

    def note(node: dict[str, Any]) -> dict[str, Any]:
        visits.add(node)
        if "__loader__" in node:
            ways.add(str(node["__loader__"]))
            modules.add(str(node.get("__module__")))
            # An array is read once for every object that names it. Objects differ in their ids.
            if "file" in node:
                reads.add((node["file"], node.get("__id__") or object()))
        return node

    with ZipFile(file) as archive:
        compressed = [entry.filename for entry in archive.infolist() if entry.compress_type != ZIP_STORED]
        if compressed:
            # They can be a thousand times as large as they look.
            parts = listed("compressed part", compressed)
            _refuse(place, "it has {parts}, and standout.save compresses none", parts=parts)
        json.loads(archive.read(_SCHEMA), object_hook=note)
        versions = json.loads(archive.read(_VERSIONS)) if _VERSIONS in archive.namelist() else None
        sizes = {name: _unpacked_size(archive, name) for name in {name for name, _ in reads}}
    if visits.most > max(_MOST_VISITS, 20 * visits.n_nodes):
        _refuse(place, "objects in it stand for each other so often that reading it would take very long")
    unpacked, packed = sum(sizes[name] for name, _ in reads), file.seek(0, os.SEEK_END)
    limit = max(_MOST_UNPACKED, _MOST_PACKING * packed)
    if unpacked > limit:
        problem = "its {packed} bytes hold arrays of {unpacked} bytes, and {limit} are the limit for a file of its size"
        _refuse(place, problem, packed=packed, unpacked=unpacked, limit=limit)
    return _Findings(versions, ways, modules)


class _Visits:
    """Counts how often skops will visit objects: one that stands for another by its id is visited as that one.

    Attributes
    ----------
    n_nodes : int
        Objects in the file.
    most : int
        Visits that the largest of them takes.
    """

    def __init__(self) -> None:
        self.n_nodes, self.most = 0, 0
        self._of_object: dict[int, int] = {}
        self._of_id: dict[Any, int] = {}
        # Objects are known by their place in memory, and must stay there.
        self._seen: list[Any] = []

    def add(self, node: dict[str, Any]) -> None:
        """Take in an object after all those in it."""
        count = 1 + sum(map(self._of, node.values()))
        name = node.get("__id__")
        if isinstance(name, int | str):
            count = self._of_id[name] = max(count, self._of_id.get(name, 0))
        self._seen.append(node)
        self._of_object[id(node)] = count
        self.n_nodes += 1
        self.most = max(self.most, count)

    def _of(self, value: Any) -> int:
        if isinstance(value, list):
            return sum(map(self._of, value))
        return self._of_object.get(id(value), 0) if isinstance(value, dict) else 0


def _with_new_names(file: BinaryIO, found: _Findings) -> BinaryIO:
    """Give the file itself, or a copy in memory in which types that have moved are under their new names."""
    if all(_home(module) == module for module in found.modules):
        return file

    def renamed(node: dict[str, Any]) -> dict[str, Any]:
        if "__module__" in node:
            node["__module__"] = _home(node["__module__"])
        return node

    content = BytesIO()
    with ZipFile(file) as old, ZipFile(content, "w") as new:
        new.writestr(_SCHEMA, json.dumps(json.loads(old.read(_SCHEMA), object_hook=renamed)))
        for name in {*old.namelist()} - {_SCHEMA, _VERSIONS}:
            new.writestr(name, old.read(name))
    return content


def _home(module: str) -> str:
    """Give the package under which a type is saved today; version 0.1 named a module in it, which need not exist now.

    The type must be trusted under its new name, as in any other file.
    """
    if module == "standout.estimators._coordinates":
        return "standout.features"
    return re.sub(r"^(standout\.\w+)\._\w+$", r"\1", str(module))


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


def _cannot_save(problem: str, advice: str, **facts: Any) -> NoReturn:
    raise InvalidValueError("the model cannot be saved: " + problem, advice=advice, **facts)


# --- what a model holds ---------------------------------------------------------------------------------------------


def _check_holdings(model: Any) -> None:
    """Refuse to save what could be loaded only by running code, and arrays that other machines may not have."""
    kinds = (FunctionType, BuiltinFunctionType, MethodType, partial)
    functions = [getattr(thing, "__qualname__", repr(thing)) for thing in _holdings(model) if isinstance(thing, kinds)]
    if functions:
        problem = "it holds the {functions}, and a file could bring that back only by running code when it is loaded"
        advice = "Use a kernel by its name or {p.kernel:precomputed}, and NumPy's ufuncs (np.log1p) in pipelines."
        _cannot_save(problem, advice, functions=listed("function", functions))
    _check_no_memory(model, "the model cannot be saved")
    foreign = list(foreign_attributes(model))
    if foreign:
        problem = "the model cannot be saved: {attributes} are arrays of another library than NumPy"
        advice = "Save model.to_numpy(), which copies them to the host."
        raise InvalidTypeError(problem, attributes=listed("attribute", foreign), advice=advice)


def _check_no_memory(model: Any, doing: str) -> None:
    """Refuse pipelines that keep results in a folder: the next fit would unpickle them."""
    estimators = (thing for thing in _holdings(model) if isinstance(thing, BaseEstimator))
    places = (vars(estimator).get("memory") for estimator in estimators)
    memory = next((place for place in places if place is not None), None)
    if memory is not None:
        raise InvalidValueError(
            "{doing}: a pipeline keeps results in {memory}, a folder of pickles, which can run code when they are read",
            doing=doing,
            memory=shown(memory),
            advice="Set {p.memory:None} before saving, and set it again after loading.",
        )


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
