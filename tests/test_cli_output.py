"""Output is complete or not there at all, and nothing is replaced unasked: whoever else writes, and however we end."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli_runs import content
from standout._messages import FileError
from standout._writing import draft_name, lock, locked_draft, unlock, whole_file
from standout.cli._folder import check_output_folder, files_as_a_whole, folder_as_a_whole
from standout.cli._signals import SIGNALS

MARK = "summary.json"


def write_result(folder, words):
    """Write a folder that is known as a result of standout."""
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


def test_a_result_that_appears_meanwhile_is_replaced_only_on_request(tmp_path):
    for overwrite, (place, words) in ((False, ("out-2", "theirs")), (True, ("out", "ours"))):
        folder = tmp_path / str(overwrite)
        folder.mkdir()
        final = check_output_folder(str(folder / "out"), overwrite)
        try:
            with folder_as_a_whole(final, overwrite=overwrite) as draft:
                write_result(draft, "ours")
                write_result(folder / "out", "theirs")
        except FileError:
            assert not overwrite
        assert result_in(folder / "out") == words
        assert result_in(folder / place) == "ours"


def test_an_empty_folder_that_appears_is_used(tmp_path):
    with folder_as_a_whole(tmp_path / "out", overwrite=False) as draft:
        write_result(draft, "ours")
        (tmp_path / "out").mkdir()
    assert result_in(tmp_path / "out") == "ours"


def test_a_file_that_appears_is_kept_and_ours_is_put_beside_it_with_its_extensions(tmp_path):
    final = tmp_path / "scores.csv.gz"

    def write(draft):
        draft.write_text("ours")
        final.write_text("theirs")

    with pytest.raises(FileError, match=r"scores-2\.csv\.gz"), whole_file(final, replace=False) as draft:
        write(draft)
    assert (final.read_text(), (tmp_path / "scores-2.csv.gz").read_text()) == ("theirs", "ours")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores-2.csv.gz", "scores.csv.gz"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    with whole_file(tmp_path / "link.csv") as draft:
        draft.write_text("new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


# --- processes that were killed ---------------------------------------------------------------------------------------

KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from standout.cli import _folder
rename = Path.rename
def killed(path, *arguments):
    rename(path, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)
def killed_in_removal(path, **options):
    (path / "summary.json").unlink()
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


@pytest.mark.parametrize("moment", ["while writing", "between the renames", "while the earlier result is removed"])
def test_what_a_killed_process_left_is_cleaned_up_by_the_next_one(moment, tmp_path):
    write_result(tmp_path / "out", "old")
    done = subprocess.run([sys.executable, "-c", KILLED, moment], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left != ["out"]
    assert ("out" in left) == (moment != "between the renames")
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


def test_a_dead_draft_of_another_name_is_left_alone(tmp_path):
    mine, other = draft_name(tmp_path / "out"), draft_name(tmp_path / "out.csv")
    long_one, longer = draft_name(tmp_path / ("x" * 200)), draft_name(tmp_path / ("x" * 201))
    for place in (mine, other, long_one, longer):
        place.mkdir()
    check_output_folder(str(tmp_path / "out"), overwrite=False)
    check_output_folder(str(tmp_path / ("x" * 200)), overwrite=False)
    assert set(content(tmp_path)) == {other.name, longer.name}


def test_a_report_that_was_killed_does_not_stand_in_the_way_of_the_next_fit(tmp_path):
    write_result(tmp_path / "out", "old")
    with files_as_a_whole(tmp_path / "out") as draft:
        (draft / "report.html").write_text("new")
        shutil.copytree(draft, draft_name(tmp_path / "out" / MARK))
    assert (tmp_path / "out" / "report.html").read_text() == "new"
    check_output_folder(str(tmp_path / "out"), overwrite=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", MARK]


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


def test_a_lock_ends_with_its_holder(tmp_path):
    handle = lock(tmp_path)
    assert lock(tmp_path) is None
    unlock(handle)
    again = lock(tmp_path)
    assert again is not None
    unlock(again)
    with pytest.raises(ZeroDivisionError), locked_draft(tmp_path / "out", Path.mkdir):
        raise ZeroDivisionError
    assert content(tmp_path) == {}
