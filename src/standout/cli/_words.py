"""Words of the command line -> what estimators take: numbers, names of rules, or lists."""

from __future__ import annotations

from typing import Any

import click


class NumberOr(click.ParamType):  # type: ignore[type-arg]
    """A number, or one of a few words."""

    def __init__(self, *words: str, whole: bool = False) -> None:
        self.words = words
        self.whole = whole
        self.name = "|".join(["integer" if whole else "number", *words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give the number or the word."""
        if not isinstance(value, str) or value in self.words:
            return value
        try:
            return int(value) if self.whole else float(value)
        except ValueError:
            kind = "a whole number" if self.whole else "a number"
            self.fail(f"{value!r} is neither {kind} nor {' nor '.join(self.words)}. Give one of these.", param, ctx)


class Weights(click.ParamType):  # type: ignore[type-arg]
    """Numbers separated by commas, or the name of a rule."""

    rules = ("worst-case", "best", "spectral")
    name = "|".join(["w1,w2,...", "equal", *rules])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give a list of numbers, the rule, or None for equal weights."""
        if not isinstance(value, str) or value in self.rules:
            return value
        if value == "equal":
            return None
        try:
            return [float(part) for part in value.split(",")]
        except ValueError:
            known = ", ".join(["equal", *self.rules])
            self.fail(f"{value!r} is no list of numbers. Give one such as 1,2, or one of {known}.", param, ctx)
