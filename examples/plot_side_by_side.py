"""
PCA, contrastive PCA, discriminative PCA, LDA and t-SNE on the same images
==========================================================================

Five ways to look at the same data: real handwriting (digits 6 and 9) over pieces of real photographs. The methods answer
different questions, and need different things:

- *PCA* and *t-SNE* see the target alone. What varies most is the photographs.
- *Contrastive PCA* and *discriminative PCA* also see a background: pieces of photographs without digits. They need no
  labels.
- *Linear discriminant analysis* sees the labels, and finds the direction that separates them best. It needs no
  background, and cannot find groups that nobody has labelled.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.manifold import TSNE

from standout import ContrastivePCA, DiscriminativePCA
from standout.datasets import make_digits_over_photographs
from standout.metrics import clustering_error
from standout.plots import plot_scores

images = make_digits_over_photographs()
X, Y, labels = images.target, images.backgrounds, images.labels

# %%
# Half of the images are used to fit LDA, and all methods are judged on the other half: labels that were seen in the fit
# would make LDA look better than it is.

train = np.arange(len(X)) % 2 == 0
lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(
    X[train], labels[train]
)
spread = np.random.default_rng(0).normal(
    size=(~train).sum()
)  # LDA has one score; the other axis shows nothing
views = {
    "PCA": DiscriminativePCA(2).fit(X[train]).transform(X[~train]),
    "contrastive PCA": ContrastivePCA(2).fit(X[train], background=Y).transform(X[~train]),
    "discriminative PCA": DiscriminativePCA(2)
    .fit(X[train], background=Y)
    .transform(X[~train]),
    "LDA (uses labels)": np.column_stack([lda.transform(X[~train])[:, 0], spread]),
    "t-SNE of the images": TSNE(random_state=0, init="pca").fit_transform(X[~train]),
    "t-SNE of 10 discriminative scores": TSNE(random_state=0, init="pca").fit_transform(
        DiscriminativePCA(10).fit(X[train], background=Y).transform(X[~train])
    ),
}

fig, axes = plt.subplots(2, 3, figsize=(11, 7.4), layout="constrained")
for ax, (name, scores) in zip(axes.flat, views.items(), strict=True):
    judged = scores[:, :1] if name.startswith("LDA") else scores
    error = clustering_error(judged, labels[~train])
    plot_scores(
        scores,
        [f"digit {label}" for label in labels[~train]],
        ax=ax,
        title=f"{name}\nerror {error:.1%}",
    )
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])

# %%
# PCA and t-SNE of the images show photographs: K-means finds the digits no better than by guessing (50 %). With a
# background, the digits come out without any label, here best by contrastive PCA, because the strokes are a large signal
# in the units of the data. t-SNE is no rival of discriminative PCA but a picture of whatever
# it is given: of discriminative scores it shows the digits. (UMAP behaves in the same way.)
