"""save and load: the model comes back bit for bit, files are whole or not there, and nothing in a file is ever run."""

import errno
import inspect
import os
import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, StandardScaler

import standout
from cli_runs import no_file_larger_than
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    datasets,
    make_pipeline,
    persistence,
)
from standout.features import FeatureMap, Kernel

try:
    import resource
except ImportError:  # not on Windows
    resource = None

RNG = np.random.default_rng(0)
TARGET = RNG.normal(size=(60, 4)) * [3, 1, 1, 1] + 1
BACKGROUND = RNG.normal(size=(50, 4))
SECOND = RNG.normal(size=(40, 4)) * [1, 2, 1, 1]
LABELS = np.repeat(["new", "old", "older"], 20)
NAMED = pd.DataFrame(TARGET, columns=["a", "b", "c", "d"])
GROUPS = datasets.make_gaussians_two_backgrounds()
CIRCLES = datasets.make_circles_one_background()
SPARSE = sparse.random(80, 12, density=0.4, random_state=0, format="csr")
MATRIX = np.exp(
    -0.2 * np.sum((np.vstack([TARGET, BACKGROUND])[:, None] - np.vstack([TARGET, BACKGROUND])) ** 2, axis=2)
)


def fit(model, target=TARGET, background=BACKGROUND, y=None):
    return model.fit(target, y, background=background)


# Every class in every state that a fit can leave it in: with each attribute, each kind of coordinates, each kernel.
CASES = {
    "linear": lambda: fit(DiscriminativePCA(3)),
    "linear, without background": lambda: fit(DiscriminativePCA(), background=None),
    "linear, two backgrounds, weights as array": lambda: fit(
        DiscriminativePCA(background_weights=np.array([1, 3])), background=[BACKGROUND, SECOND]
    ),
    "linear, worst case": lambda: fit(
        DiscriminativePCA(background_weights="worst-case", shrinkage=None), background=(BACKGROUND, SECOND)
    ),
    "linear, tested": lambda: fit(DiscriminativePCA("auto", test="analytic")),
    "linear, groups": lambda: fit(DiscriminativePCA(shrinkage="clusters"), GROUPS.target, list(GROUPS.backgrounds)),
    "linear, labels": lambda: fit(DiscriminativePCA(target_label="new"), y=LABELS, background=None),
    "linear, numpy label": lambda: fit(
        DiscriminativePCA(np.int64(1), target_label=np.int64(2)), y=np.arange(60) % 3, background=None
    ),
    "linear, labels in bytes": lambda: fit(
        DiscriminativePCA(target_label=b"new"), y=LABELS.astype("S"), background=None
    ),
    "linear, labels of objects": lambda: fit(
        DiscriminativePCA(target_label="new"), y=np.array([*LABELS], dtype=object), background=None
    ),
    "linear, names": lambda: fit(DiscriminativePCA(), NAMED, NAMED + 1),
    "linear, single precision": lambda: fit(DiscriminativePCA(), TARGET.astype("f"), BACKGROUND.astype("f")),
    "linear, sparse": lambda: fit(DiscriminativePCA(), SPARSE[:50], SPARSE[50:]),
    "linear, columns first": lambda: fit(DiscriminativePCA(), np.asfortranarray(TARGET), np.asfortranarray(BACKGROUND)),
    "linear, wide": lambda: fit(DiscriminativePCA(), TARGET.T, BACKGROUND.T[:, :60].repeat(2, axis=1)[:, :60]),
    "linear, roots": lambda: fit(DiscriminativePCA(solver="root")),
    "linear, batches": lambda: fit(DiscriminativePCA(), iter([NAMED[:30], NAMED[30:]]), iter([NAMED + 1])),
    "linear, random state": lambda: fit(DiscriminativePCA(random_state=np.random.RandomState(5), solver="lobpcg")),
    "contrastive": lambda: fit(ContrastivePCA()),
    "contrastive, list": lambda: fit(ContrastivePCA(alpha=[0.5, 1.0, 5.0], n_representatives=2)),
    "contrastive, labels": lambda: fit(ContrastivePCA(target_label="old", alpha=2.0), y=LABELS, background=None),
    "contrastive, names": lambda: fit(ContrastivePCA(alpha=2), NAMED, NAMED + 1),
    "kernel rows": lambda: fit(KernelDiscriminativePCA(gamma=0.5)),
    "kernel, exact landmarks": lambda: fit(KernelDiscriminativePCA(kernel="homogeneous_polynomial", degree=2)),
    "kernel, columns first": lambda: fit(
        KernelDiscriminativePCA(kernel="poly", degree=2), np.asfortranarray(TARGET), np.asfortranarray(BACKGROUND)
    ),
    "kernel, rank": lambda: fit(KernelDiscriminativePCA(rank=20, approximation="exact")),
    "kernel, pivoted": lambda: fit(KernelDiscriminativePCA(approximation="pivoted", rank=30, tol=1e-3)),
    "kernel, own landmarks": lambda: fit(KernelDiscriminativePCA(approximation=TARGET[:9], kernel="laplacian")),
    "kernel, own landmarks by columns": lambda: fit(KernelDiscriminativePCA(approximation=np.asfortranarray(SECOND))),
    "kernel, fourier": lambda: fit(KernelDiscriminativePCA(approximation="fourier", rank=40, random_state=1)),
    "kernel, fourier of batches": lambda: fit(
        KernelDiscriminativePCA(approximation="fourier", rank=40), iter([TARGET]), iter([BACKGROUND])
    ),
    "kernel, linear": lambda: fit(KernelDiscriminativePCA(kernel="linear")),
    "kernel, precomputed": lambda: fit(KernelDiscriminativePCA(kernel="precomputed"), MATRIX[:60], MATRIX[60:]),
    "kernel, precomputed with labels": lambda: fit(
        KernelDiscriminativePCA(kernel="precomputed", target_label=True), MATRIX, None, np.arange(110) % 2 == 0
    ),
    "kernel, sum": lambda: fit(
        KernelDiscriminativePCA(kernel=["rbf", ("gaussian", {"bandwidth": 2.0}), "linear"], kernel_weights=[1, 0.5, 0])
    ),
    "kernel, sum learned": lambda: fit(KernelDiscriminativePCA(kernel=["rbf", "linear"], kernel_weights="learn")),
    "kernel, parameters": lambda: fit(KernelDiscriminativePCA(kernel="gaussian", kernel_params={"bandwidth": 3.0})),
    "kernel, cosine of sparse rows": lambda: fit(KernelDiscriminativePCA(kernel="cosine"), SPARSE[:50], SPARSE[50:]),
    "kernel, sparse landmarks": lambda: fit(
        KernelDiscriminativePCA(approximation=SPARSE[:10], kernel="rbf"), SPARSE[:50], SPARSE[50:]
    ),
    "kernel, landmarks in a sparse array": lambda: fit(
        KernelDiscriminativePCA(approximation=sparse.csc_array(SPARSE[:10])),
        sparse.csr_array(SPARSE[:50]),
        sparse.csr_array(SPARSE[50:]),
    ),
    "kernel, groups": lambda: fit(
        KernelDiscriminativePCA(kernel="homogeneous_polynomial", degree=2, epsilon="clusters"),
        CIRCLES.target,
        CIRCLES.backgrounds,
    ),
    "kernel, labels": lambda: fit(KernelDiscriminativePCA(target_label="new"), y=LABELS, background=None),
    "kernel, names": lambda: fit(KernelDiscriminativePCA(epsilon="scaled"), NAMED, NAMED + 1),
    "kernel contrastive": lambda: fit(KernelContrastivePCA()),
    "kernel contrastive, pivoted": lambda: fit(KernelContrastivePCA(alpha=1.0, approximation="pivoted", rank=20)),
    "kernel contrastive, labels": lambda: fit(KernelContrastivePCA(target_label="old"), y=LABELS, background=None),
    "kernel contrastive, names": lambda: fit(KernelContrastivePCA(alpha=1.0), NAMED, NAMED + 1),
    "pipeline": lambda: fit(make_pipeline(StandardScaler(), DiscriminativePCA())),
    "pipeline, names": lambda: fit(make_pipeline(StandardScaler(), DiscriminativePCA()), NAMED, NAMED + 1),
    "pipeline, many steps": lambda: fit(
        make_pipeline(
            SimpleImputer(),
            VarianceThreshold(),
            FunctionTransformer(np.arcsinh),
            ColumnTransformer([("all", StandardScaler(), slice(0, 4))]),
            QuantileTransformer(n_quantiles=20),
            PCA(3),
            KernelDiscriminativePCA(),
        )
    ),
    "pipeline in a pipeline": lambda: fit(
        make_pipeline(Pipeline([("scale", StandardScaler())]), make_pipeline(KernelContrastivePCA()))
    ),
    "unfitted linear": lambda: DiscriminativePCA(3, background_weights=[1, 2], shrinkage=0.1, random_state=4),
    "unfitted contrastive": lambda: ContrastivePCA(alpha=np.array([1.0, 2.0])),
    "unfitted kernel": lambda: KernelDiscriminativePCA(kernel=[("rbf", {"gamma": 0.1}), "linear"], tol=1e-3),
    "unfitted kernel contrastive": lambda: KernelContrastivePCA(approximation=sparse.coo_matrix(SPARSE[:5])),
    "unfitted pipeline": lambda: make_pipeline(StandardScaler(), DiscriminativePCA("auto", verbose=True)),
}
FITTED = [name for name in CASES if not name.startswith("unfitted")]


def there_and_back(model, folder):
    # Everything there is: what has no moments is refused if these are asked for.
    standout.save(model, folder / "model.skops", moments=not persistence._keeps_nothing(model))
    return standout.load(folder / "model.skops")


def assert_same(first, second, where="model"):
    """Two objects are of the same types all the way down, with the same numbers, bit for bit."""
    assert type(first) is type(second), where
    if isinstance(first, np.ndarray | np.generic):
        assert (first.dtype, first.shape) == (second.dtype, second.shape), where
        if first.dtype == object:
            assert_same(first.tolist(), second.tolist(), where)
        else:
            assert first.tobytes() == second.tobytes(), where
            # Products of arrays in another order of memory can differ in the last bit.
            assert np.isfortran(first) == np.isfortran(second), where
    elif sparse.issparse(first):
        for part in {"coo": ("row", "col", "data")}.get(first.format, ("indptr", "indices", "data")):
            assert_same(getattr(first, part), getattr(second, part), f"{where}.{part}")
        assert first.shape == second.shape, where
    elif isinstance(first, np.random.RandomState):
        assert_same(first.get_state(legacy=False), second.get_state(legacy=False), where)
    elif isinstance(first, dict):
        assert list(first) == list(second), where
        for key in first:
            assert_same(first[key], second[key], f"{where}[{key!r}]")
    elif isinstance(first, list | tuple):
        assert len(first) == len(second), where
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            assert_same(one, other, f"{where}[{number}]")
    elif isinstance(first, np.ufunc | type):
        assert first is second, where
    elif hasattr(first, "__dict__"):
        assert_same(vars(first), vars(second), where)
    else:
        assert repr(first) == repr(second), where


def rows_for(model):
    """Rows that were not fitted, in the form that the model takes."""
    if hasattr(model, "feature_names_in_"):
        return NAMED.iloc[::-1] * 1.5
    if getattr(model, "kernel", None) == "precomputed":
        return MATRIX[::-1] * 0.9
    rng = np.random.default_rng(1)
    return rng.normal(size=(33, model.n_features_in_))


# --- what comes back ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_everything_a_model_holds_comes_back_bit_for_bit(case, tmp_path):
    model = CASES[case]()
    loaded = there_and_back(model, tmp_path)
    assert loaded is not model
    assert_same(model, loaded)
    assert_same(model.get_params(), loaded.get_params())
    assert str(model).split("RandomState")[0] == str(loaded).split("RandomState")[0]


@pytest.mark.parametrize("case", FITTED)
def test_scores_are_equal_bit_for_bit(case, tmp_path):
    model = CASES[case]()
    loaded = there_and_back(model, tmp_path)
    rows = rows_for(model)
    np.testing.assert_array_equal(loaded.transform(rows), model.transform(rows))
    if case != "pipeline, many steps":  # scikit-learn's FunctionTransformer has no names to give
        assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    if hasattr(model, "inverse_transform"):
        scores = model.transform(rows)
        np.testing.assert_array_equal(loaded.inverse_transform(scores), model.inverse_transform(scores))


@pytest.mark.parametrize("form", [np.float32, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("case", ["linear", "kernel rows", "kernel, pivoted", "kernel, fourier", "kernel, linear"])
def test_scores_are_equal_for_every_form_of_rows(case, form, tmp_path):
    model = CASES[case]()
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.transform(form(SECOND)), model.transform(form(SECOND)))


def test_what_was_not_fitted_is_not_fitted_and_can_be(tmp_path):
    loaded = there_and_back(make_pipeline(StandardScaler(), DiscriminativePCA()), tmp_path)
    with pytest.raises(NotFittedError):
        loaded.transform(TARGET)
    fitted = fit(make_pipeline(StandardScaler(), DiscriminativePCA()))
    np.testing.assert_array_equal(fit(loaded).transform(TARGET), fitted.transform(TARGET))


def test_a_loaded_model_can_be_scored_and_fitted_again(tmp_path):
    model = CASES["pipeline"]()
    loaded = there_and_back(model, tmp_path)
    assert loaded.score(TARGET, background=SECOND) == model.score(TARGET, background=SECOND)
    np.testing.assert_array_equal(fit(loaded).transform(TARGET), fit(model).transform(TARGET))


def test_names_and_output_come_back(tmp_path):
    model = CASES["linear, names"]().set_output(transform="pandas")
    scores = there_and_back(model, tmp_path).transform(NAMED)
    pd.testing.assert_frame_equal(scores, model.transform(NAMED))
    with pytest.raises(ValueError, match="feature names"):
        there_and_back(model, tmp_path).transform(NAMED.rename(columns={"a": "z"}))
    model.set_output(transform="polars")
    assert isinstance(there_and_back(model, tmp_path).transform(NAMED), pl.DataFrame)


def test_the_output_of_every_step_of_a_pipeline_comes_back(tmp_path):
    model = fit(make_pipeline(StandardScaler(), DiscriminativePCA()).set_output(transform="pandas"), NAMED, NAMED + 1)
    loaded = there_and_back(model, tmp_path)
    pd.testing.assert_frame_equal(loaded.transform(NAMED), model.transform(NAMED))
    assert isinstance(loaded[0].transform(NAMED), pd.DataFrame)


def test_a_random_state_goes_on_where_it_was(tmp_path):
    model = DiscriminativePCA(random_state=np.random.RandomState(3))
    model.random_state.normal(size=5)
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.random_state.normal(size=9), model.random_state.normal(size=9))


def test_infinity_nan_and_empty_arrays_come_back(tmp_path):
    singular = np.c_[BACKGROUND[:, :3], np.zeros(50)]
    with pytest.warns(UserWarning, match="singular"):
        model = fit(DiscriminativePCA(1, shrinkage=None), background=singular)
    assert np.isinf(model.eigenvalues_[0])
    assert_same(model, there_and_back(model, tmp_path))
    alone = fit(KernelDiscriminativePCA(approximation="fourier", rank=10), background=None)
    assert np.isnan(alone.residual_)
    assert alone.weights_.shape == (0,)
    assert_same(alone, there_and_back(alone, tmp_path))


def test_saving_does_not_touch_the_model(tmp_path):
    model = CASES["pipeline"]()
    before = pickle.dumps(model)
    standout.save(model, tmp_path / "model.skops")
    assert pickle.dumps(model) == before


# --- the list of trusted types --------------------------------------------------------------------------------------


def kinds_in(thing):
    return {f"{type(part).__module__}.{type(part).__qualname__}" for part in persistence._holdings(thing)}


@pytest.fixture(scope="module")
def models():
    return {name: case() for name, case in CASES.items()}


def test_every_type_of_ours_that_a_model_holds_is_trusted_and_no_other(models):
    ours = {kind for model in models.values() for kind in kinds_in(model) if kind.startswith("standout.")}
    trusted = {name for name in persistence.TRUSTED_TYPES if name.startswith("standout.")}
    assert ours == trusted


def subclasses(base):
    for kind in base.__subclasses__():
        yield from [kind, *subclasses(kind)]


@pytest.mark.parametrize("base", [FeatureMap, Kernel])
def test_every_map_and_kernel_is_trusted(base):
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in subclasses(base) if "standout" in kind.__module__}
    assert names <= set(persistence.TRUSTED_TYPES)


def test_every_public_estimator_can_be_saved():
    public = [getattr(standout, name) for name in standout.__all__ if inspect.isclass(getattr(standout, name))]
    assert {kind for kind in public if issubclass(kind, BaseEstimator)} == set(persistence.MODELS)


@pytest.mark.parametrize("name", persistence.TRUSTED_TYPES)
def test_every_trusted_type_is_a_type(name):
    module, _, kind = name.rpartition(".")
    assert isinstance(getattr(import_module(module), kind), type)


def test_every_documented_attribute_is_in_a_model_that_was_saved_and_loaded(models):
    for kind in persistence.MODELS[:-1]:
        text = inspect.getdoc(kind).split("Attributes\n")[1].split("See Also")[0]
        documented = {
            name for line in re.findall(r"^(\w+_(?:, \w+_)*) :", text, re.MULTILINE) for name in line.split(", ")
        }
        held = {name for model in models.values() if type(model) is kind for name in vars(model)}
        assert len(documented) > 10
        assert documented <= held, kind


@dataclass
class New:
    number: int


def test_a_new_type_in_a_model_is_refused_when_it_is_saved(tmp_path):
    model = CASES["linear"]()
    model.new_ = New(3)
    with pytest.raises(
        ValueError, match=r"holds objects of type '.*test_persistence\.New', which standout.load does not"
    ):
        standout.save(model, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


# --- what cannot be saved -------------------------------------------------------------------------------------------


def own_kernel(x, z):
    return float(x @ z)


class OwnEstimator(DiscriminativePCA):
    pass


REFUSED = {
    "a kernel of one's own": (
        lambda: KernelDiscriminativePCA(kernel=own_kernel),
        "the function 'own_kernel', and a file could bring that back only by running code",
    ),
    "a lambda": (lambda: KernelContrastivePCA(kernel=lambda x, z: x @ z), "the function '.*<lambda>'"),
    "a kernel in a list": (lambda: KernelDiscriminativePCA(kernel=["rbf", own_kernel]), "or kernel='precomputed'"),
    "a kernel with parameters": (lambda: KernelDiscriminativePCA(kernel=(own_kernel, {})), "function 'own_kernel'"),
    "a fitted kernel of one's own": (lambda: fit(KernelDiscriminativePCA(kernel=own_kernel)), "function 'own_kernel'"),
    "a partial function": (lambda: KernelDiscriminativePCA(kernel=partial(own_kernel)), "holds the function"),
    "a method": (lambda: KernelDiscriminativePCA(kernel=New(1).__eq__), "holds the function"),
    "a built-in function": (lambda: KernelDiscriminativePCA(kernel=max), "the function 'max'"),
    "a kernel object": (lambda: KernelDiscriminativePCA(kernel=RBF()), "of type 'sklearn.gaussian_process.*RBF'"),
    "a class of one's own": (lambda: OwnEstimator(), "of type '.*OwnEstimator'"),
    "a frame of landmarks": (lambda: KernelDiscriminativePCA(approximation=NAMED), "strings, lists or NumPy arrays"),
    "landmarks of no format for files": (
        lambda: KernelDiscriminativePCA(approximation=SPARSE.tolil()),
        r"cannot be saved \(NotImplementedError",
    ),
    "a function in a step": (lambda: make_pipeline(SelectKBest(), DiscriminativePCA()), "the function 'f_classif'"),
    "a step of one's own": (lambda: make_pipeline(OwnEstimator(), DiscriminativePCA()), "of type '.*OwnEstimator'"),
    "memory": (
        lambda: make_pipeline(StandardScaler(), DiscriminativePCA(), memory="cache"),
        "the model cannot be saved: a pipeline keeps results in memory='cache', a folder of pickles",
    ),
    "a memory object": (
        lambda: make_pipeline(StandardScaler(), DiscriminativePCA(), memory=joblib.Memory(None)),
        "keeps results in memory=.* Set memory=None before saving",
    ),
    "memory of a step": (
        lambda: make_pipeline(Pipeline([("scale", StandardScaler())], memory="here"), DiscriminativePCA()),
        "memory='here'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_only_running_code_could_bring_back_is_refused_with_a_remedy(case, tmp_path):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message) as told:
        standout.save(make(), tmp_path / "model.skops")
    assert re.search(r"\. (Use|Give|Set|Make) ", str(told.value))
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_holds_itself_is_refused(tmp_path):
    model = DiscriminativePCA()
    model.itself_ = model
    with pytest.raises(
        ValueError, match="cannot be saved .it holds itself, as an estimator does after set_fit_request"
    ):
        standout.save(model, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "thing", [PCA(), DiscriminativePCA, {"model": DiscriminativePCA()}, None, Pipeline([("a", PCA())])]
)
def test_what_is_no_model_is_refused(thing, tmp_path):
    with pytest.raises(TypeError, match="cannot be saved, only objects of DiscriminativePCA, .* or BackgroundPipeline"):
        standout.save(thing, tmp_path / "model.skops")


# --- whole or not there ---------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path):
    """A file that a failing save must leave as it is, alone in its folder."""
    path = tmp_path / "model.skops"
    path.write_bytes(b"what was there before")
    return path


def assert_kept(path):
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == b"what was there before"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_disk_leaves_what_was_there(step, kept, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(
        OSError, match=r"could not be written to .*model.skops .No space left on device.* Free some space"
    ):
        standout.save(DiscriminativePCA(), kept)
    assert_kept(kept)


@pytest.mark.skipif(resource is None, reason="limits of file sizes are those of POSIX")
def test_a_full_disk_leaves_what_was_there(kept):
    model = CASES["kernel rows"]()
    with no_file_larger_than(5_000), pytest.raises(OSError, match="could not be written to .*model.skops"):
        standout.save(model, kept)
    assert_kept(kept)


def test_an_interruption_leaves_what_was_there(kept, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        standout.save(DiscriminativePCA(), kept)
    assert_kept(kept)


def refuse_to_open(folder, monkeypatch):
    """Let no file of a folder be opened; packages that are loaded meanwhile read files of their own."""
    opened = Path.open

    def guarded(path, *arguments, **options):
        if path.is_relative_to(folder):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", guarded)


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path, monkeypatch):
    # The superuser, as whom tests may run, may write to any folder.
    refuse_to_open(tmp_path, monkeypatch)
    with pytest.raises(
        OSError, match=r"could not be written to .* .Permission denied.* in a folder that can be written to"
    ):
        standout.save(DiscriminativePCA(), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_place_of_a_file_is_told(tmp_path):
    for act in (partial(standout.save, DiscriminativePCA()), standout.load):
        with pytest.raises(IsADirectoryError, match=r"is a folder, not a file\. Give"):
            act(tmp_path)


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*absent\. Create it"):
        standout.save(DiscriminativePCA(), tmp_path / "absent" / "model.skops")
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match="there is no folder .*file"):
        standout.save(DiscriminativePCA(), tmp_path / "file" / "model.skops")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are those of POSIX")
def test_what_is_no_file_is_neither_replaced_nor_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="neither a file nor a free name"):
        standout.save(DiscriminativePCA(), tmp_path / "pipe")
    with pytest.raises(FileNotFoundError, match="there is no file .*pipe"):
        standout.load(tmp_path / "pipe")


def test_a_name_that_is_too_long_is_told(tmp_path):
    with pytest.raises(OSError, match="could not be written"):
        standout.save(DiscriminativePCA(), tmp_path / ("m" * 300))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        standout.load(tmp_path / ("m" * 300))


@pytest.mark.parametrize("path", ["", None, 3, b"model.skops"])
def test_what_is_no_path_is_told(path):
    for act in (partial(standout.save, DiscriminativePCA()), standout.load):
        with pytest.raises(TypeError, match=r"is not the name of a file\. Give a path"):
            act(path)


def test_a_path_may_be_a_string_or_relative_and_a_file_is_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    standout.save(DiscriminativePCA(1), "model")
    standout.save(DiscriminativePCA(7), "model")
    assert standout.load("model").n_components == 7
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(os.name == "nt", reason="links and modes are those of POSIX")
def test_a_link_stays_a_link_and_the_file_has_the_usual_mode(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    standout.save(DiscriminativePCA(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "usual").touch()
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_file_that_cannot_be_read_is_told(kept, monkeypatch):
    refuse_to_open(kept.parent, monkeypatch)
    with pytest.raises(OSError, match=r"could not be read .Permission denied.\. Check its permissions"):
        standout.load(kept)


# --- the package that does it ---------------------------------------------------------------------------------------


def test_without_skops_one_sentence_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(
        ImportError, match=r"saving a model needs the package 'skops'\. Install .* 'standout\[models\]'"
    ):
        standout.save(DiscriminativePCA(), tmp_path / "model.skops")
    with pytest.raises(
        ImportError, match=r"loading a model needs the package 'skops'\. Install .* 'standout\[models\]'"
    ):
        standout.load(tmp_path / "model.skops")


def test_importing_does_not_import_skops():
    script = "import sys, standout; print('skops' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


WITHOUT_OTHERS = """
import sys
import numpy as np
import standout
model = standout.DiscriminativePCA(1).fit(np.eye(4), background=np.diag([3.0, 1.0, 1.0, 1.0]))
standout.save(model, sys.argv[1])
print(sorted({"torch", "dask"} & set(sys.modules)))
import sklearn.externals.array_api_compat.torch
"""


def test_saving_loads_no_other_library(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_OTHERS, str(tmp_path / "model.skops")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # The last line of the script can import what was passed over.
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
