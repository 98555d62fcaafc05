"""What stands out in one dataset against others: discriminative PCA."""

from __future__ import annotations

from importlib import import_module

# Type checkers know this name from `typing`. An import of `typing` would double the time until the command line shows
# its help.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from standout.estimators import *  # noqa: F403
    from standout.explorer import explore as explore
    from standout.io import read_table as read_table
    from standout.io import scan as scan
    from standout.persistence import load as load
    from standout.persistence import save as save
    from standout.report import report as report
    from standout.screening import screen as screen
    from standout.selection import bootstrap as bootstrap
    from standout.selection import permutation_test as permutation_test
    from standout.sources import blocks as blocks
    from standout.sources import differences as differences
    from standout.sources import within as within

    __version__: str

# Each module, with those of its names that users import from `standout`. A module is imported when it is first used.
# SciPy and scikit-learn take a second to load, and the version and the help of a command do not need them.
_NAMES = {
    "estimators": "BackgroundPipeline BackgroundSearchCV ContrastivePCA DiscriminativePCA KernelContrastivePCA "
    "KernelDiscriminativePCA make_pipeline",
    "explorer": "explore",
    "io": "read_table scan",
    "persistence": "load save",
    "report": "report",
    "screening": "screen",
    "selection": "bootstrap permutation_test",
    "sources": "blocks differences within",
    **dict.fromkeys(("datasets", "features", "get", "images", "metrics", "mne", "moments", "pencil"), ""),
    **dict.fromkeys(("pl", "plots", "private", "problem", "tl"), ""),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __dir__() -> list[str]:
    # Leave out names such as `import_module` that are not public.
    return sorted({*(name for name in globals() if name.startswith("__")), *_HOMES, *_NAMES})


if not TYPE_CHECKING:
    __all__ = ["__version__", *_HOMES]

    # Type checkers would accept any name if they saw this function.
    def __getattr__(name):
        """Import a module or a public name when it is first used."""
        if name == "__version__":
            thing = import_module("importlib.metadata").version("standout")
        elif name in _HOMES:
            thing = getattr(import_module(f"standout.{_HOMES[name]}"), name)
        elif name in _NAMES:
            thing = import_module(f"standout.{name}")
        else:
            raise AttributeError(f"module 'standout' has no attribute {name!r}")
        # From now on, Python finds the name without this function.
        globals()[name] = thing
        return thing
