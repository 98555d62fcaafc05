"""Parts of two long searches: fits on any numbers (tests/any_numbers.py), and killed commands (tests/kills.py)."""

import pytest

from any_numbers import PATHS, draw, verdict
from array_libraries import dispatch  # noqa: F401
from kills import COMMANDS, check, kill_at, kill_in_renames, prepare

# Each path has some seeds of its own.
N_SEEDS = 4


@pytest.mark.parametrize("path", PATHS)
def test_a_fit_is_right_or_says_that_it_may_not_be(path):
    pytest.importorskip("mpmath")
    if path == "torch":
        pytest.importorskip("torch")
    for seed in range(N_SEEDS):
        case = draw(1000 * PATHS.index(path) + seed, path)
        found, words = verdict(case)
        assert found != "wrong", f"{words}: {case.story} {case.options}"


def test_a_killed_command_leaves_nothing_that_the_next_one_does_not_mend(tmp_path):
    seconds = prepare(tmp_path)
    command = COMMANDS["fit"]
    kill_at(tmp_path, command, 0.8 * seconds)
    check(tmp_path, command)
    # The last changes of names put the result in place, and remove the earlier one.
    for number in (22, 30):
        assert kill_in_renames(tmp_path, command, number, "after")
        check(tmp_path, command)
