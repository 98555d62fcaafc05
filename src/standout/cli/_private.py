"""``standout release`` and ``standout fit --from-sums``: a site sends private sums and keeps its rows."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

import standout
from standout._messages import FileError, InvalidValueError, collected_warnings, require_extra, shown
from standout._options import LINEAR, METHODS, options_for
from standout.cli._data import reading_of
from standout.cli._display import Display, phrased, printable
from standout.cli._fit import begun, leading_columns, render, write_columns
from standout.cli._folder import MARK, check_output_file, folder_as_a_whole
from standout.cli._options import COMMAND_METHODS
from standout.io._files import files_of
from standout.private import PrivateMoments, from_ranges, release
from standout.report._words import number, percent
from standout.sources import open_dataset

# Methods that need only sums, and options of fit that apply without rows.
FROM_SUMS = (*LINEAR, "pca")
WITHOUT_ROWS = {
    *("data", "background", "from_sums", "method", "title", "output", "overwrite", "quiet", "spreadsheet"),
    *(one.name for one in options_for(*LINEAR)),
}
# Maximum number of columns listed for a component on the page.
MOST_COLUMNS = 15
# If the share of noise in the variance along component 1 is larger than this, the noise hides the signal.
DROWNED = 0.5
RANGES = "Write a CSV file with the columns column, low and high: a name and two numbers in each line, each name once."


# --- release ----------------------------------------------------------------------------------------------------------


def release_file(options: dict[str, Any]) -> None:
    """Release the sums of files, and write them."""
    require_extra("opendp", "private", "a private release")
    person, ranges = options["person_column"], options["ranges"]
    display = Display(quiet=options["quiet"])
    final = check_output_file(options["output"], options["overwrite"], [options["data"], *([ranges] if ranges else [])])
    with display.working():
        display.stage(f"looking at {options['data']}")
        rows = standout.scan(options["data"], **reading_of(options))
        persons = None if person is None else rows.words([person])[person]
        columns = list((rows if person is None else rows.without([person])).columns or [])
        names, bounds = _bounds(options, columns)
        bounds |= {} if options["radius"] is None else {"radius": options["radius"]}
        display.stage("summing up, and adding noise")
        budget = {name: options[name] for name in ("epsilon", "delta", "max_rows")}
        with collected_warnings() as said:
            sums = release(open_dataset(rows, columns=names), **bounds, **budget, groups=persons)
        sums.save(final)
    display.say(f"About {sums.count:.0f} rows and {sums.n_features} columns, with noise: no row is in the file.")
    display.say(f"Spent: {sums.spent[0]}. Another release of the same rows would spend as much again.")
    display.cautions(said)
    display.say(f"Sums: {final}")


def _bounds(options: dict[str, Any], columns: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the columns in an order that is the same at all sites, and their bounds."""
    if options["whiten_by"] is not None:
        background, _ = _added(options["whiten_by"])
        if background.columns is None or set(background.columns) != set(columns):
            raise click.UsageError(f"{options['whiten_by']!r} has other columns. Choose them with --columns.")
        return list(background.columns), background.whitening()
    path = options["ranges"]
    try:
        table: Any = standout.read_table(path, columns=["low", "high"], id_column="column")
        names = table.ids.tolist()
        if len(set(names)) < len(names):
            raise InvalidValueError("has a name twice")
    except InvalidValueError as error:
        raise FileError(f"{shown(path)} is not a table of ranges", advice=RANGES) from error
    ranges = {name: (float(low), float(high)) for name, (low, high) in zip(names, table.rows, strict=True)}
    # `from_ranges` raises an error if the ranges lack a column.
    from_ranges(ranges, columns=columns)
    names = [name for name in ranges if name in set(columns)]
    return names, from_ranges(ranges, columns=names)


# --- fit --------------------------------------------------------------------------------------------------------------


def fit_sums(options: dict[str, Any]) -> None:
    """Fit sums that were released before, and write the folder."""
    method = options["method"]
    for name in sorted(options["given"] - WITHOUT_ROWS):
        raise click.UsageError(f"--{name.replace('_', '-')} is for rows, and sums have none. Leave it out.")
    if method not in FROM_SUMS:
        raise click.UsageError(f"--method {method} needs rows, and sums have none. Use {', '.join(FROM_SUMS)}.")
    display, final, estimator = begun(options)
    with display.working():
        display.stage("reading the sums")
        patterns = [options["data"], *(options["background"] if method in METHODS else ())]
        sums, files = map(list, zip(*map(_added, patterns), strict=True))
        display.stage(f"fitting {COMMAND_METHODS[method]}")
        with collected_warnings() as said:
            model = type(estimator).from_moments(sums[0], sums[1:] or None, **estimator.get_params())
        names = list(sums[0].columns or [f"x{place}" for place in range(sums[0].n_features)])
        found = _found(model, sums, names, files, options)
        found["cautions"] = [{"kind": "note", "text": phrased(one), "advice": ""} for one in said]
        display.stage("writing the report")
        with folder_as_a_whole(final, overwrite=options["overwrite"]) as draft:
            write_columns(draft / "columns.csv", model, names, options["spreadsheet"])
            standout.save(model, draft / "model.skops")
            (draft / "report.html").write_text(render("sums.html.j2", f=found), encoding="utf-8")
            (draft / MARK).write_text(json.dumps(found, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    display.say(found["headline"])
    display.say()
    rows = [
        [str(one["component"]), number(one["eigenvalue"]), percent(one["noise"]), leading_columns(one)]
        for one in found["components"]
    ]
    display.table(["component", "value", "noise", "columns that follow it"], rows)
    display.say()
    for one in found["datasets"]:
        for words in one["spent"]:
            display.say(f"- {one['name']}: {words}")
    display.cautions(said)
    display.say(f"Report: {final / 'report.html'}")


def _added(pattern: str) -> tuple[PrivateMoments, list[str]]:
    """Read and add the sums of one dataset from all files; return the names of the files, too."""
    files = files_of(os.path.expanduser(pattern), "sums")
    first, *others = map(PrivateMoments.load, files)
    return sum(others, start=first), [printable(file.name) for file in files]


def _found(
    model: Any, sums: Sequence[PrivateMoments], names: list[str], files: Sequence[list[str]], options: dict[str, Any]
) -> dict[str, Any]:
    """Collect the findings of the fit, in the same form as the findings of a fit to rows."""
    filters = np.asarray(model.components_).T
    variances = np.array([part.variance(filters) for part in sums])
    # A direction without any variance is all noise.
    noise = np.max([part.noise_along(filters) for part in sums], axis=0) / np.maximum(variances[0], 1e-300)
    components = []
    for k, (value, row) in enumerate(zip(model.eigenvalues_, np.nan_to_num(model.correlations_), strict=True)):
        order = np.argsort(-np.abs(row), kind="stable")[:MOST_COLUMNS]
        columns = [{"name": names[place], "correlation": float(row[place])} for place in order]
        known = {"eigenvalue": float(value) if np.isfinite(value) else None, "noise": float(noise[k])}
        components.append({"component": k + 1, **known, "variances": variances[:, k].tolist(), "columns": columns})
    called = ["target", *("background" if len(sums) == 2 else f"background {k}" for k in range(1, len(sums)))]
    datasets = []
    for name, some, part in zip(called, files, sums, strict=True):
        about = {"noise": float(part.noise / part.grid.radius**2), "rows": float(part.count)}
        datasets.append({"name": name, **about, "files": some, "spent": [str(one) for one in part.spent]})
    first: Any = components[0]
    value = f"a fitted value of {number(first['eigenvalue'])}, led by {leading_columns(first)}"
    return {
        "standout": standout.__version__,
        "title": options["title"] or "Private sums",
        "headline": "The noise hides the signal." if noise[0] > DROWNED else f"Component 1 has {value}.",
        "method": COMMAND_METHODS[options["method"]],
        "components": components,
        "datasets": datasets,
    }
