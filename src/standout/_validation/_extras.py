"""Packages that are not there."""

from __future__ import annotations

from importlib.util import find_spec

# What is installed under another name than it is imported by.
INSTALLED_AS = {"PIL": "pillow"}


def require_extra(module: str, extra: str, what: str) -> None:
    """Refuse to go on without an optional package, and say how to install it."""
    if find_spec(module) is None:
        package = INSTALLED_AS.get(module, module)
        # By its own name, which is right wherever standout itself was installed from.
        raise ImportError(
            f"{what} needs the package {package!r}. Install it with: pip install {package}, or with all others of "
            f"standout's extra {extra!r}."
        )
