"""Pipelines: the backgrounds go through the steps that were fitted to the target."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

from standout import BackgroundPipeline, ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, make_pipeline, scan
from standout._messages import CautionWarning, InvalidTypeError

pytestmark = pytest.mark.filterwarnings("ignore:the chosen shrinkage")


@pytest.fixture
def data(rng):
    scale = np.array([100, 1, 0.01, 1, 1])
    X = rng.normal(size=(120, 5)) * [1, 1, 3, 1, 1] * scale + 5
    Y = rng.normal(size=(90, 5)) * scale + 5
    return X, Y


def by_hand(model, X, backgrounds, *steps):
    for step in steps:
        step.fit(X)
        X, backgrounds = step.transform(X), [step.transform(part) for part in backgrounds]
    return model.fit(X, background=backgrounds), X


@pytest.mark.parametrize("model", [DiscriminativePCA(1), ContrastivePCA(1), KernelDiscriminativePCA(1)])
def test_a_pipeline_is_its_steps_by_hand(data, model):
    X, Y = data
    made = make_pipeline(StandardScaler(), PCA(4), clone(model)).fit(X, background=Y)
    expected, last = by_hand(clone(model), X, [Y], StandardScaler(), PCA(4))
    np.testing.assert_allclose(made[-1].ratio_, expected.ratio_)
    np.testing.assert_allclose(made.transform(X), expected.transform(last))
    np.testing.assert_allclose(made.fit_transform(X, background=Y), made.transform(X))
    after = [made[:-1].transform(part) for part in (X, Y)]
    assert made.score(X, background=Y) == pytest.approx(expected.score(after[0], background=after[1]))
    assert made.score(X, background=[Y, Y]) == pytest.approx(made.score(X, background=Y))


def test_steps_that_do_nothing_are_passed(data):
    X, Y = data
    made = BackgroundPipeline([("none", "passthrough"), ("dpca", DiscriminativePCA(1))]).fit(X, background=[Y])
    np.testing.assert_allclose(made.transform(X), DiscriminativePCA(1).fit(X, background=Y).transform(X))


def test_steps_after_the_estimator_see_scores(data):
    X, Y = data
    made = make_pipeline(StandardScaler(), DiscriminativePCA(1), KMeans(2, n_init=1, random_state=0))
    made.fit(X, background=Y)
    assert made[-1].cluster_centers_.shape == (2, 1)
    assert made.predict(X).shape == (120,)


def test_labels_and_facts_reach_the_estimator(data, rng):
    X, Y = data
    rows, labels = np.vstack([X, Y]), np.repeat([1, 0], [120, 90])
    made = make_pipeline(StandardScaler(), DiscriminativePCA(1, target_label=1)).fit(rows, labels)
    assert made[-1].classes_.tolist() == [0, 1]
    weights = {"sample_weight": rng.uniform(0.5, 2.0, 120), "background_sample_weight": rng.uniform(0.5, 2.0, 90)}
    made = make_pipeline(StandardScaler(), DiscriminativePCA(1)).fit(X, background=Y, **weights)
    scaler = StandardScaler().fit(X)
    expected = DiscriminativePCA(1).fit(scaler.transform(X), background=scaler.transform(Y), **weights)
    np.testing.assert_allclose(made[-1].ratio_, expected.ratio_)


def test_columns_are_found_by_name(data):
    pandas = pytest.importorskip("pandas")
    X, Y = (pandas.DataFrame(rows, columns=list("abcde")) for rows in data)
    chosen = make_column_transformer((StandardScaler(), ["c", "a"]), remainder="drop")
    made = make_pipeline(chosen, DiscriminativePCA(1)).fit(X, background=Y[list("edcba")])
    expected, _ = by_hand(DiscriminativePCA(1), X[["c", "a"]], [Y[["c", "a"]]], StandardScaler())
    np.testing.assert_allclose(made[-1].ratio_, expected.ratio_)
    assert made.feature_names_in_.tolist() == list("abcde")
    assert made[-1].n_features_in_ == 2


def test_the_contract_of_scikit_learn_holds(data):
    X, Y = data
    made = make_pipeline(StandardScaler(), DiscriminativePCA(1))
    copy = clone(made).set_params(discriminativepca__shrinkage=0.5)
    assert copy.fit(X, background=Y)[-1].shrinkage_ == 0.5
    frame = made.set_output(transform="pandas").fit(X, background=Y).transform(X)
    assert frame.columns.tolist() == ["discriminativepca0"]
    assert hasattr(made[:1], "transform")


# --- data that are read in batches -----------------------------------------------------------------------------------


@pytest.fixture
def files(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    paths = []
    for rows, name in zip(data, "xy", strict=True):
        pandas.DataFrame(rows, columns=list("abcde")).to_parquet(tmp_path / f"{name}.parquet", row_group_size=20)
        paths.append(tmp_path / f"{name}.parquet")
    return paths


@pytest.mark.parametrize("step", [StandardScaler(), MinMaxScaler(), Normalizer(), FunctionTransformer(np.arcsinh)])
def test_files_go_through_the_steps_batch_by_batch(data, files, step):
    X, Y = data
    made = make_pipeline(clone(step), DiscriminativePCA(1)).fit(scan(files[0]), background=scan(files[1]))
    expected, last = by_hand(DiscriminativePCA(1), X, [Y], clone(step))
    np.testing.assert_allclose(made[-1].ratio_, expected.ratio_, rtol=1e-8)
    np.testing.assert_allclose(made.transform(scan(files[0])), expected.transform(last), atol=1e-8)
    score = made.score(scan(files[0]), background=scan(files[1]))
    assert score == pytest.approx(expected.score(last, background=clone(step).fit(X).transform(Y)))


def test_dask_goes_through_the_steps_and_stays_lazy(data):
    dask = pytest.importorskip("dask.array")
    X, Y = data
    made = make_pipeline(StandardScaler(), DiscriminativePCA(1))
    made.fit(dask.from_array(X, chunks=(50, 5)), background=dask.from_array(Y, chunks=(50, 5)))
    expected, last = by_hand(DiscriminativePCA(1), X, [Y], StandardScaler())
    scores = made.transform(dask.from_array(X, chunks=(50, 5)))
    assert scores.shape == (120, 1)
    assert hasattr(scores, "compute")
    np.testing.assert_allclose(scores.compute(), expected.transform(last), atol=1e-8)


def test_steps_that_need_all_rows_are_refused_for_batches(files, data):
    with pytest.raises(InvalidTypeError, match="'pca' cannot be fitted to data that are read in batches"):
        make_pipeline(PCA(2), DiscriminativePCA(1)).fit(scan(files[0]), background=scan(files[1]))
    with pytest.raises(InvalidTypeError, match="read only once"):
        make_pipeline(StandardScaler(), DiscriminativePCA(1)).fit(iter([data[0]]), background=data[1])


# --- plain tools of scikit-learn -------------------------------------------------------------------------------------


def test_a_plain_pipeline_with_steps_is_refused(data):
    X, Y = data
    made = plain_pipeline(StandardScaler(), DiscriminativePCA(1))
    for method in (made.fit, made.fit_transform):
        with pytest.raises(ValueError, match=r"Use standout.make_pipeline"):
            method(X, discriminativepca__background=Y)
    nested = Pipeline([("outer", StandardScaler()), ("inner", Pipeline([("dpca", DiscriminativePCA(1))]))])
    with pytest.raises(ValueError, match="not the background"):
        nested.fit(X, inner__dpca__background=Y)
    # A pipeline of one step, and a fit without a background, are allowed.
    alone = plain_pipeline(DiscriminativePCA(1)).fit(X, discriminativepca__background=Y)
    assert alone[-1].background_n_samples_ == [90]
    assert made.fit(X)[-1].background_n_samples_ == []


def test_routing_leaves_the_request_unset(data):
    X, Y = data
    with config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match=r"\[background\] are passed but are not explicitly set"):
            plain_pipeline(StandardScaler(), DiscriminativePCA(1)).fit(X, background=Y)
        asked = DiscriminativePCA(1).set_fit_request(background=True)
        with pytest.raises(ValueError, match="not the background"):
            plain_pipeline(StandardScaler(), asked).fit(X, background=Y)
        # scikit-learn's own way transforms the background, too.
        made = plain_pipeline(StandardScaler(), asked, transform_input=["background"]).fit(X, background=Y)
    expected, _ = by_hand(DiscriminativePCA(1), X, [Y], StandardScaler())
    np.testing.assert_allclose(made[-1].ratio_, expected.ratio_)


class FittedInside(TransformerMixin, BaseEstimator):
    """A step that a user wrote, with a separate background."""

    def __init__(self, background):
        self.background = background

    def fit(self, X, y=None):
        self.model_ = DiscriminativePCA(1).fit(X, background=self.background)
        return self

    def transform(self, X):
        return self.model_.transform(X)


def test_a_step_of_a_user_may_have_its_own_background(data):
    X, Y = data
    made = plain_pipeline(StandardScaler(), FittedInside(StandardScaler().fit_transform(Y))).fit(X)
    assert made[-1].model_.background_n_samples_ == [90]


def test_a_plain_search_warns_if_it_cuts_the_background(data):
    X, Y = data
    search = GridSearchCV(DiscriminativePCA(1, cv=None), {"shrinkage": [0.1, 0.9]}, cv=3)
    with pytest.warns(CautionWarning, match="has cut the background"):
        search.fit(X[:90], background=Y)
    search.fit(X, background=Y)
    assert search.best_estimator_.background_n_samples_ == [90]


def test_columns_have_the_order_of_the_target_before_any_step(data):
    pandas = pytest.importorskip("pandas")
    X, Y = (np.asarray(part)[:, :3] for part in data[:2])
    first, second = (pandas.DataFrame(part, columns=list("abc")) for part in (X, Y))
    pipeline = make_pipeline(FunctionTransformer(np.asarray), DiscriminativePCA(1))
    found = pipeline.fit(first, background=second[["c", "a", "b"]])[-1]
    np.testing.assert_allclose(found.components_, DiscriminativePCA(1).fit(X, background=Y).components_)
