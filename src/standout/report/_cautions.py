"""What in the data and in the fit calls for care: each caution has a weight, a text and complete advice."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from standout._arrays import Float, Rows, dense, is_sparse
from standout._messages import CautionWarning
from standout.report._drawn import Sample
from standout.report._words import MINUS, brief, counted, joined, number, percent, shortened

# Rows are looked at in windows of this length, or of a quarter of the rows; fewer than the least say nothing.
WINDOW, LEAST_WINDOW, MOST_WINDOWS = 50, 12, 40
# Neighbouring rows are dependent above this correlation, if it is so many standard errors from 0.
LIKE, SURELY = 0.2, 3.3
# A few rows decide if this share of all rows, or one row, has half of the variance along component 1.
FEW_ROWS, HALF = 0.02, 0.5
# Columns whose spreads differ by more than this factor are hardly in the same units.
UNEQUAL_SPREADS = 100.0
# With fewer background rows than this times the columns, in-sample ratios are much too large.
ROWS_PER_COLUMN = 5
# A placeholder is at least so many times as large as all other values of its column.
FAR, LEAST_PLACEHOLDER = 100.0, 99.0
PLACEHOLDERS = (32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0, 4294967295.0)
FEW_VALUES = 5
NEAR_PCA = 0.9
LOCAL_PATH = re.compile(r"'(?:/|~|[A-Za-z]:[\\/]|\\\\)[^']*[\\/]([^'\\/]+)'")


class Cautions:
    """Collects cautions, and phrases them in the names of a surface.

    Parameters
    ----------
    names : mapping from str to str or None
        Option names of the command line for parameters; None for Python.
    """

    def __init__(self, names: Any = None) -> None:
        self._names = names
        self._told: list[dict[str, Any]] = []

    def add(self, weight: int, kind: str, problem: str, advice: str = "") -> None:
        """Add a caution. Parameters in its texts are in backticks."""
        words = CautionWarning(f"{problem[0].upper()}{problem[1:]}").phrased(self._names)
        said = CautionWarning(advice.removesuffix(".")).phrased(self._names) if advice else ""
        self._told.append({"kind": kind, "weight": weight, "text": words, "advice": said})

    def option(self, python: str, command: str) -> str:
        """Return the words for Python or those for the command line."""
        return python if self._names is None else command

    def notes(self, notes: Iterable[Any]) -> None:
        """Add warnings of reading and fitting."""
        for note in notes:
            text = note.phrased(self._names) if isinstance(note, CautionWarning) else str(note)
            # A page may travel: it names files, and not where they lie on this machine.
            text = LOCAL_PATH.sub(r"'\1'", text)
            self._told.append({"kind": "note", "weight": 70, "text": text, "advice": ""})

    def sorted(self) -> list[dict[str, Any]]:
        """Return all cautions, the heaviest first."""
        return sorted(self._told, key=lambda caution: -caution["weight"])


# --- dependent rows --------------------------------------------------------------------------------------------------


def neighbours(scores: Float) -> float:
    """Return the correlation of the scores of neighbouring rows; 0 if chance explains it.

    It is computed in windows, and the median is returned: rows sorted by class have few windows with a change.
    """
    size = min(WINDOW, len(scores) // 4)
    if size < LEAST_WINDOW:
        return 0.0
    starts = np.linspace(0, len(scores) - size, min(len(scores) // size, MOST_WINDOWS)).astype(np.intp)
    windows = scores[starts[:, np.newaxis] + np.arange(size)]
    variances = windows.var(axis=1, ddof=1)
    steps = 0.5 * np.mean(np.diff(windows, axis=1) ** 2, axis=1)
    varying = variances > 1e-18 * np.max(scores**2, axis=0, initial=1e-300)
    correlations = np.where(varying, 1.0 - steps / np.where(varying, variances, 1.0), 0.0)
    found = float(np.max(np.median(correlations, axis=0)))
    error = (1.0 if len(starts) < 3 else 1.25) / np.sqrt(len(starts) * size)
    return found if found > max(LIKE, SURELY * error) else 0.0


def subject_pattern(ids: Sequence[str]) -> tuple[str, int, str] | None:
    """Return a pattern that finds subjects in ids such as mouse3_12, the number of subjects, and an example."""
    for separator in "_.:/- ":
        starts = [word.rpartition(separator)[0] for word in ids]
        if all(starts) and 1 < len(set(starts)) <= len(ids) // 3:
            return f"(.*){re.escape(separator)}", len(set(starts)), ids[0]
    return None


def dependence(
    told: Cautions, scores: Sequence[Float], ids: Sequence[Any] | None, tested: bool, id_name: str | None = None
) -> bool:
    """Add a caution if rows look dependent and no subjects were named; return whether they do."""
    alike = max(map(neighbours, scores))
    words = None if ids is None else [str(word) for word in ids]
    found = None if words is None else subject_pattern(words)
    repeated = words is not None and 1 < len(set(words)) <= len(words) // 2
    if not (alike or found or repeated):
        return False
    named = "NAME, with the column of the ids," if id_name is None else shlex.quote(shortened(id_name))
    so = "so the p-value is too small" if tested else "so a p-value of single rows would be too small"
    # Several times as long as the memory of an autoregressive series with this correlation.
    length = max(2, min(int(np.ceil(8.0 * (1.0 + alike) / max(1.0 - alike, 0.05))), min(map(len, scores)) // 12))
    advice = told.option(
        f"Name the subject of each row (`groups` and `background_groups`), or, for rows in the order of time, use "
        f"groups=standout.blocks(len(X), {length}), background_groups=standout.blocks(len(background), {length}).",
        "Name the column of the subjects with --subject-column, or, for rows in the order of time, use "
        f"--blocks {length}.",
    )
    if found is not None:
        pattern, n_subjects, example = found
        text = f"rows look dependent: ids such as {shortened(example)} have {n_subjects} different beginnings, {so}"
        advice = told.option(
            f'Name the subjects: groups=[re.match(r"{pattern}", name)[1] for name in ids].',
            f"Name the subjects: --subject-column {named} --subject-pattern '{pattern}'.",
        )
    elif repeated and words is not None:
        text = f"rows look dependent: {len(words):,} rows have {len(set(words)):,} different ids, {so}"
        ids_as = "Use the ids as subjects:"
        advice = told.option(f"{ids_as} groups=ids.", f"{ids_as} --subject-column {named}.")
    else:
        text = f"rows look dependent: the scores of neighbouring rows correlate ({alike:.2f}), {so}"
    told.add(95, "dependent rows", text, advice)
    return True


# --- the fit ---------------------------------------------------------------------------------------------------------


def few_rows(told: Cautions, scores: Float, ids: Sequence[Any] | None) -> bool:
    """Add a caution if a few rows of the target have half of the variance of these scores; return whether."""
    squares = (scores - np.median(scores)) ** 2
    order = np.argsort(-squares, kind="stable")
    total = float(squares.sum())
    if len(scores) < 4 or not total > 0.0:
        return False
    needed = int(np.searchsorted(np.cumsum(squares[order]), HALF * total)) + 1
    share = float(squares[order[:needed]].sum()) / total
    if needed > max(1, int(FEW_ROWS * len(scores))) or share < _largest_share(len(scores)):
        return False
    named = joined([f"row {k}" if ids is None else shortened(ids[k]) for k in order[: min(needed, 3)].tolist()])
    more = f" and {needed - 3:,} more" if needed > 3 else ""
    have = f"{'has' if needed == 1 else 'have'} {percent(share)} of the target's variance along component 1"
    advice = 'Look at them, and compare with a fit without them or with `robust`="rows".'
    told.add(80, "few rows", f"a few rows decide the view: {named}{more} {have}", advice)
    return True


def _largest_share(n_rows: int) -> float:
    """Return the share of all squares that the largest of normal numbers exceeds once in 1,000 (Grubbs' test)."""
    t = float(stats.t.isf(0.0005 / n_rows, n_rows - 2))
    return (n_rows - 1) / n_rows * t**2 / (n_rows - 2 + t**2)


def choice(told: Cautions, found: dict[str, Any]) -> None:
    """Add cautions on the choice: no held-out ratio, a choice near PCA, and PCA that does as well."""
    one, pca = found["components"][0], found["pca"]
    if not found["held_out"]:
        text = "scores of fitted rows make the datasets look more different than they are"
        told.add(90, "no held-out ratio", text, "Fit with `cv=5`, and with at least 2 rows per fold.")
    if pca is not None and pca["near"]:
        name, value = found["parameter"], found["path"]["value"] if found["path"] else None
        text = f"the background was not used: the choice ended near PCA ({name} {brief(value)})"
        advice = "Check that the background varies in what the target should be rid of, or set a smaller value: "
        told.add(85, "near PCA", text, f"{advice}`{name}`.")
    elif pca is not None and None not in (pca["ratio"], one["interval"][1]) and pca["ratio"] > one["interval"][1]:
        text = f"PCA does better here: the ratio of its first component is {number(pca['ratio'])} on the same rows"
        told.add(65, "PCA is better", text, "Look at both views.")


def shift(told: Cautions, found: dict[str, Any]) -> None:
    """Add a caution if the means differ more than the spreads and the fit compares spreads alone."""
    if found["verdict"] == "shift" and found["center"] == "own":
        advice = 'Use `center`="background" to include the shift, and read "Do the means differ?".'
        told.add(75, "means", "this view compares spreads alone, and the means differ more", advice)


def few_background_rows(told: Cautions, counts: Sequence[int], n_columns: int, unit: str) -> None:
    """Add a caution if the backgrounds have few rows, or subjects, for the number of columns."""
    total = sum(count - 1 for count in counts)
    if total < ROWS_PER_COLUMN * n_columns:
        more = "more columns than background" if total <= n_columns else "few background"
        text = f"there are {more} {unit} ({sum(counts):,} {unit}, {n_columns:,} columns)"
        told.add(
            45,
            "few background rows",
            f"{text}, so eigenvalues and scores of fitted rows exaggerate the difference",
            "Use the ratio and the held-out scores.",
        )


# --- columns ---------------------------------------------------------------------------------------------------------


def columns(told: Cautions, samples: Sequence[Sample], names: Sequence[str], scaled: bool) -> None:
    """Add cautions on columns, from the rows that are drawn."""
    spreads = [_spread(part.rows) for part in samples]
    target, others = spreads[0], spreads[1:]
    constant = [spread <= 0.0 for spread in spreads]
    everywhere = np.logical_and.reduce(constant)
    if everywhere.any():
        told.add(30, "constant", f"the same in every row: {_listed(everywhere, names)}. They cannot contribute")
    alone = np.logical_and.reduce(constant[1:]) & ~constant[0]
    if others and alone.any():
        text = f"constant in the background but not in the target: {_listed(alone, names)}. Any variation stands out"
        advice = "Leave such columns out if that is not what you look for."
        told.add(55, "constant in the background", text, advice)
    varying = target > 0.0
    if not scaled and varying.any():
        low, high = int(np.argmin(np.where(varying, target, np.inf))), int(np.argmax(target))
        if target[high] > UNEQUAL_SPREADS * target[low]:
            sizes = [(shortened(names[k]), number(float(target[k]), 2)) for k in (high, low)]
            text = f"columns differ much in size: {sizes[0][0]} varies by {sizes[0][1]}, {sizes[1][0]} by {sizes[1][1]}"
            told.add(60, "units", text, 'If units differ, use `scale`="pooled".')
    _equal(told, samples, names, target)
    if not is_sparse(samples[0].rows):
        _codes(told, dense(samples[0].rows), names)
        for value, column, count in _placeholders(dense(samples[0].rows)):
            where = f"{counted(count, 'row')} of {shortened(names[column])}"
            text = f"{f'{value:,.0f}'.replace('-', MINUS)} in {where} may stand for a missing value"
            told.add(62, "placeholder", text, "Replace it before the fit.")


def _spread(rows: Rows) -> Float:
    """Return the standard deviation of each column; 0 for a column of equal values."""
    if is_sparse(rows):
        mean = np.asarray(rows.mean(axis=0)).ravel()
        square = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
        spread: Float = np.sqrt(np.maximum(square - mean**2, 0.0))
        return np.where(spread > 1e-7 * np.abs(mean), spread, 0.0)
    table = np.asarray(rows, dtype=np.float64)
    return np.where((table == table[:1]).all(axis=0), 0.0, table.std(axis=0))


def _listed(chosen: npt.NDArray[np.bool_], names: Sequence[str]) -> str:
    places = np.flatnonzero(chosen)
    more = f" and {len(places) - 5:,} more" if len(places) > 5 else ""
    return ", ".join(shortened(names[place]) for place in places[:5].tolist()) + more


def _equal(told: Cautions, samples: Sequence[Sample], names: Sequence[str], spread: Float) -> None:
    """Add a caution on columns that repeat another one in every row."""
    draw = np.random.default_rng(0)
    # Equal columns have equal random sums; others practically never have.
    sums = np.array([draw.standard_normal(part.rows.shape[0]) @ part.rows for part in samples for _ in range(2)])
    order = np.lexsort(sums)
    same = (np.diff(sums[:, order], axis=1) == 0.0).all(axis=0) & (spread[order[1:]] > 0.0)
    pairs = [sorted((int(order[place]), int(order[place + 1]))) for place in np.flatnonzero(same)]
    if pairs:
        named = ", ".join(f"{shortened(names[j])} (as {shortened(names[i])})" for i, j in pairs[:5])
        more = f" and {len(pairs) - 5:,} more" if len(pairs) > 5 else ""
        text = f"columns repeat others in every row: {named}{more}"
        told.add(50, "equal columns", text, "Leave one of each pair out.")


def _codes(told: Cautions, rows: Float, names: Sequence[str]) -> None:
    """Add a caution on columns that number the rows, or have few whole values like codes of categories."""
    whole = (rows == np.round(rows)).all(axis=0)
    # Counts are whole numbers, too; there, most columns are.
    if len(rows) < 10 or whole.mean() > 0.5:
        return
    counting = whole & (np.diff(rows, axis=0) > 0.0).all(axis=0)
    few = np.zeros_like(whole)
    few[whole] = [1 < len(np.unique(column)) <= FEW_VALUES for column in rows[:, whole].T]
    for chosen, what in ((counting, "number the rows, like an id"), (few, "have few whole values, like codes")):
        if chosen.any():
            text = f"columns {what}: {_listed(chosen, names)}"
            told.add(40, "codes", text, "Leave them out if they are not measurements.")


def _placeholders(rows: Float) -> Iterator[tuple[float, int, int]]:
    """Find values such as -9999 that are far beyond all others of their column."""
    for extreme in (rows.min(axis=0), rows.max(axis=0)):
        size = np.abs(extreme)
        for place in np.flatnonzero((size >= LEAST_PLACEHOLDER) & (size == np.round(size)))[:1000].tolist():
            if size[place] not in PLACEHOLDERS and set(f"{size[place]:.0f}") != {"9"}:
                continue
            is_value = rows[:, place] == extreme[place]
            others = np.abs(rows[~is_value, place])
            if others.size and size[place] > FAR * others.max():
                yield float(extreme[place]), place, int(is_value.sum())
