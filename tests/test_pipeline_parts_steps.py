"""Steps of pipelines over data that are read in parts: how they are kept, and the names and settings they see."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import standout
from pipelines_in_parts import (
    FORMS,
    LAST,
    NAMES,
    STEPS,
    TOLERANCE,
    D,
    assert_same,
    assert_same_model,
    datasets,
    frames,
    pipeline,
    scanned,
    small_blocks,
)
from standout import DiscriminativePCA, make_pipeline, scan
from standout.moments._gather import Part
from standout.sources import Transformed, open_dataset

# Fixtures, which pytest finds by their names.
__all__ = ["datasets", "small_blocks"]

# --- checkpoints ----------------------------------------------------------------------------------------------------


def counting_parts(monkeypatch):
    """Count the parts that are summed up."""
    count = []
    call = Part.__call__
    monkeypatch.setattr(Part, "__call__", lambda self, batch: count.append(batch.n_rows) or call(self, batch))
    return count


def test_sums_are_kept_by_what_the_steps_are(datasets, tmp_path, monkeypatch):
    count = counting_parts(monkeypatch)
    target, background = scanned(datasets[:2], tmp_path, checkpoint=tmp_path / "kept")

    def fitted(*steps):
        del count[:]
        return make_pipeline(*steps, DiscriminativePCA()).fit(target, background=background)

    kept = {
        "bare": fitted(),
        "scaled": fitted(StandardScaler()),
        "centred": fitted(StandardScaler(with_std=False)),
        "between 0 and 1": fitted(MinMaxScaler()),
        "scaled twice": fitted(StandardScaler(), StandardScaler(with_mean=False)),
        "by a function": fitted(FunctionTransformer(np.arctan)),
        "by another": fitted(FunctionTransformer(np.tanh)),
    }
    data = frames(datasets)
    for name, model in kept.items():
        whole = clone(model).fit(data[0], background=data[1])
        assert_same_model(model, whole)
        again = fitted(*(clone(step) for _, step in model.steps[:-1]))
        assert not count, f"{name} was summed up again"
        np.testing.assert_array_equal(again[-1].components_, model[-1].components_)


class StoppedError(Exception):
    pass


def test_an_interrupted_pass_goes_on_after_the_steps(datasets, tmp_path, monkeypatch):
    monkeypatch.setattr("standout.io._checkpoint.INTERVAL", 0.0)
    monkeypatch.setattr("standout.io._checkpoint.WRITING_SHARE", 1e9)
    count = counting_parts(monkeypatch)
    data = scanned(datasets[:2], tmp_path, checkpoint=tmp_path / "kept")
    call = Part.__call__

    def stopping(self, batch):
        # Each batch is summed up by fold.
        if len(count) >= 60:
            raise StoppedError
        return call(self, batch)

    with monkeypatch.context() as patched:
        patched.setattr(Part, "__call__", stopping)
        with pytest.raises(StoppedError):
            make_pipeline(StandardScaler(), DiscriminativePCA()).fit(data[0], background=data[1])
    del count[:]
    model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(data[0], background=data[1])
    n_left = sum(count)
    fresh = scanned(datasets[:2], tmp_path)
    del count[:]
    straight = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(fresh[0], background=fresh[1])
    assert n_left < sum(count)
    np.testing.assert_array_equal(model[-1].components_, straight[-1].components_)


class OwnStep(TransformerMixin, BaseEstimator):
    """A step whose code may change between two fits."""

    factor = 1.0

    def partial_fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) * self.factor


def own_function(rows):
    return rows


@pytest.mark.parametrize("step", [OwnStep(), FunctionTransformer(own_function), FunctionTransformer(lambda rows: rows)])
def test_code_of_ones_own_is_not_kept_under_its_name(datasets, tmp_path, step):
    data = scanned(datasets[:2], tmp_path, checkpoint=tmp_path / "kept")
    with pytest.warns(UserWarning, match="this pass cannot be kept in a checkpoint: .* steps of scikit-learn without"):
        make_pipeline(step, DiscriminativePCA()).fit(data[0], background=data[1])
    assert not list((tmp_path / "kept").glob("*.checkpoint"))


# --- names, and what becomes of the steps ---------------------------------------------------------------------------


def test_names_of_columns_are_those_of_frames_in_memory(datasets, tmp_path):
    data, rows = scanned(datasets, tmp_path), frames(datasets)
    steps = STEPS["as frames"]
    model = pipeline(steps, LAST["dPCA"]).fit(data[0], background=data[1])
    whole = pipeline(steps, LAST["dPCA"]).fit(rows[0], background=rows[1])
    assert list(model.feature_names_in_) == list(whole.feature_names_in_) == NAMES
    assert model.n_features_in_ == whole.n_features_in_
    for found, expected in zip(model, whole, strict=True):
        assert getattr(found, "feature_names_in_", np.array([])).tolist() == list(
            getattr(expected, "feature_names_in_", [])
        )
    for end in (-1, None):
        assert list(model[:end].get_feature_names_out()) == list(whole[:end].get_feature_names_out())
    # Rows at hand and in parts may take turns; a warning of scikit-learn would be an error here.
    assert_same(model.transform(rows[1]), whole.transform(data[1]))
    model[-1].set_output(transform="pandas")
    assert list(model.transform(data[1]).columns) == ["discriminativepca0", "discriminativepca1"]


@pytest.mark.parametrize("form", ["scan", "Dask frame"])
def test_a_setting_of_scikit_learn_reaches_whoever_works_on_a_part(datasets, tmp_path, form):
    apart, together = FORMS[form]
    data, rows = apart(datasets, tmp_path), together(datasets)
    with sklearn.config_context(transform_output="pandas"):
        # In a thread without the setting, the second step would miss the names, and warn, which is an error here.
        model = make_pipeline(StandardScaler(), MinMaxScaler(), DiscriminativePCA()).fit(data[0], background=data[1])
        whole = make_pipeline(StandardScaler(), MinMaxScaler(), DiscriminativePCA()).fit(rows[0], background=rows[1])
    assert list(model[-1].feature_names_in_) == list(whole[-1].feature_names_in_) == NAMES
    assert_same_model(model, whole)


def test_names_of_sparse_columns_are_kept(datasets, tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    for name, rows, names in (
        ("target", datasets[0], NAMES),
        ("control", datasets[1], NAMES),
        ("reversed", datasets[1], NAMES[::-1]),
    ):
        cells = anndata.AnnData(sparse.csr_matrix(rows))
        cells.var_names = names
        cells.write_h5ad(tmp_path / f"{name}.h5ad")
    target, control, other = (scan(tmp_path / f"{name}.h5ad") for name in ("target", "control", "reversed"))
    model = make_pipeline(MaxAbsScaler(), DiscriminativePCA())
    with pytest.raises(ValueError, match="background 1 has the columns of the target in another order"):
        model.fit(target, background=other)
    model.fit(target, background=control)
    assert list(model.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="the data has the columns of the fitted target in another order"):
        model.transform(other)
    pytest.importorskip("skops", reason="skops is not installed")
    standout.save(model, tmp_path / "model.skops")
    loaded = standout.load(tmp_path / "model.skops")
    assert list(loaded.feature_names_in_) == NAMES
    np.testing.assert_array_equal(loaded.transform(control), model.transform(control))
    # A fit on rows at hand leaves nothing of the names.
    assert not hasattr(model.fit(datasets[0], background=datasets[1]), "feature_names_in_")


def import_nothing(name):
    raise ImportError(name)


def test_without_pandas_columns_are_known_all_the_same(datasets, tmp_path, monkeypatch):
    data = scanned(datasets, tmp_path)
    whole = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(datasets[0], background=datasets[1])
    monkeypatch.setattr("standout.sources._steps.import_module", import_nothing)
    model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(data[0], background=data[1])
    assert_same_model(model, whole)
    assert list(model.feature_names_in_) == NAMES
    assert_same(model.transform(data[1]), whole.transform(datasets[1]))


def test_a_second_fit_has_forgotten_the_first(datasets, tmp_path):
    data, rows = scanned(datasets, tmp_path), frames(datasets)
    scaler = StandardScaler()
    model = make_pipeline(scaler, DiscriminativePCA()).fit(data[1], background=data[2]).fit(data[0], background=data[2])
    whole = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(rows[0], background=rows[2])
    assert model[0].n_samples_seen_ == len(rows[0])
    assert_same_model(model, whole)
    assert not hasattr(scaler, "mean_")  # a copy was fitted, as scikit-learn does with `memory`
    with_memory = make_pipeline(StandardScaler(), DiscriminativePCA(), memory=str(tmp_path / "memory"))
    assert_same_model(with_memory.fit(data[0], background=data[2]), whole)


def test_steps_that_are_fitted_already_are_taken_as_they_are(datasets, tmp_path):
    data, rows = scanned(datasets, tmp_path), frames(datasets)
    sample = data[0].sample(200, np.random.default_rng(0))
    by_name = ColumnTransformer([("some", RobustScaler(), NAMES[:4])]).fit(rows[0])
    for step in (QuantileTransformer(n_quantiles=50).fit(sample), by_name, StandardScaler().fit(rows[1])):
        model = make_pipeline(FrozenEstimator(step), DiscriminativePCA()).fit(data[0], background=data[1])
        made = [step.transform(part if hasattr(step, "feature_names_in_") else part.to_numpy()) for part in rows]
        whole = DiscriminativePCA().fit(made[0], background=made[1])
        np.testing.assert_allclose(model[-1].eigenvalues_, whole.eigenvalues_, rtol=TOLERANCE)
        assert_same(model.transform(data[1]), whole.transform(made[1]))
    with pytest.raises(NotFittedError):
        make_pipeline(FrozenEstimator(StandardScaler()), DiscriminativePCA()).fit(data[0], background=data[1])


def test_time_is_printed_for_the_steps_of_data_in_memory(datasets, tmp_path, capsys):
    model = make_pipeline(StandardScaler(), DiscriminativePCA(), verbose=True)
    model.fit(datasets[0], background=datasets[1])
    lines = capsys.readouterr().out.splitlines()
    assert ["standardscaler" in lines[0], "discriminativepca" in lines[1]] == [True, True]
    data = scanned(datasets, tmp_path)
    model.fit(data[0], background=data[1])
    assert not capsys.readouterr().out


def test_a_fitted_model_and_its_source_travel(datasets, tmp_path):
    data = scanned(datasets, tmp_path)
    model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(data[0], background=data[1])
    there = pickle.loads(pickle.dumps(Transformed(data[1], (model[0],))))
    np.testing.assert_array_equal(np.vstack(list(there.parts())), model[0].transform(frames(datasets)[1]))
    assert there.count_rows() == 410


def test_parts_without_rows_do_no_harm(datasets):
    empty = np.zeros((0, D))
    target, background = datasets[:2]
    model = make_pipeline(StandardScaler(), DiscriminativePCA())
    model.fit(target, background=iter([empty, background[:100], empty, background[100:], empty]))
    assert_same_model(model, clone(model).fit(target, background=background))
    transformed = Transformed(open_dataset(iter([empty, background]), "the data"), (model[0],))
    assert [part.shape for part in transformed.parts()] == [(410, D)]
