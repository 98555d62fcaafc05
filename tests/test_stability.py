"""Stability against a transcription with repeated rows, against fresh samples, and against the truth."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from standout import DiscriminativePCA, _arrays
from standout.moments import gather
from standout.selection import Stability, stability
from standout.selection import _stability as module

# The transcription fits rows that are repeated one after the other: they are alike, which a fit warns of.
pytestmark = pytest.mark.filterwarnings("ignore:neighbouring rows are alike")


def planted(rng, n_rows, direction, gain=3.0):
    """Rows of unit noise, with `gain` times the standard deviation along a direction of unit length."""
    noise = rng.standard_normal((n_rows, len(direction)))
    return noise + (gain - 1.0) * np.outer(noise @ direction, direction)


def unit(*numbers):
    return np.array(numbers) / np.linalg.norm(numbers)


def angle(first, second):
    cosine = np.abs(first @ second) / np.linalg.norm(first) / np.linalg.norm(second)
    return np.arccos(min(cosine, 1.0))


def by_repetition(X, backgrounds, *, n_bootstrap, level, seed=0, **parameters):
    """Transcribe the definition: rows repeated as often as they are drawn, and a plain fit."""
    full = DiscriminativePCA(**parameters).fit(X, background=backgrounds)
    rng = np.random.default_rng(seed)
    angles, filters, patterns, ratios = [], [], [], []
    for _ in range(n_bootstrap):
        drawn, left = [], []
        for data in (X, *backgrounds):
            counts = np.bincount(rng.integers(len(data), size=len(data)), minlength=len(data))
            drawn.append(np.repeat(data, counts, axis=0))
            left.append(data[counts == 0])
        fit = DiscriminativePCA(**parameters).fit(drawn[0], background=drawn[1:])
        signs = np.sign(np.einsum("ij,ij->i", fit.components_, full.components_))[:, np.newaxis]
        angles.append([angle(*pair) for pair in zip(fit.components_, full.components_, strict=True)])
        filters.append(signs * fit.components_)
        patterns.append(signs * fit.patterns_)
        target, *others = (np.var(data.astype(float) @ fit.components_.T, axis=0, ddof=1) for data in left)
        ratios.append(target / np.average(others, axis=0, weights=fit.weights_))
    tails = [(1 - level) / 2, (1 + level) / 2]
    return Stability(
        angles=np.array(angles),
        mean_angle=np.mean(angles, axis=0),
        components=full.components_,
        patterns=full.patterns_,
        ratios=full.eigenvalues_,
        held_out_ratios=np.median(ratios, axis=0),
        components_interval=np.quantile(filters, tails, axis=0),
        patterns_interval=np.quantile(patterns, tails, axis=0),
        ratios_interval=np.array(
            [
                np.quantile(ratios, tail, axis=0, method=method)
                for tail, method in zip(tails, ("lower", "higher"), strict=True)
            ]
        ),
        level=level,
    )


def assert_same(found, expected, tolerance):
    """Compare all numbers: those of each field relative to its largest."""
    assert found.level == expected.level
    for name in (
        "angles",
        "mean_angle",
        "components",
        "patterns",
        "ratios",
        "held_out_ratios",
        "components_interval",
        "patterns_interval",
        "ratios_interval",
    ):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.shape == other.shape, name
        # The reference takes an arc cosine, which is good to the root of the rounding only.
        allowed = max(tolerance, 1e-7) if "angle" in name else tolerance * np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=allowed, err_msg=name)


def tall_pair(rng, n_features=6, offset=0.0):
    spread = np.linspace(1.0, 4.0, n_features)
    X = planted(rng, 90, unit(*np.ones(n_features))) * spread + offset
    return X, rng.standard_normal((70, n_features)) * spread + offset


CASES = {
    "tall": (np.asarray, 1e-8),
    "fortran order": (np.asfortranarray, 1e-8),
    "sparse": (sparse.csr_array, 1e-8),
    "sparse by columns": (sparse.csc_matrix, 1e-8),
    "frame": (pd.DataFrame, 1e-8),
    # DiscriminativePCA multiplies single-precision rows in single precision, and is the less exact of the two.
    "float32": (lambda rows: rows.astype(np.float32), 1e-4),
}


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("case", CASES)
def test_every_draw_is_the_fit_of_the_repeated_rows(rng, case, offset):
    convert, tolerance = CASES[case]
    X, background = tall_pair(rng, offset=offset)
    # A column of zeros and ones, as counts have, makes the rows no harder.
    X[:, 0], background[:, 0] = X[:, 0] > offset, background[:, 0] > offset
    X, background = convert(X), convert(background)
    plain = [np.asarray(_arrays.dense(data)) for data in (X, background)]
    parameters = {"n_components": 2, "shrinkage": 0.2}
    expected = by_repetition(plain[0], [plain[1]], n_bootstrap=7, level=0.8, **parameters)
    assert_same(stability(X, background, n_bootstrap=7, level=0.8, **parameters), expected, tolerance)


def test_thin_sparse_rows_are_drawn_without_becoming_dense(rng, monkeypatch):
    X, background = (sparse.random_array((400, 60), density=0.02, rng=rng, format="csr") for _ in range(2))
    expected = by_repetition(X.toarray(), [background.toarray()], n_bootstrap=4, level=0.9, shrinkage=0.1)
    monkeypatch.setattr(module, "_weighted", lambda *block: pytest.fail("a block became dense"))
    assert_same(stability(X, background, n_bootstrap=4, level=0.9, shrinkage=0.1), expected, 1e-8)


def test_memory_mapped_rows_give_the_same(rng, tmp_path):
    X, background = tall_pair(rng)
    np.save(tmp_path / "target.npy", X)
    mapped = np.load(tmp_path / "target.npy", mmap_mode="r")
    assert_same(stability(mapped, background, n_bootstrap=5), stability(X, background, n_bootstrap=5), 1e-12)


@pytest.mark.parametrize("shrinkage", [None, 0.0, 0.3, 1.0])
def test_several_backgrounds_are_drawn_each_by_itself(rng, shrinkage):
    X, first = tall_pair(rng)
    second = rng.standard_normal((50, 6)) * np.linspace(3.0, 1.0, 6)
    parameters = {"n_components": 3, "background_weights": [3.0, 1.0], "shrinkage": shrinkage}
    expected = by_repetition(X, [first, second], n_bootstrap=6, level=0.7, **parameters)
    assert_same(stability(X, [first, second], n_bootstrap=6, level=0.7, **parameters), expected, 1e-8)


def wide_pair(rng, n_features=120):
    X = planted(rng, 25, unit(*np.ones(n_features)), gain=9.0) * np.linspace(1.0, 2.0, n_features)
    return X, rng.standard_normal((20, n_features)) * np.linspace(1.0, 2.0, n_features)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shrinkage", [0.3, 1.0])
def test_wide_data_in_the_span_of_their_rows_give_the_same(rng, shrinkage, convert):
    X, background = wide_pair(rng)
    parameters = {"n_components": 2, "shrinkage": shrinkage}
    expected = by_repetition(X, [background], n_bootstrap=6, level=0.8, **parameters)
    assert_same(stability(convert(X), convert(background), n_bootstrap=6, level=0.8, **parameters), expected, 1e-8)


def test_wide_float32_data_give_the_same(rng):
    X, background = (rows.astype(np.float32) for rows in wide_pair(rng))
    expected = by_repetition(X, [background], n_bootstrap=4, level=0.8, shrinkage=0.3)
    assert_same(stability(X, background, n_bootstrap=4, level=0.8, shrinkage=0.3), expected, 1e-4)


def test_wide_data_of_low_rank_give_the_same_in_blocks_of_their_coordinates(rng, monkeypatch):
    X, background = (rng.standard_normal((40, 5)) @ rng.standard_normal((5, 120)) for _ in range(2))
    expected = by_repetition(X, [background], n_bootstrap=4, level=0.8, shrinkage=0.3)
    monkeypatch.setattr(_arrays, "BLOCK_BYTES", 1)
    assert_same(stability(X, background, n_bootstrap=4, level=0.8, shrinkage=0.3), expected, 1e-8)


def test_ill_conditioned_columns_are_taken_as_qr_roots_in_every_draw(rng):
    X, background = tall_pair(rng)
    # The last column is the first but for a spread of 1e-7: squared, most of its digits are lost in rounding.
    X[:, -1], background[:, -1] = (data[:, 0] + 1e-7 * data[:, -1] for data in (X, background))
    expected = by_repetition(X, [background], n_bootstrap=4, level=0.8, shrinkage=None)
    # A root is good to 1e-16 of the largest spread, which is 1e-9 of the smallest; matrices would be good to 1e-2.
    assert_same(stability(X, background, n_bootstrap=4, level=0.8, shrinkage=None), expected, 1e-6)


def test_shrinkage_is_found_from_all_rows_and_kept(rng):
    X, background = tall_pair(rng)
    share = DiscriminativePCA().fit(X, background=background).shrinkage_[0]
    assert 0.01 < share < 0.99
    assert_same(stability(X, background, n_bootstrap=5), stability(X, background, n_bootstrap=5, shrinkage=share), 1e-9)


def test_the_size_of_blocks_changes_nothing_but_rounding(rng, monkeypatch):
    X, background = tall_pair(rng, n_features=3, offset=100.0)
    expected = stability(X, background, n_bootstrap=5)
    sizes = []
    monkeypatch.setattr(module, "BLOCK_BYTES", 2)
    gather_block = module._weighted
    monkeypatch.setattr(
        module, "_weighted", lambda block, *rest: sizes.append(len(block)) or gather_block(block, *rest)
    )
    found = stability(X, background, n_bootstrap=5)
    assert max(sizes) == 6
    assert_same(found, expected, 1e-11)


def test_equal_seeds_give_equal_bits_and_others_other_draws(rng):
    X, background = tall_pair(rng)
    first, again = (stability(X, background, n_bootstrap=5).components_interval for _ in range(2))
    assert first.tobytes() == again.tobytes()
    others = [stability(X, background, n_bootstrap=5, random_state=seed).angles for seed in (1, 1, 2)]
    np.testing.assert_array_equal(others[0], others[1])
    assert not np.any(others[0] == others[2])


def test_the_first_draws_do_not_depend_on_how_many_follow(rng):
    X, background = tall_pair(rng)
    few, many = (stability(X, background, n_bootstrap=number).angles for number in (4, 9))
    np.testing.assert_array_equal(few, many[:4])


def test_the_full_fit_is_that_of_the_estimator_and_lies_in_its_intervals(rng):
    X, background = tall_pair(rng)
    found = stability(X, background, n_components=1)
    fit = DiscriminativePCA(n_components=1).fit(X, background=background)
    np.testing.assert_allclose(found.components, fit.components_, rtol=1e-9)
    np.testing.assert_allclose(found.patterns, fit.patterns_, rtol=1e-9)
    np.testing.assert_allclose(found.ratios, fit.eigenvalues_, rtol=1e-9)
    lower, upper = found.components_interval
    assert np.mean((lower <= found.components) & (found.components <= upper)) == 1.0


def test_no_drawn_copy_of_a_dataset_is_made(rng):
    X, background = rng.standard_normal((60_000, 40)), rng.standard_normal((100, 40))
    tracemalloc.start()
    try:
        stability(X, background, n_bootstrap=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Drawn rows alone would be as large as X. A block of 8 MiB and the draws of 60,000 row numbers are not.
    assert peak < 0.8 * X.nbytes


def test_inputs_are_left_as_they_were(rng):
    for X, background in (tall_pair(rng), wide_pair(rng)):
        for data in (X, background):
            data.setflags(write=False)
        stability(X, background, n_bootstrap=2)


def test_a_draw_moves_as_far_as_a_fresh_sample_does():
    # A draw is as far from the sample as that is from the truth, and two samples are √2 times as far from each other.
    direction = unit(1.0, 2.0, 0.0, -1.0, 0.5)
    drawn, fresh = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        samples = [(planted(rng, 200, direction), rng.standard_normal((200, 5))) for _ in range(2)]
        drawn.append(stability(*samples[0], n_components=1, n_bootstrap=30, shrinkage=None).mean_angle[0])
        fits = [DiscriminativePCA(1, shrinkage=None).fit(X, background=background) for X, background in samples]
        fresh.append(angle(fits[0].components_[0], fits[1].components_[0]))
    # The mean of 20 such angles is good to a tenth.
    assert 0.7 < np.mean(drawn) / (np.mean(fresh) / np.sqrt(2.0)) < 1.4


def test_the_angle_of_a_planted_direction_is_that_of_theory(rng):
    # For A = I + (λ - 1) v vᵀ and B = I each of the D - 1 other loadings has, to first order, the variance
    # λ / (λ - 1)² / m from the target's rows and λ² / (λ - 1)² / n from the background's.
    n_rows, n_features, gain = 2000, 5, 3.0
    X, background = planted(rng, n_rows, unit(*np.ones(n_features)), gain), rng.standard_normal((n_rows, n_features))
    found = stability(X, background, n_components=1, shrinkage=None, n_bootstrap=200)
    ratio = gain**2
    variance = (ratio + ratio**2) / (ratio - 1.0) ** 2 / n_rows
    # 200 draws of a mean square over 4 loadings are good to 5 %; that the sample is not the truth costs as much.
    assert np.mean(found.angles**2) == pytest.approx((n_features - 1) * variance, rel=0.25)


def test_noise_has_large_angles_beside_a_planted_direction(rng):
    X, background = planted(rng, 300, unit(*np.ones(20))), rng.standard_normal((300, 20))
    found = stability(X, background, n_components=2)
    assert found.mean_angle[0] < np.radians(10)
    assert found.mean_angle[1] > np.radians(30)
    assert np.all(found.angles <= np.pi / 2)
    assert np.all(found.angles >= 0)
    np.testing.assert_allclose(found.mean_angle, found.angles.mean(axis=0))


def test_noise_alone_has_no_stable_component(rng):
    found = stability(rng.standard_normal((300, 20)), rng.standard_normal((300, 20)))
    assert np.all(found.mean_angle > np.radians(45))


def test_intervals_cover_the_true_loadings_as_often_as_they_say():
    # With uᵀBu = 1 and B = I the planted filter is v itself, of unit length: each loading has a true value.
    direction = unit(3.0, 2.0, 0.0, -1.0)
    covered = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, background = planted(rng, 150, direction), rng.standard_normal((150, 4))
        found = stability(X, background, n_components=1, shrinkage=None, level=0.9, n_bootstrap=100)
        lower, upper = found.components_interval[:, 0]
        covered.append((lower <= direction) & (direction <= upper))
    # The standard error of a coverage of 0.9 from 100 samples is 0.03.
    assert np.all(np.mean(covered, axis=0) >= 0.8)
    assert np.all(np.mean(covered, axis=0) <= 0.97)


@pytest.mark.parametrize(("n_rows", "n_features"), [(40, 10), (40, 100)])
@pytest.mark.parametrize("extra", [0.0, 9.0])
def test_intervals_cover_the_ratio_of_new_rows(n_rows, n_features, extra):
    covered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, background = rng.standard_normal((2, n_rows, n_features))
        X[:, 0] *= np.sqrt(1.0 + extra)
        found = stability(X, background, n_components=1, n_bootstrap=40, level=0.9)
        truth = 1.0 + extra * found.components[0, 0] ** 2 / np.sum(found.components[0] ** 2)
        covered.append(found.ratios_interval[0, 0] <= truth <= found.ratios_interval[1, 0])
    # 81 to 100 % of many; of 30, three standard errors less.
    assert np.mean(covered) > 0.6


def test_a_wider_level_gives_wider_intervals(rng):
    X, background = tall_pair(rng)
    narrow, wide = (stability(X, background, level=level) for level in (0.5, 0.95))
    for name in ("components_interval", "patterns_interval", "ratios_interval"):
        assert np.all(np.diff(getattr(narrow, name), axis=0) < np.diff(getattr(wide, name), axis=0))


def test_singular_draws_have_infinite_ratios_and_no_warnings(rng):
    # Eight rows of six columns: all rows span all columns, drawn ones seldom do.
    X, background = rng.standard_normal((40, 6)), rng.standard_normal((8, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = stability(X, background, shrinkage=None, n_bootstrap=40)
    assert np.isfinite(found.ratios).all()
    for name in ("ratios_interval", "angles", "components_interval", "patterns_interval"):
        assert np.isfinite(getattr(found, name)).all()


@pytest.mark.parametrize("n_features", [6, 60])
def test_a_background_without_a_direction_of_the_target_is_compared_all_the_same(rng, n_features):
    X, background = rng.standard_normal((20, n_features)), rng.standard_normal((20, n_features))
    X[:, 2] *= 5.0
    background[:, 2] = 0.0
    found = stability(X, background, shrinkage=None, n_bootstrap=10, n_components=1)
    assert found.ratios[0] == np.inf
    assert np.all(found.ratios_interval > 10)
    assert np.isfinite(found.components_interval).all()


def test_infinite_draws_are_the_fits_of_the_repeated_rows(rng):
    X, background = rng.standard_normal((40, 6)), rng.standard_normal((7, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = by_repetition(X, [background], n_bootstrap=6, level=0.5, shrinkage=None)
    found = stability(X, background, n_bootstrap=6, level=0.5, shrinkage=None)
    np.testing.assert_allclose(found.angles, expected.angles, atol=1e-6)
    np.testing.assert_allclose(found.components_interval, expected.components_interval, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("shrinkage", ["auto", None])
@pytest.mark.parametrize("n_features", [2, 30])
def test_components_that_drawn_rows_do_not_have_count_as_right_angles(rng, n_features, shrinkage):
    # Three rows each, of which a draw may hold one only.
    X, background = rng.standard_normal((3, n_features)) + 1e6, rng.standard_normal((3, n_features))
    found = stability(X, background, n_components=2, n_bootstrap=200, shrinkage=shrinkage)
    for name in ("angles", "components_interval", "patterns_interval"):
        assert not np.isnan(getattr(found, name)).any()
    # Both datasets are the same row three times with probability 1/81: once at least in 200 draws, with this seed.
    assert np.any(np.all(found.angles == np.pi / 2, axis=1))


def test_equal_rows_have_exactly_no_spread(rng):
    row = rng.standard_normal(4) * 1e3
    moments = module._drawn_moments(np.tile(row, (9, 1)), np.array([3, 0, 1, 0, 0, 2, 1, 1, 1]), "scatter")
    np.testing.assert_array_equal(moments.mean, row)
    np.testing.assert_array_equal(moments.scatter, 0.0)


def test_a_block_of_which_no_row_was_drawn_counts_for_nothing(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 2)
    moments = module._drawn_moments(np.arange(6.0)[:, np.newaxis], np.array([0, 0, 3, 1, 0, 0]), "scatter")
    assert (moments.total_weight, moments.mean, moments.scatter) == (4, 2.25, 0.75)


@pytest.mark.parametrize("kind", ["scatter", "root", "rows"])
def test_weighted_moments_are_those_of_repeated_rows(rng, kind):
    rows = rng.standard_normal((30, 40)) + 1e4
    counts = np.bincount(rng.integers(30, size=30), minlength=30)
    found, expected = module._drawn_moments(rows, counts, kind), gather(np.repeat(rows, counts, axis=0), kind="scatter")
    # Numbers of 1e4 have a spacing of 2e-12.
    np.testing.assert_allclose(found.covariance(), expected.covariance(), atol=1e-10)
    if kind != "rows":
        assert found.total_weight == 30
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-14)


def test_the_bar_is_on_standard_error_and_only_where_it_is_wanted(rng, capsys):
    X, background = tall_pair(rng)
    stability(X, background, n_bootstrap=3)
    assert capsys.readouterr() == ("", "")
    stability(X, background, n_bootstrap=3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "drawing rows" in err
    assert "100%" in err


def test_a_bar_without_its_package_is_refused_in_one_sentence(rng, monkeypatch):
    monkeypatch.setattr("standout._messages.find_spec", lambda name: None)
    X, background = tall_pair(rng)
    with pytest.raises(ImportError, match=r"^a progress bar needs the package 'rich'\. Install it with: pip .*\.$"):
        stability(X, background, n_bootstrap=3, progress=True)
    stability(X, background, n_bootstrap=3)


def test_moments_that_keep_their_rows_serve_as_well(rng):
    X, background = tall_pair(rng)
    expected = stability(X, background, n_bootstrap=3)
    found = stability(gather(X, kind="rows"), gather(background, kind="rows"), n_bootstrap=3)
    np.testing.assert_allclose(found.angles, expected.angles, atol=1e-8)


GOOD = np.random.default_rng(0).standard_normal((20, 3))
HOLED = np.where(np.arange(60).reshape(20, 3) == 31, np.nan, GOOD)


@pytest.mark.parametrize(
    ("options", "error", "parameter"),
    [
        ({"n_bootstrap": 1}, ValueError, "n_bootstrap"),
        ({"n_bootstrap": 2.0}, TypeError, "n_bootstrap"),
        ({"n_bootstrap": True}, TypeError, "n_bootstrap"),
        ({"level": 0}, ValueError, "level"),
        ({"level": 1.0}, ValueError, "level"),
        ({"level": np.nan}, ValueError, "level"),
        ({"level": "95%"}, TypeError, "level"),
        ({"n_components": 4}, ValueError, "n_components"),
        ({"n_components": 0}, ValueError, "n_components"),
        ({"shrinkage": 2}, ValueError, "shrinkage"),
        ({"shrinkage": "held-out"}, ValueError, "shrinkage"),
        ({"background_weights": [1, 1]}, ValueError, "background_weights"),
    ],
)
def test_settings_without_meaning_are_refused(options, error, parameter):
    with pytest.raises(error) as caught:
        stability(GOOD, GOOD, **options)
    assert caught.value.parameter == parameter
    assert caught.value.advice
    if options == {"shrinkage": "held-out"}:
        assert "Pass the number that such a fit has found" in str(caught.value)


@pytest.mark.parametrize(
    ("target", "background", "error", "facts"),
    [
        (lambda: iter([GOOD]), GOOD, TypeError, {"name": "the target"}),
        (GOOD, lambda: [GOOD, iter([GOOD])], TypeError, {"name": "background 2"}),
        (GOOD, gather(GOOD), TypeError, {"name": "background 1", "type": "ScatterMoments"}),
        (HOLED, GOOD, ValueError, {"name": "the target", "row": 10, "column": 1}),
        (GOOD, HOLED, ValueError, {"name": "background 1", "row": 10, "column": 1}),
        (HOLED.T, GOOD.T, ValueError, {"name": "the target", "row": 1, "column": 10}),
        (GOOD, GOOD[:, :2], ValueError, {"name": "background 1", "width": 2}),
        (GOOD, None, ValueError, {}),
        (GOOD, [], ValueError, {}),
        (GOOD * 0, GOOD * 0, ValueError, {}),
        (GOOD[:1], GOOD, ValueError, {"name": "the target", "n_rows": 1}),
    ],
)
def test_input_that_cannot_be_drawn_from_is_refused_with_its_place(target, background, error, facts):
    given = [data() if callable(data) else data for data in (target, background)]
    with pytest.raises(error) as caught:
        stability(*given)
    assert facts.items() <= caught.value.facts.items()
    assert caught.value.advice


def test_more_components_than_directions_are_refused():
    lines = [np.outer(GOOD[:, column], [1, 2]) for column in (0, 1)]
    with pytest.raises(ValueError, match="number of directions") as caught:
        stability(*lines, shrinkage=None)
    assert (caught.value.parameter, caught.value.value, caught.value.limit) == ("n_components", 2, 1)


SUBJECTS = {"groups": np.arange(30) // 3, "background_groups": 50 + np.arange(40) // 4}


@pytest.mark.parametrize("options", [{}, {"shrinkage": 0.5}, {"n_columns": 3}, SUBJECTS], ids=",".join)
@pytest.mark.parametrize("n_columns", [8, 100])
def test_draws_side_by_side_are_those_one_after_the_other(n_columns, options, rng, monkeypatch):
    target, background = rng.normal(size=(30, n_columns)) * 3.0 + 5.0, rng.normal(size=(40, n_columns))
    monkeypatch.setattr(_arrays, "_n_cores", lambda: 3)
    side_by_side = stability(target, background, n_bootstrap=12, **options)
    monkeypatch.setattr(module, "MOST_SIDE_BY_SIDE", 0)
    expected = stability(target, background, n_bootstrap=12, **options)
    # Products of different BLAS functions differ by rounding.
    for name in ("angles", "components_interval", "patterns_interval", "ratios_interval"):
        np.testing.assert_allclose(getattr(side_by_side, name), getattr(expected, name), rtol=1e-6, atol=1e-9)
