"""Signals: what was begun is cleaned up, and cleaning up is not interrupted."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A terminal that closes, or a user who presses Ctrl-C twice, sends several signals. Seconds until another one counts.
PATIENCE = 5.0


class Signals:
    """Turns SIGINT, SIGTERM and SIGHUP into interruptions.

    Attributes
    ----------
    came : int or None
        The signal that came, if one did.
    """

    def __init__(self) -> None:
        self.came: int | None = None
        self._at = 0.0
        self._held = 0

    @property
    def exit_code(self) -> int:
        """The exit code that a shell shows for the signal."""
        return 128 + (signal.SIGINT if self.came is None else self.came)

    @contextmanager
    def as_interruptions(self) -> Iterator[None]:
        """Raise KeyboardInterrupt when a signal comes."""
        self.came, self._at, self._held = None, 0.0, 0
        numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        before = {}
        try:
            for number in numbers:
                # A command that was started with nohup goes on ignoring that its terminal is closed.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, self._receive)
        except ValueError:  # not in the main thread, where no signal arrives anyway
            pass
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raise the interruption again if it was lost: Python drops exceptions that are raised in callbacks."""
        if self.came is not None and not self._held:
            raise KeyboardInterrupt

    def hold(self) -> None:
        """Ignore further interruptions while the last message is printed."""
        self._held += 1

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let a step that must not stop half-way finish; the interruption follows."""
        self._held += 1
        came_before = self.came
        try:
            yield
        finally:
            self._held -= 1
        if self.came != came_before and not self._held:
            raise KeyboardInterrupt

    def _receive(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        again = self.came is not None and now - self._at < PATIENCE
        if self.came is None:
            self.came, self._at = number, now
        if not self._held and not again:
            raise KeyboardInterrupt


SIGNALS = Signals()
