"""
Groups that no straight line separates
======================================

In two of four columns, the target lies on a small and on a large circle. A kernel of degree 2 computes squared radii and
can separate them. The other two columns have a still larger circle, which kernel PCA finds first. The background has
that circle, too.
"""

import matplotlib.pyplot as plt

from standout import DiscriminativePCA, KernelDiscriminativePCA, plots
from standout.datasets import make_hidden_circles
from standout.metrics import clustering_error

data = make_hidden_circles()
names = ["small circle" if label == 0 else "large circle" for label in data.labels]

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
plots.scores(data.target[:, :2], labels=names, ax=axes[0], title="columns 1 and 2")
plots.scores(data.target[:, 2:], labels=names, ax=axes[1], title="columns 3 and 4")
for ax in axes:
    ax.set(xlabel="", ylabel="", aspect="equal")

# %%
# Only the method with both a kernel and a background shows the groups.

quadratic = {"kernel": "homogeneous_polynomial", "degree": 2}
models = {
    "PCA": DiscriminativePCA(2).fit(data.target),
    "discriminative PCA": DiscriminativePCA(2).fit(
        data.target, background=data.backgrounds
    ),
    "kernel PCA": KernelDiscriminativePCA(2, **quadratic).fit(data.target),
    "kernel discriminative PCA": KernelDiscriminativePCA(2, **quadratic).fit(
        data.target, background=data.backgrounds
    ),
}
fig, axes = plt.subplots(2, 2, figsize=(9, 7.6), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    scores = model.transform(data.target)
    error = clustering_error(scores, data.labels)
    plots.scores(scores, labels=names, ax=ax, title=f"{name}: error {error:.0%}")

# %%
# New rows are projected in the same way.

new = make_hidden_circles(random_state=1)
scores = models["kernel discriminative PCA"].transform(new.target)
print("error on new rows:", clustering_error(scores, new.labels))

# sphinx_gallery_thumbnail_number = 2
