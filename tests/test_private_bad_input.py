"""Private sums: what is refused before anything is spent; bounds and plans; warnings where rows are too few."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from standout.moments import gather
from standout.private import from_ranges, release, required_rows, total_epsilon

pytest.importorskip("opendp", reason="OpenDP is not installed")

from standout.private import _release

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def bounds(n_features, radius=2.0):
    return {"centre": np.zeros(n_features), "scale": np.ones(n_features), "radius": radius}


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = np.random.default_rng(0).normal(size=(20, 2))
WRONG = {
    "no bounds": ({"centre": None}, "centre"),
    "no radius": ({"radius": None}, "radius"),
    "no budget": ({"epsilon": None}, "epsilon"),
    "epsilon zero": ({"epsilon": 0.0}, "epsilon"),
    "epsilon negative": ({"epsilon": -1.0}, "epsilon"),
    "epsilon huge": ({"epsilon": 1e9}, "epsilon"),
    "epsilon text": ({"epsilon": "1"}, "epsilon"),
    "epsilon NaN": ({"epsilon": np.nan}, "epsilon"),
    "delta zero": ({"delta": 0.0}, "delta"),
    "delta one": ({"delta": 1.0}, "delta"),
    "delta large": ({"delta": 0.5}, "delta"),
    "radius zero": ({"radius": 0.0}, "radius"),
    "radius infinite": ({"radius": np.inf}, "radius"),
    "scale zero": ({"scale": [1.0, 0.0]}, "scale"),
    "scale short": ({"scale": [1.0]}, "scale"),
    "scale text": ({"scale": ["a", "b"]}, "scale"),
    "centre NaN": ({"centre": [0.0, np.nan]}, "centre"),
    "other width": ({"centre": [0.0] * 3, "scale": [1.0] * 3}, "features"),
    "max_rows zero": ({"max_rows": 0}, "max_rows"),
    "max_rows without groups": ({"max_rows": 3}, "groups"),
    "groups short": ({"groups": ["a"]}, "groups"),
    "groups missing": ({"groups": [None] * 20}, "groups"),
    "groups of the data": ({"groups": True}, "groups"),
    "rows with NaN": ({"rows": np.full((3, 2), np.nan)}, "NaN"),
    "rows infinite": ({"rows": np.full((3, 2), np.inf)}, "infinity"),
    "no rows": ({"rows": np.zeros((0, 2))}, "sample"),
    "text": ({"rows": np.array([["a", "b"]])}, "number|numeric|convert|text|string"),
    "batches of another width": ({"rows": lambda: iter([np.ones((3, 2)), np.ones((3, 3))])}, "features"),
    "batch with NaN": ({"rows": lambda: iter([np.ones((3, 2)), np.full((3, 2), np.nan)])}, "NaN"),
    "groups for too few batches": (
        {"rows": lambda: iter([np.ones((3, 2)), np.ones((3, 2))]), "groups": list("abcde")},
        "groups",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_refused_before_anything_is_spent(case, monkeypatch):
    change, words = WRONG[case]

    def spent(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(_release, "with_noise", spent)
    given = {"rows": GOOD, **bounds(2), **BUDGET, **change}
    rows = given.pop("rows")
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        release(rows() if callable(rows) else rows, **given)
    assert not isinstance(caught.value, AssertionError)


def test_without_bounds_the_message_says_that_they_are_public():
    with pytest.raises(TypeError, match="public") as caught:
        release(GOOD, **BUDGET)
    assert "from_ranges" in str(caught.value)


def test_places_with_other_bounds_or_columns_are_not_added(rng, quiet):
    sums = release(GOOD, **bounds(2), **BUDGET)
    for other in (
        release(GOOD, **bounds(2, 3.0), **BUDGET),
        release(GOOD, centre=[0, 1], scale=[1, 1], radius=2.0, **BUDGET),
        release(pd.DataFrame(GOOD, columns=["a", "b"]), **bounds(2), **BUDGET),
    ):
        with pytest.raises(ValueError, match="radius|centre|columns"):
            sums + other
    for first, second in ((sums, gather(GOOD)), (gather(GOOD), sums), (gather(GOOD, kind="root"), sums)):
        with pytest.raises(TypeError, match="exact sums and private sums"):
            first + second
    with pytest.raises(TypeError):
        sums + 1


# --- plans ------------------------------------------------------------------------------------------------------------


def test_ranges_become_bounds_that_the_order_of_columns_does_not_change():
    ranges = {"age": (0, 100), "weight": (40, 140), "unused": (0, 1)}
    given = from_ranges(ranges, columns=["weight", "age"])
    np.testing.assert_array_equal(given["centre"], [90, 50])
    np.testing.assert_array_equal(given["scale"], [50, 50])
    assert given["radius"] == pytest.approx(math.sqrt(2) / 4)
    same = from_ranges([(40, 140), (0, 100)])
    np.testing.assert_array_equal(same["centre"], given["centre"])


@pytest.mark.parametrize(
    ("ranges", "columns", "words"),
    [
        ({"age": (0, 1)}, ["age", "iron"], "iron"),
        ([(1, 0)], None, "lower"),
        ([(0, np.inf)], None, "finite"),
        ([(0, 1, 2)], None, "shape"),
        ([], None, "shape"),
        ([("a", "b")], None, "numbers"),
        ([(0, 1)], ["a", "b"], "shape"),
        ({"age": (0, 0)}, ["age"], "age"),
    ],
)
def test_ranges_that_are_none_are_refused(ranges, columns, words):
    with pytest.raises((ValueError, TypeError), match=words):
        from_ranges(ranges, columns=columns)


def test_more_columns_a_smaller_share_and_less_budget_need_more_rows():
    def rows(n_features=50, epsilon=1.0, **more):
        return required_rows(n_features, epsilon, 1e-6, **more)

    assert rows() < rows(n_features=200) < rows(n_features=800)
    assert rows(epsilon=10.0) < rows(epsilon=1.0) < rows(epsilon=0.1)
    assert rows(share=0.1) < rows(share=0.01)
    assert rows(max_rows=10) == pytest.approx(10 * rows(), rel=0.1)
    for wrong in ({"n_features": 0}, {"epsilon": 0.0}, {"share": 0.0}, {"max_rows": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            rows(**wrong)


def test_a_release_of_few_rows_warns_with_the_number_that_would_do(rng):
    with pytest.warns(UserWarning, match="noise drowns") as caught:
        release(rng.normal(size=(100, 20)), **bounds(20), **BUDGET)
    needed = caught[0].message.facts["rows"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release(rng.normal(size=(2 * needed, 20)), **bounds(20), **BUDGET)
    with pytest.warns(UserWarning, match="delta"):
        release(rng.normal(size=(20_000, 2)), **bounds(2), epsilon=1.0, delta=1e-3)


def test_several_releases_spend_less_than_the_sum_of_their_epsilons(quiet):
    sums = release(GOOD, **bounds(2), **BUDGET)
    assert total_epsilon(sums.spent, delta=1e-6) == pytest.approx(1.0, rel=1e-4)
    assert 1.0 < total_epsilon((sums + sums).spent, delta=1e-6) < 2.0
    with pytest.raises(ValueError, match="delta"):
        total_epsilon(sums.spent, delta=1.0)
    with pytest.raises(TypeError, match="spent"):
        total_epsilon([], delta=1e-6)
