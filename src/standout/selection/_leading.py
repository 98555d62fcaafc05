"""The statistic of a draw: the leading value of a problem, at one or several values of its regularisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from standout._arrays import Float, product
from standout._xp import cholesky, is_foreign, largest_eigenvalue, whiten
from standout.problem import Problem, Sums, pencil_of, pose, solve
from standout.selection._choose import ridge_unit

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
# Most steps, and the relative residual of the vector at which they end; the error of the value is about its square.
MOST_STEPS, TOLERANCE, SMALLEST = 200, 3e-3, 1e-300


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
