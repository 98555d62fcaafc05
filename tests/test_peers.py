"""The answers of other packages: by the packages where they are installed, and by their published formulas."""

import warnings

import numpy as np
import pytest
from scipy import linalg, sparse

from standout import ContrastivePCA, DiscriminativePCA


@pytest.fixture
def pair(rng):
    mixing = rng.normal(size=(8, 8))
    target, background = (rng.normal(size=(n, 8)) @ mixing for n in (220, 170))
    target[:, 2] += 3 * rng.normal(size=220)
    return target, background


def standardised(rows):
    """Zero mean and unit variance: both packages do so with each dataset by itself."""
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=0)


def assert_same_directions(found, expected):
    np.testing.assert_allclose(np.abs(np.sum(unit(found) * unit(expected), axis=0)), 1.0, atol=1e-8)


def ours(pair):
    """Without shrinkage, on what the others make of the data."""
    target, background = map(standardised, pair)
    return DiscriminativePCA(8, shrinkage=None).fit(target, background=background)


def test_gcpca_version_4_has_the_same_vectors_and_a_function_of_the_ratios(pair):
    model = ours(pair)
    # Each dataset is also divided by the root of its number of rows, so that its scatter is its covariance.
    a, b = (np.cov(standardised(rows).T, bias=True) for rows in pair)
    values, vectors = linalg.eigh(a - b, a + b)
    ratios = model.eigenvalues_
    np.testing.assert_allclose(values[::-1], (ratios - 1) / (ratios + 1), atol=1e-8)
    assert_same_directions(model.components_.T, vectors[:, ::-1])
    peer = pytest.importorskip("generalized_contrastive_PCA", reason="generalized_contrastive_PCA is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = peer.gcPCA(method="v4", normalize_flag=False)
        found.fit(*(standardised(rows) / np.sqrt(len(rows)) for rows in pair))
    np.testing.assert_allclose(found.objective_values_, (ratios - 1) / (ratios + 1), atol=1e-8)
    assert_same_directions(model.components_.T, found.loadings_)


def test_rhopca_has_the_same_vectors_and_ratios(pair):
    model = ours(pair)
    # It divides by n - 1, so that ratios differ by a factor.
    a, b = (np.cov(standardised(rows).T) for rows in pair)
    values, vectors = linalg.eigh(a, b)
    factor = (220 / 219) / (170 / 169)
    np.testing.assert_allclose(values[::-1], factor * model.eigenvalues_, rtol=1e-8)
    assert_same_directions(model.components_.T, vectors[:, ::-1])
    peer = pytest.importorskip("rhopca.core", reason="rhopca is not installed")
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    adata = anndata.AnnData(sparse.csr_matrix(np.vstack(pair)))
    adata.obs["group"] = np.repeat(["t", "b"], [220, 170])
    found = peer.rhoPCA(adata, "group", "t", "b")
    found.fit()
    np.testing.assert_allclose(np.sort(found.eigvals)[::-1], factor * model.eigenvalues_, rtol=1e-8)


def test_alpha_of_packages_that_divide_by_n_minus_1(pair):
    """As the notes of ContrastivePCA say: their α is ours times (n - 1) / n of the background by that of the target."""
    target, background = pair
    theirs = 2.0
    values, vectors = linalg.eigh(np.cov(target.T) - theirs * np.cov(background.T))
    alpha = theirs * (170 / 169) * (219 / 220)
    model = ContrastivePCA(3, alpha=alpha).fit(target, background=background)
    assert_same_directions(model.components_.T, vectors[:, :-4:-1])
    np.testing.assert_allclose(model.eigenvalues_ * 220 / 219, values[:-4:-1], rtol=1e-8)
