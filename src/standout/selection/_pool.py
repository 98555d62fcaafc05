"""The leading values of one relabeling after the other of the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from standout._arrays import Float, copied, product, self_product, weighted_sum
from standout._xp import (
    add_to_diagonal,
    cholesky,
    diagonal,
    is_foreign,
    largest_eigenvalue,
    largest_ratio,
    like,
    namespace,
    solve_triangular,
    take,
    to_host,
)
from standout.moments import Moments, ScatterMoments
from standout.pencil import Form, Pencil, Solution, solve
from standout.selection._columns import eliminated, eliminated_in, numbers_of_columns, rank_columns
from standout.selection._dealing import Order, Sizes
from standout.selection._iterations import LEAST_ITERATED, ratios_of_inner_products
from standout.selection._iterations import largest_eigenvalue as largest_by_iterations
from standout.selection._iterations import largest_ratio as ratio_by_iterations
from standout.selection._problem import Problem
from standout.selection._spectrum import PooledSpectrum

# Share of the mean variance that makes a total scatter definite.
SMALL_PART = 1e-8
# Whether the largest eigenvalue is looked at, or the least, or both.
ENDS = {"target": [True], "background": [False], "both": [True, False]}


@dataclass(frozen=True, eq=False)
class Pool:
    """All rows, which are dealt into groups of the sizes of the datasets, the target's first.

    Attributes
    ----------
    rows : array of shape (n, r)
        Each dataset's rows about their own centre, in some coordinates.
    sizes : tuple of int
    held : ndarray of shape (n_backgrounds,)
        Variance of each background outside of the coordinates, which is not reshuffled.
    n_features : int
        Number of columns of the data, of which the coordinates may be fewer.
    total, total_row : array
        The sums over all rows.
    gram : array or None
        The inner products of the rows, if there are fewer rows than coordinates.
    basis : array of shape (n_features, r) or None
        What the coordinates are of, if columns are chosen; None if they are the columns.
    squares : array of shape (n, n_features) or None
        The squares of the columns, if there is a basis.
    rough : array of shape (r, r) or None
        The Laplacian of a graph over the columns, in the coordinates.
    spectrum : PooledSpectrum or None
        The rows in other coordinates, if ratios to one background are found by iterations.
    roots : array of shape (n,) or None
        Roots of the weights that go with the rows, which come times these.
    placed : ndarray of shape (n,) or None
        Roots of the weights that stay at their places: those of the first group, then those of the second ...
    units : ndarray of shape (n_groups,) or None
        Mean weight at the places of each group, if the ridge is one of the total scatter and weights stay.
    metric : array of shape (r, r) or None
        Root of the total scatter of the datasets as they are, if there are units. See `_metric`.
    n_without : int
        Number of rows of weight zero. They are not dealt, but the fit counts them in its steps to few columns.
    """

    rows: Float
    sizes: tuple[int, ...]
    held: Float
    n_features: int
    total: Float | None
    total_row: Float
    gram: Float | None
    basis: Float | None = None
    squares: Float | None = None
    rough: Float | None = None
    spectrum: PooledSpectrum | None = None
    roots: Float | None = None
    placed: Float | None = None
    units: Float | None = None
    metric: Float | None = None
    n_without: int = 0

    @classmethod
    def of(
        cls,
        rows: Float,
        sizes: tuple[int, ...],
        held: Float,
        n_features: int,
        by_gram: bool,
        roots: Float | None = None,
        placed: Float | None = None,
    ) -> Pool:
        total_row = namespace(rows).sum(rows, axis=0) if roots is None else weighted_sum(roots, rows)
        total, gram = (None, product(rows, rows.T)) if by_gram else (self_product(rows), None)
        return cls(rows, sizes, held, n_features, total, total_row, gram, roots=roots, placed=placed)

    def values(self, problem: Problem, order: Order, sizes: Sizes | None = None, placed: Float | None = None) -> Float:
        """Give the leading value of each parameter, for the rows dealt in this order into groups of these sizes."""
        if placed is not None or (sizes is not None and sizes != self.sizes):
            placed = self.placed if placed is None else placed
            return replace(self, sizes=sizes or self.sizes, placed=placed).values(problem, order)
        if self.spectrum is not None:
            found = self._values_by_spectrum(self.spectrum, problem, order)
            if found is not None:
                return found
        if self.gram is not None:
            return self._values_by_gram(problem, order)
        scatters = self.dealt(order)
        if problem.counts is not None:
            return np.array([problem.extremity(value) for value in self.on_columns(scatters, problem, order)])
        if problem.alphas is not None:
            return self._differences(scatters, problem)
        metric = self._metric(scatters, order)
        return np.array([self._ratio(scatters, problem, number, metric) for number in range(problem.n_values)])

    def _ridge(self, variances: Float, problem: Problem, weights: Float, number: int) -> float:
        shrunken = float(np.sum(weights * problem.shares[number] * (variances + self.held))) / self.n_features
        return shrunken + float(problem.ridges[number])

    def roughness(self, variances: Float, problem: Problem, weights: Float, number: int) -> float:
        """Give the factor of the Laplacian."""
        if problem.strengths is None:
            return 0.0
        return float(problem.strengths[number] * np.sum(weights * (variances + self.held))) / self.n_features

    def total_scatter(self, scatters: Sequence[Float], order: Order) -> Float:
        """Add up the scatters of groups by the weights that their rows have, with a little on the diagonal."""
        assert self.units is not None
        groups = np.split(order, np.cumsum(self.sizes)[:-1])
        total = 0.0 * scatters[0]
        for unit, scatter, group, place in zip(self.units, scatters, groups, self._shared_places(), strict=True):
            own = self._roots_of(group, place)
            weight = len(group) if own is None else float(namespace(own).sum(own**2))
            total = total + float(unit) * weight / len(group) * scatter
        variance = float(namespace(total).sum(diagonal(total))) / total.shape[0]
        return add_to_diagonal(total, SMALL_PART * variance)

    def _metric(self, scatters: Sequence[Float], order: Order) -> Float | None:
        """Give the matrix of the ridge; None if it is the identity.

        The ridge of a kernel method is the inverse of the total scatter T, and rows come in coordinates in which that
        is the identity. If weights stay at their places, rows that are dealt have another total scatter S. With G the
        root of T in these coordinates, the ridge is ``G S⁻¹ G`` then.
        """
        if self.metric is None:
            return None
        factor = cholesky(self.total_scatter(scatters, order))
        return None if factor is None else self_product(solve_triangular(factor, self.metric))

    def _ratio(self, scatters: list[Float], problem: Problem, number: int, metric: Float | None = None) -> float:
        """Give how extreme the ratios of one pencil are, and nothing else: this is the inner loop.

        A singular background, which can happen where a column varies in few rows only, counts as an infinite ratio.
        """
        weights = problem.weights
        if problem.choose_weights is not None:
            target, *backgrounds = self.moments(scatters)
            weights = problem.choose_weights(target, backgrounds, problem.shares[number], float(problem.ridges[number]))
        b = self._background(scatters, weights * (1.0 - problem.shares[number]))
        variances = variances_of(scatters[1:], self.sizes[1:])
        if self.rough is not None:
            b += self.roughness(variances, problem, weights, number) * self.rough
        ridge = self._ridge(variances, problem, weights, number)
        b = add_to_diagonal(b, ridge) if metric is None else b + ridge * metric
        a = scatters[0] / self.sizes[0]
        return max(_largest_ratio(a, b) if end else _largest_ratio(b, a) for end in ENDS[problem.side])

    def _differences(self, scatters: list[Float], problem: Problem) -> Float:
        """Give how extreme the difference of variances is for each α."""
        assert problem.alphas is not None
        a, b = scatters[0] / self.sizes[0], self._background(scatters, problem.weights)
        signs = [1.0 if end else -1.0 for end in ENDS[problem.side]]
        iterated, found = _is_iterated(a, LEAST_ITERATED), []
        for alpha in problem.alphas.tolist():
            difference = a - alpha * b
            values = [largest_by_iterations(sign * difference) if iterated else None for sign in signs]
            # The larger α, the slower are the iterations.
            iterated = iterated and None not in values
            found.append(
                max(
                    largest_eigenvalue(sign * difference) if value is None else value
                    for sign, value in zip(signs, values, strict=True)
                )
            )
        return np.array(found)

    def _background(self, scatters: Sequence[Float], weights: Float) -> Float:
        """Add up the covariances of the backgrounds, each times its weight."""
        coefficients = (weights / self.sizes[1:]).tolist()
        total = coefficients[0] * scatters[1]
        for coefficient, scatter in zip(coefficients[1:], scatters[2:], strict=True):
            total += coefficient * scatter
        return total

    def on_columns(self, scatters: Sequence[Float], problem: Problem, order: Order) -> list[float]:
        """Give the leading value for each parameter, on columns that are chosen by the rows as they are dealt."""
        assert problem.counts is not None
        answers: dict[int, float] = {}
        # Values of the parameter with different numbers of columns share the way to them.
        rest = [np.zeros(problem.n_values) if part is None else part for part in (problem.alphas, problem.strengths)]
        settings = [tuple(row) for row in np.column_stack([problem.shares, problem.ridges, *rest]).tolist()]
        for setting in dict.fromkeys(settings):
            numbers = [number for number, other in enumerate(settings) if other == setting]
            pencil = pencil_of(self, scatters, problem, numbers[0])
            whole = solve(pencil, min(problem.n_ranked, pencil.n_features), side=problem.side)
            least = min(int(problem.counts[number]) for number in numbers)
            steps = numbers_of_columns(self.n_features, sum(self.sizes) + self.n_without, problem.n_ranked, least)
            wanted = sorted({*steps, *problem.counts[numbers].tolist()}, reverse=True)
            # Backgrounds without a part in B have shrinkage 1.
            dealt = np.split(order, np.cumsum(self.sizes)[:-1])[1:]
            places = self._shared_places()[1:]
            groups = [some for *some, share in zip(dealt, places, setting, strict=False) if share < 1.0]
            found = self._eliminated(pencil, whole, wanted, problem.side, groups)
            by_count = {len(columns): float(part.values[0]) for columns, part in found}
            answers |= {number: by_count[int(problem.counts[number])] for number in numbers}
        return [answers[number] for number in range(problem.n_values)]

    def _eliminated(
        self, pencil: Pencil, whole: Solution, counts: list[int], side: str, groups: list[list[Any]]
    ) -> Iterator[tuple[Order, Solution]]:
        if self.basis is None or self.squares is None:
            yield from eliminated(pencil, whole, counts, side=side)
            return
        basis, xp = self.basis, namespace(self.squares)
        diagonal = np.full(self.n_features, pencil.b.ridge)
        for (weight, _), (group, place) in zip(pencil.b.terms, groups, strict=False):
            # A group that is dealt is not centred yet, and with weights its mean is far from the middle of its rows.
            at_place = like(np.ones(len(group)) if place is None else place, self.squares)
            own = self._roots_of(group, place)
            own = at_place if own is None else own
            total = float(xp.sum(own**2))
            mean = weighted_sum(own * at_place, take(self.rows, group)) / total
            squares = weighted_sum(at_place**2, take(self.squares, group)) / total
            diagonal += weight * to_host(squares - product(basis, mean[:, None])[:, 0] ** 2)
        order = rank_columns(product(basis, whole.patterns), diagonal)
        few = eliminated_in(pencil, whole, counts, order, lambda some: take(basis, some), side=side)
        yield from ((columns, part) for columns, part, _ in few)

    def moments(self, scatters: Sequence[Float]) -> list[Moments]:
        """Give moments with these scatters."""
        nothing = like(np.zeros(self.rows.shape[1]), self.rows)
        return [ScatterMoments(count, nothing, part) for count, part in zip(self.sizes, scatters, strict=True)]

    def dealt(self, order: Order) -> list[Float]:
        """Deal the rows into groups in this order, and give the scatter of each group about its own mean.

        The largest group needs no product: its sums are what the others leave of the total.
        """
        assert self.total is not None
        if self.placed is not None:
            return self._dealt_to_places(order)
        xp = namespace(self.rows)
        groups = np.split(order, np.cumsum(self.sizes)[:-1])
        largest = int(np.argmax(self.sizes))
        scatters: list[Float] = [self.total] * len(groups)
        rest, rest_row = copied(self.total), copied(self.total_row)
        for number, group in enumerate(groups):
            if number != largest:
                chosen = take(self.rows, group)
                own = None if self.roots is None else take(self.roots, group)
                squares, row = (
                    self_product(chosen),
                    xp.sum(chosen, axis=0) if own is None else weighted_sum(own, chosen),
                )
                rest -= squares
                rest_row -= row
                scatters[number] = self._about_mean(squares, row, len(group), own)
        own = None if self.roots is None else take(self.roots, groups[largest])
        scatters[largest] = self._about_mean(rest, rest_row, self.sizes[largest], own)
        return scatters

    def _dealt_to_places(self, order: Order) -> list[Float]:
        """Deal the rows to places with weights of their own: each group needs its product."""
        scatters = []
        for group, place in zip(np.split(order, np.cumsum(self.sizes)[:-1]), self._shared_places(), strict=True):
            assert place is not None
            chosen, own = take(self.rows, group) * like(place, self.rows)[:, None], self._roots_of(group, place)
            assert own is not None
            scatters.append(self._about_mean(self_product(chosen), weighted_sum(own, chosen), len(group), own))
        return scatters

    def _shared_places(self) -> list[Float | None]:
        """Give the roots of the weights at the places of each group."""
        if self.placed is None:
            return [None] * len(self.sizes)
        return [*np.split(self.placed, np.cumsum(self.sizes)[:-1])]

    def _roots_of(self, group: Order, place: Float | None) -> Float | None:
        """Give the roots of the weights of rows at these places; None if all count equally."""
        own = None if self.roots is None else take(self.roots, group)
        if place is None:
            return own
        at_place = like(place, self.rows)
        return at_place if own is None else own * at_place

    def _about_mean(self, squares: Float, row: Float, count: int, roots: Float | None) -> Float:
        """Give the scatter of a group about its mean, such that it is divided by the number of rows in the end."""
        if roots is None:
            return squares - row[:, None] * (row / count)
        weight = float(namespace(roots).sum(roots**2))
        return (squares - row[:, None] * (row / weight)) * (count / weight)

    def _values_by_spectrum(self, spectrum: PooledSpectrum, problem: Problem, order: Order) -> Float | None:
        """Give the leading ratios to one background by iterations, for all parameters at once."""
        dealt = spectrum.dealt(order[: self.sizes[0]], order[self.sizes[0] :])
        variances = np.array([dealt.variance])
        ridges = [self._ridge(variances, problem, problem.weights, number) for number in range(problem.n_values)]
        return dealt.largest_ratios(problem.shares[:, 0], np.array(ridges))

    def _values_by_gram(self, problem: Problem, order: Order) -> Float:
        """Give the leading ratios from inner products: the problem then has as many dimensions as the target has rows.

        With X and Z the rows of the target and of the backgrounds (times the roots of their coefficients) and a ridge
        ρ, the roots of ``XᵀX u = λ (ZᵀZ + ρ I) u`` are those of ``[X Xᵀ - X Zᵀ (Z Zᵀ + ρ I)⁻¹ Z Xᵀ] / ρ``.
        """
        assert self.gram is not None
        if self.roots is not None or self.placed is not None:
            return self._values_of_gram(self._weighted_gram(order), problem)
        groups = np.split(order, np.cumsum(self.sizes)[:-1])
        # Means of inner products with each group, by one product.
        members = np.zeros((len(order), len(groups)))
        for number, group in enumerate(groups):
            members[group, number] = 1.0 / len(group)
        means = product(self.gram, like(members, self.gram))
        between, means = product(like(members, self.gram).T, means), take(means, order)
        gram = _reordered(self.gram, order)
        ends = np.cumsum(self.sizes).tolist()
        places = [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]
        for number, place in enumerate(places):
            gram[:, place] -= means[:, number, None]
        means = means - take(between, np.repeat(np.arange(len(groups)), self.sizes))
        for number, place in enumerate(places):
            gram[place, :] -= means[:, number]
        return self._values_of_gram(gram, problem)

    def _weighted_gram(self, order: Order) -> Float:
        """Give the inner products of rows with weights, about the mean of the group that they are dealt to.

        Divided by the number of rows of a group, their squares are those about the weights of the group.
        """
        assert self.gram is not None
        own = np.ones(len(order)) if self.roots is None else to_host(self.roots)[order]
        placed = np.ones(len(order)) if self.placed is None else self.placed
        numbers = np.repeat(np.arange(len(self.sizes)), self.sizes)
        totals = np.bincount(numbers, weights=(own * placed) ** 2)
        members = np.zeros((len(order), len(self.sizes)))
        members[np.arange(len(order)), numbers] = own * placed**2 / totals[numbers]
        gram, held = _reordered(self.gram, order), like(members, self.gram)
        means = product(gram, held)
        between, along = product(held.T, means), like(own, gram)
        gram -= take(means, numbers, axis=1) * along
        means = means - along[:, None] * take(between, numbers)
        gram -= along[:, None] * take(means, numbers, axis=1).T
        factors = like(placed * np.sqrt(np.array(self.sizes) / totals)[numbers], gram)
        return gram * factors[:, None] * factors

    def _values_of_gram(self, gram: Float, problem: Problem) -> Float:
        """Give the leading ratios from the inner products of rows about the means of their groups, in their order."""
        n_target = self.sizes[0]
        ends = np.cumsum(self.sizes).tolist()
        places = [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]
        xp = namespace(gram)
        lengths = diagonal(gram)
        variances = np.array([float(xp.sum(lengths[place])) for place in places[1:]]) / self.sizes[1:]
        ridges = [self._ridge(variances, problem, problem.weights, number) for number in range(problem.n_values)]
        own, across, other = gram[:n_target, :n_target], gram[n_target:, :n_target], gram[n_target:, n_target:]
        # Iterations gain more on a path, which needs one eigendecomposition.
        least = LEAST_ITERATED if problem.n_values == 1 else LEAST_ITERATED // 2
        if _is_iterated(own, least) and bool(np.all(problem.shares == problem.shares[:, :1])):
            # Backgrounds with one and the same shrinkage are one set of rows, each row with its own factor.
            roots = np.repeat(np.sqrt(problem.weights / self.sizes[1:]), self.sizes[1:])
            found = ratios_of_inner_products(
                copied(own),
                roots[:, np.newaxis] * across,
                (roots[:, np.newaxis] * roots) * other,
                1.0 - problem.shares[:, 0],
                np.array(ridges),
            )
            if found is not None:
                return found / n_target
        values = []
        for shares, ridge in zip(problem.shares, ridges, strict=True):
            roots = like(np.repeat(np.sqrt(problem.weights * (1.0 - shares) / self.sizes[1:]), self.sizes[1:]), gram)
            factor = cholesky(add_to_diagonal(other * (roots[:, None] * roots), ridge))
            if factor is None:
                values.append(float("inf"))
                continue
            half = solve_triangular(factor, across * roots[:, None])
            values.append(largest_eigenvalue(own - self_product(half)) / (ridge * n_target))
        return np.array(values)


def _reordered(matrix: Float, order: Order) -> Float:
    """Give a symmetric matrix with its rows and columns in another order, as a copy."""
    if is_foreign(matrix):
        return take(take(matrix, order), order, axis=1)
    # A third of the time of indexing.
    return matrix.take(order, axis=0).take(order, axis=1)


def _is_iterated(matrix: Float, least: int) -> bool:
    """Tell whether iterations find the largest eigenvalue of a matrix sooner than LAPACK."""
    return not is_foreign(matrix) and len(matrix) >= least


def _largest_ratio(first: Float, second: Float) -> float:
    # Both are overwritten, and needed again where both ends are looked at.
    factor = cholesky(copied(second))
    if factor is None:
        return float("inf")
    found = ratio_by_iterations(first, factor) if _is_iterated(first, LEAST_ITERATED) else None
    return largest_ratio(copied(first), factor) if found is None else found


def variances_of(scatters: Sequence[Float], sizes: Sequence[int]) -> Float:
    """Total variance of each group."""
    traces = (float(namespace(scatter).sum(diagonal(scatter))) for scatter in scatters)
    return np.array([trace / size for trace, size in zip(traces, sizes, strict=True)])


def pencil_of(pool: Pool, scatters: Sequence[Float], problem: Problem, number: int = 0) -> Pencil:
    """Pose the problem of the fit in the coordinates at hand; see `standout.contrast`."""
    size = scatters[0].shape[0]
    target, *backgrounds = pool.moments(scatters)
    weights, shares = problem.weights, problem.shares[number]
    if problem.choose_weights is not None:
        weights = problem.choose_weights(target, backgrounds, shares, float(problem.ridges[number]))
    if problem.alphas is not None:
        taken = tuple((-float(problem.alphas[number] * w), part) for w, part in zip(weights, backgrounds, strict=True))
        return Pencil(Form(size, ((1.0, target), *taken)), Form(size, (), ridge=1.0))
    terms = tuple(
        (float(weight * (1.0 - share)), background)
        for weight, share, background in zip(weights, shares, backgrounds, strict=True)
        if share < 1.0
    )
    variances = variances_of(scatters[1:], pool.sizes[1:])
    ridge = pool._ridge(variances, problem, weights, number)
    if pool.rough is not None:
        nothing = like(np.zeros(size), pool.rough)
        rough = ScatterMoments(1, nothing, pool.rough)
        terms = (*terms, (pool.roughness(variances, problem, weights, number), rough))
    return Pencil(Form(size, ((1.0, target),)), Form(size, terms, ridge=ridge))
