"""Leading ratios of relabelings: the iterations give what LAPACK gives for the same groups of rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg

from standout.moments import gather
from standout.selection import Problem, _iterations, _permutation, _pool, component_test, permutation_test
from standout.selection._spectrum import LEAST_REST, PooledSpectrum

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
    found = dealt.largest_ratios(SHARES, ridges)
    # The share of the background in the direction of the largest ratio: where it is small, digits would be lost.
    left = np.min(1.0 / (1.0 + (1.0 - SHARES) * expected * sizes[0] / sizes[1]))
    assert (found is None) == (left < LEAST_REST)
    if found is not None:
        # Iterations end where a value changes by less than 1e-7 of itself in four steps.
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_background_that_does_not_vary_is_left_to_lapack(rng):
    rows = rng.normal(size=(30, 4))
    rows[10:] = rows[10]
    dealt = PooledSpectrum.of(rows).dealt(np.arange(10), np.arange(10, 30))
    assert dealt.largest_ratios(np.zeros(1), np.zeros(1)) is None


def rows_of_kind(kind, rng, n_rows=70, size=50):
    rows = rng.normal(size=(n_rows, size))
    if kind == "few directions":
        rows = rows[:, :3] @ rng.normal(size=(3, size))
    elif kind == "one row":
        rows = rows[:1]
    elif kind == "twice the same value":
        rows = np.diag([7.0, 7.0, *np.linspace(0.0, 1.0, size - 2)])
    elif kind == "nothing":
        rows = np.zeros((n_rows, size))
    elif kind == "heavy tails":
        rows = rng.standard_t(1, size=rows.shape)
    return rows


KINDS = ["plain", "few directions", "one row", "twice the same value", "nothing", "heavy tails"]


@pytest.mark.parametrize("kind", KINDS)
def test_iterations_find_the_largest_eigenvalue_and_the_largest_ratio(kind, rng):
    matrix, other = (rows.T @ rows for rows in (rows_of_kind(kind, rng), rows_of_kind("plain", rng)))
    other += np.eye(50)
    # Values are known to nine digits or more, unless they are the rounding of others.
    expected = linalg.eigvalsh(matrix)[-1]
    assert _iterations.largest_eigenvalue(matrix) == pytest.approx(expected, rel=1e-7, abs=1e-12)
    expected = linalg.eigvalsh(matrix, other)[-1]
    factor = np.linalg.cholesky(other)
    assert _iterations.largest_ratio(matrix, factor) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [[0.9], [1.0, 0.5, 0.0]])
def test_ratios_of_inner_products_are_those_of_the_columns(kind, factors, rng):
    factors, ridges = np.array(factors), np.linspace(0.1, 2.0, len(factors))
    target, background = rng.normal(size=(30, 80)), rows_of_kind(kind, rng, n_rows=40, size=80)
    found = _iterations.ratios_of_inner_products(
        target @ target.T, background @ target.T, background @ background.T, factors, ridges
    )
    expected = [
        linalg.eigvalsh(target.T @ target, factor * background.T @ background + ridge * np.eye(80))[-1]
        for factor, ridge in zip(factors, ridges, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_background_without_rows_or_ridge_has_an_infinite_ratio():
    nothing = np.zeros((3, 3))
    for factors in ([1.0], [1.0, 0.5]):
        ridges = np.zeros(len(factors))
        found = _iterations.ratios_of_inner_products(np.eye(3), nothing, nothing, np.array(factors), ridges)
        assert np.all(np.isinf(found))


def test_iterations_say_that_they_did_not_converge(rng):
    # The largest value is a 1e-9th of the others, and has neighbours.
    values = np.append(np.linspace(-1e9, -1e8, 200), np.linspace(0.9, 1.0, 100))
    turn = linalg.qr(rng.normal(size=(300, 300)))[0]
    assert _iterations.largest_eigenvalue((turn * values) @ turn.T) is None


PATH = np.array([0.05, 0.3, 0.8, 1.0])
ONE, TWO = np.ones(1), np.array([0.3, 0.7])
PROBLEMS = {
    "ratio": Problem.of_shrinkage(ONE, np.array([0.2])),
    "plain ratio": Problem.of_shrinkage(ONE, np.zeros(1)),
    "path": Problem.of_shrinkage(ONE, np.array([0.2]), PATH),
    "two backgrounds": Problem.of_shrinkage(TWO, np.array([0.2, 0.2])),
    "two shrinkages": Problem.of_shrinkage(TWO, np.array([0.2, 0.4])),
    "two backgrounds, path": Problem.of_shrinkage(TWO, np.array([0.3, 0.3]), PATH),
    "ridge": Problem.of_ridge(ONE, 0.5),
    "both sides": Problem.of_shrinkage(ONE, np.array([0.2])).of_side("both"),
    "difference": Problem.of_difference(TWO, 2.0),
    "differences": Problem.of_difference(ONE, 2.0, np.array([0.1, 1.0, 30.0])).of_side("both"),
}
WIDE = [name for name in PROBLEMS if name not in ("plain ratio", "both sides")]


@pytest.mark.parametrize(
    ("n_columns", "name"), [*((30, name) for name in PROBLEMS), *((400, name) for name in WIDE)], ids=str
)
def test_every_way_gives_the_test_of_lapack(n_columns, name, rng, monkeypatch):
    problem = PROBLEMS[name]
    rows = [rng.standard_t(5, size=(60, n_columns)) + 3.0 for _ in range(1 + len(problem.weights))]
    rows[0][:, 0] *= 4.0
    target, *backgrounds = (gather(part, kind="rows", single=False) for part in rows)

    def tested(least):
        monkeypatch.setattr(_pool, "LEAST_ITERATED", least)
        monkeypatch.setattr(_permutation, "LEAST_POOLED", least)
        return permutation_test(target, backgrounds, problem, n_components=2, n_permutations=19, seed=1)

    expected, found = tested(10**9), tested(10)
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    np.testing.assert_allclose(found.edges, expected.edges, rtol=1e-6)
    assert found.n_permutations == expected.n_permutations
    # Iterations that do not converge are LAPACK's business.
    monkeypatch.setattr(_iterations.largest_values, "__defaults__", (4,))
    given_up = tested(10)
    np.testing.assert_allclose(given_up.edges, expected.edges, rtol=1e-6)


def test_subjects_are_dealt_alike_on_every_way(rng, monkeypatch):
    rows = [rng.normal(size=(60, 200)) for _ in range(2)]
    groups = {"groups": np.arange(60) // 5, "background_groups": 100 + np.arange(60) // 7}
    answers = []
    for least in (10**9, 10):
        monkeypatch.setattr(_pool, "LEAST_ITERATED", least)
        answers.append(component_test(*rows, n_components=1, n_permutations=39, shrinkage=0.2, **groups))
    np.testing.assert_allclose(answers[1].edges, answers[0].edges, rtol=1e-6)
    np.testing.assert_array_equal(answers[1].p_values, answers[0].p_values)


def test_few_rows_of_the_background_and_little_shrinkage_give_the_test_of_lapack(rng, monkeypatch):
    # Iterations converge slowly there. Values that have not converged are too small, and would be false alarms.
    rows, sizes = rng.normal(size=(190, 150)), (180, 10)
    problem = Problem.of_shrinkage(np.ones(1), np.array([0.002]), np.array([0.002, 0.02, 0.2]))
    pool = _pool.Pool.of(rows, sizes, np.zeros(1), 150, by_gram=False)
    by_spectrum = replace(pool, spectrum=PooledSpectrum.of(rows))
    for _ in range(3):
        order = rng.permutation(190)
        np.testing.assert_allclose(by_spectrum.values(problem, order), pool.values(problem, order), rtol=1e-4)


@pytest.mark.parametrize("size", [1e-170, 1.0, 1e170])
def test_values_of_any_size_are_found(size, rng):
    matrix = np.cov(rng.normal(size=(40, 30)).T)
    found = _iterations.largest_eigenvalue(size * matrix)
    assert found == pytest.approx(size * np.linalg.eigvalsh(matrix)[-1], rel=1e-8)
