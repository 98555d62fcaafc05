"""A search over forms, units, options and routes: every case has the right answer, a clear error or a warning.

As a program it checks cases of any seeds, and prints those that fail: ``python tests/any_numbers.py FIRST COUNT``.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import linalg

import data_forms
from any_cases import FORMS, KINDS, Case, drawn, given, is_there
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    permutation_test,
    scan,
)
from standout._messages import CautionWarning, InvalidTypeError, InvalidValueError
from standout.selection import _held_out

OURS = (InvalidValueError, InvalidTypeError)
SOLVE_FOLDS = _held_out.solve_folds
# Forms whose number of rows is not known before they are read.
STREAMS = {"batches", "batches of frames", "reader", "Dask array", "Dask frame", "partial_fit", *data_forms.FILES}
# Words in the warnings of a fit whose answer is inexact or missing.
DOUBTS = ("rounding", "there is no ratio", "infinite", "did not converge", "not reliable", "arbitrary")


def answered(case: Case, parts: list[np.ndarray], form: str, folder: Path) -> tuple[Any, list[str]]:
    """Return the fitted model, or the error that refuses the case, and the warnings."""
    datasets, model, solve_folds, solved = given(parts, form, folder), case.kind(**case.options), SOLVE_FOLDS, []

    def recorded(*args: Any, **options: Any) -> Any:
        found = solve_folds(*args, **options)
        solved.extend(_host(values) for values, _ in found)
        return found

    with warnings.catch_warnings(record=True) as caught, patch.object(_held_out, "solve_folds", recorded):
        warnings.simplefilter("always")
        try:
            datasets = [scan(data) if isinstance(data, Path) else data for data in datasets]
            if form == "partial_fit" and hasattr(model, "partial_fit") and not case.beside:
                for half in (slice(0, 7), slice(7, None)):
                    model.partial_fit(datasets[0][half], background=[part[half] for part in datasets[1:]] or None)
                if not hasattr(model, "eigenvalues_"):
                    raise InvalidValueError("there are too few rows", advice="Give more.")
            else:
                model.fit(datasets[0], background=datasets[1:] or None, **case.beside)
        except OURS as error:
            model = error
    wrong = [one for one in caught if not isinstance(one.message, CautionWarning)]
    assert not wrong, f"a warning that is not ours: {wrong[0].message!r} at {wrong[0].filename}:{wrong[0].lineno}"
    if getattr(model, "held_out_", None) is not None:
        model.values_of_folds = solved[-len(model.held_out_.vectors) :]
    return model, [str(one.message) for one in caught]


def agree(found: Any, expected: Any, tolerance: float) -> bool:
    """Return whether numbers are equal. Numbers below 1e-12 of the largest are zero up to rounding."""
    found, expected = np.sort(_host(found)), np.sort(_host(expected))
    zero = 1e-12 * float(np.nanmax(np.abs(expected), initial=0.0))
    return found.shape == expected.shape and np.allclose(found, expected, rtol=tolerance, atol=zero, equal_nan=True)


def same_choices(one: Any, other: Any) -> bool:
    """Return whether two models have chosen the same parameters. Near a tie, rounding decides."""
    for name in ("shrinkage_", "alpha_", "epsilon_", "background_weights_", "columns_", "n_components_"):
        mine, theirs = (_host(getattr(model, name, 0.0)) for model in (one, other))
        if mine.shape != theirs.shape or not np.allclose(mine, theirs, rtol=1e-3, atol=0.0):
            return False
    # Each fold chooses columns separately.
    if getattr(one, "columns_", None) is not None and one.held_out_ is not None:
        return np.array_equal(*(np.any(_host(model.held_out_.vectors) != 0.0, axis=2) for model in (one, other)))
    return True


def has_fewer_folds(case: Case) -> bool:
    """Return whether a fit in memory has fewer folds than a fit of a file, whose number of rows is unknown at first."""
    return min(map(len, case.parts)) < 2 * (case.options.get("cv", 5) or 1)


def has_ties(one: Any, other: Any, units: Any = 1.0) -> bool:
    """Return whether a fold has equal values for different components. Their order is then arbitrary."""
    if one.held_out_ is None or other.held_out_ is None:
        return False
    mine, theirs = (_host(model.held_out_.vectors) for model in (one, other))
    if mine.shape != theirs.shape:
        return False
    mine = mine * (np.ones(mine.shape[1]) * units)[:, None]
    lengths = (np.linalg.norm(part, axis=1, keepdims=True) for part in (mine, theirs))
    mine, theirs = (part / np.where(size > 0.0, size, 1.0) for part, size in zip((mine, theirs), lengths, strict=True))
    turned = np.any(np.abs(np.sum(mine * theirs, axis=1)) < 1.0 - 1e-6, axis=1)
    pairs = zip(turned, one.values_of_folds, other.values_of_folds, strict=True)
    size = units**2 if one.__class__ is ContrastivePCA and np.ndim(units) == 0 and not one.scale else 1.0
    return any(differs and np.allclose(a / size, b, rtol=1e-8, atol=0.0) for differs, a, b in pairs)


def is_tied(values: Any) -> bool:
    """Return whether two eigenvalues are equal up to rounding."""
    ordered = np.sort(_host(values))
    return bool(np.any(np.diff(ordered) <= 1e-6 * np.abs(ordered[1:])))


def _host(values: Any) -> np.ndarray:
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values, dtype=np.float64)


def reference(case: Case, parts: list[np.ndarray]) -> Any:
    """Return the ratios or differences by SciPy; None if the fit makes a choice or if rounding is large."""
    options = {"shrinkage": 0.0, "alpha": 1.0} | {key: one for key, one in case.options.items() if one is not None}
    unknown = {"robust", "smooth", "n_columns", "gamma"} & {*options}
    ratio, others = case.kind is DiscriminativePCA, parts[1:]
    choice = options["shrinkage" if ratio else "alpha"]
    unknown |= {"square"} if not np.isfinite(sum(np.square(part).sum() for part in parts)) else set()
    needed = ("shrinkage" if ratio else "alpha") in case.options
    if case.kind not in (DiscriminativePCA, ContrastivePCA) or unknown or isinstance(choice, str) or not needed:
        return None
    mixture = options.get("background_weights", np.ones(len(others)))
    if isinstance(mixture, str) or len(mixture) != len(others) or not others or "groups" in case.beside:
        return None
    weights = np.divide(mixture, np.sum(mixture))
    # The units of columns cancel with a scale, and in a ratio without shrinkage.
    free = bool(options.get("scale")) or (ratio and choice == 0.0)
    spreads = np.array([part.std(axis=0) for part in parts])
    largest = np.array([np.abs(part).max(axis=0) for part in parts])
    # The spread of a constant column is only rounding.
    if not spreads.any() or np.any((spreads > 0.0) & (spreads <= 1e-13 * largest)):
        return None
    spread = spreads.max(axis=0)
    units = np.where(spread > 0.0, spread, 1.0) if free else max(float(spread.max()), 1e-300)
    (mean, own), *moments = [_moments(case, part / units, place) for place, part in enumerate(parts)]
    middle = sum(weight * one for weight, (one, _) in zip(weights, moments, strict=True))
    back = sum(weight * one for weight, (_, one) in zip(weights, moments, strict=True))
    if options.get("scale"):
        sizes = np.diag(back) if options["scale"] == "background" else (np.diag(own) + np.diag(back)) / 2
        if min(sizes) <= 1e-10 * max(np.diag(own)):
            return None
        own, back = (one / np.sqrt(sizes) / np.sqrt(sizes)[:, None] for one in (own, back))
        mean, middle = mean / np.sqrt(sizes), middle / np.sqrt(sizes)
    if options.get("center") == "background":
        own = own + np.outer(mean - middle, mean - middle)
    if not ratio:
        # Directions in which nothing varies are not components.
        sizes, basis = linalg.eigh(own + back)
        if np.any((sizes > 1e-14 * sizes[-1]) & (sizes < 1e-8 * sizes[-1])):
            return None
        inside = basis[:, sizes > 1e-11 * sizes[-1]]
        found = linalg.eigh(inside.T @ (own - choice * back) @ inside, eigvals_only=True)[::-1]
        unit = 1.0 if options.get("scale") else units
        is_small = np.abs(found) < max(1e-8 * np.max(np.abs(found), initial=0.0), 1e-12)
        return None if is_small.any() else found * unit * unit
    size = len(back)
    back = (1.0 - choice) * back + choice * np.trace(back) / size * np.eye(size)
    roots = np.sqrt(np.diag(back))
    if min(roots) <= 0.0:
        return None
    own, back = (one / roots / roots[:, None] for one in (own, back))
    lowest = linalg.eigh(back, eigvals_only=True)[0]
    found = linalg.eigh(own, back, eigvals_only=True)[::-1] if lowest > 1e-7 else np.zeros(1)
    # Few rows can be only rounding after covariates are removed.
    return found if found[0] > 1e-12 else None


def _moments(case: Case, rows: np.ndarray, dataset: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and covariance of a dataset, after covariates are removed."""
    weights = np.ones(len(rows))
    if "sample_weight" in case.beside:
        weights = [case.beside["sample_weight"], *case.beside.get("background_sample_weight", [])][dataset]
    weights = weights / weights.sum()
    middle = rows.mean(axis=0)
    mean = weights @ (rows - middle)
    # Set constant columns to exactly zero, which rounding would prevent.
    rows, mean, free = np.where(np.ptp(rows, axis=0) > 0.0, rows - middle - mean, 0.0), middle + mean, 1.0
    if "adjust" in case.beside:
        covariates = [case.beside["adjust"], *case.beside.get("background_adjust", [])]
        every = covariates[dataset] - np.mean(np.concatenate(covariates), axis=0)
        centre = weights @ every
        slopes = linalg.lstsq(np.sqrt(weights)[:, None] * (every - centre), np.sqrt(weights)[:, None] * rows)[0]
        rows, mean = rows - (every - centre) @ slopes, mean - centre @ slopes
        count = 1.0 / np.sum(weights**2)
        free = count / max(count - every.shape[1], 1.0)
    return mean, free * (weights[:, None] * rows).T @ rows


def check(seed: int, folder: Path) -> str:
    """Check a case, and return its outcome as a word."""
    case = drawn(seed)
    parts = case.datasets()
    if case.stored in KINDS:
        parts = [KINDS[case.stored](part) for part in parts]
    form = case.form if is_there(case.form) and all(map(len, parts)) else "Fortran"
    model, said = answered(case, [part.astype(np.float64) for part in parts], "array", folder)
    other, said_of_other = answered(case, parts, form, folder)
    parts = [part.astype(np.float64) for part in parts]
    for one in (model, other):
        if isinstance(one, OURS):
            assert str(one).endswith(".")
            assert "\n" not in str(one)
    if isinstance(model, OURS):
        # At the limit of rounding an array may be refused, and another form may have an answer with a warning.
        refused = isinstance(other, OURS) or any(doubt in text for text in said_of_other for doubt in DOUBTS)
        refused = refused or any(
            word in str(model) for word in ("out of range", "out of the range", "positive semidefinite")
        )
        # Answers for few rows may also differ, by rounding alone.
        refused = refused or has_fewer_folds(case)
        # Rounding chooses weights among clusters of equal views. They decide whether a ridge leaves few directions.
        clusters = case.options.get("background_weights") == "spectral"
        refused = refused or (clusters and "the number of directions in which the data vary" in str(model))
        assert refused, f"{form} is answered, but an array is refused: {model}"
        return "refused"
    check_model(case, model, said, parts)
    if isinstance(other, OURS):
        return "refused as this form"
    doubts = any(doubt in text for text in (*said, *said_of_other) for doubt in DOUBTS)
    doubts = doubts or is_tied(model.eigenvalues_)
    kernel = case.kind in (KernelDiscriminativePCA, KernelContrastivePCA)
    # Coordinates of two kernel fits cannot be compared: among equal values in a fold, directions are arbitrary.
    doubts = doubts or (kernel and any(map(is_tied, getattr(model, "values_of_folds", ()))))
    # With so few rows, components of a fold can be orthogonal to components of the fit. Their matching is arbitrary.
    doubts = doubts or (kernel and min(map(len, parts)) < 5)
    # The ridge of kernels is below single precision.
    doubts = doubts or (kernel and case.stored == "single")
    # Single precision has few digits if the background hardly varies, and for small values beside large values.
    values = np.abs(np.concatenate([model.eigenvalues_, *getattr(model, "values_of_folds", ())]))
    weak = np.min(values) < 1e-3 * np.max(values) or np.max(np.abs(model.ratio_)) > 1e5
    doubts = doubts or (case.stored == "single" and weak)
    digits = 1e-2 if kernel else 1e-3 if case.stored == "single" else 1e-5
    same = same_choices(model, other) and (kernel or not has_ties(model, other))
    if not doubts and same and not (form in STREAMS and has_fewer_folds(case)):
        assert agree(other.ratio_, model.ratio_, digits), f"{form}: {other.ratio_}, array: {model.ratio_}"
    # A ratio does not depend on units of columns. No estimator without a ridge depends on one unit of all columns.
    free = case.options.get("scale") or (case.kind is DiscriminativePCA and not case.options.get("shrinkage", 1.0))
    # Robust distances shrink the scatter, and so depend on the units of columns.
    free = free and case.options.get("robust") is None and (case.options.get("scale") or "smooth" not in case.options)
    # Without shrinkage the background of a fold must have more rows than columns.
    free = free and parts[0].shape[1] < min(map(len, parts)) // 2
    one_unit = np.ndim(case.units) == 0 and not kernel
    if case.stored == "double" and (free or one_unit):
        plain, said_of_plain = answered(case, case.datasets(units=False), "array", folder)
        sure = not doubts and not any(doubt in text for text in said_of_plain for doubt in DOUBTS)
        sure = sure and not isinstance(plain, OURS) and same_choices(model, plain)
        if sure and (kernel or not has_ties(model, plain, case.units)):
            assert agree(model.ratio_, plain.ratio_, 1e-4), f"in units: {model.ratio_}, without: {plain.ratio_}"
    return "in doubt" if doubts else "answered"


def check_model(case: Case, model: Any, said: list[str], parts: list[np.ndarray]) -> None:
    """Check an answer without a second route to compare it with."""
    backgrounds = parts[1:] or None
    assert np.all(np.isfinite(model.components_))
    assert np.all(np.isfinite(model.transform(parts[0])))
    assert repr(model)
    told = any("there is no ratio" in text for text in said) or model.held_out_ is None
    assert np.all(np.isfinite(model.ratio_)) or told
    doubts = any(doubt in text for text in said for doubt in DOUBTS)
    kernel = case.kind in (KernelDiscriminativePCA, KernelContrastivePCA)
    # The order of directions in which the target does not vary is arbitrary.
    doubts = doubts or np.min(np.abs(model.eigenvalues_)) < 1e-10 * np.max(np.abs(model.eigenvalues_))
    doubts = doubts or (kernel and case.stored == "single")
    digits = 1e-2 if case.kind in (KernelDiscriminativePCA, KernelContrastivePCA) else 1e-4
    if model.held_out_ is not None and not doubts:
        beside = {name: case.beside[name] for name in ("adjust", "background_adjust") if name in case.beside}
        own, *others = model.held_out_scores(parts[0], background=backgrounds, **beside)
        spread = _spread(case, model, own, 0)
        assert agree(spread, model.ratio_, digits), f"scores: {spread}, ratio: {model.ratio_}"
        against = [_spread(case, model, part, 1 + place) for place, part in enumerate(others)]
        unit = np.average(against, axis=0, weights=model.background_weights_)
        assert agree(unit, np.ones(model.n_components_), digits), f"backgrounds: {unit}"
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        expected = None if doubts else reference(case, parts)
    if expected is not None:
        count = min(model.n_components_, len(expected))
        found, expected = model.eigenvalues_[:count], expected[:count]
        assert agree(found, expected, 1e-6), f"{found}, SciPy: {expected}"
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


def main(first: int, count: int) -> int:
    """Check cases, print their outcomes, and return the number of failures."""
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[check(seed, Path(folder))] += 1
            except Exception as error:
                kind = "wrong" if isinstance(error, AssertionError) else "raw"
                found[kind] += 1
                place = traceback.extract_tb(error.__traceback__)[-1]
                case = drawn(seed)
                said = " ".join(f"{type(error).__name__}: {error}".split())[:400]
                print(f"{kind}, seed {seed}, {case.kind.__name__}, {case.form}, {case.stored}, {case.options}: {said}")
                print(f"    at {place.filename}:{place.lineno}", flush=True)
    print(f"{count} cases from {first}: {dict(found)}; not here: {[f for f in FORMS if not is_there(f)]}", flush=True)
    return found["wrong"] + found["raw"]


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]), int(sys.argv[2])), 99))
