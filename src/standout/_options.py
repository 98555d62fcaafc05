"""The parameters of the estimators in one table: values, default, methods and help.

The table feeds scikit-learn's ``_parameter_constraints``, the docstrings and the options of the command line, so that
they cannot differ. Nothing is imported here but the standard library: the help of the command line has to be fast.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
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
WEIGHT_RULES = ("worst-case", "joint", "spectral")
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
# Names of other values in docstrings and messages.
_PHRASES = {
    "array-like": "array-like",
    "random_state": "RandomState instance",
    "sparse matrix": "sparse matrix",
    "no_validation": "object",
    callable: "callable",
    dict: "dict",
    list: "list",
    str: "str",
    tuple: "tuple",
}
_WIDTH = 120


@dataclass(frozen=True)
class Number:
    """Numbers from `least` to `most`, both included; `above` excludes `least`."""

    kind: type[int] | type[float]
    least: float | None = None
    most: float | None = None
    above: bool = False

    @property
    def phrase(self) -> str:
        """The interval as a docstring writes it."""
        name = "int" if self.kind is int else "float"
        if self.least is not None and self.most is not None:
            return (
                f"{name} in {'(' if self.above else '['}{self.least:.10g}, {self.most:.10g}{')' if self.above else ']'}"
            )
        return name if self.least is None else f"{name} {'>' if self.above else '>='} {self.least:g}"


@dataclass(frozen=True)
class Option:
    """One parameter: its name, the methods that have it, its default, and its allowed values.

    Attributes
    ----------
    number : Number or None
        Numbers that are allowed.
    words : tuple of str
        Words that are allowed.
    none : bool
        Whether None is allowed.
    also : tuple
        Further types, in the form of scikit-learn's constraints.
    several : bool
        Whether the command line accepts numbers separated by commas.
    command : bool
        Whether the command line has it.
    """

    name: str
    methods: tuple[str, ...]
    default: Any
    number: Number | None = None
    words: tuple[str, ...] = ()
    none: bool = False
    also: tuple[Any, ...] = ()
    several: bool = False
    command: bool = True

    @property
    def help(self) -> str:
        """What the parameter does, in one to three sentences."""
        return _HELP[self.name]

    @property
    def phrase(self) -> str:
        """The allowed values, as a docstring writes them."""
        parts = [] if self.number is None else [self.number.phrase]
        parts += [f'"{word}"' for word in self.words]
        parts += [_PHRASES[kind] for kind in self.also if kind is not str or not self.words]
        parts += ["None"] if self.none or "random_state" in self.also else []
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"

    @property
    def text(self) -> str:
        """The entry of a docstring's section Parameters."""
        default = f'"{self.default}"' if isinstance(self.default, str) else self.default
        lines = textwrap.wrap(self.help, _WIDTH - 8, break_on_hyphens=False)
        return "\n".join([f"{self.name} : {self.phrase}, default={default}", *(f"    {line}" for line in lines)])

    def constraints(self) -> list[Any]:
        """Return the allowed values as scikit-learn writes them."""
        from numbers import Integral, Real

        from sklearn.utils._param_validation import Interval, StrOptions

        made: list[Any] = [None] if self.none else []
        if self.number is not None:
            number, whole = self.number, self.number.kind is int
            left = "neither" if number.above else "left"
            closed = left if number.most is None or number.above else "both"
            made.append(Interval(Integral if whole else Real, number.least, number.most, closed=closed))
        if self.words and str not in self.also:
            made.append(StrOptions(set(self.words)))
        return [*made, *self.also]


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
    'among rows, "fourier" draws random features. "auto" is "exact" up to 3,000 rows. In Python also an array of '
    "landmarks.",
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
_TABLE = (
    Option("n_components", ALL, 2, Number(int, 1), words=("auto",), none=True),
    Option("kernel", KERNELIZED, "rbf", words=KERNELS, also=(str, callable, tuple, list)),
    Option("gamma", KERNELIZED, None, Number(float, 0, above=True), none=True),
    Option("degree", KERNELIZED, 3, Number(float, 0, above=True)),
    Option("coef0", KERNELIZED, 1, Number(float)),
    Option("kernel_params", KERNELIZED, None, none=True, also=(dict,), command=False),
    Option("kernel_weights", KERNELIZED, None, words=("learn",), none=True, also=("array-like",), command=False),
    Option("shrinkage", ("dpca",), "auto", Number(float, 0, 1), words=("auto", "ledoit-wolf"), none=True),
    Option("epsilon", ("kdpca",), "auto", Number(float, 0, above=True), words=("auto",)),
    Option("alpha", ("cpca", "kcpca"), "auto", Number(float, 0), words=("auto",)),
    Option("background_weights", ALL, None, words=WEIGHT_RULES, none=True, also=("array-like",), several=True),
    Option("center", ALL, "own", words=("own", "background")),
    Option("scale", LINEAR, None, words=("pooled", "background"), none=True),
    Option("n_columns", LINEAR, None, Number(int, 1), words=("auto",), none=True),
    Option("smooth", ("dpca",), None, words=("chain",), none=True, also=(tuple, "array-like", "sparse matrix")),
    Option("approximation", KERNELIZED, "auto", words=("auto", "exact", "pivoted", "fourier"), also=("array-like",)),
    Option("rank", KERNELIZED, None, Number(int, 1), none=True),
    Option("tol", KERNELIZED, None, Number(float, 0, 1, above=True), none=True, command=False),
    Option("robust", ALL, None, words=("rows", "cells"), none=True),
    Option("cv", ALL, 5, Number(int, 2, 1000), none=True),
    Option("target_label", ALL, None, also=("no_validation",), command=False),
    Option("solver", LINEAR, "auto", words=("auto", "dense", "iterative")),
    Option("random_state", ALL, None, Number(int, 0, 2**32 - 1), none=True, also=("random_state",)),
)
OPTIONS: dict[str, Option] = {option.name: option for option in _TABLE}
# Parameters of ``fit``, of the readers and of private releases, as the command line calls them.
_FURTHER = (
    *("background", "columns", "condition_column", "delta", "decimal", "delimiter", "encoding", "exclude", "format"),
    *("header", "id_column", "image_shape", "max_rows", "missing", "log1p", "radius", "strict", "variable", "where"),
    *("subject_column", "weight_column", "person_column", "adjust"),
)
OPTION_NAMES: dict[str, str] = {
    **{name: f"--{name.replace('_', '-')}" for name in (*OPTIONS, *_FURTHER)},
    **dict.fromkeys(("groups", "background_groups"), "--subject-column"),
    **dict.fromkeys(("sample_weight", "background_sample_weight"), "--weight-column"),
    "background_adjust": "--adjust",
    "label": "--label-column",
    **dict.fromkeys(("kernel_params", "bandwidth"), "--bandwidth"),
    "labels": "--condition-column",
    "n_draws": "--n-draws",
    "length": "--blocks",
    "target_label": "--target",
}


def options_for(*methods: str) -> list[Option]:
    """Return the parameters that one of the methods has, in the order of the signature."""
    return [option for option in OPTIONS.values() if any(method in option.methods for method in methods)]


@cache
def _checks(method: str) -> list[tuple[Option, list[Any]]]:
    """Return the checked parameters of a method, with scikit-learn's constraints."""
    from sklearn.utils._param_validation import make_constraint

    checked = [option for option in options_for(method) if "no_validation" not in option.also]
    return [(option, [make_constraint(one) for one in option.constraints()]) for option in checked]


def check_parameters(method: str, values: Mapping[str, Any]) -> None:
    """Raise an error for the first invalid parameter of an estimator, with the allowed values."""
    for option, allowed in _checks(method):
        if option.name not in values:
            continue
        value = values[option.name]
        if isinstance(value, bool) or not any(one.is_satisfied_by(value) for one in allowed):
            plain = value is None or isinstance(value, str | int | float)
            kind = InvalidValueError if plain else InvalidTypeError
            raise kind("cannot be used", parameter=option.name, value=value, advice=f"Use {option.phrase}.")


def check_weights(parameter: str, given: Any, count: int, what: str) -> list[float]:
    """Check the weights of backgrounds or kernels, and scale them to sum 1; equal weights if none are given."""
    import numpy as np

    weights = np.ones(count) if given is None else np.asarray(given, dtype=np.float64).ravel()
    if weights.shape != (count,) or np.any(~(weights >= 0)) or not 0 < weights.sum() < np.inf:
        problem = f"is not one non-negative number for each of {count} {what}, with a positive sum"
        raise InvalidValueError(problem, parameter=parameter, value=given, advice="Give such numbers.")
    shares: list[float] = (weights / weights.sum()).tolist()
    return shares


def documented(method: str) -> Callable[[Cls], Cls]:
    """Fill the docstring of an estimator from the table.

    ``%(shrinkage)s`` becomes the entry of one parameter, ``%(parameters)s`` the entries of all.
    """
    every = "\n".join(option.text for option in options_for(method))

    def fill(match: re.Match[str]) -> str:
        text = every if match["name"] == "parameters" else OPTIONS[match["name"]].text
        return textwrap.indent(text, match["indent"])

    def decorate(cls: Cls) -> Cls:
        # Not the operator %, because docstrings contain percent signs.
        cls.__doc__ = re.sub(r"(?m)^(?P<indent> *)%\((?P<name>\w+)\)s$", fill, cls.__doc__ or "")
        return cls

    return decorate
