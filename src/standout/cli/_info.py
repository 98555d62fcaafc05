"""``standout info``: what a model is."""

from __future__ import annotations

from typing import Any

import click

from standout.cli._closing import warn
from standout.cli._display import Display
from standout.cli._listening import listening
from standout.cli._models import load_model, preprocessing_of
from standout.cli._options import MISSING_IN_WORDS, SectionedCommand
from standout.io import Preprocessing
from standout.report._wording import shortened

# Columns that are named.
MOST_COLUMNS = 5


@click.command("info", cls=SectionedCommand)
@click.argument("model_path", metavar="MODEL")
def command(model_path: str) -> None:
    """Say what MODEL is: the folder that fit wrote, or a model in a file."""
    display = Display(quiet=False)
    with listening() as said:
        model = load_model(model_path)
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    facts = {"model": " -> ".join(type(step).__name__ for step in steps), **_facts(steps[-1])}
    done = preprocessing_of(model)
    if done is not None:
        facts |= {"columns": _columns(done), "before it": _done(done)}
    for name, words in facts.items():
        display.say(f"{name + ':':<13}{words}")
    warn(said, display)


def _facts(last: Any) -> dict[str, str]:
    """Say what is known of the estimator."""
    facts = {"parameters": _parameters(last.get_params(deep=False))}
    if not hasattr(last, "n_components_"):
        return {**facts, "state": "not fitted"}
    facts |= {"columns": str(last.n_features_in_), "components": str(last.n_components_)}
    known = {
        "eigenvalues": "eigenvalues_",
        "p-values": "p_values_",
        "shrinkage": "shrinkage_",
        "alpha": "alpha_",
        "epsilon": "epsilon_",
        "weights": "weights_",
    }
    return facts | {name: _numbers(getattr(last, field)) for name, field in known.items() if hasattr(last, field)}


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.4g}" for value in (values.ravel() if hasattr(values, "ravel") else [values])) or "none"


def _parameters(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items() if value is not None)


def _columns(done: Preprocessing) -> str:
    kept = done.kept
    more = f", and {len(kept) - MOST_COLUMNS} more" if len(kept) > MOST_COLUMNS else ""
    names = ", ".join(shortened(name, 30) for name in kept[:MOST_COLUMNS])
    return f"{len(kept)}: {names}{more}" if done.has_names else str(len(kept))


def _done(done: Preprocessing) -> str:
    parts = [f"missing values: {MISSING_IN_WORDS[done.missing]}"]
    if done.log1p:
        parts.append("log(1 + x)")
    if done.scale is not None:
        parts.append("columns centred and scaled")
    return ", ".join(parts)
