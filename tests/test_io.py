"""Files of every kind give the same rows, in batches and as a whole, and written files can be read again."""

from __future__ import annotations

import gzip
import pickle
import tempfile
import warnings

import anndata
import numpy as np
import pandas
import pytest
import scipy.io
from scipy import sparse

import standout
from data_forms import COLUMNS, FILES, NAMED_FILES, numbers, write
from standout._messages import CautionWarning, InvalidValueError
from standout.io import Preparation, prepare, read_table, scan, write_csv
from standout.io._text import CsvReader
from standout.sources import InMemory, open_dataset, open_datasets


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


# --- every kind of file -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "single", "whole", "truth"])
@pytest.mark.parametrize("name", FILES)
def test_every_file_gives_the_rows_of_the_array(tmp_path, name, kind):
    values = numbers(kind)
    path = write(values, tmp_path / name)
    source = scan(path, batch_rows=8)
    assert source.columns == (tuple(COLUMNS) if name in NAMED_FILES else None)
    total, count = source.map_reduce(_sums, _add)
    np.testing.assert_allclose(total, values.sum(axis=0, dtype=np.float64), rtol=1e-6, atol=1e-9)
    assert count == len(values) == source.n_rows
    rows = read_table(path).rows
    np.testing.assert_array_equal(dense(rows).astype(values.dtype), values)
    np.testing.assert_array_equal(dense(open_dataset(source).loaded().rows).astype(values.dtype), values)
    assert rows.dtype in (np.float32, np.float64)
    assert sparse.issparse(rows) == name.startswith(("sparse", "by-columns"))
    if kind == "single" and not name.endswith((".csv", ".csv.gz", ".tsv")):
        assert rows.dtype == np.float32
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(dense(again.take([5, 3])).astype(values.dtype), values[[5, 3]])


def _sums(batch):
    assert batch.start % 8 == 0 or batch.n_rows > 8
    return np.asarray(batch.rows.sum(axis=0)), batch.n_rows


def _add(first, second):
    return first[0] + second[0], first[1] + second[1]


def test_a_parquet_file_that_is_read_some_columns_at_a_time_gives_the_same_rows_and_leaves_nothing(
    tmp_path, monkeypatch
):
    frame = mixed_table().astype({"city": "category"}).assign(z=1.5, **{"x.y": np.arange(30, dtype=np.float32)})
    frame.to_parquet(tmp_path / "mixed.parquet", row_group_size=12)
    options = {"label": "city", "id_column": "sample id", "exclude": ["when", "price", "code", "condition"]}
    plain = scan(tmp_path / "mixed.parquet", **options, batch_rows=5)
    whole, files = plain.loaded(), []

    def temporary():
        files.append(tempfile.TemporaryFile(dir=spools))  # noqa: SIM115
        return files[-1]

    spools = tmp_path / "spools"
    spools.mkdir()
    monkeypatch.setattr("standout.io._binary.TemporaryFile", temporary)
    # Two columns at a time.
    monkeypatch.setattr("standout.io._binary.DECODERS_BYTES", 300)
    batches = plain.batches()
    next(batches)
    assert len(files) == 2
    batches.close()
    assert all(file.closed for file in files)
    np.testing.assert_array_equal(np.concatenate([batch.rows for batch in plain.batches()]), whole.rows)
    again = scan(tmp_path / "mixed.parquet", **options, batch_rows=5).loaded()
    np.testing.assert_array_equal(again.rows, whole.rows)
    assert again.labels.tolist() == whole.labels.tolist()
    assert again.ids.tolist() == whole.ids.tolist()
    assert len(files) > 8
    assert all(file.closed for file in files)
    assert not list(spools.iterdir())


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "plain.npy", "sparse.h5ad"])
def test_files_of_a_folder_pattern_or_list_are_one_dataset_in_order(tmp_path, name):
    values = numbers("float", 60)
    parts = [write(values[start : start + 20], tmp_path / f"{start}-{name}") for start in (0, 20, 40)]
    for paths in (tmp_path, str(tmp_path / "*"), parts, [str(part) for part in parts]):
        found = scan(paths)
        np.testing.assert_array_equal(dense(found.loaded().rows), values)
        assert found.files == [str(part) for part in parts]


def test_columns_of_further_files_are_matched_by_name(tmp_path):
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    frame.to_csv(tmp_path / "1.csv", index=False)
    frame[["b", "a"]].to_csv(tmp_path / "2.csv", index=False)
    assert scan(tmp_path).loaded().rows.tolist() == [[1, 3], [2, 4], [1, 3], [2, 4]]
    frame.assign(c=1).to_csv(tmp_path / "3.csv", index=False)
    with pytest.raises(InvalidValueError, match="has column 'c', which the first file"):
        scan(tmp_path)
    assert scan(tmp_path, columns=["b"]).loaded().rows.ravel().tolist() == [3, 4] * 3


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.feather", "dense.h5ad", "sparse.zarr"])
def test_columns_are_chosen_by_name_and_pattern_in_the_order_that_is_asked_for(tmp_path, name):
    values = numbers("float")
    path = write(values, tmp_path / name)
    assert scan(path, columns=["dose", "a*"]).columns == ("dose", "age")
    np.testing.assert_array_equal(dense(scan(path, columns=["dose", "a*"]).loaded().rows), values[:, [3, 2]])
    np.testing.assert_array_equal(dense(scan(path, exclude=["weight", "d*"]).loaded().rows), values[:, [1, 2]])
    np.testing.assert_array_equal(
        dense(open_dataset(scan(path), columns=("age", "dose")).loaded().rows), values[:, [2, 3]]
    )


def mixed_table():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"sample id": [f"s{n}" for n in range(30)], "x": rng.normal(size=30), "y": rng.normal(size=30)}
    )
    frame["city"] = np.array(["Oslo", "Rome", "Bern"])[np.arange(30) % 3]
    frame["when"] = pandas.date_range("2024-01-01", periods=30).astype(str)
    frame["price"] = [f"€{1000 + n:,}.50" for n in range(30)]
    frame["code"] = np.array(["12A", "12", "7C"])[np.arange(30) % 3]
    frame["condition"] = np.array(["stim", "ctrl"])[np.arange(30) % 2]
    return frame


def test_a_mixed_table_works_and_one_message_names_all_that_is_left_out(tmp_path):
    path, frame = tmp_path / "mixed.csv", mixed_table()
    frame.to_csv(path, index=False)
    with pytest.warns(CautionWarning) as caught:
        found = scan(path)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "'city', 'code', 'condition' (text)" in message
    assert "'when' (dates or times)" in message
    assert "'price' (text, such as '€1,000.50')" in message
    assert "Write numbers as 1038.48" in message
    assert found.columns == ("x", "y")
    assert found.ids.tolist() == frame["sample id"].tolist()
    with pytest.raises(InvalidValueError, match="it has no numbers in columns 'city', 'code', 'condition'"):
        scan(path, strict=True)
    with pytest.raises(InvalidValueError, match="column 'city'"):
        scan(path, columns=["x", "city"])


def test_one_file_is_target_and_background(tmp_path):
    path, frame = tmp_path / "mixed.parquet", mixed_table()
    frame.to_parquet(path)
    options = {"exclude": ["city", "when", "price", "code"], "id_column": "sample id", "batch_rows": 7}
    stim = frame["condition"] == "stim"
    target = scan(
        path, where={"condition": "stim"}, label="city", exclude=["when", "price", "code"], id_column="sample id"
    )
    np.testing.assert_array_equal(target.loaded().rows, frame.loc[stim, ["x", "y"]])
    assert target.labels.tolist() == frame["city"][stim].tolist()
    assert target.loaded().ids.tolist() == frame["sample id"][stim].tolist()
    with pytest.warns(CautionWarning, match="condition"):
        whole = scan(path, **options)
    first, second = open_datasets(whole, y="condition", target_label="stim")
    np.testing.assert_array_equal(first.loaded().rows, frame.loc[stim, ["x", "y"]])
    np.testing.assert_array_equal(second.loaded().rows, frame.loc[~stim, ["x", "y"]])
    with pytest.raises(InvalidValueError, match="no row of .* has condition 'none'"):
        scan(path, where={"condition": "none"}, exclude=["city", "when", "price", "code", "sample id"]).loaded()


def test_columns_of_files_are_subjects_weights_and_covariates(tmp_path):
    path = tmp_path / "table.csv"
    frame = pandas.DataFrame({"a": [1.0, 2, 3, 4], "b": [0.0, 1, 1, 5], "donor": list("uvuv"), "w": [1.0, 2, 0, 1]})
    frame.to_csv(path, index=False)
    with pytest.warns(CautionWarning, match="donor"):
        given = scan(path)
    (source,) = open_datasets(given, groups="donor", sample_weight="w", adjust=["b"])
    assert source.columns == ("a",)
    assert source.subjects.tolist() == [0, 1, 0, 1]
    assert source.weights.tolist() == [1.0, 2.0, 0.0, 1.0]
    assert source.covariates.ravel().tolist() == [-1.75, -0.75, -0.75, 3.25]  # about their mean
    assert source.loaded().rows.ravel().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_names_of_rows_are_found_where_formats_keep_them(tmp_path):
    values = numbers("float", 5)
    frame = pandas.DataFrame(values, columns=COLUMNS, index=[f"r{n}" for n in range(5)])
    frame.to_csv(tmp_path / "pandas.csv")
    frame.to_parquet(tmp_path / "pandas.parquet")
    lines = (tmp_path / "pandas.csv").read_text().splitlines()
    (tmp_path / "r.csv").write_text("\n".join([lines[0].removeprefix(","), *lines[1:]]))
    frame.reset_index(names="cell_id").to_csv(tmp_path / "named.csv", index=False)
    write(values, tmp_path / "dense.h5ad")
    for name in ("pandas.csv", "pandas.parquet", "r.csv", "named.csv"):
        found = read_table(tmp_path / name)
        assert found.ids.tolist() == frame.index.tolist()
        np.testing.assert_array_equal(found.rows, values)
    assert read_table(tmp_path / "dense.h5ad").ids.tolist() == [f"cell{n}" for n in range(5)]
    assert read_table(tmp_path / "pandas.csv", columns=COLUMNS, exclude="").ids is None


def test_names_of_rows_that_occur_twice_are_told(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("name,a,b\nu,1,2\nv,3,4\nu,5,6\n")
    with pytest.warns(CautionWarning, match=r"1 name\(s\) of rows occur more than once in .*'u'.*`groups`"):
        found = read_table(path, id_column="name")
    assert found.ids.tolist() == ["u", "v", "u"]


def test_vectors_beside_a_matrix_are_labels(tmp_path):
    values = numbers("float", 4)
    np.savez(tmp_path / "a.npz", matrix=values, kind=np.array(["u", "v", "u", "v"]), number=np.arange(4.0))
    scipy.io.savemat(tmp_path / "a.mat", {"matrix": values, "kind": np.array([3, 1, 3, 1])})
    assert read_table(tmp_path / "a.npz", label="kind", id_column="number").labels.tolist() == list("uvuv")
    assert read_table(tmp_path / "a.npz", id_column="number").ids.tolist() == list("0123")
    assert read_table(tmp_path / "a.mat", label="kind").labels.tolist() == list("3131")
    data = anndata.AnnData(
        values, obs=pandas.DataFrame({"kind": pandas.Categorical(["u", None, "v", "u"])}, index=list("abcd"))
    )
    data.layers["counts"] = sparse.csr_matrix(values * 2)
    data.write_h5ad(tmp_path / "a.h5ad")
    found = scan(tmp_path / "a.h5ad", label="kind", variable="counts", where={"kind": ["u", ""]})
    assert found.labels.tolist() == ["u", "", "u"]
    np.testing.assert_array_equal(dense(found.loaded().rows), 2 * values[[0, 1, 3]])


def test_numbers_with_gaps_are_refused_kept_or_dropped(tmp_path):
    frame = pandas.DataFrame({"a": [1.0, np.nan, 3.0], "b": [4.0, 5.0, 6.0]})
    for name in ("table.csv", "table.parquet", "table.h5ad"):
        path = tmp_path / name
        writers = {"table.csv": lambda p: frame.to_csv(p, index=False), "table.parquet": frame.to_parquet}
        writers.get(
            name, lambda p: anndata.AnnData(frame.to_numpy(), var=pandas.DataFrame(index=["a", "b"])).write_h5ad(p)
        )(path)
        with pytest.raises(InvalidValueError, match=rf"a value is missing in '.*{name}': column 'a', row 2"):
            read_table(path)
        assert np.isnan(read_table(path, missing="keep").rows[1, 0])
        dropped = scan(path, missing="drop-rows")
        assert dropped.loaded().rows.tolist() == [[1.0, 4.0], [3.0, 6.0]]
        assert dropped.n_dropped == 1
        with pytest.raises(InvalidValueError, match="a value is missing"):
            open_dataset(scan(path, missing="keep")).loaded()


# --- dialects of text files -------------------------------------------------------------------------------------------


def random_dialect(rng):
    """Write a table in a random dialect; return the text, the options that it needs, and the numbers."""
    n_rows, width = int(rng.integers(1, 30)), int(rng.integers(2, 7))
    values = rng.normal(size=(n_rows, width)) * 10.0 ** rng.integers(-8, 9, size=width)
    forms = [str(rng.choice(["r", ".3f", ".6e", "d", "+.2f"])) for _ in range(width)]
    decimal = str(rng.choice([".", ".", ","]))
    delimiter = str(rng.choice([";", "\t", "|"] if decimal == "," else [",", ";", "\t", "|"]))
    gaps = rng.random(values.shape) < rng.choice([0.0, 0.2])
    words = ["", "NA", "NaN", "null", "n/a"]
    cells = []
    for row in range(n_rows):
        line = []
        for column, form in enumerate(forms):
            value = float(np.round(values[row, column])) if form == "d" else float(values[row, column])
            text = repr(value) if form == "r" else f"{value:.0f}" if form == "d" else format(value, form)
            if rng.random() < 0.05:
                text = f" {text} "
            text = text.replace(".", decimal)
            line.append(str(rng.choice(words)) if gaps[row, column] else f'"{text}"' if rng.random() < 0.1 else text)
            parsed = float(text.replace(decimal, "."))
            values[row, column] = np.nan if gaps[row, column] else parsed
        cells.append(line)
    named = rng.random() < 0.8
    header = [f'"col {n}{delimiter}x"' if rng.random() < 0.2 else f"c{n}" for n in range(width)]
    end = str(rng.choice(["\n", "\r\n"]))
    lines = [delimiter.join(line) for line in ([header] if named else []) + cells]
    text = end.join(lines) + (end if rng.random() < 0.8 else "")
    options = {"decimal": decimal, "missing": "keep", "delimiter": str(delimiter) if not named else None}
    options |= {} if named else {"header": False}
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    return text.encode(encoding), options, values


def test_random_dialects_are_read_without_a_wrong_number(tmp_path):
    n_read = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        content, options, values = random_dialect(rng)
        if seed % 3 == 0:
            # Options that are not given are detected in the file, or the file is refused.
            options |= {"header": None, "delimiter": None, "decimal": "."}
        path = tmp_path / ("table.csv.gz" if seed % 5 == 0 else "table.csv")
        path.write_bytes(gzip.compress(content) if seed % 5 == 0 else content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                rows = read_table(path, **options).rows
        except (InvalidValueError, CautionWarning):
            continue
        n_read += 1
        np.testing.assert_array_equal(rows, values, err_msg=f"seed {seed}")
    assert n_read >= 110


def test_cells_of_many_kinds_are_read_as_they_stand(tmp_path):
    path = tmp_path / "kinds.csv"
    path.write_text('n,t,e,w\n1,true,1e3,x\n 2 ,FALSE,-.5E-2,"y, z"\n,true,"7",\n')
    found = read_table(path, label="w", missing="keep")
    np.testing.assert_array_equal(found.rows, [[1, 1, 1000], [2, 0, -0.005], [np.nan, 1, 7]])
    assert found.labels.tolist() == ["x", "y, z", ""]
    path.write_text("a,b\n1,2\n3,-999\n5,missing\n")
    assert np.isnan(read_table(path, na_values=["-999", "missing"], missing="keep").rows[:, 1]).tolist() == [
        False,
        True,
        True,
    ]


def test_a_column_of_large_numbers_is_read_again_once(tmp_path, monkeypatch):
    checked, check = [], CsvReader._check_large
    monkeypatch.setattr(CsvReader, "_check_large", lambda self, place: (checked.append(place), check(self, place)))
    monkeypatch.setattr("standout.io._text.BLOCK_BYTES", 2**10)
    path = tmp_path / "large.csv"
    path.write_text("a,b,c\n" + "1,2e20,3\n" * 5000)
    assert len(list(scan(path).batches())) > 5
    assert checked == [1]


def test_the_encoding_can_be_named(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("Größe,Gewicht\n1,2\n".encode("latin-1"))
    with pytest.raises(InvalidValueError, match=r'not utf-8.* text: byte 0xf6.*encoding="latin-1"'):
        scan(path)
    assert scan(path, encoding="latin-1").columns == ("Größe", "Gewicht")


def test_long_files_with_line_breaks_in_words_and_late_decimals_are_read(tmp_path):
    path, n_rows = tmp_path / "long.csv", 60_000
    with path.open("w") as file:
        file.write("word,a,b\n")
        file.writelines(
            f'"line\nbreak {row % 7}",{row},{row if row < 50_000 else row + 0.5}\n' for row in range(n_rows)
        )
    found = scan(path, label="word")
    total = found.map_reduce(lambda batch: batch.rows.sum(axis=0))
    assert total.tolist() == [n_rows * (n_rows - 1) / 2, n_rows * (n_rows - 1) / 2 + 5_000]
    assert found.n_rows == n_rows
    assert len(set(found.labels)) == 7


# --- preparation ------------------------------------------------------------------------------------------------------

GAPS = np.array([[1.0, np.nan, 7.0], [3.0, 4.0, 7.0], [np.nan, 8.0, 7.0], [5.0, 9.0, 7.0]])


@pytest.mark.parametrize(("missing", "fill"), [("mean", [3.0, 7.0]), ("median", [3.0, 8.0]), ("zero", [0.0, 0.0])])
@pytest.mark.parametrize("route", ["memory", "sparse", "file"])
def test_gaps_are_filled_with_numbers_of_all_datasets(tmp_path, missing, fill, route):
    rows = GAPS[:, :2]
    datasets = [InMemory(rows[:2], "the target"), InMemory(rows[2:], "background 1")]
    if route == "sparse":
        datasets = [InMemory(sparse.csr_array(rows[:2])), InMemory(sparse.csr_array(rows[2:]))]
    if route == "file":
        for name, part in (("a.npy", rows[:2]), ("b.npy", rows[2:])):
            np.save(tmp_path / name, part)
        datasets = [scan(tmp_path / "a.npy"), scan(tmp_path / "b.npy")]
    found, step = prepare(datasets, missing=missing)
    expected = np.where(np.isnan(rows), fill, rows)
    np.testing.assert_array_equal(np.concatenate([dense(data.loaded().rows) for data in found]), expected)
    np.testing.assert_array_equal(step.transform([[np.nan, 1.0]]), [[fill[0], 1.0]])


def test_rows_are_dropped_and_constant_columns_are_left_out_with_a_word(tmp_path):
    pandas.DataFrame(GAPS, columns=["a", "b", "c"]).to_csv(tmp_path / "gaps.csv", index=False)
    with pytest.warns(CautionWarning, match="column 'c' is constant over all rows, and not used"):
        (found,), step = prepare([read_table(tmp_path / "gaps.csv", missing="drop-rows")], missing="drop-rows")
    assert found.rows.tolist() == [[3.0, 4.0], [5.0, 9.0]]
    assert found.columns == ("a", "b")
    assert step.transform(pandas.DataFrame([[7, 2, 1]], columns=["c", "b", "a"])).tolist() == [[1.0, 2.0]]
    with pytest.raises(InvalidValueError, match="column 'c' is constant"):
        prepare([InMemory(GAPS[[1, 3]], "the target", ["a", "b", "c"])], strict=True)
    for missing in ("error", "drop-rows"):
        with pytest.raises(InvalidValueError, match="first is nan in row 0, column 'b'"):
            prepare([InMemory(GAPS, "the target", ["a", "b", "c"])], missing=missing)


def test_constant_columns_of_sparse_counts_are_found_without_a_dense_matrix():
    counts = sparse.random_array((300_000, 500), density=1e-4, random_state=np.random.default_rng(0), format="csr")
    counts = sparse.csr_array(sparse.hstack([counts, sparse.csr_array((300_000, 2))]))
    with pytest.warns(CautionWarning, match="columns 'x500', 'x501' are constant"):
        (found,), _ = prepare([InMemory(counts)], log1p=True)
    assert found.rows.shape == (300_000, 500)
    # A column can vary only after the rows that are searched first.
    late = np.column_stack([np.arange(2000.0), np.arange(2000) >= 1500])
    assert prepare([InMemory(late)])[0][0].width == 2


def test_logarithms_are_of_counts_only():
    counts = sparse.csr_array([[0.0, 3.0], [1.0, 0.0]])
    (found,), _ = prepare([InMemory(counts)], log1p=True)
    np.testing.assert_array_equal(found.rows.toarray(), np.log1p(counts.toarray()))
    assert counts.max() == 3.0
    with pytest.raises(InvalidValueError, match="a negative value in the data, .* row 2, column 'x1'"):
        Preparation(log1p=True).fit([[1.0, 2.0]]).transform([[1.0, 2.0], [1.0, -2.0]])
    with pytest.raises(InvalidValueError, match="no value at all in column 'x1'"):
        Preparation(missing="mean").fit([[1.0, np.nan]])


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.parquet"])
def test_numbers_and_words_that_are_written_are_read_as_the_same(tmp_path, name):
    rng = np.random.default_rng(0)
    values = rng.normal(size=50) * 10.0 ** rng.integers(-300, 300, size=50)
    words = [f'"{n}",\n;' for n in range(50)]
    parts = ((words[some], values[some]) for some in (slice(0, 20), slice(20, 50)))
    write_csv(tmp_path / name, ({"word": said, "value": own, "other": own} for said, own in parts))
    found = read_table(tmp_path / name, label="word")
    np.testing.assert_array_equal(found.rows, np.column_stack([values, values]))
    assert found.labels.tolist() == words


def test_no_cell_of_a_spreadsheet_is_a_formula(tmp_path):
    bad = ["=1", "+1", "-1", "@x", "\t=1", "\n=1", "\r=1", "＝1", "＋1", "－1", "＠x", "  =1"]
    write_csv(tmp_path / "a.csv", {"=name": [*bad, "fine"], "number": np.arange(-13.0, 0.0)}, spreadsheet=True)
    frame = pandas.read_csv(tmp_path / "a.csv")
    assert frame.columns.tolist() == ["'=name", "number"]
    assert frame["'=name"].tolist() == [*("'" + word.replace("\r", "\r") for word in bad), "fine"]
    assert frame["number"].tolist() == list(np.arange(-13.0, 0.0))


def test_columns_of_different_lengths_are_not_written(tmp_path):
    with pytest.raises(InvalidValueError, match=r"column 'b' has shape \(1,\), but the first column has 2 values"):
        write_csv(tmp_path / "a.csv", {"a": [1, 2], "b": [1]})
    assert not (tmp_path / "a.csv").exists()


def test_public_names_are_those_of_the_package():
    assert standout.scan is scan
    assert standout.read_table is read_table
