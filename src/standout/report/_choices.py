"""How the parameters of a fit were chosen, as facts; and the same fit as code."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from standout._messages import Message
from standout.report._fit import Fit
from standout.report._format import brief, joined, percent, shortened, whole
from standout.report._sentences import UNITS, assignments
from standout.selection import ComponentTest, GroupSearch, HeldOutPath

WEIGHT_RULES = {
    "worst-case": "This is the mixture of backgrounds against which the target stands out least",
    "best": "This is the background against which the target stands out most",
    "spectral": "This is the view that depends least on the weights of the backgrounds",
}
SIDES = {
    "background": "Side: the background's. Components are directions in which the target varies less than it does",
    "both": "Side: both. Components are the directions in which the two differ most, in either way",
}
# Columns that a choice lists.
MOST_LISTED = 30

# --- choices ---------------------------------------------------------------------------------------------------------


def choices(
    fit: Fit, names: Sequence[str], features: Sequence[str], test: ComponentTest | None, untested: Message | None
) -> list[Message]:
    """Say how the parameter, the weights and the number of components were chosen, and how components were tested.

    Parameters
    ----------
    fit : Fit
    names : sequence of str
        Names of the datasets.
    features : sequence of str
        Names of the columns.
    test : ComponentTest or None
    untested : Message or None
        Why there is no test.
    """
    said = []
    if fit.has_background:
        said.append(_parameter(fit))
    if len(fit.datasets) > 2:
        said.append(_weights(fit, names))
    if fit.is_kernel:
        said.append(_kernel(fit.model))
    if getattr(fit.model, "side", "target") != "target":
        said.append(_choice(SIDES[fit.model.side], kind="side"))
    if hasattr(fit.model, "columns_"):
        said.append(_few_columns(fit.model, features))
    if hasattr(fit.model, "smoothness_"):
        said.append(_smoothness(fit.model))
    if fit.n_subjects is not None:
        said.append(_subjects(fit, names))
    said.append(_n_components(fit.model, test))
    if test is not None:
        said.append(_tested(test))
    if untested is not None:
        said.append(untested)
    return said


def _parameter(fit: Fit) -> Message:
    if fit.is_contrastive:
        return _alpha(fit.model)
    return _epsilon(fit.model) if fit.is_kernel else _shrinkage(fit.model)


def _shrinkage(model: Any) -> Message:
    # One for each background; equal ones are said once.
    shares = list({brief(share): float(share) for share in model.shrinkage_}.values())
    if model.shrinkage is None:
        return _choice("Shrinkage: none, as given. This is the plain ratio of variances")
    if not isinstance(model.shrinkage, str):
        return _choice("Shrinkage: {shrinkage}, as given", shrinkage=float(model.shrinkage))
    rule = "estimated from the background by the rule of Ledoit and Wolf. It goes to 0 as rows are added"
    return _found("Shrinkage: {shrinkage}", rule, model, model.shrinkage, shrinkage=shares)


def _epsilon(model: Any) -> Message:
    if not isinstance(model.epsilon, str):
        return _choice("ε: {epsilon}, as given", epsilon=float(model.epsilon_))
    rule = "a thousandth of the size of the kernel matrix"
    return _found("ε: {epsilon}", rule, model, model.epsilon, epsilon=float(model.epsilon_))


def _found(start: str, rule: str, model: Any, asked: str, **facts: Any) -> Message:
    """Say how a value was found: by rows that were not fitted, by groups in their scores, or else by a rule."""
    search: GroupSearch | None = getattr(model, "group_search_", None)
    path: HeldOutPath | None = getattr(model, "held_out_path_", None)
    if asked not in ("held-out", "clusters") or path is None:
        return _choice(start + ", " + rule, **facts)
    facts |= {"n_tried": len(path.parameters)}
    held_out = (
        ". Of {n_tried} values, this is the most regularised one whose ratio on rows that were not fitted is within "
        "one standard error of the largest"
    )
    if search is None:
        return _choice(start + held_out, **facts)
    facts |= {"split_share": float(search.split_shares[search.view])}
    if not search.found:
        return _choice(
            start + held_out + ". No value shows groups that the background does not have with certainty: in the "
            "clearest view, a split into two groups explains {split_share} of the first score's variance. One Gaussian "
            "group would give 0.64",
            **facts,
        )
    return _choice(
        start + ". Of {n_tried} values, this one splits the target's first score most clearly into two groups that "
        "the background does not have: the split explains {split_share} of its variance on rows that were not fitted, "
        "and one Gaussian group would give 0.64. Labels were not used. An even spread counts as groups, too: look at "
        "the picture",
        **facts,
    )


def _alpha(model: Any) -> Message:
    if not isinstance(model.alpha, str) and np.ndim(model.alpha) == 0:
        return _choice("α: {alpha}, as given", alpha=float(model.alpha_))
    if isinstance(model.alpha, str) and model.alpha == "held-out":
        return _found("α: {alpha}", "as found", model, model.alpha, alpha=float(model.alpha_))
    alphas = [float(alpha) for alpha in model.alphas_]
    best = "has the largest ratios of variances on rows that were not fitted"
    if not hasattr(model, "held_out_"):
        best = "shows the largest share of the target's variance beyond the share of the background's"
    return _choice(
        "α: {alpha}. Representative values of α are {alphas}. The chosen one " + best + ". α has no natural value: "
        "look at the other views, too",
        alpha=float(model.alpha_),
        alphas=alphas,
    )


def _weights(fit: Fit, names: Sequence[str]) -> Message:
    asked = fit.model.background_weights
    if asked is None:
        return _choice("Weights of the backgrounds: equal, whatever their numbers of rows", "weights")
    # Names and numbers in turn: a name is marked as such wherever it is shown.
    facts: dict[str, Any] = {}
    parts = []
    for number, (name, weight) in enumerate(zip(names[1:], fit.model.weights_, strict=True), start=1):
        facts |= {f"name_{number}": shortened(name), f"weight_{number}": float(weight)}
        parts.append(f"{{name_{number}}} {{weight_{number}}}")
    reason = ". " + WEIGHT_RULES[asked] if isinstance(asked, str) else ", as given"
    return _choice("Weights of the backgrounds: " + joined(parts) + reason, "weights", **facts)


def _subjects(fit: Fit, names: Sequence[str]) -> Message:
    facts: dict[str, Any] = {}
    parts = []
    assert fit.n_subjects is not None
    for number, (name, n_subjects, n_rows) in enumerate(zip(names, fit.n_subjects, fit.counts, strict=True)):
        sizes = {f"name_{number}": shortened(name), f"n_{number}": whole(n_subjects), f"rows_{number}": whole(n_rows)}
        facts |= sizes
        parts.append(f"{{n_{number}}} {fit.unit}s, {{rows_{number}}} rows of {{name_{number}}}")
    said = f"Rows belong together: {'; '.join(parts)}. Whole {fit.unit}s are held out"
    return _choice(said, "subjects", **facts)


def _kernel(model: Any) -> Message:
    return _choice(
        "Kernel: {kernel}, with {n_coordinates} coordinates ({approximation})",
        "kernel",
        kernel=model.kernel if isinstance(model.kernel, str) else "your own",
        n_coordinates=int(model.feature_map_.n_coordinates),
        approximation=model.approximation_,
    )


def _few_columns(model: Any, features: Sequence[str]) -> Message:
    """Name the columns that the components use, those that most folds choose first."""
    columns, path = model.columns_, getattr(model, "columns_path_", None)
    facts: dict[str, Any] = {"n_columns": len(columns), "n_features": model.n_features_in_}
    start = "Columns: {n_columns} of {n_features}, as given"
    if isinstance(model.n_columns, str):
        start = "Columns: all {n_features}, as there are too few rows for folds"
    if path is not None:
        start = (
            "Columns: {n_columns} of {n_features}, the fewest whose ratio on rows that were not fitted is within one "
            "standard error of the best"
        )
    if len(columns) == model.n_features_in_:
        return _choice(start + ". All are used", kind="columns", **facts)
    shares = getattr(model, "column_frequency_", None)
    if shares is None:
        facts["named"] = [features[index] for index in columns[:MOST_LISTED]]
        return _choice(start + ". They are: {named}", kind="columns", **facts)
    order = sorted(columns.tolist(), key=lambda index: -shares[index])[:MOST_LISTED]
    facts["named"] = [f"{features[index]} ({percent(float(shares[index]))})" for index in order]
    more = " and others" if len(columns) > MOST_LISTED else ""
    return _choice(start + ". With the share of folds that choose each: {named}" + more, kind="columns", **facts)


def _smoothness(model: Any) -> Message:
    rule = "as given"
    if isinstance(model.smoothness, str):
        rule = "the value with the largest ratio on rows that were not fitted, among {n_tried} from 0 on"
    path = getattr(model, "smoothness_path_", None)
    n_tried = 0 if path is None else len(path.parameters)
    return _choice(
        "Smoothness: {smoothness}, " + rule + ". Components that change much between neighbouring columns count less",
        kind="smoothness",
        smoothness=float(model.smoothness_),
        n_tried=n_tried,
    )


def _n_components(model: Any, test: ComponentTest | None) -> Message:
    if isinstance(model.n_components, str) and test is not None:
        if test.n_significant == 0:
            return _choice("Components: none is more than chance. One is shown all the same", "n_components")
        problem = "Components: {n_components}, those that are more than chance"
    else:
        problem = "Components: {n_components}, as given"
    return _choice(problem, "n_components", n_components=int(model.n_components_))


def _tested(test: ComponentTest) -> Message:
    if test.method == "permutation":
        made = " for each component" if len(test.p_values) > 1 else ""
        if len(set(test.n_made)) > 1:
            made = (
                ". For components 1 to {n_tested}, {n_made} were made: fewer are enough where chance soon explains one"
            )
        swapped = ". A subject that is in several datasets is swapped within itself" if test.unit == "subjects" else ""
        return _choice(
            "p-values: from a permutation test, with {how}" + made + ". All that the fit chooses is chosen "
            "again each time" + swapped + ". The test assumes independent {unit}",
            "test",
            how=assignments(test),
            n_tested=len(test.p_values),
            n_made=list(test.n_made),
            unit=UNITS[test.unit].removeprefix("the ").removeprefix("whole "),
        )
    return _choice(
        "p-values: by formula. It assumes Gaussian and independent rows",
        "test",
        advice="For heavy tails, use {p.test:permutation}.",
    )


def not_tested(reason: str, advice: str = "Fit with {p.test:auto}.", **facts: Any) -> Message:
    """Say why there are no p-values."""
    return _choice("p-values: none, because " + reason, "test", advice=advice, **facts)


def _choice(problem: str, kind: str = "parameter", **fields: Any) -> Message:
    return Message(problem, kind=kind, **fields)


# --- the same fit as code --------------------------------------------------------------------------------------------


def recipe(fit: Fit) -> str:
    """Write the fit as code, with the options that differ from the defaults."""
    whole, model = fit.whole, fit.model
    steps = [step for _, step in whole.steps] if isinstance(whole, Pipeline) else [model]
    lines = [f"from {_home(type(step))} import {type(step).__name__}" for step in steps[:-1]]
    names = ", ".join([type(model).__name__, *(["make_pipeline"] if len(steps) > 1 else [])])
    made = ", ".join(_constructed(step) for step in steps)
    by_label = getattr(model, "target_label", None) is not None
    n_backgrounds = len(fit.datasets) - 1
    several = ["background"] if n_backgrounds == 1 else [f"background_{k}" for k in range(1, n_backgrounds + 1)]
    subjects = ""
    if fit.n_subjects is not None:
        subjects = ", groups=subjects_of_X" if by_label else ", groups=subjects_of_target"
        others = ", ".join(f"subjects_of_{name}" for name in several)
        subjects += "" if by_label or not several else f", background_groups=[{others}]"
    if by_label:
        call = f"fit(X, y{subjects})  # a table with one row per sample, and the label of each"
    elif n_backgrounds == 0:
        call = f"fit(target{subjects})  # a table with one row per sample"
    else:
        listed = several[0] if n_backgrounds == 1 else f"[{', '.join(several)}]"
        call = f"fit(target, background={listed}{subjects})  # tables with the same columns"
    last = "model[-1]" if len(steps) > 1 else "model"
    lines += [
        f"from standout import {names}",
        f"model = make_pipeline({made})" if len(steps) > 1 else f"model = {made}",
        f"model.{call}",
        f"scores = model.transform({'X' if by_label else 'target'})",
        f"print({last}.eigenvalues_{'' if fit.is_kernel else f', {last}.patterns_'})",
    ]
    return "\n".join(lines)


def _home(kind: type) -> str:
    """Give the public module of a class, which ends before the first underscore."""
    parts = kind.__module__.split(".")
    private = [index for index, part in enumerate(parts) if part.startswith("_")]
    return ".".join(parts[: private[0]] if private else parts)


def _constructed(step: Any) -> str:
    defaults = {name: given.default for name, given in inspect.signature(type(step).__init__).parameters.items()}
    options = {
        name: value
        for name, value in step.get_params(deep=False).items()
        if name in defaults and not _same(value, defaults[name])
    }
    return f"{type(step).__name__}({', '.join(f'{name}={_written(value)}' for name, value in options.items())})"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and np.ndim(value) == 0 and bool(value == default))


def _written(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= 10 else ...
    if callable(value):
        return str(getattr(value, "__name__", "..."))
    if value is ...:
        return "..."
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
