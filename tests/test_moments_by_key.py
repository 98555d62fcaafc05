"""Sums of rows by key, of every form of rows and of other array libraries."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.covariance import ledoit_wolf_shrinkage

from array_libraries import library  # noqa: F401
from moments_data import KINDS, assert_moments, forms, reference
from standout.moments import FoldPattern, RowMoments, gather, gather_keyed, ledoit_wolf
from standout.sources import InMemory, open_dataset

# --- keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["C", "F", "strided", "sparse", "thin", "single"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_rows", "width"), [(203, 40), (23, 40), (12_007, 45), (4, 3)])
def test_sums_by_key_are_those_of_the_rows_of_each_key(form, kind, n_rows, width, rng):
    X = forms(np.round(rng.normal(size=(n_rows, width)) * 64) / 64 + 0.5)[form]
    plain = X.toarray() if sparse.issparse(X) else np.float64(X)
    rtol = 1e-5 if form == "single" and kind == "scatter" else 1e-11
    numbers = rng.integers(-1, 6, size=n_rows)
    for keys, given_ in ((FoldPattern(5).of(np.arange(n_rows)), FoldPattern(5)), (numbers, numbers)):
        found = gather_keyed(X, given_, 5 if isinstance(given_, FoldPattern) else 7, kind=kind, norms=True)
        for key, part in enumerate(found):
            rows = plain[keys == key]
            if not len(rows):
                assert part is None
                continue
            mean, covariance = reference(rows)
            np.testing.assert_allclose(part.mean, mean, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(part.covariance(), covariance, rtol=1e-9, atol=rtol * covariance.max())
            fourth = np.sum(np.sum((rows - mean) ** 2, axis=1) ** 2)
            assert part.norms.quartic == pytest.approx(fourth, rel=1e-3 if rtol > 1e-6 else 1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [7, 400])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_weights_and_covariates_give_the_sums_of_one_pass(size, weighted, rng, monkeypatch):
    monkeypatch.setattr("standout.sources._base.BLOCK_BYTES", 8 * 8 * 40)
    X, beside = rng.normal(size=(900, 8)) + 5, rng.normal(size=(900, 2))
    weights = rng.random(900) if weighted else None
    keys = FoldPattern(4).of(np.arange(900))
    streamed = open_dataset((X[start : start + size] for start in range(0, 900, size)), "the data")
    for source in (open_dataset(X, "the data"), streamed):
        source.weights, source.covariates = weights, beside
        for key, part in enumerate(gather_keyed(source, FoldPattern(4), norms=True)):
            chosen = keys == key
            rows = np.hstack([X, beside])[chosen]
            assert_moments(part, rows, rtol=1e-11, weights=None if weights is None else weights[chosen])


def test_folds_have_equal_sizes_no_short_period_and_do_not_depend_on_batches():
    for n_folds in (2, 3, 5, 10):
        folds = FoldPattern(n_folds).of(np.arange(1000 * n_folds))
        assert set(np.bincount(folds)) == {1000}
        np.testing.assert_array_equal(FoldPattern(n_folds, 30).of(np.arange(7, 207)), folds[37:237])
        if n_folds > 2:
            # Rows whose distance is the number of folds are in several folds.
            assert all(len(set(folds[start::n_folds])) > 1 for start in range(n_folds))


def test_keys_without_rows_or_weight_have_no_moments(rng):
    source = open_dataset(rng.normal(size=(10, 2)), "the data")
    source.weights = np.r_[np.zeros(5), np.ones(5)]
    found = gather_keyed(source, np.repeat([0, 1], 5), 3)
    assert found[0] is None
    assert found[1].total_weight == 5
    assert found[2] is None
    source.weights = np.zeros(10)
    with pytest.raises(ValueError, match="no rows of positive weight"):
        gather(source)


def test_sparse_rows_of_many_columns_are_kept_and_never_squared(rng):
    rows = sparse.random_array((60, 20_000), density=1e-3, rng=rng, format="csr")
    found = gather_keyed(rows, FoldPattern(3), kind="rows")
    whole = gather(rows)
    assert isinstance(whole, RowMoments)
    U = rng.normal(size=(20_000, 2))
    centred = rows.toarray() - rows.toarray().mean(axis=0)
    np.testing.assert_allclose((found[0] + found[1] + found[2]).apply(U), centred.T @ (centred @ U) / 60, atol=1e-12)
    np.testing.assert_allclose(whole.apply(U), centred.T @ (centred @ U) / 60, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_survive_a_pickle(kind, rng):
    moments = gather(rng.normal(size=(20, 3)) + 1e6, kind=kind, norms=True)
    again = pickle.loads(pickle.dumps(moments))
    np.testing.assert_array_equal(again.covariance(), moments.covariance())
    assert again.norms.quartic == moments.norms.quartic


# --- other libraries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1.0, 1e7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_foreign_rows_are_summed_on_their_device(library, offset, dtype, weighted, rng, monkeypatch):  # noqa: F811
    X = np.float64(dtype(rng.normal(size=(257, 30)) + offset))
    keys = rng.integers(0, 3, size=257)
    source = InMemory(library.there(dtype(X)))
    weights = source.weights = rng.random(257) if weighted else None
    library.forbid_copies(monkeypatch)
    found = [gather_keyed(source, FoldPattern(5), norms=True), gather_keyed(source, keys, 3, norms=True)]
    total = found[0][0] + found[0][1]
    shares = [ledoit_wolf(part) for part in (*found[0], total)]
    monkeypatch.undo()
    for parts, numbers in zip(found, (FoldPattern(5).of(np.arange(257)), keys), strict=True):
        for key, part in enumerate(parts):
            rows, own = X[numbers == key], None if weights is None else weights[numbers == key]
            mean, covariance = reference(rows, own)
            np.testing.assert_allclose(library.back(part.mean), mean, rtol=1e-12)
            near = 1e-9 if offset > 10 else 1e-12
            np.testing.assert_allclose(library.back(part.covariance()), covariance, rtol=1e-9, atol=near)
    if not weighted:
        assert shares[0] == pytest.approx(ledoit_wolf_shrinkage(X[FoldPattern(5).of(np.arange(257)) == 0]), rel=1e-6)
