"""The words of a report, each explained in a sentence or two."""

from __future__ import annotations

from standout.report._findings import Findings
from standout.report._html import text

ALWAYS = {
    "Target, background": "The target is the dataset to be looked into, a background one to be looked past: what both "
    "have in common is not shown.",
    "Component": "A direction in the space of the columns: a weighted sum of them. The first is the strongest.",
    "Score": "How far a row lies along a component, counted from the mean of the target.",
    "PCA": "Principal component analysis: the directions in which the target varies most, whatever else does.",
}
LINEAR = {
    "Pattern": "What a component looks like in the data: how the columns change where the score grows. The place to "
    "look for an interpretation. As correlations, patterns have no units.",
    "Filter": "How a score is computed: the weights of the columns. A filter has large entries also for columns that "
    "only cancel what target and background share.",
}
RATIO = {
    "Ratio": "Variance of the target's scores by that of the background's, also called the eigenvalue. Even where "
    "nothing differs, the largest ratio is above 1: it is the largest of all directions.",
}
TESTED = {
    "Chance gives up to": "The ratio that would be exceeded in one of twenty cases if target and background came from "
    "the same population.",
    "p-value": "The chance of so large a ratio if there were nothing to be found. It takes rows to be independent: "
    "with repeated measurements of the same animal or person, p-values are too small.",
}
SHRINKAGE = {
    "Shrinkage": "Pulls the background's covariance towards a round cloud, from 0 (not at all) to 1 (which is PCA). "
    "It keeps directions from standing out only because the background has few rows.",
}
ALPHA = {
    "α": "How many times the background's variance is subtracted from the target's. It has no natural value: move the "
    "slider, and trust what stays.",
}
EPSILON = {
    "ε": "What is added to the background's variance in every direction, so that small differences do not count for "
    "more than they are worth.",
}
GROUPED = {
    "Grouped wrongly": "Share of rows in the wrong group, if K-means splits the view into as many groups as there are "
    "labels. Labels are used for this and for the colours, never for the fit.",
}
KERNEL = {
    "Kernel": "A measure of how alike two rows are. A kernel method finds bent directions, which have no weights per "
    "column.",
}


def glossary(findings: Findings) -> str:
    """Explain the words that this report uses."""
    kernel = findings.components is None
    words = {
        **ALWAYS,
        **(KERNEL if kernel else LINEAR),
        **(RATIO if findings.is_ratio else {}),
        **(TESTED if findings.test is not None else {}),
        **(_parameter(findings, kernel) if findings.backgrounds else {}),
        **(GROUPED if findings.clustering_error is not None else {}),
    }
    entries = (f"<div><dt>{text(word)}</dt><dd>{text(meaning)}</dd></div>" for word, meaning in words.items())
    return f"<dl>{''.join(entries)}</dl>"


def _parameter(findings: Findings, kernel: bool) -> dict[str, str]:
    if not findings.is_ratio:
        return ALPHA
    return EPSILON if kernel else SHRINKAGE
