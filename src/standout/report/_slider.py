"""The slider along the path: what it says, and the views it switches between."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from standout.report._findings import Findings, Single, ViewPath, plane
from standout.report._html import text, tip
from standout.report._scatter import bounds_of
from standout.report._sentences import PARAMETERS, ends_of_path, step_of_path
from standout.report._wording import brief

# Scores are kept as whole numbers of 16 bits between the least and the largest of each view: far finer than a pixel.
LEVELS = 2**16 - 1


def slider(findings: Findings) -> str:
    """Show the slider with its captions; nothing where there is no path."""
    path = findings.path
    if path is None:
        return ""
    left, right = ends_of_path(findings)
    share = path.chosen / (len(path.values) - 1)
    label = PARAMETERS[path.parameter].removesuffix(" =")
    chosen = tip(brief(float(path.values[path.chosen])), "The value of the fit that this report is about.")
    return (
        '<div class="slider" id="slider">'
        f'<label for="path">Move along {text(label.lower() if path.parameter == "shrinkage" else label)}</label>'
        f'<div class="track"><input type="range" id="path" min="0" max="{len(path.values) - 1}" step="1" '
        f'value="{path.chosen}" aria-describedby="path-ends path-step">'
        f'<span class="mark" style="--at:{share:.4f}" aria-hidden="true">fit</span></div>'
        f'<div class="ends" id="path-ends"><span>{text(left)}</span><span>{text(right)}</span></div>'
        f'<p class="step"><output id="path-step" for="path">{text(step_of_path(findings, path.chosen))}</output> '
        f'<button type="button" id="path-back" hidden>Back to the fit</button></p>'
        f'<p class="note">The mark shows the fit, at {chosen}. The other views need no new data: they show what you '
        "would have seen with another choice.</p></div>"
    )


def views(findings: Findings) -> dict[str, Any] | None:
    """Give the points of every view in a compact form."""
    path = findings.path
    if path is None:
        return None
    sizes = [len(part.rows) for part in findings.datasets]
    planes = plane(path.scores) if path.scores.shape[2] == 2 else _spread(findings, path, sizes)
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


def _spread(findings: Findings, path: ViewPath, sizes: list[int]) -> Single:
    """Give every view the random second coordinate that its points have in the fit's own view."""
    second = np.concatenate([plane(part.scores)[:, 1] for part in findings.datasets])
    assert len(second) == sum(sizes)
    return np.stack([np.column_stack([view[:, 0], second]) for view in path.scores])
