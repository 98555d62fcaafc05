"""The command line: files in, answer out.

Parses, and hands over: reading to `standout.io`, fitting to the estimators, showing to `standout.report`. Every failure
is one line on standard error and exit code 2, never a traceback, and leaves nothing half-written behind.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence

# Little is loaded up to here, and the rest within main: before it has begun, a Ctrl-C ends in a traceback of Python's.
from standout.cli._signals import SIGNALS
from standout.cli._streams import hang_up, say_failure, take_any_character
from standout.cli._text import flat

__all__ = ["main"]

FAILED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """What stands out in these files? The entry point of the command ``standout``.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after ``standout``; None means those of the process.

    Returns
    -------
    int
        The exit code: 0; 2 for a failure; 128 plus the number of the signal for an interruption, 130 for Ctrl-C.

    Examples
    --------
    >>> from standout.cli import main
    >>> main(["--version"])
    standout 0.1.0.dev0
    0
    """
    with SIGNALS.as_interruptions(), _only_our_words():
        try:
            code = _run(sys.argv[1:] if arguments is None else list(arguments))
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            # Whoever read our words has had enough of them: that is no failure, and what is to be written is written.
            hang_up()
            return 0
        except (Exception, KeyboardInterrupt) as error:
            # Who presses Ctrl-C twice gets one answer all the same.
            SIGNALS.hold()
            return _told(error)


def _run(words: list[str]) -> int:
    # Imported here, so that what goes wrong with it is told like everything else.
    import click

    from standout.cli._app import app

    if not words:
        # Who says nothing is told what can be said.
        print(app.get_help(click.Context(app, info_name="standout", **app.context_settings)))
        return FAILED
    # Not by app.main, which has words of its own for interruptions and closed pipes.
    with contextlib.suppress(click.exceptions.Exit), app.make_context("standout", words) as context:
        app.invoke(context)
    return 0


def _told(error: BaseException) -> int:
    """Tell in one line what went wrong, and give the exit code."""
    # Whatever the interruption was turned into on its way here: readers of files tend to make errors of anything.
    if SIGNALS.came is not None or isinstance(error, KeyboardInterrupt):
        say_failure("interrupted.")
        return SIGNALS.exit_code
    if isinstance(error, ImportError):
        return _missing_package(error)
    import click

    if isinstance(error, click.exceptions.Abort):
        say_failure("interrupted.")
        return SIGNALS.exit_code
    if isinstance(error, click.ClickException):
        say_failure(error.format_message())
    elif isinstance(error, MemoryError):
        say_failure("there is not enough memory for this. Take fewer columns (--select, --drop) or rows.")
    elif isinstance(error, OSError) and error.strerror is not None:
        where = f"{str(error.filename)!r} cannot be read or written" if error.filename is not None else "it stopped"
        say_failure(f"{where}: {error.strerror}. Check the name, the rights and the space that is left.")
    elif isinstance(error, ValueError | TypeError | OSError) and str(error):
        say_failure(str(error))
    else:
        say_failure(f"something unforeseen went wrong ({type(error).__name__}: {flat(error)}). Please report it.")
    return FAILED


def _missing_package(error: ImportError) -> int:
    words = str(error)
    if "standout's extra" not in words:
        words = (
            f"a package is missing ({words}). Install all of standout's extra 'cli': pip install 'standout[cli]', or "
            "in a clone pip install '.[cli]'."
        )
    say_failure(words)
    return FAILED


@contextlib.contextmanager
def _only_our_words() -> Iterator[None]:
    """Keep Python from adding words of its own to ours; warnings that matter are caught and told by the commands."""
    before = sys.unraisablehook
    # Files that cannot be closed because the disk is full complain once more when they are thrown away.
    sys.unraisablehook = lambda _: None
    # Libraries log, and where nobody listens Python prints it: matplotlib, when its list of fonts takes long to make.
    nobody = logging.NullHandler()
    logging.getLogger().addHandler(nobody)
    take_any_character()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger().removeHandler(nobody)
        sys.unraisablehook = before
