"""Pencils of wide data in the span of the rows, where they are small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from standout._algebra import (
    column_lengths,
    count_true,
    either,
    is_infinite,
    largest,
    orthonormal,
    outer,
    root,
    symmetric_eigen,
    take_columns,
    triangular_solve,
)
from standout._arrays import Float, product, self_product
from standout._namespaces import like
from standout._validation import check_n_components
from standout.moments import CentredRows, Moments, RootMoments, RowMoments, ScatterMoments, in_span
from standout.pencil._dense import cholesky_factor
from standout.pencil._lanczos import solve_lanczos
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, finish
from standout.pencil._root import solve_root

# Rounding of what has been computed in double precision.
DOUBLE = 1e-12

# A direction that is lost in rounding is far below all others: the first step finds it, the second is for bad luck.
INVERSE_STEPS = 2


@dataclass(frozen=True, eq=False)
class SpanProblem:
    """The datasets of some pencils in an orthonormal basis Q of the directions that they have, ``Z = F Qᵀ``.

    Attributes
    ----------
    basis : ndarray of shape (n_features, r)
        Q.
    scatters, roots : dict
        For each dataset (by the identity of its moments) the moments of its coordinates F: as a matrix, and, where the
        rows are kept, as a root.
    """

    basis: Float
    scatters: dict[int, Moments]
    roots: dict[int, Moments]

    @classmethod
    def of(cls, pencils: Sequence[Pencil], n_components: int) -> SpanProblem:
        """Find the span of all datasets, which must be there with their rows, and see that it has enough directions."""
        datasets = {
            id(moments): moments
            for pencil in pencils
            for form in (pencil.a, pencil.b)
            for _, moments in form.terms
            if isinstance(moments, RowMoments | CentredRows)
        }
        basis, coordinates = in_span(list(datasets.values()))
        check_n_components(n_components, pencils[0].n_features, basis.shape[1])
        nothing = like(np.zeros(basis.shape[1]), basis)
        scatters: dict[int, Moments] = {}
        roots: dict[int, Moments] = {}
        for (key, moments), rows in zip(datasets.items(), coordinates, strict=True):
            scatters[key] = ScatterMoments(moments.count, nothing, self_product(rows))
            roots[key] = RootMoments(moments.count, nothing, rows)
        return cls(basis, scatters, roots)

    @classmethod
    def of_range(cls, pencils: Sequence[Pencil], n_components: int) -> SpanProblem | None:
        """Find the directions that occur in any dataset, from covariance matrices; None where all directions do.

        A difference is zero along a direction that no dataset has, and that can be more than it is along those that
        the data do have. Ratios have no such trouble: there these directions have no value at all.
        """
        terms = {id(part): part for pencil in pencils for form in (pencil.a, pencil.b) for _, part in form.terms}
        datasets = [part for part in terms.values() if part.total_variance > 0.0]
        size = pencils[0].n_features
        # Each dataset counts in units of its own spread: a small one must not pass for rounding beside a large one.
        total = Form(size, tuple((1.0 / part.total_variance, part) for part in datasets))
        if total.precision > DOUBLE:
            # Single precision cannot tell a small direction from none. Its solution shows that, and is not kept.
            return None
        if datasets and _is_surely_definite(total):
            return None
        check_n_components(n_components, size, size if datasets else 0)
        scale = root(total.diagonal)
        safe = either(scale > 0.0, scale, 1.0)
        values, vectors = symmetric_eigen(total.matrix() / outer(safe, safe))
        occurring = values > _noise(total) * values[-1]
        n_occurring = count_true(occurring)
        if n_occurring == size:
            return None
        check_n_components(n_components, size, n_occurring)
        basis = orthonormal(scale[:, np.newaxis] * take_columns(vectors, occurring))[0]
        nothing = like(np.zeros(basis.shape[1]), basis)
        scatters: dict[int, Moments] = {
            key: ScatterMoments(part.count, nothing, part.count * product(basis.T, part.apply(basis)), part.precision)
            for key, part in terms.items()
        }
        return cls(basis, scatters, {})

    def inside(self, pencil: Pencil, *, by_roots: bool = False) -> Pencil:
        """Give the pencil in the coordinates of the span."""
        known = self.roots if by_roots else self.scatters
        size = self.basis.shape[1]

        def mapped(form: Form) -> Form:
            return Form(size, tuple((weight, known[id(moments)]) for weight, moments in form.terms), form.ridge)

        return Pencil(mapped(pencil.a), mapped(pencil.b))

    def solve(self, pencil: Pencil, n_components: int, seed: int = 0) -> Solution:
        """Solve in the span: a difference as a matrix, a ratio by roots, which lose no digits."""
        by_roots = pencil.a.is_nonnegative
        inner = self.inside(pencil, by_roots=by_roots)
        solution = solve_root(inner, n_components) if by_roots else solve_lanczos(inner, n_components, seed)
        return self.lifted(pencil, inner, solution)

    def lifted(self, pencil: Pencil, inner: Pencil, solution: Solution) -> Solution:
        """Map a solution in the span back to the columns of the data."""
        vectors = solution.vectors
        images = product(self.basis, inner.a.apply(vectors)), product(self.basis, inner.b.apply(vectors))
        n_infinite = count_true(is_infinite(solution.values))
        return finish(
            pencil,
            solution.values,
            product(self.basis, vectors),
            "reduced",
            images=images,
            infinite_patterns=product(self.basis, solution.patterns[:, :n_infinite]) if n_infinite else None,
            rounding=solution.rounding,
            n_absent=solution.n_absent,
            singular=solution.singular,
            rank=solution.rank or inner.n_features,
        )


def _noise(form: Form) -> float:
    """Give the share of the largest eigenvalue that rounding may make up."""
    return 100.0 * form.n_features * form.precision


def _is_surely_definite(form: Form) -> bool:
    """Tell whether the least eigenvalue is far above rounding, in units of the diagonal; False where that is open.

    Pivots alone do not tell: that of a column in which the missing direction has a small entry is many times the least
    eigenvalue. Inverse iterations, which cost little once there is a factor, come close to that eigenvalue, from above.
    """
    try:
        factor = cholesky_factor(form)
    except NotDefiniteError:
        return False
    assert factor is not None  # datasets are no identity
    scale = root(form.diagonal)[:, np.newaxis]
    vector = like(np.random.default_rng(0).standard_normal((form.n_features, 1)), scale)
    growth = largest(column_lengths(vector))
    for _ in range(INVERSE_STEPS):
        solved = triangular_solve(factor, scale * vector / growth)
        vector = scale * triangular_solve(factor, solved, transposed=True)
        growth = largest(column_lengths(vector))
    # The largest eigenvalue is at most the trace, which is the number of columns.
    return growth * form.n_features * _noise(form) < 1.0
