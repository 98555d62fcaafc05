"""The sides of the benchmark of files larger than memory: run as a script, each prints one line of JSON.

``python _scale_sides.py SIDE FOLDER N_FILES``, where the folder has ``target`` and ``background`` with Parquet files.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DATASETS = ("target", "background")


def files(folder: Path, n_files: int) -> dict[str, list[str]]:
    """Give the first files of each dataset."""
    return {name: [str(file) for file in sorted((folder / name).glob("*.parquet"))[:n_files]] for name in DATASETS}


def bare(folder: Path, n_files: int) -> dict[str, Any]:
    """Read all row groups once, as pyarrow has them; and multiply as many rows that are in memory, as they are."""
    import numpy as np
    from pyarrow import parquet
    from scipy.linalg.blas import dsyrk

    start = time.perf_counter()
    sizes: list[int] = []
    for file in (file for names in files(folder, n_files).values() for file in names):
        with parquet.ParquetFile(file, pre_buffer=False) as opened:
            sizes += [opened.read_row_group(group).num_rows for group in range(opened.num_row_groups)]
    reading = time.perf_counter() - start
    with parquet.ParquetFile(file) as opened:
        width = opened.metadata.num_columns
    rows = np.random.default_rng(0).normal(size=(max(sizes), width))
    dsyrk(1.0, rows.T, lower=True)
    start = time.perf_counter()
    for size in sizes:
        dsyrk(1.0, rows[:size].T, lower=True)
    products = time.perf_counter() - start
    return {"seconds": reading + products, "facts": {"reading": reading, "products": products}}


def scan(folder: Path, n_files: int) -> dict[str, Any]:
    """Fit on scans of the files."""
    import standout

    warm_up()
    names = files(folder, n_files)
    start = time.perf_counter()
    target, background = (standout.scan(names[dataset]) for dataset in DATASETS)
    model = standout.DiscriminativePCA().fit(target, background=background)
    return {"seconds": time.perf_counter() - start, "facts": {"eigenvalue": float(model.eigenvalues_[0])}}


def checkpointed(folder: Path, n_files: int) -> dict[str, Any]:
    """Fit on scans of the files, and keep the sums on the way."""
    import tempfile

    import standout

    warm_up()
    names = files(folder, n_files)
    with tempfile.TemporaryDirectory(dir=folder) as kept:
        start = time.perf_counter()
        target, background = (standout.scan(names[dataset], checkpoint=kept) for dataset in DATASETS)
        model = standout.DiscriminativePCA().fit(target, background=background)
        return {"seconds": time.perf_counter() - start, "facts": {"eigenvalue": float(model.eigenvalues_[0])}}


def dask(folder: Path, n_files: int) -> dict[str, Any]:
    """Fit on Dask arrays with a block for each row group, which pyarrow reads."""
    import dask.array as arrays
    from dask.delayed import delayed
    from pyarrow import parquet

    def opened(names: list[str]) -> Any:
        blocks = []
        for name in names:
            about = parquet.read_metadata(name)
            for group in range(about.num_row_groups):
                shape = (about.row_group(group).num_rows, about.num_columns)
                blocks.append(arrays.from_delayed(delayed(row_group)(name, group), shape, dtype=float))
        return arrays.concatenate(blocks)

    return _on_cluster(opened, files(folder, n_files))


def frames(folder: Path, n_files: int) -> dict[str, Any]:
    """Fit on Dask frames of the files, which Dask reads by itself: with Arrow's file system, each file is a block."""
    from dask.dataframe import read_parquet

    def opened(names: list[str]) -> Any:
        return read_parquet(Path(names[0]).parent, filesystem="arrow").partitions[: len(names)]

    return _on_cluster(opened, files(folder, n_files))


def row_group(name: str, group: int) -> Any:
    """Read one row group as an array."""
    import numpy as np
    from pyarrow import parquet

    with parquet.ParquetFile(name, pre_buffer=False) as opened:
        table = opened.read_row_group(group, use_threads=False)
    rows = np.empty((table.num_columns, table.num_rows)).T
    for number, column in enumerate(table.columns):
        rows[:, number] = column
    return rows


def _on_cluster(opened: Callable[[list[str]], Any], names: dict[str, list[str]]) -> dict[str, Any]:
    """Fit with two processes that work; starting them is not counted."""
    from distributed import Client, LocalCluster

    import standout

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        warm_up()
        client.run(warm_up)
        client.run(warm_up_dask)
        start = time.perf_counter()
        target, background = (opened(names[dataset]) for dataset in DATASETS)
        model = standout.DiscriminativePCA().fit(target, background=background)
        seconds = time.perf_counter() - start
        peaks = list(client.run(peak).values())
    facts = {"eigenvalue": float(model.eigenvalues_[0]), "megabytes of the workers": peaks}
    return {"seconds": seconds, "megabytes": max([peak(), *peaks]), "facts": facts}


def peak() -> float:
    """Give the most memory that this process has held, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def warm_up() -> None:
    """Load what a fit needs: imports are not the fit."""
    import pyarrow.parquet  # noqa: F401

    import standout

    _ = standout.DiscriminativePCA, standout.scan


def warm_up_dask() -> None:
    """Load what blocks of Dask need where they are read."""
    import dask.array
    import dask.dataframe  # noqa: F401
    import pyarrow.dataset  # noqa: F401


SIDES: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "bare": bare,
    "scan": scan,
    "checkpointed": checkpointed,
    "dask": dask,
    "frames": frames,
}


def main() -> None:
    side, folder, n_files = sys.argv[1:]
    found = SIDES[side](Path(folder), int(n_files))
    print(json.dumps({"megabytes": peak(), "r2": None, **found}))


if __name__ == "__main__":
    main()
