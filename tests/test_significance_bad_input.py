"""What cannot be asked of the tests of components is refused, with advice."""

import numpy as np
import pytest

from standout.moments import gather
from standout.selection import component_test

PERMUTATION = {"method": "permutation"}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "exact"}, ValueError, "method='exact' is unknown"),
        ({"level": 0.0}, ValueError, "level=0.0 is not between 0 and 1"),
        ({"level": "5 %"}, TypeError, "is not a number"),
        ({"n_components": 0}, ValueError, "less than 1"),
        ({"n_components": 2.0}, TypeError, "not a whole number"),
        ({"n_components": 5}, ValueError, "n_features=4"),
        ({"background_weights": [1, 2]}, ValueError, "number of backgrounds is 1"),
        ({"shrinkage": 0.1}, ValueError, "does not go with the analytic test"),
        ({"shrinkage": "auto"}, ValueError, "does not go with the analytic test"),
        ({"shrinkage": "some"}, ValueError, "shrinkage='some' is unknown"),
        ({"shrinkage": [0.1, 0.1], **PERMUTATION}, ValueError, "number of backgrounds is 1"),
        ({"shrinkage": [1.1], **PERMUTATION}, ValueError, "outside"),
        ({"shrinkage": [None], **PERMUTATION}, ValueError, "outside"),
        ({"shrinkage": {}, **PERMUTATION}, TypeError, "is not a number"),
        ({"n_permutations": 18, **PERMUTATION}, ValueError, "at least 19"),
        ({"n_permutations": 0, **PERMUTATION}, ValueError, "too few"),
        ({"n_permutations": 99.0, **PERMUTATION}, TypeError, "not a whole number"),
        ({"n_components": 5, **PERMUTATION}, ValueError, "n_features=4"),
    ],
)
def test_settings_without_meaning_are_refused(options, error, words, rng):
    with pytest.raises(error, match=words):
        component_test(rng.normal(size=(20, 4)), rng.normal(size=(20, 4)), **options)


@pytest.mark.parametrize("method", ["analytic", "permutation"])
def test_too_few_background_rows_are_refused_with_advice(method, rng):
    with pytest.raises(ValueError, match="shrinkage='auto'"):
        component_test(rng.normal(size=(20, 10)), rng.normal(size=(10, 10)), method=method)


@pytest.mark.parametrize("method", ["analytic", "permutation"])
def test_a_singular_background_is_refused_with_advice(method, rng):
    target, background = rng.normal(size=(20, 4)), rng.normal(size=(20, 4))
    background[:, 3] = 7.0
    with pytest.raises(ValueError, match="singular.*shrinkage='auto'"):
        component_test(target, background, method=method)


def test_columns_that_hold_nothing_new_in_any_dataset_do_not_count_for_the_analytic_test(rng):
    target, background = rng.normal(size=(40, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(50, 5))
    plain = component_test(target, background)
    doubled = component_test(*(np.hstack([X, X[:, :3], 0 * X[:, :1]]) for X in (target, background)))
    np.testing.assert_allclose(doubled.ratios, plain.ratios, rtol=1e-8)
    np.testing.assert_allclose(doubled.p_values, plain.p_values, rtol=1e-6)
    np.testing.assert_allclose(doubled.edges, plain.edges, rtol=1e-12)
    everything = component_test(*(np.hstack([X, X]) for X in (9.0 * target, background)))
    assert everything.n_significant == len(everything.ratios) == 5


@pytest.mark.parametrize("method", ["analytic", "permutation"])
def test_bad_data_are_refused(method, rng):
    X = rng.normal(size=(20, 4))
    spoilt = X.copy()
    spoilt[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in row 3, column 1"):
        component_test(X, spoilt, method=method)
    with pytest.raises(ValueError, match="3 features"):
        component_test(X, X[:, :3], method=method)
    with pytest.raises(ValueError, match="no background"):
        component_test(X, None, method=method)
    with pytest.raises(ValueError, match="too few rows"):
        component_test(X[:1], X, method=method)


def test_batches_and_moments_cannot_be_reshuffled(rng):
    X = rng.normal(size=(20, 4))
    for target, background in ((iter([X]), X), (X, iter([X])), (gather(X), X), (X, gather(X))):
        with pytest.raises(TypeError, match="but the permutation test (reads its rows again|needs its rows). Give"):
            component_test(target, background, method="permutation")
    assert component_test(gather(X, kind="rows"), gather(X, kind="rows"), method="permutation").n_significant == 0
