"""What stands out in one dataset against others: discriminative PCA."""

from __future__ import annotations

from importlib import import_module

# As in typing, which takes as long to load as all else that the command line needs before it can take a Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from standout.cli import explore
    from standout.estimators import (
        BackgroundPipeline,
        BackgroundSearchCV,
        ContrastivePCA,
        DiscriminativePCA,
        KernelContrastivePCA,
        KernelDiscriminativePCA,
        make_pipeline,
    )
    from standout.io import scan
    from standout.persistence import load, save
    from standout.sources import differences

try:
    # Written when the package is built, from the tags of the repository.
    __version__: str = import_module("standout._version").__version__
except ModuleNotFoundError:
    __version__ = "0.1.0.dev0"

__all__ = [
    "BackgroundPipeline",
    "BackgroundSearchCV",
    "ContrastivePCA",
    "DiscriminativePCA",
    "KernelContrastivePCA",
    "KernelDiscriminativePCA",
    "__version__",
    "differences",
    "explore",
    "load",
    "make_pipeline",
    "save",
    "scan",
]

# Where each name comes from. It is imported when it is first used: SciPy and scikit-learn take a second to load, and
# neither the version nor the help of a command needs them.
_HOMES = {
    **dict.fromkeys(
        (
            "BackgroundPipeline",
            "BackgroundSearchCV",
            "ContrastivePCA",
            "DiscriminativePCA",
            "KernelContrastivePCA",
            "KernelDiscriminativePCA",
            "make_pipeline",
        ),
        "standout.estimators",
    ),
    **dict.fromkeys(("load", "save"), "standout.persistence"),
    "differences": "standout.sources",
    "explore": "standout.cli",
    "scan": "standout.io",
}
_PACKAGES = (
    "contrast",
    "datasets",
    "estimators",
    "explorer",
    "export",
    "features",
    "get",
    "graphs",
    "io",
    "metrics",
    "mne",
    "moments",
    "pencil",
    "persistence",
    "pl",
    "plots",
    "private",
    "report",
    "selection",
    "sources",
    "tl",
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"standout.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'standout' has no attribute {name!r}")
    thing = getattr(import_module(_HOMES[name]), name)
    # Python finds it without this function from now on.
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    # Without the names that this module imports for itself.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, *_PACKAGES})
