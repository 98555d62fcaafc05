"""What came out, in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from standout.cli._as_options import as_options
from standout.cli._display import Display
from standout.report import Findings, summary
from standout.report._wording import shortened

# Columns that are named for a component.
MOST_FEATURES = 4


def close(findings: Findings, final: Path, display: Display) -> None:
    """Say in the terminal what came out, why so, what to be careful about, and where to look."""
    found = summary(findings)
    display.say(found["headline"])
    display.say()
    head = ["component", "ratio" if findings.is_ratio else "eigenvalue", "p-value", "columns that follow it"]
    display.table(head, [_row(component) for component in found["components"]])
    display.say()
    for sentence in found["choices"]:
        display.say(f"- {as_options(sentence)}")
    warn(found["warnings"], display)
    display.say(f"Report: {final / 'report.html'}")


def warn(sentences: Iterable[str], display: Display) -> None:
    """Say what to be careful about."""
    for sentence in sentences:
        display.say(f"! {as_options(sentence)}")


def leading_columns(component: dict[str, Any], most: int = MOST_FEATURES) -> str:
    """Name the columns that follow a component most closely."""
    return ", ".join(shortened(feature["name"], 30) for feature in component["features"][:most]) or "-"


def ratio(component: dict[str, Any]) -> str:
    """Show an eigenvalue, which may be infinite."""
    value = component["eigenvalue"]
    return value if isinstance(value, str) else f"{value:.3g}"


def _row(component: dict[str, Any]) -> list[str]:
    p_value = component["p_value"]
    shown = "-" if p_value is None else "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
    return [str(component["component"]), ratio(component), shown, leading_columns(component)]
