"""The record of every test of components, and the test by formula: how large a ratio chance makes of Gaussian rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

import numpy as np
from scipy import linalg, optimize, special

from standout import contrast
from standout._arrays import Float, product
from standout._messages import InvalidTypeError, InvalidValueError
from standout._params import check_n_components
from standout._xp import column_products, namespace, to_host
from standout.moments import Moments
from standout.pencil import Form, Solution, solve

# If the number of ratios is not given and all so far are significant, ask for this many times more.
GROWTH = 4

# The Tracy-Widom law has less than 1e-30 of its mass below the first number. Above the second, the survival function
# (1e-292 there) leaves the range of floating-point numbers, and is given as zero.
LEAST, MOST = -12.0, 100.0

# With 40 nodes the quadrature is exact to rounding; Ai(16) is below 1e-19.
N_NODES, REACH = 40, 16.0


@dataclass(frozen=True, eq=False)
class ComponentTest:
    """How many components are more than chance, and how sure that is.

    Attributes
    ----------
    ratios : ndarray of shape (k,)
        Ratio of the target's to the backgrounds' variance along each tested component, in descending order.
    p_values : ndarray of shape (k,)
        Chance of a ratio at least as large where nothing is left to be found. Never smaller than the one before: a
        component counts only if all larger ones do.
    edges : ndarray of shape (k,)
        The ratio beyond which each component is significant at `level`: the largest that chance explains.
    n_significant : int
        Number of leading components with a p-value of at most `level`.
    method : {"analytic", "permutation"}
    level : float
    n_permutations : int
        Number of reshufflings that were made, over all components; 0 for the analytic test.
    scale : float or None
        If the target varies more than the backgrounds in every direction: the median of all ratios. Then the test has
        asked which directions vary even more than that. None otherwise.
    unit : {"rows", "subjects", "blocks"}
        What was taken to be independent: rows, or subjects, or blocks of neighbouring rows.
    n_made : tuple of int
        Number of reshufflings behind each p-value; empty for the analytic test.
    n_ways : int or None
        Number of ways to deal the subjects to the datasets, if each of them was made once.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection import component_test
    >>> rng = np.random.default_rng(0)
    >>> test = component_test(rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(400, 5)))
    >>> test.n_significant, test.method, bool(test.ratios[0] > test.edges[0])
    (1, 'analytic', True)
    """

    ratios: Float
    p_values: Float
    edges: Float
    n_significant: int
    method: str
    level: float
    n_permutations: int = 0
    scale: float | None = None
    unit: str = "rows"
    n_made: tuple[int, ...] = ()
    n_ways: int | None = None


def concluded(
    ratios: Sequence[float] | Float,
    p_values: Sequence[float] | Float,
    edges: Sequence[float] | Float,
    method: str,
    level: float,
    *,
    n_permutations: int = 0,
    scale: float | None = None,
    unit: str = "rows",
    n_made: Sequence[int] = (),
    n_ways: int | None = None,
) -> ComponentTest:
    """Make the record from what was found for one component after the other."""
    monotone = np.maximum.accumulate(np.asarray(p_values, dtype=np.float64))
    return ComponentTest(
        ratios=np.asarray(ratios, dtype=np.float64),
        p_values=monotone,
        edges=np.asarray(edges, dtype=np.float64),
        n_significant=int(np.sum(monotone <= level)),
        method=method,
        level=level,
        n_permutations=n_permutations,
        scale=scale,
        unit=unit,
        n_made=tuple(n_made),
        n_ways=n_ways,
    )


def reject_singular_background() -> NoReturn:
    """Refuse to test infinite ratios."""
    raise InvalidValueError(
        "the background covariance is singular, with too few rows or with constant or dependent columns: there are "
        "ratios that are infinite or have no meaning",
        advice="Drop such columns, or use the permutation test with shrinkage, for example {p.shrinkage:auto}.",
    )


# --- the test by formula ---------------------------------------------------------------------------------------------


def analytic_test(
    target: Moments,
    backgrounds: Sequence[Moments],
    weights: Float,
    shares: Float | None = None,
    *,
    n_components: int | None = None,
    level: float = 0.05,
    scale: float | None = None,
) -> ComponentTest:
    """How many components of these moments are more than chance, if the rows are Gaussian?

    With shrinkage, the components come from the shrunken backgrounds. What is tested is the smallest plain ratio in the
    span of the first k of them. It is at most the k-th largest plain ratio, so the test is conservative, and it is a
    test of the fitted components.

    Parameters
    ----------
    target : Moments
    backgrounds : sequence of Moments
    weights : ndarray of shape (n_backgrounds,)
        Non-negative, with sum 1.
    shares : ndarray of shape (n_backgrounds,), default=None
        Shrinkage of each background; None means none.
    n_components : int or None, default=None
        How many to test; None means until the first that is not significant.
    level : float, default=0.05
    scale : float or None, default=None
        Variance by which the target is divided first, if it is larger in all directions.

    Returns
    -------
    ComponentTest

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> from standout.selection._analytic import analytic_test
    >>> rng = np.random.default_rng(0)
    >>> target, background = gather(rng.normal(size=(200, 5)) * [1, 1, 1, 1, 3]), gather(rng.normal(size=(300, 5)))
    >>> analytic_test(target, [background], np.ones(1)).n_significant
    1
    """
    if not all(part.exact for part in (target, *backgrounds)):
        raise InvalidTypeError(
            "private sums are not tested: the formula knows of chance among rows, and not of the noise in the sums",
            advice="Compare the variance along a component with the noise.",
        )
    # Rows of unequal weights are worth as many of equal weights as Kish counts.
    n_features, n_target = target.n_features, target.effective_count - 1
    used = weights > 0.0
    counts = np.array([background.effective_count for background in backgrounds], dtype=np.float64)[used]
    degrees = int(np.sum(counts - 1.0))
    if degrees <= n_features:
        raise InvalidValueError(
            "the backgrounds have {degrees} degrees of freedom (rows less one for each; with weights the effective "
            "number of rows), but the analytic test needs more than the number of features, {limit}",
            degrees=degrees,
            limit=n_features,
            advice="Give more background rows, or use the permutation test with {p.shrinkage:auto}.",
        )
    limit = min(n_features, target.count - 1)
    wanted = check_n_components(1 if n_components is None else n_components, n_features, limit)
    nothing = np.zeros(len(backgrounds))
    plain = contrast.discriminative(target, backgrounds, weights, nothing)
    problem = plain if shares is None else contrast.discriminative(target, backgrounds, weights, shares)
    scales = weights[used] * target.effective_count / counts
    quantile = upper_quantile(level)
    p_values: list[float] = []
    edges: list[float] = []
    while True:
        solution = solve(problem, wanted)
        if solution.n_absent > 0:
            reject_singular_background()
        ratios = to_host(solution.values) if shares is None else _plain_ratios(solution, plain.b)
        # Directions that no dataset has, as of equal or constant columns, are no part of the problem.
        n_features = solution.rank or n_features
        limit = min(limit, n_features) if n_components is None else wanted
        for k in range(len(p_values), wanted):
            # With k real components of ever larger ratio, the next ratios become those of a target with k fewer columns
            # and k fewer rows: the k columns' part in the others is regressed away. Smaller ratios of the real ones
            # make the next smaller as well: given the backgrounds, every ratio grows with the target's covariance. So
            # the limit is the worst case, and the test of the (k+1)-th holds its level whatever the first k are.
            centre, spread = chance_law(n_features - k, n_target - k, counts - 1.0, scales)
            ratio = float(ratios[k]) / (scale or 1.0)
            p_values.append(survival((np.log(ratio) - centre) / spread) if ratio > 0.0 else 1.0)
            edges.append(float(np.exp(centre + spread * quantile)) * (scale or 1.0))
            if n_components is None and p_values[-1] > level:
                limit = k + 1
                break
        if len(p_values) == limit:
            return concluded(ratios[:limit], p_values, edges, "analytic", level, scale=scale)
        wanted = min(GROWTH * wanted, limit)


def _plain_ratios(solution: Solution, plain: Form) -> Float:
    """Give, for each k, the smallest ratio to the plain form in the span of the first k vectors."""
    target = column_products(solution.vectors, solution.patterns) * solution.values
    xp = namespace(target)
    lengths = xp.sqrt(xp.clip(target, float(np.finfo(np.float64).tiny), None))
    gram = product(solution.vectors.T, plain.apply(solution.vectors)) / (lengths[:, None] * lengths)
    largest = [float(xp.linalg.eigvalsh(gram[:k, :k])[-1]) for k in range(1, gram.shape[0] + 1)]
    target = to_host(target)
    with np.errstate(divide="ignore"):
        return np.where(target > 0.0, 1.0 / np.maximum(largest, 0.0), 0.0)


def chance_law(n_features: int, n_target: float, degrees: Float, scales: Float) -> tuple[float, float]:
    """Where does the largest root of ``S u = λ Σ aₖ Sₖ u`` lie, if all scatters come from one Gaussian covariance?

    ``(log λ - centre) / spread`` then follows the Tracy-Widom law of order 1, to second order in the number of columns.
    For one background, or weights in proportion to rows, these are the centre and spread of Johnstone (2008).

    Parameters
    ----------
    n_features : int
    n_target : float
        Columns, and degrees of freedom (rows less one) of the target's scatter S.
    degrees, scales : ndarray of shape (n_backgrounds,)
        Degrees of freedom of the backgrounds' scatters, more than `n_features` together, and their factors a.

    Returns
    -------
    centre, spread : float

    Notes
    -----
    For λ beyond all roots, ``λ Σ aₖ Sₖ - S`` is positive definite, and a sum of independent terms of rank one. The
    trace x of its inverse then solves ``p/x + n/(1 - x) = Σ νₖ bₖ / (1 + bₖ x)`` with ``bₖ = λ aₖ``, up to fluctuations
    that vanish. With ``y = λ x`` and ``R(y) = Σ νₖ aₖ y / (1 + aₖ y)`` this reads ``λ = y (n + R - p) / (R - p)``. The
    roots end where this λ is smallest. Its curvature there says how their density goes to zero, like a square root, and
    that is the scale of the fluctuations. With p - 1/2, n - 1/2 and Σ νₖ - 1/2 for p, n and Σ νₖ the result for one
    background is Johnstone's formula, his correction of second order included.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection._analytic import chance_law
    >>> centre, spread = chance_law(20, 300, np.array([200.0]), np.array([300 / 200]))
    >>> round(float(np.exp(centre)), 3), round(spread, 4)
    (2.395, 0.0629)
    """
    p, n = n_features - 0.5, n_target - 0.5
    freedom = degrees * (1.0 - 0.5 / np.sum(degrees))

    def parts(log_y: float) -> tuple[float, float, float]:
        """R and its first two derivatives by log y."""
        shares = special.expit(log_y + np.log(scales))
        slopes = freedom * shares * (1.0 - shares)
        return float(np.sum(freedom * shares)), float(np.sum(slopes)), float(np.sum(slopes * (1.0 - 2.0 * shares)))

    def slope(log_y: float) -> float:
        """The derivative of log λ by log y, times (R - p)(n + R - p). It grows with y where R > p: one root."""
        r, first, _ = parts(log_y)
        return (r - p) * (n + r - p) - n * first

    far = 40.0  # exp(-40) is nothing beside any number of rows
    lowest, highest = -np.log(np.max(scales)) - far, -np.log(np.min(scales)) + far
    lowest = optimize.brentq(lambda log_y: parts(log_y)[0] - p, lowest, highest)
    log_y = optimize.brentq(slope, lowest, highest)
    r, first, second = parts(log_y)
    beyond, whole = r - p, n + r - p
    centre = log_y + np.log(whole / beyond)
    curvature = second / whole - (first / whole) ** 2 - second / beyond + (first / beyond) ** 2
    return float(centre), float(np.cbrt(curvature / (2.0 * first**2)))


# --- the Tracy-Widom law of order 1: how the largest eigenvalue of pure chance fluctuates ----------------------------


def survival(s: float) -> float:
    """What is the chance that a Tracy-Widom variable of order 1 exceeds this number?

    One minus the Fredholm determinant ``det(I - B)`` with the kernel ``B(x, y) = Ai(x + y + s)`` on the positive
    half-line (Ferrari and Spohn, 2005), by Gauss-Legendre quadrature (Bornemann, 2010). The relative error is about
    1e-13 down to the smallest numbers that there are, because the determinant is not subtracted from one: its
    logarithm is summed from the eigenvalues of the kernel.

    Parameters
    ----------
    s : float

    Returns
    -------
    float
        In [0, 1]; 0 from 100 on.

    Examples
    --------
    >>> from standout.selection._analytic import survival
    >>> round(survival(0.97932), 5)
    0.05
    """
    if s <= LEAST:
        return 1.0
    if s >= MOST:
        return 0.0
    # The kernel decays like exp(-x sqrt(s)): a fixed reach would waste its nodes where there is nothing left.
    reach = REACH - s if s < 0.0 else REACH / np.sqrt(max(s, 1.0))
    nodes, weights = _quadrature()
    x, root = reach * nodes, np.sqrt(reach * weights)
    kernel = special.airy(np.add.outer(x, x) + s)[0] * np.multiply.outer(root, root)
    eigenvalues = linalg.eigvalsh(kernel, check_finite=False)
    # Far to the left the largest eigenvalue is one up to rounding.
    largest = 1.0 - np.finfo(np.float64).eps
    chance = -np.expm1(np.sum(np.log1p(-np.minimum(eigenvalues, largest))))
    return float(np.clip(chance, 0.0, 1.0))


@lru_cache(maxsize=64)
def upper_quantile(level: float) -> float:
    """Which number does a Tracy-Widom variable of order 1 exceed with this chance?

    Parameters
    ----------
    level : float
        Strictly between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from standout.selection._analytic import upper_quantile
    >>> [round(upper_quantile(level), 4) for level in (0.1, 0.05, 0.01)]
    [0.4501, 0.9793, 2.0234]
    """
    # On the scale of logarithms the function is almost straight, and the root quickly found.
    root: float = optimize.brentq(lambda s: np.log(survival(s) / level), LEAST, MOST - 1.0)
    return root


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Float, Float]:
    """Gauss-Legendre nodes and weights on the unit interval."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0
