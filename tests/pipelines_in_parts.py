"""What the tests of pipelines over parts share: data in every form that is read in parts, steps, and last steps."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import Binarizer, FunctionTransformer, MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
    scan,
)
from standout.sources import Batch, Source

D = 6
NAMES = [f"column {number}" for number in range(D)]
UNITS = np.array([1.0, 1000.0, 0.01, 1.0, 10.0, 0.1])

# Sums in another order differ by rounding: 1e-10 is what a user may count on, and some hundred times what is seen.
TOLERANCE = 1e-10


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let every batch be a part of its own."""
    monkeypatch.setattr("standout.sources._base.BLOCK_BYTES", 8 * D * 10)


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


class InParts(Source):
    """Rows of which one batch at a time is given; it counts the passes."""

    def __init__(self, rows, size=50):
        self.given, self.size, self.n_rows, self.width, self.passes = rows, size, *rows.shape, 0

    def batches(self):
        self.passes += 1
        for start in range(0, self.n_rows, self.size):
            yield Batch(self.given[start : start + self.size], start)


FORMS = {
    "scan": (scanned, frames),
    "Dask array": (lambda datasets, _: in_dask(datasets), list),
    "Dask frame": (lambda datasets, _: dask_frames(datasets), frames),
    "a source of one's own": (lambda datasets, _: list(map(InParts, datasets)), list),
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
