"""Tables from what `standout.tl` has written into an AnnData, as ``scanpy.get`` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float
from standout._checks import check_known, check_whole
from standout._messages import InvalidValueError, require_extra
from standout.io import words_of_array
from standout.tl import names_of

__all__ = ["ratios_df", "top_genes_df"]


def top_genes_df(adata: Any, key: str = "dpca", *, component: int = 0, n_genes: int = 20) -> Any:
    """Which genes go with a component?

    Genes by the size of their patterns, the largest first. A pattern is what a component looks like in the data; a
    filter also has large entries for genes that only cancel shared variation.

    Parameters
    ----------
    adata : AnnData
        As `standout.tl.dpca` or `standout.tl.cpca` left it.
    key : str, default="dpca"
        Name under which the fit was written.
    component : int, default=0
        Which component, from 0.
    n_genes : int, default=20
        How many genes.

    Returns
    -------
    pandas.DataFrame
        With the columns ``gene``, ``pattern`` and ``filter``.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)))
    >>> adata.var_names = ["Actb", "Gapdh", "Ifit1", "Isg15", "Cd4"]
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> adata.X[100:, 2:4] += 3 * rng.normal(size=(100, 1))
    >>> standout.tl.dpca(adata, "condition", "stim", n_comps=1)
    >>> sorted(standout.get.top_genes_df(adata, n_genes=2)["gene"])
    ['Ifit1', 'Isg15']
    """
    require_extra("pandas", "h5ad", "standout.get")
    from pandas import DataFrame

    _, of_genes, _ = fit_of(adata, key)
    if of_genes is None:
        problem, advice = "has no patterns of genes", "Use what tl.dpca or tl.cpca has written of genes."
        raise InvalidValueError(problem, parameter="key", value=key, advice=advice)
    filters, patterns = np.asarray(adata.varm[of_genes]), np.asarray(adata.varm[f"{of_genes}_patterns"])
    number = check_component(component, filters.shape[1])
    first = np.argsort(-np.abs(patterns[:, number]), kind="stable")[: check_whole(n_genes, "n_genes")]
    columns = {"gene": adata.var_names[first], "pattern": patterns[first, number], "filter": filters[first, number]}
    return DataFrame(columns).reset_index(drop=True)


def ratios_df(adata: Any, groupby: str, key: str = "dpca") -> Any:
    """In which cell types does the target vary more than the background?

    For each type, the variance of the scores of the target's cells by that of the backgrounds' cells of the same type,
    along each component. These are cells that were fitted; a type with few cells varies by chance.

    Parameters
    ----------
    adata : AnnData
        As `standout.tl.dpca` or another tool left it.
    groupby : str
        Column of ``adata.obs`` with the types.
    key : str, default="dpca"
        Name under which the fit was written.

    Returns
    -------
    pandas.DataFrame
        A row for each type, with ``n_target``, ``n_background`` and ``ratio_0``, ``ratio_1`` ...; NaN where one side
        has fewer than two cells. Cells without a type are in no row.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(400, 5)))
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 200)
    >>> adata.obs["type"] = np.tile(["B", "T"], 200)
    >>> adata.X[201::2, 3] *= 5  # T cells respond
    >>> standout.tl.dpca(adata, "condition", "stim", n_comps=1)
    >>> standout.get.ratios_df(adata, "type")["ratio_0"].round(0).to_dict()
    {'B': 1.0, 'T': 22.0}
    """
    require_extra("pandas", "h5ad", "standout.get")
    from pandas import DataFrame

    check_known(groupby, "groupby", adata.obs.columns, "a column of adata.obs", "column")
    of_cells, _, _ = fit_of(adata, key)
    scores = np.asarray(adata.obsm[of_cells])
    is_target, is_background = sides_of(adata, key)
    types = words_of_array(adata.obs[groupby].astype(object))
    rows: dict[str, dict[str, float]] = {}
    for name in sorted(set(types) - {""}):
        own, other = scores[is_target & (types == name)], scores[is_background & (types == name)]
        enough = min(len(own), len(other)) >= 2
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = own.var(axis=0) / other.var(axis=0) if enough else np.full(scores.shape[1], np.nan)
        rows[name] = {"n_target": len(own), "n_background": len(other)}
        rows[name] |= {f"ratio_{number}": float(ratio) for number, ratio in enumerate(ratios)}
    return DataFrame.from_dict(rows, orient="index")


def fit_of(adata: Any, key: str) -> tuple[str, str | None, Any]:
    """Give the names under which a fit was written, of cells and of genes, and what else it has written."""
    fits = [name for name, about in adata.uns.items() if isinstance(about, Mapping) and "eigenvalues" in about]
    check_known(key, "key", fits, "a fit of standout.tl in adata.uns", "fit")
    return names_of(adata, key)


def sides_of(adata: Any, key: str) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Tell which cells were the target of a fit, and which its backgrounds."""
    params = adata.uns[key]["params"]
    check_known(params["groupby"], "groupby", adata.obs.columns, "a column of adata.obs", "column")
    # The same words as in `tl`: the group 1.0 is called "1", and cells without a group "".
    groups = words_of_array(adata.obs[params["groupby"]].astype(object))
    is_target = np.isin(groups, list(params["target"]))
    if isinstance(params["background"], str):
        return is_target, (groups != "") & ~is_target
    return is_target, np.isin(groups, list(params["background"]))


def check_component(component: Any, n_components: int) -> int:
    """Check the number of a component."""
    number = check_whole(component, "component", least=0)
    if number >= n_components:
        problem = "is not there: the fit has {limit} component(s), from 0"
        raise InvalidValueError(
            problem, parameter="component", value=component, limit=n_components, advice="Choose a smaller one."
        )
    return number


def ratios_of(about: Any) -> tuple[Float, Float | None]:
    """Give the ratios of a fit, those of cells that were not fitted if there are any, and their standard errors."""
    if "held_out_ratio" in about:
        return np.asarray(about["held_out_ratio"]), np.asarray(about["held_out_ratio_error"])
    return np.asarray(about["eigenvalues"]), None
