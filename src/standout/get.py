"""Tables of the results that `standout.tl` has written into an AnnData, as in ``scanpy.get``."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout._annotated import fit_of, known, scores_of, words

__all__ = ["ratios_df", "top_genes_df"]


def __dir__() -> list[str]:
    return sorted(__all__)


def top_genes_df(adata: Any, key: str = "dpca", *, component: int = 0, n_genes: int = 20) -> Any:
    """Which genes follow a component? The genes with the largest correlations, the largest first.

    Parameters
    ----------
    adata : AnnData
        With the results of `standout.tl.dpca` or `standout.tl.cpca`.
    key : str, default="dpca"
        Name under which the fit was written.
    component : int, default=0
        Which component, from 0.
    n_genes : int, default=20
        How many genes.

    Returns
    -------
    pandas.DataFrame
        With the columns ``gene``, ``correlation`` (of the gene with the score, in the target) and ``component`` (the
        entry of the gene in the component). If it was computed, also ``mean_effect``, the shift of the mean in standard
        deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)) * [4, 1, 1, 1, 1])
    >>> adata.var_names = ["Actb", "Gapdh", "Ifit1", "Isg15", "Cd4"]
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> adata.X[100:, 2:4] += 3 * rng.normal(size=(100, 1))
    >>> standout.tl.dpca(adata, "condition", "stim", n_comps=1)
    >>> sorted(standout.get.top_genes_df(adata, n_genes=2)["gene"])
    ['Ifit1', 'Isg15']
    """
    from pandas import DataFrame

    of_genes = fit_of(adata, key, on_genes=True)[2]
    filters, correlations = np.asarray(adata.varm[of_genes]), np.asarray(adata.varm[f"{of_genes}_correlations"])
    number = known(component, "component", range(filters.shape[1]), "a component of the fit")
    first = np.argsort(-np.abs(correlations[:, number]), kind="stable")[:n_genes]
    columns = {"gene": adata.var_names[first], "correlation": correlations[first, number]}
    columns["component"] = filters[first, number]
    if f"{key}_mean_effect" in adata.var:
        columns["mean_effect"] = np.asarray(adata.var[f"{key}_mean_effect"])[first]
    return DataFrame(columns).reset_index(drop=True)


def ratios_df(adata: Any, groupby: str, key: str = "dpca") -> Any:
    """In which cell types does the target vary more than the background?

    The table has a ratio of variances of scores for each type and component: the variance of the target's cells divided
    by the variance of the backgrounds' cells of the same type. The scores are held out (see `standout.tl.dpca`). The
    ratio of a type with few cells varies by chance.

    Parameters
    ----------
    adata : AnnData
        With the results of `standout.tl.dpca` or another tool.
    groupby : str
        Column of ``adata.obs`` with the types.
    key : str, default="dpca"
        Name under which the fit was written.

    Returns
    -------
    pandas.DataFrame
        A row for each type, with ``n_target``, ``n_background`` and ``ratio_0``, ``ratio_1`` ...; a ratio is NaN if the
        target or the background has fewer than two cells. Cells without a type are in no row.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(400, 5)) * [4, 1, 1, 1, 1])
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 200)
    >>> adata.obs["type"] = np.tile(["B", "T"], 200)
    >>> adata.X[201::2, 3] *= 5  # T cells respond
    >>> standout.tl.dpca(adata, "condition", "stim", n_comps=1)
    >>> standout.get.ratios_df(adata, "type")["ratio_0"].round(-1).to_dict()
    {'B': 0.0, 'T': 20.0}
    """
    from pandas import DataFrame

    scores, is_target, is_background = scores_of(adata, key, range(len(fit_of(adata, key)[0]["ratio"])))
    types = words(adata, groupby, "groupby")
    names = sorted(set(types) - {""})
    own, other = (DataFrame(scores[some]).groupby(types[some]) for some in (is_target, is_background))
    table = (own.var() / other.var()).reindex(names).add_prefix("ratio_")
    table.insert(0, "n_background", other.size().reindex(names, fill_value=0))
    table.insert(0, "n_target", own.size().reindex(names, fill_value=0))
    return table
