"""What tests share: surroundings, the real data, random numbers; what those of the command line and the report need."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Modules of helpers, whose assertions are to show both sides, as those of tests do.
pytest.register_assert_rewrite("array_libraries", "pipelines_in_parts", "saved_models", "scanned_files")

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
    target, background, groups = two_datasets()
    names = [f"row {i}" for i in range(len(target))]
    (folder / "target.csv").write_text(csv_text(target, name=names, kind=groups))
    (folder / "background.csv").write_text(csv_text(background[:, ::-1], COLUMNS[::-1]))
    said = works(
        "fit",
        *("target.csv", "--background", "background.csv"),
        *("--id-column", "name", "--label-column", "kind", "--output", "out"),
        cwd=folder,
    )
    return folder, said


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to be in, with a target and a background."""
    from cli_runs import write_pair

    monkeypatch.chdir(tmp_path)
    write_pair(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def result(fitted):
    """The folder of a fit that went well."""
    return fitted[0] / "out"


# The report


@pytest.fixture
def pair(rng):
    """Both vary most along the first column; the target alone along the last."""
    return rng.normal(size=(200, 6)) * [5, 1, 1, 1, 1, 3] + 4, rng.normal(size=(300, 6)) * [5, 1, 1, 1, 1, 1] - 2


@pytest.fixture(scope="module")
def findings():
    """Three groups of mice that differ along the last two columns, which the background does not vary in."""
    from standout import DiscriminativePCA
    from standout._messages import Message
    from standout.report import examine

    rng = np.random.default_rng(0)
    group = np.arange(240) % 3
    target = rng.normal(size=(240, 8)) * [6, 1, 1, 1, 1, 1, 1, 1]
    target[:, 6] += 5.0 * (group == 1)
    target[:, 7] += 5.0 * (group == 2)
    background = rng.normal(size=(150, 8)) * [6, 1, 1, 1, 1, 1, 1, 1]
    return examine(
        DiscriminativePCA(2).fit(target, background=background),
        target,
        background,
        features=[f"protein {letter}" for letter in "ABCDEFGH"],
        ids=[f"mouse {row}" for row in range(240)],
        labels=np.array(["saline", "drug 1", "drug 2"])[group],
        target_name="treated mice",
        background_names=["untreated mice"],
        notes=[Message("{n_rows} rows with missing values were left out", n_rows=4)],
    )
