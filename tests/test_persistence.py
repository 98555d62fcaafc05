"""Models in files: everything is restored, nothing else is made, and damaged or forged files have one clear error."""

import contextlib
import json
import os
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import MaxAbsScaler, QuantileTransformer, RobustScaler, StandardScaler
from sklearn.svm import SVC

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    load,
    make_pipeline,
    save,
)
from standout._messages import InvalidValueError
from standout.persistence import TRUSTED

pytest.importorskip("skops", reason="skops is not installed")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, Y, Z = rng.normal(size=(3, 80, 6)) * [4, 1, 2, 1, 1, 1]
    X[:, 4] *= 4
    return X, Y, Z


@pytest.fixture(scope="module")
def model(data):
    return DiscriminativePCA().fit(data[0], background=data[1])


@pytest.fixture
def saved(model, tmp_path):
    save(model, tmp_path / "model.skops")
    return tmp_path / "model.skops"


MODELS = {
    "dpca": lambda: DiscriminativePCA(),
    "few columns": lambda: DiscriminativePCA(1, n_columns=3, center="background", scale="pooled"),
    "smooth": lambda: DiscriminativePCA(smooth="chain", shrinkage=0.1, cv=None),
    "robust": lambda: DiscriminativePCA(robust="rows", random_state=np.random.RandomState(3)),
    "number found": lambda: DiscriminativePCA("auto"),
    "cpca": lambda: ContrastivePCA(background_weights="worst-case"),
    "kdpca": lambda: KernelDiscriminativePCA(kernel="poly", degree=2),
    "several kernels": lambda: KernelDiscriminativePCA(kernel=["rbf", ("poly", {"degree": 2})]),
    "pivoted": lambda: KernelDiscriminativePCA(approximation="pivoted", rank=20, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), PCA(4), DiscriminativePCA()),
    "steps": lambda: make_pipeline(
        RobustScaler(), QuantileTransformer(n_quantiles=20), MaxAbsScaler(), KernelContrastivePCA()
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_has_the_same_scores_parameters_and_ratios(name, data, tmp_path):
    X, Y, Z = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MODELS[name]().fit(X, background=[Y, Z])
    save(fitted, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert type(again) is type(fitted)
    np.testing.assert_array_equal(again.transform(Z), fitted.transform(Z))
    own, other = (getattr(one, "steps", [(0, one)])[-1][1] for one in (fitted, again))
    np.testing.assert_array_equal(own.ratio_, other.ratio_)
    assert repr(own.problem_) == repr(other.problem_)
    kept = [{name: value for name, value in one.get_params().items() if name != "random_state"} for one in (own, other)]
    assert repr(kept[0]) == repr(kept[1])


def test_names_output_sparse_landmarks_and_unfitted_models_are_kept(data, tmp_path):
    frame = pd.DataFrame(data[0], columns=list("abcdef"))
    fitted = DiscriminativePCA().set_output(transform="pandas").fit(frame, background=frame * 0.5 + data[1])
    save(fitted, tmp_path / "a")
    again = load(tmp_path / "a")
    assert again.transform(frame).columns.tolist() == fitted.transform(frame).columns.tolist()
    assert again.feature_names_in_.tolist() == list("abcdef")
    thin = [sparse.csr_array(np.where(np.abs(part) > 1, part, 0)) for part in data[:2]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = KernelDiscriminativePCA(kernel="poly", degree=2).fit(thin[0], background=thin[1])
    save(kernel, tmp_path / "b")
    np.testing.assert_array_equal(load(tmp_path / "b").transform(thin[1]), kernel.transform(thin[1]))
    save(make_pipeline(TruncatedSVD(3), ContrastivePCA(alpha=2.0)), tmp_path / "c")
    assert load(tmp_path / "c")[-1].alpha == 2.0


def test_moments_are_kept_on_request_and_a_loaded_model_goes_on(data, tmp_path):
    X, Y, _ = data
    model = DiscriminativePCA(shrinkage=0.1).partial_fit(X[:40], background=Y[:40])
    save(model, tmp_path / "small")
    save(model, tmp_path / "whole", moments=True)
    assert (tmp_path / "small").stat().st_size < (tmp_path / "whole").stat().st_size
    again = load(tmp_path / "whole").partial_fit(X[40:], background=Y[40:])
    expected = model.partial_fit(X[40:], background=Y[40:])
    np.testing.assert_allclose(again.ratio_, expected.ratio_)
    np.testing.assert_allclose(again.components_, expected.components_)
    without = load(tmp_path / "small")
    assert b"scatter" not in (tmp_path / "small").read_bytes()
    with pytest.raises((ValueError, TypeError), match="sums|moments"):
        without.partial_fit(X, background=Y)


def test_a_file_appears_whole_or_not_at_all(model, saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="cannot be written"):
        save(model, saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model.skops"]


# --- what is refused when saving ---


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StandardScaler(), "a StandardScaler cannot be saved"),
        (lambda: DiscriminativePCA, "a type cannot be saved|ABCMeta|class"),
        (lambda: KernelDiscriminativePCA(kernel=lambda x, y: 0.0), "the model cannot be saved: it has type"),
        (lambda: make_pipeline(SVC(), DiscriminativePCA()), "the model cannot be saved: it has type.*SVC"),
        (lambda: DiscriminativePCA(random_state=np.random.default_rng(0)), "the model cannot be saved"),
    ],
)
def test_models_that_could_be_loaded_only_by_running_code_are_not_saved(make, words, tmp_path):
    try:
        thing = make()
    except TypeError:
        pytest.skip("the pipeline refuses the step already")
    with pytest.raises((ValueError, TypeError), match=words):
        save(thing, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_places_that_are_not_files_are_refused(model, tmp_path):
    with pytest.raises(OSError, match="cannot be written"):
        save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match="cannot be opened: no such file"):
        load(tmp_path / "none.skops")
    with pytest.raises(OSError, match="is a folder"):
        load(tmp_path)
    for path in ("", None, 3):
        with pytest.raises((OSError, TypeError), match="is a folder|str"):
            load(path)


# --- damaged and forged files ---


def rewritten(path, change, *, compress=False):
    """Write an archive again with changed entries."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries = change(entries) or entries
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def forged(path, change):
    """Change the schema of an archive."""

    def changed(entries):
        schema = json.loads(entries["schema.json"])
        change(schema)
        return {**entries, "schema.json": json.dumps(schema)}

    rewritten(path, changed)


def first_node(schema, kind):
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("__loader__") == kind:
                return node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    raise AssertionError(kind)


def as_type(module, name, loader):
    def change(schema):
        kind = {"__class__": name, "__module__": module, "__loader__": loader}
        first_node(schema, "DictNode")["content"]["extra"] = {**kind, "content": {}, "__id__": 77}

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (as_type("os", "system", "FunctionNode"), "type 'os.system', which standout does not trust"),
        (as_type("builtins", "eval", "TypeNode"), "builtins.eval"),
        (as_type("builtins", "dict", "MethodNode"), "builtins.dict"),
        (as_type("functools", "partial", "PartialNode"), "functools.partial"),
        (as_type("sklearn.svm._classes", "SVC", "ObjectNode"), "SVC"),
        (as_type("sklearn.tree._tree", "Tree", "TreeNode"), "Tree"),
        (as_type("standout.cli", "main", "ObjectNode"), "standout.cli.main"),
        (as_type("{0.__class__}", "x", "ObjectNode"), "which standout does not trust"),
    ],
)
def test_types_that_are_not_trusted_are_refused_before_anything_is_made(saved, change, words):
    forged(saved, change)
    with pytest.raises(ValueError, match=words):
        load(saved)


def test_damaged_files_and_other_formats_have_one_error(saved, tmp_path):
    whole, broken = saved.read_bytes(), tmp_path / "broken.skops"
    rng = np.random.default_rng(0)
    contents = [b"", b"PK", b"no archive", whole[: len(whole) // 2], whole[100:]]
    for _ in range(40):
        place = int(rng.integers(len(whole)))
        contents.append(whole[:place] + bytes(rng.integers(0, 256, 8, dtype=np.uint8)) + whole[place + 8 :])
    refused = 0
    for content in contents:
        broken.write_bytes(content)
        with contextlib.suppress(InvalidValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refused += 1
            load(broken)
            # Some changes affect only a number, and the file loads.
            refused -= 1
    assert refused > 30


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: {name: part for name, part in e.items() if name != "standout.json"}, "not written by standout.save"),
        (lambda e: {name: part for name, part in e.items() if name != "schema.json"}, "damaged, or of another format"),
        (lambda e: {name: b"" if name.endswith(".npy") else part for name, part in e.items()}, "cannot be loaded"),
        (lambda e: {**e, "schema.json": b"[" * 100_000}, "cannot be loaded"),
        (lambda e: {**e, "schema.json": b"{}"}, "cannot be loaded"),
    ],
)
def test_forged_entries_are_refused(saved, change, words):
    rewritten(saved, change)
    with pytest.raises(ValueError, match=words):
        load(saved)


def test_files_that_need_far_more_memory_or_time_than_their_size_are_refused(saved, monkeypatch):
    rewritten(saved, lambda entries: None, compress=True)
    with pytest.raises(ValueError, match="it is compressed"):
        load(saved)
    rewritten(saved, lambda entries: None)

    def doubling(schema):
        # Each object refers twice to the one before: 2^60 visits.
        node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [], "__id__": 1}
        every = [node]
        for number in range(2, 60):
            every.append({**node, "content": [{**every[-1], "content": []}] * 2, "__id__": number})
        first_node(schema, "DictNode")["content"]["extra"] = {**node, "content": every, "__id__": 99}

    forged(saved, doubling)
    with pytest.raises(ValueError, match="reading would take very long"):
        load(saved)


def test_a_bomb_of_sparse_arrays_is_refused(model, tmp_path, monkeypatch):
    monkeypatch.setattr("standout.persistence._MOST_UNPACKED", 1000)
    monkeypatch.setattr("standout.persistence._MOST_PACKING", 0)
    with pytest.raises(ValueError, match="far more than its size"):
        save(model, tmp_path / "a")


def test_another_version_warns(saved):
    rewritten(saved, lambda e: {**e, "standout.json": json.dumps({"standout": "9.9", "scikit-learn": "0.1"})})
    with pytest.warns(UserWarning, match="was saved with standout 9.9 and scikit-learn 0.1"):
        assert isinstance(load(saved), DiscriminativePCA)


def test_only_our_types_scalers_decompositions_and_containers_are_trusted():
    packages = {name.split(".")[0] for name in TRUSTED}
    assert packages == {"builtins", "numpy", "scipy", "sklearn", "standout"}
    modules = {".".join(name.split(".")[:2]) for name in TRUSTED if name.startswith("sklearn")}
    assert modules == {"sklearn.decomposition", "sklearn.preprocessing"}
