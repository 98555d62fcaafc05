"""The command line among other things of a machine: signals, full disks, streams that are closed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli_runs import FIT, PAIR, PATIENCE, STANDOUT, check_failure, content, no_file_larger_than, run
from standout.cli import main
from standout.cli._display import Display
from standout.cli._signals import SIGNALS


def test_a_failure_in_the_shell_is_one_line(folder, result):
    before = content(folder)
    for arguments in (
        ["fit", "missing.csv", "-b", "background.csv", "-o", "out"],
        ["fit", *PAIR, "-o", "/proc/out"],
        ["fit", *PAIR, "-o", "out", "--shrinkage", "2"],
        ["transform", "missing.skops", "target.csv", "-o", "scores.csv"],
        ["info", "target.csv"],
        ["nonsense"],
    ):
        done = run(*arguments, cwd=folder)
        check_failure(done.returncode, done.stderr, [], before, folder)


# The larger files may be, the later it stops: at the scores, the model, what is kept for the report, the page.
@pytest.mark.parametrize("size", [1_000, 6_000, 20_000, 300_000])
def test_a_full_disk_leaves_nothing_behind(size, folder, result, capsys):
    shutil.copytree(result, folder / "old")
    before = content(folder)
    for arguments in (["fit", *PAIR, "-o", "out"], ["fit", *PAIR, "-o", "old", "--overwrite"], ["report", "old"]):
        with no_file_larger_than(size):
            code = main(arguments)
        check_failure(code, capsys.readouterr().err, ["cannot be", "File too large"], before, folder)


def test_standard_output_may_be_full_or_closed(folder, result):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([STANDOUT, "info", result], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("standout: ")
    assert done.stderr.count("\n") == 1


def test_whoever_stops_listening_does_not_stop_the_work(folder):
    command = [STANDOUT, *FIT]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == 0
    assert (folder / "out" / "report.html").is_file()


def test_what_libraries_log_is_not_among_our_words():
    script = """
import logging, sys
from standout import cli
cli._run = lambda words: logging.getLogger("matplotlib.font_manager").warning("building the font cache") or 0
sys.exit(cli.main(["fit"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_standard_streams_may_be_closed(folder):
    closed = ["sh", "-c", '"$0" "$@" <&- >&- 2>&-', STANDOUT]
    assert subprocess.run([*closed, *FIT], cwd=folder, check=False, timeout=PATIENCE).returncode == 0
    assert (folder / "out" / "report.html").is_file()
    assert subprocess.run([*closed, *FIT], cwd=folder, check=False, timeout=PATIENCE).returncode == 2


SLOW = ["--test", "permutation", "--n-components", "4", "--shrinkage", "0.01"]


@pytest.fixture
def slow_folder(folder):
    """A folder whose data keep a fit busy for so long that nobody is too late to interrupt it."""
    rng = np.random.default_rng(0)
    for name in ("target", "background"):
        np.save(folder / f"{name}.npy", rng.normal(size=(12_000, 120)))
    return folder


def started(folder, *options):
    """Start a fit, and wait until it has begun to fit."""
    command = [STANDOUT, "fit", "target.npy", "-b", "background.npy", "-o", "out", *SLOW, *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("fitting"):
            break
    time.sleep(0.3)
    return process


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interruption_leaves_nothing_behind(number, code, slow_folder):
    before = content(slow_folder)
    process = started(slow_folder)
    with process:
        assert process.poll() is None
        process.send_signal(number)
        process.send_signal(number)
        err = process.stderr.read()
    assert process.returncode == code
    assert err == "standout: interrupted.\n"
    assert content(slow_folder) == before


@pytest.mark.usefixtures("heeded_signals")
# Loaded one after the other, from a twentieth of a second after the start on, before there is a word on the screen.
@pytest.mark.parametrize("module", ["click", "standout.cli._app", "numpy", "scipy.special", "sklearn.base"])
def test_an_interruption_while_packages_are_loaded_is_told_in_one_line(module, folder):
    before = content(folder)
    command = [sys.executable, "-X", "importtime", STANDOUT, "fit", *PAIR, "-o", "out"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        next(line for line in process.stderr if line.rstrip().endswith(f" {module}"))
        process.send_signal(signal.SIGINT)
        said = [line for line in process.stderr if not line.startswith("import time:")]
    assert said == ["standout: interrupted.\n"]
    assert process.returncode == 130
    assert content(folder) == before


@pytest.mark.usefixtures("heeded_signals")
def test_an_interruption_that_got_lost_is_heeded_at_the_next_stage(monkeypatch):
    class Careless:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    display = Display(quiet=True)
    with SIGNALS.as_interruptions(), display.working():
        thing = Careless()
        del thing
        with pytest.raises(KeyboardInterrupt):
            display.stage("the next one")


@pytest.mark.usefixtures("heeded_signals")
def test_an_interruption_while_writing_leaves_nothing_behind(slow_folder, result):
    folder = slow_folder
    shutil.copytree(result, folder / "out")
    before = content(folder)
    command = [STANDOUT, "fit", "target.npy", "-b", "background.npy", "-o", "out", "--overwrite"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        next(line for line in process.stdout if line.startswith("writing the report"))
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "standout: interrupted.\n"
    assert process.returncode == 130
    assert content(folder) == before


def test_of_two_fits_to_one_new_folder_one_succeeds_and_the_other_puts_its_result_beside_it(folder):
    command = [STANDOUT, *FIT, "-q"]
    processes = [subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=PATIENCE)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 2]
    # The slower one may have begun when the faster one had finished already.
    err = max(said)
    assert "out-2" in err or "--overwrite" in err
    results = {path.name for path in folder.iterdir()} - {"target.csv", "background.csv"}
    assert results == ({"out", "out-2"} if "out-2" in err else {"out"})
    for name in results:
        assert (folder / name / "report.html").is_file()


LOADED = """
import sys
from standout.cli import main
code = main(sys.argv[1:])
print(code, [name for name in ("bokeh.models", "sklearn.gaussian_process", "torch", "dask") if name in sys.modules])
"""


def test_a_fit_loads_no_package_that_it_does_not_need(folder):
    arguments = [*FIT, "-o", "light", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 []"
