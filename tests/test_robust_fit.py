"""Fits with robust weights: every path gives the same, what is out of place does not decide, and all else works."""

import numpy as np
import pytest
from scipy import sparse

from array_libraries import dispatch, library
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
    scan,
)
from standout._messages import InvalidTypeError, InvalidValueError
from standout.datasets import make_circles_one_background
from standout.estimators import fitted_test
from standout.metrics import clustering_error
from standout.moments import _robust
from standout.selection import stability
from standout.sources import is_dask

# Fixtures, which pytest finds by their names.
__all__ = ["dispatch", "library"]

MODELS = {
    "dpca": lambda robust: DiscriminativePCA(2, robust=robust),
    "cpca": lambda robust: ContrastivePCA(2, alpha=1.5, robust=robust),
    "kernel": lambda robust: KernelDiscriminativePCA(2, kernel="rbf", gamma=0.02, epsilon=0.01, robust=robust),
    "landmarks": lambda robust: KernelDiscriminativePCA(
        2, gamma=0.02, epsilon=0.01, approximation=np.random.default_rng(3).normal(size=(15, 6)), robust=robust
    ),
    "kernel contrastive": lambda robust: KernelContrastivePCA(2, kernel="poly", degree=2, alpha=1.0, robust=robust),
    "kernel values": lambda robust: KernelContrastivePCA(2, kernel="rbf", gamma=0.02, alpha=1.0, robust=robust),
}
HANDLED = ["rows", "cells"]


@pytest.fixture
def rows(rng):
    """A target that varies more in its last column, and strays of both kinds in both datasets."""
    target, background = rng.normal(size=(240, 6)), rng.normal(size=(200, 6))
    target[:, 5] *= 4.0
    for data in (target, background):
        data[:, 0] = 5.0 * data[:, 0] + data[:, 1]
        data[::31] += 40.0 * rng.normal(size=data[::31].shape)
        data[7::43, 2] = 300.0
    return target, background


@pytest.mark.parametrize("robust", HANDLED)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_paths_agree(make, robust, rows, tmp_path):
    import dask.array as da

    target, background = rows
    reference = make(robust).fit(target, background=background)
    for number, data in enumerate(rows):
        np.save(tmp_path / f"{number}.npy", data)
    ways = {
        "scan": [scan(tmp_path / f"{number}.npy", batch_rows=37) for number in range(2)],
        "dask": [da.from_array(data, chunks=(50, 6)) for data in rows],
    }
    if "landmarks" in str(reference.approximation_ if hasattr(reference, "approximation_") else "landmarks"):
        ways["iterator"] = [iter(np.array_split(data, 9)) for data in rows]
    for name, (first, second) in ways.items():
        found = make(robust).fit(first, background=second)
        np.testing.assert_allclose(found.eigenvalues_, reference.eigenvalues_, rtol=1e-8, err_msg=name)
        np.testing.assert_allclose(
            np.abs(found.transform(target)), np.abs(reference.transform(target)), atol=1e-8, err_msg=name
        )
        for place, data in enumerate((target, background)):
            np.testing.assert_allclose(found.weigh(data, dataset=place), reference.row_weights_[place], rtol=1e-6)
        if name != "iterator":
            weights = found.weigh(first)
            assert is_dask(weights) == (name == "dask")
            np.testing.assert_allclose(np.asarray(weights), reference.row_weights_[0], rtol=1e-6)


@pytest.mark.parametrize("robust", HANDLED)
def test_paths_agree_where_weights_are_learned_from_a_sample(robust, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(_robust, "MOST_ROWS", 90)
    target, background = rows
    reference = DiscriminativePCA(2, robust=robust).fit(target, background=background)
    assert reference.robust_weights_[0].n_sampled == 90
    for number, data in enumerate(rows):
        np.save(tmp_path / f"{number}.npy", data)
    found = DiscriminativePCA(2, robust=robust).fit(
        scan(tmp_path / "0.npy", batch_rows=37), background=scan(tmp_path / "1.npy")
    )
    np.testing.assert_allclose(found.components_, reference.components_, atol=1e-8)
    np.testing.assert_allclose(found.held_out_ratio_, reference.held_out_ratio_, rtol=1e-8)
    assert found.row_weights_ == [None, None]


@pytest.mark.parametrize("robust", HANDLED)
@pytest.mark.parametrize("make", [MODELS["dpca"], MODELS["cpca"], MODELS["landmarks"]], ids=["dpca", "cpca", "kernel"])
def test_other_array_libraries_agree(make, robust, library, rows):
    target, background = rows
    if make is MODELS["landmarks"]:
        landmarks = library.there(np.random.default_rng(3).normal(size=(15, 6)))
        found = make(robust).set_params(approximation=landmarks)
    else:
        found = make(robust)
    found.fit(library.there(target), background=library.there(background))
    reference = make(robust).fit(target, background=background)
    np.testing.assert_allclose(library.back(found.eigenvalues_), reference.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(library.back(found.row_weights_[1]), reference.row_weights_[1], rtol=1e-7)
    assert found.outlying_rows_[0].tolist() == reference.outlying_rows_[0].tolist()
    moved = found.to_numpy()
    np.testing.assert_allclose(moved.weigh(target), reference.row_weights_[0], rtol=1e-7)


def test_sparse_rows_weigh_what_dense_ones_do(rng):
    target, background = (rng.poisson(0.5, size=(n, 12)) * rng.exponential(size=(n, 12)) for n in (150, 130))
    target[3] *= 40.0
    reference = DiscriminativePCA(2, robust="rows").fit(target, background=background)
    found = DiscriminativePCA(2, robust="rows").fit(sparse.csr_array(target), background=sparse.csr_array(background))
    np.testing.assert_allclose(found.components_, reference.components_, atol=1e-8)
    with pytest.raises(InvalidTypeError, match="sparse"):
        DiscriminativePCA(2, robust="cells").fit(sparse.csr_array(target))


def test_strays_decide_without_and_not_with_robust(rows):
    target, background = rows
    plain = DiscriminativePCA(1).fit(target, background=background)
    robust = DiscriminativePCA(1, robust="cells").fit(target, background=background)
    assert abs(plain.patterns_[0]).argmax() != 5
    assert abs(robust.patterns_[0]).argmax() == 5
    # The ratio without strays is 16 by construction.
    assert robust.held_out_ratio_[0] == pytest.approx(16.0, rel=0.35)
    cells = set(map(tuple, robust.wild_cells_[0].tolist()))
    assert set(range(0, 240, 31)) <= set(robust.outlying_rows_[0].tolist()) | {row for row, _ in cells}
    assert {(row, 2) for row in range(7, 240, 43) if row % 31} <= cells


def test_circles_with_strays(rng):
    circles = make_circles_one_background(random_state=1)
    target, background = circles.target.copy(), circles.backgrounds[0].copy()
    strays = rng.choice(len(target), len(target) // 10, replace=False)
    target[strays] = 30.0 * rng.normal(size=(len(strays), target.shape[1]))
    background[:15] = 30.0 * rng.normal(size=(15, target.shape[1]))
    true = np.setdiff1d(np.arange(len(target)), strays)

    def error(robust):
        model = KernelDiscriminativePCA(kernel="homogeneous_polynomial", degree=2, epsilon=1e-3, robust=robust)
        scores = model.fit(target, background=background).transform(target)
        return clustering_error(scores[true], circles.labels[true])

    assert error(None) > 0.3
    assert error("rows") <= 0.02


def test_folds_tests_and_stability_know_of_the_weights(rows):
    target, background = rows
    model = DiscriminativePCA(2, robust="cells", test="permutation", shrinkage="held-out", random_state=0)
    model.fit(target, background=background)
    assert model.p_values_[0] <= 0.01
    assert model.p_values_[1] > 0.05
    assert model.held_out_ratio_[1] < 3.0
    by_groups = DiscriminativePCA(1, robust="cells", shrinkage="clusters").fit(target, background=background)
    assert abs(by_groups.patterns_[0]).argmax() == 5


def test_labels_pipelines_and_given_weights_go_with_it(rows):
    target, background = rows
    reference = DiscriminativePCA(2, robust="rows").fit(target, background=background)
    both, labels = np.vstack(rows), np.repeat(["a", "b"], [240, 200])
    found = DiscriminativePCA(2, robust="rows", target_label="a").fit(both, labels)
    np.testing.assert_allclose(found.components_, reference.components_, atol=1e-10)
    piped = make_pipeline(DiscriminativePCA(2, robust="rows")).fit(target, background=background)
    np.testing.assert_allclose(piped[-1].components_, reference.components_, atol=1e-10)
    halved = DiscriminativePCA(2, robust="rows").fit(
        target, background=background, sample_weight=np.full(240, 0.5), background_sample_weight=np.full(200, 0.5)
    )
    np.testing.assert_allclose(halved.components_, reference.components_, atol=1e-8)


def test_rows_without_weight_teach_nothing(rows):
    target, background = rows
    kept = np.ones(240)
    kept[::31] = 0.0
    with_zeros = DiscriminativePCA(2, robust="cells").fit(target, background=background, sample_weight=kept)
    without = DiscriminativePCA(2, robust="cells").fit(target[kept > 0], background=background)
    np.testing.assert_allclose(with_zeros.components_, without.components_, atol=1e-8)


def test_fits_with_weights_can_be_merged_and_plain_sums_cannot_be_weighed(rows):
    target, background = rows
    halves = [
        DiscriminativePCA(2, robust="cells").fit(target[start::2], background=background[start::2]) for start in (0, 1)
    ]
    merged = halves[0].merge(halves[1])
    whole = DiscriminativePCA(2, robust="cells").fit(target, background=background)
    # The places learn from half of the rows each.
    np.testing.assert_allclose(merged.eigenvalues_[0], whole.eigenvalues_[0], rtol=0.1)
    assert not hasattr(merged, "row_weights_")
    assert not hasattr(DiscriminativePCA(robust="rows"), "partial_fit")
    with pytest.raises(InvalidValueError, match="needs the rows"):
        DiscriminativePCA.from_moments((np.eye(3), 50), robust="rows")


def test_a_later_fit_without_robust_forgets(rows):
    target, background = rows
    model = DiscriminativePCA(2, robust="cells").fit(target, background=background)
    plain = model.set_params(robust=None).fit(target, background=background)
    assert not any(name in vars(plain) for name in ("row_weights_", "outlying_rows_", "wild_cells_", "robust_weights_"))
    with pytest.raises(InvalidValueError, match="count the same"):
        plain.weigh(target)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_wrong_values_are_refused(make, rows):
    with pytest.raises(InvalidValueError, match=r"robust.*'columns'.*'rows', 'cells'"):
        make("columns").fit(rows[0], background=rows[1])


def test_wide_data(rng):
    target, background = rng.normal(size=(40, 300)), rng.normal(size=(50, 300))
    target[:, 7] *= 12.0
    target[3] *= 30.0
    background[11, 4] = 1e5
    model = DiscriminativePCA(1, robust="cells").fit(target, background=background)
    assert abs(model.patterns_[0]).argmax() == 7
    assert 3 in model.outlying_rows_[0]
    assert len(model.outlying_rows_[0]) <= 2
    assert [11, 4] in model.wild_cells_[1].tolist()
    assert np.isfinite(model.held_out_ratio_[0])


@pytest.mark.parametrize("robust", HANDLED)
def test_stability_and_tests_after_the_fit_use_the_same_weights(robust, rows):
    target, background = rows
    model = DiscriminativePCA(1, robust=robust).fit(target, background=background)
    found = stability(target, background, n_components=1, robust=robust, n_bootstrap=20)
    np.testing.assert_allclose(found.components, model.components_, atol=1e-8)
    assert np.median(found.angles) < np.median(stability(target, background, n_components=1, n_bootstrap=20).angles)


@pytest.mark.parametrize("make", [MODELS["dpca"], MODELS["cpca"], MODELS["kernel"]], ids=["dpca", "cpca", "kernel"])
def test_a_test_after_the_fit_weighs_rows_as_the_fit_did(make, rows):
    target, background = rows
    model = make("cells").fit(target, background=background)
    found = fitted_test(model, target, background, method="permutation", n_components=1, n_permutations=19)
    # The test centres rows by their spatial median.
    assert found.ratios[0] == pytest.approx(model.eigenvalues_[0], rel=0.05)
