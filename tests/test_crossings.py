"""Every pair of options: the held-out scores have the variances that are reported, and a known answer is found."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from standout import DiscriminativePCA, KernelDiscriminativePCA, permutation_test
from standout._messages import CautionWarning

OPTIONS = (
    "scale",
    "center",
    "subjects",
    "weights",
    "robust",
    "covariates",
    "few columns",
    "several backgrounds",
    "wide",
    "kernel",
)


def data(
    options: tuple[str, ...], seed: int = 0, strength: float = 5.0
) -> tuple[Any, dict[str, Any], dict[str, Any], int]:
    """Return the target, arguments of ``fit`` and of the estimator, and the column that stands out."""
    rng = np.random.default_rng(seed)
    width, counts = (120, (36, 30)) if "wide" in options else (6, (80, 60))
    parts = [rng.normal(size=(count, width)) for count in counts]
    parts[0][:, 2] *= strength
    fit: dict[str, Any] = {}
    make: dict[str, Any] = {}
    if "several backgrounds" in options:
        parts.append(rng.normal(size=(50, width)))
    if "scale" in options:
        make["scale"] = "pooled"
        parts = [part * np.geomspace(1.0, 50.0, width) for part in parts]
    if "center" in options:
        make["center"] = "background"
        parts[0][:, 2] += 2.0 * parts[0][:, 2].std()
    if "subjects" in options:
        # Subjects of different numbers of rows.
        owners = [np.sort(rng.integers(0, 8, size=len(part))) + 8 * place for place, part in enumerate(parts)]
        fit["groups"], fit["background_groups"] = owners[0], owners[1:] if len(parts) > 2 else owners[1]
    if "weights" in options:
        weights = [rng.uniform(0.5, 2.0, size=len(part)) for part in parts]
        fit["sample_weight"] = weights[0]
        fit["background_sample_weight"] = weights[1:] if len(parts) > 2 else weights[1]
    if "robust" in options:
        make["robust"] = "rows"
        parts[0][:2] += 100.0 * rng.normal(size=(2, width))
    if "covariates" in options:
        ages = [rng.normal(size=(len(part), 1)) for part in parts]
        for part, age in zip(parts, ages, strict=True):
            part += 20.0 * age * rng.normal(size=width)
        fit["adjust"], fit["background_adjust"] = ages[0], ages[1:] if len(parts) > 2 else ages[1]
    if "few columns" in options:
        make["n_columns"] = 3
    fit["background"] = parts[1:] if len(parts) > 2 else parts[1]
    return parts[0], fit, make, 2


def pairs() -> list[tuple[str, ...]]:
    """Return the pairs of options that an estimator has."""
    linear_only = {"scale", "few columns"}
    every = [(), *((option,) for option in OPTIONS), *combinations(OPTIONS, 2)]
    return [pair for pair in every if not ("kernel" in pair and linear_only & set(pair))]


@pytest.mark.parametrize("options", pairs(), ids="+".join)
def test_held_out_scores_have_the_variances_that_are_reported(options: tuple[str, ...]) -> None:
    X, fit, make, column = data(options)
    estimator = KernelDiscriminativePCA(1, **make) if "kernel" in options else DiscriminativePCA(1, **make)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)
        model = estimator.fit(X, **fit)
    # Scaled by its own spread, one of 120 columns is lost among 66 rows.
    if "kernel" not in options and not {"scale", "wide"} <= set(options):
        assert int(np.abs(model.correlations_[0]).argmax()) == column
    if "weights" in options or "robust" in options:
        return  # the variances are weighted ones
    beside = {name: fit[name] for name in ("adjust", "background_adjust") if name in fit}
    own, *others = model.held_out_scores(X, background=fit["background"], **beside)
    against = np.average([part.var(axis=0) for part in others], axis=0, weights=model.background_weights_)
    np.testing.assert_allclose(against, 1.0, rtol=1e-9)
    found = (own**2).mean(axis=0) if "center" in options else own.var(axis=0)
    np.testing.assert_allclose(found, model.ratio_, rtol=1e-9)
    if "center" in options:
        np.testing.assert_allclose(model.spread_ + own.mean(axis=0) ** 2, model.ratio_, rtol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("options", pairs(), ids="+".join)
def test_a_null_is_rejected_at_the_level(options: tuple[str, ...]) -> None:
    """0 to 12 of 100 nulls at 5 %: more than 12 has a probability below 0.2 % at the level."""
    rejected = 0
    for seed in range(100):
        X, fit, make, _ = data(options, seed + 1, strength=1.0)
        if "center" in options or "robust" in options:
            X, fit, make, _ = null(options, seed + 1)
        estimator = KernelDiscriminativePCA(1, **make) if "kernel" in options else DiscriminativePCA(1, **make)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CautionWarning)
            test = permutation_test(estimator.fit(X, **fit), X, **fit, n_draws=39, n_components=1, random_state=seed)
        rejected += bool(test.p_values[0] <= 0.05)
    assert rejected <= 12


def null(options: tuple[str, ...], seed: int) -> tuple[Any, dict[str, Any], dict[str, Any], int]:
    """Return the same without a shift of the mean and without outliers."""
    kept = tuple(option for option in options if option not in ("center", "robust"))
    X, fit, make, column = data(kept, seed, strength=1.0)
    more = {name: value for name, value in (("center", "background"), ("robust", "rows")) if name in options}
    return X, fit, {**make, **more}, column
