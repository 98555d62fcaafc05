"""Datasets: tables of finite real numbers with the same columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from standout._arrays import Rows, all_finite, is_sparse, row_blocks
from standout._validation._devices import as_foreign_rows, dispatches, reject_on_device
from standout._validation._sources import Source, reject_source
from standout._validation._words import listed
from standout._xp import is_foreign, namespace


def as_rows(data: Any, name: str, *, min_rows: int = 2, finite: bool = False, host: bool = False) -> Rows:
    """Check that the data are a table of real numbers, and give it as an array or a CSR matrix, uncopied if possible.

    Finiteness is looked at only if asked for: a NaN shows in the moments as well, where it costs no extra pass. With
    `host`, arrays of other libraries are refused.
    """
    reject_source(
        data,
        name,
        "rows are needed as a whole here",
        "Give an array, a frame or a sparse matrix; fit (without target_label) and transform take parts.",
    )
    if dispatches(data):
        if host:
            reject_on_device(data, f"this use of {name}", "Copy the array to the host first.")
        rows = as_foreign_rows(data, name, min_rows)
        if finite:
            require_finite_rows(rows, name)
        return rows
    if sparse.issparse(data) and data.ndim == 2 and data.format != "csr":
        data = data.tocsr()
    try:
        rows = check_array(
            data,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=1,
        )
        if rows.dtype.kind in "mM":
            raise TypeError(f"dates and times ({rows.dtype}) are not numbers. Convert them to numbers first.")
        if rows.dtype.kind not in "biuf":
            rows = rows.astype(np.float64)
    except (ValueError, TypeError) as error:
        text = _text_columns(data)
        if text:
            raise ValueError(
                f"there is text in {listed('column', text)} of {name}. Drop these columns or turn them into numbers."
            ) from None
        # scikit-learn's message over several lines as one, without the array that it may show.
        reason = re.sub(r"(array=)?\[.*\]\.?", "", " ".join(str(error).split()))
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} cannot be used: {reason}") from None
    if rows.shape[0] < min_rows:
        raise ValueError(
            f"too few rows in {name}: {rows.shape[0]} sample(s) (shape={rows.shape}), but the least is {min_rows}. "
            "Give more rows."
        )
    if rows.dtype.kind == "f" and rows.dtype.itemsize not in (4, 8):
        rows = rows.astype(np.float64)
    if finite:
        require_finite_rows(rows, name)
    return rows


def reject_too_few(name: str, n_rows: int, least: int) -> NoReturn:
    """Refuse a dataset that had too few rows when all of it had been read."""
    raise ValueError(f"too few rows in {name}: {n_rows} sample(s), but the least is {least}. Give more rows.")


def reject_spent(name: str, n_rows: int, least: int) -> NoReturn:
    """Refuse an iterator that had too few rows, perhaps because it has been read before."""
    raise ValueError(
        f"{name} gave {n_rows} sample(s) in batches, but the least is {least}. "
        "An iterator can be read only once: pass a fresh one."
    )


def check_dask_array(data: Any, name: str) -> None:
    """Refuse a Dask array that is no table of real numbers."""
    if data.ndim != 2:
        raise ValueError(f"{name} is a Dask array of {data.ndim} dimension(s), but a table has 2. Reshape it.")
    if data.dtype.kind not in "biuf":
        raise TypeError(f"{name} is a Dask array of {data.dtype}, but real numbers are needed. Convert it.")
    if np.isnan(data.shape[1]):
        raise ValueError(
            f"{name} is a Dask array with an unknown number of columns. Call its compute_chunk_sizes() first; an "
            "unknown number of rows does no harm."
        )


def require_finite(datasets: Sequence[Any]) -> None:
    """Refuse NaN and infinity in datasets that are there as arrays; batches are checked as they pass."""
    for number, dataset in enumerate(datasets):
        if not isinstance(dataset, Source):
            require_finite_rows(dataset, f"background {number}" if number else "the target")


def require_finite_rows(rows: Rows, name: str) -> None:
    """Refuse NaN and infinity."""
    if not all_finite(rows):
        reject_non_finite(rows, name)


def check_squares(variance: float, name: str) -> None:
    """Refuse finite data whose squares are not."""
    if not np.isfinite(variance):
        raise ValueError(
            f"there are values too large to square in {name}: their variance is not a finite number. Rescale the data."
        )


def reject_non_finite(rows: Rows, name: str) -> None:
    """Say where the first NaN or infinity stands."""
    bad_rows, bad_columns = _first_non_finite(rows)
    if bad_rows is None:
        check_squares(np.inf, name)
    value = float(rows[bad_rows, bad_columns])
    shown = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"there is NaN or infinity in {name}: the first is {shown} in row {bad_rows}, column {bad_columns}. "
        "Drop such rows or fill them in, in the target and in every background alike."
    )


def column_names(data: Any) -> list[str] | None:
    """Give the column names of a frame whose names are all strings, as scikit-learn counts them."""
    columns = getattr(data, "columns", None)
    if columns is None or not hasattr(data, "shape"):
        return None
    names = list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def check_same_columns(
    width: int,
    columns: list[str] | None,
    name: str,
    expected: int,
    names: list[str] | None,
    reference: str,
    remedy: str = "Give every dataset the same columns in the same order.",
) -> None:
    """Check that a dataset has as many columns as the reference, and the same ones in the same order."""
    if columns is not None and names is not None and columns != names:
        found, needed = set(columns), set(names)
        missing = [column for column in names if column not in found]
        extra = [column for column in columns if column not in needed]
        counts = f"{name} has {width} features, but {reference} has {expected}" if width != expected else ""
        parts = [
            *([counts] if counts else []),
            *([f"{name} lacks {listed('column', missing)}"] if missing else []),
            *([f"{name} has {listed('column', extra)}, which {reference} has not"] if extra else []),
        ]
        if not parts:
            parts = [f"{name} has the columns of {reference} in another order"]
        raise ValueError(f"{'; '.join(parts)}. {remedy}")
    if width != expected:
        raise ValueError(f"{name} has {width} features, but {reference} has {expected}. {remedy}")


def check_columns_of_batches(datasets: Sequence[Any], columns: Sequence[list[str] | None]) -> None:
    """Compare the column names of all datasets, now that batches have been read and theirs are known."""
    names = [data.columns if isinstance(data, Source) else given for data, given in zip(datasets, columns, strict=True)]
    known = [(number, found) for number, found in enumerate(names) if found is not None]
    for number, found in known[1:]:
        first, reference = known[0]
        of = f"background {first}" if first else "the target"
        check_same_columns(len(found), found, f"background {number}", len(reference), reference, of)


def as_backgrounds(background: Any, target: Any) -> list[Any]:
    """Give the backgrounds as a list, whatever form they came in.

    A list or tuple holds several backgrounds, unless its elements are plain rows of numbers: then it is one array.
    """
    if background is None:
        return []
    several = isinstance(background, list | tuple) and not (
        len(background) > 0 and all(_is_plain_row(element) for element in background)
    )
    backgrounds = list(background) if several else [background]
    if not backgrounds:
        raise ValueError("background is an empty list. Pass at least one dataset, or None for PCA of the target.")
    iterators = [data for data in (target, *backgrounds) if isinstance(data, Iterator)]
    if len({id(iterator) for iterator in iterators}) < len(iterators):
        raise ValueError(
            "the same iterator is given for two datasets, but it can be read only once. Pass a fresh one for each."
        )
    return backgrounds


def reject_batches(datasets: Sequence[Any], approximation: Any) -> None:
    """Refuse iterators where the coordinates are chosen from the rows."""
    if any(isinstance(dataset, Source) and not dataset.again for dataset in datasets):
        raise TypeError(
            f"approximation={approximation!r} chooses its coordinates from the rows, but an iterator of batches can be "
            "read only once. Use approximation='fourier', or an array of landmarks."
        )


def reject_iterator(data: Any, method: str) -> None:
    """Refuse an iterator where the rows are needed more than once."""
    if isinstance(data, Iterator):
        raise TypeError(
            f"{method} cannot take an iterator of batches, which can be read only once. "
            "Call fit with the iterator, then transform on each batch."
        )


def _is_plain_row(element: Any) -> bool:
    return not (isinstance(element, Iterator) or is_sparse(element) or hasattr(element, "columns")) and (
        np.ndim(element) == 1
    )


def _text_columns(data: Any) -> list[str]:
    """Names of a frame's columns that do not hold numbers."""
    columns = getattr(data, "columns", None)
    if columns is None or not hasattr(data, "shape"):
        return []
    return [str(name) for name in columns if not _is_numeric(data[name])]


def _is_numeric(column: Any) -> bool:
    try:
        np.asarray(column).astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _first_non_finite(rows: Rows) -> tuple[Any, Any]:
    if is_sparse(rows):
        coo = rows.tocoo()
        bad = np.flatnonzero(~np.isfinite(coo.data))
        return (int(coo.row[bad[0]]), int(coo.col[bad[0]])) if bad.size else (None, None)
    if is_foreign(rows):
        return _first_on_device(rows)
    for start in range(0, rows.shape[0], 4096):
        bad_cells = np.argwhere(~np.isfinite(rows[start : start + 4096]))
        if bad_cells.size:
            return start + int(bad_cells[0, 0]), int(bad_cells[0, 1])
    return None, None


def _first_on_device(rows: Rows) -> tuple[Any, Any]:
    xp = namespace(rows)
    start = 0
    for block in row_blocks(rows):
        bad = xp.reshape(~xp.isfinite(block), (-1,))
        if bool(xp.any(bad)):
            place = int(xp.argmax(xp.astype(bad, xp.uint8)))
            return start + place // block.shape[1], place % block.shape[1]
        start += block.shape[0]
    return None, None
