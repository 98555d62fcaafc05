"""
Single cells, with scanpy
=========================

Made-up counts of genes in resting and in stimulated cells. All cells differ in what they do anyway, and that is what
PCA shows. Stimulated cells come in two kinds; ``standout.tl.dpca`` finds them, with the resting cells as background,
and writes the view where scanpy looks for it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scanpy as sc
from anndata import AnnData

import standout

rng = np.random.default_rng(0)
programmes = rng.normal(size=(5, 200)) * 0.6  # what all cells do more or less of
response = np.zeros(200)
response[:12] = 0.7  # the two kinds differ in the first twelve genes
kind = np.concatenate([np.zeros(600), np.repeat([-1.0, 1.0], 300)])
log_rate = rng.normal(size=(1200, 5)) @ programmes + kind[:, None] * response
counts = rng.poisson(rng.gamma(2.0, 2.0, size=200) * np.exp(log_rate)).astype(np.float32)

adata = AnnData(counts, var=pd.DataFrame(index=[f"gene_{number}" for number in range(200)]))
adata.obs["condition"] = pd.Categorical(np.repeat(["ctrl", "stim"], 600))
adata.obs["kind"] = pd.Categorical(np.select([kind < 0, kind > 0], ["stimulated A", "stimulated B"], "resting"))

# %%
# Target and background are normalised together: what is done to one must be done to the other.

sc.pp.normalize_total(adata, target_sum=1e4)
sc.pp.log1p(adata)
sc.pp.pca(adata, n_comps=2)
standout.tl.dpca(adata, groupby="condition", target="stim", background=["ctrl"], n_components=2)

colours = {"resting": "#BBBBBB", "stimulated A": "#D55E00", "stimulated B": "#0072B2"}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
sc.pl.embedding(adata, basis="pca", color="kind", palette=colours, ax=axes[0], show=False, title="PCA")
sc.pl.embedding(adata, basis="dpca", color="kind", palette=colours, ax=axes[1], show=False, title="discriminative PCA")

# %%
# Which genes? The filters are in ``varm``. The first twelve are those in which the kinds differ.

filters = pd.Series(adata.varm["dPCs"][:, 0], index=adata.var_names)
strongest = filters[filters.abs().sort_values(ascending=False).index[:15]]
fig, ax = plt.subplots(figsize=(9, 3), layout="constrained")
known = [int(name.removeprefix("gene_")) < 12 for name in strongest.index]
ax.bar(strongest.index, strongest, color=np.where(known, "#D55E00", "#BBBBBB"))
ax.axhline(0.0, color="grey", linewidth=0.8)
ax.set(title="the fifteen largest weights of component 1; orange: the kinds differ in it")
ax.tick_params(axis="x", rotation=45)
