"""Robust weights: outlying rows and cells are found, and ordinary rows keep their weight."""

import pickle

import numpy as np
import pytest
from scipy import linalg, sparse

from array_libraries import library  # noqa: F401
from standout.moments import gather, learn_from, learn_weights, weighed
from standout.sources import open_dataset

SHAPES = {"tall": (600, 40), "square": (60, 60), "wide": (80, 300)}


def factors(shape, rng, n_factors=5):
    """Return rows of a few strong factors and noise."""
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
    weights = learned(rows).weights
    assert weights[bad].max() < 0.1
    assert np.median(weights) == pytest.approx(1.0, abs=0.05)


def test_a_row_of_wild_cells_is_an_outlying_row():
    rows = factors((200, 30), np.random.default_rng(0))
    rows[:10] = 1e6
    learned = learn_weights(rows, cells=True)
    assert learned.outlying(rows)[:10].all()
    assert learned(rows).weights[:10].max() < 1e-6


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_distances_and_weights_are_those_of_the_formulas(shape):
    rows = factors(shape, np.random.default_rng(3))
    rows[0] *= 30.0
    learned = learn_weights(rows)
    inverse = learned.level * np.eye(shape[1]) + (-1 if learned.level else 1) * learned.root @ learned.root.T
    assert np.linalg.eigvalsh(inverse).min() > 0.0
    centred = (rows - learned.centre) / learned.unit
    expected = np.einsum("ij,jk,ik->i", centred, inverse, centred)
    found = learned(rows)
    np.testing.assert_allclose(found.distances, expected, rtol=1e-8)
    assert learned.typical == pytest.approx(np.median(expected ** (1 / 3)) ** 3)
    np.testing.assert_allclose(found.weights, np.minimum((3 + learned.typical) / (3 + expected), 1.0))
    # Only outlying rows have a weight below the floor.
    assert found.weights[expected <= learned.limit].min() >= (3 + learned.typical) / (3 + learned.limit)


@pytest.mark.parametrize("shape", [(90, 6), (25, 25), (20, 50)], ids=["tall", "square", "wide"])
@pytest.mark.parametrize("whole", [True, False], ids=["all rows", "a sample"])
def test_weights_are_five_passes_of_student_t_weights_written_out(shape, whole):
    """Each row's distance is by the scatter without it, which is formed here row by row."""
    rows = factors(shape, np.random.default_rng(6), 3) * 4.0 + 2.0
    rows[:2] *= 9.0
    middle = np.median(rows, axis=0)
    unit = np.median(1.4826 * np.median(np.abs(rows - middle), axis=0))
    numbers = (rows - middle) / unit
    lengths = np.sum(numbers**2, axis=1)
    weights = np.median(lengths) / np.maximum(lengths, np.median(lengths))
    for _ in range(5):
        shares = weights / weights.sum()
        centre = shares @ numbers
        away = numbers - centre
        scatter = (shares[:, None] * away).T @ away
        squares, mean = np.sum(scatter**2), np.trace(scatter) / shape[1]
        noise = np.sum((shares * np.sum(away**2, axis=1)) ** 2) - squares * np.sum(shares**2)
        shrinkage = min(noise / (squares - shape[1] * mean**2), 1.0)
        shrunken = (1 - shrinkage) * scatter + shrinkage * mean * np.eye(shape[1])
        own = np.array([row @ np.linalg.solve(shrunken, row) for row in away])
        without = [shrunken - (1 - shrinkage) * w * np.outer(row, row) for w, row in zip(shares, away, strict=True)]
        apart = np.array([row @ np.linalg.solve(left, row) for left, row in zip(without, away, strict=True)])
        typical = np.median(np.cbrt(apart)) ** 3
        weights = (3 + typical) / (3 + np.maximum(apart, typical))
    # A sample uses distances without each row, because later rows are not in the sample either.
    cubic = np.cbrt(own if whole else apart)
    # At least the spread of normal rows (Wilson and Hilferty, 1931).
    usual = np.median(cubic) * np.sqrt(2 / (9 * shape[1]))
    spread = max(1.4826 * np.median(np.abs(cubic - np.median(cubic))), usual)
    learned = learn_weights(rows, whole=whole)
    np.testing.assert_allclose(learned.centre, middle + unit * centre, rtol=1e-8)
    assert learned.typical == pytest.approx(np.median(cubic) ** 3, rel=1e-8)
    assert learned.limit == pytest.approx((np.median(cubic) + 5 * spread) ** 3, rel=1e-8)
    np.testing.assert_allclose(learned(rows).distances, own, rtol=1e-8)
    expected = (3 + learned.typical) / (3 + np.maximum(own, learned.typical))
    np.testing.assert_allclose(learned(rows).weights, expected, rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-180, 1e-3, 1e150])
def test_weights_do_not_depend_on_the_unit_of_all_columns(unit):
    rows = np.random.default_rng(4).normal(size=(60, 5))
    rows[0] *= 30.0
    expected = learn_weights(rows)(rows).weights
    np.testing.assert_allclose(learn_weights(rows * unit)(rows * unit).weights, expected, rtol=1e-9)


def test_wide_rows_never_need_a_matrix_of_columns_by_columns():
    rows = np.random.default_rng(0).normal(size=(30, 20_000))
    assert learn_weights(rows, cells=True).root.shape[1] <= 30


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_wild_cells_come_to_five_robust_standard_deviations_of_their_column(shape):
    rng = np.random.default_rng(1)
    clean = factors(shape, rng)
    wild = rng.random(shape) < 0.01
    rows = np.where(wild, 1e4 * rng.choice([-1.0, 1.0], size=shape), clean)
    found = learn_weights(rows, cells=True)(rows)
    median = np.median(rows, axis=0)
    reach = 5 * 1.4826 * np.median(np.abs(rows - median), axis=0)
    inside = np.abs(rows - median) < (1 - 1e-9) * reach
    assert not np.any(inside & wild)
    np.testing.assert_array_equal(found.rows[inside], rows[inside])
    np.testing.assert_allclose(found.rows, np.clip(rows, median - reach, median + reach), rtol=1e-10)


def test_whole_numbers_become_floating_point_before_cells_are_replaced():
    rng = np.random.default_rng(1)
    rows = rng.integers(-9, 10, size=(201, 5))
    rows[3, 2] = 1000
    expected = learn_weights(rows.astype(float), cells=True)(rows.astype(float))
    found = learn_weights(rows, cells=True)(rows)
    assert found.rows.dtype == np.float64
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_columns_of_mostly_equal_values_are_left_alone():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 6))
    rows[:, 0] = np.where(rng.random(200) < 0.1, 500.0, 0.0)
    rows[:, 1] = 7.0
    found = learn_weights(rows, cells=True)(rows)
    np.testing.assert_array_equal(found.rows[:, :2], rows[:, :2])


@pytest.mark.parametrize("share", [0.3, 0.55, 0.7, 0.9, 0.97])
@pytest.mark.parametrize("cells", [False, True], ids=["rows", "cells"])
def test_ordinary_rows_keep_their_weight_where_most_rows_are_equal(share, cells):
    rng = np.random.default_rng(0)
    rows = rng.poisson(3.0, size=(400, 10)) * 1.0
    rows[rng.random(400) < share] = 0.0
    weights = learn_weights(rows, cells=cells)(rows).weights
    assert weights.min() > 0.1
    assert np.mean(weights) > 0.6


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 1.0])
def test_ordinary_rows_of_counts_keep_their_weight(rate):
    rows = np.random.default_rng(1).poisson(rate, size=(500, 30)).astype(float)
    learned = learn_weights(rows)
    assert learned(rows).weights.min() > 0.05
    assert learned.outlying(rows).mean() < 0.02


@pytest.mark.filterwarnings("ignore:`robust` finds no typical distance")
@pytest.mark.parametrize("seed", range(40))
def test_any_rows_have_weights_that_leave_something(seed):
    rng = np.random.default_rng(seed)
    n_rows, width = rng.integers(1, 60), rng.integers(1, 12)
    rows = rng.poisson(rng.choice([0.02, 0.2, 3.0]), size=(n_rows, width)) * 10.0 ** rng.integers(-9, 9)
    rows[rng.random(n_rows) < rng.choice([0.0, 0.5, 0.9])] = rows[0]
    rows[:, rng.random(width) < 0.3] = rows[0, 0]
    for cells in (False, True):
        weights = learn_weights(rows, cells=cells)(rows).weights
        assert np.all(np.isfinite(weights))
        assert np.mean(weights) > 0.2


def test_weights_that_do_not_describe_the_rows_are_not_used():
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(300, 5))
    rows[:140] = 1e-9 * rng.normal(size=(140, 5))
    rows[140:170] *= 1e-8
    with pytest.warns(UserWarning, match="the target.*All rows keep the same weight"):
        learned = learn_weights(rows, name="the target")
    np.testing.assert_array_equal(learned(rows).weights, 1.0)
    assert not learned.outlying(rows).any()


def test_a_rare_group_of_the_target_still_stands_out():
    rng = np.random.default_rng(5)
    target, background = factors((1600, 40), rng).reshape(2, 800, 40)
    target = target.copy()
    target[:16] += 4.0 * rng.normal(size=40)
    parts = []
    for rows in (target, background):
        source = open_dataset(rows, "the data")
        parts.append(gather(weighed(source, learn_from(source))[0]).covariance())
    scores = target @ linalg.eigh(*parts)[1][:, -1]
    order = np.argsort(scores) if np.mean(scores[:16]) < np.mean(scores) else np.argsort(-scores)
    assert set(order[:16]) == set(range(16))


@pytest.mark.parametrize("scale", [1e-100, 1e-9, 1e9, 1e100])
def test_the_unit_of_the_numbers_does_not_matter(scale):
    rows = factors((120, 30), np.random.default_rng(6))
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
def test_few_or_equal_rows_have_about_the_same_weight(rows, cells):
    weights = learn_weights(rows, cells=cells)(rows).weights
    assert np.all(weights > 0.2)
    assert np.all(np.isfinite(weights))


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(300, 20), (40, 90)])
def test_sparse_rows_have_the_weights_of_dense_rows(make, shape):
    rng = np.random.default_rng(9)
    rows = rng.poisson(0.4, size=shape) * rng.exponential(size=shape)
    expected = learn_weights(rows)(rows)
    found = learn_weights(make(rows))(make(rows))
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)
    assert sparse.issparse(found.rows)


def test_wild_cells_of_sparse_rows_are_refused():
    with pytest.raises(TypeError, match=r"sparse rows.*Use robust='rows'"):
        learn_weights(sparse.csr_array(np.eye(5)), cells=True)


def test_single_precision_stays_and_a_pickle_has_the_same_weights():
    rows = factors((100, 12), np.random.default_rng(10)).astype(np.float32)
    rows[0, 0] = 1e5
    learned = learn_weights(rows, cells=True)
    found = pickle.loads(pickle.dumps(learned))(rows)
    assert found.rows.dtype == np.float32
    np.testing.assert_array_equal(found.weights, learned(rows).weights)


@pytest.mark.parametrize("cells", [False, True], ids=["rows", "cells"])
def test_batches_have_the_weights_of_the_whole(cells, monkeypatch):
    monkeypatch.setattr("standout.sources._base.BLOCK_BYTES", 8 * 25 * 30)
    rng = np.random.default_rng(11)
    rows, given = factors((400, 25), rng), rng.integers(0, 3, size=400).astype(float)
    rows[::37, 4] = 99.0
    whole = open_dataset(rows, "the data")
    whole.weights = given
    learned = learn_from(whole, cells=cells)
    (changed, *_), found = weighed(whole, learned), learned(rows)
    np.testing.assert_allclose(changed.weights, found.weights * given)
    streamed = open_dataset((rows[start : start + 7] for start in range(0, 400, 7)), "the data")
    with pytest.raises(TypeError, match="can be read only once"):
        learn_from(streamed)
    parts = open_dataset(np.asarray(rows, dtype=">f8"), "the data")
    parts.weights = given
    again = weighed(parts, learned)[0]
    np.testing.assert_allclose(gather(again).covariance(), gather(changed).covariance(), rtol=1e-10)


@pytest.mark.parametrize("shape", [(120, 10), (30, 50)])
@pytest.mark.parametrize("cells", [False, True], ids=["rows", "cells"])
def test_foreign_rows_have_the_same_weights(library, shape, cells, rng):  # noqa: F811
    rows = factors(shape, rng)
    rows[3] *= 20.0
    rows[4, 5] = 1e4
    expected = learn_weights(rows, cells=cells)(rows)
    found = learn_weights(library.there(rows), cells=cells)(library.there(rows))
    np.testing.assert_allclose(library.back(found.weights), expected.weights, rtol=1e-8)
    np.testing.assert_allclose(library.back(found.rows), expected.rows, rtol=1e-8)


def test_units_that_differ_beyond_the_range_of_squares_leave_weights(rng):
    X = rng.normal(size=(3, 90)) * 10.0 ** rng.uniform(-150, 150, size=90)
    assert learn_weights(X)(X).weights.sum() > 0.1


@pytest.mark.parametrize("width", [4, 30])
def test_equal_distances_have_the_limit_of_normal_rows(width):
    """The cube root of a squared distance of normal rows has the variance 2 / (9 D), in units of its mean."""
    rows = np.vstack([np.eye(width), -np.eye(width)] * 3)
    learned = learn_weights(rows)
    assert learned.limit / learned.typical == pytest.approx((1.0 + 5.0 * np.sqrt(2.0 / (9.0 * width))) ** 3)
    np.testing.assert_allclose(learned(rows).weights, 1.0)
