"""
A background that has the signal, too
=====================================

The method shows what the target has and the background has not. So a background that contains what one looks for
hides it: untreated samples that are a mixture of treated and untreated ones, controls that are ill without knowing.
How much of that can there be?
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA
from standout.metrics import clustering_error
from standout.selection import component_test

rng = np.random.default_rng(1)
shared = rng.normal(size=(5, 30)) * 4.0
difference = rng.normal(size=30)
difference *= 2.0 / np.linalg.norm(difference)


def rows(n_rows, share_with_groups):
    """Rows of which a share falls into two groups, as all of the target does."""
    signs = rng.choice([-1.0, 1.0], size=n_rows) * (rng.uniform(size=n_rows) < share_with_groups)
    return rng.normal(size=(n_rows, 5)) @ shared + rng.normal(size=(n_rows, 30)) + signs[:, None] * difference, signs


target, groups = rows(400, 1.0)

# %%
# From a clean background to one that is as full of the groups as the target. The ratio falls, and with it the
# certainty. The groups stay visible for long, for along their direction the target still varies more. When the
# background has them as much as the target, nothing stands out, and the test says so.

shares = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
ratios, limits, errors, views = [], [], [], {}
for share in shares:
    background, _ = rows(1000, share)
    test = component_test(target, background, n_components=1)
    scores = DiscriminativePCA(2).fit_transform(target, background=background)
    ratios.append(test.ratios[0])
    limits.append(test.edges[0])
    errors.append(clustering_error(scores, groups))
    views[share] = scores

fig, axes = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
axes[0].plot(100 * shares, ratios, "o-", color="#D55E00", label="largest ratio of variances")
axes[0].plot(100 * shares, limits, "k--", label="chance gives up to (1 in 20)")
axes[0].set(ylabel="ratio", ylim=(0, None))
axes[0].legend(frameon=False)
axes[1].plot(100 * shares, errors, "o-", color="black")
axes[1].set(ylabel="clustering error", xlabel="background rows with the signal (%)", ylim=(0, 0.55))

# %%
# The views at three shares.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, share in zip(axes, [0.0, 0.5, 1.0], strict=True):
    for sign, colour in zip([-1.0, 1.0], ["#D55E00", "#0072B2"], strict=True):
        ax.scatter(*views[share][groups == sign].T, s=10, color=colour, alpha=0.6, linewidths=0)
    ax.set(title=f"{share:.0%} of the background", xticks=[], yticks=[])
