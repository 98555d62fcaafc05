"""``standout transform``, ``info`` and ``report``: what is done with an earlier result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from standout import load, make_pipeline
from standout._messages import InvalidValueError, Message, MissingFileError, listed
from standout.cli._app import OPTIONS
from standout.cli._data import MISSING_IN_WORDS, reading_of
from standout.cli._display import Display, shortened
from standout.cli._fit import collected_warnings, score_columns, show_warnings, write_page
from standout.cli._folder import check_output_file, files_as_a_whole, is_result, recover
from standout.io import Preparation, Scan, UnknownColumnsError, csv_writer, earlier_preparation
from standout.io import scan as open_files
from standout.report import restore
from standout.sources import is_step, transformed

# Columns that are named.
MOST_COLUMNS = 5


def transform_files(options: dict[str, Any]) -> None:
    """Write the scores of new rows, batch by batch."""
    display = Display(quiet=options["quiet"])
    final = check_output_file(options["output"], options["overwrite"], [options["data"], options["model_path"]])
    with display.working():
        display.stage(f"loading {options['model_path']}")
        with collected_warnings() as said:
            model = load_model(options["model_path"])
        *before, last = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
        steps = [step for step in before if is_step(step)]
        scan = _opened(options, model, steps)
        display.stage(f"finding and writing the scores of {options['data']}")
        source: Any = scan
        for step in steps:
            source = transformed(source, step)
        n_rows = 0
        with csv_writer(final, replace=options["overwrite"], spreadsheet=options["spreadsheet"]) as writer:
            for batch in source.batches():
                writer.append(score_columns(batch, np.asarray(last.transform(batch.rows))))
                n_rows += batch.n_rows
    show_warnings([message.phrased(OPTIONS) for message in said], display)
    dropped = sum(scan.dropped.values())
    if dropped:
        display.say(f"! {dropped} of {n_rows + dropped} rows were left out because a value is missing, as in the fit.")
    display.say(f"Scores of {n_rows} rows: {final}")


def _opened(options: dict[str, Any], model: Any, steps: list[Any]) -> Scan:
    """Open new rows with the columns of the fit, found by name if both have names."""
    missing = "keep" if steps else "error"
    if steps and isinstance(steps[0], Preparation) and steps[0].fill_ is None:
        missing = "drop-rows" if steps[0].missing == "drop-rows" else "error"
    reading = {**reading_of(options), "missing": missing}
    names, width = _columns_of(model, steps)
    try:
        # Further columns may be anything, even text.
        scan = open_files(options["data"], **{**reading, "columns": reading["columns"] or names})
    except UnknownColumnsError as error:
        if error.parameter != "columns" or reading["columns"]:
            raise
        # The file does not name its columns, or lacks some.
        scan = open_files(options["data"], **reading)
    if scan.columns is not None and names is not None:
        lacking = [name for name in names if name not in set(scan.columns)]
        if lacking:
            raise click.UsageError(f"{scan.files[0]!r} lacks {listed('column', lacking)} of the fit.")
        scan = scan.with_columns(names)
    elif scan.width != width:
        raise click.UsageError(f"{scan.files[0]!r} has {scan.width} columns, but the fit had {width}.")
    scan = scan.called("the data", 1)
    return scan.numbered() if reading["where"] or missing == "drop-rows" else scan


def _columns_of(model: Any, steps: list[Any]) -> tuple[list[str] | None, int]:
    """Give the names of the columns of the fit, in their order, if the model has them; and their number."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None and steps and isinstance(steps[0], Preparation):
        # Columns that the fit left out are not needed.
        names = steps[0].get_feature_names_out()
    return None if names is None else [str(name) for name in names], int(model.n_features_in_)


def load_model(path: str) -> Any:
    """Load a model from its file, or from the folder that ``standout fit`` wrote."""
    place = Path(path).expanduser()
    recover(place)
    model = load(place / "model.skops" if place.is_dir() else place)
    # Earlier versions kept what was done to the data beside the model, as JSON.
    stored = model.__dict__.pop("preprocessing_", None)
    if stored is None:
        return model
    model.__dict__.pop("feature_names_in_", None)
    return make_pipeline(earlier_preparation(stored), model)


# --- info -------------------------------------------------------------------------------------------------------------


def describe(options: dict[str, Any]) -> None:
    """Print what a model is."""
    display = Display(quiet=False)
    with collected_warnings() as said:
        model = load_model(options["model_path"])
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    facts = {"model": " -> ".join(type(step).__name__ for step in steps), **_facts(steps[-1])}
    if hasattr(steps[-1], "n_components_"):
        facts["columns"] = _named_columns(model, steps[:-1])
    if isinstance(steps[0], Preparation):
        facts["preparation"] = _prepared(steps[0])
    for name, words in facts.items():
        display.say(f"{name + ':':<13}{words}")
    show_warnings([message.phrased(OPTIONS) for message in said], display)


def _facts(last: Any) -> dict[str, str]:
    """Give what is known of the estimator."""
    parameters = {name: value for name, value in last.get_params(deep=False).items() if value is not None}
    facts = {"parameters": ", ".join(f"{name}={value!r}" for name, value in parameters.items())}
    if not hasattr(last, "n_components_"):
        return {**facts, "state": "not fitted"}
    facts |= {"columns": str(last.n_features_in_), "components": str(last.n_components_)}
    known = {
        "eigenvalues": "eigenvalues_",
        "p-values": "p_values_",
        "shrinkage": "shrinkage_",
        "alpha": "alpha_",
        "epsilon": "epsilon_",
        "weights": "weights_",
    }
    return facts | {name: _numbers(getattr(last, field)) for name, field in known.items() if hasattr(last, field)}


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.4g}" for value in (values.ravel() if hasattr(values, "ravel") else [values])) or "none"


def _named_columns(model: Any, steps: list[Any]) -> str:
    names, width = _columns_of(model, steps)
    if names is None:
        return str(width)
    more = f", and {len(names) - MOST_COLUMNS} more" if len(names) > MOST_COLUMNS else ""
    return f"{len(names)}: {', '.join(map(shortened, names[:MOST_COLUMNS]))}{more}"


def _prepared(step: Preparation) -> str:
    parts = [f"missing values: {MISSING_IN_WORDS[step.missing]}"]
    if step.log1p:
        parts.append("log(1 + x)")
    if step.scale_ is not None:
        parts.append("columns centred and scaled")
    return "; ".join(parts)


# --- report -----------------------------------------------------------------------------------------------------------


def report_again(options: dict[str, Any]) -> None:
    """Write the page and the picture of an earlier result again."""
    display = Display(quiet=options["quiet"])
    place = Path(options["folder"]).expanduser()
    recover(place)
    if not place.is_dir() or not is_result(place):
        raise click.UsageError(f"{options['folder']!r} is no folder that standout fit wrote. Name one that is.")
    with display.working():
        display.stage("making the report")
        try:
            findings = restore(place)
        except (InvalidValueError, MissingFileError) as error:
            parts = {**error.message.parts(), "advice": "Make the folder again with standout fit."}
            raise click.ClickException(Message(**parts).phrased(OPTIONS)) from None
        with files_as_a_whole(place) as draft:
            write_page(findings, draft)
    display.say(f"Report: {place / 'report.html'}")
