"""How what was to be chosen was chosen: one sentence each."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout.report._subject import Subject
from standout.report._wording import brief, counted, isolated, joined, number
from standout.selection import ComponentTest, GroupSearch

WEIGHT_RULES = {
    "worst-case": "the mixture of backgrounds against which the target stands out least",
    "best": "the background against which the target stands out most",
    "spectral": "the view that depends least on how the backgrounds are weighted",
}


def choices(subject: Subject, names: list[str], test: ComponentTest | None, untested: str | None) -> list[str]:
    """Say how the parameter, the weights and the number of components came about, and how components were tested."""
    against = len(subject.rows) > 1
    return [
        *(_parameter(subject) if against else []),
        *(_weights(subject, names) if len(subject.rows) > 2 else []),
        *(_kernel(subject) if subject.is_kernel else []),
        _n_components(subject.model, test),
        *([_tested(test)] if test is not None else []),
        *([untested] if untested else []),
    ]


def _parameter(subject: Subject) -> list[str]:
    if subject.is_contrastive:
        return [_alpha(subject.model)]
    return [_epsilon(subject.model) if subject.is_kernel else _shrinkage(subject.model)]


def _shrinkage(model: Any) -> str:
    # One for each background, in the same words if they are the same.
    value, asked = joined(list(dict.fromkeys(brief(share) for share in model.shrinkage_))), model.shrinkage
    if asked is None:
        return "Shrinkage: none, as asked. This is the plain ratio of variances."
    if not isinstance(asked, str):
        return f"Shrinkage: {brief(float(asked))}, as asked."
    estimate = "estimated from the background by the rule of Ledoit and Wolf; it vanishes as rows are added"
    return f"Shrinkage: {value}, {_found(model, asked, estimate)}."


def _epsilon(model: Any) -> str:
    value = brief(model.epsilon_)
    if not isinstance(model.epsilon, str):
        return f"ε: {value}, as asked."
    scaled = "a thousandth of the size of the kernel's matrix"
    return f"ε: {value}, {_found(model, model.epsilon, scaled)}."


def _found(model: Any, asked: str, otherwise: str) -> str:
    """Say how a value was found: by the view that shows groups, or else by a rule."""
    search: GroupSearch | None = getattr(model, "group_search_", None)
    if asked != "clusters" or search is None:
        return otherwise
    tried, share = len(search.parameters), number(float(np.max(search.split_shares)), 2)
    if search.chosen is None:
        return (
            f"{otherwise}. No view shows more than one group for sure: in the clearest of {tried} a split explains "
            f"{share} of the first score's variance; one group would give 0.64"
        )
    return (
        f"the one of {tried} values whose first score falls most clearly into two groups (a split explains {share} of "
        "its variance; one group would give 0.64). No label was used. An even spread counts as groups, too: look at "
        "the picture"
    )


def _alpha(model: Any) -> str:
    value = brief(model.alpha_)
    if not isinstance(model.alpha, str) and np.ndim(model.alpha) == 0:
        return f"α: {value}, as asked."
    return (
        f"α: {value}. Of {counted(len(model.alphas_), 'value')} that stand for all others "
        f"({joined([brief(alpha) for alpha in model.alphas_])}), it shows the largest share of the target's "
        "variance beyond the share of the background's. α has no natural value: look at the others, too."
    )


def _weights(subject: Subject, names: list[str]) -> list[str]:
    model = subject.model
    shares = joined(
        [f"{isolated(name)} {brief(weight)}" for name, weight in zip(names[1:], model.weights_, strict=True)]
    )
    asked = model.background_weights
    if asked is None:
        return ["Weights of the backgrounds: equal, however many rows each has."]
    if isinstance(asked, str):
        return [f"Weights of the backgrounds: {shares}. This is {WEIGHT_RULES[asked]}."]
    return [f"Weights of the backgrounds: {shares}, as asked."]


def _kernel(subject: Subject) -> list[str]:
    model = subject.model
    kernel = model.kernel if isinstance(model.kernel, str) else "of your own"
    return [
        f"Kernel: {kernel}, with {counted(model.feature_map_.n_coordinates, 'coordinate')} ({model.approximation_})."
    ]


def _n_components(model: Any, test: ComponentTest | None) -> str:
    kept = counted(model.n_components_, "component")
    if isinstance(model.n_components, str) and test is not None:
        if test.n_significant == 0:
            return "Components: none is more than chance; one is shown all the same."
        return f"Components: {kept}, those that are more than chance."
    return f"Components: {kept}, as asked."


def _tested(test: ComponentTest) -> str:
    if test.method == "permutation":
        return (
            "p-values: by dealing the rows of all datasets anew, many times, and looking how large the ratio becomes. "
            "They take rows to be independent."
        )
    return (
        "p-values: by formula, from the ratios of the fitted components without shrinkage. They take rows to be "
        'Gaussian and independent; if yours have heavy tails, use test="permutation" (--test permutation).'
    )
