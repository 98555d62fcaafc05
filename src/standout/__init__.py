"""What stands out in one dataset against others: discriminative PCA."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from standout.estimators import (
    BackgroundPipeline,
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
)
from standout.persistence import load, save

if TYPE_CHECKING:
    from standout.io import scan

__version__ = "0.1.0.dev0"

__all__ = [
    "BackgroundPipeline",
    "ContrastivePCA",
    "DiscriminativePCA",
    "KernelContrastivePCA",
    "KernelDiscriminativePCA",
    "__version__",
    "load",
    "make_pipeline",
    "save",
    "scan",
]

# Fetched when it is first asked for: whoever does not read files need not load what reads them.
_HOMES = {"scan": "standout.io"}
_ROOMS = ("tl",)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"standout.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'standout' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
