"""Kernels as coordinates: landmarks and factors against the kernel matrix they stand for."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.metrics.pairwise import pairwise_kernels

from array_libraries import Strict, Torch, dispatch  # noqa: F401
from standout import KernelDiscriminativePCA
from standout.features import (
    Kernel,
    SumKernel,
    chosen_landmarks,
    exact_coordinates,
    fourier_features,
    given_landmarks,
    resolve_kernel,
)

SQUARE = resolve_kernel("inhomogeneous_polynomial", degree=2)


def with_far_rows(rng):
    """Rows of which three are so large that the rounding of their kernel exceeds the kernel of all others."""
    rows = rng.normal(size=(40, 30))
    rows[:3] *= 1e4
    return rows


@pytest.mark.parametrize("place", [None, Torch, Strict])
@pytest.mark.parametrize("seed", range(5))
def test_no_row_is_chosen_twice_however_large_the_rounding_of_its_kernel(place, seed):
    rng = np.random.default_rng(seed)
    rows = with_far_rows(rng)
    there, back = (np.asarray, np.asarray) if place is None else (place().there, place().back)
    # The kernel has more directions than rows, so that all rows are chosen.
    landmarks = chosen_landmarks(SQUARE, [there(rows)], 40, 1e-300, rng).landmarks
    chosen = back(landmarks)
    assert len(np.unique(chosen, axis=0)) == len(chosen) == 40


@pytest.mark.parametrize("rank", [5, 40])
def test_landmarks_have_the_factor_of_their_kernel_matrix(rank, rng):
    mapping = chosen_landmarks(SQUARE, [with_far_rows(rng)], rank, 1e-300, rng)
    kernel = SQUARE(mapping.landmarks, mapping.landmarks)
    scale = np.sqrt(np.outer(np.diagonal(kernel), np.diagonal(kernel)))
    np.testing.assert_array_equal(mapping.factor, np.tril(mapping.factor))
    np.testing.assert_allclose(mapping.factor @ mapping.factor.T / scale, kernel / scale, atol=1e-13)


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_chosen_by_how_much_of_the_kernel_they_still_have(seed):
    rng = np.random.default_rng(seed)
    rows = with_far_rows(rng)
    # Nearly all of the trace is that of three rows: the first choice is one of them.
    (first,) = chosen_landmarks(SQUARE, [rows], 1, 1e-300, rng).landmarks
    assert first.tolist() in rows[:3].tolist()


def test_near_copies_are_no_landmarks(rng):
    rows = np.repeat(rng.normal(size=(10, 2)), 4, axis=0) + 1e-8 * rng.normal(size=(40, 2))
    landmarks = chosen_landmarks(resolve_kernel("rbf"), [rows], 40, 1e-9, rng).landmarks
    assert len(landmarks) == len(np.unique(landmarks.round(6), axis=0)) == 10


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
def test_no_more_landmarks_are_chosen_than_the_tolerance_asks_for(tol, rng):
    rows = rng.normal(size=(300, 3))
    mapping = chosen_landmarks(resolve_kernel("rbf", gamma=0.05), [rows], 300, tol, rng)
    covered = np.sum(mapping.transform(rows) ** 2, axis=0) / 300
    assert 1 - np.sum(covered) < tol
    # They are chosen in rounds of 32, and no round is begun without need.
    assert 1 - np.sum(covered[:-32]) > tol


def test_landmarks_are_the_same_in_any_unit(rng):
    rows = rng.normal(size=(30, 4))
    kernel = resolve_kernel("linear")
    plain = given_landmarks(kernel, rows)
    assert plain.n_coordinates == 4
    for unit in (2.0**-40, 2.0**40):
        scaled = given_landmarks(kernel, unit * rows)
        np.testing.assert_array_equal(scaled.landmarks, unit * plain.landmarks)
        np.testing.assert_allclose(scaled.factor, unit * plain.factor, rtol=1e-12)


def test_landmarks_refuse_a_kernel_that_exceeds_its_diagonal(rng):
    # No entry of a positive semidefinite matrix is larger than all of its diagonal.
    kernel = resolve_kernel(lambda x, z: 1.0 + np.sum(np.abs(x - z)))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        chosen_landmarks(kernel, [rng.normal(size=(20, 2))], 10, 1e-9, rng)


@pytest.mark.parametrize("rank", [1, 5, None])
def test_the_residual_of_exact_coordinates_is_the_share_of_the_trace_that_they_leave_out(rank, rng):
    datasets = [rng.normal(size=(20, 8)), 3 * rng.normal(size=(15, 8))]
    rows = np.vstack(datasets)
    kernel = resolve_kernel("linear")
    _, coordinates, residual = exact_coordinates(kernel, datasets, np.arange(35), 1e-12, rank or 8)
    assert residual == pytest.approx(1 - np.sum(np.vstack(coordinates) ** 2) / np.sum(rows**2), abs=1e-14)
    assert (residual > 0.1) == (rank is not None)


@pytest.mark.parametrize("seed", range(20))
def test_no_residual_is_negative(seed):
    rows = np.random.default_rng(seed).normal(size=(30, 3))
    assert exact_coordinates(resolve_kernel("linear"), [rows], np.arange(30), 1e-12, 3)[2] >= 0.0


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [None, 0.7])
def test_products_of_fourier_features_are_the_kernel_on_average(kernel, gamma, rng):
    rows = rng.normal(size=(20, 4))
    resolved = resolve_kernel(kernel, gamma=gamma)
    features = fourier_features(resolved, 4, 20_000, rng).transform(rows)
    # Each product is a mean of 20,000 numbers of size 1: five standard errors.
    np.testing.assert_allclose(features @ features.T, resolved(rows, rows), atol=5 / np.sqrt(20_000))


@pytest.mark.filterwarnings("ignore:1 of the values are zero")  # the second value is lost beside the first
def test_the_bounded_part_of_a_sum_does_not_set_the_tolerance_for_all_of_it(rng):
    # Beside values of 1e10, a tolerance made for values of 1 would leave out all that is nonlinear.
    units = np.array([1e5, 1.0, 1.0])
    target, background = rng.normal(size=(40, 3)) * [1, 1, 3] * units, rng.normal(size=(30, 3)) * units
    model = KernelDiscriminativePCA(2, kernel=["linear", "rbf"], epsilon="scaled")
    exact = KernelDiscriminativePCA(2, kernel=["linear", "rbf"], epsilon="scaled", tol=1e-15)
    by_default = model.fit(target, background=background)
    assert type(by_default.feature_map_) is type(exact.fit(target, background=background).feature_map_)
    np.testing.assert_allclose(by_default.eigenvalues_, exact.eigenvalues_, rtol=1e-6)


# --- kernels --------------------------------------------------------------------------------------------------------


def test_the_diagonal_of_a_sum_of_kernels_is_weighted_too(rng):
    rows = rng.normal(size=(9, 3))
    kernel = SumKernel((resolve_kernel("linear"), resolve_kernel("rbf")), np.array([0.3, 2.0]))
    np.testing.assert_allclose(kernel.diagonal(rows), np.diagonal(kernel(rows, rows)), rtol=1e-12)


@pytest.mark.parametrize("metric", ["linear", "rbf", "poly", "sigmoid", "cosine", "laplacian"])
def test_kernels_are_those_of_scikit_learn_for_rows_of_zeros_too(metric, rng):
    X, Z = np.vstack([np.zeros(3), rng.normal(size=(5, 3))]), np.vstack([rng.normal(size=(3, 3)), np.zeros(3)])
    np.testing.assert_allclose(resolve_kernel(metric)(X, Z), pairwise_kernels(X, Z, metric=metric), atol=1e-14)


def test_rounding_makes_no_kernel_of_differences_larger_than_one(rng):
    rows = 1e3 + rng.normal(size=(50, 4))
    values = resolve_kernel("rbf", gamma=1e6)(rows, rows)
    assert values.max() <= 1.0


@pytest.mark.parametrize("options", [{"coef0": -4.0}, {"degree": 2.5, "coef0": 40.0}, {"degree": 2}, {"coef0": 0.0}])
def test_a_polynomial_that_is_said_to_be_semidefinite_is_so(options, rng):
    kernel = resolve_kernel("polynomial", gamma=1.0, **options)
    rows = rng.normal(size=(40, 2))
    values = linalg.eigvalsh(kernel(rows, rows))
    assert kernel.semidefinite == bool(values[0] > -1e-12 * values[-1])


class Counted(Kernel):
    """A linear kernel that knows of how many rows it was asked."""

    def __init__(self):
        self.kernel, self.n_rows = resolve_kernel("linear"), 0

    def __call__(self, X, Z):
        self.n_rows = max(self.n_rows, len(X))
        return self.kernel(X, Z)

    def diagonal(self, X):
        return self.kernel.diagonal(X)


def test_landmarks_are_chosen_among_some_of_many_rows_and_any_of_the_smallest_dataset(rng):
    kernel = Counted()
    # The one row of the second dataset is all that there is of the second column.
    datasets = [rng.normal(size=(60_000, 2)) * [1, 0], np.array([[0.0, 1.0]])]
    mapping = chosen_landmarks(kernel, datasets, 40, 1e-9, rng)
    assert kernel.n_rows <= 20_001
    assert len(mapping.landmarks) == 2
    assert datasets[1].tolist()[0] in mapping.landmarks.tolist()
