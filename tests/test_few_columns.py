"""Few columns: chosen anew wherever rows are chosen, the same from every path, and honest about how sure they are."""

import numpy as np
import pytest
from scipy import linalg, sparse

import standout
from standout import ContrastivePCA, DiscriminativePCA, contrast
from standout.estimators import fitted_test
from standout.moments import gather
from standout.pencil import solve
from standout.selection import few_of, numbers_of_columns, rank_columns, stability


def with_few(rng, n_rows=200, n_features=60, support=(2, 5, 7), size=2.0):
    """Correlated datasets; the target has a factor of its own on some columns."""
    shared = rng.normal(size=(4, n_features))
    X, Y = (rng.normal(size=(n_rows, 4)) @ shared + rng.normal(size=(n_rows, n_features)) for _ in range(2))
    X[:, list(support)] += size * rng.normal(size=(n_rows, 1))
    return X, Y


@pytest.fixture(params=["tall", "wide"])
def data(request, rng):
    return with_few(rng) if request.param == "tall" else with_few(rng, 40, 150, size=4.0)


def test_components_solve_the_same_pencil_on_the_columns(data):
    X, Y = data
    dpca = DiscriminativePCA(2, n_columns=8, shrinkage=0.2, held_out=None).fit(X, background=Y)
    kept = dpca.columns_
    assert np.all(dpca.components_[:, ~dpca.get_support()] == 0.0)
    assert {2, 5, 7} <= set(kept.tolist())
    a, c = np.cov(X.T, bias=True), np.cov(Y.T, bias=True)
    b = 0.8 * c + 0.2 * np.trace(c) / len(c) * np.eye(len(c))
    values = linalg.eigh(a[np.ix_(kept, kept)], b[np.ix_(kept, kept)], eigvals_only=True)
    np.testing.assert_allclose(dpca.eigenvalues_, values[::-1][:2], rtol=1e-9)
    # The pattern is that of the data, over all columns.
    np.testing.assert_allclose(dpca.patterns_, dpca.components_ @ b, atol=1e-8)
    np.testing.assert_allclose(dpca.components_ @ dpca.patterns_.T, np.eye(2), atol=1e-9)
    assert np.array_equal(dpca.get_support(indices=True), kept)
    scores = dpca.transform(X)
    other = X.copy()
    other[:, ~dpca.get_support()] = 7.0
    np.testing.assert_allclose(dpca.transform(other), scores, atol=1e-9)


def test_columns_are_ranked_by_the_pattern_in_units_of_the_spread(rng):
    # One step from all columns: the rule as it is written.
    X, Y = with_few(rng)
    problem = contrast.discriminative(gather(X), [gather(Y)], [1.0], [0.1])
    whole = solve(problem, 2)
    b = problem.b.matrix()
    shown = np.abs(b @ whole.vectors) / np.sqrt(np.diag(b))[:, None]
    first = rank_columns(whole.patterns, problem.b.diagonal)
    best = np.argsort(np.argsort(-shown, axis=0), axis=0).min(axis=1)
    assert np.all(np.diff(best[first]) >= 0)
    step = numbers_of_columns(60, 400, 2)[1]
    assert np.array_equal(few_of(problem, whole, step)[1], np.sort(first[:step]))


def test_every_path_gives_the_same_columns(rng):
    X, Y = with_few(rng)
    given = {"n_components": 2, "n_columns": 8}
    whole = DiscriminativePCA(**given).fit(X, background=Y)
    by_roots = DiscriminativePCA(**given, solver="root").fit(X, background=Y)
    by_rows = DiscriminativePCA(**given, solver="lobpcg").fit(X, background=Y)
    sums = DiscriminativePCA.from_moments(gather(X, norms=True), gather(Y, norms=True), **given)
    thin = DiscriminativePCA(**given).fit(sparse.csr_array(X), background=sparse.csr_array(Y))
    parts = DiscriminativePCA(**given).fit(iter(np.array_split(X, 3)), background=iter(np.array_split(Y, 4)))
    steps = DiscriminativePCA(**given)
    for rows, others in zip(np.array_split(X, 3), np.array_split(Y, 3), strict=True):
        steps.partial_fit(rows, background=others)
    weighted = DiscriminativePCA(**given).fit(X, background=Y, sample_weight=np.full(len(X), 2.0))
    for other in (by_roots, by_rows, sums, thin, parts, steps, weighted):
        assert np.array_equal(other.columns_, whole.columns_)
        np.testing.assert_allclose(other.components_, whole.components_, atol=1e-7)
    for other in (thin, parts):
        np.testing.assert_allclose(other.held_out_ratio_, whole.held_out_ratio_, rtol=1e-7)
        np.testing.assert_allclose(other.column_frequency_, whole.column_frequency_)


@pytest.mark.parametrize("n_columns", [6, 70])
def test_folds_of_wide_data_choose_what_their_rows_alone_choose(n_columns, rng):
    # Without a fold, in coordinates of a span, columns and components are those of a fit to the other rows.
    X, Y = with_few(rng, 30, 150, size=4.0)
    dpca = DiscriminativePCA(1, n_columns=n_columns, shrinkage=0.3, held_out=3).fit(X, background=Y)
    found, seen = dpca.held_out_, np.zeros(150)
    for fold in range(3):
        rows = [part[found.fold_of(np.arange(30)) != fold] for part in (X, Y)]
        alone = DiscriminativePCA(1, n_columns=n_columns, shrinkage=0.3, held_out=None).fit(rows[0], background=rows[1])
        seen += alone.get_support() / 3
        scores = found.components[fold] @ X.T, alone.components_ @ X.T
        assert abs(np.corrcoef(scores[0][0], scores[1][0])[0, 1]) > 0.999
    # Columns whose ranks nearly tie differ: their spread is about the mean of all rows.
    assert np.abs(seen - dpca.column_frequency_).sum() <= 0.1 * n_columns


def test_the_number_of_columns_is_found(rng):
    X, Y = rng.normal(size=(2, 120, 150))
    X[:, [1, 4, 9, 16, 25]] += 1.5 * rng.normal(size=(120, 1))
    dpca = DiscriminativePCA(1, n_columns="auto").fit(X, background=Y)
    path = dpca.columns_path_
    assert {1, 4, 9, 16, 25} <= set(dpca.columns_.tolist())
    assert len(dpca.columns_) < 60
    assert path.parameters[0] == 150
    assert path.log_ratios[path.chosen] >= path.log_ratios.max() - path.standard_errors[path.chosen]
    assert np.all(dpca.column_frequency_[[1, 4, 9, 16, 25]] == 1.0)
    whole = DiscriminativePCA(1).fit(X, background=Y)
    assert dpca.held_out_ratio_[0] > whole.held_out_ratio_[0]
    # The truth is dense: no columns are lost.
    dense = X + 3 * rng.normal(size=(120, 1)) * rng.normal(size=150)
    assert len(DiscriminativePCA(1, n_columns="auto").fit(dense, background=Y).columns_) >= 75


def test_components_with_columns_of_their_own_share_them_out(rng):
    X, Y = rng.normal(size=(2, 300, 40))
    X[:, :3] += 4 * rng.normal(size=(300, 1))
    X[:, 20:23] += 1.5 * rng.normal(size=(300, 1))
    dpca = DiscriminativePCA(2, n_columns=6).fit(X, background=Y)
    assert dpca.columns_.tolist() == [0, 1, 2, 20, 21, 22]


def test_contrastive_pca_uses_few_columns(data):
    X, Y = data
    cpca = ContrastivePCA(2, alpha=1.5, n_columns=8, held_out=None).fit(X, background=Y)
    kept = cpca.columns_
    difference = (np.cov(X.T, bias=True) - 1.5 * np.cov(Y.T, bias=True))[np.ix_(kept, kept)]
    np.testing.assert_allclose(cpca.eigenvalues_, linalg.eigvalsh(difference)[::-1][:2], rtol=1e-9)
    many = ContrastivePCA(1, n_columns="auto").fit(X, background=Y)
    assert {2, 5, 7} <= set(many.columns_.tolist())
    shown = many.candidates_[list(many.alphas_).index(many.alpha_)]
    np.testing.assert_allclose(shown, many.components_)


def test_permutations_choose_columns_anew(rng):
    # Columns chosen for their ratio have a large one by chance; p-values that did not know would all be small.
    p_values = []
    for _ in range(12):
        X, Y = rng.normal(size=(2, 40, 25))
        dpca = DiscriminativePCA(1, n_columns=3, held_out=None).fit(X, background=Y)
        p_values.append(fitted_test(dpca, X, Y, n_components=1, n_permutations=39).p_values[0])
    # Of 12 p-values 5 % are below 0.05: four or more have a chance of 0.002.
    assert np.sum(np.array(p_values) <= 0.05) < 4


@pytest.mark.parametrize("n_columns", [5, "auto"])
def test_tests_find_components_on_few_columns(n_columns, data):
    X, Y = data
    dpca = DiscriminativePCA(2, n_columns=n_columns).fit(X, background=Y)
    found = fitted_test(dpca, X, Y, n_components=2, n_permutations=19, level=0.1)
    assert found.n_significant == 1
    assert found.method == "permutation"
    np.testing.assert_allclose(found.ratios[0], dpca.eigenvalues_[0], rtol=1e-8)


def test_the_second_component_is_tested_on_what_the_first_leaves(rng):
    X, Y = rng.normal(size=(2, 150, 20))
    X[:, :3] += 3 * rng.normal(size=(150, 1))
    X[:, 10:12] += 2 * rng.normal(size=(150, 1))
    dpca = DiscriminativePCA(2, n_columns=5, shrinkage=0.1, test="permutation").fit(X, background=Y)
    assert np.all(dpca.p_values_ <= 0.05)
    # The columns of both are the same, but the second problem is orthogonal to the pattern of the first.
    np.testing.assert_allclose(dpca.component_test_.ratios, dpca.eigenvalues_, rtol=0.05)


def test_stability_counts_how_often_columns_are_chosen(data):
    X, Y = data
    found = stability(X, Y, n_components=1, n_columns=6, n_bootstrap=20)
    dpca = DiscriminativePCA(1, n_columns=6).fit(X, background=Y)
    np.testing.assert_allclose(np.abs(found.components), np.abs(dpca.components_), atol=1e-7)
    assert np.all(found.column_frequency[[2, 5, 7]] == 1.0)
    assert found.column_frequency.sum() == pytest.approx(6.0)
    assert stability(X, Y, n_components=1, n_bootstrap=5).column_frequency is None


def test_a_saved_model_keeps_its_columns(rng, tmp_path):
    X, Y = with_few(rng)
    dpca = DiscriminativePCA(1, n_columns="auto").fit(X, background=Y)
    standout.save(dpca, tmp_path / "model")
    loaded = standout.load(tmp_path / "model")
    assert np.array_equal(loaded.get_support(), dpca.get_support())
    np.testing.assert_allclose(loaded.columns_path_.log_ratios, dpca.columns_path_.log_ratios)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"n_columns": 61}, "n_columns=61 is larger than 60"),
        ({"n_columns": 1}, "n_columns=1 is less than 2, the number of components"),
        ({"n_columns": "few"}, "n_columns='few' is unknown"),
        ({"n_columns": 2.5}, "n_columns=2.5"),
    ],
)
def test_numbers_of_columns_that_make_no_sense_are_refused(given, match, rng):
    X, Y = with_few(rng)
    with pytest.raises((ValueError, TypeError), match=match):
        DiscriminativePCA(2, **given).fit(X, background=Y)


def test_too_few_rows_for_folds_use_all_columns(rng):
    X, Y = rng.normal(size=(3, 6)), rng.normal(size=(3, 6))
    with pytest.warns(UserWarning, match="the number of columns could not be chosen"):
        dpca = DiscriminativePCA(1, n_columns="auto").fit(X, background=Y)
    assert dpca.get_support().all()


def test_batches_cannot_choose_the_number_of_columns(rng):
    X, Y = with_few(rng)
    assert not hasattr(DiscriminativePCA(n_columns="auto"), "partial_fit")
    with pytest.raises(ValueError, match="n_columns"):
        DiscriminativePCA.from_moments(gather(X), gather(Y), shrinkage=0.1, n_columns="auto")
