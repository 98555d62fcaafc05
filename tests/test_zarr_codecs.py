"""Zarr arrays whose chunks went through several codecs: whole ones are read, and cut ones are noticed."""

import numpy as np
import pytest

from standout.io import scan

zarr = pytest.importorskip("zarr", reason="Zarr is not installed")
codecs = pytest.importorskip("zarr.codecs", reason="Zarr is not installed")
numcodecs = pytest.importorskip("numcodecs", reason="numcodecs is not installed")

BLOSC = codecs.BloscCodec()
WAYS = {
    "Blosc": {"compressors": [BLOSC]},
    "Blosc, then gzip": {"compressors": [BLOSC, codecs.GzipCodec()]},
    "Blosc, then Zstandard": {"compressors": [BLOSC, codecs.ZstdCodec(checksum=True)]},
    "Blosc, then a checksum": {"compressors": [BLOSC, codecs.Crc32cCodec()]},
    "gzip, then Blosc": {"compressors": [codecs.GzipCodec(), BLOSC]},
    "version 2, Blosc": {"compressors": numcodecs.Blosc(), "zarr_format": 2},
    "version 2, Blosc as a filter": {"filters": [numcodecs.Blosc()], "compressors": None, "zarr_format": 2},
}


@pytest.fixture
def rows(rng):
    return rng.normal(size=(50, 4))


@pytest.mark.parametrize("way", WAYS)
def test_whole_chunks_are_read(tmp_path, rows, way):
    # What a codec after Blosc has written begins with other bytes, which state no length.
    zarr.create_array(str(tmp_path / "rows.zarr"), data=rows, chunks=(20, 3), **WAYS[way])
    np.testing.assert_array_equal(np.concatenate(list(scan(tmp_path / "rows.zarr").parts())), rows)


@pytest.mark.parametrize("way", WAYS)
def test_a_chunk_that_ends_too_early_is_refused(tmp_path, rows, way):
    zarr.create_array(str(tmp_path / "rows.zarr"), data=rows, chunks=(20, 3), **WAYS[way])
    chunk = max((file for file in tmp_path.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    chunk.write_bytes(chunk.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"rows\.zarr' cannot be used: reading it as zarr stopped"):
        list(scan(tmp_path / "rows.zarr").parts())
