"""Fits from sums: of successive batches, of several sites, or of data whose rows are not available."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate, zip_longest
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from standout._messages import InvalidTypeError, InvalidValueError, dataset_names
from standout._options import check_parameters
from standout.estimators._fit import BackgroundTransformer
from standout.moments import FoldPattern, Moments, ScatterMoments, gather_keyed, joined
from standout.selection._data import FEW_FOLDS, MANY_COLUMNS, MOST_COLUMNS, ROWS_PER_FOLD, Folds, Places, TallData
from standout.sources import Source, as_backgrounds, matched, open_dataset

Parts = list[Moments | None]
# Attributes that do not depend on the components.
_KNOWN_BEFORE = ("n_features_in_", "feature_names_in_", "classes_", "background_labels_")


def _sums_suffice(model: Any) -> bool:
    """Return True if sums suffice; raise an error for parameters that need rows."""
    if model.robust is not None:
        _reject("robust", model.robust, "Use robust=None")
    if isinstance(model.n_components, str):
        _reject("n_components", model.n_components, "Use a number")
    if model.target_label is not None:
        _reject("target_label", model.target_label, "Give the rows of each label as a dataset")
    return True


def _reject(parameter: str, value: Any, advice: str) -> None:
    problem = "needs the rows of the data, but only sums over the rows are available"
    raise InvalidValueError(problem, parameter=parameter, value=value, advice=f"{advice}, or fit all rows together.")


class IncrementalTransformer(BackgroundTransformer):
    """A transformer that can be fitted from sums. `_data` has the sums of each dataset and fold, never rows.

    A subclass defines `_fit_data`, which returns a `Fit` from sums, and `_keep_linear`, which sets the fitted
    attributes.
    """

    _data: TallData | None = None
    _folds: Folds | Places | None = None

    @available_if(_sums_suffice)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any = None, y: Any = None, *, background: Any = None) -> Self:
        """Add more rows of the target, of the backgrounds, or of both.

        Only sums are kept. Rows are numbered over all batches, so that they are in the same folds as in ``fit``. The
        components and choices are therefore the same as in ``fit`` on all rows, up to rounding. Components need at
        least two rows of every dataset. Held-out ratios need two rows of every dataset in every fold.

        Parameters
        ----------
        X : dataset, default=None
            More rows of the target.
        y : None
            Ignored.
        background : dataset, or list or tuple of datasets, default=None
            More rows of each background. The backgrounds have the same order in every batch. In a list, use None for a
            background without new rows.

        Returns
        -------
        object
            The estimator itself.
        """
        check_parameters(self.method, self.get_params(deep=False))
        known = self._known_parts()
        batch = self._batch(X, background, len(known))
        if not known:
            self._data = None
            first = next(source for source in batch if source is not None)
            self._keep_columns(X, first.columns, first.width)
            self._folds = _pattern(self.cv, self.n_features_in_)
        self._solve_parts([self._extended(own or [], source) for own, source in zip_longest(known, batch)])
        return self

    def merge(self, other: Any) -> Self:
        """Add the sums of another estimator, so that this estimator is fitted to the rows of both estimators.

        Use `merge` for rows that may not leave their site. Each site fits an estimator to its rows, and sends only the
        estimator. An estimator has counts, means and sums of products, never rows. Each site becomes a fold. Therefore
        the regularisation is chosen, and the ratio is computed, on sites that were left out. The estimator `other` is
        not changed.

        Parameters
        ----------
        other : estimator
            An estimator of the same class, fitted to the same columns and the same number of backgrounds. Its
            parameters are not used.

        Returns
        -------
        object
            The estimator itself.
        """
        if type(self) is not type(other):
            problem = f"a {type(self).__name__} cannot be merged with an object of type {type(other).__name__}"
            raise InvalidTypeError(problem, advice="Give an estimator of the same class.")
        for model in (self, other):
            check_is_fitted(model, "n_features_in_")
            _data_of(model)
        self._check_same(other)
        parts = [[*mine, *theirs] for mine, theirs in zip(_places(self), _places(other), strict=True)]
        ends = (accumulate(0 if one is None else one.count for one in own) for own in parts)
        self._folds = Places(tuple(map(tuple, ends)))
        self._solve_parts(parts, _data_of(self).n_covariates)
        return self

    @classmethod
    def from_moments(cls, target: Any, backgrounds: Any = None, **parameters: Any) -> Self:
        """Fit from sums without rows: saved sums, sums of a database, or private sums.

        There are no folds, and therefore no held-out ratio. ``shrinkage="auto"`` is the estimate of Ledoit and Wolf.
        For private sums, the shrinkage is computed from their noise.

        Parameters
        ----------
        target : Moments or tuple
            Moments of `standout.moments`, a release of `standout.private`, or a tuple ``(covariance, count)`` or
            ``(covariance, count, mean)``. The covariance is divided by n, as in ``np.cov(X.T, bias=True)``. Without a
            mean, scores are not centred.
        backgrounds : Moments or tuple, or list of these, default=None
            None means PCA of the target.
        **parameters
            Parameters of the estimator.

        Returns
        -------
        estimator
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from standout import DiscriminativePCA
        >>> target, background = (np.diag([100.0, 1.0, 9.0]), 500), (np.diag([100.0, 1.0, 1.0]), 500)
        >>> DiscriminativePCA.from_moments(target, background, n_components=1, shrinkage=0.0).eigenvalues_
        array([9.])
        """
        model = cls(**parameters)
        check_parameters(cls.method, model.get_params(deep=False))
        _sums_suffice(model)
        several = [] if backgrounds is None else backgrounds if isinstance(backgrounds, list) else [backgrounds]
        names = dataset_names(1 + len(several))
        moments = [_as_moments(part, name, model) for part, name in zip([target, *several], names, strict=True)]
        _check_alike(moments, names)
        columns = next((known for known in (getattr(part, "columns", None) for part in moments) if known), None)
        model._keep_columns(None, columns, moments[0].n_features)
        model._solve_parts([[part] for part in moments])
        if not moments[0].exact:
            from standout.private import warn_if_drowned

            warn_if_drowned(moments, model.components_.T)
        return model

    # --- from parts to components --------------------------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _solve_parts(self, parts: list[Parts], n_covariates: int = 0) -> None:
        """Store the sums, and find the components if every dataset has enough rows."""
        data = TallData(parts, n_covariates)
        counts = [sum(part.count for part in own if part is not None) for own in parts]
        wanted = self.n_components if isinstance(self.n_components, int) else 1
        if min(counts) < 2 or sum(counts) - len(counts) < wanted:
            self._forget(*_KNOWN_BEFORE)
            self._data = data
            return
        folds, reason = self._usable_folds(parts, counts)
        fit = self._fit_data(TallData(parts, n_covariates, isinstance(folds, Places)), folds, reason)
        self._forget(*_KNOWN_BEFORE)
        kept = self._folds
        self._keep_linear(fit, data)
        self._data, self._folds = data, kept

    def _usable_folds(self, parts: Sequence[Parts], counts: Sequence[int]) -> tuple[Folds | Places | None, str]:
        """Return the folds of the sums, or None with the reason why there are no folds."""
        if len(parts) == 1:
            return None, "there is no background"
        if self.cv is None:
            return None, "cv is None"
        if self._folds is None or len(parts[0]) < 2:
            return None, "only sums over all rows are known"
        if isinstance(self._folds, FoldPattern) and min(counts) < ROWS_PER_FOLD * self._folds.n_folds:
            return None, f"a dataset has {min(counts)} rows, and {self._folds.n_folds} folds need more"
        if any(part is None for own in parts for part in own):
            return None, "a site has no rows of one of the datasets"
        return self._folds, ""

    # --- batches -------------------------------------------------------------------------------------------------

    def _known_parts(self) -> list[Parts]:
        """Return the sums of all earlier rows, by dataset and fold; an empty list if there are no earlier rows."""
        if self._data is None and not self.__sklearn_is_fitted__():
            return []
        data = _data_of(self)
        if data.n_covariates or not (self._folds is None or isinstance(self._folds, FoldPattern)):
            problem = "rows cannot be added to a model that was merged, or fitted with `groups` or `adjust`"
            raise InvalidValueError(problem, advice="Fit another estimator to them, and merge it.")
        return [list(own) for own in data.parts]

    def _batch(self, X: Any, background: Any, n_known: int) -> list[Source | None]:
        """Return the datasets of a batch as sources, and None for each dataset without new rows."""
        given = [X, *as_backgrounds(background, X)]
        if all(part is None for part in given):
            raise InvalidValueError("the batch has no rows", advice="Give rows of the target or of a background.")
        if n_known > 1 and len(given) > 1 and len(given) != n_known:
            problem = f"the batch has {len(given) - 1} background(s), but the rows before had {n_known - 1}"
            advice = "Give a list with None for each background without new rows."
            raise InvalidValueError(problem, parameter="background", advice=advice)
        opened = self._open if n_known else open_dataset
        named = zip(dataset_names(len(given)), given, strict=True)
        found = [None if part is None else opened(part, name) for name, part in named]
        first = next(source for source in found if source is not None)
        return [None if source is None else _like_first(source, first) for source in found]

    def _extended(self, own: Parts, source: Source | None) -> Parts:
        """Return the sums of a dataset by fold, after the new rows are added."""
        folds = self._folds if isinstance(self._folds, FoldPattern) else None
        own = own or [None] * (1 if folds is None else folds.n_folds)
        if source is None:
            return own
        n_before = sum(part.count for part in own if part is not None)
        keys = None if folds is None else replace(folds, start=n_before)
        new = gather_keyed(source, keys, norms=True, name=source.name)
        return [joined(first, second) for first, second in zip(own, new, strict=True)]

    # --- merge --------------------------------------------------------------------------------------------------

    def _check_same(self, other: Any) -> None:
        """Raise an error if the two estimators differ in columns, labels, covariates or number of backgrounds."""
        names = [list(getattr(model, "feature_names_in_", ())) for model in (self, other)]
        sizes, mine_is = (other.n_features_in_, self.n_features_in_), "this estimator"
        matched(names[1] or None, sizes[0], "the other estimator", names[0] or None, sizes[1], mine_is)
        mine, theirs = _data_of(self), _data_of(other)
        labels = [(model.target_label, getattr(model, "background_labels_", None)) for model in (self, other)]
        same = len(mine.parts) == len(theirs.parts) and mine.n_covariates == theirs.n_covariates
        if not same or names[0] != names[1] or labels[0] != labels[1]:
            problem = "the other estimator has other backgrounds, labels, covariates or order of columns"
            raise InvalidValueError(problem, advice="Merge estimators that were fitted in the same way.")


def _pattern(cv: int | None, width: int) -> FoldPattern | None:
    if cv is None or width > MOST_COLUMNS:
        return None
    return FoldPattern(min(cv, FEW_FOLDS) if width > MANY_COLUMNS else cv)


def _data_of(model: Any) -> TallData:
    data: TallData | None = model._data
    if data is None:
        problem = "the estimator has no sums over its rows: it was fitted to wide data, or saved without sums"
        raise InvalidValueError(problem, advice="Fit it with partial_fit.")
    return data


def _places(model: Any) -> list[Parts]:
    """Return the sums of each dataset by site. A model that was not merged has one site."""
    merged = isinstance(model._folds, Places)
    return [list(own) if merged else [reduce(joined, own)] for own in _data_of(model).parts]


def _like_first(source: Source, first: Source) -> Source:
    """Return a dataset with its columns in the order of the first dataset."""
    places = matched(source.keys, source.width or 0, source.name, first.keys, first.width or 0, first.name)
    return source if places is None else source.select(places.tolist())


# --- moments from the user --------------------------------------------------------------------------------------------


def _as_moments(given: Any, name: str, model: Any) -> Moments:
    """Return moments: unchanged, or computed from a tuple (covariance, count[, mean])."""
    if isinstance(given, Moments):
        return given
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        advice = "Give moments, or a tuple (covariance, count) or (covariance, count, mean)."
        raise InvalidTypeError(f"{name} is a {type(given).__name__}, not moments", advice=advice)
    covariance, count = np.asarray(given[0], dtype=np.float64), int(given[1])
    size = covariance.shape[0] if covariance.ndim == 2 else -1
    mean = np.zeros(max(size, 0)) if len(given) == 2 else np.asarray(given[2], dtype=np.float64)
    sound = size > 0 and covariance.shape == (size, size) and mean.shape == (size,) and count >= 2
    sound = sound and bool(np.all(np.isfinite(covariance)))
    if not sound or np.abs(covariance - covariance.T).max() > 1e-8 * np.abs(covariance).max():
        problem = f"{name} has a covariance of shape {covariance.shape}, a mean of shape {mean.shape} and {count} rows"
        advice = "Give a finite symmetric matrix, a mean of as many columns, and at least 2 rows."
        raise InvalidValueError(problem, advice=advice)
    if len(given) == 2 and model.center == "background":
        problem, advice = f"needs means, but {name} has none", "Give (covariance, count, mean)."
        raise InvalidValueError(problem, parameter="center", value=model.center, advice=advice)
    return ScatterMoments(count, mean, count * 0.5 * (covariance + covariance.T))


def _check_alike(moments: Sequence[Moments], names: Sequence[str]) -> None:
    """Raise an error if the numbers of columns differ, or if private and exact sums are mixed."""
    for part, name in zip(moments[1:], names[1:], strict=True):
        if part.n_features != moments[0].n_features:
            problem = f"{name} has {part.n_features} features, but the target has {moments[0].n_features}"
            raise InvalidValueError(problem, advice="Give every dataset the same columns.")
        if part.exact is not moments[0].exact:
            problem = "exact sums and private sums cannot be used together"
            raise InvalidTypeError(problem, advice="Release every dataset, or none.")
