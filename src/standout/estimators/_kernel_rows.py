"""Exact kernel fits with about as many coordinates as rows. Coordinates are rows of the centred kernel matrix.

X has the m target rows, Y the background rows, and the diagonal matrix W the weights of the background rows. With the
ridge ε, the problem is ``XᵀX/m u = λ (YᵀWY + ε I) u``. A component ``u = Xᵀp - Yᵀz`` is a sum of rows. The vector p has
the weights of the target rows in this sum, and z the weights of the background rows. Then p is an eigenvector of the
Schur complement ``XXᵀ - XYᵀ (ε W⁻¹ + YYᵀ)⁻¹ YXᵀ``, of size m. The complement needs only inner products of rows. All
inner products are computed once. The fit without a fold uses some rows and columns of the matrix of these products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import Float, product, self_product
from standout._xp import add_to_diagonal, cholesky, column_norms, leading_eigenvectors, solve_triangular
from standout.features import centred_columns
from standout.moments import RowMoments
from standout.pencil import Solution, finish
from standout.pencil._iterative import LEAST_STEPS, MORE, krylov, random
from standout.problem import Problem, Sums, pencil_of, pose, solve_inside
from standout.selection._data import WideData

# Number of values of ε that are solved by iterations. All values are then solved in the span of these solutions.
REPRESENTATIVES = 6
# Products of the Schur complement with a block of vectors: PATH_STEPS for each representative ε of the path, and at
# most MOST_STEPS for a solution. The iterations for a solution end if the residual is at most EXACT.
PATH_STEPS, MOST_STEPS, EXACT = 2, 30, 1e-12
# Smaller weights of a background are replaced by this value, because the ridge is divided by the weights.
LEAST_WEIGHT = 1e-200


class KernelRows(WideData):
    """Datasets as rows of the centred kernel matrix, and the products of all rows."""

    @cached_property
    def matrix(self) -> Float:
        """The rows of all datasets, the target first."""
        return np.concatenate(self.rows)

    @cached_property
    def products(self) -> Float:
        """The inner products of all rows."""
        return self_product(self.matrix.T)

    @cached_property
    def _known(self) -> dict[int | None, Sums]:
        return {}

    def sums(self, problem: Problem, fold: int | None = None) -> Sums:
        """Return the sums over all rows, or over the rows outside of a fold."""
        if fold not in self._known:
            chosen = [own != (-1 if fold is None else fold) for own in self.folds]
            # Rows of the fold get the weight 0, so that the other rows need not be copied.
            pairs = zip(self.rows, chosen, strict=True)
            moments = Sums.of([RowMoments(rows, own.astype(float)) for rows, own in pairs])
            places = np.flatnonzero(np.concatenate(chosen))
            self._known[fold] = replace(moments, solver=_Dual(moments, places, self.matrix, self.products))
        return self._known[fold]

    def held_out(self, problem: Problem, fold: int) -> tuple[RowMoments, ...]:
        """Return the moments of the rows of a fold."""
        return tuple(RowMoments(rows[own == fold]) for rows, own in zip(self.rows, self.folds, strict=True))


@dataclass(frozen=True, eq=False)
class _Dual:
    """The eigenproblem of selected rows, from their inner products."""

    sums: Sums
    places: npt.NDArray[np.intp]
    matrix: Float
    products: Float

    def path(self, problems: Sequence[Problem], seed: int) -> Float:
        """Return approximate components at each ε, side by side, from the least to the most regularised."""
        count, m, found = problems[0].n_components, self._counts[0], []
        many = m > LEAST_STEPS * (count + MORE)
        block = random((m, count + MORE), seed, self.matrix) if many else np.eye(m)
        for place in np.unique(np.linspace(0, len(problems) - 1, REPRESENTATIVES).round().astype(int)):
            schur = self._schur(problems[place])
            if schur is not None:
                if many:
                    block = krylov(schur.applied, block, count, PATH_STEPS)[1][:, : count + MORE]
                found.append(schur.duals(block))
        if not found:
            return np.zeros((self.matrix.shape[1], len(problems) * problems[0].n_components))
        # Solve the problems of all ε in the span of these directions.
        basis = np.linalg.qr(self._lifted(np.concatenate(found, axis=1)))[0]
        small = Sums.of([part.mapped(basis) for part in self.sums.moments])
        return product(basis, np.hstack([solve_inside(small, problem).vectors for problem in problems]))

    def solution(self, problem: Problem) -> Solution:
        """Return the solution of the problem, by iterations or by LAPACK."""
        target, count, m = self.sums.moments[0], problem.n_components, self._counts[0]
        schur = self._schur(problem)
        if schur is None or count >= m:
            everything = np.eye(target.n_features)
            return solve_inside(Sums.of([part.mapped(everything) for part in self.sums.moments]), problem)
        values, vectors = schur.leading(count)
        pencil = pencil_of(pose(Sums.of(self.sums.moments), [problem]), problem)
        found = self._lifted(schur.duals(vectors))
        return finish(pencil, values / (m * pencil.b.ridge), found / column_norms(found), "dense")

    @cached_property
    def _counts(self) -> list[int]:
        """Number of rows of each dataset."""
        return [int(part.total_weight) for part in self.sums.moments]

    @cached_property
    def _centred(self) -> Float:
        """The inner products of the selected rows, after the mean of its dataset is subtracted from each row."""
        block = self.products[np.ix_(self.places, self.places)]
        centred_columns(block, self._counts)
        centred_columns(block.T, self._counts)
        return block

    def _schur(self, problem: Problem) -> _Schur | None:
        """Return the Schur complement of a problem; None if the matrix of the background rows is singular."""
        m, *counts = self._counts
        assert problem.epsilon is not None
        ridges = problem.epsilon * np.array(counts) / np.maximum(problem.weights, LEAST_WEIGHT)
        block = self._centred
        factor = cholesky(add_to_diagonal(block[m:, m:].copy(), np.repeat(ridges, counts)))
        return None if factor is None else _Schur(block[:m, :m], block[m:, :m], factor)

    def _lifted(self, duals: Float) -> Float:
        """Return the sums of the centred rows, weighted by the columns of `duals`."""
        duals = 1.0 * duals.T
        centred_columns(duals, self._counts)
        weights = np.zeros((len(self.matrix), len(duals)))
        weights[self.places] = duals.T
        return product(self.matrix.T, weights)


@dataclass(frozen=True, eq=False)
class _Schur:
    """The Schur complement ``own - acrossᵀ (factor factorᵀ)⁻¹ across``.

    `own` has the inner products of target rows. `across` has the inner products of background rows with target rows.
    `factor` is a Cholesky factor of the inner products of background rows plus the ridge.
    """

    own: Float
    across: Float
    factor: Float

    def duals(self, block: Float) -> Float:
        """Return the weights of all rows in a component. `block` has the weights of the target rows."""
        others = linalg.cho_solve((self.factor, True), product(self.across, block), check_finite=False)
        return np.concatenate([block, -others])

    def applied(self, block: Float) -> Float:
        """Multiply the complement with a block."""
        return product(self.own, block) + product(self.across.T, self.duals(block)[len(block) :])

    def leading(self, count: int) -> tuple[Float, Float]:
        """Return the leading eigenvalues and vectors. LAPACK is used for few rows or if iterations are slow."""
        if len(self.own) > LEAST_STEPS * (count + MORE):
            start = random((len(self.own), count + MORE), 0, self.own)
            values, vectors, residual = krylov(self.applied, start, count, MOST_STEPS, EXACT)
            if residual <= EXACT:
                return values[:count], vectors[:, :count]
        half = solve_triangular(self.factor, self.across)
        return leading_eigenvectors(self.own - self_product(half), count)
