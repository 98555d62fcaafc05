"""The two linked scatter plots as a Bokeh document, the colours and shapes of points, and the legend.

The document is written as Bokeh's script reads it: JSON. Bokeh's Python classes would write the same, but loading
them takes longer than all the rest of the page. A test lets these classes read and check the document.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from standout._arrays import Float
from standout.plots import COLOURS
from standout.report._findings import Findings, Single, plane
from standout.report._format import number, shortened
from standout.report._strays import ordinary_range

# Names of the page's colours, which are lighter on a dark page, and their values on white.
ON_WHITE = {**{f"c{index}": colour for index, colour in enumerate(COLOURS)}, "grey": "#7b838c"}
N_COLOURS = len(COLOURS)
# From dark blue to yellow in order of lightness, for colour-blind eyes as well.
SCALE_COLOURS = 64
# The colour of rings around rows that count less, on white. The page's script takes that of its text.
RING = "#1c2126"
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
    import bokeh

    models = _Models()
    sources = [
        models.make("ColumnDataSource", name=f"points-{index}", data=_columns(findings, index))
        for index in range(len(findings.datasets))
    ]
    places = (("plot-view", "view", "x", "y"), ("plot-pca", "pca", "px", "py"))[: n_views(findings)]
    figures = [_figure(models, findings, sources, title, x, y) for _, title, x, y in places]
    return {
        "document": {
            "version": bokeh.__version__,
            "title": "standout",
            "roots": models.written(figures),
        },
        "roots": {figure.id: place for figure, (place, *_) in zip(figures, places, strict=True)},
        "colours": _colours(findings),
        "datasets": [shortened(part.name) for part in findings.datasets],
        "label": shortened(findings.label_name or "label"),
        "cells": _cells(findings),
        "images": _images(findings),
        "axes": {place: _axis_labels(findings, title) for place, title, *_ in places},
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
    low, high = ordinary_range(view)
    near = np.all((view >= low) & (view <= high), axis=1)
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


# --- Bokeh's models ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Model:
    """An object of Bokeh's script: its class, its number in the document, and its properties."""

    kind: str
    id: str
    properties: dict[str, Any]


@dataclass(frozen=True)
class _Field:
    """A column of the points that decides a property, as it is or through a mapper (of groups to colours, say)."""

    column: str
    mapper: _Model | None = None


class _Models:
    """Makes Bokeh's models, numbered from 1 so that equal findings give equal pages, and writes them as JSON."""

    def __init__(self) -> None:
        from bokeh.core.serialization import Serializer

        # Versions of Bokeh differ in how they write arrays.
        self._serializer = Serializer(deferred=False)
        self._n_made = 0
        self._written: set[str] = set()

    def make(self, kind: str, /, **properties: Any) -> _Model:
        """Make a model; properties that are not given have the values that Bokeh's script gives them."""
        self._n_made += 1
        return _Model(kind, f"p{self._n_made}", properties)

    def written(self, part: Any) -> Any:
        """Write a part of a document. A model is written where it is met first, and is referred to later."""
        if isinstance(part, _Model):
            if part.id in self._written:
                return {"id": part.id}
            self._written.add(part.id)
            of_points = part.kind == "Scatter"
            properties = {
                key: {"type": "value", "value": value}
                if of_points and not isinstance(value, _Field)
                else self.written(value)
                for key, value in part.properties.items()
            }
            return {"type": "object", "name": part.kind, "id": part.id, "attributes": properties}
        if isinstance(part, _Field):
            mapper = {} if part.mapper is None else {"transform": self.written(part.mapper)}
            return {"type": "field", "field": part.column, **mapper}
        return [self.written(each) for each in part] if isinstance(part, list) else self._serializer.encode(part)


def _figure(models: _Models, findings: Findings, sources: list[_Model], title: str, x: str, y: str) -> _Model:
    x_low, x_high, y_low, y_high = bounds_of(ordinary_planes(findings, title))
    across, up = _axis_labels(findings, title)
    below, left = _axis(models, across), _axis(models, up)
    place = {"x": _Field(x), "y": _Field(y)}
    points = [
        *(_background(models, index, source, place) for index, source in enumerate(sources[1:], 1)),
        _target(models, findings, sources[0], place),
    ]
    rings = [
        _ring(models, source, place)
        for source, part in zip(sources, findings.datasets, strict=True)
        if part.outlying is not None and part.outlying.any()
    ]
    box = models.make("BoxSelectTool")
    others = [models.make(f"{name}Tool") for name in ("LassoSelect", "Pan", "WheelZoom", "Tap", "Reset")]
    # The page's own script shows, as text, what is under the pointer: some versions of Bokeh do not escape names.
    hover = models.make("HoverTool", renderers=points, tooltips=None, visible=False)
    return models.make(
        "Figure",
        name=title,
        sizing_mode="stretch_both",
        min_border=8,
        x_range=models.make("Range1d", start=x_low, end=x_high),
        y_range=models.make("Range1d", start=y_low, end=y_high),
        x_scale=models.make("LinearScale"),
        y_scale=models.make("LinearScale"),
        renderers=[*points, *rings],
        toolbar=models.make("Toolbar", tools=[box, *others, hover], active_drag=box, logo=None, autohide=True),
        toolbar_location="above",
        left=[left],
        below=[below],
        center=[models.make("Grid", axis=below), models.make("Grid", dimension=1, axis=left)],
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        lod_threshold=None,
    )


def _axis(models: _Models, label: str) -> _Model:
    font = {"text_font": "system-ui, sans-serif", "text_font_size": "12px"}
    return models.make(
        "LinearAxis",
        ticker=models.make("BasicTicker", mantissas=[1, 2, 5]),
        formatter=models.make("BasicTickFormatter"),
        minor_tick_line_color=None,
        axis_label=label,
        axis_label_text_font_style="normal",
        **{f"{part}_label_{key}": value for part in ("axis", "major") for key, value in font.items()},
    )


def _background(models: _Models, number: int, source: _Model, place: dict[str, Any]) -> _Model:
    style = background_style(number - 1)
    looks = {"size": 5, "marker": style.shape.bokeh, "fill_color": style.on_white, "line_color": None}
    return models.make(
        "GlyphRenderer",
        name=f"background-{number}",
        data_source=source,
        glyph=models.make("Scatter", **place, **looks, fill_alpha=0.3),
        nonselection_glyph=models.make("Scatter", **place, **looks, fill_alpha=0.08),
    )


def _target(models: _Models, findings: Findings, source: _Model, place: dict[str, Any]) -> _Model:
    looks = {"size": 7, "line_color": None, **_looks(models, findings)}
    return models.make(
        "GlyphRenderer",
        name="target",
        data_source=source,
        glyph=models.make("Scatter", **place, **looks, fill_alpha=0.75),
        selection_glyph=models.make("Scatter", **place, **looks, fill_alpha=0.75),
        nonselection_glyph=models.make("Scatter", **place, **looks, fill_alpha=0.12),
        hover_glyph=models.make("Scatter", **place, **looks, line_width=2),
    )


def _ring(models: _Models, source: _Model, place: dict[str, Any]) -> _Model:
    looks = {"size": _Field("ring"), "marker": "circle", "fill_color": None, "line_color": RING}
    return models.make(
        "GlyphRenderer",
        name="ring",
        data_source=source,
        glyph=models.make("Scatter", **place, **looks, line_alpha=0.9),
        nonselection_glyph=models.make("Scatter", **place, **looks, line_alpha=0.1),
    )


def _looks(models: _Models, findings: Findings) -> dict[str, Any]:
    """Colours and shapes of the target's points."""
    if findings.target.values is not None:
        from bokeh.palettes import Cividis256

        low, high = scale_limits(findings.target.values)
        palette = list(Cividis256[:: 256 // SCALE_COLOURS])
        unknown = background_style(0).on_white
        scale = models.make("LinearColorMapper", palette=palette, low=low, high=high, nan_color=unknown)
        return {"marker": "circle", "fill_color": _Field("value", scale)}
    styles = styles_of(findings)
    if findings.target.groups is None:
        return {"marker": styles[0].shape.bokeh, "fill_color": styles[0].on_white}
    groups = [str(index) for index in range(len(styles))]
    colours, shapes = [style.on_white for style in styles], [style.shape.bokeh for style in styles]
    return {
        "marker": _Field("group", models.make("CategoricalMarkerMapper", factors=groups, markers=shapes)),
        "fill_color": _Field("group", models.make("CategoricalColorMapper", factors=groups, palette=colours)),
    }


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
