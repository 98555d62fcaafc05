"""The key numbers of a report, each with a sentence that explains it."""

from __future__ import annotations

from dataclasses import dataclass

from standout.report._findings import Findings
from standout.report._html import name, tip
from standout.report._sentences import background_variance, background_words, ratio_meaning
from standout.report._wording import brief, chance, number, percent, whole


@dataclass(frozen=True)
class Key:
    """One key number.

    Attributes
    ----------
    shown : str
    label : str
        What it is, in a few words, as HTML.
    explanation : str
        What it means, in a sentence.
    """

    shown: str
    label: str
    explanation: str


def key_numbers(findings: Findings) -> str:
    """Show the key numbers as a row of cards."""
    cards = "".join(
        f"<li>{tip(key.shown, key.explanation)}<span>{key.label}</span></li>"
        for key in [*_strength(findings), *_groups(findings), *_parameter(findings), *_sizes(findings)]
    )
    return f'<ul class="numbers" aria-label="Key numbers">{cards}</ul>'


def _strength(findings: Findings) -> list[Key]:
    against = background_words(findings)
    leading = float(findings.eigenvalues[0])
    if not findings.backgrounds:
        if findings.method != "PCA" or not findings.total_variance > 0.0:
            return []
        share = percent(leading / findings.total_variance)
        return [Key(share, "of the variance", "Share of the target's variance, over all columns, along component 1.")]
    if not findings.is_ratio:
        return [
            Key(
                number(findings.target_variance[0]),
                "target variance",
                "Variance of the target's scores along component 1.",
            ),
            Key(
                number(background_variance(findings)[0]),
                "background variance",
                f"Variance of the scores of {against} along component 1.",
            ),
        ]
    keys = [
        Key(
            number(leading),
            "ratio, component 1",
            f"{ratio_meaning(findings)} 1 would mean no difference.",
        )
    ]
    if findings.test is not None:
        keys += [
            Key(
                chance(float(findings.test.p_values[0])).removeprefix("p = ").removeprefix("p "),
                "p-value, component 1",
                "Chance of so large a ratio if target and background came from one and the same population.",
            ),
            Key(
                f"{findings.test.n_significant} of {len(findings.test.p_values)}",
                "components beyond chance",
                f"Of the components that were tested, one by one, so many have a p-value of at most "
                f"{brief(findings.test.level)}.",
            ),
        ]
    return keys


def _groups(findings: Findings) -> list[Key]:
    if findings.clustering_error is None:
        return []
    beside = ""
    if findings.pca_clustering_error is not None:
        beside = f" In PCA's view it would be {percent(findings.pca_clustering_error)}."
    return [
        Key(
            percent(findings.clustering_error),
            "grouped wrongly",
            "Share of rows that end up in the wrong group if someone who does not know the labels splits this view "
            f"into as many groups (by K-means).{beside}",
        )
    ]


def _parameter(findings: Findings) -> list[Key]:
    if findings.path is None:
        return []
    value = brief(float(findings.path.values[findings.path.chosen]))
    explanations = {
        "shrinkage": (
            "shrinkage",
            "How far the background's covariance is pulled towards that of a round cloud: 0 not at all, 1 all the way.",
        ),
        "alpha": ("α", "How many times the background's variance is subtracted from the target's. 0 is PCA."),
        "epsilon": ("ε", "How much is added to the background's variance in every direction, so that none is zero."),
    }
    label, explanation = explanations[findings.path.parameter]
    return [Key(value, label, explanation)]


def _sizes(findings: Findings) -> list[Key]:
    rows = [
        Key(
            whole(part.n_rows),
            f"rows, {name(part.name, 24)}",
            f"Number of rows of the {'background' if index else 'target'} that were used.",
        )
        for index, part in enumerate(findings.datasets)
    ]
    if not findings.features:
        return rows
    return [*rows, Key(whole(len(findings.features)), "columns", "Number of columns that all datasets share.")]
