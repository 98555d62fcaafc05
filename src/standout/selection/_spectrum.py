"""Leading ratios of many relabelings of the same rows, along a path of shrinkages, without a factorisation for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import Float, product, self_product, sum_of_squares
from standout.selection._iterations import largest_values

# Iterations are slow here.
MOST_STEPS = 400
# The least share of the background in the direction of the largest ratio: errors of values are divided by it.
LEAST_REST = 0.01


@dataclass(frozen=True, eq=False)
class PooledSpectrum:
    """The rows of a target and one background, in coordinates in which the scatter T of all rows is diagonal.

    However the rows are dealt, the scatters about the means of the two groups, ``S_x`` and ``S_y``, add up to
    ``W = T - R Rᵀ``, where R has the two means times the roots of the numbers of rows. With ``κ = (1 - s) / n_y`` and
    the ridge ρ of a shrinkage s, the largest ratio of ``S_x / n_x`` to ``κ S_y + ρ I`` follows from the largest value ν
    of ``S_x u = ν (κ W + ρ I) u``: it is ``(ν / n_x) / (1 - κ ν)``. The matrix on the right is diagonal but for R, so
    that Lanczos iterations need nothing but products with ``S_x``, for all shrinkages at once.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, r)
    squares : ndarray of shape (r,)
        The diagonal of T.
    sums : ndarray of shape (r,)
        The sum of all rows.
    """

    rows: Float
    squares: Float
    sums: Float

    @classmethod
    def of(cls, rows: Float) -> PooledSpectrum:
        """Turn the rows."""
        squares, vectors = linalg.eigh(self_product(rows), check_finite=False)
        turned = product(rows, vectors)
        return cls(turned, np.maximum(squares, 0.0), turned.sum(axis=0))

    def dealt(self, target: npt.NDArray[np.intp], background: npt.NDArray[np.intp]) -> Relabelled:
        """Give the sums of two groups of rows."""
        sizes = len(target), len(background)
        smaller = self.rows[target if sizes[0] <= sizes[1] else background]
        scatter, row = self_product(smaller), smaller.sum(axis=0)
        if sizes[0] > sizes[1]:
            # The sums of the larger group are what the smaller one leaves of the total.
            np.negative(scatter, out=scatter)
            scatter.flat[:: len(scatter) + 1] += self.squares
            row = self.sums - row
        other = self.sums - row
        trace = float(np.sum(self.squares)) - float(np.trace(scatter)) - sum_of_squares(other) / sizes[1]
        scatter -= np.multiply.outer(row, row / sizes[0])
        means = np.column_stack([row / np.sqrt(sizes[0]), other / np.sqrt(sizes[1])])
        return Relabelled(self.squares, scatter, means, sizes, trace / sizes[1])


@dataclass(frozen=True, eq=False)
class Relabelled:
    """One relabeling: the target's scatter about its mean, both means, and the background's total variance."""

    squares: Float
    scatter: Float
    means: Float
    sizes: tuple[int, int]
    variance: float

    def largest_ratios(self, shares: Float, ridges: Float) -> Float | None:
        """Give the largest ratio at each shrinkage with its ridge, to about six digits; infinite if none is finite.

        None if the iterations do not converge, or if a ratio is so large that it would lose more than two of the digits
        that they give.
        """
        factors = (1.0 - shares) / self.sizes[1]
        diagonal = factors * self.squares[:, np.newaxis] + ridges
        if not np.all(diagonal > 0.0):
            return np.full(len(shares), np.inf)
        scales = 1.0 / np.sqrt(diagonal)
        # In these units the matrix on the right is I - Q Qᵀ, and H = I + Q G Qᵀ is the root of its inverse.
        sides = np.sqrt(factors) * (scales[:, np.newaxis, :] * self.means[:, :, np.newaxis])
        inner = np.einsum("iag,ibg->gab", sides, sides)
        values, turns = np.linalg.eigh(inner)
        if not np.all(values < 1.0):
            return np.full(len(shares), np.inf)
        # (1/√(1 - v) - 1) / v, without cancelling where v is small.
        roots = np.sqrt(1.0 - values)
        middle = np.einsum("gab,gb,gcb->gac", turns, 1.0 / (roots * (1.0 + roots)), turns)

        def rooted(vectors: Float) -> Float:
            along = np.einsum("iag,ig->ag", sides, vectors)
            turned: Float = vectors + np.einsum("iag,gab,bg->ig", sides, middle, along, optimize=True)
            return turned

        def applied(vectors: Float) -> Float:
            return rooted(scales * product(self.scatter, scales * rooted(vectors)))

        leading, converged = largest_values(applied, len(self.squares), len(shares), most=MOST_STEPS)
        rest = 1.0 - factors * leading
        if not converged or not np.all(rest > LEAST_REST):
            return None
        found: Float = leading / self.sizes[0] / rest
        return found
