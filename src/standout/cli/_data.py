"""From the options to the datasets of a fit: opened, read at once or in parts, and prepared."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import has_magic
from pathlib import Path
from typing import Any

import click
import numpy as np

import standout
from standout._messages import InvalidValueError, listed
from standout.cli._display import Display, printable
from standout.io import Scan, prepare
from standout.sources import InMemory, Source
from standout.sources import open_datasets as matched_datasets
from standout.sources._base import Chosen

# A fit in memory takes about this many times the bytes of its rows.
FACTOR = 3.0
# Bytes of all rows, as a multiple of the size of a file of text.
AS_NUMBERS, GUNZIPPED = 1.0, 4.0


@dataclass
class Datasets:
    """The datasets of a fit, prepared.

    Attributes
    ----------
    sources : list of Source
        The target, then the backgrounds, under the names that the report shows.
    columns : list of str
        Names of the columns that go into the fit.
    label_name : str or None
        The column that the labels are from.
    notes : list
        Warnings of reading.
    steps : list
        What is done to new rows before the model.
    words : list of dict
        For each dataset the columns beside the rows that the options name.
    """

    sources: list[Source]
    columns: list[str]
    label_name: str | None = None
    notes: list[Any] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)


def open_datasets(options: dict[str, Any], display: Display) -> Datasets:
    """Open the target and its backgrounds, from files or from the conditions of one file, and prepare them."""
    from standout.cli._fit import collected_warnings

    with collected_warnings() as notes:
        made = _conditions(options, display) if options["condition_column"] is not None else _files(options, display)
        _rename(made, options)
        display.stage("preparing the data")
        made.label_name = made.label_name or options["label_column"]
        _prepare(made, options)
        _attach(made, options)
    made.notes += notes
    return made


def open_table(options: dict[str, Any], display: Display, beside: Sequence[str]) -> Datasets:
    """Open one file as one dataset, with some columns beside the rows."""
    from standout.cli._fit import collected_warnings

    with collected_warnings() as notes:
        display.stage("looking at the file")
        scan = open_scan(options["data"], options, beside=beside)
        source = _loaded([scan], options, display)[0]
        made = Datasets([source], [], words=[scan.words(list(dict.fromkeys([*beside, *_beside(options)])))])
        _prepare(made, options)
        _attach(made, options)
    made.notes += notes
    return made


# --- files ------------------------------------------------------------------------------------------------------------


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return what the options say of reading files, as parameters of `standout.scan`."""
    where: dict[str, list[str]] = {}
    for name, value in options["where"]:
        where.setdefault(name, []).append(value)
    missing = options.get("missing", "error")
    return {
        "columns": list(options["columns"]) or None,
        "exclude": list(options["exclude"]),
        "where": where or None,
        "label": options.get("label_column"),
        "missing": missing if missing in ("error", "drop-rows") else "keep",
        "strict": bool(options.get("strict", False)),
        **{name: options.get(name) for name in ("id_column", "format", "variable", "delimiter", "encoding")},
        "decimal": options.get("decimal") or ".",
    }


def _beside(options: dict[str, Any]) -> list[str]:
    """Name the columns beside the rows: subjects, weights, covariates."""
    given = [options.get("subject_column"), options.get("weight_column"), *options.get("adjust", ())]
    return list(dict.fromkeys(name for name in given if name is not None))


def open_scan(
    path: str,
    options: dict[str, Any],
    *,
    beside: Sequence[str] = (),
    optional: Sequence[str] = (),
    unknown: dict[str, list[InvalidValueError]] | None = None,
) -> Scan:
    """Open one dataset; `beside` are columns that are not data, `optional` parameters that it need not have.

    A column to be left out may be in one file only: `unknown` collects the errors of files that lack it.
    """
    reading, roles = reading_of(options), dict.fromkeys(beside, "condition_column")
    roles |= {
        str(options[name]): name for name in ("subject_column", "weight_column", "person_column") if options.get(name)
    } | dict.fromkeys(options.get("adjust", ()), "adjust")
    # Columns with two uses, such as colours and subjects, are not data because of the other use.
    aside = [name for name in roles if name not in (reading["label"], reading["id_column"])]
    reading["exclude"] += [name for name in aside if not any(name == other for other, _ in options["where"])]
    while True:
        try:
            return standout.scan(path, **reading)
        except InvalidValueError as error:
            parameter, name = str(error.parameter), str(error.value)
            if parameter in optional and reading[parameter] is not None:
                reading[parameter] = None
            elif parameter == "exclude" and name in roles:
                error.parameter = roles[name]
                raise
            elif parameter == "exclude" and unknown is not None:
                unknown.setdefault(name, []).append(error)
                reading["exclude"].remove(name)
            else:
                raise


def _files(options: dict[str, Any], display: Display) -> Datasets:
    """Open a target and backgrounds that are files of their own."""
    paths = [options["data"], *options["background"]]
    unknown: dict[str, list[InvalidValueError]] = {}
    display.stage("looking at the files")
    scans = [
        # Columns of ids and labels are the target's: a background need not have them.
        open_scan(path, options, optional=("id_column", "label") if number else (), unknown=unknown)
        for number, path in enumerate(paths)
    ]
    for errors in unknown.values():
        if len(errors) == len(paths):
            raise errors[0]
    _check_different(scans)
    matched: Any = matched_datasets(scans[0], scans[1:] or None)
    # Missing values stay to be filled in: a fit would refuse them.
    rule = reading_of(options)["missing"]
    matched = [
        scan.named(shown).with_missing(rule) for scan, shown in zip(matched, _names_of_files(paths), strict=True)
    ]
    sources = _loaded(matched, options, display)
    words = _beside(options)
    beside = [scan.words(words) for scan in matched] if words else []
    notes = [
        f"{scan.n_dropped} row(s) of {source.name!r} with a missing value were left out."
        for scan, source in zip(matched, sources, strict=True)
        if scan.n_dropped
    ]
    return Datasets(sources, [], words=beside, notes=notes)


def _loaded(scans: Sequence[Any], options: dict[str, Any], display: Display) -> list[Source]:
    """Read all rows at once, or leave them to be read in parts: by the option, or by the memory that there is."""
    needed, available = FACTOR * sum(map(_n_bytes, scans)), _available()
    in_memory = options["in_memory"] if options["in_memory"] is not None else needed <= available
    if not in_memory:
        sizes = f" ({needed / 1e9:.1f} GB needed, {available / 1e9:.1f} GB available)"
        display.stage("the files are read in parts" + (sizes if options["in_memory"] is None else ""))
        return list(scans)
    found = []
    for scan in scans:
        display.stage(f"reading {scan.name}")
        found.append(scan.loaded())
    return found


def _n_bytes(scan: Any) -> float:
    """Return about how many bytes all rows take; the number of rows of a text file is not known."""
    if scan.n_rows is not None:
        return 8.0 * scan.n_rows * scan.width
    with suppress(OSError):
        return sum(
            Path(file).stat().st_size * (GUNZIPPED if file.endswith(".gz") else AS_NUMBERS) for file in scan.files
        )
    return 0.0


def _available() -> float:
    """Return the bytes that there are: those of the system, or of the control group of a container."""
    found = [float("inf")]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        files = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        used = int((group / "memory.current").read_text()) - int(files.get("inactive_file", 0))
        found.append(float(int((group / "memory.max").read_text()) - used))
    return max(min(found), 0.0)


def _check_different(scans: Sequence[Scan]) -> None:
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


def _names_of_files(paths: Sequence[str]) -> list[str]:
    """Name datasets after their files or folders, without extensions; by the whole path if two would be the same."""
    parts = [[part for part in Path(path).parts if not has_magic(part)] or [path] for path in paths]
    stems = [Path(names[-1]).name.lstrip(".").split(".")[0] for names in parts]
    return stems if len(set(stems)) == len(stems) and all(stems) else [str(path) for path in paths]


def _rename(made: Datasets, options: dict[str, Any]) -> None:
    """Give the datasets the names that the user has for them."""
    given, n_backgrounds = list(options.get("background_name", ())), len(made.sources) - 1
    if given and len(given) != n_backgrounds:
        raise click.UsageError(
            f"--background-name is given {len(given)} time(s), but there are {n_backgrounds} background(s). Give one "
            "name for each."
        )
    names = [source.name for source in made.sources]
    names = [options.get("target_name") or names[0], *(given or names[1:])]
    made.sources = [source.named(printable(name)) for source, name in zip(made.sources, names, strict=True)]


# --- conditions of one file -------------------------------------------------------------------------------------------


def _conditions(options: dict[str, Any], display: Display) -> Datasets:
    """Open one file whose rows are told apart by the conditions that a column has."""
    column = options["condition_column"]
    display.stage("looking at the file")
    scan = open_scan(options["data"], options, beside=[column])
    whole = _loaded([scan.named(options["data"])], options, display)[0]
    words = scan.words(list(dict.fromkeys([column, *_beside(options)])))
    present = words[column]
    target, backgrounds = _chosen_conditions(options, sorted(set(present.tolist())))
    made = Datasets([], [])
    for number, names in enumerate([target, *([name] for name in backgrounds)]):
        mask = np.isin(present, names)
        if mask.sum() < 2:
            raise click.UsageError(f"{' + '.join(names)!r} has {mask.sum()} row(s), but at least 2 are needed.")
        part: Source = Chosen(whole, mask, " + ".join(names))
        part = part if whole.rows is None else part.loaded()
        if number == 0 and len(target) > 1 and options["label_column"] is None:
            # If several conditions make the target, their names are what a user would colour by.
            part.labels, made.label_name = present[mask], column
        made.sources.append(part)
        made.words.append({name: values[mask] for name, values in words.items()})
    if scan.n_dropped:
        made.notes.append(f"{scan.n_dropped} row(s) of the file with a missing value were left out.")
    return made


def _chosen_conditions(options: dict[str, Any], present: list[str]) -> tuple[list[str], list[str]]:
    """Check the conditions that are to be target and backgrounds against those that there are."""
    target, backgrounds = list(options["target"]), list(options["background_condition"])
    column, named = options["condition_column"], [*target, *backgrounds]
    unknown = [name for name in named if name not in present]
    if unknown:
        option = "--target" if unknown[0] in target else "--background-condition"
        known = listed("condition", present)
        raise click.UsageError(f"{option} {unknown[0]} is not in column {column!r}. Choose among {known}.")
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise click.UsageError(f"the condition {twice[0]!r} is named more than once. Name each one once.")
    if not backgrounds and "" in present:
        raise click.UsageError(
            f"some rows have no value in column {column!r}, and are neither target nor background. Fill them in, or "
            "name the backgrounds with --background-condition."
        )
    others = backgrounds or [name for name in present if name not in target]
    if not others and options.get("method") not in ("pca", "kpca"):
        raise click.UsageError(f"every condition of column {column!r} is the target, and none is left as a background.")
    return target, others


# --- subjects, weights, preparation -----------------------------------------------------------------------------------


def _attach(made: Datasets, options: dict[str, Any]) -> None:
    """Put subjects, weights and covariates beside the rows, if columns or blocks have them."""
    facts: dict[str, list[Any]] = {}
    if options.get("subject_column") is not None:
        facts["groups"] = [
            _matched(part[options["subject_column"]], options, source.name) for part, source in _pairs(made)
        ]
    elif options.get("blocks") is not None:
        numbers = [standout.blocks(source.count_rows(), options["blocks"]) for source in made.sources]
        # Blocks of two datasets are never the same.
        facts["groups"] = [np.array([f"{k}:{block}" for block in each]) for k, each in enumerate(numbers)]
    if options.get("weight_column") is not None:
        facts["sample_weight"] = [
            _numbers(part[options["weight_column"]], source.name) for part, source in _pairs(made)
        ]
    if options.get("adjust"):
        facts["adjust"] = [{name: part[name] for name in options["adjust"]} for part in made.words]
    if options.get("within"):
        if any(source.rows is None for source in made.sources):
            raise click.UsageError("--within needs all rows in memory. Add --in-memory, or leave it out.")
        made.sources = [
            InMemory(standout.within(source.rows, subjects), source.name, source.keys)._beside(source)
            for source, subjects in zip(made.sources, facts["groups"], strict=True)
        ]
    if facts:
        names = [source.name for source in made.sources]
        given = {name: each[0] for name, each in facts.items()}
        if len(names) > 1:
            given |= {f"background_{name}": each[1:] for name, each in facts.items()}
        opened = matched_datasets(made.sources[0], made.sources[1:] or None, **given)
        made.sources = [source.named(name) for source, name in zip(opened, names, strict=True)]


def _pairs(made: Datasets) -> Any:
    return zip(made.words, made.sources, strict=True)


def _matched(words: Any, options: dict[str, Any], called: str) -> Any:
    """Return what the pattern finds in words: its first group, or all that it matches."""
    pattern = options.get("subject_pattern")
    if pattern is None:
        return words
    found = [re.search(pattern, word) for word in words.tolist()]
    if None in found:
        row = found.index(None)
        raise click.UsageError(
            f"--subject-pattern {pattern!r} does not match {words[row]!r}, row {row + 1} of column "
            f"{options['subject_column']!r} of {called!r}. Choose one that matches every row."
        )
    return np.array([match[1] if match.groups() else match[0] for match in found if match is not None], dtype=object)


def _numbers(words: Any, called: str) -> Any:
    try:
        return words.astype(np.float64)
    except ValueError as error:
        raise click.UsageError(f"--weight-column has a value of {called!r} that is not a number: {error}.") from None


def _prepare(made: Datasets, options: dict[str, Any]) -> None:
    """Take logarithms, fill gaps in, and leave constant columns out."""
    width, sides = made.sources[0].width or 0, options.get("image_shape")
    if sides is not None and sides[0] * sides[1] != width:
        raise click.UsageError(
            f"--image-shape {sides[0]}x{sides[1]} has {sides[0] * sides[1]} pixels, but there are {width} columns."
        )
    names = made.sources[0].columns or [f"x{number}" for number in range(width)]
    made.columns = [printable(name) for name in names]
    if sides is not None and not options["log1p"] and options["missing"] in ("error", "drop-rows"):
        # Constant pixels at the borders of images stay.
        return
    given = {name: options[name] for name in ("log1p", "missing", "strict")}
    made.sources, step = prepare(made.sources, **given)
    made.columns = [printable(name) for name in step.get_feature_names_out()]
    named = made.sources[0].columns is not None
    if options["log1p"] or options["missing"] != "error" or (not named and len(step.kept_) < step.n_features_in_):
        made.steps = [step]
