"""What in the data of a fit calls for care, as facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from standout._arrays import Float, Rows, is_sparse
from standout._messages import Message
from standout.moments import Moments
from standout.report._fit import Fit
from standout.report._format import shortened
from standout.report._from_rows import MOST_DRAWN, FromRows
from standout.report._strays import decided_by_few
from standout.selection import ComponentTest, alike_message

# With fewer background rows than this times the columns, ratios are a good deal too large by chance.
ROWS_PER_COLUMN = 5
# Columns whose spreads differ by more than this factor are hardly in the same units.
UNEQUAL_SPREADS = 1000.0
FEW_ROWS = 10
# Mean fourth power of standardised scores beyond which tails are heavy: 3 for a Gaussian, 6 for a Laplace distribution.
HEAVY = 4.5
# Means further apart than this many standard deviations are told.
LARGE_SHIFT = 2.0
# Different values up to which a column may be a code.
FEW_VALUES = 5
LEAVE_OUT = "Leave such columns out if they are no measurements."
# Columns that a message names, and pairs of them that are compared.
MOST_NAMED, MOST_COMPARED = 5, 100
# Numbers that differ by this share are equal up to rounding.
EQUAL = 1e-10


def cautions(
    fit: Fit,
    features: Sequence[str],
    test: ComponentTest | None,
    rows: FromRows,
    notes: Iterable[Message | str] = (),
) -> tuple[Message, ...]:
    """Say what in these data calls for care, the most important first.

    Parameters
    ----------
    fit : Fit
    features : sequence of str
        Names of the columns.
    test : ComponentTest or None
    rows : FromRows
    notes : iterable of Message or str
        What happened to the data before the fit, and what the fit warned of.
    """
    known = bool(fit.moments)
    return (
        *_of_dependence(fit, rows),
        *map(_as_message, notes),
        *_of_placeholders(rows, features),
        *_of_unit(rows.unit),
        *(_constant_columns(fit, features) if known else ()),
        *(_equal_columns(fit, features) if known else ()),
        *_singular_background(fit),
        *_few_rows(fit, test),
        *(_unequal_units(fit, features) if known else ()),
        *_missed_by_kernel(fit),
        *_heavy_tails(test, rows.tails),
        *_larger_everywhere(test),
        *(_different_means(fit, features) if known else ()),
        *(_columns_that_are_no_measurements(rows.first, features) if known else ()),
        *decided_by_few(fit, rows.samples),
    )


def _as_message(note: Message | str) -> Message:
    return note if isinstance(note, Message) else Message("{note}", note=note.removesuffix("."), kind="note")


def _of_dependence(fit: Fit, rows: FromRows) -> Iterator[Message]:
    """Tell of rows that look as if they belong together, if nobody said so."""
    if not fit.has_background or fit.n_subjects is not None:
        return
    if rows.alike:
        yield alike_message(rows.alike)
    yield from _repeated_ids(rows.datasets[0].ids or ())


def _repeated_ids(ids: Sequence[str]) -> Iterator[Message]:
    """Point out ids that name subjects rather than rows: equal ones, or many that differ in a number at the end."""
    advice = "If that is so, name the subjects: {p.groups}."
    facts: dict[str, Any] = {"n_rows": len(ids), "advice": advice, "kind": "repeated ids"}
    different = set(ids)
    if 1 < len(different) <= len(ids) // 2:
        yield Message(
            "{n_rows} rows have {n_ids} different ids: several may be of one subject, and p-values by rows are then "
            "too small",
            n_ids=len(different),
            **facts,
        )
        return
    found = [re.fullmatch(r"(.+)[_.:/-]\d+", word) for word in ids]
    starts = {match[1] for match in found if match is not None}
    if None not in found and 1 < len(starts) <= len(ids) // 3:
        yield Message(
            "the ids of {n_rows} rows, such as {example}, have {n_ids} different beginnings: several may be of one "
            "subject, and p-values by rows are then too small",
            n_ids=len(starts),
            example=shortened(ids[0]),
            **facts,
        )


def _of_placeholders(rows: FromRows, columns: Sequence[str]) -> Iterator[Message]:
    for part, found in zip(rows.datasets, rows.placeholders, strict=True):
        yield from found.messages(part.name, part.n_rows, columns)


def _of_unit(unit: float) -> Iterator[Message]:
    if unit != 1.0:
        yield Message(
            "scores are drawn in units of {unit}: pictures cannot show numbers beyond {limit}",
            unit=f"{unit:.0e}",
            limit=f"{MOST_DRAWN:.0e}",
            advice="Rescale the columns, or look for values that stand for missing ones.",
            kind="unit",
        )


def _heavy_tails(test: ComponentTest | None, tails: Sequence[Float]) -> Iterator[Message]:
    if test is not None and test.method == "analytic" and np.max(tails) >= HEAVY:
        yield Message(
            "scores have heavier tails than a Gaussian, so that p-values by formula are too small",
            advice="Fit with {p.test:permutation}.",
            kind="heavy tails",
        )


def _larger_everywhere(test: ComponentTest | None) -> Iterator[Message]:
    """Tell of a target that varies more than the backgrounds in all directions."""
    if test is not None and test.scale is not None:
        yield Message(
            "the target varies more than the background in every direction, in half of them at least {scale} times. "
            "The test asks which directions vary even more than that",
            scale=float(test.scale),
            advice="Check that both have the same units and were processed alike.",
            kind="scale",
        )


def _different_means(fit: Fit, features: Sequence[str]) -> Iterator[Message]:
    """Tell of means that differ by more than anything that is shown: the methods compare variances only."""
    if not fit.has_background or fit.ratios is None:
        return
    target, *backgrounds = fit.moments
    mean = sum(weight * part.mean for weight, part in zip(fit.model.weights_, backgrounds, strict=True))
    variances = sum(weight * part.variances for weight, part in zip(fit.model.weights_, backgrounds, strict=True))
    spreads = np.sqrt(np.maximum(variances, 0.0))
    shifts = np.divide(np.abs(target.mean - mean), spreads, out=np.zeros_like(spreads), where=spreads > 0.0)
    most = int(np.argmax(shifts))
    if shifts[most] > max(LARGE_SHIFT, float(np.sqrt(np.max(fit.ratios)))):
        yield Message(
            "the means differ: {column} by {shift} standard deviations of the background. Scores are centred at the "
            "mean of the target, and the method compares variances only: it does not look for such differences",
            column=shortened(features[most]),
            shift=float(shifts[most]),
            advice="Compare the means of the columns, too.",
            kind="means",
        )


def _columns_that_are_no_measurements(first: Rows | None, features: Sequence[str]) -> Iterator[Message]:
    """Point out columns that count the rows, and those of whole numbers with few values among other columns."""
    if first is None or is_sparse(first) or first.shape[0] < FEW_ROWS:
        return
    rows = np.asarray(first, dtype=np.float64)
    are_whole = (rows == np.round(rows)).all(axis=0)
    # Counts are whole numbers, too; there, most columns are.
    if are_whole.mean() > 0.5:
        return
    counting = are_whole & (np.diff(rows, axis=0) == 1.0).all(axis=0)
    if counting.any():
        yield _of_columns(
            "made of whole numbers that count the rows, like an id", counting, features, advice=LEAVE_OUT, kind="ids"
        )
    n_values = np.array(
        [len(np.unique(column)) if whole else 0 for column, whole in zip(rows.T, are_whole, strict=True)]
    )
    codes = (n_values > 1) & (n_values <= FEW_VALUES)
    if codes.any():
        yield _of_columns(
            "made of whole numbers with few values, like codes of categories",
            codes,
            features,
            advice=LEAVE_OUT,
            kind="codes",
        )


def _constant_columns(fit: Fit, features: Sequence[str]) -> Iterator[Message]:
    target, *backgrounds = (_is_constant(part) for part in fit.moments)
    everywhere = np.logical_and.reduce([target, *backgrounds])
    if everywhere.any():
        yield _of_columns(
            "the same in every row of every dataset, and cannot contribute", everywhere, features, kind="constant"
        )
    if backgrounds:
        only_there = np.logical_and.reduce(backgrounds) & ~target
        if only_there.any():
            yield _of_columns(
                "constant in the background but not in the target: any variation there stands out, however small",
                only_there,
                features,
                advice="Leave such columns out if that is not what you look for.",
                kind="constant in the background",
            )


def _equal_columns(fit: Fit, features: Sequence[str]) -> Iterator[Message]:
    """Point out columns that have the values of another one in every row."""
    spreads = fit.spreads
    # Equal columns have equal covariances with a random score; others practically never do.
    filters = np.random.default_rng(0).standard_normal((fit.n_features, 1))
    filters /= np.where(spreads > 0.0, spreads, np.inf)[:, np.newaxis]
    covariances = fit.moments[0].apply(filters)[:, 0]
    order = np.argsort(covariances, kind="stable")
    near = np.diff(covariances[order]) <= EQUAL * np.sqrt(fit.moments[0].variance(filters)) * spreads[order[1:]]
    places = np.flatnonzero(near & (spreads[order[1:]] > 0.0))[:MOST_COMPARED]
    pairs = np.sort([order[places], order[places + 1]], axis=0)
    for part in fit.moments:
        apart = np.zeros((fit.n_features, pairs.shape[1]))
        apart[pairs, np.arange(pairs.shape[1])] = [[1.0], [-1.0]]
        sizes = np.abs(part.mean[pairs[0]]) + np.sqrt(np.maximum(part.variances[pairs[0]], 0.0))
        steps = np.abs(part.mean[pairs[0]] - part.mean[pairs[1]]) + np.sqrt(np.maximum(part.variance(apart), 0.0))
        # A variance is a difference of squares, with half of the digits.
        pairs = pairs[:, steps <= np.sqrt(EQUAL) * sizes]
    if pairs.size:
        named = [f"{shortened(features[j])} (as {shortened(features[i])})" for i, j in pairs.T[:MOST_NAMED]]
        several = pairs.shape[1] > 1
        yield Message(
            ("{n_columns} columns repeat others" if several else "a column repeats another one")
            + " in every row, and what they share counts twice: {columns}"
            + (" and others" if pairs.shape[1] > MOST_NAMED else ""),
            n_columns=pairs.shape[1],
            columns=named,
            advice="Leave one of two equal columns out.",
            kind="equal columns",
        )


def _of_columns(problem: str, chosen: np.ndarray, features: Sequence[str], **fields: Any) -> Message:
    """Say something of one or several columns."""
    places = np.flatnonzero(chosen)
    more = len(places) - MOST_NAMED
    start = "1 column ({columns}) is " if len(places) == 1 else "{n_columns} columns ({columns}"
    if len(places) > 1:
        start += " and {n_more} more) are " if more > 0 else ") are "
    columns = [shortened(features[place]) for place in places[:MOST_NAMED]]
    return Message(start + problem, columns=columns, n_columns=len(places), n_more=max(more, 0), **fields)


def _is_constant(moments: Moments) -> np.ndarray:
    """Tell which columns have no spread beyond rounding."""
    rounding = 1e-15 * np.abs(moments.mean)
    return np.asarray(moments.variances <= rounding**2)


def _singular_background(fit: Fit) -> Iterator[Message]:
    absent = int(np.isinf(fit.model.eigenvalues_).sum())
    if absent:
        yield Message(
            "the background is singular: along {n_absent} component(s) it does not vary at all, so the ratio is "
            "infinite. Such components come first, ordered by the target's variance",
            n_absent=absent,
            advice="Shrinkage, for example {p.shrinkage:0.1}, gives every direction a finite ratio.",
            kind="singular",
        )


def _few_rows(fit: Fit, test: ComponentTest | None) -> Iterator[Message]:
    counts = fit.counts if fit.n_subjects is None else fit.n_subjects
    unit = "row" if fit.n_subjects is None else fit.unit
    if counts[0] < FEW_ROWS:
        reason = "too few for a pattern" if unit == "row" else f"a pattern may be that of one {unit}"
        yield Message(
            "the target has only {n_rows} {units}: {reason}",
            n_rows=counts[0],
            units=unit + "s",
            reason=reason,
            kind="few rows",
        )
    if not fit.has_background or fit.is_kernel or fit.is_contrastive:
        return
    facts: dict[str, Any] = {"n_features": fit.n_features, "kind": "few background rows"}
    held_out = "" if fit.held_out is None else ", as this report does"
    if fit.degrees <= fit.n_features:
        both = held_out if test is not None and test.method == "permutation" else ""
        yield Message(
            "there are more columns ({n_features}) than the background has rows ({n_rows}). Only shrinkage makes a "
            "comparison possible, and fitted ratios are far too large",
            n_rows=sum(fit.counts[1:]),
            advice="Go by ratios of held-out rows, and by a permutation test{both}.",
            both=both,
            **facts,
        )
    elif fit.degrees_of(counts) < ROWS_PER_COLUMN * fit.n_features:
        yield Message(
            "the background has few {units} ({n_rows}) for so many columns ({n_features}): fitted ratios are then too "
            "large",
            n_rows=sum(counts[1:]),
            units=unit + "s",
            advice="Go by ratios of held-out rows{held_out}.",
            held_out=held_out,
            **facts,
        )


def _unequal_units(fit: Fit, features: Sequence[str]) -> Iterator[Message]:
    spreads = fit.spreads
    varying = spreads > 0.0
    if fit.is_kernel or not varying.any() or not _depends_on_units(fit):
        return
    low, high = int(np.argmin(np.where(varying, spreads, np.inf))), int(np.argmax(spreads))
    if spreads[high] >= UNEQUAL_SPREADS * spreads[low]:
        yield Message(
            "columns differ much in size: {large} varies by about {large_spread}, {small} by {small_spread}. This "
            "method depends on the units of the columns",
            large=shortened(features[high]),
            large_spread=float(spreads[high]),
            small=shortened(features[low]),
            small_spread=float(spreads[low]),
            advice="If the units differ, scale the columns of all datasets alike.",
            kind="units",
        )


def _depends_on_units(fit: Fit) -> bool:
    shrinkage: Float = np.atleast_1d(getattr(fit.model, "shrinkage_", np.ones(1)))
    return not fit.has_background or fit.is_contrastive or bool(np.max(shrinkage, initial=0.0) > 0.01)


def _missed_by_kernel(fit: Fit) -> Iterator[Message]:
    residual = float(getattr(fit.model, "residual_", 0.0))
    # NaN is that of random Fourier features, which have no residual.
    if residual > 0.05:
        yield Message(
            "the {n_coordinates} coordinates of the kernel leave out {residual:.0%} of it",
            n_coordinates=int(fit.model.feature_map_.n_coordinates),
            residual=residual,
            advice="A larger {p.rank} leaves out less.",
            kind="kernel",
        )
