"""Sums of one partition as a row of bytes, for engines that run a function where the rows are: Spark, Ray, others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from standout._messages import InvalidValueError
from standout.moments._base import Moments
from standout.moments._gather import gather
from standout.sources import added

# The columns of what `gather_partition` gives, in the words of Spark.
PARTITION_SCHEMA = "label string, sums binary"


def gather_partition(
    batches: Iterable[Any], *, columns: Sequence[str] | None = None, label: str | None = None
) -> Iterator[Any]:
    """How do I sum up rows where they are, and send only the sums?

    Takes the batches of one partition, and gives the moments of their rows as one row with two columns, ``label`` and
    ``sums``, the latter bytes; with `label`, a row for each label. Whatever runs a function on partitions can run this
    one. No rows leave the partition: what travels are about ``8 D²`` bytes for D columns. `merge_partitions` makes
    moments of what was collected, and ``DiscriminativePCA.from_moments`` solves once.

    Parameters
    ----------
    batches : iterable of tables
        Arrow record batches, Arrow tables or pandas frames, or one table; none, or empty ones, if the partition has no
        rows.
    columns : sequence of str, default=None
        The columns to use. None takes all but `label`.
    label : str, default=None
        Column that tells target and backgrounds apart.

    Yields
    ------
    RecordBatch or DataFrame
        Of the kind of the batches: what ``mapInArrow`` and ``mapInPandas`` of Spark, and ``map_batches`` of Ray Data
        want. One for a partition with rows, none for an empty one.

    Examples
    --------
    A plain Python loop in the place of a cluster:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from standout import DiscriminativePCA
    >>> from standout.moments import gather_partition, merge_partitions
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    >>> frame["group"] = np.repeat(["case", "control"], 200)
    >>> frame.loc[:199, "b"] *= 3
    >>> parts = [frame[start::4] for start in range(4)]
    >>> sent = [row for part in parts for row in gather_partition([part], label="group")]
    >>> sums = merge_partitions(sent)
    >>> model = DiscriminativePCA.from_moments(sums["case"], sums["control"], n_components=1)
    >>> int(np.argmax(np.abs(model.components_)))
    1
    """
    # Loaded here: a fit of arrays needs no readers of files.
    from standout.io import pack, words_of_array

    tables: Any = [batches] if hasattr(batches, "schema") or hasattr(batches, "columns") else batches
    sums: dict[str, Moments] = {}
    arrow = False
    for table in tables:
        arrow = hasattr(table, "schema")
        if not table.shape[0]:
            continue
        frame = table.to_pandas() if arrow else table
        chosen = [name for name in frame.columns if name != label] if columns is None else list(columns)
        rows = frame[chosen].to_numpy(dtype=np.float64)
        labels = np.full(len(rows), "") if label is None else words_of_array(frame[label])
        for name in dict.fromkeys(labels.tolist()):
            part = gather(rows[labels == name], kind="scatter", norms=True, name=f"the rows with label {name!r}")
            sums[name] = added(sums.get(name), part)
    if sums:
        found: dict[str, list[Any]] = {"label": list(sums), "sums": [pack(part, {}) for part in sums.values()]}
        yield _as_arrow(found) if arrow else _as_frame(found)


def merge_partitions(collected: Any) -> dict[str, Moments]:
    """What are the moments of all partitions together?

    Parameters
    ----------
    collected : frame, Arrow table, or iterable of frames, Arrow tables or rows
        What `gather_partition` gave for all partitions, such as ``.collect()`` or ``.toPandas()`` of Spark gives it.

    Returns
    -------
    dict of str to Moments
        By label; under ``""`` without labels. ``DiscriminativePCA.from_moments`` takes them.

    Examples
    --------
    >>> import pandas as pd
    >>> from standout.moments import gather_partition, merge_partitions
    >>> parts = [pd.DataFrame({"a": [0.0, 2.0]}), pd.DataFrame({"a": [4.0]}), pd.DataFrame({"a": []})]
    >>> moments = merge_partitions([row for part in parts for row in gather_partition([part])])[""]
    >>> moments.count, moments.mean
    (3, array([2.]))
    """
    from standout.io import unpack

    parts: Any = [collected] if hasattr(collected, "shape") else list(collected)
    total: dict[str, Moments] = {}
    for part in parts:
        table = part.to_pydict() if hasattr(part, "schema") else part
        # A row of Spark is a tuple, and has names as well.
        single = not hasattr(table, "keys") or isinstance(table["sums"], bytes | bytearray)
        labels, stored = ([part[0]], [part[1]]) if single else (table["label"], table["sums"])
        for name, content in zip(labels, stored, strict=True):
            try:
                moments, _ = unpack(bytes(content))
            except ValueError as error:
                problem = "the sums with label {label} cannot be read: {reason}"
                raise InvalidValueError(
                    problem, label=repr(name), reason=error, advice="Send what gather_partition gave as it is."
                ) from None
            total[name] = added(total.get(name), moments)
    if not total:
        raise InvalidValueError("no partition has rows", advice="Give rows of one at least.")
    return total


def _as_arrow(columns: dict[str, list[Any]]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(columns, schema=pa.schema([("label", pa.string()), ("sums", pa.binary())]))


def _as_frame(columns: dict[str, list[Any]]) -> Any:
    from pandas import DataFrame

    return DataFrame(columns)
