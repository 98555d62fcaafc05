"""``standout screen``: many conditions of one file against one control."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from standout._writing import write_whole
from standout.cli._data import open_table
from standout.cli._display import Display, shortened
from standout.cli._fit import collected_warnings, phrased
from standout.cli._folder import check_output_file
from standout.io import write_csv
from standout.screen import screen

# Conditions that the terminal shows.
MOST_SHOWN = 20
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 24px; }} table {{ border-collapse: collapse; }}
td, th {{ padding: 4px 10px; text-align: right; border-bottom: 1px solid #ddd; }}</style></head>
<body><h1>{title}</h1>{body}</body></html>
"""


def screen_file(options: dict[str, Any]) -> None:
    """Compare every condition with the control, and write the table or a page."""
    display = Display(quiet=options["quiet"])
    final = check_output_file(options["output"], options["overwrite"], [options["data"]])
    with display.working():
        opened = open_table(options, display, [options["condition_column"]])
        display.stage("comparing every condition with the control")
        with collected_warnings() as said:
            found = screen(
                opened.sources[0],
                opened.words[0][options["condition_column"]],
                control=options["control"],
                groups=opened.sources[0].subjects,
                random_state=options["random_state"] or 0,
            )
        display.stage("writing the table")
        table = found.table
        if final.suffix.lower() in (".html", ".htm"):
            title = f"{options['condition_column']} against {options['control']}"
            made = PAGE.format(title=escape(title), body=found._repr_html_())
            write_whole(final, made.encode(), replace=options["overwrite"])
        else:
            columns = {"label": np.array([str(name) for name in table.index], dtype=object)}
            columns |= {name: table[name].to_numpy() for name in table.columns}
            write_csv(final, columns, spreadsheet=options["spreadsheet"])
    display.say(found.summary())
    display.say()
    rows = [
        [
            shortened(str(name)),
            str(row["rows"]),
            *(f"{row[key]:.3g}" for key in ("ratio", "shift", "q_value")),
            row["verdict"],
        ]
        for name, row in table.head(MOST_SHOWN).iterrows()
    ]
    display.table(["condition", "rows", "ratio", "shift", "q-value", "verdict"], rows)
    display.say()
    for sentence in phrased([*opened.notes, *said]):
        display.caution(sentence)
    display.say(f"Table: {final}")
