"""
Two backgrounds that each have half of the nuisance
===================================================

The target has two groups, hidden by two kinds of noise. One background has the first kind, the other background has the
second. Only both together show the groups. These are the data of the paper's first test of MdPCA.
"""

import matplotlib.pyplot as plt

from standout import DiscriminativePCA, plots
from standout.datasets import make_gaussians_two_backgrounds
from standout.metrics import clustering_error

data = make_gaussians_two_backgrounds()
first, second = data.backgrounds

choices = {
    "no background (PCA)": None,
    "first background": first,
    "second background": second,
    "both backgrounds": [first, second],
}
fig, axes = plt.subplots(2, 2, figsize=(9, 7.4), layout="constrained")
for ax, (name, background) in zip(axes.flat, choices.items(), strict=True):
    model = DiscriminativePCA(2, shrinkage=0.1).fit(data.target, background=background)
    scores = model.transform(data.target)
    error = clustering_error(scores, data.labels)
    labels = [f"group {label}" for label in data.labels]
    plots.scores(scores, labels=labels, ax=ax, title=f"{name}: error {error:.0%}")

# %%
# All backgrounds have the same weight by default. ``background_weights`` can be numbers or a rule. ``"worst-case"``
# finds the mixture with the *smallest* leading ratio: what then stands out does so against every mixture.

for rule in (None, "worst-case", "joint", "spectral"):
    model = DiscriminativePCA(2, shrinkage=0.1, background_weights=rule).fit(
        data.target, background=[first, second]
    )
    error = clustering_error(model.transform(data.target), data.labels)
    print(f"{rule!s:10s} weights {model.background_weights_.round(2)}  error {error:.0%}")
