"""What all four estimators share: the scikit-learn side, and from datasets to a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import _check_feature_names, _get_feature_names, check_is_fitted, check_random_state

from standout._arrays import Array, Float, Rows, stacked
from standout._messages import FindingWarning, InvalidValueError, dataset_names, warn_user
from standout._options import check_parameters
from standout._xp import is_foreign, to_host
from standout.estimators._fit import Fit, clipped, weighed_sources
from standout.estimators._sklearn import DOC_LINK, check_caller, described, described_in_html, summary_frame
from standout.moments import RobustWeights
from standout.problem import Problem
from standout.selection import HeldOut, Path, count_components
from standout.sources import DaskBlocks, Source, keys_of, open_dataset, open_datasets

# Beyond this shrinkage the backgrounds have little effect, and the fit warns.
NEARLY_PCA = 0.9
# Components that "auto" tests at most.
MOST_COMPONENTS = 20
# Sparse rows that are larger than this both ways are not multiplied out.
LARGE = 8192
# Relative error of an eigenvalue from which on it is worth a warning.
VISIBLE = 1e-6


class BackgroundTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that is fitted to a target and its backgrounds."""

    method: ClassVar[str]
    n_components: int | str | None
    cv: int | None
    center: str
    background_weights: Any
    robust: str | None
    target_label: Any
    random_state: Any

    components_: Float
    eigenvalues_: Float
    ratio_: Float
    ratio_error_: Float
    ratio_interval_: Float
    spread_: Float
    spread_error_: Float
    shift_: Float
    shift_error_: Float
    correlations_: Float
    mean_: Float
    background_weights_: Float
    problem_: Problem
    n_components_: int
    n_features_in_: int
    n_samples_: int
    background_n_samples_: list[int]
    n_folds_: int
    solver_: str
    held_out_: HeldOut | None
    path_: Path | None
    # Variances of all rows along the components, and the score of each dataset's mean.
    target_variance_: Float
    background_variance_: Float
    shifts_: Float
    # Only with `target_label`, names of columns or `robust`.
    classes_: npt.NDArray[Any]
    background_labels_: list[Any]
    feature_names_in_: npt.NDArray[np.object_]
    row_weights_: list[Float]
    outlying_rows_: list[npt.NDArray[np.intp]]
    robust_weights_: list[RobustWeights]

    # Where scikit-learn's diagram of a model links to; without a link it shows no tooltips.
    _doc_link_module = "standout"
    _doc_link_template = DOC_LINK

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        groups: Any = None,
        background_groups: Any = None,
        sample_weight: Any = None,
        background_sample_weight: Any = None,
        adjust: Any = None,
        background_adjust: Any = None,
    ) -> Self:
        """Find the components.

        Parameters
        ----------
        X : dataset
            The target: an array, a frame, a sparse matrix, `standout.scan` of files, a Dask collection or an iterator
            of batches; with `target_label`, the rows of all datasets.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`; otherwise ignored.
        background : dataset, or list or tuple of datasets, default=None
            None is PCA of the target.
        groups, background_groups : array-like, str or None, default=None
            The subject of each row, or the name of a column. Whole subjects are left out together.
        sample_weight, background_sample_weight : array-like, str or None, default=None
            Weight of each row, or the name of a column.
        adjust, background_adjust : array-like, list of str or None, default=None
            Covariates: what they explain of each column, within each dataset, is removed.

        Returns
        -------
        object
            The estimator itself.
        """
        parameters = self.get_params(deep=False)
        if background is not None:
            check_caller(background)
        elif self.target_label is None:
            # PCA has no folds, and scikit-learn's checks set `cv` to a list of splits.
            del parameters["cv"]
        check_parameters(self.method, parameters)
        sources = open_datasets(
            X,
            background,
            sample_weight=sample_weight,
            background_sample_weight=background_sample_weight,
            groups=groups,
            background_groups=background_groups,
            adjust=adjust,
            background_adjust=background_adjust,
            y=y,
            target_label=self.target_label,
        )
        check_counts([source.n_rows for source in sources])
        self._keep_columns(X, sources)
        self._keep_labels(y)
        self._fit_sources(self._weighed(sources))
        return self

    def _fit_sources(self, sources: list[Source]) -> None:
        raise NotImplementedError

    def _forget(self, *kept: str) -> None:
        """Remove what an earlier fit left."""
        self._n_found = 1
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("__")]:
            if name not in kept:
                delattr(self, name)

    def _keep_columns(self, X: Any, sources: Sequence[Source]) -> None:
        self._forget()
        target = sources[0]
        if target.columns is not None:
            self.feature_names_in_ = np.array(target.columns, dtype=object)
        elif hasattr(X, "columns") or hasattr(X, "__dataframe__"):
            _check_feature_names(self, X, reset=True)
        self.n_features_in_ = int(target.width or 0)

    def _keep_labels(self, y: Any) -> None:
        if self.target_label is not None:
            self.classes_ = np.unique(np.asarray(y))
            self.background_labels_ = [label for label in self.classes_.tolist() if label != self.target_label]

    def _seed(self) -> int:
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))

    def _weighed(self, sources: list[Source]) -> list[Source]:
        """Learn robust weights from each dataset, and keep them beside its rows."""
        if self.robust is None:
            return sources
        found, self.row_weights_, self.robust_weights_, self.outlying_rows_ = weighed_sources(
            sources, cells=self.robust == "cells", seed=self._seed()
        )
        return found

    # Number of components that "auto" has found.
    _n_found: int = 1

    def _count_components(self, sources: list[Source], fit: Fit) -> bool:
        """Test one component after the other, if their number is to be found; return whether there are several."""
        if not isinstance(self.n_components, str) or len(sources) == 1:
            return False
        shares = fit.solution.shrinkage
        numeric = replace(fit.problem, shrinkage=float(np.mean(shares))) if shares else fit.problem
        self.component_test_ = count_components(
            sources,
            numeric,
            chosen=self._auto(),
            columns_chosen=fit.columns_path is not None,
            learned=getattr(self, "row_weights_", None),
            most=max(min(MOST_COMPONENTS, *(part.count - 1 for part in fit.sums.moments)), 1),
            seed=self._seed(),
        )
        if self.component_test_.n_components == 0:
            warn_user(
                "no component is distinguishable from chance",
                advice="One component is kept.",
                category=FindingWarning,
            )
        self._n_found = max(self.component_test_.n_components, 1)
        return self._n_found > 1

    def _auto(self) -> bool:
        """Tell whether the regularisation is chosen by held-out rows."""
        raise NotImplementedError

    def _n_wanted(self, n_columns: int, n_directions: int) -> int:
        """Return the number of components, and refuse more than there are directions."""
        most = max(min(n_columns, n_directions), 1)
        if self.n_components is None:
            return most
        wanted = self._n_found if isinstance(self.n_components, str) else self.n_components
        if wanted > most:
            what = "columns" if n_columns <= n_directions else "directions in which the rows vary"
            raise InvalidValueError(
                f"is more than the {most} {what}",
                parameter="n_components",
                value=wanted,
                advice=f"Use at most {most}.",
            )
        return int(wanted)

    def _weights(self, n_backgrounds: int) -> tuple[tuple[float, ...], str | None]:
        """Return the weights of the backgrounds, and the rule if one is to choose them."""
        equal = (1.0 / n_backgrounds,) * n_backgrounds if n_backgrounds else ()
        given = self.background_weights
        if given is None or n_backgrounds == 0:
            return equal, None
        if isinstance(given, str):
            return equal, given if n_backgrounds > 1 else None
        numbers = np.asarray(given, dtype=np.float64).ravel()
        if (
            numbers.shape != (n_backgrounds,)
            or not np.all(np.isfinite(numbers))
            or np.any(numbers < 0)
            or not numbers.sum() > 0
        ):
            raise InvalidValueError(
                f"is not one non-negative number for each of {n_backgrounds} backgrounds, with a positive sum",
                parameter="background_weights",
                value=given,
                advice="Give one number per background.",
            )
        return tuple((numbers / numbers.sum()).tolist()), None

    # --- what was found ------------------------------------------------------------------------------------------

    def _keep_fit(self, fit: Fit) -> None:
        """Keep what was found as attributes."""
        target, *backgrounds = fit.sums.moments
        self.problem_ = fit.problem
        self.n_components_ = int(fit.solution.values.shape[0])
        self.eigenvalues_ = fit.solution.values
        self.solver_ = fit.solution.solver
        self.background_weights_ = np.array(fit.problem.weights[: len(backgrounds)])
        self.n_samples_, self.background_n_samples_ = target.count, [part.count for part in backgrounds]
        self.path_, self.held_out_ = fit.path, fit.held_out
        self.n_folds_ = 0 if fit.held_out is None else fit.held_out.vectors.shape[0]
        self._keep_ratios(fit.held_out)
        self._warn(fit)

    def _keep_ratios(self, held_out: HeldOut | None) -> None:
        missing = np.full(self.n_components_, np.nan)
        self.ratio_ = missing if held_out is None else held_out.ratio
        log_error = missing if held_out is None else held_out.log_error
        self.ratio_error_ = self.ratio_ * log_error
        self.ratio_interval_ = np.stack([self.ratio_ * np.exp(-log_error), self.ratio_ * np.exp(log_error)], axis=1)
        for name in ("spread", "spread_error", "shift", "shift_error"):
            setattr(self, f"{name}_", missing if held_out is None else getattr(held_out, name))

    def _warn(self, fit: Fit) -> None:
        solution, held_out = fit.solution, fit.held_out
        if solution.n_absent:
            warn_user(
                f"the background does not vary along {solution.n_absent} directions of the target: their eigenvalues "
                "are infinite",
                advice='Use `shrinkage`="auto".',
                category=FindingWarning,
            )
        if held_out is not None and not np.all(np.isfinite(held_out.ratio)):
            warn_user(self._no_ratio(), category=FindingWarning)
        share = max((part for part in solution.shrinkage), default=0.0)
        if fit.path is not None and not fit.path.reason and share > NEARLY_PCA:
            warn_user(
                f"the chosen shrinkage is {share:.2f}: the background has little effect, and the view is nearly that "
                "of PCA",
                category=FindingWarning,
            )
        if (
            held_out is not None
            and fit.problem.center == "own"
            and np.any(held_out.shift > np.maximum(held_out.ratio, 1.0))
        ):
            warn_user(
                f"the means of target and background are {np.sqrt(np.nanmax(held_out.shift)):.1f} standard deviations "
                "apart along a component, further than the target varies",
                advice='Use `center`="background" to let a shift of the mean stand out.',
                category=FindingWarning,
            )
        if not solution.accurate:
            warn_user(
                "rounding has left less than half of the digits of the eigenvalues",
                advice="Scale the columns, or use a shrinkage.",
                category=FindingWarning,
            )

    def _no_ratio(self) -> str:
        return "held-out rows do not vary along a component beyond rounding: there is no ratio"

    # --- from rows to scores -------------------------------------------------------------------------------------

    def _open(self, X: Any, name: str = "the rows") -> Source:
        """Open rows that have the columns of the fit."""
        # scikit-learn knows the names of pandas and polars alone; others are found by `open_dataset`.
        if not isinstance(X, Source) and (_get_feature_names(X) is not None or keys_of(X) is None):
            _check_feature_names(self, X, reset=False)
        source = open_dataset(X, name, columns=getattr(self, "feature_names_in_", None))
        if source.width is not None and source.width != self.n_features_in_:
            raise InvalidValueError(
                f"X has {source.width} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input",
                advice="Give the columns of the fit.",
            )
        return source

    def _scores(self, rows: Rows) -> Array:
        raise NotImplementedError

    def transform(self, X: Any) -> Array:
        """Return the scores of rows, in units of the background's standard deviation.

        Parameters
        ----------
        X : dataset
            Rows with the columns of the fit.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        source = self._open(X)
        if source.rows is not None:
            return self._scores(self._tidied(source.rows))
        if isinstance(source, DaskBlocks):
            lazy: Array = source.lazily(_Scores(self), self.n_components_)
            return lazy
        scores: Array = stacked([self._scores(self._tidied(batch.rows)) for batch in source.batches()])
        return scores

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and return the scores of the target's rows. For fitted rows, `held_out_scores` is without bias.

        Parameters
        ----------
        X, y, **fit_params
            As in ``fit``.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self.fit(X, y, **fit_params).transform(X)

    def held_out_scores(
        self, X: Any, *, background: Any = None, adjust: Any = None, background_adjust: Any = None
    ) -> list[Float]:
        """Return the scores of the fitted rows, each by components that were found without its fold.

        The variance of the backgrounds' scores is 1, and that of the target's is `ratio_` (with
        ``center="background"`` their mean square).

        Parameters
        ----------
        X : dataset
            The rows of the target, as in ``fit``, in the same order.
        background : dataset, or list or tuple of datasets
            The rows of the backgrounds, as in ``fit``.
        adjust, background_adjust : array-like or list of str, default=None
            The covariates of the fit.

        Returns
        -------
        list of ndarray of shape (n_samples, n_components)
            Of the target, then of each background.
        """
        check_is_fitted(self)
        if self.held_out_ is None:
            raise InvalidValueError("the model has no held-out components", advice="Fit it with `cv` and a background.")
        sources = open_datasets(X, background, adjust=adjust, background_adjust=background_adjust)
        sources = [source if source.again else source.loaded() for source in sources]
        counts = [self.n_samples_, *self.background_n_samples_]
        given = [source.count_rows() for source in sources]
        if given != counts:
            raise InvalidValueError(
                f"the datasets have {given} rows, but the fit had {counts}", advice="Give the datasets of the fit."
            )
        return [self._held_out_scores(source, number) for number, source in enumerate(sources)]

    def _held_out_scores(self, source: Source, dataset: int) -> Float:
        assert self.held_out_ is not None
        found = []
        for batch in source.batches():
            numbers = np.arange(batch.start, batch.start + batch.rows.shape[0])
            beside = None if source.covariates is None else source.covariates[numbers]
            rows = self._coordinates(self._cleaned(batch.rows, dataset))
            found.append(self.held_out_.scores(rows, numbers, dataset, self._origin(), beside))
        scores: Float = np.concatenate(found)
        return scores + self.shifts_[dataset]

    def _cleaned(self, rows: Rows, dataset: int) -> Rows:
        """Return rows with wild cells replaced, as the fit saw them."""
        return self.robust_weights_[dataset].cleaned(rows) if self.robust == "cells" else rows

    def _tidied(self, rows: Rows) -> Rows:
        """Return new rows without cells that are wild in every dataset of the fit."""
        if self.robust != "cells":
            return rows
        return clipped(rows, self.robust_weights_)

    def _coordinates(self, rows: Rows) -> Rows:
        return rows

    def _origin(self) -> Any:
        return self.mean_

    def score(self, X: Any, y: Any = None, *, background: Any = None) -> float:
        """Return the mean over components of the log ratio of the variances of these rows.

        Parameters
        ----------
        X : dataset
            Rows of the target that were not fitted.
        y : None
            Ignored.
        background : dataset, or list or tuple of datasets, default=None
            Rows of the backgrounds. None compares with the unit variance that the background has by definition.

        Returns
        -------
        float
        """
        sources = open_datasets(X, background)
        parts = [to_host(self.transform(source)) for source in sources]
        own = parts[0].var(axis=0)
        if self.center == "background":
            own = own + parts[0].mean(axis=0) ** 2
        against: Any = 1.0
        if len(parts) > 1:
            weights = self.background_weights_ if len(self.background_weights_) == len(parts) - 1 else None
            against = np.average([part.var(axis=0) for part in parts[1:]], axis=0, weights=weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.mean(np.log(own / against)))

    def to_numpy(self) -> Self:
        """Return a copy of the model with all arrays in the host's memory."""
        from copy import copy

        model = copy(self)
        for name, value in vars(self).items():
            if is_foreign(value) and hasattr(value, "shape"):
                setattr(model, name, to_host(value))
        if self.held_out_ is not None:
            model.held_out_ = replace(self.held_out_, vectors=to_host(self.held_out_.vectors))
        return model

    def summary(self) -> Any:
        """Return one row per component: ratio with interval, spread, shift, and the leading columns.

        Returns
        -------
        pandas.DataFrame
        """
        check_is_fitted(self)
        return summary_frame(self)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are components; after few rows of ``partial_fit`` there are none."""
        return hasattr(self, "problem_")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        return f"{text}\n{described(self)}" if self.__sklearn_is_fitted__() else text

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram, with the findings of a fit below it."""
        diagram: str = estimator_html_repr(self)
        return diagram + (described_in_html(self) if self.__sklearn_is_fitted__() else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.robust != "cells"
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


@dataclass(frozen=True, eq=False)
class _Scores:
    """From rows to scores, on the workers of Dask."""

    model: BackgroundTransformer

    def __call__(self, rows: Rows) -> Array:
        return self.model._scores(self.model._tidied(rows))


def check_counts(counts: Sequence[int | None]) -> None:
    """Refuse a dataset with fewer than two rows."""
    for name, count in zip(dataset_names(len(counts)), counts, strict=True):
        if count is not None and count < 2:
            raise InvalidValueError(
                f"{name} has {count} sample{'' if count == 1 else 's'}, but a minimum of 2 is required",
                advice="Give at least 2 rows.",
            )
