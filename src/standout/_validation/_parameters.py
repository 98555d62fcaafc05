"""Parameters of estimators and generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from standout._arrays import Float
from standout._validation._numbers import check_whole, is_number

SOLVERS = ("auto", "dense", "root", "reduced", "lanczos", "lobpcg")


def check_n_components(n_components: Any, n_features: int, n_directions: int) -> int:
    """Check the number of components against what the data can give."""
    n_components = check_whole(n_components, "n_components")
    if n_components > n_features:
        raise ValueError(
            f"n_components={n_components} is larger than n_features={n_features}. Choose at most {n_features}."
        )
    if n_directions == 0:
        raise ValueError(
            "no dataset varies: all rows of each are equal, or differ by so little that the square of it is 0. Give "
            "rows that differ, or rescale them."
        )
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


def check_shrinkage(shrinkage: Any, *, clusters: bool = False) -> float | None:
    """Check the shrinkage: a number in [0, 1]; None comes back for "auto", and for "clusters" where that is known."""
    if isinstance(shrinkage, str):
        if shrinkage != "auto" and not (clusters and shrinkage == "clusters"):
            known = "'auto', 'clusters'" if clusters else "'auto'"
            raise ValueError(f"shrinkage={shrinkage!r} is unknown. Use {known}, None, or a number from 0 to 1.")
        return None
    if shrinkage is None:
        return 0.0
    if not is_number(shrinkage):
        raise TypeError(f"shrinkage={shrinkage!r} is not a number. Use 'auto', None, or a number from 0 to 1.")
    share = float(shrinkage)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"shrinkage={share} is outside [0, 1]. Use 'auto', None, or a number from 0 to 1.")
    return share


def check_solver(solver: Any, *, without: Sequence[str] = ()) -> str:
    """Check the name of a solver, of which some may not fit the problem."""
    known = [name for name in SOLVERS if name not in without]
    if not isinstance(solver, str) or solver not in known:
        why = "does not fit this method" if solver in without else "is unknown"
        raise ValueError(f"solver={solver!r} {why}. Use one of {', '.join(map(repr, known))}.")
    return solver


def check_n_backgrounds(given: int, fitted: int) -> None:
    """Check that as many backgrounds are given as were fitted, or none."""
    if given not in (0, fitted):
        raise ValueError(f"score got {given} background(s), but {fitted} were fitted. Give as many, or None.")


def as_seed(random_state: Any) -> int:
    """Give a number to start random generators with: a fixed one where nothing is given."""
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31))


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


def check_enough(wanted: int, available: int, what: str, stock: str, remedy: str) -> None:
    """Refuse to give more than there is."""
    if wanted > available:
        raise ValueError(f"{what} is {wanted}, but {stock} is {available}. {remedy}")


def check_subspaces(subspaces: Any) -> Float:
    """Check a stack of components, one set of rows per subspace."""
    try:
        rows = np.asarray(subspaces, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "the subspaces are not one array of numbers. Give an array of shape (g, d, n_features), with as many "
            "components in each."
        ) from None
    if rows.ndim != 3 or 0 in rows.shape or rows.shape[1] > rows.shape[2]:
        raise ValueError(
            f"the subspaces have shape {rows.shape}, which is not (g, d, n_features) with 1 <= d <= n_features. "
            "Give the components of each subspace as rows."
        )
    if not np.all(np.isfinite(rows)):
        raise ValueError("there is NaN or infinity among the subspaces. Leave out the components that are not finite.")
    return rows


def check_spanning(smallest: Float) -> None:
    """Refuse linearly dependent components, given the smallest distance of one from the span of those before it."""
    # Components of unit length are dependent where they differ by rounding only.
    bad = np.flatnonzero(smallest <= 1e-12)
    if bad.size:
        raise ValueError(
            f"the components of subspace {bad[0]} are linearly dependent. Give components that each add a direction."
        )


def check_n_representatives(n_representatives: Any, n_candidates: int | None = None) -> int:
    """Check how many are to stand for all candidates, if these are known."""
    n_representatives = check_whole(n_representatives, "n_representatives")
    if n_candidates is not None and n_representatives > n_candidates:
        raise ValueError(
            f"there are fewer candidates than representatives: {n_candidates} < n_representatives="
            f"{n_representatives}. Ask for at most {n_candidates}, or give more candidates."
        )
    return n_representatives


def check_mixture_present(leading: float) -> None:
    """Refuse to choose weights where the ratio is infinite whatever they are."""
    if np.isinf(leading):
        raise ValueError(
            "the target varies in a direction in which no background does: the ratio is infinite whatever the "
            "weights. Use shrinkage, for example shrinkage='auto'."
        )
