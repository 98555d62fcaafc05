"""Annotated matrices of cells: what is written where, in memory and backed, and what is refused."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

import standout
from standout import DiscriminativePCA
from standout.graphs import chain_graph
from standout.io import BackedRows

anndata = pytest.importorskip("anndata", reason="anndata is not installed")

N, D = 300, 12


@pytest.fixture
def adata(rng):
    """Three conditions in mixed order; both controls and the target share one axis, the target has one of its own."""
    groups = rng.permutation(np.repeat(["stim", "ctrl", "other"], N // 3))
    rows = rng.normal(size=(N, D))
    rows[:, 0] *= 6
    rows[groups == "stim", 5] *= 4
    found = anndata.AnnData(rows)
    found.var_names = [f"gene {number}" for number in range(D)]
    found.obs["condition"] = groups
    return found


def backed(adata, folder, mode="r"):
    adata.write_h5ad(folder / "cells.h5ad")
    return anndata.read_h5ad(folder / "cells.h5ad", backed=mode)


def expected_fit(adata, backgrounds, genes=slice(None), **params):
    groups = np.asarray(adata.obs["condition"].astype(str))
    rows = np.asarray(adata.X)[:, genes]
    return DiscriminativePCA(**params).fit(
        rows[groups == "stim"], background=[rows[groups == name] for name in backgrounds]
    )


def test_scores_loadings_and_ratios_are_written_by_the_conventions_of_scanpy(adata):
    assert standout.tl.dpca(adata, groupby="condition", target="stim", background=["ctrl"]) is None
    model = expected_fit(adata, ["ctrl"])
    np.testing.assert_allclose(adata.obsm["X_dpca"], model.transform(adata.X))
    np.testing.assert_allclose(adata.varm["dPCs"], model.components_.T)
    np.testing.assert_allclose(adata.varm["dPCs_patterns"], model.patterns_.T)
    np.testing.assert_allclose(adata.uns["dpca"]["eigenvalues"], model.eigenvalues_)
    assert adata.uns["dpca"]["params"] == {"groupby": "condition", "target": ["stim"], "background": ["ctrl"]}
    assert int(np.argmax(np.abs(adata.varm["dPCs"][:, 0]))) == 5


def test_no_background_means_each_of_the_other_groups(adata):
    standout.tl.dpca(adata, "condition", "stim", n_components=3)
    model = expected_fit(adata, ["ctrl", "other"], n_components=3)
    np.testing.assert_allclose(adata.obsm["X_dpca"], model.transform(adata.X))
    assert adata.uns["dpca"]["params"]["background"] == ["ctrl", "other"]
    assert adata.uns["dpca"]["background_variance"].shape == (2, 3)


def test_a_stray_group_is_left_out_with_a_word(adata):
    plain = standout.tl.dpca(adata, "condition", "stim", copy=True)
    stray = np.flatnonzero(adata.obs["condition"] == "other")[:2]
    adata.obs["condition"] = adata.obs["condition"].astype(str)
    adata.obs.iloc[stray, 0] = "doublet"
    with pytest.warns(UserWarning, match=r"group 'doublet \(2\)' left out of the backgrounds: fewer than 10 cells"):
        standout.tl.dpca(adata, "condition", "stim")
    assert adata.uns["dpca"]["params"]["background"] == ["ctrl", "other"]
    np.testing.assert_allclose(adata.uns["dpca"]["eigenvalues"], plain.uns["dpca"]["eigenvalues"], rtol=0.1)
    adata.obs.iloc[stray[:1], 0] = "alone"
    with pytest.warns(UserWarning, match=r"groups 'alone \(1\)', 'doublet \(1\)' left out"):
        standout.tl.dpca(adata, "condition", "stim")
    with pytest.raises(ValueError, match="no group beside the target has 200 cells: the largest has 100.*'rest'"):
        standout.tl.dpca(adata, "condition", "stim", min_cells=200)


def test_rest_is_all_other_cells_together(adata):
    standout.tl.dpca(adata, "condition", "stim", background="rest")
    rows, is_target = np.asarray(adata.X), np.asarray(adata.obs["condition"] == "stim")
    model = DiscriminativePCA().fit(rows[is_target], background=rows[~is_target])
    np.testing.assert_allclose(adata.obsm["X_dpca"], model.transform(rows))
    assert adata.uns["dpca"]["params"]["background"] == "rest"
    adata.obs["condition"] = adata.obs["condition"].astype(str).replace({"other": "rest"})
    standout.tl.dpca(adata, "condition", "stim", background="rest")
    assert adata.uns["dpca"]["params"]["background"] == ["rest"]


def test_groups_and_weights_may_be_any_sequence(adata, tmp_path):
    adata.obs["condition"] = adata.obs["condition"].astype("category")
    expected = standout.tl.dpca(adata, "condition", "stim", ["ctrl", "other"], background_weights=[0.3, 0.7], copy=True)
    names = adata.obs["condition"].cat.categories
    standout.tl.dpca(adata, "condition", ("stim",), names[:2], background_weights=(0.3, 0.7))
    np.testing.assert_array_equal(adata.obsm["X_dpca"], expected.obsm["X_dpca"])
    standout.tl.kernel_dpca(adata, "condition", "stim", kernel=["rbf", "linear"], kernel_weights=(1, 2), n_comps=2)
    adata.write_h5ad(tmp_path / "out.h5ad")
    again = anndata.read_h5ad(tmp_path / "out.h5ad")
    np.testing.assert_array_equal(again.uns["dpca"]["params"]["background_weights"], [0.3, 0.7])


def test_the_words_of_scanpy(adata):
    genes = np.arange(D) % 2 == 1
    adata.var["highly_variable"] = genes
    adata.obsm["X_some"] = np.asarray(adata.X)[:, genes]
    reference = standout.tl.dpca(adata, "condition", "stim", n_components=3, copy=True)
    for options in ({"use_highly_variable": True}, {"use_rep": "X_some"}):
        found = standout.tl.dpca(adata, "condition", "stim", n_comps=3, copy=True, **options)
        np.testing.assert_allclose(found.obsm["X_dpca"], reference.obsm["X_dpca"], atol=1e-10)
    assert "dPCs" not in found.varm
    np.testing.assert_allclose(found.uns["dpca"]["components"].T, reference.varm["dPCs"][genes], atol=1e-10)
    every = standout.tl.dpca(adata, "condition", "stim", use_highly_variable=False, copy=True)
    assert np.all(every.varm["dPCs"] != 0.0)
    with pytest.raises(ValueError, match="n_comps=3 is given together with n_components"):
        standout.tl.dpca(adata, "condition", "stim", n_comps=3, n_components=2)


def test_contrastive_pca_and_kernels_are_written_in_the_same_way(adata):
    groups, rows = np.asarray(adata.obs["condition"]), np.asarray(adata.X)
    parts = {"X": rows[groups == "stim"], "background": rows[groups == "ctrl"]}
    standout.tl.cpca(adata, "condition", "stim", "ctrl", alpha=1.5)
    np.testing.assert_allclose(adata.obsm["X_cpca"], standout.ContrastivePCA(alpha=1.5).fit(**parts).transform(rows))
    assert adata.uns["cpca"]["alpha"] == 1.5
    standout.tl.kernel_dpca(adata, "condition", "stim", "ctrl", n_comps=1)
    model = standout.KernelDiscriminativePCA(1).fit(**parts)
    np.testing.assert_allclose(adata.obsm["X_kernel_dpca"], model.transform(rows))


@pytest.mark.parametrize("method", ["dpca", "cpca"])
def test_new_cells_are_projected_by_the_names_of_genes(adata, tmp_path, method):
    adata.X += 5.0
    adata.var["highly_variable"] = np.arange(D) != 2
    getattr(standout.tl, method)(adata, "condition", "stim")
    adata.write_h5ad(tmp_path / "ref.h5ad")
    reference = anndata.read_h5ad(tmp_path / "ref.h5ad")
    new = anndata.AnnData(sparse.csr_matrix(adata.X[20:50, ::-1]))
    new.var_names = adata.var_names[::-1]
    expected = adata.obsm[f"X_{method}"][20:50]
    found = standout.tl.project(new, reference, key=method, copy=True)
    np.testing.assert_allclose(found.obsm[f"X_{method}"], expected, atol=1e-10)
    file = backed(new, tmp_path)
    standout.tl.project(file, reference, key=method, key_added="there")
    np.testing.assert_allclose(file.obsm["there"], expected, atol=1e-10)
    file.file.close()
    with pytest.raises(ValueError, match="adata lacks 2 of the 11 genes of the reference: genes 'gene 3', 'gene 4'"):
        standout.tl.project(new[:, ~np.isin(new.var_names, ["gene 3", "gene 4"])].copy(), reference, key=method)
    with pytest.raises(ValueError, match="adata_ref has 4 of the 11 genes of the fit"):
        standout.tl.project(new, reference[:, :5].copy(), key=method)
    with pytest.raises(ValueError, match="key='umap' is not in adata_ref.uns"):
        standout.tl.project(new, reference, key="umap")


def test_cells_without_a_group_are_scored_but_belong_to_none(adata):
    plain = adata.copy()
    standout.tl.dpca(plain, "condition", "stim", "ctrl")
    adata.obs["condition"] = adata.obs["condition"].where(adata.obs["condition"] != "other").astype("category")
    standout.tl.dpca(adata, "condition", "stim")
    np.testing.assert_array_equal(adata.obsm["X_dpca"], plain.obsm["X_dpca"])
    assert np.isfinite(adata.obsm["X_dpca"]).all()


def test_several_groups_may_be_one_target(adata):
    standout.tl.dpca(adata, "condition", ["stim", "other"], "ctrl")
    assert adata.uns["dpca"]["params"]["target"] == ["stim", "other"]


def test_a_copy_leaves_the_original_alone(adata):
    found = standout.tl.dpca(adata, "condition", "stim", "ctrl", copy=True, key_added="against")
    assert "against" in found.obsm
    assert "against" in found.varm
    assert "against" in found.uns
    assert not adata.obsm
    assert not adata.uns


def test_layers_are_used_if_asked_for(adata):
    reference = adata.copy()
    standout.tl.dpca(reference, "condition", "stim", "ctrl")
    adata.layers["scaled"] = sparse.csr_matrix(adata.X)
    adata.X = np.zeros_like(adata.X)
    standout.tl.dpca(adata, "condition", "stim", "ctrl", layer="scaled")
    np.testing.assert_allclose(adata.obsm["X_dpca"], reference.obsm["X_dpca"], atol=1e-10)
    assert adata.uns["dpca"]["params"]["layer"] == "scaled"


def test_genes_are_chosen_as_scanpy_chooses_them(adata):
    genes = np.arange(D) % 2 == 1
    adata.var["highly_variable"] = genes
    model = expected_fit(adata, ["ctrl"], genes)
    for options in ({}, {"mask_var": "highly_variable"}, {"mask_var": genes}):
        found = standout.tl.dpca(adata, "condition", "stim", "ctrl", copy=True, **options)
        np.testing.assert_allclose(found.obsm["X_dpca"], model.transform(adata.X[:, genes]))
        np.testing.assert_array_equal(found.varm["dPCs"][~genes], 0.0)
        np.testing.assert_allclose(found.varm["dPCs"][genes], model.components_.T)
        np.testing.assert_allclose(found.varm["dPCs_patterns"][genes], model.patterns_.T)
    everything = standout.tl.dpca(adata, "condition", "stim", "ctrl", copy=True, mask_var=None)
    assert np.all(everything.varm["dPCs"] != 0.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_backed_files_give_the_same(adata, tmp_path, monkeypatch, form, mode):
    monkeypatch.setattr(BackedRows, "_step", lambda self: 40)
    adata.var["highly_variable"] = np.arange(D) != 7
    adata.X = form(adata.X)
    reference = standout.tl.dpca(adata, "condition", "stim", copy=True)
    found = backed(adata, tmp_path, mode)
    standout.tl.dpca(found, "condition", "stim")
    assert found.isbacked
    np.testing.assert_allclose(found.obsm["X_dpca"], reference.obsm["X_dpca"], atol=1e-10)
    np.testing.assert_allclose(found.varm["dPCs"], reference.varm["dPCs"], atol=1e-10)
    found.file.close()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_backed_files_are_read_in_slices(adata, tmp_path, monkeypatch, form):
    monkeypatch.setattr(BackedRows, "_step", lambda self: 40)
    cells = np.zeros(N, dtype=bool)
    cells[150:] = True
    adata.X = form(adata.X)
    found = backed(adata, tmp_path)
    parts = list(BackedRows(found.X, cells, None).parts())
    assert len(parts) > 1
    assert all(sparse.issparse(part) == (form is sparse.csr_matrix) for part in parts)
    assert sum(part.shape[0] for part in parts) == 150
    found.file.close()


def test_what_is_written_survives_a_file(adata, tmp_path):
    adata.var["highly_variable"] = np.arange(D) != 7
    standout.tl.dpca(adata, "condition", "stim", test="analytic", background_weights=[0.3, 0.7], random_state=0)
    standout.tl.dpca(adata, "condition", "stim", mask_var=np.arange(D) > 1, key_added="other")
    adata.write_h5ad(tmp_path / "out.h5ad")
    again = anndata.read_h5ad(tmp_path / "out.h5ad")
    np.testing.assert_array_equal(again.obsm["X_dpca"], adata.obsm["X_dpca"])
    np.testing.assert_array_equal(again.uns["dpca"]["p_values"], adata.uns["dpca"]["p_values"])
    assert list(again.uns["dpca"]["params"]["background"]) == ["ctrl", "other"]
    assert again.uns["dpca"]["params"]["mask_var"] == "highly_variable"


def test_scanpy_shows_it_and_goes_on_from_it(adata):
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    standout.tl.dpca(adata, "condition", "stim", ["ctrl"])
    standout.tl.dpca(adata, "condition", "stim", ["ctrl"], key_added="mine")
    for basis in ("dpca", "mine"):
        with warnings.catch_warnings():
            # What scanpy and matplotlib have to say to each other.
            warnings.simplefilter("ignore")
            axes = scanpy.pl.embedding(adata, basis=basis, color="condition", show=False)
        assert len(axes.collections) > 0
        plt.close("all")


class TestBadInput:
    def refused(self, adata, text, error=ValueError, **options):
        with pytest.raises(error, match=text):
            standout.tl.dpca(adata, **({"groupby": "condition", "target": "stim", "background": "ctrl"} | options))

    def test_names_that_are_not_there(self, adata):
        self.refused(
            adata,
            "groupby='conditions' is not a column of adata.obs, which has column 'condition'. Is",
            groupby="conditions",
        )
        self.refused(adata, r"target='sitm' is not a group of adata.obs\['condition'\], which has", target="sitm")
        self.refused(adata, "background='none' is not a group", background=["ctrl", "none"])
        self.refused(adata, "layer='counts' is not in adata.layers, which has no layers", layer="counts")
        self.refused(adata, "mask_var='hvg' is not a column of adata.var, which has no columns", mask_var="hvg")

    def test_groups_that_make_no_sense(self, adata):
        self.refused(adata, "group 'stim' is both target and background", background=["stim", "ctrl"])
        self.refused(adata, "the same group twice", background=["ctrl", "ctrl"])
        self.refused(adata, "is empty", background=[])
        self.refused(adata, "has no group beside the target", target=["stim", "ctrl", "other"], background=None)
        adata.obs["condition"] = ["stim"] + ["ctrl"] * (N - 1)
        self.refused(adata, "too few rows in the target: 1 .* least is 2")

    def test_masks_that_are_none(self, adata):
        self.refused(
            adata, r"mask_var has shape \(3,\), .* one truth value for each of the 12 genes", mask_var=[True] * 3
        )
        self.refused(adata, "mask_var has .* 0 true value", mask_var=np.zeros(D, dtype=bool))
        adata.var["score"] = np.arange(D)
        self.refused(adata, r"adata.var\['score'\] has .* type int64", mask_var="score")

    def test_missing_values(self, adata):
        groups = adata.obs["condition"].to_numpy()
        for group, text in (("stim", "the target"), ("ctrl", "background 1"), ("other", "the data")):
            spoilt = adata.copy()
            spoilt.X[np.flatnonzero(groups == group)[0], 3] = np.nan
            self.refused(spoilt, f"NaN or infinity in {text}")
            assert not spoilt.obsm

    def test_what_is_no_annotated_matrix(self, adata):
        self.refused(np.eye(3), "adata is a ndarray, but an AnnData is needed", TypeError)
        self.refused(anndata.AnnData(obs=adata.obs), "adata.X is empty")
        self.refused(adata, "n_componens", TypeError, n_componens=3)

    def test_copies_of_files_and_files_by_columns(self, adata, tmp_path):
        found = backed(adata, tmp_path)
        self.refused(found, "adata is backed by a file", copy=True)
        found.file.close()
        adata.X = sparse.csc_matrix(adata.X)
        found = backed(adata, tmp_path)
        self.refused(found, r"by columns \(CSC\)")
        found.file.close()


def test_importing_is_light():
    script = "import sys, standout; standout.tl; print('anndata' in sys.modules, 'h5py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_view_of_a_file_is_refused_before_anything_is_read(adata, tmp_path, monkeypatch):
    cells = backed(adata, tmp_path)
    monkeypatch.setattr(BackedRows, "batches", None)
    with pytest.raises(ValueError, match=r"backed by a file.* a view of it.*adata.to_memory\(\)"):
        standout.tl.dpca(cells[:200], "condition", "stim")


@pytest.mark.parametrize(("values", "target"), [([0.0, 1.0], 1.0), ([0, 1], np.int64(1)), ([False, True], True)])
def test_groups_are_named_by_their_values(adata, values, target):
    adata.obs["group"] = np.repeat(values, N // 2)
    standout.tl.dpca(adata, "group", target, [values[0]])
    expected = DiscriminativePCA().fit(adata.X[N // 2 :], background=adata.X[: N // 2])
    np.testing.assert_allclose(adata.obsm["X_dpca"], expected.transform(adata.X))


def test_robust_weights_are_written_for_the_cells_that_were_fitted(adata, monkeypatch):
    # The fit knows the weights of cells in memory: they are not weighed again.
    monkeypatch.setattr(DiscriminativePCA, "weigh", None)
    stray = int(np.flatnonzero(adata.obs["condition"] == "stim")[3])
    adata.X[stray] *= 40.0
    standout.tl.dpca(adata, "condition", "stim", background=["ctrl"], robust="rows")
    weights = adata.obs["dpca_weight"].to_numpy()
    assert weights[stray] < 0.01
    fitted = adata.obs["condition"].isin(["stim", "ctrl"]).to_numpy()
    assert np.all(np.isnan(weights[~fitted]))
    assert np.median(weights[fitted]) == pytest.approx(1.0, abs=0.05)
    assert adata.uns["dpca"]["params"]["robust"] == "rows"


def test_few_genes_are_marked_with_how_often_folds_choose_them(rng, tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(rng.normal(size=(200, 12)))
    adata.obs["condition"] = np.repeat(["ctrl", "stim"], 100)
    adata.X[100:, [3, 7]] += 3 * rng.normal(size=(100, 1))
    standout.tl.dpca(
        adata, "condition", target="stim", background=["ctrl"], n_components=1, n_columns=2, smooth=chain_graph(12)
    )
    assert np.flatnonzero(adata.var["dpca_chosen"]).tolist() == [3, 7]
    assert adata.var["dpca_frequency"].to_numpy()[[3, 7]].min() > 0.8
    assert adata.uns["dpca"]["smoothness"] == 1.0
    assert np.count_nonzero(adata.varm["dPCs"]) == 2
    adata.write_h5ad(tmp_path / "cells.h5ad")
