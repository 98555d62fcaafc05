"""What docs/paper.md quotes, in one small file: ``make reproduce`` writes it, and a test compares the page with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from experiments._record import MethodRun, Record, Status
from experiments._report import made_with

DIGITS = 6


def missing(records: Sequence[Record], names: Sequence[str]) -> list[str]:
    """Name the experiments that a summary of all would lack."""
    done = {record.name for record in records if record.status == Status.DONE.value and not record.smaller}
    return [name for name in names if name not in done]


def summary(records: Sequence[Record]) -> str:
    """Give the verdict on every claim and the clustering error of every method, as JSON."""
    found = {
        "made with": made_with(),
        "minutes": round(sum(record.seconds for record in records) / 60, 1),
        "seeds": max(record.n_seeds for record in records),
        "experiments": {record.name: _in_short(record) for record in records},
    }
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _in_short(record: Record) -> dict[str, Any]:
    settings: dict[str, dict[str, list[float]]] = {}
    for run in record.runs:
        settings.setdefault(run.setting, {})[run.method] = _error(run)
    return {
        "title": record.title,
        "paper": record.paper,
        "claims": {
            finding.text: {"verdict": finding.verdict, "where": finding.where, "ours": finding.ours}
            for finding in record.findings
            if not finding.beyond
        },
        "error": settings,
        "shrinkage": _shrinkage(record),
    }


def _error(run: MethodRun) -> list[float]:
    """Give mean and spread over the seeds, of two components."""
    return [round(run.mean(), DIGITS), round(run.spread(), DIGITS)]


def _shrinkage(record: Record) -> dict[str, list[float]]:
    """Give the smallest and the largest shrinkage that each method chose by itself."""
    chosen: dict[str, list[float]] = {}
    for run in record.runs:
        chosen.setdefault(run.method, []).extend(one for values in run.facts.get("shrinkage", []) for one in values)
    return {
        method: [round(min(values), DIGITS), round(max(values), DIGITS)] for method, values in chosen.items() if values
    }
