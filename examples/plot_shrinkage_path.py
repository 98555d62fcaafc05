"""
How shrinkage is chosen
=======================

With few rows, the background hardly varies in some directions by chance, and the plain ratio finds these. Shrinkage
helps: 0 is the plain ratio, 1 is PCA. It is chosen by held-out rows, without labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA, plots
from standout.datasets import make_digits_over_photographs
from standout.metrics import clustering_error

images = make_digits_over_photographs(n_background=600)
target, background = images.target, images.backgrounds
print(f"{len(background[0])} background rows for {target.shape[1]} columns")

# %%
# The rule: find the best held-out ratio; go on to the most regularised value that keeps 70 % of its logarithm; choose
# the value halfway between.

model = DiscriminativePCA(2).fit(target, background=background)
values = model.path_.values

# %%
# The labels were not used. They show what each value is worth:

errors = [
    clustering_error(
        DiscriminativePCA(2, shrinkage=value, cv=None).fit_transform(
            target, background=background
        ),
        images.labels,
    )
    for value in values
]
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plots.path(model, ax=axes[0])
axes[1].plot(values, errors, "o-", color="#0072B2")
axes[1].axvline(model.shrinkage_, color="#D55E00", label="chosen")
axes[1].set(xlabel="shrinkage", ylabel="clustering error (uses labels)", ylim=(0, 0.55))
axes[1].legend(frameon=False)
print("chosen:", np.round(model.shrinkage_, 2))
print("error:", np.round(errors[model.path_.chosen], 2))
