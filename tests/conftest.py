"""Shared fixtures: the environment, the real data, random numbers, and files for the command line."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Hypothesis draws the same examples every time. It has no time limit, because a busy machine would exceed it.
# Draw other examples with: pytest --hypothesis-profile explore
PATIENCE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("standout", derandomize=True, database=None, **PATIENCE)
settings.register_profile("explore", **PATIENCE)
settings.load_profile("standout")

# Remove settings of the terminal or notebook: they would change the programs that the tests start.
for name in (
    *("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("MPLBACKEND", "PYTHONWARNINGS", "PYTHONOPTIMIZE"),
):
    os.environ.pop(name, None)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def heeded_signals():
    """Restore the usual effect of signals, because the process that started the tests may ignore them (nohup)."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    ignored = [number for number in usual if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, usual[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def data_dir():
    """The folder of the real datasets; tests that need it are skipped if it is absent."""
    folder = Path(os.environ.get("STANDOUT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real datasets are not here: no folder {folder.name!r}; name it in STANDOUT_DATA")
    return folder


# The command line


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A target with ids and labels against a background without them, with columns in another order."""
    from cli_runs import COLUMNS, csv_text, two_datasets, works

    folder = tmp_path_factory.mktemp("fitted")
    target, background, kinds = two_datasets()
    names = [f"row {i}" for i in range(len(target))]
    (folder / "target.csv").write_text(csv_text(target, name=names, kind=kinds))
    (folder / "background.csv").write_text(csv_text(background[:, ::-1], COLUMNS[::-1]))
    given = ("target.csv", "--background", "background.csv", "--id-column", "name", "--label-column", "kind")
    return folder, works("fit", *given, "--output", "out", cwd=folder)


@pytest.fixture
def folder(here):
    """The current folder, with files of a target and a background."""
    from cli_runs import write_pair

    write_pair(here)
    return here


@pytest.fixture(scope="session")
def result(fitted):
    """The folder of a successful fit."""
    return fitted[0] / "out"
