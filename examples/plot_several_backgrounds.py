"""
Two backgrounds that each have half of the nuisance
===================================================

The target has two groups, hidden by two kinds of noise. One background has the first kind, the other background has the
second. Only both together show the groups. These are the data of the paper's first test of MdPCA.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA, plots
from standout.metrics import clustering_error

rng = np.random.default_rng(0)
labels = np.repeat(["around 0", "around 8"], 150)
target = rng.normal(size=(300, 15)) * np.repeat([1, 10, 20], 5)
target[150:, :5] = 8 + 2 * target[150:, :5]
first = rng.normal(size=(150, 15)) * np.repeat([2, 10, 2], 5)
second = rng.normal(size=(150, 15)) * np.repeat([2, 2, 20], 5)

choices = {
    "no background (PCA)": None,
    "first background": first,
    "second background": second,
    "both backgrounds": [first, second],
}
fig, axes = plt.subplots(2, 2, figsize=(9, 7.4), layout="constrained")
for ax, (name, background) in zip(axes.flat, choices.items(), strict=True):
    model = DiscriminativePCA(2, shrinkage=0.1).fit(target, background=background)
    scores = model.transform(target)
    error = clustering_error(scores, labels)
    plots.scores(scores, labels=labels, ax=ax, title=f"{name}: error {error:.0%}")

# %%
# All backgrounds have the same weight by default. ``background_weights`` can be numbers or a rule. ``"worst-case"``
# finds the mixture with the *smallest* leading ratio: what then stands out does so against every mixture.

for rule in (None, "worst-case", "joint", "spectral"):
    model = DiscriminativePCA(2, shrinkage=0.1, background_weights=rule).fit(
        target, background=[first, second]
    )
    error = clustering_error(model.transform(target), labels)
    print(f"{rule!s:10s} weights {model.background_weights_.round(2)}  error {error:.0%}")
