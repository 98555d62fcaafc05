"""Parameters of estimators and generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._validation._words import is_number

SOLVERS = ("auto", "dense", "root", "reduced", "lanczos", "lobpcg")


def check_n_components(n_components: Any, n_features: int, n_directions: int) -> int:
    """Check the number of components against what the data can give."""
    if isinstance(n_components, bool) or not isinstance(n_components, int | np.integer):
        raise TypeError(f"n_components={n_components!r} is not a whole number. Give a number of at least 1.")
    if n_components < 1:
        raise ValueError(f"n_components={n_components} is less than 1. Give a number of at least 1.")
    if n_components > n_features:
        raise ValueError(
            f"n_components={n_components} is larger than n_features={n_features}. Choose at most {n_features}."
        )
    if n_directions == 0:
        raise ValueError("no dataset varies: all rows of each are equal. Give rows that differ.")
    if n_components > n_directions:
        raise ValueError(
            f"n_components={n_components} is larger than {n_directions}, the number of directions that the centred "
            f"rows can span. Choose at most {n_directions}, or give more rows."
        )
    return int(n_components)


def check_weights(weights: Any, n_backgrounds: int) -> Float:
    """Check the weights of the backgrounds and scale them to sum 1; None means equal weights."""
    if weights is None:
        return np.full(n_backgrounds, 1.0 / max(n_backgrounds, 1))
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"background_weights={weights!r} is not a list of numbers. Give one number per background, or None."
        ) from None
    if numbers.shape != (n_backgrounds,):
        raise ValueError(
            f"background_weights has shape {numbers.shape}, but the number of backgrounds is {n_backgrounds}. "
            "Give one number per background, or None for equal weights."
        )
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0):
        raise ValueError(
            f"background_weights={numbers.tolist()} has a negative or non-finite number. "
            "Give non-negative numbers; they are scaled to sum 1."
        )
    if not numbers.any():
        raise ValueError("background_weights are all zero. Give at least one background a positive weight.")
    # By the largest first: the sum of very large ones would be infinite.
    scaled: Float = numbers / numbers.max()
    return scaled / scaled.sum()


def check_shrinkage(shrinkage: Any) -> float | None:
    """Check the shrinkage: a number in [0, 1]; None comes back for "auto"."""
    if isinstance(shrinkage, str):
        if shrinkage != "auto":
            raise ValueError(f"shrinkage={shrinkage!r} is unknown. Use 'auto', None, or a number from 0 to 1.")
        return None
    if shrinkage is None:
        return 0.0
    if not is_number(shrinkage):
        raise TypeError(f"shrinkage={shrinkage!r} is not a number. Use 'auto', None, or a number from 0 to 1.")
    share = float(shrinkage)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"shrinkage={share} is outside [0, 1]. Use 'auto', None, or a number from 0 to 1.")
    return share


def check_solver(solver: Any) -> str:
    """Check the name of a solver."""
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is unknown. Use one of {', '.join(map(repr, SOLVERS))}.")
    return str(solver)


def check_n_backgrounds(given: int, fitted: int) -> None:
    """Check that as many backgrounds are given as were fitted, or none."""
    if given not in (0, fitted):
        raise ValueError(f"score got {given} background(s), but {fitted} were fitted. Give as many, or None.")


def require_some_background(given: int) -> None:
    """Refuse to compare with nothing."""
    if given == 0:
        raise ValueError("there is no background to compare with. Give at least one dataset as background.")


def check_n_scores(given: int, fitted: int) -> None:
    """Check that there is a score for each component."""
    if given != fitted:
        raise ValueError(
            f"there are {given} scores in a row, but the model has {fitted} components. Give one for each."
        )


def check_formable(size: int, limit: int) -> None:
    """Refuse a singular problem whose roots would not fit in memory."""
    if size > limit:
        raise ValueError(
            f"the background covariance is singular, and {size} rows and columns are more than the {limit} up to which "
            "such a problem is solved. Use shrinkage, for example shrinkage='auto'."
        )


def check_enough(wanted: int, available: int, what: str, stock: str, remedy: str) -> None:
    """Refuse to give more than there is."""
    if wanted > available:
        raise ValueError(f"{what} is {wanted}, but {stock} is {available}. {remedy}")


def check_different(values: Sequence[Any], name: str) -> None:
    """Refuse a choice in which a value stands twice."""
    if len(set(values)) < len(values):
        raise ValueError(f"{name}={tuple(values)} names the same one twice. Give different ones.")
