"""save and load: the model comes back bit for bit, and what only running code could bring back is refused."""

import inspect
import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import standout
from saved_models import BACKGROUND, CASES, FITTED, MATRIX, NAMED, SECOND, SPARSE, TARGET, assert_same, fit
from standout import DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA, make_pipeline, persistence
from standout.features import FeatureMap, Kernel


def there_and_back(model, folder):
    # Everything there is: what has no moments is refused if these are asked for.
    standout.save(model, folder / "model.skops", moments=not persistence._keeps_nothing(model))
    return standout.load(folder / "model.skops")


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


@pytest.mark.parametrize("case", ["linear, robust", "contrastive, robust"])
def test_outlying_rows_come_back_without_moments_too(case, tmp_path):
    model = CASES[case]()
    standout.save(model, tmp_path / "model.skops")
    loaded = standout.load(tmp_path / "model.skops")
    assert_same(model.outlying_rows_, loaded.outlying_rows_)
    assert_same(model.wild_cells_, loaded.wild_cells_)
    assert not hasattr(loaded, "row_weights_")
    with pytest.raises(ValueError, match="does not know what robust has learned .* save it with moments=True"):
        loaded.weigh(rows_for(model))
    np.testing.assert_array_equal(there_and_back(model, tmp_path).weigh(rows_for(model)), model.weigh(rows_for(model)))


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
    # Of a search, its best estimator is saved.
    models = {kind for kind in public if issubclass(kind, BaseEstimator)} - {standout.BackgroundSearchCV}
    assert models == set(persistence.MODELS)


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
        r"cannot be saved: NotImplementedError",
    ),
    "a function in a step": (lambda: make_pipeline(SelectKBest(), DiscriminativePCA()), "the function 'f_classif'"),
    "a step of one's own": (lambda: make_pipeline(OwnEstimator(), DiscriminativePCA()), "of type '.*OwnEstimator'"),
    "memory": (
        lambda: make_pipeline(StandardScaler(), DiscriminativePCA(), memory="cache"),
        "the model cannot be saved: a pipeline keeps results in 'cache', a folder of pickles",
    ),
    "a memory object": (
        lambda: make_pipeline(StandardScaler(), DiscriminativePCA(), memory=joblib.Memory(None)),
        "keeps results in .* Set memory=None before saving",
    ),
    "memory of a step": (
        lambda: make_pipeline(Pipeline([("scale", StandardScaler())], memory="here"), DiscriminativePCA()),
        "results in 'here'",
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
    with pytest.raises(ValueError, match="cannot be saved: it holds itself"):
        standout.save(model, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "thing", [PCA(), DiscriminativePCA, {"model": DiscriminativePCA()}, None, Pipeline([("a", PCA())])]
)
def test_what_is_no_model_is_refused(thing, tmp_path):
    with pytest.raises(TypeError, match="cannot be saved, only objects of DiscriminativePCA, .*, BackgroundPipeline"):
        standout.save(thing, tmp_path / "model.skops")


# --- the package that does it ---------------------------------------------------------------------------------------


def test_without_skops_one_sentence_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(ImportError, match=r"saving a model needs the package 'skops'\. Install .* extra 'models'"):
        standout.save(DiscriminativePCA(), tmp_path / "model.skops")
    with pytest.raises(ImportError, match=r"loading a model needs the package 'skops'\. Install .* extra 'models'"):
        standout.load(tmp_path / "model.skops")


def test_importing_does_not_import_skops():
    script = "import sys, standout; print('skops' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


QUICKLY = """
import sys
import numpy as np
import standout
from sklearn.preprocessing import StandardScaler
from standout.persistence import quick_saving
pipeline = standout.make_pipeline(StandardScaler(), standout.DiscriminativePCA(1))
pipeline.fit(np.eye(4), background=np.diag([3.0, 1.0, 1.0, 1.0]))
with quick_saving():
    standout.save(pipeline, sys.argv[1])
print("sklearn.gaussian_process" in sys.modules, "skops.io" in sys.modules)
again = standout.load(sys.argv[1])
import skops.io._trusted_types
print(any("gaussian_process" in name for name in skops.io._trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES))
print(np.array_equal(again.transform(np.eye(4)), pipeline.transform(np.eye(4))))
"""


def test_quick_saving_loads_what_the_model_needs_and_leaves_skops_as_it_is(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", QUICKLY, str(tmp_path / "model.skops")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "False", "True", "True"], done.stderr


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
