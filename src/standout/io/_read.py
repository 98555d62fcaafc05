"""From files to a dataset: not read yet (`scan`), or read at once (`read_table`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from standout._checks import check_choice, check_whole
from standout.io._checkpoint import checkpoint_folder
from standout.io._columns import ask, choose, choose_again
from standout.io._files import find_readers, readable, stamp
from standout.io._reader import Head, Reader
from standout.io._scan import MISSING_IN_SCANS, Scan, ScannedFile
from standout.sources import Table

Format = Literal["csv", "tsv", "parquet", "arrow", "feather", "npy", "npz", "mat", "h5ad", "zarr"]


def scan(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    beside: str | Sequence[str] = (),
    missing: Literal["error", "keep", "drop-rows"] = "error",
    format: Format | None = None,
    variable: str | None = None,
    batch_rows: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
    in_parts: bool = True,
) -> Scan:
    """How are files fitted that are larger than memory, or many?

    Only metadata (names, types, numbers of rows) are read at once, and checked. The rows are read by whatever the scan
    is given to, batch by batch, so that memory does not depend on their number.

    Parameters
    ----------
    paths : str, path, or list of them
        A file, a folder, a pattern (``"target/*.parquet"``, ``"**/*.csv"``), or several. The files of a folder or a
        pattern are sorted by name; in a folder, files whose names start with ``.`` or ``_`` are left out.
    columns : str or sequence of str, optional
        Columns to take, in this order, by name or by pattern (``"gene_*"``). None takes all columns of the first file.
        Columns of further files are matched by name, in any order.
    drop : str or sequence of str
        Columns to leave out, by name or by pattern.
    where : mapping of str to value or list of values, optional
        Rows to take: those that have one of these values in a column. ``where={"condition": "stim"}`` makes a target of
        a file that holds the background, too. Values are compared as text, whole numbers without a decimal point.
    id_column, label_column, group_column : str, optional
        Columns that name rows, colour them, and say to which group they belong. They do not go into a fit, and neither
        do columns of `where`. In an .npz or .mat file they can also be vectors beside the matrix, and in an .h5ad file
        they are columns of ``obs``.
    beside : str or sequence of str
        Columns to keep beside the rows as words, such as subjects and covariates, for ``fit(..., groups="donor")``.
        They do not go into a fit either.
    missing : {"error", "keep", "drop-rows"}, default="error"
        What to do about missing values: refuse them, give them as NaN (for a step of a pipeline that fills them in), or
        leave out the rows that have one.
    format : {"csv", "tsv", "parquet", "arrow", "feather", "npy", "npz", "mat", "h5ad", "zarr"}, optional
        What the files are, if their extensions do not tell.
    variable : str, optional
        Which matrix is meant: an array of an .npz or .mat file or of a Zarr group; a layer, or ``"raw"``, of an .h5ad
        file (else X).
    batch_rows : int, optional
        Rows to read at a time. None chooses about 48 MB.
    checkpoint : str or path, optional
        A folder in which sums over the rows are kept about once a second. A pass that was interrupted, even by a crash,
        goes on from there and gives the same result, bit for bit. The sum of a finished pass stays, so that the next
        fit on the same files need not read them; delete the folder when it is no longer wanted. Several scans and
        several processes may share a folder. Files that have changed since are read anew.
    progress : bool, default=False
        Show a progress bar for each pass (needs ``standout[progress]``).
    in_parts : bool, default=True
        Whether files whose rows cannot be read without all others (a CSC matrix) are refused. They can be read at once,
        with ``Scan.read``.

    Returns
    -------
    Scan
        A dataset for `fit`, `transform` and whatever else takes rows in batches.

    See Also
    --------
    standout.io.read_table : The same, read at once.

    Notes
    -----
    Text and dates are errors that say where they are. Matrices that are sparse in the file (CSR in .h5ad, or in a Zarr
    store that AnnData has written) stay sparse. The next batch is read while the present one is worked on.

    Parquet is the fastest format here. A pass over CSV that goes on from a checkpoint parses the file that it was in
    from the start, though nothing is added up twice. An .npz or .mat file is read as a whole.

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
    roles = {"ids": id_column, "labels": label_column, "groups": group_column}
    asked = ask(columns, drop, roles, where, beside)
    if batch_rows is not None:
        batch_rows = check_whole(batch_rows, "batch_rows")
    folder = checkpoint_folder(checkpoint)
    check_choice(missing, "missing", MISSING_IN_SCANS)
    readers = find_readers(paths, format, variable)
    heads = [_head(reader) for reader in readers]
    wanted = choose(heads[0], asked, readers[0].source)
    scanned = []
    for reader, head in zip(readers, heads, strict=True):
        its = choose_again(head, heads[0], wanted, asked, reader.source, readers[0].source)
        with readable(reader) as opened:
            form = opened.form(its.features)
            if "ids" not in asked.roles:
                opened.check_row_names(its)
        n_rows = form.batch_rows() if batch_rows is None else batch_rows
        scanned.append(ScannedFile(reader, its, form, n_rows, head.n_rows, stamp(reader.path)))
    made = Scan(
        scanned,
        [heads[0].called[place] for place in wanted.features],
        has_names=heads[0].names is not None,
        where=asked.where,
        missing=missing,
        checkpoint=folder,
        progress=bool(progress),
    )
    if in_parts:
        made.check_in_parts()
    return made


def read_table(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    beside: str | Sequence[str] = (),
    format: Format | None = None,
    variable: str | None = None,
) -> Table:
    r"""What numbers are in this file, and what are their rows and columns called?

    Parameters
    ----------
    path : str, path, or list of them
        A file: CSV, TSV or text with a header (.csv, .tsv, .tab, .txt, also with .gz), Parquet (.parquet, .pq), Arrow
        (.arrow, .ipc, .feather), NumPy (.npy, .npz, sparse ones of SciPy too), MATLAB (.mat), AnnData (.h5ad) or Zarr;
        or several of one kind, a folder or a pattern, as in :func:`scan`.
    columns, drop, where, id_column, label_column, group_column, beside, format, variable
        As in :func:`scan`.

    Returns
    -------
    Table
        The numbers, float64 unless all are float32, with NaN where a value is missing; and the names.

    See Also
    --------
    scan : The same, read batch by batch when it is needed.

    Notes
    -----
    Columns of numbers, truth values and decimals are data. Text and dates are not, and an error names them. In a text
    file an empty cell, NA, NaN, null and the like are missing values; the delimiter of a .csv or .txt file is the one
    among comma, semicolon, tab and bar that its header has most of.

    Names of rows need no `id_column` if the format has a place for them: the index that pandas keeps in Parquet and
    Feather, ``obs_names`` of an .h5ad file, and a first column without a name in a text file, as pandas and R write it.
    The latter must hold words, or whole numbers without repetition: otherwise it might be data, and is an error.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from standout.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "mice.csv")
    ...     _ = file.write_text("mouse,weight,length,genotype\nA,21.5,9,wild\nB,,8,mutant\n")
    ...     mice = read_table(file, id_column="mouse", group_column="genotype")
    >>> mice.columns, mice.values.tolist(), mice.groups.tolist()
    (['weight', 'length'], [[21.5, 9.0], [nan, 8.0]], ['wild', 'mutant'])
    """
    return scan(
        path,
        columns=columns,
        drop=drop,
        where=where,
        id_column=id_column,
        label_column=label_column,
        group_column=group_column,
        beside=beside,
        missing="keep",
        format=format,
        variable=variable,
        in_parts=False,
    ).read()


def column_names_of(path: Any, *, format: str | None = None, variable: str | None = None) -> list[str]:
    """Name the columns of a file, and the vectors beside them, without reading its rows."""
    head = _head(find_readers(path, format, variable)[0])
    return [*head.called, *head.beside]


def _head(reader: Reader) -> Head:
    with readable(reader) as opened:
        return opened.head()
