"""Write docs/api/index.rst, the list of all public names: ``python docs/data/reference.py``."""

from importlib import import_module
from pathlib import Path

import standout

PAGE = Path(__file__).parents[1] / "api" / "index.rst"
INTRODUCTION = """Reference
=========

The first sections have the names that most programs need. The building blocks are public, too, but may change between
versions. Every name has a tested example.

.. currentmodule:: standout
"""
MAIN = {
    "Estimators": "DiscriminativePCA ContrastivePCA KernelDiscriminativePCA KernelContrastivePCA make_pipeline "
    "BackgroundPipeline BackgroundSearchCV",
    # By their modules, which have the same names.
    "Judge": "permutation_test bootstrap report.report screen explore",
    "Data and models": "read_table scan blocks within differences save load",
}
BLOCKS = {
    "report": "Reports",
    "screening": "Screens",
    "tl": "Annotated cells: tools",
    "get": "Annotated cells: tables",
    "pl": "Annotated cells: pictures",
    "mne": "Epochs of brain signals",
    "images": "Image cubes",
    "plots": "Pictures",
    "metrics": "Judging a view with labels",
    "datasets": "Simulated data",
    "io": "Files",
    "sources": "Datasets as sources",
    "selection": "Choices and inference",
    "moments": "Sums that add up",
    "problem": "The problem as a value",
    "pencil": "Eigenproblems",
    "features": "Kernels as coordinates",
    "private": "Private sums",
    "persistence": "Models in files",
    "explorer": "Exploring by hand",
}


def section(title: str, line: str, names: list[str]) -> list[str]:
    """Return a heading and a table of names."""
    table = [".. autosummary::", "   :toctree: generated", "", *(f"   {n}" for n in names)]
    return ["", title, line * len(title), "", *(table if names else [])]


def reference() -> str:
    """Return the page."""
    lines = [INTRODUCTION.rstrip()]
    for title, names in MAIN.items():
        lines += section(title, "-", names.split())
    lines += section("Building blocks", "-", [])
    for package, title in BLOCKS.items():
        module = import_module(f"standout.{package}")
        # Functions of the same name in standout and in standout.tl differ.
        names = [
            name
            for name in module.__all__
            if name != package
            and getattr(module, name) is not getattr(standout, name, None)
        ]
        # Constants and types have no page.
        plain = [name for name in names if name.isupper() or name == "Dataset"]
        lines += ["", f".. currentmodule:: standout.{package}"]
        lines += section(
            f"{title}: standout.{package}",
            "^",
            [name for name in names if name not in plain],
        )
        if plain:
            lines += ["", f"Without a page: {', '.join(f'``{name}``' for name in plain)}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")
