"""A private release: rows are summed up exactly, noise is added once, and only the result leaves this function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from standout._arrays import Float
from standout._checks import as_labels, check_number, check_same_columns
from standout._messages import InvalidTypeError, InvalidValueError, require_extra
from standout._xp import take
from standout.private._grid import (
    MOST_ROWS,
    ROW_SENSITIVITY,
    ExactSums,
    Grid,
    noise_for,
    packed,
    sum_up,
    with_noise,
)
from standout.private._moments import PrivateMoments, Spent
from standout.private._plan import check_budget, check_max_rows, warn_if_few
from standout.sources import Batch, Dataset, Source, added, open_dataset, regrouped

# Of a matrix of units. Beyond it, rows would be placed by rounding errors.
MOST_CONDITION = 1e10

PUBLIC = (
    "The bounds are public: give what is known of the columns without looking at the rows, for example by "
    "standout.private.from_ranges(...), because bounds that are taken from the rows give something of them away."
)


def release(
    rows: Dataset,
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

    Count, mean and sums of products with noise: an (ε, δ)-differentially private release. Whoever sees it, and knows
    all other rows, can hardly tell whether one row (or one person) was among them. Rows are moved by `centre`, divided
    by `scale`, and shortened to `radius` if they are longer. Noise is discrete Gaussian noise of OpenDP, on exact sums
    of whole numbers. Needs ``standout[private]``.

    Parameters
    ----------
    rows : dataset
        In any form that ``DiscriminativePCA.fit`` takes. It is read once.
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
        The person of each row, so that persons are protected and not rows alone. True takes the groups that a table or
        a scan has (``standout.scan(..., group_column=...)``). None protects each row by itself.
    max_rows : int, default=1
        Rows of one person that are used, the first ones; the others are left out. Noise grows with it.

    Returns
    -------
    PrivateMoments

    Warns
    -----
    UserWarning
        If noise is larger than most that could be looked for, or δ is no longer small.

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
        raise InvalidTypeError(
            "a release needs {p.epsilon} and {p.delta}, the budget that it may spend",
            advice="Give, for example, {p.epsilon:1} and {p.delta:1e-06}.",
        )
    check_budget(epsilon, delta)
    check_max_rows(max_rows)
    if groups is None and max_rows != 1:
        raise InvalidValueError(
            "is for persons with several rows, but {p.groups} does not tell which rows are of one person",
            parameter="max_rows",
            value=max_rows,
            advice="Give {p.groups}, or leave {p.max_rows} out.",
        )
    require_extra("opendp", "private", "a private release")
    dataset = open_dataset(rows, "the data", min_rows=1)
    grid = _checked_grid(centre, scale, radius, dataset.width)
    if dataset.width is not None:
        check_same_columns(dataset.width, None, "the data", grid.n_features, None, "the centre")
    dataset.expect(grid.n_features, "the centre")
    sensitivity = max_rows * ROW_SENSITIVITY
    noise, rho = noise_for(sensitivity, float(epsilon), float(delta))
    dataset.require_finite()
    exact = _summed(dataset, grid, groups, max_rows)
    if exact.count > MOST_ROWS:
        raise InvalidValueError(
            "the data have {count} rows, but the most that are summed exactly are {limit}",
            count=exact.count,
            limit=MOST_ROWS,
            advice="Release parts of the rows with the same bounds, and add the parts.",
        )
    moments = PrivateMoments(
        with_noise(packed(exact.products), noise),
        grid.centre,
        grid.scale,
        grid.radius,
        noise**2,
        (Spent(float(epsilon), float(delta), rho, "row" if groups is None else "person", max_rows),),
        None if dataset.columns is None else tuple(dataset.columns),
    )
    warn_if_few(moments, float(delta))
    return moments


def _checked_grid(centre: Any, scale: Any, radius: Any, width: int | None) -> Grid:
    """Check the bounds, before anything is read."""
    missing = [name for name, value in (("centre", centre), ("scale", scale), ("radius", radius)) if value is None]
    if missing:
        raise InvalidTypeError(
            "a release needs {p.centre}, {p.scale} and {p.radius}, but {missing} is missing",
            missing=" and ".join(missing),
            advice=PUBLIC,
        )
    where, unit = _numbers("centre", centre, 1), _numbers("scale", scale, 2)
    sizes = {*where.shape, *unit.shape} or ({width} if width is not None else set())
    if len(sizes) != 1:
        raise InvalidValueError(
            "has shape {given}, but {p.centre} has shape {limit}",
            parameter="scale",
            given=unit.shape,
            limit=where.shape,
            advice="Give one number for each column.",
        )
    (size,) = sizes
    if not (np.all(unit > 0.0) if unit.ndim < 2 else np.linalg.cond(unit) < MOST_CONDITION):
        raise InvalidValueError(
            "has a number that is not above zero, or is a singular matrix",
            parameter="scale",
            advice="Give the unit of each column.",
            limit=0.0,
        )
    check_number(radius, "radius", (0.0, np.inf), "Give a length in units of {p.scale}, above zero.", strict=True)
    units = unit if unit.ndim == 2 else np.broadcast_to(unit, (size,))
    return Grid(np.broadcast_to(where, (size,)).astype(np.float64), units.astype(np.float64), float(radius))


def _numbers(name: str, value: Any, most_axes: int) -> Float:
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError("is not a list of numbers", parameter=name, advice=PUBLIC) from None
    if numbers.ndim > most_axes or not np.all(np.isfinite(numbers)):
        raise InvalidValueError(
            "is not a list of finite numbers", parameter=name, advice="Give one number for each column."
        )
    return numbers


# --- sums ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """The function that sums up one batch. It can be sent to other processes.

    Attributes
    ----------
    grid : Grid
    kept : ndarray of bool or None
        Which rows of the whole dataset are used; None for all.
    """

    grid: Grid
    kept: npt.NDArray[np.bool_] | None
    needs_words: ClassVar[bool] = False

    @property
    def needs_start(self) -> bool:
        """Whether row numbers are needed."""
        return self.kept is not None

    def __call__(self, batch: Batch) -> _Seen:
        """Sum up the rows of a batch that are used."""
        if self.kept is None:
            return _Seen(batch.n_rows, sum_up(batch.rows, self.grid))
        here = np.flatnonzero(self.kept[batch.start : batch.start + batch.n_rows])
        return _Seen(batch.n_rows, sum_up(_taken(batch, here), self.grid))


@dataclass(frozen=True, eq=False)
class _Seen:
    """Exact sums, and the number of rows that were read for them."""

    count: int
    sums: ExactSums

    def __add__(self, other: _Seen) -> _Seen:
        return _Seen(self.count + other.count, self.sums + other.sums)


def _summed(dataset: Source, grid: Grid, groups: Any, max_rows: int) -> ExactSums:
    """Sum up the rows, at most `max_rows` of each group."""
    if groups is True:
        return _summed_by_own_groups(dataset, grid, max_rows)
    kept = None
    if groups is not None:
        n_rows = len(groups) if dataset.n_rows is None else dataset.n_rows
        kept = _first_of_each(as_labels(groups, n_rows, "groups"), max_rows)
    seen: _Seen = dataset.summed(_Part(grid, kept))
    if kept is not None and seen.count != len(kept):
        raise InvalidValueError(
            "has {given} entries, but the data have {limit} rows",
            parameter="groups",
            given=len(kept),
            limit=seen.count,
            advice="Give the person of every row.",
        )
    return seen.sums


def _first_of_each(groups: npt.NDArray[Any], max_rows: int) -> npt.NDArray[np.bool_]:
    """Choose the first rows of each group."""
    _, numbers = np.unique(groups, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    sizes = np.bincount(numbers)
    rank = np.empty(len(numbers), dtype=np.intp)
    rank[order] = np.arange(len(numbers)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank < max_rows


def _summed_by_own_groups(dataset: Source, grid: Grid, max_rows: int) -> ExactSums:
    """Sum up rows by the groups that come with them, in the order of the rows."""
    used: dict[str, int] = {}
    total: ExactSums | None = None
    for batch in regrouped(dataset.batches()):
        if batch.groups is None:
            raise InvalidTypeError(
                "needs groups that come with the data, and these have none",
                parameter="groups",
                value=True,
                advice="Give {p.groups} as a list, or open the files with group_column=.",
            )
        chosen = []
        for place, group in enumerate(batch.groups.tolist()):
            if not group:
                raise InvalidValueError(
                    "row {row} belongs to no person", row=batch.start + place, advice="Leave such rows out."
                )
            used[group] = used.get(group, 0) + 1
            if used[group] <= max_rows:
                chosen.append(place)
        total = added(total, sum_up(_taken(batch, np.array(chosen, dtype=np.intp)), grid))
    assert total is not None
    return total


def _taken(batch: Batch, numbers: npt.NDArray[np.intp]) -> Any:
    return batch.rows if len(numbers) == batch.n_rows else take(batch.rows, numbers)
