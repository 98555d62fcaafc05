"""The linear methods against the paper's equations written out, their limits, and laws that options obey."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.decomposition import PCA

from linear_data import EXACT, NEARLY_PCA, assert_same_directions, covariance, leading, shrunken
from standout import ContrastivePCA, DiscriminativePCA, scan
from standout._messages import FindingWarning
from standout.moments import FoldPattern


@pytest.fixture
def data(rng):
    mix = rng.normal(size=(6, 6))
    X = rng.normal(size=(120, 6)) * [4, 1, 1, 1, 1, 2] @ mix + 3
    Y = rng.normal(size=(90, 6)) * [4, 1, 1, 1, 1, 0.7] @ mix + 3
    Z = rng.normal(size=(70, 6)) * [1, 3, 1, 1, 1, 0.7] @ mix + 3
    return X, Y, Z


# --- the paper's equations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [None, 0.0, 0.3, 1.0])
def test_dpca_solves_equation_6(data, shrinkage):
    X, Y, _ = data
    model = DiscriminativePCA(3, shrinkage=shrinkage, cv=None).fit(X, background=Y)
    values, vectors = leading(covariance(X), shrunken(covariance(Y), shrinkage or 0.0), 3)
    np.testing.assert_allclose(model.eigenvalues_, values, **EXACT)
    assert_same_directions(model.components_, vectors.T)
    # Equation 4b: without folds the background has unit variance along each component, in sample.
    np.testing.assert_allclose(np.diag(model.components_ @ covariance(Y) @ model.components_.T), 1.0, **EXACT)
    assert np.isnan(model.ratio_).all()
    assert model.shrinkage_ == (shrinkage or 0.0)


def test_several_backgrounds_solve_equation_20(data):
    X, Y, Z = data
    model = DiscriminativePCA(2, shrinkage=0.2, background_weights=[1, 3], cv=None).fit(X, background=[Y, Z])
    B = 0.25 * shrunken(covariance(Y), 0.2) + 0.75 * shrunken(covariance(Z), 0.2)
    values, vectors = leading(covariance(X), B, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, **EXACT)
    assert_same_directions(model.components_, vectors.T)
    np.testing.assert_allclose(model.background_weights_, [0.25, 0.75])


def test_contrastive_pca_is_the_difference_of_covariances(data):
    X, Y, Z = data
    model = ContrastivePCA(2, alpha=1.7, cv=None).fit(X, background=[Y, Z])
    values, vectors = leading(covariance(X) - 1.7 * (covariance(Y) + covariance(Z)) / 2, np.eye(6), 2)
    np.testing.assert_allclose(model.eigenvalues_, values, **EXACT)
    assert_same_directions(model.components_, vectors.T)


def test_scores_patterns_and_correlations_follow_their_definitions(data):
    X, Y, _ = data
    model = DiscriminativePCA(2, shrinkage=0.1, cv=None).fit(X, background=Y)
    scores = model.transform(X)
    np.testing.assert_allclose(scores, (X - X.mean(axis=0)) @ model.components_.T, **EXACT)
    patterns = model.components_ @ shrunken(covariance(Y), 0.1)
    assert_same_directions(model.patterns_, patterns)
    np.testing.assert_allclose(model.transform(model.inverse_transform(scores)), scores, atol=1e-9)
    both = np.corrcoef(X.T, scores.T)[:6, 6:].T
    np.testing.assert_allclose(model.correlations_, both, **EXACT)
    for row in model.components_:
        assert row[np.argmax(np.abs(row))] > 0


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        DiscriminativePCA(3),
        DiscriminativePCA(3, shrinkage=1.0, cv=None),
        ContrastivePCA(3, alpha=0.0, cv=None),
    ],
    ids=["no background", "full shrinkage", "alpha zero"],
)
def test_pca_is_a_limit(data, model):
    X, Y, _ = data
    model.fit(X, background=None if model.cv else Y)
    pca = PCA(3).fit(X)
    assert_same_directions(model.components_, pca.components_)
    unit = np.trace(covariance(Y)) / 6 if getattr(model, "shrinkage", None) == 1.0 else 1.0
    np.testing.assert_allclose(model.eigenvalues_ * unit, pca.explained_variance_ * 119 / 120, **EXACT)


def test_theorem_2_the_first_component_is_that_of_a_difference(data):
    X, Y, _ = data
    ratio = DiscriminativePCA(1, shrinkage=None, cv=None).fit(X, background=Y)
    difference = ContrastivePCA(1, alpha=float(ratio.eigenvalues_[0]), cv=None).fit(X, background=Y)
    assert_same_directions(ratio.components_, difference.components_, 1e-7)
    # The largest value of Cxx - λ Cyy is zero.
    assert abs(difference.eigenvalues_[0]) < 1e-10 * np.trace(covariance(X))


def test_exchanged_datasets_have_inverse_ratios_in_reverse_order(data):
    X, Y, _ = data
    one = DiscriminativePCA(None, shrinkage=None, cv=None).fit(X, background=Y)
    other = DiscriminativePCA(None, shrinkage=None, cv=None).fit(Y, background=X)
    np.testing.assert_allclose(one.eigenvalues_ * other.eigenvalues_[::-1], 1.0, rtol=1e-10)
    assert_same_directions(one.components_, other.components_[::-1], 1e-8)


def test_remark_3_dpca_is_pca_of_whitened_rows(data):
    X, Y, _ = data
    model = DiscriminativePCA(2, shrinkage=None, cv=None).fit(X, background=Y)
    white = linalg.inv(linalg.sqrtm(covariance(Y)).real)
    pca = PCA(2).fit(X @ white)
    np.testing.assert_allclose(model.eigenvalues_, pca.explained_variance_ * 119 / 120, rtol=1e-9)
    scores = pca.transform(X @ white)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(scores), atol=1e-8)


def test_ratios_do_not_depend_on_units_or_mixtures_of_columns(data, rng):
    X, Y, _ = data
    mix = rng.normal(size=(6, 6)) + 4 * np.eye(6)
    one = DiscriminativePCA(2, shrinkage=None).fit(X, background=Y)
    other = DiscriminativePCA(2, shrinkage=None).fit(X @ mix + 7, background=Y @ mix + 7)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(one.ratio_, other.ratio_, rtol=1e-9)


# --- hard cases ------------------------------------------------------------------------------------------------------


def test_solvers_agree(rng):
    X, Y = rng.normal(size=(2, 700, 300)) * np.geomspace(1, 3, 300)
    X[:, 5] *= 4
    values = [
        DiscriminativePCA(2, shrinkage=0.1, cv=None, solver=solver).fit(X, background=Y).eigenvalues_
        for solver in ("dense", "iterative", "auto")
    ]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-9)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-9)


def test_a_large_common_mean_costs_few_digits(data):
    X, Y, _ = data
    near = DiscriminativePCA(1).fit(X, background=Y)
    far = DiscriminativePCA(1).fit(X + 1e6, background=Y + 1e6)
    np.testing.assert_allclose(far.ratio_, near.ratio_, rtol=1e-6)
    single = DiscriminativePCA(1).fit((X + 1000).astype(np.float32), background=(Y + 1000).astype(np.float32))
    np.testing.assert_allclose(single.ratio_, near.ratio_, rtol=1e-2)


def test_few_rows_of_single_precision_keep_what_a_small_shrinkage_adds(rng):
    X, Y = rng.normal(size=(2, 140, 200)).astype(np.float32)
    X[:, 0] *= 4
    single = DiscriminativePCA(2, shrinkage=1e-3).fit(X, background=Y)
    whole = DiscriminativePCA(2, shrinkage=1e-3).fit(X.astype(np.float64), background=Y.astype(np.float64))
    np.testing.assert_allclose(single.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(single.ratio_, whole.ratio_, rtol=1e-6)


def test_columns_that_are_nearly_combinations_of_others_keep_their_digits(rng):
    X, Y = rng.normal(size=(2, 200, 4)) * [1, 1, 1, 2]
    X[:, 3] *= 3
    # The last column affects only the seventh digit of the others. Products lose it, roots keep it.
    mix = np.eye(4)
    mix[3, :3] = 1.0
    mix[3, 3] = 1e-7
    plain = DiscriminativePCA(1, shrinkage=None, cv=None).fit(X, background=Y)
    model = DiscriminativePCA(1, shrinkage=None, cv=None).fit(X @ mix, background=Y @ mix)
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-4)


def test_a_direction_that_the_background_lacks_is_infinite_and_said(rng):
    X, Y = rng.normal(size=(2, 50, 4))
    Y[:, 1] = 2.0
    with pytest.warns(UserWarning, match="does not vary along 1 direction"):
        model = DiscriminativePCA(2, shrinkage=None, cv=None).fit(X, background=Y)
    assert np.isinf(model.eigenvalues_[0])
    assert np.isfinite(model.eigenvalues_[1])
    assert np.abs(model.components_[0]).argmax() == 1
    assert np.all(np.isfinite(model.transform(X)))


@pytest.mark.filterwarnings(NEARLY_PCA)
def test_the_same_datasets_have_no_ratio_above_one(rng):
    X = rng.normal(size=(300, 5)) * [5, 1, 1, 1, 2]
    model = DiscriminativePCA(1).fit(X, background=X)
    np.testing.assert_allclose(model.ratio_, 1.0, rtol=1e-8)


@pytest.mark.filterwarnings(NEARLY_PCA)
def test_noise_has_a_ratio_near_one_and_not_the_eigenvalue(rng):
    X, Y = rng.normal(size=(2, 60, 30))
    model = DiscriminativePCA(1).fit(X, background=Y)
    assert 0.5 < model.ratio_[0] < 1.6
    unshrunken = DiscriminativePCA(1, shrinkage=None).fit(X, background=Y)
    assert unshrunken.eigenvalues_[0] > 3.0
    assert unshrunken.ratio_[0] < 2.0


@pytest.mark.parametrize("units", [np.geomspace(1e-8, 1e8, 6), 1e130, 1e-130], ids=["columns", "large", "small"])
@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_folds_are_brought_to_the_order_of_the_fit_whatever_the_units(kind, units):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(20, 6)) * [3, 3, 3, 1, 1, 1], rng.normal(size=(40, 6))
    # dPCA without shrinkage does not depend on units of columns. No method depends on one unit of all columns.
    given = {"shrinkage": None} if kind is DiscriminativePCA else {"alpha": 1.0}
    units = units if kind is DiscriminativePCA else np.max(units)
    expected = kind(3, **given).fit(X, background=Y).ratio_
    np.testing.assert_allclose(kind(3, **given).fit(X * units, background=Y * units).ratio_, expected, rtol=1e-6)


def test_the_zero_of_a_covariate_does_not_matter_to_a_shift(rng):
    X, Y, ages, others = rng.normal(size=(30, 4)), rng.normal(size=(40, 4)), rng.normal(size=30), rng.normal(size=40)
    X, Y = X + ages[:, None] * [1, 2, 3, 4], Y + others[:, None] * [1, 2, 3, 5]
    fits = [
        DiscriminativePCA(2, center="background").fit(
            X, background=Y, adjust=ages + zero, background_adjust=others + zero
        )
        for zero in (0.0, 1000.0)
    ]
    np.testing.assert_allclose(fits[1].ratio_, fits[0].ratio_, rtol=1e-6)


@pytest.mark.parametrize("width", [3, 90])
def test_a_fold_whose_rows_have_no_weight_leaves_no_ratio(rng, width):
    X, Y = rng.normal(size=(2, 10, width))
    weights = (FoldPattern(5).of(np.arange(10)) != 0).astype(float)
    model = ContrastivePCA(1, alpha=1.0).fit(X, background=Y, sample_weight=weights)
    assert np.isnan(model.ratio_).all()


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_smoothing_of_scaled_columns_does_not_depend_on_the_unit(rng, unit):
    X, Y = rng.normal(size=(2, 80, 9)) * np.linspace(1, 3, 9)
    plain, other = (
        DiscriminativePCA(1, shrinkage=0.1, scale="pooled", smooth="chain").fit(X * factor, background=Y * factor)
        for factor in (1.0, unit)
    )
    np.testing.assert_allclose(other.ratio_, plain.ratio_, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scaled_wide_rows_may_have_fewer_coordinates_without_a_fold():
    rng = np.random.default_rng(3)
    X, Y = np.clip(rng.normal(5, 1, size=(2, 20, 90)) * 10.0 ** rng.uniform(-3, 12, size=90), 0, 255).round()
    w = rng.poisson(1, size=(2, 20))
    model = DiscriminativePCA(1, scale="background")
    model.fit(X, background=Y, sample_weight=w[0], background_sample_weight=w[1])
    assert np.isfinite(model.components_).all()


def test_wide_rows_whose_squares_are_out_of_range_are_refused(rng):
    X, Y = 1e153 * (rng.normal(size=(2, 20, 90)) * 1e-7 + 1.0)
    with pytest.raises(ValueError, match="squares of the values are out of the range"):
        ContrastivePCA(1, alpha=1.0).fit(X, background=Y)


@pytest.mark.parametrize("form", ["array", "scan"])
@pytest.mark.filterwarnings("ignore:the means of target and background")
def test_a_background_of_condition_1e12_keeps_its_digits(form, rng, tmp_path):
    spectrum, ratios = np.logspace(0, -12, 8), np.r_[np.ones(7), 5.0]
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    white = rng.normal(size=(2, 400, 8))
    white -= white.mean(axis=1, keepdims=True)
    bases = [np.linalg.qr(part)[0] * 20.0 for part in white]
    # The means are apart: a large mean must not hide the small directions.
    X, Y = (bases[0] * np.sqrt(spectrum * ratios)) @ turn.T + 5.0, (bases[1] * np.sqrt(spectrum)) @ turn.T
    given = []
    for name, part in (("x", X), ("y", Y)):
        np.save(tmp_path / f"{name}.npy", part)
        given.append(part if form == "array" else scan(tmp_path / f"{name}.npy"))
    model = DiscriminativePCA(1, shrinkage=0.0).fit(given[0], background=given[1])
    np.testing.assert_allclose(model.eigenvalues_, 5.0, rtol=1e-7)
    # Sums are kept: more rows can be added.
    with pytest.warns(UserWarning, match="less than half of the digits"):
        assert model.partial_fit(X, background=Y).n_samples_ == 800


def test_folds_whose_background_has_too_few_rows_are_warned_of(rng):
    X, Y = rng.normal(size=(40, 30)), rng.normal(size=(35, 30))
    with pytest.warns(FindingWarning, match='without a fold, the background does not vary.*`shrinkage`="auto"'):
        DiscriminativePCA(1, shrinkage=None).fit(X, background=Y)
