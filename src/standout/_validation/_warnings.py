"""Warnings that point to the user's own line."""

from __future__ import annotations

import sys
import warnings


class FindingWarning(UserWarning):
    """What a fit has found, which a report says in its own words."""


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and let the warning point to the line outside of this library, and of scikit-learn, that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("standout", "sklearn"):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
