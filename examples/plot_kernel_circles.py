"""
Groups that no straight line separates
======================================

In two of four columns, the target lies on a small circle and on a large circle around it. Both groups have the same
mean, so no line separates them in a linear view. A kernel of degree 2 computes squared radii and can separate them. But
the other two columns hold a still larger circle, which kernel PCA finds first. The background has this circle, too.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA, KernelDiscriminativePCA
from standout.datasets import make_circles_one_background
from standout.metrics import clustering_error
from standout.plots import plot_scores

data = make_circles_one_background()
names = ["small circle" if label == 0 else "large circle" for label in data.labels]
print(data.description)

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
plot_scores(data.target[:, :2], names, ax=axes[0], title="target, columns 1 and 2")
plot_scores(data.target[:, 2:], names, ax=axes[1], title="target, columns 3 and 4")
for ax in axes:
    ax.set(xlabel="", ylabel="", aspect="equal")

# %%
# Four views of these rows. The last method has both a kernel and a background, and only its view lets K-means find the
# groups.

quadratic = {"kernel": "homogeneous_polynomial", "degree": 2}
views = {
    "PCA": DiscriminativePCA(2).fit_transform(data.target),
    "discriminative PCA": DiscriminativePCA(2).fit_transform(
        data.target, background=data.backgrounds
    ),
    "kernel PCA": KernelDiscriminativePCA(2, **quadratic).fit_transform(data.target),
    "kernel discriminative PCA": KernelDiscriminativePCA(2, **quadratic).fit_transform(
        data.target, background=data.backgrounds
    ),
}
fig, axes = plt.subplots(2, 2, figsize=(9, 7.6), layout="constrained")
for ax, (name, scores) in zip(axes.flat, views.items(), strict=True):
    plot_scores(
        scores,
        names,
        ax=ax,
        title=f"{name}: error {clustering_error(scores, data.labels):.0%}",
    )

# %%
# The linear view is not useless: discriminative PCA finds the two columns with the circles, and a cut at a radius
# in this view classifies most rows. K-means cannot make such a cut.

radius = np.linalg.norm(views["discriminative PCA"], axis=1)
accuracy = max(np.mean((radius > cut) == (data.labels == 1)) for cut in radius)
print(f"best cut at a radius in the linear view: {accuracy:.0%} of the rows are right")

# %%
# New rows are projected like those of the fit. The size of the problem is the rank of the kernel, not the number of
# rows: a polynomial of degree 2 in four columns has ten coordinates.

kdpca = KernelDiscriminativePCA(2, **quadratic).fit(
    data.target, background=data.backgrounds
)
new = make_circles_one_background(random_state=1)
print(
    "coordinates:",
    kdpca.feature_map_.n_coordinates,
    " rows:",
    len(data.target) + len(data.backgrounds[0]),
)
print("error on new rows:", clustering_error(kdpca.transform(new.target), new.labels))

# sphinx_gallery_thumbnail_number = 2
