"""
Shift and spread
================

A treatment can shift all rows, or make rows differ more. Components show the spread, unless ``center="background"``.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA, plots

rng = np.random.default_rng(0)
scale = np.array([6, 4, 1, 1, 1, 1, 1, 1])
control = rng.normal(size=(300, 8)) * scale
treated = rng.normal(size=(300, 8)) * scale
treated[:, 2] += 3  # all rows shift in column 2
treated[:, 3] *= 2  # rows differ more in column 3

# %%
# With ``center="own"`` (the default) component 1 is the spread, in column 3. A warning can point out that the means
# differ more. With ``center="background"`` component 1 is the shift, in column 2.

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, center in zip(axes, ("own", "background"), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DiscriminativePCA(2, center=center).fit(treated, background=control)
    scores = model.held_out_scores(treated, background=control)
    plots.scores(
        scores[0],
        scores[1:],
        names=["treated", "control"],
        ax=ax,
        title=f'center="{center}"',
    )
    for k in range(2):
        print(
            f"{center:10s} component {k + 1}: ratio {model.ratio_[k]:.1f}, spread {model.spread_[k]:.1f}, "
            f"shift {model.shift_[k]:.1f}"
        )

# %%
# The means of single columns, in standard deviations:

plots.means(model, n_columns=4)
