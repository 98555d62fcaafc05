"""Fits from sums: batches, places, and moments without rows."""

import numpy as np
import pytest
from scipy import sparse

from standout import ContrastivePCA, DiscriminativePCA
from standout._messages import InvalidTypeError, InvalidValueError
from standout.moments import gather

LINEAR = [DiscriminativePCA, ContrastivePCA]
# The second of two components is noise here, so every shrinkage is equally good.
pytestmark = pytest.mark.filterwarnings("ignore:the chosen shrinkage")


@pytest.fixture
def data(rng):
    X = rng.normal(size=(123, 6)) * [5, 1, 1, 1, 1, 3] + 2
    Y = rng.normal(size=(97, 6)) * [5, 1, 1, 1, 1, 1] + 2
    Z = rng.normal(size=(61, 6)) * [4, 2, 1, 1, 1, 1] + 2
    return X, Y, Z


def assert_same_numbers(model, other, names, **tolerances):
    for name in names.split():
        np.testing.assert_allclose(getattr(model, name), getattr(other, name), **tolerances)


def assert_same_model(model, other, tolerance=1e-9):
    names = "ratio_ ratio_error_ eigenvalues_ components_ mean_ correlations_ spread_ shift_"
    assert_same_numbers(model, other, names, rtol=tolerance, atol=tolerance)
    assert model.path_.chosen == other.path_.chosen
    assert model.path_.reason == other.path_.reason
    assert model.n_samples_ == other.n_samples_
    assert model.background_n_samples_ == other.background_n_samples_


def rows_kept(model):
    """Return the largest first dimension of any array that a model holds."""
    found, seen = [0], set()

    def look(thing):
        if id(thing) in seen or isinstance(thing, str | int | float | type | None):
            return
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            found.append(max(thing.shape, default=0))
        elif isinstance(thing, dict):
            list(map(look, thing.values()))
        elif isinstance(thing, list | tuple):
            list(map(look, thing))
        elif hasattr(thing, "__dict__"):
            look(vars(thing))

    look(vars(model))
    return max(found)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"scale": "pooled"},
        {"center": "background"},
        {"n_columns": 3},
        {"background_weights": [1, 3]},
        {"cv": 3},
        {"n_columns": "auto"},
        {"background_weights": "worst-case"},
        {"n_components": None, "scale": "background", "center": "background"},
        {"solver": "iterative", "random_state": 3},
        {"cv": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", LINEAR)
def test_batches_equal_one_fit(data, kind, given):
    X, Y, Z = data
    whole = kind(**given).fit(X, background=[Y, Z])
    model = kind(**given)
    # Batches of different sizes; some have no rows of a dataset.
    model.partial_fit(X[:1])
    model.partial_fit(X[1:50], background=[Y[:30], None])
    model.partial_fit(background=[Y[30:31], Z])
    model.partial_fit(X[50:], background=[Y[31:], None])
    assert_same_model(model, whole)
    if model.cv is None:
        assert model.held_out_ is None
        return
    scores = (each.held_out_scores(X, background=[Y, Z]) for each in (model, whole))
    for one, other in zip(*scores, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("given", [{"smooth": "chain"}, {"shrinkage": "ledoit-wolf"}, {"shrinkage": 0.3}], ids=str)
def test_batches_equal_one_fit_with_options_of_ratios(data, given):
    X, Y, _ = data
    whole, model = DiscriminativePCA(**given).fit(X, background=Y), DiscriminativePCA(**given)
    for start in range(0, 123, 41):
        model.partial_fit(X[start : start + 41], background=Y[start : start + 41])
    names = "ratio_ ratio_error_ eigenvalues_ components_ shrinkage_ spread_error_ shift_error_"
    assert_same_numbers(model, whole, names, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", ["array", "sparse", "frame", "iterator", "dask", "float32"])
def test_batches_of_every_form_equal_one_fit(data, form):
    X, Y, _ = data
    made = {
        "array": np.array,
        "sparse": sparse.csr_array,
        "frame": lambda rows: pytest.importorskip("pandas").DataFrame(rows, columns=list("abcdef")),
        "iterator": lambda rows: iter([rows[:7], rows[7:]]),
        "dask": lambda rows: pytest.importorskip("dask.array").from_array(rows, chunks=(9, 6)),
        "float32": lambda rows: rows.astype(np.float32),
    }[form]
    model = DiscriminativePCA()
    for start in range(0, 123, 41):
        model.partial_fit(made(X[start : start + 41]), background=made(Y[start : start + 41]))
    tolerance = 1e-4 if form == "float32" else 1e-9
    assert_same_model(model, DiscriminativePCA().fit(X, background=Y), tolerance)
    if form == "frame":
        assert model.feature_names_in_.tolist() == list("abcdef")


@pytest.mark.filterwarnings("ignore:rounding has left", "ignore:without a fold")
def test_numbers_near_the_limits_of_double_precision_have_no_warnings_of_numpy(rng):
    units = 10.0 ** rng.uniform(-140, 140, size=6)
    X, Y = rng.normal(size=(2, 60, 6)) * units
    assert np.all(np.isfinite(ContrastivePCA(1, alpha=3.0).partial_fit(X, background=Y).components_))


def test_fit_can_be_continued(data):
    X, Y, _ = data
    model = DiscriminativePCA().fit(X[:60], background=Y[:50]).partial_fit(X[60:], background=Y[50:])
    assert_same_model(model, DiscriminativePCA().fit(X, background=Y))


def test_few_rows_have_sums_but_no_components(data):
    X, Y, _ = data
    model = DiscriminativePCA().partial_fit(X[:1])
    with pytest.raises(ValueError, match="not fitted"):
        model.transform(X)
    model.partial_fit(X[1:4], background=Y[:3])
    assert model.path_.reason == "a dataset has 3 rows, and 5 folds need more"
    assert np.isnan(model.ratio_).all()
    model.partial_fit(X[4:], background=Y[3:])
    assert not model.path_.reason
    assert DiscriminativePCA(cv=None).partial_fit(X, background=Y).path_.reason == "cv is None"
    assert DiscriminativePCA().partial_fit(X).path_ is None


@pytest.mark.parametrize("kind", LINEAR)
def test_no_rows_are_kept(data, kind):
    X, Y, _ = data
    fitted = kind().fit(X, background=Y)
    continued = kind().fit(X[:60], background=Y[:60]).partial_fit(X[60:], background=Y[60:])
    merged = kind().fit(X[:60], background=Y[:50]).merge(kind().fit(X[60:], background=Y[50:]))
    for model in (fitted, continued, merged):
        # No array is longer than the table of folds, the path and the columns.
        assert rows_kept(model) <= 25


@pytest.mark.parametrize("kind", LINEAR)
def test_merged_places_are_folds(data, kind):
    X, Y, _ = data
    cuts = [(slice(0, 50), slice(0, 40)), (slice(50, 90), slice(40, 70)), (slice(90, None), slice(70, None))]
    places = [kind().fit(X[own], background=Y[other]) for own, other in cuts]
    model = places[0].merge(places[1]).merge(places[2])
    assert model.n_folds_ == 3
    assert (model.n_samples_, model.background_n_samples_) == (123, [97])
    groups = np.repeat(["a", "b", "c"], [50, 40, 33]), np.repeat(["a", "b", "c"], [40, 30, 27])
    whole = kind().fit(X, background=Y, groups=groups[0], background_groups=groups[1])
    assert model.path_.chosen == whole.path_.chosen
    np.testing.assert_allclose(model.components_, whole.components_, rtol=1e-9)
    np.testing.assert_allclose(model.ratio_, whole.ratio_, rtol=1e-9)
    scores = model.held_out_scores(X, background=Y)
    np.testing.assert_allclose(scores[0].var(axis=0), model.ratio_, rtol=1e-9)
    # Merging merged models gives the same result.
    first, second, third = (kind().fit(X[own], background=Y[other]) for own, other in cuts)
    again = first.merge(second.merge(third))
    np.testing.assert_allclose(again.components_, model.components_, rtol=1e-9)


def test_a_place_without_a_dataset_leaves_no_folds(data):
    X, Y, _ = data
    one = DiscriminativePCA().fit(X[:100], background=Y[:60])
    other = DiscriminativePCA().partial_fit(X[100:], background=[None])
    one.merge(other)
    assert one.n_samples_ == 123
    assert one.path_.reason == "a site has no rows of one of the datasets"


def test_places_with_labels_are_merged_if_they_have_the_same(data):
    X, Y, _ = data
    rows = np.vstack([X, Y])
    one, other, third = (
        DiscriminativePCA(target_label=1).fit(rows, np.repeat([1, label], [len(X), len(Y)])) for label in (0, 0, 2)
    )
    assert one.merge(other).n_samples_ == 2 * len(X)
    assert (one.classes_.tolist(), one.background_labels_) == ([0, 1], [0])
    with pytest.raises(InvalidValueError, match="labels"):
        one.merge(third)


@pytest.mark.parametrize("kind", LINEAR)
def test_moments_equal_a_fit_without_folds(data, kind):
    X, Y, Z = data
    whole = kind(cv=None).fit(X, background=[Y, Z])
    model = kind.from_moments(gather(X, norms=True), [gather(part, norms=True) for part in (Y, Z)])
    np.testing.assert_allclose(model.components_, whole.components_, rtol=1e-9)
    assert model.path_.reason == "only sums over all rows are known"
    assert np.isnan(model.ratio_).all()
    np.testing.assert_allclose(model.transform(X), whole.transform(X), atol=1e-9)


def test_covariances_are_enough(data):
    X, Y, _ = data
    parts = [(np.cov(rows.T, bias=True), len(rows), rows.mean(axis=0)) for rows in (X, Y)]
    model = DiscriminativePCA.from_moments(*parts)
    whole = DiscriminativePCA(shrinkage="ledoit-wolf", cv=None).fit(X, background=Y)
    # Without rows, the fourth moments of normal rows are assumed. The rows are normal here.
    np.testing.assert_allclose(model.shrinkage_, whole.shrinkage_, rtol=0.5)
    assert 0.0 < model.shrinkage_ < 0.2
    same = DiscriminativePCA.from_moments(*parts, shrinkage=whole.shrinkage_)
    np.testing.assert_allclose(same.components_, whole.components_, rtol=1e-8)
    assert DiscriminativePCA.from_moments(parts[0]).n_components_ == 2


def test_private_sums_are_shrunken_by_their_noise(rng):
    release = pytest.importorskip("standout.private").release
    X, Y = rng.normal(size=(2, 60_000, 3)) * [1, 1, 0.5]
    X[:, 2] *= 2
    bounds = {"centre": [0, 0, 0], "scale": [1, 1, 1], "radius": 4.0, "epsilon": 4.0, "delta": 1e-7}
    target, background = release(X, **bounds), release(Y, **bounds)
    model = DiscriminativePCA.from_moments(target, background, n_components=1)
    assert np.abs(model.components_[0]).argmax() == 2
    np.testing.assert_allclose(model.shrinkage_, background.shrinkage)
    with pytest.raises(InvalidTypeError, match="private sums cannot be used together"):
        DiscriminativePCA.from_moments(target, gather(Y))


@pytest.mark.parametrize(
    ("call", "parameter", "words"),
    [
        (lambda X, Y: DiscriminativePCA(robust="rows").from_moments((X, 5), robust="rows"), "robust", "needs the rows"),
        (lambda X, Y: DiscriminativePCA.from_moments((X, 5), n_components="auto"), "n_components", "needs the rows"),
        (lambda X, Y: DiscriminativePCA.from_moments((np.eye(3), 5), (np.eye(2), 5)), None, "background 1 has 2 feat"),
        (lambda X, Y: DiscriminativePCA.from_moments((np.ones((3, 2)), 5)), None, "covariance of shape (3, 2)"),
        (lambda X, Y: DiscriminativePCA.from_moments((np.eye(3), 1)), None, "1 rows"),
        (lambda X, Y: DiscriminativePCA.from_moments((np.zeros((0, 0)), 5)), None, "covariance of shape (0, 0)"),
        (lambda X, Y: DiscriminativePCA.from_moments((np.triu(np.full((3, 3), 1e-12)), 9)), None, "finite symmetric"),
        (lambda X, Y: DiscriminativePCA.from_moments(X), None, "not moments"),
        (
            lambda X, Y: DiscriminativePCA.from_moments((np.eye(3), 9), (np.eye(3), 9), center="background"),
            "center",
            "needs means",
        ),
        (lambda X, Y: DiscriminativePCA.from_moments((np.eye(3), 9), target_label=1), "target_label", "needs the rows"),
        (lambda X, Y: DiscriminativePCA().partial_fit(), None, "the batch has no rows"),
        (lambda X, Y: DiscriminativePCA().partial_fit(X).partial_fit(X[:, :3]), None, "3 features"),
        (
            lambda X, Y: DiscriminativePCA().partial_fit(X, background=[Y, Y]).partial_fit(X, background=Y),
            "background",
            "1 background(s), but the rows before had 2",
        ),
        (lambda X, Y: DiscriminativePCA(shrinkage=0.5).fit(X[:3], background=Y[:2]).partial_fit(X), None, "no sums"),
        (
            lambda X, Y: (
                DiscriminativePCA()
                .fit(X, background=Y, groups=np.arange(123) // 9, background_groups=np.arange(97) // 9)
                .partial_fit(X)
            ),
            None,
            "fitted with `groups`",
        ),
        (lambda X, Y: DiscriminativePCA().fit(X).merge(ContrastivePCA().fit(X)), None, "cannot be merged with"),
        (lambda X, Y: DiscriminativePCA().fit(X).merge(DiscriminativePCA().fit(X, background=Y)), None, "other backgr"),
        (lambda X, Y: DiscriminativePCA().fit(X).merge(DiscriminativePCA().fit(X[:, :4])), None, "4 features"),
        (lambda X, Y: DiscriminativePCA().merge(DiscriminativePCA().fit(X)), None, "not fitted"),
    ],
)
def test_what_needs_rows_is_refused(data, call, parameter, words):
    X, Y, _ = data
    with pytest.raises((ValueError, TypeError)) as caught:
        call(X, Y)
    assert words in str(caught.value)
    if parameter is not None:
        assert caught.value.parameter == parameter


def test_partial_fit_is_absent_where_rows_are_needed(data):
    model = DiscriminativePCA(robust="cells")
    assert not hasattr(model, "partial_fit")
    assert not hasattr(DiscriminativePCA(target_label=1), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(data[0])
    assert isinstance(caught.value.__cause__, InvalidValueError)
    assert caught.value.__cause__.parameter == "robust"


def test_a_batch_that_is_refused_changes_nothing(data):
    X, Y, _ = data
    model = DiscriminativePCA().partial_fit(X[:60], background=Y[:60])
    before = model.components_.copy()
    bad = X[60:].copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.partial_fit(bad, background=Y[60:])
    np.testing.assert_array_equal(model.components_, before)
    model.partial_fit(X[60:], background=Y[60:])
    assert_same_model(model, DiscriminativePCA().fit(X, background=Y))
