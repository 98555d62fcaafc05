"""Exact kernel fits with about as many coordinates as rows: the rows of the centred kernel matrix.

The problem of m target rows X, n background rows Y and a ridge, ``XᵀX/m u = λ (YᵀY/n + ε I) u``, needs only products of
rows: with ``u = Xᵀp - Yᵀz`` it is the eigenproblem of the Schur complement ``XXᵀ - XYᵀ (nε I + YYᵀ)⁻¹ YXᵀ``, of size m.
All products are computed once. A fold selects rows and columns of these products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import Float, product, self_product
from standout._xp import add_to_diagonal, cholesky, leading_eigenvectors, solve_triangular
from standout.features._maps import centred_columns
from standout.moments import RowMoments
from standout.pencil import Form, Pencil, Solution
from standout.pencil._record import finish
from standout.problem import Problem, Sums, solve_inside
from standout.selection import Data, Folds
from standout.selection._data import n_folds_of, numbers_of
from standout.sources import Source

Numbers = npt.NDArray[np.intp]
# Products of target and target, background and target, background and background.
Blocks = tuple[Float, Float, Float]

# Number of values of ε that are solved by iterations. The others are solved in the span of their vectors.
REPRESENTATIVES = 6
# Extra vectors in a block, and products with it in each round.
MORE, DEPTH = 2, 2
# Rounds from vectors near the solution, and the largest residual, as a share of the eigenvalue, that ends them.
ROUNDS, EXACT = 6, 1e-10
# Directions with a smaller share of the squared length are rounding.
LEAST = 1e-10


class KernelRows(Data):
    """Datasets as rows of the centred kernel matrix, and the products of all rows.

    Attributes
    ----------
    matrix : ndarray of shape (n, n)
        The rows of all datasets, the target first.
    parts : list of ndarray of shape (n_rows, n)
        The rows of each dataset.
    folds : list of ndarray of shape (n_rows,)
        The fold of each row of each dataset.
    """

    n_covariates = 0

    def __init__(self, sources: Sequence[Source], folds: Folds | None) -> None:
        counts = [part.n_rows or 0 for part in sources]
        self.matrix: Float = np.concatenate([part.rows for part in sources])
        self.parts = np.split(self.matrix, np.cumsum(counts)[:-1])
        self.folds, self.n_folds = numbers_of(folds, counts), n_folds_of(folds)
        self.n_columns, self.subjects = len(self.matrix), sources[0].subjects is not None
        self.lacks_rows = any(np.bincount(own, minlength=self.n_folds).min() == 0 for own in self.folds)
        self._known: dict[int | None, Sums] = {}

    @cached_property
    def products(self) -> Float:
        """The inner products of all rows."""
        return self_product(self.matrix.T)

    def sums(self, problem: Problem, fold: int | None = None) -> Sums:
        """Return the sums over all rows, or over all rows but those of a fold."""
        if fold not in self._known:
            chosen = [own != (-1 if fold is None else fold) for own in self.folds]
            places = np.flatnonzero(np.concatenate(chosen))
            # Rows of the fold get the weight 0, which saves a copy of the others.
            pairs = zip(self.parts, chosen, strict=True)
            moments = tuple(RowMoments(rows, own.astype(float)) for rows, own in pairs)
            self._known[fold] = replace(Sums.of(moments), solver=_Dual(moments, places, self.matrix, self.products))
        return self._known[fold]

    def held_out(self, problem: Problem, fold: int) -> tuple[RowMoments, ...]:
        """Return the moments of the rows of a fold."""
        return tuple(RowMoments(rows[own == fold]) for rows, own in zip(self.parts, self.folds, strict=True))


@dataclass(frozen=True, eq=False)
class _Dual:
    """The eigenproblem of some rows, from their inner products."""

    moments: tuple[RowMoments, ...]
    places: Numbers
    matrix: Float
    products: Float

    def path(self, problems: Sequence[Problem], seed: int) -> Sequence[Float | None]:
        """Return approximate components at each ε, from the least to the most regularised."""
        blocks, factors = self._weighted(problems[0].weights)
        epsilons = np.array([problem.epsilon for problem in problems])
        count, m = problems[0].n_components, self._counts[0]
        block = np.random.default_rng(seed).standard_normal((m, min(count + MORE, m)))
        chosen = np.unique(np.linspace(len(epsilons) - 1, 0, min(REPRESENTATIVES, len(epsilons))).round().astype(int))
        found = []
        for epsilon in epsilons[chosen[::-1]]:
            schur = _Schur.of(*blocks, epsilon)
            if schur is not None:
                block = schur.improved(block)[1]
                found.append(schur.duals(block))
        if not found:
            return [None] * len(epsilons)
        # All values are solved in the span of these directions, which are weights of rows.
        duals = np.concatenate(found, axis=1)
        own, across, other = blocks
        p, z = np.split(duals, [m])
        target, background = product(own, p) + product(across.T, z), product(across, p) + product(other, z)
        values, turn = np.linalg.eigh(product(p.T, target) + product(z.T, background))
        kept = values > LEAST * values[-1]
        turn = turn[:, kept] / np.sqrt(values[kept])
        target, background = product(target, turn), product(background, turn)
        a, b = product(target.T, target), product(background.T, background)
        turns = [linalg.eigh(a, b + epsilon * np.eye(len(b)))[1][:, ::-1][:, :count] for epsilon in epsilons]
        whole = product(duals, product(turn, np.concatenate(turns, axis=1)))
        return np.split(self._lifted(whole, factors), len(epsilons), axis=1)

    def solution(self, problem: Problem) -> Solution:
        """Solve the problem by iterations, or by LAPACK."""
        blocks, factors = self._weighted(problem.weights)
        target, *backgrounds = self.moments
        m, count, epsilon = self._counts[0], problem.n_components, problem.epsilon
        assert epsilon is not None
        schur = _Schur.of(*blocks, epsilon)
        if schur is None or count >= m:
            return solve_inside(Sums.of([part.mapped(np.eye(target.n_features)) for part in self.moments]), problem)
        values, vectors = schur.leading(count)
        size = target.n_features
        terms = tuple(zip(problem.weights, backgrounds, strict=False))
        pencil = Pencil(Form(size, ((1.0, target),)), Form(size, terms, ridge=epsilon))
        return finish(pencil, values / epsilon, self._lifted(schur.duals(vectors), factors), "dense")

    @property
    def _counts(self) -> list[int]:
        """Number of rows of each dataset."""
        return [int(part.total_weight) for part in self.moments]

    @cached_property
    def _known(self) -> dict[tuple[float, ...], tuple[Blocks, Float]]:
        return {}

    def _weighted(self, weights: tuple[float, ...]) -> tuple[Blocks, Float]:
        """Return the products of centred rows, and the factors of rows: roots of their weights in the problem."""
        if weights not in self._known:
            counts = self._counts
            factors = np.repeat(np.sqrt(np.array([1.0, *weights[: len(counts) - 1]]) / counts), counts)
            m = counts[0]
            first, second = (self.places[:m], factors[:m], counts[:1]), (self.places[m:], factors[m:], counts[1:])
            blocks = self._block(first, first), self._block(second, first), self._block(second, second)
            self._known.clear()
            self._known[weights] = blocks, factors
        return self._known[weights]

    def _block(self, first: Any, second: Any) -> Float:
        """Return the products of some centred rows with others, as a copy."""
        block = self.products[np.ix_(first[0], second[0])]
        centred_columns(block, second[2])
        centred_columns(block.T, first[2])
        block *= first[1][:, None]
        block *= second[1]
        return block

    def _lifted(self, duals: Float, factors: Float) -> Float:
        """Return the weighted sums of the centred rows."""
        duals = (duals * factors[:, None]).T
        centred_columns(duals, self._counts)
        weights = np.zeros((len(self.matrix), len(duals)))
        weights[self.places] = duals.T
        return product(self.matrix.T, weights)


@dataclass(frozen=True, eq=False)
class _Schur:
    """The Schur complement ``own - acrossᵀ (other + ε I)⁻¹ across``, by a Cholesky factor."""

    own: Float
    across: Float
    factor: Float

    @classmethod
    def of(cls, own: Float, across: Float, other: Float, epsilon: float) -> _Schur | None:
        """Factorise the background's part; None if it is singular."""
        factor = cholesky(add_to_diagonal(other.copy(), epsilon)) if len(other) else other
        return None if factor is None else cls(own, across, factor)

    def duals(self, block: Float) -> Float:
        """Return the weights of all rows for weights of target rows."""
        if not len(self.factor):
            return block
        return np.concatenate(
            [block, -linalg.cho_solve((self.factor, True), product(self.across, block), check_finite=False)]
        )

    def applied(self, block: Float) -> Float:
        """Multiply the complement with a block."""
        return product(self.own, block) + product(self.across.T, self.duals(block)[len(block) :])

    def improved(self, block: Float) -> tuple[Float, Float, Float]:
        """Return eigenvalues and vectors in a block Krylov space, in descending order, and the residuals."""
        blocks = [np.linalg.qr(block)[0]]
        while len(blocks) <= DEPTH:
            blocks.append(self.applied(blocks[-1]))
        basis = np.linalg.qr(np.concatenate(blocks, axis=1))[0]
        images = self.applied(basis)
        values, turn = np.linalg.eigh(product(basis.T, images))
        values, turn = values[::-1][: block.shape[1]], turn[:, ::-1][:, : block.shape[1]]
        found = product(basis, turn)
        return values, found, np.linalg.norm(product(images, turn) - found * values, axis=0)

    def leading(self, count: int) -> tuple[Float, Float]:
        """Return the leading eigenvectors, by iterations, or by LAPACK if these converge slowly."""
        block = np.random.default_rng(0).standard_normal((len(self.own), min(count + MORE, len(self.own))))
        for _ in range(ROUNDS):
            values, block, residuals = self.improved(block)
            if np.all(residuals[:count] <= EXACT * values[:count]):
                return values[:count], block[:, :count]
        half = solve_triangular(self.factor, self.across)
        return leading_eigenvectors(self.own - self_product(half), count)
