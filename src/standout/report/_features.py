"""Which columns a component is made of: bars of the leading ones, and a table to sort."""

from __future__ import annotations

import numpy as np

from standout._arrays import Float
from standout.report._charts import percent_of
from standout.report._findings import Findings
from standout.report._html import name, text, tip
from standout.report._wording import correlation, number, shortened, whole

# Columns that are shown as bars and, by pattern and by filter, in the table; components of which they are shown.
BARS = 10
TABLE_ROWS = 20
MOST_SHOWN = 4


def standard_filters(findings: Findings) -> Float | None:
    """Give the filters without units: how far a score moves, in its spread, if a column moves by its own."""
    if findings.components is None:
        return None
    d = findings.n_shown_components
    spread = np.sqrt(np.maximum(findings.target_variance[:d], 0.0))
    scaled = findings.components[:d] * findings.spreads
    shown: Float = np.divide(scaled, spread[:, np.newaxis], out=np.zeros_like(scaled), where=spread[:, np.newaxis] > 0)
    return shown


def leading_features(findings: Findings, k: int, most: int) -> list[int]:
    """Give the columns that follow a component most closely, first the closest."""
    assert findings.correlations is not None
    sizes = np.abs(findings.correlations[k])
    order = np.argsort(-sizes, kind="stable")[:most]
    return [int(index) for index in order if sizes[index] > 0.0]


def feature_bars(findings: Findings) -> str:
    """Show the leading columns of each component as bars: pattern and filter."""
    if findings.correlations is None:
        return "<p>A precomputed kernel has no columns to look at.</p>"
    filters = standard_filters(findings)
    d = min(findings.n_shown_components, MOST_SHOWN)
    blocks = "".join(_block(findings, filters, k) for k in range(d))
    return f'<div class="blocks">{blocks}</div>'


def _block(findings: Findings, filters: Float | None, k: int) -> str:
    assert findings.correlations is not None
    largest = float(np.max(np.abs(filters[k]), initial=0.0)) if filters is not None else 0.0
    rows = []
    for index in leading_features(findings, k, BARS):
        pattern = float(findings.correlations[k, index])
        cells = [
            _bar(pattern, 1.0),
            f'<span class="num">{tip(correlation(pattern), _pattern_words(findings, k, index))}</span>',
        ]
        if filters is not None:
            weight = float(filters[k, index])
            cells += [
                _bar(weight, largest),
                f'<span class="num">{tip(number(weight, 2), _filter_words(findings, k, index))}</span>',
            ]
        rows.append(
            f'<div class="row"><span class="feature">{name(findings.features[index], 28)}</span>{"".join(cells)}</div>'
        )
    names = ["pattern", "filter"] if filters is not None else ["correlation"]
    head = "<span></span>" + "".join(f"<span>{each}</span><span></span>" for each in names)
    kind = "" if filters is not None else " patterns-only"
    return (
        f'<div class="block"><h3>Component {k + 1}</h3><div class="features{kind}"><div class="row head">{head}</div>'
        f"{''.join(rows)}</div></div>"
    )


def _bar(value: float, largest: float) -> str:
    """Draw a bar to the right of the middle, or to its left for a negative number."""
    share = 0.5 * min(abs(value) / largest, 1.0) if largest > 0.0 else 0.0
    left = 0.5 - share if value < 0.0 else 0.5
    kind = "minus" if value < 0.0 else "plus"
    return (
        f'<span class="diverging" aria-hidden="true"><b class="{kind}" style="left:{percent_of(left)};'
        f'width:{percent_of(share)}"></b></span>'
    )


def _pattern_words(findings: Findings, k: int, index: int) -> str:
    feature = shortened(findings.features[index], 80)
    return f"Correlation of {feature} with the score of component {k + 1}, over the target's rows: from −1 to 1."


def _filter_words(findings: Findings, k: int, index: int) -> str:
    feature = shortened(findings.features[index], 80)
    return (
        f"How far the score of component {k + 1} moves, in units of its spread, if {feature} alone moves by its own "
        "spread."
    )


def feature_table(findings: Findings) -> str:
    """Show the leading columns of all components as a table that can be sorted."""
    if findings.correlations is None:
        return ""
    filters = standard_filters(findings)
    d = min(findings.n_shown_components, MOST_SHOWN)
    chosen: dict[int, None] = {}
    for k in range(d):
        chosen.update(dict.fromkeys(leading_features(findings, k, TABLE_ROWS)))
        if filters is not None:
            order = np.argsort(-np.abs(filters[k]), kind="stable")[:TABLE_ROWS]
            chosen.update(dict.fromkeys(int(index) for index in order))
    heads = [_head("column", "Name of the column.", "text", "none")]
    for k in range(d):
        heads.append(_head(f"correlation {k + 1}", f"Correlation with the score of component {k + 1}.", "size", "none"))
        if findings.patterns is not None:
            heads += [
                _head(
                    f"pattern {k + 1}",
                    f"How much the column grows, in its own units, where the score of component {k + 1} grows by one.",
                    "size",
                    "none",
                ),
                _head(
                    f"filter {k + 1}",
                    f"The weight of the column, in its own units, in the score of component {k + 1}.",
                    "size",
                    "none",
                ),
            ]
    rows = "".join(_table_row(findings, index, d) for index in chosen)
    total = len(findings.features)
    caption = (
        f"The leading {whole(len(chosen))} of {whole(total)} columns."
        if len(chosen) < total
        else f"All {whole(total)} columns."
    )
    return (
        f'<details class="all" open><summary>Table: {text(caption)} Sort it by any heading.</summary>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of columns">'
        f'<table id="columns"><thead><tr>{"".join(heads)}</tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def _head(words: str, explanation: str, kind: str, order: str) -> str:
    return (
        f'<th scope="col" data-sort="{kind}" aria-sort="{order}"><button type="button" title="{text(explanation)}">'
        f"{text(words)}</button></th>"
    )


def _table_row(findings: Findings, index: int, d: int) -> str:
    assert findings.correlations is not None
    feature = shortened(findings.features[index], 60)
    cells = [f'<th scope="row">{name(findings.features[index], 32)}</th>']
    for k in range(d):
        cells.append(_cell(float(findings.correlations[k, index]), f"Correlation of {feature} with component {k + 1}."))
        if findings.patterns is not None and findings.components is not None:
            cells.append(
                _cell(
                    float(findings.patterns[k, index]),
                    f"Where the score of component {k + 1} is larger by one, {feature} is larger by this, as far as "
                    "the component goes.",
                )
            )
            cells.append(
                _cell(
                    float(findings.components[k, index]),
                    f"Each unit of {feature} adds this to the score of component {k + 1}.",
                )
            )
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: float, explanation: str) -> str:
    return f'<td data-value="{value:.6g}">{tip(number(value), explanation, focus=False)}</td>'
