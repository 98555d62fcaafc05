"""Findings in a folder, so that a report can be made again without the data: numbers and text, never code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._messages import InvalidValueError, MissingFileError
from standout.report._findings import Findings, Points, ViewPath
from standout.report._sound import fault_of
from standout.report._writing import written_aside
from standout.selection import ComponentTest

WORDS, NUMBERS = "report.json", "report.npz"
FORM = 1
REMEDY = "Make it anew with standout.report.store."


def store(findings: Findings, folder: str | os.PathLike[str]) -> None:
    """How can the report be made again later, without the data?

    Writes two files: ``report.json`` with the words, ``report.npz`` with the numbers. They hold the names, labels and
    scores of the rows that the report shows, and no other data.

    Parameters
    ----------
    findings : Findings
    folder : path-like
        Where to; it is made if it is not there.

    Examples
    --------
    >>> import tempfile
    >>> from standout import DiscriminativePCA
    >>> from standout.datasets import make_digits_over_photographs
    >>> from standout.report import examine, restore, store
    >>> images = make_digits_over_photographs()
    >>> model = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store(examine(model, images.target, images.backgrounds, with_path=False), folder)
    ...     restore(folder).method
    'discriminative PCA'
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, npt.NDArray[Any]] = {}
    words = {"form": FORM, "findings": _taken_apart(findings, "findings", arrays)}
    with written_aside(place / NUMBERS) as numbers, written_aside(place / WORDS) as text:
        with numbers.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        text.write_text(json.dumps(words, indent=1), encoding="utf-8")


def restore(folder: str | os.PathLike[str]) -> Findings:
    """What did the fit find that was stored here?

    Parameters
    ----------
    folder : path-like
        As given to `store`.

    Returns
    -------
    Findings

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import examine, restore, store
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(100, 3)) * [1, 1, 3], rng.normal(size=(100, 3))
    >>> model = DiscriminativePCA(1).fit(target, background=background)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store(examine(model, target, background), folder)
    ...     restore(folder).eigenvalues.round(1)
    array([8.7])
    """
    place = Path(folder)
    for file in (WORDS, NUMBERS):
        if not (place / file).is_file():
            raise MissingFileError("there is no {file} in {place}", file=file, place=place, advice=REMEDY)
    try:
        words = json.loads((place / WORDS).read_text(encoding="utf-8"))
        with (place / NUMBERS).open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    # Whatever: what a damaged archive or a forged header does to its reader cannot be foreseen.
    except Exception as error:
        raise _damaged(place, f"it cannot be read ({error or type(error).__name__})") from error
    if not isinstance(words, dict) or words.get("form") != FORM:
        raise _damaged(WORDS, "it is not of a form that this version of standout knows")
    try:
        findings: Findings = _put_together(Findings, words["findings"], arrays)
        fault = fault_of(findings)
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(place, f"something is missing ({error})") from error
    if fault is not None:
        raise _damaged(place, fault)
    return findings


def _damaged(place: str | Path, fault: str) -> InvalidValueError:
    return InvalidValueError("{place} cannot be used: {fault}", place=place, fault=fault, advice=REMEDY)


def _taken_apart(record: Any, path: str, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    """Put arrays aside under the name of their place, and give the rest as JSON knows it."""
    if isinstance(record, np.ndarray):
        arrays[path] = record
        return {"array": path}
    if is_dataclass(record) and not isinstance(record, type):
        return {
            each.name: _taken_apart(getattr(record, each.name), f"{path}.{each.name}", arrays)
            for each in fields(record)
        }
    if isinstance(record, Mapping):
        return {str(key): str(value) for key, value in record.items()}
    if isinstance(record, tuple | list):
        return [_taken_apart(part, f"{path}.{index}", arrays) for index, part in enumerate(record)]
    if isinstance(record, np.generic):
        return record.item()
    return record


# The fields that hold records of their own.
RECORDS: dict[str, type] = {"datasets": Points, "path": ViewPath, "test": ComponentTest}


def _put_together(kind: type, parts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Any:
    given = {}
    for each in fields(kind):
        part = parts[each.name]
        inner = RECORDS.get(each.name) if kind is Findings else None
        if isinstance(part, dict) and set(part) == {"array"}:
            part = arrays[part["array"]]
        elif inner is not None and isinstance(part, list):
            part = tuple(_put_together(inner, entry, arrays) for entry in part)
        elif inner is not None and part is not None:
            part = _put_together(inner, part, arrays)
        elif isinstance(part, list):
            part = tuple(part)
        given[each.name] = part
    return kind(**given)
