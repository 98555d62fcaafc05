"""Do the means of the columns differ? Effect sizes and tests from sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from standout._arrays import Float

# Effects below this share of a standard deviation are not reported.
LEAST_EFFECT = 0.2


@dataclass(frozen=True, eq=False)
class MeanDifferences:
    """How far apart are the means of target and background in each column?

    Attributes
    ----------
    effect : ndarray of shape (n_features,)
        Difference of the means, target minus background, in units of the pooled standard deviation; 0 for a column
        that is constant in the target and in the backgrounds.
    p_value, q_value : ndarray of shape (n_features,)
        `p_value` is the p-value of Welch's t-test, which assumes independent rows. `q_value` is the p-value after a
        correction for the number of columns (Benjamini and Hochberg). With subjects, the number of subjects replaces
        the number of rows. This is conservative, because the mean of a subject varies less than a single row.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2, 100, 3))
    >>> X[:, 2] += 1
    >>> means = DiscriminativePCA(1).fit(X, background=Y).mean_differences_
    >>> means.effect.round(1), means.different()
    (array([-0.1, -0.1,  1.1]), array([2]))
    """

    effect: Float
    p_value: Float
    q_value: Float

    def different(self, level: float = 0.05, least: float = LEAST_EFFECT) -> npt.NDArray[np.intp]:
        """Return the columns whose means differ, the largest effect first."""
        found = np.flatnonzero((self.q_value <= level) & (np.abs(self.effect) >= least))
        return found[np.argsort(-np.abs(self.effect[found]), kind="stable")]


def mean_differences(
    means: Sequence[Float], variances: Sequence[Float], counts: Sequence[float], weights: Sequence[float]
) -> MeanDifferences:
    """Return the differences between the target's means and the weighted means of the backgrounds.

    Parameters
    ----------
    means, variances : sequence of ndarray of shape (n_features,)
        Means and variances of the columns of each dataset, the target first.
    counts : sequence of float
        Effective number of rows, or number of subjects, of each dataset.
    weights : sequence of float
        Weights of the backgrounds.
    """
    factors, squares = np.array([1.0, *(-weight for weight in weights)]), np.array(variances)
    step = factors @ np.array(means)
    spread = np.sqrt(0.5 * np.abs(factors) @ squares)
    effect = np.divide(step, spread, out=np.zeros_like(step), where=spread > 0.0)
    # Unbiased variances of the means, and the degrees of freedom of Welch and Satterthwaite.
    free = np.maximum(np.asarray(counts) - 1.0, 1.0)
    parts = factors[:, None] ** 2 * squares / free[:, None]
    error = parts.sum(axis=0)
    t = np.divide(step, np.sqrt(error), out=np.zeros_like(step), where=error > 0.0)
    fourth = (parts**2 / free[:, None]).sum(axis=0)
    degrees = np.divide(error**2, fourth, out=np.ones_like(error), where=fourth > 0.0)
    p_value = 2.0 * special.stdtr(degrees, -np.abs(t))
    return MeanDifferences(effect, p_value, stats.false_discovery_control(p_value))
