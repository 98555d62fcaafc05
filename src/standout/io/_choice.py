"""Which column of a file is what: data, ids, labels, groups, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from standout._validation import (
    check_not_selected,
    check_patterns_found,
    check_role,
    check_some_columns,
    check_unique_columns,
)

ROLES = {"ids": "id_column", "labels": "label_column", "groups": "group_column"}


@dataclass(frozen=True)
class Wanted:
    """What the user asks of a file.

    Attributes
    ----------
    roles : dict of str to str
        Column to be read as "ids", "labels" or "groups", for those that are asked for.
    select, drop : tuple of str
        Names and patterns of columns; nothing selected means all.
    variable : str or None
        The array that is meant, in a file that has several.
    """

    roles: dict[str, str] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    variable: str | None = None


@dataclass(frozen=True)
class Choice:
    """Which columns are read, and as what.

    Attributes
    ----------
    features : list of int
        Positions of the columns that are data, in the order of the file.
    roles : dict of str to str
        Name of what is read as "ids", "labels" and "groups"; a column, or something beside them.
    """

    features: list[int]
    roles: dict[str, str]


def choose(
    names: Sequence[str], wanted: Wanted, source: str, beside: Sequence[str] = (), index: str | None = None
) -> Choice:
    """Choose columns by name.

    `beside` are vectors that a file keeps apart from its table, and `index` is the column that names the rows by the
    convention of the format, unless the user says otherwise.
    """
    apart = set(beside)
    for role, name in wanted.roles.items():
        check_role(name, ROLES[role], [*beside, *(other for other in names if other not in apart)], source)
    exact = set(names).intersection(wanted.select)
    from_columns = {ROLES[role]: name for role, name in wanted.roles.items() if name not in apart}
    check_not_selected(sorted(exact), from_columns)
    selected = matching(wanted.select, names, "select", source) if wanted.select else set(range(len(names)))
    dropped = matching(wanted.drop, names, "drop", source)
    is_index = index is not None and index not in exact
    aside = {*from_columns.values(), *([index] if is_index else [])}
    features = [
        position
        for position, name in enumerate(names)
        if position in selected and position not in dropped and name not in aside
    ]
    check_unique_columns([names[position] for position in features], source)
    check_some_columns(len(features), source)
    roles = dict(wanted.roles)
    if is_index and "ids" not in roles and not any(names[position] == index for position in dropped):
        roles["ids"] = str(index)
    return Choice(features, roles)


def matching(patterns: Sequence[str], names: Sequence[str], option: str, source: str) -> set[int]:
    """Find the columns that are called so, or else match as a pattern."""
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        positions.setdefault(name, []).append(position)
    found: set[int] = set()
    unknown = []
    for pattern in patterns:
        # A name such as "x[1]" is meant as it stands, although it could be read as a pattern.
        match = positions.get(pattern)
        if match is None and any(character in pattern for character in "*?["):
            match = [position for position, name in enumerate(names) if fnmatchcase(name, pattern)]
        found.update(match or [])
        if not match:
            unknown.append(pattern)
    check_patterns_found(unknown, option, names, source)
    return found
