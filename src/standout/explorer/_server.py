"""The server of an exploration: one address with a token, for pages on this machine only.

Each page has a socket of its own, and a state of its own. Work is done in threads. What a newer message has made stale
is dropped.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits
from tornado.httpserver import HTTPServer
from tornado.web import Application, HTTPError, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from standout._messages import InvalidValueError
from standout.explorer._page import Page, Setting, problem_of
from standout.report import stylesheet

# Seconds after the last page was closed until the exploration ends: a page that is loaded again is closed first.
GRACE = 5.0
# Messages that lead to another answer: what an earlier one has still to say is then no longer wanted.
CHANGING = ("step", "preview", "undo", "redo", "open")
# Replies to a step that are always sent, before those that a newer message makes stale.
ALWAYS = 3
TOKEN = "token"
REFUSED = "This page needs the whole address that standout explore has printed, with its token."
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Exploration:
    """A running exploration: its address, and how it ends.

    It ends by `close`, or some seconds after its last page was closed.

    Attributes
    ----------
    address : str
        With the token, without which no page is given.
    """

    def __init__(self, setting: Setting, *, port: int = 0) -> None:
        self._setting = setting
        self._token = secrets.token_urlsafe(24)
        self._pages: dict[str, Page] = {}
        self._sockets: dict[str, Socket] = {}
        self._reports: list[Path] = []
        self._ended = threading.Event()
        self._stop: asyncio.Event | None = None
        self.workers = ThreadPoolExecutor(4, thread_name_prefix="standout-explore")
        # Tests and results take seconds: they must not keep answers waiting.
        self.patient = ThreadPoolExecutor(2, thread_name_prefix="standout-explore-slow")
        self._listening = _listening_at(port)
        # Several pages and parts of the rows are worked on at a time.
        self._limits = threadpool_limits(1, user_api="blas") if setting.engine.is_narrow else None
        self.port = int(self._listening.getsockname()[1])
        self.hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        self.address = f"http://127.0.0.1:{self.port}/?{TOKEN}={self._token}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="standout-explore", daemon=True)
        self._thread.start()

    # --- life ---

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._until_stopped())
        # What is still running writes to sockets that are gone.
        self.workers.shutdown(wait=False, cancel_futures=True)
        self.patient.shutdown(wait=False, cancel_futures=True)
        self._loop.close()
        if self._limits is not None:
            self._limits.restore_original_limits()
        self._ended.set()

    async def _until_stopped(self) -> None:
        self._stop = asyncio.Event()
        shared = {"exploration": self}
        handlers = [("/", Front, shared), ("/socket", Socket, shared), (r"/report/(\d+)", Report, shared)]
        server = HTTPServer(Application(handlers, log_function=lambda handler: None))
        server.add_sockets([self._listening])
        await self._stop.wait()
        server.stop()
        for page in list(self._sockets.values()):
            page.close(1001, "ended")
        await server.close_all_connections()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def close(self) -> None:
        """End the exploration."""
        if self._thread.is_alive() and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._end)
        self._ended.wait(10.0)

    def wait(self) -> None:
        """Wait until the exploration has ended; Ctrl-C ends it."""
        try:
            # Without a limit, an interrupt would not be noticed on every system.
            while not self._ended.wait(0.5):
                pass
        finally:
            self.close()

    # --- pages ---

    def admits(self, handler: RequestHandler) -> bool:
        """Tell whether a request comes with the token, and for this address: a name could be made to point here."""
        given = handler.get_query_argument(TOKEN, "")
        return handler.request.host in self.hosts and hmac.compare_digest(given.encode(), self._token.encode())

    def page(self, name: str, conversation: Socket) -> tuple[str, Page]:
        """Give the state of a page: the one it had before it was loaded again, or a new one."""
        if not name or name in self._sockets or name not in self._pages:
            name = secrets.token_hex(8)
            self._pages[name] = Page(self._setting)
        self._sockets[name] = conversation
        return name, self._pages[name]

    def left(self, name: str) -> None:
        """Note that a page was closed."""
        self._sockets.pop(name, None)
        asyncio.get_running_loop().call_later(GRACE, self._end_if_deserted)

    def _end_if_deserted(self) -> None:
        if not self._sockets:
            self._end()

    def _end(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def published(self, report: Path) -> str:
        """Give the address of a report."""
        self._reports.append(report)
        return f"/report/{len(self._reports)}?{TOKEN}={self._token}"

    def report(self, number: int) -> Path | None:
        """Give the path of a report by its number, from 1."""
        return self._reports[number - 1] if 1 <= number <= len(self._reports) else None


def _listening_at(port: int) -> socket.socket:
    """Listen at a port of this machine that others cannot reach."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # Elsewhere this would let two programs have the same port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(64)
        listening.setblocking(False)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        problem, advice = "cannot be used: {reason}", "Choose another one, or leave {p.port} out."
        raise InvalidValueError(problem, parameter="port", value=port, reason=reason, advice=advice) from None
    return listening


class _Guarded(RequestHandler):
    """A handler that gives nothing without the token."""

    def initialize(self, exploration: Exploration) -> None:
        self.exploration = exploration

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)
        self.clear_header("Server")

    def prepare(self) -> None:
        if not self.exploration.admits(self):
            raise HTTPError(403)

    def write_error(self, status_code: int, **facts: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(REFUSED if status_code == 403 else f"There is nothing here ({status_code}).")


class Front(_Guarded):
    """The page."""

    def get(self) -> None:
        html, script = page_html()
        hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        host = self.request.host
        self.set_header(
            "Content-Security-Policy",
            f"default-src 'none'; script-src 'sha256-{hashed}'; style-src 'unsafe-inline'; img-src data: blob:; "
            f"connect-src ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        self.finish(html)


class Report(_Guarded):
    """The report of a result that was saved."""

    def get(self, number: str) -> None:
        path = self.exploration.report(int(number))
        if path is None or not path.is_file():
            raise HTTPError(404)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(path.read_bytes())


class Socket(WebSocketHandler):
    """The conversation with one page: messages are worked on one after the other, in threads."""

    def initialize(self, exploration: Exploration) -> None:
        self.exploration = exploration
        self._waiting: deque[dict[str, Any]] = deque()
        self._came = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._cancelled = threading.Event()
        self._name = ""

    def prepare(self) -> None:
        # Checked here: what tornado asks `check_origin` about depends on its version.
        if not self.exploration.admits(self) or not self.check_origin(self.request.headers.get("Origin", "")):
            self.set_status(403)
            self.finish(REFUSED)

    def check_origin(self, origin: str) -> bool:
        """Refuse pages of other origins."""
        return origin == f"http://{self.request.host}"

    def open(self, *arguments: str, **words: str) -> None:
        """Begin the conversation."""
        self._name, self._page = self.exploration.page(self.get_query_argument("page", ""), self)
        self._send({"kind": "page", "name": self._name})
        self._work = asyncio.ensure_future(self._working())

    def on_message(self, text: str | bytes) -> None:
        """Take a message; a preview that was not begun yet is replaced by the next."""
        try:
            message = json.loads(text)
            what = message["do"]
        except (ValueError, TypeError, KeyError):
            self.close(1003, "no message")
            return
        if what == "cancel":
            self._cancelled.set()
        elif what in ("verdict", "save"):
            self._begin(message)
        else:
            if self._waiting and self._waiting[-1]["do"] == "preview" and what in CHANGING:
                self._waiting.pop()
            self._waiting.append(message)
            self._came.set()

    def on_close(self) -> None:
        """End the conversation; the state of the page stays, should it be loaded again."""
        self._cancelled.set()
        if self._work is not None:
            self._work.cancel()
        self.exploration.left(self._name)

    async def _working(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._came.wait()
            self._came.clear()
            while self._waiting:
                message = self._waiting.popleft()
                replies = self._page.replies(message)
                n_sent = 0
                while True:
                    reply = await loop.run_in_executor(self.exploration.workers, _next, replies)
                    if reply is None:
                        break
                    stale = any(other["do"] in CHANGING for other in self._waiting)
                    if stale and (n_sent >= ALWAYS or message["do"] == "preview"):
                        replies.close()
                        break
                    self._send(reply)
                    n_sent += 1
                self._send({"kind": "done", "do": message["do"]})

    def _begin(self, message: dict[str, Any]) -> None:
        """Begin what takes seconds."""
        self._cancelled.clear()
        work = self._test if message["do"] == "verdict" else self._save
        asyncio.get_running_loop().run_in_executor(self.exploration.patient, _reported, work, message, self._later)

    def _test(self, message: dict[str, Any]) -> dict[str, Any]:
        def told(component: int, made: int, most: int, seconds: float) -> None:
            if self._cancelled.is_set():
                raise _CancelledError
            if made % 5 == 1:
                self._later({"kind": "progress", "component": component + 1, "made": made, "most": most})

        try:
            return self._page.verdict(told)
        except _CancelledError:
            return {"kind": "cancelled"}

    def _save(self, message: dict[str, Any]) -> dict[str, Any]:
        path = self._page.save(str(message["folder"]))
        return {"kind": "saved", "folder": str(path.parent), "link": self.exploration.published(path)}

    def _later(self, reply: dict[str, Any]) -> None:
        """Send a reply from another thread."""
        with contextlib.suppress(RuntimeError):
            self.exploration._loop.call_soon_threadsafe(self._send, reply)

    def _send(self, reply: dict[str, Any]) -> None:
        with contextlib.suppress(WebSocketClosedError):
            self.write_message(json.dumps(reply, allow_nan=False))


class _CancelledError(Exception):
    """The user has cancelled."""


def _next(replies: Iterator[dict[str, Any]]) -> dict[str, Any] | None:
    return next(replies, None)


def _reported(
    work: Callable[[dict[str, Any]], dict[str, Any]],
    message: dict[str, Any],
    send: Callable[[dict[str, Any]], None],
) -> None:
    """Do the work, and send what came of it, whatever that is."""
    try:
        send(work(message))
    except Exception as error:
        send({"kind": "problem", "text": problem_of(error), "of": message["do"]})


def page_html() -> tuple[str, str]:
    """Give the page, which has no data yet, and its script."""
    folder = resources.files("standout.explorer") / "static"
    parts = {name: (folder / f"explore.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    script = parts["js"]
    html = parts["html"].replace("/* styles */", stylesheet() + parts["css"]).replace("/* script */", script)
    return html, script
