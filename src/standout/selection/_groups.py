"""Whether scores show more than one group, and the shrinkage or ridge ε at which they show groups most clearly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from scipy import stats

from standout import contrast
from standout._arrays import Float, Rows, double
from standout._xp import column_norms, concat, cumulative_sum, like, namespace, take_per_column, to_host
from standout.moments import Moments, project
from standout.pencil import Pencil, solve_path
from standout.selection._paths import SHRINKAGES
from standout.sources import Source

# A view is taken to show groups where its p-value, times the number of views looked at, is below this.
LEVEL = 0.05
# How many standard errors it must be beyond the edge of two modes: one in twenty is by chance.
SURELY = 1.645
# Neither side of a split may have fewer than this share of the rows: a few far-off rows are not a group.
LEAST_SIDE = 0.05
# Rows whose scores are looked at, at most: more would not change the choice.
MOST_ROWS = 50_000

# Of a Gaussian score, the best split into two explains this share of the variance, with this spread over sqrt(n).
ONE_GROUP = 2.0 / pi
ONE_GROUP_SPREAD = 2.0 * sqrt(2.0 / pi) * sqrt(1.0 - 3.0 / pi)
# Of two equal Gaussian groups two standard deviations apart, where a second mode begins, it explains this share.
TWO_MODES = float((2.0 * stats.norm.pdf(1.0) + 2.0 * stats.norm.cdf(1.0) - 1.0) ** 2 / 2.0)


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """How clearly each of several views shows more than one group.

    Attributes
    ----------
    parameters : ndarray of shape (g,)
        The value of the parameter (shrinkage or ε) of each view.
    split_shares : ndarray of shape (g,)
        Share of the first score's variance that the best split of its rows into two groups explains: about 0.64 for one
        Gaussian group, 0.68 for two of equal size two standard deviations apart, 1 for two points. It is ``1 - 1/r``
        with r the scatter ratio (`standout.metrics.scatter_ratio`) of that split.
    standard_errors : ndarray of shape (g,)
        Of each share.
    p_values : ndarray of shape (g,)
        Chance of a share as large for one Gaussian group, for each view by itself.
    chosen : int or None
        The view with the largest share; None where that is no sign of groups, nor of anything flatter than a Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(300, 3)) * [10, 1, 1]
    >>> target = rng.normal(size=(300, 3)) * [10, 1, 1] + np.repeat([[0, 0, -4], [0, 0, 4]], 150, axis=0)
    >>> search = DiscriminativePCA(1, shrinkage="clusters").fit(target, background=background).group_search_
    >>> search.chosen is None, search.split_shares.max().round(1)
    (False, np.float64(0.9))
    """

    parameters: Float
    split_shares: Float
    standard_errors: Float
    p_values: Float
    chosen: int | None

    @property
    def verdict(self) -> str:
        """What was found, in words."""
        best = int(np.argmax(self.split_shares))
        share, error = self.split_shares[best], self.standard_errors[best]
        # The share that would meet both conditions of `search_groups`, given this error.
        beyond_chance = stats.norm.isf(LEVEL / len(self.parameters)) - stats.norm.isf(self.p_values[best])
        needed = max(TWO_MODES + SURELY * error, share + beyond_chance * error)
        return (
            f"of {len(self.parameters)} views, the one at {self.parameters[best]:.3g} shows groups best; a split into "
            f"two explains {share:.3f} of its first score's variance, with a standard error of {error:.3f}. One "
            f"Gaussian group has {ONE_GROUP:.3f}, two groups with a mode each begin at {TWO_MODES:.3f}, and with this "
            f"error it takes {needed:.3f} to be sure of them"
        )


def search_groups(parameters: Float, scores: Float) -> GroupSearch:
    """Find the view whose first score shows more than one group most clearly.

    A view counts if its share could not come from one Gaussian group, by p-values times the number of views, and is
    more, by its own standard error, than that of two groups which just have a mode each. Single groups with heavy
    tails or a skew rarely pass: of exponential or half-normal scores, fewer than one dataset in ten. Whatever is
    flatter than a Gaussian does: groups, but an even spread or a gradient as well. So this chooses a view; that there
    are groups is for the eye to say.

    Parameters
    ----------
    parameters : ndarray of shape (g,)
    scores : ndarray of shape (n_rows, g)
        The first score of each view.
    """
    shares, errors = split_share(scores)
    n_rows = scores.shape[0]
    errors = np.maximum(errors, ONE_GROUP_SPREAD / sqrt(n_rows))
    p_values = stats.norm.sf((shares - ONE_GROUP - 1.0 / n_rows) / errors)
    best = int(np.argmax(shares))
    found = p_values[best] * len(shares) < LEVEL and shares[best] - SURELY * errors[best] >= TWO_MODES
    return GroupSearch(parameters, shares, errors, p_values, best if found else None)


def split_share(scores: Float) -> tuple[Float, Float]:
    """Give the share of each column's variance that the best split of its rows into two explains, and its error.

    Scores of another library are sorted and summed up where they lie; the two numbers of each column come to the host.
    """
    xp, n_rows = namespace(scores), scores.shape[0]
    ordered = xp.sort(scores, axis=0)
    lowest, highest = ordered[0, :], ordered[-1, :]
    # Scores that are equal but for rounding have no groups, whatever the rounding looks like.
    flat = highest - lowest <= 1e-12 * xp.maximum(abs(lowest), abs(highest))
    ordered -= xp.mean(ordered, axis=0)
    left = np.arange(1, n_rows)
    left = left[np.minimum(left, n_rows - left) >= LEAST_SIDE * n_rows]
    if not len(left):
        return np.zeros(scores.shape[1]), np.zeros(scores.shape[1])
    first, last = int(left[0]), int(left[-1])
    sums = cumulative_sum(ordered)[first - 1 : last, :]
    # With sums of centred scores S on one side of k rows and -S on the other, the means' variance is S² / (k (n - k)).
    between = sums**2 / like(left * (n_rows - left), sums)[:, None]
    split = xp.argmax(between, axis=0)
    total = xp.where(flat, 1.0, xp.mean(ordered**2, axis=0))
    shares = xp.where(flat, 0.0, take_per_column(between, split) / total)
    # To first order the share is a mean over the rows, of what each adds to it.
    sizes, sides = double(split) + float(first), take_per_column(sums, split)
    on_the_left = like(np.arange(n_rows), ordered)[:, None] < sizes
    means = xp.where(on_the_left, sides / sizes, -sides / (n_rows - sizes))
    added = (2.0 * ordered * means - means**2 - shares * ordered**2) / total
    return to_host(shares), to_host(xp.std(added, axis=0)) / sqrt(n_rows)


# --- along a path ----------------------------------------------------------------------------------------------------


def rows_to_look_at(dataset: Source, seed: int) -> Rows:
    """Choose the rows whose scores are looked at: all, or a random sample if there are many."""
    return dataset.sample(MOST_ROWS, np.random.default_rng(seed))


def search_shrinkage(
    dataset: Source, target: Moments, backgrounds: list[Moments], weights: Float, *, solver: str, seed: int
) -> GroupSearch:
    """Find the shrinkage at which the first score of the target shows groups most clearly.

    The filters of all shrinkages come from the moments; the target's rows are read once for all scores.
    """

    def pose(share: float) -> Pencil:
        return contrast.discriminative(target, backgrounds, weights, np.full(len(backgrounds), share))

    def scores(filters: Float) -> Float:
        return project(rows_to_look_at(dataset, seed), target.mean, filters)

    return search_path(SHRINKAGES, pose, scores, solver=solver, seed=seed)


def search_path(
    parameters: Float,
    pose: Callable[[float], Pencil],
    scores: Callable[[Float], Float],
    *,
    solver: str,
    seed: int,
) -> GroupSearch:
    """Find the value of a parameter at which the first score shows groups most clearly.

    `pose` gives the pencil at a value, `scores` the target's scores along the leading vectors of all values at once.
    """
    path = solve_path([pose(float(parameter)) for parameter in parameters], 1, solver=solver, seed=seed)
    filters = concat([solution.vectors[:, :1] for solution in path], axis=1)
    # Filters of very different length would lose digits in nothing but the scores of the longest.
    filters /= column_norms(filters)
    return search_groups(parameters, scores(filters))
