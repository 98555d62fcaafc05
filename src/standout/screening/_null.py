"""Shift and spread of a target in the coordinates of one half of the controls, and their null distribution.

One half of the controls gives the whitening. Null draws come from the other half, because the rows of a target were not
used for the whitening either. The statistics are divided by scales that remove most of their dependence on the number
of rows. The rest of the dependence is interpolated over a grid of sizes.

*Units* are independent under the null hypothesis: rows, or whole subjects. Null draws are always sets of single rows.
If units are subjects, the scale of a target uses an effective number of rows. This number depends on the intraclass
correlation of the control subjects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, ndimage
from scipy.stats import gamma, pearson3, skew

from standout._messages import InvalidValueError, warn_user
from standout.selection._units import sums_of

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Tests clip scores at this many standard deviations, so that a few outlying rows do not decide a test.
CLIP = 3.0
SMALLEST_P = 1e-300
# Shift and spread, each with and without whitening.
N_TESTED = 4
# A draw of the spread takes longer than a draw of the shift, so only every second draw has a spread.
SPREAD_EVERY = 2
POWER_STEPS = 6
TINY = 1e-12
# Normal score of a power of 80 %.
POWER_SCORE = 0.8416
# Each half of the controls needs rows for a covariance and for null draws.
LEAST_CONTROLS = 20
# With fewer than LEAST_GROUPS control groups, rows are treated as independent. With fewer than ENOUGH_GROUPS, a warning
# is shown.
LEAST_GROUPS, ENOUGH_GROUPS = 4, 8
# A group needs this many control rows for its own control mean.
LEAST_IN_GROUP = 5
# Minimum number of rows for a spread: each half needs two rows for a variance.
LEAST_SPREAD = 4


# --- statistics ------------------------------------------------------------------------------------------------------


def clipped(rows: Array, limit: float) -> Array:
    """Return the rows. Rows that are longer than the limit are shortened to this length."""
    return rows * np.minimum(1, limit / np.maximum(np.linalg.norm(rows, axis=1), TINY))[:, None]


def limit_of(rows: Array) -> float:
    """Return the length beyond which a row is outlying, in standard deviations of a column."""
    return 1.5 * float(np.median(np.linalg.norm(rows, axis=1))) + 2


class Units:
    """The weighted mean of rows or subjects, and the variance of a unit of weight 1, summed over all columns."""

    def __init__(self, rows: Array, codes: Codes, correlation: float) -> None:
        counts = np.bincount(codes).astype(float)
        self.n = len(counts)
        means = rows if self.n == len(rows) else sums_of(rows, codes, self.n) / counts[:, None]
        # Rows of one subject depend on each other, so each of them has a smaller weight.
        weights = counts / (1 + (counts - 1) * correlation)
        self.total = float(weights.sum())
        self.mean = weights @ means / self.total
        self.variance = float((weights @ (means - self.mean) ** 2).sum()) / max(self.n - 1, 1)

    def distance(self, center: Array | float, noise: float) -> float:
        """Return the unbiased squared distance of mean and center. `noise` is the squared error of the center."""
        return float(((self.mean - center) ** 2).sum()) - self.variance / self.total - noise


def intraclass(rows: Array, codes: Codes) -> float:
    """Return the intraclass correlation of subjects, over all columns."""
    counts = np.bincount(codes).astype(float)
    means = sums_of(rows, codes, len(counts)) / counts[:, None]
    between = float(counts @ ((means - rows.mean(0)) ** 2).sum(1)) / max(len(counts) - 1, 1)
    within = float(((rows - means[codes]) ** 2).sum()) / max(len(rows) - len(counts), 1)
    typical = (len(rows) - (counts**2).sum() / len(rows)) / max(len(counts) - 1, 1)
    return float(np.clip((between - within) / max(between + (typical - 1) * within, TINY), 0.0, 1.0))


def leading(rows: Array) -> Array:
    """Return a unit vector along which the rows have a large second moment, by power iterations.

    Draws and targets get the same number of iterations, so that the tests are valid even without convergence. The
    iterations converge if the second largest moment is much smaller than the largest, as in a label that stands out.
    """
    squares = np.einsum("ij,ij->i", rows, rows)
    vector = rows[squares.argmax()]
    for _ in range(POWER_STEPS):
        vector = (rows @ vector) @ rows
        vector /= max(float(squares.sum()), TINY)
    # The division by the sum of squares makes eigenvalues at most 1. The vector gets small, but does not underflow.
    return vector / max(float(np.sqrt(vector @ vector)), 1e-100)


def leading_vectors(parts: Sequence[Array]) -> Array:
    """Return a leading vector of the rows of each part about their mean."""
    return np.stack([leading(part - part.mean(0)) for part in parts])


def halves(codes: Codes, rng: np.random.Generator) -> tuple[Mask, Mask]:
    """Split rows into two random halves; rows of one unit stay together."""
    order = rng.permutation(int(codes.max()) + 1)
    first = (order < len(order) // 2)[codes]
    return first, ~first


def spread_of(scores: Array, held: Mask, known: Array, others: Mask, clip: float = CLIP) -> Array:
    """Return the variance of held scores divided by the variance of reference scores, averaged over halves.

    The mask `held` chooses the held scores from `scores`. The mask `others` chooses the reference scores from `known`.
    The second last axis has a vector for each half, which was found in the opposite half. Scores beyond `clip` standard
    deviations of the reference scores are set to this limit.
    """
    deviations, limit = _deviations(known, others), np.inf
    if clip < np.inf:
        limit = clip * np.sqrt((deviations**2).sum(-1, keepdims=True) / others.sum(-1, keepdims=True))
    parts = [(_deviations(scores, held), held), (deviations, others)]
    own, usual = [(np.clip(values, -limit, limit) ** 2).sum(-1) / (mask.sum(-1) - 1) for values, mask in parts]
    return np.maximum((own / np.maximum(usual, TINY)).mean(-1), TINY)


def _deviations(scores: Array, mask: Mask) -> Array:
    """Return chosen scores minus their mean, and 0 for all other scores."""
    return np.where(mask, scores - (scores * mask).sum(-1, keepdims=True) / mask.sum(-1, keepdims=True), 0)


def scaled_spread(spread: Any, n: float, m: float) -> Any:
    """Return the log spread of `n` against `m` effective rows, without its bias for normal scores, over its scale."""
    return (np.log(spread) + 1 / n - 1 / m) / np.sqrt(1 / n + 1 / m)


# --- null distribution -----------------------------------------------------------------------------------------------


class Null:
    """The null distribution of each scaled statistic at each size, and of the sum of their negative log p-values.

    Each distribution is a Pearson type III law (a shifted gamma law) with the moments of all draws. The draws of a size
    have the shape (n_draws, statistics). `moments` has the shape (n_sizes, statistics + 1, 3): mean, standard deviation
    and skewness of each statistic, and of the sum in the last place.
    """

    def __init__(self, sizes: Codes, sides: list[list[Array]]) -> None:
        joint = [np.concatenate(parts) for parts in zip(*sides, strict=True)]
        self.sizes = sizes.astype(float)
        self.moments = _smooth(np.array([[moments_of(own) for own in some.T] for some in joint]))
        logarithms = [self.logarithms(int(n), some[::SPREAD_EVERY])[1] for n, some in zip(sizes, joint, strict=True)]
        sums = _smooth(np.array([[moments_of_sum(some)] for some in logarithms]))
        self.moments = np.concatenate([self.moments, sums], axis=1)

    def at(self, size: int) -> Array:
        """Return mean, standard deviation and skewness of the statistics, interpolated between sizes."""
        place = float(np.interp(np.log(size), np.log(self.sizes), np.arange(len(self.sizes))))
        low = int(place)
        high = min(low + 1, len(self.sizes) - 1)
        return self.moments[low] + (place - low) * (self.moments[high] - self.moments[low])

    def logarithms(self, size: int, scaled: Array) -> tuple[Array, Array]:
        """Return statistics in null standard deviations, and the negative logarithms of their p-values."""
        mean, deviation, skewness = self.at(size)[:N_TESTED].T
        z = (scaled - mean) / deviation
        logarithms = -np.log(np.maximum(pearson3.sf(z, skewness), SMALLEST_P))
        # A statistic that needs more rows is NaN. Set its logarithm to 1, the mean of -log(p) without an effect.
        return z, np.nan_to_num(logarithms, nan=1.0)

    def test(self, size: int, scaled: Array) -> tuple[Array, float]:
        """Return the statistics in null standard deviations, and one p-value that combines them by Fisher's sum."""
        z, logarithms = self.logarithms(size, scaled)
        mean, deviation, skewness = self.at(size)[-1]
        total = logarithms.sum()
        # Brown's gamma law fits the centre of the null distribution. Its tail is too short if some pairs of statistics
        # are more dependent than others. In the tail, use the larger of two p-values.
        p_value = gamma.sf(total, (mean / deviation) ** 2, scale=deviation**2 / mean)
        if total > mean + deviation:
            p_value = max(p_value, pearson3.sf((total - mean) / deviation, skewness))
        return z, max(float(p_value), SMALLEST_P)

    def detectable(self, size: int, scale: float, noise: float, level: float) -> float:
        """Return the smallest shift that is found with a power of 80 %."""
        mean, deviation, skewness = self.at(size)[0]
        limit = scale * (mean + deviation * pearson3.isf(level, skewness))
        # A shift d adds 4 * d * noise * scale to its variance. Solve d - limit = POWER_SCORE * sqrt(variance) for d.
        middle = limit + 2 * POWER_SCORE**2 * noise * scale
        return float(middle + np.sqrt(max(middle**2 - limit**2 + (POWER_SCORE * deviation * scale) ** 2, 0)))


def moments_of(draws: Array) -> Array:
    """Return mean, standard deviation and skewness of the draws of one statistic."""
    known = draws[np.isfinite(draws)] if np.isfinite(draws).any() else draws
    # Limit the skewness: a square of a normal variable has 2.83, and sums of squares are not skewed to the left.
    return np.array([known.mean(), known.std(ddof=1) + TINY, np.clip(skew(known), 0, 2.83)])


def moments_of_sum(draws: Array) -> Array:
    """Return mean, standard deviation and skewness of the sum of logarithms, from draws of shape (n_draws, statistics).

    Negative logarithms of p-values have exponential laws. In the model for the skewness, each logarithm is half the
    squared length of a pair of normal variables. The correlation between the normal variables of two logarithms is the
    root of the covariance of these logarithms. The sum then equals a sum of independent exponential variables, weighted
    by the eigenvalues of the correlation matrix. The skewness of this model has a smaller error than that of the draws.
    """
    values = linalg.eigvalsh(np.sqrt(np.maximum(np.cov(draws.T), 0)))
    sums = draws.sum(1)
    return np.array([sums.mean(), sums.std(ddof=1), 2 * (values**3).sum() / (values**2).sum() ** 1.5])


def _smooth(found: Array) -> Array:
    """Return moments that are smoothed over neighbouring sizes, with weights 1/4, 1/2, 1/4."""
    smooth = ndimage.convolve1d(found, [0.25, 0.5, 0.25], axis=0, mode="nearest")
    # Moments of the spread are NaN at the smallest sizes. Do not smooth moments next to such a size.
    return np.where(np.isfinite(smooth), smooth, found)


def combined(p_values: Array) -> float:
    """Return the Cauchy combination of p-values, which may depend on each other."""
    p = np.minimum(p_values, 0.99)
    # For small p, tan((1/2 - p) pi) is 1 / (p pi), without cancellation.
    total = float(np.mean(np.where(p < 1e-8, 1 / (p * np.pi), np.tan((0.5 - p) * np.pi))))
    return max(1 / (total * np.pi) if total > 1e7 else 0.5 - np.arctan(total) / np.pi, SMALLEST_P)


# --- one direction of the cross-fit ----------------------------------------------------------------------------------


class Space:
    """Control rows in some coordinates. Targets are compared with these rows.

    Parameters
    ----------
    raw, others : arrays, with the mean of all controls subtracted
        The reference rows, and the other half of the controls.
    subjects : number of the independent unit of each reference row
    within : whether every row is compared with the controls of its group
    """

    def __init__(self, raw: Array, others: Array, subjects: Codes, within: bool) -> None:
        self.raw, self.limit = raw, limit_of(raw)
        self.reference = clipped(raw, self.limit)
        # The whitening was fitted to `others`, so these rows are shorter and need a separate limit.
        rest = clipped(others, limit_of(others))
        self.center = (self.reference.sum(0) + rest.sum(0)) / (len(raw) + len(rest))
        self.correlation = intraclass(self.reference, subjects)
        self.raw_variance = Units(raw, subjects, self.correlation).variance
        self.variance = Units(self.reference, subjects, self.correlation).variance
        # Means of groups are computed from unclipped rows, so their errors need the variance of unclipped rows.
        self.control_variance = self.raw_variance if within else self.variance

    def effective(self, counts: Codes) -> float:
        """Return the effective number of rows of subjects that have `counts` rows."""
        return float((counts / (1 + np.maximum(counts - 1, 0) * self.correlation)).sum())

    def scaled_shift(self, near: Array, n_controls: float, codes: Codes) -> float:
        """Return the unbiased squared distance of the means of clipped rows and controls, divided by its scale."""
        units, noise = Units(near, codes, self.correlation), self.control_variance / n_controls
        # The shift leaves out pairs of rows of one subject. In null draws, every row is a separate unit, so no pairs
        # are left out. Adjust the scale for this difference.
        shift = units.distance(self.center, noise) * np.sqrt((1 - 1 / units.n) / (1 - 1 / len(near)))
        return float(shift / (1 / units.total + noise / max(self.variance, TINY)))

    def drawn_shifts(self, drawn: Mask) -> Array:
        """Return the scaled shift of each drawn set of reference rows against the remaining rows."""
        chosen, squares = np.stack([drawn, ~drawn]), (self.reference**2).sum(1)
        n = chosen.sum(-1)
        means = chosen @ self.reference / n[..., None]
        variances = (chosen @ squares - n * (means**2).sum(-1)) / np.maximum(n - 1, 1)
        noise, scale = (variances / n).sum(0), (1 / n).sum(0)
        return np.asarray((((means[0] - means[1]) ** 2).sum(1) - noise) / scale)

    def drawn_spreads(self, order: Codes, size: int) -> Array:
        """Return the scaled spread of the first `size` rows of each order against the remaining rows."""
        half, m, ranks = size // 2, len(self.reference), np.argsort(order, axis=1)[:, None]
        # Two ways to split a set: in the middle, and into even and odd places.
        places = [slice(half), slice(half, size), slice(0, size, 2), slice(1, size, 2)]
        parts = [self.reference[one[place]] for one in order for place in places]
        scores = (leading_vectors(parts) @ self.reference.T).reshape(len(order), len(places), m)
        drawn, low, even = ranks < size, ranks < half, ranks % 2 == 0
        held = np.concatenate([drawn & ~low, low, drawn & ~even, drawn & even], axis=1)
        return np.asarray(scaled_spread(spread_of(scores, held, scores, ~drawn), size, m - size))


class Side:
    """Whitening by one half of the controls, with the other half as the reference.

    Parameters
    ----------
    fitted, held : arrays, with the mean of all controls subtracted
    subjects : number of the independent unit of each held row
    within : whether every row is compared with the controls of its group
    shrinkage : float
    counts : number of rows of each control group, if groups are the units
    """

    def __init__(
        self, fitted: Array, held: Array, subjects: Codes, within: bool, shrinkage: float, counts: Codes | None = None
    ) -> None:
        # Decompose the covariance for the whitening. With fewer rows than columns, do so in the span of the rows.
        rows, (n, width) = fitted - fitted.mean(0), fitted.shape
        if n < width:
            roots, vectors = linalg.svd(rows, full_matrices=False)[1:]
            values, self._basis = roots**2 / (n - 1), vectors.T
        else:
            values, self._basis = linalg.eigh(rows.T @ rows / (n - 1))
        mean = float(values.sum()) / width
        values = (1 - shrinkage) * values + shrinkage * mean
        if values.min() <= 1e-10 * values.max():
            problem, advice = "leaves a singular covariance of the controls", "Use a larger number, or rows that vary."
            raise InvalidValueError(problem, parameter="shrinkage", value=shrinkage, advice=advice)
        self._rest = float(1 / np.sqrt(shrinkage * mean)) if n < width else 0.0
        self._factors = 1 / np.sqrt(values) - self._rest
        self.white, self._counts = Space(self.whitened(held), self.whitened(fitted), subjects, within), counts
        # Effects along directions of large variance are found best without whitening.
        self._level = float(np.sqrt(mean))
        self.plain = Space(held / self._level, fitted / self._level, subjects, within)

    def whitened(self, rows: Array) -> Array:
        """Return rows in coordinates in which the shrunken covariance of the fitted half is the identity."""
        scores = (rows @ self._basis) * self._factors
        return self._rest * rows + scores @ self._basis.T if self._rest else scores

    def measure(self, rows: Array, codes: Codes, n_controls: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return shift, spread and ratio of a target, and the scaled statistics of the test.

        Only the scaled statistics use clipped rows. `codes` are the units of the rows. `n_controls` is the number of
        independent control rows. If groups are the units, an effective number of rows replaces `n_controls`.
        """
        white, raw, counts = self.white, self.whitened(rows), np.bincount(codes)
        spaces = (white, self.plain)
        totals = [n_controls if self._counts is None else space.effective(self._counts) for space in spaces]
        (one, other), (third, fourth) = halves(codes, rng), halves(codes, rng)
        parts, held = [one, other, third, fourth], np.stack([other, one, fourth, third])
        has_spread = held.sum(1).min() >= LEAST_SPREAD // 2
        scaled, every = np.full(N_TESTED, np.nan), np.ones((len(parts), len(white.raw)), dtype=bool)
        for place, space, own in ((1, self.plain, rows / self._level), (0, white, raw)):
            near = clipped(own, space.limit)
            scaled[place] = space.scaled_shift(near, totals[place], codes)
            if has_spread:
                vectors = leading_vectors([near[part] for part in parts])
                spread = spread_of(vectors @ near.T, held, vectors @ space.reference.T, every)
                scaled[place + 2] = scaled_spread(spread, space.effective(counts), len(white.raw))
        noise = white.raw_variance / totals[0]
        found = {"shift": Units(raw, codes, white.correlation).distance(0.0, noise), "scaled": scaled, "noise": noise}
        found |= {"scale": 1 / white.effective(counts) + 1 / totals[0], "whitened": raw}
        if not has_spread:
            return found
        spread = spread_of(vectors @ raw.T, held, vectors @ white.raw.T, every, np.inf)
        squares = np.empty(len(raw))
        for part, rest in ((one, other), (other, one)):
            vector = leading(near[rest])
            squares[part] = (raw[part] @ vector) ** 2 / max(float(np.var(white.raw @ vector, ddof=1)), TINY)
        ratio, n_units = float(squares.mean()), len(counts)
        error = np.sqrt(n_units / (n_units - 1) * (np.bincount(codes, squares - ratio) ** 2).sum()) / len(raw)
        return found | {"spread": float(spread), "ratio": ratio, "ratio_error": float(error), "vector": vectors[0]}

    def draws(self, sizes: Codes, n_draws: int, rng: np.random.Generator) -> list[Array]:
        """Return for each size the scaled statistics of random sets of reference rows: an array (n_draws, 4)."""
        order = rng.permuted(np.tile(np.arange(len(self.white.raw)), (n_draws, 1)), axis=1)
        ranks, spaces = np.argsort(order, axis=1), (self.white, self.plain)
        found = []
        for size in sizes:
            scaled = np.full((n_draws, N_TESTED), np.nan)
            for place, space in enumerate(spaces):
                scaled[:, place] = space.drawn_shifts(ranks < size)
                if size >= LEAST_SPREAD:
                    scaled[::SPREAD_EVERY, place + 2] = space.drawn_spreads(order[::SPREAD_EVERY], size)
            found.append(scaled)
        return found


# --- the controls ----------------------------------------------------------------------------------------------------


class Controls:
    """Centred control rows.

    If target rows and control rows share groups, the mean of each group is subtracted from its control rows. Otherwise,
    the mean of all control rows is subtracted.

    Attributes
    ----------
    rows : the centred control rows
    groups : the groups of these rows
    kind : "rows" if rows are independent, "subjects" if groups are, "within" if every row is compared with the controls
        of its group
    means : the mean of all control rows, or one control mean for each group
    counts : number of control rows behind each mean, 0 if there are too few
    variances : variance of every column
    """

    def __init__(self, rows: Array, groups: Codes | None, target_groups: Codes | None) -> None:
        self.kind, n_cells, cells = "rows", 1, np.zeros(len(rows), dtype=np.intp)
        if groups is not None and target_groups is not None:
            n_groups = len(np.unique(groups))
            if np.isin(groups, target_groups).any():
                self.kind, cells, n_cells = "within", groups, int(max(groups.max(), target_groups.max())) + 1
            elif n_groups >= LEAST_GROUPS:
                self.kind = "subjects"
            if self.kind != "within" and n_groups < ENOUGH_GROUPS:
                some = "rows are treated as independent" if self.kind == "rows" else "p-values are approximate"
                problem = f"{n_groups} of the groups have controls, and no other label: {some}"
                advice = f"Give {ENOUGH_GROUPS} or more control groups, or controls in the groups of the labels."
                warn_user(problem, advice=advice)
        counts = np.bincount(cells, minlength=n_cells).astype(float)
        counts[counts < LEAST_IN_GROUP] = 0
        self.counts, self.means = counts, sums_of(rows, cells, n_cells) / np.maximum(counts, 1)[:, None]
        known = counts[cells] > 0
        if known.sum() < LEAST_CONTROLS:
            where = f" in groups with {LEAST_IN_GROUP} or more" if self.kind == "within" else ""
            problem = f"There are {known.sum()} control rows{where}, but at least {LEAST_CONTROLS} are required"
            raise InvalidValueError(problem, advice="Give more control rows.")
        # Subtracting the mean of n rows multiplies the variance by (n - 1) / n. Undo this.
        stretch = np.sqrt(counts / np.maximum(counts - 1, 1))
        self.rows = (rows[known] - self.means[cells[known]]) * stretch[cells[known], None]
        self.groups = None if groups is None else groups[known]
        self.variances = self.rows.var(0, ddof=1)

    def centred(self, rows: Array, groups: Codes | None) -> tuple[Array, Codes | None, float]:
        """Subtract the control means from rows. Return the rows, their groups and the effective number of controls."""
        cells = groups if self.kind == "within" and groups is not None else np.zeros(len(rows), dtype=np.intp)
        known = self.counts[cells] > 0
        share = np.bincount(cells[known], minlength=len(self.counts)) / max(known.sum(), 1)
        error = float((share**2 / np.maximum(self.counts, 1)).sum())
        found = rows[known] - self.means[cells[known]]
        return found, None if groups is None else groups[known], 1 / max(error, 1e-12)

    def sides(self, shrinkage: float, rng: np.random.Generator) -> Iterator[Side]:
        """Yield both ways to use the halves: one half gives the whitening, the other half is the reference."""
        groups = self.groups if self.kind == "subjects" else None
        units = np.arange(len(self.rows)) if groups is None else np.unique(groups, return_inverse=True)[1]
        counts, (one, other) = None if groups is None else np.bincount(groups), halves(units, rng)
        for fitted, held in ((one, other), (other, one)):
            subjects = np.unique(units[held], return_inverse=True)[1]
            yield Side(self.rows[fitted], self.rows[held], subjects, self.kind == "within", shrinkage, counts)
