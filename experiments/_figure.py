"""Pictures in the arrangement of the paper's figures: rows of panels."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments._record import Results, View
from standout import plots

WIDTH, HEIGHT = 3.1, 2.9
DPI = 120
# Beyond this many points, smaller and paler ones let both groups be seen.
MANY = 1000


@dataclass(frozen=True, eq=False)
class ScatterPanel:
    """Points of two groups.

    Attributes
    ----------
    points : ndarray of shape (m, 2)
    labels : ndarray of shape (m,)
        Words.
    axes : tuple of two str
        Names of the axes.
    """

    title: str
    points: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    axes: tuple[str, str] = ("component 1", "component 2")


@dataclass(frozen=True, eq=False)
class ImagePanel:
    """A few images, side by side in a square.

    Attributes
    ----------
    images : ndarray of shape (n², height, width)
    """

    title: str
    images: npt.NDArray[Any]


Panel = ScatterPanel | ImagePanel


def score_panel(results: Results, method: str, setting: str = "", title: str = "") -> ScatterPanel:
    """Show what a method shows at the first seed, with its clustering error."""
    return view_panel(results.views[setting, method], title or method)


def view_panel(view: View, title: str) -> ScatterPanel:
    """Show scores under a title, with their clustering error."""
    return ScatterPanel(f"{title}\nerror {view.error:.3f}", view.scores, view.labels)


def representative_panels(results: Results, method: str, setting: str = "") -> list[Panel]:
    """Show each of the α that represent the list that was searched."""
    start = f"{method}, chosen α = "
    return [
        view_panel(view, name)
        for (where, name), view in results.views.items()
        if where == setting and name.startswith(start)
    ]


def some_images(results: Results, title: str, setting: str = "", side: int = 4) -> ImagePanel:
    """Show images of the target, from its first row to its last."""
    contrast: Any = results.contrasts[setting]
    chosen = np.linspace(0, len(contrast.target) - 1, side * side).astype(int)
    return ImagePanel(title, contrast.target[chosen].reshape(-1, *contrast.image_shape))


def picture(title: str, rows: list[list[Panel]]) -> bytes:
    """Draw the panels, row by row, and give a PNG file."""
    from matplotlib.figure import Figure

    n_columns = max(len(row) for row in rows)
    figure = Figure(figsize=(WIDTH * n_columns, HEIGHT * len(rows) + 0.7), layout="constrained")
    figure.suptitle(title, fontsize=12)
    axes = figure.subplots(len(rows), n_columns, squeeze=False)
    legend: dict[str, Any] = {}
    for row, panels in enumerate(rows):
        for column in range(n_columns):
            ax = axes[row, column]
            if column >= len(panels):
                ax.set_axis_off()
            elif isinstance(panels[column], ImagePanel):
                _draw_images(ax, panels[column])
            else:
                _draw_scatter(ax, panels[column], legend)
    words: Any = figure.legend(
        legend.values(), legend, loc="outside lower center", ncols=max(len(legend), 1), frameon=False
    )
    for handle in words.legend_handles:
        handle.set(sizes=[40], alpha=0.9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()


def _draw_scatter(ax: Any, panel: Any, legend: dict[str, Any]) -> None:
    plots.scores(panel.points, labels=panel.labels, ax=ax)
    if len(panel.points) > MANY:
        for points in ax.collections:
            points.set(sizes=[5], alpha=0.5)
    ax.set_title(panel.title, fontsize=9)
    ax.set_xlabel(panel.axes[0], fontsize=8)
    ax.set_ylabel(panel.axes[1], fontsize=8)
    ax.tick_params(labelsize=7)
    # A few powers of ten between the methods' scales: let the axes say it in short.
    ax.ticklabel_format(style="sci", scilimits=(-2, 4))
    for part in (ax.xaxis, ax.yaxis):
        part.get_offset_text().set_fontsize(7)
    handles, words = ax.get_legend_handles_labels()
    legend.update(zip(words, handles, strict=True))
    # One legend for all panels.
    ax.get_legend().remove()


def _draw_images(ax: Any, panel: Any) -> None:
    side = round(len(panel.images) ** 0.5)
    framed = np.pad(panel.images, ((0, 0), (1, 1), (1, 1)), constant_values=float(panel.images.max()))
    rows = [np.hstack(list(framed[start : start + side])) for start in range(0, side * side, side)]
    ax.imshow(np.vstack(rows), cmap="gray")
    ax.set_axis_off()
    ax.set_title(panel.title, fontsize=9)
