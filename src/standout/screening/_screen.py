"""Many targets against shared controls: which of them stand out, by a shift of the mean or by their spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from scipy.stats import false_discovery_control

from standout._arrays import dense, double, one_blas_thread
from standout._messages import InvalidTypeError, InvalidValueError, listed, require_extra, warn_user
from standout._xp import to_host
from standout.screening._null import LEAST_SPREAD, Array, Codes, Controls, Null, Side, combined
from standout.selection._units import sums_of
from standout.sources import Source, open_dataset
from standout.sources._form import as_words, per_row, word

if TYPE_CHECKING:
    import pandas as pd

STANDS_OUT, NO_EVIDENCE, TOO_FEW = "stands out", "no evidence", "too few rows to say"
COLOURS = {STANDS_OUT: "#D55E00", NO_EVIDENCE: "#56B4E9", TOO_FEW: "#999999"}
MOST_SHOWN = 30
COLUMNS = (
    *("rows", "ratio", "ratio_error", "spread", "shift", "statistic", "p_value", "q_value"),
    *("shift_columns", "spread_columns", "agreement", "detectable", "verdict", "note"),
)
MEASURED = ("shift", "spread", "ratio", "ratio_error")
LEAST_DRAWS = 40
# The scaled statistics hardly change beyond this number of rows.
LARGEST_SIZE = 2000
# If a label has more rows than this, a random sample of this many rows represents the label.
MOST_ROWS = 20_000
# Approximate number of values (rows x columns) that are read at a time, for several labels.
BLOCK_NUMBERS = 2**23
# Columns whose spreads differ by more than this factor probably have different units.
UNEQUAL_SPREADS = 100.0


@dataclass(frozen=True)
class Screen:
    """A table of labels, the most significant first, and how it was made.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per label. `rows`: number of rows of the label. `ratio`: largest second moment of the label along a
        direction, about the controls' mean, on held-out rows, in units of the controls' variance. `ratio_error`: the
        standard error of `ratio`. `spread`: as `ratio`, but with the variance about the label's mean. `shift`: squared
        distance between the means of label and controls, without bias. `statistic`: the largest of the tested
        statistics, in null standard deviations. `p_value`, `q_value` (Benjamini-Hochberg).
        `shift_columns`, `spread_columns`: leading columns with signs. `agreement`: share of groups whose shift points
        the same way as the shift of the label's other groups. `detectable`: smallest shift that is found with a power
        of 80 % at this number of rows. `verdict`, `note`.
    effects : pandas.DataFrame
        Differences of means in standard deviations of the controls, for the first labels and their leading columns.
    control : object
        The label of the controls.
    n_controls : int
        Number of control rows.
    units : {"rows", "subjects", "within"}
        The independent units: rows, groups, or rows minus the control mean of their group.
    level, effect : float
        `level` is the limit of the q-value. `effect` is the shift that decides between "no evidence" and "too few rows
        to say".
    """

    table: pd.DataFrame = field(repr=False)
    effects: pd.DataFrame = field(repr=False)
    control: Any
    n_controls: int
    units: str
    level: float
    effect: float

    def summary(self) -> str:
        """Return the numbers of labels by verdict, as a sentence."""
        counts = Counter(self.table["verdict"])
        others = ", ".join(f"{verdict}: {counts[verdict]:,}" for verdict in (NO_EVIDENCE, TOO_FEW) if counts[verdict])
        found = f"{counts[STANDS_OUT]:,} of {len(self.table):,} labels stand out against {self.n_controls:,}"
        return f"{found} control rows ({others})." if others else f"{found} control rows."

    def __str__(self) -> str:
        shown = self.table[["rows", "ratio", "shift", "spread", "q_value", "verdict"]].head(MOST_SHOWN)
        # Show the leading columns of the larger effect: the shift, or the spread minus 1.
        by_shift = self.table["shift"] >= self.table["spread"] - 1.0
        shown = shown.assign(columns=self.table["shift_columns"].where(by_shift, self.table["spread_columns"]))
        return f"{self.summary()}\n{shown.to_string(float_format='{:.3g}'.format)}"


def screen(
    X: Any,
    labels: Any,
    *,
    control: Any = None,
    groups: Any = None,
    background: Any = None,
    background_groups: Any = None,
    shrinkage: float = 0.5,
    n_draws: int = 200,
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
        is compared with the controls of its group. Otherwise groups are the independent units. The shift then uses
        only products of rows of different groups, and the null draws are scaled by the intraclass correlation of the
        control groups.
    background : dataset, default=None
        The control rows, if they are not in `X`.
    background_groups : array-like, default=None
        The groups of the rows of `background`.
    shrinkage : float in (0, 1], default=0.5
        How far the controls' covariance is moved towards a multiple of the identity before whitening.
    n_draws : int, default=200
        Number of null draws for each size and each half of the controls.
    level : float, default=0.05
        Labels with a q-value below this level stand out.
    effect : float, default=1.0
        The smallest shift worth finding, in units of the control variance. A label that does not stand out has
        "no evidence" if such a shift would be found with a power of 80 % at its size, else "too few rows to say".
    n_columns : int, default=5
        Number of leading columns in the table.
    random_state : int or None, default=0
        Seed of the random halves of the controls and of the null draws.

    Returns
    -------
    Screen
        Its `table` has one row per label.

    Notes
    -----
    The controls are split into halves. One half gives the whitening, the other half the null draws; then the halves are
    exchanged. Four statistics are tested: the shift and the spread, with and without whitening. Their p-values come
    from Pearson type III laws with the mean, the standard deviation and the skewness of the draws at the size of the
    label. Fisher's sum combines the four p-values. The Cauchy combination combines the results of the two halves. Tests
    clip outlying rows; the shift, the spread and the ratio in the table use rows as they are. If a label has more than
    20,000 rows, a random sample of 20,000 rows represents the label.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.screening import screen
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
            raise InvalidValueError(f"is not in ({least}, {most}]", parameter=parameter, value=value)
    if (control is None) == (background is None):
        problem = "Controls are given twice" if control is not None else "There are no controls"
        raise InvalidValueError(problem, advice="Give `control`, a label, or `background`, rows.")
    source = _opened(X, "the data")
    names, codes = coded(labels, source.count_rows())
    host, own = (source, code_of(control, names)) if background is None else (_opened(background, "the background"), -1)
    row_groups, host_groups = _groups(groups, source, background_groups, host)
    others = (codes != own) & (codes >= 0)
    if not others.any():
        raise InvalidValueError("has no label but the controls", parameter="labels", advice="Give rows to compare.")
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**31))
    numbers = sampled(np.flatnonzero(codes == own) if host is source else np.arange(host.count_rows()), rng)
    control_groups = None if host_groups is None else host_groups[numbers]
    target_groups = None if row_groups is None else row_groups[others]
    controls = Controls(read(host, numbers), control_groups, target_groups)
    sides = list(controls.sides(shrinkage, rng))
    sizes = _sizes(codes[others], sides)
    columns = source.columns or tuple(f"column {number}" for number in range(controls.rows.shape[1]))
    spreads = controls.rows.std(axis=0)
    if spreads.max() > UNEQUAL_SPREADS * spreads[spreads > 0.0].min(initial=np.inf):
        problem = "columns differ much in size, and only those with large values are searched"
        warn_user(f"{problem}: {columns[spreads.argmax()]}", advice="Scale the columns first, if their units differ.")
    found = []
    # Products are small, so that threads of BLAS would mostly wait for each other.
    with one_blas_thread():
        null = Null(sizes, [side.draws(sizes, n_draws, rng) for side in sides])
        for code, rows, chosen, n_rows in targets_of(source, codes, own, rng):
            row_group = None if row_groups is None else row_groups[chosen]
            row = row_of(names[code], rows, row_group, controls, sides, null, seed) | {"rows": n_rows}
            if n_rows > MOST_ROWS:
                row["note"] = row["note"] or f"a random sample of {MOST_ROWS:,} rows"
            for kind, scores in (("shift_columns", row.pop("welch")), ("spread_columns", row.pop("followed"))):
                row[kind] = signed(scores, columns, n_columns)
            found.append(row)
    noise = float(np.mean([side.white.variance for side in sides])) / len(columns)
    table, effects = judged(found, null, noise, level, effect), {row["label"]: row["effects"] for row in found}
    heat = leading_effects(table.index[:MOST_SHOWN], effects, columns, n_columns)
    return Screen(table, heat, control, len(controls.rows), controls.kind, level, effect)


def leading_effects(labels: Any, effects: dict[Any, Array], columns: Sequence[Any], n_columns: int) -> pd.DataFrame:
    """Return the effects of some labels in the columns of their largest effects, for a heat map."""
    import pandas as pd

    shown = np.array([effects[label] for label in labels])
    chosen = list(dict.fromkeys(np.argsort(-np.abs(shown), axis=1)[:, :n_columns].ravel()))[:MOST_SHOWN]
    return pd.DataFrame(shown[:, chosen], labels, [str(columns[int(one)]) for one in chosen])


def signed(scores: Array, columns: Sequence[Any], n_columns: int) -> str:
    """Return the names of the leading columns with their signs."""
    chosen = np.argsort(-np.abs(scores), kind="stable")[:n_columns]
    return " ".join(f"{'+' if scores[one] > 0 else '-'}{columns[one]}" for one in chosen if scores[one] != 0)


def row_of(
    name: Any, every: Array, groups: Codes | None, controls: Controls, sides: list[Side], null: Null, seed: int
) -> dict[str, Any]:
    """Return the measurements of one label: its row of the table without a verdict, and scores of the columns."""
    rows, groups, n_controls = controls.centred(every, groups)
    row: dict[str, Any] = {"label": name, **dict.fromkeys(COLUMNS, np.nan), "note": "", "size": 0, "scale": np.nan}
    row |= dict.fromkeys(("welch", "followed", "effects"), np.zeros(rows.shape[1], dtype=np.float32))
    if len(rows) < len(every):
        row["note"] = f"{len(every) - len(rows):,} rows are in groups without controls"
    units = None if groups is None else np.unique(groups, return_inverse=True)[1]
    subjects = units if controls.kind == "subjects" and units is not None else np.arange(len(rows))
    if len(rows) < 2 or not subjects.any():
        return row | {"note": row["note"] or ("one row" if len(rows) < 2 else "all rows are in one group")}
    rng = np.random.default_rng([seed, crc32(str(name).encode())])
    found = [side.measure(rows, subjects, n_controls, rng) for side in sides]
    tests = [null.test(len(rows), one["scaled"]) for one in found]
    row |= {name: float(np.mean([one.get(name, np.nan) for one in found])) for name in MEASURED}
    row |= {"statistic": float(np.nanmax(np.mean([z for z, _ in tests], axis=0))), "size": len(rows)}
    row |= {"p_value": combined(np.array([p for _, p in tests])), "scale": found[-1]["scale"]}
    if units is not None:
        row["agreement"] = float(np.mean([agreement(one["whitened"], units, one["noise"]) for one in found]))
    mean, error = rows.mean(0), np.sqrt(rows.var(0, ddof=1) / len(rows) + controls.variances / n_controls)
    row["welch"] = np.divide(mean, error, out=np.zeros(len(mean)), where=error > 0)
    row["effects"] = np.float32(mean / np.sqrt(np.maximum(controls.variances, 1e-12 * controls.variances.max())))
    if "vector" in found[-1]:
        row["followed"] = _correlations(rows, found[-1]["whitened"] @ found[-1]["vector"])
    return row


def agreement(rows: Array, units: Codes, noise: float) -> float:
    """Return the share of groups whose shift points the same way as the shift of the other groups.

    All groups share the error of the control mean. The expected square of this error, `noise`, is subtracted
    from the inner products of shifts.
    """
    counts = np.bincount(units)
    sums = sums_of(rows, units, len(counts))
    inner = (sums * (sums.sum(0) - sums)).sum(1) - noise * counts * (len(rows) - counts)
    return float(np.mean(inner > 0)) if len(counts) > 1 else np.nan


def _correlations(rows: Array, scores: Array) -> Array:
    """Return the correlation of every column with scores. The signs make the largest correlation positive."""
    rows, scores = rows - rows.mean(0), scores - scores.mean()
    length = np.linalg.norm(rows, axis=0) * np.linalg.norm(scores)
    found = np.divide(scores @ rows, length, out=np.zeros(rows.shape[1]), where=length > 0)
    return found * np.sign(found[np.argmax(np.abs(found))])


def _sizes(codes: Codes, sides: list[Side]) -> Codes:
    """Return the numbers of rows for which null draws are made.

    They reach from the size of the smallest label to the size of the largest label. They are at most LARGEST_SIZE, and
    at most half of the number of reference rows.
    """
    counts = np.bincount(codes)
    most = min(LARGEST_SIZE, *(len(side.white.reference) // 2 for side in sides))
    low, high = (int(np.clip(size, 2, most)) for size in (counts[counts > 0].min(), counts.max()))
    start = max(low, LEAST_SPREAD)
    steps = int(np.ceil(np.log2(max(high / start, 1)))) + 1
    larger = np.geomspace(start, max(high, start), steps).round()
    return np.unique([*range(low, start), *larger]).astype(np.intp)


# --- rows, labels and groups -----------------------------------------------------------------------------------------


def _opened(data: Any, name: str) -> Source:
    """Open a dataset that can be read several times."""
    source = open_dataset(data, name)
    return source if source.again else source.loaded()


def coded(labels: Any, n_rows: int) -> tuple[list[Any], Codes]:
    """Return the different labels, and for each row the number of its label. A missing label has the number -1."""
    import pandas as pd

    values = per_row(labels, n_rows, "the data", "labels")
    if values.dtype.kind in "fc" and np.mod(values[np.isfinite(values)], 1).any():
        problem = "has fractions, which cannot be names"
        raise InvalidTypeError(problem, parameter="labels", advice="Give words or whole numbers.")
    names = [None if word(value) == "" else value for value in values.tolist()]
    codes, known = pd.factorize(np.array(names, dtype=object))
    return list(known), codes.astype(np.intp)


def _groups(groups: Any, source: Source, others: Any, host: Source) -> tuple[Codes | None, Codes | None]:
    """Return the group of every row of the data, and of the dataset with the controls."""
    if groups is None:
        return None, None
    if host is not source and others is None:
        raise InvalidValueError("is required with `groups`", parameter="background_groups")
    words = [as_words(groups, source.count_rows(), source.name, "groups")]
    if host is not source:
        words.append(as_words(others, host.count_rows(), host.name, "background_groups"))
    own, theirs = np.split(np.unique(np.concatenate(words), return_inverse=True)[1], [len(words[0])])
    return own, own if host is source else theirs


def code_of(control: Any, names: list[Any]) -> int:
    """Return the number of the control label, which may be given as text."""
    for code, name in enumerate(names):
        if {word(control), str(control)} & {word(name), str(name)}:
            return code
    advice = f"There are {listed('label', sorted(map(word, names)))}."
    raise InvalidValueError("is not among the labels", parameter="control", value=control, advice=advice)


def read(source: Source, numbers: Codes) -> Array:
    """Return some rows as a dense array in double precision."""
    return np.asarray(to_host(dense(double(source.take(numbers)))), dtype=np.float64)


def sampled(numbers: Codes, rng: np.random.Generator) -> Codes:
    """Return the numbers of the rows, or of a random sample if there are too many."""
    return numbers if len(numbers) <= MOST_ROWS else np.sort(rng.choice(numbers, MOST_ROWS, replace=False))


def targets_of(
    source: Source, codes: Codes, own: int, rng: np.random.Generator
) -> Iterator[tuple[int, Array, Codes, int]]:
    """Read the rows of every label except the controls, several labels at a time.

    Yield the number of the label, its rows, the numbers of these rows, and its number of rows before sampling.
    """
    order, counts = np.argsort(codes, kind="stable"), np.bincount(codes[codes >= 0])
    wanted = dict(enumerate(np.split(order[len(order) - counts.sum() :], np.cumsum(counts)[:-1])))
    wanted.pop(own, None)
    chosen = {code: sampled(numbers, rng) for code, numbers in wanted.items()}
    totals = np.cumsum([len(numbers) for numbers in chosen.values()]) * (source.width or 1)
    for block in np.split(list(chosen), np.flatnonzero(np.diff(totals // BLOCK_NUMBERS)) + 1):
        rows = read(source, np.concatenate([chosen[code] for code in block]))
        parts = np.split(rows, np.cumsum([len(chosen[code]) for code in block])[:-1])
        for code, part in zip(block, parts, strict=True):
            yield code, part, chosen[code], len(wanted[code])


# --- table -----------------------------------------------------------------------------------------------


def judged(found: list[dict[str, Any]], null: Null, noise: float, level: float, effect: float) -> pd.DataFrame:
    """Return the table with q-values, detectable shifts and verdicts, the most significant label first."""
    import pandas as pd

    table = pd.DataFrame(found).set_index("label")
    tested = table["p_value"].notna()
    if tested.any():
        table.loc[tested, "q_value"] = false_discovery_control(table.loc[tested, "p_value"])
    hits = table["q_value"] < level
    # The largest p-value with which one more label would stand out.
    limit = level * min(hits.sum() + 1, len(table)) / len(table)
    sizes = zip(table["size"], table["scale"], strict=True)
    table["detectable"] = [null.detectable(size, scale, noise, limit) if size else np.inf for size, scale in sizes]
    table["verdict"] = np.where(hits, STANDS_OUT, np.where(table["detectable"] <= effect, NO_EVIDENCE, TOO_FEW))
    order = ["p_value", "statistic", "rows"]
    return table.sort_values(order, ascending=[True, False, False], kind="stable")[list(COLUMNS)]
