"""The command line: it reads files and writes the answer.

This package parses the options. `standout.io` reads the files, the estimators fit, and `standout.report` makes the
findings. A command that fails prints one line on standard error, without a traceback. Its exit code is 2, and it leaves
no unfinished file.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """What stands out in these files? The entry point of the command ``standout``.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after ``standout``; None means the arguments of the process.

    Returns
    -------
    int
        The exit code: 0 for success; 2 for a failure; 128 plus the number of the signal for an interruption (130 for
        Ctrl-C).

    Examples
    --------
    >>> from standout.cli import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    standout 0...
    0
    """
    if arguments is None:
        # Packages make many objects when they are imported. Searching them for garbage takes .3 s of a fit, and .5 s at
        # the end of the process.
        gc.set_threshold(100_000)
        atexit.register(gc.freeze)
    try:
        # Import within this function. If Ctrl-C came during an import outside, Python would print a traceback.
        from standout.cli._display import run

        return run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("standout: interrupted.\n")
        return 130
