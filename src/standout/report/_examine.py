"""From a fitted model and its data to findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from standout import contrast
from standout._arrays import Float, Rows, stacked
from standout._checks import check_one_each, check_same_columns, check_whole
from standout._messages import InvalidTypeError, InvalidValueError, Message
from standout.estimators import KernelDiscriminativePCA
from standout.metrics import clustering_error
from standout.moments import project
from standout.pencil import solve
from standout.report._choices import cautions, choices, not_tested, recipe, repeated_ids
from standout.report._findings import Findings, Grey, Numbers, Points, Small, Stray, ViewPath
from standout.report._fit import Fit, open_fit
from standout.report._format import counted, joined, whole
from standout.report._path import Path, aligned_signs, find_path
from standout.report._placeholders import Placeholders
from standout.report._scores import (
    MOST_BACKGROUND_POINTS,
    MOST_CLUSTERED,
    MOST_TARGET_POINTS,
    LabelGroups,
    Labels,
    Look,
    OnScores,
    Projection,
    RowsSeen,
    Seen,
    alike_rows,
    as_number,
    as_word,
    bin_counts,
    bin_edges,
    kurtosis,
    look_at,
    mean_and_variance,
    sampled_rows,
)
from standout.report._strays import Strays, decided_by_few, robust_choice, sample_size, strays_of
from standout.selection import HARDLY_SHRUNKEN, ComponentTest, alike_message, analytic_test
from standout.sources import Backgrounds, Dataset

# Components whose scores are kept, and eigenvalues that are looked at beyond them.
MOST_COMPONENTS = 6
SCREE = 10
# Size of a problem up to which looking beyond takes no more than a second.
MOST_SCREE = 2000
# Columns whose values are kept for the rows that are drawn, and pixels of all images that are kept.
MOST_CELLS = 40
MOST_PIXELS = 1_500_000
# Pictures are made in single precision, whose largest number is 3e38.
MOST_DRAWN = 1e30
# The group of rows without labels.
ONE_GROUP = np.zeros(1, dtype=np.int64)


def examine(
    model: Any,
    target: Dataset,
    backgrounds: Backgrounds = None,
    *,
    features: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    labels: Any = None,
    label_name: str | None = None,
    image_shape: tuple[int, int] | None = None,
    title: str | None = None,
    target_name: str = "target",
    background_names: Sequence[str] | None = None,
    asked: Mapping[str, str] | None = None,
    notes: Iterable[Message | str] = (),
    test: ComponentTest | Literal[False] | None = None,
    with_path: bool = True,
    code: str | None = None,
    on_scores: OnScores | None = None,
) -> Findings:
    """What did this fit find, and what should one know of it?

    Gathers all that a report shows: scores of rows to draw, PCA's view of the same data, how the view changes along
    the method's parameter, which components are more than chance, which columns follow them, and what calls for care.

    The data can have any size: all numbers come from all rows, pictures from a random sample. Each dataset is read
    once, in batches, and once more if the model has not kept its moments, as for kernels. Scores of very many rows are
    kept in a temporary file meanwhile: 8 bytes for each row and component.

    Parameters
    ----------
    model : estimator
        A fitted `DiscriminativePCA`, `ContrastivePCA`, or one of their kernel versions; or a pipeline that ends in one.
    target : array-like, sparse matrix, frame, table, scan, or Dask array or frame, of shape (n, n_features)
        The target of the fit.
    backgrounds : dataset, or list or tuple of datasets, default=None
        The backgrounds of the fit.
    features : sequence of str, default=None
        Names of the columns. None takes those of the dataset, or numbers from 0.
    ids : sequence of length n, default=None
        Names of the target's rows. None takes those of the dataset, or their numbers from 0.
    labels : array-like of shape (n,), default=None
        Labels of the target's rows, for colours and to judge the view by: groups, or numbers on a scale. None takes
        those of the dataset, if it has some.
    label_name : str, default=None
        What the labels are called, such as the name of their column.
    image_shape : tuple of (height, width), default=None
        If the columns are the pixels of images, row by row: patterns are drawn as images.
    title : str, default=None
        The title of the report. None asks the question.
    target_name : str, default="target"
    background_names : sequence of str, default=None
        One for each background.
    asked : mapping of str to str, default=None
        What else to say of the question, such as the files that were read: pairs of a few words.
    notes : iterable of str or Message, default=()
        What happened to the data before the fit, and what the fit warned of: sentences, or messages as facts, which are
        phrased when they are shown.
    test : ComponentTest or False, default=None
        A test of the components, such as `standout.estimators.fitted_test` gives. None takes that of the model, or the
        one by formula where there is one. False takes that of the model only.
    with_path : bool, default=True
        Find the views along shrinkage, α or ε. This takes as long as some twenty fits of moments.
    code : str, default=None
        How to do the same in Python. None writes code that starts from tables in memory.
    on_scores : callable, default=None
        Called as ``on_scores(number, batch, scores, held_out)`` for every batch of every dataset, in the order of the
        rows: the number of the dataset (0 is the target), the batch, its scores along all components, as `transform`
        gives them, and its scores along components that were found without each row, or None.

    Returns
    -------
    Findings

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import examine
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> model = DiscriminativePCA(1).fit(target, background=background)
    >>> findings = examine(model, target, background, features=["size", "age", "iron", "zinc"])
    >>> findings.features[np.argmax(np.abs(findings.correlations[0]))]
    'zinc'
    >>> findings.test.n_significant
    1
    """
    fit = open_fit(model, target, backgrounds)
    names = [target_name, *_background_names(fit, background_names)]
    columns = _feature_names(fit, features)
    for given, what in ((ids, "ids"), (labels, "labels")):
        if given is not None:
            check_one_each(len(given), fit.counts[0], what, "row of the target")
    smooth = getattr(fit.model, "smooth", None)
    if image_shape is None and isinstance(smooth, tuple):
        image_shape = smooth
    if image_shape is not None:
        image_shape = check_image_shape(image_shape, fit.n_features)
    rows = _read_rows(fit, names, columns, ids, labels, on_scores, with_path, n_images=_n_images(fit, image_shape))
    if not rows.agree:
        # The model was fitted to other rows than these.
        fit = replace(fit.gathered() if fit.are_kept else fit, are_own=False)
        rows = _read_rows(fit, names, columns, ids, labels, None, with_path, n_images=_n_images(fit, image_shape))
    tested, untested = (test, None) if isinstance(test, ComponentTest) else _tested(fit, by_formula=test is None)
    linear = not fit.is_kernel
    return Findings(
        method=fit.method,
        asked={**_asked(fit, names), **(asked or {})},
        datasets=rows.datasets,
        features=columns,
        components=fit.model.components_ if linear else None,
        patterns=fit.model.patterns_ if linear else None,
        correlations=rows.correlations,
        spreads=fit.spreads,
        ratios=fit.ratios,
        ratio_errors=None if fit.held_out is None else fit.held_out.standard_errors,
        pca_ratio=_principal_ratio(fit),
        drawn_held_out=fit.draws_held_out,
        eigenvalues=fit.model.eigenvalues_,
        target_variance=fit.model.target_variance_,
        background_variance=fit.model.background_variance_,
        weights=fit.model.weights_,
        scree=_scree(fit),
        total_variance=fit.moments[0].total_variance if fit.moments else float("nan"),
        test=tested,
        bin_edges=rows.bin_edges,
        label_names=rows.groups.names,
        label_counts=rows.label_counts,
        n_other_labels=rows.groups.n_others,
        path=rows.path,
        clustering_error=rows.errors[0],
        pca_clustering_error=rows.errors[1],
        choices=(*choices(fit, names, columns, tested, untested), *rows.robust),
        cautions=(
            *_of_dependence(fit, rows),
            *map(_as_message, notes),
            *_of_placeholders(rows, columns),
            *_of_unit(rows.unit),
            *cautions(fit, columns, tested, rows.tails, rows.first),
            *decided_by_few(fit, rows.samples),
        ),
        code=recipe(fit) if code is None else code,
        version=_version(),
        title=title,
        label_name=label_name,
        image_shape=image_shape,
        side=getattr(fit.model, "side", "target"),
        in_order=isinstance(smooth, str),
        columns_used=getattr(fit.model, "columns_", None),
        column_frequency=getattr(fit.model, "column_frequency_", None),
        correlation_errors=rows.correlation_errors,
        cell_columns=rows.cell_columns,
        strays=rows.strays,
    )


# --- what follows from the rows --------------------------------------------------------------------------------------


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


def _read_rows(
    fit: Fit,
    names: Sequence[str],
    columns: Sequence[str],
    ids: Sequence[Any] | None,
    labels: Any,
    on_scores: OnScores | None,
    with_path: bool,
    *,
    n_images: int,
) -> FromRows:
    """Read each dataset once, and find all that follows from its rows."""
    d = min(int(fit.model.n_components_), MOST_COMPONENTS)
    path = find_path(fit, min(d, 2)) if with_path else None
    marks = Labels(labels)
    telling = _telling_columns(fit, d)
    strays = strays_of(fit, columns)
    with ExitStack() as files:
        looks = _looks(fit, path, d, ids, marks, telling, n_images, strays)
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
            _clustering_error(target.clustered.scores, target.clustered, groups),
            _clustering_error(target.clustered.pca, target.clustered, groups),
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


def _of_dependence(fit: Fit, rows: FromRows) -> Iterator[Message]:
    """Tell of rows that look as if they belong together, if nobody said so."""
    if not fit.has_background or fit.n_subjects is not None:
        return
    if rows.alike:
        yield alike_message(rows.alike)
    yield from repeated_ids(rows.datasets[0].ids or ())


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


def _background_names(fit: Fit, given: Sequence[str] | None) -> list[str]:
    n_backgrounds = len(fit.datasets) - 1
    if given is not None:
        check_one_each(len(given), n_backgrounds, "background names", "background")
        return [str(name) for name in given]
    known = getattr(fit.model, "background_labels_", None)
    if known is not None:
        return [str(label) for label in known]
    return ["background"] if n_backgrounds == 1 else [f"background {k + 1}" for k in range(n_backgrounds)]


def _feature_names(fit: Fit, given: Sequence[str] | None) -> tuple[str, ...]:
    if given is not None:
        check_same_columns(len(given), None, "the list of names", fit.n_features, None, "the target")
        return tuple(map(str, given))
    if not fit.moments:
        return ()
    return tuple(fit.columns or (f"column {index}" for index in range(fit.n_features)))


def check_image_shape(shape: Any, n_features: int) -> tuple[int, int]:
    """Check that columns are the pixels of images of this height and width."""
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise InvalidTypeError(
            "is not a height and a width",
            parameter="image_shape",
            value=shape,
            advice="Give two whole numbers, for example (28, 28).",
        )
    height, width = (check_whole(side, "image_shape") for side in shape)
    if height * width != n_features:
        raise InvalidValueError(
            "has {pixels} pixels, but there are {limit} columns",
            parameter="image_shape",
            value=tuple(shape),
            pixels=height * width,
            limit=n_features,
            advice="Give height and width of images whose pixels are the columns.",
        )
    return height, width


def _asked(fit: Fit, names: Sequence[str]) -> dict[str, str]:
    """Say what was asked."""
    counts = [f"{name} ({counted(n, 'row')})" for name, n in zip(names, fit.counts, strict=True)]
    against = {"background" if len(counts) == 2 else "backgrounds": joined(counts[1:])} if len(counts) > 1 else {}
    columns = {"columns": whole(fit.n_features)} if fit.moments else {}
    return {"method": fit.method, "target": counts[0], **against, **columns}


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


def _principal_ratio(fit: Fit) -> float | None:
    """Give the ratio of variances along PCA's first component."""
    if not (fit.moments and fit.has_background):
        return None
    target, *backgrounds = fit.moments
    filters = fit.principal[:, :1]
    variance = float(fit.model.weights_ @ np.array([part.variance(filters)[0] for part in backgrounds]))
    return float(target.variance(filters)[0]) / variance if variance > 0.0 else float("inf")


def _tested(fit: Fit, *, by_formula: bool) -> tuple[ComponentTest | None, Message | None]:
    """Give the test of the fit, or else the one by formula where it is exact; and why there is none."""
    known = getattr(fit.model, "component_test_", None)
    if known is not None:
        return known, None
    if not fit.has_background:
        return None, None
    if not by_formula:
        return None, not_tested("none were asked for")
    if fit.is_kernel or fit.is_contrastive:
        return None, None
    if not fit.is_plain:
        return None, not_tested("the formula knows the largest ratio over all columns only")
    if fit.n_subjects is not None:
        return None, not_tested("the formula is for independent rows, and these belong to subjects")
    if fit.degrees <= fit.n_features or not fit.is_formed:
        return None, not_tested("the formula needs more background rows than columns")
    if np.any(fit.model.shrinkage_ > HARDLY_SHRUNKEN):
        return None, not_tested("there is no formula for ratios with shrinkage")
    target, *backgrounds = fit.moments
    varying = int(np.sum(np.sum([part.variances for part in fit.moments], axis=0) > 0.0))
    kept = int(fit.model.n_components_)
    for some in (min(max(SCREE, kept), varying, target.count - 1), kept):
        # Dependent columns leave fewer directions than columns: then only the components of the fit are tested.
        try:
            return analytic_test(target, backgrounds, fit.model.weights_, n_components=some), None
        except InvalidValueError as error:
            reason = not_tested(error.problem, error.advice, limit=error.limit, **error.facts)
    return None, reason


def _scree(fit: Fit) -> Float:
    """Look at a few eigenvalues beyond the components that were kept."""
    model = fit.model
    own: Float = model.eigenvalues_
    if fit.is_kernel or not fit.is_plain or not fit.is_formed or len(own) >= SCREE or fit.size > MOST_SCREE:
        return own[:SCREE]
    target, *backgrounds = fit.moments
    k = min(SCREE, target.n_features, sum(part.count - 1 for part in fit.moments))
    if not backgrounds:
        pencil = contrast.principal(target)
    elif fit.is_contrastive:
        pencil = contrast.contrastive(target, backgrounds, model.weights_, model.alpha_)
    else:
        pencil = contrast.discriminative(target, backgrounds, model.weights_, model.shrinkage_)
    try:
        values = solve(pencil, k).values
    except ValueError:
        # Constant or dependent columns leave fewer directions than columns.
        return own
    return np.concatenate([own, values[len(own) :]])


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


def _clustering_error(scores: Sequence[Float], rows: RowsSeen, groups: LabelGroups) -> float | None:
    """Give the share of rows that K-means puts into the wrong group."""
    if not groups.are_separate:
        return None
    view, own = np.concatenate(scores), groups.group_of[np.concatenate(rows.numbers)]
    if len(np.unique(own)) < 2 or len(np.unique(view, axis=0)) < len(groups.names):
        return None
    return clustering_error(view[:, :2], own)


def _as_message(note: Message | str) -> Message:
    return note if isinstance(note, Message) else Message("{note}", note=note.removesuffix("."), kind="note")


def _version() -> str:
    from standout import __version__

    return __version__
