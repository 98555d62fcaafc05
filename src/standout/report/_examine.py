"""From a fitted model and its data to findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float
from standout._checks import check_one_each, check_same_columns
from standout._messages import InvalidValueError, Message
from standout.estimators import KernelDiscriminativePCA
from standout.metrics import clustering_error
from standout.moments import project
from standout.pencil import solve
from standout.report._choices import cautions, choices, not_tested, recipe
from standout.report._findings import Findings, Numbers, Points, ViewPath
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
    as_number,
    as_word,
    bin_counts,
    bin_edges,
    kurtosis,
    look_at,
    mean_and_variance,
    sampled_rows,
)
from standout.selection import ComponentTest, analytic_test
from standout.sources import Backgrounds, Dataset

# Components whose scores are kept, and eigenvalues that are looked at beyond them.
MOST_COMPONENTS = 6
SCREE = 10
# Size of a problem up to which looking beyond takes no more than a second.
MOST_SCREE = 2000
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
    target_name: str = "target",
    background_names: Sequence[str] | None = None,
    asked: Mapping[str, str] | None = None,
    notes: Iterable[Message | str] = (),
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
    target_name : str, default="target"
    background_names : sequence of str, default=None
        One for each background.
    asked : mapping of str to str, default=None
        What else to say of the question, such as the files that were read: pairs of a few words.
    notes : iterable of str or Message, default=()
        What happened to the data before the fit, and what the fit warned of: sentences, or messages as facts, which are
        phrased when they are shown.
    with_path : bool, default=True
        Find the views along shrinkage, α or ε. This takes as long as some twenty fits of moments.
    code : str, default=None
        How to do the same in Python. None writes code that starts from tables in memory.
    on_scores : callable, default=None
        Called as ``on_scores(number, batch, scores)`` for every batch of every dataset, in the order of the rows: the
        number of the dataset (0 is the target), the batch, and its scores along all components, as `transform` gives
        them.

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
    rows = _read_rows(fit, names, ids, labels, on_scores, with_path)
    if not rows.agree:
        # The model was fitted to other rows than these.
        fit = fit.gathered()
        rows = _read_rows(fit, names, ids, labels, None, with_path)
    test, untested = _tested(fit)
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
        eigenvalues=fit.model.eigenvalues_,
        target_variance=fit.model.target_variance_,
        background_variance=fit.model.background_variance_,
        weights=fit.model.weights_,
        scree=_scree(fit),
        total_variance=fit.moments[0].total_variance if fit.moments else float("nan"),
        test=test,
        bin_edges=rows.bin_edges,
        label_names=rows.groups.names,
        label_counts=rows.label_counts,
        n_other_labels=rows.groups.n_others,
        path=rows.path,
        clustering_error=rows.errors[0],
        pca_clustering_error=rows.errors[1],
        choices=tuple(choices(fit, names, test, untested)),
        cautions=(
            *map(_as_message, notes),
            *_of_placeholders(rows, columns),
            *_of_unit(rows.unit),
            *cautions(fit, columns, test, rows.tails),
        ),
        code=recipe(fit) if code is None else code,
        version=_version(),
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
    bin_edges, label_counts, correlations, path
        As in `Findings`.
    errors : tuple of two floats or None
        Share of rows that K-means puts into the wrong group: in the view of the fit, and in PCA's.
    tails : list of ndarray
        The mean fourth power of the standardised scores of each background.
    unit : float
        What scores were divided by to be drawn.
    placeholders : list of Placeholders
        Values in each dataset that may stand for missing ones.
    """

    agree: bool
    datasets: tuple[Points, ...]
    groups: LabelGroups
    bin_edges: Float
    label_counts: Numbers
    correlations: Float | None
    path: ViewPath | None
    errors: tuple[float | None, float | None]
    tails: list[Float]
    unit: float
    placeholders: list[Placeholders]


def _read_rows(
    fit: Fit,
    names: Sequence[str],
    ids: Sequence[Any] | None,
    labels: Any,
    on_scores: OnScores | None,
    with_path: bool,
) -> FromRows:
    """Read each dataset once, and find all that follows from its rows."""
    d = min(int(fit.model.n_components_), MOST_COMPONENTS)
    path = find_path(fit, min(d, 2)) if with_path else None
    marks = Labels(labels)
    with ExitStack() as files:
        seen = look_at(fit.datasets, _looks(fit, path, d, ids, marks), on_scores, files)
        target = seen[0]
        groups = marks.settled() if target.shown.labels else LabelGroups((), 0, ONE_GROUP)
        edges = bin_edges([part.kept for part in seen])
        counts = [bin_counts(target.kept, edges, groups.group_of, max(len(groups.names), 1))]
        counts += [bin_counts(part.kept, edges, ONE_GROUP, 1) for part in seen[1:]]
        correlations = _correlations(fit, target, d)
        tails = [kurtosis(part.kept) for part in seen[1:]]
    own, pca = ([np.concatenate(getattr(part.shown, view)) for part in seen] for view in ("scores", "pca"))
    along = [block for part in seen for block in part.shown.path] if path is not None else []
    unit = _drawing_unit([*own, *pca, *along])
    if unit != 1.0:
        own, pca = ([scores / unit for scores in view] for view in (own, pca))
    signs = aligned_signs(pca[0], own[0][:, :2])
    datasets = tuple(
        Points(
            name=name,
            n_rows=part.n_rows,
            rows=_shown_rows(fit, number),
            scores=own[number].astype(np.float32),
            pca_scores=(pca[number] * signs).astype(np.float32),
            counts=counts[number].sum(axis=0),
            ids=tuple(part.shown.ids) or None,
            **_labels_of(part.shown, groups),
        )
        for number, (name, part) in enumerate(zip(names, seen, strict=True))
    )
    drawn = None
    if path is not None:
        drawn = path.drawn(np.concatenate(along) / unit, np.concatenate(own)[:, :2], len(own[0]))
    return FromRows(
        agree=not fit.are_kept or fit.agrees_with([part.n_rows for part in seen], [part.mean for part in seen]),
        datasets=datasets,
        groups=groups,
        bin_edges=edges,
        label_counts=counts[0][: len(groups.names)],
        correlations=correlations,
        path=drawn,
        errors=(
            _clustering_error(target.clustered.scores, target.clustered, groups),
            _clustering_error(target.clustered.pca, target.clustered, groups),
        ),
        tails=tails,
        unit=unit,
        placeholders=[part.placeholders for part in seen],
    )


def _drawing_unit(scores: Sequence[Float]) -> float:
    """Give the unit in which scores are drawn: pictures are made in single precision."""
    most = max((float(np.abs(part).max(initial=0.0)) for part in scores), default=0.0)
    return 10.0 ** np.floor(np.log10(most)) if most > MOST_DRAWN else 1.0


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


def _looks(fit: Fit, path: Path | None, d: int, ids: Sequence[Any] | None, labels: Labels) -> list[Look]:
    """Say what to look at in each dataset."""
    pca = _principal_view(fit)
    return [
        Look(
            project=fit.model._projection,
            n_shown=d,
            pca=pca,
            path=None if path is None else path.project,
            shown=_shown_rows(fit, number),
            clustered=sampled_rows(fit.counts[0] if number == 0 else 0, MOST_CLUSTERED),
            labels=labels if number == 0 else None,
            ids=None if ids is None or number > 0 else np.asarray(ids, dtype=object),
            with_mean=fit.are_kept,
            with_products=number == 0 and fit.is_kernel and bool(fit.moments),
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
        target = fit.moments[0]
        k = min(2, target.n_features, target.count - 1)
        return partial(project, mean=target.mean, filters=solve(contrast.principal(target), k).vectors)
    # The first columns of a precomputed kernel are the target's: kernel PCA takes the place of PCA.
    n_target = fit.counts[0]
    kernel = fit.datasets[0].rows()[:, :n_target]
    kernel_pca = KernelDiscriminativePCA(min(2, n_target - 1), kernel="precomputed").fit(kernel)
    return lambda rows: kernel_pca._projection(rows[:, :n_target])


def _tested(fit: Fit) -> tuple[ComponentTest | None, Message | None]:
    """Give the test of the fit, or else the one by formula if it applies; and why it does not."""
    known = getattr(fit.model, "component_test_", None)
    if known is not None:
        return known, None
    if not fit.has_background or fit.is_kernel or fit.is_contrastive:
        return None, None
    if fit.degrees <= fit.n_features or not fit.is_formed:
        return None, not_tested("the formula needs more background rows than columns")
    target, *backgrounds = fit.moments
    varying = int(np.sum(np.sum([part.variances for part in fit.moments], axis=0) > 0.0))
    kept = int(fit.model.n_components_)
    some = min(max(SCREE, kept), varying, target.count - 1)
    shares: Float = fit.model.shrinkage_

    def test(n_components: int) -> ComponentTest:
        # With shrinkage, the plain ratios of the fitted components are tested.
        plain = shares if np.any(shares > 0.0) else None
        return analytic_test(target, backgrounds, fit.model.weights_, plain, n_components=n_components)

    try:
        return test(some), None
    except ValueError:
        pass
    try:
        # Dependent columns leave fewer directions than columns: test only the components of the fit.
        return test(kept), None
    except InvalidValueError as error:
        return None, not_tested(error.problem, error.advice, limit=error.limit, **error.facts)


def _scree(fit: Fit) -> Float:
    """Look at a few eigenvalues beyond the components that were kept."""
    model = fit.model
    own: Float = model.eigenvalues_
    if fit.is_kernel or not fit.is_formed or len(own) >= SCREE or fit.size > MOST_SCREE:
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
    if fit.is_kernel:
        mean, variances = mean_and_variance(seen.kept)
        # The mean is 0 up to rounding: scores are centred by the mean of the target.
        covariances = seen.products / seen.n_rows - np.outer(mean, target.mean)
    else:
        covariances = target.apply(fit.model.components_[:d].T).T
        variances = np.maximum(fit.model.target_variance_[:d], 0.0)
    lengths = np.sqrt(variances)[:, np.newaxis] * fit.spreads
    # What does not vary has no correlation.
    quotient: Float = np.divide(covariances, lengths, out=np.zeros_like(covariances), where=lengths > 0.0)
    return np.clip(quotient, -1.0, 1.0)


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
