"""What the tests of the command line share: small files, and the command as a user starts it."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

STANDOUT = Path(sys.executable).with_name("standout")
# Seconds after which a command is taken to hang. A busy machine may take a hundred times as long as an idle one.
PATIENCE = 600
COLUMNS = ["size", "age", "iron", "zinc"]


def run(*arguments, cwd, timeout=PATIENCE, **options):
    """Run the installed command in a process of its own."""
    return subprocess.run(
        [STANDOUT, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )


def two_datasets(n=60, seed=0):
    """Give a target with two groups along "zinc", a background without, and the group of each target row."""
    rng = np.random.default_rng(seed)
    spread = [10, 1, 2, 1]
    groups = np.repeat([0, 1], n // 2)
    target = rng.normal(size=(n, 4)) * spread
    target[:, 3] += 8 * groups
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


@contextmanager
def no_file_larger_than(size):
    """Have every file end as on a full disk."""
    import resource

    before, was_off = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    # Python does not notice that the code of a module, loaded meanwhile, was written in part: others could not read it.
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = was_off


def content(folder):
    """Give all that is in a folder, hidden files too: their bytes by their names."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
