"""Rules of the code: imports point one way, names are public on purpose, and a fit calls few functions."""

import ast
import importlib
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import standout

SOURCE = Path(standout.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
# Each package or module may import from those before it.
ORDER = [
    "_messages",
    "_xp",
    "_arrays",
    "_graphs",
    "_options",
    "_writing",
    "sources",
    "io",
    "moments",
    "features",
    "pencil",
    "problem",
    "private",
    "selection",
    "estimators",
    "screening",
    "persistence",
    "_annotated",
    "images",
    "mne",
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
PUBLIC = {
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
}
LONGEST_FILE, LONGEST_FUNCTION = 450, 60


def imported(tree):
    """Return our packages that a module imports when it is loaded, without imports inside functions."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("standout."))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "standout":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


def home(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    if path.parent == SOURCE and path.name.startswith("__"):
        return
    allowed = ["__version__", *ORDER[: ORDER.index(home(path)) + 1]]
    assert [name for name in imported(ast.parse(path.read_text())) if name not in allowed] == []


def test_the_import_rule_can_fail():
    wrong = "import standout.report\nfrom standout.estimators import DiscriminativePCA\nfrom standout import problem\n"
    assert list(imported(ast.parse(wrong))) == ["report", "estimators", "problem"]


def test_every_name_is_public_on_purpose():
    assert set(standout.__all__) == PUBLIC
    for name in PUBLIC:
        thing = getattr(standout, name)
        assert name == "__version__" or inspect.getdoc(thing), name
    assert set(dir(standout)) >= PUBLIC


@pytest.mark.parametrize("module", ["get", "pl", "plots", "tl"])
def test_completion_lists_only_public_names(module):
    found = importlib.import_module(f"standout.{module}")
    assert dir(found) == sorted(found.__all__)


@pytest.mark.parametrize("package", ["moments", "pencil", "selection", "sources", "estimators", "features", "problem"])
def test_public_names_of_packages_exist_and_have_examples(package):
    module = importlib.import_module(f"standout.{package}")
    for name in module.__all__:
        text = inspect.getdoc(getattr(module, name))
        assert text, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_are_short_and_no_docstring_starts_with_give(path):
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = ast.get_docstring(node) or ""
            assert not words.startswith("Give "), words
        if isinstance(node, ast.FunctionDef):
            # Do not count the docstring and the signature.
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert lines <= LONGEST_FUNCTION, node.name


def passed(action):
    """Return our functions that an action calls."""
    seen = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and str(SOURCE) in code.co_filename and not code.co_name.startswith("<"):
            seen.add((Path(code.co_filename).relative_to(SOURCE), code.co_firstlineno, code.co_name))

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.filterwarnings("ignore:the chosen shrinkage")
def test_a_default_fit_passes_few_functions():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 200, 10)) * [4, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    X[:, 3] *= 3
    # The first fit also imports modules.
    standout.DiscriminativePCA().fit(X, background=Y)
    found = passed(lambda: standout.DiscriminativePCA().fit(X, background=Y))
    assert len(found) <= 110, sorted(f"{path}:{name}" for path, _, name in found)


@pytest.mark.filterwarnings("ignore")
def test_a_csv_to_its_page_passes_few_functions(tmp_path, monkeypatch):
    from standout.cli import main

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, spread in (("x", 3.0), ("y", 1.0)):
        rows = rng.normal(size=(200, 10)) * [1, 1, 1, spread, 1, 1, 1, 1, 1, 1]
        np.savetxt(f"{name}.csv", rows, delimiter=",", header=",".join(f"c{i}" for i in range(10)), comments="")
    # The first run also imports modules, whose classes and decorators would count.
    main(["fit", "x.csv", "--background", "y.csv", "--output", "first"])
    found = passed(lambda: main(["fit", "x.csv", "--background", "y.csv", "--output", "out"]))
    assert (tmp_path / "out" / "report.html").exists()
    assert len(found) <= 350
