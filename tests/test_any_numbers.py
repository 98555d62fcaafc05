"""A search over forms, units, options and shapes: every case is answered rightly, or refused or warned of in words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import sparse

from data_forms import _tensor
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    permutation_test,
    scan,
)
from standout._messages import CautionWarning, InvalidTypeError, InvalidValueError

OURS = (InvalidValueError, InvalidTypeError)
OPTIONS: dict[str, tuple[Any, ...]] = {
    "n_components": (None, 1, 1, 1, 1, 1, 1, 2, 2, 3, 40, "auto", "auto"),
    "shrinkage": ("auto", "auto", None, None, 0.0, 0.3, 1.0, "ledoit-wolf"),
    "alpha": ("auto", "auto", 0.0, 1.0, 1e9),
    "epsilon": ("auto", "auto", 1e-3, 1e-300, 1e300),
    "gamma": (None, None, None, 1e-3, 1e-3, 1.0, 1.0, 1e-300, 1e300),
    "kernel": ("rbf", "rbf", "laplacian", "poly", "linear", "cosine", "sigmoid", "chi2", ["rbf", "linear"]),
    "degree": (2, 3, 0.5, 500),
    "approximation": ("auto", "auto", "pivoted", "fourier"),
    "rank": (None, None, 1, 5, 10**6),
    "background_weights": (None, "worst-case", "joint", "spectral", "joint", [1.0, 2.0]),
    "center": ("own", "own", "background"),
    "scale": (None, None, "pooled", "background"),
    "n_columns": (None, None, 2, 3, "auto"),
    "smooth": (None, "chain"),
    "robust": (None, "rows", "cells"),
    "cv": (5, 5, 2, 3, None, 7),
    "solver": ("auto", "auto", "dense", "iterative"),
    "random_state": (None, 0),
}


def _values(rng: Any, style: str, count: int, width: int, part: int) -> np.ndarray:
    rows = rng.normal(size=(count, width)) * (rng.uniform(1, 4, size=width) if part == 0 else 1.0)
    if style == "counts":
        rows = rng.poisson(0.2, size=(count, width)).astype(float)
    elif style == "one-hot":
        rows = np.eye(4 * width)[rng.integers(width, size=count) + part % 2 * width, :width]
    elif style == "repeated rows":
        rows = rows[rng.integers(min(count, 3), size=count)]
    elif style == "constant columns":
        rows[:, rng.random(width) < 0.4] = 3.0
    elif style == "constant":
        rows = np.full((count, width), 0.1)
    elif style == "one direction":
        rows = np.outer(rows[:, 0], np.arange(1, width + 1))
    elif style == "heavy tails":
        rows = rows / rng.uniform(1e-4, 1, size=(count, 1))
    elif style in ("nan", "inf"):
        rows[rng.integers(count), rng.integers(width)] = float(style)
    return rows


def _written(rows: np.ndarray, kind: str, folder: Path) -> Any:
    path = folder / f"{len(list(folder.iterdir()))}.{kind}"
    if kind == "npy":
        np.save(path, rows)
    elif kind == "csv":
        _named(rows).to_csv(path, index=False)
    else:
        _named(rows).to_parquet(path, row_group_size=7)
    return lambda: scan(path)


def _named(rows: np.ndarray) -> Any:
    import pandas

    return pandas.DataFrame(rows, columns=[f"c{place}" for place in range(rows.shape[1])])


def _dask(rows: np.ndarray) -> Any:
    import dask.array

    return dask.array.from_array(rows, chunks=(max(len(rows) // 2, 1), rows.shape[1]))


def _single(rows: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return rows.astype(np.float32)


FORMS: dict[str, Any] = {
    "Fortran": np.asfortranarray,
    "single": _single,
    "whole": lambda rows: np.round(np.clip(np.nan_to_num(rows), -1e15, 1e15)).astype(np.int64),
    "truth": lambda rows: rows > 0,
    "list": lambda rows: rows.tolist(),
    "frame": _named,
    "polars": lambda rows: __import__("polars").from_pandas(_named(rows)),
    "Arrow": lambda rows: __import__("pyarrow").Table.from_pandas(_named(rows)),
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "tensor": _tensor,
    "Dask": _dask,
    "iterator": lambda rows: iter([rows[:3], rows[3:]]),
    **dict.fromkeys(("csv", "parquet", "npy"), None),
}
STYLES = ("normal",) * 12 + (
    "counts",
    "one-hot",
    "repeated rows",
    "constant columns",
    "one direction",
    "heavy tails",
) * 2
STYLES += ("constant", "nan", "inf")
# What a fit says if an answer is not exact, or not there.
DOUBTS = ("rounding", "there is no ratio", "infinite", "did not converge")


@dataclass
class Case:
    """Datasets without units, the units, and what a fit is given."""

    kind: Any
    parts: list[np.ndarray]
    units: Any
    means: Any
    form: str
    options: dict[str, Any]
    beside: dict[str, Any]

    def datasets(self, units: bool = True) -> list[np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):
            return [(part + self.means) * (self.units if units else 1.0) for part in self.parts]


def drawn(seed: int) -> Case:
    """Draw a case."""
    rng = np.random.default_rng(seed)

    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    kind = pick(DiscriminativePCA, DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA)
    width, style = pick(1, 2, 3, 6, 6, 6, 12, 30), pick(*STYLES)
    counts = [
        pick(3, 10, 15, 20, 20, 40, 40, 60) if rng.random() < 0.995 else pick(0, 1, 2)
        for _ in range(pick(1, 2, 2, 2, 3, 4))
    ]
    parts = [_values(rng, style if count else "normal", count, width, place) for place, count in enumerate(counts)]
    units = pick(
        1.0, 1.0, 10.0 ** rng.uniform(-12, 12, size=width), 10.0 ** rng.uniform(-200, 200), 10.0 ** rng.uniform(-60, 60)
    )
    means = pick(0.0, 0.0, 5.0, 1e6, 10.0 ** rng.uniform(0, 7, size=width))
    names = set(kind().get_params()) - {"target_label", "kernel_params", "kernel_weights", "coef0", "tol"}
    chosen = [name for name in sorted(names) if rng.random() < 0.2]
    options = {name: pick(*OPTIONS[name]) for name in chosen}
    beside = {}
    extreme, n_covariates = 10.0 ** pick(0, 0, 0, 0, 0, 0, 0, 90, -90, 200, -200), pick(1, 1, 1, 0, 2, 50)
    makers = {
        "sample_weight": lambda count: (
            pick(rng.uniform(0, 2, count), rng.uniform(0, 2, count) ** 9, rng.poisson(1, count)) * extreme
        ),
        "groups": lambda count: np.resize(rng.permutation(max(count // pick(2, 5), 2)), count),
        "adjust": lambda count: rng.normal(size=(count, n_covariates)) if n_covariates else np.ones((count, 1)),
    }
    for name, make in makers.items():
        if rng.random() < 0.15:
            own, *others = (make(count) for count in counts)
            beside |= {name: own} | ({f"background_{name}": others} if others else {})
    return Case(kind, parts, units, means, pick(*FORMS), options, beside)


def answered(case: Case, parts: list[Any]) -> tuple[Any, list[str]]:
    """Return the fitted model, or the error that refuses it, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            parts = [part() if callable(part) else part for part in parts]
            model = case.kind(**case.options).fit(parts[0], background=parts[1:] or None, **case.beside)
        except OURS as error:
            model = error
    wrong = [one for one in caught if not isinstance(one.message, CautionWarning)]
    assert not wrong, f"a warning that is not ours: {wrong[0].message!r} at {wrong[0].filename}:{wrong[0].lineno}"
    return model, [str(one.message) for one in caught]


def agree(found: Any, expected: Any, tolerance: float) -> bool:
    """Tell whether numbers are equal; those below 1e-12 of the largest are zero up to rounding."""
    found, expected = np.sort(_host(found)), np.sort(_host(expected))
    zero = 1e-12 * float(np.nanmax(np.abs(expected), initial=0.0))
    return found.shape == expected.shape and np.allclose(found, expected, rtol=tolerance, atol=zero, equal_nan=True)


def same_choices(one: Any, other: Any) -> bool:
    """Tell whether two models have chosen the same: near a tie, rounding decides."""
    for name in ("shrinkage_", "alpha_", "epsilon_", "background_weights_", "columns_", "n_components_"):
        mine, theirs = (_host(getattr(model, name, 0.0)) for model in (one, other))
        if mine.shape != theirs.shape or not np.allclose(mine, theirs, rtol=1e-3, atol=0.0):
            return False
    # Folds choose columns of their own.
    if getattr(one, "columns_", None) is not None and one.held_out_ is not None:
        return np.array_equal(*(np.any(_host(model.held_out_.vectors) != 0.0, axis=2) for model in (one, other)))
    return True


def _host(values: Any) -> np.ndarray:
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values, dtype=np.float64)


def exact(case: Case, parts: list[np.ndarray]) -> Any:
    """Return all ratios in 60 digits, if no choice is made and the background varies along every direction."""
    allowed = {"n_components", "shrinkage", "cv", "solver", "random_state"}
    share = case.options.get("shrinkage", "auto")
    plain = case.kind is DiscriminativePCA and set(case.options) <= allowed and not case.beside
    if not plain or isinstance(share, str) or len(parts) < 2 or parts[0].shape[1] > 6:
        return None
    with mpmath.workdps(60):
        own, *others = (_covariance(part) for part in parts)
        size, share = own.rows, mpmath.mpf(share or 0.0)
        total = mpmath.zeros(size)
        for one in others:
            total += ((1 - share) * one + share * sum(one[i, i] for i in range(size)) / size * mpmath.eye(size)) / len(
                others
            )
        roots = [mpmath.sqrt(total[i, i]) for i in range(size)]
        if min(roots) == 0:
            return None
        scaled = mpmath.matrix(size, size)
        for i in range(size):
            for j in range(size):
                scaled[i, j] = total[i, j] / roots[i] / roots[j]
        if min(mpmath.eigsy(scaled, eigvals_only=True)) < 1e-8:
            return None
        factor = mpmath.cholesky(total) ** -1
        return np.sort([float(value) for value in mpmath.eigsy(factor * own * factor.T, eigvals_only=True)])[::-1]


def _covariance(rows: np.ndarray) -> Any:
    matrix, count = mpmath.matrix(rows.tolist()), len(rows)
    centred = matrix - mpmath.ones(count, 1) * (mpmath.ones(1, count) * matrix / count)
    return centred.T * centred / count


def check(seed: int, folder: Path) -> str:
    """Check a case; return what became of it."""
    case = drawn(seed)
    parts = case.datasets()
    make = FORMS[case.form] or (lambda rows: _written(rows, case.form, folder))
    if case.form in ("single", "whole", "truth"):
        parts = [np.asarray(make(part)) for part in parts]
    given = [make(part) for part in parts]
    parts = [part.astype(np.float64) for part in parts]
    model, said = answered(case, parts)
    other, said_of_other = answered(case, given)
    for one in (model, other):
        if isinstance(one, OURS):
            assert str(one).endswith(".")
            assert "\n" not in str(one)
    if isinstance(model, OURS):
        # At the limit of rounding an array may be refused: then the answer of another form is in doubt.
        refused = isinstance(other, OURS) or any(doubt in text for text in said_of_other for doubt in DOUBTS)
        refused = refused or "out of range" in str(model)
        assert refused, f"{case.form} is answered, but an array is refused: {model}"
        return "refused"
    check_model(case, model, said, parts)
    if isinstance(other, OURS):
        return "refused as this form"
    doubts = any(doubt in text for text in (*said, *said_of_other) for doubt in DOUBTS)
    # Few rows leave folds without variance along some directions, whose order is arbitrary.
    doubts = doubts or min(map(len, parts)) < 10
    kernel = case.kind in (KernelDiscriminativePCA, KernelContrastivePCA)
    digits = 1e-2 if kernel else 1e-3 if case.form == "single" else 1e-5
    if not doubts and same_choices(model, other):
        assert agree(other.ratio_, model.ratio_, digits), f"{case.form}: {other.ratio_}, array: {model.ratio_}"
    # Units of the columns do not matter to a ratio, nor the unit of all columns to any estimator without a ridge.
    free = case.options.get("scale") or (case.kind is DiscriminativePCA and not case.options.get("shrinkage", 1.0))
    # Robust distances shrink the scatter, and so depend on the units of columns.
    free = free and case.options.get("robust") is None
    same = np.ndim(case.units) == 0 and not kernel
    if case.form not in ("single", "whole", "truth") and (free or same):
        plain, said_of_plain = answered(case, case.datasets(units=False))
        sure = not doubts and not any(doubt in text for text in said_of_plain for doubt in DOUBTS)
        if sure and not isinstance(plain, OURS) and same_choices(model, plain):
            assert agree(model.ratio_, plain.ratio_, 1e-4), f"in units: {model.ratio_}, without: {plain.ratio_}"
    return "in doubt" if doubts else "answered"


def check_model(case: Case, model: Any, said: list[str], parts: list[np.ndarray]) -> None:
    """Check what can be known of an answer without another route."""
    backgrounds = parts[1:] or None
    assert np.all(np.isfinite(model.components_))
    assert np.all(np.isfinite(model.transform(parts[0])))
    assert repr(model)
    told = any("there is no ratio" in text for text in said) or model.held_out_ is None
    assert np.all(np.isfinite(model.ratio_)) or told
    doubts = any(doubt in text for text in said for doubt in DOUBTS)
    digits = 1e-2 if case.kind in (KernelDiscriminativePCA, KernelContrastivePCA) else 1e-4
    if model.held_out_ is not None and not doubts:
        beside = {name: case.beside[name] for name in ("adjust", "background_adjust") if name in case.beside}
        own, *others = model.held_out_scores(parts[0], background=backgrounds, **beside)
        spread = _spread(case, model, own, 0)
        assert agree(spread, model.ratio_, digits), f"scores: {spread}, ratio: {model.ratio_}"
        against = [_spread(case, model, part, 1 + place) for place, part in enumerate(others)]
        unit = np.average(against, axis=0, weights=model.background_weights_)
        assert agree(unit, np.ones(model.n_components_), digits), f"backgrounds: {unit}"
    expected = exact(case, parts)
    if expected is not None and not doubts:
        assert agree(model.eigenvalues_, expected[: model.n_components_], 1e-6), (
            f"{model.eigenvalues_}, exact {expected}"
        )
    if backgrounds and len(parts[0]) % 4 == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CautionWarning)
            try:
                test = permutation_test(model, parts[0], background=backgrounds, n_draws=9, **case.beside)
            except OURS:
                return
        assert np.all((test.p_values > 0.0) & (test.p_values <= 1.0))


def _spread(case: Case, model: Any, scores: np.ndarray, dataset: int) -> np.ndarray:
    """Return the variance of the scores of a dataset, with the weights of its rows."""
    weights = np.ones(len(scores))
    if "sample_weight" in case.beside:
        given = [case.beside["sample_weight"], *case.beside.get("background_sample_weight", [])]
        weights = weights * given[dataset]
    if case.options.get("robust") is not None:
        weights = weights * model.row_weights_[dataset]
    about = dataset == 0 and case.options.get("center") == "background"
    middle = 0.0 if about else np.average(scores, axis=0, weights=weights)
    return np.average((scores - middle) ** 2, axis=0, weights=weights)


@pytest.mark.parametrize("first", range(0, 150, 15))
def test_every_case_is_answered_rightly_or_refused_in_words(first: int, tmp_path: Path) -> None:
    found = [check(seed, tmp_path) for seed in range(first, first + 15)]
    assert found.count("answered") + found.count("in doubt") >= 3


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 6000, 100))
def test_five_thousand_cases_are_answered_rightly_or_refused_in_words(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 100):
        check(seed, tmp_path)
