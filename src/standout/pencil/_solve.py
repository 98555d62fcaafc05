"""One door to all solvers."""

from __future__ import annotations

from standout._arrays import Float
from standout._validation import check_formable
from standout.pencil._choice import FORMED_SIZE, choose_solver
from standout.pencil._dense import solve_dense
from standout.pencil._device import solve_on_device
from standout.pencil._lanczos import solve_lanczos
from standout.pencil._lobpcg import solve_lobpcg
from standout.pencil._record import NotDefiniteError, Pencil, Solution
from standout.pencil._reduced import solve_reduced
from standout.pencil._root import solve_root
from standout.pencil._span import SpanProblem


def solve(
    pencil: Pencil, n_components: int, *, solver: str = "auto", seed: int = 0, start: Float | None = None
) -> Solution:
    """What are the leading solutions of ``A u = λ B u``?

    Parameters
    ----------
    pencil : Pencil
    n_components : int
        How many solutions.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        See `choose_solver`. A singular B is always left to the root solver. Arrays of other libraries than NumPy are
        solved on their device, without iterations.
    seed : int, default=0
        Start of the iterative solvers; the answer depends on it by rounding only.
    start : ndarray of shape (n_features, d), default=None
        Vectors close to the solution, for the LOBPCG solver to start from.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments, pencil
    >>> rng = np.random.default_rng(0)
    >>> problem = contrast.principal(moments.gather(rng.normal(size=(2000, 3)) * [1, 3, 2]))
    >>> solution = pencil.solve(problem, 2)
    >>> solution.values.round(0), solution.solver
    (array([9., 4.]), 'dense')
    """
    if pencil.on_device:
        return next(solve_on_device([pencil], n_components, solver))
    if solver == "auto":
        solver = choose_solver(pencil.a.n_rows + pencil.b.n_rows, pencil.n_features, n_components)
    by_rows = solver == "lobpcg" or (solver == "reduced" and pencil.keeps_rows)
    if pencil.is_difference and not by_rows:
        span = SpanProblem.of_range([pencil], n_components)
        if span is not None:
            return span.solve(pencil, n_components, seed)
    return solve_in_range(pencil, n_components, solver=solver, seed=seed, start=start)


def solve_in_range(pencil: Pencil, n_components: int, *, solver: str, seed: int, start: Float | None) -> Solution:
    """Solve a pencil with a given solver; a difference must not lack directions."""
    n_rows = pencil.a.n_rows + pencil.b.n_rows
    if solver == "reduced" and not pencil.keeps_rows:
        solver = "dense"
    try:
        if solver == "dense":
            return solve_dense(pencil, n_components)
        if solver == "lanczos":
            return solve_lanczos(pencil, n_components, seed)
        if solver == "reduced":
            return solve_reduced(pencil, n_components)
        if solver == "lobpcg":
            return solve_lobpcg(pencil, n_components, seed, start)
    except NotDefiniteError:
        check_formable(min(n_rows, pencil.n_features), FORMED_SIZE)
    if not pencil.a.is_nonnegative:
        # A difference has no root; too small for LOBPCG, it is small enough to be formed.
        return solve_reduced(pencil, n_components) if n_rows < pencil.n_features else solve_dense(pencil, n_components)
    return solve_root(pencil, n_components)
