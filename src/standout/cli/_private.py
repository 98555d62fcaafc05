"""``standout release`` and ``standout fit --from-sums``: sums leave a place, rows do not."""

from __future__ import annotations

import csv
import glob
import json
from importlib import resources
from pathlib import Path
from typing import Any

import click
import numpy as np

import standout
from standout._messages import FileError, InvalidValueError, MissingFileError, listed, require_extra, shown
from standout._options import LINEAR, METHODS, options_for
from standout.cli._data import reading_of
from standout.cli._display import Display, printable
from standout.cli._fit import collected_warnings, leading_columns, make_estimator, phrased
from standout.cli._folder import MARK, check_output_file, check_output_folder, folder_as_a_whole
from standout.cli._options import COMMAND_METHODS
from standout.io import write_csv
from standout.private import PrivateMoments, from_ranges, release

# Methods that need no more than sums, and options of fit that mean something without rows.
FROM_SUMS = (*LINEAR, "pca")
WITHOUT_ROWS = {
    *("data", "background", "from_sums", "method", "title", "output", "overwrite", "quiet"),
    *(one.name for one in options_for(*LINEAR)),
}
# Columns of a component in the page.
MOST_COLUMNS = 15
# Beyond this share of a component's variance, noise hides what is looked for.
DROWNED = 0.5


# --- release ----------------------------------------------------------------------------------------------------------


def release_file(options: dict[str, Any]) -> None:
    """Release the sums of files, and write them."""
    require_extra("opendp", "private", "a private release")
    person = options["person_column"]
    if options["max_rows"] != 1 and person is None:
        raise click.UsageError("--max-rows needs --person-column, the column that tells which rows are of one person.")
    if (options["ranges"] is None) == (options["whiten_by"] is None):
        raise click.UsageError(
            "give either --ranges FILE, with the values that each column can have by its documentation, or --whiten-by "
            "FILES. Bounds are public, and never taken from the rows."
        )
    display = Display(quiet=options["quiet"])
    inputs = [options["data"], *filter(None, [options["ranges"]])]
    final = check_output_file(options["output"], options["overwrite"], inputs)
    with display.working():
        display.stage(f"looking at {options['data']}")
        rows = standout.scan(options["data"], **reading_of(options))
        persons = None if person is None else rows.words([person])[person]
        rows = rows if person is None else rows.without([person])
        if rows.columns is None:
            raise click.UsageError(f"{options['data']!r} does not name its columns. Name them, to tell their bounds.")
        names, bounds = _bounds(options, list(rows.columns))
        if options["radius"] is not None:
            bounds["radius"] = options["radius"]
        display.stage("summing up, and adding noise")
        budget = {name: options[name] for name in ("epsilon", "delta", "max_rows")}
        with collected_warnings() as said:
            sums = release(standout.sources.open_dataset(rows, columns=names), **bounds, **budget, groups=persons)
        sums.save(final)
    display.say(f"About {sums.count:.0f} rows and {sums.n_features} columns, with noise: no row is in the file.")
    display.say(f"Spent: {sums.spent[0]}. Another release of the same rows would spend as much again.")
    for sentence in phrased(said):
        display.caution(sentence)
    display.say(f"Sums: {final}")


def _bounds(options: dict[str, Any], columns: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the columns in the order that all places share, and their bounds."""
    if options["whiten_by"] is not None:
        background = _added(_files(options["whiten_by"]))
        if background.columns is None or set(background.columns) != set(columns):
            raise click.UsageError(
                f"the columns of {options['data']!r} are not those of {options['whiten_by']!r}. Choose them with "
                "--columns."
            )
        return list(background.columns), background.whitening()
    ranges = read_ranges(options["ranges"])
    # Refuses ranges that lack a column.
    from_ranges(ranges, columns=columns)
    names = [name for name in ranges if name in set(columns)]
    return names, from_ranges(ranges, columns=names)


def read_ranges(path: str) -> dict[str, tuple[float, float]]:
    """Read a CSV file with the columns column, low and high."""
    advice = "Write a CSV file with the columns column, low and high: a name and two numbers in each line."
    try:
        with Path(path).expanduser().open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.DictReader(file))
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {shown(path)}", advice="Check the name.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{shown(path)} cannot be read: {reason}", advice=advice) from error
    ranges: dict[str, tuple[float, float]] = {}
    for number, line in enumerate(lines, start=2):
        try:
            name, limits = line["column"], (float(line["low"]), float(line["high"]))
        except (KeyError, TypeError, ValueError):
            raise InvalidValueError(f"line {number} of {shown(path)} is not a range", advice=advice) from None
        if name in ranges:
            problem = f"{shown(path)} has two ranges for {listed('column', [name])}"
            raise InvalidValueError(problem, advice="Leave one out.")
        ranges[name] = limits
    return ranges


# --- fit --------------------------------------------------------------------------------------------------------------


def fit_sums(options: dict[str, Any], given: set[str], command: str) -> None:
    """Fit sums that were released before, and write the folder."""
    refused = sorted(given - WITHOUT_ROWS)
    if refused:
        raise click.UsageError(f"--{refused[0].replace('_', '-')} is for rows, and sums have none. Leave it out.")
    if options["method"] not in FROM_SUMS:
        raise click.UsageError(
            f"--method {options['method']} needs rows, and sums have none. Choose among {', '.join(FROM_SUMS)}."
        )
    for package, extra, purpose in (("skops", "models", "saving the model"), ("jinja2", "report", "the report")):
        require_extra(package, extra, purpose)
    display = Display(quiet=options["quiet"])
    final = check_output_folder(options["output"], options["overwrite"])
    estimator = make_estimator(options)
    with display.working():
        display.stage("reading the sums")
        files = [
            _files(one) for one in (options["data"], *(options["background"] if options["method"] in METHODS else []))
        ]
        sums = [_added(names) for names in files]
        display.stage(f"fitting {COMMAND_METHODS[options['method']]}")
        with collected_warnings() as said:
            model = type(estimator).from_moments(sums[0], sums[1:] or None, **estimator.get_params())
        found = _found(model, sums, files, options, phrased(said))
        display.stage("writing the report")
        with folder_as_a_whole(final, overwrite=options["overwrite"]) as draft:
            _write_folder(draft, model, found)
    display.say(found["headline"])
    display.say()
    rows = [[str(one["component"]), _short(one["eigenvalue"]), _percent(one["noise"]), leading_columns(one)]
            for one in found["components"]]  # fmt: skip
    display.table(
        ["component", "ratio" if options["method"] == "dpca" else "value", "noise", "columns that follow it"], rows
    )
    display.say()
    for one in found["datasets"]:
        for words in one["spent"]:
            display.say(f"- {one['name']}: {words}")
    for caution in found["cautions"]:
        display.caution(caution["text"])
    display.say(f"Report: {final / 'report.html'}")


def _files(pattern: str) -> list[str]:
    """Find the sums of one dataset: those of several places are added."""
    found = sorted(glob.glob(str(Path(pattern).expanduser()))) if glob.has_magic(pattern) else [pattern]
    if not found:
        raise MissingFileError(f"no file matches {shown(pattern)}", advice="Check the pattern.")
    return found


def _added(names: list[str]) -> PrivateMoments:
    first, *others = map(PrivateMoments.load, names)
    return sum(others, start=first)


def _found(
    model: Any, sums: list[PrivateMoments], files: list[list[str]], options: dict[str, Any], said: list[str]
) -> dict[str, Any]:
    """Collect what the fit has found, in the form of the findings of rows."""
    target, filters = sums[0], np.asarray(model.components_).T
    # A direction without any variance is all noise.
    spread = np.maximum(target.variance(filters), 1e-300)
    noise = np.max([part.noise_along(filters) for part in sums], axis=0) / spread
    every = list(target.columns or [f"x{number}" for number in range(target.n_features)])
    scale = np.sqrt(np.outer(spread, target.variances))
    correlations = np.divide(target.apply(filters).T, scale, out=np.zeros_like(scale), where=scale > 0)
    components = []
    for k, value in enumerate(model.eigenvalues_):
        order = np.argsort(-np.abs(correlations[k]), kind="stable")[:MOST_COLUMNS]
        columns = [{"name": every[place], "correlation": float(correlations[k, place])} for place in order]
        variances = [float(part.variance(filters)[k]) for part in sums]
        components.append(
            {
                "component": k + 1,
                "eigenvalue": float(value) if np.isfinite(value) else None,
                "noise": float(noise[k]),
                "variances": variances,
                "columns": columns,
            }
        )
    called = ["target", *("background" if len(sums) == 2 else f"background {k}" for k in range(1, len(sums)))]
    datasets = [
        {"name": name, "files": [printable(Path(file).name) for file in some], "rows": float(part.count),
         "noise": float(part.noise / part.grid.radius**2), "spent": [str(one) for one in part.spent]}
        for name, some, part in zip(called, files, sums, strict=True)
    ]  # fmt: skip
    if noise[0] > DROWNED:
        headline = "The noise of the private sums hides what is looked for."
    else:
        word = "ratio of the target to the backgrounds" if options["method"] == "dpca" else "value"
        value, names = _short(components[0]["eigenvalue"]), leading_columns(components[0])
        headline = f"Component 1 has a fitted {word} of {value}, led by {names}."
    return {
        "standout": standout.__version__,
        "title": options["title"] or "Private sums",
        "headline": headline,
        "method": COMMAND_METHODS[options["method"]],
        "components": components,
        "datasets": datasets,
        "correlations": correlations.tolist(),
        "names": every,
        "cautions": [{"kind": "note", "weight": 0, "text": text, "advice": ""} for text in said],
    }


def _write_folder(draft: Path, model: Any, found: dict[str, Any]) -> None:
    """Write the table of columns, the model, the page and the summary; there are no points."""
    from jinja2 import Environment

    names, correlations = found.pop("names"), found.pop("correlations")
    columns: dict[str, Any] = {"column": np.array(names, dtype=object)}
    for k, row in enumerate(correlations):
        columns |= {f"correlation_{k + 1}": np.array(row), f"pattern_{k + 1}": np.asarray(model.patterns_[k]),
                    f"filter_{k + 1}": np.asarray(model.components_[k])}  # fmt: skip
    write_csv(draft / "columns.csv", columns)
    standout.save(model, draft / "model.skops")
    template = (resources.files("standout.cli") / "static" / "sums.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True)
    environment.filters |= {"percent": _percent, "short": _short}
    (draft / "report.html").write_text(environment.from_string(template).render(f=found), encoding="utf-8")
    text = json.dumps(found, ensure_ascii=False, allow_nan=False)
    (draft / MARK).write_text(text + "\n", encoding="utf-8")


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{share:.{1 if share < 0.1 else 0}%}" if share < 10 else "over 1000 %"
