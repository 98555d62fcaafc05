"""No wrong number without a word: data whose entries differ so much in size that double precision is tried hard."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from array_libraries import Torch, dispatch  # noqa: F401
from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, scan

TRUE_RATIO = 2.90201713  # by a singular value decomposition of the rows


def with_placeholders(size, count=4):
    """A target with a placeholder for missing values in some rows, and a background without."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 2]
    Y = rng.normal(size=(150, 5)) * [3, 1, 1, 1, 1]
    X[:count] = -size
    return X, Y


# --- one value dwarfs the rest --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e7, 1e8, 999999999.0])
def test_ratios_beside_a_placeholder_are_right(size):
    X, Y = with_placeholders(size)
    model = DiscriminativePCA(2, shrinkage=0.05).fit(X, background=Y)
    np.testing.assert_allclose(model.eigenvalues_[1], TRUE_RATIO, rtol=1e-6)
    alone = DiscriminativePCA(2).fit(X)
    reference = PCA(2, svd_solver="full").fit(X).explained_variance_ * 199 / 200
    np.testing.assert_allclose(alone.eigenvalues_, reference, rtol=1e-6)


@pytest.mark.parametrize("size", [1e10, 1e12, 1e15, 1e20])
def test_larger_placeholders_give_a_warning(size):
    X, Y = with_placeholders(size)
    for background in (Y, None):
        with pytest.warns(UserWarning, match="stand for missing values"):
            DiscriminativePCA(2, shrinkage=0.05).fit(X, background=background)


@pytest.mark.parametrize("size", [1e8, 999999999.0, 1e10, 1e12])
def test_batches_cannot_be_read_again_and_give_a_warning(size):
    X, Y = with_placeholders(size)
    with pytest.warns(UserWarning, match="stand for missing values"):
        DiscriminativePCA(2, shrinkage=0.05).fit(iter(np.array_split(X, 4)), background=Y)
    with pytest.warns(UserWarning, match="stand for missing values"):
        ContrastivePCA(2, alpha=1.0).fit(X, background=Y)


def test_other_array_libraries_solve_placeholders_as_numpy_does():
    library = Torch()
    X, Y = with_placeholders(999999999.0)
    model = DiscriminativePCA(2, shrinkage=0.05).fit(library.there(X), background=library.there(Y))
    np.testing.assert_allclose(library.back(model.eigenvalues_)[1], TRUE_RATIO, rtol=1e-6)


# --- data that are read in parts ------------------------------------------------------------------------------------


def ill_conditioned(rng, n_features=6, smallest=1e-7):
    turn = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    spread = np.geomspace(1, smallest, n_features)
    X = (rng.normal(size=(300, n_features)) * spread * [*[1] * (n_features - 1), 2]) @ turn
    return X, (rng.normal(size=(300, n_features)) * spread) @ turn


def test_files_whose_number_of_rows_is_unknown_are_read_again_as_roots(tmp_path, rng):
    X, Y = ill_conditioned(rng)
    for name, rows in (("x", X), ("y", Y)):
        frame = pd.DataFrame(rows, columns=list("abcdef"))
        frame.to_csv(tmp_path / f"{name}.csv", index=False, float_format="%.17g")
    expected = DiscriminativePCA(2, shrinkage=0.0, solver="root").fit(X, background=Y).eigenvalues_
    files = (scan(tmp_path / f"{name}.csv") for name in "xy")
    model = DiscriminativePCA(2, shrinkage=0.0).fit(next(files), background=next(files))
    assert model.solver_ == "root"
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["frame", "unknown chunks"])
def test_dask_collections_of_unknown_length_are_read_again_as_roots(kind, rng):
    dask_frames = pytest.importorskip("dask.dataframe")
    X, Y = ill_conditioned(rng)
    expected = DiscriminativePCA(2, shrinkage=0.0, solver="root").fit(X, background=Y).eigenvalues_
    parts = [dask_frames.from_pandas(pd.DataFrame(rows, columns=list("abcdef")), npartitions=3) for rows in (X, Y)]
    if kind == "unknown chunks":
        parts = [part.values for part in parts]
    model = DiscriminativePCA(2, shrinkage=0.0).fit(parts[0], background=parts[1])
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-6)


# --- far from zero, very large, very small --------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1e8, 1e12, 1e14])
@pytest.mark.parametrize("solver", ["auto", "root"])
def test_partial_fit_far_from_zero_loses_no_digits(offset, solver, rng):
    # Far from zero the rows are rounded; taking the offset off again is exact.
    X, Y = (rng.normal(size=(400, 4)) * scale + offset for scale in ([4, 3, 2, 1], [1, 2, 3, 4]))
    expected = DiscriminativePCA(2).fit(X - offset, background=Y - offset)
    model = DiscriminativePCA(2, solver=solver)
    for some, others in zip(np.array_split(X, 20), np.array_split(Y, 20), strict=True):
        model.partial_fit(some, background=others)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(model.shrinkage_, expected.shrinkage_, rtol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "dense", "root"])
@pytest.mark.parametrize(("of_target", "of_background"), [(1e100, 1e-100), (1e-100, 1e100)])
def test_a_ratio_beyond_the_range_of_numbers_is_refused(solver, of_target, of_background, rng):
    X, Y = rng.normal(size=(2, 60, 4))
    with pytest.raises(ValueError, match="out of the range"):
        DiscriminativePCA(2, shrinkage=0.1, solver=solver).fit(X * of_target, background=Y * of_background)


@pytest.mark.parametrize("solver", ["auto", "dense", "root"])
@pytest.mark.parametrize(
    ("of_target", "of_background"), [(1e150, 1e150), (1e-150, 1e-150), (1e70, 1e-70), (1e-70, 1e70), (1e-30, 1.0)]
)
def test_datasets_of_any_size_have_the_same_components(solver, of_target, of_background, rng):
    X, Y = rng.normal(size=(2, 60, 4)) * [4, 3, 2, 1]
    usual = DiscriminativePCA(2, shrinkage=0.1).fit(X, background=Y)
    model = DiscriminativePCA(2, shrinkage=0.1, solver=solver).fit(X * of_target, background=Y * of_background)
    ratio = (of_target / of_background) ** 2
    np.testing.assert_allclose(model.eigenvalues_, usual.eigenvalues_ * ratio, rtol=1e-9)
    np.testing.assert_allclose(model.components_ * of_background, usual.components_, atol=1e-9)
    np.testing.assert_allclose(model.patterns_ / of_background, usual.patterns_, atol=1e-9)
    alone = DiscriminativePCA(2, solver=solver).fit(X * of_target)
    np.testing.assert_allclose(alone.eigenvalues_ / of_target**2, DiscriminativePCA(2).fit(X).eigenvalues_, rtol=1e-9)


def test_an_epsilon_below_rounding_gives_a_warning(rng):
    X, Y = rng.normal(size=(2, 60, 4)) * [4, 3, 2, 1]
    with pytest.warns(UserWarning, match="epsilon"):
        KernelDiscriminativePCA(2, epsilon=1e-100).fit(X, background=Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelDiscriminativePCA(2, epsilon=1e-6).fit(X, background=Y)


@pytest.mark.parametrize("shift", [1e5, 1e7])
@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
def test_rows_in_two_places_far_apart_are_solved(shift, shrinkage, rng):
    X, Y = rng.normal(size=(2, 400, 4)) * [4, 3, 2, 1]
    X[::2] += shift
    Y[::2] += shift
    expected = DiscriminativePCA(2, shrinkage=shrinkage, solver="root").fit(X, background=Y).eigenvalues_
    found = DiscriminativePCA(2, shrinkage=shrinkage).fit(X, background=Y).eigenvalues_
    np.testing.assert_allclose(found, expected, rtol=1e-6)
