"""Numbers and sentences that the page, the summary and the warnings share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isinf, isnan

MINUS = "\N{MINUS SIGN}"

# What turns the text after it around, moves a cursor, or is no character at all.
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Names in messages: letters before or after are those of a word with an apostrophe.
QUOTED = re.compile(r"""(?<!\w)('[^']*'|"[^"]*")(?!\w)""")
# Between these, a name from the data has no influence on the order of the words around it.
ISOLATE, RELEASE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


def number(value: float, digits: int = 3) -> str:
    """Say a number with a few digits: 8.13, 1,240, 0.0021, 3.1e-7."""
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
    """Say a parameter: two digits, without zeros at the end."""
    shown = number(value, 2)
    return shown.rstrip("0").rstrip(".") if "." in shown and "e" not in shown else shown


def correlation(value: float) -> str:
    """Say a correlation: two decimals."""
    shown = f"{value:.2f}"
    return "0.00" if shown == "-0.00" else shown.replace("-", MINUS)


def whole(count: int) -> str:
    """Say a whole number: 1,080."""
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """Count things: 1 row, 2 rows."""
    return f"{whole(count)} {noun}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """Say a share: 12 %, 0.4 %."""
    value = 100.0 * share
    shown = f"{value:.1f}" if 0.05 <= value < 9.95 or 90.05 < value < 99.95 else f"{value:.0f}"
    return f"{shown} %"


def chance(p_value: float) -> str:
    """Say a p-value: p = 0.031, p < 0.001."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def times(ratio: float) -> str:
    """Say how many times as much."""
    return "infinitely many times" if isinf(ratio) else f"{number(ratio, 2 if ratio < 100 else 3)} times"


def joined(names: Sequence[str]) -> str:
    """Join names: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def a_few(names: Sequence[str], most: int = 5) -> str:
    """Name a few, and count the rest."""
    more = len(names) - most
    return f"{', '.join(names[:most])} and {whole(more)} more" if more > 0 else joined(names)


def harmless(words: str) -> str:
    """Show by its code what could turn a sentence around."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), words)


def isolated(name: str) -> str:
    """Shorten a name for a sentence, in which it shall have no influence on the order of other words."""
    return f"{ISOLATE}{shortened(name)}{RELEASE}"


def with_isolated(sentence: str) -> str:
    """Isolate the names in quotes of a sentence that someone else has put together."""
    return QUOTED.sub(rf"{ISOLATE}\g<0>{RELEASE}", harmless(sentence))


def plain(sentence: str) -> str:
    """Give a sentence as it is for those who do not know what isolates are."""
    return sentence.replace(ISOLATE, "").replace(RELEASE, "")


def shortened(name: str, most: int = 40) -> str:
    """Cut a long name in its middle, on one line; say so where there is nothing to see."""
    flat = harmless(" ".join(name.split()))
    if not flat:
        return "(empty name)"
    if len(flat) <= most:
        return flat
    tail = most // 3
    return f"{flat[: most - tail - 1]}…{flat[-tail:]}"
