"""Errors and warnings carry facts, and each surface phrases them."""

import ast
import pickle
import warnings
from functools import partial
from pathlib import Path

import pytest

import standout
from standout import _params
from standout._messages import (
    CautionWarning,
    FileError,
    FindingWarning,
    InvalidTypeError,
    InvalidValueError,
    Message,
    MissingFileError,
    MixedArraysError,
    Names,
    warn_user,
)

SOURCE = Path(standout.__file__).parent
TEMPLATED = {
    "CautionWarning",
    "FileError",
    "FindingWarning",
    "InvalidTypeError",
    "InvalidValueError",
    "Message",
    "MissingFileError",
    "MixedArraysError",
    "warn_user",
}


class Options(Names):
    def parameter(self, name):
        return f"--{name.replace('_', '-')}"

    def setting(self, name, value):
        return f"{self.parameter(name)} {'none' if value is None else value}"

    def value(self, word):
        return "none" if word == "None" else word


def test_one_message_is_phrased_for_python_and_for_the_command_line():
    error = InvalidValueError(
        "is outside [0, 1]",
        parameter="shrinkage",
        value=1.5,
        limit=(0, 1),
        advice="Use {v.auto}, {v.None} or {p.background_weights:equal}.",
    )
    assert str(error) == "shrinkage=1.5 is outside [0, 1]. Use 'auto', None or background_weights='equal'."
    phrased = error.message.phrased(Options())
    assert phrased == "--shrinkage 1.5 is outside [0, 1]. Use auto, none or --background-weights equal."
    assert (error.parameter, error.value, error.limit) == ("shrinkage", 1.5, (0, 1))


def test_names_of_users_may_hold_braces():
    message = Message("there is no column {name}", name="a{b}", advice="Check {{it}}.")
    assert str(message) == "there is no column a{b}. Check {it}."


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (InvalidValueError, ValueError),
        (InvalidTypeError, TypeError),
        (MixedArraysError, TypeError),
        (MixedArraysError, ValueError),
        (FileError, OSError),
        (MissingFileError, FileNotFoundError),
        (FindingWarning, UserWarning),
    ],
)
def test_errors_are_builtin_ones_and_travel_between_processes(kind, base):
    error = pickle.loads(pickle.dumps(kind("{what} is wrong", what="it", parameter=None, limit=3)))
    assert isinstance(error, base)
    assert str(error) == "it is wrong."
    assert error.limit == 3
    assert error.facts == {"what": "it"}


def test_a_warning_points_to_the_line_that_led_to_it():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_user("{count} rows are equal", count=3)
    assert caught[0].filename == __file__
    assert caught[0].category is CautionWarning
    assert caught[0].message.facts == {"count": 3}


@pytest.mark.parametrize(
    ("check", "rules"),
    [
        (_params.check_alpha, ("auto", "held-out")),
        (_params.check_epsilon, _params.EPSILON_RULES),
        (partial(_params.check_shrinkage, rules=_params.SHRINKAGE_RULES), _params.SHRINKAGE_RULES),
        (_params.check_weight_rule, _params.WEIGHT_RULES),
    ],
)
def test_an_unknown_rule_is_answered_with_all_that_there_are(check, rules):
    with pytest.raises(InvalidValueError) as caught:
        check("unknown")
    assert [rule for rule in rules if repr(rule) not in str(caught.value)] == []


def templates(path):
    """Find the templates of all messages in a file: the problem and the advice."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "standout._messages" in text else ():
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in TEMPLATED:
            yield from node.args[:1]
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "advice")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_templates_are_never_made_from_names_of_users(path):
    """A brace in the name of a column would break the template, and facts would be lost in it."""
    assert [node.lineno for node in templates(path) if isinstance(node, ast.JoinedStr)] == []


def test_the_rule_of_templates_can_fail(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from standout._messages import InvalidValueError\n"
        "raise InvalidValueError(f'{name} is wrong', advice='Mend it.')\n"
    )
    assert [type(node) for node in templates(wrong)] == [ast.JoinedStr, ast.Constant]


def test_a_message_is_made_again_from_its_parts_and_its_facts_can_be_marked():
    class Marked(Names):
        def fact(self, value):
            return f"<{value}>" if isinstance(value, str) else value

    message = Message("is larger than {limit} in {name}", parameter="rank", value=None, limit=5, name="mice.csv")
    again = Message(**message.parts())
    assert again.phrased() == message.phrased() == "rank=None is larger than 5 in mice.csv."
    assert again.phrased(Marked()) == "rank=None is larger than 5 in <mice.csv>."
