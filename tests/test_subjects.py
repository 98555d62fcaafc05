"""Rows that belong together: folds, permutations and draws take whole subjects; dependent rows are told of."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import standout
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout._messages import CautionWarning, InvalidTypeError, InvalidValueError
from standout.estimators import fitted_test
from standout.moments import gather_folds
from standout.moments._folds import fold_of_subjects
from standout.selection import component_test, stability
from standout.selection._dealing import Dealing, drawn_subjects
from standout.sources import attached, joined_subjects, open_dataset

ESTIMATORS = [DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA]


def repeated(rng, n_subjects, n_rows, icc, width=10, first=0):
    """Rows with offsets of their subjects, and the subject of each row."""
    codes = np.repeat(np.arange(n_subjects), n_rows)
    offsets = rng.standard_normal((n_subjects, width))[codes]
    return np.sqrt(icc) * offsets + np.sqrt(1 - icc) * rng.standard_normal((len(codes), width)), codes + first


@pytest.fixture
def mice():
    rng = np.random.default_rng(3)
    return repeated(rng, 12, 10, 0.6), repeated(rng, 9, 14, 0.6, first=8)


# --- folds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_subject_is_in_one_fold_of_all_datasets(estimator, mice):
    (X, groups), (Y, others) = mice
    given = {"alpha": 1.0} if issubclass(estimator, ContrastivePCA | KernelContrastivePCA) else {}
    model = estimator(1, **given).fit(X, background=Y, groups=groups, background_groups=others)
    found = model.held_out_
    folds = [found.fold_of(np.arange(len(part)), number) for number, part in enumerate((groups, others))]
    pairs = set(zip([*groups, *others], np.concatenate(folds), strict=True))
    assert len(pairs) == len({*groups, *others})
    assert model.n_subjects_ == [12, 9]
    assert found.n_folds <= 9
    # Scores of held-out rows have the held-out variance, by the same folds.
    scores = [found.scores(part, np.arange(len(part)), number, project(model)) for number, part in enumerate((X, Y))]
    ratio = scores[0].var(axis=0) / scores[1].var(axis=0)
    assert ratio == pytest.approx(model.held_out_ratio_, rel=0.25)


def project(model):
    from standout.moments import project

    return model.feature_map_.project if hasattr(model, "feature_map_") else project


def test_folds_are_of_about_equal_size_in_subjects_and_rows():
    counts = np.random.default_rng(0).integers(1, 40, size=(2, 60))
    counts[0, :20] = 0
    counts[1, 40:] = 0
    folds = fold_of_subjects(counts, 5)
    assert np.ptp(np.bincount(folds)) <= 3
    for rows in counts:
        by_fold = np.bincount(folds, weights=rows)
        assert by_fold.min() > 0.6 * by_fold.max()
        # No fold lacks a dataset that has as many subjects as there are folds.
        assert (np.bincount(folds[rows > 0], minlength=5) > 0).all()


def test_every_path_has_the_same_folds(mice, tmp_path):
    """Arrays, frames, batches, scans, Dask, the form with labels: equal held-out ratios."""
    (X, groups), (Y, others) = mice
    fits = {
        "array": DiscriminativePCA().fit(X, background=Y, groups=groups, background_groups=others),
        "words": DiscriminativePCA().fit(
            pd.DataFrame(X), background=pd.DataFrame(Y), groups=pd.Series(groups), background_groups=others.astype(str)
        ),
        "batches": DiscriminativePCA().fit(
            iter([X[:7], X[7:50], X[50:]]), background=iter([Y[:100], Y[100:]]), groups=groups, background_groups=others
        ),
        "labels": DiscriminativePCA(target_label="a").fit(
            np.concatenate([X, Y]),
            ["a"] * len(X) + ["b"] * len(Y),
            groups=np.concatenate([groups, others]).astype(float),
        ),
    }
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    fits["scan"] = DiscriminativePCA().fit(
        standout.scan(tmp_path / "x.npy", batch_rows=11),
        background=[standout.scan(tmp_path / "y.npy")],
        groups=groups,
        background_groups=[others],
    )
    da = pytest.importorskip("dask.array")
    fits["dask"] = DiscriminativePCA().fit(
        da.from_array(X, chunks=(37, 10)), background=da.from_array(Y), groups=groups, background_groups=others
    )
    expected = fits["array"].held_out_ratio_
    for name, model in fits.items():
        np.testing.assert_allclose(model.held_out_ratio_, expected, rtol=1e-8, err_msg=name)


def test_wide_rows_have_the_folds_of_their_subjects():
    rng = np.random.default_rng(0)
    (X, groups), (Y, others) = (repeated(rng, 8, 4, 0.5, width=100, first=first) for first in (0, 8))
    model = DiscriminativePCA(1).fit(X, background=Y, groups=groups, background_groups=others)
    tall = DiscriminativePCA(1, solver="dense").fit(X, background=Y, groups=groups, background_groups=others)
    assert model.solver_ != "dense"
    np.testing.assert_allclose(model.held_out_ratio_, tall.held_out_ratio_, rtol=1e-6)


def test_held_out_ratios_of_subjects_are_not_fooled_by_their_offsets():
    """Nothing stands out: by rows the first ratio looks real, by subjects it does not."""
    rng = np.random.default_rng(1)
    (X, groups), (Y, others) = (repeated(rng, 15, 20, 0.7, first=first) for first in (0, 15))
    with pytest.warns(CautionWarning, match="neighbouring rows are alike"):
        by_rows = DiscriminativePCA(1).fit(X, background=Y)
    by_subject = DiscriminativePCA(1).fit(X, background=Y, groups=groups, background_groups=others)
    assert by_rows.held_out_ratio_[0] > 2.5
    assert by_subject.held_out_ratio_[0] < 2.0
    np.testing.assert_allclose(by_rows.components_, by_subject.components_, atol=1e-12)


def test_rows_as_their_own_subjects_are_folds_of_rows():
    X = np.random.default_rng(0).standard_normal((40, 3))
    (source,) = attached([open_dataset(X, "the target")], joined_subjects([np.arange(40)]))
    assert [part.count for part in gather_folds(source, 4).sums] == [10, 10, 10, 10]


# --- permutations ----------------------------------------------------------------------------------------------------


def test_whole_subjects_are_dealt_and_those_in_both_are_swapped():
    target, background = joined_subjects([list("aabbbcd"), list("ddccceeff")])
    dealing = Dealing.of([target, background])
    words = np.array(list("aabbbcd") + list("ddccceeff"))
    # a and b against e and f are dealt: 4 over 2; c and d are swapped: 2 each.
    assert dealing.n_relabelings == pytest.approx(6 * 4)
    seen = set()
    for order, sizes, _ in dealing.draws(np.random.default_rng(0), 100):
        of_rows = np.empty(len(words), dtype=int)
        of_rows[order] = np.repeat([0, 1], sizes)
        for word in "abef":
            assert len(set(of_rows[words == word])) == 1
        assert of_rows[5] != of_rows[9]
        assert of_rows[6] != of_rows[7] == of_rows[8]
        assert sum(of_rows[words == word][0] for word in "abef") == 2
        seen.add(of_rows.tobytes())
    assert len(seen) == 23


def test_stretched_subjects_have_the_scatter_that_their_datasets_had():
    rng = np.random.default_rng(0)
    subjects = joined_subjects([np.repeat(np.arange(5), 6), np.repeat(np.arange(5, 10), 6)])
    dealing = Dealing.of(subjects)
    rows = np.repeat(rng.standard_normal((10, 200)), 6, axis=0) + 0.1 * rng.standard_normal((60, 200))
    rows[:30] -= rows[:30].mean(axis=0)
    rows[30:] -= rows[30:].mean(axis=0)
    # Centred by their own means, five subjects have 4/5 of their scatter; dealt and centred again, 8/9 of that.
    stretched = dealing.stretched(rows)
    assert np.sum(stretched**2) / np.sum(rows**2) == pytest.approx(9 / 8, rel=0.01)
    within = rows - np.repeat(dealing.means(rows), 6, axis=0)
    np.testing.assert_allclose(stretched - np.repeat(dealing.means(stretched), 6, axis=0), within, atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_subjects_hold_the_level_where_rows_do_not(shared):
    """A quick look: 30 null datasets. `benchmarks/subjects.py` has 200 of each of many kinds."""
    found = {"rows": 0, "subjects": 0}
    for seed in range(30):
        rng = np.random.default_rng([seed, 7])
        (X, groups), (Y, others) = (repeated(rng, 8, 10, 0.5, width=5, first=first) for first in (0, 8))
        others = others - 8 * shared
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found["rows"] += component_test(X, Y, n_components=1).n_significant
        test = component_test(X, Y, n_components=1, groups=groups, background_groups=others, n_permutations=59)
        found["subjects"] += test.n_significant
        assert test.unit == "subjects"
    assert found["rows"] > 10
    # Seven of 30 at a level of 5 % have a chance of 0.04 %.
    assert found["subjects"] < 7


def test_what_the_subjects_of_the_target_have_is_found():
    rng = np.random.default_rng(0)
    (X, groups), (Y, others) = (repeated(rng, 20, 10, 0.3, first=first) for first in (0, 20))
    X[:, 3] += 2.5 * rng.standard_normal(20)[groups]
    for method in (
        lambda **given: component_test(X, Y, **given),
        lambda **given: DiscriminativePCA(1, test="auto").fit(X, background=Y, **given).component_test_,
        lambda **given: fitted_test(ContrastivePCA(1).fit(X, background=Y, **given), X, Y, **given),
        lambda **given: fitted_test(
            KernelDiscriminativePCA(1).fit(X, background=Y, **given), X, Y, n_components=1, n_permutations=39, **given
        ),
    ):
        test = method(groups=groups, background_groups=others)
        assert (test.n_significant, test.method, test.unit) == (1, "permutation", "subjects")


def test_few_relabelings_are_all_made():
    """Three against three subjects: 20 relabelings, and the smallest p-value is 1/20."""
    rng = np.random.default_rng(0)
    (X, groups), (Y, others) = (repeated(rng, 3, 30, 0.1, width=3, first=first) for first in (0, 3))
    X[:, 0] *= 4.0
    test = component_test(X, Y, groups=groups, background_groups=others, n_components=1, shrinkage=0.1)
    assert (test.n_permutations, test.n_made, test.n_ways) == (19, (19,), 20)
    assert test.p_values[0] == pytest.approx(1 / 20)
    # Each once: a random draw would repeat some, and the one that was observed.
    draws = Dealing.of(joined_subjects([list("abc"), list("def")])).draws(rng, 19)
    assert len({order.tobytes() for order, _, _ in draws} - {np.arange(6).tobytes()}) == 19


def test_a_background_without_weight_is_not_dealt():
    rng = np.random.default_rng(0)
    data = [repeated(rng, 6, 8, 0.4, first=first) for first in (0, 6, 12)]
    rows, groups = [part for part, _ in data], [codes for _, codes in data]
    both = component_test(
        rows[0], rows[1:], background_weights=[1, 0], groups=groups[0], background_groups=groups[1:], n_components=1
    )
    one = component_test(rows[0], rows[1], groups=groups[0], background_groups=groups[1], n_components=1)
    np.testing.assert_allclose(both.p_values, one.p_values)


# --- draws -----------------------------------------------------------------------------------------------------------


def test_whole_subjects_are_drawn_and_those_in_both_once_for_both():
    subjects = joined_subjects([list("aabbcdd"), list("ddccceeff")])
    words = [np.array(list(part)) for part in ("aabbcdd", "ddccceeff")]
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = drawn_subjects(subjects, rng)
        times = [{word: set(part[own == word]) for word in own} for part, own in zip(counts, words, strict=True)]
        assert all(len(several) == 1 for one in times for several in one.values())
        assert times[0]["c"] == times[1]["c"]
        assert times[0]["d"] == times[1]["d"]
        assert sum(next(iter(times[0][word])) for word in "ab") == 2


def test_the_spread_of_draws_of_subjects_is_that_of_fresh_subjects():
    """By rows the angle is far too small; the truth comes from fresh subjects."""
    truth, by_rows, by_subject = [], [], []
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        (X, groups), (Y, others) = (repeated(rng, 20, 15, 0.7, width=6, first=first) for first in (0, 20))
        X[:, 0] += 2.0 * rng.standard_normal(20)[groups]
        by_subject.append(stability(X, Y, n_components=1, n_bootstrap=30, groups=groups, background_groups=others))
        by_rows.append(stability(X, Y, n_components=1, n_bootstrap=30))
        truth.append(by_rows[-1].components[0])
    angles = [np.arccos(abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairwise(truth)]
    # Two fresh fits are sqrt(2) times as far from each other as from their mean.
    expected = np.mean(angles) / np.sqrt(2)
    assert np.mean([part.mean_angle[0] for part in by_rows]) < 0.6 * expected
    assert np.mean([part.mean_angle[0] for part in by_subject]) == pytest.approx(expected, rel=0.35)


# --- the user who does not know --------------------------------------------------------------------------------------


def caution_share(make, n=30):
    found = 0
    for seed in range(n):
        X, Y = make(np.random.default_rng([seed, 2]))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            DiscriminativePCA(2, held_out=None).fit(X, background=Y)
        found += any("neighbouring rows are alike" in str(one.message) for one in told)
    return found / n


def test_dependent_rows_are_told_of_and_independent_ones_are_not():
    def walk(rng):
        from scipy.signal import lfilter

        return (lfilter([1.0], [1.0, -0.5], rng.standard_normal((1000, 20)), axis=0) for _ in range(2))

    assert caution_share(lambda rng: (repeated(rng, 18, 15, 0.6, 20)[0], repeated(rng, 18, 15, 0.6, 20)[0])) >= 0.9
    assert caution_share(walk) >= 0.9
    assert caution_share(lambda rng: rng.standard_normal((2, 200, 20))) <= 0.05
    assert caution_share(lambda rng: rng.standard_normal((2, 60, 5))) <= 0.05


def test_rows_sorted_by_class_are_not_taken_for_dependent():
    def sorted_by_class(rng):
        X, Y = rng.standard_normal((2, 300, 10))
        X[:, 0] += np.repeat([0.0, 5.0, 10.0], 100)
        return X, Y

    assert caution_share(sorted_by_class) == 0.0


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"groups": slice(0, -1), "background_groups": ...}, InvalidValueError, "119 entries, but the target has 120"),
        ({"groups": ...}, InvalidValueError, "subjects of background 1 are not given"),
        ({"background_groups": ...}, InvalidValueError, "subjects of the target are not given"),
        (
            {"groups": "missing", "background_groups": ...},
            InvalidValueError,
            "no subject for row 5 of the target",
        ),
        ({"groups": "one", "background_groups": ...}, InvalidValueError, "the target has rows of one subject only"),
        ({"groups": "table", "background_groups": ...}, InvalidTypeError, r"shape \(120, 2\)"),
        ({"groups": ..., "background_groups": "two"}, InvalidValueError, r"2 background\(s\), but there are 1"),
    ],
)
def test_subjects_that_make_no_sense_are_refused(estimator, given, error, words, mice):
    (X, groups), (Y, others) = mice
    wrong = {
        "missing": np.where(np.arange(120) == 5, np.nan, groups),
        "one": np.zeros(120),
        "table": np.zeros((120, 2)),
        "two": [others, others],
    }
    known = {"groups": groups, "background_groups": others}
    given = {
        name: known[name] if value is ... else known[name][value] if isinstance(value, slice) else wrong[value]
        for name, value in given.items()
    }
    with pytest.raises(error, match=words):
        estimator(1).fit(X, background=Y, **given)


@pytest.mark.parametrize("missing", [None, float("nan"), "", pd.NA, pd.NaT])
def test_every_kind_of_missing_subject_is_found(missing, mice):
    (X, groups), (Y, others) = mice
    words = [str(code) for code in groups]
    words[7] = missing
    with pytest.raises(InvalidValueError, match="row 7"):
        DiscriminativePCA(1).fit(X, background=Y, groups=words, background_groups=others)


def test_too_many_or_too_few_rows_of_an_iterator_are_found_in_the_end(mice):
    (X, groups), (Y, others) = mice
    for codes in (groups[:-1], [*groups, 3]):
        with pytest.raises(InvalidValueError, match=f"{len(codes)} entries, but the target has 120 rows"):
            DiscriminativePCA(1).fit(iter([X[:50], X[50:]]), background=Y, groups=codes, background_groups=others)


def test_too_few_subjects_are_refused_with_the_number_that_would_do():
    rng = np.random.default_rng(0)
    (X, groups), (Y, others) = (repeated(rng, 2, 30, 0.3, first=first) for first in (0, 2))
    words = (
        "4 subjects can be dealt to the datasets in 6 ways only, but level 0.05 needs 20. At least 3 subjects in each"
    )
    with pytest.raises(InvalidValueError, match=words):
        component_test(X, Y, groups=groups, background_groups=others)
    with pytest.warns(CautionWarning, match="were not tested: 4 subjects"):
        DiscriminativePCA(1, test="auto").fit(X, background=Y, groups=groups, background_groups=others)
    with pytest.raises(InvalidValueError, match="5 that are in both"):
        component_test(X, Y, groups=groups, background_groups=groups)


def test_a_formula_for_independent_rows_is_refused(mice):
    (X, groups), (Y, others) = mice
    with pytest.raises(InvalidValueError, match="formula for independent rows"):
        component_test(X, Y, method="analytic", groups=groups, background_groups=others)
    with pytest.raises(InvalidValueError, match="formula for independent rows"):
        DiscriminativePCA(test="analytic").fit(X, background=Y, groups=groups, background_groups=others)


def test_with_labels_the_subjects_are_those_of_all_rows(mice):
    (X, groups), (Y, others) = mice
    with pytest.raises(InvalidValueError, match="one entry for each row of X as groups"):
        DiscriminativePCA(target_label=1).fit(X, np.arange(120) % 2, groups=groups, background_groups=others)


def test_subjects_of_one_row_each_are_told_of(rng):
    target, background = rng.normal(size=(2, 30, 3))
    with pytest.warns(UserWarning, match="every subject has one row"):
        DiscriminativePCA(1).fit(target, background=background, groups=range(30), background_groups=range(30, 60))
