"""A screen: many targets against shared controls."""

import sys
from types import ModuleType
from typing import Any

from standout.screen._screen import Screen, plot_screen, screen

__all__ = ["Screen", "plot_screen", "screen"]


class _CallableModule(ModuleType):
    """A package that can be called: Python binds ``standout.screen`` to the package when it is imported."""

    def __call__(self, *args: Any, **kwargs: Any) -> Screen:
        return screen(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
