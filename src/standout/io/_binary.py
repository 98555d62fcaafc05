"""Readers of Parquet and Arrow tables, and of matrices in NumPy, MATLAB, AnnData and Zarr files."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from scipy import sparse

from standout._arrays import dense, is_sparse
from standout._messages import listed, require_extra, shown
from standout.io._files import Part, Reader, as_words, attempt, attempted, unusable
from standout.sources import Words
from standout.sources._form import arrow_kind, as_rows, known

# Each column of a Parquet file is read in pieces of this size. Reading ahead would need memory for a whole row group.
BUFFER_BYTES = 2**16
# Memory of Arrow's decoders: the first number is for one column, the second is the limit for all columns. For each
# column that it reads, Arrow holds a dictionary and a page. In files of most programs, each of the two has 1 MB.
DECODER_BYTES, DECODERS_BYTES = 2 * 2**20, 96 * 2**20
# Maximum size of arrays unpacked from a file: the first number, in bytes, or the second number times the file's size,
# if that is larger.
UNPACKED_BYTES, UNPACKED_TIMES = 256 * 2**20, 200
# Files with more columns are refused, because a damaged file of a few bytes can claim any number of columns.
MOST_COLUMNS = 10**7
# Types of the parts of a variable in a .mat file. 14 is a variable within a variable. 15, a compressed variable, is
# left out, because it is never within another variable.
MAT_PARTS = (1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 16, 17, 18)


class ArrowReader(Reader):
    """A Parquet or Arrow file. `kinds` has the kind of each column: numbers, dates, text or other."""

    def __post_init__(self) -> None:
        require_extra("pyarrow", "files", f"reading {self.kind} files")
        attempt(self.path, self.kind, self._look)
        if self.n_rows == 0:
            unusable(self.path, "it has columns but no rows", "Give a file with data.")

    def _look(self) -> None:
        """Read the schema and the number of rows."""
        with self.path.open("rb") as file:
            if self.kind == "parquet":
                import pyarrow.parquet as parquet

                with parquet.ParquetFile(file) as opened:
                    schema, self.n_rows = opened.schema_arrow, opened.metadata.num_rows
            else:
                schema = _ipc(file)[0]
                # An Arrow file does not store its number of rows. Count the rows of the first column.
                self.n_rows = sum(batch.num_rows for batch in _ipc(file, [0])[1])
        self.names, self.kinds = schema.names, [arrow_kind(one) for one in schema.types]
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        # An index of pandas with several levels is read as columns. An index that only numbers the rows is not in the
        # file.
        self.index = index[0] if len(index) == 1 and index[0] in self.names else None

    def batches(self, features: Sequence[int], words: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Read record batches of Arrow, whose columns are named by their positions in the file."""
        places = {self.names[place]: place for place in [*features, *map(self.names.index, words)] or [0]}
        needed = list(places)
        with self.path.open("rb") as file:
            if self.kind == "parquet":
                found = _parquet_batches(file, needed, n_rows)
            else:
                found = _ipc(file, sorted(places.values()))[1]
            for batch in found:
                # Check all offsets. With a forged offset, Arrow would read memory that does not belong to the file.
                batch.validate(full=True)
                # Keep only the needed columns. If "a" is needed, Parquet also reads a column "a.b", as if it were a
                # part of "a".
                named = batch.select(needed).rename_columns([str(place) for place in places.values()])
                yield from (named.slice(start, n_rows) for start in range(0, batch.num_rows, n_rows))
        if self.kind == "parquet":
            # Arrow would keep the memory of its decoders. Release this memory, because later stages of a fit need it.
            import_module("pyarrow").default_memory_pool().release_unused()


def _parquet_batches(file: Any, needed: list[str], n_rows: int) -> Iterator[Any]:
    """Read batches of rows, with the needed columns.

    To save memory, many columns are read in groups. Each group is written to a temporary file, and the files are
    joined.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    opened = parquet.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    groups = [opened.metadata.row_group(number) for number in range(opened.num_row_groups)]
    of_column = max(group.total_byte_size // group.num_columns for group in groups)
    step = DECODERS_BYTES // max(min(of_column, DECODER_BYTES), 1)
    if len(needed) <= step:
        yield from opened.iter_batches(n_rows, columns=needed, use_threads=len(needed) <= 1000)
        return
    for number in range(len(groups)):
        with ExitStack() as files:
            parts = []
            for start in range(0, len(needed), step):
                some = needed[start : start + step]
                spool = files.enter_context(TemporaryFile())
                with pa.ipc.new_stream(spool, pa.schema(map(opened.schema_arrow.field, some))) as writer:
                    for batch in opened.iter_batches(n_rows, [number], some, use_threads=step <= 1000):
                        writer.write_batch(batch.select(some))
                spool.seek(0)
                parts.append(pa.ipc.open_stream(spool))
            for together in zip(*parts, strict=True):
                yield pa.RecordBatch.from_arrays([column for part in together for column in part.columns], needed)


def _ipc(file: Any, fields: list[int] | None = None) -> tuple[Any, Iterator[Any]]:
    """Open an Arrow file or stream. Return its schema, and record batches with the columns `fields` (None for all)."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=fields)
    file.seek(0)
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    if not is_file:
        stream = pa.ipc.open_stream(file, options=options)
        return stream.schema, iter(stream)
    reader = pa.ipc.open_file(file, options=options)
    return reader.schema, map(reader.get_batch, range(reader.num_record_batches))


# --- matrices ---------------------------------------------------------------------------------------------------------


class MatrixReader(Reader):
    """A file with a matrix. It may also have names of the columns, and vectors with one value per row."""

    def __post_init__(self) -> None:
        with self._opened() as (matrix, names, vectors):
            shape = tuple(matrix.shape)
            if len(shape) != 2:
                problem = f"it holds an array of shape {shape}, but rows and columns are needed"
                unusable(self.path, problem, "Reshape it.")
            if not 0 < shape[1] <= MOST_COLUMNS or not shape[0]:
                problem = f"it has {shape[0]} rows and {shape[1]} columns"
                unusable(self.path, problem, f"Give a table with at least 1 row and at most {MOST_COLUMNS} columns.")
            self.n_rows, self.has_names = shape[0], names is not None
            self.names = [f"x{place}" for place in range(shape[1])] if names is None else names
            self.kinds = ["numbers"] * len(self.names)
            self.beside = tuple(name for name in vectors if name)
            self.index = "" if "" in vectors else None
        if len(self.names) != shape[1]:
            unusable(self.path, f"it names {len(self.names)} columns, but has {shape[1]}")

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, list[str] | None, dict[str, Any]]]:
        """Open the file; yield the matrix, the names of its columns, and vectors by name ("" has the names of rows)."""
        readers = {"npy": _npy, "npz": _npz, "mat": _mat, "h5ad": _annotated, "zarr": _annotated}
        with closing(readers[self.kind](self)) as opened:
            yield attempt(self.path, self.kind, lambda: next(opened))

    def parts(self, features: Sequence[int], words: Sequence[str], n_rows: int) -> Iterator[Part]:
        """Yield rows, and some vectors or columns for these rows as words."""
        with self._opened() as (matrix, _, vectors):
            said = attempt(self.path, self.kind, lambda: {name: self._vector(name, matrix, vectors) for name in words})
            every = list(features) == list(range(matrix.shape[1]))

            def part(start: int) -> Part:
                rows = matrix[start : start + n_rows]
                if is_sparse(rows):
                    # Check the indices. With indices out of range, SciPy would read and write outside of its arrays.
                    rows.check_format(full_check=True)
                rows = rows if every else rows[:, list(features)]
                rows = as_rows(rows, shown(self.path), finite=False) if features else np.zeros((rows.shape[0], 0))
                return rows, {name: values[start : start + n_rows] for name, values in said.items()}

            yield from attempted(self.path, self.kind, map(part, range(0, matrix.shape[0], n_rows)))

    def _vector(self, name: str, matrix: Any, vectors: dict[str, Any]) -> Words:
        if name not in vectors:
            place = self.names.index(name)
            return as_words(np.ravel(dense(matrix[:, place : place + 1])))
        if len(vectors[name]) != matrix.shape[0]:
            problem = f"it has {matrix.shape[0]} rows, but {len(vectors[name])} values in {name or 'obs_names'!r}"
            unusable(self.path, problem, "Write the file again, or choose another column.")
        return as_words(vectors[name])

    def choose(self, candidates: Sequence[str], names: Sequence[str]) -> str:
        """Choose an array of a file: the named one, or the only matrix."""
        if self.variable is not None:
            return str(known(self.variable, "variable", names, f"in {shown(self.path)}"))
        if len(candidates) != 1:
            there = listed("array", candidates) if candidates else "none"
            problem = f"it should hold one two-dimensional array of numbers, but it holds {there} (of {len(names)})"
            unusable(self.path, problem, "Name the one that is meant with `variable`.")
        return candidates[0]


Opened = Generator[tuple[Any, list[str] | None, dict[str, Any]]]


def _most_unpacked(path: Path) -> int:
    return max(UNPACKED_BYTES, UNPACKED_TIMES * path.stat().st_size)


def _npy(reader: MatrixReader) -> Opened:
    yield np.load(reader.path, mmap_mode="r", allow_pickle=False), None, {}


def _npz(reader: MatrixReader) -> Opened:
    # The file is opened here, because NumPy does not close a damaged archive.
    with reader.path.open("rb") as file:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        limit = _most_unpacked(reader.path)
        if unpacked > limit:
            unusable(reader.path, f"it would unpack to {unpacked:,} bytes, but the limit is {limit:,}", "Use .npy.")
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            if {"format", "shape", "data"} <= set(stored.files) and reader.variable is None:
                yield _by_rows(sparse.load_npz(reader.path)), None, {}
                return
            arrays = {name: stored[name] for name in stored.files}
        yield _of_arrays(reader, arrays)


def mat_arrays(path: Path) -> dict[str, Any]:
    """Read the arrays of a .mat file, after a check of its parts."""
    require_extra("pymatreader", "mat", "reading .mat files")
    from pymatreader import read_mat

    data = memoryview(path.read_bytes())
    order = {b"IM": "<", b"MI": ">"}.get(bytes(data[126:128]))
    # Other versions have no such parts: version 4 has no header and no types, and version 7.3 is HDF5.
    if order is not None and bytes(data[:10]) != b"MATLAB 7.3":
        _check_parts(data[128:], order, _most_unpacked(path), (14, 15))
    return read_mat(str(path))


def _mat(reader: MatrixReader) -> Opened:
    yield _of_arrays(reader, mat_arrays(reader.path))


def _of_arrays(reader: MatrixReader, arrays: dict[str, Any]) -> tuple[Any, None, dict[str, Any]]:
    """Choose the matrix among the arrays of a file.

    If several arrays may be meant, such as a matrix and a cube, and `variable` names none of them, raise an error.
    """
    found = {
        name: value if is_sparse(value) else np.asarray(value)
        for name, value in arrays.items()
        if not name.startswith("__")
    }
    numeric = {name: value for name, value in found.items() if value.dtype.kind in "biufc" and value.ndim >= 2}
    candidates = [name for name, value in numeric.items() if min(value.shape) > 1] or list(numeric)
    matrix = found[reader.choose(candidates, list(found))]
    vectors = {name: value for name, value in found.items() if value.ndim == 1 and len(value) == matrix.shape[0]}
    return (_by_rows(matrix) if is_sparse(matrix) else matrix), None, vectors


def _by_rows(matrix: Any) -> Any:
    """Check a sparse matrix of any format, and return it as CSR."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return sparse.csr_array(matrix)


def _check_parts(data: memoryview, order: str, limit: int, known: tuple[int, ...]) -> None:
    """Raise a ValueError if a part of a .mat file is of an unknown type, is missing, or ends after the data.

    SciPy looks up the type of each part in a table, without a check that the table has this type. One wrong byte can
    therefore end the whole process (https://github.com/scipy/scipy/pull/25829, open in SciPy 1.17).
    """
    parts, place = [], 0
    while place + 8 <= len(data):
        kind, size = struct.unpack(f"{order}II", data[place : place + 8])
        start, step = place + 8, 8 + (size if kind == 15 else -(-size // 8) * 8)
        if kind >> 16:  # a part of up to four bytes is stored within the tag; the upper half of `kind` is its size
            kind, size, start, step = kind & 0xFFFF, kind >> 16, place + 4, 8
        if kind not in known or start + size > len(data):
            raise ValueError(f"a part has the unknown type {kind}, or ends too late")
        parts.append((kind, data[start : start + size]))
        place += step
    if known is MAT_PARTS and parts:
        (flags,) = struct.unpack(f"{order}I", parts[0][1][:4])
        kind, is_complex = flags & 0xFF, bool(flags & 0x800)
        # A variable has four parts: flags, shape, name and numbers. A sparse variable has two more, a complex one has
        # one more.
        expected = 4 + 2 * (kind == 5) + is_complex
        if 4 <= kind <= 15 and (len(parts) != expected or any(inner == 14 for inner, _ in parts)):
            raise ValueError("a variable lacks a part, or has one too many")
    for kind, part in parts:
        if kind == 15:  # compressed
            unpacker = zlib.decompressobj()
            unpacked = memoryview(unpacker.decompress(part, limit))
            if unpacker.unconsumed_tail:
                raise ValueError(f"a variable would unpack to more than {limit:,} bytes")
            _check_parts(unpacked, order, limit, (14,))
        elif kind == 14:
            _check_parts(part, order, limit, MAT_PARTS)


# --- AnnData and Zarr -------------------------------------------------------------------------------------------------


def _annotated(reader: MatrixReader) -> Opened:
    """Open a matrix of an .h5ad file or of a Zarr store, with AnnData's names and vectors."""
    if reader.kind == "h5ad":
        require_extra("anndata", "h5ad", "reading .h5ad files")
        import h5py

        with h5py.File(reader.path, "r") as file:
            yield _of_group(reader, file)
        return
    require_extra("zarr", "zarr", "reading Zarr stores")
    import zarr

    store = zarr.open(str(reader.path), mode="r")
    _check_chunks(reader.path, store)
    yield (store, None, {}) if hasattr(store, "shape") else _of_group(reader, store)


def _check_chunks(path: Path, node: Any) -> None:
    """Refuse a store with a truncated chunk, because Blosc decodes such a chunk to wrong numbers (numcodecs 0.16)."""
    if not hasattr(node, "shape"):
        for _, part in node.members():
            _check_chunks(path, part)
    elif node.shards is None and any("blosc" in repr(one).lower() for one in node.compressors):
        chunks = [file for file in (path / node.path).rglob("*") if file.is_file() and "z" not in file.name]
        for file in chunks:
            with file.open("rb") as chunk:
                # The header of a chunk has its number of bytes.
                if int.from_bytes(chunk.read(16)[12:], "little") != file.stat().st_size:
                    raise ValueError(f"the chunk {file.relative_to(path)} has been cut")


def _of_group(reader: MatrixReader, group: Any) -> tuple[Any, list[str] | None, dict[str, Any]]:
    if "obs" not in group or "var" not in group:
        if reader.kind == "h5ad":
            unusable(reader.path, "it has no groups 'obs' and 'var'", "Write it with anndata 0.7 or newer.")
        arrays = {name: array for name, array in sorted(group.arrays()) if len(array.shape) == 2}
        return arrays[reader.choose(list(arrays), list(arrays))], None, {}
    require_extra("anndata", "h5ad", "reading AnnData")
    from anndata.io import read_elem

    matrices = {"X": ("X", "var")} if "X" in group else {}
    matrices |= {name: (f"layers/{name}", "var") for name in (group["layers"].keys() if "layers" in group else ())}
    matrices |= {"raw": ("raw/X", "raw/var")} if "raw/X" in group else {}
    matrix, var = matrices[reader.choose(["X"] if "X" in matrices else list(matrices), list(matrices))]
    obs = read_elem(group["obs"])
    vectors = {str(name): np.asarray(obs[name].astype(object)) for name in obs.columns}
    names = [str(name) for name in read_elem(group[var]).index]
    return _backed(group[matrix]), names, {"": np.asarray(obs.index, dtype=object), **vectors}


def _backed(node: Any) -> Any:
    """Return a matrix whose rows are read from the file a slice at a time. A CSC matrix is read whole.

    The pointers of a sparse matrix are checked first.
    """
    if hasattr(node, "shape"):
        return node
    from anndata.io import read_elem, sparse_dataset

    ends = np.asarray(node["indptr"][:])
    if ends[0] != 0 or ends[-1] != node["data"].shape[0] or (np.diff(ends.astype(np.int64)) < 0).any():
        raise ValueError("the places of the rows (indptr) are not in order")
    if str(node.attrs.get("encoding-type")) == "csc_matrix":
        return _by_rows(read_elem(node))
    return sparse_dataset(node)
