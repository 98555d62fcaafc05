"""Bad input: each case one clear error that says what is wrong, the value, the limit, and what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
)
from standout._messages import InvalidValueError
from standout.io import Table

FIELDS = ("parameter", "value", "limit", "problem", "advice")
GOOD = np.random.default_rng(0).normal(size=(20, 4))
OTHER = np.random.default_rng(1).normal(size=(15, 4))
Y = np.repeat(["a", "b"], [12, 8])

ESTIMATORS = [
    DiscriminativePCA(1),
    ContrastivePCA(1),
    KernelDiscriminativePCA(1, approximation="fourier", rank=10),
    KernelContrastivePCA(1, approximation="fourier", rank=10),
    make_pipeline(StandardScaler(), DiscriminativePCA(1)),
]


def spoiled(value, row=3, column=2):
    X = GOOD.copy()
    X[row, column] = value
    return X


def frame(X, names):
    return pd.DataFrame(X, columns=list(names))


def text_frame(library):
    return library({"a": [1.0, 2.0, 3.0], "gene": ["x", "y", "z"], "b": [4.0, 5.0, 7.0]})


def table(X, names):
    return Table(X, list(names))


# The target, the backgrounds, and facts that the error must carry. A fact that is a string may be a part of the text.
DATA = {
    "NaN in the target": (spoiled(np.nan), OTHER, {"name": "the target", "row": 3, "column": 2}),
    "infinity in the target": (spoiled(-np.inf), OTHER, {"name": "the target", "value": -np.inf, "row": 3}),
    "NaN in a background": (OTHER, [GOOD, spoiled(np.nan)], {"name": "background 2", "row": 3, "column": 2}),
    "NaN in float32": (spoiled(np.nan).astype(np.float32), OTHER, {"name": "the target", "row": 3, "column": 2}),
    "NaN in wide data": (
        spoiled(np.nan)[:9].T,
        OTHER[:, :1].repeat(9, 1),
        {"name": "the target", "row": 2, "column": 3},
    ),
    "NaN in a sparse target": (sparse.csr_array(spoiled(np.nan)), OTHER, {"name": "the target", "row": 3, "column": 2}),
    "NaN in a table": (table(spoiled(np.nan), "abcd"), OTHER, {"name": "the target", "row": 3, "column": 2}),
    "NaN in a batch": (iter([GOOD, spoiled(np.nan)]), OTHER, {"name": "batch 2 of the target", "row": 3}),
    "too large to square": (GOOD * 1e200, OTHER, {"name": "the target", "problem": "too large to square"}),
    "too large to square in batches": (iter([GOOD * 1e200]), OTHER, {"name": "the target", "advice": "Rescale"}),
    "another width": (GOOD, [OTHER, OTHER[:, :3]], {"name": "background 2", "width": 3, "limit": 4}),
    "another width in batches": (iter([GOOD]), OTHER[:, :3], {"name": "background 1", "width": 3, "limit": 4}),
    "a batch of another width": (
        iter([GOOD, GOOD[:, :3]]),
        OTHER,
        {"name": "batch 2 of the target", "width": 3, "limit": 4, "reference": "the first batch"},
    ),
    "a missing column": (
        frame(GOOD, "abcd"),
        frame(OTHER[:, :3], "abd"),
        {"name": "background 1", "width": 3, "limit": 4, "missing": "column 'c'"},
    ),
    "other columns": (frame(GOOD, "abcd"), frame(OTHER, "abcx"), {"missing": "column 'd'", "extra": "column 'x'"}),
    "other columns of a table": (table(GOOD, "abcd"), frame(OTHER, "abcx"), {"missing": "column 'd'"}),
    "columns in another order": (frame(GOOD, "abcd"), frame(OTHER, "bacd"), {"problem": "in another order"}),
    "no rows": (GOOD[:0], OTHER, {"name": "the target", "n_rows": 0, "limit": 2}),
    "one row": (GOOD[:1], OTHER, {"name": "the target", "n_rows": 1, "limit": 2}),
    "one row of a background": (GOOD, OTHER[:1], {"name": "background 1", "n_rows": 1, "limit": 2}),
    "no columns": (GOOD[:, :0], OTHER, {"name": "the target", "reason": "0 feature(s)"}),
    "one dimension": (GOOD[:, 0], OTHER, {"name": "the target", "reason": "Expected 2D array"}),
    "three dimensions": (GOOD[None], OTHER, {"name": "the target", "reason": "dim 3"}),
    "a number": (7.0, OTHER, {"name": "the target", "reason": "Expected 2D array"}),
    "text in pandas": (text_frame(pd.DataFrame), OTHER, {"name": "the target", "columns": "column 'gene'"}),
    "text in polars": (text_frame(pl.DataFrame), OTHER, {"name": "the target", "columns": "column 'gene'"}),
    "text in an array": (np.array([["a", "b"], ["c", "d"]]), OTHER, {"name": "the target", "reason": "strings"}),
    "complex numbers": (GOOD + 1j, OTHER, {"name": "the target", "reason": "Complex data not supported"}),
    "complex background": (GOOD, OTHER * 1j, {"name": "background 1", "reason": "Complex data not supported"}),
    "no background in the list": (GOOD, [], {"problem": "an empty list", "advice": "at least one dataset"}),
    "an empty iterator": (iter([]), OTHER, {"name": "the target", "n_rows": 0, "limit": 2, "advice": "a fresh one"}),
    "an iterator of one row": (iter([GOOD[:1]]), OTHER, {"name": "the target", "n_rows": 1, "limit": 2}),
}


def check_facts(error, facts):
    """Check the fields of an error; of a text, a part will do."""
    for name, expected in facts.items():
        found = getattr(error, name) if name in FIELDS else error.facts[name]
        assert expected in found if isinstance(expected, str) else expected == found, (name, found)


@pytest.mark.parametrize("case", DATA)
def test_data_that_cannot_be_used(case):
    target, background, facts = DATA[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        DiscriminativePCA().fit(target, background=background)
    check_facts(caught.value, facts)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fit", ["fit", "fit_transform", "partial_fit"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize(
    "other",
    [OTHER, OTHER.tolist(), [OTHER, OTHER], [OTHER, GOOD], frame(OTHER, "abcd"), table(OTHER, "abcd"), Y[:5]],
    ids=["array", "nested list", "two arrays", "arrays of two sizes", "frame", "table", "too few labels"],
)
def test_a_dataset_in_the_place_of_y_is_an_error_that_names_background(estimator, fit, other):
    if not hasattr(estimator, fit):
        pytest.skip("a pipeline has no partial_fit")
    with pytest.raises(ValueError, match=r"fit\(X, background=\.\.\.\)"):
        getattr(clone(estimator), fit)(GOOD, other)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_labels_are_ignored_without_a_target_label(estimator):
    alone = clone(estimator).fit(GOOD).transform(GOOD)
    for labels in (Y, Y.tolist(), Y[:, None], pd.Series(Y), np.arange(20)):
        np.testing.assert_array_equal(clone(estimator).fit(GOOD, labels).transform(GOOD), alone)


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


PARAMETERS = [
    ("n_components", 0, ValueError, 1),
    ("n_components", 1.5, TypeError, 1),
    ("n_components", None, TypeError, 1),
    ("n_components", True, TypeError, 1),
    ("n_components", 5, ValueError, 4),
    ("n_components", "most", ValueError, None),
    ("shrinkage", -0.1, ValueError, (0, 1)),
    ("shrinkage", 1.1, ValueError, (0, 1)),
    ("shrinkage", np.nan, ValueError, (0, 1)),
    ("shrinkage", "much", ValueError, None),
    ("shrinkage", [0.1], TypeError, None),
    ("background_weights", [1, -1], ValueError, None),
    ("background_weights", [1, np.nan], ValueError, None),
    ("background_weights", [0, 0], ValueError, None),
    ("background_weights", [1], ValueError, 2),
    ("background_weights", "even", ValueError, None),
    ("background_weights", [1, "a"], TypeError, None),
    ("solver", "svd", ValueError, None),
    ("test", "bootstrap", ValueError, None),
]


@pytest.mark.parametrize(("parameter", "value", "error", "limit"), PARAMETERS)
def test_parameters_that_cannot_be_used(parameter, value, error, limit):
    with pytest.raises(error) as caught:
        DiscriminativePCA(**{parameter: value}).fit(GOOD, background=[OTHER, OTHER])
    assert caught.value.parameter == parameter
    assert limit is None or caught.value.limit == limit
    assert caught.value.advice
    assert caught.value.value is None or repr(caught.value.value) in str(caught.value)


def test_more_components_than_the_rows_span():
    with pytest.raises(ValueError, match="n_components=4 is larger than 3, the number of directions .* more rows"):
        DiscriminativePCA(4).fit(GOOD[:2], background=OTHER[:3])
    low_rank = np.outer(np.arange(9.0), [1, 2, 3, 4])
    with pytest.raises(ValueError, match="n_components=2 is larger than 1, the number of directions"):
        DiscriminativePCA(2, shrinkage=None).fit(low_rank, background=low_rank)


LABELS = {
    "no labels": ({"y": None}, {"problem": "requires y to be passed, but the target y is None"}),
    "too few labels": ({"y": Y[:5]}, {"name": "y", "shape": (5,), "limit": 20}),
    "labels in two columns": ({"y": np.stack([Y, Y], axis=1)}, {"name": "y", "shape": (20, 2), "limit": 20}),
    "an unknown label": ({"y": np.repeat("b", 20)}, {"target_label": "'a'", "known": "label 'b'"}),
    "the target alone": ({"y": np.repeat("a", 20)}, {"target_label": "'a'", "advice": "Rows with another label"}),
    "one row of a background": ({"y": np.array(["a"] * 19 + ["b"])}, {"name": "label 'b'", "n_rows": 1, "limit": 2}),
    "a background as well": ({"y": Y, "background": OTHER}, {"problem": "both", "advice": "labels y alone"}),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_that_cannot_be_used(case):
    arguments, facts = LABELS[case]
    with pytest.raises(InvalidValueError) as caught:
        DiscriminativePCA(target_label="a").fit(GOOD, **arguments)
    check_facts(caught.value, facts)


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
