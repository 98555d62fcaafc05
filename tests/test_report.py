"""The report before it is a page: what is examined."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from report_runs import every_method, fitted, same_up_to_sign
from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA, make_pipeline
from standout.report import examine, page
from standout.report._labels import MISSING, read_labels
from standout.report._views import MOST_BACKGROUND_POINTS, MOST_TARGET_POINTS

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


def test_a_few_far_off_rows_do_not_press_all_others_into_one_bin(pair):
    target, background = pair
    target = target.copy()
    target[0] *= 1e5
    findings = examine(fitted(DiscriminativePCA(1), target, background), target, background)
    assert findings.target.counts[0].sum() == 200
    assert np.count_nonzero(findings.datasets[1].counts[0]) > 1 or np.ptp(findings.bin_edges[0]) < 1e6


def test_a_million_rows_take_little_memory_beside_the_data(rng):
    # 40 MB stand for more: what is kept per row is a score of each component.
    target, background = rng.normal(size=(100_000, 50)), rng.normal(size=(1000, 50))
    model = fitted(DiscriminativePCA(2), target, background)
    tracemalloc.start()
    examine(model, target, background)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.75 * target.nbytes


@pytest.mark.parametrize("form", ["frame", "sparse", "float32", "pipeline"])
def test_every_form_of_data_is_examined(form, pair):
    target, background = pair
    if form == "frame":
        target, background = (pd.DataFrame(data, columns=list("abcdef")) for data in pair)
    elif form == "sparse":
        target, background = (sparse.csr_array(data) for data in pair)
    elif form == "float32":
        target, background = (data.astype(np.float32) for data in pair)
    model = make_pipeline(StandardScaler(), DiscriminativePCA(2)) if form == "pipeline" else DiscriminativePCA(2)
    findings = examine(fitted(model, target, background), target, background)
    assert np.allclose(findings.target.scores, model.transform(target), atol=1e-3)
    assert findings.features == (tuple("abcdef") if form == "frame" else tuple(f"column {k}" for k in range(6)))
    assert np.argmax(np.abs(findings.correlations[0])) == 5


def test_correlations_are_those_of_columns_and_scores(pair):
    target, background = pair
    for model in (DiscriminativePCA(2), ContrastivePCA(2), KernelDiscriminativePCA(2)):
        fitted(model, target, background)
        scores = model.transform(target)
        expected = np.corrcoef(target.T, scores.T)[:6, 6:].T
        assert np.allclose(examine(model, target, background).correlations, expected, atol=1e-6)


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
        (lambda **kw: KernelContrastivePCA(2, **kw), "alpha"),
    ],
    ids=["shrinkage", "alpha", "epsilon", "epsilon of full rank", "candidates"],
)
def test_every_step_of_a_path_is_a_fit_at_its_value(make, parameter, pair):
    target, background = pair
    findings = examine(fitted(make(), target, background), target, background)
    path = findings.path
    assert path.parameter == parameter
    for index in {0, len(path.values) // 2, len(path.values) - 1}:
        again = fitted(make(**{parameter: float(path.values[index])}), target, background)
        expected = again.transform(np.concatenate([target, background]))
        # Where two eigenvalues are close, rounding turns the second direction: the first is looked at.
        assert same_up_to_sign(path.scores[index][:, :1], expected[:, :1], 2e-3)


def test_neighbouring_views_do_not_flip(pair):
    target, background = pair
    path = examine(fitted(DiscriminativePCA(2), target, background), target, background).path
    first = path.scores[:, :200] - path.scores[:, :200].mean(axis=1, keepdims=True)
    assert np.all(np.einsum("gij,gij->gj", first[1:], first[:-1]) >= 0)


def test_there_is_no_path_without_background_or_wish(pair):
    target, background = pair
    assert examine(fitted(DiscriminativePCA(2), target), target).path is None
    model = fitted(DiscriminativePCA(2), target, background)
    assert examine(model, target, background, with_path=False).path is None


def test_scores_that_are_known_give_the_same_report(pair):
    target, background = pair
    for model, backgrounds in every_method(target, background).values():
        fitted(model, target, *backgrounds)
        known = [model.transform(rows) for rows in (target, *backgrounds)]
        ours, theirs = (examine(model, target, backgrounds or None, scores=scores) for scores in (known, None))
        assert page(ours) == page(theirs)
    with pytest.raises(ValueError, match="Give one for each dataset"):
        examine(model, target, backgrounds, scores=known[:1])
    with pytest.raises(ValueError, match="Give one for each row of each dataset"):
        examine(model, target, backgrounds, scores=[known[0][1:], known[1]])


# Labels


def test_labels_are_groups_or_a_scale_and_may_be_missing():
    few = read_labels([2, 1, 2], 3)
    assert few.names == ("1", "2")
    assert few.groups.tolist() == [1, 0, 1]
    mixed = read_labels(["b", None, "a"], 3)
    assert mixed.names == (MISSING, "a", "b")
    scale = read_labels(np.linspace(0, 1, 50), 50)
    assert scale.groups is None
    assert scale.values[-1] == 1.0
    many = read_labels([f"label {k % 40:02d}" for k in range(100)], 100)
    assert len(many.names) == 12
    assert many.names[-1] == "other labels (29)"
    assert many.groups.max() == 11


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
