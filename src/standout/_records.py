"""Records as JSON and arrays, and back: text and numbers only, nothing that can run code.

A dataclass says in the metadata of its fields what their arrays look like (see `array`). What is read from a file is
checked against that and against the types of the fields, so that a damaged or forged file is refused before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from scipy import sparse

from standout._arrays import Array, is_sparse


class RecordError(ValueError):
    """A record whose parts do not fit together."""


class Kind(NamedTuple):
    """How records of one class are taken apart, and made again from their parts."""

    taken: Callable[[Any], Mapping[str, Any]]
    made: Callable[..., Any]


def fields_of(record: Any) -> dict[str, Any]:
    """Give the fields of a dataclass, which are the parts that it is taken apart into."""
    return {one.name: getattr(record, one.name) for one in fields(record)}


def flattened(thing: Any, arrays: dict[str, Array], known: Mapping[str, Kind], path: str = "record") -> Any:
    """Describe a record in terms of JSON, and put its arrays aside under the names of their places.

    Parameters
    ----------
    thing : object
        Made of numbers, text, None, arrays, tuples, lists, mappings, and records that are known.
    arrays : dict
        Where arrays are put.
    known : mapping of str to Kind
        Records by the names of their classes.
    path : str
        What arrays are named after.

    Raises
    ------
    TypeError
        If there is something else in it.

    Examples
    --------
    >>> import numpy as np
    >>> from standout._records import flattened
    >>> arrays = {}
    >>> flattened({"sums": [np.ones(2), 3]}, arrays, {}), list(arrays)
    ({'mapping': {'sums': [{'array': 'record.sums.0'}, 3]}}, ['record.sums.0'])
    """
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, np.generic):
        return thing.item()
    if isinstance(thing, np.ndarray) and thing.dtype.kind in "biuf":
        arrays[path] = thing
        return {"array": path}
    if is_sparse(thing):
        parts = {"data": thing.data, "indices": thing.indices, "indptr": thing.indptr}
        rows = {name: flattened(part, arrays, known, f"{path}.{name}") for name, part in parts.items()}
        return {"rows": rows, "shape": list(thing.shape)}
    if isinstance(thing, tuple | list):
        return [flattened(part, arrays, known, f"{path}.{number}") for number, part in enumerate(thing)]
    if isinstance(thing, Mapping):
        return {"mapping": {str(key): flattened(part, arrays, known, f"{path}.{key}") for key, part in thing.items()}}
    name = type(thing).__name__
    if name not in known:
        raise TypeError(f"a {name} is no record that can be stored")
    parts = {key: flattened(part, arrays, known, f"{path}.{key}") for key, part in known[name].taken(thing).items()}
    return {"record": name, "fields": parts}


def restored(tree: Any, arrays: Mapping[str, Array], known: Mapping[str, Kind]) -> Any:
    """Make a record of what `flattened` gave. Lists come back as tuples."""
    if isinstance(tree, list):
        return tuple(restored(part, arrays, known) for part in tree)
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "rows" in tree:
        rows = {name: restored(part, arrays, known) for name, part in tree["rows"].items()}
        return sparse.csr_array((rows["data"], rows["indices"], rows["indptr"]), shape=tuple(tree["shape"]))
    if "mapping" in tree:
        return {key: restored(part, arrays, known) for key, part in tree["mapping"].items()}
    parts = {name: restored(part, arrays, known) for name, part in tree["fields"].items()}
    return known[tree["record"]].made(**parts)


# --- checks ----------------------------------------------------------------------------------------------------------


def array(shape: str, *, finite: bool = False) -> dict[str, Any]:
    """Give the metadata of a field that holds an array, or a tuple with one entry for each row of an array.

    Parameters
    ----------
    shape : str
        A letter for each axis. Axes with the same letter have the same length: capitals in the whole tree of records,
        small letters within one record.
    finite : bool
        Whether all numbers must be finite.
    """
    return {"shape": shape, "finite": finite}


def check_record(record: Any, lengths: dict[str, int] | None = None) -> dict[str, int]:
    """Refuse a record, and the records in it, with a field of another type or shape than it declares.

    Parameters
    ----------
    record : dataclass
    lengths : dict, optional
        The lengths of axes that are known already, by their letters; new ones are added.

    Returns
    -------
    dict
        The lengths of all axes of this record.

    Raises
    ------
    RecordError
        If something does not fit.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> import numpy as np
    >>> from standout._records import array, check_record
    >>> @dataclass
    ... class Pair:
    ...     first: np.ndarray = field(metadata=array("n"))
    ...     second: np.ndarray = field(metadata=array("nk"))
    >>> check_record(Pair(np.ones(3), np.ones((3, 2))))
    {'n': 3, 'k': 2}
    >>> check_record(Pair(np.ones(3), np.ones((4, 2))))
    Traceback (most recent call last):
    ...
    standout._records.RecordError: 'second' has the wrong shape
    """
    lengths = {} if lengths is None else lengths
    # The names of types are those of the module that defines the class, which may be called by another module's name.
    hints = get_type_hints(type(record), type(record).__init__.__globals__)
    for one in fields(record):
        value = getattr(record, one.name)
        if not _fits(value, hints[one.name]):
            raise RecordError(f"{one.name!r} has the wrong type")
        if value is not None and "shape" in one.metadata:
            _check_shape(value, one, lengths)
        for inner in value if isinstance(value, tuple) else (value,):
            if is_dataclass(inner) and not isinstance(inner, type):
                shared = {letter: length for letter, length in lengths.items() if letter.isupper()}
                check_record(inner, shared)
                lengths.update({letter: length for letter, length in shared.items() if letter.isupper()})
    return lengths


def _check_shape(value: Any, declared: Field[Any], lengths: dict[str, int]) -> None:
    shape = value.shape if isinstance(value, np.ndarray) else (len(value),)
    letters = declared.metadata["shape"]
    expected = [lengths.setdefault(letter, length) for letter, length in zip(letters, shape, strict=False)]
    if len(letters) != len(shape) or list(shape) != expected:
        raise RecordError(f"{declared.name!r} has the wrong shape")
    if declared.metadata["finite"] and not np.isfinite(value).all():
        raise RecordError(f"{declared.name!r} has a number that is not finite")


def _fits(value: Any, hint: Any) -> bool:
    """Tell whether a value is of a type: what is not one of those that records have here is taken as it is."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(part, inner[0]) for part in value)
    if origin is np.ndarray:
        kinds = {"f": "f", "i": "iu", "u": "iu"}
        (number,) = get_args(inner[1])
        return isinstance(value, np.ndarray) and value.dtype.kind in kinds.get(np.dtype(number).kind, "")
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_fits(part, inner[1]) for part in value.values())
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return value is None if hint in (None, NoneType) else not isinstance(hint, type) or isinstance(value, hint)
