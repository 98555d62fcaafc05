"""The datasets that a selection looks at: as sources, or as moments that were gathered before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from standout._arrays import Float, Rows
from standout._checks import (
    as_backgrounds,
    check_one_place,
    check_same_columns,
    check_same_keys,
    reject_on_device,
    require_background,
)
from standout._messages import InvalidTypeError, dataset_names
from standout._params import check_robust
from standout._xp import take, to_host
from standout.moments import CentredRows, KeptRows, Kind, Moments, gather, learned_weights, weighed
from standout.selection._dealing import subjects_of
from standout.sources import Dataset, InMemory, Source, attached, chosen_subjects, open_beside, with_subjects

Given: TypeAlias = Dataset | Moments
"""A dataset, or its moments, which were gathered before."""
GivenBackgrounds: TypeAlias = Given | Sequence[Given] | None
"""One background, or a list or tuple of several."""
Opened: TypeAlias = Source | Moments
"""A dataset that was opened and checked, or its moments."""


def open_datasets(
    X: Given, background: GivenBackgrounds, groups: Any = None, background_groups: Any = None
) -> list[Opened]:
    """Open and check the target and its backgrounds, with the subjects of their rows; moments are kept as they are."""
    parts = [X, *as_backgrounds(background, X)]
    require_background(len(parts) - 1)
    names = dataset_names(len(parts))
    columns = {groups: "groups"} if isinstance(groups, str) else {}
    datasets: list[Opened] = [
        part if isinstance(part, Moments) else open_beside(part, name, columns)[1]
        for part, name in zip(parts, names, strict=True)
    ]
    check_one_place([_specimen(dataset) for dataset in datasets], names)
    target = datasets[0]
    for name, dataset in zip(names[1:], datasets[1:], strict=True):
        width, expected = _width(dataset), _width(target)
        if width is not None and expected is not None:
            check_same_columns(width, _columns(dataset), name, expected, _columns(target), "the target")
            if isinstance(dataset, Source) and isinstance(target, Source):
                check_same_keys(dataset.keys, name, target.keys, "the target")
    if groups is None and background_groups is None:
        return datasets
    require_rows(datasets, "{p.groups}", sampled=True)
    return [*with_subjects([part for part in datasets if isinstance(part, Source)], groups, background_groups)]


def open_host_datasets(X: Given, background: GivenBackgrounds, *groups: Any) -> list[Opened]:
    """Open datasets as `open_datasets` does, and refuse arrays of other libraries than NumPy."""
    datasets = open_datasets(X, background, *groups)
    for name, dataset in zip(dataset_names(len(datasets)), datasets, strict=True):
        reject_on_device(_specimen(dataset), f"this use of {name}", "Copy the data to the host, or use the estimators.")
    return datasets


def with_robust_weights(datasets: Sequence[Opened], robust: str | None, seed: int) -> list[Opened]:
    """Give datasets with robust weights, if these are asked for. Moments have no rows to weigh."""
    if check_robust(robust) is None:
        return list(datasets)
    found: list[Opened] = []
    for dataset in datasets:
        if isinstance(dataset, Moments):
            raise InvalidTypeError(
                "weighs rows, but moments have none",
                parameter="robust",
                value=robust,
                advice="Give the rows, or leave {p.robust} out.",
            )
        dataset.require_finite()
        found.append(weighed(dataset, learned_weights(dataset, cells=robust == "cells", seed=seed))[0])
    return found


def gather_all(datasets: Sequence[Opened], *, norms: bool = False) -> list[Moments]:
    """Gather the moments of datasets that are not moments already, all in the same way.

    With fewer rows than columns in all, the rows are kept; otherwise each scatter becomes a matrix. `norms` asks for
    what Ledoit-Wolf shrinkage of the backgrounds needs.
    """
    in_memory = [dataset for dataset in datasets if isinstance(dataset, Source) and dataset.in_memory]
    n_rows = sum(dataset.n_rows or 0 for dataset in in_memory)
    wide = len(in_memory) == len(datasets) and n_rows < (in_memory[0].width or 0)
    kind: Kind = "rows" if wide else "scatter"
    names = dataset_names(len(datasets))
    moments = [
        dataset
        if isinstance(dataset, Moments)
        else gather(dataset, kind=kind, norms=norms and number > 0, single=False, name=name)
        for number, (name, dataset) in enumerate(zip(names, datasets, strict=True))
    ]
    for name, part in zip(names[1:], moments[1:], strict=True):
        check_same_columns(part.n_features, None, name, moments[0].n_features, None, "the target")
    return moments


def keeps_rows(dataset: Opened) -> bool:
    """Tell whether all rows of a dataset are in memory: the dataset itself, or moments that keep its rows."""
    return isinstance(dataset, KeptRows) or (isinstance(dataset, Source) and dataset.in_memory)


def rows_of(dataset: Opened) -> Rows:
    """Give the rows of a dataset that keeps them; those of moments without weights are centred."""
    if isinstance(dataset, CentredRows) and dataset.row_weights is not None:
        return dataset.rows
    if isinstance(dataset, KeptRows):
        return dataset.centred_rows()
    assert isinstance(dataset, Source)
    return dataset.rows()


def weights_of(dataset: Opened) -> Float | None:
    """Give the weights of the rows of a dataset that keeps them; None if they count equally."""
    if isinstance(dataset, KeptRows):
        weights = dataset.row_weights
    else:
        assert isinstance(dataset, Source)
        weights = dataset.batch().weights
    return None if weights is None else to_host(weights)


def facts_of(dataset: Opened) -> dict[str, Float | None]:
    """Give what is known of the weights of rows in memory, to put it beside other coordinates of these rows."""
    known = dataset.batch() if isinstance(dataset, Source) else dataset
    return {"weights": weights_of(dataset), "learned": getattr(known, "learned", None)}


def without_weightless(datasets: Sequence[Opened]) -> list[Opened]:
    """Leave out the rows of weight zero of datasets in memory. Their subjects are those of the other rows then."""
    weights = [weights_of(dataset) for dataset in datasets]
    if all(own is None or np.all(own > 0.0) for own in weights):
        return list(datasets)
    found: list[Opened] = []
    chosen = []
    for dataset, own in zip(datasets, weights, strict=True):
        chosen.append(np.ones(rows_of(dataset).shape[0], dtype=np.bool_) if own is None else own > 0.0)
        if isinstance(dataset, Source):
            batch = dataset.batch().taken(chosen[-1], 0)
            found.append(InMemory(batch.rows, dataset.name, dataset.columns, words=batch))
        elif isinstance(dataset, CentredRows) and own is not None:
            learned = None if dataset.learned is None else take(dataset.learned, chosen[-1])
            found.append(CentredRows(take(dataset.rows, chosen[-1]), own[chosen[-1]], learned))
        else:
            found.append(dataset)
    subjects = subjects_of(datasets)
    if subjects is None:
        return found
    return [*attached([part for part in found if isinstance(part, Source)], chosen_subjects(subjects, chosen))]


def require_rows(datasets: Sequence[Opened], what: str, *, sampled: bool = False) -> None:
    """Refuse datasets, the target first, whose rows are not in memory.

    With `sampled` a few rows are enough. They can be drawn from every dataset that can be read again.
    """
    for name, dataset in zip(dataset_names(len(datasets)), datasets, strict=True):
        if keeps_rows(dataset):
            continue
        if isinstance(dataset, Source) and not dataset.again:
            problem = "{name} is an iterator of batches, which can be read only once, but {what} reads its rows again"
        elif isinstance(dataset, Source):
            problem = "{name} is read in parts, but {what} needs all rows in memory"
        else:
            problem = "{name} is given as {type}, but {what} needs its rows"
        if not (sampled and isinstance(dataset, Source) and dataset.again):
            raise InvalidTypeError(
                problem,
                name=name,
                what=what,
                type=type(dataset).__name__,
                advice="Give an array (a memory-mapped one is not loaded as a whole), a frame or a sparse matrix.",
            )


def _specimen(dataset: Opened) -> Any:
    return dataset.mean if isinstance(dataset, Moments) else dataset.specimen


def _width(dataset: Opened) -> int | None:
    return dataset.n_features if isinstance(dataset, Moments) else dataset.width


def _columns(dataset: Opened) -> list[str] | None:
    return None if isinstance(dataset, Moments) else dataset.columns
