"""Tools for annotated matrices of cells, by the conventions of scanpy: ``standout.tl.dpca(adata, ...)``.

Nothing here is loaded before it is asked for, and anndata itself only by whoever makes an AnnData.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import is_sparse
from standout._validation import (
    check_annotated,
    check_cell_groups,
    check_gene_mask,
    check_genes,
    check_groupby,
    check_layer,
    check_matrix_present,
    check_n_cells,
    check_no_backed_view,
    check_no_copy_of_backed,
    require_extra,
)
from standout.estimators import DiscriminativePCA
from standout.io._backed import BackedRows
from standout.io._words import word, words_of_array

__all__ = ["dpca"]

_UNSET: Any = object()


def dpca(
    adata: Any,
    groupby: str,
    target: Any,
    background: Any = None,
    *,
    layer: str | None = None,
    mask_var: Any = _UNSET,
    key_added: str | None = None,
    copy: bool = False,
    **params: Any,
) -> Any:
    """What varies among the cells of one condition, and not among those of others?

    Discriminative PCA of the cells of one group against those of other groups, written into the AnnData as scanpy's
    own tools do. ``scanpy.pl.embedding(adata, basis="dpca")`` shows the result, and
    ``scanpy.pp.neighbors(adata, use_rep="X_dpca")`` goes on from it.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, genes in columns; usually normalised and logarithmised. One that is backed by a file
        (``anndata.read_h5ad(path, backed="r")``) is read in slices of rows and never loaded; a sparse X stays sparse.
    groupby : str
        Column of ``adata.obs`` that tells the groups apart.
    target : str or list of str
        The group, or several taken as one, whose own variation is looked for.
    background : str or list of str, optional
        The groups whose variation is not to be seen again, each a background of its own. None takes each of the other
        groups. Cells without a group belong to none.
    layer : str, optional
        Layer to use in the place of X.
    mask_var : str, array of bool or None, optional
        Genes to use: a column of ``adata.var``, or a truth value for each gene; None takes all. If nothing is said,
        ``"highly_variable"`` is used where ``adata.var`` has it, as in ``scanpy.pp.pca``.
    key_added : str, optional
        Name under which everything is written, in the place of the names below.
    copy : bool, default=False
        Write into a copy, and return it.
    **params
        Parameters of `DiscriminativePCA`: ``n_components``, ``shrinkage``, ``background_weights``, ``test`` and so on.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. Into it, or into `adata`, is written:

        ``.obsm["X_dpca"]`` : ndarray of shape (n_obs, n_components)
            Scores of all cells, of whichever group, centred by the mean of the target.
        ``.varm["dPCs"]`` : ndarray of shape (n_vars, n_components)
            The filters (`components_`); zero for genes that were not used.
        ``.varm["dPCs_patterns"]`` : ndarray of shape (n_vars, n_components)
            The patterns (`patterns_`): what each component looks like in the data. Look at these for genes.
        ``.uns["dpca"]`` : dict
            ``params``; ``eigenvalues``, the ratio of the target's to the background's variance along each component;
            ``target_variance``, ``background_variance`` (a row for each background), ``weights``, ``shrinkage``, and
            with ``test`` or ``n_components="auto"`` also ``p_values``.

    See Also
    --------
    standout.DiscriminativePCA : The method.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)) * [4, 1, 1, 1, 1])
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> adata.X[100:, 3] *= 3
    >>> standout.tl.dpca(adata, "condition", target="stim", background=["ctrl"], n_components=1)
    >>> adata.obsm["X_dpca"].shape, int(np.argmax(np.abs(adata.varm["dPCs"][:, 0])))
    ((200, 1), 3)
    """
    require_extra("anndata", "h5ad", "standout.tl")
    check_annotated(adata)
    check_no_copy_of_backed(copy, bool(adata.isbacked))
    check_no_backed_view(bool(adata.is_view and adata.isbacked))
    check_groupby(groupby, [str(name) for name in adata.obs.columns])
    groups = words_of_array(adata.obs[groupby].astype(object))
    targets, backgrounds = check_cell_groups(_said(target), _said(background), groups, groupby)
    genes, mask = _genes(adata, mask_var)
    matrix = _matrix(adata, layer)
    chosen = {
        "the target": np.isin(groups, targets),
        **{f"background {name!r}": groups == name for name in backgrounds},
    }
    check_n_cells({name: int(cells.sum()) for name, cells in chosen.items()})
    result = adata.copy() if copy else adata
    of_target, *of_backgrounds = (_rows(matrix, cells, genes) for cells in chosen.values())
    model = DiscriminativePCA(**params).fit(of_target, background=of_backgrounds)
    about = {"groupby": groupby, "target": targets, "background": backgrounds, "layer": layer, "mask_var": mask}
    _store(result, model, model.transform(_rows(matrix, None, genes)), genes, {**about, **params}, key_added)
    return result if copy else None


def _said(names: Any) -> Any:
    """Say the names of groups as the groups themselves are said: 1.0 is the group 1."""
    return (
        [word(name) for name in names]
        if isinstance(names, list | tuple | set | np.ndarray)
        else names
        if names is None
        else word(names)
    )


def _genes(adata: Any, mask_var: Any) -> tuple[npt.NDArray[np.bool_] | None, Any]:
    """Give the genes to use, None for all, and what is to be remembered of the choice."""
    names = [str(name) for name in adata.var.columns]
    if mask_var is _UNSET:
        mask_var = "highly_variable" if "highly_variable" in names else None
    if mask_var is None:
        return None, None
    mask = check_genes(mask_var, names, adata.n_vars)
    if isinstance(mask, str):
        return check_gene_mask(np.asarray(adata.var[mask]), f"adata.var[{mask!r}]"), mask
    return check_gene_mask(mask, "mask_var"), mask


def _matrix(adata: Any, layer: str | None) -> Any:
    if layer is not None:
        return adata.layers[check_layer(layer, [str(name) for name in adata.layers])]
    check_matrix_present(adata.X)
    return adata.X


def _rows(matrix: Any, cells: npt.NDArray[np.bool_] | None, genes: npt.NDArray[np.bool_] | None) -> Any:
    """Give some cells and genes: in memory as they are, of a file as something that is read in slices."""
    in_memory = isinstance(matrix, np.ndarray) or is_sparse(matrix)
    # A dataset of h5py knows its file, a sparse one of anndata its group.
    if not in_memory and (hasattr(matrix, "file") or hasattr(matrix, "group")):
        return BackedRows(matrix, cells, genes)
    rows = matrix if cells is None else matrix[cells]
    return rows if genes is None else rows[:, genes]


def _store(
    adata: Any, model: DiscriminativePCA, scores: Any, genes: npt.NDArray[np.bool_] | None, about: Any, key: str | None
) -> None:
    """Write what was found, under the names that scanpy would use."""
    of_cells, of_genes, of_fit = ("X_dpca", "dPCs", "dpca") if key is None else (key, key, key)
    used = slice(None) if genes is None else genes
    filters, patterns = np.zeros((2, adata.n_vars, model.n_components_))
    filters[used], patterns[used] = model.components_.T, model.patterns_.T
    adata.obsm[of_cells] = scores
    adata.varm[of_genes] = filters
    adata.varm[f"{of_genes}_patterns"] = patterns
    found = {
        "eigenvalues": model.eigenvalues_,
        "target_variance": model.target_variance_,
        "background_variance": model.background_variance_,
        "weights": model.weights_,
        "shrinkage": model.shrinkage_,
        "p_values": getattr(model, "p_values_", None),
    }
    # A file has no place for what is not there, nor for generators of random numbers.
    kept = {name: value for name, value in about.items() if value is not None and name != "random_state"}
    adata.uns[of_fit] = {"params": kept, **{name: value for name, value in found.items() if value is not None}}
