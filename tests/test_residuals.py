"""What is left of rows: covariates taken out, variation within and between subjects, differences, blocks, weights."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import standout
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout._messages import CautionWarning, InvalidTypeError, InvalidValueError
from standout.cli import main
from standout.estimators import fitted_test
from standout.selection import component_test
from standout.selection._dependence import block_length

ESTIMATORS = [DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA]


@pytest.fixture
def batches():
    """A target with a factor along column 3, and a batch effect of twice its variance along column 7."""
    rng = np.random.default_rng(0)
    words = np.array(["first", "second"])[rng.integers(0, 2, size=300)]
    X, Y = rng.standard_normal((2, 300, 10))
    X[:, 3] += 4.0 * rng.standard_normal(300)
    X[:, 7] += 4.0 * np.sqrt(2.0) * np.where(words == "first", -1.0, 1.0)
    X += 100.0
    return X, Y, words


def residuals(rows, *covariates):
    """Transcribe: what is left by a regression with a constant, and the degrees of freedom that it has cost."""
    design = np.column_stack([np.ones(len(rows)), *covariates])
    left = rows - design @ np.linalg.lstsq(design, rows, rcond=None)[0]
    lost = design.shape[1] - 1
    return rows.mean(axis=0) + left * np.sqrt((len(rows) - 1) / (len(rows) - 1 - lost))


# --- covariates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_adjusting_is_fitting_the_residuals(estimator, batches):
    X, Y, words = batches
    rng = np.random.default_rng(1)
    age, weights = rng.standard_normal((2, 300))
    table = pd.DataFrame({"batch": words, "age": age})
    found = estimator(1).fit(X, background=Y, adjust=table, background_adjust=weights)
    expected = estimator(1).fit(residuals(X, words == "second", age), background=residuals(Y, weights))
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(found.held_out_ratio_, expected.held_out_ratio_, rtol=1e-8)


def test_a_batch_effect_hides_a_factor_unless_it_is_taken_out(batches):
    X, Y, words = batches
    hidden = DiscriminativePCA(1).fit(X, background=Y)
    assert np.argmax(np.abs(hidden.components_)) == 7
    shown = DiscriminativePCA(1).fit(X, background=Y, adjust=words)
    rows = np.random.default_rng(5).standard_normal((1000, 10))
    rows[:, 3] *= 4.0
    assert np.corrcoef(hidden.transform(rows)[:, 0], rows[:, 3])[0, 1] ** 2 < 0.1
    assert np.corrcoef(shown.transform(rows)[:, 0], rows[:, 3])[0, 1] ** 2 > 0.85


def test_every_path_is_adjusted_alike(batches, tmp_path):
    X, Y, words = batches
    frames = []
    for name, rows in (("x", X), ("y", Y)):
        frame = pd.DataFrame(rows, columns=[f"g{number}" for number in range(10)])
        frame.insert(2, "batch", words)
        frame["age"] = np.arange(300.0) ** 2
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frames.append(frame)
    names = ["batch", "age"]
    fits = {"frame": DiscriminativePCA(2).fit(frames[0], background=frames[1], adjust=names)}
    scans = [standout.scan(tmp_path / f"{name}.csv", beside=names, batch_rows=37) for name in "xy"]
    fits["scan"] = DiscriminativePCA(2).fit(scans[0], background=scans[1], adjust=names)
    tables = [scan.read() for scan in scans]
    fits["table"] = DiscriminativePCA(2).fit(tables[0], background=tables[1:], adjust=names)
    given = {"adjust": frames[0][names], "background_adjust": frames[1][names]}
    da = pytest.importorskip("dask.array")
    fits["dask"] = DiscriminativePCA(2).fit(
        da.from_array(X, chunks=(70, 10)), background=da.from_array(Y, chunks=(300, 10)), **given
    )
    fits["labels"] = DiscriminativePCA(2, target_label=1).fit(
        np.concatenate([X, Y]), np.repeat([1, 0], 300), adjust=pd.concat(given.values())
    )
    for name, model in fits.items():
        np.testing.assert_allclose(model.eigenvalues_, fits["frame"].eigenvalues_, rtol=1e-8, err_msg=name)
        np.testing.assert_allclose(model.held_out_ratio_, fits["frame"].held_out_ratio_, rtol=1e-8, err_msg=name)


def test_weighted_rows_are_adjusted_by_weighted_regression(batches):
    X, Y, words = batches
    times = np.random.default_rng(2).integers(1, 4, size=300)
    found = DiscriminativePCA(1, shrinkage=0.1).fit(X, background=Y, adjust=words, sample_weight=times)
    design = np.column_stack([np.ones(300), words == "second"])
    root = np.sqrt(times)[:, None]
    left = X - design @ np.linalg.lstsq(root * design, root * X, rcond=None)[0]
    expected = DiscriminativePCA(1, shrinkage=0.1).fit(left, background=Y, sample_weight=times)
    np.testing.assert_allclose(found.eigenvalues_ * (298 / 299), expected.eigenvalues_, rtol=1e-8)


def test_a_column_that_is_not_there_is_told_with_its_parameter_and_its_dataset(batches):
    X, Y, _ = batches
    frames = [pd.DataFrame(part).rename(columns=str) for part in (X, Y)]
    with pytest.raises(InvalidValueError, match="adjust='batch' is not a column of the target"):
        DiscriminativePCA(1).fit(frames[0], background=frames[1], adjust=["batch"])
    frames[0]["batch"] = "a"
    with pytest.raises(InvalidValueError, match="adjust='batch' is not a column of background 1"):
        DiscriminativePCA(1).fit(frames[0], background=frames[1], adjust=["batch"])


@pytest.mark.parametrize(
    ("adjust", "error", "words"),
    [
        (np.zeros(299), InvalidValueError, "299 rows, but the target has 300"),
        ([None, *["a"] * 299], InvalidValueError, "no value of 'number 0' for row 0"),
        (np.full(300, np.inf), InvalidValueError, "no value of 'number 0' for row 0"),
        (np.eye(300), InvalidValueError, "explain all of the 300 rows"),
        (np.zeros((300, 1, 1)), InvalidTypeError, "a column for each covariate"),
        (["batch"], InvalidValueError, "kept beside the target"),
    ],
)
def test_covariates_that_make_no_sense_are_refused(batches, adjust, error, words):
    X, Y, _ = batches
    with pytest.raises(error, match=words):
        DiscriminativePCA(1).fit(X, background=Y, adjust=adjust)
    with pytest.raises(InvalidTypeError, match="read only once"):
        DiscriminativePCA(1).fit(iter([X]), background=Y, adjust=np.arange(300))
    labels = np.repeat([1, 0], [len(X), len(Y)])
    with pytest.raises(InvalidValueError, match="adjust has 300 rows, but the data has 600"):
        DiscriminativePCA(1, target_label=1).fit(np.vstack([X, Y]), labels, adjust=np.arange(300.0))


# --- within and between subjects -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:every subject has one row")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_variation_within_and_between_is_that_of_centred_rows_and_of_means(estimator, tmp_path):
    rng = np.random.default_rng(0)
    groups, others = np.repeat(np.arange(12), 8), np.repeat(np.arange(12, 30), 5)
    X, Y = rng.standard_normal((96, 6)) + 50.0, rng.standard_normal((90, 6))
    X += np.repeat(3.0 * rng.standard_normal((12, 6)), 8, axis=0)
    np.save(tmp_path / "x.npy", X)
    means = [pd.DataFrame(rows).groupby(codes).mean() for rows, codes in ((X, groups), (Y, others))]
    left = [
        (rows - mean.loc[codes].to_numpy()) * np.sqrt(len(rows) / (len(rows) - len(mean)))
        for rows, codes, mean in ((X, groups, means[0]), (Y, others, means[1]))
    ]
    given = {"background": Y, "groups": groups, "background_groups": others}
    within = estimator(1, variation="within").fit(X, **given)
    expected = estimator(1).fit(left[0], **{**given, "background": left[1]})
    np.testing.assert_allclose(within.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(within.held_out_ratio_, expected.held_out_ratio_, rtol=1e-8)
    between = estimator(1, variation="between").fit(X, **given)
    alone = {"background": means[1].to_numpy(), "groups": np.arange(12), "background_groups": np.arange(12, 30)}
    of_means = estimator(1).fit(means[0].to_numpy(), **alone)
    np.testing.assert_allclose(between.eigenvalues_, of_means.eigenvalues_, rtol=1e-8)
    if estimator is DiscriminativePCA:
        scan = standout.scan(tmp_path / "x.npy", batch_rows=11)
        for variation, model in (("within", within), ("between", between)):
            found = estimator(1, variation=variation).fit(scan, **given)
            np.testing.assert_allclose(found.eigenvalues_, model.eigenvalues_, rtol=1e-8)


def test_subjects_that_count_alike_are_rows_by_their_weights():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), [100, *[10] * 9])
    X, Y = rng.standard_normal((190, 4)), rng.standard_normal((100, 4))
    X[:100, 0] *= 10.0
    others = np.repeat(np.arange(10, 20), 10)
    given = {"background": Y, "groups": groups, "background_groups": others}
    equal = DiscriminativePCA(1, subject_weights="equal").fit(X, **given)
    weights = np.where(groups == 0, 0.1, 1.0)
    expected = DiscriminativePCA(1).fit(X, **given, sample_weight=weights, background_sample_weight=np.ones(100))
    np.testing.assert_allclose(equal.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    by_rows = DiscriminativePCA(1).fit(X, **given)
    assert equal.eigenvalues_[0] < 0.4 * by_rows.eigenvalues_[0]


@pytest.mark.filterwarnings("ignore:every subject has one row")
def test_weights_go_with_the_subjects_that_are_dealt():
    """Subjects that count alike, with rows repeated: the same test as of each row once."""
    rng = np.random.default_rng(0)
    rows, times = rng.standard_normal((20, 5)), rng.integers(1, 9, size=20)
    rows[:10, 0] *= 4.0
    codes = np.arange(20)
    plain = component_test(
        rows[:10], rows[10:], shrinkage=0.3, n_components=1, groups=codes[:10], background_groups=codes[10:]
    )
    again, groups = np.repeat(rows, times, axis=0), np.repeat(codes, times)
    first = groups < 10
    model = DiscriminativePCA(1, shrinkage=0.3, subject_weights="equal", test="permutation", held_out=None)
    model.fit(again[first], background=again[~first], groups=groups[first], background_groups=groups[~first])
    np.testing.assert_allclose(model.component_test_.ratios, plain.ratios, rtol=1e-8)
    np.testing.assert_allclose(model.p_values_, plain.p_values)
    np.testing.assert_allclose(model.component_test_.edges, plain.edges, rtol=1e-6)


@pytest.mark.parametrize("parameters", [{"variation": "within"}, {"subject_weights": "equal"}, {"variation": "inside"}])
def test_what_is_about_subjects_needs_subjects(parameters):
    X = np.random.default_rng(0).standard_normal((40, 3))
    with pytest.raises(InvalidValueError):
        DiscriminativePCA(1, **parameters).fit(X, background=X[::-1])
    with pytest.raises(AttributeError, match="partial_fit is not possible"):
        DiscriminativePCA(1, **parameters).partial_fit(X, background=X)


# --- differences -----------------------------------------------------------------------------------------------------


def test_differences_are_those_of_neighbours_in_order_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    offsets = 100.0 * rng.standard_normal((20, 5))
    rows = np.concatenate([offsets + rng.standard_normal((20, 5)) for _ in range(3)])
    groups, order = np.tile(np.arange(20), 3), np.repeat(["2021", "2022", "2023"], 20)
    found = standout.differences(rows, groups, order)
    assert found.shape == (40, 5)
    # Offsets cancel, and the variance is that of a row about its subject.
    assert found.var() == pytest.approx(1.0, abs=0.25)
    shuffled = rng.permutation(60)
    again = standout.differences(rows[shuffled], groups[shuffled], order[shuffled])
    np.testing.assert_array_equal(found, again)
    first = (rows[20] - rows[0]) / np.sqrt(2.0)
    assert np.min(np.abs(found - first).max(axis=1)) == 0.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"order": None}, "is not given"),
        ({"order": [0, 0, 0, 1]}, "two rows of subject 'a' at the same place"),
        ({"order": [0, 1, 2]}, "has shape"),
        ({"groups": list("abcd")}, "names no subject twice"),
        ({"groups": list("abc")}, "3 entries"),
    ],
)
def test_differences_that_cannot_be_taken_are_refused(given, words):
    known = {"groups": list("aabb"), "order": [0, 1, 0, 1]}
    with pytest.raises(InvalidValueError, match=words):
        standout.differences(np.ones((4, 2)), **{**known, **given})


# --- time ------------------------------------------------------------------------------------------------------------


def remembering(rng, n_rows, memory, width=5):
    from scipy.signal import lfilter

    return lfilter([1.0], [1.0, -memory], rng.standard_normal((n_rows + 300, width)), axis=0)[300:]


def test_blocks_are_subjects_of_neighbouring_rows():
    rng = np.random.default_rng(0)
    X, Y = (remembering(rng, n_rows, 0.5) for n_rows in (205, 300))
    model = DiscriminativePCA(1, blocks=20, test="auto").fit(X, background=Y)
    # Folds go by the order of the names.
    groups = [f"0:{min(number // 20, 9):09d}" for number in range(205)]
    others = [f"1:{number // 20:09d}" for number in range(300)]
    same = DiscriminativePCA(1, test="auto").fit(X, background=Y, groups=groups, background_groups=others)
    np.testing.assert_allclose(model.held_out_ratio_, same.held_out_ratio_)
    np.testing.assert_allclose(model.p_values_, same.p_values_)
    assert (model.component_test_.unit, model.n_subjects_, model.block_length_) == ("blocks", [10, 15], 20)
    contrastive = ContrastivePCA(1, blocks=20).fit(X, background=Y)
    assert fitted_test(contrastive, X, Y, n_components=1).unit == "blocks"


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_blocks_are_several_times_as_long_as_rows_remember(memory):
    scores = remembering(np.random.default_rng(1), 20_000, memory, width=1)
    # The integrated autocorrelation time of such rows is (1 + memory) / (1 - memory).
    assert block_length([scores], 20_000) == pytest.approx(8 * (1 + memory) / (1 - memory), rel=0.3)


def test_blocks_that_would_be_too_few_are_told_of():
    rng = np.random.default_rng(0)
    X, Y = (remembering(rng, 400, 0.95) for _ in range(2))
    with pytest.warns(CautionWarning, match="has few such blocks"):
        model = DiscriminativePCA(1, blocks="auto").fit(X, background=Y)
    assert model.block_length_ == 400 // 12


@pytest.mark.parametrize(("blocks", "words"), [(0, "blocks"), (150, "one block"), ("long", "blocks"), (1.5, "blocks")])
def test_blocks_that_make_no_sense_are_refused(blocks, words):
    X = np.random.default_rng(0).standard_normal((100, 3))
    with pytest.raises((InvalidValueError, InvalidTypeError), match=words):
        DiscriminativePCA(1, blocks=blocks).fit(X, background=X[::-1])
    with pytest.raises(InvalidTypeError, match="iterator"):
        DiscriminativePCA(1, blocks=10).fit(iter([X]), background=X[::-1])
    with pytest.raises(InvalidValueError, match="together with groups"):
        DiscriminativePCA(1, blocks=10).fit(X, background=X, groups=np.arange(100), background_groups=np.arange(100))


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_takes_out_covariates_and_takes_blocks(batches, tmp_path, capsys):
    X, Y, words = batches
    for name, rows in (("x", X), ("y", Y)):
        frame = pd.DataFrame(rows, columns=[f"g{number}" for number in range(10)])
        frame.assign(batch=words, mouse=np.repeat(np.arange(30), 10)).to_csv(tmp_path / f"{name}.csv", index=False)
    common = ["fit", tmp_path / "x.csv", "-b", tmp_path / "y.csv", "--shrinkage", "auto", "--n-components", "1"]

    def found(*options):
        out = tmp_path / "-".join(options).replace("--", "")
        assert main([str(word) for word in [*common, *options, "-o", out]]) == 0, capsys.readouterr().err
        capsys.readouterr()
        return json.loads((out / "summary.json").read_text())

    expected = DiscriminativePCA(1).fit(X, background=Y, adjust=words, background_adjust=words)
    for way in ([], ["--stream"]):
        adjusted = found("--adjust", "batch", "--drop", "mouse", *way)
        assert adjusted["components"][0]["ratio"] == pytest.approx(expected.held_out_ratio_[0], rel=1e-6)
        assert adjusted["asked"]["adjusted for"] == "batch"
    blocks = found("--blocks", "25", "--drop", "batch", "--drop", "mouse")
    assert blocks["test"]["unit"] == "blocks"
    assert "12 blocks, 300 rows" in blocks["question"]
    means = found("--subject-column", "mouse", "--variation", "between", "--drop", "batch")
    assert means["datasets"][0]["rows"] == 30
    within = found("--subject-column", "mouse", "--variation", "within", "--drop", "batch")
    groups = np.repeat(np.arange(30), 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside = DiscriminativePCA(1, variation="within").fit(X, background=Y, groups=groups, background_groups=groups)
    assert within["components"][0]["ratio"] == pytest.approx(inside.held_out_ratio_[0], rel=1e-6)


def test_a_covariate_that_is_the_dataset_itself_is_told_of(rng):
    target, background = rng.normal(size=(2, 40, 3))
    given = {"adjust": np.repeat("one", 40), "background_adjust": np.repeat("two", 40)}
    with pytest.warns(UserWarning, match="nothing is taken out there") as told:
        DiscriminativePCA(1).fit(target, background=background, **given)
    assert [name in str(told[k].message) for k, name in enumerate(("the target", "background 1"))] == [True, True]
