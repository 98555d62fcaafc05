"""
Two backgrounds that each know half of it
=========================================

The target has two groups, hidden under two kinds of noise. One background has the first kind, the other background
the second. Neither is enough alone; both together are. These are the data of the paper's first test of MdPCA.
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
# A list of backgrounds is all it takes. ``clustering_error`` is the share of rows that K-means puts into the wrong
# group.

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
    plot_scores(scores, [f"group {label}" for label in data.labels], ax=ax, title=f"{name}: error {error:.0%}")

# %%
# How much each background counts
# -------------------------------
#
# By default all backgrounds count the same, however many rows they have. ``background_weights`` takes numbers, or a
# rule: ``"worst-case"`` looks for the mixture against which the target stands out *least*, and so finds only what
# stands out against every mixture. ``"best"`` takes the single background against which it stands out most.

weights = {"equal": None, "worst-case": "worst-case", "best": "best"}
for name, rule in weights.items():
    dpca = DiscriminativePCA(2, background_weights=rule).fit(data.target, background=[first, second])
    error = clustering_error(dpca.transform(data.target), data.labels)
    print(f"{name:10s} weights {dpca.weights_.round(2)}  leading ratio {dpca.eigenvalues_[0]:8.1f}  error {error:.0%}")
