"""Writing columns: read as the very same, and either there as a whole or not at all."""

import os
import threading

import numpy as np
import pytest

from standout.io import csv_writer, read_table, write_csv


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.tsv.gz"])
def test_what_is_written_is_read_as_the_very_same(tmp_path, rng, name):
    numbers = rng.normal(size=50) * 10.0 ** rng.integers(-300, 300, 50)
    words = np.array(['a "quoted" one', "=1+1", "Länge\n<script>", "a\tb, c;d", ""] * 10, dtype=object)
    single = rng.normal(size=50).astype(np.float32)
    write_csv(tmp_path / name, {"words": words, "nu,mb\ners": numbers, "single": single, "counts": range(50)})
    table = read_table(tmp_path / name, label_column="words")
    assert table.columns == ["nu,mb\ners", "single", "counts"]
    np.testing.assert_array_equal(table.values[:, 0], numbers)
    np.testing.assert_array_equal(table.values[:, 1].astype(np.float32), single)
    assert table.labels.tolist() == words.tolist()
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith("gz")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_rows_can_be_written_batch_by_batch(tmp_path, rng):
    scores = rng.normal(size=(100, 2))
    names = np.array([f"row {number}" for number in range(100)], dtype=object)
    columns = {"id": names, "score 1": scores[:, 0], "score 2": scores[:, 1]}
    write_csv(tmp_path / "whole.csv.gz", columns)
    with csv_writer(tmp_path / "batches.csv.gz") as writer:
        for some in np.array_split(np.arange(100), 7):
            writer.append({name: column[some] for name, column in columns.items()})
        assert not (tmp_path / "batches.csv.gz").exists()
    one, other = (read_table(tmp_path / f"{name}.csv.gz", id_column="id") for name in ("whole", "batches"))
    np.testing.assert_array_equal(one.values, other.values)
    assert one.ids.tolist() == other.ids.tolist() == names.tolist()


def test_a_file_is_replaced_only_once_the_new_one_is_complete(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def failing(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("standout.io._write.CsvWriter.append", failing)
        with pytest.raises(OSError, match="cannot be written") as caught:
            write_csv(path, {"a": [1]})
    assert caught.value.facts["reason"] == "No space left on device"

    def interrupted():
        with csv_writer(path) as writer:
            writer.append({"a": [1]})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.csv"]
    write_csv(path, {"a": [1]})
    assert path.read_text() == '"a"\n1\n'


def test_a_link_stays_one(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "there" / "a.csv")
    write_csv(tmp_path / "link.csv", {"a": [1]})
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "there" / "a.csv").read_text() == '"a"\n1\n'


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_csv(pipe, {"a": [1.5]})
    reader.join()
    assert found == ['"a"\n1.5\n']
    assert pipe.is_fifo()


def test_columns_of_any_kind_are_written(tmp_path):
    mixed = np.array(["a", 1, None, 2.5], dtype=object)
    columns = {
        "mixed": mixed,
        "truth": [True, False, True, False],
        "gap": [1.5, np.nan, 2.0, 3.0],
        "words": list("abcd"),
    }
    write_csv(tmp_path / "a.csv", columns)
    table = read_table(tmp_path / "a.csv", id_column="mixed", label_column="words")
    assert table.ids.tolist() == ["a", "1", "", "2.5"]
    np.testing.assert_array_equal(table.values, [[1, 1.5], [0, np.nan], [1, 2], [0, 3]])


WRONG_COLUMNS = {
    "none": ({}, {}),
    "lengths": ({"a": [1, 2], "b": [1]}, {"name": "'b'", "shape": (1,)}),
    "matrix": ({"a": np.ones((2, 2))}, {"name": "'a'", "shape": (2, 2)}),
}


@pytest.mark.parametrize("case", WRONG_COLUMNS)
def test_what_is_no_table_is_not_written(tmp_path, case):
    columns, facts = WRONG_COLUMNS[case]
    with pytest.raises(ValueError, match="column") as caught:
        write_csv(tmp_path / "a.csv", columns)
    assert facts.items() <= caught.value.facts.items()
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_is_said_in_one_line(tmp_path):
    for path, reason in ((tmp_path / "missing" / "a.csv", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(OSError, match="cannot be written") as caught:
            write_csv(path, {"a": [1]})
        assert caught.value.facts["reason"] == reason
        assert "\n" not in str(caught.value)
