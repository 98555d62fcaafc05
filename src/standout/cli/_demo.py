"""``standout demo``: the main job on data that need no file, and the picture of the README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from standout import DiscriminativePCA
from standout.cli._data import Datasets
from standout.cli._display import Display
from standout.cli._fit import fit_and_write, make_estimator, require_packages, show_result
from standout.cli._folder import check_output_folder
from standout.datasets import ImageContrast, make_digits_over_photographs
from standout.io import Table
from standout.metrics import clustering_error
from standout.plots import plot_scores
from standout.report import Findings


def show_digits(options: dict[str, Any]) -> None:
    """Fit digits that are laid over photographs, and write the folder."""
    require_packages()
    display = Display(quiet=options["quiet"])
    final = check_output_folder(options["output"], options["overwrite"])
    model = make_estimator(options)
    with display.working():
        display.stage("laying digits over photographs")
        images = make_digits_over_photographs()

        def drawn(folder: Path) -> None:
            draw_digits(images, folder / "digits.png")

        findings = fit_and_write(model, demo_datasets(images), final, options, display, drawn)
    _show(findings, display)
    display.say(f"Picture: {final / 'digits.png'}")
    display.say()
    show_result(findings, final, display)


def demo_datasets(images: ImageContrast) -> Datasets:
    """Give the images as the datasets of a fit."""
    height, width = images.image_shape
    columns = [f"pixel {row + 1}:{column + 1}" for row in range(height) for column in range(width)]
    labels = np.array([f"digit {digit}" for digit in images.labels], dtype=object)
    target = Table(images.target, columns, labels=labels, source="digits over photographs")
    background = Table(images.backgrounds[0], columns, source="other pieces of the photographs")
    names = ["digits over photographs", "photographs"]
    return Datasets([target, background], names, columns, {"data": "made by standout demo"})


def _show(findings: Findings, display: Display) -> None:
    ours, pca = findings.clustering_error, findings.pca_clustering_error
    display.say(f"{findings.target.n_rows} images of the digits 6 and 9 over photographs, 16 x 16 pixels.")
    if findings.backgrounds:
        display.say(f"Background: {findings.backgrounds[0].n_rows} other pieces of the photographs.")
    if ours is not None and pca is not None:
        display.say(f"Images that are put into the wrong group: {pca:.1%} by PCA, {ours:.1%} by {findings.method}.")


def draw_digits(images: ImageContrast, path: Path) -> None:
    """Draw some of the images, PCA's view of them, and that of discriminative PCA; digits give the colours only."""
    from matplotlib.figure import Figure

    models = {
        "PCA": DiscriminativePCA(2).fit(images.target),
        "discriminative PCA": DiscriminativePCA(2).fit(images.target, background=images.backgrounds),
    }
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[0.8, 1, 1])
    some = np.linspace(0, len(images.target) - 1, 16).astype(int)
    tiles = images.target[some].reshape(4, 4, *images.image_shape)
    framed = np.pad(tiles, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=1.0)
    axes[0].imshow(np.block([list(row) for row in framed]), cmap="gray")
    axes[0].set_axis_off()
    axes[0].set_title("some of the target")
    for ax, (name, model) in zip(axes[1:], models.items(), strict=True):
        scores = model.transform(images.target)
        error = clustering_error(scores, images.labels)
        plot_scores(scores, [f"digit {label}" for label in images.labels], ax=ax, title=f"{name}: error {error:.1%}")
    figure.savefig(path, format="png", dpi=130)
