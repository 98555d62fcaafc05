"""The choice of a solver, and the function `solve` that calls all solvers, on the host and on devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from standout._arrays import Float
from standout._messages import InvalidValueError
from standout._xp import column_norms, eigh, is_foreign, largest, largest_entries, like, namespace, take, to_host
from standout.moments import Moments
from standout.pencil._direct import solve_dense, solve_root
from standout.pencil._iterative import FORMED_SIZE, solve_iterative
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, check_directions

# Number of columns up to which the dense solver is at least as fast as iterations, on the host and on a device.
DENSE_FEATURES, DEVICE_FEATURES = 1000, 2500
# Columns are scaled to a similar size if their standard deviations differ by more than this power of two.
MOST_UNITS = 10
# Variances beyond 2**SAFE_POWER are scaled, so that their products stay within range. The target is also scaled if its
# variance and the variance of the background differ by more than the factor 2**LOST_POWER. Otherwise the smaller
# variance would be lost by rounding when the variances are added.
SAFE_POWER, LOST_POWER = 200, 30
# Positive variances below this number are an error, because float64 stores such small numbers with fewer digits.
SMALLEST = 1e-306
# It is an error if the ratio of the variances of background and target is above this number, or below its inverse.
LARGEST_RATIO = 1e250


def choose_solver(n_features: int, n_components: int, *, only_applies: bool = False, on_device: bool = False) -> str:
    """Which solver fits a problem of this size?

    The first rule that applies is used:

    1. ``"iterative"`` for sparse rows with more than 16,384 columns: A and B are not formed as matrices, but multiplied
       with a few vectors at a time (LOBPCG).
    2. ``"dense"`` up to 1,000 columns (2,500 on a device), or if more than a tenth of all components is wanted: the
       matrices A and B are formed, and LAPACK finds the leading vectors.
    3. ``"iterative"`` for more columns: the matrices A and B are formed, B is factorised, and block Lanczos iterations
       find the leading vectors.

    If B is singular, a singular value decomposition of the roots of A and B is used instead.

    Parameters
    ----------
    n_features : int
    n_components : int
    only_applies : bool, default=False
        Whether the moments are sparse rows.
    on_device : bool, default=False
        Whether the data are arrays of another library than NumPy.

    Returns
    -------
    {"dense", "iterative"}

    Examples
    --------
    >>> from standout.pencil import choose_solver
    >>> choose_solver(500, 2), choose_solver(2_000, 2), choose_solver(2_000, 2, on_device=True)
    ('dense', 'iterative', 'dense')
    """
    if only_applies and n_features > FORMED_SIZE:
        return "iterative"
    few = n_features <= (DEVICE_FEATURES if on_device else DENSE_FEATURES)
    return "dense" if few or 10 * n_components > n_features else "iterative"


def solve(pencil: Pencil, n_components: int, *, solver: str = "auto", seed: int = 0) -> Solution:
    """What are the leading solutions of ``A u = λ B u``?

    Parameters
    ----------
    pencil : Pencil
    n_components : int
        Number of solutions.
    solver : {"auto", "dense", "iterative"}, default="auto"
        See `choose_solver`. For arrays of other libraries than NumPy, "auto" is always used, and the problem is solved
        on their device.
    seed : int, default=0
        Seed of the random vectors from which iterations start. Another seed changes the solution only by rounding.

    Returns
    -------
    Solution
        If the units of columns differ much, columns are scaled by powers of two before the problem is solved, which
        changes no digit. The solution is scaled back.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> from standout.pencil import Form, Pencil, solve
    >>> rng = np.random.default_rng(0)
    >>> target = gather(rng.normal(size=(2000, 3)) * [1, 3, 2])
    >>> solution = solve(Pencil(Form(3, ((1.0, target),)), Form(3, (), ridge=1.0)), 2)
    >>> solution.values.round(0), solution.solver
    (array([9., 4.]), 'dense')
    """
    if n_components > pencil.a.n_features:
        check_directions(n_components, pencil.a.n_features)
    factor, scale = _sizes(pencil)
    inner = pencil if factor == 1.0 else Pencil(pencil.a.scaled(factor), pencil.b)
    if scale is not None:
        inner = Pencil(inner.a.in_units(scale), inner.b.in_units(scale))
    found = _solved(inner, n_components, solver, seed)
    if scale is not None:
        xp, scale = namespace(found.vectors), like(scale, found.vectors)[:, None]
        vectors, patterns = found.vectors * scale, found.patterns / scale
        lengths = xp.where(xp.isinf(found.values), column_norms(vectors), xp.ones_like(found.values))
        factors = xp.where(largest_entries(vectors) < 0.0, -lengths, lengths)
        found = replace(found, vectors=vectors / factors, patterns=patterns * factors)
    return found if factor == 1.0 else replace(found, values=found.values / factor)


def _sizes(pencil: Pencil) -> tuple[float, Float | None]:
    """Return a factor that makes A and B similar in size, and factors that make all columns similar in size.

    The first factor multiplies A. It is 1 unless A and B differ so much in size that the smaller matrix could be lost
    by rounding; then it is a power of four. The factors of the columns are powers of two. They are None if the columns
    are already similar in size. Variances out of range are an error.
    """
    plain, b = pencil.b.is_identity, pencil.b
    added = pencil.a if pencil.a.is_nonnegative else pencil.a.added
    own = largest(added.diagonal) if added.terms else 1.0
    other = largest(b.diagonal) if b.terms else 1.0
    known = [size for size, form in ((own, added), (other, b)) if form.terms]
    if added is not pencil.a:
        known.append(largest(pencil.a.subtracted.diagonal))
    smallest, top = min((size for size in known if size > 0.0), default=1.0), max(known, default=0.0)
    if (
        not (np.all(np.isfinite(known)) and smallest >= SMALLEST and (plain or top / LARGEST_RATIO <= smallest))
        or top == 0.0
    ):
        _refuse(known, pencil)
    power = 2 * round((np.log2(own) - np.log2(other)) / 2) if min(own, other) > 0.0 else 0
    factor = 2.0**-power if abs(power) > (SAFE_POWER if plain else LOST_POWER) else 1.0
    if plain:
        return factor, None
    diagonal = factor * added.diagonal + b.diagonal
    sizes = np.asarray(to_host(diagonal))
    # Half of the binary exponent of each variance is the exponent of the standard deviation.
    powers = np.where(sizes > 0.0, np.frexp(np.where(sizes > 0.0, sizes, 1.0))[1] // 2, 0)
    varied = powers[sizes > 0.0]
    if not varied.size or (np.ptp(varied) <= MOST_UNITS and np.abs(varied).max() <= SAFE_POWER // 2):
        return factor, None
    return factor, like(np.ldexp(1.0, -powers), diagonal)


def _refuse(sizes: list[float], pencil: Pencil) -> None:
    """Raise an error for variances out of the range of double precision."""
    if not np.all(np.isfinite(sizes)):
        raise InvalidValueError(
            "the variances of the data are out of the range of double precision", advice="Rescale the data."
        )
    if max(sizes, default=0.0) == 0.0:
        if not pencil.a.has_ridge:
            check_directions(1, 0)
        return
    smallest = min(size for size in sizes if size > 0.0)
    if smallest < SMALLEST:
        problem = f"a dataset has a standard deviation of about {smallest**0.5:.1e}, whose square is too small"
        raise InvalidValueError(f"{problem} for double precision", advice="Rescale the data.")
    problem = (
        "the spreads of target and backgrounds differ so much that the ratio of their variances is out of the range "
    )
    raise InvalidValueError(f"{problem}of double precision", advice="Give all datasets in the same units.")


def _solved(pencil: Pencil, n_components: int, solver: str, seed: int) -> Solution:
    """Solve a pencil whose columns are of similar size."""
    parts, size = [part for form in (pencil.a, pencil.b) for _, part in form.terms], pencil.a.n_features
    on_device = is_foreign(parts[0].mean) if parts else False
    if (solver == "auto" or on_device) and size <= DENSE_FEATURES:
        solver = "dense"
    elif solver == "auto" or on_device:
        solver = choose_solver(size, n_components, only_applies=pencil.only_applies, on_device=on_device)
    try:
        if pencil.b.is_identity and not pencil.a.is_nonnegative:
            return _solve_difference(pencil, n_components, solver, seed)
        try:
            found = (
                solve_dense(pencil, n_components) if solver == "dense" else solve_iterative(pencil, n_components, seed)
            )
            if found.consistent or (solver == "iterative" and pencil.only_applies):
                return found
        except NotDefiniteError:
            if size > FORMED_SIZE and not on_device:
                problem = f"the background covariance is singular, and {size} columns are more than the {FORMED_SIZE} "
                advice = "Use shrinkage, for example shrinkage='auto'."
                raise InvalidValueError(f"{problem}up to which such a problem is solved", advice=advice) from None
        return solve_root(pencil, n_components)
    except Exception as error:
        # Each array library has its own class `LinAlgError`, so compare the name of the class.
        if "LinAlgError" not in type(error).__name__:
            raise
        problem = "the eigenproblem could not be solved: its matrices are singular to working precision"
        raise InvalidValueError(problem, advice="Use shrinkage, or leave out columns that repeat others.") from None


def _solve_difference(pencil: Pencil, n_components: int, solver: str, seed: int) -> Solution:
    """Return the solutions for a difference of variances, only along directions in which at least one dataset varies.

    Along directions in which no dataset varies, the difference is zero. If the last value found is not above zero, the
    problem is solved again without these directions.
    """
    try:
        iterative = solver == "iterative"
        found = solve_iterative(pencil, n_components, seed) if iterative else solve_dense(pencil, n_components)
    except NotDefiniteError:
        found = solve_dense(pencil, n_components)
    if float(found.values[-1]) > largest(found.rounding) * abs(float(found.values[0])) or pencil.only_applies:
        return found
    whole = Form(pencil.n_features, tuple((abs(weight), part) for weight, part in pencil.a.terms if weight))
    basis = _range(whole)
    if basis is None:
        return found
    check_directions(n_components, int(basis.shape[1]))
    terms = tuple((weight, part.mapped(basis)) for weight, part in pencil.a.terms)
    inside = Pencil(Form(basis.shape[1], terms), Form(basis.shape[1], (), 1.0))
    found = solve_dense(inside, n_components)
    vectors = basis @ found.vectors
    signs = namespace(vectors).where(largest_entries(vectors) < 0.0, -1.0, 1.0)
    vectors = vectors * signs
    return replace(found, vectors=vectors, patterns=1.0 * vectors, rank=int(basis.shape[1]))


def count_directions(moments: Sequence[Moments]) -> int:
    """Return the number of directions in which at least one dataset varies, up to rounding.

    With more than `FORMED_SIZE` columns, this number is not computed, and the number of columns is returned instead.
    """
    size = int(moments[0].mean.shape[0])
    basis = None if size > FORMED_SIZE else _range(Form(size, tuple((1.0, part) for part in moments)))
    return size if basis is None else int(basis.shape[1])


def _range(form: Form) -> Float | None:
    """Return an orthonormal basis of the directions in which a form is not zero.

    Return None if the form is zero in no direction.
    """
    variances = form.diagonal
    xp = namespace(variances)
    scale = xp.sqrt(variances)
    safe = xp.where(scale > 0.0, scale, 1.0)
    values, vectors = eigh(form.matrix() / (safe[:, None] * safe))
    present = values > 10.0 * form.n_features * form.precision * values[-1]
    if bool(xp.all(present)):
        return None
    basis: Float = xp.linalg.qr(scale[:, None] * take(vectors, present, axis=1))[0]
    return basis
