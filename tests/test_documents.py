"""What the README says is run as printed; the demo and the benchmark run through their real entry points."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


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


def test_the_demo_prints_a_table_and_draws_a_picture(tmp_path):
    result = run("-W", "error", "-m", "standout.demo", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    errors = {
        line.rsplit(maxsplit=2)[0]: float(line.split()[-2]) for line in result.stdout.splitlines() if "PCA" in line
    }
    assert errors["PCA"] > 0.4
    assert errors["discriminative PCA"] < 0.1
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["demo.png"]


def test_the_demo_says_in_one_line_where_it_cannot_write(tmp_path):
    result = run("-m", "standout.demo", "-o", "missing/demo.png", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "missing" in result.stderr


def test_the_benchmarks_print_ratios(tmp_path):
    pytest.importorskip("resource", reason="the benchmark needs a Unix-like system")
    result = run("benchmarks/linear.py", "--quick", "--no-peers", "--repeats", "1", "--cases", "tall", "wide")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("fit / limit") == 2
    result = run("benchmarks/kernel.py", "--quick", "--repeats", "1", "--cases", "full-rank", "accuracy")
    assert result.returncode == 0, result.stderr
    assert "symmetric pencil / fit" in result.stdout
    result = run("benchmarks/selection.py", "--quick", "--no-peers", "--repeats", "1", "--cases", "alpha", "weights")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("automatic α / one α") == 1
    assert "worst-case" in result.stdout
