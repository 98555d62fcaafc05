"""Annotated matrices of cells, through anndata and scanpy: what is written where, tables, pictures, and errors."""

import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import standout
from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
mpl.use("Agg")

N, D = 300, 12
REAL = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def adata():
    """Three conditions in mixed order that share one axis; the target has an axis of its own."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(["stim", "ctrl", "other"], N // 3))
    rows = rng.normal(size=(N, D))
    rows[:, 0] *= 6
    rows[labels == "stim", 5] *= 4
    found = anndata.AnnData(rows)
    found.var_names = [f"gene {number}" for number in range(D)]
    found.obs["condition"] = labels
    found.obs["type"] = np.tile(["B", "T", "NK"], N // 3)
    return found


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def split(adata, *names):
    labels = np.asarray(adata.obs["condition"].astype(str))
    return [np.asarray(adata.X)[labels == name] for name in names], [labels == name for name in names]


@pytest.fixture(scope="module")
def kang():
    sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
    if not (REAL / "kang_ifnb.h5ad").is_file():
        pytest.skip("the real cells are not here")
    found = anndata.read_h5ad(REAL / "kang_ifnb.h5ad")
    sc.pp.normalize_total(found, target_sum=1e4)
    sc.pp.log1p(found)
    sc.pp.highly_variable_genes(found, n_top_genes=300)
    return found


# --- what is written ---


def test_scores_of_fitted_cells_are_held_out_and_others_are_transformed(adata):
    assert standout.tl.dpca(adata, "condition", target="stim", background="ctrl") is None
    (target, background), (is_target, is_background) = split(adata, "stim", "ctrl")
    model = DiscriminativePCA().fit(target, background=background)
    own, other = model.held_out_scores(target, background=background)
    scores = adata.obsm["X_dpca"]
    np.testing.assert_allclose(scores[is_target], own)
    np.testing.assert_allclose(scores[is_background], other)
    rest = ~is_target & ~is_background
    np.testing.assert_allclose(scores[rest], model.transform(adata.X)[rest])
    np.testing.assert_allclose(scores[is_background].var(axis=0), 1.0, rtol=1e-6)
    np.testing.assert_allclose(scores[is_target].var(axis=0), adata.uns["dpca"]["ratio"], rtol=1e-6)


def test_components_correlations_and_findings_are_written_by_the_conventions_of_scanpy(adata):
    standout.tl.dpca(adata, "condition", target="stim", background="ctrl", n_comps=3)
    (target, background), _ = split(adata, "stim", "ctrl")
    model = DiscriminativePCA(3).fit(target, background=background)
    about = adata.uns["dpca"]
    np.testing.assert_allclose(adata.varm["dPCs"], model.components_.T)
    np.testing.assert_allclose(adata.varm["dPCs_correlations"], model.correlations_.T)
    np.testing.assert_allclose(adata.var["dpca_mean"], model.mean_)
    for name in ("ratio", "ratio_error", "spread", "shift", "eigenvalues", "shrinkage"):
        np.testing.assert_allclose(about[name], getattr(model, f"{name}_"))
    assert about["params"] == {"groupby": "condition", "target": ["stim"], "background": ["ctrl"], "n_components": 3}
    assert int(np.argmax(np.abs(adata.varm["dPCs_correlations"][:, 0]))) == 5


def test_backgrounds_are_the_rest_or_conditions_by_name(adata):
    target, *others = split(adata, "stim", "ctrl", "other")[0]
    both = np.asarray(adata.X)[np.asarray(adata.obs["condition"] != "stim")]
    for background, expected in ((None, [both]), ("rest", [both]), (["ctrl", "other"], others)):
        standout.tl.dpca(adata, "condition", "stim", background)
        ratio = DiscriminativePCA().fit(target, background=expected).ratio_
        np.testing.assert_allclose(adata.uns["dpca"]["ratio"], ratio)
        assert adata.uns["dpca"]["params"]["background"] == (background or "rest")


@pytest.mark.parametrize(
    ("tool", "method", "keys", "params"),
    [
        ("cpca", ContrastivePCA, ("X_cpca", "cpca"), {"alpha": 2.0}),
        ("kdpca", KernelDiscriminativePCA, ("X_kdpca", "kdpca"), {"kernel": "poly", "degree": 2}),
        ("kcpca", standout.KernelContrastivePCA, ("X_kcpca", "kcpca"), {"kernel": "rbf", "gamma": 0.01}),
    ],
)
def test_every_method_has_its_tool(adata, tool, method, keys, params):
    getattr(standout.tl, tool)(adata, "condition", "stim", "ctrl", n_comps=2, **params)
    (target, background), (is_target, _) = split(adata, "stim", "ctrl")
    model = method(2, **params).fit(target, background=background)
    own = model.held_out_scores(target, background=background)[0]
    np.testing.assert_allclose(adata.obsm[keys[0]][is_target], own, atol=1e-8)
    np.testing.assert_allclose(adata.uns[keys[1]]["ratio"], model.ratio_)
    assert ("cPCs" in adata.varm) == (tool == "cpca")


def test_genes_layers_and_representations_are_chosen_by_scanpys_words(adata):
    genes = np.arange(D) % 2 == 1
    adata.var["highly_variable"] = genes
    adata.obsm["X_some"] = np.asarray(adata.X)[:, genes]
    adata.layers["doubled"] = 2.0 * adata.X
    masked = standout.tl.dpca(adata, "condition", "stim", shrinkage=0.1, copy=True)
    assert np.array_equal(np.any(masked.varm["dPCs"] != 0, axis=1), genes)
    given = standout.tl.dpca(adata, "condition", "stim", shrinkage=0.1, mask_var=genes, key_added="mine", copy=True)
    np.testing.assert_array_equal(given.obsm["mine"], masked.obsm["X_dpca"])
    represented = standout.tl.dpca(adata, "condition", "stim", shrinkage=0.1, use_rep="X_some", copy=True)
    np.testing.assert_allclose(represented.obsm["X_dpca"], masked.obsm["X_dpca"], atol=1e-10)
    np.testing.assert_allclose(represented.uns["dpca"]["components"].T, masked.varm["dPCs"][genes], atol=1e-10)
    layered = standout.tl.dpca(adata, "condition", "stim", shrinkage=0.1, layer="doubled", copy=True)
    np.testing.assert_allclose(2 * layered.varm["dPCs"], masked.varm["dPCs"], atol=1e-8)
    every = standout.tl.dpca(adata, "condition", "stim", shrinkage=0.1, mask_var=None, copy=True)
    assert np.all(every.varm["dPCs"] != 0.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_files_are_read_in_slices_with_the_same_result(adata, form, tmp_path, monkeypatch):
    monkeypatch.setattr("standout._annotated.SLICE", 37)
    adata.X = form(adata.X)
    adata.var["highly_variable"] = np.arange(D) < 8
    adata.write_h5ad(tmp_path / "cells.h5ad")
    standout.tl.dpca(adata, "condition", "stim", "ctrl")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    standout.tl.dpca(backed, "condition", "stim", "ctrl")
    np.testing.assert_allclose(backed.obsm["X_dpca"], adata.obsm["X_dpca"], atol=1e-8)
    with pytest.raises(ValueError, match="backed by a file"):
        standout.tl.dpca(backed, "condition", "stim", "ctrl", copy=True)
    backed.file.close()


def test_results_survive_a_file_and_new_cells_are_projected_by_gene_names(adata, tmp_path):
    standout.tl.dpca(adata, "condition", "stim", n_columns=4, robust="rows")
    adata.write_h5ad(tmp_path / "out.h5ad")
    again = anndata.read_h5ad(tmp_path / "out.h5ad")
    chosen = np.any(again.varm["dPCs"] != 0.0, axis=1)
    assert chosen.sum() == 4
    assert again.obs["dpca_weight"].notna().all()
    new = anndata.AnnData(np.random.default_rng(5).normal(size=(9, D)))
    new.var_names = adata.var_names
    expected = (new.X - np.asarray(adata.var["dpca_mean"])) @ adata.varm["dPCs"]
    for other in (new, new[:, ::-1].copy()):
        standout.tl.project(other, again)
        np.testing.assert_allclose(other.obsm["X_dpca"], expected, atol=1e-10)
    with pytest.raises(ValueError, match="of the 4 genes of the fit are there: gene"):
        standout.tl.project(new[:, ~chosen].copy(), again)
    new.var_names = ["gene 1"] * D
    with pytest.raises(ValueError, match="adata has several columns of gene 'gene 1'"):
        standout.tl.project(new, again)


def test_covariates_are_removed(adata):
    rng = np.random.default_rng(1)
    adata.obs["depth"] = rng.normal(size=N)
    adata.obs["phase"] = rng.choice(["G1", "S", "G2M"], N)
    is_target = np.asarray(adata.obs["condition"] == "stim")
    # The target alone follows the depth, strongly, along gene 9.
    adata.X[is_target, 9] += 10 * adata.obs["depth"].to_numpy()[is_target]
    standout.tl.dpca(adata, "condition", "stim", "ctrl", n_comps=1)
    assert int(np.argmax(np.abs(adata.varm["dPCs_correlations"][:, 0]))) == 9
    standout.tl.dpca(adata, "condition", "stim", "ctrl", n_comps=1, adjust=["depth", "phase"])
    assert int(np.argmax(np.abs(adata.varm["dPCs_correlations"][:, 0]))) == 5
    assert adata.uns["dpca"]["params"]["adjust"] == ["depth", "phase"]
    assert adata.obsm["X_dpca"][is_target].var() == pytest.approx(adata.uns["dpca"]["ratio"][0], rel=1e-6)


def test_the_permutation_test_repeats_the_fit_and_writes_p_values(adata, tmp_path):
    adata.obs["donor"] = np.arange(N) % 20
    options = {"subject": "donor", "adjust": "type", "shrinkage": 0.1}
    standout.tl.dpca(adata, "condition", "stim", "ctrl", n_comps=2, **options)
    adata.write_h5ad(tmp_path / "out.h5ad")
    for one in (adata, anndata.read_h5ad(tmp_path / "out.h5ad")):
        found = standout.tl.permutation_test(one, n_draws=39, random_state=0)
        np.testing.assert_array_equal(one.uns["dpca"]["p_values"], found.p_values)
        assert found.p_values[0] == pytest.approx(1 / 40)


# --- real cells ---


def test_on_stimulated_cells_controls_have_a_spread_of_one_and_the_shift_is_told(kang):
    with pytest.warns(UserWarning, match="means of target and background are .* apart"):
        standout.tl.dpca(kang, "group_id", "stim", "ctrl", n_comps=2)
    is_target = np.asarray(kang.obs["group_id"] == "stim")
    scores = kang.obsm["X_dpca"]
    np.testing.assert_allclose(scores[~is_target].var(axis=0), 1.0, rtol=1e-4)
    np.testing.assert_allclose(scores[is_target].var(axis=0), kang.uns["dpca"]["ratio"], rtol=1e-4)
    # Interferon-stimulated genes are shifted; myeloid genes vary among stimulated cells.
    shifted = kang.var["dpca_mean_effect"].abs().sort_values().index[-15:]
    assert any(name.startswith(("ISG15", "IFI6", "IFIT3", "LY6E")) for name in shifted)
    top = " ".join(standout.get.top_genes_df(kang, n_genes=12)["gene"])
    assert any(name in top for name in ("CCL2", "CCL8", "CXCL10", "APOBEC3A"))
    about = standout.tl.dpca(kang, "group_id", "stim", "ctrl", n_comps=1, center="background", copy=True).uns["dpca"]
    np.testing.assert_allclose(about["ratio"], np.add(about["spread"], about["shift"]), rtol=0.05)


def test_new_cells_spread_as_fitted_cells_do(kang):
    new = np.random.default_rng(0).random(kang.n_obs) < 0.4
    kang.obs["part"] = np.where(new, "new ", "").astype(object) + kang.obs["group_id"].astype(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = standout.tl.dpca(kang, "part", "stim", "ctrl", copy=True)
    for name in ("ctrl", "stim"):
        fitted, other = (cells.obsm["X_dpca"][cells.obs["part"] == part].std(axis=0) for part in (name, f"new {name}"))
        np.testing.assert_allclose(other / fitted, 1.0, atol=0.45)


def test_scanpy_goes_on_from_the_scores(kang):
    sc = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        standout.tl.dpca(kang, "group_id", "stim", "ctrl")
        sc.pp.neighbors(kang, use_rep="X_dpca", n_neighbors=10, method="gauss", transformer="sklearn")
        sc.pl.embedding(kang, basis="dpca", color="cluster_id", show=False)
    assert kang.obsp["connectivities"].shape == (kang.n_obs, kang.n_obs)


def test_a_screen_of_knock_outs_finds_the_interferon_pathway():
    sc = pytest.importorskip("scanpy")
    if not (REAL / "eccite_seq.h5ad").is_file():
        pytest.skip("the real cells are not here")
    cells = anndata.read_h5ad(REAL / "eccite_seq.h5ad")
    kept = cells.obs["target"].isin(["non-targeting", "STAT1", "IFNGR2", "CD86", "ATF2"])
    cells = cells[kept.to_numpy()].copy()
    sc.pp.normalize_total(cells, target_sum=1e3)
    sc.pp.log1p(cells)
    table = standout.tl.screen(cells, "target", "non-targeting").table
    assert set(table.index[table["verdict"] == "stands out"]) >= {"STAT1", "IFNGR2"}
    assert isinstance(cells.uns["screen"], pd.DataFrame)
    axes = standout.pl.screen(cells)
    assert {text.get_text() for text in axes.get_yticklabels()} == {"STAT1", "IFNGR2", "CD86", "ATF2"}


# --- tables and pictures ---


def test_ratios_by_type_are_those_of_held_out_scores(adata):
    standout.tl.dpca(adata, "condition", "stim", "ctrl")
    table = standout.get.ratios_df(adata, "type")
    labels, types, scores = adata.obs["condition"], adata.obs["type"], adata.obsm["X_dpca"]
    own, other = (scores[np.asarray((labels == name) & (types == "B")), 1] for name in ("stim", "ctrl"))
    assert table.loc["B", "ratio_1"] == pytest.approx(own.var(ddof=1) / other.var(ddof=1))
    assert table[["n_target", "n_background"]].sum().tolist() == [100, 100]
    axes = standout.pl.ratios(adata, "type")
    assert axes.get_yticklabels()[0].get_text().split(" ")[0] == table["ratio_0"].idxmax()


def test_the_embedding_is_coloured_by_labels_numbers_and_genes(adata):
    adata.obs["depth"] = np.arange(N) / N
    standout.tl.dpca(adata, "condition", "stim", "ctrl")
    axes = standout.pl.embedding(adata, color="type")
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"background", "B", "NK", "T"}
    for color in ("depth", "gene 5"):
        axes = standout.pl.embedding(adata, color=color, components=(1, 0))
        assert (axes.get_title(), axes.get_xlabel()) == (color, "dpca 2")
        assert len(axes.figure.axes) == 2
    adata.var_names = ["gene 5"] * D
    with pytest.raises(ValueError, match="adata has several columns of gene 'gene 5'"):
        standout.tl.screen(adata, "condition", "ctrl")
    with pytest.raises(ValueError, match="adata has several columns of gene 'gene 5'"):
        standout.pl.embedding(adata, color="gene 5")


def test_other_pictures_show_what_was_written(adata):
    standout.tl.dpca(adata, "condition", "stim", "ctrl", n_comps=3)
    axes = standout.pl.genes(adata, n_genes=4)
    assert axes.get_yticklabels()[0].get_text() == "gene 5"
    adata.uns["dpca"]["p_values"] = np.array([0.01, 0.5])
    points = standout.pl.scree(adata).collections[-1]
    np.testing.assert_allclose(points.get_offsets()[:, 1], adata.uns["dpca"]["ratio"])
    assert [colour.tolist() == [1.0] * 4 for colour in points.get_facecolors()] == [False, True, False]
    adata.X[np.asarray(adata.obs["condition"] == "stim"), 3] += 3
    standout.tl.dpca(adata, "condition", "stim", "ctrl", n_comps=2, center="background")
    dashes = standout.pl.scree(adata).get_lines()[-1]
    np.testing.assert_allclose(dashes.get_ydata(), adata.uns["dpca"]["spread"])


# --- errors ---


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a: standout.tl.dpca(np.eye(3), "x", "y"), "adata is a ndarray, but an AnnData is needed"),
        (lambda a: standout.tl.dpca(a, "cond", "stim"), "groupby='cond' is not a column of adata.obs"),
        (lambda a: standout.tl.dpca(a, "condition", "none"), "target='none' is not a condition"),
        (
            lambda a: standout.tl.dpca(a, "condition", "stim", "stim"),
            "background='stim' is not a condition .* beside the target",
        ),
        (lambda a: standout.tl.dpca(a, "condition", ["stim", "stim"]), "the same condition twice"),
        (lambda a: standout.tl.dpca(a, "condition", ["stim", "ctrl", "other"]), "no condition beside the target"),
        (lambda a: standout.tl.dpca(a, "condition", "stim", n_comps=2, n_components=2), "n_comps=2 is given"),
        (lambda a: standout.tl.dpca(a, "condition", "stim", layer="raw"), "layer='raw' is not in adata.layers"),
        (lambda a: standout.tl.dpca(a, "condition", "stim", use_rep="X_pca"), "use_rep='X_pca' is not in adata.obsm"),
        (lambda a: standout.tl.dpca(a, "condition", "stim", mask_var="hvg"), "mask_var='hvg' is not a column"),
        (lambda a: standout.tl.dpca(a, "condition", "stim", mask_var=[1, 0]), "mask_var has shape"),
        (lambda a: standout.tl.dpca(a, "condition", "stim", adjust="depth"), "adjust='depth' is not a column"),
        (lambda a: standout.tl.dpca(a, "condition", "stim", subject="donor"), "subject='donor' is not a column"),
        (lambda a: standout.tl.screen(a, "condition", "none"), "control='none' is not a condition"),
        (lambda a: standout.tl.permutation_test(a), "key='dpca' is not a fit of standout.tl"),
        (lambda a: standout.get.ratios_df(a, "type"), "key='dpca' is not a fit of standout.tl"),
        (lambda a: standout.pl.screen(a), "key='screen' is not in adata.uns"),
    ],
)
def test_errors_name_the_parameter_and_what_there_is(adata, call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call(adata)


def test_components_that_are_not_there_are_refused(adata):
    standout.tl.dpca(adata, "condition", "stim")
    with pytest.raises(ValueError, match="component=2 is not a component of the fit"):
        standout.get.top_genes_df(adata, component=2)
    with pytest.raises(ValueError, match="component=2 is not a component"):
        standout.pl.embedding(adata, components=(0, 2))
    with pytest.raises(ValueError, match="color='none' is not a column of adata.obs or a gene"):
        standout.pl.embedding(adata, color="none")
