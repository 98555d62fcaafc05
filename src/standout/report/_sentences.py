"""What was asked and what came out, in sentences and key numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf

import numpy as np

from standout.report._findings import Findings, Points
from standout.report._format import (
    brief,
    correlation,
    counted,
    isolated,
    joined,
    number,
    p_equals,
    p_value,
    percent,
    times,
    whole,
)
from standout.selection import ComponentTest

# What a test takes to be independent.
UNITS = {"rows": "the rows", "subjects": "whole subjects", "blocks": "whole blocks of neighbouring rows"}
PARAMETERS = {"shrinkage": "Shrinkage", "alpha": "α =", "epsilon": "ε ="}


def title(findings: Findings) -> str:
    """Give the question as a title. Names in it, as in the other sentences, are `isolated`."""
    if findings.title is not None:
        return isolated(findings.title)
    target = f"{'the ' if findings.target.name == 'target' else ''}{isolated(findings.target.name)}"
    if not findings.backgrounds:
        return f"What varies most in {target}?"
    names = [part.name for part in findings.backgrounds]
    against = "the background" if names == ["background"] else joined([isolated(name) for name in names])
    if findings.side == "background":
        return f"What varies less in {target} than in {against}?"
    if findings.side == "both":
        return f"What differs most between {target} and {against}?"
    return f"What stands out in {target} against {against}?"


def question(findings: Findings) -> str:
    """Say what was asked, in one sentence."""
    target = _named("the target", [findings.target])
    # A precomputed kernel has none.
    columns = f", over {counted(len(findings.features), 'column')}" if findings.features else ""
    if not findings.backgrounds:
        return f"You asked in which directions {target} varies most{columns}, by {findings.method}."
    against = _named(background_words(findings), findings.backgrounds)
    if findings.side != "target":
        how = "less than" if findings.side == "background" else "most differently from"
        other = against.removesuffix(",")
        return f"You asked in which directions {target} varies {how} {other}{columns}, by {findings.method}."
    return (
        f"You asked in which directions {target} varies while {against} {_does(findings)} not{columns}, by "
        f"{findings.method}."
    )


def _named(role: str, parts: Sequence[Points]) -> str:
    """Name the datasets in a role, with their numbers of rows."""
    if len(parts) == 1 and role == f"the {parts[0].name}":
        return f"{role} ({_size(parts[0])})"
    names = [f"{isolated(part.name)} ({_size(part)})" for part in parts]
    return f"{role}, {joined(names)},"


def _size(part: Points) -> str:
    rows = counted(part.n_rows, "row")
    return rows if part.n_subjects is None else f"{counted(part.n_subjects, part.unit)}, {rows}"


def _does(findings: Findings) -> str:
    return "does" if len(findings.backgrounds) == 1 else "do"


@dataclass(frozen=True)
class Explained:
    """A number, with a sentence that explains it.

    Attributes
    ----------
    shown, meaning : str
    """

    shown: str
    meaning: str


def assignments(test: ComponentTest, k: int | None = None) -> str:
    """Say what the p-value of a component comes from, or those of all components."""
    if test.method == "analytic":
        return "a formula"
    unit = UNITS[test.unit]
    if not test.n_made:
        return f"random assignments of {unit} to the datasets"
    made = max(test.n_made) if k is None else test.n_made[k]
    if test.n_ways is None:
        return f"{whole(made)} random assignments of {unit} to the datasets"
    # The one that was observed counts, too.
    some = "all" if made + 1 == test.n_ways else f"{made} of the"
    return f"{some} {test.n_ways} ways to assign {unit} to the datasets"


def headline(findings: Findings) -> str:
    """Say what came out, in a sentence or two."""
    return "".join(part if isinstance(part, str) else part.shown for part in headline_parts(findings))


def headline_parts(findings: Findings) -> list[str | Explained]:
    """Say what came out, as words and numbers with explanations."""
    feature = _leading_feature(findings)
    return [*_strength(findings), *([" ", *feature] if feature else [])]


def background_words(findings: Findings) -> str:
    """Say "the background" or "the backgrounds"."""
    return "the background" if len(findings.backgrounds) == 1 else "the backgrounds"


def _strength(findings: Findings) -> list[str | Explained]:
    """Say how much the target stands out along component 1, and whether that is more than chance."""
    if findings.ratios is None:
        return _share(findings)
    against = background_words(findings)
    ratio = Explained(_with_error(findings, times(float(findings.ratios[0]))), ratio_meaning(findings, 0))
    varies: list[str | Explained] = [
        "along component 1 the target varies ",
        ratio,
        f" as much as {against}, {judged_on(findings)}",
    ]
    if findings.side != "target" and float(findings.ratios[0]) < 1.0:
        varies = [
            f"along component 1 the target varies less than {against}: ",
            ratio,
            f" as much, {judged_on(findings)}",
        ]
    if isinf(float(findings.ratios[0])):
        varies = [f"along component 1 the target varies, and {against} {_does(findings)} not vary at all"]
    test = findings.test
    if test is None:
        return [*_capitalised(varies), "."]
    meaning = f"The chance of such a finding if the target and {against} came from the same population."
    probability = Explained(p_equals(float(test.p_values[0])), meaning)
    if test.unit == "rows" and test.n_significant and looks_dependent(findings):
        # A p-value for independent rows is no verdict on rows that are not.
        return [
            *_capitalised(varies),
            ". Whether this is more than chance is not known: the p-value (",
            probability,
            ") is for independent rows, and neighbouring rows are alike.",
        ]
    if test.n_significant == 0:
        return ["Nothing stands out beyond chance (", probability, "): ", *varies, "."]
    return [*_capitalised(varies), ". This is more than chance explains (", probability, ")."]


def looks_dependent(findings: Findings) -> bool:
    """Tell whether neighbouring rows were found to be alike."""
    return any(message.facts.get("kind") == "alike rows" for message in findings.cautions)


def _capitalised(parts: list[str | Explained]) -> list[str | Explained]:
    first = parts[0]
    return [first[0].upper() + first[1:], *parts[1:]] if isinstance(first, str) else parts


def _with_error(findings: Findings, shown: str) -> str:
    """Add the standard error to the ratio of component 1."""
    if findings.ratio_errors is None or not np.isfinite(findings.ratio_errors[0]):
        return shown
    return f"{shown} (± {number(float(findings.ratio_errors[0]), 2)})"


def judged_on(findings: Findings) -> str:
    """Say which rows a ratio is judged on."""
    return "in the fitted rows" if findings.ratio_errors is None else "on rows that were not fitted"


def ratio_meaning(findings: Findings, k: int) -> str:
    """Say what the ratio of a component is."""
    against = background_words(findings)
    start = f"Variance of the target's scores along component {k + 1}, divided by that of {against}"
    if findings.ratio_errors is None:
        wrong = "too large" if findings.side == "target" else "too extreme"
        return f"{start}. It is taken over the rows of the fit itself, which makes it {wrong}. 1 means no difference."
    return (
        f"{start}. Each row is judged by components that were found without it. After ± stands the standard error. "
        "1 means no difference."
    )


def _share(findings: Findings) -> list[str | Explained]:
    if findings.total_variance > 0.0 and findings.method == "PCA":
        share = percent(float(findings.eigenvalues[0]) / findings.total_variance)
        return [
            "Component 1 holds ",
            Explained(share, "Variance along component 1, as a share of the variance over all columns."),
            " of the target's variance. PCA does not compare with a background.",
        ]
    return ["This is the view in which the target varies most. It is not compared with a background."]


def _leading_feature(findings: Findings) -> list[str | Explained]:
    """Name the column that follows the first score most closely, if one does."""
    if findings.correlations is None or (findings.test is not None and findings.test.n_significant == 0):
        return []
    sizes = np.abs(findings.correlations[0])
    best = int(np.argmax(sizes))
    if sizes[best] < 0.3:
        # A kernel's scores may depend on a column that they are not correlated with.
        return ["No single column follows it closely: many contribute."] if findings.components is not None else []
    closeness = Explained(
        correlation(float(findings.correlations[0, best])),
        "Correlation of this column with the score of component 1, over the target's rows: from \N{MINUS SIGN}1 to 1.",
    )
    name = isolated(findings.features[best])
    return [f"Of all columns, {name} follows it most closely (correlation ", closeness, ")."]


def held_out_drawing(findings: Findings) -> str | None:
    """Say that rows are drawn by components that were found without them, and why."""
    if not findings.drawn_held_out:
        return None
    return (
        "Each row is drawn along components that were found without it. Along the components of the fit itself, target "
        f"and {background_words(findings).removeprefix('the ')} would look more different than they are."
    )


def grouping(findings: Findings) -> str | None:
    """Compare the groups in this view with those in PCA's, if rows have labels."""
    own, pca = findings.clustering_error, findings.pca_clustering_error
    if own is None or pca is None:
        return None
    groups = f"{len(findings.label_names)} groups"
    groups += "" if findings.label_name is None else f" of {isolated(findings.label_name)}"
    start = (
        f"K-means, which does not know the {groups}, puts {percent(own)} of the rows into the wrong one in this view, "
        f"{percent(pca)} in PCA's."
    )
    return f"{start} PCA does better here." if pca < own - 0.02 else start


def sampling(findings: Findings) -> str | None:
    """Say which datasets are drawn only in part."""
    parts = [
        f"{whole(len(part.rows))} of the {whole(part.n_rows)} rows of {isolated(part.name)}"
        for part in findings.datasets
        if part.sampled
    ]
    if not parts:
        return None
    return (
        f"The scatter plots show a random sample: {joined(parts)}. All numbers and distributions on this page come "
        "from all rows."
    )


def ends_of_path(findings: Findings) -> tuple[str, str]:
    """Say what the left and the right end of the slider are."""
    assert findings.path is not None
    against = background_words(findings)
    low, high = float(findings.path.values[0]), float(findings.path.values[-1])
    if findings.path.parameter == "shrinkage":
        left = "the plain ratio of variances" if low == 0.0 else "hardly any shrinkage"
        return (
            f"Left: {left}. Directions in which {against} hardly {_vary(findings)} count in full.",
            f"Right: {against} no longer {_counts(findings)}. This is PCA.",
        )
    if findings.path.parameter == "alpha":
        left = f"{against} {_does(findings)} not count. This is PCA." if low == 0.0 else "closest to PCA."
        return f"Left: {left}", f"Right: only directions in which {against} hardly {_vary(findings)} remain."
    return (
        f"Left (ε = {brief(low)}): hardly any regularisation. Small differences count in full.",
        f"Right (ε = {brief(high)}): {against} hardly {_counts(findings)}. This is close to kernel PCA.",
    )


def _vary(findings: Findings) -> str:
    return "varies" if len(findings.backgrounds) == 1 else "vary"


def _counts(findings: Findings) -> str:
    return "counts" if len(findings.backgrounds) == 1 else "count"


def step_of_path(findings: Findings, index: int) -> str:
    """Describe the view at one step of the slider."""
    path = findings.path
    assert path is not None
    value, leading = float(path.values[index]), float(path.eigenvalues[index])
    start = f"{PARAMETERS[path.parameter]} {brief(value)}{', as in the fit' if index == path.chosen else ''}."
    if np.isnan(leading):
        return start
    fitted = " Rows are drawn as they were fitted." if findings.drawn_held_out and index != path.chosen else ""
    return f"{start} The {fitted_value(findings)} of component 1 is {number(leading)}.{fitted}"


def fitted_value(findings: Findings) -> str:
    """Name what the fit has maximised."""
    if not findings.backgrounds:
        return "variance"
    return "fitted ratio" if findings.maximises_ratio else "fitted difference"


# --- key numbers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyNumber:
    """One of the key numbers of a report.

    Attributes
    ----------
    number : Explained
    label : str
        What it is, in a few words.
    name : str or None
        The dataset that it is about.
    """

    number: Explained
    label: str
    name: str | None = None


PARAMETER_MEANINGS = {
    "shrinkage": (
        "shrinkage",
        "How far the background's covariance is shrunken towards that of a round cloud: 0 is not at all, 1 fully.",
    ),
    "alpha": ("α", "How many times the background's variance is subtracted from the target's. 0 is PCA."),
    "epsilon": ("ε", "How much is added to the background's variance in every direction, so that none is zero."),
}


def key_numbers(findings: Findings) -> list[KeyNumber]:
    """Give the key numbers of a report."""
    keys = [*_strength_numbers(findings)]
    if findings.clustering_error is not None:
        beside = findings.pca_clustering_error
        meaning = "Share of rows that K-means, which does not know the labels, puts into the wrong group in this view."
        if beside is not None:
            meaning += f" In PCA's view it is {percent(beside)}."
        keys.append(KeyNumber(Explained(percent(findings.clustering_error), meaning), "grouped wrongly"))
    if findings.path is not None:
        label, meaning = PARAMETER_MEANINGS[findings.path.parameter]
        keys.append(KeyNumber(Explained(brief(float(findings.path.values[findings.path.chosen])), meaning), label))
    for place, part in enumerate(findings.datasets):
        role = "background" if place else "target"
        keys.append(KeyNumber(Explained(whole(part.n_rows), f"Number of rows of the {role}."), "rows", part.name))
        if part.n_subjects is not None:
            meaning = f"Number of {part.unit}s of the {role}. Rows of a {part.unit} are not independent."
            keys.append(KeyNumber(Explained(whole(part.n_subjects), meaning), f"{part.unit}s", part.name))
    if findings.features:
        meaning = "Number of columns that all datasets share."
        keys.append(KeyNumber(Explained(whole(len(findings.features)), meaning), "columns"))
    return keys


def _strength_numbers(findings: Findings) -> list[KeyNumber]:
    if findings.ratios is None:
        leading = float(findings.eigenvalues[0])
        if findings.method != "PCA" or not findings.total_variance > 0.0:
            return []
        meaning = "Share of the target's variance, over all columns, along component 1."
        return [KeyNumber(Explained(percent(leading / findings.total_variance), meaning), "of the variance")]
    against = background_words(findings)
    shown = Explained(number(float(findings.ratios[0])), ratio_meaning(findings, 0))
    label = "ratio in the fitted rows" if findings.ratio_errors is None else _with_error(findings, "ratio, component 1")
    keys = [KeyNumber(shown, label)]
    if findings.pca_ratio is not None:
        meaning = f"Variance of the target along PCA's first component, divided by that of {against}, in all rows."
        label = "ratio, PCA" if findings.ratio_errors is None else "ratio, PCA, in the fitted rows"
        keys.append(KeyNumber(Explained(number(findings.pca_ratio), meaning), label))
    test = findings.test
    if test is not None:
        meaning = (
            f"Chance of such a finding if the target and {against} came from the same population, by "
            f"{assignments(test, 0)}."
        )
        significant = f"So many of the tested components have a p-value of at most {brief(test.level)}."
        keys += [
            KeyNumber(Explained(p_value(float(test.p_values[0])), meaning), "p-value, component 1"),
            KeyNumber(
                Explained(f"{test.n_significant} of {len(test.p_values)}", significant), "components beyond chance"
            ),
        ]
    return keys
