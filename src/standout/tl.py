"""Tools for annotated matrices of cells, by the conventions of scanpy: ``standout.tl.dpca(adata, ...)``.

The module is loaded when it is first used. It does not import anndata: the caller has made an AnnData already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import is_sparse
from standout._checks import check_known
from standout._messages import InvalidTypeError, InvalidValueError, listed, reject_too_few, require_extra
from standout.estimators import DiscriminativePCA
from standout.io import BackedRows, word, words_of_array

__all__ = ["dpca"]

_UNSET: Any = object()


def dpca(
    adata: Any,
    groupby: str,
    target: Any,
    background: Any = None,
    *,
    subject: str | None = None,
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
        (``anndata.read_h5ad(path, backed="r")``) is read in slices of rows and never loaded. A sparse X stays sparse.
    groupby : str
        Column of ``adata.obs`` with the groups.
    target : str or list of str
        The target group. Several groups are taken together as one target.
    background : str or list of str, optional
        The background groups, each a background of its own. None takes all groups except the target. Cells without a
        group belong to none.
    subject : str, optional
        Column of ``adata.obs`` with the donor (patient, animal, sample) of each cell. Cells of a donor are not
        independent: folds, permutations and p-values then take whole donors. A donor may be in several groups.
    layer : str, optional
        Layer to use instead of X.
    mask_var : str, array of bool or None, optional
        Genes to use: a column of ``adata.var``, or a truth value for each gene; None takes all. By default
        ``"highly_variable"`` is used if ``adata.var`` has it, as in ``scanpy.pp.pca``.
    key_added : str, optional
        Name under which everything is written, instead of the names below.
    copy : bool, default=False
        Write into a copy, and return it.
    **params
        Parameters of `DiscriminativePCA`: ``n_components``, ``shrinkage``, ``background_weights``, ``test`` and so on.

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
    _check_annotated(adata, copy)
    check_known(groupby, "groupby", adata.obs.columns, "a column of adata.obs", "column")
    groups = words_of_array(adata.obs[groupby].astype(object))
    targets, backgrounds = _chosen_groups(target, background, groups, groupby)
    genes, mask = _genes(adata, mask_var)
    matrix = _matrix(adata, layer)
    chosen = {
        "the target": np.isin(groups, targets),
        **{f"background {name!r}": groups == name for name in backgrounds},
    }
    for name, cells in chosen.items():
        if cells.sum() < 2:
            reject_too_few(name, int(cells.sum()), 2)
    result = adata.copy() if copy else adata
    of_target, *of_backgrounds = (_rows(matrix, cells, genes) for cells in chosen.values())
    # Arrays in every case: a frame would have an index of its own.
    model = DiscriminativePCA(**params).set_output(transform="default")
    model.fit(of_target, background=of_backgrounds, **_subjects(adata, subject, list(chosen.values())))
    about = {"groupby": groupby, "target": targets, "background": backgrounds, "layer": layer, "mask_var": mask}
    about["subject"] = subject
    _store(result, model, model.transform(_rows(matrix, None, genes)), genes, {**about, **params}, key_added)
    return result if copy else None


def _subjects(adata: Any, subject: str | None, chosen: Sequence[npt.NDArray[np.bool_]]) -> dict[str, Any]:
    """Give the donors of the cells of the target and of each background."""
    if subject is None:
        return {}
    check_known(subject, "subject", adata.obs.columns, "a column of adata.obs", "column")
    donors = words_of_array(adata.obs[subject].astype(object))
    own, *others = (donors[cells] for cells in chosen)
    return {"groups": own, "background_groups": others}


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


def _chosen_groups(
    target: Any, background: Any, groups: npt.NDArray[np.object_], groupby: str
) -> tuple[list[str], list[str]]:
    """Check the groups of the target and of the backgrounds; without a background, take all other groups."""
    known = sorted(set(groups.tolist()) - {""})
    chosen = _known_groups(target, "target", known, groupby)
    others = (
        [name for name in known if name not in chosen]
        if background is None
        else _known_groups(background, "background", known, groupby)
    )
    both = [name for name in others if name in chosen]
    if both:
        raise InvalidValueError(
            "{groups} is both target and background", groups=listed("group", both), advice="Choose different ones."
        )
    if not others:
        raise InvalidValueError(
            "adata.obs[{groupby!r}] has no group beside the target {groups}, so that there is no background",
            groupby=groupby,
            groups=listed("group", chosen),
            advice="Choose another column or fewer groups.",
        )
    return chosen, others


def _known_groups(given: Any, parameter: str, known: Sequence[str], groupby: str) -> list[str]:
    """Check the names of groups, written as the groups are: 1.0 is the group 1."""
    names = [word(name) for name in (given if isinstance(given, list | tuple | set | np.ndarray) else [given])]
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
    # A file can store neither None nor generators of random numbers.
    kept = {name: value for name, value in about.items() if value is not None and name != "random_state"}
    adata.uns[of_fit] = {"params": kept, **{name: value for name, value in found.items() if value is not None}}
