"""What the README says is run as printed; the demo and the benchmark run through their real entry points."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PICTURE = "docs/images/demo.png"
STANDOUT = Path(sys.executable).with_name("standout")


def run(*command, cwd=ROOT):
    return subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, check=False)


def test_the_examples_of_the_readme_run_as_printed(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) >= 2
    (tmp_path / "example.py").write_text("\n".join(blocks))
    result = run("-W", "error", "example.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split()[-1]) < 0.1


def test_the_pictures_of_the_readme_are_there():
    for name in re.findall(r"\]\(([^)]+\.(?:png|md|cff))\)", (ROOT / "README.md").read_text()):
        assert (ROOT / name).is_file(), name


def test_the_demo_says_what_it_shows_and_where(tmp_path):
    # What an earlier one wrote is replaced.
    (tmp_path / "standout-demo").mkdir()
    (tmp_path / "standout-demo" / "summary.json").write_text('{"standout": "0.1"}')
    result = subprocess.run([STANDOUT, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    pca, ours = map(float, re.findall(r"(\d+\.\d)%", result.stdout))
    assert pca > 40
    assert ours < 10
    assert result.stdout.endswith("Report: standout-demo/report.html\n")
    assert [path.name for path in tmp_path.iterdir()] == ["standout-demo"]
    assert (tmp_path / "standout-demo" / "report.html").read_text().startswith("<!doctype html>")
    # With other versions of matplotlib letters may look different, but it is the picture of the README.
    ours, shown = (path.read_bytes() for path in (tmp_path / "standout-demo" / "digits.png", ROOT / PICTURE))
    assert ours[:24] == shown[:24]  # the form and the size


def test_make_demo_goes_through_the_command():
    # Under `make test` an inner make would speak of its folder, too: only the goal itself counts.
    goal = (ROOT / "Makefile").read_text().split("\ndemo:")[1].split("\n\n")[0]
    assert "installed-cli" in goal
    assert "standout demo" in goal


def test_the_commands_of_the_documents_are_commands(tmp_path):
    """Those of the README and of Start here are run, too: see test_docs_pages."""
    text = "\n".join(page.read_text() for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
    # A line that ends in a backslash goes on in the next.
    shown = re.findall(r"^standout (\w+)(.*)", text.replace("\\\n", " "), flags=re.MULTILINE)
    assert {command for command, _ in shown} >= {"fit", "transform", "compare", "report", "info"}
    said = {command: run("-m", "standout", command, "--help", cwd=tmp_path).stdout for command in dict(shown)}
    for command, rest in shown:
        for option in re.findall(r"(?<= )--?[a-z][a-z0-9-]*", rest):
            assert option in said[command], (command, option)


def test_the_benchmarks_print_ratios(tmp_path):
    pytest.importorskip("resource", reason="the benchmark needs a Unix-like system")
    # That of linear fits has the same parts, and a dozen processes.
    result = run("benchmarks/kernel.py", "--quick", "--repeats", "1", "--cases", "full-rank")
    assert result.returncode == 0, result.stderr
    assert "symmetric pencil / fit" in result.stdout
    result = run("benchmarks/selection.py", "--quick", "--no-peers", "--repeats", "1", "--cases", "alpha")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("0 and 40 α / ContrastivePCA(alpha=1)") == 1


def test_the_page_on_scaling_has_the_seconds_of_the_model():
    pytest.importorskip("threadpoolctl", reason="the benchmark limits the threads of BLAS with it")
    result = run("benchmarks/scaling.py", "paper")
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith("|")]
    assert len(lines) == 11
    assert "\n".join(lines) in (ROOT / "docs" / "scaling.md").read_text("utf-8")


def test_the_benchmark_of_the_command_line_prints_ratio_and_memory():
    pytest.importorskip("resource", reason="the benchmark needs a Unix-like system")
    result = run("benchmarks/command_line.py", "--quick", "--repeats", "1")
    assert result.returncode == 0, result.stderr
    assert re.search(r"standout fit / reading and bare fit: \d", result.stdout)
    assert re.search(r"peak memory: \d", result.stdout)
    result = run("benchmarks/start.py", "--quick", "--repeats", "1", "--cases", "small")
    assert result.returncode == 0, result.stderr
    assert re.search(r"standout fit / from sklearn.decomposition import PCA: \d", result.stdout)
