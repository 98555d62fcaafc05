"""Many pencils over the same datasets: each solved from where the one before it left off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from standout.pencil._choice import choose_solver
from standout.pencil._device import solve_on_device
from standout.pencil._record import Pencil, Solution
from standout.pencil._shifted import solve_shifted
from standout.pencil._solve import solve_in_range
from standout.pencil._span import SpanProblem


def solve_path(
    pencils: Sequence[Pencil], n_components: int, *, solver: str = "auto", seed: int = 0
) -> Iterator[Solution]:
    """What are the leading solutions of each of these pencils?

    They must be over the same datasets, such as one target and background at many α. Wide data are brought to the
    span of their rows once. Differences ``A - α B`` with growing α are solved by shifted iterations, in a fraction of
    the time that one alone takes.

    Parameters
    ----------
    pencils : sequence of Pencil
        Differences in order of growing subtraction: each one's A at most that of the one before it.
    n_components : int
        How many solutions of each.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        As in `solve`.
    seed : int, default=0
        Start of the iterative solvers.

    Yields
    ------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments, pencil
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(1000, 3)) * [9, 1, 3])
    >>> background = moments.gather(rng.normal(size=(1000, 3)) * [9, 1, 1])
    >>> pencils = [contrast.contrastive(target, [background], [1.0], alpha) for alpha in (0.0, 2.0)]
    >>> [int(np.argmax(np.abs(solution.vectors))) for solution in pencil.solve_path(pencils, 1)]
    [0, 2]
    """
    if pencils[0].on_device:
        yield from solve_on_device(pencils, n_components, solver)
        return
    if solver == "auto":
        n_rows = max(pencil.a.n_rows + pencil.b.n_rows for pencil in pencils)
        solver = choose_solver(n_rows, pencils[0].n_features, n_components)
    span: SpanProblem | None = None
    if solver == "reduced" and all(pencil.keeps_rows for pencil in pencils):
        span = SpanProblem.of(pencils, n_components)
    elif solver != "lobpcg" and any(pencil.is_difference for pencil in pencils):
        span = SpanProblem.of_range(pencils, n_components)
    if span is not None:
        yield from _solve_path_in_span(span, pencils, n_components, seed)
        return
    before: Solution | None = None
    for pencil in pencils:
        before = _step(pencil, n_components, "dense" if solver == "reduced" else solver, seed, before)
        yield before


def _solve_path_in_span(
    span: SpanProblem, pencils: Sequence[Pencil], n_components: int, seed: int
) -> Iterator[Solution]:
    before: Solution | None = None
    for pencil in pencils:
        inner = span.inside(pencil)
        before = solution = _step(inner, n_components, "dense", seed, before)
        if span.roots and pencil.a.is_nonnegative and (solution.solver == "root" or not solution.accurate):
            yield span.solve(pencil, n_components)
        else:
            yield span.lifted(pencil, inner, solution)


def _step(pencil: Pencil, n_components: int, solver: str, seed: int, before: Solution | None) -> Solution:
    """Solve one pencil, with the help of the solution before it."""
    if pencil.is_difference and before is not None and solver != "lobpcg":
        return solve_shifted(pencil, n_components, before)
    start = None if before is None else before.vectors
    # The range has been seen to already, for all at once.
    return solve_in_range(pencil, n_components, solver=solver, seed=seed, start=start)
