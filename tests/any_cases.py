"""Random cases drawn by a seed: forms of data, units, options, and arrays such as weights or groups."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import data_forms
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    scan,
)

OPTIONS: dict[str, tuple[Any, ...]] = {
    "n_components": (None, 1, 1, 1, 1, 1, 1, 2, 2, 3, 40, "auto", "auto"),
    "shrinkage": ("auto", "auto", None, None, 0.0, 0.3, 1.0, "ledoit-wolf"),
    "alpha": ("auto", "auto", 0.0, 1.0, 1e9),
    "epsilon": ("auto", "auto", 1e-3, 1e-300, 1e300),
    "gamma": (None, None, None, 1e-3, 1e-3, 1.0, 1.0, 1e-300, 1e300),
    "kernel": ("rbf", "rbf", "laplacian", "poly", "linear", "cosine", "sigmoid", "chi2", ["rbf", "linear"]),
    "degree": (2, 3, 0.5, 500),
    "approximation": ("auto", "auto", "pivoted"),
    "rank": (None, None, 1, 5, 10**6),
    "background_weights": (None, "worst-case", "joint", "spectral", "joint", [1.0, 2.0]),
    "center": ("own", "own", "background"),
    "scale": (None, None, "pooled", "background"),
    "n_columns": (None, None, 2, 3, "auto"),
    "smooth": (None, "chain"),
    "robust": (None, "rows", "cells"),
    "cv": (5, 5, 2, 3, None, 7),
    "solver": ("auto", "auto", "dense", "iterative"),
    "random_state": (None, 0),
}


def _values(rng: Any, style: str, count: int, width: int, part: int) -> np.ndarray:
    rows = rng.normal(size=(count, width)) * (rng.uniform(1, 4, size=width) if part == 0 else 1.0)
    if style == "counts":
        rows = rng.poisson(0.2, size=(count, width)).astype(float)
    elif style == "one-hot":
        rows = np.eye(4 * width)[rng.integers(width, size=count) + part % 2 * width, :width]
    elif style == "repeated rows":
        rows = rows[rng.integers(min(count, 3), size=count)]
    elif style == "constant columns":
        rows[:, rng.random(width) < 0.4] = 3.0
    elif style == "constant":
        rows = np.full((count, width), 0.1)
    elif style == "one direction":
        rows = np.outer(rows[:, 0], np.arange(1, width + 1))
    elif style == "heavy tails":
        rows = rows / rng.uniform(1e-4, 1, size=(count, 1))
    elif style in ("nan", "inf"):
        rows[rng.integers(count), rng.integers(width)] = float(style)
    return rows


def _single(rows: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return rows.astype(np.float32)


def _memmap(rows: np.ndarray) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, rows.dtype, "w+", shape=rows.shape)
        mapped[:] = rows
        return mapped


# The types in which numbers are stored.
KINDS: dict[str, Any] = {
    "single": _single,
    "whole": lambda rows: np.round(np.clip(np.nan_to_num(rows), -1e15, 1e15)).astype(np.int64),
    "byte": lambda rows: np.clip(np.nan_to_num(rows), 0, 255).astype(np.uint8),
    "truth": lambda rows: rows > 0,
}
FORMS: dict[str, Any] = {
    **data_forms.FORMS,
    # The form of data_forms would skip the test without PyTorch.
    "tensor": lambda rows: import_module("torch").tensor(rows),
    "every other row": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "memmap": _memmap,
    # The fit gets the rows in two parts.
    "partial_fit": np.array,
}


@cache
def is_there(form: str) -> bool:
    """Return whether the packages that make a form are installed."""
    rows = np.eye(4)
    try:
        if form in FORMS:
            FORMS[form](rows)
        else:
            with tempfile.TemporaryDirectory() as folder:
                scan(data_forms.write(rows, Path(folder, form)))
    except ImportError:
        return False
    return True


STYLES = ("normal",) * 12 + (
    "counts",
    "one-hot",
    "repeated rows",
    "constant columns",
    "one direction",
    "heavy tails",
) * 2
STYLES += ("constant", "nan", "inf")


@dataclass
class Case:
    """Datasets before they are multiplied by the units, the units, and the arguments of a fit."""

    kind: Any
    parts: list[np.ndarray]
    units: Any
    means: Any
    stored: str
    form: str
    options: dict[str, Any]
    beside: dict[str, Any]

    def datasets(self, units: bool = True) -> list[np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):
            return [(part + self.means) * (self.units if units else 1.0) for part in self.parts]


def drawn(seed: int) -> Case:
    """Draw a case."""
    rng = np.random.default_rng(seed)

    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    # For some cases, SciPy computes the answer, too.
    is_known = rng.random() < 0.4
    kind = pick(DiscriminativePCA, DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA)
    kind = pick(DiscriminativePCA, ContrastivePCA) if is_known else kind
    # The largest widths exceed the number of rows.
    width, style = pick(1, 2, 3, 6, 6, 6, 12, 30, 90), pick(*STYLES)
    counts = [
        pick(3, 10, 15, 20, 20, 40, 40, 60) if rng.random() < 0.995 else pick(0, 1, 2)
        for _ in range(pick(1, 2, 2, 2, 3, 4))
    ]
    parts = [_values(rng, style if count else "normal", count, width, place) for place, count in enumerate(counts)]
    powers = [rng.uniform(-12, 12, size=width), rng.uniform(-150, 150, size=width), rng.uniform(-60, 60)]
    stored = pick("double", "double", "double", "double", *KINDS)
    units = pick(1.0, 1.0, *(10.0**power for power in (powers[0], *powers, rng.uniform(-200, 200))))
    units = units if stored == "double" else pick(1.0, 30.0, *(10.0 ** rng.uniform(-3, 12, size=(2, width))))
    means = pick(0.0, 0.0, 5.0, 1e6, 10.0 ** rng.uniform(0, 7, size=width))
    names = set(kind().get_params()) - {"target_label", "kernel_params", "kernel_weights", "coef0", "tol"}
    names &= {"center", "scale", "solver", "cv", "background_weights"} if is_known else names
    options = {name: pick(*OPTIONS[name]) for name in sorted(names) if rng.random() < (0.5 if is_known else 0.2)}
    if is_known:
        options |= {
            "n_components": pick(1, 1, 2),
            **({"shrinkage": pick(None, 0.0, 0.3)} if kind is DiscriminativePCA else {"alpha": pick(0.0, 1.0, 3.0)}),
        }
    if isinstance(options.get("background_weights"), list) or (is_known and "background_weights" in options):
        options["background_weights"] = rng.uniform(size=max(len(counts) - 1, 1)).tolist()
    if width == 1 and options.get("n_components") == 2:
        del options["n_components"]
    beside = {}
    extreme, n_covariates = 10.0 ** pick(*(0,) * 12, 90, -90, 200, -200), pick(1, 1, 1, 1, 1, 0, 2, 50)
    makers = {
        "sample_weight": lambda count: (
            pick(rng.uniform(0, 2, count), rng.uniform(0, 2, count) ** 9, rng.poisson(1, count)) * extreme
        ),
        "groups": lambda count: np.resize(rng.permutation(max(count // pick(2, 5), 2)), count),
        "adjust": lambda count: rng.normal(size=(count, n_covariates)) if n_covariates else np.ones((count, 1)),
    }
    for name, make in makers.items():
        if rng.random() < 0.15:
            own, *others = (make(count) for count in counts)
            beside |= {name: own} | ({f"background_{name}": others} if others else {})
    return Case(kind, parts, units, means, stored, pick(*FORMS, *data_forms.FILES), options, beside)


def given(parts: list[np.ndarray], form: str, folder: Path) -> list[Any]:
    """Return datasets in a form, or paths of files."""
    made = []
    with warnings.catch_warnings():
        # Ignore warnings of the libraries that make the forms.
        warnings.simplefilter("ignore")
        for part in parts:
            place = Path(tempfile.mkdtemp(dir=folder), form)
            # Text has the digits that double precision needs.
            part = part.astype(np.float64) if part.dtype == np.float32 and form.startswith("table") else part
            made.append(FORMS[form](part) if form in FORMS else data_forms.write(part, place))
    return made
