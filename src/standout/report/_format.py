"""Numbers, names and messages as text that people read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isinf, isnan
from typing import Any

import numpy as np

from standout._messages import PYTHON, Message, Names

MINUS = "\N{MINUS SIGN}"

# Control characters, characters that change the direction of the text after them, and halves of characters.
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# A name from the data between these marks has no influence on the order of the words around it.
ISOLATE, RELEASE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"

# --- numbers ---------------------------------------------------------------------------------------------------------


def number(value: float, digits: int = 3) -> str:
    """Write a number with a few digits: 8.13, 1,240, 0.0021, 3.1e-7."""
    if isnan(value):
        return "unknown"
    sign = MINUS if value < 0 else ""
    size = abs(value)
    if isinf(size):
        return f"{sign}∞"
    if size == 0.0:
        return "0"
    # Rounded first: 0.9996 becomes 1.00, not 1.000.
    mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
    if size >= 1e6 or size < 1e-4:
        return f"{sign}{mantissa}e{int(exponent)}".replace("e-", f"e{MINUS}")
    decimals = max(digits - 1 - int(exponent), 0)
    return f"{sign}{size:,.{decimals}f}"


def brief(value: float) -> str:
    """Write a parameter: two digits, without zeros at the end."""
    shown = number(value, 2)
    return shown.rstrip("0").rstrip(".") if "." in shown and "e" not in shown else shown


def correlation(value: float) -> str:
    """Write a correlation: two decimals."""
    shown = f"{value:.2f}"
    return "0.00" if shown == "-0.00" else shown.replace("-", MINUS)


def whole(count: int) -> str:
    """Write a whole number: 1,080."""
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """Count things: 1 row, 2 rows."""
    return f"{whole(count)} {noun}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """Write a share: 12 %, 0.4 %."""
    value = 100.0 * share
    shown = f"{value:.1f}" if 0.05 <= value < 9.95 or 90.05 < value < 99.95 else f"{value:.0f}"
    return f"{shown} %"


def p_value(chance: float) -> str:
    """Write a p-value: 0.031, < 0.001."""
    return "< 0.001" if chance < 0.001 else f"{chance:.2g}"


def p_equals(chance: float) -> str:
    """Write a p-value in a sentence: p = 0.031, p < 0.001."""
    shown = p_value(chance)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def times(ratio: float) -> str:
    """Write how many times as much."""
    return "infinitely many times" if isinf(ratio) else f"{number(ratio)} times"


# --- names -----------------------------------------------------------------------------------------------------------


def joined(names: Sequence[str]) -> str:
    """Join names: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def harmless(text: str) -> str:
    """Show characters that are not seen, or change the direction of the text, by their codes."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(name: str, most: int = 40) -> str:
    """Cut a long name in its middle, on one line; an empty one is named as such."""
    flat = harmless(" ".join(name.split()))
    if not flat:
        return "(empty name)"
    if len(flat) <= most:
        return flat
    tail = most // 3
    return f"{flat[: most - tail - 1]}…{flat[-tail:]}"


def isolated(name: str, most: int = 40) -> str:
    """Shorten a name for a sentence, and mark it, so that it cannot change the order of the other words."""
    return f"{ISOLATE}{shortened(name, most)}{RELEASE}"


def plain(sentence: str) -> str:
    """Give a sentence without the marks of names."""
    return sentence.replace(ISOLATE, "").replace(RELEASE, "")


# --- messages --------------------------------------------------------------------------------------------------------

# Text in messages of others, such as a list of several columns, may be longer than a name.
LONGEST_FACT = 400


class _Real(float):
    """A number in a message: with two digits, unless the message asks for another form."""

    def __format__(self, form: str) -> str:
        return super().__format__(form) if form else brief(self)


class _Whole(int):
    """A whole number in a message, with commas."""

    def __format__(self, form: str) -> str:
        return super().__format__(form or ",")


class _Marked(Names):
    """The names of a surface, with names from the data marked as such."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def parameter(self, name: str) -> str:
        return self._names.parameter(name)

    def setting(self, name: str, value: Any) -> str:
        return isolated(self._names.setting(name, value), LONGEST_FACT)

    def value(self, word: str) -> str:
        return self._names.value(word)

    def fact(self, value: Any) -> Any:
        if isinstance(value, str):
            return isolated(value, LONGEST_FACT) if value else ""
        if isinstance(value, list | tuple):
            shown = [format(self.fact(part)) for part in value]
            return joined(shown) if shown else ""
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            return value
        return _Whole(value) if isinstance(value, int | np.integer) else _Real(value)


def phrased(message: Message, names: Names = PYTHON) -> str:
    """Give a message as a sentence of the report, in the words of a surface; names in it are `isolated`."""
    sentence = message.phrased(_Marked(names))
    # A Greek letter, the p of a p-value, and the name of a parameter stay as they are.
    starts_with_word = message.parameter is None and re.match("[a-z][a-z ]", message.problem)
    return f"{sentence[0].upper()}{sentence[1:]}" if starts_with_word else sentence
