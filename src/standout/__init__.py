"""What stands out in one dataset against others: discriminative PCA."""

from __future__ import annotations

from importlib import import_module

# As in `typing`, which would double the time until the command line shows its help.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from standout.estimators import (
        BackgroundPipeline,
        BackgroundSearchCV,
        ContrastivePCA,
        DiscriminativePCA,
        KernelContrastivePCA,
        KernelDiscriminativePCA,
        make_pipeline,
    )
    from standout.explorer import explore
    from standout.io import read_table, scan
    from standout.persistence import load, save
    from standout.report import report
    from standout.screening import screen
    from standout.selection import bootstrap, permutation_test
    from standout.sources import blocks, differences, within

    __version__: str

__all__ = [
    "BackgroundPipeline",
    "BackgroundSearchCV",
    "ContrastivePCA",
    "DiscriminativePCA",
    "KernelContrastivePCA",
    "KernelDiscriminativePCA",
    "__version__",
    "blocks",
    "bootstrap",
    "differences",
    "explore",
    "load",
    "make_pipeline",
    "permutation_test",
    "read_table",
    "report",
    "save",
    "scan",
    "screen",
    "within",
]

# Where each name comes from, if not from the estimators. It is imported when it is first used: SciPy and scikit-learn
# take a second to load, and neither the version nor the help of a command needs them.
_HOMES = {
    **dict.fromkeys(("load", "save"), "standout.persistence"),
    **dict.fromkeys(("blocks", "differences", "within"), "standout.sources"),
    **dict.fromkeys(("bootstrap", "permutation_test"), "standout.selection"),
    **dict.fromkeys(("read_table", "scan"), "standout.io"),
    "explore": "standout.explorer",
    "report": "standout.report",
    "screen": "standout.screening",
}
_PACKAGES = (
    *("datasets", "estimators", "explorer", "features", "get", "images", "io", "metrics", "mne", "moments"),
    *("pencil", "persistence", "pl", "plots", "private", "problem", "screening", "selection", "sources", "tl"),
)


def _found(name: str) -> Any:
    """Import a package or a public name when it is first used."""
    if name == "__version__":
        thing = import_module("importlib.metadata").version("standout")
    elif name in __all__:
        thing = getattr(import_module(_HOMES.get(name, "standout.estimators")), name)
    elif name in _PACKAGES:
        thing = import_module(f"standout.{name}")
    else:
        raise AttributeError(f"module 'standout' has no attribute {name!r}")
    # Python finds it without this function from now on.
    globals()[name] = thing
    return thing


if not TYPE_CHECKING:
    # Hidden from type checkers, which then know every name.
    __getattr__ = _found


def __dir__() -> list[str]:
    # Without the names that this module imports for itself.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, *_PACKAGES})
