"""Many targets against shared controls: which of them stand out, by a shift of the mean or by their spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

from standout._messages import InvalidValueError, require_extra
from standout.screen._controls import (
    MOST_ROWS,
    Controls,
    Target,
    code_of,
    coded,
    gather_controls,
    read,
    sampled,
    targets_of,
)
from standout.screen._null import LARGEST_SIZE, Array, Codes, Null, Side, combined, sums_of
from standout.screen._table import COLUMNS, Screen, judged
from standout.sources import Source, open_dataset

MEASURED = ("shift", "spread", "ratio", "ratio_error")
LEAST_DRAWS = 40


def screen(
    X: Any,
    labels: Any,
    *,
    control: Any = None,
    groups: Any = None,
    background: Any = None,
    background_groups: Any = None,
    shrinkage: float = 0.5,
    n_draws: int = 400,
    level: float = 0.05,
    effect: float = 1.0,
    n_columns: int = 5,
    random_state: int | None = 0,
) -> Screen:
    """Which of many labels stand out against shared controls?

    Every label (a knock-out, a compound, a machine) is compared with the controls in two ways. The *shift* is the
    squared distance of the means. The *spread* is the largest variance along a direction. Both are in units of the
    controls' variance and without bias: if nothing differs, the shift is 0 and the spread is 1 on average.

    Parameters
    ----------
    X : array, frame, sparse array, Dask array or `standout.scan`, of shape (n_rows, n_columns)
        The rows of all labels. The controls are among them unless `background` has them.
    labels : array-like of shape (n_rows,)
        The label of each row: words or whole numbers. Rows without a label are left out.
    control : object
        The label of the control rows.
    groups : array-like of shape (n_rows,), default=None
        The guide, replicate, donor or other subject of each row. If labels share groups with the controls, every row
        is compared with the controls of its group. Otherwise groups are the units: only rows of different groups are
        multiplied for the shift, and null draws are whole groups if the controls have at least 24.
    background : dataset, default=None
        The control rows, if they are not in `X`.
    background_groups : array-like, default=None
        The groups of the rows of `background`.
    shrinkage : float in (0, 1], default=0.5
        How far the controls' covariance is moved towards a multiple of the identity before whitening.
    n_draws : int, default=400
        Number of null draws for each size and each half of the controls.
    level : float, default=0.05
        Labels with a q-value below this level stand out.
    effect : float, default=1.0
        A shift worth finding, as a squared number of control standard deviations. A label that does not stand out has
        "no evidence" if such a shift would be found with a power of 80 % at its size, else "too few rows to say".
    n_columns : int, default=5
        Number of leading columns in the table.
    random_state : int or None, default=0
        Seed of the halves and of the draws.

    Returns
    -------
    Screen
        Its `table` has one row per label.

    Notes
    -----
    The controls are split into halves. One half gives the whitening and the other one the null draws, then the halves
    are exchanged. Three statistics are tested: the shift with and without whitening, and the spread. Their p-values
    come from Pearson type III laws with the mean, the standard deviation and the skewness of the draws at the size of
    the label. Fisher's sum with Brown's variance makes one p-value of three, the Cauchy combination one of both halves.
    Tests clip outlying rows; the shift, the spread and the ratio in the table do not. A random sample of 20,000 rows
    represents a larger label.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.screen import screen
    >>> rng = np.random.default_rng(0)
    >>> X, labels = rng.standard_normal((600, 10)), np.repeat(["control", "A", "B"], 200)
    >>> X[labels == "A", 3] += 1
    >>> screen(X, labels, control="control").table["verdict"].to_dict()
    {'A': 'stands out', 'B': 'no evidence'}
    """
    require_extra("pandas", "frames", "A screen")
    limits = {"shrinkage": (shrinkage, 0, 1), "level": (level, 0, 1), "effect": (effect, 0, np.inf)}
    for parameter, (value, least, most) in {**limits, "n_draws": (n_draws, LEAST_DRAWS - 1, np.inf)}.items():
        if not least < value <= most:
            problem = f"is not in ({least}, {most}]"
            raise InvalidValueError(problem, parameter=parameter, value=value)
    source = _opened(X, "the data")
    names, codes = coded(labels, source.count_rows(), "labels")
    host, numbers, own = _control_rows(source, names, codes, control, background)
    row_groups, host_groups = _groups(groups, source, background_groups, host)
    others = (codes != own) & (codes >= 0)
    if not others.any():
        raise InvalidValueError("has no label but the controls", parameter="labels", advice="Give rows to compare.")
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**31))
    numbers = sampled(numbers, rng)
    control_groups = None if host_groups is None else host_groups[numbers]
    target_groups = None if row_groups is None else row_groups[others]
    controls = gather_controls(read(host, numbers), control_groups, target_groups)
    sides = controls.sides(shrinkage, rng)
    grid = _grid(codes[others], None if sides[0].codes is None else target_groups, sides)
    columns = source.columns or tuple(f"column {number}" for number in range(controls.rows.shape[1]))
    # Products are small: threads of BLAS would wait for each other.
    with threadpool_limits(1, "blas"):
        null = Null.of_draws(grid, [side.draws(grid, n_draws, rng) for side in sides])
        bench = Bench(controls, sides, null, columns, n_columns)
        found = [
            bench.row_of(target, np.random.default_rng([seed, crc32(str(target.name).encode())]))
            for target in targets_of(source, codes, names, own, row_groups, rng)
        ]
    noise = float(np.mean([side.white.variance for side in sides])) / len(columns)
    return Screen(judged(found, null, noise, level, effect), control, len(controls.rows), controls.kind, level, effect)


@dataclass(frozen=True)
class Bench:
    """Everything that a label is compared with."""

    controls: Controls
    sides: list[Side]
    null: Null
    columns: tuple[str, ...]
    n_columns: int

    def row_of(self, target: Target, rng: np.random.Generator) -> dict[str, Any]:
        """Return the row of the table for one label, without a verdict."""
        rows, groups, n_controls = self.controls.centred(target)
        row: dict[str, Any] = {"label": target.name, **dict.fromkeys(COLUMNS, np.nan), "rows": target.n_rows}
        row |= {"shift_columns": "", "spread_columns": "", "note": "", "size": 0, "scale": np.nan}
        if target.n_rows > MOST_ROWS:
            row["note"] = f"a random sample of {MOST_ROWS:,} rows"
        if len(rows) < len(target.rows):
            row["note"] = f"{len(target.rows) - len(rows):,} rows are in groups without controls"
        units = None if groups is None else np.unique(groups, return_inverse=True)[1]
        if len(rows) < 2 or (self.controls.kind == "subjects" and units is not None and not units.any()):
            row["note"] = row["note"] or ("one row" if len(rows) < 2 else "all rows are in one group")
            return row
        found, subjects = [], units if self.controls.kind == "subjects" else None
        for side in self.sides:
            whitened, totals = side.whitened(rows), self.controls.effective(side, n_controls)
            measure = side.measure(rows, whitened, subjects, totals, rng)
            agreed = np.nan if units is None else agreement(whitened, units, side.white.raw_variance / totals[0])
            found.append((measure, agreed, *self.null.test(measure)))
        measures, shares, z, p_values = zip(*found, strict=True)
        row |= {name: float(np.mean([getattr(measure, name) for measure in measures])) for name in MEASURED}
        row |= {"agreement": float(np.mean(shares)), "statistic": float(np.nanmax(np.mean(z, axis=0)))}
        row |= {"p_value": combined(np.array(p_values)), "size": measure.size, "scale": measure.scale}
        row["shift_columns"] = self._leaders(self._shifts(rows, n_controls))
        if measure.vector is not None:
            row["spread_columns"] = self._leaders(_correlations(rows, whitened @ measure.vector))
        return row

    def _shifts(self, rows: Array, n_controls: float) -> Array:
        """Return Welch's t of every column."""
        error = np.sqrt(rows.var(0, ddof=1) / len(rows) + self.controls.variances / n_controls)
        return np.divide(rows.mean(0), error, out=np.zeros(rows.shape[1]), where=error > 0)

    def _leaders(self, scores: Array) -> str:
        """Return the names of the columns with the largest scores, with signs."""
        chosen = np.argsort(-np.abs(scores), kind="stable")[: self.n_columns]
        return " ".join(f"{'+' if scores[one] > 0 else '-'}{self.columns[one]}" for one in chosen if scores[one] != 0)


def agreement(rows: Array, units: Codes, noise: float) -> float:
    """Return the share of groups whose shift points the same way as the shift of the other groups.

    All groups share the error of the control mean. Its expected square, `noise`, is subtracted from inner products.
    """
    counts = np.bincount(units)
    sums = sums_of(rows, units, len(counts))
    inner = (sums * (sums.sum(0) - sums)).sum(1) - noise * counts * (len(rows) - counts)
    return float(np.mean(inner > 0)) if len(counts) > 1 else np.nan


def _correlations(rows: Array, scores: Array) -> Array:
    """Return the correlation of every column with scores. The largest is positive."""
    rows, scores = rows - rows.mean(0), scores - scores.mean()
    length = np.linalg.norm(rows, axis=0) * np.linalg.norm(scores)
    found = np.divide(scores @ rows, length, out=np.zeros(rows.shape[1]), where=length > 0)
    return found * np.sign(found[np.argmax(np.abs(found))])


def _grid(codes: Codes, groups: Codes | None, sides: list[Side]) -> Codes:
    """Return sizes for null draws, from the smallest to the largest label, at most half of the reference units."""
    if groups is not None:
        codes = np.unique(np.stack([codes, groups]), axis=1)[0]
    sizes = np.bincount(codes)
    most = min(LARGEST_SIZE, *(len(side.white.units.means) // 2 for side in sides))
    low, high = (int(np.clip(size, 2, most)) for size in (sizes[sizes > 0].min(), sizes.max()))
    steps = int(np.ceil(np.log2(high / low))) + 1
    return np.unique(np.geomspace(low, high, steps).round().astype(np.intp))


def _opened(data: Any, name: str) -> Source:
    """Open a dataset that can be read several times."""
    source = open_dataset(data, name)
    return source if source.again else source.loaded()


def _control_rows(
    source: Source, names: list[Any], codes: Codes, control: Any, background: Any
) -> tuple[Source, Codes, int]:
    """Return the dataset with the controls, the numbers of their rows, and the number of their label."""
    if (control is None) == (background is None):
        problem = "Controls are given twice" if control is not None else "There are no controls"
        raise InvalidValueError(problem, advice="Give `control`, a label, or `background`, rows.")
    if background is None:
        own = code_of(control, names)
        return source, np.flatnonzero(codes == own), own
    host = _opened(background, "the background")
    return host, np.arange(host.count_rows()), -1


def _groups(groups: Any, source: Source, others: Any, host: Source) -> tuple[Codes | None, Codes | None]:
    """Return the group of every row of the data, and of the dataset with the controls."""
    if groups is None:
        return None, None
    if host is not source and others is None:
        raise InvalidValueError("is required with `groups`", parameter="background_groups")
    parts = [(groups, source, "groups"), (others, host, "background_groups")][: 1 + (host is not source)]
    named = [coded(values, one.count_rows(), parameter) for values, one, parameter in parts]
    for (_, codes), (_, _, parameter) in zip(named, parts, strict=True):
        if codes.min() < 0:
            problem = f"has no value in {(codes < 0).sum():,} rows"
            raise InvalidValueError(problem, parameter=parameter, advice="Give the group of every row.")
    known: dict[Any, int] = {}
    joint = [np.array([known.setdefault(name, len(known)) for name in names])[codes] for names, codes in named]
    return joint[0], joint[-1]
