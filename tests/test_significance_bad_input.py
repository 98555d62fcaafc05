"""What cannot be asked of the tests of components is refused, with advice."""

import numpy as np
import pytest

from standout.moments import gather
from standout.selection import component_test

PERMUTATION = {"method": "permutation"}


@pytest.mark.parametrize(
    ("options", "error", "parameter", "limit"),
    [
        ({"method": "exact"}, ValueError, "method", None),
        ({"level": 0.0}, ValueError, "level", (0, 1)),
        ({"level": "5 %"}, TypeError, "level", None),
        ({"n_components": 0}, ValueError, "n_components", 1),
        ({"n_components": 2.0}, TypeError, "n_components", 1),
        ({"n_components": 5}, ValueError, "n_components", 4),
        ({"background_weights": [1, 2]}, ValueError, "background_weights", 1),
        ({"shrinkage": 0.1, "method": "analytic"}, ValueError, "shrinkage", None),
        ({"shrinkage": "auto", "method": "analytic"}, ValueError, "shrinkage", None),
        ({"shrinkage": "some"}, ValueError, "shrinkage", None),
        ({"shrinkage": [0.1, 0.1], **PERMUTATION}, ValueError, "shrinkage", 1),
        ({"shrinkage": [1.1], **PERMUTATION}, ValueError, "shrinkage", (0, 1)),
        ({"shrinkage": [None], **PERMUTATION}, ValueError, "shrinkage", (0, 1)),
        ({"shrinkage": {}, **PERMUTATION}, TypeError, "shrinkage", None),
        ({"n_permutations": 18, **PERMUTATION}, ValueError, "n_permutations", 19),
        ({"n_permutations": 0, **PERMUTATION}, ValueError, "n_permutations", 19),
        ({"n_permutations": 99.0, **PERMUTATION}, TypeError, "n_permutations", 0),
        ({"n_components": 5, **PERMUTATION}, ValueError, "n_components", 4),
    ],
)
def test_settings_without_meaning_are_refused(options, error, parameter, limit, rng):
    with pytest.raises(error) as caught:
        component_test(rng.normal(size=(20, 4)), rng.normal(size=(20, 4)), **options)
    assert caught.value.parameter == parameter
    assert limit is None or caught.value.limit == limit
    assert caught.value.advice


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
    plain = component_test(target, background, method="analytic")
    doubled = component_test(*(np.hstack([X, X[:, :3], 0 * X[:, :1]]) for X in (target, background)))
    np.testing.assert_allclose(doubled.ratios, plain.ratios, rtol=1e-8)
    np.testing.assert_allclose(doubled.p_values, plain.p_values, rtol=1e-6)
    np.testing.assert_allclose(doubled.edges, plain.edges, rtol=1e-12)
    assert component_test(*(np.hstack([X, X]) for X in (target, background))).method == "analytic"


@pytest.mark.parametrize("method", ["analytic", "permutation"])
def test_bad_data_are_refused(method, rng):
    X = rng.normal(size=(20, 4))
    spoilt = X.copy()
    spoilt[3, 1] = np.nan
    cases = [
        ((X, spoilt), {"name": "background 1", "row": 3, "column": 1}),
        ((X, X[:, :3]), {"name": "background 1", "width": 3}),
        ((X, None), {}),
        ((X[:1], X), {"name": "the target", "n_rows": 1}),
    ]
    for datasets, facts in cases:
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            component_test(*datasets, method=method)
        assert facts.items() <= caught.value.facts.items()


def test_batches_and_moments_cannot_be_reshuffled(rng):
    X = rng.normal(size=(20, 4))
    for target, background in ((iter([X]), X), (X, iter([X])), (gather(X), X), (X, gather(X))):
        with pytest.raises(TypeError) as caught:
            component_test(target, background, method="permutation")
        assert caught.value.facts["name"] == ("background 1" if target is X else "the target")
    assert component_test(gather(X, kind="rows"), gather(X, kind="rows"), method="permutation").n_significant == 0
