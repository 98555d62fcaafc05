"""The gallery of examples: grouped by theme, in the order in which one would teach them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

THEMES = {
    "First steps": ["plot_first_look", "plot_shift_and_spread", "plot_pipeline"],
    "Choices": [
        "plot_shrinkage_path",
        "plot_several_backgrounds",
        "plot_kernel_circles",
        "plot_wide_data",
    ],
    "Judging": ["plot_subjects", "plot_screen"],
}
ORDER = [name for names in THEMES.values() for name in names]


class AsTaught:
    """Sorts file names by their place in the list; those that are not in it come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        """Return the place of a file."""
        name = file.removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _title(example: Path) -> str:
    docstring = ast.get_docstring(ast.parse(example.read_text("utf-8"))) or example.stem
    return docstring.splitlines()[0]


def _index(folder: Path) -> str:
    """The page of the gallery: a section for each theme, a card with a picture for each example."""
    examples = sorted(folder.glob("plot_*.py"), key=lambda path: AsTaught("")(path.name))
    others = [path.stem for path in examples if path.stem not in ORDER]
    lines = [(folder / "README.txt").read_text("utf-8")]
    for theme, names in {**THEMES, **({"More": others} if others else {})}.items():
        lines += [theme, "-" * len(theme), "", ".. grid:: 1 1 2 2", "   :gutter: 3", ""]
        for name in names:
            title = _title(folder / f"{name}.py")
            lines += [
                f"   .. grid-item-card:: {title}",
                f"      :link: {name}",
                "      :link-type: doc",
                f"      :img-top: images/thumb/sphx_glr_{name}_thumb.png",
                f"      :img-alt: The picture of the example: {title}",
                "",
            ]
    lines += [
        ".. toctree::",
        "   :hidden:",
        "",
        *(f"   {path.stem}" for path in examples),
        "",
    ]
    return "\n".join(lines)


def _write_index(app: Sphinx) -> None:
    """Replace the list that sphinx-gallery has just written: it has no sections within a folder."""
    gallery = Path(app.srcdir, "auto_examples")
    (gallery / "index.rst").write_text(
        _index(Path(app.srcdir).parent / "examples"), "utf-8"
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page once sphinx-gallery, at the usual priority of 500, has run the examples."""
    app.connect("builder-inited", _write_index, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
