"""Choosing parameters by folds of all datasets: what it finds, and the leak that it avoids."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, ParameterSampler
from sklearn.preprocessing import StandardScaler

from standout import BackgroundSearchCV, ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, make_pipeline

GRID = {"shrinkage": [0.0, 0.03, 0.1, 0.3, 0.6]}


def data(seed, n=60, d=40):
    """Shared factors, and one column that varies more in the target; nearly as many columns as rows."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(8, d))
    target, background, *new = (
        rng.normal(size=(k, d)) + 2 * rng.normal(size=(k, 8)) @ shared for k in (n, n + 7, 2000, 2000)
    )
    for rows in (target, new[0]):
        rows[:, 5] += 3 * rng.normal(size=len(rows))
    return target, background, *new


def true_ratio(model, target, background):
    return model.score(target, background=background)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_what_holds_on_new_rows_where_a_plain_search_overfits(seed):
    target, background, *new = data(seed)
    with pytest.warns(UserWarning, match=r"against the rows of the backgrounds that were fitted.*BackgroundSearchCV"):
        plain = GridSearchCV(DiscriminativePCA(1, held_out=None), GRID).fit(target, background=background)
    ours = BackgroundSearchCV(DiscriminativePCA(1, held_out=None), GRID).fit(target, background=background)
    assert plain.best_params_ == {"shrinkage": 0.0}
    assert ours.best_params_["shrinkage"] > 0.0
    assert true_ratio(ours, *new) > 1.2 * true_ratio(plain.best_estimator_, *new)


def test_the_leak_is_seen_with_metadata_routing_too():
    target, background, *_ = data(0)
    with config_context(enable_metadata_routing=True), pytest.warns(UserWarning, match="backgrounds that were fitted"):
        GridSearchCV(DiscriminativePCA(1, held_out=None), GRID).fit(target, background=background)


def test_scoring_the_fitted_rows_or_new_rows_of_both_is_no_leak():
    target, background, *new = data(0)
    model = DiscriminativePCA(1).fit(target, background=background)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(target)
        model.score(target, background=background)
        model.score(new[0], background=new[1])
        DiscriminativePCA(1).fit(target).score(new[0])


def test_scores_are_those_of_fits_without_each_fold():
    target, background, *_ = data(1)
    search = BackgroundSearchCV(DiscriminativePCA(1), GRID, cv=3).fit(target, background=[background])
    results = search.cv_results_
    folds = np.array([results[f"split{fold}_test_score"] for fold in range(3)])
    np.testing.assert_allclose(results["mean_test_score"], folds.mean(axis=0))
    assert search.best_index_ == np.argmax(results["mean_test_score"])
    assert results["rank_test_score"][search.best_index_] == 1
    assert list(results["param_shrinkage"]) == GRID["shrinkage"]
    direct = DiscriminativePCA(1, **search.best_params_).fit(target, background=background)
    np.testing.assert_allclose(search.best_estimator_.components_, direct.components_)
    np.testing.assert_allclose(search.transform(background), direct.transform(background))


def test_steps_of_a_pipeline_are_fitted_within_the_folds_and_the_search_can_be_a_step():
    target, background, *_ = data(2)
    steps = make_pipeline(StandardScaler(), DiscriminativePCA(1))
    inside = BackgroundSearchCV(steps, {"discriminativepca__shrinkage": [0.1, 0.6]}).fit(target, background=background)
    assert set(inside.best_params_) == {"discriminativepca__shrinkage"}
    outside = make_pipeline(StandardScaler(), BackgroundSearchCV(DiscriminativePCA(1), GRID))
    assert outside.fit_transform(target, background=background).shape == (60, 1)
    assert np.isfinite(outside.score(target, background=background))


def test_labels_are_stratified():
    target, background, *_ = data(3)
    rows, labels = np.vstack([target, background[:10]]), np.repeat(["t", "b"], [len(target), 10])
    seen = []

    class Spy(DiscriminativePCA):
        def fit(self, X, y=None, *, background=None):
            seen.append(np.unique(y, return_counts=True)[1].tolist())
            return super().fit(X, y)

    BackgroundSearchCV(Spy(1, target_label="t"), {"shrinkage": [0.5]}).fit(rows, labels)
    assert seen == [[8, 48]] * 5 + [[10, 60]]


def test_groups_are_never_divided():
    target, background, *_ = data(4)
    seen = []

    class Spy(DiscriminativePCA):
        def fit(self, X, y=None, *, background=None):
            seen.append((X[:, 0].copy(), background[0][:, 0].copy()))
            return super().fit(X, background=background)

    persons = np.arange(len(target)) % 12, np.arange(len(background)) % 12
    search = BackgroundSearchCV(Spy(1), {"shrinkage": [0.1]}, cv=4)
    search.fit(target, background=background, groups=persons[0], background_groups=[persons[1]])
    for kept_target, kept_background in seen[:4]:
        kept = {
            *persons[0][np.isin(target[:, 0], kept_target)],
            *persons[1][np.isin(background[:, 0], kept_background)],
        }
        left = {
            *persons[0][~np.isin(target[:, 0], kept_target)],
            *persons[1][~np.isin(background[:, 0], kept_background)],
        }
        assert kept
        assert left
        assert not kept & left


def test_groups_and_weights_reach_the_last_step_of_a_pipeline():
    target, background, *_ = data(4)
    groups = np.arange(len(target)) % 12, np.arange(len(background)) % 12
    given = {"background": background, "groups": groups[0], "background_groups": groups[1]}
    given["background_sample_weight"] = np.where(groups[1] < 6, 2.0, 1.0)
    search = BackgroundSearchCV(
        make_pipeline(StandardScaler(), DiscriminativePCA(1)), {"discriminativepca__shrinkage": [0.1]}
    )
    found = search.fit(target, **given).best_estimator_
    assert found[-1].n_subjects_ == [12, 12]
    direct = make_pipeline(StandardScaler(), DiscriminativePCA(1, shrinkage=0.1)).fit(target, **given)
    np.testing.assert_array_equal(found[-1].components_, direct[-1].components_)
    # The search may itself be the last step.
    step = make_pipeline(StandardScaler(), BackgroundSearchCV(DiscriminativePCA(1), {"shrinkage": [0.1]}))
    inner = step.fit(target, **given)[-1].best_estimator_
    np.testing.assert_array_equal(inner.components_, direct[-1].components_)


def test_each_of_several_backgrounds_has_weights_of_its_own_or_none():
    target, background, *_ = data(7)
    weights = np.linspace(1.0, 2.0, len(background))
    search = BackgroundSearchCV(DiscriminativePCA(1), {"shrinkage": [0.1]}, cv=3)
    for given in ([None, weights], [weights, None]):
        both = {"background": [background, background[::-1]], "background_sample_weight": given}
        direct = DiscriminativePCA(1, shrinkage=0.1).fit(target, **both)
        found = search.fit(target, **both).best_estimator_
        np.testing.assert_allclose(found.components_, direct.components_)


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (ContrastivePCA(1), {"alpha": [0.5, 2.0]}),
        (KernelDiscriminativePCA(1), {"gamma": [0.01, 0.1]}),
        (DiscriminativePCA(1), ParameterSampler(GRID, 2, random_state=0)),
        (DiscriminativePCA(1), [{"shrinkage": [0.1]}, {"n_components": [1, 2]}]),
    ],
)
def test_other_estimators_grids_and_frames(model, grid):
    pandas = pytest.importorskip("pandas")
    target, background, *_ = data(5, n=30, d=6)
    frames = [pandas.DataFrame(rows, columns=list("abcdef")) for rows in (target, background)]
    search = BackgroundSearchCV(model, grid, cv=3).fit(frames[0], background=frames[1])
    assert list(search.best_estimator_.feature_names_in_) == list("abcdef")


def test_what_cannot_be_searched_is_refused():
    target, background, *_ = data(6)
    search = BackgroundSearchCV(DiscriminativePCA(1), GRID)
    with pytest.raises(TypeError, match="the target is read in parts.*shrinkage='held-out'"):
        search.fit(iter([target]), background=background)
    with pytest.raises(ValueError, match="background 1 has fewer than 2 rows in one of 5 folds. Use a smaller cv"):
        search.fit(target, background=background[:7])
    with pytest.raises(ValueError, match="groups are needed for every dataset"):
        search.fit(target, background=background, groups=np.arange(60))
    for number in (1, 3):
        with pytest.raises(ValueError, match=f"has entries for {number} background.s., but there are 2"):
            search.fit(target, background=[background] * 2, background_sample_weight=[np.ones(67)] * number)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(61,\), but the target has 60 rows"):
        search.fit(target, background=background, sample_weight=np.ones(61))
    with pytest.raises(ValueError, match=r"groups has shape \(\), but the target has 60 rows.*name of a column"):
        search.fit(target, background=background, groups="donor", background_groups="donor")
    with pytest.raises(ValueError, match="param_grid is empty"):
        BackgroundSearchCV(DiscriminativePCA(1), []).fit(target, background=background)
    with pytest.raises(ValueError, match="cv=1 is less than 2"):
        BackgroundSearchCV(DiscriminativePCA(1), GRID, cv=1).fit(target, background=background)
