"""The reduced solver: for more columns than rows, the problem in the span of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from standout._arrays import Float, leading_eigenvectors, product, self_product
from standout.moments import Moments, RowMoments, joint_gram
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, finish
from standout.pencil._span import SpanProblem


@dataclass(frozen=True, eq=False)
class _Stack:
    """Centred rows Z of several datasets, one under the other and scaled: ``ZᵀZ`` is a form without its ridge."""

    parts: tuple[tuple[float, RowMoments], ...]

    @classmethod
    def of(cls, form: Form) -> _Stack:
        return cls(tuple((np.sqrt(coefficient / moments.count), _rows(moments)) for coefficient, moments in form.terms))

    @property
    def n_rows(self) -> int:
        return sum(moments.count for _, moments in self.parts)

    def combine(self, W: Float, n_features: int) -> Float:
        total = np.zeros((n_features, W.shape[1]))
        start = 0
        for scale, moments in self.parts:
            total += scale * moments.combine(W[start : start + moments.count])
            start += moments.count
        return total


def solve_reduced(pencil: Pencil, n_components: int) -> Solution:
    """Solve through the inner products of the rows.

    With ``A = XᵀX``, ``B = YᵀY + ρI`` and Woodbury's identity, ``X B⁻¹ Xᵀ`` (of the target's number of rows) carries
    all non-zero values, and ``u = B⁻¹ Xᵀ w``. Where rounding would show, where more components are wanted than the
    target has directions, or where A is a difference, the same problem is solved in an orthonormal basis of the span
    instead.

    Raises
    ------
    NotDefiniteError
        Where B has no ridge: with fewer rows than columns it is singular.
    """
    if pencil.b.ridge == 0.0:
        raise NotDefiniteError
    if not pencil.a.is_nonnegative:
        return SpanProblem.of([pencil], n_components).solve(pencil, n_components)
    target, background = _Stack.of(pencil.a), _Stack.of(pencil.b)
    parts = target.parts + background.parts
    scales = np.concatenate([np.full(moments.count, scale) for scale, moments in parts])
    inner = joint_gram([moments for _, moments in parts]) * scales[:, np.newaxis] * scales
    if n_components <= target.n_rows:
        solution = _solve_woodbury(pencil, target, background, inner, n_components)
        if solution is not None and solution.accurate:
            return solution
    return SpanProblem.of([pencil], n_components).solve(pencil, n_components)


def _solve_woodbury(pencil: Pencil, target: _Stack, background: _Stack, inner: Float, d: int) -> Solution | None:
    ridge = pencil.b.ridge
    cut = target.n_rows
    inner_a, inner_ba, inner_b = inner[:cut, :cut], inner[cut:, :cut], inner[cut:, cut:]
    shifted = inner_b.copy()
    shifted.flat[:: len(shifted) + 1] += ridge
    factor, info = linalg.lapack.dpotrf(shifted.T, lower=1, overwrite_a=True) if len(shifted) else (shifted, 0)
    if info != 0:
        return None
    whitened = inner_a
    if len(factor):
        half = linalg.solve_triangular(factor, inner_ba, lower=True, check_finite=False)
        whitened = inner_a - self_product(half)
    size = len(whitened)
    values, weights = leading_eigenvectors(whitened / ridge, d)
    if values[-1] <= size * np.finfo(np.float64).eps * values[0]:
        return None  # a direction in which the target does not vary: B⁻¹Xᵀw says nothing of it
    back = np.zeros((0, d))
    if len(factor):
        back = -linalg.cho_solve((factor, True), product(inner_ba, weights), check_finite=False)
    # X u and Y u follow from the inner products, so one pass over the rows gives u, A u and B u.
    along_a = product(inner_a, weights) + product(inner_ba.T, back)
    along_b = product(inner_ba, weights) + product(inner_b, back)
    from_a = target.combine(np.hstack([weights, along_a]), pencil.n_features)
    from_b = background.combine(np.hstack([back, along_b]), pencil.n_features)
    vectors = from_a[:, :d] + from_b[:, :d]
    # Inner products are rounded at the size of the largest, and divided by the ridge.
    precision = max(pencil.a.precision, pencil.b.precision)
    rounding = precision * float(np.linalg.norm(inner_a)) / (ridge * values)
    images = (from_a[:, d:], from_b[:, d:] + ridge * vectors)
    return finish(pencil, values, vectors, "reduced", images=images, rounding=rounding)


def _rows(moments: Moments) -> RowMoments:
    if not isinstance(moments, RowMoments):
        raise TypeError(f"the reduced solver needs the rows, not {type(moments).__name__}. Gather with kind='rows'.")
    return moments
