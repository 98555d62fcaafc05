"""Dask arrays and frames: the same estimators, the same answers, on threads and on a cluster of processes."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import IncrementalPCA

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
)
from standout.moments import Folds, ScatterMoments
from standout.sources import DaskBlocks

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask's frames are not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

# Seconds: a busy machine may take as long.
PATIENCE = 300
COLUMNS = ["a", "b", "c", "d", "e"]
LANDMARKS = np.random.default_rng(5).normal(size=(25, 5)) * 2
ESTIMATORS = {
    "dPCA": DiscriminativePCA(),
    "dPCA, groups": DiscriminativePCA(shrinkage="clusters"),
    "dPCA, number found": DiscriminativePCA(n_components="auto", test="analytic"),
    "cPCA": ContrastivePCA(),
    "KdPCA, landmarks": KernelDiscriminativePCA(gamma=0.05, approximation=LANDMARKS),
    "KdPCA, Fourier": KernelDiscriminativePCA(gamma=0.05, approximation="fourier", rank=40),
    "KdPCA, exact": KernelDiscriminativePCA(gamma=0.05),
    "KdPCA, pivoted": KernelDiscriminativePCA(gamma=0.05, approximation="pivoted", rank=30),
    "KcPCA": KernelContrastivePCA(gamma=0.05, alpha=1.5, approximation=LANDMARKS),
}


def datasets(n_backgrounds=2):
    rng = np.random.default_rng(0)
    target = rng.normal(size=(420, 5)) * [5, 1, 1, 1, 2] + 3.0
    target[:, 3] += np.where(np.arange(420) % 2, 6.0, -6.0)  # two groups
    backgrounds = [rng.normal(size=(350 + 30 * k, 5)) * [5, 1, 1 + k, 1, 1] - k for k in range(n_backgrounds)]
    return target, backgrounds


FORMS = {
    "array": lambda rows: da.from_array(rows, chunks=(90, -1)),
    "array cut by columns": lambda rows: da.from_array(rows, chunks=(128, 2)),
    "array of unknown length": lambda rows: dd.from_pandas(pd.DataFrame(rows), npartitions=4).to_dask_array(),
    "frame": lambda rows: dd.from_pandas(pd.DataFrame(rows, columns=COLUMNS), npartitions=4),
    "sparse blocks": lambda rows: da.from_array(rows, chunks=(90, -1)).map_blocks(sparse.csr_matrix),
}


@contextlib.contextmanager
def two_workers():
    """A cluster of two processes, which may take their time and all memory there is."""
    patience = {f"distributed.comm.timeouts.{step}": f"{PATIENCE}s" for step in ("connect", "tcp")}
    with (
        dask.config.set(patience),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=None, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, timeout=PATIENCE) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def client():
    with two_workers() as connected:
        yield connected


def assert_same(whole, model, rows, data):
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    scores = whole.transform(rows)
    lazy = model.transform(data)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), scores, rtol=0, atol=1e-10 * np.abs(scores).max())


@pytest.mark.parametrize("n_backgrounds", [1, 2])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_threads_give_what_memory_gives(name, form, n_backgrounds):
    target, backgrounds = datasets(n_backgrounds)
    data, *others = (FORMS[form](rows) for rows in (target, *backgrounds))
    model = clone(ESTIMATORS[name]).fit(data, background=others)
    whole = clone(ESTIMATORS[name])
    if form == "frame":
        frames = [pd.DataFrame(rows, columns=COLUMNS) for rows in (target, *backgrounds)]
        assert_same(whole.fit(frames[0], background=frames[1:]), model, frames[0], data)
        assert list(model.feature_names_in_) == COLUMNS
        return
    if name == "KdPCA, exact" and form == "sparse blocks":
        # Which rows its coordinates rest on is decided by rounding, which differs between sparse and dense.
        target, *backgrounds = (sparse.csr_matrix(rows) for rows in (target, *backgrounds))
    assert_same(whole.fit(target, background=backgrounds), model, target, data)


@pytest.mark.parametrize("form", ["array", "frame", "sparse blocks"])
@pytest.mark.parametrize("name", ["dPCA", "cPCA", "KdPCA, landmarks", "KdPCA, pivoted", "KdPCA, Fourier"])
def test_a_cluster_gives_what_memory_gives(client, name, form):
    target, backgrounds = datasets()
    rows = pd.DataFrame(target, columns=COLUMNS) if form == "frame" else target
    whole = clone(ESTIMATORS[name]).fit(rows, background=backgrounds)
    data, *others = (FORMS[form](part) for part in (target, *backgrounds))
    assert_same(whole, clone(ESTIMATORS[name]).fit(data, background=others), rows, data)


def test_only_sums_travel(monkeypatch):
    came = []
    original = DaskBlocks.summed
    monkeypatch.setattr(DaskBlocks, "summed", lambda self, part: came.append(original(self, part)) or came[-1])
    monkeypatch.setattr(DaskBlocks, "parts", lambda self: pytest.fail("a block came whole"))
    target, (background,) = datasets(1)
    DiscriminativePCA().fit(FORMS["array"](target), background=FORMS["array"](background))
    assert [type(sums) for sums in came] == [Folds, Folds]
    assert {(type(part), part.scatter.shape) for folds in came for part in folds.sums} == {(ScatterMoments, (5, 5))}


def is_true_in_time(condition):
    """Wait until something is true, and tell whether it became so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def watched(block, folder):
    """Leave a word that a block is read; from the fifth on, wait for a worker to be killed."""
    if block.shape[0]:
        place = Path(folder, "read", f"{os.getpid()}-{time.monotonic_ns()}")
        place.touch()
        is_true_in_time(lambda: len(list(place.parent.iterdir())) < 5 or Path(folder, "killed").exists())
    return block


def test_a_worker_that_dies_does_not_change_the_result(tmp_path):
    target, (background,) = datasets(1)
    whole = DiscriminativePCA().fit(target, background=background)
    (tmp_path / "read").mkdir()
    killed = []

    def kill_one():
        if is_true_in_time(lambda: len(list((tmp_path / "read").iterdir())) >= 5):
            killed.append(int(next((tmp_path / "read").iterdir()).name.split("-")[0]))
            os.kill(killed[0], signal.SIGKILL)
            (tmp_path / "killed").touch()

    with two_workers() as connected:
        workers = set(connected.run(os.getpid).values())
        data = da.from_array(target, chunks=(20, -1)).map_blocks(watched, str(tmp_path), dtype=float)
        killer = threading.Thread(target=kill_one)
        killer.start()
        model = DiscriminativePCA().fit(data, background=da.from_array(background, chunks=(50, -1)))
        killer.join()
        assert killed, "no worker was killed"
        assert killed[0] in workers
        # The others may be told of it after the fit.
        assert is_true_in_time(lambda: killed[0] not in connected.run(os.getpid, on_error="return").values())
    blocks = -(-len(target) // 20)
    assert len(list((tmp_path / "read").iterdir())) >= blocks  # what the dead worker held was read again
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-10)


def test_the_order_of_merging_is_fixed():
    target, (background,) = datasets(1)
    fits = [DiscriminativePCA().fit(FORMS["array"](target), background=FORMS["array"](background)) for _ in range(3)]
    assert len({fit.components_.tobytes() for fit in fits}) == 1


def test_score_and_batches():
    target, backgrounds = datasets()
    data, *others = (FORMS["array"](rows) for rows in (target, *backgrounds))
    model = DiscriminativePCA().fit(data, background=others)
    whole = DiscriminativePCA().fit(target, background=backgrounds)
    assert model.score(data, background=others) == pytest.approx(whole.score(target, background=backgrounds))
    half = DiscriminativePCA().partial_fit(data[:200], background=[other[:100] for other in others])
    half.partial_fit(data[200:], background=[other[100:] for other in others])
    np.testing.assert_allclose(half.eigenvalues_, whole.eigenvalues_, rtol=1e-10)


def test_empty_blocks_are_passed_over():
    target, (background,) = datasets(1)
    frame = dd.from_pandas(pd.DataFrame(target, columns=COLUMNS), npartitions=4)
    some = frame[frame["a"] > np.quantile(target[:, 0], 0.9)]
    rows = target[target[:, 0] > np.quantile(target[:, 0], 0.9)]
    empty = frame[frame["a"] > 1e9]
    model = DiscriminativePCA().fit(dd.concat([empty, some]), background=background)
    whole = DiscriminativePCA().fit(rows, background=background)
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    assert model.transform(empty).compute().shape == (0, 2)
    with pytest.raises(ValueError, match=r"too few rows in the target: 0 sample\(s\), but the least is 2"):
        DiscriminativePCA().fit(empty, background=background)
    with pytest.raises(ValueError, match=r"too few rows in the target: 0 sample"):
        KernelDiscriminativePCA(approximation="fourier").fit(empty, background=background)


def test_single_precision_stays():
    target, (background,) = datasets(1)
    data = da.from_array(target.astype(np.float32), chunks=(100, -1))
    scores = DiscriminativePCA().fit_transform(data, background=background)
    assert scores.dtype == np.float32
    assert scores.compute().dtype == np.float32


def of_parts(*frames):
    return dd.from_delayed([dask.delayed(frame) for frame in frames], verify_meta=False)


def with_nan(rows):
    bad = rows.copy()
    bad[7, 2] = np.nan
    return bad


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X: da.from_array(with_nan(X), chunks=100), ValueError, "NaN or infinity in block 1 of the target"),
        (
            lambda X: of_parts(pd.DataFrame(X, columns=COLUMNS), pd.DataFrame(X, columns=COLUMNS[::-1])),
            ValueError,
            "block 2 of the target has the columns of the whole in another order",
        ),
        (lambda X: da.from_array(X[0]), ValueError, "Expected 2D array, got 1D array"),
        (lambda X: da.from_array(X.astype(complex)), ValueError, "Complex data not supported"),
        (lambda X: da.from_array(X[:1]), ValueError, "too few rows in the target: 1 sample"),
        (
            lambda X: da.from_array(X, chunks=9)[:, da.arange(5) < 3],
            ValueError,
            "an unknown number of columns",
        ),
        (lambda X: da.from_array(X[:, :3]), ValueError, "background 1 has 5 features, but the target has 3"),
        (
            lambda X: dd.from_pandas(pd.DataFrame({"a": ["x", "y"] * 5, "b": range(10)}), npartitions=2),
            ValueError,
            "background 1 has 5 features, but the target has 2",
        ),
    ],
)
def test_bad_input(make, error, message):
    target, (background,) = datasets(1)
    with pytest.raises(error, match=message):
        DiscriminativePCA().fit(make(target), background=background)


def test_another_order_of_columns_is_refused():
    target, (background,) = datasets(1)
    model = DiscriminativePCA().fit(FORMS["frame"](target), background=background)
    with pytest.raises(ValueError, match="the data has the columns of the fitted target in another order"):
        model.transform(FORMS["frame"](target)[COLUMNS[::-1]])


@pytest.mark.parametrize("n_components", [5, None])
@pytest.mark.parametrize("form", ["array", "array of unknown length", "frame"])
def test_a_step_of_a_pipeline_starts_with_a_row_for_every_column(form, n_components):
    # IncrementalPCA starts with no fewer rows than components, and gives no more components than rows: 2 are too few.
    target, backgrounds = datasets(1)
    target = target[:60]
    frame = dd.from_pandas(pd.DataFrame(target, columns=COLUMNS), npartitions=30)
    forms = {"array": da.from_array(target, chunks=(2, -1)), "array of unknown length": frame.to_dask_array()}
    steps = make_pipeline(IncrementalPCA(n_components), DiscriminativePCA())
    names = COLUMNS if form == "frame" else None
    steps.fit(forms.get(form, frame), background=pd.DataFrame(backgrounds[0], columns=names) if names else backgrounds)
    by_hand = IncrementalPCA(n_components).partial_fit(target[:6])
    for start in range(6, 60, 2):
        by_hand.partial_fit(target[start : start + 2])
    np.testing.assert_array_equal(steps[0].components_, by_hand.components_)
