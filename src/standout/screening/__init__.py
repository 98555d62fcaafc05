"""A screen: many targets against shared controls."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout._messages import require_extra
from standout.screening._screen import COLOURS, MOST_SHOWN, Screen, screen

__all__ = ["Screen", "plot_screen", "screen"]


def plot_screen(table: Any, ax: Any = None, *, effects: Any = None, most: int = MOST_SHOWN) -> Any:
    """Which labels stand out, by how much, and by which columns?

    Parameters
    ----------
    table : Screen or pandas.DataFrame
        The result of `standout.screen`, or its table.
    ax : matplotlib Axes, default=None
        Where to draw the ratios. None makes a new figure, with a heat map of the leading columns beside the ratios.
    effects : pandas.DataFrame, default=None
        Labels x columns of the heat map, if `table` is not a Screen.
    most : int, default=30
        Number of labels to draw, the most significant first.

    Returns
    -------
    matplotlib Axes
    """
    require_extra("matplotlib", "plots", "A picture")
    import matplotlib.pyplot as plt

    from standout.plots import _axes, _plain_numbers

    effects, shown = getattr(table, "effects", effects), getattr(table, "table", table).head(most)
    if ax is None and effects is not None:
        size, shares = (12, 1.8 + 0.22 * len(shown)), {"width_ratios": [1, 1.6]}
        figure, (ax, heat) = plt.subplots(1, 2, figsize=size, layout="constrained", gridspec_kw=shares)
        values = effects.reindex(shown.index).to_numpy()
        # The colour scale ends at a quantile, so that a few huge shifts do not make all other shifts pale. The scale
        # ends at 1 or more, so that small shifts stay pale.
        limit = max(float(np.nanquantile(np.abs(values), 0.95)), 1.0)
        picture = heat.imshow(values, aspect="auto", cmap="PuOr_r", vmin=-limit, vmax=limit)
        heat.set_yticks([])
        heat.set_xticks(range(values.shape[1]), effects.columns, rotation=90, fontsize="small")
        figure.colorbar(picture, label="shift in control standard deviations", extend="both")
    ax = _axes(ax)
    for verdict, colour in COLOURS.items():
        chosen = np.flatnonzero((shown["verdict"] == verdict).to_numpy())
        if len(chosen):
            part = shown.iloc[chosen]
            style = {"fmt": "o", "color": colour, "markersize": 4, "label": verdict}
            ax.errorbar(part["ratio"], chosen, xerr=part["ratio_error"], **style)
    ax.axvline(1, color="0.7", linewidth=1, zorder=0)
    ax.set_yticks(range(len(shown)), [str(name) for name in shown.index])
    ax.set(xscale="log", xlabel="ratio to the controls", ylim=(len(shown) - 0.5, -0.5))
    _plain_numbers(ax.xaxis)
    ax.legend(loc="lower right")
    return ax
