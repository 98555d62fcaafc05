"""Annotated matrices of cells: which cells are the target and the backgrounds, and which genes and layer are meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._validation._tables import in_short, short


def check_annotated(adata: Any) -> None:
    """Refuse what is no AnnData."""
    if not all(hasattr(adata, name) for name in ("obs", "var", "obsm", "varm", "uns", "n_obs", "n_vars")):
        raise TypeError(
            f"adata is a {type(adata).__name__}, but an AnnData is needed. Use DiscriminativePCA for arrays."
        )


def check_no_copy_of_backed(copy: bool, backed: bool) -> None:
    """Refuse to copy what is not in memory."""
    if copy and backed:
        raise ValueError(
            "copy=True is given, but adata is backed by a file, and a copy would need a file of its own. "
            "Leave out copy, or load the data with adata.to_memory()."
        )


def check_no_backed_view(backed_view: bool) -> None:
    """Refuse some rows of a file, into which nothing can be written."""
    if backed_view:
        raise ValueError(
            "adata is a view of an AnnData that is backed by a file, and no result can be written into it. Give the "
            "whole AnnData, with the groups that are meant in target and background, or load the view with "
            "adata.to_memory()."
        )


def check_groupby(groupby: Any, known: Sequence[str]) -> str:
    """Check the name of the column of obs that holds the groups."""
    return _check_known(groupby, known, "groupby", "a column of adata.obs, which has", "columns")


def check_layer(layer: Any, known: Sequence[str]) -> str:
    """Check the name of a layer."""
    return _check_known(layer, known, "layer", "in adata.layers, which has", "layers")


def check_cell_groups(
    target: Any, background: Any, groups: npt.NDArray[np.object_], groupby: str
) -> tuple[list[str], list[str]]:
    """Check which groups are the target and which are backgrounds, one each; all others, if none is named."""
    known = sorted(set(groups.tolist()) - {""})
    chosen = _check_groups(target, "target", known, groupby)
    others = (
        [name for name in known if name not in chosen]
        if background is None
        else _check_groups(background, "background", known, groupby)
    )
    both = [name for name in others if name in chosen]
    if both:
        raise ValueError(f"{in_short(both, 'group')} is both target and background. Choose different ones.")
    if not others:
        raise ValueError(
            f"adata.obs[{groupby!r}] has no group beside the target {in_short(chosen, 'group')}, so that there is no "
            "background. Choose another column or fewer groups."
        )
    return chosen, others


def check_n_cells(counts: dict[str, int], least: int = 2) -> None:
    """Refuse groups of too few cells."""
    for name, count in counts.items():
        if count < least:
            raise ValueError(f"there are too few cells in {name}: {count}, but the least is {least}. Choose others.")


def check_genes(mask: Any, known: Sequence[str], n_vars: int) -> npt.NDArray[np.bool_] | str:
    """Check which genes are to be used: the name of a column of var, or a truth value for each gene."""
    if isinstance(mask, str):
        return _check_known(mask, known, "mask_var", "a column of adata.var, which has", "columns")
    genes = np.asarray(mask)
    if genes.dtype != np.bool_ or genes.shape != (n_vars,):
        raise ValueError(
            f"mask_var has shape {genes.shape} and type {genes.dtype}, but one truth value for each of the {n_vars} "
            "genes is needed. Give the name of a column of adata.var, an array of bool, or None for all genes."
        )
    return genes


def check_gene_mask(genes: npt.NDArray[Any], name: str) -> npt.NDArray[np.bool_]:
    """Check that genes are chosen by truth values, and that some are."""
    if genes.dtype != np.bool_:
        raise ValueError(
            f"{name} has values of type {genes.dtype}, but truth values are needed. Compare with something, or choose "
            "another column."
        )
    if not genes.any():
        raise ValueError(f"{name} leaves no gene, but the least is 1. Choose others, or None for all genes.")
    return genes


def reject_by_columns(layout: str) -> None:
    """Refuse to read rows of a matrix that is stored by columns, of which each takes the whole file."""
    if layout == "csc":
        raise ValueError(
            "adata.X is backed by a file that has it by columns (CSC), so that no row can be read without all others. "
            "Write it by rows (CSR), or load it with adata.to_memory()."
        )


def check_matrix_present(matrix: Any) -> None:
    """Refuse an AnnData without X."""
    if matrix is None:
        raise ValueError("adata.X is empty. Name the layer that is meant with layer.")


def _check_known(name: Any, known: Sequence[str], option: str, place: str, noun: str) -> str:
    if not isinstance(name, str) or name not in known:
        close = get_close_matches(str(name), known, n=1)
        meant = f"Is {short(close[0])!r} meant?" if close else "Choose among these."
        has = in_short(known, noun.removesuffix("s")) if known else f"no {noun}"
        raise ValueError(f"{option}={short(repr(name))} is not {place} {has}. {meant if known else 'Check the name.'}")
    return name


def _check_groups(names: Any, option: str, known: Sequence[str], groupby: str) -> list[str]:
    several = [str(name) for name in names] if isinstance(names, list | tuple | set | np.ndarray) else [str(names)]
    if not several:
        raise ValueError(f"{option} is empty. Give the name of one group or of several.")
    if len(set(several)) < len(several):
        raise ValueError(f"{option} has the same group twice: {in_short(several, 'group')}. Give each one once.")
    for name in several:
        if name not in known:
            has = f"{len(known)} group(s): {in_short(known, 'group')}" if known else "no groups at all"
            raise ValueError(f"{option} has {short(name)!r}, but adata.obs[{groupby!r}] has {has}. Choose among these.")
    return several
