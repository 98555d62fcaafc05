"""
Target and background prepared differently
==========================================

Any difference between the datasets can stand out, including a difference in preprocessing. Two mistakes are common:
scaling each dataset by itself removes the signal, and a difference in the measurement adds a false one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from standout import DiscriminativePCA, make_pipeline
from standout.metrics import clustering_error
from standout.plots import plot_scores

rng = np.random.default_rng(0)
n_columns = 20
units = np.geomspace(0.1, 100.0, n_columns)  # columns in different units
groups = np.repeat([-1.0, 1.0], 150)
signal = np.zeros(n_columns)
signal[4] = 4.0


def measured(n_rows):
    """Two strong shared factors and noise, before units."""
    loadings = np.sin(np.outer([0.7, 1.3], np.arange(n_columns))) * 3.0
    loadings[:, 4] = 0.0
    return rng.normal(size=(n_rows, 2)) @ loadings + rng.normal(size=(n_rows, n_columns))


target = (measured(300) + groups[:, None] * signal) * units
background = measured(600) * units
labels = np.where(groups > 0, "group 1", "group 2")

# %%
# Scaling separately, or together
# --------------------------------
#
# ``StandardScaler`` on each dataset sets every variance to 1 in both datasets. A column that varied more in the target
# no longer does. ``standout.make_pipeline`` fits the scaler on the target and applies the same scale to the background.

apart = DiscriminativePCA(2).fit(
    StandardScaler().fit_transform(target),
    background=StandardScaler().fit_transform(background),
)
together = make_pipeline(StandardScaler(), DiscriminativePCA(2)).fit(
    target, background=background
)
print("leading ratio, each dataset scaled by itself:", apart.eigenvalues_[0].round(1))
print(
    "leading ratio, scaled alike:                 ", together[-1].eigenvalues_[0].round(1)
)

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, name, scores in [
    (
        axes[0],
        "each scaled by itself",
        apart.transform(StandardScaler().fit_transform(target)),
    ),
    (axes[1], "scaled alike (make_pipeline)", together.transform(target)),
]:
    plot_scores(
        scores, labels, ax=ax, title=f"{name}: error {clustering_error(scores, groups):.0%}"
    )

# %%
# A difference of the instrument
# ------------------------------
#
# Now there are no groups, but the target was measured on a day when column 13 was noisier. This real difference stands
# out. The pattern names the column. Ask whether it is biology or the instrument.

noisier = measured(300)
noisier[:, 13] += 3.0 * rng.normal(size=300)
model = make_pipeline(StandardScaler(), DiscriminativePCA(2)).fit(
    noisier * units, background=background
)
pattern = model[-1].patterns_[0]

fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.bar(
    np.arange(n_columns),
    pattern,
    color=np.where(np.arange(n_columns) == 13, "#D55E00", "#BBBBBB"),
)
ax.axhline(0.0, color="grey", linewidth=0.8)
ax.set(
    title=f"pattern of component 1, ratio {model[-1].eigenvalues_[0]:.1f}: one column",
    xlabel="column",
    xticks=[0, 5, 10, 13, 15],
)
