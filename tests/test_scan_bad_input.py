"""Scans of what cannot be used: told with the file, the place in it, and what to do."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from scipy import sparse

from scanned_files import KINDS, WITHOUT_NAMES, D, annotated, datasets, table, write
from standout import DiscriminativePCA, scan

# A fixture, which pytest finds by its name.
__all__ = ["datasets"]


def refused(error, read, *arguments, **options):
    """The error says what to do; give it."""
    with pytest.raises(error) as caught:
        read(*arguments, **options)
    assert caught.value.advice
    return caught.value


def test_paths_that_stand_for_nothing(tmp_path):
    for nothing in (f"{tmp_path}/*.parquet", tmp_path, tmp_path / "absent.parquet"):
        refused(FileNotFoundError, scan, nothing)
    refused(ValueError, scan, [])
    refused(TypeError, scan, 3)


def test_files_of_several_kinds(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    (tmp_path / "b.csv").write_text("a,b\n1,2\n")
    assert refused(ValueError, scan, tmp_path).facts["kinds"] == "kinds 'csv', 'npy'"


def test_a_file_twice(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    assert "more than once" in str(refused(ValueError, scan, [tmp_path / "a.npy", f"{tmp_path}/*.npy"]))


@pytest.mark.parametrize("batch_rows", [0, -1, 1.5, True, "many"])
def test_batches_without_rows(tmp_path, batch_rows):
    np.save(tmp_path / "a.npy", np.eye(3))
    error = refused((ValueError, TypeError), scan, tmp_path, batch_rows=batch_rows)
    assert (error.parameter, error.value, error.limit) == ("batch_rows", batch_rows, 1)


def test_other_columns_are_named(tmp_path):
    parquet.write_table(table(np.eye(3), ["a", "b", "c"]), tmp_path / "0.parquet")
    parquet.write_table(table(np.eye(3), ["a", "b", "d"]), tmp_path / "1.parquet")
    facts = refused(ValueError, scan, tmp_path).facts
    assert facts["name"].endswith("1.parquet'")
    assert (facts["missing"], facts["extra"]) == ("column 'c'", "column 'd'")
    assert scan(tmp_path, columns=["a", "b"]).width == 2
    error = refused(ValueError, scan, tmp_path, columns=["a", "e"])
    assert (error.parameter, error.facts["names"]) == ("columns", ["e"])


def test_another_width(tmp_path):
    np.save(tmp_path / "0.npy", np.eye(3))
    np.save(tmp_path / "1.npy", np.eye(4))
    error = refused(ValueError, scan, tmp_path)
    assert (error.facts["width"], error.limit) == (4, 3)


def test_columns_of_target_and_background_in_another_order(tmp_path):
    parquet.write_table(table(np.eye(3), ["a", "b", "c"]), tmp_path / "0.parquet")
    parquet.write_table(table(np.eye(3), ["c", "b", "a"]), tmp_path / "1.parquet")
    target, background = (scan(tmp_path / f"{number}.parquet") for number in (0, 1))
    with pytest.raises(ValueError, match="background 1 has the columns of the target in another order"):
        DiscriminativePCA(1).fit(target, background=background)
    DiscriminativePCA(1).fit(target, background=scan(tmp_path / "1.parquet", columns=["a", "b", "c"]))


@pytest.mark.parametrize("kind", ["parquet", "csv", "npy", "h5ad sparse", "zarr 3", "mat"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_and_infinite_values_are_told_with_their_place(datasets, tmp_path, kind, value):
    rows = datasets[0].copy()
    rows[123, 4] = value
    folder = write([rows], tmp_path, kind, n_files=1)[0]
    facts = refused(ValueError, DiscriminativePCA().fit, scan(folder, batch_rows=50), background=datasets[1]).facts
    assert "part-0" in facts["name"]
    assert "the target" in facts["name"]
    assert (facts["column"], facts["row"]) == (repr("x4" if kind in WITHOUT_NAMES else "column 4"), 124)


def test_a_missing_value_is_told_with_the_ways_out(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n,3\n4,5\n")
    text = str(refused(ValueError, scan(tmp_path / "a.csv").rows))
    assert "a.csv': column 'a', row 2" in text
    assert all(f"missing='{way}'" in text for way in ("drop-rows", "drop-columns", "mean"))


def test_too_few_rows(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((1, 3)))
    (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n")
    for name in ("a.npy", "a.csv"):
        error = refused(ValueError, DiscriminativePCA(1).fit, scan(tmp_path / name), background=np.eye(3))
        assert (error.facts["n_rows"], error.limit) == (1, 2)
        assert "the target" in error.facts["name"]


def test_empty_files_between_others(tmp_path):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    parquet.write_table(table(rows, list("abc")), tmp_path / "0.parquet")
    parquet.write_table(table(rows[:0], list("abc")), tmp_path / "1.parquet")
    parquet.write_table(table(rows, list("abc")), tmp_path / "2.parquet")
    assert [part.shape[0] for part in scan(tmp_path).parts()] == [20, 20]
    error = refused(ValueError, DiscriminativePCA(1).fit, scan(tmp_path / "1.parquet"), background=rows)
    assert error.facts["n_rows"] == 0
    (tmp_path / "3.parquet").write_bytes(b"")
    assert "is empty" in str(refused(ValueError, scan, tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_ends_in_the_middle(datasets, tmp_path, kind):
    folder = write(datasets[:1], tmp_path, kind, n_files=1)[0]
    # A Zarr store is a folder: the largest file in it is a chunk.
    whole = max((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    content = whole.read_bytes()
    whole.write_bytes(content[: len(content) * 2 // 3])
    if kind in ("csv", "tsv"):
        # Rows that are missing at the end leave no trace; a row that is cut does.
        whole.write_bytes(content[: content.rindex(b"," if kind == "csv" else b"\t")])
    with pytest.raises(ValueError, match=r"part-0.* cannot be used"):
        DiscriminativePCA(1).fit(scan(folder), background=datasets[1])


@pytest.mark.parametrize("array", ["X/data", "X/indices", "X/indptr", "var/_index"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_a_chunk_that_ends_too_early(datasets, tmp_path, array, share):
    # The decoder of Blosc does not look where a chunk ends: cut chunks gave wrong rows, or by chance right ones.
    folder = write(datasets[:1], tmp_path, "zarr of anndata", n_files=1)[0]
    (chunk,) = (file for file in (folder / "part-0.zarr" / array).rglob("*") if file.name.isdigit())
    content = chunk.read_bytes()
    chunk.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"part-0\.zarr' cannot be used"):
        DiscriminativePCA(1).fit(scan(folder), background=datasets[1])


def test_a_page_that_is_damaged(datasets, tmp_path):
    parquet.write_table(table(datasets[0]), tmp_path / "0.parquet", use_dictionary=False, compression="gzip")
    content = bytearray((tmp_path / "0.parquet").read_bytes())
    content[2000:3000] = bytes(1000)
    (tmp_path / "0.parquet").write_bytes(content)
    found = scan(tmp_path)
    assert found.count_rows() == 530
    assert refused(ValueError, DiscriminativePCA(1).fit, found).facts["kind"] == "Parquet"


# Files that change.


def changed(read, *arguments, **options):
    with pytest.raises(ValueError, match="has changed since scan looked at it"):
        read(*arguments, **options)


def test_a_file_that_changes_or_goes_after_it_was_looked_at(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    found = scan(tmp_path)
    np.save(tmp_path / "a.npy", np.eye(4))
    changed(list, found.parts())
    (tmp_path / "a.npy").unlink()
    changed(list, found.parts())


@pytest.mark.parametrize("kind", ["npy", "csv", "parquet"])
def test_a_file_of_the_same_size_and_time_is_told_by_its_content(datasets, tmp_path, kind):
    extension, write_one = KINDS[kind]
    rows = datasets[0].round(2)
    for name in ("one", "other"):
        write_one(rows if name == "one" else rows[::-1], tmp_path / f"{name}{extension}")
    one, other = (tmp_path / f"{name}{extension}" for name in ("one", "other"))
    # Files of Parquet differ by a few bytes in length.
    if one.stat().st_size != other.stat().st_size:
        other.write_bytes(other.read_bytes().ljust(one.stat().st_size, b"\0")[: one.stat().st_size])
    found = scan(one)
    before = one.stat()
    other.replace(one)
    os.utime(one, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = one.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    changed(DiscriminativePCA(1).fit, found)


@pytest.mark.parametrize("kind", ["npy", "csv", "parquet", "h5ad", "zarr 3"])
@pytest.mark.parametrize("how", ["parts", "summed"])
def test_a_file_that_is_rewritten_during_a_pass_is_noticed(datasets, tmp_path, kind, how):
    folder = write(datasets[:1], tmp_path, kind, n_files=2)[0]
    found = scan(folder, batch_rows=20)
    victim = sorted(folder.iterdir())[0]

    def rewrite():
        file = victim if victim.is_file() else max(victim.rglob("*"), key=lambda f: f.is_file() and f.stat().st_size)
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        os.utime(file, ns=(0, 0))

    def pass_over():
        for number, _ in enumerate(found.parts()):
            if number == 3:
                rewrite()

    class Counted:
        def __init__(self, count):
            self.count = count

        def __add__(self, other):
            return Counted(self.count + other.count)

    def part(batch):
        if batch.start == 0:
            rewrite()
        return Counted(batch.n_rows)

    changed(*((pass_over,) if how == "parts" else (found.summed, part)))


def test_a_file_that_grows_shorter_while_it_is_read_has_changed(tmp_path, rng):
    path = tmp_path / "a.npy"
    np.save(path, rng.normal(size=(5000, 4)))

    def pass_over():
        for number, _ in enumerate(scan(path, batch_rows=100).parts()):
            if number == 2:
                np.save(path, np.ones((1, 4)))

    changed(pass_over)


# What a scan cannot give.


def test_what_needs_all_rows_at_once(tmp_path):
    rows = np.random.default_rng(0).normal(size=(50, 3))
    np.save(tmp_path / "a.npy", rows)
    found = scan(tmp_path)
    model = DiscriminativePCA(1).fit(found, background=rows)
    assert model.score(found, background=found) == pytest.approx(model.score(rows, background=rows))
    with pytest.raises(TypeError, match="tells rows apart by their labels"):
        DiscriminativePCA(1, target_label=1).fit(found, np.ones(50))
    with pytest.raises(TypeError, match="the target is read in parts"):
        DiscriminativePCA(1, test="permutation").fit(found, background=rows)


def test_a_matrix_by_columns(tmp_path, rng):
    annotated(sparse.csc_matrix(rng.normal(size=(20, D)))).write_h5ad(tmp_path / "a.h5ad")
    assert "CSC" in str(refused(ValueError, scan, tmp_path))


def test_an_extra_that_is_missing_is_one_sentence(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    script = f"""
        import standout._messages as messages
        found = messages.find_spec
        messages.find_spec = lambda name, *rest: None if name == "rich" else found(name, *rest)
        import standout
        try:
            list(standout.scan({str(tmp_path / "a.npy")!r}, progress=True).parts())
        except ImportError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert "'rich'" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_names_that_are_not_text_are_no_obstacle(datasets, tmp_path):
    if sys.platform in ("win32", "darwin"):
        pytest.skip("names of files are always text there")
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    for kind in ("parquet", "npy", "csv"):
        extension, write_one = KINDS[kind]
        write_one(datasets[0], tmp_path / f"a{extension}")
        (tmp_path / f"a{extension}").rename(folder / f"a{extension}")
        assert sum(part.shape[0] for part in scan(folder / f"a{extension}", batch_rows=50).parts()) == 530
