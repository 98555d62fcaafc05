"""AnnData's .h5ad files, by h5py: only what is asked for is read, and a sparse matrix stays one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from standout._arrays import BLOCK_BYTES, Rows, dense
from standout._validation import check_variable, reject_table, require_extra
from standout.io._choice import Wanted, choose
from standout.io._from_array import as_csr, as_values, check_array_form, precision, words_beside
from standout.io._reading import attempt
from standout.io._table import Table, make_table
from standout.io._words import words_of_array


def read_h5ad(path: Path, wanted: Wanted, source: str) -> Table:
    """Read X, a layer or "raw" from an .h5ad file; names of rows are ids, and obs has labels and groups."""
    require_extra("h5py", "h5ad", "reading .h5ad files")
    import h5py

    with attempt(lambda: h5py.File(path, "r"), source, "h5ad") as file:
        check_anndata(file, source)
        matrices = attempt(lambda: matrices_of(file), source, "h5ad")
        node, var = matrices[check_variable(wanted.variable or "X", [], list(matrices), source)]
        columns = attempt(lambda: words_of_array(index_of(var)).tolist(), source, "h5ad")
        obs = attempt(lambda: {str(name): vector for name, vector in file["obs"].items()}, source, "h5ad")
        choice = choose(columns, wanted, source, list(obs))
        shape, dtype = attempt(lambda: form_of(node), source, "h5ad")
        check_array_form(shape, dtype, source)
        if len(columns) != shape[1]:
            reject_table(source, f"it names {len(columns)} columns, but has {shape[1]}", "Write the file again.")
        vectors: dict[str, tuple[str, Callable[[], Any]]] = {"ids": ("obs_names", partial(index_of, file["obs"]))}
        for role, name in choice.roles.items():
            read = partial(_vector, obs[name]) if name in obs else partial(_column, node, columns.index(name))
            vectors[role] = name, read
        words = {role: words_beside(read, name, shape[0], source, "h5ad") for role, (name, read) in vectors.items()}
        values = attempt(lambda: _values(node, choice.features), source, "h5ad")
        return make_table(values, [columns[place] for place in choice.features], words, source)


def check_anndata(file: Any, source: str) -> None:
    """Refuse a file that AnnData has not written, or long ago."""
    if not attempt(lambda: all(hasattr(file.get(part), "keys") for part in ("obs", "var")), source, "h5ad"):
        reject_table(
            source,
            "it has no groups 'obs' and 'var', as AnnData writes them since version 0.7",
            "Write it again with a newer version of anndata.",
        )


def matrices_of(file: Any) -> dict[str, tuple[Any, Any]]:
    """Say which matrices there are, and what names the columns of each."""
    found = {"X": (file["X"], file["var"])} if "X" in file else {}
    # By keys, which groups of HDF5 and of Zarr both have.
    layers = file.get("layers", {})
    found |= {str(name): (layers[name], file["var"]) for name in layers.keys()}  # noqa: SIM118
    return found | ({"raw": (file["raw/X"], file["raw/var"])} if "raw/X" in file else {})


def form_of(node: Any) -> tuple[tuple[int, ...], Any]:
    """Give shape and type of a matrix, dense or sparse."""
    if hasattr(node, "shape"):
        return node.shape, node.dtype
    return tuple(int(size) for size in node.attrs["shape"]), node["data"].dtype


def _values(node: Any, features: Sequence[int]) -> Rows:
    if not hasattr(node, "shape"):
        kind = sparse.csc_array if node.attrs["encoding-type"] == "csc_matrix" else sparse.csr_array
        parts = (node["data"][()], node["indices"][()], node["indptr"][()])
        return as_values(as_csr(kind(parts, shape=tuple(node.attrs["shape"]))), features)
    n_rows, n_columns = node.shape
    values = np.empty((n_rows, len(features)), dtype=precision(node.dtype))
    step = max(BLOCK_BYTES // (8 * max(n_columns, 1)), 1)
    whole = len(features) == n_columns
    for start in range(0, n_rows, step):
        block = node[start : start + step]
        values[start : start + step] = block if whole else block[:, features]
    return values


def _column(node: Any, position: int) -> Any:
    return dense(_values(node, [position])).ravel()


def index_of(group: Any) -> Any:
    """Read the names of rows (of obs) or columns (of var)."""
    return _vector(group[group.attrs["_index"]])


def _vector(node: Any) -> Any:
    """Read a column of obs or var, however AnnData has written it."""
    if hasattr(node, "shape"):
        return node.asstr()[()] if node.dtype.kind in "OS" else node[()]
    if "codes" in node:
        # The last one stands for a missing value, whose code is -1.
        known = [*words_of_array(_vector(node["categories"])), ""]
        return np.array(known, dtype=object)[node["codes"][()]]
    values = np.asarray(node["values"].asstr()[()] if node["values"].dtype.kind in "OS" else node["values"][()])
    words = words_of_array(values)
    words[node["mask"][()]] = ""
    return words
