"""The public sources of the real data, each turned into the file that its loader reads."""

import csv
import hashlib
import io
import struct
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from standout._validation import check_arrived, check_header, reject_download
from standout.datasets._download import TRY_AGAIN, Archive, appearing, fetch, fetch_table
from standout.datasets._layouts import MICE, MICE_CLASSES, MICE_WORDS, SIGNALS

Pixels = npt.NDArray[np.uint8]

# The first two digests go with the MD5 sums that the authors publish, c32a1d4ab5d03f1284b67883e8d87530 and
# 03b5dce01913d631647c71ecec9e9cb8. The binary versions: those for Python are pickles, which can run code.
CIFAR_10 = Archive(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
CIFAR_100 = Archive(
    "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
)
UCI_319 = Archive(
    "https://archive.ics.uci.edu/static/public/319/mhealth+dataset.zip",
    "16ad0ce709f3f00df18f348610d15bce0884b79e2143f57f446493673f02b8e0",
)
OPENML_MICE, OPENML_MNIST = 40966, 554

# MD5 of the original uncompressed training files, which have these headers.
_MNIST_IMAGES = (struct.pack(">4i", 2051, 60000, 28, 28), "6bbc9ace898e44ae57da46a324031adb")
_MNIST_LABELS = (struct.pack(">2i", 2049, 60000), "a25bea736e30d166cdddb491f175f624")

_FROG, _GIRL = 6, 35
_MHEALTH_SUBJECTS = (1, 2, 3, 4)
_MHEALTH_ACTIVITIES = (1, 3, 6, 7, 9)


def fetch_mice_protein(path: Path) -> None:
    """Write the mice of OpenML as a table, after a look at the columns and at the rows of each class."""
    source = f"OpenML (dataset {OPENML_MICE})"
    words = ["MouseID", *MICE_WORDS]
    with appearing(path) as draft:
        table = fetch_table(OPENML_MICE, words)
        names = [*table.feature_names, *words]
        check_header(names, MICE.columns, source, TRY_AGAIN)
        found = Counter(str(row[-1]) for row in table.target)
        check_arrived(dict(sorted(found.items())), MICE_CLASSES, "rows per class", source, TRY_AGAIN)
        order = [names.index(column) for column in MICE.columns]
        rows = [[*map(_cell, numbers), *rest] for numbers, rest in zip(table.data, table.target, strict=True)]
        with draft.open("w", newline="", encoding="utf-8") as text:
            writer = csv.writer(text)
            writer.writerow(MICE.columns)
            writer.writerows([row[place] for place in order] for row in rows)


def fetch_mnist(path: Path) -> None:
    """Write the training digits of OpenML, after comparing them with the original files."""
    source = f"OpenML (dataset {OPENML_MNIST})"
    with appearing(path) as draft:
        table = fetch_table(OPENML_MNIST)
        check_arrived(np.shape(table.data), (70000, 784), "the shape", source, TRY_AGAIN)
        # The training images come first, in their original order; the digests would tell if they did not.
        images = np.asarray(table.data[:60000]).astype(np.uint8).reshape(-1, 28, 28)
        labels = np.asarray(table.target[:60000]).astype(np.int64).astype(np.uint8)
        for array, (header, expected), what in ((images, _MNIST_IMAGES, "images"), (labels, _MNIST_LABELS, "labels")):
            digest = hashlib.md5(header + array.tobytes(), usedforsecurity=False).hexdigest()
            check_arrived(digest, expected, f"training {what} with the MD5", source, TRY_AGAIN)
        np.savez_compressed(draft, images=images, labels=labels)


def fetch_frogs(path: Path) -> None:
    """Write the frogs of CIFAR-10 in grey."""
    parts = [f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)]
    _fetch_photographs(path, CIFAR_10, parts, "cifar-10-batches-bin/test_batch.bin", 1, _FROG, (5000, 1000))


def fetch_girls(path: Path) -> None:
    """Write the girls of CIFAR-100 in grey, in the order of the release, which has no file names in this version."""
    # Two labels per image, a coarse and a fine one.
    _fetch_photographs(
        path, CIFAR_100, ["cifar-100-binary/train.bin"], "cifar-100-binary/test.bin", 2, _GIRL, (500, 100)
    )


def fetch_mhealth(path: Path) -> None:
    """Write four subjects and five activities of MHealth, every signal as precise as in the logs."""
    with appearing(path) as draft:
        zipped = draft.with_name("mhealth.zip")
        fetch(UCI_319, zipped)
        with _reading(UCI_319):
            logs = [_read_log(zipped, subject) for subject in _MHEALTH_SUBJECTS]
        for log in logs:
            check_arrived(log.shape[1], len(SIGNALS) + 1, "a number of columns of", UCI_319.url, TRY_AGAIN)
        chosen = [np.flatnonzero(np.isin(log[:, -1], _MHEALTH_ACTIVITIES)) for log in logs]
        kept = np.vstack([log[rows] for log, rows in zip(logs, chosen, strict=True)])
        np.savez_compressed(
            draft,
            X=kept[:, :-1],
            label=kept[:, -1].astype(np.int8),
            subject=np.repeat(_MHEALTH_SUBJECTS, [len(rows) for rows in chosen]).astype(np.int8),
            row=np.concatenate(chosen).astype(np.int32),
            columns=np.array(SIGNALS),
            full_precision=np.ones(len(SIGNALS), dtype=bool),
        )


def grey(colours: Pixels) -> Pixels:
    """Turn colours, red, green and blue along the second axis, into the nearest grey (ITU-R BT.601)."""
    red, green, blue = (colours[:, channel].astype(np.int32) for channel in range(3))
    # Whole numbers throughout: halves are rounded up, exactly.
    return ((299 * red + 587 * green + 114 * blue + 500) // 1000).astype(np.uint8)


def _fetch_photographs(
    path: Path, archive: Archive, parts: Sequence[str], test: str, n_labels: int, label: int, counts: tuple[int, int]
) -> None:
    """Write the images with one label, those for training first."""
    with appearing(path) as draft:
        packed = draft.with_name("packed.tar.gz")
        fetch(archive, packed)
        with _reading(archive):
            train = _read_photographs(packed, parts, n_labels, label)
            tests = _read_photographs(packed, [test], n_labels, label)
        found = (len(train), len(tests))
        check_arrived(found, counts, "numbers of training and test images of", archive.url, TRY_AGAIN)
        is_test = np.repeat([0, 1], counts).astype(np.uint8)
        np.savez_compressed(draft, images=np.concatenate([train, tests]), is_test=is_test)


def _read_photographs(packed: Path, names: Sequence[str], n_labels: int, label: int) -> Pixels:
    """Read the images of one class from files of records: labels, the finest last, then red, green, blue pixels."""
    found = []
    with tarfile.open(packed) as archive:
        for name in names:
            member = archive.extractfile(name)
            if member is None:
                raise KeyError(f"{name} is not a file")
            records = np.frombuffer(member.read(), dtype=np.uint8).reshape(-1, n_labels + 3 * 32 * 32)
            chosen = records[records[:, n_labels - 1] == label]
            found.append(grey(chosen[:, n_labels:].reshape(-1, 3, 32, 32)))
    return np.concatenate(found)


def _read_log(zipped: Path, subject: int) -> npt.NDArray[np.float64]:
    """Read the log of one subject: a line every 20 ms, 23 signals and the activity."""
    with (
        zipfile.ZipFile(zipped) as archive,
        archive.open(f"MHEALTHDATASET/mHealth_subject{subject}.log") as lines,
    ):
        return np.loadtxt(io.TextIOWrapper(lines, encoding="ascii"), ndmin=2)


@contextmanager
def _reading(archive: Archive) -> Iterator[None]:
    """Turn what a reader of archives may raise into one error; the digest was right, so this should not happen."""
    try:
        yield
    except (OSError, EOFError, KeyError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
        reject_download(archive.url, f"its content is not as expected, {type(error).__name__}: {error}", TRY_AGAIN)


def _cell(value: float) -> str:
    return "" if np.isnan(value) else repr(float(value))
