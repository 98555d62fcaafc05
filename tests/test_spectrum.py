"""Leading ratios of relabelings: the iterations give what LAPACK gives for the same groups of rows."""

import numpy as np
import pytest
from scipy import linalg

from standout.selection._spectrum import PooledSpectrum

SHARES = np.array([0.02, 0.1, 0.5, 0.9, 1.0])


def by_lapack(target, background, shares, ridges):
    own, other = (np.cov(part.T, bias=True) for part in (target, background))
    size = len(own)
    last = [size - 1, size - 1]
    return np.array(
        [
            linalg.eigh(own, (1.0 - share) * other + ridge * np.eye(size), eigvals_only=True, subset_by_index=last)[0]
            for share, ridge in zip(shares, ridges, strict=True)
        ]
    )


@pytest.mark.parametrize("sizes", [(60, 80), (90, 30), (25, 25), (7, 200)])
@pytest.mark.parametrize("kind", ["plain", "shifted", "few directions", "one strong column", "heavy tails"])
def test_the_largest_ratio_of_each_shrinkage(sizes, kind, rng):
    rows = rng.normal(size=(sum(sizes), 40)) * np.linspace(0.2, 3.0, 40)
    if kind == "shifted":
        rows += 5.0
    elif kind == "few directions":
        rows = rows[:, :6] @ rng.normal(size=(6, 40))
    elif kind == "one strong column":
        rows[: sizes[0], 3] *= 20.0
    elif kind == "heavy tails":
        rows = rng.standard_t(2, size=rows.shape)
    order = np.arange(len(rows)) if kind == "one strong column" else rng.permutation(len(rows))
    groups = order[: sizes[0]], order[sizes[0] :]
    dealt = PooledSpectrum.of(rows).dealt(*groups)
    background = rows[groups[1]]
    assert dealt.variance == pytest.approx(background.var(axis=0).sum())
    ridges = SHARES * dealt.variance / 40
    expected = by_lapack(rows[groups[0]], background, SHARES, ridges)
    # Iterations end where a value changes by less than 1e-6 of itself in eight steps.
    np.testing.assert_allclose(dealt.largest_ratios(SHARES, ridges), expected, rtol=1e-4)


def test_a_background_that_does_not_vary_has_an_infinite_ratio(rng):
    rows = rng.normal(size=(30, 4))
    rows[10:] = rows[10]
    dealt = PooledSpectrum.of(rows).dealt(np.arange(10), np.arange(10, 30))
    assert np.all(dealt.largest_ratios(np.zeros(1), np.zeros(1)) > 1e6)


def test_permutations_by_iterations_give_the_p_values_of_lapack(rng, monkeypatch):
    from standout.selection import _permutation, component_test

    target, background = rng.normal(size=(90, 60)), rng.normal(size=(110, 60))
    target[:, 0] *= 2.5
    expected = component_test(target, background, n_components=2, method="permutation", shrinkage=0.2, random_state=0)
    asked = []
    monkeypatch.setattr(_permutation, "LEAST_ITERATED", 10)
    monkeypatch.setattr(
        _permutation,
        "PooledSpectrum",
        type(
            "Seen",
            (PooledSpectrum,),
            {"of": classmethod(lambda cls, rows: asked.append(rows.shape) or PooledSpectrum.of(rows))},
        ),
    )
    found = component_test(target, background, n_components=2, method="permutation", shrinkage=0.2, random_state=0)
    assert asked == [(200, 60), (200, 59)]
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    np.testing.assert_allclose(found.edges, expected.edges, rtol=1e-4)
