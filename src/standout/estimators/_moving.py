"""Fitted models from one array library to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from standout._xp import looks_foreign

Model = TypeVar("Model")


def moved(model: Model, convert: Callable[[Any], Any]) -> Model:
    """Give a copy of a model in which every array is what `convert` makes of it."""
    result = copy(model)
    for name, value in vars(model).items():
        setattr(result, name, _converted(value, convert))
    return result


def foreign_attributes(model: Any) -> Iterator[str]:
    """Name the attributes of a model, and of the steps of a pipeline, that hold arrays of other libraries."""
    for name, value in vars(model).items():
        found: list[Any] = []
        _converted(value, found.append)
        if any(looks_foreign(array) for array in found):
            yield name
    for _, step in getattr(model, "steps", []):
        if hasattr(step, "__dict__"):
            yield from foreign_attributes(step)


def _converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.ndarray) or looks_foreign(value):
        return convert(value)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(_converted(part, convert) for part in value)
    if is_dataclass(value) and not isinstance(value, type) and not sparse.issparse(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **{name: _converted(part, convert) for name, part in parts.items()})
    return value
