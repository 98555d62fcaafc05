"""Batches: what is drawn, grouped and counted must not depend on how the rows are cut into batches."""

import numpy as np
import pytest

from standout.sources import added, open_dataset

CUTS = [[25], [1] * 25, [7, 0, 3, 15], [0, 24, 1], [10, 10, 5]]


def refilled(rows, sizes):
    """Give the rows in batches of these sizes, each in the same memory as the one before it."""
    buffer = np.empty((max(sizes), rows.shape[1]))
    ends = np.cumsum(sizes)
    for size, end in zip(sizes, ends, strict=True):
        buffer[:size] = rows[end - size : end]
        yield buffer[:size]
        buffer[:] = np.nan


@pytest.fixture
def rows(rng):
    return rng.normal(size=(25, 3))


def size_of(part):
    """The number of rows of a part, in a list: lists are added up by putting them together."""
    return [len(getattr(part, "rows", part))]


def sum_of(part):
    return getattr(part, "rows", part).sum(axis=0)


@pytest.mark.parametrize("sizes", CUTS)
@pytest.mark.parametrize("count", [1, 4, 24, 25, 99])
def test_a_draw_is_of_the_rows_with_the_smallest_keys_however_they_are_cut(sizes, count, rows):
    keys = np.random.default_rng(3).random(25)
    drawn = open_dataset(refilled(rows, sizes), "the target").sample(count, np.random.default_rng(3))
    np.testing.assert_array_equal(drawn, rows[np.sort(np.argsort(keys)[:count])])


@pytest.mark.parametrize("sizes", CUTS)
def test_all_rows_come_in_their_order_however_they_are_cut(sizes, rows):
    parts = open_dataset(refilled(rows, sizes), "the target").parts()
    np.testing.assert_array_equal(np.vstack([part.copy() for part in parts]), rows)
    doubled = open_dataset(refilled(rows, sizes), "the target").mapped(lambda part: 2 * part, 3)
    np.testing.assert_array_equal(doubled, 2 * rows)
    assert open_dataset(refilled(rows, sizes), "the target").count_rows() == 25
    total = open_dataset(refilled(rows, sizes), "the target").summed(sum_of)
    np.testing.assert_allclose(total, rows.sum(axis=0))


@pytest.mark.parametrize("cut", [(0, 0, 5), (0, 5, 9)])
def test_the_first_rows_of_batches_stay_to_be_read(cut, rows):
    batches = open_dataset(iter([rows[cut[0] : cut[1]], rows[cut[1] : cut[2]], rows[cut[2] :]]), "the target")
    np.testing.assert_array_equal(batches.first(3), rows[:3])
    np.testing.assert_array_equal(np.vstack(list(batches.parts())), rows)


def test_small_batches_are_held_back_until_a_product_is_worth_while():
    # A group has as many rows as columns at the least, and eight megabytes: with 1,024 columns, 1,024 rows.
    batches = [np.zeros((300, 1024))] * 14
    assert open_dataset(iter(batches), "the target").summed(size_of) == [1200, 1200, 1200, 600]
    # What learns batch by batch may need a row for every column: a smaller last group joins the one before it.
    sizes = open_dataset(iter(batches), "the target").folded(lambda sizes, rows: [*sizes, len(rows)], [])
    assert sizes == [1200, 1200, 1800]


def test_a_sum_over_no_rows_adds_nothing():
    assert added(None, None) is None
    assert added(None, 2.0) == added(2.0, None) == 2.0


def test_batches_are_held_to_the_rows_that_were_asked_for_first():
    batches = open_dataset(iter([np.ones((2, 3))]), "the target", min_rows=3)
    with pytest.raises(ValueError, match="2 sample"):
        list(open_dataset(batches, "the data", min_rows=1).parts())
