"""Robust weights: rows and cells that do not belong are found, and what belongs is kept."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from standout.moments import learn_weights

SHAPES = {"tall": (600, 40), "square": (60, 60), "wide": (80, 300)}


def factors(shape, rng, n_factors=5):
    """Rows of a few strong factors and noise."""
    loadings = rng.normal(size=(n_factors, shape[1])) / np.sqrt(shape[1])
    return 10.0 * rng.normal(size=(shape[0], n_factors)) @ loadings + rng.normal(size=shape)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("cells", [False, True], ids=["rows", "cells"])
@pytest.mark.parametrize("seed", range(2))
def test_planted_rows_are_found_and_no_others(shape, cells, seed):
    rng = np.random.default_rng(seed)
    rows = factors(shape, rng)
    bad = rng.choice(len(rows), len(rows) // 20, replace=False)
    rows[bad] *= 8.0
    learned = learn_weights(rows, cells=cells)
    np.testing.assert_array_equal(np.flatnonzero(learned.outlying(rows)), np.sort(bad))
    weights = learned.weights(rows)
    assert weights[bad].max() < 0.1
    assert np.median(weights) == pytest.approx(1.0, abs=0.05)


def test_a_row_of_wild_cells_is_an_outlying_row():
    rows = factors((200, 30), np.random.default_rng(0))
    rows[:10] = 1e6
    learned = learn_weights(rows, cells=True)
    assert learned.outlying(rows)[:10].all()
    assert learned.weights(rows)[:10].max() < 1e-6


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_distances_are_those_of_the_inverse_scatter(shape):
    rng = np.random.default_rng(3)
    rows = factors(shape, rng)
    rows[0] *= 30.0
    learned = learn_weights(rows)
    inverse = learned.level * np.eye(shape[1]) + (-1 if learned.level else 1) * learned.root @ learned.root.T
    assert np.linalg.eigvalsh(inverse).min() > 0.0
    centred = rows - learned.centre
    expected = np.einsum("ij,jk,ik->i", centred, inverse, centred)
    np.testing.assert_allclose(learned(rows).distances, expected, rtol=1e-8)


def test_wide_rows_never_need_a_matrix_of_columns_by_columns():
    rows = np.random.default_rng(0).normal(size=(30, 20_000))
    assert learn_weights(rows, cells=True).root.shape[1] <= 30


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_wild_cells_become_what_the_rest_of_their_row_lets_expect(shape):
    rng = np.random.default_rng(1)
    clean = factors(shape, rng)
    wild = rng.random(shape) < 0.01
    rows = np.where(wild, 1e4 * rng.choice([-1.0, 1.0], size=shape), clean)
    found = learn_weights(rows, cells=True)(rows)
    assert np.all(found.wild[wild])
    assert np.mean(found.wild & ~wild) < 0.001
    # Noise has the variance 1. What the factors explain is expected rightly, but for what can be learned of them.
    error = np.mean((found.rows - clean)[wild] ** 2)
    assert error < np.mean((clean[wild] - np.median(clean)) ** 2)
    if shape == SHAPES["tall"]:
        assert error < 1.3
    np.testing.assert_array_equal(found.rows[~found.wild], rows[~found.wild])


def test_columns_of_equal_values_are_left_alone():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 6))
    rows[:, 0] = np.where(rng.random(200) < 0.1, 500.0, 0.0)
    rows[:, 1] = 7.0
    found = learn_weights(rows, cells=True)(rows)
    assert found.wild is None or not found.wild[:, :2].any()
    np.testing.assert_array_equal(found.rows[:, :2], rows[:, :2])


def test_a_rare_group_with_a_column_of_its_own_is_brought_to_the_limit_and_not_erased():
    rng = np.random.default_rng(4)
    rows = factors((800, 40), rng)
    rows[:16, 7] += 60.0
    learned = learn_weights(rows, cells=True)
    assert not learned.filled[7]
    assert np.all(learned.cleaned(rows)[:16, 7] == pytest.approx(learned.high[7]))
    assert not learned.outlying(rows)[:16].any()


def test_a_rare_group_in_several_columns_keeps_its_weight():
    rng = np.random.default_rng(5)
    rows = factors((800, 40), rng)
    rows[:16] += 4.0 * rng.normal(size=40)
    weights = learn_weights(rows).weights(rows)
    assert np.mean(weights[:16]) > 0.5


@pytest.mark.parametrize("scale", [1e-100, 1e-9, 1e9, 1e100])
def test_the_unit_of_the_numbers_does_not_matter(scale):
    rng = np.random.default_rng(6)
    rows = factors((120, 30), rng)
    rows[3] *= 20.0
    expected = learn_weights(rows, cells=True)(rows).weights
    np.testing.assert_allclose(learn_weights(rows * scale, cells=True)(rows * scale).weights, expected, rtol=1e-8)


@pytest.mark.parametrize("value", [1e6, -1e12, 1e150, 1e300])
@pytest.mark.parametrize("cells", [False, True], ids=["rows", "cells"])
def test_numbers_of_any_size_have_a_finite_weight(value, cells):
    rows = factors((100, 20), np.random.default_rng(7))
    rows[5, 3] = value
    with np.errstate(all="raise", under="ignore"):
        found = learn_weights(rows, cells=cells)(rows)
    assert np.all(np.isfinite(found.weights))
    if cells:
        assert abs(found.rows[5, 3]) < 100.0
    else:
        assert found.weights[5] < 1e-6
        assert np.median(found.weights) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("rows", [np.ones((5, 3)), np.eye(2), np.arange(3.0)[:, None], np.zeros((4, 1))])
@pytest.mark.parametrize("cells", [False, True], ids=["rows", "cells"])
def test_few_or_equal_rows_count_equally_or_nearly_so(rows, cells):
    found = learn_weights(rows, cells=cells)(rows)
    assert np.all(found.weights > 0.2)
    assert np.all(np.isfinite(found.weights))


def test_equal_rows_do_not_make_all_others_outlying():
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(300, 5))
    rows[:180] = rows[0]
    assert learn_weights(rows).outlying(rows).mean() < 0.3


def test_sparse_rows_weigh_what_dense_ones_do():
    rng = np.random.default_rng(9)
    for shape in ((300, 20), (40, 90)):
        rows = rng.poisson(0.4, size=shape) * rng.exponential(size=shape)
        expected = learn_weights(rows)(rows)
        found = learn_weights(sparse.csr_array(rows))(sparse.csr_array(rows))
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)
        assert sparse.issparse(found.rows)


def test_wild_cells_of_sparse_rows_are_refused():
    with pytest.raises(TypeError, match=r"sparse rows.*Use robust='rows'"):
        learn_weights(sparse.csr_array(np.eye(5)), cells=True)


def test_single_precision_stays_and_a_copy_over_a_wire_is_the_same():
    rng = np.random.default_rng(10)
    rows = factors((100, 12), rng).astype(np.float32)
    rows[0, 0] = 1e5
    learned = learn_weights(rows, cells=True)
    found = pickle.loads(pickle.dumps(learned))(rows)
    assert found.rows.dtype == np.float32
    np.testing.assert_array_equal(found.weights, learned(rows).weights)


def test_blocks_do_not_matter():
    rng = np.random.default_rng(11)
    rows = factors((400, 25), rng)
    rows[::37, 4] = 99.0
    learned = learn_weights(rows, cells=True)
    whole = learned(rows)
    parts = [learned(rows[start : start + 7]) for start in range(0, 400, 7)]
    np.testing.assert_allclose(np.concatenate([part.weights for part in parts]), whole.weights, rtol=1e-12)
    np.testing.assert_allclose(np.concatenate([part.rows for part in parts]), whole.rows, rtol=1e-12)


@pytest.mark.parametrize("n_columns", [3, 10, 40])
def test_a_rare_group_far_away_is_no_set_of_strays(n_columns):
    rng = np.random.default_rng(12)
    rows = factors((1000, n_columns), rng, n_factors=2)
    rows[:20] += 60.0 * rng.normal(size=n_columns) / np.sqrt(n_columns)
    rows[20:40] *= 30.0
    learned = learn_weights(rows)
    outlying = learned.outlying(rows)
    assert not outlying[:20].any()
    assert outlying[20:40].mean() > 0.9
    assert np.mean(learned.weights(rows)[:20]) > 0.5


def test_copies_of_one_stray_are_no_group():
    rows = factors((1000, 20), np.random.default_rng(13))
    rows[:10] = 80.0
    learned = learn_weights(rows)
    assert learned.outlying(rows)[:10].all()
