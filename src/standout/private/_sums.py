"""Private sums: rows are rounded to a grid of whole numbers and summed exactly; moments come from noisy sums.

A row x becomes ``z = (x - centre) / scale``. If z is longer than the radius, it is shortened to the radius. Then z is
measured in steps of the grid, rounded to whole numbers, and extended by a last entry that is the same for every row:
``a = (z, LAST)``. For each dataset, only one noisy copy of the matrix ``Σ a aᵀ`` is released. This matrix holds the
sums of products, the sums and the count.

The released vector has each entry of this symmetric matrix once. Entries on the diagonal are multiplied by 5, and other
entries by 7. One row changes the vector by at most ``5 |a|²`` in Euclidean length, because ``7² < 2 · 5²``. All numbers
are whole. Rounding of floating-point numbers therefore reveals nothing, and sums do not depend on the order of the
rows.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, dense, double, row_blocks, self_product
from standout._messages import FileError, InvalidTypeError, InvalidValueError, MissingFileError, shown
from standout._writing import write_whole
from standout._xp import to_host
from standout.moments import ScatterMoments

Whole = npt.NDArray[np.int64]

# Maximum length of a row on the grid. The sum of a million squared lengths fits the 53 bits of float64.
LONGEST = 2**15
# The last entry of every row. A larger entry makes count and mean more precise, and all other sums less precise.
LAST = LONGEST // 4
# A release multiplies entries on the diagonal by the first factor, and other entries by the second factor.
ON_DIAGONAL, BESIDE = 5, 7
# The largest change of the released vector by one row, in Euclidean length.
ROW_SENSITIVITY = ON_DIAGONAL * (LONGEST**2 + LAST**2)
# Size of a block of rows in one product. A block has at most 2**22 rows. Its sums then stay below 2**53, where float64
# is exact.
BLOCK_BYTES = 2**24
# Maximum number of rows of a dataset. The sums then stay below 2**61, so that 64 bits are enough for sums with noise.
MOST_ROWS = 2**28
# Largest difference from the centre, in units of the radius. Larger differences, and infinite ones, are set to it.
FAR = 1e100
# Limits of radius and units: products of four such numbers are still within the range of float64.
LEAST, MOST = 1e-60, 1e60
# Maximum condition number of a matrix of units. With a larger condition number, rounding errors could move a row to
# another point of the grid.
MOST_CONDITION = 1e10
FORMAT = "standout private sums 1"
# Ridge that is added to a private background, as a multiple of the noise of the background. In simulations, multiples
# from 0.35 to 1 gave the same results.
RIDGE = 0.5
# Radius that `whitening` returns, divided by the square root of the number of columns. It is for rows that have unit
# variance along every direction.
WHITE_RADIUS = 0.7


def check_number(value: Any, name: str, limits: tuple[float, float], advice: str, *, whole: bool = False) -> None:
    """Refuse a value that is not a number, or is outside of its limits."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral if whole else Real):
        kind = "whole number" if whole else "number"
        raise InvalidTypeError(f"is not a {kind}", parameter=name, value=value, advice=advice)
    number: Any = value
    if not limits[0] <= number <= limits[1]:
        problem = f"is outside [{limits[0]:g}, {limits[1]:g}]"
        raise InvalidValueError(problem, parameter=name, value=value, advice=advice)


@dataclass(frozen=True, eq=False)
class Grid:
    """The bounds that put rows on the grid. The bounds are public, and never computed from the rows of the dataset.

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
    scale : ndarray of shape (n_features,) or (n_features, n_features)
        The unit of each column; or a matrix S, for ``z = S⁻¹ (x - centre)``.
    radius : float
    """

    centre: Float
    scale: Float
    radius: float

    @property
    def units(self) -> Float:
        """The matrix S with ``x = centre + S z``."""
        return np.diag(self.scale) if self.scale.ndim == 1 else self.scale

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.centre)

    def __post_init__(self) -> None:
        """Refuse bounds that cannot be used, so that nothing overflows after noise has been drawn."""
        size, each = self.centre.shape, "Give one number for each column."
        if self.centre.ndim != 1 or not size[0] or self.scale.shape not in (size, size * 2):
            problem = f"has shape {self.scale.shape}, but `centre` has shape {size}"
            raise InvalidValueError(problem, parameter="scale", advice=each)
        check_number(self.radius, "radius", (LEAST, MOST), "Give a length in units of `scale`, above zero.")
        if not np.all(np.abs(self.centre) <= MOST):
            problem = f"has a number that is not finite, or beyond {MOST:g}"
            raise InvalidValueError(problem, parameter="centre", advice=each)
        units: npt.NDArray[Any] = self.scale
        most = np.inf
        if units.ndim == 2 and np.isfinite(units).all():
            units, most = np.linalg.svd(units, compute_uv=False), MOST_CONDITION
        if not (units.min() >= LEAST and units.max() <= MOST and units.max() < most * units.min()):
            problem = f"has a number outside [{LEAST:g}, {MOST:g}], or is a singular matrix"
            raise InvalidValueError(problem, parameter="scale", advice=each)

    @property
    def reach(self) -> float:
        """Length of the radius in steps of the grid.

        It is less than `LONGEST`, because rounding can make a row longer by half the diagonal of a cell of the grid.
        """
        return LONGEST - 1.0 - 0.5 * float(np.sqrt(self.n_features))

    @property
    def step(self) -> float:
        """The step of the grid in units of `scale`."""
        return self.radius / self.reach

    def place(self, rows: Float) -> Float:
        """Return the rows as whole numbers on the grid. No row is longer than `LONGEST`.

        The result for a row must not depend on other rows, not even by rounding. Otherwise a change of one row could
        move other rows to other points of the grid. Therefore only operations on single elements are used: the order of
        additions in a product or sum of NumPy can depend on the number of rows.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            moved = rows - self.centre
            moved = (moved / self.scale if self.scale.ndim == 1 else self._in_units(moved)) / self.radius
        # Rows that are very far away overflow. A difference of infinities is NaN and has no direction: set it to 0.
        moved = np.clip(np.nan_to_num(moved, nan=0.0, posinf=FAR, neginf=-FAR), -FAR, FAR)
        squares = np.zeros(len(rows))
        for column in range(self.n_features):
            squares += moved[:, column] * moved[:, column]
        return np.rint(moved * (self.reach / np.maximum(np.sqrt(squares), 1.0))[:, np.newaxis])

    def _in_units(self, rows: Float) -> Float:
        """Multiply rows by the inverse of the matrix of units, one column after the other."""
        total = np.zeros_like(rows)
        for column, factors in enumerate(np.linalg.inv(self.scale).T):
            total += rows[:, column, np.newaxis] * factors
        return total


def sum_up(rows: Rows, grid: Grid) -> Whole:
    """Return the exact sum of ``a aᵀ`` over the rows: n_features + 1 rows and columns.

    The exact sum must not leave the site of the rows.
    """
    size = grid.n_features + 1
    total = np.zeros((size, size), dtype=np.int64)
    for block in row_blocks(rows, n_bytes=BLOCK_BYTES):
        placed = np.full((block.shape[0], size), float(LAST))
        placed[:, :-1] = grid.place(double(to_host(dense(block))))
        # All numbers are whole and below 2**53, so that the product is exact in any order of additions.
        total += self_product(placed).astype(np.int64)
    return total


def packed(products: Whole) -> Whole:
    """Return each entry of a symmetric matrix once, multiplied by its factor for the release."""
    row, column = np.triu_indices(len(products))
    return products[row, column] * np.where(row == column, ON_DIAGONAL, BESIDE)


def unpacked(released: Whole, size: int) -> Float:
    """Return the symmetric matrix of packed entries: the inverse of `packed`."""
    row, column = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[row, column] = matrix[column, row] = released / np.where(row == column, ON_DIAGONAL, BESIDE)
    return matrix


@dataclass(frozen=True)
class Spent:
    """How much of the privacy budget of its rows or persons has one release spent?

    Attributes
    ----------
    epsilon, delta : float
        The budget that was given: the release is (ε, δ)-differentially private.
    rho : float
        The budget in terms of zero-concentrated privacy. The ρ of several releases add up. The total ε from this sum is
        smaller than the sum of all ε.
    unit : {"row", "person"}
        Who is protected.
    max_rows : int
        Maximum number of rows of one person that were used.

    Examples
    --------
    >>> from standout.private import Spent
    >>> str(Spent(1.0, 1e-6, 0.024, "person", 5))
    'epsilon 1, delta 1e-06 for each person with at most 5 rows'
    """

    epsilon: float
    delta: float
    rho: float
    unit: str
    max_rows: int

    def __str__(self) -> str:
        whom = "row" if self.unit == "row" else f"person with at most {self.max_rows} rows"
        return f"epsilon {self.epsilon:g}, delta {self.delta:g} for each {whom}"


@dataclass(frozen=True, eq=False, repr=False)
class PrivateMoments(ScatterMoments):
    """Count, mean and scatter of a dataset with noise: sums that may leave the site where the rows are.

    `standout.private.release` makes them, and ``DiscriminativePCA.from_moments`` uses them as moments. The moments of
    several sites are merged with ``+``: noise variances add up, and the budgets of all sites are kept. `mean` and
    `scatter` are in the units of the rows.

    Attributes
    ----------
    released : ndarray of int
        The sums with noise, on the grid. These are the only numbers that were computed from the rows.
    grid : Grid
        The public bounds of the release: ``centre``, ``scale``, ``radius``.
    noise_variance : float
        Variance of the noise in an entry of `released`.
    spent : tuple of Spent
        The budget, one entry for each release that was merged.
    columns : tuple of str or None
        Names of the columns.
    count : int
        Number of rows, with noise; at least 2.
    mean : ndarray of shape (n_features,)
    scatter : ndarray of shape (n_features, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from standout.private import release
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> bounds = {"centre": [0, 0, 0], "scale": [1, 1, 1], "radius": 2.0}
    >>> half, other = (release(part, **bounds, epsilon=2.0, delta=1e-6) for part in (X[:10_000], X[10_000:]))
    >>> both = half + other
    >>> abs(both.count - 20_000) < 500, len(both.spent), both.noise < 0.02
    (True, 2, True)
    """

    released: Whole = None  # type: ignore[assignment]
    grid: Grid = None  # type: ignore[assignment]
    noise_variance: float = 0.0
    spent: tuple[Spent, ...] = ()
    columns: tuple[str, ...] | None = None
    exact: ClassVar[bool] = False

    @classmethod
    def of(
        cls, released: Whole, grid: Grid, noise_variance: float, spent: tuple[Spent, ...], columns: Any = None
    ) -> PrivateMoments:
        """Return the moments of noisy sums. Sums that no rows can have are replaced by the nearest possible sums."""
        matrix = unpacked(released, grid.n_features + 1)
        # Exact sums of squares are never negative along any direction, but noise can make them negative: set these to
        # 0. This changes only released sums, and costs no budget.
        values, vectors = np.linalg.eigh(matrix)
        matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
        # The count must not be smaller than the count in the matrix. Otherwise variances could be negative.
        count = max(matrix[-1, -1] / LAST**2, 2.0)
        mean, whole, units = matrix[:-1, -1] / (LAST * count), max(round(count), 2), grid.step * grid.units
        scatter = whole * units @ (matrix[:-1, :-1] / count - np.outer(mean, mean)) @ units.T
        beside = {"released": released, "grid": grid, "noise_variance": noise_variance, "spent": spent}
        return cls(whole, grid.centre + units @ mean, (scatter + scatter.T) / 2.0, columns=columns, **beside)  # type: ignore[arg-type]

    def taken(self, columns: npt.NDArray[np.intp]) -> ScatterMoments:
        """Return the moments of some of the columns."""
        return ScatterMoments(self.count, self.mean, self.scatter).taken(columns)

    def mapped(self, matrix: Float) -> ScatterMoments:
        """Return the moments of rows that are mapped linearly."""
        return ScatterMoments(self.count, self.mean, self.scatter).mapped(matrix)

    # --- noise ----------------------------------------------------------------------------------------------------

    @property
    def noise(self) -> float:
        """The expected largest variance of the noise alone along any direction, in units of `scale`.

        The noise is a symmetric matrix of independent Gaussian entries. Its largest eigenvalue is about twice the
        standard deviation of an entry, times the square root of the number of columns.
        """
        entry = float(np.sqrt(self.noise_variance)) / BESIDE * self.grid.step**2
        return 2.0 * entry * float(np.sqrt(self.n_features)) / self.count

    def noise_along(self, U: Float) -> Float:
        """Return `noise` along each column of U, in units of the rows."""
        return self.noise * np.sum((self.grid.units.T @ U) ** 2, axis=0)

    @cached_property
    def _scaled(self) -> Float:
        """The covariance in units of `scale`."""
        half = np.linalg.solve(self.grid.units, self.covariance())
        return np.linalg.solve(self.grid.units, half.T)

    @property
    def shrinkage(self) -> float:
        """The shrinkage of a private background: ridge / (ridge + mean variance).

        The ridge is half of `noise`, and the mean is over the columns, in units of `scale`.
        """
        ridge = RIDGE * self.noise
        return ridge / (ridge + float(np.trace(self._scaled)) / self.n_features)

    @property
    def spherical(self) -> ScatterMoments:
        """The moments towards which a private background is shrunken: equal variance along every direction.

        The variance is equal in units of `scale`. In these units the noise is equal along every direction, too.
        """
        variance, units = float(np.trace(self._scaled)) / self.n_features, self.grid.units
        return ScatterMoments(self.count, self.mean, self.count * variance * units @ units.T)

    def whitening(self) -> dict[str, Any]:
        """Return bounds for the release of a target, from this release of a background.

        With these bounds the background has nearly the same variance along every direction. The noise of the target is
        then small along directions in which the background varies little. A tenth of the rows can be enough. This costs
        no budget, because the release is public already. Rows of the target and of the background can be at different
        sites.

        Returns
        -------
        dict
            ``centre``, ``scale`` (a matrix) and ``radius``, for `release`.
        """
        values, vectors = np.linalg.eigh(self._scaled)
        root = (vectors * np.sqrt(np.maximum(values, 0.0) + RIDGE * self.noise)) @ vectors.T
        radius = WHITE_RADIUS * float(np.sqrt(self.n_features))
        return {"centre": self.mean, "scale": self.grid.units @ root, "radius": radius}

    # --- sites and files -----------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> PrivateMoments:
        """Return the merged sums of two sites."""
        if not isinstance(other, PrivateMoments):
            problem = "exact sums and private sums cannot be added: the noise of the result would not be known"
            raise InvalidTypeError(problem, advice="Release every dataset, or none.")
        mine, theirs = ({**vars(part.grid), "columns": part.columns} for part in (self, other))
        for name in ("centre", "scale", "radius", "columns"):
            if not np.array_equal(np.asarray(mine[name]), np.asarray(theirs[name])):
                problem = f"two sites were released with a different {name}, so that their sums do not add up"
                advice = "Agree on `centre`, `scale`, `radius` and the columns before the release."
                raise InvalidValueError(problem, advice=advice)
        noise = self.noise_variance + other.noise_variance
        return self.of(self.released + other.released, self.grid, noise, self.spent + other.spent, self.columns)

    def __repr__(self) -> str:
        spent = "; ".join(map(str, self.spent[:3])) + ("; ..." if len(self.spent) > 3 else "")
        return f"PrivateMoments(about {self.count} rows x {self.n_features} columns, with noise; {spent})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the noisy sums, the bounds and the budget as JSON; no rows and no exact sums.

        Parameters
        ----------
        path : str or path-like
            The name usually ends with ``.sums``. An existing file is replaced.
        """
        about: dict[str, Any] = {"format": FORMAT, "grid": [LONGEST, LAST], "columns": self.columns}
        about |= {"noise_variance": self.noise_variance, "spent": [asdict(one) for one in self.spent]}
        arrays = {**vars(self.grid), "released": self.released}
        about |= {name: np.asarray(numbers).tolist() for name, numbers in arrays.items()}
        write_whole(Path(path).expanduser(), json.dumps(about).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivateMoments:
        """Read sums from a file that `save` wrote; nothing in it is run as code.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        PrivateMoments
        """
        place = Path(path).expanduser()
        try:
            content = place.read_bytes()
        except OSError as error:
            kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
            raise kind(f"{shown(place)} cannot be read: {error.strerror}", advice="Check the name.") from error
        try:
            about = json.loads(content)
            centre, scale, released = (np.array(about[name]) for name in ("centre", "scale", "released"))
            grid = Grid(centre, scale, float(about["radius"]))
            size, columns, variance = grid.n_features + 1, about["columns"], float(about["noise_variance"])
            spent = tuple(Spent(**one) for one in about["spent"])
            budgets = [number for one in spent for number in (one.epsilon, one.delta, one.rho, one.max_rows)]
            sound = (
                [about["format"], *about["grid"]] == [FORMAT, LONGEST, LAST]
                and released.dtype == np.int64
                and released.shape == (size * (size + 1) // 2,)
                and centre.dtype == scale.dtype == np.float64
                and 0.0 < variance < 1e60
                and (columns is None or ([str(one) for one in columns] == columns and len(columns) == size - 1))
                and spent
                and all(isinstance(number, int | float) and 0 < number < 1e60 for number in budgets)
                and all(one.unit in ("row", "person") for one in spent)
            )
            if not sound:
                raise ValueError("a part is missing or has another form")
            return cls.of(released, grid, variance, spent, columns and tuple(columns))
        # A damaged or forged file can lead to any error.
        except Exception as error:
            problem = f"{shown(place)} has no private sums, or is damaged"
            advice = "Give a file that standout release, or PrivateMoments.save, has written."
            raise InvalidValueError(problem, advice=advice) from error
