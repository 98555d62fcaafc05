"""The kernel estimators: the linear problem in the coordinates of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from standout._arrays import Array, Float, Rows, one_blas_thread, product, squared_lengths
from standout._messages import FindingWarning, warn_user
from standout._options import documented
from standout._xp import (
    cholesky,
    column_norms,
    columns_as_rows,
    diagonal,
    eigh,
    largest,
    namespace,
    solve_triangular,
    take,
    to_host,
)
from standout.estimators._fit import BackgroundTransformer, Fit
from standout.estimators._kernel_rows import KernelRows
from standout.estimators._scores import keep_parameters
from standout.features import Coordinates, Kernel, LandmarkMap, SumKernel, fit_coordinates, resolve_kernel
from standout.features import sample as sample_rows
from standout.moments import Moments
from standout.pencil._record import check_directions
from standout.problem import Problem, adjusted
from standout.selection._data import Data, TallData, make_data, plan_folds
from standout.selection._weights import simplex_grid
from standout.sources import InMemory, Mapped, Source

# A pivot of a Cholesky factor below this number of rounding units may be only a rounding error.
ROUNDED_PIVOT = 100.0
# A variance of the coordinates below this share of their squared mean is only a rounding error.
ROUNDED_VARIANCE = 1e-30
# The fit warns if rounding errors of scores exceed ROUNDED_SCORES standard deviations of the background. EPS is the
# rounding unit of double precision.
ROUNDED_SCORES, EPS = 1e-3, float(np.finfo(np.float64).eps)
# Coordinates are rounded to multiples of this share of the largest coordinate.
ROUNDED_DIGITS = 1e-12
# Maximum number of rows for learning the weights of kernels, and number of steps of the grid of weights.
LEARNED_ROWS, STEPS = 600, 4


class KernelTransformer(BackgroundTransformer):
    """An estimator whose components are directions in the feature space of a kernel."""

    _origin = "feature_mean_"
    kernel: Any
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    kernel_weights: Any
    approximation: Any
    rank: int | None
    tol: float | None

    feature_map_: LandmarkMap
    feature_mean_: Float
    kernel_: Kernel
    approximation_: str
    residual_: float

    _linear = False
    _why_no_ratio = (
        ". If all datasets vary, the kernel is too narrow for them: choose a smaller `gamma`, such as the default that "
        "follows the distances between rows"
    )

    def _weighed(self, sources: list[Source]) -> list[Source]:
        # Outlying cells are found in the rows. Outlying rows are found later, in the coordinates (`_fit_sources`).
        return super()._weighed(sources) if self.robust == "cells" else sources

    def _fit_sources(self, sources: list[Source]) -> None:
        if sources[0].covariates is not None:
            problem = "a kernel method removes only effects of covariates that are linear in its coordinates. If their "
            problem += "distribution differs between the datasets, other effects are found, and p-values are too small"
            warn_user(problem, advice="Subtract the effects from the columns before the fit instead.")
        seed = self._seed()
        self.kernel_ = self._resolved(sources, seed)
        found = self._located(sources, self.kernel_, seed)
        self.feature_map_, self.approximation_, self.residual_ = found.map, found.approximation, found.residual
        check_directions(1, int(found.sources[0].width or 0))
        parts = super()._weighed(_rounded(found.sources)) if self.robust == "rows" else list(found.sources)
        fit, self._root = self._fit_coordinates(parts, found.map, seed)
        if isinstance(self.n_components, str) and len(parts) > 1:
            root = self._root
            rooted = parts if root is None else _changed(parts, lambda rows: product(rows, root))
            again = partial(self._fit_coordinates, parts, found.map, seed)
            fit, self._root = self._count_components(rooted, fit, again) or (fit, root)
        self._keep_kernel(fit)

    def _fit_coordinates(self, sources: Sequence[Source], kind: LandmarkMap, seed: int) -> tuple[Fit, Float | None]:
        """Fit the coordinates of datasets. Return the fit, and the matrix that multiplies the coordinates, or None."""
        folds, reason = plan_folds(sources, self.cv, int(sources[0].width or 0))
        root = None
        if kind.counts:
            # These coordinates are inner products with the centred rows. These rows are already a root of the scatter.
            wide = make_data(sources, folds, norms=False, wide=True)
            data: Data = KernelRows(**vars(wide))
        else:
            data = make_data(sources, folds, norms=False)
            assert isinstance(data, TallData)
            if self.method == "kdpca":
                root = _total_root([adjusted(part, data.n_covariates) for part in data.totals])
                check_directions(1, int(root.shape[1]))
                data = data.mapped(root)
        with one_blas_thread(data.n_columns**3):
            moments = data.sums(Problem()).moments
            if all(part.total_variance <= ROUNDED_VARIANCE * float(part.mean @ part.mean) for part in moments):
                check_directions(1, 0)
            return self._fit_problem(data, folds, reason, seed), root

    def _resolved(self, sources: Sequence[Source], seed: int) -> Kernel:
        """Return the kernel with all its parameters. The weights of several kernels may be learned."""
        learn = isinstance(self.kernel_weights, str)
        again = all(source.again for source in sources)
        rows = sample_rows(sources, seed=seed) if again and self.kernel != "precomputed" else None
        kernel = resolve_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            kernel_weights=None if learn else self.kernel_weights,
            rows=rows,
        )
        if isinstance(kernel, SumKernel):
            if learn:
                kernel = self._learned(kernel, sources, seed)
            self.kernel_weights_ = np.asarray(kernel.weights)
        return kernel

    def _learned(self, kernel: SumKernel, sources: Sequence[Source], seed: int) -> SumKernel:
        """Return the mixture of kernels with the best held-out ratios, on a grid of weights (Remark 5 of the paper)."""
        rng = np.random.default_rng(seed)
        some: list[Source] = []
        for source in sources:
            count = source.count_rows()
            numbers = np.sort(rng.choice(count, min(count, LEARNED_ROWS // len(sources)), replace=False))
            some.append(InMemory(source.take(numbers), source.name))
        # Kernels are divided by the mean of their diagonals before mixing, so that they have the same size.
        units = np.array([float(np.mean(to_host(part.diagonal(some[0].rows)))) or 1.0 for part in kernel.kernels])
        best, chosen = -np.inf, kernel
        for point in simplex_grid(len(kernel.kernels), STEPS):
            # The weights sum to 1, as in the fit, because the effect of a given ε depends on the size of the kernel.
            mixture = replace(kernel, weights=point / units / np.sum(point / units))
            found = self._located(some, mixture, seed)
            fit, _ = self._fit_coordinates(found.sources, found.map, seed)
            worth = -np.inf if fit.held_out is None else float(np.nanmean(np.log(fit.held_out.ratio)))
            if worth > best:
                best, chosen = worth, mixture
        return chosen

    def _located(self, sources: Sequence[Source], kernel: Kernel, seed: int) -> Coordinates:
        plain = all(part.weights is None and part.covariates is None for part in sources) and len(sources) > 1
        plain &= self.method == "kdpca" and self.center == "own" and self.robust is None
        return fit_coordinates(
            sources,
            kernel,
            approximation=self.approximation,
            rank=self.rank,
            tol=self.tol,
            kernel_rows=plain,
            seed=seed,
        )

    def _keep_kernel(self, fit: Fit) -> None:
        self.components_ = columns_as_rows(fit.inner / self._keep_fit(fit))
        self.feature_mean_, factor = fit.mean, self.feature_map_.factor
        if factor is not None and len(fit.moments) > 1:
            # A score is a weighted sum of kernel values with the landmarks. `weights` has the norm of these weights for
            # each component. Large norms amplify rounding errors of the kernel values.
            weights = column_norms(solve_triangular(factor, 1.0 * self._filters, transposed=True))
            if EPS * largest(squared_lengths(factor)) * largest(weights) > ROUNDED_SCORES:
                problem = (
                    "rounding of the kernel's values is large beside the background's spread: a ratio is not reliable"
                )
                warn_user(problem, advice="Scale and centre the columns.", category=FindingWarning)

    @property
    def _filters(self) -> Float:
        """The components in the coordinates of `feature_map_`."""
        return self.components_.T if self._root is None else product(self._root, self.components_.T)

    def _scores(self, rows: Rows) -> Array:
        # `_filters` has the root as a factor. Multiplying the few filters is faster than multiplying the coordinates.
        scores: Array = product(self.feature_map_.transform(rows), self._filters)
        return scores - product(self.feature_mean_[None, :], self.components_.T)

    def _coordinates(self, rows: Rows) -> Rows:
        coordinates = self.feature_map_.transform(rows)
        return coordinates if self._root is None else product(coordinates, self._root)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _total_root(parts: Sequence[Moments]) -> Float:
    """Return a root L of the total scatter T of the datasets, each about its own mean: ``T = L Lᵀ``.

    Directions in which no dataset varies, such as the constant of a polynomial kernel, are left out. In the
    coordinates g, the paper's ridge is ``ε T⁻¹``. In the coordinates ``g L``, the paper's ridge is ``ε I``.
    """
    total: Array = sum(part.total_weight * part.covariance() for part in parts)  # type: ignore[assignment]
    xp = namespace(total)
    factor = cholesky(1.0 * total)
    rounding = total.shape[0] * float(np.finfo(np.float64).eps)
    if factor is not None and bool(xp.all(diagonal(factor) ** 2 > ROUNDED_PIVOT * rounding * diagonal(total))):
        return xp.tril(factor)
    values, vectors = eigh(total)
    kept = np.flatnonzero(to_host(values > rounding * xp.max(values)))
    return take(vectors, kept, axis=1) * xp.sqrt(take(values, kept))


def _rounded(sources: Sequence[Source]) -> list[Source]:
    """Return rounded coordinates. Unrounded, equal rows would differ by errors that look like a variance."""
    step = ROUNDED_DIGITS * max(source.map_reduce(lambda batch: largest(abs(batch.rows)), max) for source in sources)
    return _changed(sources, lambda rows: namespace(rows).round(rows / step) * step if step else rows)


def _changed(sources: Sequence[Source], function: Callable[[Rows], Rows]) -> list[Source]:
    return [Mapped(source, function, None).at_once() for source in sources]


@documented("kdpca")
class KernelDiscriminativePCA(KernelTransformer):
    """In which nonlinear views does the target vary while the backgrounds do not?

    Discriminative PCA in the feature space of a kernel. The method is KdPCA for one background, KMdPCA for several
    (Algs. 2 and 4 of [1]_), and kernel PCA without a background. New rows can be projected. For large data,
    coordinates are computed from landmarks.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    ratio_ : ndarray of shape (n_components,)
        The ratio on held-out rows: target's variance along each component, in units of the background's variance.
    ratio_error_ : ndarray of shape (n_components,)
        Standard error of `ratio_`.
    epsilon_ : float
        The ridge that was used; `path_` shows how it was chosen.
    components_ : ndarray of shape (n_components, n_coordinates)
        The components. They are directions in the coordinates of `feature_map_`, after these coordinates are multiplied
        by a root of their total scatter.
    feature_map_ : LandmarkMap
        The map from rows to coordinates. `feature_mean_` is the point from which scores are measured.
    approximation_ : str
        The kind of coordinates: "exact", "pivoted" or "landmarks".
    residual_ : float
        Share of the kernel's trace that the coordinates leave out.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of a list of kernels.
    eigenvalues_, spread_, shift_, background_weights_, problem_, path_ :
        As in `DiscriminativePCA`.

    See Also
    --------
    DiscriminativePCA : The linear method.
    KernelContrastivePCA : The difference of variances instead of the ratio.

    Notes
    -----
    With ``kernel="precomputed"``, X has shape (m, n) and each background (nₖ, n). The ``n = m + n₁ + ...`` columns are
    for all fitted rows, the rows of the target first. ``transform`` needs the kernel of new rows with the same n rows.

    References
    ----------
    .. [1] J. Chen, G. Wang, G. B. Giannakis, "Nonlinear Dimensionality Reduction for Discriminative Analytics of
       Multiple Datasets", IEEE Transactions on Signal Processing 67(3), 2019.

    Examples
    --------
    The target has two circles, one inside the other. They are hidden by a larger circle that is also in the background.

    >>> from standout import KernelDiscriminativePCA
    >>> from standout.datasets import make_hidden_circles
    >>> from standout.metrics import clustering_error
    >>> data = make_hidden_circles()
    >>> kdpca = KernelDiscriminativePCA(kernel="homogeneous_polynomial", degree=2)
    >>> scores = kdpca.fit_transform(data.target, background=data.backgrounds)
    >>> clustering_error(scores, data.labels)
    0.0
    """

    method = "kdpca"
    epsilon_: float

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = 2,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        kernel_weights: Any = None,
        epsilon: float | Literal["auto"] = "auto",
        background_weights: Any = None,
        center: Literal["own", "background"] = "own",
        approximation: Any = "auto",
        rank: int | None = None,
        tol: float | None = None,
        robust: Literal["rows", "cells"] | None = None,
        cv: int | None = 5,
        target_label: Any = None,
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())


@documented("kcpca")
class KernelContrastivePCA(KernelTransformer):
    """In which nonlinear views does the target have more variance than the backgrounds?

    Contrastive PCA in the feature space of a kernel: KcPCA, a baseline in the paper on KdPCA.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    ratio_ : ndarray of shape (n_components,)
        The ratio on held-out rows: target's variance along each component, in units of the background's variance.
    ratio_error_ : ndarray of shape (n_components,)
        Standard error of `ratio_`.
    alpha_ : float
        The α that was used; `path_` shows how it was chosen.
    components_, feature_map_, approximation_, residual_, kernel_weights_ :
        As in `KernelDiscriminativePCA`.

    See Also
    --------
    KernelDiscriminativePCA : The ratio of variances instead of the difference.

    Examples
    --------
    >>> from standout import KernelContrastivePCA
    >>> from standout.datasets import make_hidden_circles
    >>> data = make_hidden_circles()
    >>> kcpca = KernelContrastivePCA(kernel="homogeneous_polynomial", degree=2)
    >>> kcpca.fit_transform(data.target, background=data.backgrounds).shape
    (300, 2)
    """

    method = "kcpca"
    alpha_: float

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = 2,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        kernel_weights: Any = None,
        alpha: float | Literal["auto"] = "auto",
        background_weights: Any = None,
        center: Literal["own", "background"] = "own",
        approximation: Any = "auto",
        rank: int | None = None,
        tol: float | None = None,
        robust: Literal["rows", "cells"] | None = None,
        cv: int | None = 5,
        target_label: Any = None,
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())
