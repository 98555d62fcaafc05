"""From the measurements of choices to what is printed: two tables, and the bounds."""

from __future__ import annotations

import math

from _report import ERROR_WIDTH, Requirement, Row, aligned, find, number
from _selection_data import SelectionCase

HEAD = ("case", "side", "seconds", "x base", "CPU x base", "allowed", "peak MB", "R²", "found")


def ratio(rows: list[Row], row: Row) -> float:
    """Return the seconds of a row over those of the fit without a choice, at the same case."""
    return row.median_seconds / find(rows, row.case, row.case.base.label).median_seconds


def cpu_ratio(rows: list[Row], row: Row) -> float:
    """Return the same for CPU time, of all threads."""
    return row.median_cpu / find(rows, row.case, row.case.base.label).median_cpu


def selection_requirements(rows: list[Row], cases: list[SelectionCase]) -> list[Requirement]:
    """Return the bounds that choosing has to keep, in the order of the cases."""
    return [
        Requirement(
            f"{case.name} {case.shape}: {case.choice.label} / {case.base.label}",
            ratio(rows, find(rows, case, case.choice.label)),
            case.allowed,
            "x",
        )
        for case in cases
        if case.allowed is not None
    ]


def selection_tables(rows: list[Row]) -> list[str]:
    """Return the table of the choices that have a bound to keep, and the table of the others."""
    bounded = [row for row in rows if row.case.allowed is not None]
    others = [row for row in rows if row.case.allowed is None]
    tables = []
    if bounded:
        tables.append("With a bound; x base is against the side named first:\n\n" + _table(bounded))
    if others:
        tables.append("For information, without a bound; x base is against the fits named first:\n\n" + _table(others))
    return tables


def _table(rows: list[Row]) -> str:
    return aligned([HEAD, *(_cells(row, rows) for row in rows)])


def _cells(row: Row, rows: list[Row]) -> tuple[str, ...]:
    case: SelectionCase = row.case
    side = ", ".join(filter(None, (row.side, row.note)))
    if not row.seconds:
        return case.shape, side, (row.error or "not measured")[:ERROR_WIDTH]
    allowed = case.allowed if row.side == case.choice.label else None
    return (
        case.shape,
        side,
        f"{row.median_seconds:.3f}",
        number(ratio(rows, row)),
        number(cpu_ratio(rows, row)),
        number(math.nan if allowed is None else allowed),
        f"{row.peak_megabytes:.0f}",
        number(row.median_r2),
        row.facts[0]["found"] if row.facts else "-",
    )


def limits_table(found: dict[str, str]) -> str:
    """Return what the peer was asked to do, and what came of it."""
    width = max(map(len, found))
    return "\n".join(f"{question.ljust(width)}  {answer}" for question, answer in found.items())
