"""
A background that has the signal, too
=====================================

The method shows variation that the target has and the background does not have. A background that contains the signal
hides it. Examples are "untreated" samples that include treated ones, or controls with an undiagnosed disease. How
much contamination is harmful?
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
    """Rows of which a share has the two groups of the target."""
    signs = rng.choice([-1.0, 1.0], size=n_rows) * (
        rng.uniform(size=n_rows) < share_with_groups
    )
    return rng.normal(size=(n_rows, 5)) @ shared + rng.normal(size=(n_rows, 30)) + signs[
        :, None
    ] * difference, signs


target, groups = rows(400, 1.0)

# %%
# The share of contaminated background rows grows from 0 to 100 %. The ratio falls towards the level of chance. The
# groups stay visible for a long time, because the target still varies more along their direction. When all rows of
# the background have the groups, nothing stands out, and the test says so.

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
axes[0].plot(
    100 * shares, ratios, "o-", color="#D55E00", label="largest ratio of variances"
)
axes[0].plot(100 * shares, limits, "k--", label="95 % quantile under chance")
axes[0].set(ylabel="ratio", ylim=(0, None))
axes[0].legend(frameon=False)
axes[1].plot(100 * shares, errors, "o-", color="black")
axes[1].set(
    ylabel="clustering error", xlabel="background rows with the signal (%)", ylim=(0, 0.55)
)

# %%
# The view with 0, 50 and 100 % contamination.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, share in zip(axes, [0.0, 0.5, 1.0], strict=True):
    for sign, colour in zip([-1.0, 1.0], ["#D55E00", "#0072B2"], strict=True):
        ax.scatter(
            *views[share][groups == sign].T, s=10, color=colour, alpha=0.6, linewidths=0
        )
    ax.set(title=f"{share:.0%} contaminated", xticks=[], yticks=[])
