"""The measures against direct transcriptions, known cases, and the limits of float32."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from standout.metrics import captured_variance, clustering_error, principal_angles, scatter_ratio

TWO = [[0.0], [1.0]]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def three_blobs(rng):
    labels = np.repeat([0, 1, 2], [30, 20, 10])
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    return centres[labels] + rng.standard_normal((60, 2)), labels


def test_clustering_error_counts_every_mislabelled_row_whatever_the_names(rng):
    scores, labels = three_blobs(rng)
    assert clustering_error(scores, labels) == 0.0
    labels[[0, 1, 40, 59]] = [1, 2, 0, 0]
    for names in ([0, 1, 2], ["b", "c", "a"], [7, -1, 3]):
        assert clustering_error(scores, np.array(names)[labels]) == pytest.approx(4 / 60)


def test_clustering_error_matches_clusters_and_labels_one_to_one(rng):
    # Both clusters have mostly the label "a"; the majority of each would count nine wrong rows, not eleven.
    scores = np.repeat([[0.0], [1.0]], 20, axis=0)
    assert clustering_error(scores, ["a"] * 20 + ["a"] * 11 + ["b"] * 9) == pytest.approx(11 / 40)
    assert clustering_error(rng.standard_normal((2000, 2)), np.arange(2000) % 2) == pytest.approx(0.5, abs=0.05)


def test_scatter_ratio_is_the_printed_formula_with_cluster_means(rng):
    scores = rng.standard_normal((40, 3)) + 5.0
    clusters = KMeans(n_clusters=2, n_init=10, random_state=0).fit_predict(scores)
    total = sum(np.linalg.norm(row - scores.mean(axis=0)) ** 2 for row in scores)
    within = sum(((scores[clusters == i] - scores[clusters == i].mean(axis=0)) ** 2).sum() for i in (0, 1))
    assert scatter_ratio(scores, clusters) == pytest.approx(total / within, rel=1e-12)
    assert scatter_ratio(3.0 * scores - 7.0, clusters) == pytest.approx(total / within, rel=1e-10)
    assert scatter_ratio(scores, ["all"] * 40) == 1.0
    # 0.1 three times has a rounded mean that is not 0.1.
    assert scatter_ratio([[0.1]] * 3 + [[0.7]] * 3, [0, 0, 0, 1, 1, 1]) == np.inf


def test_principal_angles_of_a_known_rotation_are_found_in_ascending_order(rng):
    turned = [[np.cos(0.9), 0.0, np.sin(0.9), 0.0], [0.0, np.cos(0.2), 0.0, np.sin(0.2)]]
    np.testing.assert_allclose(principal_angles(np.eye(4)[:2], turned), [0.2, 0.9], atol=1e-12)
    first, second = rng.standard_normal((2, 7)), rng.standard_normal((3, 7))
    mixing = np.array([[0.0, -1e-9, 0.0], [1e9, 0.0, 0.0], [1.0, 0.0, 2.0]])
    np.testing.assert_allclose(principal_angles(first, mixing @ second), principal_angles(first, second), atol=1e-6)
    long_and_short = [[1.0, 0.0, 0.0], [0.0, 1e-20, 0.0]]
    np.testing.assert_allclose(principal_angles(long_and_short, np.eye(3)[1:]), [0.0, np.pi / 2], atol=1e-12)


def test_captured_variance_of_principal_components_is_their_explained_share(rng):
    X = rng.standard_normal((50, 8)) * np.arange(1, 9) + 3.0
    pca = PCA(n_components=3).fit(X)
    mixed = rng.standard_normal((3, 3)) @ pca.components_
    assert captured_variance(X, mixed) == pytest.approx(pca.explained_variance_ratio_.sum(), rel=1e-12)
    assert captured_variance(X, np.vstack([mixed, 2.0 * mixed[:1]])) == pytest.approx(captured_variance(X, mixed))
    assert captured_variance(X, np.eye(8)) == pytest.approx(1.0)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_captured_variance_survives_float32_far_from_the_origin_in_every_form(rng, convert):
    X = (10_000.0 + rng.standard_normal((3000, 4)) * [3.0, 1.0, 1.0, 1.0]).astype(np.float32)
    variances = X.astype(np.float64).var(axis=0)
    assert captured_variance(convert(X), np.eye(4)[:1]) == pytest.approx(variances[0] / variances.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clustering_error(TWO, [0]), r"labels has shape \(1,\), but there are 2 rows\. Give"),
        (lambda: clustering_error(TWO, [0, 0]), "labels are all equal"),
        (lambda: clustering_error(TWO, ["a", None]), "labels has missing values"),
        (lambda: clustering_error(TWO, [0.0, np.nan]), "labels has missing values"),
        (lambda: clustering_error([0.0, 1.0], [0, 1]), r"scores has shape \(2,\)"),
        (lambda: scatter_ratio([[np.nan], [1.0]], [0, 1]), "scores has shape .* NaN"),
        (lambda: scatter_ratio([["x"], ["y"]], [0, 1]), "scores is not a matrix of numbers"),
        (lambda: scatter_ratio([[0.1]] * 3, [0, 1, 1]), "scores has no variance"),
        (lambda: principal_angles(np.eye(2), np.eye(3)), "second has 3 columns, but `first` has 2"),
        (lambda: principal_angles(np.zeros((1, 2)), np.eye(2)), "first has only zeros"),
        (lambda: captured_variance(TWO, np.eye(2)), "components has 2 columns, but `X` has 1"),
        (lambda: captured_variance([[0.1]] * 3, [[1.0]]), "X has no variance"),
    ],
)
def test_bad_input_is_named_with_its_parameter(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
