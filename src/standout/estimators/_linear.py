"""The linear estimators: discriminative PCA and contrastive PCA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Array, Float, Rows, double, is_sparse, one_blas_thread
from standout._graphs import laplacian
from standout._messages import InvalidValueError
from standout._options import documented
from standout._xp import columns_as_rows, like, namespace, to_host
from standout.estimators._fit import LARGE, Fit, check_counts
from standout.estimators._incremental import IncrementalTransformer
from standout.estimators._scores import keep_parameters
from standout.moments import project
from standout.problem import Problem
from standout.selection import MeanDifferences, Path, mean_differences
from standout.selection._data import Data, Folds, Places, TallData, make_data, plan_folds
from standout.sources import Source, open_dataset


class LinearTransformer(IncrementalTransformer):
    """An estimator whose components are directions in the columns of the data."""

    scale: str | None
    n_columns: Any
    smooth: Any
    solver: str
    patterns_: Float
    n_columns_: int
    # Set only with `scale` or `n_columns`.
    scale_: Float
    columns_: npt.NDArray[np.intp]
    columns_path_: Path | None

    def _fit_sources(self, sources: list[Source]) -> None:
        width = int(sources[0].width or 0)
        # The number of rows of an iterator is not known before the fit.
        n_rows = sum(float("inf") if source.n_rows is None else source.n_rows for source in sources)
        size, wide = int(min(width, n_rows)), width > n_rows and self.smooth is None
        thin = size > LARGE and all(source.rows is not None and is_sparse(source.rows) for source in sources)
        folds, reason = plan_folds(sources, self.cv, size)
        again = all(source.again for source in sources)
        # Ledoit-Wolf shrinkage needs further sums. This shrinkage replaces "auto" if folds cannot be used. Whether an
        # iterator has enough rows for folds is not known before its rows are read.
        rule = self.shrinkage if self.method == "dpca" and isinstance(self.shrinkage, str) else None
        norms = rule is not None and (rule != "auto" or folds is None or not again)
        wide = wide and not thin
        # Setting the threads of BLAS takes as long as a small product, so set them once for all products of small data.
        with one_blas_thread(n_rows * width * size):
            data = used = make_data(sources, folds, norms=norms, kind="rows" if thin else "scatter", wide=wide)
            fit = self._fit_data(data, folds, reason)
        # If sums of squares have lost too many digits, use coordinates in the span of the rows instead.
        lost = again and not (wide or thin or fit.solution.accurate)
        if lost and self.smooth is None and width * sum(source.count_rows() for source in sources) <= LARGE**2:
            used = make_data(sources, folds, norms=norms, wide=True)
            fit = self._fit_data(used, folds, reason)
            # The values of the rows have rounding errors, too. Add these errors to `rounding` of the solution.
            unit = max(float(namespace(part).finfo(part.dtype).eps) for part in used.rows)  # type: ignore[union-attr]
            vectors, values = fit.solution.vectors, fit.solution.values
            spreads = namespace(vectors).sqrt(sum(used.variances()) @ vectors**2)  # type: ignore[union-attr]
            noise = namespace(vectors).where(namespace(values).isinf(values), 0.0, unit * spreads)
            unit = max(unit, fit.solution.rounding_unit)
            solution = replace(fit.solution, rounding=fit.solution.rounding + noise, rounding_unit=unit)
            fit = replace(fit, solution=solution)
        if isinstance(self.n_components, str) and len(sources) > 1:
            fit = self._count_components(sources, fit, lambda: self._fit_data(used, folds, reason)) or fit
        self._keep_linear(fit, used)
        # Store a copy of the sums, without the cached sums for each left-out fold. The cached sums of a single fold are
        # as large as the copy. Sparse rows are not stored, because they are not sums.
        self._data = replace(data) if isinstance(data, TallData) and not thin else None
        self._folds = folds
        # Rows of a subject are not independent, so the test of the means uses the number of subjects, not of rows.
        known = sources[0].subjects is not None
        self._n_subjects = [float(len(np.unique(one.subjects))) for one in sources] if known else None  # type: ignore[arg-type]

    def _fit_data(self, data: Data, folds: Folds | Places | None, reason: str) -> Fit:
        fields: dict[str, Any] = {"scale": self.scale}
        if self.smooth is not None:
            fields["smooth"] = laplacian(self.smooth, data.n_columns)
        if isinstance(self.n_columns, int | np.integer):
            fields["n_columns"] = int(self.n_columns)
        seed = 0 if self.random_state is None else self._seed()
        with one_blas_thread((self.n_features_in_ if isinstance(data, TallData) else data.plain.span.rank) ** 3):
            check_counts([part.count for part in data.sums(Problem()).moments])
            return self._fit_problem(data, folds, reason, seed, **fields)

    def _keep_linear(self, fit: Fit, data: Data) -> None:
        """Set the fitted attributes. Components are divided by the background's standard deviation along them."""
        unit = self._keep_fit(fit)
        inner, moments = fit.inner / unit, fit.moments
        self.components_ = columns_as_rows(fit.solution.vectors / unit)
        self.patterns_ = columns_as_rows(fit.solution.patterns * unit)
        self.mean_ = fit.mean
        images, variances = moments[0].apply(inner), moments[0].variances
        if fit.sums.lift is not None:
            # `lift` divides by the scale of the columns, but the covariances of columns with scores have to be
            # multiplied by this scale. So multiply by the square of the scale.
            images = fit.sums.lift(images) * (1.0 if fit.sums.scaled is None else (fit.sums.scaled**2)[:, None])
            variances = data.variances()[0]  # type: ignore[union-attr]
        xp = namespace(images)
        scale = xp.sqrt(variances[:, None] * moments[0].variance(inner)[None, :])
        # The correlation of a constant column is NaN.
        self.correlations_ = columns_as_rows(images / xp.where(scale > 0.0, scale, xp.nan * scale))
        self.n_columns_ = self.n_features_in_
        if fit.solution.scale is not None:
            self.scale_ = fit.solution.scale
        if fit.solution.columns is not None:
            self.columns_ = like(fit.solution.columns, self.mean_, np.int64)
            self.n_columns_ = len(fit.solution.columns)
            self.columns_path_ = fit.columns_path
        self._column_facts = (*data.column_facts(), [part.effective_count for part in moments])

    def _scores(self, rows: Rows) -> Array:
        return project(rows, self.mean_, self.components_.T)

    def inverse_transform(self, X: Any) -> Array:
        """Map scores back to rows, through the patterns: ``X @ patterns_ + mean_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        array of shape (n_samples, n_features)
            The part of the data that the components explain.
        """
        check_is_fitted(self)
        scores = open_dataset(X, "the scores").loaded().rows
        assert scores is not None
        if scores.shape[1] != self.n_components_:
            problem = f"the rows have {scores.shape[1]} scores, but the model has {self.n_components_} components"
            raise InvalidValueError(problem, advice="Give one score per component.")
        return double(scores) @ self.patterns_ + self.mean_

    @property
    def mean_differences_(self) -> MeanDifferences:
        """Difference of the means of target and background in each column; needs a background."""
        check_is_fitted(self)
        means, variances, counts = self._column_facts
        if len(means) == 1:
            raise AttributeError("mean_differences_ needs a background")
        counts = getattr(self, "_n_subjects", None) or counts
        return mean_differences(means, variances, counts, self.background_weights_.tolist())

    def get_support(self, indices: bool = False) -> npt.NDArray[Any]:
        """Return which columns the components use, as Boolean values, or as column numbers with `indices`.

        Parameters
        ----------
        indices : bool, default=False

        Returns
        -------
        ndarray
        """
        check_is_fitted(self)
        columns = to_host(getattr(self, "columns_", np.arange(self.n_features_in_)))
        return columns if indices else np.isin(np.arange(self.n_features_in_), columns)


@documented("dpca")
class DiscriminativePCA(LinearTransformer):
    """In which directions does the target vary while the backgrounds do not?

    Finds the directions u with the largest ratio of variances, ``uᵀCxx u / uᵀB u``. Cxx is the covariance of the
    target, and B is the shrunken covariance of the backgrounds. The method is dPCA for one background, MdPCA for
    several (Algs. 1 and 3 of [1]_), and PCA without a background.

    Read `ratio_`, `ratio_error_`, `correlations_`, `components_` and `shrinkage_` first. Use `spread_`, `shift_` and
    `path_` to judge the result. The other attributes are details of the computation.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    ratio_ : ndarray of shape (n_components,)
        The ratio on held-out rows: target's variance along each component, in units of the background's variance.
    ratio_error_ : ndarray of shape (n_components,)
        Standard error of `ratio_`. `ratio_interval_` ends one standard error of the log ratio below and above.
    correlations_ : ndarray of shape (n_components, n_features)
        Correlation of each column with each score, in the target. Use it to interpret a component.
    components_ : ndarray of shape (n_components, n_features)
        The filters: ``(X - mean_) @ components_.T`` are the scores. On held-out rows, these scores have
        variance 1 in the background. With ``cv=None``, they have variance 1 in sample.
    shrinkage_ : float
        The shrinkage that was used; `path_` shows how it was chosen.
    spread_, shift_ : ndarray of shape (n_components,)
        `spread_` is the variance of the target's scores. `shift_` is the squared distance between the means of target
        and background. The unit of each is the background's variance.
    patterns_ : ndarray of shape (n_components, n_features)
        The patterns ``B u``: how each component appears in the columns of the data.
    eigenvalues_ : ndarray of shape (n_components,)
        In-sample ratios, with the shrunken covariance of the backgrounds.
    mean_ : ndarray of shape (n_features,)
        The point from which scores are measured.
    background_weights_ : ndarray of shape (n_backgrounds,)
    problem_ : Problem
        The problem that was solved.
    path_ : Path or None
        The held-out ratio at each shrinkage.
    columns_ : ndarray of int
        The columns that components use; only with `n_columns`.
    n_components_, n_features_in_, n_samples_, n_folds_ : int

    See Also
    --------
    ContrastivePCA : The difference of variances instead of the ratio.
    KernelDiscriminativePCA : The same method in the feature space of a kernel.
    standout.permutation_test : Which components are distinguishable from chance.

    References
    ----------
    .. [1] J. Chen, G. Wang, G. B. Giannakis, "Nonlinear Dimensionality Reduction for Discriminative Analytics of
       Multiple Datasets", IEEE Transactions on Signal Processing 67(3), 2019.

    Examples
    --------
    Both datasets vary most along the first column. Along the last column, the target varies more than the background.

    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> dpca = DiscriminativePCA(n_components=1).fit(target, background=background)
    >>> dpca.ratio_.round(0), np.abs(dpca.correlations_).argmax()
    (array([9.]), np.int64(3))
    """

    method = "dpca"
    shrinkage_: float

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = 2,
        *,
        shrinkage: float | Literal["auto", "ledoit-wolf"] | None = "auto",
        background_weights: Any = None,
        center: Literal["own", "background"] = "own",
        scale: Literal["pooled", "background"] | None = None,
        n_columns: int | Literal["auto"] | None = None,
        smooth: Any = None,
        robust: Literal["rows", "cells"] | None = None,
        cv: int | None = 5,
        target_label: Any = None,
        solver: Literal["auto", "dense", "iterative"] = "auto",
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())


@documented("cpca")
class ContrastivePCA(LinearTransformer):
    """In which directions does the target have more variance than the backgrounds?

    Contrastive PCA finds the directions u with the largest difference of variances, ``uᵀ(Cxx - α Σ ωₖ Cₖ)u``. Cxx is
    the covariance of the target. Background k has the covariance Cₖ and the weight ωₖ. The result depends on the units
    of the columns.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    ratio_ : ndarray of shape (n_components,)
        The ratio on held-out rows: target's variance along each component, in units of the background's variance.
    ratio_error_ : ndarray of shape (n_components,)
        Standard error of `ratio_`.
    correlations_ : ndarray of shape (n_components, n_features)
        Correlation of each column with each score, in the target.
    components_ : ndarray of shape (n_components, n_features)
        The filters, in units of the background's standard deviation on held-out rows.
    alpha_ : float
        The α that was used; `path_` shows how it was chosen.
    eigenvalues_ : ndarray of shape (n_components,)
        Differences of variances along unit vectors.
    patterns_, mean_, spread_, shift_, background_weights_, problem_, path_ :
        As in `DiscriminativePCA`.

    See Also
    --------
    DiscriminativePCA : The ratio of variances.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import ContrastivePCA
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> cpca = ContrastivePCA(n_components=1).fit(target, background=background)
    >>> int(np.abs(cpca.correlations_).argmax())
    3
    """

    method = "cpca"
    alpha_: float

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = 2,
        *,
        alpha: float | Literal["auto"] = "auto",
        background_weights: Any = None,
        center: Literal["own", "background"] = "own",
        scale: Literal["pooled", "background"] | None = None,
        n_columns: int | Literal["auto"] | None = None,
        robust: Literal["rows", "cells"] | None = None,
        cv: int | None = 5,
        target_label: Any = None,
        solver: Literal["auto", "dense", "iterative"] = "auto",
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    smooth = None
