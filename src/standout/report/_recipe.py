"""How to do the same in a few lines of Python."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from standout.report._subject import Subject


def recipe(subject: Subject) -> str:
    """Write the fit as code, with the options that are not the default ones."""
    whole, model = subject.whole, subject.model
    steps = [step for _, step in whole.steps] if isinstance(whole, Pipeline) else [model]
    lines = [f"from {_home(type(step))} import {type(step).__name__}" for step in steps[:-1]]
    names = ", ".join([type(model).__name__, *(["make_pipeline"] if len(steps) > 1 else [])])
    made = ", ".join(_constructed(step) for step in steps)
    by_label = getattr(model, "target_label", None) is not None
    n_backgrounds = len(subject.rows) - 1
    if by_label:
        fit = "fit(X, y)  # a table with one row per sample, and the label of each"
    elif n_backgrounds == 0:
        fit = "fit(target)  # a table with one row per sample"
    elif n_backgrounds == 1:
        fit = "fit(target, background=background)  # tables with the same columns"
    else:
        listed = ", ".join(f"background_{number}" for number in range(1, n_backgrounds + 1))
        fit = f"fit(target, background=[{listed}])  # tables with the same columns"
    last = "model[-1]" if len(steps) > 1 else "model"
    lines += [
        f"from standout import {names}",
        f"model = make_pipeline({made})" if len(steps) > 1 else f"model = {made}",
        f"model.{fit}",
        f"scores = model.transform({'X' if by_label else 'target'})",
        f"print({last}.eigenvalues_{'' if subject.is_kernel else f', {last}.patterns_'})",
    ]
    return "\n".join(lines)


def _home(kind: type) -> str:
    """Give the public module of a class: that of scikit-learn's own lies before the first underscore."""
    parts = kind.__module__.split(".")
    private = [index for index, part in enumerate(parts) if part.startswith("_")]
    return ".".join(parts[: private[0]] if private else parts)


def _constructed(step: Any) -> str:
    defaults = {name: given.default for name, given in inspect.signature(type(step).__init__).parameters.items()}
    options = {
        name: value
        for name, value in step.get_params(deep=False).items()
        if name in defaults and not _same(value, defaults[name])
    }
    return f"{type(step).__name__}({', '.join(f'{name}={_written(value)}' for name, value in options.items())})"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and np.ndim(value) == 0 and bool(value == default))


def _written(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= 10 else ...
    if callable(value):
        return str(getattr(value, "__name__", "..."))
    if value is ...:
        return "..."
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
