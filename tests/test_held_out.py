"""Held-out numbers: those of explicit fits without each fold, the same from every form of the data."""

import warnings

import numpy as np
import pytest
import sklearn
from scipy import linalg, optimize, sparse

from array_libraries import library
from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    scan,
)
from standout.estimators import fitted_test
from standout.moments import Folds, fold_of_rows, gather, gather_folds, ledoit_wolf
from standout.selection import _held_out, component_test
from standout.sources import Batch, InMemory

__all__ = ["library"]


def pair(rng, n_rows=90, n_features=12):
    """Two datasets with shared variance, and a direction of the target's own."""
    turn = rng.normal(size=(n_features, n_features))
    target, background = rng.normal(size=(n_rows, n_features)) @ turn, rng.normal(size=(n_rows + 30, n_features)) @ turn
    target[:, 0] += 6.0 * rng.normal(size=n_rows)
    return target + 2.0, background


def covariance(rows):
    centred = rows - rows.mean(axis=0)
    return centred.T @ centred / len(rows)


def by_refits(model, datasets, solve, n_folds):
    """Transcribe the definition: fits to the rows of all other folds, and variances of the rows of each."""
    d, weights = model.n_components_, model.weights_
    sums, counts = np.zeros((len(datasets), n_folds, d)), np.zeros((len(datasets), n_folds))
    full = covariance(datasets[0])
    for fold in range(n_folds):
        kept = [X[fold_of_rows(0, len(X), model.held_out) % n_folds != fold] for X in datasets]
        out = [X[fold_of_rows(0, len(X), model.held_out) % n_folds == fold] for X in datasets]
        filters = solve(kept, weights, d)
        # Components of each fold are those of the fit that they go with, at its scale.
        scale = np.sqrt(np.einsum("ij,jk,ik->i", model.components_, full, model.components_))
        own = np.sqrt(np.einsum("ji,jk,ki->i", filters, covariance(kept[0]), filters))
        cosines = np.abs(model.components_ @ full @ filters) / np.outer(scale, own)
        order = optimize.linear_sum_assignment(-cosines)[1]
        filters = filters[:, order] * (scale / own[order])
        for number, (rest, rows) in enumerate(zip(kept, out, strict=True)):
            squares = ((rows - rest.mean(axis=0)) @ filters) ** 2
            sums[number, fold] = squares.sum(axis=0) / (1 + 1 / len(rest))
            counts[number, fold] = len(rows)

    def ratio(chosen):
        variances = sums[:, chosen].sum(axis=1) / counts[:, chosen].sum(axis=1)[:, None]
        return variances[0] / (weights @ variances[1:])

    every = np.arange(n_folds)
    logs = np.log([ratio(every != fold) for fold in every])
    error = np.sqrt((n_folds - 1) / n_folds * np.sum((logs - logs.mean(axis=0)) ** 2, axis=0))
    return ratio(every), ratio(every) * error


def discriminative(shrinkage):
    def solve(kept, weights, d):
        b = 0.0
        for weight, X in zip(weights, kept[1:], strict=True):
            share = ledoit_wolf(gather(X, norms=True)) if shrinkage == "auto" else shrinkage
            c = covariance(X)
            b = b + weight * ((1 - share) * c + share * np.trace(c) / len(c) * np.eye(len(c)))
        return linalg.eigh(covariance(kept[0]), b)[1][:, ::-1][:, :d]

    return solve


@pytest.mark.parametrize("shrinkage", ["auto", 0.3])
@pytest.mark.parametrize(("n_features", "n_folds"), [(12, 10), (4, 5), (200, 10)])
def test_held_out_ratios_are_those_of_fits_without_each_fold(shrinkage, n_features, n_folds, rng):
    target, background = pair(rng, n_features=n_features)
    backgrounds = [background, rng.normal(size=(80, n_features))]
    model = DiscriminativePCA(2, shrinkage=shrinkage).fit(target, background=backgrounds)
    assert model.held_out_.n_folds == n_folds
    ratios, errors = by_refits(model, [target, *backgrounds], discriminative(shrinkage), n_folds)
    # Wide data go through inner products of their rows, which square the condition.
    tolerance = 1e-6 if n_features == 200 else 1e-10
    np.testing.assert_allclose(model.held_out_ratio_, ratios, rtol=tolerance)
    np.testing.assert_allclose(model.held_out_ratio_error_, errors, rtol=100 * tolerance)


def test_held_out_ratios_of_contrastive_pca_are_those_of_fits_without_each_fold(rng):
    target, background = pair(rng)

    def solve(kept, weights, d):
        return linalg.eigh(covariance(kept[0]) - 0.7 * covariance(kept[1]))[1][:, ::-1][:, :d]

    model = ContrastivePCA(2, alpha=0.7, held_out=4).fit(target, background=background)
    ratios, errors = by_refits(model, [target, background], solve, 4)
    np.testing.assert_allclose(model.held_out_ratio_, ratios, rtol=1e-10)
    np.testing.assert_allclose(model.held_out_ratio_error_, errors, rtol=1e-8)


@pytest.mark.parametrize("model", [KernelDiscriminativePCA(2, epsilon=1.0), KernelContrastivePCA(2, alpha=0.7)])
def test_a_linear_kernel_has_the_held_out_ratios_of_the_linear_method(model, rng):
    target, background = pair(rng)
    found = sklearn.clone(model).set_params(kernel="linear").fit(target, background=background)
    if isinstance(model, KernelContrastivePCA):
        linear = ContrastivePCA(2, alpha=0.7).fit(target, background=background)
        np.testing.assert_allclose(found.held_out_ratio_, linear.held_out_ratio_, rtol=1e-7)
    total = sum(len(X) * covariance(X) for X in (target, background))

    def solve(kept, weights, d):
        total = sum(len(X) * covariance(X) for X in kept)
        return linalg.eigh(covariance(kept[0]), covariance(kept[1]) + linalg.inv(total))[1][:, ::-1][:, :d]

    if isinstance(model, KernelDiscriminativePCA):
        vectors = linalg.eigh(covariance(target), covariance(background) + linalg.inv(total))[1][:, ::-1][:, :2]
        found.components_ = vectors.T
        ratios, _ = by_refits(found, [target, background], solve, 10)
        np.testing.assert_allclose(found.held_out_ratio_, ratios, rtol=1e-6)


MODELS = {
    "linear": DiscriminativePCA(2),
    "held-out": DiscriminativePCA(2, shrinkage="held-out"),
    "clusters": DiscriminativePCA(2, shrinkage="clusters"),
    "contrastive": ContrastivePCA(2, alpha="held-out"),
    "fourier": KernelDiscriminativePCA(2, approximation="fourier", rank=30, gamma=0.01, epsilon="held-out"),
}


def assert_same(found, expected, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(found.held_out_ratio_), expected.held_out_ratio_, rtol=rtol)
    np.testing.assert_allclose(np.asarray(found.held_out_ratio_error_), expected.held_out_ratio_error_, rtol=100 * rtol)
    for name in ("shrinkage_", "epsilon_", "alpha_"):
        if hasattr(expected, name):
            np.testing.assert_allclose(np.asarray(getattr(found, name)), getattr(expected, name), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:the shrinkage that was chosen")
@pytest.mark.parametrize("n_features", [12, 3])
@pytest.mark.parametrize("case", MODELS)
def test_every_form_of_the_data_gives_the_same_held_out_numbers(case, n_features, rng, tmp_path):
    target, background = pair(rng, n_features=n_features)
    model = MODELS[case]
    expected = sklearn.clone(model).fit(target, background=background)
    forms = {"sparse": [sparse.csr_array(X) for X in (target, background)]}
    if case != "clusters":
        forms["batches"] = [iter(np.array_split(X, 7)) for X in (target, background)]
    for name, X in (("target", target), ("background", background)):
        np.save(tmp_path / f"{name}.npy", X)
    forms["scan"] = [scan(tmp_path / f"{name}.npy", batch_rows=17) for name in ("target", "background")]
    dask = pytest.importorskip("dask.array", reason="Dask is not installed")
    forms["dask"] = [dask.from_array(X, chunks=(13, -1)) for X in (target, background)]
    for form, (one, other) in forms.items():
        if form == "sparse" and case == "fourier":
            continue
        # Ratios of 1e5, as random features of three columns have, cost digits.
        rtol = 1e-8 if case == "fourier" else 1e-10
        assert_same(sklearn.clone(model).fit(one, background=other), expected, rtol)


def test_another_library_gives_the_same_held_out_numbers(library, rng, monkeypatch):
    # SciPy itself is given no array of these, so it does not matter that it has been imported already.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    target, background = pair(rng)
    for model in (MODELS["linear"], MODELS["held-out"], MODELS["contrastive"]):
        expected = sklearn.clone(model).fit(target, background=background)
        with sklearn.config_context(array_api_dispatch=True):
            found = sklearn.clone(model).fit(library.there(target), background=library.there(background)).to_numpy()
        assert_same(found, expected)


def test_folds_are_of_equal_size_and_do_not_depend_on_batches(rng):
    X = rng.normal(size=(103, 3))
    folds = gather_folds(X, 5, n_dealt=10)
    assert isinstance(folds, Folds)
    assert sorted(part.count for part in folds.sums) in ([20, 20, 21, 21, 21], [20, 20, 20, 21, 22])
    numbers = np.concatenate([fold_of_rows(start, min(7, 103 - start), 10) for start in range(0, 103, 7)])
    np.testing.assert_array_equal(numbers, fold_of_rows(0, 103, 10))
    for fold, part in enumerate(folds.sums):
        np.testing.assert_allclose(part.mean, X[numbers % 5 == fold].mean(axis=0), rtol=1e-12)
    for fold, others in enumerate(folds.others()):
        np.testing.assert_allclose(others.covariance(), covariance(X[numbers % 5 != fold]), rtol=1e-10)


def test_without_folds_or_a_background_there_are_no_held_out_numbers(rng):
    target, background = pair(rng)
    plain = DiscriminativePCA(2, held_out=None).fit(target, background=background)
    with_folds = DiscriminativePCA(2).fit(target, background=background)
    np.testing.assert_allclose(plain.components_, with_folds.components_, rtol=1e-8, atol=1e-10)
    few = DiscriminativePCA(1).fit(target[:3], background=background[:3])
    after = with_folds.partial_fit(target, background=background)
    for model in (plain, few, after, DiscriminativePCA(2).fit(target)):
        assert not hasattr(model, "held_out_ratio_")
        assert not hasattr(model, "held_out_")
    for wrong in (1, 0, -3, 2.5, "all"):
        with pytest.raises((ValueError, TypeError)) as caught:
            DiscriminativePCA(held_out=wrong).fit(target, background=background)
        assert caught.value.parameter == "held_out"


def test_the_held_out_ratio_is_that_of_new_rows_where_the_in_sample_ratio_is_far_too_large():
    shares, in_sample = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        target, background = rng.normal(size=(2, 150, 100))
        target[:, 0] *= 3.0
        new, other = rng.normal(size=(2, 5000, 100))
        new[:, 0] *= 3.0
        model = DiscriminativePCA(1, shrinkage=0.1).fit(target, background=background)
        truth = np.var(model.transform(new)) / np.var(model.transform(other))
        shares.append(model.held_out_ratio_[0] / truth)
        in_sample.append(np.var(model.transform(target)) / np.var(model.transform(background)) / truth)
    assert np.median(shares) == pytest.approx(1.0, abs=0.2)
    assert np.median(in_sample) > 2.0


def test_rows_are_scored_by_the_fold_without_them(rng):
    target, background = pair(rng)
    held_out = DiscriminativePCA(1).fit(target, background=background).held_out_
    folds = held_out.fold_of(np.arange(len(target)))
    scores = np.einsum("ij,ij->i", target - held_out.means[0, folds], held_out.components[folds, 0])
    np.testing.assert_allclose(held_out.scores(target, np.arange(len(target)))[:, 0], scores, rtol=1e-9)
    # Rows of a fold have the mean of the other folds taken off, which adds about a part in the number of rows.
    assert np.mean(scores**2) == pytest.approx(held_out.target_variance[0], rel=0.03)


def test_a_gaussian_kernel_finds_a_bandwidth_of_the_size_of_the_distances(rng):
    target, background = pair(rng)
    for scale in (1.0, 1e3):
        found = KernelDiscriminativePCA(1, kernel="gaussian").fit(scale * target, background=scale * background)
        rows = np.vstack([target, background])
        distances = np.sqrt(((rows[:, None] - rows) ** 2).sum(axis=2))
        assert found.bandwidth_ == pytest.approx(scale * np.median(distances[np.triu_indices(len(rows), 1)]), rel=0.02)
    given = KernelDiscriminativePCA(1, kernel="gaussian", kernel_params={"bandwidth": found.bandwidth_})
    given.fit(1e3 * target, background=1e3 * background)
    np.testing.assert_allclose(given.eigenvalues_, found.eigenvalues_, rtol=1e-9)
    assert not hasattr(given, "bandwidth_")


TESTED = {
    "dpca": DiscriminativePCA(1),
    "dpca, held-out": DiscriminativePCA(1, shrinkage="held-out"),
    "cpca": ContrastivePCA(1),
    "cpca, one α": ContrastivePCA(1, alpha=1.0),
    "kdpca": KernelDiscriminativePCA(1, kernel="linear", epsilon="held-out"),
    "kcpca": KernelContrastivePCA(1, kernel="linear"),
}


@pytest.mark.filterwarnings("ignore:the shrinkage that was chosen")
@pytest.mark.parametrize("case", TESTED)
def test_every_method_can_be_tested_as_it_was_fitted(case):
    rng = np.random.default_rng(2)
    target, background = rng.normal(size=(40, 8)), rng.normal(size=(50, 8))
    larger = target * np.array([5, 1, 1, 1, 1, 1, 1, 1])
    for rows, n_real in ((target, 0), (larger, 1)):
        model = sklearn.clone(TESTED[case]).fit(rows, background=background)
        found = fitted_test(model, rows, background, n_components=1)
        np.testing.assert_allclose(found.ratios, model.eigenvalues_, rtol=1e-6)
        assert found.n_significant == n_real
        assert found.method == "permutation"
        # A clear null ends after some tens of permutations, 20 of which look at the path.
        assert found.n_permutations < 150 if n_real == 0 else found.n_permutations >= 199


@pytest.mark.parametrize("case", ["dpca, held-out", "kdpca", "cpca"])
def test_a_parameter_that_was_chosen_by_the_data_makes_no_false_alarms(case):
    alarms = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        target, background = rng.normal(size=(25, 15)), rng.normal(size=(25, 15))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = sklearn.clone(TESTED[case]).fit(target, background=background)
        found = fitted_test(model, target, background, n_components=1, n_permutations=39, random_state=seed)
        alarms.append(found.n_significant)
    # Of 60 at 5 %, more than 9 would be a chance of 1 in 1,000.
    assert sum(alarms) <= 9


def test_processes_change_nothing(rng):
    target, background = rng.normal(size=(30, 6)), rng.normal(size=(30, 6))
    one, two = (
        component_test(target, background, method="permutation", n_permutations=39, n_jobs=n_jobs)
        for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(one.p_values, two.p_values)
    assert one.n_permutations == two.n_permutations


def test_a_listener_is_told_of_every_permutation_and_the_time_left(rng):
    told = []
    found = component_test(
        rng.normal(size=(30, 4)),
        rng.normal(size=(30, 4)),
        method="permutation",
        progress=lambda *news: told.append(news),
    )
    assert len(told) == found.n_permutations
    assert [made for _, made, _, _ in told] == list(range(1, len(told) + 1))
    assert all(most == 199 and left >= 0.0 for _, _, most, left in told)


@pytest.mark.parametrize("n_columns", [None, 1])
def test_every_component_that_a_test_finds_has_a_ratio(rng, n_columns):
    target, background = rng.normal(size=(2, 100, 3))
    target[:, 1] *= 4
    target[:, 2] *= 3
    found = DiscriminativePCA("auto", n_columns=n_columns).fit(target, background=background)
    assert found.n_components_ == len(found.held_out_ratio_) == found.held_out_.components.shape[1] == 2
    # Two components need two columns at least.
    direct = DiscriminativePCA(2, n_columns=n_columns and 2).fit(target, background=background)
    np.testing.assert_allclose(found.held_out_ratio_, direct.held_out_ratio_)
    np.testing.assert_allclose(found.components_, direct.components_)


def test_folds_that_are_put_together_twice_keep_the_rule_by_which_rows_are_found(rng):
    rows = rng.normal(size=(60, 3))
    numbers = fold_of_rows(0, 60, 10)
    for first, second in ((5, 4), (4, 3), (4, 2), (9, 4), (10, 7)):
        folds = gather_folds(rows, first, n_dealt=10).fewer(second)
        for fold, part in enumerate(folds.sums):
            np.testing.assert_allclose(part.mean, rows[numbers % folds.n_folds == fold].mean(axis=0))


def test_scores_of_few_rows_beside_many_columns_are_those_of_the_held_out_ratio(monkeypatch, rng):
    # So many columns that five folds are enough, and a background of nine rows, which are enough for four.
    monkeypatch.setattr(_held_out, "MANY_FOLDS_SIZE", 20)
    target, background = rng.normal(size=(60, 25)), rng.normal(size=(9, 25))
    model = DiscriminativePCA(1, shrinkage=0.5).fit(target, background=background)
    found = model.held_out_
    assert found.n_folds == 4
    scores = found.scores(target, np.arange(60)) - found.shifts[0]
    # The mean of the other rows is itself off by a share of the variance.
    assert np.mean(scores**2) / (1 + 1 / 45) == pytest.approx(found.target_variance[0], rel=1e-3)
    parts = iter([target[:20], target[20:]]), iter([background])
    batches = DiscriminativePCA(1, shrinkage=0.5).fit(parts[0], background=parts[1])
    # These are counted too late for four folds.
    assert not hasattr(batches, "held_out_")


KINDS_OF_ROWS = ["plain", "far from zero", "one huge row", "one huge entry", "a column of one fold", "constant columns"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS_OF_ROWS)
def test_what_is_left_without_a_fold_is_what_its_rows_alone_give(kind, weighted, rng):
    rows = rng.normal(size=(60, 7)) * np.geomspace(1e-3, 1e3, 7)
    folds = fold_of_rows(0, 60, 10)
    if kind == "far from zero":
        rows += 1e8
    elif kind == "one huge row":
        rows[13] *= 1e9
    elif kind == "one huge entry":
        rows[13, 2] = 1e12
    elif kind == "a column of one fold":
        rows[folds != 4, 3] = 5.0
    elif kind == "constant columns":
        rows[:, [1, 5]] = 0.1
    weights = rng.exponential(size=60) if weighted else None

    def source(chosen):
        words = Batch(rows[chosen], weights=None if weights is None else weights[chosen])
        return InMemory(rows[chosen], "rows", words=words)

    left = gather_folds(source(slice(None)), 10, kind="scatter", norms=True).others()
    for fold, found in enumerate(left):
        expected = gather(source(folds != fold), kind="scatter", norms=True)
        spread = np.sqrt(expected.variances)
        assert found.count == expected.count
        assert found.effective_count == pytest.approx(expected.effective_count, rel=1e-12)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12, atol=1e-12 * spread.max())
        gap = np.abs(found.covariance() - expected.covariance())
        assert np.all(gap <= 1e-11 * np.multiply.outer(spread, spread))
        # With weights a change of the mean is approximate.
        assert found.quartic == pytest.approx(expected.quartic, rel=0.1 if weighted else 1e-9)
