"""What a fit found: one plain nested dict, computed once, that every surface shows."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.base import clone

from standout._arrays import Float, dense
from standout.metrics import clustering_error
from standout.report import _cautions as cautions
from standout.report import _facts as facts
from standout.report._drawn import MOST_COMPONENTS, Labels, Sample, aligned, packed, read_labels, rounded, samples
from standout.report._words import said
from standout.sources import Source

# Views along the path: their number falls with the cost of a fit, and there are none where one takes seconds.
MOST_VIEWS, COST_OF_MOST, COST_OF_ANY = 9, 2e9, 4e10
# Rows that are shown as images at each end of component 1, and pixels that a page may hold.
IMAGES_AT_END, MOST_PIXELS = 6, 20_000


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
    drawn = samples(datasets, n_points, random_state)
    columns = _column_names(model, datasets[0])
    scores, held_out = _scores(model, datasets)
    weights = [_weights(model, place, source) for place, source in enumerate(datasets)]
    variances = [_variances(part, weight) for part, weight in zip(scores, weights, strict=True)]
    ids = datasets[0].ids if ids is None else ids
    labels = datasets[0].labels if labels is None else labels
    marks = None if labels is None else read_labels(labels)
    tested = facts.test_of(test)
    kernel = facts.is_kernel(model)
    shown = [part[sample.numbers] for part, sample in zip(scores, drawn, strict=True)]
    twin = _principal(model, datasets)
    pca = None if twin is None else aligned([part[s.numbers] for part, s in zip(twin[1], drawn, strict=True)], shown)
    found: dict[str, Any] = {
        "standout": _version(),
        "title": title or "",
        "headline": "",
        "verdict": "",
        "method": facts.method_of(model, len(datasets) - 1),
        "kernel": kernel,
        "held_out": held_out,
        "center": str(getattr(model, "center", "own")),
        "parameter": facts.parameter_of(model),
        "n_columns": int(model.n_features_in_),
        "n_components": int(model.n_components_),
        "datasets": [_dataset(model, place, source, len(drawn[place].numbers)) for place, source in enumerate(datasets)],
        "components": facts.components(model, columns, variances, tested, bootstrap),
        "test": tested,
        "bootstrap": facts.bootstrap_of(bootstrap),
        "path": facts.path_of(model) if len(datasets) > 1 else None,
        "pca": None if twin is None else twin[0],
        "means": facts.means_of(model, columns) if len(datasets) > 1 else None,
        "labels": None if marks is None else _labels(marks, label_name, drawn[0], shown[0], pca),
        "outlying": _outlying(model, datasets, drawn, columns, ids),
        "images": _images(model, image_shape, drawn[0], shown[0]),
    }
    told = cautions.Cautions(options)
    told.notes(notes)
    dependent = False
    if len(datasets) > 1 and found["datasets"][0]["subjects"] is None:
        dependent = cautions.dependence(told, scores, ids, tested is not None)
    found["verdict"] = _verdict(found, dependent)
    found["title"] = found["title"] or said("title", found)
    found["headline"] = said("headline", found)
    _caution(told, model, found, scores, drawn, columns, ids)
    found["cautions"] = told.sorted()
    found["choices"] = facts.choices(model, found)
    found["options"] = facts.options(model)
    found["code"] = facts.code(model, found["datasets"])
    found["drawn"] = {
        "held_out": held_out,
        "n_components": min(shown[0].shape[1], MOST_COMPONENTS),
        "points": [
            {
                "rows": sample.numbers.tolist(),
                "ids": _some(ids if place == 0 else datasets[place].ids, sample),
                "labels": marks.of(sample.numbers) if marks is not None and place == 0 else None,
                "scores": rounded(shown[place].T[:MOST_COMPONENTS]),
                "pca": rounded(shown[place].T[:2] if pca is None else pca[place].T[:2]),
                "outlying": _flags(model, place, sample),
            }
            for place, sample in enumerate(drawn)
        ],
        "views": _views(model, datasets, drawn, shown, found) if with_views else None,
    }
    return found


# --- scores ----------------------------------------------------------------------------------------------------------


def _scores(model: Any, datasets: Sequence[Source]) -> tuple[list[Float], bool]:
    """Return the scores of all rows, held out if the fit has folds; and whether they are held out."""
    target, *backgrounds = datasets
    if backgrounds and getattr(model, "n_folds_", 0):
        return [np.asarray(part) for part in model.held_out_scores(target, background=backgrounds)], True
    return [np.asarray(model.transform(source)) for source in datasets], False


def _variances(scores: Float, weights: Any) -> Float:
    if weights is None:
        return scores.var(axis=0)
    mean = np.average(scores, axis=0, weights=weights)
    return np.asarray(np.average((scores - mean) ** 2, axis=0, weights=weights))


def _principal(model: Any, datasets: Sequence[Source]) -> tuple[dict[str, Any], list[Float]] | None:
    """Fit PCA of the target with the folds of the model; return its ratio on held-out rows, and its scores."""
    from standout.estimators import DiscriminativePCA

    if len(datasets) < 2 or getattr(model, "kernel", None) == "precomputed":
        return None
    shared = {name: getattr(model, name) for name in ("center", "scale", "cv", "robust", "random_state") if hasattr(model, name)}
    shared |= {"center": "own"} if shared.get("center") is None else {}
    twin = DiscriminativePCA(min(2, int(model.n_features_in_)), shrinkage=1.0, **shared)
    twin.fit(datasets[0], background=list(datasets[1:]))
    one = facts.components(twin, [], [np.full(2, np.nan)], None, None)[0]
    near = bool(np.mean(getattr(model, "shrinkage_", 0.0)) > cautions.NEAR_PCA)
    return {"ratio": one["ratio"], "interval": one["interval"], "near": near}, _scores(twin, datasets)[0]


def _views(
    model: Any, datasets: Sequence[Source], drawn: Sequence[Sample], shown: Sequence[Float], found: dict[str, Any]
) -> dict[str, Any] | None:
    """Fit at other values of the path, and return the held-out scores of the rows that are drawn."""
    name, path = found["parameter"], found["path"]
    n_rows, width = sum(len(sample.numbers) for sample in drawn), found["n_columns"]
    cost = float(n_rows) * width * min(n_rows, width)
    if name is None or path is None or len(path["values"]) < 3 or cost > COST_OF_ANY:
        return None
    n_views = MOST_VIEWS if cost <= COST_OF_MOST else 5
    places = np.unique(np.linspace(0, len(path["values"]) - 1, n_views).astype(int))
    others = [path["values"][k] for k in places.tolist() if path["values"][k] != path["value"]]
    values = sorted([*others, path["value"]])
    chosen = values.index(path["value"])
    # All rows are used if these are the rows that are drawn; else the sample stands for them.
    rows = [sample.rows for sample in drawn]
    groups = [None if s.subjects is None else s.subjects[d.numbers] for s, d in zip(datasets, drawn, strict=True)]
    views: list[Sequence[Float]] = [shown] * len(values)
    ratios: list[float | None] = [None] * len(values)
    ratios[chosen] = found["components"][0]["ratio"]
    for step in (1, -1):
        for index in range(chosen + step, len(values) if step > 0 else -1, step):
            twin = clone(model).set_params(**{name: values[index]}, n_components=int(model.n_components_))
            twin.fit(rows[0], background=rows[1:], groups=groups[0], background_groups=groups[1:] if groups[0] is not None else None)
            target, *backgrounds = rows
            own = twin.held_out_scores(target, background=backgrounds) if found["held_out"] else [twin.transform(part) for part in rows]
            views[index] = aligned([np.asarray(part) for part in own], views[index - step])
            ratios[index] = facts.value(twin.ratio_[0]) if len(getattr(twin, "ratio_", ())) else None
    return {"parameter": name, "values": values, "chosen": chosen, "ratios": ratios, **packed(views)}


# --- facts of datasets -----------------------------------------------------------------------------------------------


def _column_names(model: Any, target: Source) -> list[str]:
    known = target.columns if target.columns is not None else getattr(model, "feature_names_in_", None)
    return [f"column {k}" for k in range(int(model.n_features_in_))] if known is None else [str(name) for name in known]


def _dataset(model: Any, place: int, source: Source, n_drawn: int) -> dict[str, Any]:
    weights = getattr(model, "background_weights_", None)
    flags = _weights_and_flags(model, place, source)
    return {
        "name": source.name.removeprefix("the "),
        "role": "background" if place else "target",
        "rows": source.count_rows(),
        "subjects": None if source.subjects is None else len(np.unique(source.subjects)),
        "weight": None if weights is None or not place else facts.value(np.asarray(weights)[place - 1]),
        "outlying": None if flags is None else int(np.sum(flags[1])),
        "drawn": n_drawn,
    }


def _some(ids: Any, sample: Sample) -> list[str] | None:
    return None if ids is None else [str(name) for name in np.asarray(ids, dtype=object)[sample.numbers]]


def _labels(marks: Labels, name: str, sample: Sample, shown: Float, pca: Any) -> dict[str, Any]:
    """Return the labels, and the share of rows that K-means puts into the wrong group."""
    errors: list[float | None] = [None, None]
    own = marks.marks[sample.numbers]
    if marks.separate and len(np.unique(own)) == len(marks.names):
        views = [shown, shown if pca is None else pca[0]]
        errors = [_error(view[:, :2], own) for view in views[: 1 if pca is None else 2]]
        errors += [None] * (2 - len(errors))
    kind = "words" if marks.names else "numbers"
    return {"name": name, "kind": kind, "names": marks.names, "counts": marks.counts, "error": errors[0], "pca_error": errors[1]}


def _error(view: Float, labels: Any) -> float | None:
    """Return the share of rows in the wrong group. A few far rows would be a group of their own: they are pulled in."""
    low, high = np.quantile(view, [0.25, 0.75], axis=0)
    inside = np.clip(view, low - 3.0 * (high - low), high + 3.0 * (high - low))
    if len(np.unique(inside, axis=0)) < len(np.unique(labels)):
        return None
    return float(clustering_error(inside, labels))


def _images(model: Any, shape: Any, sample: Sample, shown: Float) -> dict[str, Any] | None:
    """Return patterns as images, and a few rows at each end of component 1."""
    correlations = getattr(model, "correlations_", None)
    if shape is None or correlations is None:
        return None
    order = np.argsort(shown[:, 0], kind="stable")
    n_shown = min(IMAGES_AT_END, len(order) // 2, MOST_PIXELS // (2 * correlations.shape[1]))
    ends = [order[:n_shown], order[len(order) - n_shown :][::-1]]
    rows = [dense(sample.rows[np.sort(end)]) if n_shown else np.zeros((0, 1)) for end in ends]
    every = np.concatenate([part.ravel() for part in rows])
    low, high = (np.quantile(every, [0.005, 0.995]) if every.size else (0.0, 1.0))
    grey = [np.clip(np.rint(255.0 * (part - low) / max(high - low, 1e-300)), 0, 255).astype(int).tolist() for part in rows]
    patterns = [rounded(row, 3) for row in np.nan_to_num(correlations)[:MOST_COMPONENTS]]
    return {"shape": [int(side) for side in shape], "patterns": patterns, "low": grey[0], "high": grey[1]}


# --- robust weights --------------------------------------------------------------------------------------------------


def _weights_and_flags(model: Any, place: int, source: Source) -> Any:
    return None


def _weights(model: Any, place: int, source: Source) -> Any:
    found = _weights_and_flags(model, place, source)
    return source.weights if found is None else found[0]


def _flags(model: Any, place: int, sample: Sample) -> list[int] | None:
    return None


def _outlying(model: Any, datasets: Sequence[Source], drawn: Sequence[Sample], columns: Sequence[str], ids: Any) -> list[dict[str, Any]]:
    return []


# --- the answer ------------------------------------------------------------------------------------------------------


def _verdict(found: dict[str, Any], dependent: bool) -> str:
    """Decide what the headline says."""
    one, means = found["components"][0], found["means"]
    if len(found["datasets"]) < 2:
        return "pca"
    if one["ratio"] is None:
        return "no ratio"
    significant = one["significant"]
    largest = max((column["effect"] ** 2 for column in means["columns"]), default=0.0) if means else 0.0
    if found["center"] == "own" and (largest > one["ratio"] or (largest > 0.0 and significant is False)):
        return "shift"
    if found["center"] == "background" and (one["shift"] or 0.0) > (one["spread"] or 0.0) and significant is not False:
        return "shift"
    if significant is None:
        return "untested"
    if not significant:
        return "chance"
    return "dependent" if dependent and found["test"]["unit"] == "rows" else "stands out"


def _caution(
    told: cautions.Cautions,
    model: Any,
    found: dict[str, Any],
    scores: Sequence[Float],
    drawn: Sequence[Sample],
    columns: Sequence[str],
    ids: Any,
) -> None:
    """Add the cautions that follow from the findings and from the rows that are drawn."""
    compared = len(found["datasets"]) > 1
    if compared:
        cautions.choice(told, found)
        cautions.shift(told, found)
        parts = found["datasets"][1:]
        unit = "rows" if parts[0]["subjects"] is None else "subjects"
        if not found["kernel"]:
            cautions.few_background_rows(told, [part[unit] for part in parts], found["n_columns"], unit)
    if getattr(model, "robust", None) is None:
        cautions.few_rows(told, [scores[0][:, 0]], ids)
    if getattr(model, "kernel", None) != "precomputed":
        scaled = getattr(model, "scale", None) is not None or found["kernel"]
        cautions.columns(told, drawn, columns, scaled)


def _version() -> str:
    try:
        return version("standout")
    except PackageNotFoundError:
        return "unknown"
