"""What a kernel fit costs: against the paper's equations solved directly, and against the bare work.

Each measurement is a fresh process that loads the data, warms up and times one fit. Run it on an idle
machine: ``python benchmarks/kernel.py``; ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import json
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
from _report import Row, as_dict, machine
from _run import progress, run_child, warn_if_busy

ACCURACY_NAME = "accuracy"


def measure_case(case: KernelCase, repeats: int) -> list[Row]:
    """Write the data of one case, measure every side on it turn by turn, and remove it again."""
    ours, bare = case.options | case.ours, case.options | {"rank": case.ours.get("rank")}
    told = {"standout": ours, "pencil": case.options, "paper": case.options, "bare": bare}
    rows = {"standout": Row(case, OURS)} | {side: Row(case, LABELS[side]) for side in case.faster}
    with tempfile.TemporaryDirectory(prefix="standout-bench-") as name:
        folder = Path(name)
        write_kernel_case(case, folder)
        for turn in range(repeats):
            progress(f"{case.name}, {case.shape}: turn {turn + 1} of {repeats}")
            for side, row in rows.items():
                row.add(run_child(f"kernel-{side}", folder, options=told[side]))
    return list(rows.values())


def measure_accuracy(case: AccuracyCase) -> list[Accuracy]:
    """Compare landmarks with the exact fit; nothing is timed, so one process does it all."""
    progress(f"{ACCURACY_NAME}, {case.shape}")
    return list(accuracy(case))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [*(case.name for case in KERNEL_CASES), ACCURACY_NAME]
    parser.add_argument("--cases", nargs="+", choices=names, default=names, help="which cases (all)")
    parser.add_argument("--repeats", type=int, help="fresh processes per side (3; with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="tiny shapes: tries the script, says nothing of speed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement as JSON")
    options = parser.parse_args(arguments)
    if options.repeats is None:
        options.repeats = 1 if options.quick else 3
    if options.repeats < 1:
        parser.error("repeats must be at least 1.")
    return options


def main() -> int:
    options = parse()
    warn_if_busy()
    about = machine()
    all_cases, accuracy_case = (QUICK_KERNEL_CASES, QUICK_ACCURACY) if options.quick else (KERNEL_CASES, ACCURACY)
    cases = [case for case in all_cases if case.name in options.cases]
    rows = [row for case in cases for row in measure_case(case, options.repeats)]
    bounds = kernel_requirements(rows, cases)
    compared = measure_accuracy(accuracy_case) if ACCURACY_NAME in options.cases else []

    for name, text in about.items():
        print(f"{name}: {text}")
    print(f"fresh processes: {options.repeats} per side; seconds are their median, peak MB is what the worst of them")
    print("needed beyond its inputs, x standout is a side's seconds over ours")
    if rows:
        print(f"\n{kernel_table(rows)}")
    if compared:
        print(f"\nLandmarks against the exact fit, {accuracy_case.shape}:\n\n{accuracy_table(compared)}")
    print()
    if options.quick:
        print("Quick shapes: the lines below only show that the script works.")
    print("\n".join(map(str, bounds)))
    if options.json:
        result = as_dict(about, rows, bounds) | {"accuracy": [asdict(one) for one in compared]}
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    # A bound that is missed is a finding; a side that did not run is a fault.
    return int(any(row.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
