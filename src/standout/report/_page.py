"""The page of a fit, and the page that compares several: each is one HTML text that loads nothing.

The templates in ``static`` are filled in with escaping: names from the data are text, whatever they contain.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from standout._messages import PYTHON, Names, require_extra
from standout.report._charts import (
    MOST_SHOWN,
    distribution,
    feature_bars,
    feature_table,
    fitted_values,
    has_group_lines,
    is_real,
    pattern_images,
    pattern_lines,
    slider,
    slider_views,
    strengths,
)
from standout.report._findings import Findings, Single, Stray, plane, require_findings
from standout.report._format import (
    ISOLATE,
    RELEASE,
    brief,
    counted,
    harmless,
    percent,
    phrased,
    plain,
    shortened,
    whole,
)
from standout.report._scatter import (
    SHAPES,
    Style,
    background_style,
    bounds_of,
    document,
    n_views,
    ordinary_planes,
    scale_ends,
    styles_of,
)
from standout.report._sentences import (
    assignments,
    grouping,
    headline,
    headline_parts,
    held_out_drawing,
    key_numbers,
    question,
    sampling,
    title,
)

# Points of a panel that compares methods: more would only hide each other.
MOST_POINTS = 1500
PANEL_SIZE = 320
# Smaller weights are not told apart.
LEAST_WEIGHT = 0.001


def page(findings: Findings, names: Names = PYTHON) -> str:
    """What did the fit find, on one page that explains itself?

    The page is one self-contained HTML text: it works offline, on a phone, printed, and in dark and light, and loads
    nothing. Points can be hovered over and selected in two linked views, and a slider moves along the method's
    parameter. Names from the data are shown as text, whatever they contain.

    Parameters
    ----------
    findings : Findings
        From `examine`, or `restore`.
    names : Names, optional
        How parameters are named: as in Python, or as options of the command line.

    Returns
    -------
    str
        Write it to a file whose name ends in ``.html``, in UTF-8.

    Examples
    --------
    >>> from standout import DiscriminativePCA
    >>> from standout.datasets import make_digits_over_photographs
    >>> from standout.report import examine, page
    >>> images = make_digits_over_photographs()
    >>> model = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)
    >>> html = page(examine(model, images.target, images.backgrounds, labels=images.labels))
    >>> html.startswith("<!doctype html>")
    True
    >>> len(html.encode()) < 3_000_000
    True
    """
    require_findings(findings)
    require_extra("bokeh", "report", "the report")
    scripts = [_bokeh_script(), _static("page.js")]
    return _filled_in(
        "page.html.j2",
        findings=findings,
        # Should a name from the data ever get past the escaping, it could still not run or load anything: the page
        # allows no scripts except for these two, which are known by their hashes.
        hashes=[base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts],
        scripts=[_as_it_is(script) for script in scripts],
        title=title(findings),
        headline=headline_parts(findings),
        question=question(findings),
        key_numbers=key_numbers(findings),
        cautions=[phrased(message, names) for message in findings.cautions],
        choices=[phrased(message, names) for message in findings.choices],
        sampling=sampling(findings),
        held_out_drawing=held_out_drawing(findings),
        grouping=grouping(findings),
        p_values_from=None if findings.test is None else assignments(findings.test),
        fitted=fitted_values(findings),
        n_views=n_views(findings),
        styles=styles_of(findings),
        scale_ends=scale_ends(findings),
        background_styles=[background_style(number) for number in range(len(findings.backgrounds))],
        slider=slider(findings),
        strengths=strengths(findings),
        feature_bars=feature_bars(findings),
        table=feature_table(findings),
        most_shown=MOST_SHOWN,
        images=pattern_images(findings),
        lines=pattern_lines(findings),
        real=[is_real(findings, k) for k in range(findings.n_shown_components)],
        group_lines=has_group_lines(findings),
        strays=[(findings.datasets[stray.dataset].name, stray, _weight(stray)) for stray in findings.strays or ()],
        distributions=[distribution(findings, k) for k in range(findings.n_shown_components)],
        data={**document(findings), "views": slider_views(findings)},
    )


def _weight(stray: Stray) -> str:
    return brief(stray.weight) if stray.weight >= LEAST_WEIGHT else f"< {LEAST_WEIGHT}"


def compare(views: Sequence[Findings], names: Names = PYTHON) -> str:
    """What does each method show of the same data?

    Parameters
    ----------
    views : sequence of Findings
        What `examine` found for each method, on the same target.
    names : Names, optional
        How parameters are named: as in Python, or as options of the command line.

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
    for view in views if isinstance(views, Sequence) else [views]:
        require_findings(view)
    require_extra("jinja2", "report", "the page")
    # PCA has the target only.
    fullest = max(views, key=lambda findings: len(findings.datasets))
    backgrounds = [(part.name, background_style(k)) for k, part in enumerate(fullest.backgrounds)]
    labels = fullest.label_names or (fullest.target.name,)
    return _filled_in(
        "compare.html.j2",
        fullest=fullest,
        shapes=SHAPES,
        key=[*zip(labels, styles_of(fullest), strict=True), *backgrounds],
        panels=[_panel(findings, names) for findings in views],
    )


def _panel(findings: Findings, names: Names) -> dict[str, Any]:
    planes = [plane(part.scores) for part in findings.datasets]
    bounds = bounds_of(ordinary_planes(findings, "view"))
    points = [_points(view, bounds, background_style(k), 0.25) for k, view in enumerate(planes[1:])]
    groups = findings.target.groups
    for number, style in enumerate(styles_of(findings)):
        rows = slice(None) if groups is None else groups == number
        points.append(_points(planes[0][rows], bounds, style, 0.7))
    return {
        "method": findings.method,
        "error": findings.clustering_error,
        "headline": headline(findings),
        "choices": [phrased(choice, names) for choice in findings.choices if choice.facts.get("kind") == "parameter"],
        "points": points,
    }


def _points(view: Single, bounds: Sequence[float], style: Style, opacity: float) -> dict[str, Any]:
    low_x, high_x, low_y, high_y = bounds
    some = view[:: max(len(view) // MOST_POINTS, 1)]
    x = (some[:, 0] - low_x) / (high_x - low_x) * PANEL_SIZE
    y = (high_y - some[:, 1]) / (high_y - low_y) * PANEL_SIZE
    return {"style": style, "opacity": opacity, "places": [(f"{a:.1f}", f"{b:.1f}") for a, b in zip(x, y, strict=True)]}


# --- templates -------------------------------------------------------------------------------------------------------


def _filled_in(template: str, **fields: Any) -> str:
    html: str = _environment().get_template(template).render(css=_as_it_is(stylesheet()), **fields)
    return html


@cache
def _environment() -> Any:
    """Set up the templates: all that is inserted is escaped, and shows what could turn a sentence around."""
    from jinja2 import Environment, FunctionLoader

    environment = Environment(
        loader=FunctionLoader(_static),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: value if hasattr(value, "__html__") else harmless(str(value)),
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters.update(
        name=_name,
        sentence=_sentence,
        plain=plain,
        shortened=shortened,
        whole=lambda count: whole(int(count)),
        counted=counted,
        percent=percent,
    )
    return environment


def _sentence(text: str) -> Any:
    """Escape a sentence in which names are marked as `isolated`. No name can end its mark."""
    from markupsafe import escape

    parts = [escape(harmless(part)) for part in re.split(f"[{ISOLATE}{RELEASE}]", text)]
    return _as_it_is("".join(f"<bdi>{part}</bdi>" if number % 2 else part for number, part in enumerate(parts)))


def _name(text: str, most: int = 40) -> Any:
    """Show a name, cut if it is long, with the whole of it as its tooltip."""
    from markupsafe import escape

    short = shortened(text, most)
    full = "" if short == " ".join(text.split()) else f' title="{escape(shortened(text, 400))}"'
    return _as_it_is(f"<bdi{full}>{escape(short)}</bdi>")


def _as_it_is(text: str) -> Any:
    """Mark text as HTML that is not escaped again."""
    from markupsafe import Markup

    return Markup(text)


def _bokeh_script() -> str:
    """Read the core of Bokeh's script: sliders and tables of the page are plain HTML."""
    import bokeh

    found: Any = resources.files(bokeh) / "server" / "static" / "js" / "bokeh.min.js"
    script: str = found.read_text(encoding="utf-8")
    return script


def stylesheet() -> str:
    """Give the look of the page."""
    return _static("page.css")


def _static(file: str) -> str:
    return (resources.files("standout.report") / "static" / file).read_text(encoding="utf-8")
