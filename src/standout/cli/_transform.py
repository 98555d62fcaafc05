"""``standout transform``: the scores of new rows."""

from __future__ import annotations

from typing import Any

import click

from standout.cli._closing import warn
from standout.cli._data import with_row_numbers
from standout.cli._display import Display
from standout.cli._folder import check_output_file
from standout.cli._listening import listening
from standout.cli._models import columns_of, drops_rows, load_model, prepared_rows
from standout.cli._options import (
    SectionedCommand,
    column_options,
    file_options,
    output_option,
    overwrite_option,
    quiet_option,
)
from standout.cli._result import score_columns
from standout.io import Table, UnknownColumnsError, read_table, write_csv


@click.command("transform", cls=SectionedCommand)
@click.argument("model_path", metavar="MODEL")
@click.argument("data", metavar="NEW")
@file_options
@column_options
@output_option("CSV file to write.", required=True)
@overwrite_option
@quiet_option
def command(**options: Any) -> None:
    """Write the scores of the rows of NEW, a file of any kind that fit reads.

    MODEL is the folder that fit wrote, or a model in a file. What was done to the data then (logarithm, scale, missing
    values) is done to the new rows, too. Columns are found by name; others may be there, and are left out.
    """
    display = Display(quiet=options["quiet"])
    final = check_output_file(options["output"], options["overwrite"], [options["data"], options["model_path"]])
    with display.working():
        display.stage(f"loading {options['model_path']}")
        with listening() as said:
            model = load_model(options["model_path"])
        display.stage(f"reading {options['data']}")
        table = _read(options, columns_of(model))
        if drops_rows(model):
            table = with_row_numbers(table)
        n_rows = table.values.shape[0]
        display.stage("finding scores")
        table = prepared_rows(model, table)
        columns = score_columns(table, model.transform(table.values))
        display.stage("writing scores")
        write_csv(final, columns)
    warn(said, display)
    dropped = n_rows - table.values.shape[0]
    if dropped:
        display.say(f"! {dropped} of {n_rows} rows were dropped because a value was missing, as in the fit.")
    display.say(f"Scores of {n_rows - dropped} rows: {final}")


def _read(options: dict[str, Any], columns: list[str] | None) -> Table:
    reading = {name: options[name] for name in ("format", "id_column", "variable")}
    reading |= {"select": list(options["select"]) or None, "drop": list(options["drop"])}
    if columns is not None and not options["select"]:
        # What is not of the fit may be anything, even text.
        try:
            return read_table(options["data"], **{**reading, "select": columns})
        except UnknownColumnsError as error:
            # A file that does not name its columns, or lacks some: matching them will tell.
            if error.option != "select":
                raise
    return read_table(options["data"], **reading)
