"""The statistic of a permutation test: the leading value of a problem, at one or several values of a parameter.

A deal is one permutation: it assigns the rows (or blocks, or subjects) of all datasets to the datasets at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np
from scipy import linalg

from standout._arrays import Float, product
from standout._xp import cholesky, column_norms, is_foreign, largest_eigenvalue, whiten
from standout.moments import ScatterMoments, WeightSums
from standout.pencil import Pencil
from standout.problem import Problem, Sums, pencil_of, pose, solve
from standout.selection._choose import grid
from standout.selection._resample import Deck
from standout.selection._units import Numbers

# Representative values of each parameter. α and ε are in the units of `PATHS` in `_choose`.
REPRESENTATIVES = {
    "shrinkage": np.array([1e-9, 0.01, 0.1, 0.7]),
    "alpha": np.array([1.0, 4.0, 15.0, 60.0]),
    "epsilon": np.array([1e-4, 1e-2, 0.3, 10.0]),
}
# With fewer background rows per column than MANY_ROWS, these two values of shrinkage have nearly the same power as four
# values. They are also used with `n_columns`, because each value then needs several solutions.
MANY_ROWS, FEW_SHRINKAGES = 2, np.array([0.03, 0.5])
# If the number of columns was chosen by the data, the statistic is also computed with this share of the columns.
FEW_COLUMNS = 0.1
# Logarithms of ratios are limited to this size. The logarithm of an infinite ratio also gets this value.
LARGEST_LOG = 100.0
# With at least this many coordinates, iterations are faster than LAPACK.
LEAST_ITERATED = 192
# With less shrinkage than this, inner products of rows lose too many digits.
LEAST_SHRINKAGE = 1e-3
# Maximum number of Lanczos steps, and the relative residual at which the steps end. The relative error of the largest
# value is then about TOLERANCE². If the second largest value is close, the error can be as large as the distance
# between the two values. SMALLEST avoids a division by 0.
MOST_STEPS, TOLERANCE, SMALLEST = 200, 1e-3, 1e-300


@dataclass(frozen=True, eq=False)
class Statistic:
    """The statistic of every deal: the leading values of a problem.

    Attributes
    ----------
    deck : Deck
    problem : Problem
    chosen : bool
        Whether shrinkage, α or ε was chosen by the data. If so, the statistic has one value for each of the
        `REPRESENTATIVES`, and does not depend on the chosen value.
    columns_chosen : bool
        Whether the number of columns was chosen by the data.
    held : sequence of array
        Covariance of each background along the components that were removed by `without_leading`. It is the same in
        every deal.
    """

    deck: Deck
    problem: Problem
    chosen: bool = False
    columns_chosen: bool = False
    held: Sequence[Float] = ()

    def problems(self, sums: Sums) -> list[Problem]:
        """Return the problems whose leading values are compared."""
        one = replace(self.problem, n_components=1, n_columns=None if self.columns_chosen else self.problem.n_columns)
        every = [one]
        if self.chosen:
            # Shrinkage has four values. It has only two values with `n_columns`, or if the backgrounds have few rows
            # per column (see `MANY_ROWS`).
            many = one.n_columns is None and self._n_against >= MANY_ROWS * sums.dimension
            every = grid(one, sums, REPRESENTATIVES if many else REPRESENTATIVES | {"shrinkage": FEW_SHRINKAGES})[1]
        if self.columns_chosen:
            few = max(int(FEW_COLUMNS * sums.dimension), 1)
            every += [replace(part, n_columns=few) for part in every[:: max(len(every) - 1, 1)]]
        return every

    @cached_property
    def _n_against(self) -> float:
        """Number of rows of the backgrounds with positive weights. It is the same in every deal."""
        hands = self.deck.hands(np.arange(len(self.deck.plan.homes)))[1:]
        chosen = [self.deck.chosen(*hand) for one, hand in zip(self.problem.weights, hands, strict=True) if one > 0.0]
        return float(sum(len(numbers) if self.deck.scatters is None else own.sum() for numbers, own in chosen))

    def values(self, at: Numbers) -> Float:
        """Return the statistic of a deal at each value of a parameter, averaged over the thinnings of subjects."""
        thinnings = range(len(self.deck.plan.parts))
        find = self.values_by_products if self._suits_products else self.values_of
        return np.asarray(np.mean([find(at, thinning) for thinning in thinnings], axis=0))

    def values_of(self, at: Numbers, thinning: int) -> Float:
        """Return the leading values of a deal for one thinning: logarithms of ratios, or differences."""
        sums = self._sums(at, thinning)
        problems = self.problems(sums)
        posed = pose(sums, problems)
        found = [
            _largest(pencil_of(posed, one, place)) if one.n_columns is None else float(solve(sums, one).values[0])
            for place, one in enumerate(problems)
        ]
        return np.array(found) if self.problem.kind == "difference" else _logarithms(found)

    @cached_property
    def _suits_products(self) -> bool:
        """Whether inner products of rows are faster than scatter matrices of the coordinates, and accurate enough."""
        one, size = self.problem, self.deck.rows.shape[1]
        if size < LEAST_ITERATED or self.deck.scatters is not None or is_foreign(self.deck.rows) or self.columns_chosen:
            return False
        plain = replace(Problem(), weights=one.weights, shrinkage=one.shrinkage, n_components=one.n_components)
        digits = self.chosen or float(np.min(np.array(one.shrinkage))) >= LEAST_SHRINKAGE
        hands = self.deck.hands(np.arange(len(self.deck.plan.homes)))
        first, *others = [len(self.deck.numbers(parts)) for parts, _ in hands]
        few = sum(others) <= min(size, 2 * size - first)
        return one.smooth is None and one == plain and min(one.weights) > 0.0 and digits and few

    def values_by_products(self, at: Numbers, thinning: int) -> Float:
        """Return the leading values of a deal, from inner products of rows.

        The inner products of all rows are computed once. A deal selects some of them. X has the rows of the target, Y
        the rows of the backgrounds, and ρ is the ridge. The values of ``XᵀX u = λ (YᵀY + ρI) u`` are then the
        eigenvalues of ``(XXᵀ - XYᵀ (YYᵀ + ρI)⁻¹ YXᵀ) / ρ``.
        """
        hands = [self.deck.chosen(*hand) for hand in self.deck.hands(at, thinning)]
        numbers, totals = np.concatenate([own for own, _ in hands]), [float(weights.sum()) for _, weights in hands]
        # One column for each dataset: the square roots of the weights of its rows, scaled to length 1.
        roots = np.sqrt(linalg.block_diag(*(own / total for (_, own), total in zip(hands, totals, strict=True)))).T
        # Two calls of `take` are several times as fast as indexing both axes together.
        block = self.deck.products.take(numbers, axis=0).take(numbers, axis=1)
        block *= roots.sum(axis=1)[:, None]
        block *= roots.sum(axis=1)
        # Centre the rows of each dataset at its mean. This is done in place, because allocating another block takes
        # longer. BLAS needs column-major arrays, such as the transpose of the block.
        linalg.blas.dgemm(-1.0, block.T @ roots, roots, beta=1.0, c=block.T, trans_b=True, overwrite_c=True)
        linalg.blas.dgemm(-1.0, roots, block @ roots, beta=1.0, c=block.T, trans_b=True, overwrite_c=True)
        variances = block.diagonal() @ (roots > 0.0)
        variances[1:] += [np.trace(own) for own in self.held] or 0.0
        # Moments of a single column with the total variance of each dataset: `pose` only needs the total.
        moments = [
            ScatterMoments(round(total), np.zeros(1), np.full((1, 1), total * own), weights=WeightSums(total, total))
            for total, own in zip(totals, variances.tolist(), strict=True)
        ]
        sums, counts = Sums(tuple(moments), self.deck.dimension), [len(own) for own, _ in hands]
        posed, first = pose(sums, self.problems(sums)), counts[0]
        inner, across = block[:first, :first].copy(), block[first:, :first].copy()
        factors = np.repeat(posed.second[:, 1:], counts[1:], axis=1) ** 0.5
        pairs = zip(factors, posed.ridges.tolist(), strict=True)
        return _logarithms([_largest_by_products(inner, across, block[first:, first:], *pair) for pair in pairs])

    def _sums(self, at: Numbers, *thinnings: int) -> Sums:
        """Return the sums of a deal, added over the given thinnings."""
        deck = self.deck
        if self.problem.smooth is None and deck.scatters is None and deck.rows.shape[1] > deck.rows.shape[0]:
            # The deck has wide rows instead of coordinates, because scaling or choosing columns needs all columns. New
            # coordinates are computed in every deal.
            return deck.wide_sums(deck.hands(at, thinnings[0]), self.problem)
        target, *found = (reduce(add, own) for own in zip(*(deck.dealt(at, own) for own in thinnings), strict=True))
        for place, held in enumerate(self.held):
            part = found[place]
            found[place] = replace(part, scatter=part.scatter + part.total_weight * held)
        return Sums((target, *found), deck.dimension)

    def without_leading(self, place: int) -> Statistic:
        """Return the statistic after the leading component of the observed datasets is removed from all rows.

        `place` is the index of the value of the parameter. After the pattern ``B u`` is removed, the largest value is
        the value of the next component. The variance of the backgrounds along the pattern is kept in `held`, because
        the ridge depends on it.
        """
        sums = self._sums(np.arange(len(self.deck.plan.homes)), *range(len(self.deck.plan.parts)))
        pattern = solve(sums, self.problems(sums)[place]).patterns[:, :1]
        pattern = pattern / column_norms(pattern)
        held: list[Float] = []
        if sums.lift is None:
            held = [part.variance(pattern) * pattern * pattern.T for part in sums.moments[1:]]
            held = list(map(add, held, self.held)) if self.held else held
        return replace(self, deck=self.deck.without(pattern), held=held)


def _logarithms(ratios: Sequence[float]) -> Float:
    """Return logarithms of ratios, limited to `LARGEST_LOG`. Ratios may be infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(np.nan_to_num(np.log(ratios), nan=LARGEST_LOG), -LARGEST_LOG, LARGEST_LOG)


def _largest(pencil: Pencil) -> float:
    """Return the largest value of ``A u = λ B u``; infinite if B is singular."""
    a, factor = pencil.a.matrix(), None
    if not pencil.b.is_identity:
        factor = cholesky(pencil.b.matrix())
        if factor is None:
            return float("inf")
    if is_foreign(a) or a.shape[0] < LEAST_ITERATED:
        return largest_eigenvalue(a if factor is None else whiten(a, factor))

    def applied(vector: Float) -> Float:
        turned = vector if factor is None else linalg.blas.dtrsv(factor, vector, lower=1, trans=1)
        image = product(a, turned[:, None])[:, 0]
        return image if factor is None else linalg.blas.dtrsv(factor, image, lower=1, overwrite_x=1)

    return _lanczos(applied, a.shape[0])


def _largest_by_products(inner: Float, across: Float, back: Float, factors: Float, ridge: float) -> float:
    """Return the largest value from inner products of rows; infinite if the matrix of the backgrounds is singular.

    `inner` has the products of target rows, `back` of background rows, and `across` of background with target rows.
    Background rows are multiplied by `factors`.
    """
    matrix = factors[:, None] * back
    matrix *= factors
    matrix.flat[:: len(matrix) + 1] += ridge
    factor = cholesky(matrix)
    if factor is None or ridge <= 0.0:
        return float("inf")

    def applied(vector: Float) -> Float:
        turned = linalg.blas.dtrsv(factor, factors * product(across, vector[:, None])[:, 0], lower=1)
        turned = factors * linalg.blas.dtrsv(factor, turned, lower=1, trans=1, overwrite_x=1)
        return (product(inner, vector[:, None]) - product(across.T, turned[:, None]))[:, 0] / ridge

    return _lanczos(applied, len(inner))


def _lanczos(applied: Callable[[Float], Float], size: int) -> float:
    """Return the largest eigenvalue of a symmetric matrix, which `applied` multiplies by a vector.

    The vectors are not orthogonalised again. This adds copies of the largest value, but its error stays the same.
    """
    vector = np.random.default_rng(0).standard_normal(size)
    vector /= np.linalg.norm(vector)
    before, off = vector, 0.0
    diagonal, beside = np.empty((2, MOST_STEPS))
    for step in range(MOST_STEPS):
        image = applied(vector) - off * before
        diagonal[step] = vector @ image
        image -= diagonal[step] * vector
        beside[step] = off = float(np.linalg.norm(image))
        if step % 4 == 3:
            some = {"select": "i", "select_range": (step, step)}
            (value,), last = linalg.eigh_tridiagonal(diagonal[: step + 1], beside[:step], **some)
            if off * abs(last[-1, 0]) <= TOLERANCE * abs(value):
                break
        before, vector = vector, image / max(off, SMALLEST)
    return float(value)
