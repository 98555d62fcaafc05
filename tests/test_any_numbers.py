"""The search of `any_numbers`: every case has the right answer, a clear error or a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from any_numbers import check


@pytest.mark.parametrize("first", range(0, 150, 15))
def test_every_case_is_answered_rightly_or_refused_in_words(first: int, tmp_path: Path) -> None:
    found = [check(seed, tmp_path) for seed in range(first, first + 15)]
    assert found.count("answered") + found.count("in doubt") >= 3


def test_components_are_counted_down_to_the_directions_of_a_fold(tmp_path: Path) -> None:
    assert check(355843375, tmp_path) == "in doubt"


# The cases: constant columns of wide rows with a scale, bandwidths where most rows are equal, a kernel without
# coordinates, constant columns in far larger units than the others, and small distances of long sparse rows.
@pytest.mark.parametrize("seed", [910005991, 910002368, 910005846, 910005725, 810001706, 810002445, 1767, 890003262])
def test_cases_that_were_wrong_are_right_or_refused(seed: int, tmp_path: Path) -> None:
    assert check(seed, tmp_path) in ("answered", "refused")


# The cases: kernels far from zero whose values differ only in the last digits, a difference of zero in a fold, chosen
# columns of wide rows in small units, single-precision columns that are multiples of one, and folds of very different
# size.
@pytest.mark.parametrize(
    "seed",
    [900002057, 900002355, 900005095, 900006145, 810001155, 820000790, 820003199, 840001504, 840002177, 830002144],
)
def test_a_ratio_of_rounding_is_told(seed: int, tmp_path: Path) -> None:
    assert check(seed, tmp_path) == "in doubt"


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 6000, 100))
def test_five_thousand_cases_are_answered_rightly_or_refused_in_words(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 100):
        check(seed, tmp_path)
