"""Kernels as coordinates: pivots and factors against the kernel matrix they stand for."""

import numpy as np
import pytest
from scipy import linalg

from array_libraries import Strict, Torch, dispatch  # noqa: F401
from standout.features import chosen_landmarks, pivoted_cholesky, random_pivots, resolve_kernel

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
def test_random_pivots_have_the_factor_of_their_kernel_matrix(rank, rng):
    rows = with_far_rows(rng)
    pivots = random_pivots(SQUARE, rows, rank, rng, 1e-300)
    kernel = SQUARE(rows[pivots.chosen], rows[pivots.chosen])
    scale = np.sqrt(np.diagonal(kernel))
    np.testing.assert_array_equal(pivots.factor, np.tril(pivots.factor))
    np.testing.assert_allclose(
        pivots.factor @ pivots.factor.T / np.outer(scale, scale), kernel / np.outer(scale, scale), atol=1e-13
    )


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_chosen_by_how_much_of_the_kernel_they_still_have(seed):
    rng = np.random.default_rng(seed)
    # Nearly all of the trace is that of three rows: the first choice is one of them.
    chosen = random_pivots(SQUARE, with_far_rows(rng), 1, rng, 1e-300).chosen
    assert set(chosen) < {0, 1, 2}


def test_near_copies_are_no_landmarks(rng):
    rows = np.repeat(rng.normal(size=(10, 2)), 4, axis=0) + 1e-8 * rng.normal(size=(40, 2))
    pivots = random_pivots(resolve_kernel("rbf"), rows, 40, rng, 1e-9)
    assert len(set(pivots.chosen // 4)) == len(pivots.chosen) == 10


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
def test_no_more_pivots_are_chosen_than_the_tolerance_asks_for(tol, rng):
    rows = rng.normal(size=(300, 3))
    kernel = resolve_kernel("rbf", gamma=0.05)
    pivots = random_pivots(kernel, rows, 300, rng, tol)
    coordinates = linalg.solve_triangular(pivots.factor, kernel(rows[pivots.chosen], rows), lower=True)
    left = 1 - np.sum(coordinates**2) / 300
    assert left < tol
    # They are chosen in rounds, of 32 or a tenth of all; a round is not begun without need.
    without = coordinates[: -min(len(pivots.chosen), 32)]
    assert 1 - np.sum(without**2) / 300 > tol


def test_a_pivoted_factor_is_that_of_the_matrix_in_any_unit_and_leaves_it_as_it_was(rng):
    rows = rng.normal(size=(30, 4))
    # In C order it is worked in, without a copy.
    kernel = np.ascontiguousarray(resolve_kernel("linear")(rows, rows))
    expected, order = pivoted_cholesky(kernel.copy(), 1e-12)
    assert expected.shape == (30, 4)
    np.testing.assert_array_equal(np.triu(expected[order], 1), 0.0)
    for unit in (2.0**-60, 2.0**60):
        matrix = unit * kernel
        factor, pivots = pivoted_cholesky(matrix, 1e-12)
        np.testing.assert_array_equal(matrix, unit * kernel)
        np.testing.assert_array_equal(pivots, order)
        np.testing.assert_allclose(factor @ factor.T, unit * kernel, atol=1e-13 * unit * kernel.max())
