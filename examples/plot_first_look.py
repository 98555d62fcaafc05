"""
Digits over photographs
=======================

Handwritten digits are laid over pieces of photographs. Most variation in these images comes from the photographs. The
background consists of other pieces of the same photographs, without digits.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA, plots
from standout.datasets import make_digits_over_photographs
from standout.metrics import clustering_error

images = make_digits_over_photographs()
print("target:", images.target.shape, " background:", images.backgrounds[0].shape)

# %%
# Without a background, ``DiscriminativePCA`` is PCA. The labels (6 or 9) give the colours, and ``clustering_error``
# compares them with two clusters that K-means finds in the scores: 0.5 is chance.

pca = DiscriminativePCA(2).fit(images.target)
dpca = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)
held_out = dpca.held_out_scores(images.target, background=images.backgrounds)
views = {"PCA": pca.transform(images.target), "discriminative PCA": held_out[0]}

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, (name, scores) in zip(axes, views.items(), strict=True):
    error = clustering_error(scores, images.labels)
    labels = [f"digit {label}" for label in images.labels]
    plots.scores(scores, labels=labels, ax=ax, title=f"{name}: error {error:.0%}")

# %%
# What does component 1 look like? Draw the correlation of each pixel with the score.

fig, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for ax, (name, model) in zip(
    axes, {"PCA": pca, "discriminative PCA": dpca}.items(), strict=True
):
    picture = model.correlations_[0].reshape(images.image_shape)
    ax.imshow(picture, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set(title=f"{name}, component 1", xticks=[], yticks=[])

# %%
# The ratio on held-out rows, with its standard error:

for number, (ratio, error) in enumerate(
    zip(dpca.ratio_, dpca.ratio_error_, strict=True), start=1
):
    print(f"component {number}: {ratio:.1f} ± {error:.1f}")
print("shrinkage:", np.round(dpca.shrinkage_, 2))

# sphinx_gallery_thumbnail_number = 1
