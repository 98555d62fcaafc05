"""Bad input: each case one clear error that says what is wrong, the value, the limit, and what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from standout import DiscriminativePCA, make_pipeline

GOOD = np.random.default_rng(0).normal(size=(20, 4))
OTHER = np.random.default_rng(1).normal(size=(15, 4))


def spoiled(value, row=3, column=2):
    X = GOOD.copy()
    X[row, column] = value
    return X


def frame(X, names):
    return pd.DataFrame(X, columns=list(names))


def text_frame(library):
    return library({"a": [1.0, 2.0, 3.0], "gene": ["x", "y", "z"], "b": [4.0, 5.0, 7.0]})


DATA = {
    "NaN in the target": (spoiled(np.nan), OTHER, r"NaN or infinity in the target: .* NaN in row 3, column 2\. Drop"),
    "infinity in the target": (spoiled(-np.inf), OTHER, r"NaN or infinity in the target: .* infinity in row 3"),
    "NaN in a background": (
        OTHER,
        [GOOD, spoiled(np.nan)],
        r"NaN or infinity in background 2: .* row 3, column 2",
    ),
    "NaN in float32": (spoiled(np.nan).astype(np.float32), OTHER, "NaN or infinity in the target"),
    "NaN in wide data": (
        spoiled(np.nan)[:9].T,
        OTHER[:, :1].repeat(9, 1),
        "NaN or infinity in the target: .* row 2, column 3",
    ),
    "NaN in a sparse target": (
        sparse.csr_array(spoiled(np.nan)),
        OTHER,
        r"NaN or infinity in the target: .* row 3, column 2",
    ),
    "NaN in a batch": (iter([GOOD, spoiled(np.nan)]), OTHER, "NaN or infinity in batch 2 of the target"),
    "too large to square": (GOOD * 1e200, OTHER, "values too large to square in the target: .* Rescale"),
    "too large to square in batches": (
        iter([GOOD * 1e200]),
        OTHER,
        "values too large to square in the target: .* Rescale",
    ),
    "another width": (GOOD, [OTHER, OTHER[:, :3]], "background 2 has 3 features, but the target has 4. Give every"),
    "another width in batches": (iter([GOOD]), OTHER[:, :3], "background 1 has 3 features, but the target has 4. Give"),
    "a batch of another width": (
        iter([GOOD, GOOD[:, :3]]),
        OTHER,
        "batch 2 of the target has 3 features, but the first batch has 4. Give",
    ),
    "a missing column": (
        frame(GOOD, "abcd"),
        frame(OTHER[:, :3], "abd"),
        "background 1 has 3 features, but the target has 4; background 1 lacks column 'c'. Give",
    ),
    "other columns": (
        frame(GOOD, "abcd"),
        frame(OTHER, "abcx"),
        "background 1 lacks column 'd'; background 1 has column 'x', which the target has not. Give",
    ),
    "columns in another order": (
        frame(GOOD, "abcd"),
        frame(OTHER, "bacd"),
        "background 1 has the columns of the target in another order. Give",
    ),
    "no rows": (GOOD[:0], OTHER, r"too few rows in the target: 0 sample\(s\) .* the least is 2\. Give more rows"),
    "one row": (GOOD[:1], OTHER, r"too few rows in the target: 1 sample\(s\) .* the least is 2\. Give"),
    "one row of a background": (GOOD, OTHER[:1], r"too few rows in background 1: 1 sample\(s\) .* the least is 2"),
    "no columns": (GOOD[:, :0], OTHER, r"the target cannot be used: Found array with 0 feature\(s\)"),
    "one dimension": (GOOD[:, 0], OTHER, "the target cannot be used: Expected 2D array.* Reshape your data"),
    "three dimensions": (GOOD[None], OTHER, "the target cannot be used: Found array with dim 3"),
    "a number": (7.0, OTHER, "the target cannot be used: Expected 2D array"),
    "text in pandas": (text_frame(pd.DataFrame), OTHER, "text in column 'gene' of the target. Drop"),
    "text in polars": (text_frame(pl.DataFrame), OTHER, "text in column 'gene' of the target. Drop"),
    "text in an array": (np.array([["a", "b"], ["c", "d"]]), OTHER, "the target cannot be used: .*strings"),
    "complex numbers": (GOOD + 1j, OTHER, "the target cannot be used: Complex data not supported"),
    "complex background": (GOOD, OTHER * 1j, "background 1 cannot be used: Complex data not supported"),
    "no background in the list": (GOOD, [], "background is an empty list. Pass at least one dataset, or None"),
    "an empty iterator": (iter([]), OTHER, r"the target gave 0 sample\(s\) in batches, .* pass a fresh one"),
    "an iterator of one row": (iter([GOOD[:1]]), OTHER, r"the target gave 1 sample\(s\) in batches, .* the least is 2"),
}


@pytest.mark.parametrize("case", DATA)
def test_data_that_cannot_be_used(case):
    target, background, message = DATA[case]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        DiscriminativePCA().fit(target, background=background)
    assert "\n" not in str(caught.value)


def batches():
    return iter(np.array_split(GOOD, 3))


def test_an_iterator_can_be_read_only_once():
    one = batches()
    with pytest.raises(ValueError, match="the same iterator is given for two datasets, .* Pass a fresh one for each"):
        DiscriminativePCA().fit(one, background=one)
    used = batches()
    DiscriminativePCA().fit(used, background=OTHER)
    with pytest.raises(ValueError, match=r"gave 0 sample\(s\) in batches, .* read only once: pass a fresh one"):
        DiscriminativePCA().fit(used, background=OTHER)
    with pytest.raises(TypeError, match="fit_transform cannot take an iterator .* Call fit .*, then transform"):
        DiscriminativePCA().fit_transform(batches(), background=OTHER)
    fitted = DiscriminativePCA().fit(GOOD)
    for method in (fitted.transform, fitted.score):
        with pytest.raises(TypeError, match="cannot take an iterator"):
            method(batches())


PARAMETERS = {
    "n_components zero": ({"n_components": 0}, ValueError, "n_components=0 is less than 1. Give"),
    "n_components a fraction": ({"n_components": 1.5}, TypeError, "n_components=1.5 is not a whole number. Give"),
    "n_components None": ({"n_components": None}, TypeError, "n_components=None is not a whole number. Give"),
    "n_components a bool": ({"n_components": True}, TypeError, "n_components=True is not a whole number. Give"),
    "n_components too large": ({"n_components": 5}, ValueError, "n_components=5 is larger than n_features=4. Choose"),
    "shrinkage below 0": ({"shrinkage": -0.1}, ValueError, r"shrinkage=-0.1 is outside \[0, 1\]. Use"),
    "shrinkage above 1": ({"shrinkage": 1.1}, ValueError, r"shrinkage=1.1 is outside \[0, 1\]. Use"),
    "shrinkage NaN": ({"shrinkage": np.nan}, ValueError, r"shrinkage=nan is outside \[0, 1\]. Use"),
    "shrinkage unknown": ({"shrinkage": "much"}, ValueError, "shrinkage='much' is unknown. Use"),
    "shrinkage a list": ({"shrinkage": [0.1]}, TypeError, r"shrinkage=\[0.1\] is not a number. Use"),
    "weights negative": ({"background_weights": [1, -1]}, ValueError, "a negative or non-finite number. Give"),
    "weights NaN": ({"background_weights": [1, np.nan]}, ValueError, "a negative or non-finite number. Give"),
    "weights all zero": ({"background_weights": [0, 0]}, ValueError, "background_weights are all zero. Give"),
    "weights too few": (
        {"background_weights": [1]},
        ValueError,
        r"shape \(1,\), but the number of backgrounds is 2. Give",
    ),
    "weights text": ({"background_weights": "even"}, ValueError, "background_weights='even' is unknown. Give one of"),
    "weights no numbers": ({"background_weights": [1, "a"]}, TypeError, "is not a list of numbers. Give"),
    "solver unknown": ({"solver": "svd"}, ValueError, "solver='svd' is unknown. Use one of 'auto', 'dense'"),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_that_cannot_be_used(case):
    parameters, error, message = PARAMETERS[case]
    with pytest.raises(error, match=message):
        DiscriminativePCA(**parameters).fit(GOOD, background=[OTHER, OTHER])


def test_more_components_than_the_rows_span():
    with pytest.raises(ValueError, match="n_components=4 is larger than 3, the number of directions .* more rows"):
        DiscriminativePCA(4).fit(GOOD[:2], background=OTHER[:3])
    low_rank = np.outer(np.arange(9.0), [1, 2, 3, 4])
    with pytest.raises(ValueError, match="n_components=2 is larger than 1, the number of directions"):
        DiscriminativePCA(2, shrinkage=None).fit(low_rank, background=low_rank)


Y = np.repeat(["a", "b"], [12, 8])

LABELS = {
    "no labels": ({"y": None}, "requires y to be passed, but the target y is None"),
    "too few labels": ({"y": Y[:5]}, r"y has shape \(5,\), but there are 20 rows. Give one label per row"),
    "labels in two columns": ({"y": np.stack([Y, Y], axis=1)}, r"y has shape \(20, 2\), but there are 20 rows. Give"),
    "an unknown label": ({"y": np.repeat("b", 20)}, "no row has the label target_label='a'; y has label 'b'. Choose"),
    "the target alone": ({"y": np.repeat("a", 20)}, "every row has the label 'a'. Rows with another label"),
    "one row of a background": (
        {"y": np.array(["a"] * 19 + ["b"])},
        r"with label 'b': 1 sample\(s\) .* Give more rows",
    ),
    "a background as well": ({"y": Y, "background": OTHER}, "both target_label='a' and a background are given. Set"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_that_cannot_be_used(case):
    arguments, message = LABELS[case]
    with pytest.raises(ValueError, match=message):
        DiscriminativePCA(target_label="a").fit(GOOD, **arguments)


def test_scoring_needs_every_background():
    three = np.repeat(["a", "b", "c"], [10, 5, 5])
    fitted = DiscriminativePCA(target_label="a").fit(GOOD, three)
    with pytest.raises(ValueError, match="no row has the background label 'c'. Give rows of every fitted label"):
        fitted.score(GOOD[:15], three[:15])
    fitted = DiscriminativePCA().fit(GOOD, background=[OTHER, OTHER])
    with pytest.raises(ValueError, match="score got 1 background.*, but 2 were fitted. Give"):
        fitted.score(GOOD, background=OTHER)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\), but there are 20 rows. Give"):
        fitted.score(GOOD, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="sample_weight must be non-negative"):
        fitted.score(GOOD, sample_weight=np.full(20, -1.0))


def test_scores_of_another_width_cannot_be_mapped_back():
    fitted = DiscriminativePCA(2).fit(GOOD, background=OTHER)
    with pytest.raises(ValueError, match="there are 3 scores in a row, but the model has 2 components. Give"):
        fitted.inverse_transform(np.ones((5, 3)))


def test_rows_of_another_width_or_other_names_cannot_be_transformed():
    fitted = DiscriminativePCA(2).fit(frame(GOOD, "abcd"), background=OTHER)
    with pytest.raises(ValueError, match="X has 3 features, but DiscriminativePCA is expecting 4"):
        DiscriminativePCA(2).fit(GOOD).transform(GOOD[:, :3])
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame(GOOD, "abdc"))
    with pytest.raises(ValueError, match="NaN or infinity in the data"):
        fitted.transform(frame(spoiled(np.nan), "abcd"))


def test_constant_columns_have_a_meaning():
    target, background = GOOD.copy(), OTHER.copy()
    target[:, 1] = background[:, 1] = 5.0
    fitted = DiscriminativePCA(3).fit(target, background=background)
    # Nothing varies there, so no component looks there.
    np.testing.assert_allclose(fitted.components_[:, 1], 0.0, atol=1e-12)
    constant = DiscriminativePCA(2).fit(np.ones((5, 4)), background=background)
    np.testing.assert_array_equal(constant.eigenvalues_, 0.0)


def test_pipelines_pass_the_errors_on():
    with pytest.raises(ValueError, match="background is an empty list"):
        make_pipeline(DiscriminativePCA()).fit(GOOD, background=[])
