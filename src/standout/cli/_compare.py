"""``standout compare``: the methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from standout._writing import write_whole
from standout.cli._app import OPTIONS
from standout.cli._data import open_datasets
from standout.cli._display import Display
from standout.cli._fit import examine_model, fit_model, leading_columns, make_estimator, show_warnings, strength
from standout.cli._folder import check_output_file, is_device
from standout.report import Findings, compare, number, summary


def compare_methods(options: dict[str, Any], methods: list[str]) -> None:
    """Fit each method to the same data, and write one page."""
    display = Display(quiet=options["quiet"])
    final = check_output_file(options["output"], options["overwrite"], [options["data"], *options["background"]])
    _check_page(final)
    asked = [{**options, "method": method} for method in methods]
    models = [make_estimator(each) for each in asked]
    views = []
    with display.working():
        datasets = open_datasets(options, display)
        for model, each in zip(models, asked, strict=True):
            notes = fit_model(model, datasets, each, display)
            views.append(examine_model(model, datasets, each, display, notes=notes, with_path=False))
        display.stage("writing the page")
        # Phrased before the page is put in place: nothing that can fail comes after that.
        rows, said = _told(views)
        write_whole(final, compare(views, OPTIONS).encode(), replace=options["overwrite"])
    display.table(["method", "ratio", "grouped wrongly", "columns that follow it"], rows)
    display.say()
    show_warnings(said, display)
    display.say(f"Page: {final}")


def _check_page(final: Path) -> None:
    """Refuse a name that browsers would not open as a page; a device or a pipe needs none."""
    if not is_device(final) and final.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(
            f"{final.name!r} does not end in .html, so that browsers would not show it as a page. "
            f"Name it, for example, {final.name + '.html'!r}."
        )


def _told(views: list[Findings]) -> tuple[list[list[str]], list[str]]:
    """Give a line of words for each method, and what to be careful about."""
    found = [summary(findings, OPTIONS) for findings in views]
    of_pca = next((findings.pca_ratio for findings in views if findings.pca_ratio is not None), None)
    rows = []
    for findings, each in zip(views, found, strict=True):
        error = findings.clustering_error
        first = each["components"][0]
        ratio = "-" if first["ratio"] is None else strength(first)
        if findings.method == "PCA" and of_pca is not None:
            # No rows are held out for PCA.
            ratio = f"{number(of_pca)} (fitted)"
        rows.append([findings.method, ratio, "-" if error is None else f"{error:.1%}", leading_columns(first)])
    return rows, list(dict.fromkeys(sentence for each in found for sentence in each["warnings"]))
