"""Models in files, and what new rows have to be like for them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from standout import load
from standout.io import Preprocessing, Table


def load_model(path: str) -> Any:
    """Load a model from its file, or from the folder that ``standout fit`` wrote."""
    place = Path(path).expanduser()
    return load(place / "model.skops" if place.is_dir() else place)


def preprocessing_of(model: Any) -> Preprocessing | None:
    """Find out what was done to the data of the fit, if the command line fitted the model."""
    done = getattr(model, "preprocessing_", None)
    if done is None:
        return None
    try:
        return Preprocessing.from_dict(json.loads(done))
    # A forged file can hold anything here.
    except Exception as error:
        raise click.ClickException(
            f"what the model says of its data cannot be understood ({error}). Make it again with standout fit."
        ) from None


def drops_rows(model: Any) -> bool:
    """Tell whether rows with a missing value are left out."""
    done = preprocessing_of(model)
    return done is not None and done.missing == "drop-rows"


def columns_of(model: Any) -> list[str] | None:
    """Name the columns of the fit in their order, if the model knows them."""
    done = preprocessing_of(model)
    if done is not None:
        return done.kept if done.has_names else None
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def prepared_rows(model: Any, table: Table) -> Table:
    """Do to new rows what was done to those of the fit."""
    done = preprocessing_of(model)
    if done is not None:
        return done.apply(table, copy=False)
    names = columns_of(model)
    if names is None or not table.has_names or names == table.columns:
        return table
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        raise click.ClickException(
            f"{table.source!r} lacks the column {lacking[0]!r} of the fit. Give rows with the columns of the fit."
        )
    order = [table.columns.index(name) for name in names]
    return replace(table, values=np.ascontiguousarray(table.values[:, order]), columns=names)
