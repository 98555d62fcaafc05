"""Are two conditions of EEG told apart as well as by CSP? How long does an image cube take?

EEG: log power behind four filters, then linear discriminant analysis; 20 splits for each number of training trials.
``standout.mne.Contrast`` has its defaults: two filters for each condition, the datasets exchanged. Run
``python -m benchmarks.fields [flicker] [sample] [dipoles] [cube]``; without words, all parts run.

The two real recordings are in source archives on PyPI, meegkit-0.1.3.tar.gz and eeglabio-0.1.4.tar.gz. The folder with
these archives is STANDOUT_EEG, or the working folder.
"""

from __future__ import annotations

import io
import os
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import mne
import numpy as np
from scipy.io import loadmat
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline, make_union

from standout.images import noise_fractions
from standout.mne import Contrast
from tests.test_mne import simulated_eeg

FOLDER = Path(os.environ.get("STANDOUT_EEG", "."))
N_SPLITS = 20
# Splits of each of several simulated people.
FEW_SPLITS = 5
BOUND = 0.01


def archived(archive: str, member: str) -> bytes:
    """Return a file of a source archive."""
    name = archive.removesuffix(".tar.gz")
    with tarfile.open(FOLDER / archive) as found:
        return found.extractfile(f"{name}/{member}").read()


def flicker():
    """Return trials of a person who looks at one of 40 flickering letters: 8 to 11.8 Hz, or 12 to 15.8 Hz.

    Nine channels at the back of the head, six blocks (Nakanishi et al. 2018). Each trial has 4 s after the cue.
    """
    signals = loadmat(io.BytesIO(archived("meegkit-0.1.3.tar.gz", "tests/data/trcadata.mat")))["eeg"]
    # The order of the 40 letters: 8, 9, ..., 15, 8.2, 9.2, ...
    frequencies = (np.arange(8.0, 16.0) + np.arange(0.0, 1.0, 0.2)[:, None]).ravel()
    trials = np.moveaxis(signals, 3, 0).reshape(-1, *signals.shape[1:3])
    filtered = mne.filter.filter_data(trials, 250.0, 7.0, 17.0, verbose=False)
    return filtered[:, :, 160:1160], np.tile(frequencies >= 12.0, 6).astype(int), (10, 20, 40, 120)


def sample():
    """Return 29 trials of MNE's sample recording: tones and checkerboards, 60 electrodes, 1 to 30 Hz."""
    with tempfile.NamedTemporaryFile(suffix="_raw.fif") as file:
        file.write(archived("eeglabio-0.1.4.tar.gz", "eeglabio/tests/data/test_raw.fif"))
        raw = mne.io.read_raw_fif(file.name, preload=True, verbose=False)
    events = mne.find_events(raw, stim_channel="STI 014", verbose=False)
    events = events[events[:, 2] <= 4]
    raw.pick("eeg").filter(1.0, 30.0, verbose=False)
    trials = mne.Epochs(raw, events, tmin=0.05, tmax=0.45, baseline=None, preload=True, verbose=False)
    # MNE's CSP expects numbers of about one.
    return trials.get_data() * 1e6, (trials.events[:, 2] > 2).astype(int), (12, 20)


def dipoles():
    """Return simulated trials of 16 people: 40 dipoles on a sphere, 32 electrodes, two dipoles change their power."""
    made = [simulated_eeg(seed) for seed in range(16)]
    return [signals for signals, _ in made], made[0][1], (10, 20, 40, 120)


def cube() -> None:
    """Print the CPU seconds of the minimum noise fraction of 400 x 400 pixels and 200 bands."""
    rng = np.random.default_rng(0)
    large = rng.normal(size=(400, 400, 200)).astype(np.float32)
    large += np.cumsum(rng.normal(size=(400, 400)), axis=0)[:, :, None].astype(np.float32)
    for folds in (5, None):
        start = time.process_time()
        noise_fractions(large, cv=folds)
        seconds = time.process_time() - start
        print(f"cube of 400 x 400 x 200, cv={folds}: {seconds:.1f} s ({'met' if seconds < 10 else 'missed'})")


def accuracies(signals, y, n_train: int, n_splits: int) -> dict[str, np.ndarray]:
    """Return the accuracy of each method on each split."""
    ways = {
        "CSP": mne.decoding.CSP(4, log=True),
        "CSP, Ledoit-Wolf": mne.decoding.CSP(4, log=True, reg="ledoit_wolf"),
        "Contrast": make_union(Contrast(2, target_label=0), Contrast(2, target_label=1)),
    }
    found = {name: [] for name in ways}
    splits = StratifiedShuffleSplit(n_splits, train_size=n_train, random_state=0).split(y, y)
    for train, test in splits:
        for name, way in ways.items():
            model = make_pipeline(way, LinearDiscriminantAnalysis()).fit(signals[train], y[train])
            found[name].append(model.score(signals[test], y[test]))
    return {name: np.array(values) for name, values in found.items()}


def main(parts: list[str]) -> None:
    """Print a table of each part."""
    mne.set_log_level("ERROR")
    for part in parts or ["flicker", "sample", "dipoles", "cube"]:
        if part == "cube":
            cube()
            continue
        signals, y, sizes = globals()[part]()
        sets = signals if isinstance(signals, list) else [signals]
        print(f"\n{part}: {len(y)} trials of {sets[0].shape[1]} channels x {sets[0].shape[2]} times")
        for n_train in sizes:
            each = [accuracies(one, y, n_train, N_SPLITS if len(sets) == 1 else FEW_SPLITS) for one in sets]
            found = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
            gain = found["Contrast"] - found["CSP"]
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            means = ", ".join(f"{name} {values.mean():.3f}" for name, values in found.items())
            met = "met" if gain.mean() >= -BOUND else "missed"
            print(f"  {n_train:4d} for training: {means}; gain {gain.mean():+.3f} ± {error:.3f} ({met})", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
