"""The measures against direct transcriptions, known cases, and the limits of float32."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from standout.metrics import captured_variance, clustering_error, principal_angles, scatter_ratio


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def three_blobs(rng):
    labels = np.repeat([0, 1, 2], [30, 20, 10])
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    return centres[labels] + rng.standard_normal((60, 2)), labels


def test_clustering_error_of_separated_groups_is_exactly_zero(rng):
    assert clustering_error(*three_blobs(rng)) == 0.0


def test_clustering_error_counts_every_mislabelled_row(rng):
    scores, labels = three_blobs(rng)
    labels[[0, 1, 40, 59]] = [1, 2, 0, 0]
    assert clustering_error(scores, labels) == pytest.approx(4 / 60)


def test_clustering_error_does_not_depend_on_the_names_of_the_groups(rng):
    scores, labels = three_blobs(rng)
    labels[:5] = 2
    expected = clustering_error(scores, labels)
    for names in (["b", "c", "a"], [7, -1, 3], [2, 0, 1]):
        assert clustering_error(scores, np.array(names)[labels]) == expected


def test_clustering_error_matches_clusters_and_labels_one_to_one():
    # Both clusters have mostly the label "a"; giving each its own majority would count nine wrong rows, not eleven.
    scores = np.repeat([[0.0], [1.0]], 20, axis=0)
    labels = ["a"] * 20 + ["a"] * 11 + ["b"] * 9
    assert clustering_error(scores, labels) == pytest.approx(11 / 40)


def test_clustering_error_of_unrelated_labels_is_that_of_guessing(rng):
    assert clustering_error(rng.standard_normal((2000, 2)), np.arange(2000) % 2) == pytest.approx(0.5, abs=0.05)


def test_scatter_ratio_is_the_printed_formula_with_cluster_means(rng):
    scores = rng.standard_normal((40, 3)) + 5.0
    clusters = KMeans(n_clusters=2, n_init=10, random_state=0).fit_predict(scores)
    total = sum(np.linalg.norm(row - scores.mean(axis=0)) ** 2 for row in scores)
    within = 0.0
    for i in (0, 1):
        members = [row for row, cluster in zip(scores, clusters, strict=True) if cluster == i]
        within += sum(np.linalg.norm(row - np.mean(members, axis=0)) ** 2 for row in members)
    assert scatter_ratio(scores, clusters) == pytest.approx(total / within, rel=1e-12)


def test_scatter_ratio_ignores_shift_and_scale(rng):
    scores, labels = three_blobs(rng)
    assert scatter_ratio(3.0 * scores - 7.0, labels) == pytest.approx(scatter_ratio(scores, labels), rel=1e-10)


def test_scatter_ratio_of_groups_shrunk_to_points_is_infinite():
    # 0.1 three times has a rounded mean that is not 0.1.
    assert scatter_ratio([[0.1]] * 3 + [[0.7]] * 3, [0, 0, 0, 1, 1, 1]) == np.inf


def test_scatter_ratio_of_a_single_group_is_one(rng):
    assert scatter_ratio(rng.standard_normal((10, 2)), ["all"] * 10) == 1.0


def test_principal_angles_of_a_known_rotation_are_found_in_ascending_order():
    turned = [[np.cos(0.9), 0.0, np.sin(0.9), 0.0], [0.0, np.cos(0.2), 0.0, np.sin(0.2)]]
    angles = principal_angles(np.eye(4)[:2], turned)
    np.testing.assert_allclose(angles, [0.2, 0.9], atol=1e-12)


def test_principal_angles_ignore_order_sign_scale_and_mixing(rng):
    first, second = rng.standard_normal((2, 7)), rng.standard_normal((3, 7))
    mixing = np.array([[0.0, -1e-9, 0.0], [1e9, 0.0, 0.0], [1.0, 0.0, 2.0]])
    np.testing.assert_allclose(principal_angles(first, mixing @ second), principal_angles(first, second), atol=1e-6)


def test_principal_angles_of_rows_of_very_different_length_keep_both_directions():
    first = [[1.0, 0.0, 0.0], [0.0, 1e-20, 0.0]]
    np.testing.assert_allclose(principal_angles(first, np.eye(3)[1:]), [0.0, np.pi / 2], atol=1e-12)


def test_a_full_basis_captures_all_the_variance(rng):
    assert captured_variance(rng.standard_normal((30, 5)), rng.standard_normal((5, 5))) == pytest.approx(1.0, rel=1e-12)


def test_captured_variance_of_principal_components_is_their_explained_share(rng):
    X = rng.standard_normal((50, 8)) * np.arange(1, 9) + 3.0
    pca = PCA(n_components=3).fit(X)
    mixed = rng.standard_normal((3, 3)) @ pca.components_
    assert captured_variance(X, mixed) == pytest.approx(pca.explained_variance_ratio_.sum(), rel=1e-12)


def test_a_repeated_component_captures_nothing_more(rng):
    X, component = rng.standard_normal((40, 6)), rng.standard_normal((1, 6))
    once = captured_variance(X, component)
    assert captured_variance(X, np.vstack([component, 2.0 * component])) == pytest.approx(once, rel=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_captured_variance_survives_float32_far_from_the_origin(rng, convert):
    X = (10_000.0 + rng.standard_normal((3000, 4)) * [3.0, 1.0, 1.0, 1.0]).astype(np.float32)
    exact = X.astype(np.float64)
    variances = exact.var(axis=0)
    # The entries are exactly representable in float64, so only the rounding of 1e4 / 1 in the mean is left.
    assert captured_variance(convert(X), np.eye(4)[:1]) == pytest.approx(variances[0] / variances.sum(), rel=1e-9)


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array", "dok_array"])
def test_captured_variance_is_the_same_for_sparse_and_dense(rng, form):
    X = rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.2)
    X[:, 4] = 0.0
    components = rng.standard_normal((2, 9))
    stored = getattr(sparse, form)(X)
    assert captured_variance(stored, components) == pytest.approx(captured_variance(X, components), rel=1e-12)


def test_captured_variance_adds_repeated_sparse_entries_and_leaves_them_to_the_caller():
    repeated = sparse.csc_array((np.ones(4), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(3, 2))
    dense = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert captured_variance(repeated, [[1.0, 0.0]]) == pytest.approx(captured_variance(dense, [[1.0, 0.0]]), rel=1e-12)
    np.testing.assert_array_equal(repeated.indices, [2, 0, 0, 1])


def test_inputs_are_left_as_they_were(rng):
    X, components = rng.standard_normal((20, 3)), rng.standard_normal((2, 3))
    stored = sparse.csc_array(X)
    for array in (X, components, stored.data):
        array.setflags(write=False)
    captured_variance(X, components)
    captured_variance(stored, components)
    principal_angles(components, components)
    scatter_ratio(X, np.arange(20) % 2)
    clustering_error(X, np.arange(20) % 2)


TWO = [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: clustering_error(TWO, [0]), ValueError, r"labels has shape \(1,\), but there are 2 rows\. Give"),
        (lambda: clustering_error(TWO, [0, 0]), ValueError, "all labels are equal, .* Give"),
        (lambda: clustering_error(TWO, ["a", None]), ValueError, "labels has missing values, .* Drop"),
        (lambda: clustering_error(TWO, [0.0, np.nan]), ValueError, "labels has missing values, .* Drop"),
        (lambda: clustering_error(TWO, np.array(["a", 1], dtype=object)), TypeError, "labels mixes types .* Give"),
        (
            lambda: clustering_error(TWO, [[0], [1]]),
            ValueError,
            r"labels has shape \(2, 1\), but there are 2 rows\. Give",
        ),
        (
            lambda: clustering_error([0.0, 1.0], [0, 1]),
            ValueError,
            "(?s)the scores cannot be used: .* Reshape",
        ),
        (
            lambda: scatter_ratio([[np.nan], [1.0]], [0, 1]),
            ValueError,
            "NaN or infinity in the scores: .* row 0, column 0. Drop",
        ),
        (lambda: scatter_ratio([["x"], ["y"]], [0, 1]), ValueError, "the scores cannot be used: .*string"),
        (lambda: scatter_ratio([[0.1]] * 3, [0, 1, 1]), ValueError, "no variance in the scores: .* Give"),
        (lambda: principal_angles(np.eye(2), np.eye(3)), ValueError, "second has 3 features, but first has 2. Give"),
        (
            lambda: principal_angles(np.zeros((1, 2)), np.eye(2)),
            ValueError,
            "only zeros in the first components, .* Give",
        ),
        (lambda: captured_variance(TWO, np.eye(2)), ValueError, "components has 2 features, but the data has 1. Give"),
        (lambda: captured_variance([[0.1]] * 3, [[1.0]]), ValueError, "no variance in the data: .* Give"),
        (
            lambda: captured_variance(np.zeros((0, 2)), np.eye(2)),
            ValueError,
            r"too few rows in the data: 0 sample\(s\), .* Give",
        ),
    ],
)
def test_input_that_cannot_be_judged_is_rejected_with_a_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()
