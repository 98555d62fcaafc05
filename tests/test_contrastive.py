"""Contrastive PCA: its limits, its equations, the choice of α, and the forms of input."""

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.decomposition import PCA, KernelPCA
from sklearn.preprocessing import StandardScaler

from experiments.data import load, mice_contrast
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, make_pipeline
from standout.datasets import make_circles_one_background
from standout.metrics import captured_variance, clustering_error, principal_angles
from standout.selection import alpha_path


def covariance(X):
    centred = X - X.mean(axis=0)
    return centred.T @ centred / len(X)


def same_up_to_sign(first, second, **tolerance):
    signs = np.sign(np.sum(first * second, axis=0))
    np.testing.assert_allclose(first * signs, second, **tolerance)


@pytest.fixture
def pair(rng):
    mixing = rng.normal(size=(6, 6))
    target = rng.normal(size=(300, 6)) * [5, 1, 1, 3, 1, 1] @ mixing + 4
    background = rng.normal(size=(250, 6)) * [5, 1, 1, 1, 1, 1] @ mixing - 2
    return target, background


# The equations and their limits


@pytest.mark.parametrize("alpha", [0.0, 0.7, 5.0, 300.0])
def test_components_are_the_leading_eigenvectors_of_the_difference(pair, rng, alpha):
    target, background = pair
    other = rng.normal(size=(80, 6))
    fitted = ContrastivePCA(3, alpha=alpha, background_weights=[1, 3]).fit(target, background=[background, other])
    matrix = covariance(target) - alpha * (0.25 * covariance(background) + 0.75 * covariance(other))
    values, vectors = linalg.eigh(matrix)
    np.testing.assert_allclose(fitted.eigenvalues_, values[::-1][:3], rtol=1e-10, atol=1e-10)
    same_up_to_sign(fitted.components_.T, vectors[:, ::-1][:, :3], atol=1e-9)
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(
        fitted.target_variance_ - alpha * fitted.weights_ @ fitted.background_variance_, fitted.eigenvalues_, atol=1e-9
    )


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 1e-9}])
def test_without_subtraction_it_is_pca(pair, options):
    target, background = pair
    pca = PCA(3).fit(target)
    fitted = ContrastivePCA(3, **options).fit(target, background=background)
    same_up_to_sign(fitted.components_.T, pca.components_.T, atol=1e-7)
    n = len(target)
    np.testing.assert_allclose(fitted.eigenvalues_, pca.explained_variance_ * (n - 1) / n, rtol=1e-7)


@pytest.mark.parametrize("alpha", [2.0, "auto", [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_without_background_it_is_pca(pair, alpha):
    target, _ = pair
    fitted = ContrastivePCA(2, alpha=alpha).fit(target)
    same_up_to_sign(fitted.transform(target), PCA(2).fit_transform(target), atol=1e-9)
    assert fitted.candidates_.shape == (1, 2, 6)


def test_theorem_2_alpha_at_the_leading_ratio_has_the_direction_of_dpca(pair):
    target, background = pair
    dpca = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)
    leading = float(dpca.eigenvalues_[0])
    cpca = ContrastivePCA(1, alpha=leading).fit(target, background=background)
    assert principal_angles(dpca.components_, cpca.components_)[0] < 1e-6
    np.testing.assert_allclose(cpca.eigenvalues_, 0.0, atol=1e-8 * cpca.target_variance_[0])
    # A larger α leaves nothing.
    assert ContrastivePCA(1, alpha=1.1 * leading).fit(target, background=background).eigenvalues_[0] < 0


def test_the_linear_kernel_gives_the_linear_method(pair):
    target, background = pair
    for alpha in (0.5, 20.0):
        linear = ContrastivePCA(2, alpha=alpha).fit(target, background=background)
        kernel = KernelContrastivePCA(2, kernel="linear", alpha=alpha).fit(target, background=background)
        np.testing.assert_allclose(kernel.eigenvalues_, linear.eigenvalues_, rtol=1e-9, atol=1e-9)
        for rows in (target, background):
            same_up_to_sign(kernel.transform(rows), linear.transform(rows), atol=1e-8)
    auto = [
        method(2, **options).fit(target, background=background)
        for method, options in ((ContrastivePCA, {}), (KernelContrastivePCA, {"kernel": "linear"}))
    ]
    np.testing.assert_allclose(auto[0].alphas_, auto[1].alphas_)
    assert auto[0].alpha_ == auto[1].alpha_
    # With fewer rows than columns the coordinates are those of a factor of the kernel matrix.
    few, others = target[:3], background[:2]
    linear = ContrastivePCA(1, alpha=2.0).fit(few, background=others)
    kernel = KernelContrastivePCA(1, kernel="linear", alpha=2.0).fit(few, background=others)
    same_up_to_sign(kernel.transform(target), linear.transform(target), atol=1e-7)


def test_kernel_contrastive_pca_solves_the_dual_equation(pair):
    target, background = (data[:60] for data in pair)
    alpha, gamma = 1.5, 0.05
    fitted = KernelContrastivePCA(3, kernel="rbf", gamma=gamma, alpha=alpha, tol=1e-14)
    fitted.fit(target, background=background)
    rows = np.vstack([target, background])
    kernel = np.exp(-gamma * ((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    # In feature space u = Σ aᵢ φ(xᵢ); with K centred per dataset on the side of the variances, the problem is
    # K S K a = λ K a, S = centring / m for the target and -α centring / n for the background.
    m, n = len(target), len(background)
    S = linalg.block_diag(np.eye(m) / m - 1 / m**2, -alpha * (np.eye(n) / n - 1 / n**2))
    root = linalg.sqrtm(kernel).real
    values = linalg.eigvalsh(root @ S @ root)[::-1]
    np.testing.assert_allclose(fitted.eigenvalues_, values[:3], atol=1e-6)
    inner = fitted.feature_map_.transform(fitted.feature_map_.landmarks)
    np.testing.assert_allclose(fitted.components_ @ inner @ fitted.components_.T, np.eye(3), atol=1e-8)


def test_without_background_the_kernel_form_is_kernel_pca(pair):
    target, _ = pair
    fitted = KernelContrastivePCA(2, kernel="rbf", gamma=0.01).fit(target)
    expected = KernelPCA(2, kernel="rbf", gamma=0.01).fit_transform(target)
    same_up_to_sign(fitted.transform(target), expected, atol=1e-5)


def test_landmarks_approximate_the_exact_kernel_form(pair):
    target, background = pair
    exact = KernelContrastivePCA(2, gamma=0.001, alpha=1.0).fit(target, background=background)
    near = KernelContrastivePCA(2, gamma=0.001, alpha=1.0, approximation="pivoted", rank=120)
    near.fit(target, background=background)
    np.testing.assert_allclose(near.eigenvalues_, exact.eigenvalues_, rtol=1e-3)
    batches = KernelContrastivePCA(2, gamma=0.001, alpha=1.0, approximation=target[:50])
    whole = batches.fit(target, background=background).eigenvalues_
    streamed = batches.fit(iter(np.array_split(target, 4)), background=background).eigenvalues_
    np.testing.assert_allclose(streamed, whole, rtol=1e-9)


def test_a_kernel_that_is_no_inner_product_is_refused(pair):
    target, background = pair
    with pytest.raises(ValueError, match="not positive semidefinite on these rows: .* Use another kernel"):
        KernelContrastivePCA(kernel="sigmoid", gamma=1.0).fit(target, background=background)


# The choice of α


def test_the_path_of_the_estimator_is_that_of_single_fits(pair):
    target, background = pair
    path = alpha_path(target, background, n_components=2)
    assert len(path.parameters) == 41
    assert path.parameters[0] == 0.0
    for alpha, components, values in zip(path.parameters, path.components, path.eigenvalues, strict=True):
        alone = ContrastivePCA(2, alpha=alpha).fit(target, background=background)
        # A value is a difference of numbers of the size of α times the background's.
        np.testing.assert_allclose(values, alone.eigenvalues_, atol=1e-9 * (1 + alpha) * covariance(target).max())
        assert principal_angles(components, alone.components_).max() < 1e-5


def test_representatives_are_among_the_candidates_and_one_is_used(pair):
    target, background = pair
    fitted = ContrastivePCA(2).fit(target, background=background)
    assert len(fitted.alphas_) == 4
    assert np.all(np.diff(fitted.alphas_) > 0)
    assert fitted.alpha_ in fitted.alphas_
    chosen = list(fitted.alphas_).index(fitted.alpha_)
    np.testing.assert_array_equal(fitted.candidates_[chosen], fitted.components_)
    for alpha, candidate in zip(fitted.alphas_, fitted.candidates_, strict=True):
        alone = ContrastivePCA(2, alpha=alpha).fit(target, background=background)
        assert principal_angles(candidate, alone.components_).max() < 1e-5
    # The planted direction stands out in the view that is used, and not in PCA's.
    own = linalg.inv(pair_mixing())[:, 3]
    assert np.abs(np.corrcoef(fitted.transform(target).T, target @ own)[2, :2]).max() > 0.9


def pair_mixing():
    return np.random.default_rng(0).normal(size=(6, 6))


def test_a_list_of_alphas_is_searched(pair):
    target, background = pair
    fitted = ContrastivePCA(1, alpha=[0.5, 1.0, 50.0], n_representatives=2).fit(target, background=background)
    assert set(fitted.alphas_) < {0.5, 1.0, 50.0}
    assert fitted.candidates_.shape == (2, 1, 6)


def test_without_folds_alpha_is_chosen_by_the_shares_of_the_backgrounds_with_their_weights():
    def rows(*variances):
        spread = np.diag(np.sqrt(1.5 * np.array(variances)))
        return np.vstack([spread, -spread])

    # α = 0 shows column 0, which the first background has much of, and α = 5 column 1, which is all of the second.
    target, backgrounds = rows(5, 4, 0.1), [rows(8, 0.5, 10), rows(0.1, 8, 0.1)]
    options = {"alpha": [0.0, 5.0], "n_representatives": 2, "background_weights": [0.9, 0.1]}
    fitted = ContrastivePCA(1, held_out=None, **options).fit(target, background=backgrounds)
    assert np.abs(fitted.candidates_[:, 0]).argmax(axis=1).tolist() == [0, 1]
    shares = np.array([[captured_variance(X, view) for X in (target, *backgrounds)] for view in fitted.candidates_])
    excess, of_equal_weights = shares @ [1, -0.9, -0.1], shares @ [1, -0.5, -0.5]
    assert np.argmax(excess) != np.argmax(of_equal_weights)
    assert fitted.alpha_ == fitted.alphas_[np.argmax(excess)]


@pytest.mark.filterwarnings("ignore:neighbouring rows are alike")
def test_mice_one_of_four_representatives_separates_the_treatments(data_dir):
    data = mice_contrast(load("mice_protein.csv", data_dir))
    scaler = StandardScaler().fit(data.backgrounds[0])
    target, background = scaler.transform(data.target), scaler.transform(data.backgrounds[0])
    with pytest.warns(UserWarning, match=r"1 direction\(s\) occur in no dataset"):
        fitted = ContrastivePCA(2).fit(target, background=background)  # the table holds one protein twice
    assert len(fitted.alphas_) == 4
    errors = [clustering_error((target - fitted.mean_) @ view.T, data.labels) for view in fitted.candidates_]
    assert min(errors) <= 0.12
    # The first of them is PCA's view, near enough.
    assert errors[0] > 0.3


# The forms of input, and of output

FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "sparse": sparse.csr_array,
    "batches": lambda X: iter(np.array_split(X, 5)),
    "list": lambda X: X.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpha", [2.0, "auto"])
def test_every_form_of_the_data_gives_the_same_fit(form, alpha, pair):
    target, background = pair
    expected = ContrastivePCA(2, alpha=alpha).fit(target, background=background)
    fitted = ContrastivePCA(2, alpha=alpha).fit(FORMS[form](target), background=[FORMS[form](background)])
    tolerance = 1e-4 if form == "float32" else 1e-9
    assert fitted.alpha_ == expected.alpha_
    np.testing.assert_allclose(fitted.eigenvalues_, expected.eigenvalues_, rtol=tolerance)
    same_up_to_sign(fitted.transform(target), expected.transform(target), atol=20 * tolerance)


def test_wide_data_are_never_squared(rng):
    target, background = rng.normal(size=(40, 5000)), rng.normal(size=(30, 5000))
    target[:20, :50] += 3.0
    fitted = ContrastivePCA(2).fit(target, background=background)
    assert fitted.solver_ == "reduced"
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(2), atol=1e-10)
    assert clustering_error(fitted.transform(target)[:, :1], np.arange(40) < 20) == 0.0
    dense = ContrastivePCA(2, solver="dense", alpha=fitted.alpha_)
    few = slice(0, 300)
    narrow = ContrastivePCA(2, alpha=fitted.alpha_).fit(target[:, few], background=background[:, few])
    expected = dense.fit(target[:, few], background=background[:, few])
    np.testing.assert_allclose(narrow.eigenvalues_, expected.eigenvalues_, rtol=1e-8)


@pytest.mark.filterwarnings("ignore:rounding may have changed")
def test_single_precision_gives_way_to_double_where_much_is_subtracted(rng):
    target, background = rng.normal(size=(500, 8)), rng.normal(size=(500, 8))
    # Both vary a lot in one oblique direction: at α = 1000 its rounding would swamp what the target has of its own.
    shared = rng.normal(size=8)
    target += 1e4 * rng.normal(size=(500, 1)) * shared
    background += 1e4 * rng.normal(size=(500, 1)) * shared
    target[:, 0] += 3 * rng.normal(size=500)
    single = [data.astype(np.float32).astype(np.float64) for data in (target, background)]
    rounded = ContrastivePCA(1, alpha=1000.0).fit(single[0], background=single[1])
    fitted = ContrastivePCA(1, alpha=1000.0).fit(single[0].astype(np.float32), background=single[1].astype(np.float32))
    np.testing.assert_allclose(fitted.eigenvalues_, rounded.eigenvalues_, rtol=1e-6)


def test_every_candidate_of_single_precision_data_is_that_of_double(rng):
    target, background = rng.normal(size=(500, 8)), rng.normal(size=(500, 8))
    shared = rng.normal(size=8)
    target += 300 * rng.normal(size=(500, 1)) * shared
    background += 300 * rng.normal(size=(500, 1)) * shared
    target[:, 0] += 3 * rng.normal(size=500)
    single = target.astype(np.float32), background.astype(np.float32)
    double = single[0].astype(np.float64), single[1].astype(np.float64)
    first, second = (ContrastivePCA(2).fit(one, background=other) for one, other in (single, double))
    np.testing.assert_allclose(first.alphas_, second.alphas_)
    for one, other in zip(first.candidates_, second.candidates_, strict=True):
        assert principal_angles(one, other).max() < 1e-3


@pytest.mark.parametrize(("size", "message"), [(1e8, "occur in no dataset, as far as double"), (2e5, "rounding may")])
def test_rounding_that_hides_the_answer_is_warned_of(size, message, rng):
    target, background = rng.normal(size=(500, 8)), rng.normal(size=(500, 8))
    shared = rng.normal(size=8)
    target += size * rng.normal(size=(500, 1)) * shared
    background += size * rng.normal(size=(500, 1)) * shared
    with pytest.warns(UserWarning, match=message) as caught:
        ContrastivePCA(1, alpha=1000.0).fit_transform(target, background=background)
    assert caught[0].filename == __file__


def test_repeated_columns_are_no_component(rng):
    target, background = rng.normal(size=(300, 8)), rng.normal(size=(250, 8))
    target[:, 0] *= 5
    twice = [np.hstack([data, data[:, :1]]) for data in (target, background)]
    with pytest.warns(UserWarning, match=r"1 direction\(s\) occur in no dataset"):
        linear = ContrastivePCA(2).fit(twice[0], background=twice[1])
    kernel = KernelContrastivePCA(2, kernel="linear").fit(twice[0], background=twice[1])
    assert min(linear.target_variance_.min(), kernel.target_variance_.min()) > 0.5


def test_a_constant_column_has_no_part_and_is_not_warned_of(pair):
    wider = [np.insert(data, 2, 7.0, axis=1) for data in pair]
    plain, fitted = (ContrastivePCA(2, alpha=3.0).fit(X, background=Y) for X, Y in (pair, wider))
    np.testing.assert_allclose(fitted.components_, np.insert(plain.components_, 2, 0.0, axis=1), atol=1e-9)


def test_the_linear_kernel_gives_the_linear_method_for_few_directions(rng):
    directions = rng.normal(size=(8, 40))
    target, background = rng.normal(size=(15, 8)) @ directions + 5, rng.normal(size=(12, 8)) @ directions - 3
    linear = ContrastivePCA(2).fit(target, background=background)
    kernel = KernelContrastivePCA(2, kernel="linear").fit(target, background=background)
    np.testing.assert_allclose(linear.alphas_, kernel.alphas_)
    np.testing.assert_allclose(linear.eigenvalues_, kernel.eigenvalues_, rtol=1e-7)


def test_balanced_one_hot_rows_are_handled(rng):
    # Many equal eigenvalues: LAPACK's search for some of them comes back with too few.
    rows = np.tile(np.eye(26), (7, 1))
    assert DiscriminativePCA(2).fit(rows).components_.shape == (2, 26)
    assert ContrastivePCA(2).fit(rows, background=rng.normal(size=(130, 26))).components_.shape == (2, 26)
    far = rng.normal(size=(200, 8)) * 100, rng.normal(size=(190, 8)) * 100
    assert KernelContrastivePCA(2).fit(far[0], background=far[1]).n_components_ == 2


def test_labels_pipelines_and_inverse(pair):
    target, background = pair
    direct = ContrastivePCA(2, alpha=1.0).fit(target, background=background)
    X, y = np.vstack([target, background]), np.repeat(["stim", "ctrl"], [len(target), len(background)])
    labelled = ContrastivePCA(2, alpha=1.0, target_label="stim").fit(X, y)
    np.testing.assert_allclose(labelled.components_, direct.components_, atol=1e-12)
    assert labelled.background_labels_ == ["ctrl"]
    expected = np.mean(direct.target_variance_ / direct.background_variance_[0])
    assert direct.score(target, background=background) == pytest.approx(expected)
    whole = ContrastivePCA(6, alpha=1.0).fit(target, background=background)
    np.testing.assert_allclose(whole.inverse_transform(whole.transform(target)), target, atol=1e-9)
    model = make_pipeline(StandardScaler(), ContrastivePCA(2))
    assert model.fit_transform(target, background=background).shape == (300, 2)


def test_the_kernel_form_shows_circles_where_the_difference_does(rng):
    data = make_circles_one_background()
    fitted = KernelContrastivePCA(2, kernel="homogeneous_polynomial", degree=2)
    fitted.fit(data.target, background=data.backgrounds)
    errors = [
        clustering_error(
            np.concatenate(list(fitted.feature_map_.blocks(data.target))) @ view.T,
            data.labels,
        )
        for view in fitted.candidates_
    ]
    # One of the views shows the two circles.
    assert min(errors) < 0.05


# Bad input

PARAMETERS = [
    ("alpha", -1.0, ValueError),
    ("alpha", float("nan"), ValueError),
    ("alpha", float("inf"), ValueError),
    ("alpha", "best", ValueError),
    ("alpha", None, TypeError),
    ("alpha", True, TypeError),
    ("alpha", [1.0, 0.5, 2.0, 3.0], ValueError),
    ("alpha", [1.0, 1.0, 2.0, 3.0], ValueError),
    ("alpha", [-1.0, 1.0, 2.0, 3.0], ValueError),
    ("alpha", [0.0, np.nan, 2.0, 3.0], ValueError),
    ("alpha", [0.0, "a"], TypeError),
    ("alpha", [], ValueError),
    ("alpha", [[1.0, 2.0]], ValueError),
    ("n_representatives", 0, ValueError),
    ("n_representatives", 1.5, TypeError),
    ("background_weights", "worst-case", TypeError),
    ("n_components", 0, ValueError),
    ("n_components", "auto", TypeError),
]


@pytest.mark.parametrize("method", [ContrastivePCA, KernelContrastivePCA])
@pytest.mark.parametrize(("parameter", "value", "error"), PARAMETERS)
def test_parameters_that_cannot_be_used(method, parameter, value, error, pair):
    with pytest.raises(error) as caught:
        method(**{parameter: value}).fit(pair[0], background=pair[1])
    assert caught.value.parameter == parameter
    assert repr(caught.value.value) == repr(value)
    assert caught.value.advice
    assert "\n" not in str(caught.value)


def test_a_list_is_as_long_as_the_number_of_representatives(pair):
    with pytest.raises(ValueError, match="number of candidates") as caught:
        ContrastivePCA(alpha=[1.0, 2.0]).fit(pair[0], background=pair[1])
    assert (caught.value.parameter, caught.value.value, caught.value.limit) == ("n_representatives", 4, 2)


def test_the_root_solver_does_not_fit(pair):
    with pytest.raises(ValueError, match="solver='root' does not fit this method. Use one of 'auto', 'dense'"):
        ContrastivePCA(solver="root").fit(pair[0], background=pair[1])


def test_constant_data_are_refused_or_harmless(pair):
    target, background = pair
    constant = ContrastivePCA(2, alpha=1.0).fit(np.ones((5, 6)), background=background)
    assert np.all(constant.eigenvalues_ <= 0)
    with pytest.raises(ValueError, match="no dataset varies"):
        ContrastivePCA(1).fit(np.ones((3, 9)), background=np.ones((3, 9)))


def four_groups(seed):
    """The example of the first package for contrastive PCA: four groups behind ten columns that vary more."""
    normal = np.random.default_rng(seed).normal
    background = np.hstack([normal(0, 10, (400, 10)), normal(0, 3, (400, 10)), normal(0, 1, (400, 10))])
    target = np.hstack([normal(0, 10, (400, 10)), normal(0, 1, (400, 20))])
    target[200:, 10:20] += 6.0
    target[100:200, 20:] += 3.0
    target[300:, 20:] += 3.0
    return target, background, np.repeat(range(4), 100)


@pytest.mark.parametrize("alpha", ["auto", "held-out", np.geomspace(0.1, 1000, 40), np.geomspace(0.01, 100, 15)])
@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_the_alpha_that_is_chosen_shows_the_groups_whatever_the_grid(alpha, unit):
    for seed in range(3):
        target, background, labels = four_groups(seed)
        # Another unit of the target is another scale of α, which a list of one's own has to allow for.
        alphas = alpha if isinstance(alpha, str) else unit**2 * alpha
        scores = ContrastivePCA(2, alpha=alphas).fit_transform(unit * target, background=background)
        # Groups are six and three standard deviations apart in ten columns: none is mistaken.
        assert clustering_error(scores, labels) == 0.0
