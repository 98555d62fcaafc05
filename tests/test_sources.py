"""Sources: what is drawn, grouped and counted must not depend on how the rows are cut into parts."""

import numpy as np
import pytest

from standout.sources import Batches, Stream, added, all_rows, count_rows, open_dataset, regrouped

CUTS = [[25], [1] * 25, [7, 0, 3, 15], [0, 24, 1], [10, 10, 5]]


def refilled(rows, sizes):
    """Give the rows in parts of these sizes, each in the same memory as the one before it."""
    buffer = np.empty((max(sizes), rows.shape[1]))
    ends = np.cumsum(sizes)
    for size, end in zip(sizes, ends, strict=True):
        buffer[:size] = rows[end - size : end]
        yield buffer[:size]
        buffer[:] = np.nan


class Parts(Stream):
    """A stream that can be read again."""

    name = "the target"

    def __init__(self, rows, sizes):
        self.rows, self.sizes = rows, sizes

    def parts(self):
        return refilled(self.rows, self.sizes)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(25, 3))


@pytest.mark.parametrize("sizes", CUTS)
@pytest.mark.parametrize("count", [1, 4, 24, 25, 99])
def test_a_draw_is_of_the_rows_with_the_smallest_keys_however_they_are_cut(sizes, count, rows):
    keys = np.random.default_rng(3).random(25)
    drawn = Parts(rows, sizes).sample(count, np.random.default_rng(3))
    np.testing.assert_array_equal(drawn, rows[np.sort(np.argsort(keys)[:count])])


@pytest.mark.parametrize("sizes", CUTS)
def test_all_rows_come_together_in_their_order_however_they_are_cut(sizes, rows):
    source = Parts(rows, sizes)
    np.testing.assert_array_equal(all_rows(source), rows)
    np.testing.assert_array_equal(source.mapped(np.copy, 3), rows)
    np.testing.assert_allclose(source.summed(lambda part: part.sum(axis=0)), rows.sum(axis=0))
    assert count_rows(source) == 25
    np.testing.assert_array_equal(source.first(4), rows[: min(4, next(size for size in sizes if size))])
    batches = Batches(refilled(rows, sizes), "the target", min_rows=2)
    np.testing.assert_array_equal(np.vstack(list(map(np.copy, batches.parts()))), rows)


def test_the_first_rows_of_batches_stay_to_be_read(rows):
    batches = open_dataset(iter([rows[:0], rows[:5], rows[5:]]), "the target")
    np.testing.assert_array_equal(batches.first(3), rows[:3])
    np.testing.assert_array_equal(all_rows(batches), rows)


def test_small_parts_are_held_back_until_a_product_is_worth_while():
    # A group has as many rows as columns at the least, and eight megabytes: with 1,024 columns, 1,024 rows.
    numbers = np.arange(14 * 300.0)
    parts = (np.repeat(part[:, np.newaxis], 1024, axis=1) for part in np.split(numbers, 14))
    groups = list(regrouped(parts))
    assert [len(group) for group in groups] == [1200, 1200, 1200, 600]
    np.testing.assert_array_equal(np.concatenate([group[:, -1] for group in groups]), numbers)


def test_a_sum_over_no_rows_adds_nothing():
    assert added(None, None) is None
    assert added(None, 2.0) == added(2.0, None) == 2.0


def test_a_source_is_held_to_the_most_rows_that_anyone_asked_for():
    batches = iter([np.ones((2, 3))])
    source = open_dataset(batches, "the target", min_rows=3)
    # Asking for fewer later on does not take that back.
    with pytest.raises(ValueError, match="2 sample"):
        list(open_dataset(source, "the data", min_rows=1).parts())
    parts = Parts(np.ones((2, 3)), [2]).called("the target", 5)
    assert open_dataset(parts, "the data", min_rows=1).min_rows == 5
    assert open_dataset(parts, "the data", min_rows=7).min_rows == 7
