"""Epochs of brain signals: which spatial filters pass more power in one condition than in others?

A transformer for MNE-Python's epochs and for arrays of epochs x channels x times. Needs ``standout[mne]`` for MNE's own
objects and pictures; arrays need nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from standout import contrast
from standout._arrays import Float
from standout._checks import as_labels, as_seed, check_choice
from standout._messages import InvalidTypeError, InvalidValueError, dataset_names, listed, reject_too_few, require_extra
from standout._params import check_held_out, check_n_components, check_shrinkage, check_side, check_weights
from standout.moments import Folds, Moments, ScatterMoments
from standout.pencil import solve
from standout.selection import HeldOut, LeftOut, judge

__all__ = ["Contrast"]

OUTPUTS = ("log_power", "power", "sources")
N_PERMUTATIONS = 199


class Contrast(TransformerMixin, BaseEstimator):
    """Which spatial filters pass much power in one condition and little in others?

    Discriminative PCA of the channels, from one covariance matrix per epoch: the filters u with the largest ratio
    ``uᵀCu / uᵀBu`` of power in the target's epochs to power in the backgrounds'. For two conditions and without
    shrinkage these are the filters of common spatial patterns (`mne.decoding.CSP`). Several backgrounds, shrinkage,
    ratios on epochs that were not fitted, and a test are added.

    Parameters
    ----------
    n_components : int, default=4
        Number of filters.
    target_label : object, default=None
        The condition that is the target, with labels in `fit`: a value of y, or the name of an event of the epochs.
        Each other condition is one background. None takes X as the target, and needs `background`.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background's covariance, scaled to sum 1. None means equal weights.
    shrinkage : "auto", float in [0, 1] or None, default="auto"
        How far each background covariance C is pulled towards ``(tr C / D) I``. "auto" is the rule of Ledoit and Wolf
        with epochs as units: samples within an epoch depend on each other, and are not counted as observations. None
        is no shrinkage, as in CSP.
    side : {"target", "background", "both"}, default="target"
        Filters with the largest ratios, with the least, or both, as CSP takes them.
    held_out : int or None, default=5
        Number of folds of epochs for `held_out_ratio_`; fewer where there are few epochs. None leaves them out.
    test : {"permutation"} or None, default=None
        Whether to exchange epochs between the conditions 199 times, for `p_values_`.
    output : {"log_power", "power", "sources"}, default="log_power"
        What `transform` gives: the logarithm of the mean power of each epoch behind each filter, the power itself, or
        the filtered signals.
    random_state : int, RandomState instance or None, default=None
        Seed of permutations. None is a fixed seed, too.

    Attributes
    ----------
    filters_ : ndarray of shape (n_components, n_channels)
        Scaled to ``uᵀBu = 1``.
    patterns_ : ndarray of shape (n_components, n_channels)
        What each component looks like on the channels, ``B u``.
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the target's to the (shrunken) backgrounds' power. λ of CSP is ``r / (1 + r)``.
    held_out_ratio_, held_out_ratio_error_ : ndarray of shape (n_components,)
        The ratio on epochs that were not fitted, and its standard error. Absent with ``held_out=None``, and if there
        are too few epochs.
    p_values_ : ndarray of shape (n_components,)
        Chance of a first ratio at least as large where conditions do not differ (with ``side="background"`` at least
        as small, with "both" at least as far from 1); only with `test`.
    weights_, shrinkage_ : ndarray of shape (n_backgrounds,)
    background_labels_ : list
        The conditions that are backgrounds; only with `target_label`.
    ch_names_ : list of str
        Names of the channels; only of epochs of MNE.
    n_channels_ : int

    See Also
    --------
    standout.DiscriminativePCA : The method, for tables of rows.
    mne.decoding.CSP : Common spatial patterns.

    Notes
    -----
    Signals are taken to have a mean of zero, as in MNE's CSP: filter them first, usually to a band of frequencies.
    Every epoch counts equally, however long it is.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.mne import Contrast
    >>> rng = np.random.default_rng(0)
    >>> epochs = rng.normal(size=(40, 6, 100))
    >>> y = np.repeat(["rest", "left"], 20)
    >>> epochs[20:, 2] *= 3
    >>> model = Contrast(1, target_label="left").fit(epochs, y)
    >>> int(np.argmax(np.abs(model.patterns_[0] * model.filters_[0]))), model.transform(epochs).shape
    (2, (40, 1))
    >>> model.held_out_ratio_.round()
    array([9.])
    """

    def __init__(
        self,
        n_components: int = 4,
        *,
        target_label: Any = None,
        background_weights: Any = None,
        shrinkage: Any = "auto",
        side: str = "target",
        held_out: int | None = 5,
        test: str | None = None,
        output: str = "log_power",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.target_label = target_label
        self.background_weights = background_weights
        self.shrinkage = shrinkage
        self.side = side
        self.held_out = held_out
        self.test = test
        self.output = output
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Contrast:
        """Find the filters.

        Parameters
        ----------
        X : mne.Epochs or array of shape (n_epochs, n_channels, n_times)
            The epochs of the target; with `target_label`, those of all conditions. Of MNE's epochs the good data
            channels are used.
        y : array-like of shape (n_epochs,), default=None
            Condition of each epoch, with `target_label`. None takes the names of the events of MNE's epochs.
        background : epochs, or list of epochs, default=None
            The epochs of each background, without `target_label`.

        Returns
        -------
        Contrast
            The fitted transformer itself.
        """
        check_choice(self.output, "output", OUTPUTS)
        check_side(self.side)
        if self.test is not None:
            check_choice(self.test, "test", ["permutation"], "Use {known}, or {v.None}.")
        groups, names = self._conditions(X, y, background)
        covariances = [_covariances(part, name) for part, name in zip(groups, names, strict=True)]
        self.n_channels_ = covariances[0].shape[1]
        weights = check_weights(self.background_weights, len(groups) - 1)
        check_n_components(self.n_components, self.n_channels_, self.n_channels_)
        given = check_shrinkage(self.shrinkage)
        n_times = [int(part.shape[2]) for part in groups]
        moments = [_moments(part, times) for part, times in zip(covariances, n_times, strict=True)]

        def shares(parts: Sequence[Float]) -> Float:
            return np.array([_shrinkage(part) if given is None else given for part in parts])

        shrunk = shares(covariances[1:])
        problem = contrast.discriminative(moments[0], moments[1:], weights, shrunk)
        solution = solve(problem, self.n_components, solver="dense", side=self.side)
        self.filters_, self.patterns_ = solution.vectors.T, solution.patterns.T
        self.eigenvalues_, self.weights_, self.shrinkage_ = solution.values, weights, shrunk
        for name in ("held_out_ratio_", "held_out_ratio_error_", "p_values_"):
            self.__dict__.pop(name, None)
        found = self._judged(covariances, n_times, weights, shrunk)
        if found is not None:
            self.held_out_ratio_, self.held_out_ratio_error_ = found.ratios, found.standard_errors
        if self.test is not None:
            self.p_values_ = self._tested(covariances, n_times, weights, shares)
        return self

    def transform(self, X: Any) -> Float:
        """Give the power of each epoch behind each filter, or the filtered signals: see `output`.

        Parameters
        ----------
        X : mne.Epochs or array of shape (n_epochs, n_channels, n_times)

        Returns
        -------
        ndarray of shape (n_epochs, n_components), or (n_epochs, n_components, n_times) for ``output="sources"``
        """
        check_is_fitted(self)
        epochs, names = _signals(X, "the epochs")
        self._check_channels(epochs, names)
        sources: Float = np.einsum("dc,ect->edt", self.filters_, epochs)
        if self.output == "sources":
            return sources
        power: Float = (sources**2).mean(axis=2)
        return power if self.output == "power" else np.log(power)

    def spatial_filter(self, info: Any) -> Any:
        """Give the filters and patterns as MNE's own object, which draws them.

        Parameters
        ----------
        info : mne.Info
            Of the epochs, with the positions of the sensors; channels that were not used may be in it.

        Returns
        -------
        mne.decoding.SpatialFilter
        """
        check_is_fitted(self)
        require_extra("mne", "mne", "a picture of filters")
        from mne import pick_info
        from mne.decoding import SpatialFilter

        if hasattr(self, "ch_names_"):
            info = pick_info(info, [info["ch_names"].index(name) for name in self.ch_names_])
        return SpatialFilter(info, filters=self.filters_, evals=self.eigenvalues_, patterns=self.patterns_)

    def plot_patterns(self, info: Any, **options: Any) -> Any:
        """Draw the patterns on the head, by ``mne.decoding.SpatialFilter.plot_patterns``."""
        return self.spatial_filter(info).plot_patterns(**options)

    def plot_filters(self, info: Any, **options: Any) -> Any:
        """Draw the filters on the head, by ``mne.decoding.SpatialFilter.plot_filters``."""
        return self.spatial_filter(info).plot_filters(**options)

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there are filters."""
        return hasattr(self, "filters_")

    @property
    def _n_features_out(self) -> int:
        return int(self.filters_.shape[0])

    def _conditions(self, X: Any, y: Any, background: Any) -> tuple[list[Float], list[str]]:
        """Give the signals of the target and of each background, and their names."""
        self.__dict__.pop("background_labels_", None)
        self.__dict__.pop("ch_names_", None)
        whole, names = _signals(X, "the target" if self.target_label is None else "the epochs")
        if names is not None:
            self.ch_names_ = names
        if self.target_label is None:
            if background is None:
                advice = "Give the epochs to compare with, or set {p.target_label} and give labels."
                raise InvalidValueError("there is no background to compare with", advice=advice)
            given = background if isinstance(background, list | tuple) else [background]
            called = dataset_names(len(given) + 1)
            parts = [whole]
            for part, name in zip(given, called[1:], strict=True):
                signals, others = _signals(part, name)
                self._check_channels(signals, others, whole.shape[1])
                parts.append(signals)
            return parts, called
        if background is not None:
            raise InvalidValueError(
                "both {p.target_label} and a background are given", advice="Give labels y, or a background, not both."
            )
        labels = as_labels(_event_names(X) if y is None else y, len(whole), "y")
        known = np.unique(labels).tolist()
        if self.target_label not in known:
            raise InvalidValueError(
                "is not a condition of the epochs, which have {known}",
                parameter="target_label",
                value=self.target_label,
                known=listed("condition", known),
                advice="Choose one of these.",
            )
        self.background_labels_ = [label for label in known if label != self.target_label]
        if not self.background_labels_:
            advice = "Epochs of another condition are the background."
            raise InvalidValueError(
                "every epoch is of the condition {label}", label=repr(self.target_label), advice=advice
            )
        every = (self.target_label, *self.background_labels_)
        return [whole[labels == label] for label in every], [f"the condition {label!r}" for label in every]

    def _check_channels(self, signals: Float, names: list[str] | None, n_channels: int | None = None) -> None:
        """Refuse epochs of other channels than those of the fit."""
        expected = self.n_channels_ if n_channels is None else n_channels
        known = getattr(self, "ch_names_", None)
        if signals.shape[1] != expected or (None not in (names, known) and names != known):
            raise InvalidValueError(
                "there are {given} channels, but the target has {limit}, or their names are others",
                given=signals.shape[1],
                limit=expected,
                advice="Give the same channels in the same order.",
            )

    def _judged(self, covariances: list[Float], n_times: list[int], weights: Float, shrunk: Float) -> HeldOut | None:
        """Find out what the filters are worth on epochs that were not fitted."""
        wanted = check_held_out(self.held_out)
        n_folds = 0 if wanted is None else min(wanted, *(len(part) // 2 for part in covariances))
        if n_folds < 2:
            return None
        folds: list[Folds[Moments]] = [
            Folds(tuple(_moments(part[fold::n_folds], times) for fold in range(n_folds)), n_folds)
            for part, times in zip(covariances, n_times, strict=True)
        ]

        def solve_others(target: Moments, backgrounds: list[Moments], _: LeftOut) -> Float:
            problem = contrast.discriminative(target, backgrounds, weights, shrunk)
            return solve(problem, self.n_components, solver="dense", side=self.side).vectors

        return judge(solve_others, folds, weights, self.filters_.T, self.side)

    def _tested(self, covariances: list[Float], n_times: list[int], weights: Float, shares: Any) -> Float:
        """Compare the ratios with the first ratio of epochs that were exchanged between the conditions."""
        rng = np.random.default_rng(as_seed(self.random_state))
        every, sizes = np.concatenate(covariances), [len(part) for part in covariances]
        firsts = []
        for _ in range(N_PERMUTATIONS):
            parts = np.split(every[rng.permutation(len(every))], np.cumsum(sizes)[:-1])
            target, *backgrounds = (_moments(part, times) for part, times in zip(parts, n_times, strict=True))
            problem = contrast.discriminative(target, backgrounds, weights, shares(parts[1:]))
            firsts.append(float(solve(problem, 1, solver="dense", side=self.side).values[0]))
        beyond = (self._extremity(firsts)[:, None] >= self._extremity(self.eigenvalues_)).sum(axis=0)
        p_values: Float = np.maximum.accumulate((1.0 + beyond) / (1.0 + N_PERMUTATIONS))
        return p_values

    def _extremity(self, ratios: Any) -> Float:
        """Give how extreme ratios are on the side that is looked at: the larger, the more."""
        with np.errstate(divide="ignore"):
            logarithms: Float = np.log(ratios)
        return {"target": logarithms, "background": -logarithms, "both": np.abs(logarithms)}[self.side]


def _signals(X: Any, name: str) -> tuple[Float, list[str] | None]:
    """Give epochs as an array of epochs x channels x times, and the names of MNE's channels."""
    names = None
    if hasattr(X, "get_data") and hasattr(X, "info"):
        good = X.copy().pick("data", exclude="bads")
        X, names = good.get_data(), list(good.ch_names)
    signals = np.asarray(X, dtype=np.float64)
    if signals.ndim != 3:
        raise InvalidTypeError(
            "{name} has {given} dimensions, but epochs x channels x times are needed",
            name=name,
            given=signals.ndim,
            advice="Give mne.Epochs or an array with three dimensions; for tables of rows use DiscriminativePCA.",
        )
    if not np.all(np.isfinite(signals)):
        raise InvalidValueError("there is NaN or infinity in {name}", name=name, advice="Drop such epochs.")
    if len(signals) < 1 or signals.shape[2] < 1:
        reject_too_few(name, len(signals), 1)
    return signals, names


def _event_names(epochs: Any) -> npt.NDArray[Any]:
    """Give the name of the event of each of MNE's epochs."""
    if not hasattr(epochs, "events"):
        raise InvalidValueError("needs y, the condition of each epoch", parameter="target_label", advice="Give y.")
    names = {number: name for name, number in epochs.event_id.items()}
    return np.array([names[number] for number in epochs.events[:, 2]])


def _covariances(signals: Float, name: str) -> Float:
    """Give the covariance of the channels in each epoch, about zero."""
    if len(signals) < 2:
        reject_too_few(name, len(signals), 2)
    return np.einsum("ect,edt->ecd", signals, signals, optimize=True) / signals.shape[2]


def _moments(covariances: Float, n_times: int) -> ScatterMoments:
    """Give the moments of epochs, each of which counts equally."""
    mean, n_samples = covariances.mean(axis=0), len(covariances) * n_times
    return ScatterMoments(n_samples, np.zeros(len(mean)), n_samples * mean)


def _shrinkage(covariances: Float) -> float:
    """Give the shrinkage of Ledoit and Wolf with epochs as units, from the covariance of each."""
    mean = covariances.mean(axis=0)
    distance = float(np.sum((mean - np.trace(mean) / len(mean) * np.eye(len(mean))) ** 2))
    noise = float(np.sum((covariances - mean) ** 2)) / len(covariances) ** 2
    return min(noise / distance, 1.0) if distance > 0.0 else 0.0
