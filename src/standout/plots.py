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


def plot_scores(scores: Any, labels: Any = None, *, ax: Any = None, title: str | None = None) -> Any:
    """What do the first two components show?

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
    groups = np.zeros(len(rows), dtype=np.intp) if labels is None else group_numbers(labels, len(rows))
    names = [None] if labels is None else np.unique(np.asarray(labels)).tolist()
    for group, name in enumerate(names):
        chosen = rows[groups == group]
        ax.scatter(
            chosen[:, 0],
            chosen[:, 1],
            s=16,
            alpha=0.7,
            linewidths=0,
            color=COLOURS[group % len(COLOURS)],
            marker=MARKERS[group % len(MARKERS)],
            label=name,
        )
    ax.set_xlabel("component 1")
    ax.set_ylabel("component 2")
    if title:
        ax.set_title(title)
    if labels is not None:
        ax.legend(frameon=False)
    return ax


def new_axes(height: float = 4.5) -> Any:
    """Make new Axes of the usual width."""
    return _pyplot().subplots(figsize=(5, height), layout="constrained")[1]


def _pyplot() -> Any:
    require_extra("matplotlib", "plots", "a picture")
    from matplotlib import pyplot

    return pyplot
