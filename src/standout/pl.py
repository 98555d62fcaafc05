"""Pictures of the results that `standout.tl` has written into an AnnData. Needs ``standout[plots]``.

Each function draws on an Axes and returns it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from standout import plots
from standout._annotated import check_genes, fit_of, known, scores_of, words
from standout._messages import InvalidValueError
from standout.get import ratios_df, top_genes_df

__all__ = ["embedding", "genes", "ratios", "scree", "screen"]


def __dir__() -> list[str]:
    return sorted(__all__)


def embedding(
    adata: Any,
    key: str = "dpca",
    *,
    color: str | None = None,
    components: tuple[int, int] = (0, 1),
    layer: str | None = None,
    ax: Any = None,
) -> Any:
    """What does the view show, and where is the background in it?

    The cells of the target are drawn in colours, over the cells of the backgrounds in grey. Scores of fitted cells are
    held out.

    Parameters
    ----------
    adata : AnnData
        With the results of `standout.tl.dpca` or another tool.
    key : str, default="dpca"
        Name under which the fit was written.
    color : str, default=None
        A column of ``adata.obs`` (labels or numbers), or a gene.
    components : (int, int), default=(0, 1)
        The components to draw.
    layer : str, default=None
        Layer with the expression of a gene, instead of X.
    ax : matplotlib Axes, default=None
        Where to draw. None makes new Axes.

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
    scores, is_target, is_background = scores_of(adata, key, components)
    labels = None
    if color is not None:
        known(color, "color", [*adata.obs.columns, *adata.var_names], "a column of adata.obs or a gene")
        if color not in adata.obs.columns:
            check_genes(adata.var_names[adata.var_names == color])
            found = adata.obs_vector(color, layer=layer)
        else:
            found = adata.obs[color]
            found = found if found.dtype.kind in "fiu" else words(adata, color, "color")
        labels = np.asarray(found)[is_target]
    names = ["target", "background"]
    axes = plots.scores(scores[is_target], [scores[is_background]], labels=labels, names=names, ax=ax)
    axes.set(xlabel=f"{key} {components[0] + 1}", ylabel=f"{key} {components[1] + 1}", title=color or "")
    return axes


def genes(adata: Any, key: str = "dpca", *, component: int = 0, n_genes: int = 20, ax: Any = None) -> Any:
    """Which genes follow a component? Bars show their correlations, the largest first.

    Parameters
    ----------
    adata, key, component, n_genes
        As in `standout.get.top_genes_df`.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    table = top_genes_df(adata, key, component=component, n_genes=n_genes)
    axes = plots._bars(ax, table["gene"].astype(str).tolist(), table["correlation"].to_numpy())
    axes.set(xlim=(-1.05, 1.05), xlabel=f"correlation with {key} {component + 1}")
    return axes


def ratios(adata: Any, groupby: str, key: str = "dpca", *, component: int = 0, ax: Any = None) -> Any:
    """In which cell types does the target vary more than the background?

    Bars show the ratio of variances within each type, on a logarithmic scale; at 1 target and background vary by the
    same amount.

    Parameters
    ----------
    adata, groupby, key
        As in `standout.get.ratios_df`.
    component : int, default=0
        Which component, from 0.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    table = ratios_df(adata, groupby, key)
    column = f"ratio_{component}"
    known(column, "component", list(table.columns), "a component of the fit")
    table = table[np.isfinite(table[column])].sort_values(column, ascending=False)
    if not len(table):
        problem = "has no type with two cells of the target and two of the background"
        raise InvalidValueError(problem, parameter="groupby", value=groupby, advice="Choose larger types.")
    names = [f"{name} ({row.n_target:.0f} / {row.n_background:.0f})" for name, row in table.iterrows()]
    axes = plots._bars(ax, names, table[column].to_numpy(), start=1.0)
    axes.set(xscale="log", xlabel=f"ratio of variances, {key} {component + 1}")
    plots._plain_numbers(axes.xaxis)
    return axes


def scree(adata: Any, key: str = "dpca", *, ax: Any = None) -> Any:
    """How many components stand out?

    Points show the held-out ratio of variances of each component, with one standard error. After
    `standout.tl.permutation_test`, hollow points are not distinguishable from chance. With ``center="background"``, a
    dash shows the ratio without the shift of the mean.

    Parameters
    ----------
    adata : AnnData
        With the results of `standout.tl.dpca`.
    key : str, default="dpca"
        Name under which the fit was written.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    about, _, _ = fit_of(adata, key)
    tested = np.asarray(about.get("p_values", ()))[: len(about["ratio"])]
    # Untested components are drawn like significant ones.
    real = np.append(tested <= 0.05, np.ones(len(about["ratio"]) - len(tested), dtype=bool))
    return plots._intervals(ax, about["ratio"], about["ratio_interval"], about["spread"], real)


def screen(adata: Any, key: str = "screen", *, ax: Any = None) -> Any:
    """Which conditions stand out against the controls, and by which columns? Draw the result of `standout.tl.screen`.

    Parameters
    ----------
    adata : AnnData
    key : str, default="screen"
        Key of ``adata.uns`` with the table.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    from standout.screening import plot_screen

    known(key, "key", list(adata.uns), "in adata.uns")
    return plot_screen(adata.uns[key], ax, effects=adata.uns.get(f"{key}_effects"))
