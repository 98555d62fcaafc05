"""scikit-learn's checks of estimators, and how models look and behave in its tools."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA

LINEAR = [DiscriminativePCA, ContrastivePCA]
ALL = [*LINEAR, KernelDiscriminativePCA, KernelContrastivePCA]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        DiscriminativePCA(),
        DiscriminativePCA(1, shrinkage=None, solver="iterative", scale="pooled"),
        DiscriminativePCA(1, n_columns=1, smooth="chain"),
        DiscriminativePCA(robust="rows"),
        ContrastivePCA(),
        ContrastivePCA(1, alpha=1.0, center="background", robust="cells"),
        KernelDiscriminativePCA(),
        KernelContrastivePCA(),
    ]
)
def test_scikit_learn_contract(estimator, check):
    if check.func.__name__.startswith("check_array_api"):
        pytest.skip("arrays of other libraries are tested by the routes")
    if estimator.robust and check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("robust weights are learned from rows, whatever weights these have")
    check(estimator)


@pytest.fixture
def pair(rng):
    return rng.normal(size=(80, 5)) * [5, 1, 1, 1, 3], rng.normal(size=(60, 5)) * [5, 1, 1, 1, 1]


@pytest.mark.parametrize("kind", ALL)
def test_a_model_survives_clone_and_pickle(kind, pair):
    X, Y = pair
    model = kind().fit(X, background=Y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))
    again = clone(model).fit(X, background=Y)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


@pytest.mark.parametrize("kind", ALL)
def test_fit_transform_is_fit_and_transform(kind, pair):
    X, Y = pair
    both = kind().fit_transform(X, background=Y)
    np.testing.assert_array_equal(both, kind().fit(X, background=Y).transform(X))


@pytest.mark.parametrize("kind", LINEAR)
def test_none_is_all_components(kind, pair):
    X, Y = pair
    model = kind(None).fit(X, background=Y)
    assert model.n_components_ == 5
    given = {"shrinkage": 0.5} if kind is DiscriminativePCA else {"alpha": 1.0}
    assert kind(None, **given).fit(X[:3], background=Y[:2]).n_components_ == 3  # 2 + 1 directions
    # A column that repeats another one, and a constant one, add no component.
    more = [np.column_stack([part, part[:, 0], np.ones(len(part))]) for part in pair]
    assert kind(None).fit(more[0], background=more[1]).n_components_ == 5


# A component without variance in a fold leaves no value of α that can be judged.
@pytest.mark.filterwarnings("ignore:at each value held-out rows do not vary")
@pytest.mark.parametrize("kind", [ContrastivePCA, KernelContrastivePCA])
def test_all_components_of_wide_data_are_those_that_every_fold_has(kind, rng):
    X, Y = rng.normal(size=(24, 60)), rng.normal(size=(20, 60))
    model = kind(None).fit(X, background=Y)
    # Without a fold, 19 + 16 rows are left. They have 33 directions about their two means.
    assert model.n_components_ == 33
    assert np.all(np.isfinite(model.ratio_))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_components_of_wide_data_without_shrinkage_are_those_that_every_fold_has(rng):
    X, Y = rng.normal(size=(24, 60)), rng.normal(size=(20, 60))
    assert DiscriminativePCA(None, shrinkage=None).fit(X, background=Y).n_components_ == 33


@pytest.mark.parametrize("kind", ALL)
def test_the_label_form_equals_the_background_form(kind, pair, rng):
    X, Y = pair
    Z, labels = np.vstack([X, Y, 2 * Y]), np.array(["t"] * 80 + ["b"] * 60 + ["a"] * 60)
    model = kind(target_label="t").fit(Z, labels)
    assert model.classes_.tolist() == ["a", "b", "t"]
    assert model.background_labels_ == ["a", "b"]
    other = kind().fit(X, background=[2 * Y, Y])
    np.testing.assert_allclose(model.ratio_, other.ratio_, rtol=1e-10)
    assert model.path_.chosen == other.path_.chosen


@pytest.mark.parametrize("kind", ALL)
def test_every_result_is_declared_with_a_type(kind, pair):
    X, Y = pair
    model = kind(target_label=1).fit(np.vstack([X, Y]), [1] * 80 + [0] * 60)
    declared = {name for one in kind.__mro__ for name in vars(one).get("__annotations__", ())}
    missing = {name for name in vars(model) if name.endswith("_")} - declared
    assert not missing


@pytest.mark.parametrize("kind", ALL)
def test_the_repr_of_a_fitted_model_has_ratio_rows_columns_and_choice(kind, pair):
    X, Y = pair
    model = kind(1)
    assert "\n" not in repr(model)
    model.fit(X, background=Y)
    shown = repr(model)
    assert shown.startswith(f"{kind.__name__}(n_components=1)\nfitted to 80 against 60 rows of 5 columns")
    assert f"ratio {model.ratio_[0]:.3g} (" in shown
    assert "(chosen)" in shown
    assert f"{model.path_.value:.3g}" in shown


def test_the_html_of_a_fitted_model_has_the_findings_and_tooltips(pair):
    pandas = pytest.importorskip("pandas")
    X, Y = (pandas.DataFrame(part, columns=[*"abcd", "<e>"]) for part in pair)
    model = DiscriminativePCA(1)
    assert "standout-fit" not in model._repr_html_()
    assert model._get_doc_link().endswith("index.rst")
    html = model.fit(X, background=Y)._repr_html_()
    assert "standout-fit" in model._repr_mimebundle_()["text/html"]
    assert f"<td>{model.ratio_[0]:.3g}</td>" in html
    assert "&lt;e&gt;" in html
    assert "<e>" not in html
    if parse_version(sklearn.__version__) >= parse_version("1.8"):  # the first version with tooltips
        assert "How far the covariance of the background is pulled" in html


def test_the_summary_has_a_row_per_component(pair):
    pytest.importorskip("pandas")
    X, Y = pair
    model = DiscriminativePCA(2).fit(X, background=Y)
    table = model.summary()
    assert table.index.tolist() == ["component 1", "component 2"]
    np.testing.assert_array_equal(table["ratio"], model.ratio_)
    assert table["leading columns"].iloc[0].split(", ")[0].lstrip("+-") == "4"


def test_set_output_names_the_components(pair):
    pandas = pytest.importorskip("pandas")
    X, Y = pair
    scores = DiscriminativePCA().set_output(transform="pandas").fit(X, background=Y).transform(X)
    assert isinstance(scores, pandas.DataFrame)
    assert scores.columns.tolist() == ["discriminativepca0", "discriminativepca1"]


@pytest.mark.parametrize("kind", ALL)
def test_a_new_fit_leaves_nothing_of_the_old_one(kind, pair):
    X, Y = pair
    model = kind(target_label=1, robust="rows").fit(np.vstack([X, Y]), [1] * 80 + [0] * 60)
    assert hasattr(model, "classes_")
    model.set_params(target_label=None, robust=None).fit(X[:, :4], background=Y[:, :4])
    fresh = kind().fit(X[:, :4], background=Y[:, :4])
    assert {name for name in vars(model) if name.endswith("_")} == {name for name in vars(fresh) if name.endswith("_")}
    np.testing.assert_array_equal(model.transform(X[:, :4]), fresh.transform(X[:, :4]))
