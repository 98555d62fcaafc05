"""What the tests of scans share: three datasets, and files of every kind to write them to."""

import gzip
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from scipy import sparse

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
    "zarr 3": (".zarr", write_zarr),
    "zarr 2": (".zarr", lambda rows, path: write_zarr(rows, path, version=2)),
    "zarr by Blosc": (".zarr", write_zarr_by_blosc),
    "zarr of anndata": (".zarr", write_zarr_annotated),
    "h5ad": (".h5ad", write_h5ad),
    "h5ad sparse": (".h5ad", write_sparse_h5ad),
}
WITHOUT_NAMES = ("npy", "npy in Fortran order", "zarr 2", "zarr 3", "zarr by Blosc")


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
