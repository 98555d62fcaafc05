"""The test of a fitted model is a test of its fit: of the same rows, weights and parameters."""

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
)
from standout._messages import CautionWarning
from standout.estimators import fitted_test
from standout.moments import gather

N_ROWS = (40, 36, 32)
SUBJECTS = {
    "groups": np.repeat([f"a{number}" for number in range(8)], [8, 2, 7, 3, 5, 5, 6, 4]),
    "background_groups": [np.arange(36) // 4, np.arange(32) // 4 + 100],
}
WEIGHTS = {
    "sample_weight": np.linspace(0.5, 3.0, 40),
    "background_sample_weight": [None, np.linspace(2.0, 0.5, 32)],
}
COVARIATES = {"adjust": np.arange(40.0), "background_adjust": [np.arange(36.0)[:, None], np.arange(32.0)[:, None]]}
OPTIONS = [
    ({}, {}),
    ({"side": "both"}, {}),
    ({"blocks": 4}, {}),
    ({}, SUBJECTS),
    ({"variation": "within"}, SUBJECTS),
    ({"variation": "between"}, SUBJECTS),
    ({"subject_weights": "equal"}, SUBJECTS),
    ({"variation": "within", "subject_weights": "equal"}, {**SUBJECTS, **WEIGHTS, **COVARIATES}),
    ({}, COVARIATES),
    ({}, WEIGHTS),
    ({"robust": "rows"}, {}),
    ({"robust": "cells"}, {}),
    ({"background_weights": [0.3, 0.7]}, {}),
]
ESTIMATORS = [
    DiscriminativePCA(2, shrinkage=0.2),
    DiscriminativePCA(2, n_columns=3),
    ContrastivePCA(2),
    ContrastivePCA(2, alpha=[0.5, 1.0, 2.0], n_representatives=2),
    KernelDiscriminativePCA(2, kernel="poly", degree=2),
    KernelDiscriminativePCA(2),
    KernelContrastivePCA(2),
    KernelContrastivePCA(2, alpha=1.0, kernel="poly", degree=2),
]


def some_data(rng, width=5):
    X, *Y = (rng.normal(size=(n_rows, width)) for n_rows in N_ROWS)
    X[:, 0] *= 2.5
    Y[0][:, 1] *= 2.0
    X[3, 2] = 30.0
    return X, Y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("given", "facts"), OPTIONS)
@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_the_tested_values_are_those_of_the_fit(model, given, facts, rng):
    X, Y = some_data(rng)
    model = type(model)(**{**model.get_params(), "held_out": None, **given}).fit(X, background=Y, **facts)
    few = getattr(model, "n_columns", None) is not None
    n_components = 1 if few else 2
    asked = {"method": "permutation"} if isinstance(model, DiscriminativePCA) else {}
    if given.get("side") == "both" and type(model) is KernelDiscriminativePCA and model.kernel == "rbf":
        # As many coordinates as rows: the target lacks some of them altogether.
        with pytest.raises(ValueError, match="its least ratio is 0"):
            fitted_test(model, X, Y, n_permutations=19, **facts)
        return
    found = fitted_test(model, X, Y, n_components=n_components, n_permutations=5, level=0.2, **asked, **facts)
    np.testing.assert_allclose(found.ratios, model.eigenvalues_[:n_components], rtol=1e-7)
    assert found.unit == ("blocks" if "blocks" in given else "subjects" if "groups" in facts else "rows")


@pytest.mark.filterwarnings("ignore:the shrinkage that was chosen")
@pytest.mark.parametrize(
    ("model", "rule", "width"),
    [
        (DiscriminativePCA(2), "best", 4),
        (DiscriminativePCA(2), "worst-case", 120),
        (DiscriminativePCA(2, shrinkage="held-out"), "spectral", 4),
        (KernelDiscriminativePCA(2), "best", 4),
        (KernelDiscriminativePCA(2), "worst-case", 4),
        (KernelDiscriminativePCA(2, kernel="linear", epsilon="held-out"), "best", 4),
        (KernelDiscriminativePCA(2, kernel="linear"), "spectral", 120),
    ],
    ids=repr,
)
def test_weights_by_a_rule_are_chosen_as_in_the_fit(model, rule, width, rng):
    rows = [rng.normal(size=(n_rows, width)) for n_rows in (14, 12, 10)]
    rows[0][:, :2] *= [3.0, 2.0]
    model = type(model)(**{**model.get_params(), "background_weights": rule}).fit(rows[0], background=rows[1:])
    method = {"method": "permutation"} if isinstance(model, DiscriminativePCA) else {}
    found = fitted_test(model, rows[0], rows[1:], n_components=1, n_permutations=5, level=0.2, **method)
    np.testing.assert_allclose(found.ratios[0], model.eigenvalues_[0], rtol=1e-7)


def test_weights_that_were_chosen_are_allowed_for():
    """60 null datasets, of which 12 are expected at a level of 20 %. With fixed weights in permutations it was 32."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 3])
        X, *Y = (rng.normal(size=(n_rows, 3)) for n_rows in (25, 12, 12, 12, 12))
        model = KernelDiscriminativePCA(1, kernel="linear", background_weights="best", held_out=None)
        test = fitted_test(model.fit(X, background=Y), X, Y, n_components=1, n_permutations=19)
        found += int(test.p_values[0] <= 0.2)
    # Each bound has a chance of less than 0.4 %.
    assert 4 <= found <= 21


@pytest.mark.parametrize("alpha", [1.0, "auto"])
def test_kernel_contrastive_pca_is_contrastive_pca_of_kernel_coordinates(alpha, rng):
    X, (Y, _) = some_data(rng, 3)
    rows = np.vstack([X, Y])
    coordinates = np.linalg.cholesky(rbf_kernel(rows) + 1e-12 * np.eye(len(rows)))
    kernel = KernelContrastivePCA(2, alpha=alpha).fit(X, background=Y)
    linear = ContrastivePCA(2, alpha=alpha).fit(coordinates[: len(X)], background=coordinates[len(X) :])
    by_kernel = fitted_test(kernel, X, Y, n_components=2, n_permutations=39)
    expected = fitted_test(linear, coordinates[: len(X)], coordinates[len(X) :], n_components=2, n_permutations=39)
    np.testing.assert_allclose(by_kernel.ratios, expected.ratios, rtol=1e-6)
    np.testing.assert_allclose(by_kernel.edges, expected.edges, rtol=1e-6)
    np.testing.assert_array_equal(by_kernel.p_values, expected.p_values)


def test_a_precomputed_kernel_is_tested_as_the_kernel_itself(rng):
    X, Y = some_data(rng, 3)
    values = rbf_kernel(np.vstack([X, *Y]))
    parts = np.split(values, np.cumsum(N_ROWS)[:-1])
    for estimator in (KernelContrastivePCA(1), KernelDiscriminativePCA(1)):
        named = type(estimator)(1).fit(X, background=Y)
        precomputed = type(estimator)(1, kernel="precomputed").fit(parts[0], background=parts[1:])
        expected = fitted_test(named, X, Y, n_components=1, n_permutations=19)
        found = fitted_test(precomputed, parts[0], parts[1:], n_components=1, n_permutations=19)
        np.testing.assert_allclose(found.ratios, expected.ratios, rtol=1e-6)
        np.testing.assert_array_equal(found.p_values, expected.p_values)


def test_no_other_alpha_is_allowed_for_than_those_that_were_given(rng):
    X, (Y, _) = some_data(rng)
    found = [
        fitted_test(ContrastivePCA(1, alpha=alpha, n_representatives=1).fit(X, background=Y), X, Y, n_components=1)
        for alpha in (2.0, [2.0], [2.0, 2.5])
    ]
    assert found[0].edges == found[1].edges
    assert found[2].edges > found[0].edges
    assert found[2].n_permutations > found[0].n_permutations


# --- what cannot be tested -------------------------------------------------------------------------------------------


def test_what_was_said_of_rows_must_be_said_again(rng):
    X, Y = some_data(rng)
    weighted = ContrastivePCA(1, alpha=1.0).fit(X, background=Y, **WEIGHTS)
    with pytest.warns(CautionWarning, match="not the p-values of the fit"):
        fitted_test(weighted, X, Y, n_components=1, n_permutations=19)
    within = ContrastivePCA(1, alpha=1.0, variation="within").fit(X, background=Y, **SUBJECTS)
    with pytest.raises(ValueError, match="is about subjects, and none are named"):
        fitted_test(within, X, Y)
    moments = [gather(part) for part in (X, *Y)]
    model = DiscriminativePCA(1).fit(X, background=Y)
    assert fitted_test(model, moments[0], moments[1:], n_components=1).method == "analytic"
    with pytest.raises(TypeError, match="what is said of rows"):
        fitted_test(model, moments[0], moments[1:], sample_weight=np.ones(40))


def test_weights_that_a_model_has_lost_are_not_left_out_in_silence(rng):
    X, Y = some_data(rng)
    model = ContrastivePCA(1, robust="rows").fit(X, background=Y)
    del model.robust_weights_
    with pytest.raises(ValueError, match="does not know what robust has learned"):
        fitted_test(model, X, Y)


def test_other_models_have_no_test(rng):
    from sklearn.decomposition import PCA

    X, Y = some_data(rng)
    with pytest.raises(TypeError, match="PCA has no test of its components"):
        fitted_test(PCA(1).fit(X), X, Y)


@pytest.mark.parametrize("given", [np.random.default_rng(3), "three", 1.5, -1])
def test_a_random_state_that_is_none_is_refused(given, rng):
    X, Y = some_data(rng)
    with pytest.raises(ValueError, match=r"random_state=.* Give a whole number"):
        ContrastivePCA(1, random_state=given).fit(X, background=Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ContrastivePCA(1, random_state=np.random.RandomState(3)).fit(X, background=Y)
