"""Who is measured when: our own sides turn by turn, then the peers within their limits."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _report import Row
from _run import progress, run_child
from peers import NotInstallableError, Peer, python_of

PEER_GIGABYTES = 16.0
CRASHED = f"killed by {signal.SIGSEGV.name}"


@dataclass
class Turn:
    """One side to be measured.

    Attributes
    ----------
    side
        What `_child.py` calls it.
    row
        Takes the measurements.
    options
        What the side's fit is told.
    """

    side: str
    row: Row
    options: dict[str, Any] = field(default_factory=dict)


def take_turns(title: str, turns: Sequence[Turn], folder: Path, repeats: int) -> list[Row]:
    """Measure the sides one after the other, `repeats` times over.

    Turns instead of blocks: a machine that slows down for a while then slows down every side.
    """
    for number in range(repeats):
        progress(f"{title}: turn {number + 1} of {repeats}")
        for turn in turns:
            turn.row.add(run_child(turn.side, folder, turn.row.dtype, options=turn.options))
    return [turn.row for turn in turns]


def measure_peer(peer: Peer, case: Any, folder: Path, repeats: int, timeout: float) -> list[Row]:
    """All sides of one peer, in its own environment; a side that fails once is not tried again."""
    rows = {side: Row(case, label) for side, label in peer.sides.items()}
    try:
        python = python_of(peer)
    except NotInstallableError as error:
        for row in rows.values():
            row.error = f"not installable: {error}"
        return list(rows.values())
    for side, row in rows.items():
        progress(f"{case.shape}: {row.side}")
        while len(row.seconds) < repeats and row.error is None:
            row.add(run_peer(side, folder, python, timeout))
    return list(rows.values())


def run_peer(side: str, folder: Path, python: Path, timeout: float) -> dict[str, Any]:
    """Measure a peer within its limits of time and memory; after a crash, once more with one BLAS thread.

    Seen with OpenBLAS 0.3.31 and two threads: a bare float64 `A.T @ A` crashes from about 17,500 columns on, and
    does not with one thread (numpy issue 19685 reports the like). A peer is not blamed for that: it gets its
    result, marked as what it is.
    """
    limits = {"timeout": timeout, "gigabytes": PEER_GIGABYTES}
    result = run_child(side, folder, python=python, **limits)
    if result.get("error") == CRASHED:
        result = run_child(side, folder, python=python, threads=1, **limits)
        result["note"] = "1 BLAS thread"
    return result
