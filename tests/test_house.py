"""The house: imports point one way, names are public on purpose, importing is light."""

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import standout

SOURCE = Path(standout.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"

# Each package or module may import from those before it. `contrast` builds the record of `pencil`, so it stands after
# it although it comes before it in the flow. `io` imports the records that a checkpoint keeps when it restores them, by
# their names.
ORDER = [
    "_messages",
    "_xp",
    "_arrays",
    "_checks",
    "_params",
    "_writing",
    "_records",
    "sources",
    "io",
    "moments",
    "graphs",
    "features",
    "pencil",
    "private",
    "contrast",
    "selection",
    "estimators",
    "mne",
    "export",
    "persistence",
    "tl",
    "get",
    "metrics",
    "plots",
    "pl",
    "datasets",
    "report",
    "explorer",
    "cli",
]
# Modules at the top that every package may use. They are private to the library, not to themselves.
SHARED = {"_messages", "_xp", "_arrays", "_checks", "_params", "_writing", "_records"}


def imported_packages(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("standout."))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "standout":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if package not in ORDER:
        return
    allowed = ORDER[: ORDER.index(package) + 1]
    assert [other for other in imported_packages(path) if other in ORDER and other not in allowed] == []


def test_the_import_rule_can_fail(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import standout.report\nfrom standout.estimators import DiscriminativePCA\nfrom standout import contrast\n"
    )
    assert list(imported_packages(wrong)) == ["report", "estimators", "contrast"]


def test_every_package_and_module_has_a_place_in_the_order():
    found = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - {"__init__", "__main__", "__pycache__", "_version", "py.typed"} == set(ORDER)


def private_imports(path, own):
    """Names that start with an underscore, or come from a module that does, and belong to another package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, *parts = name.split(".")
            if parts and parts[0] in SHARED | {own}:
                parts = parts[1:] if parts[0] in SHARED else []
            if any(part.startswith("_") and not part.endswith("__") for part in parts) and top in OTHERS:
                yield name


# Our own packages, and those whose private names have led to trouble.
OTHERS = ("standout", "sklearn", "scipy", "numpy", "pandas", "anndata", "dask", "skops")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_private_name_is_imported_from_another_package(path):
    assert list(private_imports(path, path.relative_to(SOURCE).parts[0].removesuffix(".py"))) == []


def test_the_rule_of_private_names_can_fail(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from standout.io._scan import scan\nfrom standout._checks import as_rows\nfrom standout._checks import _text\n"
        "import standout.moments._gather\nfrom sklearn.utils._user_interface import _print\n"
        "from standout.report._page import page\nfrom standout import __version__\n"
    )
    assert list(private_imports(wrong, "report")) == [
        "standout.io._scan.scan",
        "standout._checks._text",
        "standout.moments._gather",
        "sklearn.utils._user_interface._print",
    ]


# Of the array API, what NumPy 1.25 has under another name or not at all.
NOT_IN_NUMPY_1 = {
    *("acos", "acosh", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_invert", "bitwise_left_shift"),
    *("bitwise_right_shift", "concat", "cumulative_prod", "cumulative_sum", "diagonal", "isdtype", "matrix_norm"),
    *("matrix_transpose", "permute_dims", "pow", "svdvals", "take_along_axis", "unique_all", "unique_counts"),
    *("unique_inverse", "unique_values", "unstack", "vecdot", "vector_norm"),
}


def names_of_xp(function):
    """The names that a function asks of an array namespace: ``xp.sum``, ``xp.linalg.qr``, ``namespace(a).sum``."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            root = ast.unparse(node.value).removesuffix(".linalg")
            if root == "xp" or root.startswith("namespace("):
                yield node.attr


def test_code_for_all_arrays_uses_names_that_numpy_1_has():
    for path in SOURCE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and not re.search("foreign|on_device", ast.unparse(function)):
                assert NOT_IN_NUMPY_1.isdisjoint(names_of_xp(function)), (path, function.name)


def test_the_rule_of_names_can_fail():
    code = (
        "def f(a):\n    xp = namespace(a)\n    return xp.concat([a, xp.linalg.vector_norm(a), namespace(a).pow(a, 2)])"
    )
    assert set(names_of_xp(ast.parse(code))) == {"concat", "linalg", "vector_norm", "pow"}


# What version 1.0 will promise; the reference names them in its first section.
PROMISED = {
    *("standout.DiscriminativePCA", "standout.KernelDiscriminativePCA"),
    *("standout.ContrastivePCA", "standout.KernelContrastivePCA"),
    *("standout.BackgroundSearchCV", "standout.differences"),
    *("standout.make_pipeline", "standout.BackgroundPipeline", "standout.save", "standout.load", "standout.scan"),
    "standout.explore",
    *("standout.io.read_table", "standout.io.prepare", "standout.io.on_device"),
    *("standout.tl.dpca", "standout.tl.cpca", "standout.tl.kernel_dpca", "standout.tl.project"),
    *("standout.selection.component_test", "standout.selection.stability"),
    *("standout.report.examine", "standout.report.page", "standout.report.draw"),
    *("standout.report.summary", "standout.report.compare"),
}


def test_promised_names_are_these():
    at_the_top = {f"standout.{name}" for name in standout.__all__ if name != "__version__"}
    assert at_the_top == {name for name in PROMISED if name.count(".") == 1}
    for name in PROMISED:
        module, _, thing = name.rpartition(".")
        assert thing in importlib.import_module(module).__all__


@pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are not beside the package")
def test_the_first_section_of_the_reference_has_the_promised_names():
    first = (DOCS / "api/index.rst").read_text().partition("Building blocks\n---")[0]
    assert {f"standout.{name}" for name in re.findall(r"^   ([\w.]+)$", first, re.MULTILINE)} == PROMISED


def public_modules():
    names = [module.name for module in pkgutil.walk_packages([str(SOURCE)], "standout.")]
    return ["standout", *(name for name in names if not any(part.startswith("_") for part in name.split(".")))]


def public_things(module):
    """Functions and classes that a module offers: those it lists, or, where it lists none, its own."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    things = {name: getattr(module, name) for name in listed if not name.startswith("_")}
    return {name: thing for name, thing in things.items() if inspect.isfunction(thing) or inspect.isclass(thing)}


@pytest.mark.parametrize("name", public_modules())
def test_every_public_name_says_what_it_is_with_an_example_that_runs(name):
    """That the examples run, and print what they say, is tested by pytest itself (``--doctest-modules``)."""
    module = importlib.import_module(name)
    assert module.__doc__
    for public, thing in public_things(module).items():
        examples = doctest.DocTestParser().get_examples(thing.__doc__ or "")
        assert any(example.want for example in examples), f"{name}.{public} has no example with a printed result"
        source = Path(inspect.getsourcefile(thing))
        assert source.is_relative_to(SOURCE), f"{name}.{public} is not ours: its examples are not run"


def test_the_rule_of_examples_can_fail():
    class Silent:
        """Says nothing."""

    assert doctest.DocTestParser().get_examples(Silent.__doc__) == []
    module = types.ModuleType("some.module", "A module that lists nothing.")
    Silent.__module__ = "some.module"
    module.Silent, module.path = Silent, Path
    assert list(public_things(module)) == ["Silent"]


def test_importing_needs_the_core_dependencies_only():
    script = (
        "import sys; extras = 'pandas', 'polars', 'pyarrow', 'matplotlib', 'rich';"
        "sys.modules.update(dict.fromkeys(extras));"
        "import standout, standout.metrics, standout.datasets, standout.selection; print('light')"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "light", result.stderr


def modules_after(script):
    """Run a script, and give what it has loaded."""
    script = f"{script}; import sys; print(); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "words", [["--version"], ["fit", "--help"], ["compare", "--help"], ["fit", "a.csv", "--colour"]]
)
def test_the_version_and_the_help_are_there_without_waiting_for_numbers(words):
    loaded = modules_after(f"import standout; standout.__version__; from standout.cli import main; main({words})")
    assert "standout.cli._app" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "pyarrow", "matplotlib", "bokeh"}


def test_names_that_are_fetched_when_asked_for_are_the_public_ones():
    assert {*standout._HOMES, "__version__"} == set(standout.__all__)
    assert set(standout.__all__) <= set(dir(standout))
    for name, home in standout._HOMES.items():
        assert getattr(standout, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="module 'standout' has no attribute 'dpca'"):
        standout.dpca  # noqa: B018


def test_every_public_package_can_be_reached_from_the_package():
    packages = sorted({name.split(".")[1] for name in public_modules() if "." in name} - {"cli"})
    assert sorted(standout._PACKAGES) == packages
    assert set(packages) <= set(dir(standout))
    script = f"import standout; print(*(getattr(standout, package).__name__ for package in {packages}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.split() == [f"standout.{package}" for package in packages], result.stderr


def test_type_checkers_know_the_lazy_names(tmp_path):
    """Arrays give arrays, packages have their functions, and a name that is not there is an error."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    user = tmp_path / "user.py"
    user.write_text(
        "import numpy as np\nimport standout\n"
        "model = standout.DiscriminativePCA(2).fit(np.ones((3, 2)), background=np.ones((3, 2)))\n"
        "reveal_type(model.transform(np.ones((3, 2))))\nreveal_type(standout.tl.project)\nstandout.nonsense\n"
    )
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports"]
    command += ["--cache-dir", str(tmp_path / "cache"), str(user)]
    where = {**os.environ, "MYPYPATH": str(SOURCE.parent)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=where, check=False)
    assert 'Revealed type is "numpy.ndarray' in done.stdout
    assert 'Revealed type is "def (adata' in done.stdout
    assert 'Module has no attribute "nonsense"' in done.stdout
