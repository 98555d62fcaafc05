"""Tools for annotated matrices of cells, by the conventions of scanpy: ``standout.tl.dpca(adata, ...)``.

The module is loaded when it is first used. It does not import anndata: the caller has made an AnnData already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import is_sparse
from standout._checks import check_known, check_whole
from standout._messages import (
    InvalidTypeError,
    InvalidValueError,
    listed,
    reject_too_few,
    require_extra,
    warn_user,
)
from standout.estimators import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA
from standout.io import BackedRows, word, words_of_array
from standout.moments import project as projected

__all__ = ["cpca", "dpca", "kernel_dpca", "project"]

_UNSET: Any = object()
# The names under which each method writes: scores of cells, filters of genes, and all else.
NAMES: dict[Any, tuple[str, str | None, str]] = {
    DiscriminativePCA: ("X_dpca", "dPCs", "dpca"),
    ContrastivePCA: ("X_cpca", "cPCs", "cpca"),
    KernelDiscriminativePCA: ("X_kernel_dpca", None, "kernel_dpca"),
}
# What a fitted model has that is worth keeping, by the name under which it is written.
FOUND = (
    *("eigenvalues", "target_variance", "background_variance", "weights", "shrinkage", "p_values", "smoothness"),
    *("held_out_ratio", "held_out_ratio_error", "alpha", "epsilon"),
)


def dpca(
    adata: Any,
    groupby: str,
    target: Any,
    background: Any = None,
    *,
    n_comps: int | None = None,
    subject: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = _UNSET,
    use_highly_variable: bool | None = None,
    min_cells: int = 10,
    key_added: str | None = None,
    copy: bool = False,
    **params: Any,
) -> Any:
    """What varies among the cells of one condition, and not among those of others?

    Discriminative PCA of the cells of one group against those of other groups, written into the AnnData as scanpy's
    own tools do. ``scanpy.pl.embedding(adata, basis="dpca")`` shows the result, and
    ``scanpy.pp.neighbors(adata, use_rep="X_dpca")`` goes on from it. So do `standout.pl` and `standout.get`.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, genes in columns; usually normalised and logarithmised. One that is backed by a file
        (``anndata.read_h5ad(path, backed="r")``) is read in slices of rows and never loaded. A sparse X stays sparse.
    groupby : str
        Column of ``adata.obs`` with the groups.
    target : str or sequence of str
        The target group. Several groups are taken together as one target.
    background : str or sequence of str, optional
        The background groups, each a background of its own. ``"rest"`` takes all cells of all other groups together
        as one background, unless there is a group of that name. None takes each other group that has `min_cells`
        cells as a background of its own, all with equal weights. Cells without a group belong to none.
    n_comps : int, optional
        Number of components, in scanpy's word; ``n_components`` is the same.
    subject : str, optional
        Column of ``adata.obs`` with the donor (patient, animal, sample) of each cell. Cells of a donor are not
        independent: folds, permutations and p-values then take whole donors. A donor may be in several groups.
    layer : str, optional
        Layer to use instead of X.
    use_rep : str, optional
        Key of ``adata.obsm`` to use instead of X, such as ``"X_pca"``. There are no genes then, and the filters and
        patterns are written into ``.uns``.
    mask_var : str, array of bool or None, optional
        Genes to use: a column of ``adata.var``, or a truth value for each gene; None takes all. By default
        ``"highly_variable"`` is used if ``adata.var`` has it, as in ``scanpy.pp.pca``.
    use_highly_variable : bool, optional
        An older word of scanpy: True is ``mask_var="highly_variable"``, False is ``mask_var=None``.
    min_cells : int, default=10
        Without a `background`, groups with fewer cells are left out, and a warning names them: as one of several
        backgrounds of equal weight, a stray group of two cells would count as much as one of thousands.
    key_added : str, optional
        Name under which everything is written, instead of the names below.
    copy : bool, default=False
        Write into a copy, and return it.
    **params
        Parameters of `DiscriminativePCA`: ``shrinkage``, ``background_weights``, ``robust``, ``test`` and so on.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. Into it, or into `adata`, is written:

        ``.obsm["X_dpca"]`` : ndarray of shape (n_obs, n_components)
            Scores of all cells of all groups, centred by the mean of the target.
        ``.varm["dPCs"]`` : ndarray of shape (n_vars, n_components)
            The filters (`components_`); zero for genes that were not used.
        ``.varm["dPCs_patterns"]`` : ndarray of shape (n_vars, n_components)
            The patterns (`patterns_`): what each component looks like in the data. Look at these for genes.
        ``.var["dpca_mean"]`` : float
            The mean of the target, which `project` takes off; zero for genes that were not used.
        ``.obs["dpca_weight"]`` : float
            With ``robust``: how much each cell counts, 1 for a typical one; NaN for cells that were not fitted.
        ``.var["dpca_chosen"]``, ``.var["dpca_frequency"]`` : with ``n_columns``
            Whether the components use a gene, and in which share of the folds it was chosen.
        ``.uns["dpca"]`` : dict
            ``params``; ``eigenvalues``, the ratio of the target's to the background's variance along each component;
            ``held_out_ratio``, the same on cells that were not fitted; ``target_variance``, ``background_variance`` (a
            row for each background), ``weights``, ``shrinkage``, and with ``test`` or ``n_components="auto"`` also
            ``p_values`` and ``edges``, what chance alone exceeds once in twenty times.

    See Also
    --------
    standout.DiscriminativePCA : The method.
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
    >>> adata.obsm["X_dpca"].shape, int(np.argmax(np.abs(adata.varm["dPCs"][:, 0])))
    ((200, 1), 3)
    """
    return _fitted(
        DiscriminativePCA,
        adata,
        _Choice(groupby, target, background, min_cells, layer, use_rep, mask_var, use_highly_variable, subject),
        _with_components(params, n_comps),
        key_added,
        copy,
    )


def cpca(
    adata: Any,
    groupby: str,
    target: Any,
    background: Any = None,
    *,
    n_comps: int | None = None,
    subject: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = _UNSET,
    use_highly_variable: bool | None = None,
    min_cells: int = 10,
    key_added: str | None = None,
    copy: bool = False,
    **params: Any,
) -> Any:
    """In which directions do the cells of one condition vary more than α times those of others?

    Contrastive PCA, written as `dpca` writes: ``X_cpca``, ``cPCs`` and ``cpca``. The result depends on α (``alpha``).

    Parameters
    ----------
    adata, groupby, target, background, n_comps, subject, layer, use_rep, mask_var, use_highly_variable, min_cells
        As in `dpca`.
    key_added, copy
        As in `dpca`.
    **params
        Parameters of `ContrastivePCA`.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. It is written under
        ``.obsm["X_cpca"]``, ``.varm["cPCs"]``, ``.var["cpca_mean"]`` and ``.uns["cpca"]``, with the ``alpha`` of it.

    See Also
    --------
    standout.ContrastivePCA : The method.

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
    >>> int(np.argmax(np.abs(adata.varm["cPCs"][:, 0]))), adata.uns["cpca"]["alpha"]
    (3, 2.0)
    """
    return _fitted(
        ContrastivePCA,
        adata,
        _Choice(groupby, target, background, min_cells, layer, use_rep, mask_var, use_highly_variable, subject),
        _with_components(params, n_comps),
        key_added,
        copy,
    )


def kernel_dpca(
    adata: Any,
    groupby: str,
    target: Any,
    background: Any = None,
    *,
    n_comps: int | None = None,
    subject: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = _UNSET,
    use_highly_variable: bool | None = None,
    min_cells: int = 10,
    key_added: str | None = None,
    copy: bool = False,
    **params: Any,
) -> Any:
    """In which nonlinear views do the cells of one condition vary, and not those of others?

    Kernel discriminative PCA, written as `dpca` writes. A kernel has no filters of genes, so that there is nothing in
    ``.varm``, and `project` cannot be used.

    Parameters
    ----------
    adata, groupby, target, background, n_comps, subject, layer, use_rep, mask_var, use_highly_variable, min_cells
        As in `dpca`.
    key_added, copy
        As in `dpca`.
    **params
        Parameters of `KernelDiscriminativePCA`.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. It is written under
        ``.obsm["X_kernel_dpca"]`` and ``.uns["kernel_dpca"]``.

    See Also
    --------
    standout.KernelDiscriminativePCA : The method.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)) * [4, 1, 1, 1, 1])
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> adata.X[100:, 3] *= 3
    >>> standout.tl.kernel_dpca(adata, "condition", "stim", "ctrl", n_comps=2, kernel="poly", degree=2)
    >>> adata.obsm["X_kernel_dpca"].shape
    (200, 2)
    """
    return _fitted(
        KernelDiscriminativePCA,
        adata,
        _Choice(groupby, target, background, min_cells, layer, use_rep, mask_var, use_highly_variable, subject),
        _with_components(params, n_comps),
        key_added,
        copy,
    )


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

    Gives the scores of new cells along the components of a reference that `dpca` or `cpca` has written, as
    ``scanpy.tl.ingest`` does for PCA. Genes are found by their names, and may be in another order.

    Parameters
    ----------
    adata : AnnData
        The new cells, normalised as the reference was.
    adata_ref : AnnData
        The reference, as `dpca` or `cpca` left it; it may have been written to a file and read again.
    key : str, default="dpca"
        Name in ``adata_ref.uns`` under which the reference was written: ``"dpca"``, ``"cpca"`` or its `key_added`.
    layer : str, optional
        Layer of `adata` to use instead of the one that was used in the reference.
    key_added : str, optional
        Key of ``adata.obsm`` to write to, instead of that of the reference.
    copy : bool, default=False
        Write into a copy, and return it.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. Into it, or into `adata`, ``.obsm["X_dpca"]`` is written.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> adata = AnnData(rng.normal(size=(200, 5)))
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    >>> standout.tl.dpca(adata, "condition", target="stim")
    >>> new = adata[:7, ::-1].copy()
    >>> del new.obsm["X_dpca"]
    >>> standout.tl.project(new, adata)
    >>> np.allclose(new.obsm["X_dpca"], adata.obsm["X_dpca"][:7])
    True
    """
    _check_annotated(adata, copy)
    _check_annotated(adata_ref, False)
    check_known(key, "key", adata_ref.uns, "in adata_ref.uns", "key")
    of_cells, of_genes, about = names_of(adata_ref, key)
    if of_genes is None:
        raise InvalidValueError(
            "has no filters of genes in adata_ref",
            parameter="key",
            value=key,
            advice="Choose what tl.dpca or tl.cpca has written of genes: kernels and use_rep have no filters of genes.",
        )
    filters, means = np.asarray(adata_ref.varm[of_genes]), np.asarray(adata_ref.var[f"{key}_mean"], dtype=np.float64)
    used = np.any(filters != 0.0, axis=1)
    if used.sum() != about["n_genes"]:
        raise InvalidValueError(
            "adata_ref has {given} of the {limit} genes of the fit",
            given=int(used.sum()),
            limit=int(about["n_genes"]),
            advice="Give the reference with all of its genes.",
        )
    names = adata_ref.var_names[used]
    places = adata.var_names.get_indexer(names)
    if (places < 0).any():
        raise InvalidValueError(
            "adata lacks {n_missing} of the {limit} genes of the reference: {genes}",
            n_missing=int((places < 0).sum()),
            limit=len(names),
            genes=listed("gene", names[places < 0].tolist()),
            advice="Fit the reference on genes that both have (mask_var).",
        )
    layer = about["params"].get("layer") if layer is None else layer
    result = adata.copy() if copy else adata
    # Genes are taken in the order of the new cells, which a file can be read in; the filters follow.
    genes = np.zeros(adata.n_vars, dtype=bool)
    genes[places] = True
    order = np.argsort(places)
    rows = _rows(_matrix(adata, layer), None, genes)
    filters, means = filters[used][order], means[used][order]
    parts = rows.parts() if isinstance(rows, BackedRows) else [rows]
    result.obsm[key_added or of_cells] = np.concatenate([projected(part, means, filters) for part in parts])
    return result if copy else None


@dataclass(frozen=True, eq=False)
class _Choice:
    """Which cells are compared, and by which numbers."""

    groupby: str
    target: Any
    background: Any
    min_cells: int
    layer: str | None
    use_rep: str | None
    mask_var: Any
    use_highly_variable: bool | None
    subject: str | None

    def cells(self, adata: Any) -> tuple[dict[str, npt.NDArray[np.bool_]], dict[str, Any]]:
        """Give the cells of the target and of each background, and what is to be remembered of the choice."""
        check_known(self.groupby, "groupby", adata.obs.columns, "a column of adata.obs", "column")
        groups = words_of_array(adata.obs[self.groupby].astype(object))
        known = sorted(set(groups.tolist()) - {""})
        targets = _known_groups(self.target, "target", known, self.groupby)
        chosen = {"the target": np.isin(groups, targets)}
        others = [name for name in known if name not in targets]
        pooled = isinstance(self.background, str) and self.background == "rest" and "rest" not in known
        if self.background is None:
            backgrounds = _large_enough(others, groups, check_whole(self.min_cells, "min_cells"))
        else:
            backgrounds = others if pooled else _known_groups(self.background, "background", known, self.groupby)
        both = [name for name in backgrounds if name in targets]
        if both:
            problem = "{groups} is both target and background"
            raise InvalidValueError(problem, groups=listed("group", both), advice="Choose different ones.")
        if not others:
            raise InvalidValueError(
                "adata.obs[{groupby!r}] has no group beside the target {groups}, so that there is no background",
                groupby=self.groupby,
                groups=listed("group", targets),
                advice="Choose another column or fewer groups.",
            )
        if pooled:
            chosen["the background 'rest'"] = np.isin(groups, backgrounds)
        else:
            chosen |= {f"background {name!r}": groups == name for name in backgrounds}
        for name, cells in chosen.items():
            if cells.sum() < 2:
                reject_too_few(name, int(cells.sum()), 2)
        about = {"groupby": self.groupby, "target": targets, "background": "rest" if pooled else backgrounds}
        return chosen, {**about, "subject": self.subject}

    def subjects(self, adata: Any, cells: Sequence[npt.NDArray[np.bool_]]) -> dict[str, Any]:
        """Give the donors of the cells of the target and of each background, as parameters of `fit`."""
        if self.subject is None:
            return {}
        check_known(self.subject, "subject", adata.obs.columns, "a column of adata.obs", "column")
        donors = words_of_array(adata.obs[self.subject].astype(object))
        own, *others = (donors[some] for some in cells)
        return {"groups": own, "background_groups": others}

    def rows(self, adata: Any) -> tuple[Any, npt.NDArray[np.bool_] | None, dict[str, Any]]:
        """Give the matrix, the genes of it that are used (None for all), and what is to be remembered."""
        if self.use_rep is not None:
            check_known(self.use_rep, "use_rep", adata.obsm, "in adata.obsm", "key")
            if self.layer is not None:
                raise InvalidValueError(
                    "is given together with {p.layer}", parameter="use_rep", value=self.use_rep, advice="Choose one."
                )
            matrix = adata.obsm[self.use_rep]
            return (matrix if is_sparse(matrix) else np.asarray(matrix)), None, {"use_rep": self.use_rep}
        mask = self.mask_var
        if self.use_highly_variable is not None:
            if mask is not _UNSET:
                advice = "Leave {p.use_highly_variable} out."
                raise InvalidValueError(
                    "is given together with {p.mask_var}", parameter="use_highly_variable", advice=advice
                )
            mask = "highly_variable" if self.use_highly_variable else None
        genes, mask = _genes(adata, mask)
        return _matrix(adata, self.layer), genes, {"layer": self.layer, "mask_var": mask}


def _fitted(method: Any, adata: Any, choice: _Choice, params: dict[str, Any], key: str | None, copy: bool) -> Any:
    """Fit a method to the cells that were chosen, and write what it found."""
    require_extra("anndata", "h5ad", "standout.tl")
    _check_annotated(adata, copy)
    cells, about = choice.cells(adata)
    matrix, genes, how = choice.rows(adata)
    result = adata.copy() if copy else adata
    of_target, *of_backgrounds = (_rows(matrix, some, genes) for some in cells.values())
    # Arrays in every case: a frame would have an index of its own.
    model = method(**params).set_output(transform="default")
    model.fit(of_target, background=of_backgrounds, **choice.subjects(adata, list(cells.values())))
    scores = model.transform(_rows(matrix, None, genes))
    _store(result, model, scores, genes, {**about, **how, **params}, key)
    if hasattr(model, "robust_weights_"):
        _store_weights(result, model, matrix, list(cells.values()), genes, key)
    return result if copy else None


def _store_weights(
    adata: Any,
    model: Any,
    matrix: Any,
    cells: Sequence[npt.NDArray[np.bool_]],
    genes: npt.NDArray[np.bool_] | None,
    key: str | None,
) -> None:
    """Write how much each cell counts; NaN for cells that were not fitted. Those of files are weighed again."""
    weights = np.full(adata.n_obs, np.nan)
    for number, (some, known) in enumerate(zip(cells, model.row_weights_, strict=True)):
        weights[some] = model.weigh(_rows(matrix, some, genes), dataset=number) if known is None else known
    adata.obs[f"{NAMES[type(model)][2] if key is None else key}_weight"] = weights


def _with_components(params: dict[str, Any], n_comps: int | None) -> dict[str, Any]:
    """Give the parameters with scanpy's number of components under our name for it."""
    if n_comps is None:
        return params
    if "n_components" in params:
        problem, advice = "is given together with {p.n_components}, which is the same", "Leave one out."
        raise InvalidValueError(problem, parameter="n_comps", value=n_comps, advice=advice)
    return {"n_components": n_comps, **params}


def _check_annotated(adata: Any, copy: bool) -> None:
    """Refuse an object that is no AnnData, and one into which no result can be written."""
    if not all(hasattr(adata, name) for name in ("obs", "var", "obsm", "varm", "uns", "n_obs", "n_vars")):
        raise InvalidTypeError(
            "adata is a {kind}, but an AnnData is needed",
            kind=type(adata).__name__,
            advice="Use DiscriminativePCA for arrays.",
        )
    if adata.isbacked and (copy or adata.is_view):
        raise InvalidValueError(
            "adata is backed by a file: no result can be written into a copy or a view of it",
            advice="Leave out {p.copy} and give the whole AnnData, or load it with adata.to_memory().",
        )


def _large_enough(names: Sequence[str], groups: npt.NDArray[np.object_], least: int) -> list[str]:
    """Leave groups of too few cells out, and say so."""
    counts = {name: int(np.sum(groups == name)) for name in names}
    small = [name for name in names if counts[name] < least]
    if len(small) == len(names) > 0:
        raise InvalidValueError(
            "no group beside the target has {limit} cells: the largest has {largest}",
            limit=least,
            largest=max(counts.values()),
            advice="Use {p.background:rest}, which takes them together, name the groups, or lower {p.min_cells}.",
        )
    if small:
        warn_user(
            "{groups} left out of the backgrounds: fewer than {limit} cells",
            groups=listed("group", [f"{name} ({counts[name]})" for name in small]),
            limit=least,
            advice="Use {p.background:rest} to take all other cells together, or name the groups.",
        )
    return [name for name in names if name not in small]


def _known_groups(given: Any, parameter: str, known: Sequence[str], groupby: str) -> list[str]:
    """Check the names of groups, written as the groups are: 1.0 is the group 1."""
    several = not isinstance(given, str) and hasattr(given, "__iter__")
    names = [word(name) for name in (given if several else [given])]
    if not names or len(set(names)) < len(names):
        problem, advice = (
            "is empty or has the same group twice",
            "Give the name of one group, or of several, each once.",
        )
        raise InvalidValueError(problem, parameter=parameter, value=names, advice=advice)
    for name in names:
        check_known(name, parameter, known, f"a group of adata.obs[{groupby!r}]", "group")
    return names


def _genes(adata: Any, mask_var: Any) -> tuple[npt.NDArray[np.bool_] | None, Any]:
    """Give the genes to use, None for all, and what is to be remembered of the choice."""
    if mask_var is _UNSET:
        mask_var = "highly_variable" if "highly_variable" in adata.var.columns else None
    if mask_var is None:
        return None, None
    name = "mask_var"
    if isinstance(mask_var, str):
        check_known(mask_var, "mask_var", adata.var.columns, "a column of adata.var", "column")
        name = f"adata.var[{mask_var!r}]"
    genes = np.asarray(adata.var[mask_var] if isinstance(mask_var, str) else mask_var)
    if genes.dtype != np.bool_ or genes.shape != (adata.n_vars,) or not genes.any():
        raise InvalidValueError(
            "{name} has shape {shape}, type {dtype} and {n_true} true value(s), but one truth value for each of the "
            "{limit} genes is needed, and one gene at least",
            name=name,
            shape=genes.shape,
            dtype=genes.dtype,
            n_true=np.count_nonzero(genes),
            limit=adata.n_vars,
            advice="Give the name of a column of adata.var, an array of bool, or {v.None} for all genes.",
        )
    return genes, mask_var if isinstance(mask_var, str) else genes


def _matrix(adata: Any, layer: str | None) -> Any:
    if layer is not None:
        return adata.layers[check_known(layer, "layer", adata.layers, "in adata.layers", "layer")]
    if adata.X is None:
        raise InvalidValueError("adata.X is empty", advice="Name the layer that is meant with {p.layer}.")
    return adata.X


def _rows(matrix: Any, cells: npt.NDArray[np.bool_] | None, genes: npt.NDArray[np.bool_] | None) -> Any:
    """Give some cells and genes: in memory as they are, of a file as a source that is read in slices."""
    in_memory = isinstance(matrix, np.ndarray) or is_sparse(matrix)
    # A dataset of h5py knows its file, a sparse one of anndata its group.
    if not in_memory and (hasattr(matrix, "file") or hasattr(matrix, "group")):
        return BackedRows(matrix, cells, genes)
    rows = matrix if cells is None else matrix[cells]
    return rows if genes is None else rows[:, genes]


def names_of(adata: Any, key: str) -> tuple[str, str | None, Any]:
    """Give the names under which a fit was written: of cells, of genes (None if there are none), and all else."""
    about = adata.uns[key]
    written = {of_fit: (of_cells, of_genes) for of_cells, of_genes, of_fit in NAMES.values()}
    of_cells, of_genes = written.get(key, (key, key))
    return of_cells, of_genes if of_genes in adata.varm else None, about


def _store(
    adata: Any, model: Any, scores: Any, genes: npt.NDArray[np.bool_] | None, about: dict[str, Any], key: str | None
) -> None:
    """Write what was found, under the names that scanpy would use."""
    of_cells, of_genes, of_fit = NAMES[type(model)] if key is None else (key, key, key)
    found = {name: getattr(model, f"{name}_", None) for name in FOUND}
    if hasattr(model, "component_test_"):
        test = model.component_test_
        found |= {"tested_ratios": test.ratios, "edges": test.edges, "level": test.level}
    adata.obsm[of_cells] = scores
    if "use_rep" in about and hasattr(model, "patterns_"):
        found |= {"components": model.components_, "patterns": model.patterns_, "mean": model.mean_}
    elif hasattr(model, "patterns_"):
        used = slice(None) if genes is None else genes
        filters, patterns = np.zeros((2, adata.n_vars, model.n_components_))
        filters[used], patterns[used] = model.components_.T, model.patterns_.T
        mean = np.zeros(adata.n_vars)
        mean[used] = model.mean_
        adata.varm[of_genes] = filters
        adata.varm[f"{of_genes}_patterns"] = patterns
        adata.var[f"{of_fit}_mean"] = mean
        if hasattr(model, "columns_"):
            chosen = np.zeros(adata.n_vars, dtype=bool)
            chosen[used] = model.get_support()
            adata.var[f"{of_fit}_chosen"] = chosen
        if hasattr(model, "column_frequency_"):
            frequency = np.zeros(adata.n_vars)
            frequency[used] = model.column_frequency_
            adata.var[f"{of_fit}_frequency"] = frequency
        found["n_genes"] = int(np.any(filters != 0.0, axis=1).sum())
    # A generator of random numbers cannot be stored.
    kept = {name: _storable(value) for name, value in about.items() if name != "random_state"}
    fit = {"params": {name: value for name, value in kept.items() if value is not None}}
    adata.uns[of_fit] = {**fit, **{name: value for name, value in found.items() if value is not None}}


def _storable(value: Any) -> Any:
    """Give a value in a form that AnnData can write to a file; None cannot be written."""
    if value is None or is_sparse(value) or isinstance(value, str | bool | int | float | np.generic | np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {str(name): _storable(part) for name, part in value.items() if part is not None}
    if hasattr(value, "__iter__"):
        parts = list(value)
        kind = str if any(isinstance(part, str) for part in parts) else int | float | np.number
        plain = all(isinstance(part, kind) for part in parts)
        return parts if plain else [str(part) for part in parts]
    return str(value)
