"""Files that are hostile, broken or meant for spreadsheets, and results that are put in place last."""

import json
import os
import zipfile

import numpy as np
import pandas as pd
import pytest

import standout
from cli_runs import COLUMNS, csv_text, two_datasets, write_pair
from standout import DiscriminativePCA, scan
from standout.cli import main
from standout.io import read_table, write_csv
from standout.report import examine, page, summary


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pair(tmp_path)
    return tmp_path


def told(capsys, *arguments):
    code = main(list(arguments))
    said = capsys.readouterr()
    return code, said.out + said.err


# --- what can fail comes before the result --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_an_alpha_that_overflows_leaves_no_result(command, here, capsys):
    method = ["--method", "cpca"] if command == "fit" else ["--methods", "pca,cpca"]
    place = "out" if command == "fit" else "out.html"
    code, said = told(capsys, command, "target.csv", "-b", "background.csv", "-o", place, *method, "--alpha", "1e308")
    assert code == 2
    assert "out of the range" in said
    assert not (here / place).exists()


@pytest.mark.parametrize("size", [1e40, 1e120])
def test_values_beyond_single_precision_are_drawn_in_a_unit(size, here, capsys):
    target, background, _ = two_datasets()
    (here / "target.csv").write_text(csv_text(target * size))
    (here / "background.csv").write_text(csv_text(background * size))
    code, said = told(capsys, "fit", "target.csv", "-b", "background.csv", "-o", "out", "--shrinkage", "0.1")
    assert code == 0
    assert "drawn in units of" in said
    found = examine(DiscriminativePCA(2, shrinkage=0.1).fit(target, background=background), target, background)
    assert not any("drawn in units" in str(caution) for caution in found.cautions)


# --- values that stand for missing ones -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-999.0, -9999.0, -999999999.0, 1e20, 9.96921e36])
@pytest.mark.filterwarnings("ignore:the data are badly conditioned", "ignore:1 of the values")
def test_the_report_names_a_value_that_may_stand_for_a_missing_one(value):
    target, background, _ = two_datasets()
    target[3:6, 2] = value
    model = DiscriminativePCA(1, shrinkage=0.1).fit(target, background=background)
    found = examine(model, target, background, features=COLUMNS)
    said = [str(caution) for caution in found.cautions if "missing value" in str(caution)]
    assert any(f"{value:.10g} stands in 3 cell(s)" in words and "iron" in words for words in said)
    assert "missing value" in page(found)
    assert any("missing value" in words for words in summary(found)["warnings"])


def test_usual_values_are_not_taken_for_missing_ones(rng):
    target, background, _ = two_datasets()
    target[:, 2], background[:, 2] = rng.integers(900, 1001, size=(2, 60))
    target[0, 1] = 999.5
    model = DiscriminativePCA(1).fit(target, background=background)
    assert not any("missing value" in str(caution) for caution in examine(model, target, background).cautions)


def test_a_column_of_large_numbers_that_differ_is_not_constant():
    rows = np.column_stack([2.0**52 + np.arange(100), np.arange(100) % 7, np.full(100, 2.0**52)])
    found = examine(DiscriminativePCA(1).fit(rows), rows, features=["large", "small", "same"])
    (said,) = [str(caution) for caution in found.cautions if "same in every row" in str(caution)]
    assert "1 column" in said
    assert "large" not in said


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_told(encoding, tmp_path):
    (tmp_path / "data.csv").write_bytes("a,b\n1,2\n3,4\n".encode(encoding))
    with pytest.raises(ValueError, match="UTF-16"):
        read_table(tmp_path / "data.csv")


def test_a_number_with_a_line_break_in_quotes_is_named(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,4\n" + "".join(f'{i},"{i}\n"\n' for i in range(9)))
    with pytest.raises(ValueError, match=r"'0\\n' in line 5, column 'b'"):
        read_table(tmp_path / "data.csv")


@pytest.mark.parametrize("word", ["١٢", "１２"])
def test_other_digits_are_named(word, tmp_path):
    (tmp_path / "data.csv").write_text(f"a,b\n1,2\n3,4\n5,{word}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="in line 4, column 'b', is not a number .digits must be 0 to 9"):
        read_table(tmp_path / "data.csv")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_change_that_keeps_size_time_and_both_ends_is_noticed(kind, tmp_path, rng):
    place = tmp_path / "data.npy"
    np.save(place, rng.normal(size=(50_000, 4)))
    found = scan(place if kind == "file" else tmp_path)
    before = place.stat()
    with place.open("r+b") as file:
        file.seek(before.st_size // 2)
        file.write(bytes(8))
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ValueError, match="has changed"):
        DiscriminativePCA(1).fit(found)


def test_a_sparse_file_of_endless_width_is_refused_at_once(tmp_path):
    from scipy import sparse

    wide = sparse.coo_array((np.ones(60), (np.arange(60), np.arange(60) * 10**9)), shape=(60, 10**12))
    sparse.save_npz(tmp_path / "wide.npz", wide)
    with pytest.raises(ValueError, match="1000000000000 columns"):
        scan(tmp_path / "wide.npz")


def nested(depth):
    """Lists of which each holds the one below it twice, the second time by its id."""
    plain = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    found = {**plain, "__loader__": "JsonNode", "__class__": "str", "content": '"x"', "__id__": 5000}
    for level in range(1, depth):
        found = {**plain, "__id__": 5000 + level, "content": [found, {**plain, "__id__": 4999 + level, "content": []}]}
    return found


def test_objects_that_stand_for_each_other_too_often_are_refused_at_once(tmp_path):
    standout.save(DiscriminativePCA(2), tmp_path / "model.skops")
    with zipfile.ZipFile(tmp_path / "model.skops") as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(entries["schema.json"])
    schema["content"]["content"]["n_components"] = nested(60)
    with zipfile.ZipFile(tmp_path / "forged.skops", "w") as archive:
        for name, content in (entries | {"schema.json": json.dumps(schema)}).items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="stand for each other"):
        standout.load(tmp_path / "forged.skops")


# --- spreadsheets ---------------------------------------------------------------------------------------------------

WORDS = ["=1+1", "+2", "-3", "@x", "\tx", "plain", "a=b"]


def test_words_that_are_formulas_get_an_apostrophe_only_on_request(tmp_path):
    columns = {"=name": WORDS, "number": -np.arange(7.0)}
    for spreadsheet in (False, True):
        write_csv(tmp_path / "a.csv", columns, spreadsheet=spreadsheet)
        frame = pd.read_csv(tmp_path / "a.csv")
        mark = "'" if spreadsheet else ""
        assert list(frame.columns) == [f"{mark}=name", "number"]
        assert frame.iloc[:, 0].tolist() == [mark * (word not in ("plain", "a=b")) + word for word in WORDS]
        assert frame["number"].tolist() == (-np.arange(7.0)).tolist()


def test_the_command_line_writes_for_spreadsheets(here, capsys):
    rows, background, _ = two_datasets()
    names = ["=size", "+age", "@iron", "zinc"]
    (here / "target.csv").write_text(csv_text(rows, names, id=[f"={number}" for number in range(60)]))
    (here / "background.csv").write_text(csv_text(background, names, id=["-x"] * 60))
    options = ["--id-column", "id", "--spreadsheet", "-q"]
    assert main(["fit", "target.csv", "-b", "background.csv", "-o", "out", *options]) == 0
    assert main(["transform", "out", "target.csv", "-o", "new.csv", *options]) == 0
    for file in (here / "out" / "scores.csv", here / "new.csv"):
        frame = pd.read_csv(file)
        assert frame["id"].str.startswith("'").all()
        assert frame["component_1"].dtype == np.float64
    assert pd.read_csv(here / "out" / "loadings.csv")["feature"].tolist() == ["'=size", "'+age", "'@iron", "zinc"]
