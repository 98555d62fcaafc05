"""KernelDiscriminativePCA against a direct transcription of the paper's equations, and everything around it."""

import pickle

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from standout import DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA, datasets
from standout.features import KernelRowMap, KernelValueMap, LandmarkMap, choose_approximation, resolve_kernel
from standout.metrics import clustering_error


def paper(matrix, sizes, weights, epsilon):
    """Solve eqs. (k), (kxky), (kdpcasol) and, with the weights it drops, (kmdpcasol), as printed: dense and slow.

    Returns the values in descending order, and the scores K a of all rows, scaled so that aᵀ(K Ky + εI)a = 1.
    """
    n = len(matrix)
    centre = linalg.block_diag(*(np.eye(size) - np.ones((size, size)) / size for size in sizes))
    k = centre @ matrix @ centre
    blocks = np.split(np.arange(n), np.cumsum(sizes)[:-1])
    k_x, k_y = np.zeros((n, n)), np.zeros((n, n))
    k_x[blocks[0]] = k[blocks[0]] / sizes[0]
    for weight, block in zip(weights, blocks[1:], strict=True):
        k_y[block] = weight * k[block] / len(block)
    a, b = k @ k_x, k @ k_y + epsilon * np.eye(n)
    values, vectors = linalg.eigh((a + a.T) / 2, (b + b.T) / 2)
    return values[::-1], k @ vectors[:, ::-1]


def aligned(scores, reference):
    return scores * np.sign(np.sum(scores * reference, axis=0))


def several(rng, n_backgrounds, n=50, d=4):
    target = rng.normal(size=(n + 10, d)) * np.r_[3, np.ones(d - 1)] + 1
    return target, [rng.normal(size=(n - 5 * k, d)) * np.r_[np.ones(d - 1), 1 + k] for k in range(n_backgrounds)]


KERNELS = {
    "rbf": {"gamma": 0.2},
    "polynomial": {"gamma": 1.0, "degree": 2, "coef0": 1.0},
    "linear": {},
    "laplacian": {"gamma": 0.3},
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_backgrounds", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0])
def test_eigenvalues_and_scores_are_those_of_the_papers_equations(kernel, n_backgrounds, epsilon, rng):
    target, backgrounds = several(rng, n_backgrounds)
    weights = np.arange(1.0, n_backgrounds + 1)
    rows = np.vstack([target, *backgrounds])
    matrix = pairwise_kernels(rows, metric=kernel, filter_params=True, **KERNELS[kernel])
    sizes = [len(target), *map(len, backgrounds)]
    values, scores = paper(matrix, sizes, weights / weights.sum(), epsilon)
    fitted = KernelDiscriminativePCA(
        3, kernel=kernel, epsilon=epsilon, background_weights=weights, **KERNELS[kernel]
    ).fit(target, background=backgrounds)
    np.testing.assert_allclose(fitted.eigenvalues_, values[:3], rtol=1e-8)
    reference = scores[: len(target), :3]
    np.testing.assert_allclose(
        aligned(fitted.transform(target), reference), reference, atol=1e-8 * np.abs(reference).max()
    )
    np.testing.assert_allclose(fitted.target_variance_, fitted.eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_background_rows_are_the_papers_up_to_a_shift(kernel, rng):
    target, backgrounds = several(rng, 2)
    rows = np.vstack([target, *backgrounds])
    matrix = pairwise_kernels(rows, metric=kernel, filter_params=True, **KERNELS[kernel])
    _, scores = paper(matrix, [len(target), *map(len, backgrounds)], [0.5, 0.5], 1e-3)
    fitted = KernelDiscriminativePCA(2, epsilon=1e-3, kernel=kernel, **KERNELS[kernel]).fit(
        target, background=backgrounds
    )
    ours = fitted.transform(backgrounds[0])
    reference = scores[len(target) : len(target) + len(backgrounds[0]), :2]
    # The paper centres each dataset by its own mean, `transform` all rows by the target's.
    np.testing.assert_allclose(aligned(ours - ours.mean(axis=0), reference), reference, atol=1e-8)
    np.testing.assert_allclose(fitted.background_variance_[0], ours.var(axis=0), rtol=1e-8)


def test_new_rows_are_projected_as_if_they_had_been_there(rng):
    # A new row that repeats a fitted one must get its score.
    target, backgrounds = several(rng, 1)
    for kernel in KERNELS:
        fitted = KernelDiscriminativePCA(2, epsilon=1e-3, kernel=kernel, **KERNELS[kernel]).fit(
            target, background=backgrounds
        )
        np.testing.assert_allclose(fitted.transform(target[7:9]), fitted.transform(target)[7:9], atol=1e-9)
        np.testing.assert_allclose(fitted.transform(target).mean(axis=0), 0.0, atol=1e-8)


def test_remark_6_without_background_it_is_kernel_pca(rng):
    X = rng.normal(size=(60, 3))
    ours = KernelDiscriminativePCA(3, kernel="rbf", gamma=0.3, epsilon=1.0).fit_transform(X)
    theirs = KernelPCA(3, kernel="rbf", gamma=0.3).fit_transform(X)
    ours, theirs = (scores / scores.std(axis=0) for scores in (ours, theirs))
    np.testing.assert_allclose(aligned(ours, theirs), theirs, atol=1e-8)


def test_a_linear_kernel_is_linear_discriminative_pca_with_the_matching_ridge(rng):
    target, backgrounds = several(rng, 1)
    tiny = KernelDiscriminativePCA(2, kernel="linear", epsilon=1e-12).fit(target, background=backgrounds)
    plain = DiscriminativePCA(2, shrinkage=None).fit(target, background=backgrounds)
    # As ε goes to zero the ridge ε T⁻¹ goes, too.
    np.testing.assert_allclose(tiny.eigenvalues_, plain.eigenvalues_, rtol=1e-8)
    reference = plain.transform(target)
    np.testing.assert_allclose(aligned(tiny.transform(target), reference), reference, atol=1e-7)
    # And with a large one: the ridge in feature coordinates is ε T⁻¹, with T the total scatter.
    centred = [X - X.mean(axis=0) for X in (target, *backgrounds)]
    total = sum(X.T @ X for X in centred)
    a, b = (X.T @ X / len(X) for X in centred)
    exact = linalg.eigh(a, b + 30.0 * linalg.inv(total), eigvals_only=True)[::-1]
    large = KernelDiscriminativePCA(2, kernel="linear", epsilon=30.0).fit(target, background=backgrounds)
    np.testing.assert_allclose(large.eigenvalues_, exact[:2], rtol=1e-9)


# --- the paper's synthetic tests ------------------------------------------------------------------------------------


def error(model, data, background):
    return clustering_error(model.fit(data.target, background=background).transform(data.target), data.labels)


SQUARE = {"kernel": "homogeneous_polynomial", "degree": 2}


@pytest.mark.parametrize("seed", range(10))
def test_only_the_kernel_method_finds_the_circles(seed):
    data = datasets.make_circles_one_background(random_state=seed)
    assert error(KernelDiscriminativePCA(2, epsilon=1e-3, **SQUARE), data, data.backgrounds) == 0.0
    assert error(DiscriminativePCA(2), data, None) > 0.25
    assert error(DiscriminativePCA(2), data, data.backgrounds) > 0.25
    assert error(KernelDiscriminativePCA(2, **SQUARE), data, None) > 0.25


@pytest.mark.parametrize("seed", range(10))
def test_only_the_kernel_method_with_both_backgrounds_finds_the_circles(seed):
    data = datasets.make_circles_two_backgrounds(random_state=seed)
    assert error(KernelDiscriminativePCA(2, epsilon=1e-4, **SQUARE), data, data.backgrounds) == 0.0
    for background in data.backgrounds:
        assert error(KernelDiscriminativePCA(2, epsilon=1e-4, **SQUARE), data, background) > 0.25
    assert error(DiscriminativePCA(2), data, data.backgrounds) > 0.25
    assert error(KernelDiscriminativePCA(2, **SQUARE), data, None) > 0.25


# Neighbouring pictures of a face are of neighbouring directions of the light.
@pytest.mark.filterwarnings("ignore:neighbouring rows are alike")
@pytest.mark.parametrize("epsilon", [1e-4, 1e-5])
def test_faces_are_told_apart_as_in_the_paper(epsilon, data_dir):
    faces = np.load(data_dir / "yaleb.npz")
    images, person = faces["images"].reshape(640, -1), faces["person"]
    rows = [images[person == number][:60] / 255.0 for number in (1, 2, 3)]
    target, labels = np.vstack(rows[:2]), np.repeat([1, 2], 60)
    fitted = KernelDiscriminativePCA(2, kernel="gaussian", kernel_params={"bandwidth": 150.0}, epsilon=epsilon)
    ours = clustering_error(fitted.fit(target, background=rows[2]).transform(target), labels)
    alone = clustering_error(clone_without_background(fitted, target), labels)
    assert ours <= 0.1417
    assert alone > 0.4


def clone_without_background(model, target):
    return KernelDiscriminativePCA(**model.get_params()).fit_transform(target)


# --- coordinates ----------------------------------------------------------------------------------------------------


def test_the_rank_is_found_on_the_way():
    data = datasets.make_circles_one_background()
    fitted = KernelDiscriminativePCA(2, epsilon=1e-3, **SQUARE).fit(data.target, background=data.backgrounds)
    # Squares and products of four numbers: ten monomials, not 450 rows.
    assert isinstance(fitted.feature_map_, LandmarkMap)
    assert fitted.feature_map_.n_coordinates == 10
    assert fitted.residual_ < 1e-12


def test_both_exact_ways_give_the_same_answer(rng):
    target, backgrounds = several(rng, 1)
    by_rows = KernelDiscriminativePCA(2, epsilon=1e-3, gamma=0.5).fit(target, background=backgrounds)
    # A given rank keeps the factor even where it is nearly full.
    by_factor = KernelDiscriminativePCA(2, epsilon=1e-3, gamma=0.5, rank=110, tol=1e-14).fit(
        target, background=backgrounds
    )
    assert isinstance(by_rows.feature_map_, KernelRowMap)
    assert isinstance(by_factor.feature_map_, LandmarkMap)
    np.testing.assert_allclose(by_rows.eigenvalues_, by_factor.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(
        aligned(by_factor.transform(target), by_rows.transform(target)), by_rows.transform(target), atol=1e-7
    )


def test_pivoted_landmarks_approach_the_exact_answer_as_they_grow(rng):
    target, background = rng.normal(size=(400, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(400, 5))
    exact = KernelDiscriminativePCA(2, epsilon=1e-3, gamma=0.02).fit(target, background=background)
    errors, residuals = [], []
    for rank in (10, 40, 160):
        model = KernelDiscriminativePCA(2, epsilon=1e-3, gamma=0.02, approximation="pivoted", rank=rank, random_state=0)
        model.fit(target, background=background)
        errors.append(abs(model.eigenvalues_[0] / exact.eigenvalues_[0] - 1))
        residuals.append(model.residual_)
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert residuals[0] > residuals[1] > residuals[2]
    assert errors[2] < 1e-3
    # The certificate is the true share of the trace that is missed.
    features = model.feature_map_.transform(np.vstack([target, background]))
    assert model.residual_ == pytest.approx(1 - np.mean(np.sum(features**2, axis=1)), abs=1e-10)


def test_full_rank_approximations_are_exact(rng):
    target, backgrounds = several(rng, 1, n=40)
    rows = np.vstack([target, *backgrounds])
    exact = KernelDiscriminativePCA(2, epsilon=1e-3, gamma=0.5).fit(target, background=backgrounds)
    for options in ({"approximation": "pivoted", "rank": len(rows)}, {"approximation": rows}):
        model = KernelDiscriminativePCA(2, epsilon=1e-3, gamma=0.5, tol=1e-14, **options).fit(
            target, background=backgrounds
        )
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
        np.testing.assert_allclose(
            aligned(model.transform(target), exact.transform(target)), exact.transform(target), atol=1e-5
        )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_fourier_features_approach_the_kernel(kernel, rng):
    target, background = rng.normal(size=(300, 3)) * [3, 1, 1], rng.normal(size=(300, 3))
    options = {"kernel": kernel, "gamma": 0.1, "epsilon": 1.0, "held_out": None}
    exact = KernelDiscriminativePCA(1, **options).fit(target, background=background)
    model = KernelDiscriminativePCA(1, approximation="fourier", rank=1500, **options)
    scores = model.fit(target, background=background).transform(target)[:, 0]
    # The error of 1,500 random features is about 1/sqrt(1500) of a kernel value.
    assert abs(np.corrcoef(scores, exact.transform(target)[:, 0])[0, 1]) > 0.95
    assert model.eigenvalues_[0] == pytest.approx(exact.eigenvalues_[0], rel=0.15)
    assert np.isnan(model.residual_)


def test_batches_with_fixed_coordinates_equal_one_pass(rng):
    target, background = rng.normal(size=(300, 3)) * [3, 1, 1], rng.normal(size=(200, 3))
    for options in ({"approximation": "fourier", "rank": 50}, {"approximation": target[:30]}):
        model = KernelDiscriminativePCA(2, **options)
        whole = model.fit(target, background=background).transform(target)
        parts = KernelDiscriminativePCA(2, **options).fit(
            iter(np.array_split(target, 7)), background=iter(np.array_split(background, 4))
        )
        np.testing.assert_allclose(parts.transform(target), whole, atol=1e-6 * np.abs(whole).max())
        assert parts.n_features_in_ == 3


def test_the_rule_between_exact_and_pivoted():
    assert choose_approximation(10_000) == "exact"
    assert choose_approximation(10_001) == "pivoted"


def test_many_rows_are_pivoted_by_themselves(rng, monkeypatch):
    monkeypatch.setattr("standout.features._coordinates.EXACT_ROWS", 100)
    fitted = KernelDiscriminativePCA(1).fit(rng.normal(size=(80, 2)), background=rng.normal(size=(80, 2)))
    assert fitted.approximation_ == "pivoted"
    assert fitted.residual_ < 1e-6


# --- kernels --------------------------------------------------------------------------------------------------------


def test_the_papers_kernels_are_the_stated_formulas(rng):
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    distances = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    gaussian = resolve_kernel("gaussian", kernel_params={"bandwidth": 1.7})
    np.testing.assert_allclose(gaussian(X, Z), np.exp(-distances / (2 * 1.7**2)))
    np.testing.assert_allclose(resolve_kernel("homogeneous_polynomial", degree=2)(X, Z), (X @ Z.T) ** 2)
    np.testing.assert_allclose(resolve_kernel("inhomogeneous_polynomial", degree=2, coef0=3)(X, Z), (X @ Z.T + 3) ** 2)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "polynomial", "cosine", "gaussian"])
def test_the_diagonal_is_the_kernel_of_each_row_with_itself(kernel, rng):
    X = rng.normal(size=(130, 3))
    resolved = resolve_kernel(kernel, kernel_params={"bandwidth": 2.0} if kernel == "gaussian" else None)
    np.testing.assert_allclose(resolved.diagonal(X), np.diagonal(resolved(X, X)), rtol=1e-12)


def test_a_kernel_of_differences_does_not_mind_where_the_origin_is(rng):
    target, backgrounds = several(rng, 1)
    near = KernelDiscriminativePCA(2).fit(target, background=backgrounds)
    far = KernelDiscriminativePCA(2).fit(target + 1e7, background=[X + 1e7 for X in backgrounds])
    # 1e7 leaves float64 numbers of size 1 with nine digits.
    np.testing.assert_allclose(far.eigenvalues_, near.eigenvalues_, rtol=1e-5)


def test_a_callable_kernel_is_called(rng):
    target, backgrounds = several(rng, 1, n=20)

    def kernel(x, z, power):
        return (x @ z + 1.0) ** power

    ours = KernelDiscriminativePCA(2, kernel=kernel, kernel_params={"power": 2}).fit(target, background=backgrounds)
    named = KernelDiscriminativePCA(2, kernel="inhomogeneous_polynomial", degree=2).fit(target, background=backgrounds)
    np.testing.assert_allclose(ours.eigenvalues_, named.eigenvalues_, rtol=1e-9)


def test_a_precomputed_kernel_gives_the_same_fit(rng):
    target, backgrounds = several(rng, 2, n=25)
    rows, new = np.vstack([target, *backgrounds]), rng.normal(size=(6, 4))
    for metric, options in (("rbf", {"gamma": 0.25}), ("linear", {})):
        named = KernelDiscriminativePCA(2, kernel=metric, **options).fit(target, background=backgrounds)
        values = pairwise_kernels(rows, metric=metric, filter_params=True, **options)
        parts = np.split(values, np.cumsum([len(target), len(backgrounds[0])]))
        given = KernelDiscriminativePCA(2, kernel="precomputed").fit(parts[0], background=parts[1:])
        np.testing.assert_allclose(given.eigenvalues_, named.eigenvalues_, rtol=1e-9)
        between = pairwise_kernels(new, rows, metric=metric, filter_params=True, **options)
        np.testing.assert_allclose(given.transform(between), named.transform(new), atol=1e-9)
        # In the label form rows and columns stand in the order of the labels.
        order = rng.permutation(len(rows))
        labels = np.repeat(["t", "b1", "b2"], [len(target), len(backgrounds[0]), len(backgrounds[1])])[order]
        mixed = KernelDiscriminativePCA(2, kernel="precomputed", target_label="t").fit(values[order][:, order], labels)
        np.testing.assert_allclose(mixed.eigenvalues_, named.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(mixed.transform(between[:, order]), named.transform(new), atol=1e-9)


def test_sparse_rows_equal_dense_rows(rng):
    target, background = (sparse.random(60, 20, 0.2, random_state=seed, format="csr") for seed in (0, 1))
    for kernel in ("rbf", "polynomial"):
        dense = KernelDiscriminativePCA(2, kernel=kernel).fit(target.toarray(), background=background.toarray())
        thin = KernelDiscriminativePCA(2, kernel=kernel).fit(target, background=background)
        np.testing.assert_allclose(thin.eigenvalues_, dense.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(thin.transform(target), dense.transform(target.toarray()), atol=1e-8)


def test_scaled_epsilon_does_not_mind_the_size_of_the_kernel(rng):
    target, backgrounds = several(rng, 1)
    models = [
        KernelDiscriminativePCA(2, kernel="homogeneous_polynomial", degree=2, epsilon="scaled").fit(
            scale * target, background=[scale * X for X in backgrounds]
        )
        for scale in (1.0, 100.0)
    ]
    np.testing.assert_allclose(models[0].eigenvalues_, models[1].eigenvalues_, rtol=1e-9)
    assert models[1].epsilon_ == pytest.approx(1e16 * models[0].epsilon_, rel=1e-9)


def test_an_indefinite_kernel_is_solved_through_its_rows_with_a_warning(rng):
    target, backgrounds = several(rng, 1)
    rows = np.vstack([target, *backgrounds])
    matrix = pairwise_kernels(rows, metric="sigmoid", gamma=0.5, coef0=-1.0)
    assert linalg.eigvalsh(matrix)[0] < -1.0
    values, scores = paper(matrix, [len(target), len(backgrounds[0])], [1.0], 1e-3)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        fitted = KernelDiscriminativePCA(2, epsilon=1e-3, kernel="sigmoid", gamma=0.5, coef0=-1.0).fit(
            target, background=backgrounds
        )
    np.testing.assert_allclose(fitted.eigenvalues_, values[:2], rtol=1e-8)
    reference = scores[: len(target), :2]
    np.testing.assert_allclose(aligned(fitted.transform(target), reference), reference, atol=1e-7)


# --- several kernels ------------------------------------------------------------------------------------------------


def test_several_kernels_are_their_weighted_sum(rng):
    target, backgrounds = several(rng, 1)
    rows = np.vstack([target, *backgrounds])
    matrix = 0.3 * pairwise_kernels(rows, metric="rbf", gamma=0.2) + 2.0 * pairwise_kernels(rows, metric="linear")
    values, _ = paper(matrix, [len(target), len(backgrounds[0])], [1.0], 1e-3)
    fitted = KernelDiscriminativePCA(
        2, epsilon=1e-3, kernel=[("rbf", {"gamma": 0.2}), "linear"], kernel_weights=[0.3, 2.0]
    )
    np.testing.assert_allclose(fitted.fit(target, background=backgrounds).eigenvalues_, values[:2], rtol=1e-8)
    equal = KernelDiscriminativePCA(2, epsilon=1e-3, kernel=["rbf", "linear"]).fit(target, background=backgrounds)
    np.testing.assert_allclose(equal.kernel_weights_, [0.5, 0.5])


def test_the_gradient_of_the_leading_value_is_analytic(rng):
    from standout.selection import _kernel_weights as learning

    target, backgrounds = several(rng, 2, n=30)
    kernels = [resolve_kernel("rbf", gamma=0.2), resolve_kernel("linear"), resolve_kernel("laplacian")]
    (fold, *_), _ = learning._folds(kernels, [target, *backgrounds], np.array([0.5, 0.5]), rng)
    mixture, step = np.array([0.5, 0.3, 0.2]), 1e-6
    epsilon = learning._leading(fold, mixture)[3]

    def value(point):
        kernel = np.einsum("k,kij->ij", point, fold.fitted)
        a = kernel @ np.diag(fold.share) @ kernel
        b = kernel @ np.diag(fold.against) @ kernel + epsilon * np.eye(len(kernel))
        return linalg.eigh(a, b, eigvals_only=True)[-1]

    numeric = [(value(mixture + step * e) - value(mixture - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(learning._gradient(fold, mixture), numeric, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_learned_weights_prefer_the_right_kernel_over_an_overfitting_one(seed):
    data = datasets.make_circles_one_background(random_state=seed)
    dictionary = ["linear", ("homogeneous_polynomial", {"degree": 2}), ("rbf", {"gamma": 10.0})]
    model = KernelDiscriminativePCA(2, kernel=dictionary, kernel_weights="learn", epsilon="scaled", random_state=0)
    assert (
        clustering_error(model.fit(data.target, background=data.backgrounds).transform(data.target), data.labels) < 0.05
    )
    overfitting = KernelDiscriminativePCA(2, kernel="rbf", gamma=10.0).fit(data.target, background=data.backgrounds)
    right = KernelDiscriminativePCA(2, epsilon="scaled", **SQUARE).fit(data.target, background=data.backgrounds)
    # On the rows it was fitted to, the overfitting kernel looks better: rows held out must decide.
    assert overfitting.eigenvalues_[0] > 5
    assert right.eigenvalues_[0] > 1
    rows = np.vstack([data.target, *data.backgrounds])
    trace = [np.trace(pairwise_kernels(rows, metric="linear")), np.sum(np.sum(rows**2, axis=1) ** 2), len(rows)]
    shares = model.kernel_weights_ * trace
    assert np.argmax(shares) == 1


def test_a_contrastive_fit_keeps_nothing_of_the_size_of_the_kernel_matrix(rng):
    target, background = rng.normal(size=(2, 150, 4))
    target[:, 0] *= 3
    for alpha in (1.0, "auto"):
        model = KernelContrastivePCA(2, alpha=alpha, gamma=0.3).fit(target, background=background)
        assert isinstance(model.feature_map_, KernelValueMap)
        # The kernel matrix has 720,000 bytes; held-out components and means of ten folds have 100,000.
        assert len(pickle.dumps(model)) < 250_000
        # The same by coordinates: the eigenvectors of the difference of covariances of a factor of the kernel matrix.
        rows = np.vstack([target, background])
        values, vectors = np.linalg.eigh(rbf_kernel(rows, rows, gamma=0.3))
        factor = vectors[:, values > 1e-10] * np.sqrt(values[values > 1e-10])
        contrast = np.cov(factor[:150].T, bias=True) - model.alpha_ * np.cov(factor[150:].T, bias=True)
        values, vectors = np.linalg.eigh(contrast)
        np.testing.assert_allclose(model.eigenvalues_, values[:-3:-1], rtol=1e-6)
        expected = (factor - factor[:150].mean(axis=0)) @ vectors[:, :-3:-1]
        found = model.transform(rows)
        np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)
        # What was found without each fold is in the same coordinates.
        some = model.held_out_.scores(target, np.arange(150), 0, model.feature_map_.project)
        np.testing.assert_allclose(some.var(axis=0), model.held_out_.target_variance, rtol=0.2)
