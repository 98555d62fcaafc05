"""Which rows of a file, and what is known of each: chosen at the door, with names and groups, complete or not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from scanned_files import KINDS, SPARSE, WITH_WORDS, WITHOUT_NAMES, D, write
from standout import DiscriminativePCA, scan
from standout.io import read_table

N = 200
# The name of a row is not a column of these.
KINDS_WITHOUT_NAME = ("npz", "mat", "h5ad", "h5ad sparse", "zarr of anndata")


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


@pytest.fixture
def rows(rng):
    return rng.normal(size=(N, D)) * np.r_[4.0, np.ones(D - 1)] + 1.0


@pytest.fixture
def names():
    return [f"row {number}" for number in range(N)]


@pytest.fixture
def groups(rng):
    return rng.choice(["stim", "control", "other"], size=N).tolist()


@pytest.fixture(params=WITH_WORDS)
def files(request, rows, names, groups, tmp_path):
    """Three files of one kind in a folder, whose rows have names and groups."""
    extension, write = WITH_WORDS[request.param]
    folder = tmp_path / "files"
    folder.mkdir()
    for number, some in enumerate(np.array_split(np.arange(N), 3)):
        path = folder / f"part-{number}{extension}"
        write(rows[some], [names[i] for i in some], [groups[i] for i in some], path)
    return request.param, folder


def test_rows_are_chosen_by_a_value_as_from_the_whole_table(files, rows, groups):
    kind, folder = files
    options = {"label_column": "name"}
    for value in ("stim", ["control", "other"], {"other"}, np.array(["stim", "other"])):
        wanted = np.isin(groups, value if isinstance(value, str) else list(value))
        table = read_table(folder, where={"group": value}, **options)
        np.testing.assert_allclose(dense(table.values), rows[wanted], rtol=1e-12)
        scanned = scan(folder, where={"group": value}, batch_rows=17, **options)
        assert scanned.n_rows is None
        assert scanned.count_rows() == wanted.sum()
        found = list(scanned.batches())
        np.testing.assert_array_equal(np.concatenate([dense(batch.rows) for batch in found]), dense(table.values))
        assert [label for batch in found for label in batch.labels] == table.labels.tolist()
        assert [batch.start for batch in found] == np.cumsum([0, *(batch.n_rows for batch in found)])[:-1].tolist()
        assert table.columns == (scanned.columns or table.columns)
        assert "group" not in table.columns
        assert sparse.issparse(table.values) == (kind in SPARSE)


def test_ids_labels_and_groups_come_with_every_batch(files, names, groups):
    _, folder = files
    scanned = scan(folder, id_column="name", label_column="group", group_column="group", batch_rows=17)
    table = read_table(folder, id_column="name", label_column="group", group_column="group")
    found = list(scanned.batches())
    for role, expected in {"ids": names, "labels": groups, "groups": groups}.items():
        assert getattr(table, role).tolist() == expected
        assert [word for batch in found for word in getattr(batch, role)] == expected
        # Without the numbers, which are not read then.
        assert [word for some in scanned.words(role) for word in some] == expected


def test_one_file_is_target_and_background(files, rows, groups):
    _, folder = files
    other = {"id_column": "name"}
    target, background = (scan(folder, where={"group": value}, batch_rows=31, **other) for value in ("stim", "control"))
    found = DiscriminativePCA(2).fit(target, background=background)
    groups = np.array(groups)
    expected = DiscriminativePCA(2).fit(rows[groups == "stim"], background=rows[groups == "control"])
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-8)


def test_a_value_that_no_row_has_is_told(files):
    _, folder = files
    for read in (read_table, lambda *a, **k: scan(*a, **k).count_rows()):
        with pytest.raises(ValueError, match="'group' is 'sham'") as caught:
            read(folder, where={"group": "sham"}, label_column="name")
        assert caught.value.facts["n_rows"] == 0
    with pytest.raises(ValueError, match="'group' is 'sham'"):
        DiscriminativePCA(1).fit(scan(folder, where={"group": "sham"}, label_column="name"))


def test_a_file_without_the_column_that_others_have_is_named(files, rows):
    kind, folder = files
    part = folder / f"part-9{WITH_WORDS[kind][0]}"
    if kind in KINDS_WITHOUT_NAME:
        KINDS[kind][1](rows[:20], part)
    else:
        frame = read_frame(folder / f"part-0{WITH_WORDS[kind][0]}", kind)
        write_frame(frame.drop(columns="group"), part, kind)
    for options in ({"where": {"group": "stim"}}, {"group_column": "group"}):
        with pytest.raises(ValueError, match="part-9") as caught:
            scan(folder, drop=() if kind in KINDS_WITHOUT_NAME else "name", **options)
        assert "'group'" in caught.value.facts["missing"]


def read_frame(path, kind):
    if kind in ("parquet", "feather", "arrow"):
        return (pd.read_parquet if kind == "parquet" else pd.read_feather)(path)
    return pd.read_csv(path, sep="\t" if kind == "tsv" else ",")


def write_frame(frame, path, kind):
    if kind in ("parquet", "feather", "arrow"):
        (frame.to_parquet if kind == "parquet" else frame.to_feather)(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")


# Numbers as groups.


@pytest.mark.parametrize("value", [1, 1.0, "1", np.int64(1), [1]])
def test_whole_numbers_are_the_same_however_a_file_writes_them(tmp_path, value):
    found = pd.DataFrame({"x": [1.0, 2.0, 3.0], "g": [1, 2, 1]})
    found.to_csv(tmp_path / "a.csv", index=False)
    found.astype({"g": float}).to_csv(tmp_path / "b.csv", index=False)
    found.to_parquet(tmp_path / "a.parquet")
    found.astype({"g": float}).to_parquet(tmp_path / "b.parquet")
    np.save(tmp_path / "a.npy", found.to_numpy())
    for name, column in {"a.csv": "g", "b.csv": "g", "a.parquet": "g", "b.parquet": "g", "a.npy": "x1"}.items():
        assert read_table(tmp_path / name, where={column: value}).values.tolist() == [[1.0], [3.0]], name


def test_several_conditions_hold_at_once_and_a_missing_value_can_be_asked_for(tmp_path):
    (tmp_path / "a.csv").write_text("x,g,h\n1,a,p\n2,a,q\n3,b,p\n4,,p\n")
    assert read_table(tmp_path / "a.csv", where={"g": "a", "h": "p"}).values.tolist() == [[1.0]]
    assert read_table(tmp_path / "a.csv", where={"g": None}, drop="h").values.tolist() == [[4.0]]
    assert read_table(tmp_path / "a.csv", where={"g": ["b", None]}, drop="h").values.tolist() == [[3.0], [4.0]]


# Missing values.


@pytest.fixture(params=["csv", "parquet", "npy", "h5ad sparse", "zarr 3", "npz"])
def gaps(request, rows, tmp_path):
    rows[5, 2] = rows[5, 3] = rows[120, 0] = rows[199, 6] = np.nan
    return request.param, rows, write([rows], tmp_path, request.param, n_files=1)[0]


def test_missing_values_are_kept_dropped_or_refused(gaps):
    kind, rows, folder = gaps
    column = "x2" if kind in WITHOUT_NAMES else "column 2"
    with pytest.raises(ValueError, match="missing") as caught:
        list(scan(folder, batch_rows=41).parts())
    assert (caught.value.facts["row"], caught.value.facts["column"]) == (6, repr(column))
    kept = scan(folder, batch_rows=41, missing="keep")
    np.testing.assert_array_equal(np.concatenate([dense(part) for part in kept.parts()]), rows)
    assert kept.n_rows == (None if kind == "csv" else N)
    complete = ~np.isnan(rows).any(axis=1)
    dropped = scan(folder, batch_rows=41, missing="drop-rows")
    np.testing.assert_array_equal(np.concatenate([dense(part) for part in dropped.parts()]), rows[complete])
    assert (dropped.n_rows, dropped.count_rows()) == (None, N - 3)
    np.testing.assert_array_equal(dense(dropped.read().values), rows[complete])
    found = DiscriminativePCA(1).fit(dropped)
    assert found.eigenvalues_ == pytest.approx(DiscriminativePCA(1).fit(rows[complete]).eigenvalues_)


def test_missing_values_that_were_kept_are_told_by_a_fit(gaps):
    _, _, folder = gaps
    with pytest.raises(ValueError, match="missing") as caught:
        DiscriminativePCA(1).fit(scan(folder, missing="keep"))
    assert caught.value.facts["row"] == 6


def test_rows_that_are_not_wanted_may_have_missing_values(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,g\n1,2,a\n,3,b\n4,5,a\n")
    (batch,) = scan(tmp_path / "a.csv", where={"g": "a"}).parts()
    np.testing.assert_array_equal(batch, [[1, 2], [4, 5]])
    with pytest.raises(ValueError, match="missing") as caught:
        list(scan(tmp_path / "a.csv", where={"g": "b"}).parts())
    assert caught.value.facts["row"] == 2


def test_infinite_values_are_refused_whatever_is_done_about_missing_ones(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1.0, np.nan], [2.0, -np.inf]]))
    for missing in ("error", "keep", "drop-rows"):
        with pytest.raises(ValueError, match="infinite|missing"):
            list(scan(tmp_path / "a.npy", missing=missing).parts())
    with pytest.raises(ValueError, match="is unknown") as caught:
        scan(tmp_path / "a.npy", missing="mean")
    assert (caught.value.parameter, caught.value.value) == ("missing", "mean")


# Tables as datasets.


def test_a_table_is_a_dataset(tmp_path, rows, names, groups):
    WITH_WORDS["parquet"][1](rows, names, groups, tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", id_column="name", where={"group": "stim"})
    background = read_table(tmp_path / "a.parquet", id_column="name", where={"group": "control"})
    found = DiscriminativePCA(2).fit(table, background=background)
    expected = DiscriminativePCA(2).fit(table.values, background=background.values)
    np.testing.assert_array_equal(found.components_, expected.components_)
    assert found.feature_names_in_.tolist() == table.columns
    np.testing.assert_array_equal(found.transform(table), expected.transform(table.values))
    assert found.score(table, background=background) == expected.score(table.values, background=background.values)
    other = read_table(tmp_path / "a.parquet", columns=table.columns[::-1])
    with pytest.raises(ValueError, match="another order"):
        DiscriminativePCA(2).fit(table, background=other)
    with pytest.raises(ValueError, match="another order"):
        found.transform(other)


# Names that AnnData can write in several ways.


@pytest.mark.parametrize("store", ["h5ad", "zarr"])
def test_strings_with_gaps_are_words(tmp_path, store):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    # As anndata 0.13 writes with pandas 3: names and categories are strings with a mask, in shards of Zarr's format 3.
    kinds = pd.Categorical(pd.array(["u", "v", "u"], dtype="string"))
    index = pd.Index(["r", "s", "t"], dtype="string")
    obs = pd.DataFrame({"g": pd.array(["a", None, "b"], dtype="string"), "kind": kinds}, index=index)
    var = pd.DataFrame(index=pd.Index(["x", "y"], dtype="string"))
    cells = anndata.AnnData(np.eye(3, 2), obs=obs, var=var)
    if not hasattr(getattr(anndata, "settings", None), "allow_write_nullable_strings"):
        pytest.skip("this version of anndata does not write strings with gaps")
    path = tmp_path / f"cells.{store}"
    how = {"allow_write_nullable_strings": True, "zarr_write_format": 3, "auto_shard_zarr_v3": True}
    how = {name: value for name, value in how.items() if hasattr(anndata.settings, name)}
    with warnings.catch_warnings(), anndata.settings.override(**how):
        warnings.simplefilter("ignore")
        (cells.write_zarr if store == "zarr" else cells.write_h5ad)(path)
    assert read_table(path, label_column="g").labels.tolist() == ["a", "", "b"]
    assert read_table(path, label_column="g").ids.tolist() == ["r", "s", "t"]
    assert read_table(path, label_column="kind").labels.tolist() == ["u", "v", "u"]
    assert scan(path).columns == ["x", "y"]
    assert read_table(path, where={"g": "b"}).values.tolist() == [[0.0, 0.0]]
