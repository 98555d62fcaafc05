"""Epochs of brain signals: equal to MNE's CSP where both are defined, and what CSP lacks."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from standout import DiscriminativePCA
from standout._params import SIDES
from standout.mne import Contrast


@pytest.fixture
def epochs(rng):
    """Three conditions: "left" has a source of its own, "right" another; all share noise of the same mixture."""
    mixing = rng.normal(size=(8, 8))
    y = np.repeat(["left", "rest", "right"], 30)
    sources = rng.normal(size=(90, 8, 120))
    sources[y == "left", 0] *= 3
    sources[y == "right", 1] *= 2
    return np.einsum("cs,est->ect", mixing, sources), y


def mne_epochs(signals, y):
    mne = pytest.importorskip("mne", reason="mne is not installed")
    names = ["Fz", "Cz", "Pz", "C3", "C4", "O1", "O2", "Fp1"]
    info = mne.create_info([*names, "EOG"], 100.0, ["eeg"] * 8 + ["eog"], verbose=False)
    angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    far = np.linspace(0.02, 0.08, 8)
    places = np.column_stack([far * np.cos(angles), far * np.sin(angles), np.sqrt(0.095**2 - far**2)])
    info.set_montage(mne.channels.make_dig_montage(dict(zip(names, places, strict=True)), coord_frame="head"))
    event_id = {"left": 1, "rest": 2, "right": 3}
    events = np.column_stack([np.arange(len(y)) * 200, np.zeros(len(y), int), [event_id[name] for name in y]])
    data = np.concatenate([signals, np.random.default_rng(1).normal(size=(len(y), 1, signals.shape[2]))], axis=1)
    return mne.EpochsArray(data * 1e-6, info, events, event_id=event_id, verbose=False)


@pytest.mark.parametrize("cov_est", ["concat", "epoch"])
def test_two_conditions_without_shrinkage_are_common_spatial_patterns(epochs, cov_est):
    decoding = pytest.importorskip("mne.decoding", reason="mne is not installed")
    signals, y = epochs
    signals, y = signals[y != "right"], y[y != "right"]
    csp = decoding.CSP(8, cov_est=cov_est, component_order="alternate", log=True)
    csp.fit(signals, (y == "left").astype(int))
    ours = Contrast(8, target_label="left", shrinkage=None).fit(signals, y)
    # The filters are the same up to order, sign and scale.
    length = lambda filters: filters / np.linalg.norm(filters, axis=1, keepdims=True)  # noqa: E731
    cosines = np.abs(length(ours.filters_) @ length(csp.filters_).T)
    place = cosines.argmax(axis=1)
    assert sorted(place) == list(range(8))
    np.testing.assert_allclose(cosines.max(axis=1), 1.0, atol=1e-8)
    # Behind the same filters is the same power, in units of the filter.
    scale = np.linalg.norm(ours.filters_, axis=1) / np.linalg.norm(csp.filters_[place], axis=1)
    theirs = csp.transform(signals)[:, place] + 2 * np.log(scale)
    np.testing.assert_allclose(ours.transform(signals), theirs, atol=1e-8)
    # The patterns are the columns of the inverse of the filters.
    np.testing.assert_allclose(ours.patterns_ @ ours.filters_.T, np.eye(8), atol=1e-8)


def test_it_is_discriminative_pca_of_the_samples(epochs):
    signals, y = epochs
    parts = [signals[y == name] for name in ("left", "rest", "right")]
    parts = [part - part.mean(axis=(0, 2), keepdims=True) for part in parts]
    rows = [np.moveaxis(part, 1, 2).reshape(-1, 8) for part in parts]
    ours = Contrast(3, shrinkage=None).fit(parts[0], background=parts[1:])
    theirs = DiscriminativePCA(3, shrinkage=None).fit(rows[0], background=rows[1:])
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(ours.filters_ @ theirs.patterns_.T), np.eye(3), atol=1e-8)
    assert Contrast(3, target_label="left").fit(signals, y).background_labels_ == ["rest", "right"]


def test_held_out_ratios_and_the_test_tell_what_is_real(epochs, rng):
    signals, y = epochs
    model = Contrast(2, target_label="left", test="permutation").fit(signals, y)
    assert model.held_out_ratio_[0] == pytest.approx(9.0 / 1.0, rel=0.3)
    assert model.p_values_[0] <= 0.01
    noise = rng.normal(size=(24, 20, 40))
    nothing = Contrast(1, target_label=1, test="permutation").fit(noise, np.arange(24) % 2)
    assert nothing.p_values_[0] > 0.05
    assert nothing.held_out_ratio_[0] < nothing.eigenvalues_[0]


def test_a_small_ratio_is_extreme_on_the_backgrounds_side_only(rng):
    weak, strong = 0.2 * rng.normal(size=(20, 4, 50)), rng.normal(size=(20, 4, 50))
    found = {}
    for side in SIDES:
        model = Contrast(1, side=side, test="permutation").fit(weak, background=strong)
        assert model.eigenvalues_[0] == pytest.approx(0.04, rel=0.3)
        found[side] = model.p_values_[0]
    assert found["target"] == 1.0
    assert found["background"] == found["both"] == 0.005


def test_shrinkage_counts_epochs_and_not_samples(rng):
    # The same sample a hundred times adds nothing that is known of the covariance.
    few = np.repeat(rng.normal(size=(12, 10, 3)), 100, axis=2)
    target = rng.normal(size=(12, 10, 300))
    assert Contrast(1).fit(target, background=few).shrinkage_[0] > 0.3
    many = rng.normal(size=(400, 10, 300)) * np.arange(1, 11)[:, None]
    assert Contrast(1).fit(target, background=many).shrinkage_[0] < 0.01


def test_epochs_of_mne_are_taken_by_their_good_channels_and_events(epochs):
    signals, y = epochs
    objects = mne_epochs(signals, y)
    model = Contrast(2, target_label="left").fit(objects)
    expected = Contrast(2, target_label="left").fit(signals * 1e-6, y)
    assert model.ch_names_ == objects.ch_names[:8]
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_)
    np.testing.assert_allclose(model.transform(objects), expected.transform(signals * 1e-6))
    objects.info["bads"] = ["Cz"]
    assert "Cz" not in Contrast(2, target_label="left").fit(objects).ch_names_
    apart = Contrast(2).fit(objects["left"], background=[objects["rest"], objects["right"]])
    np.testing.assert_allclose(apart.eigenvalues_, Contrast(2, target_label="left").fit(objects).eigenvalues_)


def test_mne_draws_patterns_and_filters(epochs):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    objects = mne_epochs(*epochs)
    model = Contrast(2, target_label="left").fit(objects)
    for draw in (model.plot_patterns, model.plot_filters):
        figure = draw(objects.info, show=False)
        assert len(figure.axes) >= 2
        plt.close("all")


def test_it_is_a_step_of_a_pipeline(epochs):
    signals, y = epochs
    signals, y = signals[y != "rest"], y[y != "rest"]
    pipeline = make_pipeline(Contrast(2, target_label="left", side="both"), LogisticRegression())
    assert clone(pipeline).fit(signals[::2], y[::2]).score(signals[1::2], y[1::2]) > 0.9


def test_what_is_no_epochs_is_refused(epochs):
    signals, y = epochs
    with pytest.raises(TypeError, match=r"2 dimensions, but epochs x channels x times.*DiscriminativePCA"):
        Contrast(1).fit(signals[0], background=signals[0])
    with pytest.raises(ValueError, match="target_label='up' is not a condition of the epochs"):
        Contrast(1, target_label="up").fit(signals, y)
    with pytest.raises(ValueError, match="there is no background"):
        Contrast(1).fit(signals)
    with pytest.raises(ValueError, match="there are 7 channels, but the target has 8"):
        Contrast(1).fit(signals, background=signals[:, :7])
    with pytest.raises(ValueError, match="side='left' is unknown. Use one of 'target', 'background', 'both'"):
        Contrast(1, target_label="left", side="left").fit(signals, y)
    with pytest.raises(ValueError, match="test='t' is unknown. Use 'permutation', or None"):
        Contrast(1, target_label="left", test="t").fit(signals, y)
    with pytest.raises(ValueError, match="too few rows in the condition 'left': 1"):
        Contrast(1, target_label="left").fit(signals[29:], y[29:])


def test_a_plain_fit_refuses_epochs_and_names_the_way(epochs):
    """Epochs can be iterated over: taken as an iterator of tables, times would be fitted in place of channels."""
    objects = mne_epochs(*epochs)
    for fit in (
        lambda: DiscriminativePCA().fit(objects["left"], background=objects["rest"]),
        lambda: DiscriminativePCA().fit(np.eye(9), background=objects["rest"]),
        lambda: DiscriminativePCA().partial_fit(objects["left"]),
    ):
        with pytest.raises(TypeError, match=r"is no table. Use standout.mne.Contrast"):
            fit()
