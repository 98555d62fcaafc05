"""A report of what a fit found: one dict of findings, and a page, sentences and a picture over it."""

import sys
from types import ModuleType
from typing import Any

from standout.report._findings import Report, findings, report
from standout.report._page import figure, page, sentences

__all__ = ["Report", "figure", "findings", "page", "report", "sentences"]


class _CallableModule(ModuleType):
    """A package that can be called: Python binds ``standout.report`` to the package when it is imported."""

    def __call__(self, *args: Any, **kwargs: Any) -> Report:
        return report(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
