"""Parts of the findings that come from the fitted model: components, path, means, test, choices, code."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._xp import to_host
from standout.report._drawn import rounded
from standout.report._words import brief, counted, joined, shortened
from standout.report._words import said as said_of

# Columns that are listed for each component, and for the means.
MOST_COLUMNS = 30
# Differences of means below this many standard deviations are not reported, however significant they are.
SIZE, LEVEL = 0.2, 0.05
PARAMETERS = ("shrinkage", "alpha", "epsilon")
WORDS = {"shrinkage": "Shrinkage", "alpha": "α", "epsilon": "ε"}


def value(given: Any) -> float | None:
    """Return a number for JSON; None if it is unknown or infinite."""
    if given is None or not np.isfinite(given):
        return None
    return float(given)


def parameter_of(model: Any) -> str | None:
    """Name the parameter that regularises a model."""
    return next((name for name in PARAMETERS if hasattr(model, f"{name}_")), None)


def is_kernel(model: Any) -> bool:
    """Return whether components are directions in the feature space of a kernel."""
    return hasattr(model, "kernel")


def method_of(model: Any, n_backgrounds: int) -> str:
    """Name the method."""
    kernel = "kernel " if is_kernel(model) else ""
    if not n_backgrounds:
        return f"{kernel}PCA"
    return f"{kernel}{'contrastive' if hasattr(model, 'alpha_') else 'discriminative'} PCA"


# --- components ------------------------------------------------------------------------------------------------------


def components(
    model: Any, names: Sequence[str], variances: Sequence[Float], test: Any, boot: Any
) -> list[dict[str, Any]]:
    """Return the components with their ratios, p-values and columns."""
    numbers = {name: getattr(model, f"{name}_") for name in ("ratio", "spread", "shift")}
    numbers |= {"error": model.ratio_error_, "eigenvalue": to_host(model.eigenvalues_)}
    found = []
    for k in range(int(model.n_components_)):
        p = None if test is None or k >= len(test["p_values"]) else test["p_values"][k]
        found.append(
            {
                "component": k + 1,
                **{name: value(part[k]) for name, part in numbers.items()},
                "interval": [value(end) for end in model.ratio_interval_[k]],
                "p_value": p,
                "significant": None if p is None else k < test["n_significant"],
                "variances": [value(part[k]) for part in variances],
                "columns": _columns(model, names, k, boot),
            }
        )
    return found


def _columns(model: Any, names: Sequence[str], k: int, boot: Any) -> list[dict[str, Any]]:
    """Return the columns that follow a component most closely; none for a kernel."""
    if not hasattr(model, "correlations_"):
        return []
    parts = (model.correlations_, model.patterns_, model.components_)
    correlations, pattern, weights = (to_host(part[k]) for part in parts)
    order = np.argsort(-np.abs(np.nan_to_num(correlations)), kind="stable")[:MOST_COLUMNS]
    return [
        {
            "name": names[j],
            "correlation": value(correlations[j]) or 0.0,
            "pattern": value(pattern[j]),
            "filter": value(weights[j]),
            "interval": None if boot is None else [value(end) for end in boot.correlation_intervals[k, j]],
        }
        for j in order.tolist()
    ]


def test_of(given: Any) -> dict[str, Any] | None:
    """Return the facts of a permutation test."""
    if given is None:
        return None
    return {
        "p_values": [value(p) for p in given.p_values],
        "n_significant": int(given.n_components),
        "level": float(given.level),
        "n_permutations": int(max(given.n_draws, default=0)),
        "unit": str(given.unit),
    }


def bootstrap_of(given: Any) -> dict[str, Any] | None:
    """Return the facts of a bootstrap."""
    if given is None:
        return None
    return {"n_draws": int(given.n_draws), "unit": str(given.unit), "angle": [value(angle) for angle in given.angles]}


def path_of(model: Any) -> dict[str, Any] | None:
    """Return the path along which the regularisation was chosen."""
    name, path = parameter_of(model), getattr(model, "path_", None)
    if name is None or path is None:
        return None
    return {
        "parameter": name,
        "values": rounded(path.values, 8),
        "log_ratios": rounded(path.log_ratios, 8),
        "errors": rounded(path.errors, 8),
        "best": int(path.best),
        "chosen": int(path.chosen),
        "value": value(getattr(model, f"{name}_")),
        "reason": path.reason,
    }


# --- means -----------------------------------------------------------------------------------------------------------


def means_of(model: Any, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the columns whose means differ."""
    found = getattr(model, "mean_differences_", None)
    if found is None:
        return None
    order = found.different(LEVEL, SIZE)
    each = {"effect": found.effect, "p_value": found.p_value, "q_value": found.q_value}
    return {
        "size": SIZE,
        "level": LEVEL,
        "method": "Welch's t-test for independent rows",
        "n_columns": len(found.effect),
        "n_different": len(order),
        "columns": [
            {"name": names[j], **{key: value(part[j]) for key, part in each.items()}}
            for j in order[:MOST_COLUMNS].tolist()
        ],
    }


# --- choices and code ------------------------------------------------------------------------------------------------


def choices(model: Any, found: dict[str, Any]) -> list[dict[str, str]]:
    """Say how parameters, weights, columns and components were chosen."""
    said: list[tuple[str, str]] = []
    name, path, datasets = found["parameter"], found["path"], found["datasets"]
    if name is not None and len(datasets) > 1:
        given = getattr(model, name, None)
        rule = "chosen on held-out folds" if given == "auto" else f"by the rule {given!r}"
        how = rule if isinstance(given, str) else "as given"
        reason = f". {said_of('chosen', found)}" if path and given == "auto" else ""
        used = brief(path["value"] if path else getattr(model, f"{name}_"))
        said.append((name, f"{WORDS[name]}: {used}, {how}{reason}"))
    if len(datasets) > 2:
        parts = [f"{shortened(part['name'])} {brief(part['weight'])}" for part in datasets[1:]]
        said.append(("weights", f"Weights of the backgrounds: {joined(parts)}"))
    if found["kernel"]:
        kernel = model.kernel if isinstance(model.kernel, str) else "given"
        said.append(("kernel", f"Kernel: {kernel}"))
    options = {"center": "Centre", "scale": "Scale of columns", "robust": "Robust", "smooth": "Smoothing"}
    for option, words in options.items():
        given = getattr(model, option, None)
        if not (given is None or (isinstance(given, str) and given == "own")):
            said.append((option, f"{words}: {given if isinstance(given, str) else 'given'}"))
    columns = getattr(model, "columns_", None)
    if columns is not None and len(columns) < found["n_columns"]:
        said.append(("columns", f"Columns: {counted(len(columns), 'column')} of {found['n_columns']:,} are used"))
    if datasets[0]["subjects"] is not None:
        parts = [
            f"{counted(part['subjects'], 'subject')} ({counted(part['rows'], 'row')}) of {shortened(part['name'])}"
            for part in datasets
        ]
        said.append(("subjects", f"Rows of a subject stay together: {joined(parts)}. Whole subjects are held out"))
    made = "those that stand out" if getattr(model, "n_components", None) == "auto" else "as given"
    said.append(("n_components", f"Components: {found['n_components']}, {made}"))
    if found["bootstrap"] and found["bootstrap"]["angle"]:
        angle = brief(found["bootstrap"]["angle"][0])
        unit = found["bootstrap"]["unit"]
        said.append(("bootstrap", f"Bootstrap of {unit}: component 1 turns by {angle} degrees (median)"))
    return [{"kind": kind, "text": f"{text.removesuffix('.')}."} for kind, text in said]


def options(model: Any) -> dict[str, str]:
    """Return the parameters of a model that differ from the defaults, as text."""
    defaults = {name: given.default for name, given in inspect.signature(type(model).__init__).parameters.items()}
    return {
        name: _written(given)
        for name, given in model.get_params(deep=False).items()
        if name in defaults and not _same(given, defaults[name])
    }


def code(model: Any, datasets: Sequence[dict[str, Any]], steps: Sequence[Any] = ()) -> str:
    """Write the fit in Python, with the steps of a pipeline before the model."""
    n_backgrounds = len(datasets) - 1
    made = [f"{type(step).__name__}({_given(step)})" for step in steps]
    made.append(f"standout.{type(model).__name__}({_given(model)})")
    several = ["background"] if n_backgrounds == 1 else [f"background_{k}" for k in range(1, n_backgrounds + 1)]
    listed = several[0] if n_backgrounds == 1 else f"[{', '.join(several)}]"
    subjects = ""
    if datasets[0]["subjects"] is not None:
        others = ", ".join(f"subjects_of_{name}" for name in several)
        subjects = f", groups=subjects_of_target{f', background_groups=[{others}]' if n_backgrounds else ''}"
    arguments = f"target, background={listed}{subjects}" if n_backgrounds else f"target{subjects}"
    lines = [
        *(f"from {_home(type(step))} import {type(step).__name__}" for step in steps),
        "import standout",
        f"model = standout.make_pipeline({', '.join(made)})" if steps else f"model = {made[0]}",
        f"model.fit({arguments})",
        f"standout.report(model, {arguments})",
    ]
    return "\n".join(lines)


def _given(step: Any) -> str:
    return ", ".join(f"{key}={words}" for key, words in options(step).items())


def _home(kind: type) -> str:
    """Return the public module of a class, which ends before the first underscore."""
    parts = kind.__module__.split(".")
    private = [place for place, part in enumerate(parts) if part.startswith("_") and part != "__main__"]
    return ".".join(parts[: private[0]] if private else parts)


def _same(given: Any, default: Any) -> bool:
    return given is default or (type(given) is type(default) and np.ndim(given) == 0 and bool(given == default))


def _written(given: Any) -> str:
    if isinstance(given, np.generic):
        given = given.item()
    if isinstance(given, str):
        return json.dumps(given, ensure_ascii=False)
    plain = isinstance(given, int | float | bool | None) or (isinstance(given, list | tuple) and len(given) <= 10)
    return repr(given) if plain else "..."
