"""``standout demo``: the main job on data that need no file."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from standout.cli._closing import close
from standout.cli._data import Datasets
from standout.cli._display import Display
from standout.cli._fit import command as fit_command
from standout.cli._fitting import fit_and_examine
from standout.cli._folder import check_output_folder, folder_as_a_whole
from standout.cli._methods import make_estimator
from standout.cli._options import METHOD, METHODS, SectionedCommand, option, output_option, quiet_option
from standout.cli._result import require_packages, write_result
from standout.datasets import ImageContrast, make_digits_over_photographs
from standout.demo import draw_digits
from standout.io import Table, prepare
from standout.report import Findings


@click.command("demo", cls=SectionedCommand)
@option(METHOD, "--method", type=click.Choice(METHODS), default="dpca", show_default=True, help="What to fit.")
@output_option("Folder to write.", default="standout-demo", show_default=True)
@quiet_option
def command(**options: Any) -> None:
    """Find handwritten digits that are hidden over pieces of photographs.

    PCA of the images shows the photographs. Given other pieces of the same photographs as background, discriminative
    PCA shows the digits. Which digit an image has is used for the colours only.
    """
    require_packages()
    display = Display(quiet=options["quiet"])
    # The demo may be run again and again; only what it wrote itself is replaced.
    final = check_output_folder(options["output"], overwrite=True)
    asked = {**_defaults(), **options}
    model = make_estimator(asked)
    with display.working():
        display.stage("laying digits over photographs")
        images = make_digits_over_photographs()
        datasets = _as_datasets(images)
        findings, scores = fit_and_examine(model, datasets, asked, display)
        with folder_as_a_whole(final) as draft:
            write_result(draft, model, datasets, scores, findings, asked, display)
            draw_digits(draft / "digits.png", images)
    _tell(findings, display)
    display.say(f"Picture: {final / 'digits.png'}")
    display.say()
    close(findings, final, display)


def _defaults() -> dict[str, Any]:
    """Give what standout fit does if nothing is asked."""
    return fit_command.make_context("fit", ["TARGET", "--output", "OUT"]).params


def _as_datasets(images: ImageContrast) -> Datasets:
    height, width = images.image_shape
    columns = [f"pixel {row + 1}:{column + 1}" for row in range(height) for column in range(width)]
    labels = np.array([f"digit {digit}" for digit in images.labels], dtype=object)
    target = Table(images.target, columns, labels=labels, source="digits over photographs")
    background = Table(images.backgrounds[0], columns, source="other pieces of the photographs")
    names = ["digits over photographs", "photographs"]
    return Datasets(prepare(target, [background]), names, {"data": "made by standout demo"})


def _tell(findings: Findings, display: Display) -> None:
    ours, pca = findings.clustering_error, findings.pca_clustering_error
    display.say(f"{findings.target.n_rows} images of the digits 6 and 9 over photographs, 16 x 16 pixels.")
    if findings.backgrounds:
        display.say(f"Background: {findings.backgrounds[0].n_rows} other pieces of the photographs.")
    if ours is not None and pca is not None:
        display.say(
            f"By PCA's view {pca:.1%} of the images would be put into the wrong group, by that of {findings.method} "
            f"{ours:.1%}."
        )
