"""Whether findings that were kept in files fit together: a damaged or forged folder is told of before it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout.report._findings import Findings, Points, ViewPath

# The shape of each array, a letter for each length: what has the same letter must have the same length.
# c components, s components whose scores are shown, p columns, b backgrounds, t bins, e edges of bins, l labels,
# n shown rows of one dataset, q and v axes of a view, k eigenvalues, m tested components, g steps of the path, a all
# shown rows.
FINDINGS = {
    "components": "cp",
    "patterns": "cp",
    "correlations": "sp",
    "spreads": "p",
    "eigenvalues": "c",
    "target_variance": "c",
    "background_variance": "bc",
    "weights": "b",
    "scree": "k",
    "bin_edges": "se",
    "label_counts": "lst",
}
POINTS = {"rows": "n", "scores": "ns", "pca_scores": "nq", "counts": "st", "groups": "n", "values": "n"}
PATH = {"values": "g", "scores": "gav", "eigenvalues": "g"}
TEST = {"ratios": "m", "p_values": "m", "edges": "m"}
OPTIONAL = {"components", "patterns", "correlations", "groups", "values"}
WHOLE_NUMBERS = {"label_counts", "rows", "counts", "groups"}
# What is drawn must have a place.
FINITE = {"bin_edges", "scores", "pca_scores"}

TEXTS = ("method", "code", "version")
LISTS_OF_TEXTS = ("features", "label_names", "choices", "warnings")


def fault_of(findings: Findings) -> str | None:
    """Say what does not fit, if anything does not."""
    try:
        _check(findings)
    except _UnsoundError as error:
        return str(error)
    return None


class _UnsoundError(Exception):
    """Something does not fit."""


def _check(findings: Findings) -> None:
    for name in TEXTS:
        _demand(isinstance(getattr(findings, name), str), f"{name!r} is no text")
    for name in LISTS_OF_TEXTS:
        _demand(_are_texts(getattr(findings, name)), f"{name!r} is no list of texts")
    asked = findings.asked
    _demand(isinstance(asked, dict) and _are_texts((*asked, *asked.values())), "'asked' is not made of pairs of texts")
    for name in ("clustering_error", "pca_clustering_error"):
        value = getattr(findings, name)
        _demand(value is None or isinstance(value, float), f"{name!r} is no number")
    _demand(isinstance(findings.total_variance, float), "'total_variance' is no number")
    _demand(isinstance(findings.datasets, tuple) and len(findings.datasets) > 0, "there is no dataset")
    lengths = {
        "p": len(findings.features),
        "l": len(findings.label_names),
        "b": len(findings.datasets) - 1,
    }
    _match(findings, FINDINGS, lengths)
    _demand(1 <= lengths["s"] <= lengths["c"], "the number of components is wrong")
    _demand(lengths["k"] >= 1, "there is no eigenvalue")
    _demand(lengths["e"] == lengths["t"] + 1, "bins and their edges do not fit together")
    _demand(bool(np.all(np.diff(findings.bin_edges, axis=1) > 0.0)), "edges of bins do not ascend")
    for points in findings.datasets:
        _check_points(points, lengths)
    if findings.path is not None:
        _check_path(findings.path, sum(len(points.rows) for points in findings.datasets))
    if findings.test is not None:
        tested: dict[str, int] = {}
        _match(findings.test, TEST, tested)
        _demand(tested["m"] >= 1, "there is no tested component")
        _demand(findings.test.method in ("analytic", "permutation"), "the method of the test is unknown")
        _demand(_is_count(findings.test.n_significant, tested["m"]), "'n_significant' is no number of components")
        _demand(isinstance(findings.test.level, float), "'level' is no number")


def _check_points(points: Points, common: dict[str, int]) -> None:
    _demand(isinstance(points.name, str), "the name of a dataset is no text")
    lengths = {letter: common[letter] for letter in "st"}
    _match(points, POINTS, lengths)
    _demand(lengths["n"] >= 1, "a dataset has no rows")
    _demand(lengths["q"] in (1, 2), "PCA's view has neither one nor two axes")
    _demand(_is_count(points.n_rows) and points.n_rows >= lengths["n"], "'n_rows' is no number of rows")
    _demand(bool(np.all((points.rows >= 0) & (points.rows < points.n_rows))), "a row is beyond the last one")
    if points.groups is not None:
        _demand(bool(np.all((points.groups >= 0) & (points.groups < common["l"]))), "a row has an unknown label")
    for name in ("ids", "labels"):
        texts = getattr(points, name)
        _demand(
            texts is None or (_are_texts(texts) and len(texts) == lengths["n"]), f"{name!r} is not a text for each row"
        )


def _check_path(path: ViewPath, n_shown: int) -> None:
    _demand(path.parameter in ("shrinkage", "alpha", "epsilon"), "the parameter of the path is unknown")
    lengths = {"a": n_shown}
    _match(path, PATH, lengths)
    _demand(lengths["v"] in (1, 2), "a view has neither one nor two axes")
    _demand(_is_count(path.chosen, lengths["g"] - 1), "'chosen' is no step of the path")


def _match(record: Any, shapes: dict[str, str], lengths: dict[str, int]) -> None:
    """Check the arrays of a record, and note the lengths that are new."""
    for name, letters in shapes.items():
        array = getattr(record, name)
        if array is None and name in OPTIONAL:
            continue
        kinds = "iu" if name in WHOLE_NUMBERS else "f"
        _demand(isinstance(array, np.ndarray) and array.dtype.kind in kinds, f"{name!r} is no array of numbers")
        expected = [lengths.setdefault(letter, length) for letter, length in zip(letters, array.shape, strict=False)]
        _demand(
            array.ndim == len(letters) and list(array.shape) == expected,
            f"the array {name!r} has shape {array.shape}, which does not fit the others",
        )
        _demand(name not in FINITE or bool(np.isfinite(array).all()), f"{name!r} has a number that is not finite")


def _demand(holds: bool, fault: str) -> None:
    if not holds:
        raise _UnsoundError(fault)


def _are_texts(texts: Any) -> bool:
    return isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)


def _is_count(value: Any, most: int | None = None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0 and (most is None or value <= most)
