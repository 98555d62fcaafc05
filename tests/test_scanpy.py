"""A session of single-cell analysis: from counts to figures, through a file, and on to new cells."""

import warnings

import numpy as np
import pandas as pd
import pytest

import standout

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")


@pytest.fixture
def session(rng):
    """300 resting and 300 stimulated cells of two types; stimulated T cells come in two kinds, by genes 0 to 7."""
    programmes = rng.normal(size=(3, 80)) * 0.6
    types = np.tile(["B", "T"], 300)
    condition = np.repeat(["ctrl", "stim"], 300)
    kind = np.where((condition == "stim") & (types == "T"), rng.choice([-1.0, 1.0], 600), 0.0)
    log_rate = rng.normal(size=(600, 3)) @ programmes
    log_rate[:, :8] += 0.9 * kind[:, None]
    adata = anndata.AnnData(rng.poisson(rng.gamma(2.0, 3.0, size=80) * np.exp(log_rate)).astype(np.float32))
    adata.var_names = [f"gene{number}" for number in range(80)]
    adata.obs["condition"], adata.obs["type"] = pd.Categorical(condition), pd.Categorical(types)
    adata.obs["kind"] = pd.Categorical(np.select([kind < 0, kind > 0], ["low", "high"], "none"))
    with warnings.catch_warnings():
        # What scanpy, its libraries and pandas have to say to each other.
        warnings.simplefilter("ignore")
        scanpy.pp.normalize_total(adata, target_sum=1e4)
        scanpy.pp.log1p(adata)
    return adata


@pytest.fixture
def axes():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield lambda: plt.subplots()[1]
    plt.close("all")


def test_from_counts_to_figures_and_back_through_a_file(session, axes, tmp_path):
    standout.tl.dpca(session, "condition", target="stim", background="rest", n_comps=2, test="analytic")
    session.write_h5ad(tmp_path / "session.h5ad")
    adata = anndata.read_h5ad(tmp_path / "session.h5ad")

    table = standout.get.top_genes_df(adata, n_genes=8)
    assert list(table.columns) == ["gene", "pattern", "filter"]
    assert len(set(table["gene"]) & {f"gene{number}" for number in range(8)}) >= 7
    assert np.all(np.diff(np.abs(table["pattern"])) <= 0)

    ratios = standout.get.ratios_df(adata, "type")
    assert ratios["n_target"].to_dict() == {"B": 150, "T": 150}
    assert ratios.loc["T", "ratio_0"] > 3 * ratios.loc["B", "ratio_0"]

    view = standout.pl.embedding(adata, color="kind", ax=axes())
    assert [text.get_text() for text in view.get_legend().get_texts()] == ["background", "high", "low", "none"]
    assert sum(len(part.get_offsets()) for part in view.collections) == 600
    assert len(standout.pl.genes(adata, n_genes=5, ax=axes()).patches) == 5
    bars = standout.pl.ratios(adata, "type", ax=axes())
    assert [label.get_text() for label in bars.get_yticklabels()] == ["B (150 / 150)", "T (150 / 150)"]
    scree = standout.pl.scree(adata, ax=axes())
    assert [text.get_text() for text in scree.get_legend().get_texts()] == ["fitted cells", "chance", "held-out cells"]

    new = adata[::3].copy()
    del new.obsm["X_dpca"]
    standout.tl.project(new, adata)
    np.testing.assert_allclose(new.obsm["X_dpca"], adata.obsm["X_dpca"][::3], atol=1e-5)


@pytest.mark.parametrize("background", ["rest", [0.0]])
def test_groups_may_be_numbers_and_some_cells_may_have_none(session, axes, background):
    session.obs["dose"] = np.where(session.obs["condition"] == "stim", 1.0, 0.0)
    session.obs.loc[session.obs_names[[0, 599]], "dose"] = np.nan
    standout.tl.dpca(session, "dose", target=1.0, background=background, n_comps=2)
    ratios = standout.get.ratios_df(session, "type")
    assert ratios[["n_target", "n_background"]].to_numpy().tolist() == [[150, 149], [149, 150]]
    view = standout.pl.embedding(session, ax=axes())
    assert [len(part.get_offsets()) for part in view.collections] == [299, 299]
    bars = standout.pl.ratios(session, "type", ax=axes())
    assert {label.get_text() for label in bars.get_yticklabels()} == {"B (150 / 149)", "T (149 / 150)"}


def test_scanpy_goes_on_from_the_view(session):
    standout.tl.dpca(session, "condition", "stim", "ctrl", n_comps=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanpy.pp.neighbors(session, n_neighbors=10, use_rep="X_dpca")
    assert session.obsp["connectivities"].shape == (600, 600)


def test_pictures_and_tables_refuse_what_is_not_there(session, axes):
    with pytest.raises(ValueError, match="key='log1p' is not a fit of standout.tl in adata.uns, which has no fits"):
        standout.pl.embedding(session, "log1p")
    standout.tl.dpca(session, "condition", "stim", n_comps=1)
    with pytest.raises(ValueError, match=r"component=1 is not there: the fit has 1 component\(s\), from 0"):
        standout.pl.embedding(session)
    with pytest.raises(ValueError, match="groupby='celltype' is not a column of adata.obs"):
        standout.pl.ratios(session, "celltype")
    without = session.copy()
    del without.obs["condition"]
    with pytest.raises(ValueError, match="groupby='condition' is not a column of adata.obs"):
        standout.pl.ratios(without, "type")
    session.obs.loc[session.obs_names[:5], "type"] = np.nan
    assert standout.get.ratios_df(session, "type").index.tolist() == ["B", "T"]
    standout.tl.kernel_dpca(session, "condition", "stim", n_comps=2)
    with pytest.raises(ValueError, match="key='kernel_dpca' has no patterns of genes"):
        standout.get.top_genes_df(session, "kernel_dpca")
    assert standout.pl.embedding(session, "kernel_dpca", ax=axes()).get_xlabel() == "kernel_dpca 1"
