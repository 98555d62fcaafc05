"""Checkpoints: a pass that is stopped at any moment, by whatever, ends in the very numbers of one that is not."""

import contextlib
import gc
import itertools
import json
import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import compute as pc
from pyarrow import csv, parquet

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, _arrays, make_pipeline, scan
from standout._records import flattened, restored
from standout.io import Preparation, _checkpoint
from standout.io._checkpoint import KINDS, Checkpoint, Reached, _key_of
from standout.moments import gather
from standout.moments._gather import Part

N_FILES, ROWS, D = 4, 500, 20


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let every batch be a part of its own, and every part be kept."""
    monkeypatch.setattr("standout.sources._base.BLOCK_BYTES", 8 * D * 50)
    monkeypatch.setattr(_checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(_checkpoint, "WRITING_SHARE", 1e9)


@pytest.fixture
def folder(tmp_path, rng):
    for name, scale in (("target", 3.0), ("background", 1.0)):
        (tmp_path / name).mkdir()
        for number in range(N_FILES):
            rows = rng.normal(size=(ROWS, D)) * np.r_[scale, np.ones(D - 1)] + 5.0
            parquet.write_table(
                pa.table(list(rows.T), names=[str(column) for column in range(D)]),
                tmp_path / name / f"{number}.parquet",
                row_group_size=130,
            )
    return tmp_path


def fitted(folder, checkpoint, estimator=None, **options):
    scans = (scan(folder / name, batch_rows=60, checkpoint=checkpoint, **options) for name in ("target", "background"))
    target, background = scans
    return (estimator or DiscriminativePCA(3)).fit(target, background=background)


def assert_equal_bits(first, second):
    for name in ("eigenvalues_", "components_", "mean_", "target_variance_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), strict=True)


class StoppedError(Exception):
    pass


@contextlib.contextmanager
def stopping(monkeypatch, n_parts):
    """Let the pass fail after some parts."""
    count = iter(range(n_parts))
    call = Part.__call__

    def limited(self, batch):
        if next(count, None) is None:
            raise StoppedError
        return call(self, batch)

    with monkeypatch.context() as patched:
        patched.setattr(Part, "__call__", limited)
        yield


@pytest.mark.parametrize("n_parts", [0, 1, 8, 9, 20, 33, 34, 35, 50, 60])
def test_a_pass_that_is_interrupted_goes_on_to_the_same_bits(folder, monkeypatch, n_parts):
    expected = fitted(folder, None)
    with stopping(monkeypatch, n_parts), pytest.raises(StoppedError):
        fitted(folder, folder / "kept")
    assert_equal_bits(fitted(folder, folder / "kept"), expected)


def test_nothing_is_added_up_twice(folder, monkeypatch):
    # With several threads, parts of a batch that comes later may be among the first ones made.
    monkeypatch.setattr(_arrays, "MOST_WORKERS", 1)
    made = []
    call = Part.__call__
    with monkeypatch.context() as patched:
        patched.setattr(Part, "__call__", lambda self, batch: made.append(batch.n_rows) or call(self, batch))
        expected = fitted(folder, None)
    assert sum(made) == 2 * N_FILES * ROWS
    with stopping(monkeypatch, 50), pytest.raises(StoppedError):
        fitted(folder, folder / "kept")
    with stopping(monkeypatch, len(made) - 50):
        assert_equal_bits(fitted(folder, folder / "kept"), expected)
    with stopping(monkeypatch, 0):
        # All is kept: a second fit makes nothing of any row.
        assert_equal_bits(fitted(folder, folder / "kept"), expected)


def test_whatever_can_be_fitted_can_be_resumed(folder, monkeypatch):
    landmarks = np.random.default_rng(0).normal(size=(30, D)) + 5.0
    estimators = [
        lambda: ContrastivePCA(3, alpha=2.0),
        lambda: DiscriminativePCA(3, solver="root"),
        lambda: KernelDiscriminativePCA(2, gamma=0.01, approximation=landmarks),
        lambda: KernelDiscriminativePCA(2, gamma=0.01, approximation="fourier", rank=40),
        lambda: KernelDiscriminativePCA(2, gamma=0.01, approximation="pivoted", rank=40),
    ]
    for number, make in enumerate(estimators):
        expected = fitted(folder, None, make())
        found = fitted(folder, folder / "kept", make())
        n_kept = len(list((folder / "kept").iterdir()))
        again = fitted(folder, folder / "kept", make())
        for other in (found, again):
            np.testing.assert_array_equal(other.eigenvalues_, expected.eigenvalues_)
            np.testing.assert_array_equal(other.components_, expected.components_)
        # The key of a pass is the same the second time, although kernels were used in between.
        assert len(list((folder / "kept").iterdir())) == n_kept == 2 * (number + 1)


def run(folder, answer, n_writes=None, delay=0.0):
    """Fit in a process of its own, which dies a moment after it has begun to write for the nth time."""
    import standout.sources._base as base

    base.BLOCK_BYTES = 8 * D * 50
    _checkpoint.INTERVAL, _checkpoint.WRITING_SHARE = 0.0, 1e9
    call, replace = Part.__call__, _checkpoint.write_whole
    writes = itertools.count(1)

    def slow(self, batch):
        time.sleep(0.004)
        return call(self, batch)

    def counted(path, content, **options):
        number = next(writes)
        if number == n_writes:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        if n_writes is not None and number > n_writes + 2:
            # However late the end comes, much is left to do.
            threading.Event().wait()
        replace(path, content, **options)

    Part.__call__, _checkpoint.write_whole = slow, counted
    model = fitted(folder, folder / "kept")
    np.savez(answer, values=model.eigenvalues_, components=model.components_)


def test_killed_at_ten_random_moments_the_pass_ends_in_the_same_bits(folder):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["numpy", "pyarrow.parquet", "standout.estimators", "standout.io"])
    rng = np.random.default_rng(0)
    answer = folder / "answer.npz"
    # There are more than 60 parts in all, each of which is written: ten times at most six leave some for the end.
    for n_writes in (1, *map(int, rng.integers(2, 5, size=9))):
        process = context.Process(target=run, args=(folder, answer, n_writes, rng.uniform(0.0, 0.02)))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        # The next one must have something to go on from, or nothing is shown.
        assert n_writes == 1 or any((folder / "kept").glob("*.checkpoint"))
    process = context.Process(target=run, args=(folder, answer))
    process.start()
    process.join()
    assert process.exitcode == 0
    expected = fitted(folder, None)
    with np.load(answer) as found:
        np.testing.assert_array_equal(found["values"], expected.eigenvalues_)
        np.testing.assert_array_equal(found["components"], expected.components_)


def damage_torn(content):
    return content[: len(content) // 2]


def damage_bit(content):
    changed = bytearray(content)
    changed[len(content) // 2] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "damage", [damage_torn, damage_bit, lambda content: b"", lambda content: b"PK\x03\x04 something else", bytes.upper]
)
def test_a_damaged_checkpoint_is_told_and_not_used(folder, monkeypatch, damage):
    expected = fitted(folder, None)
    with stopping(monkeypatch, 20), pytest.raises(StoppedError):
        fitted(folder, folder / "kept")
    (kept,) = (folder / "kept").glob("*.checkpoint")
    kept.write_bytes(damage(kept.read_bytes()))
    with pytest.warns(UserWarning, match="is damaged and is not used"):
        found = fitted(folder, folder / "kept")
    assert_equal_bits(found, expected)
    assert_equal_bits(fitted(folder, folder / "kept"), expected)


def test_a_checkpoint_under_the_name_of_another_is_not_used(folder):
    fitted(folder, folder / "kept")
    first, second = sorted((folder / "kept").iterdir())
    second.write_bytes(first.read_bytes())
    with pytest.warns(UserWarning, match="damaged"):
        assert_equal_bits(fitted(folder, folder / "kept"), fitted(folder, None))


def test_files_that_have_changed_are_read_anew(folder):
    fitted(folder, folder / "kept")
    place = folder / "target" / "1.parquet"
    rows = parquet.read_table(place)
    parquet.write_table(rows.slice(0, 400), place)
    assert_equal_bits(fitted(folder, folder / "kept"), fitted(folder, None))
    os.utime(place, ns=(0, 0))
    assert len(list((folder / "kept").iterdir())) == 3
    fitted(folder, folder / "kept")
    assert len(list((folder / "kept").iterdir())) == 4


def test_a_finished_sum_is_not_taken_for_files_that_have_changed_since_the_scan(folder):
    target = scan(folder / "target", checkpoint=folder / "kept")
    DiscriminativePCA().fit(target)
    place = folder / "target" / "1.parquet"
    parquet.write_table(parquet.read_table(place).slice(0, 400), place)
    with pytest.raises(ValueError, match="has changed since scan looked at it. Call scan again"):
        DiscriminativePCA().fit(target)


def test_another_choice_of_columns_batches_or_method_is_another_pass(folder):
    fitted(folder, folder / "kept")
    chosen = fitted(folder, folder / "kept", columns=["3", "1", "2", "0"])
    assert_equal_bits(chosen, fitted(folder, None, columns=["3", "1", "2", "0"]))
    assert len(list((folder / "kept").iterdir())) == 4


def test_two_at_once_do_not_disturb_each_other(folder):
    found = []
    threads = [threading.Thread(target=lambda: found.append(fitted(folder, folder / "kept"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = fitted(folder, None)
    assert len(found) == 3
    assert_equal_bits(fitted(folder, folder / "kept"), expected)
    for model in found:
        # BLAS has more threads or fewer for one fit while another one is at its sums: the last digit may differ.
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-13)
        np.testing.assert_allclose(model.components_, expected.components_, atol=1e-12)


# It may come between the opening of a file and the block that closes it: Python then closes it late, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("heeded_signals")
def test_an_interruption_from_the_keyboard_passes_through_and_loses_nothing(folder, monkeypatch):
    expected = fitted(folder, None)
    calls = itertools.count()
    call = Part.__call__

    def interrupted(self, batch):
        if next(calls) == 25:
            signal.raise_signal(signal.SIGINT)
        return call(self, batch)

    before = set(threading.enumerate())
    with monkeypatch.context() as patched:
        patched.setattr(Part, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fitted(folder, folder / "kept")
    gc.collect()
    assert set(threading.enumerate()) <= before
    assert_equal_bits(fitted(folder, folder / "kept"), expected)


def test_text_files_go_on_as_well(folder, monkeypatch):
    for name in ("target", "background"):
        for file in sorted((folder / name).iterdir()):
            csv.write_csv(parquet.read_table(file), file.with_suffix(".csv"))
            file.unlink()
    expected = fitted(folder, None)
    for n_parts in (20, 30):
        with stopping(monkeypatch, n_parts), pytest.raises(StoppedError):
            fitted(folder, folder / "kept")
    assert_equal_bits(fitted(folder, folder / "kept"), expected)


def test_rows_that_are_chosen_by_a_value_go_on_as_well(folder, monkeypatch):
    groups = np.random.default_rng(1).choice(["a", "b"], size=ROWS)
    for name in ("target", "background"):
        for file in sorted((folder / name).iterdir()):
            parquet.write_table(parquet.read_table(file).append_column("g", pa.array(groups)), file, row_group_size=130)
    whole = fitted(folder, folder / "kept", drop="g")
    for value in ("a", "b"):
        expected = fitted(folder, None, where={"g": value})
        for n_parts in (3, 15):
            with stopping(monkeypatch, n_parts), pytest.raises(StoppedError):
                fitted(folder, folder / "kept", where={"g": value})
        assert_equal_bits(fitted(folder, folder / "kept", where={"g": value}), expected)
    # Each is a pass of its own; names and groups of rows, which the sums do not need, make no other one.
    assert len(list((folder / "kept").iterdir())) == 6
    assert_equal_bits(fitted(folder, folder / "kept", group_column="g", columns=None), whole)
    assert len(list((folder / "kept").iterdir())) == 6


def test_statistics_of_columns_and_what_follows_them_are_kept(folder, monkeypatch):
    def scans(checkpoint):
        return [scan(folder / name, batch_rows=60, checkpoint=checkpoint) for name in ("target", "background")]

    def model(checkpoint):
        target, background = scans(checkpoint)
        found = make_pipeline(Preparation(log1p=True, standardize="pooled"), DiscriminativePCA(3))
        return found.fit(target, background=background)[-1]

    for name in ("target", "background"):
        for file in sorted((folder / name).iterdir()):
            rows = parquet.read_table(file)
            positive = [pc.abs(column) for column in rows.columns]
            parquet.write_table(pa.table(positive, names=rows.column_names), file)
    expected = model(None)
    assert_equal_bits(model(folder / "kept"), expected)
    assert len(list((folder / "kept").iterdir())) == 4
    with stopping(monkeypatch, 0):
        assert_equal_bits(model(folder / "kept"), expected)


def test_drafts_of_the_dead_are_removed(tmp_path):
    draft = tmp_path / ".key.checkpoint.0123abcd.part"
    draft.touch()
    Checkpoint(tmp_path, "key").write(Reached(None, (0, 0), 0))
    assert not draft.exists()


def test_a_folder_that_cannot_be_written_to_costs_the_checkpoint_not_the_fit(folder, monkeypatch):
    expected = fitted(folder, None)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("standout._writing.os.replace", full)
    with pytest.warns(UserWarning, match="cannot be written: No space left on device. The pass goes on"):
        found = fitted(folder, folder / "kept")
    assert_equal_bits(found, expected)


def test_a_folder_that_cannot_be_made_is_refused(folder):
    (folder / "file").touch()
    with pytest.raises(OSError, match="for checkpoints cannot be made"):
        scan(folder / "target", checkpoint=folder / "file" / "kept")
    with pytest.raises(TypeError, match="is not the name of a folder") as caught:
        scan(folder / "target", checkpoint=3)
    assert (caught.value.parameter, caught.value.value) == ("checkpoint", 3)


def test_a_kernel_that_has_no_name_is_fitted_without_a_checkpoint(folder):
    kernel = KernelDiscriminativePCA(1, kernel=lambda x, z: float(x @ z), approximation=np.eye(D))
    with pytest.warns(UserWarning, match="this pass cannot be kept in a checkpoint"):
        fitted(folder, folder / "kept", kernel)


@pytest.mark.parametrize("kind", ["scatter", "root", "rows"])
def test_sums_come_back_as_they_were(rng, kind):
    first, second = (gather(rng.normal(size=(n, 3)), kind=kind, norms=True) for n in (5, 4))
    total = first + second
    arrays = {}
    tree = json.loads(json.dumps(flattened(total, arrays, KINDS)))
    again = restored(tree, arrays, KINDS)
    assert type(again) is type(total)
    np.testing.assert_array_equal(again.covariance(), total.covariance())
    assert again.count == total.count
    assert again.quartic == total.quartic


def test_only_sums_are_stored():
    with pytest.raises(TypeError, match="object"):
        flattened(object(), {}, KINDS)
    assert _key_of(Part("auto", True, False)) == _key_of(Part("auto", True, False)) != _key_of(Part("auto", True, True))


def test_writes_are_rare_where_they_are_slow(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "INTERVAL", 1.0)
    monkeypatch.setattr(_checkpoint, "WRITING_SHARE", 0.05)
    written = []
    monkeypatch.setattr(_checkpoint, "write_whole", lambda path, content, **options: written.append(content))
    now = [0.0]
    monkeypatch.setattr(_checkpoint.time, "monotonic", lambda: now[0])
    kept = Checkpoint(tmp_path, "key")
    for step in range(100):
        now[0] = 0.1 * step
        kept.offer(Reached(1.0, (0, step), step))
    assert len(written) == 9
