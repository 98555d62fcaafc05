"""Files, written under another name first, so that a half-written one is never taken for a result."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from experiments._record import Record


def write(path: Path, content: bytes | str) -> None:
    """Write a file at once or not at all."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    temporary.replace(path)


def as_json(record: Record) -> str:
    """Give a record as JSON; what is not finite becomes null, which JSON has no number for."""
    return json.dumps(_plain(dataclasses.asdict(record)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not (float("-inf") < value < float("inf")):
        return None
    return value
