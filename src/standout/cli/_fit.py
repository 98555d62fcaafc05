"""``standout fit`` and ``standout compare``: fit files, and write a folder or a page with the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any

import click
import numpy as np

import standout
from standout._messages import collected_warnings, require_extra
from standout._options import METHODS, OPTION_NAMES, check_parameters, options_for
from standout._writing import write_whole
from standout.cli._data import Datasets, open_cube, open_datasets
from standout.cli._display import SIGNALS, Display, printable
from standout.cli._folder import MARK, check_output_file, check_output_folder, folder_as_a_whole, is_device
from standout.cli._options import COMMAND_METHODS, FITTED_AS
from standout.estimators import ESTIMATORS
from standout.io import write_csv
from standout.report import figure, findings, open_fit, page, sentences
from standout.report._drawn import Fit
from standout.report._words import environment, number, p_value, shortened

Found = dict[str, Any]
# Maximum number of columns per component, and of letters of a name, on the terminal.
MOST_COLUMNS, LONGEST_NAME = 4, 30
ROWS_AT_ONCE = 100_000
OF_SUBJECTS = {"shared subjects", "few background rows"}


def fit_files(options: dict[str, Any]) -> None:
    """Fit with the options, and write the folder."""
    if options["from_sums"]:
        from standout.cli._private import fit_sums

        return fit_sums(options)
    display, final, model = begun(options)
    with display.working():
        datasets = open_cube(options, display) if options["cube"] else open_datasets(options, display)
        found = fit_and_write(model, datasets, final, options, display)
    return show_result(found, final, display, options["command"])


def fit_and_write(model: Any, datasets: Datasets, final: Path, options: dict[str, Any], display: Display) -> Found:
    """Fit a model, and write the folder with everything that was found."""
    found, fit = fit_and_find(model, datasets, options, display)
    display.stage("writing the report")
    with folder_as_a_whole(final, overwrite=options["overwrite"]) as draft, ThreadPoolExecutor(1) as pool:
        # Writing the scores takes longest, so a thread does it while the other files are written.
        scores = pool.submit(write_csv, draft / "scores.csv", scores_of_rows(fit), spreadsheet=options["spreadsheet"])
        write_columns(draft / "columns.csv", model, datasets.columns, options["spreadsheet"])
        saved = model
        if datasets.steps:
            # The steps return arrays without column names, so the model must not expect names.
            saved = copy(model)
            vars(saved).pop("feature_names_in_", None)
            saved = standout.make_pipeline(*datasets.steps, saved)
        standout.save(saved, draft / "model.skops")
        (draft / "report.html").write_text(page(found), encoding="utf-8")
        (draft / "figure.png").write_bytes(figure(found))
        if datasets.draw is not None:
            datasets.draw(model, draft)
        found["command"] = printable(options["command"])
        # Make the sentences before the folder is moved into place: if they raise an error, no folder appears.
        sentences(found)
        text = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        scores.result()
        (draft / MARK).write_text(text + "\n", encoding="utf-8")
    return found


def fit_and_find(
    model: Any, datasets: Datasets, options: dict[str, Any], display: Display, **settings: Any
) -> tuple[Found, Fit]:
    """Fit a model, test its components, and collect the findings."""
    sources = datasets.sources if options["method"] in METHODS else datasets.sources[:1]
    display.stage(f"fitting {COMMAND_METHODS[options['method']]}")
    test = None
    with collected_warnings() as said:
        model.fit(sources[0], background=sources[1:] or None)
        # Text files are read to count their rows. The fit has the counts, so do not read again.
        for source, count in zip(sources, [model.n_samples_, *model.background_n_samples_], strict=True):
            source.n_rows = count
        if options.get("test") and len(sources) > 1:
            display.stage("testing the components")
            given = {name: options[name] for name in ("n_draws", "random_state")}
            test = standout.permutation_test(model, sources[0], background=sources[1:], **given)
    display.stage("scores, PCA for comparison, other choices")
    with collected_warnings() as more:
        settings |= {"title": options.get("title"), "image_shape": options.get("image_shape"), "test": test}
        settings |= {"label_name": datasets.label_name or "label", "notes": [*datasets.notes, *said]}
        fit = open_fit(model, sources)
        found = findings(fit, options=OPTION_NAMES, names_subjects=datasets.names_subjects, **settings)
    if options.get("cube"):
        # The subjects of a cube are strips of the image, so cautions about subjects do not apply.
        found["cautions"] = [one for one in found["cautions"] if one["kind"] not in OF_SUBJECTS]
    found["cautions"] += [{"kind": "note", "text": str(one), "advice": ""} for one in more]
    return found, fit


def begun(options: dict[str, Any]) -> tuple[Display, Path, Any]:
    """Return the display, the folder and the estimator of a fit. Raise errors about the output before any work."""
    require_extra("skops", "models", "saving the model")
    require_extra("jinja2", "report", "the report")
    require_extra("matplotlib", "plots", "the picture")
    final = check_output_folder(options["output"], options["overwrite"])
    return Display(quiet=options["quiet"]), final, make_estimator(options)


def make_estimator(options: dict[str, Any]) -> Any:
    """Return the estimator of the options, and check its parameters before any file is read."""
    method = FITTED_AS.get(options["method"], options["method"])
    parameters = {one.name: options[one.name] for one in options_for(method) if one.command}
    if "kernel" in parameters and options["bandwidth"] is not None:
        parameters |= {"kernel": "gaussian", "kernel_params": {"bandwidth": options["bandwidth"]}}
    check_parameters(method, parameters)
    return ESTIMATORS[method](**parameters)


# --- the files of the folder ------------------------------------------------------------------------------------------


def scores_of_rows(fit: Fit) -> Iterator[Found]:
    """Yield the columns of scores.csv, one block of rows after the other.

    The held-out scores of a row use components that were found without the fold of this row. The columns
    held_out_1, held_out_2, ... therefore have the variance ratios that the report shows.
    """
    named, labelled = (any(getattr(one, what) is not None for one in fit.datasets) for what in ("ids", "labels"))
    for place, source in enumerate(fit.datasets):
        weights = fit.model.row_weights_[place] if fit.robust else source.weights
        for start in range(0, len(fit.scores[place]), ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, len(fit.scores[place])))
            empty = np.full(rows.stop - start, "", dtype=object)
            # This runs in the writing thread, which gets no signals, so check for an interruption.
            SIGNALS.check()
            # Arrow converts NumPy's text faster than objects.
            columns: Found = {"dataset": np.full(len(empty), source.name), **beside(source, rows, named)}
            if labelled:
                columns["label"] = empty if source.labels is None else source.labels[rows]
            if weights is not None:
                columns["weight"] = np.asarray(weights, np.float64)[rows]
            columns |= numbered("component", fit.fitted[place][rows])
            if fit.held_out and np.isfinite(fit.model.ratio_).any():
                columns |= numbered("held_out", fit.scores[place][rows])
            yield columns


def beside(source: Any, rows: slice, words: bool) -> dict[str, Any]:
    """Return the ids of some rows, or their numbers if they have no ids (as text if `words`)."""
    if source.ids is not None:
        return {"id": source.ids[rows]}
    numbers = np.arange(rows.start, rows.stop)
    return {"id": numbers.astype(str).astype(object) if words else numbers}


def numbered(name: str, scores: Any) -> dict[str, Any]:
    """Return scores as numbered columns, in double precision, because a column of a file has one type."""
    return {f"{name}_{k + 1}": np.asarray(column, np.float64) for k, column in enumerate(np.asarray(scores).T)}


def write_columns(path: Path, model: Any, names: list[str], spreadsheet: bool = False) -> None:
    """Write the correlation, the pattern and the filter of each column, for each component."""
    columns: dict[str, Any] = {"column": np.array(names, dtype=object)}
    parts = {"correlation": "correlations_", "pattern": "patterns_", "filter": "components_"}
    for k in range(model.n_components_):
        for word, attribute in parts.items():
            values = getattr(model, attribute, None)
            if values is not None and np.shape(values)[1] == len(names):
                columns[f"{word}_{k + 1}"] = np.asarray(values[k], np.float64)
    write_csv(path, columns, spreadsheet=spreadsheet)


def render(template: str, **values: Any) -> str:
    """Fill a template of the commands."""
    return str(environment(html=True).get_template(f"cli/{template}").render(version=standout.__version__, **values))


# --- the result in the terminal ---------------------------------------------------------------------------------------


def show_result(found: Found, final: Path, display: Display, command: str = "") -> None:
    """Print the headline, a table of the components, the cautions, and the path of the report."""
    headline, *cautions = sentences(found)
    display.say(headline)
    display.say()
    table = []
    for one in found["components"]:
        chance = "-" if one["p_value"] is None else p_value(one["p_value"])
        table.append([str(one["component"]), ratio_words(one, found), chance, leading_columns(one)])
    display.table(["component", "ratio (± 1 error)", "p-value", "columns that follow it"], table)
    rows = " + ".join(f"{one['rows']:,}" for one in found["datasets"])
    display.say(f"{rows} rows, {found['n_columns']:,} columns")
    display.say()
    for sentence, caution in zip(cautions, found["cautions"], strict=True):
        display.say(f"! {sentence}")
        if caution["kind"] == "units" and command:
            overwrite = "" if "--overwrite" in command else " --overwrite"
            display.say(f"  {command} --scale pooled{overwrite}")
    display.say(f"Report: {final / 'report.html'}")


def ratio_words(component: Found, found: Found) -> str:
    """Return the ratio of a component with its interval."""
    if component["ratio"] is None:
        return "-"
    words, (low, high) = number(component["ratio"]), component["interval"]
    words += "" if None in (low, high) else f" ({number(low)} to {number(high)})"
    return words if found["held_out"] else f"{words} in the fitted rows"


def leading_columns(component: Found) -> str:
    """Return the names of the columns that correlate most with a component."""
    return ", ".join(shortened(one["name"], LONGEST_NAME) for one in component["columns"][:MOST_COLUMNS]) or "-"


# --- compare ----------------------------------------------------------------------------------------------------------


def compare_methods(options: dict[str, Any]) -> None:
    """Fit each method to the same data, and write one page."""
    display = Display(quiet=options["quiet"])
    final = check_output_file(options["output"], options["overwrite"], [options["data"], *options["background"]])
    if not is_device(final) and final.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"{final.name!r} does not end in .html, and browsers would not show it as a page.")
    asked = [{**options, "method": method} for method in options["methods"]]
    models = [make_estimator(each) for each in asked]
    with display.working():
        datasets = open_datasets(options, display)
        pairs = zip(models, asked, strict=True)
        views = [fit_and_find(model, datasets, each, display, with_views=False)[0] for model, each in pairs]
        display.stage("writing the page")
        of_pca = next((found["pca"] for found in views if found["pca"] is not None), None)
        rows = [_compared(found, of_pca) for found in views]
        for found in views:
            # The table compares all methods, so the caution that PCA is better is not needed.
            found["cautions"] = [one for one in found["cautions"] if one["kind"] != "PCA is better"]
        made = render("compare.html.j2", views=list(zip(views, rows, map(figure, views), strict=True)))
        write_whole(final, made.encode(), replace=options["overwrite"])
    display.table(["method", "ratio", "grouped wrongly", "columns that follow it"], rows)
    display.say()
    display.cautions(dict.fromkeys(one for found in views for one in sentences(found)[1:]))
    display.say(f"Page: {final}")


def _compared(found: Found, of_pca: Found | None) -> list[str]:
    """Return the table row of a method. PCA has no folds, so its ratio comes from the fit of another method."""
    first, labels = found["components"][0], found["labels"]
    if found["verdict"] == "pca" and of_pca is not None and not found["kernel"]:
        first, found = {**first, **of_pca}, {**found, "held_out": True}
    error = "-" if labels is None or labels["error"] is None else f"{labels['error']:.1%}"
    return [found["method"], ratio_words(first, found), error, leading_columns(first)]
