"""Columns that are neighbours: graphs, the pencil with their Laplacian, and smoothness chosen by folds."""

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.sparse.csgraph import laplacian

import standout
from standout import DiscriminativePCA, contrast
from standout.estimators import fitted_test
from standout.graphs import GraphMoments, Smooth, chain_graph, edge_graph, grid_graph
from standout.moments import gather
from standout.pencil import solve


def chained(rng, n_rows=60, n_features=80, size=3.0):
    """Rough factors that both datasets have, and a smooth one of the target."""
    shared = rng.normal(size=(6, n_features)) / np.sqrt(n_features)
    X, Y = (10 * rng.normal(size=(n_rows, 6)) @ shared + rng.normal(size=(n_rows, n_features)) for _ in range(2))
    wave = np.sin(np.pi * np.arange(n_features) / n_features)
    return X + size * rng.normal(size=(n_rows, 1)) * wave / linalg.norm(wave), Y, wave


def test_graphs_are_those_of_their_neighbours():
    chain, grid = chain_graph(5), grid_graph(3, 4)
    assert chain.nnz == 8
    assert np.array_equal(grid.toarray(), grid.toarray().T)
    # Every pixel of a row is beside its neighbours, and above that of the next row.
    assert grid.nnz == 2 * (3 * 3 + 2 * 4)
    assert grid.toarray()[0].nonzero()[0].tolist() == [1, 4]
    listed = edge_graph([(0, 1), (1, 2), (2, 1), (3, 3)], 4)
    assert np.array_equal(listed.toarray(), np.pad(chain_graph(3).toarray(), (0, 1)))


@pytest.mark.parametrize("graph", [chain_graph(9), grid_graph(3, 3), sparse.csr_array(np.ones((9, 9)) * 0.3)])
def test_roughness_is_the_laplacian(graph, rng):
    rough, reference = GraphMoments.of(graph), laplacian(sparse.csr_array(graph)).toarray()
    np.testing.assert_allclose(rough.covariance(), reference, atol=1e-14)
    np.testing.assert_allclose(rough.root().T @ rough.root(), reference, atol=1e-14)
    np.testing.assert_allclose(rough.variances, np.diag(reference), atol=1e-14)
    vectors = rng.normal(size=(9, 2))
    np.testing.assert_allclose(rough.apply(vectors), reference @ vectors, atol=1e-13)
    some = np.array([1, 2, 7])
    np.testing.assert_allclose(rough.taken(some).covariance(), reference[np.ix_(some, some)], atol=1e-14)


@pytest.mark.parametrize("solver", ["auto", "dense", "lanczos", "root"])
@pytest.mark.parametrize("side", ["target", "background"])
@pytest.mark.parametrize("shape", [(60, 30), (20, 50)])
def test_components_solve_the_smoothed_pencil(solver, side, shape, rng):
    X, Y, _ = chained(rng, *shape)
    if side == "background":
        X, Y = chained(rng, 80, shape[1])[:2]
    dpca = DiscriminativePCA(2, smooth="chain", smoothness=3.0, shrinkage=0.1, side=side, solver=solver)
    dpca.fit(X, background=Y)
    a, c = np.cov(X.T, bias=True), np.cov(Y.T, bias=True)
    size = np.trace(c) / len(c)
    b = 0.9 * c + 0.1 * size * np.eye(len(c)) + 3.0 * size * laplacian(chain_graph(len(c))).toarray()
    values = linalg.eigh(a, b, eigvals_only=True)
    np.testing.assert_allclose(dpca.eigenvalues_, values[::-1][:2] if side == "target" else values[:2], rtol=1e-9)
    np.testing.assert_allclose(dpca.components_ @ b @ dpca.components_.T, np.eye(2), atol=1e-8)


def smoothed(X, Y, strength):
    return DiscriminativePCA(1, smooth="chain", smoothness=strength).fit(X, background=Y)


def test_no_smoothness_is_the_plain_fit_and_much_is_smooth(rng):
    X, Y, wave = chained(rng)
    plain = DiscriminativePCA(1, solver="dense").fit(X, background=Y)
    none = DiscriminativePCA(1, smooth="chain", smoothness=0.0).fit(X, background=Y)
    np.testing.assert_allclose(none.components_, plain.components_, rtol=1e-9)
    rough = [
        np.sum(np.diff(model.components_[0]) ** 2) / np.sum(model.components_[0] ** 2)
        for model in (plain, smoothed(X, Y, 1.0), smoothed(X, Y, 30.0))
    ]
    assert rough[0] > 2 * rough[1] > 4 * rough[2]


def test_smoothness_is_found_and_helps_where_shared_variation_is_rough(rng):
    X, Y, wave = chained(rng)
    found = DiscriminativePCA(1, smooth="chain", smoothness="held-out").fit(X, background=Y)
    path = found.smoothness_path_
    assert path.parameters[0] == 0.0
    assert found.smoothness_ == path.parameters[np.argmax(path.log_ratios)] > 0.0
    plain = DiscriminativePCA(1).fit(X, background=Y)
    fresh = 3 * rng.normal(size=500)
    rows = 10 * rng.normal(size=(500, 6)) @ rng.normal(size=(6, 80)) / np.sqrt(80) + rng.normal(size=(500, 80))
    rows = rows * 0.3 + np.outer(fresh, wave / linalg.norm(wave))
    closeness = [abs(np.corrcoef(model.transform(rows)[:, 0], fresh)[0, 1]) for model in (plain, found)]
    assert closeness[1] > closeness[0]
    assert found.held_out_ratio_[0] > plain.held_out_ratio_[0]


def test_every_shrinkage_goes_with_a_graph(rng):
    X, Y, _ = chained(rng, 60, 20)
    dpca = DiscriminativePCA(1, smooth="chain", shrinkage="held-out").fit(X, background=Y)
    alone = DiscriminativePCA(1, smooth="chain", shrinkage=float(dpca.shrinkage_[0])).fit(X, background=Y)
    np.testing.assert_allclose(dpca.components_, alone.components_, rtol=1e-9)


def test_graphs_of_all_kinds_and_pca(rng):
    X, Y = rng.normal(size=(2, 40, 12))
    pairs = [(k, k + 1) for k in range(11)]
    models = [
        DiscriminativePCA(1, smooth=graph).fit(X, background=Y)
        for graph in ("chain", chain_graph(12), chain_graph(12).toarray(), edge_graph(pairs, 12))
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.components_, models[0].components_, rtol=1e-9)
    grid = DiscriminativePCA(1, smooth=(3, 4)).fit(X, background=Y)
    np.testing.assert_allclose(
        grid.components_, DiscriminativePCA(1, smooth=grid_graph(3, 4)).fit(X, background=Y).components_, rtol=1e-9
    )
    alone = DiscriminativePCA(1, smooth="chain", smoothness=2.0).fit(X)
    values = linalg.eigh(np.cov(X.T, bias=True), np.eye(12) + 2 * laplacian(chain_graph(12)).toarray())[0]
    np.testing.assert_allclose(alone.eigenvalues_, values[-1:], rtol=1e-10)


def test_smooth_components_are_tested_and_have_few_columns(rng):
    X, Y, _ = chained(rng, 80, 30, size=10.0)
    for given in ({}, {"smoothness": "held-out"}, {"n_columns": 12}):
        dpca = DiscriminativePCA(2, smooth="chain", **given).fit(X, background=Y)
        found = fitted_test(dpca, X, Y, n_components=2, n_permutations=19, level=0.1)
        if "n_columns" not in given:
            # On few columns the step to a column that is left out counts as rough, and less is found.
            assert found.p_values[0] == 0.05
        np.testing.assert_allclose(found.ratios[0], dpca.eigenvalues_[0], rtol=1e-8)
    problem = contrast.discriminative(
        gather(X), [gather(Y)], [1.0], [0.1], smooth=Smooth(GraphMoments.of(chain_graph(30)), 1.0)
    )
    both = DiscriminativePCA(2, smooth="chain", shrinkage=0.1).fit(X, background=Y)
    second = fitted_test(both, X, Y, n_components=2, n_permutations=19)
    # Rows are centred at a spatial median, but scattered about their means: the ratios are those of the pencil.
    np.testing.assert_allclose(second.ratios, solve(problem, 2).values, rtol=0.02)


def test_equal_datasets_have_no_smooth_component(rng):
    p_values = []
    for _ in range(10):
        X, Y = rng.normal(size=(2, 40, 15)).cumsum(axis=2)
        dpca = DiscriminativePCA(1, smooth="chain", held_out=None).fit(X, background=Y)
        p_values.append(fitted_test(dpca, X, Y, n_components=1, n_permutations=39).p_values[0])
    # Of 10 p-values 5 % are below 0.05: four or more have a chance of 0.001.
    assert np.sum(np.array(p_values) <= 0.05) < 4


def test_sums_batches_and_files_keep_the_graph(rng, tmp_path):
    X, Y, _ = chained(rng, 60, 20)
    whole = DiscriminativePCA(1, smooth=chain_graph(20)).fit(X, background=Y)
    batches = DiscriminativePCA(1, smooth="chain").fit(iter(np.array_split(X, 3)), background=iter([Y[:20], Y[20:]]))
    sums = DiscriminativePCA.from_moments(gather(X, norms=True), gather(Y, norms=True), n_components=1, smooth="chain")
    for other in (batches, sums):
        np.testing.assert_allclose(other.components_, whole.components_, rtol=1e-7)
    standout.save(whole, tmp_path / "model")
    loaded = standout.load(tmp_path / "model")
    assert loaded.smoothness_ == 1.0
    assert (loaded.smooth != whole.smooth).nnz == 0


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"smooth": "ring"}, "smooth='ring' is unknown"),
        ({"smooth": (3, 3)}, r"has shape \(9, 9\), but there are 12 columns"),
        ({"smooth": -np.ones((12, 12))}, "not symmetric, or has weights that are negative"),
        ({"smooth": np.triu(np.ones((12, 12)))}, "not symmetric"),
        ({"smooth": 3}, "no graph"),
        ({"smoothness": -1.0}, "smoothness=-1.0"),
        ({"smoothness": "auto"}, "smoothness='auto' is unknown"),
        ({"solver": "reduced"}, "solver='reduced' does not fit"),
        ({"background_weights": "best"}, "background_weights='best' does not go with smooth"),
    ],
)
def test_graphs_that_make_no_sense_are_refused(given, match, rng):
    X, Y = rng.normal(size=(2, 30, 12))
    with pytest.raises((ValueError, TypeError), match=match):
        DiscriminativePCA(**{"smooth": "chain", **given}).fit(X, background=[Y, Y])


def test_more_columns_than_a_full_matrix_should_have_are_refused(rng):
    X, Y = rng.normal(size=(2, 4, 8200))
    with pytest.raises(ValueError, match="8200 columns are more than the 8192"):
        DiscriminativePCA(1, smooth="chain").fit(X, background=Y)
    with pytest.raises(ValueError, match="columns are 0 to 3"):
        edge_graph([(0, 4)], 4)
    with pytest.raises(TypeError, match="pairs of whole numbers"):
        edge_graph([0.5, 1.5], 4)
