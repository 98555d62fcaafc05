"""Before a release: bounds from documented ranges, and the number of rows; after it: warnings about the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._messages import InvalidTypeError, InvalidValueError, listed, warn_user
from standout.moments import Moments
from standout.private._grid import BESIDE, LONGEST, ROW_SENSITIVITY, epsilon_of, noise_for
from standout.private._moments import PrivateMoments, Spent

# Radius of the documented ranges, whose half length is the unit, per square root of the number of columns. Most rows
# with a standard deviation of a third of that unit are longer than the radius.
RADIUS_OF_RANGES = 0.25
# Noise drowns a direction whose variance in the target is less than this many times the noise.
ENOUGH = 2.0
# Default share of all variance that the direction of interest has.
SHARE = 0.015
# A smaller ε has noise beyond any use; a larger one protects nobody.
EPSILONS = (1e-3, 50.0)
DELTAS = (1e-15, 0.01)
SMALL_DELTA = "Give a number far below one over the number of rows, such as 1e-6."
MOST_ROWS_OF_ONE = 10**6


def from_ranges(ranges: Any, *, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """How do documented ranges of columns become the bounds of a release?

    The centre is the middle of each range, the unit half its length. The radius is a quarter of the square root of the
    number of columns: most rows are then shortened to it. This is intended, because noise grows with the square of the
    radius, and directions are kept. A range is what a column can hold by its documentation. It must not be looked up in
    the rows.

    Parameters
    ----------
    ranges : mapping of str to (low, high), or array-like of shape (n_features, 2)
    columns : sequence of str, default=None
        Names of the columns of the rows, in their order. The ranges of other columns are left out.

    Returns
    -------
    dict
        ``centre``, ``scale`` and ``radius``, for `release`.

    Examples
    --------
    >>> from standout.private import from_ranges
    >>> bounds = from_ranges({"age": (0, 100), "weight": (40, 140)}, columns=["weight", "age"])
    >>> bounds["centre"], bounds["scale"], round(bounds["radius"], 3)
    (array([90., 50.]), array([50., 50.]), 0.354)
    """
    advice = "Give the documented lowest and highest value of every column."
    if isinstance(ranges, Mapping):
        columns = list(ranges) if columns is None else list(columns)
        missing = [name for name in columns if name not in ranges]
        if missing:
            raise InvalidValueError(f"lack {listed('column', missing)}", parameter="ranges", advice=advice)
        ranges = [ranges[name] for name in columns]
    try:
        limits = np.asarray(ranges, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError("are not numbers", parameter="ranges", advice=advice) from None
    n_columns = len(limits) if columns is None else len(columns)
    if limits.shape != (n_columns, 2) or not n_columns:
        raise InvalidValueError(f"have shape {limits.shape}, not ({n_columns}, 2)", parameter="ranges", advice=advice)
    wrong = np.flatnonzero(~(np.isfinite(limits).all(axis=1) & (limits[:, 0] < limits[:, 1])))
    if len(wrong):
        name, (low, high) = wrong[0] if columns is None else repr(columns[wrong[0]]), limits[wrong[0]]
        problem = f"of column {name} are {low} to {high}, but the lower must be below the higher, and both finite"
        raise InvalidValueError(problem, parameter="ranges", advice=advice)
    half = 0.5 * limits[:, 1] - 0.5 * limits[:, 0]
    return {"centre": limits[:, 0] + half, "scale": half, "radius": RADIUS_OF_RANGES * float(np.sqrt(n_columns))}


def required_rows(n_features: int, epsilon: float, delta: float, *, share: float = SHARE, max_rows: int = 1) -> int:
    """How many rows does each dataset need, so that noise does not drown the signal?

    With this number of rows, noise along any direction is at most half of the variance of the signal. In simulations
    the private fit then finds the same components as the exact one.

    Parameters
    ----------
    n_features : int
    epsilon, delta : float
        The budget of the release.
    share : float, default=0.015
        The part of all variance of the target that lies along the direction of interest.
    max_rows : int, default=1
        Rows of one person that are used at most.

    Returns
    -------
    int
        Rounded up to two digits.

    Examples
    --------
    >>> from standout.private import required_rows
    >>> required_rows(50, epsilon=1.0, delta=1e-6)
    6500
    >>> required_rows(50, epsilon=1.0, delta=1e-6, share=0.1)
    980
    """
    check_number(n_features, "n_features", (1, 10**6), "Give the number of columns.", whole=True)
    check_budget(epsilon, delta, max_rows)
    check_number(share, "share", (1e-9, 1.0), "Give a part of the variance, such as 0.01.")
    scale, _ = noise_for(ROW_SENSITIVITY, float(epsilon), float(delta))
    # In units of the squared radius, which is the second moment of rows that were shortened to it.
    entry = max_rows * scale / BESIDE / LONGEST**2
    return _rounded_up(ENOUGH * 2.0 * entry * np.sqrt(n_features) / share)


def total_epsilon(spent: Sequence[Spent], delta: float) -> float:
    """What have several releases spent together, of a row or a person that is in all of them?

    Less than the sum of their ε, because ρ adds up, and ε grows with its square root.

    Parameters
    ----------
    spent : sequence of Spent
        Of all releases that the row or person is in: ``first.spent + second.spent``.
    delta : float
        The δ of the total.

    Returns
    -------
    float
        ε: all releases together are (ε, δ)-differentially private.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.private import release, total_epsilon
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> sums = release(X, centre=[0, 0], scale=[1, 1], radius=1.0, epsilon=1.0, delta=1e-6)
    >>> round(total_epsilon(sums.spent + sums.spent, delta=1e-6), 2)
    1.45
    """
    check_number(delta, "delta", DELTAS, SMALL_DELTA)
    if not spent or not all(isinstance(one, Spent) for one in spent):
        raise InvalidTypeError("is not a list of `Spent`", parameter="spent", advice="Give the spent of releases.")
    return epsilon_of(sum(one.rho for one in spent), float(delta))


def check_budget(epsilon: Any, delta: Any, max_rows: Any) -> None:
    """Refuse a budget that means nothing."""
    smaller = "Give a number such as 1: smaller protects more, and needs more rows."
    check_number(epsilon, "epsilon", EPSILONS, smaller)
    check_number(delta, "delta", DELTAS, SMALL_DELTA)
    check_number(max_rows, "max_rows", (1, MOST_ROWS_OF_ONE), "Give a few rows per person.", whole=True)


def check_number(value: Any, name: str, limits: tuple[float, float], advice: str, *, whole: bool = False) -> None:
    """Refuse what is not a number, or is outside of its limits."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral if whole else Real):
        kind = "whole number" if whole else "number"
        raise InvalidTypeError(f"is not a {kind}", parameter=name, value=value, advice=advice)
    if not limits[0] <= float(value) <= limits[1]:
        problem = f"is outside [{limits[0]:g}, {limits[1]:g}]"
        raise InvalidValueError(problem, parameter=name, value=value, advice=advice)


def warn_if_drowned(moments: Sequence[Moments], filters: Float) -> None:
    """Warn if noise is as large as the variance along the first components of private moments.

    Parameters
    ----------
    moments : sequence of Moments
        The target first.
    filters : ndarray of shape (n_features, n_components)
    """
    private = [part for part in moments if isinstance(part, PrivateMoments)]
    if not private:
        return
    noise, variance = np.max([part.noise_along(filters) for part in private], axis=0), moments[0].variance(filters)
    drowned = np.flatnonzero(variance < ENOUGH * noise)
    if not len(drowned):
        return
    worst = int(drowned[0])
    reached = min(float(noise[worst] / max(variance[worst], 1e-300)), 9.99)
    # The variance along a component that noise has made says nothing about the signal: the plan's default is used.
    rows = max(part.count * ENOUGH * part.noise / (SHARE * part.grid.radius**2) for part in private)
    warn_user(
        f"the noise of the private sums drowns the signal: along component {worst + 1} it reaches {reached:.0%} of the "
        "variance of the target",
        advice=f"About {_rounded_up(rows)} rows in every dataset are enough for a signal with {SHARE:.1%} of the "
        "variance; so are a larger `epsilon`, or fewer columns.",
    )


def warn_if_few(moments: PrivateMoments, delta: float) -> None:
    """Warn, from the released sums alone, if one dataset has too few rows for its noise or its δ."""
    total = moments.grid.radius**2
    if moments.noise * ENOUGH > 0.1 * total:
        rows = _rounded_up(moments.count * moments.noise * ENOUGH / (0.1 * total))
        warn_user(
            "the noise drowns every signal with less than most of the variance: along any direction noise reaches "
            f"{min(moments.noise / total, 9.99):.0%} of all variance that rows can have",
            advice=f"About {rows} rows, in all places together, show a signal with a tenth of the variance.",
        )
    if delta * moments.count >= 1.0:
        problem = f"is not below one over the number of rows, about {moments.count}: whole rows could be given away"
        warn_user(problem, parameter="delta", value=delta, advice="Use a much smaller `delta` next time.")


def _rounded_up(number: float) -> int:
    """Round up to two digits."""
    unit = 10 ** max(len(str(int(number))) - 2, 0)
    return int(np.ceil(number / unit)) * unit
