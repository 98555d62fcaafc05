"""What ``standout fit`` costs on files that are larger than the memory it may use, against the library's own scans.

Each measurement is a fresh process whose memory is limited by a control group, or, where that is not allowed, whose
address space is (``ulimit -v``). Run it on an idle machine: ``python benchmarks/big_files.py``; ``--help`` lists the
options. It writes up to 4 GB to a folder, and removes them again. Needs ``standout[cli]``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from _report import Requirement, Row, aligned, as_dict, find, machine, number, whole, write_json
from _run import progress, warn_if_busy

COMMAND, LIBRARY = "standout fit", "library, fit and transform"
ALLOWED_RATIO, LEAST_TIMES, ALLOWED_DIFFERENCE = 1.3, 4.0, 1e-8
FEATURES, GROUP_ROWS = 100, 50_000
# Bytes of a number in a CSV file, with its comma: four decimals.
CSV_BYTES = 7.7
# Rows of each dataset in the files that are also fitted in memory.
PART_ROWS = 10_000
TIMEOUT = 7200.0
# The default allocators of Arrow and of the C library reserve address space that they do not use.
ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}

_PEAK = """
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
"""
_COMMAND = (
    _PEAK
    + """
import json, sys
from standout.cli import main
code = main(["fit", *sys.argv[1:], "-o", "out", "--overwrite", "--quiet"])
if code:
    sys.exit(code)
found = json.load(open("out/summary.json"))
facts = {"eigenvalue": found["components"][0]["eigenvalue"], "streamed": "reading" in found["asked"]}
print(json.dumps({"megabytes": peak(), "r2": None, "facts": facts}))
"""
)
_LIBRARY = (
    _PEAK
    + """
import json, sys
from standout import DiscriminativePCA, scan
from standout.io import write_csv
datasets = [scan(path, where=where) for path, where in json.loads(sys.argv[1])]
model = DiscriminativePCA(2, shrinkage="clusters").fit(datasets[0], background=datasets[1])
for number, dataset in enumerate(datasets):
    scores = model.transform(dataset)
    write_csv(f"scores-{number}.csv", {f"component_{k + 1}": column for k, column in enumerate(scores.T)})
print(json.dumps({"megabytes": peak(), "r2": None, "facts": {"eigenvalue": float(model.eigenvalues_[0])}}))
"""
)


@dataclass(frozen=True)
class FileCase:
    """One kind of file: two files, or one with a column that tells target and background apart."""

    kind: str
    grouped: bool
    gigabytes: float

    @property
    def name(self) -> str:
        """The case in a word."""
        return f"{self.kind}-groups" if self.grouped else self.kind

    @property
    def shape(self) -> str:
        """The case in words."""
        files = "one file with groups" if self.grouped else "two files"
        return f"{self.kind}, {files}, {self.gigabytes:.1f} GB"

    @property
    def rows(self) -> int:
        """Rows of each dataset."""
        return int(self.gigabytes * 1e9 / (8.0 if self.kind == "parquet" else CSV_BYTES) / FEATURES / 2)


def blocks(dataset: str, rows: int) -> Iterator[np.ndarray]:
    """Give a target with two groups along one column, or a background without, a block at a time."""
    rng = np.random.default_rng(dataset == "target")
    mixture = np.random.default_rng(2).normal(size=(10, FEATURES))
    for start in range(0, rows, GROUP_ROWS):
        n = min(GROUP_ROWS, rows - start)
        block = rng.normal(size=(n, FEATURES)) + rng.normal(size=(n, 10)) @ mixture
        if dataset == "target":
            block[:, 0] += rng.choice([-3.0, 3.0], size=n)
        yield block.round(4)


def write_files(case: FileCase, folder: Path, rows: int) -> None:
    """Write the file or files of a case; in one file, blocks of target and background take turns."""
    names = [f"column {column}" for column in range(FEATURES)]
    fields = [(name, pa.float64()) for name in names]
    if case.grouped:
        schema = pa.schema([("condition", pa.string()), *fields])
        with _writer(case.kind, folder / f"all.{case.kind}", schema) as writer:
            for target, background in zip(blocks("target", rows), blocks("background", rows), strict=True):
                for group, block in (("stim", target), ("ctrl", background)):
                    writer.write_table(pa.table([pa.array([group] * len(block)), *block.T], schema=schema))
        return
    for dataset in ("target", "background"):
        with _writer(case.kind, folder / f"{dataset}.{case.kind}", pa.schema(fields)) as writer:
            for block in blocks(dataset, rows):
                writer.write_table(pa.table(list(block.T), names=names))


def _writer(kind: str, path: Path, schema: pa.Schema) -> Any:
    if kind == "csv":
        return csv.CSVWriter(path, schema)
    # Random numbers do not repeat: a dictionary of them would only be in the way.
    return parquet.ParquetWriter(path, schema, use_dictionary=False)


def arguments(case: FileCase, side: str) -> list[str]:
    """Give what each side is told."""
    if side == LIBRARY:
        if case.grouped:
            return [json.dumps([[f"all.{case.kind}", {"condition": group}] for group in ("stim", "ctrl")])]
        return [json.dumps([[f"{dataset}.{case.kind}", None] for dataset in ("target", "background")])]
    if case.grouped:
        return [f"all.{case.kind}", "--group-column", "condition", "--target", "stim"]
    return [f"target.{case.kind}", "-b", f"background.{case.kind}"]


def memory_group(limit: float) -> Path | None:
    """Make a control group with a limit in GB; None where that is not allowed."""
    for root, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(root) / f"standout-{os.getpid()}"
        try:
            group.mkdir(exist_ok=True)
            (group / name).write_text(str(int(limit * 1e9)))
        except OSError:
            continue
        return group
    return None


def measure(side: str, words: list[str], folder: Path, limit: float | None) -> dict[str, Any]:
    """Measure one side; whatever goes wrong comes back as one line under "error"."""
    group = None if limit is None else memory_group(limit)

    def limited() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))
        elif limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (int(limit * 1e9), int(limit * 1e9)))

    script = _COMMAND if side == COMMAND else _LIBRARY
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env={**os.environ, **ENVIRONMENT},
            preexec_fn=limited,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {TIMEOUT:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    return {"seconds": time.perf_counter() - start, **json.loads(done.stdout.splitlines()[-1])}


def measure_case(
    case: FileCase, folder: Path, repeats: int, limit: float, further: list[str]
) -> tuple[list[Row], float]:
    """Write the files of a case, measure both sides turn by turn, and compare streaming with memory on a part."""
    rows = [Row(case, COMMAND), Row(case, LIBRARY)]
    with tempfile.TemporaryDirectory(prefix="standout-part-", dir=folder) as name:
        difference = _difference(case, Path(name))
    with tempfile.TemporaryDirectory(prefix="standout-big-", dir=folder) as name:
        progress(f"{case.shape}: writing")
        write_files(case, Path(name), case.rows)
        for turn in range(repeats):
            for row in rows:
                progress(f"{case.shape}: turn {turn + 1} of {repeats}, {row.side}")
                words = arguments(case, row.side) + (further if row.side == COMMAND else [])
                row.add(measure(row.side, words, Path(name), limit))
    return rows, difference


def _difference(case: FileCase, folder: Path) -> float:
    """Fit a part in memory and in parts, and give the largest difference of the scores."""
    progress(f"{case.shape}: a part, in memory and in parts")
    write_files(case, folder, PART_ROWS)
    found = []
    for way in ("--in-memory", "--stream"):
        result = measure(COMMAND, [*arguments(case, COMMAND), way], folder, None)
        if "error" in result or result["facts"]["streamed"] != (way == "--stream"):
            progress(f"{case.shape} {way}: {result}")
            return float("nan")
        table = csv.read_csv(folder / "out" / "scores.csv")
        found.append(np.column_stack([table.column(name) for name in table.column_names if "component" in name]))
    return float(np.max(np.abs(found[0] - found[1])) / np.std(found[0]))


def requirements(
    rows: list[Row], cases: list[FileCase], differences: dict[str, float], limit: float
) -> list[Requirement]:
    """Return the bounds that the command has to keep."""
    found = []
    for case in cases:
        ours, library = (find(rows, case, side) for side in (COMMAND, LIBRARY))
        ratio = ours.median_seconds / library.median_seconds
        found.append(Requirement(f"{case.shape}: {COMMAND} / {LIBRARY}", ratio, ALLOWED_RATIO, "x"))
        times = case.gigabytes / limit if ours.seconds and all(facts["streamed"] for facts in ours.facts) else np.nan
        found.append(Requirement(f"{case.shape}: data / memory allowed", times, LEAST_TIMES, "x", at_least=True))
        gap = abs(ours.facts[-1]["eigenvalue"] / library.facts[-1]["eigenvalue"] - 1.0) if ours.facts else np.nan
        found.append(Requirement(f"{case.shape}: eigenvalue, command / library - 1", gap, ALLOWED_DIFFERENCE, ""))
        text = f"{case.shape}: scores of a part, streamed and in memory, differ by"
        found.append(Requirement(text, differences[case.name], ALLOWED_DIFFERENCE, ""))
    return found


def table(rows: list[Row]) -> str:
    """Return one line per side."""
    head = ("case", "side", "seconds", "x library", "peak MB")
    return aligned([head, *(_cells(row, find(rows, row.case, LIBRARY)) for row in rows)])


def _cells(row: Row, library: Row) -> tuple[str, ...]:
    if not row.seconds:
        return row.case.shape, row.side, row.error or "not measured"
    ratio = number(row.median_seconds / library.median_seconds) if library.seconds else "-"
    return row.case.shape, row.side, f"{row.median_seconds:.1f}", ratio, f"{row.peak_megabytes:.0f}"


def main() -> int:
    kinds = [(kind, grouped) for kind in ("parquet", "csv") for grouped in (False, True)]
    names = [FileCase(kind, grouped, 0).name for kind, grouped in kinds]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", nargs="+", choices=names, default=names, help="which cases (all)")
    parser.add_argument("--gigabytes", type=float, default=4.0, help="size of the files of a case (4)")
    parser.add_argument("--limit", type=float, default=1.0, help="memory of a process in GB (1.0)")
    parser.add_argument("--folder", type=Path, help="where to write the files (the system's folder for such things)")
    parser.add_argument("--repeats", type=int, default=1, help="fresh processes per side (1)")
    parser.add_argument("--quick", action="store_true", help="small files, streamed on request: tries the script only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement as JSON")
    options = parser.parse_args()
    size = 0.01 if options.quick else options.gigabytes
    cases = [case for case in (FileCase(*kind, size) for kind in kinds) if case.name in options.cases]
    warn_if_busy()
    about = machine()
    rows, differences = [], {}
    for case in cases:
        # Small files would be read at once.
        further = ["--stream"] if options.quick else []
        found, differences[case.name] = measure_case(case, options.folder, options.repeats, options.limit, further)
        rows += found
    bounds = requirements(rows, cases, differences, options.limit)
    notes = [
        f"fresh processes: {options.repeats} per side, from the start of Python to its end, with memory of at",
        f"most {options.limit} GB ({', '.join(f'{name}={value}' for name, value in ENVIRONMENT.items())}). {LIBRARY}:",
        "DiscriminativePCA(2, shrinkage='clusters') on scans, transform of both datasets, and their scores as CSV.",
        f"{COMMAND}: the same, with the report. Sizes: of the numbers in memory for Parquet, of the text for CSV",
    ]
    print(whole(about, notes, [table(rows)], bounds, quick=options.quick))
    if options.json:
        write_json(options.json, as_dict(about, rows, bounds))
    # A bound that is missed is a finding; a side that did not run is a fault.
    return int(any(row.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
