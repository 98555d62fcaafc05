"""The Tracy-Widom law of order 1: how the largest eigenvalue of pure chance fluctuates."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import linalg, optimize, special

from standout._arrays import Float

# Below the first the law has less than 1e-30 of its mass. Above the second the survival function, 1e-292 there, leaves
# the range of floating-point numbers, and is given as zero.
LEAST, MOST = -12.0, 100.0

# With 40 nodes the quadrature is exact to rounding; Ai(16) is below 1e-19.
N_NODES, REACH = 40, 16.0


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
    >>> from standout.selection._tracy_widom import survival
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
    >>> from standout.selection._tracy_widom import upper_quantile
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
