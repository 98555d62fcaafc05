"""From the options to the datasets of a fit: opened, read at once or in parts, and prepared."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from glob import has_magic
from pathlib import Path
from typing import Any

import click

from standout._messages import InvalidValueError, Message, listed, reject_too_few
from standout.cli._display import Display, printable
from standout.io import (
    Preparation,
    Scan,
    Table,
    UnknownColumnsError,
    fits_in_memory,
    match_columns,
    open_files,
    prepare,
)
from standout.sources import Source

# What scans do about missing values, for each choice of the user: those that are filled in later are kept.
MISSING_IN_SCANS = {"error": "error", "drop-rows": "drop-rows", "drop-columns": "keep", "mean": "keep"}
MISSING_IN_WORDS = {
    "error": "an error",
    "drop-rows": "rows that have one are left out",
    "drop-columns": "columns that have one are left out",
    "mean": "replaced by the mean of the column over all rows",
}
IN_PARTS = "in parts, because the rows are not in memory all at once"


@dataclass(frozen=True, eq=False)
class Datasets:
    """The datasets of a fit, prepared.

    Attributes
    ----------
    parts : list of Table or Source
        The target, then the backgrounds.
    names : list of str
        What they are called.
    columns : list of str
        Names of the columns that go into the fit.
    asked : dict of str
        Which files were read, and what was done to the data, in words.
    notes : list of Message
        What was changed.
    step : Preparation or None
        What is done to new rows; None if nothing is.
    code : str
        The same in Python.
    scans : list of (Scan, list of str or None)
        For each dataset the files, and the groups if they hold several.
    """

    parts: list[Any]
    names: list[str]
    columns: list[str]
    asked: dict[str, str]
    notes: list[Message] = field(default_factory=list)
    step: Preparation | None = None
    code: str = ""
    scans: list[tuple[Scan, list[str] | None]] = field(default_factory=list)

    @property
    def streamed(self) -> bool:
        """Whether the rows are read in parts."""
        return any(isinstance(part, Source) for part in self.parts)

    def words(self, role: str, n_datasets: int) -> bool:
        """Tell whether one of the first datasets has words of a role: ids (other than row numbers) or labels."""
        known = [scan.roles for scan, _ in self.scans[:n_datasets]]
        if known:
            return any(role in roles for roles in known)
        return any(getattr(table, role) is not None for table in self.parts[:n_datasets])

    def dropped(self) -> list[Message]:
        """Say how many rows were left out for a missing value; known once all rows have been read."""
        notes = []
        for (scan, groups), name in zip(self.scans, self.names, strict=False):
            counts = scan.dropped
            count = sum(counts.values() if groups is None else (counts.get(group, 0) for group in groups))
            if count:
                notes.append(
                    Message(
                        "{count} row(s) of {name} were left out because a value is missing",
                        kind="dropped rows",
                        count=count,
                        name=repr(name),
                    )
                )
        return notes

    def without_rows(self) -> Datasets:
        """Give the same without the rows, so that their memory is free."""
        return replace(self, parts=[])


def open_datasets(options: dict[str, Any], display: Display) -> Datasets:
    """Open the target and its backgrounds, from files or from the groups of one file, and prepare them."""
    opened = _open_groups(options, display) if options["group_column"] is not None else _open_pairs(options, display)
    called = ["the target", *(f"background {name!r}" for name in opened.names[1:])]
    display.stage("preparing the data")
    wanted = {name: options[name] for name in ("log1p", "standardize", "missing")}
    if wanted == {"log1p": False, "standardize": "none", "missing": "error"}:
        return replace(opened, parts=match_columns(opened.parts, called))
    prepared = prepare(opened.parts[0], opened.parts[1:], **wanted, copy=False, names=called)
    parts = [prepared.target, *prepared.backgrounds]
    columns = [opened.columns[place] for place in prepared.step.kept_]
    notes = [note for note in prepared.notes if note.facts.get("kind") != "constant columns"]
    code = "\n".join(filter(None, [opened.code, _prepare_code(wanted, len(parts) - 1)]))
    asked = {**opened.asked, **_in_words(wanted)}
    return replace(
        opened, parts=_without_names(parts), columns=columns, asked=asked, notes=notes, step=prepared.step, code=code
    )


# --- files ------------------------------------------------------------------------------------------------------------


def _open_pairs(options: dict[str, Any], display: Display) -> Datasets:
    """Open a target and backgrounds that are files of their own."""
    paths = [options["data"], *options["background"]]
    names = _names_of_files(paths)
    reading = _reading(options)
    scans: list[Scan] = []
    # What each file was refused for: a column to be dropped need not be in every file, but in one.
    refused: dict[str, list[UnknownColumnsError]] = {pattern: [] for pattern in reading["drop"]}
    display.stage("looking at the files")
    for path, name in zip(paths, names, strict=True):
        scan = _opened(path, dict(reading), ("id_column", "label_column") if scans else (), refused)
        scans.append(scan.called(f"background {name!r}" if scans else "the target", 2))
    for errors in refused.values():
        if len(errors) == len(paths):
            raise errors[0]
    _check_different(scans)
    scans = match_columns(scans, [scan.name for scan in scans])
    if options["where"] or options["missing"] == "drop-rows":
        scans = [scan.numbered() for scan in scans]
    parts: list[Any]
    if _in_memory(options, scans, display):
        parts = []
        for path, scan in zip(paths, scans, strict=True):
            display.stage(f"reading {path}")
            parts.append(scan.read())
    else:
        scans = [scan.with_progress(display.moves) for scan in scans]
        parts = list(scans)
    asked = {"target file": paths[0]} | {f"background file {k}": path for k, path in enumerate(paths[1:], start=1)}
    asked |= {"reading": IN_PARTS} if parts == scans else {}
    return Datasets(
        parts,
        list(map(printable, names)),
        _columns(scans[0]),
        {what: printable(file) for what, file in asked.items()},
        scans=[(scan, None) for scan in scans],
        code=_scan_code([(path, reading) for path in paths]),
    )


def _opened(
    path: str,
    reading: dict[str, Any],
    optional: Sequence[str],
    refused: dict[str, list[UnknownColumnsError]],
) -> Scan:
    """Open one dataset, again if it lacks a column that it need not have.

    Columns of ids and labels are the target's: a background need not have them.
    """
    while True:
        try:
            return open_files(path, **reading)
        except UnknownColumnsError as error:
            if error.parameter in optional:
                reading[error.parameter] = None
            elif error.parameter == "drop":
                unknown = error.facts["names"]
                for pattern in dict.fromkeys(unknown):
                    refused[pattern].append(error)
                reading["drop"] = [pattern for pattern in reading["drop"] if pattern not in unknown]
            else:
                raise


def _reading(options: dict[str, Any]) -> dict[str, Any]:
    where: dict[str, list[str]] = {}
    for name, value in options["where"]:
        where.setdefault(name, []).append(value)
    return {
        "columns": list(options["columns"]) or None,
        "drop": list(options["drop"]),
        "where": where or None,
        **{name: options[name] for name in ("id_column", "label_column", "format", "variable", "checkpoint")},
        "missing": MISSING_IN_SCANS[options["missing"]],
    }


def _in_memory(options: dict[str, Any], scans: list[Scan], display: Display) -> bool:
    """Decide whether all rows are read at once: by the option, or by the memory that there is."""
    need = fits_in_memory(scans)
    chosen = need.fits if options["in_memory"] is None else bool(options["in_memory"])
    if not chosen:
        for scan in scans:
            scan.check_in_parts()
        display.stage("the files are read in parts" + ("" if options["in_memory"] is False else f" ({need})"))
    return chosen


def _check_different(scans: list[Scan]) -> None:
    """Refuse a file that is part of two datasets: a dataset does not stand out against itself."""
    seen: set[str] = set()
    for scan in scans:
        places = {os.path.realpath(Path(file).expanduser()) for file in scan.files}
        if seen & places:
            twice = next(file for file in scan.files if os.path.realpath(Path(file).expanduser()) in seen)
            raise click.UsageError(
                f"the file {twice!r} is given twice. Give different ones for target and backgrounds."
            )
        seen |= places


def _names_of_files(paths: Sequence[str]) -> list[str]:
    """Name datasets after their files or folders, without extensions; by the whole path if two would be the same."""
    stems = [_stem(path) for path in paths]
    return stems if len(set(stems)) == len(stems) and all(stems) else [str(path) for path in paths]


def _stem(path: str) -> str:
    parts = [part for part in Path(path).parts if not has_magic(part)] or [path]
    return Path(parts[-1]).name.lstrip(".").split(".")[0]


# --- groups of one file -----------------------------------------------------------------------------------------------


def _open_groups(options: dict[str, Any], display: Display) -> Datasets:
    """Open one file whose rows are told apart by the groups that a column has."""
    path, column, label = options["data"], options["group_column"], options["label_column"]
    if len(options["target"]) > 1 and label is None:
        # Several groups make the target: their names are what a user would colour by.
        label = column
    reading = {**_reading(options), "group_column": column}
    conditions = reading["where"] or {}

    def opened(groups: Sequence[str] | None, label: str | None, name: str) -> Scan:
        where = {**conditions, column: list(groups)} if groups else conditions
        scan = open_files(path, **{**reading, "where": where or None, "label_column": label})
        return scan.called(name, 1 if groups is None else 2).numbered()

    display.stage("looking at the file")
    everything = opened(None, label, "the file")
    if _in_memory(options, [everything], display):
        display.stage(f"reading {path}")
        named = [*options["target"], *options["background_group"]] if options["background_group"] else None
        whole = opened(named, label, "the file")
        tables, present = whole.read_groups(_table_of(options))
        if named is not None and not set(named) <= set(present):
            present = _groups(everything)
        target, backgrounds = _chosen_groups(options, present)
        parts: list[Any] = [tables["target"], *(tables[f"background {group}"] for group in backgrounds)]
        if label != options["label_column"]:
            parts[1:] = [replace(table, labels=None) for table in parts[1:]]
        for table, name in zip(parts, ["the target", *(f"background {group!r}" for group in backgrounds)], strict=True):
            if table.values.shape[0] < 2:
                reject_too_few(name, table.values.shape[0], 2)
        scans = [whole] * len(parts)
    else:
        display.stage(f"reading the groups of {path}")
        target, backgrounds = _chosen_groups(options, _groups(everything))
        scans = [opened(target, label, "the target")]
        scans += [opened([group], options["label_column"], f"background {group!r}") for group in backgrounds]
        scans = [scan.with_progress(display.moves) for scan in scans]
        parts = list(scans)
    groups = [target, *([group] for group in backgrounds)]
    names = [" + ".join(target), *backgrounds]
    code = [
        (
            path,
            {**reading, "where": {**conditions, column: some}, "label_column": options["label_column"] if k else label},
        )
        for k, some in enumerate(groups)
    ]
    return Datasets(
        parts,
        list(map(printable, names)),
        _columns(everything),
        {"file": printable(path), **({"reading": IN_PARTS} if parts == scans else {})},
        scans=list(zip(scans, groups, strict=True)),
        code=_scan_code(code),
    )


def _table_of(options: dict[str, Any]) -> Callable[[str], str | None]:
    """Say to which table the rows of a group belong."""
    target, backgrounds = set(options["target"]), set(options["background_group"])

    def table_of(group: str) -> str | None:
        if group in target:
            return "target"
        return f"background {group}" if not backgrounds or group in backgrounds else None

    return table_of


def _groups(scan: Scan) -> list[str]:
    """Find the groups that there are by reading their column only."""
    return sorted({group for words in scan.words("groups") for group in set(words.tolist())})


def _chosen_groups(options: dict[str, Any], present: list[str]) -> tuple[list[str], list[str]]:
    """Check the groups that are to be target and backgrounds against those that there are."""
    target, backgrounds = list(options["target"]), list(options["background_group"])
    column = repr(options["group_column"])
    for parameter, groups in (("target", target), ("background_group", backgrounds)):
        for group in groups:
            if group not in present:
                raise InvalidValueError(
                    "is no group of column {column}, which has {known}",
                    parameter=parameter,
                    value=group,
                    column=column,
                    known=listed("group", present),
                    advice="Choose among these.",
                )
    named = [*target, *backgrounds]
    twice = next((group for group in named if named.count(group) > 1), None)
    if twice is not None:
        raise InvalidValueError(
            "the group {group} is named more than once in {p.target} and {p.background_group}",
            group=repr(twice),
            advice="Name each group once.",
        )
    if not backgrounds and "" in present:
        raise InvalidValueError(
            "some rows have no value in column {column}, so that they are neither target nor background",
            column=column,
            advice="Fill them in, or name the backgrounds with {p.background_group}.",
        )
    others = backgrounds or [group for group in present if group not in target]
    if not others:
        raise InvalidValueError(
            "all groups of column {column} are the target, and none is left as a background",
            column=column,
            advice="Name fewer groups with {p.target}.",
        )
    return target, others


# --- what is common ---------------------------------------------------------------------------------------------------


def _columns(scan: Scan) -> list[str]:
    return [f"x{number}" for number in range(scan.width or 0)] if scan.columns is None else list(scan.columns)


def _without_names(parts: list[Any]) -> list[Any]:
    """Give tables without names: after a preparing step, new rows come as arrays."""
    return [replace(part, has_names=False) if isinstance(part, Table) else part for part in parts]


def _in_words(wanted: dict[str, Any]) -> dict[str, str]:
    """Say what was done to the data on request."""
    said = {}
    if wanted["log1p"]:
        said["logarithm"] = "log(1 + x) of every value"
    if wanted["standardize"] != "none":
        whose = "all background rows" if wanted["standardize"] == "background" else "all rows"
        said["scale"] = f"columns centred and scaled by {whose}"
    if wanted["missing"] != "error":
        said["missing values"] = MISSING_IN_WORDS[wanted["missing"]]
    return said


def _scan_code(readings: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Write in Python how the datasets are opened."""
    lines = ["from standout import scan"]
    for name, (path, reading) in zip(_variables(len(readings)), readings, strict=True):
        given = {
            option: value
            for option, value in reading.items()
            if value not in (None, [], "error") and option not in ("checkpoint", "group_column")
        }
        words = "".join(f", {option}={value!r}" for option, value in given.items())
        lines.append(f"{name} = scan({path!r}{words})")
    return "\n".join(lines)


def _prepare_code(wanted: dict[str, Any], n_backgrounds: int) -> str:
    """Write in Python how the datasets are prepared."""
    given = {name: value for name, value in wanted.items() if value not in (False, "none", "error", "drop-rows")}
    if not given:
        return ""
    words = "".join(f", {option}={value!r}" for option, value in given.items())
    target, *backgrounds = _variables(n_backgrounds + 1)
    made = "".join(f", {name}" for name in backgrounds)
    return (
        f"from standout.io import prepare\nprepared = prepare({target}, [{', '.join(backgrounds)}]{words})\n"
        f"{target}{made} = prepared.target{', *prepared.backgrounds' if backgrounds else ''}"
    )


def _variables(n_datasets: int) -> list[str]:
    """Give the names that the code of the report has for the datasets."""
    several = [f"background_{number}" for number in range(1, n_datasets)]
    return ["target", *(["background"] if n_datasets == 2 else several)]
