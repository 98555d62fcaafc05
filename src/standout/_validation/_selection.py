"""What is to be chosen: α, shrinkage, weights, the number of components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._validation._numbers import check_whole, is_number
from standout._validation._parameters import check_n_components
from standout._validation._sources import Source

WEIGHT_RULES = ("worst-case", "best", "spectral")
TESTS = ("analytic", "permutation")


def check_alpha(alpha: Any) -> float | Float | None:
    """Check α: a number, or an increasing list of numbers to choose from; None comes back for "auto"."""
    remedy = "Give a number of at least 0, an increasing list of such numbers, or 'auto'."
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(f"alpha={alpha!r} is unknown. {remedy}")
        return None
    if is_number(alpha):
        if not (np.isfinite(alpha) and alpha >= 0.0):
            raise ValueError(f"alpha={alpha} is negative or not finite. {remedy}")
        return float(alpha)
    return _increasing(alpha, "alpha", remedy, 0.0, np.inf)


def check_alphas(alphas: Any) -> Float:
    """Check an increasing list of α."""
    return _increasing(alphas, "alpha", "Give an increasing list of numbers of at least 0, or None.", 0.0, np.inf)


def check_shrinkages(shrinkages: Any) -> Float:
    """Check an increasing list of shrinkages."""
    return _increasing(shrinkages, "shrinkage", "Give an increasing list of numbers from 0 to 1, or None.", 0.0, 1.0)


def check_weight_rule(rule: str) -> str:
    """Check the name of a rule for the weights of the backgrounds."""
    if rule not in WEIGHT_RULES:
        known = ", ".join(map(repr, WEIGHT_RULES))
        raise ValueError(f"background_weights={rule!r} is unknown. Give one of {known}, one number each, or None.")
    return rule


def check_test(test: Any) -> str | None:
    """Check the name of a test, or None for no test."""
    if test is not None and (not isinstance(test, str) or test not in TESTS):
        raise ValueError(f"test={test!r} is unknown. Use 'analytic', 'permutation', or None.")
    return None if test is None else str(test)


def is_auto(n_components: Any) -> bool:
    """Tell whether the number of components is to be found; a number is not checked yet."""
    if isinstance(n_components, str) and n_components != "auto":
        raise ValueError(f"n_components={n_components!r} is unknown. Give a number of at least 1, or 'auto'.")
    return isinstance(n_components, str)


def check_n_components_or_auto(n_components: Any, n_features: int, n_directions: int) -> int | None:
    """Check the number of components; None comes back for "auto"."""
    return None if is_auto(n_components) else check_n_components(n_components, n_features, n_directions)


def require_rows(datasets: Sequence[Any], what: str, *, sampled: bool = False) -> None:
    """Refuse datasets, the target first, whose rows cannot be read again, or are not there.

    With `sampled` a few rows will do, which can be drawn from whatever can be read again.
    """
    for number, dataset in enumerate(datasets):
        name = f"background {number}" if number else "the target"
        if isinstance(dataset, Iterator) or (isinstance(dataset, Source) and not dataset.again):
            raise TypeError(
                f"{name} is an iterator of batches, which can be read only once, but {what} reads its rows again. "
                "Give an array (a memory-mapped one is not loaded as a whole), a frame or a sparse matrix."
            )
        if sampled and isinstance(dataset, Source):
            continue
        if not (hasattr(dataset, "shape") or hasattr(dataset, "__array__") or isinstance(dataset, Sequence)):
            raise TypeError(f"{name} is given as {type(dataset).__name__}, but {what} needs its rows. Give the rows.")


def check_level(level: Any, meaning: str, example: float) -> float:
    """Check a level: a number strictly between 0 and 1."""
    if not is_number(level):
        raise TypeError(f"level={level!r} is not a number. Give {meaning}, for example {example}.")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level} is not between 0 and 1. Give {meaning}, for example {example}.")
    return float(level)


def check_n_bootstrap(n_bootstrap: Any) -> int:
    """Check how many times the rows are drawn again."""
    return check_whole(n_bootstrap, "n_bootstrap", least=2, remedy="Give at least 2; 100 or more for an interval.")


def _increasing(values: Any, name: str, remedy: str, least: float, most: float) -> Float:
    try:
        if np.ndim(values) == 0:
            raise TypeError
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={values!r} is not a list of numbers. {remedy}") from None
    if numbers.ndim != 1 or numbers.size == 0:
        raise ValueError(f"{name} has shape {numbers.shape}, which is not that of a list. {remedy}")
    if not np.all(np.isfinite(numbers)) or numbers.min() < least or numbers.max() > most:
        raise ValueError(f"{name}={numbers.tolist()} has a number that is not in range. {remedy}")
    if np.any(np.diff(numbers) <= 0.0):
        raise ValueError(f"{name}={numbers.tolist()} is not in increasing order. {remedy}")
    return numbers
