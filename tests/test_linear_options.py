"""Options of the linear methods as laws: scales, weights, covariates, wide rows, few columns, graphs."""

import numpy as np
import pytest
from scipy import sparse

from linear_data import EXACT, NEARLY_PCA, assert_same_directions, covariance, leading, shrunken
from standout import ContrastivePCA, DiscriminativePCA


@pytest.fixture
def data(rng):
    mix = rng.normal(size=(6, 6))
    X = rng.normal(size=(120, 6)) * [4, 1, 1, 1, 1, 2] @ mix + 3
    Y = rng.normal(size=(90, 6)) * [4, 1, 1, 1, 1, 0.7] @ mix + 3
    Z = rng.normal(size=(70, 6)) * [1, 3, 1, 1, 1, 0.7] @ mix + 3
    return X, Y, Z


@pytest.mark.parametrize("scale", ["pooled", "background"])
@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_scale_equals_a_fit_to_scaled_columns(data, kind, scale):
    X, Y, _ = data
    spread = Y.var(axis=0) if scale == "background" else (X.var(axis=0) + Y.var(axis=0)) / 2
    given = {"shrinkage": 0.2} if kind is DiscriminativePCA else {"alpha": 1.5}
    model = kind(2, scale=scale, cv=None, **given).fit(X, background=Y)
    other = kind(2, cv=None, **given).fit(X / np.sqrt(spread), background=Y / np.sqrt(spread))
    np.testing.assert_allclose(model.scale_, np.sqrt(spread), **EXACT)
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, **EXACT)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(other.transform(X / np.sqrt(spread))), atol=1e-9)


@pytest.mark.parametrize("units", [1.0, 1e30, 1e-30])
def test_a_constant_column_adds_no_rounding_in_any_units(rng, units):
    """Its loading is rounding, which must be small in the units of the other columns."""
    X, Y = rng.normal(size=(2, 60, 4)) * units
    X[:, 1], Y[:, 1] = 3.0 * units, 3.0 * units
    model = ContrastivePCA(2, scale="pooled").fit(X, background=Y)
    own, other = model.held_out_scores(X, background=Y)
    np.testing.assert_allclose(own.var(axis=0), model.ratio_, rtol=1e-8)
    np.testing.assert_allclose(other.var(axis=0), 1.0, rtol=1e-8)


@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_whole_weights_equal_repeated_rows(data, rng, kind):
    X, Y, _ = data
    weights, others = rng.integers(0, 4, len(X)), rng.integers(1, 4, len(Y))
    given = {"shrinkage": 0.2} if kind is DiscriminativePCA else {"alpha": 1.5}
    model = kind(2, cv=None, **given)
    model.fit(X, background=Y, sample_weight=weights, background_sample_weight=others)
    repeated = kind(2, cv=None, **given).fit(np.repeat(X, weights, axis=0), background=np.repeat(Y, others, axis=0))
    np.testing.assert_allclose(model.eigenvalues_, repeated.eigenvalues_, **EXACT)
    np.testing.assert_allclose(model.transform(X), repeated.transform(X), atol=1e-9)


def test_weights_are_in_the_held_out_ratio(data, rng):
    X, Y, _ = data
    weights = rng.uniform(0.5, 2.0, len(X))
    model = DiscriminativePCA(1, shrinkage=0.1).fit(X, background=Y, sample_weight=weights)
    target, other = model.held_out_scores(X, background=Y)
    mean = np.average(target, axis=0, weights=weights)
    np.testing.assert_allclose(np.average((target - mean) ** 2, axis=0, weights=weights), model.ratio_, rtol=1e-8)
    np.testing.assert_allclose(other.var(axis=0), 1.0, rtol=1e-8)
    # Equal weights of any size have no effect.
    one = DiscriminativePCA(1).fit(X, background=Y, sample_weight=np.full(len(X), 7.0))
    none = DiscriminativePCA(1).fit(X, background=Y)
    np.testing.assert_allclose(one.ratio_, none.ratio_, rtol=1e-10)


def test_covariates_equal_a_fit_to_residuals(rng):
    sizes = (100, 100)
    covariates = [rng.normal(size=(size, 2)) for size in sizes]
    X, Y = (rng.normal(size=(size, 5)) * [1, 1, 1, 1, 3 - 2 * k] for k, size in enumerate(sizes))
    X, Y = X + covariates[0] @ rng.normal(size=(2, 5)) * 4, Y + covariates[1] @ rng.normal(size=(2, 5)) * 4
    residuals = []
    for rows, beside in zip((X, Y), covariates, strict=True):
        design = np.column_stack([np.ones(len(rows)), beside])
        residuals.append(rows - design @ np.linalg.lstsq(design, rows)[0])
    given = {"shrinkage": 0.1, "cv": None}
    model = DiscriminativePCA(2, **given).fit(X, background=Y, adjust=covariates[0], background_adjust=covariates[1])
    other = DiscriminativePCA(2, **given).fit(residuals[0], background=residuals[1])
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    assert_same_directions(model.components_, other.components_, 1e-8)
    folded = DiscriminativePCA(1, shrinkage=0.1).fit(
        X, background=Y, adjust=covariates[0], background_adjust=covariates[1]
    )
    scores = folded.held_out_scores(X, background=Y, adjust=covariates[0], background_adjust=covariates[1])
    np.testing.assert_allclose(scores[0].var(axis=0), folded.ratio_, rtol=1e-8)
    assert 5.0 < folded.ratio_[0] < 13.0


@pytest.mark.parametrize("center", ["own", "background"])
@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_wide_rows_have_the_answer_of_their_tall_coordinates(data, rng, kind, center):
    X, Y = (part[:40] for part in data[:2])
    turn = np.linalg.qr(rng.normal(size=(300, 6)))[0].T
    given, wide = {"alpha": 1.5}, {"alpha": 1.5}
    if kind is DiscriminativePCA:
        # The ridge s (tr C / D) is the same with 6 and with 300 columns, but for the factor 1 - s.
        ridge = 0.2 / 0.8 / 6 * 300
        given, wide = {"shrinkage": 0.2}, {"shrinkage": ridge / (1 + ridge)}
    tall = kind(2, center=center, **given).fit(X, background=Y)
    model = kind(2, center=center, **wide).fit(X @ turn + 5, background=Y @ turn + 5)
    assert model._data is None
    np.testing.assert_allclose(model.ratio_, tall.ratio_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(model.transform(X @ turn + 5)), np.abs(tall.transform(X)), atol=1e-7)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(tall.components_ @ turn), atol=1e-8)
    scores = model.held_out_scores(X @ turn + 5, background=Y @ turn + 5)
    np.testing.assert_allclose(scores[1].var(axis=0), 1.0, rtol=1e-8)


def test_wide_scaled_rows_equal_scaled_columns(rng):
    X, Y = rng.normal(size=(2, 30, 100)) * rng.uniform(0.1, 10, 100)
    spread = np.sqrt((X.var(axis=0) + Y.var(axis=0)) / 2)
    model = DiscriminativePCA(2, shrinkage=0.5, scale="pooled", cv=None).fit(X, background=Y)
    other = DiscriminativePCA(2, shrinkage=0.5, cv=None).fit(X / spread, background=Y / spread)
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    # The largest entry sets the sign. In scaled columns it is a different entry.
    signs = np.sign((model.correlations_ * other.correlations_).sum(axis=1))
    np.testing.assert_allclose(model.transform(X), signs * other.transform(X / spread), atol=1e-8)
    np.testing.assert_allclose(model.correlations_, signs[:, None] * other.correlations_, atol=1e-8)
    thin = DiscriminativePCA(2, shrinkage=0.5, scale="pooled").fit(sparse.csr_array(X), background=sparse.csr_array(Y))
    dense = DiscriminativePCA(2, shrinkage=0.5, scale="pooled").fit(X, background=Y)
    for name in ("ratio_", "ratio_error_", "scale_", "components_", "correlations_", "patterns_", "mean_"):
        np.testing.assert_allclose(getattr(thin, name), getattr(dense, name), rtol=1e-8, atol=1e-9)
    # The variance of a constant column is zero, and not the rounding of its mean.
    constant = rng.uniform(1, 1e7, size=(1, 20)).repeat(30, axis=0)
    X, Y = (np.hstack([part, constant]) for part in (X, Y))
    for kind in (np.asarray, sparse.csr_array):
        with_constants = ContrastivePCA(2, alpha=0.5, scale="pooled", cv=None).fit(kind(X), background=kind(Y))
        without = ContrastivePCA(2, alpha=0.5, scale="pooled", cv=None).fit(X[:, :100], background=Y[:, :100])
        np.testing.assert_allclose(with_constants.eigenvalues_, without.eigenvalues_, rtol=1e-6)
        np.testing.assert_allclose(with_constants.scale_[100:], without.scale_.max())


def test_few_columns_are_a_fit_to_these_columns(data):
    X, Y, _ = data
    model = DiscriminativePCA(1, shrinkage=0.2, n_columns=3, cv=None).fit(X, background=Y)
    columns = model.get_support(indices=True)
    assert len(columns) == model.n_columns_ == 3
    np.testing.assert_array_equal(np.flatnonzero(model.components_[0]), columns)
    np.testing.assert_array_equal(np.flatnonzero(model.get_support()), columns)
    other = DiscriminativePCA(1, shrinkage=0.2, cv=None).fit(X[:, columns], background=Y[:, columns])
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, **EXACT)
    np.testing.assert_allclose(model.components_[:, columns], other.components_, **EXACT)
    scaled = DiscriminativePCA(1, shrinkage=0.2, n_columns=3, scale="background", cv=None).fit(X, background=Y)
    np.testing.assert_allclose(scaled.scale_[scaled.columns_], Y.std(axis=0)[scaled.columns_], **EXACT)
    every = DiscriminativePCA(1, shrinkage=0.2, n_columns=6, cv=None).fit(X, background=Y)
    np.testing.assert_allclose(
        every.components_, DiscriminativePCA(1, shrinkage=0.2, cv=None).fit(X, background=Y).components_, **EXACT
    )


@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
def test_columns_are_left_out_by_their_patterns_step_by_step(rng, kind, wide, scaled):
    """Each step leaves out a third: the columns with the smallest ``|B u| / √B_jj``, each by its best component."""
    X, Y, Z = (rng.normal(size=(n, 60)) * np.geomspace(1, 9, 60) for n in ((14, 12, 9) if wide else (150, 140, 130)))
    X[:, [3, 30]] += 6 * rng.normal(size=(len(X), 2))
    given = {"shrinkage": 0.3} if kind is DiscriminativePCA else {"alpha": 1.5}
    more = {"scale": "background"} if scaled else {}
    model = kind(2, n_columns=7, background_weights=[0.25, 0.75], cv=None, **given, **more).fit(X, background=[Y, Z])
    unit = np.sqrt(0.25 * Y.var(axis=0) + 0.75 * Z.var(axis=0)) if scaled else np.ones(60)
    A, *others = (covariance(part / unit) for part in (X, Y, Z))
    kept = np.arange(60)
    while True:
        within = np.ix_(kept, kept)
        if kind is DiscriminativePCA:
            B = sum(w * shrunken(C[within], 0.3) for w, C in zip((0.25, 0.75), others, strict=True))
            values, vectors = leading(A[within], B, 2)
        else:
            B = np.eye(len(kept))
            values, vectors = leading(A[within] - 1.5 * (0.25 * others[0] + 0.75 * others[1])[within], B, 2)
        if len(kept) == 7:
            break
        shown = np.abs(B @ vectors) / np.sqrt(np.diag(B))[:, None]
        ranks = np.argsort(np.argsort(-shown, axis=0), axis=0).min(axis=1)
        order = np.lexsort((-shown.max(axis=1), ranks))
        kept = np.sort(kept[order[: max(2 * len(kept) // 3, 7)]])
    np.testing.assert_array_equal(model.columns_, kept)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    assert_same_directions(model.components_[:, kept] * unit[kept], vectors.T, 1e-8)


@pytest.mark.filterwarnings(NEARLY_PCA)
def test_the_number_of_columns_is_chosen_small_where_few_matter(rng):
    X, Y = rng.normal(size=(2, 300, 40))
    X[:, [3, 17]] += 4 * rng.normal(size=(300, 1))
    model = DiscriminativePCA(1, n_columns="auto").fit(X, background=Y)
    assert set(model.columns_) >= {3, 17}
    assert model.n_columns_ <= 10
    assert model.columns_path_.parameter == "n_columns"


def test_smooth_adds_the_laplacian_of_the_graph(data):
    X, Y, _ = data
    chain, grid, C = np.eye(6, k=1), np.zeros((6, 6)), covariance(Y)
    # The pixels of 2 x 3 are 0 1 2 over 3 4 5.
    for one, other in [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]:
        grid[one, other] = 1.0
    forms = [
        ("chain", chain, 1.0),
        (((2, 3), 0.5), grid, 0.5),
        (grid + grid.T > 0, grid, 1.0),
        ((sparse.csr_array(3 * grid + 3 * grid.T), 2), grid, 6.0),
    ]
    for smooth, edges, strength in forms:
        laplacian = np.diag((edges + edges.T).sum(axis=0)) - edges - edges.T
        model = DiscriminativePCA(2, shrinkage=0.1, smooth=smooth, cv=None).fit(X, background=Y)
        values, vectors = leading(covariance(X), shrunken(C, 0.1) + strength * np.trace(C) / 6 * laplacian, 2)
        np.testing.assert_allclose(model.eigenvalues_, values, **EXACT)
        assert_same_directions(model.components_, vectors.T)
        few = DiscriminativePCA(1, shrinkage=0.1, smooth=smooth, n_columns=2, cv=None).fit(X, background=Y)
        of = np.ix_(few.columns_, few.columns_)
        own = np.trace(C[of]) / 2 * np.eye(2) * 0.1 + 0.9 * C[of] + strength * np.trace(C[of]) / 2 * laplacian[of]
        np.testing.assert_allclose(few.eigenvalues_, leading(covariance(X)[of], own, 1)[0], **EXACT)


@pytest.mark.parametrize(
    ("smooth", "message"),
    [
        (np.ones((3, 2)), "not a graph of the 6 columns"),
        ((2, 4), "not a graph of the 6 columns"),
        (1j * np.ones((6, 6)), "not a graph of the 6 columns"),
        ("ring", "smooth"),
        (-np.ones((6, 6)), "negative"),
        (np.triu(np.ones((6, 6))), "not symmetric"),
        (("chain", -1), "has the strength -1"),
    ],
)
def test_what_is_not_a_graph_of_the_columns_is_refused(data, smooth, message):
    X, Y, _ = data
    with pytest.raises((ValueError, TypeError), match=message):
        DiscriminativePCA(2, smooth=smooth).fit(X, background=Y)


def test_a_shift_of_the_mean_stands_out_from_the_background(rng):
    X, Y = rng.normal(size=(2, 400, 5))
    X[:, 2] += 3.0
    model = DiscriminativePCA(1, shrinkage=0.1, center="background").fit(X, background=Y)
    assert np.abs(model.components_[0]).argmax() == 2
    np.testing.assert_allclose(model.ratio_, 1 + 9, rtol=0.2)
    np.testing.assert_allclose(model.spread_ + model.shift_, model.ratio_, rtol=1e-2)
    np.testing.assert_allclose(model.transform(Y).mean(axis=0), 0.0, atol=1e-10)


def test_columns_are_chosen_without_the_effects_of_covariates(rng):
    X, Y, a, b = (rng.normal(size=shape) for shape in ((150, 40), (200, 40), (150, 1), (200, 1)))
    X[:, :3] *= 1.5
    effects, model = 3.0 * rng.lognormal(size=(1, 40)), DiscriminativePCA(shrinkage=0.1, n_columns=3, cv=None)
    model.fit(X + a @ effects, background=Y + b @ effects, adjust=a, background_adjust=b)
    assert model.columns_.tolist() == [0, 1, 2]


def test_a_constant_column_in_single_precision_needs_no_caution(rng):
    X, Y = (rng.normal(size=(2, 300, 6)) * [1, 1, 1, 1, 1, 0]).astype(np.float32)
    DiscriminativePCA(shrinkage=0.0).fit(X, background=Y)
