"""Kernel methods compared with the paper's equations, their limits, and hard cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from standout import DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout._messages import CautionWarning, FindingWarning
from standout.datasets import make_hidden_circles
from standout.metrics import clustering_error
from standout.selection._held_out import log_ratio

GAMMA = 0.1


@pytest.fixture
def data(rng):
    return rng.normal(size=(40, 3)) * [1, 1, 3], rng.normal(size=(30, 3)), rng.normal(size=(25, 3)) + 1.0


def centred_kernel(*parts):
    """Return the paper's K, centred block by block, and the rows of each dataset."""
    K = rbf_kernel(np.vstack(parts), gamma=GAMMA)
    ends = np.cumsum([len(part) for part in parts])
    blocks = [slice(end - len(part), end) for end, part in zip(ends, parts, strict=True)]
    for axis in (0, 1):
        for block in blocks:
            own = (block, slice(None)) if axis == 0 else (slice(None), block)
            K[own] -= K[own].mean(axis=axis, keepdims=True)
    return K, blocks


def test_rounding_of_kernel_values_is_told_only_if_it_reaches_the_scores(data):
    model = KernelDiscriminativePCA(1, kernel="polynomial", degree=2)
    away = np.array([3.0, 1.0, 1.0])
    model.fit(data[0] + 3e3 * away, background=data[1] + 3e3)
    with pytest.warns(FindingWarning, match="rounding of the kernel's values"):
        model.fit(data[0] + 1e5 * away, background=data[1] + 1e5)


@pytest.mark.parametrize("weights", [None, [0.3, 0.7]])
def test_the_paper_equation_in_dual_coordinates(data, weights):
    """Eqs. 19 and 23: ``K Kx a = λ (K Σ ωₖ Kₖ + ε I) a``, with the weights that the paper leaves out."""
    X, *others = data
    backgrounds = others if weights else others[:1]
    epsilon = 0.05
    K, (own, *rest) = centred_kernel(X, *backgrounds)
    A = K[:, own] @ K[own] / len(X)
    B = sum(
        w * K[:, block] @ K[block] / (block.stop - block.start) for w, block in zip(weights or [1.0], rest, strict=True)
    )
    values = linalg.eigh(A, B + epsilon * np.eye(len(K)), eigvals_only=True)[::-1][:2]
    model = KernelDiscriminativePCA(2, gamma=GAMMA, epsilon=epsilon, background_weights=weights, cv=None)
    model.fit(X, background=backgrounds)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)


def test_scores_are_those_of_the_dual_vectors(data):
    X, Y, _ = data
    epsilon = 0.05
    K, (own, other) = centred_kernel(X, Y)
    A, B = (K[:, block] @ K[block] / (block.stop - block.start) for block in (own, other))
    _, a = linalg.eigh(A, B + epsilon * np.eye(len(K)), subset_by_index=[len(K) - 2, len(K) - 1])
    scores = K[own] @ a[:, ::-1]
    found = KernelDiscriminativePCA(2, gamma=GAMMA, epsilon=epsilon, cv=None).fit(X, background=Y).transform(X)
    for one, two in zip(scores.T, found.T, strict=True):
        assert abs(np.corrcoef(one, two)[0, 1]) > 1 - 1e-9


def test_without_a_background_it_is_kernel_pca(data):
    X = data[0]
    ours = KernelDiscriminativePCA(2, gamma=GAMMA).fit_transform(X)
    theirs = KernelPCA(2, kernel="rbf", gamma=GAMMA).fit_transform(X)
    for one, two in zip(ours.T, theirs.T, strict=True):
        assert abs(np.corrcoef(one, two)[0, 1]) > 1 - 1e-8


def test_contrastive_kernel_equals_the_difference_of_covariances(data):
    X, Y, _ = data
    K, (own, other) = centred_kernel(X, Y)
    # In features g with K = G Gᵀ the problem is the difference of covariances.
    values, vectors = np.linalg.eigh(K)
    G = vectors * np.sqrt(np.maximum(values, 0.0))
    difference = G[own].T @ G[own] / len(X) - 2.0 * G[other].T @ G[other] / len(Y)
    expected = np.linalg.eigvalsh(difference)[::-1][:2]
    model = KernelContrastivePCA(2, gamma=GAMMA, alpha=2.0, cv=None).fit(X, background=Y)
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-7)


def test_a_linear_kernel_has_the_view_of_the_linear_method(data):
    X, Y, _ = data
    linear = DiscriminativePCA(1, shrinkage=0.0, cv=None).fit(X, background=Y).transform(X)
    kernel = KernelDiscriminativePCA(1, kernel="linear", epsilon=1e-12, cv=None).fit(X, background=Y).transform(X)
    assert abs(np.corrcoef(linear[:, 0], kernel[:, 0])[0, 1]) > 1 - 1e-6


@pytest.mark.parametrize("kind", [KernelDiscriminativePCA, KernelContrastivePCA])
def test_hidden_circles_are_found_by_default(kind):
    data = make_hidden_circles()
    model = kind(kernel="homogeneous_polynomial", degree=2).fit(data.target, background=data.backgrounds)
    assert clustering_error(model.transform(data.target), data.labels) == 0.0
    assert model.path_.parameter in ("epsilon", "alpha")
    assert model.ratio_[0] > 20


def test_several_backgrounds_together_show_what_one_alone_does_not():
    data = make_hidden_circles(n_backgrounds=2)
    # Use the ridge of the paper, because the rule chooses a larger one, which hides the circles.
    kernel = {"kernel": "homogeneous_polynomial", "degree": 2, "epsilon": 1e-4}
    both = KernelDiscriminativePCA(**kernel).fit(data.target, background=data.backgrounds)
    assert clustering_error(both.transform(data.target), data.labels) == 0.0
    alone = KernelDiscriminativePCA(**kernel).fit(data.target, background=data.backgrounds[0])
    assert clustering_error(alone.transform(data.target), data.labels) > 0.2


def test_held_out_scores_have_the_ratio(data):
    X, Y, _ = data
    model = KernelDiscriminativePCA(2).fit(X, background=Y)
    own, other = model.held_out_scores(X, background=Y)
    np.testing.assert_allclose(own.var(axis=0), model.ratio_, rtol=1e-8)
    np.testing.assert_allclose(other.var(axis=0), 1.0, rtol=1e-8)


def test_landmarks_are_near_the_exact_view(rng):
    X, Y = rng.normal(size=(300, 2)) * [1, 3], rng.normal(size=(300, 2))
    exact = KernelDiscriminativePCA(1, gamma=0.05, epsilon=1.0, cv=None).fit(X, background=Y).transform(X)
    other = KernelDiscriminativePCA(
        1, gamma=0.05, epsilon=1.0, cv=None, approximation="pivoted", rank=400, random_state=0
    ).fit(X, background=Y)
    assert abs(np.corrcoef(exact[:, 0], other.transform(X)[:, 0])[0, 1]) > 0.999


def test_a_precomputed_kernel_is_the_kernel_of_the_rows(data):
    X, Y, _ = data
    K = rbf_kernel(np.vstack([X, Y]), gamma=GAMMA)
    rows = KernelDiscriminativePCA(2, gamma=GAMMA).fit(X, background=Y)
    given = KernelDiscriminativePCA(2, kernel="precomputed").fit(K[: len(X)], background=K[len(X) :])
    np.testing.assert_allclose(given.ratio_, rows.ratio_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(given.transform(K[:5])), np.abs(rows.transform(X[:5])), rtol=1e-5, atol=1e-7)


def test_learned_weights_prefer_the_kernel_that_shows_the_circles():
    data = make_hidden_circles()
    kernels = ["linear", ("homogeneous_polynomial", {"degree": 2})]
    model = KernelDiscriminativePCA(1, kernel=kernels, kernel_weights="learn", random_state=0)
    model.fit(data.target, background=data.backgrounds)
    assert model.kernel_weights_.sum() == pytest.approx(1.0)
    assert clustering_error(model.transform(data.target), data.labels) <= 0.02


def test_learned_weights_are_the_best_of_a_grid_of_fits():
    X, Y = np.random.default_rng(1).normal(size=(2, 50, 3))
    X[:, 0] *= 2.5
    X[:, 1] = X[:, 0] ** 2 + 0.3 * X[:, 1]
    given = {"kernel": ["linear", ("homogeneous_polynomial", {"degree": 2})], "epsilon": 0.1}
    model = KernelDiscriminativePCA(1, kernel_weights="learn", **given).fit(X, background=Y)
    # Weights are in units of the mean of each kernel's diagonal over the target.
    lengths = np.sum(X**2, axis=1)
    weights = np.array([[share, 4 - share] for share in range(5)]) / [lengths.mean(), np.mean(lengths**2)]
    fits = [KernelDiscriminativePCA(1, kernel_weights=own, **given).fit(X, background=Y) for own in weights]
    best = weights[np.argmax([fit.ratio_[0] for fit in fits])]
    np.testing.assert_allclose(model.kernel_weights_, best / best.sum(), rtol=1e-9)
    assert 0.0 < model.kernel_weights_[1] < 1.0


def test_a_kernel_that_is_too_narrow_has_no_ratio(rng):
    """Two samples of one distribution whose kernel is nearly the identity: held-out rows have no variance at all."""
    X, Y = rng.normal(size=(2, 100, 5)) * 60
    with pytest.warns(FindingWarning, match="too narrow"):
        model = KernelDiscriminativePCA(1, gamma=1.0).fit(X, background=Y)
    assert np.isnan(model.ratio_[0])
    # The default width is computed from the distances between rows.
    assert 0.1 < KernelDiscriminativePCA(1).fit(X, background=Y).ratio_[0] < 10


def test_rows_in_any_order_of_memory_have_the_same_answer(data):
    X, Y, _ = data
    one = KernelDiscriminativePCA(2).fit(X, background=Y)
    other = KernelDiscriminativePCA(2).fit(np.asfortranarray(X), background=np.asfortranarray(Y))
    np.testing.assert_allclose(one.ratio_, other.ratio_, rtol=1e-9)


@pytest.mark.parametrize("robust", ["rows", "cells"])
@pytest.mark.filterwarnings(f"ignore::{CautionWarning.__module__}.CautionWarning")
def test_robust_fits_of_counts_that_are_mostly_zero_are_finite(robust, rng):
    X, Y = rng.poisson(0.05, size=(2, 80, 6))
    model = KernelDiscriminativePCA(1, kernel="inhomogeneous_polynomial", degree=2, robust=robust)
    model.fit(X, background=Y)
    assert np.all(np.isfinite(model.transform(X)))
    assert np.all(np.isfinite(model.eigenvalues_))


def test_equal_rows_have_no_spread_of_rounding_in_robust_coordinates():
    """57 of 80 rows are zero. Their coordinates differ in the last digit, which must not be the unit of distances."""
    X, Y = np.random.default_rng(1).poisson(0.05, size=(2, 80, 6))
    model = KernelDiscriminativePCA(1, robust="rows").fit(X, background=Y)
    assert model.row_weights_[0].min() > 0.01
    assert model.ratio_[0] > 0.1


@pytest.mark.parametrize("unit", [1e-60, 1e50])
def test_a_linear_kernel_of_any_unit_has_the_same_ratio(unit, rng):
    """The matrix has units to the second power, and its products to the fourth or more."""
    X, Y = rng.normal(size=(10, 6)) * np.arange(1, 7), rng.normal(size=(10, 6))
    plain, other = (KernelDiscriminativePCA(1, kernel="linear").fit(by * X, background=by * Y) for by in (1.0, unit))
    np.testing.assert_allclose(other.ratio_, plain.ratio_, rtol=1e-4)


def test_a_background_without_variance_has_no_ratio_for_any_kernel(rng):
    X, Y = rng.normal(size=(40, 3)), np.ones((20, 3))
    for kernel in ("linear", "rbf", "inhomogeneous_polynomial"):
        with pytest.warns(FindingWarning, match="no ratio"):
            assert np.isnan(KernelDiscriminativePCA(1, kernel=kernel).fit(X, background=Y).ratio_[0])


def test_a_variance_at_the_level_of_rounding_makes_no_ratio():
    for own, against in ((1e-30, 1.0), (1.0, 1e-30), (0.0, 1.0)):
        assert np.isnan(log_ratio(np.array([own]), np.array([against]), np.array([own])))[0]


def test_rows_of_the_kernel_have_the_answer_of_low_rank_coordinates(data, monkeypatch):
    """Both forms of coordinates solve one problem: ratios of folds, scores, and the path up to its approximation."""
    X, *others = data
    rows = KernelDiscriminativePCA(2, epsilon=0.01).fit(X, background=others)
    monkeypatch.setattr("standout.features.LOW_RANK", 0)
    factor = KernelDiscriminativePCA(2, epsilon=0.01).fit(X, background=others)
    assert rows.feature_map_.counts
    assert not factor.feature_map_.counts
    np.testing.assert_allclose(rows.eigenvalues_, factor.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(rows.ratio_, factor.ratio_, rtol=1e-6)
    np.testing.assert_allclose(rows.transform(X), factor.transform(X), rtol=1e-5, atol=1e-6)
    for one, two in zip(*(model.held_out_scores(X, background=others) for model in (rows, factor)), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    path = KernelDiscriminativePCA(2).fit(X, background=others).path_
    monkeypatch.undo()
    near = KernelDiscriminativePCA(2).fit(X, background=others).path_
    # Only a few representatives of a path are solved.
    np.testing.assert_allclose(near.log_ratios, path.log_ratios, atol=0.3)
    np.testing.assert_allclose(near.values, path.values, rtol=0.05)


def test_covariates_beside_a_kernel_are_warned_of(rng):
    X, Y, ages, others = (rng.normal(size=(30, width)) for width in (3, 3, 1, 1))
    with pytest.warns(CautionWarning, match="linear in its coordinates.*Subtract the effects from the columns"):
        KernelDiscriminativePCA(1).fit(X, background=Y, adjust=ages, background_adjust=others)


def test_sparse_rows_far_from_zero_have_the_kernel_of_dense_rows(rng):
    X, Y = rng.normal(size=(2, 40, 3)) + 1e7
    dense, thin = (KernelDiscriminativePCA(1).fit(form(X), background=form(Y)) for form in (np.array, sparse.csr_array))
    np.testing.assert_allclose(thin.ratio_, dense.ratio_, rtol=1e-6)
