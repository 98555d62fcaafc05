"""Arrays of other libraries: the same answers as NumPy's, found where the arrays lie."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.utils.estimator_checks import check_array_api_input

import standout
from array_libraries import Torch, assert_same, close, dispatch, kernel_data, library, linear_data
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout.features import resolve_kernel

# Fixtures, which pytest finds by their names.
__all__ = ["dispatch", "kernel_data", "library", "linear_data"]

LINEAR = {
    "one background": (DiscriminativePCA(3), 1),
    "several backgrounds": (DiscriminativePCA(3, background_weights=[0.3, 0.7]), 2),
    "no background": (DiscriminativePCA(3), 0),
    "no shrinkage": (DiscriminativePCA(3, shrinkage=None), 1),
    "roots": (DiscriminativePCA(3, shrinkage=None, solver="root"), 2),
    "roots, no background": (DiscriminativePCA(3, solver="root"), 0),
    "tested": (DiscriminativePCA("auto", test="analytic"), 1),
    "tested, no shrinkage": (DiscriminativePCA(3, test="analytic", shrinkage=None), 1),
    "few columns": (DiscriminativePCA(2, n_columns=7), 2),
    "both sides": (DiscriminativePCA(3, side="both"), 1),
    "background's side": (ContrastivePCA(2, alpha=2.0, side="background"), 2),
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


@pytest.mark.parametrize("case", [case for case in LINEAR if not case.startswith(("tested", "roots", "both"))])
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
    # The weights of kernel values are divided by the pivots of the factor, the least of which is 3e-5. Scores are not.
    dual = ("components_", "candidates_") if isinstance(model, KernelContrastivePCA) else ()
    ours, theirs = assert_same(model, library, target, backgrounds[:n_backgrounds] or None, tol=1e-9, loose=dual)
    assert theirs.residual_ == pytest.approx(ours.residual_, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("approximation", ["exact", "pivoted"])
def test_kernels_of_counts_equal_numpys(approximation, library, kernel_data):
    target, backgrounds = (np.abs(kernel_data[0]), [np.abs(data) for data in kernel_data[1]])
    # Where two rows share a zero, the term of that column is nought by nought.
    target[3], backgrounds[0][5, 1] = 0.0, 0.0
    model = KernelDiscriminativePCA(2, kernel="chi2", approximation=approximation, rank=None)
    ours, theirs = assert_same(model, library, target, backgrounds, tol=1e-9)
    assert theirs.residual_ == pytest.approx(ours.residual_, abs=1e-9)
    with pytest.raises(ValueError, match="the kernel 'chi2' cannot be .*: X contains negative"):
        sklearn.clone(model).fit(library.there(-target), background=[library.there(data) for data in backgrounds])
    with pytest.raises(ValueError, match="the kernel 'chi2' cannot be .*: X contains negative"):
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
    [
        DiscriminativePCA(),
        ContrastivePCA(alpha=1.0),
        KernelDiscriminativePCA(epsilon=1e-3),
        KernelContrastivePCA(alpha=1.0),
    ],
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
