"""Words that messages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def listed(noun: str, names: Sequence[Any] | Iterable[Any], most: int = 5) -> str:
    """Name a few things, and count the rest."""
    listed = list(names)
    shown = ", ".join(repr(name) for name in listed[:most])
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{noun}{'s' if len(listed) != 1 else ''} {shown}{more}"


def dataset_names(n_datasets: int) -> list[str]:
    """Give what messages call the datasets of a fit, the target first."""
    return ["the target", *(f"background {number}" for number in range(1, n_datasets))]
