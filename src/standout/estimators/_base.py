"""What all four estimators share: from datasets to a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_feature_names, check_random_state

from standout._messages import FindingWarning, InvalidValueError, dataset_names, warn_user
from standout._options import check_parameters
from standout.estimators._fit import Fit, weighed_sources
from standout.estimators._scores import FittedTransformer
from standout.estimators._sklearn import check_caller
from standout.selection import HeldOut, count_components
from standout.sources import Source, open_datasets

# Beyond this shrinkage the backgrounds have little effect, and the fit warns.
NEARLY_PCA = 0.9
# Components that "auto" tests at most.
MOST_COMPONENTS = 20
# Sparse rows that are larger than this both ways are not multiplied out.
LARGE = 8192


class BackgroundTransformer(FittedTransformer):
    """A transformer that is fitted to a target and its backgrounds."""

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
        # In the feature space of a kernel, a larger spread is a shift, too.
        linear = self.method in ("dpca", "cpca") and fit.problem.center == "own"
        if linear and held_out is not None and np.any(held_out.shift > np.maximum(held_out.ratio, 1.0)):
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


def check_counts(counts: Sequence[int | None]) -> None:
    """Refuse a dataset with fewer than two rows."""
    for name, count in zip(dataset_names(len(counts)), counts, strict=True):
        if count is not None and count < 2:
            raise InvalidValueError(
                f"{name} has {count} sample{'' if count == 1 else 's'}, but a minimum of 2 is required",
                advice="Give at least 2 rows.",
            )
