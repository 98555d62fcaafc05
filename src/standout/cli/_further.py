"""``standout transform``, ``info``, ``demo``, ``screen`` and ``explore``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

import standout
from standout._messages import collected_warnings, listed, require_extra
from standout._options import OPTION_NAMES, OPTIONS
from standout._writing import write_whole
from standout.cli._data import Datasets, column_of_ids, matched_words, open_datasets, reading_of
from standout.cli._display import Display
from standout.cli._fit import begun, beside, fit_and_write, make_estimator, numbered, render, show_result
from standout.cli._folder import check_output_file, recover
from standout.cli._options import FITTED_AS, refuse
from standout.datasets import make_digits_over_photographs
from standout.estimators._scores import described
from standout.io import Preparation, Scan, write_csv
from standout.report._words import png, shortened, static
from standout.report._words import said as sentence
from standout.sources import InMemory, transformed

# `_typed` leaves out these options. The page writes the options in CHOSEN itself, from the choices that the user has
# made on the page. The options in OF_THE_PAGE have no effect on a fit.
CHOSEN = ("data", "background", "condition_column", "target", "background_condition", "subject_column", "method")
OF_THE_PAGE = ("demo", "session", "port", "browser", "quiet")


# --- transform --------------------------------------------------------------------------------------------------------


def transform_files(options: dict[str, Any]) -> None:
    """Write the scores of new rows, batch by batch."""
    display = Display(quiet=options["quiet"])
    final = check_output_file(options["output"], options["overwrite"], [options["data"], options["model_path"]])
    with display.working():
        display.stage(f"loading {options['model_path']}")
        with collected_warnings() as said:
            model = load_model(options["model_path"])
        *steps, last = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
        scan = _new_rows(options, [*steps, last])
        source = transformed(scan, steps) if steps else scan
        display.stage(f"computing and writing the scores of {options['data']}")
        parts = (
            beside(source, slice(batch.start, batch.start + batch.n_rows), words=False)
            | numbered("component", last.transform(batch.rows))
            for batch in source.batches()
        )
        write_csv(final, parts, replace=options["overwrite"], spreadsheet=options["spreadsheet"])
    display.cautions(said)
    if scan.n_dropped:
        display.cautions([f"{scan.n_dropped} row(s) were left out because a value is missing, as in the fit."])
    display.say(f"Scores of {source.n_rows} rows: {final}")


def _new_rows(options: dict[str, Any], steps: list[Any]) -> Scan:
    """Open new rows with the columns of the fit. Columns are found by name if the fit and the rows have names."""
    rule = next((step.missing for step in steps if isinstance(step, Preparation)), "error")
    reading = reading_of(options) | {"missing": rule if rule in ("error", "drop-rows") else "keep"}
    names, width = list(map(str, getattr(steps[0], "feature_names_in_", []))), int(steps[0].n_features_in_)
    with collected_warnings():
        found = standout.scan(options["data"], **reading)
    reading["id_column"] = column_of_ids(found)
    if found.columns is not None and names:
        lacking = [name for name in names if name not in found.known_columns]
        refuse((lacking, f"{options['data']!r} lacks {listed('column', lacking)} of the fit."))
        # Columns that the fit does not use may be anything, even text.
        reading["columns"] = names
    known = standout.scan(options["data"], **reading)
    refuse((known.width != width, f"{options['data']!r} has {known.width} columns, but the fit had {width}."))
    return known


def load_model(path: str) -> Any:
    """Load a model from its file, or from the folder that ``standout fit`` wrote."""
    place = Path(path).expanduser()
    recover(place)
    return standout.load(place / "model.skops" if place.is_dir() else place)


# --- info -------------------------------------------------------------------------------------------------------------


def describe(options: dict[str, Any]) -> None:
    """Describe a model."""
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
        display.say(f"columns:     {listed('column', map(shortened, names)).partition(' ')[2]}")
    display.cautions(said)


# --- demo -------------------------------------------------------------------------------------------------------------


def show_digits(options: dict[str, Any]) -> None:
    """Fit digits over photographs, and write the folder."""
    display, final, model = begun(options)
    with display.working():
        display.stage("laying digits over photographs")
        images = make_digits_over_photographs()
        options |= {"image_shape": images.image_shape, "title": "Which digits are hidden over the photographs?"}
        found = fit_and_write(model, demo_datasets(images), final, options, display)
    display.say(f"{len(images.target)} images of the digits 6 and 9 over photographs, 16 x 16 pixels.")
    display.say(f"Background: {len(images.backgrounds[0])} other pieces of the photographs.")
    if found["pca"]:
        display.say(sentence("beside", found))
    display.say(f"Picture: {final / 'figure.png'}")
    display.say()
    show_result(found, final, display)


def demo_datasets(images: Bunch) -> Datasets:
    """Return the images as the datasets of a fit."""
    height, width = images.image_shape
    columns = [f"pixel {row + 1}:{column + 1}" for row in range(height) for column in range(width)]
    target = InMemory(images.target, "digits over photographs", columns)
    target.labels = np.array([f"digit {digit}" for digit in images.labels], dtype=object)
    return Datasets([target, InMemory(images.backgrounds[0], "photographs", columns)], columns, label_name="digit")


# --- screen -----------------------------------------------------------------------------------------------------------


def screen_file(options: dict[str, Any]) -> None:
    """Compare every condition with the control, and write the table or a page."""
    from standout.screening import plot_screen, screen

    display, column = Display(quiet=options["quiet"]), options["condition_column"]
    final = check_output_file(options["output"], options["overwrite"], [options["data"]])
    with display.working():
        made = open_datasets(options, display, beside=[column], split=False)
        source, labels, seed = made.sources[0], made.words[0][column], options["random_state"] or 0
        display.stage("comparing every condition with the control")
        with collected_warnings() as said:
            found = screen(source, labels, control=options["control"], groups=source.subjects, random_state=seed)
        display.stage("writing the table")
        table = found.table.reset_index()
        if final.suffix.lower() in (".html", ".htm"):
            from matplotlib import pyplot

            figure = plot_screen(found).figure
            pyplot.close(figure)
            values = {"found": found, "rows": table.to_dict("records"), "css": static("page.css")}
            values |= {"title": f"{column} against {options['control']}", "picture": png(figure, dpi=130)}
            write_whole(final, render("screen.html.j2", **values).encode(), replace=options["overwrite"])
        else:
            write_csv(final, {name: table[name].to_numpy() for name in table}, spreadsheet=options["spreadsheet"])
    for line in str(found).splitlines():
        display.say(line)
    display.cautions([*made.notes, *said])
    display.say(f"Table: {final}")


# --- explore ----------------------------------------------------------------------------------------------------------


def explore_files(options: dict[str, Any]) -> None:
    """Open the files, and serve the page until it is closed."""
    require_extra("jinja2", "explore", "the page")
    from standout import explorer

    display = Display(quiet=options["quiet"])
    with display.working():
        if options["demo"]:
            images = make_digits_over_photographs()
            table = explorer.Table.stacked(demo_datasets(images).sources, words={}, image_shape=images.image_shape)
        else:
            table = _opened(options, display)
        facts = make_estimator(options).get_params()
        display.stage("the first answer")
        method = FITTED_AS.get(options["method"], options["method"])
        target, others = list(options["target"]), list(options["background_condition"])
        by, subjects = options["condition_column"], options["subject_column"]
        state = explorer.begun(table, method, target, others, by=by, subjects=subjects, parameters=facts)
        if options["method"] in FITTED_AS:
            # PCA has no background, so background rows get no role.
            state = replace(state, roles=state.roles.replace(b"\x02", b"\x00"))
        page = explorer.serve(table, state, facts, session=options["session"], port=options["port"])
    display.cautions(table.notes)
    display.say(f"Explore: {page.address}")
    display.say("Ctrl-C ends it.")
    if options["browser"]:
        page.open_browser()
    page.wait()


def _opened(options: dict[str, Any], display: Display) -> Any:
    """Return the files as a `Table`."""
    from standout.explorer import Table
    from standout.explorer._table import Origin

    subjects, paths, reading = options["subject_column"], [options["data"], *options["background"]], reading_of(options)
    # Find the columns that all files have and that are not numbers. On the page, rows can be chosen by these columns.
    plain = reading | {"label": None, "id_column": None, "strict": False}
    with collected_warnings():
        scans = [standout.scan(path, **plain) for path in paths]
    used = (reading["id_column"] or column_of_ids(scans[0]), reading["label"], *reading["exclude"])
    found = [name for kind in scans[0].left_out.values() for name in kind if name not in used]
    found = [name for name in found if all(name in scan.known_columns for scan in scans)]
    beside = [name for name in dict.fromkeys([options["condition_column"], subjects, *found]) if name is not None]
    # The page computes the subjects of each fit from a text column, so read the column of subjects as text.
    made = open_datasets({**options, "subject_column": None}, display, beside=beside, split=False)
    words = {name: np.concatenate([part[name] for part in made.words]) for name in beside}
    if subjects is not None:
        words[subjects] = matched_words(words[subjects], options)
    defaults = {"exclude": [], "missing": "error", "strict": False, "decimal": "."}
    given = {name: value for name, value in reading.items() if value is not None and value != defaults.get(name)}
    preparing = {name: options[name] for name in ("log1p", "missing") if name in options["given"]}
    origin = Origin(tuple(paths), given, preparing, tuple(_typed(options)))
    known = {"notes": made.notes, "image_shape": options["image_shape"], "label_name": made.label_name}
    return Table.stacked(made.sources, words=words, origin=origin, **known)


def _typed(options: dict[str, Any]) -> Iterator[str]:
    """Yield the options for reading and preparing as the user typed them."""
    for name in sorted(options["given"] - {*CHOSEN, *OF_THE_PAGE, *OPTIONS}):
        value, option = options[name], OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")
        if isinstance(value, bool):
            yield option if value else "--stream"
            continue
        value = "x".join(map(str, value)) if name == "image_shape" else value
        for one in value if isinstance(value, tuple) else [value]:
            yield from (option, "=".join(one) if isinstance(one, tuple) else str(one))
