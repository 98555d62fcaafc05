"""``standout demo`` and ``standout screen``."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from standout._writing import write_whole
from standout.cli._data import Datasets, open_datasets
from standout.cli._display import Display
from standout.cli._fit import collected_warnings, fit_and_write, make_estimator, phrased, require_packages, show_result
from standout.cli._folder import check_output_file, check_output_folder
from standout.datasets import ImageContrast, make_digits_over_photographs
from standout.io import write_csv
from standout.sources import InMemory

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 24px; }} table {{ border-collapse: collapse; }}
td, th {{ padding: 4px 10px; text-align: right; border-bottom: 1px solid #ddd; }}</style></head>
<body><h1>{title}</h1>{body}</body></html>
"""


# --- demo -------------------------------------------------------------------------------------------------------------


def show_digits(options: dict[str, Any]) -> None:
    """Fit digits that are laid over photographs, and write the folder."""
    require_packages()
    display = Display(quiet=options["quiet"])
    final = check_output_folder(options["output"], options["overwrite"])
    model = make_estimator(options)
    with display.working():
        display.stage("laying digits over photographs")
        images = make_digits_over_photographs()
        options |= {"image_shape": images.image_shape, "title": "Which digits are hidden over the photographs?"}

        def drawn(folder: Path, found: dict[str, Any]) -> None:
            draw_digits(images, found, folder / "digits.png")

        found = fit_and_write(model, demo_datasets(images), final, options, display, further=drawn)
    display.say(f"{len(images.target)} images of the digits 6 and 9 over photographs, 16 x 16 pixels.")
    display.say(f"Background: {len(images.backgrounds[0])} other pieces of the photographs.")
    errors = [found["labels"][name] for name in ("error", "pca_error")]
    others = "" if errors[1] is None else f" PCA: {errors[1]:.1%}."
    display.say(f"Images that are put into the wrong group: {errors[0]:.1%}.{others}")
    display.say(f"Picture: {final / 'digits.png'}")
    display.say()
    show_result(found, final, display)


def demo_datasets(images: ImageContrast) -> Datasets:
    """Return the images as the datasets of a fit."""
    height, width = images.image_shape
    columns = [f"pixel {row + 1}:{column + 1}" for row in range(height) for column in range(width)]
    target = InMemory(images.target, "digits over photographs", columns)
    target.labels = np.array([f"digit {digit}" for digit in images.labels], dtype=object)
    return Datasets([target, InMemory(images.backgrounds[0], "photographs", columns)], columns, label_name="digit")


def draw_digits(images: ImageContrast, found: dict[str, Any], path: Path) -> None:
    """Draw some of the images, the scores by PCA and by the fit, and the pattern; digits only colour the points."""
    from matplotlib.figure import Figure

    labels, points = found["labels"], found["drawn"]["points"][0]
    figure = Figure(figsize=(14, 3.8), layout="constrained")
    axes = figure.subplots(1, 4, width_ratios=[0.8, 1, 1, 0.8])
    some = np.linspace(0, len(images.target) - 1, 16).astype(int)
    tiles = images.target[some].reshape(4, 4, *images.image_shape)
    framed = np.pad(tiles, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=1.0)
    axes[0].imshow(np.block([list(row) for row in framed]), cmap="gray")
    axes[0].set_title("some of the target")
    axes[3].imshow(np.reshape(found["images"]["patterns"][0], images.image_shape), cmap="RdBu_r", vmin=-1, vmax=1)
    axes[3].set_title("pixels of component 1")
    for ax in (axes[0], axes[3]):
        ax.set_axis_off()
    marks = np.array([labels["names"][place] for place in points["labels"]])
    for ax, name, view in ((axes[1], "PCA", "pca"), (axes[2], found["method"], "scores")):
        scores, error = np.array(points[view], dtype=np.float64), labels["pca_error" if view == "pca" else "error"]
        for mark in labels["names"]:
            ax.scatter(*scores[:2, marks == mark], s=8, alpha=0.7, label=mark)
        ax.set_title(name if error is None else f"{name}: {error:.1%} wrong")
        ax.legend(loc="best", frameon=False)
    figure.savefig(path, format="png", dpi=130)


# --- screen -----------------------------------------------------------------------------------------------------------


def screen_file(options: dict[str, Any]) -> None:
    """Compare every condition with the control, and write the table or a page."""
    from standout.screen import screen

    display, column = Display(quiet=options["quiet"]), options["condition_column"]
    final = check_output_file(options["output"], options["overwrite"], [options["data"]])
    with display.working():
        made = open_datasets(options, display, beside=[column], split=False)
        source, labels, seed = made.sources[0], made.words[0][column], options["random_state"] or 0
        display.stage("comparing every condition with the control")
        with collected_warnings() as said:
            found = screen(source, labels, control=options["control"], groups=source.subjects, random_state=seed)
        display.stage("writing the table")
        if final.suffix.lower() in (".html", ".htm"):
            title = escape(f"{column} against {options['control']}")
            page = PAGE.format(title=title, body=found._repr_html_())
            write_whole(final, page.encode(), replace=options["overwrite"])
        else:
            columns = {"label": np.array([str(name) for name in found.table.index], dtype=object)}
            columns |= {name: found.table[name].to_numpy() for name in found.table.columns}
            write_csv(final, columns, spreadsheet=options["spreadsheet"])
    for line in str(found).splitlines():
        display.say(line)
    for sentence in phrased([*made.notes, *said]):
        display.caution(sentence)
    display.say(f"Table: {final}")
