"""The reduced solver: for more columns than rows, the problem in the span of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from standout._arrays import Float, product, row_slice, self_product, sum_of_squares
from standout._messages import InvalidTypeError
from standout._params import check_n_components
from standout._xp import (
    add_to_diagonal,
    cholesky,
    column_norms,
    concat,
    eigh,
    largest,
    leading_eigenvectors,
    like,
    namespace,
    solve_triangular,
    take,
)
from standout.moments import (
    KeptRows,
    Moments,
    RootMoments,
    ScatterMoments,
    in_span,
    joint_gram,
)
from standout.pencil._dense import cholesky_factor, solve_dense
from standout.pencil._lanczos import solve_lanczos
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, finish
from standout.pencil._root import solve_root

# Rounding of results that were computed in double precision.
DOUBLE = 1e-12
# A direction that is lost in rounding is far below all others. The first step finds it, the second one is for safety.
INVERSE_STEPS = 2

# --- through inner products -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stack:
    """Centred rows Z of several datasets, stacked, with factors s: a form without its ridge is ``Σ sᵢ² zᵢ zᵢᵀ``."""

    parts: tuple[tuple[float, KeptRows], ...]

    @classmethod
    def of(cls, form: Form) -> _Stack:
        terms = ((weight, part) for weight, part in form.terms if weight > 0.0)
        return cls(tuple((float(np.sqrt(weight / part.total_weight)), _rows(part)) for weight, part in terms))

    @property
    def n_rows(self) -> int:
        return sum(moments.count for _, moments in self.parts)

    @property
    def scales(self) -> Float:
        """Factor of each row."""
        return np.concatenate([np.full(moments.count, scale) for scale, moments in self.parts])

    def combine(self, W: Float) -> Float:
        """Sum the rows, without their factors, with the columns of W as weights: ``Zᵀ W``."""
        ends = np.cumsum([moments.count for _, moments in self.parts]).tolist()
        parts = [
            moments.combine(row_slice(W, end - moments.count, end))
            for end, (_, moments) in zip(ends, self.parts, strict=True)
        ]
        return sum(parts[1:], start=parts[0])


def _rows(moments: Moments) -> KeptRows:
    if not isinstance(moments, KeptRows):
        raise InvalidTypeError(
            "the reduced solver needs the rows, not {kind}",
            advice="Gather the moments with {p.kind:rows}.",
            kind=type(moments).__name__,
        )
    return moments


def solve_reduced(pencil: Pencil, n_components: int) -> Solution:
    """Solve through the inner products of the rows.

    With ``A = XᵀX``, ``B = YᵀY + ρI`` and Woodbury's identity, the matrix ``X B⁻¹ Xᵀ``, with one row per row of the
    target, has all non-zero values, and ``u = B⁻¹ Xᵀ w``. If rounding would be visible, if more components are wanted
    than the target has directions, or if A is a difference, the problem is solved in an orthonormal basis of the span
    instead; with as many rows as columns, by the dense solver if that is accurate.

    Raises
    ------
    NotDefiniteError
        If B has no ridge: with fewer rows than columns it is singular.
    """
    if pencil.b.ridge == 0.0:
        raise NotDefiniteError
    solution = solve_by_products(pencil, n_components)
    if solution is not None:
        return solution
    if pencil.a.is_nonnegative and pencil.a.n_rows + pencil.b.n_rows >= pencil.n_features:
        # Exact kernels: the span is the whole space.
        solution = solve_dense(pencil, n_components)
        if solution.accurate:
            return solution
    return SpanProblem.of([pencil], n_components).solve(pencil, n_components)


def solve_by_products(pencil: Pencil, n_components: int) -> Solution | None:
    """Solve from the inner products of all rows; None if they do not determine so many components accurately."""
    ridge, target, background = pencil.b.ridge, pencil.a, pencil.b
    if ridge == 0.0 or target.ridge or not target.is_nonnegative or n_components > target.n_rows:
        return None
    x, y = _Stack.of(target), _Stack.of(background)
    gram = joint_gram([moments for _, moments in x.parts + y.parts])
    cut, end = x.n_rows, gram.shape[0]
    inner_x, inner_yx, inner_y = gram[:cut, :cut], gram[cut:end, :cut], gram[cut:end, cut:end]
    scales = like(x.scales, gram)
    whitened = scales[:, None] * inner_x * scales
    size = float(np.sqrt(sum_of_squares(whitened)))
    factor: Float | None = None
    if y.parts:
        # With factors S of the rows, ``(S K S + ρI)⁻¹ = S⁻¹ (K + ρS⁻²)⁻¹ S⁻¹``: K itself need not be scaled.
        factor = cholesky(add_to_diagonal(1.0 * inner_y, like(ridge / y.scales**2, gram)))
        if factor is None:
            return None
        whitened -= self_product(solve_triangular(factor, inner_yx) * scales)
    values, weights = leading_eigenvectors(whitened, n_components)
    values = values / ridge
    if float(values[-1]) <= cut * np.finfo(np.float64).eps * float(values[0]):
        return None  # the target does not vary along one of the directions, and B⁻¹Xᵀw does not determine it
    # X u and Y u follow from the inner products, so that one pass over the rows gives u, A u and B u.
    weights = scales[:, None] * weights
    along = product(inner_x, weights)
    b_vectors: Float | float = 0.0
    if factor is not None:
        across = product(inner_yx, weights)
        back = -solve_triangular(factor, solve_triangular(factor, across), transposed=True)
        along = along + product(inner_yx.T, back)
        along_y = like(y.scales**2, gram)[:, None] * (across + product(inner_y, back))
        from_y = y.combine(concat([back, along_y], axis=1))
        b_vectors = from_y[:, n_components:]
    from_x = x.combine(concat([weights, scales[:, None] ** 2 * along], axis=1))
    vectors = from_x[:, :n_components]
    if factor is not None:
        vectors = vectors + from_y[:, :n_components]
    # The rounding of inner products is relative to the largest of them, and they are divided by the ridge.
    rounding = max(target.precision, background.precision) * size / (ridge * values)
    images = (from_x[:, n_components:], b_vectors + ridge * vectors)
    solution = finish(pencil, values, vectors, "reduced", images=images, rounding=rounding)
    return solution if solution.accurate else None


# --- in a basis of the span -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SpanProblem:
    """The datasets of some pencils in an orthonormal basis Q of the directions in which they vary, ``Z = F Qᵀ``.

    Attributes
    ----------
    basis : ndarray of shape (n_features, r)
        Q.
    scatters, roots : dict
        For each dataset (by the identity of its moments) the moments of its coordinates F: as a matrix, and as a root
        if the rows are kept.
    """

    basis: Float
    scatters: dict[int, Moments]
    roots: dict[int, Moments]

    @classmethod
    def of(cls, pencils: Sequence[Pencil], n_components: int) -> SpanProblem:
        """Find the span of all datasets, which must have their rows, and check that it has enough directions."""
        datasets = {
            id(moments): moments
            for pencil in pencils
            for form in (pencil.a, pencil.b)
            for _, moments in form.terms
            if isinstance(moments, KeptRows)
        }
        basis, coordinates = in_span(list(datasets.values()))
        check_n_components(n_components, pencils[0].n_features, basis.shape[1])
        nothing = like(np.zeros(basis.shape[1]), basis)
        scatters: dict[int, Moments] = {}
        roots: dict[int, Moments] = {}
        for (key, moments), rows in zip(datasets.items(), coordinates, strict=True):
            scatters[key] = ScatterMoments(moments.count, nothing, self_product(rows), weights=moments.weights)
            roots[key] = RootMoments(moments.count, nothing, rows, weights=moments.weights)
        return cls(basis, scatters, roots)

    @classmethod
    def of_range(cls, pencils: Sequence[Pencil], n_components: int) -> SpanProblem | None:
        """Find the directions in which any dataset varies, from covariance matrices; None if these are all directions.

        A difference is zero along a direction in which no dataset varies, and zero can be more than its values along
        the directions of the data. Ratios have no such problem: they have no value along such a direction.
        """
        terms = {id(part): part for pencil in pencils for form in (pencil.a, pencil.b) for _, part in form.terms}
        datasets = [part for part in terms.values() if part.is_dataset and part.total_variance > 0.0]
        size = pencils[0].n_features
        # Each dataset is scaled by its own spread, so that a small one is not mistaken for rounding of a large one.
        total = Form(size, tuple((1.0 / part.total_variance, part) for part in datasets))
        if total.precision > DOUBLE:
            # Single precision cannot tell a small direction from none. The solution shows that, and is not kept.
            return None
        if datasets and _is_surely_definite(total):
            return None
        check_n_components(n_components, size, size if datasets else 0)
        variances = total.diagonal
        xp = namespace(variances)
        scale = xp.sqrt(variances)
        safe = xp.where(scale > 0.0, scale, 1.0)
        values, vectors = eigh(total.matrix() / (safe[:, None] * safe))
        present = values > _noise(total) * values[-1]
        n_present = int(xp.count_nonzero(present))
        if n_present == size:
            return None
        check_n_components(n_components, size, n_present)
        basis = xp.linalg.qr(scale[:, None] * take(vectors, present, axis=1))[0]
        nothing = like(np.zeros(basis.shape[1]), basis)
        scatters: dict[int, Moments] = {
            key: ScatterMoments(
                part.count,
                nothing,
                part.total_weight * product(basis.T, part.apply(basis)),
                part.precision,
                weights=part.weights,
            )
            for key, part in terms.items()
        }
        return cls(basis, scatters, {})

    def inside(self, pencil: Pencil, *, by_roots: bool = False) -> Pencil:
        """Give the pencil in the coordinates of the span."""
        known = self.roots if by_roots else self.scatters
        size = self.basis.shape[1]

        def mapped(form: Form) -> Form:
            return Form(size, tuple((weight, known[id(moments)]) for weight, moments in form.terms), form.ridge)

        return replace(pencil, a=mapped(pencil.a), b=mapped(pencil.b))

    def solve(self, pencil: Pencil, n_components: int, seed: int = 0) -> Solution:
        """Solve in the span: a difference as a matrix, a ratio by roots, which lose no digits by squaring."""
        by_roots = pencil.a.is_nonnegative
        inner = self.inside(pencil, by_roots=by_roots)
        solution = solve_root(inner, n_components) if by_roots else solve_lanczos(inner, n_components, seed)
        return self.lifted(pencil, inner, solution)

    def lifted(self, pencil: Pencil, inner: Pencil, solution: Solution) -> Solution:
        """Map a solution in the span back to the columns of the data."""
        vectors = solution.vectors
        xp = namespace(vectors)
        images = product(self.basis, inner.a.apply(vectors)), product(self.basis, inner.b.apply(vectors))
        n_infinite = int(xp.count_nonzero(xp.isinf(solution.values)))
        return finish(
            pencil,
            solution.values,
            product(self.basis, vectors),
            "reduced",
            images=images,
            infinite_patterns=product(self.basis, solution.patterns[:, :n_infinite]) if n_infinite else None,
            rounding=solution.rounding,
            n_absent=solution.n_absent,
            n_lost=solution.n_lost,
            singular=solution.singular,
            rank=solution.rank or inner.n_features,
        )


def _noise(form: Form) -> float:
    """Give the share of the largest eigenvalue that can be rounding."""
    return 100.0 * form.n_features * form.precision


def _is_surely_definite(form: Form) -> bool:
    """Tell whether the least eigenvalue, in units of the diagonal, is far above rounding; False if that is not sure.

    Pivots alone do not show this: the pivot of a column in which the missing direction has a small entry is many times
    the least eigenvalue. Inverse iterations cost little once there is a factor, and approach that eigenvalue from
    above.
    """
    try:
        factor = cholesky_factor(form)
    except NotDefiniteError:
        return False
    assert factor is not None  # a form with datasets is not the identity
    scale = namespace(factor).sqrt(form.diagonal)[:, None]
    vector = like(np.random.default_rng(0).standard_normal((form.n_features, 1)), scale)
    growth = largest(column_norms(vector))
    for _ in range(INVERSE_STEPS):
        solved = solve_triangular(factor, scale * vector / growth)
        vector = scale * solve_triangular(factor, solved, transposed=True)
        growth = largest(column_norms(vector))
    # The largest eigenvalue is at most the trace, which is the number of columns.
    return growth * form.n_features * _noise(form) < 1.0
