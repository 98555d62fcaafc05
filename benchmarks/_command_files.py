"""The files of the benchmark of the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from _data import Shape

BLOCK = 100_000


def write_files(shape: Shape, folder: Path) -> None:
    """Write a target with two groups along one column, and a background without, as Parquet; a block at a time."""
    rng = np.random.default_rng(0)
    names = [f"column {number}" for number in range(shape.features)]
    mixture = rng.normal(size=(min(10, shape.features), shape.features))
    schema = pa.schema([(name, pa.float64()) for name in names])
    for dataset in ("target", "background"):
        with parquet.ParquetWriter(folder / f"{dataset}.parquet", schema) as writer:
            for start in range(0, shape.rows, BLOCK):
                n = min(BLOCK, shape.rows - start)
                rows = rng.normal(size=(n, shape.features)) + rng.normal(size=(n, len(mixture))) @ mixture
                if dataset == "target":
                    rows[:, 0] += rng.choice([-3.0, 3.0], size=n)
                writer.write_table(pa.table(list(rows.T), names=names))
