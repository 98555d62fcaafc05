"""What a linear fit costs: against the machine's limit, against scikit-learn, against the peers.

Each measurement is a fresh process that loads the data, warms up and times one fit. Run it on an idle
machine: ``python benchmarks/linear.py`` (or ``make bench``); ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from _data import CASES, QUICK_CASES, Case, write_case
from _report import Row, as_dict, machine, requirements, table
from _run import progress, run_child, warn_if_busy
from peers import PEERS, NotInstallableError, Peer, python_of

PEER_GIGABYTES = 16.0
CRASHED = f"killed by {signal.SIGSEGV.name}"


def measure_own(case: Case, folder: Path, repeats: int) -> list[Row]:
    """Limit, standout in both precisions and scikit-learn's PCA, turn by turn.

    Turns instead of blocks: a machine that slows down for a while then slows down every side.
    """
    limit = "limit-gram" if case.wide else "limit"
    rows = {
        limit: Row(case, "limit"),
        "standout": Row(case, "standout"),
        "standout float32": Row(case, "standout", "float32"),
        "sklearn-pca": Row(case, "scikit-learn PCA(2)"),
    }
    for turn in range(repeats):
        progress(f"{case.shape}: turn {turn + 1} of {repeats}")
        for side, row in rows.items():
            row.add(run_child(side.split()[0], folder, row.dtype))
    return list(rows.values())


def measure_peer(peer: Peer, case: Case, folder: Path, repeats: int, timeout: float) -> list[Row]:
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


def measure_case(case: Case, options: argparse.Namespace) -> list[Row]:
    """Write the data of one case, measure every side on it, and remove it again."""
    with tempfile.TemporaryDirectory(prefix="standout-bench-") as name:
        folder = Path(name)
        write_case(case, folder)
        rows = measure_own(case, folder, options.repeats)
        for peer in () if options.no_peers else PEERS:
            rows += measure_peer(peer, case, folder, options.peer_repeats, options.peer_timeout)
    return rows


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [case.name for case in CASES]
    parser.add_argument("--cases", nargs="+", choices=names, default=names, help="which shapes (all)")
    parser.add_argument("--repeats", type=int, help="fresh processes per side (5; with --quick 1)")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--peer-repeats", type=int, default=1, help="fresh processes per peer (1)")
    parser.add_argument("--peer-timeout", type=float, default=120, help="seconds a peer may take (120)")
    parser.add_argument("--quick", action="store_true", help="tiny shapes: tries the script, says nothing of speed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement as JSON")
    options = parser.parse_args(arguments)
    if options.repeats is None:
        options.repeats = 1 if options.quick else 5
    if min(options.repeats, options.peer_repeats) < 1:
        parser.error("repeats must be at least 1. Leave the peers out with --no-peers.")
    return options


def main() -> int:
    options = parse()
    warn_if_busy()
    about = machine()
    cases = [case for case in (QUICK_CASES if options.quick else CASES) if case.name in options.cases]
    rows = [row for case in cases for row in measure_case(case, options)]
    bounds = requirements(rows, cases)

    for name, text in about.items():
        print(f"{name}: {text}")
    print(f"data: {', '.join(case.shape for case in cases)}")
    print(f"fresh processes: {options.repeats} per side, {options.peer_repeats} per peer; seconds are their median,")
    print("peak MB is what the worst of them needed beyond its inputs")
    print(f"\n{table(rows)}\n")
    if options.quick:
        print("Quick shapes: the lines below only show that the script works.")
    print("\n".join(map(str, bounds)))
    if options.json:
        options.json.write_text(json.dumps(as_dict(about, rows, bounds), indent=1) + "\n")
    # A bound that is missed is a finding; a side of ours that did not run is a fault.
    peer_labels = {label for peer in PEERS for label in peer.sides.values()}
    return int(any(row.error for row in rows if row.side not in peer_labels))


if __name__ == "__main__":
    sys.exit(main())
