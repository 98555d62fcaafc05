"""How does a fit scale with the number of workers? A cost model, checked against runs on a local cluster.

Four parts:

- ``workers``: a fit on Parquet files with 1, 2, 4 and 8 Dask workers, processes with one thread each. For every worker
  the bytes read and received are compared with the model, and the CPU time with that of a single worker.
- ``merges``: 1,000 partial sums are added in several orders. The result is compared with exact integer arithmetic.
- ``blocks``: what a block costs the scheduler and the client, from fits on many tiny blocks.
- ``paper``: the model for 10^12 values on 1,000 workers, or for ``--work ROWS COLUMNS WORKERS BLOCKS``. Nothing is run.

Wall time says little if there are fewer cores than workers: CPU time, bytes and the depth of the tree do not depend on
that. Needs ``standout[dask,files]`` and Linux.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _report import Requirement, aligned, machine, whole
from _run import progress, warn_if_busy

FAN_IN = 8  # sums that are added in one task: that of standout.sources
FOLDS = 10  # the default of held_out
DOUBLE = 8


@dataclass(frozen=True)
class Work:
    """What a fit on Dask blocks has to do.

    Attributes
    ----------
    rows
        Rows of all datasets together, two of them of equal size.
    columns, workers, folds
    blocks
        Blocks of all datasets together; a block is a file, or several small ones.
    """

    rows: int
    columns: int
    workers: int
    blocks: int
    folds: int = FOLDS

    @property
    def read(self) -> float:
        """Bytes of doubles that a worker reads."""
        return self.rows * self.columns * DOUBLE / self.workers

    @property
    def flops(self) -> float:
        """Additions and multiplications of a worker: half of the symmetric product, which is all that BLAS computes."""
        return self.rows * self.columns * (self.columns + 1) / self.workers

    @property
    def sums(self) -> float:
        """Bytes of the sums of a block: for each fold a scatter matrix, a mean with its rest, and third moments."""
        return self.folds * (self.columns**2 + 3 * self.columns) * DOUBLE

    @property
    def merges(self) -> float:
        """Additions of the sums of two blocks, by a worker."""
        return (self.blocks - 2) / self.workers

    @property
    def depth(self) -> int:
        """Additions one after the other, from a block to the total, each of up to eight sums."""
        return math.ceil(math.log(self.blocks / 2, FAN_IN) - 1e-9)

    @property
    def received(self) -> float:
        """Bytes that a worker receives: sums that are spread evenly, and added where most of them are."""
        travelling, left = 0, self.blocks // 2
        while left > 1:
            groups = [min(FAN_IN, left - start) for start in range(0, left, FAN_IN)]
            travelling += sum(size - math.ceil(size / self.workers) for size in groups)
            left = len(groups)
        return 2 * travelling * self.sums / self.workers

    @property
    def solving(self) -> float:
        """Additions and multiplications of the eigenproblems: one of all rows, and one without each fold."""
        return 2 * self.columns**3 * (self.folds + 1)


# ---------------------------------------------------------------------------------------------------------------------
# 10^12 values on 1,000 workers, on paper


@dataclass(frozen=True)
class Rates:
    """What one worker, a core of its own, does in a second; the solve has one core, too."""

    disk: float = 1e9
    decoding: float = 0.4e9
    passes: float = 0.5e9
    flops: float = 20e9
    adding: float = 2e9
    network: float = 10e9 / 8
    blocks_scheduled: float = 300.0


def seconds(work: Work, rates: Rates) -> dict[str, float]:
    """Give the seconds of each step of a fit; reading and multiplying are on all workers at once."""
    a_step = (FAN_IN - 1) * work.sums
    return {
        "disk": work.read / rates.disk,
        "decoding Parquet": work.read / rates.decoding,
        "checks, folds, norms": work.read / rates.passes,
        "products": work.flops / rates.flops,
        "adding sums": work.merges * work.sums / rates.adding,
        "sending sums": work.received / rates.network,
        "last additions": work.depth * (a_step / rates.network + a_step / rates.adding),
        "scheduler": work.blocks / rates.blocks_scheduled,
        "solve": work.solving / rates.flops,
    }


PAPER = {
    f"{shape}, {blocks:,} blocks": Work(rows, columns, 1000, blocks)
    for shape, rows, columns in (("10¹⁰ x 100", 10**10, 100), ("10⁹ x 1,000", 10**9, 1000))
    for blocks in (100_000, 10_000)
}


def paper_table(works: dict[str, Work]) -> list[str]:
    """Give the lines of the table on the page, in Markdown."""
    found = {name: seconds(work, Rates()) for name, work in works.items()}
    steps = list(next(iter(found.values())))
    cells = [[step, *(_rounded(parts[step]) for parts in found.values())] for step in steps]
    lines = [["seconds", *works], ["---"] * (len(works) + 1), *cells]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _rounded(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


# ---------------------------------------------------------------------------------------------------------------------
# Runs with 1, 2, 4 and 8 workers


@dataclass(frozen=True)
class Shape:
    """Files of each of two datasets, and the rows and columns of a file."""

    files: int
    rows: int
    columns: int

    def work(self, workers: int) -> Work:
        """Give what a fit of these files has to do."""
        return Work(2 * self.files * self.rows, self.columns, workers, 2 * self.files)

    def __str__(self) -> str:
        return f"({self.files}+{self.files}) files of {self.rows:,} x {self.columns}"


SHAPES = (Shape(64, 6250, 100), Shape(32, 4000, 300))
QUICK_SHAPES = (Shape(9, 300, 20),)
WORKERS = (1, 2, 4, 8)


def counters(dask_worker: Any) -> dict[str, float]:
    """Give what a worker has done so far: bytes read from files and received from others, CPU seconds.

    Those of its tasks alone are compared with those of a single worker. The process also talks with the scheduler, and
    samples its own stack every 10 ms, as long as it waits for a core.
    """
    from dask_bytes import received

    # The kernel's count of bytes that were read by system calls, from the disk or from its cache. Sockets do not count.
    status = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    tasks = sum(
        spent for key, spent in dask_worker.digests_total.items() if key[0] == "execute" and "thread-cpu" in key
    )
    work = {"read": float(status["rchar"]), "received": received(dask_worker), "cpu": tasks}
    return work | {"process": time.process_time()}


def warm(folder: str) -> None:
    """Load what a worker needs, and sum up one file: neither is part of the fit."""
    from _scale_sides import warm_up, warm_up_dask

    warm_up()
    warm_up_dask()
    _sums(_read(_first(folder)))


def _first(folder: str) -> Path:
    return min(Path(folder).glob("*.parquet"))


def _read(file: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(file)


def _sums(frame: Any) -> Any:
    from standout.moments import gather_folds

    return gather_folds(frame, FOLDS, norms=True)


def cpu(function: Callable[[], Any], times: int = 8) -> float:
    """Give the median CPU time of a call, after one to warm up."""
    function()
    found = []
    for _ in range(times):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return float(np.median(found))


def unit_costs(file: Path) -> dict[str, float]:
    """Give the CPU time of reading one file, of summing it up, and of adding two such sums, in this process."""
    frame = _read(file)
    sums = _sums(frame)
    rows = frame.to_numpy()
    return {
        "read": cpu(lambda: _read(file)),
        "sum": cpu(lambda: _sums(frame)),
        "multiply": cpu(lambda: rows.T @ rows),
        "add": cpu(lambda: sums + sums),
    }


def run_workers(workers: int, folders: list[str]) -> dict[str, Any]:
    """Fit once on a fresh cluster, and give what its workers counted."""
    from dask import dataframe as dd
    from dask.distributed import Client, LocalCluster

    from standout import DiscriminativePCA

    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, Client(cluster) as client:
        client.run(warm, folders[0])
        frames = [dd.read_parquet(folder) for folder in folders]
        before, start = client.run(counters), time.perf_counter()
        DiscriminativePCA(2).fit(frames[0], background=frames[1])
        wall, after = time.perf_counter() - start, client.run(counters)
    each = [{name: after[key][name] - before[key][name] for name in after[key]} for key in after]
    return {"wall": wall} | {name: [part[name] for part in each] for name in each[0]}


def measure_workers(shapes: tuple[Shape, ...]) -> tuple[list[str], list[Requirement]]:
    """Compare all shapes and numbers of workers with the model."""
    from dask_bytes import write

    tables, bounds = [], []
    for shape in shapes:
        with tempfile.TemporaryDirectory(prefix="standout-scaling-") as place:
            progress(f"writing {shape}")
            folders = [
                write(Path(place) / name, shape.files, shape.rows, shape.columns, seed)
                for seed, name in enumerate(("target", "background"))
            ]
            size = sum(file.stat().st_size for file in Path(place).rglob("*.parquet"))
            units = unit_costs(_first(folders[0]))
            lines = [("workers", "", *HEAD)]
            for workers in WORKERS:
                progress(f"{shape}: {workers} workers")
                work = shape.work(workers)
                found = run_workers(workers, folders)
                if workers == 1:
                    alone = found["cpu"][0]
                expected = {"read": size / workers, "received": work.received, "cpu": alone / workers}
                lines.append(_worker_cells(workers, work, found, expected))
                bounds += _worker_bounds(shape, workers, found, expected)
        values = shape.rows * shape.columns
        speed = values * (shape.columns + 1) / units["multiply"] / 1e9
        passes = values * DOUBLE / (units["sum"] - units["multiply"]) / 1e9
        steps = (units["read"] + units["sum"]) * work.blocks + units["add"] * (work.blocks - 2)
        about = (
            f"{shape}: {size / 1e6:.0f} MB of files; sums of a block {work.sums / 1e6:.2f} MB; one block, CPU: read "
            f"{units['read'] * 1e3:.1f} ms ({values * DOUBLE / units['read'] / 1e9:.2f} GB/s), sum up "
            f"{units['sum'] * 1e3:.1f} ms, of which multiply {units['multiply'] * 1e3:.1f} ms ({speed:.0f} Gflop/s; "
            f"the rest {passes:.2f} GB/s), add {units['add'] * 1e3:.2f} ms; all "
            f"blocks by these steps {steps:.2f} s"
        )
        tables.append(about + "\n" + aligned(lines))
    return tables, bounds


HEAD = ("MB read", "model", "MB received", "model", "depth", "Gflop", "CPU s", "1 / W", "process", "wall s")


def _worker_cells(workers: int, work: Work, found: dict[str, Any], expected: dict[str, float]) -> tuple[str, ...]:
    read, received, used = (np.array(found[name]) for name in ("read", "received", "cpu"))
    return (
        str(workers),
        "",
        f"{read.mean() / 1e6:.1f}",
        f"{expected['read'] / 1e6:.1f}",
        f"{received.mean() / 1e6:.1f}",
        f"{expected['received'] / 1e6:.1f}",
        str(work.depth),
        f"{work.flops / 1e9:.2f}",
        f"{used.mean():.2f}",
        f"{expected['cpu']:.2f}",
        f"{np.mean(found['process']):.2f}",
        f"{found['wall']:.1f}",
    )


def _worker_bounds(shape: Shape, workers: int, found: dict[str, Any], expected: dict[str, float]) -> list[Requirement]:
    allowed = {"read": 1.05, "received": 1.2, "cpu": 1.3}
    return [
        Requirement(f"{shape}, {workers} workers: {name} / model", np.mean(found[name]) / expected[name], most, "x")
        for name, most in allowed.items()
        if expected[name]
    ]


# ---------------------------------------------------------------------------------------------------------------------
# A thousand sums, added in several orders


def exact_scatter(first: Any, second: Any, count: int) -> Any:
    """Give count times the centred scatter matrix, in integers of any size."""
    return second * count - np.multiply.outer(first, first)


def rounding(scatter: np.ndarray, exact: Any, count: int) -> float:
    """Give the largest error of an entry, relative to the spreads of its two columns, in units of 2^-52."""
    spread = [math.sqrt(exact[column, column]) for column in range(len(exact))]
    worst = 0.0
    for (row, column), value in np.ndenumerate(scatter):
        error = abs(Fraction(float(value)) * count - exact[row, column])
        worst = max(worst, float(error) / (spread[row] * spread[column]))
    return worst / np.finfo(np.float64).eps


def tree(parts: list[Any], fan_in: int = FAN_IN) -> Any:
    while len(parts) > 1:
        parts = [reduce(add, parts[start : start + fan_in]) for start in range(0, len(parts), fan_in)]
    return parts[0]


def measure_merges(n_parts: int, n_rows: int, columns: int) -> str:
    """Add sums of whole numbers, for which the exact result is known, near zero and 100 spreads away from it."""
    from standout.moments import gather

    lines = [("mean of the data", "", "one by one", "by eights", "by twos", "all rows at once")]
    for name, offset in (("0", 0.0), ("100 spreads", 100.0)):
        rng = np.random.default_rng(0)
        first, second = np.zeros(columns, dtype=object), np.zeros((columns, columns), dtype=object)
        # Whole numbers with a spread of 256: sums over a block stay below 2^53, where doubles are exact.
        blocks = [np.rint(256 * (rng.normal(size=(n_rows, columns)) + offset)) for _ in range(n_parts)]
        for block in blocks:
            first = first + block.sum(axis=0).astype(np.int64).astype(object)
            second = second + (block.T @ block).astype(np.int64).astype(object)
        count = n_parts * n_rows
        exact = exact_scatter(first, second, count)
        parts = [gather(block) for block in blocks]
        ways = (reduce(add, parts), tree(parts), tree(parts, 2), gather(np.concatenate(blocks)))
        lines.append((name, "", *(f"{rounding(way.scatter, exact, count):.1f}" for way in ways)))
    title = f"rounding error of {n_parts:,} sums of {n_rows:,} x {columns} rows, in units of 2^-52:"
    return title + "\n" + aligned(lines)


def measure_units(columns: tuple[int, ...]) -> str:
    """Time one addition and one solve: the units of the model that are not products."""
    from standout import DiscriminativePCA
    from standout.moments import gather_folds

    lines = [("columns", "", "add two sums, ms", "GB/s", "solve, ms", "model at 20 Gflop/s, ms")]
    for width in columns:
        rng = np.random.default_rng(0)
        X, Y = (rng.normal(size=(3 * width, width)) for _ in range(2))
        sums = gather_folds(X, FOLDS, norms=True)
        adding = cpu(lambda sums=sums: sums + sums)
        model = DiscriminativePCA(2)
        both = cpu(lambda model=model, X=X, Y=Y: model.fit(X, background=Y), 3)
        solve = both - 2 * cpu(lambda X=X: gather_folds(X, FOLDS, norms=True), 3)
        work = Work(6 * width, width, 1, 2)
        expected = work.solving / Rates().flops
        cells = (
            f"{adding * 1e3:.2f}",
            f"{work.sums / adding / 1e9:.1f}",
            f"{solve * 1e3:.0f}",
            f"{expected * 1e3:.0f}",
        )
        lines.append((str(width), "", *cells))
    return f"one core, CPU time; {FOLDS} folds:\n" + aligned(lines)


def measure_blocks(n_blocks: int) -> str:
    """Fit on many tiny blocks: what is left is the cost of a block by itself, for the scheduler and the client."""
    from dask import array as da
    from dask.distributed import Client, LocalCluster

    from standout import DiscriminativePCA

    def used(n_blocks: int) -> float:
        X, Y = (da.random.default_rng(seed).normal(size=(8 * n_blocks, 4), chunks=(8, 4)) for seed in (0, 1))
        start = time.process_time()
        DiscriminativePCA(1).fit(X, background=Y)
        return time.process_time() - start

    # In a local cluster the scheduler lives in the process of the client.
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, Client(cluster):
        used(16)
        few, many = used(n_blocks // 4), used(n_blocks)
    each = (many - few) / (2 * (n_blocks - n_blocks // 4))
    return f"scheduler and client: {each * 1e3:.2f} ms of CPU time per block, {1 / each:.0f} blocks per second"


PARTS = ("workers", "merges", "blocks", "paper")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"which of {', '.join(PARTS)} (all)")
    parser.add_argument("--quick", action="store_true", help="tiny shapes: tries the script, says nothing of speed")
    numbers = ("ROWS", "COLUMNS", "WORKERS", "BLOCKS")
    parser.add_argument("--work", nargs=4, type=int, metavar=numbers, help="what the part paper is about")
    options = parser.parse_args()
    parts = options.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}. Choose among {', '.join(PARTS)}.")
    warn_if_busy()
    # Workers have one thread each; the single steps that the model is made of must not have more.
    threadpool_limits(1)
    about, tables, bounds = machine(), [], []
    if "workers" in parts:
        tables, bounds = measure_workers(QUICK_SHAPES if options.quick else SHAPES)
    if "merges" in parts:
        tables.append(measure_merges(*((20, 50, 6) if options.quick else (1000, 1000, 100))))
        tables.append(measure_units((20,) if options.quick else (100, 300, 1000)))
    if "blocks" in parts:
        tables.append(measure_blocks(32 if options.quick else 1000))
    if "paper" in parts:
        given = {"given": Work(*options.work)} if options.work else PAPER
        tables.append("\n".join(paper_table(given)))
    print(whole(about, ["per worker: means over the workers"], tables, bounds, quick=options.quick))
    return 0


if __name__ == "__main__":
    sys.exit(main())
