"""Findings of a fit: one nested dict, from which the page, the terminal and ``summary.json`` are made."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils._pprint import _changed_params

from standout import __version__
from standout._arrays import dense
from standout._messages import CautionWarning
from standout._options import KERNELIZED, METHODS
from standout._xp import take, to_host
from standout.estimators._scores import CHOSEN
from standout.metrics import clustering_error
from standout.report import _cautions as cautions
from standout.report._drawn import MOST_COMPONENTS, Fit, Labels, rounded
from standout.report._words import said, shortened

# Number of rows shown as images at each end of component 1, and maximum number of pixels of all these images.
IMAGES_AT_END, MOST_PIXELS = 6, 20_000
# Maximum number of columns that are listed for each component, and for the means.
MOST_COLUMNS = 30
# Smallest difference of means that is reported, in standard deviations, and the largest false discovery rate.
SIZE, LEVEL = 0.2, 0.05


def findings(
    fit: Fit,
    *,
    test: Any = None,
    bootstrap: Any = None,
    title: str | None = None,
    label_name: str = "label",
    names_subjects: str | None = None,
    image_shape: tuple[int, int] | None = None,
    notes: Sequence[Any] = (),
    options: Any = None,
    with_views: bool = True,
) -> dict[str, Any]:
    """What did the fit find? Everything that the page, the terminal and ``summary.json`` show, as one plain dict.

    Parameters
    ----------
    fit : Fit
        From `open_fit`.
    test : PermutationTest, default=None
    bootstrap : Bootstrap, default=None
    title : str, default=None
        None means the default title, the question of the fit.
    label_name : str, default="label"
    names_subjects : str, default=None
        The column that may name the subjects, for advice on the command line.
    image_shape : tuple of (int, int), default=None
        Height and width, if columns are pixels.
    notes : sequence of str or CautionWarning, default=()
        Warnings of reading and fitting.
    options : mapping, default=None
        Option names of the command line for parameters, for advice; None for Python.
    with_views : bool, default=True
        Whether views along the path are computed, for the slider of the page.

    Returns
    -------
    dict
        Of numbers, strings, lists and dicts, ready for `json.dumps`. Unknown numbers are None.
    """
    found = _facts(fit, test, bootstrap)
    pixels = image_shape is not None and hasattr(fit.model, "correlations_")
    found["labels"] = None if fit.labels is None else _labels(fit, fit.labels, label_name)
    found["images"] = _images(fit, image_shape) if pixels else None
    texts = [note.phrased(options) if isinstance(note, CautionWarning) else str(note) for note in notes]
    told = [{"kind": "note", "text": text} for text in texts]
    dependent = None
    if fit.compared and found["datasets"][0]["subjects"] is None:
        column = None if names_subjects is None else shlex.quote(shortened(names_subjects))
        dependent = cautions.dependence(fit.scores, fit.ids, tested=test is not None, column=column)
    found["verdict"] = _verdict(found, dependent is not None)
    found["title"] = title or said("title", found)
    found["headline"] = said("headline", found)
    if found["test"] is not None:
        found["test"]["tests"] = said("tested", found)
    told += [dependent] if dependent else []
    told += cautions.of_the_fit(fit, found)
    if getattr(fit.model, "kernel", None) != "precomputed":
        scaled = getattr(fit.model, "scale", None) is not None or found["kernel"] is not None
        told += cautions.columns(fit.samples, fit.columns, scaled)
    found["cautions"] = cautions.worded(told, options)
    found["code"] = said("code", found, lines=True)
    found["drawn"] = _drawn(fit)
    found["drawn"]["views"] = fit.views(found["path"], found["components"][0]["ratio"]) if with_views else None
    return found


def _facts(fit: Fit, test: Any, boot: Any) -> dict[str, Any]:
    """Return the numbers of the fit."""
    model, names = fit.model, [source.name.removeprefix("the ") for source in fit.datasets]
    names = ["background" if name == "background 1" and len(names) == 2 else name for name in names]
    weights, kernel, used = model.background_weights_, getattr(model, "kernel", None), getattr(model, "columns_", None)
    method = METHODS[model.method] if fit.compared else "kernel PCA" if model.method in KERNELIZED else "PCA"
    if test is not None:
        counts = {"n_significant": int(test.n_components), "n_permutations": int(max(test.n_draws, default=0))}
        test = {"p_values": [value(p) for p in test.p_values], **counts, "level": test.level, "unit": str(test.unit)}
    return {
        "standout": __version__,
        **dict.fromkeys(("title", "headline", "verdict"), ""),
        "method": method,
        "kernel": (kernel if isinstance(kernel, str) else "given") if hasattr(model, "kernel") else None,
        "held_out": fit.held_out,
        "center": str(getattr(model, "center", "own")),
        "parameter": CHOSEN[model.method],
        "n_columns": int(model.n_features_in_),
        "n_columns_used": None if used is None else len(used),
        "n_components": int(model.n_components_),
        "datasets": [
            {
                "name": name,
                "role": "background" if place else "target",
                "rows": source.count_rows(),
                "subjects": None if source.subjects is None else len(np.unique(source.subjects)),
                "weight": value(weights[place - 1]) if place else None,
                "outlying": len(model.outlying_rows_[place]) if fit.robust else None,
                "drawn": len(fit.samples[place].numbers),
            }
            for place, (name, source) in enumerate(zip(names, fit.datasets, strict=True))
        ],
        "components": list(_components(fit, test, boot)),
        "test": test,
        "bootstrap": boot
        and {"n_draws": int(boot.n_draws), "unit": str(boot.unit), "angle": [value(angle) for angle in boot.angles]},
        "path": path_of(model) if fit.compared else None,
        "pca": fit.pca
        and {
            "ratio": value(fit.pca[0]),
            "interval": [value(end) for end in fit.pca[1]],
            "near": float(np.mean(getattr(model, "shrinkage_", 0.0))) > cautions.NEAR_PCA,
        },
        "means": _means(fit),
        "outlying": fit.outlying(names) if fit.robust else [],
        "estimator": written(model),
        "steps": [written(step) for step in fit.steps],
    }


def value(given: Any) -> float | None:
    """Return a number for JSON; None if it is unknown or infinite."""
    return None if given is None or not np.isfinite(given) else float(given)


def path_of(model: Any) -> dict[str, Any] | None:
    """Return the path along which the regularisation was chosen."""
    name, path = CHOSEN[model.method], model.path_
    if path is None:
        return None
    numbers = {key: rounded(getattr(path, key), 8) for key in ("values", "log_ratios", "errors")}
    places = {"best": int(path.best), "chosen": int(path.chosen), "value": value(getattr(model, f"{name}_"))}
    return {"parameter": name, **numbers, **places, "reason": path.reason}


def written(step: Any) -> dict[str, Any]:
    """Return the class of a step of a pipeline, and its non-default parameters as Python code."""
    kind, given = type(step), {}
    for name, one in _changed_params(step).items():
        one = one.item() if isinstance(one, np.generic) else one
        plain = isinstance(one, int | float | bool | None) or (isinstance(one, list | tuple) and len(one) <= 10)
        given[name] = json.dumps(one, ensure_ascii=False) if isinstance(one, str) else repr(one) if plain else "..."
    # The public path of a class ends before its first private module.
    parts = kind.__module__.split(".")
    private = [place for place, part in enumerate(parts) if part.startswith("_") and part != "__main__"]
    return {"module": ".".join(parts[: private[0]] if private else parts), "name": kind.__name__, "given": given}


def _components(fit: Fit, test: Any, boot: Any) -> Iterator[dict[str, Any]]:
    """Yield the components with their ratios, p-values and leading columns. Kernels have no columns."""
    model, variances = fit.model, []
    for place, (scores, source) in enumerate(zip(fit.scores, fit.datasets, strict=True)):
        weights = source.weights
        if fit.robust:
            weights = model.row_weights_[place] * (1.0 if weights is None else weights)
        mean = np.average(scores, axis=0, weights=weights)
        variances.append(np.average((scores - mean) ** 2, axis=0, weights=weights))
    numbers = {name: getattr(model, f"{name}_") for name in ("ratio", "spread", "shift")}
    numbers |= {"error": model.ratio_error_, "eigenvalue": to_host(model.eigenvalues_)}
    for k in range(int(model.n_components_)):
        columns = []
        if hasattr(model, "correlations_"):
            parts = (model.correlations_, model.patterns_, model.components_)
            correlations, pattern, filters = (to_host(part[k]) for part in parts)
            order = np.argsort(-np.abs(np.nan_to_num(correlations)), kind="stable")[:MOST_COLUMNS]
            columns = [
                {
                    "name": fit.columns[j],
                    "correlation": value(correlations[j]) or 0.0,
                    "pattern": value(pattern[j]),
                    "filter": value(filters[j]),
                    "interval": None if boot is None else [value(end) for end in boot.correlation_intervals[k, j]],
                }
                for j in order.tolist()
            ]
        p = None if test is None or k >= len(test["p_values"]) else test["p_values"][k]
        yield {
            "component": k + 1,
            **{name: value(part[k]) for name, part in numbers.items()},
            "interval": [value(end) for end in model.ratio_interval_[k]],
            "p_value": p,
            "significant": None if p is None else k < test["n_significant"],
            "variances": [value(part[k]) for part in variances],
            "columns": columns,
        }


def _means(fit: Fit) -> dict[str, Any] | None:
    """Return the columns whose means differ."""
    found = getattr(fit.model, "mean_differences_", None) if fit.compared else None
    if found is None:
        return None
    order = found.different(LEVEL, SIZE)
    columns = [
        {"name": fit.columns[j], **{key: value(getattr(found, key)[j]) for key in ("effect", "p_value", "q_value")}}
        for j in order[:MOST_COLUMNS].tolist()
    ]
    counts = {"n_columns": len(found.effect), "n_different": len(order), "columns": columns}
    unit = "rows" if fit.datasets[0].subjects is None else "subjects"
    return {"size": SIZE, "level": LEVEL, "method": f"Welch's t-test for independent {unit}", **counts}


def _labels(fit: Fit, marks: Labels, name: str) -> dict[str, Any]:
    """Return the labels, and the share of rows that K-means groups wrongly, in the view of the fit and of PCA."""
    own = marks.marks[fit.samples[0].numbers]
    errors: list[float | None] = [None, None]
    for place, view in enumerate([fit.shown[0], fit.shown_by_pca[0]]):
        # Clip outlying rows, because a few of them would form a separate group.
        low, high = np.quantile(view[:, :2], [0.25, 0.75], axis=0)
        inside = np.clip(view[:, :2], low - 3.0 * (high - low), high + 3.0 * (high - low))
        separate = marks.separate and len(np.unique(own)) == len(marks.names)
        if separate and len(np.unique(inside, axis=0)) >= len(np.unique(own)):
            errors[place] = float(clustering_error(inside, own))
    shown = {"name": name, "kind": "words" if marks.names else "numbers", "names": marks.names, "counts": marks.counts}
    return {**shown, "error": errors[0], "pca_error": None if fit.pca is None else errors[1]}


def _images(fit: Fit, shape: Any) -> dict[str, Any]:
    """Return patterns as images, and a few rows at each end of component 1."""
    correlations = to_host(fit.model.correlations_)
    order = np.argsort(fit.shown[0][:, 0], kind="stable")
    n_shown = min(IMAGES_AT_END, len(order) // 2, MOST_PIXELS // (2 * correlations.shape[1]))
    chosen = np.concatenate([order[:n_shown], order[::-1][:n_shown]])
    rows = dense(take(fit.samples[0].rows, chosen)) if n_shown else np.zeros((0, 1))
    low, high = np.quantile(rows, [0.005, 0.995]) if n_shown else (0.0, 1.0)
    grey = np.clip(np.rint(255.0 * (rows - low) / max(float(high - low), 1e-300)), 0, 255).astype(int).tolist()
    n_patterns = max(1, min(MOST_COMPONENTS, 2 * MOST_PIXELS // correlations.shape[1]))
    patterns = [np.round(row, 2).tolist() for row in np.nan_to_num(correlations)[:n_patterns]]
    ends = {"low": grey[:n_shown], "high": grey[n_shown:]}
    return {"shape": [int(side) for side in shape], "patterns": patterns, **ends}


def _drawn(fit: Fit) -> dict[str, Any]:
    """Return the points of the pictures."""
    points = []
    for place, sample in enumerate(fit.samples):
        ids = fit.ids if place == 0 else fit.datasets[place].ids
        outlying = np.isin(sample.numbers, fit.model.outlying_rows_[place]).astype(int).tolist() if fit.robust else None
        points.append(
            {
                "rows": sample.numbers.tolist(),
                "ids": None if ids is None else [str(ids[number]) for number in sample.numbers.tolist()],
                "labels": fit.labels.of(sample.numbers) if fit.labels is not None and place == 0 else None,
                "scores": rounded(fit.shown[place].T[:MOST_COMPONENTS]),
                "pca": rounded(fit.shown_by_pca[place].T[:2]),
                "outlying": outlying,
            }
        )
    return {"held_out": fit.held_out, "n_components": min(fit.shown[0].shape[1], MOST_COMPONENTS), "points": points}


def _verdict(found: dict[str, Any], dependent: bool) -> str:
    """Choose the kind of headline."""
    one, means = found["components"][0], found["means"]
    if len(found["datasets"]) < 2:
        return "pca"
    if one["ratio"] is None:
        return "no ratio"
    significant = one["significant"]
    largest = max((column["effect"] ** 2 for column in means["columns"]), default=0.0) if means else 0.0
    # The test of the means assumes independent rows or subjects. If rows look dependent, this test is not reliable, and
    # the headline is a shift only if a difference of means is larger than the ratio.
    apart = largest > max(one["ratio"], 1.0) or (largest > 0.0 and significant is False and not dependent)
    if found["center"] == "own" and apart:
        return "shift"
    if found["center"] == "background" and (one["shift"] or 0.0) > (one["spread"] or 0.0) and significant is not False:
        return "shift"
    if significant is None:
        return "untested"
    if not significant:
        return "chance"
    return "dependent" if dependent and found["test"]["unit"] != "subjects" else "stands out"
