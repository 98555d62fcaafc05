"""Names and messages -> what a terminal can show in a line."""

from __future__ import annotations


def flat(words: object) -> str:
    """Put words into one line."""
    return " ".join(str(words).split())


def printable(words: object) -> str:
    """Show by its code what is no letter: names come from files, and could move the cursor or turn the line around."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(words)
    )


def capitalised(sentence: str) -> str:
    """Begin a sentence as one does, and leave the rest as it is."""
    return sentence[:1].upper() + sentence[1:]
