"""``standout explore``: a page on which the question is chosen by hand."""

from __future__ import annotations

from typing import Any

from standout._messages import require_extra
from standout._options import OPTIONS
from standout.cli._data import Datasets, open_datasets, open_table
from standout.cli._demo import demo_datasets
from standout.cli._display import Display
from standout.cli._fit import phrased
from standout.datasets import make_digits_over_photographs


def explore_files(options: dict[str, Any], given: set[str]) -> None:
    """Open the files, and the page; `given` names the options that were on the command line."""
    require_extra("tornado", "explore", "the page")
    from standout.explorer import explore

    display, column = Display(quiet=options["quiet"]), options["condition_column"]
    with display.working():
        if options["demo"]:
            images = make_digits_over_photographs()
            made, options["image_shape"] = demo_datasets(images), images.image_shape
        elif column is not None:
            made = open_table(options, display, [column])
        else:
            made = open_datasets(options, display)
        target, *backgrounds = [source.loaded() for source in made.sources]
    for sentence in phrased(made.notes):
        display.caution(sentence)
    page = explore(
        target.rows,
        None if column is None else made.words[0][column],
        background=[source.rows for source in backgrounds] or None,
        target=list(options["target"]) or None,
        features=made.columns,
        ids=target.ids,
        labels=target.labels,
        method=options["method"],
        image_shape=options["image_shape"],
        session=options["session"],
        port=options["port"],
        browser=options["browser"],
        wait=False,
        **_parameters(options, given, made),
    )
    display.say("Ctrl-C ends it.")
    page.wait()


def _parameters(options: dict[str, Any], given: set[str], made: Datasets) -> dict[str, Any]:
    """Return the parameters of the estimator that were given, and the subjects of the rows."""
    found = {name: options[name] for name in OPTIONS if name in given}
    if options["bandwidth"] is not None:
        found |= {"kernel": "gaussian", "kernel_params": {"bandwidth": options["bandwidth"]}}
    subjects = [source.subjects for source in made.sources]
    if subjects[0] is not None:
        found["groups"] = subjects[0]
        if len(subjects) > 1:
            found["background_groups"] = subjects[1:]
    return found
