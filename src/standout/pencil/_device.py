"""Pencils of arrays of other libraries: the dense and the root solver on their device, wide data in their span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from standout.pencil._dense import solve_dense
from standout.pencil._record import NotDefiniteError, Pencil, Solution
from standout.pencil._root import solve_root
from standout.pencil._span import SpanProblem


def solve_on_device(pencils: Sequence[Pencil], n_components: int, solver: str) -> Iterator[Solution]:
    """Solve pencils over the same datasets one after the other, where the datasets lie.

    A device finds all eigenvectors of a matrix in less time than iterations take to find a few, so there are none.
    """
    span: SpanProblem | None = None
    if all(pencil.keeps_rows for pencil in pencils):
        span = SpanProblem.of(pencils, n_components)
    elif any(pencil.is_difference for pencil in pencils):
        span = SpanProblem.of_range(pencils, n_components)
    for pencil in pencils:
        if span is None:
            yield _solve(pencil, n_components, solver)
            continue
        inner = span.inside(pencil)
        solution = _solve(inner, n_components, solver)
        if span.roots and pencil.a.is_nonnegative and (solution.solver == "root" or not solution.accurate):
            # The rows are there: their roots have lost no digits to squaring.
            inner = span.inside(pencil, by_roots=True)
            solution = solve_root(inner, n_components)
        yield span.lifted(pencil, inner, solution)


def _solve(pencil: Pencil, n_components: int, solver: str) -> Solution:
    """Solve one pencil by matrices, or by roots where these are asked for or B is singular."""
    if solver != "root" or not pencil.a.is_nonnegative:
        try:
            return solve_dense(pencil, n_components)
        except NotDefiniteError:
            pass
    return solve_root(pencil, n_components)
