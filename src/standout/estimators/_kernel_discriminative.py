"""Kernel discriminative PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from standout import contrast
from standout._arrays import Array, Float, double, is_sparse, product, sum_of_squares, weighted_sum
from standout._validation import (
    Batches,
    as_rows,
    check_approximation,
    check_epsilon,
    check_kernel_list,
    check_kernel_matrix,
    check_kernel_numbers,
    check_kernel_weights,
    check_n_components,
    check_precomputed,
    check_rank,
    check_same_columns,
    check_single_kernel,
    check_tolerance,
    check_weights,
    column_names,
    reject_batches,
    reject_indefinite,
    require_finite,
)
from standout.estimators._base import BackgroundTransformer
from standout.estimators._kernel_weights import learn_kernel_weights
from standout.features import (
    FeatureMap,
    Kernel,
    LandmarkMap,
    PrecomputedKernel,
    SumKernel,
    choose_approximation,
    chosen_landmarks,
    exact_coordinates,
    fourier_features,
    given_landmarks,
    resolve_kernel,
)
from standout.features._exact import BOUNDED_TOL
from standout.moments import Kind, Moments, ScatterMoments, gather
from standout.pencil import solve

# "scaled" epsilon: this share of the mean of the diagonal of K Σ ωₖ Kₖ.
SCALED_EPSILON = 1e-3
DEFAULT_RANK = 500


class KernelDiscriminativePCA(BackgroundTransformer):
    """In which nonlinear views does the target vary while the backgrounds do not?

    Discriminative PCA in the feature space of a kernel: KdPCA for one background, KMdPCA for several (Algs. 2 and 4 of
    [1]_), kernel PCA for none (Remark 6). New rows can be projected, and large data are handled through landmarks.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    kernel : str, callable, or list of such, default="rbf"
        A name that `sklearn.metrics.pairwise.pairwise_kernels` knows ("linear", "rbf", "poly", "laplacian", "sigmoid",
        "cosine", "chi2", ...); one of the paper's own, "gaussian" with ``exp(-|x - z|² / (2 bandwidth²))``,
        "homogeneous_polynomial" with ``(x·z)^degree``, "inhomogeneous_polynomial" with ``(x·z + coef0)^degree``;
        "precomputed" (see Notes); a callable of two rows; or a pair of a name and a dict of parameters. A list means
        a weighted sum of kernels (Remark 5).
    gamma : float, default=None
        Parameter of "rbf", "poly", "laplacian", "sigmoid" and "chi2"; None means scikit-learn's default, which is
        1 for "chi2" and ``1 / n_features`` for the rest.
    degree : float, default=3
        Degree of the polynomial kernels.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Other parameters of the kernel, such as ``{"bandwidth": 5.0}`` for "gaussian" or those of a callable.
    epsilon : float or "scaled", default=1e-3
        The ridge ε of the paper, which is added to ``K Σ ωₖ Kₖ``. Its size means something only beside that
        matrix: where kernel values are of size 1 (Gaussian kernels) the default is mild, where they are of size 1e4 (a
        polynomial of unscaled data) it is nothing. "scaled" takes 1e-3 of the mean diagonal entry of that matrix,
        whatever its size: use it unless you reproduce a given ε.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background (ω in the paper), scaled to sum 1. None means equal weights.
    target_label : object, default=None
        With a label here, ``fit(X, y)`` takes the rows with this label as target and the rows of each other label as
        one background, in sorted order.
    rank : int, default=None
        Number of coordinates; landmarks of your own have their number. None means as many as `tol` asks for in the
        exact case, and 500 otherwise.
    tol : float, default=None
        Relative tolerance up to which the kernel matrix is factorised: in the exact case no row's kernel with itself is
        missed by more than this share of the largest, with "pivoted" no more than this share of the trace. None
        means 1e-9 for kernels with values between 0 and 1 ("rbf", "gaussian", "laplacian"), and rounding otherwise:
        small directions beside very large ones can be those that stand out.
    approximation : {"auto", "exact", "pivoted", "fourier"} or array of shape (r, n_features), default="auto"
        "exact" uses the whole kernel matrix. "pivoted" chooses `rank` landmarks among the rows by randomly pivoted
        Cholesky; the kernel matrix never exists. An array holds landmarks of your own (Nyström). "fourier" takes `rank`
        random Fourier features ("rbf", "gaussian" and "laplacian" only). "auto" is "exact" up to 10,000 rows and
        "pivoted" beyond; see `standout.features.choose_approximation`. A kernel that is not positive semidefinite
        needs "exact".
    kernel_weights : array-like of shape (n_kernels,), "learn" or None, default=None
        Weights of a list of kernels: numbers, used as they are; None for equal ones with sum 1; or "learn" for weights
        with sum 1, learned together with the components and judged on rows held out.
    random_state : int, RandomState instance or None, default=None
        Seed of random landmarks, features and splits. None is a fixed seed too: equal input gives equal output.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the target's variance to the backgrounds' plus the ridge, in descending order: λ of the paper.
    target_variance_ : ndarray of shape (n_components,)
        Variance of the target's scores; the scale is that of ``aᵀ(K Σ ωₖ Kₖ + ε I)a = 1``.
    background_variance_ : ndarray of shape (n_backgrounds, n_components)
        Variance of each background's scores.
    components_ : ndarray of shape (n_components, n_coordinates)
        The components in the coordinates of `feature_map_`. The target's mean has the larger score, the backgrounds'
        the smaller one.
    feature_map_ : FeatureMap
        The map from rows to coordinates.
    feature_mean_ : ndarray of shape (n_coordinates,)
        Mean of the target's coordinates, which is taken off all rows before projecting.
    residual_ : float
        Share of the kernel's trace that the coordinates leave out: the error certificate of an approximation. NaN
        for random Fourier features, which leave nothing out but are noisy.
    epsilon_ : float
        The ridge.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels.
    weights_ : ndarray of shape (n_backgrounds,)
        Weights of the backgrounds, with sum 1.
    approximation_ : str
        The kind of coordinates used: "exact", "pivoted", "landmarks" or "fourier".
    background_labels_ : list
        Labels of the backgrounds; only with `target_label`.
    solver_ : str
        The solver that was used.
    n_components_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during fit; only if all are strings.

    See Also
    --------
    DiscriminativePCA : The linear method.

    Notes
    -----
    With ``kernel="precomputed"``, ``fit(X, background=[Y1, ...])`` takes kernel values in place of rows: X of shape
    (m, n), each Yₖ of shape (nₖ, n), with ``n = m + n₁ + ...`` columns for all fitted rows, the target's first, then
    each background's. With `target_label`, X of shape (n, n) has rows and columns in the order of y. ``transform``
    takes the kernel of new rows with the same n rows in the same order.

    References
    ----------
    .. [1] J. Chen, G. Wang, G. B. Giannakis, "Nonlinear Dimensionality Reduction for Discriminative Analytics of
       Multiple Datasets", IEEE Transactions on Signal Processing 67(3), 2019.

    Examples
    --------
    Two circles, one inside the other, are hidden beside a third one that the background has, too.

    >>> from standout import KernelDiscriminativePCA
    >>> from standout.datasets import make_circles_one_background
    >>> from standout.metrics import clustering_error
    >>> data = make_circles_one_background()
    >>> kdpca = KernelDiscriminativePCA(kernel="homogeneous_polynomial", degree=2)
    >>> scores = kdpca.fit_transform(data.target, background=data.backgrounds)
    >>> clustering_error(scores, data.labels)
    0.0
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        epsilon: Any = 1e-3,
        background_weights: Any = None,
        target_label: Any = None,
        rank: int | None = None,
        tol: float | None = None,
        approximation: Any = "auto",
        kernel_weights: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.epsilon = epsilon
        self.background_weights = background_weights
        self.target_label = target_label
        self.rank = rank
        self.tol = tol
        self.approximation = approximation
        self.kernel_weights = kernel_weights
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> KernelDiscriminativePCA:
        """Find the components of the target X against the backgrounds.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or iterator of such, of shape (n_samples, n_features)
            The target; with `target_label`, the rows of all datasets. Iterators of batches need coordinates that do not
            depend on the rows: ``approximation="fourier"`` or landmarks.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`; otherwise ignored.
        background : dataset, or list or tuple of datasets, default=None
            One background, or several, each in any form that X may have. None means kernel PCA of the target.

        Returns
        -------
        KernelDiscriminativePCA
            The fitted estimator itself.
        """
        epsilon, tol = check_epsilon(self.epsilon), check_tolerance(self.tol)
        check_kernel_numbers(self.gamma, self.degree, self.coef0)
        check_approximation(self.approximation)
        check_rank(self.rank)
        seed = self._seed()
        rng = np.random.default_rng(seed)
        datasets, columns = self._datasets(X, y, background)
        require_finite(datasets)
        weights = check_weights(self.background_weights, len(datasets) - 1)
        datasets, some = _with_first_rows(datasets)
        kernel, kernel_weights = self._resolve(datasets, some, weights, rng)
        found = self._coordinates(kernel, datasets, some, y, tol, rng)
        mapping = found.mapping
        check_n_components(self.n_components, self.n_components, _n_directions(mapping, datasets))
        moments, residual = _moments(kernel, found)
        self._finish_batches(datasets, columns, some.shape[1])

        feature_mean = moments[0].mean
        step = feature_mean - sum((w * part.mean for w, part in zip(weights, moments[1:], strict=True)), np.zeros(1))
        root = None
        if not mapping.plain_ridge:
            scatters = [part for part in moments if isinstance(part, ScatterMoments)]
            root = contrast.total_root(scatters)
            moments = [part.mapped(root) for part in scatters]
        target, *backgrounds = moments
        if epsilon is None:
            epsilon = _scaled_epsilon(target, backgrounds, weights)
        problem = contrast.kernel_discriminative(target, backgrounds, weights, epsilon)
        # The target's kernel rows have a problem of their own number; coordinates one of theirs.
        size = target.count if mapping.plain_ridge else mapping.n_coordinates
        iterative = size > (2000 if mapping.plain_ridge else 500) and 10 * self.n_components <= size
        solution = solve(problem, self.n_components, solver="lanczos" if iterative else "dense", seed=seed)
        vectors = solution.vectors if root is None else product(root.T, solution.vectors)
        if backgrounds:
            # The sign of the linear methods would depend on the order of the landmarks; this does not.
            vectors = vectors * np.where(weighted_sum(step, vectors) < 0, -1.0, 1.0)

        self._keep(solution, target, backgrounds, weights)
        self.components_ = np.ascontiguousarray(vectors.T)
        self.feature_map_ = mapping
        self.feature_mean_ = feature_mean
        self.residual_ = residual
        self.epsilon_ = epsilon
        self.kernel_weights_ = kernel_weights
        self.approximation_ = found.approximation
        return self

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes and gives."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _resolve(
        self, datasets: list[Any], some: Any, weights: Float, rng: np.random.Generator
    ) -> tuple[Kernel, Float]:
        """Fix the kernel's parameters, and learn the weights of several kernels if asked to."""
        options: dict[str, Any] = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        options["origin"] = None if is_sparse(some) else np.mean(double(some[:1000]), axis=0)
        if not isinstance(self.kernel, list):
            check_single_kernel(self.kernel_weights, self.kernel_params)
            name, params = self.kernel if isinstance(self.kernel, tuple) else (self.kernel, self.kernel_params)
            return resolve_kernel(name, kernel_params=params, **options), np.ones(1)
        check_kernel_list(self.kernel)
        pairs = [kernel if isinstance(kernel, tuple) else (kernel, {}) for kernel in self.kernel]
        kernels = tuple(resolve_kernel(name, kernel_params=params, **options) for name, params in pairs)
        given = check_kernel_weights(self.kernel_weights, len(kernels))
        if given is None:
            reject_batches(datasets, self.approximation)
            given = learn_kernel_weights(kernels, datasets, weights, rng)
        return SumKernel(kernels, given), given

    def _coordinates(
        self, kernel: Kernel, datasets: list[Any], some: Any, y: Any, tol: float | None, rng: np.random.Generator
    ) -> _Coordinates:
        """Choose the coordinates."""
        approximation = self.approximation
        precomputed = isinstance(kernel, PrecomputedKernel)
        if precomputed:
            reject_batches(datasets, approximation)
            n_rows = sum(dataset.shape[0] for dataset in datasets)
            check_precomputed([dataset.shape[1] for dataset in datasets], n_rows, approximation)
        if not isinstance(approximation, str):
            landmarks = as_rows(approximation, "the landmarks", min_rows=1, finite=True)
            names, target_names = column_names(approximation), getattr(self, "feature_names_in_", None)
            check_same_columns(
                landmarks.shape[1],
                names,
                "the array of landmarks",
                some.shape[1],
                None if target_names is None else list(target_names),
                "the target",
            )
            return _Coordinates(given_landmarks(kernel, landmarks), datasets, "landmarks")
        if approximation == "fourier":
            features = fourier_features(kernel, some.shape[1], self.rank or DEFAULT_RANK, rng)
            return _Coordinates(features, datasets, "fourier")
        reject_batches(datasets, approximation)
        n_rows = sum(dataset.shape[0] for dataset in datasets)
        check_rank(self.rank, n_rows)
        if approximation == "auto":
            approximation = "exact" if precomputed else choose_approximation(n_rows)
        if approximation == "exact":
            order = self._column_order(y, n_rows)
            mapping, parts, residual = exact_coordinates(kernel, datasets, order, tol, self.rank)
            return _Coordinates(mapping, parts, "exact", residual)
        rank = min(self.rank or DEFAULT_RANK, n_rows)
        return _Coordinates(chosen_landmarks(kernel, datasets, rank, tol or BOUNDED_TOL, rng), datasets, "pivoted")

    def _column_order(self, y: Any, n_rows: int) -> npt.NDArray[np.intp]:
        """Give the columns of a precomputed kernel that belong to the rows of the datasets, in their order."""
        if self.target_label is None:
            return np.arange(n_rows)
        labels = np.asarray(y)
        return np.concatenate(
            [np.flatnonzero(labels == label) for label in (self.target_label, *self.background_labels_)]
        )

    def _project(self, rows: Any) -> Array:
        """Project the coordinates of the rows, a block at a time."""
        filters = self.components_.T
        scores = np.concatenate(
            [product(block - self.feature_mean_, filters) for block in self.feature_map_.blocks(rows)]
        )
        return scores.astype(np.float32) if rows.dtype == np.float32 else scores


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Chosen coordinates.

    Attributes
    ----------
    mapping : FeatureMap
    parts : list
        The coordinates of each dataset where they are exact; else its rows, still to be mapped.
    approximation : str
        The kind of coordinates.
    residual : float
        Share of the kernel's trace that is left out, where it is known already.
    """

    mapping: FeatureMap
    parts: list[Any]
    approximation: str
    residual: float = float("nan")


def _moments(kernel: Kernel, found: _Coordinates) -> tuple[list[Moments], float]:
    """Gather the moments of each dataset's coordinates, and the share of the kernel's trace that they leave out."""
    mapping, parts = found.mapping, found.parts
    if found.approximation == "exact":
        kind: Kind = "rows" if mapping.plain_ridge else "scatter"
        return [gather(coordinates, kind=kind, single=False) for coordinates in parts], found.residual
    if found.approximation == "fourier":
        return [_sum_of_moments(_blocks(rows, mapping.transform, mapping)) for rows in parts], found.residual
    gathered = [_landmark_moments(kernel, mapping, rows) for rows in parts]
    covered = sum(part.count * (part.total_variance + sum_of_squares(part.mean)) for part, _ in gathered)
    total = sum(trace for _, trace in gathered)
    if covered > total * (1.0 + 1e-6):
        reject_indefinite("these rows")
    return [part for part, _ in gathered], max(1.0 - covered / total, 0.0) if total > 0.0 else 0.0


def _n_directions(mapping: FeatureMap, datasets: list[Any]) -> int:
    """Give the number of directions that the centred coordinates can have."""
    if any(isinstance(dataset, Batches) for dataset in datasets):
        return mapping.n_coordinates
    return min(mapping.n_coordinates, sum(dataset.shape[0] - 1 for dataset in datasets))


def _landmark_moments(kernel: Kernel, mapping: FeatureMap, dataset: Any) -> tuple[Moments, float]:
    """Gather the moments of a dataset's coordinates, and the sum of the kernel of each row with itself."""
    assert isinstance(mapping, LandmarkMap)
    direct = mapping.well_conditioned
    trace = 0.0

    def values(rows: Any) -> Float:
        nonlocal trace
        trace += float(np.sum(kernel.diagonal(rows)))
        block = kernel(rows, mapping.landmarks) if direct else mapping.transform(rows)
        check_kernel_matrix(block, symmetric=True)
        return block

    moments = _sum_of_moments(_blocks(dataset, values, mapping))
    return mapping.from_kernel_values(moments) if direct else moments, trace


def _sum_of_moments(blocks: Iterator[Float]) -> ScatterMoments:
    total = reduce(add, (gather(block, kind="scatter") for block in blocks))
    assert isinstance(total, ScatterMoments)
    return total


def _blocks(dataset: Any, values: Callable[[Any], Float], mapping: FeatureMap) -> Iterator[Float]:
    """Give what a function makes of one block of rows after the other."""
    for piece in dataset if isinstance(dataset, Batches) else [dataset]:
        for start in range(0, piece.shape[0], mapping.block_rows):
            yield values(piece[start : start + mapping.block_rows])


def _scaled_epsilon(target: Moments, backgrounds: list[Moments], weights: Float) -> float:
    """Give ε as a share of the mean diagonal entry of ``K Σ ωₖ Kₖ``, or of ``K Kₓ`` where no background varies."""
    n_rows = target.count + sum(background.count for background in backgrounds)
    trace = float(np.dot(weights, [background.total_variance for background in backgrounds])) if backgrounds else 0.0
    if trace == 0.0:
        trace = target.total_variance
    return max(SCALED_EPSILON * trace / n_rows, float(np.finfo(np.float64).tiny))


def _with_first_rows(datasets: list[Any]) -> tuple[list[Any], Any]:
    """Give some rows of the target to look at; of an iterator the first batch, which is put back."""
    target = datasets[0]
    if not isinstance(target, Batches):
        first, opened = target[:1000], target
    else:
        rest = iter(target)
        first = next((batch for batch in rest if batch.shape[0]), np.zeros((0, 1)))
        opened = Batches(chain([first], rest), target.name, 2)
        opened.columns = target.columns
    for background in datasets[1:]:
        if isinstance(background, Batches):
            background.width = first.shape[1]
    return [opened, *datasets[1:]], first
