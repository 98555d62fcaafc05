"""Make the datasets of a fit from an AnnData, and write the results of the fit into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, is_sparse
from standout._messages import InvalidTypeError, InvalidValueError, listed, require_extra
from standout._options import LINEAR
from standout.estimators import ESTIMATORS
from standout.sources import Source, open_dataset
from standout.sources._form import known as known
from standout.sources._form import word

Mask = npt.NDArray[np.bool_]
UNSET: Any = object()
# Names of the fitted attributes that are written into the AnnData, without the underscore at the end.
FOUND = (
    *("ratio", "ratio_error", "ratio_interval", "spread", "shift", "eigenvalues", "background_weights"),
    *("shrinkage", "alpha", "epsilon", "n_samples", "background_n_samples", "n_folds"),
)
# Parameters that choose cells and genes. All others are parameters of the estimator.
CHOICE = ("groupby", "target", "background", "layer", "use_rep", "mask_var", "subject", "adjust")
# Number of cells in a slice of a file.
SLICE = 4096


def cells_of(
    adata: Any, groupby: str, target: Any, background: Any = None, **_: Any
) -> tuple[dict[str, Any], list[Mask]]:
    """Return the chosen conditions as parameters, and masks of the cells of the target and of each background."""
    labels = words(adata, groupby, "groupby")
    names = sorted(set(labels.tolist()) - {""})
    what = f"a condition of adata.obs[{groupby!r}]"
    targets = _conditions(target, "target", names, what)
    others = [name for name in names if name not in targets]
    if not others:
        problem = f"adata.obs[{groupby!r}] has no condition beside the target, so that there is no background"
        raise InvalidValueError(problem, advice="Choose another column.")
    chosen = {"groupby": groupby, "target": targets, "background": "rest"}
    if background is None or (isinstance(background, str) and background == "rest" and "rest" not in names):
        return chosen, [np.isin(labels, targets), np.isin(labels, others)]
    backgrounds = _conditions(background, "background", others, f"{what} beside the target")
    return {**chosen, "background": backgrounds}, [np.isin(labels, targets), *(labels == name for name in backgrounds)]


def matrix_of(
    adata: Any, layer: str | None = None, use_rep: str | None = None, mask_var: Any = None, **_: Any
) -> tuple[Any, Mask | None, dict[str, Any]]:
    """Return the matrix, a mask of the genes that are used (None for all), and the parameters to store."""
    if use_rep is None:
        genes, mask = _genes(adata, mask_var)
        return layer_of(adata, layer), genes, {"layer": layer, "mask_var": mask}
    known(use_rep, "use_rep", adata.obsm, "in adata.obsm")
    if layer is not None:
        problem = "is given together with `layer`"
        raise InvalidValueError(problem, parameter="use_rep", value=use_rep, advice="Choose one.")
    found = adata.obsm[use_rep]
    return (found if is_sparse(found) else np.asarray(found)), None, {"use_rep": use_rep}


def _beside(
    adata: Any, cells: list[Mask], subject: str | None = None, adjust: Sequence[str] | None = None, **_: Any
) -> dict[str, Any]:
    """Return the subjects and covariates of the cells, as parameters of `fit`."""
    facts: dict[str, Any] = {}
    if subject is not None:
        facts["groups"] = words(adata, subject, "subject")
    if adjust is not None:
        for name in adjust:
            known(name, "adjust", adata.obs.columns, "a column of adata.obs")
        facts["adjust"] = adata.obs[list(adjust)]
    of_backgrounds = {f"background_{name}": [fact[some] for some in cells[1:]] for name, fact in facts.items()}
    return {name: fact[cells[0]] for name, fact in facts.items()} | of_backgrounds


def names_of(method: str) -> tuple[str, str, str]:
    """Return the keys of the scores (obsm), the components (varm) and other results (uns), named as in scanpy."""
    return f"X_{method}", f"{method.removesuffix('pca')}PCs", method


def fitted(method: str, adata: Any, params: Mapping[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    """Fit a method to the chosen cells; return the model, the datasets, and their subjects and covariates.

    `params` has the parameters of `tl.dpca` and of the method.
    """
    matrix, genes, _ = matrix_of(adata, **params)
    cells = cells_of(adata, **params)[1]
    datasets, facts = [rows_of(matrix, some, genes) for some in cells], _beside(adata, cells, **params)
    # `transform` must return arrays, because a frame would have another index than the AnnData.
    model = ESTIMATORS[method](**{name: value for name, value in params.items() if name not in CHOICE})
    model.set_output(transform="default").fit(datasets[0], background=datasets[1:], **facts)
    return model, datasets, facts


def fit_and_store(method: str, adata: Any, params: dict[str, Any], key: str | None, copy: bool) -> Any:
    """Fit a method to the chosen cells, and write the results under scanpy's names."""
    require_extra("anndata", "h5ad", "standout.tl")
    check_annotated(adata, copy)
    model, datasets, facts = fitted(method, adata, params)
    (chosen, cells), (matrix, genes, how) = cells_of(adata, **params), matrix_of(adata, **params)
    result = adata.copy() if copy else adata
    of_cells, of_genes, of_fit = names_of(method) if key is None else (key, key, key)
    scores = np.array(model.transform(rows_of(matrix, None, genes)), dtype=np.float64)
    if model.held_out_ is not None:
        beside = {name: value for name, value in facts.items() if name.endswith("adjust")}
        held_out = model.held_out_scores(datasets[0], background=datasets[1:], **beside)
        for some, part in zip(cells, held_out, strict=True):
            scores[some] = part
    result.obsm[of_cells] = scores
    if getattr(model, "row_weights_", None) is not None:
        result.obs[f"{of_fit}_weight"] = np.nan
        for some, part in zip(cells, model.row_weights_, strict=True):
            result.obs.loc[some, f"{of_fit}_weight"] = part
    found = {name: getattr(model, f"{name}_", None) for name in FOUND} | {"method": method}
    columns = _columns_of(model)
    if params.get("use_rep") is not None:
        found |= columns
    else:
        for name, value in columns.items():
            whole = np.zeros((adata.n_vars, *value.shape[:-1]), dtype=value.dtype)
            whole[slice(None) if genes is None else genes] = np.nan_to_num(value.T)
            if value.ndim == 1:
                result.var[f"{of_fit}_{name}"] = whole
            else:
                result.varm[of_genes if name == "components" else f"{of_genes}_{name}"] = whole
        found["n_genes"] = np.any(columns["components"] != 0.0, axis=0).sum() if "components" in columns else None
    # A generator of random numbers cannot be stored.
    found["params"] = {**params, "mask_var": None, **chosen, **how, "random_state": None}
    result.uns[of_fit] = {name: _storable(value) for name, value in found.items() if value is not None}
    return result if copy else None


def _columns_of(model: Any) -> dict[str, npt.NDArray[Any]]:
    """Return the results of a model that have a value for each column."""
    # The components of a kernel are not directions of columns.
    linear = ("components", "mean") if model.method in LINEAR else ()
    columns = {name: getattr(model, f"{name}_", None) for name in (*linear, "correlations")}
    means = getattr(model, "mean_differences_", None)
    if means is not None:
        columns |= {"mean_effect": means.effect, "mean_q_value": means.q_value}
    return {name: np.asarray(value) for name, value in columns.items() if value is not None}


def fit_of(adata: Any, key: str, *, on_genes: bool = False) -> tuple[Any, str, str]:
    """Return the results of a fit in uns, and the keys of its scores and of its components.

    If `on_genes`, refuse a fit without components of genes.
    """
    fits = [name for name, about in adata.uns.items() if isinstance(about, Mapping) and "ratio" in about]
    known(key, "key", fits, "a fit of standout.tl in adata.uns")
    of_cells, of_genes, _ = names_of(key) if key in ESTIMATORS else (key, key, key)
    if on_genes and of_genes not in adata.varm:
        advice = "Use the result of tl.dpca or tl.cpca on genes: kernels and use_rep have no components of genes."
        raise InvalidValueError("has no components of genes", parameter="key", value=key, advice=advice)
    return adata.uns[key], of_cells, of_genes


class Backed(Source):
    """Some cells and genes of a matrix in a file, which is read in slices."""

    def __init__(self, matrix: Any, cells: Mask | None, genes: Mask | None) -> None:
        self.name, self._matrix, self._genes = "the cells", matrix, slice(None) if genes is None else genes
        self._cells = np.ones(matrix.shape[0], dtype=bool) if cells is None else cells
        self.n_rows, self.width = int(self._cells.sum()), int(matrix.shape[1] if genes is None else genes.sum())

    def _read(self) -> Iterator[Rows]:
        for start in range(0, len(self._cells), SLICE):
            chosen = self._cells[start : start + SLICE]
            if chosen.any():
                block = self._matrix[start : start + SLICE][chosen][:, self._genes]
                yield open_dataset(block, self.name).loaded().rows


def rows_of(matrix: Any, cells: Mask | None, genes: Mask | None) -> Any:
    """Return some cells and genes: an array if the matrix is in memory, a source if it is in a file."""
    # A matrix in a file is a dataset of h5py, with the attribute `file`, or a sparse dataset of anndata, with `group`.
    if hasattr(matrix, "file") or hasattr(matrix, "group"):
        return Backed(matrix, cells, genes)
    rows = matrix if cells is None else matrix[cells]
    return rows if genes is None else rows[:, genes]


def layer_of(adata: Any, layer: str | None) -> Any:
    """Return a layer, or X if `layer` is None."""
    found = adata.X if layer is None else adata.layers[known(layer, "layer", adata.layers, "in adata.layers")]
    if found is None:
        raise InvalidValueError("adata.X is empty", advice="Name a layer with `layer`.")
    return found


def _genes(adata: Any, mask_var: Any) -> tuple[Mask | None, Any]:
    """Return a mask of the genes to use (None for all), and the choice in the form in which it is stored."""
    if mask_var is UNSET:
        mask_var = "highly_variable" if "highly_variable" in adata.var.columns else None
    if mask_var is None:
        return None, None
    if isinstance(mask_var, str):
        known(mask_var, "mask_var", adata.var.columns, "a column of adata.var")
    genes = np.asarray(adata.var[mask_var] if isinstance(mask_var, str) else mask_var)
    if genes.dtype != np.bool_ or genes.shape != (adata.n_vars,) or not genes.any():
        problem = f"has shape {genes.shape}, type {genes.dtype} and {np.count_nonzero(genes)} true values"
        advice = f"Give a truth value for each of the {adata.n_vars} genes, the name of a column of adata.var, or None."
        raise InvalidValueError(problem, parameter="mask_var", advice=advice)
    return genes, mask_var if isinstance(mask_var, str) else genes


def words(adata: Any, column: str, parameter: str) -> npt.NDArray[Any]:
    """Return a column of obs as words: 1.0 as 1, and missing values as empty strings."""
    known(column, parameter, adata.obs.columns, "a column of adata.obs")
    return np.array([word(value) for value in adata.obs[column].astype(object)], dtype=object)


def _conditions(given: Any, parameter: str, names: Sequence[str], what: str) -> list[str]:
    """Return the names of conditions as words. Refuse unknown and repeated names."""
    several = not isinstance(given, str) and hasattr(given, "__iter__")
    found = [word(name) for name in (given if several else [given])]
    if not found or len(set(found)) < len(found):
        problem = "is empty or has the same condition twice"
        raise InvalidValueError(problem, parameter=parameter, value=found, advice="Name each condition once.")
    for name in found:
        known(name, parameter, names, what)
    return found


def check_annotated(adata: Any, copy: bool) -> None:
    """Refuse an object that is not an AnnData, or an AnnData into which no result can be written."""
    if not all(hasattr(adata, name) for name in ("obs", "var", "obsm", "varm", "uns", "n_obs", "n_vars")):
        problem = f"adata is a {type(adata).__name__}, but an AnnData is needed"
        raise InvalidTypeError(problem, advice="Use DiscriminativePCA for arrays.")
    if adata.isbacked and (copy or adata.is_view):
        problem = "adata is backed by a file: no result can be written into a copy or a view of it"
        raise InvalidValueError(problem, advice="Give the whole AnnData, or load it with adata.to_memory().")


def check_genes(genes: Any, name: str = "adata") -> None:
    """Refuse several genes of the same name."""
    repeated = genes[genes.duplicated()].unique().tolist()
    if repeated:
        problem = f"{name} has several columns of {listed('gene', repeated)}"
        raise InvalidValueError(problem, advice="Use adata.var_names_make_unique(), or sum up such genes.")


def scores_of(adata: Any, key: str, components: Sequence[int]) -> tuple[Float, Mask, Mask]:
    """Return the scores along some components, and masks of the target and the backgrounds of the fit."""
    about, of_cells, _ = fit_of(adata, key)
    scores = np.asarray(adata.obsm[of_cells])
    for number in components:
        known(number, "component", range(scores.shape[1]), "a component of the fit")
    target, *others = cells_of(adata, **about["params"])[1]
    return scores[:, list(components)], target, np.any(others, axis=0)


def _storable(value: Any) -> Any:
    """Return a value in a form that AnnData can write to a file."""
    if is_sparse(value) or isinstance(value, str | bool | int | float | np.generic | np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {str(name): _storable(part) for name, part in value.items() if part is not None}
    if hasattr(value, "__iter__"):
        parts = list(value)
        return parts if all(isinstance(part, int | float | np.number) for part in parts) else list(map(str, parts))
    return str(value)
