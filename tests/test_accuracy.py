"""What the moments and the record say of their own accuracy, and what is done where it is too little."""

import numpy as np
import pytest
from scipy import linalg

from array_libraries import Strict, Torch, dispatch  # noqa: F401
from standout import contrast
from standout.moments import RootMoments, RowMoments, ScatterMoments, gather
from standout.pencil import solve, solve_path
from weighing import random_covariance

SINGLE, DOUBLE = (float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64))
TALL = (60, 4)


# --- moments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["scatter", "root", "rows"])
@pytest.mark.parametrize("turned", [False, True])
def test_merged_moments_are_as_precise_as_the_less_precise_part(other, turned, rng):
    X = rng.normal(size=TALL)
    parts = [gather(X.astype(np.float32), kind="scatter"), gather(X, kind=other)]
    first, second = parts[::-1] if turned else parts
    assert sorted(part.precision for part in parts) == [DOUBLE, SINGLE]
    assert (first + second).precision == SINGLE
    assert (second + second + first).precision == SINGLE


@pytest.mark.parametrize("turned", [False, True])
def test_merged_roots_are_as_precise_as_the_less_precise_part(turned, rng):
    X = rng.normal(size=TALL)
    exact = gather(X, kind="root")
    rough = RootMoments(exact.count, exact.mean, exact.scatter_root, precision=1e-4)
    merged = exact + rough if turned else rough + exact
    assert isinstance(merged, RootMoments)
    assert merged.precision == 1e-4
    assert merged.root_level == rough.root_level > 1e6 * exact.root_level


def test_merged_rows_are_multiplied_in_single_precision_only_if_all_are_single(rng):
    X = rng.normal(size=TALL) + 3
    single, double = gather(X.astype(np.float32), kind="rows"), gather(X, kind="rows")
    assert (single + single).precision == SINGLE
    rounded = np.float64(np.float32(X))
    for merged, rows in ((single + double, [rounded, X]), (double + single, [X, rounded])):
        assert merged.precision == DOUBLE
        np.testing.assert_allclose(merged.covariance(), np.cov(np.vstack(rows).T, bias=True), rtol=1e-12)
    assert RowMoments(np.float32(X), X).precision == RowMoments(X, np.float32(X)).precision == DOUBLE
    exact = gather(X.astype(np.float32), kind="rows", single=False)
    assert (exact + exact).precision == (exact + single).precision == (single + exact).precision == DOUBLE


def test_mapped_moments_are_no_more_precise_than_they_were(rng):
    moments = gather(rng.normal(size=TALL).astype(np.float32))
    assert moments.mapped(rng.normal(size=(2, 4))).precision == moments.precision == SINGLE


def thin(rng, spread):
    """Rows with a spread of one in two directions, and of `spread` in the third."""
    turn = linalg.qr(rng.normal(size=(3, 3)))[0]
    return (rng.normal(size=(200, 3)) * [1.0, 1.0, spread]) @ turn


@pytest.mark.parametrize("kind", ["scatter", "root", "rows"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_root_shows_nothing_but_rounding_below_its_level(kind, dtype, rng):
    # Rounding to float32 would give exactly dependent columns a spread of their own: these are whole numbers.
    X = rng.integers(-50, 50, size=(200, 2)) @ np.array([[1, 2, 3], [2, -1, 1]])
    moments = gather(X.astype(dtype), kind=kind)
    spread = linalg.svdvals(moments.root())
    # The solvers allow for ten times the level.
    assert spread[2] < 10 * moments.root_level * spread[0]


def test_roots_keep_directions_that_are_lost_in_matrices_and_say_so(rng):
    X = thin(rng, 1e-10)
    root, matrix = gather(X, kind="root"), gather(X, kind="scatter")
    spread = linalg.svdvals(root.root())
    assert spread[2] == pytest.approx(linalg.svdvals(X - X.mean(axis=0))[2] / np.sqrt(200), rel=1e-4)
    assert spread[2] > 10 * root.root_level * spread[0]
    # A merge with a matrix has lost them, whichever comes first.
    for moments in (matrix, matrix + root, root + matrix):
        assert 1e-8 < moments.root_level < 1e-6
    # Rows have their root made in double precision, those in single precision too.
    assert gather(X.astype(np.float32), kind="rows").root_level < 1e-12
    for moments in (gather(X, kind="rows"), root + gather(X, kind="rows"), gather(X, kind="rows") + root):
        assert moments.root_level < 1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrices_keep_directions_above_their_level(dtype, rng):
    spread = 1e-5 if dtype is np.float64 else 3e-2
    moments = gather(thin(rng, spread).astype(dtype))
    assert spread / 2 > 10 * moments.root_level


# --- the record -----------------------------------------------------------------------------------------------------


def moments_of(covariance, precision):
    return ScatterMoments(10, np.zeros(len(covariance)), 10 * covariance, precision)


def grown(covariance, share):
    """Give a covariance whose variances are larger by a share: what errors of that size can do at the most."""
    return covariance + share * np.diag(np.diagonal(covariance))


# Both small enough for the change to be linear, and large enough for the change to be seen.
PRECISIONS = [(1e-6, 1e-9), (1e-9, 1e-6), (3e-7, 1e-7)]


@pytest.mark.parametrize(("of_target", "of_background"), PRECISIONS)
def test_the_estimate_for_a_ratio_is_what_errors_in_both_matrices_do_to_first_order(of_target, of_background, rng):
    a, b = 7 * random_covariance(rng, 6, boost=(9, 3)), 0.1 * random_covariance(rng, 6, boost=(1, 1, 5))
    problem = contrast.discriminative(moments_of(a, of_target), [moments_of(b, of_background)], [1.0], [0.0])
    solution = solve(problem, 3, solver="dense")
    changed = linalg.eigh(grown(a, of_target), grown(b, -of_background), eigvals_only=True)[:-4:-1]
    np.testing.assert_allclose(changed / solution.values - 1, solution.rounding, rtol=1e-3)


@pytest.mark.parametrize(("of_target", "of_background"), PRECISIONS)
def test_the_estimate_for_a_difference_is_what_errors_in_both_matrices_do_to_first_order(of_target, of_background, rng):
    a, b = 7 * random_covariance(rng, 6, boost=(9, 3)), random_covariance(rng, 6, boost=(1, 1, 5))
    problem = contrast.contrastive(moments_of(a, of_target), [moments_of(b, of_background)], [1.0], 2.0)
    solution = solve(problem, 3, solver="dense")
    # The less precise of the two counts for both, and the error is a share of the target's variance.
    least = max(of_target, of_background)
    changed = linalg.eigvalsh(grown(a, least) - 2.0 * grown(b, -least))[:-4:-1]
    variance = np.diagonal(solution.vectors.T @ a @ solution.vectors)
    np.testing.assert_allclose((changed - solution.values) / variance, solution.rounding, rtol=1e-3)


def test_without_a_background_the_estimate_is_that_of_the_target_alone(rng):
    a = random_covariance(rng, 6, boost=(9, 3))
    solution = solve(contrast.principal(moments_of(a, 1e-6)), 3, solver="dense")
    changed = linalg.eigvalsh(grown(a, 1e-6))[:-4:-1]
    np.testing.assert_allclose(changed / solution.values - 1, solution.rounding, rtol=1e-3)


@pytest.mark.parametrize(("of_target", "of_background"), [(SINGLE, DOUBLE), (DOUBLE, SINGLE)])
def test_half_of_the_digits_are_half_of_those_of_the_less_precise_dataset(of_target, of_background):
    # Two columns that differ by a share of their variance only: along their difference errors grow by its inverse.
    for share, accurate in ((1e-2, True), (1e-4, of_background == DOUBLE)):
        b = np.array([[1.0, 1.0 - share], [1.0 - share, 1.0]])
        moments = moments_of(np.eye(2), of_target), moments_of(b, of_background)
        solution = solve(contrast.discriminative(moments[0], [moments[1]], [1.0], [0.0]), 1, solver="dense")
        assert solution.solver == "dense"
        assert solution.rounding[0] == pytest.approx(of_target + of_background / share, rel=1e-6)
        assert solution.accurate == accurate


@pytest.mark.parametrize(("precision", "solver"), [(DOUBLE, "dense"), (SINGLE, "root")])
def test_a_background_that_is_singular_to_its_own_precision_is_left_to_roots(precision, solver):
    b = np.array([[1.0, 1.0 - 1e-6], [1.0 - 1e-6, 1.0]])
    problem = contrast.discriminative(moments_of(np.eye(2), DOUBLE), [moments_of(b, precision)], [1.0], [0.0])
    assert solve(problem, 1, solver="dense").solver == solver


def test_a_form_is_as_precise_as_its_least_precise_dataset(rng):
    parts = [moments_of(random_covariance(rng, 3), precision) for precision in (DOUBLE, 1e-4, SINGLE)]
    problem = contrast.discriminative(parts[0], parts, [0.2, 0.3, 0.5], [0.0] * 3)
    assert problem.b.precision == 1e-4
    assert problem.b.root_level == parts[1].root_level
    assert problem.a.precision == DOUBLE


def test_the_estimate_for_roots_is_the_same_with_target_and_background_exchanged(rng):
    # Each ratio becomes its inverse, which has the same relative error.
    first, second = (gather(rng.normal(size=(50, 4)) * rng.uniform(0.1, 9, size=4), kind="root") for _ in range(2))
    one, other = (
        solve(contrast.discriminative(target, [background], [1.0], [0.0]), 4, solver="root")
        for target, background in ((first, second), (second, first))
    )
    np.testing.assert_allclose(other.values[::-1], 1 / one.values, rtol=1e-9)
    np.testing.assert_allclose(other.rounding[::-1], one.rounding, rtol=1e-6)


def test_wide_data_are_as_precise_as_the_less_precise_dataset(rng):
    target, background = rng.normal(size=(20, 90)), rng.normal(size=(20, 90))
    rounding = {}
    for dtypes in ((np.float32, np.float32), (np.float32, np.float64), (np.float64, np.float32)):
        moments = [gather(X.astype(dtype), kind="rows") for X, dtype in zip((target, background), dtypes, strict=True)]
        problem = contrast.discriminative(moments[0], [moments[1]], [1.0], [0.5])
        rounding[dtypes] = solve(problem, 2, solver="reduced").rounding
    for found in rounding.values():
        np.testing.assert_allclose(found, rounding[np.float32, np.float32], rtol=0.01)
        assert np.all(found > SINGLE)


@pytest.mark.parametrize("shrinkage", [1e-4, 1e-8, 1e-11])
def test_wide_data_with_hardly_any_ridge_keep_their_ratios(shrinkage, rng):
    # The background has all directions of the target, so that the ridge hardly matters for the ratios.
    background = rng.normal(size=(40, 90))
    target = rng.normal(size=(20, 40)) @ (background - background.mean(axis=0))
    by_rows, by_roots = (
        contrast.discriminative(gather(target, kind=kind), [gather(background, kind=kind)], [1.0], [shrinkage])
        for kind in ("rows", "root")
    )
    by_rows, by_roots = solve(by_rows, 3, solver="reduced"), solve(by_roots, 3, solver="root")
    np.testing.assert_allclose(by_rows.values, by_roots.values, rtol=1e-8)


def test_a_ratio_of_zero_has_no_relative_error():
    # Both columns vary, but their difference does not.
    problem = contrast.discriminative(gather([[1.0, 1.0], [-1.0, -1.0]]), [moments_of(np.eye(2), DOUBLE)], [1.0], [0.0])
    solution = solve(problem, 2, solver="dense")
    np.testing.assert_allclose(solution.values, [2.0, 0.0], atol=1e-15)
    # Of the first, the variance along the vector is twice that of each column, which halves the error of the target.
    # The solver adds one unit of its own.
    np.testing.assert_allclose(solution.rounding, [2.5 * DOUBLE, 0.0])
    # Two rows vary in one direction only, so that the zero is none that was lost.
    assert solution.n_lost == 0


def test_a_value_that_is_drowned_by_the_largest_is_counted(rng):
    target = rng.normal(size=(50, 3))
    target[:2] = 1e12
    solution = solve(contrast.principal(gather(target)), 2, solver="dense")
    assert solution.n_lost == 1
    assert not solution.accurate
    by_roots = solve(contrast.principal(gather(target, kind="root")), 2, solver="root")
    assert by_roots.n_lost == 0
    # Of the sixteen digits, twelve are spent on the difference in size.
    assert 1e-5 < by_roots.rounding[1] < 1e-2


# --- paths ----------------------------------------------------------------------------------------------------------


def nearly_absent(rng, spread, n_features):
    """A target, a background that hardly varies in one of five directions, and the ratio along that direction."""
    white = rng.normal(size=(2, 40, 5))
    white -= white.mean(axis=1, keepdims=True)
    target, background = (linalg.qr(rows, mode="economic")[0] for rows in white)
    mixing = np.eye(5) + 0.3 * rng.normal(size=(5, 5))
    turn = linalg.qr(rng.normal(size=(n_features, 5)), mode="economic")[0]
    # The directions next to it change the ratio by about the square of the spread, relative to it.
    ratio = np.sum(mixing[:, 4] ** 2) / spread**2
    return target @ mixing @ turn.T, (background * [1.0, 1.0, 1.0, 1.0, spread]) @ turn.T, ratio


@pytest.mark.parametrize("kind", ["rows", "root"])
@pytest.mark.parametrize(("spread", "rtol"), [(1e-9, 1e-5), (1e-5, 1e-8)])
def test_a_path_finds_by_roots_what_is_lost_in_matrices(kind, spread, rtol, rng):
    # A spread of 1e-9 makes the matrix of the background singular. One of 1e-5 costs half of the digits of the ratio.
    *datasets, ratio = nearly_absent(rng, spread, 200 if kind == "rows" else 5)
    target, background = (gather(X, kind=kind) for X in datasets)
    pencils = [contrast.discriminative(target, [background], [1.0], [share]) for share in (0.0, 0.0, 0.5)]
    *without, last = solve_path(pencils, 1, solver="auto" if kind == "rows" else "root")
    for solution in without:
        # The data are rounded at 1e-16, which is a share of 1e-7 or 1e-11 of that spread.
        np.testing.assert_allclose(solution.values, ratio, rtol=rtol)
        assert solution.n_absent == 0
        assert solution.accurate or spread < 1e-5
    np.testing.assert_allclose(last.values, solve(pencils[2], 1).values, rtol=1e-9)


@pytest.mark.parametrize("place", [Torch, Strict])
@pytest.mark.parametrize(("spread", "rtol"), [(1e-9, 1e-5), (1e-5, 1e-8)])
def test_devices_find_by_roots_what_is_lost_in_matrices(place, spread, rtol, rng):
    library = place()
    *datasets, ratio = nearly_absent(rng, spread, 200)
    target, background = (gather(library.there(X), kind="rows") for X in datasets)
    pencils = [contrast.discriminative(target, [background], [1.0], [share]) for share in (0.0, 0.5)]
    first, last = solve_path(pencils, 1)
    for solution in (first, solve(pencils[0], 1)):
        np.testing.assert_allclose(library.back(solution.values), ratio, rtol=rtol)
        assert solution.n_absent == 0
    np.testing.assert_allclose(library.back(last.values), library.back(solve(pencils[1], 1).values), rtol=1e-9)


@pytest.mark.parametrize("n_features", [6, 200])
def test_a_path_goes_through_a_singular_background_and_on(n_features, rng):
    target, background = rng.normal(size=(50, n_features)), rng.normal(size=(50, n_features))
    target[:, 0] *= 2.0
    background[:, :2] = 1.0
    moments = [gather(X) for X in (target, background)]
    shares = [0.0, 1e-3, 0.3, 1.0]
    pencils = [contrast.discriminative(moments[0], [moments[1]], [1.0], [share]) for share in shares]
    solutions = list(solve_path(pencils, 2))
    assert [solution.singular for solution in solutions] == [True, False, False, False]
    assert [bool(np.isinf(solution.values).all()) for solution in solutions] == [True, False, False, False]
    for pencil, solution in zip(pencils, solutions, strict=True):
        alone = solve(pencil, 2)
        np.testing.assert_allclose(solution.values, alone.values, rtol=1e-9)
        np.testing.assert_allclose(solution.vectors, alone.vectors, atol=1e-8 * np.abs(alone.vectors).max())
