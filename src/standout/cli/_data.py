"""Make the datasets of a fit from the options: open the files, read them whole or in parts, and prepare the data."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import has_magic
from operator import methodcaller
from pathlib import Path
from typing import Any, cast

import click
import numpy as np

import standout
from standout._arrays import in_order
from standout._messages import InvalidValueError, collected_warnings, listed
from standout.cli._display import Display, printable
from standout.cli._options import FITTED_AS, refuse
from standout.io import Scan, prepare
from standout.sources import InMemory, Source
from standout.sources import open_datasets as matched_datasets
from standout.sources._base import Chosen

# A fit in memory needs about this many times the bytes of its rows.
FACTOR = 3.0
# Estimated bytes of all rows of a compressed text file, as a multiple of the size of the file.
GUNZIPPED = 4.0


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
        The column of the labels.
    names_subjects : str or None
        The column that may name the subjects: the column of ids, otherwise the only text column that is not data.
    notes : list
        Warnings from reading.
    steps : list
        Steps that prepare new rows before the model.
    words : list of dict
        For each dataset, the columns that options name and that are not data (condition, subjects, weights), as text.
    draw : callable or None
        Function that writes pictures of a fitted model into a folder.
    """

    sources: list[Source]
    columns: list[str]
    label_name: str | None = None
    names_subjects: str | None = None
    notes: list[Any] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)
    draw: Callable[[Any, Path], None] | None = None


def open_datasets(
    options: dict[str, Any], display: Display, beside: Sequence[str] = (), split: bool = True
) -> Datasets:
    """Open and prepare the target and its backgrounds.

    They are separate files, or conditions of one file if `split` is True. `beside` names further columns that are read
    as text and are not data.
    """
    column = options["condition_column"] if split else None
    # Columns that are not data, each with the parameter that names it.
    roles = dict.fromkeys([*beside, *([] if column is None else [column])], "condition_column")
    roles |= {options[name]: name for name in ("subject_column", "weight_column") if options.get(name) is not None}
    roles |= dict.fromkeys(options.get("adjust", ()), "adjust")
    with collected_warnings() as notes:
        display.stage("looking at the files")
        scans, id_name = _scans([options["data"], *options.get("background", ())], options, roles)
        words = [scan.words(list(roles)) if roles else {} for scan in scans]
        texts = [name for name in scans[0].left_out.get("text", []) if id_name is None]
        named = texts[0] if len(texts) == 1 else id_name
        made = Datasets(_loaded(scans, options, display), [], options["label_column"], named, words=words)
        if column is not None:
            _split(made, options)
        # Names from the user replace the names of files or conditions.
        given, found = list(options.get("background_name", ())), [source.name for source in made.sources]
        wrong = given and len(given) != len(found) - 1
        refuse((wrong, f"--background-name is given {len(given)} time(s). Give one for each background."))
        names = [options.get("target_name") or found[0], *(given or found[1:])]
        made.sources = [source.named(printable(name)) for source, name in zip(made.sources, names, strict=True)]
        display.stage("preparing the data")
        _prepare(made, options)
        _attach(made, options)
    dropped = sum(scan.n_dropped for scan in scans)
    # Files are read at the same time: the order of the notes must not depend on it.
    made.notes += [
        *sorted(notes, key=str),
        *([f"{dropped} row(s) with a missing value were left out."] if dropped else []),
    ]
    return made


def open_cube(options: dict[str, Any], display: Display) -> Datasets:
    """Open the pixels of an image cube, and their noise as the background."""
    from standout.images import as_rows, folded, read_cube

    display.stage("reading the cube")
    cube, noise = read_cube(options["data"], variable=options["variable"]), options["noise"]
    # Pixels outside of the scene are often NaN.
    mask = np.isfinite(cube).all(axis=-1)
    inside, rows, strips = as_rows(cube, noise if noise == "differences" else read_cube(noise), mask=mask)
    columns = [f"band {number + 1}" for number in range(cube.shape[2])]
    pixels, other = (InMemory(part, name, columns) for part, name in zip(rows, ("pixels", "noise"), strict=True))
    groups: dict[str, Any] = dict(zip(("groups", "background_groups"), strips, strict=False))
    sources = matched_datasets(pixels, other, **groups)

    def draw(model: Any, folder: Path) -> None:
        from matplotlib.figure import Figure

        images = folded(model.transform(sources[0]), inside)
        np.save(folder / "images.npy", images)
        figure = Figure(figsize=(4 * images.shape[2], 4), layout="constrained")
        for number, ax in enumerate(figure.subplots(1, images.shape[2], squeeze=False)[0]):
            ax.imshow(images[:, :, number], cmap="cividis")
            ax.set(title=f"component {number + 1}", xticks=[], yticks=[])
        figure.savefig(folder / "images.png", dpi=120)

    return Datasets(sources, columns, draw=draw)


# --- files ------------------------------------------------------------------------------------------------------------


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for reading files as parameters of `standout.scan`."""
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
        **{name: options[name] for name in ("id_column", "format", "variable", "delimiter", "header")},
        **{name: options[name] for name in ("encoding", "decimal")},
    }


def _scans(paths: list[str], options: dict[str, Any], roles: dict[str, str]) -> tuple[list[Any], str | None]:
    """Open the files of each dataset, with the columns in the order of the target. Return also the column of ids."""
    unknown: dict[str, list[InvalidValueError]] = {}
    if options["id_column"] is None:
        with collected_warnings():
            options = {**options, "id_column": column_of_ids(_scan(paths[0], options, roles, 0, {}))}
    scans: list[Any] = []
    for number, path in enumerate(paths):
        with collected_warnings() as said:
            scan = _scan(path, options, roles, number, unknown)
        scans.append(scan)
        # If a background leaves out the same columns as the target, drop its warnings: they repeat the target's.
        left = [sorted(name for names in each.left_out.values() for name in names) for each in (scans[0], scan)]
        for one in said if not number or left[0] != left[1] else []:
            warnings.warn(one, stacklevel=1)
    for errors in unknown.values():
        if len(errors) == len(paths):
            raise errors[0]
    places = [os.path.realpath(file) for scan in scans for file in scan.files]
    twice = next((place for place in places if places.count(place) > 1), None)
    refuse((twice, f"the file {Path(twice or '').name!r} is given twice. Give different ones for each dataset."))
    matched: Any = matched_datasets(scans[0], scans[1:] or None)
    # Datasets are named after their files or folders. If two names are equal or one is empty, all have the whole path.
    parts = [[part for part in Path(path).parts if not has_magic(part)] or [path] for path in paths]
    stems = [Path(names[-1]).name.lstrip(".").split(".")[0] for names in parts]
    names = stems if len(set(stems)) == len(stems) and all(stems) else paths
    missing = reading_of(options)["missing"]
    for scan, name in zip(matched, names, strict=True):
        # Missing values that are kept here are filled in later, by `_prepare`.
        scan.name, scan.missing = name, missing
    return matched, options["id_column"]


def column_of_ids(scan: Any) -> str | None:
    """Return the column that names the rows: found by the reader, otherwise a text column of unique values."""
    texts = scan.left_out.get("text", [])
    if scan._id is not None or not texts:
        return cast("str | None", scan._id)
    _, words = next(iter(scan._parts(texts, [])))
    return next((name for name in texts if 2 < len(words[name]) == len(set(words[name].tolist()))), None)


def _scan(
    path: str, options: dict[str, Any], roles: dict[str, str], number: int, unknown: dict[str, list[InvalidValueError]]
) -> Scan:
    """Open one dataset.

    A background may lack the columns of ids and labels. A column of --exclude must be in at least one dataset:
    `unknown` collects the errors of the datasets that lack it.
    """
    reading = reading_of(options)
    # The reader already leaves out columns of labels, ids and --where. If such a column also names subjects, do not
    # exclude it again.
    used = (reading["label"], reading["id_column"], *(reading["where"] or ()))
    reading["exclude"] += [name for name in roles if name not in used]
    while True:
        try:
            return standout.scan(path, **reading)
        except InvalidValueError as error:
            parameter, name = str(error.parameter), str(error.value)
            if number and parameter in ("id_column", "label") and reading[parameter] is not None:
                reading[parameter] = None
            elif parameter == "exclude" and name not in roles:
                unknown.setdefault(name, []).append(error)
                reading["exclude"].remove(name)
            else:
                error.parameter = roles.get(name, error.parameter) if parameter == "exclude" else error.parameter
                raise


def _loaded(scans: list[Any], options: dict[str, Any], display: Display) -> list[Source]:
    """Read all rows into memory or in parts, by the option or by the available memory."""
    n_bytes = 0.0
    for scan in scans:
        # The number of rows of a text file is unknown before it is read: use the size of the file.
        sizes = [Path(file).stat().st_size * (GUNZIPPED if file.endswith(".gz") else 1.0) for file in scan.files]
        n_bytes += sum(sizes) if scan.n_rows is None else 8.0 * scan.n_rows * scan.width
    needed, available = FACTOR * n_bytes, _available()
    in_memory = needed <= available if options["in_memory"] is None else options["in_memory"]
    if not in_memory:
        display.stage(f"the files are read in parts ({needed / 1e9:.1f} GB needed, {available / 1e9:.1f} GB available)")
        return scans
    display.stage(f"reading {', '.join(scan.name for scan in scans)}")
    return list(in_order(methodcaller("loaded"), scans))


def _available() -> float:
    """Return the available memory in bytes: of the system, or less if the control group of a container has a limit."""
    found, group = [1e12], Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        known = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(1024.0 * int(known["MemAvailable:"]))
        known = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        used = int((group / "memory.current").read_text()) - int(known["inactive_file"])
        found.append(float(int((group / "memory.max").read_text()) - used))
    return max(min(found), 0.0)


# --- conditions of one file -------------------------------------------------------------------------------------------


def _split(made: Datasets, options: dict[str, Any]) -> None:
    """Split the rows of one file by the values of the condition column."""
    column, (whole,), (words,) = options["condition_column"], made.sources, made.words
    target, backgrounds, known = list(options["target"]), list(options["background_condition"]), set(words[column])
    named = [*target, *backgrounds]
    for name in named:
        option, values = "--target" if name in target else "--background-condition", listed("value", sorted(known))
        unknown, again = name not in known, named.count(name) > 1
        refuse(
            (unknown, f"{option} {name} is not a value of --condition-column. Choose {values}."),
            (again, f"{option} {name} is named more than once. Name each condition once."),
        )
    others = backgrounds or sorted(known - set(target))
    unnamed, alone = not backgrounds and "" in known, not others and options.get("method") not in FITTED_AS
    refuse(
        (unnamed, "some rows have no value of --condition-column. Name backgrounds by --background-condition."),
        (alone, "every value of --condition-column is the target, and none is left as a background."),
    )
    made.sources, made.words = [], []
    for names in [target, *([name] for name in others)]:
        mask, name = np.isin(words[column], names), " + ".join(names)
        refuse((mask.sum() < 2, f"{name!r} has {mask.sum()} row(s), but at least 2 are needed."))
        made.sources.append(Chosen(whole, mask, name).at_once())
        made.words.append({name: values[mask] for name, values in words.items()})
    if len(target) > 1 and made.label_name is None:
        # If the target has several conditions, they are the default colours.
        made.sources[0].labels, made.label_name = made.words[0][column], column


# --- subjects, weights, preparation -----------------------------------------------------------------------------------


def _attach(made: Datasets, options: dict[str, Any]) -> None:
    """Add subjects, weights and covariates to the datasets, if options name their columns or blocks."""
    facts: dict[str, list[Any]] = {}
    subject, weight, names = options.get("subject_column"), options.get("weight_column"), options.get("adjust")
    if subject is not None:
        facts["groups"] = [matched_words(part[subject], options) for part in made.words]
    elif options.get("blocks") is not None:
        counts = [source.count_rows() for source in made.sources]
        facts["groups"] = [standout.blocks(n, options["blocks"], f"{k}:") for k, n in enumerate(counts)]
    if weight is not None:
        try:
            facts["sample_weight"] = [part[weight].astype(np.float64) for part in made.words]
        except ValueError as error:
            raise click.UsageError(f"--weight-column has a value that is not a number: {error}.") from None
    if names:
        facts["adjust"] = [{name: part[name] for name in names} for part in made.words]
    if options.get("within"):
        streamed = any(source.rows is None for source in made.sources)
        refuse((streamed, "--within needs all rows in memory. Add --in-memory, or leave it out."))
        pairs = zip(made.sources, facts["groups"], strict=True)
        made.sources = [InMemory(standout.within(one.rows, who), one.name, one.keys)._beside(one) for one, who in pairs]
    if facts:
        given = {name: each[0] for name, each in facts.items()}
        if len(made.sources) > 1:
            given |= {f"background_{name}": each[1:] for name, each in facts.items()}
        opened = matched_datasets(made.sources[0], made.sources[1:] or None, **given)
        made.sources = [after.named(before.name) for after, before in zip(opened, made.sources, strict=True)]


def matched_words(words: Any, options: dict[str, Any]) -> Any:
    """Return the part of each text that matches the subject pattern: its first group, or the whole match."""
    pattern = options.get("subject_pattern")
    if pattern is None:
        return words
    found = [re.search(pattern, word) for word in words.tolist()]
    if None in found:
        word = words[found.index(None)]
        raise click.UsageError(f"--subject-pattern {pattern!r} does not match {word!r}. Choose one that matches all.")
    return np.array([match[1] if match.groups() else match[0] for match in found if match is not None], dtype=object)


def _prepare(made: Datasets, options: dict[str, Any]) -> None:
    """Compute logarithms, fill missing values, and leave constant columns out."""
    width, sides = made.sources[0].width or 0, options.get("image_shape")
    if sides is not None and sides[0] * sides[1] != width:
        raise click.UsageError(f"--image-shape {sides[0]}x{sides[1]} does not fit: there are {width} columns.")
    log1p, missing = options["log1p"], options["missing"]
    if sides is not None and not log1p and missing in ("error", "drop-rows"):
        # Constant pixels at the borders of images are kept.
        names: Any = made.sources[0].columns or [f"x{number}" for number in range(width)]
    else:
        made.sources, step = prepare(made.sources, log1p=log1p, missing=missing, strict=options["strict"])
        names, unnamed = step.get_feature_names_out(), made.sources[0].columns is None
        if log1p or missing != "error" or (unnamed and len(step.kept_) < step.n_features_in_):
            made.steps = [step]
    made.columns = [printable(name) for name in names]
