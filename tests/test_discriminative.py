"""DiscriminativePCA: the paper's claims, the conventions, and the forms of input."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import linalg, sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from standout import DiscriminativePCA, datasets, make_pipeline
from standout.metrics import clustering_error, principal_angles


def covariance(X):
    centred = np.asarray(X, dtype=np.float64) - np.mean(X, axis=0, dtype=np.float64)
    return centred.T @ centred / len(X)


@pytest.fixture
def pair(rng):
    """A target with two directions of its own, and a background."""
    mix = np.eye(8) + 0.3 * rng.normal(size=(8, 8))
    return rng.normal(size=(200, 8)) * [5, 3, 1, 1, 1, 1, 1, 1] @ mix + 2, rng.normal(size=(150, 8)) @ mix - 1


def same_up_to_sign(first, second, **tolerance):
    signs = np.sign(np.sum(first * second, axis=-1, keepdims=True))
    np.testing.assert_allclose(first, signs * second, **tolerance)


# --- what the paper says --------------------------------------------------------------------------------------------


def test_algorithm_1_is_the_eigendecomposition_of_inverse_background_times_target(pair):
    target, background = pair
    values, vectors = linalg.eig(linalg.solve(covariance(background), covariance(target)))  # eq. (7), as printed
    order = np.argsort(-values.real)[:2]
    fitted = DiscriminativePCA(shrinkage=None).fit(target, background=background)
    np.testing.assert_allclose(fitted.eigenvalues_, values.real[order], rtol=1e-10)
    unit = fitted.components_ / np.linalg.norm(fitted.components_, axis=1, keepdims=True)
    same_up_to_sign(unit, vectors.real[:, order].T, atol=1e-9)


def test_algorithm_3_weights_the_covariances_of_the_backgrounds(pair, rng):
    target, first = pair
    second = rng.normal(size=(70, 8)) * np.arange(1, 9)
    mixture = 0.25 * covariance(first) + 0.75 * covariance(second)
    values = linalg.eigh(covariance(target), mixture, eigvals_only=True)[::-1]
    fitted = DiscriminativePCA(3, shrinkage=None, background_weights=[1, 3]).fit(target, background=[first, second])
    np.testing.assert_allclose(fitted.eigenvalues_, values[:3], rtol=1e-10)
    np.testing.assert_allclose(fitted.weights_, [0.25, 0.75])
    equal = DiscriminativePCA(shrinkage=None).fit(target, background=(first, second))
    np.testing.assert_allclose(equal.weights_, [0.5, 0.5])


def test_remark_1_without_background_it_is_pca(pair):
    target, _ = pair
    fitted, pca = DiscriminativePCA(3).fit(target), PCA(3).fit(target)
    same_up_to_sign(fitted.components_, pca.components_, atol=1e-12)
    np.testing.assert_allclose(fitted.eigenvalues_, pca.explained_variance_ * (len(target) - 1) / len(target))
    back, pca_back = (model.inverse_transform(model.transform(target)) for model in (fitted, pca))
    np.testing.assert_allclose(back, pca_back)


def test_remark_3_it_is_pca_of_the_target_whitened_by_the_background(pair):
    target, background = pair
    values, vectors = linalg.eigh(covariance(background))
    half = vectors / np.sqrt(values)  # Cyy^(-1/2), eq. (9)
    whitened = (target - target.mean(axis=0)) @ half
    fitted = DiscriminativePCA(shrinkage=None).fit(target, background=background)
    pca = PCA(2).fit(whitened)
    same_up_to_sign(fitted.transform(target).T, pca.transform(whitened).T, atol=1e-8)


def test_theorem_2_contrastive_pca_at_the_leading_ratio_has_the_same_direction(pair):
    target, background = pair
    fitted = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)
    difference = covariance(target) - fitted.eigenvalues_[0] * covariance(background)
    values, vectors = linalg.eigh(difference)
    # At α = λ₁ the largest eigenvalue of Cxx - αCyy is zero, and its eigenvector is dPCA's.
    assert abs(values[-1]) < 1e-10 * abs(values[0])
    assert principal_angles(fitted.components_, vectors[:, -1:].T)[0] < 1e-6


def test_theorem_3_the_direction_of_the_target_alone_is_recovered_as_rows_grow():
    angles = []
    for n in (300, 3_000, 30_000):
        model = datasets.make_factor_model(n, n, 30, shared_variance=50.0, specific_variance=8.0)
        fitted = DiscriminativePCA(1, shrinkage=None).fit(model.target, background=model.backgrounds)
        angles.append(principal_angles(fitted.components_, model.specific)[-1])
    # The error of a covariance falls as 1/sqrt(n): ten times the rows, a third of the angle.
    assert angles[0] > 2 * angles[1] > 4 * angles[2]
    assert angles[2] < 0.03


@pytest.mark.parametrize("seed", range(5))
def test_two_backgrounds_separate_what_neither_does_alone(seed):
    data = datasets.make_gaussians_two_backgrounds(random_state=seed)

    def error(background, **options):
        fitted = DiscriminativePCA(2, **options).fit(data.target, background=background)
        return clustering_error(fitted.transform(data.target), data.labels)

    for options in ({}, {"shrinkage": None}):
        assert error(list(data.backgrounds), **options) == 0.0
    assert error(None) > 0.25
    assert error(data.backgrounds[0]) > 0.25
    assert error(data.backgrounds[1]) > 0.25


# --- conventions ----------------------------------------------------------------------------------------------------


def test_scores_have_unit_background_variance_and_target_variance_lambda(pair):
    target, background = pair
    fitted = DiscriminativePCA(3, shrinkage=None).fit(target, background=background)
    np.testing.assert_allclose(fitted.transform(target).var(axis=0), fitted.eigenvalues_)
    np.testing.assert_allclose(fitted.transform(background).var(axis=0), 1.0)
    np.testing.assert_allclose(fitted.target_variance_, fitted.eigenvalues_)
    np.testing.assert_allclose(fitted.background_variance_, np.ones((1, 3)))
    assert np.all(np.diff(fitted.eigenvalues_) < 0)
    assert np.all(np.max(fitted.components_, axis=1) == np.max(np.abs(fitted.components_), axis=1))


def test_fit_transform_is_fit_then_transform(pair):
    target, background = pair
    estimator = DiscriminativePCA()
    together = estimator.fit_transform(target, background=background)
    np.testing.assert_array_equal(together, estimator.transform(target))
    np.testing.assert_array_equal(together, clone(estimator).fit(target, background=background).transform(target))


@pytest.mark.parametrize("solver", ["auto", "dense", "root", "reduced", "lanczos", "lobpcg"])
def test_equal_input_gives_equal_output_bit_for_bit(solver, pair):
    target, background = pair
    first, second = (DiscriminativePCA(solver=solver).fit(target, background=background) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)
    other = DiscriminativePCA(solver=solver, random_state=5).fit(target, background=background)
    np.testing.assert_allclose(first.components_, other.components_, atol=1e-6)


def test_patterns_are_what_the_components_extract(pair):
    target, background = pair
    fitted = DiscriminativePCA(8, shrinkage=None).fit(target, background=background)
    np.testing.assert_allclose(fitted.components_ @ fitted.patterns_.T, np.eye(8), atol=1e-9)
    np.testing.assert_allclose(fitted.patterns_, fitted.components_ @ covariance(background), atol=1e-9)
    # With all components nothing is lost on the way there and back.
    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(target)), target, atol=1e-9)


def test_inverse_transform_gives_rows_with_the_same_scores(pair):
    target, background = pair
    fitted = DiscriminativePCA(2).fit(target, background=background)
    scores = fitted.transform(target)
    np.testing.assert_allclose(fitted.transform(fitted.inverse_transform(scores)), scores, atol=1e-10)


def test_shrinkage_is_the_stated_formula(pair):
    target, background = pair
    c = covariance(background)
    b = 0.7 * c + 0.3 * np.trace(c) / 8 * np.eye(8)
    fitted = DiscriminativePCA(2, shrinkage=0.3).fit(target, background=background)
    np.testing.assert_allclose(fitted.eigenvalues_, linalg.eigh(covariance(target), b, eigvals_only=True)[::-1][:2])
    full = DiscriminativePCA(2, shrinkage=1.0).fit(target, background=background)
    assert principal_angles(full.components_, PCA(2).fit(target).components_).max() < 1e-9


def test_without_shrinkage_only_the_covariance_of_a_background_counts_not_its_rows(pair, rng):
    target, first = pair
    second = rng.normal(size=(90, 8)) * 2
    once = DiscriminativePCA(shrinkage=None).fit(target, background=[first, second])
    often = DiscriminativePCA(shrinkage=0).fit(target, background=[np.tile(first, (4, 1)), second])
    np.testing.assert_allclose(once.components_, often.components_, atol=1e-10)


def test_a_feature_of_the_target_alone_comes_first(pair):
    target, background = pair
    background = background.copy()
    background[:, 4] = 3.0
    by_default = DiscriminativePCA(1).fit(target, background=background)
    assert np.argmax(np.abs(by_default.components_)) == 4
    with pytest.warns(UserWarning, match="1 direction.* do not occur in the background"):
        plain = DiscriminativePCA(2, shrinkage=None).fit(target, background=background)
    assert np.isinf(plain.eigenvalues_[0])
    assert np.isfinite(plain.eigenvalues_[1])
    np.testing.assert_allclose(np.abs(plain.components_[0]), np.eye(8)[4], atol=1e-9)
    assert np.isfinite(plain.transform(target)).all()
    assert np.isfinite(plain.inverse_transform(plain.transform(target))).all()


# --- accuracy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3000, 2000, 20), (60, 50, 200)])
def test_float32_far_from_the_origin_gives_the_float64_eigenvalues(shape, rng):
    m, n, d = shape
    target = rng.normal(size=(m, d)) * np.r_[3, 2, np.ones(d - 2)] + 10_000
    background = rng.normal(size=(n, d)) + 10_000
    exact = DiscriminativePCA().fit(target, background=background)
    single = DiscriminativePCA().fit(target.astype(np.float32), background=background.astype(np.float32))
    # What is left is the rounding of the data themselves: steps of 1e-3 at 10,000 add a variance of 1e-7.
    np.testing.assert_allclose(single.eigenvalues_, exact.eigenvalues_, rtol=1e-3)
    assert single.transform(target.astype(np.float32)).dtype == np.float32


def test_single_precision_products_give_way_to_double_where_they_do_not_suffice(rng):
    turn = linalg.qr(rng.normal(size=(6, 6)))[0]
    spread = np.logspace(0, -3.5, 6)
    background = (rng.normal(size=(4000, 6)) * spread @ turn).astype(np.float32)
    target = (rng.normal(size=(4000, 6)) * (spread * [1, 1, 1, 1, 1, 2]) @ turn).astype(np.float32)
    values = linalg.eigh(covariance(target), covariance(background), eigvals_only=True)[::-1]
    fitted = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)
    # In single precision alone the error is above 1e-2 here: the condition number is 1e7.
    assert fitted.eigenvalues_[0] == pytest.approx(values[0], rel=1e-6)


@pytest.mark.parametrize("rotated", [True, False])
def test_a_background_of_condition_1e12_keeps_the_leading_ratio(rotated, rng):
    d, n = 12, 500
    turn = linalg.qr(rng.normal(size=(d, d)))[0] if rotated else np.eye(d)
    white = [linalg.qr(w - w.mean(axis=0), mode="economic")[0] * np.sqrt(n) for w in rng.normal(size=(2, n, d))]
    spread = np.logspace(0, -6, d)
    ratios = np.r_[np.ones(d - 1), 9.0]
    background, target = white[0] * spread @ turn, white[1] * (spread * np.sqrt(ratios)) @ turn
    fitted = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)
    assert fitted.eigenvalues_[0] == pytest.approx(9.0, rel=1e-6)
    # Badly scaled columns alone are no trouble for a covariance matrix; a badly conditioned one is left to roots.
    assert fitted.solver_ == ("root" if rotated else "dense")


def test_shared_factors_do_not_hide_two_factors_of_the_target(rng):
    for n, d in ((2_000, 2_000), (300, 20_000)):
        # Strengths in proportion to the number of features they spread over, as for factors that touch all features.
        model = datasets.make_factor_model(
            n, n, d, n_specific=2, shared_variance=d / 5, specific_variance=d / 50, shared_ratio=1.2
        )
        fitted = DiscriminativePCA(2, held_out=None).fit(model.target, background=model.backgrounds)
        assert explained(model.specific_factors, fitted.transform(model.target)) >= 0.9
        if n == d:
            plain = DiscriminativePCA(2, shrinkage=1e-6, held_out=None)
            unregularised = plain.fit(model.target, background=model.backgrounds)
            assert explained(model.specific_factors, unregularised.transform(model.target)) < 0.2


def explained(factors, scores):
    """Smallest R² of the factors, predicted from the scores."""
    factors, scores = factors - factors.mean(axis=0), scores - scores.mean(axis=0)
    left = factors - scores @ np.linalg.lstsq(scores, factors, rcond=None)[0]
    return np.min(1 - np.sum(left**2, axis=0) / np.sum(factors**2, axis=0))


# --- forms of input -------------------------------------------------------------------------------------------------


FORMS = {
    "array": lambda X: X,
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcdefgh")),
    "polars": lambda X: pl.DataFrame({name: X[:, i] for i, name in enumerate("abcdefgh")}),
    "batches": lambda X: iter(np.array_split(X, 7)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_data_gives_the_same_fit(form, pair):
    target, background = pair
    expected = DiscriminativePCA().fit(target, background=[background, background * 2])
    make = FORMS[form]
    fitted = DiscriminativePCA().fit(make(target), background=[make(background), make(background * 2)])
    np.testing.assert_allclose(fitted.components_, expected.components_, rtol=1e-8, atol=1e-10)
    assert fitted.n_features_in_ == 8
    if form not in ("batches",):
        np.testing.assert_allclose(fitted.transform(make(target)), expected.transform(target), atol=1e-9)


def test_wide_batches_are_solved_in_their_span(rng):
    target, background = rng.normal(size=(20, 70)), rng.normal(size=(25, 70))
    expected = DiscriminativePCA().fit(target, background=background)
    fitted = DiscriminativePCA().fit(iter(np.array_split(target, 4)), background=iter(np.array_split(background, 4)))
    assert fitted.solver_ == expected.solver_ == "reduced"
    np.testing.assert_allclose(fitted.components_, expected.components_, atol=1e-10)


def test_batches_of_frames_give_the_feature_names(pair):
    frames = iter([pd.DataFrame(part, columns=list("abcdefgh")) for part in np.array_split(pair[0], 3)])
    fitted = DiscriminativePCA().fit(frames, background=pair[1])
    assert fitted.feature_names_in_.tolist() == list("abcdefgh")


def test_a_list_of_plain_rows_is_one_background(pair):
    target, background = pair
    one = DiscriminativePCA().fit(target, background=background.tolist())
    assert one.background_variance_.shape == (1, 2)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_gives_named_columns(library, pair):
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    target = frame({name: pair[0][:, i] for i, name in enumerate("abcdefgh")})
    scores = DiscriminativePCA().set_output(transform=library).fit_transform(target, background=pair[1])
    assert isinstance(scores, frame)
    assert list(scores.columns) == ["discriminativepca0", "discriminativepca1"]
    fitted = DiscriminativePCA().fit(target)
    assert list(fitted.feature_names_in_) == list("abcdefgh")
    assert fitted.get_feature_names_out().tolist() == ["discriminativepca0", "discriminativepca1"]


# --- labels ---------------------------------------------------------------------------------------------------------


def labelled(pair, rng):
    target, first = pair
    second = rng.normal(size=(60, 8)) * 2
    X, y = np.vstack([second, target, first]), np.repeat(["b", "stim", "a"], [60, 200, 150])
    order = rng.permutation(len(X))
    return X[order], y[order], second


def test_labels_tell_target_from_backgrounds(pair, rng):
    X, y, second = labelled(pair, rng)
    fitted = DiscriminativePCA(target_label="stim").fit(X, y)
    expected = DiscriminativePCA().fit(pair[0], background=[pair[1], second])
    assert [str(label) for label in fitted.background_labels_] == ["a", "b"]
    np.testing.assert_allclose(fitted.components_, expected.components_, atol=1e-10)
    assert fitted.fit_transform(X, y).shape == (len(X), 2)
    assert fitted.score(X, y) == pytest.approx(expected.score(pair[0], background=[pair[1], second]))


def test_the_label_form_works_in_a_plain_pipeline_and_a_grid_search(pair, rng):
    X, y, _ = labelled(pair, rng)
    model = Pipeline([("scale", StandardScaler()), ("dpca", DiscriminativePCA(1, target_label="stim"))])
    search = GridSearchCV(model, {"dpca__shrinkage": [0.0, 0.5, 1.0]}, cv=StratifiedKFold(3)).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    # All groups are mixed alike, so the plain ratio holds out best, and PCA (shrinkage 1) worst.
    assert search.best_params_["dpca__shrinkage"] < 1.0


def test_integer_labels_work(pair, rng):
    X, y, _ = labelled(pair, rng)
    codes = np.unique(y, return_inverse=True)[1]
    named, coded = DiscriminativePCA(target_label="stim").fit(X, y), DiscriminativePCA(target_label=2).fit(X, codes)
    np.testing.assert_array_equal(named.components_, coded.components_)


# --- score ----------------------------------------------------------------------------------------------------------


def test_score_on_the_fitted_rows_is_the_mean_eigenvalue(pair):
    target, background = pair
    fitted = DiscriminativePCA(2, shrinkage=None).fit(target, background=background)
    assert fitted.score(target, background=background) == pytest.approx(fitted.eigenvalues_.mean())
    assert fitted.score(target) == pytest.approx(fitted.eigenvalues_.mean())


def test_score_on_new_rows_shows_how_much_of_the_ratio_was_chance(rng):
    target, background, new, new_background = rng.normal(size=(4, 60, 40))
    fitted = DiscriminativePCA(2, shrinkage=0.01).fit(target, background=background)
    assert fitted.score(target, background=background) > 5
    assert fitted.score(new, background=new_background) < 3


def test_sample_weights_count_rows_as_often_as_they_say(pair):
    target, background = pair
    fitted = DiscriminativePCA().fit(target, background=background)
    background = background[1:]  # a new target is not compared with the fitted background
    weights = np.arange(len(target)) % 3
    repeated = np.repeat(target, weights, axis=0)
    expected = fitted.score(repeated, background=background)
    assert fitted.score(target, background=background, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.1, 1.0, 3.3, 1e6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_component_without_background_variance_scores_infinity(pair, value, dtype):
    target, background = (rows.astype(dtype) for rows in pair)
    fitted = DiscriminativePCA(1).fit(target, background=background)
    # BLAS takes some rows at a time and the last ones alone: equal rows get scores that differ in the last digit.
    for n_rows in (5, 7, 16, 31):
        assert fitted.score(target, background=np.full((n_rows, 8), value, dtype=dtype)) == np.inf


def test_a_variance_that_is_small_beside_the_mean_is_no_rounding(pair, rng):
    target, background = pair
    fitted = DiscriminativePCA(1).fit(target, background=background)
    small = 1e3 + 1e-9 * rng.normal(size=(500, 8))
    centred = (small - small.mean(axis=0)) @ fitted.components_.T
    expected = np.var(target @ fitted.components_.T) / np.mean(centred**2)
    # Of nine digits, at a size of 1e3, some four are left of the spread.
    assert fitted.score(target, background=small) == pytest.approx(expected, rel=1e-2)


# --- pipelines ------------------------------------------------------------------------------------------------------


def test_make_pipeline_scales_the_background_as_the_target(pair):
    target, background = pair
    scaler = StandardScaler().fit(target)
    expected = DiscriminativePCA().fit(scaler.transform(target), background=scaler.transform(background))
    for given in (background, [background], (background,)):
        model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(target, background=given)
        np.testing.assert_allclose(model[-1].components_, expected.components_)
    scores = make_pipeline(StandardScaler(), DiscriminativePCA()).fit_transform(target, background=background)
    np.testing.assert_allclose(scores, expected.transform(scaler.transform(target)))
    held = expected.score(scaler.transform(target), background=scaler.transform(background))
    assert model.score(target, background=[background]) == pytest.approx(held)


def test_a_plain_pipeline_with_routing_does_the_same(pair):
    target, background = pair
    with config_context(enable_metadata_routing=True):
        plain = Pipeline(
            [("scale", StandardScaler()), ("dpca", DiscriminativePCA())], transform_input=["background"]
        ).fit(target, background=background)
    ours = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(target, background=background)
    np.testing.assert_array_equal(plain[-1].components_, ours[-1].components_)


def test_make_pipeline_without_background_and_with_one_step(pair):
    target, background = pair
    assert make_pipeline(StandardScaler(), DiscriminativePCA()).fit_transform(target).shape == (200, 2)
    alone = make_pipeline(DiscriminativePCA()).fit(target, background=background)
    expected = DiscriminativePCA().fit(target, background=background)
    assert alone.score(target, background=background) == expected.score(target, background=background)


# --- the mice -------------------------------------------------------------------------------------------------------


# Fifteen rows are of one mouse.
ALIKE = "ignore:neighbouring rows are alike"


@pytest.fixture(scope="module")
def mice(data_dir):
    table = pd.read_csv(data_dir / "mice_protein.csv")
    proteins = table.columns[1:78]
    table = table[table[proteins].isna().sum(axis=1) < 40].copy()
    table[proteins] = table[proteins].fillna(table[proteins].mean())

    def rows(*classes):
        chosen = table[table["class"].isin(classes)]
        return chosen[proteins].to_numpy(), chosen["class"].to_numpy()

    return rows


@pytest.mark.filterwarnings(ALIKE)
def test_mice_with_a_singular_background_get_an_answer_and_one_warning(mice):
    target, labels = mice("t-SC-m", "t-SC-s")
    background, _ = mice("c-CS-s")
    assert target.shape == (267, 77)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plain = DiscriminativePCA(shrinkage=None).fit(target, background=background)
    starts = ["the background covariance is singular: so", "neighbouring rows are alike (von Neumann "]
    assert [str(warning.message)[:41] for warning in caught] == starts
    scores = plain.transform(target)
    assert np.isrealobj(scores)
    assert np.isfinite(scores).all()
    assert np.isfinite(plain.eigenvalues_).all()
    # Two columns of the table are equal: without one of them an ordinary solve gives the same ratios.
    once = np.sort(np.unique(target, axis=1, return_index=True)[1])
    assert len(once) == 76
    reduced = DiscriminativePCA(shrinkage=None).fit(target[:, once], background=background[:, once])
    assert reduced.solver_ == "dense"
    np.testing.assert_allclose(plain.eigenvalues_, reduced.eigenvalues_, rtol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "neighbouring rows are alike")
        DiscriminativePCA().fit(target, background=background)


@pytest.mark.filterwarnings(ALIKE)
def test_mice_with_and_without_treatment_come_apart(mice):
    target, labels = mice("t-SC-m", "t-SC-s")
    background, _ = mice("c-SC-s")
    scaler = StandardScaler().fit(background)
    target, background = scaler.transform(target), scaler.transform(background)
    scores = DiscriminativePCA(2, shrinkage=0.5).fit(target, background=background).transform(target)
    assert clustering_error(scores, labels) <= 0.10
    assert clustering_error(DiscriminativePCA(2).fit(target).transform(target), labels) > 0.3
