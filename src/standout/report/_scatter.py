"""The two linked scatter plots as a Bokeh document, the colours and shapes of points, and the legend."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from standout._arrays import Float
from standout.plots import COLOURS
from standout.report._findings import Findings, Single, plane
from standout.report._format import number, shortened

# Names of the page's colours, which are lighter on a dark page, and their values on white.
ON_WHITE = {**{f"c{index}": colour for index, colour in enumerate(COLOURS)}, "grey": "#7b838c"}
N_COLOURS = len(COLOURS)
# From dark blue to yellow in order of lightness, for colour-blind eyes as well.
SCALE_COLOURS = 64
# The colour of rings around rows that count less, on white. The page's script takes that of its text.
RING = "#1c2126"
# Points further from the middle half of the others than so many times its width are left outside, with robust weights.
REACH = 3.0
# Share of a background's points at either end that may lie outside of the plot: the target decides what is seen.
BACKGROUND_TAIL = 0.01


@dataclass(frozen=True)
class Shape:
    """A marker: its names in Bokeh and matplotlib, and its outline in a square of 16 units.

    Attributes
    ----------
    bokeh, matplotlib : str
    outline : str
        An SVG path.
    """

    bokeh: str
    matplotlib: str
    outline: str


SHAPES = (
    Shape("circle", "o", "M8 2a6 6 0 1 0 .01 0z"),
    Shape("triangle", "^", "M8 2l6.5 11.5h-13z"),
    Shape("square", "s", "M3 3h10v10h-10z"),
    Shape("diamond", "D", "M8 1l5.5 7l-5.5 7l-5.5-7z"),
    Shape("inverted_triangle", "v", "M8 14l6.5-11.5h-13z"),
    Shape("hex", "h", "M8 1.5l5.8 3.2v6.6l-5.8 3.2l-5.8-3.2v-6.6z"),
    Shape("star", "*", "M8 1l2 4.8l5.2.4l-4 3.4l1.3 5l-4.5-2.7l-4.5 2.7l1.3-5l-4-3.4l5.2-.4z"),
)
DASHES = ("5 4", "none", "2 3", "9 3 2 3")


@dataclass(frozen=True)
class Style:
    """How the points of one group, or of one dataset, look.

    Attributes
    ----------
    colour : str
        The name of a colour: "c0" to "c6", or "grey".
    shape : Shape
    """

    colour: str
    shape: Shape

    @property
    def css(self) -> str:
        """The colour as the page names it."""
        return f"var(--{self.colour})"

    @property
    def on_white(self) -> str:
        """The colour as a number, for a white page."""
        return ON_WHITE[self.colour]


def group_styles(findings: Findings) -> tuple[Style, ...]:
    """Give each group of labels a colour and a shape; the group of all other labels is grey."""
    n_groups = len(findings.label_names)
    # When the colours start again, each has another shape.
    styles = [
        Style(f"c{index % N_COLOURS}", SHAPES[(index + 2 * (index // N_COLOURS)) % len(SHAPES)])
        for index in range(n_groups)
    ]
    return (*styles[:-1], Style("grey", SHAPES[0])) if findings.n_other_labels else tuple(styles)


def target_style() -> Style:
    """Give the style of a target without labels."""
    return Style("c0", SHAPES[0])


def background_style(number: int) -> Style:
    """Give the style of a background, counted from 0: faint, each with another shape."""
    return Style("grey", SHAPES[(0, 2, 1, 3, 4)[number % 5]])


def document(findings: Findings) -> dict[str, Any]:
    """Make the two plots, which share their points; give their document and where they go on the page."""
    from bokeh.document import Document
    from bokeh.models import ColumnDataSource

    doc = Document()
    sources = [
        ColumnDataSource(_columns(findings, index), name=f"points-{index}") for index in range(len(findings.datasets))
    ]
    roots = {}
    for place, title, x, y in (("plot-view", "view", "x", "y"), ("plot-pca", "pca", "px", "py"))[: n_views(findings)]:
        figure = _figure(findings, sources, title, x, y)
        doc.add_root(figure)
        roots[figure.id] = place
    known: dict[str, str] = {}
    return {
        "document": _renumbered(doc.to_json(deferred=False), known),
        "roots": {known[identity]: place for identity, place in roots.items()},
        "colours": _colours(findings),
        "datasets": [shortened(part.name) for part in findings.datasets],
        "label": shortened(findings.label_name or "label"),
        "cells": _cells(findings),
        "images": _images(findings),
        "axes": {place: _axis_labels(findings, place.removeprefix("plot-")) for place in roots.values()},
    }


def _cells(findings: Findings) -> dict[str, Any] | None:
    """Give the values of the target's drawn rows in some columns, and the names of these."""
    if findings.cell_columns is None or findings.target.cells is None:
        return None
    names = [shortened(findings.features[column], 60) for column in findings.cell_columns.tolist()]
    return {"names": names, "values": base64.b64encode(findings.target.cells.tobytes()).decode()}


def _images(findings: Findings) -> dict[str, Any] | None:
    """Give the first of the target's drawn rows as grey images."""
    if findings.image_shape is None or findings.target.images is None:
        return None
    height, width = findings.image_shape
    return {"height": height, "width": width, "grey": base64.b64encode(findings.target.images.tobytes()).decode()}


def _renumbered(part: Any, known: dict[str, str]) -> Any:
    """Number Bokeh's objects from 1: its own numbers go on from page to page, but equal findings give equal pages."""
    if isinstance(part, dict):
        return {
            key: known.setdefault(value, f"p{len(known) + 1}")
            if key == "id" and isinstance(value, str)
            else _renumbered(value, known)
            for key, value in part.items()
        }
    return [_renumbered(each, known) for each in part] if isinstance(part, list) else part


def n_views(findings: Findings) -> int:
    """Give the number of views: PCA alone is not drawn twice."""
    return 1 if findings.method == "PCA" else 2


def bounds_of(parts: list[Single]) -> list[float]:
    """Choose what a plot shows: all points of the target, and nearly all of each background."""
    target, *backgrounds = parts
    lows, highs = [target.min(axis=0)], [target.max(axis=0)]
    for part in backgrounds:
        lows.append(np.quantile(part, BACKGROUND_TAIL, axis=0))
        highs.append(np.quantile(part, 1.0 - BACKGROUND_TAIL, axis=0))
    low, high = np.min(lows, axis=0).astype(float), np.max(highs, axis=0).astype(float)
    margin = np.where(high > low, 0.06 * (high - low), np.maximum(np.abs(low), 1.0) * 0.1)
    return [float(bound) for pair in zip(low - margin, high + margin, strict=True) for bound in pair]


def ordinary_planes(findings: Findings, title: str) -> list[Single]:
    """Give the points of each dataset in a view; with robust weights, as far as they are not far outside.

    Rows that are out of place would press all others together.
    """
    planes = [plane(part.scores if title == "view" else part.pca_scores) for part in findings.datasets]
    return planes if findings.strays is None else [_near(view) for view in planes]


def _near(view: Single) -> Single:
    low, high = np.quantile(view, [0.25, 0.75], axis=0)
    reach = REACH * (high - low)
    near = np.all((view >= low - reach) & (view <= high + reach), axis=1)
    return view[near] if near.any() else view


def _columns(findings: Findings, index: int) -> dict[str, Any]:
    points = findings.datasets[index]
    own, pca = plane(points.scores), plane(points.pca_scores)
    columns: dict[str, Any] = {
        "x": own[:, 0].copy(),
        "y": own[:, 1].copy(),
        "px": pca[:, 0].copy(),
        "py": pca[:, 1].copy(),
        "row": points.rows.astype(np.int32),
    }
    if points.scores.shape[1] > 2:
        columns |= {f"s{k + 1}": column.copy() for k, column in enumerate(points.scores.T)}
    if points.fitted_scores is not None:
        columns |= {f"f{k + 1}": column.copy() for k, column in enumerate(points.fitted_scores.T)}
    if points.ids is not None:
        columns["id"] = [shortened(identity, 80) for identity in points.ids]
    if points.labels is not None:
        columns["label"] = [shortened(label, 80) for label in points.labels]
    if points.groups is not None:
        columns["group"] = [str(group) for group in points.groups.tolist()]
    if points.values is not None:
        columns["value"] = points.values.astype(np.float32)
    if points.outlying is not None and points.row_weights is not None:
        # Rings are drawn around these rows. Those of other rows have no size.
        columns["ring"] = np.where(points.outlying > 0, 13.0, 0.0).astype(np.float32)
        columns["weight"] = [number(float(weight)) for weight in points.row_weights.tolist()]
    return columns


def _figure(findings: Findings, sources: list[Any], title: str, x: str, y: str) -> Any:
    from bokeh.models import HoverTool, Range1d
    from bokeh.plotting import figure

    x_low, x_high, y_low, y_high = bounds_of(ordinary_planes(findings, title))
    plot: Any = figure(
        name=title,
        sizing_mode="stretch_both",
        min_border=8,
        x_range=Range1d(start=x_low, end=x_high),
        y_range=Range1d(start=y_low, end=y_high),
        tools="box_select,lasso_select,pan,wheel_zoom,tap,reset",
        active_drag="box_select",
        toolbar_location="above",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        lod_threshold=None,
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.xaxis.axis_label, plot.yaxis.axis_label = _axis_labels(findings, title)
    plot.axis.minor_tick_line_color = None
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_font = plot.axis.major_label_text_font = "system-ui, sans-serif"
    plot.axis.axis_label_text_font_size = plot.axis.major_label_text_font_size = "12px"
    hovered: list[Any] = []
    for index in range(1, len(sources)):
        faint = plot.scatter(
            x,
            y,
            source=sources[index],
            name=f"background-{index}",
            size=5,
            marker=background_style(index - 1).shape.bokeh,
            color=background_style(index - 1).on_white,
            alpha=0.3,
            nonselection_alpha=0.08,
            line_color=None,
        )
        hovered.append(faint)
    clear = plot.scatter(
        x, y, source=sources[0], name="target", size=7, hover_line_width=2, **_looks(findings), **_selection()
    )
    for index, points in enumerate(findings.datasets):
        if points.outlying is not None and points.outlying.any():
            ring = {"fill_color": None, "line_color": RING, "line_alpha": 0.9}
            plot.scatter(x, y, source=sources[index], name="ring", size="ring", marker="circle", **ring)
    # The page's own script shows, as text, what is under the pointer: some versions of Bokeh do not escape names.
    plot.add_tools(HoverTool(renderers=[*hovered, clear], tooltips=None, visible=False))
    return plot


def _selection() -> dict[str, Any]:
    return {
        "alpha": 0.75,
        "line_color": None,
        "nonselection_alpha": 0.12,
        "nonselection_line_color": None,
        "selection_line_color": None,
        "hover_alpha": 1.0,
    }


def _looks(findings: Findings) -> dict[str, Any]:
    """Colours and shapes of the target's points."""
    from bokeh.palettes import Cividis256
    from bokeh.transform import factor_cmap, factor_mark, linear_cmap

    if findings.target.values is not None:
        low, high = scale_limits(findings.target.values)
        colour = linear_cmap(
            "value", list(Cividis256[:: 256 // SCALE_COLOURS]), low, high, nan_color=background_style(0).on_white
        )
        return {"marker": "circle", "fill_color": colour, "hover_fill_color": colour}
    styles = styles_of(findings)
    if findings.target.groups is None:
        return {
            "marker": styles[0].shape.bokeh,
            "fill_color": styles[0].on_white,
            "hover_fill_color": styles[0].on_white,
        }
    numbers = [str(index) for index in range(len(styles))]
    colour = factor_cmap("group", [style.on_white for style in styles], numbers)
    marker = factor_mark("group", [style.shape.bokeh for style in styles], numbers)
    return {"marker": marker, "fill_color": colour, "hover_fill_color": colour}


def scale_limits(values: Float) -> tuple[float, float]:
    """Choose the ends of a scale of colours: a few far-off values must not make all others look alike."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [0.01, 0.99])
    return float(low), float(high if high > low else low + 1.0)


def _colours(findings: Findings) -> list[str]:
    """Give the names of the target's colours, which the page's script looks up."""
    return [] if findings.target.values is not None else [style.colour for style in styles_of(findings)]


def _axis_labels(findings: Findings, title: str) -> tuple[str, str]:
    what, columns = ("component", findings.n_shown_components) if title == "view" else ("PCA", 0)
    if title == "pca":
        columns = findings.target.pca_scores.shape[1]
    return f"{what} 1", f"{what} 2" if columns > 1 else "(spread at random)"


# --- the legend ------------------------------------------------------------------------------------------------------


def styles_of(findings: Findings) -> tuple[Style, ...]:
    """Give the styles of the target's points: one for each group of labels, or one for all."""
    return group_styles(findings) if findings.target.groups is not None else (target_style(),)


def scale_ends(findings: Findings) -> tuple[str, str] | None:
    """Give the ends of the scale of colours, if labels are numbers on a scale."""
    if findings.target.values is None:
        return None
    low, high = scale_limits(findings.target.values)
    return number(low), number(high)
