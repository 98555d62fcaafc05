"""Shift and spread of a target in the coordinates of one half of the controls, and their null distribution.

One half of the controls gives the whitening. Null draws come from the other half, so that they are as new to the
whitening as a target is. Both statistics are divided by a scale that removes most of their dependence on the number of
rows. The rest of the dependence is interpolated over a grid of sizes.

A *unit* is what is independent under the null hypothesis: a row, or a whole subject. Null draws are rows. For subjects,
the scale of a target has an effective number of rows, by the intraclass correlation of the control subjects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.stats import chi2, pearson3

from standout._messages import InvalidValueError, warn_user

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

# The scaled statistics hardly change beyond this number of units.
LARGEST_SIZE = 2000
# Tests clip scores at this many standard deviations, so that a few outlying rows do not decide.
CLIP = 3.0
# Draws of the spread are slower than draws of the shift, and its law is closer to normal.
SPREAD_EVERY = 4
SMALLEST_P = 1e-300
POWER_STEPS = 12
TINY = 1e-12
# Normal score of a power of 80 %.
POWER_SCORE = 0.8416
# Each half of the controls needs rows for a covariance and for null draws.
LEAST_CONTROLS = 20
# With fewer control groups than the first number rows are treated as independent; below the second, warn.
LEAST_GROUPS, ENOUGH_GROUPS = 4, 8
# A group needs this many control rows for its own control mean.
LEAST_IN_GROUP = 5


class Units(NamedTuple):
    """The means of rows or subjects, and their precisions in units of one row."""

    means: Array
    weights: Array

    @property
    def mean(self) -> Array:
        """The weighted mean."""
        return self.weights @ self.means / self.weights.sum()

    @property
    def variance(self) -> float:
        """The variance of a unit of weight 1, summed over columns."""
        return float(self.weights @ ((self.means - self.mean) ** 2).sum(1)) / max(len(self.means) - 1, 1)


class Measure(NamedTuple):
    """Shift, spread and ratio of a target, and what is tested."""

    shift: float
    spread: float
    ratio: float
    ratio_error: float
    scaled: Array  # shift, shift without whitening, spread: clipped, divided by their scales
    scale: float  # of the shift
    vector: Array | None  # leading vector of the first half's spread, whitened coordinates


# --- statistics ------------------------------------------------------------------------------------------------------


def limit_of(rows: Array) -> float:
    """Return the distance beyond which rows are far out, in standard deviations of a column."""
    return 1.5 * float(np.median(np.linalg.norm(rows, axis=1))) + 2


def clipped(rows: Array, limit: float) -> Array:
    """Return rows; those beyond the limit are pulled in."""
    return rows * np.minimum(1, limit / np.maximum(np.linalg.norm(rows, axis=1), TINY))[:, None]


def sums_of(rows: Array, codes: Codes, n_codes: int) -> Array:
    """Return the sum of the rows of every code."""
    return sparse.csr_array((np.ones(len(rows)), (codes, np.arange(len(rows)))), shape=(n_codes, len(rows))) @ rows


def units_of(rows: Array, codes: Codes, correlation: float) -> Units:
    """Return units of rows, by the number of each row's unit."""
    counts = np.bincount(codes).astype(float)
    return Units(sums_of(rows, codes, len(counts)) / counts[:, None], counts / (1 + (counts - 1) * correlation))


def intraclass(rows: Array, codes: Codes) -> float:
    """Return the intraclass correlation of subjects, over all columns."""
    counts = np.bincount(codes).astype(float)
    means = units_of(rows, codes, 0.0).means
    between = float(counts @ ((means - rows.mean(0)) ** 2).sum(1)) / max(len(counts) - 1, 1)
    within = float(((rows - means[codes]) ** 2).sum()) / max(len(rows) - len(counts), 1)
    typical = (len(rows) - (counts**2).sum() / len(rows)) / max(len(counts) - 1, 1)
    return float(np.clip((between - within) / max(between + (typical - 1) * within, TINY), 0.0, 1.0))


def leading(rows: Array) -> Array:
    """Return a unit vector along which the rows have a large second moment, by power iterations.

    Draws and targets get the same number of iterations, so that it does not matter for the tests whether they converge.
    With a gap to the second vector, as in a label that stands out, they do.
    """
    wide = rows.shape[0] < rows.shape[1]
    gram = rows @ rows.T if wide else rows.T @ rows
    gram /= max(float(np.trace(gram)), TINY)
    vector = gram[:, np.argmax(np.diagonal(gram))]
    for _ in range(POWER_STEPS):
        vector = gram @ vector
    # Eigenvalues are at most 1: the vector becomes small, but not as small as the limits of double precision.
    vector = vector / max(float(np.abs(vector).max(initial=0)), 1e-200)
    if wide:
        vector = rows.T @ vector
    return vector / max(float(np.linalg.norm(vector)), TINY)


def halves(codes: Codes, rng: np.random.Generator) -> tuple[Mask, Mask]:
    """Return which rows are in each of two random halves; rows of one unit stay together."""
    order = rng.permutation(int(codes.max()) + 1)
    first = (order < len(order) // 2)[codes]
    return first, ~first


def clipped_variance(scores: Array, limit: float) -> float:
    """Return the variance of centred scores; those beyond the limit are moved to it."""
    return float((np.clip(scores, -limit, limit) ** 2).sum()) / max(len(scores) - 1, 1)


def spread_of(rows: Array, vectors: list[Array], parts: tuple[Mask, Mask], reference: Array, clip: float) -> float:
    """Return the variance of each half along the leading vector of the other, in units of the reference's variance."""
    found = 0.0
    for part, vector in zip(parts, vectors[::-1], strict=True):
        scores, known = rows[part] @ vector, reference @ vector
        known -= known.mean()
        limit = clip * float(np.std(known))
        found += clipped_variance(scores - scores.mean(), limit) / max(clipped_variance(known, limit), TINY) / 2
    return max(found, TINY)


def scaled_spread(rows: Array, vectors: list[Array], parts: tuple[Mask, Mask], reference: Array, n: float) -> float:
    """Return the log spread of `n` effective rows without its bias for normal scores, divided by its scale."""
    m = len(reference)
    spread = spread_of(rows, vectors, parts, reference, CLIP)
    return float((np.log(spread) + 1 / n - 1 / m) / np.sqrt(1 / n + 1 / m))


def own_vectors(rows: Array, parts: tuple[Mask, Mask]) -> list[Array]:
    """Return the leading vector of the spread of each half."""
    return [leading(rows[part] - rows[part].mean(0)) for part in parts]


# --- null distribution -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Null:
    """A Pearson type III law (a shifted gamma law) of each scaled statistic at a grid of sizes."""

    sizes: Array
    moments: Array  # (n_sizes, 3 statistics, mean and standard deviation and skewness)
    inflation: float = 1.0  # variance of Fisher's sum over that of independent p-values

    @classmethod
    def of_draws(cls, sizes: NDArray[np.intp], draws: list[list[Array]]) -> Null:
        """Fit moments to the draws of all sides; neighbouring sizes are averaged with weights 1/4, 1/2, 1/4."""
        joint = [np.concatenate(parts) for parts in zip(*draws, strict=True)]
        moments = np.array([_moments(some) for some in joint])
        padded = np.concatenate([moments[:1], moments, moments[-1:]])
        null = cls(sizes.astype(float), (padded[:-2] + 2 * moments + padded[2:]) / 4)
        sums = [-2 * np.log(null.tests(int(size), some)[1]).sum(1) for size, some in zip(sizes, joint, strict=True)]
        variance = float(np.nanvar(np.concatenate(sums)))
        return replace(null, inflation=max(variance / 12, 1.0) if np.isfinite(variance) else 1.0)

    def at(self, size: int) -> Array:
        """Return mean, standard deviation and skewness of the statistics, interpolated."""
        place = float(np.interp(np.log(size), np.log(self.sizes), np.arange(len(self.sizes))))
        low = int(place)
        high = min(low + 1, len(self.sizes) - 1)
        return self.moments[low] + (place - low) * (self.moments[high] - self.moments[low])

    def tests(self, size: int, scaled: Array) -> tuple[Array, Array]:
        """Return the statistics in null standard deviations, and their p-values."""
        mean, deviation, skewness = self.at(size).T
        z = (scaled - mean) / deviation
        return z, np.maximum(pearson3.sf(z, skewness), SMALLEST_P)

    def test(self, size: int, scaled: Array) -> tuple[Array, float]:
        """Return the statistics in null standard deviations, and one p-value: Fisher's sum with Brown's variance."""
        z, p_values = self.tests(size, scaled)
        p_values = p_values[np.isfinite(p_values)]
        total = -2 * float(np.log(p_values).sum()) / self.inflation
        return z, max(float(chi2.sf(total, 2 * len(p_values) / self.inflation)), SMALLEST_P)

    def detectable(self, size: int, scale: float, noise: float, level: float) -> float:
        """Return the smallest shift that is found with a power of 80 %."""
        mean, deviation, skewness = self.at(size)[0]
        limit = scale * (mean + deviation * pearson3.isf(level, skewness))
        # A shift d adds 4 d noise scale to the variance. Solve d - limit = score sqrt(variance) for d.
        middle = limit + 2 * POWER_SCORE**2 * noise * scale
        return float(middle + np.sqrt(max(middle**2 - limit**2 + (POWER_SCORE * deviation * scale) ** 2, 0)))


def _moments(draws: Array) -> Array:
    """Return mean, standard deviation and skewness of each column. A negative skewness is set to 0."""
    found = []
    for values in draws.T:
        known = values[np.isfinite(values)]
        if len(known) < 2:
            found.append([np.nan] * 3)
            continue
        mean, deviation = known.mean(), max(known.std(ddof=1), TINY)
        found.append([mean, deviation, np.clip((((known - mean) / deviation) ** 3).mean(), 0.0, 2.0)])
    return np.array(found)


def combined(p_values: Array) -> float:
    """Return one p-value of several that may depend on each other: the Cauchy combination."""
    p = np.minimum(p_values[np.isfinite(p_values)], 0.99)
    if not len(p):
        return np.nan
    # For small p, tan((1/2 - p) pi) is 1 / (p pi), without cancellation.
    total = float(np.mean(np.where(p < 1e-8, 1 / (p * np.pi), np.tan((0.5 - p) * np.pi))))
    return max(1 / (total * np.pi) if total > 1e7 else 0.5 - np.arctan(total) / np.pi, SMALLEST_P)


# --- one direction of the cross-fit ----------------------------------------------------------------------------------


class Space:
    """Control rows in some coordinates, in which a target is shifted or not.

    Parameters
    ----------
    raw, others : arrays, about the mean of all controls
        The reference rows, and the other half of the controls.
    subjects : number of each reference row's unit
    within : whether every row is compared with the controls of its group
    """

    def __init__(self, raw: Array, others: Array, subjects: Codes, within: bool) -> None:
        self.raw, self.limit = raw, limit_of(raw)
        self.reference = clipped(raw, self.limit)
        # Rows that were whitened by themselves are shorter, so they have another limit.
        rest = clipped(others, limit_of(others))
        self.center = (self.reference.sum(0) + rest.sum(0)) / (len(raw) + len(rest))
        self.correlation = intraclass(self.reference, subjects)
        self.raw_variance = units_of(raw, subjects, self.correlation).variance
        self.variance = units_of(self.reference, subjects, self.correlation).variance
        # Means of groups are subtracted before rows are clipped, so outlying rows are in their errors.
        self.control_variance = self.raw_variance if within else self.variance

    def effective(self, counts: Codes) -> float:
        """Return the effective number of rows of subjects: dependent rows have a smaller weight."""
        return float((counts / (1 + np.maximum(counts - 1, 0) * self.correlation)).sum())

    def shift(self, raw: Array, codes: Codes, n_controls: float) -> tuple[float, float]:
        """Return the squared distance of the means without bias, as it is, and clipped and scaled for the test."""
        plain = units_of(raw, codes, self.correlation)
        tested = units_of(clipped(raw, self.limit), codes, self.correlation)
        total = float(plain.weights.sum())
        shift = float((plain.mean**2).sum()) - plain.variance / total - self.raw_variance / n_controls
        moved = float(((tested.mean - self.center) ** 2).sum())
        moved -= tested.variance / total + self.control_variance / n_controls
        # Pairs of rows of one subject are left out, which draws of rows do not show.
        moved *= np.sqrt((1 - 1 / len(plain.weights)) / (1 - 1 / len(raw)))
        return shift, moved / (1 / total + self.control_variance / max(self.variance, TINY) / n_controls)

    def drawn_shifts(self, drawn: Mask) -> Array:
        """Return the scaled shift of each set of reference rows against the rest."""
        squares = (self.reference**2).sum(1)
        found = []
        for chosen in (drawn, ~drawn):
            n = chosen.sum(1)
            mean = chosen @ self.reference / n[:, None]
            variance = (chosen @ squares - n * (mean**2).sum(1)) / np.maximum(n - 1, 1)
            found.append((mean, variance / n, 1 / n))
        (one, noise, scale), (other, other_noise, other_scale) = found
        return (((one - other) ** 2).sum(1) - noise - other_noise) / (scale + other_scale)


class Side:
    """Whitening by one half of the controls, with the other half as the reference.

    Parameters
    ----------
    fitted, held : arrays, about the mean of all controls
    subjects : number of each held row's unit
    within : whether every row is compared with the controls of its group
    shrinkage : float
    """

    def __init__(self, fitted: Array, held: Array, subjects: Codes, within: bool, shrinkage: float) -> None:
        self._fit(fitted - fitted.mean(0), shrinkage)
        self.white = Space(self.whitened(held), self.whitened(fitted), subjects, within)
        # An effect along a direction of large variance is best seen without whitening.
        self.plain = Space(held / self._level, fitted / self._level, subjects, within)

    def _fit(self, rows: Array, shrinkage: float) -> None:
        """Find the whitening of the shrunken covariance; with fewer rows than columns, in the span of the rows."""
        n, width = rows.shape
        if n < width:
            roots, vectors = linalg.svd(rows, full_matrices=False)[1:]
            values, basis = roots**2 / (n - 1), vectors.T
        else:
            values, basis = linalg.eigh(rows.T @ rows / (n - 1))
        mean = float(values.sum()) / width
        values = (1 - shrinkage) * values + shrinkage * mean
        if values.min() <= 1e-10 * values.max():
            problem, advice = "leaves a singular covariance of the controls", "Use a larger number, 0.5 for example."
            raise InvalidValueError(problem, parameter="shrinkage", value=shrinkage, advice=advice)
        self._level = float(np.sqrt(mean))
        self._rest = float(1 / np.sqrt(shrinkage * mean)) if n < width else 0.0
        self._basis, self._factors = basis, 1 / np.sqrt(values) - self._rest

    def whitened(self, rows: Array) -> Array:
        """Return rows in coordinates in which the shrunken covariance of the fitted half is the identity."""
        scores = (rows @ self._basis) * self._factors
        return self._rest * rows + scores @ self._basis.T if self._rest else scores

    def measure(
        self, rows: Array, raw: Array, codes: Codes, n_controls: list[float], rng: np.random.Generator
    ) -> Measure:
        """Measure a target: rows, whitened rows, units, and the effective numbers of control rows in both spaces."""
        counts = np.bincount(codes)
        n_units, total = len(counts), self.white.effective(counts)
        shift, moved = self.white.shift(raw, codes, n_controls[0])
        scaled = np.array([moved, self.plain.shift(rows / self._level, codes, n_controls[1])[1], np.nan])
        scale, parts = 1 / total + 1 / n_controls[0], halves(codes, rng)
        if min(part.sum() for part in parts) < 2:
            return Measure(shift, np.nan, np.nan, np.nan, scaled, scale, None)
        near, reference = clipped(raw, self.white.limit), self.white.raw
        vectors = own_vectors(near, parts)
        spread = spread_of(raw, vectors, parts, reference, np.inf)
        scaled[2] = scaled_spread(near, vectors, parts, self.white.reference, total)
        squares = np.empty(len(raw))
        for part, other in (parts, parts[::-1]):
            vector = leading(near[other])
            squares[part] = (raw[part] @ vector) ** 2 / max(float(np.var(reference @ vector, ddof=1)), TINY)
        ratio = float(squares.mean())
        error = np.sqrt(n_units / (n_units - 1) * (np.bincount(codes, squares - ratio) ** 2).sum()) / len(raw)
        return Measure(shift, spread, ratio, float(error), scaled, scale, vectors[0])

    def draws(self, sizes: NDArray[np.intp], n_draws: int, rng: np.random.Generator) -> list[Array]:
        """Return scaled statistics of random sets of reference rows, each against the rest: (n_draws, 3) per size."""
        reference = self.white.reference
        ranks = rng.permuted(np.tile(np.arange(len(reference)), (n_draws, 1)), axis=1)
        found = []
        for size in sizes:
            drawn = ranks < size
            spreads = np.full(n_draws, np.nan)
            for number in range(0, n_draws, SPREAD_EVERY):
                rows, rest = reference[drawn[number]], reference[~drawn[number]]
                parts = halves(np.arange(size), rng)
                if min(part.sum() for part in parts) >= 2:
                    spreads[number] = scaled_spread(rows, own_vectors(rows, parts), parts, rest, size)
            found.append(np.stack([self.white.drawn_shifts(drawn), self.plain.drawn_shifts(drawn), spreads], axis=1))
        return found


# --- the controls ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Controls:
    """Control rows about their mean.

    `kind` is "rows" if rows are independent, "subjects" if groups are, and "within" if every row is compared with the
    controls of its group.
    """

    rows: Array
    groups: Codes | None
    kind: str
    means: Array  # one, or one for each group
    counts: Array  # number of control rows behind each mean, 0 if there are too few

    @cached_property
    def variances(self) -> Array:
        """The variance of every column."""
        return self.rows.var(0, ddof=1)

    def centred(self, rows: Array, groups: Codes | None) -> tuple[Array, Codes | None, float]:
        """Return rows about the control mean, their groups, and the effective number of control rows."""
        cells = groups if self.kind == "within" and groups is not None else np.zeros(len(rows), dtype=np.intp)
        known = self.counts[cells] > 0
        share = np.bincount(cells[known], minlength=len(self.counts)) / max(known.sum(), 1)
        error = float((share**2 / np.maximum(self.counts, 1)).sum())
        found = rows[known] - self.means[cells[known]]
        return found, None if groups is None else groups[known], 1 / max(error, 1e-12)

    def sides(self, shrinkage: float, rng: np.random.Generator) -> list[Side]:
        """Return both directions of the cross-fit: one half whitens, the other one is the reference."""
        groups = self.groups if self.kind == "subjects" else None
        units = np.arange(len(self.rows)) if groups is None else np.unique(groups, return_inverse=True)[1]
        parts = halves(units, rng)
        found = []
        for fitted, held in (parts, parts[::-1]):
            subjects = np.unique(units[held], return_inverse=True)[1]
            found.append(Side(self.rows[fitted], self.rows[held], subjects, self.kind == "within", shrinkage))
        return found

    def effective(self, side: Side, n_controls: float) -> list[float]:
        """Return the effective numbers of control rows with and without whitening."""
        if self.kind != "subjects" or self.groups is None:
            return [n_controls, n_controls]
        return [space.effective(np.bincount(self.groups)) for space in (side.white, side.plain)]


def gather_controls(rows: Array, groups: Codes | None, target_groups: Codes | None) -> Controls:
    """Subtract the mean of the control rows, by group if other labels have rows of the same groups."""
    kind, n_cells, cells = "rows", 1, np.zeros(len(rows), dtype=np.intp)
    if groups is not None and target_groups is not None:
        kind = "within" if np.isin(groups, target_groups).any() else _independent(groups)
        if kind == "within":
            cells, n_cells = groups, int(max(groups.max(), target_groups.max())) + 1
    counts = np.bincount(cells, minlength=n_cells).astype(float)
    counts[counts < LEAST_IN_GROUP] = 0
    means = sums_of(rows, cells, n_cells) / np.maximum(counts, 1)[:, None]
    known = counts[cells] > 0
    if known.sum() < LEAST_CONTROLS:
        where = f" in groups with {LEAST_IN_GROUP} or more" if kind == "within" else ""
        problem = f"There are {known.sum()} control rows{where}, but at least {LEAST_CONTROLS} are required"
        raise InvalidValueError(problem, advice="Give more control rows.")
    # Rows about the mean of n rows have (n - 1) / n of the variance.
    stretch = np.sqrt(counts / np.maximum(counts - 1, 1))
    centred = (rows[known] - means[cells[known]]) * stretch[cells[known], None]
    return Controls(centred, None if groups is None else groups[known], kind, means, counts)


def _independent(groups: Codes) -> str:
    """Return whether groups or rows are independent if controls have their own groups."""
    n_groups = len(np.unique(groups))
    if n_groups < ENOUGH_GROUPS:
        some = "rows are treated as independent" if n_groups < LEAST_GROUPS else "p-values are approximate"
        problem = f"The controls have {n_groups} groups, which no other label has: {some}"
        advice = f"Give {ENOUGH_GROUPS} or more control groups, or controls in the groups of the labels."
        warn_user(problem, advice=advice)
    return "subjects" if n_groups >= LEAST_GROUPS else "rows"
