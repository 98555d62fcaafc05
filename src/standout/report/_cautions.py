"""Cautions about the data and the fit, each with a text and complete advice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import stats

from standout._arrays import Float, dense, is_sparse
from standout._messages import CautionWarning
from standout.moments import RowMoments
from standout.report._drawn import Fit, Sample
from standout.report._words import environment, shortened

# Neighbouring rows are compared within at most MOST_WINDOWS windows. A window has WINDOW rows, or a quarter of all rows
# if this is less. If a window would have less than LEAST_WINDOW rows, rows are not compared.
WINDOW, LEAST_WINDOW, MOST_WINDOWS = 50, 12, 40
# Neighbouring rows look dependent if their correlation is above LIKE and more than SURELY standard errors above 0.
LIKE, SURELY = 0.2, 3.3
# A few rows decide the view if FEW_ROWS of all rows, or a single row, have HALF of the variance along component 1.
FEW_ROWS, HALF = 0.02, 0.5
# Columns whose spreads differ by more than this factor probably have different units.
UNEQUAL_SPREADS = 100.0
# If there are fewer background rows than this factor times the number of columns, in-sample ratios are much too large.
ROWS_PER_COLUMN = 5
# A placeholder, such as -9999, exceeds the size of all other values of its column by more than the factor FAR.
FAR, LEAST_PLACEHOLDER = 100.0, 99.0
PLACEHOLDERS = (32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0, 4294967295.0)
FEW_VALUES = 5
# Maximum number of columns that a caution names.
MOST_NAMED = 5
NEAR_PCA = 0.9
PARAMETER = re.compile(r"`(\w+)`")
LOCAL_PATH = re.compile(r"'(?:/|~|[A-Za-z]:[\\/]|\\\\)[^']*[\\/]([^'\\/]+)'")


# The kinds of cautions, the most important first.
KINDS = (
    *("dependent rows", "no held-out ratio", "near PCA", "few rows", "ids", "means", "note", "PCA is better"),
    *("shared subjects", "placeholder", "units", "constant in the background", "equal columns"),
    *("few background rows", "codes", "constant"),
)
Caution = dict[str, Any]


def worded(cautions: Iterable[Caution], names: Any = None) -> list[Caution]:
    """Return cautions with kind, text and advice, the most important first.

    Parameters
    ----------
    cautions : iterable of dict
        Each caution has a kind and its facts.
    names : mapping from str to str, default=None
        Option names of the command line for parameters; None for Python.
    """
    words, told = environment(html=False).get_template("cautions.j2").module, []
    for one in cautions:
        said = [words.text(one), words.advice(one, names is not None)]
        text, advice = (CautionWarning(" ".join(part.split()).removesuffix(".")).phrased(names) for part in said)
        # Users may send a page to others, so remove the folders from the paths of files.
        text, advice = (PARAMETER.sub(r"\1", LOCAL_PATH.sub(r"'\1'", part)) for part in (text, advice))
        advice = advice if said[1].strip() else ""
        told.append({"kind": one["kind"], "text": f"{text[0].upper()}{text[1:]}", "advice": advice})
    return sorted(told, key=lambda caution: KINDS.index(caution["kind"]))


def of_the_fit(fit: Fit, found: dict[str, Any]) -> Iterator[Caution]:
    """Yield cautions about the chosen parameter, the means, the number of rows, and single rows."""
    one, pca, parts = found["components"][0], found["pca"], found["datasets"][1:]
    if parts and not found["held_out"]:
        yield {"kind": "no held-out ratio"}
    if pca is not None and pca["near"]:
        value = found["path"]["value"] if found["path"] else None
        yield {"kind": "near PCA", "parameter": found["parameter"], "value": value}
    elif pca is not None and None not in (pca["ratio"], one["interval"][1]) and pca["ratio"] > one["interval"][1]:
        yield {"kind": "PCA is better", "ratio": pca["ratio"]}
    if found["center"] == "own" and parts and not found["kernel"]:
        pairs = [(each["shift"] or 0.0, each["ratio"] or 0.0) for each in found["components"]]
        far = max((shift for shift, ratio in pairs if shift > max(ratio, 1.0)), default=0.0)
        if far or found["verdict"] == "shift":
            yield {"kind": "means", "apart": float(np.sqrt(far))}
    if parts and not found["kernel"]:
        unit = "rows" if parts[0]["subjects"] is None else "subjects"
        total, width = sum(part[unit] - 1 for part in parts), found["n_columns"]
        if total < ROWS_PER_COLUMN * width:
            facts = {"unit": unit, "count": total + len(parts), "n_columns": width, "fewer": total + len(parts) < width}
            yield {"kind": "few background rows", **facts}
    subjects = [set(part.subjects.tolist()) for part in fit.datasets if part.subjects is not None]
    shared = len(set.intersection(*subjects)) if len(subjects) > 1 else 0
    if shared:
        yield {"kind": "shared subjects", "count": shared}
    if not fit.robust:
        # Held-out components of a row are found without this row. An outlying row may therefore be far away only
        # along the fitted component, so check the in-sample scores, too.
        deciding = [few_rows(scores[:, 0], fit.ids) for scores in (fit.scores[0], fit.fitted[0])]
        yield from [caution for caution in deciding if caution][:1]


# --- dependent rows --------------------------------------------------------------------------------------------------


def neighbours(scores: Float) -> float:
    """Return the correlation between the scores of neighbouring rows, or 0 if it may be due to chance.

    The correlation is the median over windows of rows. Rows that are sorted by class do not look dependent,
    because few windows contain a change of class.
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


def dependence(scores: Sequence[Float], ids: Sequence[Any] | None, **facts: Any) -> Caution | None:
    """Return a caution if rows without subjects look dependent."""
    alike = max(map(neighbours, scores))
    words = [] if ids is None else [str(word) for word in ids]
    found = subject_pattern(words) if words else None
    n_different = len(set(words))
    if found is not None:
        facts |= dict(zip(("pattern", "subjects", "example"), found, strict=True))
    elif 1 < n_different <= len(words) // 2:
        facts |= {"rows": len(words), "n_ids": n_different}
    elif alike:
        # Advise blocks that are several times longer than the correlation length of an autoregressive series.
        length = max(2, min(int(np.ceil(8.0 * (1.0 + alike) / max(1.0 - alike, 0.05))), min(map(len, scores)) // 12))
        facts |= {"correlation": alike, "length": length}
    else:
        return None
    return {"kind": "dependent rows", **facts}


# --- single rows -----------------------------------------------------------------------------------------------------


def few_rows(scores: Float, ids: Sequence[Any] | None) -> Caution | None:
    """Return a caution if a few rows of the target have half of the variance of these scores."""
    squares, n_rows = (scores - np.median(scores)) ** 2, len(scores)
    total, most = float(squares.sum()), max(1, int(FEW_ROWS * len(scores)))
    if n_rows < 4 or not total > 0.0:
        return None
    # Only the largest squares matter, and sorting all of a million rows takes long.
    largest = np.argpartition(squares, n_rows - most)[n_rows - most :]
    order = largest[np.argsort(-squares[largest], kind="stable")]
    needed = int(np.searchsorted(np.cumsum(squares[order]), HALF * total)) + 1
    share = float(squares[order[:needed]].sum()) / total
    # Compare the share with a limit. The largest of n_rows normal values exceeds this limit with probability 0.001
    # (Grubbs' test).
    t = float(stats.t.isf(0.0005 / n_rows, n_rows - 2))
    if needed > most or share < (n_rows - 1) / n_rows * t**2 / (n_rows - 2 + t**2):
        return None
    named = [f"row {k}" if ids is None else shortened(ids[k]) for k in order[: min(needed, 3)].tolist()]
    return {"kind": "few rows", "rows": named, "more": max(needed - 3, 0), "share": share}


# --- columns ---------------------------------------------------------------------------------------------------------


def columns(samples: Sequence[Sample], names: Sequence[str], scaled: bool) -> Iterator[Caution]:
    """Yield cautions about columns, from samples of the rows."""
    spreads = []
    for part in samples:
        # Rounding can make the variance of equal values positive: set their spread to exactly 0.
        low, high = (np.ravel(dense(end)) for end in (part.rows.min(axis=0), part.rows.max(axis=0)))
        rows: Any = part.rows
        variances = RowMoments(rows).variances if is_sparse(rows) else np.var(rows, axis=0, dtype=np.float64)
        spreads.append(np.where(low == high, 0.0, np.sqrt(variances)))
    target = spreads[0]
    constant = [spread <= 0.0 for spread in spreads]
    rows = None if is_sparse(samples[0].rows) else dense(samples[0].rows)
    codes = []
    if rows is not None and len(rows) >= 10:
        # Find columns that number the rows, and columns with a few whole numbers, like codes of categories.
        whole = (rows == np.round(rows)).all(axis=0)
        counting, few = whole & (np.diff(rows, axis=0) > 0.0).all(axis=0), np.zeros_like(whole)
        # If most columns have whole numbers, they are probably counts or answers to questions, not codes.
        if whole.mean() <= 0.5:
            few[whole] = [1 < len(np.unique(column)) <= FEW_VALUES for column in rows[:, whole].T]
        codes = [("ids", counting), ("codes", few)]
    alone = np.logical_and.reduce(constant[1:]) & ~constant[0] & (len(samples) > 1)
    for kind, chosen in (("constant", np.logical_and.reduce(constant)), ("constant in the background", alone), *codes):
        places = np.flatnonzero(chosen).tolist()
        if places:
            named = [names[place] for place in places[:MOST_NAMED]]
            yield {"kind": kind, "columns": named, "more": max(len(places) - MOST_NAMED, 0)}
    varying = target > 0.0
    if not scaled and varying.any():
        least, most = int(np.argmin(np.where(varying, target, np.inf))), int(np.argmax(target))
        if target[most] > UNEQUAL_SPREADS * target[least]:
            yield {"kind": "units", "columns": [names[most], names[least]], "sizes": target[[most, least]].tolist()}
    # Equal columns have equal random sums. The random sums of different columns are practically never equal.
    draw = np.random.default_rng(0)
    sums = np.array([draw.standard_normal(part.rows.shape[0]) @ part.rows for part in samples for _ in range(2)])
    order = np.lexsort(sums)
    same = (np.diff(sums[:, order], axis=1) == 0.0).all(axis=0) & (target[order[1:]] > 0.0)
    pairs = [sorted(order[place : place + 2].tolist()) for place in np.flatnonzero(same)]
    if pairs:
        both = [[names[j] for j in pair] for pair in pairs[:MOST_NAMED]]
        yield {"kind": "equal columns", "pairs": both, "more": max(len(pairs) - MOST_NAMED, 0)}
    for value, place, count in () if rows is None else _placeholders(rows):
        yield {"kind": "placeholder", "value": int(value), "column": names[place], "rows": count}


def _placeholders(rows: Float) -> Iterator[tuple[float, int, int]]:
    """Yield values such as -9999, far beyond all other values of their column, with column and number of rows."""
    for extreme in (rows.min(axis=0), rows.max(axis=0)):
        size = np.abs(extreme)
        for place in np.flatnonzero((size >= LEAST_PLACEHOLDER) & (size == np.round(size)))[:1000].tolist():
            if size[place] not in PLACEHOLDERS and set(f"{size[place]:.0f}") != {"9"}:
                continue
            is_value = rows[:, place] == extreme[place]
            others = np.abs(rows[~is_value, place])
            if others.size and size[place] > FAR * others.max():
                yield float(extreme[place]), place, int(is_value.sum())
