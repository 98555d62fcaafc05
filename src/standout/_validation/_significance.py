"""Tests of components: their settings, and data that they cannot judge."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout._arrays import Float
from standout._validation._numbers import check_whole, is_number
from standout._validation._parameters import check_shrinkage
from standout._validation._selection import TESTS


def check_test_method(method: Any) -> str:
    """Check the name of a test."""
    if not isinstance(method, str) or method not in TESTS:
        raise ValueError(f"method={method!r} is unknown. Use one of {', '.join(map(repr, TESTS))}.")
    return method


def check_n_permutations(n_permutations: Any, level: float) -> int:
    """Check that there are enough permutations for a p-value to reach the level."""
    n_permutations = check_whole(n_permutations, "n_permutations", least=0, remedy="Give a number such as 199.")
    # The quotient is compared, as p-values are: a product with the level would be rounded differently.
    if 1.0 / (n_permutations + 1) > level:
        least = max(int(np.ceil(1.0 / level)) - 1, 1)
        raise ValueError(
            f"n_permutations={n_permutations} is too few for level={level}: the smallest p-value is one by the number "
            f"of permutations plus one. Give at least {least}, and better ten times as many."
        )
    return n_permutations


def check_shares(shrinkage: Any, n_backgrounds: int) -> Float | None:
    """Check a shrinkage for all backgrounds, or one for each; None comes back for "auto"."""
    if shrinkage is None or isinstance(shrinkage, str) or is_number(shrinkage):
        share = check_shrinkage(shrinkage)
        return None if share is None else np.full(n_backgrounds, share)
    try:
        shares = np.asarray(shrinkage, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"shrinkage={shrinkage!r} is not a number, nor a list of numbers. Use 'auto', None, a number from 0 to 1, "
            "or one for each background."
        ) from None
    if shares.shape != (n_backgrounds,):
        raise ValueError(
            f"shrinkage has shape {shares.shape}, but the number of backgrounds is {n_backgrounds}. "
            "Give one number, or one for each background."
        )
    if not np.all((shares >= 0.0) & (shares <= 1.0)):
        raise ValueError(f"shrinkage={shares.tolist()} has a number outside [0, 1]. Give numbers from 0 to 1.")
    return shares


def reject_shrinkage(shrinkage: Any, shares: Float | None) -> None:
    """Refuse shrinkage where only plain ratios are understood."""
    if shares is None or np.any(shares > 0.0):
        raise ValueError(
            f"shrinkage={shrinkage!r} does not go with the analytic test, which knows how plain ratios vary by chance. "
            "Leave shrinkage out, or use the permutation test."
        )


def check_background_degrees(degrees: int, n_features: int) -> None:
    """Refuse backgrounds with too few rows for unshrunken ratios to mean anything."""
    if degrees <= n_features:
        raise ValueError(
            f"the backgrounds have {degrees} degrees of freedom (rows less one for each), but the analytic test needs "
            f"more than the number of features, {n_features}. Give more background rows, or use the permutation test "
            "with shrinkage='auto'."
        )


def reject_singular_background(singular: bool) -> None:
    """Refuse to test infinite ratios."""
    if singular:
        raise ValueError(
            "the background covariance is singular, with too few rows or with constant or dependent columns: there "
            "are ratios that are infinite or have no meaning. Drop such columns, or use the permutation test with "
            "shrinkage, for example shrinkage='auto'."
        )
