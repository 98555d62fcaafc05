"""The house: imports point one way, names are public on purpose, importing is light."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import standout

SOURCE = Path(standout.__file__).parent

# Each room may import from those before it. `contrast` builds the record of `pencil`, so it stands after it although
# it comes before it in the flow.
ORDER = [
    "_namespaces",
    "_arrays",
    "_algebra",
    "_validation",
    "sources",
    "moments",
    "features",
    "pencil",
    "contrast",
    "selection",
    "estimators",
    "report",
]


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("standout."))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "standout":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room not in ORDER:
        return
    allowed = ORDER[: ORDER.index(room) + 1]
    assert [other for other in imported_rooms(path) if other in ORDER and other not in allowed] == []


def test_the_import_rule_can_fail(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import standout.report\nfrom standout.estimators import DiscriminativePCA\nfrom standout import contrast\n"
    )
    assert list(imported_rooms(wrong)) == ["report", "estimators", "contrast"]


PUBLIC = [
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


def test_public_names_are_these():
    assert set(standout.__all__) == set(PUBLIC)


def public_modules():
    names = [module.name for module in pkgutil.walk_packages([str(SOURCE)], "standout.")]
    return ["standout", *(name for name in names if not any(part.startswith("_") for part in name.split(".")))]


@pytest.mark.parametrize("name", public_modules())
def test_every_exported_name_exists_and_says_what_it_is_with_an_example(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for exported in getattr(module, "__all__", []):
        thing = getattr(module, exported)
        if inspect.isfunction(thing) or (inspect.isclass(thing) and name == "standout"):
            assert "Examples" in (thing.__doc__ or ""), f"{name}.{exported} has no example"
        elif inspect.isclass(thing):
            assert thing.__doc__, f"{name}.{exported} has no docstring"


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


def test_every_public_room_can_be_reached_from_the_package():
    rooms = sorted({name.split(".")[1] for name in public_modules() if "." in name} - {"cli"})
    assert sorted(standout._ROOMS) == rooms
    assert set(rooms) <= set(dir(standout))
    script = f"import standout; print(*(getattr(standout, room).__name__ for room in {rooms}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.split() == [f"standout.{room}" for room in rooms], result.stderr
