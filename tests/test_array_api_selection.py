"""Weights, components and groups chosen for arrays of other libraries: NumPy's choices, made where the arrays lie."""

import numpy as np
import pytest
import sklearn

from array_libraries import assert_same, close, dispatch, kernel_data, library, linear_data
from standout import DiscriminativePCA, KernelDiscriminativePCA, contrast, selection
from standout.io import on_device
from standout.moments import gather

# Fixtures, which pytest finds by their names.
__all__ = ["dispatch", "kernel_data", "library", "linear_data"]

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
    with pytest.raises(TypeError, match="the permutation test needs all rows in memory"):
        selection.component_test(there(target), batches, method="permutation")
    ours = selection.component_test(target, background, method="analytic")
    for given in (there(background), batches, gather(there(background))):
        theirs = selection.component_test(there(target), given, method="analytic")
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
    assert ours.group_search_.view == theirs.group_search_.view
    assert ours.group_search_.found
    assert theirs.group_search_.found
    for name in ("parameters", "log_ratios", "split_shares", "background_shares", "standard_errors"):
        # Sums over 200 rows: nothing but rounding, seen at 1e-13.
        close(getattr(theirs.group_search_, name), getattr(ours.group_search_, name), 1e-10, name)
    moved = library.there(target), library.there(background)
    library.forbid_copies(monkeypatch)
    sklearn.clone(GROUPS[case]).fit(moved[0], background=moved[1])


def test_no_groups_are_told_as_numpys(library, linear_data):
    target, (background, _) = linear_data
    ours, theirs = assert_same(DiscriminativePCA(2, shrinkage="clusters"), library, target, [background])
    assert not theirs.group_search_.found
    close(theirs.group_search_.split_shares, ours.group_search_.split_shares, 1e-10, "split_shares")


def test_groups_are_looked_for_in_batches_from_the_host(library, grouped_data, monkeypatch):
    monkeypatch.setattr("standout.selection._groups.MOST_ROWS", 150)
    target, background = grouped_data

    def there(rows):
        return on_device(rows, library.device, library=library.name, batch_rows=64)

    fitted = DiscriminativePCA(1, shrinkage="clusters").fit(there(target), background=there(background))
    # The rows of a sample of batches are others than those of a sample of an array.
    assert fitted.group_search_.found
    scores = fitted.to_numpy().transform(target)[:, 0]
    assert max(scores[:100].min(), scores[100:].min()) > min(scores[:100].max(), scores[100:].max())
