"""From files, folders and patterns to one dataset whose columns are known."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from standout._validation import (
    as_checkpoint_folder,
    check_batch_rows,
    check_columns_of_file,
    check_patterns,
    check_some_columns,
    check_unique_columns,
    check_width_of_file,
)
from standout.io._choice import matching
from standout.io._pieces import Head, Pieces
from standout.io._scan_files import find_pieces, stamp
from standout.io._scanned import Scan, ScannedFile
from standout.io._table import made_up_names

Format = Literal["csv", "tsv", "parquet", "arrow", "feather", "npy", "zarr", "h5ad"]


def scan(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: str | Sequence[str] | None = None,
    format: Format | None = None,
    variable: str | None = None,
    batch_rows: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Scan:
    """How are files fitted that are larger than memory, or many?

    Only what the files say of themselves (names, types, numbers of rows) is read at once, and checked. The rows are
    read by whatever the scan is given to, batch by batch, so that memory does not depend on their number.

    Parameters
    ----------
    paths : str, path, or list of them
        A file, a folder, a pattern (``"target/*.parquet"``, ``"**/*.csv"``), or several. What a folder or a pattern
        brings is sorted by name; in a folder, files whose names start with ``.`` or ``_`` are left out.
    columns : str or sequence of str, optional
        Columns to take, in this order, by name or by pattern (``"gene_*"``). None takes all columns of the first file.
        Columns of further files are matched by name, in whatever order they are.
    format : {"csv", "tsv", "parquet", "arrow", "feather", "npy", "zarr", "h5ad"}, optional
        What the files are, if their extensions do not tell.
    variable : str, optional
        Which matrix is meant: a layer, or ``"raw"``, of an .h5ad file (else X); an array of a Zarr group.
    batch_rows : int, optional
        Rows to read at a time. None chooses about 48 MB.
    checkpoint : str or path, optional
        A folder in which sums over the rows are kept about once a second. A pass that was interrupted, even by a crash,
        goes on from there and gives the very same result, bit for bit. The sum of a finished pass stays, so that the
        next fit on the same files need not read them; delete the folder when it is no longer wanted. Several scans
        and several processes may share a folder. Files that have changed since are read anew.
    progress : bool, default=False
        Show a progress bar for each pass (needs ``standout[progress]``).

    Returns
    -------
    Scan
        A dataset for `fit`, `transform` and all else that takes rows in batches.

    Notes
    -----
    Values must be finite numbers: text, dates and missing values are errors that say where they are. Matrices that are
    sparse in the file (CSR in .h5ad, or in a Zarr store that AnnData has written) stay sparse. The next batch is read
    while the present one is worked on.

    Parquet is the fastest format here. A pass over CSV that goes on from a checkpoint parses the file that it was in
    from the start, though nothing is added up twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(3):
    ...         np.save(pathlib.Path(folder, f"target-{number}.npy"), rng.normal(size=(100, 4)) * [5, 1, 1, 3])
    ...         np.save(pathlib.Path(folder, f"control-{number}.npy"), rng.normal(size=(100, 4)) * [5, 1, 1, 1])
    ...     target = standout.scan(f"{folder}/target-*.npy")
    ...     dpca = standout.DiscriminativePCA(1).fit(target, background=standout.scan(f"{folder}/control-*.npy"))
    ...     scores = dpca.transform(target)
    >>> int(np.argmax(np.abs(dpca.components_))), scores.shape
    (3, (300, 1))
    """
    patterns = check_patterns(columns, "columns")
    n_batch = check_batch_rows(batch_rows)
    folder = as_checkpoint_folder(checkpoint)
    found = find_pieces(paths, format, variable)
    first = found[0].head()
    chosen = _chosen(found[0], first, patterns)
    names = None if first.names is None else [first.names[place] for place in chosen]
    scanned = [_settled(found[0], first, chosen, n_batch)]
    for pieces in found[1:]:
        head = pieces.head()
        places = _places(pieces, head, names, chosen, first, found[0].source)
        scanned.append(_settled(pieces, head, places, n_batch))
    return Scan(scanned, names, checkpoint=folder, progress=bool(progress))


def _chosen(pieces: Pieces, head: Head, patterns: tuple[str, ...]) -> Sequence[int]:
    """Choose the columns of the first file."""
    names = head.names if head.names is not None else made_up_names(head.width)
    if patterns:
        each = (sorted(matching([pattern], names, "columns", pieces.source)) for pattern in patterns)
        chosen = list(dict.fromkeys(place for places in each for place in places))
    else:
        chosen = [place for place, name in enumerate(names) if head.index is None or name != head.index]
    check_unique_columns([names[place] for place in chosen], pieces.source)
    check_some_columns(len(chosen), pieces.source)
    return _compact(chosen)


def _places(
    pieces: Pieces, head: Head, names: list[str] | None, chosen: Sequence[int], first: Head, reference: str
) -> Sequence[int]:
    """Find the columns of a further file: by name, or by position where one of the two has no names."""
    if names is None or head.names is None:
        check_width_of_file(head.width, first.width, pieces.source, reference)
        return chosen
    if head.names == first.names:
        return chosen
    known = {name: place for place, name in enumerate(head.names)}
    # Columns that are not asked for may differ; if all are, none may.
    everything = set(names) == set(first.names or ()) - {first.index}
    extra = [name for name in head.names if name not in set(names) and name != head.index] if everything else []
    check_columns_of_file([name for name in names if name not in known], extra, pieces.source, reference)
    check_unique_columns([name for name in head.names if name in set(names)], pieces.source)
    return _compact([known[name] for name in names])


def _compact(places: list[int]) -> Sequence[int]:
    """Keep all columns in their order as a range: a scan may have many files and columns."""
    return range(len(places)) if places == list(range(len(places))) else tuple(places)


def _settled(pieces: Pieces, head: Head, features: Sequence[int], batch_rows: int | None) -> ScannedFile:
    form = pieces.form(features)
    return ScannedFile(pieces, features, form, form.batch_rows(batch_rows), head.n_rows, stamp(pieces.path))
