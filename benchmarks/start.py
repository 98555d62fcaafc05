"""How quickly the command starts, and what `fit` and `compare` cost on middling files: CPU time of fresh processes.

CPU time is that of the process and of all that it starts, user and system. Run it on an idle machine:
``python benchmarks/start.py``; ``--help`` lists the options. Needs ``standout[cli]``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from _options import parse
from _report import Requirement, Row, aligned, as_dict, find, machine, number, whole, write_json
from _run import progress, warn_if_busy

PCA = "from sklearn.decomposition import PCA"
IMPORT = "from standout import DiscriminativePCA"
HELP = "standout --help"
FIT = "standout fit"
COMPARE = "standout compare"


@dataclass(frozen=True)
class StartCase:
    """Two files, the sides that are measured on them, and how much more than the first side the others may cost.

    Attributes
    ----------
    rows
        Rows of the target and of the background.
    side
        Height and width of the images that are the rows; None for a few correlated columns.
    allowed
        The sides, the yardstick first, with the largest CPU time over that of the yardstick; None without a bound.
    """

    name: str
    rows: tuple[int, int]
    features: int
    side: int | None
    allowed: tuple[tuple[str, float | None], ...]

    @property
    def shape(self) -> str:
        """The shape in words."""
        return f"({self.rows[0]:,}+{self.rows[1]:,}) x {self.features:,}"


SMALL_SIDES = ((PCA, None), (IMPORT, 1.15), (HELP, None), (FIT, 2.0))
IMAGE_SIDES = ((FIT, None), (COMPARE, 8.0))
CASES = (
    StartCase("small", (300, 400), 15, None, SMALL_SIDES),
    StartCase("images", (1_400, 1_400), 784, 28, IMAGE_SIDES),
)
# For trying the script, not for its figures.
QUICK_CASES = (
    StartCase("small", (60, 60), 5, None, SMALL_SIDES),
    StartCase("images", (60, 60), 36, 6, IMAGE_SIDES),
)


def write_files(case: StartCase, folder: Path) -> None:
    """Write a target with two groups, and a background without."""
    rng = np.random.default_rng(0)
    mixture = rng.normal(size=(min(5, case.features), case.features))
    for name, n in zip(("target", "background"), case.rows, strict=True):
        groups = rng.choice([-1.0, 1.0], size=(n, 1)) * (name == "target")
        if case.side is None:
            rows = rng.normal(size=(n, case.features)) + rng.normal(size=(n, len(mixture))) @ mixture
            rows[:, :2] += 2.0 * groups
            head = ",".join(f"column {number}" for number in range(case.features))
            np.savetxt(folder / f"{name}.csv", rows, fmt="%.6f", delimiter=",", header=head, comments="")
        else:
            np.save(folder / f"{name}.npy", _images(rng, n, case.side) + groups * _pattern(case.side))


def _images(rng: np.random.Generator, n: int, side: int) -> Any:
    """Draw images that are smooth, as photographs are, with a little noise."""
    smooth = ndimage.gaussian_filter(rng.normal(size=(n, side, side)), (0, 2, 2))
    return (10.0 * smooth + 0.3 * rng.normal(size=smooth.shape)).reshape(n, side * side)


def _pattern(side: int) -> Any:
    """Give the image that is added to one group of the target, and taken off the other: stripes in its middle."""
    place = np.arange(side)
    middle = np.exp(-(((place - side / 2) / (side / 4)) ** 2))
    return (np.outer(middle, middle) * np.sign(np.sin(place))).ravel()


def measure(side: str, case: StartCase, folder: Path) -> dict[str, Any]:
    """Measure the CPU time of one fresh process; what goes wrong comes back as one line under "error"."""
    target, background = (f"{name}.{'csv' if case.side is None else 'npy'}" for name in ("target", "background"))
    output = {FIT: "out", COMPARE: "out.html"}.get(side, "")
    files = [target, "-b", background, "-o", output, "--overwrite", "--quiet"]
    command = [sys.executable, "-m", *side.split(), *(files if output else [])]
    if side in (PCA, IMPORT):
        command = [sys.executable, "-c", side]
    # An installed package is compiled already.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "megabytes": after.ru_maxrss / 1e3, "r2": None, "facts": None}


def measure_case(case: StartCase, repeats: int) -> list[Row]:
    """Write the files, measure all sides turn by turn, and remove everything again."""
    rows = [Row(case, side) for side, _ in case.allowed]
    with tempfile.TemporaryDirectory(prefix="standout-bench-") as name:
        folder = Path(name)
        write_files(case, folder)
        # Not counted: compiles the package, and brings its files into memory.
        measure(IMPORT, case, folder)
        if case.side is None:
            measure(FIT, case, folder)
        for turn in range(repeats):
            for row in rows:
                progress(f"{case.shape}: turn {turn + 1} of {repeats}, {row.side}")
                row.add(measure(row.side, case, folder))
    return rows


def requirements(rows: list[Row], cases: list[StartCase]) -> list[Requirement]:
    """Return the bounds."""
    found = []
    for case in cases:
        yardstick = case.allowed[0][0]
        for side, allowed in case.allowed[1:]:
            if allowed is not None:
                ratio = find(rows, case, side).median_seconds / find(rows, case, yardstick).median_seconds
                found.append(Requirement(f"{case.shape} {side} / {yardstick}", ratio, allowed, "x"))
    return found


def table(rows: list[Row]) -> str:
    """Return one line per side and case."""
    head = ("case", "side", "CPU seconds", "x the first", "least", "most")
    return aligned([head, *(_cells(row, find(rows, row.case, row.case.allowed[0][0])) for row in rows)])


def _cells(row: Row, yardstick: Row) -> tuple[str, ...]:
    if not row.seconds:
        return row.case.shape, row.side, row.error or "not measured"
    ends = (f"{end(row.seconds):.2f}" for end in (min, max))
    ratio = number(row.median_seconds / yardstick.median_seconds)
    return row.case.shape, row.side, f"{row.median_seconds:.2f}", ratio, *ends


def main() -> int:
    options = parse(__doc__, [case.name for case in CASES], repeats=5)
    warn_if_busy()
    about = machine()
    cases = [case for case in (QUICK_CASES if options.quick else CASES) if case.name in options.cases]
    rows = [row for case in cases for row in measure_case(case, options.repeats)]
    bounds = requirements(rows, cases)
    notes = [
        f"CPU time of fresh processes and all that they start: the median of {options.repeats}, the least, the most.",
        "fit and compare: with all that they choose and test by default, and all that they write",
    ]
    print(whole(about, notes, [table(rows)], bounds, quick=options.quick))
    if options.json:
        write_json(options.json, as_dict(about, rows, bounds))
    # A bound that is missed is a finding; a side that did not run is a fault.
    return int(any(row.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
