"""Downloads of real data: fetched when asked, verified, complete or not there at all. Nothing leaves this machine."""

import hashlib
import http.server
import io
import tarfile
import threading
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from standout.datasets import (
    _download,
    _files,
    _layouts,
    _sources,
    load_frogs,
    load_girls,
    load_mhealth,
    load_mice_protein,
    load_mnist,
)
from standout.datasets._download import Archive

GIRL, FROG = 35, 6


@pytest.fixture(autouse=True)
def apart_from_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("STANDOUT_DATA", raising=False)
    monkeypatch.setattr(_files, "_cache_root", lambda platform, environment: tmp_path / "cache")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def serve():
    """A server on this machine: paths to (announced length, content)."""
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
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def add(content, length=None):
        path = f"/{len(pages)}"
        pages[path] = (len(content) if length is None else length, content)
        return f"http://127.0.0.1:{server.server_port}{path}"

    yield add
    server.shutdown()
    thread.join()
    server.server_close()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def packed(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def records(labels, rng, width=3072):
    """Images of one colour each, after their labels."""
    colours = rng.integers(256, size=(len(labels), 3), dtype=np.uint8)
    return np.hstack([labels, np.repeat(colours, width // 3, axis=1)]), colours


def nearest_grey(colours):
    # Thousandths first: sums of rounded weights would miss some halves.
    return np.floor(colours @ np.array([299, 587, 114]) / 1000 + 0.5)


def girls_archive(rng, n_train=500, n_test=100, n_others=3, width=3072):
    """An archive like that of CIFAR-100, with some other images, and the grey of each girl."""
    members, greys = {}, []
    for name, count in (("train", n_train), ("test", n_test)):
        # The coarse label comes first; one that is the number of the girls must not mislead.
        labels = np.array([[14, GIRL]] * count + [[GIRL, 2]] * n_others, dtype=np.uint8)
        order = rng.permutation(len(labels))
        images, colours = records(labels[order], rng, width)
        members[f"cifar-100-binary/{name}.bin"] = images.tobytes()
        greys.append(nearest_grey(colours[labels[order, 1] == GIRL]))
    return packed(members), np.concatenate(greys)


def test_girls_are_fetched_turned_grey_and_kept(tmp_path, serve, monkeypatch, rng):
    content, greys = girls_archive(rng)
    monkeypatch.setattr(_sources, "CIFAR_100", Archive(serve(content), sha256(content)))
    girls = load_girls(download=True)
    assert girls.images.shape == (600, 32, 32)
    np.testing.assert_array_equal(girls.images[:, 0, 0], greys)
    np.testing.assert_array_equal(girls.is_test, np.repeat([False, True], [500, 100]))
    assert girls.filenames is None
    assert [path.name for path in (tmp_path / "cache" / "standout").iterdir()] == ["cifar100_girls.npz"]
    # From now on it is there, and nothing is fetched.
    monkeypatch.setattr(_download, "urlopen", None)
    np.testing.assert_array_equal(load_girls().images, girls.images)


def test_frogs_are_fetched_from_all_parts_into_the_folder_given(tmp_path, serve, monkeypatch, rng):
    members, greys = {}, []
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        labels = rng.permutation(np.repeat([FROG, 0], [1000, 5]).astype(np.uint8))[:, None]
        images, colours = records(labels, rng)
        members[f"cifar-10-batches-bin/{name}.bin"] = images.tobytes()
        greys.append(nearest_grey(colours[labels[:, 0] == FROG]))
    content = packed(members)
    monkeypatch.setattr(_sources, "CIFAR_10", Archive(serve(content), sha256(content)))
    frogs = load_frogs(tmp_path / "new" / "folder", download=True)
    np.testing.assert_array_equal(frogs.images[:, 31, 31], np.concatenate(greys))
    np.testing.assert_array_equal(frogs.is_test, np.repeat([False, True], [5000, 1000]))
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["cifar10_frogs.npz"]


def test_grey_is_the_nearest_and_rounds_halves_up():
    colours = np.array([[0, 0, 0], [255, 255, 255], [1, 2, 3], [0, 0, 250]], dtype=np.uint8)
    # The last two are 1.815 and 28.5.
    assert _sources.grey(colours[:, :, None]).ravel().tolist() == [0, 255, 2, 29]


def mhealth_zip(n_columns=24, subjects=(1, 2, 3, 4)):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for subject in subjects:
            lines = [
                "\t".join(
                    [*(f"{subject + column / 100 + row / 1000:.5f}" for column in range(n_columns - 1)), str(label)]
                )
                for row, label in enumerate([0, 1, 1, 2, 3, 6, 7, 9, 12])
            ]
            archive.writestr(f"MHEALTHDATASET/mHealth_subject{subject}.log", "\n".join(lines) + "\n")
        archive.writestr("MHEALTHDATASET/README.txt", "read me")
    return stream.getvalue()


def test_mhealth_is_fetched_at_full_precision_with_its_rows(tmp_path, serve, monkeypatch):
    content = mhealth_zip()
    monkeypatch.setattr(_sources, "UCI_319", Archive(serve(content), sha256(content)))
    mhealth = load_mhealth(tmp_path, download=True)
    assert mhealth.labels.tolist() == [1, 1, 3, 6, 7, 9] * 4
    assert mhealth.rows.tolist() == [1, 2, 4, 5, 6, 7] * 4
    assert mhealth.subjects.tolist() == np.repeat([1, 2, 3, 4], 6).tolist()
    expected = mhealth.subjects[:, None] + np.arange(23) / 100 + mhealth.rows[:, None] / 1000
    np.testing.assert_allclose(mhealth.X, expected, rtol=1e-12)
    assert mhealth.full_precision.all()
    assert tuple(mhealth.columns) == _layouts.SIGNALS


@pytest.mark.parametrize(
    ("content", "error", "what"),
    [
        (mhealth_zip(n_columns=23), ValueError, "has a number of columns of 23, but 24 is expected"),
        (mhealth_zip(subjects=(1, 2)), OSError, "its content is not as expected, KeyError"),
        (mhealth_zip()[:-30], OSError, "its content is not as expected, BadZipFile"),
        (b"no zip at all", OSError, "its content is not as expected, BadZipFile"),
    ],
)
def test_logs_that_are_not_as_expected_are_refused(tmp_path, serve, monkeypatch, content, error, what):
    monkeypatch.setattr(_sources, "UCI_319", Archive(serve(content), sha256(content)))
    with pytest.raises(error, match=what):
        load_mhealth(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sizes", "error", "what"),
    [
        ({"n_train": 499}, ValueError, r"training and test images of \(499, 100\), but \(500, 100\) is expected"),
        ({"width": 3069}, OSError, "its content is not as expected, ValueError: cannot reshape"),
    ],
)
def test_images_that_are_not_as_expected_are_refused(tmp_path, serve, monkeypatch, rng, sizes, error, what):
    content, _ = girls_archive(rng, **sizes)
    monkeypatch.setattr(_sources, "CIFAR_100", Archive(serve(content), sha256(content)))
    with pytest.raises(error, match=what):
        load_girls(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_a_transfer_that_stops_early_leaves_nothing_behind(tmp_path, serve, monkeypatch):
    monkeypatch.setattr(_sources, "CIFAR_100", Archive(serve(b"x" * 100, length=1000), sha256(b"x" * 1000)))
    # Versions of Python differ in who notices first.
    with pytest.raises((ValueError, OSError), match=r"a length in bytes of 100, but 1000 is expected|IncompleteRead"):
        load_girls(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_another_content_than_expected_is_refused(tmp_path, serve, monkeypatch, rng):
    content, _ = girls_archive(rng)
    wrong = content[:-1] + bytes([content[-1] ^ 1])
    monkeypatch.setattr(_sources, "CIFAR_100", Archive(serve(wrong), sha256(content)))
    with pytest.raises(ValueError, match=rf"has the SHA-256 {sha256(wrong)}, but {sha256(content)} is .* Try again"):
        load_girls(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_a_page_or_server_that_is_not_there_is_told_with_its_address(tmp_path, serve, monkeypatch):
    url = serve(b"")
    for missing in (url.replace("/0", "/1"), "http://127.0.0.1:9/gone", (tmp_path / "gone").as_uri()):
        monkeypatch.setattr(_sources, "CIFAR_100", Archive(missing, ""))
        with pytest.raises(OSError, match=rf"nothing could be fetched from {missing}: .* give its folder as data_dir"):
            load_girls(tmp_path, download=True)
        assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing_behind(tmp_path, monkeypatch):
    class Slow(io.BytesIO):
        def read(self, *arguments):
            if self.tell():
                raise KeyboardInterrupt
            return super().read(10)

    monkeypatch.setattr(_download, "urlopen", lambda url, timeout: Slow(b"x" * 100))
    with pytest.raises(KeyboardInterrupt):
        load_frogs(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_a_server_is_not_waited_for_without_end(tmp_path, monkeypatch):
    def silent(url, timeout):
        assert 0 < timeout <= 120
        raise TimeoutError("timed out")

    monkeypatch.setattr(_download, "urlopen", silent)
    with pytest.raises(OSError, match="TimeoutError: timed out"):
        load_mhealth(tmp_path, download=True)


def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_fetched(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for load in (load_mice_protein, load_mhealth, load_mnist, load_frogs, load_girls):
        with pytest.raises(OSError, match=r"file cannot be written to \(.*\)\. Give another one as data_dir"):
            load(tmp_path / "file", download=True)


def test_archives_come_over_a_safe_line_with_a_digest():
    for archive in (_sources.CIFAR_10, _sources.CIFAR_100, _sources.UCI_319):
        assert archive.url.startswith("https://")
        assert len(bytes.fromhex(archive.sha256)) == 32


# OpenML, through scikit-learn.


def openml_mice(rng):
    """1080 rows in the form in which scikit-learn gives them, some values missing."""
    labels = np.repeat(list(_layouts.MICE_CLASSES), list(_layouts.MICE_CLASSES.values()))
    X = rng.standard_normal((1080, 77))
    X[5, 7] = np.nan
    short = {"c": "Control", "t": "Ts65Dn", "CS": "C/S", "SC": "S/C", "m": "Memantine", "s": "Saline"}
    words = [
        [f"{row}_1", short[label.split("-")[0]], short[label.split("-")[2]], short[label.split("-")[1]], label]
        for row, label in enumerate(labels)
    ]
    return SimpleNamespace(data=X, target=np.array(words, dtype=object), feature_names=list(_layouts.PROTEINS))


def test_mice_are_fetched_to_the_last_digit(tmp_path, monkeypatch, rng):
    table, asked = openml_mice(rng), {}
    monkeypatch.setattr(_download, "fetch_openml", lambda **options: asked.update(options) or table)
    mice = load_mice_protein(tmp_path, download=True)
    np.testing.assert_array_equal(mice.X, table.data)
    np.testing.assert_array_equal(mice.mouse, table.target[:, 0])
    np.testing.assert_array_equal(mice.treatment, table.target[:, 2])
    np.testing.assert_array_equal(mice.labels, table.target[:, 4])
    assert asked["data_id"] == 40966
    assert asked["target_column"] == ["MouseID", "Genotype", "Treatment", "Behavior", "class"]
    assert asked["cache"] is False
    assert [path.name for path in tmp_path.iterdir()] == ["mice_protein.csv"]
    # From now on it is there, and nothing is fetched.
    monkeypatch.setattr(_download, "fetch_openml", None)
    np.testing.assert_array_equal(load_mice_protein(tmp_path, download=True).X, table.data)


def test_the_columns_of_a_download_may_come_in_another_order(tmp_path, monkeypatch, rng):
    table = openml_mice(rng)
    table.data, table.feature_names = table.data[:, ::-1], table.feature_names[::-1]
    monkeypatch.setattr(_download, "fetch_openml", lambda **options: table)
    np.testing.assert_array_equal(load_mice_protein(tmp_path, download=True).X, table.data[:, ::-1])


def test_mice_that_are_not_as_expected_are_refused(tmp_path, monkeypatch, rng):
    table = openml_mice(rng)
    monkeypatch.setattr(_download, "fetch_openml", lambda **options: table)
    table.feature_names[3] = "NR9_N"
    with pytest.raises(ValueError, match=r"OpenML \(dataset 40966\) cannot be used: it lacks column 'NR1_N' of 82"):
        load_mice_protein(tmp_path, download=True)
    table = openml_mice(rng)
    table.data, table.target = table.data[:-1], table.target[:-1]
    with pytest.raises(ValueError, match=r"has rows per class .*'t-SC-s': 134}, but .*'t-SC-s': 135} is expected"):
        load_mice_protein(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError("no route"), ValueError("md5 checksum"), KeyError("MouseID")])
def test_openml_out_of_reach_is_one_clear_error(tmp_path, monkeypatch, error):
    def fail(**options):
        raise error

    monkeypatch.setattr(_download, "fetch_openml", fail)
    for load in (load_mice_protein, load_mnist):
        with pytest.raises(OSError, match=rf"nothing could be fetched from OpenML .*{type(error).__name__}: .*Try"):
            load(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="session")
def openml_digits(data_dir):
    """MNIST as OpenML has it: the training images of the file, then 10,000 more, and labels as words."""
    with np.load(data_dir / "mnist.npz") as stored:
        data = np.zeros((70000, 784), dtype=np.uint8)
        data[:60000] = stored["images"].reshape(60000, -1)
        target = np.append(stored["labels"], np.zeros(10000, np.uint8)).astype(str).astype(object)
    return SimpleNamespace(data=data, target=target)


def test_the_training_digits_are_fetched_and_known_by_the_original_digests(
    tmp_path, monkeypatch, data_dir, openml_digits
):
    monkeypatch.setattr(_download, "fetch_openml", lambda **options: openml_digits)
    # Compressing takes most of the time, and is not what is tested.
    monkeypatch.setattr(np, "savez_compressed", np.savez)
    fetched, kept = load_mnist(tmp_path, download=True), load_mnist(data_dir)
    np.testing.assert_array_equal(fetched.images, kept.images)
    np.testing.assert_array_equal(fetched.labels, kept.labels)


def test_other_digits_than_the_original_ones_are_refused(tmp_path, monkeypatch, openml_digits):
    images, target = openml_digits.data.copy(), openml_digits.target.copy()
    images[[0, 1]] = images[[1, 0]]
    target[[0, 1]] = target[[1, 0]]
    for table, what in (
        (SimpleNamespace(data=images, target=openml_digits.target), "training images with the MD5"),
        (SimpleNamespace(data=openml_digits.data, target=target), "training labels with the MD5"),
    ):
        monkeypatch.setattr(_download, "fetch_openml", lambda table=table, **options: table)
        with pytest.raises(ValueError, match=what):
            load_mnist(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_digits_of_another_shape_are_refused(tmp_path, monkeypatch):
    table = SimpleNamespace(data=np.zeros((10, 784)), target=np.zeros(10))
    monkeypatch.setattr(_download, "fetch_openml", lambda **options: table)
    with pytest.raises(ValueError, match=r"has the shape \(10, 784\), but \(70000, 784\) is expected"):
        load_mnist(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []
