"""Fits from sums: exact moments, covariances with counts, and private releases."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import standout
from standout import ContrastivePCA, DiscriminativePCA
from standout.metrics import principal_angles
from standout.moments import gather
from standout.private import PrivateMoments, release, required_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def factors(n_rows, n_features, seed=0):
    """Draw a target and a background that share factors of variance 100; two of variance 16 are the target's own."""
    rng = np.random.default_rng(seed)
    n_shared = min(10, n_features // 2)
    directions = np.linalg.qr(rng.standard_normal((n_features, n_shared + 2))).Q.T
    shared, specific = directions[:-2], directions[-2:]
    background = 10 * rng.standard_normal((n_rows, n_shared)) @ shared + rng.standard_normal((n_rows, n_features))
    target = np.sqrt(120) * rng.standard_normal((n_rows, n_shared)) @ shared + rng.standard_normal((n_rows, n_features))
    target += 4 * rng.standard_normal((n_rows, 2)) @ specific
    radius = 0.7 * np.sqrt(100 * n_shared + n_features)
    bounds = {"centre": np.zeros(n_features), "scale": np.ones(n_features), "radius": radius}
    truth = 120 * shared.T @ shared + 16 * specific.T @ specific + np.eye(n_features)
    return target, background, bounds, (truth, specific)


def r2(model, truth):
    """R² of the target's own factors given the scores of new rows."""
    covariance, specific = truth
    filters = model.components_.T
    both = 16 * filters.T @ specific.T
    return float(np.trace(both.T @ np.linalg.solve(filters.T @ covariance @ filters, both)) / 32)


@pytest.fixture(scope="module")
def released():
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    target, background, bounds, truth = factors(10_000, 20)
    return (*(release(rows, **bounds, **BUDGET) for rows in (target, background)), target, background, truth)


# --- exact moments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [DiscriminativePCA, ContrastivePCA])
@pytest.mark.parametrize("n_backgrounds", [0, 1, 2])
def test_a_fit_from_moments_is_that_of_the_rows(make, n_backgrounds, rng):
    target, *backgrounds = rng.normal(size=(3, 200, 5)) * [5, 1, 1, 2, 3] + 2.0
    backgrounds = backgrounds[:n_backgrounds]
    # With folds contrastive PCA chooses α by them, and sums have none.
    expected = make(held_out=None).fit(target, background=backgrounds or None)
    sums = [gather(rows, norms=True) for rows in (target, *backgrounds)]
    model = make.from_moments(sums[0], sums[1:] or None)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_)
    np.testing.assert_allclose(model.transform(target), expected.transform(target), atol=1e-8)
    assert model.n_features_in_ == 5
    if n_backgrounds == 1:
        np.testing.assert_array_equal(make.from_moments(*sums).eigenvalues_, model.eigenvalues_)


def test_covariances_with_counts_are_enough(rng):
    target, background = rng.normal(size=(2, 200, 4)) * [5, 1, 1, 2]
    given = [(np.cov(rows.T, bias=True), len(rows), rows.mean(axis=0)) for rows in (target, background)]
    model = DiscriminativePCA.from_moments(*given, n_components=3, shrinkage=0.1)
    expected = DiscriminativePCA(n_components=3, shrinkage=0.1).fit(target, background=background)
    np.testing.assert_allclose(model.transform(target), expected.transform(target), atol=1e-8)
    bare = DiscriminativePCA.from_moments(given[0][:2], [given[1][:2]], n_components=3, shrinkage=0.1)
    np.testing.assert_allclose(bare.components_, model.components_)
    assert not bare.mean_.any()
    both = [DiscriminativePCA.from_moments(given[0], kind([given[1]] * 2), shrinkage=0.1) for kind in (list, tuple)]
    np.testing.assert_array_equal(both[0].components_, both[1].components_)
    assert len(both[1].weights_) == 2


def test_more_rows_can_follow_exact_moments(rng):
    target, background = rng.normal(size=(2, 200, 4)) * [5, 1, 1, 2]
    model = DiscriminativePCA.from_moments(gather(target[:100], norms=True), gather(background, norms=True))
    model.partial_fit(target[100:])
    np.testing.assert_allclose(
        model.eigenvalues_, DiscriminativePCA().fit(target, background=background).eigenvalues_, rtol=1e-8
    )


SQUARE = np.diag([2.0, 1.0])


@pytest.mark.parametrize(
    ("target", "backgrounds", "parameters", "words"),
    [
        (np.ones((4, 2)), (SQUARE, 9), {}, "the target is given as ndarray"),
        ((SQUARE, 9), np.ones((4, 2)), {}, "background 1 is given as"),
        ((SQUARE,), (SQUARE, 9), {}, "tuple"),
        ((SQUARE, 1), (SQUARE, 9), {}, "count"),
        ((SQUARE, 2.5), (SQUARE, 9), {}, "count"),
        ((np.ones((2, 3)), 9), (SQUARE, 9), {}, "symmetric"),
        ((np.array([[1.0, 2.0], [0.0, 1.0]]), 9), (SQUARE, 9), {}, "symmetric"),
        ((SQUARE * np.nan, 9), (SQUARE, 9), {}, "NaN"),
        ((SQUARE, 9, [1.0]), (SQUARE, 9), {}, "mean"),
        ((SQUARE, 9), (np.eye(3), 9), {}, "features"),
        ((SQUARE, 9), (SQUARE, 9), {"n_components": 3}, "n_components"),
        ((SQUARE, 9), (SQUARE, 9), {"shrinkage": "clusters"}, "clusters"),
        ((SQUARE, 9), (SQUARE, 9), {"test": "permutation"}, "permutation"),
        ((SQUARE, 9), (SQUARE, 9), {"target_label": 1, "shrinkage": 0.0}, "target_label"),
        ((SQUARE, 9), (SQUARE, 9), {"shrinkage": "auto"}, "norms"),
        ((SQUARE, 9), (SQUARE, 9), {"shrinkage": 0.0, "background_weights": [1, 2]}, "background_weights"),
    ],
)
def test_what_is_no_moments_is_refused(target, backgrounds, parameters, words):
    with pytest.raises((ValueError, TypeError), match=words):
        DiscriminativePCA.from_moments(target, backgrounds, **{"n_components": 1, **parameters})


# --- private moments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_features", "epsilon", "n_rows"), [(10, 1.0, 3000), (10, 5.0, 1000), (50, 2.0, 3000), (50, 10.0, 1000)]
)
def test_private_sums_find_what_exact_ones_find(n_features, epsilon, n_rows):
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    found = []
    for seed in range(3):
        target, background, bounds, truth = factors(n_rows, n_features, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sums = [release(rows, **bounds, epsilon=epsilon, delta=1e-6) for rows in (target, background)]
            found.append(r2(DiscriminativePCA.from_moments(*sums), truth))
    # Noise has no seed. Over many releases the mean of three is 0.92 or more, with a standard deviation of 0.003.
    assert np.mean(found) >= 0.9


def test_the_ridge_against_the_noise_helps():
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    target, background, bounds, truth = factors(3000, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sums = [release(rows, **bounds, epsilon=2.0, delta=1e-6) for rows in (target, background)]
        chosen = r2(DiscriminativePCA.from_moments(*sums), truth)
        assert chosen > r2(DiscriminativePCA.from_moments(*sums, shrinkage=1e-3), truth)
        assert chosen > r2(DiscriminativePCA.from_moments(*sums, shrinkage=0.9), truth) + 0.1


def test_shrinkage_follows_from_the_noise_and_goes_with_it(released):
    target, background, *_ = released
    model = DiscriminativePCA.from_moments(target, background)
    assert model.shrinkage_ == background.shrinkage
    # Half of the noise, on top of the covariance.
    spread = background.total_variance / 20
    assert background.shrinkage == pytest.approx(0.5 * background.noise / (0.5 * background.noise + spread))
    assert DiscriminativePCA.from_moments(target, background, shrinkage=0.3).shrinkage_ == 0.3


def test_units_of_the_columns_do_not_matter_if_the_scale_follows_them(monkeypatch):
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    monkeypatch.setattr("standout.private._release.with_noise", lambda exact, scale: exact)
    target, background, bounds, _ = factors(4000, 8)
    units = np.array([1e-3, 1.0, 50.0, 1.0, 1e4, 0.1, 1.0, 7.0])
    plain = DiscriminativePCA.from_moments(*(release(rows, **bounds, **BUDGET) for rows in (target, background)))
    scaled = {**bounds, "scale": units, "centre": np.full(8, 3.0)}
    moved = [release(rows * units + 3.0, **scaled, **BUDGET) for rows in (target, background)]
    model = DiscriminativePCA.from_moments(*moved)
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-6)
    # The sign of a component depends on the units.
    np.testing.assert_allclose(abs(model.transform(target * units + 3.0)), abs(plain.transform(target)), atol=1e-4)


def test_pca_and_cpca_of_private_sums_are_near_those_of_rows(released):
    target, background, rows, others, _ = released
    for make, given in (
        (DiscriminativePCA, {"n_components": 10}),
        (ContrastivePCA, {"n_components": 2, "alpha": 5.0}),
    ):
        against = None if make is DiscriminativePCA else background
        model = make.from_moments(target, against, **given)
        expected = make(**given).fit(rows, background=None if against is None else others)
        angles = principal_angles(model.components_, expected.components_)
        assert np.rad2deg(angles).max() < 40


def test_a_fit_warns_where_noise_drowns_what_is_looked_for(released):
    target, background, bounds, truth = factors(500, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sums = [release(rows, **bounds, **BUDGET) for rows in (target, background)]
    with pytest.warns(UserWarning, match="drowns what is looked for") as caught:
        model = DiscriminativePCA.from_moments(*sums)
    assert r2(model, truth) < 0.5
    # What the planner asks for, up to the noise in the number of rows.
    assert caught[0].message.facts["rows"] == pytest.approx(required_rows(50, **BUDGET), rel=0.1)
    # Enough rows: no warning, which would be an error here.
    DiscriminativePCA.from_moments(*released[:2])


def test_a_target_in_bounds_of_the_background_needs_far_fewer_rows():
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    _, background, bounds, _ = factors(20_000, 50)
    target, _, _, truth = factors(500, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        against = release(background, **bounds, **BUDGET)
        found = {
            name: r2(DiscriminativePCA.from_moments(release(target, **limits, **BUDGET), against), truth)
            for name, limits in (("plain", bounds), ("whitened", against.whitening()))
        }
    # Over many releases: 0.92, and 0.42 with a standard deviation of 0.14.
    assert found["whitened"] > max(0.85, found["plain"])


def test_bounds_of_a_background_are_in_units_of_its_spread(released):
    _, background, _, rows, _ = released
    limits = background.whitening()
    white = np.linalg.solve(limits["scale"], (rows - limits["centre"]).T)
    values = np.linalg.eigvalsh(np.cov(white))
    # In the units of the rows the largest variance is a hundred times the smallest.
    assert values.max() / values.min() < 10


def test_places_with_noise_of_their_own_do_as_well_with_enough_rows():
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    target, background, bounds, truth = factors(20_000, 20)
    sums = []
    for rows in (target, background):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = [release(part, **bounds, **BUDGET) for part in np.array_split(rows, 10)]
        sums.append(sum(parts[1:], start=parts[0]))
    assert r2(DiscriminativePCA.from_moments(*sums), truth) > 0.9
    assert len(sums[0].spent) == 10


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"shrinkage": "clusters"}, "shrinkage"),
        ({"test": "permutation"}, "reshuffle"),
        ({"test": "analytic"}, "noise"),
        ({"n_components": "auto"}, "n_components"),
    ],
)
def test_what_would_read_rows_again_is_refused_with_the_reason(parameters, words, released):
    with pytest.raises(ValueError, match=words):
        DiscriminativePCA.from_moments(*released[:2], **parameters)


def test_tests_and_stability_of_private_sums_are_refused(released):
    target, background, *_ = released
    for method, words in (("analytic", "noise in the sums"), ("permutation", "needs its rows")):
        with pytest.raises(TypeError, match=words):
            standout.selection.component_test(target, background, method=method)
    with pytest.raises(TypeError, match="needs its rows"):
        standout.selection.stability(target, background)


def test_exact_rows_are_not_mixed_with_private_sums(released):
    target, background, rows, others, _ = released
    model = DiscriminativePCA.from_moments(target, background)
    with pytest.raises(TypeError, match="exact sums and private sums"):
        model.partial_fit(rows)
    exact = DiscriminativePCA().fit(rows, background=others)
    with pytest.raises(TypeError, match="exact sums and private sums"):
        exact.merge(model)
    with pytest.warns(UserWarning, match="not protected"):
        DiscriminativePCA.from_moments(target, gather(others, norms=True))


def test_estimators_of_private_sums_merge_and_are_saved(released, tmp_path):
    target, background, rows, *_ = released
    model = DiscriminativePCA.from_moments(target, background)
    both = DiscriminativePCA.from_moments(target, background).merge(model)
    expected = DiscriminativePCA.from_moments(target + target, background + background)
    np.testing.assert_allclose(both.eigenvalues_, expected.eigenvalues_)
    standout.save(model, tmp_path / "model.skops", moments=True)
    again = standout.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
    np.testing.assert_allclose(again.merge(model).eigenvalues_, both.eigenvalues_)
    assert isinstance(pickle.loads(pickle.dumps(target)), PrivateMoments)


def test_names_of_columns_come_from_the_release(rng):
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    bounds = {"centre": [0, 0], "scale": [1, 1], "radius": 1.0}
    frames = [pd.DataFrame(rng.normal(size=(4000, 2)) * [1, k], columns=["a", "b"]) for k in (3, 1)]
    sums = [release(frame, **bounds, **BUDGET) for frame in frames]
    model = DiscriminativePCA.from_moments(*sums, n_components=1)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.transform(frames[0]).shape == (4000, 1)
    other = release(frames[1][["b", "a"]], **bounds, **BUDGET)
    with pytest.raises(ValueError, match="order"):
        DiscriminativePCA.from_moments(sums[0], other)
