"""Batches and merging: whatever the way the rows come, the answer is that of one fit on all of them."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import standout
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout.moments import ScatterMoments

LANDMARKS = np.random.default_rng(5).normal(size=(25, 5)) * 2
ESTIMATORS = {
    "dPCA": DiscriminativePCA(),
    "dPCA, no shrinkage": DiscriminativePCA(shrinkage=None),
    "dPCA, roots": DiscriminativePCA(shrinkage=None, solver="root"),
    "dPCA, number found": DiscriminativePCA(n_components="auto"),
    "dPCA, worst case": DiscriminativePCA(background_weights="worst-case"),
    "dPCA, both sides": DiscriminativePCA(side="both"),
    "cPCA": ContrastivePCA(alpha=1.5),
    # With folds α is chosen by them, and sums have none.
    "cPCA, automatic": ContrastivePCA(held_out=None),
    "KdPCA, landmarks": KernelDiscriminativePCA(gamma=0.05, approximation=LANDMARKS),
    "KdPCA, Fourier": KernelDiscriminativePCA(gamma=0.05, approximation="fourier", rank=40),
    "KdPCA, two kernels": KernelDiscriminativePCA(
        kernel=["rbf", "linear"], kernel_weights=[0.5, 0.5], approximation=LANDMARKS
    ),
    "KcPCA": KernelContrastivePCA(gamma=0.05, alpha=1.5, approximation=LANDMARKS),
}


def datasets(seed=0, n_backgrounds=2):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(240, 5)) * [5, 1, 1, 3, 2] + 3.0
    backgrounds = [rng.normal(size=(150 + 30 * k, 5)) * [5, 1, 1 + k, 1, 1] - k for k in range(n_backgrounds)]
    return target, backgrounds


def assert_same(first, second, rows):
    np.testing.assert_allclose(first.eigenvalues_, second.eigenvalues_, rtol=1e-10)
    scores = first.transform(rows)
    np.testing.assert_allclose(second.transform(rows), scores, rtol=0, atol=1e-10 * np.abs(scores).max())


def cut(rows, rng, n_batches):
    """Cut rows, shuffled, into batches of any size."""
    shuffled = rows[rng.permutation(len(rows))]
    return np.split(shuffled, np.sort(rng.integers(0, len(rows) + 1, n_batches - 1)))


@pytest.mark.parametrize("n_backgrounds", [0, 1, 2])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_batches_in_any_order_give_the_fit_on_all_rows(name, n_backgrounds):
    if n_backgrounds == 0 and name == "dPCA, number found":
        pytest.skip("without a background there is nothing to test components against")
    rng = np.random.default_rng(1)
    target, backgrounds = datasets(n_backgrounds=n_backgrounds)
    whole = clone(ESTIMATORS[name]).fit(target, background=backgrounds or None)
    calls = [(batch, [None] * n_backgrounds) for batch in cut(target, rng, 4)]
    for number, background in enumerate(backgrounds):
        calls += [(None, [b if k == number else None for k in range(n_backgrounds)]) for b in cut(background, rng, 3)]
    calls = [call for call in calls if any(part is not None and len(part) for part in (call[0], *call[1]))]
    model = clone(ESTIMATORS[name])
    for number in rng.permutation(len(calls)):
        batch, others = calls[number]
        model.partial_fit(batch, background=others or None)
    assert_same(whole, model, target)


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_any_cut_gives_the_same_moments(seed, n_batches):
    rng = np.random.default_rng(seed)
    target, (background,) = datasets(seed % 7, 1)
    model = DiscriminativePCA()
    for batch in cut(target, rng, n_batches):
        if len(batch):
            model.partial_fit(batch)
    model.partial_fit(background=background)
    assert_same(DiscriminativePCA().fit(target, background=background), model, target)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_estimators_of_several_places_merge_into_the_fit_on_all_rows(name, way):
    target, backgrounds = datasets()
    places = []
    for place in range(3):
        model = clone(ESTIMATORS[name])
        places.append(getattr(model, way)(target[place::3], background=[b[place::3] for b in backgrounds]))
    before = places[1].transform(target)
    merged = places[0].merge(places[1]).merge(places[2])
    assert merged is places[0]
    assert_same(clone(ESTIMATORS[name]).fit(target, background=backgrounds), merged, target)
    np.testing.assert_array_equal(places[1].transform(target), before)


def test_one_place_may_have_the_target_and_another_the_background():
    target, (background,) = datasets(n_backgrounds=1)
    merged = DiscriminativePCA().partial_fit(target).merge(DiscriminativePCA().partial_fit(background=background))
    assert_same(DiscriminativePCA().fit(target, background=background), merged, target)


def test_a_fit_goes_on_with_batches():
    target, backgrounds = datasets()
    model = DiscriminativePCA().fit(target[:100], background=[b[:50] for b in backgrounds])
    model.partial_fit(target[100:], background=[b[50:] for b in backgrounds])
    assert_same(DiscriminativePCA().fit(target, background=backgrounds), model, target)


def test_fit_starts_anew():
    target, backgrounds = datasets()
    model = DiscriminativePCA().partial_fit(target * 7.0, background=backgrounds)
    model.fit(target, background=backgrounds)
    assert_same(DiscriminativePCA().fit(target, background=backgrounds), model, target)


def test_pivoted_landmarks_of_a_fit_serve_later_batches():
    target, (background,) = datasets(n_backgrounds=1)
    model = KernelDiscriminativePCA(gamma=0.05, approximation="pivoted", rank=30).fit(target, background=background)
    landmarks = model.feature_map_.landmarks
    model.partial_fit(target, background=background)
    fixed = KernelDiscriminativePCA(gamma=0.05, approximation=landmarks)
    fixed.fit(np.vstack([target, target]), background=np.vstack([background, background]))
    np.testing.assert_allclose(model.eigenvalues_, fixed.eigenvalues_, rtol=1e-6)


def test_labels_may_come_in_any_batch():
    target, backgrounds = datasets()
    X = np.vstack([target, *backgrounds])
    y = np.repeat(["stim", "ctrl", "blank"], [len(target), *map(len, backgrounds)])
    whole = DiscriminativePCA(target_label="stim").fit(X, y)
    model = DiscriminativePCA(target_label="stim")
    for start in range(0, len(X), 100):  # the first batches have the target alone, the last ones no target
        model.partial_fit(X[start : start + 100], y[start : start + 100])
    assert model.background_labels_ == whole.background_labels_ == ["blank", "ctrl"]
    assert_same(whole, model, target)
    halves = [DiscriminativePCA(target_label="stim").partial_fit(X[half::2], y[half::2]) for half in range(2)]
    assert_same(whole, halves[0].merge(halves[1]), target)


def test_frames_sparse_matrices_and_iterators_are_batches_too():
    target, (background,) = datasets(n_backgrounds=1)
    columns = list("abcde")
    whole = DiscriminativePCA().fit(pd.DataFrame(target, columns=columns), background=background)
    model = DiscriminativePCA().partial_fit(pd.DataFrame(target[:80], columns=columns))
    model.partial_fit(
        (pd.DataFrame(batch, columns=columns) for batch in (target[80:90], target[90:])),
        background=sparse.csr_array(background),
    )
    assert list(model.feature_names_in_) == columns
    assert_same(whole, model, pd.DataFrame(target, columns=columns))
    with pytest.raises(ValueError, match="in another order"):
        model.partial_fit(background=pd.DataFrame(background, columns=columns[::-1]))


def test_batches_in_single_precision_are_multiplied_in_double(rng):
    target, background = (rng.normal(size=(200, 5)).astype(np.float32) for _ in range(2))
    by_batches = DiscriminativePCA().fit(iter(np.array_split(target, 3)), background=iter([background]))
    exact = DiscriminativePCA().fit(np.float64(target), background=np.float64(background))
    np.testing.assert_allclose(by_batches.eigenvalues_, exact.eigenvalues_, rtol=1e-12)


def test_components_are_there_as_soon_as_there_are_directions_for_them(rng):
    # Two rows about their mean have one direction: two datasets, two components.
    target, background = rng.normal(size=(2, 5)), rng.normal(size=(2, 5))
    model = DiscriminativePCA(2, shrinkage=0.5).partial_fit(target)
    assert not hasattr(model, "components_")
    model.partial_fit(background=background)
    whole = DiscriminativePCA(2, shrinkage=0.5).fit(target, background=background)
    # The second ratio is zero: the target has one direction.
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-9, atol=1e-14)
    three = DiscriminativePCA(3, shrinkage=0.5).partial_fit(target, background=background)
    assert not hasattr(three, "components_")


def test_with_too_few_rows_there_are_no_components_yet():
    target, (background,) = datasets(n_backgrounds=1)
    model = DiscriminativePCA().partial_fit(target[:1])
    with pytest.raises(NotFittedError):
        model.transform(target)
    model.partial_fit(target[1:])
    model.transform(target)
    model.partial_fit(background=background[:1])  # its covariance is not known yet
    with pytest.raises(NotFittedError):
        model.transform(target)
    model.partial_fit(background=background[1:])
    assert_same(DiscriminativePCA().fit(target, background=background), model, target)


@pytest.mark.parametrize("name", ["dPCA", "dPCA, roots", "cPCA", "KdPCA, landmarks", "KdPCA, Fourier"])
def test_saved_moments_can_be_merged(name, tmp_path):
    target, backgrounds = datasets()
    for half in range(2):
        place = clone(ESTIMATORS[name]).partial_fit(target[half::2], background=[b[half::2] for b in backgrounds])
        standout.save(place, tmp_path / f"{half}.skops", moments=True)
    first, second = (standout.load(tmp_path / f"{half}.skops") for half in range(2))
    assert_same(clone(ESTIMATORS[name]).fit(target, background=backgrounds), first.merge(second), target)


def test_sums_alone_are_not_saved_without_them(tmp_path):
    target, (background,) = datasets(n_backgrounds=1)
    model = DiscriminativePCA().partial_fit(background=background)
    with pytest.raises(ValueError, match=r"no components yet, only sums .* moments=True"):
        standout.save(model, tmp_path / "model.skops")
    standout.save(model, tmp_path / "model.skops", moments=True)
    merged = standout.load(tmp_path / "model.skops").partial_fit(target)
    assert_same(DiscriminativePCA().fit(target, background=background), merged, target)


def test_a_model_is_saved_without_its_moments_unless_asked(tmp_path):
    wide = np.random.default_rng(0).normal(size=(400, 100))
    model = DiscriminativePCA().fit(wide, background=wide[:300])
    standout.save(model, tmp_path / "small.skops")
    standout.save(model, tmp_path / "large.skops", moments=True)
    assert (tmp_path / "small.skops").stat().st_size < 60_000
    assert (tmp_path / "large.skops").stat().st_size > 2 * 100 * 100 * 8
    loaded = standout.load(tmp_path / "small.skops")
    with pytest.raises(AttributeError, match=r"this estimator keeps no sums .* save it with moments=True"):
        loaded.partial_fit(wide)
    with pytest.raises(ValueError, match="the other estimator keeps no sums"):
        model.merge(loaded)


def test_no_rows_are_kept(tmp_path):
    wide = np.random.default_rng(0).normal(size=(20, 100))
    model = DiscriminativePCA().fit(wide, background=wide + 1.0)
    assert "_sums" not in vars(model)
    with pytest.raises(ValueError, match="the model keeps no sums over its rows"):
        standout.save(model, tmp_path / "model.skops", moments=True)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="fewer rows than columns"):
        model.merge(model)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, X, Y: m.partial_fit(), ValueError, "neither the target nor a background has rows"),
        (lambda m, X, Y: m.partial_fit(X[:, :3]), ValueError, "3 features, but .* 5 features"),
        (lambda m, X, Y: m.partial_fit(background=Y[:, :3]), ValueError, "background 1 has 3 features"),
        (lambda m, X, Y: m.partial_fit(iter([X[:, :3]])), ValueError, "the target has 3 features"),
        (lambda m, X, Y: m.partial_fit(X * np.nan), ValueError, "NaN"),
        (lambda m, X, Y: m.merge(ContrastivePCA().fit(X)), TypeError, "cannot be merged with"),
        (lambda m, X, Y: m.merge(3), TypeError, "cannot be merged with an object of type int"),
        (lambda m, X, Y: m.merge(DiscriminativePCA()), NotFittedError, "not fitted"),
        (lambda m, X, Y: m.merge(DiscriminativePCA().fit(X[:, :3])), ValueError, "3 features"),
        (lambda m, X, Y: m.merge(DiscriminativePCA().fit(X, background=[Y, Y])), ValueError, r"the other 2"),
    ],
)
def test_bad_batches_are_refused_and_change_nothing(call, error, message):
    target, (background,) = datasets(n_backgrounds=1)
    model = DiscriminativePCA().fit(target, background=background)
    before = model.transform(target)
    with pytest.raises(error, match=message):
        call(model, target, background)
    np.testing.assert_array_equal(model.transform(target), before)
    model.partial_fit(target)
    assert model._sums[0].count == 2 * len(target)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (DiscriminativePCA(shrinkage="clusters"), r"shrinkage='clusters' needs the rows.*Use shrinkage='auto'"),
        (DiscriminativePCA(test="permutation"), r"test='permutation' needs the rows"),
        (KernelDiscriminativePCA(epsilon="clusters", approximation="fourier"), r"epsilon='clusters' needs the rows"),
        (
            KernelDiscriminativePCA(kernel=["rbf", "linear"], kernel_weights="learn", approximation=LANDMARKS),
            r"kernel_weights='learn' needs the rows",
        ),
    ],
)
def test_choices_that_look_at_rows_are_refused(estimator, message):
    target, backgrounds = datasets()
    assert not hasattr(estimator, "partial_fit")  # this is how scikit-learn asks
    with pytest.raises(AttributeError, match=message):
        estimator.partial_fit(target, background=backgrounds)


@pytest.mark.parametrize("method", [DiscriminativePCA, ContrastivePCA])
@pytest.mark.parametrize(
    ("name", "value"), [("robust", "rows"), ("blocks", 5), ("variation", "within"), ("subject_weights", "equal")]
)
def test_sums_do_not_tell_rows_and_subjects_apart(method, name, value):
    message = f"{name}={value!r} needs the rows of the data, but only sums .* Use {name}="
    with pytest.raises(AttributeError, match=message):
        method(**{name: value}).partial_fit  # noqa: B018
    with pytest.raises(ValueError, match=message):
        method.from_moments((np.eye(3), 50), (np.eye(3), 50), **{name: value})


def test_coordinates_that_depend_on_all_rows_have_no_partial_fit():
    model = KernelDiscriminativePCA()
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="Use approximation='fourier', or an array of landmarks"):
        model.partial_fit(LANDMARKS)


@pytest.mark.parametrize(
    "other",
    [
        KernelDiscriminativePCA(gamma=0.06, approximation=LANDMARKS),
        KernelDiscriminativePCA(gamma=0.05, approximation=LANDMARKS[:20]),
        KernelDiscriminativePCA(gamma=0.05, approximation=LANDMARKS + 0.1),
        KernelDiscriminativePCA(gamma=0.05, approximation="fourier", rank=25),
    ],
)
def test_sums_of_other_coordinates_are_not_merged(other):
    target, backgrounds = datasets()
    model = KernelDiscriminativePCA(gamma=0.05, approximation=LANDMARKS).fit(target, background=backgrounds)
    with pytest.raises(ValueError, match="different kernel coordinates"):
        model.merge(other.fit(target, background=backgrounds))


def labelled(labels=("stim", "ctrl")):
    target, (background,) = datasets(n_backgrounds=1)
    return np.vstack([target, background]), np.repeat(labels, [len(target), len(background)])


@pytest.mark.parametrize(
    ("before", "after", "labels"),
    [("stim", "ctrl", "['ctrl']"), ("stim", None, "['ctrl']"), (None, "stim", "no labels")],
)
def test_rows_are_told_apart_in_every_batch_as_in_the_first(before, after, labels):
    X, y = labelled()
    model = DiscriminativePCA(target_label=before).partial_fit(X, None if before is None else y)
    with pytest.raises(ValueError, match="the rows before") as caught:
        model.set_params(target_label=after).partial_fit(X, y)
    assert (caught.value.parameter, caught.value.value) == ("target_label", after)
    assert labels in caught.value.facts["labels"]
    assert sum(part.count for part in model._sums) == len(X)


def test_places_with_different_targets_are_not_merged():
    X, y = labelled()
    model = DiscriminativePCA(target_label="stim").fit(X, y)
    with pytest.raises(ValueError, match="'stim', the other 'ctrl'"):
        model.merge(DiscriminativePCA(target_label="ctrl").fit(X, y))


def test_labels_of_several_batches_must_be_of_one_sort():
    X, y = labelled((1, 0))
    model = DiscriminativePCA(target_label=1).fit(X, y)
    with pytest.raises(TypeError, match=r"cannot be sorted together: \[0, 'b'\]"):
        model.partial_fit(X[:4], ["b"] * 4)
    assert model.background_labels_ == [0]


@pytest.mark.parametrize("given", [1, 3])
def test_a_batch_has_all_backgrounds_or_none(given):
    target, backgrounds = datasets()
    model = DiscriminativePCA().fit(target, background=backgrounds)
    with pytest.raises(ValueError, match=rf"{given} background\(s\), but the rows before had 2"):
        model.partial_fit(target, background=[backgrounds[0]] * given)
    assert model._sums[0].count == len(target)


@pytest.mark.parametrize("name", ["dPCA", "KdPCA, landmarks", "KdPCA, Fourier", "KdPCA, two kernels"])
def test_batches_of_another_width_are_told_whatever_they_come_as(name, tmp_path):
    target, (background,) = datasets(n_backgrounds=1)
    np.save(tmp_path / "narrow.npy", target[:, :3])
    fresh, known = clone(ESTIMATORS[name]), clone(ESTIMATORS[name]).fit(target, background=background)
    for narrow in (iter([target[:, :3]]), standout.scan(tmp_path / "narrow.npy")):
        with pytest.raises(ValueError, match="the target has 3 features, but what came before has 5"):
            known.partial_fit(narrow)
    for narrow in (iter([background[:, :3]]), standout.scan(tmp_path / "narrow.npy")):
        with pytest.raises(ValueError, match="background 1 has 3 features, but .* has 5"):
            fresh.partial_fit(target, background=narrow)
        with pytest.raises(ValueError, match="background 1 has 3 features, but .* has 5"):
            fresh.partial_fit(iter([target]), background=iter([background[:, :3]]))


def test_a_first_batch_that_was_refused_leaves_nothing_behind():
    target, (background,) = datasets(n_backgrounds=1)
    model = DiscriminativePCA()
    with pytest.raises(ValueError, match="5 features"):
        model.partial_fit(pd.DataFrame(target[:, :3], columns=list("abc")), background=background)
    model.partial_fit(iter([target]), background=background)
    assert not hasattr(model, "feature_names_in_")
    assert_same(DiscriminativePCA().fit(target, background=background), model, target)


def test_backgrounds_of_batches_are_asked_for_as_those_of_a_fit_are():
    asked = DiscriminativePCA().get_metadata_routing()
    assert asked.partial_fit.requests["background"] is asked.fit.requests["background"] is True


@pytest.mark.parametrize("method", [DiscriminativePCA, partial(ContrastivePCA, alpha=1.0)], ids=["dPCA", "cPCA"])
def test_few_wide_rows_are_kept_by_a_small_root_that_is_no_row(method, rng):
    target, background = rng.normal(size=(2, 12, 400))
    expected = method(2).fit(target, background=background)
    model = method(2)
    for start in range(0, 12, 4):
        model.partial_fit(target[start : start + 4], background=background[start : start + 4])
    # Two scatter matrices would have 2,560,000 bytes.
    assert len(pickle.dumps(model)) < 300_000
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(model.components_ @ expected.patterns_.T), np.eye(2), atol=1e-6)
    centred = target - target.mean(axis=0)
    kept = np.vstack([part.scatter_root for part in model._sums])
    assert np.abs(kept[:, None, :] - centred[None]).max(axis=2).min() > 0.1
    # With more rows than half the columns, the matrix is the smaller form.
    more = rng.normal(size=(300, 400))
    model.partial_fit(more)
    assert isinstance(model._sums[0], ScatterMoments)
    np.testing.assert_allclose(model._sums[0].covariance(), np.cov(np.vstack([target, more]).T, bias=True), atol=1e-10)


def test_few_wide_rows_of_files_are_kept_by_a_small_root_too(rng, tmp_path):
    parts = dict(zip(("target", "background"), rng.normal(size=(2, 12, 400)), strict=True))
    for name, rows in parts.items():
        np.save(tmp_path / f"{name}.npy", rows)
    target, background = (standout.scan(tmp_path / f"{name}.npy") for name in parts)
    model = DiscriminativePCA(2).partial_fit(target, background=background)
    assert [part.scatter_root.shape for part in model._sums] == [(12, 400)] * 2
    expected = DiscriminativePCA(2).partial_fit(parts["target"], background=parts["background"])
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-8)


def test_partitions_without_rows_add_nothing(rng):
    target, background = rng.normal(size=(2, 60, 4))
    expected = DiscriminativePCA(2).fit(target, background=background)
    model = DiscriminativePCA(2).partial_fit(target[:0], background=background[:0])
    model.partial_fit(target[:0], background=background[:30])
    model.partial_fit(target, background=background[30:]).partial_fit(target[:0])
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_)
    with pytest.raises(ValueError, match="3 features|3 columns|has 3"):
        model.partial_fit(np.zeros((0, 3)))
    labelled = DiscriminativePCA(2, target_label=1).partial_fit(target[:0], [])
    labelled.partial_fit(np.vstack([target, background]), np.repeat([1, 0], 60))
    np.testing.assert_allclose(labelled.eigenvalues_, expected.eigenvalues_)
