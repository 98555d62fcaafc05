"""What a linear fit costs: against a reference, against scikit-learn, against the peers.

Each measurement is a fresh process that loads the data, warms up and times one fit. Run it on an idle
machine: ``python benchmarks/linear.py`` (or ``make bench``); ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from _data import CASES, DTYPES, QUICK_CASES, Case, write_case
from _options import parse
from _report import FIT_FAR, GATHER, GATHER_FAR, Row, as_dict, machine, requirements, table, whole, write_json
from _run import warn_if_busy
from _turns import Turn, measure_peer, take_turns
from peers import PEERS, peer_labels

FOLDS = 10  # the default of standout


def measure_own(case: Case, folder: Path, repeats: int) -> list[Row]:
    """Reference, standout in both precisions, near zero and far from it, scikit-learn's PCA and LDA, turn by turn."""
    turns = [
        Turn("reference-gram" if case.wide else "reference", Row(case, "reference")),
        Turn("standout", Row(case, "standout")),
        Turn("standout", Row(case, "standout", "float32")),
        Turn("standout", Row(case, f"standout, {FOLDS} folds held out"), {"held_out": FOLDS}),
        *(Turn("standout-far", Row(case, FIT_FAR, dtype)) for dtype in DTYPES),
        Turn("sklearn-pca", Row(case, "scikit-learn PCA(2)")),
        Turn("sklearn-lda", Row(case, "scikit-learn LDA")),
    ]
    if case.tall:
        sums = (("gather", GATHER), ("gather-far", GATHER_FAR))
        turns += [Turn(side, Row(case, label, dtype)) for dtype in DTYPES for side, label in sums]
    return take_turns(case.shape, turns, folder, repeats)


def measure_case(case: Case, options: argparse.Namespace) -> list[Row]:
    """Write the data of one case, measure every side on it, and remove it again."""
    with tempfile.TemporaryDirectory(prefix="standout-bench-") as name:
        folder = Path(name)
        write_case(case, folder)
        rows = measure_own(case, folder, options.repeats)
        for peer in () if options.no_peers else PEERS:
            rows += measure_peer(peer, case, folder, options.peer_repeats, options.peer_timeout)
    return rows


def main() -> int:
    options = parse(__doc__, [case.name for case in CASES], repeats=5, peer_timeout=120)
    warn_if_busy()
    about = machine()
    cases = [case for case in (QUICK_CASES if options.quick else CASES) if case.name in options.cases]
    rows = [row for case in cases for row in measure_case(case, options)]
    bounds = requirements(rows, cases)
    notes = [
        f"data: {', '.join(case.shape for case in cases)}",
        f"fresh processes: {options.repeats} per side, {options.peer_repeats} per peer; seconds are their median,",
        "CPU s is that of all threads, peak MB is what the worst of them needed beyond its inputs",
    ]
    print(whole(about, notes, [table(rows)], bounds, quick=options.quick))
    if options.json:
        write_json(options.json, as_dict(about, rows, bounds))
    # A bound that is missed is a finding; a side of ours that did not run is a fault.
    return int(any(row.error for row in rows if row.side not in peer_labels(PEERS)))


if __name__ == "__main__":
    sys.exit(main())
