"""The grid of whole numbers that rows are put on, the sums over it, and the noise that OpenDP adds to them.

A row x becomes ``z = (x - centre) / scale``. A row longer than the radius is shortened to it. The result is rounded to
whole numbers, and gets a last entry that is the same for every row: ``a = (z, LAST)``. All that is released of a
dataset is one noisy copy of ``Σ a aᵀ``. It holds the sums of products, the sums and the count.

Each entry of this symmetric matrix is released once, those on the diagonal times 5 and the others times 7. One row
changes this vector by at most ``5 |a|²`` in Euclidean length, because ``7² < 2 · 5²``. All numbers are whole. Rounding
of floating-point numbers can therefore give nothing away, and sums do not depend on their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, dense, double, row_slice, self_product
from standout._messages import InvalidValueError, require_extra
from standout._xp import to_host

Whole = npt.NDArray[np.int64]

# A row has at most this length on the grid. A million rows times a square of it fits the 53 bits of float64.
LONGEST = 2**15
# The last entry of every row. A larger one makes count and mean more precise, and all else less.
LAST = LONGEST // 4
# Multiples of the diagonal and of the other entries that are released.
ON_DIAGONAL, BESIDE = 5, 7
# By how much one row changes what is released, at most.
ROW_SENSITIVITY = ON_DIAGONAL * (LONGEST**2 + LAST**2)
# Rows that are multiplied at once: all sums of products stay below 2**53, where float64 is exact.
BLOCK_ROWS = 2**20
# Rows in all: sums stay below 2**61, and noise has room in 64 bits.
MOST_ROWS = 2**28
# In units of the radius. Differences that overflow count as this large.
FAR = 1e100
# Limits of radius and units: products of four such numbers are still within the range of float64.
LEAST, MOST = 1e-60, 1e60
# Of a matrix of units. Beyond it, rows would be placed by rounding errors.
MOST_CONDITION = 1e10


@dataclass(frozen=True, eq=False)
class Grid:
    """Where rows are put before they are summed up: public numbers, never computed from the rows.

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
        """Refuse bounds that rows cannot be placed by. Nothing overflows later, when noise has been drawn."""
        size, plain = self.centre.shape, self.scale.ndim == 1
        each = "Give one number for each column."
        if self.centre.ndim != 1 or not size[0] or self.scale.shape not in (size, size * 2):
            problem = f"has shape {self.scale.shape}, but `centre` has shape {size}"
            raise InvalidValueError(problem, parameter="scale", advice=each)
        limits = f"[{LEAST:g}, {MOST:g}]"
        if not LEAST <= self.radius <= MOST:
            advice = "Give a length in units of `scale`."
            raise InvalidValueError(f"is outside {limits}", parameter="radius", value=self.radius, advice=advice)
        if not np.all(np.abs(self.centre) <= MOST):
            raise InvalidValueError(
                f"has a number that is not finite, or beyond {MOST:g}", parameter="centre", advice=each
            )
        units = (
            self.scale if plain or not np.isfinite(self.scale).all() else np.linalg.svd(self.scale, compute_uv=False)
        )
        if not np.all((units >= LEAST) & (units <= MOST)) or not (plain or units[0] < MOST_CONDITION * units[-1]):
            problem = f"has a number outside {limits}, or is a singular matrix"
            raise InvalidValueError(problem, parameter="scale", advice=each)

    @property
    def reach(self) -> float:
        """Length on the grid that the radius becomes: rounding can make a row longer by half a diagonal of a cell."""
        return LONGEST - 1.0 - 0.5 * float(np.sqrt(self.n_features))

    @property
    def step(self) -> float:
        """What one step of the grid is in units of `scale`."""
        return self.radius / self.reach

    def place(self, rows: Float) -> Float:
        """Put rows on the grid: whole numbers, of which no row is longer than `LONGEST`.

        What becomes of a row must not depend on the rows beside it, not even by rounding: otherwise one row could
        change others. Therefore only operations on single elements are used. A product or a sum of NumPy may add up in
        another order for another number of rows.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            moved = self._in_units(rows - self.centre) / self.radius
        # Differences of infinities come from rows that are too far away to have a direction.
        moved = np.clip(np.nan_to_num(moved, nan=0.0, posinf=FAR, neginf=-FAR), -FAR, FAR)
        squares = np.zeros(len(rows))
        for column in range(self.n_features):
            squares += moved[:, column] * moved[:, column]
        return np.rint(moved * (self.reach / np.maximum(np.sqrt(squares), 1.0))[:, np.newaxis])

    def _in_units(self, rows: Float) -> Float:
        """Divide rows by the scale."""
        if self.scale.ndim == 1:
            return rows / self.scale
        total = np.zeros_like(rows)
        for column, factors in enumerate(self._inverse):
            total += rows[:, column, np.newaxis] * factors
        return total

    @cached_property
    def _inverse(self) -> Float:
        """The transposed inverse of the matrix of units."""
        return np.ascontiguousarray(np.linalg.inv(self.units).T)


def sum_up(rows: Rows, grid: Grid) -> Whole:
    """Sum ``a aᵀ`` over the rows, exactly: a matrix of n_features + 1 rows and columns. It stays with the rows."""
    size = grid.n_features + 1
    total = np.zeros((size, size), dtype=np.int64)
    n_block = max(1, min(BLOCK_ROWS, 2**22 // size))
    for start in range(0, rows.shape[0], n_block):
        block = double(to_host(dense(row_slice(rows, start, start + n_block))))
        placed = np.empty((len(block), size))
        placed[:, :-1] = grid.place(block)
        placed[:, -1] = LAST
        # Whole numbers below 2**53: the product is exact in every order.
        total += self_product(placed).astype(np.int64)
    return total


def packed(products: Whole) -> Whole:
    """Return each entry of a symmetric matrix once, weighted for the release."""
    row, column = np.triu_indices(len(products))
    return products[row, column] * np.where(row == column, ON_DIAGONAL, BESIDE)


def unpacked(released: Whole, size: int) -> Float:
    """Undo `packed`."""
    row, column = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[row, column] = released / np.where(row == column, ON_DIAGONAL, BESIDE)
    matrix[column, row] = matrix[row, column]
    return matrix


# --- OpenDP ----------------------------------------------------------------------------------------------------------


def with_noise(exact: Whole, scale: float) -> Whole:
    """Add discrete Gaussian noise to a vector of whole numbers."""
    return np.array(_gaussian(scale)(exact.tolist()), dtype=np.int64)


@lru_cache(maxsize=64)
def noise_for(sensitivity: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return the least standard deviation of noise for this budget, and ρ of zero-concentrated privacy."""
    require_extra("opendp", "private", "a private release")
    from opendp.mod import binary_search_param

    # The limits of ε and δ, which have been checked, lead to noise between these bounds.
    bounds = (0.05 * sensitivity, 1e6 * sensitivity)
    scale = float(
        binary_search_param(
            lambda scale: _with_delta(scale, delta), d_in=sensitivity, d_out=(epsilon, delta), bounds=bounds
        )
    )
    return scale, float(_gaussian(scale).map(sensitivity))


def epsilon_of(rho: float, delta: float) -> float:
    """Return ε at this δ for ρ of zero-concentrated privacy."""
    epsilon, _ = _with_delta(ROW_SENSITIVITY / math.sqrt(2.0 * rho), delta).map(ROW_SENSITIVITY)
    return float(epsilon)


def _with_delta(scale: float, delta: float) -> Any:
    """Make the mechanism with its privacy as ε at a fixed δ."""
    gaussian = _gaussian(scale)
    from opendp.combinators import make_fix_delta, make_zCDP_to_approxDP

    return make_fix_delta(make_zCDP_to_approxDP(gaussian), delta)


def _gaussian(scale: float) -> Any:
    """Make the mechanism: discrete Gaussian noise on vectors of 64-bit whole numbers."""
    require_extra("opendp", "private", "a private release")
    # Not by opendp.prelude, which loads scikit-learn's estimators as well.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="i64"), scale=scale)
