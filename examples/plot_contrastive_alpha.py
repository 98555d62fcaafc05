"""
The difference or the ratio of variances
========================================

Contrastive PCA maximises a *difference*: the target's variance minus α times the background's variance.
Discriminative PCA maximises a *ratio*, and has no α. When do they agree?
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import ContrastivePCA, DiscriminativePCA
from standout.datasets import make_digits_over_photographs
from standout.metrics import clustering_error, principal_angles
from standout.selection import alpha_path

images = make_digits_over_photographs()
target, background = images.target, images.backgrounds[0]
dpca = DiscriminativePCA(1, shrinkage=None).fit(target, background=background)

# %%
# As α grows, contrastive PCA changes from PCA (α = 0) to discriminative PCA: at α = λ₁, the leading ratio, both have
# the same leading direction (Theorem 2 of the paper). A view in between can be better than both.

alphas = np.append(np.geomspace(0.1, 0.99 * dpca.eigenvalues_[0], 24), dpca.eigenvalues_[0])
path = alpha_path(target, background, alpha=alphas, n_components=1)
angles = [
    np.degrees(principal_angles(component, dpca.components_)[0])
    for component in path.components
]
centred = target - target.mean(axis=0)
errors = [
    clustering_error(centred @ component.T, images.labels) for component in path.components
]

fig, axes = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
axes[0].semilogx(path.parameters, angles, "o-", color="black", markersize=4)
axes[0].set(ylabel="angle to discriminative PCA\n(degrees)", ylim=(-4, 94))
axes[1].semilogx(path.parameters, errors, "o-", color="black", markersize=4)
axes[1].set(ylabel="clustering error", xlabel="α", ylim=(0, 0.55))
for ax in axes:
    ax.axvline(dpca.eigenvalues_[0], color="#D55E00", label="λ₁ of discriminative PCA")
axes[0].legend(frameon=False)
print(f"at α = λ₁ the angle is {angles[-1]:.1e} degrees")

# %%
# α has no natural value. ``ContrastivePCA()`` computes the views at 0 and at 40 values, clusters similar views, and
# stores one of each cluster in ``candidates_``. Look at all of them. By default the fit uses the view whose share of
# the target's variance exceeds its share of the background's variance most.

cpca = ContrastivePCA(2).fit(target, background=background)
fig, axes = plt.subplots(1, len(cpca.alphas_), figsize=(10, 3.2), layout="constrained")
for ax, alpha, components in zip(axes, cpca.alphas_, cpca.candidates_, strict=True):
    scores = centred @ components.T
    error = clustering_error(scores, images.labels)
    for label, colour in zip([6, 9], ["#D55E00", "#0072B2"], strict=True):
        ax.scatter(
            *scores[images.labels == label].T, s=8, color=colour, alpha=0.6, linewidths=0
        )
    chosen = " (default)" if alpha == cpca.alpha_ else ""
    ax.set(title=f"α = {alpha:.3g}{chosen}\nerror {error:.0%}", xticks=[], yticks=[])
