"""Static pictures: Axes in, Axes out, and nothing else. Needs matplotlib (``standout[plots]``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout._checks import as_rows, group_numbers
from standout._messages import InvalidValueError, require_extra

__all__ = ["plot_scores"]

# Colours that stay apart for colour-blind eyes (Okabe and Ito), each with a shape of its own for print.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")

# A point is far if it lies outside the middle 96 % of the scores by more than half of their range: about 4.1 standard
# deviations for Gaussian scores.
TAIL, REACH = 0.02, 0.5
FAR = "beyond axes"


def plot_scores(scores: Any, labels: Any = None, *, ax: Any = None, title: str | None = None) -> Any:
    """What do the first two components show?

    A few outliers do not squeeze the other points together: the axes end near the bulk of the scores, and points
    beyond them are drawn hollow at the edge. The legend then has an entry for them. It lies above all points.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components), n_components >= 2
        Scores as `transform` gives them; the first two columns are drawn.
    labels : array-like of shape (n_samples,), default=None
        Group of each row, for colours and marker shapes.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    title : str, default=None
        Title of the Axes.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from standout.plots import plot_scores
    >>> ax = plot_scores([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ["a", "a", "b"], title="Two groups")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    rows = as_rows(scores, "the scores", min_rows=1, finite=True, host=True)
    if rows.shape[1] < 2:
        problem, advice = "there is {given} score in a row, but {limit} are drawn", "Give at least two components."
        raise InvalidValueError(problem, given=rows.shape[1], limit=2, advice=advice)
    if ax is None:
        ax = new_axes()
    low, high = _limits(rows[:, :2])
    shown = np.clip(rows[:, :2], low, high)
    far = (shown != rows[:, :2]).any(axis=1)
    groups = np.zeros(len(rows), dtype=np.intp) if labels is None else group_numbers(labels, len(rows))
    names = [None] if labels is None else np.unique(np.asarray(labels)).tolist()
    for group, name in enumerate(names):
        style = {"color": COLOURS[group % len(COLOURS)], "marker": MARKERS[group % len(MARKERS)]}
        near = (groups == group) & ~far
        ax.scatter(*shown[near].T, s=16, alpha=0.7, linewidths=0, label=name, **style)
        edge = shown[(groups == group) & far]
        if len(edge):
            ax.scatter(*edge.T, s=30, facecolors="none", edgecolors=style["color"], marker=style["marker"])
    if far.any():
        ax.scatter([], [], s=30, facecolors="none", edgecolors="#555555", label=FAR)
    margin = 0.05 * np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    ax.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
    ax.set_xlabel("component 1")
    ax.set_ylabel("component 2")
    if title:
        ax.set_title(title)
    if labels is not None or far.any():
        _legend_above_points(ax)
    return ax


def new_axes(height: float = 4.5) -> Any:
    """Make new Axes of the usual width."""
    return _pyplot().subplots(figsize=(5, height), layout="constrained")[1]


def _limits(points: Any) -> tuple[Any, Any]:
    """Where do the axes end? At the outermost points that are not far."""
    low, high = np.quantile(points, [TAIL, 1.0 - TAIL], axis=0)
    reach = REACH * (high - low)
    inside = (points >= low - reach) & (points <= high + reach)
    return (
        np.where(inside, points, np.inf).min(axis=0),
        np.where(inside, points, -np.inf).max(axis=0),
    )


def _legend_above_points(ax: Any) -> None:
    """Put the legend into a strip of its own at the top of the Axes, where no point is."""
    # In inches of small letters: 0.065 for each, 0.3 for a marker and the space around it, 0.18 for a line.
    widths = [0.3 + 0.065 * len(str(name)) for name in ax.get_legend_handles_labels()[1]]
    width, height = (ax.get_position().size * ax.figure.get_size_inches()).tolist()
    columns = next((n for n in range(len(widths), 1, -1) if sum(map(max, np.array_split(widths, n))) <= width), 1)
    strip = min((0.12 + 0.18 * -(-len(widths) // columns)) / height, 0.5)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, bottom + (top - bottom) / (1.0 - strip))
    ax.legend(
        frameon=False,
        fontsize="small",
        loc="upper left",
        ncols=columns,
        handlelength=1.0,
        handletextpad=0.2,
        columnspacing=1.0,
    )


def _pyplot() -> Any:
    require_extra("matplotlib", "plots", "a picture")
    from matplotlib import pyplot

    return pyplot
