"""Data on which an answer is easily lost without a word: each must be right, or come with one."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, sparse
from sklearn.covariance import ledoit_wolf_shrinkage

from standout import DiscriminativePCA
from standout.moments import gather, ledoit_wolf


def covariance(X):
    X = np.asarray(X, dtype=np.float64)
    return np.cov(X.T, bias=True)


def ratios(target, background, shrinkage):
    c = covariance(background)
    b = (1 - shrinkage) * c + shrinkage * np.trace(c) / len(c) * np.eye(len(c))
    return linalg.eigh(covariance(target), b, eigvals_only=True)[::-1]


# --- sparse counts --------------------------------------------------------------------------------------------------


def counts(n_rows, n_features, seed, dtype=np.int64, top=5):
    X = sparse.random(n_rows, n_features, 0.02, format="csr", random_state=seed)
    X.data = np.ceil(X.data * top)
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(("n_rows", "n_features"), [(60, 300), (300, 60)])
@pytest.mark.parametrize("solver", ["auto", "dense", "root", "reduced", "lanczos", "lobpcg"])
def test_thin_sparse_counts_of_any_type_give_the_dense_answer(dtype, n_rows, n_features, solver):
    target, background = (counts(n_rows, n_features, seed, dtype, top=100) for seed in (0, 1))
    fitted = DiscriminativePCA(2, solver=solver).fit(target, background=background)
    share = ledoit_wolf_shrinkage(background.toarray().astype(float))
    assert fitted.shrinkage_[0] == pytest.approx(share, rel=1e-9)
    expected = ratios(target.toarray(), background.toarray(), share)[:2]
    np.testing.assert_allclose(fitted.eigenvalues_, expected, rtol=1e-8)


@pytest.mark.parametrize("kind", ["scatter", "root", "rows"])
@pytest.mark.parametrize("shape", [(300, 60), (60, 300)])
def test_thin_sparse_data_have_the_dense_shrinkage_and_norm(kind, shape):
    X = counts(*shape, seed=2)
    moments = gather(X, kind=kind, norms=True)
    dense = X.toarray().astype(float)
    assert ledoit_wolf(moments) == pytest.approx(ledoit_wolf_shrinkage(dense), rel=1e-10)
    assert moments.squared_norm == pytest.approx(np.sum(covariance(dense) ** 2), rel=1e-10)


def test_merged_rows_know_their_variances(rng):
    first, second = rng.normal(size=(5, 9)), rng.normal(size=(7, 9)) + 3
    both = gather(first, kind="rows") + gather(second, kind="rows")
    np.testing.assert_allclose(both.variances, np.vstack([first, second]).var(axis=0))


# --- rounding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [1e-4, 1e-2, 0.5])
def test_wide_single_precision_data_keep_their_ratios(shrinkage, rng):
    target, background = rng.normal(size=(2, 60, 300)).astype(np.float32)
    fitted = DiscriminativePCA(2, shrinkage=shrinkage).fit(target, background=background)
    np.testing.assert_allclose(fitted.eigenvalues_, ratios(target, background, shrinkage)[:2], rtol=1e-3)


def test_wide_data_of_very_different_columns_keep_their_ratios(rng):
    spread = np.arange(1, 301) ** -1.5
    target, background = (rng.normal(size=(2, 80, 300)) * spread).astype(np.float32)
    for shrinkage in (1e-3, "auto"):
        fitted = DiscriminativePCA(2, shrinkage=shrinkage).fit(target, background=background)
        expected = ratios(target, background, fitted.shrinkage_[0])[:2]
        np.testing.assert_allclose(fitted.eigenvalues_, expected, rtol=1e-3)


def test_a_tiny_ridge_beside_a_huge_column_is_not_lost(rng):
    target, background = rng.normal(size=(2, 60, 200))
    target[:, 0] *= 1e4
    background[:, 0] *= 1e4
    fitted = DiscriminativePCA(2, shrinkage=1e-10, solver="reduced").fit(target, background=background)
    exact = DiscriminativePCA(2, shrinkage=1e-10, solver="root").fit(target, background=background)
    np.testing.assert_allclose(fitted.eigenvalues_, exact.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_a_component_in_a_nearly_dependent_column_is_found(seed):
    rng = np.random.default_rng(seed)
    target, background = rng.normal(size=(2, 500, 6))
    target[:, 1] = target[:, 0] + 1e-9 * rng.normal(size=500)
    background[:, 1] = background[:, 0] + 1e-11 * rng.normal(size=500)
    target[:, 5] *= 10
    # Even roots keep only a few digits of so small a spread, and say so.
    with pytest.warns(UserWarning, match="badly conditioned"):
        fitted = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)
    assert fitted.solver_ == "root"
    assert fitted.eigenvalues_[0] == pytest.approx(1e4, rel=0.3)


def test_single_precision_gives_way_to_double_before_roots(rng):
    spread = np.logspace(0, -2.5, 6)
    turn = linalg.qr(rng.normal(size=(6, 6)))[0]
    background = (rng.normal(size=(3000, 6)) * spread @ turn).astype(np.float32)
    target = (rng.normal(size=(3000, 6)) * (spread * [1, 1, 1, 1, 1, 3]) @ turn).astype(np.float32)
    fitted = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)
    assert fitted.solver_ == "dense"
    assert fitted.eigenvalues_[0] == pytest.approx(ratios(target, background, 0.0)[0], rel=1e-7)


def test_batches_that_lose_digits_say_so_and_roots_do_not(rng):
    turn = linalg.qr(rng.normal(size=(12, 12)))[0]
    spread = np.logspace(0, -6, 12)
    background, target = rng.normal(size=(2, 600, 12)) * spread
    target[:, -1] *= 3
    background, target = background @ turn, target @ turn
    exact = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)

    def parts(X):
        return iter(np.array_split(X, 5))

    with pytest.warns(UserWarning, match="badly conditioned: .* Use shrinkage, or solver='root'"):
        DiscriminativePCA(1, shrinkage=None).fit(parts(target), background=parts(background))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = DiscriminativePCA(1, shrinkage=None, solver="root").fit(parts(target), background=parts(background))
    assert fitted.eigenvalues_[0] == pytest.approx(exact.eigenvalues_[0], rel=1e-8)


@pytest.mark.parametrize("scale", [1e-70, 1e-30, 1e30, 1e70])
@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
def test_the_unit_of_the_data_does_not_matter(scale, shape, rng):
    target, background = rng.normal(size=(2, *shape))
    for solver in ("auto", "root"):
        plain, scaled = (
            DiscriminativePCA(2, solver=solver).fit(factor * target, background=factor * background)
            for factor in (1.0, scale)
        )
        np.testing.assert_allclose(scaled.eigenvalues_, plain.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-30, 1e-23, 1e20, 1e30])
@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
def test_single_precision_numbers_outside_the_range_of_their_squares(scale, shape, rng):
    target, background = rng.normal(size=(2, *shape)).astype(np.float32)
    plain, scaled = (
        DiscriminativePCA(2).fit((factor * target).astype("f4"), background=(factor * background).astype("f4"))
        for factor in (1.0, scale)
    )
    np.testing.assert_allclose(scaled.eigenvalues_, plain.eigenvalues_, rtol=1e-4)


def test_a_scale_whose_fourth_powers_are_out_of_range_is_refused(rng):
    target, background = rng.normal(size=(2, 30, 4))
    for scale in (1e-100, 1e90):
        with pytest.raises(ValueError, match="fourth powers that shrinkage='auto' needs are out of range. Rescale"):
            DiscriminativePCA(1).fit(scale * target, background=scale * background)


# --- nothing there --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "dense", "root", "reduced", "lanczos", "lobpcg"])
def test_a_target_without_variance_has_ratios_of_zero(solver, rng):
    fitted = DiscriminativePCA(2, solver=solver).fit(np.ones((20, 6)), background=rng.normal(size=(30, 6)))
    np.testing.assert_allclose(fitted.eigenvalues_, 0.0, atol=1e-15)
    assert np.isfinite(fitted.components_).all()


@pytest.mark.parametrize("solver", ["root", "reduced", "lobpcg"])
def test_data_without_any_variance_are_refused_where_they_give_no_direction(solver):
    with pytest.raises(ValueError, match="no dataset varies: all rows of each are equal, .* Give rows that differ"):
        DiscriminativePCA(2, solver=solver, shrinkage=None).fit(np.ones((9, 4)), background=np.ones((8, 4)))


@pytest.mark.parametrize("solver", ["auto", "dense", "root", "reduced", "lanczos", "lobpcg"])
def test_a_background_without_variance_gives_pca_with_a_warning(solver, rng):
    target = rng.normal(size=(30, 5)) * [3, 2, 1, 1, 1]
    with pytest.warns(UserWarning, match="5 direction.* do not occur in the background"):
        fitted = DiscriminativePCA(2, solver=solver).fit(target, background=np.zeros((9, 5)))
    np.testing.assert_allclose(fitted.target_variance_, linalg.eigvalsh(covariance(target))[::-1][:2])


@pytest.mark.parametrize("n_absent", [1, 2])
def test_rows_come_back_from_all_scores_even_where_the_background_has_no_variance(n_absent, rng):
    mix = rng.normal(size=(5, 5))
    target, background = rng.normal(size=(40, 5)) @ mix, rng.normal(size=(50, 5))
    background[:, :n_absent] = 0.0
    background = background @ mix
    with pytest.warns(UserWarning, match="singular"):
        fitted = DiscriminativePCA(5, shrinkage=None).fit(target, background=background)
    assert np.isinf(fitted.eigenvalues_).sum() == n_absent
    np.testing.assert_allclose(fitted.components_ @ fitted.patterns_.T, np.eye(5), atol=1e-8)
    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(target)), target, atol=1e-8)


# --- streams, scores, labels ----------------------------------------------------------------------------------------


def test_columns_of_batches_are_compared_by_name(rng):
    target = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    mixed = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("bac"))
    message = "background 1 has the columns of the target in another order"
    with pytest.raises(ValueError, match=message):
        DiscriminativePCA(1).fit(target, background=iter([mixed]))
    with pytest.raises(ValueError, match=message):
        DiscriminativePCA(1).fit(iter([target]), background=mixed)
    with pytest.raises(ValueError, match="background 2 has the columns of background 1 in another order"):
        DiscriminativePCA(1).fit(target.to_numpy(), background=[iter([target]), iter([mixed])])


def test_a_new_fit_forgets_the_names_of_the_last(rng):
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    fitted = DiscriminativePCA(1).fit(frame).fit(iter([rng.normal(size=(30, 4))]))
    assert fitted.n_features_in_ == 4
    assert not hasattr(fitted, "feature_names_in_")


def test_score_weighs_the_backgrounds_as_the_fit_does(rng):
    target, first, second = rng.normal(size=(3, 80, 4))
    second *= 3
    fitted = DiscriminativePCA(1, background_weights=[9, 1]).fit(target, background=[first, second])
    variances = [fitted.transform(X).var() for X in (target, first, second)]
    expected = variances[0] / (0.9 * variances[1] + 0.1 * variances[2])
    assert fitted.score(target, background=[first, second]) == pytest.approx(expected)


def test_score_refuses_what_fit_refuses(rng):
    target, background = rng.normal(size=(2, 30, 3))
    fitted = DiscriminativePCA(1).fit(target, background=background)
    spoiled = background.copy()
    spoiled[4, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in background 1"):
        fitted.score(target, background=spoiled)
    with pytest.raises(TypeError, match="score cannot take an iterator"):
        fitted.score(target, background=iter([background]))
    with pytest.raises(ValueError, match="background 1 has 2 features, but the target has 3"):
        fitted.score(target.tolist(), background=background[:, :2])
    labels = np.repeat(["a", "b", "c"], 10)
    by_label = DiscriminativePCA(1, target_label="a").fit(target, labels)
    with pytest.raises(ValueError, match="label 'b' have a sample_weight of zero"):
        by_label.score(target, labels, sample_weight=labels != "b")
    with pytest.raises(ValueError, match="the label 'd' was not there when the model was fitted"):
        by_label.score(target, np.where(np.arange(30) == 29, "d", labels))


@pytest.mark.parametrize(
    ("labels", "kind", "message"),
    [
        ([1, "b"] * 10, TypeError, "y mixes types that cannot be sorted"),
        ([None, 1] * 10, ValueError, "y has missing values"),
        ([np.nan, 1.0] * 10, ValueError, "y has missing values"),
        (pd.Series([pd.NA, "b"] * 10, dtype="string"), ValueError, "y has missing values"),
    ],
)
def test_labels_that_are_no_labels(labels, kind, message, rng):
    with pytest.raises(kind, match=message):
        DiscriminativePCA(1, target_label=1).fit(rng.normal(size=(20, 3)), labels)


def test_labels_of_many_types_work(rng):
    X = rng.normal(size=(40, 3))
    truth = np.arange(40) % 3 == 0
    expected = DiscriminativePCA(1, target_label=True).fit(X, truth).components_
    for labels, target in (
        (truth.tolist(), True),
        (np.where(truth, 7, 3), 7),
        (pd.Series(np.where(truth, "x", "y")), "x"),
        (pd.Series(np.where(truth, "x", "y"), dtype="category"), "x"),
        (pd.Series(np.where(truth, 1, 2), dtype="Int64"), 1),
    ):
        fitted = DiscriminativePCA(1, target_label=target).fit(X, labels)
        np.testing.assert_array_equal(fitted.components_, expected)


def test_mixed_forms_of_target_and_background_work(rng):
    target, background = rng.normal(size=(60, 6)) * [4, 1, 1, 1, 1, 1], rng.normal(size=(70, 6))
    expected = DiscriminativePCA(2).fit(target, background=background).eigenvalues_
    for one, other in (
        (sparse.csr_array(target), background),
        (target, sparse.csr_array(background)),
        (target[::-1], np.asfortranarray(background)),
        (target.astype(np.float32), background),
    ):
        for solver in ("auto", "reduced", "lanczos"):
            found = DiscriminativePCA(2, solver=solver).fit(one, background=other).eigenvalues_
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_numbers_that_are_no_numbers_are_refused(rng):
    X = rng.normal(size=(20, 3))
    with pytest.raises(TypeError, match="dates and times .* are not numbers"):
        DiscriminativePCA(1).fit(np.arange(40).astype("datetime64[D]").reshape(20, 2))
    with pytest.raises(TypeError, match="is not a number"):
        DiscriminativePCA(1, shrinkage=np.complex128(1)).fit(X, background=X)
    huge = DiscriminativePCA(1, background_weights=[1e308, 1e308]).fit(X, background=[X, 2 * X])
    np.testing.assert_allclose(huge.weights_, 0.5)
