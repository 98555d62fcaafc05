"""Sums over rows, as plain arrays and back: nothing in a stored sum can run code."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from standout._arrays import Array, is_sparse

# The records that a sum can consist of, and where they live; a stored sum names them, and no others are made.
_HOMES = {
    "NormSums": "standout.moments",
    "ScatterMoments": "standout.moments",
    "RootMoments": "standout.moments",
    "RowMoments": "standout.moments",
    "CoordinateSums": "standout.estimators._coordinates",
}

# Packages whose code changes with their version, which is part of a key.
_VERSIONED = ("standout", "numpy", "scipy", "sklearn")


def flattened(thing: Any, arrays: dict[str, Array]) -> Any:
    """Describe a sum in terms of JSON, and put its arrays aside.

    Raises
    ------
    TypeError
        If there is something in it that is not known here.
    """
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, np.generic):
        return thing.item()
    if isinstance(thing, np.ndarray) and thing.dtype.kind in "biuf":
        name = f"array {len(arrays)}"
        arrays[name] = thing
        return {"array": name}
    if is_sparse(thing):
        parts = (thing.data, thing.indices, thing.indptr)
        return {"rows": [flattened(part, arrays) for part in parts], "shape": list(thing.shape)}
    name = type(thing).__name__
    if name == "RowMoments":
        return {"record": name, "blocks": [flattened(block, arrays) for block in thing.blocks], "single": thing.single}
    if name in _HOMES and is_dataclass(thing):
        return {
            "record": name,
            "fields": {one.name: flattened(getattr(thing, one.name), arrays) for one in fields(thing)},
        }
    raise TypeError(f"a {name} is no sum that can be stored")


def restored(tree: Any, arrays: Mapping[str, Array]) -> Any:
    """Make a sum of what `flattened` gave."""
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "rows" in tree:
        return sparse.csr_array(tuple(restored(part, arrays) for part in tree["rows"]), shape=tuple(tree["shape"]))
    record = getattr(import_module(_HOMES[tree["record"]]), tree["record"])
    if "blocks" in tree:
        return record(*(restored(block, arrays) for block in tree["blocks"]), single=tree["single"])
    return record(**{name: restored(part, arrays) for name, part in tree["fields"].items()})


def key_of(thing: Any) -> str:
    """Give a word that is the same for equal functions of rows, in whichever process.

    Records are taken by their fields, so that what they have worked out meanwhile does not count, nor does a field
    that is not compared. A step of a pipeline is taken by all that it holds.

    Raises
    ------
    TypeError
        If there is code in a step that may change without a change of its name.
    """
    if is_dataclass(thing) and not isinstance(thing, type):
        of = {one.name: key_of(getattr(thing, one.name)) for one in fields(thing) if one.compare}
        return joblib.hash([type(thing).__module__, type(thing).__qualname__, of])
    if isinstance(thing, tuple | list):
        return joblib.hash([type(thing).__name__, *map(key_of, thing)])
    if hasattr(thing, "transform"):
        _Names(io.BytesIO(), buffer_callback=lambda _: None).dump(thing)
    return joblib.hash(thing)


class _Names(pickle.Pickler):
    """Looks at the names of classes and functions in a thing: a name must stand for the same code tomorrow."""

    def __init__(self, file: io.BytesIO, **options: Any) -> None:
        super().__init__(file, protocol=5, **options)

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type | FunctionType):
            package = thing.__module__.partition(".")[0]
            if package not in _VERSIONED and package not in sys.stdlib_module_names:
                raise TypeError(f"{thing.__qualname__} of {thing.__module__} is code that may change under its name")
        return NotImplemented
