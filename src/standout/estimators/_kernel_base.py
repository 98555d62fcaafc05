"""What the kernel estimators share: the kernel, the coordinates, and the moments of these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float, Rows, double, in_type_of, is_sparse, row_slice, stacked, weighted_sum
from standout._checks import as_rows, check_one_place, check_same_columns, column_names, reject_on_device
from standout._messages import InvalidTypeError, InvalidValueError
from standout._params import (
    check_approximation,
    check_held_out,
    check_kernel_list,
    check_kernel_weights,
    check_n_components,
    check_rank,
    check_robust,
    check_single_kernel,
    check_tolerance,
    check_weights,
)
from standout._xp import like, namespace
from standout.estimators._incremental import IncrementalTransformer, reject_rows_needed
from standout.features import (
    BOUNDED_TOL,
    CoordinateSums,
    FeatureMap,
    FeatureWeights,
    Kernel,
    NamedKernel,
    PrecomputedKernel,
    SumKernel,
    check_kernel_numbers,
    choose_approximation,
    chosen_landmarks,
    coordinate_folds,
    coordinate_sums,
    exact_coordinates,
    fourier_features,
    give_same_coordinates,
    given_landmarks,
    median_distance,
    residual_share,
    resolve_kernel,
)
from standout.moments import (
    Folds,
    KeptRows,
    Kind,
    Moments,
    RobustWeights,
    folds_of_datasets,
    gather,
    gather_folds,
    learned_weights,
    most_folds,
    project,
    weighed,
)
from standout.selection import PATH_FOLDS, RowFolds, learn_kernel_weights, n_folds_for
from standout.sources import InMemory, Source, attached

DEFAULT_RANK = 500
# How many of the first rows are looked at for the number of columns and for a point near the data.
FIRST_ROWS = 1000
# How many rows are looked at for the bandwidth of a Gaussian kernel.
BANDWIDTH_ROWS = 500
FIXED_COORDINATES = "Use {p.approximation:fourier}, or an array of landmarks."


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Chosen coordinates.

    Attributes
    ----------
    mapping : FeatureMap
    parts : list of Source
        Exact coordinates of each dataset; for all other kinds the dataset itself, which is still to be mapped.
    approximation : str
        The kind of coordinates.
    residual : float
        Share of the kernel's trace that is left out, if it is known already.
    nearly_full : bool
        Whether exact coordinates with the kernel as their inner product are about as many as the rows.
    """

    mapping: FeatureMap
    parts: Sequence[Source]
    approximation: str
    residual: float = float("nan")
    nearly_full: bool = False

    @property
    def n_directions(self) -> int:
        """Most directions that the centred coordinates can have."""
        known = [part.n_rows for part in self.parts if part.n_rows is not None]
        if len(known) < len(self.parts):
            return self.mapping.n_coordinates
        return min(self.mapping.n_coordinates, sum(count - 1 for count in known))

    @property
    def kind(self) -> Kind:
        """How the moments of exact coordinates are stored."""
        by_rows = self.mapping.plain_ridge or self.nearly_full
        # A device has memory for a matrix as large as the kernel's, and solves it without iterations on its rows.
        return "rows" if by_rows and not self.parts[0].on_device else "scatter"

    def scores(self, rows: Rows, mean: Float, filters: Float) -> Float:
        """Give the scores of some rows of a part."""
        return (project if self.approximation == "exact" else self.mapping.project)(rows, mean, filters)


@dataclass(frozen=True, eq=False)
class Gathered:
    """All datasets in kernel coordinates.

    Attributes
    ----------
    found : Coordinates
    moments : list of Moments
        Of the coordinates: the target's, then the backgrounds'.
    weights : ndarray of shape (n_backgrounds,)
        Equal ones if a rule is to choose them.
    kernel_weights : ndarray of shape (n_kernels,)
    residual : float
        Share of the kernel's trace that the coordinates leave out.
    sums : list of CoordinateSums or None
        What the moments were taken from; None for exact coordinates.
    folds : list of Folds or None
        The moments of each fold; None if none were asked for.
    """

    found: Coordinates
    moments: list[Moments]
    weights: Float
    kernel_weights: Float
    residual: float
    sums: list[CoordinateSums] | None = None
    folds: list[Folds[Moments]] | None = None

    @property
    def keeps_rows(self) -> bool:
        """Whether the moments are the rows of coordinates themselves."""
        return all(isinstance(part, KeptRows) for part in self.moments)

    def signs(self, vectors: Float) -> Float:
        """Give the signs for which the target's mean has the larger score, the backgrounds' the smaller one.

        Without a background, those for which the mean is on the positive side of the origin of the feature space.

        The sign of the linear methods, that of the largest entry, would depend on the order of the landmarks.
        """
        target, *backgrounds = self.moments
        step = target.mean - sum(float(w) * part.mean for w, part in zip(self.weights, backgrounds, strict=True))
        xp = namespace(vectors)
        along = weighted_sum(step, vectors)
        return xp.where(along < 0, -xp.ones_like(along), xp.ones_like(along))


class KernelTransformer(IncrementalTransformer):
    """A transformer whose components are directions in the feature space of a kernel."""

    n_components: Any
    kernel: Any
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    background_weights: Any
    rank: int | None
    tol: float | None
    approximation: Any
    kernel_weights: Any
    held_out: int | None
    feature_map_: FeatureMap
    feature_mean_: Float
    robust_cells_: list[RobustWeights]

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes and gives."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _gather(
        self,
        datasets: list[Source],
        y: Any,
        weights: Any,
        rng: np.random.Generator,
        *,
        kernel_rows: bool,
    ) -> Gathered:
        """Check everything, choose the coordinates, and gather their moments.

        `kernel_rows` tells whether the centred kernel rows may be the coordinates. Their inner products are not those
        of the kernel.
        """
        self._check_choices(datasets)
        for dataset in datasets:
            dataset.require_finite()
        datasets = self._weighed(datasets)
        weights = check_weights(weights, len(datasets) - 1)
        some = datasets[0].first(FIRST_ROWS)
        for dataset in datasets[1:]:
            dataset.expect(some.shape[1], "the target")
        kernel, kernel_weights = self._resolve(datasets, some, weights, rng)
        found = self._weighed_coordinates(self._coordinates(kernel, datasets, some, y, rng, kernel_rows))
        check_n_components(self.n_components, self.n_components, found.n_directions)
        gathered = self._summed(found, weights, kernel_weights)
        self._keep_columns(datasets, some.shape[1])
        return gathered

    def _weighed(self, datasets: list[Source]) -> list[Source]:
        """Take wild cells out of the rows, if that is asked for. Weights of rows follow from their coordinates."""
        self._forget_weights()
        if check_robust(self.robust) != "cells":
            return datasets
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InvalidValueError(
                "looks for cells of rows, but a precomputed kernel has none",
                parameter="robust",
                value=self.robust,
                advice="Use {p.robust:rows}.",
            )
        found = [self._cleaned(dataset, counts=False) for dataset in datasets]
        self.robust_cells_ = [learned for _, learned, _ in found]
        self._keep_cells([rows for _, _, rows in found])
        return [dataset for dataset, _, _ in found]

    def _weighed_coordinates(self, found: Coordinates) -> Coordinates:
        """Weigh rows by their coordinates, if robust weights are asked for, and keep what was learned."""
        if self.robust is None:
            return found
        exact, seed = found.approximation == "exact", self._seed()
        mapped = double if exact else found.mapping.transform
        learned = [learned_weights(part, seed=seed, coordinates=mapped) for part in found.parts]
        parts = [
            weighed(part, own if exact else FeatureWeights(found.mapping, own))
            for part, own in zip(found.parts, learned, strict=True)
        ]
        self.robust_weights_ = learned
        self._keep_weights([(own, rows) for own, (_, rows) in zip(learned, parts, strict=True)])
        return replace(found, parts=[part for part, _ in parts])

    def _weighing(self, number: int) -> FeatureWeights:
        cells = self.robust_cells_[number] if hasattr(self, "robust_cells_") else None
        return FeatureWeights(self.feature_map_, self.robust_weights_[number], cells)

    def _summed(self, found: Coordinates, weights: Float, kernel_weights: Float) -> Gathered:
        """Gather the moments of coordinates, and those of folds if they are wanted and not too large."""
        wanted = check_held_out(self.held_out) or (PATH_FOLDS if self._chooses_by_folds else None)
        wanted = None if wanted is None else most_folds(wanted, found.parts)
        n_folds, size = None, found.mapping.n_coordinates
        if wanted is not None and len(found.parts) > 1:
            known = [part.n_rows for part in found.parts if part.n_rows is not None and part.in_memory]
            n_folds = n_folds_for(wanted, size, min(known) if len(known) == len(found.parts) else None)
        exact = found.approximation == "exact"
        if n_folds is None:
            if exact:
                every = [gather(part, kind=found.kind, single=False, name=part.name) for part in found.parts]
                return Gathered(found, every, weights, kernel_weights, found.residual)
            sums = [coordinate_sums(found.mapping, part, part.name) for part in found.parts]
            return Gathered(found, [s.moments for s in sums], weights, kernel_weights, residual_share(sums), sums)
        if exact and found.kind == "rows" and wanted is not None:
            every = [gather(part, kind="rows", single=False, name=part.name) for part in found.parts]
            kept = [part for part in every if isinstance(part, KeptRows)]
            numbers = folds_of_datasets([part.count for part in kept], found.parts, n_folds, wanted)
            by_rows: list[Folds[Moments]] = list(RowFolds.of_all(kept, numbers, n_folds, wanted))
            return Gathered(found, every, weights, kernel_weights, found.residual, folds=by_rows)
        if exact:
            folds = [
                gather_folds(part, n_folds, n_dealt=wanted, kind=found.kind, single=False, name=part.name)
                for part in found.parts
            ]
            every = [part.total() for part in folds]
            return Gathered(found, every, weights, kernel_weights, found.residual, folds=folds)
        assert wanted is not None
        by_fold = [coordinate_folds(found.mapping, part, n_folds, wanted, part.name) for part in found.parts]
        n_folds = n_folds_for(wanted, size, min(part.count for part in by_fold)) or n_folds
        by_fold = [part.fewer(n_folds) for part in by_fold]
        sums = [part.total() for part in by_fold]
        moments: list[Moments] = [part.moments for part in sums]
        folds = [part.mapped(lambda fold: fold.moments) for part in by_fold]
        return Gathered(found, moments, weights, kernel_weights, residual_share(sums), sums, folds)

    def _check_numbers(self) -> None:
        """Check the parameters that need no data."""
        check_tolerance(self.tol)
        check_kernel_numbers(self.gamma, self.degree, self.coef0)
        check_approximation(self.approximation)
        check_rank(self.rank)

    def _check_choices(self, datasets: list[Source]) -> None:
        """Refuse, before anything is read, what cannot be asked of these datasets."""

    @property
    def _chooses_by_folds(self) -> bool:
        """Whether a parameter is chosen by rows that were not fitted."""
        return False

    @abstractmethod
    def _answer(self, gathered: Gathered, seed: int) -> None:
        """Choose parameters, solve, and keep the results."""

    def _check_incremental(self) -> None:
        self._check_numbers()
        if isinstance(self.kernel_weights, str) and self.kernel_weights == "learn":
            reject_rows_needed("kernel_weights", "learn", "Give one number per kernel")
        if "_sums" not in vars(self) and isinstance(self.approximation, str) and self.approximation != "fourier":
            raise InvalidValueError(
                "chooses its coordinates from all rows, but partial_fit sees a batch at a time",
                parameter="approximation",
                value=self.approximation,
                advice=FIXED_COORDINATES,
            )

    def _begin(self, datasets: list[Source | None]) -> None:
        """Fix the coordinates with the first rows; every later batch is mapped in the same way."""
        given = [dataset for dataset in datasets if dataset is not None]
        some = given[0].first(FIRST_ROWS)
        for dataset in given:
            dataset.expect(some.shape[1], "the first rows")
        rng = np.random.default_rng(self._seed())
        kernel, self.kernel_weights_ = self._resolve([], some, np.zeros(0), rng)
        found = self._coordinates(kernel, [], some, None, rng, kernel_rows=False)
        self.feature_map_, self.approximation_ = found.mapping, found.approximation

    def _sum(self, dataset: Source) -> CoordinateSums:
        return coordinate_sums(self.feature_map_, dataset, dataset.name)

    def _check_merge(self, other: Any) -> None:
        if not give_same_coordinates(self.feature_map_, other.feature_map_, self.n_features_in_):
            raise InvalidValueError(
                "the two estimators have different kernel coordinates",
                advice="Fit both with the same kernel, and with the same array of landmarks or the same "
                "{p.random_state}.",
            )

    def _solve(self, sums: list[Any]) -> None:
        weights = self.background_weights
        weights = check_weights(None if isinstance(weights, str) else weights, len(sums) - 1)
        n_possible = min(self.feature_map_.n_coordinates, sum(part.count - 1 for part in sums))
        check_n_components(self.n_components, self.n_components, n_possible)
        found = Coordinates(self.feature_map_, [], self.approximation_)
        moments = [part.moments for part in sums]
        self._answer(Gathered(found, moments, weights, self.kernel_weights_, residual_share(sums), sums), self._seed())

    def _n_wanted(self) -> int:
        return self.n_components

    def _keep_coordinates(self, gathered: Gathered) -> None:
        """Keep how rows become coordinates."""
        self.feature_map_ = gathered.found.mapping
        self.feature_mean_ = gathered.moments[0].mean
        self.residual_ = gathered.residual
        self.kernel_weights_ = like(gathered.kernel_weights, self.feature_mean_)
        self.approximation_ = gathered.found.approximation
        self._keep_found(_sums=gathered.sums)

    def _resolve(
        self, datasets: list[Source], some: Rows, weights: Float, rng: np.random.Generator
    ) -> tuple[Kernel, Float]:
        """Fix the kernel's parameters, and learn the weights of several kernels if asked to."""
        options: dict[str, Any] = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        # Given landmarks fix everything: the same ones give the same coordinates, whatever the rows.
        near = some if isinstance(self.approximation, str) else self._landmarks(some)
        options["origin"] = None if is_sparse(near) else namespace(near).mean(double(row_slice(near, 0, 1000)), axis=0)
        self.__dict__.pop("bandwidth_", None)

        def completed(name: Any, params: dict[str, Any] | None) -> dict[str, Any] | None:
            """Give the paper's Gaussian kernel a bandwidth of the size of the distances between rows."""
            if not isinstance(name, str) or name != "gaussian" or "bandwidth" in (params or {}):
                return params
            readable = isinstance(self.approximation, str) and datasets and all(data.again for data in datasets)
            each = BANDWIDTH_ROWS // max(len(datasets), 1)
            rows = [data.sample(each, np.random.default_rng(0)) for data in datasets] if readable else [near]
            self.bandwidth_ = median_distance(stacked([row_slice(part, 0, BANDWIDTH_ROWS) for part in rows]))
            return {**(params or {}), "bandwidth": self.bandwidth_}

        if not isinstance(self.kernel, list):
            check_single_kernel(self.kernel_weights, self.kernel_params)
            name, params = self.kernel if isinstance(self.kernel, tuple) else (self.kernel, self.kernel_params)
            params = completed(name, params)
            resolved = resolve_kernel(name, kernel_params=params, **options)
            _check_on_device([resolved], some)
            return resolved, np.ones(1)
        check_kernel_list(self.kernel)
        pairs = [kernel if isinstance(kernel, tuple) else (kernel, {}) for kernel in self.kernel]
        kernels = tuple(
            resolve_kernel(name, kernel_params=completed(name, params), **options) for name, params in pairs
        )
        _check_on_device(kernels, some)
        given = check_kernel_weights(self.kernel_weights, len(kernels))
        if given is None:
            self._reject_iterators(datasets)
            reject_on_device(some, "kernel_weights='learn'", "Give the weights as numbers, or None.")
            given = learn_kernel_weights(kernels, [dataset.rows() for dataset in datasets], weights, rng)
        return SumKernel(kernels, given), given

    def _coordinates(
        self,
        kernel: Kernel,
        datasets: list[Source],
        some: Rows,
        y: Any,
        rng: np.random.Generator,
        kernel_rows: bool,
    ) -> Coordinates:
        """Choose the coordinates."""
        approximation = self.approximation
        precomputed = isinstance(kernel, PrecomputedKernel)
        if precomputed:
            self._reject_iterators(datasets)
            # All rows are needed together, and are read once.
            subjects = [data.subjects for data in datasets]
            datasets = [InMemory(data.rows(), data.name, words=data.batch()) for data in datasets]
            datasets = attached(datasets, subjects)
            _check_precomputed(datasets, approximation)
        if not isinstance(approximation, str):
            return Coordinates(given_landmarks(kernel, self._landmarks(some)), datasets, "landmarks")
        if approximation == "fourier":
            features = fourier_features(kernel, some.shape[1], self.rank or DEFAULT_RANK, rng, some)
            return Coordinates(features, datasets, "fourier")
        self._reject_iterators(datasets)
        n_rows = sum(dataset.count_rows() for dataset in datasets)
        check_rank(self.rank, n_rows)
        if approximation == "auto":
            approximation = "exact" if precomputed else choose_approximation(n_rows)
        if approximation == "exact":
            # Exact coordinates need a matrix of n_rows x n_rows. The rows need little memory compared with it.
            batches = [dataset.batch() for dataset in datasets]
            mapping, parts, residual = exact_coordinates(
                kernel,
                [batch.rows for batch in batches],
                self._column_order(y, n_rows),
                self.tol,
                self.rank,
                # The ridge of kernel rows counts every row once.
                kernel_rows=kernel_rows and self.robust is None and all(batch.weights is None for batch in batches),
            )
            named = [
                InMemory(part, dataset.name, words=batch)
                for part, dataset, batch in zip(parts, datasets, batches, strict=True)
            ]
            nearly_full = not kernel_rows and 2 * mapping.n_coordinates > n_rows
            of_subjects = attached(named, [data.subjects for data in datasets])
            return Coordinates(mapping, of_subjects, "exact", residual, nearly_full)
        rank = min(self.rank or DEFAULT_RANK, n_rows)
        landmarks = chosen_landmarks(kernel, datasets, rank, self.tol or BOUNDED_TOL, rng)
        return Coordinates(landmarks, datasets, "pivoted")

    def _reject_iterators(self, datasets: list[Source]) -> None:
        """Refuse iterators if the coordinates are chosen from the rows."""
        if not all(dataset.again for dataset in datasets):
            raise InvalidTypeError(
                "chooses its coordinates from the rows, but an iterator of batches can be read only once",
                parameter="approximation",
                value=self.approximation,
                advice=FIXED_COORDINATES,
            )

    def _landmarks(self, some: Rows) -> Rows:
        """Check the landmarks that are given, against some rows."""
        landmarks = as_rows(self.approximation, "the landmarks", min_rows=1, finite=True)
        check_one_place([some, landmarks], ["the target", "the array of landmarks"])
        check_same_columns(
            landmarks.shape[1],
            column_names(self.approximation),
            "the array of landmarks",
            some.shape[1],
            self._known_names,
            "the target",
        )
        return landmarks

    def _column_order(self, y: Any, n_rows: int) -> npt.NDArray[np.intp]:
        """Give the columns of a precomputed kernel that belong to the rows of the datasets, in their order."""
        if self.target_label is None:
            return np.arange(n_rows)
        labels = np.asarray(y)
        return np.concatenate(
            [np.flatnonzero(labels == label) for label in (self.target_label, *self.background_labels_)]
        )

    @property
    def _projection(self) -> Callable[[Rows], Array]:
        return KernelProjection(self.feature_map_, self.feature_mean_, self.components_.T)


@dataclass(frozen=True, eq=False)
class KernelProjection:
    """From rows to scores, with nothing but what that takes: it may be sent to other processes.

    Attributes
    ----------
    mapping : FeatureMap
    mean : ndarray of shape (n_coordinates,)
    filters : ndarray of shape (n_coordinates, n_components)
    """

    mapping: FeatureMap
    mean: Float
    filters: Float

    def __call__(self, rows: Rows) -> Array:
        """Give the scores of these rows."""
        return in_type_of(self.mapping.project(rows, self.mean, self.filters), rows)


def _check_precomputed(datasets: list[Source], approximation: Any) -> None:
    """Check the shapes of a precomputed kernel: every row against all fitted rows."""
    if not isinstance(approximation, str) or approximation not in ("auto", "exact"):
        raise InvalidValueError(
            "a precomputed kernel is used as it is", advice="Use {p.approximation:auto} or {v.exact}."
        )
    n_rows = sum(dataset.count_rows() for dataset in datasets)
    for dataset in datasets:
        if dataset.width != n_rows:
            raise InvalidValueError(
                "the precomputed kernel has {width} columns, but there are {limit} rows in all datasets",
                width=dataset.width,
                limit=n_rows,
                advice="Give the kernel of each row with all rows: the target's first, then those of each background.",
            )


def _check_on_device(kernels: Sequence[Kernel], some: Rows) -> None:
    """Refuse kernels that exist for NumPy arrays only."""
    for kernel in kernels:
        if not (isinstance(kernel, NamedKernel) and isinstance(kernel.metric, str)):
            name = repr(kernel.metric) if isinstance(kernel, NamedKernel) else "'precomputed'"
            reject_on_device(some, f"kernel={name}", "Use a kernel that scikit-learn has a name for, such as 'rbf'.")
