"""Checks of constructor parameters and settings that estimators and selection share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._checks import check_choice, check_number, check_whole, is_number
from standout._messages import InvalidTypeError, InvalidValueError, choices

SOLVERS = ("auto", "dense", "root", "reduced", "lanczos", "lobpcg")
WEIGHT_RULES = ("worst-case", "best", "spectral")
SHRINKAGE_RULES = ("auto", "held-out", "clusters")
EPSILON_RULES = ("scaled", "held-out", "clusters")
TESTS = ("auto", "analytic", "permutation")
SIDES = ("target", "background", "both")
APPROXIMATIONS = ("auto", "exact", "pivoted", "fourier")
ROBUST = ("rows", "cells")


def _check_most(value: int, parameter: str, most: int, things: str, advice: str = "Choose at most {limit}.") -> int:
    """Check a whole number that the data limit."""
    if value > most:
        problem = "is larger than {limit}, the number of {things}"
        raise InvalidValueError(problem, parameter=parameter, value=value, limit=most, advice=advice, things=things)
    return value


def check_n_components(n_components: Any, n_features: int, n_directions: int) -> int:
    """Check the number of components against what the data can give."""
    n_components = check_whole(n_components, "n_components")
    _check_most(n_components, "n_components", n_features, "features")
    if n_directions == 0:
        raise InvalidValueError(
            "no dataset varies: all rows of each are equal, or differ by so little that the square of it is 0",
            advice="Give rows that differ, or rescale them.",
        )
    span, advice = "directions that the centred rows can span", "Choose at most {limit}, or give more rows."
    return _check_most(n_components, "n_components", n_directions, span, advice)


def check_n_columns(n_columns: Any, n_features: int | None = None, n_components: int = 1) -> int | None:
    """Check the number of columns that components may have, against the data if these are known; None for a rule."""
    advice = "Give a number of columns, {v.auto}, or {v.None} for all."
    if isinstance(n_columns, str):
        check_choice(n_columns, "n_columns", ["auto"], advice)
        return None
    if n_columns is None:
        return None
    n_columns = check_whole(n_columns, "n_columns", advice=advice)
    if n_columns < n_components:
        raise InvalidValueError(
            "is less than {limit}, the number of components",
            parameter="n_columns",
            value=n_columns,
            limit=n_components,
            advice="Give at least {limit}.",
        )
    return n_columns if n_features is None else _check_most(n_columns, "n_columns", n_features, "features")


def is_auto(n_components: Any) -> bool:
    """Tell whether the number of components is to be found; a number is not checked yet."""
    if isinstance(n_components, str):
        check_choice(n_components, "n_components", ["auto"], "Give a number of at least 1, or {known}.")
    return isinstance(n_components, str)


def check_weights(weights: Any, n_backgrounds: int) -> Float:
    """Check the weights of the backgrounds and scale them to sum 1; None means equal weights."""
    if weights is None:
        return np.full(n_backgrounds, 1.0 / max(n_backgrounds, 1))
    advice = "Give a non-negative number for each of the {limit} background(s), or {v.None} for equal weights."
    numbers = _check_one_each(weights, "background_weights", n_backgrounds, advice)
    # Divided by the largest first: the sum of very large ones would be infinite.
    scaled: Float = numbers / numbers.max()
    return scaled / scaled.sum()


def _check_one_each(weights: Any, parameter: str, count: int, advice: str) -> Float:
    """Check a list of weights: finite, not negative, not all zero."""
    facts: dict[str, Any] = {"parameter": parameter, "value": weights, "limit": count, "advice": advice}
    numbers = _as_numbers(weights, facts)
    if numbers.shape != (count,):
        raise InvalidValueError("has shape {shape}, not ({limit},)", shape=numbers.shape, **facts)
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or not numbers.any():
        raise InvalidValueError("has a negative or non-finite number, or only zeros", **facts)
    return numbers


def _as_numbers(values: Any, facts: dict[str, Any]) -> Float:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError("is not a list of numbers", **facts) from None


def check_weight_rule(rule: str) -> str:
    """Check the name of a rule for the weights of the backgrounds."""
    return check_choice(rule, "background_weights", WEIGHT_RULES, "Give one of {known}, one number each, or {v.None}.")


def check_shrinkage(shrinkage: Any, *, rules: Sequence[str] = ("auto",)) -> float | None:
    """Check the shrinkage: a number in [0, 1], None for the name of a rule."""
    advice = "Use {known}, {v.None}, or a number from 0 to 1."
    if isinstance(shrinkage, str):
        if shrinkage in SHRINKAGE_RULES and shrinkage not in rules:
            problem = "is a rule of DiscriminativePCA alone"
            advice = "Pass the number that such a fit has found, float(shrinkage_[0]), or use {known} or {v.None}."
            check_choice(shrinkage, "shrinkage", rules, advice, problem)
        check_choice(shrinkage, "shrinkage", rules, advice)
        return None
    return 0.0 if shrinkage is None else check_number(shrinkage, "shrinkage", (0, 1), advice, known=choices(rules))


def check_held_out(held_out: Any) -> int | None:
    """Check the number of folds whose rows are held out in turn, or None for no such folds."""
    if held_out is None:
        return None
    return check_whole(held_out, "held_out", least=2, advice="Give a number of folds, at least {limit}, or {v.None}.")


def check_side(side: Any, **chosen: str) -> str:
    """Check which side is looked at; what was `chosen` by a rule of the target's side does not go with another."""
    side = check_choice(side, "side", SIDES)
    for parameter, rule in chosen.items() if side != "target" else ():
        raise InvalidValueError(
            "looks at what stands out in the target, and does not go with {p.side} {side}",
            parameter=parameter,
            value=rule,
            side=repr(side),
            advice="Choose it otherwise, or use {p.side:target}.",
        )
    return side


def check_solver(solver: Any, *, without: Sequence[str] = ()) -> str:
    """Check the name of a solver, of which some may not fit the problem."""
    known = [name for name in SOLVERS if name not in without]
    problem = "does not fit this method" if solver in without else "is unknown"
    return check_choice(solver, "solver", known, problem=problem)


def check_test(test: Any, parameter: str = "test", *, optional: bool = True) -> str | None:
    """Check the name of a test, or None for no test."""
    if test is None and optional:
        return None
    return check_choice(test, parameter, TESTS, "Use {known}, or {v.None}." if optional else "Use one of {known}.")


def check_level(level: Any, meaning: str, example: float) -> float:
    """Check a level: a number strictly between 0 and 1."""
    advice = "Give {meaning}, for example {example}."
    return check_number(level, "level", (0, 1), advice, strict=True, meaning=meaning, example=example)


def check_increasing(values: Any, parameter: str, advice: str, least: float, most: float) -> Float:
    """Check an increasing list of numbers within limits."""
    facts: dict[str, Any] = {"parameter": parameter, "value": values, "limit": (least, most), "advice": advice}
    numbers = _as_numbers(values, facts)
    if numbers.ndim == 0:
        raise InvalidTypeError("is not a list of numbers", **facts)
    if numbers.ndim != 1 or numbers.size == 0:
        raise InvalidValueError("has shape {shape}, which is not that of a list", shape=numbers.shape, **facts)
    if not np.all(np.isfinite(numbers)) or numbers.min() < least or numbers.max() > most:
        raise InvalidValueError("has a number that is not in range", **facts)
    if np.any(np.diff(numbers) <= 0.0):
        raise InvalidValueError("is not in increasing order", **facts)
    return numbers


def check_alpha(alpha: Any) -> float | Float | None:
    """Check α: a number, or an increasing list of numbers to choose from; None for the name of a rule."""
    advice = "Give a number of at least 0, an increasing list of such numbers, {v.auto} or {v.held_out}."
    if isinstance(alpha, str):
        check_choice(alpha, "alpha", ["auto", "held-out"], advice)
        return None
    if is_number(alpha):
        return check_number(alpha, "alpha", (0, np.inf), advice)
    return check_increasing(alpha, "alpha", advice, 0.0, np.inf)


def check_n_representatives(n_representatives: Any, n_candidates: int | None = None) -> int:
    """Check how many are to stand for all candidates, if these are known."""
    n_representatives = check_whole(n_representatives, "n_representatives")
    if n_candidates is None:
        return n_representatives
    advice = "Ask for at most {limit}, or give more candidates."
    return _check_most(n_representatives, "n_representatives", n_candidates, "candidates", advice)


# --- kernels ---------------------------------------------------------------------------------------------------------


def check_epsilon(epsilon: Any) -> float | None:
    """Check the ridge of the kernel methods: a positive number; None for the name of a rule."""
    advice = "Give a positive number, {v.scaled} (in units of the kernel's size), {v.held_out} or {v.clusters}."
    if isinstance(epsilon, str):
        check_choice(epsilon, "epsilon", EPSILON_RULES, advice)
        return None
    return check_number(epsilon, "epsilon", (0, np.inf), advice, strict=True)


def check_tolerance(tol: Any) -> float | None:
    """Check the tolerance of a factorisation; None leaves it to the kernel."""
    advice = "Give a small one, for example 1e-9, or {v.None}."
    return None if tol is None else check_number(tol, "tol", (0, 1), advice, strict=True)


def check_rank(rank: Any, n_rows: int | None = None) -> int | None:
    """Check the number of coordinates, also against the number of rows if this is known."""
    if rank is None:
        return None
    rank = check_whole(rank, "rank", advice="Give a number of at least {limit}, or {v.None}.")
    return rank if n_rows is None else _check_most(rank, "rank", n_rows, "rows", "Choose at most {limit}, or {v.None}.")


def check_approximation(approximation: Any) -> None:
    """Check the name of an approximation; anything that is not a name counts as landmarks."""
    if approximation is None or isinstance(approximation, str):
        advice = "Use one of {known}, or an array of landmarks."
        check_choice(approximation, "approximation", APPROXIMATIONS, advice)


def check_single_kernel(kernel_weights: Any, kernel_params: Any) -> None:
    """Check what goes with one kernel."""
    if kernel_weights is not None:
        raise InvalidValueError(
            "is for a list of kernels, but there is one",
            parameter="kernel_weights",
            value=kernel_weights,
            advice="Give {p.kernel} as a list, or {p.kernel_weights:None}.",
        )
    if kernel_params is not None and not isinstance(kernel_params, dict):
        advice = "Give one, for example {{'bandwidth': 5.0}}."
        raise InvalidTypeError("is not a dict", parameter="kernel_params", value=kernel_params, advice=advice)


def check_kernel_list(kernels: Sequence[Any]) -> None:
    """Check a list of kernels that are to be summed."""
    if not kernels:
        raise InvalidValueError("{p.kernel} is an empty list", advice="Give at least one kernel.")
    for kernel in kernels:
        if isinstance(kernel, tuple) and not (len(kernel) == 2 and isinstance(kernel[1], dict)):
            problem = "is not a pair of a name and a dict of parameters"
            raise InvalidTypeError(problem, parameter="kernel", value=kernel, advice="Give such a pair.")
        name = kernel[0] if isinstance(kernel, tuple) else kernel
        if isinstance(name, str) and name == "precomputed":
            advice = "Add the matrices up yourself."
            raise InvalidValueError("cannot be one of several kernels", parameter="kernel", value=name, advice=advice)


def check_kernel_weights(weights: Any, n_kernels: int) -> Float | None:
    """Check the weights of several kernels; None comes back for "learn"."""
    if isinstance(weights, str):
        check_choice(weights, "kernel_weights", ["learn"], "Use {known}, {v.None}, or one number for each kernel.")
        return None
    if weights is None:
        return np.full(n_kernels, 1.0 / n_kernels)
    advice = "Use {v.learn}, {v.None} for equal weights, or one non-negative number for each of the {limit} kernels."
    return _check_one_each(weights, "kernel_weights", n_kernels, advice)


def check_blocks(blocks: Any) -> int | str | None:
    """Check the length of blocks of neighbouring rows: a number, "auto", or None for no blocks."""
    if blocks is None or (isinstance(blocks, str) and blocks == "auto"):
        return blocks
    return check_whole(blocks, "blocks", least=1, advice="Give a number of rows, {v.auto} or {v.None}.")


def check_robust(robust: Any) -> str | None:
    """Check what strays are looked for: none, rows, or cells and rows."""
    return None if robust is None else check_choice(robust, "robust", ROBUST, "Give one of {known}, or {v.None}.")
