"""Which column of a file is what: data, ids, labels, groups, or nothing at all; and the same columns in other files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from standout._checks import check_known, check_same_columns
from standout._messages import InvalidTypeError, InvalidValueError, listed, short, shown
from standout.io._reader import Head, Wanted, unusable, word

ROLES = {"ids": "id_column", "labels": "label_column", "groups": "group_column"}
# What the role of a column that is kept beside the rows starts with.
BESIDE = "beside "


class UnknownColumnsError(InvalidValueError):
    """A file lacks columns that were asked for by name: `parameter` says as what, `value` which."""


@dataclass(frozen=True)
class Asked:
    """What the user asks of files, by names.

    Attributes
    ----------
    columns, drop : tuple of str
        Columns to take, in this order (all, if empty), and to leave out; patterns such as ``"gene_*"`` are allowed.
    roles : mapping of str to str
        The columns that hold ids, labels and groups, and those that are kept beside the rows.
    where : mapping of str to tuple of str
        For a column, the values of the rows that are wanted.
    """

    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def ask(columns: Any, drop: Any, roles: Mapping[str, Any], where: Any, beside: Any = ()) -> Asked:
    """Check the types of what the user asks."""
    for role, name in roles.items():
        if name is not None:
            _check_name(name, ROLES[role])
    kept = {BESIDE + name: name for name in _patterns(beside, "beside")}
    return Asked(
        _patterns(columns, "columns"),
        _patterns(drop, "drop"),
        {**{role: name for role, name in roles.items() if name is not None}, **kept},
        _conditions(where),
    )


def _patterns(given: Any, parameter: str) -> tuple[str, ...]:
    several = (given,) if isinstance(given, str) else tuple(given if given is not None else ())
    for pattern in several:
        _check_name(pattern, parameter)
    return several


def _check_name(name: Any, parameter: str) -> None:
    if not isinstance(name, str):
        problem = "is not the name of a column"
        raise InvalidTypeError(problem, parameter=parameter, value=name, advice="Give strings.")


def _conditions(where: Any) -> dict[str, tuple[str, ...]]:
    if where is None:
        return {}
    if not isinstance(where, Mapping) or not all(isinstance(name, str) for name in where):
        problem, advice = "is not a mapping from names of columns to values", 'Give, say, {{"condition": "stim"}}.'
        raise InvalidTypeError(problem, parameter="where", value=where, advice=advice)
    several = {name: tuple(map(word, _as_list(values))) for name, values in where.items()}
    empty = [name for name, values in several.items() if not values]
    if empty:
        raise InvalidValueError(
            "names no value of column {column}", parameter="where", column=repr(empty[0]), advice="Give one at least."
        )
    return several


def _as_list(values: Any) -> list[Any]:
    """Give one value, or several in any container, as a list."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        return [values]
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def choose(head: Head, asked: Asked, source: Any) -> Wanted:
    """Choose the columns of a file by name."""
    names = head.called
    beside = set(head.beside)
    every = [*head.beside, *(name for name in names if name not in beside)]
    for role, name in asked.roles.items():
        # The names that a file keeps for its rows need no column.
        if not (role == "ids" and name == "" and head.has_ids):
            _check_column(name, _parameter(role), every, names, beside, source)
    for name in asked.where:
        _check_column(name, "where", every, names, beside, source)
    named = [(_parameter(role), name) for role, name in asked.roles.items() if name not in beside]
    conditions = [name for name in asked.where if name not in beside]
    for parameter, name in [*named, *(("where", name) for name in conditions)]:
        if name in asked.columns:
            problem, facts = "has {name}, which is also {other}", {"name": repr(short(name)), "other": parameter}
            advice = "Leave it out of {p.columns}: it does not go into a fit."
            raise InvalidValueError(problem, parameter="columns", advice=advice, **facts)
    dropped = set(_matching(asked.drop, names, "drop", source))
    is_index = head.index is not None and head.index not in asked.columns
    aside = {*(name for _, name in named), *conditions, *([head.index] if is_index else [])}
    chosen = _matching(asked.columns, names, "columns", source) if asked.columns else range(len(names))
    features = [place for place in chosen if place not in dropped and names[place] not in aside]
    check_unique([names[place] for place in features], source)
    if not features:
        advice = "Leave out fewer columns, or choose others with {p.columns}."
        unusable(source, "no column is left as data, but the least is {limit}", advice, limit=1)
    roles = dict(asked.roles)
    if head.has_ids:
        roles.setdefault("ids", "")
    elif is_index and not any(names[place] == head.index for place in dropped):
        roles.setdefault("ids", str(head.index))
    roles |= {f"where {name}": name for name in asked.where}
    return Wanted(compact(features), roles)


def _parameter(role: str) -> str:
    """Name the parameter that asks for a role."""
    return ROLES.get(role, "beside")


def choose_again(head: Head, first: Head, wanted: Wanted, asked: Asked, source: Any, reference: Any) -> Wanted:
    """Find the columns of a further file: by name, or by position if one of the two has no names."""
    words = set(wanted.words.values())
    if head.names is None or first.names is None:
        if head.width != first.width:
            problem = "it has {width} columns, but the first file has {limit}"
            unusable(source, problem, "Give files with the same columns.", width=head.width, limit=first.width)
        features, names, found = wanted.features, [], []
    else:
        known = {name: place for place, name in enumerate(head.names)}
        names = [first.names[place] for place in wanted.features]
        found = [name for name in names if name in known]
        # Columns that are not asked for may differ; if all are, none may.
        used = {*names, *words, head.index}
        if not asked.columns and not asked.drop:
            found += [name for name in head.names if name not in used]
        features = wanted.features if head.names == first.names else compact([known.get(name, -1) for name in names])
        if head.names != first.names:
            check_unique([name for name in head.names if name in set(names)], source)
    needed, found = [*words, *names], [*(name for name in words if _has_words(head, name)), *found]
    advice = "Give files with the same columns, in any order, or name those to take with {p.columns}."
    first_file = f"the first file, {shown(reference)},"
    check_same_columns(len(found), found, shown(source), len(needed), needed, first_file, advice)
    return Wanted(features, wanted.words)


def _has_words(head: Head, name: str) -> bool:
    """Tell whether a file has a column, or a vector beside its columns, of this name; "" can be the names of rows."""
    return name in head.beside or name in head.called or (name == "" and head.has_ids)


def check_unique(names: Sequence[str], source: Any) -> None:
    """Refuse two columns of one name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        problem = "it has {columns} more than once, and the first line must hold the names"
        advice = "Rename the columns, or leave them out with {p.drop}."
        unusable(source, problem, advice, columns=listed("column", twice))


def _check_column(
    name: str, parameter: str, every: Sequence[str], names: Sequence[str], beside: set[str], source: Any
) -> None:
    """Check that a column named by the user is there, once."""
    check_known(name, parameter, every, f"in {shown(source)}", "column", UnknownColumnsError)
    if name not in beside:
        check_unique([other for other in names if other == name], source)


def _matching(patterns: Sequence[str], names: Sequence[str], parameter: str, source: Any) -> list[int]:
    """Find the columns that have one of these names, or else match it as a pattern, in the order of the patterns."""
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        positions.setdefault(name, []).append(position)
    found: dict[int, None] = {}
    unknown = []
    for pattern in patterns:
        # A name such as "x[1]" is taken literally, although it could be read as a pattern.
        match = positions.get(pattern)
        if match is None and any(character in pattern for character in "*?["):
            match = [position for position, name in enumerate(names) if fnmatchcase(name, pattern)]
        found.update(dict.fromkeys(match or []))
        if not match:
            unknown.append(pattern)
    if unknown:
        raise UnknownColumnsError(
            "names {unknown}, but no column of {source} is called so: it has {known}",
            parameter=parameter,
            unknown=listed("column", unknown),
            names=unknown,
            source=shown(source),
            known=listed("column", names) if names else "no columns",
            advice="Check the spelling; * and ? stand for anything.",
        )
    return list(found)


def compact(places: list[int]) -> Sequence[int]:
    """Keep all columns in their order as a range: a scan may have many files and columns."""
    return range(len(places)) if places == list(range(len(places))) else tuple(places)
