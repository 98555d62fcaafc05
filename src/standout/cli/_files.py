"""Several files that need not have the same columns beside the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from standout.io import Table, UnknownColumnsError, read_table

# What a background need not have, although the target has it.
ROLES = ("id_column", "label_column")


def read_files(paths: Sequence[str], reading: dict[str, Any], stage: Callable[[str], None]) -> list[Table]:
    """Read the target and its backgrounds.

    Columns of ids and labels are the target's, and backgrounds may be without; a column to be dropped need not be in
    every file, but in one.
    """
    tables: list[Table] = []
    refusals: dict[str, list[UnknownColumnsError]] = {pattern: [] for pattern in reading["drop"]}
    for path in paths:
        stage(f"reading {path}")
        tables.append(_read(path, dict(reading), ROLES if tables else (), refusals))
    for errors in refusals.values():
        if len(errors) == len(paths):
            raise errors[0]
    return tables


def _read(
    path: str, reading: dict[str, Any], optional: Sequence[str], refusals: dict[str, list[UnknownColumnsError]]
) -> Table:
    """Read one file, again if need be: what it lacks is known once its reader has refused it, after the first line."""
    while True:
        try:
            return read_table(path, **reading)
        except UnknownColumnsError as error:
            if error.option in optional:
                reading[error.option] = None
            elif error.option == "drop":
                for pattern in dict.fromkeys(error.names):
                    refusals[pattern].append(error)
                reading["drop"] = [pattern for pattern in reading["drop"] if pattern not in error.names]
            else:
                raise
