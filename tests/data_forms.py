"""One table of numbers in every form that users have: arrays, frames, files of every kind."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from scipy import sparse

COLUMNS = ["weight", "length", "age", "dose"]


def numbers(kind: str, n_rows: int = 37, seed: int = 0) -> np.ndarray:
    """Return a table of decimals, whole numbers, truth values or numbers of half precision."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, 4)) * [1.0, 1e-6, 1e6, 30.0]
    values[rng.random(values.shape) < 0.3] = 0.0
    if kind == "whole":
        return np.round(values * 10).astype(np.int64)
    if kind == "truth":
        return values > 0
    if kind == "half":
        return (values * [1.0, 1e6, 1e-6, 1.0]).astype(np.float16)
    return values.astype(np.float32 if kind == "single" else np.float64)


def _names(values: np.ndarray) -> list[str]:
    return [*COLUMNS, *(f"c{place}" for place in range(4, values.shape[1]))][: values.shape[1]]


def _frame(values: np.ndarray) -> Any:
    import pandas

    return pandas.DataFrame(values, columns=_names(values))


def _polars(values: np.ndarray) -> Any:
    import polars

    return polars.DataFrame({name: values[:, place] for place, name in enumerate(_names(values))})


def _arrow(values: np.ndarray) -> Any:
    import pyarrow

    return pyarrow.table({name: values[:, place] for place, name in enumerate(_names(values))})


def _nullable(values: np.ndarray) -> Any:
    return _frame(values).convert_dtypes()


def _data_array(values: np.ndarray) -> Any:
    import xarray

    return xarray.DataArray(values, dims=("row", "column"), coords={"column": _names(values)})


def _dask_array(values: np.ndarray) -> Any:
    import dask.array

    return dask.array.from_array(values, chunks=(10, 3))


def _dask_frame(values: np.ndarray) -> Any:
    import dask.dataframe

    return dask.dataframe.from_pandas(_frame(values), npartitions=3)


def _tensor(values: np.ndarray) -> Any:
    import pytest

    torch = pytest.importorskip("torch", reason="torch is brought by the user")
    return torch.tensor(values)


FORMS = {
    "array": np.array,
    "Fortran": np.asfortranarray,
    "big-endian": lambda values: values.astype(values.dtype.newbyteorder(">")),
    "read-only": lambda values: np.frombuffer(values.tobytes(), values.dtype).reshape(values.shape),
    "list": lambda values: values.tolist(),
    "object": lambda values: values.astype(object),
    "masked": np.ma.array,
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "coo_matrix": sparse.coo_matrix,
    "dok_array": sparse.dok_array,
    "frame": _frame,
    "objects in a frame": lambda values: _frame(values).astype(object),
    "nullable frame": _nullable,
    "polars": _polars,
    "Arrow": _arrow,
    "record batch": lambda values: _arrow(values).combine_chunks().to_batches()[0],
    "reader": lambda values: _arrow(values).to_reader(max_chunksize=8),
    "xarray": _data_array,
    "batches": lambda values: iter([values[:5], values[5:5], values[5:]]),
    "batches of frames": lambda values: iter([_frame(values[:5]), _frame(values[5:])[_names(values)[::-1]]]),
    "tensor": _tensor,
    "Dask array": _dask_array,
    "Dask frame": _dask_frame,
}
# Sparse matrices of SciPy have no half precision.
NO_HALF = {"csr_matrix", "csr_array", "csc_array", "coo_matrix", "dok_array", "polars"}
NAMED = {"frame", "objects in a frame", "nullable frame", "polars", "Arrow", "record batch", "reader", "xarray"}
NAMED |= {"batches of frames", "Dask frame"}


def write(values: np.ndarray, path: Path) -> Path:
    """Write a table to a file. The extension determines the kind. Names of columns are `COLUMNS`."""
    name = path.name
    if name.endswith((".csv", ".csv.gz")):
        _frame(values).to_csv(path, index=False)
    elif name.endswith(".tsv"):
        _frame(values).to_csv(path, index=False, sep="\t")
    elif name.endswith(".parquet"):
        _frame(values).to_parquet(path, row_group_size=10)
    elif name.endswith((".feather", ".arrow")):
        _frame(values).to_feather(path)
    elif name == "fortran.npy":
        np.save(path, np.asfortranarray(values))
    elif name.endswith(".npy"):
        np.save(path, values)
    elif name == "sparse.npz":
        sparse.save_npz(path, sparse.csr_array(values))
    elif name.endswith(".npz"):
        np.savez(path, matrix=values, names=np.arange(len(values)))
    elif name == "sparse.mat":
        scipy.io.savemat(path, {"matrix": sparse.csc_matrix(values)})
    elif name == "v73.mat":
        _write_v73(values, path)
    elif name.endswith(".mat"):
        scipy.io.savemat(path, {"matrix": values})
    else:
        _write_anndata(values, path)
    return path


def _write_v73(values: np.ndarray, path: Path) -> None:
    """Write a .mat file of version 7.3 as MATLAB does: HDF5 after 512 bytes, by columns."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        kind = {"f8": "double", "f4": "single", "i8": "int64", "u1": "uint8", "b1": "logical"}[values.dtype.str[1:]]
        stored = file.create_dataset("matrix", data=(values.astype(np.uint8) if kind == "logical" else values).T)
        stored.attrs["MATLAB_class"] = np.bytes_(kind)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def _write_anndata(values: np.ndarray, path: Path) -> None:
    import anndata
    import pandas

    matrix = sparse.csr_matrix(values) if path.name.startswith("sparse") else values
    matrix = sparse.csc_matrix(values) if path.name.startswith("by-columns") else matrix
    obs = pandas.DataFrame(index=[f"cell{row}" for row in range(len(values))])
    data = anndata.AnnData(matrix, obs=obs, var=pandas.DataFrame(index=_names(values)))
    with warnings.catch_warnings():
        # anndata warns that its defaults for Zarr will change.
        warnings.simplefilter("ignore", UserWarning)
        data.write_zarr(path) if path.suffix == ".zarr" else data.write_h5ad(path)


FILES = (
    *("table.csv", "table.csv.gz", "table.tsv", "table.parquet", "table.feather", "plain.npy", "fortran.npy"),
    *("plain.npz", "sparse.npz", "plain.mat", "sparse.mat", "v73.mat", "dense.h5ad", "sparse.h5ad", "by-columns.h5ad"),
    *("dense.zarr", "sparse.zarr"),
)
NAMED_FILES = {name for name in FILES if name.startswith("table") or name.endswith((".h5ad", ".zarr"))}
