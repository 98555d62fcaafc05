"""Pipelines over data that are read in parts: the answers of the same rows in memory, and never more than parts."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import IncrementalPCA
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from pipelines_in_parts import (
    FORMS,
    LAST,
    NAMES,
    STEPS,
    TOLERANCE,
    UNITS,
    D,
    InParts,
    assert_same,
    assert_same_model,
    batches,
    datasets,
    frames,
    in_dask,
    pipeline,
    scanned,
    small_blocks,
)
from standout import ContrastivePCA, DiscriminativePCA, make_pipeline
from standout.sources import DaskBlocks, Transformed

# Fixtures, which pytest finds by their names.
__all__ = ["datasets", "small_blocks"]

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
