"""From measurements to what is printed: the machine, one table of ratios, one line per requirement."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from _data import DTYPES, Case

# "Clearly faster": a fifth of the time saved is more than the spread between runs.
FLOAT32_RATIO = 0.9
# Gathering data far from zero over gathering the same data near zero, in CPU time.
FAR_RATIO = 1.3
ERROR_WIDTH = 110
GATHER, GATHER_FAR, FIT_FAR = "sums alone", "sums alone, far from zero", "standout, far from zero"


@dataclass
class Row:
    """All measurements of one side at one case, of whichever benchmark."""

    case: Any
    side: str
    dtype: str = "float64"
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    r2: list[float] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    note: str | None = None

    def add(self, result: dict[str, Any]) -> None:
        """Take in one measurement: a line of a child, or why there is none."""
        self.note = result.get("note", self.note)
        if "error" in result:
            self.error = result["error"]
            return
        self.seconds.append(result["seconds"])
        if "cpu" in result:
            self.cpu.append(result["cpu"])
        self.megabytes.append(result["megabytes"])
        if result["r2"] is not None:
            self.r2.append(result["r2"])
        if result["facts"] is not None:
            self.facts.append(result["facts"])

    @property
    def median_seconds(self) -> float:
        return statistics.median(self.seconds) if self.seconds else math.nan

    @property
    def median_cpu(self) -> float:
        """CPU seconds of all threads: they depend less on what else the machine is doing."""
        return statistics.median(self.cpu) if self.cpu else math.nan

    @property
    def peak_megabytes(self) -> float:
        return max(self.megabytes, default=math.nan)

    @property
    def median_r2(self) -> float:
        return statistics.median(self.r2) if self.r2 else math.nan


@dataclass(frozen=True)
class Requirement:
    """A bound (from above, or from below with `at_least`), the value measured, and so whether it is met."""

    text: str
    value: float
    allowed: float
    unit: str
    at_least: bool = False

    @property
    def verdict(self) -> str:
        if math.isnan(self.value):
            return "not measured"
        met = self.value >= self.allowed if self.at_least else self.value <= self.allowed
        return "met" if met else "missed"

    def __str__(self) -> str:
        word = "at least" if self.at_least else "allowed"
        value = " ".join(filter(None, (_plain(self.value), self.unit)))
        return f"{self.verdict:>12}  {self.text}: {value} ({word} {_plain(self.allowed)})"


def machine() -> dict[str, str]:
    """Return what the figures depend on besides the code."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "CPU": f"{_cpu_model()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GB",
        "load at start": f"{os.getloadavg()[0]:.2f}",
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("standout", "numpy", "scipy", "scikit-learn")},
        "BLAS": _blas(),
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    """Name each BLAS in use: NumPy and SciPy wheels may bring one each."""
    import scipy.linalg  # noqa: F401  # loads SciPy's BLAS, so that it is seen
    from threadpoolctl import threadpool_info

    found = {
        f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', '?')}, {pool['num_threads']} threads)"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return "; ".join(sorted(found)) or "unknown"


def find(rows: list[Row], case: Any, side: str, dtype: str = "float64") -> Row:
    """Return the row of one side at one case; an empty one if it was not measured."""
    for row in rows:
        if (row.case, row.side, row.dtype) == (case, side, dtype):
            return row
    return Row(case, side, dtype)


def requirements(rows: list[Row], cases: list[Case]) -> list[Requirement]:
    """Return the bounds that the fit has to keep, in the order of the cases."""
    found = []
    for case in cases:
        reference = find(rows, case, "reference")
        double, single = (find(rows, case, "standout", dtype) for dtype in ("float64", "float32"))
        ratio = double.median_seconds / reference.median_seconds
        found.append(Requirement(f"{case.shape} fit / reference", ratio, case.allowed_ratio, "x"))
        if (allowed := case.allowed_megabytes) is not None:
            # Elsewhere the products, which alone gain from single precision, are not what takes the time.
            faster = single.median_seconds / double.median_seconds
            found.append(Requirement(f"{case.shape} float32 / float64", faster, FLOAT32_RATIO, "x"))
            for row in (double, single):
                text = f"{case.shape} {row.dtype} peak memory beyond the inputs"
                found.append(Requirement(text, row.peak_megabytes, allowed, "MB"))
    found += [_far_requirement(rows, case, dtype) for case in cases if case.tall for dtype in DTYPES]
    return found


def _far_requirement(rows: list[Row], case: Case, dtype: str) -> Requirement:
    near, far = (find(rows, case, side, dtype).median_cpu for side in (GATHER, GATHER_FAR))
    return Requirement(f"{case.shape} {dtype} {GATHER_FAR} / near zero, CPU", far / near, FAR_RATIO, "x")


def table(rows: list[Row]) -> str:
    """Return one line per side and case; a side without a result says why."""
    head = ("case", "side", "seconds", "x reference", "allowed", "CPU s", "x reference", "peak MB", "allowed", "R²")
    return aligned([head, *(_cells(row, find(rows, row.case, "reference")) for row in rows)])


def aligned(cells: list[tuple[str, ...]]) -> str:
    """Return the cells as text: a head, a rule, two columns to the left and the others to the right."""
    head = cells[0]
    # What went wrong is a sentence: it may run past the columns instead of widening them.
    widths = [max(len(line[i]) for line in cells if len(line) == len(head)) for i in range(len(head))]
    widths[1] = max(len(line[1]) for line in cells)
    lines = []
    for line in cells:
        left = [text.ljust(width) for text, width in zip(line[:2], widths[:2], strict=True)]
        right = [text.rjust(width) for text, width in zip(line[2:], widths[2:], strict=False)]
        lines.append("  ".join(left + (right if len(line) == len(head) else list(line[2:]))).rstrip())
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def _cells(row: Row, reference: Row) -> tuple[str, ...]:
    side = ", ".join(filter(None, (row.side, row.dtype if row.dtype != "float64" else None, row.note)))
    if not row.seconds:
        return row.case.shape, side, (row.error or "not measured")[:ERROR_WIDTH]
    ours = row.side == "standout"
    return (
        row.case.shape,
        side,
        f"{row.median_seconds:.3f}",
        number(row.median_seconds / reference.median_seconds),
        number(row.case.allowed_ratio if ours and row.dtype == "float64" else math.nan),
        f"{row.median_cpu:.3f}",
        number(row.median_cpu / reference.median_cpu),
        f"{row.peak_megabytes:.0f}",
        number((row.case.allowed_megabytes or math.nan) if ours else math.nan, 0),
        number(row.median_r2),
    )


def number(value: float, digits: int = 2) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _plain(value: float) -> str:
    """Two digits after the point, unless nothing of the value would be left."""
    return f"{value:.1e}" if 0 < abs(value) < 0.005 else f"{value:.2f}"


def _or_none(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def whole(about: dict[str, str], notes: list[str], tables: list[str], bounds: list[Requirement], *, quick: bool) -> str:
    """Return all that a benchmark prints: the machine, how it was measured, the tables, and the bounds last."""
    head = [f"{name}: {text}" for name, text in about.items()] + notes
    last = ["Quick shapes: the lines below only show that the script works."] if quick else []
    last += map(str, bounds)
    return "\n\n".join(filter(None, ["\n".join(head), *tables, "\n".join(last)]))


def write_json(path: Path, result: dict[str, Any]) -> None:
    path.write_text(json.dumps(result, indent=1) + "\n")


def as_dict(about: dict[str, str], rows: list[Row], bounds: list[Requirement]) -> dict[str, Any]:
    """Return everything measured, each repeat by itself, for a file that programs read."""
    return {
        "machine": about,
        "rows": [asdict(row) for row in rows],
        "requirements": [
            asdict(bound) | {"value": _or_none(bound.value), "verdict": bound.verdict} for bound in bounds
        ],
    }
