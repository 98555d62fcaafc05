"""How long does `standout fit` take on files, with all defaults (test and report included), and how much memory?

Each figure is one run of the real command in a fresh process: wall seconds, CPU seconds, and peak memory. Needs
``standout[cli]``, and writes about 1 GB to a temporary folder. The bounds hold on an idle machine with two cores.

    python benchmarks/command_line.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

# Name, rows of target and background, columns, kind of file, further options, bounds: wall s, CPU s, GB.
CASES = (
    ("Parquet", 300_000, 300_000, 200, "parquet", (), (15.0, None, 1.6)),
    ("Parquet, streamed", 300_000, 300_000, 200, "parquet", ("--stream",), (15.0, None, 0.7)),
    ("a million, Parquet", 1_000_000, 1_000_000, 50, "parquet", (), (None, None, None)),
    ("a million, CSV", 1_000_000, 1_000_000, 50, "csv", (), (None, None, None)),
    ("CSV", 100_000, 100_000, 50, "csv", (), (None, None, None)),
    ("images", 1_500, 800, 784, "csv", (), (None, 25.0, None)),
    ("cells", 778, 778, 1_267, "csv", (), (None, 25.0, None)),
)
# Cases that are also run in Python, by reading and a default fit, and the most that the command may take beside that.
BESIDE, MOST = ("a million, Parquet", "a million, CSV"), 1.5
IN_PYTHON = """
import sys
from standout import DiscriminativePCA, read_table
target, background = map(read_table, sys.argv[1:])
DiscriminativePCA().fit(target.rows, background=background.rows)
"""


def write(path: Path, rows: int, columns: int, own: bool, seed: int) -> None:
    """Write a table with shared factors, and one of the target alone."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(0).normal(size=(6, columns))
    numbers = rng.normal(size=(rows, 6)) @ (loadings * np.array([3, 3, 3, 3, 3, 2 if own else 0])[:, None])
    numbers += rng.normal(size=(rows, columns))
    table = pa.table({f"c{place}": numbers[:, place] for place in range(columns)})
    if path.suffix == ".csv":
        csv.write_csv(table, path)
    else:
        parquet.write_table(table, path)


def measured(command: list[str]) -> tuple[float, float, float]:
    """Run a command; return wall seconds, CPU seconds and peak memory in GB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    names = [case[0] for case in CASES]
    parser.add_argument("--cases", nargs="*", default=names, choices=names)
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()}\n{'':20s} wall s   CPU s      GB")
    with tempfile.TemporaryDirectory() as folder:
        for name, target, background, columns, kind, options, bounds in CASES:
            if name not in arguments.cases:
                continue
            paths = [Path(folder) / f"{part}.{kind}" for part in ("target", "background")]
            for path, rows, own in zip(paths, (target, background), (True, False), strict=True):
                n_rows = max(rows // 100, 50) if arguments.quick else rows
                # In a process: the peak of a command would begin with the memory of the process that starts it.
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    pool.submit(write, path, n_rows, columns, own, int(own)).result()
            command = [sys.executable, "-m", "standout", "fit", str(paths[0]), "--background", str(paths[1])]
            found = measured([*command, "-o", str(Path(folder) / "result"), "--overwrite", *options])
            verdicts = [
                "" if bound is None else " met" if value <= bound else " MISSED"
                for value, bound in zip(found, bounds, strict=True)
            ]
            figures = "  ".join(f"{value:6.2f}{verdict}" for value, verdict in zip(found, verdicts, strict=True))
            print(f"{name:20s} {figures}", flush=True)
            if name in BESIDE:
                beside = measured([sys.executable, "-c", IN_PYTHON, *map(str, paths)])
                print(f"{'  in Python':20s} {'  '.join(f'{value:6.2f}' for value in beside)}")
                for unit, one, other in zip(("wall", "CPU"), found, beside, strict=False):
                    verdict = "met" if one <= MOST * other else "MISSED"
                    print(f"{f'  over it, {unit}':20s} {one / other:6.2f} (at most {MOST}: {verdict})", flush=True)


if __name__ == "__main__":
    main()
