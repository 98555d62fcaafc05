"""Values that may stand for missing ones, such as -999999999: far beyond all others, and all nines, say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from standout._arrays import Rows, is_sparse
from standout._messages import Message
from standout.report._format import shortened

# A placeholder is at least this many times as large as all other values of its column.
FAR = 100.0
LEAST = 99.0
# Largest and smallest whole numbers of a type, and what NetCDF files are filled with.
KNOWN = (32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0, 4294967295.0, 9.96921e36)
MOST_NAMED = 3


class Placeholders:
    """Looks for placeholders batch by batch.

    Attributes
    ----------
    found : dict
        For each value, the number of its cells in each column.
    """

    def __init__(self) -> None:
        self.found: dict[float, dict[int, int]] = {}
        self._by_column = True

    def add(self, rows: Rows) -> None:
        """Look at the largest and the smallest value of each column."""
        # Columns of a sparse matrix are not at hand: all stored numbers are looked at together.
        self._by_column = not is_sparse(rows)
        table = rows if self._by_column else rows.data[:, np.newaxis]
        if not table.shape[0]:
            return
        for extremes in (table.min(axis=0), table.max(axis=0)):
            sizes = np.abs(extremes.astype(np.float64))
            for place in np.flatnonzero((sizes >= LEAST) & _is_round(sizes)):
                value = extremes[place]
                if not _is_written_by_hand(float(sizes[place])):
                    continue
                column = table[:, place]
                others = column[column != value]
                if not others.size or sizes[place] > FAR * np.abs(others.astype(np.float64)).max():
                    cells = self.found.setdefault(float(value), {})
                    cells[int(place)] = cells.get(int(place), 0) + int(column.size - others.size)

    def messages(self, name: str, n_rows: int, features: Sequence[str]) -> Iterator[Message]:
        """Say which values they are, and where; a column that holds nothing else is constant."""
        for value, cells in self.found.items():
            columns = {place: count for place, count in cells.items() if count < n_rows}
            if not columns:
                continue
            where, more = "", len(columns) - MOST_NAMED
            if self._by_column and max(columns) < len(features):
                where = ", in " + ", ".join(shortened(features[place]) for place in list(columns)[:MOST_NAMED])
                where += f" and {more} more columns" if more > 0 else ""
            yield Message(
                "the value {value} stands in {n_cells} cell(s) of {name}{where}, far beyond all others there: it may "
                "stand for a missing value",
                value=f"{value:.10g}",
                n_cells=sum(columns.values()),
                name=name,
                where=where,
                advice="If so, leave such cells empty, and choose what to do about missing values.",
                kind="placeholder",
            )


def _is_round(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return np.asarray(sizes == np.floor(sizes))


def _is_written_by_hand(size: float) -> bool:
    """Tell whether a number is all nines, a large power of ten, or a limit of a type."""
    if any(abs(size - known) <= 1e-6 * known for known in KNOWN):
        return True
    digits, _, exponent = f"{size:.12e}".partition("e")
    digits = digits.replace(".", "").rstrip("0")
    return (set(digits) == {"9"} and int(exponent) >= 1) or (digits == "1" and int(exponent) >= 9)
