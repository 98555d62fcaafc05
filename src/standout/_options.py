"""The parameters of the estimators in one table: values, default, methods and help.

The allowed values of a parameter are written once, as a docstring writes them. Docstrings, checks and the options of
the command line are made from these words, so that all three agree. Only the standard library is imported here: the
help of the command line has to be fast.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from numbers import Integral, Real
from typing import Any, TypeVar

from standout._messages import InvalidTypeError, InvalidValueError

Cls = TypeVar("Cls", bound=type)

METHODS = {
    "dpca": "discriminative PCA",
    "cpca": "contrastive PCA",
    "kdpca": "kernel discriminative PCA",
    "kcpca": "kernel contrastive PCA",
}
ALL, LINEAR, KERNELIZED = tuple(METHODS), ("dpca", "cpca"), ("kdpca", "kcpca")
POLYNOMIALS = ("poly", "homogeneous_polynomial", "inhomogeneous_polynomial")
KERNELS = ("rbf", "gaussian", "laplacian", "linear", *POLYNOMIALS, "cosine", "sigmoid", "chi2")
# Formats of files by extension, and the ways to treat missing values.
EXTENSIONS = {
    **dict.fromkeys((".csv", ".csv.gz", ".txt", ".txt.gz"), "csv"),
    **dict.fromkeys((".tsv", ".tsv.gz", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".ipc", ".feather"), "arrow"),
    **{f".{kind}": kind for kind in ("npy", "npz", "mat", "h5ad", "zarr")},
}
FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))
MISSING = ("error", "drop-rows", "mean", "median", "zero")
_NUMBERS = re.compile(r"(int|float)(?: (>=?) (\d+)| in ([\[(])(\d+), (\d+))?")


@dataclass(frozen=True)
class Option:
    """One parameter: its name, the methods that have it, its default, and its allowed values.

    Attributes
    ----------
    phrase : str
        The allowed values, as a docstring writes them: numbers first, then words in quotes, types, and None.
    command : bool
        Whether the parameter is an option of the command line.
    """

    name: str
    methods: tuple[str, ...]
    default: Any
    phrase: str
    command: bool = True

    @property
    def help(self) -> str:
        """The effect of the parameter, in one to three sentences."""
        return _HELP[self.name]

    @property
    def text(self) -> str:
        """The entry of the parameter in the section Parameters of a docstring."""
        default = f'"{self.default}"' if isinstance(self.default, str) else self.default
        lines = textwrap.wrap(self.help, 112, break_on_hyphens=False)
        return "\n".join([f"{self.name} : {self.phrase}, default={default}", *(f"    {line}" for line in lines)])

    @cached_property
    def number(self) -> type[int] | type[float] | None:
        """The type of the numbers that are allowed."""
        return int if "int" in self.types else float if "float" in self.types else None

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words that are allowed."""
        return tuple(re.findall('"(.*?)"', self.phrase))

    @cached_property
    def types(self) -> set[str]:
        """The names of the types that are allowed, and None."""
        return set(re.findall(r"[\w-]+", re.sub('".*?"', "", self.phrase)))

    def allows(self, value: Any) -> bool:
        """Return whether a value is allowed."""
        found, is_number = _NUMBERS.match(self.phrase), isinstance(value, Integral if self.number is int else Real)
        if found is not None and is_number:
            least, most, is_open = float(found[3] or found[5] or "-inf"), float(found[6] or "inf"), found[4] == "("
            above = value > least if is_open or found[2] == ">" else value >= least
            return above and (value < most if is_open else value <= most) and not isinstance(value, bool)
        if isinstance(value, str) and value in self.words:
            return True
        names = {"None", "object"} if value is None else {kind.__name__ for kind in type(value).__mro__}
        names |= {"callable"} if callable(value) else set()
        names |= {"array-like"} if hasattr(value, "__len__") and not isinstance(value, str | bytes | dict) else set()
        return not names.isdisjoint(self.types)


_HELP = {
    "n_components": 'Number of components; None means all. "auto" tests one after the other by '
    "permutation, and keeps those before the first that is not distinguishable from chance.",
    "kernel": f"The kernel: {', '.join(KERNELS)}. In Python also another kernel of scikit-learn, a callable of two "
    'rows, "precomputed", a pair of a name and a dict of parameters, or a list of kernels to be summed.',
    "gamma": "Parameter of the kernels rbf, poly, laplacian, sigmoid and chi2. Default: for rbf and "
    "laplacian from the distances between rows, for the others as in scikit-learn.",
    "degree": "Degree of a polynomial kernel.",
    "coef0": "Constant of the polynomial and sigmoid kernels.",
    "kernel_params": 'Further parameters of the kernel, such as ``{"bandwidth": 5.0}`` of "gaussian" or those of a '
    "callable.",
    "kernel_weights": 'Weights of a list of kernels: one number for each, "learn" for weights that are learned '
    "together with the components and judged on held-out rows, or None for equal weights.",
    "shrinkage": "How far the covariance of the background is pulled towards a multiple of the identity: from 0, the "
    'plain ratio, to 1, PCA of the target. "auto" chooses a value by held-out rows. "ledoit-wolf" is the estimate of '
    "Ledoit and Wolf for each background.",
    "epsilon": 'Ridge that is added to the background: ε of the paper. "auto" chooses a value by held-out rows.',
    "alpha": 'How many times the covariance of the background is subtracted. "auto" chooses a value by held-out rows.',
    "background_weights": 'Weight of each background, scaled to sum 1; equal weights if none are given. "worst-case" '
    'is the mixture with the smallest leading ratio, "joint" the background with the largest one, "spectral" the '
    "mixture around which the view changes least.",
    "center": 'The point about which the target varies: "own" is its mean, "background" the mean of the backgrounds, '
    "so that a shift of the mean stands out, too.",
    "scale": 'Divide each column by its standard deviation, within the datasets ("pooled") or within the backgrounds '
    '("background"). Every fold and every permutation computes the scale again.',
    "n_columns": 'Number of columns that the components may use. "auto": the fewest columns whose ratio is as good as '
    "the best.",
    "smooth": "Neighbouring columns, over which components are smoothed: a chain, or the height and width of an image. "
    "In Python also a symmetric matrix of weights, or a pair of a graph and a strength.",
    "approximation": 'How rows become coordinates: "exact" uses the whole kernel matrix, "pivoted" chooses landmarks '
    'among rows. "auto" is "exact" up to 3,000 rows. In Python also an array of landmarks.',
    "rank": "Number of coordinates. The default is 1,000, or as many as `tol` needs in the exact case.",
    "tol": "Relative tolerance up to which the kernel matrix is factorised.",
    "robust": '"rows": rows far from all others have a smaller weight. "cells": single values far from the others of '
    "their column are first moved to the limit of five robust standard deviations from its median.",
    "cv": "Number of folds for the held-out ratio and all choices by held-out rows; None fits without folds.",
    "target_label": "With a label, ``fit(X, y)`` uses the rows of this label as target and the rows of each other "
    "label as one background.",
    "solver": 'How the eigenproblem is solved: "dense" by LAPACK, "iterative" for a few components of large problems. '
    "Both have the same answer.",
    "random_state": "Seed of all random numbers. Without a seed, equal data have equal results, too.",
}
_KERNELS = ", ".join(f'"{name}"' for name in KERNELS)
_TABLE = (
    Option("n_components", ALL, 2, 'int >= 1, "auto" or None'),
    Option("kernel", KERNELIZED, "rbf", f"{_KERNELS}, str, callable, tuple or list"),
    Option("gamma", KERNELIZED, None, "float > 0 or None"),
    Option("degree", KERNELIZED, 3, "float > 0"),
    Option("coef0", KERNELIZED, 1, "float"),
    Option("kernel_params", KERNELIZED, None, "dict or None", command=False),
    Option("kernel_weights", KERNELIZED, None, '"learn", array-like or None', command=False),
    Option("shrinkage", ("dpca",), "auto", 'float in [0, 1], "auto", "ledoit-wolf" or None'),
    Option("epsilon", ("kdpca",), "auto", 'float > 0 or "auto"'),
    Option("alpha", ("cpca", "kcpca"), "auto", 'float >= 0 or "auto"'),
    Option("background_weights", ALL, None, '"worst-case", "joint", "spectral", array-like or None'),
    Option("center", ALL, "own", '"own" or "background"'),
    Option("scale", LINEAR, None, '"pooled", "background" or None'),
    Option("n_columns", LINEAR, None, 'int >= 1, "auto" or None'),
    Option("smooth", ("dpca",), None, '"chain", tuple, array-like, sparse matrix or None'),
    Option("approximation", KERNELIZED, "auto", '"auto", "exact", "pivoted" or array-like'),
    Option("rank", KERNELIZED, None, "int >= 1 or None"),
    Option("tol", KERNELIZED, None, "float in (0, 1) or None", command=False),
    Option("robust", ALL, None, '"rows", "cells" or None'),
    Option("cv", ALL, 5, "int in [2, 1000] or None"),
    Option("target_label", ALL, None, "object", command=False),
    Option("solver", LINEAR, "auto", '"auto", "dense" or "iterative"'),
    Option("random_state", ALL, None, "int in [0, 4294967295], RandomState instance or None"),
)
OPTIONS: dict[str, Option] = {option.name: option for option in _TABLE}
# Parameters of ``fit``, of the readers and of private releases that are also options of the command line.
_FURTHER = (
    *("background", "columns", "condition_column", "delta", "decimal", "delimiter", "encoding", "exclude", "format"),
    *("header", "id_column", "image_shape", "max_rows", "missing", "log1p", "radius", "strict", "variable", "where"),
    *("subject_column", "weight_column", "person_column", "adjust", "n_draws"),
)
OPTION_NAMES: dict[str, str] = {
    **{name: f"--{name.replace('_', '-')}" for name in (*OPTIONS, *_FURTHER)},
    **dict.fromkeys(("groups", "background_groups"), "--subject-column"),
    **dict.fromkeys(("sample_weight", "background_sample_weight"), "--weight-column"),
    "background_adjust": "--adjust",
    "label": "--label-column",
    **dict.fromkeys(("kernel_params", "bandwidth"), "--bandwidth"),
    "labels": "--condition-column",
    "length": "--blocks",
    "target_label": "--target",
}


@cache
def options_for(*methods: str) -> tuple[Option, ...]:
    """Return the parameters that one of the methods has, in the order of the signature."""
    return tuple(option for option in OPTIONS.values() if any(method in option.methods for method in methods))


def check_parameters(method: str, values: Mapping[str, Any]) -> None:
    """Raise an error for the first invalid parameter of an estimator, with the allowed values."""
    for option in options_for(method):
        value = values.get(option.name, option.default)
        if value is not option.default and not option.allows(value):
            kind = InvalidValueError if isinstance(value, str | int | float | None) else InvalidTypeError
            raise kind("cannot be used", parameter=option.name, value=value, advice=f"Use {option.phrase}.")


def check_weights(parameter: str, given: Any, count: int, what: str) -> list[float]:
    """Check the weights of backgrounds or kernels, and scale them to sum 1; equal weights if none are given."""
    import numpy as np

    weights = np.ones(count) if given is None else np.asarray(given, dtype=np.float64).ravel()
    if weights.shape != (count,) or np.any(~(weights >= 0)) or not 0 < weights.sum() < np.inf:
        problem = f"is not one non-negative number for each of {count} {what}, with a positive sum"
        raise InvalidValueError(problem, parameter=parameter, value=given, advice="Give such numbers.")
    return (weights / weights.sum()).tolist()


def documented(method: str) -> Callable[[Cls], Cls]:
    """Put the entries of a method's parameters into a docstring, in place of ``%(parameters)s``."""

    def decorate(cls: Cls) -> Cls:
        entries = "\n".join(option.text for option in options_for(method))
        # The operator % cannot be used, because docstrings contain percent signs.
        pattern, text = r"(?m)^( *)%\(parameters\)s$", cls.__doc__ or ""
        cls.__doc__ = re.sub(pattern, lambda match: textwrap.indent(entries, match[1]), text)
        return cls

    return decorate
