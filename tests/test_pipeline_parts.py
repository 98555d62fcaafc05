"""Pipelines over data that are read in parts: the answers of the same rows in memory, and never more than parts."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from pyarrow import parquet
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import standout
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
    scan,
)
from standout.moments._gather import Part
from standout.sources import DaskBlocks, Stream, Transformed, open_dataset

D = 6
NAMES = [f"column {number}" for number in range(D)]
UNITS = np.array([1.0, 1000.0, 0.01, 1.0, 10.0, 0.1])

# Sums in another order differ by rounding: 1e-10 is what a user may count on, and some hundred times what is seen.
TOLERANCE = 1e-10


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let every batch be a part of its own."""
    monkeypatch.setattr("standout.sources._stream.BLOCK_BYTES", 8 * D * 10)


@pytest.fixture
def datasets(rng):
    mixture = rng.normal(size=(3, D))
    rows = [(rng.normal(size=(n, 3)) @ mixture * 2 + rng.normal(size=(n, D)) + 2.0) * UNITS for n in (530, 410, 290)]
    rows[0][:, 2] += np.repeat([-0.04, 0.04], 265)
    return rows


def frames(datasets):
    return [pd.DataFrame(rows, columns=NAMES) for rows in datasets]


def scanned(datasets, folder, n_files=3, **options):
    """Write each dataset as some Parquet files, and scan them in batches of 60 rows."""
    scans = []
    for number, rows in enumerate(datasets):
        place = folder / f"dataset-{number}"
        place.mkdir(exist_ok=True)
        for part, some in enumerate(np.array_split(rows, n_files)):
            parquet.write_table(pa.table(list(some.T), names=NAMES), place / f"{part}.parquet", row_group_size=37)
        scans.append(scan(place, batch_rows=60, **options))
    return scans


def in_dask(datasets):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    return [da.from_array(rows, chunks=(90, 4)) for rows in datasets]


def dask_frames(datasets):
    dd = pytest.importorskip("dask.dataframe", reason="Dask's frames are not installed")
    return [dd.from_pandas(frame, npartitions=4) for frame in frames(datasets)]


def batches(rows, size=60):
    return (rows[start : start + size] for start in range(0, len(rows), size))


class InParts(Stream):
    """Rows of which at most one part is handed out at a time, and counted."""

    def __init__(self, rows, size=50):
        self.rows, self.size, self.n_rows, self.width, self.largest, self.passes = rows, size, *rows.shape, 0, 0

    def parts(self):
        self.passes += 1
        for start in range(0, self.rows.shape[0], self.size):
            part = self.rows[start : start + self.size]
            self.largest = max(self.largest, part.shape[0])
            yield part


FORMS = {
    "scan": (scanned, frames),
    "Dask array": (lambda datasets, _: in_dask(datasets), list),
    "Dask frame": (lambda datasets, _: dask_frames(datasets), frames),
    "a stream of one's own": (lambda datasets, _: list(map(InParts, datasets)), list),
}

STEPS = {
    "scaled": [StandardScaler()],
    "scaled, in place": [StandardScaler(copy=False), MinMaxScaler(copy=False)],
    "nothing to learn": [FunctionTransformer(np.arctan), Normalizer(), Binarizer(threshold=-0.1)],
    "several": [MinMaxScaler(), "passthrough", FunctionTransformer(np.tanh), StandardScaler()],
    "passthrough": ["passthrough", None],
    "as frames": [StandardScaler().set_output(transform="pandas"), MaxAbsScaler(), StandardScaler()],
}

LAST = {
    "dPCA": DiscriminativePCA(),
    "dPCA, groups": DiscriminativePCA(shrinkage="clusters"),
    "cPCA": ContrastivePCA(),
    "KdPCA, landmarks": KernelDiscriminativePCA(gamma=0.1, approximation=np.random.default_rng(5).normal(size=(25, D))),
    "KdPCA, Fourier": KernelDiscriminativePCA(gamma=0.1, approximation="fourier", rank=40),
    "KdPCA, exact": KernelDiscriminativePCA(gamma=0.1),
    "KdPCA, pivoted": KernelDiscriminativePCA(gamma=0.1, approximation="pivoted", rank=30),
    "KcPCA": KernelContrastivePCA(gamma=0.1, alpha=1.5, approximation="fourier", rank=40),
}


def pipeline(steps, last):
    return make_pipeline(*(clone(step) if isinstance(step, BaseEstimator) else step for step in steps), clone(last))


def assert_same(found, expected):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * scale)


def assert_same_model(model, whole):
    np.testing.assert_allclose(model[-1].eigenvalues_, whole[-1].eigenvalues_, rtol=TOLERANCE)
    if hasattr(whole[-1], "mean_"):  # those of a kernel may be turned among themselves
        assert_same(model[-1].components_, whole[-1].components_)


# --- the same answer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_backgrounds", [1, 2])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("form", FORMS)
def test_parts_give_what_memory_gives(datasets, tmp_path, form, steps, n_backgrounds):
    apart, together = FORMS[form]
    data, whole_data = apart(datasets, tmp_path), together([rows.copy() for rows in datasets])
    before = [rows.copy() for rows in datasets]
    model = pipeline(STEPS[steps], LAST["dPCA"]).fit(data[0], background=data[1 : n_backgrounds + 1])
    # In place, scikit-learn writes into what it is given.
    given = [rows.copy() for rows in whole_data]
    whole = pipeline(STEPS[steps], LAST["dPCA"]).fit(given[0], background=given[1 : n_backgrounds + 1])
    assert_same_model(model, whole)
    given = [rows.copy() for rows in whole_data]
    assert_same(np.asarray(model.transform(data[1])), whole.transform(given[1]))
    for background in (None, data[1 : n_backgrounds + 1]):
        given = [rows.copy() for rows in whole_data]
        held = whole.score(given[0], background=None if background is None else given[1 : n_backgrounds + 1])
        assert model.score(data[0], background=background) == pytest.approx(held, rel=TOLERANCE)
    for rows, original in zip(datasets, before, strict=True):
        np.testing.assert_array_equal(rows, original)


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("form", ["scan", "Dask array"])
def test_every_class_may_be_the_last_step(datasets, tmp_path, form, last):
    apart, together = FORMS[form]
    data, whole_data = apart(datasets, tmp_path), together(datasets)
    model = pipeline([StandardScaler()], LAST[last]).fit(data[0], background=data[1:])
    whole = pipeline([StandardScaler()], LAST[last]).fit(whole_data[0], background=whole_data[1:])
    assert_same_model(model, whole)
    assert_same(np.asarray(model.transform(data[0])), whole.transform(whole_data[0]))


def test_fit_transform_and_a_target_without_background(datasets, tmp_path):
    data, whole_data = scanned(datasets, tmp_path), frames(datasets)
    model, whole = (make_pipeline(StandardScaler(), DiscriminativePCA()) for _ in range(2))
    scores = model.fit_transform(data[0], background=data[1])
    assert_same(scores, whole.fit_transform(whole_data[0], background=whole_data[1]))
    np.testing.assert_array_equal(scores, model.transform(data[0]))
    assert_same_model(model.fit(data[0]), whole.fit(whole_data[0]))


@pytest.mark.parametrize("in_parts", ["the target", "the background"])
def test_rows_at_hand_and_parts_go_together(datasets, tmp_path, in_parts):
    parts, rows = scanned(datasets, tmp_path), frames(datasets)
    target, background = (parts[0], rows[1]) if in_parts == "the target" else (rows[0], parts[1])
    model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(target, background=background)
    whole = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(rows[0], background=rows[1])
    assert_same_model(model, whole)
    held = whole.score(rows[0], background=rows[1])
    assert model.score(target, background=background) == pytest.approx(held, rel=TOLERANCE)
    assert whole.score(target, background=background) == pytest.approx(held, rel=TOLERANCE)
    assert_same(model.transform(rows[1]), whole.transform(parts[1]))


@pytest.mark.parametrize("of", [list, frames])
def test_iterators_of_batches_are_read_once(datasets, of):
    target, *backgrounds = of(datasets)
    model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(target, background=list(map(batches, backgrounds)))
    whole = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(target, background=backgrounds)
    assert_same_model(model, whole)
    # With nothing to learn the target may be an iterator, too.
    scaler = FrozenEstimator(StandardScaler().fit(target))
    model = make_pipeline(Normalizer(), DiscriminativePCA()).fit(batches(target), background=batches(backgrounds[0]))
    whole = make_pipeline(Normalizer(), DiscriminativePCA()).fit(target, background=backgrounds[0])
    assert_same_model(model, whole)
    assert getattr(model, "feature_names_in_", None) is None or list(model.feature_names_in_) == NAMES
    model = make_pipeline(scaler, DiscriminativePCA()).fit(batches(target), background=batches(backgrounds[0]))
    whole = make_pipeline(scaler, DiscriminativePCA()).fit(target, background=backgrounds[0])
    assert_same_model(model, whole)


def test_sparse_parts_stay_sparse(datasets):
    thin = [np.where(np.abs(rows / UNITS) > 3, rows, 0.0) for rows in datasets]
    seen = []

    class Watched(MaxAbsScaler):
        def transform(self, X):
            seen.append(sparse.issparse(X))
            return super().transform(X)

    data = [InParts(sparse.csr_array(rows)) for rows in thin]
    model = make_pipeline(Watched(), DiscriminativePCA()).fit(data[0], background=data[1:])
    whole = make_pipeline(MaxAbsScaler(), DiscriminativePCA()).fit(thin[0], background=thin[1:])
    assert_same_model(model, whole)
    assert_same(model.transform(data[1]), whole.transform(thin[1]))
    assert all(seen)
    assert all(sparse.issparse(part) for part in Transformed(data[0], (model[0],)).parts())


def test_incremental_pca_is_fitted_although_the_last_batch_is_small(datasets):
    # 483 rows in parts of 60 leave 3, fewer than the components: they join the 60 before them.
    target, background = InParts(datasets[0][:483], size=60), InParts(datasets[1], size=60)
    model = make_pipeline(IncrementalPCA(5), DiscriminativePCA()).fit(target, background=background)
    by_hand = IncrementalPCA(5)
    for rows in [*np.split(datasets[0][:420], 7), datasets[0][420:483]]:
        by_hand.partial_fit(rows)
    assert_same(model[0].components_, by_hand.components_)
    assert_same(model.transform(background), model[-1].transform(by_hand.transform(datasets[1])))


def test_a_class_of_standout_before_the_last_step_sees_the_backgrounds(datasets, tmp_path):
    data, rows = scanned(datasets, tmp_path), frames(datasets)
    model, whole = (make_pipeline(DiscriminativePCA(4), StandardScaler(), ContrastivePCA(alpha=1.0)) for _ in range(2))
    model.fit(data[0], background=data[1:])
    whole.fit(rows[0], background=rows[1:])
    np.testing.assert_allclose(model[0].eigenvalues_, whole[0].eigenvalues_, rtol=TOLERANCE)
    assert_same_model(model, whole)


def test_a_pipeline_may_be_a_step(datasets, tmp_path):
    data, rows = scanned(datasets, tmp_path), frames(datasets)
    inner = make_pipeline(StandardScaler(), DiscriminativePCA())
    model = make_pipeline(MinMaxScaler(), inner).fit(data[0], background=data[1])
    whole = make_pipeline(MinMaxScaler(), clone(inner)).fit(rows[0], background=rows[1])
    assert_same(model.transform(data[1]), whole.transform(rows[1]))


# --- parts, and no more ---------------------------------------------------------------------------------------------


def test_only_parts_are_at_hand(datasets):
    rows = [np.tile(part, (10, 1)) for part in datasets[:2]]
    at_hand = []
    target, background = map(InParts, rows)
    watch = FunctionTransformer(lambda part: at_hand.append(part.shape[0]) or part)
    model = make_pipeline(watch, StandardScaler(), watch, DiscriminativePCA()).fit(target, background=background)
    model.score(target, background=background)
    # One part, and the rows of the next that are joined to it until there are as many as columns.
    assert max(at_hand) <= 50 + D
    assert sum(at_hand) > len(rows[0])
    # One pass to scale the target, one to sum it up, one for the score; the rest are looks at a first row.
    full = [count for count in at_hand if count > 1]
    assert sum(full) == 5 * len(rows[0]) + 4 * len(rows[1])


def test_memory_does_not_depend_on_the_number_of_rows(tmp_path, rng):
    script = textwrap.dedent(
        """
        import resource, sys
        from sklearn.preprocessing import StandardScaler
        import standout
        target, control = (standout.scan(sys.argv[1:n], batch_rows=2000) for n in (None, 11))
        model = standout.make_pipeline(StandardScaler(), standout.DiscriminativePCA(2)).fit(target, background=control)
        model.transform(target)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        """
    )
    files = [str(tmp_path / f"{number}.npy") for number in range(30)]
    for file in files:
        np.save(file, rng.normal(size=(10_000, 50)))
    peaks = []
    for some in (files[:10], files):
        found = subprocess.run([sys.executable, "-c", script, *some], capture_output=True, text=True, check=True)
        peaks.append(int(found.stdout) / 1024)
    # The target has 80 MB more of rows, and 3 MB more of scores, which are kept. Some parts more or less may be on
    # their way at the peak: up to 9 MB were seen.
    assert peaks[1] - peaks[0] < 30


def test_dask_stays_where_the_blocks_are_and_lazy(datasets, monkeypatch):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    data = in_dask(datasets)
    monkeypatch.setattr(DaskBlocks, "parts", lambda self: pytest.fail("a block came whole"))
    model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(data[0], background=data[1:])
    whole = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(datasets[0], background=datasets[1:])
    assert_same_model(model, whole)

    def computed(block):
        if block.size:
            raise AssertionError("a block was computed")
        return block

    scores = model.transform(da.from_array(datasets[1], chunks=(90, D)).map_blocks(computed, dtype=float))
    assert isinstance(scores, da.Array)
    assert scores.shape == (410, 2)
    with pytest.raises(AssertionError, match="a block was computed"):
        scores.compute(scheduler="synchronous")


def test_dask_promises_the_type_that_comes(datasets):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    single = [rows.astype(np.float32) for rows in datasets]
    data = in_dask(single)
    for step, expected in ((StandardScaler(), np.float32), (FunctionTransformer(np.float64), np.float64)):
        model = make_pipeline(step, DiscriminativePCA()).fit(data[0], background=data[1])
        scores = model.transform(data[1])
        assert scores.dtype == expected == scores.compute().dtype

    def picky(rows):
        if np.ptp(rows[:, 0]) == 0:
            raise ValueError("a row that no instrument gives")
        return rows

    # The first row is looked at in a fit; what is made up to find the type is not held against the step.
    fitted = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(datasets[0], background=datasets[1])
    fitted.steps.insert(0, ("picky", FunctionTransformer(picky)))
    assert_same(fitted.transform(da.from_array(datasets[1], chunks=(90, D))).compute(), fitted.transform(datasets[1]))


def test_a_cluster_gives_what_memory_gives(datasets):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    data = in_dask(datasets)
    whole = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(datasets[0], background=datasets[1:])
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(data[0], background=data[1:])
        assert_same_model(model, whole)
        assert_same(model.transform(data[1]).compute(), whole.transform(datasets[1]))


# --- checkpoints ----------------------------------------------------------------------------------------------------


def counting_parts(monkeypatch):
    """Count the parts that are summed up."""
    count = []
    call = Part.__call__
    monkeypatch.setattr(Part, "__call__", lambda self, rows: count.append(len(rows)) or call(self, rows))
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

    def stopping(self, rows):
        if len(count) >= 6:
            raise StoppedError
        return call(self, rows)

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
    monkeypatch.setattr("standout.sources._transformed.import_module", import_nothing)
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


def test_time_is_printed_for_each_step(datasets, tmp_path, capsys):
    data = scanned(datasets, tmp_path)
    make_pipeline(StandardScaler(), DiscriminativePCA(), verbose=True).fit(data[0], background=data[1])
    lines = capsys.readouterr().out.splitlines()
    assert ["standardscaler" in lines[0], "discriminativepca" in lines[1]] == [True, True]


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


# --- refusals -------------------------------------------------------------------------------------------------------


def test_steps_that_need_all_rows_are_refused_before_anything_is_read(datasets):
    target = InParts(datasets[0])
    with pytest.raises(
        TypeError,
        match=r"step 'pca' \(PCA\) has no partial_fit, .* but the target is read in parts\. Use .*FrozenEstimator",
    ):
        make_pipeline(StandardScaler(), PCA(), DiscriminativePCA()).fit(target, background=datasets[1])
    # A background of parts is transformed, and nothing is fitted to it.
    make_pipeline(PCA(), DiscriminativePCA()).fit(datasets[0], background=InParts(datasets[1]))
    with pytest.raises(TypeError, match=r"step 'standardscaler' .* iterator of batches can be read only once\. Give"):
        make_pipeline(StandardScaler(), DiscriminativePCA()).fit(batches(datasets[0]), background=datasets[1])
    with pytest.raises(TypeError, match=r"fit with target_label tells rows apart by their labels, but the target is"):
        make_pipeline(StandardScaler(), DiscriminativePCA(target_label=1)).fit(target, np.ones(530))
    with pytest.raises(TypeError, match=r"step 'pca' \(PCA\) is the last step, and cannot take data that are read in"):
        make_pipeline(StandardScaler(), PCA()).fit(target)
    with pytest.raises(TypeError, match="fit of a pipeline got parameter 'sample_weight' for its steps"):
        make_pipeline(StandardScaler(), DiscriminativePCA()).fit(target, sample_weight=np.ones(530))
    assert target.passes == 0


def test_fitted_pipelines_refuse_what_cannot_be_read_again(datasets):
    model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(datasets[0], background=datasets[1])
    with pytest.raises(TypeError, match="transform cannot take an iterator"):
        model.transform(batches(datasets[0]))
    with pytest.raises(TypeError, match="score cannot take an iterator"):
        model.score(datasets[0], background=batches(datasets[1]))
    with pytest.raises(TypeError, match="fit_transform cannot take an iterator"):
        model.fit_transform(batches(datasets[0]), background=datasets[1])
    with pytest.raises(NotFittedError):
        clone(model).transform(InParts(datasets[0]))
    with pytest.raises(TypeError, match="is the last step, and cannot take data that are read in parts"):
        model[:-1].transform(InParts(datasets[0]))


def test_other_columns_are_refused(datasets, tmp_path):
    data = scanned(datasets, tmp_path)
    model = make_pipeline(StandardScaler(), DiscriminativePCA())
    with pytest.raises(ValueError, match="background 1 has 5 features, but the target has 6; background 1 lacks"):
        model.fit(data[0], background=scan(tmp_path / "dataset-1", columns=NAMES[:5]))
    model.fit(data[0], background=data[1])
    reordered = scan(tmp_path / "dataset-1", columns=NAMES[::-1])
    for use in (lambda: model.transform(reordered), lambda: model.score(data[0], background=reordered)):
        with pytest.raises(ValueError, match="has the columns of the fitted target in another order"):
            use()
    with pytest.raises(ValueError, match="the data has 4 features, but the fitted target has 6"):
        model.transform(in_dask([datasets[1][:, :4]])[0])


def test_steps_that_do_not_work_row_by_row_are_refused_where_it_shows(datasets):
    target, background = map(InParts, datasets[:2])
    dropping = FunctionTransformer(lambda rows: rows[1:] if len(rows) > 1 else rows)
    with pytest.raises(ValueError, match=r"there are \d+ row\(s\) in the target after the steps .* for \d+ before"):
        make_pipeline(dropping, DiscriminativePCA()).fit(target, background=background)
    by_part = FunctionTransformer(lambda rows: rows[:, np.ptp(rows, axis=0) > 0] if len(rows) < 50 else rows[:, :3])
    with pytest.raises(ValueError, match=r"has 3 features, but its first row has 0.*work row by row|cannot be used"):
        make_pipeline(by_part, DiscriminativePCA()).fit(target, background=background)
    logarithm = FunctionTransformer(lambda rows: np.log(np.maximum(rows, 0.0)))
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="NaN or infinity in the target after the steps"):
        make_pipeline(logarithm, DiscriminativePCA()).fit(target, background=background)
