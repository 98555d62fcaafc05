"""Words on parameters, as the library has them -> words on options, as the command line has them."""

from __future__ import annotations

import re

# Names and values: what users have written, or would write, is not changed.
QUOTED = re.compile(r"""(?<!\w)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
# What stands for one of them meanwhile.
HIDDEN = "\0[0-9]+\0"

# In this order: first what a parameter is called, then what is said twice where the library names both.
RULES = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"kernel_params=\{" + HIDDEN + r": ([0-9.]+)\}", r"--bandwidth \1"),
        (r"\bbackground_weights\b", "--weights"),
        (r"\bn_components\b", "--components"),
        (r"\bn_features=", "the number of columns, "),
        (r"\b(group|id|label)_column\b", r"--\1-column"),
        (r"(?<!-)\b(alpha|bandwidth|degree|drop|epsilon|format|missing|shrinkage|test|variable)(?==)", r"--\1"),
        (r"(--[\w-]+)=", r"\1 "),
        (r"(?<!-)\b(drop|select)(?= names\b)", r"--\1"),
        (r"\bout of select\b", "out of --select"),
        (r"^target(?= (?:has|is)\b)", "--target"),
        (r"^backgrounds(?= (?:has|is)\b)", "--background-group"),
        (r"\bNone for equal weights\b", "equal"),
        (r"\bNone\b", "none"),
        (r"\bstandout\.(?:save|report\.store)\b", "standout fit"),
        (r"; for a scan, [^)]*", ""),
        (r"\b(\w+) \((--\1)\)", r"\2"),
        (r"\(\w+, (?=--)", "("),
        (r"\((--[\w-]+)(?: " + HIDDEN + r")?, (?=\1\b)", "("),
        (r"(--[\w-]+) " + HIDDEN + r" \((\1 \w+)\)", r"\2"),
        (r"(--[\w-]+)( [^.]*?) \(\1[^)]*\)", r"\1\2"),
    )
)


def as_options(words: str) -> str:
    """Say advice on parameters as advice on options; quoted names and values stay as they are."""
    hidden: list[str] = []

    def hide(found: re.Match[str]) -> str:
        hidden.append(found[0])
        return f"\0{len(hidden) - 1}\0"

    said = QUOTED.sub(hide, words)
    for pattern, option in RULES:
        said = pattern.sub(option, said)
    return re.sub("\0([0-9]+)\0", lambda found: hidden[int(found[1])], said)
