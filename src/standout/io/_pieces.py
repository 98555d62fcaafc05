"""What every kind of file must offer to be read piece by piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from standout._arrays import Rows

# What is read, checked and multiplied at a time. Three such batches are in memory at once: the one that is worked on,
# the one that is being read, and the columns that it is made of.
BATCH_BYTES = 48 * 2**20
FEWEST_ROWS = 16


@dataclass(frozen=True)
class Head:
    """What a file says of itself before its rows are read.

    Attributes
    ----------
    names : list of str or None
        Names of all columns, where there are names.
    width : int
        Number of all columns.
    n_rows : int or None
        Number of rows, where the file tells.
    index : str or None
        The column that holds names of rows, by the convention of the format.
    """

    names: list[str] | None
    width: int
    n_rows: int | None
    index: str | None = None


@dataclass(frozen=True)
class Form:
    """In which form the chosen columns of a file are.

    Attributes
    ----------
    dtype : dtype
        Of the batches.
    row_bytes : int
        Size of one row in memory, of sparse data on average.
    chunk_rows : int
        Rows that the file keeps together: whoever reads fewer reads them several times.
    text_bytes : int
        Length of a row in a file of text, for a progress bar.
    """

    dtype: Any
    row_bytes: int
    chunk_rows: int = 1
    text_bytes: int = 0

    def batch_rows(self, wanted: int | None) -> int:
        """Give the number of rows of a batch: the one that is wanted, or as many whole chunks as there is room for."""
        if wanted is not None:
            return wanted
        rows = max(BATCH_BYTES // max(self.row_bytes, 1), FEWEST_ROWS)
        return max(rows // self.chunk_rows, 1) * self.chunk_rows


@dataclass(frozen=True)
class Pieces(ABC):
    """One file that is read piece by piece. It is opened for each question, and can be sent to other processes.

    Attributes
    ----------
    path : Path
    source : str
        What messages call the file.
    variable : str or None
        Which of several matrices in the file is meant.
    """

    path: Path
    source: str
    variable: str | None = None

    takes_variable: ClassVar[bool] = False

    @abstractmethod
    def head(self) -> Head:
        """Read what the file says of itself."""

    @abstractmethod
    def form(self, features: Sequence[int]) -> Form:
        """Look at the columns at these positions, and refuse what is no number."""

    @abstractmethod
    def batches(self, features: Sequence[int], form: Form, n_rows: int, start: int) -> Generator[Rows]:
        """Give these columns in batches of `n_rows` rows, from the row `start` on."""
