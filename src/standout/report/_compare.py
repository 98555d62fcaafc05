"""Several methods on the same data, side by side on one page that needs no script."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from standout.report._colours import SHAPES, Style, background_style, group_styles, target_style
from standout.report._findings import Findings, Single, plane
from standout.report._html import name, sentence, text, tip
from standout.report._page import _static
from standout.report._scatter import bounds_of
from standout.report._sentences import headline
from standout.report._wording import counted, isolated, percent

# Points of a panel: more would only hide each other.
MOST_POINTS = 1500
SIZE = 320

GRID = """
.views { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); gap: 28px; }
.views svg { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 12px; background: var(--paper); }
.views p { margin: 6px 0 0; color: var(--soft); font-size: .925rem; }
.key { display: flex; flex-wrap: wrap; gap: 6px 18px; margin: 0 0 22px; padding: 0; list-style: none; }
.key svg { width: 12px; height: 12px; margin-right: 6px; }
figure { margin: 0; }
"""


def compare(views: Sequence[Findings], names: Names = PYTHON) -> str:
    """What does each method show of the same data?

    Parameters
    ----------
    views : sequence of Findings
        What `examine` found for each method, on the same target.

    Returns
    -------
    str
        One self-contained HTML text: a panel for each method with the target in its first two components, the
        backgrounds as a faint layer, and what came out in a sentence.

    Examples
    --------
    >>> from standout import ContrastivePCA, DiscriminativePCA
    >>> from standout.datasets import make_digits_over_photographs
    >>> from standout.report import compare, examine
    >>> images = make_digits_over_photographs()
    >>> target, backgrounds = images.target, images.backgrounds
    >>> models = [method().fit(target, background=backgrounds) for method in (ContrastivePCA, DiscriminativePCA)]
    >>> html = compare([examine(model, target, backgrounds, with_path=False) for model in models])
    >>> html.count("<figure>")
    2
    """
    first = views[0].target
    what = f"What each method shows of {first.name}"
    panels = "".join(_panel(findings) for findings in views)
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(what)}</title><style>{_static('page.css')}{GRID}</style></head><body>",
            '<div class="top"><span class="brand">standout</span></div><main>',
            f'<div class="opening"><h1>What each method shows of {name(first.name)}</h1>',
            f'<p class="asked">{sentence(_data(views))}</p></div>{_shapes()}{_key(_fullest(views))}',
            f'<div class="views">{panels}</div></main></body></html>\n',
        ]
    )


def _fullest(views: Sequence[Findings]) -> Findings:
    """Give a view with all datasets: PCA has the target only."""
    return max(views, key=lambda findings: len(findings.datasets))


def _data(views: Sequence[Findings]) -> str:
    fullest = _fullest(views)
    rows = ", ".join(f"{isolated(part.name)}: {counted(part.n_rows, 'row')}" for part in fullest.datasets)
    labels = " Labels are for colours and for judging: no method sees them." if fullest.label_names else ""
    return (
        f"{rows}; {counted(len(fullest.features), 'column')}. All methods were given the same data.{labels} "
        "Component 1 goes across, component 2 upwards."
    )


def _shapes() -> str:
    """Define each marker once, small and centred, to be used for every point."""
    symbols = "".join(
        f'<path id="{shape.bokeh}" d="{shape.outline}" transform="scale(.38) translate(-8 -8)"/>' for shape in SHAPES
    )
    return f'<svg width="0" height="0" style="position:absolute"><defs>{symbols}</defs></svg>'


def _key(findings: Findings) -> str:
    names = [*(findings.label_names or (findings.target.name,)), *(part.name for part in findings.backgrounds)]
    styles = [*_styles(findings), *(background_style(k) for k in range(len(findings.backgrounds)))]
    items = [
        f'<li><svg viewBox="0 0 16 16"><path d="{style.shape.outline}" style="fill:{style.css}"/></svg>'
        f"{name(label)}</li>"
        for label, style in zip(names, styles, strict=True)
    ]
    return f'<ul class="key">{"".join(items)}</ul>'


def _panel(findings: Findings) -> str:
    error = findings.clustering_error
    judged = ""
    if error is not None:
        shown = tip(
            f"{percent(error)} grouped wrongly",
            "Share of the target's rows that K-means on these two components puts into the wrong group.",
        )
        judged = f"<p>{shown}</p>"
    # The first of the choices is that of the parameter by which the background counts.
    chosen = f"<p>{sentence(findings.choices[0])}</p>" if findings.backgrounds else ""
    return (
        f"<figure><h2>{text(findings.method)}</h2>{_svg(findings)}"
        f"<figcaption>{judged}<p>{sentence(headline(findings))}</p>{chosen}</figcaption></figure>"
    )


def _svg(findings: Findings) -> str:
    planes = [plane(part.scores) for part in findings.datasets]
    bounds = bounds_of(planes)
    drawn = [_points(view, bounds, background_style(k), 0.25) for k, view in enumerate(planes[1:])]
    drawn += [
        _points(planes[0][rows], bounds, style, 0.7)
        for rows, style in zip(_groups(findings), _styles(findings), strict=True)
    ]
    words = f"The target in the first two components of {findings.method}"
    return f'<svg viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{text(words)}">{"".join(drawn)}</svg>'


def _styles(findings: Findings) -> tuple[Style, ...]:
    return group_styles(findings.label_names) if findings.target.groups is not None else (target_style(),)


def _groups(findings: Findings) -> list[np.ndarray]:
    target = findings.target
    if target.groups is None:
        return [np.arange(len(target.scores))]
    return [np.flatnonzero(target.groups == group) for group in range(len(findings.label_names))]


def _points(view: Single, bounds: Sequence[float], style: Style, opacity: float) -> str:
    low_x, high_x, low_y, high_y = bounds
    some = view[:: max(len(view) // MOST_POINTS, 1)]
    x = (some[:, 0] - low_x) / (high_x - low_x) * SIZE
    y = (high_y - some[:, 1]) / (high_y - low_y) * SIZE
    marks = "".join(f'<use href="#{style.shape.bokeh}" x="{a:.1f}" y="{b:.1f}"/>' for a, b in zip(x, y, strict=True))
    return f'<g style="fill:{style.css};opacity:{opacity}">{marks}</g>'
