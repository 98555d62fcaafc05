"""What the package contrastive does not do: tried, not read. Prints one line of JSON, question by question.

Runs in the environment of that package, on data so small that no answer is a matter of patience.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from contrastive import CPCA, Kernel_CPCA
from scipy import sparse

MANUAL = {"alpha_selection": "manual", "alpha_value": 1.0}
WORKS = "works"


def _data(rows: int = 300, columns: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return a target with one column of its own, and a background; neither has mean zero."""
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((rows, columns)) + 5.0 for _ in range(2))
    X[:, 0] *= 3.0
    return X, Y


def _fitted(X: Any, Y: Any, **params: Any) -> Any:
    model = CPCA(**params)
    model.fit(X, Y)
    return model


def several_backgrounds() -> str:
    X, Y = _data()
    CPCA().fit_transform(X, [Y, Y])
    return WORKS


def batches() -> str:
    X, Y = _data()
    CPCA().fit_transform(iter([X]), iter([Y]))
    return WORKS


def sparse_rows() -> str:
    model = _fitted(*map(sparse.csr_array, _data()), standardize=False)
    return WORKS if sparse.issparse(model.fg) else "works, with dense copies of both datasets"


def missing_value() -> str:
    X, Y = _data()
    X[0, 0] = np.nan
    model = _fitted(X, Y)
    return "accepted: the whole column becomes zero" if not model.fg[:, 0].any() else WORKS


def one_component() -> str:
    CPCA(n_components=1).fit_transform(*_data(), **MANUAL)
    return WORKS


def own_list_of_alphas() -> str:
    CPCA().fit_transform(*_data(), alpha_selection=[0.5, 1.0, 2.0])
    return WORKS


def alpha_zero() -> str:
    CPCA().fit_transform(*_data(), alpha_selection="manual", alpha_value=0)
    return WORKS


def the_components() -> str:
    X, Y = _data()
    model = _fitted(X, Y)
    model.transform(model.fg, **MANUAL)
    kept = [name for name, value in vars(model).items() if np.shape(value) in ((2, X.shape[1]), (X.shape[1], 2))]
    return f"kept as {', '.join(kept)}" if kept else "not kept: scores are returned and nothing else"


def new_rows() -> str:
    """Give it the target's own rows as if they were new."""
    X, Y = _data()
    model = _fitted(X, Y, standardize=False)
    shift = np.abs(model.transform(X, **MANUAL).mean(axis=0) - model.transform(model.fg, **MANUAL).mean(axis=0)).max()
    return WORKS if shift < 1e-6 else f"not centred as the target was: scores are off by up to {shift:.1f}"


def new_rows_in_parts() -> str:
    X, Y = _data()
    model = _fitted(X, Y, standardize=False)
    together = model.transform(model.fg, **MANUAL)
    parts = np.vstack([model.transform(part, **MANUAL) for part in np.array_split(model.fg, 20)])
    return WORKS if np.allclose(together, parts) else "each part gets a sign of its own, that of its first row"


def many_columns() -> str:
    X, Y = _data(rows=600, columns=1_010)
    model = _fitted(X, Y)
    return (
        WORKS if model.features_d == X.shape[1] else f"only the first {model.features_d:,} principal components count"
    )


def new_rows_of_many_columns() -> str:
    X, Y = _data(rows=600, columns=1_010)
    _fitted(X, Y).transform(X, **MANUAL)
    return WORKS


def many_columns_few_rows() -> str:
    _fitted(*_data(rows=400, columns=1_010))
    return WORKS


def kernel() -> str:
    Kernel_CPCA(kernel="rbf").fit_transform(*_data(), **MANUAL)
    return WORKS


QUESTIONS: dict[str, Callable[[], str]] = {
    "several backgrounds": several_backgrounds,
    "rows in batches": batches,
    "sparse rows": sparse_rows,
    "a missing value": missing_value,
    "one component": one_component,
    "a list of α of one's own": own_list_of_alphas,
    "α = 0 by itself": alpha_zero,
    "the components": the_components,
    "new rows": new_rows,
    "new rows, in parts": new_rows_in_parts,
    "more than 1,000 columns": many_columns,
    "more than 1,000 columns, new rows": new_rows_of_many_columns,
    "more than 1,000 columns, fewer rows": many_columns_few_rows,
    "a kernel": kernel,
}


def answer(question: Callable[[], str]) -> str:
    try:
        return question()
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def main() -> None:
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {name: answer(question) for name, question in QUESTIONS.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
