"""Warnings -> sentences that are told in their place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from standout.cli._text import capitalised


@contextmanager
def listening() -> Iterator[list[str]]:
    """Collect what users are warned of, each once, as sentences; they are there when it is over."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    said = (str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    sentences.extend(dict.fromkeys(map(capitalised, said)))
