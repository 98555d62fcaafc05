"""A private release: rows are summed up exactly, noise is added once, and only the result leaves this function."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, all_finite
from standout._messages import InvalidTypeError, InvalidValueError, require_extra
from standout._xp import take
from standout.private._grid import LAST, MOST_ROWS, ROW_SENSITIVITY, Grid, Whole, noise_for, packed, sum_up, with_noise
from standout.private._moments import PrivateMoments, Spent
from standout.private._plan import check_budget, check_number, warn_if_few
from standout.sources import Batch, Source, open_dataset
from standout.sources._open import as_words

PUBLIC = (
    "The bounds are public: use what is known of the columns without looking at the rows, for example by "
    "standout.private.from_ranges(...), because bounds from the rows would give something of them away."
)


def release(
    rows: Any,
    *,
    centre: Any = None,
    scale: Any = None,
    radius: Any = None,
    epsilon: Any = None,
    delta: Any = None,
    groups: Any = None,
    max_rows: int = 1,
) -> PrivateMoments:
    """What of this dataset may leave the place where it is kept?

    Count, mean and sums of products with noise: an (ε, δ)-differentially private release. A reader of it who knows all
    other rows can hardly tell whether one row (or one person) was among them. Rows are moved by `centre`, divided
    by `scale`, and shortened to `radius` if they are longer. Noise is discrete Gaussian noise of OpenDP, on exact sums
    of whole numbers. Needs ``standout[private]``.

    Parameters
    ----------
    rows : dataset
        In any form that ``DiscriminativePCA.fit`` accepts. It is read once.
    centre, scale : array-like of shape (n_features,)
        Public numbers: where rows are expected to lie, and the unit of each column. See `from_ranges`. The scale may be
        a matrix: see `PrivateMoments.whitening`, with which a target needs far fewer rows.
    radius : float
        Length of the longest row, in units of `scale`. Noise grows with its square. A radius below the typical length
        is best: rows keep their directions.
    epsilon, delta : float
        The budget: ε from 0.001 to 50, and δ far below one over the number of rows. Every release of the same rows
        spends its own: budgets add up.
    groups : array-like of shape (n_rows,), or True, default=None
        The person of each row, so that persons are protected and not rows alone. True uses the subjects of a table or
        a scan (``subject_column``). None protects each row alone.
    max_rows : int, default=1
        Rows of one person that are used, the first ones; the others are left out. Noise grows with it.

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
    if epsilon is None or delta is None:
        problem = "a release needs `epsilon` and `delta`, the budget that it may spend"
        raise InvalidTypeError(problem, advice="Give, for example, epsilon=1 and delta=1e-06.")
    check_budget(epsilon, delta, max_rows)
    if groups is None and max_rows != 1:
        problem = "is for persons with several rows, but `groups` is not given"
        raise InvalidValueError(problem, parameter="max_rows", value=max_rows, advice="Give `groups`, too.")
    require_extra("opendp", "private", "a private release")
    grid = _checked_grid(centre, scale, radius)
    source = open_dataset(rows, "the data")
    noise, rho = noise_for(max_rows * ROW_SENSITIVITY, float(epsilon), float(delta))
    exact = _summed(source, grid, groups, max_rows)
    spent = Spent(float(epsilon), float(delta), rho, "row" if groups is None else "person", int(max_rows))
    moments = PrivateMoments.of(with_noise(packed(exact), noise), grid, noise**2, (spent,), source.columns)
    warn_if_few(moments, float(delta))
    return moments


def _checked_grid(centre: Any, scale: Any, radius: Any) -> Grid:
    """Check the bounds, before anything is read."""
    given = {"centre": centre, "scale": scale, "radius": radius}
    missing = " and ".join(f"`{name}`" for name, value in given.items() if value is None)
    if missing:
        raise InvalidTypeError(f"a release also needs {missing}", advice=PUBLIC)
    check_number(radius, "radius", (0.0, np.inf), "Give a length in units of `scale`, above zero.")
    where, unit = np.atleast_1d(_numbers("centre", centre)), _numbers("scale", scale)
    return Grid(where, np.full(len(where), unit) if unit.ndim == 0 else unit, float(radius))


def _numbers(name: str, value: Any) -> Float:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError("is not a list of numbers", parameter=name, advice=PUBLIC) from None


def _summed(source: Source, grid: Grid, groups: Any, max_rows: int) -> Whole:
    """Sum up the rows, at most `max_rows` of each group."""
    kept = None if groups is None else _first_of_each(_persons(source, groups), max_rows)
    # The number of rows of a stream is known at its end.
    total, count = source.map_reduce(partial(_part, grid=grid, kept=kept), _added)
    if kept is not None and count != len(kept):
        problem = f"has {len(kept)} entries, but the data have {count} rows"
        raise InvalidValueError(problem, parameter="groups", advice="Give the person of every row.")
    if total[-1, -1] > MOST_ROWS * LAST**2:
        problem = f"the data have {count} rows, but at most {MOST_ROWS} can be summed exactly"
        raise InvalidValueError(problem, advice="Release parts of the rows with the same bounds, and add the parts.")
    return total


def _added(first: tuple[Whole, int], second: tuple[Whole, int]) -> tuple[Whole, int]:
    return first[0] + second[0], first[1] + second[1]


def _part(batch: Batch, grid: Grid, kept: npt.NDArray[np.bool_] | None) -> tuple[Whole, int]:
    """Sum up the rows of a batch that are used, and count all."""
    rows, n_rows = batch.rows, int(batch.rows.shape[0])
    if rows.shape[1] != grid.n_features:
        problem = f"the data have {rows.shape[1]} columns, but `centre` has {grid.n_features} numbers"
        raise InvalidValueError(problem, advice="Give one number for each column.")
    if not all_finite(rows):
        raise InvalidValueError("there is NaN or infinity in the data", advice="Drop such rows before the release.")
    here = None if kept is None else np.flatnonzero(kept[batch.start : batch.start + n_rows])
    return sum_up(rows if here is None or len(here) == n_rows else take(rows, here), grid), n_rows


def _persons(source: Source, groups: Any) -> npt.NDArray[Any]:
    """Return the person of every row."""
    if groups is True:
        if source.subjects is None:
            advice = "Give `groups` as a list, or open the files with `subject_column`."
            problem = "needs subjects that come with the data, and these have none"
            raise InvalidTypeError(problem, parameter="groups", value=True, advice=advice)
        return np.asarray(source.subjects)
    return as_words(groups, source.n_rows, source.name, "groups")


def _first_of_each(persons: npt.NDArray[Any], max_rows: int) -> npt.NDArray[np.bool_]:
    """Choose the first rows of each person."""
    numbers = np.unique(persons, return_inverse=True)[1]
    order, sizes = np.argsort(numbers, kind="stable"), np.bincount(numbers)
    rank = np.empty(len(numbers), dtype=np.intp)
    rank[order] = np.arange(len(numbers)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank < max_rows
