"""One table: each bad input is refused with the parameter, the value and the limit in the message."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA
from standout._messages import InvalidTypeError, InvalidValueError

pytestmark = pytest.mark.filterwarnings("ignore:the chosen shrinkage")
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 4)), RNG.normal(size=(30, 4))
GROUPS = {"groups": np.arange(40) // 4, "background_groups": np.arange(30) // 3}


def changed(value, row=3, column=1):
    rows = X.copy()
    rows[row, column] = value
    return rows


def frames(*names):
    pandas = pytest.importorskip("pandas")
    return [pandas.DataFrame(rows, columns=list(name)) for rows, name in zip((X, Y), names, strict=True)]


def fit(given=None, target=X, background=Y, y=None, kind=DiscriminativePCA, **rows):
    return kind(**(given or {})).fit(target, y, background=background, **rows)


def twice():
    same = iter([X])
    return fit(target=same, background=same)


# Each case: the call; the parameter that the error names; its value; words of the message, with the limit.
REFUSED = {
    # --- parameters
    "components": (lambda: fit({"n_components": 0}), "n_components", 0, 'int >= 1, "auto" or None'),
    "more components than columns": (lambda: fit({"n_components": 5}), "n_components", 5, "more than the 4 columns"),
    "more components than rows": (
        lambda: fit({"n_components": 4}, X[:2], Y[:2]),
        "n_components",
        4,
        "more than the 2 directions",
    ),
    "half a component": (lambda: fit({"n_components": 1.5}), "n_components", 1.5, "cannot be used"),
    "a truth value": (lambda: fit({"n_components": True}), "n_components", True, "cannot be used"),
    "shrinkage": (lambda: fit({"shrinkage": 1.5}), "shrinkage", 1.5, "float in [0, 1]"),
    "a misspelled word": (lambda: fit({"shrinkage": "autoo"}), "shrinkage", "autoo", '"auto", "ledoit-wolf" or None'),
    "alpha": (lambda: fit({"alpha": -1.0}, kind=ContrastivePCA), "alpha", -1.0, "float >= 0"),
    "epsilon": (lambda: fit({"epsilon": 0.0}, kind=KernelDiscriminativePCA), "epsilon", 0.0, "float > 0"),
    "folds": (lambda: fit({"cv": 1}), "cv", 1, "int in [2, 1000] or None"),
    "center": (lambda: fit({"center": "mean"}), "center", "mean", '"own" or "background"'),
    "scale": (lambda: fit({"scale": True}), "scale", True, '"pooled", "background" or None'),
    "robust": (lambda: fit({"robust": "row"}), "robust", "row", '"rows", "cells" or None'),
    "solver": (lambda: fit({"solver": "qr"}), "solver", "qr", '"auto", "dense" or "iterative"'),
    "seed": (lambda: fit({"random_state": -1}), "random_state", -1, "int in [0, 4294967295]"),
    "few columns for the components": (
        lambda: fit({"n_columns": 1}),
        "n_columns",
        1,
        "not between 2 (components) and 4 (columns)",
    ),
    "many columns": (lambda: fit({"n_columns": 9}), "n_columns", 9, "not between 2 (components) and 4 (columns)"),
    "graph of other columns": (lambda: fit({"smooth": (3, 3)}), "smooth", ..., "not a graph of the 4 columns"),
    "weight for each background": (
        lambda: fit({"background_weights": [1, 2]}),
        "background_weights",
        [1, 2],
        "for each of 1 backgrounds",
    ),
    "negative weights": (
        lambda: fit({"background_weights": [1, -2]}, background=[Y, Y]),
        "background_weights",
        [1, -2],
        "non-negative",
    ),
    "rule of weights": (
        lambda: fit({"background_weights": "best"}),
        "background_weights",
        "best",
        '"worst-case", "joint", "spectral"',
    ),
    "cells of sparse rows": (
        lambda: fit({"robust": "cells"}, sparse.csr_array(X), sparse.csr_array(Y)),
        "robust",
        "cells",
        "sparse rows",
    ),
    # --- datasets
    "NaN": (lambda: fit(target=changed(np.nan)), None, None, "in the target: the first is nan in row 3, column 1"),
    "infinity": (
        lambda: fit(background=[Y, changed(np.inf)]),
        None,
        None,
        "in background 2: the first is inf in row 3",
    ),
    "other width": (lambda: fit(background=Y[:, :3]), None, None, "background 1 has 3 features, but the target has 4"),
    "other names": (
        lambda: fit(None, *frames("abcd", "abce")),
        None,
        None,
        "background 1 lacks column 'd'; background 1 has column 'e'",
    ),
    "one row": (lambda: fit(target=X[:1]), None, None, "the target has 1 sample, but a minimum of 2 is required"),
    "one row of a background": (lambda: fit(background=[Y, Y[:1]]), None, None, "background 2 has 1 sample"),
    "one row in a batch": (lambda: fit(target=iter([X[:1]])), None, None, "the target has 1 sample"),
    "no rows": (lambda: fit(target=X[:0]), None, None, "0 sample(s)"),
    "no columns": (lambda: fit(target=X[:, :0], background=Y[:, :0]), None, None, "0 feature(s)"),
    "one dimension": (lambda: fit(target=X[0]), None, None, "Expected 2D array, got 1D array"),
    "three dimensions": (lambda: fit(background=Y[None]), None, None, "background 1: Expected 2D array, got 3D array"),
    "words": (lambda: fit(target=[["a", "b"], ["c", "d"]]), None, None, "could not convert string to float"),
    "complex numbers": (lambda: fit(target=X + 1j), None, None, "Complex data not supported"),
    "a path": (lambda: fit(target="rows.csv"), None, None, "standout.scan(path)"),
    "nothing": (lambda: fit(target=None), None, None, "the target"),
    "no background in a list": (lambda: fit(background=[]), None, None, "`background` is an empty list"),
    "background in the place of y": (lambda: fit(y=Y, background=None), None, None, "fit(X, background=...)"),
    "an iterator twice": (twice, None, None, "read only once"),
    "numbers out of range": (lambda: fit(target=X * 1e200), None, None, "out of the range of double precision"),
    "a background out of range": (
        lambda: fit(background=Y * 1e-160),
        None,
        None,
        "out of the range of double precision",
    ),
    # --- labels
    "unknown label": (
        lambda: fit({"target_label": 7}, y=[0] * 20 + [1] * 20, background=None),
        "target_label",
        7,
        "y has labels 0, 1",
    ),
    "no labels": (lambda: fit({"target_label": 1}, background=None), None, None, "requires y to be passed"),
    "labels and a background": (lambda: fit({"target_label": 1}, y=[0, 1] * 20), None, None, "both `target_label` and"),
    "one label": (
        lambda: fit({"target_label": 1}, y=[1] * 40, background=None),
        None,
        None,
        "every row has the label 1",
    ),
    "few labels": (lambda: fit({"target_label": 1}, y=[1] * 3, background=None), "y", ..., "the target has 40 rows"),
    # --- facts of rows
    "few weights": (lambda: fit(sample_weight=np.ones(3)), "sample_weight", ..., "shape (3,), but the target has 40"),
    "negative row weights": (lambda: fit(sample_weight=-np.ones(40)), "sample_weight", ..., "non-negative"),
    "weights of zero": (
        lambda: fit(background_sample_weight=np.zeros(30)),
        "background_sample_weight",
        ...,
        "all zero",
    ),
    "subjects of one dataset": (
        lambda: fit(groups=GROUPS["groups"]),
        None,
        None,
        "`groups` and `background_groups` go",
    ),
    "one subject": (lambda: fit(**GROUPS | {"groups": np.zeros(40)}), None, None, "one subject only"),
    "few subjects": (lambda: fit(**GROUPS | {"groups": np.zeros(4)}), "groups", ..., "the target has 40 rows"),
    "covariates of one dataset": (lambda: fit(adjust=np.ones((40, 1))), None, None, "`adjust` and `background_adjust`"),
    "missing covariate": (
        lambda: fit(adjust=np.full((40, 1), np.nan), background_adjust=np.ones((30, 1))),
        "adjust",
        ...,
        "row 0 of the target",
    ),
    "unknown column": (lambda: fit(None, *frames("abcd", "abcd"), groups="mouse"), "groups", "mouse", "'a', 'b', 'c'"),
    # --- fitted models
    "not fitted": (lambda: DiscriminativePCA().transform(X), None, None, "is not fitted yet"),
    "other width of new rows": (lambda: fit().transform(X[:, :2]), None, None, "X has 2 features, but"),
    "NaN in new rows": (lambda: fit().transform(changed(np.nan)), None, None, "in the rows: the first is nan"),
    "too many scores": (lambda: fit().inverse_transform(X), None, None, "4 scores, but the model has 2 components"),
    "rows that were not fitted": (
        lambda: fit().held_out_scores(X[:9], background=Y),
        None,
        None,
        "[9, 30] rows, but the fit had [40, 30]",
    ),
    "no folds": (lambda: fit({"cv": None}).held_out_scores(X, background=Y), None, None, "Fit it with `cv`"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_with_its_facts(case):
    call, parameter, value, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert words in str(caught.value)
    if parameter is not None:
        assert caught.value.parameter == parameter
        assert str(caught.value).startswith(parameter)
        if value is not ...:
            assert caught.value.value == value
    if case != "not fitted":
        assert isinstance(caught.value, InvalidValueError | InvalidTypeError)
        # The message has sentences: the problem, then the remedy.
        assert str(caught.value).endswith(".")


@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA])
@pytest.mark.parametrize("rows", [3, 9])
def test_few_rows_of_an_iterator_have_no_folds(kind, rows):
    model = kind(1, approximation=X[:3], gamma=0.1) if kind is KernelDiscriminativePCA else kind(1)
    model.fit(iter([X[:rows]]), background=iter([Y[:3]]))
    assert "has no rows of one of the datasets" in model.path_.reason
    assert np.isnan(model.ratio_).all()


def test_constant_data_are_answered_with_a_warning():
    with pytest.warns(UserWarning, match="there is no ratio"):
        model = DiscriminativePCA().fit(np.ones((40, 4)), background=Y)
    assert np.isnan(model.ratio_).all()
    assert np.all(model.transform(np.ones((2, 4))) == 0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DiscriminativePCA().fit(X, background=np.ones((30, 4)))
    said = " ".join(str(one.message) for one in caught)
    assert "does not vary along 4 directions" in said
    assert "there is no ratio" in said
    with pytest.warns(UserWarning, match="there is no ratio"):
        model = ContrastivePCA().fit(X, background=np.ones((30, 4)))
    assert np.isfinite(model.alpha_)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(PCA(2).fit(X).components_), atol=1e-8)
