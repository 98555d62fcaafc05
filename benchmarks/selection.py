"""What choosing costs: automatic α against one α and against the package contrastive, and other choices.

Each measurement is a fresh process that loads the data, warms up and times one call. Run it on an idle
machine: ``python benchmarks/selection.py`` (or ``make bench``); ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from _options import parse
from _report import Row, as_dict, machine, whole, write_json
from _run import progress, run_script, warn_if_busy
from _selection_data import AUTO_ALPHA, QUICK_SELECTION_CASES, SELECTION_CASES, SelectionCase, write_selection_case
from _selection_report import limits_table, selection_requirements, selection_tables
from _turns import Turn, measure_peer, take_turns
from peers import ALPHA_PEER, NotInstallableError, peer_labels, python_of

LIMITS = Path(__file__).with_name("_peer_limits.py")


def measure_case(case: SelectionCase, options: argparse.Namespace) -> list[Row]:
    """Write the data of one case, measure the fit without and with the choice on it, and remove it again."""
    turns = [Turn(one.side, Row(case, one.label), one.options) for one in (case.base, case.choice, *case.others)]
    with tempfile.TemporaryDirectory(prefix="standout-bench-") as name:
        folder = Path(name)
        write_selection_case(case, folder)
        rows = take_turns(f"{case.name}, {case.shape}", turns, folder, options.repeats)
        # The peer chooses α and nothing else.
        if case.choice is AUTO_ALPHA and not options.no_peers:
            rows += measure_peer(ALPHA_PEER, case, folder, options.peer_repeats, options.peer_timeout)
    return rows


def peer_limits() -> dict[str, str]:
    """Try, on small data, what the peer may not be able to do; nothing is timed."""
    progress(f"what {ALPHA_PEER.requirement} does not do")
    try:
        return run_script(LIMITS, python_of(ALPHA_PEER))
    except NotInstallableError as error:
        return {"not installable": str(error)}


def main() -> int:
    options = parse(__doc__, [case.name for case in SELECTION_CASES], repeats=5, peer_timeout=600)
    warn_if_busy()
    about = machine()
    all_cases = QUICK_SELECTION_CASES if options.quick else SELECTION_CASES
    cases = [case for case in all_cases if case.name in options.cases]
    rows = [row for case in cases for row in measure_case(case, options)]
    bounds = selection_requirements(rows, cases)
    limits = {} if options.no_peers else peer_limits()

    notes = [
        f"fresh processes: {options.repeats} per side, {options.peer_repeats} per peer; seconds are their median,",
        "peak MB is what the worst of them needed beyond its inputs, R² is that of the best view if there are several",
    ]
    tables = selection_tables(rows)
    if limits:
        tables.append(f"{ALPHA_PEER.requirement}, tried on small data:\n\n{limits_table(limits)}")
    print(whole(about, notes, tables, bounds, quick=options.quick))
    if options.json:
        write_json(options.json, as_dict(about, rows, bounds) | {"limits": limits})
    # A bound that is missed is a finding; a side of ours that did not run is a fault.
    return int(any(row.error for row in rows if row.side not in peer_labels([ALPHA_PEER])))


if __name__ == "__main__":
    sys.exit(main())
