"""What stands out in one dataset against others: discriminative PCA."""

from __future__ import annotations

from importlib import import_module

# As in typing, which takes as long to load as all else that the command line needs before it can take a Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # The packages that are loaded when they are first asked for.
    from standout import contrast as contrast
    from standout import datasets as datasets
    from standout import estimators as estimators
    from standout import explorer as explorer
    from standout import export as export
    from standout import features as features
    from standout import get as get
    from standout import graphs as graphs
    from standout import io as io
    from standout import metrics as metrics
    from standout import mne as mne
    from standout import moments as moments
    from standout import pencil as pencil
    from standout import persistence as persistence
    from standout import pl as pl
    from standout import plots as plots
    from standout import private as private
    from standout import report as report
    from standout import selection as selection
    from standout import sources as sources
    from standout import tl as tl
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


def _found(name: str) -> Any:
    """Give a package or a public name when it is first asked for."""
    if name in _PACKAGES:
        return import_module(f"standout.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'standout' has no attribute {name!r}")
    thing = getattr(import_module(_HOMES[name]), name)
    # Python finds it without this function from now on.
    globals()[name] = thing
    return thing


if not TYPE_CHECKING:
    # Hidden from type checkers, which then know every name and tell of those that are not there.
    __getattr__ = _found


def __dir__() -> list[str]:
    # Without the names that this module imports for itself.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, *_PACKAGES})
