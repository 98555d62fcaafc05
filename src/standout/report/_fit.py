"""The fit that a report is about: the model, the datasets as it sees them, and their moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from standout import contrast
from standout._arrays import Array, Float, Rows
from standout._checks import as_backgrounds, check_one_each, check_same_columns, column_names, reject_on_device
from standout._messages import InvalidTypeError, dataset_names
from standout.estimators import ContrastivePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout.moments import Moments, ScatterMoments, gather, project, weighed
from standout.pencil import Pencil, choose_solver, solve
from standout.report._findings import Numbers
from standout.selection import HeldOut
from standout.sources import InMemory, Source, Table, at_hand, is_read_in_parts, is_step, open_dataset, transformed

# Held-out scores are drawn where the variance of the backgrounds on held-out rows is this many times that of the fitted
# rows, or where it is the other way round for the target along component 1.
OVERFITTED = 1.5


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and its datasets.

    Attributes
    ----------
    whole : estimator
        What was fitted: an estimator or a pipeline.
    model : estimator
        The estimator, which is the last step of a pipeline.
    datasets : list of Source
        The target, then each background, after the steps of a pipeline.
    moments : list of Moments
        Their moments; empty for a precomputed kernel, which has no columns of data.
    are_kept : bool
        Whether the moments are those that the model has kept. They are still to be compared with the rows.
    columns : list of str or None
        Names of the columns, if they are known.
    are_own : bool
        Whether the datasets are those that the model was fitted to.
    """

    whole: Any
    model: Any
    datasets: list[Source]
    moments: list[Moments]
    are_kept: bool
    columns: list[str] | None
    are_own: bool = True

    @property
    def is_kernel(self) -> bool:
        """Whether the components are directions in the feature space of a kernel."""
        return isinstance(self.model, KernelDiscriminativePCA | KernelContrastivePCA)

    @property
    def is_contrastive(self) -> bool:
        """Whether variances are subtracted."""
        return isinstance(self.model, ContrastivePCA | KernelContrastivePCA)

    @property
    def is_plain(self) -> bool:
        """Whether the fit looks at what stands out in the target, in all columns and without smoothing."""
        model = self.model
        limits = (getattr(model, name, None) for name in ("n_columns", "smooth"))
        return getattr(model, "side", "target") == "target" and all(limit is None for limit in limits)

    @property
    def is_robust(self) -> bool:
        """Whether rows of the fit have robust weights, and these are known."""
        return hasattr(self.model, "robust_weights_") and self.are_own

    def weighed(self) -> list[Source]:
        """Give the datasets as the fit has seen them: with robust weights, if rows have these."""
        if not self.is_robust:
            return self.datasets
        return [weighed(part, self.model._weighing(number))[0] for number, part in enumerate(self.datasets)]

    @property
    def has_background(self) -> bool:
        """Whether there is a background to compare with."""
        return len(self.datasets) > 1

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.model.n_features_in_)

    @cached_property
    def counts(self) -> list[int]:
        """Number of rows of each dataset."""
        if self.moments:
            return [part.count for part in self.moments]
        return [dataset.count_rows() for dataset in self.datasets]

    @property
    def is_formed(self) -> bool:
        """Whether the problem is small enough to be solved many times."""
        return choose_solver(sum(self.counts), self.n_features, 2) != "lobpcg"

    @property
    def size(self) -> int:
        """Size of the problem: the number of columns, or of all rows if these are fewer."""
        return min(self.n_features, sum(self.counts))

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the backgrounds that count: the number of rows less one of each."""
        return self.degrees_of(self.counts)

    def degrees_of(self, counts: Sequence[int]) -> int:
        """Give the degrees of freedom of the backgrounds, for the numbers of rows or subjects of all datasets."""
        weights = self.model.weights_
        return sum(n - 1 for n, weight in zip(counts[1:], weights, strict=True) if weight > 0.0)

    @property
    def method(self) -> str:
        """Name of the method."""
        kernel = "kernel " if self.is_kernel else ""
        if not self.has_background:
            return f"{kernel}PCA"
        return f"{kernel}{'contrastive' if self.is_contrastive else 'discriminative'} PCA"

    @property
    def held_out(self) -> HeldOut | None:
        """What the components are worth on rows that were not fitted; None if no rows were held out."""
        return getattr(self.model, "held_out_", None) if self.has_background and self.are_own else None

    @property
    def n_subjects(self) -> list[int] | None:
        """Number of subjects of each dataset; None if rows were taken as independent."""
        return getattr(self.model, "n_subjects_", None) if self.are_own else None

    @property
    def unit(self) -> str:
        """What rows belong together in: a subject, or a block of neighbouring rows."""
        return "block" if hasattr(self.model, "block_length_") else "subject"

    @property
    def ratios(self) -> Float | None:
        """How many times as much as the backgrounds the target varies: on rows that were held out, if there are any."""
        if not self.has_background:
            return None
        if self.held_out is not None:
            return self.held_out.ratios
        own, against = self.model.target_variance_, self._background_variance
        ratios: Float = np.divide(own, against, out=np.full_like(own, np.inf), where=against > 0.0)
        return ratios

    @property
    def draws_held_out(self) -> bool:
        """Whether target and backgrounds look much more different in their own fit than on rows that were held out."""
        if self.held_out is None:
            return False
        tighter = self.held_out.background_variance > OVERFITTED * self._background_variance
        wider = self.model.target_variance_[0] > OVERFITTED * self.held_out.target_variance[0]
        return bool(np.any(tighter) or wider)

    @property
    def _background_variance(self) -> Float:
        variance: Float = self.model.weights_ @ self.model.background_variance_
        return variance

    def held_out_scores(self, rows: Rows, numbers: Numbers, dataset: int) -> Array:
        """Give the scores of rows of a dataset, each along components that were found without it."""
        assert self.held_out is not None
        mapping = self.model.feature_map_ if self.is_kernel else None
        return self.held_out.scores(rows, numbers, dataset, project if mapping is None else mapping.project)

    @cached_property
    def principal(self) -> Float:
        """The first one or two components of PCA of the target, as columns."""
        target = self.moments[0]
        filters: Float = solve(contrast.principal(target), min(2, target.n_features, target.count - 1)).vectors
        return filters

    @property
    def spreads(self) -> Float:
        """Standard deviation of each column in the target."""
        if not self.moments:
            return np.zeros(0)
        return np.sqrt(np.maximum(self.moments[0].variances, 0.0))

    def pencil(self, moments: Sequence[Moments], shrinkage: Float | None = None) -> Pencil:
        """Pose the problem of the fit, for its own moments or for others, with its own shrinkage or another one."""
        target, *backgrounds = moments
        if not backgrounds:
            return contrast.principal(target)
        if self.is_contrastive:
            return contrast.contrastive(target, backgrounds, self.model.weights_, self.model.alpha_)
        shares = self.model.shrinkage_ if shrinkage is None else shrinkage
        return contrast.discriminative(target, backgrounds, self.model.weights_, shares)

    def agrees_with(self, counts: Sequence[int], means: Sequence[Float]) -> bool:
        """Tell whether the model was fitted to rows with these counts and means, as far as that can be told."""
        if not self.are_kept:
            if self.is_kernel:
                return True
            tolerance = 1e-6 * (self.spreads + np.abs(self.model.mean_))
            return bool(np.all(np.abs(means[0] - self.model.mean_) <= tolerance))
        for moments, count, mean in zip(self.moments, counts, means, strict=True):
            tolerance = 1e-9 * (np.sqrt(np.maximum(moments.variances, 0.0)) + np.abs(moments.mean))
            if count != moments.count or np.any(np.abs(mean - moments.mean) > tolerance):
                return False
        return True

    def gathered(self) -> Fit:
        """Give the same fit with moments that are gathered from the datasets."""
        counts = [dataset.count_rows() for dataset in self.datasets]
        wide = choose_solver(sum(counts), self.n_features, 2) in ("reduced", "lobpcg")
        moments = [gather(part, kind="rows" if wide else "scatter", single=False) for part in self.weighed()]
        return replace(self, moments=moments, are_kept=False)


def open_fit(whole: Any, target: Any, backgrounds: Any) -> Fit:
    """Open the datasets of a fit, check them against the model, and find their moments."""
    check_is_fitted(whole)
    model = whole[-1] if isinstance(whole, Pipeline) else whole
    if not hasattr(model, "weights_"):
        raise InvalidTypeError(
            "a {kind} has no backgrounds to report on",
            kind=type(model).__name__,
            advice="Give an estimator of this package, or a pipeline that ends with one.",
        )
    given = [target, *as_backgrounds(backgrounds, target)]
    check_one_each(len(given) - 1, len(model.weights_), "backgrounds", "background of the fit")
    datasets = [_opened(whole, data, name) for data, name in zip(given, dataset_names(len(given)), strict=True)]
    for dataset in datasets:
        if dataset.width is not None:
            check_same_columns(dataset.width, None, dataset.name, model.n_features_in_, None, "the fitted data")
        dataset.expect(model.n_features_in_, "the fitted data")
        dataset.require_finite()
    columns = _column_names(whole, model, datasets[0], target)
    if getattr(model, "kernel", None) == "precomputed":
        return Fit(whole, model, datasets, [], False, columns)
    kept = _kept(model, datasets)
    fit = Fit(whole, model, datasets, kept, True, columns)
    return fit if kept else fit.gathered()


def _opened(whole: Any, data: Any, name: str) -> Source:
    """Open a dataset, and take it through the steps before the model."""
    if isinstance(data, Iterator) or not getattr(data, "again", True):
        raise InvalidTypeError(
            "{name} is an iterator of batches, which can be read only once, and the fit has read it",
            name=name,
            advice="Give a dataset that can be read again, such as standout.scan.",
        )
    steps = [step for _, step in whole.steps[:-1] if is_step(step)] if isinstance(whole, Pipeline) else []
    if not steps:
        dataset = open_dataset(data, name)
    elif is_read_in_parts(data):
        dataset = reduce(transformed, steps, open_dataset(data, name))
    else:
        # A frame goes to the steps as a frame: they may choose columns by name.
        made = open_dataset(whole[:-1].transform(at_hand(data)), name)
        words = next(open_dataset(data, name).batches()) if isinstance(data, Table | Source) else None
        dataset = InMemory(made.rows(), name, made.columns, words)
    reject_on_device(dataset.specimen, f"a report of {name}", "Copy the array to the host first.")
    return dataset


def _column_names(whole: Any, model: Any, dataset: Source, target: Any) -> list[str] | None:
    """Give the names of the columns as the model sees them, if they have any."""
    given = target.columns if isinstance(target, Table | Source) else column_names(target)
    if isinstance(whole, Pipeline) and len(whole.steps) > 1:
        return None if given is None else [str(name) for name in whole[:-1].get_feature_names_out(given)]
    if given is None and hasattr(model, "feature_names_in_"):
        return [str(name) for name in model.feature_names_in_]
    return dataset.columns


def _kept(model: Any, datasets: Sequence[Source]) -> list[Moments]:
    """Give the moments that a model has kept, if they are matrices in double precision of so many rows; else none."""
    kept = [part for part in model.__dict__.get("_sums", []) if isinstance(part, ScatterMoments)]
    if len(kept) != len(datasets) or any(part.precision != np.finfo(np.float64).eps for part in kept):
        return []
    known = zip(datasets, kept, strict=True)
    return [] if any(data.n_rows not in (None, part.count) for data, part in known) else list(kept)
