"""What the command line costs on large files: against reading them once and the bare fit.

Each measurement is a fresh process. Run it on an idle machine: ``python benchmarks/command_line.py``;
``--help`` lists the options. Needs ``standout[cli]``.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from _command_files import write_files
from _command_sides import START, measure
from _options import parse
from _report import Requirement, Row, aligned, as_dict, find, machine, number, whole, write_json
from _run import progress, warn_if_busy

BARE, OURS = "reading and bare fit", "standout fit"


@dataclass(frozen=True)
class CommandCase:
    """One shape of the files, and what the command may cost there.

    Attributes
    ----------
    rows, features
        Rows of each of the two files; columns of both.
    allowed_ratio
        Largest seconds of the command over those of reading and the bare fit.
    allowed_megabytes
        Largest memory of the command, the data included.
    """

    name: str
    rows: int
    features: int
    allowed_ratio: float = 2.0
    allowed_megabytes: float = 1500.0

    @property
    def shape(self) -> str:
        """The shape in words."""
        return f"({self.rows:,}+{self.rows:,}) x {self.features:,}"


CASES = (CommandCase("million", 1_000_000, 50),)
# For trying the script, not for its figures.
QUICK_CASES = (CommandCase("million", 5_000, 10),)


def measure_case(case: CommandCase, repeats: int) -> list[Row]:
    """Write the two files, measure both sides turn by turn, and remove everything again."""
    rows = [Row(case, BARE), Row(case, OURS)]
    with tempfile.TemporaryDirectory(prefix="standout-bench-") as name:
        folder = Path(name)
        progress(f"{case.shape}: writing the files")
        write_files(case, folder)
        for turn in range(repeats):
            progress(f"{case.shape}: turn {turn + 1} of {repeats}")
            for side, row in zip(("bare", "command"), rows, strict=True):
                row.add(measure(side, folder))
    return rows


def requirements(rows: list[Row], cases: list[CommandCase]) -> list[Requirement]:
    """Return the bounds that the command has to keep."""
    found = []
    for case in cases:
        bare, ours = (find(rows, case, side) for side in (BARE, OURS))
        ratio = ours.median_seconds / bare.median_seconds
        found.append(Requirement(f"{case.shape} {OURS} / {BARE}", ratio, case.allowed_ratio, "x"))
        work = _without_start(ours) / _without_start(bare)
        found.append(Requirement(f"{case.shape} the same without the start", work, case.allowed_ratio, "x"))
        found.append(Requirement(f"{case.shape} peak memory", ours.peak_megabytes, case.allowed_megabytes, "MB"))
    return found


def _without_start(row: Row) -> float:
    parts = [sum(seconds for name, seconds in facts.items() if name != START) for facts in row.facts]
    return statistics.median(parts) if parts else math.nan


def table(rows: list[Row]) -> str:
    """Return one line per side, and where its time went."""
    head = ("case", "side", "seconds", "x bare", "peak MB", "of which")
    return aligned([head, *(_cells(row, find(rows, row.case, BARE)) for row in rows)])


def _cells(row: Row, bare: Row) -> tuple[str, ...]:
    if not row.seconds:
        return row.case.shape, row.side, row.error or "not measured"
    medians = {name: statistics.median(facts[name] for facts in row.facts) for name in row.facts[0]}
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in medians.items())
    ratio = number(row.median_seconds / bare.median_seconds)
    return row.case.shape, row.side, f"{row.median_seconds:.2f}", ratio, f"{row.peak_megabytes:.0f}", parts


def main() -> int:
    options = parse(__doc__, [case.name for case in CASES], repeats=3)
    warn_if_busy()
    about = machine()
    cases = [case for case in (QUICK_CASES if options.quick else CASES) if case.name in options.cases]
    rows = [row for case in cases for row in measure_case(case, options.repeats)]
    bounds = requirements(rows, cases)
    notes = [
        f"fresh processes: {options.repeats} per side, from the start of Python to its end; seconds are their median,",
        f"peak MB is all that the worst of them held. {BARE}: pyarrow's read_table of both files and",
        f"DiscriminativePCA(2).fit; the way from table to array is not counted. {OURS}: with scores and report",
    ]
    print(whole(about, notes, [table(rows)], bounds, quick=options.quick))
    if options.json:
        write_json(options.json, as_dict(about, rows, bounds))
    # A bound that is missed is a finding; a side that did not run is a fault.
    return int(any(row.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
