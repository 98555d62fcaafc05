"""Parts side by side: in order, bounded, and without a trace left."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from standout import _arrays
from standout._arrays import are_side_by_side, in_order, product, self_product


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    monkeypatch.setattr(_arrays, "_n_cores", lambda: 3)


def test_results_come_in_the_order_of_the_items():
    def slow_at_first(number):
        time.sleep(0.02 if number < 3 else 0.0)
        return number

    assert list(in_order(slow_at_first, range(20))) == list(range(20))


def test_several_items_are_worked_on_at_a_time_and_no_more_are_taken():
    taken, together = [], threading.Barrier(3, timeout=300)

    def items():
        for number in range(6):
            taken.append(number)
            yield number

    results = in_order(lambda number: together.wait(), items())
    next(results)  # three had to come together for the first to be done
    assert len(taken) <= 4
    list(results)


def test_blas_has_no_threads_of_its_own_meanwhile():
    def look(_):
        return are_side_by_side(), {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}

    before = [info["num_threads"] for info in threadpool_info()]
    assert set(map(repr, in_order(look, range(3)))) == {repr((True, {1}))}
    assert not are_side_by_side()
    assert [info["num_threads"] for info in threadpool_info()] == before


def test_what_goes_wrong_is_raised_at_its_item_and_nothing_stays():
    results = in_order(lambda number: 1 / (3 - number), range(10))
    assert [round(next(results), 2) for _ in range(3)] == [0.33, 0.5, 1.0]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert not are_side_by_side()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("standout-parts")]


def test_whoever_stops_early_leaves_nothing_behind():
    results = in_order(lambda number: number, range(100))
    next(results)
    results.close()
    assert not are_side_by_side()


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_are_the_same_side_by_side(order):
    rows = np.asarray(np.random.default_rng(0).normal(size=(200, 7)), order=order)
    other = np.random.default_rng(1).normal(size=(7, 3))

    def products(_):
        return self_product(rows), product(rows, other), product(rows, other[:, :1])

    alone = products(0)
    for result in in_order(products, range(4)):
        for one, another in zip(result, alone, strict=True):
            np.testing.assert_allclose(one, another, rtol=1e-13, atol=1e-12)
