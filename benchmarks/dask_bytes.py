"""How many bytes travel between Dask's workers during a fit? Only sums should.

Writes a target and a background as Parquet files, fits them on a local cluster of processes in three ways that give the
same sums, and prints the bytes that the workers received from each other, and the seconds:

- ``standout``: ``DiscriminativePCA.fit`` on the Dask frames;
- ``fused tree``: the same sums by Dask's own ``reduction``, in which each file is read and summed up in one task;
- ``delayed blocks``: a task for each file and another for its sum, as ``to_delayed`` gives them.

Needs ``standout[dask,files]``. The bound: at most 1.2 times the bytes of the fused tree.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
from dask import compute, delayed
from dask import dataframe as dd
from dask.distributed import Client, LocalCluster

from standout import DiscriminativePCA
from standout.moments import gather_folds

FOLDS = 5


def write(folder: Path, n_files: int, n_rows: int, n_columns: int, seed: int) -> str:
    folder.mkdir()
    rng = np.random.default_rng(seed)
    names = [f"c{number}" for number in range(n_columns)]
    for number in range(n_files):
        pd.DataFrame(rng.normal(size=(n_rows, n_columns)), columns=names).to_parquet(folder / f"{number:04}.parquet")
    return str(folder)


def sums(frame):
    return gather_folds(frame, FOLDS, norms=True)


def added(parts):
    return reduce(lambda first, second: first + second, parts)


def as_series(frame):
    return pd.Series([sums(frame)], dtype=object)


def total_series(series):
    return pd.Series([added(list(series))], dtype=object)


def by_standout(frames):
    DiscriminativePCA(2, held_out=FOLDS).fit(frames[0], background=frames[1])


def by_fused_tree(frames):
    for frame in frames:
        frame.reduction(
            as_series, combine=total_series, aggregate=total_series, split_every=8, meta=pd.Series(dtype=object)
        ).compute()


def by_delayed_blocks(frames):
    for frame in frames:
        parts = [delayed(sums)(block) for block in frame.to_delayed()]
        while len(parts) > 1:
            parts = [delayed(added)(parts[start : start + 2]) for start in range(0, len(parts), 2)]
        compute(*parts)


WAYS = {"standout": by_standout, "fused tree": by_fused_tree, "delayed blocks": by_delayed_blocks}


def received(dask_worker):
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--files", type=int, default=200)
    options.add_argument("--rows", type=int, default=2000)
    options.add_argument("--columns", type=int, default=100)
    options.add_argument("--workers", type=int, default=4)
    options.add_argument("--turns", type=int, default=3)
    given = options.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        places = [
            write(Path(folder) / name, given.files, given.rows, given.columns, seed)
            for seed, name in enumerate(("target", "background"))
        ]
        for _ in range(given.turns):
            for name, way in WAYS.items():
                # A fresh cluster each time: what a worker has kept from the way before would not travel again.
                cluster = LocalCluster(
                    n_workers=given.workers, threads_per_worker=1, processes=True, dashboard_address=None
                )
                with cluster, Client(cluster) as client:
                    frames = [dd.read_parquet(place) for place in places]
                    started = time.perf_counter()
                    way(frames)
                    seconds = time.perf_counter() - started
                    found[name].append((sum(client.run(received).values()) / 1e6, seconds))
    size = 2 * given.files * given.rows * given.columns * 8 / 1e6
    print(f"{given.files}+{given.files} files, {size:.0f} MB of rows, {given.workers} workers, median of {given.turns}")
    medians = {name: np.median(turns, axis=0) for name, turns in found.items()}
    for name, (megabytes, seconds) in medians.items():
        print(f"{name:15} {megabytes:7.1f} MB moved {seconds:6.1f} s")
    ratio = medians["standout"][0] / medians["fused tree"][0]
    print(f"standout / fused tree: {ratio:.2f} ({'met' if ratio <= 1.2 else 'missed'}: at most 1.2)")


if __name__ == "__main__":
    main()
