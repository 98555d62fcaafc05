"""What all tests share: the folder of the real data, random numbers, and surroundings that are the same everywhere."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, so that no run fails by bad luck, and no limits of time, which a busy machine exceeds.
# Others are drawn with: pytest --hypothesis-profile explore
PATIENCE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("standout", derandomize=True, database=None, **PATIENCE)
settings.register_profile("explore", **PATIENCE)
settings.load_profile("standout")

# What a terminal or a notebook in which the tests are started says of itself is not for the programs that they start.
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
    """Let signals do what they usually do, also where whoever started the tests ignores them (nohup, a shell's &)."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    ignored = [number for number in usual if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, usual[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def data_dir():
    """The folder of the real datasets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("STANDOUT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real datasets are not here: no folder {folder.name!r}; name it in STANDOUT_DATA")
    return folder
