"""Tools for annotated matrices of cells, by the conventions of scanpy: ``standout.tl.dpca(adata, ...)``.

The module does not import anndata: the caller has made an AnnData already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from standout import _annotated as cells
from standout._annotated import UNSET
from standout._messages import InvalidValueError, listed
from standout.sources import open_dataset

__all__ = ["cpca", "dpca", "kcpca", "kdpca", "permutation_test", "project", "screen"]


def __dir__() -> list[str]:
    return sorted(__all__)


def dpca(
    adata: Any,
    groupby: str,
    target: Any,
    background: Any = None,
    *,
    n_comps: int | None = None,
    subject: str | None = None,
    adjust: str | Sequence[str] | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = UNSET,
    key_added: str | None = None,
    copy: bool = False,
    **params: Any,
) -> Any:
    """What varies among the cells of one condition, and not among the cells of others?

    Discriminative PCA of the cells of one condition against other conditions, written into the AnnData as scanpy's
    tools do. ``scanpy.pl.embedding(adata, basis="dpca")`` draws the scores, and
    ``scanpy.pp.neighbors(adata, use_rep="X_dpca")`` uses them for the next steps. `standout.pl` draws the results, and
    `standout.get` returns tables of them.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, genes in columns; usually normalised and logarithmised. A sparse X stays sparse. A matrix backed
        by a file (``anndata.read_h5ad(path, backed="r")``) is read in slices of rows.
    groupby : str
        Column of ``adata.obs`` with the conditions.
    target : str or sequence of str
        The target. Several conditions become one target.
    background : str or sequence of str, optional
        The background conditions, each a separate background. None uses all other cells that have a condition, as one
        background. ``"rest"`` means the same as None, unless a condition has this name.
    n_comps : int, optional
        Number of components, as scanpy names it; ``n_components`` is the same.
    subject : str, optional
        Column of ``adata.obs`` with the donor (patient, animal, sample) of each cell. Cells of a donor are not
        independent: folds and permutations use whole donors.
    adjust : str or sequence of str, optional
        Columns of ``adata.obs`` with covariates, numbers or words, such as the sequencing depth or the phase of the
        cell cycle. Their linear effect is removed.
    layer : str, optional
        Layer to use instead of X.
    use_rep : str, optional
        Key of ``adata.obsm`` to use instead of X, such as ``"X_pca"``. Such a matrix has no genes, so that components
        are written into ``.uns``.
    mask_var : str, array of bool or None, optional
        Genes to use: a column of ``adata.var``, or a truth value for each gene. None uses all genes. By default
        ``"highly_variable"`` is used if ``adata.var`` has it, as in ``scanpy.pp.pca``.
    key_added : str, optional
        Name under which everything is written, instead of the names below.
    copy : bool, default=False
        Write into a copy, and return it.
    **params
        Parameters of `DiscriminativePCA`: ``shrinkage``, ``center``, ``robust``, ``cv`` and so on.

    Returns
    -------
    AnnData or None
        The copy if ``copy=True``, otherwise None. These results are written into the copy or into `adata`:

        ``.obsm["X_dpca"]`` : ndarray of shape (n_obs, n_components)
            Scores, in units of the background's standard deviation. Scores of fitted cells are held out: they are
            computed with components of the other folds. The variance of the scores in the target is the ratio.
        ``.varm["dPCs"]``, ``.varm["dPCs_correlations"]`` : ndarray of shape (n_vars, n_components)
            The components, and the correlation of each gene with each score. Use the correlations to interpret genes.
            Components and correlations are zero for genes that were not used, also if ``n_columns`` left them out.
        ``.var["dpca_mean"]`` : float
            The point from which scores are measured.
        ``.var["dpca_mean_effect"]``, ``.var["dpca_mean_q_value"]`` : float
            The difference of the means of target and backgrounds in standard deviations, and its q-value. Components do
            not show this shift unless ``center="background"``.
        ``.obs["dpca_weight"]`` : float
            With ``robust``: the weight of each cell; NaN for other cells.
        ``.uns["dpca"]`` : dict
            ``params``; ``ratio`` with ``ratio_error``, the held-out ratio of variances; ``spread`` and ``shift``, the
            parts of the ratio from the variance and from the shift of the mean; ``shrinkage`` and so on.

    See Also
    --------
    standout.DiscriminativePCA : The method.
    permutation_test : p-values of the components.
    project : Scores of the cells of another AnnData.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)) * [4, 1, 1, 1, 1])
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> adata.X[100:, 3] *= 3
    >>> standout.tl.dpca(adata, "condition", target="stim", background="rest", n_comps=1)
    >>> adata.obsm["X_dpca"].shape, int(np.argmax(np.abs(adata.varm["dPCs_correlations"][:, 0])))
    ((200, 1), 3)
    """
    if n_comps is not None and "n_components" in params:
        problem = "is given together with `n_components`, which is the same"
        raise InvalidValueError(problem, parameter="n_comps", value=n_comps, advice="Leave one out.")
    params |= {} if n_comps is None else {"n_components": n_comps}
    params |= {"groupby": groupby, "target": target, "background": background, "layer": layer, "use_rep": use_rep}
    params |= {"mask_var": mask_var, "subject": subject, "adjust": [adjust] if isinstance(adjust, str) else adjust}
    return cells.fit_and_store(params.pop("_method", "dpca"), adata, params, key_added, copy)


def cpca(adata: Any, groupby: str, target: Any, background: Any = None, **params: Any) -> Any:
    """In which directions do the cells of one condition vary more than α times the cells of others?

    Contrastive PCA, with the parameters of `dpca` and of `ContrastivePCA`. The results are written under ``X_cpca``,
    ``cPCs`` and ``cpca``.

    Parameters
    ----------
    adata, groupby, target, background, **params
        As in `dpca`.

    Returns
    -------
    AnnData or None
        As in `dpca`.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)) * [4, 1, 1, 1, 1])
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> adata.X[100:, 3] *= 3
    >>> standout.tl.cpca(adata, "condition", target="stim", background="ctrl", n_comps=1, alpha=2.0)
    >>> int(np.argmax(np.abs(adata.varm["cPCs_correlations"][:, 0]))), adata.uns["cpca"]["alpha"]
    (3, 2.0)
    """
    return dpca(adata, groupby, target, background, _method="cpca", **params)


def kdpca(adata: Any, groupby: str, target: Any, background: Any = None, **params: Any) -> Any:
    """In which nonlinear views do the cells of one condition vary, and not the cells of others?

    Kernel discriminative PCA, with the parameters of `dpca` and of `KernelDiscriminativePCA`. The results are written
    under ``X_kdpca`` and ``kdpca``. Components of a kernel are not directions of genes: `project` cannot be used.

    Parameters
    ----------
    adata, groupby, target, background, **params
        As in `dpca`.

    Returns
    -------
    AnnData or None
        As in `dpca`.
    """
    return dpca(adata, groupby, target, background, _method="kdpca", **params)


def kcpca(adata: Any, groupby: str, target: Any, background: Any = None, **params: Any) -> Any:
    """In which nonlinear views is one condition's variance more than α times the others' variance?

    Kernel contrastive PCA, used like `kdpca`. The results are written under ``X_kcpca`` and ``kcpca``.

    Parameters
    ----------
    adata, groupby, target, background, **params
        As in `dpca`.

    Returns
    -------
    AnnData or None
        As in `dpca`.
    """
    return dpca(adata, groupby, target, background, _method="kcpca", **params)


def permutation_test(adata: Any, key: str = "dpca", **options: Any) -> Any:
    """Which components are distinguishable from chance?

    The test repeats the fit after exchanging cells (whole donors with ``subject``) between the conditions.

    Parameters
    ----------
    adata : AnnData
        With the results of `dpca` or another tool.
    key : str, default="dpca"
        Name under which the fit was written.
    **options
        Parameters of `standout.permutation_test`: ``n_draws``, ``random_state`` and so on.

    Returns
    -------
    PermutationTest
        Its p-values are also written into ``adata.uns[key]["p_values"]``.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)) * [4, 1, 1, 1, 1])
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> adata.X[100:, 3] *= 3
    >>> standout.tl.dpca(adata, "condition", "stim", n_comps=2)
    >>> test = standout.tl.permutation_test(adata, n_draws=99)
    >>> float(adata.uns["dpca"]["p_values"][0])
    0.01
    """
    from standout.selection import permutation_test as tested

    about, _, _ = cells.fit_of(adata, key)
    model, datasets, facts = cells.fitted(about["method"], adata, about["params"])
    found = tested(model, datasets[0], background=datasets[1:], **facts, **options)
    adata.uns[key]["p_values"] = np.asarray(found.p_values, dtype=np.float64)
    return found


def screen(
    adata: Any,
    groupby: str,
    control: str,
    *,
    subject: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = UNSET,
    key_added: str = "screen",
    **options: Any,
) -> Any:
    """Which of many conditions (knock-outs, compounds) stand out against shared controls?

    Parameters
    ----------
    adata : AnnData
        As in `dpca`.
    groupby : str
        Column of ``adata.obs`` with the conditions.
    control : str
        The condition of the control cells.
    subject : str, optional
        Column of ``adata.obs`` with the guide, replicate or donor of each cell.
    layer, use_rep, mask_var
        As in `dpca`.
    key_added : str, default="screen"
        Key of ``adata.uns`` for the table.
    **options
        Parameters of `standout.screen`.

    Returns
    -------
    Screen
        Its table, one row for each condition, is also written into ``adata.uns["screen"]``, and the effects of the
        leading columns into ``adata.uns["screen_effects"]``.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(600, 10)))
    >>> adata.obs["target"] = np.repeat(["NT", "STAT1", "CD86"], 200)
    >>> adata.X[200:400, 3] += 1
    >>> standout.tl.screen(adata, "target", "NT").table["verdict"].to_dict()
    {'STAT1': 'stands out', 'CD86': 'no evidence'}
    """
    from standout.screening import screen as screened

    cells.check_annotated(adata, False)
    labels = cells.words(adata, groupby, "groupby")
    cells.known(control, "control", sorted(set(labels) - {""}), f"a condition of adata.obs[{groupby!r}]")
    matrix, genes, _ = cells.matrix_of(adata, layer, use_rep, mask_var)
    rows = open_dataset(cells.rows_of(matrix, None, genes), "the cells")
    if use_rep is None:
        cells.check_genes(adata.var_names)
        rows.columns = tuple(adata.var_names[slice(None) if genes is None else genes])
    groups = None if subject is None else cells.words(adata, subject, "subject")
    found = screened(rows, labels, control=control, groups=groups, **options)
    # AnnData refuses columns of mixed types.
    table = found.table.copy()
    adata.uns[key_added] = table.astype({name: str for name in table if table[name].dtype == object})
    adata.uns[f"{key_added}_effects"] = found.effects
    return found


def project(
    adata: Any,
    adata_ref: Any,
    *,
    key: str = "dpca",
    layer: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> Any:
    """Where are the cells of another dataset in a view that was found before?

    The scores of new cells are computed along the components of a reference, as ``scanpy.tl.ingest`` does for PCA.
    Genes are matched by their names.

    Parameters
    ----------
    adata : AnnData
        The new cells, normalised as the reference was.
    adata_ref : AnnData
        The reference, with the results of `dpca` or `cpca`. It may have been written to a file and read again.
    key : str, default="dpca"
        Name in ``adata_ref.uns`` under which the reference was written.
    layer : str, optional
        Layer of `adata` to use. None uses the layer of the same name as in the fit of the reference.
    key_added : str, optional
        Key of ``adata.obsm`` to write to, instead of the key of the reference.
    copy : bool, default=False
        Write into a copy, and return it.

    Returns
    -------
    AnnData or None
        The copy if ``copy=True``, otherwise None. ``.obsm["X_dpca"]`` is written into the copy or into `adata`.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)))
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> standout.tl.dpca(adata, "condition", target="stim")
    >>> new = AnnData(rng.normal(size=(7, 5)))
    >>> standout.tl.project(new, adata)
    >>> new.obsm["X_dpca"].shape
    (7, 2)
    """
    cells.check_annotated(adata, copy)
    cells.check_annotated(adata_ref, False)
    about, of_cells, of_genes = cells.fit_of(adata_ref, key, on_genes=True)
    cells.check_genes(adata.var_names)
    cells.check_genes(adata_ref.var_names, "adata_ref")
    filters, means = np.asarray(adata_ref.varm[of_genes]), np.asarray(adata_ref.var[f"{key}_mean"], dtype=np.float64)
    used = np.any(filters != 0.0, axis=1)
    names = adata_ref.var_names[used]
    places = adata.var_names.get_indexer(names)
    n_there, n_genes = int((places >= 0).sum()), int(about["n_genes"])
    if n_there < max(n_genes, len(names)):
        missing = f": {listed('gene', names[places < 0].tolist())}" if n_there < len(names) else ""
        problem = f"{n_there} of the {n_genes} genes of the fit are there{missing}"
        raise InvalidValueError(problem, advice="Fit the reference on genes that both have (mask_var).")
    layer = about["params"].get("layer") if layer is None else layer
    source = open_dataset(cells.rows_of(cells.layer_of(adata, layer), None, None), "the cells").select(places)
    scores = np.concatenate([batch.rows @ filters[used] - means[used] @ filters[used] for batch in source.batches()])
    result = adata.copy() if copy else adata
    result.obsm[of_cells if key_added is None else key_added] = scores
    return result if copy else None
