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

PARAMETERS = {"shrinkage": "Shrinkage", "alpha": "α =", "epsilon": "ε ="}


def title(findings: Findings) -> str:
    """Give the question as a title. Names in it, as in the other sentences, are `isolated`."""
    target = f"{'the ' if findings.target.name == 'target' else ''}{isolated(findings.target.name)}"
    if not findings.backgrounds:
        return f"What varies most in {target}?"
    names = [part.name for part in findings.backgrounds]
    against = "the background" if names == ["background"] else joined([isolated(name) for name in names])
    return f"What stands out in {target} against {against}?"


def question(findings: Findings) -> str:
    """Say what was asked, in one sentence."""
    target = _named("the target", [findings.target])
    # A precomputed kernel has none.
    columns = f", over {counted(len(findings.features), 'column')}" if findings.features else ""
    if not findings.backgrounds:
        return f"You asked in which directions {target} varies most{columns}, by {findings.method}."
    against = _named(background_words(findings), findings.backgrounds)
    return (
        f"You asked in which directions {target} varies while {against} {_does(findings)} not{columns}, by "
        f"{findings.method}."
    )


def _named(role: str, parts: Sequence[Points]) -> str:
    """Name the datasets in a role, with their numbers of rows."""
    if len(parts) == 1 and role == f"the {parts[0].name}":
        return f"{role} ({counted(parts[0].n_rows, 'row')})"
    names = [f"{isolated(part.name)} ({counted(part.n_rows, 'row')})" for part in parts]
    return f"{role}, {joined(names)},"


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
    leading = float(findings.eigenvalues[0])
    against = background_words(findings)
    if not findings.backgrounds:
        return _share(findings)
    if not findings.is_ratio:
        return [
            "Along component 1 the variance of the target is ",
            Explained(number(findings.target_variance[0]), "Variance of the target's scores."),
            f", that of {against} ",
            Explained(number(background_variance(findings)[0]), f"Variance of the scores of {against}."),
            ".",
        ]
    if isinf(leading):
        return [f"Along component 1 the target varies, and {against} {_does(findings)} not vary at all."]
    ratio = Explained(times(leading), f"{ratio_meaning(findings)} The fit makes it as large as possible.")
    test = findings.test
    if test is None:
        return ["Along component 1 the target varies ", ratio, f" as much as {against}."]
    probability = Explained(
        p_equals(float(test.p_values[0])),
        f"The chance of so large a ratio if the target and {against} came from the same population.",
    )
    if test.n_significant == 0:
        tested = Explained(
            f"{number(float(test.ratios[0]))} times", f"Variance of the target's scores divided by that of {against}."
        )
        limit = Explained(
            f"{number(float(test.edges[0]))} times",
            f"Chance alone would give a larger ratio in {percent(test.level)} of cases.",
        )
        return [
            "Nothing stands out beyond chance: along component 1 the target varies ",
            tested,
            f" as much as {against}, and chance alone gives up to ",
            limit,
            " (",
            probability,
            ").",
        ]
    return [
        "Along component 1 the target varies ",
        ratio,
        f" as much as {against}, more than chance explains (",
        probability,
        ").",
    ]


def ratio_meaning(findings: Findings) -> str:
    """Say what the ratio of component 1 is, and what it is without shrinkage if that makes a difference."""
    meant = f"Along component 1 the target's variance is this many times that of {background_words(findings)}"
    plain = float(background_variance(findings)[0])
    ratio = float(findings.target_variance[0]) / plain if plain > 0.0 else float("inf")
    if np.isclose(ratio, float(findings.eigenvalues[0]), rtol=5e-3):
        return f"{meant}."
    smoothed = "regularised by ε" if findings.components is None else "with shrinkage"
    return f"{meant}, {smoothed}. Without it, {number(ratio)} times."


def is_shrunken(findings: Findings) -> bool:
    """Tell whether the tested ratios, which are unshrunken, differ from those of the fit."""
    test = findings.test
    if test is None or test.method != "analytic":
        return False
    n = min(len(test.ratios), len(findings.scree))
    return not np.allclose(test.ratios[:n], findings.scree[:n], rtol=5e-3)


def _share(findings: Findings) -> list[str | Explained]:
    if findings.total_variance > 0.0 and findings.method == "PCA":
        share = percent(float(findings.eigenvalues[0]) / findings.total_variance)
        return [
            "Component 1 holds ",
            Explained(share, "Variance along component 1, as a share of the variance over all columns."),
            " of the target's variance. PCA does not compare with a background.",
        ]
    return ["This is the view in which the target varies most. It is not compared with a background."]


def background_variance(findings: Findings) -> np.ndarray:
    """Variance of the backgrounds' scores along each component, by their weights."""
    return np.asarray(findings.weights @ findings.background_variance)


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
    if findings.is_ratio:
        shrunken = " (shrunken)" if path.parameter == "shrinkage" and value > 0.0 else ""
        against = background_words(findings).replace("the ", f"the{shrunken} ")
        return f"{start} Along component 1 the target varies {times(leading)} as much as {against}."
    return f"{start} Along component 1 the difference of variances is {number(leading)}."


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
    if findings.features:
        meaning = "Number of columns that all datasets share."
        keys.append(KeyNumber(Explained(whole(len(findings.features)), meaning), "columns"))
    return keys


def _strength_numbers(findings: Findings) -> list[KeyNumber]:
    against = background_words(findings)
    leading = float(findings.eigenvalues[0])
    if not findings.backgrounds:
        if findings.method != "PCA" or not findings.total_variance > 0.0:
            return []
        meaning = "Share of the target's variance, over all columns, along component 1."
        return [KeyNumber(Explained(percent(leading / findings.total_variance), meaning), "of the variance")]
    if not findings.is_ratio:
        of_target = Explained(number(findings.target_variance[0]), "Variance of the target's scores along component 1.")
        meaning = f"Variance of the scores of {against} along component 1."
        of_background = Explained(number(background_variance(findings)[0]), meaning)
        return [KeyNumber(of_target, "target variance"), KeyNumber(of_background, "background variance")]
    ratio = Explained(number(leading), f"{ratio_meaning(findings)} 1 would mean no difference.")
    keys = [KeyNumber(ratio, "ratio, component 1")]
    test = findings.test
    if test is not None:
        meaning = f"Chance of so large a ratio if the target and {against} came from the same population."
        significant = f"So many of the tested components have a p-value of at most {brief(test.level)}."
        keys += [
            KeyNumber(Explained(p_value(float(test.p_values[0])), meaning), "p-value, component 1"),
            KeyNumber(
                Explained(f"{test.n_significant} of {len(test.p_values)}", significant), "components beyond chance"
            ),
        ]
    return keys
