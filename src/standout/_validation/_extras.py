"""Packages that are not there."""

from __future__ import annotations

from importlib.util import find_spec


def require_extra(package: str, extra: str, what: str) -> None:
    """Refuse to go on without an optional package, and say how to install it."""
    if find_spec(package) is None:
        raise ImportError(f"{what} needs the package {package!r}. Install it with: pip install 'standout[{extra}]'.")
