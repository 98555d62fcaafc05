"""Brain signals through MNE: equal to its CSP and SSD, cleaned recordings, channel types, and errors."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy.signal import butter, filtfilt
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline, make_union

from standout import DiscriminativePCA
from standout.mne import Contrast

mne = pytest.importorskip("mne", reason="mne is not installed")
mne.set_log_level("ERROR")
mpl.use("Agg")

NAMES = ["Fz", "Cz", "Pz", "C3", "C4", "O1", "O2", "Fp1"]


@pytest.fixture
def epochs(rng):
    """Three conditions: "left" has a source of its own, "right" another; all share noise of the same mixture."""
    mixing = rng.normal(size=(8, 8))
    y = np.repeat(["left", "rest", "right"], 30)
    sources = rng.normal(size=(90, 8, 120))
    sources[y == "left", 0] *= 3
    sources[y == "right", 1] *= 2
    return np.einsum("cs,est->ect", mixing, sources), y


def info_of(types=("eeg",) * 8):
    info = mne.create_info([*NAMES, "EOG"], 100.0, [*types, "eog"])
    angles, far = np.linspace(0, 2 * np.pi, 8, endpoint=False), np.linspace(0.02, 0.08, 8)
    places = np.column_stack([far * np.cos(angles), far * np.sin(angles), np.sqrt(0.095**2 - far**2)])
    info.set_montage(mne.channels.make_dig_montage(dict(zip(NAMES, places, strict=True)), coord_frame="head"))
    return info


def with_eog(signals):
    shape = (*signals.shape[:-2], 1, signals.shape[-1])
    return np.concatenate([signals, np.random.default_rng(1).normal(size=shape)], axis=-2) * 1e-6


def mne_epochs(signals, y, types=("eeg",) * 8):
    event_id = {"left": 1, "rest": 2, "right": 3}
    events = np.column_stack([np.arange(len(y)) * 200, np.zeros(len(y), int), [event_id[name] for name in y]])
    return mne.EpochsArray(with_eog(signals), info_of(types), events, event_id=event_id)


def same_up_to_scale(first, second):
    length = [filters / np.linalg.norm(filters, axis=1, keepdims=True) for filters in (first, second)]
    return np.abs(length[0] @ length[1].T)


# --- the same as MNE ---


def test_two_conditions_without_shrinkage_are_common_spatial_patterns(epochs):
    signals, y = epochs
    signals, y = signals[y != "right"], y[y != "right"]
    csp = mne.decoding.CSP(8, component_order="alternate", log=True).fit(signals, (y == "rest").astype(int))
    ours = Contrast(8, target_label="left", shrinkage=None).fit(signals, y)
    cosines = same_up_to_scale(ours.filters_, csp.filters_)
    place = cosines.argmax(axis=1)
    assert sorted(place) == list(range(8))
    np.testing.assert_allclose(cosines.max(axis=1), 1.0, atol=1e-8)
    np.testing.assert_allclose(ours.evals_ / (1.0 + ours.evals_), csp.evals_[place], atol=1e-8)
    scale = np.linalg.norm(ours.filters_, axis=1) / np.linalg.norm(csp.filters_[place], axis=1)
    np.testing.assert_allclose(ours.transform(signals), csp.transform(signals)[:, place] + 2 * np.log(scale), atol=1e-8)
    np.testing.assert_allclose(ours.patterns_ @ ours.filters_.T, np.eye(8), atol=1e-8)


def test_both_ends_of_csp_are_two_contrasts_with_the_datasets_exchanged(epochs):
    signals, y = epochs
    signals, y = signals[y != "rest"], y[y != "rest"]
    csp = mne.decoding.CSP(8).fit(signals, (y == "right").astype(int))
    for label, end in (("left", csp.evals_.argmax()), ("right", csp.evals_.argmin())):
        first = Contrast(1, target_label=label, shrinkage=None).fit(signals, y).filters_
        assert same_up_to_scale(first, csp.filters_[[end]])[0, 0] == pytest.approx(1.0, abs=1e-8)


def test_a_band_against_its_flanks_is_spatio_spectral_decomposition(rng):
    mixing, sources = rng.normal(size=(8, 8)), rng.normal(size=(8, 6000))
    sources[0] += 2 * np.sin(2 * np.pi * 10 * np.arange(6000) / 100.0)
    raw = mne.io.RawArray(with_eog(mixing @ sources), info_of())
    bands = [{"l_freq": 8, "h_freq": 12}, {"l_freq": 6, "h_freq": 14}]
    each = {"l_trans_bandwidth": 1, "h_trans_bandwidth": 1}
    eeg = mne.pick_info(raw.info, range(8))
    ssd = mne.decoding.SSD(eeg, {**bands[0], **each}, {**bands[1], **each}, sort_by_spectral_ratio=False)
    ssd.fit(raw.get_data(picks="eeg"))
    signal, wide = (raw.copy().filter(**band, **each, picks="eeg") for band in bands)
    noise = mne.io.RawArray(wide.get_data() - signal.get_data(), raw.info)
    ours = Contrast(8, shrinkage=None).fit(signal, background=noise)
    np.testing.assert_allclose(ours.evals_, ssd.evals_, rtol=1e-8)
    np.testing.assert_allclose(np.diag(same_up_to_scale(ours.filters_, ssd.filters_)), 1.0, atol=1e-8)


def test_it_is_discriminative_pca_of_the_samples(epochs):
    signals, y = epochs
    parts = [signals[y == name] for name in ("left", "rest", "right")]
    parts = [part - part.mean(axis=(0, 2), keepdims=True) for part in parts]
    rows = [np.moveaxis(part, 1, 2).reshape(-1, 8) for part in parts]
    ours = Contrast(3, shrinkage=0.1, background_weights=[1, 3]).fit(parts[0], background=parts[1:])
    scale = np.sqrt(np.average([np.mean(part**2) for part in rows[1:]], weights=[1, 3]))
    theirs = DiscriminativePCA(3, shrinkage=0.1, background_weights=[1, 3])
    theirs.fit(rows[0] / scale, background=[part / scale for part in rows[1:]])
    np.testing.assert_allclose(ours.evals_, theirs.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.diag(same_up_to_scale(ours.filters_, theirs.components_)), 1.0, atol=1e-8)


def test_conditions_are_told_apart_as_well_as_by_csp():
    """Dipoles on a sphere, powers that vary from trial to trial, 20 splits; CSP is MNE's with four filters."""
    accuracy = {"csp": [], "ours": []}
    for seed in range(4):
        signals, y = simulated_eeg(seed)
        ours = make_union(Contrast(2, target_label=0, cv=None), Contrast(2, target_label=1, cv=None))
        for train, test in StratifiedShuffleSplit(5, train_size=40, test_size=80, random_state=0).split(y, y):
            for name, step in (("csp", mne.decoding.CSP(4, log=True)), ("ours", ours)):
                model = make_pipeline(clone(step), LinearDiscriminantAnalysis()).fit(signals[train], y[train])
                accuracy[name].append(model.score(signals[test], y[test]))
    assert np.mean(accuracy["csp"]) > 0.65
    assert np.mean(accuracy["ours"]) > np.mean(accuracy["csp"]) - 0.01


def simulated_eeg(seed, n_epochs=200, n_channels=32, n_sources=40, n_times=250):
    rng = np.random.default_rng(seed)
    sensors, places = (rng.normal(size=(number, 3)) for number in (n_channels, n_sources))
    sensors, places = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (sensors, places))
    steps = np.abs(sensors)[:, None] - 0.7 * np.abs(places)
    mixing = np.einsum("csk,sk->cs", steps, rng.normal(size=(n_sources, 3))) / np.linalg.norm(steps, axis=2) ** 3
    mixing /= np.linalg.norm(mixing, axis=0)
    y = np.arange(n_epochs) % 2
    sources = filtfilt(*butter(3, [8 / 125, 30 / 125], "band"), rng.normal(size=(n_epochs, n_sources, n_times)))
    powers = np.exp(0.3 * rng.normal(size=(n_epochs, n_sources))) * rng.uniform(0.3, 2.0, n_sources)
    powers[y == 1, 0] *= 1.6
    powers[y == 0, 1] *= 1.6
    signals = np.einsum("cs,est->ect", mixing, sources / sources.std() * powers[:, :, None])
    return (signals + 0.1 * rng.normal(size=signals.shape)) * 1e-5, y


# --- MNE's objects ---


def test_epochs_are_used_by_their_good_channels_and_events(epochs, tmp_path):
    signals, y = epochs
    objects = mne_epochs(signals, y)
    model = Contrast(2, target_label="left").fit(objects)
    expected = Contrast(2, target_label="left").fit(signals, y)
    assert (model.ch_names_, model.n_features_in_, model.background_labels_) == (NAMES, 8, ["rest", "right"])
    np.testing.assert_allclose(model.ratio_, expected.ratio_)
    np.testing.assert_allclose(model.transform(objects), expected.transform(signals))
    apart = Contrast(2).fit(objects["left"], background=[objects["rest"], objects["right"]])
    np.testing.assert_allclose(apart.evals_, model.evals_)
    objects.save(tmp_path / "some-epo.fif")
    unloaded = mne.read_epochs(tmp_path / "some-epo.fif", preload=False)
    # The file has single precision.
    np.testing.assert_allclose(Contrast(2, target_label="left").fit(unloaded).evals_, model.evals_, rtol=1e-5)
    objects.info["bads"] = ["Cz"]
    assert "Cz" not in Contrast(2, target_label="left").fit(objects).ch_names_


def test_windows_of_a_recording_and_of_epochs_are_target_and_background(rng):
    mixing, sources = rng.normal(size=(8, 8)), rng.normal(size=(8, 6000))
    sources[3, 2000:4000] *= 4
    raw = mne.io.RawArray(with_eog(mixing @ sources), info_of())
    model = Contrast(1).fit(raw, window=(20, 40), background_window=[(0, 20), (40, 60)])
    assert same_up_to_scale(model.patterns_, mixing[:, [3]].T)[0, 0] > 0.99
    assert model.ratio_[0] == pytest.approx(16.0, rel=0.3)
    bad = raw.copy().set_annotations(mne.Annotations([20.0], [20.0], ["BAD"]))
    with pytest.raises(ValueError, match=r"the target has shape \(1, 8, 0\).* bad spans are left out"):
        model.fit(bad, window=(20, 40), background_window=(0, 20))
    cut = mne.make_fixed_length_epochs(raw.copy().crop(18, 30), duration=4.0, preload=True)
    inside = Contrast(1, cv=None).fit(cut, window=(2.0, 3.9), background_window=(0.0, 1.9))
    # Only the first epoch of three is quiet at its start.
    assert inside.evals_[0] > 1.0


@pytest.mark.parametrize("kind", ["raw", "epochs", "evoked", "array"])
def test_components_are_removed_from_a_recording_of_the_same_type(epochs, kind):
    signals, y = epochs
    objects = mne_epochs(signals, y)
    model = Contrast(3, target_label="left", output="sources").fit(objects)
    long = np.concatenate(list(with_eog(signals)), axis=1)
    inst = {
        "raw": lambda: mne.io.RawArray(long, objects.info),
        "epochs": lambda: objects,
        "evoked": lambda: objects.average(picks="all"),
        "array": lambda: signals,
    }[kind]()
    before = inst.copy()
    clean, kept = model.apply(inst, exclude=[0, 2]), model.apply(inst, include=[0, 2])
    assert type(clean) is type(inst)
    own = model.transform(inst)
    np.testing.assert_allclose(model.transform(clean)[:, [0, 2]], 0.0, atol=1e-9 * np.abs(own).max())
    np.testing.assert_allclose(model.transform(clean)[:, 1], own[:, 1], atol=1e-9)
    np.testing.assert_allclose(model.transform(kept)[:, [0, 2]], own[:, [0, 2]], atol=1e-9)
    data, left, right = (one if kind == "array" else one.get_data(picks=NAMES) for one in (inst, clean, kept))
    np.testing.assert_allclose(left + right, data, atol=1e-12)
    if kind == "array":
        np.testing.assert_allclose(model.inverse_transform(model.transform(kept)), kept, atol=1e-9)
        return
    assert clean.info["ch_names"] == inst.info["ch_names"]
    np.testing.assert_array_equal(clean.get_data(picks=["EOG"]), before.get_data(picks=["EOG"]))
    np.testing.assert_array_equal(inst.get_data(), before.get_data())
    turned = inst.copy().reorder_channels(["EOG", *NAMES[::-1]])
    np.testing.assert_allclose(model.apply(turned, exclude=[0, 2]).get_data(picks=NAMES), left, atol=1e-15)


def test_units_of_channel_types_do_not_matter(epochs):
    signals, y = epochs
    found = []
    for units in (np.ones(8), np.r_[np.full(4, 1e-9), np.ones(4)]):
        objects = mne_epochs(signals * units[:, None], y, ("mag",) * 4 + ("eeg",) * 4)
        model = Contrast(2, target_label="left", shrinkage=0.3).fit(objects)
        found.append((model.evals_, np.abs(model.filters_ * units)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-8)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)


def test_held_out_ratios_show_what_is_real_and_background_power_is_one(epochs, rng):
    signals, y = epochs
    model = Contrast(2, target_label="left").fit(signals, y)
    assert model.ratio_[0] == pytest.approx(9.0, rel=0.2)
    power = Contrast(2, target_label="left", output="power", cv=None).fit(signals, y)
    both = np.mean([power.transform(signals[y == name]).mean(axis=0) for name in ("rest", "right")], axis=0)
    np.testing.assert_allclose(both, 1.0)
    noise = rng.normal(size=(24, 20, 40))
    nothing = Contrast(1, target_label=1).fit(noise, np.arange(24) % 2)
    assert nothing.ratio_[0] < nothing.evals_[0]
    chosen = Contrast(2, target_label="left", shrinkage="auto").fit(signals, y)
    assert chosen.shrinkage_ == chosen.path_.value
    assert np.isnan(power.ratio_).all()


def test_a_recording_of_deficient_rank_is_fitted(epochs):
    signals, y = epochs
    referenced = signals - signals.mean(axis=1, keepdims=True)
    model = Contrast(2, target_label="left").fit(referenced, y)
    assert model.ratio_[0] > 4
    assert np.all(np.isfinite(model.filters_))


def test_mne_draws_patterns_and_filters(epochs):
    import matplotlib.pyplot as plt

    objects = mne_epochs(*epochs)
    model = Contrast(2, target_label="left").fit(objects)
    assert len(model.spatial_filter(objects.info).plot_patterns(show=False).axes) >= 2
    assert len(model.spatial_filter(objects.info).plot_filters(show=False).axes) >= 2
    eeg = mne.pick_info(objects.info, range(8))
    found = mne.decoding.get_spatial_filter_from_estimator(model, eeg, patterns_method="pinv")
    np.testing.assert_array_equal(found.patterns, model.patterns_)
    plt.close("all")


# --- errors ---


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s, y: Contrast(1).fit(s[0], background=s[0]), "has shape .* Give real numbers of epochs x channels"),
        (lambda s, y: Contrast(1).fit(s + 1j, background=s), "the target has shape .* type complex128"),
        (lambda s, y: Contrast(1).fit(np.where(s > 9, np.nan, s), background=s), "NaN or infinity in the target"),
        (lambda s, y: Contrast(1).fit(s), "there is no background"),
        (lambda s, y: Contrast(1).fit(s, background=s[:, :7]), "background 1 has 90 epochs of 7 channels"),
        (lambda s, y: Contrast(1).fit(s, background=s[:1]), "background 1 has 1 epochs"),
        (lambda s, y: Contrast(1).fit(s, background_window=(0, 1)), "window=.* needs MNE's Raw or Epochs"),
        (lambda s, y: Contrast(1, target_label="up").fit(s, y), "target_label='up' is not one of several labels"),
        (lambda s, y: Contrast(1, target_label="left").fit(s), "target_label needs y"),
        (lambda s, y: Contrast(1, target_label="left").fit(s, y, background=s), "no background, or more than one kind"),
        (lambda s, y: Contrast(9).fit(s, background=s), "n_components=9 cannot be used"),
        (lambda s, y: Contrast(1, shrinkage=2).fit(s, background=s), "shrinkage=2"),
        (lambda s, y: Contrast(1, output="x").fit(s, background=s), "output='x' is unknown"),
        (lambda s, y: Contrast(1, background_weights=[-1]).fit(s, background=s), "background_weights"),
        (lambda s, y: Contrast(1).fit(s, background=s).transform(s[:, :7]), "have 7 channels, but the fit has 8"),
        (lambda s, y: Contrast(1).fit(s, background=s).apply(s), "from 0 to 0, either as `exclude` or as `include`"),
        (lambda s, y: Contrast(1).fit(s, background=s).apply(s, exclude=[1]), "give components from 0 to 0"),
        (lambda s, y: Contrast(1, target_label="left").fit(mne_epochs(s, y).compute_psd()), "EpochsSpectrum, not Raw"),
    ],
)
def test_errors_name_what_is_wrong(epochs, call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call(*epochs)
