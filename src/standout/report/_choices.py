"""What is said of a fit, as facts: how parameters were chosen, what calls for care; and the same fit as code."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from standout._arrays import Float, Rows, is_sparse
from standout._messages import Message
from standout.moments import Moments
from standout.report._fit import Fit
from standout.report._format import brief, joined, percent, shortened, whole
from standout.report._sentences import UNITS, assignments
from standout.selection import ComponentTest, GroupSearch, HeldOutPath

WEIGHT_RULES = {
    "worst-case": "This is the mixture of backgrounds against which the target stands out least",
    "best": "This is the background against which the target stands out most",
    "spectral": "This is the view that depends least on the weights of the backgrounds",
}
# With fewer background rows than this times the columns, ratios are a good deal too large by chance.
ROWS_PER_COLUMN = 5
# Columns whose spreads differ by more than this factor are hardly in the same units.
UNEQUAL_SPREADS = 1000.0
FEW_ROWS = 10
# Mean fourth power of standardised scores beyond which tails are heavy: 3 for a Gaussian, 6 for a Laplace distribution.
HEAVY = 4.5
# Means further apart than this many standard deviations are told.
LARGE_SHIFT = 2.0
# Different values up to which a column may be a code.
FEW_VALUES = 5
LEAVE_OUT = "Leave such columns out if they are no measurements."
SIDES = {
    "background": "Side: the background's. Components are directions in which the target varies less than it does",
    "both": "Side: both. Components are the directions in which the two differ most, in either way",
}
# Columns that a choice lists.
MOST_LISTED = 30
# Columns that a message names, and pairs of them that are compared.
MOST_NAMED, MOST_COMPARED = 5, 100
# Numbers that differ by this share are equal up to rounding.
EQUAL = 1e-10

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
    return _choice(
        "α: {alpha}. Representative values of α are {alphas}. The chosen one shows the largest share of the target's "
        "variance beyond the share of the background's. α has no natural value: look at the other views, too",
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
        several = " for each component" if len(test.p_values) > 1 else ""
        fewer = ", or fewer where chance soon explained it" if len(set(test.n_made)) > 1 else ""
        swapped = ". A subject that is in several datasets is swapped within itself" if test.unit == "subjects" else ""
        return _choice(
            "p-values: from a permutation test, with {how}" + several + fewer + ". All that the fit chooses is chosen "
            "again each time" + swapped + ". The test assumes independent {unit}",
            "test",
            how=assignments(test),
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


# --- cautions --------------------------------------------------------------------------------------------------------


def cautions(
    fit: Fit, features: Sequence[str], test: ComponentTest | None, tails: Sequence[Float], first: Rows | None
) -> list[Message]:
    """Say what in these data calls for care.

    Parameters
    ----------
    fit : Fit
    features : sequence of str
        Names of the columns.
    test : ComponentTest or None
    tails : sequence of ndarray
        The mean fourth power of the standardised scores of each dataset.
    first : array of shape (n, n_features) or None
        Some rows of the target.
    """
    return [
        *(_constant_columns(fit, features) if fit.moments else ()),
        *(_equal_columns(fit, features) if fit.moments else ()),
        *_singular_background(fit),
        *_few_rows(fit, test),
        *(_unequal_units(fit, features) if fit.moments else ()),
        *_missed_by_kernel(fit),
        *_heavy_tails(test, tails),
        *_larger_everywhere(test),
        *(_different_means(fit, features) if fit.moments else ()),
        *(_columns_that_are_no_measurements(first, features) if fit.moments else ()),
    ]


def repeated_ids(ids: Sequence[str]) -> Iterator[Message]:
    """Point out ids that name subjects rather than rows: equal ones, or many that differ in a number at the end."""
    advice = "If that is so, name the subjects: {p.groups}."
    facts: dict[str, Any] = {"n_rows": len(ids), "advice": advice, "kind": "repeated ids"}
    different = set(ids)
    if 1 < len(different) <= len(ids) // 2:
        yield Message(
            "{n_rows} rows have {n_ids} different ids: several may be of one subject, and p-values by rows are then "
            "too small",
            n_ids=len(different),
            **facts,
        )
        return
    found = [re.fullmatch(r"(.+)[_.:/-]\d+", word) for word in ids]
    starts = {match[1] for match in found if match is not None}
    if None not in found and 1 < len(starts) <= len(ids) // 3:
        yield Message(
            "the ids of {n_rows} rows, such as {example}, have {n_ids} different beginnings: several may be of one "
            "subject, and p-values by rows are then too small",
            n_ids=len(starts),
            example=shortened(ids[0]),
            **facts,
        )


def _heavy_tails(test: ComponentTest | None, tails: Sequence[Float]) -> Iterator[Message]:
    if test is not None and test.method == "analytic" and np.max(tails) >= HEAVY:
        yield Message(
            "scores have heavier tails than a Gaussian, so that p-values by formula are too small",
            advice="Fit with {p.test:permutation}.",
            kind="heavy tails",
        )


def _larger_everywhere(test: ComponentTest | None) -> Iterator[Message]:
    """Tell of a target that varies more than the backgrounds in all directions."""
    if test is not None and test.scale is not None:
        yield Message(
            "the target varies more than the background in every direction, in half of them at least {scale} times. "
            "The test asks which directions vary even more than that",
            scale=float(test.scale),
            advice="Check that both have the same units and were processed alike.",
            kind="scale",
        )


def _different_means(fit: Fit, features: Sequence[str]) -> Iterator[Message]:
    """Tell of means that differ by more than anything that is shown: the methods compare variances only."""
    if not fit.has_background or fit.ratios is None:
        return
    target, *backgrounds = fit.moments
    mean = sum(weight * part.mean for weight, part in zip(fit.model.weights_, backgrounds, strict=True))
    variances = sum(weight * part.variances for weight, part in zip(fit.model.weights_, backgrounds, strict=True))
    spreads = np.sqrt(np.maximum(variances, 0.0))
    shifts = np.divide(np.abs(target.mean - mean), spreads, out=np.zeros_like(spreads), where=spreads > 0.0)
    most = int(np.argmax(shifts))
    if shifts[most] > max(LARGE_SHIFT, float(np.sqrt(np.max(fit.ratios)))):
        yield Message(
            "the means differ: {column} by {shift} standard deviations of the background. Scores are centred at the "
            "mean of the target, and the method compares variances only: it does not look for such differences",
            column=shortened(features[most]),
            shift=float(shifts[most]),
            advice="Compare the means of the columns, too.",
            kind="means",
        )


def _columns_that_are_no_measurements(first: Rows | None, features: Sequence[str]) -> Iterator[Message]:
    """Point out columns that count the rows, and those of whole numbers with few values among other columns."""
    if first is None or is_sparse(first) or first.shape[0] < FEW_ROWS:
        return
    rows = np.asarray(first, dtype=np.float64)
    are_whole = (rows == np.round(rows)).all(axis=0)
    # Counts are whole numbers, too; there, most columns are.
    if are_whole.mean() > 0.5:
        return
    counting = are_whole & (np.diff(rows, axis=0) == 1.0).all(axis=0)
    if counting.any():
        yield _of_columns(
            "whole numbers that count the rows, like an id", counting, features, advice=LEAVE_OUT, kind="ids"
        )
    n_values = np.array(
        [len(np.unique(column)) if whole else 0 for column, whole in zip(rows.T, are_whole, strict=True)]
    )
    codes = (n_values > 1) & (n_values <= FEW_VALUES)
    if codes.any():
        yield _of_columns(
            "whole numbers with few values, like codes of categories", codes, features, advice=LEAVE_OUT, kind="codes"
        )


def _constant_columns(fit: Fit, features: Sequence[str]) -> Iterator[Message]:
    target, *backgrounds = (_is_constant(part) for part in fit.moments)
    everywhere = np.logical_and.reduce([target, *backgrounds])
    if everywhere.any():
        yield _of_columns(
            "the same in every row of every dataset, and cannot contribute", everywhere, features, kind="constant"
        )
    if backgrounds:
        only_there = np.logical_and.reduce(backgrounds) & ~target
        if only_there.any():
            yield _of_columns(
                "constant in the background but not in the target: any variation there stands out, however small",
                only_there,
                features,
                advice="Leave such columns out if that is not what you look for.",
                kind="constant in the background",
            )


def _equal_columns(fit: Fit, features: Sequence[str]) -> Iterator[Message]:
    """Point out columns that have the values of another one in every row."""
    spreads = fit.spreads
    # Equal columns have equal covariances with a random score; others practically never do.
    filters = np.random.default_rng(0).standard_normal((fit.n_features, 1))
    filters /= np.where(spreads > 0.0, spreads, np.inf)[:, np.newaxis]
    covariances = fit.moments[0].apply(filters)[:, 0]
    order = np.argsort(covariances, kind="stable")
    near = np.diff(covariances[order]) <= EQUAL * np.sqrt(fit.moments[0].variance(filters)) * spreads[order[1:]]
    places = np.flatnonzero(near & (spreads[order[1:]] > 0.0))[:MOST_COMPARED]
    pairs = np.sort([order[places], order[places + 1]], axis=0)
    for part in fit.moments:
        apart = np.zeros((fit.n_features, pairs.shape[1]))
        apart[pairs, np.arange(pairs.shape[1])] = [[1.0], [-1.0]]
        sizes = np.abs(part.mean[pairs[0]]) + np.sqrt(np.maximum(part.variances[pairs[0]], 0.0))
        steps = np.abs(part.mean[pairs[0]] - part.mean[pairs[1]]) + np.sqrt(np.maximum(part.variance(apart), 0.0))
        # A variance is a difference of squares, with half of the digits.
        pairs = pairs[:, steps <= np.sqrt(EQUAL) * sizes]
    if pairs.size:
        named = [f"{shortened(features[j])} (as {shortened(features[i])})" for i, j in pairs.T[:MOST_NAMED]]
        several = pairs.shape[1] > 1
        yield Message(
            ("{n_columns} columns repeat others" if several else "a column repeats another one")
            + " in every row, and what they share counts twice: {columns}"
            + (" and others" if pairs.shape[1] > MOST_NAMED else ""),
            n_columns=pairs.shape[1],
            columns=named,
            advice="Leave one of two equal columns out.",
            kind="equal columns",
        )


def _of_columns(problem: str, chosen: np.ndarray, features: Sequence[str], **fields: Any) -> Message:
    """Say something of one or several columns."""
    places = np.flatnonzero(chosen)
    more = len(places) - MOST_NAMED
    start = "1 column ({columns}) is " if len(places) == 1 else "{n_columns} columns ({columns}"
    if len(places) > 1:
        start += " and {n_more} more) are " if more > 0 else ") are "
    columns = [shortened(features[place]) for place in places[:MOST_NAMED]]
    return Message(start + problem, columns=columns, n_columns=len(places), n_more=max(more, 0), **fields)


def _is_constant(moments: Moments) -> np.ndarray:
    """Tell which columns have no spread beyond rounding."""
    rounding = 1e-15 * np.abs(moments.mean)
    return np.asarray(moments.variances <= rounding**2)


def _singular_background(fit: Fit) -> Iterator[Message]:
    absent = int(np.isinf(fit.model.eigenvalues_).sum())
    if absent:
        yield Message(
            "the background is singular: along {n_absent} component(s) it does not vary at all, so the ratio is "
            "infinite. Such components come first, ordered by the target's variance",
            n_absent=absent,
            advice="Shrinkage, for example {p.shrinkage:0.1}, gives every direction a finite ratio.",
            kind="singular",
        )


def _few_rows(fit: Fit, test: ComponentTest | None) -> Iterator[Message]:
    counts = fit.counts if fit.n_subjects is None else fit.n_subjects
    unit = "row" if fit.n_subjects is None else fit.unit
    if counts[0] < FEW_ROWS:
        reason = "too few for a pattern" if unit == "row" else f"a pattern may be that of one {unit}"
        yield Message("the target has only {n_rows} " + f"{unit}s: {reason}", n_rows=counts[0], kind="few rows")
    if not fit.has_background or fit.is_kernel or fit.is_contrastive:
        return
    facts: dict[str, Any] = {"n_features": fit.n_features, "kind": "few background rows"}
    held_out = "" if fit.held_out is None else ", as this report does"
    if fit.degrees <= fit.n_features:
        both = held_out if test is not None and test.method == "permutation" else ""
        yield Message(
            "there are more columns ({n_features}) than the background has rows ({n_rows}). Only shrinkage makes a "
            "comparison possible, and fitted ratios are far too large",
            n_rows=sum(fit.counts[1:]),
            advice=f"Go by ratios of held-out rows, and by a permutation test{both}.",
            **facts,
        )
    elif fit.degrees_of(counts) < ROWS_PER_COLUMN * fit.n_features:
        yield Message(
            "the background has few " + unit + "s ({n_rows}) for so many columns ({n_features}): fitted ratios are "
            "then too large",
            n_rows=sum(counts[1:]),
            advice=f"Go by ratios of held-out rows{held_out}.",
            **facts,
        )


def _unequal_units(fit: Fit, features: Sequence[str]) -> Iterator[Message]:
    spreads = fit.spreads
    varying = spreads > 0.0
    if fit.is_kernel or not varying.any() or not _depends_on_units(fit):
        return
    low, high = int(np.argmin(np.where(varying, spreads, np.inf))), int(np.argmax(spreads))
    if spreads[high] >= UNEQUAL_SPREADS * spreads[low]:
        yield Message(
            "columns differ much in size: {large} varies by about {large_spread}, {small} by {small_spread}. This "
            "method depends on the units of the columns",
            large=shortened(features[high]),
            large_spread=float(spreads[high]),
            small=shortened(features[low]),
            small_spread=float(spreads[low]),
            advice="If the units differ, scale the columns of all datasets alike.",
            kind="units",
        )


def _depends_on_units(fit: Fit) -> bool:
    shrinkage: Float = np.atleast_1d(getattr(fit.model, "shrinkage_", np.ones(1)))
    return not fit.has_background or fit.is_contrastive or bool(np.max(shrinkage, initial=0.0) > 0.01)


def _missed_by_kernel(fit: Fit) -> Iterator[Message]:
    residual = float(getattr(fit.model, "residual_", 0.0))
    # NaN is that of random Fourier features, which have no residual.
    if residual > 0.05:
        yield Message(
            "the {n_coordinates} coordinates of the kernel leave out {residual:.0%} of it",
            n_coordinates=int(fit.model.feature_map_.n_coordinates),
            residual=residual,
            advice="A larger {p.rank} leaves out less.",
            kind="kernel",
        )


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
