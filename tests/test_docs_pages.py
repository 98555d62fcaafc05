"""Tried as a new user would: code and commands on the README and the pages run as printed, and print what is shown."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from standout import DiscriminativePCA
from standout.datasets import make_factor_model

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
STANDOUT = Path(sys.executable).with_name("standout")

# What a block needs beyond the test tools, its code, and the text that must be printed: that of the block of text that
# follows before any other block.
BLOCK = re.compile(
    r"(?:^<!-- needs: (\w+) -->\n)?^```(python|bash)\n(.*?)^```\n(?:(?:(?!^```).)*?^```text\n(.*?)^```)?",
    flags=re.MULTILINE | re.DOTALL,
)


def blocks(page, kind):
    """Give the blocks of one kind: what each needs, its code, and what it must print, if that is shown."""
    found = BLOCK.findall(page.read_text("utf-8"))
    return [(needs, code, shown) for needs, this, code, shown in found if this == kind]


def data_needed(page):
    """Name the files of real data that the code of a page reads."""
    return re.findall(r"^<!-- data: ([\w.]+) -->$", page.read_text("utf-8"), flags=re.MULTILINE)


def words(text):
    return " ".join(text.split())


def matches(shown, printed, *, in_part=False):
    """Tell whether this is what was printed, but for spaces and for what "..." stands for."""
    pattern = ".*".join(re.escape(words(piece)) for piece in shown.split("..."))
    return bool((re.search if in_part else re.fullmatch)(pattern.replace(".*", r"\s*.*\s*"), words(printed)))


def test_what_is_shown_is_compared_with_what_is_printed():
    assert matches("[1.  2.]\n...\nend", "[1. 2.]\n3\nend\n")
    assert not matches("[1. 2.]", "[1. 2.]\nmore")
    assert matches("[1. 2.]", "less\n[1. 2.]\nmore", in_part=True)
    assert not matches("[1. 2.]", "[1. 3.]", in_part=True)


@pytest.fixture
def clone(tmp_path):
    """A folder like that of a clone, as far as the pages name files of it, into which results can be written."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "data").symlink_to(ROOT / "docs" / "data")
    return tmp_path


SCRIPT = """
import json, sys, io, contextlib
codes, namespace = json.load(open("codes.json", encoding="utf-8")), {"__name__": "__main__"}
printed = []
for code in codes:
    with contextlib.redirect_stdout(io.StringIO()) as words:
        exec(code, namespace)
    printed.append(words.getvalue())
json.dump(printed, open("printed.json", "w", encoding="utf-8"))
"""


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_as_printed_and_prints_what_is_shown(page, clone, request):
    found = blocks(page, "python")
    environment = {**os.environ, "MPLBACKEND": "agg"}
    if data_needed(page):
        folder = request.getfixturevalue("data_dir")
        path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment |= {"STANDOUT_DATA": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, path))}
    absent = {needs for needs, _, _ in found if needs and importlib.util.find_spec(needs) is None}
    run = [(code, shown) for needs, code, shown in found if needs not in absent]
    (clone / "codes.json").write_text(json.dumps([code for code, _ in run]), "utf-8")
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    for (code, shown), printed in zip(run, json.loads((clone / "printed.json").read_text("utf-8")), strict=True):
        assert not shown or matches(shown, printed), f"{code}\nprints\n{printed}\nbut the page shows\n{shown}"
    saved = re.findall(r"savefig\(\"([\w.-]+)\"", "".join(code for code, _ in run))
    assert all((clone / name).is_file() for name in saved)
    assert all((ROOT / "docs" / "images" / "tutorials" / name).is_file() for name in saved)
    if absent:
        pytest.skip(f"all but {len(found) - len(run)} of {len(found)} blocks were run: {absent} is not installed")


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "start.md"], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_printed(page, clone):
    environment = {**os.environ, "PATH": f"{STANDOUT.parent}{os.pathsep}{os.environ['PATH']}"}
    ran = 0
    for _, commands, shown in blocks(page, "bash"):
        if commands.startswith("pip install"):
            continue  # that is for the reader: here it is installed already
        result = subprocess.run(
            ["bash", "-e", "-c", commands], cwd=clone, env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, f"{commands}\n{result.stderr}"
        assert not shown or matches(shown, result.stdout, in_part=True), f"{commands}\nprints\n{result.stdout}"
        ran += commands.count("standout ")
    assert ran >= 3
    assert (clone / "result" / "report.html").is_file()


def test_extras_that_pages_install_exist():
    extras = (ROOT / "pyproject.toml").read_text("utf-8")
    for page in PAGES:
        for names in re.findall(r"""pip install ["']?(?:standout|\.)\[([\w,]+)\]""", page.read_text("utf-8")):
            for name in names.split(","):
                assert re.search(rf"^{name} = \[", extras, flags=re.MULTILINE), (page.name, name)


def test_goals_that_documents_name_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for goal in re.findall(r"(?:`|^)make (\w+)", page.read_text("utf-8"), flags=re.MULTILINE):
            assert re.search(rf"^{goal}:", makefile, flags=re.MULTILINE), (page.name, goal)


def test_the_pages_agree_on_what_a_fit_costs():
    tables = [(ROOT / page).read_text("utf-8") for page in ("docs/other-tools.md", "benchmarks/README.md")]
    rows = [
        re.findall(r"\*\*([\d.]+)\*\*", re.search(r"^\| fit over reference .*$", text, re.MULTILINE)[0])
        for text in tables
    ]
    assert len(rows[0]) == 4
    assert rows[0] == rows[1]
    fast = words((ROOT / "README.md").read_text("utf-8")).partition("**Fast.**")[2]
    assert re.findall(r"([\d.]+) times (?:as much )?at \(", fast) == [f"{float(ratio):.1f}" for ratio in rows[0]]


@pytest.mark.filterwarnings("ignore:the background covariance is singular", "ignore:.*infinite")
def test_the_pages_say_what_few_background_rows_do():
    """The setting of examples/plot_wide_data.py, at the numbers of rows that the pages quote."""

    def mean_r2(n_rows, shrinkage):
        found = []
        for seed in range(3):
            data = make_factor_model(600, n_rows, 200, specific_variance=20.0, random_state=seed)
            model = DiscriminativePCA(1, shrinkage=shrinkage).fit(data.target[:200], background=data.backgrounds)
            scores = model.transform(data.target[200:])[:, 0]
            found.append(np.corrcoef(scores, data.specific_factors[200:, 0])[0, 1] ** 2)
        return f"{np.mean(found):.2f}"

    page, readme = (words((ROOT / name).read_text("utf-8")) for name in ("docs/which-method.md", "README.md"))
    for n_rows in (2000, 240, 200, 60, 25):
        times = "as many rows as" if n_rows == 200 else f"{n_rows / 200:g} times the"
        row = rf"\| {times} columns \| [^|]* \| {mean_r2(n_rows, None)} \| {mean_r2(n_rows, 'auto')} \|"
        assert re.search(row, page), row
    said = f"an R² of {mean_r2(200, None)} with the true factor, against {mean_r2(200, 'auto')} with shrinkage"
    assert said in readme


def test_the_tables_of_start_here_are_those_that_their_script_makes():
    place = ROOT / "docs" / "data" / "make.py"
    spec = importlib.util.spec_from_file_location("make_tables", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, lines in module.make().items():
        assert place.with_name(name).read_text("utf-8").splitlines() == lines


def test_the_reference_lists_every_public_name():
    import standout
    from test_house import public_modules, public_things

    listed = (ROOT / "docs" / "api" / "index.rst").read_text("utf-8")
    section, names = "", set()
    for line in listed.splitlines():
        if line.startswith(".. currentmodule:: "):
            section = line.removeprefix(".. currentmodule:: ")
        elif re.fullmatch(r"   [\w.]+", line):
            names.add(f"{section}.{line.strip()}")
    for name in public_modules():
        for public, thing in public_things(importlib.import_module(name)).items():
            # What the package itself offers is listed there, and not once more in its module.
            places = {f"{name}.{public}"} | (
                {f"standout.{public}"} if getattr(standout, public, None) is thing else set()
            )
            assert places & names, f"{name}.{public} is not in docs/api/index.rst"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_of_the_gallery_and_needs_no_download(example):
    """That it runs and draws is seen by make docs, which runs all of them."""
    text = example.read_text("utf-8")
    assert example.name.startswith("plot_")
    assert "plt.subplots" in text
    assert not re.search(r"download=True|\bload_\w+\(|urllib|requests|https?://", text)
    assert example.name.removesuffix(".py") in "".join(page.read_text("utf-8") for page in PAGES), "no page links to it"


def test_there_are_at_least_eight_examples():
    assert len(list((ROOT / "examples").glob("plot_*.py"))) >= 8
