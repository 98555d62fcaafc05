"""``standout transform`` and ``standout info``: models that were saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import standout
from standout._messages import InvalidValueError, listed
from standout.cli._data import reading_of
from standout.cli._display import Display, shortened
from standout.cli._fit import beside, collected_warnings, numbered, phrased
from standout.cli._folder import check_output_file, recover
from standout.estimators._scores import described
from standout.io import Preparation, Scan, csv_writer
from standout.sources import transformed

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
        *steps, last = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
        scan = _opened(options, [*steps, last])
        source = transformed(scan, steps) if steps else scan
        display.stage(f"computing and writing the scores of {options['data']}")
        n_rows = 0
        with csv_writer(final, replace=options["overwrite"], spreadsheet=options["spreadsheet"]) as writer:
            for batch in source.batches():
                columns = beside(source, slice(batch.start, batch.start + batch.n_rows), words=False)
                writer.append(columns | numbered("component", last.transform(batch.rows)))
                n_rows += batch.n_rows
    for sentence in phrased(said):
        display.caution(sentence)
    if scan.n_dropped:
        display.caution(f"{scan.n_dropped} row(s) were left out because a value is missing, as in the fit.")
    display.say(f"Scores of {n_rows} rows: {final}")


def _opened(options: dict[str, Any], steps: list[Any]) -> Scan:
    """Open new rows with the columns of the fit, found by name if both have names."""
    rule = next((step.missing for step in steps if isinstance(step, Preparation)), "error")
    reading = reading_of(options) | {"missing": rule if rule in ("error", "drop-rows") else "keep"}
    names, width = list(map(str, getattr(steps[0], "feature_names_in_", []))), int(steps[0].n_features_in_)
    try:
        # Further columns may be anything, even text.
        known = standout.scan(options["data"], **reading | ({"columns": names} if names else {}))
    except InvalidValueError as error:
        if error.parameter != "columns":
            raise
        # The file does not name its columns, or lacks some.
        known = standout.scan(options["data"], **reading)
        lacking = [name for name in names if name not in known.known_columns]
        if known.columns is not None and lacking:
            raise click.UsageError(f"{options['data']!r} lacks {listed('column', lacking)} of the fit.") from None
    if known.width != width:
        raise click.UsageError(f"{options['data']!r} has {known.width} columns, but the fit had {width}.")
    return known


def load_model(path: str) -> Any:
    """Load a model from its file, or from the folder that ``standout fit`` wrote."""
    place = Path(path).expanduser()
    recover(place)
    return standout.load(place / "model.skops" if place.is_dir() else place)


# --- info -------------------------------------------------------------------------------------------------------------


def describe(options: dict[str, Any]) -> None:
    """Print what a model is."""
    display = Display(quiet=False)
    with collected_warnings() as said:
        model = load_model(options["model_path"])
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    last, names = steps[-1], getattr(model, "feature_names_in_", [])
    parameters = {name: value for name, value in last.get_params(deep=False).items() if value is not None}
    display.say(f"model:       {' -> '.join(type(step).__name__ for step in steps)}")
    display.say(f"parameters:  {', '.join(f'{name}={value!r}' for name, value in parameters.items())}")
    display.say(f"state:       {described(last) if hasattr(last, 'n_components_') else 'not fitted'}")
    if len(names):
        more = f", and {len(names) - MOST_COLUMNS} more" if len(names) > MOST_COLUMNS else ""
        display.say(f"columns:     {', '.join(shortened(str(name)) for name in names[:MOST_COLUMNS])}{more}")
    for sentence in phrased(said):
        display.caution(sentence)
