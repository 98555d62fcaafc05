"""``standout release`` and ``standout fit --from-sums``: sums leave a place, rows do not."""

from __future__ import annotations

import csv
import glob
import json
import math
from importlib import resources
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

import standout
from standout._arrays import Float
from standout._messages import FileError, InvalidValueError, MissingFileError, listed, require_extra, shown
from standout.cli._app import OPTIONS
from standout.cli._data import reading_of
from standout.cli._display import Display, printable, shortened
from standout.cli._fit import collected_warnings, make_estimator, show_warnings
from standout.cli._folder import MARK, check_output_file, check_output_folder, folder_as_a_whole
from standout.cli._options import COMPARING, METHODS, PARAMETERS, option_name
from standout.io import write_csv
from standout.private import PrivateMoments, from_ranges, release

# Methods that need no more than sums.
FROM_SUMS = ("dpca", "cpca", "pca")
# Options of fit that mean something without rows.
WITHOUT_ROWS = {
    *("data", "background", "from_sums", "method", "output", "overwrite", "quiet"),
    *(parameter.name for parameter in PARAMETERS if set(parameter.methods) & set(FROM_SUMS)),
}
# Columns of a component in the page and in the terminal.
MOST_COLUMNS, FEW_COLUMNS = 15, 4


# --- release ----------------------------------------------------------------------------------------------------------


def release_file(options: dict[str, Any]) -> None:
    """Release the sums of files, and write them."""
    require_extra("opendp", "private", "a private release")
    if options["max_rows"] != 1 and options["person_column"] is None:
        raise click.UsageError("--max-rows needs --person-column, the column that tells which rows are of one person.")
    if (options["ranges"] is None) == (options["whiten_by"] is None):
        raise click.UsageError(
            "give either --ranges FILE, with what each column can hold by its documentation, or --whiten-by FILES. "
            "Bounds are public, and never taken from the rows."
        )
    display = Display(quiet=options["quiet"])
    inputs = [options["data"], *filter(None, [options["ranges"]])]
    final = check_output_file(options["output"], options["overwrite"], inputs)
    with display.working():
        display.stage(f"looking at {options['data']}")
        rows = standout.scan(options["data"], **{**reading_of(options), "group_column": options["person_column"]})
        if rows.columns is None:
            raise click.UsageError(f"{options['data']!r} does not name its columns. Name them, to tell their bounds.")
        names, bounds = _bounds(options, rows.columns)
        if options["radius"] is not None:
            bounds["radius"] = options["radius"]
        display.stage("summing up, and adding noise")
        with collected_warnings() as said:
            sums = release(
                rows.with_columns(names),
                **bounds,
                epsilon=options["epsilon"],
                delta=options["delta"],
                groups=None if options["person_column"] is None else True,
                max_rows=options["max_rows"],
            )
        sums.save(final)
    display.say(f"About {sums.count} rows and {sums.n_features} columns, with noise: no row is in the file.")
    display.say(f"Spent: {sums.spent[0]}. Another release of the same rows would spend as much again.")
    show_warnings([message.phrased(OPTIONS) for message in said], display)
    display.say(f"Sums: {final}")


def _bounds(options: dict[str, Any], columns: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Give the columns in the order that all places share, and their bounds."""
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
    place = Path(path).expanduser()
    try:
        with place.open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.DictReader(file))
    except FileNotFoundError:
        raise MissingFileError("there is no file {path}", path=shown(path), advice="Check the name.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        advice = "Give a CSV file with the columns column, low and high."
        raise FileError("{path} cannot be read: {reason}", path=shown(path), reason=reason, advice=advice) from error
    ranges: dict[str, tuple[float, float]] = {}
    for number, line in enumerate(lines, start=2):
        try:
            name, limits = line["column"], (float(line["low"]), float(line["high"]))
        except (KeyError, TypeError, ValueError):
            raise InvalidValueError(
                "line {number} of {path} is no range",
                number=number,
                path=shown(path),
                advice="Write a CSV file with the columns column, low and high: a name and two numbers in each line.",
            ) from None
        if name in ranges:
            raise InvalidValueError(
                "{path} has two ranges for {name}",
                path=shown(path),
                name=listed("column", [name]),
                advice="Leave one out.",
            )
        ranges[name] = limits
    return ranges


# --- fit --------------------------------------------------------------------------------------------------------------


def fit_sums(context: click.Context, options: dict[str, Any]) -> None:
    """Fit sums that were released before, and write the folder."""
    _check_options(context, options)
    for package, extra, purpose in (("skops", "models", "saving the model"), ("jinja2", "report", "the report")):
        require_extra(package, extra, purpose)
    display = Display(quiet=options["quiet"])
    final = check_output_folder(options["output"], options["overwrite"])
    with display.working():
        display.stage("reading the sums")
        given = [options["data"], *(options["background"] if options["method"] in COMPARING else [])]
        files = [_files(pattern) for pattern in given]
        sums = [_added(names) for names in files]
        display.stage(f"fitting {METHODS[options['method']]}")
        estimator = make_estimator(options)
        with collected_warnings() as said:
            model = type(estimator).from_moments(sums[0], sums[1:] or None, **estimator.get_params())
        cautions = [message.phrased(OPTIONS) for message in said]
        found = _found(model, sums, files, options)
        display.stage("writing the report")
        with folder_as_a_whole(final, overwrite=options["overwrite"]) as draft:
            _write_loadings(draft / "loadings.csv", found)
            standout.save(model, draft / "model.skops")
            (draft / "report.html").write_text(_page(found, cautions), encoding="utf-8")
            told = {"standout": standout.__version__, **found["summary"], "warnings": cautions}
            (draft / MARK).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    display.say(found["summary"]["headline"])
    display.say()
    display.table(
        ["component", found["summary"]["value"], "noise", "columns that follow it"],
        [
            [str(k), f"{value:.3g}", _percent(noise), ", ".join(shortened(name) for name in names)]
            for k, (value, noise, names) in enumerate(
                zip(found["values"], found["noise"], found["leading"], strict=True), start=1
            )
        ],
    )
    display.say()
    for one in found["summary"]["datasets"]:
        for words in one["spent"]:
            display.say(f"- {one['name']}: {words}")
    show_warnings(cautions, display)
    display.say(f"Report: {final / 'report.html'}")


def _check_options(context: click.Context, options: dict[str, Any]) -> None:
    """Refuse what needs rows; the default of --shrinkage does, and becomes auto."""
    given = {
        str(param.name)
        for param in context.command.params
        if context.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
    }
    refused = sorted(given - WITHOUT_ROWS)
    if refused:
        raise click.UsageError(f"{option_name(refused[0])} is for rows, and sums have none. Leave it out.")
    if options["method"] not in FROM_SUMS:
        raise click.UsageError(
            f"--method {options['method']} needs rows, and sums have none. Choose among {', '.join(FROM_SUMS)}."
        )
    for parameter in PARAMETERS:
        if parameter.name in given and options["method"] not in parameter.methods:
            raise click.UsageError(
                f"{option_name(parameter.name)} is for {', '.join(parameter.methods)}, not for {options['method']}."
            )
    if "shrinkage" not in given:
        options["shrinkage"] = "auto"
    if "test" not in given:
        options["test"] = None
    if options["method"] in COMPARING and not options["background"]:
        raise click.UsageError("there is nothing to compare with. Give --background FILE, or --method pca.")


def _files(pattern: str) -> list[str]:
    """Find the sums of one dataset: those of several places are added."""
    found = sorted(glob.glob(str(Path(pattern).expanduser()))) if glob.has_magic(pattern) else [pattern]
    if not found:
        raise MissingFileError("no file matches {path}", path=shown(pattern), advice="Check the pattern.")
    return found


def _added(names: list[str]) -> PrivateMoments:
    first, *others = map(PrivateMoments.load, names)
    return sum(others, start=first)


def _found(model: Any, sums: list[PrivateMoments], files: list[list[str]], options: dict[str, Any]) -> dict[str, Any]:
    """Collect what the fit has found, in numbers."""
    target, filters = sums[0], model.components_.T
    noise = np.max([part.noise_along(filters) for part in sums], axis=0)
    # A direction without any variance is all noise.
    shares = noise / np.maximum(model.target_variance_, 1e-300)
    names = list(target.columns or [f"x{number}" for number in range(target.n_features)])
    correlations = _correlations(target, filters)
    leading = [np.argsort(-np.abs(row), kind="stable") for row in correlations]
    is_ratio = options["method"] == "dpca"
    called = ["target", *("background" if len(sums) == 2 else f"background {k}" for k in range(1, len(sums)))]
    datasets = [
        {
            "name": name,
            "files": [printable(Path(file).name) for file in some],
            "count": part.count,
            "noise": part.noise / part.radius**2,
            "spent": [str(one) for one in part.spent],
            "rho": [one.rho for one in part.spent],
        }
        for name, some, part in zip(called, files, sums, strict=True)
    ]
    components = [
        {
            "component": k + 1,
            "eigenvalue": float(value) if math.isfinite(value) else str(value),
            "noise": float(shares[k]),
            "features": [
                {"name": names[place], "correlation": float(correlations[k, place])}
                for place in leading[k][:MOST_COLUMNS]
            ],
        }
        for k, value in enumerate(model.eigenvalues_)
    ]
    summary = {
        "method": options["method"],
        "headline": _headline(model, shares, is_ratio),
        "value": "fitted ratio" if is_ratio else "eigenvalue",
        "components": components,
        "datasets": datasets,
    }
    return {
        "summary": summary,
        "values": model.eigenvalues_,
        "noise": shares,
        "names": names,
        "model": model,
        "correlations": correlations,
        "leading": [[names[place] for place in order[:FEW_COLUMNS]] for order in leading],
    }


def _correlations(target: PrivateMoments, filters: Float) -> Float:
    """Correlate each column with each component, in the target."""
    spread = np.sqrt(np.outer(target.variance(filters), target.variances))
    return np.divide(target.apply(filters).T, spread, out=np.zeros_like(spread), where=spread > 0)


def _headline(model: Any, shares: Float, is_ratio: bool) -> str:
    if shares[0] > 0.5:
        return "The noise of the private sums drowns what is looked for"
    if is_ratio:
        return f"The fitted ratio of component 1, target to backgrounds, is {model.eigenvalues_[0]:.3g}"
    return f"The first component has an eigenvalue of {model.eigenvalues_[0]:.3g}"


def _write_loadings(path: Path, found: dict[str, Any]) -> None:
    columns: dict[str, Any] = {"feature": np.array(found["names"], dtype=object)}
    model = found["model"]
    for k in range(model.n_components_):
        columns[f"filter_{k + 1}"] = model.components_[k]
        columns[f"pattern_{k + 1}"] = model.patterns_[k]
        columns[f"correlation_{k + 1}"] = found["correlations"][k]
    write_csv(path, columns)


def _page(found: dict[str, Any], cautions: list[str]) -> str:
    """Make the page: patterns, ratios, noise and budget; there are no points."""
    from jinja2 import Environment

    summary, model = found["summary"], found["model"]
    components = []
    for k, one in enumerate(summary["components"]):
        columns = [
            {
                "name": column["name"],
                "shown": f"{column['correlation']:.2f}",
                "side": "plus" if column["correlation"] >= 0 else "minus",
                "width": round(50 * min(abs(column["correlation"]), 1.0), 2),
            }
            for column in one["features"]
        ]
        components.append(
            {
                "component": one["component"],
                "value": f"{model.eigenvalues_[k]:.3g}",
                "target_variance": f"{model.target_variance_[k]:.3g}",
                "background_variances": [f"{value:.3g}" for value in model.background_variance_[:, k]],
                "noise": _percent(one["noise"]),
                "columns": columns,
            }
        )
    datasets = [{**one, "noise": _percent(one["noise"])} for one in summary["datasets"]]
    ratio = "The ratio is the variance of the target over that of the backgrounds, smoothed against the noise."
    template = (resources.files("standout.cli") / "static" / "sums.html.j2").read_text(encoding="utf-8")
    return (
        Environment(autoescape=True)
        .from_string(template)
        .render(
            headline=summary["headline"],
            cautions=cautions,
            explained=ratio if summary["value"] == "ratio" else "",
            value_name=summary["value"],
            backgrounds=[one["name"] for one in summary["datasets"][1:]],
            components=components,
            datasets=datasets,
            made=f"standout {standout.__version__}, {METHODS[summary['method']]}",
        )
    )


def _percent(share: float) -> str:
    return f"{share:.{1 if share < 0.1 else 0}%}" if share < 10 else "over 1000 %"
