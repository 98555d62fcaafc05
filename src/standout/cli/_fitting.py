"""Datasets -> what a method finds in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from standout._arrays import Array
from standout.cli._data import Datasets
from standout.cli._display import Display
from standout.cli._labels import labels_of
from standout.cli._listening import listening
from standout.cli._methods import IN_WORDS, uses_background
from standout.cli._options import MISSING_IN_WORDS
from standout.cli._text import capitalised
from standout.io._prepare import CONSTANT
from standout.report import Findings, examine


def fit_and_examine(
    model: Any,
    datasets: Datasets,
    options: dict[str, Any],
    display: Display,
    *,
    with_path: bool = True,
    remarks: Iterable[str] = (),
) -> tuple[Findings, list[Array]]:
    """Fit a model, and look at what was found; give the scores of all rows, too. Remarks are for the user to read."""
    method = options["method"]
    n_tables = len(datasets.tables) if uses_background(method) else 1
    tables = datasets.tables[:n_tables]
    target, *backgrounds = (table.values for table in tables)
    display.stage(f"fitting {IN_WORDS[method]}: {', '.join(_steps(model, against=n_tables > 1))}")
    with listening() as said:
        _fit(model, target, backgrounds or None, display)
    display.stage("selection: PCA beside it, p-values, other choices")
    prepared = _said_of_the_data(options)
    scores = [model.transform(table.values) for table in tables]
    findings = examine(
        model,
        target,
        backgrounds or None,
        features=tables[0].columns,
        ids=None if tables[0].ids is None else tables[0].ids.tolist(),
        labels=labels_of(tables[0]),
        target_name=datasets.names[0],
        background_names=datasets.names[1:n_tables],
        asked={**datasets.files, **prepared},
        warnings=[*_notes(datasets), *remarks, *said],
        with_path=with_path,
        scores=scores,
    )
    if prepared:
        # The code starts from the tables, which are others than those in the files.
        done = "; ".join(f"{what}: {how}" for what, how in prepared.items())
        findings = replace(findings, code=f"# tables as they are after this: {done}\n{findings.code}")
    return findings, scores


def _notes(datasets: Datasets) -> list[str]:
    """Say what was done to the data; which columns are constant is among what is found."""
    return [capitalised(note) for note in datasets.prepared.notes if not note.endswith(CONSTANT)]


def _fit(model: Any, target: Any, background: Any, display: Display) -> None:
    if not _permutes(model):
        model.fit(target, background=background)
        return
    # Reshuffling takes its time, and has a bar of its own.
    with display.stepping_aside() as looked_at:
        model.set_params(verbose=looked_at)
        model.fit(target, background=background)
        model.set_params(verbose=False)


def _permutes(model: Any) -> bool:
    return getattr(model, "test", None) == "permutation" or model.n_components == "auto"


def _steps(model: Any, *, against: bool) -> list[str]:
    """Say what the fit does, one after the other: what is not given is looked for."""
    looked_for = []
    if against:
        looked_for = ["weights"] if isinstance(model.background_weights, str) else []
        given = {name: getattr(model, name, None) for name in ("shrinkage", "epsilon", "alpha")}
        looked_for += [name for name, value in given.items() if isinstance(value, str)]
    return ["moments", *looked_for, "solving", *(["test of the components"] if _permutes(model) else [])]


def _said_of_the_data(options: dict[str, Any]) -> dict[str, str]:
    """Put into words what was done to the data on request."""
    said = {}
    if options["log1p"]:
        said["logarithm"] = "log(1 + x) of every value"
    if options["standardize"] != "none":
        whose = "all background rows" if options["standardize"] == "background" else "all rows"
        said["scale"] = f"columns centred and scaled by {whose}"
    if options["missing"] != "error":
        said["missing values"] = MISSING_IN_WORDS[options["missing"]]
    return said
