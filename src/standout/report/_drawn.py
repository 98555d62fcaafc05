"""The fit of a report: the rows that are drawn, their scores, PCA of the same rows, and views along the path."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from standout._arrays import Float, Rows, dense, stacked
from standout._messages import CautionWarning, InvalidTypeError
from standout._xp import like, take, to_host
from standout.estimators import DiscriminativePCA
from standout.report._words import encoded
from standout.sources import Batch, InMemory, Mapped, Source
from standout.sources._base import each_dataset
from standout.sources._form import word

# Maximum number of components drawn, and of labels with separate colours.
MOST_COMPONENTS, MOST_LABELS = 4, 12
# The target has at most MOST_POINTS points. The backgrounds share another MOST_POINTS equally, but each background may
# have LEAST_POINTS.
MOST_POINTS, LEAST_POINTS = 2000, 200
NO_LABEL = "(no label)"
# Number of views along the path: MOST_VIEWS if a fit costs at most COST_OF_MOST, FEW_VIEWS up to COST_OF_ANY, else 0.
MOST_VIEWS, FEW_VIEWS, COST_OF_MOST, COST_OF_ANY = 9, 5, 2e9, 4e10
# At most MOST_LISTED outlying rows are listed, each with at most MOST_NAMED columns. A column is listed if the value of
# the row is more than FAR standard deviations from the median of the column.
MOST_LISTED, MOST_NAMED, FAR = 20, 3, 4.0


@dataclass(frozen=True)
class Sample:
    """A sample of the rows of a dataset.

    Attributes
    ----------
    numbers : ndarray of int
        The numbers of these rows in the dataset, ascending.
    rows : array or CSR array
    """

    numbers: npt.NDArray[np.intp]
    rows: Rows


def rounded(values: Any, digits: int = 4) -> list[Any]:
    """Return numbers with a few digits, as a list; NaN and infinite numbers become None."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [rounded(row, digits) for row in array]
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in array.tolist()]


# --- labels ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """The labels of the target's rows: a few words with a colour each, or numbers on a scale.

    Attributes
    ----------
    names : list of str
        The words; empty for numbers.
    counts : list of int
        Number of rows with each word.
    marks : ndarray
        For each row the position of its label in `names`, or its number.
    separate : bool
        Whether there are several words, and each word is one label. False if one word stands for all rare labels.
    """

    names: list[str]
    counts: list[int]
    marks: npt.NDArray[Any]
    separate: bool

    def of(self, numbers: npt.NDArray[np.intp]) -> list[Any]:
        """Return the marks of some rows, ready for JSON."""
        marks = self.marks[numbers]
        return marks.tolist() if self.names else rounded(marks, 6)


def read_labels(given: Any) -> Labels:
    """Decide whether labels are words or numbers on a scale. Only the most frequent of many words keep their names."""
    labels = np.asarray(given)
    if labels.dtype.kind in "fiu" and len(np.unique(labels[np.isfinite(labels)])) > MOST_LABELS:
        return Labels([], [], labels.astype(np.float64), False)
    # Only NaN differs from itself. It becomes NO_LABEL, as other missing values do.
    words = [f"{x:.6g}" if isinstance(x, float) and x == x else word(x) or NO_LABEL for x in labels.tolist()]
    counts = Counter(sorted(words))
    names = sorted(name for name, _ in counts.most_common(MOST_LABELS - (len(counts) > MOST_LABELS)))
    sizes, n_others = [counts[name] for name in names], len(counts) - len(names)
    place = {name: number for number, name in enumerate(names)}
    marks = np.array([place.get(one, len(names)) for one in words])
    if n_others:
        names, sizes = [*names, f"{n_others:,} other labels"], [*sizes, len(words) - sum(sizes)]
    return Labels(names, sizes, marks, not n_others and len(names) > 1)


# --- views along the path --------------------------------------------------------------------------------------------


def aligned(scores: Sequence[Float], reference: Sequence[Float]) -> list[Float]:
    """Return scores with new signs, so that each component of the target correlates positively with a reference."""
    first, second = (part - part.mean(axis=0) for part in (scores[0], reference[0]))
    d = min(first.shape[1], second.shape[1])
    signs = np.ones(first.shape[1])
    signs[:d] = np.where(np.einsum("ij,ij->j", first[:, :d], second[:, :d]) < 0.0, -1.0, 1.0)
    return [part * signs for part in scores]


def packed(views: Sequence[Sequence[Float]]) -> dict[str, Any]:
    """Return views as 16-bit integers in base64, with their scales. A view is x of all points, then y of all points."""
    scales, data = [], []
    for view in views:
        both = np.concatenate([part[:, :2] for part in view]).T
        both = np.nan_to_num(np.vstack([both, np.zeros_like(both)])[:2])
        scale = np.maximum(np.abs(both).max(axis=1), 1e-300) / 32000.0
        whole = np.rint(both / scale[:, np.newaxis]).astype("<i2")
        scales.append([float(value) for value in scale])
        data.append(encoded(whole.tobytes()))
    return {"scale": scales, "data": data}


# --- the fit ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Fit:
    """A fitted model and its datasets, the target first.

    Attributes
    ----------
    model : estimator
    datasets : list of Source
    columns : list of str
        Names of the columns.
    ids : array or None
        Names of the target's rows.
    labels : Labels or None
    steps : list of transformers
        The steps of a pipeline before the model.
    compared, held_out, robust : bool
        Whether there is a background, scores are held out, and rows have robust weights.
    samples : list of Sample
        The rows that are drawn.
    scores, fitted, shown : list of ndarray
        One array for each dataset. `scores` has the scores of all rows, held out if there are folds. `fitted` has the
        in-sample scores of all rows. `shown` has the part of `scores` for the rows that are drawn.
    pca : tuple or None
        The ratio and its interval along the first component of PCA of the target, with the folds of the model.
    shown_by_pca : list of ndarray
        PCA scores of the rows that are drawn. If `pca` is None, they are the same as `shown`.
    """

    model: Any
    datasets: list[Source]
    columns: list[str]
    ids: Any
    labels: Labels | None
    steps: list[Any]

    def __post_init__(self) -> None:
        model, self.compared = self.model, len(self.datasets) > 1
        self.held_out = self.compared and model.n_folds_ > 0
        self.robust = hasattr(model, "row_weights_")
        if self.held_out:
            model._check_rows(self.datasets)
        draw, most = np.random.default_rng(0), MOST_POINTS
        drawn = []
        for source in self.datasets:
            count = source.count_rows()
            drawn.append(np.sort(draw.choice(count, most, replace=False)) if count > most else np.arange(count))
            # All backgrounds together have as many points as the target: more points would only hide each other.
            most = max(MOST_POINTS // max(len(self.datasets) - 1, 1), LEAST_POINTS)

        def scored(place: int) -> tuple[Float, Float, Sample]:
            source, numbers = self.datasets[place], drawn[place]
            # Each dataset is read once.
            found = source.map_reduce(partial(_of_batch, model, self.held_out, place, source.covariates, numbers))
            scores, fitted, rows = zip(*found, strict=True)
            return np.concatenate(scores), np.concatenate(fitted), Sample(numbers, to_host(stacked(rows)))

        self.scores, self.fitted, self.samples = map(list, zip(*each_dataset(scored, self.datasets), strict=True))
        self.shown = [scores[numbers] for scores, numbers in zip(self.scores, drawn, strict=True)]
        self.pca, self.shown_by_pca = None, self.shown
        if self.compared and getattr(model, "kernel", None) != "precomputed":
            names = ("center", "scale", "cv", "robust", "random_state")
            shared = {name: getattr(model, name) for name in names if hasattr(model, name)}
            twin = DiscriminativePCA(min(2, int(model.n_features_in_)), shrinkage=1.0, **shared)
            shown = picture(twin, self.datasets, self.samples, model)
            # `twin` has the components of PCA, sorted by their ratios. Sort them by their variances, as PCA does.
            order = np.argsort(-to_host(twin.eigenvalues_), kind="stable")
            self.pca = twin.ratio_[order[0]], twin.ratio_interval_[order[0]]
            self.shown_by_pca = aligned([part[:, order] for part in shown], self.shown)

    def outlying(self, names: list[str]) -> list[dict[str, Any]]:
        """Return the outlying rows with the smallest weights, and the columns in which each differs most."""
        found: list[dict[str, Any]] = []
        for place, name in enumerate(names):
            weights, numbers = self.model.row_weights_[place], np.asarray(self.model.outlying_rows_[place])
            numbers = numbers[np.argsort(weights[numbers], kind="stable")[:MOST_LISTED]]
            ids = self.ids if place == 0 else self.datasets[place].ids
            low, middle, high = np.quantile(dense(self.samples[place].rows), [0.25, 0.5, 0.75], axis=0)
            spread = (high - low) / 1.349
            far = np.abs(to_host(dense(self.datasets[place].take(numbers))) - middle)
            sizes = np.divide(far, spread, out=np.zeros_like(far), where=spread > 0.0)
            for number, size in zip(numbers.tolist(), sizes, strict=True):
                order = np.argsort(-size, kind="stable")[:MOST_NAMED].tolist()
                row = {"dataset": name, "row": number, "id": None if ids is None else str(ids[number])}
                columns = [self.columns[k] for k in order if size[k] > FAR]
                found.append({**row, "weight": float(weights[number]), "columns": columns})
        return sorted(found, key=lambda row: row["weight"])[:MOST_LISTED]

    def views(self, path: dict[str, Any] | None, ratio: float | None) -> dict[str, Any] | None:
        """Fit at other values of the path, and return the scores of the rows that are drawn."""
        n_rows, width = sum(len(sample.numbers) for sample in self.samples), int(self.model.n_features_in_)
        cost = float(n_rows) * width * min(n_rows, width)
        given = getattr(self.model, "kernel", None) == "precomputed"
        if path is None or len(path["values"]) < 3 or cost > COST_OF_ANY or given:
            return None
        n_views = MOST_VIEWS if cost <= COST_OF_MOST else FEW_VIEWS
        places = np.unique(np.linspace(0, len(path["values"]) - 1, n_views).astype(int))
        others = [path["values"][k] for k in places.tolist()]
        values = sorted([path["value"], *(v for v in others if abs(v - path["value"]) > 1e-6 * abs(v))])
        chosen = values.index(path["value"])
        # Use double precision: with single-precision rows, small values of the path would need the slowest solver.
        own = [Sample(np.arange(len(one.numbers)), one.rows.astype(np.float64)) for one in self.samples]
        parts = [
            InMemory(one.rows, source.name, source.keys)._beside(source, sample.numbers)
            for one, source, sample in zip(own, self.datasets, self.samples, strict=True)
        ]
        views: list[Any] = [self.shown] * len(values)
        ratios: list[float | None] = [ratio] * len(values)
        for step in (1, -1):
            for index in range(chosen + step, len(values) if step > 0 else -1, step):
                twin = clone(self.model).set_params(n_components=int(self.model.n_components_))
                twin.set_params(target_label=None, **{path["parameter"]: values[index]})
                views[index] = aligned(picture(twin, parts, own), views[index - step])
                ratios[index] = float(twin.ratio_[0]) if np.isfinite(twin.ratio_[0]) else None
        return {"parameter": path["parameter"], "values": values, "chosen": chosen, "ratios": ratios, **packed(views)}


def open_fit(model: Any, datasets: list[Source], labels: Any = None, ids: Any = None) -> Fit:
    """Return a `Fit` with samples of the rows. For a pipeline, it has the last step and the columns of this step."""
    for source in datasets:
        if not source.again:
            advice = "Give data that can be read again, such as standout.scan."
            raise InvalidTypeError(f"{source.name} is an iterator, which can be read only once", advice=advice)
    steps: list[Any] = []
    if hasattr(model, "steps"):
        steps = [step for _, step in model.steps[:-1]]
        before, model = Pipeline(model.steps[:-1]), model.steps[-1][1]
        keys = [str(name) for name in before.get_feature_names_out(datasets[0].columns)]
        datasets = [Mapped(source, before.transform, keys) for source in datasets]
    datasets = [model._open(source, source.name) for source in datasets]
    target = datasets[0]
    known = target.columns if target.columns is not None else getattr(model, "feature_names_in_", None)
    columns = [f"column {k}" for k in range(int(model.n_features_in_))] if known is None else list(map(str, known))
    labels = target.labels if labels is None else labels
    marks, ids = None if labels is None else read_labels(labels), target.ids if ids is None else np.asarray(ids, object)
    return Fit(model, datasets, columns, ids, marks, steps)


def _of_batch(
    model: Any, held_out: bool, place: int, covariates: Any, drawn: npt.NDArray[np.intp], batch: Batch
) -> list[tuple[Float, Float, Rows]]:
    """Return the scores of a batch, held out and in-sample, and its rows that are drawn."""
    facts = batch.rows, np.arange(batch.start, batch.start + batch.n_rows), place, covariates
    fitted = scores_of(model, False, *facts)
    scores = scores_of(model, True, *facts) if held_out else fitted
    return [(scores, fitted, take(batch.rows, np.flatnonzero(np.isin(facts[1], drawn))))]


def scores_of(
    model: Any, held_out: bool, rows: Rows, numbers: npt.NDArray[np.intp], place: int, covariates: Float | None
) -> Float:
    """Return the scores of fitted rows, by their numbers in a dataset."""
    found = model._held_out_scores(rows, numbers, place, covariates) if held_out else model._new_scores(rows)
    return np.asarray(to_host(found), dtype=np.float64)


def picture(model: Any, datasets: Sequence[Source], samples: Sequence[Sample], like_model: Any = None) -> list[Float]:
    """Fit a model only for a picture, and return the scores of the sampled rows. Warnings of the fit are ignored.

    If `like_model` has kept the sums of the same datasets, the fit uses these sums and does not read the datasets.
    """
    data = None if like_model is None or like_model.robust is not None else getattr(like_model, "_data", None)
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", CautionWarning)
        if data is None:
            model.fit(datasets[0], background=list(datasets[1:]))
        else:
            model._keep_columns(None, None, like_model.n_features_in_)
            model._keep_linear(model._fit_data(data, like_model._folds if like_model.n_folds_ else None, ""), data)
    covariates = [source.covariates for source in datasets]
    facts = [(like(one.rows, model.components_), one.numbers, place) for place, one in enumerate(samples)]
    return [scores_of(model, model.n_folds_ > 0, *own, beside) for own, beside in zip(facts, covariates, strict=True)]
