"""From the options to the datasets of a fit: opened, read at once or in parts, and prepared."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from glob import has_magic
from pathlib import Path
from typing import Any

import click
import numpy as np

from standout._messages import Message, listed, reject_too_few
from standout.cli._display import Display, printable
from standout.io import (
    Preparation,
    Scan,
    Table,
    UnknownColumnsError,
    fits_in_memory,
    match_columns,
    prepare,
)
from standout.io import scan as open_files
from standout.sources import Source, adjusted, between_subjects, open_dataset, with_subjects, within_subjects

# What scans do about missing values, for each choice of the user: those that are filled in later are kept.
MISSING_IN_SCANS = {"error": "error", "drop-rows": "drop-rows", "drop-columns": "keep", "mean": "keep"}
MISSING_IN_WORDS = {
    "error": "an error",
    "drop-rows": "rows that have one are left out",
    "drop-columns": "columns that have one are left out",
    "mean": "replaced by the mean of the column over all rows",
}
IN_PARTS = {"reading": "in parts, because the rows are not in memory all at once"}


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
    label_name : str or None
        The column that the labels are from.
    scans : list of (Scan, list of str or None)
        For each dataset the files, and the groups if they hold several.
    subjects : list of ndarray
        For each dataset the subject of each row; empty if none are named.
    """

    parts: list[Any]
    names: list[str]
    columns: list[str]
    asked: dict[str, str]
    notes: list[Message] = field(default_factory=list)
    step: Preparation | None = None
    code: str = ""
    label_name: str | None = None
    scans: list[tuple[Scan, list[str] | None]] = field(default_factory=list)
    subjects: list[Any] = field(default_factory=list)

    def facts(self, n_fitted: int) -> dict[str, Any]:
        """Give what is known of the rows of the datasets that go into a fit, as parameters of `fit`."""
        if not self.subjects:
            return {}
        return {"groups": self.subjects[0], "background_groups": self.subjects[1:n_fitted] or None}

    @property
    def streamed(self) -> bool:
        """Whether the rows are read in parts."""
        return any(isinstance(part, Source) for part in self.parts)

    def has(self, role: str) -> bool:
        """Tell whether one of the datasets has ids, other than row numbers, or labels."""
        if self.scans:
            return any(role in scan.roles for scan, _ in self.scans)
        return any(getattr(table, role) is not None for table in self.parts)

    def dropped(self) -> list[Message]:
        """Say how many rows were left out for a missing value; known once all rows have been read."""
        notes = []
        for (scan, groups), name in zip(self.scans, self.names, strict=False):
            counts = scan.dropped
            count = sum(counts.values() if groups is None else (counts.get(group, 0) for group in groups))
            if count:
                text = "{count} row(s) of {name} were left out because a value is missing"
                notes.append(Message(text, kind="dropped rows", count=count, name=repr(name)))
        return notes


def open_datasets(options: dict[str, Any], display: Display) -> Datasets:
    """Open the target and its backgrounds, from files or from the groups of one file, and prepare them."""
    opened = _open_groups(options, display) if options["group_column"] is not None else _open_pairs(options, display)
    opened = _renamed(opened, options)
    called = _called(opened.names[1:])
    display.stage("preparing the data")
    wanted = {name: options[name] for name in ("log1p", "standardize", "missing")}
    if wanted == {"log1p": False, "standardize": "none", "missing": "error"}:
        return _with_facts(replace(opened, parts=match_columns(opened.parts, called)), options, display)
    prepared = prepare(opened.parts[0], opened.parts[1:], **wanted, copy=False, names=called)
    parts = [prepared.target, *prepared.backgrounds]
    columns = [opened.columns[place] for place in prepared.step.kept_]
    notes = [note for note in prepared.notes if note.facts.get("kind") != "constant columns"]
    code = "\n".join(filter(None, [opened.code, _prepare_code(wanted, len(parts) - 1)]))
    asked = {**opened.asked, **_in_words(wanted)}
    made = replace(
        opened, parts=_without_names(parts), columns=columns, asked=asked, notes=notes, step=prepared.step, code=code
    )
    return _with_facts(made, options, display)


def _with_facts(datasets: Datasets, options: dict[str, Any], display: Display) -> Datasets:
    """Find the subjects, and take out what is not to be looked at: covariates, what subjects have or what they lack."""
    datasets = _with_subjects(datasets, options, display)
    names, variation = list(options.get("adjust", ())), options.get("variation", "all")
    if not names and variation == "all":
        return datasets
    display.stage("taking out what is not looked at")
    sources = [open_dataset(part, name) for part, name in zip(datasets.parts, _called(datasets.names[1:]), strict=True)]
    asked = dict(datasets.asked)
    if names:
        sources = [adjusted(source, names) for source in sources]
        asked["adjusted for"] = printable(", ".join(names))
    if datasets.subjects and variation != "all":
        sources = with_subjects(sources, datasets.subjects[0], datasets.subjects[1:] or None)
        sources = between_subjects(sources) if variation == "between" else [within_subjects(one) for one in sources]
        asked["variation"] = f"{variation} subjects"
    parts = [_as_part(part, source) for part, source in zip(datasets.parts, sources, strict=True)]
    subjects = datasets.subjects
    if variation == "between":
        subjects = [source.subjects.names[source.subjects.codes] for source in sources if source.subjects is not None]
    # What was taken out is no step that new rows go through.
    said = "".join(f"\n# Before the fit: {key} {asked[key]}" for key in ("adjusted for", "variation") if key in asked)
    scans = [] if variation == "between" else datasets.scans
    return replace(datasets, parts=parts, subjects=subjects, asked=asked, code=datasets.code + said, scans=scans)


def _as_part(part: Any, source: Source) -> Any:
    """Give changed rows as the dataset was: as a table with its words, or as a source."""
    if not source.in_memory:
        return source
    rows = source.rows()
    if isinstance(part, Table) and len(rows) == len(part.values):
        return replace(part, values=rows)
    assert source.subjects is not None
    ids = source.subjects.names[source.subjects.codes].astype(object)
    named = part.columns if isinstance(part, Table) else source.columns
    return Table(rows, list(named or []), ids=ids, has_names=bool(named))


def _with_subjects(datasets: Datasets, options: dict[str, Any], display: Display) -> Datasets:
    """Find the subject of each row, if a column names them."""
    column, pattern = options.get("subject_column"), options.get("subject_pattern")
    if column is None:
        return datasets
    display.stage("looking at the subjects")
    names = dataset_variables(len(datasets.parts))
    found, lines = [], []
    for part, called, name in zip(datasets.parts, _called(datasets.names[1:]), names, strict=True):
        words = open_dataset(part, called).column(column)
        found.append(words if pattern is None else _matched(words, pattern, column, called))
        read = f"{name}.column({column!r})"
        if pattern is not None:
            read = f"[(match[1] if (match := re.search({pattern!r}, word)).groups() else match[0]) for word in {read}]"
        lines.append(f"subjects_of_{name} = {read}")
    # The columns are beside the rows of scans, before these are prepared.
    code = [*(["import re"] if pattern is not None else []), *_in_scans(datasets.code, lines)]
    asked = {**datasets.asked, "subjects": printable(column if pattern is None else f"{column}, by {pattern}")}
    return replace(datasets, subjects=found, asked=asked, code="\n".join(code))


def _in_scans(code: str, lines: list[str]) -> list[str]:
    """Put lines of code behind those that open the files."""
    every = code.split("\n")
    last = max(number for number, line in enumerate(every) if " = scan(" in line)
    return [*every[: last + 1], *lines, *every[last + 1 :]]


def _matched(words: Any, pattern: str, column: str, called: str) -> Any:
    """Give what a pattern finds in words: its first group, or all that it matches."""
    found = [re.search(pattern, word) for word in words.tolist()]
    if None in found:
        row = found.index(None)
        raise click.UsageError(
            f"--subject-pattern {pattern!r} does not match {words[row]!r}, row {row + 1} of column {column!r} of "
            f"{called}. Choose one that matches every row."
        )
    return np.array([match[1] if match.groups() else match[0] for match in found if match is not None], dtype=object)


def _renamed(opened: Datasets, options: dict[str, Any]) -> Datasets:
    """Give the datasets the names that the user has for them."""
    given = [printable(name) for name in options.get("background_name", ())]
    if given and len(given) != len(opened.names) - 1:
        raise click.UsageError(
            f"--background-name is given {len(given)} time(s), but there are {len(opened.names) - 1} background(s). "
            "Give one name for each."
        )
    target = options.get("target_name")
    return replace(
        opened,
        names=[opened.names[0] if target is None else printable(target), *(given or opened.names[1:])],
        label_name=opened.label_name or options["label_column"],
    )


# --- files ------------------------------------------------------------------------------------------------------------


def _open_pairs(options: dict[str, Any], display: Display) -> Datasets:
    """Open a target and backgrounds that are files of their own."""
    paths = [options["data"], *options["background"]]
    names = _names_of_files(paths)
    reading = reading_of(options)
    scans: list[Scan] = []
    # Each file is opened with the columns that it has.
    readings: list[tuple[str, dict[str, Any]]] = []
    # What each file was refused for: a column to be dropped need not be in every file, but in one.
    refused: dict[str, list[UnknownColumnsError]] = {pattern: [] for pattern in reading["drop"]}
    display.stage("looking at the files")
    for path, name in zip(paths, _called(names[1:]), strict=True):
        own = dict(reading)
        scan = _opened(path, own, ("id_column", "label_column") if scans else (), refused)
        scans.append(scan.called(name, 2))
        readings.append((path, own))
    for errors in refused.values():
        if len(errors) == len(paths):
            raise errors[0]
    _check_different(scans)
    scans = match_columns(scans, [scan.name for scan in scans])
    if options["where"] or options["missing"] == "drop-rows":
        scans = [scan.numbered() for scan in scans]
    parts: list[Any] = []
    if _in_memory(options, scans, display):
        for path, scan in zip(paths, scans, strict=True):
            display.stage(f"reading {path}")
            parts.append(scan.read())
    else:
        scans = [scan.with_progress(display.moves) for scan in scans]
        parts = list(scans)
    asked = {"target file": paths[0]} | {f"background file {k}": path for k, path in enumerate(paths[1:], start=1)}
    return Datasets(
        parts,
        list(map(printable, names)),
        _columns(scans[0]),
        {what: _shown_path(file) for what, file in asked.items()} | (IN_PARTS if parts == scans else {}),
        scans=[(scan, None) for scan in scans],
        code=_scan_code(readings),
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


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """Give what the options say of reading files, as parameters of `standout.scan`."""
    where: dict[str, list[str]] = {}
    for name, value in options["where"]:
        where.setdefault(name, []).append(value)
    return {
        "columns": list(options["columns"]) or None,
        "drop": list(options["drop"]),
        "where": where or None,
        **{name: options.get(name) for name in ("id_column", "label_column", "format", "variable", "checkpoint")},
        "missing": MISSING_IN_SCANS[options.get("missing", "error")],
        "in_parts": False,
        "beside": list(dict.fromkeys([*filter(None, [options.get("subject_column")]), *options.get("adjust", ())])),
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
        places = {os.path.realpath(file) for file in scan.files}
        if seen & places:
            twice = next(file for file in scan.files if os.path.realpath(file) in seen)
            raise click.UsageError(
                f"the file {twice!r} is given twice. Give different ones for target and backgrounds."
            )
        seen |= places


def _shown_path(path: str) -> str:
    """Show a path; of an absolute one only the last part: a page may be sent to others."""
    return printable(Path(path).name if Path(path).is_absolute() else path)


def _called(backgrounds: Sequence[str]) -> list[str]:
    """Give what messages call the datasets."""
    return ["the target", *(f"background {name!r}" for name in backgrounds)]


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
    reading = {**reading_of(options), "group_column": column}
    # If several groups make the target, their names are what a user would colour by.
    target_label = column if label is None and len(options["target"]) > 1 else label

    def where(groups: list[str]) -> dict[str, list[str]]:
        return {**(reading["where"] or {}), column: groups}

    display.stage("looking at the file")
    everything = open_files(path, **{**reading, "label_column": target_label}).called("the file", 1).numbered()
    in_memory = _in_memory(options, [everything], display)
    if in_memory:
        display.stage(f"reading {path}")
        named = [*options["target"], *options["background_group"]] if options["background_group"] else None
        whole = everything
        if named is not None:
            whole = open_files(path, **{**reading, "where": where(named), "label_column": target_label}).numbered()
        tables, present = whole.read_groups(lambda group: "" if group in options["target"] else group)
        if named is not None and not set(named) <= set(present):
            present = _groups(everything)
    else:
        display.stage(f"reading the groups of {path}")
        present = _groups(everything)
    target, backgrounds = _chosen_groups(options, present)
    groups = [target, *([group] for group in backgrounds)]
    readings = [{**reading, "where": where(some), "label_column": label} for some in groups]
    readings[0]["label_column"] = target_label
    called = _called(backgrounds)
    parts: list[Any]
    if in_memory:
        parts = [tables[key] for key in ("", *backgrounds)]
        for table, name in zip(parts, called, strict=True):
            if len(table.groups) < 2:
                reject_too_few(name, len(table.groups), 2)
        parts[1:] = [replace(table, labels=None) if label is None else table for table in parts[1:]]
        scans = [whole] * len(parts)
    else:
        scans = [open_files(path, **one).called(name, 2) for one, name in zip(readings, called, strict=True)]
        scans = parts = [scan.numbered().with_progress(display.moves) for scan in scans]
    return Datasets(
        parts,
        [printable(name) for name in (" + ".join(target), *backgrounds)],
        _columns(everything),
        {"file": _shown_path(path), **({} if in_memory else IN_PARTS)},
        scans=[(scan, some if in_memory else None) for scan, some in zip(scans, groups, strict=True)],
        code=_scan_code([(path, one) for one in readings]),
        label_name=target_label,
    )


def groups_of(options: dict[str, Any]) -> list[str]:
    """Find the groups of a file, by reading their column only."""
    reading = {**reading_of(options), "group_column": options["group_column"]}
    return _groups(open_files(options["data"], **reading))


def _groups(scan: Scan) -> list[str]:
    """Find the groups that there are by reading their column only."""
    return sorted({group for words in scan.words("groups") for group in set(words.tolist())})


def _chosen_groups(options: dict[str, Any], present: list[str]) -> tuple[list[str], list[str]]:
    """Check the groups that are to be target and backgrounds against those that there are."""
    target, backgrounds = list(options["target"]), list(options["background_group"])
    column, named = options["group_column"], [*target, *backgrounds]
    unknown = [group for group in named if group not in present]
    if unknown:
        option = "--target" if unknown[0] in target else "--background-group"
        known = listed("group", present)
        raise click.UsageError(f"{option} {unknown[0]} is no group of column {column!r}. Choose among {known}.")
    twice = [group for group in named if named.count(group) > 1]
    if twice:
        raise click.UsageError(f"the group {twice[0]!r} is named more than once. Name each group once.")
    if not backgrounds and "" in present:
        raise click.UsageError(
            f"some rows have no value in column {column!r}, and are neither target nor background. Fill them in, or "
            "name the backgrounds with --background-group."
        )
    others = backgrounds or [group for group in present if group not in target]
    if not others:
        raise click.UsageError(f"every group of column {column!r} is the target, and none is left as a background.")
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
    for name, (path, reading) in zip(dataset_variables(len(readings)), readings, strict=True):
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
    target, *backgrounds = dataset_variables(n_backgrounds + 1)
    made = "".join(f", {name}" for name in backgrounds)
    return (
        f"from standout.io import prepare\nprepared = prepare({target}, [{', '.join(backgrounds)}]{words})\n"
        f"{target}{made} = prepared.target{', *prepared.backgrounds' if backgrounds else ''}"
    )


def dataset_variables(n_datasets: int) -> list[str]:
    """Give the names that the code of the report has for the datasets."""
    several = [f"background_{number}" for number in range(1, n_datasets)]
    return ["target", *(["background"] if n_datasets == 2 else several)]
