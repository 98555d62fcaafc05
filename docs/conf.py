"""How the pages are built: ``make docs``. Nothing is fetched, neither while building nor by the pages."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from pathlib import Path

# One thread: small matrices gain nothing from more, and examples then take the same time everywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))

import standout

project = "standout"
author = "The standout developers"
copyright = "the standout developers; BSD 3-Clause licence"
version = release = standout.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "gallery_order",
    "mathml",
    "live_report",
    "command_line",
]
exclude_patterns = ["_build", "data", "api/generated/*.md", "images"]
templates_path = ["_templates"]
html_math_renderer = "mathml"

# Text in Markdown.
myst_enable_extensions = [
    "colon_fence",
    "deflist",
    "dollarmath",
    "attrs_inline",
    "attrs_block",
]
myst_heading_anchors = 3
# Links in the documents of the repository lead to other files of it.
myst_all_links_external = False

# Copy buttons leave out prompts, and what a program printed has no button.
copybutton_prompt_text = ">>> |\\.\\.\\. "
copybutton_prompt_is_regexp = True
copybutton_selector = ":not(.highlight-text) > div.highlight > pre"

# Names in single backticks lead to the page of what they name, where there is one.
default_role = "py:obj"
nitpicky = False
add_function_parentheses = False
toc_object_entries_show_parents = "hide"

# The reference.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


def _own_members() -> dict[str, dict[str, list[str]]]:
    """Return the methods and properties of each public class that are not inherited from scikit-learn."""
    members: dict[str, dict[str, list[str]]] = {}
    # The docstring of `Report` names its fields.
    packages = [name for name in standout._NAMES if name != "report"]
    for name in ["standout", *(f"standout.{package}" for package in packages)]:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []):
            thing = getattr(module, public)
            if inspect.isclass(thing):
                members[f"{name}.{public}"] = _members(thing)
    return members


def _members(thing: type) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"methods": [], "properties": []}
    for member in sorted(dir(thing)):
        owner = next((base for base in thing.__mro__ if member in vars(base)), object)
        if member.startswith("_") or not owner.__module__.startswith("standout"):
            continue
        value = inspect.getattr_static(thing, member)
        if isinstance(value, property) or type(value).__name__ == "cached_property":
            found["properties"].append(member)
        # scikit-learn adds methods such as `set_fit_request` to our classes.
        elif callable(method := getattr(thing, member)) and method.__module__.startswith(
            "standout"
        ):
            found["methods"].append(member)
    return found


autosummary_context = {"own_members": _own_members()}

# The examples. Their pictures are drawn at twice the size as well, for screens with fine pixels.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "gallery_order.AsTaught",
    "image_srcset": ["2x"],
    "thumbnail_size": (800, 500),
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "min_reported_time": 1000,
    "show_memory": False,
    "write_computation_times": False,
    "backreferences_dir": None,
    "doc_module": ("standout",),
    "inspect_global_variables": False,
}

# The look.
html_theme = "pydata_sphinx_theme"
html_title = "standout"
html_static_path = ["_static"]
html_css_files = ["standout.css"]
html_favicon = "_static/standout.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    name: []
    for name in (
        "index",
        "start",
        "changelog",
        "contributing",
        "glossary",
        "your-name-for-it",
    )
}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {
        "image_light": "_static/standout.svg",
        "image_dark": "_static/standout.svg",
        "text": "standout",
    },
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "navbar_end": ["theme-switcher"],
    "primary_sidebar_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search these pages",
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
