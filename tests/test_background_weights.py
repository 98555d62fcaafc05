"""Rules for the weights of several backgrounds (Remark 7)."""

from __future__ import annotations

import numpy as np
import pytest

from standout import DiscriminativePCA
from standout.moments import gather
from standout.problem import Problem, Sums, solve
from standout.selection import choose_weights
from standout.selection._weights import simplex_grid


@pytest.fixture
def sums(rng):
    spreads = ([4, 1, 1, 3], [4, 1, 1, 1], [1, 4, 1, 1])
    return Sums.of([gather(rng.normal(size=(400, 4)) * spread) for spread in spreads])


def leading(sums, weights):
    return solve(sums, Problem(weights=tuple(weights), shrinkage=0.05)).values[0]


def test_worst_case_has_the_smallest_leading_ratio_of_all_mixtures(sums):
    """No point of a fine grid is below the minimum, which is found to the tolerance of the search."""
    chosen = choose_weights("worst-case", sums, Problem(weights=(0.5, 0.5), shrinkage=0.05)).weights
    assert sum(chosen) == pytest.approx(1.0)
    least = min(leading(sums, (share, 1.0 - share)) for share in np.linspace(0.0, 1.0, 101))
    assert leading(sums, chosen) <= least * (1 + 1e-6)


def test_joint_maximisation_ends_at_the_background_with_the_largest_ratio(sums):
    chosen = choose_weights("joint", sums, Problem(weights=(0.5, 0.5), shrinkage=0.05)).weights
    corners = np.eye(2)
    assert chosen == tuple(corners[int(np.argmax([leading(sums, corner) for corner in corners]))])


def test_spectral_weights_are_on_the_grid(sums):
    chosen = choose_weights("spectral", sums, Problem(n_components=1, weights=(0.5, 0.5), shrinkage=0.05)).weights
    assert any(np.allclose(chosen, point) for point in simplex_grid(2, 8))


@pytest.mark.parametrize("rule", ["worst-case", "joint", "spectral"])
def test_a_fit_keeps_the_weights_that_a_rule_chose(rule, rng):
    X = rng.normal(size=(120, 3)) * [1, 1, 3]
    others = [rng.normal(size=(80, 3)) * [3, 1, 1], rng.normal(size=(90, 3)) * [1, 3, 1]]
    model = DiscriminativePCA(1, background_weights=rule).fit(X, background=others)
    assert model.background_weights_.sum() == pytest.approx(1.0)
    assert model.problem_.weights == tuple(model.background_weights_)
    assert np.abs(model.correlations_[0]).argmax() == 2
