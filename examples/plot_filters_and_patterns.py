"""
Filters extract, patterns show
==============================

``components_`` are *filters*: weights that compute a score. ``patterns_`` show what the score looks like in the data.
Interpreting a filter as if it were a pattern is a common mistake. Here the truth is known. Of ten simulated genes, C,
D, E and F share a factor in all samples. C and D have a second factor, in the target only.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA

rng = np.random.default_rng(0)
genes = list("ABCDEFGHIJ")
shared = np.array([0, 0, 1, 1, 1, 1, 0, 0, 0, 0]) * 3.0
own = np.array([0, 0, 1, 1, 0, 0, 0, 0, 0, 0]) * 1.5


def samples(n_samples, with_own):
    rows = rng.normal(size=(n_samples, 1)) * shared + 0.5 * rng.normal(size=(n_samples, 10))
    return rows + with_own * rng.normal(size=(n_samples, 1)) * own


target, background = samples(300, True), samples(600, False)
dpca = DiscriminativePCA(1).fit(target, background=background)
pca = DiscriminativePCA(1).fit(target)

# %%
# The filter gives E and F large negative weights, because C + D - E - F cancels the shared factor. But E and F do not
# have the second factor, and the pattern shows this. PCA shows the shared factor.

views = {
    "PCA: pattern": pca.patterns_[0],
    "discriminative PCA: filter (components_)": dpca.components_[0],
    "discriminative PCA: pattern (patterns_)": dpca.patterns_[0],
    "the truth: what varies in the target only": own,
}
fig, axes = plt.subplots(2, 2, figsize=(9, 5), sharex=True, layout="constrained")
for ax, (name, weights) in zip(axes.flat, views.items(), strict=True):
    weights = weights * np.sign(weights @ own)  # the sign of a component is arbitrary
    ax.bar(
        genes,
        weights / np.abs(weights).max(),
        color=np.where(own > 0, "#D55E00", "#BBBBBB"),
    )
    ax.axhline(0.0, color="grey", linewidth=0.8)
    ax.set(title=name, ylim=(-1.15, 1.15), yticks=[-1, 0, 1])

# %%
# ``inverse_transform`` uses the patterns: it gives the part of each row that the components explain, with all shared
# variation removed.

carried = dpca.inverse_transform(dpca.transform(target)) - dpca.mean_
for gene, spread in zip(genes, carried.std(axis=0), strict=True):
    print(f"{gene}: standard deviation explained by the component {spread:.2f}")
