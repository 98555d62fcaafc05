"""The two linked scatter plots, as a Bokeh document, and the legend beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout._arrays import Float
from standout.report._colours import Style, background_style, group_styles, target_style
from standout.report._findings import Findings, Single, plane
from standout.report._html import name, tip
from standout.report._wording import number, shortened, whole

# Drawn from dark blue to yellow: in order of lightness, for colour-blind eyes as well.
SCALE_COLOURS = 64
# Share of a background's points at either end that may lie outside of the plot: the target decides what is seen.
BACKGROUND_TAIL = 0.01


def document(findings: Findings) -> dict[str, Any]:
    """Make the two plots, which share their points, and give their document and the places they go to."""
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
        "axes": {place: _axis_labels(findings, place.removeprefix("plot-")) for place in roots.values()},
    }


def _renumbered(part: Any, known: dict[str, str]) -> Any:
    """Count Bokeh's objects from 1 on: its own numbers go on from page to page, and equal findings give equal pages."""
    if isinstance(part, dict):
        return {
            key: known.setdefault(value, f"p{len(known) + 1}")
            if key == "id" and isinstance(value, str)
            else _renumbered(value, known)
            for key, value in part.items()
        }
    return [_renumbered(each, known) for each in part] if isinstance(part, list) else part


def n_views(findings: Findings) -> int:
    """Give the number of views: PCA beside PCA would be the same picture twice."""
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
    if points.ids is not None:
        columns["id"] = [shortened(identity, 80) for identity in points.ids]
    if points.labels is not None:
        columns["label"] = [shortened(label, 80) for label in points.labels]
    if points.groups is not None:
        columns["group"] = [str(group) for group in points.groups.tolist()]
    if points.values is not None:
        columns["value"] = points.values.astype(np.float32)
    return columns


def _figure(findings: Findings, sources: list[Any], title: str, x: str, y: str) -> Any:
    from bokeh.models import HoverTool, Range1d
    from bokeh.plotting import figure

    planes = [plane(part.scores if title == "view" else part.pca_scores) for part in findings.datasets]
    x_low, x_high, y_low, y_high = bounds_of(planes)
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
    # The page's own script says what the pointer is at, as text: not every version of Bokeh escapes what it shows.
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
    styles = group_styles(findings.label_names) or (target_style(),)
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
    """Choose the ends of a scale of colours: a few far-off values shall not make all others look alike."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [0.01, 0.99])
    return float(low), float(high if high > low else low + 1.0)


def _colours(findings: Findings) -> list[str]:
    """Give the names of the target's colours: the page's script looks up what they are, on white or on black."""
    if findings.target.values is not None:
        return []
    return [style.colour for style in group_styles(findings.label_names) or (target_style(),)]


def _axis_labels(findings: Findings, title: str) -> tuple[str, str]:
    what, columns = ("component", findings.n_shown_components) if title == "view" else ("PCA", 0)
    if title == "pca":
        columns = findings.target.pca_scores.shape[1]
    return f"{what} 1", f"{what} 2" if columns > 1 else "(spread at random)"


def legend(findings: Findings) -> str:
    """Show which colour and shape stands for what; a click on a group selects its points."""
    items = [
        *_target_items(findings),
        *(_background_item(findings, index) for index in range(len(findings.backgrounds))),
    ]
    return f'<div class="legend" role="group" aria-label="Legend">{"".join(items)}</div>'


def _target_items(findings: Findings) -> list[str]:
    target = findings.target
    if target.values is not None:
        low, high = scale_limits(target.values)
        ends = (
            tip(number(low), "Labels at or below this have the darkest colour."),
            tip(number(high), "Labels at or above this have the brightest colour."),
        )
        return [f'<span class="scale">{ends[0]}<i></i>{ends[1]}</span>']
    if target.groups is None:
        return [f'<span class="item">{swatch(target_style())}{name(target.name)}</span>']
    sizes = findings.label_counts[:, 0].sum(axis=1)
    return [
        f'<button type="button" class="item" data-group="{index}" aria-pressed="false" '
        f'title="{whole(int(sizes[index]))} rows of the target have this label. Click to select them.">'
        f"{swatch(style)}{name(label)} <small>{whole(int(sizes[index]))}</small></button>"
        for index, (label, style) in enumerate(
            zip(findings.label_names, group_styles(findings.label_names), strict=True)
        )
    ]


def _background_item(findings: Findings, index: int) -> str:
    part = findings.backgrounds[index]
    return (
        f'<button type="button" class="item" data-background="{index + 1}" aria-pressed="true" '
        f'title="This background has {whole(part.n_rows)} rows. Click to hide or show them.">'
        f"{swatch(background_style(index))}{name(part.name)} <small>{whole(part.n_rows)}</small></button>"
    )


def swatch(style: Style) -> str:
    """Draw a marker."""
    return (
        f'<svg class="swatch" viewBox="0 0 16 16" aria-hidden="true"><path fill="{style.css}" '
        f'd="{style.shape.outline}"/></svg>'
    )
