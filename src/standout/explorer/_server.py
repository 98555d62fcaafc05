"""The server of an exploration: one address with a token, for pages on this machine only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
import webbrowser
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from standout._messages import InvalidValueError
from standout.explorer._engine import Engine, State
from standout.explorer._page import Page
from standout.report._words import static

# Seconds after the last page was closed until the exploration ends: a page that is loaded again is closed first.
GRACE = 6.0
# Bytes of a message; sessions of very many rows are longer. Seconds that a connection may be silent.
MOST_BYTES, BYTES_PER_ROW, SILENCE = 2**20, 4, 60.0
MOST_PAGES = 16
HEADER = "X-Standout-Token"
REFUSED = "This page needs the whole address that standout explore has printed, with its token."
NOTEBOOKS = "http://localhost:* https://localhost:* http://127.0.0.1:* https://127.0.0.1:*"


class Exploration:
    """A running exploration: its address, and how it ends.

    It ends by `close`, or some seconds after its last page was closed.

    Attributes
    ----------
    address : str
        With the token, without which nothing is served.
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
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True)
        self._thread.start()

    # --- life ---

    def open_browser(self) -> None:
        """Open the page. The address is in a private file: other users can read the command line of a browser."""
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
            # Without a limit, an interrupt would not be noticed on every system.
            while not self._ended.wait(0.5):
                pass
        finally:
            self.close()

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{html.escape(self.address)}" style="width:100%;height:860px;border:1px solid #ccc"></iframe>'
            f'<p><a href="{html.escape(self.address)}" target="_blank">Open in a page of its own</a></p>'
        )

    def __repr__(self) -> str:
        return f"Exploration({self.engine.table.n_rows:,} rows, {'ended' if self._ended.is_set() else self.address})"

    # --- pages ---

    def page(self, name: str) -> Page:
        """Return the state of a page: the state before it was loaded again, or a new one."""
        with self._lock:
            if name not in self.pages:
                while len(self.pages) >= MOST_PAGES:
                    del self.pages[next(iter(self.pages))]
                self.pages[name] = Page(self.engine, self.first)
            self._open.add(name)
            return self.pages[name]

    def leave(self, name: str) -> None:
        """Note that a page was closed, and end when it was the last one."""
        self._open.discard(name)
        timer = threading.Timer(GRACE, lambda: None if self._open else self.close())
        timer.daemon = True
        timer.start()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    exploration: Exploration
    # Elsewhere two programs could have the same port.
    allow_reuse_address = os.name == "posix"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that break."""


class _Handler(BaseHTTPRequestHandler):
    """Serves the page, messages and reports; nothing without the token, and nothing for other hosts."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE
    server: _Server
    server_version, sys_version = "standout", ""
    error_message_format, error_content_type = "%(code)d", "text/plain"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""

    def _admitted(self, *, written: bool) -> dict[str, str] | None:
        """Check host, token and origin before anything is read; return the query, or refuse.

        Another site could make a name of its own point to this machine, or send a form here.
        """
        exploration = self.server.exploration
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        given = self.headers.get(HEADER) or query.get("token", "")
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
            # What was not read of the request must not be taken for the next one.
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
            return
        place = urlsplit(self.path).path
        if place == "/":
            body, policy = page_html()
            self._send(200, "text/html", body, policy)
            return
        page = self.server.exploration.pages.get(query.get("page", ""))
        number = query.get("number", "")
        made = page.report(int(number)) if place == "/report" and page and number.isdecimal() else None
        if made is None:
            self._send(404, "text/plain", b"There is nothing here.")
        else:
            # The report has a policy of its own, which allows its script.
            self._send(200, "text/html", made.encode(), "img-src data: blob:")

    def do_POST(self) -> None:
        """Answer a message."""
        query = self._admitted(written=True)
        if query is None:
            return
        exploration, place = self.server.exploration, urlsplit(self.path).path
        name = query.get("page", "")[:40]
        if place == "/leave":
            exploration.leave(name)
            self.close_connection = True
            self._send(200, "text/plain", b"")
            return
        length = self.headers.get("Content-Length", "")
        if place != "/ask" or not length.isdecimal() or int(length) > exploration.most_bytes:
            self._send(413 if length.isdecimal() else 411, "text/plain", b"This message cannot be read.")
            return
        reply = answered(exploration.page(name), self.rfile.read(int(length)))
        with suppress(BrokenPipeError, ConnectionError, socket.timeout):
            self._send(200, "application/json", json.dumps(reply, allow_nan=False).encode())


def answered(page: Page, body: bytes) -> dict[str, Any]:
    """Return the reply to a message, or the problem in one sentence."""
    try:
        message = json.loads(body)
        if not isinstance(message, dict):
            raise TypeError
        return page.reply(message)
    except Exception as error:
        # A page that waits for ever would be worse than a sentence that says little.
        return {"problem": _sentence(error)}


def _sentence(error: Exception) -> str:
    if hasattr(error, "phrased"):
        words = str(error.phrased()).replace("`", "")
        return words[:1].upper() + words[1:]
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Choose fewer rows."
    return f"This did not work ({type(error).__name__}). Choose something else, or load the page again."


def page_html() -> tuple[bytes, str]:
    """Return the page, which has no data yet, and the policy that lets its own script run and no other."""
    folder = resources.files("standout.explorer") / "static"
    parts = {kind: (folder / f"explore.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")}
    made = parts["html"].replace("/* styles */", static("page.css") + parts["css"])
    hashed = base64.b64encode(hashlib.sha256(parts["js"].encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{hashed}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "connect-src 'self'"
    )
    return made.replace("/* script */", parts["js"]).encode(), policy
