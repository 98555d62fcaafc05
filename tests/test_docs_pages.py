"""The pages, tried as a new user would: code runs as printed, names exist, and limits of length hold."""

import functools
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import standout

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "tutorials").glob("*.md"))]
STANDOUT = Path(sys.executable).with_name("standout")
MODULES = ["standout", *(f"standout.{name}" for name in standout._NAMES)]
COMMANDS = ("fit", "transform", "info", "compare", "screen", "explore", "release", "demo")

# Code, and the text right after it, which must be printed.
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", flags=re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^(```|:::+).*?^\1[^\n]*$", flags=re.MULTILINE | re.DOTALL)
FORBIDDEN = re.compile(
    r"(?m)^Give |\. Give |not fitted|lets expect|of its own(?! \w)|so many|by itself|\b(?:agent|session of)\b"
)
# Names in backticks that belong to other packages.
FOREIGN = {
    "len",
    "np",
    "pd",
    "sc",
    "mne",
    "scipy",
    "sklearn",
    "spectral",
    "raw",
    "scanpy",
    "anndata",
    "dask",
    "adata",
    "cells",
    "TRUSTED",
    "names",
}
FOREIGN_NAMES = {
    *("reg", "serialization_format", "skops_trusted_types", "highly_variable", "GridSearchCV", "SimpleImputer"),
    *("StandardScaler", "LinearDiscriminantAnalysis", "partial_fit", "FunctionTransformer", "select_dtypes"),
}


def blocks(page, kind):
    return [(code, shown) for this, code, shown in BLOCK.findall(page.read_text("utf-8")) if this == kind]


def prose(page):
    return FENCED.sub("", page.read_text("utf-8"))


def words(text):
    return " ".join(text.split())


def matches(shown, printed, *, in_part=False):
    """Return whether this was printed. Spaces may differ, and "..." stands for any text."""
    pattern = r"\s*.*\s*".join(re.escape(words(piece)) for piece in shown.split("..."))
    return bool((re.search if in_part else re.fullmatch)(pattern, words(printed)))


def test_the_comparison_of_shown_and_printed_text_can_fail():
    assert matches("[1.  2.]\n...\nend", "[1. 2.]\n3\nend\n")
    assert not matches("[1. 2.]", "[1. 2.]\nmore")
    assert not matches("[1. 2.]", "[1. 3.]", in_part=True)


# --- code ---

SCRIPT = """
import contextlib, io, json, pathlib
namespace, printed = {"__name__": "__main__"}, []
for code in json.loads(pathlib.Path("codes.json").read_text("utf-8")):
    with contextlib.redirect_stdout(io.StringIO()) as words:
        exec(code, namespace)
    printed.append(words.getvalue())
pathlib.Path("printed.json").write_text(json.dumps(printed), "utf-8")
"""


@pytest.fixture
def clone(tmp_path):
    """A folder with the files of the repository that pages use."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "data").symlink_to(DOCS / "data")
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_as_printed_and_prints_what_is_shown(page, clone, request):
    # PyTorch is optional. Without it, skip blocks that import it.
    has_torch = importlib.util.find_spec("torch") is not None
    run = [(code, shown) for code, shown in blocks(page, "python") if has_torch or "import torch" not in code]
    for file in re.findall(r"^<!-- data: ([\w.]+) -->$", page.read_text("utf-8"), flags=re.MULTILINE):
        (clone / file).symlink_to(request.getfixturevalue("data_dir") / file)
    (clone / "codes.json").write_text(json.dumps([code for code, _ in run]), "utf-8")
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=clone,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    for (code, shown), printed in zip(run, json.loads((clone / "printed.json").read_text("utf-8")), strict=True):
        assert not shown or matches(shown, printed), f"{code}\nprints\n{printed}\nbut the page shows\n{shown}"
    saved = re.findall(r"savefig\(\"([\w.-]+)\"", "".join(code for code, _ in run))
    assert all((DOCS / "images" / "tutorials" / name).is_file() for name in saved)


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "start.md"], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_printed(page, clone):
    environment = {**os.environ, "PATH": f"{STANDOUT.parent}{os.pathsep}{os.environ['PATH']}"}
    for commands, shown in blocks(page, "bash"):
        if commands.startswith("pip install"):
            continue
        found = subprocess.run(
            ["bash", "-e", "-c", commands], cwd=clone, env=environment, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, f"{commands}\n{found.stderr}"
        assert not shown or matches(shown, found.stdout, in_part=True), f"{commands}\nprints\n{found.stdout}"
    assert (clone / "result" / "report.html").is_file()


def test_numbers_in_the_prose_are_those_of_the_code():
    readme = (ROOT / "README.md").read_text("utf-8")
    ratio = re.search(r"^\[(\d+\.\d)", readme, flags=re.MULTILINE)[1]
    shown = re.search(r"^1 +(\d+\.\d+) ", readme, flags=re.MULTILINE)[1]
    assert f"{float(shown):.1f}" == ratio
    assert f"{ratio} times that of healthy people" in words(readme)
    ratio, error = re.search(
        r"^\[(\d+\.\d+) +\S+ *\] \[(\d+\.\d+)", (DOCS / "start.md").read_text("utf-8"), flags=re.MULTILINE
    ).groups()
    assert f"{float(ratio):.1f} ± {float(error):.1f} times" in words((DOCS / "check-the-result.md").read_text("utf-8"))


# --- names ---


@functools.cache
def known_names():
    """Return the names of everything public: modules, functions, classes, methods, parameters, attributes."""
    known = set(COMMANDS)
    for module in map(importlib.import_module, MODULES):
        known.update(module.__name__.split("."))
        for name in module.__all__:
            thing = getattr(module, name)
            members = [getattr(thing, one, None) for one in dir(thing)] if inspect.isclass(thing) else []
            known |= {name, *(dir(thing) if inspect.isclass(thing) else ())}
            known.update(re.findall(r"\b[a-z]\w*_\b", thing.__doc__ or ""))
            for each in (thing, *members):
                if callable(each):
                    try:
                        known.update(inspect.signature(each).parameters)
                    except (TypeError, ValueError):
                        continue
    for file in (ROOT / "src").rglob("*.py"):
        known.update(re.findall(r"\bself\.(\w+_)\b", file.read_text("utf-8")))
    return known


@functools.cache
def known_options():
    helps = [subprocess.run([STANDOUT, name, "--help"], capture_output=True, text=True).stdout for name in COMMANDS]
    return set(re.findall(r"(?<!\S)-{1,2}[a-z][\w-]*", " ".join(helps).replace(",", " "))) | {"--version", "--download"}


def unknown_in(span):
    """Return the names in a span of code that look like standout's and do not exist."""
    options = [word for word in re.findall(r"(?<![\w-])--[a-z][\w-]*", span) if word not in known_options()]
    dotted = [name for name in re.findall(r"\bstandout(?:\.[a-z_]\w*)+", span) if not exists(name)]
    candidates = re.findall(r"(?<![\w.])([a-z]\w+_)(?![\w.])", span)  # attributes
    candidates += re.findall(r"(?<![\w.\"'])(\w+)=", span)  # parameters
    calls = re.findall(r"(?<![\w.\"'])([A-Za-z_][\w.]{2,})\(", span)
    candidates += [name.split(".")[-1] for name in calls if name.split(".")[0] not in FOREIGN]
    return options + dotted + [name for name in candidates if name not in known_names() | FOREIGN_NAMES]


def exists(name):
    *path, last = name.split(".")
    for cut in range(len(path), 0, -1):
        try:
            thing = importlib.import_module(".".join(path[:cut]))
        except ImportError:
            continue
        for part in (*path[cut:], last):
            thing = getattr(thing, part, None)
        return thing is not None or importlib.util.find_spec(name) is not None
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_in_backticks_exists(page):
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose(page))
    assert {span: unknown for span in spans if (unknown := unknown_in(span))} == {}


def test_names_that_do_not_exist_are_found():
    found = [
        unknown_in(span) for span in ("--tset", "standout.report.write", "ratios_", "shrinkages=1", "fitted_test(X)")
    ]
    assert found == [["--tset"], ["standout.report.write"], ["ratios_"], ["shrinkages"], ["fitted_test"]]


def test_extras_and_goals_that_pages_name_exist():
    project, makefile = ((ROOT / name).read_text("utf-8") for name in ("pyproject.toml", "Makefile"))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text("utf-8")
        for names in re.findall(r"standout\[([\w,]+)\]", text):
            assert all(re.search(rf"(?m)^{name} = \[", project) for name in names.split(",")), (page.name, names)
        for goal in re.findall(r"`make ([\w-]+)", text):
            assert re.search(rf"(?m)^{goal}:", makefile), (page.name, goal)


# --- length and words ---


def test_the_readme_is_short():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(readme.splitlines()) <= 120
    assert max(map(len, readme.splitlines())) <= 120
    text = re.sub(r"^\|.*$|\]\([^)]*\)|!\[.*?\]", " ", prose(ROOT / "README.md"), flags=re.MULTILINE)
    assert len(re.findall(r"[\w'-]+", text)) <= 560


def test_all_pages_together_have_half_of_the_31000_words_before():
    assert sum(len(page.read_text("utf-8").split()) for page in PAGES if page.parent != ROOT) <= 15_500
    assert len(list(DOCS.glob("*.md"))) <= 14 + len(
        ("index", "contents", "glossary", "your-name-for-it", "changelog", "contributing")
    )


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.stem)
def test_no_page_has_words_that_have_to_be_read_twice(page):
    assert FORBIDDEN.findall(words(prose(page))) == []


# --- what scripts make ---


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / "data" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_of_pages_are_those_that_scripts_make():
    for name, lines in script("make").make().items():
        assert (DOCS / "data" / name).read_text("utf-8").splitlines() == lines
    assert script("evidence").table() in (DOCS / "evidence.md").read_text("utf-8")


def test_the_reference_is_the_list_of_all_public_names():
    assert script("reference").reference() == (DOCS / "api" / "index.rst").read_text("utf-8")
    named = {*script("reference").BLOCKS, "estimators"}
    assert named == set(standout._NAMES)
    main = [name.split(".")[-1] for name in " ".join(script("reference").MAIN.values()).split()]
    assert {*main, "__version__"} == set(standout.__all__)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_has_its_place_in_the_gallery_and_needs_no_download(example):
    assert f'"{example.stem}"' in (DOCS / "_ext" / "gallery_order.py").read_text("utf-8")
    assert not re.search(r"download=True|urllib|requests|https?://", example.read_text("utf-8"))
