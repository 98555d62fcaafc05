"""What a kernel fit costs: against the paper's equations solved directly, and against the bare work.

Each measurement is a fresh process that loads the data, warms up and times one fit. Run it on an idle
machine: ``python benchmarks/kernel.py``; ``--help`` lists the options.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from _kernel_data import (
    ACCURACY,
    KERNEL_CASES,
    QUICK_ACCURACY,
    QUICK_KERNEL_CASES,
    AccuracyCase,
    KernelCase,
    write_kernel_case,
)
from _kernel_report import LABELS, OURS, Accuracy, accuracy, accuracy_table, kernel_requirements, kernel_table
from _options import parse
from _report import Row, as_dict, machine, whole, write_json
from _run import progress, warn_if_busy
from _turns import Turn, take_turns

ACCURACY_NAME = "accuracy"


def measure_case(case: KernelCase, repeats: int) -> list[Row]:
    """Write the data of one case, measure every side on it turn by turn, and remove it again."""
    ours, bare = case.options | case.ours, case.options | {"rank": case.ours.get("rank")}
    told = {"standout": ours, "pencil": case.options, "paper": case.options, "bare": bare}
    labels = {"standout": OURS} | {side: LABELS[side] for side in case.faster}
    turns = [Turn(f"kernel-{side}", Row(case, label), told[side]) for side, label in labels.items()]
    with tempfile.TemporaryDirectory(prefix="standout-bench-") as name:
        folder = Path(name)
        write_kernel_case(case, folder)
        return take_turns(f"{case.name}, {case.shape}", turns, folder, repeats)


def measure_accuracy(case: AccuracyCase) -> list[Accuracy]:
    """Compare landmarks with the exact fit; nothing is timed, so one process does it all."""
    progress(f"{ACCURACY_NAME}, {case.shape}")
    return list(accuracy(case))


def main() -> int:
    options = parse(__doc__, [*(case.name for case in KERNEL_CASES), ACCURACY_NAME], repeats=3)
    warn_if_busy()
    about = machine()
    all_cases, accuracy_case = (QUICK_KERNEL_CASES, QUICK_ACCURACY) if options.quick else (KERNEL_CASES, ACCURACY)
    cases = [case for case in all_cases if case.name in options.cases]
    rows = [row for case in cases for row in measure_case(case, options.repeats)]
    bounds = kernel_requirements(rows, cases)
    compared = measure_accuracy(accuracy_case) if ACCURACY_NAME in options.cases else []

    notes = [
        f"fresh processes: {options.repeats} per side; seconds are their median, peak MB is what the worst of them",
        "needed beyond its inputs, x standout is a side's seconds over ours",
    ]
    tables = [kernel_table(rows)] if rows else []
    if compared:
        tables.append(f"Landmarks against the exact fit, {accuracy_case.shape}:\n\n{accuracy_table(compared)}")
    print(whole(about, notes, tables, bounds, quick=options.quick))
    if options.json:
        write_json(options.json, as_dict(about, rows, bounds) | {"accuracy": [asdict(one) for one in compared]})
    # A bound that is missed is a finding; a side that did not run is a fault.
    return int(any(row.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
