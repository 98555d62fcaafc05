"""Pictures that need no script: ratios beside what chance gives, and how scores are spread."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np

from standout._arrays import Float
from standout.report._colours import DASHES, group_styles
from standout.report._findings import Findings, Numbers
from standout.report._html import name, text, tip
from standout.report._sentences import background_words, is_shrunken
from standout.report._wording import MINUS, chance, number, percent

# Ratios that differ by more than this factor are drawn on a logarithmic scale.
WIDE = 30.0
WIDTH, HEIGHT = 480, 150
MOST_GROUP_LINES = 7


def strength_chart(findings: Findings) -> str:
    """Show the strength of each component, what chance gives, and p-values: one row for each.

    Bars are what was tested, so that they can be compared with what chance gives. A test by formula knows the ratio
    without shrinkage only; then the ratio with shrinkage stands beside it, as a number.
    """
    strengths, place, logarithmic = _strengths(findings)
    headings = [_value_heading(findings)]
    if findings.test is not None:
        headings += [
            "chance gives up to",
            "p\N{NON-BREAKING HYPHEN}value",
            *(["with shrinkage"] if is_shrunken(findings) else []),
        ]
    rows = "".join(_strength_row(findings, k, strengths[k], place) for k in range(len(strengths)))
    head = "".join(f'<span role="columnheader">{heading}</span>' for heading in headings)
    blank = '<span role="columnheader"></span><span role="columnheader" class="over"></span>'
    return (
        f'<div class="strengths" style="--columns:{len(headings)}" role="table" aria-label="Strength of components">'
        f'<div class="head" role="row">{blank}{head}</div>{rows}</div>'
        f"{_strength_notes(findings, len(strengths), logarithmic)}"
    )


def _value_heading(findings: Findings) -> str:
    if not findings.backgrounds:
        return "variance"
    return "ratio" if findings.is_ratio else "difference"


def _strengths(findings: Findings) -> tuple[Float, Callable[[float], float], bool]:
    """Give the numbers to be drawn as bars, the place of a number from 0 to 1, and whether the scale is logarithmic."""
    strengths = findings.scree
    drawn = strengths
    if findings.test is not None:
        if is_shrunken(findings) or len(findings.test.ratios) >= len(findings.scree):
            strengths = findings.test.ratios
        drawn = np.concatenate([strengths, findings.test.edges])
    finite = drawn[np.isfinite(drawn) & (drawn > 0.0)]
    least, largest = (float(finite.min()), float(finite.max())) if finite.size else (1.0, 1.0)
    if findings.is_ratio and largest > WIDE * least:
        low, high = log(least) - 0.5, log(largest) + 0.2
        return strengths, lambda value: _within((log(value) - low) / (high - low)) if value > 0.0 else 0.0, True
    return strengths, lambda value: _within(value / (1.05 * largest)), False


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _strength_row(findings: Findings, k: int, value: float, place: Callable[[float], float]) -> str:
    test, kept = findings.test, k < len(findings.eigenvalues)
    mark = ""
    cells = [tip(number(value), _value_explanation(findings, k, value))]
    if test is not None and k < len(test.p_values):
        edge, p_value = float(test.edges[k]), float(test.p_values[k])
        mark = f'<i class="edge" style="left:{percent_of(place(edge))}"></i>'
        small = "small enough to call it real" if p_value <= test.level else "not small enough to call it real"
        cells += [
            tip(
                number(edge),
                f"Chance alone would give component {k + 1} a larger ratio in {percent(test.level)} of cases.",
            ),
            tip(
                chance(p_value).removeprefix("p = ").removeprefix("p "),
                f"Chance of so large a ratio for component {k + 1} if nothing were left to be found: {small}.",
            ),
        ]
    elif test is not None:
        cells += ["–", "–"]
    if is_shrunken(findings):
        shrunken = (
            f"The same ratio against the shrunken background: component {k + 1} of the fit goes by this one, which is "
            "less easily led astray by chance."
        )
        cells.append(tip(number(float(findings.scree[k])), shrunken) if k < len(findings.scree) else "–")
    numbers = "".join(f'<span role="cell" class="num">{cell}</span>' for cell in cells)
    label = f"component {k + 1}" if kept else f"next: {k + 1}"
    return (
        f'<div class="row{"" if kept else " beyond"}" role="row"><span role="rowheader">{label}</span>'
        f'<span class="bar" role="cell" aria-hidden="true"><b style="width:{percent_of(place(value))}"></b>'
        f"{mark}</span>{numbers}</div>"
    )


def _value_explanation(findings: Findings, k: int, value: float) -> str:
    if not findings.backgrounds:
        share = ""
        if findings.total_variance > 0.0 and findings.method == "PCA":
            share = f", which is {percent(value / findings.total_variance)} of its variance in all columns"
        return f"Variance of the target along component {k + 1}{share}."
    against = background_words(findings)
    if not findings.is_ratio:
        return f"Variance of the target less α times that of {against}, along component {k + 1}."
    plain = ", without shrinkage" if is_shrunken(findings) else ""
    return (
        f"Along component {k + 1} the target's variance is this many times that of {against}{plain}. 1 would mean no "
        "difference."
    )


def _strength_notes(findings: Findings, n_drawn: int, logarithmic: bool) -> str:
    notes = []
    if findings.test is not None:
        notes.append('<span class="key"><i class="edge"></i> the largest ratio that chance explains</span>')
    if n_drawn > len(findings.eigenvalues):
        notes.append('<span class="key"><b></b> not part of the fit</span>')
    if is_shrunken(findings):
        notes.append(
            "<span>Bars are the ratios without shrinkage along the fitted components: those the test knows.</span>"
        )
    if logarithmic:
        notes.append("<span>The scale is logarithmic.</span>")
    return f'<p class="keys">{"".join(notes)}</p>' if notes else ""


def percent_of(share: float) -> str:
    """Write a place as CSS does."""
    return f"{100.0 * share:.2f}%"


def distribution(findings: Findings, k: int) -> str:
    """Show how one score is spread in the target and in each background, over all rows."""
    edges = findings.bin_edges[k]
    heights = [_heights(part.counts[k]) for part in findings.datasets]
    groups: list[Float] = []
    if 2 <= len(findings.label_names) <= MOST_GROUP_LINES:
        groups = [_heights(counts[k], findings.target.counts[k]) for counts in findings.label_counts]
    # Lines of groups have colours of their own: what is behind them is grey then.
    kind = "target behind" if groups else "target"
    shapes = [f'<path class="{kind}" d="{_steps(heights[0], closed=True)}"/>']
    for curve, style in zip(groups, group_styles(findings.label_names), strict=False):
        shapes.append(f'<path class="group" stroke="{style.css}" d="{_steps(curve)}"/>')
    for index, curve in enumerate(heights[1:]):
        dash = DASHES[index % len(DASHES)]
        shapes.append(f'<path class="background" stroke-dasharray="{dash}" d="{_steps(curve)}"/>')
    against = f" against {background_words(findings)}" if findings.backgrounds else ""
    label = f"Distribution of component {k + 1}: target{against}"
    ticks = "".join(
        f'<span style="left:{percent_of((tick - edges[0]) / (edges[-1] - edges[0]))}">{text(_tick(tick))}</span>'
        for tick in _ticks(float(edges[0]), float(edges[-1]))
    )
    return (
        f'<figure class="distribution"><figcaption>Component {k + 1}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{text(label)}">'
        f'{"".join(shapes)}</svg><div class="ticks" aria-hidden="true">{ticks}</div>'
        f'<p class="spreads">{_spreads(findings, k)}</p></figure>'
    )


def _heights(counts: Numbers, whole: Numbers | None = None) -> Float:
    """Scale counts so that the largest, of these or of the whole they are part of, has height 1.

    With equal areas a background, which is narrow by design, would press the target to the ground.
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


def _tick(value: float) -> str:
    return f"{value:g}".replace("-", MINUS)


def _spreads(findings: Findings, k: int) -> str:
    """Say how wide each dataset is along a component."""
    variances = [findings.target_variance[k], *findings.background_variance[:, k]]
    parts = []
    for index, (part, variance) in enumerate(zip(findings.datasets, variances, strict=True)):
        kind = "background" if index else "target"
        explanation = f"Standard deviation of the {kind}'s scores along component {k + 1}, over all rows."
        shown = tip(number(float(np.sqrt(max(variance, 0.0)))), explanation)
        dash = f' style="--dash:{index}"' if index else ""
        parts.append(
            f'<span class="of-{kind}"{dash}>{_line(findings, index)}{name(part.name, 32)}: spread {shown}</span>'
        )
    return "".join(parts)


def _line(findings: Findings, index: int) -> str:
    """Draw a sample of a dataset's line."""
    if index == 0:
        kind = "target behind" if 2 <= len(findings.label_names) <= MOST_GROUP_LINES else "target"
        box = f'<rect class="{kind}" y="3" width="16" height="10"/>'
        return f'<svg class="swatch" viewBox="0 0 16 16" aria-hidden="true">{box}</svg>'
    dash = DASHES[(index - 1) % len(DASHES)]
    return (
        '<svg class="swatch" viewBox="0 0 24 16" aria-hidden="true"><path class="background" '
        f'stroke-dasharray="{dash}" d="M0 8H24"/></svg>'
    )
