"""What a fit on files larger than memory costs: against reading them once and the bare products.

Each measurement is a fresh process. Run it on an idle machine: ``python benchmarks/scale.py``; ``--help`` lists the
options. It writes 6.4 GB to a folder, and removes them again. Needs ``standout[files]``, and with ``--dask`` also
``standout[dask]``.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from _report import Requirement, Row, aligned, as_dict, find, machine, number, whole, write_json
from _run import progress, warn_if_busy

SIDES_SCRIPT = Path(__file__).with_name("_scale_sides.py")
TIMEOUT = 3600.0

BARE = "reading and bare products"
NAMES = {
    "bare": BARE,
    "scan": "scan",
    "checkpointed": "scan with a checkpoint",
    "dask": "Dask arrays",
    "frames": "Dask frames",
}
DASK = ("dask", "frames")

ALLOWED_RATIO, ALLOWED_MEGABYTES, ALLOWED_GROWTH = 1.5, 1000.0, 1.1
N_FILES, GROUP_ROWS, FEATURES = 40, 100_000, 100
# The smaller case has this part of the files.
FEWER = 4


@dataclass(frozen=True)
class ScaleCase:
    """Rows of each dataset, in how many files."""

    rows: int
    n_files: int

    @property
    def shape(self) -> str:
        """The shape in words."""
        return f"({self.rows:,}+{self.rows:,}) x {FEATURES:,}"


def write_files(folder: Path, rows: int) -> None:
    """Write a target with two groups along one column, and a background without, each as several files."""
    rng = np.random.default_rng(0)
    names = [f"column {column}" for column in range(FEATURES)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    mixture = rng.normal(size=(10, FEATURES))
    for dataset in ("target", "background"):
        (folder / dataset).mkdir()
        for number_ in range(N_FILES):
            place = folder / dataset / f"part-{number_}.parquet"
            # Random numbers do not repeat: a dictionary of them would only be in the way.
            with parquet.ParquetWriter(place, schema, use_dictionary=False) as writer:
                for start in range(0, rows // N_FILES, GROUP_ROWS):
                    n = min(GROUP_ROWS, rows // N_FILES - start)
                    block = rng.normal(size=(n, FEATURES)) + rng.normal(size=(n, 10)) @ mixture
                    if dataset == "target":
                        block[:, 0] += rng.choice([-3.0, 3.0], size=n)
                    writer.write_table(pa.table(list(block.T), schema=schema))


def measure(side: str, folder: Path, n_files: int) -> dict[str, Any]:
    """Measure one side; whatever goes wrong comes back as one line under "error"."""
    command = [sys.executable, str(SIDES_SCRIPT), side, str(folder), str(n_files)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {TIMEOUT:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    return json.loads(done.stdout.splitlines()[-1])


def measure_all(folder: Path, rows: int, repeats: int, dask: bool) -> list[Row]:
    """Write the files, and measure all sides turn by turn."""
    progress(f"writing {2 * rows * FEATURES * 8 / 1e9:.1f} GB")
    write_files(folder, rows)
    large, small = ScaleCase(rows, N_FILES), ScaleCase(rows // FEWER, N_FILES // FEWER)
    wanted = [(large, side) for side in ("bare", "scan", "checkpointed")] + [(small, "scan")]
    wanted += [(case, side) for side in DASK for case in (large, small)] if dask else []
    found = [Row(case, NAMES[side]) for case, side in wanted]
    for turn in range(repeats):
        for (case, side), row in zip(wanted, found, strict=True):
            progress(f"turn {turn + 1} of {repeats}: {case.shape}, {NAMES[side]}")
            row.add(measure(side, folder, case.n_files))
    return found


def requirements(rows: list[Row], n_rows: int, dask: bool) -> list[Requirement]:
    """Return the bounds that a fit on files has to keep."""
    large, small = ScaleCase(n_rows, N_FILES), ScaleCase(n_rows // FEWER, N_FILES // FEWER)
    bare = find(rows, large, BARE).median_seconds
    found = []
    for side in ("scan", *(DASK if dask else ())):
        ours, fewer = (find(rows, case, NAMES[side]) for case in (large, small))
        text = f"{large.shape} {NAMES[side]}"
        found.append(Requirement(f"{text} / {BARE}", ours.median_seconds / bare, ALLOWED_RATIO, "x"))
        found.append(Requirement(f"{text}: peak memory", ours.peak_megabytes, ALLOWED_MEGABYTES, "MB"))
        growth = ours.peak_megabytes / fewer.peak_megabytes
        found.append(Requirement(f"{text}: peak memory / that of {small.rows:,} rows", growth, ALLOWED_GROWTH, "x"))
    return found


def table(rows: list[Row]) -> str:
    """Return one line per side."""
    head = ("case", "side", "seconds", "x bare", "peak MB", "of which")
    return aligned([head, *(_cells(row, find(rows, row.case, BARE)) for row in rows)])


def _cells(row: Row, bare: Row) -> tuple[str, ...]:
    if not row.seconds:
        return row.case.shape, row.side, row.error or "not measured"
    ratio = row.median_seconds / bare.median_seconds if bare.seconds else math.nan
    parts = ", ".join(f"{name} {value:.2f}" for name, value in row.facts[-1].items() if isinstance(value, float))
    return row.case.shape, row.side, f"{row.median_seconds:.2f}", number(ratio), f"{row.peak_megabytes:.0f}", parts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of each dataset (4,000,000)")
    parser.add_argument("--folder", type=Path, help="where to write the files (the system's folder for such things)")
    parser.add_argument("--repeats", type=int, default=3, help="fresh processes per side (3)")
    parser.add_argument("--dask", action="store_true", help="also through Dask, with two processes that work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement as JSON")
    options = parser.parse_args()
    if options.rows < N_FILES * 1000 or options.repeats < 1:
        parser.error(f"--rows must be at least {N_FILES * 1000}, --repeats at least 1.")
    warn_if_busy()
    about = machine()
    with tempfile.TemporaryDirectory(prefix="standout-scale-", dir=options.folder) as name:
        rows = measure_all(Path(name), options.rows, options.repeats, options.dask)
    bounds = requirements(rows, options.rows, options.dask)
    notes = [
        f"fresh processes: {options.repeats} per side; seconds are their median, without imports, peak MB is all that",
        f"the worst of them held. {BARE}: pyarrow's read_row_group over all files with pre_buffer off, and BLAS's",
        "symmetric product of as many rows in memory; the way from columns to an array is not counted",
    ]
    print(whole(about, notes, [table(rows)], bounds, quick=options.rows < 4_000_000))
    if options.json:
        write_json(options.json, as_dict(about, rows, bounds))
    # A bound that is missed is a finding; a side that did not run is a fault.
    return int(any(row.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
