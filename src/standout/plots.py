"""Static pictures: each function takes an Axes, draws on it and returns it. Needs matplotlib (``standout[plots]``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._messages import InvalidValueError, require_extra

__all__ = ["correlations", "means", "path", "ratios", "scores"]


def __dir__() -> list[str]:
    return sorted(__all__)


# Colours that colour-blind readers can distinguish (Okabe and Ito). Each has a separate marker for print.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A3D9A", "#000000")
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
_GREY = "#8A929B"
# A point is far if its distance from the middle 96 % of the scores is more than 0.6 times the range of these scores.
_TAIL, _REACH = 0.02, 0.6
_MOST_LABELS, _MOST_NAMES = 12, 50
_PARAMETERS = {"shrinkage": "shrinkage", "alpha": "α", "epsilon": "ε"}


def scores(
    target: Any,
    backgrounds: Sequence[Any] = (),
    *,
    labels: Any = None,
    names: Sequence[str] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """What do the first two components show?

    Axes end near the bulk of the scores. The few points beyond are drawn hollow at the edge.

    Parameters
    ----------
    target : array-like of shape (n, d)
        Scores of the target, from `transform` or, better, `held_out_scores`. The first two columns are drawn. If there
        is only one column, the points are spread over the height.
    backgrounds : sequence of array-like, default=()
        Scores of the backgrounds, drawn in grey.
    labels : array-like of shape (n,), default=None
        Labels of the target's rows, for colours: words, or numbers on a scale. With more than 50 words there is no
        legend.
    names : sequence of str, default=None
        Names of the target and each background, for the legend.
    ax : matplotlib Axes, default=None
        None makes new Axes.
    title : str, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from standout import plots
    >>> ax = plots.scores([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], labels=["a", "a", "b"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    ax = _axes(ax)
    planes = [_plane(part, place) for place, part in enumerate((target, *backgrounds))]
    # Axes end at the outermost points that are not far: see `_REACH`.
    points = np.concatenate(planes)
    low, high = np.nanquantile(points, [_TAIL, 1.0 - _TAIL], axis=0)
    reach = _REACH * (high - low)
    inside = (points >= low - reach) & (points <= high + reach)
    low, high = np.where(inside, points, np.inf).min(axis=0), np.where(inside, points, -np.inf).max(axis=0)
    others = ["background"] if len(backgrounds) == 1 else [f"background {k}" for k in range(1, len(planes))]
    named = ["target", *others] if names is None else list(names)
    for place, plane in reversed(list(enumerate(planes[1:], start=1))):
        _dots(ax, plane, low, high, color=_GREY, alpha=0.35, s=10, marker=_MARKERS[(place - 1) % 8], label=named[place])
    marks = np.full(len(planes[0]), named[0]) if labels is None else np.asarray(labels)
    if marks.dtype.kind in "fiu" and len(np.unique(marks)) > _MOST_LABELS:
        # Draw large numbers last, so that they stay visible: most cells have no counts of a gene.
        points, marks = np.clip(planes[0], low, high)[np.argsort(marks)], np.sort(marks).astype(float)
        ax.figure.colorbar(ax.scatter(*points.T, c=marks, cmap="cividis", s=16, linewidths=0), ax=ax)
    else:
        words = marks.astype(str)
        for k, word in enumerate(np.unique(words)):
            style = {"color": _COLOURS[k % 8], "marker": _MARKERS[k // 8 % 8 if len(backgrounds) else k % 8]}
            _dots(ax, planes[0][words == word], low, high, label=str(word), **style)
    margin = 0.05 * np.where(high > low, high - low, 1.0)
    ax.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
    ax.set(xlabel="component 1", ylabel="component 2", title=title)
    if np.shape(target)[1] < 2:
        ax.set(ylabel="", yticks=[])
    count = len(ax.get_legend_handles_labels()[0])
    # Long legends are drawn next to the axes; very long legends are left out.
    is_alone = labels is None and names is None and len(planes) == 1
    if 0 < count <= _MOST_NAMES and not is_alone:
        where: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "ncols": 1 + count // 25}
        where = where if count > _MOST_LABELS else {"loc": "best"}
        legend = ax.legend(frameon=False, fontsize="small", handletextpad=0.2, **where)
        for text in legend.get_texts():
            # A dollar sign in a name does not start a formula.
            text.set_parse_math(False)
    return ax


def correlations(model: Any, component: int = 0, *, n_columns: int = 12, names: Any = None, ax: Any = None) -> Any:
    """Which columns follow a component? Draw its largest correlations as bars.

    Parameters
    ----------
    model : fitted estimator
    component : int, default=0
    n_columns : int, default=12
        Number of bars.
    names : sequence of str, default=None
        Names of the columns; None uses the names of the fit.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    ax = _largest(ax, model, np.asarray(model.correlations_)[component], n_columns, names)
    ax.set(xlim=(-1.05, 1.05), xlabel=f"correlation with component {component + 1}")
    return ax


def ratios(model: Any, *, ax: Any = None) -> Any:
    """How much more does the target vary along each component, on held-out rows? Lines are one standard error.

    With ``center="background"``, a dash shows the ratio without the shift of the mean.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    return _intervals(ax, model.ratio_, model.ratio_interval_, model.spread_)


def path(model: Any, *, ax: Any = None) -> Any:
    """How was the regularisation chosen? Draw the held-out ratio along the path, the best value and the chosen one.

    Parameters
    ----------
    model : fitted estimator or Path
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    found = getattr(model, "path_", model)
    values = np.asarray(getattr(found, "values", ()), dtype=np.float64)
    if values.size < 2:
        raise InvalidValueError("there is no path", advice='Fit with "auto", which tries several values.')
    ax = _axes(ax)
    logs, errors = (np.asarray(part, dtype=np.float64) for part in (found.log_ratios, found.errors))
    ax.fill_between(values, np.exp(logs - errors), np.exp(logs + errors), alpha=0.2, color=_COLOURS[1], linewidth=0)
    ax.plot(values, np.exp(logs), color=_COLOURS[1])
    for place, label, style, fill in ((found.best, "best", "o", "white"), (found.chosen, "chosen", "s", _COLOURS[0])):
        ax.plot(values[place], np.exp(logs[place]), style, color=_COLOURS[0], mfc=fill, label=label)
    ax.set(xlabel=_PARAMETERS.get(found.parameter, found.parameter), ylabel="held-out ratio (mean over components)")
    ax.set_yscale("log")
    _plain_numbers(ax.yaxis)
    if found.parameter != "shrinkage":
        least = np.min(values[values > 0.0], initial=np.inf)
        ax.set_xscale("symlog", linthresh=least if np.isfinite(least) else 1.0)
    ax.legend(frameon=False)
    return ax


def means(model: Any, *, n_columns: int = 12, names: Any = None, ax: Any = None) -> Any:
    """In which columns do the means differ? Draw the largest differences, in standard deviations.

    Parameters
    ----------
    model : fitted estimator
    n_columns : int, default=12
        Number of bars.
    names : sequence of str, default=None
        Names of the columns; None uses the names of the fit.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    found = model.mean_differences_
    ax = _largest(ax, model, found.effect, n_columns, names, found.different())
    ax.set(xlabel="difference of means (standard deviations); grey: not distinguishable from chance")
    return ax


# --- helpers ---------------------------------------------------------------------------------------------------------


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    require_extra("matplotlib", "plots", "a picture")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(5.5, 4.5), layout="constrained")[1]


def _largest(ax: Any, model: Any, values: Float, count: int, names: Any, real: Any = None) -> Any:
    """Draw the largest values of columns as bars. Columns that are not in `real` are grey."""
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    known = getattr(model, "feature_names_in_", None) if names is None else names
    words = [f"column {k}" if known is None else str(known[k]) for k in order.tolist()]
    return _bars(ax, words, values[order], None if real is None else ~np.isin(order, real))


def _intervals(ax: Any, ratios: Any, intervals: Any, spread: Any = None, real: Any = True) -> Any:
    """Draw ratios, hollow if not significant, and intervals. Dashes are the ratios without the shift of the mean."""
    if not np.isfinite(ratios).any():
        raise InvalidValueError("there is no held-out ratio", advice="Fit with a background and folds (`cv`).")
    ax, number = _axes(ax), np.arange(1, len(ratios) + 1)
    ax.axhline(1.0, color=_GREY, linewidth=1, linestyle="--")
    ax.vlines(number, *np.transpose(intervals), color=_COLOURS[0])
    colours = np.where(np.broadcast_to(real, number.shape), _COLOURS[0], "white")
    ax.scatter(number, ratios, facecolors=colours, edgecolors=_COLOURS[0], zorder=3)
    if spread is not None and np.any(np.less(spread, 0.99 * np.asarray(ratios))):
        ax.plot(number, spread, "_", color=_COLOURS[1], markersize=14, label="without the shift of the mean")
        ax.legend(frameon=False)
    ax.set(yscale="log", xlabel="component", ylabel="ratio of variances", xlim=(0.5, len(ratios) + 0.5))
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    _plain_numbers(ax.yaxis)
    return ax


def _plain_numbers(axis: Any) -> None:
    """Write 20 in place of 2 × 10¹ on a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 10 * low else (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _bars(ax: Any, words: list[str], values: Float, faint: Any = None, start: float = 0.0) -> Any:
    ax = _axes(ax)
    colours = np.where(values < start, _COLOURS[1], _COLOURS[0])
    places = np.arange(len(values))[::-1]
    ax.barh(places, values - start, left=start, color=colours if faint is None else np.where(faint, _GREY, colours))
    ax.set_yticks(places, [word if len(word) <= 30 else f"{word[:27]}..." for word in words])
    for text in ax.get_yticklabels():
        text.set_parse_math(False)
    ax.axvline(start, color="black", linewidth=0.8)
    return ax


def _plane(points: Any, place: int) -> Float:
    """Return two columns. Points of a single component are spread over the height, with a strip for each dataset."""
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or not array.shape[0] or not array.shape[1]:
        problem = f"the scores have shape {array.shape}"
        raise InvalidValueError(problem, advice="Give at least one row and one component.")
    if array.shape[1] > 1:
        return array[:, :2]
    return np.column_stack([array[:, 0], -place + 0.7 * (np.arange(len(array)) * 0.618034 % 1.0)])


def _dots(ax: Any, plane: Float, low: Float, high: Float, color: str, label: str | None = None, **style: Any) -> None:
    look = {"s": 16, "alpha": 0.7, "marker": "o", **style}
    shown = np.clip(plane, low, high)
    far = (shown != plane).any(axis=1)
    # A name that starts with an underscore would be left out of the legend.
    name = f" {label}" if label and label.startswith("_") else label
    ax.scatter(*shown[~far].T, color=color, linewidths=0, label=name, **look)
    if far.any():
        ax.scatter(*shown[far].T, facecolors="none", edgecolors=color, **{**look, "s": 26})
