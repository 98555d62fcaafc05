"""One function for every kind of file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from standout._validation import check_file, check_patterns
from standout.io._choice import Wanted
from standout.io._formats import find_reader
from standout.io._table import Table


def read_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    select: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
    variable: str | None = None,
) -> Table:
    r"""What numbers are in this file, and what are their rows and columns called?

    Parameters
    ----------
    path : str or path
        A file: CSV, TSV or text with a header (.csv, .tsv, .tab, .txt, also with .gz), Parquet (.parquet, .pq), Arrow
        (.arrow, .ipc, .feather), NumPy (.npy, .npz, sparse ones of SciPy too), MATLAB (.mat) or AnnData (.h5ad).
    format : {"csv", "tsv", "parquet", "arrow", "feather", "npy", "npz", "mat", "h5ad"}, optional
        What the file is, if its extension does not tell.
    id_column, label_column, group_column : str, optional
        Columns that name rows, colour them, and say to which dataset they belong. None of them goes into a fit. In an
        .npz or .mat file they can also be vectors beside the matrix, and in an .h5ad file they are columns of ``obs``.
    select, drop : str or sequence of str
        Columns to take (all, if none is named) and to leave out, by name or by pattern: ``"gene_*"``.
    variable : str, optional
        Which array of an .npz or .mat file is meant; a layer, or ``"raw"``, of an .h5ad file.

    Returns
    -------
    Table
        The numbers, float64 unless all are float32, with NaN where a value is missing; and the names.

    Notes
    -----
    Columns of numbers, truth values and decimals are data. Text and dates are not, and an error names them. In a text
    file an empty cell, NA, NaN, null and the like are missing values; the delimiter of a .csv or .txt file is the one
    among comma, semicolon, tab and bar that its header has most of.

    Names of rows need no `id_column` where the format has a place for them: the index that pandas keeps in Parquet and
    Feather, ``obs_names`` of an .h5ad file, and a first column without a name in a text file, as pandas and R write it.
    The latter must hold words, or whole numbers without repetition: otherwise it might be data, and is an error.

    CSV, Parquet and Arrow are turned into rows a batch at a time: memory is that of the result and little more.

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
    file = check_file(path)
    named = {"ids": id_column, "labels": label_column, "groups": group_column}
    wanted = Wanted(
        {role: column for role, column in named.items() if column is not None},
        check_patterns(select, "select"),
        check_patterns(drop, "drop"),
        variable,
    )
    read = find_reader(file, format, wanted)
    with _sayable(file) as place:
        return read(place, wanted, str(path))


@contextmanager
def _sayable(file: Path) -> Iterator[Path]:
    """Give a name for a file that every reader can say: Arrow knows names in UTF-8 only, and others need not be."""
    if _is_utf8(file):
        yield file
        return
    with file.open("rb") as opened:
        yield Path(f"/dev/fd/{opened.fileno()}")


def _is_utf8(file: Path) -> bool:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        return False
    return True
