"""Options -> the datasets of a fit."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from standout.cli._files import read_files
from standout.cli._text import printable
from standout.io import Prepared, Table, prepare, read_table, split_by_group

READING = ("format", "id_column", "label_column", "select", "drop", "variable")


@dataclass(frozen=True, eq=False)
class Datasets:
    """What was read and prepared.

    Attributes
    ----------
    prepared : Prepared
    names : list of str
        What the target and each background are called.
    files : dict of str
        Which files were read, in words.
    """

    prepared: Prepared
    names: list[str]
    files: dict[str, str]

    @property
    def tables(self) -> list[Table]:
        """The target, then the backgrounds."""
        return [self.prepared.target, *self.prepared.backgrounds]

    def without_values(self) -> Datasets:
        """Give the same without the numbers, so that their memory is free: names of rows and columns stay."""
        target, *backgrounds = (replace(table, values=np.empty((table.values.shape[0], 0))) for table in self.tables)
        return replace(self, prepared=replace(self.prepared, target=target, backgrounds=backgrounds))


def read_datasets(options: dict[str, Any], stage: Callable[[str], None], *, need_background: bool) -> Datasets:
    """Read the target and its backgrounds from several files, or from one with groups, and prepare them."""
    by_group = options["group_column"] is not None
    _check_form(options, by_group, need_background)
    read = _read_groups if by_group else _read_files
    target, backgrounds, names, files = read(options, stage)
    stage("preparing the data")
    if options["missing"] == "drop-rows":
        target, *backgrounds = (with_row_numbers(table) for table in (target, *backgrounds))
    prepared = prepare(
        target,
        backgrounds,
        log1p=options["log1p"],
        standardize=options["standardize"],
        missing=options["missing"],
        copy=False,
        background_names=names[1:],
    )
    _check_rows(prepared.backgrounds, names[1:])
    return Datasets(prepared, list(map(printable, names)), {what: printable(file) for what, file in files.items()})


def with_row_numbers(table: Table) -> Table:
    """Name rows by their numbers in the file, which would be lost once some are dropped or others put between."""
    if table.ids is not None:
        return table
    return replace(table, ids=np.arange(table.values.shape[0]).astype(str).astype(object))


Read = tuple[Table, list[Table], list[str], dict[str, str]]


def _read_groups(options: dict[str, Any], stage: Callable[[str], None]) -> Read:
    stage(f"reading {options['data']}")
    table = with_row_numbers(read_table(options["data"], group_column=options["group_column"], **_reading(options)))
    target, backgrounds = split_by_group(table, options["targets"], list(options["background_groups"]) or None)
    if target.labels is None and len(options["targets"]) > 1:
        # Several groups make the target: their names are what one would colour by.
        target = replace(target, labels=target.groups)
    names = [" + ".join(options["targets"]), *(str(part.groups[0]) for part in backgrounds if part.groups is not None)]
    return target, backgrounds, names, {"file": options["data"]}


def _read_files(options: dict[str, Any], stage: Callable[[str], None]) -> Read:
    paths = [options["data"], *options["backgrounds"]]
    _check_different(paths)
    tables = read_files(paths, _reading(options), stage)
    files = {"target file": paths[0]} | {f"background file {k}": path for k, path in enumerate(paths[1:], start=1)}
    return tables[0], tables[1:], _file_names(paths), files


def _reading(options: dict[str, Any]) -> dict[str, Any]:
    reading = {name: options[name] for name in READING}
    return {**reading, "select": list(reading["select"]) or None, "drop": list(reading["drop"])}


def _check_form(options: dict[str, Any], by_group: bool, need_background: bool) -> None:
    if by_group and options["backgrounds"]:
        raise click.UsageError("--background and --group-column are two forms. Give files, or one file with groups.")
    if by_group and not options["targets"]:
        raise click.UsageError("--group-column needs --target: which group is the target?")
    if not by_group and (options["targets"] or options["background_groups"]):
        raise click.UsageError("--target and --background-group need --group-column: which column holds the groups?")
    if need_background and not by_group and not options["backgrounds"]:
        raise click.UsageError(
            "there is nothing to compare with. Give --background FILE, or --group-column with --target, or "
            "--method pca."
        )


def _check_rows(backgrounds: list[Table], names: list[str]) -> None:
    """Refuse a background that is too small by its name; to the estimators it would be a number."""
    for table, name in zip(backgrounds, names, strict=True):
        n_rows = table.values.shape[0]
        if n_rows < 2:
            raise click.UsageError(
                f"background {name!r} has {n_rows} row, but the least is 2. Give more rows, or leave it out."
            )


def _check_different(paths: list[str]) -> None:
    """Refuse the same file twice: a dataset does not stand out against itself."""
    seen: dict[str, str] = {}
    for path in paths:
        place = os.path.realpath(Path(path).expanduser()) if "\0" not in path else path
        if place in seen:
            raise click.UsageError(f"the file {path!r} is given twice. Give different ones for target and backgrounds.")
        seen[place] = path


def _file_names(paths: list[str]) -> list[str]:
    """Call datasets by the stems of their files; by the whole name where two would be the same."""
    stems = [Path(path).name.lstrip(".").split(".")[0] for path in paths]
    return stems if len(set(stems)) == len(stems) and all(stems) else [str(path) for path in paths]
