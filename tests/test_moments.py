"""Moments: the laws of merging first, then every kind of input against one dense float64 reference."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.covariance import ledoit_wolf_shrinkage

from standout import _arrays
from standout.moments import RowMoments, ScatterMoments, gather, ledoit_wolf

KINDS = ["scatter", "root", "rows"]


def reference(X):
    """Mean and covariance, from centred float64 rows."""
    X = np.asarray(X, dtype=np.float64)
    centred = X - X.mean(axis=0)
    return X.mean(axis=0), centred.T @ centred / len(X)


def assert_moments(moments, X, rtol=1e-12):
    mean, covariance = reference(X)
    # Entries of a covariance are accurate relative to the spreads of their two columns.
    scale = np.sqrt(np.diagonal(covariance)) + np.abs(mean) * 1e-15 + 1e-300
    assert moments.count == len(X)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-14 if rtol < 1e-9 else 1e-7, atol=rtol * scale.max())
    np.testing.assert_array_less(np.abs(moments.covariance() - covariance), rtol * np.outer(scale, scale) + 1e-300)


tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.just(4)),
    elements=st.floats(-1e3, 1e3, allow_nan=False, allow_subnormal=False).map(lambda x: round(x, 6)),
)


def assert_same(first, second, size):
    """The same moments up to rounding at the size of the data."""
    assert first.count == second.count
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-13 * size)
    np.testing.assert_allclose(first.covariance(), second.covariance(), atol=1e-12 * size**2)
    np.testing.assert_allclose(first.norms.cubic, second.norms.cubic, atol=1e-10 * size**3)
    np.testing.assert_allclose(first.norms.quartic, second.norms.quartic, rtol=1e-10, atol=1e-10 * size**4)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(first=tables, second=tables, third=tables)
def test_merging_is_one_pass_over_all_rows_in_any_order_and_grouping(kind, first, second, third):
    one, two, three = (gather(X, kind=kind, norms=True) for X in (first, second, third))
    whole = gather(np.vstack([first, second, third]), kind=kind, norms=True)
    size = max(np.abs(X).max() for X in (first, second, third)) + 1e-6
    assert_same((one + two) + three, whole, size)
    assert_same(one + (two + three), whole, size)
    assert_same(three + one + two, whole, size)


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_representations_merge_with_each_other(first, second, rng):
    X = rng.normal(size=(30, 5)) * [1, 10, 1, 1, 0.1] + 3
    both = gather(X[:12], kind=first, norms=True) + gather(X[12:], kind=second, norms=True)
    assert_moments(both, X)
    np.testing.assert_allclose(both.norms.quartic, gather(X, norms=True).norms.quartic)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (2, 3), (1000, 3)])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
def test_every_representation_answers_alike(kind, shape, offset, rng):
    X = rng.normal(size=shape) * rng.uniform(0.1, 10, shape[1]) + offset
    moments = gather(X, kind=kind, norms=True)
    mean, covariance = reference(X)
    U = rng.normal(size=(shape[1], 3))
    # Rounding the data themselves at `offset` limits what any of them can know.
    near = {"rtol": 1e-11, "atol": 1e-11 * covariance.max() + 1e-15 * offset}
    assert_moments(moments, X, rtol=1e-9 if offset > 100 else 1e-12)
    np.testing.assert_allclose(moments.variances, np.diagonal(covariance), **near)
    np.testing.assert_allclose(moments.root().T @ moments.root(), covariance, **near)
    np.testing.assert_allclose(moments.apply(U), covariance @ U, rtol=1e-9, atol=near["atol"] * 10)
    np.testing.assert_allclose(moments.variance(U), np.einsum("ij,ij->j", U, covariance @ U), rtol=1e-9)
    np.testing.assert_allclose(moments.squared_norm, np.sum(covariance**2), rtol=1e-9)
    np.testing.assert_allclose(moments.norms.quartic, np.sum(np.sum((X - mean) ** 2, axis=1) ** 2), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64, bool, np.float16, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_dtype_and_order_gives_the_float64_answer(dtype, order, rng):
    X = np.asarray(rng.integers(0, 2 if dtype is bool else 100, size=(50, 4)), dtype=dtype, order=order)
    for kind in KINDS:
        assert_moments(gather(X, kind=kind), X)


def test_float32_is_multiplied_in_single_precision_and_in_double_on_request(rng):
    X = rng.normal(size=(500, 4)).astype(np.float32)
    single, exact = gather(X), gather(X, single=False)
    assert_moments(single, X, rtol=1e-5)
    assert_moments(exact, X)
    assert single.precision == np.finfo(np.float32).eps
    assert exact.precision == np.finfo(np.float64).eps


@pytest.mark.parametrize("kind", KINDS)
def test_float32_far_from_the_origin_keeps_its_spread(kind, rng):
    X = (rng.normal(size=(3000, 5)) + 10_000).astype(np.float32)
    # 1e-5: products in single precision of numbers of size 1, whose own rounding (1e-3 at 10,000) is not an error here.
    assert_moments(gather(X, kind=kind), X, rtol=1e-5)


def test_wide_float32_far_from_the_origin_keeps_its_inner_products(rng):
    X = (rng.normal(size=(20, 500)) + 1e6).astype(np.float32)
    centred = np.float64(X) - np.float64(X).mean(axis=0)
    # 1e-6: sums in single precision. A mean in single precision, at a million, would cost a thousand times as much.
    np.testing.assert_allclose(gather(X).self_gram, centred @ centred.T, atol=1e-6 * np.sum(centred**2))


@pytest.mark.parametrize("offset", [0.0, 2.0, 1e3, 1e8])
def test_a_mean_of_any_size_costs_float64_no_accuracy(offset, rng):
    noise = rng.integers(-1000, 1000, size=(2000, 3)) / 1024.0  # exact in float64 whatever the offset
    exact = reference(noise)[1]
    # Without centring first, an offset of 1e8 would leave no digit at all.
    np.testing.assert_allclose(gather(noise + offset).covariance(), exact, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_column_has_exactly_no_variance(kind, rng):
    X = rng.normal(size=(100, 3))
    X[:, 1] = 0.1
    assert gather(X, kind=kind).variances[1] == 0.0


def test_read_only_and_memory_mapped_rows_are_used_as_they_are(rng, tmp_path):
    X = rng.normal(size=(60, 4))
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    X.setflags(write=False)
    for kind in KINDS:
        assert_moments(gather(X, kind=kind), X)
        assert_moments(gather(mapped, kind=kind), X)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array, sparse.csr_array])
@pytest.mark.parametrize("density", [0.01, 0.4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_equal_dense_rows(make, density, dtype, kind, rng):
    X = sparse.random(300, 40, density, random_state=0, format="coo")
    X.data = np.ceil(X.data * 100)
    rows = make(X.astype(dtype))
    assert_moments(gather(rows, kind=kind), X.toarray(), rtol=1e-5 if dtype is np.float32 else 1e-12)


def test_a_sparse_matrix_is_never_made_dense_as_a_whole(monkeypatch, rng):
    X = sparse.random(5000, 200, 0.05, random_state=0, format="csr")
    sizes = []
    monkeypatch.setattr("standout._arrays.BLOCK_BYTES", 8 * 200 * 400)
    for kind in KINDS:
        for module in ("scatter", "root", "rows"):
            target = f"standout.moments._{module}.dense"
            monkeypatch.setattr(target, lambda block: sizes.append(block.shape) or _arrays.dense(block))
        gather(X, kind=kind)
    assert sizes
    assert max(shape[0] * shape[1] for shape in sizes) < X.shape[0] * X.shape[1] // 2


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_equal_arrays(make, rng):
    X = rng.normal(size=(20, 3))
    assert_moments(gather(make({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})), X)


@pytest.mark.parametrize("kind", ["auto", *KINDS])
@pytest.mark.parametrize("shape", [(500, 8), (30, 70), (50, 50)])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_equal_one_pass(kind, shape, size, rng, monkeypatch):
    monkeypatch.setattr("standout.sources._base.BLOCK_BYTES", 8 * 8 * 40)
    X = rng.normal(size=shape) + 5
    moments = gather((X[start : start + size] for start in range(0, len(X), size)), kind=kind, norms=True)
    assert_moments(moments, X)
    assert ledoit_wolf(moments) == pytest.approx(ledoit_wolf_shrinkage(X), rel=1e-10)


def test_a_batch_may_reuse_its_buffer(rng):
    X = rng.normal(size=(40, 3))

    def batches():
        buffer = np.empty((10, 3))
        for start in range(0, 40, 10):
            buffer[:] = X[start : start + 10]
            yield buffer

    for kind in KINDS:
        assert_moments(gather(batches(), kind=kind), X)


def test_rows_are_kept_where_they_are_fewer_than_the_columns(rng):
    assert isinstance(gather(rng.normal(size=(5, 9))), RowMoments)
    assert isinstance(gather(rng.normal(size=(9, 5))), ScatterMoments)
    assert isinstance(gather(rng.normal(size=(5, 5))), ScatterMoments)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(200, 5), (20, 50), (30, 1), (50, 50)])
def test_ledoit_wolf_agrees_with_scikit_learn(kind, shape, rng):
    X = rng.normal(size=shape) * rng.uniform(0.5, 2, shape[1]) + 7
    assert ledoit_wolf(gather(X, kind=kind, norms=True)) == pytest.approx(ledoit_wolf_shrinkage(X), rel=1e-10)


def test_ledoit_wolf_vanishes_as_rows_grow(rng):
    shares = [ledoit_wolf(gather(rng.normal(size=(n, 10)) * np.arange(1, 11), norms=True)) for n in (20, 200, 20_000)]
    assert shares[0] > 3 * shares[1] > 30 * shares[2]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", KINDS)
def test_ledoit_wolf_is_never_negative_though_two_rows_have_no_noise_but_rounding(kind, seed):
    # Both rows are as far from their mean: the fourth powers are what one direction explains.
    share = ledoit_wolf(gather(np.random.default_rng(seed).normal(size=(2, 3)), kind=kind, norms=True))
    assert 0.0 <= share < 1e-14


def test_ledoit_wolf_without_norms_says_what_to_do(rng):
    with pytest.raises(TypeError, match="norms=True"):
        ledoit_wolf(gather(rng.normal(size=(20, 3))))
