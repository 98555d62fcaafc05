"""Many targets against shared controls: which of them stand out, by a shift of the mean or by their spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from standout._messages import InvalidValueError
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
    warn_of_groups,
)
from standout.screen._null import LARGEST_SIZE, Array, Codes, Null, Side, combined, units_of
from standout.screen._table import COLUMNS, Screen, judged
from standout.sources import Source, open_dataset

MEASURED = ("shift", "spread", "ratio", "ratio_error")
LEAST_DRAWS = 40
# Sizes of null draws: each is this many times the one before.
GRID_STEP = 2.0


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
    random_state: int = 0,
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
        is compared with the controls of its group. Otherwise whole groups are drawn for the null distribution if there
        are at least 16 control groups, so that differences between subjects are not mistaken for effects.
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
    random_state : int, default=0
        Seed of the halves and of the draws. The row of a label does not depend on the other labels' data.

    Returns
    -------
    Screen
        Its `table` has one row per label.

    Notes
    -----
    The controls are split into halves. One half gives the whitening and the other one the null draws, then the halves
    are exchanged. At the size of each label, the p-values of shift and spread come from Pearson type III laws with the
    mean, the standard deviation and the skewness of the draws. The Cauchy combination makes one p-value of them. Tests
    clip outlying rows; the shift, the spread and the ratio in the table do not. A random sample of 20,000 rows
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
    _check(shrinkage=(shrinkage, 1), level=(level, 1), effect=(effect, np.inf), n_draws=(n_draws, np.inf))
    source = _opened(X, "the data")
    names, codes = coded(labels, source.count_rows(), "labels")
    rng = np.random.default_rng(random_state)
    host, numbers, own = _control_rows(source, names, codes, control, background)
    row_groups, host_groups = _groups(groups, source, background_groups, None if host is source else host)
    numbers = sampled(numbers, rng)
    others = (codes != own) & (codes >= 0)
    if not others.any():
        raise InvalidValueError("have no label but the controls", parameter="labels", advice="Give rows to compare.")
    target_groups = None if row_groups is None else row_groups[others]
    controls = gather_controls(
        read(host, numbers), None if host_groups is None else host_groups[numbers], target_groups
    )
    sides = controls.sides(shrinkage, rng)
    if target_groups is not None:
        warn_of_groups(controls, sides[0], target_groups)
    grid = _grid(codes[others], target_groups if controls.kind == "subjects" else None, sides)
    null = Null.of_draws(grid, [side.draws(grid, n_draws, rng) for side in sides])
    columns = source.columns or tuple(f"column {number}" for number in range(controls.rows.shape[1]))
    bench = Bench(controls, sides, null, controls.rows.var(0, ddof=1), columns, n_columns)
    found = []
    for target in targets_of(source, codes, names, own, row_groups, rng):
        found.append(bench.row_of(target, np.random.default_rng([random_state, crc32(str(target.name).encode())])))
    return Screen(judged(pd.DataFrame(found).set_index("label"), bench.detectable, level, effect), control, len(controls.rows), controls.kind, level, effect)


@dataclass(frozen=True)
class Bench:
    """Everything that a label is compared with."""

    controls: Controls
    sides: list[Side]
    null: Null
    variances: Array
    columns: tuple[str, ...]
    n_columns: int

    def row_of(self, target: Target, rng: np.random.Generator) -> dict[str, Any]:
        """Return the row of the table for one label, without verdict."""
        rows, groups, n_controls = self.controls.centred(target)
        row: dict[str, Any] = {"label": target.name, "rows": target.n_rows}
        row |= dict.fromkeys(COLUMNS[1:], np.nan)
        row |= {"shift_columns": "", "spread_columns": "", "note": _note(target, rows), "size": 0}
        if not len(rows):
            return row
        units = np.unique(groups, return_inverse=True)[1] if self.controls.kind == "subjects" else None
        whitened = [side.whitened(rows) for side in self.sides]
        found = [
            side.measure(one, units, self.total(side, n_controls), rng)
            for side, one in zip(self.sides, whitened, strict=True)
        ]
        tests = [self.null.test(one) for one in found]
        row |= {name: float(np.mean([getattr(one, name) for one in found])) for name in MEASURED}
        z = np.mean([z for z, _ in tests], axis=0)
        row["statistic"] = float(np.nanmax(z)) if np.isfinite(z).any() else np.nan
        row["p_value"] = combined(np.concatenate([p for _, p in tests]))
        row |= {"size": found[0].size, "scale": found[0].scale}
        if groups is not None:
            noises = [side.raw_variance / self.total(side, n_controls) for side in self.sides]
            row["agreement"] = float(np.mean([agreement(*one, groups) for one in zip(whitened, noises, strict=True)]))
        if len(rows) > 1:
            row["shift_columns"] = self.leaders(_shift_scores(rows, self.variances, n_controls))
        if found[0].vector is not None:
            row["spread_columns"] = self.leaders(_correlations(rows, whitened[0] @ found[0].vector))
        return row

    def total(self, side: Side, n_controls: float) -> float:
        """Return the effective number of control rows; dependent rows of a subject have a smaller weight."""
        reference = side.units.weights.sum() / len(side.reference)
        return float(n_controls * reference)

    def detectable(self, size: int, scale: float, level: float) -> float:
        """Return the smallest shift that is found at a level with a power of 80 %."""
        noise = float(np.mean([side.variance for side in self.sides])) / len(self.columns)
        return self.null.detectable(size, scale, noise, level)

    def leaders(self, scores: Array) -> str:
        """Return the names of the columns with the largest scores, with signs."""
        chosen = np.argsort(-np.abs(scores), kind="stable")[: self.n_columns]
        return " ".join(f"{'+' if scores[one] > 0 else '-'}{self.columns[one]}" for one in chosen if scores[one] != 0)


def agreement(rows: Array, noise: float, groups: Codes) -> float:
    """Return the share of groups whose shift points the same way as the shift of the other groups' rows.

    All groups share the error of the control mean. Its squared length, `noise`, is subtracted from inner products.
    """
    codes = np.unique(groups, return_inverse=True)[1]
    counts = np.bincount(codes)
    sums = units_of(rows, codes, 0.0).means * counts[:, None]
    inner = (sums * (sums.sum(0) - sums)).sum(1) - noise * counts * (len(rows) - counts)
    return float(np.mean(inner > 0)) if len(counts) > 1 else np.nan


def _shift_scores(rows: Array, variances: Array, n_controls: float) -> Array:
    """Return Welch's t of every column."""
    error = np.sqrt(rows.var(0, ddof=1) / len(rows) + variances / n_controls)
    return np.divide(rows.mean(0), error, out=np.zeros(rows.shape[1]), where=error > 0)


def _correlations(rows: Array, scores: Array) -> Array:
    """Return the correlation of every column with scores. The largest is positive."""
    rows, scores = rows - rows.mean(0), scores - scores.mean()
    length = np.linalg.norm(rows, axis=0) * np.linalg.norm(scores)
    found = np.divide(scores @ rows, length, out=np.zeros(rows.shape[1]), where=length > 0)
    return found * np.sign(found[np.argmax(np.abs(found))])


def _note(target: Target, rows: Array) -> str:
    notes = []
    if target.n_rows > MOST_ROWS:
        notes.append(f"a random sample of {MOST_ROWS:,} rows")
    if len(rows) < len(target.rows):
        notes.append(f"{len(target.rows) - len(rows):,} rows are in groups without controls")
    return "; ".join(notes)


def _grid(codes: Codes, groups: Codes | None, sides: list[Side]) -> Codes:
    """Return sizes for null draws, from the smallest to the largest label, at most half of the reference units."""
    if groups is not None:
        codes = np.unique(np.stack([codes, groups]), axis=1)[0]
    sizes = np.bincount(codes)
    most = min(LARGEST_SIZE, *(len(side.units.means) // 2 for side in sides))
    low, high = (int(np.clip(size, 2, most)) for size in (sizes[sizes > 0].min(), sizes.max()))
    steps = int(np.ceil(np.log(high / low) / np.log(GRID_STEP))) + 1
    return np.unique(np.geomspace(low, high, steps).round().astype(np.intp))


def _check(**limits: tuple[float, float]) -> None:
    for parameter, (value, most) in limits.items():
        least = LEAST_DRAWS - 1 if parameter == "n_draws" else 0
        if not least < value <= most:
            where = f"is not above {least}" + (f" and at most {most}" if np.isfinite(most) else "")
            raise InvalidValueError(where, parameter=parameter, value=value)


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


def _groups(groups: Any, source: Source, others: Any, host: Source | None) -> tuple[Codes | None, Codes | None]:
    """Return the numbers of the groups of all rows, and of the rows of the dataset with the controls."""
    if groups is None:
        return None, None
    if host is not None and others is None:
        raise InvalidValueError("is required with `groups`", parameter="background_groups")
    n_rows = source.count_rows()
    values = list(np.asarray(groups, dtype=object)) + ([] if host is None else list(np.asarray(others, dtype=object)))
    codes = coded(values, n_rows + (0 if host is None else host.count_rows()), "groups")[1]
    if (codes < 0).any():
        problem = f"are missing in {(codes < 0).sum():,} rows"
        raise InvalidValueError(problem, parameter="groups", advice="Give the group of every row.")
    return codes[:n_rows], codes[:n_rows] if host is None else codes[n_rows:]
