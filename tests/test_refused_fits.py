"""A fit that is refused leaves the estimator as it was: parameters of one fit, columns and sums of the same fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
)

FOURIER = {"approximation": "fourier", "rank": 20}
ESTIMATORS = {
    "dPCA": DiscriminativePCA(1, test="analytic"),
    "dPCA with groups": DiscriminativePCA(1, shrinkage="clusters"),
    "cPCA": ContrastivePCA(1),
    "KdPCA": KernelDiscriminativePCA(1, **FOURIER),
    "KdPCA, exact": KernelDiscriminativePCA(1),
    "KcPCA": KernelContrastivePCA(1, **FOURIER),
    "pipeline": make_pipeline(StandardScaler(), DiscriminativePCA(1)),
    "pipeline in a pipeline": make_pipeline(
        Pipeline([("scale", StandardScaler())]), make_pipeline(StandardScaler(), DiscriminativePCA(1))
    ),
}
INCREMENTAL = ["dPCA", "cPCA", "KdPCA", "KcPCA"]


@pytest.fixture
def data(rng):
    target = pd.DataFrame(rng.normal(size=(60, 4)) * [5, 1, 1, 1], columns=list("abcd"))
    target["d"] += np.repeat([-5.0, 5.0], 30)
    return target, pd.DataFrame(rng.normal(size=(50, 4)) * [5, 1, 1, 1], columns=list("abcd"))


def spoiled(frame):
    found = frame.copy()
    found.iloc[3, 2] = np.nan
    return found


def renamed(frame):
    return frame.set_axis(list("wxyz"), axis=1)


def state(estimator):
    """All attributes, of the steps of a pipeline, too."""
    parts = [part for part in estimator.get_params().values() if hasattr(part, "fit")]
    return [dict(vars(part)) for part in (estimator, *parts)]


def assert_unchanged(estimator, before):
    for now, then in zip(state(estimator), before, strict=True):
        assert now.keys() == then.keys()
        assert all(now[name] is then[name] for name in now)


# Each is refused at another point: before anything is read, while it is read, after some datasets were read, and at
# the end. Columns of other names or another number must not be left behind.
REFUSED = {
    "a parameter": lambda model, X, B: model.set_params(**at_fault(model)).fit(X, background=B),
    "no numbers in the target": lambda model, X, B: model.fit(renamed(spoiled(X)), background=renamed(B)),
    "no numbers in a background": lambda model, X, B: model.fit(renamed(X), background=renamed(spoiled(B))),
    "other columns in a background": lambda model, X, B: model.fit(renamed(X), background=B),
    "another width": lambda model, X, B: model.fit(X.iloc[:, :3], background=B),
    "a batch of another width": lambda model, X, B: model.fit(iter([X, X.iloc[:, :3]]), background=B),
    "a table as labels": lambda model, X, B: model.fit(renamed(X), B),
}


def at_fault(model):
    return next({name: 0} for name in model.get_params() if name.endswith("n_components"))


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_refused_fit_changes_nothing(name, why, data):
    target, background = data
    model = clone(ESTIMATORS[name]).fit(target, background=background)
    before, scores = state(model), model.transform(target)
    if why == "a parameter":
        # The parameter itself was set by the user, and stays.
        model.set_params(**at_fault(model))
        before = state(model)
    with pytest.raises((ValueError, TypeError)):
        REFUSED[why](model, target, background)
    assert_unchanged(model, before)
    np.testing.assert_array_equal(model.transform(target), scores)


@pytest.mark.parametrize("why", [why for why in REFUSED if why != "a parameter"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_first_fit_that_is_refused_leaves_nothing(name, why, data):
    model = clone(ESTIMATORS[name])
    before = state(model)
    with pytest.raises((ValueError, TypeError)):
        REFUSED[why](model, *data)
    assert_unchanged(model, before)


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("name", INCREMENTAL)
@pytest.mark.parametrize(
    "batch",
    [
        lambda model, X, B: model.partial_fit(spoiled(X), background=B),
        lambda model, X, B: model.partial_fit(X, background=spoiled(B)),
        lambda model, X, B: model.partial_fit(iter([X.iloc[:30], spoiled(X)])),
        lambda model, X, B: model.partial_fit(X, background=renamed(B)),
        lambda model, X, B: model.partial_fit(X, background=[B, None, B.iloc[:, :3]]),
        lambda model, X, B: model.partial_fit(X, B),
    ],
)
def test_a_refused_batch_changes_nothing(name, fitted, batch, data):
    model = clone(ESTIMATORS[name])
    if fitted:
        model.fit(data[0], background=data[1])
    before = state(model)
    with pytest.raises((ValueError, TypeError)):
        batch(model, *data)
    assert_unchanged(model, before)
    if fitted:
        model.partial_fit(data[0])
        assert model._sums[0].count == 2 * len(data[0])


def test_a_refused_merge_changes_nothing(data):
    target, background = data
    model = DiscriminativePCA(1).fit(target, background=background)
    other = DiscriminativePCA(1).fit(target, background=background)
    model.set_params(n_components=9)
    before = state(model)
    with pytest.raises(ValueError, match="n_components=9"):
        model.merge(other)
    assert_unchanged(model, before)


def test_labels_of_a_refused_fit_are_not_kept(data):
    X = np.vstack(data)
    y = np.repeat(["stim", "ctrl"], [60, 50])
    model = DiscriminativePCA(1, target_label="stim").fit(X, y)
    before = state(model)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X * np.nan, np.where(y == "ctrl", "blank", y))
    assert_unchanged(model, before)
    model.partial_fit(X, y)
    assert model.background_labels_ == ["ctrl"]
