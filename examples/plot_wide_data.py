"""
As many columns as rows, and many more
======================================

Gene expression, spectra and voxels often have more columns than rows. The covariance of the background is then
uncertain, or singular. The plain ratio is worst if there are about as many rows as columns.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA
from standout.datasets import make_factor_model

# %%
# The data have 200 columns, ten shared directions, and one direction of the target alone. How well does the score of
# *new* rows follow the factor of the target?

fitted, new = slice(0, 200), slice(200, 600)
rules = {"no shrinkage": None, "the default": "auto"}
counts = np.array([60, 120, 200, 240, 400, 1000])
found = {name: np.zeros(len(counts)) for name in rules}
for place, count in enumerate(counts):
    data = make_factor_model(600, count, 200, specific_variance=20.0)
    for name, shrinkage in rules.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the background is singular
            model = DiscriminativePCA(1, shrinkage=shrinkage).fit(
                data.target[fitted], background=data.backgrounds
            )
        scores = model.transform(data.target[new])[:, 0]
        truth = data.labels[new, 0]
        found[name][place] = np.corrcoef(scores, truth)[0, 1] ** 2

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, r2), colour in zip(found.items(), ["#999999", "#D55E00"], strict=True):
    ax.semilogx(counts, r2, "o-", color=colour, label=name)
    print(f"{name}:", *r2.round(2))
ax.axvline(200, color="black", linestyle=":", label="as many rows as columns")
ax.set(xlabel="rows of the background", ylabel="R² of the true factor", ylim=(-0.03, 1))
ax.set_xticks(counts, [str(count) for count in counts])
ax.legend(frameon=False, loc="lower right")

# %%
# With far more columns than rows, no matrix of columns by columns is formed.

wide = make_factor_model(150, 150, 20_000, shared_variance=4000.0, specific_variance=800.0)
start = time.perf_counter()
model = DiscriminativePCA(1).fit(wide.target, background=wide.backgrounds)
seconds = time.perf_counter() - start
print(f"(150 + 150) x 20,000: {seconds:.1f} s, ratio {model.ratio_[0]:.1f}")
