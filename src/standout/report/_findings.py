"""What a fit found: one plain nested dict, computed once, that every surface shows; and a report in one call."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from standout import __version__
from standout._arrays import Float, dense
from standout._messages import InvalidValueError
from standout._writing import whole_file
from standout._xp import take, to_host
from standout.metrics import clustering_error
from standout.report import _cautions as cautions
from standout.report import _facts as facts
from standout.report._drawn import MOST_COMPONENTS, Fit, open_fit, rounded, scores_of
from standout.report._page import page, sentences
from standout.report._words import said
from standout.sources import Source, open_datasets

# Rows that are shown as images at each end of component 1, and pixels that they may have in all.
IMAGES_AT_END, MOST_PIXELS = 6, 20_000
# Up to this many numbers a permutation test takes seconds, and is made without being asked for.
QUICK = 2_000_000
HEIGHT = 900


def findings(
    model: Any,
    datasets: list[Source],
    *,
    test: Any = None,
    bootstrap: Any = None,
    labels: Any = None,
    ids: Any = None,
    title: str | None = None,
    label_name: str = "label",
    id_name: str | None = None,
    image_shape: tuple[int, int] | None = None,
    notes: Sequence[Any] = (),
    options: Any = None,
    n_points: int = 2000,
    with_views: bool = True,
    random_state: int = 0,
) -> dict[str, Any]:
    """What did the fit find? Everything that the page, the terminal and ``summary.json`` show, as one plain dict.

    Parameters
    ----------
    model : fitted estimator
    datasets : list of Source
        The datasets of the fit, the target first.
    test : PermutationTest, default=None
    bootstrap : Bootstrap, default=None
    labels, ids : array-like of shape (n_rows,), default=None
        Of the target's rows; None uses those of the source. Labels colour the points and are not used by the fit.
    title : str, default=None
        None is the question that the fit answers.
    label_name : str, default="label"
    id_name : str, default=None
        The column that the ids come from, for advice on the command line.
    image_shape : tuple of (int, int), default=None
        Height and width, if columns are pixels.
    notes : sequence of str or CautionWarning, default=()
        Warnings of reading and fitting.
    options : mapping, default=None
        Option names of the command line for parameters, for advice; None for Python.
    n_points : int, default=2000
        Rows of the target, and of all backgrounds together, that are drawn.
    with_views : bool, default=True
        Whether views along the path are computed, for the slider of the page.
    random_state : int, default=0

    Returns
    -------
    dict
        Of numbers, strings, lists and dicts, ready for `json.dumps`. Unknown numbers are None.
    """
    fit = open_fit(model, datasets, labels, ids, n_points, random_state)
    model = fit.model
    found = _facts(fit, facts.test_of(test), bootstrap, label_name, image_shape)
    told = cautions.Cautions(options)
    told.notes(notes)
    _answer(fit, found, told, title, id_name)
    found["cautions"] = told.sorted()
    found["choices"] = facts.choices(model, found)
    found["options"] = facts.options(model)
    found["code"] = facts.code(model, found["datasets"], fit.steps)
    found["drawn"] = _drawn(fit)
    found["drawn"]["views"] = fit.views(found["path"], found["components"][0]["ratio"]) if with_views else None
    return found


def _facts(fit: Fit, test: Any, bootstrap: Any, label_name: str, image_shape: Any) -> dict[str, Any]:
    """Return the numbers of the fit."""
    model, names = fit.model, [source.name.removeprefix("the ") for source in fit.datasets]
    names = ["background" if name == "background 1" and len(names) == 2 else name for name in names]
    return {
        "standout": __version__,
        "title": "",
        "headline": "",
        "verdict": "",
        "method": facts.method_of(model, len(fit.datasets) - 1),
        "kernel": facts.is_kernel(model),
        "held_out": fit.held_out,
        "center": str(getattr(model, "center", "own")),
        "parameter": facts.parameter_of(model),
        "n_columns": int(model.n_features_in_),
        "n_components": int(model.n_components_),
        "datasets": [_dataset(fit, place, name) for place, name in enumerate(names)],
        "components": facts.components(model, fit.columns, fit.variances, test, bootstrap),
        "test": test,
        "bootstrap": facts.bootstrap_of(bootstrap),
        "path": facts.path_of(model) if fit.compared else None,
        "pca": _pca(fit),
        "means": facts.means_of(model, fit.columns) if fit.compared else None,
        "labels": _labels(fit, label_name),
        "outlying": fit.outlying(names),
        "images": _images(fit, image_shape),
    }


def _dataset(fit: Fit, place: int, name: str) -> dict[str, Any]:
    source, weights = fit.datasets[place], getattr(fit.model, "background_weights_", None)
    return {
        "name": name,
        "role": "background" if place else "target",
        "rows": source.count_rows(),
        "subjects": None if source.subjects is None else len(np.unique(source.subjects)),
        "weight": None if weights is None or not place else facts.value(np.asarray(weights)[place - 1]),
        "outlying": len(fit.model.outlying_rows_[place]) if fit.robust else None,
        "drawn": len(fit.samples[place].numbers),
    }


def _pca(fit: Fit) -> dict[str, Any] | None:
    if fit.pca is None:
        return None
    twin = fit.pca[0]
    near = float(np.mean(getattr(fit.model, "shrinkage_", 0.0))) > cautions.NEAR_PCA
    interval = [facts.value(end) for end in twin.ratio_interval_[0]]
    return {"ratio": facts.value(twin.ratio_[0]), "interval": interval, "near": near}


def _labels(fit: Fit, name: str) -> dict[str, Any] | None:
    """Return the labels, and the share of rows that K-means puts into the wrong group."""
    marks = fit.labels
    if marks is None:
        return None
    own = marks.marks[fit.samples[0].numbers]
    views = [fit.shown[0], None if fit.pca is None else fit.pca[1][0]]
    separate = marks.separate and len(np.unique(own)) == len(marks.names)
    errors = [_error(view[:, :2], own) if separate and view is not None else None for view in views]
    return {
        "name": name,
        "kind": "words" if marks.names else "numbers",
        "names": marks.names,
        "counts": marks.counts,
        "error": errors[0],
        "pca_error": errors[1],
    }


def _error(view: Float, labels: Any) -> float | None:
    """Return the share of rows in the wrong group. A few far rows would form a separate group: they are pulled in."""
    low, high = np.quantile(view, [0.25, 0.75], axis=0)
    inside = np.clip(view, low - 3.0 * (high - low), high + 3.0 * (high - low))
    if len(np.unique(inside, axis=0)) < len(np.unique(labels)):
        return None
    return float(clustering_error(inside, labels))


def _images(fit: Fit, shape: Any) -> dict[str, Any] | None:
    """Return patterns as images, and a few rows at each end of component 1."""
    if shape is None or not hasattr(fit.model, "correlations_"):
        return None
    correlations = to_host(fit.model.correlations_)
    order = np.argsort(fit.shown[0][:, 0], kind="stable")
    n_shown = min(IMAGES_AT_END, len(order) // 2, MOST_PIXELS // (2 * correlations.shape[1]))
    ends = np.concatenate([order[:n_shown], order[::-1][:n_shown]])
    rows = dense(take(fit.samples[0].rows, ends)) if n_shown else np.zeros((0, 1))
    low, high = np.quantile(rows, [0.005, 0.995]) if n_shown else (0.0, 1.0)
    grey = np.clip(np.rint(255.0 * (rows - low) / max(float(high - low), 1e-300)), 0, 255).astype(int).tolist()
    n_patterns = max(1, min(MOST_COMPONENTS, 2 * MOST_PIXELS // correlations.shape[1]))
    patterns = [np.round(row, 2).tolist() for row in np.nan_to_num(correlations)[:n_patterns]]
    return {
        "shape": [int(side) for side in shape],
        "patterns": patterns,
        "low": grey[:n_shown],
        "high": grey[n_shown:],
    }


def _drawn(fit: Fit) -> dict[str, Any]:
    """Return the points of the pictures."""
    points = []
    for place, sample in enumerate(fit.samples):
        ids = fit.ids if place == 0 else fit.datasets[place].ids
        points.append(
            {
                "rows": sample.numbers.tolist(),
                "ids": None if ids is None else [str(ids[number]) for number in sample.numbers.tolist()],
                "labels": fit.labels.of(sample.numbers) if fit.labels is not None and place == 0 else None,
                "scores": rounded(fit.shown[place].T[:MOST_COMPONENTS]),
                "pca": rounded((fit.shown if fit.pca is None else fit.pca[1])[place].T[:2]),
                "outlying": fit.flags(place),
            }
        )
    return {"held_out": fit.held_out, "n_components": min(fit.shown[0].shape[1], MOST_COMPONENTS), "points": points}


# --- the answer ------------------------------------------------------------------------------------------------------


def _answer(fit: Fit, found: dict[str, Any], told: cautions.Cautions, title: str | None, id_name: str | None) -> None:
    """Decide the verdict, write title and headline, and add cautions."""
    model, dependent = fit.model, False
    if fit.compared and found["datasets"][0]["subjects"] is None:
        dependent = cautions.dependence(told, fit.scores, fit.ids, found["test"] is not None, id_name)
    found["verdict"] = _verdict(found, dependent)
    found["title"] = title or said("title", found)
    found["headline"] = said("headline", found)
    if found["test"] is not None:
        found["test"]["tests"] = said("tested", found)
    if fit.compared:
        cautions.choice(told, found)
        cautions.shift(told, found)
        parts = found["datasets"][1:]
        unit = "rows" if parts[0]["subjects"] is None else "subjects"
        if not found["kernel"]:
            cautions.few_background_rows(told, [part[unit] for part in parts], found["n_columns"], unit)
    if not fit.robust:
        # A row that decides its own component is far along the fitted one, but need not be along held-out ones.
        fitted = scores_of(model, fit.datasets[:1], held_out=False)
        any(cautions.few_rows(told, part[:, 0], fit.ids) for part in (fit.scores[0], *fitted))
    if getattr(model, "kernel", None) != "precomputed":
        scaled = getattr(model, "scale", None) is not None or found["kernel"]
        cautions.columns(told, fit.samples, fit.columns, scaled)


def _verdict(found: dict[str, Any], dependent: bool) -> str:
    """Decide what the headline says."""
    one, means = found["components"][0], found["means"]
    if len(found["datasets"]) < 2:
        return "pca"
    if one["ratio"] is None:
        return "no ratio"
    significant = one["significant"]
    largest = max((column["effect"] ** 2 for column in means["columns"]), default=0.0) if means else 0.0
    # The test of the means is for independent rows.
    independent = not dependent and found["datasets"][0]["subjects"] is None
    if found["center"] == "own" and (
        largest > max(one["ratio"], 1.0) or (largest > 0.0 and significant is False and independent)
    ):
        return "shift"
    if found["center"] == "background" and (one["shift"] or 0.0) > (one["spread"] or 0.0) and significant is not False:
        return "shift"
    if significant is None:
        return "untested"
    if not significant:
        return "chance"
    return "dependent" if dependent and found["test"]["unit"] != "subjects" else "stands out"


# --- a report in one call --------------------------------------------------------------------------------------------


class Report:
    """What a fit found, as a dict, a page and sentences. Notebooks show the page.

    Attributes
    ----------
    findings : dict
        All numbers and sentences, ready for JSON.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.findings = found

    def html(self) -> str:
        """Return the page: one HTML text that loads nothing."""
        return page(self.findings)

    def sentences(self) -> list[str]:
        """Return the headline and the cautions as plain text."""
        return sentences(self.findings)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        with whole_file(Path(path)) as draft:
            draft.write_text(self.html(), encoding="utf-8", newline="")

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{HEIGHT}px;border:0"
        return f'<iframe style="{style}" sandbox="allow-scripts" srcdoc="{html.escape(self.html())}"></iframe>'

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def report(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    labels: Any = None,
    ids: Any = None,
    y: Any = None,
    groups: Any = None,
    background_groups: Any = None,
    sample_weight: Any = None,
    background_sample_weight: Any = None,
    adjust: Any = None,
    background_adjust: Any = None,
    test: Any = "auto",
    bootstrap: Any = None,
    title: str | None = None,
    names: Sequence[str] | None = None,
    label_name: str = "label",
    image_shape: tuple[int, int] | None = None,
) -> Report:
    """What did this model find, on one page?

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, n_features)
        The target of the fit.
    background : array-like or list of array-like, default=None
        The backgrounds of the fit.
    labels : array-like of shape (n_samples,), default=None
        Labels of the target's rows, for colours. They are not used by the fit.
    ids : array-like of shape (n_samples,), default=None
        Names of the target's rows.
    y : array-like of shape (n_samples,), default=None
        Label of each row, for a model with `target_label`.
    groups, background_groups, sample_weight, background_sample_weight, adjust, background_adjust
        As in ``fit``.
    test : "auto", PermutationTest or None, default="auto"
        "auto" makes a permutation test if the data are small.
    bootstrap : Bootstrap, default=None
    title : str, default=None
    names : sequence of str, default=None
        Names of the target and of each background, such as ``["treated", "control"]``.
    label_name : str, default="label"
    image_shape : tuple of (int, int), default=None
        Height and width, if columns are pixels.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import report
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(300, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(200, 4)) * [10, 1, 1, 3]
    >>> model = DiscriminativePCA(1).fit(target, background=background)
    >>> print(report(model, target, background=background, test=None))
    The variance of the target is 9.42 times that of the background along one view, led by column 3.
    """
    given = {"y": y, "groups": groups, "background_groups": background_groups, "sample_weight": sample_weight}
    given |= {"background_sample_weight": background_sample_weight, "adjust": adjust}
    given["background_adjust"] = background_adjust
    estimator = model.steps[-1][1] if hasattr(model, "steps") else model
    check_is_fitted(estimator)
    label = estimator.target_label
    datasets = open_datasets(X, background, target_label=label, **given)
    if names is None and label is not None:
        names = [label, *estimator.background_labels_]
    if names is not None:
        if len(names) != len(datasets):
            problem = f"has {len(names)} names, but there are {len(datasets)} datasets"
            raise InvalidValueError(problem, parameter="names", advice="Give the target's name first.")
        datasets = [part.named(str(name)) for part, name in zip(datasets, names, strict=True)]
    if isinstance(test, str):
        from standout.selection import permutation_test

        small = sum((part.n_rows or QUICK) * (part.width or QUICK) for part in datasets) <= QUICK
        test = permutation_test(model, X, background=background, **given) if small and len(datasets) > 1 else None
    shown = {"labels": labels, "ids": ids, "title": title, "label_name": label_name, "image_shape": image_shape}
    return Report(findings(model, datasets, test=test, bootstrap=bootstrap, **shown))
