"""What the tests of scans share: three datasets, and files of every kind to write them to."""

import gzip
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from scipy import io, sparse

D = 7
NAMES = [f"column {number}" for number in range(D)]


@pytest.fixture
def datasets(rng):
    mixture = rng.normal(size=(3, D))
    shared = [rng.normal(size=(n, 3)) @ mixture * 3 + rng.normal(size=(n, D)) + 2.0 for n in (530, 410, 290)]
    shared[0][:, 2] += np.repeat([-4.0, 4.0], 265)
    return shared


def table(rows, names=NAMES):
    return pa.table(list(np.asarray(rows).T), names=names)


def write_parquet(rows, path):
    parquet.write_table(table(rows), path, row_group_size=37)


def write_arrow(rows, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table(rows).schema) as writer:
        for batch in table(rows).to_batches(max_chunksize=23):
            writer.write_batch(batch)


def write_arrow_stream(rows, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table(rows).schema) as writer:
        for batch in table(rows).to_batches(max_chunksize=23):
            writer.write_batch(batch)


def write_gzipped_csv(rows, path):
    with gzip.open(path, "wb") as file:
        csv.write_csv(table(rows), file)


def write_tsv(rows, path):
    csv.write_csv(table(rows), path, csv.WriteOptions(delimiter="\t"))


def write_zarr(rows, path, version=3, **how):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    array = zarr.create_array(str(path), shape=rows.shape, chunks=(50, 3), dtype=rows.dtype, zarr_format=version, **how)
    array[:] = rows


def write_zarr_by_blosc(rows, path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    write_zarr(rows, path, compressors=zarr.codecs.BloscCodec())


def annotated(rows):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    found = anndata.AnnData(rows)
    found.var_names = NAMES
    return found


def write_h5ad(rows, path):
    annotated(rows).write_h5ad(path)


def write_sparse_h5ad(rows, path):
    annotated(sparse.csr_matrix(rows)).write_h5ad(path)


def write_zarr_annotated(rows, path):
    pytest.importorskip("zarr", reason="zarr is not installed")
    if version("anndata").split(".")[:2] < ["0", "12"]:
        pytest.skip("this version of anndata does not write with Zarr 3")
    with warnings.catch_warnings():
        # anndata says that it will write another version of the format one day.
        warnings.simplefilter("ignore")
        annotated(sparse.csr_matrix(rows)).write_zarr(path)


KINDS = {
    "parquet": (".parquet", write_parquet),
    "arrow": (".arrow", write_arrow),
    "arrow stream": (".arrow", write_arrow_stream),
    "feather": (".feather", lambda rows, path: feather.write_feather(table(rows), path, chunksize=31)),
    "csv": (".csv", lambda rows, path: csv.write_csv(table(rows), path)),
    "csv gzipped": (".csv.gz", write_gzipped_csv),
    "tsv": (".tsv", write_tsv),
    "npy": (".npy", lambda rows, path: np.save(path, rows)),
    "npy in Fortran order": (".npy", lambda rows, path: np.save(path, np.asfortranarray(rows))),
    "npz": (".npz", lambda rows, path: np.savez(path, X=rows)),
    "npz sparse": (".npz", lambda rows, path: sparse.save_npz(path, sparse.csr_array(rows))),
    "mat": (".mat", lambda rows, path: io.savemat(path, {"X": rows})),
    "zarr 3": (".zarr", write_zarr),
    "zarr 2": (".zarr", lambda rows, path: write_zarr(rows, path, version=2)),
    "zarr by Blosc": (".zarr", write_zarr_by_blosc),
    "zarr of anndata": (".zarr", write_zarr_annotated),
    "h5ad": (".h5ad", write_h5ad),
    "h5ad sparse": (".h5ad", write_sparse_h5ad),
}
WITHOUT_NAMES = ("npy", "npy in Fortran order", "npz", "npz sparse", "mat", "zarr 2", "zarr 3", "zarr by Blosc")
SPARSE = ("h5ad sparse", "zarr of anndata", "npz sparse")


# Files with words beside the numbers: a name and a group for every row.


def with_words(rows, names, groups, columns=NAMES):
    found = pd.DataFrame(np.asarray(rows), columns=columns)
    found.insert(2, "group", groups)
    found.insert(0, "name", names)
    return found


def cells_with_words(matrix):
    def made(rows, names, groups):
        cells = annotated(matrix(rows))
        cells.obs_names = list(names)
        cells.obs["name"], cells.obs["group"] = list(names), pd.Categorical(groups)
        return cells

    return made


def write_words_to_zarr(rows, names, groups, path):
    pytest.importorskip("zarr", reason="zarr is not installed")
    if version("anndata").split(".")[:2] < ["0", "12"]:
        pytest.skip("this version of anndata does not write with Zarr 3")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells_with_words(sparse.csr_matrix)(rows, names, groups).write_zarr(path)


def gzipped(found, path):
    found.to_csv(path, index=False, compression="gzip")


def words(values):
    return np.array(list(values), dtype=object)


WITH_WORDS = {
    "csv": (".csv", lambda r, n, g, p: with_words(r, n, g).to_csv(p, index=False)),
    "csv gzipped": (".csv.gz", lambda r, n, g, p: gzipped(with_words(r, n, g), p)),
    "tsv": (".tsv", lambda r, n, g, p: with_words(r, n, g).to_csv(p, index=False, sep="\t")),
    "parquet": (".parquet", lambda r, n, g, p: with_words(r, n, g).to_parquet(p, row_group_size=23)),
    "feather": (".feather", lambda r, n, g, p: with_words(r, n, g).astype({"group": "category"}).to_feather(p)),
    "arrow": (".arrow", lambda r, n, g, p: with_words(r, n, g).to_feather(p, chunksize=31)),
    "npz": (".npz", lambda r, n, g, p: np.savez(p, X=r, name=np.array(n), group=np.array(g))),
    "mat": (".mat", lambda r, n, g, p: io.savemat(p, {"X": r, "name": words(n), "group": words(g)})),
    "h5ad": (".h5ad", lambda r, n, g, p: cells_with_words(np.asarray)(r, n, g).write_h5ad(p)),
    "h5ad sparse": (".h5ad", lambda r, n, g, p: cells_with_words(sparse.csr_matrix)(r, n, g).write_h5ad(p)),
    "zarr of anndata": (".zarr", write_words_to_zarr),
}


def write(datasets, folder, kind, n_files=3, seed=0):
    """Write each dataset as several files, whose order is not that of the rows."""
    extension, write_one = KINDS[kind]
    rng = np.random.default_rng(seed)
    places = []
    for number, rows in enumerate(datasets):
        place = folder / f"{kind}-{number}".replace(" ", "-")
        place.mkdir()
        for name, part in zip(rng.permutation(n_files), np.array_split(rows, n_files), strict=True):
            write_one(part, place / f"part-{name}{extension}")
        places.append(place)
    return places
