"""What the tests of saved models share: models in every state, what it is to be the same, and the parts of a file."""

import zipfile

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, StandardScaler

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    datasets,
    make_pipeline,
)
from standout.io import Preparation
from standout.private import PrivateMoments, Spent
from standout.private._grid import Grid, packed, sum_up

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


def fit_subjects(model):
    return model.set_params(blocks=5).fit(TARGET, background=BACKGROUND)


# Every class in every state that a fit can leave it in: with each attribute, each kind of coordinates, each kernel.
def private_sums(rows):
    """Give sums as a release gives them, but without noise, which has no seed."""
    grid = Grid(np.zeros(rows.shape[1]), np.ones(rows.shape[1]), 5.0)
    spent = (Spent(1.0, 1e-6, 0.02, "row", 1),)
    released = packed(sum_up(rows, grid).products)
    return PrivateMoments(released, grid.centre, grid.scale, grid.radius, 1.0, spent)


CASES = {
    "linear": lambda: fit(DiscriminativePCA(3)),
    "linear, subjects": lambda: fit_subjects(DiscriminativePCA(1, test="auto")),
    "contrastive, subjects": lambda: fit_subjects(ContrastivePCA(1)),
    "kernel, subjects": lambda: fit_subjects(KernelDiscriminativePCA(1)),
    "contrastive kernel, subjects": lambda: fit_subjects(KernelContrastivePCA(1)),
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
    "linear, private sums": lambda: DiscriminativePCA.from_moments(private_sums(TARGET), private_sums(BACKGROUND)),
    "linear, random state": lambda: fit(DiscriminativePCA(random_state=np.random.RandomState(5), solver="lobpcg")),
    "linear, held-out": lambda: fit(DiscriminativePCA(shrinkage="held-out"), GROUPS.target, list(GROUPS.backgrounds)),
    "linear, robust": lambda: fit(DiscriminativePCA(robust="cells")),
    "linear, few columns": lambda: fit(DiscriminativePCA(1, n_columns="auto", side="both")),
    "linear, neighbours": lambda: fit(DiscriminativePCA(1, smooth="chain", smoothness="held-out")),
    "linear, weights": lambda: DiscriminativePCA(1).fit(
        TARGET, background=BACKGROUND, sample_weight=np.linspace(0.5, 2.0, len(TARGET))
    ),
    "contrastive, few columns": lambda: fit(ContrastivePCA(1, alpha=1.0, n_columns="auto")),
    "contrastive": lambda: fit(ContrastivePCA()),
    "contrastive, robust": lambda: fit(ContrastivePCA(alpha=1.0, robust="cells")),
    "kernel contrastive, robust": lambda: fit(KernelContrastivePCA(alpha=1.0, robust="cells")),
    "contrastive, held-out": lambda: fit(ContrastivePCA(alpha="held-out")),
    "contrastive, list": lambda: fit(ContrastivePCA(alpha=[0.5, 1.0, 5.0], n_representatives=2)),
    "contrastive, labels": lambda: fit(ContrastivePCA(target_label="old", alpha=2.0), y=LABELS, background=None),
    "contrastive, names": lambda: fit(ContrastivePCA(alpha=2), NAMED, NAMED + 1),
    "kernel rows": lambda: fit(KernelDiscriminativePCA(gamma=0.5)),
    "kernel, exact landmarks": lambda: fit(KernelDiscriminativePCA(kernel="homogeneous_polynomial", degree=2)),
    "kernel, columns first": lambda: fit(
        KernelDiscriminativePCA(kernel="poly", degree=2), np.asfortranarray(TARGET), np.asfortranarray(BACKGROUND)
    ),
    "kernel, held-out": lambda: fit(KernelDiscriminativePCA(kernel="gaussian", epsilon="held-out")),
    "kernel, contrastive, held-out": lambda: fit(KernelContrastivePCA(kernel="gaussian", alpha="held-out")),
    "kernel, robust": lambda: fit(KernelDiscriminativePCA(gamma=0.5, robust="cells")),
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
    "pipeline, prepared": lambda: fit(
        make_pipeline(Preparation(standardize="background", missing="mean"), DiscriminativePCA()), NAMED, NAMED + 1
    ),
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


def entries_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_entries(path, entries, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path
