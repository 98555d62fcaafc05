"""Arrays of other libraries: the same answers as NumPy's, found where the arrays lie."""

import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.preprocessing import MinMaxScaler, Normalizer
from sklearn.utils.estimator_checks import check_array_api_input

import standout
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    contrast,
    metrics,
    selection,
)
from standout.features import resolve_kernel
from standout.io import on_device
from standout.moments import gather
from standout.sources._transfer import overlapped_copies

# Numbers that may come to the host in a fit: those of a component or two, and never rows or matrices of columns.
HANDFUL = 64


class Torch:
    """PyTorch on the CPU."""

    name = "torch"

    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="torch is not installed")
        self.device = "cpu"

    def there(self, array):
        return self.torch.asarray(np.array(array))

    def back(self, array):
        assert isinstance(array, self.torch.Tensor)
        return array.numpy()

    def forbid_copies(self, monkeypatch, most=HANDFUL):
        """Let every way from a tensor to the host fail for more than a handful of numbers."""
        for way in ("cpu", "numpy", "tolist", "__array__"):
            monkeypatch.setattr(self.torch.Tensor, way, only_a_few(getattr(self.torch.Tensor, way), most))


class Strict:
    """array-api-strict, on a device of it that NumPy cannot read: it knows the standard and nothing else."""

    name = "array_api_strict"

    def __init__(self):
        self.xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        self.device = self.xp.Device("device1")

    def there(self, array):
        return self.xp.asarray(np.array(array), device=self.device)

    def back(self, array):
        assert array.device == self.device
        return np.asarray(array.to_device(self.xp.Device("CPU_DEVICE")))

    def forbid_copies(self, monkeypatch, most=HANDFUL):
        kind = type(self.there([1.0]))
        monkeypatch.setattr(kind, "to_device", only_a_few(kind.to_device, most))


def only_a_few(way, most):
    def guarded(array, *args, **kwargs):
        assert np.prod(array.shape) <= most, f"{array.shape} numbers were copied to the host"
        return way(array, *args, **kwargs)

    return guarded


@pytest.fixture(params=[Torch, Strict], ids=lambda library: library.name)
def library(request):
    return request.param()


@pytest.fixture(autouse=True)
def dispatch(monkeypatch):
    # SciPy itself is given no array of these, so it does not matter that it has been imported already.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture
def linear_data(rng):
    mix = np.eye(12) + 0.1 * rng.normal(size=(12, 12))
    target = rng.normal(size=(300, 12)) * np.linspace(1, 3, 12)
    target[:, 3] *= 4
    return target, [rng.normal(size=(250, 12)) @ mix, rng.normal(size=(200, 12)) * np.linspace(2, 1, 12) + 0.3]


@pytest.fixture
def kernel_data(rng):
    target = rng.normal(size=(90, 4))
    target[:40] *= 0.3
    return target, [rng.normal(size=(70, 4)) * [1, 1, 2, 1], rng.normal(size=(50, 4)) * [2, 1, 1, 1]]


def assert_same(model, library, target, backgrounds, tol=1e-10):
    """The fit of the other library has the attributes, scores and rows of NumPy's."""
    ours = sklearn.clone(model).fit(target, background=backgrounds)
    moved = [library.there(background) for background in backgrounds] if backgrounds else None
    theirs = sklearn.clone(model).fit(library.there(target), background=moved)
    for name, expected in vars(ours).items():
        if isinstance(expected, np.ndarray):
            found = library.back(getattr(theirs, name))
            assert found.dtype == expected.dtype, name
            close(found, expected, tol, name)
    scores = ours.transform(target)
    found = library.back(theirs.transform(library.there(target)))
    assert found.dtype == scores.dtype
    close(found, scores, tol, "transform")
    if hasattr(ours, "inverse_transform"):
        back = library.back(theirs.inverse_transform(library.there(scores)))
        close(back, ours.inverse_transform(scores), tol, "inverse_transform")
    return ours, theirs


def close(found, expected, tol, name):
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite, err_msg=name)
    scale = max(np.max(np.abs(expected[finite]), initial=0.0), 1e-12)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=tol * scale, err_msg=name)


def minkowski(x, z):
    """A kernel of one's own."""
    return float(np.exp(-np.sum(np.abs(x - z) ** 1.5)))


LINEAR = {
    "one background": (DiscriminativePCA(3), 1),
    "several backgrounds": (DiscriminativePCA(3, background_weights=[0.3, 0.7]), 2),
    "no background": (DiscriminativePCA(3), 0),
    "no shrinkage": (DiscriminativePCA(3, shrinkage=None), 1),
    "roots": (DiscriminativePCA(3, shrinkage=None, solver="root"), 2),
    "roots, no background": (DiscriminativePCA(3, solver="root"), 0),
    "tested": (DiscriminativePCA("auto", test="analytic"), 1),
    "tested, no shrinkage": (DiscriminativePCA(3, test="analytic", shrinkage=None), 1),
    "one alpha": (ContrastivePCA(2, alpha=2.0), 2),
    # The path of NumPy's is found by iterations, which end at about 1e-11.
    "alphas": (ContrastivePCA(2), 2),
    "alpha, no background": (ContrastivePCA(2), 0),
}


@pytest.mark.parametrize("case", LINEAR)
def test_linear_fits_equal_numpys(case, library, linear_data):
    model, n_backgrounds = LINEAR[case]
    target, backgrounds = linear_data
    ours, theirs = assert_same(model, library, target, backgrounds[:n_backgrounds] or None)
    moved = [library.there(background) for background in backgrounds[:n_backgrounds]] or None
    found = theirs.score(library.there(target), background=moved)
    assert found == pytest.approx(ours.score(target, background=backgrounds[:n_backgrounds] or None), rel=1e-10)


@pytest.mark.parametrize("case", [case for case in LINEAR if not case.startswith(("tested", "roots"))])
def test_wide_data_equal_numpys(case, library, rng):
    model, n_backgrounds = LINEAR[case]
    target = rng.normal(size=(20, 90)) * np.linspace(1, 3, 90)
    backgrounds = [rng.normal(size=(25, 90)), 2 * rng.normal(size=(15, 90))][:n_backgrounds] or None
    if model.get_params().get("shrinkage", "auto") is None:
        with pytest.warns(UserWarning, match="singular"):
            assert_same(model, library, target, backgrounds)
    else:
        assert_same(model, library, target, backgrounds)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_single_precision_is_worked_on_in_double(offset, library, linear_data):
    target, backgrounds = linear_data
    # NumPy's own single precision is the less accurate side: it multiplies in it.
    rows = [(data + offset).astype(np.float32) for data in (target, *backgrounds)]
    assert_same(DiscriminativePCA(2), library, rows[0], rows[1:], tol=1e-3)
    exact = DiscriminativePCA(2).fit(rows[0].astype(float), background=[data.astype(float) for data in rows[1:]])
    found = DiscriminativePCA(2).fit(library.there(rows[0]), background=[library.there(data) for data in rows[1:]])
    close(library.back(found.components_), exact.components_, 1e-9, "components_")


def test_large_means_and_integers_cost_nothing(library, linear_data):
    target, backgrounds = linear_data
    assert_same(DiscriminativePCA(2), library, target + 1e6, backgrounds, tol=1e-9)
    assert_same(DiscriminativePCA(2), library, (10 * target).astype(np.int32), [(9 * backgrounds[0]).astype(np.int64)])


@pytest.mark.parametrize("hole", ["absent", "dependent", "constant"])
def test_singular_backgrounds_are_solved_on_the_device(hole, library, linear_data):
    target, (background, _) = linear_data
    if hole == "absent":
        background[:, 3:5] = 0.0
    else:
        for data in (target, background):
            data[:, 7] = data[:, 6] if hole == "dependent" else 3e5
    with pytest.warns(UserWarning, match="singular"):
        ours, theirs = assert_same(DiscriminativePCA(3, shrinkage=None), library, target, [background])
    assert theirs.solver_ == "root"


KERNEL = {
    "rbf": (KernelDiscriminativePCA(3), 1),
    "rbf, nearly full rank": (KernelDiscriminativePCA(3, gamma=5.0), 2),
    "rbf, low rank": (KernelDiscriminativePCA(3, gamma=0.05), 2),
    "rbf, no background": (KernelDiscriminativePCA(3, epsilon="scaled"), 0),
    "rank": (KernelDiscriminativePCA(3, rank=20), 1),
    "polynomial": (KernelDiscriminativePCA(3, kernel="homogeneous_polynomial", degree=2), 2),
    "linear": (KernelDiscriminativePCA(3, kernel="linear"), 2),
    "laplacian": (KernelDiscriminativePCA(3, kernel="laplacian"), 2),
    "laplacian, pivoted": (KernelDiscriminativePCA(3, kernel="laplacian", approximation="pivoted", rank=40), 1),
    "laplacian, fourier": (KernelDiscriminativePCA(3, kernel="laplacian", approximation="fourier", rank=40), 1),
    "cosine": (KernelDiscriminativePCA(3, kernel="cosine"), 2),
    "cosine, pivoted": (KernelDiscriminativePCA(3, kernel="cosine", approximation="pivoted", rank=40), 1),
    "sum": (KernelDiscriminativePCA(3, kernel=["rbf", "linear"], kernel_weights=[1.0, 0.2]), 2),
    "fourier": (KernelDiscriminativePCA(3, approximation="fourier", rank=40), 1),
    "pivoted": (KernelDiscriminativePCA(3, approximation="pivoted", rank=40), 2),
    "contrastive": (KernelContrastivePCA(2, alpha=2.0), 2),
    "contrastive, laplacian": (KernelContrastivePCA(2, alpha=2.0, kernel="laplacian"), 2),
    "contrastive, alphas": (KernelContrastivePCA(2), 1),
    "contrastive, pivoted": (KernelContrastivePCA(2, alpha=1.0, approximation="pivoted", rank=40), 1),
}


@pytest.mark.parametrize("case", KERNEL)
def test_kernel_fits_equal_numpys(case, library, kernel_data):
    model, n_backgrounds = KERNEL[case]
    target, backgrounds = kernel_data
    # Coordinates are known up to the tolerance of the factor, 1e-9, at most.
    ours, theirs = assert_same(model, library, target, backgrounds[:n_backgrounds] or None, tol=1e-9)
    assert theirs.residual_ == pytest.approx(ours.residual_, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("approximation", ["exact", "pivoted"])
def test_kernels_of_counts_equal_numpys(approximation, library, kernel_data):
    target, backgrounds = (np.abs(kernel_data[0]), [np.abs(data) for data in kernel_data[1]])
    # Where two rows share a zero, the term of that column is nought by nought.
    target[3], backgrounds[0][5, 1] = 0.0, 0.0
    model = KernelDiscriminativePCA(2, kernel="chi2", approximation=approximation, rank=None)
    ours, theirs = assert_same(model, library, target, backgrounds, tol=1e-9)
    assert theirs.residual_ == pytest.approx(ours.residual_, abs=1e-9)
    with pytest.raises(ValueError, match=r"the kernel 'chi2' cannot be taken of these data: X contains negative"):
        sklearn.clone(model).fit(library.there(-target), background=[library.there(data) for data in backgrounds])
    with pytest.raises(ValueError, match=r"the kernel 'chi2' cannot be taken of these data: X contains negative"):
        theirs.transform(library.there(-target))


@pytest.mark.parametrize("options", [{"kernel": "sigmoid", "gamma": 0.5, "coef0": -1.0}, {"kernel": "additive_chi2"}])
def test_kernels_that_are_no_inner_products_equal_numpys(options, library, kernel_data):
    target, backgrounds = (np.abs(kernel_data[0]), [np.abs(data) for data in kernel_data[1]])
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        # The kernel rows themselves are the coordinates: there is no tolerance but rounding, squared in the moments.
        assert_same(KernelDiscriminativePCA(2, **options), library, target, backgrounds, tol=1e-10)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "sigmoid", "cosine", "chi2", "additive_chi2"])
def test_kernels_of_a_row_with_itself_are_the_diagonal(kernel, library):
    rows = np.abs(np.random.default_rng(0).normal(size=(20, 3)))
    rows[4] = 0.0
    resolved = resolve_kernel(kernel)
    found = library.back(resolved.diagonal(library.there(rows)))
    # Both are sums of three squares, whichever way these are added and scaled.
    np.testing.assert_allclose(found, np.diagonal(resolved(rows, rows)), rtol=0, atol=1e-13)


def test_landmarks_of_ones_own_equal_numpys(library, kernel_data):
    target, backgrounds = kernel_data
    landmarks = np.vstack([target[:20], target[:5]])
    ours = KernelDiscriminativePCA(2, approximation=landmarks).fit(target, background=backgrounds)
    moved = [library.there(data) for data in (target, *backgrounds)]
    theirs = KernelDiscriminativePCA(2, approximation=library.there(landmarks)).fit(moved[0], background=moved[1:])
    close(library.back(theirs.transform(moved[0])), ours.transform(target), 1e-9, "transform")
    with pytest.raises(TypeError, match="the array of landmarks is of numpy"):
        KernelDiscriminativePCA(2, approximation=landmarks).fit(moved[0], background=moved[1:])


def test_labels_tell_the_datasets_apart(library, linear_data):
    target, backgrounds = linear_data
    rows = np.vstack([target, *backgrounds])
    y = np.repeat([2, 0, 1], [300, 250, 200])
    ours = DiscriminativePCA(2, target_label=2).fit(rows, y)
    weights = np.random.default_rng(1).random(750)
    for labels in (y, library.there(y)):
        theirs = DiscriminativePCA(2, target_label=2).fit(library.there(rows), labels)
        close(library.back(theirs.components_), ours.components_, 1e-10, "components_")
        found = theirs.score(library.there(rows), labels, sample_weight=library.there(weights))
        assert found == pytest.approx(ours.score(rows, y, sample_weight=weights), rel=1e-10)
    assert theirs.background_labels_ == [0, 1]


def test_batches_of_arrays_equal_one_array(library, linear_data):
    target, (background, _) = linear_data
    ours = DiscriminativePCA(2).fit(target, background=background)
    batches = (library.there(target[start : start + 40]) for start in range(0, 300, 40))
    theirs = DiscriminativePCA(2).fit(batches, background=library.there(background))
    close(library.back(theirs.components_), ours.components_, 1e-10, "components_")


@pytest.mark.parametrize(
    "model",
    [
        DiscriminativePCA(2),
        DiscriminativePCA(2, solver="root"),
        ContrastivePCA(2, alpha=2.0),
        KernelDiscriminativePCA(2, kernel="linear", approximation="fourier"),
    ],
)
def test_partial_fits_and_merges_equal_numpys(model, library, linear_data):
    target, backgrounds = linear_data
    model = sklearn.clone(model)
    if isinstance(model, KernelDiscriminativePCA):
        model.set_params(kernel="rbf", gamma=0.02, rank=30, random_state=0)
    ours = sklearn.clone(model).fit(target, background=backgrounds)
    moved = [library.there(data) for data in (target, *backgrounds)]
    theirs = sklearn.clone(model)
    for start in range(0, 300, 100):
        # Past the end of the backgrounds there is nothing left of them.
        parts = [data[start : min(start + 100, data.shape[0]), :] if start < data.shape[0] else None for data in moved]
        theirs.partial_fit(parts[0], background=parts[1:])
    close(library.back(theirs.components_), ours.components_, 1e-9, "components_")
    first = sklearn.clone(model).fit(moved[0][:150, :], background=[data[:90, :] for data in moved[1:]])
    second = sklearn.clone(model).fit(moved[0][150:, :], background=[data[90:, :] for data in moved[1:]])
    close(library.back(first.merge(second).components_), ours.components_, 1e-9, "components_")
    numpys = first.to_numpy().partial_fit(target, background=backgrounds)
    assert isinstance(numpys.components_, np.ndarray)
    with pytest.raises(TypeError, match="the new rows is of numpy"):
        first.partial_fit(target, background=backgrounds)
    with pytest.raises(TypeError, match="the other estimator is of numpy"):
        first.merge(ours)


@pytest.mark.parametrize("case", [*LINEAR, *KERNEL])
def test_nothing_but_a_handful_of_numbers_comes_to_the_host(case, library, linear_data, kernel_data, monkeypatch):
    model, n_backgrounds = {**LINEAR, **KERNEL}[case]
    if "alphas" in case:
        # The inner products of all vectors, two per α: their number does not depend on the data.
        model = sklearn.clone(model).set_params(alpha=[0.0, 1.0, 2.0, 4.0])
    target, backgrounds = linear_data if case in LINEAR else kernel_data
    moved = [library.there(data) for data in (target, *backgrounds[:n_backgrounds])]
    library.forbid_copies(monkeypatch)
    fitted = sklearn.clone(model).fit(moved[0], background=moved[1:] or None)
    scores = fitted.transform(moved[0])
    fitted.score(moved[0], background=moved[1:] or None)
    if hasattr(fitted, "inverse_transform"):
        fitted.inverse_transform(scores)
    with pytest.raises(AssertionError, match="copied to the host"):
        library.back(scores)


RULES = ["worst-case", "best", "spectral"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", ["tall", "wide", "kernel"])
def test_rules_for_weights_choose_as_numpys(shape, rule, library, linear_data, kernel_data, rng):
    model, (target, backgrounds) = DiscriminativePCA(2, background_weights=rule), linear_data
    # Each background hides one of the target's two strong columns.
    target[:, 7] *= 4
    backgrounds[0][:, 3], backgrounds[1][:, 7] = 5 * target[:250, 3], 5 * target[:200, 7]
    if shape == "kernel":
        model, (target, backgrounds) = KernelDiscriminativePCA(2, background_weights=rule), kernel_data
    elif shape == "wide":
        target, backgrounds = rng.normal(size=(15, 60)), [rng.normal(size=(12, 60)) * scale for scale in (1, 2, 3)]
        backgrounds[1][:, :20] *= 3.0
    # Both sides search until their certificates meet at 1e-8; they go the same way, and were seen to part at 1e-11.
    ours, _ = assert_same(model, library, target, backgrounds, tol=1e-9)
    if rule == "worst-case" and shape != "wide":
        assert ours.weights_.min() > 0.0, "a mixture: one background alone would need no search"


@pytest.mark.parametrize("rule", RULES)
def test_rules_for_weights_bring_only_numbers_of_small_problems_to_the_host(rule, library, rng, monkeypatch):
    # Fewer numbers at a time than one direction of the data has: neither rows nor directions travel.
    monkeypatch.setattr("standout.selection._weights.GRID_STEPS", 4)
    rows = [rng.normal(size=(200, 150)) * rng.uniform(1, 2, size=150) for _ in range(3)]
    target, *backgrounds = map(library.there, rows)
    library.forbid_copies(monkeypatch, most=149)
    fitted = DiscriminativePCA(2, background_weights=rule).fit(target, background=backgrounds)
    with pytest.raises(AssertionError, match="copied to the host"):
        library.back(fitted.components_)


def test_the_proof_of_the_worst_case_stays_on_the_device(library, linear_data):
    target, backgrounds = linear_data

    def pose_of(there):
        parts = [gather(there(data)) for data in (target, *backgrounds)]
        return lambda weights: contrast.discriminative(parts[0], parts[1:], weights, [0.1, 0.1])

    ours = selection.worst_case_weights(pose_of(np.asarray), 2)
    theirs = selection.worst_case_weights(pose_of(library.there), 2)
    assert theirs.gap < 1e-8
    close(theirs.weights, ours.weights, 1e-10, "weights")
    close(theirs.ratios, ours.ratios, 1e-10, "ratios")
    # Directions are known up to their signs, the proof is made of their products.
    proofs = [found @ found.T for found in (library.back(theirs.directions), ours.directions)]
    close(*proofs, 1e-9, "directions")
    views = [selection.spectral_weights(pose_of(there), 2, 1) for there in (library.there, np.asarray)]
    np.testing.assert_array_equal(views[0].labels, views[1].labels)
    close(library.back(views[0].components), views[1].components, 1e-10, "components")


@pytest.fixture
def planted_data(rng):
    """Two directions of the target's own, one of them clear, and backgrounds of different sizes."""
    target = rng.normal(size=(40, 6)) * [6, 1, 1, 1, 1, 2]
    return target, [rng.normal(size=(50, 6)) + 1.0, rng.standard_t(5, size=(30, 6))]


@pytest.mark.parametrize("options", [{}, {"shrinkage": 0.3}, {"shrinkage": "auto"}, {"shrinkage": [0.2, 1.0]}])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_rows_are_reshuffled_on_the_device_as_on_the_host(shape, options, library, planted_data, monkeypatch):
    datasets = [planted_data[0], *planted_data[1]]
    if shape == "wide":
        # The same in 130 dimensions, more than rows, with a little of everything in the new ones.
        options = options or {"shrinkage": 0.1}
        noise = np.random.default_rng(1)
        datasets = [np.hstack([data, 0.3 * noise.normal(size=(len(data), 124))]) for data in datasets]
    options = {**options, "method": "permutation", "n_components": 3, "background_weights": [0.6, 0.4]}
    ours = selection.component_test(datasets[0], datasets[1:], **options)
    target, *backgrounds = map(library.there, datasets)
    library.forbid_copies(monkeypatch)
    theirs = selection.component_test(target, backgrounds, **options)
    # The random numbers are the same, so the counts behind the p-values are; ratios differ by rounding.
    np.testing.assert_array_equal(theirs.p_values, ours.p_values)
    np.testing.assert_allclose(theirs.ratios, ours.ratios, rtol=1e-10)
    np.testing.assert_allclose(theirs.edges, ours.edges, rtol=1e-10)
    assert ours.n_significant >= 1


@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_the_number_of_components_is_found_as_numpys(shape, library, planted_data):
    target, backgrounds = planted_data
    if shape == "wide":
        target, *backgrounds = (data[:20] @ np.eye(6, 70) + 0.01 * data[:20, :1] for data in (target, *backgrounds))
        noise = np.random.default_rng(1)
        target, *backgrounds = (data + 0.3 * noise.normal(size=data.shape) for data in (target, *backgrounds))
    ours, theirs = assert_same(DiscriminativePCA("auto"), library, target, backgrounds)
    assert theirs.component_test_.method == ours.component_test_.method == "permutation"
    asked = [DiscriminativePCA(2, test="permutation", random_state=4) for _ in range(2)]
    asked[0].fit(target, background=backgrounds)
    asked[1].fit(library.there(target), background=[library.there(data) for data in backgrounds])
    np.testing.assert_array_equal(library.back(asked[1].p_values_), asked[0].p_values_)


def test_tests_of_components_on_a_device_say_what_is_wrong(library, planted_data):
    target, (background, _) = planted_data
    there = library.there
    with pytest.raises(TypeError, match="background 1 is of numpy on cpu. Give all datasets as arrays of one library"):
        selection.component_test(there(target), background)
    with pytest.raises(ValueError, match="singular"):
        selection.component_test(there(target), there(background[:5]), method="permutation")
    batches = on_device(background, library.device, library=library.name)
    with pytest.raises(TypeError, match="the permutation test needs its rows"):
        selection.component_test(there(target), batches, method="permutation")
    ours = selection.component_test(target, background)
    for given in (there(background), batches, gather(there(background))):
        theirs = selection.component_test(there(target), given)
        np.testing.assert_allclose(theirs.p_values, ours.p_values, rtol=1e-8, atol=1e-300)


GROUPS = {
    "linear": DiscriminativePCA(2, shrinkage="clusters"),
    "kernel": KernelDiscriminativePCA(2, kernel="homogeneous_polynomial", degree=2, epsilon="clusters"),
    "pivoted": KernelDiscriminativePCA(2, gamma=0.05, approximation="pivoted", rank=20, epsilon="clusters"),
}


@pytest.fixture
def grouped_data(rng):
    target, background = rng.normal(size=(200, 4)) * [5, 1, 1, 1], rng.normal(size=(150, 4)) * [5, 1, 1, 1]
    target[:100, 2] += 6.0
    return target, background


@pytest.mark.parametrize("most_rows", [50_000, 150])
@pytest.mark.parametrize("case", GROUPS)
def test_groups_are_looked_for_where_the_scores_lie(case, most_rows, library, grouped_data, monkeypatch):
    monkeypatch.setattr("standout.selection._groups.MOST_ROWS", most_rows)
    target, background = grouped_data
    # As in other kernel fits, coordinates are known up to the tolerance of the factor at most.
    ours, theirs = assert_same(GROUPS[case], library, target, [background], tol=1e-9)
    assert ours.group_search_.chosen == theirs.group_search_.chosen is not None
    for name in ("parameters", "split_shares", "standard_errors", "p_values"):
        # Sums over 200 rows: nothing but rounding, seen at 1e-13.
        close(getattr(theirs.group_search_, name), getattr(ours.group_search_, name), 1e-10, name)
    moved = library.there(target), library.there(background)
    library.forbid_copies(monkeypatch)
    sklearn.clone(GROUPS[case]).fit(moved[0], background=moved[1])


def test_no_groups_are_told_as_numpys(library, linear_data):
    target, (background, _) = linear_data
    with pytest.warns(UserWarning, match="no shrinkage shows more than one group.*shrinkage='auto' is used"):
        ours, theirs = assert_same(DiscriminativePCA(2, shrinkage="clusters"), library, target, [background])
    assert theirs.group_search_.chosen is None
    close(theirs.group_search_.split_shares, ours.group_search_.split_shares, 1e-10, "split_shares")


def test_groups_are_looked_for_in_batches_from_the_host(library, grouped_data, monkeypatch):
    monkeypatch.setattr("standout.selection._groups.MOST_ROWS", 150)
    target, background = grouped_data

    def there(rows):
        return on_device(rows, library.device, library=library.name, batch_rows=64)

    fitted = DiscriminativePCA(1, shrinkage="clusters").fit(there(target), background=there(background))
    # The rows of a sample of batches are others than those of a sample of an array.
    assert fitted.group_search_.chosen is not None
    scores = fitted.to_numpy().transform(target)[:, 0]
    assert max(scores[:100].min(), scores[100:].min()) > min(scores[:100].max(), scores[100:].max())


@pytest.mark.parametrize("source", ["array", "memory map", "iterator", "big-endian", "sparse"])
def test_batches_from_the_host_equal_one_array(source, library, linear_data, tmp_path):
    target, (background, _) = linear_data
    ours = DiscriminativePCA(2).fit(target, background=background)
    data = target
    if source == "memory map":
        np.save(tmp_path / "target.npy", target)
        data = np.load(tmp_path / "target.npy", mmap_mode="r")
    elif source == "iterator":
        data = (target[start : start + 70] for start in range(0, 300, 70))
    elif source == "big-endian":
        data = target.astype(">f8")
    elif source == "sparse":
        scipy_sparse = pytest.importorskip("scipy.sparse")
        data = scipy_sparse.csr_matrix(target)

    def there(rows):
        return on_device(rows, library.device, library=library.name, batch_rows=64)

    theirs = DiscriminativePCA(2).fit(there(data), background=there(background))
    close(library.back(theirs.components_), ours.components_, 1e-10, "components_")
    if source != "iterator":
        close(library.back(theirs.transform(there(data))), ours.transform(target), 1e-10, "transform")


def test_kernel_fits_read_batches_from_the_host(library, kernel_data):
    target, (background, _) = kernel_data

    def there(rows):
        return on_device(rows, library.device, library=library.name, batch_rows=32)

    for options in ({}, {"approximation": "fourier", "rank": 30}):
        model = KernelDiscriminativePCA(2, **options)
        ours = sklearn.clone(model).fit(target, background=background)
        theirs = sklearn.clone(model).fit(there(target), background=there(background))
        close(library.back(theirs.eigenvalues_), ours.eigenvalues_, 1e-9, "eigenvalues_")
    chosen = KernelDiscriminativePCA(2, approximation="pivoted", rank=40).fit(
        there(target), background=there(background)
    )
    assert 0.0 < chosen.residual_ < 0.5


def test_steps_of_a_pipeline_work_on_batches_where_they_are(library, linear_data):
    target, backgrounds = linear_data

    def there(rows):
        return on_device(rows, library.device, library=library.name, batch_rows=64)

    ours, theirs = (standout.make_pipeline(MinMaxScaler(), Normalizer(), DiscriminativePCA(2)) for _ in range(2))
    ours.fit(target, background=backgrounds)
    theirs.fit(there(target), background=[there(rows) for rows in backgrounds])
    close(library.back(theirs[-1].components_), ours[-1].components_, 1e-10, "components_")
    close(library.back(theirs.transform(there(target))), ours.transform(target), 1e-10, "transform")


def test_overlapped_copies_bring_every_batch_in_order(monkeypatch):
    # Streams and events of the CPU have nothing to wait for; threads, memory and the order of batches are real.
    torch = Torch().torch
    waited = []

    class Nothing:
        def __init__(self, *args):
            self.number = len(waited)

        def record(self, *args):
            waited.append("recorded")

        def synchronize(self):
            waited.append("waited")

        def wait_event(self, event):
            assert isinstance(event, Nothing)

    make = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *args, pin_memory=False, **options: make(*args, **options))
    monkeypatch.setattr(torch.cuda, "Stream", Nothing)
    monkeypatch.setattr(torch.cuda, "Event", Nothing)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", Nothing)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: False)
    batches = [np.full((size, 3), size, dtype=dtype) for size, dtype in ((5, "f8"), (9, "f4"), (2, "i4"), (1, "u1"))]
    batches.append(np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    arrived = [rows.numpy().copy() for rows in overlapped_copies(iter(batches), "cpu")]
    for found, expected in zip(arrived, batches, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    assert waited.count("recorded") == len(batches)
    assert waited[-2:] == ["waited", "waited"]

    def failing():
        yield batches[0]
        raise ValueError("the disk is gone")

    with pytest.raises(ValueError, match="the disk is gone"):
        list(overlapped_copies(failing(), "cpu"))
    halfway = overlapped_copies(iter(batches), "cpu")
    next(halfway)
    halfway.close()
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: True)
    assert [rows.shape[0] for rows in overlapped_copies(iter(batches), "cpu")] == [5, 9, 2, 1, 4]


def test_a_source_on_a_device_says_what_is_wrong(library, linear_data):
    target, (background, _) = linear_data
    holed = target.copy()
    holed[100, 5] = np.nan

    def there(rows, **options):
        return on_device(rows, library.device, library=library.name, **options)

    with pytest.raises(ValueError, match="batch 2 of the target: the first is NaN in row 36, column 5"):
        DiscriminativePCA(2).fit(there(holed, batch_rows=64), background=there(background))
    with pytest.raises(TypeError, match="background 1 is of numpy"):
        DiscriminativePCA(2).fit(there(target), background=background)
    with pytest.raises(ValueError, match="batch_rows=0 is less than 1. Give"):
        there(target, batch_rows=0)
    with pytest.raises(TypeError, match="batch_rows='many' is not a whole number. Give"):
        there(target, batch_rows="many")
    with pytest.raises(ValueError, match=f"device='nowhere' cannot be used by {library.name}"):
        on_device(target, "nowhere", library=library.name)
    with pytest.raises(ImportError, match="library='nolibrary' cannot be imported"):
        on_device(target, "cpu", library="nolibrary")
    with pytest.raises(TypeError, match="library=3 is not a name"):
        on_device(target, "cpu", library=3)
    with pytest.raises(ValueError, match="too few rows in the target: 1 sample"):
        DiscriminativePCA(2).fit(there(target[:1]), background=there(background))
    for model in (DiscriminativePCA(2), KernelDiscriminativePCA(2, approximation="fourier", rank=20)):
        with pytest.raises(ValueError, match="background 1 has 11 features, but the target has 12"):
            model.fit(there(target), background=there(iter([background[:, :-1]])))
    if library.name == "array_api_strict":
        with pytest.raises(TypeError, match="on array_api_strict.* already"):
            there(library.there(target))
    else:
        assert next(there(library.there(target)).parts()).shape == target.shape


def test_names_of_columns_travel_to_a_device(library, linear_data):
    target, (background, _) = linear_data
    columns = [f"column {number}" for number in range(12)]

    def there(rows, columns):
        return on_device(pd.DataFrame(rows, columns=columns), library.device, library=library.name)

    model = DiscriminativePCA(2).fit(there(target, columns), background=there(background, columns))
    assert list(model.feature_names_in_) == columns
    for call in (
        lambda other: DiscriminativePCA(2).fit(there(target, columns), background=other),
        lambda other: DiscriminativePCA(2).partial_fit(there(target, columns), background=other),
        model.transform,
    ):
        with pytest.raises(ValueError, match="in another order"):
            call(there(background, columns[::-1]))


@pytest.mark.parametrize("switched_on", [True, False])
def test_sparse_tensors_are_told_so(linear_data, switched_on):
    target, (background, _) = linear_data
    rows = Torch().there(target).to_sparse()
    with sklearn.config_context(array_api_dispatch=switched_on), pytest.raises(TypeError, match="Make it dense"):
        DiscriminativePCA(2).fit(rows, background=Torch().there(background))


def test_mixed_libraries_are_refused(library, linear_data):
    target, (background, _) = linear_data
    there = library.there
    with pytest.raises(TypeError, match="background 1 is of numpy on cpu. Give all datasets as arrays of one library"):
        DiscriminativePCA(2).fit(there(target), background=background)
    with pytest.raises(TypeError, match="background 2 is of numpy"):
        DiscriminativePCA(2).fit(there(target), background=[there(background), background])
    with pytest.raises(TypeError, match="batch 2 of the target is of numpy"):
        DiscriminativePCA(2).fit(iter([there(target), target]), background=there(background))
    with pytest.raises(TypeError, match="background 1 is of numpy"):
        DiscriminativePCA(2).fit(iter([there(target)]), background=background)
    for fitted, other in (
        (DiscriminativePCA(2).fit(there(target), background=there(background)), target),
        (DiscriminativePCA(2).fit(target, background=background), there(target)),
    ):
        for method in ("transform", "score"):
            with pytest.raises(TypeError, match=f"{method}.* must use the same namespace"):
                getattr(fitted, method)(other)
        with pytest.raises(TypeError, match="must use the same namespace"):
            fitted.inverse_transform(other[:, :2])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DiscriminativePCA(solver="lobpcg"), "solver='lobpcg' is for NumPy"),
        (ContrastivePCA(solver="lanczos", alpha=1.0), "solver='lanczos' is for NumPy"),
        (KernelDiscriminativePCA(kernel=minkowski), "kernel=<function minkowski.* is for NumPy"),
        (KernelDiscriminativePCA(kernel="precomputed"), "kernel='precomputed' is for NumPy"),
        (KernelContrastivePCA(kernel=["rbf", "linear"], kernel_weights="learn"), "kernel_weights='learn' is for NumPy"),
    ],
)
def test_what_there_is_for_numpy_only_is_refused(model, message, library, linear_data):
    target, (background, _) = linear_data
    with pytest.raises(TypeError, match=message):
        model.fit(library.there(target), background=library.there(background))


def test_what_looks_at_scores_wants_them_on_the_host(library, linear_data):
    target, (background, _) = (library.there(linear_data[0]), map(library.there, linear_data[1]))
    with pytest.raises(TypeError, match="is for NumPy arrays only.* Copy the array to the host first"):
        metrics.principal_angles(target, target)
    for look in (selection.alpha_path, selection.shrinkage_path, selection.stability):
        with pytest.raises(TypeError, match="is for NumPy arrays only.* or use the estimators"):
            look(target, background)


def test_bad_arrays_are_told_so(library, linear_data):
    target, (background, _) = linear_data
    there = library.there
    for wrong, message in (
        (np.ones(3), "Expected 2D array, got 1D"),
        (np.ones((3, 2)) * 1j, "Complex data not supported"),
        (np.ones((3, 0)), "0 feature"),
        (np.ones((1, 12)), "too few rows in the target: 1 sample"),
    ):
        with pytest.raises(ValueError, match=message):
            DiscriminativePCA(2).fit(there(wrong), background=there(background))
    with pytest.raises(ValueError, match="background 1 has 11 features, but the target has 12"):
        DiscriminativePCA(2).fit(there(target), background=there(background[:, :-1]))
    for value, shown in ((np.nan, "NaN"), (np.inf, "infinity")):
        holed = background.copy()
        holed[123, 4] = value
        for model in (DiscriminativePCA(2), KernelDiscriminativePCA(2)):
            with pytest.raises(ValueError, match=f"background 1: the first is {shown} in row 123, column 4"):
                model.fit(there(target), background=there(holed))
    fitted = DiscriminativePCA(2).fit(there(target), background=there(background))
    with pytest.raises(ValueError, match="NaN"):
        fitted.transform(there(holed * np.nan))
    with pytest.raises(ValueError, match="3 row|sample_weight has shape"):
        fitted.score(there(target), sample_weight=there(np.ones(3)))


def test_without_dispatch_an_array_on_a_device_is_refused_and_one_on_the_host_is_converted(linear_data):
    target, (background, _) = linear_data
    with sklearn.config_context(array_api_dispatch=False):
        with pytest.raises(TypeError, match=r"Switch on sklearn.set_config\(array_api_dispatch=True\)"):
            DiscriminativePCA(2).fit(Strict().there(target))
        tensors = [Torch().there(data) for data in (target, background)]
        fitted = DiscriminativePCA(2).fit(tensors[0], background=tensors[1])
        assert isinstance(fitted.components_, np.ndarray)
        assert isinstance(fitted.transform(tensors[0]), np.ndarray)


def test_gradients_are_left_behind(linear_data):
    target, (background, _) = linear_data
    tensor = Torch().there(target).requires_grad_()
    fitted = DiscriminativePCA(2).fit(tensor, background=Torch().there(background))
    assert not fitted.components_.requires_grad
    assert not fitted.transform(tensor).requires_grad


@pytest.mark.parametrize("kernel", [False, True])
def test_models_are_saved_as_numpys(kernel, library, linear_data, tmp_path):
    target, (background, _) = linear_data
    model = KernelDiscriminativePCA(2, approximation="pivoted", rank=20) if kernel else DiscriminativePCA(2)
    fitted = model.fit(library.there(target), background=library.there(background))
    with pytest.raises(TypeError, match=r"cannot be saved: attributes .* Save model.to_numpy\(\)"):
        standout.save(fitted, tmp_path / "model.skops")
    standout.save(fitted.to_numpy(), tmp_path / "model.skops")
    scores = standout.load(tmp_path / "model.skops").transform(target)
    close(scores, library.back(fitted.transform(library.there(target))), 1e-10, "transform")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "model",
    [DiscriminativePCA(), ContrastivePCA(alpha=1.0), KernelDiscriminativePCA(), KernelContrastivePCA(alpha=1.0)],
)
def test_scikit_learns_own_check_of_array_libraries(model, dtype, library):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_array_api_input(
            type(model).__name__,
            model,
            array_namespace=library.name,
            device_name="cpu" if library.name == "torch" else "CPU_DEVICE",
            dtype_name=dtype,
            check_values=dtype == "float64",
        )
