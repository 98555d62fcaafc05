"""The statistic of a draw: the leading value of a problem, at one or several values of its regularisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from standout._arrays import Float, product
from standout._xp import cholesky, is_foreign, largest_eigenvalue, whiten
from standout.moments import ScatterMoments, WeightSums
from standout.problem import Problem, Sums, pencil_of, pose, solve
from standout.selection._choose import ridge_unit
from standout.selection._units import Numbers

# Representative values of each path. α and ε are in the units of the path.
SHRINKAGES, ALPHAS, EPSILONS = (1e-9, 0.01, 0.1, 0.7), (1.0, 4.0, 15.0, 60.0), (1e-4, 1e-2, 0.3, 10.0)
# With fewer background rows per column than this, two values have nearly the power of three. Two are also used with
# `n_columns`, which needs several solutions for each value.
MANY_ROWS, FEW_SHRINKAGES = 2, (0.03, 0.5)
# Columns of the statistic if the data chose their number.
FEW_COLUMNS = 0.1
# Larger logarithms of ratios are treated as infinite.
LARGEST_LOG = 100.0
# From this number of coordinates on, iterations are faster than LAPACK.
LEAST_ITERATED = 192
# Smallest shrinkage at which inner products of rows have enough digits.
LEAST_SHRINKAGE = 1e-3
# Most steps, and the relative residual of the vector at which they end. The error of the value is about its square, or
# the distance to the next value if the two are close.
MOST_STEPS, TOLERANCE, SMALLEST = 200, 1e-3, 1e-300


@dataclass(frozen=True)
class Statistic:
    """The statistic of a problem: `values_of` returns its leading values for the sums of a draw.

    Attributes
    ----------
    problem : Problem
    chosen : bool
        Whether shrinkage, α or ε was chosen by the data. Then the statistic has a value for each representative of the
        path, and does not depend on the choice.
    columns_chosen : bool
        Whether the number of columns was chosen by the data.
    """

    problem: Problem
    chosen: bool = False
    columns_chosen: bool = False

    def problems(self, sums: Sums) -> list[Problem]:
        """Return the problems whose leading values are compared."""
        one = replace(self.problem, n_components=1, n_columns=None if self.columns_chosen else self.problem.n_columns)
        every = [one]
        target, *backgrounds = sums.moments
        pairs = list(zip(one.weights, backgrounds, strict=True))
        if self.chosen and one.kind == "difference":
            unit = target.total_variance / (sum(w * part.total_variance for w, part in pairs) or 1.0)
            every = [replace(one, alpha=unit * value) for value in ALPHAS]
        elif self.chosen and one.epsilon is not None:
            unit = ridge_unit(one, sums)
            every = [replace(one, epsilon=unit * value) for value in EPSILONS]
        elif self.chosen:
            many = sum(part.count for weight, part in pairs if weight > 0.0) >= MANY_ROWS * sums.dimension
            values = SHRINKAGES if many and one.n_columns is None else FEW_SHRINKAGES
            every = [replace(one, shrinkage=value) for value in values]
        if self.columns_chosen:
            few = max(int(FEW_COLUMNS * sums.dimension), 1)
            every += [replace(part, n_columns=few) for part in every[:: max(len(every) - 1, 1)]]
        return every

    def values_of(self, sums: Sums) -> Float:
        """Return the leading values: logarithms of ratios, or differences."""
        problems = self.problems(sums)
        found = []
        whole = [one for one in problems if one.n_columns is None]
        posed = pose(sums, whole) if whole else None
        for place, one in enumerate(problems):
            if one.n_columns is not None or posed is None:
                found.append(float(solve(sums, one).values[0]))
                continue
            pencil = pencil_of(posed, one, place)
            b = None if pencil.b.is_identity else pencil.b.matrix()
            found.append(_largest(pencil.a.matrix(), b))
        return self.scaled(np.array(found))

    def suits_products(self, n_rows: Sequence[int], size: int) -> bool:
        """Tell whether inner products of rows find the values, and faster than scatters of so many coordinates."""
        one = self.problem
        plain = replace(Problem(), weights=one.weights, shrinkage=one.shrinkage, n_components=one.n_components)
        digits = self.chosen or float(np.min(np.array(one.shrinkage))) >= LEAST_SHRINKAGE
        simple = one.smooth is None and one == plain and not self.columns_chosen and min(one.weights) > 0.0
        few = size >= LEAST_ITERATED and sum(n_rows) <= 2 * size and sum(n_rows[1:]) <= size
        return simple and digits and few

    def values_by_products(
        self, products: Float, hands: Sequence[tuple[Numbers, Float | None]], held: Sequence[float], dimension: int
    ) -> Float:
        """Return the leading values from the inner products of all rows: a draw only chooses among them.

        With the rows X of the target, Y of the backgrounds and the ridge ρ, the values of ``XᵀX u = λ (YᵀY + ρI) u``
        are those of ``(XXᵀ - XYᵀ (YYᵀ + ρI)⁻¹ YXᵀ) / ρ``.

        Parameters
        ----------
        products : array of shape (n, n)
        hands : sequence of (row numbers, weights or None)
            Of each dataset.
        held : sequence of float
            Variance of each dataset outside of the rows.
        dimension : int
            Number of columns of the data.
        """
        weights = [np.ones(len(numbers)) if own is None else own for numbers, own in hands]
        roots = [np.sqrt(own / own.sum()) for own in weights]
        target = hands[0][0], roots[0][:, None]
        backgrounds = np.concatenate([numbers for numbers, _ in hands[1:]]), linalg.block_diag(*roots[1:]).T
        inner, across, back = (
            _centred(products, *pair) for pair in ((target, target), (backgrounds, target), (backgrounds, backgrounds))
        )
        counts = [len(own) for own in roots[1:]]
        parts = np.split(np.diagonal(back), np.cumsum(counts)[:-1])
        variances = [np.trace(inner), *(part.sum() for part in parts)]
        # Moments along one direction that has all variance: the problem only needs the sum.
        moments = []
        for own, variance, more in zip(weights, variances, held, strict=True):
            total, whole = float(own.sum()), np.full((1, 1), variance + more)
            moments.append(ScatterMoments(round(total), whole[0], total * whole, weights=WeightSums(total, total)))
        sums = Sums(tuple(moments), dimension)
        posed = pose(sums, self.problems(sums))
        factors = np.repeat(posed.second[:, 1:], counts, axis=1) ** 0.5
        pairs = zip(factors, posed.ridges.tolist(), strict=True)
        return self.scaled(np.array([_largest_by_products(inner, across, back, own, ridge) for own, ridge in pairs]))

    def scaled(self, values: Float) -> Float:
        """Return the logarithms of ratios, or differences unchanged."""
        if self.problem.kind == "difference":
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(np.nan_to_num(np.log(values), nan=LARGEST_LOG), -LARGEST_LOG, LARGEST_LOG)


def _largest(a: Float, b: Float | None) -> float:
    """Return the largest value of ``A u = λ B u``; infinite if B is singular."""
    factor = None
    if b is not None:
        factor = cholesky(b)
        if factor is None:
            return float("inf")
    if is_foreign(a) or a.shape[0] < LEAST_ITERATED:
        return largest_eigenvalue(a if factor is None else whiten(a, factor))

    def applied(vector: Float) -> Float:
        turned = vector if factor is None else linalg.blas.dtrsv(factor, vector, lower=1, trans=1)
        image = product(a, turned[:, None])[:, 0]
        return image if factor is None else linalg.blas.dtrsv(factor, image, lower=1, overwrite_x=1)

    return _lanczos(applied, a.shape[0])


def _centred(products: Float, first: tuple[Numbers, Float], second: tuple[Numbers, Float]) -> Float:
    """Return inner products of weighted rows about the means of their datasets.

    The columns beside the row numbers are the roots of the weights in each dataset, with squares of sum 1.
    """
    (rows, left), (columns, right) = first, second
    # Two steps are several times as fast as indexing both ways at once.
    block = products.take(rows, axis=0).take(columns, axis=1)
    block *= left.sum(axis=1)[:, None]
    block *= right.sum(axis=1)
    # In place, because memory for another block takes longer. The transpose is in BLAS's order of memory.
    linalg.blas.dgemm(-1.0, block.T @ left, left, beta=1.0, c=block.T, trans_b=True, overwrite_c=True)
    linalg.blas.dgemm(-1.0, right, block @ right, beta=1.0, c=block.T, trans_b=True, overwrite_c=True)
    return block


def _largest_by_products(inner: Float, across: Float, back: Float, factors: Float, ridge: float) -> float:
    """Return the largest value of the target's rows, if the rows of backgrounds are multiplied by factors."""
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
    """Return the largest eigenvalue of a symmetric matrix.

    Without orthogonalisation, copies of the largest value appear, but its error is the same.
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
