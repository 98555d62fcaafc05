"""How many components are real: the laws of chance, false alarms at the promised rate, and power where there is one."""

import numpy as np
import pytest
from scipy import integrate, linalg, optimize, sparse, special

from standout.moments import gather, ledoit_wolf
from standout.selection import ComponentTest, Problem, component_test
from standout.selection import _significance as significance
from standout.selection._analytic import chance_law, concluded, survival, upper_quantile
from standout.selection._permutation import permutation_test, spatial_median
from standout.sources import open_dataset


def covariance(X):
    centred = X - X.mean(axis=0)
    return centred.T @ centred / len(X)


def common_map(rng, n_features):
    """A map that gives independent columns a random covariance of moderate condition."""
    return np.eye(n_features) + rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)


# --- the Tracy-Widom law --------------------------------------------------------------------------------------------


def test_the_tracy_widom_law_has_its_known_mean_and_variance():
    nodes, weights = np.polynomial.legendre.leggauss(200)
    s, weights = 12.0 * nodes, 12.0 * weights
    tail = np.array([survival(x) for x in s])
    # By parts: E[s] = -12 + ∫ P(> s) ds, E[s²] = 144 + 2 ∫ s P(> s) ds over [-12, 12].
    mean = -12.0 + weights @ tail
    assert mean == pytest.approx(-1.2065335745820, abs=1e-12)
    assert 144.0 + 2.0 * weights @ (s * tail) - mean**2 == pytest.approx(1.6077810345810, abs=1e-10)


@pytest.mark.parametrize(("level", "quantile"), [(0.5, -1.2686), (0.1, 0.4501), (0.05, 0.9793), (0.01, 2.0234)])
def test_the_tracy_widom_law_has_its_known_quantiles(level, quantile):
    assert upper_quantile(level) == pytest.approx(quantile, abs=6e-5)
    assert survival(upper_quantile(level)) == pytest.approx(level, rel=1e-9)


def test_tiny_tails_keep_their_digits_and_fall_to_zero():
    # Far out the determinant is one less the trace of its kernel, up to the square of that.
    for s in (12.0, 25.0, 60.0):
        trace = integrate.quad(lambda x, s=s: special.airy(s + 2 * x)[0], 0.0, 12.0 / np.sqrt(s), epsabs=0.0)[0]
        assert survival(s) == pytest.approx(trace, rel=1e-9)
    numbers = [survival(s) for s in (-np.inf, *np.linspace(-15, 120, 300), np.inf)]
    assert np.all(np.diff(numbers) <= 1e-15)
    assert numbers[0] == 1.0
    assert numbers[-1] == 0.0


# --- how large a ratio is by chance ---------------------------------------------------------------------------------


def johnstone(p, m, n):
    """Centre and spread as printed: A ~ W(m), B ~ W(n), the log of the largest root of A⁻¹B."""
    gamma = 2 * np.arcsin(np.sqrt((min(p, n) - 0.5) / (m + n - 1)))
    phi = 2 * np.arcsin(np.sqrt((max(p, n) - 0.5) / (m + n - 1)))
    spread = (16 / ((m + n - 1) ** 2 * np.sin(phi + gamma) ** 2 * np.sin(phi) * np.sin(gamma))) ** (1 / 3)
    return 2 * np.log(np.tan((phi + gamma) / 2)), spread


@pytest.mark.parametrize(("p", "m", "n"), [(20, 200, 300), (77, 267, 135), (5, 6, 30), (20, 40, 10), (1, 30, 1)])
def test_the_law_of_chance_for_one_background_is_johnstones(p, m, n):
    np.testing.assert_allclose(chance_law(p, n, np.array([m]), np.ones(1)), johnstone(p, m, n), rtol=1e-9, atol=1e-12)
    # Backgrounds of one weight per row are one background in pieces.
    parts = chance_law(p, n, np.array([0.3 * m, 0.7 * m]), np.full(2, 0.5))
    np.testing.assert_allclose(parts, np.add(johnstone(p, m, n), [np.log(2), 0]), rtol=1e-9, atol=1e-12)


def chance_ratios(rng, n_draws, n_features, n_target, n_backgrounds, weights):
    """Largest ratios of Gaussian datasets of one covariance, by simulation."""
    ratios = []
    for _ in range(n_draws):
        parts = [covariance(rng.normal(size=(n, n_features))) for n in (n_target, *n_backgrounds)]
        b = sum(weight * part for weight, part in zip(weights, parts[1:], strict=True))
        ratios.append(linalg.eigh(parts[0], b, eigvals_only=True)[-1])
    return np.array(ratios)


@pytest.mark.parametrize(
    ("n_features", "n_target", "n_backgrounds", "weights"),
    [(10, 40, [60], [1.0]), (10, 8, [30], [1.0]), (12, 50, [20, 200], [0.5, 0.5]), (12, 50, [8, 30], [0.1, 0.9])],
)
def test_p_values_agree_with_simulation(n_features, n_target, n_backgrounds, weights, rng):
    n_draws = 3000
    ratios = chance_ratios(rng, n_draws, n_features, n_target, n_backgrounds, weights)
    rows = np.array(n_backgrounds)
    centre, spread = chance_law(n_features, n_target - 1, rows - 1.0, np.array(weights) * n_target / rows)
    for chance in (0.5, 0.2, 0.1, 0.05, 0.01):
        edge = np.exp(centre + spread * upper_quantile(chance))
        # Three standard errors of the simulation, and a hundredth for an approximation at so few columns.
        assert abs(np.mean(ratios >= edge) - chance) < 3 * np.sqrt(chance * (1 - chance) / n_draws) + 0.01


# --- false alarms ---------------------------------------------------------------------------------------------------

N_DATASETS = 400


def false_alarms(draw, n_datasets=N_DATASETS, **options):
    return np.mean([component_test(*draw(number), **options).n_significant > 0 for number in range(n_datasets)])


@pytest.mark.parametrize(("n_features", "n_background", "n_target"), [(20, 200, 300), (77, 267, 135), (50, 400, 500)])
def test_the_analytic_test_holds_its_level(n_features, n_background, n_target, rng):
    turn = common_map(rng, n_features)

    def draw(_):
        return [rng.normal(size=(n, n_features)) @ turn + 1.0 for n in (n_target, n_background)]

    assert 0.03 <= false_alarms(draw) <= 0.07


@pytest.mark.parametrize(
    ("n_backgrounds", "weights"), [([200, 200], None), ([15, 300], [0.8, 0.2]), ([30, 30, 30], None)]
)
def test_the_analytic_test_holds_its_level_for_several_backgrounds(n_backgrounds, weights, rng):
    def draw(_):
        return rng.normal(size=(100, 20)), [rng.normal(size=(n, 20)) for n in n_backgrounds]

    assert 0.03 <= false_alarms(draw, background_weights=weights) <= 0.07


def test_the_analytic_test_of_the_next_component_holds_its_level_after_many_strong_ones(rng):
    # Half of the columns taken: with the law of the first component this would be no alarm at all.
    scales = np.repeat([100.0, 1.0], 6)
    alarms = 0
    for _ in range(N_DATASETS):
        target, background = rng.normal(size=(40, 12)) * scales, rng.normal(size=(60, 12))
        answer = component_test(target, background, n_components=7, method="analytic")
        assert answer.n_significant >= 6
        alarms += answer.n_significant == 7
    assert 0.03 <= alarms / N_DATASETS <= 0.07


def heavy_tailed(rng, n_features, *counts):
    scales = np.exp(rng.normal(size=n_features))
    return [rng.standard_t(3, size=(n, n_features)) * scales for n in counts]


def test_the_permutation_test_holds_its_level_for_heavy_tails_where_the_analytic_test_does_not(rng):
    datasets = [heavy_tailed(rng, 5, 40, 60) for _ in range(N_DATASETS)]
    alarms = false_alarms(lambda number: datasets[number], method="permutation", n_permutations=39)
    assert 0.03 <= alarms <= 0.07
    assert false_alarms(lambda number: datasets[number], method="analytic") > 0.2


@pytest.mark.parametrize("shrinkage", [0.2, "auto"])
def test_the_permutation_test_holds_its_level_with_shrinkage_and_several_backgrounds(shrinkage, rng):
    def draw(_):
        target, *backgrounds = heavy_tailed(rng, 6, 30, 10, 40)
        return target, backgrounds

    alarms = false_alarms(draw, 200, method="permutation", n_permutations=39, shrinkage=shrinkage)
    # Three standard errors of 200 datasets.
    assert abs(alarms - 0.05) < 0.047


def test_the_permutation_test_holds_its_level_for_more_columns_than_rows(rng):
    def draw(_):
        return heavy_tailed(rng, 60, 20, 25)

    assert false_alarms(draw, 200, method="permutation", n_permutations=39, shrinkage=0.3) < 0.097


# --- power ----------------------------------------------------------------------------------------------------------


def planted(rng, n_features, n_target, n_background, ratios):
    turn = common_map(rng, n_features)
    spread = np.ones(n_features)
    spread[: len(ratios)] = np.sqrt(ratios)
    target = rng.normal(size=(n_target, n_features)) * spread
    return target @ turn, rng.normal(size=(n_background, n_features)) @ turn


def edge(n_features, n_target, n_background):
    """The ratio that chance reaches once in twenty times."""
    centre, spread = johnstone(n_features, n_background - 1, n_target - 1)
    return np.exp(centre + spread * upper_quantile(0.05)) * n_background / n_target


POWER = [
    ("analytic", (20, 300, 200), {}),
    ("analytic", (50, 100, 150), {}),
    ("permutation", (4, 60, 60), {"n_permutations": 59}),
]


@pytest.mark.parametrize(("method", "shape", "options"), POWER)
@pytest.mark.parametrize("sizes", [(2.0,), (2.0, 4.0)])
def test_planted_directions_of_twice_the_edge_of_chance_are_found_and_no_others(method, shape, options, sizes, rng):
    ratios = np.array(sizes) * edge(*shape)
    found = [component_test(*planted(rng, *shape, ratios), method=method, **options).n_significant for _ in range(100)]
    assert np.sum(np.array(found) == len(sizes)) >= 90


def test_shrinkage_finds_what_plain_ratios_cannot_with_hardly_more_rows_than_columns(rng):
    target, background = rng.normal(size=(40, 25)), rng.normal(size=(32, 25))
    target[:, 0] *= 4.0
    assert component_test(target, background, method="analytic").n_significant == 0
    assert component_test(target, background, method="permutation", shrinkage="auto").n_significant == 1


# --- what the answer holds ------------------------------------------------------------------------------------------


def test_the_answer_has_ratios_edges_and_p_values_until_the_first_that_is_not_significant(rng):
    target, background = rng.normal(size=(200, 6)) * [4, 3, 1, 1, 1, 1], rng.normal(size=(300, 6))
    exact = linalg.eigh(covariance(target), covariance(background), eigvals_only=True)[::-1]
    for method in ("analytic", "permutation"):
        answer = component_test(target, background, method=method, level=0.01)
        assert isinstance(answer, ComponentTest)
        assert (answer.method, answer.level, answer.n_significant) == (method, 0.01, 2)
        np.testing.assert_allclose(answer.ratios, exact[:3], rtol=1e-9)
        assert np.all((answer.ratios > answer.edges) == [True, True, False])
        assert np.all((answer.p_values <= 0.01) == [True, True, False])
        asked = component_test(target, background, method=method, level=0.01, n_components=5)
        np.testing.assert_allclose(asked.ratios, exact[:5], rtol=1e-9)
        assert asked.n_significant == 2
        assert np.all(np.diff(asked.p_values) >= 0)
        np.testing.assert_allclose(asked.p_values[:3], answer.p_values, rtol=1e-9)


def test_a_component_counts_only_if_all_larger_ones_do():
    answer = concluded([3.0, 2.0, 1.5, 1.2], [0.01, 0.3, 0.02, 0.4], [2.0] * 4, "analytic", 0.05)
    assert answer.p_values.tolist() == [0.01, 0.3, 0.3, 0.4]
    assert answer.n_significant == 1


def test_every_component_can_be_significant(rng):
    background = rng.normal(size=(400, 3))
    answer = component_test(rng.normal(size=(300, 3)) * [5.0, 4.0, 0.5], background)
    assert answer.n_significant == 2
    assert component_test(0.0 * background[:9], background, method="analytic").p_values.tolist() == [1.0]


@pytest.mark.parametrize("method", ["analytic", "permutation"])
def test_a_target_that_is_larger_in_all_directions_is_tested_after_matching_its_scale(method, rng):
    target, background = 3.0 * rng.normal(size=(300, 12)), rng.normal(size=(400, 12))
    answer = component_test(target, background, method=method, level=0.01)
    assert answer.scale == pytest.approx(9.0, rel=0.2)
    assert answer.n_significant == 0
    np.testing.assert_allclose(answer.ratios[0], linalg.eigh(covariance(target), covariance(background))[0][-1])
    # A direction that is larger still counts.
    target[:, 0] *= 3.0
    answer = component_test(target, background, method=method)
    assert answer.n_significant == 1
    assert component_test(target / 3.0, background, method=method).scale is None


def test_p_values_do_not_change_when_all_data_are_mapped_and_moved(rng):
    target, backgrounds = rng.normal(size=(60, 7)), [rng.normal(size=(n, 7)) for n in (40, 90)]
    turn = common_map(rng, 7) * 10.0 ** rng.uniform(-3, 3, size=7)
    mapped, *others = (X @ turn + 5.0 * turn.sum(axis=0) for X in (target, *backgrounds))
    first = component_test(target, backgrounds, n_components=3, method="analytic")
    second = component_test(mapped, others, n_components=3, method="analytic")
    # A map of condition 1e6 costs digits.
    np.testing.assert_allclose(second.p_values, first.p_values, rtol=1e-5)
    np.testing.assert_allclose(second.ratios, first.ratios, rtol=1e-6)
    np.testing.assert_allclose(second.edges, first.edges, rtol=1e-12)


def test_the_permutation_test_does_not_change_when_all_data_are_turned_and_moved(rng):
    target, backgrounds = rng.normal(size=(30, 5)) * np.arange(1, 6), [rng.normal(size=(n, 5)) for n in (20, 40)]
    turn = linalg.qr(rng.normal(size=(5, 5)))[0]
    options = {"method": "permutation", "n_components": 3, "n_permutations": 39, "shrinkage": 0.2}
    first = component_test(target, backgrounds, **options)
    turned, *others = (X @ turn * 7.0 + number for number, X in enumerate((target, *backgrounds)))
    second = component_test(turned, others, **options)
    np.testing.assert_allclose(second.edges, first.edges, rtol=1e-8)
    np.testing.assert_array_equal(second.p_values, first.p_values)


def test_weights_in_proportion_to_rows_are_one_background_in_pieces(rng):
    target, pieces = rng.normal(size=(50, 5)), [rng.normal(size=(n, 5)) for n in (30, 90)]
    centred = np.vstack([piece - piece.mean(axis=0) for piece in pieces])
    answer = component_test(target, pieces, background_weights=[30, 90], method="analytic")
    whole = component_test(target, centred, method="analytic")
    np.testing.assert_allclose(answer.ratios, whole.ratios, rtol=1e-10)
    # The pieces' own means cost one degree of freedom more, of which the whole does not know.
    standardised, spread = chance_law(5, 49, np.array([118.0]), np.array([50 / 120]))
    assert answer.p_values[0] == pytest.approx(survival((np.log(answer.ratios[0]) - standardised) / spread), rel=1e-9)
    assert whole.p_values[0] < answer.p_values[0]


def test_a_background_without_weight_does_not_count(rng):
    target, background, other = (rng.normal(size=(n, 4)) for n in (40, 50, 60))
    for method in ("analytic", "permutation"):
        with_it = component_test(target, [other, background], background_weights=[0, 1], method=method)
        without = component_test(target, background, method=method)
        np.testing.assert_array_equal(with_it.p_values, without.p_values)


def test_the_analytic_test_takes_moments_and_batches(rng):
    target, background = rng.normal(size=(90, 5)), rng.normal(size=(80, 5))
    plain = component_test(target, background, method="analytic")
    given = component_test(gather(target), [gather(background)])
    streamed = component_test(iter([target[:50], target[50:]]), iter([background]))
    for other in (given, streamed):
        np.testing.assert_allclose(other.p_values, plain.p_values, rtol=1e-9)


@pytest.mark.parametrize("method", ["analytic", "permutation"])
def test_sparse_single_precision_and_frames_are_taken(method, rng):
    pandas = pytest.importorskip("pandas")
    target, background = (np.round(rng.normal(size=(n, 4)), 1).astype(np.float32) for n in (60, 50))
    plain = component_test(target.astype(float), background.astype(float), method=method)
    for make in (sparse.csr_array, np.asfortranarray, pandas.DataFrame):
        answer = component_test(make(target), make(background), method=method)
        np.testing.assert_allclose(answer.ratios, plain.ratios, rtol=1e-6)
        np.testing.assert_allclose(answer.p_values, plain.p_values, rtol=1e-5)


def test_equal_input_gives_equal_output_and_the_seed_changes_the_reshuffling(rng):
    data = rng.normal(size=(40, 4)), rng.normal(size=(30, 4))
    first, again = (component_test(*data, method="permutation") for _ in range(2))
    assert first.edges.tobytes() == again.edges.tobytes()
    other = component_test(*data, method="permutation", random_state=3)
    assert other.edges[0] != first.edges[0]
    assert other.p_values[0] == pytest.approx(first.p_values[0], abs=0.15)


# --- reshuffling, step by step --------------------------------------------------------------------------------------


def reference_permutation_test(datasets, weights, shares, n_components, n_permutations, level, seed):
    """The same test with D x D matrices and nothing saved."""
    n_features, sizes = datasets[0].shape[1], [len(X) for X in datasets]
    pooled = np.vstack([X - spatial_median(X) for X in datasets])
    traces = [np.trace(covariance(X)) for X in datasets[1:]]

    def forms(groups, basis, outside):
        a, *covariances = (basis.T @ covariance(group) @ basis for group in groups)
        b = 0.0
        for weight, share, c, held in zip(weights, shares, covariances, outside, strict=True):
            b = b + weight * (1 - share) * c
            b = b + weight * share * (np.trace(c) + held) / n_features * np.eye(len(c))
        return a, b

    ends = np.cumsum(sizes)[:-1]
    a, b = forms(datasets, np.eye(n_features), np.zeros(len(traces)))
    values, vectors = linalg.eigh(a, b)
    p_values, edges = [], []
    for k in range(n_components):
        basis = linalg.null_space((b @ vectors[:, ::-1][:, :k]).T) if k else np.eye(n_features)
        inside = [np.trace(basis.T @ covariance(X) @ basis) for X in datasets[1:]]
        outside = np.subtract(traces, inside)
        chance = []
        rng = np.random.default_rng([seed, k])
        for _ in range(n_permutations):
            groups = np.split(pooled[rng.permutation(len(pooled))], ends)
            chance.append(linalg.eigh(*forms(groups, basis, outside), eigvals_only=True)[-1])
        observed = linalg.eigh(*forms(datasets, basis, outside), eigvals_only=True)[-1]
        assert observed == pytest.approx(values[::-1][k], rel=1e-8)
        # Ten that reach the observed value are enough.
        reached = np.cumsum(chance >= observed)
        n_made = n_permutations if reached[-1] < 10 else int(np.argmax(reached == 10)) + 1
        n_reached = reached[n_made - 1]
        p_values.append(n_reached / n_made if n_made < n_permutations else (1 + n_reached) / (1 + n_made))
        edges.append(np.sort(chance[:n_made])[-max(int(level * (1 + n_made) + 1e-9), 1)])
    return values[::-1][:n_components], np.maximum.accumulate(p_values), edges


@pytest.mark.parametrize("n_features", [6, 70])
@pytest.mark.parametrize(
    ("n_target", "n_backgrounds", "weights", "shares"),
    [(15, [25], [1.0], [0.3]), (25, [15], [1.0], [0.1]), (20, [12, 16], [0.7, 0.3], [0.2, 0.9]), (9, [20], [1], [1.0])],
)
def test_the_permutation_test_is_what_it_says_for_tall_and_wide_data(
    n_features, n_target, n_backgrounds, weights, shares, rng
):
    datasets = [rng.normal(size=(n, n_features)) + 3.0 for n in (n_target, *n_backgrounds)]
    datasets[0][:, 0] *= 6.0
    ratios, p_values, edges = reference_permutation_test(datasets, weights, shares, 3, 19, 0.2, seed=5)
    moments = [gather(X, kind="rows") for X in datasets]
    answer = permutation_test(
        moments[0],
        moments[1:],
        Problem.of_shrinkage(np.array(weights, dtype=float), np.array(shares)),
        n_components=3,
        n_permutations=19,
        level=0.2,
        seed=5,
    )
    np.testing.assert_allclose(answer.ratios, ratios, rtol=1e-8)
    np.testing.assert_allclose(answer.edges, edges, rtol=1e-8)
    np.testing.assert_allclose(answer.p_values, p_values, rtol=1e-12)


def test_the_spatial_median_has_the_least_sum_of_distances_and_does_not_follow_an_outlier(rng):
    X = rng.standard_t(3, size=(50, 3)) + np.array([5.0, 0.0, -5.0])
    best = optimize.minimize(lambda middle: np.sum(np.linalg.norm(X - middle, axis=1)), X.mean(axis=0)).x
    np.testing.assert_allclose(spatial_median(X), best, atol=1e-3)
    spoilt = X.copy()
    spoilt[0] = 1e6
    assert np.linalg.norm(spatial_median(spoilt) - spatial_median(X)) < 0.3
    np.testing.assert_array_equal(spatial_median(np.full((4, 2), 3.0)), [3.0, 3.0])


def test_automatic_shrinkage_is_that_of_the_backgrounds_as_given(rng):
    target, backgrounds = rng.normal(size=(12, 8)), [rng.normal(size=(n, 8)) * np.arange(1, 9) for n in (14, 20)]
    shares = [ledoit_wolf(gather(X, norms=True)) for X in backgrounds]
    automatic = component_test(target, backgrounds, method="permutation", shrinkage="auto", n_permutations=19)
    given = component_test(target, backgrounds, method="permutation", shrinkage=shares, n_permutations=19)
    np.testing.assert_allclose(automatic.ratios, given.ratios, rtol=1e-10)
    assert automatic.p_values[0] == given.p_values[0]


def test_a_column_that_varies_in_one_row_only_makes_no_alarm(rng):
    target, background = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    target[:, 2], background[:, 2] = 0.0, 0.0
    background[0, 2] = 1.0
    # Half of the reshufflings have a column in the background that hardly varies, and huge ratios.
    answer = component_test(target, background, method="permutation")
    assert answer.n_significant == 0
    assert answer.edges[0] > 10.0


def test_estimators_get_the_permutation_test_where_it_goes_and_the_analytic_test_elsewhere(rng):
    for n_features, share, method in ((5, 0.5, "permutation"), (5, 0.0, "analytic"), (129, 0.5, "permutation")):
        datasets = [rng.normal(size=(n, n_features)) for n in (120, 130)]
        moments = [gather(X) for X in datasets]
        opened = [open_dataset(X, "the data") for X in datasets]
        options = {"n_components": 1, "seed": 0, "progress": False, "level": 0.05, "n_permutations": 99, "n_jobs": None}
        problem = Problem.of_shrinkage(np.ones(1), np.full(1, share))
        answer = significance.test_components(opened, moments, problem, method=None, **options)
        assert answer.method == method
        assert len(answer.p_values) == 1


def test_a_bar_can_be_shown(rng, capsys):
    pytest.importorskip("rich")
    component_test(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), method="permutation", progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "component 1" in captured.err
