"""The files of real data: what they hold, where they are looked for, and how damaged ones are refused."""

import os
import zipfile

import numpy as np
import pytest

from experiments.data import FILES, load
from experiments.data.files import MICE_CLASSES, PROTEINS, SIGNALS
from paper_files import mouse_table, small_arrays, write_small, write_table

MICE = "mice_protein.csv"


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Let every test here fail if anything is downloaded, and hide the user's own data."""
    monkeypatch.setattr("experiments.data.real.fetch", lambda *arguments: pytest.fail("a download nobody asked for"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STANDOUT_DATA", raising=False)


# What the real files hold.


def test_mice_have_the_stated_classes_and_gaps(data_dir):
    mice = load(MICE, data_dir)
    assert mice.X.shape == (1080, 77)
    assert dict(zip(*np.unique(mice.labels, return_counts=True), strict=True)) == MICE_CLASSES
    assert (np.nanmin(mice.X), np.nanmax(mice.X)) == pytest.approx((-0.062, 8.48), abs=5e-3)
    missing = np.isnan(mice.X).sum(axis=1)
    assert missing.sum() == 1396
    assert mice.details["mouse"][missing > 5].tolist() == ["3426_13", "3426_14", "3426_15"]
    assert set(mice.labels[missing > 5]) == {"t-SC-s"}


def test_mhealth_has_the_stated_rows_and_precision(data_dir):
    mhealth = load("mhealth.npz", data_dir)
    assert (mhealth.X.shape, mhealth.X.dtype) == ((62542, 23), np.float64)
    subjects, rows, precise = (mhealth.details[name] for name in ("subject", "row", "full_precision"))
    found = [[int(((subjects == s) & (mhealth.labels == a)).sum()) for a in (1, 3, 6, 7, 9)] for s in (1, 2, 3, 4)]
    assert found == [
        [3072, 3050, 3072, 3050, 3050],
        [3072, 3072, 3174, 3320, 3070],
        [3072, 3050, 3220, 3378, 3050],
        [3050, 3050, 3328, 3270, 3072],
    ]
    assert tuple(mhealth.details["columns"]) == SIGNALS
    assert np.flatnonzero(precise).tolist() == [0, 1, 2, 17, 18, 19]
    np.testing.assert_array_equal(mhealth.X[:, ~precise], np.trunc(mhealth.X[:, ~precise]))
    assert (np.diff(rows[(subjects == 1) & (mhealth.labels == 1)]) > 0).all()


def test_faces_show_each_person_under_each_light_once(data_dir):
    faces = load("yaleb.npz", data_dir)
    assert (faces.X.shape, faces.X.dtype) == ((640, 192, 168), np.uint8)
    azimuth, elevation = faces.details["azimuth"], faces.details["elevation"]
    lights = set(zip(azimuth[:64].tolist(), elevation[:64].tolist(), strict=True))
    assert len(lights) == 64
    for person in range(1, 11):
        own = faces.labels == person
        assert set(zip(azimuth[own].tolist(), elevation[own].tolist(), strict=True)) == lights
    # Light from one side brightens one half of the face, so that the angles belong to their images.
    brighter = faces.X[:, :, :84].mean(axis=(1, 2)) > faces.X[:, :, 84:].mean(axis=(1, 2))
    sideways = (np.abs(azimuth) >= 35) & (np.abs(elevation) <= 40)
    # 4 of these 340 images are too dark to tell.
    assert np.mean(brighter[sideways] == (azimuth[sideways] > 0)) > 0.98


def test_mnist_has_the_stated_digits(data_dir):
    mnist = load("mnist.npz", data_dir)
    assert mnist.X.shape == (60000, 28, 28)
    assert np.bincount(mnist.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    # A one has less ink than any other digit, a nought has none in the middle.
    ink = [mnist.X[mnist.labels == digit].mean() for digit in range(10)]
    middle = [mnist.X[mnist.labels == digit, 13:15, 13:15].mean() for digit in range(10)]
    assert (np.argmin(ink), np.argmin(middle)) == (1, 0)


@pytest.mark.parametrize(
    ("name", "n_train", "n_test"), [("cifar10_frogs.npz", 5000, 1000), ("cifar100_girls.npz", 500, 100)]
)
def test_photographs_are_those_for_training_and_then_those_for_tests(data_dir, name, n_train, n_test):
    photographs = load(name, data_dir)
    assert (photographs.X.shape, photographs.X.dtype) == ((n_train + n_test, 32, 32), np.uint8)
    np.testing.assert_array_equal(photographs.labels, np.repeat([0, 1], [n_train, n_test]))


# Where files are looked for.


@pytest.mark.parametrize("name", FILES)
def test_a_subset_of_the_rows_is_read_and_counted(name, tmp_path):
    write_small(tmp_path, name)
    data = load(name, tmp_path, download=True)
    assert len(data.X) == len(data.labels)
    assert f"{len(data.X)} of {FILES[name].n_rows} rows" in data.description
    assert repr(data) == f"Dataset(description={data.description!r})"


def test_the_folder_given_comes_before_the_variable_and_the_variable_before_downloads(tmp_path, monkeypatch):
    places = {1: tmp_path / "given", 2: tmp_path / "variable", 3: tmp_path / "cache" / "standout"}
    arrays = small_arrays("mnist.npz")
    for n, folder in places.items():
        folder.mkdir(parents=True)
        np.savez(folder / "mnist.npz", **{name: array[:n] for name, array in arrays.items()})
    monkeypatch.setenv("STANDOUT_DATA", str(places[2]))
    assert len(load("mnist.npz", str(places[1])).X) == 1
    assert len(load("mnist.npz").X) == 2
    (places[2] / "mnist.npz").unlink()
    assert len(load("mnist.npz").X) == 3
    monkeypatch.delenv("STANDOUT_DATA")
    assert len(load("mnist.npz").X) == 3


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_told_with_the_places_and_the_remedies(name, tmp_path, monkeypatch):
    monkeypatch.setenv("STANDOUT_DATA", str(tmp_path / "variable"))
    with pytest.raises(FileNotFoundError) as caught:
        load(name)
    for place in (name, tmp_path / "variable", tmp_path / "cache" / "standout"):
        assert str(place) in str(caught.value)
    assert all(array in str(caught.value) for array in FILES[name].arrays)
    # The faces cannot be downloaded, which is no error of its own.
    assert ("--download" in str(caught.value)) == (name != "yaleb.npz")
    with pytest.raises(FileNotFoundError, match=r"yaleb\.npz"):
        load("yaleb.npz", tmp_path / "nowhere", download=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="an administrator may read everything")
def test_a_folder_without_permission_is_one_without_the_file(tmp_path):
    write_small(tmp_path / "closed", "mnist.npz")
    (tmp_path / "closed").chmod(0)
    try:
        with pytest.raises(FileNotFoundError):
            load("mnist.npz", tmp_path / "closed")
    finally:
        (tmp_path / "closed").chmod(0o700)


# Damaged files.


def as_folder(path):
    path.unlink()
    path.mkdir()


def without_arrays(path):
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("images", "labels"):
            archive.writestr(f"{name}.npy", b"hello")


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "another kind of file": lambda path: path.write_bytes(b"\x93NUMPY and then something else"),
    "a byte changed": lambda path: path.write_bytes(path.read_bytes()[:2000] + b"~" + path.read_bytes()[2001:]),
    "no table of contents": lambda path: path.write_bytes(path.read_bytes().replace(b"PK\x01\x02", b"PK\x01\x03")),
    "a folder": as_folder,
    "members that are no arrays": without_arrays,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_archive_is_one_clear_error(tmp_path, damage):
    write_small(tmp_path, "mnist.npz")
    damage(tmp_path / "mnist.npz")
    with pytest.raises(ValueError, match=r"mnist\.npz cannot be used: reading it stopped with \w+: .*--download"):
        load("mnist.npz", tmp_path)


WRONG_ARRAYS = {
    "missing": (lambda a: {"images": a["images"]}, r"'labels' \(integer of shape \(n,\)\) is missing"),
    "rows": (lambda a: {**a, "labels": a["labels"][:4]}, r"'labels' has 4 rows, but 'images' has 24"),
    "shape": (
        lambda a: {**a, "images": a["images"][:, :27]},
        r"shape \(24, 27, 28\), but uint8 of shape \(n, 28, 28\)",
    ),
    "scalar": (lambda a: {**a, "labels": np.int64(3)}, r"'labels' is int64 of shape \(\)"),
    "dtype": (lambda a: {**a, "images": a["images"] / 255}, r"'images' is float64 of shape"),
    "text": (lambda a: {**a, "labels": a["labels"].astype(str)}, r"'labels' is <U\d+ of shape"),
    "limits": (lambda a: {**a, "labels": a["labels"] + 4}, r"'labels' has values from 10 to 13, but 0 to 9 are"),
    "no rows": (lambda a: {key: value[:0] for key, value in a.items()}, r"has 0 rows, but 1 to 60000 are expected"),
}


@pytest.mark.parametrize(("change", "what"), WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_a_file_with_the_wrong_arrays_is_refused(tmp_path, change, what):
    np.savez(tmp_path / "mnist.npz", **change(small_arrays("mnist.npz")))
    with pytest.raises(ValueError, match=rf"mnist\.npz cannot be used: .*{what}"):
        load("mnist.npz", tmp_path)


def test_pickled_objects_are_not_read(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a file ran code",))

    np.savez(tmp_path / "mnist.npz", **small_arrays("mnist.npz") | {"labels": np.array([Trap()] * 24, dtype=object)})
    with pytest.raises(ValueError, match=r"mnist\.npz cannot be used: reading it stopped with ValueError: Object"):
        load("mnist.npz", tmp_path)


def test_more_rows_than_the_dataset_has_are_refused(tmp_path):
    arrays = {name: np.repeat(array[:1], 601, axis=0) for name, array in small_arrays("cifar100_girls.npz").items()}
    np.savez(tmp_path / "cifar100_girls.npz", **arrays)
    with pytest.raises(ValueError, match=r"it has 601 rows, but 1 to 600 are expected"):
        load("cifar100_girls.npz", tmp_path)


def test_numbers_of_sensors_must_be_finite(tmp_path):
    arrays = small_arrays("mhealth.npz")
    arrays["X"][2, 3] = np.nan
    np.savez(tmp_path / "mhealth.npz", **arrays)
    with pytest.raises(ValueError, match=r"the array 'X' has NaN or infinity"):
        load("mhealth.npz", tmp_path)


def with_cell(rows, row, column, cell):
    return [*rows[:row], [*rows[row][:column], cell, *rows[row][column + 1 :]], *rows[row + 1 :]]


WRONG_TABLES = {
    "column": (lambda rows: [row[:3] + row[4:] for row in rows], "BDNF_N"),
    "twice": (lambda rows: with_cell(rows, 0, 2, "BDNF_N"), "BDNF_N"),
    "ragged": (lambda rows: [*rows[:2], rows[2][:70], *rows[3:]], "70"),
    "text": (lambda rows: with_cell(rows, 3, 5, "high"), "high"),
    "infinite": (lambda rows: with_cell(rows, 3, 5, "inf"), "infinite"),
    "class": (lambda rows: with_cell(rows, 1, 78, "t-S"), "'t-S', but only c-CS-m, c-CS-s"),
    "no rows": (lambda rows: rows[:1], "rows"),
    "nothing": (lambda rows: [], ""),
}


@pytest.mark.parametrize(("change", "what"), WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_a_wrong_table_is_refused(tmp_path, change, what):
    write_table(tmp_path / MICE, change(mouse_table()))
    with pytest.raises(ValueError, match=rf"mice_protein\.csv cannot be used: .*{what}"):
        load(MICE, tmp_path)


def test_a_table_that_is_no_text_or_cut_off_is_refused(tmp_path):
    path = tmp_path / MICE
    write_table(path, mouse_table())
    whole = path.read_bytes()
    for damaged in (whole[:-10], whole[:-4], b"\xff\xfe" + whole, b"\x00" * 100):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"mice_protein\.csv"):
            load(MICE, tmp_path)


def test_a_table_may_have_a_byte_order_mark_other_columns_in_any_order_and_gaps(tmp_path):
    rows = with_cell(mouse_table(), 2, 1, "")
    write_table(tmp_path / MICE, [[*row[::-1], "C/S"] for row in rows])
    (tmp_path / MICE).write_bytes(b"\xef\xbb\xbf" + (tmp_path / MICE).read_bytes().replace(b"C/S", b"Behavior", 1))
    mice = load(MICE, tmp_path)
    assert np.argwhere(np.isnan(mice.X)).tolist() == [[1, 0]]
    numbers = np.array([[float(cell or "nan") for cell in row[1:-1]] for row in rows[1:]])
    np.testing.assert_array_equal(mice.X, numbers)
    assert mice.details["mouse"].tolist() == [row[0] for row in rows[1:]]
    assert len(PROTEINS) == 77
