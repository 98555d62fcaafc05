"""Models that an earlier version saved, with types under modules that have changed since, load and work."""

import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import standout
from saved_models import entries_of, write_entries
from standout import persistence

pytest.importorskip("skops", reason="skops is not installed")

MODELS = Path(__file__).parent / "data" / "models_0.1"
NAMES = sorted(path.stem for path in MODELS.glob("*.skops"))

# The types of standout 0.1 that a file could have.
EARLIER_TYPES = {
    "standout.estimators._contrastive.ContrastivePCA",
    "standout.estimators._coordinates.CoordinateSums",
    "standout.estimators._discriminative.DiscriminativePCA",
    "standout.estimators._kernel_contrastive.KernelContrastivePCA",
    "standout.estimators._kernel_discriminative.KernelDiscriminativePCA",
    "standout.estimators._pipeline.BackgroundPipeline",
    "standout.features._kernels.NamedKernel",
    "standout.features._kernels.PrecomputedKernel",
    "standout.features._kernels.SumKernel",
    "standout.features._maps.FourierMap",
    "standout.features._maps.IdentityMap",
    "standout.features._maps.KernelRowMap",
    "standout.features._maps.LandmarkMap",
    "standout.moments._base.NormSums",
    "standout.moments._root.RootMoments",
    "standout.moments._scatter.ScatterMoments",
    "standout.selection._groups.GroupSearch",
    "standout.selection._verdict.ComponentTest",
}


@pytest.fixture(scope="module")
def scores():
    with np.load(MODELS / "scores.npz") as stored:
        return dict(stored)


def load(path):
    with warnings.catch_warnings():
        # Files of another minor version of standout or scikit-learn are loaded with a warning.
        warnings.simplefilter("ignore", UserWarning)
        return standout.load(path)


def types_in(path):
    found = set()

    def note(node):
        found.add(f"{node.get('__module__')}.{node.get('__class__')}")
        return node

    with zipfile.ZipFile(path) as archive:
        json.loads(archive.read("schema.json"), object_hook=note)
    return {name for name in found if name.startswith("standout.")}


def test_the_stored_files_have_all_types_that_there_were():
    assert set().union(*(types_in(MODELS / f"{name}.skops") for name in NAMES)) == EARLIER_TYPES


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_an_earlier_version_gives_the_same_scores(name, scores):
    model = load(MODELS / f"{name}.skops")
    rows = scores["gram" if name == "precomputed" else "rows"]
    # Another BLAS may round differently.
    np.testing.assert_allclose(model.transform(rows), scores[name], rtol=0, atol=1e-9 * np.abs(scores[name]).max())


@pytest.mark.parametrize("name", ["linear", "roots", "landmarks", "fourier", "sum"])
def test_the_moments_in_a_file_of_an_earlier_version_can_be_added_to(name, scores):
    model, rows = load(MODELS / f"{name}.skops"), scores["rows"]
    model.partial_fit(rows, background=[rows] * model.weights_.shape[0])
    expected = scores[f"{name} continued"]
    np.testing.assert_allclose(model.transform(rows), expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_an_earlier_version_is_saved_again_under_the_names_of_today(name, tmp_path):
    standout.save(load(MODELS / f"{name}.skops"), tmp_path / "model.skops")
    assert types_in(tmp_path / "model.skops") <= set(persistence.TRUSTED_TYPES)


def test_a_type_that_was_never_trusted_is_not_trusted_under_an_earlier_module(tmp_path):
    entries = entries_of(MODELS / "linear.skops")
    forged = entries["schema.json"].replace(b'"ScatterMoments"', b'"gather_scatter"')
    assert forged != entries["schema.json"]
    path = write_entries(tmp_path / "forged.skops", {**entries, "schema.json": forged})
    with pytest.raises(ValueError, match="gather_scatter"):
        load(path)
