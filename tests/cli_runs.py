"""Small files, and the command as a user starts it, for the tests of the command line."""

import csv
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from standout.cli import main

STANDOUT = Path(sys.executable).with_name("standout")
# Time limit of a command in seconds. A busy machine may take a hundred times as long as an idle one.
PATIENCE = 600
COLUMNS = ["size", "age", "iron", "zinc"]
PAIR = ["target.csv", "-b", "background.csv"]
FIT = ["fit", *PAIR, "-o", "out"]
RESULT = {"columns.csv", "figure.png", "model.skops", "report.html", "scores.csv", "summary.json"}


# --- files ------------------------------------------------------------------------------------------------------------


def two_datasets(n=60, seed=0):
    """Return a target with two groups along "zinc", a background without groups, and the group of each target row."""
    rng = np.random.default_rng(seed)
    spread = [10, 1, 2, 1]
    groups = np.repeat([0, 1], n // 2)
    target = rng.normal(size=(n, 4)) * spread
    target[:, 3] += 8 * groups - 4
    return target, rng.normal(size=(n, 4)) * spread, np.array(["low", "high"])[groups]


def csv_text(rows, columns=COLUMNS, delimiter=",", **words):
    """Write a table as text: numbers, and named columns of words before them."""
    lines = [[*words, *columns]]
    lines += [[*(column[i] for column in words.values()), *map(repr, map(float, row))] for i, row in enumerate(rows)]
    return "".join(delimiter.join(map(str, line)) + "\n" for line in lines)


def write_pair(folder):
    """Write target.csv and background.csv."""
    target, background, _ = two_datasets()
    (folder / "target.csv").write_text(csv_text(target))
    (folder / "background.csv").write_text(csv_text(background))


def write_conditions(path, gap=None):
    """Write one file of four conditions: low and high, ctrl and other; with a missing value of iron in one row."""
    target, background, groups = two_datasets()
    kinds = [*groups, *["ctrl"] * 30, *["other"] * 30]
    lines = csv_text(np.r_[target, background], name=[f"row {i}" for i in range(120)], kind=kinds).splitlines()
    if gap is not None:
        cells = lines[gap + 1].split(",")
        lines[gap + 1] = ",".join([*cells[:4], "", cells[5]])
    path.write_text("\n".join(lines) + "\n")


def content(folder):
    """Return the content of a folder by name, with hidden files: the bytes of each file, None for a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@contextmanager
def no_file_larger_than(size):
    """Limit the size of files, so that writing fails as on a full disk."""
    import resource

    before, was_off = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    # Python would not notice that it wrote the bytecode of a module only in part, and later imports would fail.
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = was_off


# --- runs -------------------------------------------------------------------------------------------------------------


def run(*arguments, cwd, timeout=PATIENCE, **options):
    """Run the installed command in a separate process."""
    return subprocess.run(
        [STANDOUT, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )


def works(*arguments, cwd, **options):
    """Run the command in a separate process. It must succeed, and print nothing on standard error."""
    done = run(*arguments, cwd=cwd, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def works_here(*arguments):
    """Run the command in this process, for tests that do not need a separate process."""
    assert main([str(argument) for argument in arguments]) == 0


def check_failure(code, err, expected, before, folder):
    """Check that a failure has exit code 2, prints one line with the problem, and changes nothing."""
    assert code == 2, err
    assert err.startswith("standout: "), err
    assert err.count("\n") == 1, err
    assert err.endswith("\n"), err
    assert err[:-1].isprintable(), err
    assert "Traceback" not in err
    assert "unforeseen" not in err, err
    for words in [expected] if isinstance(expected, str) else expected:
        assert words in err, err
    assert content(folder) == before


def fails(arguments, expected, folder, capsys):
    before = content(folder)
    code = main([str(argument) for argument in arguments])
    check_failure(code, capsys.readouterr().err, expected, before, folder)


# --- results ----------------------------------------------------------------------------------------------------------


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def scores(path, dataset=None):
    rows = [row for row in table(path) if dataset in (None, row.get("dataset"))]
    names = [name for name in rows[0] if name.startswith("component_")]
    return np.array([[float(row[name]) for name in names] for row in rows])


def summary(folder):
    return json.loads((folder / "summary.json").read_text())
