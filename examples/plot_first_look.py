"""
PCA sees the photographs, discriminative PCA the digits
=======================================================

Handwritten digits are laid over pieces of photographs. Most of the variation in these images comes from the
photographs, so PCA shows the photographs. Discriminative PCA also gets a *background*: other pieces of the same
photographs, without digits. It shows what varies in the target and *not* in the background.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA
from standout.datasets import make_digits_over_photographs
from standout.metrics import clustering_error
from standout.plots import plot_scores

images = make_digits_over_photographs()
print("target:", images.target.shape, " background:", images.backgrounds[0].shape)

# %%
# Without a background, ``DiscriminativePCA`` is PCA. The fit does not use the labels (6 or 9). The labels give the
# colours, and ``clustering_error`` compares them with the two groups that K-means finds in the scores: 0.5 is chance.
# The axes end near the bulk of the scores. ``plot_scores`` draws the few points beyond them hollow, at the edge.

pca = DiscriminativePCA(2).fit(images.target)
dpca = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, name, model in zip(axes, ["PCA", "discriminative PCA"], [pca, dpca], strict=True):
    scores = model.transform(images.target)
    error = clustering_error(scores, images.labels)
    plot_scores(
        scores,
        [f"digit {label}" for label in images.labels],
        ax=ax,
        title=f"{name}: error {error:.1%}",
    )

# %%
# What does the first component show? Its *pattern* is an image: how the pixels change with the score. For PCA it is the
# brightness of the whole piece. For discriminative PCA it is the difference between a 6 and a 9.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
difference = images.target[images.labels == 6].mean(axis=0) - images.target[
    images.labels == 9
].mean(axis=0)
pictures = {
    "PCA, component 1": pca.patterns_[0],
    "discriminative PCA, component 1": dpca.patterns_[0],
    "mean 6 minus mean 9 (the truth)": difference,
}
for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
    size = np.abs(picture).max()
    ax.imshow(picture.reshape(images.image_shape), cmap="RdBu_r", vmin=-size, vmax=size)
    ax.set(title=name, xticks=[], yticks=[])

# sphinx_gallery_thumbnail_number = 1
