"""KernelDiscriminativePCA where it is hard, and where it must refuse."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import pairwise_kernels

from standout import DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA, make_pipeline
from test_kernel import aligned, paper, several


def against_the_paper(target, background, fitted, metric, rtol=1e-6, epsilon=1e-3, **params):
    rows = np.vstack([target, background])
    matrix = pairwise_kernels(rows, metric=metric, filter_params=not callable(metric), **params)
    values, _ = paper(matrix, [len(target), len(background)], [1.0], epsilon)
    np.testing.assert_allclose(fitted.eigenvalues_, values[: len(fitted.eigenvalues_)], rtol=rtol)


@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2", "cosine", "sigmoid", "laplacian", "poly", "linear", "rbf"])
def test_every_kernel_of_scikit_learn_can_be_fitted(kernel, rng):
    target, background = rng.uniform(0.1, 2, size=(40, 3)) ** 2, rng.uniform(0.1, 2, size=(30, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of them are not positive semidefinite, and say so
        fitted = KernelDiscriminativePCA(2, epsilon=1e-3, kernel=kernel).fit(target, background=background)
    params = {"coef0": 1, "degree": 3} if kernel in ("poly", "sigmoid") else {}
    against_the_paper(target, background, fitted, kernel, rtol=1e-5, **params)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "polynomial"])
def test_dense_and_sparse_rows_may_be_mixed_anywhere(kernel, rng):
    target, background = rng.normal(size=(50, 4)) + 2, rng.normal(size=(40, 4)) + 2
    thin = sparse.csr_array
    dense = KernelDiscriminativePCA(2, kernel=kernel, gamma=0.2).fit(target, background=background)
    scores = dense.transform(target)
    for one, other in ((thin(target), background), (target, thin(background)), (thin(target), thin(background))):
        mixed = KernelDiscriminativePCA(2, kernel=kernel, gamma=0.2).fit(one, background=other)
        np.testing.assert_allclose(mixed.eigenvalues_, dense.eigenvalues_, rtol=1e-7)
        np.testing.assert_allclose(aligned(mixed.transform(target), scores), scores, atol=1e-6)
        np.testing.assert_allclose(mixed.transform(thin(target)), mixed.transform(target), atol=1e-8)
    np.testing.assert_allclose(dense.transform(thin(target)), scores, atol=1e-8)
    landmarks = [
        KernelDiscriminativePCA(2, kernel=kernel, gamma=0.2, approximation=form(target[:20])).fit(
            target, background=background
        )
        for form in (np.asarray, thin)
    ]
    np.testing.assert_allclose(landmarks[0].eigenvalues_, landmarks[1].eigenvalues_, rtol=1e-7)


@pytest.mark.parametrize(("scale", "offset"), [(3e5, 0.0), (1.0, 1e5), (1e5, 1e3)])
def test_a_small_direction_beside_a_very_large_one_is_kept(scale, offset, rng):
    units = np.array([scale, 1, 1, 1])
    target, background = rng.normal(size=(200, 4)) * [1, 1, 1, 4] * units, rng.normal(size=(200, 4)) * units
    target, background = target + offset, background + offset
    kernel = KernelDiscriminativePCA(1, kernel="linear", epsilon=1e-9).fit(target, background=background)
    plain = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)
    np.testing.assert_allclose(kernel.eigenvalues_, plain.eigenvalues_, rtol=1e-6)


def test_an_outlier_does_not_hide_the_rest_from_a_polynomial_kernel(rng):
    target, background = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    target[0] = 30.0
    fitted = KernelDiscriminativePCA(2, kernel="polynomial", gamma=1.0).fit(target, background=background)
    assert fitted.feature_map_.n_coordinates == 20  # monomials of degree three or less in three variables
    exact = KernelDiscriminativePCA(2, kernel="polynomial", gamma=1.0, tol=1e-15).fit(target, background=background)
    np.testing.assert_allclose(fitted.eigenvalues_, exact.eigenvalues_, rtol=1e-4)


@pytest.mark.parametrize("approximation", ["pivoted", "landmarks"])
def test_landmarks_refuse_a_kernel_that_is_no_inner_product(approximation, rng):
    target, background = rng.uniform(size=(60, 3)) * 3, rng.uniform(size=(60, 3)) * 3
    options = {"kernel": "sigmoid", "gamma": 0.5, "coef0": -1.0}
    options["approximation"] = target[:30] if approximation == "landmarks" else approximation
    with pytest.raises(ValueError, match="not positive semidefinite on .* Use approximation='exact'"):
        KernelDiscriminativePCA(2, **options).fit(target, background=background)


def test_a_kernel_that_is_no_inner_product_is_noticed_in_rows_that_are_no_landmarks(rng):
    # On one landmark it is; elsewhere the coordinates have more of the kernel than there is.
    target, background = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    model = KernelDiscriminativePCA(1, kernel=lambda x, z: 1 + np.sum(np.abs(x - z)), approximation=target[:1])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        model.fit(target, background=background)


@pytest.mark.parametrize("seed", range(10))
def test_coordinates_that_leave_nothing_out_have_no_negative_residual(seed):
    target, background = np.random.default_rng(seed).normal(size=(2, 30, 3))
    fitted = KernelDiscriminativePCA(1, kernel="linear", approximation=target).fit(target, background=background)
    assert 0.0 <= fitted.residual_ < 1e-12


def test_as_many_components_as_the_centred_rows_have_directions(rng):
    target, background = rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    model = KernelDiscriminativePCA(4, gamma=0.1).fit(target, background=background)
    assert np.all(model.eigenvalues_ >= 0)
    with pytest.raises(ValueError, match="n_components=5 is larger than 4"):
        model.set_params(n_components=5).fit(target, background=background)


def test_a_background_that_does_not_vary_leaves_kernel_pca(rng):
    target = rng.normal(size=(40, 3))
    fitted = KernelDiscriminativePCA(2, epsilon="scaled").fit(target, background=np.ones((9, 3)))
    assert np.isfinite(fitted.eigenvalues_).all()
    theirs = KernelPCA(2, kernel="rbf").fit_transform(target)
    ours = fitted.transform(target)
    assert abs(np.corrcoef(ours[:, 0], theirs[:, 0])[0, 1]) > 0.999


def test_data_without_any_variance_have_a_ratio_of_zero():
    fitted = KernelDiscriminativePCA(1, epsilon="scaled").fit(np.ones((5, 2)), background=np.ones((6, 2)))
    assert fitted.epsilon_ > 0.0
    assert fitted.eigenvalues_ == [0.0]


def test_more_landmarks_than_distinct_rows_are_no_trouble(rng):
    # In random order: equal neighbours would be taken for rows of one subject.
    target, background = (rng.normal(size=(n, 2))[rng.permutation(np.repeat(np.arange(n), 10))] for n in (8, 6))
    exact = KernelDiscriminativePCA(2).fit(target, background=background)
    for approximation in ("pivoted", np.vstack([target, background])):
        model = KernelDiscriminativePCA(2, approximation=approximation, rank=100).fit(target, background=background)
        assert model.feature_map_.n_coordinates <= 14
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_scaled_epsilon_is_a_share_of_the_mean_diagonal_of_the_papers_matrix(kernel, rng):
    target, backgrounds = several(rng, 2)
    weights, sizes = np.array([0.9, 0.1]), [len(target), *map(len, backgrounds)]
    centre = linalg.block_diag(*(np.eye(size) - 1 / size for size in sizes))
    k = centre @ pairwise_kernels(np.vstack([target, *backgrounds]), metric=kernel) @ centre
    k_y = k * np.repeat([0.0, *weights / sizes[1:]], sizes)[:, np.newaxis]
    fitted = KernelDiscriminativePCA(2, kernel=kernel, epsilon="scaled", background_weights=weights)
    fitted.fit(target, background=backgrounds)
    assert fitted.epsilon_ == pytest.approx(1e-3 * np.mean(np.diagonal(k @ k_y)), rel=1e-9)
    # Where no background varies, the target stands in for them.
    alone = fitted.set_params(background_weights=None).fit(target, background=np.ones((5, 4)))
    centred = pairwise_kernels(target, metric=kernel)
    centred = centred - centred.mean(axis=0) - centred.mean(axis=1, keepdims=True) + centred.mean()
    trace = np.sum(centred**2) / len(target)
    assert alone.epsilon_ == pytest.approx(1e-3 * trace / (len(target) + 5), rel=1e-9)


@pytest.mark.parametrize("weights", [(0.9, 0.1), (0.1, 0.9)])
@pytest.mark.parametrize("model", [KernelDiscriminativePCA(1), KernelContrastivePCA(1, n_representatives=3)])
def test_the_backgrounds_have_the_smaller_mean_score_by_their_weights(model, weights, rng):
    # The backgrounds lie on either side of the target: which of them counts more decides on the sign. Along the first
    # two columns, which are shown at different α, it is not the same one.
    target = rng.normal(size=(60, 3)) * [3, 2, 1]
    backgrounds = [rng.normal(size=(50, 3)) * [3, 0.5, 1] + side * np.array([2, -2, 0]) for side in (1, -1)]
    fitted = clone(model).set_params(kernel="linear", background_weights=weights).fit(target, background=backgrounds)
    steps = [fitted.feature_map_.transform(X).mean(axis=0) - fitted.feature_mean_ for X in backgrounds]
    views = getattr(fitted, "candidates_", fitted.components_[np.newaxis])
    assert len(views) == len(getattr(fitted, "alphas_", [None]))
    assert np.all(np.einsum("k,kj,vdj->vd", weights, steps, views) < 0)
    assert weights @ np.array([fitted.transform(X).mean() for X in backgrounds]) < 0


def test_a_failed_refit_leaves_the_model_as_it_was(rng):
    target, backgrounds = several(rng, 1)
    model = KernelDiscriminativePCA(2).fit(target, background=backgrounds)
    scores = model.transform(target)
    model.set_params(kernel="linear", n_components=10)
    with pytest.raises(ValueError, match="n_components=10 is larger"):
        model.fit(target, background=backgrounds)
    np.testing.assert_array_equal(model.transform(target), scores)


def test_labels_of_an_earlier_fit_are_forgotten(rng):
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    model = KernelDiscriminativePCA(1, target_label=1).fit(X, y)
    assert model.background_labels_ == [0]
    assert not hasattr(model.set_params(target_label=None).fit(X), "background_labels_")


def test_learning_weights_copes_with_kernels_that_say_nothing(rng):
    target, backgrounds = several(rng, 1)
    model = KernelDiscriminativePCA(1, kernel=["rbf", lambda x, z: 0.0], kernel_weights="learn")
    np.testing.assert_allclose(model.fit(target, background=backgrounds).kernel_weights_, [1.0, 0.0])
    with pytest.raises(ValueError, match="no kernel varies on these rows"):
        KernelDiscriminativePCA(1, kernel=["rbf"], kernel_weights="learn").fit(
            np.ones((9, 2)), background=np.ones((8, 2))
        )
    with pytest.raises(ValueError, match="learning kernel_weights needs 4 of each"):
        KernelDiscriminativePCA(1, kernel=["rbf"], kernel_weights="learn").fit(target[:2], background=backgrounds)
    alone = KernelDiscriminativePCA(1, kernel=["rbf", "linear"], kernel_weights="learn").fit(target)
    assert alone.kernel_weights_.sum() == pytest.approx(1.0)


def test_batches_may_start_empty_and_must_have_the_same_width(rng):
    target, background = rng.normal(size=(60, 3)), rng.normal(size=(50, 3))
    model = KernelDiscriminativePCA(1, approximation=target[:10])
    whole = model.fit(target, background=background).eigenvalues_
    late = KernelDiscriminativePCA(1, approximation=target[:10]).fit(iter([target[:0], target]), background=background)
    np.testing.assert_allclose(late.eigenvalues_, whole, rtol=1e-9)
    with pytest.raises(ValueError, match="batch 1 of background 1 has 2 features, but the target has 3"):
        model.fit(target, background=iter([background[:, :2]]))


# --- bad input ------------------------------------------------------------------------------------------------------

GOOD = np.random.default_rng(0).normal(size=(20, 3))
OTHER = np.random.default_rng(1).normal(size=(15, 3))

TWO = {"kernel": ["rbf", "linear"]}

# Parameters, the error, and the parameter that it is about.
BAD = [
    ({"kernel": ("rbf", {"gamma": -5.0})}, ValueError, "gamma"),
    ({"kernel_params": [1]}, TypeError, "kernel_params"),
    ({"kernel_weights": "learn"}, ValueError, "kernel_weights"),
    ({**TWO, "kernel_weights": ["a", "b"]}, TypeError, "kernel_weights"),
    ({**TWO, "kernel_weights": [1.0]}, ValueError, "kernel_weights"),
    ({**TWO, "kernel_weights": [1.0, -1.0]}, ValueError, "kernel_weights"),
    ({**TWO, "kernel_weights": "best"}, ValueError, "kernel_weights"),
    ({"epsilon": 0.0}, ValueError, "epsilon"),
    ({"epsilon": -1}, ValueError, "epsilon"),
    ({"epsilon": np.nan}, ValueError, "epsilon"),
    ({"epsilon": "small"}, ValueError, "epsilon"),
    ({"epsilon": None}, TypeError, "epsilon"),
    ({"kernel": "rbg"}, ValueError, "kernel"),
    ({"kernel": 3}, ValueError, "kernel"),
    ({"kernel": ["rbf", "precomputed"]}, ValueError, "kernel"),
    ({"kernel": [("rbf", 0.1)]}, TypeError, "kernel"),
    ({"kernel": "gaussian", "kernel_params": {"bandwidth": 0}}, ValueError, "bandwidth"),
    ({"kernel": "gaussian", "kernel_params": {"bandwidth": 1e-200}}, ValueError, "bandwidth"),
    ({"gamma": -1.0}, ValueError, "gamma"),
    ({"degree": 0}, ValueError, "degree"),
    ({"coef0": np.inf}, ValueError, "coef0"),
    ({"rank": 36}, ValueError, "rank"),
    ({"rank": 0}, ValueError, "rank"),
    ({"rank": 2.5}, TypeError, "rank"),
    ({"tol": 1.0}, ValueError, "tol"),
    ({"approximation": "fast"}, ValueError, "approximation"),
    ({"approximation": None}, ValueError, "approximation"),
    ({"approximation": "fourier", "kernel": "poly"}, ValueError, "approximation"),
    ({"n_components": 4, "kernel": "linear"}, ValueError, "n_components"),
]


@pytest.mark.parametrize(("parameters", "kind", "parameter"), BAD)
def test_parameters_that_cannot_be_used(parameters, kind, parameter):
    with pytest.raises(kind) as caught:
        KernelDiscriminativePCA(**parameters).fit(GOOD, background=OTHER)
    assert caught.value.parameter == parameter
    assert caught.value.advice


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": []}, "kernel is an empty list"),
        ({"kernel_params": {"gama": 1.0}}, "'rbf' .* parameter 'gama': it has parameter 'gamma'"),
        ({"kernel": [("rbf", {"gama": 1.0})]}, "parameter 'gama'"),
        ({"approximation": np.ones((2, 2))}, "the array of landmarks has 2 features, but the target has 3"),
        ({"kernel": "precomputed"}, "the precomputed kernel has 3 columns, but there are 35 rows in all datasets"),
        ({"kernel": "precomputed", "approximation": np.ones((2, 3))}, "used as it is. Use approximation='auto'"),
    ],
)
def test_kernels_and_landmarks_that_do_not_fit_the_data(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelDiscriminativePCA(**parameters).fit(GOOD, background=OTHER)


def test_kernels_that_cannot_be_used():
    values = pairwise_kernels(np.vstack([GOOD, OTHER]))
    wrong = values.copy()
    wrong[2, 30] += 1.0
    with pytest.raises(ValueError, match=r"not symmetric: entries \(2, 30\) and \(30, 2\) differ by 1. Give"):
        KernelDiscriminativePCA(kernel="precomputed").fit(wrong[:20], background=wrong[20:])
    with pytest.raises(ValueError, match="a precomputed kernel is used as it is. Use approximation='auto'"):
        KernelDiscriminativePCA(kernel="precomputed", approximation="pivoted").fit(values[:20], background=values[20:])
    with pytest.raises(ValueError, match="the kernel has values that are not finite numbers"):
        KernelDiscriminativePCA(kernel=lambda x, z: np.inf).fit(GOOD, background=OTHER)


def test_landmarks_are_compared_by_name(rng):
    frame = pd.DataFrame(GOOD, columns=list("abc"))
    with pytest.raises(ValueError, match="the array of landmarks has the columns of the target in another order"):
        KernelDiscriminativePCA(approximation=frame[["c", "b", "a"]]).fit(frame, background=OTHER)


def test_data_that_cannot_be_used():
    spoiled = GOOD.copy()
    spoiled[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in the target: .* row 3, column 1"):
        KernelDiscriminativePCA().fit(spoiled, background=OTHER)
    with pytest.raises(ValueError, match="NaN or infinity in background 1"):
        KernelDiscriminativePCA().fit(OTHER, background=spoiled)
    with pytest.raises(TypeError, match="approximation='auto' chooses its coordinates from the rows, .* Use"):
        KernelDiscriminativePCA().fit(iter([GOOD]), background=OTHER)
    with pytest.raises(ValueError, match=r"the target gave 0 sample\(s\) in batches"):
        KernelDiscriminativePCA(approximation="fourier").fit(iter([]), background=OTHER)


def test_pipelines_and_scores_work_as_for_the_linear_method(rng):
    from sklearn.preprocessing import StandardScaler

    target, backgrounds = several(rng, 1)
    model = make_pipeline(StandardScaler(), KernelDiscriminativePCA(1, gamma=0.1)).fit(target, background=backgrounds)
    assert model.transform(target).shape == (len(target), 1)
    fitted = KernelDiscriminativePCA(1, gamma=0.1).fit(target, background=backgrounds)
    ratio = fitted.transform(target).var() / fitted.transform(backgrounds[0]).var()
    assert fitted.score(target, background=backgrounds) == pytest.approx(ratio)
    frame = KernelDiscriminativePCA().set_output(transform="pandas").fit_transform(target)
    assert list(frame.columns) == ["kerneldiscriminativepca0", "kerneldiscriminativepca1"]


def test_a_kernel_that_is_not_made_for_the_data_says_so(rng):
    target, background = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"the kernel 'chi2' cannot be .*: .*negative.*\. Use"):
        KernelDiscriminativePCA(1, kernel="chi2").fit(target, background=background)
