"""Files that are there as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def written_aside(final: Path) -> Iterator[Path]:
    """Give another name to write to, which becomes the file once all went well; if not, nothing is left of it."""
    draft = final.with_name(f".{uuid4().hex}.part")
    try:
        yield draft
        draft.replace(final)
    finally:
        draft.unlink(missing_ok=True)
