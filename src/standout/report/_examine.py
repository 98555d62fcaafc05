"""From a fitted model and its data to findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from standout._arrays import Float
from standout._checks import check_one_each, check_same_columns, check_whole
from standout._messages import InvalidTypeError, InvalidValueError, Message
from standout.pencil import solve
from standout.report._cautions import cautions
from standout.report._choices import choices, not_tested, recipe
from standout.report._findings import Findings
from standout.report._fit import Fit, open_fit
from standout.report._format import counted, joined, whole
from standout.report._from_rows import read_rows
from standout.report._scores import OnScores
from standout.selection import HARDLY_SHRUNKEN, ComponentTest, analytic_test
from standout.sources import Backgrounds, Dataset

# Eigenvalues that are looked at, also beyond the components that were kept.
SCREE = 10
# Size of a problem up to which looking beyond takes no more than a second.
MOST_SCREE = 2000


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
    rows = read_rows(fit, names, columns, ids, labels, on_scores, with_path, image_shape)
    if not rows.agree:
        # The model was fitted to other rows than these.
        fit = replace(fit.gathered() if fit.are_kept else fit, are_own=False)
        rows = read_rows(fit, names, columns, ids, labels, None, with_path, image_shape)
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
        cautions=cautions(fit, columns, tested, rows, notes),
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
    k = min(SCREE, fit.n_features, sum(count - 1 for count in fit.counts))
    try:
        values = solve(fit.pencil(fit.moments), k).values
    except ValueError:
        # Constant or dependent columns leave fewer directions than columns.
        return own
    return np.concatenate([own, values[len(own) :]])


def _version() -> str:
    from standout import __version__

    return __version__
