"""Permutation tests and bootstrap: statistics and p-values by hand, levels by simulation, units, errors."""

from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks import inference as simulations
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelDiscriminativePCA,
    bootstrap,
    make_pipeline,
    permutation_test,
)
from standout._messages import CautionWarning, InvalidValueError
from standout.selection import _leading
from standout.selection._bootstrap import _fisher_intervals, _Refit
from standout.selection._inference import standardised
from standout.selection._leading import Statistic
from standout.selection._resample import Deck, centred, middle_of
from standout.selection._units import _rows_of_each, plan_rows, plan_subjects
from standout.sources import open_datasets

pytestmark = pytest.mark.filterwarnings("ignore::standout._messages.FindingWarning")


def two(rng, n=60, m=70, d=6, strength=0.0, k=1):
    """Return a target with k columns of larger variance, and a background."""
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    X[:, :k] *= 1.0 + strength
    return X, Y


def wide(rng, n=25, d=60):
    """Return wide rows, whose target has a factor of all columns, and the signs of that factor."""
    X, Y = two(rng, n, n, d)
    signs = np.where(rng.random(d) < 0.5, -1.0, 1.0)
    return X + 2.0 * rng.normal(size=(n, 1)) * signs, Y, signs


def fitted(X, Y, n_components=1, **options):
    return DiscriminativePCA(n_components, **options).fit(X, background=Y)


def log_ratio(X, Y, shrinkage, mean=None):
    """Return the logarithm of the largest ratio of the shrunken problem, from its definition."""
    A, B = np.cov(X.T, bias=True), np.cov(Y.T, bias=True)
    if mean is not None:
        A = (X - mean).T @ (X - mean) / len(X)
    B = (1 - shrinkage) * B + shrinkage * np.trace(B) / len(B) * np.eye(len(B))
    return np.log(linalg.eigh(A, B, eigvals_only=True)[-1])


def subjects_of(rng, n, rows, d, icc=0.5, first=0):
    """Return rows of n subjects with a common part, and the subject of each row."""
    rows = np.broadcast_to(rows, n)
    data = [np.sqrt(icc) * rng.normal(size=d) + np.sqrt(1 - icc) * rng.normal(size=(count, d)) for count in rows]
    return np.concatenate(data), np.repeat(first + np.arange(n), rows)


# --- the statistic and its p-value -----------------------------------------------------------------------------------


def test_the_statistic_is_the_logarithm_of_the_leading_ratio(rng):
    X, Y = two(rng)
    test = permutation_test(fitted(X, Y, shrinkage=0.2), X, background=Y)
    assert test.statistics[0] == pytest.approx(log_ratio(X, Y, 0.2), abs=1e-9)


def test_a_wide_statistic_is_that_of_the_whole_matrices(rng):
    X, Y = two(rng, 12, 14, 40, 2.0)
    test = permutation_test(fitted(X, Y, shrinkage=0.3), X, background=Y, n_draws=19)
    assert test.statistics[0] == pytest.approx(log_ratio(X, Y, 0.3), abs=1e-9)


def test_a_statistic_by_iterations_is_that_of_lapack(rng):
    X, Y = two(rng, 90, 110, 220, 1.0)
    test = permutation_test(fitted(X, Y, shrinkage=0.3), X, background=Y, n_draws=19)
    # Ten times the square of the residual at which iterations end.
    assert test.statistics[0] == pytest.approx(log_ratio(X, Y, 0.3), abs=1e-5)


@pytest.mark.parametrize("given", ["path", "two backgrounds", "weights", "robust", "subjects"])
def test_draws_by_inner_products_of_rows_have_the_values_of_their_scatters(given, rng, monkeypatch):
    X, Y = two(rng, 130, 150, 200, 4.0, k=2)
    X, Y, more, options = X + 3.0, Y + 2.0, {}, {}
    if given == "two backgrounds":
        Y, options = [Y[:60], 2.0 * Y[60:]], {"shrinkage": 0.3, "background_weights": (0.2, 0.8)}
    elif given == "weights":
        more = {"sample_weight": 1.0 + rng.random(130), "background_sample_weight": 1.0 + rng.random(150)}
    elif given == "robust":
        options = {"robust": "rows"}
    elif given == "subjects":
        more = {"groups": np.arange(130) // 10, "background_groups": 20 + np.arange(150) // 12}
    model = DiscriminativePCA(2, **options).fit(X, background=Y, **more)
    used = []
    by_products = Statistic.values_by_products
    monkeypatch.setattr(Statistic, "values_by_products", lambda *given: used.append(1) or by_products(*given))
    test = permutation_test(model, X, background=Y, n_draws=19, **more)
    assert used
    # All values by LAPACK.
    monkeypatch.setattr(_leading, "LEAST_ITERATED", 1000)
    other = permutation_test(model, X, background=Y, n_draws=19, **more)
    assert len(test.draws) == len(other.draws) == 2
    np.testing.assert_allclose(test.statistics, other.statistics, atol=1e-4)
    for own, theirs in zip(test.draws, other.draws, strict=True):
        np.testing.assert_allclose(own, theirs, atol=3e-3)


def test_the_statistic_of_contrastive_pca_is_the_largest_difference(rng):
    X, Y = two(rng)
    test = permutation_test(ContrastivePCA(1, alpha=2.0).fit(X, background=Y), X, background=Y)
    difference = np.cov(X.T, bias=True) - 2.0 * np.cov(Y.T, bias=True)
    assert test.statistics[0] == pytest.approx(np.linalg.eigvalsh(difference)[-1], abs=1e-9)


def test_the_p_value_counts_the_draws_that_reach_the_statistic(rng):
    X, Y = two(rng, strength=0.25)
    test = permutation_test(fitted(X, Y, shrinkage=0.1), X, background=Y, n_components=1)
    reached = int(np.sum(test.draws[0] >= test.statistics[0]))
    assert 0 < reached < 10
    assert test.n_draws == (199,)
    assert test.p_values[0] == (1 + reached) / 200


def test_a_clear_null_ends_after_ten_draws_that_reach_it(rng):
    X, Y = two(rng)
    test = permutation_test(fitted(X, Y, shrinkage=0.1), X, background=Y)
    assert np.sum(test.draws[0] >= test.statistics[0]) == 10
    assert test.p_values[0] == 10 / test.n_draws[0]
    assert test.n_draws[0] < 199
    assert test.reason == "component 1 is not distinguishable from chance"


def test_the_values_of_a_path_are_combined_by_the_largest_in_standard_deviations():
    values = np.array([[3.0, 10.0], [1.0, 20.0], [1.0, 30.0], [3.0, 20.0]])
    # Means 2 and 20, standard deviations 1 and √50.
    expected = [1.0, 0.0, np.sqrt(2), 1.0]
    np.testing.assert_allclose(standardised(values).max(axis=1), expected, atol=1e-12)
    np.testing.assert_array_equal(standardised(values[:, :1]), values[:, :1])


def test_every_relabeling_is_made_once_if_there_are_few(rng):
    X, groups = subjects_of(rng, 3, 5, 4)
    Y, others = subjects_of(rng, 3, 5, 4, first=3)
    X[:, 0] *= 3.0
    model = fitted(X, Y, shrinkage=0.2, center="background", cv=None)
    test = permutation_test(model, X, background=Y, groups=groups, background_groups=others)
    rows = np.concatenate([X, Y]).reshape(6, 5, 4)
    expected = []
    for chosen in combinations(range(6), 3):
        target = rows[list(chosen)].reshape(-1, 4)
        background = rows[[k for k in range(6) if k not in chosen]].reshape(-1, 4)
        expected.append(log_ratio(target, background, 0.2, background.mean(axis=0)))
    assert test.n_draws == (19,)
    assert test.statistics[0] == pytest.approx(expected[0], abs=1e-9)
    np.testing.assert_allclose(np.sort(test.draws[0]), np.sort(expected[1:]), atol=1e-9)
    assert test.p_values[0] == np.mean(np.array(expected) >= expected[0] - 1e-9)


def test_draws_that_differ_from_the_data_by_rounding_alone_reach_the_statistic(rng):
    """Six subjects with the same rows: the rows of a deal are added in another order, and each p-value is 1."""
    rows = rng.normal(size=(7, 4)) + 3.0
    X = np.concatenate([rows, rows[::-1], rows])
    Y, groups = X[::-1].copy(), np.repeat(np.arange(3), 7)
    test = permutation_test(fitted(X, Y, shrinkage=0.2), X, background=Y, groups=groups, background_groups=groups + 3)
    assert len(np.unique(test.draws[0])) > 1
    assert test.p_values[0] == 1.0


@pytest.mark.parametrize("kind", ["shrinkage", "few rows", "alpha"])
def test_a_chosen_value_is_allowed_for_by_the_largest_of_several(rng, kind):
    """All relabelings of 3 + 3 subjects, at the representatives of the path, in standard deviations of them all."""
    n, d = (2, 8) if kind == "few rows" else (5, 3)
    X, groups = subjects_of(rng, 3, n, d)
    Y, others = subjects_of(rng, 3, n, d, first=3)
    X[:, 0] *= 2.0
    model = (ContrastivePCA if kind == "alpha" else DiscriminativePCA)(1, center="background")
    given = {"groups": groups, "background_groups": others}
    test = permutation_test(model.fit(X, background=Y, **given), X, background=Y, **given)
    rows = np.concatenate([X, Y]).reshape(6, n, d)
    expected = []
    for chosen in combinations(range(6), 3):
        target, back = (rows[[k for k in range(6) if (k in chosen) == own]].reshape(-1, d) for own in (True, False))
        A = (target - back.mean(axis=0)).T @ (target - back.mean(axis=0)) / len(target)
        B = np.cov(back.T, bias=True)
        if kind == "alpha":
            unit = np.trace(np.cov(target.T, bias=True)) / np.trace(B)
            every = [np.linalg.eigvalsh(A - unit * value * B)[-1] for value in (1.0, 4.0, 15.0, 60.0)]
        else:
            shares = (0.03, 0.5) if kind == "few rows" else (1e-9, 0.01, 0.1, 0.7)
            every = np.exp([log_ratio(target, back, share, back.mean(axis=0)) for share in shares])
        expected.append(every if kind == "alpha" else np.log(every))
    z = np.array(expected)
    z = ((z - z.mean(axis=0)) / z.std(axis=0)).max(axis=1)
    assert test.n_draws == (19,)
    assert test.statistics[0] == pytest.approx(z[0], abs=1e-6)
    np.testing.assert_allclose(np.sort(test.draws[0]), np.sort(z[1:]), atol=1e-6)


def test_draws_of_weighted_rows_are_relabelings_with_the_weights_at_their_places(rng):
    X, Y = two(rng, 3, 3, 2)
    weights = {"sample_weight": np.array([1.0, 2.0, 5.0]), "background_sample_weight": np.array([3.0, 1.0, 4.0])}
    model = DiscriminativePCA(1, shrinkage=0.3, center="background", cv=None).fit(X, background=Y, **weights)
    test = permutation_test(model, X, background=Y, n_draws=60, level=0.5, **weights)
    w, v = (own / own.mean() for own in weights.values())
    possible = []
    for order in permutations(range(6)):
        rows = np.concatenate([X, Y])[list(order)]
        step = rows[:3] - np.average(rows[3:], axis=0, weights=v)
        A, B = (w[:, None] * step).T @ step / w.sum(), np.cov(rows[3:].T, aweights=v, bias=True)
        possible.append(linalg.eigvalsh(A, 0.7 * B + 0.3 * np.trace(B) / 2 * np.eye(2))[-1])
    assert test.statistics[0] == pytest.approx(np.log(possible[0]), abs=1e-9)
    away = np.abs(test.draws[0][:, None] - np.log(possible)).min(axis=1)
    np.testing.assert_allclose(away, 0.0, atol=1e-8)
    assert len(np.unique(test.draws[0].round(8))) > 10


def test_subjects_of_both_datasets_are_swapped_within_themselves(rng):
    codes = [np.repeat(np.arange(5), 3), np.repeat(np.arange(5), 3)]
    plan = plan_subjects(codes, 100, 500, rng)
    assert plan.n_ways == 32
    deals = list(plan.deals(rng, 99))
    assert len(deals) == 31
    for at in deals:
        np.testing.assert_array_equal(at % 5, np.arange(10) % 5)
    assert len({tuple(at) for at in deals}) == 31


# --- levels ----------------------------------------------------------------------------------------------------------


def share_of_false_alarms(make, runs, **options):
    found = []
    for run in range(runs):
        model, X, Y, more = make(np.random.default_rng([7, run]))
        test = permutation_test(model.fit(X, background=Y, **more), X, background=Y, n_draws=39, **more, **options)
        found.append(test.p_values[0])
    return np.mean(np.array(found) <= 0.05)


# Of 60 runs at a level of 5 %, 8 or more have a chance of 1 %. A test that deals whole subjects of different size has
# .68 on the second design, a scale that is not computed anew .93 on the third, datasets that are not centred .22 on the
# first.
@pytest.mark.parametrize(
    "make",
    [
        simulations.rows(40, 30, 10, "lognormal"),
        simulations.subjects((8, 60), (6, 6), 0.0, 8),
        simulations.rows(30, 10, 60, "white", scale="background"),
        simulations.rows(30, 30, 4, "t5", estimator=KernelDiscriminativePCA, shift=0.0),
    ],
    ids=["rows", "subjects of different size", "wide and scaled", "kernel"],
)
def test_noise_is_rarely_found_to_stand_out(make):
    assert share_of_false_alarms(make, 60) < 8 / 60


@pytest.mark.long
@pytest.mark.parametrize("name", simulations.NULLS)
def test_the_level_is_kept(name):
    # 100 runs at 5 %: 12 or more have a chance of 0.4 %.
    assert share_of_false_alarms(simulations.NULLS[name], 100) <= 0.11


@pytest.mark.long
@pytest.mark.parametrize("name", simulations.COUNTS)
def test_the_number_of_components_is_rarely_too_large(name):
    k, make = simulations.COUNTS[name]
    found = []
    for run in range(100):
        model, X, Y, more = make(np.random.default_rng([8, run]))
        test = permutation_test(model.fit(X, background=Y, **more), X, background=Y, n_draws=99, **more)
        found.append(test.n_components)
    assert np.mean(np.array(found) > k) <= 0.11


def test_a_shift_of_the_mean_is_found_only_about_the_mean_of_the_background(rng):
    X, Y = two(rng)
    X += 2.0
    own = permutation_test(fitted(X, Y), X, background=Y)
    background = permutation_test(fitted(X, Y, center="background"), X, background=Y)
    assert own.p_values[0] > 0.05
    assert background.p_values[0] == 0.005


# --- at least k ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 3])
def test_as_many_components_are_found_as_there_are(rng, k):
    X, Y = two(rng, 150, 150, 10, 2.0, k)
    model = fitted(X, Y, 6)
    test = permutation_test(model, X, background=Y)
    assert test.n_components == k
    assert len(test.p_values) == k + 1
    assert np.all(np.diff(test.p_values) >= 0)


def test_the_statistic_of_each_component_is_its_ratio(rng):
    X, Y = two(rng, 100, 120, 6, 2.0, 3)
    model = fitted(X, Y, 3, shrinkage=0.2, cv=None)
    test = permutation_test(model, X, background=Y, n_components=3)
    np.testing.assert_allclose(test.statistics, np.log(model.eigenvalues_), atol=1e-9)


def test_the_number_of_components_can_be_left_to_the_test(rng):
    X, Y = two(rng, 150, 150, 8, 2.0, 2)
    model = fitted(X, Y, "auto")
    assert model.n_components_ == 2
    assert model.component_test_.n_components == 2


def test_components_after_the_third_have_fewer_draws(rng):
    X, Y = two(rng, 150, 150, 6, 3.0, 5)
    test = permutation_test(fitted(X, Y, shrinkage=0.1), X, background=Y, n_components=5)
    assert test.n_components == 5
    # The least p-value, 1 / 40, is half of the level.
    assert test.n_draws == (199, 199, 199, 39, 39)
    np.testing.assert_allclose(test.p_values, [0.005, 0.005, 0.005, 0.025, 0.025])


# --- one test in all forms -------------------------------------------------------------------------------------------


def test_many_rows_are_dealt_in_blocks_which_are_the_same_in_memory_and_in_parts(rng, tmp_path):
    da = pytest.importorskip("dask.array")
    X, Y = two(rng, 3000, 2500, 5, 0.3)
    model = fitted(X, Y)
    known = permutation_test(model, X, background=Y)
    assert known.unit == "blocks"
    assert known.n_components == 1
    mapped = []
    for name, rows in (("x", X), ("y", Y)):
        np.save(tmp_path / f"{name}.npy", rows)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    forms = {
        "iterator": (iter(np.array_split(X, 7)), iter(np.array_split(Y, 5))),
        "memory-mapped": tuple(mapped),
        "sparse": (sparse.csr_array(X), sparse.csr_array(Y)),
        "dask": (da.from_array(X, chunks=(700, 5)), da.from_array(Y, chunks=(900, 5))),
    }
    for name, (target, background) in forms.items():
        test = permutation_test(model, target, background=background)
        assert test.unit == "blocks", name
        np.testing.assert_allclose(test.statistics, known.statistics, atol=1e-6)
        np.testing.assert_array_equal(test.p_values, known.p_values)


def test_subjects_that_are_read_in_parts_have_the_test_of_memory(rng):
    da = pytest.importorskip("dask.array")
    X, groups = subjects_of(rng, 7, [20, 30, 40, 50, 60, 70, 80], 5)
    Y, others = subjects_of(rng, 8, 25, 5, first=7)
    model = fitted(X, Y)
    given = {"groups": groups, "background_groups": others}
    known = permutation_test(model, X, background=Y, **given)
    parts = permutation_test(model, da.from_array(X, chunks=(100, 5)), background=da.from_array(Y), **given)
    np.testing.assert_allclose(parts.draws[0], known.draws[0], atol=1e-6)


@pytest.mark.parametrize("n", [60, 2500])
def test_torch_arrays_have_the_test_of_numpy_arrays(rng, n):
    torch = pytest.importorskip("torch")
    X, Y = two(rng, n, n)
    model = fitted(X, Y)
    known = permutation_test(model, X, background=Y, n_draws=39)
    other = permutation_test(model, torch.asarray(X), background=torch.asarray(Y), n_draws=39)
    np.testing.assert_allclose(other.draws[0], known.draws[0], atol=1e-8)


def test_threads_and_equal_weights_change_nothing(rng):
    X, Y = two(rng, strength=0.0)
    model = fitted(X, Y)
    # The test ends early here, without a warning of draws that are not used.
    known, threads = (permutation_test(model, X, background=Y, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert known.n_draws[0] < 199
    np.testing.assert_array_equal(threads.p_values, known.p_values)
    X, Y = two(rng, strength=0.3)
    model = fitted(X, Y)
    known = permutation_test(model, X, background=Y, random_state=1)
    threads = permutation_test(model, X, background=Y, random_state=1, n_jobs=2)
    weights = permutation_test(model, X, background=Y, random_state=1, sample_weight=np.full(len(X), 3.0))
    np.testing.assert_array_equal(threads.p_values, known.p_values)
    np.testing.assert_allclose(weights.draws[0], known.draws[0], atol=1e-9)
    other = permutation_test(model, X, background=Y, random_state=2)
    assert not np.allclose(other.draws[0][:5], known.draws[0][:5])


def test_weights_that_users_give_stay_at_their_places_and_learned_ones_go_with_rows(rng):
    plan = plan_rows([3, 2], 100, rng)
    rows, learned, placed = rng.normal(size=(5, 2)), rng.random(5), rng.random((5, 1))
    deck = Deck(plan, rows, np.concatenate(plan.keys), learned, placed=placed)
    at = np.array([4, 0, 2, 1, 3])
    numbers = deck.numbers(plan.parts[0][at])
    for home, places in enumerate(plan.places):
        dealt = numbers[places]
        weights = learned[dealt] * placed[places, 0]
        found = deck.dealt(at)[home]
        assert found.total_weight == pytest.approx(weights.sum())
        expected = np.cov(rows[dealt].T, aweights=weights, ddof=0)
        np.testing.assert_allclose(found.covariance(), expected, atol=1e-12)


def test_the_statistic_with_weights_is_that_of_the_fit(rng):
    X, Y = two(rng, 40, 40, 4)
    weights = {"sample_weight": rng.exponential(size=40), "background_sample_weight": np.ones(40)}
    model = DiscriminativePCA(1, shrinkage=0.2).fit(X, background=Y, **weights)
    test = permutation_test(model, X, background=Y, **weights)
    assert test.statistics[0] == pytest.approx(np.log(model.eigenvalues_[0]), abs=1e-9)


def test_covariates_are_removed_from_each_dataset_before_rows_are_dealt(rng):
    X, Y = two(rng)
    z, w = rng.normal(size=(60, 1)), rng.normal(size=(70, 1))
    X, Y = X + 3.0 * z, Y - 2.0 * w
    model = DiscriminativePCA(1, shrinkage=0.2).fit(X, background=Y, adjust=z, background_adjust=w)
    test = permutation_test(model, X, background=Y, adjust=z, background_adjust=w)

    def residual(rows, by):
        by = by - by.mean()
        return rows - by @ (by.T @ rows) / np.sum(by**2)

    # Differences of the effects are shortened to the length that chance has.
    assert test.statistics[0] == pytest.approx(log_ratio(residual(X, z), residual(Y, w), 0.2), abs=0.05)


def test_covariates_leave_independent_rows_of_many_coordinates(rng):
    """Rows without the effects in their own dataset have other leading values than deals of them: p = 0.005."""
    values = []
    for _ in range(5):
        (X, Y), z, w = rng.normal(size=(2, 40, 150)), *rng.normal(size=(2, 40, 8))
        model = DiscriminativePCA(1, shrinkage=0.1, cv=None).fit(X, background=Y, adjust=z, background_adjust=w)
        test = permutation_test(model, X, background=Y, adjust=z, background_adjust=w, n_draws=39)
        values.append(test.p_values[0])
    assert np.mean(values) > 0.2


def test_a_pipeline_is_tested_after_its_steps(rng):
    X, Y = np.exp(two(rng, strength=1.0)[0]), np.exp(two(rng)[1])
    pipeline = make_pipeline(FunctionTransformer(np.log), DiscriminativePCA(1)).fit(X, background=Y)
    plain = permutation_test(fitted(np.log(X), np.log(Y)), np.log(X), background=np.log(Y))
    assert permutation_test(pipeline, X, background=Y).p_values == pytest.approx(plain.p_values)
    scaled = make_pipeline(StandardScaler(), DiscriminativePCA(1)).fit(X, background=Y)
    with pytest.warns(CautionWarning, match="not fitted again in every draw"):
        permutation_test(scaled, X, background=Y)


@pytest.mark.parametrize("options", [{"robust": "rows"}, {"n_columns": 2}, {"n_columns": "auto"}, {"smooth": "chain"}])
def test_what_stands_out_is_found_with_every_choice(rng, options):
    X, Y = two(rng, 80, 80, 6, 2.0)
    assert permutation_test(fitted(X, Y, **options), X, background=Y, n_draws=39).n_components == 1


def test_wide_rows_are_scaled_anew_in_every_draw(rng):
    X, Y, _ = wide(rng)
    for options in ({"scale": "background"}, {"scale": "pooled"}, {"n_columns": 10}):
        assert permutation_test(fitted(X, Y, **options), X, background=Y, n_draws=39).n_components == 1


# --- units -----------------------------------------------------------------------------------------------------------


def test_blocks_have_equal_sizes_and_the_other_rows_stay_at_home(rng):
    plan = plan_rows([1000, 333], 64, rng)
    sizes = [np.bincount(keys, minlength=plan.n_parts) for keys in plan.keys]
    in_blocks = sum(sizes)[: len(plan.homes)]
    assert len(np.unique(in_blocks)) == 1
    assert in_blocks[0] == 20
    assert sizes[0].sum() == 1000
    assert sizes[0][-1] == 0 == sizes[1][-2]
    assert plan.kind == "blocks"


def test_subjects_are_thinned_to_the_same_number_of_rows(rng):
    codes = [np.repeat([0, 1, 2, 3], [10, 10, 25, 60]), np.repeat([4, 5, 6, 7], [10, 11, 12, 2])]
    plan = plan_subjects(codes, 100, 500, rng)
    # The subject with two rows is left out. The one with 60 rows has five parts, one for each thinning.
    assert list(plan.homes) == [0, 0, 0, 0, 1, 1, 1]
    sizes = sum(np.bincount(keys[keys >= 0], minlength=plan.n_parts) for keys in plan.keys)
    np.testing.assert_array_equal(sizes, 10)
    assert [len(np.unique(parts)) for parts in plan.parts.T] == [1, 1, 2, 5, 1, 1, 1]


def test_many_subjects_are_joined_into_units_of_the_same_number(rng):
    codes = [np.repeat(np.arange(300), 2), np.repeat(np.arange(300, 700), 2)]
    plan = plan_subjects(codes, 64, 64, rng)
    assert len(plan.homes) <= 64
    sizes = sum(np.bincount(keys[keys >= 0], minlength=plan.n_parts) for keys in plan.keys)
    assert len(np.unique(sizes)) == 1
    # All rows of a subject are in one unit.
    for keys, own in zip(plan.keys, codes, strict=True):
        assert all(len(np.unique(keys[own == code])) == 1 for code in np.unique(own))


def test_rows_and_subjects_are_weighed_against_each_other():
    assert _rows_of_each(np.array([[50, 50, 50, 50, 3], [50, 50, 50, 50, 50]])) == 50
    assert _rows_of_each(np.array([[20, 20, 20], [100, 100, 100]])) == 20
    assert _rows_of_each(np.array([[15, 20, 25, 30], [40, 40, 40, 40]])) == 15


def test_a_row_far_off_does_not_move_the_middle(rng):
    rows = rng.normal(size=(40, 3))
    far = np.concatenate([rows, [[1e6, 0.0, 0.0]]])
    np.testing.assert_allclose(middle_of(far), middle_of(rows), atol=0.1)
    np.testing.assert_allclose(middle_of(far[-8:]), middle_of(rows[-7:]), atol=0.3)


def test_rows_that_thinning_leaves_out_are_not_among_the_means_of_the_units(rng):
    # Five rows of the last subject stand for it, one in each thinning, and two are left out.
    codes = [np.repeat(np.arange(7), [1, 1, 1, 1, 1, 1, 7]), np.arange(7, 14)]
    plan = plan_subjects(codes, 100, 500, rng)
    owners, rows = np.concatenate(plan.keys), rng.normal(size=(20, 3))
    assert np.sum(owners < 0) == 2
    means = Deck(plan, rows, owners, np.ones(20)).means()
    np.testing.assert_array_equal(means[owners[owners >= 0]], rows[owners >= 0])


def test_differences_of_middles_are_kept_as_far_as_chance_explains_them(rng):
    """Deals of rows that keep their difference are exact; centred wide rows had almost no p-values below .2."""
    # Rows of one distribution stay as they are, but for a common shift.
    rows = [rng.lognormal(size=(n, 90)) for n in (20, 35)]
    deck = Deck(plan_rows([20, 35], 99, rng), np.concatenate(rows), np.arange(55), np.ones(55))
    np.testing.assert_allclose(np.ptp(centred(deck, own=True).rows - deck.rows, axis=0), 0.0, atol=1e-12)
    # A larger difference gets the length that chance has on average: 90 columns of variance 1 / 20 + 1 / 35.
    rows = [rng.normal(size=(20, 90)) + 5.0, rng.normal(size=(35, 90))]
    deck = Deck(plan_rows([20, 35], 99, rng), np.concatenate(rows), np.arange(55), np.ones(55))
    left = centred(deck, own=True).rows
    step = left[:20].mean(axis=0) - left[20:].mean(axis=0)
    assert np.sum(step**2) == pytest.approx(90.0 * (1.0 / 20.0 + 1.0 / 35.0), rel=0.1)
    assert np.all(np.abs(step) < 1.0)
    # An outlying row does not make a large difference look like chance.
    rows[1][0] = 1e4
    deck = Deck(plan_rows([20, 35], 99, rng), np.concatenate(rows), np.arange(55), np.ones(55))
    left = centred(deck, own=True).rows
    assert np.all(np.abs(np.median(left[:20], axis=0) - np.median(left[20:], axis=0)) < 2.0)


# --- errors ----------------------------------------------------------------------------------------------------------


def test_too_few_subjects_are_an_error_with_the_number_that_would_do(rng):
    X, groups = subjects_of(rng, 2, 10, 3)
    Y, others = subjects_of(rng, 2, 10, 3, first=2)
    given = {"groups": groups, "background_groups": others}
    with pytest.raises(InvalidValueError, match="4 subjects can be dealt .* in 6 ways only") as error:
        permutation_test(fitted(X, Y), X, background=Y, **given)
    assert "At least 3 subjects in each dataset would do, or 5 subjects that are in both" in str(error.value)
    assert comb(6, 3) * 0.05 >= 1.0
    with pytest.raises(InvalidValueError, match="one subject"):
        permutation_test(fitted(X, Y), X, background=Y, **given | {"groups": np.zeros(20)})


def test_robust_weights_need_the_rows_of_the_fit(rng):
    X, Y = two(rng)
    with pytest.raises(InvalidValueError, match="the target has 50 rows, but the fit had 60"):
        permutation_test(fitted(X, Y, robust="rows"), X[:50], background=Y)


def test_a_test_of_rows_after_a_fit_with_subjects_warns(rng):
    X, Y = rng.normal(size=(2, 60, 3))
    subjects = {"groups": np.repeat(np.arange(6), 10), "background_groups": np.repeat(np.arange(6, 12), 10)}
    model = DiscriminativePCA(1, shrinkage=0.1).fit(X, background=Y, **subjects)
    with pytest.warns(CautionWarning, match="single rows are permuted"):
        permutation_test(model, X, background=Y)
    permutation_test(model, X, background=Y, **subjects)


def test_too_few_rows_are_an_error(rng):
    X, Y = two(rng, 2, 2, 3)
    with pytest.raises(InvalidValueError, match="At least 3 rows in each dataset would do"):
        permutation_test(fitted(X, Y, cv=None, shrinkage=0.5), X, background=Y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_draws": 10}, "n_draws=10 is too few for level=0.05.*Use at least 19"),
        ({"level": 0.0}, "level=0.0 is not between 0 and 1"),
        ({"background": None}, "nothing to compare with"),
    ],
)
def test_a_test_that_cannot_be_made_is_an_error(rng, options, match):
    X, Y = two(rng)
    with pytest.raises(InvalidValueError, match=match):
        permutation_test(fitted(X, Y), X, **{"background": Y} | options)


# --- bootstrap -------------------------------------------------------------------------------------------------------


def test_left_out_ratios_are_those_of_the_rows_that_were_not_drawn(rng):
    X, Y = two(rng, 40, 50, 4, 1.0)
    model = fitted(X, Y, shrinkage=0.2)
    refit = _Refit(open_datasets(X, Y), model.problem_, rng)
    times = next(refit.deck.plan.times(rng, 1))
    ratio, _, correlations = refit.draw(times)
    rows = refit.deck.numbers(refit.deck.plan.parts[0])
    counts = np.empty(90)
    counts[rows] = times
    drawn = [np.repeat(part, own.astype(int), axis=0) for part, own in ((X, counts[:40]), (Y, counts[40:]))]
    again = fitted(*drawn, shrinkage=0.2, cv=None)
    u = again.components_[0]
    left = [part[own == 0] @ u for part, own in ((X, counts[:40]), (Y, counts[40:]))]
    assert ratio[0] == pytest.approx(left[0].var(ddof=1) / left[1].var(ddof=1))
    np.testing.assert_allclose(np.abs(correlations[0]), np.abs(again.correlations_[0]), atol=1e-9)
    # Two rows have a variance, and one has none.
    times = np.ones(90)
    times[[0, 1, 50, 51]] = 0.0
    counts[rows] = times
    u = fitted(X[counts[:40] > 0], Y[counts[40:] > 0], shrinkage=0.2, cv=None).components_[0]
    left = [part[own == 0] @ u for part, own in ((X, counts[:40]), (Y, counts[40:]))]
    assert refit.draw(times)[0][0] == pytest.approx(left[0].var(ddof=1) / left[1].var(ddof=1))
    times[51] = 1.0
    assert np.isnan(refit.draw(times)[0]).all()


@pytest.mark.parametrize("center", ["own", "background"])
def test_a_bootstrap_is_its_definition_written_out(rng, center):
    """Ratios of the rows that were not drawn, angles of scores in the whole target, quantiles of both."""
    X, Y = two(rng, 40, 50, 4, 1.5, 2)
    X[:, 0] *= 1.5
    Z = rng.normal(size=(30, 4))
    shares = np.array([0.25, 0.75])
    given = {"shrinkage": 0.2, "background_weights": shares, "center": center, "cv": None}
    model = DiscriminativePCA(2, **given).fit(X, background=[Y, Z])
    found = bootstrap(model, X, background=[Y, Z], n_draws=12, level=0.8)
    refit = _Refit(open_datasets(X, [Y, Z]), model.problem_, np.random.default_rng([0, 1]))
    # The draws are the same; the rows of the deck are in an order of their own.
    rows = refit.deck.numbers(refit.deck.plan.parts[0])
    C = np.cov(X.T, bias=True)
    for draw, times in enumerate(refit.deck.plan.times(np.random.default_rng([0, 2]), 12)):
        counts = np.empty(120)
        counts[rows] = times
        parts = list(zip((X, Y, Z), np.split(counts.astype(int), [40, 90]), strict=True))
        drawn = [np.repeat(part, own, axis=0) for part, own in parts]
        U = DiscriminativePCA(2, **given).fit(drawn[0], background=drawn[1:]).components_.T
        both = model.components_ @ C @ U
        both /= np.sqrt(np.outer(np.diag(model.components_ @ C @ model.components_.T), np.diag(U.T @ C @ U)))
        order = np.abs(both).argmax(axis=1)
        U, both = U[:, order], np.abs(both[np.arange(2), order])
        left = [part[own == 0] for part, own in parts]
        own, *others = (np.var(part @ U, axis=0, ddof=1) for part in left)
        if center == "background":
            own += ((left[0].mean(axis=0) - shares @ [part.mean(axis=0) for part in left[1:]]) @ U) ** 2
        np.testing.assert_allclose(found.ratios[draw], own / (shares @ others), rtol=1e-8)
        np.testing.assert_allclose(found.angle_draws[draw], np.degrees(np.arccos(both)), atol=1e-5)
    np.testing.assert_allclose(found.angles, np.median(found.angle_draws, axis=0))
    expected = np.exp(np.quantile(np.log(found.ratios), [0.1, 0.9], axis=0)).T
    np.testing.assert_allclose(found.ratio_intervals, expected)
    assert found.correlation_intervals.shape == (2, 4, 2)


def test_subjects_of_both_datasets_are_drawn_together(rng):
    codes = [np.repeat(np.arange(6), 2), np.repeat(np.arange(3, 9), 2)]
    plan = plan_subjects(codes, 100, 100, rng, thinned=False)
    for times in plan.times(rng, 20):
        by_home = [dict(zip(plan.groups[plan.homes == k], times[plan.homes == k], strict=True)) for k in (0, 1)]
        assert all(by_home[0][name] == by_home[1][name] for name in (3, 4, 5))
        assert times[plan.groups < 0].sum() == 6
        assert times.sum() == 12


def test_intervals_of_correlations_are_symmetric_in_fishers_z():
    estimate, draws = np.array([[0.5]]), np.tanh(np.arctanh(0.5) + np.array([-0.4, 0.1, 0.2, 0.3, -0.3]))
    lower, upper = _fisher_intervals(estimate, draws[:, None, None], 0.75)[0, 0]
    # Three quarters of the distances .1, .2, .3, .3, .4 are at most .3.
    np.testing.assert_allclose(np.arctanh([lower, upper]), np.arctanh(0.5) + np.array([-0.3, 0.3]))


def test_rows_of_few_subjects_are_less_sure_than_they_look(rng):
    X, groups = subjects_of(rng, 8, 30, 4, 0.6)
    Y, others = subjects_of(rng, 8, 30, 4, 0.6, first=8)
    model = fitted(X, Y)
    rows = bootstrap(model, X, background=Y, n_draws=60)
    subjects = bootstrap(model, X, background=Y, n_draws=60, groups=groups, background_groups=others)
    assert (rows.unit, subjects.unit) == ("rows", "subjects")
    assert subjects.angles[0] > 1.5 * rows.angles[0]
    widths = [np.diff(np.log(found.ratio_intervals), axis=1)[0, 0] for found in (rows, subjects)]
    assert widths[1] > 2.0 * widths[0]


@pytest.mark.parametrize("options", [{}, {"scale": "pooled"}, {"n_columns": 10}])
def test_wide_rows_are_drawn_again(rng, options):
    X, Y, signs = wide(rng)
    model = fitted(X, Y, **options)
    found = bootstrap(model, X, background=Y, n_draws=20)
    lower, upper = found.correlation_intervals[0].T
    middle = np.tanh((np.arctanh(lower) + np.arctanh(upper)) / 2)
    np.testing.assert_allclose(np.abs(middle), np.abs(model.correlations_[0]), atol=1e-6)
    assert np.mean((lower > 0) | (upper < 0)) > 0.9
    assert abs(np.sign(middle) @ signs) == 60


def test_many_rows_are_drawn_in_blocks(rng):
    X, Y = two(rng, 4000, 4000, 4, 1.0)
    found = bootstrap(fitted(X, Y), X, background=Y, n_draws=60)
    assert found.unit == "blocks"
    # 3.3 times the standard error of the logarithm of a ratio of variances, √(2 / n + 2 / n), of the third of the rows
    # that is not drawn.
    assert np.log(found.ratio_intervals[0]) == pytest.approx(np.log([4.0, 4.0]), abs=0.3)
    assert 0.05 < np.diff(np.log(found.ratio_intervals[0]))[0] < 0.35
    assert found.angles[0] < 3.0


def test_kernels_have_intervals_of_ratios(rng):
    X, Y = two(rng, 40, 40, 3, 1.0)
    found = bootstrap(KernelDiscriminativePCA(1).fit(X, background=Y), X, background=Y, n_draws=20)
    assert found.correlation_intervals is None
    assert np.all(np.isfinite(found.ratio_intervals))


@pytest.mark.long
@pytest.mark.parametrize("name", simulations.COVERAGE)
def test_intervals_cover_the_truth(name):
    run = simulations.COVERAGE[name]
    ratio, correlations, _ = np.mean([run(np.random.default_rng([0, one]), 100) for one in range(60)], axis=0)
    assert 0.8 <= ratio <= 1.0
    assert 0.8 <= correlations <= 0.97


def test_a_bootstrap_that_cannot_be_made_is_an_error(rng):
    X, Y = two(rng)
    with pytest.raises(InvalidValueError, match="n_draws=1 is too few"):
        bootstrap(fitted(X, Y), X, background=Y, n_draws=1)
    with pytest.raises(InvalidValueError, match="level=2.0 is not between 0 and 1"):
        bootstrap(fitted(X, Y), X, background=Y, level=2.0)
