"""Files of models on a disk: whole or not there, wherever saving stops, and told if they cannot be read or written."""

import errno
import os
from functools import partial
from pathlib import Path

import pytest

import standout
from cli_runs import no_file_larger_than
from saved_models import CASES
from standout import DiscriminativePCA

try:
    import resource
except ImportError:  # not on Windows
    resource = None


@pytest.fixture
def kept(tmp_path):
    """A file that a failing save must leave as it is, alone in its folder."""
    path = tmp_path / "model.skops"
    path.write_bytes(b"what was there before")
    return path


def assert_kept(path):
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == b"what was there before"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_disk_leaves_what_was_there(step, kept, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="model.skops' cannot be written: No space left on device"):
        standout.save(DiscriminativePCA(), kept)
    assert_kept(kept)


@pytest.mark.skipif(resource is None, reason="limits of file sizes are those of POSIX")
def test_a_full_disk_leaves_what_was_there(kept):
    model = CASES["kernel rows"]()
    with no_file_larger_than(5_000), pytest.raises(OSError, match="model.skops' cannot be written"):
        standout.save(model, kept)
    assert_kept(kept)


def test_an_interruption_leaves_what_was_there(kept, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        standout.save(DiscriminativePCA(), kept)
    assert_kept(kept)


def refuse_to_open(folder, monkeypatch):
    """Let no file of a folder be opened; packages that are loaded meanwhile read files of their own."""
    opened = Path.open

    def guarded(path, *arguments, **options):
        if path.is_relative_to(folder):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", guarded)


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path, monkeypatch):
    # The superuser, as whom tests may run, may write to any folder.
    refuse_to_open(tmp_path, monkeypatch)
    with pytest.raises(OSError, match="cannot be written: Permission denied"):
        standout.save(DiscriminativePCA(), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_place_of_a_file_is_told(tmp_path):
    for act in (partial(standout.save, DiscriminativePCA()), standout.load):
        with pytest.raises(OSError, match=r"not a file|there is no file"):
            act(tmp_path)


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent/model.skops' cannot be written"):
        standout.save(DiscriminativePCA(), tmp_path / "absent" / "model.skops")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file/model.skops' cannot be written"):
        standout.save(DiscriminativePCA(), tmp_path / "file" / "model.skops")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are those of POSIX")
def test_what_is_no_file_is_neither_replaced_nor_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not a file"):
        standout.save(DiscriminativePCA(), tmp_path / "pipe")
    with pytest.raises(OSError, match="there is no file .*pipe"):
        standout.load(tmp_path / "pipe")


def test_a_name_that_is_too_long_is_told(tmp_path):
    with pytest.raises(OSError, match="cannot be written: File name too long"):
        standout.save(DiscriminativePCA(), tmp_path / ("m" * 300))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        standout.load(tmp_path / ("m" * 300))


@pytest.mark.parametrize("path", ["", None, 3, b"model.skops"])
def test_what_is_no_path_is_told(path):
    for act in (partial(standout.save, DiscriminativePCA()), standout.load):
        with pytest.raises(TypeError, match=r"is not the name of a file\. Give a path"):
            act(path)


def test_a_path_may_be_a_string_or_relative_and_a_file_is_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    standout.save(DiscriminativePCA(1), "model")
    standout.save(DiscriminativePCA(7), "model")
    assert standout.load("model").n_components == 7
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(os.name == "nt", reason="links and modes are those of POSIX")
def test_a_link_stays_a_link_and_the_file_has_the_usual_mode(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    standout.save(DiscriminativePCA(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "usual").touch()
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_file_that_cannot_be_read_is_told(kept, monkeypatch):
    refuse_to_open(kept.parent, monkeypatch)
    with pytest.raises(OSError, match="could not be read: Permission denied"):
        standout.load(kept)
