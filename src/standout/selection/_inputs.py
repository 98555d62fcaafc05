"""The datasets that a selection looks at, as moments or as rows."""

from __future__ import annotations

from typing import Any

from standout._arrays import Rows
from standout._validation import (
    Source,
    as_backgrounds,
    check_one_place,
    check_same_columns,
    column_names,
    dataset_names,
    reject_on_device,
    require_some_background,
    specimen,
)
from standout.moments import Kind, Moments, gather
from standout.sources import open_dataset


def open_datasets(X: Any, background: Any) -> list[Any]:
    """Check the target and its backgrounds: each comes back as rows, as batches, or as the moments it was given as."""
    parts = [X, *as_backgrounds(background, X)]
    require_some_background(len(parts) - 1)
    names = dataset_names(len(parts))
    datasets = [
        part if isinstance(part, Moments) else open_dataset(part, name) for part, name in zip(parts, names, strict=True)
    ]
    check_one_place([part.mean if isinstance(part, Moments) else specimen(part) for part in datasets], names)
    widths = [None if isinstance(dataset, Source) else _width(dataset) for dataset in datasets]
    columns = [
        None if isinstance(dataset, Source | Moments) else column_names(part)
        for part, dataset in zip(parts, datasets, strict=True)
    ]
    for name, width, found in zip(names[1:], widths[1:], columns[1:], strict=True):
        if width is not None and widths[0] is not None:
            check_same_columns(width, found, name, widths[0], columns[0], "the target")
    return datasets


def open_host_datasets(X: Any, background: Any) -> list[Any]:
    """Check datasets as `open_datasets` does, for what is done on NumPy arrays only."""
    datasets = open_datasets(X, background)
    for name, dataset in zip(dataset_names(len(datasets)), datasets, strict=True):
        if not isinstance(dataset, Moments):
            reject_on_device(
                specimen(dataset), f"this use of {name}", "Copy the data to the host, or use the estimators."
            )
    return datasets


def gather_all(datasets: list[Any], *, norms: bool = False) -> list[Moments]:
    """Gather the moments of datasets that are not moments already, all in the same way.

    With fewer rows than columns in all, the rows are kept; otherwise each scatter becomes a matrix. `norms` asks for
    what Ledoit-Wolf shrinkage of the backgrounds needs.
    """
    names = dataset_names(len(datasets))
    known = [dataset for dataset in datasets if not isinstance(dataset, Source | Moments)]
    wide = len(known) == len(datasets) and sum(rows.shape[0] for rows in known) < known[0].shape[1]
    kind: Kind = "rows" if wide else "scatter"
    moments = [
        dataset
        if isinstance(dataset, Moments)
        else gather(dataset, kind=kind, norms=norms and number > 0, single=False, name=name)
        for number, (name, dataset) in enumerate(zip(names, datasets, strict=True))
    ]
    for name, part in zip(names[1:], moments[1:], strict=True):
        check_same_columns(part.n_features, None, name, moments[0].n_features, None, "the target")
    return moments


def _width(dataset: Rows | Moments) -> int:
    return dataset.n_features if isinstance(dataset, Moments) else int(dataset.shape[1])
