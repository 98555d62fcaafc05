"""Private releases: bounds and the number of rows needed, sums with noise, and warnings about large noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float
from standout._messages import InvalidTypeError, InvalidValueError, listed, require_extra, warn_user
from standout._xp import take
from standout.moments import Moments
from standout.private import _sums
from standout.private._sums import ROW_SENSITIVITY, Grid, PrivateMoments, Spent, Whole, check_number
from standout.sources import Batch, Source, open_dataset
from standout.sources._form import as_words

# Radius that `from_ranges` returns, divided by the square root of the number of columns. The unit of a column is half
# the length of its range. If the standard deviation of each column is a third of its unit, most rows are longer than
# the radius and are shortened.
RADIUS_OF_RANGES = 0.25
# Noise hides a direction if the target's variance along the direction is less than this number times the noise.
ENOUGH = 2.0
# Default of `share`: the part of the target's variance that lies along the direction of interest.
SHARE = 0.015
# Limits of ε. With a smaller ε, noise hides everything. With a larger ε, nobody is protected.
EPSILONS = (1e-3, 50.0)
DELTAS = (1e-15, 0.01)
SMALL_DELTA = "Give a number far below one over the number of rows, such as 1e-6."
MOST_ROWS_OF_ONE = 10**6
PUBLIC = (
    "The bounds are public: take them from documentation, for example by "
    "standout.private.from_ranges(...). Bounds from the rows would reveal information about them."
)


def release(
    rows: Any,
    *,
    centre: Any,
    scale: Any,
    radius: float,
    epsilon: float,
    delta: float,
    groups: Any = None,
    max_rows: int = 1,
) -> PrivateMoments:
    """How can the sums of a dataset be shared privately?

    The result is an (ε, δ)-differentially private release: count, mean and sums of products, with noise. A reader who
    knows all other rows can hardly find out whether one row (or one person) was included. Each row has `centre`
    subtracted, is divided by `scale`, and is shortened to `radius` if it is longer. OpenDP adds discrete Gaussian noise
    to exact sums of whole numbers. Needs ``standout[private]``.

    Parameters
    ----------
    rows : dataset
        In any form that ``DiscriminativePCA.fit`` accepts. The rows are read once.
    centre, scale : array-like of shape (n_features,)
        Public numbers: the expected middle of each column, and the unit of each column. `from_ranges` makes them from
        documented ranges. The scale may also be a matrix. `PrivateMoments.whitening` makes such a matrix, with which a
        target needs far fewer rows.
    radius : float
        Maximum length of a row, in units of `scale`. Longer rows are shortened and keep their directions. Noise grows
        with the square of the radius. Therefore a radius below the typical length of the rows is best.
    epsilon, delta : float
        The budget: ε from 0.001 to 50, and δ far below one over the number of rows. The budgets of all releases of the
        same rows add up.
    groups : array-like of shape (n_rows,), or True, default=None
        The person of each row. The release then protects persons, not only single rows. True uses the subjects of a
        table or a scan (``subject_column``). None protects single rows.
    max_rows : int, default=1
        Maximum number of rows of one person. The first rows of each person are used, and further rows are left out.
        Noise grows with this number.

    Returns
    -------
    PrivateMoments

    Warns
    -----
    UserWarning
        If noise is larger than most signals, or δ is not small for this number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.private import from_ranges, release
    >>> ages_and_weights = np.random.default_rng(0).uniform([20, 50], [90, 120], size=(30_000, 2))
    >>> bounds = from_ranges([(0, 100), (40, 140)])
    >>> sums = release(ages_and_weights, **bounds, epsilon=1.0, delta=1e-6)
    >>> str(sums.spent[0]), abs(sums.count - 30_000) < 1_000
    ('epsilon 1, delta 1e-06 for each row', True)
    """
    check_budget(epsilon, delta, max_rows)
    if groups is None and max_rows != 1:
        problem = "is for persons with several rows, but `groups` is not given"
        raise InvalidValueError(problem, parameter="max_rows", value=max_rows, advice="Give `groups`, too.")
    grid = _checked_grid(centre, scale, radius)
    source = open_dataset(rows, "the data")
    noise, rho = noise_for(max_rows * ROW_SENSITIVITY, float(epsilon), float(delta))
    exact = _summed(source, grid, groups, max_rows)
    spent = Spent(float(epsilon), float(delta), rho, "row" if groups is None else "person", int(max_rows))
    moments = PrivateMoments.of(with_noise(_sums.packed(exact), noise), grid, noise**2, (spent,), source.columns)
    warn_if_few(moments, float(delta))
    return moments


def _checked_grid(centre: Any, scale: Any, radius: Any) -> Grid:
    """Check the bounds, before anything is read."""
    given = {"centre": centre, "scale": scale}
    for name, value in given.items():
        try:
            given[name] = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidTypeError("is not a list of numbers", parameter=name, advice=PUBLIC) from None
    where, unit = np.atleast_1d(given["centre"]), given["scale"]
    return Grid(where, np.full(len(where), unit) if unit.ndim == 0 else unit, radius)


def _summed(source: Source, grid: Grid, groups: Any, max_rows: int) -> Whole:
    """Sum up the rows, at most `max_rows` of each group."""
    kept = None if groups is None else _first_of_each(_persons(source, groups), max_rows)
    # The length of `groups` is checked after all rows have been read. Before, the number of rows of a stream is
    # unknown.
    part = partial(_part, grid=grid, kept=kept)
    total, count = source.map_reduce(part, lambda one, other: (one[0] + other[0], one[1] + other[1]))
    if kept is not None and count != len(kept):
        problem = f"has {len(kept)} entries, but the data have {count} rows"
        raise InvalidValueError(problem, parameter="groups", advice="Give the person of every row.")
    if total[-1, -1] > _sums.MOST_ROWS * _sums.LAST**2:
        problem = f"the data have {count} rows, but at most {_sums.MOST_ROWS} can be summed exactly"
        raise InvalidValueError(problem, advice="Release parts of the rows with the same bounds, and add the parts.")
    return total


def _part(batch: Batch, grid: Grid, kept: npt.NDArray[np.bool_] | None) -> tuple[Whole, int]:
    """Sum the rows of a batch that are marked in `kept` (None for all), and count all rows of the batch."""
    rows, n_rows = batch.rows, int(batch.rows.shape[0])
    if rows.shape[1] != grid.n_features:
        problem = f"the data have {rows.shape[1]} columns, but `centre` has {grid.n_features} numbers"
        raise InvalidValueError(problem, advice="Give one number for each column.")
    if kept is not None:
        rows = take(rows, np.flatnonzero(kept[batch.start : batch.start + n_rows]))
    return _sums.sum_up(rows, grid), n_rows


def _persons(source: Source, groups: Any) -> npt.NDArray[Any]:
    """Return the person of every row."""
    if groups is not True:
        return as_words(groups, source.n_rows, source.name, "groups")
    if source.subjects is None:
        advice = "Give `groups` as a list, or open the files with `subject_column`."
        problem = "needs subjects that come with the data, and these have none"
        raise InvalidTypeError(problem, parameter="groups", value=True, advice=advice)
    return source.subjects


def _first_of_each(persons: npt.NDArray[Any], max_rows: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the first `max_rows` rows of each person."""
    numbers = np.unique(persons, return_inverse=True)[1]
    order, sizes = np.argsort(numbers, kind="stable"), np.bincount(numbers)
    rank = np.empty(len(numbers), dtype=np.intp)
    rank[order] = np.arange(len(numbers)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank < max_rows


# --- before and after a release ---------------------------------------------------------------------------------------


def from_ranges(ranges: Any, *, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """How do documented ranges of columns become the bounds of a release?

    The centre is the middle of each range, and the scale is half of its length. The radius is a quarter of the square
    root of the number of columns. A small radius is used because noise grows with the square of the radius. Most rows
    are longer than the radius: they are shortened, and keep their directions. Ranges come from the documentation of the
    columns. Never compute them from the rows.

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
    the private fit found the same components as the exact fit.

    Parameters
    ----------
    n_features : int
    epsilon, delta : float
        The budget of the release.
    share : float, default=0.015
        The part of all variance of the target that lies along the direction of interest.
    max_rows : int, default=1
        Maximum number of rows of one person that are used.

    Returns
    -------
    int
        The number of rows, rounded up to two digits.

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
    # Standard deviation of the noise of one entry, as a part of the squared radius. The squared radius is the mean
    # squared length of the rows if all of them are shortened to the radius.
    entry = max_rows * scale / _sums.BESIDE / _sums.LONGEST**2
    return _rounded_up(ENOUGH * 2.0 * entry * np.sqrt(n_features) / share)


def total_epsilon(spent: Sequence[Spent], delta: float) -> float:
    """How much of the budget of a row or person have several releases spent together?

    The ρ of all releases add up, and ε grows about with the square root of ρ. Therefore the total ε is less than the
    sum of the ε of all releases.

    Parameters
    ----------
    spent : sequence of Spent
        The attribute `spent` of all releases that include the row or person: ``first.spent + second.spent``.
    delta : float
        The δ of the total.

    Returns
    -------
    float
        The total ε: all releases together are (ε, δ)-differentially private.

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
        raise InvalidTypeError("is not a list of `Spent`", parameter="spent", advice="Use `spent` of releases.")
    scale = ROW_SENSITIVITY / float(np.sqrt(2.0 * sum(one.rho for one in spent)))
    return float(_gaussian(scale, float(delta)).map(ROW_SENSITIVITY)[0])


def check_budget(epsilon: Any, delta: Any, max_rows: Any) -> None:
    """Refuse an invalid budget."""
    check_number(epsilon, "epsilon", EPSILONS, "Give a number such as 1: smaller protects more, and needs more rows.")
    check_number(delta, "delta", DELTAS, SMALL_DELTA)
    check_number(max_rows, "max_rows", (1, MOST_ROWS_OF_ONE), "Give a few rows per person.", whole=True)


def warn_if_drowned(moments: Sequence[Moments], filters: Float) -> None:
    """Warn if the noise is more than half of the target's variance along a component.

    Parameters
    ----------
    moments : sequence of Moments
        The target first.
    filters : ndarray of shape (n_features, n_components)
    """
    private = [part for part in moments if isinstance(part, PrivateMoments)]
    noise, variance = np.max([part.noise_along(filters) for part in private], axis=0), moments[0].variance(filters)
    if not np.any(variance < ENOUGH * noise):
        return
    worst = int(np.argmax(variance < ENOUGH * noise))
    reached = min(float(noise[worst] / max(variance[worst], 1e-300)), 9.99)
    # Along a component of pure noise, the variance does not show the variance of the signal. Use the default share.
    rows = max(part.count * ENOUGH * part.noise / (SHARE * part.grid.radius**2) for part in private)
    where = f"along component {worst + 1} it reaches {reached:.0%} of the variance of the target"
    enough = f"About {_rounded_up(rows)} rows in every dataset are enough for a signal with {SHARE:.1%} of the variance"
    advice = f"{enough}; so are a larger `epsilon`, or fewer columns."
    warn_user(f"the noise of the private sums drowns the signal: {where}", advice=advice)


def warn_if_few(moments: PrivateMoments, delta: float) -> None:
    """Warn if a dataset has too few rows for its noise, or too many for its δ.

    Only the released sums are used, so that the warning reveals nothing else about the rows.
    """
    total = moments.grid.radius**2
    if moments.noise * ENOUGH > 0.1 * total:
        rows, share = _rounded_up(moments.count * moments.noise * ENOUGH / (0.1 * total)), moments.noise / total
        where = f"along any direction noise reaches {min(share, 9.99):.0%} of all variance that rows can have"
        advice = f"About {rows} rows, in all sites together, show a signal with a tenth of the variance."
        warn_user(f"the noise drowns every signal with less than most of the variance: {where}", advice=advice)
    if delta * moments.count >= 1.0:
        problem = f"is not below one over the number of rows, about {moments.count}: whole rows could be given away"
        warn_user(problem, parameter="delta", value=delta, advice="Use a much smaller `delta` next time.")


def _rounded_up(number: float) -> int:
    """Round up to two digits."""
    unit = 10 ** max(len(str(int(number))) - 2, 0)
    return int(np.ceil(number / unit)) * unit


# --- OpenDP ----------------------------------------------------------------------------------------------------------


def with_noise(exact: Whole, scale: float) -> Whole:
    """Add discrete Gaussian noise to a vector of whole numbers."""
    return np.array(_gaussian(scale)(exact.tolist()), dtype=np.int64)


@lru_cache(maxsize=64)
def noise_for(sensitivity: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return the smallest standard deviation of noise that keeps the budget, and the ρ of this noise.

    ρ measures privacy in terms of zero-concentrated differential privacy.
    """
    require_extra("opendp", "private", "a private release")
    from opendp.mod import binary_search_param

    # ε and δ have been checked. Within their limits, the noise is between these bounds.
    bounds: Any = (0.05 * sensitivity, 1e6 * sensitivity)
    scale = float(binary_search_param(lambda scale: _gaussian(scale, delta), sensitivity, (epsilon, delta), bounds))
    return scale, float(_gaussian(scale).map(sensitivity))


def _gaussian(scale: float, delta: float | None = None) -> Any:
    """Return OpenDP's mechanism that adds discrete Gaussian noise to vectors of 64-bit whole numbers.

    The privacy of the mechanism is measured as ρ. With `delta`, it is measured as ε for this δ.
    """
    require_extra("opendp", "private", "a private release")
    # Do not import opendp.prelude: it also loads scikit-learn's estimators.
    from opendp.combinators import make_fix_delta, make_zCDP_to_approxDP
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    made = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="i64"), scale=scale)
    return made if delta is None else make_fix_delta(make_zCDP_to_approxDP(made), delta)
