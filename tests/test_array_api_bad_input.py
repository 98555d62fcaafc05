"""Arrays of other libraries that cannot be used: told so, with what to do."""

import numpy as np
import pytest
import sklearn

from array_libraries import Strict, Torch, dispatch, library, linear_data
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    metrics,
    selection,
)

# Fixtures, which pytest finds by their names.
__all__ = ["dispatch", "library", "linear_data"]


def minkowski(x, z):
    """A kernel of one's own."""
    return float(np.exp(-np.sum(np.abs(x - z) ** 1.5)))


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
    for value in (np.nan, np.inf):
        holed = background.copy()
        holed[123, 4] = value
        for model in (DiscriminativePCA(2), KernelDiscriminativePCA(2)):
            with pytest.raises(ValueError, match="NaN or infinity") as caught:
                model.fit(there(target), background=there(holed))
            facts = caught.value.facts
            assert (facts["name"], facts["row"], facts["column"]) == ("background 1", 123, 4)
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
