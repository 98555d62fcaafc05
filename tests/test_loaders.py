"""The loaders of real data: what the files hold, where they are looked for, and what is said of a damaged one."""

import csv
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from standout.datasets import (
    _download,
    _files,
    _layouts,
    load_frogs,
    load_girls,
    load_mhealth,
    load_mice_protein,
    load_mnist,
    load_yale_faces,
)

LOADERS = {
    load_mice_protein: "mice_protein.csv",
    load_mhealth: "mhealth.npz",
    load_yale_faces: "yaleb.npz",
    load_mnist: "mnist.npz",
    load_frogs: "cifar10_frogs.npz",
    load_girls: "cifar100_girls.npz",
}
each_loader = pytest.mark.parametrize(
    ("load", "name"), LOADERS.items(), ids=lambda value: getattr(value, "__name__", "")
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Every test here fails if anything is fetched; the cache folder of the user is out of sight."""

    def unasked(*arguments, **options):
        pytest.fail("something was fetched that nobody asked for")

    monkeypatch.setattr(_download, "urlopen", unasked)
    monkeypatch.setattr(_download, "fetch_openml", unasked)
    monkeypatch.setattr(_files, "_cache_root", lambda platform, environment: tmp_path / "cache")
    monkeypatch.delenv("STANDOUT_DATA", raising=False)


def small_arrays(name, n=5):
    """A file with a few rows, all right."""
    numbers = np.arange(n)
    return {
        "mnist.npz": {"images": np.zeros((n, 28, 28), np.uint8), "labels": numbers.astype(np.uint8)},
        "cifar10_frogs.npz": {"images": np.zeros((n, 32, 32), np.uint8), "is_test": np.zeros(n, np.uint8)},
        "cifar100_girls.npz": {"images": np.zeros((n, 32, 32), np.uint8), "is_test": np.ones(n, np.uint8)},
        "yaleb.npz": {
            "images": np.zeros((n, 192, 168), np.uint8),
            **{key: (numbers + 1).astype(np.int16) for key in ("person", "azimuth", "elevation")},
        },
        "mhealth.npz": {
            "X": np.ones((n, 23), np.float32),
            "label": np.ones(n, np.int8),
            "subject": np.ones(n, np.int8),
            "row": numbers.astype(np.int32),
            "columns": np.array(_layouts.SIGNALS),
            "full_precision": np.zeros(23, bool),
        },
    }[name]


def mouse_rows(n=5):
    header = ["MouseID", *_layouts.PROTEINS, "Genotype", "Treatment", "Behavior", "class"]
    return [header, *([f"1_{i}", *["0.5"] * 77, "Ts65Dn", "Saline", "S/C", "t-SC-s"] for i in range(n))]


def write_table(folder, rows):
    with (folder / "mice_protein.csv").open("w", newline="") as text:
        csv.writer(text).writerows(rows)


def write_small(folder, name, n=5):
    folder.mkdir(parents=True, exist_ok=True)
    if name.endswith(".csv"):
        write_table(folder, mouse_rows(n))
    else:
        np.savez_compressed(folder / name, **small_arrays(name, n))


# What the real files hold.


def test_mice_have_the_stated_classes_and_gaps(data_dir):
    mice = load_mice_protein(data_dir)
    assert mice.X.shape == (1080, 77)
    assert mice.X.dtype == np.float64
    assert dict(zip(*np.unique(mice.labels, return_counts=True), strict=True)) == _layouts.MICE_CLASSES
    assert np.nanmin(mice.X) == pytest.approx(-0.062, abs=5e-4)
    assert np.nanmax(mice.X) == pytest.approx(8.48, abs=5e-3)
    missing = np.isnan(mice.X).sum(axis=1)
    assert missing.sum() == 1396
    assert mice.mouse[missing > 5].tolist() == ["3426_13", "3426_14", "3426_15"]
    assert set(mice.labels[missing > 5]) == {"t-SC-s"}
    assert np.unique([name.rsplit("_", 1)[0] for name in mice.mouse]).size == 72


def test_the_words_of_a_mouse_agree_with_its_class(data_dir):
    mice = load_mice_protein(data_dir)
    short = {"Control": "c", "Ts65Dn": "t", "C/S": "CS", "S/C": "SC", "Memantine": "m", "Saline": "s"}
    words = zip(mice.genotype, mice.behavior, mice.treatment, strict=True)
    assert ["-".join(short[word] for word in row) for row in words] == mice.labels.tolist()


def test_mhealth_has_the_stated_rows_and_precision(data_dir):
    mhealth = load_mhealth(data_dir)
    assert mhealth.X.shape == (62542, 23)
    assert mhealth.X.dtype == np.float64
    table = [[3072, 3050, 3072, 3050, 3050], [3072, 3072, 3174, 3320, 3070]]
    table += [[3072, 3050, 3220, 3378, 3050], [3050, 3050, 3328, 3270, 3072]]
    found = [
        [int(((mhealth.subjects == subject) & (mhealth.labels == label)).sum()) for label in (1, 3, 6, 7, 9)]
        for subject in (1, 2, 3, 4)
    ]
    assert found == table
    assert tuple(mhealth.columns) == _layouts.SIGNALS
    assert np.flatnonzero(mhealth.full_precision).tolist() == [0, 1, 2, 17, 18, 19]
    truncated = mhealth.X[:, ~mhealth.full_precision]
    np.testing.assert_array_equal(truncated, np.trunc(truncated))
    assert not mhealth.X[:, 8:11].any()
    for subject in (1, 2, 3, 4):
        assert (np.diff(mhealth.rows[(mhealth.subjects == subject) & (mhealth.labels == 1)]) > 0).all()


def test_faces_show_each_person_under_each_light_once(data_dir):
    faces = load_yale_faces(data_dir)
    assert faces.images.shape == (640, 192, 168)
    assert faces.images.dtype == np.uint8
    assert np.unique(faces.person, return_counts=True)[1].tolist() == [64] * 10
    lights = set(zip(faces.azimuth[:64].tolist(), faces.elevation[:64].tolist(), strict=True))
    assert len(lights) == 64
    last = faces.person == 10
    assert set(zip(faces.azimuth[last].tolist(), faces.elevation[last].tolist(), strict=True)) == lights
    # Light from one side brightens one half of the face, so that the angles belong to their images.
    brighter = faces.images[:, :, :84].mean(axis=(1, 2)) > faces.images[:, :, 84:].mean(axis=(1, 2))
    sideways = (np.abs(faces.azimuth) >= 35) & (np.abs(faces.elevation) <= 40)
    # 4 of these 340 images are too dark to tell.
    assert np.mean(brighter[sideways] == (faces.azimuth[sideways] > 0)) > 0.98


def test_mnist_has_the_stated_digits(data_dir):
    mnist = load_mnist(data_dir)
    assert mnist.images.shape == (60000, 28, 28)
    assert (mnist.images.min(), mnist.images.max()) == (0, 255)
    assert np.bincount(mnist.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    # A one has less ink than any other digit, a nought has none in the middle.
    ink = np.array([mnist.images[mnist.labels == digit].mean() for digit in range(10)])
    middle = np.array([mnist.images[mnist.labels == digit, 13:15, 13:15].mean() for digit in range(10)])
    assert (ink.argmin(), middle.argmin()) == (1, 0)


@pytest.mark.parametrize(("load", "n_train", "n_test"), [(load_frogs, 5000, 1000), (load_girls, 500, 100)])
def test_photographs_are_those_for_training_and_then_those_for_tests(data_dir, load, n_train, n_test):
    photographs = load(data_dir)
    assert photographs.images.shape == (n_train + n_test, 32, 32)
    assert photographs.images.dtype == np.uint8
    np.testing.assert_array_equal(photographs.is_test, np.repeat([False, True], [n_train, n_test]))


def test_girls_come_with_the_names_of_their_files(data_dir):
    names = load_girls(data_dir).filenames
    assert names.shape == (600,)
    assert names[:500].tolist() == sorted(names[:500])
    assert load_frogs(data_dir).filenames is None


# Where files are looked for.


@each_loader
def test_a_subset_of_the_rows_is_read_and_counted(load, name, tmp_path):
    write_small(tmp_path, name, n=3)
    loaded = load(tmp_path)
    assert len(getattr(loaded, "images", getattr(loaded, "X", None))) == 3
    assert "3 " in loaded.description
    assert repr(loaded) == f"{type(loaded).__name__}(description={loaded.description!r})"


@each_loader
def test_the_folder_given_comes_before_the_variable_and_the_variable_before_downloads(
    load, name, tmp_path, monkeypatch
):
    for n, folder in ((1, "given"), (2, "variable"), (3, "cache/standout")):
        write_small(tmp_path / folder, name, n)
    monkeypatch.setenv("STANDOUT_DATA", str(tmp_path / "variable"))
    assert "1 " in load(str(tmp_path / "given")).description
    assert "2 " in load().description
    (tmp_path / "variable" / name).unlink()
    assert "3 " in load().description
    monkeypatch.delenv("STANDOUT_DATA")
    assert "3 " in load().description


@each_loader
def test_a_missing_file_is_told_with_the_places_and_the_remedies(load, name, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError) as caught:
        load()
    message = str(caught.value)
    assert message.startswith(f"there is no {name} in STANDOUT_DATA (which is not set) or {tmp_path / 'cache'}")
    assert "data_dir" in message
    assert "download=True" in message
    with pytest.raises(FileNotFoundError, match=rf"no {name} in {re.escape(str(tmp_path / 'nowhere'))}\. Put"):
        load(tmp_path / "nowhere")
    monkeypatch.setenv("STANDOUT_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError, match=rf"no {name} in {re.escape(str(tmp_path / 'elsewhere'))} or"):
        load()
    assert list(tmp_path.iterdir()) == []


def test_a_message_says_how_to_make_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load_yale_faces(tmp_path, download=True)
    for part in ("images (uint8 of shape (n, 192, 168))", "person (integer of shape (n,))", "Extended Yale Face"):
        assert part in str(caught.value)


@pytest.mark.parametrize("data_dir", [3, b"folder", "", ["folder"]])
def test_what_is_not_a_folder_name_is_refused(data_dir):
    with pytest.raises(TypeError, match="is not the name of a folder. Give a path, or None"):
        load_mnist(data_dir)


def test_a_file_that_is_there_is_not_fetched_again(tmp_path):
    for load, name in LOADERS.items():
        write_small(tmp_path, name)
        load(tmp_path, download=True)


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, Path("/x")),
        ("linux", {"XDG_CACHE_HOME": ""}, Path.home() / ".cache"),
        ("darwin", {}, Path.home() / "Library" / "Caches"),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local")),
    ],
)
def test_downloads_are_kept_where_the_platform_keeps_such_things(monkeypatch, platform, environment, expected):
    monkeypatch.undo()
    assert _files._cache_root(platform, environment) == expected


# Damaged files.


def broken_archive(folder, name, how):
    path = folder / name
    write_small(folder, name)
    whole = path.read_bytes()
    if how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "not a zip":
        path.write_bytes(b"\x93NUMPY and then something else")
    elif how == "a bit flipped":
        place = len(whole) // 4
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    elif how == "its table of contents damaged":
        path.write_bytes(whole.replace(b"PK\x01\x02", b"PK\x01\x03"))
    elif how == "a folder":
        path.unlink()
        path.mkdir()
    elif how == "a member that is no array":
        with zipfile.ZipFile(path, "w") as archive:
            for key in small_arrays(name):
                archive.writestr(f"{key}.npy", b"hello")


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("truncated", "it is not an .npz archive, or only a part of one"),
        ("empty", "it is not an .npz archive"),
        ("not a zip", "it is not an .npz archive"),
        ("a bit flipped", ""),
        ("its table of contents damaged", "reading it stopped with BadZipFile"),
        ("a folder", "it is a folder, not a file"),
        ("a member that is no array", ""),
    ],
)
@pytest.mark.parametrize("name", [name for name in LOADERS.values() if name.endswith("npz")])
def test_a_damaged_archive_is_one_clear_error(tmp_path, name, how, what):
    load = next(load for load, file in LOADERS.items() if file == name)
    broken_archive(tmp_path, name, how)
    pattern = rf"^{re.escape(str(tmp_path / name))} cannot be used: .*{what}.*Put a good copy in its place"
    with pytest.raises(ValueError, match=pattern) as caught:
        load(tmp_path)
    assert "allow_pickle" not in str(caught.value)


def without(arrays, key):
    return {other: array for other, array in arrays.items() if other != key}


WRONG_ARRAYS = {
    "missing": (lambda a: without(a, "labels"), r"the array 'labels' \(integer of shape \(n,\)\) is missing"),
    "none": (lambda a: {"other": a["images"]}, r"'images' .* is missing, and it has no arrays"),
    "rows": (lambda a: {**a, "labels": a["labels"][:4]}, r"'labels' has 4 rows, but 'images' has 5"),
    "shape": (
        lambda a: {**a, "images": a["images"][:, :27]},
        r"'images' has shape \(5, 27, 28\), but uint8 of shape \(n, 28, 28\) is expected",
    ),
    "dimensions": (lambda a: {**a, "images": a["images"].reshape(5, -1)}, r"'images' has shape \(5, 784\), but"),
    "scalar": (lambda a: {**a, "labels": np.int64(3)}, r"'labels' has shape \(\), but integer of shape \(n,\)"),
    "dtype": (lambda a: {**a, "images": a["images"] / 255}, r"'images' has values of type float64, but uint8"),
    "text": (lambda a: {**a, "labels": a["labels"].astype(str)}, r"'labels' has values of type <U\d+, but integer"),
    "limits": (lambda a: {**a, "labels": a["labels"] + 6}, r"'labels' has values from 6 to 10, but 0 to 9 are"),
    "no rows": (lambda a: {key: value[:0] for key, value in a.items()}, r"has 0 rows, but 1 to 60000 are expected"),
}


@pytest.mark.parametrize(("change", "what"), WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_a_file_with_the_wrong_arrays_is_refused(tmp_path, change, what):
    np.savez(tmp_path / "mnist.npz", **change(small_arrays("mnist.npz")))
    with pytest.raises(ValueError, match=rf"mnist\.npz cannot be used: .*{what}.*download=True"):
        load_mnist(tmp_path)


def test_pickled_objects_are_not_read(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a file ran code",))

    arrays = {**small_arrays("mnist.npz"), "labels": np.array([Trap()] * 5, dtype=object)}
    np.savez(tmp_path / "mnist.npz", **arrays)
    with pytest.raises(ValueError, match=r"mnist\.npz cannot be used: reading it stopped with ValueError: Object"):
        load_mnist(tmp_path)


def test_more_rows_than_the_dataset_has_are_refused(tmp_path):
    write_small(tmp_path, "cifar100_girls.npz", 601)
    with pytest.raises(ValueError, match=r"it has 601 rows, but 1 to 600 are expected"):
        load_girls(tmp_path)
    write_small(tmp_path, "mice_protein.csv", 1081)
    with pytest.raises(ValueError, match=r"it has 1081 rows, but 1 to 1080 are expected"):
        load_mice_protein(tmp_path)


def test_numbers_of_sensors_must_be_finite(tmp_path):
    arrays = small_arrays("mhealth.npz")
    arrays["X"][2, 3] = np.nan
    np.savez(tmp_path / "mhealth.npz", **arrays)
    with pytest.raises(ValueError, match=r"the array 'X' has NaN or infinity"):
        load_mhealth(tmp_path)


@each_loader
def test_a_file_without_permission_to_read_is_one_clear_error(load, name, tmp_path, monkeypatch):
    write_small(tmp_path, name)
    plain = Path.open

    def guarded(path, *arguments, **options):
        if path.name == name:
            raise PermissionError(13, "Permission denied")
        return plain(path, *arguments, **options)

    # Permissions do not bind an administrator, who may be running this test.
    monkeypatch.setattr(Path, "open", guarded)
    with pytest.raises(ValueError, match=rf"{name} cannot be used: it cannot be opened \(Permission denied\)\. Put"):
        load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="an administrator may read everything")
def test_a_folder_without_permission_is_one_without_the_file(tmp_path):
    folder = tmp_path / "closed"
    write_small(folder, "mnist.npz")
    folder.chmod(0)
    try:
        with pytest.raises(FileNotFoundError):
            load_mnist(folder)
    finally:
        folder.chmod(0o700)


def with_cell(rows, row, column, cell):
    return [*rows[:row], [*rows[row][:column], cell, *rows[row][column + 1 :]], *rows[row + 1 :]]


WRONG_TABLES = {
    "column": (lambda rows: [row[:3] + row[4:] for row in rows], r"it lacks column 'BDNF_N' of 82"),
    "columns": (lambda rows: [row[:-4] for row in rows], r"it lacks columns 'Genotype', 'Treatment', 'Behavior', 'cla"),
    "extra": (lambda rows: [[*row, "x"] for row in rows], r"it has column 'x' beside the 82 expected"),
    "twice": (lambda rows: with_cell(rows, 0, 2, "BDNF_N"), r"it has column 'BDNF_N' more than once"),
    "ragged": (lambda rows: [*rows[:2], rows[2][:70], *rows[3:]], r"row 2 has 70 cells, but there are 82 columns"),
    "text": (lambda rows: with_cell(rows, 3, 5, "high"), r"'high' in row 3 of column 'NR2A_N' is not a number"),
    "infinite": (lambda rows: with_cell(rows, 3, 5, "inf"), r"'inf' in row 3 of column 'NR2A_N' is not finite"),
    "class": (lambda rows: with_cell(rows, 1, 81, "t-S"), r"'class' has value 't-S', but only c-CS-m, c-CS-s"),
    "genotype": (lambda rows: with_cell(rows, 1, 78, ""), r"'Genotype' has value '', but only Control, Ts65Dn"),
    "no rows": (lambda rows: rows[:1], r"it has 0 rows, but 1 to 1080 are expected"),
    "nothing": (lambda rows: [], r"it lacks columns 'MouseID', .* and 77 more of 82"),
}


@pytest.mark.parametrize(("change", "what"), WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_a_wrong_table_is_refused(tmp_path, change, what):
    write_table(tmp_path, change(mouse_rows()))
    with pytest.raises(ValueError, match=rf"mice_protein\.csv cannot be used: .*{what}.*download=True"):
        load_mice_protein(tmp_path)


def test_a_table_that_is_no_text_or_cut_off_is_refused(tmp_path):
    path = tmp_path / "mice_protein.csv"
    write_table(tmp_path, mouse_rows())
    whole = path.read_bytes()
    for damaged in (whole[:-10], whole[:-4], b"\xff\xfe" + whole, whole[:-8] + b'"t-SC', b"\x00" * 100):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"mice_protein\.csv cannot be used: .* Put a good copy"):
            load_mice_protein(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match="it is a folder, not a file"):
        load_mice_protein(tmp_path)


def test_a_table_may_have_a_byte_order_mark_other_column_order_and_gaps(tmp_path):
    rows = with_cell(mouse_rows(), 2, 1, "")
    write_table(tmp_path, [row[::-1] for row in rows])
    path = tmp_path / "mice_protein.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    mice = load_mice_protein(tmp_path)
    assert np.argwhere(np.isnan(mice.X)).tolist() == [[1, 0]]
    assert tuple(mice.columns) == _layouts.PROTEINS
    assert mice.mouse.tolist() == [f"1_{i}" for i in range(5)]
