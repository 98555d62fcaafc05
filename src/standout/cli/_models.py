"""``standout transform`` and ``standout info``: models that were saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

import standout
from standout._messages import InvalidValueError, listed
from standout.cli._data import reading_of
from standout.cli._display import Display, shortened
from standout.cli._fit import beside, collected_warnings, numbered, phrased
from standout.cli._folder import check_output_file, recover
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
    facts = {"model": " -> ".join(type(step).__name__ for step in steps), **_facts(steps[-1])}
    if hasattr(steps[-1], "n_components_"):
        facts["columns"] = _named_columns(model)
    for name, words in facts.items():
        display.say(f"{name + ':':<13}{words}")
    for sentence in phrased(said):
        display.caution(sentence)


def _facts(model: Any) -> dict[str, str]:
    """Return what is known of the estimator."""
    parameters = {name: value for name, value in model.get_params(deep=False).items() if value is not None}
    facts = {"parameters": ", ".join(f"{name}={value!r}" for name, value in parameters.items())}
    if not hasattr(model, "n_components_"):
        return {**facts, "state": "not fitted"}
    facts["ratio"] = _ratios(model)
    known = {"shrinkage": "shrinkage_", "alpha": "alpha_", "epsilon": "epsilon_", "weights": "background_weights_"}
    facts |= {name: _numbers(getattr(model, field)) for name, field in known.items() if hasattr(model, field)}
    rows = [getattr(model, "n_samples_", None), *getattr(model, "background_n_samples_", [])]
    return facts | {"rows": " + ".join(f"{count:,.0f}" for count in rows if count is not None)}


def _ratios(model: Any) -> str:
    """Return the held-out ratio of each component with its interval."""
    ratios, intervals = getattr(model, "ratio_", None), getattr(model, "ratio_interval_", None)
    if ratios is None or not np.isfinite(ratios).any():
        return "none (no held-out rows)"
    if intervals is None or not np.isfinite(intervals).all():
        return _numbers(ratios)
    return ", ".join(f"{r:.4g} ({low:.4g} to {high:.4g})" for r, (low, high) in zip(ratios, intervals, strict=True))


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.4g}" for value in np.ravel(values)) or "none"


def _named_columns(model: Any) -> str:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return str(model.n_features_in_)
    more = f", and {len(names) - MOST_COLUMNS} more" if len(names) > MOST_COLUMNS else ""
    return f"{len(names)}: {', '.join(shortened(str(name)) for name in names[:MOST_COLUMNS])}{more}"
