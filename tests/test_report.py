"""What is examined for a report: points, labels, the path, and data of any size."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from report_runs import every_method, fitted, same_up_to_sign
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA, make_pipeline
from standout.report import examine, page
from standout.report._labels import NO_LABEL
from standout.report._scores import MOST_BACKGROUND_POINTS, MOST_TARGET_POINTS

# Points and views


def test_points_are_the_scores_of_the_model_and_of_pca(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    findings = examine(model, target, background)
    ours, other = findings.datasets
    assert np.allclose(ours.scores, model.transform(target), atol=1e-4)
    assert np.allclose(other.scores, model.transform(background), atol=1e-4)
    pca = PCA(2).fit(target)
    assert same_up_to_sign(ours.pca_scores, pca.transform(target), 1e-4)
    assert same_up_to_sign(other.pca_scores, pca.transform(background), 1e-4)
    agreement = np.einsum("ij,ij->j", ours.scores - ours.scores.mean(0), ours.pca_scores)
    assert np.all(agreement >= 0)


def test_of_many_rows_a_fixed_sample_is_shown_but_all_are_counted(rng):
    target, first, second = rng.normal(size=(7000, 3)) * [1, 1, 2], rng.normal(size=(4000, 3)), rng.normal(size=(50, 3))
    ids = [f"cell {row}" for row in range(7000)]
    labels = np.arange(7000) % 2
    model = fitted(DiscriminativePCA(2), target, first, second)
    findings = examine(model, target, [first, second], ids=ids, labels=labels)
    assert [len(part.rows) for part in findings.datasets] == [MOST_TARGET_POINTS, MOST_BACKGROUND_POINTS // 2, 50]
    rows = findings.target.rows
    assert np.all(np.diff(rows) > 0)
    assert findings.target.ids == tuple(ids[row] for row in rows)
    assert findings.target.groups.tolist() == labels[rows].tolist()
    assert np.allclose(findings.target.scores, model.transform(target)[rows], atol=1e-4)
    assert [part.counts.sum(axis=1).tolist() for part in findings.datasets] == [[7000] * 2, [4000] * 2, [50] * 2]
    assert np.array_equal(findings.label_counts.sum(axis=0), findings.target.counts)
    assert np.array_equal(examine(model, target, [first, second]).target.rows, rows)


def test_counts_are_those_of_a_histogram_with_all_rows_in_it(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(1), target, background)
    findings = examine(model, target, background, labels=np.arange(200) % 3)
    edges, scores = findings.bin_edges[0], model.transform(target)[:, 0]
    inside = np.clip(scores, edges[0], edges[-1])
    assert findings.target.counts[0].tolist() == np.histogram(inside, edges)[0].tolist()
    assert findings.label_counts[1, 0].tolist() == np.histogram(inside[1::3], edges)[0].tolist()


def test_a_few_far_off_rows_do_not_press_all_others_into_one_bin(pair):
    target, background = pair
    target = target.copy()
    target[0] *= 1e5
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background)
    assert findings.target.counts[0].sum() == 200
    # The far-off row has a score of about 1e6; components without its fold are scaled by up to 3.
    assert np.count_nonzero(findings.datasets[1].counts[0]) > 1 or np.ptp(findings.bin_edges[0]) < 1e7


def test_many_rows_take_little_memory_beside_the_data(rng):
    target, background = rng.normal(size=(100_000, 50)), rng.normal(size=(1000, 50))
    model = fitted(DiscriminativePCA(2), target, background)
    tracemalloc.start()
    examine(model, target, background)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.75 * target.nbytes


@pytest.mark.parametrize("form", ["frame", "sparse", "float32", "pipeline", "pipeline of frames"])
def test_every_form_of_data_is_examined(form, pair):
    target, background = pair
    if "frame" in form:
        target, background = (pd.DataFrame(data, columns=list("abcdef")) for data in pair)
    elif form == "sparse":
        target, background = (sparse.csr_array(data) for data in pair)
    elif form == "float32":
        target, background = (data.astype(np.float32) for data in pair)
    model = make_pipeline(StandardScaler(), DiscriminativePCA(2)) if "pipeline" in form else DiscriminativePCA(2)
    findings = examine(fitted(model, target, background), target, background)
    assert np.allclose(findings.target.scores, model.transform(target), atol=1e-3)
    assert findings.features == (tuple("abcdef") if "frame" in form else tuple(f"column {k}" for k in range(6)))
    assert np.argmax(np.abs(findings.correlations[0])) == 5


def test_correlations_are_those_of_columns_and_scores(pair):
    target, background = pair
    for model in (DiscriminativePCA(2), ContrastivePCA(2), KernelDiscriminativePCA(2)):
        fitted(model, target, background)
        scores = model.transform(target)
        expected = np.corrcoef(target.T, scores.T)[:6, 6:].T
        assert np.allclose(examine(model, target, background).correlations, expected, atol=1e-6)


def test_rows_that_were_not_fitted_are_examined_by_their_own_moments(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    given = []
    other = examine(model, target * 2, background, on_scores=lambda number, *_: given.append(number))
    assert np.allclose(other.spreads, 2 * examine(model, target, background).spreads)
    assert given == [0, 1]


def test_what_does_not_fit_the_model_is_refused(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    with pytest.raises(ValueError, match="backgrounds"):
        examine(model, target)
    with pytest.raises(ValueError, match="backgrounds"):
        examine(model, target, [background, background])
    with pytest.raises(ValueError, match="5 features"):
        examine(model, target[:, :5], background[:, :5])
    with pytest.raises(ValueError, match="ids"):
        examine(model, target, background, ids=["a"])
    with pytest.raises(ValueError, match="labels"):
        examine(model, target, background, labels=["a"] * 201)
    with pytest.raises(ValueError, match="list of names"):
        examine(model, target, background, features=["a"])
    with pytest.raises(ValueError, match="background names"):
        examine(model, target, background, background_names=["a", "b"])
    with pytest.raises(TypeError, match="iterator"):
        examine(model, iter([target]), background)


# The path


def test_the_path_holds_the_fit_and_ends_at_pca(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    findings = examine(model, target, background)
    path = findings.path
    shown = np.concatenate([part.scores for part in findings.datasets])
    assert path.parameter == "shrinkage"
    assert path.values[path.chosen] == pytest.approx(model.shrinkage_[0])
    assert np.array_equal(path.scores[path.chosen], shown)
    assert np.all(np.diff(path.values) > 0)
    assert (path.values[0], path.values[-1]) == (0.0, 1.0)
    angle = np.corrcoef(path.scores[-1, :200].T, findings.target.pca_scores.T)[:2, 2:]
    assert np.allclose(np.abs(np.diag(angle)), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda **kw: DiscriminativePCA(2, **kw), "shrinkage"),
        (lambda **kw: ContrastivePCA(2, **kw), "alpha"),
        (lambda **kw: KernelDiscriminativePCA(2, kernel="poly", degree=2, **kw), "epsilon"),
        (lambda **kw: KernelDiscriminativePCA(2, **kw), "epsilon"),
        (lambda **kw: KernelDiscriminativePCA(2, approximation="fourier", rank=60, **kw), "epsilon"),
        (lambda **kw: KernelContrastivePCA(2, **kw), "alpha"),
    ],
    ids=["shrinkage", "alpha", "epsilon", "epsilon of full rank", "epsilon of kept sums", "candidates"],
)
def test_every_step_of_a_path_is_a_fit_at_its_value(make, parameter, pair):
    target, background = pair
    findings = examine(fitted(make(), target, background), target, background)
    path = findings.path
    assert path.parameter == parameter
    for index in {0, len(path.values) // 2, len(path.values) - 1}:
        again = fitted(make(**{parameter: float(path.values[index])}), target, background)
        expected = again.transform(np.concatenate([target, background]))
        # If two eigenvalues are close, rounding turns the second direction: the first is compared.
        assert same_up_to_sign(path.scores[index][:, :1], expected[:, :1], 2e-3)


def test_neighbouring_views_do_not_flip(pair):
    target, background = pair
    path = examine(fitted(DiscriminativePCA(2), target, background), target, background).path
    first = path.scores[:, :200] - path.scores[:, :200].mean(axis=1, keepdims=True)
    assert np.all(np.einsum("gij,gij->gj", first[1:], first[:-1]) >= 0)


def test_there_is_no_path_without_background_or_if_it_is_not_wanted(pair):
    target, background = pair
    assert examine(fitted(DiscriminativePCA(2), target), target).path is None
    model = fitted(DiscriminativePCA(2), target, background)
    assert examine(model, target, background, with_path=False).path is None


@pytest.mark.filterwarnings("ignore:1 of the values are zero")
def test_dependent_columns_leave_fewer_directions_and_no_error(rng):
    target, background = (np.repeat(rng.normal(size=(100, 1)), 3, axis=1) * scale for scale in ([3, 3, 3], [1, 1, 1]))
    with pytest.warns(UserWarning, match="values are zero"):
        model = fitted(DiscriminativePCA(2, shrinkage=0.1), target, background)
    assert examine(model, target, background).path.values[0] > 0.0


# Labels


@pytest.fixture
def looked_at(pair):
    """Give a function that examines the same fit with other labels."""
    target, background = pair
    model = fitted(DiscriminativePCA(2), target, background)
    return lambda labels: examine(model, target, background, labels=labels, with_path=False)


def test_labels_are_groups_in_order_and_may_be_missing(looked_at):
    few = looked_at([10, 2] * 100)
    assert few.label_names == ("2", "10")
    assert few.target.groups.tolist() == [1, 0] * 100
    mixed = looked_at(["b", None, "a", ""] * 50)
    assert mixed.label_names == (NO_LABEL, "a", "b")
    assert mixed.target.labels[:4] == ("b", NO_LABEL, "a", NO_LABEL)


def test_many_different_numbers_are_a_scale(looked_at):
    numbers = np.linspace(0, 1, 200)
    numbers[3] = np.nan
    for labels in (numbers, ["" if np.isnan(value) else str(value) for value in numbers]):
        scale = looked_at(labels)
        assert scale.target.groups is None
        assert scale.label_names == ()
        assert len(scale.label_counts) == 0
        assert np.array_equal(scale.target.values, numbers, equal_nan=True)


def test_of_many_groups_the_largest_keep_their_names(looked_at):
    many = looked_at(["large"] * 100 + [f"label {k % 40:02d}" for k in range(100)])
    assert len(many.label_names) == 12
    assert "large" in many.label_names
    assert many.n_other_labels == 30
    assert many.target.groups.max() == 11
    assert many.label_counts[:, 0].sum() == 200
    assert many.clustering_error is None


def test_the_clustering_error_is_that_of_the_metric(pair):
    target, background = pair
    sides = np.where(np.arange(200) < 100, "left", "right")
    target = target + np.outer(np.where(sides == "left", -8.0, 8.0), [0, 0, 0, 0, 0, 1])
    model = fitted(DiscriminativePCA(2), target, background)
    findings = examine(model, target, background, labels=sides)
    assert findings.clustering_error < 0.02
    assert findings.pca_clustering_error is not None
    assert examine(model, target, background).clustering_error is None
    assert examine(model, target, background, labels=np.arange(200.0)).clustering_error is None


# Components that are more than chance


def test_a_test_by_formula_is_of_the_fitted_components(pair):
    target, background = pair
    # Strong shrinkage of unequal columns turns to the largest column, which does not stand out.
    model = DiscriminativePCA(1, shrinkage=0.9, test="analytic")
    findings = examine(fitted(model, target, background), target, background)
    assert np.argmax(np.abs(findings.components[0])) == 0
    assert findings.test.n_significant == 0
    plain = findings.target_variance[0] / findings.background_variance[0, 0]
    assert findings.test.ratios[0] == pytest.approx(plain)
    model = DiscriminativePCA(1, shrinkage=0.05, test="analytic")
    mild = examine(fitted(model, target, background), target, background)
    assert mild.test.n_significant == 1


def test_the_test_of_the_fit_is_used_if_there_is_one(pair):
    target, background = pair
    model = fitted(DiscriminativePCA(2, test="permutation"), target, background)
    assert examine(model, target, background).test is model.component_test_
    assert examine(fitted(ContrastivePCA(2), target, background), target, background).test is None


def test_dependent_columns_leave_the_fitted_components_to_be_tested(pair):
    target, background = (np.column_stack([rows, rows[:, :3].sum(axis=1)]) for rows in pair)
    model = fitted(DiscriminativePCA(2, shrinkage=0.1, test="auto"), target, background)
    findings = examine(model, target, background)
    assert findings.test.n_significant == 1
    with pytest.warns(UserWarning, match="singular"):
        model = fitted(DiscriminativePCA(2, shrinkage=None), target, background)
    findings = examine(model, target, background)
    reasons = [str(choice) for choice in findings.choices if choice.facts["kind"] == "test"]
    assert len(reasons) == 1
    assert "n_components" not in reasons[0]


def test_a_precomputed_kernel_has_no_columns_and_is_examined(pair):
    rows = np.concatenate(pair)
    kernel = rbf_kernel(rows, gamma=0.005)
    model = KernelDiscriminativePCA(2, kernel="precomputed").fit(kernel[:200], background=kernel[200:])
    findings = examine(model, kernel[:200], kernel[200:], labels=np.arange(200) % 2)
    assert findings.features == ()
    assert findings.correlations is None
    same = KernelDiscriminativePCA(2, gamma=0.005).fit(pair[0], background=pair[1])
    # With so many coordinates, the background looks much tighter in its own fit than it is.
    assert findings.drawn_held_out
    assert same_up_to_sign(findings.target.fitted_scores, same.transform(pair[0]), 1e-4)
    assert findings.pca_clustering_error is not None
    assert page(findings)


def test_every_method_is_examined(pair):
    for model, backgrounds in every_method(*pair).values():
        findings = examine(fitted(model, pair[0], *backgrounds), pair[0], backgrounds or None)
        assert len(findings.datasets) == 1 + len(backgrounds)
        assert (findings.ratios is not None) == bool(backgrounds)
