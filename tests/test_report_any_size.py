"""Data of any size: what is read in parts gives the report of the same rows in memory."""

import json

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, make_pipeline, scan
from standout.io import Table, read_table
from standout.report import _scores as scores_module
from standout.report import examine, page, store
from standout.report._format import phrased
from standout.sources import Batch, Source

ROLES = {"id_column": "name", "label_column": "kind"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """More rows than a report shows, in CSV files: a target with names and labels, and two backgrounds."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    columns = list("abcdef")
    sizes = {"target": 6000, "first": 2500, "second": 300}
    for name, n_rows in sizes.items():
        rows = rng.normal(size=(n_rows, 6)) * [5, 1, 1, 1, 1, 1] + 3
        words = [""] * n_rows
        if name == "target":
            group = rng.integers(0, 3, n_rows)
            rows[:, 5] += 4 * group
            words = [f",row {k},{'xyz'[g]}" for k, g in enumerate(group)]
        head = ",".join(columns) + (",name,kind" if name == "target" else "")
        lines = [",".join(map(repr, row.tolist())) + word for row, word in zip(rows, words, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n")
    return folder


def opened(files, *, in_memory, backgrounds=("first", "second")):
    read = read_table if in_memory else lambda *args, **kw: scan(*args, batch_rows=700, **kw)
    return read(files / "target.csv", **ROLES), [read(files / f"{name}.csv") for name in backgrounds]


def assert_same(ours, theirs):
    """Compare all numbers and words of two findings: numbers up to rounding, counts and samples exactly."""
    parts = {}
    for name, findings in (("ours", ours), ("theirs", theirs)):
        parts[name] = vars(findings) | {
            f"{kind} {number} {key}": value
            for kind, records in (("dataset", findings.datasets), ("path", [findings.path]), ("test", [findings.test]))
            for number, record in enumerate(records)
            for key, value in (vars(record) if record is not None else {}).items()
        }
    assert parts["ours"].keys() == parts["theirs"].keys()
    for key, value in parts["ours"].items():
        other = parts["theirs"][key]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            scale = np.max(np.abs(value[np.isfinite(value)]), initial=1e-300)
            tolerance = 1e-5 if value.dtype == np.float32 else 1e-8
            assert np.allclose(value, other, rtol=0, atol=tolerance * scale, equal_nan=True), key
        elif isinstance(value, np.ndarray):
            assert np.array_equal(value, other), key
        elif isinstance(value, float):
            assert value == pytest.approx(other, nan_ok=True), key
        elif key in ("choices", "cautions"):
            assert [phrased(message) for message in value] == [phrased(message) for message in other]
        elif key not in ("datasets", "path", "test"):
            assert value == other, key


MODELS = {
    "dpca": lambda: DiscriminativePCA(2),
    "clusters": lambda: DiscriminativePCA(2, shrinkage="clusters"),
    "cpca": lambda: ContrastivePCA(2),
    "kernel": lambda: KernelDiscriminativePCA(2, approximation="fourier", rank=40),
    "pipeline": lambda: make_pipeline(StandardScaler(), DiscriminativePCA(3)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_scan_gives_the_report_of_the_same_rows_in_memory(name, files):
    found = []
    for in_memory in (True, False):
        target, backgrounds = opened(files, in_memory=in_memory)
        model = MODELS[name]().fit(target, background=backgrounds)
        found.append(examine(model, target, backgrounds))
    ours, theirs = found
    assert_same(ours, theirs)
    assert ours.target.ids[:2] == tuple(f"row {k}" for k in ours.target.rows[:2])
    assert ours.label_names == ("x", "y", "z")
    assert ours.features == tuple("abcdef")


def test_pca_alone_of_a_scan(files):
    (table, _), (scanned, _) = (opened(files, in_memory=in_memory) for in_memory in (True, False))
    model = DiscriminativePCA(2).fit(table)
    assert_same(examine(model, table), examine(model, scanned))


def test_dask_gives_the_same_report(files):
    dask = pytest.importorskip("dask.array")
    table, (background,) = opened(files, in_memory=True, backgrounds=["first"])
    model = DiscriminativePCA(2).fit(table, background=background)
    blocks = [dask.from_array(data.values, chunks=(900, 6)) for data in (table, background)]
    words = {"ids": table.ids, "labels": table.labels, "features": table.columns}
    assert_same(examine(model, table, background), examine(model, *blocks, **words))


def test_scores_that_do_not_fit_into_memory_are_kept_in_a_file(files, monkeypatch):
    target, backgrounds = opened(files, in_memory=False)
    model = DiscriminativePCA(2).fit(target, background=backgrounds)
    expected = examine(model, target, backgrounds)
    monkeypatch.setattr(scores_module, "KEPT_BYTES", 1000)
    monkeypatch.setattr(scores_module, "BLOCK_BYTES", 10_000)
    assert_same(expected, examine(model, target, backgrounds))


def test_scores_are_given_batch_by_batch_in_the_order_of_the_rows(files):
    target, backgrounds = opened(files, in_memory=False)
    model = DiscriminativePCA(3).fit(target, background=backgrounds)
    given = []
    examine(model, target, backgrounds, on_scores=lambda *args: given.append(args), with_path=False)
    numbers = [number for number, *_ in given]
    assert numbers == sorted(numbers)
    assert max(batch.n_rows for _, batch, *_ in given) <= 700
    for number, dataset in enumerate([target, *backgrounds]):
        batches = [(batch, scores) for at, batch, scores, _ in given if at == number]
        assert [batch.start for batch, _ in batches] == np.cumsum([0] + [len(s) for _, s in batches])[:-1].tolist()
        assert np.allclose(np.concatenate([scores for _, scores in batches]), model.transform(dataset))
    # The variances of held-out scores are those that the ratio is made of.
    held_out = [np.concatenate([scores for at, *_, scores in given if at == number]) for number in range(2)]
    assert np.allclose(held_out[0].var(axis=0), model.held_out_.target_variance, rtol=0.02)
    assert given[0][1].ids[:2].tolist() == ["row 0", "row 1"]


class Counted(Source):
    """A dataset that tells each time that it is read."""

    def __init__(self, table, times):
        self.rows_of, self.width, self.times = table.values, 6, times

    def batches(self):
        self.times.append(self.name)
        for start in range(0, len(self.rows_of), 1000):
            yield Batch(self.rows_of[start : start + 1000], start)


def test_a_linear_fit_is_examined_in_one_pass(files):
    target, (background,) = opened(files, in_memory=True, backgrounds=["first"])
    model = DiscriminativePCA(2).fit(target, background=background)
    times = []
    examine(model, Counted(target, times), Counted(background, times))
    assert times == ["the target", "background 1"]


def test_other_rows_than_those_of_the_fit_are_noticed_after_the_pass(files):
    target, _ = opened(files, in_memory=True)
    model = DiscriminativePCA(2).fit(target)
    others = files / "first.csv"
    # A CSV file does not tell its number of rows: that of the fit is believed at first.
    assert_same(examine(model, read_table(others)), examine(model, scan(others, batch_rows=700)))


def test_the_labels_of_a_table_are_those_of_its_rows(files):
    target, (background,) = opened(files, in_memory=True, backgrounds=["first"])
    model = DiscriminativePCA(2).fit(target, background=background)
    given = examine(
        model, target.values, background.values, features=target.columns, ids=target.ids, labels=target.labels
    )
    assert_same(given, examine(model, target, background))
    scale = Table(target.values, target.columns, labels=np.array([str(k / 7) for k in range(6000)], dtype=object))
    assert examine(model, scale, background).target.values[:2] == pytest.approx(given.target.rows[:2] / 7)


def test_more_different_labels_than_can_be_told_apart(files, monkeypatch):
    monkeypatch.setattr("standout.report._labels.MOST_LABELS", 20)
    target, (background,) = opened(files, in_memory=True, backgrounds=["first"])
    model = DiscriminativePCA(2).fit(target, background=background)
    findings = examine(model, target, background, labels=[f"cell {k}" for k in range(6000)])
    assert len(findings.label_names) == 12
    assert findings.label_counts[:, 0].sum(axis=1).tolist() == [1] * 11 + [5989]


def test_the_page_of_a_scan_is_that_of_memory_and_can_be_stored(files, tmp_path):
    target, backgrounds = opened(files, in_memory=False)
    model = DiscriminativePCA(2).fit(target, background=backgrounds)
    findings = examine(model, target, backgrounds)
    assert "5,000 of the 6,000 rows" in page(findings)
    store(findings, tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["findings"]["record"] == "Findings"
