"""The statistic of a draw: the leading value of a problem, at one or several values of its regularisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from standout._arrays import Float, product
from standout._xp import cholesky, is_foreign, largest_eigenvalue, largest_ratio
from standout.problem import Problem, Sums, _pencil, _prepared, solve
from standout.selection._choose import ridge_unit
from standout.selection._resample import Deck, RowDeck, Totals

# Representative values of each path. α and ε are in the units of the path. The smallest shrinkage is left out if the
# background has fewer than `MANY_ROWS` rows per column.
SHRINKAGES, ALPHAS, EPSILONS = (0.001, 0.01, 0.1, 0.7), (1.0, 4.0, 15.0, 60.0), (1e-4, 1e-2, 0.3, 10.0)
MANY_ROWS = 2
# With a choice of columns, each value needs several solutions.
FEW_SHRINKAGES = (0.01, 0.3)
# Columns in a choice of few columns that the data made.
FEW_COLUMNS = 0.1
# Logarithms of ratios beyond this size are as good as infinite.
LARGEST_LOG = 100.0
# From so many coordinates on, iterations are faster than LAPACK.
LEAST_ITERATED, LEAST_POOLED = 256, 48
# Coordinates with a smaller share of the variance are left out.
SMALLEST_SHARE = 1e-12
# Iterations end if the values change by less than this share in `CHECKED` steps. They are given up after `MOST_STEPS`.
TOLERANCE, CHECKED, MOST_STEPS = 1e-7, 4, 200
# Least share of the background in the direction of the largest ratio: errors of values are divided by it.
LEAST_REST = 1e-4


@dataclass(frozen=True)
class Statistic:
    """The leading values of a problem, which `values_of` returns for the sums of a draw.

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
            values = FEW_SHRINKAGES if one.n_columns is not None else SHRINKAGES[0 if many else 1 :]
            every = [replace(one, shrinkage=value) for value in values]
        if self.columns_chosen:
            few = max(int(FEW_COLUMNS * sums.dimension), 1)
            every += [replace(part, n_columns=few) for part in every[:: max(len(every) - 1, 1)]]
        return every

    def values_of(self, sums: Sums) -> Float:
        """Return the leading values: logarithms of ratios, or differences."""
        problems = self.problems(sums)
        prepared = _prepared(sums, problems[0])
        found = []
        for one in problems:
            if one.n_columns is not None:
                found.append(float(solve(sums, one).values[0]))
                continue
            pencil = _pencil(prepared, one, sums.dimension)[0]
            b = None if pencil.b.is_identity else pencil.b.matrix()
            found.append(_largest(pencil.a.matrix(), b))
        return self.scaled(np.array(found))

    def scaled(self, values: Float) -> Float:
        """Return the logarithms of ratios, and differences as they are."""
        if self.problem.kind == "difference":
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(np.nan_to_num(np.log(values), nan=LARGEST_LOG), -LARGEST_LOG, LARGEST_LOG)

    @property
    def is_plain(self) -> bool:
        """Whether the problem is the ratio to one background, without rules that depend on the draw."""
        one = self.problem
        simple = one.scale is None and one.smooth is None and one.n_columns is None and not self.columns_chosen
        return one.kind == "ratio" and len(one.weights) == 1 and simple and one.n_covariates == 0


def _largest(a: Float, b: Float | None) -> float:
    """Return the largest value of ``A u = λ B u``; infinite if B is singular."""
    factor = None
    if b is not None:
        factor = cholesky(b)
        if factor is None:
            return float("inf")
    if is_foreign(a) or a.shape[0] < LEAST_ITERATED:
        return largest_eigenvalue(a) if factor is None else largest_ratio(a, factor)

    def applied(vectors: Float) -> Float:
        turned = vectors[:, 0] if factor is None else linalg.blas.dtrsv(factor, vectors[:, 0], lower=1, trans=1)
        image = product(a, turned[:, None])
        return image if factor is None else linalg.blas.dtrsv(factor, image[:, 0], lower=1)[:, None]

    found = largest_values(applied, a.shape[0], 1)
    if found is not None:
        return float(found[0])
    return largest_eigenvalue(1.0 * a) if factor is None else largest_ratio(1.0 * a, factor)


# --- one background: no factor for each draw -------------------------------------------------------------------------


class PooledPath:
    """Leading ratios to one background in coordinates in which the products T of all rows are diagonal.

    However rows are dealt, the scatters about the means of the two datasets add up to ``W = T - R Rᵀ``, where R has the
    two sums of rows over the roots of their weights. The largest ratio λ of ``S_x / n_x`` to ``κ S_y + ρ I`` (a kernel
    has ``ε W⁻¹`` for the ridge) follows from the largest value ν of ``S_x u = ν (κ W + ρ I) u``: it is
    ``(ν / n_x) / (1 - κ ν)``. The matrix on the right is diagonal but for a few columns, so that iterations need only
    products with ``S_x``.
    """

    def __init__(self, statistic: Statistic, deck: Deck, thinning: int, dimension: int, held: float) -> None:
        squares, turn = linalg.eigh(deck.everything(thinning).second, check_finite=False)
        kept = squares > SMALLEST_SHARE * squares[-1]
        self._squares, self._turn = squares[kept], turn[:, kept]
        self._statistic, self._dimension, self._held = statistic, dimension, held
        # Rows are turned once. The sums of many parts are turned after each deal.
        self._is_turned = isinstance(deck, RowDeck)
        self._deck = deck.mapped(self._turn) if isinstance(deck, RowDeck) else deck
        self._thinning = thinning

    def values_of(self, at: np.ndarray) -> Float | None:  # type: ignore[type-arg]
        """Return the leading values of a deal; None if the iterations do not converge."""
        target, background = self._deck.dealt(at, self._thinning)
        own, other = target.first, background.first
        scatter = target.second - own[:, None] * (own / target.weight)
        if not self._is_turned:
            own, other = self._turn.T @ own, self._turn.T @ other
            scatter = product(self._turn.T, product(scatter, self._turn))
        return self._values(target, background, own, other, scatter)

    def _values(self, target: Totals, background: Totals, own: Float, other: Float, scatter: Float) -> Float | None:
        one, squares = self._statistic.problem, self._squares
        means = np.column_stack([own / np.sqrt(target.weight), other / np.sqrt(background.weight)])
        trace = float(squares.sum() - np.trace(scatter) - np.sum(means**2))
        sides, signs = means, -np.eye(2)
        if one.center == "background":
            step = np.sqrt(target.weight) * (own / target.weight - other / background.weight)
            scatter = scatter + step[:, None] * step
            sides, signs = np.column_stack([means, step]), np.diag([-1.0, -1.0, 1.0])
        shares, ridges = self._ridges(background, means, scatter, trace / background.weight + self._held)
        factors = (1.0 - shares) / background.weight
        if one.epsilon is None:
            diagonals = factors[:, None] * squares + ridges[:, None]
            cores = [factor * signs for factor in factors]
        else:
            # W⁻¹ = T⁻¹ + T⁻¹ R (I - Rᵀ T⁻¹ R)⁻¹ Rᵀ T⁻¹
            inverse = means / squares[:, None]
            inner = np.linalg.inv(np.eye(2) - means.T @ inverse)
            diagonals = factors[:, None] * squares + ridges[:, None] / squares
            cores = [linalg.block_diag(f * signs, r * inner) for f, r in zip(factors, ridges, strict=True)]
            sides = np.column_stack([sides, inverse])
        leading = _leading(scatter, diagonals, sides, cores)
        if leading is None:
            return None
        rest = 1.0 - factors * leading
        if not np.all(rest > LEAST_REST):
            return None
        return self._statistic.scaled(leading / target.weight / rest)

    def _ridges(self, background: Totals, means: Float, scatter: Float, variance: float) -> tuple[Float, Float]:
        """Return the shrinkage and the ridge of each problem."""
        one = self._statistic.problem
        if one.epsilon is not None:
            whole = np.diag(self._squares) - means @ means.T
            unit = float(np.sum(whole * (whole - scatter))) / background.weight / len(self._squares)
            ridges = unit * np.array(EPSILONS) if self._statistic.chosen else np.array([one.epsilon])
            return np.zeros(len(ridges)), ridges
        many = background.count >= MANY_ROWS * self._dimension
        shares = np.array(SHRINKAGES[0 if many else 1 :] if self._statistic.chosen else [one.shrinkage])
        return shares, shares * variance / self._dimension


def _leading(scatter: Float, diagonals: Float, sides: Float, cores: list[Float]) -> Float | None:
    """Return the largest ν of ``S u = ν (D + Q C Qᵀ) u`` for several diagonals D and small matrices C."""
    if not np.all(diagonals > 0.0):
        return None
    scales = diagonals**-0.5
    outer, inner = [], []
    for scale, core in zip(scales, cores, strict=True):
        basis, corner = np.linalg.qr(scale[:, None] * sides)
        values, vectors = np.linalg.eigh(corner @ core @ corner.T)
        if values[0] <= -1.0:
            return None
        outer.append(basis)
        inner.append((vectors * ((1.0 + values) ** -0.5 - 1.0)) @ vectors.T)
    bases, middles, columns = np.array(outer), np.array(inner), scales.T

    def rooted(vectors: Float) -> Float:
        along = np.matmul(vectors.T[:, None, :], bases)
        more = np.matmul(np.matmul(along, middles), bases.transpose(0, 2, 1))
        return vectors + more[:, 0, :].T

    def applied(vectors: Float) -> Float:
        return rooted(columns * product(scatter, columns * rooted(vectors)))

    return largest_values(applied, len(scatter), len(cores))


def largest_values(applied: Callable[[Float], Float], size: int, count: int) -> Float | None:
    """Return the largest eigenvalue of several symmetric matrices, each applied to one vector; None if that is slow.

    Lanczos iterations in lock step. Vectors are not made orthogonal again: the largest value needs no more.
    """
    vectors = np.repeat(np.random.default_rng(0).standard_normal((size, 1)), count, axis=1)
    vectors /= np.linalg.norm(vectors, axis=0)
    before, lengths, last = np.zeros_like(vectors), np.zeros(count), np.full(count, np.inf)
    own: list[Float] = []
    beside: list[Float] = []
    for step in range(1, min(MOST_STEPS, 2 * size) + 1):
        images = applied(vectors) - lengths * before
        own.append(np.einsum("ij,ij->j", vectors, images))
        images -= own[-1] * vectors
        lengths = np.linalg.norm(images, axis=0)
        done = bool(np.all(lengths <= np.finfo(np.float64).eps * size * np.abs(own[-1])))
        if step % CHECKED == 0 or done:
            found = _tops(np.array(own), np.array(beside).reshape(-1, count))
            if done or np.all(np.abs(found - last) <= TOLERANCE * np.abs(found)):
                return found
            last = found
        beside.append(lengths)
        before, vectors = vectors, images / np.where(lengths > 0.0, lengths, 1.0)
    return None


def _tops(own: Float, beside: Float) -> Float:
    """Return the largest eigenvalue of each tridiagonal matrix, whose entries are columns."""
    last = (len(own) - 1, len(own) - 1)
    pairs = zip(own.T, beside.T, strict=True)
    return np.array([linalg.eigvalsh_tridiagonal(*entries, select="i", select_range=last)[0] for entries in pairs])
