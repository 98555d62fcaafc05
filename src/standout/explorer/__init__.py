"""Explore data by hand: the user chooses target and background on a page, which shows the answer immediately.

`standout.explore` and the command ``standout explore`` open the page. The other names are for use without a page.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import json
import os
import secrets
import shutil
import sys
import tempfile
import threading
import webbrowser
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from standout._messages import InvalidValueError, MissingFileError, listed, require_extra, shown
from standout.estimators._scores import CHOSEN
from standout.explorer._engine import Engine, State, changed, checked, inside, read_session, write_session
from standout.explorer._page import Page
from standout.explorer._table import DATASET, Table
from standout.report._words import encoded, static

__all__ = ["Engine", "State", "Table", "changed", "explore", "inside", "read_session", "write_session"]

# Parameters that the page changes.
OF_THE_PAGE = ("scale", "center", "n_components", "shrinkage", "alpha", "epsilon")
# Seconds that the server waits after the last page was closed. A browser that reloads a page first closes the page.
GRACE = 6.0
# A message has at most MOST_BYTES bytes, plus BYTES_PER_ROW for each row of the table, because a saved session that is
# opened on the page holds the role of each row. SILENCE is the timeout of a connection in seconds.
MOST_BYTES, BYTES_PER_ROW, SILENCE = 2**20, 4, 60.0
MOST_PAGES = 16
REFUSED = "This page needs the whole address that standout explore has printed, with its token."
NOTEBOOKS = "http://localhost:* https://localhost:* http://127.0.0.1:* https://127.0.0.1:*"


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
    """What stands out in which rows? Choose target and background by hand on an interactive page.

    In a notebook, the page is shown below the cell.

    Parameters
    ----------
    X : file, frame or array
        All rows; with a background, the rows of the target. Columns of a frame or file that are not numbers can be used
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
        Its `address` opens the page; `close` ends the exploration.

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
    state = begun(table, method, wanted, by=y if isinstance(y, str) or y is None else "y", parameters=parameters)
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
    """Return the first state of a page.

    The target has the named conditions. Without names, it is the first dataset if rows are listed by their dataset.
    Otherwise, the target is empty.
    """
    given = parameters or {}
    settings: dict[str, Any] = {name: given[name] for name in ("scale", "center") if name in given}
    wanted, value = given.get("n_components"), given.get(CHOSEN.get(method, ""))
    settings["n_components"] = min(wanted if isinstance(wanted, int) else 2, table.source.width or 1)
    settings["value"] = value if isinstance(value, int | float) else None
    known = by if by in table.words else next(iter(table.words), "")
    state = checked(State(known, bytes(table.n_rows), method, subjects=subjects, **settings), table)
    if known == DATASET and not target:
        target = [str(table.words[DATASET][0])]
    if not target:
        return state
    present = sorted(set(table.words[known].tolist())) if table.words else []
    unknown = [name for name in [*target, *(others or [])] if name not in present]
    if unknown:
        advice = f"Choose among {listed('value', present)}."
        raise InvalidValueError(f"{unknown[0]!r} is not in column {known!r}", advice=advice)
    rest = {"do": "role", "values": others, "role": "background"} if others else {"do": "rest"}
    return changed(changed(state, {"do": "role", "values": target, "role": "target"}, table), rest, table)


def serve(
    table: Table, state: State, parameters: dict[str, Any], *, session: Any = None, port: int = 0, framed: bool = False
) -> Exploration:
    """Begin to serve the page of an exploration. Errors are raised before the page opens."""
    if session is not None:
        if not Path(session).is_file():
            raise MissingFileError(f"there is no file {shown(session)}", advice="Check the name of the session.")
        state = read_session(Path(session).read_text(encoding="utf-8", errors="replace"), table)
    engine = Engine(table, {name: value for name, value in parameters.items() if name not in OF_THE_PAGE})
    engine.answer(state)
    return Exploration(engine, state, port=port, framed=framed)


def _in_notebook() -> bool:
    """Return whether this runs in a kernel of Jupyter."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell"


# --- the server: one address with a token, for pages on this machine only ---------------------------------------------


class Exploration:
    """A running exploration, with the address of its page.

    The exploration ends with `close`, or some seconds after its last page was closed.

    Attributes
    ----------
    address : str
        It contains the token that every request needs.
    """

    def __init__(self, engine: Engine, state: State, *, port: int = 0, framed: bool = False) -> None:
        self.engine, self.first, self.framed = engine, state, framed
        self.token = secrets.token_urlsafe(24)
        self.pages: dict[str, Page] = {}
        self._open: set[str] = set()
        self._folder: str | None = None
        self._lock, self._ended = threading.Lock(), threading.Event()
        self.most_bytes = MOST_BYTES + BYTES_PER_ROW * engine.table.n_rows
        try:
            self._server = _Server(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            advice = "Choose another one, or leave `port` out."
            raise InvalidValueError(f"cannot be used: {reason}", parameter="port", value=port, advice=advice) from None
        self._server.exploration = self
        self.port = int(self._server.server_address[1])
        self.hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")
        self.address = f"http://{self.hosts[0]}/?token={self.token}"
        threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True).start()

    # --- life ---

    def open_browser(self) -> None:
        """Open the page through a private file that contains the address of the page.

        Other users can read the command line of a browser, so the address must not be on it.
        """
        self._folder = tempfile.mkdtemp(prefix="standout-")
        file = Path(self._folder) / "explore.html"
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        to = html.escape(self.address)
        with open(handle, "w", encoding="utf-8") as text:
            text.write(f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={to}">')
            text.write(f'<title>standout explore</title><p><a href="{to}">Open the page</a></p>')
        webbrowser.open(file.as_uri())

    def close(self) -> None:
        """End the exploration."""
        if not self._ended.is_set():
            self._ended.set()
            self._server.shutdown()
            self._server.server_close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def wait(self) -> None:
        """Wait until the exploration has ended; Ctrl-C ends it."""
        try:
            # Wait in short steps: on some systems an interrupt cannot end a wait without a time limit.
            while not self._ended.wait(0.5):
                pass
        finally:
            self.close()

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{html.escape(self.address)}" style="width:100%;height:860px;border:1px solid #ccc"></iframe>'
            f'<p><a href="{html.escape(self.address)}" target="_blank">Open in a separate page</a></p>'
        )

    def __repr__(self) -> str:
        return f"Exploration({self.engine.table.n_rows:,} rows, {'ended' if self._ended.is_set() else self.address})"

    # --- pages ---

    def page(self, name: str) -> Page:
        """Return the state of a page: a new one, or the earlier one if the page was loaded again."""
        with self._lock:
            if name not in self.pages:
                while len(self.pages) >= MOST_PAGES:
                    del self.pages[next(iter(self.pages))]
                self.pages[name] = Page(self.engine, self.first)
            self._open.add(name)
            return self.pages[name]

    def leave(self, name: str) -> None:
        """Record that a page was closed. End the exploration if no page is open some seconds later."""
        self._open.discard(name)
        timer = threading.Timer(GRACE, lambda: None if self._open else self.close())
        timer.daemon = True
        timer.start()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    exploration: Exploration
    # On systems other than POSIX, reuse would let two programs use the same port.
    allow_reuse_address = os.name == "posix"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore failed requests."""


class _Handler(BaseHTTPRequestHandler):
    """Serve the page, messages and reports, but only to requests with the token and the right host."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE
    server: _Server
    server_version, sys_version = "standout", ""
    error_message_format, error_content_type = "%(code)d", "text/plain"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""

    def _admitted(self, *, written: bool) -> dict[str, str] | None:
        """Check host, token and origin before the body is read. Return the query, or None after a refusal.

        Without these checks, another web site could let its own host name point to this machine, or send a form from
        the user's browser to this machine.
        """
        exploration = self.server.exploration
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        given = self.headers.get("X-Standout-Token") or query.get("token", "")
        hosts, origins = self.headers.get_all("Host") or [], self.headers.get_all("Origin") or []
        known = len(hosts) == 1 and hosts[0] in exploration.hosts
        own = [f"http://{host}" for host in hosts]
        same = origins == own if written else origins in ([], own)
        if known and same and hmac.compare_digest(given.encode("utf-8", "replace"), exploration.token.encode()):
            return query
        self._send(403, "text/plain", REFUSED.encode())
        return None

    def _send(self, code: int, kind: str, body: bytes, policy: str = "default-src 'none'") -> None:
        if code != 200:
            # Close the connection, because the unread rest of this request must not be read as the next request.
            self.close_connection = True
        self.send_response(code)
        frames = NOTEBOOKS if self.server.exploration.framed else "'none'"
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors {frames}",
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            **({"Connection": "close"} if self.close_connection else {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Serve the page, or a report that was made."""
        query = self._admitted(written=False)
        if query is None:
            return None
        place = urlsplit(self.path).path
        if place == "/":
            return self._send(200, "text/html", *page_html())
        page = self.server.exploration.pages.get(query.get("page", ""))
        number = query.get("number", "")
        made = page.report(int(number)) if place == "/report" and page and number.isdecimal() else None
        if made is None:
            return self._send(404, "text/plain", b"There is nothing here.")
        # The report itself contains a policy, which allows only its own script.
        return self._send(200, "text/html", made.encode(), "img-src data: blob:")

    def do_POST(self) -> None:
        """Answer a message."""
        query = self._admitted(written=True)
        if query is None:
            return None
        exploration, place = self.server.exploration, urlsplit(self.path).path
        name = query.get("page", "")[:40]
        if place == "/leave":
            exploration.leave(name)
            self.close_connection = True
            return self._send(200, "text/plain", b"")
        length = self.headers.get("Content-Length", "")
        if place != "/ask" or not length.isdecimal() or int(length) > exploration.most_bytes:
            return self._send(413 if length.isdecimal() else 411, "text/plain", b"This message cannot be read.")
        reply = answered(exploration.page(name), self.rfile.read(int(length)))
        with suppress(ConnectionError, TimeoutError):
            self._send(200, "application/json", json.dumps(reply, allow_nan=False).encode())
        return None


def answered(page: Page, body: bytes) -> dict[str, Any]:
    """Return the reply to a message, or the problem in one sentence."""
    try:
        return page.reply(json.loads(body))
    except Exception as error:
        # A vague sentence is better than a page that waits for ever.
        told = f"this did not work ({type(error).__name__}). Choose something else, or load the page again."
        if isinstance(error, MemoryError):
            told = "there is not enough memory for this. Choose fewer rows."
        if hasattr(error, "phrased"):
            told = str(error.phrased()).replace("`", "")
        return {"problem": told[:1].upper() + told[1:]}


def page_html() -> tuple[bytes, str]:
    """Return the page, still without data, and a policy that allows only its own script."""
    page, css, js = (static(f"explorer/explore.{kind}") for kind in ("html", "css", "js"))
    made, script = page.replace("/* styles */", static("page.css") + css), static("charts.js") + js
    hashed = encoded(hashlib.sha256(script.encode()).digest())
    allowed = f"script-src 'sha256-{hashed}'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'"
    return made.replace("/* script */", script).encode(), f"default-src 'none'; {allowed}"
