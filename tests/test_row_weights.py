"""Weights of rows: they act as repeated rows do, in every representation and on every path."""

import numpy as np
import pytest
from scipy import sparse

from array_libraries import dispatch, library
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
    scan,
)
from standout._messages import InvalidValueError
from standout.moments import Folds, gather, gather_folds, ledoit_wolf
from standout.selection import stability
from standout.sources import beside, open_dataset

# Fixtures, which pytest finds by their names.
__all__ = ["dispatch", "library"]

LINEAR = {
    "dpca": lambda: DiscriminativePCA(2, shrinkage=0.2),
    "cpca": lambda: ContrastivePCA(2, alpha=1.5),
}
KERNEL = {
    "kernel": lambda: KernelDiscriminativePCA(2, kernel="rbf", gamma=0.1, epsilon=0.01),
    "landmarks": lambda: KernelDiscriminativePCA(
        2, kernel="rbf", gamma=0.1, epsilon=0.01, approximation=np.random.default_rng(3).normal(size=(15, 5))
    ),
    "kernel contrastive": lambda: KernelContrastivePCA(2, kernel="poly", degree=2, alpha=1.0),
}


@pytest.fixture
def rows(rng):
    target, background = rng.normal(size=(60, 5)) * [3, 1, 1, 1, 2] + 5.0, rng.normal(size=(50, 5)) - 2.0
    return target, background, rng.integers(0, 4, size=60), rng.integers(1, 4, size=50)


def with_weights(data, weights, name="the data"):
    return beside(open_dataset(data, name), weights=np.asarray(weights, dtype=float))


def assert_same_view(one, other, data, atol=1e-8):
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-8)
    scores, reference = np.asarray(one.transform(data)), np.asarray(other.transform(data))
    np.testing.assert_allclose(np.abs(scores), np.abs(reference), atol=atol * np.abs(reference).max())


# --- moments ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["scatter", "root", "rows"])
@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_whole_weights_give_the_moments_of_repeated_rows(kind, shape, offset, rng):
    data, weights = rng.normal(size=shape) + offset, rng.integers(0, 4, size=shape[0])
    weights[0] = 2
    found, repeated = (
        gather(with_weights(data, weights), kind=kind),
        gather(np.repeat(data, weights, axis=0), kind=kind),
    )
    assert found.total_weight == weights.sum()
    directions = rng.normal(size=(shape[1], 3))
    # An offset of a million costs six of the sixteen digits of the numbers themselves.
    scale = 1e-9 if offset else 1e-12
    np.testing.assert_allclose(found.mean, repeated.mean, rtol=1e-12)
    np.testing.assert_allclose(found.covariance(), repeated.covariance(), atol=scale * repeated.covariance().max())
    np.testing.assert_allclose(found.apply(directions), repeated.apply(directions), atol=10 * scale)
    np.testing.assert_allclose(found.variance(directions), repeated.variance(directions), rtol=1e-6)
    np.testing.assert_allclose(found.root().T @ found.root(), repeated.covariance(), atol=1e-8)
    assert found.squared_norm == pytest.approx(repeated.squared_norm, rel=1e-8)


@pytest.mark.parametrize("kinds", [("scatter", "scatter"), ("root", "root"), ("rows", "rows"), ("rows", "scatter")])
@pytest.mark.parametrize("plain_first", [False, True])
def test_weighted_moments_merge(kinds, plain_first, rng):
    data, weights = rng.normal(size=(31, 4)), rng.uniform(0.1, 3.0, size=31)
    if plain_first:
        weights[:11] = 1.0
    whole = gather(with_weights(data, weights), norms=True)
    first = gather(data[:11], kind=kinds[0], norms=True)
    if not plain_first:
        first = gather(with_weights(data[:11], weights[:11]), kind=kinds[0], norms=True)
    both = first + gather(with_weights(data[11:], weights[11:]), kind=kinds[1], norms=True)
    assert both.count == 31
    assert both.effective_count == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    np.testing.assert_allclose(both.mean, whole.mean, atol=1e-14)
    np.testing.assert_allclose(both.covariance(), whole.covariance(), atol=1e-13)
    # The sums with squared weights are moved by a scatter that is nearly theirs.
    assert ledoit_wolf(both) == pytest.approx(ledoit_wolf(whole), rel=2e-2)


def test_equal_weights_change_nothing(rng):
    data = rng.normal(size=(50, 7)) * np.arange(1, 8)
    plain, weighted = gather(data, norms=True), gather(with_weights(data, np.full(50, 3.0)), norms=True)
    np.testing.assert_allclose(weighted.covariance(), plain.covariance(), rtol=1e-12, atol=1e-12)
    assert weighted.effective_count == pytest.approx(50)
    assert ledoit_wolf(weighted) == pytest.approx(ledoit_wolf(plain), rel=1e-10)


def test_shrinkage_estimates_the_noise_of_the_weighted_covariance(rng):
    """The best share, found by simulation: the expected squared error of C over its squared distance to c I."""
    scale, weights = np.sqrt(np.linspace(0.5, 2.0, 12)), rng.uniform(0.0, 1.0, size=80) ** 2
    truth = np.diag(scale**2)
    covariances, shares = [], []
    for _ in range(300):
        moments = gather(with_weights(rng.normal(size=(80, 12)) * scale, weights), norms=True)
        covariances.append(moments.covariance())
        shares.append(ledoit_wolf(moments))
    noise = np.mean([np.sum((found - truth) ** 2) for found in covariances])
    middle = np.eye(12) * np.trace(truth) / 12
    best = noise / (noise + np.sum((truth - middle) ** 2))
    # The estimate is consistent; with 80 rows it was within a tenth over seeds.
    assert np.mean(shares) == pytest.approx(best, rel=0.12)


def test_folds_of_weighted_rows_add_up(rng):
    data, weights = rng.normal(size=(40, 3)), rng.uniform(size=40)
    folds = gather_folds(with_weights(data, weights), 4)
    assert isinstance(folds, Folds)
    np.testing.assert_allclose(folds.total().covariance(), gather(with_weights(data, weights)).covariance(), atol=1e-14)


# --- estimators -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [*LINEAR.values(), *KERNEL.values()], ids=[*LINEAR, *KERNEL])
def test_whole_weights_give_the_fit_of_repeated_rows(make, rows):
    target, background, own, theirs = rows
    weighted = make().fit(target, background=background, sample_weight=own, background_sample_weight=theirs)
    # In random order: equal neighbours would be taken for rows of one subject.
    orders = [np.random.default_rng(0).permutation(np.repeat(np.arange(len(times)), times)) for times in (own, theirs)]
    repeated = make().fit(target[orders[0]], background=background[orders[1]])
    # Kernel matrices of repeated rows have the same rank, but other pivots.
    assert_same_view(weighted, repeated, target, 1e-8 if make in LINEAR.values() else 1e-5)


@pytest.mark.parametrize("make", LINEAR.values(), ids=LINEAR)
def test_wide_data_with_weights(make, rng):
    target, background = rng.normal(size=(12, 80)), rng.normal(size=(14, 80))
    target[:, 3] += 5 * rng.normal(size=12)
    own = rng.integers(1, 4, size=12)
    weighted = make().fit(target, background=background, sample_weight=own)
    repeated = make().fit(np.repeat(target, own, axis=0), background=background)
    assert_same_view(weighted, repeated, target)
    assert weighted.held_out_ratio_[0] > 0


def test_the_held_out_ratio_of_wide_rows_is_that_of_the_same_rows_by_matrices(rng):
    target, background, weights = rng.normal(size=(30, 40)), rng.normal(size=(35, 40)), rng.uniform(0.5, 2.0, size=30)
    target[:, 0] += 4 * rng.normal(size=30)
    by_rows, by_matrices = (
        DiscriminativePCA(1, shrinkage=0.3, solver=solver).fit(target, background=background, sample_weight=weights)
        for solver in ("reduced", "dense")
    )
    np.testing.assert_allclose(by_rows.held_out_ratio_, by_matrices.held_out_ratio_, rtol=1e-8)


@pytest.mark.parametrize("make", LINEAR.values(), ids=LINEAR)
def test_paths_agree(make, rows, tmp_path):
    import dask.array as da

    target, background, own, theirs = rows
    given = {"sample_weight": own + 0.5, "background_sample_weight": [theirs]}
    reference = make().fit(target, background=background, **given)
    np.save(tmp_path / "target.npy", target)
    ways = {
        "batches": (iter([target[:7], target[7:40], target[40:]]), iter([background[:30], background[30:]])),
        "scan": (scan(tmp_path / "target.npy"), background),
        "dask": (da.from_array(target, chunks=(13, 5)), da.from_array(background, chunks=(20, 5))),
        "sparse": (sparse.csr_array(target), sparse.csr_array(background)),
    }
    for x, y in ways.values():
        found = make().fit(x, background=y, **given)
        np.testing.assert_allclose(found.eigenvalues_, reference.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(found.components_, reference.components_, atol=1e-9)
        np.testing.assert_allclose(found.held_out_ratio_, reference.held_out_ratio_, rtol=1e-8)


def test_weights_on_another_array_library(library, rows):
    target, background, own, theirs = rows
    given = {"sample_weight": own + 0.5, "background_sample_weight": theirs}
    for make in LINEAR.values():
        reference = make().fit(target, background=background, **given)
        found = make().fit(library.there(target), background=library.there(background), **given).to_numpy()
        np.testing.assert_allclose(found.components_, reference.components_, atol=1e-9)
        np.testing.assert_allclose(found.held_out_ratio_, reference.held_out_ratio_, rtol=1e-8)


def test_labels_and_weights(rows):
    target, background, own, theirs = rows
    both, y = np.vstack([target, background]), np.repeat([1, 0], [60, 50])
    labelled = DiscriminativePCA(2, target_label=1).fit(both, y, sample_weight=np.concatenate([own, theirs]))
    apart = DiscriminativePCA(2).fit(target, background=background, sample_weight=own, background_sample_weight=theirs)
    assert_same_view(labelled, apart, target)


def test_a_pipeline_hands_weights_to_the_last_step(rows):
    from sklearn.preprocessing import FunctionTransformer

    target, background, own, _ = rows
    piped = make_pipeline(FunctionTransformer(), DiscriminativePCA(2)).fit(
        target, background=background, sample_weight=own
    )
    plain = DiscriminativePCA(2).fit(target, background=background, sample_weight=own)
    assert_same_view(piped[-1], plain, target)
    in_parts = make_pipeline(FunctionTransformer(), DiscriminativePCA(2)).fit(
        iter([target[:20], target[20:]]), background=background, sample_weight=own
    )
    assert_same_view(in_parts[-1], plain, target)


def test_tests_and_stability_know_of_weights(rows, rng):
    target, background, own, theirs = rows
    given = {"sample_weight": own + 1.0, "background_sample_weight": theirs}
    tested = DiscriminativePCA(1, test="auto", random_state=0).fit(target, background=background, **given)
    assert tested.component_test_.method == "permutation"
    assert tested.p_values_[0] < 0.05
    found = stability(with_weights(target, own + 1.0), with_weights(background, theirs), n_bootstrap=20, random_state=0)
    fitted = DiscriminativePCA(2).fit(target, background=background, **given)
    np.testing.assert_allclose(found.components, fitted.components_, atol=1e-8)


WRONG = {
    "too few": ({"sample_weight": np.ones(3)}, ["sample_weight", "3", "60"]),
    "negative": ({"sample_weight": -np.ones(60)}, ["sample_weight", "non-negative"]),
    "all zero": ({"background_sample_weight": np.zeros(50)}, ["sample_weight", "zero"]),
    "one row left": ({"sample_weight": np.eye(60)[0]}, ["1 row", "2"]),
    "for two backgrounds": ({"background_sample_weight": [np.ones(50), np.ones(50)]}, ["2 background", "1"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_weights_are_refused(case, rows):
    given, words = WRONG[case]
    with pytest.raises(InvalidValueError) as error:
        DiscriminativePCA(1).fit(rows[0], background=rows[1], **given)
    assert all(word in str(error.value) for word in words), error.value


def test_batches_with_another_number_of_rows_are_refused(rows):
    for count in (59, 61):
        with pytest.raises(ValueError, match=str(count)):
            DiscriminativePCA(1).fit(iter([rows[0]]), background=rows[1], sample_weight=np.ones(count))
