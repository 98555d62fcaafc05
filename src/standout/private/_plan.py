"""Before a release: bounds from documented ranges, and how many rows it takes; after it: is there more than noise?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._checks import check_number, check_whole
from standout._messages import InvalidTypeError, InvalidValueError, listed, warn_user
from standout.moments import Moments
from standout.private._grid import BESIDE, LONGEST, ROW_SENSITIVITY, epsilon_of, noise_for
from standout.private._moments import PrivateMoments, Spent

# Radius of the documented ranges, whose half length is the unit, per square root of the number of columns. Rows with a
# standard deviation of a third of that unit are then longer than the radius, most of them.
RADIUS_OF_RANGES = 0.25
# Noise is said to drown a direction whose variance in the target is less than this many times the noise.
ENOUGH = 2.0
# Part of all variance that a direction has that is looked for, unless something else is said.
SHARE = 0.015
# ε from which on noise is below any use, and up to which there is some privacy to speak of.
EPSILONS = (1e-3, 50.0)
DELTAS = (1e-15, 0.01)
MOST_ROWS_OF_ONE = 10**6


def from_ranges(ranges: Any, *, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """How do documented ranges of columns become the bounds of a release?

    The centre is the middle of each range, the unit half its length. The radius is a quarter of the square root of the
    number of columns: most rows are then shortened to it. That is as it should be, because noise grows with the square
    of the radius, and directions are kept. A range is what a column can hold by its documentation. It must not be
    looked up in the rows.

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
    if isinstance(ranges, Mapping):
        names = list(ranges) if columns is None else list(columns)
        lacking = [name for name in names if name not in ranges]
        if lacking:
            raise InvalidValueError(
                "the ranges lack {lacking}",
                parameter="ranges",
                lacking=listed("column", lacking),
                advice="Give the documented lowest and highest value of every column, or leave the column out of the "
                "rows.",
            )
        ranges = [ranges[name] for name in names]
    facts: dict[str, Any] = {"parameter": "ranges", "advice": "Give a lowest and a highest value for each column."}
    try:
        limits = np.asarray(ranges, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError("are not numbers", **facts) from None
    n_columns = len(limits) if columns is None else len(columns)
    if limits.ndim != 2 or limits.shape != (n_columns, 2) or not n_columns:
        raise InvalidValueError("have shape {shape}, not ({limit}, 2)", shape=limits.shape, limit=n_columns, **facts)
    wrong = np.flatnonzero(~(np.isfinite(limits).all(axis=1) & (limits[:, 0] < limits[:, 1])))
    if len(wrong):
        first = int(wrong[0])
        raise InvalidValueError(
            "of column {column} are {low} to {high}, but the lower must be below the higher, and both finite",
            column=repr(columns[first]) if columns is not None else first,
            low=limits[first, 0],
            high=limits[first, 1],
            **facts,
        )
    half = 0.5 * limits[:, 1] - 0.5 * limits[:, 0]
    radius = RADIUS_OF_RANGES * float(np.sqrt(n_columns))
    return {"centre": limits[:, 0] + half, "scale": half, "radius": radius}


def required_rows(n_features: int, epsilon: float, delta: float, *, share: float = SHARE, max_rows: int = 1) -> int:
    """How many rows does each dataset need, so that noise does not drown what is looked for?

    With so many rows, noise along any direction is at most half of the variance that is looked for. In simulations the
    private fit then finds what the exact one finds.

    Parameters
    ----------
    n_features : int
    epsilon, delta : float
        The budget of the release.
    share : float, default=0.015
        The part of all variance of the target that lies along a direction that is looked for.
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
    check_whole(n_features, "n_features")
    check_budget(epsilon, delta)
    check_number(share, "share", (0.0, 1.0), "Give a part of the variance, such as 0.01.", strict=True)
    check_max_rows(max_rows)
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
    check_number(delta, "delta", DELTAS, "Give a number far below one over the number of rows, such as 1e-6.")
    if not spent or not all(isinstance(one, Spent) for one in spent):
        raise InvalidTypeError("is no list of what was spent", parameter="spent", advice="Give the spent of releases.")
    return epsilon_of(sum(one.rho for one in spent), float(delta))


def check_budget(epsilon: Any, delta: Any) -> None:
    """Refuse a budget that means nothing."""
    advice = "Give a number such as 1: smaller protects more, and needs more rows."
    check_number(epsilon, "epsilon", EPSILONS, advice)
    check_number(delta, "delta", DELTAS, "Give a number far below one over the number of rows, such as 1e-6.")


def check_max_rows(max_rows: Any) -> None:
    """Refuse a number of rows per person that is none, or too large."""
    check_whole(max_rows, "max_rows")
    check_number(max_rows, "max_rows", (1, MOST_ROWS_OF_ONE), "Give a few rows per person.")


def warn_if_drowned(target: Moments, backgrounds: Sequence[Moments], filters: Float) -> None:
    """Warn if noise is as large as what the first components of private moments show.

    Parameters
    ----------
    target : Moments
    backgrounds : sequence of Moments
    filters : ndarray of shape (n_features, n_components)
    """
    private = [part for part in (target, *backgrounds) if isinstance(part, PrivateMoments)]
    if not private:
        return
    noise = np.max([part.noise_along(filters) for part in private], axis=0)
    variance = target.variance(filters)
    drowned = np.flatnonzero(variance < ENOUGH * noise)
    if not len(drowned):
        return
    worst = int(drowned[0])
    # What is seen along a component that noise has made tells nothing of what is looked for.
    rows = max(part.count * ENOUGH * part.noise / (SHARE * part.radius**2) for part in private)
    warn_user(
        "the noise of the private sums drowns what is looked for: along component {component} it reaches {share:.0%} "
        "of the variance of the target",
        component=worst + 1,
        share=min(float(noise[worst] / max(variance[worst], 1e-300)), 9.99),
        rows=_rounded_up(rows),
        part=SHARE,
        advice="About {rows} rows in every dataset would do for what has {part:.1%} of the variance; so would a larger "
        "{p.epsilon}, or fewer columns.",
        limit=1.0 / ENOUGH,
    )


def warn_if_few(moments: PrivateMoments, delta: float) -> None:
    """Warn, from what was released alone, if one dataset has too few rows for its noise or its δ."""
    total = moments.grid.radius**2
    if moments.noise * ENOUGH > 0.1 * total:
        warn_user(
            "the noise drowns what is looked for unless it has most of the variance: along any direction noise reaches "
            "{share:.0%} of all variance that rows can have",
            share=min(moments.noise / total, 9.99),
            rows=_rounded_up(moments.count * moments.noise * ENOUGH / (0.1 * total)),
            advice="About {rows} rows, in all places together, show what has a tenth of the variance.",
            limit=0.1 / ENOUGH,
        )
    if delta * moments.count >= 1.0:
        warn_user(
            "is not below one over the number of rows, which is about {count}: it would allow to give whole rows away",
            parameter="delta",
            value=delta,
            count=moments.count,
            limit=1.0 / moments.count,
            advice="Use a much smaller {p.delta} next time.",
        )


def _rounded_up(number: float) -> int:
    """Round up to two digits."""
    unit = 10 ** max(len(str(int(number))) - 2, 0)
    return int(np.ceil(number / unit)) * unit
