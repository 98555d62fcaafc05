"""Run a command, and say in one line what went wrong if it fails."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator

from standout.cli._display import SIGNALS, accept_any_character, close_output, flat, print_failure

FAILED = 2


def run(words: list[str]) -> int:
    """Run the command of these words, and return its exit code."""
    with SIGNALS.as_interruptions(), _silent_libraries():
        try:
            code = _invoke(words)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            # The reader of our output has closed it. That is not a failure: the result has been written.
            close_output()
            return 0
        except (Exception, KeyboardInterrupt) as error:
            SIGNALS.hold()
            return _fail(error)


def _invoke(words: list[str]) -> int:
    import click

    from standout.cli._app import app

    if not words:
        print(app.get_help(click.Context(app, info_name="standout", **app.context_settings)))
        return FAILED
    # Not by app.main, which handles interruptions and closed pipes in its own way.
    with contextlib.suppress(click.exceptions.Exit), app.make_context("standout", words, obj=words) as context:
        app.invoke(context)
    return 0


def _fail(error: BaseException) -> int:
    """Print in one line what went wrong, and return the exit code."""
    # Readers of files turn an interruption into errors of their own: the signal tells.
    if SIGNALS.came is not None or isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        print_failure("interrupted.")
        return SIGNALS.exit_code
    print_failure(_missing_package(error) if isinstance(error, ImportError) else _phrased(error))
    return FAILED


def _phrased(error: BaseException) -> str:
    import click

    from standout._options import OPTION_NAMES

    if hasattr(error, "phrased"):
        return str(error.phrased(OPTION_NAMES))
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, MemoryError):
        return "there is not enough memory. Read the files in parts (--stream), or use fewer columns (--columns)."
    if isinstance(error, OSError) and error.strerror is not None:
        where = f"{str(error.filename)!r} cannot be read or written" if error.filename is not None else "it stopped"
        return f"{where}: {error.strerror}. Check the name, the permissions and the free space."
    if isinstance(error, ValueError | TypeError | OSError) and str(error):
        return str(error)
    return f"an unforeseen error occurred ({type(error).__name__}: {flat(error)}). Please report it."


def _missing_package(error: ImportError) -> str:
    words = str(error)
    if "pip install" in words:
        return words
    return (
        f"a package is missing ({words}). Install all packages of standout's extra 'cli': pip install 'standout[cli]', "
        "or in a clone pip install '.[cli]'."
    )


@contextlib.contextmanager
def _silent_libraries() -> Iterator[None]:
    """Keep Python and libraries from printing; commands collect and show the warnings that matter."""
    before = sys.unraisablehook
    # Files that cannot be closed because the disk is full raise a second time when they are deleted.
    sys.unraisablehook = lambda _: None
    # Python prints what libraries log if there is no handler: matplotlib, when it makes its list of fonts.
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    accept_any_character()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger().removeHandler(handler)
        sys.unraisablehook = before
