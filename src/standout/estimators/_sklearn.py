"""How estimators get along with scikit-learn's tools: callers that would lead to wrong results, and how models look."""

from __future__ import annotations

import sys
from html import escape
from typing import Any

import numpy as np

from standout._messages import CautionWarning, InvalidValueError, require_extra, warn_user
from standout._xp import to_host

DOC_LINK = "https://github.com/standout-pca/standout/tree/main/docs/api/index.rst"
# The parameter that each method chooses.
CHOSEN = {"dpca": "shrinkage", "cpca": "alpha", "kdpca": "epsilon", "kcpca": "alpha"}
# Packages between a pipeline or search of scikit-learn and our ``fit``.
_PASSED = ("standout", "sklearn", "joblib")


def check_caller(background: Any) -> None:
    """Look for a caller of scikit-learn that does not treat the background as it treats the target.

    A plain pipeline passes the background to its last step as it is, while the target goes through all steps. A plain
    search cuts a background into the folds of the target, if both have equally many rows.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED:
        if frame.f_globals["__name__"] == "sklearn.pipeline":
            _check_pipeline(frame.f_locals.get("self"))
        elif frame.f_code.co_name == "_fit_and_score":
            _check_search(frame.f_locals.get("train"), background)
            return
        frame = frame.f_back


def _check_pipeline(pipeline: Any) -> None:
    steps = [step for _, step in getattr(pipeline, "steps", ()) if step is not None and not isinstance(step, str)]
    if len(steps) > 1 and "background" not in (pipeline.transform_input or ()):
        raise InvalidValueError(
            "a plain scikit-learn Pipeline takes the target through its steps, but not the background",
            advice="Use standout.make_pipeline(...).fit(X, background=...).",
        )


def _check_search(train: Any, background: Any) -> None:
    shape = getattr(background, "shape", (None,))
    if train is not None and shape[0] == len(train):
        warn_user(
            "scikit-learn has cut the background into the folds of X, because both have equally many rows",
            advice="Use standout.BackgroundSearchCV, or pass the background in a list: background=[...].",
            category=CautionWarning,
        )


# --- how a fitted model looks ----------------------------------------------------------------------------------------


def described(model: Any) -> str:
    """Return rows, columns, ratio and choice of a fitted model in one line."""
    counts = [f"{count:,}" for count in model.background_n_samples_]
    against = f" against {' and '.join(counts)} rows" if counts else ""
    rows = f"fitted to {model.n_samples_:,}{'' if counts else ' rows'}{against} of {model.n_features_in_:,} columns"
    parts = [rows] if len(counts) == 0 else [rows, _ratios(model), _choice(model)]
    return "; ".join(part for part in parts if part)


def _ratios(model: Any) -> str:
    known = [
        f"{ratio:.3g} ({low:.3g} to {high:.3g})"
        for ratio, (low, high) in zip(model.ratio_, model.ratio_interval_, strict=True)
        if np.isfinite(ratio)
    ]
    return f"ratio {', '.join(known)}" if known else "no held-out ratio"


def _choice(model: Any) -> str:
    name = CHOSEN[model.method]
    path = model.path_
    how = "" if path is None else f" ({path.reason})" if path.reason else " (chosen)"
    return f"{name} {getattr(model, f'{name}_'):.3g}{how}"


def described_in_html(model: Any) -> str:
    """Return rows, columns, choice and a table of the components of a fitted model, for notebooks."""
    names = leading_columns(model) if hasattr(model, "correlations_") else [[]] * model.n_components_
    lines = [
        f"<tr><td>{number}</td><td>{ratio:.3g}</td><td>{low:.3g} to {high:.3g}</td><td>{value:.3g}</td>"
        f"<td>{escape(', '.join(leading))}</td></tr>"
        for number, (ratio, (low, high), value, leading) in enumerate(
            zip(model.ratio_, model.ratio_interval_, to_host(model.eigenvalues_), names, strict=True), start=1
        )
    ]
    head = "".join(f"<th>{word}</th>" for word in ("component", "ratio", "interval", "eigenvalue", "leading columns"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines[:10])}</tbody></table>"
    return f"<div class='standout-fit'><p>{escape(described(model))}</p>{table}</div>"


def summary_frame(model: Any) -> Any:
    """Return a pandas frame with one row per component."""
    require_extra("pandas", "frames", "summary()")
    import pandas as pd

    columns = {
        "ratio": model.ratio_,
        "lower": model.ratio_interval_[:, 0],
        "upper": model.ratio_interval_[:, 1],
        "spread": model.spread_,
        "shift": model.shift_,
        "eigenvalue": to_host(model.eigenvalues_),
    }
    table = pd.DataFrame(columns, index=[f"component {number}" for number in range(1, model.n_components_ + 1)])
    if hasattr(model, "correlations_"):
        table["leading columns"] = [", ".join(names) for names in leading_columns(model)]
    return table


def leading_columns(model: Any, most: int = 3) -> list[list[str]]:
    """Return the columns with the largest correlations with each component, with their signs."""
    names = getattr(model, "feature_names_in_", None)
    found = []
    for row in np.nan_to_num(to_host(model.correlations_)):
        order = np.argsort(-np.abs(row), kind="stable")[:most]
        found.append([f"{'-' if row[i] < 0 else '+'}{i if names is None else names[i]}" for i in order])
    return found
