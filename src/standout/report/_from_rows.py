"""What follows from the rows of all datasets: scores to draw, their statistics, and how columns follow them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from standout._arrays import Float, Rows, stacked
from standout._messages import Message
from standout.estimators import KernelDiscriminativePCA
from standout.metrics import clustering_error
from standout.moments import project
from standout.report._findings import Grey, Numbers, Points, Small, Stray, ViewPath
from standout.report._fit import Fit
from standout.report._labels import LabelGroups, Labels, as_number, as_word
from standout.report._path import Path, aligned_signs, find_path
from standout.report._placeholders import Placeholders
from standout.report._scores import (
    MOST_BACKGROUND_POINTS,
    MOST_CLUSTERED,
    MOST_TARGET_POINTS,
    Look,
    OnScores,
    Projection,
    RowsSeen,
    Seen,
    alike_rows,
    bin_counts,
    bin_edges,
    kurtosis,
    look_at,
    mean_and_variance,
    sampled_rows,
)
from standout.report._strays import Strays, ordinary_range, robust_choice, sample_size, strays_of

# Components whose scores are kept.
MOST_COMPONENTS = 6
# Columns whose values are kept for the rows that are drawn, and pixels of all images that are kept.
MOST_CELLS = 40
MOST_PIXELS = 1_500_000
# Pictures are made in single precision, whose largest number is 3e38.
MOST_DRAWN = 1e30
# The group of rows without labels.
ONE_GROUP = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class FromRows:
    """What follows from the rows of all datasets.

    Attributes
    ----------
    agree : bool
        Whether the rows are those of the moments that the model has kept.
    datasets : tuple of Points
    groups : LabelGroups
    bin_edges, label_counts, correlations, correlation_errors, cell_columns, path
        As in `Findings`.
    errors : tuple of two floats or None
        Share of rows that K-means puts into the wrong group: in the view of the fit, and in PCA's.
    tails : list of ndarray
        The mean fourth power of the standardised scores of each dataset.
    alike : float
        How much more alike the scores of neighbouring rows are than chance makes them; 0 if no more.
    first : array of shape (n, n_features)
        The first rows of the target.
    unit : float
        What scores were divided by to be drawn.
    placeholders : list of Placeholders
        Values in each dataset that may stand for missing ones.
    strays : tuple of Stray or None
    robust : tuple of Message
        What robust weights have found, if rows have them.
    samples : list of rows
        Some rows of each dataset, if the view may be decided by a few.
    """

    agree: bool
    datasets: tuple[Points, ...]
    groups: LabelGroups
    bin_edges: Float
    label_counts: Numbers
    correlations: Float | None
    correlation_errors: Float | None
    cell_columns: Numbers
    path: ViewPath | None
    errors: tuple[float | None, float | None]
    tails: list[Float]
    alike: float
    first: Rows | None
    unit: float
    placeholders: list[Placeholders]
    strays: tuple[Stray, ...] | None
    robust: tuple[Message, ...]
    samples: list[Rows]


def read_rows(
    fit: Fit,
    names: Sequence[str],
    columns: Sequence[str],
    ids: Sequence[Any] | None,
    labels: Any,
    on_scores: OnScores | None,
    with_path: bool,
    image_shape: tuple[int, int] | None,
) -> FromRows:
    """Read each dataset once, and find all that follows from its rows."""
    d = min(int(fit.model.n_components_), MOST_COMPONENTS)
    path = find_path(fit, min(d, 2)) if with_path else None
    marks = Labels(labels)
    telling = _telling_columns(fit, d)
    strays = strays_of(fit, columns)
    with ExitStack() as files:
        looks = _looks(fit, path, d, ids, marks, telling, _n_images(fit, image_shape), strays)
        seen = look_at(fit.datasets, looks, on_scores, files)
        target = seen[0]
        groups = marks.settled() if target.shown.labels else LabelGroups((), 0, ONE_GROUP)
        edges = bin_edges([part.kept for part in seen])
        counts = [bin_counts(target.kept, edges, groups.group_of, max(len(groups.names), 1))]
        counts += [bin_counts(part.kept, edges, ONE_GROUP, 1) for part in seen[1:]]
        correlations = _correlations(fit, target, d)
        moments = [mean_and_variance(part.kept) for part in seen]
        tails = [kurtosis(part.kept, *own) for part, own in zip(seen, moments, strict=True)]
        alike = max(alike_rows(part.kept, part.n_rows) for part in seen)
        variances = [variance for _, variance in moments] if strays is None else [one.variances for one in strays]
    own, fitted, pca = (
        [np.concatenate(getattr(part.shown, view)) for part in seen] for view in ("scores", "fitted", "pca")
    )
    along = [block for part in seen for block in part.shown.path] if path is not None else []
    unit = _drawing_unit([*own, *fitted, *pca, *along])
    if unit != 1.0:
        own, fitted, pca = ([scores / unit for scores in view] for view in (own, fitted, pca))
    signs = aligned_signs(pca[0], own[0][:, :2])
    datasets = tuple(
        Points(
            name=name,
            n_rows=part.n_rows,
            rows=_shown_rows(fit, number),
            scores=own[number].astype(np.float32),
            fitted_scores=fitted[number].astype(np.float32) if fit.draws_held_out else None,
            variances=variances[number],
            pca_scores=(pca[number] * signs).astype(np.float32),
            counts=counts[number].sum(axis=0),
            ids=tuple(part.shown.ids) or None,
            cells=_cells(fit, part.shown.cells, telling) if number == 0 else None,
            images=_grey(part.shown.images) if number == 0 else None,
            n_subjects=None if fit.n_subjects is None else fit.n_subjects[number],
            unit=fit.unit,
            **_labels_of(part.shown, groups),
            **({} if strays is None else _weights_of(strays[number])),
        )
        for number, (name, part) in enumerate(zip(names, seen, strict=True))
    )
    drawn = None
    if path is not None:
        drawn = path.drawn(np.concatenate(along) / unit, np.concatenate(fitted)[:, :2], len(own[0]))
    return FromRows(
        agree=fit.agrees_with([part.n_rows for part in seen], [part.mean for part in seen]),
        datasets=datasets,
        groups=groups,
        bin_edges=edges,
        label_counts=counts[0][: len(groups.names)],
        correlations=correlations,
        correlation_errors=_correlation_errors(fit, target),
        cell_columns=telling,
        path=drawn,
        errors=(
            _clustering_error(target.clustered.scores, target.clustered, groups, fit.is_robust),
            _clustering_error(target.clustered.pca, target.clustered, groups, fit.is_robust),
        ),
        tails=tails,
        alike=alike,
        first=target.first,
        unit=unit,
        placeholders=[part.placeholders for part in seen],
        strays=None if strays is None else tuple(stray for one in strays for stray in one.listed),
        robust=() if strays is None else (robust_choice(fit, names, strays),),
        samples=[stacked(part.sampled) for part in seen if part.sampled],
    )


def _weights_of(strays: Strays) -> dict[str, Any]:
    return {
        "row_weights": strays.weights,
        "outlying": strays.outlying,
        "n_outlying": strays.n_outlying,
        "n_wild": strays.n_wild,
    }


def _drawing_unit(scores: Sequence[Float]) -> float:
    """Give the unit in which scores are drawn: pictures are made in single precision."""
    most = max((float(np.abs(part).max(initial=0.0)) for part in scores), default=0.0)
    return 10.0 ** np.floor(np.log10(most)) if most > MOST_DRAWN else 1.0


def _looks(
    fit: Fit,
    path: Path | None,
    d: int,
    ids: Sequence[Any] | None,
    labels: Labels,
    columns: Numbers,
    n_images: int,
    strays: list[Strays] | None,
) -> list[Look]:
    """Say what to look at in each dataset."""
    pca = _principal_view(fit)
    return [
        Look(
            project=fit.model._projection,
            held_out=None if fit.held_out is None else partial(fit.held_out_scores, dataset=number),
            draws_held_out=fit.draws_held_out,
            n_shown=d,
            pca=pca,
            path=None if path is None else path.project,
            shown=_shown_rows(fit, number),
            clustered=sampled_rows(fit.counts[0] if number == 0 else 0, MOST_CLUSTERED),
            labels=labels if number == 0 else None,
            ids=None if ids is None or number > 0 else np.asarray(ids, dtype=object),
            with_mean=not fit.is_kernel,
            with_products=number == 0 and fit.is_kernel and bool(fit.moments),
            fold_of=fit.held_out.fold_of if number == 0 and fit.held_out is not None and fit.moments else None,
            n_folds=0 if fit.held_out is None else fit.held_out.n_folds,
            cells=columns if number == 0 else columns[:0],
            n_images=n_images if number == 0 else 0,
            strays=None if strays is None else strays[number],
            sampled=sampled_rows(fit.counts[number], sample_size(fit)) if sample_size(fit) else columns[:0],
        )
        for number in range(len(fit.datasets))
    ]


def _shown_rows(fit: Fit, number: int) -> Numbers:
    """Give the rows of a dataset that are drawn."""
    each = MOST_BACKGROUND_POINTS // max(len(fit.datasets) - 1, 1)
    return sampled_rows(fit.counts[number], each if number else MOST_TARGET_POINTS)


def _labels_of(rows: RowsSeen, groups: LabelGroups) -> dict[str, Any]:
    """Give the labels of the rows that are drawn, if they have some: as words, and as groups or numbers on a scale."""
    if not rows.labels:
        return {}
    words = {"labels": tuple(map(as_word, rows.labels))}
    if groups.names:
        return {**words, "groups": groups.group_of[np.concatenate(rows.numbers)]}
    return {**words, "values": np.array([as_number(label) for label in rows.labels])}


def _principal_view(fit: Fit) -> Projection:
    """Give the function from rows to their scores in PCA's view of the target."""
    if fit.moments:
        return partial(project, mean=fit.moments[0].mean, filters=fit.principal)
    # The first columns of a precomputed kernel are the target's: kernel PCA takes the place of PCA.
    n_target = fit.counts[0]
    kernel = fit.datasets[0].rows()[:, :n_target]
    kernel_pca = KernelDiscriminativePCA(min(2, n_target - 1), kernel="precomputed").fit(kernel)
    return lambda rows: kernel_pca._projection(rows[:, :n_target])


def _correlations(fit: Fit, seen: Seen, d: int) -> Float | None:
    """Correlate each column with each score, over the target's rows."""
    if not fit.moments:
        return None
    target = fit.moments[0]
    # The mean of the scores is 0: they are centred by the mean of the target.
    covariances = seen.products / seen.total if fit.is_kernel else target.apply(fit.model.components_[:d].T).T
    variances = np.maximum(fit.model.target_variance_[:d], 0.0)
    lengths = np.sqrt(variances)[:, np.newaxis] * fit.spreads
    # What does not vary has no correlation.
    quotient: Float = np.divide(covariances, lengths, out=np.zeros_like(covariances), where=lengths > 0.0)
    return np.clip(quotient, -1.0, 1.0)


def _correlation_errors(fit: Fit, seen: Seen) -> Float | None:
    """Give the standard errors of the correlations, from the correlations with held-out scores in each fold."""
    if fit.held_out is None or not fit.moments:
        return None
    products, sums = seen.fold_products, seen.fold_sums
    counts = sums[:, -1, -1]
    used = counts > 1
    means = products[used, -1] / counts[used, np.newaxis]
    own = sums[used, :-1, -1] / counts[used, np.newaxis]
    squares = np.einsum("kdd->kd", sums[used][:, :-1, :-1]) / counts[used, np.newaxis] - own**2
    covariances = (
        products[used, :-1] / counts[used, np.newaxis, np.newaxis] - own[:, :, np.newaxis] * means[:, np.newaxis]
    )
    lengths = np.sqrt(np.maximum(squares, 0.0))[:, :, np.newaxis] * fit.spreads
    by_fold = np.divide(covariances, lengths, out=np.zeros_like(covariances), where=lengths > 0.0)
    errors: Float = by_fold.std(axis=0, ddof=1) / np.sqrt(used.sum()) if used.sum() > 1 else np.zeros_like(by_fold[0])
    return errors


def _telling_columns(fit: Fit, d: int) -> Numbers:
    """Choose columns whose values tell what distinguishes rows: those that follow a component, or that vary most."""
    if not fit.moments:
        return np.zeros(0, dtype=np.int64)
    sizes = fit.spreads
    if not fit.is_kernel:
        patterns = np.abs(fit.moments[0].apply(fit.model.components_[:d].T))
        lengths = np.where(fit.spreads > 0.0, fit.spreads, np.inf)[:, np.newaxis]
        sizes = np.max(patterns / lengths / np.maximum(np.max(patterns / lengths, axis=0), 1e-300), axis=1)
    return np.sort(np.argsort(-sizes, kind="stable")[:MOST_CELLS]).astype(np.int64)


def _cells(fit: Fit, cells: Sequence[Float], columns: Numbers) -> Small | None:
    """Give values in sixteenths of the standard deviation of their column: fine enough for means, and small."""
    if not cells:
        return None
    spreads = np.where(fit.spreads > 0.0, fit.spreads, 1.0)[columns]
    scaled = (np.concatenate(cells) - fit.moments[0].mean[columns]) / spreads
    return np.clip(np.round(16.0 * scaled), -127, 127).astype(np.int8)


def _n_images(fit: Fit, image_shape: tuple[int, int] | None) -> int:
    return 0 if image_shape is None else MOST_PIXELS // fit.n_features


def _grey(images: Sequence[Float]) -> Grey | None:
    """Give rows as grey images, with the least and the largest value of all in black and white, but for a few."""
    if not images:
        return None
    rows = np.concatenate(images)
    low, high = np.quantile(rows, [0.005, 0.995])
    return np.clip(255.0 * (rows - low) / max(high - low, 1e-300), 0.0, 255.0).astype(np.uint8)


def _clustering_error(scores: Sequence[Float], rows: RowsSeen, groups: LabelGroups, robust: bool) -> float | None:
    """Give the share of rows that K-means puts into the wrong group.

    With robust weights, rows that are out of place count as if they were at the edge of all others: K-means would make
    a group of one row far away.
    """
    if not groups.are_separate:
        return None
    view, own = np.concatenate(scores), groups.group_of[np.concatenate(rows.numbers)]
    if len(np.unique(own)) < 2 or len(np.unique(view, axis=0)) < len(groups.names):
        return None
    plane = view[:, :2]
    return clustering_error(np.clip(plane, *ordinary_range(plane)) if robust else plane, own)
