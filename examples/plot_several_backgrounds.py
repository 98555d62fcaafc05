"""
Two backgrounds that each know half of it
=========================================

The target has two groups, hidden by two kinds of noise. One background has the first kind, the other background has the
second. Only both together reveal the groups. These are the data of the paper's first test of MdPCA.
"""

import matplotlib.pyplot as plt

from standout import DiscriminativePCA
from standout.datasets import make_gaussians_two_backgrounds
from standout.metrics import clustering_error
from standout.plots import plot_scores

data = make_gaussians_two_backgrounds()
first, second = data.backgrounds
print(data.description)

# %%
# Pass a list of backgrounds. ``clustering_error`` is the share of rows that K-means puts into the wrong group.

choices = {
    "no background (PCA)": None,
    "first background only": first,
    "second background only": second,
    "both backgrounds": [first, second],
}
fig, axes = plt.subplots(2, 2, figsize=(9, 7.4), layout="constrained")
for ax, (name, background) in zip(axes.flat, choices.items(), strict=True):
    scores = DiscriminativePCA(2).fit_transform(data.target, background=background)
    error = clustering_error(scores, data.labels)
    plot_scores(
        scores,
        [f"group {label}" for label in data.labels],
        ax=ax,
        title=f"{name}: error {error:.0%}",
    )

# %%
# The weights of the backgrounds
# ------------------------------
#
# By default all backgrounds have the same weight, whatever their numbers of rows. ``background_weights`` takes numbers
# or a rule. ``"worst-case"`` finds the mixture with the *smallest* leading ratio, so it shows only what stands out
# against every mixture. ``"best"`` takes the single background with the largest leading ratio.

weights = {"equal": None, "worst-case": "worst-case", "best": "best"}
for name, rule in weights.items():
    dpca = DiscriminativePCA(2, background_weights=rule).fit(
        data.target, background=[first, second]
    )
    error = clustering_error(dpca.transform(data.target), data.labels)
    print(
        f"{name:10s} weights {dpca.weights_.round(2)}  leading ratio {dpca.eigenvalues_[0]:8.1f}"
        f"  error {error:.0%}"
    )
