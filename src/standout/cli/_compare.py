"""``standout compare``: the methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from standout.cli._display import Display
from standout.cli._folder import check_output_file, is_device, write_text
from standout.cli._methods import check_heeded, make_estimator, uses_background
from standout.cli._options import (
    METHOD,
    METHODS,
    SectionedCommand,
    data_options,
    option,
    output_option,
    overwrite_option,
    parameter_options,
    quiet_option,
)

if TYPE_CHECKING:
    from standout.report import Findings


@click.command("compare", cls=SectionedCommand)
@data_options
@option(
    METHOD,
    "--methods",
    default="pca,cpca,dpca,kpca,kcpca,kdpca",
    show_default=True,
    metavar="M1,M2,...",
    help="Which to compare.",
)
@parameter_options
@output_option("HTML file to write.", required=True)
@overwrite_option
@quiet_option
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Show PCA, cPCA, dPCA and their kernel forms of TARGET side by side, in one page.

    Data are given as for standout fit. All methods get the same prepared data; each heeds the options that are for it.
    """
    methods = _methods(options["methods"])
    check_heeded(context, methods)
    # Loaded once it is clear what to do, as in standout fit.
    from standout.cli._data import read_datasets
    from standout.cli._fitting import fit_and_examine
    from standout.report import compare

    display = Display(quiet=options["quiet"])
    inputs = [options["data"], *options["backgrounds"]]
    final = check_output_file(options["output"], options["overwrite"], inputs)
    _check_page(final)
    asked = [{**options, "method": method} for method in methods]
    models = [make_estimator(each) for each in asked]
    with display.working():
        datasets = read_datasets(options, display.stage, need_background=any(map(uses_background, methods)))
        views = [
            fit_and_examine(model, datasets, each, display, with_path=False)[0]
            for model, each in zip(models, asked, strict=True)
        ]
        display.stage("writing the page")
        write_text(final, compare(views))
    _close(views, display)
    display.say(f"Page: {final}")


def _check_page(final: Path) -> None:
    """Refuse a name by which no browser would know the file for a page; a device or a pipe has none."""
    if not is_device(final) and final.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(
            f"{final.name!r} does not end in .html, so that browsers would not show it as a page. "
            f"Name it, for example, {final.name + '.html'!r}."
        )


def _methods(words: str) -> list[str]:
    methods = [word.strip() for word in words.split(",") if word.strip()]
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods:
        raise click.UsageError(f"--methods {words!r} is not a list of methods. Choose among {', '.join(METHODS)}.")
    return list(dict.fromkeys(methods))


def _close(views: list[Findings], display: Display) -> None:
    from standout.cli._closing import leading_columns, ratio, warn
    from standout.report import summary

    rows = []
    found = [summary(findings) for findings in views]
    for findings, each in zip(views, found, strict=True):
        first = each["components"][0]
        error = findings.clustering_error
        judged = "-" if error is None else f"{error:.1%}"
        rows.append([findings.method, ratio(first), judged, leading_columns(first)])
    display.table(["method", "first eigenvalue", "grouped wrongly", "columns that follow it"], rows)
    display.say()
    warn(dict.fromkeys(sentence for each in found for sentence in each["warnings"]), display)
