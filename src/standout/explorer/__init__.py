"""Exploring data by hand: target and background are chosen on a page, which answers while a slider moves.

`standout.explore` and the command ``standout explore`` open the page. The other names work without one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from standout._messages import InvalidValueError, MissingFileError, listed, require_extra, shown
from standout.explorer._engine import Engine, State, changed, checked, inside, read_session, write_session
from standout.explorer._table import DATASET, Table

if TYPE_CHECKING:
    from standout.explorer._server import Exploration

# Parameters that the page changes.
OF_THE_PAGE = ("scale", "center", "n_components", "shrinkage", "alpha", "epsilon")

__all__ = ["Engine", "State", "Table", "changed", "explore", "inside", "read_session", "write_session"]


def explore(
    X: Any,
    y: Any = None,
    *,
    background: Any = None,
    target: Any = None,
    labels: Any = None,
    ids: Any = None,
    method: str = "dpca",
    image_shape: tuple[int, int] | None = None,
    session: str | Path | None = None,
    port: int = 0,
    browser: bool | None = None,
    wait: bool | None = None,
    **parameters: Any,
) -> Exploration:
    """What stands out in which rows? Choose target and background by hand, on a page that answers.

    In a notebook, the page is shown below the cell.

    Parameters
    ----------
    X : file, frame or array
        All rows, or the target if there is a background. Columns of a frame or file that are not numbers can be used
        to choose rows, as subjects or for colours.
    y : array-like or str, default=None
        The condition of each row, or the name of its column.
    background : dataset or list of datasets, default=None
    target : str or list of str, default=None
        Conditions of `y` that are the target at the start; all others are the background.
    labels, ids : array-like, default=None
        Labels for colours and names of the rows of X.
    method : {"dpca", "cpca", "kdpca", "kcpca"}, default="dpca"
    image_shape : tuple of (int, int), default=None
        Height and width, if columns are pixels.
    session : str or path, default=None
        A session that was saved on the page.
    port : int, default=0
        0 is a free port.
    browser : bool, default=None
        Whether to open a browser; None does so outside of notebooks.
    wait : bool, default=None
        Whether to return only after the exploration has ended; None waits in a script.
    **parameters
        Parameters of the estimator, as in Python's ``DiscriminativePCA``.

    Returns
    -------
    Exploration
        With `address` and `close`.

    Examples
    --------
    >>> import numpy as np
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2, 50, 3))
    >>> page = standout.explore(X, background=Y, browser=False, wait=False)
    >>> page.address.startswith("http://127.0.0.1:")
    True
    >>> page.close()
    """
    require_extra("jinja2", "explore", "the page")
    table = Table.of(X, y, background=background, labels=labels, ids=ids, image_shape=image_shape)
    wanted = [] if target is None else np.atleast_1d(np.asarray(target, dtype=str)).tolist()
    column = y if isinstance(y, str) or y is None else "y"
    state = begun(table, method, wanted, by=column, parameters=parameters)
    notebook = _in_notebook()
    made = serve(table, state, parameters, session=session, port=port, framed=notebook)
    if browser if browser is not None else not notebook:
        made.open_browser()
    if not notebook and (browser or wait is not False):
        print(f"Explore: {made.address}")
    if wait or (wait is None and not (hasattr(sys, "ps1") or "IPython" in sys.modules)):
        made.wait()
    return made


def begun(
    table: Table,
    method: str,
    target: list[str],
    others: list[str] | None = None,
    *,
    by: str | None = None,
    subjects: str | None = None,
    parameters: dict[str, Any] | None = None,
) -> State:
    """Return the first state of a page: nothing chosen, conditions that are named, or the first of several datasets."""
    given = {name: value for name, value in (parameters or {}).items() if name in ("scale", "center")}
    wanted = (parameters or {}).get("n_components", 2)
    n_components = min(wanted if isinstance(wanted, int) else 2, table.source.width or 1)
    known = by if by in table.words else next(iter(table.words), "")
    value = next(
        ((parameters or {})[name] for name in ("shrinkage", "alpha", "epsilon") if name in (parameters or {})), None
    )
    value = value if isinstance(value, int | float) else None
    state = State(known, bytes(table.n_rows), method, value, subjects=subjects, n_components=n_components, **given)
    state = checked(state, table)
    if known == DATASET and not target:
        target = [str(table.words[DATASET][0])]
    if not target:
        return state
    present = set(table.words[known].tolist()) if table.words else set()
    unknown = [name for name in [*target, *(others or [])] if name not in present]
    if unknown:
        advice = f"Choose among {listed('value', sorted(present))}."
        raise InvalidValueError(f"{unknown[0]!r} is not in column {known!r}", advice=advice)
    state = changed(state, {"do": "role", "values": target, "role": "target"}, table)
    rest = {"do": "role", "values": others, "role": "background"} if others else {"do": "rest"}
    return changed(state, rest, table)


def serve(
    table: Table, state: State, parameters: dict[str, Any], *, session: Any = None, port: int = 0, framed: bool = False
) -> Exploration:
    """Begin to serve the page of an exploration. What cannot be answered is said before."""
    from standout.explorer._server import Exploration

    if session is not None:
        if not Path(session).is_file():
            raise MissingFileError(f"there is no file {shown(session)}", advice="Check the name of the session.")
        state = read_session(Path(session).read_text(encoding="utf-8", errors="replace"), table)
    engine = Engine(table, {name: value for name, value in parameters.items() if name not in OF_THE_PAGE})
    engine.answer(state)
    return Exploration(engine, state, port=port, framed=framed)


def _in_notebook() -> bool:
    """Tell whether this runs in a kernel of Jupyter."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell"
