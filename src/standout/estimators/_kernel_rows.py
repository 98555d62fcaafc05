"""Exact kernel fits with about as many coordinates as rows: the rows of the centred kernel matrix.

The problem of m target rows X, n background rows Y and a ridge, ``XᵀX/m u = λ (YᵀY/n + ε I) u``, needs only products of
rows: with ``u = Xᵀp - Yᵀz`` it is the eigenproblem of the Schur complement ``XXᵀ - XYᵀ (nε I + YYᵀ)⁻¹ YXᵀ``, of size m.
All products are computed once. A fold is a choice of rows and columns of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import Float, product, self_product
from standout._xp import add_to_diagonal, cholesky, leading_eigenvectors, solve_triangular
from standout.features import centred_columns
from standout.moments import RowMoments, ScatterMoments
from standout.pencil import Form, Pencil, Solution
from standout.pencil._record import finish
from standout.problem import Problem, Sums, solve_inside
from standout.selection import Data, Folds
from standout.selection._data import n_folds_of, numbers_of
from standout.sources import Source

Numbers = npt.NDArray[np.intp]

# Values of ε that are solved by iterations; all others are solved in the span of what these find.
REPRESENTATIVES = 6
# Vectors in a block beyond those that are wanted, and products with it at each representative.
MORE, DEPTH = 2, 2
# Directions with a smaller share of the squared length are rounding.
LEAST = 1e-10


@dataclass(frozen=True, eq=False)
class ChosenRows(RowMoments):
    """Some of the rows of a dataset, which have the weight 1 in `row_weights`, and the others 0."""

    weights = None

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of chosen rows."""
        return int(np.count_nonzero(self._shares))

    @cached_property
    def variances(self) -> Float:
        """Variance of each column."""
        squares: Float = np.einsum("i,ij,ij->j", self._shares, self.rows, self.rows)
        return np.maximum(squares - self.mean**2, 0.0)

    def formed(self) -> ScatterMoments:
        """Return the scatter matrix."""
        return ScatterMoments(self.count, self.mean, self.count * self_product(self.root()))


@dataclass(frozen=True, eq=False)
class KernelRows(Data):
    """Datasets as rows of the centred kernel matrix, and the products of all rows.

    Attributes
    ----------
    matrix : ndarray of shape (n, n)
        The rows of all datasets, the target first.
    folds : list of ndarray of shape (n_rows,)
        The fold of each row of each dataset.
    n_folds : int
    subjects : bool
    """

    matrix: Float
    folds: Sequence[Numbers]
    n_folds: int
    subjects: bool

    n_covariates = 0

    @classmethod
    def of(cls, sources: Sequence[Source], folds: Folds | None) -> KernelRows:
        """Collect the rows of all datasets."""
        numbers = numbers_of(folds, [part.n_rows or 0 for part in sources])
        matrix = np.concatenate([part.rows for part in sources])
        return cls(matrix, numbers, n_folds_of(folds), sources[0].subjects is not None)

    @property
    def n_columns(self) -> int:  # type: ignore[override]
        """Number of coordinates."""
        return len(self.matrix)

    @property
    def lacks_rows(self) -> bool:  # type: ignore[override]
        """Whether a fold has no rows of a dataset."""
        return any(np.bincount(own, minlength=self.n_folds).min() == 0 for own in self.folds)

    @cached_property
    def products(self) -> Float:
        """The inner products of all rows."""
        return self_product(self.matrix.T)

    @cached_property
    def _known(self) -> dict[int | None, Sums]:
        return {}

    def sums(self, problem: Problem, fold: int | None = None) -> Sums:
        """Return the sums over all rows, or over all rows but those of a fold."""
        if fold not in self._known:
            chosen = [own != (-1 if fold is None else fold) for own in self.folds]
            moments, places = self._moments(chosen), np.flatnonzero(np.concatenate(chosen))
            self._known[fold] = replace(Sums.of(moments), solver=_Dual(moments, places, self.matrix, self.products))
        return self._known[fold]

    def held_out(self, problem: Problem, fold: int) -> tuple[ChosenRows, ...]:
        """Return the moments of the rows of a fold."""
        return self._moments([own == fold for own in self.folds])

    def _moments(self, chosen: list[npt.NDArray[np.bool_]]) -> tuple[ChosenRows, ...]:
        parts = np.split(self.matrix, np.cumsum([len(own) for own in chosen])[:-1])
        return tuple(ChosenRows(rows, own.astype(float)) for rows, own in zip(parts, chosen, strict=True))


@dataclass(frozen=True, eq=False)
class _Dual:
    """The problem of some rows, by the products of these rows."""

    moments: tuple[ChosenRows, ...]
    places: Numbers
    matrix: Float
    products: Float

    def path(self, problems: Sequence[Problem], seed: int) -> Sequence[Float | None]:
        """Return approximate components at each ε, from the least to the most regularised."""
        own, across, other, roots = self._blocks(problems[0].weights)
        epsilons = np.array([problem.epsilon for problem in problems])
        count = problems[0].n_components
        block = np.random.default_rng(seed).standard_normal((len(own), min(count + MORE, len(own))))
        chosen = np.unique(np.linspace(len(epsilons) - 1, 0, min(REPRESENTATIVES, len(epsilons))).round().astype(int))
        found = []
        for epsilon in epsilons[chosen[::-1]]:
            factor = cholesky(add_to_diagonal(other.copy(), epsilon))
            if factor is None:
                continue
            blocks = [np.linalg.qr(block)[0]]
            while len(blocks) <= DEPTH:
                blocks.append(_applied(own, across, factor, blocks[-1]))
            basis = np.linalg.qr(np.concatenate(blocks, axis=1))[0]
            turn = np.linalg.eigh(product(basis.T, _applied(own, across, factor, basis)))[1]
            block = product(basis, turn[:, ::-1][:, : block.shape[1]])
            found.append(np.concatenate([block, -_matched(across, factor, block)]))
        if not found:
            return [None] * len(epsilons)
        # All values are solved in the span of these directions, which are given as weights of rows.
        whole = np.block([[own, across.T], [across, other]])
        duals = np.concatenate(found, axis=1)
        values, turn = np.linalg.eigh(product(duals.T, product(whole, duals)))
        kept = values > LEAST * values[-1]
        duals = product(duals, turn[:, kept] / np.sqrt(values[kept]))
        target, background = np.split(product(whole, duals), [len(own)])
        a, b = product(target.T, target), product(background.T, background)
        turns = [linalg.eigh(a, b + epsilon * np.eye(len(b)))[1][:, ::-1][:, :count] for epsilon in epsilons]
        return np.split(self._lifted(product(duals, np.concatenate(turns, axis=1)), roots), len(epsilons), axis=1)

    def solution(self, problem: Problem) -> Solution:
        """Solve the problem by LAPACK."""
        own, across, other, roots = self._blocks(problem.weights)
        assert problem.epsilon is not None
        factor = cholesky(add_to_diagonal(other, problem.epsilon)) if len(other) else other
        if factor is None or problem.n_components >= len(own):
            return solve_inside(Sums.of([part.formed() for part in self.moments]), problem)
        half = solve_triangular(factor, across)
        values, vectors = leading_eigenvectors(own - self_product(half), problem.n_components)
        duals = np.concatenate([vectors, -solve_triangular(factor, product(half, vectors), transposed=True)])
        target, *backgrounds = self.moments
        size = target.n_features
        terms = tuple(zip(problem.weights, backgrounds, strict=False))
        pencil = Pencil(Form(size, ((1.0, target),)), Form(size, terms, ridge=problem.epsilon))
        return finish(pencil, values / problem.epsilon, self._lifted(duals, roots), "dense")

    @cached_property
    def _centred(self) -> Float:
        """The products of rows that are centred by dataset, and divided by the root of their number."""
        counts = [part.count for part in self.moments]
        products = self.products.take(self.places, axis=0).take(self.places, axis=1)
        centred_columns(products, counts)
        centred_columns(products.T, counts)
        roots = np.repeat(np.array(counts) ** -0.5, counts)
        products *= roots[:, None]
        products *= roots
        return products

    def _blocks(self, weights: Sequence[float]) -> tuple[Float, Float, Float, Float]:
        """Return the products of target and target, background and target, background and background.

        Backgrounds have the roots of their weights as factors. The factors of all rows are returned as well.
        """
        m, *others = (part.count for part in self.moments)
        roots = np.repeat(np.sqrt(weights[: len(others)]), others)
        own, across, other = self._centred[:m, :m], self._centred[m:, :m], self._centred[m:, m:]
        factors = np.concatenate([np.full(m, m**-0.5), roots * np.repeat(np.array(others) ** -0.5, others)])
        return 1.0 * own, across * roots[:, None], other * (roots[:, None] * roots), factors

    def _lifted(self, duals: Float, factors: Float) -> Float:
        """Return the weighted sums of the centred rows."""
        duals = (duals * factors[:, None]).T
        centred_columns(duals, [part.count for part in self.moments])
        weights = np.zeros((len(self.matrix), len(duals)))
        weights[self.places] = duals.T
        return product(self.matrix.T, weights)


def _matched(across: Float, factor: Float, block: Float) -> Float:
    """Return the weights of background rows that match weights of target rows."""
    matched: Float = linalg.cho_solve((factor, True), product(across, block), check_finite=False)
    return matched


def _applied(own: Float, across: Float, factor: Float, block: Float) -> Float:
    """Multiply the Schur complement with a block."""
    return product(own, block) - product(across.T, _matched(across, factor, block))
