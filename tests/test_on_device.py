"""What a device computes in its own way, against the host: folds, sums, products and eigenvectors."""

import gc
import pickle
import weakref

import numpy as np
import pytest

from array_libraries import Strict, Torch, dispatch  # noqa: F401
from standout import DiscriminativePCA, _xp
from standout._arrays import self_product
from standout.io import on_device
from standout.moments import CentredRows, RowMoments, gather, gather_folds, joint_gram
from standout.moments._folds import fold_of_rows, rows_of_folds
from standout.selection import SpanFolds


@pytest.fixture(params=[Torch, Strict])
def library(request):
    return request.param()


@pytest.mark.parametrize(
    ("start", "count", "n_folds", "n_dealt"),
    [(0, 100, 5, 10), (3, 97, 5, 10), (3, 4, 5, 10), (8, 14, 10, 10), (12345, 1001, 3, 10), (0, 7, 3, 7)],
)
def test_folds_are_those_of_the_host(start, count, n_folds, n_dealt, library):
    found = rows_of_folds(start, count, n_folds, n_dealt, library.there(np.zeros(1)))
    expected = fold_of_rows(start, count, n_dealt) % n_folds
    for fold, places in enumerate(found):
        np.testing.assert_array_equal(np.sort(library.back(places)), np.flatnonzero(expected == fold))


@pytest.mark.parametrize("first", [0.0, 1e9], ids=["like the others", "far from the others"])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e5, 1e8])
@pytest.mark.parametrize("n_bytes", [2**29, 2**12])
def test_sums_of_folds_are_those_of_the_host(first, offset, n_bytes, library, monkeypatch, rng):
    monkeypatch.setattr("standout.moments._scatter.DEVICE_BLOCK_BYTES", n_bytes)
    rows = rng.normal(size=(300, 6)) + offset
    rows[:, 4] = 7.5
    rows[0, :4] += first
    ours, theirs = (gather_folds(data, 5, n_dealt=10, norms=True) for data in (rows, library.there(rows)))
    assert [part.count for part in ours.sums] == [part.count for part in theirs.sums]
    for one, other in zip([*ours.sums, ours.total()], [*theirs.sums, theirs.total()], strict=True):
        scale = np.abs(one.covariance()).max()
        np.testing.assert_allclose(library.back(other.covariance()), one.covariance(), rtol=0, atol=1e-11 * scale)
        np.testing.assert_allclose(library.back(other.mean), one.mean, rtol=1e-13, atol=1e-14)
        assert other.quartic == pytest.approx(one.quartic, rel=1e-9)
        assert library.back(other.variances)[4] == 0.0


@pytest.mark.parametrize("n_folds", [None, 5])
@pytest.mark.parametrize("offset", [0.0, 1e6, "jump"])
def test_batches_are_summed_up_as_one_array(offset, n_folds, rng):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    rows = rng.normal(size=(203, 6)) + (0.0 if offset == "jump" else offset)
    if offset == "jump":
        # The first batch does not show that the data are far from zero.
        rows[60:] += 1e7
    source = on_device(rows, "cpu", batch_rows=50)
    if n_folds is None:
        parts = [gather(data, kind="scatter", norms=True) for data in (rows, source)]
    else:
        ours, theirs = (gather_folds(data, n_folds, norms=True) for data in (rows, source))
        assert [part.count for part in ours.sums] == [part.count for part in theirs.sums]
        parts = [ours.without(2), theirs.without(2)]
    np.testing.assert_allclose(parts[1].mean.numpy(), parts[0].mean, rtol=1e-13)
    scale = np.abs(parts[0].covariance()).max()
    np.testing.assert_allclose(parts[1].covariance().numpy(), parts[0].covariance(), rtol=0, atol=1e-12 * scale)
    assert parts[1].quartic == pytest.approx(parts[0].quartic, rel=1e-9)


@pytest.mark.parametrize("size", [256, 257, 301])
def test_panels_make_the_whole_product(size, library, monkeypatch, rng):
    monkeypatch.setattr("standout._arrays.PANELS_WORTH", 0)
    rows = rng.normal(size=(40, size))
    found = library.back(self_product(library.there(rows)))
    np.testing.assert_allclose(found, rows.T @ rows, rtol=0, atol=1e-12)


def spectra(rng):
    noise = rng.normal(size=(700, 2000))
    turn = np.linalg.qr(rng.normal(size=(700, 700)))[0]
    yield "noise", noise @ noise.T / 2000
    yield "indefinite", noise @ noise.T / 2000 - 3 * np.eye(700)
    yield "equal values", (turn * np.r_[9.0, 9.0, 9.0, np.linspace(0, 5, 697)]) @ turn.T
    yield "few directions", (turn[:, :4] * [4.0, 3.0, 2.0, 1.0]) @ turn[:, :4].T
    yield "one huge", (turn * np.r_[1e9, np.linspace(2, 1, 699)]) @ turn.T


@pytest.mark.parametrize("kind", range(5))
def test_iterations_find_the_leading_eigenvectors(kind, rng):
    name, matrix = list(spectra(rng))[kind]
    library = Torch()
    found = _xp._by_iterations(library.there(matrix), 2)
    assert found is not None, name
    values, vectors = (library.back(part) for part in found)
    expected, turn = np.linalg.eigh(matrix)
    np.testing.assert_allclose(values, expected[:-3:-1], rtol=0, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(2), atol=1e-11)
    if name == "noise":
        cosines = np.abs(np.sum(vectors * turn[:, :-3:-1], axis=0))
        np.testing.assert_allclose(cosines, 1.0, atol=1e-12)


def test_iterations_that_would_take_long_are_left_to_the_device(rng):
    matrix = np.cov(rng.normal(size=(400, 900)))
    assert _xp._by_iterations(Torch().there(matrix), 3) is None


@pytest.mark.parametrize("place", ["host", "torch"])
@pytest.mark.parametrize("kind", ["wide", "copies", "tiny beside huge", "weights"])
def test_folds_of_wide_data_vary_as_their_rows_do(kind, place, rng):
    X, Y = rng.normal(size=(30, 200)) + 2.0, rng.normal(size=(24, 200)) * np.linspace(1, 3, 200)
    if kind == "copies":
        X[1], Y[3:6] = X[0], Y[2]
    if kind == "tiny beside huge":
        Y *= 1e-5
    there, back = (Torch().there, Torch().back) if place == "torch" else (lambda rows: rows, lambda rows: rows)
    folds = [np.arange(len(rows)) % 3 for rows in (X, Y)]
    weights = [rng.uniform(0.5, 2.0, size=len(rows)) if kind == "weights" else None for rows in (X, Y)]
    kept = [
        RowMoments(there(rows)) if own is None else CentredRows(there(rows), there(own))
        for rows, own in zip((X, Y), weights, strict=True)
    ]
    span = SpanFolds.of(kept, folds, 3, 3)
    along = rng.normal(size=(200, 2))
    inside = span.inside(there(along))
    for rows, own, numbers, found in zip((X, Y), weights, folds, span.folds, strict=True):
        for fold in range(3):
            some = rows[numbers != fold] @ along
            expected = np.cov(some.T, bias=True, aweights=None if own is None else own[numbers != fold])
            size = np.abs(expected).max()
            np.testing.assert_allclose(
                back(found.without(fold).variance(inside)), np.diagonal(expected), rtol=0, atol=1e-9 * size
            )
    lifted = back(span.lifted(inside))
    for rows in (X, Y):
        centred = rows - rows.mean(axis=0)
        if kind not in ("weights", "tiny beside huge"):
            np.testing.assert_allclose(centred @ lifted, centred @ along, atol=1e-9)


def test_inner_products_are_computed_once_and_keep_no_rows_of_others(rng):
    X, Y = (gather(rng.normal(size=(6, 50)), kind="rows") for _ in range(2))
    gram = joint_gram([X, Y])
    assert joint_gram([X, Y]) is gram
    assert joint_gram([X]).shape == (6, 6)
    other = weakref.ref(Y)
    joint_gram([X, Y])
    del Y
    gc.collect()
    assert other() is None
    Z = gather(rng.normal(size=(6, 50)), kind="rows")
    assert not np.allclose(joint_gram([X, Z]), gram)


@pytest.mark.parametrize("size", [1e-14, 1.0, 1e14])
def test_wide_single_precision_of_any_size_gives_the_same_components(size, rng):
    X, Y = rng.normal(size=(30, 400)), rng.normal(size=(40, 400))
    X[:, 0] *= 5.0
    exact, found = (
        DiscriminativePCA(2).fit((size * X).astype(kind), background=(size * Y).astype(kind))
        for kind in (np.float64, np.float32)
    )
    for name in ("components_", "patterns_"):
        one, other = getattr(exact, name), getattr(found, name)
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-5 * np.abs(one).max())


def test_moments_that_were_used_can_be_pickled(rng):
    X, Y = (gather(rng.normal(size=(12, 60)) + 1.0, kind="rows") for _ in range(2))
    fitted = DiscriminativePCA.from_moments(X, Y, n_components=1)
    again = DiscriminativePCA.from_moments(*(pickle.loads(pickle.dumps(part)) for part in (X, Y)), n_components=1)
    np.testing.assert_allclose(again.components_, fitted.components_, rtol=1e-10)


def test_all_weight_in_one_fold_leaves_no_held_out_ratio(rng):
    X, Y = rng.normal(size=(40, 200)), rng.normal(size=(50, 200))
    weights = (fold_of_rows(0, 50, 10) == 3).astype(float)
    fitted = DiscriminativePCA(1).fit(X, background=Y, background_sample_weight=weights)
    assert not hasattr(fitted, "held_out_ratio_")


def test_wide_data_on_a_device_are_not_copied(rng):
    library = Torch()
    X, Y = (library.there(rng.normal(size=(20, 400)) + 1.0) for _ in range(2))
    X[:, 0] *= 9.0
    moments = [gather(rows, kind="rows") for rows in (X, Y)]
    assert all(part.blocks[0] is rows for part, rows in zip(moments, (X, Y), strict=True))
    fitted = DiscriminativePCA(2).fit(X, background=Y)
    assert fitted.solver_ == "reduced"
