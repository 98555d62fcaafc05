"""Pictures that need no script, as numbers for the page's template: strengths, columns, distributions, the slider."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from math import log
from typing import Any

import numpy as np

from standout._arrays import Float
from standout.report._findings import Findings, Numbers, Single, ViewPath, plane
from standout.report._format import MINUS, brief, correlation, number, p_value, percent, shortened
from standout.report._scatter import DASHES, bounds_of, group_styles
from standout.report._sentences import (
    PARAMETERS,
    Explained,
    assignments,
    ends_of_path,
    fitted_value,
    ratio_meaning,
    step_of_path,
)

# Ratios that differ by more than this factor are drawn on a logarithmic scale.
WIDE = 30.0
WIDTH, HEIGHT = 480, 150
MOST_GROUP_LINES = 7
# Columns that are shown as bars and, by pattern and by filter, in the table; components for which they are shown.
BARS = 10
TABLE_ROWS = 20
MOST_SHOWN = 4
# Scores on the slider are kept as 16-bit numbers between the least and the largest of each view: finer than a pixel.
LEVELS = 2**16 - 1


def percent_of(share: float) -> str:
    """Write a share as CSS does."""
    return f"{100.0 * share:.2f}%"


# --- how strong each component is ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StrengthRow:
    """The strength of one component.

    Attributes
    ----------
    label : str
    is_real : bool
        Whether the component is not explained by chance, as far as was tested.
    width : str
        Of its bar.
    error : tuple of two str or None
        Where on the bar one standard error below and above is.
    cells : list of Explained or None
        Numbers beside the bar; None if one is not known.
    """

    label: str
    is_real: bool
    width: str
    error: tuple[str, str] | None
    cells: list[Explained | None]


def strengths(findings: Findings) -> dict[str, Any]:
    """Give the strength of each component: its ratio with the standard error, and its p-value; for PCA its variance."""
    values = findings.eigenvalues if findings.ratios is None else findings.ratios
    place, logarithmic = _scale(values, logarithmic=findings.ratios is not None)
    headings = [ratio_name(findings) if findings.backgrounds else "variance"]
    headings += ["p\N{NON-BREAKING HYPHEN}value"] if findings.test is not None else []
    return {
        "headings": headings,
        "rows": [_strength_row(findings, k, float(value), place) for k, value in enumerate(values)],
        "logarithmic": logarithmic,
        "one": percent_of(place(1.0)) if findings.ratios is not None else None,
    }


def ratio_name(findings: Findings) -> str:
    """Name the ratio by the rows that it is judged on."""
    return "ratio in the fitted rows" if findings.ratio_errors is None else "ratio"


def _scale(values: Float, *, logarithmic: bool) -> tuple[Callable[[float], float], bool]:
    """Give the place of a number from 0 to 1, and whether the scale is logarithmic."""
    finite = values[np.isfinite(values) & (values > 0.0)]
    least, largest = (float(finite.min()), float(finite.max())) if finite.size else (1.0, 1.0)
    if logarithmic and largest > WIDE * least:
        low, high = log(min(least, 1.0)) - 0.5, log(largest) + 0.2
        return lambda value: _within((log(value) - low) / (high - low)) if value > 0.0 else 0.0, True
    most = 1.25 * max(largest, 1.0 if logarithmic else 0.0)
    return lambda value: _within(value / most), False


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def is_real(findings: Findings, k: int) -> bool:
    """Tell whether a component is not explained by chance, as far as was tested."""
    test = findings.test
    return test is None or k >= len(test.p_values) or bool(test.p_values[k] <= test.level)


def _strength_row(findings: Findings, k: int, value: float, place: Callable[[float], float]) -> StrengthRow:
    test, error, shown = findings.test, None, number(value)
    if findings.ratio_errors is not None and np.isfinite(findings.ratio_errors[k]):
        size = float(findings.ratio_errors[k])
        error = percent_of(place(value - size)), percent_of(1.0 - place(value + size))
        shown = f"{shown} ± {number(size, 2)}"
    cells: list[Explained | None] = [Explained(shown, _value_meaning(findings, k, value))]
    if test is not None and k < len(test.p_values):
        chance = float(test.p_values[k])
        small = "small enough to call it real" if is_real(findings, k) else "too large to call it real"
        meaning = (
            f"Chance of component {k + 1} if there is nothing more to be found, by {assignments(test, k)}. This is "
            f"{small}."
        )
        cells.append(Explained(p_value(chance), meaning))
    elif test is not None:
        cells.append(None)
    label = f"component {k + 1}"
    return StrengthRow(label, is_real(findings, k), percent_of(place(value)), error, cells)


def _value_meaning(findings: Findings, k: int, value: float) -> str:
    if findings.ratios is not None:
        return ratio_meaning(findings, k)
    share = ""
    if findings.total_variance > 0.0 and findings.method == "PCA":
        share = f", which is {percent(value / findings.total_variance)} of its variance in all columns"
    return f"Variance of the target along component {k + 1}{share}."


def fitted_values(findings: Findings) -> dict[str, Any]:
    """Give what the fit has maximised, also for the components after those that were kept, and what chance gives."""
    name, test = fitted_value(findings), findings.test
    tested = test is not None and test.method != "analytic"
    headings = [name, "chance gives up to"] if tested else [name]
    rows = []
    for k, value in enumerate(findings.scree):
        meaning = f"What the fit has maximised, for component {k + 1}. It is taken over the fitted rows"
        regular = findings.maximises_ratio and findings.backgrounds
        meaning += ", and the background is regularised." if regular else "."
        cells: list[Explained | None] = [Explained(number(float(value)), meaning)]
        if tested and test is not None:
            limit = f"Chance alone would give a larger one in {percent(test.level)} of cases."
            cells.append(Explained(number(float(test.edges[k])), limit) if k < len(test.edges) else None)
        kept = k < len(findings.eigenvalues)
        rows.append((f"component {k + 1}" if kept else f"component {k + 1}, not kept", cells))
    return {"headings": headings, "rows": rows}


# --- which columns a component consists of ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """A bar to the right of the middle, or to its left for a negative number.

    Attributes
    ----------
    number : Explained
    left, width : str
    is_negative : bool
    error : tuple of two str or None
        How far from the left and from the right one standard error below and above is.
    """

    number: Explained
    left: str
    width: str
    is_negative: bool
    error: tuple[str, str] | None = None


def leading_features(findings: Findings, k: int, most: int) -> list[int]:
    """Give the columns that follow a component most closely, the closest first."""
    assert findings.correlations is not None
    sizes = np.abs(findings.correlations[k])
    order = np.argsort(-sizes, kind="stable")[:most]
    return [int(index) for index in order if sizes[index] > 0.0]


def feature_bars(findings: Findings) -> list[list[tuple[str, list[Bar]]]]:
    """Give, for each component, the names of its leading columns with their bars: pattern and filter."""
    if findings.correlations is None:
        return []
    filters = _standard_filters(findings)
    return [
        [
            (findings.features[index], _bars_of(findings, filters, k, index))
            for index in leading_features(findings, k, BARS)
        ]
        for k in range(min(findings.n_shown_components, MOST_SHOWN))
    ]


def _bars_of(findings: Findings, filters: Float | None, k: int, index: int) -> list[Bar]:
    assert findings.correlations is not None
    feature = shortened(findings.features[index], 80)
    pattern = float(findings.correlations[k, index])
    meaning = f"Correlation of {feature} with the score of component {k + 1}, over the target's rows: from −1 to 1."
    error = None if findings.correlation_errors is None else float(findings.correlation_errors[k, index])
    if error is not None:
        meaning += f" Its standard error is {correlation(error)}."
    bars = [_bar(pattern, 1.0, Explained(correlation(pattern), meaning), error)]
    if filters is not None:
        weight, largest = float(filters[k, index]), float(np.max(np.abs(filters[k]), initial=0.0))
        meaning = (
            f"How far the score of component {k + 1} moves, in its standard deviations, if {feature} alone moves by "
            "one of its own."
        )
        bars.append(_bar(weight, largest, Explained(number(weight, 2), meaning)))
    return bars


def _bar(value: float, largest: float, shown: Explained, error: float | None = None) -> Bar:
    share = 0.5 * min(abs(value) / largest, 1.0) if largest > 0.0 else 0.0
    whisker = None
    if error is not None:
        low, high = (_within(0.5 + 0.5 * (value + step) / largest) for step in (-error, error))
        whisker = percent_of(low), percent_of(1.0 - high)
    return Bar(shown, percent_of(0.5 - share if value < 0.0 else 0.5), percent_of(share), value < 0.0, whisker)


def _standard_filters(findings: Findings) -> Float | None:
    """Give the filters without units: the change of a score, in its spread, if a column changes by its own spread."""
    if findings.components is None:
        return None
    d = findings.n_shown_components
    spread = np.sqrt(np.maximum(findings.target_variance[:d], 0.0))
    scaled = findings.components[:d] * findings.spreads
    shown: Float = np.divide(scaled, spread[:, np.newaxis], out=np.zeros_like(scaled), where=spread[:, np.newaxis] > 0)
    return shown


def feature_table(findings: Findings) -> dict[str, Any] | None:
    """Give the leading columns of all components as a table."""
    if findings.correlations is None:
        return None
    filters = _standard_filters(findings)
    d = min(findings.n_shown_components, MOST_SHOWN)
    chosen: dict[int, None] = {}
    for k in range(d):
        chosen.update(dict.fromkeys(leading_features(findings, k, TABLE_ROWS)))
        if filters is not None:
            order = np.argsort(-np.abs(filters[k]), kind="stable")[:TABLE_ROWS]
            chosen.update(dict.fromkeys(int(index) for index in order))
    heads = []
    for k in range(1, d + 1):
        heads.append(Explained(f"correlation {k}", f"Correlation with the score of component {k}."))
        if findings.patterns is not None:
            grows = f"Change of the column, in its own units, if the score of component {k} grows by one."
            heads.append(Explained(f"pattern {k}", grows))
            heads.append(
                Explained(f"filter {k}", f"Weight of the column, in its own units, in the score of component {k}.")
            )
    rows = [(findings.features[index], _cells(findings, index, d)) for index in chosen]
    return {"heads": heads, "rows": rows, "n_columns": len(findings.features)}


def _cells(findings: Findings, index: int, d: int) -> list[tuple[str, Explained]]:
    """Give the numbers of one column: as the script sorts them, and as they are shown."""
    assert findings.correlations is not None
    feature = shortened(findings.features[index], 60)
    cells = []
    for k in range(d):
        shown = [(findings.correlations[k, index], f"Correlation of {feature} with component {k + 1}.")]
        if findings.patterns is not None and findings.components is not None:
            pattern = f"If the score of component {k + 1} is larger by one, {feature} is larger by this on average."
            weight = f"Each unit of {feature} adds this to the score of component {k + 1}."
            shown += [(findings.patterns[k, index], pattern), (findings.components[k, index], weight)]
        cells += [(f"{value:.6g}", Explained(number(float(value)), meaning)) for value, meaning in shown]
    return cells


def pattern_images(findings: Findings) -> list[str]:
    """Give the patterns of the components as images, in data URIs, if columns are pixels."""
    if findings.image_shape is None or findings.correlations is None:
        return []
    return [pixel_image(row.reshape(findings.image_shape)) for row in findings.correlations[:MOST_SHOWN]]


def pattern_lines(findings: Findings) -> list[str]:
    """Give the patterns of the components as lines along the columns, in SVG paths, if columns are in order."""
    if not findings.in_order or findings.correlations is None:
        return []
    size = findings.correlations.shape[1]
    places = np.linspace(0.0, 300.0, size)
    lines = []
    for row in findings.correlations[:MOST_SHOWN]:
        heights = 40.0 - 36.0 * row
        lines.append("M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in zip(places, heights, strict=True)))
    return lines


def pixel_image(values: Float) -> str:
    """Draw numbers as a picture of pixels: blue below 0, orange above, white at 0."""
    from matplotlib.image import imsave

    shares = values / max(float(np.max(np.abs(values))), np.finfo(np.float64).tiny)
    ends = np.where(shares[..., np.newaxis] < 0.0, [31.0, 119.0, 180.0], [214.0, 96.0, 20.0])
    colours = (255.0 - np.abs(shares)[..., np.newaxis] * (255.0 - ends)).round().astype(np.uint8)
    file = BytesIO()
    # matplotlib would name its version: equal findings give equal pages.
    imsave(file, colours, format="png", metadata={"Software": "standout"})
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


# --- how scores are spread -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A histogram as a line of steps.

    Attributes
    ----------
    outline : str
        An SVG path.
    colour, dash : str or None
    """

    outline: str
    colour: str | None = None
    dash: str | None = None


def distribution(findings: Findings, k: int) -> dict[str, Any]:
    """Give the distributions of one score in the target and in each background, over all rows."""
    edges = findings.bin_edges[k]
    heights = [_heights(part.counts[k]) for part in findings.datasets]
    groups: list[Float] = []
    if has_group_lines(findings):
        groups = [_heights(counts[k], findings.target.counts[k]) for counts in findings.label_counts]
    variances = [part.variances[k] for part in findings.datasets]
    return {
        "label": f"Distribution of component {k + 1}",
        "target": Curve(_steps(heights[0], closed=True)),
        "groups": [
            Curve(_steps(curve), colour=style.css) for curve, style in zip(groups, group_styles(findings), strict=False)
        ],
        "backgrounds": [
            Curve(_steps(curve), dash=DASHES[index % len(DASHES)]) for index, curve in enumerate(heights[1:])
        ],
        "ticks": [
            (percent_of((tick - edges[0]) / (edges[-1] - edges[0])), f"{tick:g}".replace("-", MINUS))
            for tick in _ticks(float(edges[0]), float(edges[-1]))
        ],
        "spreads": [
            (part.name, Explained(number(float(np.sqrt(max(variance, 0.0)))), _spread_meaning(index, k)))
            for index, (part, variance) in enumerate(zip(findings.datasets, variances, strict=True))
        ],
    }


def has_group_lines(findings: Findings) -> bool:
    """Tell whether each group of labels has a line of its own in the distributions."""
    return 2 <= len(findings.label_names) <= MOST_GROUP_LINES


def _spread_meaning(index: int, k: int) -> str:
    role = "background" if index else "target"
    return f"Standard deviation of the {role}'s scores along component {k + 1}, over all rows."


def _heights(counts: Numbers, whole: Numbers | None = None) -> Float:
    """Scale counts so that the largest, of these or of the whole that they are part of, has height 1.

    With equal areas, a background, which is narrow by design, would make the target look flat.
    """
    largest = float(np.max(counts if whole is None else whole))
    return np.asarray(counts / max(largest, 1.0))


def _steps(curve: Float, *, closed: bool = False) -> str:
    """Draw a histogram as a line of steps."""
    width = WIDTH / len(curve)
    heights = HEIGHT * (1.0 - 0.97 * curve)
    steps = "".join(f"V{height:.1f}H{(index + 1) * width:.1f}" for index, height in enumerate(heights))
    return f"M0 {HEIGHT}{steps}{f'V{HEIGHT}Z' if closed else f'V{HEIGHT}'}"


def _ticks(low: float, high: float) -> list[float]:
    """Choose a few round numbers between two."""
    raw = (high - low) / 6.0
    size = 10.0 ** np.floor(np.log10(raw))
    step = size * next(factor for factor in (1, 2, 5, 10) if factor * size >= raw)
    first = int(np.ceil((low + 0.03 * (high - low)) / step))
    last = int(np.floor((high - 0.03 * (high - low)) / step))
    return [float(index * step) for index in range(first, last + 1)]


# --- the slider ------------------------------------------------------------------------------------------------------


def slider(findings: Findings) -> dict[str, Any] | None:
    """Give the captions of the slider; None if there is no path."""
    path = findings.path
    if path is None:
        return None
    label = PARAMETERS[path.parameter].removesuffix(" =")
    meaning = "The value of the fit that this report is about."
    return {
        "label": label.lower() if path.parameter == "shrinkage" else label,
        "last": len(path.values) - 1,
        "chosen": path.chosen,
        "share": f"{path.chosen / (len(path.values) - 1):.4f}",
        "ends": ends_of_path(findings),
        "step": step_of_path(findings, path.chosen),
        "value": Explained(brief(float(path.values[path.chosen])), meaning),
    }


def slider_views(findings: Findings) -> dict[str, Any] | None:
    """Give the points of every view of the slider in a compact form."""
    path = findings.path
    if path is None:
        return None
    sizes = [len(part.rows) for part in findings.datasets]
    planes = plane(path.scores) if path.scores.shape[2] == 2 else _spread(findings, path)
    low, high = planes.min(axis=1), planes.max(axis=1)
    step = np.where(high > low, (high - low) / LEVELS, 1.0)
    levels = np.rint((planes - low[:, np.newaxis]) / step[:, np.newaxis])
    coded = (levels - 2**15).astype("<i2")
    cuts = np.cumsum(sizes)[:-1]
    return {
        "sizes": sizes,
        "chosen": path.chosen,
        "low": low.astype(float).tolist(),
        "step": step.astype(float).tolist(),
        "bounds": [bounds_of(np.split(view, cuts)) for view in planes],
        "words": [step_of_path(findings, index) for index in range(len(path.values))],
        "values": [brief(float(value)) for value in path.values],
        "levels": base64.b64encode(coded.tobytes()).decode("ascii"),
    }


def _spread(findings: Findings, path: ViewPath) -> Single:
    """Give every view the random second coordinate that the points have in the view of the fit."""
    second = np.concatenate([plane(part.scores)[:, 1] for part in findings.datasets])
    return np.stack([np.column_stack([view[:, 0], second]) for view in path.scores])
