"""``standout fit``: files in, a folder with the answer out."""

from __future__ import annotations

from typing import Any

import click

from standout.cli._display import Display
from standout.cli._folder import check_output_folder, folder_as_a_whole
from standout.cli._methods import check_heeded, make_estimator, uses_background
from standout.cli._options import (
    SectionedCommand,
    data_options,
    method_option,
    output_option,
    overwrite_option,
    parameter_options,
    quiet_option,
)


@click.command("fit", cls=SectionedCommand)
@data_options
@method_option
@parameter_options
@output_option("Folder to write.", required=True)
@overwrite_option
@quiet_option
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Find what stands out in TARGET against the backgrounds, and write a folder with the answer.

    The backgrounds are files of their own (--background FILE, repeatable), or other rows of the same file
    (--group-column NAME --target GROUP). Files may be CSV, TSV, Parquet, Arrow, .npy, .npz, .mat or .h5ad.

    The folder has report.html (look at it first), figure.png, scores.csv, loadings.csv, summary.json and the model.
    """
    check_heeded(context, [options["method"]])
    # Loaded once it is clear what to do: the help, or an option that does not fit, should not have to wait for it.
    from standout.cli._closing import close
    from standout.cli._data import read_datasets
    from standout.cli._fitting import fit_and_examine
    from standout.cli._result import require_packages, write_result

    require_packages()
    display = Display(quiet=options["quiet"])
    final = check_output_folder(options["output"], options["overwrite"])
    model = make_estimator(options)
    with display.working():
        datasets = read_datasets(options, display.stage, need_background=uses_background(options["method"]))
        findings, scores = fit_and_examine(model, datasets, options, display, remarks=_remarks(options))
        # What is left to do needs packages that are large, but not the data.
        datasets = datasets.without_values()
        with folder_as_a_whole(final) as draft:
            write_result(draft, model, datasets, scores, findings, options, display)
    close(findings, final, display)


def _remarks(options: dict[str, Any]) -> list[str]:
    if uses_background(options["method"]) or not (options["backgrounds"] or options["group_column"]):
        return []
    return ["PCA compares with nothing: the backgrounds were read, but not used by the fit."]
