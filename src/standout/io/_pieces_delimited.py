"""CSV and TSV files, also gzipped, piece by piece."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from standout._arrays import Array
from standout._validation import check_index, check_kinds, require_extra
from standout.io._arrow import in_batches
from standout.io._delimited import has_text, inferred, is_date, is_read, open_reader
from standout.io._delimited_faults import is_number, reject_fault
from standout.io._delimited_layout import Layout, find_layout, rows_of_text
from standout.io._pieces import Form, Head, Pieces


@dataclass(frozen=True)
class DelimitedPieces(Pieces):
    """A file of cells, parsed block by block."""

    kind: ClassVar[str] = "csv"

    def head(self) -> Head:
        """Read the header and the first row."""
        layout = self._layout()
        index = "" if layout.names[0] == "" else None
        if index is not None:
            _, first = next(rows_of_text(self.path, layout))
            whole = first[0].strip().lstrip("+-").isdigit()
            check_index(first[0], is_number(first[0]) and not whole, False, self.source)
        return Head(layout.names, len(layout.names), None, index)

    def form(self, features: Sequence[int]) -> Form:
        """Find out from the first block what the columns hold."""
        layout = self._layout()
        types = self._types(layout, features)
        names = [layout.names[place] for place in features]
        check_kinds({"dates or times": [n for n, t in zip(names, types, strict=True) if is_date(t)]}, self.source)
        if not all(is_read(kind) for kind in types):
            self._refuse(layout, features, None)
        return Form(np.dtype(np.float64), 8 * len(features), text_bytes=layout.row_length)

    def batches(self, features: Sequence[int], form: Form, n_rows: int, start: int) -> Generator[Array]:
        """Give batches of rows; those before the first one have to be parsed all the same."""
        import pyarrow as pa

        layout = self._layout()
        types = self._types(layout, features)
        needed = {
            str(place): kind if pa.types.is_boolean(kind) else pa.float64()
            for place, kind in zip(features, types, strict=True)
        }

        def found() -> Iterator[Any]:
            try:
                with open_reader(self.path, layout, list(needed), needed, has_text(layout, features)) as reader:
                    yield from reader
            except (ValueError, OSError) as error:
                self._refuse(layout, features, error)

        yield from in_batches(found(), range(len(features)), form.dtype, n_rows, start)

    def _layout(self) -> Layout:
        require_extra("pyarrow", "files", "reading CSV and TSV files")
        return find_layout(self.path, self.source, self.kind)

    def _types(self, layout: Layout, features: Sequence[int]) -> list[Any]:
        try:
            return inferred(self.path, layout, features)
        except (ValueError, OSError) as error:
            self._refuse(layout, features, error)

    def _refuse(self, layout: Layout, features: Sequence[int], error: Exception | None) -> NoReturn:
        """Say what is wrong with the file, and where."""
        rows = partial(rows_of_text, self.path, layout)
        reject_fault(rows, layout.names, features, layout.delimiter, self.source, error)


class TabbedPieces(DelimitedPieces):
    """A file of cells with tabs between them."""

    kind = "tsv"
