"""What every benchmark can be told on its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def parse(about: str, cases: Sequence[str], *, repeats: int, peer_timeout: float | None = None) -> argparse.Namespace:
    """Read the command line of a benchmark.

    Parameters
    ----------
    about
        The script's docstring, whose first line says what it is for.
    cases
        Names that `--cases` knows.
    repeats
        Fresh processes per side, unless told otherwise.
    peer_timeout
        Seconds that a peer may take, unless told otherwise; None where there are no peers.
    """
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", choices=cases, default=list(cases), help="which cases (all)")
    parser.add_argument("--repeats", type=int, help=f"fresh processes per side ({repeats}; with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="tiny shapes: tries the script, says nothing of speed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement as JSON")
    if peer_timeout is not None:
        _add_peers(parser, peer_timeout)
    options = parser.parse_args()
    if options.repeats is None:
        options.repeats = 1 if options.quick else repeats
    if options.repeats < 1:
        parser.error("--repeats must be at least 1.")
    if peer_timeout is not None and options.peer_repeats < 1:
        parser.error("--peer-repeats must be at least 1. Leave the peers out with --no-peers.")
    return options


def _add_peers(parser: argparse.ArgumentParser, timeout: float) -> None:
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--peer-repeats", type=int, default=1, help="fresh processes per peer (1)")
    parser.add_argument("--peer-timeout", type=float, default=timeout, help=f"seconds a peer may take ({timeout:.0f})")
