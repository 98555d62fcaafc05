"""Warnings -> sentences that are told in their place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from standout._messages import FindingWarning
from standout.cli._text import capitalised


@contextmanager
def listening() -> Iterator[list[str]]:
    """Collect what users are warned of, each once, as sentences; they are there when it is over.

    What a fit has found is not among them: the report says it.
    """
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    told = (warning for warning in caught if issubclass(warning.category, UserWarning))
    said = (str(warning.message) for warning in told if not issubclass(warning.category, FindingWarning))
    sentences.extend(dict.fromkeys(map(capitalised, said)))
