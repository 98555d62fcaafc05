"""
A large ratio of something small
================================

The ratio of variances ignores their size. A column with little variation, but ten times as much of it in the target,
wins against a column with much variation and one and a half times as much of it in the target. This is often wanted,
because it finds weak signals. But the column can also be a sensor whose last digit is unstable.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import ContrastivePCA, DiscriminativePCA

rng = np.random.default_rng(0)
spreads = {
    "large in both": (10.0, 10.0),
    "larger by half": (4.0, 6.0),
    "tiny, but ten times": (0.01, 0.1),
    "noise": (1.0, 1.0),
}
background = rng.normal(size=(2000, 4)) * [ours for ours, _ in spreads.values()]
target = rng.normal(size=(2000, 4)) * [theirs for _, theirs in spreads.values()]

# %%
# Three methods answer three questions. Which direction varies most (PCA)? Where is the *difference* of variances largest
# (contrastive PCA, α = 1)? Where is the *ratio* largest (discriminative PCA without shrinkage)? With shrinkage, a
# variance that is small compared with the mean variance of the background counts little: the tiny column is ignored.

models = {
    "PCA": DiscriminativePCA(1).fit(target),
    "contrastive PCA, α = 1": ContrastivePCA(1, alpha=1.0).fit(
        target, background=background
    ),
    "discriminative PCA,\nno shrinkage": DiscriminativePCA(1, shrinkage=None).fit(
        target, background=background
    ),
    "discriminative PCA,\nshrinkage 0.1": DiscriminativePCA(1, shrinkage=0.1).fit(
        target, background=background
    ),
}
fig, axes = plt.subplots(2, 3, figsize=(9, 5.2), sharey=True, layout="constrained")
spread, *others, corner = axes.flat
places = np.arange(4)
spread.barh(places - 0.2, target.std(axis=0), 0.4, color="#D55E00", label="target")
spread.barh(places + 0.2, background.std(axis=0), 0.4, color="#BBBBBB", label="background")
spread.set(xscale="log", title="the data", xlabel="standard deviation")
spread.set(yticks=places, yticklabels=list(spreads))
spread.invert_yaxis()
corner.set_axis_off()
corner.legend(*spread.get_legend_handles_labels(), frameon=False, loc="center")
for ax, (name, model) in zip(others, models.items(), strict=True):
    # The share that each column has in the score's variance.
    share = model.components_[0] ** 2 * target.var(axis=0)
    ax.barh(places, share / share.sum(), color="black")
    ax.set(title=name, xlim=(0, 1.05), xlabel="share of the score")

# %%
# If columns have different units, scale them first, *in the same way for all datasets*: see the example on unequal
# preprocessing. Besides the ratio, look at ``background_variance_`` and ``patterns_``: they tell how large the effect
# is.

for name, model in models.items():
    print(name.replace("\n", " "), "-> target variance", model.target_variance_.round(4))
