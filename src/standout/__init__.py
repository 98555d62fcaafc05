"""What stands out in one dataset against others: discriminative PCA."""

from __future__ import annotations

from importlib import import_module

# As in typing, which takes as long to load as all else that the command line needs before it can take a Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from standout.estimators import (
        BackgroundPipeline,
        ContrastivePCA,
        DiscriminativePCA,
        KernelContrastivePCA,
        KernelDiscriminativePCA,
        make_pipeline,
    )
    from standout.io import scan
    from standout.persistence import load, save

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

# Where each name comes from. It is fetched when it is first asked for: SciPy and scikit-learn take a second to load,
# and whoever wants the version, the help of a command or one room of the house should not have to wait for them.
_HOMES = {
    **dict.fromkeys(
        (
            "BackgroundPipeline",
            "ContrastivePCA",
            "DiscriminativePCA",
            "KernelContrastivePCA",
            "KernelDiscriminativePCA",
            "make_pipeline",
        ),
        "standout.estimators",
    ),
    **dict.fromkeys(("load", "save"), "standout.persistence"),
    "scan": "standout.io",
}
_ROOMS = (
    "contrast",
    "datasets",
    "estimators",
    "features",
    "io",
    "metrics",
    "moments",
    "pencil",
    "persistence",
    "plots",
    "report",
    "selection",
    "sources",
    "tl",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"standout.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'standout' has no attribute {name!r}")
    thing = getattr(import_module(_HOMES[name]), name)
    # Found at once from now on.
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    # What this module needs for itself is nobody else's.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, *_ROOMS})
