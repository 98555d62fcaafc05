"""Downloads of real data: verified, complete or not there at all. Nothing leaves this machine."""

import gzip
import hashlib
import http.server
import io
import sys
import tarfile
import threading
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.data import FILES, download, load
from experiments.data.files import MICE_CLASSES, PROTEINS, SIGNALS

pytest.importorskip("pooch")


@pytest.fixture(autouse=True)
def apart_from_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("STANDOUT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="module")
def server():
    """A server on this machine, and its pages: path to (announced length, content)."""
    pages = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path not in pages:
                self.send_error(404)
                return
            length, content = pages[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", pages
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def serve(server, monkeypatch):
    """Let one of the sources of `download` be a page of the server."""
    address, pages = server

    def add(source, content, length=None, digest=None):
        path = f"/{source}"
        pages[path] = (len(content) if length is None else length, content)
        digest = digest or hashlib.sha256(content).hexdigest()
        monkeypatch.setattr(download, source, (f"{address}{path}", digest))

    return add


def packed(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def photographs(rng, names, labels, label):
    """An archive of images of one colour each, after their labels, and the nearest grey of those with one label."""
    members, greys = {}, []
    for name in names:
        rows = labels[rng.permutation(len(labels))]
        colours = rng.integers(256, size=(len(rows), 3), dtype=np.uint8)
        members[name] = np.hstack([rows, np.repeat(colours, 1024, axis=1)]).tobytes()
        # Thousandths first: sums of rounded weights would miss some halves.
        greys.append(np.floor(colours[rows[:, -1] == label] @ np.array([299, 587, 114]) / 1000 + 0.5))
    return packed(members), np.concatenate(greys)


def girls(rng):
    # The coarse label comes first; one that is the number of the girls must not mislead.
    labels = np.repeat([[14, download.GIRL], [download.GIRL, 2]], [4, 3], axis=0).astype(np.uint8)
    return photographs(rng, [f"cifar-100-binary/{part}.bin" for part in ("train", "test")], labels, download.GIRL)


def test_girls_are_fetched_turned_grey_and_kept(tmp_path, serve, rng, monkeypatch):
    content, greys = girls(rng)
    serve("CIFAR_100", content)
    fetched = load("cifar100_girls.npz", download=True)
    np.testing.assert_array_equal(fetched.X[:, 0, 0], greys)
    np.testing.assert_array_equal(fetched.labels, np.repeat([0, 1], 4))
    assert [path.name for path in (tmp_path / "cache" / "standout").iterdir()] == ["cifar100_girls.npz"]
    # From now on it is there, and nothing is fetched.
    monkeypatch.setattr(download, "MAKERS", {})
    np.testing.assert_array_equal(load("cifar100_girls.npz", download=True).X, fetched.X)


def test_frogs_are_fetched_from_all_parts_into_the_folder_given(tmp_path, serve, rng):
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    labels = np.repeat([[download.FROG], [0]], [3, 2], axis=0).astype(np.uint8)
    content, greys = photographs(rng, [f"cifar-10-batches-bin/{name}.bin" for name in names], labels, download.FROG)
    serve("CIFAR_10", content)
    frogs = load("cifar10_frogs.npz", tmp_path / "new" / "folder", download=True)
    np.testing.assert_array_equal(frogs.X[:, 31, 31], greys)
    np.testing.assert_array_equal(frogs.labels, np.repeat([0, 1], [15, 3]))
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["cifar10_frogs.npz"]


def test_grey_is_the_nearest_and_rounds_halves_up():
    colours = np.array([[0, 0, 0], [255, 255, 255], [1, 2, 3], [0, 0, 250]], dtype=np.uint8)
    # The last two are 1.815 and 28.5.
    assert download.grey(colours[:, :, None]).ravel().tolist() == [0, 255, 2, 29]


def test_digits_are_fetched_with_their_labels(tmp_path, serve, rng):
    images, labels = rng.integers(256, size=(5, 28, 28), dtype=np.uint8), np.array([3, 1, 4, 1, 5], dtype=np.uint8)
    serve("MNIST_IMAGES", gzip.compress(bytes(16) + images.tobytes()))
    serve("MNIST_LABELS", gzip.compress(bytes(8) + labels.tobytes()))
    mnist = load("mnist.npz", tmp_path, download=True)
    np.testing.assert_array_equal(mnist.X, images)
    np.testing.assert_array_equal(mnist.labels, labels)


def test_mhealth_is_fetched_at_full_precision_with_its_rows(tmp_path, serve):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for subject in (1, 2, 3, 4):
            lines = [
                "\t".join([*(f"{subject + column / 100 + row / 1000:.5f}" for column in range(23)), str(label)])
                for row, label in enumerate([0, 1, 1, 2, 3, 6, 7, 9, 12])
            ]
            archive.writestr(f"MHEALTHDATASET/mHealth_subject{subject}.log", "\n".join(lines) + "\n")
    serve("UCI_319", stream.getvalue())
    mhealth = load("mhealth.npz", tmp_path, download=True)
    subjects, rows = mhealth.details["subject"], mhealth.details["row"]
    assert mhealth.labels.tolist() == [1, 1, 3, 6, 7, 9] * 4
    assert rows.tolist() == [1, 2, 4, 5, 6, 7] * 4
    assert subjects.tolist() == np.repeat([1, 2, 3, 4], 6).tolist()
    expected = subjects[:, None] + np.arange(23) / 100 + rows[:, None] / 1000
    np.testing.assert_allclose(mhealth.X, expected, rtol=1e-12)
    assert mhealth.details["full_precision"].all()
    assert tuple(mhealth.details["columns"]) == SIGNALS


@pytest.fixture
def openml(monkeypatch, rng):
    """The mice in the form in which scikit-learn gives them, with a missing value and in another order of columns."""
    labels = np.repeat(list(MICE_CLASSES), list(MICE_CLASSES.values()))
    table = SimpleNamespace(
        data=rng.standard_normal((1080, 77)),
        target=np.array([[f"{row}_1", label] for row, label in enumerate(labels)], dtype=object),
        feature_names=list(PROTEINS[::-1]),
    )
    table.data[5, 7] = np.nan
    monkeypatch.setattr(download, "fetch_openml", lambda **options: table)
    return table


def test_mice_are_fetched_to_the_last_digit(tmp_path, openml):
    mice = load("mice_protein.csv", tmp_path, download=True)
    np.testing.assert_array_equal(mice.X, openml.data[:, ::-1])
    np.testing.assert_array_equal(mice.details["mouse"], openml.target[:, 0])
    np.testing.assert_array_equal(mice.labels, openml.target[:, 1])


def test_other_mice_than_expected_are_refused(tmp_path, openml):
    openml.target = openml.target[:-1]
    with pytest.raises(OSError, match=r"mice_protein\.csv could not be downloaded.* 't-SC-s': 134.* Try again"):
        load("mice_protein.csv", tmp_path, download=True)
    openml.feature_names = ["NR9_N"]
    with pytest.raises(OSError, match=r"mice_protein\.csv could not be downloaded"):
        load("mice_protein.csv", tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


FAILURES = {
    "another content": ({"content": b"x" * 100, "digest": hashlib.sha256(b"y").hexdigest()}, "hash"),
    "a transfer that stops early": ({"content": b"x" * 100, "length": 1000}, ""),
    "no archive": ({"content": b"x" * 100}, "ReadError"),
    "an archive without the images": ({"content": packed({"other.bin": b""})}, "KeyError"),
    "images of another size": ({"content": packed({"cifar-100-binary/train.bin": b"x" * 99})}, "reshape"),
}


@pytest.mark.parametrize(("page", "what"), FAILURES.values(), ids=FAILURES)
def test_a_failed_download_is_one_clear_error_and_leaves_nothing_behind(tmp_path, serve, page, what):
    serve("CIFAR_100", **page)
    with pytest.raises(OSError, match=rf"cifar100_girls\.npz could not be downloaded to .*{what}.* Try again later"):
        load("cifar100_girls.npz", tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_a_page_or_server_that_is_not_there_is_one_clear_error(tmp_path, server, monkeypatch):
    for missing in (f"{server[0]}/nothing", "http://127.0.0.1:9/gone"):
        monkeypatch.setattr(download, "UCI_319", (missing, "0" * 64))
        with pytest.raises(OSError, match=r"mhealth\.npz could not be downloaded to .* Try again later"):
            load("mhealth.npz", tmp_path, download=True)
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"mnist\.npz could not be downloaded to .*file"):
        load("mnist.npz", tmp_path / "file", download=True)


def test_an_interruption_leaves_nothing_behind(tmp_path, monkeypatch):
    def stop(made):
        made.write_text("half of it")
        raise KeyboardInterrupt

    monkeypatch.setitem(download.MAKERS, "mnist.npz", stop)
    with pytest.raises(KeyboardInterrupt):
        load("mnist.npz", tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_missing_pooch_is_told_in_one_sentence_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="need the package 'pooch'. Install it with: pip install pooch, or"):
        load("mnist.npz", tmp_path, download=True)
    with pytest.raises(FileNotFoundError):
        load("mnist.npz")


def test_sources_are_encrypted_and_have_a_digest():
    for source in (
        download.CIFAR_10,
        download.CIFAR_100,
        download.UCI_319,
        download.MNIST_IMAGES,
        download.MNIST_LABELS,
    ):
        assert source[0].startswith("https://")
        assert len(bytes.fromhex(source[1])) == 32
    assert {name for name, file in FILES.items() if file.source} == set(download.MAKERS)
