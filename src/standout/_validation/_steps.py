"""Steps of pipelines, where the data are read in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from standout._validation._sources import Source, reject_source
from standout._validation._words import listed


def check_learns_from_parts(learns: bool, step: str, target: Any) -> None:
    """Refuse a step that can be fitted to all rows at once only."""
    if not learns:
        reject_source(
            target,
            "the target",
            f"{step} has no partial_fit, and is fitted to all rows at once",
            "Use a step with partial_fit, or fit this one to a sample of the rows and give it as "
            "sklearn.frozen.FrozenEstimator(fitted).",
        )


def check_read_again(target: Any, step: str) -> None:
    """Refuse an iterator as the target where a step is fitted to it before the last one is."""
    if isinstance(target, Source) and not target.again:
        raise TypeError(
            f"{step} is fitted to the target before the last step is, but an iterator of batches can be read only "
            "once. Give a target that can be read again, such as standout.scan, or a step that is fitted already, "
            "as sklearn.frozen.FrozenEstimator(fitted)."
        )


def check_last_step(takes_parts: bool, step: str) -> None:
    """Refuse a pipeline that ends in a step that knows nothing of parts."""
    if not takes_parts:
        raise TypeError(
            f"{step} is the last step, and cannot take data that are read in parts. End the pipeline with "
            "DiscriminativePCA or another class of standout."
        )


def check_nothing_more(params: Mapping[str, Any], method: str) -> None:
    """Refuse metadata of rows for steps that see parts of the rows."""
    if params:
        raise TypeError(
            f"{method} of a pipeline got {listed('parameter', list(params))} for its steps, but there are data that "
            "are read in parts, whose rows cannot be told apart. Leave such parameters out."
        )


def check_rows_kept(n_rows: int, n_before: int, name: str) -> None:
    """Refuse steps that drop rows or add some."""
    if n_rows != n_before:
        raise ValueError(
            f"there are {n_rows} row(s) in {name} for {n_before} before them. Data that are read in parts need steps "
            "that work row by row: leave such a step out, and choose the rows beforehand."
        )
