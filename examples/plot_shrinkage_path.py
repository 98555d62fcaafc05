"""
What shrinkage does, from the plain ratio to PCA
================================================

With few rows, the background covariance is poorly estimated: by chance, the background hardly varies in some
directions. The plain ratio of variances finds exactly these directions. Shrinkage moves the covariance towards a
multiple of the identity, ``(1 - s) C + s (tr C / D) I``: ``s = 0`` is the paper's formula, ``s = 1`` is PCA.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA
from standout.datasets import make_digits_over_photographs
from standout.metrics import clustering_error
from standout.plots import plot_scores
from standout.selection import shrinkage_path

images = make_digits_over_photographs(n_background=400)
target, background = images.target, images.backgrounds[0]
print(f"{background.shape[0]} background rows for {background.shape[1]} columns")

# %%
# ``shrinkage_path`` reads the data once and gives the components at each of 27 values. For each, the labels tell how
# well the digits are separated.

path = shrinkage_path(target, background)
centred = target - target.mean(axis=0)
errors = [
    clustering_error(centred @ components.T, images.labels)
    for components in path.components
]

# %%
# Two rules choose a value without labels. ``"auto"`` (the default) is the Ledoit-Wolf estimate, which depends on the
# number of background rows. ``"clusters"`` takes the view on the path whose first score has the clearest two groups.
# ``group_search_`` stores how clear they are at each value.

auto = DiscriminativePCA(2).fit(target, background=background)
clusters = DiscriminativePCA(2, shrinkage="clusters").fit(target, background=background)
search = clusters.group_search_


# A shrinkage s equals a ridge of s / (1 - s) mean variances: the natural scale of the path. Its ends, 0 and infinity,
# are drawn one step beyond their neighbours.
def ridge(shrinkage):
    return np.clip(shrinkage / (1.0 - np.minimum(shrinkage, 1 - 1e-9)), 4e-4, 2.5e3)


fig, axes = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
axes[0].semilogx(ridge(path.parameters), errors, "o-", color="black", markersize=4)
axes[0].set(ylabel="clustering error\n(uses labels)", ylim=(0, 0.55))
axes[1].semilogx(
    ridge(search.parameters), search.split_shares, "o-", color="black", markersize=4
)
axes[1].axhline(2 / np.pi, color="grey", linestyle=":", label="one Gaussian group")
axes[1].set(
    ylabel="share of the first score\nexplained by two groups\n(uses no labels)",
    xlabel="ridge s / (1 - s)",
)
for ax in axes:
    ax.axvline(ridge(auto.shrinkage_[0]), color="#0072B2", label='shrinkage="auto"')
    ax.axvline(ridge(clusters.shrinkage_[0]), color="#D55E00", label='shrinkage="clusters"')
axes[1].legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.22))
axes[0].set_title("left: the plain ratio of variances; right: PCA")

# %%
# The views at both ends of the path, and at the two chosen values.

fig, axes = plt.subplots(2, 2, figsize=(9, 7.4), layout="constrained")
views = {
    "no shrinkage": None,
    f'"auto" ({auto.shrinkage_[0]:.3f})': "auto",
    f'"clusters" ({clusters.shrinkage_[0]:.3f})': "clusters",
    "full shrinkage (PCA)": 1.0,
}
for ax, (name, shrinkage) in zip(axes.flat, views.items(), strict=True):
    scores = DiscriminativePCA(2, shrinkage=shrinkage).fit_transform(
        target, background=background
    )
    error = clustering_error(scores, images.labels)
    plot_scores(
        scores,
        [f"digit {label}" for label in images.labels],
        ax=ax,
        title=f"{name}: error {error:.0%}",
    )
