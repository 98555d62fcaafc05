"""The real command and events of a machine: signals, kills, full disks, pipes, closed streams."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import kills
from cli_runs import FIT, PAIR, PATIENCE, STANDOUT, check_failure, content, no_file_larger_than, run
from standout._messages import FileError
from standout._writing import draft_name, whole_file
from standout.cli import main
from standout.cli._display import SIGNALS, Display
from standout.cli._folder import check_output_folder, folder_as_a_whole

MARK = "summary.json"


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


# The maximum size of files decides where the command stops: at the scores, the model, the page or the picture.
@pytest.mark.parametrize("size", [1_000, 6_000, 30_000, 55_000])
def test_a_full_disk_leaves_nothing_behind(size, folder, result, capsys):
    shutil.copytree(result, folder / "old")
    before = content(folder)
    for arguments in (
        ["fit", *PAIR, "-o", "out", "--no-test"],
        ["fit", *PAIR, "-o", "old", "--overwrite", "--no-test"],
    ):
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
from standout.cli import main
from standout.cli._app import app
app.invoke = lambda context: logging.getLogger("matplotlib.font_manager").warning("building the font cache")
sys.exit(main(["demo"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_standard_streams_may_be_closed(folder):
    closed = ["sh", "-c", '"$0" "$@" <&- >&- 2>&-', STANDOUT]
    assert subprocess.run([*closed, *FIT], cwd=folder, check=False, timeout=PATIENCE).returncode == 0
    assert (folder / "out" / "report.html").is_file()
    assert subprocess.run([*closed, *FIT], cwd=folder, check=False, timeout=PATIENCE).returncode == 2


SLOW = ["--n-draws", "20000", "--n-components", "4"]


@pytest.fixture
def slow_folder(folder):
    """A folder with data for a fit that takes long enough to be interrupted."""
    rng = np.random.default_rng(0)
    for name in ("target", "background"):
        np.save(folder / f"{name}.npy", rng.normal(size=(12_000, 120)))
    return folder


def started(folder, *options):
    """Start a fit, and wait until it has begun to fit."""
    command = [STANDOUT, "fit", "target.npy", "-b", "background.npy", "-o", "out", *SLOW, *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("testing"):
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
# These are loaded one after the other, from 0.05 s after the start, before anything is printed.
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
    command = [STANDOUT, "fit", "target.npy", "-b", "background.npy", "-o", "out", "--overwrite", "--no-test"]
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
    # The slower command may have started after the faster one had finished.
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
print(code, [name for name in ("bokeh", "torch", "dask") if name in sys.modules])
"""


def test_a_fit_loads_no_package_that_it_does_not_need(folder):
    arguments = [*FIT, "-o", "light", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 []"


# --- output that is complete or not there -----------------------------------------------------------------------------


def write_result(folder, words):
    """Write a folder that standout accepts as a result."""
    folder.mkdir(exist_ok=True)
    (folder / MARK).write_text(f'{{"standout": "{words}"}}')


def result_in(folder):
    return (folder / MARK).read_text().split('"')[3]


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize("at", range(1, 16))
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_result_is_replaced_as_a_whole_whenever_it_is_interrupted(at, late, tmp_path, monkeypatch):
    write_result(tmp_path / "out", "old")
    steps = iter(range(1, 100))

    def watched(step):
        def inner(*arguments, **options):
            is_meant = next(steps) == at
            if is_meant and not late:
                os.kill(os.getpid(), signal.SIGINT)
            done = step(*arguments, **options)
            if is_meant and late:
                os.kill(os.getpid(), signal.SIGINT)
            return done

        return inner

    for name in ("mkdir", "rename", "exists", "write_text"):
        monkeypatch.setattr(Path, name, watched(getattr(Path, name)))
    monkeypatch.setattr(shutil, "rmtree", watched(shutil.rmtree))
    interrupted = False
    with SIGNALS.as_interruptions():
        try:
            with folder_as_a_whole(tmp_path / "out", overwrite=True) as draft:
                (draft / MARK).write_text('{"standout": "new"}')
        except KeyboardInterrupt:
            interrupted = True
    monkeypatch.undo()
    assert interrupted or next(steps) <= at
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert result_in(tmp_path / "out") in ("old", "new")


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_appears_meanwhile_is_not_replaced_and_the_result_is_put_beside_it(overwrite, tmp_path):
    final = check_output_folder(str(tmp_path / "out"), overwrite)

    def write(draft):
        write_result(draft, "ours")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.txt").write_text("theirs")

    with pytest.raises(FileError, match="out-2"), folder_as_a_whole(final, overwrite=overwrite) as draft:
        write(draft)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "theirs"
    assert result_in(tmp_path / "out-2") == "ours"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-2"]


def test_a_file_that_appears_is_kept_and_ours_is_put_beside_it_with_its_extensions(tmp_path):
    final = tmp_path / "scores.csv.gz"

    def write(draft):
        draft.write_text("ours")
        final.write_text("theirs")

    with pytest.raises(FileError, match=r"scores-2\.csv\.gz"), whole_file(final, replace=False) as draft:
        write(draft)
    assert (final.read_text(), (tmp_path / "scores-2.csv.gz").read_text()) == ("theirs", "ours")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores-2.csv.gz", "scores.csv.gz"]


# --- processes that are killed ---------------------------------------------------------------------------------------

KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from standout.cli import _folder
rename = Path.rename
def killed(path, *arguments):
    rename(path, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)
def killed_in_removal(path, **options):
    (path / "replaced" / "summary.json").unlink()
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "between the renames":
    Path.rename = killed
if sys.argv[1] == "while the earlier result is removed":
    shutil.rmtree = killed_in_removal
with _folder.folder_as_a_whole(Path("out"), overwrite=True) as draft:
    (draft / "summary.json").write_text('{"standout": "new"}')
    if sys.argv[1] == "while writing":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def refused(path, *arguments):
    raise PermissionError


@pytest.mark.parametrize("moment", ["while writing", "between the renames", "while the earlier result is removed"])
def test_what_a_killed_process_left_is_cleaned_up_by_the_next_one(moment, tmp_path, monkeypatch):
    write_result(tmp_path / "out", "old")
    done = subprocess.run([sys.executable, "-c", KILLED, moment], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left != ["out"]
    assert ("out" in left) == (moment != "between the renames")
    if moment == "between the renames":
        # An earlier result that cannot be moved back is kept for the command after the next.
        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", refused)
            check_output_folder(str(tmp_path / "out"), overwrite=True)
    check_output_folder(str(tmp_path / "out"), overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert result_in(tmp_path / "out") == ("new" if "removed" in moment else "old")


def test_the_draft_of_a_living_process_is_left_alone(tmp_path):
    script = "import sys; from pathlib import Path; from standout._writing import locked_draft\n"
    script += "with locked_draft(Path('out'), Path.mkdir): print('begun', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        before = content(tmp_path)
        assert len(before) == 1
        check_output_folder(str(tmp_path / "out"), overwrite=False)
        assert content(tmp_path) == before
        process.stdin.close()
    assert content(tmp_path) == {}


def test_without_locks_drafts_work_and_none_is_taken_for_dead(tmp_path, monkeypatch):
    def refuse(handle, operation):
        raise OSError

    monkeypatch.setattr("fcntl.flock", refuse)
    left = draft_name(tmp_path / "out")
    left.mkdir()
    with folder_as_a_whole(tmp_path / "out", overwrite=False) as draft:
        write_result(draft, "ours")
    check_output_folder(str(tmp_path / "out"), overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [left.name, "out"]


MOMENTS = [("fit", 4, "after"), ("transform", 1, "before"), ("transform", 2, "after")]


def test_the_next_command_succeeds_after_kills_within_the_renames(tmp_path):
    kills.prepare(tmp_path)
    for what, number, when in MOMENTS:
        kills.kill_in_renames(tmp_path, kills.COMMANDS[what], number, when)
        kills.check(tmp_path, kills.COMMANDS[what])


@pytest.mark.long
def test_the_next_command_succeeds_after_fifty_kills(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["kills", "--kills", "50"])
    assert kills.main() == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("50 kills")


# --- pipes ------------------------------------------------------------------------------------------------------------


def test_a_pipe_as_output_that_nobody_reads_is_refused(folder, result):
    os.mkfifo(folder / "pipe")
    done = run("transform", result, "target.csv", "-o", "pipe", cwd=folder, timeout=60)
    assert done.returncode == 2
    assert "cannot be written: no program reads this pipe" in done.stderr


def test_a_pipe_with_a_reader_gets_the_scores(folder, result):
    os.mkfifo(folder / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=folder, stdout=subprocess.PIPE, text=True) as reader:
        done = run("transform", result, "target.csv", "-o", "pipe", "-q", cwd=folder, timeout=60)
        assert done.returncode == 0, done.stderr
        assert reader.communicate(timeout=60)[0].count("\n") == 61


def test_pipes_beside_the_output_and_in_it_stop_nothing(folder, result):
    os.mkfifo(draft_name(folder / "out"))
    os.mkfifo(draft_name(folder / "new.csv"))
    assert run(*FIT, "--no-test", cwd=folder, timeout=120).returncode == 0
    assert run("transform", result, "target.csv", "-o", "new.csv", cwd=folder, timeout=60).returncode == 0
    (folder / "other").mkdir()
    os.mkfifo(folder / "other" / MARK)
    done = run("fit", *PAIR, "-o", "other", "--overwrite", cwd=folder, timeout=60)
    assert done.returncode == 2
    assert "something else" in done.stderr
