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

# Little is loaded here, and the rest within main: an interrupt before main has begun ends in Python's traceback.
from standout.cli._display import accept_any_character, close_output, flat, print_failure
from standout.cli._signals import SIGNALS

# As in typing, which takes long to load.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from standout.explorer import Exploration

__all__ = ["explore", "main"]

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
    >>> main(["--version"])  # doctest: +ELLIPSIS
    standout 0...
    0
    """
    with SIGNALS.as_interruptions(), _silent_libraries():
        try:
            code = _run(sys.argv[1:] if arguments is None else list(arguments))
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            # The reader of our output has closed it. That is no failure: the result has been written.
            close_output()
            return 0
        except (Exception, KeyboardInterrupt) as error:
            SIGNALS.hold()
            return _fail(error)


def explore(
    X: Any,
    y: Any = None,
    *,
    background: Any = None,
    target: Any = None,
    features: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
    method: str = "dpca",
    image_shape: tuple[int, int] | None = None,
    session: Any = None,
    port: int = 0,
    browser: bool = True,
    wait: bool | None = None,
    **parameters: Any,
) -> Exploration:
    """What stands out in these rows, against those, and without that one? Ask by hand, on a page.

    Opens a page in the browser: a scatter plot of scores in which target and background are chosen by groups or by a
    lasso. The answer follows at once. Every step can be undone, and the page has the code that repeats it. Needs
    ``standout[explore]``.

    Parameters
    ----------
    X : array-like, frame or table of shape (n, n_features)
        The rows. With `background`, those of the target.
    y : array-like of shape (n,), default=None
        The group of each row, by which target and background can be chosen.
    background : dataset, or list or tuple of datasets, default=None
        The backgrounds to begin with. Without them, and without `target`, the page begins with PCA of all rows.
    target : str or list of str, default=None
        The groups of `y` to begin with as target; each other group is a background.
    features : sequence of str, default=None
        Names of the columns. None takes those of a frame.
    ids, labels : sequence of length n, default=None
        Names of the rows, and labels for colours.
    method : {"dpca", "cpca", "kdpca", "kcpca", "pca", "kpca"}, default="dpca"
    image_shape : tuple of (height, width), default=None
        If the columns are the pixels of images: rows are shown as images.
    session : str or Path, default=None
        A session that was saved on the page, whose steps are taken first.
    port : int, default=0
        Port of the page; 0 takes a free one.
    browser : bool, default=True
        Open the browser.
    wait : bool or None, default=None
        Wait until the last page is closed. None waits in scripts, and not in notebooks and at the prompt.
    **parameters
        Parameters of the estimator, such as ``shrinkage=0.1``.

    Returns
    -------
    Exploration
        With the `address` of the page, ``close()`` and ``wait()``.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import explore
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> page = explore(X, ["ill"] * 80 + ["well"] * 120, target="ill", browser=False, wait=False)
    Explore: http://127.0.0.1:...
    >>> page.close()
    """
    from standout.cli._explore import explore_data

    return explore_data(
        X,
        y,
        background,
        target=target,
        features=features,
        ids=ids,
        labels=labels,
        method=method,
        image_shape=image_shape,
        session=session,
        port=port,
        browser=browser,
        wait=wait,
        parameters=parameters,
    )


def _run(words: list[str]) -> int:
    # Imported here, so that a failure to import is reported like any other.
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
    """Print in one line what went wrong, and give the exit code."""
    # Readers of files turn an interruption into errors of their own: the signal tells.
    if SIGNALS.came is not None or isinstance(error, KeyboardInterrupt):
        print_failure("interrupted.")
        return SIGNALS.exit_code
    if isinstance(error, ImportError):
        print_failure(_missing_package(error))
        return FAILED
    import click

    if isinstance(error, click.exceptions.Abort):
        print_failure("interrupted.")
        return SIGNALS.exit_code
    print_failure(_phrased(error))
    return FAILED


def _phrased(error: BaseException) -> str:
    import click

    from standout._messages import Message
    from standout.cli._app import OPTIONS

    message = getattr(error, "message", None)
    if isinstance(message, Message):
        return message.phrased(OPTIONS)
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
    if "standout's extra" in words:
        return words
    return (
        f"a package is missing ({words}). Install all packages of standout's extra 'cli': pip install 'standout[cli]', "
        "or in a clone pip install '.[cli]'."
    )


@contextlib.contextmanager
def _silent_libraries() -> Iterator[None]:
    """Keep Python and libraries from printing; warnings that matter are caught and shown by the commands."""
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
