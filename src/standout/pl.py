"""Pictures of what `standout.tl` has written into an AnnData: Axes in, Axes out. Needs ``standout[plots]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout._checks import check_known
from standout._messages import InvalidValueError
from standout.get import check_component, fit_of, ratios_df, ratios_of, sides_of, top_genes_df
from standout.plots import COLOURS, MARKERS, new_axes

__all__ = ["embedding", "genes", "ratios", "scree"]

# The background stands behind the target, in grey.
GREY = "#BBBBBB"


def embedding(
    adata: Any,
    key: str = "dpca",
    *,
    color: str | None = None,
    components: tuple[int, int] = (0, 1),
    ax: Any = None,
) -> Any:
    """What does the view show, and where is the background in it?

    The cells of the target in colours, before those of the backgrounds in grey.

    Parameters
    ----------
    adata : AnnData
        As `standout.tl.dpca` or another tool left it.
    key : str, default="dpca"
        Name under which the fit was written.
    color : str, default=None
        Column of ``adata.obs`` with groups of cells, for colours and marker shapes.
    components : (int, int), default=(0, 1)
        The components to draw.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(60, 5)))
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 30)
    >>> standout.tl.dpca(adata, "condition", "stim")
    >>> ax = standout.pl.embedding(adata, color="condition")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['background', 'stim']
    """
    of_cells, _, _ = fit_of(adata, key)
    scores = np.asarray(adata.obsm[of_cells])
    across, along = (check_component(number, scores.shape[1]) for number in components)
    is_target, is_background = sides_of(adata, key)
    axes = new_axes() if ax is None else ax
    behind = scores[is_background]
    axes.scatter(
        behind[:, across], behind[:, along], s=8, color=GREY, linewidths=0, label="background", rasterized=True
    )
    if color is None:
        groups = np.where(is_target, "target", "")
    else:
        check_known(color, "color", adata.obs.columns, "a column of adata.obs", "column")
        groups = adata.obs[color].astype(str).to_numpy()
    for number, name in enumerate(sorted(set(groups[is_target]))):
        some = scores[is_target & (groups == name)]
        axes.scatter(
            some[:, across],
            some[:, along],
            s=12,
            alpha=0.8,
            linewidths=0,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            label=name,
            rasterized=True,
        )
    axes.set_xlabel(f"{key} {across + 1}")
    axes.set_ylabel(f"{key} {along + 1}")
    axes.legend(frameon=False, fontsize="small")
    return axes


def genes(adata: Any, key: str = "dpca", *, component: int = 0, n_genes: int = 20, ax: Any = None) -> Any:
    """Which genes go with a component? Bars show their patterns, the largest first.

    Parameters
    ----------
    adata, key, component, n_genes
        As in `standout.get.top_genes_df`.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(60, 5)))
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 30)
    >>> standout.tl.dpca(adata, "condition", "stim")
    >>> len(standout.pl.genes(adata, n_genes=3).patches)
    3
    """
    table = top_genes_df(adata, key, component=component, n_genes=n_genes)
    axes = new_axes(height=1.2 + 0.18 * len(table)) if ax is None else ax
    places = np.arange(len(table))[::-1]
    axes.barh(places, table["pattern"], color=[COLOURS[1] if value < 0 else COLOURS[0] for value in table["pattern"]])
    axes.set_yticks(places, table["gene"])
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_xlabel(f"pattern of {key} {component + 1}")
    return axes


def ratios(adata: Any, groupby: str, key: str = "dpca", *, component: int = 0, ax: Any = None) -> Any:
    """In which cell types does the target vary more than the background?

    Bars show the ratio of variances within each type, on a logarithmic scale; at 1 both vary alike.

    Parameters
    ----------
    adata, groupby, key
        As in `standout.get.ratios_df`.
    component : int, default=0
        Which component, from 0.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(60, 5)))
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 30)
    >>> adata.obs["type"] = np.tile(["B", "T"], 30)
    >>> standout.tl.dpca(adata, "condition", "stim")
    >>> standout.pl.ratios(adata, "type").get_xscale()
    'log'
    """
    table = ratios_df(adata, groupby, key)
    names = [name for name in table.columns if name.startswith("ratio_")]
    column = names[check_component(component, len(names))]
    table = table[np.isfinite(table[column])].sort_values(column)
    if not len(table):
        raise InvalidValueError(
            "has no type with two cells of the target and two of the background",
            parameter="groupby",
            value=groupby,
            advice="Choose a column with larger groups.",
        )
    axes = new_axes(height=1.2 + 0.25 * len(table)) if ax is None else ax
    places = np.arange(len(table))
    axes.barh(places, table[column] - 1.0, left=1.0, color=COLOURS[1])
    axes.set_yticks(places, [f"{name} ({row.n_target:.0f} / {row.n_background:.0f})" for name, row in table.iterrows()])
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel(f"variance of the target / background, {key} {component + 1}")
    return axes


def scree(adata: Any, key: str = "dpca", *, ax: Any = None) -> Any:
    """How many components stand out?

    Points show the ratio of variances of each component on cells that were not fitted, with its standard error. If the
    fit was tested (``test="auto"``), a line shows the ratio that chance alone exceeds once in twenty times, and crosses
    the ratios that were tested: those of the fitted cells.

    Parameters
    ----------
    adata : AnnData
        As `standout.tl.dpca` left it.
    key : str, default="dpca"
        Name under which the fit was written.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(80, 5)))
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 40)
    >>> standout.tl.dpca(adata, "condition", "stim", n_comps=3, test="analytic", shrinkage=None)
    >>> [text.get_text() for text in standout.pl.scree(adata).get_legend().get_texts()]
    ['fitted cells', 'chance', 'held-out cells']
    """
    _, _, about = fit_of(adata, key)
    values, errors = ratios_of(about)
    numbers = np.arange(1, len(values) + 1)
    axes = new_axes() if ax is None else ax
    if "edges" in about:
        edges, tested = np.asarray(about["edges"]), np.asarray(about["tested_ratios"])
        tested, edges = tested[: len(values)], edges[: len(values)]
        axes.plot(np.arange(1, len(tested) + 1), tested, "x", color=COLOURS[1], label="fitted cells")
        axes.plot(np.arange(1, len(edges) + 1), edges, "--", color="black", linewidth=1, label="chance")
    name = "fitted cells" if errors is None else "held-out cells"
    axes.errorbar(numbers, values, yerr=errors, fmt="o", color=COLOURS[0], capsize=3, label=name)
    axes.set_xticks(numbers)
    axes.set_xlabel("component")
    axes.set_ylabel("variance of the target / background")
    axes.legend(frameon=False, fontsize="small")
    return axes
