"""Fetching files: complete and verified under their name, or not there at all."""

import hashlib
import importlib.util
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

from sklearn.datasets import fetch_openml

from standout._validation import check_arrived, reject_download, reject_folder

# Seconds without a sign of life from a server.
_PATIENCE = 60.0

TRY_AGAIN = "Try again later, or get the file by other means and give its folder as data_dir."


@dataclass(frozen=True)
class Archive:
    """A file on the web, and the digest by which it is known."""

    url: str
    sha256: str


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Give a place to write a file to; it appears under its own name when it is complete.

    Whatever is written beside it is scratch. An error or an interruption leaves nothing behind.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder, so that renaming is a single step that cannot be seen half done.
        scratch = TemporaryDirectory(prefix=".download-", dir=path.parent)
    except OSError as error:
        reject_folder(path.parent, str(error.strerror))
    with scratch as folder:
        draft = Path(folder) / path.name
        yield draft
        os.replace(draft, path)


def fetch(archive: Archive, path: Path) -> None:
    """Copy a file from the web and check that it is the one expected."""
    try:
        with urlopen(archive.url, timeout=_PATIENCE) as response, path.open("wb") as file:
            shutil.copyfileobj(response, file)
            announced = response.headers.get("Content-Length")
    except (OSError, HTTPException) as error:
        reject_download(archive.url, f"{type(error).__name__}: {error}", TRY_AGAIN)
    if announced is not None:
        check_arrived(path.stat().st_size, int(announced), "a length in bytes of", archive.url, TRY_AGAIN)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    check_arrived(digest, archive.sha256, "the SHA-256", archive.url, TRY_AGAIN)


def fetch_table(data_id: int, target_column: str | list[str] = "default-target") -> Any:
    """Fetch a dataset from OpenML as arrays; scikit-learn compares it with OpenML's own checksum."""
    source = f"OpenML (dataset {data_id})"
    # Much the faster parser, but an optional package; nothing is kept, because the loaders keep a file of their own.
    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    with warnings.catch_warnings():
        # Columns that OpenML does not count as data are asked for on purpose.
        warnings.filterwarnings("ignore", message="target_column=")
        try:
            return fetch_openml(
                data_id=data_id, target_column=target_column, as_frame=False, parser=parser, cache=False
            )
        # All that a server out of reach, a damaged transfer or a changed dataset make of it.
        except (OSError, HTTPException, EOFError, ValueError, KeyError) as error:
            reject_download(source, f"{type(error).__name__}: {error}", TRY_AGAIN)
