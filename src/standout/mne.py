"""Brain signals: which spatial filters pass more power in one condition, or one span of time, than in others?

A transformer for MNE-Python's Raw, Epochs and Evoked, and for arrays of epochs x channels x times. Needs
``standout[mne]`` for MNE's objects and pictures; arrays need no other package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Float
from standout._messages import InvalidTypeError, InvalidValueError, listed, require_extra
from standout._options import check_parameters, check_weights
from standout.estimators._scores import keep_parameters
from standout.io._files import check_choice
from standout.moments import NormSums, ScatterMoments
from standout.problem import Problem, solve
from standout.selection import choose, judge
from standout.selection._data import TallData

__all__ = ["Contrast"]

# A continuous recording is cut into pieces of this many seconds. Folds leave out whole pieces.
PIECE = 2.0
_DATA = dict.fromkeys(("meg", "eeg", "csd", "seeg", "ecog", "dbs", "fnirs"), True)
# The name of new signals in messages.
NEW = "the signals"


class Contrast(TransformerMixin, BaseEstimator):
    """Which spatial filters pass much power in one condition and little in others?

    Discriminative PCA of the channels, from sums of squares over the samples of epochs: the filters u with the largest
    ratio ``uᵀCu / uᵀBu`` of the target's power to the backgrounds' power, with C and B the covariances of target and
    backgrounds. For two conditions and without shrinkage these are common spatial patterns (`mne.decoding.CSP`); for a
    narrow band against its flanks, spatio-spectral decomposition (`mne.decoding.SSD`). `Contrast` adds several
    backgrounds, a choice of shrinkage and the ratio on held-out epochs.

    Parameters
    ----------
    n_components : int, default=4
        Number of filters.
    target_label : object, default=None
        The condition that is the target, with labels in `fit`: a value of y, or the name of an event of the epochs.
        Each other condition is one background. None uses X as the target.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background's covariance, scaled to sum 1. None means equal weights.
    shrinkage : "ledoit-wolf", "auto", float in [0, 1] or None, default="ledoit-wolf"
        How far each background covariance C is pulled towards ``(tr C / D) I``, for D channels. "ledoit-wolf" is the
        estimate of Ledoit and Wolf. "auto" chooses a value by held-out epochs, which needs many of them. None means no
        shrinkage, as in CSP.
    cv : int or None, default=5
        Number of folds of epochs for `ratio_` and the choice of shrinkage; fewer if there are few epochs.
    output : {"log_power", "power", "sources"}, default="log_power"
        The result of `transform`: the logarithm of the mean power of each filtered signal in each epoch, the power
        itself, or the filtered signals.

    Attributes
    ----------
    filters_ : ndarray of shape (n_components, n_channels)
        The filters. Filtered signals of the backgrounds have a power of 1, on held-out epochs if there are folds.
    patterns_ : ndarray of shape (n_components, n_channels)
        The strength of each component on each channel; ``filters_ @ patterns_.T`` is the identity.
    evals_ : ndarray of shape (n_components,)
        Ratio r of the target's power to the power of the (shrunken) backgrounds. The eigenvalue of CSP is
        ``r / (1 + r)``.
    ratio_, ratio_error_ : ndarray of shape (n_components,)
        The ratio on held-out epochs, and its standard error; NaN without folds.
    shrinkage_ : float
    path_ : Path or None
        How the shrinkage was chosen.
    background_labels_ : list or None
        The conditions that are backgrounds, with `target_label`.
    ch_names_ : list of str or None
        Names of the channels that are used; None for arrays.
    n_features_in_ : int
        Number of channels.

    See Also
    --------
    standout.DiscriminativePCA : The method, for tables of rows.

    Notes
    -----
    Signals are assumed to have a mean of zero, as in MNE's CSP: filter them first, usually to a band of frequencies.
    The mean is not subtracted, so that an evoked response or an offset adds to the power, as with
    ``center="background"``. Channels are divided by the root mean power of their type (magnetometers, gradiometers,
    EEG) in the backgrounds, so that units do not matter. CSP also returns filters that pass little power of the target.
    To find such filters, exchange target and background.

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
    >>> model.ratio_.round()
    array([9.])
    """

    def __init__(
        self,
        n_components: Any = 4,
        *,
        target_label: Any = None,
        background_weights: Any = None,
        shrinkage: Any = "ledoit-wolf",
        cv: int | None = 5,
        output: str = "log_power",
    ) -> None:
        keep_parameters(self, locals())

    def fit(
        self, X: Any, y: Any = None, *, background: Any = None, window: Any = None, background_window: Any = None
    ) -> Contrast:
        """Find the filters.

        Parameters
        ----------
        X : mne.Epochs, mne.io.Raw or array of shape (n_epochs, n_channels, n_times)
            The signals of the target; with `target_label`, the epochs of all conditions. The good data channels of
            MNE's objects are used.
        y : array-like of shape (n_epochs,), default=None
            Condition of each epoch, with `target_label`. None uses the names of the events of MNE's epochs.
        background : signals, or list of signals, default=None
            The signals of each background, without `target_label`. If it is None and a `background_window` is given, X
            is used.
        window, background_window : (float, float) or list of such pairs, default=None
            Spans of time to use for the target and for the backgrounds, in seconds of the recording or of each epoch.
            None uses all times.

        Returns
        -------
        Contrast
            The fitted transformer itself.
        """
        check_parameters("dpca", {name: getattr(self, name) for name in ("n_components", "shrinkage", "cv")})
        check_choice(self.output, "output", ("log_power", "power", "sources"))
        pieces, types = self._conditions(X, y, background, window, background_window)
        self.n_features_in_ = pieces[0][0].shape[0]
        if isinstance(self.n_components, str | None) or self.n_components > self.n_features_in_:
            advice = f"Use a number of components from 1 to the {self.n_features_in_} channels."
            raise InvalidValueError("cannot be used", parameter="n_components", value=self.n_components, advice=advice)
        weights = np.array(check_weights("background_weights", self.background_weights, len(pieces) - 1, "backgrounds"))
        n_folds = 1 if self.cv is None else max(min(self.cv, *(len(part) // 2 for part in pieces)), 1)
        scale = _type_scale(pieces[1:], weights, types)
        scaled = [[piece / scale[:, None] for piece in part] for part in pieces]
        data = TallData([[_moments(part[fold::n_folds]) for fold in range(n_folds)] for part in scaled])
        given: Any = "ledoit-wolf" if self.shrinkage == "auto" else self.shrinkage or 0.0
        problem, self.path_ = Problem(int(self.n_components), weights=tuple(weights), shrinkage=given), None
        if self.shrinkage == "auto" and n_folds > 1:
            problem, self.path_ = choose(problem, data)
        solution = solve(data.totals, problem)
        power = weights @ [part.variance(solution.vectors) for part in data.totals[1:]]
        unit, self.ratio_, self.ratio_error_ = np.sqrt(power), *np.full((2, self.n_components), np.nan)
        if n_folds > 1:
            held = judge(problem, data, [], solution.vectors)
            unit, self.ratio_, self.ratio_error_ = held.unit, held.ratio, held.ratio * held.log_error
        unit = np.where(unit > 0.0, unit, 1.0)
        self.filters_ = (solution.vectors / scale[:, None] / unit).T
        self.patterns_ = (solution.patterns * scale[:, None]).T
        self.patterns_ /= np.sum(self.patterns_ * self.filters_, axis=1, keepdims=True)
        self.evals_, self.shrinkage_ = solution.values, float(weights @ solution.shrinkage)
        return self

    def transform(self, X: Any) -> Float:
        """Return the power of each filtered signal in each epoch, or the filtered signals: see `output`.

        Parameters
        ----------
        X : mne.Epochs, Raw, Evoked or array of shape (n_epochs, n_channels, n_times)
            Raw and Evoked are one epoch.

        Returns
        -------
        ndarray of shape (n_epochs, n_components), or (n_epochs, n_components, n_times) for ``output="sources"``
        """
        check_is_fitted(self, "filters_")
        sources: Float = np.stack([self.filters_ @ piece for piece in self._signals(X)])
        if self.output == "sources":
            return sources
        power: Float = (sources**2).mean(axis=2)
        return power if self.output == "power" else np.log(power)

    def inverse_transform(self, sources: Any) -> Float:
        """Return the signals of the channels, computed from filtered signals.

        Parameters
        ----------
        sources : array of shape (n_epochs, n_components, n_times)
            As `transform` returns with ``output="sources"``.

        Returns
        -------
        ndarray of shape (n_epochs, n_channels, n_times)
        """
        check_is_fitted(self, "filters_")
        return self.patterns_.T @ np.asarray(sources)

    def apply(self, inst: Any, *, exclude: Any = None, include: Any = None) -> Any:
        """Remove components from a recording, or keep only some, as `mne.preprocessing.ICA.apply` does.

        Parameters
        ----------
        inst : mne.io.Raw, mne.Epochs, mne.Evoked or array of shape (..., n_channels, n_times)
        exclude : list of int
            Components to remove, from 0. All other activity is kept, also of other components.
        include : list of int
            Components to keep. All other activity is removed.

        Returns
        -------
        Raw, Epochs, Evoked or ndarray
            A cleaned copy of the same type. Info, events and other channels are kept.
        """
        check_is_fitted(self, "filters_")
        given, last = np.asarray(exclude if include is None else include, dtype=object), len(self.filters_) - 1
        numbers, is_one = np.atleast_1d(given).tolist(), (exclude is None) != (include is None)
        if not is_one or not all(isinstance(number, int | np.integer) and 0 <= number <= last for number in numbers):
            raise InvalidValueError(f"give components from 0 to {last}, either as `exclude` or as `include`")
        part = self.patterns_[numbers].T @ self.filters_[numbers]
        matrix = part if exclude is None else np.eye(self.n_features_in_) - part
        if not hasattr(inst, "info"):
            signals = np.asarray(inst)
            self._signals(signals.reshape(-1, *signals.shape[-2:]))
            return matrix @ signals
        self._signals(inst)
        places = [inst.ch_names.index(name) for name in self.ch_names_ or inst.ch_names]

        def cleaned(block: Float) -> Float:
            block = block.copy()
            block[..., places, :] = matrix @ block[..., places, :]
            return block

        clean = inst.copy().load_data() if hasattr(inst, "load_data") else inst.copy()
        # MNE 1.11 ignores `picks` for epochs here. Therefore `cleaned` chooses the channels.
        return clean.apply_function(cleaned, picks="all", channel_wise=False, verbose=False)

    def spatial_filter(self, info: Any) -> Any:
        """Return the filters and patterns as MNE's object, which draws them: ``spatial_filter(info).plot_patterns()``.

        Parameters
        ----------
        info : mne.Info
            The info of the signals, with the positions of the sensors. It may have further channels.

        Returns
        -------
        mne.decoding.SpatialFilter
        """
        check_is_fitted(self, "filters_")
        require_extra("mne", "mne", "a picture of filters")
        from mne import pick_info
        from mne.decoding import SpatialFilter

        if self.ch_names_ is not None:
            info = pick_info(info, [info["ch_names"].index(name) for name in self.ch_names_])
        return SpatialFilter(info, filters=self.filters_, evals=self.evals_, patterns=self.patterns_)

    # --- input -----------------------------------------------------------------------------------------------------

    def _conditions(
        self, X: Any, y: Any, background: Any, window: Any, background_window: Any
    ) -> tuple[list[list[Float]], list[str]]:
        """Return the pieces of the target and of each background, and the types of the channels."""
        self.ch_names_: list[str] | None = None
        self.background_labels_: list[Any] | None = None
        types = []
        if hasattr(X, "info"):
            from mne import pick_types

            picks = pick_types(X.info, **_DATA, exclude="bads")
            self.ch_names_ = [X.ch_names[place] for place in picks]
            types = X.info.get_channel_types(picks)
        whole = self._signals(X, "the target", window)
        if (self.target_label is None) == (background is None and background_window is None):
            advice = "Give either `background` or `background_window`, or labels with `target_label`."
            raise InvalidValueError("there is no background, or more than one kind of it", advice=advice)
        if self.target_label is None:
            given = X if background is None else background
            parts = {"the target": whole}
            for number, one in enumerate(given if isinstance(given, list | tuple) else [given], start=1):
                parts[f"background {number}"] = self._signals(one, f"background {number}", background_window)
        else:
            if y is None and not hasattr(X, "events"):
                raise InvalidValueError("needs y, the condition of each epoch", parameter="target_label")
            labels = np.asarray(y)
            if y is None:
                names_of = {number: name for name, number in X.event_id.items()}
                labels = np.array([names_of[number] for number in X.events[:, 2]])
            known = np.unique(labels).tolist()
            if labels.shape != (len(whole),) or self.target_label not in known or len(known) < 2:
                problem = f"is not one of several labels of the {len(whole)} epochs: {listed('label', known)}"
                advice = "Give the condition of each epoch as y, and choose one of them."
                raise InvalidValueError(problem, parameter="target_label", value=self.target_label, advice=advice)
            self.background_labels_ = [label for label in known if label != self.target_label]
            every = [self.target_label, *self.background_labels_]
            parts = {f"the condition {one!r}": [whole[k] for k in np.flatnonzero(labels == one)] for one in every}
        n_channels = whole[0].shape[0]
        for name, part in parts.items():
            if len(part) < 2 or part[0].shape[0] != n_channels:
                problem = f"{name} has {len(part)} epochs of {part[0].shape[0]} channels"
                advice = f"Give at least two epochs of the {n_channels} channels of the target."
                raise InvalidValueError(problem, advice=advice)
        return list(parts.values()), types or ["signal"] * n_channels

    def _signals(self, X: Any, name: str = NEW, window: Any = None) -> list[Float]:
        """Return signals as pieces of channels x times."""
        if hasattr(X, "info"):
            found = self._from_mne(X, name, window)
        elif window is None:
            found = list(_as_epochs(X, name))
        else:
            advice = "Cut arrays before the fit."
            raise InvalidTypeError("needs MNE's Raw or Epochs", parameter="window", value=window, advice=advice)
        if name == NEW and found[0].shape[0] != self.n_features_in_:
            problem = f"{name} have {found[0].shape[0]} channels, but the fit has {self.n_features_in_}"
            raise InvalidValueError(problem, advice="Give the same channels.")
        return found

    def _from_mne(self, X: Any, name: str, window: Any) -> list[Float]:
        """Return the signals of MNE's object in the channels of the fit, which are found by name."""
        from mne import BaseEpochs, Evoked
        from mne.io import BaseRaw

        if not isinstance(X, BaseRaw | BaseEpochs | Evoked):
            problem = f"{name} is a {type(X).__name__}, not Raw, Epochs or Evoked"
            raise InvalidTypeError(problem, advice="Give signals in time; spectra have no sources.")
        wanted = list(X.ch_names) if self.ch_names_ is None else self.ch_names_
        missing = [channel for channel in wanted if channel not in X.ch_names]
        if missing or not wanted:
            problem = f"{name} lacks {listed('channel', missing)}" if missing else f"{name} has no good data channel"
            raise InvalidValueError(problem, advice="Give the same channels.")
        is_cut = isinstance(X, BaseRaw) and name != NEW
        options: dict[str, Any] = {} if isinstance(X, Evoked) else {"verbose": False}
        options |= {"reject_by_annotation": "omit"} if is_cut else {}
        found: list[Float] = []
        spans: Any = (None, None) if window is None else window
        for start, stop in np.reshape(spans, (-1, 2)):
            data = X.get_data(picks=wanted, tmin=start, tmax=stop, **options)
            epochs = _as_epochs(data if isinstance(X, BaseEpochs) else data[None], name)
            n_pieces = max(int(epochs.shape[2] / X.info["sfreq"] / PIECE), 1) if is_cut else 1
            found += [piece for epoch in epochs for piece in np.array_split(epoch, n_pieces, axis=1)]
        return found


def _as_epochs(X: Any, name: str) -> npt.NDArray[Any]:
    """Check an array of epochs x channels x times."""
    signals = np.asarray(X)
    if signals.ndim != 3 or signals.dtype.kind not in "fiu" or not signals.size:
        problem = f"{name} has shape {signals.shape} and type {signals.dtype}"
        advice = "Give real numbers of epochs x channels x times, or MNE's Raw or Epochs; bad spans are left out."
        raise InvalidValueError(problem, advice=f"{advice} For tables of rows use DiscriminativePCA.")
    if not np.all(np.isfinite(signals)):
        raise InvalidValueError(f"there is NaN or infinity in {name}", advice="Drop such epochs.")
    return signals.astype(np.float64, copy=False)


def _moments(pieces: Sequence[Float]) -> ScatterMoments:
    """Return the moments of the samples of pieces, about zero."""
    rows = np.concatenate(pieces, axis=1).T
    return ScatterMoments(len(rows), np.zeros(rows.shape[1]), rows.T @ rows, norms=NormSums.of(rows))


def _type_scale(backgrounds: Sequence[Sequence[Float]], weights: Float, types: list[str]) -> Float:
    """Return the root mean power of each channel's type in the backgrounds."""
    power = weights @ [np.mean(np.concatenate(part, axis=1) ** 2, axis=1) for part in backgrounds]
    kinds = np.array(types)
    scale = np.sqrt([np.mean(power[kinds == kind]) for kind in types])
    return np.where(scale > 0.0, scale, 1.0)
