"""``standout explore``: files in, a page on which the question is chosen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import standout
from standout._messages import require_extra
from standout._options import OPTION_NAMES, OPTIONS
from standout.cli._data import _matched, open_datasets, reading_of
from standout.cli._display import Display
from standout.cli._fit import phrased
from standout.cli._options import FITTED_AS

# Options that choose rows or belong to the page: the page writes them itself.
CHOSEN = ("data", "background", "condition_column", "target", "background_condition", "subject_column", "method")
OF_THE_PAGE = ("demo", "session", "port", "browser", "quiet")


def explore_files(options: dict[str, Any]) -> None:
    """Open the files, and serve the page until it is closed."""
    require_extra("jinja2", "explore", "the page")
    from standout.explorer import begun, serve

    display = Display(quiet=options["quiet"])
    with display.working():
        table, by, target = _demo(options) if options["demo"] else _opened(options, display)
        facts = {name: options[name] for name in OPTIONS if name in options["given"]}
        if options["bandwidth"] is not None:
            facts |= {"kernel": "gaussian", "kernel_params": {"bandwidth": options["bandwidth"]}}
        display.stage("the first answer")
        method = FITTED_AS.get(options["method"], options["method"])
        others = list(options["background_condition"])
        state = begun(table, method, target, others, by=by, subjects=options["subject_column"], parameters=facts)
        if options["method"] in FITTED_AS:
            # PCA has no background: its rows are neither.
            state = replace(state, roles=state.roles.replace(b"\x02", b"\x00"))
        page = serve(table, state, facts, session=options["session"], port=options["port"])
    for sentence in phrased(table.notes):
        display.caution(sentence)
    display.say(f"Explore: {page.address}")
    display.say("Ctrl-C ends it.")
    if options["browser"]:
        page.open_browser()
    page.wait()


def _demo(options: dict[str, Any]) -> tuple[Any, str | None, list[str]]:
    from standout.cli._further import demo_datasets
    from standout.datasets import make_digits_over_photographs
    from standout.explorer import Table

    images = make_digits_over_photographs()
    sources = demo_datasets(images).sources
    shape = images.image_shape
    return Table.stacked(sources, [one.name for one in sources], words={}, image_shape=shape), None, []


def _opened(options: dict[str, Any], display: Display) -> tuple[Any, str | None, list[str]]:
    """Return the table, the column by which rows are chosen, and the conditions that are the target."""
    from standout.explorer import Table
    from standout.explorer._table import Origin

    column, subjects = options["condition_column"], options["subject_column"]
    paths, reading = [options["data"], *options["background"]], reading_of(options)
    named = [name for name in (column, subjects) if name is not None]
    beside = list(dict.fromkeys([*named, *_columns_of_words(paths, reading)]))
    # Subjects are chosen on the page: they are words beside the rows until then.
    made = open_datasets({**options, "subject_column": None}, display, beside=beside, split=False)
    words = {name: np.concatenate([part[name] for part in made.words]) for name in beside}
    if subjects is not None:
        words[subjects] = _matched(words[subjects], options)
    defaults = {"exclude": [], "missing": "error", "strict": False, "decimal": "."}
    given = {name: value for name, value in reading.items() if value is not None and value != defaults.get(name)}
    preparing = {name: options[name] for name in ("log1p", "missing") if name in options["given"]}
    origin = Origin(tuple(paths), given, preparing, tuple(_typed(options)))
    table = Table.stacked(
        made.sources,
        [source.name for source in made.sources],
        words=words,
        notes=made.notes,
        image_shape=options["image_shape"],
        origin=origin,
        label_name=made.label_name,
    )
    return table, column, list(options["target"])


def _columns_of_words(paths: list[str], reading: Mapping[str, Any]) -> list[str]:
    """Name the columns that all files have and that are not numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scans = [
            standout.scan(path, **{**reading, "label": None, "id_column": None, "strict": False}) for path in paths
        ]
    found = [name for names in scans[0].left_out.values() for name in names]
    used = (reading["id_column"], reading["label"], *reading["exclude"])
    return [name for name in found if name not in used and all(name in scan.known_columns for scan in scans)]


def _typed(options: dict[str, Any]) -> list[str]:
    """Return the options for reading and preparing as they were given."""
    words: list[str] = []
    for name in sorted(options["given"] - {*CHOSEN, *OF_THE_PAGE, *OPTIONS}):
        value, option = options[name], OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")
        if name == "in_memory":
            words.append("--in-memory" if value else "--stream")
        elif isinstance(value, bool):
            words += [option] if value else []
        elif name == "image_shape":
            words += [option, "x".join(map(str, value))]
        elif isinstance(value, tuple):
            words += [word for one in value for word in (option, "=".join(one) if isinstance(one, tuple) else str(one))]
        elif value is not None:
            words += [option, str(value)]
    return words
