"""The fit that is looked at: the model, the rows it was fitted on, and their moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Float, Rows, is_sparse
from standout._checks import as_backgrounds, as_rows, check_one_each, check_same_columns, column_names
from standout.estimators import ContrastivePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout.moments import Moments, ScatterMoments, gather
from standout.pencil import choose_solver


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model and its data.

    Attributes
    ----------
    whole : estimator
        What was fitted; a pipeline, maybe.
    model : estimator
        The one that looks for components: the last step of a pipeline.
    rows : list of rows
        Of the target, then of each background, as that model takes them.
    moments : list of Moments
        The same as moments; empty for a precomputed kernel, whose columns are rows.
    columns : list of str or None
        Names of the columns, if the data know them.
    """

    whole: Any
    model: Any
    rows: list[Rows]
    moments: list[Moments]
    columns: list[str] | None

    @property
    def is_kernel(self) -> bool:
        """Whether the components are those of a kernel's feature space."""
        return isinstance(self.model, KernelDiscriminativePCA | KernelContrastivePCA)

    @property
    def is_contrastive(self) -> bool:
        """Whether variances are subtracted."""
        return isinstance(self.model, ContrastivePCA | KernelContrastivePCA)

    @property
    def is_formed(self) -> bool:
        """Whether the problem is small enough to be solved many times."""
        return choose_solver(sum(self.counts), self.rows[0].shape[1], 2) != "lobpcg"

    @property
    def size(self) -> int:
        """Size of the problem: the number of columns, or of all rows where these are fewer."""
        return min(int(self.rows[0].shape[1]), sum(self.counts))

    @property
    def counts(self) -> list[int]:
        """Number of rows of each dataset."""
        return [int(rows.shape[0]) for rows in self.rows]

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the backgrounds that count: their rows less one each."""
        weights = self.model.weights_
        return sum(n - 1 for n, weight in zip(self.counts[1:], weights, strict=True) if weight > 0.0)

    @property
    def method(self) -> str:
        """The method in words."""
        kernel = "kernel " if self.is_kernel else ""
        if len(self.rows) == 1:
            return f"{kernel}PCA"
        return f"{kernel}{'contrastive' if self.is_contrastive else 'discriminative'} PCA"

    @property
    def spreads(self) -> Float:
        """Standard deviation of each column in the target."""
        if not self.moments:
            return np.zeros(0)
        return np.sqrt(np.maximum(self.moments[0].variances, 0.0))


def open_subject(whole: Any, target: Any, backgrounds: Any) -> Subject:
    """Check the data against the fit, take them through a pipeline's steps, and gather their moments."""
    check_is_fitted(whole)
    model, datasets = whole, [target, *as_backgrounds(backgrounds, target)]
    columns = column_names(target)
    if isinstance(whole, Pipeline):
        model = whole[-1]
        if len(whole.steps) > 1:
            datasets = [whole[:-1].transform(data) for data in datasets]
            named = whole[:-1].get_feature_names_out(columns) if columns is not None else None
            columns = None if named is None else [str(name) for name in named]
    check_one_each(len(datasets) - 1, len(model.weights_), "backgrounds", "background of the fit")
    rows = []
    for number, data in enumerate(datasets):
        name = f"background {number}" if number else "the target"
        rows.append(as_rows(data, name, finite=True, host=True))
        check_same_columns(rows[-1].shape[1], None, name, model.n_features_in_, None, "the fitted data")
    if columns is None and hasattr(model, "feature_names_in_"):
        columns = [str(name) for name in model.feature_names_in_]
    precomputed = getattr(model, "kernel", None) == "precomputed"
    moments = [] if precomputed else _kept(model, rows) or _gathered(rows)
    return Subject(whole, model, rows, moments, columns)


def _kept(model: Any, rows: Sequence[Rows]) -> list[Moments]:
    """Give the moments that the model has kept, if they are of these rows and nothing but a matrix; else none."""
    kept = model.__dict__.get("_sums", [])
    matrices = [part for part in kept if isinstance(part, ScatterMoments) and part.precision == np.finfo(float).eps]
    if len(matrices) < len(rows) or any(is_sparse(part) for part in rows):
        return []
    for part, moments in zip(rows, matrices, strict=True):
        # A pass for the mean is a fraction of one for all products, and no other rows have this one.
        mean = np.mean(part, axis=0, dtype=np.float64)
        tolerance = 1e-10 * (np.sqrt(moments.variances) + np.abs(moments.mean))
        if part.shape[0] != moments.count or np.any(np.abs(mean - moments.mean) > tolerance):
            return []
    return list(matrices)


def _gathered(rows: Sequence[Rows]) -> list[Moments]:
    """Gather the moments as the solver of this shape wants them."""
    solver = choose_solver(sum(part.shape[0] for part in rows), rows[0].shape[1], 2)
    wide = solver in ("reduced", "lobpcg")
    return [gather(part, kind="rows" if wide else "scatter", single=False) for part in rows]
