"""Checks of constructor parameters and settings that estimators and selection share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._checks import check_whole, is_number
from standout._messages import InvalidTypeError, InvalidValueError, choices

SOLVERS = ("auto", "dense", "root", "reduced", "lanczos", "lobpcg")
WEIGHT_RULES = ("worst-case", "best", "spectral")
EPSILON_RULES = ("scaled", "held-out", "clusters")
TESTS = ("auto", "analytic", "permutation")
APPROXIMATIONS = ("auto", "exact", "pivoted", "fourier")


def check_n_components(n_components: Any, n_features: int, n_directions: int) -> int:
    """Check the number of components against what the data can give."""
    n_components = check_whole(n_components, "n_components")
    if n_components > n_features:
        raise InvalidValueError(
            "is larger than n_features={limit}",
            parameter="n_components",
            value=n_components,
            limit=n_features,
            advice="Choose at most {limit}.",
        )
    if n_directions == 0:
        raise InvalidValueError(
            "no dataset varies: all rows of each are equal, or differ by so little that the square of it is 0",
            advice="Give rows that differ, or rescale them.",
        )
    if n_components > n_directions:
        raise InvalidValueError(
            "is larger than {limit}, the number of directions that the centred rows can span",
            parameter="n_components",
            value=n_components,
            limit=n_directions,
            advice="Choose at most {limit}, or give more rows.",
        )
    return int(n_components)


def is_auto(n_components: Any) -> bool:
    """Tell whether the number of components is to be found; a number is not checked yet."""
    if isinstance(n_components, str) and n_components != "auto":
        raise InvalidValueError(
            "is unknown",
            parameter="n_components",
            value=n_components,
            advice="Give a number of at least 1, or {v.auto}.",
        )
    return isinstance(n_components, str)


def check_weights(weights: Any, n_backgrounds: int) -> Float:
    """Check the weights of the backgrounds and scale them to sum 1; None means equal weights."""
    if weights is None:
        return np.full(n_backgrounds, 1.0 / max(n_backgrounds, 1))
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError(
            "is not a list of numbers",
            parameter="background_weights",
            value=weights,
            advice="Give one number per background, or {v.None}.",
        ) from None
    if numbers.shape != (n_backgrounds,):
        raise InvalidValueError(
            "has shape {shape}, but the number of backgrounds is {limit}",
            parameter="background_weights",
            shape=numbers.shape,
            limit=n_backgrounds,
            advice="Give one number per background, or {v.None} for equal weights.",
        )
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or not numbers.any():
        raise InvalidValueError(
            "has a negative or non-finite number, or only zeros",
            parameter="background_weights",
            value=numbers.tolist(),
            advice="Give non-negative numbers, one positive at least; they are scaled to sum 1.",
        )
    # Divided by the largest first: the sum of very large ones would be infinite.
    scaled: Float = numbers / numbers.max()
    return scaled / scaled.sum()


def check_weight_rule(rule: str) -> str:
    """Check the name of a rule for the weights of the backgrounds."""
    if rule not in WEIGHT_RULES:
        raise InvalidValueError(
            "is unknown",
            parameter="background_weights",
            value=rule,
            known=choices(WEIGHT_RULES),
            advice="Give one of {known}, one number each, or {v.None}.",
        )
    return rule


def check_shrinkage(shrinkage: Any, *, rules: Sequence[str] = ("auto",)) -> float | None:
    """Check the shrinkage: a number in [0, 1], None for the name of a rule."""
    advice = "Use {known}, {v.None}, or a number from 0 to 1."
    facts: dict[str, Any] = {"parameter": "shrinkage", "value": shrinkage, "known": choices(rules), "advice": advice}
    if isinstance(shrinkage, str):
        if shrinkage not in rules:
            raise InvalidValueError("is unknown", **facts)
        return None
    if shrinkage is None:
        return 0.0
    if not is_number(shrinkage):
        raise InvalidTypeError("is not a number", **facts)
    if not 0.0 <= float(shrinkage) <= 1.0:
        raise InvalidValueError("is outside [0, 1]", limit=(0, 1), **facts)
    return float(shrinkage)


def check_held_out(held_out: Any) -> int | None:
    """Check the number of folds whose rows are held out in turn, or None for no such folds."""
    if held_out is None:
        return None
    return check_whole(held_out, "held_out", least=2, advice="Give a number of folds, at least {limit}, or {v.None}.")


def check_solver(solver: Any, *, without: Sequence[str] = ()) -> str:
    """Check the name of a solver, of which some may not fit the problem."""
    known = [name for name in SOLVERS if name not in without]
    if not isinstance(solver, str) or solver not in known:
        raise InvalidValueError(
            "does not fit this method" if solver in without else "is unknown",
            parameter="solver",
            value=solver,
            known=choices(known),
            advice="Use one of {known}.",
        )
    return solver


def check_test(test: Any, parameter: str = "test", *, optional: bool = True) -> str | None:
    """Check the name of a test, or None for no test."""
    if test is None and optional:
        return None
    if not isinstance(test, str) or test not in TESTS:
        raise InvalidValueError(
            "is unknown",
            parameter=parameter,
            value=test,
            known=choices(TESTS),
            advice="Use {known}, or {v.None}." if optional else "Use one of {known}.",
        )
    return test


def check_level(level: Any, meaning: str, example: float) -> float:
    """Check a level: a number strictly between 0 and 1."""
    facts = {"parameter": "level", "value": level, "meaning": meaning, "example": example}
    advice = "Give {meaning}, for example {example}."
    if not is_number(level):
        raise InvalidTypeError("is not a number", advice=advice, **facts)
    if not 0.0 < level < 1.0:
        raise InvalidValueError("is not between 0 and 1", limit=(0, 1), advice=advice, **facts)
    return float(level)


def check_increasing(values: Any, parameter: str, advice: str, least: float, most: float) -> Float:
    """Check an increasing list of numbers within limits."""
    try:
        if np.ndim(values) == 0:
            raise TypeError
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError("is not a list of numbers", parameter=parameter, value=values, advice=advice) from None
    problem = None
    if numbers.ndim != 1 or numbers.size == 0:
        problem = "has shape {shape}, which is not that of a list"
    elif not np.all(np.isfinite(numbers)) or numbers.min() < least or numbers.max() > most:
        problem = "has a number that is not in range"
    elif np.any(np.diff(numbers) <= 0.0):
        problem = "is not in increasing order"
    if problem is not None:
        raise InvalidValueError(
            problem,
            parameter=parameter,
            value=numbers.tolist(),
            shape=numbers.shape,
            limit=(least, most),
            advice=advice,
        )
    return numbers


def check_alpha(alpha: Any) -> float | Float | None:
    """Check α: a number, or an increasing list of numbers to choose from; None comes back for "auto"."""
    advice = "Give a number of at least 0, an increasing list of such numbers, or {v.auto}."
    if isinstance(alpha, str):
        if alpha != "auto":
            raise InvalidValueError("is unknown", parameter="alpha", value=alpha, advice=advice)
        return None
    if is_number(alpha):
        if not (np.isfinite(alpha) and alpha >= 0.0):
            raise InvalidValueError(
                "is negative or not finite", parameter="alpha", value=alpha, limit=(0, np.inf), advice=advice
            )
        return float(alpha)
    return check_increasing(alpha, "alpha", advice, 0.0, np.inf)


def check_n_representatives(n_representatives: Any, n_candidates: int | None = None) -> int:
    """Check how many are to stand for all candidates, if these are known."""
    n_representatives = check_whole(n_representatives, "n_representatives")
    if n_candidates is not None and n_representatives > n_candidates:
        raise InvalidValueError(
            "is larger than {limit}, the number of candidates",
            parameter="n_representatives",
            value=n_representatives,
            limit=n_candidates,
            advice="Ask for at most {limit}, or give more candidates.",
        )
    return n_representatives


# --- kernels ---------------------------------------------------------------------------------------------------------


def check_epsilon(epsilon: Any) -> float | None:
    """Check the ridge of the kernel methods: a positive number; None for the name of a rule."""
    advice = "Give a positive number, or {v.scaled} for one that goes with the size of the kernel."
    facts: dict[str, Any] = {"parameter": "epsilon", "value": epsilon, "advice": advice}
    if isinstance(epsilon, str):
        if epsilon not in EPSILON_RULES:
            raise InvalidValueError("is unknown", **facts)
        return None
    if not is_number(epsilon):
        raise InvalidTypeError("is not a number", **facts)
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise InvalidValueError("is not positive", limit=(0, np.inf), **facts)
    return float(epsilon)


def check_tolerance(tol: Any) -> float | None:
    """Check the tolerance of a factorisation; None leaves it to the kernel."""
    if tol is None:
        return None
    if not (is_number(tol) and 0.0 < tol < 1.0):
        raise InvalidValueError(
            "is not a number between 0 and 1",
            parameter="tol",
            value=tol,
            limit=(0, 1),
            advice="Give a small one, for example 1e-9, or {v.None}.",
        )
    return float(tol)


def check_rank(rank: Any, n_rows: int | None = None) -> int | None:
    """Check the number of coordinates, also against the number of rows if this is known."""
    if rank is None:
        return None
    rank = check_whole(rank, "rank", advice="Give a number of at least {limit}, or {v.None}.")
    if n_rows is not None and rank > n_rows:
        raise InvalidValueError(
            "is larger than {limit}, the number of rows",
            parameter="rank",
            value=rank,
            limit=n_rows,
            advice="Choose at most {limit}, or {v.None}.",
        )
    return rank


def check_approximation(approximation: Any) -> None:
    """Check the name of an approximation; anything that is not a name counts as landmarks."""
    facts = {
        "parameter": "approximation",
        "value": approximation,
        "known": choices(APPROXIMATIONS),
        "advice": "Use one of {known}, or an array of landmarks.",
    }
    if isinstance(approximation, str) and approximation not in APPROXIMATIONS:
        raise InvalidValueError("is unknown", **facts)
    if approximation is None:
        raise InvalidTypeError("has no meaning", **facts)


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
        raise InvalidTypeError(
            "is not a dict",
            parameter="kernel_params",
            value=kernel_params,
            advice="Give one, for example {{'bandwidth': 5.0}}.",
        )


def check_kernel_list(kernels: Sequence[Any]) -> None:
    """Check a list of kernels that are to be summed."""
    if not kernels:
        raise InvalidValueError("{p.kernel} is an empty list", advice="Give at least one kernel.")
    for kernel in kernels:
        name = kernel[0] if isinstance(kernel, tuple) else kernel
        if isinstance(kernel, tuple) and not (len(kernel) == 2 and isinstance(kernel[1], dict)):
            raise InvalidTypeError(
                "is not a pair of a name and a dict of parameters",
                parameter="kernel",
                value=kernel,
                advice="Give such a pair.",
            )
        if isinstance(name, str) and name == "precomputed":
            raise InvalidValueError(
                "cannot be one of several kernels",
                parameter="kernel",
                value=name,
                advice="Add the matrices up yourself.",
            )


def check_kernel_weights(weights: Any, n_kernels: int) -> Float | None:
    """Check the weights of several kernels; None comes back for "learn"."""
    facts: dict[str, Any] = {"parameter": "kernel_weights", "value": weights, "limit": n_kernels}
    advice = "Use {v.learn}, {v.None} for equal weights, or one number for each of the {limit} kernels."
    if isinstance(weights, str):
        if weights != "learn":
            raise InvalidValueError("is unknown", advice=advice, **facts)
        return None
    if weights is None:
        return np.full(n_kernels, 1.0 / n_kernels)
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError("is not a list of numbers", advice=advice, **facts) from None
    if numbers.shape != (n_kernels,):
        raise InvalidValueError(
            "has shape {shape}, but there are {limit} kernels", shape=numbers.shape, advice=advice, **facts
        )
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or numbers.sum() == 0:
        raise InvalidValueError("must be non-negative, finite and not all zero", advice=advice, **facts)
    return numbers
