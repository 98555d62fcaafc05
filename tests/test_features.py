"""Kernels as coordinates: factors, landmarks and random features against the kernel matrix they stand for."""

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.metrics.pairwise import pairwise_kernels

from array_libraries import library  # noqa: F401
from standout.features import (
    SumKernel,
    fit_coordinates,
    median_distance,
    resolve_kernel,
    sample,
)
from standout.sources import InMemory, open_dataset

SQUARE = resolve_kernel("inhomogeneous_polynomial", degree=2)


def sources(*datasets):
    return [InMemory(rows, f"dataset {number}") for number, rows in enumerate(datasets)]


def landmarks_of(kernel, rows, rank, tol=1e-300, seed=0):
    return fit_coordinates(sources(rows), kernel, approximation="pivoted", rank=rank, tol=tol, seed=seed)


def with_far_rows(rng):
    """Return rows, three of which are so large that the rounding of their kernel exceeds the kernel of all others."""
    rows = rng.normal(size=(40, 30))
    rows[:3] *= 1e4
    return rows


# --- coordinates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly", "cosine", ["rbf", ("poly", {"degree": 2})]])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_exact_coordinates_have_the_kernel_as_their_inner_product(kernel, form, rng):
    target, background, new = rng.normal(size=(30, 4)), rng.normal(size=(20, 4)) + 1, rng.normal(size=(7, 4))
    target[rng.random(target.shape) < 0.3] = 0.0
    given = sources(form(target), form(background))
    given[0].weights = rng.random(30)
    resolved = resolve_kernel(kernel, rows=sample(given))
    found = fit_coordinates(given, resolved)
    both = np.vstack([target, background])
    coordinates = np.vstack([source.loaded().rows for source in found.sources])
    matrix = resolved(both, both)
    np.testing.assert_allclose(coordinates @ coordinates.T, matrix, atol=1e-7 * matrix.max())
    # New rows have the right inner products with all fitted rows.
    mapped = found.map.transform(form(new))
    np.testing.assert_allclose(mapped @ coordinates.T, resolved(new, both), atol=1e-6 * matrix.max())
    assert found.approximation == "exact"
    assert found.residual < 1e-7
    np.testing.assert_array_equal(found.sources[0].weights, given[0].weights)


@pytest.mark.parametrize("rank", [1, 5])
def test_the_residual_is_the_share_of_the_trace_that_coordinates_leave_out(rank, rng):
    rows = rng.normal(size=(35, 8))
    for approximation in ("exact", "pivoted"):
        found = fit_coordinates(sources(rows), resolve_kernel("rbf"), approximation=approximation, rank=rank)
        covered = np.sum(found.map.transform(rows) ** 2) / 35
        assert found.map.n_coordinates == rank
        assert found.residual == pytest.approx(1 - covered, abs=1e-12)


def test_a_kernel_that_is_not_semidefinite_is_refused(rng):
    rows = rng.normal(size=(40, 3))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        fit_coordinates(sources(rows), resolve_kernel("sigmoid", gamma=1.0))
    indefinite = resolve_kernel(lambda x, z: 1.0 + np.sum(np.abs(x - z)))
    for approximation in ("exact", "pivoted", rows[:10]):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            fit_coordinates(sources(rows), indefinite, approximation=approximation)


def test_a_precomputed_kernel_is_used_by_its_columns(rng):
    rows = rng.normal(size=(25, 3))
    matrix = resolve_kernel("rbf", gamma=0.3)(rows, rows)
    given = sources(matrix[:10], matrix[10:])
    found = fit_coordinates(given, resolve_kernel("precomputed"))
    coordinates = np.vstack([source.rows for source in found.sources])
    np.testing.assert_allclose(coordinates @ coordinates.T, matrix, atol=1e-8)
    np.testing.assert_allclose(found.map.transform(matrix), coordinates, atol=1e-6)
    with pytest.raises(ValueError, match="25 columns, but there are 10 rows"):
        fit_coordinates(given[:1], resolve_kernel("precomputed"))
    with pytest.raises(ValueError, match="the kernel is precomputed"):
        fit_coordinates(given, resolve_kernel("precomputed"), approximation="pivoted")


def test_datasets_that_are_read_in_parts_have_the_coordinates_of_the_whole(rng):
    rows = rng.normal(size=(500, 3))
    given = [open_dataset(np.asarray(rows, dtype=">f8"), "the data")]
    found = fit_coordinates(given, resolve_kernel("rbf"), approximation="pivoted", rank=20)
    np.testing.assert_allclose(found.sources[0].loaded().rows, found.map.transform(rows), rtol=1e-12)
    with pytest.raises(TypeError, match="can be read only once"):
        fit_coordinates([open_dataset(iter([rows]), "the data")], resolve_kernel("rbf"))


# --- landmarks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_no_row_is_chosen_twice_however_large_the_rounding_of_its_kernel(seed):
    # The kernel has more directions than rows, so that all rows are chosen.
    chosen = landmarks_of(SQUARE, with_far_rows(np.random.default_rng(seed)), 40, seed=seed).map.landmarks
    assert len(np.unique(chosen, axis=0)) == len(chosen) == 40


@pytest.mark.parametrize("rank", [5, 40])
def test_landmarks_have_the_factor_of_their_kernel_matrix(rank, rng):
    mapping = landmarks_of(SQUARE, with_far_rows(rng), rank).map
    kernel = SQUARE(mapping.landmarks, mapping.landmarks)
    scale = np.sqrt(np.outer(np.diagonal(kernel), np.diagonal(kernel)))
    np.testing.assert_array_equal(mapping.factor, np.tril(mapping.factor))
    np.testing.assert_allclose(mapping.factor @ mapping.factor.T / scale, kernel / scale, atol=1e-13)


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_chosen_by_their_share_of_the_kernel_that_is_left(seed):
    rows = with_far_rows(np.random.default_rng(seed))
    # Three rows have nearly all of the trace, so the first choice is one of them.
    (first,) = landmarks_of(SQUARE, rows, 1, seed=seed).map.landmarks
    assert first.tolist() in rows[:3].tolist()


def test_near_copies_are_not_landmarks(rng):
    rows = np.repeat(rng.normal(size=(10, 2)), 4, axis=0) + 1e-8 * rng.normal(size=(40, 2))
    chosen = landmarks_of(resolve_kernel("rbf"), rows, 40, tol=1e-9).map.landmarks
    assert len(chosen) == len(np.unique(chosen.round(6), axis=0)) == 10
    given = fit_coordinates(sources(rows), resolve_kernel("linear"), approximation=np.tile(rows[:1], (3, 1)))
    assert given.map.n_coordinates == 1


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
def test_no_more_landmarks_are_chosen_than_the_tolerance_asks_for(tol, rng):
    rows = rng.normal(size=(300, 3))
    mapping = landmarks_of(resolve_kernel("rbf", gamma=0.05), rows, 300, tol=tol).map
    covered = np.sum(mapping.transform(rows) ** 2, axis=0) / 300
    assert 1 - np.sum(covered) < tol
    # Landmarks are chosen in rounds of 32, and no round is unnecessary.
    assert 1 - np.sum(covered[:-32]) > tol


def test_landmarks_are_chosen_among_some_of_many_rows_and_from_the_smallest_dataset(rng):
    # Only the single row of the second dataset has a nonzero value in the second column.
    datasets = [rng.normal(size=(60_000, 2)) * [1, 0], np.array([[0.0, 1.0]])]
    assert sample(sources(*datasets), 20_000).shape[0] <= 20_001
    found = fit_coordinates(sources(*datasets), resolve_kernel("linear"), approximation="pivoted", rank=40)
    assert datasets[1].tolist()[0] in found.map.landmarks.tolist()


# --- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "chi2"])
def test_kernels_are_those_of_scikit_learn_for_rows_of_zeros_too(metric, rng):
    X, Z = (np.vstack([np.zeros(3), abs(rng.normal(size=(5, 3)))]) for _ in range(2))
    kernel = resolve_kernel(metric)
    expected = pairwise_kernels(X, Z, metric=metric)
    for form in (np.asarray, sparse.csr_matrix):
        if metric == "chi2" and form is not np.asarray:
            continue
        np.testing.assert_allclose(kernel(form(X), form(Z)), expected, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(kernel(X, X)), atol=1e-14)


def test_a_sum_of_kernels_is_weighted_and_can_be_evaluated_at_any_mixture(rng):
    rows = rng.normal(size=(9, 3))
    kernel = resolve_kernel(["linear", ("gaussian", {"bandwidth": 2.0})], kernel_weights=[3, 1])
    expected = 0.75 * rows @ rows.T + 0.25 * pairwise_kernels(rows, metric="rbf", gamma=1 / 8)
    assert isinstance(kernel, SumKernel)
    np.testing.assert_allclose(kernel(rows, rows), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(rows), np.diagonal(expected), rtol=1e-12)
    other = SumKernel(kernel.kernels, np.array([0.0, 2.0]))
    np.testing.assert_allclose(other(rows, rows), 2 * pairwise_kernels(rows, metric="rbf", gamma=1 / 8))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 60.0, 1e8])
@pytest.mark.parametrize("kernel", ["rbf", "gaussian", "laplacian"])
def test_the_default_bandwidth_follows_the_data(scale, kernel, rng):
    rows = rng.normal(size=(100, 5))
    plain, scaled = (resolve_kernel(kernel, rows=part)(part, part) for part in (rows, scale * rows))
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)
    # The kernel is neither the identity nor constant.
    assert 0.2 < np.median(plain) < 0.8
    assert median_distance(scale * rows) == pytest.approx(
        scale * np.median(linalg.norm(rows[:, None] - rows, axis=2)), rel=0.05
    )


def test_the_first_pivot_of_equal_ones_is_the_first_row(rng):
    """The kernel of a row with itself is 1 for every row: rounding must not decide."""
    rows = 30.0 * rng.normal(size=(60, 6)) + 300.0
    for _ in range(20):
        rows = np.roll(rows, 1, axis=0)
        found = fit_coordinates([InMemory(rows)], resolve_kernel("rbf", gamma=1e-4), rank=1)
        np.testing.assert_array_equal(found.map.landmarks, rows[:1])


def test_equal_rows_have_a_bandwidth(rng):
    assert median_distance(np.ones((4, 2))) == 1.0
    assert median_distance(np.ones((1, 2))) == 1.0
    rows = 1e-7 * np.eye(20, 4)
    assert median_distance(rows) == pytest.approx(1e-7)
    assert np.all(np.isfinite(resolve_kernel("rbf", rows=np.ones((4, 2)))(np.ones((4, 2)), np.zeros((2, 2)))))


def test_far_from_zero_distances_keep_their_digits(rng):
    rows = rng.integers(-100, 100, size=(50, 4)) / 64
    near, far = (resolve_kernel("rbf", gamma=0.5, rows=part)(part, part) for part in (rows, rows + 1e8))
    np.testing.assert_allclose(far, near, rtol=1e-9)
    assert resolve_kernel("rbf", gamma=1e6)(rows + 1e3, rows + 1e3).max() <= 1.0
    wide = np.vstack([rows, rows + 1e11])
    both = resolve_kernel("rbf", gamma=0.5, rows=wide)(wide, wide)
    np.testing.assert_allclose(both, linalg.block_diag(near, near), rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "rbff"}, "kernel='rbff' is not a kernel"),
        ({"kernel": []}, "empty list"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma=-1.0 is not a number in"),
        ({"kernel": "gaussian", "kernel_params": {"bandwidth": "wide"}}, "bandwidth='wide' is not"),
        ({"kernel": "rbf", "kernel_params": {"degree": 2}}, "does not have parameter 'degree'"),
        ({"kernel": ["rbf", "linear"], "kernel_weights": [1.0]}, "one non-negative number for each of 2"),
        ({"kernel": ["rbf"], "kernel_weights": [-1.0]}, "kernel_weights"),
    ],
)
def test_what_is_not_a_kernel_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        resolve_kernel(**options)


def test_data_for_which_a_kernel_is_not_defined_are_refused(rng):
    rows = rng.normal(size=(10, 3))
    with pytest.raises(ValueError, match="'chi2' cannot be computed from these data"):
        fit_coordinates(sources(rows), resolve_kernel("chi2"))
    with pytest.raises(ValueError, match="not symmetric"):
        fit_coordinates(sources(rows), resolve_kernel(lambda x, z: x[0] - z[0]))
    with pytest.raises(ValueError, match="not finite"), np.errstate(over="ignore"):
        fit_coordinates(sources(rows * 1e200), SQUARE)


# --- other libraries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "cosine"])
@pytest.mark.parametrize("approximation", ["exact", "pivoted"])
def test_foreign_rows_have_the_same_coordinates(library, kernel, approximation, rng):  # noqa: F811
    rows = rng.normal(size=(40, 3))
    resolved, foreign = (resolve_kernel(kernel, rows=there(rows)) for there in (np.asarray, library.there))
    options = {"approximation": approximation, "rank": 12}
    expected = fit_coordinates(sources(rows), resolved, **options).map
    found = fit_coordinates([InMemory(library.there(rows))], foreign, **options).map
    assert found.n_coordinates == expected.n_coordinates
    moved, plain = library.back(found.transform(library.there(rows))), expected.transform(rows)
    if kernel == "cosine":
        # All rows have the same length, so rounding decides which row is chosen first.
        moved, plain = moved @ moved.T, plain @ plain.T
    np.testing.assert_allclose(moved, plain, atol=1e-6)


def test_a_kernel_without_a_formula_for_other_libraries_is_refused(library, rng):  # noqa: F811
    with pytest.raises(TypeError, match="'chi2' needs NumPy arrays"):
        resolve_kernel("chi2")(library.there(np.ones((2, 2))), library.there(np.ones((2, 2))))
