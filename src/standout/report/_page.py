"""The findings dict as a page, as sentences and as a picture. Nothing else is needed: no model, no data."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._messages import require_extra
from standout.report._words import brief, environment, number, shortened, static

Found = Mapping[str, Any]
# The frame of the path chart, as in charts.j2.
LEFT, RIGHT, TOP, BOTTOM = 56.0, 630.0, 10.0, 350.0
MOST_SPREADS = 3
PARAMETERS = {"shrinkage": "shrinkage", "alpha": "α", "epsilon": "ε"}


def page(found: Found) -> str:
    """What did the fit find, on one page that explains itself?

    The page is one HTML file that works offline and loads nothing. Names from the data are shown as text, whatever
    they contain.

    Parameters
    ----------
    found : dict
        From `findings`, also after a journey through JSON.

    Returns
    -------
    str
        Write it to a file whose name ends in ``.html``, in UTF-8.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import page, report
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(300, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(200, 4)) * [10, 1, 1, 3]
    >>> model = DiscriminativePCA().fit(target, background=background)
    >>> made = report(model, target, background=background, test=None)
    >>> page(made.findings).startswith("<!doctype html>")
    True
    """
    from markupsafe import Markup

    templates, script = environment(html=True), static("page.js")
    charts = templates.get_template("charts.j2").module
    chart = _path_chart(found)
    html: str = templates.get_template("page.html.j2").render(
        f=found,
        css=Markup(static("page.css")),
        script=Markup(script),
        # Should a name ever get past the escaping, it could still not run or load anything.
        hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        path_chart=None if chart is None else charts.path(chart),
        spreads=[charts.spread(each) for each in _spreads(found)],
        data=_data(found),
    )
    return html.lstrip()


def sentences(found: Found) -> list[str]:
    """What did the fit find, in a few sentences: the headline, then the cautions in order of weight.

    Parameters
    ----------
    found : dict
        From `findings`.

    Returns
    -------
    list of str
        Plain text.
    """
    told = (f"{caution['text']} {caution['advice']}".strip() for caution in found["cautions"])
    return [found["headline"], *told]


def _data(found: Found) -> dict[str, Any]:
    """Return what the script of the page draws."""
    drawn, labels = dict(found["drawn"]), found["labels"]
    if drawn["views"] is not None:
        places = _places(found["path"]) if found["path"] else None
        values = drawn["views"]["values"]
        drawn["views"] = {**drawn["views"], "places": [None if places is None else places(value) for value in values]}
    return {
        "drawn": drawn,
        "datasets": [shortened(part["name"]) for part in found["datasets"]],
        "labels": None
        if labels is None
        else {
            "kind": labels["kind"],
            "name": shortened(labels["name"]),
            "names": [shortened(name) for name in labels["names"]],
        },
        "images": found["images"],
    }


# --- charts ----------------------------------------------------------------------------------------------------------


def _places(path: Found) -> Any:
    """Return the function from a value of the path to its place across: on the logit scale for shrinkage, else log."""
    values = np.array(path["values"], dtype=np.float64)
    if path["parameter"] == "shrinkage":
        edge = 0.5 * min([value for value in (*values, *(1.0 - values)) if value > 0.0], default=0.5)

        def scaled(value: Any) -> Any:
            inside = np.clip(value, edge, 1.0 - edge)
            return np.log(inside / (1.0 - inside))
    else:
        least = 0.3 * min((value for value in values if value > 0.0), default=1.0)

        def scaled(value: Any) -> Any:
            return np.log(np.maximum(value, least))

    low, high = np.min(scaled(values)), np.max(scaled(values))
    inner = LEFT + 20.0, RIGHT - 20.0

    def place(value: float) -> float:
        share = np.clip((scaled(value) - low) / ((high - low) or 1.0), 0.0, 1.0)
        return round(float(inner[0] + share * (inner[1] - inner[0])), 1)

    return place


def _path_chart(found: Found) -> dict[str, Any] | None:
    """Return the places of the line, the band and the marks of the path."""
    path = found["path"]
    if path is None or len(path["values"]) < 2 or all(value is None for value in path["log_ratios"]):
        return None
    place = _places(path)
    known = [index for index, value in enumerate(path["log_ratios"]) if value is not None]
    logs = np.array([path["log_ratios"][index] for index in known])
    errors = np.array([path["errors"][index] or 0.0 for index in known])
    low, high = float(np.min(logs - errors)), float(np.max(logs + errors))
    margin = 0.06 * (high - low) or 0.1
    low, high = low - margin, high + margin

    def height(value: float) -> float:
        return round(BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP), 1)

    x = [place(path["values"][index]) for index in known]
    outline = list(zip(x, map(height, logs + errors), strict=True))
    outline += list(zip(x[::-1], map(height, (logs - errors)[::-1]), strict=True))
    best = path["best"]
    ratios = [round(float(np.exp(value)), 12) for value in np.linspace(low, high, 6)[1:-1]]
    ends = [path["values"][known[0]], path["value"], path["values"][known[-1]]]
    return {
        "name": PARAMETERS[path["parameter"]],
        "line": _points(zip(x, map(height, logs), strict=True)),
        "band": _points(outline),
        "chosen": (place(path["value"]), height(float(np.interp(place(path["value"]), *_ascending(x, logs))))),
        "best": None if best not in known else (place(path["values"][best]), height(path["log_ratios"][best])),
        "rows": [(height(float(np.log(ratio))), number(ratio, 2)) for ratio in ratios],
        "columns": _apart([(place(value), brief(value)) for value in dict.fromkeys(ends)]),
    }


def _apart(ticks: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Leave out the words of a tick that would overlap others."""
    first, *others = ticks
    kept = [first]
    for tick in sorted(others, reverse=True):
        if all(abs(tick[0] - other[0]) > 45.0 for other in kept):
            kept.append(tick)
    return kept


def _ascending(x: Sequence[float], y: Float) -> tuple[Float, Float]:
    order = np.argsort(x, kind="stable")
    return np.asarray(x)[order], y[order]


def _points(places: Any) -> str:
    return " ".join(f"{x},{y}" for x, y in places)


def _spreads(found: Found) -> list[dict[str, Any]]:
    """Return outlines of histograms of the scores that are drawn, one chart for each of the first components."""
    parts = found["drawn"]["points"]
    charts = []
    for k in range(min(found["drawn"]["n_components"], MOST_SPREADS)):
        scores = [np.array(part["scores"][k], dtype=np.float64) for part in parts]
        low, high = np.quantile(np.concatenate(scores), [0.005, 0.995])
        if not high > low:
            return []
        edges = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), 41)
        shares = [np.histogram(part, edges)[0] / max(len(part), 1) for part in scores]
        most = max(float(np.max(share)) for share in shares)
        outlines = [_outline(share / most) for share in shares]
        step = float(f"{(high - low) / 4.0:.0e}")
        marks = step * np.arange(np.ceil(edges[0] / step), np.floor(edges[-1] / step) + 1.0)
        ticks = [(round(480.0 * (mark - edges[0]) / (edges[-1] - edges[0]), 1), brief(mark)) for mark in marks.tolist()]
        charts.append({"target": outlines[0], "backgrounds": outlines[1:], "ticks": ticks})
    return charts


def _outline(heights: Float) -> str:
    """Return the outline of a histogram as an SVG path."""
    step = 480.0 / len(heights)
    tops = [f"V{145.0 - 135.0 * height:.1f}h{step:.1f}" for height in heights]
    return f"M0 145{''.join(tops)}V145"


# --- the picture -----------------------------------------------------------------------------------------------------


def figure(found: Found) -> bytes:
    """Return the view of the fit beside PCA's as a PNG picture, for a slide or a paper. Needs matplotlib.

    Parameters
    ----------
    found : dict
        From `findings`.

    Returns
    -------
    bytes
    """
    require_extra("matplotlib", "plots", "the picture")
    from matplotlib.figure import Figure

    from standout import plots

    both = bool(found["pca"]) and len(found["datasets"]) > 1
    drawing = Figure(figsize=(11 if both else 6, 5.2), layout="constrained", dpi=150)
    axes = drawing.subplots(1, 2 if both else 1, squeeze=False)[0]
    labels = found["labels"]
    marks = None
    if labels is not None:
        given = found["drawn"]["points"][0]["labels"]
        marks = [labels["names"][place] for place in given] if labels["kind"] == "words" else given
    names = [shortened(part["name"], 30) for part in found["datasets"]]
    for ax, view, title in zip(axes, ("scores", "pca"), (found["method"], "PCA"), strict=False):
        points = [np.array(part[view], dtype=np.float64).T for part in found["drawn"]["points"]]
        plots.scores(points[0], points[1:], labels=marks, names=names, ax=ax)
        one = found["components"][0] if view == "scores" else found["pca"]
        ratio = "" if one.get("ratio") is None else f": {number(one['ratio'])} times"
        ax.set_title(f"{title[0].upper()}{title[1:]}{ratio}")
    file = io.BytesIO()
    drawing.savefig(file, format="png")
    return file.getvalue()
