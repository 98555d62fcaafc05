"""Partitions of Spark and Ray, and of plain processes: only sums leave them, and the answer is that of one fit."""

import os
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest

from standout import DiscriminativePCA
from standout.moments import PARTITION_SCHEMA, gather_partition, merge_partitions

D = 20
NAMES = [f"c{number}" for number in range(D)]


@pytest.fixture
def frame(rng):
    rows = rng.normal(size=(4000, D))
    rows[:2000, 3] *= 3
    found = pd.DataFrame(rows, columns=NAMES)
    found["group"] = np.repeat(["case", "control"], 2000)
    return found.sample(frac=1.0, random_state=0, ignore_index=True)


def expected_fit(frame):
    rows = {name: part[NAMES].to_numpy() for name, part in frame.groupby("group")}
    return DiscriminativePCA(2, held_out=None).fit(rows["case"], background=rows["control"])


def assert_equal(sums, frame):
    model = DiscriminativePCA.from_moments(sums["case"], sums["control"], n_components=2)
    expected = expected_fit(frame)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(model.shrinkage_, expected.shrinkage_, rtol=1e-8)


def of_partition(part):
    return list(gather_partition([part], label="group"))


def test_processes_send_sums_alone(frame):
    parts = np.array_split(np.arange(len(frame)), 8)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        sent = list(pool.map(of_partition, [frame.iloc[part] for part in parts]))
    collected = [row for rows in sent for row in rows]
    assert_equal(merge_partitions(collected), frame)
    # Eight partitions with two labels: sixteen matrices of 20 x 20, and a little beside them.
    assert len(pickle.dumps(collected)) < 16 * (D * D * 8 + 4000)


@pytest.mark.parametrize("form", ["frame", "table", "batches"])
def test_partitions_come_as_frames_tables_or_batches_and_may_be_empty(frame, form):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parts = [frame[:1000], frame[1000:1000], frame[1000:]]
    if form == "frame":
        sent = [row for part in parts for row in gather_partition(iter([part]), label="group")]
    else:
        tables = [pa.Table.from_pandas(part, preserve_index=False) for part in parts]
        given = [table.to_batches(max_chunksize=300) for table in tables] if form == "batches" else tables
        sent = [row for part in given for row in gather_partition(part, label="group")]
        assert all(isinstance(row, pa.RecordBatch) for row in sent)
        assert sent[0].schema.names == [part.split()[0] for part in PARTITION_SCHEMA.split(", ")]
    assert_equal(merge_partitions(sent), frame)
    some = merge_partitions([row for part in parts for row in gather_partition([part], columns=NAMES[:2])])
    assert list(some) == [""]
    assert some[""].count == 4000


def test_damaged_sums_and_no_rows_are_refused(frame):
    (row,) = gather_partition([frame], label="group")
    row.loc[0, "sums"] = row.loc[0, "sums"][:-5]
    with pytest.raises(ValueError, match=r"the sums with label '.*' cannot be read: the checksum does not fit"):
        merge_partitions(row)
    with pytest.raises(ValueError, match="no partition has rows"):
        merge_partitions([])


def test_spark_runs_the_recipe(frame):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        table = session.createDataFrame(frame).repartition(6)
        for run in (table.mapInArrow, table.mapInPandas):
            sent = run(lambda batches: gather_partition(batches, label="group"), PARTITION_SCHEMA)
            rows = sent.collect()
            assert len(rows) == 12
            assert_equal(merge_partitions(rows), frame)
            # Bytes that come to the driver: 12 matrices, whatever the number of rows.
            assert sum(len(row["sums"]) for row in rows) < 12 * (D * D * 8 + 4000)
    finally:
        session.stop()


def test_ray_runs_the_recipe(frame):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    try:
        data = ray.data.from_pandas(frame).repartition(4)
        sent = data.map_batches(
            lambda batch: next(gather_partition(batch, label="group")), batch_format="pandas", batch_size=None
        )
        assert_equal(merge_partitions(sent.to_pandas()), frame)
    finally:
        ray.shutdown()
