"""Which solver fits, and the one function that calls them all: for one pencil, for many, on the host and on devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from standout._arrays import Float
from standout._messages import InvalidValueError
from standout._xp import largest, namespace
from standout.pencil._dense import solve_dense
from standout.pencil._ends import both_ends, mirrored, n_at_the_end, turned_back
from standout.pencil._lanczos import RidgeFamily, solve_lanczos, solve_shifted
from standout.pencil._lobpcg import solve_lobpcg
from standout.pencil._record import NotDefiniteError, Pencil, Solution
from standout.pencil._reduced import SpanProblem, solve_by_products, solve_reduced
from standout.pencil._root import solve_root

# Up to this size LAPACK's reduction of the whole matrix takes no longer than a Lanczos run. For larger ones Lanczos is
# as fast if nothing stands out, and two to three times as fast if something does.
DENSE_FEATURES = 1000
# Up to this size matrices are formed. Two of them need 4 GiB.
FORMED_SIZE = 16384
# So many pencils that differ in nothing but their ridge are worth a diagonalisation of what they share.
FAMILY = 4
# Variances up to this power of two, and ratios of them, can be multiplied a few times without leaving the range.
SAFE_POWER = 200
# Smaller variances have fewer digits than others.
SMALLEST = 1e-306
# A power of two that has an inverse, with room for a product.
MOST_POWER = 1000


def choose_solver(n_rows: int, n_features: int, n_components: int, *, on_device: bool = False) -> str:
    """Which solver fits data of this shape?

    The first of these rules that applies:

    1. ``"reduced"`` if all datasets together have fewer rows than columns (and at most 16,384 rows): the problem is
       solved in the span of the rows, through their inner products.
    2. ``"dense"`` up to 1,000 columns, or if more than a tenth of all components is wanted: both matrices are formed,
       and LAPACK finds the leading vectors. Up to 16,384 columns.
    3. ``"lanczos"`` up to 16,384 columns: both matrices are formed, B is factorised, and Lanczos iterations find the
       leading vectors of the whitened operator.
    4. ``"lobpcg"`` for more: no matrix is formed, both are applied to vectors through the rows.

    A device uses ``"reduced"`` if there are fewer rows than columns, and ``"dense"`` otherwise. From 2,500 rows or
    columns on it finds the leading vectors by iterations of its own.

    A fifth solver, ``"root"``, works on QR roots of the covariances and loses no digits by squaring them. It is slower,
    and no shape needs it. `solver="auto"` uses it if the solution from matrices has lost more than half of its digits
    (unless the data are batches, which cannot be read again), or if the background covariance is singular.

    Parameters
    ----------
    n_rows : int
        Number of rows of all datasets together.
    n_features : int
    n_components : int
    on_device : bool, default=False
        Whether the data are arrays of another library than NumPy.

    Returns
    -------
    {"reduced", "dense", "lanczos", "lobpcg"}

    Examples
    --------
    >>> from standout.pencil import choose_solver
    >>> choose_solver(n_rows=40_000, n_features=500, n_components=2)
    'dense'
    >>> choose_solver(n_rows=600, n_features=20_000, n_components=2)
    'reduced'
    >>> choose_solver(n_rows=1_000_000, n_features=4_000, n_components=2, on_device=True)
    'dense'
    """
    if on_device:
        return "reduced" if n_rows < n_features else "dense"
    if n_rows < n_features and n_rows <= FORMED_SIZE:
        return "reduced"
    if n_features <= FORMED_SIZE:
        return "dense" if n_features <= DENSE_FEATURES or 10 * n_components > n_features else "lanczos"
    return "lobpcg"


def solve(
    pencil: Pencil,
    n_components: int,
    *,
    solver: str = "auto",
    seed: int = 0,
    start: Float | None = None,
    side: str = "target",
    rank: bool = True,
) -> Solution:
    """What are the leading solutions of ``A u = λ B u``, or those at its other end?

    Parameters
    ----------
    pencil : Pencil
    n_components : int
        How many solutions.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        See `choose_solver`. A singular B is always solved by the root solver. Arrays of other libraries than NumPy are
        solved on their device, without iterations.
    seed : int, default=0
        Start of the iterative solvers. The solution depends on it only by rounding.
    start : ndarray of shape (n_features, d), default=None
        Vectors near the solution, from which the LOBPCG solver starts.
    side : {"target", "background", "both"}, default="target"
        The largest values in descending order, the least in ascending order, or the most extreme ones: ratios by the
        size of their logarithms, differences by their size. Directions in which only B varies have the value 0 and are
        the first of the least, in the order of B. Directions in which no dataset varies are left out of the least.
    rank : bool, default=True
        Whether to find out in how many directions the datasets of a difference vary, even if the solution does not
        depend on it. Without it, a difference with positive values is solved several times as fast.

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
    >>> pencil.solve(problem, 1, side="background").values.round(0)
    array([1.])
    """
    quick = not rank and side == "target" and solver == "lanczos"
    if quick and pencil.is_difference and not pencil.on_device:
        # Along a direction in which no dataset varies the difference is zero: less than the values found.
        found = solve_lanczos(pencil, n_components, seed)
        if float(found.values[-1]) > largest(found.rounding) * largest(found.values):
            return found
    return next(solve_path([pencil], n_components, solver=solver, seed=seed, start=start, side=side))


def solve_path(
    pencils: Sequence[Pencil],
    n_components: int,
    *,
    solver: str = "auto",
    seed: int = 0,
    start: Float | None = None,
    side: str = "target",
) -> Iterator[Solution]:
    """What are the leading solutions of each of these pencils?

    All pencils must be over the same datasets, such as one target and background at many values of α. Wide data are
    brought to the span of their rows once. Differences ``A - α B`` with growing α are solved by shifted iterations,
    which start from the solution before and need a fraction of the time of a single solution.

    Parameters
    ----------
    pencils : sequence of Pencil
        Differences in order of growing subtraction: the A of each is at most that of the one before it.
    n_components : int
        How many solutions of each.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        As in `solve`.
    seed : int, default=0
        Start of the iterative solvers.
    start : ndarray of shape (n_features, d), default=None
        As in `solve`, for the first pencil.
    side : {"target", "background", "both"}, default="target"
        As in `solve`.

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
    if side == "target":
        yield from _solutions(pencils, n_components, solver, seed, start)
        return
    if side == "background":
        yield from _last(pencils, n_components, solver, seed, start)
        return
    for pencil, leading in zip(pencils, _solutions(pencils, n_components, solver, seed, start), strict=True):
        rest = n_at_the_end(pencil, leading)
        yield both_ends(pencil, leading, next(_last([pencil], rest, solver, seed, None)) if rest > 0 else None)


def _last(
    pencils: Sequence[Pencil], n_components: int, solver: str, seed: int, start: Float | None
) -> Iterator[Solution]:
    """Give the last solutions of each pencil, in ascending order."""
    # What was subtracted is added now, so that differences are in order of growing subtraction from the last one on.
    turned = any(pencil.is_difference for pencil in pencils)
    mirrors = [mirrored(pencil) for pencil in pencils]
    found = _solutions(mirrors[::-1] if turned else mirrors, n_components, solver, seed, start)
    if turned:
        found = reversed(list(found))
    for pencil, solution in zip(pencils, found, strict=True):
        yield turned_back(pencil, solution)


def _solutions(
    pencils: Sequence[Pencil], n_components: int, solver: str, seed: int, start: Float | None = None
) -> Iterator[Solution]:
    """Solve pencils over the same datasets one after the other, in the span of the data if that is needed."""
    factors = _balance(pencils)
    if factors != (1.0, 1.0):
        scaled = [replace(pencil, a=pencil.a.scaled(factors[0]), b=pencil.b.scaled(factors[1])) for pencil in pencils]
        near = None if start is None else start / np.sqrt(factors[1])
        for solution in _solutions_in_range(scaled, n_components, solver, seed, near):
            yield _unscaled(solution, *factors)
        return
    yield from _solutions_in_range(pencils, n_components, solver, seed, start)


def _balance(pencils: Sequence[Pencil]) -> tuple[float, float]:
    """Give factors that bring A and B near one if their products could leave the range of numbers; otherwise one."""
    subtracted = [pencil.a.subtracted for pencil in pencils]
    if not all(np.isfinite(largest(form.diagonal)) for form in subtracted if form.terms):
        raise InvalidValueError(
            "the variance that is subtracted is out of the range of double precision",
            advice="Use a smaller {p.alpha}, or rescale the data.",
        )
    sizes = [
        max(largest(form.diagonal) if form.terms else form.ridge for form in forms)
        for forms in ([*(pencil.a.added for pencil in pencils), *subtracted], [pencil.b for pencil in pencils])
    ]
    if not np.all(np.isfinite(sizes)):
        raise InvalidValueError(
            "the variances of the data, or of what a kernel makes of them, are out of the range of double precision",
            advice="Rescale the data.",
        )
    if min(sizes) <= 0.0:
        return 1.0, 1.0
    if min(sizes) < SMALLEST:
        raise InvalidValueError(
            "a dataset has a standard deviation of about {spread:.1e}, whose square is too small for double precision",
            spread=float(np.sqrt(min(sizes))),
            advice="Rescale the data.",
        )
    # Powers of four: they and their roots change no digit.
    powers = [min(max(2 * round(np.log2(size) / 2), -MOST_POWER), MOST_POWER) for size in sizes]
    if max(abs(power) for power in (*powers, powers[0] - powers[1])) <= SAFE_POWER:
        return 1.0, 1.0
    keeps_b = all(pencil.b.is_identity for pencil in pencils)
    return 2.0 ** -powers[0], 1.0 if keeps_b else 2.0 ** -powers[1]


def _unscaled(solution: Solution, factor_a: float, factor_b: float) -> Solution:
    """Give the solution of a pencil from that of ``(factor_a A, factor_b B)``."""
    xp = namespace(solution.values)
    infinite, root = xp.isinf(solution.values), float(np.sqrt(factor_b))
    # In two steps: the quotient of the factors may be out of range.
    with np.errstate(over="ignore"):
        values = xp.where(infinite, solution.values, solution.values / factor_a * factor_b)
    ones = xp.ones_like(solution.values)
    finite = xp.where(infinite, ones, values)
    leading = largest(xp.where(infinite, 0.0 * ones, solution.values))
    if not np.isfinite(largest(finite)) or (leading > 0.0 and largest(xp.where(infinite, 0.0 * ones, values)) == 0.0):
        raise InvalidValueError(
            "the spread of the target and that of the backgrounds are of such different size that the ratio of their "
            "variances is out of the range of double precision",
            advice="Give all datasets in the same units.",
        )
    scale = xp.where(infinite, ones, root * ones)
    return replace(solution, values=values, vectors=solution.vectors * scale, patterns=solution.patterns / scale)


def _solutions_in_range(
    pencils: Sequence[Pencil], n_components: int, solver: str, seed: int, start: Float | None
) -> Iterator[Solution]:
    """Solve pencils whose numbers can be squared."""
    alone, on_device = len(pencils) == 1, pencils[0].on_device
    keeps_rows = all(pencil.keeps_rows for pencil in pencils)
    if solver == "auto":
        n_rows = max(pencil.a.n_rows + pencil.b.n_rows for pencil in pencils)
        solver = choose_solver(n_rows, pencils[0].n_features, n_components, on_device=on_device)
    if solver == "reduced" and not keeps_rows:
        solver = "dense"
    if on_device and alone and solver == "reduced":
        # On the host, `solve_reduced` tries the same first.
        solution = solve_by_products(pencils[0], n_components)
        if solution is not None:
            yield solution
            return
    span: SpanProblem | None = None
    needs_range = any(pencil.needs_range for pencil in pencils)
    if keeps_rows and (on_device or (solver == "reduced" and (not alone or (needs_range and pencils[0].mirrored)))):
        span = SpanProblem.of(pencils, n_components)
    elif needs_range and (on_device or solver not in ("reduced", "lobpcg")):
        span = SpanProblem.of_range(pencils, n_components)
    if span is not None and not on_device:
        solver = "lanczos" if alone else "dense"
    problems = [pencil if span is None else span.inside(pencil) for pencil in pencils]
    family = RidgeFamily.of(problems) if len(pencils) >= FAMILY and solver in ("dense", "lanczos") else None
    before: Solution | None = None
    for pencil, problem in zip(pencils, problems, strict=True):
        if problem.is_difference and before is not None and solver != "lobpcg" and not on_device:
            solution = solve_shifted(problem, n_components, before)
        else:
            near = start if before is None else before.vectors
            solution = _solved(problem, n_components, solver, seed, near, family)
        before = solution
        if span is not None:
            if span.roots and pencil.a.is_nonnegative and (solution.solver == "root" or not solution.accurate):
                # The rows are kept: their roots have lost no digits by squaring.
                problem = span.inside(pencil, by_roots=True)
                solution = solve_root(problem, n_components)
            solution = span.lifted(pencil, problem, solution)
        yield solution


def _solved(
    pencil: Pencil,
    n_components: int,
    solver: str,
    seed: int,
    start: Float | None,
    family: RidgeFamily | None = None,
) -> Solution:
    """Solve one pencil with a given solver, or by roots if B is singular. A difference must not be singular."""
    n_rows, on_device = pencil.a.n_rows + pencil.b.n_rows, pencil.on_device
    wide = n_rows < pencil.n_features and not on_device
    if on_device and solver != "root":
        solver = "dense"
    try:
        if family is not None:
            return family.solve(pencil, n_components)
        if solver == "dense":
            return solve_dense(pencil, n_components)
        if solver == "lanczos":
            return solve_lanczos(pencil, n_components, seed)
        if solver == "reduced":
            return solve_reduced(pencil, n_components)
        if solver == "lobpcg":
            return solve_lobpcg(pencil, n_components, seed, start)
    except NotDefiniteError:
        size = min(n_rows, pencil.n_features)
        if size > FORMED_SIZE and not on_device:
            raise InvalidValueError(
                "the {dataset} covariance is singular, and {size} rows and columns are more than the {limit} up to "
                "which such a problem is solved",
                dataset="target" if pencil.mirrored else "background",
                limit=FORMED_SIZE,
                advice="Give fewer columns." if pencil.mirrored else "Use shrinkage, for example {p.shrinkage:auto}.",
                size=size,
            ) from None
    if pencil.mirrored and pencil.needs_range:
        span = (SpanProblem.of if wide and pencil.keeps_rows else SpanProblem.of_range)([pencil], n_components)
        if span is not None:
            inner = span.inside(pencil, by_roots=bool(span.roots))
            return span.lifted(pencil, inner, solve_root(inner, n_components))
    if not pencil.a.is_nonnegative:
        # A difference has no root. If it is too small for LOBPCG, its matrix can be formed.
        return solve_reduced(pencil, n_components) if wide else solve_dense(pencil, n_components)
    return solve_root(pencil, n_components)
