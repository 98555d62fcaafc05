"""
Single cells, with scanpy
=========================

Simulated gene counts of resting and stimulated cells. Five gene programmes vary in all cells, and PCA shows these. The
stimulated cells have two subtypes. ``standout.tl.dpca``, with the resting cells as background, finds them and writes
the result where scanpy expects it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scanpy as sc
from anndata import AnnData

import standout

rng = np.random.default_rng(0)
programmes = rng.normal(size=(5, 200)) * 0.6  # active in all cells
response = np.zeros(200)
response[:12] = 0.7  # the subtypes differ in the first twelve genes
kind = np.concatenate([np.zeros(600), np.repeat([-1.0, 1.0], 300)])
log_rate = rng.normal(size=(1200, 5)) @ programmes + kind[:, None] * response
counts = rng.poisson(rng.gamma(2.0, 2.0, size=200) * np.exp(log_rate)).astype(np.float32)

adata = AnnData(counts, var=pd.DataFrame(index=[f"gene_{number}" for number in range(200)]))
adata.obs["condition"] = pd.Categorical(np.repeat(["ctrl", "stim"], 600))
adata.obs["kind"] = pd.Categorical(
    np.select([kind < 0, kind > 0], ["stimulated A", "stimulated B"], "resting")
)

# %%
# Target and background are normalised together, in the same way.

sc.pp.normalize_total(adata, target_sum=1e4)
sc.pp.log1p(adata)
sc.pp.pca(adata, n_comps=2)
standout.tl.dpca(
    adata, groupby="condition", target="stim", background=["ctrl"], n_components=2
)

colours = {"resting": "#BBBBBB", "stimulated A": "#D55E00", "stimulated B": "#0072B2"}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
sc.pl.embedding(
    adata, basis="pca", color="kind", palette=colours, ax=axes[0], show=False, title="PCA"
)
sc.pl.embedding(
    adata,
    basis="dpca",
    color="kind",
    palette=colours,
    ax=axes[1],
    show=False,
    title="discriminative PCA",
)

# %%
# Which genes differ? Rank them by their *pattern*: how each gene changes with the score. Filters also have large
# weights for genes that only cancel shared variation, so they rank genes worse. The truth is known here: the subtypes
# differ in the first twelve genes (orange).

fig, axes = plt.subplots(2, 1, figsize=(9, 5.5), layout="constrained")
for ax, name, key in zip(
    axes, ["pattern", "filter"], ["dPCs_patterns", "dPCs"], strict=True
):
    weights = pd.Series(adata.varm[key][:, 0], index=adata.var_names)
    strongest = weights[weights.abs().sort_values(ascending=False).index[:15]]
    known = np.array([int(gene.removeprefix("gene_")) < 12 for gene in strongest.index])
    print(f"of the twelve genes with the largest {name}, {known[:12].sum()} differ")
    ax.bar(strongest.index, strongest, color=np.where(known, "#D55E00", "#BBBBBB"))
    ax.axhline(0.0, color="grey", linewidth=0.8)
    ax.set(title=f"the fifteen genes with the largest {name} of component 1")
    ax.tick_params(axis="x", rotation=45)

# sphinx_gallery_thumbnail_number = 1
