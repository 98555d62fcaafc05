"""What a fit found as numbers and sentences, for other programs and for the command line."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from standout._messages import PYTHON, Names
from standout.report._charts import leading_features
from standout.report._findings import Findings, require_findings
from standout.report._format import phrased, plain
from standout.report._sentences import grouping, headline, question, title

# Columns that are named for each component.
MOST_FEATURES = 10


def summary(findings: Findings, names: Names = PYTHON) -> dict[str, Any]:
    """What did the fit find, in numbers and sentences?

    Parameters
    ----------
    findings : Findings
    names : Names, optional
        How parameters are named: as in Python, or as options of the command line.

    Returns
    -------
    dict
        Of numbers, strings, lists and dicts, ready for `json.dumps`, without points. Infinite ratios are the string
        "inf", and unknown numbers are None.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import examine, summary
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> model = DiscriminativePCA(1).fit(target, background=background)
    >>> found = summary(examine(model, target, background, features=["size", "age", "iron", "zinc"]))
    >>> print(found["headline"])
    Along component 1 the target varies 8.95 times (± 0.55) as much as the background, on rows that were not fitted.
    This is more than chance explains (p < 0.001). Of all columns, zinc follows it most closely (correlation 1.00).
    >>> found["components"][0]["features"][0]["name"]
    'zinc'
    """
    require_findings(findings)
    test, path = findings.test, findings.path
    return {
        "standout": findings.version,
        "title": plain(title(findings)),
        "question": plain(question(findings)),
        "headline": plain(headline(findings)),
        "method": findings.method,
        "asked": {str(key): str(value) for key, value in findings.asked.items()},
        "datasets": [
            {
                "name": part.name,
                "rows": part.n_rows,
                "subjects": part.n_subjects,
                "outlying": part.n_outlying,
                "weight": _number(weight),
            }
            for part, weight in zip(findings.datasets, [None, *findings.weights], strict=True)
        ],
        "n_features": len(findings.features),
        "components": [_component(findings, k) for k in range(len(findings.eigenvalues))],
        "next_eigenvalues": [_number(value) for value in findings.scree[len(findings.eigenvalues) :]],
        "test": None
        if test is None
        else {
            "method": test.method,
            "unit": test.unit,
            "level": test.level,
            "n_tested": len(test.p_values),
            "n_significant": test.n_significant,
            "n_permutations": list(test.n_made),
        },
        "path": None
        if path is None
        else {
            "parameter": path.parameter,
            "chosen": _number(path.values[path.chosen]),
            "values": [_number(value) for value in path.values],
            "eigenvalues": [_number(value) for value in path.eigenvalues],
        },
        "held_out": findings.ratio_errors is not None,
        "side": findings.side,
        "columns": _columns(findings),
        "pca_ratio": _number(findings.pca_ratio),
        "clustering_error": _number(findings.clustering_error),
        "pca_clustering_error": _number(findings.pca_clustering_error),
        "grouping": None if (sentence := grouping(findings)) is None else plain(sentence),
        "choices": [plain(phrased(message, names)) for message in findings.choices],
        "warnings": [plain(phrased(message, names)) for message in findings.cautions],
        "code": findings.code,
    }


def _columns(findings: Findings) -> list[dict[str, Any]] | None:
    """List the columns that the components use, with the share of folds that chose each."""
    if findings.columns_used is None:
        return None
    shares = findings.column_frequency
    return [
        {"name": findings.features[index], "frequency": None if shares is None else _number(shares[index])}
        for index in findings.columns_used
    ]


def _component(findings: Findings, k: int) -> dict[str, Any]:
    test = findings.test
    tested = test is not None and k < len(test.p_values)
    return {
        "component": k + 1,
        "ratio": None if findings.ratios is None else _number(findings.ratios[k]),
        "ratio_error": None if findings.ratio_errors is None else _number(findings.ratio_errors[k]),
        "eigenvalue": _number(findings.eigenvalues[k]),
        "target_variance": _number(findings.target_variance[k]),
        "background_variance": [_number(value) for value in findings.background_variance[:, k]],
        "edge": _number(test.edges[k]) if test is not None and tested else None,
        "p_value": _number(test.p_values[k]) if test is not None and tested else None,
        "features": [_feature(findings, k, index) for index in _leading(findings, k)],
    }


def _leading(findings: Findings, k: int) -> list[int]:
    if findings.correlations is None or k >= len(findings.correlations):
        return []
    return leading_features(findings, k, MOST_FEATURES)


def _feature(findings: Findings, k: int, index: int) -> dict[str, Any]:
    assert findings.correlations is not None
    return {
        "name": findings.features[index],
        "correlation": _number(findings.correlations[k, index]),
        "pattern": None if findings.patterns is None else _number(findings.patterns[k, index]),
        "filter": None if findings.components is None else _number(findings.components[k, index]),
    }


def _number(value: Any) -> float | str | None:
    if value is None or np.isnan(value):
        return None
    return float(value) if isfinite(value) else "inf" if value > 0 else "-inf"
