"""The record in which every test of components gives its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from standout._arrays import Float


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


def concluded(
    ratios: Sequence[float] | Float,
    p_values: Sequence[float] | Float,
    edges: Sequence[float] | Float,
    method: str,
    level: float,
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
    )
