"""Whether scores show more than one group, and which view shows groups that the backgrounds do not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
import numpy.typing as npt
from scipy import stats

from standout._arrays import Float, Rows, double
from standout._xp import cumulative_sum, like, namespace, take, take_per_column, to_host
from standout.moments import dealt_folds, project
from standout.selection._held_out import HeldOutPath, PathViews
from standout.sources import Source, drawn

# A view is taken to show groups where its p-value, times the number of views looked at, is below this.
LEVEL = 0.05
# How many standard errors it must be beyond the edge of two modes: one in twenty is by chance.
SURELY = 1.645
# Neither side of a split may have fewer than this share of the rows: a few far-off rows are not a group.
LEAST_SIDE = 0.05
# Rows whose scores are looked at, at most: more would not change the choice.
MOST_ROWS = 20_000
# Rows with less than this share of the typical weight are left out.
HARDLY_COUNTS = 0.25
# Share of the largest held-out log ratio that a view must keep.
KEPT = 0.5

# Of a Gaussian score, the best split into two explains this share of the variance, with this spread over sqrt(n).
ONE_GROUP = 2.0 / pi
ONE_GROUP_SPREAD = 2.0 * sqrt(2.0 / pi) * sqrt(1.0 - 3.0 / pi)
# Of two equal Gaussian groups two standard deviations apart, where a second mode begins, it explains this share.
TWO_MODES = float((2.0 * stats.norm.pdf(1.0) + 2.0 * stats.norm.cdf(1.0) - 1.0) ** 2 / 2.0)


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """Which of several views shows groups of the target that the backgrounds do not have.

    All numbers are those of rows that were not fitted: each row has the score that was found without its fold.

    Attributes
    ----------
    parameters : ndarray of shape (g,)
        The value of the parameter (shrinkage or ε) of each view, in order of growing regularisation.
    log_ratios : ndarray of shape (g,)
        Logarithm of the held-out ratio of the first component.
    split_shares : ndarray of shape (g,)
        Share of the target's first score's variance that the best split of its rows into two groups explains: about
        0.64 for one Gaussian group, 0.68 for two of equal size two standard deviations apart, 1 for two points. It is
        ``1 - 1/r`` with r the scatter ratio (`standout.metrics.scatter_ratio`) of that split.
    background_shares : ndarray of shape (g,)
        The same of the backgrounds: the largest of them.
    standard_errors : ndarray of shape (g,)
        Of the target's shares.
    view : int
        The view in which the target's share exceeds that of the backgrounds most, among the views that are at least as
        regularised as the one with the largest held-out ratio, and keep half of its logarithm.
    found : bool
        Whether the target surely has more than one group there: its share could not come from one Gaussian group, and
        exceeds, by its standard error, that of two groups which just have a mode each, and that of the backgrounds. If
        not, the value is chosen by the held-out ratio alone.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(300, 3)) * [10, 1, 1]
    >>> target = rng.normal(size=(300, 3)) * [10, 1, 1] + np.repeat([[0, 0, -4], [0, 0, 4]], 150, axis=0)
    >>> search = DiscriminativePCA(1, shrinkage="clusters").fit(target, background=background).group_search_
    >>> search.found, search.split_shares[search.view].round(1)
    (True, np.float64(0.9))
    """

    parameters: Float
    log_ratios: Float
    split_shares: Float
    background_shares: Float
    standard_errors: Float
    view: int
    found: bool


def search_groups(
    path: HeldOutPath, target: Float, backgrounds: Sequence[Float], allowed: npt.NDArray[np.bool_]
) -> GroupSearch:
    """Choose the view that shows groups of the target which the backgrounds do not have.

    This chooses a view. Whatever is flatter than a Gaussian passes for groups: an even spread or a gradient as well.

    Parameters
    ----------
    path : HeldOutPath
    target : ndarray of shape (n_rows, g)
        The first score of the target's rows in each view.
    backgrounds : sequence of ndarray of shape (n_rows, g)
        Those of each background.
    allowed : ndarray of bool
        The views that may be chosen.
    """
    shares, errors = split_share(target)
    errors = np.maximum(errors, ONE_GROUP_SPREAD / sqrt(target.shape[0]))
    against = np.max([np.zeros(len(shares)), *(split_share(scores)[0] for scores in backgrounds)], axis=0)
    best = path.log_ratios[path.best]
    keeps = path.log_ratios >= (KEPT * best if best > 0.0 else best)
    candidates = allowed & keeps & (np.arange(len(shares)) >= path.best)
    excess = _smooth(shares - np.maximum(against, ONE_GROUP))
    view = int(np.argmax(np.where(candidates, excess, -np.inf)))
    p_value = stats.norm.sf((shares[view] - ONE_GROUP - 1.0 / target.shape[0]) / errors[view])
    sure = shares[view] - SURELY * errors[view] >= max(TWO_MODES, against[view])
    found = bool(sure and p_value * candidates.sum() < LEVEL)
    return GroupSearch(path.parameters, path.log_ratios, shares, against, errors, view, found)


def _smooth(numbers: Float) -> Float:
    """Average each number with its neighbours: one lucky view among many is no reason to choose it."""
    padded = np.pad(numbers, 1, mode="edge")
    return 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]


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


def sampled_scores(
    views: PathViews,
    datasets: Sequence[Source],
    counts: Sequence[int],
    seed: int,
    project: Callable[[Rows, Float, Float], Float] = project,
) -> tuple[Float, list[Float]]:
    """Give the held-out first scores at each value, of all rows or of a random sample if there are many.

    A background that can be read only once is left out, and so are rows that hardly count.
    """
    scores = []
    for number, (dataset, count) in enumerate(zip(datasets, counts, strict=True)):
        if not dataset.again:
            continue
        # The same generator draws the same rows for the numbers and for the rows themselves.
        numbers = drawn(count, MOST_ROWS, np.random.default_rng(seed))
        batch = dataset.sample_batch(MOST_ROWS, np.random.default_rng(seed))
        dealt = dealt_folds(dataset.subjects, views.n_dealt)
        found = views.scores(batch.rows, numbers, number, project, dealt)
        if batch.weights is not None:
            # A few rows that hardly count could be taken for a group, or hide others by their distance.
            found = take(found, batch.weights >= HARDLY_COUNTS * np.median(batch.weights))
        scores.append(found)
    return scores[0], scores[1:]
