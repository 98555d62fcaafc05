"""From a fitted model and its data to findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float
from standout._checks import check_one_each, check_same_columns
from standout.estimators import KernelDiscriminativePCA
from standout.metrics import clustering_error
from standout.pencil import solve
from standout.report._cautions import cautions, heavy_tails
from standout.report._choices import choices
from standout.report._findings import Findings, Numbers, Points
from standout.report._labels import Labels, read_labels
from standout.report._path import walk
from standout.report._recipe import recipe
from standout.report._subject import Subject, open_subject
from standout.report._views import (
    aligned_signs,
    all_scores,
    as_correlations,
    bins_of,
    correlations,
    counted,
    projector,
    shown_rows,
    some_scores,
)
from standout.report._wording import counted as in_words
from standout.report._wording import joined, whole, with_isolated
from standout.selection import ComponentTest
from standout.selection import analytic_test

# Components whose scores are kept, and eigenvalues that are looked at beyond them.
MOST_COMPONENTS = 6
SCREE = 10
# Size of a problem up to which looking beyond takes no more than a second.
MOST_SCREE = 2000
# Rows that K-means looks at: more would not change the error.
MOST_CLUSTERED = 20_000


def examine(
    model: Any,
    target: Any,
    backgrounds: Any = None,
    *,
    features: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    labels: Any = None,
    target_name: str = "target",
    background_names: Sequence[str] | None = None,
    asked: Mapping[str, str] | None = None,
    warnings: Iterable[str] = (),
    with_path: bool = True,
    code: str | None = None,
    scores: Sequence[Any] | None = None,
) -> Findings:
    """What did this fit find, and what should one know of it?

    Gathers all that a report shows: scores of rows to draw, PCA's view of the same data, how the view moves along
    the method's parameter, which components are more than chance, which columns follow them, and what calls for care.
    The data are read a few times, a block at a time, and not copied.

    Parameters
    ----------
    model : estimator
        A fitted `DiscriminativePCA`, `ContrastivePCA`, or one of their kernel versions; or a pipeline that ends in one.
    target : array-like, sparse matrix or frame of shape (n, n_features)
        The target of the fit.
    backgrounds : dataset, or list or tuple of datasets, default=None
        The backgrounds of the fit.
    features : sequence of str, default=None
        Names of the columns. None takes those of a frame, or numbers from 0.
    ids : sequence of length n, default=None
        Names of the target's rows. None takes their numbers, from 0.
    labels : array-like of shape (n,), default=None
        Labels of the target's rows, for colours and to judge the view by: groups, or numbers on a scale.
    target_name : str, default="target"
    background_names : sequence of str, default=None
        One for each background.
    asked : mapping of str to str, default=None
        What else is to be said of the question, such as the files that were read: pairs of a few words.
    warnings : iterable of str, default=()
        Sentences on what happened to the data before, such as rows that were dropped.
    with_path : bool, default=True
        Look how the view moves along shrinkage, α or ε. Costs as much as some twenty fits of moments.
    code : str, default=None
        How to do the same in Python. None writes it, from tables that have been read.
    scores : sequence of arrays, default=None
        What `model.transform` gives for all rows of the target and of each background, if that is known already; else
        it is found here.

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
    subject = open_subject(model, target, backgrounds)
    names = [target_name, *_background_names(subject, background_names)]
    columns = _feature_names(subject, features)
    marks = None if labels is None else read_labels(labels, subject.counts[0])
    if ids is not None:
        check_one_each(len(ids), subject.counts[0], "ids", "row of the target")
    d = min(int(subject.model.n_components_), MOST_COMPONENTS)

    shown = shown_rows(subject.counts)
    views = _first_scores(subject, scores, d)
    own = np.concatenate([part[rows, : min(d, 2)] for part, rows in zip(views, shown, strict=True)])
    pca, pca_error = _principal_view(subject, shown, own, marks)
    edges = np.array([bins_of([part[:, k] for part in views]) for k in range(d)])
    test, untested = _tested(subject)
    told = map(with_isolated, map(str, warnings))
    linear = not subject.is_kernel
    return Findings(
        method=subject.method,
        asked={**_asked(subject, names), **(asked or {})},
        datasets=tuple(
            _points(name, part, rows, view, edges, ids if number == 0 else None, marks if number == 0 else None)
            for number, (name, part, rows, view) in enumerate(zip(names, views, shown, pca, strict=True))
        ),
        features=columns,
        components=subject.model.components_ if linear else None,
        patterns=subject.model.patterns_ if linear else None,
        correlations=_correlations(subject, views[0], d),
        spreads=subject.spreads,
        eigenvalues=subject.model.eigenvalues_,
        target_variance=subject.model.target_variance_,
        background_variance=subject.model.background_variance_,
        weights=subject.model.weights_,
        scree=_scree(subject),
        total_variance=subject.moments[0].total_variance if subject.moments else float("nan"),
        test=test,
        bin_edges=edges,
        label_names=() if marks is None else marks.names,
        label_counts=_label_counts(marks, views[0], edges),
        path=walk(subject, shown, own) if with_path else None,
        clustering_error=_clustering_error(views[0], marks),
        pca_clustering_error=pca_error,
        choices=tuple(choices(subject, names, test, untested)),
        warnings=(*told, *cautions(subject, columns), *heavy_tails(test, views)),
        code=recipe(subject) if code is None else code,
        version=_version(),
    )


def _first_scores(subject: Subject, known: Sequence[Any] | None, d: int) -> list[Float]:
    """Give the first d scores of all rows of each dataset."""
    if known is None:
        return [all_scores(subject.model._projection, rows, d) for rows in subject.rows]
    check_one_each(len(known), len(subject.rows), "scores of datasets", "dataset")
    for part, count in zip(known, subject.counts, strict=True):
        check_one_each(len(part), count, "scores", "row of each dataset")
    return [np.asarray(part, dtype=np.float64)[:, :d] for part in known]


def _background_names(subject: Subject, given: Sequence[str] | None) -> list[str]:
    n_backgrounds = len(subject.rows) - 1
    if given is not None:
        check_one_each(len(given), n_backgrounds, "background names", "background")
        return [str(name) for name in given]
    known = getattr(subject.model, "background_labels_", None)
    if known is not None:
        return [str(label) for label in known]
    return ["background"] if n_backgrounds == 1 else [f"background {k + 1}" for k in range(n_backgrounds)]


def _feature_names(subject: Subject, given: Sequence[str] | None) -> tuple[str, ...]:
    n_features = int(subject.rows[0].shape[1])
    if given is not None:
        check_same_columns(len(given), None, "the list of names", n_features, None, "the target")
        return tuple(map(str, given))
    if not subject.moments:
        return ()
    return tuple(subject.columns or (f"column {index}" for index in range(n_features)))


def _asked(subject: Subject, names: list[str]) -> dict[str, str]:
    """Say in words what was asked."""
    counts = [f"{name} ({in_words(n, 'row')})" for name, n in zip(names, subject.counts, strict=True)]
    against = {"background" if len(counts) == 2 else "backgrounds": joined(counts[1:])} if len(counts) > 1 else {}
    columns = {"columns": whole(int(subject.rows[0].shape[1]))} if subject.moments else {}
    return {"method": subject.method, "target": counts[0], **against, **columns}


def _points(
    name: str,
    scores: Float,
    rows: Numbers,
    pca: Float,
    edges: Float,
    ids: Sequence[Any] | None,
    marks: Labels | None,
) -> Points:
    return Points(
        name=name,
        n_rows=len(scores),
        rows=rows,
        scores=scores[rows].astype(np.float32),
        pca_scores=pca.astype(np.float32),
        counts=np.array([counted(column, part) for column, part in zip(scores.T, edges, strict=True)]),
        ids=None if ids is None else tuple(str(ids[row]) for row in rows.tolist()),
        labels=None if marks is None else marks.named(rows),
        groups=None if marks is None or marks.groups is None else marks.groups[rows],
        values=None if marks is None or marks.values is None else marks.values[rows],
    )


def _principal_view(
    subject: Subject, shown: list[Numbers], own: Float, marks: Labels | None
) -> tuple[list[Float], float | None]:
    """Give the shown rows in PCA's view of the target, with signs that agree with ours, and how well it groups."""
    rows = subject.rows
    if subject.moments:
        target = subject.moments[0]
        k = min(2, target.n_features, target.count - 1)
        solution = solve(contrast.principal(target), k)
        project = projector(target.mean, solution.vectors)
    else:
        # The first columns of a precomputed kernel are the target's: kernel PCA takes the place of PCA.
        n_target = subject.counts[0]
        k = min(2, n_target - 1)
        kernel_pca = KernelDiscriminativePCA(k, kernel="precomputed").fit(rows[0][:, :n_target])
        project = lambda block: kernel_pca._projection(block[:, :n_target])  # noqa: E731
    views = [some_scores(project, part, chosen) for part, chosen in zip(rows, shown, strict=True)]
    signs = aligned_signs(views[0], own[: len(views[0])])
    error = None
    if marks is not None and marks.are_groups:
        chosen = _clustered(subject.counts[0])
        error = _clustering_error(some_scores(project, rows[0], chosen), marks, chosen)
    return [view * signs for view in views], error


def _tested(subject: Subject) -> tuple[ComponentTest | None, str | None]:
    """Give the test of the fit, or else the one by formula where it applies; and why not, where not."""
    known = getattr(subject.model, "component_test_", None)
    if known is not None:
        return known, None
    if len(subject.rows) == 1 or subject.is_kernel or subject.is_contrastive:
        return None, None
    n_features = int(subject.rows[0].shape[1])
    if subject.degrees <= n_features or not subject.is_formed:
        return None, (
            "p-values: none, as the formula needs more background rows than columns. Use "
            'test="permutation" (--test permutation).'
        )
    target, *backgrounds = subject.moments
    varying = int(np.sum(np.sum([part.variances for part in subject.moments], axis=0) > 0.0))
    kept = int(subject.model.n_components_)
    some = min(max(SCREE, kept), varying, target.count - 1)
    shares: Float = subject.model.shrinkage_

    def test(n_components: int) -> ComponentTest:
        # With shrinkage, the plain ratios of the fitted components are tested.
        plain = shares if np.any(shares > 0.0) else None
        return analytic_test(target, backgrounds, subject.model.weights_, plain, n_components=n_components)

    try:
        return test(some), None
    except ValueError:
        pass
    try:
        # Dependent columns leave fewer directions than columns: those beyond the fit are done without.
        return test(kept), None
    except ValueError as error:
        return None, f"p-values: none, as {error}"


def _scree(subject: Subject) -> Float:
    """Look at a few eigenvalues beyond the components that were kept."""
    model = subject.model
    own: Float = model.eigenvalues_
    if subject.is_kernel or not subject.is_formed or len(own) >= SCREE or subject.size > MOST_SCREE:
        return own[:SCREE]
    target, *backgrounds = subject.moments
    k = min(SCREE, target.n_features, sum(part.count - 1 for part in subject.moments))
    if not backgrounds:
        pencil = contrast.principal(target)
    elif subject.is_contrastive:
        pencil = contrast.contrastive(target, backgrounds, model.weights_, model.alpha_)
    else:
        pencil = contrast.discriminative(target, backgrounds, model.weights_, model.shrinkage_)
    try:
        values = solve(pencil, k).values
    except ValueError:
        # Constant or dependent columns leave fewer directions than columns.
        return own
    return np.concatenate([own, values[len(own) :]])


def _correlations(subject: Subject, scores: Float, d: int) -> Float | None:
    """Correlate each column with each score, over the target's rows."""
    if not subject.moments:
        return None
    target = subject.moments[0]
    if subject.is_kernel:
        return correlations(subject.rows[0], target.mean, subject.spreads, scores)
    filters = subject.model.components_[:d].T
    variances = np.maximum(subject.model.target_variance_[:d], 0.0)
    return as_correlations(target.apply(filters).T, subject.spreads, np.sqrt(variances))


def _label_counts(marks: Labels | None, scores: Float, edges: Float) -> Numbers:
    if marks is None or marks.groups is None:
        return np.zeros((0, *edges.shape), dtype=np.int64)[..., :-1]
    return np.array(
        [
            [counted(column[marks.groups == group], part) for column, part in zip(scores.T, edges, strict=True)]
            for group in range(len(marks.names))
        ]
    )


def _clustering_error(scores: Float, marks: Labels | None, rows: Numbers | None = None) -> float | None:
    if marks is None or marks.groups is None or not marks.are_groups:
        return None
    if rows is None:
        rows = _clustered(len(scores))
        scores = scores[rows]
    groups = marks.groups[rows]
    if len(np.unique(groups)) < 2 or len(np.unique(scores, axis=0)) < len(marks.names):
        return None
    return clustering_error(scores[:, :2], groups)


def _clustered(n_rows: int) -> Numbers:
    """Choose the rows that K-means looks at."""
    if n_rows <= MOST_CLUSTERED:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, MOST_CLUSTERED, replace=False))


def _version() -> str:
    from standout import __version__

    return __version__
