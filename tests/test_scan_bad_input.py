"""Scans of what cannot be used: told with the file, the place in it, and what to do."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy import sparse

from scanned_files import KINDS, D, annotated, datasets, table, write
from standout import DiscriminativePCA, scan

# A fixture, which pytest finds by its name.
__all__ = ["datasets"]


class TestBadInput:
    def test_paths_that_stand_for_nothing(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no file matches .*Check the folder"):
            scan(f"{tmp_path}/*.parquet")
        with pytest.raises(FileNotFoundError, match="has no file with an extension that is known"):
            scan(tmp_path)
        with pytest.raises(FileNotFoundError, match="there is no file"):
            scan(tmp_path / "absent.parquet")
        with pytest.raises(ValueError, match="empty list"):
            scan([])
        with pytest.raises(TypeError, match="paths has 3, which is not the name of a file"):
            scan(3)
        (tmp_path / "a.xyz").write_text("1")
        with pytest.raises(ValueError, match="no extension that is known"):
            scan(tmp_path / "a.xyz")

    def test_files_of_several_kinds_and_those_that_cannot_be_scanned(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        (tmp_path / "b.csv").write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match="more than one kind"):
            scan(tmp_path)
        np.savez(tmp_path / "c.npz", a=np.eye(3))
        with pytest.raises(ValueError, match="'npz', which cannot be read in parts"):
            scan(tmp_path / "c.npz")
        with pytest.raises(ValueError, match="format='mat' is unknown"):
            scan(tmp_path / "a.npy", format="mat")

    def test_a_file_twice(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        with pytest.raises(ValueError, match="more than once, and would be counted so"):
            scan([tmp_path / "a.npy", f"{tmp_path}/*.npy"])

    @pytest.mark.parametrize("batch_rows", [0, -1, 1.5, True, "many"])
    def test_batches_without_rows(self, tmp_path, batch_rows):
        np.save(tmp_path / "a.npy", np.eye(3))
        with pytest.raises((ValueError, TypeError), match="batch_rows=.* (is less than 1|is not a whole number). Give"):
            scan(tmp_path, batch_rows=batch_rows)

    def test_other_columns_are_named(self, tmp_path):
        parquet.write_table(table(np.eye(3), ["a", "b", "c"]), tmp_path / "0.parquet")
        parquet.write_table(table(np.eye(3), ["a", "b", "d"]), tmp_path / "1.parquet")
        with pytest.raises(
            ValueError, match=r"1.parquet' lacks column 'c' of the first file, .*0.parquet' and has column 'd'"
        ):
            scan(tmp_path)
        assert scan(tmp_path, columns=["a", "b"]).width == 2
        with pytest.raises(ValueError, match="columns names column 'e', but no column"):
            scan(tmp_path, columns=["a", "e"])

    def test_another_width(self, tmp_path):
        np.save(tmp_path / "0.npy", np.eye(3))
        np.save(tmp_path / "1.npy", np.eye(4))
        with pytest.raises(ValueError, match=r"1.npy' has 4 columns, but the first file, .*0.npy', has 3"):
            scan(tmp_path)

    def test_columns_of_target_and_background_in_another_order(self, tmp_path):
        parquet.write_table(table(np.eye(3), ["a", "b", "c"]), tmp_path / "0.parquet")
        parquet.write_table(table(np.eye(3), ["c", "b", "a"]), tmp_path / "1.parquet")
        target, background = (scan(tmp_path / f"{number}.parquet") for number in (0, 1))
        with pytest.raises(ValueError, match="background 1 has the columns of the target in another order"):
            DiscriminativePCA(1).fit(target, background=background)
        DiscriminativePCA(1).fit(target, background=scan(tmp_path / "1.parquet", columns=["a", "b", "c"]))

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_text(self, tmp_path, kind):
        words = pa.table({"a": ["x", "y"], "b": [1.0, 2.0]})
        (parquet.write_table if kind == "parquet" else csv.write_csv)(words, tmp_path / f"0.{kind}")
        with pytest.raises(ValueError, match="there (are words|is text) in column 'a'"):
            scan(tmp_path)

    @pytest.mark.parametrize("kind", ["parquet", "csv", "npy", "h5ad sparse", "zarr 3"])
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_missing_and_infinite_values_are_told_with_their_place(self, datasets, tmp_path, kind, value):
        rows = datasets[0].copy()
        rows[123, 4] = value
        folder = write([rows], tmp_path, kind, n_files=1)[0]
        column = "x4" if kind in ("npy", "zarr 3") else "column 4"
        with pytest.raises(ValueError, match=rf"part-0.*\(the target\): (nan|inf) in column '{column}', row 124\."):
            DiscriminativePCA().fit(scan(folder, batch_rows=50), background=datasets[1])

    def test_too_few_rows(self, tmp_path):
        np.save(tmp_path / "a.npy", np.ones((1, 3)))
        (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n")
        for name in ("a.npy", "a.csv"):
            with pytest.raises(ValueError, match=r"too few rows in the target: 1 sample\(s\) in 1 file\(s\)"):
                DiscriminativePCA(1).fit(scan(tmp_path / name), background=np.eye(3))

    def test_empty_files_between_others(self, tmp_path):
        rows = np.random.default_rng(0).normal(size=(20, 3))
        parquet.write_table(table(rows, list("abc")), tmp_path / "0.parquet")
        parquet.write_table(table(rows[:0], list("abc")), tmp_path / "1.parquet")
        parquet.write_table(table(rows, list("abc")), tmp_path / "2.parquet")
        assert [part.shape[0] for part in scan(tmp_path).parts()] == [20, 20]
        with pytest.raises(ValueError, match="too few rows in the target: 0"):
            DiscriminativePCA(1).fit(scan(tmp_path / "1.parquet"), background=rows)
        (tmp_path / "3.parquet").write_bytes(b"")
        with pytest.raises(ValueError, match="it is empty"):
            scan(tmp_path)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_file_that_ends_in_the_middle(self, datasets, tmp_path, kind):
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
    def test_a_chunk_that_ends_too_early(self, datasets, tmp_path, array, share):
        # The decoder of Blosc does not look where a chunk ends: cut chunks gave wrong rows, or by chance right ones.
        folder = write(datasets[:1], tmp_path, "zarr of anndata", n_files=1)[0]
        (chunk,) = (file for file in (folder / "part-0.zarr" / array).rglob("*") if file.name.isdigit())
        content = chunk.read_bytes()
        left = int(share * len(content))
        chunk.write_bytes(content[:left])
        with pytest.raises(ValueError, match=rf"'{array}/.*' ends after {left:,} of "):
            DiscriminativePCA(1).fit(scan(folder), background=datasets[1])

    def test_a_page_that_is_damaged(self, datasets, tmp_path):
        parquet.write_table(table(datasets[0]), tmp_path / "0.parquet", use_dictionary=False, compression="gzip")
        content = bytearray((tmp_path / "0.parquet").read_bytes())
        content[2000:3000] = bytes(1000)
        (tmp_path / "0.parquet").write_bytes(content)
        found = scan(tmp_path)
        with pytest.raises(ValueError, match=r"0.parquet' cannot be used: reading it as Parquet stopped"):
            found.count_rows() and DiscriminativePCA(1).fit(found, background=datasets[1])

    def test_a_file_that_changes_or_goes_after_it_was_looked_at(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        found = scan(tmp_path)
        np.save(tmp_path / "a.npy", np.eye(4))
        with pytest.raises(ValueError, match="has changed since scan looked at it. Call scan again"):
            list(found.parts())
        (tmp_path / "a.npy").unlink()
        with pytest.raises(ValueError, match="has changed since scan looked at it"):
            list(found.parts())

    def test_what_needs_all_rows_at_once(self, tmp_path):
        rows = np.random.default_rng(0).normal(size=(50, 3))
        np.save(tmp_path / "a.npy", rows)
        found = scan(tmp_path)
        model = DiscriminativePCA(1).fit(found, background=rows)
        assert model.score(found, background=found) == pytest.approx(model.score(rows, background=rows))
        with pytest.raises(TypeError, match="tells rows apart by their labels, but the data is read in parts"):
            DiscriminativePCA(1, target_label=1).fit(found, np.ones(50))
        with pytest.raises(TypeError, match="the target is given as Scan, but test='permutation' needs its rows"):
            DiscriminativePCA(1, test="permutation").fit(found, background=rows)

    def test_a_matrix_by_columns(self, tmp_path, rng):
        annotated(sparse.csc_matrix(rng.normal(size=(20, D)))).write_h5ad(tmp_path / "a.h5ad")
        with pytest.raises(ValueError, match=r"stored by columns \(CSC\)"):
            scan(tmp_path)

    def test_an_extra_that_is_missing_is_one_sentence(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        script = f"""
            import importlib.util, sys
            found = importlib.util.find_spec
            importlib.util.find_spec = lambda name, *rest: None if name in ("rich", "zarr") else found(name, *rest)
            import standout._validation._extras as extras
            extras.find_spec = importlib.util.find_spec
            import standout
            try:
                list(standout.scan({str(tmp_path / "a.npy")!r}, progress=True).parts())
            except ImportError as error:
                print(error)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == (
            "a progress bar needs the package 'rich'. Install it with: pip install rich, or with all others of "
            "standout's extra 'progress'."
        )
