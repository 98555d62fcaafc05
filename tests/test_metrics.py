"""The clustering error of known groups, and its errors."""

import numpy as np
import pytest

from standout.metrics import clustering_error

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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clustering_error(TWO, [0]), r"labels has shape \(1,\), but the view has 2 rows"),
        (lambda: clustering_error(TWO, [0, 0]), "labels are all equal"),
        (lambda: clustering_error(TWO, ["a", None]), "labels has missing values"),
        (lambda: clustering_error(TWO, [0.0, np.nan]), "labels has missing values"),
        (lambda: clustering_error([0.0, 1.0], [0, 1]), "the view"),
        (lambda: clustering_error([[np.nan], [1.0]], [0, 1]), "NaN or infinity in the view"),
        (lambda: clustering_error([["x"], ["y"]], [0, 1]), "the view"),
    ],
)
def test_bad_input_is_named_with_its_parameter(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
