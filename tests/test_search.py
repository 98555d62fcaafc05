"""The search over parameters: every dataset is cut into folds."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, ParameterSampler, ShuffleSplit
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from standout import BackgroundSearchCV, DiscriminativePCA, make_pipeline, permutation_test, report
from standout._messages import InvalidTypeError, InvalidValueError

GRID = {"shrinkage": [0.01, 0.5, 0.9]}


@pytest.fixture
def data(rng):
    X, Y = rng.normal(size=(61, 30)), rng.normal(size=(47, 30))
    X[:, 7] *= 3
    return X, Y


def model():
    return DiscriminativePCA(1, cv=None)


def test_scores_are_those_of_held_out_rows_of_all_datasets(data):
    X, Y = data
    search = BackgroundSearchCV(model(), GRID, cv=KFold(4, shuffle=True, random_state=3)).fit(X, background=Y)
    expected = np.empty((3, 4))
    splits = [list(KFold(4, shuffle=True, random_state=3).split(rows)) for rows in (X, Y)]
    for place, shrinkage in enumerate(GRID["shrinkage"]):
        for split, ((own, left), (other, out)) in enumerate(zip(*splits, strict=True)):
            fitted = model().set_params(shrinkage=shrinkage).fit(X[own], background=Y[other])
            expected[place, split] = fitted.score(X[left], background=Y[out])
    found = np.column_stack([search.cv_results_[f"split{split}_test_score"] for split in range(4)])
    np.testing.assert_allclose(found, expected)
    assert search.best_index_ == expected.mean(axis=1).argmax()
    assert search.best_score_ == pytest.approx(expected.mean(axis=1).max())
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    assert search.best_params_ == {"shrinkage": GRID["shrinkage"][search.best_index_]}
    assert search.n_splits_ == 4


def test_the_score_is_the_mean_log_ratio_of_variances(data):
    X, Y = data
    fitted = model().fit(X, background=Y)
    new, other = X[::2] + 1, Y[::2] * 2
    ratio = fitted.transform(new).var(axis=0) / fitted.transform(other).var(axis=0)
    assert fitted.score(new, background=other) == pytest.approx(np.log(ratio).mean())
    search = BackgroundSearchCV(model(), {"shrinkage": [0.5]}).fit(X, background=Y)
    assert search.score(new, background=other) == search.best_estimator_.score(new, background=other)


def test_the_best_is_fitted_to_all_rows(data):
    X, Y = data
    search = BackgroundSearchCV(model(), GRID).fit(X, background=Y)
    alone = model().set_params(**search.best_params_).fit(X, background=Y)
    np.testing.assert_array_equal(search.transform(X), alone.transform(X))
    np.testing.assert_array_equal(*(each.inverse_transform(each.transform(X)) for each in (search, alone)))
    assert search.n_features_in_ == 30
    assert search.get_feature_names_out().tolist() == ["discriminativepca0"]
    assert search.fit_transform(X, background=Y).shape == (61, 1)


def test_refit_can_be_left_out_or_choose(data):
    X, Y = data
    search = BackgroundSearchCV(model(), GRID, refit=False).fit(X, background=Y)
    assert "mean_test_score" in search.cv_results_
    with pytest.raises(ValueError, match="not fitted"):
        search.transform(X)
    search = BackgroundSearchCV(model(), GRID, refit=lambda results: int(np.argmin(results["mean_test_score"])))
    search.fit(X, background=Y)
    assert search.best_score_ == search.cv_results_["mean_test_score"].min()
    assert search.best_estimator_.shrinkage == search.best_params_["shrinkage"]


def test_a_function_can_score(data):
    X, Y = data

    def scoring(estimator, X, y, background):
        assert len(background) == 1
        return -estimator.shrinkage

    search = BackgroundSearchCV(model(), GRID, scoring=scoring).fit(X, background=Y)
    assert search.best_params_ == {"shrinkage": 0.01}
    assert search.score(X, background=[Y]) == -0.01


def refusing(rows):
    raise RuntimeError("this step fails")


def test_fits_that_fail_have_the_error_score(data):
    X, Y = data
    grid = {"n_components": [1, 40]}
    with pytest.warns(FitFailedWarning, match="5 fits failed"), pytest.warns(UserWarning, match="non-finite"):
        search = BackgroundSearchCV(model(), grid).fit(X, background=Y)
    assert search.best_params_ == {"n_components": 1}
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    with pytest.raises(InvalidValueError, match="more than"):
        BackgroundSearchCV(model(), grid, error_score="raise").fit(X, background=Y)
    with pytest.warns(FitFailedWarning):
        search = BackgroundSearchCV(model(), grid, error_score=-99.0).fit(X, background=Y)
    assert search.cv_results_["mean_test_score"][1] == -99.0
    steps = make_pipeline(FunctionTransformer(refusing), model())
    with pytest.raises(ValueError, match="this step fails"):
        BackgroundSearchCV(steps, {"discriminativepca__shrinkage": [0.1]}).fit(X, background=Y)


def test_an_infinite_score_is_not_the_best(data):
    X, Y = data

    def scoring(estimator, X, y, background):
        return np.inf if estimator.shrinkage > 0.1 else 1.0

    with pytest.warns(UserWarning, match="non-finite"):
        search = BackgroundSearchCV(model(), GRID, scoring=scoring).fit(X, background=Y)
    assert search.best_params_ == {"shrinkage": 0.01}
    with pytest.raises(InvalidValueError, match="no parameters"), pytest.warns(UserWarning, match="non-finite"):
        BackgroundSearchCV(model(), {"shrinkage": [0.5]}, scoring=scoring).fit(X, background=Y)


class Recording(DiscriminativePCA):
    """Keeps the subjects of fitted rows."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None, *, background=None, groups=None, background_groups=None):
        if groups is not None:
            Recording.seen.append((set(groups), {name for part in background_groups for name in part}))
        return super().fit(X, y, background=background)


@pytest.mark.parametrize("cv", [3, GroupKFold(3), LeaveOneGroupOut()])
def test_subjects_are_left_out_of_all_datasets_together(data, cv):
    X, Y = data
    Recording.seen = []
    groups, others = np.arange(61) % 6, np.arange(47) % 6
    search = BackgroundSearchCV(Recording(1, cv=None), {"shrinkage": [0.5]}, cv=cv, refit=False)
    search.fit(X, background=[Y], groups=groups, background_groups=[others])
    assert search.n_splits_ == (6 if isinstance(cv, LeaveOneGroupOut) else 3)
    for own, other in Recording.seen:
        assert own == other
        assert 0 < len(own) < 6


@pytest.mark.parametrize("cv", [3, ShuffleSplit(4, random_state=0)])
def test_labels_are_cut_evenly(data, cv):
    X, Y = data
    rows, labels = np.vstack([X, Y]), np.repeat(["t", "b"], [61, 47])
    search = BackgroundSearchCV(DiscriminativePCA(1, cv=None, target_label="t"), GRID, cv=cv, scoring=None)
    search.set_params(scoring=lambda estimator, X, y: float(np.mean(y == "t"))).fit(rows, labels)
    if cv == 3:
        assert search.best_score_ == pytest.approx(61 / 108, abs=0.02)
    assert search.best_estimator_.classes_.tolist() == ["b", "t"]


def test_facts_of_rows_are_cut_as_the_rows(data, rng):
    X, Y = data
    weights, others = rng.uniform(0.5, 2.0, 61), rng.uniform(0.5, 2.0, 47)
    given = {"sample_weight": weights, "background_sample_weight": others}
    search = BackgroundSearchCV(model(), GRID).fit(X, background=Y, **given)
    alone = clone(model()).set_params(**search.best_params_).fit(X, background=Y, **given)
    np.testing.assert_array_equal(search.transform(X), alone.transform(X))


def test_pipelines_frames_and_drawn_parameters(data):
    pandas = pytest.importorskip("pandas")
    X, Y = (pandas.DataFrame(rows, columns=[f"g{i}" for i in range(30)]) for rows in data)
    drawn = ParameterSampler({"discriminativepca__shrinkage": np.linspace(0.1, 0.9, 9)}, 3, random_state=0)
    search = BackgroundSearchCV(make_pipeline(StandardScaler(), model()), drawn, n_jobs=2)
    with parallel_config(backend="threading"):
        search.fit(X, background=Y)
    assert len(search.cv_results_["params"]) == 3
    assert search.feature_names_in_.tolist()[:2] == ["g0", "g1"]
    assert search.best_estimator_[0].mean_.shape == (30,)
    assert "param_discriminativepca__shrinkage" in search.cv_results_


def test_folds_without_a_seed_are_the_same(data):
    X, Y = data
    one, two = (BackgroundSearchCV(model(), GRID).fit(X, background=Y) for _ in range(2))
    assert one.best_score_ == two.best_score_
    other = BackgroundSearchCV(model(), GRID, random_state=1).fit(X, background=Y)
    assert one.best_score_ != other.best_score_


@pytest.mark.parametrize(
    ("given", "parameter", "words"),
    [
        ({"param_grid": {}}, None, None),
        ({"cv": 30}, "cv", "fewer than 2 rows"),
        ({"groups": np.zeros(61)}, None, "go together, but one dataset has none"),
        ({"background_groups": np.zeros(5), "groups": np.zeros(61)}, "background_groups", "5 entries"),
        ({"sample_weight": np.ones(3)}, "sample_weight", "3 entries"),
    ],
)
def test_what_cannot_be_searched_is_refused(data, given, parameter, words):
    X, Y = data
    made = {"param_grid": GRID} | {name: given[name] for name in ("param_grid", "cv") if name in given}
    rows = {name: value for name, value in given.items() if name not in made}
    search = BackgroundSearchCV(model(), **made)
    if words is None:
        # One candidate without parameters is a plain cross-validation.
        assert search.fit(X, background=Y).best_params_ == {}
        return
    with pytest.raises(InvalidValueError) as caught:
        search.fit(X, background=Y, **rows)
    assert caught.value.parameter == parameter
    assert words in str(caught.value)


def test_data_that_are_read_in_batches_are_refused(data):
    X, Y = data
    with pytest.raises(InvalidTypeError, match="background 1 is read in batches"):
        BackgroundSearchCV(model(), GRID).fit(X, background=iter([Y]))


def test_a_search_is_judged_by_its_best_model(data):
    X, Y = data
    search = BackgroundSearchCV(DiscriminativePCA(1), {"shrinkage": [0.5]}, cv=2).fit(X, background=Y)
    found, expected = (permutation_test(one, X, background=Y) for one in (search, search.best_estimator_))
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    shown = [str(report(one, X, background=Y, test=found)) for one in (search, search.best_estimator_)]
    assert shown[0] == shown[1]
